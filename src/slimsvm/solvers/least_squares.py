"""The reduced problem with equalities in place of inequalities: one linear system.

Problem: :class:`slimsvm.problems.reduced.Reduced` with the least-squares loss,

    min over u of  1/2 |u|^2 + sum_i weight_i (1 - v_i u)^2.

Algorithm: the least-squares SVM (Suykens & Vandewalle 1999, suykens1999lssvm) on the reduced
problem, as in Lin & Lin (2003), lin2003rsvm:

    (I + V'DV) u = V'D 1,     D = diag(2 weight_i).

It is another loss, not another way to the same solution: rows beyond the margin cost as much as
rows before it.

What differs: the factor is used again for what rounding errors left of the gradient, as long as
that helps. Where float32 hardly hides the identity in I + V'DV (its trace is known, nearly, from a
few rows), the products are made in it, in half of the time: two corrections bring the gradient down
to what float64 leaves.

Symbols: u coefficients and intercept, V labels times [K_XR, 1].
Cost: n m^2 + m^3/3, and two passes over V for each correction.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from slimsvm.problems.reduced import Reduced, ReducedState, SignedFeatures, begin
from slimsvm.solvers.duality import ReducedSolver

Array = NDArray[Any]
CORRECTIONS = 3
# norm of the gradient, relative to that of u, with which corrections end: the error of u is not
# larger, as I is in the matrix
CLOSE = 1e-5
SINGLE, HIDDEN = (
    float(np.finfo(np.float32).eps),
    0.5,
)  # float32 is used if its rounding of the trace is less than so much of the identity
SEEN = 500  # rows from which the trace is known
HALF_GRADIENT = 0.25  # of the gap: a correction must halve the gradient


@dataclass(kw_only=True)
class LeastSquaresSystem(ReducedSolver):
    """One linear system.

    ``tol`` is the duality gap relative to the objective, which rounding errors alone keep from
    zero.

    Examples: see :class:`slimsvm.solvers.duality.ReducedSolver`.
    """

    breaks_off: ClassVar[bool] = True

    def init(self, problem: Reduced, start: Array | None = None) -> ReducedState:
        """At zero, or at ``start``: it makes no difference."""
        return begin(problem, start)

    def step(self, problem: Reduced, state: ReducedState, tol: float, max_iter: int) -> None:
        """The system, and corrections."""
        S, V, D = state, problem.features, problem.curvatures(state.margins)
        for single in (
            (True, False) if V.single and self._trace(V, D) * SINGLE <= HIDDEN else (False,)
        ):
            inverse = V.inverse(D, single)
            for correction in range(CORRECTIONS):
                u = S.u - inverse(S.gradient)
                margins, value, gradient = problem.at(u)
                if correction and not 0.5 * float(gradient @ gradient) < HALF_GRADIENT * S.gap:
                    break
                S.u, S.margins, S.objective, S.gradient = u, margins, value, gradient
                if S.relative_gap <= tol and np.linalg.norm(gradient) <= CLOSE * np.linalg.norm(u):
                    break
            if S.relative_gap <= tol:
                break
        S.n_iter += 1
        S.done, S.stalled = True, S.relative_gap > tol

    @staticmethod
    def _trace(V: SignedFeatures, D: Array) -> float:
        """Of V'DV, nearly."""
        some = slice(None, None, max(1, V.n // SEEN))
        return V.n * float(np.mean(D[some] * V.squares(some)))
