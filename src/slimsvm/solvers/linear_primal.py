"""Newton's method for squared errors with explicit features, one column after the other.

Problem: :class:`slimsvm.problems.linear.LinearFit` with squared errors,

    min over w, b of  1/2 |w|^2 + b^2 / (2 scaling^2) + sum_i weight_i e_i^2,     f = X w + b.

Algorithm: as :mod:`slimsvm.solvers.linear_newton` (Chapelle 2007), with conjugate gradients scaled
by the diagonal (Hsia, Chiang & Lin 2018), or a factorised matrix where features are few and dense.
What differs: every pass is one compiled loop over the rows that have an error, which reads a row
once for both of its products; and columns are solved side by side. It is for problems that are
easy enough, which nearly all are; where conjugate gradients come to their last step, or C |x|^2 is
so large that digits are lost, it says so, and :class:`slimsvm.solvers.linear_newton.LinearNewton`
goes on from its point: see :func:`slimsvm.solvers.linear.solved`.

The duality gap is half of the squared gradient: with the best intercept of the scores the
multipliers v = -2 weight e are feasible, and the gap is 1/2 |w - X'v|^2 (and the same of a
penalised intercept).

The intercept is eliminated from Newton's system, whose matrix is

    I + (X - mean)' D (X - mean) + rest mean mean',     rest = total ridge / (total + ridge),

D = 2 weight of the rows with an error, total their sum, mean their weighted mean, ridge = 1 /
scaling^2: zero for a free intercept.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from slimsvm.compiled import compiled
from slimsvm.problems.linear import (
    LinearFit,
    LinearSolution,
    dense_dot,
    derivatives,
    errors_along,
    settled,
    sparse_dot,
)
from slimsvm.run import FULL, Certificate
from slimsvm.threads import parallel, single_threaded_blas

Array = NDArray[Any]
FORCING = 0.25  # conjugate gradients end at this share of the gradient
MOST_CG = 200  # of their steps, for one of Newton's
DIRECT = 1000  # dense features up to which the matrix is made and factorised
GATHERED = 512  # rows at a time that are multiplied into it
# entries of X they may visit for one of Newton's steps: about a second
CG_WORK = 5e8
TINY, LARGEST = float(np.finfo(float).tiny), float(np.finfo(float).max)


@compiled
def errors_of(
    dense: Array, indptr: Array, indices: Array, data: Array, low: Array, high: Array,
    weight: Array, scores: Array, gradient: Array, mean: Array, squares: Array, active: Array,
) -> tuple[int, float, float]:  # fmt: skip
    """One pass over the rows with an error.

    Adds to the gradient and, of these rows, to the weighted sums of the features and of their
    squares. Returns how many there are, the risk, and their weight.
    """
    n_active, risk, total, d = 0, 0.0, 0.0, mean.size
    for i in range(scores.size):
        f = scores[i]
        e = max(f - high[i], 0.0) + min(f - low[i], 0.0)
        if e == 0.0:
            continue
        active[n_active] = i
        n_active += 1
        c = 2.0 * weight[i]
        g = c * e
        risk += weight[i] * e * e
        total += c
        if dense.shape[0] > 0:
            row = dense[i]
            for k in range(d):
                x = row[k]
                gradient[k] += g * x
                mean[k] += c * x
                squares[k] += c * x * x
        else:
            for p in range(indptr[i], indptr[i + 1]):
                at, x = np.uint32(indices[p]), data[p]
                gradient[at] += g * x
                mean[at] += c * x
                squares[at] += c * x * x
    return n_active, risk, total


@compiled
def conjugate_gradients(
    dense: Array, indptr: Array, indices: Array, data: Array, weight: Array, active: Array,
    mean: Array, rest: float, diagonal: Array, gradient: Array, forcing: float, most: int, x: Array,
) -> tuple[int, bool]:  # fmt: skip
    """Solve Newton's system with the right-hand side -gradient, nearly; x is the solution.

    Returns the steps, and whether they sufficed.
    """
    d = gradient.size
    r, p, q = np.empty(d), np.empty(d), np.empty(d)
    rz, goal = 0.0, 0.0
    for k in range(d):
        x[k], r[k] = 0.0, -gradient[k]
        p[k] = r[k] / diagonal[k]
        rz += r[k] * p[k]
        goal += r[k] * r[k]
    goal *= forcing * forcing
    steps, left = 0, goal / max(forcing * forcing, 1e-300)
    while left > goal and steps < most:
        at_mean = 0.0
        for k in range(d):
            at_mean += mean[k] * p[k]
            q[k] = p[k]
        total = 0.0
        for t in range(active.size):
            i = active[t]
            if dense.shape[0] > 0:
                row = dense[i]
                u = 2.0 * weight[i] * (dense_dot(row, p) - at_mean)
                for k in range(d):
                    q[k] += u * row[k]
            else:
                first, last = indptr[i], indptr[i + 1]
                u = 2.0 * weight[i] * (sparse_dot(indices, data, first, last, p) - at_mean)
                for k in range(first, last):
                    q[np.uint32(indices[k])] += u * data[k]
            total += u
        total -= rest * at_mean
        bend = 0.0
        for k in range(d):
            q[k] -= mean[k] * total
            bend += p[k] * q[k]
        if not bend > 0.0:
            break
        a, old, rz, left = rz / bend, rz, 0.0, 0.0
        for k in range(d):
            x[k] += a * p[k]
            r[k] -= a * q[k]
            rz += r[k] * r[k] / diagonal[k]
            left += r[k] * r[k]
        for k in range(d):
            p[k] = r[k] / diagonal[k] + rz / old * p[k]
        steps += 1
    return steps, left <= goal


@compiled
def gathered(
    dense: Array, weight: Array, active: Array, mean: Array, first: int, last: int, out: Array
) -> None:
    """out = D^1/2 (X - mean) of the active rows first..last."""
    for t in range(first, last):
        row, root, line = dense[active[t]], np.sqrt(2.0 * weight[active[t]]), out[t - first]
        for k in range(mean.size):
            line[k] = root * (row[k] - mean[k])


@compiled
def least_along(
    low: Array, high: Array, weight: Array, scores: Array, change: Array, slope: float, curve: float
) -> float:
    """t >= 0 with the least slope t + curve t^2 / 2 + sum_i weight_i e_i(scores + t change)^2.

    Newton's method on the derivative, which is piecewise linear.
    """
    t, below, above, errors = 1.0, 0.0, 1e300, np.empty(scores.size)
    for _ in range(60):
        errors_along(low, high, scores, change, t, errors)
        g, h = derivatives(weight, errors, change, slope + curve * t, curve)
        if g < 0.0:
            below = t
        else:
            above = t
        if not h > 0.0:
            break
        new = t - g / h
        if not (below <= new and new <= above):
            new = 0.5 * (below + min(above, 2.0 * below + 1.0))
        if abs(new - t) <= 1e-12 * max(1.0, abs(t)):
            t = new
            break
        t = new
    return t


@dataclass
class PrimalState:
    """Where Newton's method is: a line of every array for each column."""

    w: Array  # (columns, d)
    b: Array
    scores: Array  # (columns, n), with the intercept
    objective: Array
    gap: Array
    stuck: Array  # columns that do not come nearer by such steps
    n_iter: int = 0
    done: bool = False
    n_products: float = 0.0  # passes over all rows, those over active ones in proportion

    @property
    def relative_gap(self) -> Array:
        """The gap relative to the objective."""
        return np.asarray(self.gap / np.maximum(self.objective, TINY))

    def record(self) -> dict[str, float]:
        """A line of the history; ``violation`` is the largest relative gap of a column."""
        return {
            "objective": float(self.objective.sum()),
            "gap": float(self.gap.sum()),
            "violation": float(self.relative_gap.max()),
            "products": self.n_products,
        }


@dataclass(kw_only=True)
class LinearPrimal:
    """Newton's method in compiled passes; ``tol`` is the relative duality gap, of every column."""

    keeps_state: ClassVar[bool] = True

    def init(self, problem: LinearFit, start: LinearSolution | None = None) -> PrimalState:
        """Begin at ``start``, or at zero."""
        n, d, columns = problem.n, problem.size, problem.n_columns
        w, b, scores = np.zeros((columns, d)), np.zeros(columns), np.zeros((columns, n))
        if start is not None:
            w[:] = start.coef.T
            b[:] = start.intercept if problem.scaling else 0.0
            for c in range(columns):
                scores[c] = problem.scores(w[c]) + b[c]
        everything = np.full(columns, np.inf)
        nothing = np.zeros(columns, bool)
        return PrimalState(w, b, scores, np.full(columns, LARGEST), everything, nothing)

    def step(self, problem: LinearFit, state: PrimalState, tol: float, max_iter: int) -> None:
        """One of Newton's steps for every column whose gap is too large."""
        S = state
        which = np.flatnonzero((S.relative_gap > tol) & ~S.stuck)
        products = np.zeros(which.size)
        last = S.n_iter >= max_iter

        def newton(t: int) -> None:
            products[t] = self._newton(problem, S, int(which[t]), tol, last)

        with single_threaded_blas():
            parallel(newton, which.size, problem.n_threads)
        S.n_products += float(products.sum())
        S.n_iter += 0 if last or not np.any((S.relative_gap > tol) & ~S.stuck) else 1
        S.done = not np.any((S.relative_gap > tol) & ~S.stuck)

    @staticmethod
    def _newton(problem: LinearFit, S: PrimalState, c: int, tol: float, last: bool) -> float:
        """Look where the column is, and make a step if it is not at its end; passes made."""
        column, arrays, ridge = problem.column(c), problem.arrays, problem.ridge
        intervals = column.low, column.high, column.weight
        n, d, w, scores = problem.n, problem.size, S.w[c], S.scores[c]
        # 1. the intercept on its own; the gradient, and where rows have an error
        if problem.scaling:
            change = settled(*intervals, scores - S.b[c], float(S.b[c]), ridge) - S.b[c]
            S.b[c] += change
            scores += change
        gradient, mean, squares, active = w.copy(), np.zeros(d), np.zeros(d), np.empty(n, np.int64)
        n_active, risk, total = errors_of(
            *arrays, *intervals, scores, gradient, mean, squares, active
        )
        before = S.objective[c], S.gap[c]
        S.objective[c] = 0.5 * float(w @ w) + 0.5 * ridge * S.b[c] ** 2 + risk
        S.gap[c] = 0.5 * float(gradient @ gradient)
        products = n_active / n
        if S.objective[c] >= before[0] and S.gap[c] >= 0.5 * before[1]:
            S.stuck[c] = True  # rounding is all that is left
        if last or S.stuck[c] or S.relative_gap[c] <= tol:
            return products
        # 2. the direction
        active = active[:n_active]
        if problem.scaling and total > 0.0:
            mean, rest = mean / total, total * ridge / (total + ridge)
        else:
            mean, rest = np.zeros(d), 0.0
        step, found = np.zeros(d), False
        if arrays[0].shape[0] and d <= DIRECT:
            step, found = _factorised(arrays[0], column.weight, active, mean, rest, gradient)
            products += d / 20 * n_active / n
        if not found:
            diagonal = 1.0 + np.maximum(0.0, squares - (total - rest) * mean * mean)
            most = int(min(MOST_CG, max(10.0, CG_WORK / (2.0 * problem.entries + 1.0))))
            steps, enough = conjugate_gradients(
                *arrays, column.weight, active, mean, rest, diagonal, gradient, FORCING, most, step
            )
            products += 2 * steps * n_active / n
            S.stuck[c] = not enough and most == MOST_CG
        db = -float(mean @ step) * total / (total + ridge) if total > 0.0 else 0.0
        # 3. the least value along it
        along = problem.scores(step) + db
        slope = float(w @ step) + ridge * float(S.b[c]) * db
        t = least_along(*intervals, scores, along, slope, float(step @ step) + ridge * db * db)
        w += t * step
        S.b[c] += t * db
        scores += t * along
        return products + 1.0

    def certificate(self, problem: LinearFit, state: PrimalState, tol: float) -> Certificate:
        """Objective and gap summed over the columns.

        ``violation`` is the largest relative gap of a column.
        """
        violation = float(state.relative_gap.max())
        gap, objective = float(state.gap.sum()), float(state.objective.sum())
        found = Certificate(FULL, objective, violation, gap, tol, "float64")
        return found.rounded(problem.rounding(self.model(problem, state)))

    def model(self, problem: LinearFit, state: PrimalState) -> LinearSolution:
        """Weights and intercepts."""
        return LinearSolution(state.w.T.copy(), state.b.copy())


def _factorised(
    dense: Array, weight: Array, active: Array, mean: Array, rest: float, gradient: Array
) -> tuple[Array, bool]:
    """Newton's step by a Cholesky factor of the matrix; whether there is one."""
    matrix = np.eye(mean.size) + rest * np.outer(mean, mean)
    rows = np.empty((min(GATHERED, active.size), mean.size))
    for first in range(0, active.size, GATHERED):
        last = min(active.size, first + GATHERED)
        gathered(dense, weight, active, mean, first, last, rows)
        matrix += rows[: last - first].T @ rows[: last - first]
    try:
        factor = cho_factor(matrix, lower=True, overwrite_a=True, check_finite=False)
    except LinAlgError:
        return np.zeros_like(gradient), False
    return -cho_solve(factor, gradient, check_finite=False), True
