"""Whatever a file holds, reading it ends in a result or in a clear error."""

import contextlib
import gc
import io
import os
import re
import resource
import subprocess
import sys
import time
import warnings
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from benchmarks.runner import Cell, Store
from sklearn.base import clone

import slimsvm
from slimsvm import persistence
from slimsvm.cli.data import read
from tests.soak.mutations import forged, mutated

KEPT = Path(__file__).resolve().parent.parent / "persistence" / "kept"
SLOW = 5.0  # seconds
PROMISE = "a result or a clear error; no crash, hang, code, or memory beyond 10 x the file + 100 MB"
CLEAR = (ValueError, OSError)  # what a reader may raise
A_SEED = 20  # files


@cache
def rows():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 3))
    return X, np.where(X[:, 0] * X[:, 1] > 0, 2, 1), X[:, 0] + 0.1


@cache
def models():
    """Model files of all estimators, written by this version and by an older one."""
    X, y, t = rows()
    made = [
        slimsvm.SVC(), slimsvm.NuSVC(nu=0.3), slimsvm.SVR(), slimsvm.OneClassSVM(),
        slimsvm.SparseSVC(5, random_state=0), slimsvm.SparseSVR(5, random_state=0),
        slimsvm.LinearSVC(), slimsvm.LinearSVR(), slimsvm.ReducedSVC(random_state=0),
        slimsvm.LowRankSVC(random_state=0), slimsvm.CoreVectorSVC(random_state=0),
        slimsvm.OnlineSVC(random_state=0), slimsvm.CrammerSingerSVC(random_state=0),
        slimsvm.SparseSVC(5, random_state=0, loss="hinge"),
    ]  # fmt: skip
    files = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for k, estimator in enumerate(made):
            file = io.BytesIO()
            target = t if type(estimator).__name__.endswith("SVR") else y
            persistence.save(estimator.fit(X, target), file)
            files[f"{type(estimator).__name__}-{k}"] = file.getvalue()
    return files | {path.stem: path.read_bytes() for path in sorted(KEPT.glob("*.slim"))}


@cache
def foreign(tmp):
    """Model files of LIBSVM and SVM-light."""
    X, y, t = rows()
    files = {}
    for name, model in (("svc", slimsvm.SVC().fit(X, y)), ("svr", slimsvm.SVR().fit(X, t))):
        persistence.save_libsvm(model, tmp / name)
        files["libsvm", name] = (tmp / name).read_bytes()
        persistence.save_svmlight(model, tmp / name)
        files["svmlight", name] = (tmp / name).read_bytes()
    return files


@cache
def tables(tmp):
    """Data in all formats."""
    X, y, _ = rows()
    text = "\n".join(
        f"{label} " + " ".join(f"{j + 1}:{v:.6g}" for j, v in enumerate(row))
        for row, label in zip(X, y, strict=True)
    )
    lines = "\n".join(
        ",".join(f"{v:.6g}" for v in (*row, label)) for row, label in zip(X, y, strict=True)
    )
    files = {"x.svm": text.encode(), "x.csv": b"a,b,c,label\n" + lines.encode()}
    np.savez(tmp / "x.npz", X=X, y=y)
    files["x.npz"] = (tmp / "x.npz").read_bytes()
    with contextlib.suppress(ImportError):
        import pandas as pd

        frame = pd.DataFrame(X, columns=list("abc")).assign(label=y)
        frame.to_parquet(tmp / "x.parquet")
        files["x.parquet"] = (tmp / "x.parquet").read_bytes()
    return files


@contextlib.contextmanager
def within_bounds(content, what):
    """No longer than five seconds, at work or waiting, and not much memory."""
    before, begin = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.monotonic()
    at_work = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            yield
        except CLEAR as error:
            assert str(error).strip(), f"{what}: an error without words"
        except MemoryError:
            raise AssertionError(f"{what}: asked for more memory than there is") from None
    taken, worked = time.monotonic() - begin, time.process_time() - at_work
    # on a busy computer the clock goes on while this process waits for its turn
    assert worked < SLOW and taken < 60 * SLOW, f"{what}: {worked:.1f} of {taken:.1f} s at work"
    unit = 1 if sys.platform == "darwin" else 1024
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * unit
    assert grown < 10 * len(content) + 100e6, (
        f"{what}: {grown / 1e6:.0f} MB for {len(content)} bytes"
    )


@pytest.fixture(scope="module")
def tmp(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    yield folder


def outputs(model):
    """What a model says of a few rows."""
    n = model.n_features_in_
    if (
        hasattr(model, "oracle_")
        and not hasattr(model, "_more_tags")
        and "Chain" in type(model).__name__
    ):
        return model.decision_function([np.linspace(-1, 1, 4 * n).reshape(4, n)])
    X = np.linspace(-1, 1, 4 * n).reshape(4, n)
    return model.decision_function(X) if hasattr(model, "decision_function") else model.predict(X)


def test_model_files(campaign, tmp):
    names = sorted(models())
    wanted = {name: outputs(persistence.load(io.BytesIO(models()[name]))) for name in names}

    def trial(seed):
        rng = np.random.default_rng(seed)
        for k in range(A_SEED):
            name, other = (names[int(i)] for i in rng.integers(len(names), size=2))
            content = mutated(models()[name], rng, models()[other])
            what = f"{name}, seed {seed}, file {k}"
            with within_bounds(content, what):
                model = persistence.load(io.BytesIO(content))
                # it loads: then it is the model that was saved, or the other one whole
                said = outputs(model)
                same = any(
                    said.shape == known.shape and np.array_equal(said, known)
                    for known in (wanted[name], wanted[other])
                )
                if not same:
                    raise AssertionError(f"{what}: another model was loaded")
        return A_SEED

    campaign("model_files").run(trial, PROMISE + "; a model that loads is the one that was saved")


def test_forged_model_files(campaign, tmp):
    names = sorted(models())

    def trial(seed):
        rng = np.random.default_rng(seed)
        for k in range(A_SEED):
            name = names[int(rng.integers(len(names)))]
            content = forged(models()[name], rng)
            with within_bounds(content, f"{name}, seed {seed}, file {k}"):
                model = persistence.load(io.BytesIO(content))
                said = outputs(model)
                assert said.shape[0] == 4
        return A_SEED

    campaign("forged_model_files").run(trial, PROMISE)


@pytest.mark.parametrize("estimator", [slimsvm.SVC(gamma=1.0), slimsvm.SparseSVC(5, gamma=1.0)])
def test_checkpoints(campaign, tmp, estimator):
    """A fit that finds a damaged or forged checkpoint refuses it, or ends where others end."""
    X, y, _ = rows()
    name, path = type(estimator).__name__, tmp / "kept.slim"
    estimator.set_params(random_state=0)

    def fit():
        return clone(estimator).set_callbacks(slimsvm.Checkpoint(path, every=1e-9)).fit(X, y)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path.unlink(missing_ok=True)
        wanted = outputs(fit())
    content = path.read_bytes()

    def trial(seed):
        rng = np.random.default_rng(seed)
        for k in range(A_SEED):
            fair = rng.random() < 0.5
            found = mutated(content, rng, content) if fair else forged(content, rng)
            path.write_bytes(found)
            with within_bounds(found, f"{name}, seed {seed}, file {k}"):
                said = outputs(fit())
                assert not fair or np.array_equal(said, wanted), "another model"
                assert np.isfinite(said).all()
            if fair and path.read_bytes() != found:  # it was taken for a checkpoint: a whole one
                outputs(persistence.load(path))
        return A_SEED

    campaign(f"checkpoints_{name}").run(
        trial, PROMISE + "; a fit goes on to the model of an undisturbed one, or refuses the file"
    )


def test_benchmark_results(campaign, tmp):
    path = tmp / "results.json"
    path.unlink(missing_ok=True)
    store, cell = Store(path), Cell("letter/SVC", "nothing", repeat=1)
    for seconds in (1.0, 2.0):
        store.keep(cell, {"seconds": seconds}, {"run": "2026"}, {"cores": 2})
    content = path.read_bytes()

    def trial(seed):
        rng = np.random.default_rng(seed)
        for k in range(A_SEED):
            damaged = mutated(content, rng, content)
            path.write_bytes(damaged)
            with within_bounds(damaged, f"results, seed {seed}, file {k}"):
                try:
                    store.read()
                except SystemExit as refused:  # these are programs
                    assert "results.json" in str(refused) and path.read_bytes() == damaged
                else:
                    store.has(cell)
                    store.begin([cell], False, False)
        return A_SEED

    campaign("benchmark_results").run(trial, PROMISE)


@pytest.mark.parametrize("format", ["libsvm", "svmlight"])
def test_foreign_model_files(campaign, tmp, format):
    files = [content for (kind, _), content in foreign(tmp).items() if kind == format]
    load = getattr(persistence, f"load_{format}")

    def trial(seed):
        rng, path = np.random.default_rng(seed), tmp / f"model.{format}"
        for k in range(A_SEED):
            one, other = (files[int(i)] for i in rng.integers(len(files), size=2))
            content = mutated(one, rng, other)
            path.write_bytes(content)
            with within_bounds(content, f"{format}, seed {seed}, file {k}"):
                model = load(path, n_features=3)
                assert outputs(model).shape[0] == 4
        return A_SEED

    campaign(f"{format}_model_files").run(trial, PROMISE)


@pytest.mark.parametrize("name", ["x.svm", "x.csv", "x.npz", "x.parquet"])
def test_data_files(campaign, tmp, name):
    if name not in tables(tmp):
        pytest.skip("pandas or pyarrow is missing")
    content = tables(tmp)[name]

    def trial(seed):
        rng, path = np.random.default_rng(seed), tmp / f"damaged{Path(name).suffix}"
        for k in range(A_SEED):
            damaged = mutated(content, rng, content)
            path.write_bytes(damaged)
            with within_bounds(damaged, f"{name}, seed {seed}, file {k}"):
                found = read(os.fspath(path))
                values = found.X.data if hasattr(found.X, "tocsr") else np.asarray(found.X)
                assert np.isfinite(values).all(), "numbers that are not finite were let in"
        return A_SEED

    campaign(f"data_files_{Path(name).suffix[1:]}").run(trial, PROMISE + "; only finite numbers")
    gc.collect()


@pytest.mark.long
@pytest.mark.parametrize("format", ["libsvm", "svmlight", "slim", "svm", "csv", "npz"])
def test_fuzzed_parsers(campaign, tmp, format):
    """The same by a fuzzer that sees the branches, where one is installed."""
    pytest.importorskip("atheris")
    made = campaign(f"fuzzed_files_{format}")

    def trial(seed):
        seconds = int(min(20, max(3, made.seconds)))
        words = [f"-seed={seed + 1}", f"-max_total_time={seconds}", f"-artifact_prefix={tmp}/"]
        ended = subprocess.run(
            [sys.executable, "-m", "tests.soak.fuzz", format, *words],
            cwd=KEPT.parent.parent.parent,
            capture_output=True,
            text=True,
        )
        assert ended.returncode == 0, ended.stderr[-4000:]
        return int(re.findall(r"number_of_executed_units: *(\d+)", ended.stderr)[-1])

    made.run(trial, "inputs made by a fuzzer that sees the branches (atheris): " + PROMISE)
