"""Decision values of rows that a function was not trained on, from the kernel values of the fit.

Problem: a dual problem of two classes (:mod:`slimsvm.problems.dual_qp`), solved; now again for each
fold, without the rows of that fold, and the decision values of these rows.

Algorithm: to leave rows out is to set their upper bounds to zero. The problem of a fold has the
same Gram as that of the fit, whose cache is warm, and all its rows, so that the inner products of
the rows left out are carried along. It begins at the solution of the fit with the coefficients of
the fold taken away, and those of the other class reduced, one by one, until the equality holds
again: s changes by the rows of those coefficients only. (Forms with two equalities begin anew.)
What is asked for is ten times the tolerance of the fit: nothing is polished, nothing is shrunk.

Cost: a fraction of the fit for each fold; how large, depends on how many coefficients are free.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slimsvm.compiled import compiled
from slimsvm.multiclass import Part
from slimsvm.probability import N_FOLDS, fold_of_rows, sigmoid
from slimsvm.problems.dual_qp import DualQP
from slimsvm.run import Limits, Result, run
from slimsvm.solvers.decomposition import WHOLE, Decomposition
from slimsvm.solvers.dual_state import DualSolution
from slimsvm.solvers.smo import level_and_ends, pair_steps

Array = NDArray[Any]
Without = Callable[[Array], DualQP]
Outputs = Callable[[Result], tuple[Array, float]]
# for a sigmoid, which averages over all rows: times the tolerance of the fit, and at most
ROUGHER, LARGEST_TOL = 10.0, 1e-2
# rows of a fit, up to which it is a hundredth of that: dense and sparse rows end at the same scores
FEW, NEARER = 500, 0.01
MOST_STEPS = 10**9
# steps of SMO where one subproblem is the whole problem, and variables they visit: a second
STEPS_A_ROW, WORK = 10_000, 1_000_000_000


def out_of_fold(
    problem: DualQP,
    solution: DualSolution,
    without: Without,
    outputs: Outputs,
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
    score, n = np.zeros(sign.size), problem.gram.n
    if n <= WHOLE and not problem.two_equalities:
        K, diag = problem.gram.block(np.arange(n)), problem.gram.diag()
        most = min(STEPS_A_ROW * n, WORK // n)
        held_out(K, diag, sign, problem.upper, solution.a, s, fold, tol, most, score)
        return score
    for k in np.unique(fold):
        held = fold == k
        left = np.unique(sign[~held])
        if left.size < 2:  # nothing to separate: the class that is left, as LIBSVM says
            score[held] = left.sum()
            continue
        part = without(~held)
        result = run(
            Decomposition(shrinking=False, exact=False),
            part,
            tol=tol,
            max_iter=MOST_STEPS,
            limits=limits,
            start=None if part.two_equalities else _start(problem, solution.a, s, held),
        )
        point, intercept = outputs(result)
        total = float(result.model.a.sum())
        scale = float(point.sum()) / total if total > 0.0 else 1.0
        score[held] = scale * result.model.s[held] + intercept
    return score


def fold_tol(tol: float, n: int) -> float:
    """How exactly the problem of a fold is solved, for tolerance and rows of the whole fit."""
    return min(tol, LARGEST_TOL) * NEARER if n <= FEW else min(ROUGHER * tol, LARGEST_TOL)


@compiled
def held_out(
    K: Array, diag: Array, sign: Array, upper: Array, a: Array, s: Array, fold: Array, tol: float,
    most: int, score: Array,
) -> None:  # fmt: skip
    """The scores of all rows of a C-SVC whose kernel values are in memory, into ``score``.

    ``a`` and ``s`` are those of the solution with all rows.
    """
    n = a.size
    new, o, bound = np.empty(n), np.empty(n), np.empty(n)
    for k in range(N_FOLDS):
        # 1. without the rows of the fold
        miss, rising, falling = 0.0, 0, 0
        for v in range(n):
            left = fold[v] != k
            bound[v], new[v], o[v] = (upper[v], a[v], s[v]) if left else (0.0, 0.0, s[v])
            o[v] -= sign[v]
            miss += sign[v] * new[v]
            rising += bound[v] > 0.0 and sign[v] > 0.0
            falling += bound[v] > 0.0 and sign[v] < 0.0
        if rising == 0 or falling == 0:  # the class that is left, as LIBSVM says
            for v in range(n):
                if fold[v] == k:
                    score[v] = (1.0 if rising else 0.0) - (1.0 if falling else 0.0)
            continue
        # 2. balanced by as few of the other coefficients as possible
        for v in range(n):
            if sign[v] * miss > 0.0 and new[v] > 0.0:
                less = min(new[v], abs(miss))
                new[v] -= less
                miss -= sign[v] * less
            change = sign[v] * (new[v] - a[v])
            if change != 0.0:
                row = K[v]
                for u in range(n):
                    o[u] += change * row[u]
        # 3. solved from there
        pair_steps(K, diag, sign, bound, new, o, n, tol, most)
        level, _, _ = level_and_ends(new, o, sign, bound)
        for v in range(n):
            if fold[v] == k:
                score[v] = o[v] + sign[v] - level


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


def _start(problem: DualQP, a: Array, s: Array, held: Array) -> DualSolution:
    """The solution without the held rows, balanced by as few coefficients as possible."""
    sign, new, gram = problem.sign, np.where(held, 0.0, a), problem.gram
    miss = float(sign @ new)
    heavy = np.flatnonzero((sign * miss > 0) & (new > 0))
    kept = np.maximum(0.0, np.cumsum(new[heavy]) - abs(miss))  # of the first ones, nothing
    new[heavy] = np.minimum(new[heavy], kept)
    delta = sign * (new - a)
    moved = np.flatnonzero(delta)
    columns = np.arange(gram.n) if gram.columns is None else gram.columns
    local, change = np.zeros(gram.n), np.empty(gram.n)
    gram.add(moved, delta[moved], local)
    change[columns] = local
    return DualSolution(new, s + change, (0.0, 0.0))


def sigmoid_of_pair(
    problem: DualQP,
    result: Result,
    without: Without,
    outputs: Outputs,
    part: Part,
    weight: Array,
    tol: float,
    limits: Limits,
) -> tuple[float, float]:
    """A and B of Platt's sigmoid for a pair of classes, from rows that were left out.

    ``weight`` of its rows; the others as for :func:`out_of_fold`.
    """
    rows = part.rows
    fold, tol = fold_of_rows(part.label[rows]), fold_tol(tol, part.label.size)
    scores = out_of_fold(problem, result.model, without, outputs, fold, tol, limits)
    first = min(part.positive, part.negative)  # whose probability it is, in LIBSVM
    scores = scores if part.positive == first else -scores
    return sigmoid(scores, part.label[rows] == first, weight)
