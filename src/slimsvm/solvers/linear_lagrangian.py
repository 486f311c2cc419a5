"""LSVM with features as they are: the linear SVM that Newton's method is compared with.

Problem: :class:`slimsvm.problems.linear.LinearFit` with the squared hinge, no intercept or one with
the penalty b^2/2 (``scaling`` 1): V = diag(y) [X, 1], and the dual is

    min over a >= 0 of  1/2 a'Ha - 1'a,    H = V V' + D^-1,    D = diag(2 weight_i).

Algorithm: Mangasarian & Musicant (2001), "Lagrangian support vector machines"
(mangasarian2001lsvm), Algorithm 1:

    a <- H^-1 (1 + (Ha - 1 - b a)_+)     from     a = H^-1 1,

with H^-1 by the Woodbury formula, and b = share / weight_i. The paper's step 1.9 / nu, nu = 2 C, is
share = 0.95. See :mod:`slimsvm.solvers.lagrangian` for its speed. All columns share one factor,
since V'DV does not depend on the signs, unless they have weights of their own.

Symbols: z = (Ha - 1 - b a)_+, so that Ha = 1 + z after a step; u = V'a. Cost: n d^2 once, 4 n d a
step and column, and as much where the gap is taken, every tenth step.
"""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

from slimsvm.problems.columns import DEFAULT_MEMORY
from slimsvm.problems.linear import TINY, GapOfColumns, LinearFit, LinearSolution
from slimsvm.run import FULL, Certificate
from slimsvm.threads import single_threaded_blas

Array = NDArray[Any]
EVERY = 10  # steps from one gap to the next, after as many in which each takes it
WORK = 1e8  # entries of X visited in a step of the run, at most


@dataclass
class LSVMState(GapOfColumns):
    """Where the iteration is, and the best values so far."""

    X: Any
    factors: list[Any]  # one, or one for each column
    z: Array
    u: Array
    best: Array  # weights of the best primal value


@dataclass(frozen=True, kw_only=True)
class LinearLagrangian:
    """LSVM as it was published; ``tol`` is the relative gap, of every column.

    Parameters
    ----------
    share : float
        The step times C, between 0 and 1 (both excluded); 0.95 in the paper.

    Examples
    --------
    >>> from slimsvm import LinearSVC
    >>> from slimsvm.solvers.linear_lagrangian import LinearLagrangian
    >>> model = LinearSVC(C=0.5, fit_intercept=False, solver=LinearLagrangian(), tol=1e-9)
    >>> model.fit([[1.0], [-1.0]], [1, 0]).coef_.round(6).tolist()
    [[0.666667]]
    """

    share: float = 0.95

    def __post_init__(self) -> None:
        if not (isinstance(self.share, Real) and 0.0 < self.share < 1.0):
            raise ValueError(
                f"share={self.share!r}, the step times C, must be between 0 and 1, both excluded: "
                "beyond, the iteration may cycle or diverge."
            )

    def init(self, problem: LinearFit, start: Any = None) -> LSVMState:
        """Begin at a = H^-1 1; there is no other start."""
        X = problem.X.astype(np.float64)
        if problem.scaling:
            ones = np.full((problem.n, 1), float(problem.scaling))
            X = sp.hstack([X, ones], format="csr") if sp.issparse(X) else np.hstack([X, ones])
        d = int(X.shape[1])
        if 8 * d * d > DEFAULT_MEMORY * 2**20:
            raise ValueError(
                f"LSVM factorises a matrix of {d:,} x {d:,} features; leave solver out."
            )
        # one matrix for all columns, unless each has weights of its own
        factors = [_factor(X, weight) for weight in _by_column(problem).T]
        k = problem.n_columns
        none = np.zeros((d, k))
        z = np.zeros((problem.n, k))
        given = (X, factors, z, none, none.copy())
        return LSVMState(*given, primal=np.full(k, np.inf), dual=np.zeros(k))

    def step(self, problem: LinearFit, state: LSVMState, tol: float, max_iter: int) -> None:
        """Some steps of the iteration."""
        S, y, weight = state, problem.target, _by_column(problem)
        entries = S.X.nnz if sp.issparse(S.X) else S.X.size
        most = int(max(1, min(50, WORK // max(1, entries * problem.n_columns))))
        with single_threaded_blas():
            for k in range(min(most, max_iter - S.n_iter)):
                r = 1.0 + S.z
                S.u = _solved(S.factors, np.asarray(S.X.T @ (y * (2.0 * weight * r))))
                margins = y * np.asarray(S.X @ S.u)
                a = 2.0 * weight * (r - margins)
                if S.n_iter < EVERY or S.n_iter % EVERY == 0 or k == most - 1:
                    self._measure(problem, S, a, margins)
                    S.done = bool(S.relative_gap.max() <= tol)
                    if S.done:
                        return
                S.z = np.maximum(0.0, S.z - self.share / weight * a)
                S.n_iter += 1

    @staticmethod
    def _measure(problem: LinearFit, S: LSVMState, a: Array, margins: Array) -> None:
        """Primal and dual values; of the iterate, cut at zero, and of the primal point's own a."""
        weight, y = _by_column(problem), problem.target
        hinge = np.maximum(0.0, 1.0 - margins)
        primal = 0.5 * (S.u**2).sum(axis=0) + (weight * hinge**2).sum(axis=0)
        better = primal < S.primal
        S.best[:, better], S.primal = S.u[:, better], np.minimum(S.primal, primal)
        for point in (np.maximum(0.0, a), 2.0 * weight * hinge):
            v = np.asarray(S.X.T @ (y * point))
            size = (v**2).sum(axis=0) + (point**2 / (2.0 * weight)).sum(axis=0)
            value = point.sum(axis=0) ** 2 / (2.0 * np.maximum(size, TINY))
            S.dual = np.maximum(S.dual, value)

    def certificate(self, problem: LinearFit, state: LSVMState, tol: float) -> Certificate:
        """Sums over the columns, and the largest relative gap."""
        S = state
        objective, gap = float(S.primal.sum()), float(S.gap.sum())
        found = Certificate(FULL, objective, float(S.relative_gap.max()), gap, tol, "float64")
        return found.rounded(problem.rounding(self.model(problem, S)))

    def model(self, problem: LinearFit, state: LSVMState) -> LinearSolution:
        """The best weights, and the penalised intercepts among them."""
        W, b = state.best, np.zeros(problem.n_columns)
        if problem.scaling:
            W, b = W[:-1], float(problem.scaling) * W[-1]
        return LinearSolution(W, b)


def _by_column(problem: LinearFit) -> Array:
    """Weights of shape (n, 1), or (n, columns) where columns have their own."""
    weight = problem.weight
    return weight[:, None] if weight.ndim == 1 else weight


def _factor(X: Any, weight: Array) -> Any:
    """Cholesky factor of I + 2 X'WX."""
    weighted = sp.diags(2.0 * weight) @ X if sp.issparse(X) else 2.0 * weight[:, None] * X
    product = X.T @ weighted
    H = np.asarray(product.toarray() if sp.issparse(product) else product)
    return cho_factor(H + np.eye(len(H)))


def _solved(factors: list[Any], right: Array) -> Array:
    if len(factors) == 1:
        return np.asarray(cho_solve(factors[0], right))
    return np.stack([cho_solve(factors[c], right[:, c]) for c in range(len(factors))], axis=1)
