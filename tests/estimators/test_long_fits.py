"""Limits, interrupts, warm starts, callbacks: fits that can be watched and stopped."""

import os
import signal
import subprocess
import sys
import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from slimsvm import SVC, SVR, CoreVectorSVC, LowRankSVC, NuSVC, OneClassSVM, OnlineSVC, ReducedSVC
from slimsvm.run import Limits


@pytest.fixture(scope="module")
def rows():
    """A problem that takes a few rounds."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((5000, 6))
    return X, (X[:, 0] * X[:, 1] + 0.7 * rng.standard_normal(5000) > 0).astype(int)


def test_history_and_certificate(rows):
    model = SVC(C=5.0).fit(*rows)
    history = model.history_
    assert {"seconds", "objective", "gap", "violation", "kernel_values", "active"} <= set(history)
    assert np.all(np.diff(history["objective"]) <= 1e-9 * abs(history["objective"][-1]))
    assert np.all(np.diff(history["seconds"]) >= 0) and np.all(
        np.diff(history["kernel_values"]) >= 0
    )
    assert history["objective"][-1] == pytest.approx(model.certificate_.objective)
    assert (
        "Converged" in str(model.status_)
        and model.fit_status_ == 0
        and model.certificate_.scope == "full"
    )


def test_max_iter_and_max_time(rows):
    for limit in ({"max_iter": 50}, {"max_time": 1e-3}):
        with pytest.warns(ConvergenceWarning, match=next(iter(limit))):
            model = SVC(C=5.0, **limit).fit(*rows)
        assert model.fit_status_ == 1 and not model.certificate_.holds
        assert set(model.predict(rows[0])) <= {0, 1}
    assert SVC(C=5.0, max_time=1e-3).fit(*[part[:2500] for part in rows]).n_iter_[0] >= 1


def test_max_time_is_shared_by_the_pairs(rows):
    X, _ = rows
    y = np.digitize(X[:, 0], [-0.5, 0.5])
    with pytest.warns(ConvergenceWarning, match="max_time"):
        model = SVC(C=1e4, max_time=0.005).fit(X, y)
    assert model.score(X, y) > 0.6


@pytest.mark.parametrize(
    "machine",
    [NuSVC(nu=0.1), ReducedSVC(), LowRankSVC(), CoreVectorSVC(), OnlineSVC()],
    ids=lambda m: type(m).__name__,
)
def test_quick_pairs_leave_their_time_to_the_later_ones(rows, machine, monkeypatch):
    """Ten pairs, one after the other and all quick: the first may take a tenth of an hour, the last
    nearly all of it.
    """
    shares, part = [], Limits.part

    def noted(self, *args):
        shares.append(part(self, *args).max_time)
        return part(self, *args)

    monkeypatch.setattr(Limits, "part", noted)
    X = rows[0][:300]
    machine.set_params(max_time=3600.0, n_jobs=1).fit(X, np.arange(300) % 5)
    assert len(shares) >= 10
    assert 300 < shares[0] <= 360 and max(shares[-2:]) > 3000  # of two steps, the last has half


def test_warm_start_resumes(rows):
    X, y = rows
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = SVC(C=5.0, warm_start=True, max_iter=400).fit(X, y)
    first = model.certificate_.objective
    model.set_params(max_iter=-1).fit(X, y)
    cold = SVC(C=5.0).fit(X, y)
    assert model.certificate_.objective < first
    assert model.n_iter_[0] < cold.n_iter_[0]
    assert (
        abs(model.certificate_.objective - cold.certificate_.objective)
        <= model.certificate_.gap + cold.certificate_.gap
    )
    again = model.n_iter_[0]
    model.fit(X, y)
    assert model.n_iter_[0] < max(10, again / 10)
    model.set_params(C=3.0).fit(X, y)  # another C: the point is made feasible
    assert model.certificate_.holds and np.abs(model.dual_coef_).max() <= 3.0
    model.fit(X[:3000], y[:3000])  # other rows: from the beginning
    assert model.certificate_.holds and model.shape_fit_ == (3000, 6)


@pytest.mark.parametrize("machine", [NuSVC, SVR, OneClassSVM])
def test_warm_start_of_the_other_machines(rows, machine):
    X, y = rows[0][:2500], rows[1][:2500]
    model = machine(warm_start=True).fit(X, y)
    values = model.predict(X)
    model.fit(X, y)
    assert (
        np.mean(model.predict(X) == values) > 0.99 or np.abs(model.predict(X) - values).max() < 0.01
    )


def test_warm_start_of_many_classes():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((3000, 4))
    y = np.digitize(X[:, 0] + 0.3 * rng.standard_normal(3000), [-1, 0, 1])
    model = SVC(warm_start=True).fit(X, y)
    steps, values = model.n_iter_.sum(), model.decision_function(X)
    model.fit(X, y)
    assert model.n_iter_.sum() < steps / 5
    np.testing.assert_allclose(model.decision_function(X), values, atol=5e-3)


def test_progress_line(rows, capsys):
    SVC(verbose=True).fit(*rows)
    printed = capsys.readouterr().out
    assert "SVC" in printed and "support vectors" in printed and "gap" in printed


def test_callbacks_watch_and_stop(rows):
    class Stop:
        """scikit-learn's callback protocol."""

        seen = 0
        last = None

        def setup(self, estimator, context):
            pass

        def on_fit_task_begin(self, estimator, context):
            pass

        def on_fit_task_end(self, estimator, context, *, metadata):
            if context.task_name == "round":
                self.seen, self.last = self.seen + 1, metadata
            return self.seen >= 2

        def teardown(self, estimator, context):
            pass

    watch = Stop()
    with pytest.warns(ConvergenceWarning, match="callback"):
        model = SVC(C=5.0).set_callbacks(watch).fit(*rows)
    assert watch.seen == 2 and watch.last["violation"] > 0 and model.status_.reason == "stopped"
    assert set(model.predict(rows[0])) == {0, 1}


def test_sklearn_progress_bar(rows, capsys):
    pytest.importorskip("rich")
    from sklearn.callback import ProgressBar

    assert SVC().set_callbacks(ProgressBar()).fit(*rows).certificate_.holds


@pytest.mark.skipif(os.name == "nt", reason="signals")
def test_control_c_keeps_the_best_model():
    code = """
import numpy as np, os, signal, threading, warnings
from slimsvm import SVC
rng = np.random.default_rng(0)
X = rng.standard_normal((6000, 5)); y = rng.integers(0, 2, 6000)
SVC().fit(X[:2500], y[:2500])
threading.Timer(1.0, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    model = SVC(C=1e6, gamma=0.01, tol=1e-9).fit(X, y)
restored = signal.getsignal(signal.SIGINT) is signal.default_int_handler
print(model.status_.reason, model.predict(X).shape, restored)
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.stdout.split() == ["interrupted", "(6000,)", "True"], done.stderr


@pytest.mark.parametrize(
    "case",
    [
        "opposite twins",
        "constant features",
        "huge C",
        "duplicates",
        "unscaled",
        "random labels",
        "unscaled polynomial",
    ],
)
def test_nothing_hangs(case):
    rng = np.random.default_rng(0)
    options = {"max_time": 60.0}
    X = rng.standard_normal((300, 3))
    y = (X[:, 0] > 0).astype(int)
    if case == "opposite twins":
        X, y = np.array([[1.0, 2.0], [1.0, 2.0]]), np.array([0, 1])
    elif case == "constant features":
        X = np.ones((300, 3))
    elif case == "huge C":
        options["C"] = 1e10
        y = (X[:, 0] + 0.5 * rng.standard_normal(300) > 0).astype(int)
    elif case == "duplicates":
        X, y = np.repeat(X[:5], 1000, axis=0), np.tile(np.arange(5000) % 2, 1)
    elif case == "unscaled":
        X = X * [1e6, 1.0, 1e-6]
    elif case == "random labels":
        X, y = rng.standard_normal((3000, 2)), rng.integers(0, 2, 3000)
        options["C"] = 100.0
    elif case == "unscaled polynomial":
        X = X + 100.0
        options["kernel"] = "poly"
    model = SVC(**options).fit(X, y)
    assert model.status_.reason == "converged", str(model.status_)
    assert np.all(np.isfinite(model.decision_function(X)))


def test_signal_module_is_untouched_in_threads(rows):
    import threading

    before = signal.getsignal(signal.SIGINT)
    done = []
    thread = threading.Thread(target=lambda: done.append(SVC().fit(rows[0][:500], rows[1][:500])))
    thread.start()
    thread.join()
    assert done and signal.getsignal(signal.SIGINT) is before
