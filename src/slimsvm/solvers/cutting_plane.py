"""One-slack cutting planes: one driver for every oracle, in every space.

Problem, for each column (one-vs-rest: one for each class; they share the passes over the rows and
nothing else):

    min over w, b of  1/2 |w|^2 + R(f),     f(x) = <w, phi(x)> + b,

with R convex and not negative, known through an oracle.

Algorithm: Joachims (2006) and Joachims, Finley & Yu (2009), the "1-slack" formulation. A *cut* is a
plane below the risk, R(f) >= offset + sum_i v_i f_i = offset + <g, w> + vbar b with g = sum_i v_i
phi(x_i) and vbar = sum_i v_i. Each round solves

    min 1/2 |w|^2 + xi,  xi >= 0,  xi >= offset_t + <g_t, w> for all cuts t

(dual: :mod:`slimsvm.solvers.small_qp`, sum of a_t at most 1), whose value is a lower bound of the
optimum, and adds a cut. Cuts that were inactive for 20 rounds are dropped. The end: best value
found minus lower bound <= tol times the best value. The papers scale the risk by 1/(C n), and stop
when the newest cut is violated by eps more than xi: then the gap is at most C n eps, so tol
corresponds to eps = tol (best value) / (C sum of weights).

``CuttingPlane(line_search=False, stop="violation")`` is Algorithm 1 of Joachims (2006), and over
kernels or a growing basis Algorithms 2 and 3 of Joachims & Yu (2009), line by line: solve the small
problem, take the most violated cut at its solution, let it join, and end when it was violated by at
most eps more than xi; the model is the solution over the cuts before it. The papers leave open
after how many idle rounds a cut is dropped (``max_idle``).

What differs otherwise. (1) ``line_search``, after Franc & Sonnenburg (2008), "OCAS": the best point
moves towards the solution of the small problem as far as the objective falls, and the cut is taken
near the best point and not at the solution, which jumps about. The scores of both ends are known,
so the search costs O(n) and no product with the rows. (2) The intercept has no penalty
(``intercept_scaling`` infinite, the default): it is optimised at every point where a cut is taken,
and the cut is the one with vbar = 0, which bounds the problem for every b. Then sum_t a_t v_t is a
feasible point of the dual of the exact problem with its equality. A finite scaling s makes it a
coordinate with the penalty b^2/(2 s^2), zero leaves it out. (3) A space may grow: CPSP, Joachims &
Yu (2009), Algorithm 2 with projected cuts; every active cut gains a coordinate, and the old ones
stay.

A *space* says what <g, w> is: :class:`ExplicitSpace` (features), :class:`KernelSpace` (all rows,
small n: the reference), :class:`SubspaceSpace` (the span of a basis, which may grow). It makes
coordinates of g from v (``project``) and scores from w.

Symbols: W coordinates of w, one column each; P those of cuts; V responses v (n, columns); a
multipliers of cuts; t cuts of a column. Cost of a round: two passes over the rows (scores; K_BX V),
one in all where no line search and no free intercept stands between them; O(n) for each column; t^3
for the small problem.
"""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from slimsvm.options import at_least, flags, one_of
from slimsvm.rows import PerRow
from slimsvm.run import Certificate
from slimsvm.solvers.cuts import (
    Columns,
    Cuts,
    CutSolution,
    CutState,
    chosen,
    columnwise,
    padded,
    raised,
)
from slimsvm.solvers.outside import ActiveCuts
from slimsvm.solvers.small_qp import solve_small_qp
from slimsvm.threads import single_threaded_blas

Array = NDArray[Any]
# of the largest score: rows so near a kink are on either side of it, as far as rounding knows
NEAR = {"float32": 1e-5, "float64": 1e-10}
# of a cut near the best point: how much of the gap it must cut off the solution of the small
# problem
LEAST_DEPTH = 0.1
ROUNDING = 1e-24  # of the objective: the square of what a norm can be off
SAME = 4.0 * float(np.finfo(float).eps)  # of two values that differ by rounding alone
STOPS = ("gap", "violation")
LONG = 10.0  # times a step: beyond, rounding errors of its scores count, and they are made anew
PATIENCE = 50  # rounds over which progress is measured
# progress of the relative gap in so many rounds that is only rounding
STALLED = {"float32": 1e-8, "float64": 1e-14}


# -- the problem -----------------------------------------------------------------------------------


class Oracle(Protocol):
    """What the driver asks of a risk; see :class:`slimsvm.oracles.LossOracle`.

    ``columns``: those that the scores stand for.
    """

    n: int
    n_columns: int
    weight: Array  # of the examples, C included

    def risk(self, scores: Array, columns: Columns = None) -> Array:
        """R(f) for each column."""

    def cut(
        self, first: int, last: int, scores: Array, columns: Columns = None
    ) -> tuple[Array, Array, Array]:
        """Risk and offset (columns,) and responses (rows, columns) of a block of rows."""

    def cuts(self, scores: Array, columns: Columns = None) -> tuple[Array, Array, Array]:
        """The same of all rows."""

    def bent(self, scores: Array, off: Array) -> float:
        """What errors of all scores may cost beyond what responses say."""

    def balanced(self, scores: Array, columns: Columns = None) -> tuple[Array, Array, Array, Array]:
        """Best intercepts, and with them the same for cuts with vbar = 0."""

    def intercept(self, scores: Array, columns: Columns = None, middle: bool = False) -> Array:
        """Best intercepts."""

    def line(
        self, scores: Array, change: Array, slope: Array, curvature: Array, columns: Columns = None
    ) -> Array:
        """The best step t >= 0 from scores along change.

        A quadratic with this slope and curvature is added.
        """

    def packed(self, responses: Array) -> Any:
        """The responses of one cut, in little memory."""

    def unpacked(self, kept: Any, first: int, last: int) -> Array:
        """The responses of rows first to last."""

    def by_row(self, kept: list[Any]) -> PerRow:
        """Cuts, of which each block of rows gets its part.

        ``products(first, last, values)`` is values (q, rows) times the responses of rows first to
        last, of each cut: (q, cuts); ``responses(first, last)`` are these themselves.
        """

    def part(self, first: int, last: int) -> Any:
        """The risk of rows first to last, with a ``cut`` that counts from there.

        For spaces that find cuts where the rows are.
        """


@dataclass
class OneSlack:
    """The problem: a risk in a space.

    Parameters
    ----------
    space : Space
        Where the function lives.
    oracle : Oracle
        The risk; without ``balanced`` and ``intercept`` where intercept_scaling is zero.
    intercept_scaling : float
        Infinite: an intercept without a penalty. Otherwise it has the penalty b^2/(2
        intercept_scaling^2) while cuts are collected, and is optimised without it at the end; zero:
        no intercept.
    """

    space: Any
    oracle: Any
    intercept_scaling: float = np.inf

    @property
    def free(self) -> bool:
        """Whether there is an intercept without a penalty."""
        return bool(np.isinf(self.intercept_scaling))

    @property
    def variance(self) -> float:
        """intercept_scaling^2 if that is finite, else zero.

        It says how much of the intercepts' products enters inner products of cuts.
        """
        return 0.0 if self.free else float(self.intercept_scaling) ** 2

    def penalty(self, b: Array, other: Array) -> Array:
        """The intercept's part of an inner product of two functions."""
        return b * other / self.variance if self.variance > 0 else np.zeros_like(b)


# -- the driver ------------------------------------------------------------------------------------


@dataclass(kw_only=True)
class CuttingPlane:
    """The 1-slack cutting-plane method.

    ``tol`` of :func:`slimsvm.run.run` is the relative gap, of every column.

    Parameters
    ----------
    line_search : bool
        Search between the best point and the solution of the small problem.
    towards : float
        With it, where the cut is taken: this share of the way from the best point to the solution
        (OCAS: 0.1).
    max_idle : int
        Rounds after which an inactive cut is dropped.
    stop : {"gap", "violation"}
        When it ends. "gap": the value of the best point is at most ``tol`` times itself above the
        lower bound. "violation", without a line search: the newest cut is violated by at most
        ``tol`` more than xi, in units of the mean loss (the papers' eps); the model is the last
        point, not the best, and a penalised intercept keeps its penalty.
    keep_rows : bool
        Keep the responses of the active cuts, a byte a row each. Needed to grow, to project on
        another basis, and for ``row_duals``.

    Examples
    --------
    >>> import numpy as np
    >>> from slimsvm.losses import Hinge
    >>> from slimsvm.oracles import LossOracle
    >>> from slimsvm.rows import MemoryRows
    >>> from slimsvm.run import run
    >>> from slimsvm.solvers.cutting_plane import CuttingPlane, OneSlack
    >>> from slimsvm.solvers.spaces import ExplicitSpace
    >>> X, y = np.array([[0.0], [1.0], [3.0], [4.0]]), np.array([-1.0, -1.0, 1.0, 1.0])
    >>> problem = OneSlack(ExplicitSpace(MemoryRows(X)), LossOracle(Hinge(), y, np.full(4, 10.0)))
    >>> result = run(CuttingPlane(), problem, tol=1e-9)
    >>> result.model.coef.round(6), result.model.intercept.round(6)
    (array([[1.]]), array([-2.]))
    >>> bool(result.certificate.holds), round(result.certificate.objective, 6)
    (True, 0.5)
    """

    keeps_state: ClassVar[bool] = True
    in_place: ClassVar[bool] = True

    line_search: bool = True
    towards: float = 0.1
    max_idle: int = 20
    stop: str = "gap"
    keep_rows: bool = True

    def __post_init__(self) -> None:
        one_of(STOPS, stop=self.stop)
        flags(line_search=self.line_search, keep_rows=self.keep_rows)
        if self.stop == "violation" and self.line_search:
            raise ValueError(
                "stop='violation' looks at cuts that are taken at the solution of the small "
                "problem, and line_search=True takes them elsewhere; use line_search=False."
            )
        at_least(1, max_idle=self.max_idle)
        if not (isinstance(self.towards, Real) and 0.0 < self.towards <= 1.0):
            raise ValueError(f"towards={self.towards!r} must be in (0, 1].")

    def init(self, problem: OneSlack, start: Any = None) -> CutState:
        """Begin at zero, at a given start, or go on with a state.

        A start is coefficients (size, columns) and intercepts (columns,).

        A state that was made on another basis must be brought to the present one first, by
        :meth:`reproject`.
        """
        if isinstance(start, CutState):
            start.done, start.marks, start.n_iter = False, [], 0
            start.stalled[:] = False
            start.open[:] = True
            return start
        space, oracle = problem.space, problem.oracle
        k = oracle.n_columns
        W, b, scores = np.zeros((space.size, k)), np.zeros(k), np.zeros((oracle.n, k))
        if start is not None:
            coef, intercept = start
            W[: coef.shape[0]] = space.weights(padded(np.asarray(coef, np.float64), space.size))
            b[:] = intercept if problem.intercept_scaling else 0.0
            scores = space.scores(W)
        if problem.free:
            b = oracle.intercept(scores)
        objective = self._value(problem, W, b) + oracle.risk(scores + b)
        cuts = [Cuts(space.max_size, space.kept_in) for _ in range(k)]
        return CutState(
            W,
            b,
            W.copy(),
            b.copy(),
            scores,
            objective,
            np.zeros(k),
            np.zeros(k),
            cuts,
            np.ones(k, bool),
            np.zeros(k, bool),
            scores,
            n_basis=space.n_basis,
        )

    @staticmethod
    def before_keeping(problem: OneSlack, state: CutState) -> None:
        """A space that has grown is kept with the state."""
        state.grown = problem.space.grown()

    @staticmethod
    def resume(problem: OneSlack, state: CutState) -> None:
        """Go on with a state that was kept."""
        problem.space.grow_again(state.grown)

    @staticmethod
    def _value(problem: OneSlack, W: Array, b: Array) -> Array:
        """1/2 |w|^2, with the intercept's penalty."""
        return np.asarray(0.5 * (problem.space.inner(W, W) + problem.penalty(b, b)))

    def step(self, problem: OneSlack, state: CutState, tol: float, max_iter: int) -> None:
        """One round: a cut for every open column, growth, the small problems."""
        S, space = state, problem.space
        if S.n_iter >= max_iter:
            return
        growing = bool(space.growing)
        which, grew = np.arange(S.open.size) if growing else np.flatnonzero(S.open), 0
        if which.size:
            # the vectors are too short for its threads, which would wait for one another
            with single_threaded_blas():
                grew = self._round(problem, S, which, growing, tol)
            S.scores = None
            S.n_iter += 1
        # 4. whose gap is small enough
        self._close(S, tol, space.precision, fresh=grew > 0)
        S.done = not S.open.any() and not grew
        S.n_basis, S.n_values = (
            space.n_basis,
            getattr(getattr(space, "columns", None), "n_values", 0),
        )

    def _round(
        self, problem: OneSlack, S: CutState, which: Array, growing: bool, tol: float
    ) -> int:
        # 1. a cut for each column: at the solution of its small problem, or near the best point
        P, V, offset, total = self._new_cuts(problem, S, which)
        if self.stop == "violation" and S.measured <= tol:
            return 0  # the papers let this cut join; but the point without it is the solution
        for j, c in enumerate(which):
            self._append(problem, S.cuts[c], P[:, j], V[:, j], float(offset[j]), float(total[j]))
        # 2. the space grows by what the newest cuts have outside of it
        grew = self._grow(problem, S, V, P) if growing else 0
        # 3. the small problems
        for c in which:
            self._solve(problem, S, int(c), fresh=grew > 0)
        return grew

    # -- 1. cuts -----------------------------------------------------------------------------------

    def _new_cuts(
        self, problem: OneSlack, S: CutState, which: Array
    ) -> tuple[Array, Array, Array, Array]:
        """Coordinates, responses, offsets and response sums of a new cut for each column.

        The best points move.
        """
        space, oracle = problem.space, problem.oracle
        W, b = chosen(S.W, which), S.b[which]
        if not self.line_search and not problem.free and S.scores is None:
            return self._fused(problem, S, which, W, b)
        scores = space.scores(W) if S.scores is None else S.scores[:, which]
        if problem.free:
            b = oracle.intercept(scores, which)
        if self.line_search:
            offset, V, total = self._cut_at(
                problem, which, *self._search(problem, S, which, W, b, scores)
            )
            # one that hardly cuts off the solution of the small problem leads nowhere: then the one
            # that cuts off most of it, which is at least the gap
            depth = offset + columnwise(V, scores) + total * b - S.xi[which]
            shallow = np.flatnonzero(depth < LEAST_DEPTH * S.gap[which])
            if shallow.size:
                some = self._cut_at(problem, which[shallow], b[shallow], scores[:, shallow])
                offset[shallow], V[:, shallow], total[shallow] = some
        else:
            self._keep_best(problem, S, which, W, b, scores, oracle.risk(scores + b, which))
            offset, V, total = self._cut_at(problem, which, b, scores)
        return space.project(V), V, offset, total

    @staticmethod
    def _cut_at(
        problem: OneSlack, which: Array, b: Array, scores: Array
    ) -> tuple[Array, Array, Array]:
        """Offsets, responses and their sums of the cuts at the given points."""
        if problem.free:
            _, _, offset, V = problem.oracle.balanced(scores, which)
            return offset, V, np.zeros(which.size)
        _, offset, V = problem.oracle.cuts(raised(scores, b), which)
        return offset, V, V.sum(axis=0)

    def _fused(
        self, problem: OneSlack, S: CutState, which: Array, W: Array, b: Array
    ) -> tuple[Array, Array, Array, Array]:
        """The same where nothing stands between scores and cuts: one pass over the rows."""
        P, scores, V, (risk, offset) = problem.space.sweep(W, b, which, problem.oracle)
        self._keep_best(problem, S, which, W, b, scores, risk)
        return P, V, offset, V.sum(axis=0)

    def _search(
        self, problem: OneSlack, S: CutState, which: Array, W: Array, b: Array, scores: Array
    ) -> tuple[Array, Array]:
        """Move the best point to the least value on the line to (W, b).

        Returns intercepts and scores where the cut is taken.
        """
        space, oracle = problem.space, problem.oracle
        best_W, best_b, best_scores = (
            chosen(S.best_W, which),
            S.best_b[which],
            chosen(S.best_scores, which),
        )
        dW, db, change = W - best_W, b - best_b, scores - best_scores
        slope = space.inner(best_W, dW) + problem.penalty(best_b, db)
        curvature = space.inner(dW, dW) + problem.penalty(db, db)
        t = oracle.line(raised(best_scores, best_b), raised(change, db), slope, curvature, which)
        W_t, b_t, scores_t = best_W + t * dW, best_b + t * db, best_scores + t * change
        if np.any(t > LONG):
            scores_t = space.scores(W_t)
        if problem.free:
            b_t = oracle.intercept(scores_t, which)
        self._keep_best(
            problem, S, which, W_t, b_t, scores_t, oracle.risk(raised(scores_t, b_t), which)
        )
        best_b, best_scores = S.best_b[which], chosen(S.best_scores, which)
        return best_b + self.towards * (b - best_b), best_scores + self.towards * (
            scores - best_scores
        )

    def _keep_best(
        self,
        problem: OneSlack,
        S: CutState,
        which: Array,
        W: Array,
        b: Array,
        scores: Array,
        risk: Array,
    ) -> None:
        value = self._value(problem, W, b) + risk
        better = np.flatnonzero(value < S.objective[which])
        if self.stop == "violation":  # the last point; the value of its cut there is the risk
            better = np.arange(which.size)
            S.excess = np.zeros(S.xi.size) if S.excess is None else S.excess
            S.excess[which] = np.maximum(0.0, risk - S.xi[which]) / float(
                problem.oracle.weight.sum()
            )
        c = which[better]
        S.objective[c], S.best_b[c] = value[better], b[better]
        if c.size == S.objective.size:
            S.best_W, S.best_scores = W.copy() if W is S.W else W, scores
        else:
            S.best_W[:, c], S.best_scores[:, c] = W[:, better], scores[:, better]

    def _append(
        self, problem: OneSlack, cuts: Cuts, p: Array, v: Array, offset: float, total: float
    ) -> None:
        space = problem.space
        row = np.append(
            space.gram_row(cuts.coordinates(space.size), p), space.gram_row(p[None, :], p)
        )
        row += problem.variance * total * np.append(cuts.total, total)
        cuts.append(p, offset, total, row, problem.oracle.packed(v) if self.keep_rows else None)

    # -- 2. growth ---------------------------------------------------------------------------------

    def _grow(self, problem: OneSlack, S: CutState, V: Array, P: Array) -> int:
        """Offer the newest cuts to the space; all cuts gain the coordinates it gains."""
        space = problem.space
        n_old = space.size
        n_new = int(space.extend(V, P))
        if not n_new:
            return 0
        old = np.concatenate([cuts.coordinates(n_old) for cuts in S.cuts]).T
        new = space.further(n_old, problem.oracle.by_row(self._kept(S)), old)
        begin = 0
        for cuts in S.cuts:
            N = new[:, begin : begin + cuts.n].T
            cuts.replace(np.hstack([cuts.coordinates(n_old), N]), cuts.gram + N @ N.T)
            begin += cuts.n
        S.best_W, S.W = padded(S.best_W, space.size), padded(S.W, space.size)
        return n_new

    @staticmethod
    def _kept(S: CutState) -> list[Any]:
        """The rows of the cuts of all columns, one column after the other."""
        kept = [rows for cuts in S.cuts for rows in cuts.rows]
        if any(rows is None for rows in kept):
            raise ValueError(
                "The rows of the cuts are needed here, but keep_rows=False threw them "
                "away; use keep_rows=True."
            )
        return kept

    def reproject(self, problem: OneSlack, state: CutState) -> None:
        """Bring a state to the space as it is now, in place.

        For use after the basis was replaced, shortened, or extended by hand.

        The cuts are projected anew and keep their multipliers; the best point is forgotten for the
        solution of the small problems.
        """
        S, space = state, problem.space
        kept, n = self._kept(S), problem.oracle.n
        P = np.empty((space.size, len(kept)))
        if space.size and kept:
            V = np.empty((n, len(kept)), space.precision, order="F")
            for t, rows in enumerate(kept):
                V[:, t] = problem.oracle.unpacked(rows, 0, n)
            P = space.project(V)
        begin = 0
        S.W, S.b = np.zeros((space.size, len(S.cuts))), np.zeros(len(S.cuts))
        for c, cuts in enumerate(S.cuts):
            own = P[:, begin : begin + cuts.n].T
            gram = np.stack([space.gram_row(own, p) for p in own]) if cuts.n else np.empty((0, 0))
            cuts.replace(
                own, 0.5 * (gram + gram.T) + problem.variance * np.outer(cuts.total, cuts.total)
            )
            begin += cuts.n
            self._solve(problem, S, c, fresh=True)
        S.scores = space.scores(S.W)
        b = problem.oracle.intercept(S.scores) if problem.free else S.b
        S.best_W, S.best_b, S.best_scores = S.W.copy(), b.copy(), S.scores.copy()
        S.objective = self._value(problem, S.W, b) + problem.oracle.risk(S.scores + b)
        self.init(problem, S)

    # -- 3. the small problems ---------------------------------------------------------------------

    def _solve(self, problem: OneSlack, S: CutState, c: int, fresh: bool) -> None:
        """The small problem of column c.

        In a fresh space old bounds are void, because a larger space has a lower optimum.
        """
        cuts = S.cuts[c]
        solution = solve_small_qp(cuts.gram, cuts.offset, 1.0, cuts.a)
        cuts.a, S.xi[c] = solution.a, solution.xi
        S.W[:, c] = -cuts.combined(problem.space.size)
        S.b[c] = -problem.variance * float(cuts.a @ cuts.total)
        # its value from w, not from the inner products of cuts, which are larger and leave fewer
        # digits
        value = float(cuts.a @ cuts.offset) - float(self._value(problem, S.W[:, [c]], S.b[[c]])[0])
        S.lower[c] = max(value, 0.0 if fresh else S.lower[c])
        cuts.idle = np.where(cuts.a > 0, 0, cuts.idle + 1)
        cuts.drop(self.max_idle)

    # -- 4. the end --------------------------------------------------------------------------------

    def _close(self, S: CutState, tol: float, precision: str, fresh: bool) -> None:
        """Close the columns with a small enough gap, or where rounding errors prevent one."""
        if self.stop == "violation":
            self._close_unviolated(S, tol, precision, fresh)
            return
        relative = S.relative_gap
        S.marks = [relative] if fresh else [*S.marks[-PATIENCE:], relative]
        S.stalled &= not fresh
        if len(S.marks) > PATIENCE:
            S.stalled |= S.marks[0] - relative <= STALLED[precision]
        S.open = (relative > tol) & ~S.stalled

    @staticmethod
    def _close_unviolated(S: CutState, tol: float, precision: str, fresh: bool) -> None:
        """The same by the rule of the papers; progress is that of the lower bound."""
        assert S.excess is not None
        S.marks = [S.lower.copy()] if fresh else [*S.marks[-PATIENCE:], S.lower.copy()]
        S.stalled &= not fresh
        if len(S.marks) > PATIENCE:
            S.stalled |= S.lower - S.marks[0] <= STALLED[precision] * S.lower
        S.open = (S.excess > tol) & ~S.stalled

    def active(self, problem: OneSlack, state: CutState, m: int, width: int = 1) -> ActiveCuts:
        """The cuts that carry weight, seen from the first m vectors of a basis."""
        kept, a = [], []
        for c, cuts in enumerate(state.cuts):
            for t in np.flatnonzero(cuts.a):
                kept.append(cuts.rows[t])
                a.append(cuts.a[t] * (np.arange(len(state.cuts)) == c))
        multipliers = np.array(a).reshape(len(kept), len(state.cuts))
        return ActiveCuts(m, problem.oracle.by_row(kept), multipliers, width)

    def certificate(self, problem: OneSlack, state: CutState, tol: float) -> Certificate:
        """Objective and gap summed over the columns.

        ``violation`` is the largest relative gap of a column, or by how much its newest cut is
        violated more than xi.
        """
        space, S = problem.space, state
        measured = (float(S.objective.sum()), S.measured, float(S.gap.sum()))
        scores = raised(S.best_scores, S.best_b)
        V = _felt(problem.oracle, scores, space.precision)
        # the value is that of the best point, the lower bound that of the small problem
        off = sum(space.rounding(W, V, S.best_scores) for W in (S.best_W, S.W))
        off += problem.oracle.bent(scores, space.errors(S.best_W, S.best_scores))
        return Certificate(space.scope, *measured, tol, space.precision).rounded(off)

    def model(self, problem: OneSlack, state: CutState) -> CutSolution:
        """The best point, with the best intercept for it."""
        S, oracle = state, problem.oracle
        # a function that is zero but for rounding errors would decide ties between classes by them
        nothing = np.flatnonzero(problem.space.inner(S.best_W, S.best_W) <= ROUNDING * S.objective)
        if nothing.size:
            scores = S.best_scores.copy()
            scores[:, nothing] = 0.0
            value = oracle.risk(raised(scores, self._intercept(problem, S, scores)))
            # where losses cost much, so does the little that it is
            nothing = nothing[value[nothing] <= (1.0 + SAME) * S.objective[nothing]]
            S.best_W[:, nothing] = 0.0
            S.best_scores[:, nothing] = 0.0
        intercept = self._intercept(problem, S, S.best_scores)
        duals: Array | None = None
        if self.keep_rows:
            duals = np.zeros((oracle.n, oracle.n_columns))
            for c, cuts in enumerate(S.cuts):
                for t in np.flatnonzero(cuts.a):
                    duals[:, c] += cuts.a[t] * oracle.unpacked(cuts.rows[t], 0, oracle.n)
        return CutSolution(
            problem.space.coef(S.best_W),
            intercept,
            S.best_scores + intercept,
            duals,
            S.objective.copy(),
            S.lower.copy(),
        )

    def _intercept(self, problem: OneSlack, S: CutState, scores: Array) -> Array:
        """That of a model with these scores: the best one, or what was found."""
        if not problem.intercept_scaling:
            return np.zeros(S.best_b.size)
        penalised = self.stop == "violation" and not problem.free
        return S.best_b if penalised else problem.oracle.intercept(scores, middle=True)


def _felt(oracle: Any, scores: Array, precision: str) -> Array:
    """Slopes of the risk at scores whose last digits are not known.

    A row that sits on a kink costs the larger of two slopes if it is on the other side of it.
    """
    here = oracle.cuts(scores)[2]
    if getattr(oracle, "kinks", None) is None:
        return np.asarray(here)
    off = NEAR[precision] * np.abs(scores).max(axis=0, initial=0.0)
    sides = [oracle.cuts(scores + side * off)[2] for side in (-1.0, 1.0)]
    return np.asarray(np.max(np.abs([here, *sides]), axis=0))
