"""The Lagrangian method for the dual of the reduced machine: LSVM.

Problem: :class:`slimsvm.problems.reduced.Reduced` with the squared hinge; its dual is

    min over a >= 0 of  1/2 a'Ha - 1'a,     H = V V' + D^-1,     D = diag(2 weight_i),     and u = V'a.

Algorithm: Mangasarian & Musicant (2001), "Lagrangian support vector machines" (mangasarian2001lsvm), used for RSVM in Lin & Lin (2003),
lin2003rsvm. The optimality conditions 0 <= a, 0 <= Ha - 1, a'(Ha - 1) = 0 are the fixed point Ha - 1 = (Ha - 1 - b a)_+ for any b > 0, hence

    a <- H^-1 (1 + (Ha - 1 - b a)_+)     from     a = H^-1 1,     H^-1 = D - D V (I + V'DV)^-1 V'D     (Woodbury).

What differs. b is b_i = share / weight_i, that is beta / c_i for beta = share / C: the iteration of the paper for variables a_i / sqrt(c_i), in
which D is 2C I. So a weight of two is the same as a row twice, and the condition is the paper's, 0 < beta < 1/C, whatever the weights.

With z = Ha - 1 cut at zero, the iteration is z <- (z - b a)_+ with a = H^-1 (1 + z): projected gradient steps of length b for

    min over z >= 0 of  1/2 (1 + z)'H^-1(1 + z),     whose curvature is less than 2C: hence the condition.

Near the solution, with N the rows beyond the margin and A the others, the error shrinks by 1 - 2 share / kappa a step,

    kappa = 1 + 2C lambda_max(V_N (I + 2C V_A'V_A)^-1 V_N'),

which is about 1 + |N|/|A| where many rows are support vectors, and grows with C where they are fewer than the columns of V: then 10^5 steps
are not enough. So the steps start from an extrapolated point (Nesterov; Beck & Teboulle 2009, beck2009fista) and lose their momentum when
it points uphill (O'Donoghue & Candes 2015, odonoghue2015restart), for which kappa is replaced by its square root. That is proven for steps of
up to 1/(2C) only, share <= 1/2; with longer ones the iteration is that of the paper.

Iterates may be negative: cut at zero, they are feasible and give a dual value. For large C little is left of that value, and a second dual
point, which is feasible as it is, does better: the multipliers D (1 - V u)_+ that belong to the primal point u. Both are scaled to their best,
(1'a)^2 / (2 a'Ha). The best primal and dual values are kept, and their difference is the gap, taken every tenth step. Only one pass over V is
made in a step: with r = 1 + z known, V'a = (I + V'DV)^-1 V'D r = u, and a = D (r - V u).

Symbols: z, last: this point and the one before; ahead = z + pull (z - last); u = V'a; cut = max(0, a); own = D (1 - V u)_+.
Cost of a step: 4 n m (one pass over V), m^2; twice that where the gap is taken; at the beginning n m^2 + m^3/3.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_solve

from slimsvm.problems.reduced import Reduced, ReducedSolution
from slimsvm.run import SUBSPACE, Certificate
from slimsvm.threads import single_threaded_blas

Array = NDArray[Any]
WORK = 1e8  # entries of V visited in a step of the run: 0.05 to 0.1 s
MOST_STEPS = 50  # in a step of the run
EVERY = 10  # steps from one gap to the next
STALLED = 1e-15  # relative change of z below which rounding is all that is left
TINY = float(np.finfo(float).tiny)


@dataclass
class LagrangianState:
    """Where the iteration is, and the best values so far."""

    factor: Any
    ones: Array  # V'D 1
    z: Array
    last: Array  # the z before
    products: Array  # V'D z, and V'D last
    u: Array  # the best so far
    primal: float = np.inf
    dual: float = 0.0  # of the point zero
    length: float = 1.0  # Nesterov's t, from which the extrapolation follows
    pull: float = 0.0
    n_iter: int = 0
    done: bool = False
    stalled: bool = False

    @property
    def gap(self) -> float:
        """The duality gap between the best points."""
        return max(0.0, self.primal - self.dual)

    @property
    def relative_gap(self) -> float:
        """The same, relative to the objective."""
        return self.gap / max(self.primal, TINY) if np.isfinite(self.primal) else np.inf

    def record(self) -> dict[str, float]:
        """A line of the history; ``violation`` is the relative gap."""
        return {"objective": self.primal, "gap": self.gap, "violation": self.relative_gap, "n_basis": float(self.u.size - 1)}


@dataclass
class Lagrangian:
    """LSVM; ``tol`` is the duality gap relative to the objective.

    Parameters
    ----------
    share : float
        beta times C, between 0 and 1 (both excluded): only there the iteration is known to converge.
    extrapolate : bool
        Whether steps start from an extrapolated point, if share is at most 1/2; False: the paper's iteration.

    Examples
    --------
    >>> import numpy as np
    >>> from slimsvm.kernels import RBF
    >>> from slimsvm.losses import SquaredHinge
    >>> from slimsvm.problems.reduced import Reduced, SignedFeatures
    >>> from slimsvm.run import run
    >>> from slimsvm.solvers.lagrangian import Lagrangian
    >>> from slimsvm.tiles import ready
    >>> rows = ready(RBF(1.0), np.arange(6.0)[:, None], dtype=np.float64)
    >>> V = SignedFeatures(rows, np.array([1.0, 1.0, -1.0, -1.0, 1.0, 1.0]), np.array([0, 3]))
    >>> result = run(Lagrangian(), Reduced(V, np.full(6, 1.0), SquaredHinge()), tol=1e-6, max_iter=1000)
    >>> result.certificate.holds
    True
    """

    share: float = 0.5
    extrapolate: bool = True

    def __post_init__(self) -> None:
        if not 0.0 < self.share < 1.0:
            raise ValueError(
                f"share={self.share!r}, which is beta times C, must be between 0 and 1, both excluded: beyond, the iteration may cycle or "
                "diverge. 0.5 is a good choice."
            )

    def init(self, problem: Reduced, start: Array | None = None) -> LagrangianState:
        """Begin at a = H^-1 1, that is at z = 0; there is no other start."""
        V, D = problem.features, 2.0 * problem.weight
        return LagrangianState(V.factor(D), V.project(D), np.zeros(V.n), np.zeros(V.n), np.zeros((2, V.size)), np.zeros(V.size))

    def step(self, problem: Reduced, state: LagrangianState, tol: float, max_iter: int) -> None:
        """Some steps, and the gap after the last one and every tenth."""
        S = state
        most = int(min(MOST_STEPS, max(1.0, WORK / max(1, problem.features.n * problem.features.size)), max_iter - S.n_iter))
        with single_threaded_blas():  # once: to set the limit takes as long as a step of a small problem
            for k in range(most):
                self._iterate(problem, S, measure=k % EVERY == 0 or k == most - 1)
                S.done = S.relative_gap <= tol or S.stalled
                if S.done:
                    break

    def _iterate(self, problem: Reduced, S: LagrangianState, measure: bool = True) -> None:
        D, b, pull = 2.0 * problem.weight, self.share / problem.weight, S.pull
        # 1. u = (I + V'DV)^-1 V'D r at the extrapolated point
        right = S.ones + S.products[0] + pull * (S.products[0] - S.products[1])
        u = np.asarray(cho_solve(S.factor, right, check_finite=False))

        def work(start: int, end: int, V: Array) -> tuple[Array, Array, Array]:
            part = slice(start, end)
            # 2. a = D (r - V u), which is H^-1 r
            z, margins = S.z[part], V @ u
            ahead = z + pull * (z - S.last[part])
            a = D[part] * (1.0 + ahead - margins)
            # 3. the next z = (z - b a)_+, and V'D z
            new = np.maximum(0.0, ahead - b[part] * a)
            uphill = float((D[part] * (ahead - new)) @ (new - z))
            extremes = np.array([np.abs(new - z).max(), 1.0 + new.max(), uphill])
            S.last[part], S.z[part] = z, new
            if not measure:
                return (D[part] * new)[None] @ V, np.zeros((2, 2)), extremes
            points = np.stack([np.maximum(a, 0.0), D[part] * np.maximum(0.0, 1.0 - margins)])
            squares = (np.square(points) / D[part]).sum(axis=1)
            return np.vstack([D[part] * new, points]) @ V, np.stack([points.sum(axis=1), squares]), extremes

        parts = problem.features.each_block(work)
        products, sums = sum(part[0] for part in parts), sum(part[1] for part in parts)
        change, largest = np.max([part[2][:2] for part in parts], axis=0)
        S.n_iter += 1
        if not np.isfinite(products).all():  # only where kernel values are beyond all reason
            S.stalled = True
            return
        S.products = np.stack([products[0], S.products[0]])
        S.stalled = bool(change <= STALLED * largest)
        # 4. how far the next point is extrapolated; not at all where the last move was against the slope
        if self.extrapolate and self.share <= 0.5:
            length = 1.0 if sum(part[2][2] for part in parts) > 0.0 else S.length
            S.length = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * length**2))
            S.pull = (length - 1.0) / S.length
        if measure:
            self._measured(S, u, products[1:], sums)

    @staticmethod
    def _measured(S: LagrangianState, u: Array, products: Array, sums: Array) -> None:
        """The value of u in the primal problem, and of both points in the dual one; own^2 / D is twice the loss."""
        totals, squares = sums
        primal = 0.5 * float(u @ u) + 0.5 * float(squares[1])
        with np.errstate(divide="ignore", invalid="ignore"):
            dual = float(np.nanmax(0.5 * totals**2 / (np.square(products).sum(axis=1) + squares), initial=0.0))
        if primal < S.primal:
            S.primal, S.u = primal, u
        S.dual = max(S.dual, dual)

    def certificate(self, problem: Reduced, state: LagrangianState, tol: float) -> Certificate:
        """Objective and gap; ``violation`` is their ratio."""
        return Certificate(SUBSPACE, state.primal, state.relative_gap, state.gap, tol, str(problem.features.dtype))

    def model(self, problem: Reduced, state: LagrangianState) -> ReducedSolution:
        """Coefficients and intercept."""
        return ReducedSolution(state.u[:-1], float(state.u[-1]))
