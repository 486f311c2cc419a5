"""Decision values of rows that a function was not trained on, from the kernel values of the fit.

Problem: a dual problem of two classes (:mod:`slimsvm.problems.dual_qp`), solved; now again for each
fold, without the rows of that fold, and the decision values of these rows.

Algorithm: to leave rows out is to set their upper bounds to zero. The problem of a fold has the
same Gram as that of the fit, whose cache is warm, and all its rows, so that the inner products of
the rows left out are carried along. It begins at the solution of the fit with the coefficients of
the fold taken away, and those of the other class reduced, one by one, until the equality holds
again: s changes by the rows of those coefficients only. (Forms with two equalities begin anew.)
What is asked for is the tolerance, not the last digits: nothing is polished, nothing is shrunk.

Cost: a fraction of the fit for each fold; how large, depends on how many coefficients are free.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slimsvm.gram import Gram
from slimsvm.multiclass import Part
from slimsvm.probability import fold_of_rows, sigmoid
from slimsvm.problems.dual_qp import DualQP
from slimsvm.run import Limits, Result, run
from slimsvm.solvers.decomposition import WHOLE, Decomposition
from slimsvm.solvers.dual_state import DualSolution
from slimsvm.solvers.smo import smo

Array = NDArray[Any]
LARGEST_TOL = 1e-3  # for a sigmoid, which averages over all rows
MOST_STEPS = 10**9
NEARER = 0.01  # of the tolerance, for few rows: dense and sparse rows end at the same scores
# steps of SMO where one subproblem is the whole problem, and variables they visit: a second
STEPS_A_ROW, WORK = 10_000, 1_000_000_000


def out_of_fold(
    problem: DualQP,
    solution: DualSolution,
    without: Callable[[Array], DualQP],
    outputs: Callable[[Result], tuple[Array, float]],
    fold: Array,
    tol: float,
    limits: Limits,
) -> Array:
    """Decision values of all rows, each from a function trained without its fold.

    Parameters
    ----------
    problem, solution : DualQP, DualSolution
        Of all rows.
    without : callable
        The problem with the same Gram in which only the given rows (a mask) have weight.
    outputs : callable
        The dual point in units of the decision function, and the intercept, from a Result.
    fold : int array
        The fold of each row.
    tol : float
        Largest violation of the KKT conditions.
    limits : Limits
        Of time.
    """
    sign, s = problem.sign, _products_with_all_rows(problem, solution)
    score = np.zeros(sign.size)
    few = problem.gram.n <= WHOLE
    K = problem.gram.block(np.arange(problem.gram.n)) if few else None
    diag = problem.gram.diag()
    for k in np.unique(fold):
        held = fold == k
        left = np.unique(sign[~held])
        if left.size < 2:  # nothing to separate: the class that is left, as LIBSVM says
            score[held] = left.sum()
            continue
        part = without(~held)
        start = None if part.two_equalities else _start(problem, solution.a, s, held, K)
        if start is not None and K is not None:
            score[held] = _few_rows(part, start, K, diag, tol)[held]
            continue
        result = run(
            Decomposition(shrinking=False, exact=False),
            part,
            tol=tol,
            max_iter=MOST_STEPS,
            limits=limits,
            start=start,
        )
        point, intercept = outputs(result)
        total = float(result.model.a.sum())
        scale = float(point.sum()) / total if total > 0.0 else 1.0
        score[held] = scale * result.model.s[held] + intercept
    return score


def _products_with_all_rows(problem: DualQP, solution: DualSolution) -> Array:
    """s at every row; the Gram has all rows among its active columns afterwards."""
    gram, s = problem.gram, solution.s.copy()
    if gram.columns is not None and gram.columns.size < gram.n:
        away = np.setdiff1d(np.arange(gram.n), gram.columns)
        coef = problem.coef(solution.a)
        support = np.flatnonzero(coef)
        s[away] = gram.products(support, coef[support], away)
        gram.grow(away)
    return s


def _few_rows(part: DualQP, start: DualSolution, K: Array, diag: Array, tol: float) -> Array:
    """Decision values of all rows by the problem of a fold, which is one subproblem."""
    a, o = start.a, part.order(start.s)
    most = min(STEPS_A_ROW * a.size, WORK // a.size)
    smo(K, diag, part.sign, part.upper, a, o, a.size, NEARER * tol, most)
    s = o - part.sign * part.linear
    return np.asarray(s + part.multiplier(a, s, np.arange(a.size))[0])


def _start(problem: DualQP, a: Array, s: Array, held: Array, K: Array | None) -> DualSolution:
    """The solution without the held rows, balanced by as few coefficients as possible."""
    sign, new = problem.sign, np.where(held, 0.0, a)
    miss = float(sign @ new)
    heavy = np.flatnonzero((sign * miss > 0) & (new > 0))
    kept = np.maximum(0.0, np.cumsum(new[heavy]) - abs(miss))  # of the first ones, nothing
    new[heavy] = np.minimum(new[heavy], kept)
    delta = sign * (new - a)
    moved = np.flatnonzero(delta)
    return DualSolution(new, s + _change(problem.gram, moved, delta[moved], K), (0.0, 0.0))


def _change(gram: Gram, moved: Array, delta: Array, K: Array | None) -> Array:
    """What becomes of s where some coefficients change."""
    if K is not None:
        return np.asarray(delta.astype(K.dtype) @ K[moved], np.float64)
    columns = np.arange(gram.n) if gram.columns is None else gram.columns
    local, out = np.zeros(gram.n), np.empty(gram.n)
    gram.add(moved, delta, local)
    out[columns] = local
    return out


def sigmoid_of_pair(
    problem: DualQP,
    result: Result,
    without: Callable[[Array], DualQP],
    outputs: Callable[[Result], tuple[Array, float]],
    part: Part,
    weight: Array,
    tol: float,
    limits: Limits,
) -> tuple[float, float]:
    """A and B of Platt's sigmoid for a pair of classes, from rows that were left out.

    ``weight`` of its rows; the others as for :func:`out_of_fold`.
    """
    rows = part.rows
    fold, tol = fold_of_rows(part.sign(rows)), min(tol, LARGEST_TOL)
    scores = out_of_fold(problem, result.model, without, outputs, fold, tol, limits)
    first = min(part.positive, part.negative)  # whose probability it is, in LIBSVM
    scores = scores if part.positive == first else -scores
    return sigmoid(scores, part.label[rows] == first, weight)
