"""Linear problems, solved by the way that suits them.

| errors | rows | way | then, where that is too slow |
|---|---|---|---|
| squared | no fewer than features | Newton, compiled passes | Newton, with all precautions |
| squared | fewer | dual coordinate descent | the line above |
| plain | any | dual coordinate descent | cutting planes |

Few rows are solved to near float64 precision: by Newton's method alone, or, for plain errors, by
pair steps with all products of rows in memory.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import reduce
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from slimsvm.ending import FULL, Certificate, Status
from slimsvm.precision import LINEAR_CUTS_TOL, NEWTON_TOL, is_small
from slimsvm.problems.linear import LinearFit, LinearSolution
from slimsvm.rows import MemoryRows
from slimsvm.run import Result, run
from slimsvm.solvers.linear_descent import LinearDescent
from slimsvm.solvers.linear_primal import LinearPrimal
from slimsvm.training import Fit

Array = NDArray[Any]
# passes of the descent after which another way goes on; nearly all problems need fewer than 50
MOST_PASSES = 200
MOST_STEPS = 30  # of Newton's after which more precautions are taken: 4 to 15 are usual
# sum_i weight_i |x_i|^2 beyond which Newton's matrix has few digits left of its ones
RESOLVED = 1e12
NEAR_TOL = 1e-3  # for few rows, from where pair steps go on
SETTLED = 1e-20  # relative gap of few rows with squared errors that is rounding
ROUGH = 1e-9  # the same with plain errors: above, more is tried
TINY = float(np.finfo(float).tiny)


def linear(
    problem: LinearFit,
    oracle: Callable[..., Any],
    *,
    tol: float,
    max_iter: int,
    fit: Fit,
    start: LinearSolution | None = None,
    seed: int = 0,
    planes: Any = None,
) -> Result:
    """Solved; the model is a :class:`slimsvm.problems.linear.LinearSolution`.

    Parameters
    ----------
    problem : LinearFit
        Rows, targets, weights, loss and the kind of intercept.
    oracle : callable
        Makes the oracle of cutting planes: :class:`slimsvm.oracles.LossOracle`.
    tol : float
        Relative duality gap of every column.
    max_iter : int
        Limit on Newton's steps, passes over the rows, or rounds of cutting planes; -1: none.
    fit : Fit
        Limits, threads, watchers.
    start : LinearSolution, optional
        Where to begin.
    seed : int
        Of the order in which rows are visited.
    planes : CuttingPlane, optional
        Of plain errors: cutting planes that are followed to the letter, with nothing after them.

    Examples
    --------
    >>> from slimsvm.losses import EpsilonInsensitive
    >>> from slimsvm.oracles import LossOracle
    >>> from slimsvm.run import Limits
    >>> X, y = np.array([[0.0], [1.0], [2.0]]), np.array([[1.0], [3.0], [5.0]])
    >>> problem = LinearFit(X, y, np.full(3, 9.0), EpsilonInsensitive(0.0))
    >>> result = linear(problem, LossOracle, tol=1e-4, max_iter=-1, fit=Fit(Limits(), 1, ()))
    >>> result.model.coef.round(9).tolist(), result.model.intercept.round(9).tolist()
    ([[2.0]], [1.0])
    """
    squared = problem.loss.name.startswith("squared")
    if planes is not None and not squared:
        own = replace(planes, keep_rows=False)
        return _planes(problem, oracle, own, tol, max_iter, fit, start)
    way = _squared if squared else _plain
    return way(problem, oracle, tol, max_iter, fit, start, seed).against(tol)


def _planes(
    problem: LinearFit, oracle: Any, planes: Any, tol: float, max_iter: int, fit: Fit, start: Any
) -> Result:
    """Cutting planes and nothing else, column by column where weights differ."""
    W, b, each = np.zeros((problem.size, problem.n_columns)), np.zeros(problem.n_columns), []
    for one in _groups(problem):
        weight = problem.weight if problem.weight.ndim == 1 else problem.weight[:, one.start]
        part, begin = replace(problem, target=problem.target[:, one], weight=weight), None
        if start is not None:
            some = LinearSolution(start.coef[:, one], start.intercept[one])
            begin = _with_feature(part, some)
        watched: Any = {"limits": fit.limits, "watchers": fit.watchers, "start": begin}
        result = run(planes, _one_slack(part, oracle), tol=tol, max_iter=max_iter, **watched)
        found = _without_feature(part, result.model.coef, result.model.intercept)
        W[:, one], b[one] = found.coef, found.intercept
        each.append(result)
    return replace(reduce(beside, each), model=LinearSolution(W, b))


def _groups(problem: LinearFit) -> list[slice]:
    """Columns that are one problem: all, or each for itself where weights differ."""
    if problem.weight.ndim == 1:
        return [slice(None)]
    return [slice(c, c + 1) for c in range(problem.n_columns)]


def _squared(
    problem: LinearFit, oracle: Any, tol: float, max_iter: int, fit: Fit, start: Any, seed: int
) -> Result:
    small = is_small(problem.n)
    watched: dict[str, Any] = {"limits": fit.limits, "watchers": fit.watchers}
    solver: Any = LinearPrimal()
    usual, enough = MOST_STEPS, tol
    if small:
        tol, enough = min(tol, NEWTON_TOL), SETTLED
    elif problem.size > problem.n:
        solver, usual = LinearDescent(seed=seed), MOST_PASSES
    if float((problem.squares @ problem.weight).max()) > RESOLVED:
        return _newton(problem, tol, max_iter, fit, start)
    most = usual if max_iter < 0 else min(usual, max_iter)
    result = run(solver, problem, tol=tol, max_iter=most, start=start, **watched)
    left = -1 if max_iter < 0 else max_iter - result.n_iter
    if result.certificate.violation <= enough or left == 0:
        return result
    if fit.limits.reason() is not None:
        return _ended(result, fit)
    # at a large C rows come and go in every step, and where that has led to is no good start
    return _after(result, _newton(problem, tol, left, fit, start))


def _newton(problem: LinearFit, tol: float, max_iter: int, fit: Fit, start: Any) -> Result:
    """Newton's method with all precautions, column by column where weights differ."""
    from slimsvm.solvers.linear_newton import LinearNewton, LinearProblem  # few come here
    from slimsvm.solvers.spaces import ExplicitSpace

    inner = _explicit(problem)
    W, b, each = np.zeros((inner.size, problem.n_columns)), np.zeros(problem.n_columns), []
    for one in _groups(problem):
        # scores are carried on from step to step: products in float32 would hide how far they stray
        space = ExplicitSpace(MemoryRows(inner.X, n_threads=problem.n_threads), exact=True)
        weight = problem.weight if problem.weight.ndim == 1 else problem.weight[:, one.start]
        of_group = LinearProblem(space, inner.target[:, one], weight, inner.loss, inner.free)
        begin = None
        if start is not None:
            coef, intercept = _with_feature(problem, start)
            begin = coef[:, one], intercept[one]
        each.append(
            run(
                LinearNewton(),
                of_group,
                tol=tol,
                max_iter=max_iter,
                start=begin,
                limits=fit.limits,
                watchers=fit.watchers,
            )
        )
        W[:, one], b[one] = each[-1].model.coef, each[-1].model.intercept
    return replace(reduce(beside, each), model=_without_feature(problem, W, b))


def _plain(
    problem: LinearFit, oracle: Any, tol: float, max_iter: int, fit: Fit, start: Any, seed: int
) -> Result:
    small, solver = is_small(problem.n), LinearDescent(seed=seed)
    watched: dict[str, Any] = {"limits": fit.limits, "watchers": fit.watchers}
    most = MOST_PASSES if max_iter < 0 else min(MOST_PASSES, max_iter)
    near = max(tol, NEAR_TOL) if small else tol
    result = run(solver, problem, tol=near, max_iter=most, start=start, **watched)
    if small and fit.limits.reason() is None:
        result = _exact(problem, result, result.model.duals, fit)
        if result.certificate.violation <= ROUGH:
            return result
    elif result.status.reason != "max_iter":
        return result
    left = -1 if max_iter < 0 else max_iter - result.n_iter
    if left == 0 or problem.weight.ndim == 2:
        return result
    if fit.limits.reason() is not None:
        return _ended(result, fit)
    # features of very different size: cuts get on where steps along single variables crawl
    from slimsvm.solvers.cutting_plane import CuttingPlane

    planes, cuts = CuttingPlane(keep_rows=small), _one_slack(problem, oracle)
    state = planes.init(cuts, _with_feature(problem, result.model))
    goal = LINEAR_CUTS_TOL if small else tol
    more = run(planes, cuts, tol=goal, max_iter=left, start=state, **watched)
    duals = more.model.row_duals
    more = replace(more, model=_without_feature(problem, more.model.coef, more.model.intercept))
    if small and fit.limits.reason() is None:
        more = _exact(problem, more, -duals.T, fit)
    if not more.certificate.violation < result.certificate.violation:
        more = replace(more, model=result.model, certificate=result.certificate)
    return _after(result, more)


def _one_slack(problem: LinearFit, oracle: Any) -> Any:
    """The problem of cutting planes; a penalised intercept is a further feature of it."""
    from slimsvm.solvers.cutting_plane import OneSlack
    from slimsvm.solvers.spaces import ExplicitSpace

    inner = _explicit(problem)
    space = ExplicitSpace(MemoryRows(inner.X, n_threads=problem.n_threads))
    risk = oracle(problem.loss, problem.target, problem.weight, problem.n_threads)
    return OneSlack(space, risk, inner.scaling)


def _exact(problem: LinearFit, result: Result, duals: Array, fit: Fit) -> Result:
    """Few rows: on from dual points nearby, to near float64 precision; or what it was."""
    from slimsvm.solvers.polish import polished

    X, scaling, columns = problem.X, problem.scaling, problem.n_columns
    X = np.asarray(X.toarray() if sp.issparse(X) else X, np.float64)
    W, b = np.empty((problem.size, columns)), np.empty(columns)
    primal, dual, points = np.empty(columns), np.empty(columns), []
    for c in range(columns):
        column = problem.column(c)
        v, W[:, c] = polished(X, column, duals[c], scaling, fit.limits)
        points.append(v)
        scores = X @ W[:, c]
        b[c] = column.intercept(scores, scaling, scaling**2 * float(v.sum()) if scaling else 0.0)
        primal[c], dual[c] = column.values(W[:, c], b[c], scores, v, W[:, c], scaling)
    gap = np.maximum(0.0, primal - dual)
    relative = float((gap / np.maximum(primal, TINY)).max())
    if relative > max(ROUGH, result.certificate.violation):
        return result
    total, tol = float(primal.sum()), result.certificate.tol
    found = LinearSolution(W, b)
    certificate = Certificate(FULL, total, relative, float(gap.sum()), tol, "float64")
    certificate = certificate.rounded(problem.rounding(found, np.stack(points)))
    return replace(result, model=found, certificate=certificate)


# -- a penalised intercept as a further feature ----------------------------------------------------


def _explicit(problem: LinearFit) -> LinearFit:
    """The same problem with the constant feature of a penalised intercept among the others."""
    X, scaling = problem.X, problem.scaling
    if not 0.0 < scaling < np.inf:
        return problem
    more = np.full((problem.n, 1), scaling, X.dtype)
    X = sp.hstack([X, more], format="csr") if sp.issparse(X) else np.hstack([X, more])
    return replace(problem, X=X, scaling=0.0)


def _with_feature(problem: LinearFit, model: LinearSolution) -> tuple[Array, Array]:
    """Weights and intercepts as that problem has them."""
    coef, b = model.coef, model.intercept
    if not 0.0 < problem.scaling < np.inf:
        return coef, b
    return np.vstack([coef, b / problem.scaling]), np.zeros_like(b)


def _without_feature(problem: LinearFit, coef: Array, b: Array) -> LinearSolution:
    """The way back."""
    if not 0.0 < problem.scaling < np.inf:
        return LinearSolution(coef, b)
    return LinearSolution(coef[:-1], problem.scaling * coef[-1])


# -- results together ------------------------------------------------------------------------------


def _ended(result: Result, fit: Fit) -> Result:
    """One that ended at a limit of ours, and was to be followed by another if there were time."""
    reason = fit.limits.reason()
    if reason is None or result.status.reason != "max_iter":
        return result
    return replace(result, status=Status(reason))


def _after(first: Result, second: Result) -> Result:
    """One result after the other: the last one's model, all steps and the whole history."""
    history = {
        name: np.concatenate([first.history[name], second.history[name]])
        for name in first.history
        if name in second.history
    }
    return replace(second, history=history, n_iter=first.n_iter + second.n_iter)


def beside(first: Result, second: Result) -> Result:
    """Results of columns of their own: sums, and the worse of both."""
    a, b = first.certificate, second.certificate
    certificate = replace(
        a,
        objective=a.objective + b.objective,
        violation=max(a.violation, b.violation),
        gap=a.gap + b.gap,
        rounding=a.rounding + b.rounding,
    )
    status = first.status if not first.status.converged else second.status
    steps = max(first.n_iter, second.n_iter)
    return replace(_after(first, second), certificate=certificate, status=status, n_iter=steps)
