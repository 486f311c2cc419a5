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
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from slimsvm.compiled import compiled, compiled_within
from slimsvm.forms import finish
from slimsvm.kernels import Kernel, Precomputed, squared_norms
from slimsvm.rows import Block, MemoryRows, Rows
from slimsvm.threads import local, parallel, single_threaded_blas

Array = NDArray[Any]
CHUNK_ROWS = 256
# one megabyte in float32: stays in the outer caches, and is enough work to hide the call
TILE_VALUES = CHUNK_ROWS * 1024
# the largest error bound of a value, relative to the largest value, at which float32 counts as safe
FLOAT32_ERROR = 5e-5
# a scattered multiply-add costs as much as this many in BLAS (measured: 42e9 against 0.7e9 a second
# a core)
DENSE_WORTH = 60.0
SPARE_BYTES, SPARES = 1 << 23, 4  # of memory that buffers leave to one another: 1,000 rows
SQUARE = 128  # rows of a part of k(X, X)
SEEN, FAR = 48, 16  # rows on which errors are seen, and those of the largest norms beside them

# -- operands --------------------------------------------------------------------------------------


class Buffer:
    """Memory that is used again.

    A new array of megabytes costs more in page faults than what is usually done with it. So one of
    up to SPARE_BYTES is left to the next buffer, if nobody holds an array on it any more.
    """

    _spare: ClassVar[list[Array]] = []

    def __init__(self) -> None:
        self._bytes = np.empty(0, np.uint8)

    def array(self, shape: tuple[int, ...], dtype: Any) -> Array:
        """An array on this memory; what was there before is gone."""
        size = math.prod(shape) * np.dtype(dtype).itemsize
        if self._bytes.size < size:
            try:
                left = self._spare.pop()
            except IndexError:
                left = self._bytes
            self._bytes = left if left.size >= size else np.empty(size, np.uint8)
        return np.asarray(self._bytes[:size].view(dtype).reshape(shape))

    def __del__(self) -> None:
        alone = sys.getrefcount(self._bytes) <= 2  # every array on it counts as one more
        if alone and 0 < self._bytes.size <= SPARE_BYTES and len(self._spare) < SPARES:
            self._spare.append(self._bytes)


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

    @property
    def n(self) -> int:
        """Number of rows."""
        return int(self.X.shape[0] if self.index is None else self.index.size)

    @property
    def dtype(self) -> Any:
        """Type of the kernel values."""
        return np.dtype(np.float64) if self.sq is None else self.sq.dtype

    @property
    def frame(self) -> Frame:
        """How these rows were prepared."""
        return Frame(self.kernel, self.shift, self.dtype, sp.issparse(self.X))

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
        )

    def exact(self) -> Operand:
        """The same rows in float64, from the rows as they were given."""
        return prepare(
            self.kernel,
            self.source if self.picked is None else self.source[self.picked],
            dtype=np.float64,
            alone=True,
        )

    def error(self) -> float:
        """A bound on the error of a kernel value between these rows."""
        if self.sq is None or not self.sq.size:
            return 0.0
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


def rounding_of(where: Block, frame: Frame) -> float:
    """A task: the error of a kernel value of a block."""
    return frame.prepared(where).operand.rounding()


def prepare(
    kernel: Kernel, X: Any, *, dtype: Any = None, like: Operand | None = None, alone: bool = False
) -> Operand:
    """Prepare the rows X for products with ``kernel``.

    ``dtype`` None takes float32 where the error bound of the kernel says that it is safe, float64
    otherwise. ``like`` prepares X for products with another operand: the same type and centre.
    ``alone`` promises that products will be taken among these rows only: features that are the same
    in all of them say nothing about distances, and are left out.
    """
    if isinstance(kernel, Precomputed):
        return Operand(kernel, X, None, index=np.arange(X.shape[0]))
    # a callable: the rows go to it untouched
    if not kernel.uses_dots and not kernel.shift_invariant:
        return Operand(kernel, X, None)
    if sp.issparse(X):
        X = X.tocsr()
        if not _dense_is_better(X):
            return _prepare_sparse(kernel, X, dtype, like)
    shift = None
    if like is not None:
        dtype, shift = like.dtype, like.shift
    elif kernel.shift_invariant and X.shape[0]:
        shift = np.asarray(X.mean(axis=0, dtype=np.float64)).ravel()
    return _prepare_at(
        kernel, X, shift, dtype, _varying(X) if alone and shift is not None else None
    )


def _prepare_at(kernel: Kernel, X: Any, shift: Array | None, dtype: Any, varies: Any) -> Operand:
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
    sq = _shifted_squares(X, shift)
    if dtype is None:
        dtype = safe_dtype(kernel, sq, X.shape[1])
    return Operand(kernel, _converted(X, shift, dtype, varies), sq.astype(dtype), shift, source=X)


def _prepare_at_once(kernel: Kernel, X: Array, shift: Array, dtype: Any) -> Operand:
    """Centred rows and their squared norms in one pass.

    Several passes would take most of the time of a prediction with few vectors.
    """
    sq = np.empty(X.shape[0])
    out = np.empty(X.shape, np.float32 if dtype is None else dtype)
    _centre(X, shift, out, sq)
    if dtype is None and safe_dtype(kernel, sq, X.shape[1]) == np.float64:
        out = np.empty(X.shape)
        _centre(X, shift, out, sq)
    with np.errstate(over="ignore"):  # so far away that the kernel is zero, whatever the number
        return Operand(kernel, out, sq.astype(out.dtype), shift, source=X)


@compiled
def _centre(X: Array, shift: Array, out: Array, sq: Array) -> None:
    """out = X - shift, and the squared norms of its rows; four sums, so that it is vector code."""
    n, d = X.shape
    d4 = d - d % 4
    for i in range(n):
        s0, s1, s2, s3 = 0.0, 0.0, 0.0, 0.0
        for j in range(0, d4, 4):
            x0, x1, x2, x3 = (
                X[i, j] - shift[j],
                X[i, j + 1] - shift[j + 1],
                X[i, j + 2] - shift[j + 2],
                X[i, j + 3] - shift[j + 3],
            )
            out[i, j], out[i, j + 1], out[i, j + 2], out[i, j + 3] = x0, x1, x2, x3
            s0, s1, s2, s3 = s0 + x0 * x0, s1 + x1 * x1, s2 + x2 * x2, s3 + x3 * x3
        for j in range(d4, d):
            x0 = X[i, j] - shift[j]
            out[i, j] = x0
            s0 += x0 * x0
        sq[i] = (s0 + s1) + (s2 + s3)


def _varying(X: Any) -> Array | None:
    """The features that are not constant; None if they are nearly all."""
    if sp.issparse(X):
        return None
    varies = np.flatnonzero(np.asarray(X.min(axis=0) != X.max(axis=0)))
    return varies if 0 < varies.size < 0.97 * X.shape[1] else None


def _prepare_sparse(kernel: Kernel, X: Any, dtype: Any, like: Operand | None) -> Operand:
    sq = squared_norms(X)
    if like is not None:
        if like.shift is not None:
            return Operand(
                kernel,
                _converted(X, like.shift, like.dtype),
                _shifted_squares(X, like.shift).astype(like.dtype),
                like.shift,
            )
        dtype = like.dtype
    if dtype is None:
        dtype = safe_dtype(kernel, sq, X.shape[1])
    X = X if X.has_sorted_indices else X.sorted_indices()
    return Operand(kernel, X.astype(dtype), sq.astype(dtype), source=X)


def safe_dtype(kernel: Kernel, sq: Array, n_features: int) -> Any:
    """float32 if it is safe, else float64.

    Safe: the error bound of the kernel's values allows it, and neither products nor values leave
    its range.
    """
    largest = float(sq.max()) if sq.size else 0.0
    if largest > 0.0:
        with np.errstate(over="ignore"):
            value = abs(float(kernel.diag_from_sq(np.array([largest]))[0]))
        if not (1e-30 < largest < 1e30 and 1e-25 < value < 1e30):
            return np.float64
    eps = float(np.finfo(np.float32).eps) / 2
    return np.float32 if kernel.error(largest, n_features, eps) <= FLOAT32_ERROR else np.float64


def _dense_is_better(X: Any) -> bool:
    """Whether BLAS on the densified rows beats the postings.

    At no more than eight times their memory.
    """
    return _dense_share_is_better(
        X.nnz, lambda: np.bincount(X.indices, minlength=X.shape[1]), *X.shape
    )


def _dense_share_is_better(nnz: int, counts: Any, n: int, d: int) -> bool:
    """The same, from the number of entries: of all, and of each feature."""
    if nnz == 0 or n == 0 or d > 16 * nnz / n:
        return bool(n == 0 or d <= 16)
    share = (counts() if callable(counts) else counts) / n
    return bool(d <= DENSE_WORTH * float(share @ share) + 16)


def _blocks(n: int, d: int) -> Iterator[slice]:
    step = max(1, (1 << 19) // max(1, d))
    for start in range(0, n, step):
        yield slice(start, min(n, start + step))


def _shifted_squares(X: Any, shift: Array | None) -> Array:
    if shift is None:
        return squared_norms(X)
    sq = np.empty(X.shape[0])
    for part in _blocks(*X.shape):
        block = _dense(X[part]).astype(np.float64) - shift
        np.einsum("ij,ij->i", block, block, out=sq[part])
    return sq


def _converted(X: Any, shift: Array | None, dtype: Any, columns: Array | None = None) -> Array:
    """A C-ordered copy of type dtype (of some columns), centred.

    Made by blocks, so that no float64 copy of X exists beside it.
    """
    if shift is None and not sp.issparse(X):
        return np.ascontiguousarray(X, dtype=dtype)
    out = np.empty(X.shape if columns is None else (X.shape[0], columns.size), dtype)
    for part in _blocks(*X.shape):
        block = _dense(X[part])
        block = block if shift is None else block.astype(np.float64) - shift
        out[part] = block if columns is None else block[:, columns]
    return out


def _dense(X: Any) -> Array:
    return X.toarray() if sp.issparse(X) else np.asarray(X)


# -- the same preparation for any block ------------------------------------------------------------


@dataclass(frozen=True, eq=False, repr=False)
class Frame:
    """How rows are prepared for products.

    Small, known once, and the same for every block of the data.

    Parameters
    ----------
    kernel : Kernel
        With numbers for its parameters.
    shift : array of shape (d,) or None
        What is subtracted from every row: the centre of all of them, if the kernel allows.
    dtype : type
        Of the kernel values.
    sparse : bool
        Whether CSR rows stay so; otherwise products with arrays are faster.

    Examples
    --------
    >>> from slimsvm.kernels import RBF
    >>> frame = Frame.of(RBF(1.0), MemoryRows(np.array([[0.0], [2.0]])), np.float64)
    >>> frame.prepare(np.array([[5.0]])).X
    array([[4.]])
    """

    kernel: Kernel
    shift: Array | None
    dtype: Any
    sparse: bool = False

    @classmethod
    def of(cls, kernel: Kernel, rows: Rows, dtype: Any = None) -> Frame:
        """From two passes over the rows: their centre, and the largest norm.

        The norm says whether float32 is safe.

        For rows in memory this is what :func:`prepare` does.
        """
        if isinstance(kernel, Precomputed) or not (kernel.uses_dots or kernel.shift_invariant):
            return cls(kernel, None, np.dtype(np.float64))
        parts = rows.map(_centre_of)
        sparse = parts[0][2] is not None and not _dense_share_is_better(
            sum(part[2] for part in parts), sum(part[3] for part in parts), rows.n, rows.n_features
        )
        shift = None
        if kernel.shift_invariant and rows.n and not sparse:
            shift = parts[0][1]
            if len(parts) > 1:
                shift = np.asarray(sum(n * mean for n, mean, *_ in parts) / rows.n)
        if dtype is None:
            largest = max(rows.map(_largest_square, shift))
            dtype = safe_dtype(kernel, np.array([largest]), rows.n_features)
        return cls(kernel, shift, np.dtype(dtype), sparse)

    def same(self, other: Frame) -> bool:
        """Whether another frame prepares rows as this one does."""
        mine: Any = self.shift
        its: Any = other.shift
        return self is other or (
            self.kernel == other.kernel
            and (mine is None) == (its is None)
            and (mine is its or np.array_equal(mine, its))
            and (self.dtype, self.sparse) == (other.dtype, other.sparse)
        )

    def prepare(self, X: Any) -> Operand:
        """Rows as they were given, prepared."""
        if isinstance(self.kernel, Precomputed) or not (
            self.kernel.uses_dots or self.kernel.shift_invariant
        ):
            return prepare(self.kernel, X)
        if sp.issparse(X):
            X = X.tocsr()
            if self.sparse:
                return _prepare_sparse(self.kernel, X, self.dtype, None)
        return _prepare_at(self.kernel, X, self.shift, self.dtype, None)

    def vectors(self, V: Any) -> Operand:
        """Vectors in the coordinates of prepared rows already, for products with these.

        Nothing is subtracted again.
        """
        if isinstance(self.kernel, Precomputed) or not (
            self.kernel.uses_dots or self.kernel.shift_invariant
        ):
            return prepare(self.kernel, V)
        return prepare(self.kernel, V, like=Operand(self.kernel, V, np.empty(0, self.dtype)))

    def prepared(self, block: Block) -> Prepared:
        """The rows of a block, prepared; kept with it."""
        known: Prepared | None = block.kept.get("prepared")
        if known is None or not known.frame.same(self):
            known = block.kept["prepared"] = Prepared(self, self.prepare(block.X))
        return known


class Prepared:
    """Prepared rows as a block keeps them: as rows of a product, and as its columns."""

    def __init__(self, frame: Frame, operand: Operand) -> None:
        self.frame, self.operand = frame, operand
        self._strips: Strips | None = None

    @property
    def strips(self) -> Strips:
        """The rows as columns of a product."""
        if self._strips is None:
            self._strips = Strips(self.operand)
        return self._strips

    def take(self, indices: Array) -> Prepared:
        """Of some of the rows."""
        return Prepared(self.frame, self.operand.take(indices))


def in_memory(
    operand: Operand, y: Array | None = None, weight: Array | None = None, n_threads: int = 1
) -> MemoryRows:
    """Rows that are prepared already as :class:`slimsvm.rows.MemoryRows`; nothing is copied."""
    X, picked = operand.X, operand.index
    if operand.source is not None:
        X, of_source = operand.source, operand.picked
        picked = np.arange(X.shape[0])[of_source] if isinstance(of_source, slice) else of_source
    kept = {"prepared": Prepared(operand.frame, operand)}
    return MemoryRows(X, y, weight, n_threads, kept=kept, picked=picked)


def _centre_of(block: Block) -> tuple[int, Array, int | None, Any]:
    """Number of rows, their mean, and for sparse ones the number of entries.

    Entries are counted in all and for each feature.
    """
    X = block.X
    if not sp.issparse(X):
        return block.n, np.asarray(X.mean(axis=0, dtype=np.float64)).ravel(), None, None
    counts = np.bincount(X.indices, minlength=X.shape[1])
    return block.n, np.asarray(X.mean(axis=0, dtype=np.float64)).ravel(), int(X.nnz), counts


def _largest_square(block: Block, shift: Array | None) -> float:
    """The largest squared norm of a row around the centre."""
    return float(_shifted_squares(block.X, shift).max(initial=0.0))


# -- strips ----------------------------------------------------------------------------------------


class Strips:
    """The column side of a product: an operand cut into strips with fixed edges."""

    def __init__(self, operand: Operand, width: int | None = None) -> None:
        self.operand = operand
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
        return self if width == self.width else Strips(self.operand, width)

    def edges(self, k: int) -> tuple[int, int]:
        """First and last column (exclusive) of strip k."""
        return k * self.width, min(self.operand.n, (k + 1) * self.width)

    def postings(self, k: int) -> Any:
        """Strip k feature by feature."""
        if self._postings[k] is None:
            start, end = self.edges(k)
            self._postings[k] = self.operand.X[start:end].tocsc()
        return self._postings[k]


@compiled
def _posting_products(
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
    if sp.issparse(A) and sp.issparse(B):
        p = strips.postings(k)
        _posting_products(
            A.indptr, A.indices, A.data, first, last, p.indptr, p.indices, p.data, out
        )
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
    chunk = max(1, min(n, CHUNK_ROWS, TILE_VALUES // strips.width))

    def strip(k: int) -> None:
        start, end = strips.edges(k)
        scratch = _scratch(chunk * (end - start), rows.dtype)
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
    if not operand.kernel.uses_dots or sp.issparse(X) or sq is None:
        block(operand, Strips(operand, 256), n_threads, out)
        return

    def part(k: int) -> None:  # the long ones first
        first = SQUARE * (n_parts - 1 - k)
        last = min(n, first + SQUARE)
        values = _scratch((last - first) * last, operand.dtype).reshape(last - first, last)
        np.dot(X[first:last], X[:last].T, out=values)
        operand.kernel.from_dots(values, sq[first:last], sq[:last])
        _both_ways(values, out, first)

    n_parts = -(-n // SQUARE)
    with single_threaded_blas():
        parallel(part, n_parts, n_threads)
    np.fill_diagonal(out, operand.diag())


def _scratch(size: int, dtype: Any) -> Array:
    """The calling thread's own scratch array.

    It is allocated once, so that its pages stay mapped and warm.
    """
    buffer: Array | None = getattr(local, "scratch", None)
    if buffer is None or buffer.nbytes < size * 8:
        buffer = local.scratch = np.empty(size * 8, np.uint8)
    return buffer[: size * np.dtype(dtype).itemsize].view(dtype)


# -- sums over rows --------------------------------------------------------------------------------
# 256 kB in float32: half of the second-level cache of one core
FUSED_ROWS, FUSED_COLUMNS = 256, 256


@compiled
def add_rows(
    values: Array, slots: Array, delta: Array, s: Array, start: int, end: int, offset: int
) -> None:
    """s[start:end] += sum_r delta[r] * values[slots[r], start-offset:end-offset]

    Four rows at a time are summed in the type of the values, then added in float64: a sum of
    thousands of float32 terms keeps its digits.
    """
    n, n4 = slots.size, slots.size - slots.size % 4
    # parts that begin at zero: places that might be below zero, and count from the end, would keep
    # the loops from being vector code
    out, first, last = s[start:end], start - offset, end - offset
    for r in range(0, n4, 4):
        d0, d1, d2, d3 = delta[r], delta[r + 1], delta[r + 2], delta[r + 3]
        v0, v1 = values[slots[r], first:last], values[slots[r + 1], first:last]
        v2, v3 = values[slots[r + 2], first:last], values[slots[r + 3], first:last]
        for j in range(out.size):
            out[j] += (d0 * v0[j] + d1 * v1[j]) + (d2 * v2[j] + d3 * v3[j])
    for r in range(n4, n):
        d0, v0 = delta[r], values[slots[r], first:last]
        for j in range(out.size):
            out[j] += d0 * v0[j]


@compiled_within
def _add_and_keep(
    values: Array, delta: Array, s: Array, slots: Array, store: Array, first: int, start: int
) -> None:
    """One tile: s += delta' values for its columns; rows with a slot are stored."""
    n, width = values.shape
    each = np.empty(n, np.int64)  # np.arange takes longer to compile
    for r in range(n):
        each[r] = r
    add_rows(values, each, delta[first : first + n], s, start, start + width, start)
    for r in range(n):
        if slots[first + r] >= 0:
            row = store[slots[first + r], start : start + width]
            for j in range(width):
                row[j] = values[r, j]


@compiled
def _dense_strip(
    form: int, p: float, q: float, degree: int, A: Array, a_sq: Array, B: Array, b_sq: Array,
    start: int, end: int, delta: Array, s: Array, slots: Array, store: Array, scratch: Array,
) -> None:  # fmt: skip
    """All tiles of columns start..end, products by BLAS.

    They are made without coming back to the interpreter.
    """
    step = FUSED_COLUMNS
    # few rows: wider tiles of the same size, BLAS packs the rows less often
    if 2 * A.shape[0] <= FUSED_ROWS and A.itemsize == 4:
        step = 2 * FUSED_COLUMNS
    for c in range(start, end, step):
        width = min(end, c + step) - c
        columns, columns_sq = B[c : c + width], b_sq[c : c + width]
        for first in range(0, A.shape[0], FUSED_ROWS):
            n = min(A.shape[0], first + FUSED_ROWS) - first
            values = scratch[: n * width].reshape(n, width)
            np.dot(A[first : first + n], columns.T, values)
            finish(form, p, q, degree, values, a_sq[first : first + n], columns_sq)
            _add_and_keep(values, delta, s, slots, store, first, c)


@compiled
def _sparse_strip(
    form: int, p: float, q: float, degree: int, indptr: Array, indices: Array, data: Array,
    a_sq: Array, p_indptr: Array, p_indices: Array, p_data: Array, b_sq: Array, start: int,
    end: int, delta: Array, s: Array, slots: Array, store: Array, scratch: Array,
) -> None:  # fmt: skip
    """The same over postings: a few rows at a time, since a strip is wide."""
    width, n_rows = end - start, indptr.size - 1
    step = max(1, scratch.size // width)
    for first in range(0, n_rows, step):
        n = min(n_rows, first + step) - first
        values = scratch[: n * width].reshape(n, width)
        _posting_products(
            indptr, indices, data, first, first + n, p_indptr, p_indices, p_data, values
        )
        finish(form, p, q, degree, values, a_sq[first : first + n], b_sq[start:end])
        _add_and_keep(values, delta, s, slots, store, first, start)


def accumulate(
    rows: Operand,
    strips: Strips,
    delta: Array,
    s: Array,
    n_threads: int = 1,
    slots: Array | None = None,
    store: Array | None = None,
) -> None:
    """s += sum_r delta[r] * k(rows[r], columns), while the values are in cache.

    Rows with slots[r] >= 0 are kept in store[slots[r]].
    """
    kernel, columns, n = rows.kernel, strips.operand, rows.n
    delta = np.ascontiguousarray(delta, rows.dtype)
    slots = np.full(n, -1) if slots is None else slots
    store = np.empty((0, 0), delta.dtype) if store is None else store
    A, B = rows.X, columns.X
    if not kernel.uses_dots or sp.issparse(A) != sp.issparse(B):

        def consume(first: int, last: int, start: int, end: int, values: Array) -> None:
            _add_and_keep(values, delta, s, slots, store, first, start)

        for_each_tile(rows, strips, consume, n_threads)
        return
    assert rows.sq is not None and columns.sq is not None
    form, a_sq, b_sq = kernel.form(), rows.sq, columns.sq
    if sp.issparse(A):

        def strip(k: int) -> None:
            start, end = strips.edges(k)
            P = strips.postings(k)
            scratch = _scratch(max(end - start, FUSED_ROWS * FUSED_COLUMNS), rows.dtype)
            _sparse_strip(
                *form,
                A.indptr,
                A.indices,
                A.data,
                a_sq,
                P.indptr,
                P.indices,
                P.data,
                b_sq,
                start,
                end,
                delta,
                s,
                slots,
                store,
                scratch,
            )

        n_tasks = strips.n_strips
    else:
        # few rows: several strips a task
        step = FUSED_COLUMNS * max(1, min(8, TILE_VALUES // (FUSED_COLUMNS * max(1, n))))
        n_tasks = -(-columns.n // step)

        def strip(k: int) -> None:
            scratch = _scratch(FUSED_ROWS * FUSED_COLUMNS, rows.dtype)
            _dense_strip(
                *form,
                A,
                a_sq,
                B,
                b_sq,
                k * step,
                min(columns.n, (k + 1) * step),
                delta,
                s,
                slots,
                store,
                scratch,
            )

    with single_threaded_blas():
        parallel(strip, n_tasks, n_threads)


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
