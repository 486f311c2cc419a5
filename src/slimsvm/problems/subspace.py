"""The best machine within the span of a basis: kernel values of all rows against the basis, and the problem over its coefficients.

    min over coef, intercept of  1/2 coef' K_BB coef + sum_i weight_i L(y_i, f(x_i)),     f(x) = sum_j coef_j k(b_j, x) + intercept

Several columns (one for each class, one-vs-rest) share the basis and are otherwise independent. :class:`KernelColumns` holds K_BX, one row of
it for every basis vector, in float32 where that is safe, as long as it fits the budget of bytes; beyond it, values are made anew in every pass.
Sums over rows are made in float64 whatever the type of the values: coordinates divide by the smallest distances among the basis.
Whatever needs all rows is a :meth:`KernelColumns.sweep`: one pass over blocks of rows with fixed edges that makes scores, lets the caller
respond to them, and sums K_BX times the response.

The basis lives in the coordinates of the readied rows (centred for distance kernels); ``in_given_coordinates`` brings it back.

Symbols: m basis vectors; n rows; K_BB + jitter I = L L'; z(x) = L^-1 k_B(x) orthonormal coordinates of the span; S scores, V responses.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.linalg import cholesky, solve_triangular
from scipy.linalg.lapack import dtrtri

from slimsvm.compiled import compiled
from slimsvm.kernels import Kernel
from slimsvm.losses import Loss
from slimsvm.threads import parallel, single_threaded_blas
from slimsvm.tiles import Operand, Strips, block, ready

Array = NDArray[Any]
Response = Callable[
    [int, int, Array], Array
]  # first row, last row, scores (rows, columns) -> responses (rows, any)
BLOCK_VALUES = 1 << 18  # of K_BX in one block: one megabyte of float32
# added to the diagonal of K_BB, relative to its largest entry: well above the rounding errors of K_BX, far below what changes a model
JITTER = {"float32": 1e-6, "float64": 1e-10}
VECTORS_A_TASK = 32
FEW_COLUMNS = 2  # up to so many columns products go through the values one by one; beyond, BLAS on a float64 copy is faster
DEPENDENT = 10.0  # a vector whose distance^2 to the span is below so many jitters is refused
DEFAULT_MEMORY = 2000.0  # megabytes


def combined(K: Array, coef: Array) -> Array:
    """K' coef, (rows, columns), in float64."""
    if coef.shape[1] > FEW_COLUMNS:
        return np.asarray(K.astype(np.float64, copy=False).T @ coef)
    out = np.zeros((K.shape[1], coef.shape[1]), order="F")
    for c in range(coef.shape[1]):
        _add_combination(K, np.ascontiguousarray(coef[:, c], np.float64), out[:, c])
    return out


def products(K: Array, V: Array) -> Array:
    """K V, (m, columns), in float64."""
    if V.shape[1] > FEW_COLUMNS:
        return np.asarray(K.astype(np.float64, copy=False) @ V)
    out = np.empty((K.shape[0], V.shape[1]), order="F")
    for c in range(V.shape[1]):
        _inner_products(K, np.ascontiguousarray(V[:, c], np.float64), out[:, c])
    return out


@compiled
def _add_combination(K: Array, coef: Array, out: Array) -> None:
    """out += K' coef: float32 values become float64 on the way, without a copy; four of them at a time."""
    m, m4 = K.shape[0], K.shape[0] - K.shape[0] % 4
    for j in range(0, m4, 4):
        c0, c1, c2, c3 = coef[j], coef[j + 1], coef[j + 2], coef[j + 3]
        k0, k1, k2, k3 = K[j], K[j + 1], K[j + 2], K[j + 3]
        for i in range(out.size):
            out[i] += (c0 * k0[i] + c1 * k1[i]) + (c2 * k2[i] + c3 * k3[i])
    for j in range(m4, m):
        c0, k0 = coef[j], K[j]
        for i in range(out.size):
            out[i] += c0 * k0[i]


@compiled
def _inner_products(K: Array, v: Array, out: Array) -> None:
    """out = K v, with eight sums for every row of K, so that it is vector code."""
    n8 = v.size - v.size % 8
    for j in range(K.shape[0]):
        k = K[j]
        s0, s1, s2, s3, s4, s5, s6, s7 = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
        for i in range(0, n8, 8):
            s0 += k[i] * v[i]
            s1 += k[i + 1] * v[i + 1]
            s2 += k[i + 2] * v[i + 2]
            s3 += k[i + 3] * v[i + 3]
            s4 += k[i + 4] * v[i + 4]
            s5 += k[i + 5] * v[i + 5]
            s6 += k[i + 6] * v[i + 6]
            s7 += k[i + 7] * v[i + 7]
        for i in range(n8, v.size):
            s0 += k[i] * v[i]
        out[j] = ((s0 + s1) + (s2 + s3)) + ((s4 + s5) + (s6 + s7))


class KernelColumns:
    """Kernel values of all rows against a growing basis.

    Parameters
    ----------
    rows : Operand
        All rows of the data, readied.
    max_basis : int
        Room for so many basis vectors.
    max_memory : float, optional
        Megabytes for K_BX; beyond, its blocks are computed in every pass.
    n_threads : int
        Results are the same bits for any number.

    Attributes
    ----------
    vectors : array or CSR matrix of shape (m, d)
        The basis in the coordinates of ``rows``, in float64.
    K_BB : array of shape (m, m)
        In float64, jitter not included.
    L : array of shape (m, m)
        Lower Cholesky factor of K_BB + jitter I.
    n_values : int
        Kernel values computed so far.
    """

    def __init__(
        self, rows: Operand, max_basis: int, max_memory: float | None = None, n_threads: int = 1
    ) -> None:
        self.rows, self.n, self.n_threads = rows, rows.n, n_threads
        self.max_basis = int(max_basis)
        self.dtype = np.dtype(rows.dtype)
        self.kernel: Kernel = rows.kernel
        self.m, self.n_values = 0, 0
        self._strips = Strips(rows)
        self.step = max(1024, min(16384, BLOCK_VALUES // max(1, self.max_basis) // 1024 * 1024))
        self.n_blocks = max(1, -(-self.n // self.step))
        needed = self.max_basis * self.n * np.dtype(self.dtype).itemsize / 2**20
        self.keeps = needed <= (DEFAULT_MEMORY if max_memory is None else float(max_memory))
        self._K = np.empty((self.max_basis if self.keeps else 0, self.n), self.dtype)
        self._reset()

    def _reset(self) -> None:
        self.m = 0
        self.vectors: Any = None
        self.accepted = np.empty(0, bool)  # which of those that were appended last
        self._K_BB = np.empty((self.max_basis, self.max_basis))
        self._L = np.zeros((self.max_basis, self.max_basis))
        self._operand: Operand | None = None
        self._inverse: Array | None = None

    # -- the basis ----------------------------------------------------------------------------------------------------------------------

    @property
    def K_BB(self) -> Array:
        """Kernel values among the basis."""
        return self._K_BB[: self.m, : self.m]

    @property
    def L(self) -> Array:
        """Lower Cholesky factor of K_BB + jitter I."""
        return self._L[: self.m, : self.m]

    @property
    def inverse(self) -> Array:
        """L^-1: thousands of products with small arrays follow, where a call of a solver costs more than its work."""
        if self._inverse is None:
            self._inverse, _ = dtrtri(np.asfortranarray(self.L), lower=1)
        return self._inverse

    @property
    def jitter(self) -> float:
        """What is added to the diagonal of K_BB."""
        largest = float(np.abs(np.diag(self.K_BB)).max()) if self.m else 1.0
        return JITTER[self.dtype.name] * largest

    @property
    def basis(self) -> Operand:
        """The basis, readied for products with the rows."""
        if self._operand is None:
            self._operand = self._readied(self.vectors)
        return self._operand

    def _readied(self, vectors: Any) -> Operand:
        """Vectors that are in the coordinates of the rows already: nothing is subtracted again."""
        if self.rows.index is not None or self.rows.sq is None:
            return ready(self.kernel, vectors)
        plain = Operand(self.kernel, self.rows.X, self.rows.sq, None)
        return ready(self.kernel, vectors, like=plain)

    def append(self, vectors: Any) -> Array:
        """Add basis vectors (in the coordinates of the rows) one by one; returns which were accepted.

        A vector that depends on those before it (its distance to their span is within rounding errors) is refused.
        """
        accepted = np.zeros(vectors.shape[0], bool)
        new = self._float64(vectors)
        known = self.vectors
        K_new = (
            self.kernel.block(new, new, np.float64) if not sp.issparse(new) else self.kernel(new)
        )
        K_old = self.kernel(new, known) if self.m else np.empty((vectors.shape[0], 0))
        first = self.m
        for i in range(vectors.shape[0]):
            if self.m == self.max_basis:
                break
            k_B = np.concatenate([K_old[i], K_new[i, np.flatnonzero(accepted)]])
            diag = float(K_new[i, i])
            jitter = JITTER[self.dtype.name] * max(
                diag, float(np.diag(self.K_BB).max()) if self.m else diag
            )
            row = solve_triangular(self.L, k_B, lower=True, check_finite=False) if self.m else k_B
            left = diag + jitter - float(row @ row)
            if not (np.isfinite(left) and left > DEPENDENT * jitter):
                continue
            m = self.m
            self._K_BB[m, :m] = self._K_BB[:m, m] = k_B
            self._K_BB[m, m] = diag
            self._L[m, :m], self._L[m, m] = row, np.sqrt(left)
            self.m += 1
            accepted[i] = True
        if accepted.any():
            chosen = new[accepted]
            self.vectors = (
                chosen
                if known is None
                else sp.vstack([known, chosen], format="csr")
                if sp.issparse(chosen)
                else np.vstack([known, chosen])
            )
            self._operand = self._inverse = None
            self._compute(chosen, first)
        self.accepted = accepted
        return accepted

    def replace(self, vectors: Any) -> None:
        """Another basis of any size within the room: all its vectors are taken, jitter keeps the factor regular."""
        self._reset()
        new = self._float64(vectors)
        self.m, self.vectors = new.shape[0], new
        self._K_BB[: self.m, : self.m] = self.kernel(new)
        regular = self.K_BB + self.jitter * np.eye(self.m)
        self._L[: self.m, : self.m] = cholesky(regular, lower=True, check_finite=False)
        self._compute(new, 0)

    def first(self, m: int) -> KernelColumns:
        """The same values with the first m basis vectors only; nothing is copied, and neither may grow while the other is in use."""
        some = copy.copy(self)
        some.m, some.max_basis, some.vectors, some._operand, some._inverse = (
            m,
            m,
            self.vectors[:m],
            None,
            None,
        )
        return some

    def _float64(self, vectors: Any) -> Any:
        return (
            vectors.tocsr().astype(np.float64)
            if sp.issparse(vectors)
            else np.ascontiguousarray(vectors, np.float64)
        )

    def _compute(self, vectors: Any, first: int) -> None:
        if self.keeps:
            q = vectors.shape[0]
            block(self._readied(vectors), self._strips, self.n_threads, self._K[first : first + q])
            self.n_values += q * self.n

    def in_given_coordinates(self, vectors: Any = None) -> Any:
        """Basis vectors (all, or these) in the coordinates of the data as it was given."""
        vectors = self.vectors if vectors is None else vectors
        return (
            vectors
            if self.rows.shift is None or sp.issparse(vectors)
            else vectors + self.rows.shift
        )

    def in_rows_coordinates(self, vectors: Any) -> Any:
        """The other way round."""
        if self.rows.shift is None:
            return vectors
        return (
            vectors.toarray() if sp.issparse(vectors) else np.asarray(vectors, np.float64)
        ) - self.rows.shift

    # -- passes over the rows -----------------------------------------------------------------------------------------------------------

    def edges(self, k: int) -> tuple[int, int]:
        """First and last row (exclusive) of block k."""
        return k * self.step, min(self.n, (k + 1) * self.step)

    def block(self, k: int) -> Array:
        """K_BX of block k, shape (m, rows)."""
        start, end = self.edges(k)
        if self.keeps:
            return self._K[: self.m, start:end]
        return block(self.basis, Strips(self.rows.take(slice(start, end))))

    def newest(self, first: int) -> Array:
        """K_BX of the vectors from ``first`` on, shape (m - first, n): a few rows, whether the others are kept or not."""
        if self.keeps:
            return self._K[first : self.m]
        out = block(self._readied(self.vectors[first:]), self._strips, self.n_threads)
        self.n_values += out.size
        return out

    def at_rows(self, rows: Array) -> Array:
        """K_BX of some rows (ascending), shape (m, rows), as far as it is kept."""
        out, n_tasks = np.empty((self.m, rows.size), self.dtype), -(-self.m // VECTORS_A_TASK)

        def gather(t: int) -> None:
            part = slice(t * VECTORS_A_TASK, min(self.m, (t + 1) * VECTORS_A_TASK))
            np.take(self._K[part], rows, axis=1, out=out[part], mode="clip")

        parallel(gather, n_tasks, self.n_threads)
        return out

    def each_block(self, work: Callable[[int, int, Array], Any]) -> list[Any]:
        """work(first row, last row, K_BX of the block) for all blocks, on all threads; the results in order."""
        parts: list[Any] = [None] * self.n_blocks

        def keep(k: int, start: int, end: int, K: Array) -> None:
            parts[k] = work(start, end, K)

        self.each_group(keep, self.n_blocks)
        return parts

    def each_group(self, work: Callable[[int, int, int, Array], None], n_groups: int) -> None:
        """work(group, first row, last row, K_BX of the block): blocks of a group come in order, from one thread; for sums of large arrays."""
        edges = np.linspace(0, self.n_blocks, n_groups + 1).astype(int)

        def task(g: int) -> None:
            for k in range(edges[g], edges[g + 1]):
                start, end = self.edges(k)
                work(g, start, end, self.block(k))

        with single_threaded_blas():
            parallel(task, n_groups, self.n_threads)
        if not self.keeps:
            self.n_values += self.m * self.n

    def sweep(self, coef: Array, respond: Response) -> Array:
        """One pass: scores S = K_XB coef block by block, V = respond(first, last, S), and the sum of K_BX V, in float64."""

        def work(start: int, end: int, K: Array) -> Array:
            return products(K, respond(start, end, combined(K, coef)))

        return np.asarray(sum(self.each_block(work)))

    def scores(self, coef: Array) -> Array:
        """K_XB coef, shape (n, columns)."""
        out = np.empty((self.n, coef.shape[1]), order="F")

        def work(start: int, end: int, K: Array) -> None:
            out[start:end] = combined(K, coef)

        self.each_block(work)
        return out

    def distances(self) -> Array:
        """|phi(x) - its projection on the span| of all rows, never too small: jitter makes the span smaller, rounding is allowed for."""
        diag = np.asarray(self.rows.diag(), np.float64)

        def work(start: int, end: int, K: Array) -> Array:
            Z = self.inverse @ K.astype(np.float64, copy=False)
            return np.asarray(diag[start:end] - np.einsum("ji,ji->i", Z, Z))

        left = np.concatenate(self.each_block(work)) if self.m else diag
        return np.asarray(np.sqrt(np.maximum(left, 0.0) + JITTER[self.dtype.name] * diag))

    def coordinates(self, P: Array) -> Array:
        """L^-1 P: products with the basis in orthonormal coordinates of its span."""
        return np.asarray(self.inverse @ P)

    def coefficients(self, W: Array) -> Array:
        """L^-T W: coefficients of the basis for a function given in orthonormal coordinates."""
        return np.asarray(self.inverse.T @ W)


@dataclass
class Subspace:
    """The problem over a basis.

    Parameters
    ----------
    columns : KernelColumns
        The rows and the basis.
    target : array of shape (n, columns)
        Labels of -1 and +1, or numbers.
    weight : array of shape (n,)
        C times the weight of each row.
    loss : Loss
        What a mistake costs.
    fit_intercept : bool
        Whether there is an intercept; it is not penalised.
    """

    columns: KernelColumns
    target: Array
    weight: Array
    loss: Loss
    fit_intercept: bool = True

    def __post_init__(self) -> None:
        self.target = np.asfortranarray(self.target, np.float64)  # compiled loops run down a column

    @property
    def n_columns(self) -> int:
        """Number of columns."""
        return int(self.target.shape[1])

    def risk(self, scores: Array) -> Array:
        """sum_i weight_i L(y_i, f_i) for each column; scores with the intercept."""
        return np.asarray(self.weight @ self.loss.value(self.target, scores))

    def objective(self, coef: Array, scores: Array) -> Array:
        """The value for each column."""
        return np.asarray(
            0.5 * np.einsum("jc,jl,lc->c", coef, self.columns.K_BB, coef) + self.risk(scores)
        )
