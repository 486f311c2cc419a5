"""The pool of threads: every task once, errors raised, BLAS held to one thread and given back, and
no waiting for itself.
"""

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pytest
import threadpoolctl
from threadpoolctl import threadpool_info, threadpool_limits

from slimsvm import threads as pool
from slimsvm.kernels import RBF, FromCallable
from slimsvm.threads import n_threads, parallel, single_threaded_blas
from slimsvm.tiles import Strips, for_each_tile, kernel_values, prepare

PATIENCE = 20.0  # seconds after which something that should take milliseconds counts as hanging


def within_patience(work):
    """Run ``work`` in a thread that may hang without taking the tests with it; its error is raised
    here.
    """
    outcome: list[BaseException | None] = []

    def guarded():
        try:
            work()
            outcome.append(None)
        except BaseException as error:
            outcome.append(error)

    thread = threading.Thread(target=guarded, daemon=True)
    thread.start()
    thread.join(PATIENCE)
    assert not thread.is_alive(), "it hangs"
    if outcome[0] is not None:
        raise outcome[0]


@pytest.fixture(scope="module")
def dense():
    rng = np.random.default_rng(0)
    return rng.standard_normal((301, 9)), rng.standard_normal((2500, 9))


def blas_threads():
    return sorted(
        library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"
    )


def test_every_task_is_done_once_whatever_the_number_of_threads():
    for threads in (1, 2, 3, 8):
        for tasks in (0, 1, 2, 7, 100):
            done: list[int] = []
            parallel(done.append, tasks, threads)
            assert sorted(done) == list(range(tasks))


def test_no_more_threads_than_asked_for_are_at_work():
    lock, at_work, most = threading.Lock(), set(), 0

    def work(task):
        nonlocal most
        with lock:
            at_work.add(task)
            most = max(most, len(at_work))
        time.sleep(0.002)
        with lock:
            at_work.remove(task)

    parallel(work, 40, 8)  # the pool is large now; the next call must not use all of it
    most = 0
    parallel(work, 40, 2)
    assert most <= 2


def test_n_jobs_means_what_it_means_in_scikit_learn(monkeypatch):
    from joblib import cpu_count, parallel_config

    assert n_threads(None) == 1
    assert n_threads(1) == 1
    assert n_threads(3) == 3
    assert n_threads(-1) == cpu_count()
    with parallel_config(backend="threading", n_jobs=2):
        assert n_threads(None) == 2


def release_blas():
    """threadpoolctl 3.8 lets only the first thread that set a limit change it; a test leaves no
    trace of itself.
    """
    controller = getattr(threadpoolctl, "OpenBLASController", None)
    if hasattr(controller, "clear_controlling_thread"):
        controller.clear_controlling_thread(force=True)


@pytest.fixture
def two_blas_threads():
    """BLAS has two threads, and nobody holds the right to change that."""
    release_blas()
    limiter = threadpool_limits(2, user_api="blas")
    if set(blas_threads()) != {2}:
        pytest.skip("this BLAS has no second thread")
    release_blas()
    yield
    release_blas()
    limiter.restore_original_limits()
    release_blas()


def test_blas_has_one_thread_inside_and_its_own_number_after(two_blas_threads, dense):
    X, B = dense
    inside = []
    columns = prepare(RBF(0.1), B)
    for_each_tile(
        prepare(RBF(0.1), X, like=columns),
        Strips(columns),
        lambda *tile: inside.append(blas_threads()),
        2,
    )
    assert all(set(numbers) == {1} for numbers in inside) and inside
    assert set(blas_threads()) == {2}


def test_blas_has_its_number_of_threads_again_after_an_error(two_blas_threads, dense):
    X, B = dense
    columns = prepare(RBF(0.1), B)

    def fail(*tile):
        raise ArithmeticError("a consumer failed")

    for threads in (1, 2):
        with pytest.raises(ArithmeticError, match="a consumer failed"):
            for_each_tile(prepare(RBF(0.1), X, like=columns), Strips(columns), fail, threads)
        assert set(blas_threads()) == {2}


def test_the_last_user_of_single_threaded_blas_restores_it(two_blas_threads):
    with single_threaded_blas():
        with single_threaded_blas():
            assert set(blas_threads()) == {1}
        assert set(blas_threads()) == {1}
    assert set(blas_threads()) == {2}


def test_ctrl_c_at_any_line_leaves_no_limit_behind(two_blas_threads):
    """At the line of each number in turn, and at the one after it; a held lock would hang."""
    here, numbers = pool.__file__, []

    def look(frame, event, given):
        if event == "line":
            counted[0] += 1
            if counted[0] in numbers:
                signal.raise_signal(signal.SIGINT)
        return look

    def enter(frame, event, given):
        return look if frame.f_code.co_filename == here else None

    counted, n_heard, k = [0], 0, 0
    while k == 0 or counted[0] >= k:
        k, counted[0] = k + 1, 0
        numbers[:] = [k]
        before = sys.gettrace()
        sys.settrace(enter)
        try:
            with single_threaded_blas():
                pass
        except KeyboardInterrupt:
            n_heard += 1
        finally:
            sys.settrace(before)
        assert set(blas_threads()) == {2} and pool._blas_users == 0, f"line {k}"
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert n_heard == k - 1 > 20  # none is lost


@pytest.mark.parametrize("first_out", [0, 1])
def test_users_in_several_threads_restore_when_the_last_one_leaves(first_out, two_blas_threads):
    """As joblib's threading backend has it: workers stay alive, and the last one out need not be
    the first one in.
    """
    inside, leave, left, finish = (
        threading.Semaphore(0),
        [threading.Event() for _ in range(2)],
        threading.Semaphore(0),
        threading.Event(),
    )
    seen: dict[int, set[int]] = {}

    def user(k):
        with single_threaded_blas():
            inside.release()
            leave[k].wait(PATIENCE)
            seen[k] = set(blas_threads())
        left.release()
        finish.wait(PATIENCE)

    users = [threading.Thread(target=user, args=(k,), daemon=True) for k in range(2)]
    try:
        for thread in users:
            thread.start()
            assert inside.acquire(timeout=PATIENCE)
        for k in (first_out, 1 - first_out):
            leave[k].set()
            assert left.acquire(timeout=PATIENCE)
        assert seen == {0: {1}, 1: {1}}
        assert set(blas_threads()) == {2}
    finally:
        finish.set()
        for thread in users:
            thread.join(PATIENCE)


def test_blas_is_held_to_one_thread_in_any_thread_of_the_user(two_blas_threads):
    """Also in a second thread after the first has used it: the right to set the limit must not stay
    with the first.
    """
    with single_threaded_blas():
        pass
    seen = []

    def user():
        with single_threaded_blas():
            seen.append(set(blas_threads()))
        seen.append(set(blas_threads()))

    thread = threading.Thread(target=user, daemon=True)
    thread.start()
    thread.join(PATIENCE)
    assert seen == [{1}, {2}]


def test_others_may_limit_blas_after_us(two_blas_threads):
    with single_threaded_blas():
        pass
    seen = []

    def other():
        with threadpool_limits(1, user_api="blas"):
            seen.append(set(blas_threads()))
        seen.append(set(blas_threads()))

    thread = threading.Thread(target=other, daemon=True)
    thread.start()
    thread.join(PATIENCE)
    assert seen == [{1}, {2}]


def test_nested_calls_do_not_wait_for_themselves():
    done: list[tuple[int, int]] = []

    def outer(i):
        parallel(lambda j: parallel(lambda k: done.append((i, 2 * j + k)), 2, 2), 3, 3)

    within_patience(lambda: parallel(outer, 6, 3))
    assert sorted(done) == [(i, j) for i in range(6) for j in range(6)]


def test_a_kernel_function_may_use_tiles_itself(dense):
    """A callable kernel that calls back into the tiles, from all threads."""
    X, B = dense[0][:50], dense[1][:700]
    inner = FromCallable(lambda A, C: kernel_values(RBF(0.1), A, C, dtype=np.float64, n_threads=3))
    outcome = []
    within_patience(lambda: outcome.append(kernel_values(inner, X, B, n_threads=3, width=50)))
    np.testing.assert_allclose(outcome[0], RBF(0.1)(X, B), rtol=1e-12)


def test_many_callers_at_once(dense):
    """Threads of the user, as joblib's threading backend has them, share the pool."""
    X, B = dense
    expected = kernel_values(RBF(0.1), X, B)
    results = [None] * 6

    def caller(k):
        results[k] = kernel_values(RBF(0.1), X, B, n_threads=1 + k % 3)

    threads = [threading.Thread(target=caller, args=(k,), daemon=True) for k in range(len(results))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
        assert not thread.is_alive(), "it hangs"
    for values in results:
        np.testing.assert_array_equal(values, expected)


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("failing", [0, 5, 39])
def test_an_error_in_a_task_is_raised(threads, failing):
    def work(task):
        if task == failing:
            raise KeyError(f"task {task}")

    with pytest.raises(KeyError, match=f"task {failing}"):
        within_patience(lambda: parallel(work, 40, threads))
    done: list[int] = []
    parallel(done.append, 10, threads)  # and the pool goes on working
    assert sorted(done) == list(range(10))


def test_after_an_error_no_further_tasks_are_begun():
    begun: list[int] = []

    def work(task):
        begun.append(task)
        if task == 0:
            raise KeyError("task 0")
        time.sleep(0.01)

    with pytest.raises(KeyError):
        parallel(work, 500, 3)
    assert len(begun) < 50


def test_after_an_error_nobody_is_still_at_work():
    """What tasks write to may go away once the error is raised."""
    for trial in range(10):
        all_here, at_work, arrivals = threading.Barrier(3), set(), iter(range(3))

        def work(task, trial=trial, all_here=all_here, at_work=at_work, arrivals=arrivals):
            at_work.add(task)
            try:
                # one of the pool fails, the other takes a little longer; which is which alternates
                fails = (
                    threading.current_thread() is not threading.main_thread()
                    and next(arrivals) == trial % 2
                )
                all_here.wait(PATIENCE)
                if fails:
                    raise KeyError("one of the pool")
                if threading.current_thread() is not threading.main_thread():
                    time.sleep(0.03)
            finally:
                at_work.remove(task)

        with pytest.raises(KeyError):
            parallel(work, 3, 3)
        assert not at_work


def in_a_fresh_process(script):
    """Standard output of a script; a hanging one is ended."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_threads_work_after_a_fork():
    """The child has none of the parent's threads, and must not wait for them; nor may a lock be
    left closed.
    """
    output = in_a_fresh_process(
        """
        import os, signal, sys, warnings
        # Python 3.12 warns of a fork beside threads, which is what is tested here
        warnings.simplefilter("ignore", DeprecationWarning)
        import numpy as np
        from threadpoolctl import threadpool_info, threadpool_limits
        from slimsvm.kernels import RBF
        from slimsvm.tiles import Strips, for_each_tile, kernel_values, prepare

        threadpool_limits(2, user_api="blas")
        X = np.random.default_rng(0).standard_normal((3000, 8))
        K = kernel_values(RBF(0.1), X[:200], X, n_threads=2)

        def child(inside):
            signal.alarm(30)  # a child that hangs dies
            try:
                again = [kernel_values(RBF(0.1), X[:200], X, n_threads=t) for t in (1, 2, 3)]
                same = all(np.array_equal(values, K) for values in again)
                blas = [library for library in threadpool_info() if library["user_api"] == "blas"]
                limits = {library["num_threads"] for library in blas}
                os._exit(0 if same and (inside or limits == {2}) else 1)
            except BaseException as error:
                print(repr(error), file=sys.stderr, flush=True)
                os._exit(2)

        def fork(inside):
            pid = os.fork()
            if pid == 0:
                child(inside)
            print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))

        fork(False)
        # and from inside of a task, while BLAS is limited and the threads are busy
        operand = prepare(RBF(0.1), X)
        forked = []

        def consume(*tile):
            if not forked:
                forked.append(True)
                fork(True)

        for_each_tile(operand.take(slice(0, 200)), Strips(operand), consume, 2)
        """
    )
    assert output.split() == ["0", "0"]
