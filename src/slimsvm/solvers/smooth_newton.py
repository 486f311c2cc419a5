"""Newton's method for the reduced problem with a smooth loss: SSVM.

Problem: :class:`slimsvm.problems.reduced.Reduced` with the smooth hinge,

    min over u of  F(u) = 1/2 |u|^2 + sum_i weight_i P(1 - v_i u)^2,
    P(t) = t + log(1 + exp(-beta t)) / beta.

Algorithm: Lee & Mangasarian (2001), "SSVM: a smooth support vector machine for classification",
algorithm 3.1 (lee2001ssvm), used for RSVM in lee2001rsvm: Newton's direction, halved until Armijo's
rule holds. The solution tends to that of the squared hinge as beta grows. The loss of a row exceeds
the squared hinge by up to (log(2)/beta)^2 + 2 log(2)/beta max(0, t), which is not little at beta =
5, the papers' choice.

What differs: a step goes to the least value along its direction, which costs no more than Armijo's
rule once V d is known; where C is large and the classes are nearly apart, halved steps crawl (a
pair of shuttle at C = 2^12 and beta = 10^4 takes 36 steps; with Armijo's rule it is far from its
end after 40). Rows far beyond their margins, whose D_i |v_i|^2 add up to next to nothing, are left
out of Newton's matrix: at least the identity is in it, so that the step is hardly another one, and
the less so the nearer the end. The end is the duality gap of the smooth problem, 1/2 |F'(u)|^2,
relative to F, instead of the norm of the gradient alone. Where the values of F differ by no more
than rounding errors, a whole step is taken as long as it halves the gradient. The squared hinge
itself may stand in for the smooth one: then this is the finite Newton method, and at its end the
exact solution.

Symbols: d direction, t its length, D second derivatives of the weighted loss.
Cost of a step: (rows that count) m^2 + m^3/3, and two passes over V; where k < m/2 rows count, k^2
m.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from slimsvm.problems.reduced import Reduced, ReducedState, begin
from slimsvm.solvers.duality import ReducedSolver, step_along

Array = NDArray[Any]
# trace of what is left out of Newton's matrix, which is the identity and more; the less the nearer
# the end
FAINT = 0.1
HALF_GRADIENT = 0.25  # of the gap
SHORT = 0.1  # of Newton's step: then C is too large to begin with
FIRST_PULL = 100.0  # mean of weight_i |v_i|^2 at the first share of C
GROWTH, NEARLY = 10.0, 0.1  # of the share, at this relative gap


@dataclass(kw_only=True)
class SmoothNewton(ReducedSolver):
    """Newton's method with an exact search along each direction.

    ``tol`` is the relative duality gap of the problem with its own loss.

    Examples: see :class:`slimsvm.solvers.duality.ReducedSolver`.
    """

    keeps_state: ClassVar[bool] = True

    breaks_off: ClassVar[bool] = True

    def init(self, problem: Reduced, start: Array | None = None) -> ReducedState:
        """Begin at ``start`` (coefficients and intercept), or at zero."""
        return begin(problem, start)

    def step(self, problem: Reduced, state: ReducedState, tol: float, max_iter: int) -> None:
        """One of Newton's steps."""
        S = state
        if S.relative_gap <= tol or S.n_iter >= max_iter:
            S.done = S.relative_gap <= tol
            return
        # 1. Newton's direction, and the least value along it
        V, weight, half = problem.features, S.share * problem.weight, 0.5 * float(S.u @ S.u)
        # with the present share of C
        before, slope = half + S.share * (S.objective - half), S.u + S.share * (S.gradient - S.u)
        d = -V.inverse(self._counting(problem, S, 0.5 * float(slope @ slope) / before))(slope)
        t, d_margins = step_along(problem, weight, S, d)
        u, margins = S.u + t * d, S.margins + t * d_margins
        half = 0.5 * float(u @ u)
        lower = half + S.share * (problem.value(u, margins) - half) < before
        # 2. where that is; if all values are the same but for rounding errors, the gradient says
        # whether a whole step is good
        u = u if lower else S.u + d
        margins, value, gradient = problem.at(u)
        S.n_iter += 1
        at_share = u + S.share * (gradient - u)
        if lower or at_share @ at_share <= HALF_GRADIENT * (slope @ slope):
            S.u, S.margins, S.objective, S.gradient = u, margins, value, gradient
        else:
            S.stalled = S.share == 1.0
        S.done = S.stalled or S.relative_gap <= tol
        # 3. less of C, if the step was too short; more of it, where its present share is nearly
        # solved
        if lower and t < SHORT and not S.eased:
            S.eased, S.share = (
                True,
                min(1.0, FIRST_PULL / float(problem.weight @ V.squares() / V.n)),
            )
        elif not lower or 0.5 * float(at_share @ at_share) <= NEARLY * (
            0.5 * float(u @ u) * (1.0 - S.share) + S.share * value
        ):
            S.share = min(1.0, GROWTH * S.share)

    @staticmethod
    def _counting(problem: Reduced, S: ReducedState, relative_gap: float) -> Array:
        """D, with zero for rows that hardly count.

        Together they would change no direction by more than a small part of what it is.
        """
        D = S.share * problem.curvatures(S.margins)
        pull = D * problem.features.squares()
        order = np.argsort(pull)
        faint = np.cumsum(pull[order]) <= FAINT * min(1.0, relative_gap)
        D[order[faint]] = 0.0
        return D
