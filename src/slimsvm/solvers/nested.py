"""The exact solution by decomposition over a set of rows that grows: good at any time.

Problem: that of :mod:`slimsvm.solvers.decomposition`, which does all the work.

Algorithm: begin with FIRST random rows; (1) solve for the rows that have joined, to a violation of
``loose`` units of the scores; (2) compute the inner products s of the next random rows, some at a
time; (3) let them join: cached kernel rows are completed, nothing else is lost. When all have
joined, the rest is the decomposition to its own tolerance. There is one solver state throughout.
Stopped early, the best primal value over the rows that have joined is the model.

What differs for the nu forms and the one-class problem, whose coefficients have a fixed sum: it
grows with the rows, and what the new ones bring goes to those of them that violate most, where it
will be at the optimum, too.

Rows that shrinking removes while others wait are set aside and join last: bounds on what has become
of them would need the inner products of rows that are not known yet.

Why random rows: the worst violators first collect outliers on noisy data. Why inside one state:
fits on subsets one after the other, each started from the last, cost twice as much.

Symbols as in :mod:`slimsvm.solvers.decomposition`; order: all rows, as they join. Cost beyond it:
(rows that join) x (support vectors) kernel values a stage.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slimsvm.gram import Gram
from slimsvm.problems.dual_qp import DualQP
from slimsvm.run import FULL, SUBSPACE, Certificate, OutOfTime
from slimsvm.solvers.decomposition import Decomposition
from slimsvm.solvers.dual_state import FIRST, DualSolution, State, variables_of
from slimsvm.solvers.removed_rows import products_in_parts, rows_in_a_part, slack, values_in_a_part

Array = NDArray[Any]
FEWEST = 200  # rows of either sign among the first, if there are so many
# rounds of a stage that was easy: the next one takes so many times more rows
FEW_ROUNDS, FASTER = 2, 4.0
# growth where kernel values are dear: rows of vectors that small sets need and large ones do not
# (784 features, 20,000 rows: 1.04 times the plain decomposition; 1.15 with a growth of 2, 1.55 with
# 1.4)
DEAR_GROWTH = 3.0
ALL_LEFT = 0.7  # of the rows that wait: if the next stage would take more, it takes all


@dataclass
class Best:
    """The point with the best primal value over the rows that have joined."""

    primal: float
    objective: float
    variables: Array
    rows: Array
    a: Array
    s: Array


@dataclass
class Aside:
    """Rows that were removed while others waited; s is that of the coefficients of then."""

    rows: Array
    s: Array
    moved: Array
    coef: Array


@dataclass
class NestedState(State):
    """The state of the decomposition, and who has not joined yet."""

    waiting: Array = field(default_factory=lambda: np.empty(0, np.intp))
    aside: list[Aside] = field(default_factory=list)
    best: Best | None = None
    unit: float = 1.0  # what one is in units of the scores; 0: a result
    fixed: bool = False  # the sum of the coefficients is that of all rows already
    feasible: bool = True  # for the problem of all rows: such a sum does not grow with the rows
    n_waiting: int = 0  # at the end
    n_ready: int = 0  # of the rows that join, have their products
    joined_at: int = 0  # rounds, when the last rows joined

    def record(self) -> dict[str, float]:
        """A line of the history."""
        return {**super().record(), "waiting": self.waiting.size}


@dataclass(kw_only=True)
class Nested(Decomposition):
    """Decomposition over a growing set of rows.

    Parameters
    ----------
    first : int
        Rows to begin with.
    growth : float
        By which factor the set grows.
    loose : float
        Violation, in units of the scores, at which it does.
    settled : float
        Rows that were set aside do not join if they are so far from violating, in the same units.
    seed : int
        Of the order in which rows join.
    """

    first: int = FIRST
    growth: float = 2.0
    loose: float = 0.1
    settled: float = 0.5
    seed: int = 0

    def init(self, problem: DualQP, start: Array | DualSolution | None = None) -> NestedState:
        """Begin with the first rows, or with those that have coefficients in ``start``."""
        n = problem.gram.n
        order = _order(problem, self.first, np.random.default_rng(self.seed))
        given = start.a if isinstance(start, DualSolution) else start
        a = np.zeros(problem.n_variables)
        if given is None:
            rows = np.sort(order[: self.first])
            variables = variables_of(problem, rows)
            a[variables] = problem.start[variables]
        else:
            a[:] = given
            rows = np.union1d(np.flatnonzero(problem.coef(a)), order[: self.first])
            variables = variables_of(problem, rows)
        S = NestedState(a, np.zeros(n), variables, rows, problem.gram.diag())
        S.fixed = given is not None
        S.feasible = S.fixed or not problem.start.any()
        joined = np.zeros(n, bool)
        joined[rows] = True
        S.waiting = order[~joined[order]]
        problem.gram.restrict(rows)
        coef = problem.coef(a)
        moved = np.flatnonzero(coef)
        for _ in products_in_parts(problem.gram, moved, coef[moved], rows, S.s):
            pass
        S.objective = problem.objective(a, S.s)
        self._localise(problem, S)
        S.unit = _spread(problem, S)
        self._compare(S)
        return S

    def step(self, problem: DualQP, state: State, tol: float, max_iter: int) -> None:
        """One round over the rows that have joined, or some of the products of those that join."""
        assert isinstance(state, NestedState)
        S = state
        if not self._incomplete(S):
            super().step(problem, S, tol, max_iter)
        else:
            goal = max(tol, self.loose * self._unit(S))
            if S.work is None and problem.gram.rounding * S.norm > goal:
                S.work = self._upgrading(problem, S, tol)
            elif S.work is None and (S.violation <= goal or S.stuck):
                S.work = self._joining(problem, S)
            if S.work is not None:
                self._go_on(S)
                return
            self._round(problem, S, tol, goal, max_iter)
        self._compare(S)

    @staticmethod
    def _unit(S: NestedState) -> float:
        """What one is in units of the scores; where the margin is a result, that of now."""
        return S.unit or 0.5 * abs(S.level[0] - S.level[1]) or abs(S.level[0])

    @staticmethod
    def _incomplete(S: NestedState) -> bool:
        return bool(S.waiting.size or S.aside)

    # -- 1. the best so far ------------------------------------------------------------------------

    @staticmethod
    def _compare(S: NestedState) -> None:
        primal = S.gap - S.objective
        if S.best is None or primal < S.best.primal:
            S.best = Best(primal, S.objective, S.variables, S.rows, S.a_.copy(), S.s_.copy())

    def _begin_anew(self, S: NestedState) -> None:
        """More rows are active: values over fewer of them do not compare."""
        S.best = None
        self._compare(S)

    def _upgrading(self, problem: DualQP, state: State, tol: float) -> Iterator[None]:
        assert isinstance(state, NestedState)
        self._globalise(state)
        state.rows = np.concatenate([state.rows, *(group.rows for group in state.aside)])
        state.variables, state.aside = variables_of(problem, state.rows), []
        self._localise(problem, state)
        yield from super()._upgrading(problem, state, tol)
        self._begin_anew(state)

    def _rechecking(self, problem: DualQP, state: State, tol: float) -> Iterator[None]:
        assert isinstance(state, NestedState)
        yield from super()._rechecking(problem, state, tol)
        self._begin_anew(state)

    def _restore(self, problem: DualQP, S: NestedState) -> None:
        self._globalise(S)
        best = S.best
        if best is not None and best.primal < S.gap - S.objective:
            S.a[best.variables], S.s[best.rows] = best.a, best.s
            S.objective = best.objective
            self._localise(problem, S)

    # -- 2., 3. rows join --------------------------------------------------------------------------

    def _joining(self, problem: DualQP, S: NestedState) -> Iterator[None]:
        """Inner products of the next rows, in parts; then they are active columns."""
        self._globalise(S)
        gram, coef = problem.gram, problem.coef(S.a)
        if S.waiting.size:
            new = self._next_rows(gram, S)
            if S.n_ready:  # a fit that goes on
                self._again(gram, new[: S.n_ready])
            moved = np.flatnonzero(coef)
            many = rows_in_a_part(gram, moved.size)
            while S.n_ready < new.size:
                part = new[S.n_ready : S.n_ready + many]
                S.s[part] = self._products(gram, part, moved, coef[moved])
                S.n_ready += part.size
                if S.n_ready < new.size:
                    yield
            S.n_ready = 0
            yield from self._share_out(problem, S, new)
            S.waiting = S.waiting[new.size :]
            S.feasible = S.fixed or not S.waiting.size or not problem.start.any()
            new = self._admitted(problem, S, new)
        else:
            new = yield from self._seen_again(problem, S, coef)
            gram.grow(new)
        S.rows = np.concatenate([S.rows, new])
        S.variables = variables_of(problem, S.rows)
        self._localise(problem, S)
        self._begin_anew(S)
        S.joined_at = S.n_rounds

    @staticmethod
    def _again(gram: Gram, rows: Array) -> None:
        """Rows whose products are known already."""
        gram.grow(rows)

    @staticmethod
    def _products(gram: Gram, rows: Array, moved: Array, coef: Array) -> Array:
        """Those of some of the rows that join, which become active columns on the way."""
        return gram.grow_with(rows, moved, coef)

    def _admitted(self, problem: DualQP, S: NestedState, new: Array) -> Array:
        """Which of the rows that join are active now: all."""
        return new

    def _next_rows(self, gram: Gram, S: NestedState) -> Array:
        """Those that join next: more, where the last ones changed next to nothing."""
        quickly = S.n_rounds - S.joined_at <= FEW_ROUNDS
        growth = self.growth if gram.cheap else max(self.growth, DEAR_GROWTH)
        growth = (growth - 1.0) * (FASTER if quickly else 1.0)
        many = int(max(1, growth * (gram.n - S.waiting.size)))
        return np.sort(S.waiting[: many if many <= ALL_LEFT * S.waiting.size else None])

    def _seen_again(
        self, problem: DualQP, S: NestedState, coef: Array
    ) -> Generator[None, None, Array]:
        """Those set aside that must join: s of all is computed; the settled ones are removed."""
        for group in S.aside:
            delta = coef.copy()
            delta[group.moved] -= group.coef
            since = np.flatnonzero(delta)
            S.s[group.rows] = group.s
            yield from products_in_parts(problem.gram, since, delta[since], group.rows, S.s)
            now = np.flatnonzero(coef)
            group.s, group.moved, group.coef = S.s[group.rows], now, coef[now]
        rows = np.sort(np.concatenate([group.rows for group in S.aside]))
        S.aside = []
        settled = slack(problem, S, rows) > self.settled * self._unit(S)
        if settled.any():  # s of all rows is known now, and bounds hold
            super()._remove(problem, S, rows[settled])
        return rows[~settled]

    @staticmethod
    def _share_out(problem: DualQP, S: NestedState, new: Array) -> Iterator[None]:
        """Where the sum of coefficients is fixed: what new rows add, the worst of them get."""
        variables = variables_of(problem, new)
        if S.fixed or not problem.start[variables].any():
            return
        a = S.a.copy()
        for group, level in zip(problem.groups(), S.level, strict=False):
            own = np.intersect1d(variables, group)
            reduced = problem.sign[own] * (problem.order(S.s)[own] - level)
            own = own[np.argsort(reduced, kind="stable")]
            before = np.concatenate([[0.0], np.cumsum(problem.upper[own])[:-1]])
            a[own] = np.clip(problem.start[own].sum() - before, 0.0, problem.upper[own])
        delta = problem.coef(a) - problem.coef(S.a)
        moved = np.flatnonzero(delta)
        s = S.s.copy()
        rows = np.concatenate([S.rows, new])
        yield from products_in_parts(problem.gram, moved, delta[moved], rows, s)
        slope = problem.sign * problem.order(S.s) @ (a - S.a)
        S.objective += float(slope + 0.5 * delta[moved] @ (s[moved] - S.s[moved]))
        S.a, S.s = a, s

    def _remove(self, problem: DualQP, S: State, gone: Array) -> None:
        assert isinstance(S, NestedState)
        if self._incomplete(S):
            coef = problem.coef(S.a)
            moved = np.flatnonzero(coef)
            S.aside.append(Aside(gone, S.s[gone], moved, coef[moved]))
        else:
            super()._remove(problem, S, gone)

    # -- 4. what comes out -------------------------------------------------------------------------

    def certificate(self, problem: DualQP, state: State, tol: float) -> Certificate:
        """Of all rows, where that takes no longer than a step; else nothing is known of them."""
        assert isinstance(state, NestedState)
        S = state
        if not S.done and not S.rechecks:
            S.work, S.n_ready = None, 0
            self._restore(problem, S)
        S.n_waiting = S.waiting.size
        if not S.done and self._incomplete(S) and not self._see_all(problem, S):
            scope = FULL if S.feasible else SUBSPACE
            return replace(self._unknown(problem, S, tol), scope=scope)
        return super().certificate(problem, S, tol)

    def _see_all(self, problem: DualQP, S: NestedState) -> bool:
        """Whether s of all rows is known; it is computed, if that takes no longer than a step."""
        gram, coef = problem.gram, problem.coef(S.a)
        n_away = S.waiting.size + sum(group.rows.size for group in S.aside)
        if not S.feasible or np.count_nonzero(coef) * n_away > values_in_a_part(gram):
            return False
        away = np.ones(gram.n, bool)
        away[S.rows] = False
        rows, moved = np.flatnonzero(away), np.flatnonzero(coef)
        try:
            S.s[rows] = gram.products(moved, coef[moved], rows)
        except OutOfTime:
            return False
        S.rows, S.variables = np.arange(gram.n), np.arange(problem.n_variables)
        S.waiting, S.aside = S.waiting[:0], []
        self._localise(problem, S)
        return True

    def model(self, problem: DualQP, state: State) -> DualSolution:
        """The dual point, and how many rows it has not seen."""
        assert isinstance(state, NestedState)
        if not state.done:
            self._restore(problem, state)
        return replace(super().model(problem, state), n_waiting=state.n_waiting)


def _order(problem: DualQP, first: int, rng: np.random.Generator) -> Array:
    """All rows in random order; among the first there are some of either sign."""
    order = rng.permutation(problem.gram.n)
    if problem.n_variables > problem.gram.n:  # every row has both signs
        return order
    sign = problem.sign[order]
    wanted = [np.flatnonzero(sign == z)[: min(FEWEST, first // 4)] for z in (1.0, -1.0)]
    ahead = np.zeros(order.size, bool)
    ahead[np.concatenate(wanted)] = True
    return np.concatenate([order[ahead], order[~ahead]])


def _spread(problem: DualQP, S: State) -> float:
    """What one is in units of the scores: 1, the mean deviation of targets; 0: not known yet."""
    if problem.n_variables == problem.gram.n:
        return float(np.abs(problem.linear[S.variables]).mean())
    o = problem.sign[S.variables] * problem.linear[S.variables]
    return float(np.abs(o - np.median(o)).mean())
