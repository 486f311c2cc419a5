"""Where functions and cuts live: what an inner product with a cut is, and how scores come about.

The cutting-plane driver (:mod:`slimsvm.solvers.cutting_plane`) is the same in all of them.

Symbols: W coordinates of functions, one column each; P those of cuts; V responses v of the rows (n, columns).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from slimsvm.problems.subspace import KernelColumns, Response
from slimsvm.run import FULL, SUBSPACE
from slimsvm.solvers.cuts import columnwise
from slimsvm.threads import parallel, single_threaded_blas

Array = NDArray[Any]
Growth = Callable[
    [KernelColumns, Array, Array], Any
]  # columns, row weights (n, columns), basis weights (m, columns) -> vectors or None
ROWS_A_TASK = 16384
FEW_FELT = 0.7  # share of rows with a response up to which it pays to copy them
BLOCK_VALUES = 1 << 19  # of X in one block: four megabytes of float64


class Space:
    """Where functions live: coordinates of cuts and functions, their inner products, and scores of all rows.

    Attributes
    ----------
    n, n_threads : int
        Rows; threads.
    size, max_size : int
        Number of coordinates, and what it may become.
    scope : str
        What an optimum in this space is an optimum of.
    precision : str
        Type of the numbers that scores and cuts are made of.
    kept_in : type
        That of the coordinates of cuts, in memory.
    growing : bool
        Whether the space may gain coordinates.
    """

    n: int
    n_threads: int = 1
    size: int
    max_size: int
    scope: str = FULL
    precision: str = "float64"
    kept_in: Any = np.float64
    growing: bool = False

    @property
    def n_basis(self) -> int:
        """Number of vectors, or features, that carry weight; for the history."""
        return self.size

    def scores(self, W: Array) -> Array:
        """<w, phi(x)> for all rows x and columns w of W: (n, columns)."""
        raise NotImplementedError

    def project(self, V: Array) -> Array:
        """Coordinates of sum_i v_i phi(x_i) for each column v of V: (size, columns)."""
        raise NotImplementedError

    def sweep(self, W: Array, respond: Response) -> Array:
        """Both in one pass where possible: the coordinates of the responses to the scores."""
        scores = self.scores(W)
        return self.project(respond(0, self.n, scores))

    def metric(self, B: Array) -> Array:
        """What coordinates are multiplied with in inner products: <a, b> = a' metric(b)."""
        return B

    def inner(self, A: Array, B: Array) -> Array:
        """<a, b> for the columns of A and B, pairwise."""
        return columnwise(A, self.metric(B))

    def gram_row(self, P: Array, p: Array) -> Array:
        """<p_t, p> for all rows p_t of P (t, size)."""
        return np.asarray(P @ self.metric(p).astype(P.dtype, copy=False), np.float64)

    def coef(self, W: Array) -> Array:
        """What a model stores for coordinates W."""
        return W

    def weights(self, coef: Array) -> Array:
        """The other way round."""
        return coef


class ExplicitSpace(Space):
    """Features as they are, dense or CSR: O(n d) a round.

    Parameters
    ----------
    X : array or CSR matrix of shape (n, d)
        The rows.
    n_threads : int
        Results are the same bits for any number.
    exact : bool
        Whether products with rows in float32 are in float64 all the same.
    """

    def __init__(self, X: Any, n_threads: int = 1, exact: bool = False) -> None:
        self.n, self.size = int(X.shape[0]), int(X.shape[1])
        self.max_size, self.n_threads = self.size, n_threads
        self.dtype = np.float32 if X.dtype == np.float32 and not exact else np.float64
        self.precision, self.kept_in = (
            str(np.dtype(self.dtype)),
            self.dtype,
        )  # features may be millions
        width = self.size
        if sp.issparse(X):  # every block makes d sums: enough rows that these are the smaller part
            per_row = max(1, X.nnz // max(1, self.n))
            width = max(1, min(per_row, BLOCK_VALUES * per_row // max(1, 8 * self.size)))
        step = max(256, BLOCK_VALUES // max(1, width))
        self.edges = [(start, min(self.n, start + step)) for start in range(0, self.n, step)]
        self.blocks = [_rows_of(X, *edges) for edges in self.edges]

    def scores(self, W: Array) -> Array:
        """X W"""
        out, W = np.empty((self.n, W.shape[1])), W.astype(self.dtype)

        def task(k: int) -> None:
            first, last = self.edges[k]
            out[first:last] = self.blocks[k] @ W

        with single_threaded_blas():
            parallel(task, len(self.blocks), self.n_threads)
        return out

    def project(self, V: Array) -> Array:
        """X'V"""

        def work(k: int) -> Array:
            X, responses = self.blocks[k], V[slice(*self.edges[k])]
            if sp.issparse(X):  # where most rows are right, only the others are gone through
                felt = np.flatnonzero(responses.any(axis=1))
                if felt.size < FEW_FELT * responses.shape[0]:
                    X, responses = X[felt], responses[felt]
            return np.asarray(X.T @ responses.astype(self.dtype))

        return self._summed(work)

    def sweep(self, W: Array, respond: Response) -> Array:
        """X' respond(X W), block by block."""
        W = W.astype(self.dtype)

        def work(k: int) -> Array:
            scores = np.asarray(self.blocks[k] @ W, np.float64)
            return np.asarray(self.blocks[k].T @ respond(*self.edges[k], scores).astype(self.dtype))

        return self._summed(work)

    def _summed(self, work: Callable[[int], Array]) -> Array:
        """The sum of work(k) over all blocks, in order."""
        parts: list[Any] = [None] * len(self.blocks)

        def task(k: int) -> None:
            parts[k] = work(k)

        with single_threaded_blas():
            parallel(task, len(parts), self.n_threads)
        total = np.asarray(parts[0], np.float64)
        for part in parts[1:]:
            total += part
        return total


def _rows_of(X: Any, first: int, last: int) -> Any:
    """Consecutive rows, without a copy."""
    if not sp.issparse(X):
        return X[first:last]
    a, b = X.indptr[first], X.indptr[last]
    return sp.csr_matrix(
        (X.data[a:b], X.indices[a:b], X.indptr[first : last + 1] - a),
        shape=(last - first, X.shape[1]),
        copy=False,
    )


class KernelSpace(Space):
    """Exact kernel expansions over all rows, K in memory: O(n^2) a round, the reference for small n.

    Coordinates are coefficients of the rows, and the inner product is that of K.

    Parameters
    ----------
    K : array of shape (n, n)
        Kernel values of all rows.
    """

    def __init__(self, K: Array) -> None:
        self.K = np.asarray(K, np.float64)
        self.n = self.size = self.max_size = int(self.K.shape[0])

    def scores(self, W: Array) -> Array:
        """K W"""
        return np.asarray(self.K @ W)

    def project(self, V: Array) -> Array:
        """V itself"""
        return V.copy()

    def metric(self, B: Array) -> Array:
        """K b"""
        return np.asarray(self.K @ B)


class SubspaceSpace(Space):
    """The span of a basis, in orthonormal coordinates: O(n m) a round. With ``grow``, one that gains vectors while cuts arrive.

    Parameters
    ----------
    columns : KernelColumns
        Rows and basis.
    grow : callable, optional
        grow(columns, row_weights (n, columns), basis_weights (m, columns)) -> vectors in the coordinates of the rows, or None. Called once for
        the newest cuts of a round while there are less than ``max_basis`` vectors, with their residuals: sum_i row_weights_i phi(x_i) +
        sum_j basis_weights_j phi(b_j) is what the span cannot say of a cut.
    max_basis : int, optional
        Where growth ends; by default the room in ``columns``.
    """

    scope = SUBSPACE

    def __init__(
        self, columns: KernelColumns, grow: Growth | None = None, max_basis: int | None = None
    ) -> None:
        self.columns, self.grow = columns, grow
        self.n, self.n_threads = columns.n, columns.n_threads
        self.max_size = columns.max_basis
        self.max_basis = min(self.max_size, self.max_size if max_basis is None else max_basis)
        self.precision = str(np.dtype(columns.dtype))

    @property
    def size(self) -> int:  # type: ignore[override]
        """Number of basis vectors."""
        return self.columns.m

    @property
    def growing(self) -> bool:  # type: ignore[override]
        """Whether the basis may gain vectors."""
        return self.grow is not None and self.columns.m < self.max_basis

    def scores(self, W: Array) -> Array:
        """K_XB L^-T W"""
        return self.columns.scores(self.coef(W)) if self.size else np.zeros((self.n, W.shape[1]))

    def project(self, V: Array) -> Array:
        """L^-1 K_BX V"""
        if not self.size:
            return np.empty((0, V.shape[1]))

        def work(first: int, last: int, K: Array) -> Array:
            return np.asarray(K @ V[first:last].astype(K.dtype), np.float64)

        return self.columns.coordinates(np.asarray(sum(self.columns.each_block(work))))

    def sweep(self, W: Array, respond: Response) -> Array:
        """L^-1 K_BX respond(K_XB L^-T W), block by block."""
        if not self.size:
            respond(0, self.n, np.zeros((self.n, W.shape[1])))
            return np.empty((0, W.shape[1]))
        return self.columns.coordinates(self.columns.sweep(self.coef(W), respond))

    def coef(self, W: Array) -> Array:
        """L^-T W"""
        return self.columns.coefficients(W) if self.size else W

    def weights(self, coef: Array) -> Array:
        """L' coef"""
        return np.asarray(self.columns.L.T @ coef)

    def extend(self, V: Array, P: Array) -> int:
        """Offer the residuals of cuts with responses V and coordinates P to ``grow``; returns the number of vectors that joined."""
        assert self.grow is not None
        before = self.size
        vectors = self.grow(self.columns, V, -self.coef(P))
        if vectors is not None and vectors.shape[0]:
            self.columns.append(vectors[: self.max_basis - before])
        return self.size - before

    def further(self, n_old: int, products: Callable[[int, int, Array], Array], P: Array) -> Array:
        """The coordinates of old cuts along the vectors from n_old on: (new, cuts).

        With l the row of L that belongs to a new vector b, lam its last entry: (k_b'v - l.p)/lam. ``P`` (n_old, cuts) holds the old ones,
        ``products(first, last, K)`` makes k_b'v over a block of rows, for all cuts.
        """
        K, n, L = self.columns.newest(n_old), self.n, self.columns.L
        parts: list[Any] = [None] * -(-n // ROWS_A_TASK)

        def task(k: int) -> None:
            first, last = k * ROWS_A_TASK, min(n, (k + 1) * ROWS_A_TASK)
            parts[k] = products(first, last, K[:, first:last])

        parallel(task, len(parts), self.n_threads)
        right = np.asarray(sum(parts)) - L[n_old:, :n_old] @ P
        return np.asarray(
            solve_triangular(L[n_old:, n_old:], right, lower=True, check_finite=False)
        )
