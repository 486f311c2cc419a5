"""The loop around any solver: limits, Ctrl-C, progress, history, and what a result says of itself.

A solver is an object with four methods, and its state an object of its own:

    init(problem, start) -> state          step(problem, state, tol, max_iter) -> None, in place, 0.01 to 1 s of work
    certificate(problem, state, tol)       model(problem, state)

The state has ``n_iter`` (what ``max_iter`` limits), ``done`` (True when the solver's own stopping rule holds) and ``record()`` (a dict of
numbers for the history).
"""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Watcher = Callable[["Record"], bool | None]  # called after every step; True asks to stop

FULL, SUBSPACE, DISTANCE = "full", "subspace", "distance"  # what an optimality statement is about


@dataclass(frozen=True)
class Certificate:
    """How far from the optimum a model is, and of which problem.

    Attributes
    ----------
    scope : str
        "full": of the exact machine; "subspace": of the best machine within the span of the basis; "distance": of the machine that this
        one was compressed from without data: ``objective`` and ``gap`` are then the squared distance to it in feature space, ``violation``
        is the distance as a share of its norm, and ``tol`` is 0.
    objective : float
        Value of the problem that was minimised.
    violation : float
        Largest violation of the Kuhn-Tucker conditions.
    gap : float
        Duality gap: the objective is at most so far from its optimum.
    tol : float
        The violation that was asked for.
    precision : str
        Type of the kernel values that this statement rests on.
    projection_error : float or None
        Of a machine in a subspace: how much of a cut (or of the gradient) at most lies outside of the span, delta in Joachims & Yu (2009).
    bound : float or None
        Of a machine in a subspace: the objective is at most so far from that of the exact machine with the same loss.
    max_cuts : float or None
        Of a machine by sampled cuts: the number of cuts after which it ends at the latest (Yu & Joachims 2008).
    risk_bound : float or None
        Of a machine by sampled cuts: with probability ``confidence`` the objective is at most so far above its optimum. A worst case.
    confidence : float or None
        Of ``risk_bound``.
    """

    scope: str
    objective: float
    violation: float
    gap: float
    tol: float
    precision: str
    projection_error: float | None = None
    bound: float | None = None
    max_cuts: float | None = None
    risk_bound: float | None = None
    confidence: float | None = None

    @property
    def holds(self) -> bool:
        """Whether the tolerance was reached."""
        return self.violation <= self.tol

    def to_dict(self) -> dict[str, Any]:
        """The fields by name."""
        return dict(
            vars(self)
        )  # all are plain values: no need for asdict, which copies deeply, once for every pair of classes


@dataclass(frozen=True)
class Status:
    """Why a fit ended: a short reason, and a sentence."""

    reason: str  # "converged", "max_iter", "max_time", "interrupted", "stopped"
    sentence: str

    def __str__(self) -> str:
        return self.sentence

    @property
    def converged(self) -> bool:
        """Whether the solver's own stopping rule held."""
        return self.reason == "converged"


@dataclass(frozen=True)
class Record:
    """One line of the history."""

    step: int
    seconds: float
    values: Mapping[str, float]


@dataclass
class Result:
    """What :func:`run` returns."""

    model: Any
    certificate: Certificate
    status: Status
    history: dict[str, Array]
    n_iter: int


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


@dataclass
class Limits:
    """The time limit and the interrupt of one fit, which may consist of several runs (the pairs of a multi-class machine).

    Examples
    --------
    >>> from slimsvm.run import Limits
    >>> Limits(max_time=None).reason() is None
    True
    """

    max_time: float | None = None
    interrupted: bool = False
    stopped: bool = False  # by a watcher
    begin: float = field(default_factory=time.perf_counter)
    whole: Limits | None = None  # of the fit that this is a part of

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

    def part(self, n_left: int, side_by_side: int = 1) -> Limits:
        """The limits of the next of n_left parts, some of them side by side: an equal share of the time that is left, the same interrupt."""
        share = (
            None
            if self.max_time is None
            else max(0.0, self.max_time - self.seconds) / max(1, -(-n_left // side_by_side))
        )
        return Limits(share, whole=self)

    @contextmanager
    def watching_interrupts(self) -> Iterator[None]:
        """Take Ctrl-C as a wish to stop soon with a usable model; a second one stops at once.

        Only the main thread gets signals; elsewhere, and where something else than Python's default handles them, nothing changes.
        """
        usual = (
            signal.getsignal(signal.SIGINT)
            if threading.current_thread() is threading.main_thread()
            else None
        )
        if usual is not signal.default_int_handler:
            yield
            return

        def note(number: int, frame: Any) -> None:
            if self.interrupted:
                raise KeyboardInterrupt
            self.interrupted = True

        signal.signal(signal.SIGINT, note)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, usual)


@contextmanager
def interrupts_at_once() -> Iterator[None]:
    """Let Ctrl-C raise KeyboardInterrupt in fits inside, too, which would stop with what they have, or end before they look."""
    usual = (
        signal.getsignal(signal.SIGINT)
        if threading.current_thread() is threading.main_thread()
        else None
    )
    if usual is not signal.default_int_handler:
        yield
        return
    signal.signal(
        signal.SIGINT, lambda number, frame: signal.default_int_handler(number, frame)
    )  # not the default: nobody replaces it
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, usual)


SENTENCES = {
    "converged": "Converged: no Kuhn-Tucker condition is violated by more than {tol:g} (violation {violation:.2g}, gap {gap:.3g}).",
    "max_iter": "Stopped at max_iter={n_iter} before the tolerance {tol:g} was reached (violation {violation:.2g}, gap {gap:.3g}).",
    "max_time": "Stopped at max_time after {seconds:.1f} s, before the tolerance {tol:g} was reached "
    "(violation {violation:.2g}, gap {gap:.3g}).",
    "interrupted": "Interrupted after {seconds:.1f} s: the best model so far is kept (violation {violation:.2g}, gap {gap:.3g}).",
    "stopped": "Stopped by a callback after {seconds:.1f} s (violation {violation:.2g}, gap {gap:.3g}).",
}


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

    At least one step is made, whatever the limits: the model is usable, if rough.

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
    state = solver.init(problem, start)
    records: list[Record] = []
    reason: str | None = None
    while reason is None:
        solver.step(problem, state, tol, most)
        records.append(Record(len(records), limits.seconds, state.record()))
        if any([watcher(records[-1]) for watcher in watchers]):  # noqa: C419  (all of them are told, also after one wants to stop)
            (limits.whole or limits).stopped = True
        reason = (
            "converged" if state.done else "max_iter" if state.n_iter >= most else limits.reason()
        )
    certificate = solver.certificate(problem, state, tol)
    reason = "converged" if certificate.holds else reason
    facts = dict(certificate.to_dict(), seconds=limits.seconds, n_iter=state.n_iter)
    history = {"seconds": np.array([record.seconds for record in records])}
    for name in records[0].values:
        history[name] = np.array([record.values[name] for record in records])
    return Result(
        solver.model(problem, state),
        certificate,
        Status(reason, SENTENCES[reason].format(**facts)),
        history,
        max(1, state.n_iter),
    )


class Progress:
    """A line that shows a long fit at work: gap, support vectors, time. ``rich`` draws it where it is installed and the output is a terminal.

    Examples
    --------
    >>> from slimsvm.run import Progress, Record
    >>> with Progress("SVC", every=0.0) as show:
    ...     show(Record(0, 1.5, {"violation": 0.25, "gap": 3.0, "n_support": 12, "active": 100}))
    SVC  1.5 s  violation 0.25  gap 3  support vectors 12  active 100
    """

    def __init__(self, name: str, every: float = 1.0) -> None:
        self.name, self.every, self._last = name, every, -np.inf
        self._live: Any = None

    def __enter__(self) -> Progress:
        if sys.stdout.isatty():
            try:
                from rich.live import Live

                self._live = Live(refresh_per_second=4, transient=False)
                self._live.__enter__()
            except ImportError:
                pass
        return self

    def __exit__(self, *failure: Any) -> None:
        if self._live is not None:
            self._live.__exit__(*failure)

    def __call__(self, record: Record) -> None:
        """Show a record, at most once in ``every`` seconds."""
        if record.seconds - self._last < (0.2 if self._live is not None else self.every):
            return
        self._last = record.seconds
        words = {
            "violation": "violation",
            "gap": "gap",
            "n_support": "support vectors",
            "active": "active",
        }
        if "n_basis" in record.values:  # sparse machines
            words = {
                "objective": "objective",
                "n_basis": "basis vectors",
                "violation": "relative gap",
            }
        parts = [f"{words[key]} {record.values[key]:.4g}" for key in words if key in record.values]
        line = "  ".join([self.name, f"{record.seconds:.1f} s", *parts])
        if self._live is not None:
            self._live.update(line)
        else:
            print(line, flush=True)
