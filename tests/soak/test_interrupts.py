"""Ctrl-C at any time, and no room to write: a usable model, and nothing that is left as it was."""

import contextlib
import copy
import faulthandler
import os
import resource
import shutil
import signal
import subprocess
import sys
import threading
import time
import warnings
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from threadpoolctl import ThreadpoolController

import slimsvm
from slimsvm import persistence
from slimsvm.ending import REASONS
from tests.soak.problems import EXACT, MAKERS, values
from tests.soak.processes import forked

pytestmark = pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
PACKAGE = str(Path(slimsvm.__file__).parent)
MOST_AFTER_SECOND = 1.0  # CPU seconds from the second Ctrl-C to the end


class Case:
    """A call that Ctrl-C is to hit, on an estimator that was fitted before on other rows."""

    def __init__(self, make, n, features=3, call="fit", rows=None):
        rng = np.random.default_rng(0)
        self.call, d = call, features
        self.X = rng.standard_normal((n, d))
        noisy = np.sin(2 * self.X[:, 0]) + self.X[:, 1] + 0.5 * rng.standard_normal(n)
        self.y = (noisy > 0).astype(int)
        self.target, old = self.y, (np.arange(40) % 2).astype(int)
        model = make()
        if type(model).__name__.endswith(("SVR", "SVRCV")):
            self.target = noisy
        if type(model).__name__ == "ChainSVM":
            self.X = list(self.X.reshape(-1, 5, d))
            self.target = list(self.y.reshape(-1, 5))
            self.before = model.fit(
                list(rng.standard_normal((8, 5, d + 1))), list(old.reshape(8, 5))
            )
        elif call == "partial_fit":
            known = {} if self.target is not self.y else {"classes": [0, 1]}
            self.before = model.partial_fit(self.X[:40], self.target[:40], **known)
        else:  # another number of features: a mix could not predict
            self.before = model.fit(rng.standard_normal((40, d + 1)), old)
        self.rows = rows(self) if rows else None
        for _ in range(2):  # the first one compiles
            begin = time.perf_counter()
            self.whole = self.called(copy.deepcopy(self.before))
            self.seconds = time.perf_counter() - begin
        with at_lines() as lines:
            self.called(copy.deepcopy(self.before))
        self.n_lines = lines.n

    def called(self, model):
        """Call it."""
        if self.call == "partial_fit":
            return model.partial_fit(self.X, self.target)
        return model.fit(self.X, self.target) if self.rows is None else model.fit(self.rows)

    def outputs(self, model):
        """What a model says, of rows with as many features as it wants."""
        d = model.n_features_in_
        new = np.random.default_rng(1).standard_normal((20, d))
        if isinstance(self.X, list):
            return np.concatenate(model.decision_function(list(new.reshape(4, 5, d))))
        return values(model, new)


def blocks(case):
    """The rows as a file would give them."""
    return slimsvm.open_rows(case.X, target=case.target, batch_rows=200)


CASES = {
    **{
        name: lambda name=name, n=n: Case(lambda: MAKERS[name](30.0, 1.0), n)
        for name, n in {
            **dict.fromkeys(MAKERS, 900), "LinearSVC": 8000, "LinearSVR": 8000, "NuSVR": 500,
            "CrammerSingerSVC": 150, "OnlineSVC": 600, "LowRankSVC": 700,
        }.items()
    },
    "SVC two threads": lambda: Case(lambda: slimsvm.SVC(C=30.0, gamma=1.0, n_jobs=2), 2500),
    "SparseSVC two threads": lambda: Case(
        lambda: slimsvm.SparseSVC(20, n_jobs=2, random_state=0), 4000
    ),
    "SparseSVC pursuit": lambda: Case(
        lambda: slimsvm.SparseSVC(
            6, gamma=1.0, basis="pursuit", loss="squared_hinge", random_state=0
        ),
        400,
    ),
    "SparseSVC hinge": lambda: Case(
        lambda: slimsvm.SparseSVC(6, gamma=1.0, loss="hinge", basis="pursuit", random_state=0), 300
    ),
    "LinearSVC hinge": lambda: Case(
        lambda: slimsvm.LinearSVC(C=10.0, loss="hinge", tol=1e-6, random_state=0), 3000
    ),
    "LinearSVC l1": lambda: Case(
        lambda: slimsvm.LinearSVC(penalty="l1", dual=False, random_state=0), 6000, 8
    ),
    "ChainSVM": lambda: Case(lambda: slimsvm.ChainSVM(C=1.0), 200),
    "MultivariateSVC": lambda: Case(lambda: slimsvm.MultivariateSVC(), 300),
    "CrossTraining": lambda: Case(
        lambda: slimsvm.CrossTraining(slimsvm.SVC(), random_state=0), 900
    ),
    "probability": lambda: Case(lambda: slimsvm.SVC(probability=True, random_state=0), 400),
    "SVCCV": lambda: Case(lambda: slimsvm.SVCCV(cv=3), 150),
    "GridSearchCV": lambda: Case(
        lambda: slimsvm.GridSearchCV(slimsvm.SVC(), {"C": [1, 10], "gamma": [0.1, 1.0]}, cv=3), 400
    ),
    "SparseSVCCV": lambda: Case(lambda: slimsvm.SparseSVCCV(5, cv=3, random_state=0), 150),
    "SparseSVC stream": lambda: Case(
        lambda: slimsvm.SparseSVC(20, random_state=0), 6000, call="partial_fit"
    ),
    "SparseSVR stream": lambda: Case(
        lambda: slimsvm.SparseSVR(20, random_state=0), 6000, call="partial_fit"
    ),
    "OnlineSVC stream": lambda: Case(
        lambda: slimsvm.OnlineSVC(gamma=1.0, random_state=0), 500, call="partial_fit"
    ),
    "SparseSVC rows": lambda: Case(
        lambda: slimsvm.SparseSVC(10, random_state=0), 3000, rows=blocks
    ),
    "LinearSVC rows": lambda: Case(lambda: slimsvm.LinearSVC(), 8000, rows=blocks),
    "ReducedSVC rows": lambda: Case(
        lambda: slimsvm.ReducedSVC(20, random_state=0), 3000, rows=blocks
    ),
}  # fmt: skip


@contextlib.contextmanager
def at_lines(*numbers):
    """Ctrl-C when the package comes to the lines of these numbers, counted as they are executed.

    Work on arrays takes the time of a fit, and few of its lines: random times hit hardly anything
    else.
    """
    counted = SimpleNamespace(n=0)

    def look(frame, event, given):
        if event == "line":
            counted.n += 1
            if counted.n in numbers:
                signal.raise_signal(signal.SIGINT)
        return look

    def enter(frame, event, given):
        return look if PACKAGE in frame.f_code.co_filename else None

    before = sys.gettrace()
    sys.settrace(enter)
    try:
        yield counted
    finally:
        sys.settrace(before)


def interrupted_at(call, numbers):
    """Do the call with Ctrl-C at these lines."""
    with contextlib.suppress(KeyboardInterrupt), at_lines(*numbers):
        call()


def interrupted(call, delays):
    """Do the call while Ctrl-C comes after each delay; returns CPU seconds after the last."""
    sent, ended, finished = [], [], []

    def send():
        for delay in delays:
            time.sleep(delay)
            sent.append(time.process_time())
            os.kill(os.getpid(), signal.SIGINT)
        finished.append(True)

    sender = threading.Thread(target=send)
    try:
        sender.start()
        call()
        ended.append(time.process_time())
    except KeyboardInterrupt:
        ended.append(time.process_time())
    while not finished:  # a join that Ctrl-C disturbs takes a thread for ended that is not
        with contextlib.suppress(KeyboardInterrupt):
            time.sleep(1e-3)
    with contextlib.suppress(KeyboardInterrupt):
        for _ in range(3):
            time.sleep(1e-3)  # a signal that came last is heard here
    sender.join()
    return (ended or sent)[0] - sent[-1]


def test_interrupted_fits(campaign):
    blas = ThreadpoolController()
    made, names = {}, sorted(CASES)
    known = slimsvm.SVC(n_jobs=2).fit(*slimsvm.datasets.checkers(3000, seed=0))  # makes the pool
    limits, n_threads = blas.info(), threading.active_count()
    later = []

    def trial(seed):
        rng = np.random.default_rng(seed)
        name = names[seed % len(names)]
        faulthandler.dump_traceback_later(120, exit=True)  # an interrupt that left a lock behind
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            case = made[name] = made.get(name) or CASES[name]()
            model = copy.deepcopy(case.before)
            twice, by_line = seed % 3 == 2, (seed // len(names)) % 2 == 1
            if by_line:
                when = [int(rng.integers(1, case.n_lines))]
                when += [when[0] + int(rng.geometric(0.01))] if twice else []
                interrupted_at(lambda: case.called(model), when)
            else:
                when = [float(rng.uniform(0.0, 1.1 * case.seconds))]
                when += [float(rng.uniform(0.0, 0.03))] if twice else []
                after = 0.0
                with contextlib.suppress(KeyboardInterrupt):  # the second, in the test itself
                    after = interrupted(lambda: case.called(model), when)
        faulthandler.cancel_dump_traceback_later()
        try:
            check(case, model, name)
            if twice and not by_line:
                later.append(after)
                assert after < MOST_AFTER_SECOND, f"{after:.2f} s after the second Ctrl-C"
            handler = signal.getsignal(signal.SIGINT)
            assert handler is signal.default_int_handler, f"the handler is {handler}"
            for thread in threading.enumerate():
                if thread.name == "slimsvm-read":  # ends with the block that it reads
                    thread.join(timeout=5.0)
            assert threading.active_count() <= n_threads, f"left: {threading.enumerate()}"
            assert blas.info() == limits, f"the limits of BLAS are {blas.info()}"
            assert known.predict(np.zeros((1, 2))).size
        except AssertionError as error:
            what = "lines" if by_line else "seconds"
            raise AssertionError(f"{name}, Ctrl-C at {what} {when}: {error}") from error
        finally:
            signal.signal(signal.SIGINT, signal.default_int_handler)
            blas.limit(limits={part["prefix"]: part["num_threads"] for part in limits})

    def measured():
        return f"at most {max(later):.2f} CPU s after a second Ctrl-C" if later else ""

    campaign("interrupted_fits").run(
        trial,
        f"Ctrl-C, and a second one, at any time and line of {len(CASES)} kinds of fits, searches "
        "and streams: the model of before, or a usable one with a true status; handlers, threads "
        "and limits of BLAS are as they were",
        measured,
    )


def check(case, model, name):
    """The model of before, or a usable one whose status is true."""
    said = case.outputs(model)
    assert np.isfinite(said).all(), "outputs that are not finite"
    before = case.outputs(case.before)
    if said.shape == before.shape and np.array_equal(said, before):
        assert set(vars(model)) == set(vars(case.before)), "attributes are left behind"
        return
    if case.call == "partial_fit":
        assert model.fit_status_ in (0, 1)
        return
    assert model.n_features_in_ == case.whole.n_features_in_
    if not hasattr(model, "status_"):  # a search
        return
    reason = model.status_.reason
    assert reason in REASONS
    if hasattr(model, "fit_status_"):
        assert model.fit_status_ == int(not model.status_.converged)
    whole = case.whole.status_.reason
    if reason != "interrupted":  # it came too late, or when the tolerance was reached
        holds = model.certificate_.holds and reason == "converged"
        same = reason == whole and np.array_equal(said, case.outputs(case.whole))
        assert holds or same, f"{reason}, and another model than a fit in peace, {whole}"
    elif name in EXACT:
        low, _ = model.certificate_.interval
        _, high = case.whole.certificate_.interval
        assert not low > high, f"claims at least {low}, and {high} can be had"


# -- no room, or no folder -------------------------------------------------------------------------


@pytest.fixture(scope="module")
def two(tmp_path_factory):
    """Files of two models that say different things, and rows."""
    folder = tmp_path_factory.mktemp("two")
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 5))
    y = (X[:, 0] > 0).astype(int)
    for name, labels in (("first", y), ("second", 1 - y)):
        persistence.save(slimsvm.SVC().fit(X, labels), folder / name)
    return folder / "first", folder / "second", X[:5]


WAYS = {
    "slim": persistence.save,
    "libsvm": persistence.save_libsvm,
    "c": lambda model, path: slimsvm.to_c(model, path),
}


def test_no_space_left(campaign, two, tmp_path):
    """A limit on the size of a file, at every byte."""
    first, second, _ = two
    models, sizes = [persistence.load(path) for path in (first, second)], {}

    def trial(seed):
        rng, path = np.random.default_rng(seed), tmp_path / "model"
        name = sorted(WAYS)[seed % len(WAYS)]
        if name not in sizes:
            WAYS[name](models[1], path)
            sizes[name] = path.stat().st_size
        WAYS[name](models[0], path)
        before, limit = path.read_bytes(), int(rng.integers(0, sizes[name] - 1))
        saying = tmp_path.parent / "said"

        def work(report):
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            try:
                resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
                WAYS[name](models[1], path)
            except OSError as error:
                resource.setrlimit(resource.RLIMIT_FSIZE, [resource.RLIM_INFINITY] * 2)
                saying.write_text(str(error))
                sys.exit(3)

        with forked(work) as process:
            code = os.waitstatus_to_exitcode(process.wait())
        assert code == 3, f"{name}, {limit} bytes: exit code {code}"
        assert "model" in saying.read_text(), saying.read_text()
        assert path.read_bytes() == before, "the old file is another one"
        assert os.listdir(tmp_path) == ["model"], "something was left behind"

    campaign("no_space_left").run(
        trial, "a file-size limit at any byte: one sentence that names the file, the old one stays"
    )


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 64 kB, where this process may mount one."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(folder)]
    if shutil.which("mount") is None or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("may not mount a file system")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_full_disk(small_disk, two):
    """One sentence; the old file and everything else stay, and the next small file fits."""
    model, path = persistence.load(two[0]), small_disk / "model.slim"
    persistence.save(model, path)
    before = path.read_bytes()
    filler = small_disk / "filler"
    filler.write_bytes(b"x" * (64 * 1024 - 2 * len(before) // 4096 * 4096))
    rng = np.random.default_rng(0)
    X = rng.standard_normal((900, 20))
    large = slimsvm.SVC().fit(X, (X[:, 0] > 0).astype(int))
    with pytest.raises(OSError, match=r"No space left on device.*model\.slim"):
        persistence.save(large, path)
    assert path.read_bytes() == before
    assert sorted(os.listdir(small_disk)) == ["filler", "model.slim"]
    checkpoint = slimsvm.Checkpoint(small_disk / "kept.slim", every=1e-9)
    with pytest.warns(UserWarning, match="could not be written"):
        kept = slimsvm.SVC().set_callbacks(checkpoint).fit(X, (X[:, 0] > 0).astype(int))
    assert np.array_equal(kept.dual_coef_, large.dual_coef_)
    filler.unlink()
    persistence.save(model, path)


def test_read_only_folder(two, tmp_path):
    """Root may write anywhere, so the folder is tried as nobody."""
    model = persistence.load(two[0])
    folder = tmp_path / "closed"
    folder.mkdir(mode=0o755)
    for parent in (tmp_path, *tmp_path.parents[:2]):
        parent.chmod(parent.stat().st_mode | 0o055)

    def work(report):
        if os.geteuid() == 0:
            os.setuid(65534)
        else:
            folder.chmod(0o500)
        try:
            persistence.save(model, folder / "model.slim")
        except OSError as error:
            sys.exit(3 if "model.slim" in str(error) else 4)

    with forked(work) as process:
        code = os.waitstatus_to_exitcode(process.wait())
    folder.chmod(0o700)
    assert code == 3 and not list(folder.iterdir())
