"""Killed at any time: the old file or the new one, and a training that goes on."""

import itertools
import json
import os
import signal
import time
import warnings

import numpy as np
import pytest
from benchmarks.runner import Cell, Store
from sklearn.base import clone

import slimsvm
from slimsvm import Checkpoint, persistence
from slimsvm.cli.program import program
from tests.soak.problems import values
from tests.soak.processes import forked

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


def called(*words):
    """A command of the program, as the shell would call it."""
    try:
        program(list(map(str, words)))
    except SystemExit as ended:
        if ended.code:
            raise


@pytest.fixture(scope="module")
def two(tmp_path_factory):
    """A folder with two models that say different things, and rows."""
    folder = tmp_path_factory.mktemp("two")
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 5))
    y = (X[:, 0] > 0).astype(int)
    np.savez(folder / "rows.npz", X=X, y=y)
    for k, labels in enumerate((y, 1 - y)):
        persistence.save(slimsvm.SVC().fit(X, labels), folder / f"{k}.slim")
    return folder


def writers(two):
    """Name -> what writes version k (0 or 1) to a path."""
    models = [persistence.load(two / f"{k}.slim") for k in (0, 1)]
    rows = two / "rows.npz"
    return {
        "save": lambda path, k: persistence.save(models[k], path),
        "save_libsvm": lambda path, k: persistence.save_libsvm(models[k], path),
        "save_svmlight": lambda path, k: persistence.save_svmlight(models[k], path),
        "convert": lambda path, k: called("convert", two / f"{k}.slim", path, "--to", "libsvm"),
        "compress": lambda path, k: called("compress", two / f"{k}.slim", path, "--n-basis", 5 + k),
        "predict": lambda path, k: called("predict", rows, two / f"{k}.slim", path),
        "train": lambda path, k: called("train", rows, path, "--C", 1 + k),
        "export": lambda path, k: called("export", two / f"{k}.slim", path, "--to", "c"),
        "benchmark": lambda path, k: Store(path).keep(
            Cell("a", "print", repeat=1), {"seconds": float(k)}, {"run": "x"}, {"cores": 2}
        ),
    }


def content(name, path):
    """What must be that of one version: numbers of a model, bytes of everything else."""
    if name in ("save", "compress", "train"):
        model = persistence.load(path)
        known = values(model, np.eye(5)).tolist()  # compress draws other vectors each time
        return model.n_basis if name == "compress" else known
    if name == "benchmark":
        return json.loads(path.read_text())["cells"]["a"]["all_seconds"]
    return path.read_bytes()


def test_killed_while_writing(campaign, two, tmp_path):
    """The parts that a process reported are there; of the next one all or nothing."""
    write, known, took = writers(two), {}, {}
    suffix = {"save": ".slim", "compress": ".slim", "train": ".slim", "export": ".c"}

    def version(name, k):
        """What version k is, and how long it takes to write it."""
        if (name, k) not in known:
            path = tmp_path / f"known{k}{suffix.get(name, '.txt')}"
            write[name](path, k)
            begin = time.perf_counter()
            write[name](path, k)
            took[name] = time.perf_counter() - begin
            known[name, k] = content(name, path)
            path.unlink()
        return known[name, k]

    def trial(seed):
        rng = np.random.default_rng(seed)
        name = sorted(write)[seed % len(write)]
        path = tmp_path / f"target{suffix.get(name, '.txt')}"
        both = [version(name, k) for k in (0, 1)]
        assert name == "benchmark" or both[0] != both[1]
        write[name](path, 0)

        def work(report):
            for k in itertools.count(1):
                write[name](path, k % 2)
                report()

        with forked(work) as process:
            n_done = process.killed(float(rng.uniform(0.0, 3.0 * took[name])))
        found = content(name, path)
        if name == "benchmark":
            assert len(found) in (n_done + 1, n_done + 2), "a measurement was lost"
        else:
            assert found in (both[n_done % 2], both[(n_done + 1) % 2]), f"{name}: a mix"
        usual = path.stat().st_mode
        path.unlink()
        for left in tmp_path.iterdir():  # nobody could remove what kill -9 leaves
            assert left.name.startswith(".") and left.suffix == ".tmp", left
            mode = left.stat().st_mode
            left.unlink()
            # complete and about to get its name, or its owner's alone
            assert mode == usual or not mode & 0o077, "readable by others"

    campaign("killed_while_writing").run(
        trial,
        "kill -9 while models, exports, predictions and benchmark results are written, by Python "
        "and by the command line: the old file or the new one, never a mix",
    )


TRAINED = {
    "SVC": slimsvm.SVC(C=10.0, gamma=20.0, tol=1e-6, random_state=0),
    "SVR": slimsvm.SVR(C=10.0, gamma=20.0, epsilon=0.01, tol=1e-6),
    "NuSVC": slimsvm.NuSVC(nu=0.3, gamma=20.0, tol=1e-6, random_state=0),
    "LinearSVC": slimsvm.LinearSVC(C=100.0, loss="hinge", tol=1e-8, random_state=0),
    "SparseSVC": slimsvm.SparseSVC(20, random_state=0),
    "SparseSVR": slimsvm.SparseSVR(20, random_state=0),
    "ReducedSVC": slimsvm.ReducedSVC(20, random_state=0),
    "CoreVectorSVC": slimsvm.CoreVectorSVC(gamma=20.0, random_state=0),
    "pursuit": slimsvm.SparseSVC(
        6, gamma=20.0, basis="pursuit", loss="squared_hinge", random_state=0
    ),
}


def test_killed_while_training(campaign, tmp_path):
    """The checkpoint is a usable model with a true status, and the fit goes on to the same end."""
    X, y = slimsvm.datasets.checkers(1200, seed=0)
    path, ends = tmp_path / "kept.slim", {}

    def fit(name, every):
        target = X[:, 0] + y if "SVR" in name else y
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = clone(TRAINED[name]).set_callbacks(Checkpoint(path, every=every))
            return model.fit(X, target)

    def end(name):
        """The model of a fit that nobody disturbs, and its time with many checkpoints."""
        if name not in ends:
            for _ in range(2):  # the first one compiles
                path.unlink(missing_ok=True)
                begin = time.perf_counter()
                model = fit(name, 1e-3)
            ends[name] = values(model, X), time.perf_counter() - begin
            path.unlink()
        return ends[name]

    def trial(seed):
        rng = np.random.default_rng(seed)
        name = sorted(TRAINED)[seed % len(TRAINED)]
        wanted, seconds = end(name)

        def work(report):
            fit(name, 1e-3)
            report()

        n_kills = int(rng.integers(1, 4))
        for _ in range(n_kills):
            with forked(work) as process:
                n_done = process.killed(float(rng.uniform(0.0, 1.2 * seconds)))
            if path.exists():
                now = persistence.load(path)
                assert np.isfinite(values(now, X[:50])).all()
                done = now.status_.reason == "converged"
                assert done or not now.certificate_.holds or n_done
            else:
                assert not n_done, "the fit ended, and there is no file"
        again = values(fit(name, 1e9), X)
        # the same steps from the state of the last one; exact fits end anywhere within tol
        slack = (1e-3 if name in ("SVC", "SVR", "NuSVC") else 1e-7) * (1.0 + np.abs(wanted).max())
        assert np.abs(again - wanted).max() <= slack, f"{name}: another model"
        assert np.array_equal(values(persistence.load(path), X), again)
        for left in tmp_path.iterdir():
            left.unlink()
        return n_kills

    campaign("killed_while_training").run(
        trial,
        "kill -9 during fits with checkpoints: the file loads, its status is true, and the fit "
        "goes on to the same model",
    )


def test_terminated_command(campaign, two, tmp_path):
    """SIGTERM and SIGINT during slimsvm train: the model of now, or none; nothing else is left."""
    rng = np.random.default_rng(0)
    X, rows = rng.random((700, 2)), tmp_path / "rows.npz"
    np.savez(rows, X=X, y=rng.integers(0, 2, len(X)))
    out = tmp_path / "out"
    out.mkdir()
    took = []

    def train(path):
        called("train", rows, path, "--C", 100, "--gamma", 1, "--n-jobs", 1)

    def trial(seed):
        if not took:
            train(out / "m.slim")
            begin = time.perf_counter()
            train(out / "m.slim")
            took.append(time.perf_counter() - begin)
        rng, path = np.random.default_rng(seed), out / "m.slim"
        path.unlink(missing_ok=True)
        how = (signal.SIGTERM, signal.SIGINT)[seed % 2]
        with forked(lambda report: train(path)) as process:
            process.killed(float(rng.uniform(0.0, 1.2 * took[0])), how)
            code = os.waitstatus_to_exitcode(process.wait())
        assert code in (0, 1, 130, -how), code
        if path.exists():
            model = persistence.load(path)
            assert np.isfinite(values(model, X[:20])).all()
            assert model.status_.reason == ("interrupted" if code == 130 else "converged")
        assert set(os.listdir(out)) <= {"m.slim"}, "a temporary file was left behind"
        assert path.exists() == (code in (0, 130)) or code == 1

    campaign("terminated_command").run(
        trial,
        "SIGTERM and Ctrl-C during slimsvm train: the model of then with a true status, or none; "
        "no temporary file stays",
    )
