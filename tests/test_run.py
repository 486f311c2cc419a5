"""The loop around a solver: how it ends, what it says of that, and what it keeps."""

import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import slimsvm.solvers.decomposition as decomposition
from slimsvm.ending import FULL, Certificate
from slimsvm.kernels import RBF
from slimsvm.progress import Progress
from slimsvm.run import Limits, Record, run
from slimsvm.solvers.decomposition import Decomposition
from tests.reference.machines import make_problem, random_rows
from tests.reference.naive import dual_violation


class Countdown:
    """A solver whose every step lowers a number by one, with nothing behind it."""

    def __init__(self, pause=0.0):
        self.pause = pause

    def init(self, problem, start=None):
        return CountdownState(problem if start is None else start)

    def step(self, problem, state, tol, max_iter):
        time.sleep(self.pause)
        if state.n_iter < max_iter:
            state.left -= 1
            state.n_iter += 1
        state.done = state.left <= tol

    def certificate(self, problem, state, tol):
        return Certificate(
            FULL, float(state.left), float(state.left), float(state.left), tol, "float64"
        )

    def model(self, problem, state):
        return state.left


class CountdownState:
    def __init__(self, left):
        self.left, self.n_iter, self.done = left, 0, False

    def record(self):
        return {"left": float(self.left)}


# -- how it ends -----------------------------------------------------------------------------------


def test_convergence():
    result = run(Countdown(), 10, tol=3)
    assert result.status.converged and result.status.reason == "converged"
    assert result.certificate.holds and result.model == 3 and result.n_iter == 7
    assert str(result.status) == "converged"  # the sentence belongs to the estimator


def test_a_starting_point_is_passed_on():
    assert run(Countdown(), 10, tol=3, start=5).n_iter == 2


@pytest.mark.parametrize("max_iter", [0, 1, 4])
def test_max_iter(max_iter):
    result = run(Countdown(), 10, tol=3, max_iter=max_iter)
    assert (
        result.status.reason == "max_iter"
        and not result.status.converged
        and not result.certificate.holds
    )
    assert result.model == 10 - max_iter
    assert result.n_iter == max(1, max_iter)  # scikit-learn's n_iter_ is at least one


def test_minus_one_means_no_limit():
    assert run(Countdown(), 1000, tol=0, max_iter=-1).n_iter == 1000


def test_convergence_in_the_last_allowed_step_is_convergence():
    result = run(Countdown(), 10, tol=3, max_iter=7)
    assert result.status.converged


def test_max_time():
    limits = Limits(max_time=0.05)
    result = run(Countdown(pause=0.01), 10_000, tol=3, limits=limits)
    assert result.status.reason == "max_time" and not result.certificate.holds
    assert 1 <= result.n_iter <= 6 and limits.seconds >= 0.05


def test_at_least_one_step_is_made_whatever_the_limits():
    for limits in (Limits(max_time=0.0), Limits(interrupted=True), Limits(stopped=True)):
        assert run(Countdown(), 10, tol=3, limits=limits).n_iter == 1


def test_a_watcher_stops():
    seen = []

    def watch(record):
        seen.append(record)
        return record.values["left"] <= 6

    result = run(Countdown(), 10, tol=3, watchers=(watch,))
    assert result.status.reason == "stopped" and result.model == 6
    assert [record.step for record in seen] == [0, 1, 2, 3]
    assert [record.values["left"] for record in seen] == [9, 8, 7, 6]


def test_every_watcher_sees_every_step_and_none_stops():
    counts = [0, 0]

    def counter(k):
        def watch(record):
            counts[k] += 1
            return True if k == 0 and counts[0] == 2 else None

        return watch

    result = run(Countdown(), 10, tol=3, watchers=(counter(0), counter(1)))
    assert counts == [2, 2] and result.status.reason == "stopped"
    assert run(
        Countdown(), 10, tol=3, watchers=(lambda record: None, lambda record: False)
    ).status.converged


def test_an_error_of_a_watcher_is_raised():
    def watch(record):
        raise LookupError("a watcher failed")

    with pytest.raises(LookupError, match="a watcher failed"):
        run(Countdown(), 10, tol=3, watchers=(watch,))


def test_limits_are_shared_by_the_parts_of_a_fit():
    """Many pairs: what stops one stops the others, and each has its share of the time."""
    limits = Limits(max_time=100.0)
    part = limits.part(4)
    assert part.max_time == pytest.approx(25.0, abs=1.0)
    assert part.reason() is None
    run(Countdown(), 10, tol=3, limits=part, watchers=(lambda record: True,))
    assert limits.reason() == "stopped" and limits.part(3).reason() == "stopped"
    limits = Limits()
    part = limits.part(2)
    assert part.max_time is None
    limits.interrupted = True
    assert part.reason() == "interrupted"
    assert Limits(max_time=0.0).part(2).reason() == "max_time"
    assert Limits(max_time=100.0).part(10, 4).max_time == pytest.approx(
        100.0 / 3, abs=1.0
    )  # three rounds of at most four


class Stuck(Countdown):
    def step(self, problem, state, tol, max_iter):
        state.n_iter, state.done = state.n_iter + 1, True


class Passed(Stuck):
    done_is_converged = True


def test_a_solver_that_is_done_without_its_tolerance_has_stalled():
    assert run(Stuck(), 10, tol=3).status.reason == "stalled"
    assert run(Passed(), 10, tol=3).status.reason == "converged"


class Several(CountdownState):
    def record(self):
        return [Record(k, float(k), {"left": float(self.left)}) for k in range(2)]


class Outer(Countdown):
    def init(self, problem, start=None):
        return Several(problem)


def test_a_solver_that_runs_others_hands_on_their_records():
    told = []
    result = run(Outer(), 5, tol=3, watchers=(told.append,))
    assert result.history["left"].tolist() == [4.0, 4.0, 3.0, 3.0] and told == []


# -- what is kept ----------------------------------------------------------------------------------


def test_history_has_one_entry_a_step():
    result = run(Countdown(pause=0.001), 10, tol=3)
    np.testing.assert_array_equal(result.history["left"], [9, 8, 7, 6, 5, 4, 3])
    assert np.all(np.diff(result.history["seconds"]) > 0)


@pytest.fixture
def small_sets(monkeypatch):
    monkeypatch.setattr(decomposition, "WHOLE", 8)
    monkeypatch.setattr(decomposition, "EXACT", 0)


def test_the_history_of_a_decomposition(small_sets):
    X, y, t = random_rows(300)
    problem = make_problem("classification", X, y, t)
    result = run(Decomposition(working_set=32), problem, tol=1e-3)
    history = result.history
    assert {
        "seconds",
        "objective",
        "gap",
        "violation",
        "kernel_values",
        "active",
        "n_support",
    } <= set(history)
    assert len({values.size for values in history.values()}) == 1
    assert all(np.all(np.isfinite(values)) for values in history.values())
    assert np.all(
        np.diff(history["objective"]) <= 1e-12 * abs(history["objective"][-1])
    )  # every round descends
    assert (
        np.all(np.diff(history["kernel_values"]) >= 0)
        and history["kernel_values"][-1] == problem.gram.n_values
    )
    assert np.all(np.diff(history["seconds"]) >= 0)
    assert history["objective"][-1] == pytest.approx(result.certificate.objective)
    assert history["violation"][-1] <= 1e-3 and history["gap"][-1] == pytest.approx(
        result.certificate.gap
    )
    assert history["n_support"][-1] == np.count_nonzero(result.model.a)
    assert history["active"][0] == 300


def test_the_certificate_of_a_decomposition():
    X, y, t = random_rows(100)
    certificate = run(
        Decomposition(), make_problem("classification", X, y, t), tol=1e-3
    ).certificate
    assert (
        certificate.scope == FULL and certificate.tol == 1e-3 and certificate.precision == "float64"
    )
    values = certificate.to_dict()
    assert [
        values.pop(name)
        for name in ("projection_error", "bound", "max_cuts", "risk_bound", "confidence")
    ] == [None] * 5
    assert set(values) == {
        "scope",
        "objective",
        "violation",
        "gap",
        "tol",
        "precision",
        "rounding",
        "estimated",
    }


@pytest.mark.parametrize("max_iter", [1, 10, 100])
def test_max_iter_of_a_decomposition_counts_its_inner_steps(max_iter, small_sets):
    X, y, t = random_rows(300)
    problem = make_problem("classification", X, y, t)
    result = run(Decomposition(working_set=32), problem, tol=1e-5, max_iter=max_iter)
    assert result.status.reason == "max_iter" and result.n_iter == max_iter
    assert result.certificate.violation == pytest.approx(
        dual_violation(RBF(0.5)(X), problem, result.model.a), abs=1e-9
    )


@pytest.mark.parametrize("whole", [True, False])
def test_a_status_agrees_with_its_certificate(whole, monkeypatch):
    """Whatever the number of steps allowed: "before the tolerance was reached" is not said where it
    was reached, nor the other way round.
    """
    if not whole:
        monkeypatch.setattr(decomposition, "WHOLE", 8)
        monkeypatch.setattr(decomposition, "EXACT", 0)
    X, y, t = random_rows(60)
    options = {} if whole else {"working_set": 16}
    needed = run(Decomposition(**options), make_problem("classification", X, y, t), tol=1e-2).n_iter
    for max_iter in range(max(1, needed - 3), needed + 2):
        result = run(
            Decomposition(**options),
            make_problem("classification", X, y, t),
            tol=1e-2,
            max_iter=max_iter,
        )
        assert result.status.converged == result.certificate.holds, (
            f"max_iter={max_iter}: {result.status}"
        )


@pytest.mark.parametrize("machine", ["classification", "nu_regression"])
def test_a_time_limit_is_heard_within_seconds(machine):
    """A step is about 0.1 to 1 s of work, so that max_time and Ctrl-C are heard; the bound here
    leaves room for a busy machine.
    """
    X, y, t = random_rows(600, seed=5)
    problem = make_problem(machine, X, y, t, C=1e6)
    limits = Limits(max_time=0.2)
    run(Decomposition(), problem, tol=1e-3, limits=limits)
    assert limits.seconds < 6.0


# -- Ctrl-C ----------------------------------------------------------------------------------------

LONG_RUN = """
    import sys
    import numpy as np
    import slimsvm.solvers.decomposition as decomposition
    from slimsvm.run import Limits, run
    from tests.reference.machines import make_problem, random_rows
    from tests.reference.naive import dual_objective, dual_violation
    from slimsvm.kernels import RBF

    decomposition.WHOLE, decomposition.EXACT = 8, 0
    X, y, t = random_rows(200)
    problem = make_problem("regression", X, y, t, C=1e9)  # takes far longer than the test
    limits = Limits(max_time=60.0)
    ready = []

    def say_ready(record):
        if not ready:
            ready.append(print("ready", flush=True))

    with limits.watching_interrupts():
        solver = decomposition.Decomposition(working_set=4)
        result = run(solver, problem, tol=1e-12, limits=limits, watchers=(say_ready,))
    a = result.model.a
    assert np.all(a >= 0) and np.all(a <= problem.upper) and abs(problem.sign @ a) <= 1e-6 * a.sum()
    assert dual_objective(RBF(0.5)(X), problem, a) < 0.0  # better than the start
    true = dual_violation(RBF(0.5)(X), problem, a)
    assert abs(true - result.certificate.violation) <= 1e-9 * a.sum()
    print(result.status.reason, result.certificate.holds, str(result.status), flush=True)
"""


def begin(script):
    """A process that runs the script, once it has said that it is ready; it sees the tests as this
    one does.
    """
    root = Path(__file__).resolve().parent.parent
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(script)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=root,
    )
    assert process.stdout.readline().strip() == "ready", process.stderr.read()
    return process


def test_ctrl_c_leaves_a_usable_model():
    process = begin(LONG_RUN)
    time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    reason, holds, *_ = output.split()
    assert (reason, holds) == ("interrupted", "False")


def test_a_second_ctrl_c_stops_at_once():
    script = """
        import time
        from slimsvm.run import Limits

        limits = Limits()
        try:
            with limits.watching_interrupts():
                print("ready", flush=True)
                while True:
                    time.sleep(0.01)
                    if limits.interrupted:
                        print("noted", flush=True)
                        time.sleep(30)
        except KeyboardInterrupt:
            print("stopped", flush=True)
    """
    process = begin(script)
    process.send_signal(signal.SIGINT)
    assert process.stdout.readline().strip() == "noted"
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=20)
    assert output.strip() == "stopped" and process.returncode == 0


def test_the_usual_handler_is_back_after_a_run_and_after_an_error():
    usual = signal.getsignal(signal.SIGINT)
    assert usual is signal.default_int_handler
    limits = Limits()
    with limits.watching_interrupts():
        assert signal.getsignal(signal.SIGINT) is not usual
    assert signal.getsignal(signal.SIGINT) is usual
    with pytest.raises(LookupError), Limits().watching_interrupts():
        raise LookupError
    assert signal.getsignal(signal.SIGINT) is usual


def test_a_handler_of_the_user_stays():
    def own(number, frame):
        pass

    usual = signal.signal(signal.SIGINT, own)
    try:
        with Limits().watching_interrupts():
            assert signal.getsignal(signal.SIGINT) is own
    finally:
        signal.signal(signal.SIGINT, usual)


def test_other_threads_do_without_signals():
    outcome = []

    def work():
        limits = Limits()
        with limits.watching_interrupts():
            outcome.append(run(Countdown(), 10, tol=3, limits=limits).status.reason)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join(20)
    assert outcome == ["converged"]


# -- progress --------------------------------------------------------------------------------------


def test_progress_shows_at_most_one_line_in_its_interval(capsys):
    with Progress("SVC", every=1.0) as show:
        for seconds in (0.0, 0.2, 0.9, 1.1, 1.5, 2.2):
            assert (
                show(
                    Record(0, seconds, {"violation": 0.5, "gap": 1.0, "n_support": 3, "active": 9})
                )
                is None
            )
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[1] for line in lines] == ["0.0", "1.1", "2.2"]
    assert all(line.startswith("SVC") and "support vectors 3" in line for line in lines)


def test_a_fit_inside_of_another_one_hears_its_interrupt():
    outer, inner = Limits(), Limits()
    with outer.watching_interrupts(), inner.watching_interrupts():
        signal.raise_signal(signal.SIGINT)
        assert inner.reason() == outer.reason() == "interrupted"
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
