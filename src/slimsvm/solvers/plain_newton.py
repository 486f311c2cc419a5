"""Newton's steps and nothing else: the linear SVM in the primal, as the talk has it.

Problem: :class:`slimsvm.problems.linear.LinearFit` with the squared hinge,

    min over w, b of  1/2 |w|^2 + ridge b^2 / 2 + sum_i weight_i max(0, 1 - y_i (w.x_i + b))^2,

ridge = 0 for a free intercept, which is the talk's.

Algorithm: Bakir & Chapelle's "Tricks of the trade for training SVMs", "Linear SVM in the primal"
(chapelle2007primal): w and b together,

    u <- u - H^-1 g,    g = R u - 2 sum_i weight_i y_i x_i (1 - y_i f_i)_+,
                        H = R + 2 sum over y_i f_i <= 1 of weight_i x_i x_i',

from zero, with x_i a feature longer by a constant one, and R = diag(1, ..., 1, ridge). Steps are
whole: there is no line search, so that the objective may rise, and a run that goes in circles ends
at its limits. The talk's C is twice ours. Left open there: a singular H, which a free intercept has
where no row is within its margin (the shortest solution here).

A step that changes no row's side ends at the optimum of a quadratic function, and so at that of the
problem. The gap is that of :mod:`slimsvm.solvers.linear_primal`, at the best intercept for w.

Cost: n d^2 a step.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve, lstsq

from slimsvm.problems.columns import DEFAULT_MEMORY
from slimsvm.problems.linear import LinearFit, LinearSolution, settled
from slimsvm.run import FULL, Certificate
from slimsvm.threads import single_threaded_blas

Array = NDArray[Any]
TINY = float(np.finfo(float).tiny)


@dataclass
class PlainState:
    """Where the steps are: weights with the intercept (d + 1, columns), values and gaps."""

    X: Any  # with a constant feature
    u: Array
    objective: Array
    gap: Array
    n_iter: int = 0
    done: bool = False

    @property
    def relative(self) -> Array:
        """The gap of each column relative to its objective."""
        return np.asarray(self.gap / np.maximum(self.objective, TINY))

    def record(self) -> dict[str, float]:
        """A line of the history."""
        objective, gap = float(self.objective.sum()), float(self.gap.sum())
        return {"objective": objective, "gap": gap, "violation": float(self.relative.max())}


@dataclass(frozen=True, kw_only=True)
class PlainNewton:
    """Newton's method in the primal without a line search; ``tol`` is the relative duality gap.

    Examples
    --------
    >>> from slimsvm import LinearSVC
    >>> from slimsvm.solvers.plain_newton import PlainNewton
    >>> model = LinearSVC(C=0.5, fit_intercept=False, solver=PlainNewton(), tol=1e-9)
    >>> model.fit([[1.0], [-1.0]], [1, 0]).coef_.round(6).tolist()
    [[0.666667]]
    """

    def init(self, problem: LinearFit, start: Any = None) -> PlainState:
        """Begin at zero; there is no other start."""
        d = problem.size + 1
        if 8 * d * d > DEFAULT_MEMORY * 2**20:
            raise ValueError(
                f"Newton's method without a line search factorises a matrix of {d:,} x {d:,} "
                "features; leave solver out."
            )
        # a constant feature, which is zero where there is no intercept
        ones = np.full((problem.n, 1), 1.0 if problem.scaling else 0.0)
        X = problem.X.astype(np.float64)
        X = sp.hstack([X, ones], format="csr") if sp.issparse(X) else np.hstack([X, ones])
        k = problem.n_columns
        state = PlainState(X, np.zeros((d, k)), np.zeros(k), np.zeros(k))
        for c in range(k):
            self._measure(problem, state, c)
        return state

    def step(self, problem: LinearFit, state: PlainState, tol: float, max_iter: int) -> None:
        """One step of every column whose gap is too large."""
        S = state
        which = np.flatnonzero(S.relative > tol)
        S.done = not which.size
        if S.done or S.n_iter >= max_iter:
            return
        with single_threaded_blas():
            for c in which:
                self._newton(problem, S, int(c))
                self._measure(problem, S, int(c))
        S.n_iter += 1
        S.done = not np.any(S.relative > tol)

    @staticmethod
    def _newton(problem: LinearFit, S: PlainState, c: int) -> None:
        y, weight, u = problem.target[:, c], problem.column(c).weight, S.u[:, c]
        ridge = np.ones(u.size)
        ridge[-1] = problem.ridge if problem.scaling else 1.0
        missing = 1.0 - y * np.asarray(S.X @ u)
        rows = np.flatnonzero(missing >= 0.0)
        X, twice = S.X[rows], 2.0 * weight[rows]
        gradient = ridge * u - np.asarray(X.T @ (twice * y[rows] * missing[rows]))
        scaled = sp.diags(twice) @ X if sp.issparse(X) else twice[:, None] * X
        H = X.T @ scaled
        H = np.asarray(H.toarray() if sp.issparse(H) else H) + np.diag(ridge)
        try:
            step = cho_solve(cho_factor(H, check_finite=False), gradient, check_finite=False)
        except LinAlgError:
            step = lstsq(H, gradient, check_finite=False)[0]
        S.u[:, c] = u - step

    @staticmethod
    def _measure(problem: LinearFit, S: PlainState, c: int) -> None:
        """Objective, and the gap from the dual point at the best intercept for these weights."""
        column, w, b = problem.column(c), S.u[:-1, c], float(S.u[-1, c])
        ridge, scores = problem.ridge, np.asarray(S.X[:, :-1] @ w)

        def value(at: float) -> float:
            lost = float(column.weight @ np.square(column.error(scores + at)))
            return 0.5 * float(w @ w) + 0.5 * ridge * at * at + lost

        best = b
        if problem.scaling:
            best = settled(column.low, column.high, column.weight, scores, b, ridge)
        apart = w - np.asarray(S.X[:, :-1].T @ column.dual_point(scores + best))
        S.objective[c] = value(b)
        S.gap[c] = max(0.0, S.objective[c] - value(best)) + 0.5 * float(apart @ apart)

    def certificate(self, problem: LinearFit, state: PlainState, tol: float) -> Certificate:
        """Sums over the columns, and the largest relative gap."""
        measured = float(state.objective.sum()), float(state.relative.max()), float(state.gap.sum())
        found = Certificate(FULL, *measured, tol, "float64")
        return found.rounded(problem.rounding(self.model(problem, state)))

    def model(self, problem: LinearFit, state: PlainState) -> LinearSolution:
        """The last weights and intercepts."""
        return LinearSolution(state.u[:-1].copy(), state.u[-1].copy())
