"""Every estimator keeps max_time: what begins after it takes at most a tenth of it and a second.

The clock is made of work: it moves by TASK for every task of :func:`slimsvm.threads.parallel`, and
a little whenever somebody looks at it. So the test counts what is done after the limit, and does
not depend on how busy the computer is. Steps are short beside a second: tests/test_run.py.
"""

import sys
import time

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

import slimsvm
from slimsvm import SparseSVC, run, threads
from slimsvm.datasets import checkers

TASK, LOOK = 0.005, 1e-4  # seconds: five times what such a task takes here
LIMIT = 0.5
CASES = {
    "SVC": slimsvm.SVC(C=1e4, gamma=20.0),
    "SVR": slimsvm.SVR(C=100.0, epsilon=1e-3, gamma=20.0),
    "NuSVC": slimsvm.NuSVC(nu=0.3, gamma=20.0),
    "NuSVR": slimsvm.NuSVR(nu=0.3, gamma=20.0),
    "OneClassSVM": slimsvm.OneClassSVM(nu=0.4, gamma=20.0),
    "CoreVectorSVC": slimsvm.CoreVectorSVC(C=1e4, gamma=20.0),
    "CoreVectorSVC-fixed": slimsvm.CoreVectorSVC(C=1e4, gamma=20.0, ball="fixed"),
    "LowRankSVC": slimsvm.LowRankSVC(C=1e4, gamma=20.0),
    "ReducedSVC": slimsvm.ReducedSVC(C=1e4, gamma=20.0),
    "OnlineSVC": slimsvm.OnlineSVC(C=1e4, gamma=20.0),
    "SparseSVC": slimsvm.SparseSVC(20, gamma=20.0),
    "SparseSVC-pursuit": slimsvm.SparseSVC(20, gamma=20.0, basis="pursuit", loss="squared_hinge"),
}


class WorkClock:
    """Time that passes by work."""

    def __init__(self):
        self.now = 0.0

    def perf_counter(self):
        self.now += LOOK
        return self.now

    def __getattr__(self, name):
        return getattr(time, name)


@pytest.fixture
def clock(monkeypatch, request):
    name = request.node.callspec.params["name"]
    X, y = usual(name)
    # modules that a fit imports, and what only the first one does: before the clock goes by work
    clone(CASES[name]).fit(X[:300], y[:300])
    clock, parallel = WorkClock(), threads.parallel

    def counted(work, n_tasks, n_threads):
        def task(k):
            clock.now += TASK
            work(k)

        parallel(task, n_tasks, n_threads)

    ours = [sys.modules[name] for name in sorted(sys.modules) if name.startswith("slimsvm")]
    for module in ours:
        if getattr(module, "parallel", None) is parallel and module is not threads:
            monkeypatch.setattr(module, "parallel", counted)
        if getattr(module, "time", None) is time:
            monkeypatch.setattr(module, "time", clock)
    return clock


def usual(name):
    X, y = checkers(6000, seed=0)
    return X, X[:, 0] + y if "SVR" in name else y


@pytest.mark.parametrize("name", CASES)
def test_work_ends_with_the_time(name, clock):
    X, y = usual(name)
    model = clone(CASES[name])
    begin = clock.now
    model.set_params(max_time=LIMIT)
    with pytest.warns(ConvergenceWarning, match="max_time"):
        model.fit(X, y)
    assert model.status_.reason == "max_time" and model.fit_status_ == 1
    assert clock.now - begin <= 1.1 * LIMIT + 1.0
    model.max_time = None
    values = getattr(model, "decision_function", model.predict)(X[:50])
    assert np.isfinite(values).all()


def test_breaking_off():
    limits = run.Limits(max_time=0.0, begin=-1e9)
    with pytest.raises(run.OutOfTime), limits.breaking_off():
        threads.parallel(lambda k: None, 1, 1)
    with pytest.raises(run.OutOfTime), run.Limits(whole=limits).breaking_off():
        threads.parallel(lambda k: None, 5, 2)
    threads.parallel(lambda k: None, 5, 2)  # outside, nobody looks
    interrupted = run.Limits(interrupted=True, interrupted_at=-1e9)
    with pytest.raises(run.OutOfTime), interrupted.breaking_off():
        threads.parallel(lambda k: None, 1, 1)


@pytest.mark.parametrize("name", ["NuSVC", "ReducedSVC", "OneClassSVM", "NuSVR"])
def test_the_model_of_some_rows(name, monkeypatch):
    """Where there is no time for one step over all."""
    X, y = usual(name)
    model = clone(CASES[name]).set_params(max_time=1e-9)
    solve = type(model)._solved

    def late(self, data, fit):
        if fit.limits.max_time is not None:
            raise run.OutOfTime
        return solve(self, data, fit)

    monkeypatch.setattr(type(model), "_solved", late)
    with pytest.warns(ConvergenceWarning, match="before the first step over all 6,000 rows"):
        model.fit(X, y)
    about = model.certificate_
    assert not about.holds and about.gap == np.inf and np.isnan(about.objective)
    assert model.status_.reason == "max_time"
    model.set_params(max_time=None)
    if name in ("NuSVC", "ReducedSVC"):
        assert model.score(X, y) > 0.85  # a thousand rows know the checkers roughly


def test_the_model_of_some_rows_of_several_classes(monkeypatch):
    """Their targets are signs in columns."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((2000, 2)), np.arange(2000) % 3
    X[:, 0] += 5.0 * y
    solve = SparseSVC._solved

    def late(self, data, fit):
        if fit.limits.max_time is not None:
            raise run.OutOfTime
        assert data.used.size < 1100 and np.all(np.bincount(y[data.used]) > 300)
        return solve(self, data, fit)

    monkeypatch.setattr(SparseSVC, "_solved", late)
    with pytest.warns(ConvergenceWarning, match="before the first step over all 2,000 rows"):
        model = SparseSVC(n_basis=6, max_time=1e-9, random_state=0).fit(X, y)
    assert model.score(X, y) > 0.9
