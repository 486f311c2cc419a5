"""Kernel values, fast: the one place that evaluates k(X, B).

Values are made tile by tile. The column side is cut into strips with fixed edges; a strip is the
unit of work of a thread. Within it, chunks of the row side are multiplied by BLAS into a scratch
tile that stays in cache, the kernel turns the products into values in place, and a *consumer* takes
the tile (stores it, adds it up, multiplies it) before it leaves the cache. No tile depends on which
thread made it, so results are the same bits for any number of threads.

Sparse times sparse runs over postings: for every feature of a row, the rows of the strip that have
it too.

Symbols: r, c edges of a chunk of rows and of a strip of columns; sq squared norms.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from slimsvm.buffers import Buffer, own_scratch
from slimsvm.centring import (
    FLOAT32_ERROR,
    centre,
    converted,
    dense_is_better,
    safe_dtype,
    squares_around,
    varying,
)
from slimsvm.compiled import compiled
from slimsvm.forms import exp_rows
from slimsvm.kernels import RBF, Kernel, Precomputed, number, squared_norms
from slimsvm.threads import parallel, single_threaded_blas

Array = NDArray[Any]
CHUNK_ROWS = 256
# one megabyte in float32: stays in the outer caches, and is enough work to hide the call
TILE_VALUES = CHUNK_ROWS * 1024
SQUARE = 128  # rows of a part of k(X, X)
# features up to which distances cost about as much from differences as from products (measured in
# float32, with the exponential: 0.43 against 0.38 ns a value with 8, 0.66 against 0.51 with 16)
NEAR = 16
SEEN, FAR = 48, 16  # rows on which errors are seen, and those of the largest norms beside them

# -- operands --------------------------------------------------------------------------------------


@dataclass(eq=False, repr=False)
class Operand:
    """Rows prepared for products: one type, centred if possible, and squared norms.

    Whether they can be centred depends on the kernel.
    """

    kernel: Kernel
    X: Any  # C-ordered array, CSR matrix, or whatever a callable kernel takes
    sq: Array | None
    shift: Array | None = None  # what was subtracted from every row
    source: Any = None  # the rows as they were given, for :meth:`exact`; a reference, never a copy
    picked: Array | slice | None = None  # which of them; None: all
    # precomputed kernel: X is the whole matrix, and these are its rows (or columns) meant here
    index: Array | None = None
    # the error of a kernel value that was seen, here or on rows of which these are a part
    seen: float | None = None
    # whether distances are sums of squared differences, which keep their digits in float32
    by_differences: bool = False

    @property
    def n(self) -> int:
        """Number of rows."""
        return int(self.X.shape[0] if self.index is None else self.index.size)

    @property
    def dtype(self) -> Any:
        """Type of the kernel values."""
        return np.dtype(np.float64) if self.sq is None else self.sq.dtype

    def take(self, indices: Array | slice, buffer: Buffer | None = None) -> Operand:
        """The operand of some of the rows.

        Dense ones are gathered into the buffer, if there is one, and are valid until its next use.
        """
        if self.index is not None:
            return Operand(self.kernel, self.X, None, index=self.index[indices])
        picked: Any = (
            indices
            if self.picked is None or self.source is None
            else np.arange(self.source.shape[0])[self.picked][indices]
        )
        if (
            isinstance(indices, np.ndarray)
            and indices.dtype == np.intp
            and isinstance(self.X, np.ndarray)
        ):  # faster than brackets
            room = (
                None
                if buffer is None
                else buffer.array((indices.size, self.X.shape[1]), self.X.dtype)
            )
            X = np.take(self.X, indices, axis=0, out=room, mode="clip")
        else:
            X = self.X[indices]
        return Operand(
            self.kernel,
            X,
            None if self.sq is None else self.sq[indices],
            self.shift,
            self.source,
            picked,
            seen=self.seen,
            by_differences=self.by_differences,
        )

    def exact(self) -> Operand:
        """The same rows in float64, from the rows as they were given."""
        return prepare(
            self.kernel,
            self.source if self.picked is None else self.source[self.picked],
            dtype=np.float64,
            alone=True,
        )

    def finer(self) -> Operand | None:
        """The same rows in float32, with distances by differences; None if that is not for them."""
        if self.by_differences or self.dtype != np.float32 or not _may_be_near(self.kernel, self.X):
            return None
        return replace(self, seen=None, by_differences=True)

    def error(self) -> float:
        """A bound on the error of a kernel value between these rows."""
        if self.sq is None or not self.sq.size:
            return 0.0
        if self.by_differences:
            return _near_error(self.kernel, float(self.sq.max()), int(self.X.shape[1]))
        largest = float(np.abs(self.diag()).max())
        return largest * self.kernel.error(
            float(self.sq.max()), int(self.X.shape[1]), float(np.finfo(self.dtype).eps) / 2
        )

    def rounding(self) -> float:
        """The largest error of a kernel value that is to be expected.

        In float32 it is seen on a few rows, those of the largest norms among them: the bound is
        some hundred times as much. Where no bound is known, it is a few units in the last place.
        """
        known = self.error()
        if self.by_differences and np.isfinite(known):
            return known  # large for near rows alone, which are not seen
        if known > 0.0 and np.isfinite(known) and self.dtype == np.float64:
            return known
        largest = float(np.abs(self.diag()).max(initial=0.0))
        least = 4.0 * float(np.finfo(self.dtype).eps) * largest
        if not (known > 0.0 and np.isfinite(known)):
            return least
        if self.source is None or self.sq is None:
            return known
        if self.seen is None:
            some = np.unique(np.linspace(0, self.n - 1, SEEN).astype(np.intp))
            far = np.argpartition(self.sq, -min(FAR, self.n))[-FAR:]
            rows = self.take(np.union1d(some, far))
            wide = rows.exact()
            self.seen = float(np.abs(block(rows, Strips(rows)) - block(wide, Strips(wide))).max())
        return min(known, max(least, 2.0 * self.seen))

    def diag(self) -> Array:
        """k(x, x) in float64."""
        if self.index is not None:
            return np.asarray(self.X[self.index, self.index], np.float64)
        if self.sq is None:
            return self.kernel.diag(self.X)
        return self.kernel.diag_from_sq(self.sq.astype(np.float64))


def prepare(
    kernel: Kernel, X: Any, *, dtype: Any = None, like: Operand | None = None, alone: bool = False
) -> Operand:
    """Prepare the rows X for products with ``kernel``.

    ``dtype`` None takes float32 where the error bound of the kernel says that it is safe, float64
    otherwise. ``like`` prepares X for products with another operand: the same type and centre.
    ``alone`` promises that products will be taken among these rows only: features that are the same
    in all of them say nothing about distances, and are left out. Where inner products of few
    features are not safe in float32, their differences may be: see :func:`_near_error`.
    """
    if isinstance(kernel, Precomputed):
        return Operand(kernel, X, None, index=np.arange(X.shape[0]))
    # a callable: the rows go to it untouched
    if not kernel.uses_dots and not kernel.shift_invariant:
        return Operand(kernel, X, None)
    if sp.issparse(X):
        X = X.tocsr()
        if not dense_is_better(X):
            return prepare_sparse(kernel, X, dtype, like)
    shift = None
    if like is not None:
        dtype, shift = like.dtype, like.shift
    elif kernel.shift_invariant and X.shape[0]:
        shift = np.asarray(X.mean(axis=0, dtype=np.float64)).ravel()
    varies = varying(X) if alone and shift is not None else None
    found = prepare_at(kernel, X, shift, dtype, varies)
    if alone and dtype is None and found.dtype == np.float64 and _may_be_near(kernel, found.X):
        assert found.sq is not None
        if _near_error(kernel, float(found.sq.max(initial=0.0)), found.X.shape[1]) <= FLOAT32_ERROR:
            sq = found.sq.astype(np.float32)
            return replace(found, X=found.X.astype(np.float32), sq=sq, by_differences=True)
    return found


def _may_be_near(kernel: Kernel, X: Any) -> bool:
    """Whether distances may come from differences of features: few ones, and an RBF kernel."""
    return isinstance(kernel, RBF) and isinstance(X, np.ndarray) and 0 < X.shape[1] <= NEAR


def _near_error(kernel: Kernel, max_sq: float, n_features: int) -> float:
    """A bound on the error of a value exp(-t), t = gamma |x - z|^2, from differences in float32.

    Features are rounded to float32, which moves |x - z| by up to 2 eps max |x|; their differences,
    squares and sum add (d + 2) eps of t. Both are damped by the value itself: sqrt(t) exp(-t) is at
    most 0.43, and t exp(-t) 0.37. With inner products, t is the difference of numbers of size
    gamma |x|^2, and is off by that times eps.
    """
    eps, size = float(np.finfo(np.float32).eps) / 2, number(kernel, "gamma") * max_sq
    if not (size < 1e12 and 1e-30 < max_sq < 1e30):
        return math.inf
    return eps * (1.72 * math.sqrt(size) + 0.37 * (n_features + 2) + 4.0)


def prepare_at(kernel: Kernel, X: Any, shift: Array | None, dtype: Any, varies: Any) -> Operand:
    """Dense rows around a centre; of some features only, if not all vary."""
    if (
        shift is not None
        and varies is None
        and isinstance(X, np.ndarray)
        and X.flags.c_contiguous
        and X.dtype.char in "fd"
    ):
        # a centre in float32, as old files have it, would make differences float32
        return _prepare_at_once(kernel, np.asarray(X), np.asarray(shift, np.float64), dtype)
    sq = squares_around(X, shift)
    if dtype is None:
        dtype = safe_dtype(kernel, sq, X.shape[1])
    return Operand(kernel, converted(X, shift, dtype, varies), sq.astype(dtype), shift, source=X)


def _prepare_at_once(kernel: Kernel, X: Array, shift: Array, dtype: Any) -> Operand:
    """Centred rows and their squared norms in one pass.

    Several passes would take most of the time of a prediction with few vectors.
    """
    sq = np.empty(X.shape[0])
    out = np.empty(X.shape, np.float32 if dtype is None else dtype)
    centre(X, shift, out, sq)
    if dtype is None and safe_dtype(kernel, sq, X.shape[1]) == np.float64:
        out = np.empty(X.shape)
        centre(X, shift, out, sq)
    with np.errstate(over="ignore"):  # so far away that the kernel is zero, whatever the number
        return Operand(kernel, out, sq.astype(out.dtype), shift, source=X)


def prepare_sparse(kernel: Kernel, X: Any, dtype: Any, like: Operand | None) -> Operand:
    """Sparse rows that stay sparse, unless they are to be centred as others are."""
    sq = squared_norms(X)
    if like is not None:
        if like.shift is not None:
            return Operand(
                kernel,
                converted(X, like.shift, like.dtype),
                squares_around(X, like.shift).astype(like.dtype),
                like.shift,
            )
        dtype = like.dtype
    if dtype is None:
        dtype = safe_dtype(kernel, sq, X.shape[1])
    X = X if X.has_sorted_indices else X.sorted_indices()
    return Operand(kernel, X.astype(dtype), sq.astype(dtype), source=X)


# -- strips ----------------------------------------------------------------------------------------


class Strips:
    """The column side of a product: an operand cut into strips with fixed edges."""

    def __init__(self, operand: Operand, width: int | None = None) -> None:
        self.operand = operand
        self._by_feature: Array | None = None
        self.fixed = width is not None or sp.issparse(operand.X)
        # each strip repeats the feature pointers: wide enough that they stay fewer than the entries
        if sp.issparse(operand.X):
            n_most = max(1, int(2 * operand.X.nnz // max(1, operand.X.shape[1])))
            width = width or max(4096, -(-operand.n // n_most))
        self._cut(width or 1024)

    def _cut(self, width: int) -> None:
        self.width = width
        self.n_strips = -(-self.operand.n // width)
        self._postings: list[Any] = [None] * self.n_strips

    def suited_to(self, n_rows: int) -> Strips:
        """The same columns in strips of the width that suits so many rows.

        Those of sparse rows, or of a given width, stay.
        """
        if self.fixed:
            return self
        width = min(
            8192, max(1024, 512 * round(TILE_VALUES / max(1, min(n_rows, CHUNK_ROWS)) / 512))
        )
        if width == self.width:
            return self
        others = Strips(self.operand, width)
        others._by_feature = self._by_feature
        return others

    def edges(self, k: int) -> tuple[int, int]:
        """First and last column (exclusive) of strip k."""
        return k * self.width, min(self.operand.n, (k + 1) * self.width)

    @property
    def by_feature(self) -> Array:
        """Dense columns feature by feature, with zeros up to a multiple of four features."""
        if self._by_feature is None:
            X = self.operand.X
            self._by_feature = np.zeros((-(-X.shape[1] // 4) * 4, X.shape[0]), X.dtype)
            self._by_feature[: X.shape[1]] = X.T
        return self._by_feature

    def postings(self, k: int) -> Any:
        """Strip k feature by feature."""
        if self._postings[k] is None:
            start, end = self.edges(k)
            self._postings[k] = self.operand.X[start:end].tocsc()
        return self._postings[k]


@compiled
def posting_products(
    indptr: Array,
    indices: Array,
    data: Array,
    first: int,
    last: int,
    p_indptr: Array,
    p_indices: Array,
    p_data: Array,
    out: Array,
) -> None:
    """out[i - first, :] = products of sparse row i with the rows behind the postings."""
    for i in range(first, last):
        row = out[i - first]
        row[:] = 0
        for a in range(indptr[i], indptr[i + 1]):
            feature, value = indices[a], data[a]
            for p in range(p_indptr[feature], p_indptr[feature + 1]):
                row[p_indices[p]] += value * p_data[p]


@compiled
def near_values(
    scale: float, A: Array, first: int, last: int, B: Array, start: int, end: int, nothing: Array,
    out: Array,
) -> None:  # fmt: skip
    """out = exp(scale |a_i - b_j|^2), rows first..last of A, columns start..end of B by feature.

    The sum over the features is the same for (a, b) and (b, a). ``nothing`` are zeros.
    """
    d, no = A.shape[1], nothing[0]
    for r in range(first, last):
        row, values = A[r], out[r - first]
        for k in range(0, d, 4):
            b0, b1 = B[k, start:end], B[k + 1, start:end]
            b2, b3 = B[k + 2, start:end], B[k + 3, start:end]
            a0 = row[k]
            a1 = row[k + 1] if k + 1 < d else no
            a2 = row[k + 2] if k + 2 < d else no
            a3 = row[k + 3] if k + 3 < d else no
            if k == 0:
                for j in range(values.size):
                    x0, x1, x2, x3 = a0 - b0[j], a1 - b1[j], a2 - b2[j], a3 - b3[j]
                    values[j] = x0 * x0 + x1 * x1 + x2 * x2 + x3 * x3
            else:
                for j in range(values.size):
                    x0, x1, x2, x3 = a0 - b0[j], a1 - b1[j], a2 - b2[j], a3 - b3[j]
                    values[j] = values[j] + x0 * x0 + x1 * x1 + x2 * x2 + x3 * x3
    exp_rows(out, scale, 0.0, nothing, nothing)


def tile(rows: Operand, first: int, last: int, strips: Strips, k: int, scratch: Array) -> Array:
    """Kernel values of rows first..last against strip k, in (a view of) the scratch array."""
    kernel, columns = rows.kernel, strips.operand
    start, end = strips.edges(k)
    if rows.index is not None and columns.index is not None:
        return np.asarray(
            rows.X[np.ix_(rows.index[first:last], columns.index[start:end])], np.float64
        )
    if not kernel.uses_dots:
        return kernel.block(rows.X[first:last], columns.X[start:end], rows.dtype)
    out = scratch[: (last - first) * (end - start)].reshape(last - first, end - start)
    A, B = rows.X, columns.X
    if rows.by_differences and columns.by_differences:
        nothing = np.zeros(max(out.shape), np.float32)
        near_values(
            -number(kernel, "gamma"), A, first, last, strips.by_feature, start, end, nothing, out
        )
        return out
    if sp.issparse(A) and sp.issparse(B):
        p = strips.postings(k)
        posting_products(A.indptr, A.indices, A.data, first, last, p.indptr, p.indices, p.data, out)
    elif sp.issparse(B):  # dense times sparse: only the entries that are there
        out[:] = (B[start:end] @ A[first:last].T).T
    elif sp.issparse(A):
        out[:] = A[first:last] @ B[start:end].T
    else:
        np.dot(A[first:last], B[start:end].T, out=out)
    assert rows.sq is not None and columns.sq is not None
    kernel.from_dots(out, rows.sq[first:last], columns.sq[start:end])
    return out


# first row, last row, first column, last column, values
Consumer = Callable[[int, int, int, int, Array], None]


def for_each_tile(rows: Operand, strips: Strips, consume: Consumer, n_threads: int = 1) -> None:
    """Make all tiles of k(rows, columns) and hand each to ``consume``.

    Tiles of one strip come in order, from one thread.
    """
    n = rows.n
    strips = strips.suited_to(n)
    if rows.by_differences and strips.operand.by_differences:
        _ = strips.by_feature  # before any thread asks for it
    chunk = max(1, min(n, CHUNK_ROWS, TILE_VALUES // strips.width))

    def strip(k: int) -> None:
        start, end = strips.edges(k)
        scratch = own_scratch("tile", chunk * (end - start), rows.dtype)
        for first in range(0, n, chunk):
            last = min(n, first + chunk)
            consume(first, last, start, end, tile(rows, first, last, strips, k, scratch))

    with single_threaded_blas():
        parallel(strip, strips.n_strips, n_threads)


def block(rows: Operand, strips: Strips, n_threads: int = 1, out: Array | None = None) -> Array:
    """All values k(rows, columns) in one array, of the type of the rows or as given."""
    out = np.empty((rows.n, strips.operand.n), rows.dtype) if out is None else out

    def keep(first: int, last: int, start: int, end: int, values: Array) -> None:
        out[first:last, start:end] = values

    for_each_tile(rows, strips, keep, n_threads)
    return out


@compiled
def _both_ways(values: Array, out: Array, first: int) -> None:
    """Enter k(rows from first on, all rows up to these) into the rows and into the columns."""
    n, width = values.shape
    for r in range(n):
        row = out[first + r, :width]
        for j in range(width):
            row[j] = values[r, j]
    for j0 in range(0, first, 32):  # through squares, for the cache
        for j in range(j0, min(first, j0 + 32)):
            row = out[j, first : first + n]
            for r in range(n):
                row[r] = values[r, j]


def square(operand: Operand, out: Array, n_threads: int = 1) -> None:
    """out = k(X, X), exactly symmetric, and on the diagonal what the kernel says of one row."""
    X, sq, n = operand.X, operand.sq, operand.n
    if not operand.kernel.uses_dots or sp.issparse(X) or sq is None or operand.by_differences:
        block(operand, Strips(operand, 256), n_threads, out)
        return

    def part(k: int) -> None:  # the long ones first
        first = SQUARE * (n_parts - 1 - k)
        last = min(n, first + SQUARE)
        values = own_scratch("tile", (last - first) * last, operand.dtype)
        values = values.reshape(last - first, last)
        np.dot(X[first:last], X[:last].T, out=values)
        operand.kernel.from_dots(values, sq[first:last], sq[:last])
        _both_ways(values, out, first)

    n_parts = -(-n // SQUARE)
    with single_threaded_blas():
        parallel(part, n_parts, n_threads)
    np.fill_diagonal(out, operand.diag())


def kernel_values(
    kernel: Kernel,
    X: Any,
    B: Any,
    *,
    dtype: Any = None,
    n_threads: int = 1,
    width: int | None = None,
) -> Array:
    """The matrix k(X, B), for dense or CSR input on either side.

    Parameters
    ----------
    kernel : Kernel
        With numbers for its parameters.
    X, B : array or CSR matrix
        Rows on either side.
    dtype : float32, float64 or None
        None: float32 where the kernel's error bound says that it is safe.
    n_threads : int
        Results are the same bits for any number.
    width : int, optional
        Columns a strip.

    Examples
    --------
    >>> from slimsvm.kernels import RBF
    >>> kernel_values(RBF(0.5), [[0.0], [2.0]], [[0.0]], dtype="float64").round(4)
    array([[1.    ],
           [0.1353]])
    """
    X, B = (Z if hasattr(Z, "dtype") else np.asarray(Z, dtype=np.float64) for Z in (X, B))
    columns = prepare(kernel, B, dtype=None if dtype is None else np.dtype(dtype))
    rows = prepare(kernel, X, like=columns) if columns.sq is not None else prepare(kernel, X)
    return block(rows, Strips(columns, width), n_threads)
