"""The reduced set: a model with many vectors replaced by the nearest one with few.

Problem: f_c = sum_i A_ic phi(s_i), with one column c for each output, becomes f'_c = sum_j coef_jc
phi(b_j),

    min over B, coef of  E = sum_c |f_c - f'_c|^2,

a distance in the space of the kernel.

Algorithm: Burges & Schoelkopf (burges1997reduced).

    1. grow: vectors join that take the most off the residual f - f'
       (:mod:`slimsvm.basis.preimage`), until there are enough
    2. descend: L-BFGS (SciPy's) over all vectors at once, with the coefficients solved out. With
       P = K_BS A and K_BB = L L',

           coef = K_BB^-1 P,     E(B) = sum_c |f_c|^2 - |L^-1 P_c|^2,
           dE/db_j = 2 sum_l (sum_c coef_lc coef_jc) dk(b_l, b_j)/db_j
                     - 2 sum_i (sum_c A_ic coef_jc) dk(s_i, b_j)/db_j

What differs: several vectors join at once, each measured by the true drop of E; all outputs share
the vectors. For the linear kernel the singular vectors of the weights are the optimum.

Symbols: S the vectors of the model, n of them; A their coefficients (n, C); B the new ones, m of
them; square = sum_c |f_c|^2. Cost: for every step n m d operations for the kernel values and as
many for the derivative.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import LinAlgError
from scipy.optimize import OptimizeResult, minimize

from slimsvm.basis import Pursuit
from slimsvm.basis.selection import grown_share
from slimsvm.losses import Loss
from slimsvm.problems.columns import KernelColumns, sums_of
from slimsvm.problems.subspace import Subspace
from slimsvm.problems.trail import Trail
from slimsvm.rows import PerRow
from slimsvm.run import Limits
from slimsvm.solvers.pursuit import MOST_REFUSALS
from slimsvm.solvers.refine import gradient

Array = NDArray[Any]
MAX_STEPS = 300  # of the descent
TOL = 1e-3  # a step that takes less than this share off E, over the last few, ends the descent
LOOK_BACK = 5
# E, as a share of |f|^2, that rounding errors make anyway
NOTHING = {"float32": 1e-7, "float64": 1e-13}


@dataclass(frozen=True)
class Towards(Loss):
    """L(a, f') = -a f'.

    Summed over the vectors of a function f with coefficients a, this is minus the inner product of
    f and f'.

    Half of E is then |f|^2/2 plus the objective of a subspace problem, and has its derivative.
    """

    name: ClassVar[str] = "towards"
    takes_labels: ClassVar[bool] = False

    def value(self, y: ArrayLike, f: ArrayLike) -> Array:
        """-a f'"""
        return -np.asarray(y, np.float64) * np.asarray(f, np.float64)

    def gradient(self, y: ArrayLike, f: ArrayLike) -> Array:
        """-a"""
        return -np.asarray(y, np.float64)

    def curvature(self, y: ArrayLike, f: ArrayLike) -> Array:
        """Zero."""
        return np.zeros_like(np.asarray(y, np.float64))

    def conjugate(self, y: ArrayLike, u: ArrayLike) -> Array:
        """Zero at -a only."""
        return np.where(np.asarray(u) == -np.asarray(y), 0.0, np.inf)


class Reduction:
    """The squared distance to a model as a function of the basis, the coefficients solved out.

    Parameters
    ----------
    columns : KernelColumns
        Its rows are the vectors of the model, with its coefficients as their targets; it ends
        with the reduced basis.
    A : array of shape (n, C)
        The coefficients of the model.
    square : float
        sum_c |f_c|^2
    """

    def __init__(self, columns: KernelColumns, A: Array, square: float) -> None:
        self.columns, self.A, self.square = columns, A, square
        self.problem = Subspace(columns, Towards(), fit_intercept=False)
        self.nothing = NOTHING[str(np.dtype(columns.dtype))] * square
        self.n_evaluations = 0

    def solved(self) -> tuple[Array, float]:
        """The best coefficients for the basis as it is, and E.

        E includes the jitter's share, which no coefficients undo.
        """
        if not self.columns.m:
            return np.zeros((0, self.A.shape[1])), self.square
        Z = self.columns.coordinates(self.columns.sum(sums_of, PerRow(self.A), True))
        return self.columns.coefficients(Z), self.square - float(np.einsum("jc,jc->", Z, Z))

    def solution(self) -> tuple[Array, float]:
        """The same with E itself, without the jitter's share."""
        coef, error = self.solved()
        return coef, max(0.0, error - self.columns.jitter * float(np.square(coef).sum()))

    def evaluate(self, flat: Array, shape: tuple[int, int]) -> tuple[float, Array]:
        """E and its derivative by the basis."""
        self.n_evaluations += 1
        vectors = flat.reshape(shape)
        try:
            self.columns.replace(vectors)
        except (
            LinAlgError,
            ValueError,
        ):  # a step so long that the basis lost its meaning: the line search takes a shorter one
            return np.inf, np.zeros_like(flat)
        coef, error = self.solved()
        # the derivative of this loss is the same everywhere
        nowhere = Trail(self.columns.span, coef.shape[1])
        return error, 2.0 * gradient(self.problem, vectors, coef, nowhere).ravel()

    def grow(
        self, n_basis: int, rng: np.random.Generator, candidates: Array, limits: Limits
    ) -> None:
        """Vectors join until there are n_basis, or nothing more can be gained, or time is up."""
        columns, refused = self.columns, 0
        coef, error = self.solved()
        while (
            columns.m < n_basis
            and refused < MOST_REFUSALS
            and error > self.nothing
            and (limits.reason() is None or not columns.m)
        ):
            n_new = min(n_basis - columns.m, grown_share(columns.m))
            found = Pursuit().select(columns, self.A, -coef, n_new, rng, candidates)
            refused = 0 if found.n and columns.append(found.vectors).any() else refused + 1
            coef, error = self.solved()

    def descend(self, limits: Limits) -> None:
        """Move all vectors together to a local optimum."""
        vectors = self.columns.vectors
        if vectors is None or limits.reason() is not None:
            return
        vectors = vectors.toarray() if sp.issparse(vectors) else np.array(vectors, np.float64)
        shape, errors = vectors.shape, [np.inf]
        best, best_vectors = np.inf, vectors

        def evaluate(flat: Array) -> tuple[float, Array]:
            nonlocal best, best_vectors
            error, slope = self.evaluate(flat, shape)
            if error < best:
                best, best_vectors = error, flat.reshape(shape).copy()
            return error, slope

        def watch(intermediate_result: OptimizeResult) -> None:
            errors.append(float(intermediate_result.fun))
            slow = len(errors) > LOOK_BACK and errors[-1 - LOOK_BACK] - errors[
                -1
            ] <= TOL * LOOK_BACK * abs(errors[-1])
            if slow or errors[-1] <= self.nothing or limits.reason() is not None:
                raise StopIteration

        options = {
            "maxiter": MAX_STEPS,
            "maxfun": 3 * MAX_STEPS,
            "maxcor": 10,
            "ftol": 0.0,
            "gtol": 0.0,
        }
        minimize(
            evaluate, vectors.ravel(), jac=True, method="L-BFGS-B", callback=watch, options=options
        )
        self.columns.replace(best_vectors)


def singular_vectors(W: Array, n_basis: int) -> tuple[Array, Array, float, float]:
    """The linear kernel, where the best few vectors have a closed form.

    All vectors together are one vector of weights for each output.

    Parameters
    ----------
    W : array of shape (C, d)
        The weights.
    n_basis : int
        Number of vectors, at most.

    Returns
    -------
    vectors : array of shape (m, d)
        No more than the rank of W, and at least one.
    coef : array of shape (m, C)
        W is coef' vectors, but for the error.
    error, square : float
        E, and the sum of |W_c|^2.

    Examples
    --------
    >>> singular_vectors(np.array([[3.0, 4.0]]), 10)
    (array([[3., 4.]]), array([[1.]]), 0.0, 25.0)
    """
    square = float(np.square(W).sum())
    if W.shape[0] == 1:
        return W, np.ones((1, 1)), 0.0, square
    U, size, Vt = np.linalg.svd(W, full_matrices=False)
    rank = max(1, int(np.sum(size > size[0] * max(W.shape) * np.finfo(float).eps)))
    m = min(n_basis, rank)
    return (
        size[:m, None] * Vt[:m],
        np.ascontiguousarray(U[:, :m].T),
        float(np.square(size[m:rank]).sum()),
        square,
    )
