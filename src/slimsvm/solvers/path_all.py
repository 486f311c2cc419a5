"""The path of a sparse model whose basis is all rows that carry weight: one point, exact.

Problem: :class:`slimsvm.solvers.kernel_newton.AllRows`, for losses with a derivative. Newton's
method there finds the solution among all functions; the rows that have a coefficient at the end are
the basis, of the one size that there is.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slimsvm.expansion import Expansion
from slimsvm.frames import Frame, in_memory
from slimsvm.losses import Loss
from slimsvm.precision import SUBSPACE_TOL, is_small
from slimsvm.run import Result, run
from slimsvm.solvers.kernel_newton import AllRows, KernelNewton
from slimsvm.solvers.path_points import PathModel, PathPoint, Scoring
from slimsvm.tiles import prepare
from slimsvm.training import Data, Fit

Array = NDArray[Any]


def path_over_all_rows(
    data: Data,
    weight: Array,
    loss: Loss,
    fit_intercept: bool,
    scoring: Scoring,
    fit: Fit,
    *,
    tol: float,
    max_iter: int,
    max_memory: float | None,
    seed: int,
) -> Result:
    """The exact solution as a :class:`slimsvm.solvers.path.PathModel` of one point.

    Parameters
    ----------
    data : Data
        Rows, as they were given and ready for products, kernel and targets.
    weight, loss, fit_intercept
        As in :class:`slimsvm.solvers.kernel_newton.AllRows`.
    scoring : Scoring
        For the scores of the point.
    fit : Fit
        Limits, threads, watchers.
    tol : float
        Relative gap; few rows go on to near float64 precision.
    max_iter : int
        Limit on Newton steps.
    max_memory : float, optional
        Megabytes for the kernel values among the rows that carry weight.
    seed : int
        Of the order in which rows join.
    """
    where = in_memory(data.rows, n_threads=fit.threads)
    given = (Frame.like(data.rows), data.target, weight, loss, fit_intercept)
    problem = AllRows(where, *given, max_memory)
    solver = KernelNewton(seed=int(np.random.default_rng(seed).integers(2**31 - 1)))
    options: dict[str, Any] = {"tol": SUBSPACE_TOL if is_small(data.rows.n) else tol}
    options |= {"max_iter": max_iter, "limits": fit.limits, "watchers": fit.watchers}

    def widened() -> AllRows:
        wide = prepare(data.kernel, data.X, dtype=np.float64)
        return AllRows(
            in_memory(wide, n_threads=fit.threads), Frame.like(wide), *given[1:], max_memory
        )

    if problem.rounding_error() > tol:  # float32 would hide what was asked for
        problem = widened()
    result = run(solver, problem, **options)
    narrow = np.dtype(problem.frame.dtype) != np.float64
    if result.status.reason == "stalled" and narrow:  # it did: the gap has squares of all errors
        first, start = result, (result.model.coef, result.model.intercept)
        options["max_iter"] = max(1, max_iter - first.n_iter)
        result = run(solver, widened(), start=start, **options)
        history = {k: np.append(v, result.history[k]) for k, v in first.history.items()}
        result = replace(result, history=history, n_iter=first.n_iter + result.n_iter)
    model, certificate = result.model, result.certificate
    rows = np.flatnonzero(model.coef.any(axis=1))
    basis, coef, exact = data.X[rows], model.coef[rows], certificate.precision == "float64"
    f = Expansion(data.kernel, basis, coef, model.intercept, exact=exact)
    point = PathPoint(
        rows.size,
        basis,
        coef,
        model.intercept,
        rows,
        certificate.objective,
        certificate.gap,
        scoring.measure(model.scores, data.target, weight),
        scoring.validated(f),
        bound=certificate.gap,
        rounding=certificate.rounding,
    )
    return replace(result, model=PathModel([point], point, rows.size))
