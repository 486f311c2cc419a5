"""The Lagrangian method for the dual of the reduced machine: LSVM.

Problem: :class:`slimsvm.problems.reduced.Reduced` with the squared hinge; its dual is

    min over a >= 0 of  1/2 a'Ha - 1'a,     H = V V' + D^-1,     D = diag(2 weight_i),     and u = V'a.

Algorithm: Mangasarian & Musicant (2001), "Lagrangian support vector machines" (mangasarian2001lsvm), used for RSVM in Lin & Lin (2003),
lin2003rsvm. The optimality conditions 0 <= a, 0 <= Ha - 1, a'(Ha - 1) = 0 are the fixed point Ha - 1 = (Ha - 1 - b a)_+ for any b > 0, hence

    a <- H^-1 (1 + (Ha - 1 - b a)_+)     from     a = H^-1 1,     H^-1 = D - D V (I + V'DV)^-1 V'D     (Woodbury).

What differs. b is b_i = share / weight_i, that is beta / c_i for beta = share / C: the iteration of the paper for variables a_i / sqrt(c_i), in
which D is 2C I. So a weight of two is the same as a row twice, and the condition is the paper's, 0 < beta < 1/C, whatever the weights.
|H(a - a*)|, so scaled, shrinks by max(|1 - 2 share|, 1 - share / (C lambda_max(H))) in every step: share = 1/2 is a good choice, and large C
is slow. Iterates may be negative: cut at zero, they are feasible and give a dual value. For large C little is left of that value, and a
second dual point, which is feasible as it is, does better: the multipliers D (1 - V u)_+ that belong to the primal point u. Both are scaled to
their best, (1'a)^2 / (2 a'Ha). The best primal and dual values are kept, and their difference is the gap. Only one pass over V is made in a
step: with r = Ha known, a = D (r - V u), and V'a = (I + V'DV)^-1 V'D r = u.

Symbols: r = Ha; u = V'a; cut = max(0, a); own = D (1 - V u)_+.
Cost of a step: 8 n m (one pass over V), m^2; at the beginning n m^2 + m^3/3.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_solve

from slimsvm.problems.reduced import Reduced, ReducedSolution
from slimsvm.run import SUBSPACE, Certificate

Array = NDArray[Any]
WORK = 1e8  # entries of V visited in a step of the run: 0.05 to 0.1 s
MOST_STEPS = 50  # in a step of the run
STALLED = 1e-15  # relative change of r below which rounding is all that is left
TINY = float(np.finfo(float).tiny)


@dataclass
class LagrangianState:
    """Where the iteration is, and the best values so far."""

    factor: Any
    right: Array  # V'D r
    r: Array
    u: Array  # the best so far
    primal: float = np.inf
    dual: float = 0.0  # of the point zero
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

    def __post_init__(self) -> None:
        if not 0.0 < self.share < 1.0:
            raise ValueError(
                f"share={self.share!r}, which is beta times C, must be between 0 and 1, both excluded: beyond, the iteration may cycle or "
                "diverge. 0.5 is a good choice."
            )

    def init(self, problem: Reduced, start: Array | None = None) -> LagrangianState:
        """At a = H^-1 1; ``start`` is not used, for what the iteration needs is a dual point."""
        D = 2.0 * problem.weight
        return LagrangianState(
            problem.features.factor(D), problem.features.project(D), np.ones(problem.features.n), np.zeros(problem.features.size)
        )

    def step(self, problem: Reduced, state: LagrangianState, tol: float, max_iter: int) -> None:
        """Some steps, and the gap after each."""
        S = state
        for _ in range(int(min(MOST_STEPS, max(1.0, WORK / max(1, problem.features.n * problem.features.size))))):
            if S.n_iter >= max_iter or S.done:
                break
            self._iterate(problem, S)
            S.done = S.relative_gap <= tol or S.stalled

    def _iterate(self, problem: Reduced, S: LagrangianState) -> None:
        D, b = 2.0 * problem.weight, self.share / problem.weight
        # 1. u = (I + V'DV)^-1 V'D r
        u = np.asarray(cho_solve(S.factor, S.right, check_finite=False))

        def work(start: int, end: int, V: Array) -> tuple[Array, Array, Array]:
            part = slice(start, end)
            # 2. a = D (r - V u), which is H^-1 r
            margins, r = V @ u, S.r[part]
            a = D[part] * (r - margins)
            cut = np.maximum(a, 0.0)
            # 3. the next r = 1 + (r - 1 - b a)_+, and V'D r
            new = 1.0 + np.maximum(0.0, r - 1.0 - b[part] * a)
            own = D[part] * np.maximum(0.0, 1.0 - margins)
            points = np.stack([cut, own])
            extremes = np.array([np.abs(new - r).max(), np.abs(new).max()])
            S.r[part] = new
            squares = (np.square(points) / D[part]).sum(axis=1)
            return np.vstack([D[part] * new, points]) @ V, np.stack([points.sum(axis=1), squares]), extremes

        parts = problem.features.each_block(work)
        products, (totals, squares) = sum(part[0] for part in parts), sum(part[1] for part in parts)
        change, largest = np.max([part[2] for part in parts], axis=0)
        # 4. the value of u in the primal problem, and of both points in the dual one; own^2 / D is twice the loss
        right, primal = products[0], 0.5 * float(u @ u) + 0.5 * float(squares[1])
        with np.errstate(divide="ignore", invalid="ignore"):
            dual = float(np.nanmax(0.5 * totals**2 / (np.square(products[1:]).sum(axis=1) + squares), initial=0.0))
        S.n_iter += 1
        if not (np.isfinite(primal) and np.isfinite(right).all()):  # only where kernel values are beyond all reason
            S.stalled = True
            return
        if primal < S.primal:
            S.primal, S.u = primal, u
        S.dual, S.right = max(S.dual, dual), right
        S.stalled = bool(change <= STALLED * largest)

    def certificate(self, problem: Reduced, state: LagrangianState, tol: float) -> Certificate:
        """Objective and gap; ``violation`` is their ratio."""
        return Certificate(SUBSPACE, state.primal, state.relative_gap, state.gap, tol, str(problem.features.dtype))

    def model(self, problem: Reduced, state: LagrangianState) -> ReducedSolution:
        """Coefficients and intercept."""
        return ReducedSolution(state.u[:-1], float(state.u[-1]))
