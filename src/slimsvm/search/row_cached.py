"""The same outputs at held-out rows where kernel values of all rows do not fit into memory.

A kernel has one Gram (:mod:`slimsvm.gram`) over all rows for all folds and all C, so that the rows
that matter are computed once; held-out rows have an upper bound of zero, and their inner products
are carried along. Solutions go from each C to the next by one factor, as in
:mod:`slimsvm.solvers.shared_path`; each is found by decomposition.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from slimsvm.gram import Gram, make_gram
from slimsvm.kernels import Kernel
from slimsvm.problems.dual_qp import DualQP, classification, regression
from slimsvm.run import Limits, run
from slimsvm.search.held_out import Consumer, FoldProblem, Point
from slimsvm.solvers.decomposition import Decomposition
from slimsvm.solvers.dual_state import DualSolution
from slimsvm.tiles import prepare

Array = NDArray[Any]
ANY_STEPS = 10**9


def solve(
    X: Any,
    kernel: Kernel,
    problems: list[FoldProblem],
    max_bytes: float,
    threads: int,
    limits: Limits,
    consume: Consumer,
) -> list[tuple[int, int]]:
    """Solve all problems of a kernel, of two classes or of regression.

    Returns candidates and folds that missed their tolerance.
    """
    operand = prepare(kernel, X)
    gram, missed = make_gram(operand, max_bytes, threads), list[tuple[int, int]]()
    for problem in problems:
        groups: dict[tuple[float, float], list[Point]] = {}
        for point in problem.points:
            groups.setdefault((point.epsilon, point.tol), []).append(point)
        for points in groups.values():
            points.sort(key=lambda point: point.C)
            missed += _up(gram, problem, points, limits, consume)
            if limits.reason():
                return missed
    return missed


def _up(
    gram: Gram, fold: FoldProblem, points: list[Point], limits: Limits, consume: Consumer
) -> list[tuple[int, int]]:
    """One path of ascending C."""
    missed: list[tuple[int, int]] = []
    last: DualSolution | None = None
    for k, point in enumerate(points):
        problem = _problem(gram, fold, point)
        start = None
        if last is not None:
            start = _stretched(problem, last, point.C / points[k - 1].C)
        solver = Decomposition(shrinking=False, exact=False)
        result = run(solver, problem, tol=point.tol, max_iter=ANY_STEPS, limits=limits, start=start)
        if limits.reason():
            break
        last = result.model
        if not problem.violation(last.a, last.s) <= point.tol:
            missed.append((point.candidate, fold.fold))
        else:
            consume(point, fold, (last.s[fold.test] - last.level[0])[:, None], None)
    return missed


def _problem(gram: Gram, fold: FoldProblem, point: Point) -> DualQP:
    """The dual problem of a fold at a point; other rows have no weight."""
    upper, target = np.zeros(gram.n), np.zeros(gram.n)
    upper[fold.rows] = point.C * fold.weight
    if not fold.classes.size:
        target[fold.rows] = fold.target
        return regression(gram, target, upper, point.epsilon)
    target[:] = -1.0
    target[fold.rows] = np.where(fold.target == 1, 1.0, -1.0)  # of two, the second is positive
    return classification(gram, target, upper)


def _stretched(problem: DualQP, last: DualSolution, most: float) -> DualSolution:
    """The last solution times the factor that lowers the objective most."""
    bend, slope = float(problem.coef(last.a) @ last.s), -float(problem.linear @ last.a)
    factor = min(max(slope / max(bend, 1e-300), 1.0), most)
    return DualSolution(np.minimum(factor * last.a, problem.upper), factor * last.s, (0.0, 0.0))
