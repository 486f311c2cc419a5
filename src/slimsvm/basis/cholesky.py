"""Incomplete Cholesky factorisations of the kernel matrix, K ~ V V'.

The pivots of one can be a basis.

:func:`pivoted` (ICF 2; Fine & Scheinberg 2001): symmetric pivoting, the row that is farthest from
the span of those before it is next; values are computed for rows that are pivots or likely to be
soon, one to two times m n of them. Row i of V is z(x_i), the orthonormal coordinates of phi(x_i) in
the span of the pivots, so V V' is the projected kernel and never above K. Stops after m columns, or
when the trace of what is left is small.

:func:`thresholded` (ICF 1; Lin & Saigal 2000): column by column, of each only the m largest entries
are kept. V is sparse and triangular, not of low rank, all of K is seen once, and V V' may be far
from K. Dropping entries may make a pivot that is not positive: then beta is added to all of the
diagonal, twice as much each time, and the factorisation starts again. A pivot that is zero but for
rounding, with nothing but rounding below it, is a row in the span of those before it, and its
column is zero.

Symbols: d what is left of the diagonal; V (n, m), kept by columns. Cost: ICF 2 up to 2 n m kernel
values and n m^2; ICF 1 n^2 / 2 kernel values, as much to find the largest entries, and n m^2.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from slimsvm.basis.selection import Basis, Selection, Wanted, among, rows_at
from slimsvm.compiled import compiled
from slimsvm.problems.columns import coordinates_of
from slimsvm.problems.span import DEPENDENT, JITTER
from slimsvm.ranks import number_of_rank
from slimsvm.threads import parallel, single_threaded_blas
from slimsvm.tiles import Operand

Array = NDArray[Any]
STRIP = 8192  # rows of V that a thread takes at once
MOST_AHEAD = 32  # columns of ICF 2 that are computed before they are asked for
# added to the diagonal after the first failure of ICF 1, relative to its mean; doubled after each
# further one
FIRST_BETA = 1e-3
MOST_RESTARTS = 40  # by then beta is far above the trace, and the matrix is its own diagonal
LARGEST = np.finfo(np.float64).max
BLOCK = 256  # columns of K that ICF 1 has in memory at a time


@dataclass(frozen=True, eq=False, repr=False)
class Factor:
    """V with V V' ~ K.

    Attributes
    ----------
    V : array (n, m), or CSR matrix (n, n)
        The factor, its rows in the order of the data.
    pivots : int array
        Rows that were pivots, in order; of ICF 1 all.
    left : float
        Size of K + beta I - V V' relative to the trace of K: of ICF 2 its trace, of ICF 1, whose
        diagonal is exact, its Frobenius norm.
    beta : float
        What was added to the diagonal.
    n_values : int
        Kernel values that were computed, of ICF 2.
    """

    V: Any
    pivots: Array
    left: float
    beta: float = 0.0
    n_values: int = 0


def pivoted(
    rows: Operand,
    rank: int,
    *,
    tol: float = 0.0,
    candidates: Array | None = None,
    known: Array | None = None,
    enough: Callable[[], bool] | None = None,
    n_threads: int = 1,
) -> Factor:
    """ICF 2: at most ``rank`` columns.

    Fewer if the rest of the trace is at most ``tol`` of it, or only rounding is left.

    Parameters
    ----------
    rows : Operand
        All rows, prepared.
    candidates : int array, optional
        Rows that may be pivots; None: all.
    known : array of shape (p, n), optional
        Coordinates of all rows in a span that is there already; the columns go on from it, and V is
        what they add.
    enough : callable, optional
        Asked before every column but the first; where it says True, the columns so far are all.

    Examples
    --------
    >>> from slimsvm.kernels import Linear
    >>> from slimsvm.tiles import prepare
    >>> found = pivoted(prepare(Linear(), np.array([[1.0, 0.0], [0.0, 3.0], [1.0, 1.0]])), 3)
    >>> found.pivots, found.V.shape, found.left < 1e-12
    (array([1, 0]), (3, 2), True)
    """
    n = rows.n
    rank = min(rank, n if candidates is None else candidates.size)
    diag = np.asarray(rows.diag(), np.float64)
    d, trace = diag.copy(), float(diag.sum())
    may = np.full(n, candidates is None)
    if candidates is not None:
        may[candidates] = True
    jitter = DEPENDENT * JITTER[np.dtype(rows.dtype).name] * float(diag.max(initial=0.0))
    first = 0 if known is None else known.shape[0]
    Vt, pivots = np.empty((first + rank, n), rows.dtype), np.empty(rank, np.intp)
    if known is not None:
        Vt[:first] = known
        d -= np.einsum("ji,ji->i", known, known, dtype=np.float64)
    edges = [(start, min(n, start + STRIP)) for start in range(0, n, STRIP)]
    m, ahead = 0, Ahead(rows, edges, n_threads)
    while m < rank and float(np.maximum(d, 0.0).sum()) > tol * trace:
        # 1. the pivot
        pivot = int(np.argmax(np.where(may, d, -np.inf)))
        if not d[pivot] > jitter or (m and enough is not None and enough()):
            break
        # 2. its column, without what the span of those before it says
        at = first + m
        if pivot not in ahead.place:
            ahead.look(np.where(may, d, -np.inf), Vt[:at], rank - m)
        column, root = ahead.columns[ahead.place[pivot]], np.sqrt(d[pivot])
        since = np.ascontiguousarray(Vt[ahead.known : at, pivot])

        def strip(
            k: int, column: Array = column, since: Array = since, root: float = root, at: int = at
        ) -> None:
            part = slice(*edges[k])
            Vt[at, part] = (column[part] - since @ Vt[at - since.size : at, part]) / root
            d[part] -= np.square(Vt[at, part], dtype=np.float64)

        with single_threaded_blas():
            parallel(strip, len(edges), n_threads)
        d[pivot], may[pivot], pivots[m] = 0.0, False, pivot
        m += 1
    left = float(np.maximum(d, 0.0).sum()) / trace if trace > 0 else 0.0
    return Factor(Vt[first : first + m].T, pivots[:m], left, n_values=ahead.n_values)


class Ahead:
    """Columns of rows that are likely to be pivots soon, many at once.

    A product of matrices takes the place of as many passes over V.

    The rows that are farthest from the span now are likely to be among the farthest for a while.
    How many are taken follows how many of the last ones were of use. Pivots are the same with or
    without.
    """

    def __init__(self, rows: Operand, edges: list[tuple[int, int]], n_threads: int) -> None:
        self.rows, self.edges, self.n_threads = rows, edges, n_threads
        self.place: dict[int, int] = {}  # of a row among the columns
        self.columns = np.empty((0, rows.n), rows.dtype)
        self.known = 0  # columns of V that these are without
        self.n_values = 0
        self._many = 1

    def look(self, far: Array, Vt: Array, most: int) -> None:
        """Columns of the rows that are farthest by ``far``, without what V says.

        V is kept by columns.
        """
        used = Vt.shape[0] - self.known if self.place else 1
        self._many = max(
            1, min(MOST_AHEAD, 2 * self._many if 2 * used >= self._many else self._many // 2, most)
        )
        some = (
            np.argpartition(-far, self._many - 1)[: self._many]
            if self._many < far.size
            else np.arange(far.size)
        )
        some = np.union1d(some[np.isfinite(far[some])], [int(np.argmax(far))])
        self.place, self.known = {int(row): k for k, row in enumerate(some)}, Vt.shape[0]
        self.columns = among(self.rows, some, None, self.n_threads)
        self.n_values += some.size * self.rows.n
        before = np.ascontiguousarray(Vt[:, some].T)

        def strip(k: int) -> None:
            part = slice(*self.edges[k])
            self.columns[:, part] -= before @ Vt[:, part]

        with single_threaded_blas():
            parallel(strip, len(self.edges), self.n_threads)


def thresholded(
    rows: Operand, n_entries: int, *, enough: Callable[[], bool] | None = None, n_threads: int = 1
) -> Factor:
    """ICF 1: the ``n_entries`` largest entries of each column below the diagonal, and the diagonal.

    Parameters
    ----------
    rows : Operand
        All rows, prepared.
    enough : callable, optional
        Asked now and then; where it says True, the columns that are left have nothing but their
        diagonal.

    Raises
    ------
    ValueError
        If no multiple of the identity makes the factorisation possible.

    Examples
    --------
    >>> from slimsvm.kernels import RBF
    >>> from slimsvm.tiles import prepare
    >>> rows = prepare(RBF(1.0), np.array([[0.0], [0.5], [2.0]]), dtype=np.float64)
    >>> found = thresholded(rows, 2)  # nothing is dropped: the factor is exact
    >>> np.allclose((found.V @ found.V.T).toarray(), RBF(1.0)(np.array([[0.0], [0.5], [2.0]])))
    True
    """
    n, diag = rows.n, rows.diag()
    beta = 0.0
    for restart in range(MOST_RESTARTS):
        made = _columns_within(rows, n_entries, beta, enough, n_threads)
        if made is not None:
            indptr, indices, data, dropped = made
            V = sp.csc_matrix((data, indices, indptr), shape=(n, n)).tocsr()
            left = np.sqrt(2.0 * dropped) / max(float(diag.sum()), np.finfo(float).tiny)
            return Factor(V, np.arange(n), float(left), beta)
        beta = FIRST_BETA * float(np.mean(diag)) * 2.0**restart
    raise ValueError(
        "The kernel matrix cannot be factorised, whatever is added to its diagonal: it is "
        "not that of a kernel."
    )


def _columns_within(
    rows: Operand, n_entries: int, beta: float, enough: Callable[[], bool] | None, n_threads: int
) -> tuple[Array, Array, Array, float] | None:
    """The columns of V, one after the other, and the sum of squares of what was dropped.

    None at a pivot that is not positive.
    """
    n = rows.n
    most = min(n, n_entries + 1)
    indptr, indices, data = (
        np.zeros(n + 1, np.int64),
        np.empty(n * most, np.int64),
        np.empty(n * most),
    )
    heads, after = np.full(n, -1), np.full(n, -1)  # lists: columns whose next entry is in row j
    at = np.zeros(n, np.int64)  # where in its column that entry is
    work, dropped = np.zeros(n), 0.0
    flat = DEPENDENT * JITTER[np.dtype(rows.dtype).name] * float(np.max(rows.diag(), initial=0.0))
    for start in range(0, n, BLOCK):
        if start and enough is not None and enough():
            # the rest as if it were diagonal; with r_i what is left there, an entry that is not
            # seen is at most sqrt(r_i r_j)
            used = int(indptr[start])
            own = np.maximum(
                0.0,
                rows.diag()
                + beta
                - np.bincount(indices[:used], np.square(data[:used]), minlength=n),
            )[start:]
            indptr[start:] = used + np.arange(n - start + 1)
            indices[used : indptr[n]], data[used : indptr[n]] = np.arange(start, n), np.sqrt(own)
            dropped += 0.5 * float(own.sum() ** 2 - np.square(own).sum())
            break
        end = min(n, start + BLOCK)
        # below the diagonal, and a little above
        values = among(rows, np.arange(start, end), np.arange(start, n), n_threads)
        if not np.isfinite(values).all():
            raise ValueError(
                "The kernel matrix cannot be factorised: it has values that are not finite "
                "(NaN or infinity). Scale the features."
            )
        for j in range(start, end):
            column = values[j - start, j - start :].astype(np.float64)
            lost = _next_column(
                j, column, beta, flat, n_entries, indptr, indices, data, heads, after, at, work
            )
            if lost < 0.0:
                return None
            dropped += lost
    used = int(indptr[n])
    return indptr, indices[:used], data[:used], dropped


@compiled
def _next_column(
    j: int, column: Array, beta: float, flat: float, n_entries: int, indptr: Array, indices: Array,
    data: Array, heads: Array, after: Array, at: Array, work: Array,
) -> float:  # fmt: skip
    """Column j of V, cut to its largest entries.

    That of K (from its diagonal on) without what the columns before it say.

    Returns the sum of squares of what was cut off; -1 if the pivot is not positive.
    """
    n = work.size
    # loops in what follows, and no assignment or sum of arrays: less to compile
    for i in range(column.size):
        work[j + i] = column[i]
    work[j] += beta
    # 1. every column with an entry in row j takes part; afterwards it waits for the row of its next
    # entry
    k = heads[j]
    while k >= 0:
        following = after[k]
        p = at[k]
        v = data[p]
        for q in range(p, indptr[k + 1]):
            work[indices[q]] -= v * data[q]
        at[k] = p + 1
        if p + 1 < indptr[k + 1]:
            row = indices[p + 1]
            after[k] = heads[row]
            heads[row] = k
        k = following
    if not work[j] > flat:
        # of a matrix without negative directions, |r_ij|^2 <= r_ii r_jj: what stands below such a
        # pivot must be next to nothing
        largest, lost = 0.0, 0.5 * work[j] * work[j]
        for i in range(j + 1, n):
            largest = max(largest, abs(work[i]))
            lost += work[i] * work[i]
        if not (abs(work[j]) <= flat and largest * largest <= flat * (column[0] + beta)):
            return -1.0
        indptr[j + 1] = indptr[j]
        at[j] = indptr[j]
        return lost
    # 2. the largest entries below the diagonal, in the order of the rows; of equal ones the first
    least, spare = 0.0, n
    if n - j - 1 > n_entries:
        size = np.empty(n - j - 1)
        for i in range(size.size):
            size[i] = abs(work[j + 1 + i])
        least = LARGEST if n_entries == 0 else number_of_rank(size, size.size - n_entries)
        spare = n_entries
        for i in range(size.size):
            spare -= size[i] > least
    root, lost = np.sqrt(work[j]), 0.0
    end = indptr[j]
    indices[end] = j
    data[end] = root
    end += 1
    for row in range(j + 1, n):
        value = abs(work[row])
        if value > least or (value == least and spare > 0):
            if value == least:
                spare -= 1
            if value > 0.0:
                indices[end] = row
                data[end] = work[row] / root
                end += 1
        else:
            lost += value * value
    indptr[j + 1] = end
    at[j] = indptr[j] + 1
    if at[j] < end:
        row = indices[at[j]]
        after[j] = heads[row]
        heads[row] = j
    return lost


@dataclass(frozen=True)
class Cholesky(Basis):
    """Pivots of the incomplete Cholesky factorisation.

    Always the row that is farthest from the span of those before it.

    Examples
    --------
    >>> from slimsvm.kernels import RBF
    >>> from slimsvm.problems.columns import KernelColumns
    >>> from slimsvm.frames import Frame, in_memory
    >>> from slimsvm.tiles import prepare
    >>> rows = prepare(RBF(1.0), np.array([0.0, 0.1, 5.0, 5.1])[:, None])
    >>> columns = KernelColumns(in_memory(rows), Frame.like(rows), max_basis=2)
    >>> Cholesky().select(columns, None, None, 2, np.random.default_rng(0), np.arange(4)).indices
    array([0, 2])
    """

    in_words: ClassVar[str] = "takes the row farthest from the span of those before it"
    one_shot: ClassVar[bool] = True

    def _choose(self, wanted: Wanted) -> Selection:
        """Up to ``n_new`` rows; all candidates, in order, if there are not more.

        The weights are ignored.
        """
        columns, n_new, candidates = wanted.columns, wanted.n_new, wanted.candidates
        if n_new >= candidates.size:
            return rows_at(columns, candidates)
        known = None
        if columns.m:
            known = np.hstack(columns.map(coordinates_of))
        found = pivoted(
            columns.operand, n_new, candidates=candidates, known=known, n_threads=columns.n_threads
        )
        columns.n_values += found.n_values
        return rows_at(columns, found.pivots)
