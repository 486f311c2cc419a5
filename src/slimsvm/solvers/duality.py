"""What the solvers of the reduced problem, and those of its dual, have in common."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from slimsvm.problems.reduced import Reduced, ReducedSolution, ReducedState
from slimsvm.run import SUBSPACE, Certificate
from slimsvm.solvers.line_search import least_along

Array = NDArray[Any]
TINY = float(np.finfo(float).tiny)


@dataclass(kw_only=True)
class BestValues:
    """The best primal and dual values so far, and how far a solver is."""

    primal: float = np.inf
    dual: float = 0.0  # of the point zero
    n_iter: int = 0
    done: bool = False
    stalled: bool = False  # rounding is all that is left

    @property
    def objective(self) -> float:
        """The best primal value."""
        return self.primal

    @property
    def gap(self) -> float:
        """The duality gap between the best points."""
        return max(0.0, self.primal - self.dual)

    @property
    def relative_gap(self) -> float:
        """The same, relative to the value of the primal problem."""
        return self.gap / max(self.primal, TINY) if np.isfinite(self.primal) else np.inf

    def record(self) -> dict[str, float]:
        """A line of the history; ``violation`` is the relative gap."""
        return {"objective": self.primal, "gap": self.gap, "violation": self.relative_gap}


class _Measured(Protocol):
    """A state with a primal point u, its value, and a duality gap."""

    u: Array

    @property
    def objective(self) -> float: ...

    @property
    def gap(self) -> float: ...

    @property
    def relative_gap(self) -> float: ...


class ReducedSolver:
    """A solver of the reduced problem, or of its dual: how it ends.

    Examples
    --------
    All of them are used alike; the loss is what each is for:

    >>> from slimsvm.kernels import RBF
    >>> from slimsvm.losses import LeastSquares, SmoothHinge, SquaredHinge
    >>> from slimsvm.problems.reduced import SignedFeatures
    >>> from slimsvm.run import run
    >>> from slimsvm.solvers.lagrangian import AcceleratedLagrangian, Lagrangian
    >>> from slimsvm.solvers.least_squares import LeastSquaresSystem
    >>> from slimsvm.solvers.smooth_newton import SmoothNewton
    >>> from slimsvm.frames import Frame, in_memory
    >>> from slimsvm.tiles import prepare
    >>> rows = prepare(RBF(1.0), np.arange(6.0)[:, None], dtype=np.float64)
    >>> signed = in_memory(rows, np.array([1.0, 1.0, -1.0, -1.0, 1.0, 1.0]))
    >>> V = SignedFeatures(signed, Frame.like(rows), np.array([0, 3]))
    >>> for solver, C, loss in (
    ...     (Lagrangian(), 1.0, SquaredHinge()),
    ...     (AcceleratedLagrangian(), 1e4, SquaredHinge()),
    ...     (SmoothNewton(), 10.0, SmoothHinge(beta=5.0)),
    ...     (LeastSquaresSystem(), 10.0, LeastSquares()),
    ... ):
    ...     problem = Reduced(V, np.full(6, C), loss)
    ...     print(run(solver, problem, tol=1e-6, max_iter=1000).certificate.holds)
    True
    True
    True
    True
    """

    def certificate(self, problem: Reduced, state: _Measured, tol: float) -> Certificate:
        """Objective and gap, with the loss of the problem; ``violation`` is their ratio."""
        V, u = problem.features, state.u
        margins, _, gradient = problem.at(u)
        measured = (state.objective, state.relative_gap, state.gap, tol, str(V.dtype))
        off = V.rounding(problem.loss, problem.weight, u, margins, gradient)
        return Certificate(SUBSPACE, *measured).rounded(off)

    def model(self, problem: Reduced, state: _Measured) -> ReducedSolution:
        """Coefficients and intercept."""
        return ReducedSolution(state.u[:-1], float(state.u[-1]))


def step_along(
    problem: Reduced, weight: Array, state: ReducedState, d: Array
) -> tuple[float, Array]:
    """The t with the least value at u + t d, where rows have these weights; and V d."""
    d_margins = problem.features.margins(d)
    t = least_along(
        problem.loss,
        np.ones((problem.features.n, 1)),
        weight,
        state.margins[:, None],
        d_margins[:, None],
        np.array([state.u @ d]),
        np.array([d @ d]),
    )
    return float(t[0]), d_margins
