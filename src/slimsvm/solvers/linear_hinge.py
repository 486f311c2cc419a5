"""The hinge with explicit features: cutting planes, and for few rows the exact solution.

Problem: min over w and b of 1/2 |w|^2 + sum_i weight_i max(0, 1 - y_i (w'x_i + b)) for every column
of labels y.

Algorithm: one-slack cutting planes (:mod:`slimsvm.solvers.cutting_plane`) to the tolerance. Few
rows go on from the multipliers of the cuts by pair steps, with all products of rows in memory
(:mod:`slimsvm.solvers.polish`). Where these crawl, because features are of very different size,
they begin once more after further cuts.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slimsvm.ending import FULL, Certificate
from slimsvm.precision import LINEAR_CUTS_TOL, is_small
from slimsvm.rows import MemoryRows
from slimsvm.run import Limits, Result, run
from slimsvm.solvers.cutting_plane import CuttingPlane, OneSlack
from slimsvm.solvers.linear_newton import LinearSolution
from slimsvm.solvers.polish import polished
from slimsvm.solvers.spaces import ExplicitSpace
from slimsvm.training import Fit

Array = NDArray[Any]
ROUGH = 1e-9  # relative gap above which few rows are tried again with more cuts
TINY = float(np.finfo(float).tiny)


def linear_hinge(
    X: Any,
    oracle: Any,
    fit_intercept: bool,
    *,
    tol: float,
    max_iter: int,
    fit: Fit,
    start: tuple[Array, Array] | None = None,
    solver: CuttingPlane | None = None,
) -> Result:
    """Solved; the model is a :class:`slimsvm.solvers.linear_newton.LinearSolution`.

    Parameters
    ----------
    X : array or CSR matrix of shape (n, d)
        The rows.
    oracle : LossOracle
        The hinge of these rows.
    fit_intercept : bool
        Whether there is an intercept; it is not penalised.
    tol : float
        Relative gap of every column.
    max_iter : int
        Limit on rounds; -1: none.
    fit : Fit
        Limits, threads, watchers.
    start : tuple of arrays, optional
        Weights and intercepts to begin with.
    solver : CuttingPlane, optional
        Cutting planes that are followed to the letter: there is nothing after them.

    Examples
    --------
    >>> import numpy as np
    >>> from slimsvm.losses import Hinge
    >>> from slimsvm.oracles import LossOracle
    >>> from slimsvm.run import Limits
    >>> from slimsvm.solvers.linear_hinge import linear_hinge
    >>> from slimsvm.training import Fit
    >>> X, y = np.array([[1.0], [-1.0]]), np.array([[1.0], [-1.0]])
    >>> oracle, fit = LossOracle(Hinge(), y, np.full(2, 9.0)), Fit(Limits(), 1, ())
    >>> result = linear_hinge(X, oracle, True, tol=1e-3, max_iter=-1, fit=fit)
    >>> result.model.coef.round(9).tolist(), result.certificate.holds
    ([[1.0]], True)
    """
    small = is_small(oracle.n)
    space = ExplicitSpace(MemoryRows(X, n_threads=fit.threads))
    problem = OneSlack(space, oracle, np.inf if fit_intercept else 0.0)
    watched: dict[str, Any] = {"limits": fit.limits, "watchers": fit.watchers}
    if solver is not None:
        own = replace(solver, keep_rows=False)
        return run(own, problem, tol=tol, max_iter=max_iter, start=start, **watched)
    solver = CuttingPlane(keep_rows=small)
    state = solver.init(problem, start)
    result = run(solver, problem, tol=tol, max_iter=max_iter, start=state, **watched)
    if not small or fit.limits.reason() is not None:
        return result.against(tol)
    found = _exact(X, oracle, result, fit_intercept, fit.limits)
    left = -1 if max_iter < 0 else max_iter - result.n_iter
    if found.certificate.violation > ROUGH and result.status.converged and left != 0:
        # features of very different size: more cuts get on where the exact solver crawls
        more = run(solver, problem, tol=LINEAR_CUTS_TOL, max_iter=left, start=state, **watched)
        history = {
            name: np.concatenate([values, more.history[name]])
            for name, values in result.history.items()
        }
        steps = result.n_iter + more.n_iter
        result = replace(more, status=result.status, history=history, n_iter=steps)
        found = _exact(X, oracle, result, fit_intercept, fit.limits)
    return found.against(tol)


def _exact(X: Any, oracle: Any, result: Result, intercept: bool, limits: Limits) -> Result:
    """Few rows: on from the multipliers of the cuts; what it was, where that fails."""
    W, gap = np.empty_like(result.model.coef), np.empty(oracle.n_columns)
    for c in range(oracle.n_columns):
        sign = np.ascontiguousarray(oracle.target[:, c])
        duals = np.abs(result.model.row_duals[:, c])
        a, W[:, c] = polished(X, sign, oracle.weight, duals, intercept, limits)
        gap[c] = float(W[:, c] @ W[:, c]) - float(a.sum())
    scores = X @ W
    b = oracle.intercept(scores, middle=True) if intercept else np.zeros(oracle.n_columns)
    risk = oracle.risk(scores + b)
    values = 0.5 * np.einsum("jc,jc->c", W, W) + risk
    gap = np.maximum(0.0, gap + risk)
    relative = float((gap / np.maximum(values, TINY)).max())
    if relative > max(ROUGH, result.certificate.violation):
        return result
    total, tol = float(values.sum()), result.certificate.tol
    certificate = Certificate(FULL, total, relative, float(gap.sum()), tol, "float64")
    return replace(result, model=LinearSolution(W, b), certificate=certificate)
