"""What a fit has done so far, so that another one can go on from there.

A fit is a sequence of runs (:func:`slimsvm.run.run`), and a step of a run may be such a sequence
again. Everything else it does follows from its data and parameters. So what is kept is: the results
of the runs that have ended, and the state of the one that has not, after its last step; in it,
level by level, the same of the runs inside its step. A fit that goes on does the same again, but
runs that ended return their results at once, and the one that did not begins with its state.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from slimsvm.ending import FULL, Certificate, Status
from slimsvm.run import Record, Result
from slimsvm.snapshots import Frozen, surroundings
from slimsvm.threads import local

LIMITS = ("max_time", "interrupted", "stopped")
NOT_KEPT = (TypeError, KeyError, AttributeError, ValueError, IndexError)


class NotReady(Exception):
    """The runs so far do not make a model yet."""


@dataclass
class Kept:
    """What is known of a run, or of the whole fit, which has no state of its own."""

    solver: str = ""
    state: Frozen | None = None  # None: the run begins anew
    records: list[Record] = field(default_factory=list)
    results: list[Frozen] = field(default_factory=list)  # of the runs inside that have ended
    now: Kept | None = None  # the one inside that has not


class Level(Kept):
    """A run that goes on."""

    def __init__(self, known: Kept | None = None) -> None:
        super().__init__()
        self.known, self.n_begun, self.n_steps = known, 0, 0
        # closed: what runs inside cannot be kept; fresh: the state is that of the last step
        self.closed, self.fresh = False, False
        self.left: Kept | None = None  # a run inside that was stopped by a limit
        self.live: tuple[Any, Any, Any] | None = None  # solver, problem and state after a step
        self.outside: dict[str, Any] = {}

    def begin(self, solver: Any, problem: Any, init: Callable[[], Any]) -> tuple[Any, list[Record]]:
        """The state that is known, or a new one; and the history so far."""
        self.outside, self.solver = surroundings(problem), type(solver).__qualname__
        known = self.known
        if known is not None and known.state is not None and known.solver == self.solver:
            try:
                state = known.state.thawed(self.outside)
                if hasattr(solver, "resume"):
                    solver.resume(problem, state)
            except NOT_KEPT:
                self.known = None
            else:
                if getattr(solver, "in_place", False):  # who began the run has its state, too
                    begun = init()
                    vars(begun).update(vars(state))
                    state = begun
                self.state, self.records = known.state, known.records
                return state, list(known.records)
        return init(), []

    def add(self, result: Frozen | None) -> None:
        """A run inside has ended; what comes after one that cannot be kept is not kept either."""
        self.closed = self.closed or result is None
        if result is not None and not self.closed:
            self.results.append(result)


@dataclass
class Keeper:
    """Watches the runs of one fit, and calls ``write`` every so many seconds.

    Parameters
    ----------
    every : float
        Seconds.
    write : callable
        Gets this keeper.
    known : Kept, optional
        What another fit left.
    """

    every: float
    write: Callable[[Keeper], None]
    known: Kept | None = None

    def __post_init__(self) -> None:
        self.levels = [Level(self.known)]
        self.last = time.monotonic()

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Runs of this thread are kept."""
        with kept_by(self):
            yield

    def around(
        self, solver: Any, problem: Any, init: Callable[[], Any], go: Callable[[Level], Result]
    ) -> Result:
        """A run: known, or done."""
        above = self.levels[-1]
        above.closed = above.closed or (above.n_steps > 0 and not above.fresh)
        place, known, mine = above.n_begun, above.known, None
        above.n_begun += 1
        if known is not None:
            if place < len(known.results):
                try:
                    result: Result = known.results[place].thawed(surroundings(problem))
                except NOT_KEPT:
                    above.known = None
                else:
                    above.add(known.results[place])
                    return result
            else:
                mine, above.known = known.now, None
        level = Level(mine)
        self.levels.append(level)
        try:
            result = go(level)
        finally:
            self.levels.pop()
        if result.status.reason in LIMITS:  # another fit is to go on here
            if level.live is not None and not above.closed:
                self._freeze(level)
                above.left = Kept(level.solver, level.state, level.records)
            above.add(None)
            return result
        try:
            above.add(Frozen(result, level.outside))
        except TypeError:
            above.add(None)
        return result

    def stepped(
        self, level: Level, solver: Any, problem: Any, state: Any, records: list[Record]
    ) -> None:
        """A step is done: what ran inside is part of the state now."""
        inside = level.n_begun > 0
        level.records, level.live = list(records), (solver, problem, state)
        level.results, level.n_begun, level.known, level.left = [], 0, None, None
        level.n_steps, level.closed, level.fresh = level.n_steps + 1, False, False
        if inside:  # in the middle of the next step the state will not be one to begin with
            self._freeze(level)
        if time.monotonic() - self.last >= self.every:
            self._freeze(level)
            self.write(self)
            self.last = time.monotonic()

    @staticmethod
    def _freeze(level: Level) -> None:
        assert level.live is not None
        solver, problem, state = level.live
        if getattr(solver, "keeps_state", False):
            try:
                if hasattr(solver, "before_keeping"):
                    solver.before_keeping(problem, state)
                level.state, level.fresh = Frozen(state, level.outside), True
            except TypeError:
                level.state = None

    def so_far(self) -> Kept:
        """All levels, as they are to be stored."""
        below: Kept | None = None
        for level in reversed(self.levels):
            now = level.left if below is None else None if level.closed else below
            below = Kept(level.solver, level.state, level.records, level.results, now)
        assert below is not None
        return below

    @contextmanager
    def as_it_is(self) -> Iterator[None]:
        """Runs return what is known of them now, and those that have not begun their beginning."""
        with kept_by(_AsItIs(self)):
            yield


class _AsItIs:
    """Results of a fit that is not at its end."""

    def __init__(self, keeper: Keeper) -> None:
        self.levels, self.place = keeper.levels, 0

    def around(
        self, solver: Any, problem: Any, init: Callable[[], Any], go: Callable[[Level], Result]
    ) -> Result:
        """What is known of a run."""
        root, place = self.levels[0], self.place
        self.place += 1
        if place < len(root.results):
            result: Result = root.results[place].thawed(surroundings(problem))
            return result
        state = None
        if place == len(root.results) and len(self.levels) > 1:
            level = self.levels[1]
            if level.state is None or level.live is None:
                raise NotReady
            solver, problem, _ = level.live
            state = level.state.thawed(level.outside)
        unknown = Certificate(FULL, np.nan, np.inf, np.inf, 0.0, "float32")
        about = (unknown, Status("stopped"), {"seconds": np.empty(0)})
        if state is None and hasattr(solver, "nothing"):  # to begin takes long
            return Result(solver.nothing(problem), *about, 1)
        state = init() if state is None else state
        return Result(solver.model(problem, state), *about, max(1, state.n_iter))


@contextmanager
def kept_by(keeper: Any) -> Iterator[None]:
    """Runs of this thread ask this keeper; None: nobody."""
    before = getattr(local, "keeper", None)
    local.keeper = keeper
    try:
        yield
    finally:
        local.keeper = before
