"""The Lagrangian method for the dual of the reduced problem: LSVM.

As it was published, and with a corrected metric.

Problem: :class:`slimsvm.problems.reduced.Reduced` with the squared hinge; its dual is

    min over a >= 0 of  1/2 a'Ha - 1'a,
    H = V V' + D^-1,     D = diag(2 weight_i),     and u = V'a.

Algorithm: Mangasarian & Musicant (2001), "Lagrangian support vector machines"
(mangasarian2001lsvm), used for RSVM in Lin & Lin (2003), lin2003rsvm. The optimality conditions 0
<= a, 0 <= Ha - 1, a'(Ha - 1) = 0 are the fixed point Ha - 1 = (Ha - 1 - b a)_+ for any b > 0, hence

    a <- H^-1 (1 + (Ha - 1 - b a)_+)     from     a = H^-1 1,
    H^-1 = D - D V (I + V'DV)^-1 V'D     (Woodbury).

What differs. b is b_i = share / weight_i, that is beta / c_i for beta = share / C: the iteration of
the paper for variables a_i / sqrt(c_i), in which D is 2C I. So a weight of two is the same as a row
twice, and the condition is the paper's, 0 < beta < 1/C, whatever the weights.

With z = Ha - 1 cut at zero, the iteration is z <- (z - b a)_+ with a = H^-1 (1 + z): projected
gradient steps of length b for

    min over z >= 0 of  1/2 (1 + z)'H^-1(1 + z),

whose curvature is less than 2C: hence the condition.

Near the solution, with N the rows beyond the margin and A the others, the error shrinks by 1 - 2
share / kappa a step,

    kappa = 1 + 2C lambda_max(V_N (I + 2C V_A'V_A)^-1 V_N'),

which is about 1 + |N|/|A| where many rows are support vectors, and grows with C where they are
fewer than the columns of V: then 10^5 steps are not enough. That is :class:`Lagrangian`.

At share = 1/2, the middle of what is allowed, b = D^-1 and the iteration is one in u: z = (V u -
1)_+, and with F the primal objective

    u <- (I + V'DV)^-1 V'D (1 + z) = u - (I + V'DV)^-1 F'(u),

gradient steps in the metric I + V'DV: Newton's matrix, if all rows were before their margins.
:class:`AcceleratedLagrangian` begins at the same point and keeps that metric and its one factor,
but corrects it by what the last few moves have shown (limited-memory BFGS: Nocedal 1980,
nocedal1980lbfgs), and goes as far along each direction as F falls. An example where kappa is large,
satimage's first pair at C = 2^11 with 15 support vectors and 156 columns: a relative gap of 1e-3
after 5,192 steps, or with extrapolated steps and restarts (Nesterov) after 15,091; the iteration of
the paper is at 0.999 after 2,000.

Iterates of the paper may be negative: cut at zero, they are feasible and give a dual value. For
large C little is left of that value, and a second dual point, which is feasible as it is, does
better: the multipliers D (1 - V u)_+ that belong to the primal point u. Both are scaled to their
best, (1'a)^2 / (2 a'Ha). The best primal and dual values are kept, and their difference is the gap,
taken every tenth step. Only one pass over V is made in a step: with r = 1 + z known, V'a = (I +
V'DV)^-1 V'D r = u, and a = D (r - V u). In the metric's iteration V'a is u - F'(u), and the gap is
there at every step; but two passes are made, since the length of the step stands between them.

Symbols: u = V'a; cut = max(0, a); own = D (1 - V u)_+; moves: changes s of u, y of the gradient, 1
/ s'y. Cost of a step: 4 n m, m^2; of the paper's, twice that where the gap is taken; at the
beginning n m^2 + m^3/3.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slimsvm.problems.reduced import Reduced, ReducedState, Signed, begin
from slimsvm.rows import Block, PerRow, joined
from slimsvm.solvers.duality import BestValues, ReducedSolver, step_along
from slimsvm.threads import single_threaded_blas

Array = NDArray[Any]
WORK = 1e8  # entries of V visited in a step of the run: 0.05 to 0.1 s
MOST_STEPS = 50  # in a step of the run
EVERY = 10  # steps of the paper's iteration from one gap to the next
MOVES = 20  # that correct the metric
STALLED = 1e-15  # relative change below which rounding is all that is left


@dataclass
class LagrangianState(BestValues):
    """Where the iteration is, and the best values so far."""

    inverse: Callable[[Array], Array]  # times (I + V'DV)^-1
    ones: Array  # V'D 1
    z: Array
    product: Array  # V'D z
    u: Array  # the best so far

    def record(self) -> dict[str, float]:
        """A line of the history; ``violation`` is the relative gap."""
        return super().record() | {"n_basis": float(self.u.size - 1)}


def _several(
    problem: Reduced, state: Any, tol: float, max_iter: int, iterate: Callable[[bool], None]
) -> None:
    """Some steps, until the relative gap is small; iterate(whether the gap is wanted) makes one."""
    most = int(
        min(
            MOST_STEPS,
            max(1.0, WORK / max(1, problem.features.n * problem.features.size)),
            max_iter - state.n_iter,
        )
    )
    with (
        single_threaded_blas()
    ):  # once: to set the limit takes as long as a step of a small problem
        for k in range(most):
            iterate(k % EVERY == 0 or k == most - 1)
            state.done = state.relative_gap <= tol or state.stalled
            if state.done:
                break


@dataclass(kw_only=True)
class Lagrangian(ReducedSolver):
    """LSVM as it was published; ``tol`` is the duality gap relative to the objective.

    Parameters
    ----------
    share : float
        beta times C, between 0 and 1 (both excluded): only there the iteration is known to
        converge.

    Examples: see :class:`slimsvm.solvers.duality.ReducedSolver`.
    """

    share: float = 0.5

    def __post_init__(self) -> None:
        if not (isinstance(self.share, Real) and 0.0 < self.share < 1.0):
            raise ValueError(
                f"share={self.share!r}, which is beta times C, must be between 0 and 1, both "
                "excluded: beyond, the iteration may cycle or "
                "diverge. 0.5 is a good choice."
            )

    def init(self, problem: Reduced, start: Array | None = None) -> LagrangianState:
        """Begin at a = H^-1 1, that is at z = 0; there is no other start."""
        V, D = problem.features, 2.0 * problem.weight
        return LagrangianState(
            V.inverse(D), V.project(D), np.zeros(V.n), np.zeros(V.size), np.zeros(V.size)
        )

    def step(self, problem: Reduced, state: LagrangianState, tol: float, max_iter: int) -> None:
        """Some steps, and the gap after the last one and every tenth."""
        _several(
            problem, state, tol, max_iter, lambda measure: self._iterate(problem, state, measure)
        )

    def _iterate(self, problem: Reduced, S: LagrangianState, measure: bool) -> None:
        D, b = 2.0 * problem.weight, self.share / problem.weight
        # 1. u = (I + V'DV)^-1 V'D r
        u = S.inverse(S.ones + S.product)

        V = problem.features
        found = V.rows.map(iterated, V.signed, u, measure, PerRow(D), PerRow(b), PerRow(S.z))
        products, sums = sum(part[0] for part in found), sum(part[1] for part in found)
        change, largest = np.max([part[2] for part in found], axis=0)
        S.z = joined([part[3] for part in found])
        S.n_iter += 1
        if not np.isfinite(products).all():  # only where kernel values are beyond all reason
            S.stalled = True
            return
        S.product, S.stalled = products[0], bool(change <= STALLED * largest)
        if measure:
            self._measured(S, u, products[1:], sums)

    @staticmethod
    def _measured(S: LagrangianState, u: Array, products: Array, sums: Array) -> None:
        """The value of u in the primal problem, and of both points in the dual one.

        Own^2 / D is twice the loss.
        """
        totals, squares = sums
        primal = 0.5 * float(u @ u) + 0.5 * float(squares[1])
        with np.errstate(divide="ignore", invalid="ignore"):
            dual = float(
                np.nanmax(
                    0.5 * totals**2 / (np.square(products).sum(axis=1) + squares), initial=0.0
                )
            )
        if primal < S.primal:
            S.primal, S.u = primal, u
        S.dual = max(S.dual, dual)


def iterated(
    where: Block, signed: Signed, u: Array, measure: bool, D: Array, b: Array, z: Array
) -> tuple[Array, Array, Array, Array]:
    """A task: products with V, sums and extremes of one step, and the next z.

    See :meth:`Lagrangian._iterate`.
    """
    following = np.empty(where.n)

    def work(start: int, end: int, V: Array) -> tuple[Array, Array, Array]:
        part = slice(start, end)
        # 2. a = D (r - V u), which is H^-1 r
        old, margins = z[part], V @ u
        a = D[part] * (1.0 + old - margins)
        # 3. the next z = (z - b a)_+, and V'D z
        following[part] = new = np.maximum(0.0, old - b[part] * a)
        extremes = np.array([np.abs(new - old).max(), 1.0 + new.max()])
        if not measure:
            return (D[part] * new)[None] @ V, np.zeros((2, 2)), extremes
        points = np.stack([np.maximum(a, 0.0), D[part] * np.maximum(0.0, 1.0 - margins)])
        squares = (np.square(points) / D[part]).sum(axis=1)
        return (
            np.vstack([D[part] * new, points]) @ V,
            np.stack([points.sum(axis=1), squares]),
            extremes,
        )

    parts = signed.each(where, work)
    products, sums = sum(part[0] for part in parts), sum(part[1] for part in parts)
    return products, sums, np.max([part[2] for part in parts], axis=0), following


# -- with a corrected metric -----------------------------------------------------------------------


@dataclass
class AcceleratedState(ReducedState):
    """Where the iteration is, the moves that correct the metric, and the best dual value so far."""

    inverse: Callable[[Array], Array] = np.asarray  # times (I + V'DV)^-1
    moves: deque[tuple[Array, Array, float]] = field(default_factory=lambda: deque(maxlen=MOVES))
    dual: float = 0.0  # of the point zero

    @property
    def gap(self) -> float:
        """The duality gap."""
        return max(0.0, self.objective - self.dual)


@dataclass(kw_only=True)
class AcceleratedLagrangian(ReducedSolver):
    """LSVM at beta = 1/(2 C), its metric corrected by its last moves.

    ``tol`` is the duality gap relative to the objective.

    Examples: see :class:`slimsvm.solvers.duality.ReducedSolver`.
    """

    def init(self, problem: Reduced, start: Array | None = None) -> AcceleratedState:
        """Begin where the paper does, at u = V'a for a = H^-1 1.

        Or at ``start`` (coefficients and intercept).
        """
        V, D = problem.features, 2.0 * problem.weight
        inverse = V.inverse(D)
        first = begin(problem, inverse(V.project(D)) if start is None else start)
        return AcceleratedState(
            first.u, first.margins, first.objective, first.gradient, inverse=inverse
        )

    def step(self, problem: Reduced, state: AcceleratedState, tol: float, max_iter: int) -> None:
        """Some steps."""
        _several(problem, state, tol, max_iter, lambda measure: self._iterate(problem, state))

    def _iterate(self, problem: Reduced, S: AcceleratedState) -> None:
        V = problem.features
        # 1. the direction, and how far to go
        d = -self._in_metric(S)
        t, d_margins = step_along(problem, problem.weight, S, d)
        # 2. where that is
        before, gradient = S.objective, S.gradient
        S.u, S.margins = S.u + t * d, S.margins + t * d_margins
        slopes = problem.weight * problem.loss.gradient(1.0, S.margins)
        S.objective, S.gradient = problem.value(S.u, S.margins), S.u + V.project(slopes)
        S.n_iter += 1
        # 3. the multipliers of u as a dual point: -slopes, with V'a = u - F'(u); a^2 / D is twice
        # the loss
        total, combined = -float(slopes.sum()), S.u - S.gradient
        curve = float(combined @ combined) + 2.0 * (S.objective - 0.5 * float(S.u @ S.u))
        if curve > 0.0:
            S.dual = max(S.dual, 0.5 * total**2 / curve)
        # 4. what the move says of the metric; moves that are nothing but rounding say nothing
        move, change = t * d, S.gradient - gradient
        along = float(move @ change)
        if along > STALLED * np.sqrt(float(move @ move) * float(change @ change)):
            S.moves.append((move, change, 1.0 / along))
        S.stalled = not (S.objective < before and np.isfinite(S.objective))
        if S.stalled and len(S.moves) > 1:  # again, in the metric as it was
            S.moves.clear()
            S.stalled = False

    @staticmethod
    def _in_metric(S: AcceleratedState) -> Array:
        """The gradient in the corrected metric.

        Nocedal's two loops around a solve with I + V'DV.
        """
        q, shares = S.gradient.copy(), []
        for move, change, rho in reversed(S.moves):
            shares.append(rho * float(move @ q))
            q -= shares[-1] * change
        q = S.inverse(q)
        for (move, change, rho), share in zip(S.moves, reversed(shares), strict=True):
            q += (share - rho * float(change @ q)) * move
        return q
