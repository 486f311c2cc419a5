"""The exact solution by decomposition: SVM-light's algorithm with large working sets.

Problem: the dual problems of :mod:`slimsvm.problems.dual_qp`, min 1/2 a'Qa + p'a, 0 <= a <= upper,
z'a fixed.

Algorithm: Joachims (1999), "Making large-scale SVM learning practical", sections 3 to 5: working
sets by steepest feasible descent (1), a small subproblem solved to its own precision (2),
incremental gradients, shrinking by the history of multiplier estimates, a recheck of all variables
at the end, kernel rows cached.

What differs. Working sets have a thousand variables instead of ten, half of them kept from the last
round; the subproblem is solved by SMO with second-order pairs (Fan, Chen & Lin 2005). The small
block is solved *before* any kernel row is computed, so rows are computed only for variables that
moved, and are added to s while still in cache. Rows of variables that went to a bound are not kept:
they seldom move again. A removed variable is rechecked by a bound first: s changed by at most |w -
w_then| sqrt(k(x, x)), and that norm is known from the active variables; only the rest is computed.
Variables that turn out to violate come back, and cached rows are completed. Up to WHOLE variables
the working set is everything, and there is one subproblem. The end: the violation is within the
tolerance. If the relative gap is not, the goal is halved, twice at most: rows are cached by then,
and it costs little; not so where one subproblem is all there is. Or rounding is all that is left:
where the multipliers are large, the tolerance may be less than a unit in the last place of o, and a
step too short to change them; rounds then gain nothing any more, and the solver has stalled.

Symbols: o = s + z p; bottom, top the extreme o of variables that may rise or fall; *local* arrays
hold the active variables only. Cost of a round: (rows that moved and are not cached) x (active
rows) kernel values, plus as many additions for cached ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from slimsvm.problems.dual_qp import DualQP
from slimsvm.run import FULL, Certificate, OutOfTime
from slimsvm.solvers.dual_state import (
    DualSolution,
    Removed,
    State,
    count_positive,
    felt_by,
    measure,
    rounding_at,
    scan,
    variables_of,
)
from slimsvm.solvers.removed_rows import products_in_parts, rechecked, slack
from slimsvm.solvers.smo import FAR, polish, smo

Array = NDArray[Any]
WHOLE = 2000  # variables up to which one subproblem is the whole problem
EXACT = 1000  # rows up to which the solution is polished to near float64 precision
MOST_POLISHING = 20  # rounds of about a second: enough for all but the hopelessly scaled
# variables visited in one call of SMO: about 0.05 s, so that Ctrl-C and max_time are heard
SMO_WORK = 50_000_000
# violation below which shrinking may begin: from the start on, but for wild first rounds
EARLY = 4.0
# of the goal, where the gap is still large when the violation is not: many free variables with a
# little each
MOST_HALVINGS = 2
# rounds in a row after which nothing is to be gained, where rounding is all that is left: of the
# whole problem, which have thousands of steps, and of working sets
MOST_IDLE = {True: 3, False: 30}
# shrinking reorganises the cache: only when at least this share of the active variables leaves
LEAST_DROP = 0.2
LAST = object()
SELECTIONS = ("steepest", "basic")


@dataclass(kw_only=True)
class Decomposition:
    """Decomposition with the options of the paper's ablations.

    Parameters
    ----------
    working_set : int
        Variables in a working set.
    keep : float
        Share of the working set that stays for the next round.
    selection : {"steepest", "basic"}
        How new variables are chosen; "basic" takes any that violate, the strategy the paper
        compares with.
    prefer_cached : bool
        At least half of the new variables must have their rows cached already (the paper's rule for
        many free support vectors).
    shrinking : bool
        Whether variables that stay at a bound leave the problem.
    history : int
        Rounds for which a multiplier estimate must stay positive before its variable leaves (h).
    inner : float
        The subproblem is solved until its violation is this share of that of the whole problem.
    exact : bool
        Whether few rows are solved to near float64 precision.
    """

    keeps_state: ClassVar[bool] = True

    working_set: int = 1024
    keep: float = 0.5
    selection: str = "steepest"
    prefer_cached: bool = False
    shrinking: bool = True
    history: int = 8
    inner: float = 0.1
    exact: bool = True

    def __post_init__(self) -> None:
        for name, least in (("working_set", 2), ("history", 1)):
            value = getattr(self, name)
            if not isinstance(value, Integral) or value < least:
                raise ValueError(f"{name}={value!r} must be an integer, {least} or more.")
        if self.selection not in SELECTIONS:
            raise ValueError(f"selection={self.selection!r} must be one of {SELECTIONS}.")
        for name in ("keep", "inner"):
            if not 0.0 <= getattr(self, name) < 1.0:
                raise ValueError(f"{name}={getattr(self, name)!r} must be from 0 to 1, 1 excluded.")

    def init(self, problem: DualQP, start: Array | DualSolution | None = None) -> State:
        """Begin at ``start`` (a feasible a), or at the problem's own starting point.

        Of a DualSolution s is known, too. All rows must be active columns of the Gram.
        """
        known = isinstance(start, DualSolution)
        given = start.a if isinstance(start, DualSolution) else start
        a = np.array(problem.start if given is None else given, dtype=np.float64)
        n, columns = problem.gram.n, problem.gram.columns
        rows = np.arange(n) if columns is None else columns
        s = start.s.copy() if isinstance(start, DualSolution) else np.zeros(n)
        state = State(a, s, np.arange(problem.n_variables), rows, problem.gram.diag())
        state.rough = self.exact
        coef = problem.coef(a)
        moved = np.flatnonzero(coef)
        if moved.size and not known:
            state.s[rows] += problem.gram.products(moved, coef[moved], rows)
        state.objective = problem.objective(a, state.s)
        self._localise(problem, state)
        return state

    def _upgrading(self, problem: DualQP, state: State, tol: float) -> Iterator[None]:
        """Go on with smaller errors: those of float32 values have reached the tolerance."""
        self._globalise(state)
        S, gram = state, problem.gram
        gram.upgrade(tol / S.norm)
        back = np.concatenate([S.rows, *(group.rows for group in S.removed)])
        rows = np.sort(back)
        if rows.size < gram.n:  # some have not joined yet
            gram.restrict(rows)
        coef = problem.coef(S.a)
        moved = np.flatnonzero(coef)
        yield from products_in_parts(gram, moved, coef[moved], rows, s := np.zeros(gram.n))
        S.s, S.rows, S.removed, S.diag = s, rows, [], gram.diag()
        S.variables = variables_of(problem, rows)
        S.objective = problem.objective(S.a, S.s)
        self._localise(problem, S)

    def _rechecking(self, problem: DualQP, state: State, tol: float) -> Iterator[None]:
        """Look at all that was removed; what violates, or nearly so, comes back."""
        self._globalise(state)
        back = yield from rechecked(problem, state, tol)
        if back.size:
            problem.gram.grow(back)
            state.rows = np.concatenate([state.rows, back])
            state.variables = variables_of(problem, state.rows)
            self._localise(problem, state)

    @staticmethod
    def resume(problem: DualQP, state: State) -> None:
        """Go on with a state that was kept: the Gram has the active columns again."""
        state.work = None
        if state.rows.size < problem.gram.n or bool((np.diff(state.rows) < 0).any()):
            problem.gram.restrict(state.rows)

    @staticmethod
    def _go_on(state: State) -> bool:
        """Do a part of the work over all rows that has begun; whether that was the last one."""
        assert state.work is not None
        if next(state.work, LAST) is LAST:
            state.work = None
        return state.work is None

    def _localise(self, problem: DualQP, state: State) -> None:
        """Fill the local arrays from the global ones."""
        v = state.variables
        position = np.full(problem.gram.n, -1)
        position[state.rows] = np.arange(state.rows.size)
        state.a_, state.sign_, state.upper_ = state.a[v], problem.sign[v], problem.upper[v]
        state.shift_, state.row_ = problem.sign[v] * problem.linear[v], position[problem.row[v]]
        state.s_ = state.s[state.rows]
        state.count_ = np.zeros(v.size, np.int32)
        state.o_, state.up_, state.low_ = np.empty(v.size), np.empty(v.size), np.empty(v.size)
        state.working = np.empty(0, np.intp)
        state.least, state.n_idle, state.stuck = np.inf, 0, False
        state.n_removed_support = int(np.count_nonzero(state.a)) - int(np.count_nonzero(state.a_))
        state.removed_sq = max(0.0, float(state.a @ state.a - state.a_ @ state.a_))
        self._look(problem, state)

    @staticmethod
    def _globalise(state: State) -> None:
        state.a[state.variables] = state.a_
        state.s[state.rows] = state.s_

    def step(self, problem: DualQP, state: State, tol: float, max_iter: int) -> None:
        """One round: a working set, its subproblem, the gradient; at the very end, the recheck."""
        S = state
        if S.work is None and problem.gram.rounding * S.norm > tol:
            S.work = self._upgrading(problem, S, tol)
        elif S.work is None and S.rechecks:  # of a fit that goes on
            S.work = self._rechecking(problem, S, tol)
        rechecks = S.work is not None and S.rechecks
        if S.work is not None and not self._go_on(S):
            return
        goal = tol / 2**S.n_halvings
        if not rechecks:
            self._round(problem, S, tol, goal, max_iter)
            if (S.violation <= goal or S.stuck or S.n_iter >= max_iter) and S.removed:
                S.work, S.rechecks = self._rechecking(problem, S, tol), True
                if not self._go_on(S):
                    return
        S.rechecks = False
        self._conclude(problem, S, tol, goal)

    def _round(self, problem: DualQP, state: State, tol: float, goal: float, max_iter: int) -> None:
        state.rough = state.rough and problem.gram.n <= EXACT and state.n_rounds < MOST_POLISHING
        if (state.violation > goal or state.rough) and state.n_iter < max_iter:
            whole = state.variables.size <= max(WHOLE, self.working_set) and not state.removed
            chosen = np.arange(state.variables.size) if whole else self._choose(problem, state)
            target = goal if whole else max(0.5 * goal, self.inner * state.violation)
            before, n_iter = state.objective, state.n_iter
            self._solve_subproblem(problem, state, chosen, target, max_iter, whole)
            self._look(problem, state)
            gained, n_steps = before - state.objective, state.n_iter - n_iter
            self._count_idle(state, gained, n_steps, whole)
            state.n_rounds += 1
            state.rough = (
                state.rough
                and whole
                and problem.gram.n <= EXACT
                and problem.gram.dtype == np.float64
            )
            if self.shrinking and not whole:
                self._shrink(problem, state, tol)
        state.n_values = problem.gram.n_values

    @staticmethod
    def _count_idle(S: State, gained: float, n_steps: int, whole: bool) -> None:
        """Whether rounds lead nowhere: no least violation, no gain but rounding errors.

        Those of a sum, and of each step that is too short to change a large multiplier, but moves
        o: they add up.
        """
        size = np.abs(S.s_[S.row_]) + np.abs(S.shift_)
        terms = float(S.a_ @ size) + n_steps * float(S.a_.max(initial=0.0)) * float(
            size.max(initial=0.0)
        )
        idle = not (gained > np.finfo(float).eps * terms or S.violation < S.least)
        S.n_idle = S.n_idle + 1 if idle else 0
        S.least = min(S.least, S.violation)
        S.stuck = S.n_idle >= MOST_IDLE[whole]

    @staticmethod
    def _conclude(problem: DualQP, state: State, tol: float, goal: float) -> None:
        """Whether that is the end."""
        state.done = (
            state.stuck or (state.violation <= goal and not state.rough)
        ) and problem.gram.rounding * state.norm <= tol  # else: once more, in float64
        if (
            state.done
            and not state.stuck
            and state.gap > tol * abs(state.objective)
            and state.n_halvings < MOST_HALVINGS
            and problem.gram.n > WHOLE
        ):
            state.n_halvings, state.done = state.n_halvings + 1, False
        state.n_values = problem.gram.n_values

    # -- 0. where we are ---------------------------------------------------------------------------

    def _look(self, problem: DualQP, state: State) -> None:
        """Update o, its ends, violation, level, gap and the numbers for the history."""
        S = state
        bp, tp, bm, tm, free_sum, n_free = scan(
            S.a_, S.s_, S.sign_, S.shift_, S.upper_, S.row_, S.o_, S.up_, S.low_
        )
        if problem.two_equalities:
            plus, minus = S.sign_ > 0, S.sign_ < 0
            state.level = (self._level(S, plus, bp, tp), self._level(S, minus, bm, tm))
            state.violation = max(0.0, tp - bp, tm - bm)
        else:
            bp = bm = min(bp, bm)
            tp = tm = max(tp, tm)
            level = free_sum / n_free if n_free else _middle(bp, tp)
            state.level = (level, level)
            state.violation = max(0.0, tp - bp)
        state.bottom, state.top = (bp, bm), (tp, tm)
        state.gap, n_support, square = measure(S.a_, S.o_, S.sign_, S.upper_, *state.level)
        state.n_support, state.norm = (
            n_support + S.n_removed_support,
            float(np.sqrt(square + S.removed_sq)),
        )

    @staticmethod
    def _level(S: State, part: Array, bottom: float, top: float) -> float:
        free = part & (S.a_ > 0) & (S.a_ < S.upper_)
        return float(S.o_[free].mean()) if free.any() else _middle(bottom, top)

    # -- 1. the working set ------------------------------------------------------------------------

    def _choose(self, problem: DualQP, state: State) -> Array:
        """Half of the last working set, and new variables.

        The new ones have the lowest o that may rise and the highest that may fall.
        """
        kept = state.working[state.working.size - int(self.keep * state.working.size) :]
        n_new = max(2, self.working_set - kept.size)
        parts = (
            [np.flatnonzero(state.sign_ > 0), np.flatnonzero(state.sign_ < 0)]
            if problem.two_equalities
            else [None]
        )
        new = [
            self._new_variables(
                problem,
                state,
                part,
                max(1, n_new // (2 * len(parts))),
                kept,
                state.bottom[k],
                state.top[k],
            )
            for k, part in enumerate(parts)
        ]
        chosen = np.concatenate([kept, *new])
        state.working = chosen
        return chosen

    def _new_variables(
        self,
        problem: DualQP,
        state: State,
        part: Array | None,
        n_side: int,
        kept: Array,
        bottom: float,
        top: float,
    ) -> Array:
        up, low, o = state.up_, state.low_, state.o_
        up[kept] = low[kept] = FAR
        if part is not None:
            outside = np.ones(o.size, bool)
            outside[part] = False
            up, low = np.where(outside, FAR, up), np.where(outside, FAR, low)
        if self.selection == "basic":
            violates = np.flatnonzero(((up < FAR) & (o < top)) | ((low < FAR) & (o > bottom)))
            # any violators, but among them a pair: otherwise nothing may move
            pair = self._steepest(up, low, o, 1, bottom, top)
            return np.union1d(pair, np.roll(violates, -state.n_rounds * n_side)[: 2 * n_side])
        if self.prefer_cached:
            cached = problem.gram.cached(problem.row[state.variables])
            first = self._steepest(
                np.where(cached, up, FAR), np.where(cached, low, FAR), o, n_side // 2, bottom, top
            )
            up[first] = low[first] = FAR
            return np.concatenate(
                [first, self._steepest(up, low, o, n_side - n_side // 2, bottom, top)]
            )
        return self._steepest(up, low, o, n_side, bottom, top)

    @staticmethod
    def _steepest(up: Array, low: Array, o: Array, n_side: int, bottom: float, top: float) -> Array:
        """n_side variables from either end, all distinct, that pair with a violation."""
        rising = _smallest(up, n_side)
        rising = rising[o[rising] < top]
        low[rising] = FAR
        falling = _smallest(low, n_side)
        falling = falling[o[falling] > bottom]
        return np.sort(np.concatenate([rising, falling]))

    # -- 2. the subproblem -------------------------------------------------------------------------

    def _solve_subproblem(
        self,
        problem: DualQP,
        state: State,
        chosen: Array,
        target: float,
        max_iter: int,
        whole: bool,
    ) -> None:
        S, gram = state, problem.gram
        split = chosen.size
        if problem.two_equalities:  # SMO wants the two signs apart
            chosen = np.concatenate([chosen[S.sign_[chosen] > 0], chosen[S.sign_[chosen] < 0]])
            split = int(np.count_nonzero(S.sign_[chosen] > 0))
        rows = S.rows[S.row_[chosen]]
        K = _block(gram, rows)
        sign, upper, diag = S.sign_[chosen], S.upper_[chosen], S.diag[rows]
        old, a, o = S.a_[chosen], S.a_[chosen].copy(), S.o_[chosen].copy()
        exact = self.exact and whole and gram.n <= EXACT and K.dtype == np.float64
        most = int(
            min(
                max_iter - S.n_iter,
                100 * chosen.size if exact else max(100, SMO_WORK // chosen.size),
            )
        )
        steps, _ = smo(K, diag, sign, upper, a, o, split, target, most)
        S.n_iter += steps
        if exact and S.n_iter < max_iter:
            steps, S.rough = polish(K, diag, sign, upper, a, o, split, max_iter - S.n_iter)
            S.n_iter += steps
        delta = sign * (a - old)
        moved = np.flatnonzero(delta)
        if not moved.size:
            return
        # W changes by d'g + d'Qd/2, with g = z o before and after
        S.objective += float(delta @ (S.o_[chosen] + o)) / 2
        S.a_[chosen] = a
        if whole:  # s of every row is known from o
            S.s_[S.row_[chosen]] = o - S.shift_[chosen]
            return
        free = (a > 0) & (a < upper)
        moved_rows, place = np.unique(rows[moved], return_inverse=True)
        gram.add(
            moved_rows, np.bincount(place, delta[moved]), S.s_, np.bincount(place, free[moved]) > 0
        )

    # -- 3. shrinking ------------------------------------------------------------------------------

    def _shrink(self, problem: DualQP, state: State, tol: float) -> None:
        """Remove variables whose multiplier estimate stayed positive, when that helps.

        It does if the cache is full, or values are cheap.

        What is removed must be computed at the end after all, where the bound does not suffice.
        What is saved is memory and passes through it.
        """
        S = state
        count_positive(S.a_, S.o_, S.sign_, S.upper_, S.level[0], S.level[1], S.count_)
        if not (problem.gram.full or (problem.gram.cheap and S.violation < EARLY)):
            return
        leaving = S.count_ >= self.history
        if leaving.sum() < LEAST_DROP * S.variables.size:
            return
        stays = np.zeros(S.rows.size, bool)
        stays[S.row_[~leaving]] = True
        if stays.sum() > (1 - LEAST_DROP) * S.rows.size or not stays.any():
            return
        self._globalise(S)
        gone = S.rows[~stays]
        self._remove(problem, S, gone)
        S.rows = S.rows[stays]
        S.variables = variables_of(problem, S.rows)
        problem.gram.restrict(S.rows)
        self._localise(problem, S)

    def _remove(self, problem: DualQP, S: State, gone: Array) -> None:
        """Keep what a recheck must know of rows that leave."""
        coef = problem.coef(S.a)
        S.removed.append(
            Removed(gone, S.s[gone], coef, slack(problem, S, gone), coef, S.s.copy(), S.level)
        )

    # -- 4. what comes out -------------------------------------------------------------------------

    def certificate(self, problem: DualQP, state: State, tol: float) -> Certificate:
        """Violation and gap over all variables.

        Removed ones were rechecked: they add nothing to either.
        """
        if state.removed and not state.done:
            if state.work is None or not state.rechecks:
                state.work = self._rechecking(problem, state, tol)
            try:
                while state.work is not None:
                    self._go_on(state)
            except OutOfTime:
                return self._unknown(problem, state, tol)
        precision = str(np.dtype(problem.gram.dtype))
        about = (state.objective, state.violation, max(0.0, state.gap), tol, precision)
        return Certificate(FULL, *about).rounded(self._rounding(problem, state))

    @staticmethod
    def _unknown(problem: DualQP, state: State, tol: float) -> Certificate:
        """The value of the point, and nothing of how far it is from the optimum."""
        precision = str(np.dtype(problem.gram.dtype))
        return Certificate(FULL, state.objective, np.inf, np.inf, tol, precision)

    def _rounding(self, problem: DualQP, state: State) -> float:
        """What errors of kernel values may change; s of removed rows is that of their removal."""
        self._globalise(state)
        for group in state.removed:
            state.s[group.rows] = group.s
        s, z = state.s[problem.row], problem.sign
        level = np.where(z > 0, *state.level)
        coef, operand = problem.coef(state.a), problem.gram.operand
        reduced = z * (s + z * problem.linear - level)
        steps = state.n_iter
        slopes = np.where(felt_by(operand, coef, s, reduced, steps), problem.upper, 0.0)
        return rounding_at(operand, coef, state.s, slopes, s, n_steps=steps)

    def model(self, problem: DualQP, state: State) -> DualSolution:
        """The dual point; s is exact at the active rows only."""
        self._globalise(state)
        one_sided = [abs(state.bottom[k]) >= FAR or abs(state.top[k]) >= FAR for k in (0, 1)]
        return DualSolution(state.a, state.s, state.level, (one_sided[0], one_sided[1]))


def _middle(bottom: float, top: float) -> float:
    ends = [end for end in (bottom, top) if abs(end) < 0.5 * FAR]
    return float(np.mean(ends)) if ends else 0.0


def _smallest(key: Array, k: int) -> Array:
    """Indices of the k smallest keys, without those that are FAR."""
    chosen = np.argpartition(key, k - 1)[:k] if k < key.size else np.arange(key.size)
    return chosen[key[chosen] < 0.5 * FAR]


def _block(gram: Any, rows: Array) -> Array:
    """The kernel block of the rows, where a row may stand twice (two variables of one row)."""
    if (rows[1:] > rows[:-1]).all():  # mostly so, and to see that is cheaper
        return np.asarray(gram.block(rows))
    distinct, place = np.unique(rows, return_inverse=True)
    if distinct.size == rows.size:
        return np.asarray(gram.block(rows))
    return np.ascontiguousarray(gram.block(distinct)[np.ix_(place, place)])
