"""The loop around any solver: limits, Ctrl-C, progress, history, and what a result says of itself.

A solver is an object with four methods, and its state an object of its own:

    init(problem, start) -> state          step(problem, state, tol, max_iter), in place, <= 1 s
    certificate(problem, state, tol)       model(problem, state)

The state has ``n_iter`` (what ``max_iter`` limits), ``done`` (True when the solver's own stopping
rule holds) and ``record()``: a dict of numbers for the history, or, of a solver that runs others, a
list of their records, of which the watchers know already. A solver that is done although its
certificate does not hold has stalled, unless it says ``done_is_converged``. One whose state is all
that it needs to go on, with a problem that is as new, says ``keeps_state``; what else must be done
then, it does in ``before_keeping(problem, state)``, which raises TypeError where nothing can be
kept, and in ``resume(problem, state)`` (:mod:`slimsvm.keeping`). One that says ``in_place`` goes on
with the very state that it was given as a start.
"""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from slimsvm.ending import DISTANCE as DISTANCE
from slimsvm.ending import FULL as FULL
from slimsvm.ending import SAMPLED as SAMPLED
from slimsvm.ending import SUBSPACE as SUBSPACE
from slimsvm.ending import Certificate as Certificate
from slimsvm.ending import Status as Status
from slimsvm.threads import local, looking

Array = NDArray[Any]
# for how long work goes on that leaves nothing usable behind where it ends early: a share of the
# limit, and seconds. The certificate comes later, and must end within a tenth and a second
GRACE, LAST_GRACE = (0.02, 0.2), (0.07, 0.5)
Watcher = Callable[["Record"], bool | None]  # called after every step; True asks to stop


@dataclass(frozen=True)
class Record:
    """One line of the history."""

    step: int
    seconds: float
    values: Mapping[str, float]


@dataclass(eq=False, repr=False)
class Result:
    """What :func:`run` returns."""

    model: Any
    certificate: Certificate
    status: Status
    history: dict[str, Array]
    n_iter: int

    def against(self, tol: float) -> Result:
        """The result as it is measured against another tolerance, that of the user."""
        certificate = replace(self.certificate, tol=tol)
        reason = self.status.reason
        if certificate.holds:
            reason = "converged"
        elif reason == "converged":
            reason = "stalled"
        return replace(self, certificate=certificate, status=Status(reason))


class Solver(Protocol):
    """What :func:`run` needs of a solver."""

    def init(self, problem: Any, start: Any = None) -> Any:
        """The state to begin with."""

    def step(self, problem: Any, state: Any, tol: float, max_iter: int) -> None:
        """Improve the state in place."""

    def certificate(self, problem: Any, state: Any, tol: float) -> Certificate:
        """How far from the optimum the state is."""

    def model(self, problem: Any, state: Any) -> Any:
        """The result."""


class OutOfTime(Exception):
    """A limit was reached in the middle of work that leaves nothing usable behind."""


@dataclass(eq=False, repr=False)
class Limits:
    """The time limit and the interrupt of one fit, which may consist of several runs.

    Examples
    --------
    >>> Limits(max_time=None).reason() is None
    True
    """

    max_time: float | None = None
    interrupted: bool = False
    stopped: bool = False  # by a watcher
    begin: float = field(default_factory=lambda: time.perf_counter())
    whole: Limits | None = None  # of the fit that this is a part of
    interrupted_at: float = np.inf

    @property
    def seconds(self) -> float:
        """Since the beginning of the fit."""
        return time.perf_counter() - self.begin

    def reason(self) -> str | None:
        """Why the fit must end now, if it must."""
        if self.interrupted or (self.whole is not None and self.whole.interrupted):
            return "interrupted"
        if self.stopped or (self.whole is not None and self.whole.stopped):
            return "stopped"
        if self.max_time is not None and self.seconds >= self.max_time:
            return "max_time"
        return None

    @contextmanager
    def breaking_off(self, grace: tuple[float, float] = GRACE) -> Iterator[None]:
        """Raise OutOfTime from work inside that goes on after the end of the whole fit.

        ``grace``: for how long it may, as a share of the limit and in seconds.
        """
        whole = self.whole or self

        def look() -> None:
            now = time.perf_counter()
            most = np.inf if whole.max_time is None else (1.0 + grace[0]) * whole.max_time
            if now - whole.begin > most + grace[1] or now - whole.interrupted_at > grace[1]:
                raise OutOfTime

        with looking(look):
            yield

    def part(self, n_left: int, side_by_side: int = 1) -> Limits:
        """The limits of the next of n_left parts, some of them side by side.

        An equal share of the time that is left, the same interrupt.
        """
        share = (
            None
            if self.max_time is None
            else max(0.0, self.max_time - self.seconds) / max(1, -(-n_left // side_by_side))
        )
        return Limits(share, whole=self)

    @contextmanager
    def watching_interrupts(self) -> Iterator[None]:
        """Take Ctrl-C as a wish to stop soon with a usable model; a second one stops at once.

        A fit inside of another one hears what that one hears.
        """
        main = threading.current_thread() is threading.main_thread()
        around = signal.getsignal(signal.SIGINT) if main else None
        if isinstance(around, partial) and around.func is _note and self.whole is None:
            self.whole = around.args[0]
        with _handling_interrupts(partial(_note, self)):
            yield


def _note(limits: Limits, number: int, frame: Any) -> None:
    if limits.interrupted:
        raise KeyboardInterrupt
    limits.interrupted, limits.interrupted_at = True, time.perf_counter()


@contextmanager
def interrupts_at_once() -> Iterator[None]:
    """Let Ctrl-C raise KeyboardInterrupt in fits inside, too, which would keep what they have."""

    def raise_at_once(number: int, frame: Any) -> None:  # not the default: nobody replaces it
        signal.default_int_handler(number, frame)

    with _handling_interrupts(raise_at_once):
        yield


@contextmanager
def _handling_interrupts(handler: Callable[[int, Any], None]) -> Iterator[None]:
    """Handle Ctrl-C by this function.

    Only the main thread gets signals; elsewhere, and where something else than Python's default
    handles them, nothing changes.
    """
    main = threading.current_thread() is threading.main_thread()
    usual = signal.getsignal(signal.SIGINT) if main else None
    if usual is not signal.default_int_handler:
        yield
        return
    try:
        signal.signal(signal.SIGINT, handler)
        yield
    finally:
        signal.signal(signal.SIGINT, usual)


def tell(watchers: tuple[Watcher, ...], record: Record, limits: Limits) -> None:
    """Tell all watchers; if one of them wants to stop, the fit is to end soon."""
    wishes = [watcher(record) for watcher in watchers]  # all are told, also after one wants to stop
    if any(wishes):
        (limits.whole or limits).stopped = True


def run(
    solver: Solver,
    problem: Any,
    *,
    tol: float,
    max_iter: int = -1,
    limits: Limits | None = None,
    start: Any = None,
    watchers: tuple[Watcher, ...] = (),
) -> Result:
    """Step the solver until it is done or must stop, and say how it ended.

    At least one step is made, whatever the limits: the model is usable, if rough. Where there is no
    time even for that, OutOfTime is raised: from init, and from the first step of a solver that
    says ``breaks_off``, whose state is always that of the last step that was done.

    Parameters
    ----------
    tol : float
        Passed to the solver's stopping rule.
    max_iter : int
        Limit on the solver's iterations; -1: none.
    limits : Limits, optional
        Time limit and interrupt flag, possibly shared with other runs.
    start : optional
        A starting point, as the solver understands it.
    watchers : tuple of callables
        Called with a :class:`Record` after every step; one that returns True ends the run.
    """
    limits = limits or Limits()
    most = sys.maxsize if max_iter < 0 else max_iter
    keeper = getattr(local, "keeper", None)

    def go(level: Any = None) -> Result:
        return _run(solver, problem, tol, most, limits, start, watchers, keeper, level)

    begin = partial(solver.init, problem, start)
    return go() if keeper is None else keeper.around(solver, problem, begin, go)


def _run(
    solver: Solver,
    problem: Any,
    tol: float,
    most: int,
    limits: Limits,
    start: Any,
    watchers: tuple[Watcher, ...],
    keeper: Any,
    level: Any,
) -> Result:
    """The loop; of a ``level`` of a :class:`slimsvm.keeping.Keeper`, if there is one."""
    records: list[Record] = []
    with limits.breaking_off():
        if level is None:
            state = solver.init(problem, start)
        else:
            state, records = level.begin(solver, problem, partial(solver.init, problem, start))
    reason: str | None = "converged" if records and state.done else None
    while reason is None:
        if getattr(solver, "breaks_off", False):
            try:
                with limits.breaking_off():
                    solver.step(problem, state, tol, most)
            except OutOfTime:
                if not records:
                    raise
                break
        else:
            solver.step(problem, state, tol, most)
        said = state.record()
        if isinstance(said, list):  # of solvers inside, which have told the watchers themselves
            records += said
        else:
            records.append(Record(len(records), limits.seconds, said))
            tell(watchers, records[-1], limits)
        if level is not None:
            keeper.stepped(level, solver, problem, state, records)
        reason = (
            "converged" if state.done else "max_iter" if state.n_iter >= most else limits.reason()
        )
    reason = reason or limits.reason() or "max_time"
    try:
        with limits.breaking_off(LAST_GRACE):
            certificate = solver.certificate(problem, state, tol)
    except OutOfTime:  # how far from the optimum is not known
        certificate = Certificate(FULL, np.nan, np.inf, np.inf, tol, "float32")
    if certificate.holds:
        reason = "converged"
    elif reason == "converged" and not getattr(solver, "done_is_converged", False):
        reason = "stalled"
    history = {"seconds": np.array([record.seconds for record in records])}
    for name in records[0].values if records else ():
        history[name] = np.array([record.values[name] for record in records])
    return Result(
        solver.model(problem, state),
        certificate,
        Status(reason),
        history,
        max(1, state.n_iter),
    )
