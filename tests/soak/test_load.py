"""Many calls, many threads, little memory: nothing grows, nothing mixes."""

import gc
import multiprocessing
import os
import subprocess
import sys
import textwrap
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from joblib import Parallel, delayed
from scipy.stats import linregress
from scipy.stats import t as t_distribution

import slimsvm
from tests.soak.problems import MAKERS, fitted, ordinary, target_of, values

A_SEED = 50  # fits


def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="needs /proc")
def test_memory_does_not_grow(campaign):
    """The slope of resident memory against fits, with its confidence interval."""
    X, y, f = ordinary(np.random.default_rng(0))
    names, seen = sorted(MAKERS), []

    def trial(seed):
        for k in range(A_SEED):
            name = names[(seed * A_SEED + k) % len(names)]
            model = fitted(name, 1.0, 0.5, X, target_of(name, y, f))
            for _ in range(10):
                values(model, X)
        gc.collect()
        seen.append(resident())
        return A_SEED

    def measured():
        late = np.array(seen[len(seen) // 2 :], float)  # caches fill in the first half
        if len(late) < 100:
            return ""
        slope, wide = slope_of(np.arange(len(late)) * A_SEED, late)
        said = (
            f"one process, {len(seen) * A_SEED:,} fits and {10 * len(seen) * A_SEED:,} "
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
    found = linregress(x, y)
    return found.slope, t_distribution.ppf(0.975, n_parts - 2) * found.stderr


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


BUDGET = """
    import resource, sys, warnings
    import numpy as np
    import slimsvm
    warnings.simplefilter("ignore")
    name, n, d, limit, seed = sys.argv[1], *(int(word) for word in sys.argv[2:])
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)).astype(np.float32)
    y = (X[:, 0] * X[:, 1] + 0.5 * rng.standard_normal(n) > 0).astype(int)
    asked = {"cache_size": limit} if name == "SVC" else {"max_memory": limit, "n_basis": 200}
    if name == "SparseSVC":
        asked |= {"basis": "random", "loss": "squared_hinge", "random_state": 0}
    small = getattr(slimsvm, name)(**asked).set_params(max_time=20).fit(X[:3000], y[:3000])
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    getattr(slimsvm, name)(**asked).set_params(max_time=20).fit(X, y)
    print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024)
"""


@pytest.mark.long
def test_memory_budget(campaign):
    """cache_size and max_memory, in megabytes, and what the documentation says of a row beside."""

    def trial(seed):
        rng = np.random.default_rng(seed)
        name = ("SVC", "SparseSVC")[seed % 2]
        n, d, limit = (
            int(rng.integers(8_000, 20_000)),
            int(rng.integers(2, 20)),
            int(rng.integers(20, 120)),
        )
        ended = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(BUDGET), name, *map(str, (n, d, limit, seed))],
            capture_output=True,
            text=True,
        )
        assert ended.returncode == 0, ended.stderr
        taken = int(ended.stdout)
        a_row = 12 * d + 200  # copies of the rows in float32 and float64, and per-row state
        most = (
            1.1 * (limit * 2**20 + n * a_row) + 32e6
        )  # a block of up to 2,000 rows: see cache_size
        assert taken <= most, f"{name}: {taken / 1e6:.0f} MB where {most / 1e6:.0f} are allowed"

    campaign("memory_budget").run(
        trial, "peak memory at most 1.1 x (budget + documented bytes a row)"
    )


def test_streams(campaign):
    """A long stream: memory stays, and accuracy does not fall."""

    def stream(seed, n):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((n, 10)).astype(np.float32)
        return X, (np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] > 0).astype(int)

    model = slimsvm.SparseSVC(50, random_state=0)
    X_test, y_test = stream(10**6, 2000)
    scores, sizes = [], []

    def trial(seed):
        X, y = stream(seed, 2000)
        model.partial_fit(X, y, classes=[0, 1])
        if seed % 25 == 0:
            scores.append(model.score(X_test, y_test))
            sizes.append(resident() if os.path.exists("/proc/self/statm") else 0)
        return 2000

    campaign("stream").run(trial, "rows of one stream by partial_fit: accuracy and memory hold")
    if len(scores) >= 8:
        half = len(scores) // 2
        assert np.mean(scores[half:]) >= np.mean(scores[:half]) - 0.005
        assert sizes[-1] - sizes[half] < 50e6
