"""Many calls, many threads, little memory: nothing grows, nothing mixes."""

import gc
import multiprocessing
import os
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from joblib import Parallel, delayed
from scipy.stats import linregress
from scipy.stats import t as t_distribution
from sklearn.base import clone

import slimsvm
from tests.soak.campaign import KEPT
from tests.soak.problems import MAKERS, fitted, ordinary, target_of, values
from tests.soak.processes import forked

A_SEED = 50  # fits


def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="needs /proc")
def test_memory_does_not_grow(campaign):
    """The slope of resident memory against fits, with its confidence interval."""
    X, y, f = ordinary(np.random.default_rng(0))
    names = sorted(MAKERS)
    # memory of its own, in place from the beginning: a list would be the growth that is measured
    seen, n_seen = np.full(200_000, np.nan), [0]

    def trial(seed):
        for k in range(A_SEED):
            name = names[(seed * A_SEED + k) % len(names)]
            model = fitted(name, 1.0, 0.5, X, target_of(name, y, f))
            for _ in range(10):
                values(model, X)
        gc.collect()
        seen[n_seen[0]] = resident()
        n_seen[0] += 1
        return A_SEED

    def measured():
        n = n_seen[0]
        late = seen[n // 2 : n]  # caches fill in the first half
        if n < 200:
            return ""
        slope, wide = slope_of(np.arange(len(late)) * A_SEED, late)
        said = (
            f"one process, {n * A_SEED:,} fits and {10 * n * A_SEED:,} "
            f"predictions: {slope:.2f} +- {wide:.2f} bytes a fit in the later half"
        )
        assert slope - wide <= 0.0, said
        return said

    campaign("growth").run(
        trial, "memory of a process against fits: slope 0 within its confidence interval", measured
    )


def slope_of(x, y, n_parts=20):
    """Least squares on the means of parts, and half of a 95 % confidence interval.

    Memory comes in jumps that stay, so single measurements are far from independent; the means of
    long parts are less so.
    """
    x, y = (np.array([part.mean() for part in np.array_split(v, n_parts)]) for v in (x, y))
    if np.ptp(y) == 0.0:  # nothing moved at all, of which linregress makes NaN
        return 0.0, 0.0
    found = linregress(x, y)
    return found.slope, t_distribution.ppf(0.975, n_parts - 2) * found.stderr


def test_the_slope_of_growth():
    x, noise = np.arange(400.0), np.random.default_rng(0).standard_normal(400)
    assert slope_of(x, np.full(400, 7e8)) == (0.0, 0.0)
    slope, wide = slope_of(x, 3.0 * x + noise)
    assert slope - wide < 3.0 < slope + wide and wide < 0.1
    slope, wide = slope_of(x, noise)
    assert slope - wide <= 0.0


def test_threads_that_fit_and_predict_at_once(campaign):
    rng = np.random.default_rng(0)
    problems = [ordinary(rng) for _ in range(4)]
    names = sorted(MAKERS)
    known = {
        (name, k): values(fitted(name, 1.0, 0.5, X, target_of(name, y, f)), X)
        for name in names
        for k, (X, y, f) in enumerate(problems)
    }
    shared = {
        name: fitted(name, 1.0, 0.5, problems[0][0], target_of(name, *problems[0][1:]))
        for name in names
    }

    def call(seed):
        name, k = names[seed % len(names)], seed % len(problems)
        X, y, f = problems[k]
        with warnings.catch_warnings():
            model = MAKERS[name](1.0, 0.5)
            own = values(model.fit(X, target_of(name, y, f)), X)
        np.testing.assert_array_equal(own, known[name, k], err_msg=f"{name}, fit {k}")
        said = values(shared[name], problems[0][0])
        np.testing.assert_array_equal(said, known[name, 0], err_msg=f"{name}, shared model")

    def trial(seed):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with ThreadPoolExecutor(8) as pool:
                list(pool.map(call, range(64 * seed, 64 * seed + 64)))
        return 128

    campaign("eight_threads").run(trial, "8 threads that fit and predict: the bits of one thread")


def _score(name, X, target):
    return values(fitted(name, 1.0, 0.5, X, target), X)


@pytest.mark.long
def test_nested_joblib(campaign):
    X, y, f = ordinary(np.random.default_rng(1))
    names = ["SVC", "SparseSVC", "LinearSVC", "SVR"]
    wanted = [_score(name, X, target_of(name, y, f)) for name in names]

    def trial(seed):
        backend = ("threading", "loky")[seed % 2]
        found = Parallel(n_jobs=2, backend=backend)(
            delayed(_score)(name, X, target_of(name, y, f)) for name in names
        )
        for one, other in zip(wanted, found, strict=True):
            np.testing.assert_array_equal(one, other)
        return len(names)

    campaign("joblib").run(trial, "fits inside of joblib's workers (loky, threads): the same bits")


def _in_child(queue, X, y):
    queue.put(values(slimsvm.SVC(n_jobs=2).fit(X, y), X))


@pytest.mark.long
@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_processes_after_use(method):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((2500, 3))
    y = (X[:, 0] > 0).astype(int)
    wanted = values(slimsvm.SVC(n_jobs=2).fit(X, y), X)
    context = multiprocessing.get_context(method)
    queue = context.Queue()
    child = context.Process(target=_in_child, args=(queue, X, y))
    child.start()
    np.testing.assert_array_equal(queue.get(timeout=120), wanted)
    child.join(30)
    assert child.exitcode == 0 and threading.active_count() < 20


def budget_of(seed):
    """A fit, the bytes that it may take, and how it is called."""
    rng = np.random.default_rng(seed)
    kind = ("SVC", "SVR", "SparseSVC", "ReducedSVC")[seed % 4]
    n, d = int(rng.integers(4_000, 12_000)), int(rng.integers(2, 20))
    limit = int(rng.integers(10, 60))
    made = {
        "SVC": lambda: slimsvm.SVC(cache_size=limit),
        "SVR": lambda: slimsvm.SVR(cache_size=limit),
        "SparseSVC": lambda: slimsvm.SparseSVC(
            200, basis="random", loss="squared_hinge", random_state=0, max_memory=limit
        ),
        "ReducedSVC": lambda: slimsvm.ReducedSVC(200, random_state=0, max_memory=limit),
    }[kind]()
    a_row = 12 * d + 200  # copies of the rows in float32 and float64, and per-row state
    # what is worked on comes on top: see docs/user_guide.md, Memory
    worked_on = 64e6 if kind in ("SVC", "SVR") else 32e6
    most = 1.1 * (limit * 2**20 + n * a_row) + worked_on
    X = rng.standard_normal((n, d)).astype(np.float32)
    f = X[:, 0] * X[:, 1] + 0.5 * rng.standard_normal(n)
    about = f"{kind}, {n} rows of {d}, {limit} MB"
    return made.set_params(max_time=4), X, f if kind == "SVR" else (f > 0).astype(int), most, about


def status_of(pid, field):
    """A field of /proc/PID/status, in bytes."""
    with open(f"/proc/{pid}/status") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith(field))


@pytest.mark.long
@pytest.mark.skipif(not os.path.exists("/proc/self/clear_refs"), reason="needs Linux")
def test_memory_budget(campaign):
    """cache_size and max_memory, in megabytes, and what the documentation says of a row beside."""
    shares = []

    def trial(seed):
        model, X, target, most, about = budget_of(seed)
        ready, go = os.pipe()

        def work(report):
            clone(model).fit(X[:2500], target[:2500])  # imports, compiled loops, buffers
            gc.collect()
            report()
            os.read(ready, 1)
            model.fit(X, target)
            report()
            os.read(ready, 1)

        with forked(work) as process:
            assert process.next(), "the first fit failed"
            with open(f"/proc/{process.pid}/clear_refs", "w") as file:
                file.write("5")  # the peak is what it is now
            before = status_of(process.pid, "VmRSS")
            os.write(go, b".")
            assert process.next(), "the fit failed"
            taken = status_of(process.pid, "VmHWM") - before
        os.close(ready)
        os.close(go)
        shares.append(taken / most)
        assert taken <= most, f"{about}: {taken / 1e6:.0f} MB where {most / 1e6:.0f} are allowed"

    def measured():
        return f"at most {max(shares):.2f} of what is allowed" if shares else ""

    campaign("memory_budget").run(
        trial,
        "peak memory, seen from outside, at most 1.1 x (cache_size or max_memory + documented "
        "bytes a row) and the block of small problems",
        measured,
    )


def test_streams(campaign):
    """A long stream: memory stays, and accuracy does not fall. Later runs go on with the model."""

    def stream(seed, n):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((n, 10)).astype(np.float32)
        return X, (np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] > 0).astype(int)

    made, path = campaign("stream"), KEPT / "stream.slim"
    model = slimsvm.SparseSVC(50, random_state=0)
    if made.kept and path.exists():
        model = slimsvm.load(path)
    X_test, y_test = stream(10**6, 2000)
    scores, sizes = [], []

    def trial(seed):
        X, y = stream(seed, 2000)
        model.partial_fit(X, y, classes=[0, 1])
        if seed % 25 == 0:
            scores.append(model.score(X_test, y_test))
            sizes.append(resident() if os.path.exists("/proc/self/statm") else 0)
        return 2000

    def measured():
        if made.kept:
            slimsvm.save(model, path)
        if len(scores) < 8:
            return ""
        half = len(scores) // 2
        early, late = np.mean(scores[:half]), np.mean(scores[half:])
        grown = (sizes[-1] - sizes[half]) / 1e6
        said = f"accuracy {early:.4f}, then {late:.4f}; {grown:+.1f} MB in the later half of a run"
        assert late >= early - 0.005 and grown < 50.0, said
        return said

    made.run(trial, "rows of one stream by partial_fit: accuracy and memory hold", measured)
