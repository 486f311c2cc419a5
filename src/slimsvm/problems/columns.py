"""Kernel values of all rows against the basis of a span, K_BX, and the passes that need them.

K_BX stays with its rows: a block keeps the values of its own, one row of them for every basis
vector, in float32 where that is safe, as long as the span allows; beyond, they are made anew in
every pass. :class:`Values` is K_BX of one block, for tasks; :class:`KernelColumns` is what solvers
have: all rows, a span that grows or moves, and passes that make scores and sums.

Sums over rows are made in float64 whatever the type of the values: coordinates divide by the
smallest distances among the basis.

Symbols: m basis vectors; n rows; S scores, V responses.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slimsvm.compiled import compiled
from slimsvm.frames import Frame, rounding_of
from slimsvm.kernels import Precomputed
from slimsvm.precision import rounding
from slimsvm.problems.span import JITTER, Piece, Span, price_of_jitter
from slimsvm.rows import Block, MemoryRows, Rows, joined
from slimsvm.sums import eight_sums
from slimsvm.threads import parallel, single_threaded_blas
from slimsvm.tiles import Operand, Strips, block

Array = NDArray[Any]
VECTORS_A_TASK = 32
# up to so many columns products go through the values one by one; beyond, BLAS on a float64 copy is
# faster
FEW_COLUMNS = 2
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
    """out += K' coef.

    float32 values become float64 on the way, without a copy; four of them at a time.
    """
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
    """out = K v, a row of K after the other."""
    n8 = v.size - v.size % 8
    for j in range(K.shape[0]):
        k = K[j]
        s0, s1, s2, s3, s4, s5, s6, s7 = eight_sums(k, v, n8)
        for i in range(n8, v.size):
            s0 += k[i] * v[i]
        out[j] = ((s0 + s1) + (s2 + s3)) + ((s4 + s5) + (s6 + s7))


# -- in one block ----------------------------------------------------------------------------------


class _Kept:
    """What a block keeps: K_BX of the vectors in these pieces, with room for more of them."""

    def __init__(self, n_vectors: int, n: int, dtype: Any) -> None:
        self.K = np.empty((n_vectors, n), dtype)
        self.pieces: tuple[Piece, ...] = ()

    def brought_to(self, span: Span, where: Block) -> Array:
        """The values of the span, (m, n): pieces that are not there are made."""
        if self.pieces[: len(span.pieces)] != span.pieces:
            both = enumerate(zip(self.pieces, span.pieces, strict=False))
            known = next((k for k, (own, other) in both if own != other), len(self.pieces))
            self.pieces = self.pieces[:known]
            strips = span.frame.prepared(where).strips
            for piece in span.pieces[known:]:
                rows = self.K[piece.first : piece.last]
                block(span.of_piece(piece), strips, where.n_threads, rows)
                self.pieces = (*self.pieces, piece)
        return self.K[: span.m]


class Values:
    """K_BX of one block, in chunks of rows that suit the cache."""

    def __init__(self, where: Block, span: Span) -> None:
        self.where, self.span, self.n = where, span, where.n
        self.n_chunks = max(1, -(-self.n // span.step))
        self._K: Array | None = None
        if where.start + self.n <= span.kept_rows:
            self._K = self._kept()

    def _kept(self) -> Array:
        span, known = self.span, self.where.kept.get("values")
        size = max(span.max_basis, span.pieces[-1].last if span.pieces else 0)
        if known is None or known.K.dtype != span.dtype or known.K.shape[0] < size:
            known = self.where.kept["values"] = _Kept(size, self.n, span.dtype)
        return known.brought_to(span, self.where)

    def edges(self, k: int) -> tuple[int, int]:
        """First and last row (exclusive) of chunk k."""
        return k * self.span.step, min(self.n, (k + 1) * self.span.step)

    def chunk(self, k: int) -> Array:
        """K_BX of chunk k, shape (m, rows)."""
        start, end = self.edges(k)
        if self._K is not None:
            return self._K[:, start:end]
        if not self.span.m:
            return np.empty((0, end - start), self.span.dtype)
        rows = self.span.frame.prepared(self.where).operand
        return block(self.span.operand, Strips(rows.take(slice(start, end))))

    def newest(self, first: int) -> Array:
        """K_BX of the vectors from ``first`` on, shape (m - first, n).

        A few rows, whether the others are kept or not.
        """
        if self._K is not None:
            return self._K[first:]
        prepared = self.span.frame.prepared(self.where)
        vectors = self.span.frame.vectors(self.span.vectors[first:])
        return block(vectors, prepared.strips, self.where.n_threads)

    def at(self, rows: Array) -> Array:
        """K_BX of some rows of the block, shape (m, rows), where it is kept."""
        assert self._K is not None
        K = self._K
        out, n_tasks = np.empty((len(K), rows.size), K.dtype), -(-len(K) // VECTORS_A_TASK)

        def gather(t: int) -> None:
            part = slice(t * VECTORS_A_TASK, min(len(K), (t + 1) * VECTORS_A_TASK))
            np.take(K[part], rows, axis=1, out=out[part], mode="clip")

        parallel(gather, n_tasks, self.where.n_threads)
        return out

    def each(self, work: Callable[[int, int, Array], Any]) -> list[Any]:
        """The results of ``work`` for all chunks, on all threads, in order.

        The arguments of ``work``: first row, last row, K_BX of the chunk.
        """
        parts: list[Any] = [None] * self.n_chunks

        def keep(k: int, start: int, end: int, K: Array) -> None:
            parts[k] = work(start, end, K)

        self.each_group(keep, self.n_chunks)
        return parts

    def each_group(self, work: Callable[[int, int, int, Array], None], n_groups: int) -> None:
        """Call ``work`` for all chunks, in order within a group; for sums of large arrays.

        The arguments of ``work``: group, first row, last row, K_BX of the chunk. A group has one
        thread.
        """
        if self.n_chunks == 1:  # few rows: a pass is so short that this counts
            with single_threaded_blas():
                parallel(lambda _: work(n_groups - 1, 0, self.n, self.chunk(0)), 1, 1)
            return
        edges = np.linspace(0, self.n_chunks, n_groups + 1).astype(int)

        def task(g: int) -> None:
            for k in range(edges[g], edges[g + 1]):
                start, end = self.edges(k)
                work(g, start, end, self.chunk(k))

        with single_threaded_blas():
            parallel(task, n_groups, self.where.n_threads)

    def scores(self, coef: Array) -> Array:
        """K_XB coef, shape (n, columns)."""
        out = np.empty((self.n, coef.shape[1]), order="F")

        def work(start: int, end: int, K: Array) -> None:
            out[start:end] = combined(K, coef)

        self.each(work)
        return out


# -- tasks -----------------------------------------------------------------------------------------


def scores_of(where: Block, span: Span, coef: Array) -> Array:
    """K_XB coef of a block."""
    return Values(where, span).scores(coef)


def sums_of(where: Block, span: Span, V: Array, exact: bool) -> Array:
    """K_BX V; ``exact``: in float64, otherwise in the type of the values."""

    def work(start: int, end: int, K: Array) -> Array:
        if exact:
            return np.asarray(K.astype(np.float64, copy=False) @ V[start:end])
        return np.asarray(K @ V[start:end].astype(K.dtype), np.float64)

    return np.asarray(sum(Values(where, span).each(work)))


def distances_of(where: Block, span: Span) -> Array:
    """|phi(x) - its projection on the span|, never too small.

    Jitter makes the span smaller, and rounding is allowed for.
    """
    diag = np.asarray(span.frame.prepared(where).operand.diag(), np.float64)

    def work(start: int, end: int, K: Array) -> Array:
        Z = span.inverse @ K.astype(np.float64, copy=False)
        return np.asarray(diag[start:end] - np.einsum("ji,ji->i", Z, Z))

    left = np.concatenate(Values(where, span).each(work)) if span.m else diag
    return np.asarray(np.sqrt(np.maximum(left, 0.0) + JITTER[span.dtype.name] * diag))


def coordinates_of(where: Block, span: Span) -> Array:
    """L^-1 K_BX, (m, n)."""
    inverse = span.inverse
    work = Values(where, span).each(lambda a, b, K: inverse @ K.astype(np.float64, copy=False))
    return np.hstack(work)


def values_at(where: Block, span: Span, rows: Array) -> Array:
    """K_BX of those of the rows (numbers among all, ascending) that are in the block."""
    a, b = np.searchsorted(rows, (where.start, where.start + where.n))
    return Values(where, span).at(rows[a:b] - where.start)


def largest_diagonal(where: Block, frame: Frame) -> float:
    """The largest k(x, x)."""
    return float(np.asarray(frame.prepared(where).operand.diag(), np.float64).max(initial=-np.inf))


# -- all rows --------------------------------------------------------------------------------------


class KernelColumns:
    """All rows, and a basis that grows or moves.

    Parameters
    ----------
    rows : Rows
        All rows of the data.
    frame : Frame
        How they are prepared.
    max_basis : int
        How many basis vectors there may be.
    max_memory : float, optional
        Megabytes for K_BX; beyond, it is computed in every pass.

    Attributes
    ----------
    span : Span
        The basis as it is.
    accepted : bool array
        Which of the vectors that were appended last.
    n_values : int
        Kernel values computed so far, as far as none were lost.

    Examples
    --------
    >>> from slimsvm.kernels import RBF
    >>> rows = MemoryRows(np.array([[0.0], [1.0], [5.0]]))
    >>> columns = KernelColumns(rows, Frame.of(RBF(1.0), rows, np.float64), max_basis=2)
    >>> columns.append(columns.take(np.array([0, 2])).X)
    array([ True,  True])
    >>> columns.scores(np.array([[1.0], [1.0]])).ravel().round(3)
    array([1.   , 0.368, 1.   ])
    """

    def __init__(
        self, rows: Rows, frame: Frame, max_basis: int, max_memory: float | None = None
    ) -> None:
        self.rows, self.frame, self.n, self.n_threads = rows, frame, rows.n, rows.n_threads
        self.dtype, self.kernel = np.dtype(frame.dtype), frame.kernel
        budget = (DEFAULT_MEMORY if max_memory is None else float(max_memory)) * 2**20
        kept_rows = int(budget // (max(1, int(max_basis)) * self.dtype.itemsize))
        self.span = Span(frame, max_basis, kept_rows)
        self.keeps = self.n <= kept_rows
        self.accepted = np.empty(0, bool)
        self.n_values = 0

    # -- the basis ---------------------------------------------------------------------------------

    @property
    def m(self) -> int:
        """Number of basis vectors."""
        return self.span.m

    @property
    def max_basis(self) -> int:
        """How many basis vectors there may be."""
        return self.span.max_basis

    @property
    def vectors(self) -> Any:
        """The basis in the coordinates of the prepared rows, in float64.

        None if there is none yet.
        """
        return self.span.vectors

    @property
    def K_BB(self) -> Array:
        """Kernel values among the basis, jitter not included."""
        return self.span.K_BB

    @property
    def L(self) -> Array:
        """Lower Cholesky factor of K_BB + jitter I."""
        return self.span.L

    @property
    def jitter(self) -> float:
        """What is added to the diagonal of K_BB."""
        return self.span.jitter

    def append(self, vectors: Any) -> Array:
        """Add basis vectors one by one; returns which were accepted. See :meth:`Span.appended`."""
        before = self.m
        self.span, self.accepted = self.span.appended(vectors)
        self.n_values += (self.m - before) * self.n if self.keeps else 0
        return self.accepted

    def replace(self, vectors: Any) -> None:
        """Another basis of any size within the capacity; see :meth:`Span.replaced`."""
        self.accepted = np.empty(0, bool)
        self.span = self.span.replaced(vectors)
        self.n_values += self.m * self.n if self.keeps else 0

    def first(self, m: int) -> KernelColumns:
        """The same rows with the first m basis vectors only; nothing is copied."""
        some = copy.copy(self)
        some.span = self.span.first(m)
        return some

    def coordinates(self, P: Array) -> Array:
        """L^-1 P; see :meth:`Span.coordinates`."""
        return self.span.coordinates(P)

    def coefficients(self, W: Array) -> Array:
        """L^-T W; see :meth:`Span.coefficients`."""
        return self.span.coefficients(W)

    def in_given_coordinates(self, vectors: Any = None) -> Any:
        """Basis vectors (all, or these) in the coordinates of the data as it was given."""
        return self.span.in_given_coordinates(vectors)

    def in_rows_coordinates(self, vectors: Any) -> Any:
        """The other way round."""
        return self.span.in_rows_coordinates(vectors)

    # -- the rows ----------------------------------------------------------------------------------

    def take(self, indices: Array) -> Operand:
        """Some rows, prepared."""
        return self.frame.prepared(self.rows.take(indices).block).operand

    @property
    def precomputed(self) -> bool:
        """Whether a basis vector is the number of a row, and not one of features."""
        return isinstance(self.kernel, Precomputed)

    @property
    def operand(self) -> Operand:
        """All rows, prepared: for those that need them at one place."""
        return self.frame.prepared(self._whole).operand

    @property
    def values(self) -> Values:
        """K_BX of all rows, at one place."""
        self.count_pass()
        return Values(self._whole, self.span)

    @property
    def _whole(self) -> Block:
        if not isinstance(self.rows, MemoryRows):
            raise ValueError(
                "This choice of a basis looks at all rows at once, and they are not in "
                "memory; use another, such as 'pursuit'."
            )
        return self.rows.block

    def sum(self, task: Any, *state: Any) -> Any:
        """The sum of task(block, span, *state) over all blocks."""
        self.count_pass()
        return self.rows.sum(task, self.span, *state)

    def map(self, task: Any, *state: Any) -> list[Any]:
        """task(block, span, *state) of all blocks."""
        self.count_pass()
        return self.rows.map(task, self.span, *state)

    def count_pass(self) -> None:
        """A pass that needs all of K_BX: where it is not kept, it is made."""
        self.n_values += 0 if self.keeps else self.m * self.n

    def at_rows(self, rows: Array) -> Array:
        """K_BX of some rows (ascending), shape (m, rows), as far as it is kept."""
        parts = self.rows.map(values_at, self.span, rows)
        return parts[0] if len(parts) == 1 else np.hstack(parts)

    def scores(self, coef: Array) -> Array:
        """K_XB coef, shape (n, columns)."""
        return joined(self.map(scores_of, coef))

    def rounding(self, coef: Array, dual: Array, slopes: Array, scores: Array) -> float:
        """What rounding may have changed of the objective of a function in the span.

        The errors of kernel values, and the jitter. ``dual`` are the coefficients of the function
        whose dual value bounds the objective from below: what it has beside ours is felt, too.
        """
        if not self.m:
            return 0.0
        error = self.error
        off = rounding(error, coef, self.K_BB @ coef, slopes, scores)
        jitter, apart = price_of_jitter(self.K_BB, self.jitter, coef), dual - coef
        if apart.any():
            off += rounding(error, apart, self.K_BB @ apart, slopes, self.scores(apart))
            jitter = max(jitter, price_of_jitter(self.K_BB, self.jitter, dual))
        return off + jitter

    @property
    def error(self) -> float:
        """Of a kernel value, the largest that is to be expected."""
        return float(max(self.rows.map(rounding_of, self.frame)))

    def of_products(self, dual: Array, slopes: Array) -> float:
        """Half the squared error of K_BX g in orthonormal coordinates, which enlarge it.

        ``dual`` are the coefficients that belong to slopes g. That square is in the value of a dual
        point, and no slope says so.
        """
        if not self.m:
            return 0.0
        own = self.K_BB @ dual + self.jitter * dual
        with np.errstate(over="ignore"):
            sizes = (np.square(own) + np.square(slopes).sum(axis=0)).sum(axis=1)
            enlarged = np.square(self.span.inverse).sum(axis=0)
            return 0.5 * self.error**2 * float(enlarged @ sizes)

    def distances(self) -> Array:
        """Of all rows to the span; see :func:`distances_of`."""
        return joined(self.map(distances_of))
