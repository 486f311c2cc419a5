"""Linear problems over rows that are not in memory: Newton's method, or cutting planes.

Coordinate descent goes from row to row and has no passes. Targets, weights and scores of all rows
are here: 8 bytes a row and column each.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from slimsvm.losses import Loss
from slimsvm.problems.linear import LinearSolution
from slimsvm.run import Result, run
from slimsvm.solvers.cutting_plane import CuttingPlane, OneSlack
from slimsvm.solvers.linear import beside
from slimsvm.solvers.linear_newton import LinearNewton, LinearProblem
from slimsvm.solvers.spaces import ExplicitSpace
from slimsvm.training import Fit

Array = NDArray[Any]


@dataclass(frozen=True)
class WithConstant:
    """Rows with one more feature, that of a penalised intercept."""

    value: float

    def __call__(self, X: Any) -> Any:
        """X and the constant."""
        more = np.full((X.shape[0], 1), self.value, X.dtype)
        return sp.hstack([X, more], format="csr") if sp.issparse(X) else np.hstack([X, more])


@dataclass(frozen=True)
class LinearOnRows:
    """Rows, targets (n, columns), weights with C ((n,) or (n, columns)), and the loss.

    ``scaling`` is that of the intercept: infinite if it is free, zero if there is none.
    """

    rows: Any
    target: Array
    weight: Array
    loss: Loss
    scaling: float

    @property
    def penalised(self) -> bool:
        """Whether the intercept is the weight of one more feature."""
        return bool(0.0 < self.scaling < np.inf)

    def features(self) -> Any:
        """The rows as a solver sees them."""
        if not self.penalised:
            return self.rows
        return self.rows.with_features(WithConstant(self.scaling), self.rows.n_features + 1)

    def model(self, coef: Array, intercept: Array) -> LinearSolution:
        """Weights and intercepts for the features as they were given."""
        if not self.penalised:
            return LinearSolution(coef, intercept)
        return LinearSolution(coef[:-1], self.scaling * coef[-1])


def linear_on_rows(
    problem: LinearOnRows,
    oracle: Callable[..., Any],
    *,
    tol: float,
    max_iter: int,
    fit: Fit,
    planes: CuttingPlane | None = None,
) -> Result:
    """Solved; see :func:`slimsvm.solvers.linear.linear`."""
    if problem.loss.name.startswith("squared"):
        return _newton(problem, tol, max_iter, fit)
    risk = oracle(problem.loss, problem.target, problem.weight, fit.threads)
    scaling = np.inf if problem.scaling == np.inf else 0.0
    cuts = OneSlack(ExplicitSpace(problem.features()), risk, scaling)
    solver = CuttingPlane() if planes is None else planes
    result = run(
        replace(solver, keep_rows=False),
        cuts,
        tol=tol,
        max_iter=max_iter,
        limits=fit.limits,
        watchers=fit.watchers,
    )
    return replace(result, model=problem.model(result.model.coef, result.model.intercept))


def _newton(problem: LinearOnRows, tol: float, max_iter: int, fit: Fit) -> Result:
    """All columns at once, or one by one where weights differ."""
    space = ExplicitSpace(problem.features(), exact=True)
    weight, columns, free = problem.weight, problem.target.shape[1], problem.scaling == np.inf
    groups = [slice(c, c + 1) for c in range(columns)] if weight.ndim == 2 else [slice(None)]
    results = []
    for one in groups:
        own = weight if weight.ndim == 1 else weight[:, one.start]
        part = LinearProblem(space, problem.target[:, one], own, problem.loss, free)
        limits: Any = {"limits": fit.limits, "watchers": fit.watchers}
        results.append(run(LinearNewton(), part, tol=tol, max_iter=max_iter, **limits))
    coef = np.hstack([of.model.coef for of in results])
    intercept = np.concatenate([of.model.intercept for of in results])
    result = results[0]
    for other in results[1:]:
        result = beside(result, other)
    return replace(result, model=problem.model(coef, intercept))
