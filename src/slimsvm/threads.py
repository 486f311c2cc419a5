"""One small pool of threads for the whole process, with BLAS held to one thread while it works.

Threads come from here and nowhere else, so that the number asked for is the number at work, also
under joblib, Dask and after a fork.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import scipy.linalg  # noqa: F401  (loads SciPy's BLAS, so that the limit below sees it)
import threadpoolctl
from joblib import effective_n_jobs
from joblib.parallel import get_active_backend
from threadpoolctl import ThreadpoolController

_lock = threading.Lock()
_pool: ThreadPoolExecutor | None = None
_pool_size = 0
_blas: ThreadpoolController | None = None
_blas_limit: Any = None
_blas_users = 0
# n_jobs in a backend of joblib -> when that was asked, and the answer
_known: dict[tuple[Any, ...], tuple[float, int]] = {}
KNOWN = 1.0  # seconds for which it holds: to read the limits takes a fifth of a fit of 100 rows
# what belongs to one thread: whether it is inside a task, or holds BLAS; its scratch memory
local = threading.local()


def _forget_threads() -> None:
    """After a fork the threads of the parent are gone: start anew."""
    global _pool, _pool_size, _lock, _blas_users, _blas_limit
    _lock, _pool, _pool_size, _blas_users, _blas_limit = threading.Lock(), None, 0, 0, None
    local.__dict__.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_threads)


def n_threads(n_jobs: int | None) -> int:
    """The number of threads that scikit-learn's ``n_jobs`` stands for.

    None is one, or what the joblib context sets; -1 is all.
    """
    if n_jobs in (None, 1):
        return max(1, int(effective_n_jobs(n_jobs)))
    backend, _ = get_active_backend()
    asked = (n_jobs, type(backend), backend.nesting_level, threading.get_ident())
    when, found = _known.get(asked, (-KNOWN, 0))
    now = time.monotonic()
    if now >= when + KNOWN:
        _known.clear()
        found = max(1, int(effective_n_jobs(n_jobs)))
        _known[asked] = (now, found)
    return found


def _threads(n: int) -> ThreadPoolExecutor:
    global _pool, _pool_size
    with _lock:
        if _pool is None or _pool_size < n:
            _pool, _pool_size = ThreadPoolExecutor(n, thread_name_prefix="slimsvm"), n
        return _pool


def _let_any_thread_set_limits() -> None:
    """Let the next thread change the limits of OpenBLAS, whichever thread set them first.

    Recent versions of threadpoolctl otherwise obey only the first thread. Our limits are set by the
    first fit that begins and restored by the last that ends, whatever threads these run in.
    """
    release = getattr(
        getattr(threadpoolctl, "OpenBLASController", None), "clear_controlling_thread", None
    )
    if release is not None:
        release(force=True)


def undisturbed(section: Callable[[], None]) -> None:
    """Do what must be done whole; Ctrl-C that comes meanwhile is heard after it.

    Only the main thread hears it, so the others need not care.
    """
    main = threading.current_thread() is threading.main_thread()
    usual = signal.getsignal(signal.SIGINT) if main else None
    if not callable(usual):
        section()
        return
    heard: list[tuple[Any, ...]] = []
    try:
        signal.signal(signal.SIGINT, lambda *given: heard.append(given))
        section()
    finally:
        signal.signal(signal.SIGINT, usual)
    for given in heard:
        usual(*given)


@contextmanager
def single_threaded_blas() -> Iterator[None]:
    """Hold BLAS to one thread while any of our loops runs; the last to leave restores its limit.

    Inside of another of this thread there is nothing to do: to hold back Ctrl-C four times took a
    sixth of a fit of 100 rows.
    """
    if getattr(local, "holds_blas", False):
        yield
        return
    inside: list[bool] = []

    def enter() -> None:
        global _blas, _blas_limit, _blas_users
        with _lock:
            if _blas_users == 0:
                _blas = _blas or ThreadpoolController()
                _let_any_thread_set_limits()
                _blas_limit = _blas.limit(limits=1, user_api="blas")
                _let_any_thread_set_limits()
            _blas_users += 1
            local.holds_blas = True
            inside.append(True)

    def leave() -> None:
        global _blas_limit, _blas_users
        with _lock:
            inside.clear()
            local.holds_blas = False
            _blas_users -= 1
            if _blas_users == 0 and _blas_limit is not None:
                _let_any_thread_set_limits()
                _blas_limit.restore_original_limits()
                _blas_limit = None
                _let_any_thread_set_limits()

    try:
        try:
            undisturbed(enter)
            yield
        finally:
            if inside:
                undisturbed(leave)
    finally:  # Ctrl-C at the two lines before
        if inside:
            undisturbed(leave)


@contextmanager
def looking(look: Callable[[], None]) -> Iterator[None]:
    """Call ``look`` before every task of what this thread does inside; it may raise an error."""
    before = getattr(local, "look", None)
    local.look = look
    try:
        yield
    finally:
        local.look = before


def parallel(work: Callable[[int], None], n_tasks: int, n_threads: int) -> None:
    """Call work(0) ... work(n_tasks - 1), on up to n_threads threads.

    The first error is raised here. A call from inside a task runs its own tasks in place: the pool
    never waits for itself.
    """
    look = getattr(local, "look", None)
    if look is not None:
        unwatched = work

        def work(task: int) -> None:
            look()
            unwatched(task)

    n_threads = min(n_threads, n_tasks)
    if n_threads <= 1 or getattr(local, "busy", False):
        for task in range(n_tasks):
            work(task)
        return
    tasks = iter(range(n_tasks))
    take = threading.Lock()
    stop = threading.Event()

    def drain() -> None:
        local.busy = True
        try:
            while not stop.is_set():
                with take:
                    task = next(tasks, None)
                if task is None:
                    return
                work(task)
        except BaseException:
            stop.set()
            raise
        finally:
            local.busy = False

    pool = _threads(n_threads)
    futures = [pool.submit(drain) for _ in range(n_threads - 1)]
    try:
        drain()
    except BaseException:
        # an interrupt in this thread must not leave the others at work on arrays that go away
        stop.set()
        for future in futures:
            future.exception()
        raise
    errors = [future.exception() for future in futures]  # waits for all, before any error is raised
    for error in errors:
        if error is not None:
            raise error
