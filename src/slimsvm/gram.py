"""Kernel rows within a byte budget: what a dual solver sees of the kernel matrix.

A solver asks for three things only: the small block of its working set (:meth:`Gram.block`), the
change of all inner products when some coefficients change (:meth:`Gram.add`), and to forget columns
that it no longer looks at, or to take them back (:meth:`Gram.restrict`, :meth:`Gram.grow`). Rows
are computed over the active columns, added up while they are in cache, and kept in slots of one
array until the budget is used; then the least recently used go.

Linear kernels need none of this: the change of all inner products is one product with the change of
the weight vector (:class:`LinearGram`).

Symbols: q rows asked for; width the number of active columns; s inner products with the learned
function, one for each active column.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from slimsvm.buffers import Buffer
from slimsvm.compiled import compiled
from slimsvm.kernel_sums import accumulate, add_rows
from slimsvm.kernels import Linear
from slimsvm.threads import parallel, single_threaded_blas
from slimsvm.tiles import Operand, Strips, for_each_tile, square

Array = NDArray[Any]
# how much of the bound on a value's error is seen in s, per unit of |coef|: measured 1/5 to 1/60 on
# six data sets
ROUNDING = 1 / 8
ROOM = 0.25  # coefficients grow on: share of the error allowed now that is worth another beginning
# this many multiply-adds take about as long as the exponential and a pass through memory
CHEAP_FEATURES = 64
SPARE = 1.125  # width of a slot when columns leave, in active columns: some come back
ROWS_A_TASK = 64
# a strip of s that stays in the first-level cache while cached rows are added to it
ADD_COLUMNS = 2048
FILLED = 256  # rows that are computed at once where they are not asked for yet


@compiled
def _assemble(
    out: Array,
    last: Array,
    where: Array,
    store: Array,
    slots: Array,
    columns: Array,
    fresh: Array,
    values: Array,
    start: int,
    end: int,
) -> None:
    """Fill rows start..end of a block.

    They come from the last block, from cached rows or from computed ones, in this order of
    preference.

    where[i]: place of row i in the last block; slots[i]: in the cache; fresh[i]: among the computed
    rows; each -1 if not there.
    """
    for i in range(start, end):
        if where[i] >= 0:
            row = last[where[i]]
            for j in range(where.size):
                out[i, j] = row[max(where[j], 0)]
        elif slots[i] >= 0:
            row = store[slots[i]]
            for j in range(where.size):
                out[i, j] = row[columns[j]]
        else:
            row = values[fresh[i]]
            for j in range(where.size):
                out[i, j] = row[j]


@compiled
def _mirror(out: Array, where: Array, start: int, end: int) -> None:
    """Complete, by symmetry, the rows start..end that came from the last block.

    These are the columns that it did not have. The loop goes through squares, for the cache.
    """
    q = where.size
    for j0 in range(0, q, 32):
        for i in range(start, end):
            if where[i] >= 0:
                for j in range(j0, min(q, j0 + 32)):
                    if where[j] < 0:
                        out[i, j] = out[j, i]


@compiled
def _compact(store: Array, slots: Array, keep: Array, start: int, end: int) -> None:
    """Move the kept columns (ascending) of the rows in slots[start:end] to the front."""
    for k in range(start, end):
        row = store[slots[k]]
        for j in range(keep.size):
            row[j] = row[keep[j]]


def _move_rows(flat: Array, slots: Array, stride: int, new_stride: int, width: int) -> None:
    """Move the first ``width`` values of the rows in ``slots`` (ascending) to slots 0, 1, ...

    The new slots have another stride. All go backwards (the first first) or all go forwards (the
    last first): nothing is overwritten before it has moved.
    """
    sources, targets = (slots * stride).tolist(), (np.arange(slots.size) * new_stride).tolist()
    order = range(slots.size) if new_stride <= stride else range(slots.size - 1, -1, -1)
    for k in order:
        if sources[k] != targets[k]:
            flat[targets[k] : targets[k] + width] = flat[sources[k] : sources[k] + width]


class OwnRows:
    """Parts of kernel rows within one class, passed from one pair of classes to the next.

    They take at most ``budget`` bytes.
    """

    def __init__(self, n: int, budget: float, dtype: Any) -> None:
        n_slots = int(min(n, budget // max(1, n * np.dtype(dtype).itemsize)))
        self.store = np.empty((n_slots, n), dtype)
        self.slot = np.full(n, -1)
        self.n_filled = 0

    def put(self, rows: Array, values: Array, slots: Array, start: int, end: int) -> None:
        """Keep columns start..end of values[slots] as the parts of these rows, while they fit."""
        new = np.flatnonzero(self.slot[rows] < 0)[: self.store.shape[0] - self.n_filled]
        for k in new:
            self.slot[rows[k]] = self.n_filled
            self.store[self.n_filled] = values[slots[k], start:end]
            self.n_filled += 1


class Gram:
    """Rows of the kernel matrix of one operand, cached within ``budget`` bytes.

    Attributes
    ----------
    columns : array or None
        Which rows of the operand are the active columns; None: all.
    n_values : int
        Kernel values computed so far.
    rounding : float
        What rounding errors of the values may do to s, per unit of the norm of the coefficients;
        zero in float64.
    """

    def __init__(self, operand: Operand, budget: float, n_threads: int = 1) -> None:
        self.operand, self.budget, self.n_threads = operand, float(budget), n_threads
        self.n, self.dtype = operand.n, operand.dtype
        self.columns: Array | None = None
        self.n_values = 0
        self.rounding = ROUNDING * operand.error() if self.dtype == np.float32 else 0.0
        self._clock = 0
        self._shared: list[tuple[OwnRows, int, int]] = []
        self._strips = Strips(operand)
        self._last_rows, self._last_block = np.empty(0, int), np.empty((0, 0), self.dtype)
        self._place_in_last = np.full(self.n, -1)
        # of block: values, two sides, this block and the last
        self._buffers = [Buffer() for _ in range(5)]
        self._computed = np.zeros(self.n, bool)
        # of a row of the operand among the active columns; -1: not there
        self._position = np.arange(self.n)
        self.width = self.n
        n_slots = self._slots_within(self.n)
        self._flat = np.empty(n_slots * self.n, self.dtype)
        self._lay_out(self.n, n_slots)

    def _slots_within(self, stride: int) -> int:
        return int(min(self.n, self.budget // max(1, stride * np.dtype(self.dtype).itemsize)))

    def _lay_out(self, stride: int, n_slots: int) -> None:
        self._stride = stride  # of a slot: the active columns, and space for some that come back
        self._store = self._flat[: n_slots * stride].reshape(n_slots, stride)
        self._slot = np.full(self.n, -1)  # of a row of the operand
        self._row = np.full(n_slots, -1)  # in a slot
        self._used = np.zeros(n_slots, np.int64)
        self._n_filled = 0

    def upgrade(self, wanted: float = 0.0) -> None:
        """From here on with smaller errors: all columns are active, nothing is cached.

        In float32 with distances by differences, if ``rounding`` is then well below what is wanted;
        else in float64.
        """
        n_values, finer = self.n_values, self.operand.finer()
        if finer is None or ROUNDING * finer.error() > ROOM * wanted:
            finer = self.operand.exact()
        self.__init__(finer, self.budget, self.n_threads)  # type: ignore[misc]
        self.n_values = n_values

    def diag(self) -> Array:
        """k(x, x) of all rows, in float64."""
        return self.operand.diag()

    def cached(self, rows: Array) -> Array:
        """Which of these rows are in the cache."""
        return np.asarray(self._slot[rows] >= 0)

    @property
    def cheap(self) -> bool:
        """Whether a kernel value costs little more to compute than to read from memory.

        Shrinking then pays early.
        """
        X = self.operand.X
        return bool(
            self.operand.kernel.uses_dots
            and isinstance(X, np.ndarray)
            and X.shape[1] <= CHEAP_FEATURES
        )

    @property
    def full(self) -> bool:
        """Whether the budget is used up."""
        return bool(self._n_filled == self._row.size)

    def block(self, rows: Array) -> Array:
        """k(rows, rows), where all rows must be active columns.

        Cached rows are read from the cache; only the others among themselves are computed.
        """
        if rows.size == self.n and not self._last_rows.size and not self._n_filled:
            return self._at_once(rows)
        if np.array_equal(rows, self._last_rows):
            return self._last_block
        where, slots, fresh = self._place_in_last[rows], self._slot[rows], np.full(rows.size, -1)
        missing = np.flatnonzero((where < 0) & (slots < 0))
        fresh[missing] = np.arange(missing.size)
        values = self._buffers[0].array((missing.size, rows.size), self.dtype)
        if missing.size:
            side = self.operand.take(rows, self._buffers[1])

            def keep(first: int, last: int, start: int, end: int, tile: Array) -> None:
                values[first:last, start:end] = tile

            for_each_tile(
                self.operand.take(rows[missing], self._buffers[2]),
                Strips(side, 256),
                keep,
                self.n_threads,
            )
            self.n_values += values.size
        # the last block stays until this one is assembled
        self._buffers[3], self._buffers[4] = self._buffers[4], self._buffers[3]
        out = self._buffers[3].array((rows.size, rows.size), self.dtype)
        columns, step = self._position[rows], 64
        n_tasks = -(-rows.size // step)
        parallel(
            lambda t: _assemble(
                out,
                self._last_block,
                where,
                self._store,
                slots,
                columns,
                fresh,
                values,
                t * step,
                min(rows.size, (t + 1) * step),
            ),
            n_tasks,
            self.n_threads,
        )
        if (where >= 0).any():
            parallel(
                lambda t: _mirror(out, where, t * step, min(rows.size, (t + 1) * step)),
                n_tasks,
                self.n_threads,
            )
        self._place_in_last[self._last_rows] = -1
        self._place_in_last[rows] = np.arange(rows.size)
        self._last_rows, self._last_block = rows, out
        return out

    def _at_once(self, rows: Array) -> Array:
        """All rows at once, and nothing is known yet: the values go straight to their places."""
        out = self._buffers[3].array((self.n, self.n), self.dtype)
        square(
            self.operand if (rows == np.arange(self.n)).all() else self.operand.take(rows),
            out,
            self.n_threads,
        )
        self.n_values += out.size
        self._place_in_last[rows] = np.arange(rows.size)
        self._last_rows, self._last_block = rows, out
        return out

    def add(self, rows: Array, delta: Array, s: Array, keep: Array | None = None) -> None:
        """s += sum_r delta[r] * k(rows[r], active columns).

        Rows that are not cached are computed. They are kept if ``keep`` says so (None: all), or if
        they are computed for the second time.
        """
        self._clock += 1
        slots = self._slot[rows]
        known = slots >= 0
        delta = delta.astype(self.dtype)
        if known.any():
            old, old_delta = slots[known], delta[known]
            self._used[old] = self._clock
            parallel(
                lambda t: add_rows(
                    self._store,
                    old,
                    old_delta,
                    s,
                    t * ADD_COLUMNS,
                    min(self.width, (t + 1) * ADD_COLUMNS),
                    0,
                ),
                -(-self.width // ADD_COLUMNS),
                self.n_threads,
            )
        if not known.all():
            fresh = rows[~known]
            wanted = (
                np.ones(fresh.size, bool) if keep is None else keep[~known] | self._computed[fresh]
            )
            slots = np.full(fresh.size, -1)
            slots[wanted] = self._claim(fresh[wanted], rows.size)
            self._computed[fresh] = True
            self._compute(fresh, delta[~known], s, slots)

    def fill(self, rows: Array) -> None:
        """Compute rows before they are asked for, the first ones first, as many as fit."""
        rows = rows[: self._row.size - self._n_filled]
        for first in range(0, rows.size, FILLED):
            some = rows[first : first + FILLED]
            self.add(some, np.zeros(some.size), np.zeros(self.width))

    def _claim(self, rows: Array, n_asked: int) -> Array:
        """Slots for new rows, the least recently used first; -1 where there are none."""
        n_slots = self._row.size
        slots = np.full(rows.size, -1)
        # a row counts as old only after two rounds through a full cache: a cyclic sweep through
        # more rows than fit would otherwise evict each of them just before it is needed again
        old = self._clock - 2 * n_slots // max(1, n_asked)
        take = min(
            rows.size,
            n_slots - self._n_filled + int(np.count_nonzero(self._used[: self._n_filled] < old)),
        )
        if take:
            # slots that were never used come in ascending order: memory is touched only as far as
            # it is needed
            chosen = np.arange(self._n_filled, min(n_slots, self._n_filled + take))
            self._n_filled += chosen.size
            if chosen.size < take:
                rest = take - chosen.size
                self._used[chosen] = self._clock
                chosen = np.concatenate(
                    [
                        chosen,
                        np.argpartition(self._used, rest - 1)[:rest]
                        if rest < n_slots
                        else np.arange(n_slots),
                    ]
                )
            evicted = self._row[chosen]
            self._slot[evicted[evicted >= 0]] = -1
            self._row[chosen], self._slot[rows[:take]] = rows[:take], chosen
            self._used[chosen] = self._clock
            slots[:take] = chosen
        return slots

    def _compute(self, rows: Array, delta: Array, s: Array, slots: Array) -> None:
        for own, start, end in self._shared if self.columns is None else ():
            inherited = (rows >= start) & (rows < end)
            inherited[inherited] = own.slot[rows[inherited] - start] >= 0
            if inherited.any():
                self._complete(
                    rows[inherited], delta[inherited], s, slots[inherited], own, start, end
                )
                rows, delta, slots = rows[~inherited], delta[~inherited], slots[~inherited]
        if rows.size:
            accumulate(
                self.operand.take(rows, self._buffers[2]),
                self._strips,
                delta,
                s,
                self.n_threads,
                slots,
                self._store,
            )
            self.n_values += rows.size * self.width

    def share(self, own: OwnRows, start: int, end: int) -> None:
        """Take the parts of rows start..end within their class from ``own``, where it has them.

        These rows are all rows of one class.
        """
        self._shared.append((own, start, end))

    def leave_behind(self) -> None:
        """Hand the parts of all cached rows within their classes to those they are shared with."""
        if self.columns is None:
            filled = np.flatnonzero(self._row >= 0)
            for own, start, end in self._shared:
                mine = filled[(self._row[filled] >= start) & (self._row[filled] < end)]
                own.put(self._row[mine] - start, self._store, mine, start, end)

    def _complete(
        self, rows: Array, delta: Array, s: Array, slots: Array, own: OwnRows, start: int, end: int
    ) -> None:
        """Rows whose part start..end is in ``own``: add it from there, and compute the rest."""
        inside = own.slot[rows - start]
        add_rows(own.store, inside, delta, s, start, end, start)
        kept = slots >= 0
        self._store[slots[kept], start:end] = own.store[inside[kept]]
        others = np.concatenate([np.arange(start), np.arange(end, self.n)])

        def consume(first: int, last: int, begin: int, stop: int, values: Array) -> None:
            columns = others[begin:stop]
            s[columns] += delta[first:last] @ values
            mine = np.flatnonzero(kept[first:last])
            self._store[slots[first:last][mine, None], columns] = values[mine]

        for_each_tile(
            self.operand.take(rows), Strips(self.operand.take(others)), consume, self.n_threads
        )
        self.n_values += rows.size * others.size

    def restrict(self, columns: Array) -> None:
        """Make these rows of the operand, a subset of the active ones, the only columns.

        Cached rows keep those columns; the space that becomes free is used for more rows.
        """
        self.leave_behind()
        filled = np.flatnonzero(self._row >= 0)
        keep = self._position[columns].astype(np.int32)
        parallel(
            lambda t: _compact(
                self._store, filled, keep, t * ROWS_A_TASK, min(filled.size, (t + 1) * ROWS_A_TASK)
            ),
            -(-filled.size // ROWS_A_TASK),
            self.n_threads,
        )
        self._set_columns(columns)
        if self.full or self._stride >= 2 * self.width:  # else there is space enough without it
            self._move(filled, columns.size)

    def grow(self, columns: Array) -> None:
        """Add these rows of the operand to the active columns, behind the others.

        Cached rows are completed.
        """
        old_width, before = (
            self.width,
            self.columns if self.columns is not None else np.arange(self.n),
        )
        self._set_columns(np.concatenate([before, columns]))
        if self.width > self._stride:
            filled = np.flatnonzero(self._row >= 0)
            fits = min(self._slots_within(self.width), self._flat.size // self.width)
            self._move(
                np.sort(
                    filled[
                        np.argsort(self._used[filled], kind="stable")[max(0, filled.size - fits) :]
                    ]
                ),
                old_width,
            )
        slots = np.flatnonzero(self._row >= 0)
        side = Strips(self.operand.take(columns))
        # by parts, so that the new columns of all rows never stand in memory twice
        for start in range(0, slots.size, 1024):
            part = slots[start : start + 1024]

            def keep(
                first: int, last: int, begin: int, end: int, tile: Array, part: Array = part
            ) -> None:
                self._store[part[first:last], old_width + begin : old_width + end] = tile

            for_each_tile(self.operand.take(self._row[part]), side, keep, self.n_threads)
            self.n_values += part.size * columns.size

    def grow_with(self, columns: Array, rows: Array, delta: Array) -> Array:
        """Grow by these columns, and return sum_r delta[r] * k(rows[r], columns).

        What is cached of these rows is computed once.
        """
        self.grow(columns)
        known = self._slot[rows] >= 0
        s, first = np.zeros(self.width), self.width - columns.size
        add_rows(
            self._store,
            self._slot[rows[known]],
            delta[known].astype(self.dtype),
            s,
            first,
            self.width,
            0,
        )
        return s[first:] + self.products(rows[~known], delta[~known], columns)

    def _set_columns(self, columns: Array) -> None:
        self.columns, self.width = columns, columns.size
        self._position = np.full(self.n, -1)
        self._position[columns] = np.arange(columns.size)
        self._strips = Strips(self.operand.take(columns))

    def _move(self, slots: Array, n_columns: int) -> None:
        """Lay the cache out for the active columns.

        Of the rows in these slots (ascending) the first columns move; the rest is forgotten.
        """
        rows, used = self._row[slots], self._used[slots]
        stride = (
            self.width
            if self.full
            else max(self.width, min(self._flat.size // max(1, rows.size), int(SPARE * self.width)))
        )
        _move_rows(self._flat, slots, self._stride, self._stride, n_columns)
        slots = np.arange(rows.size)
        _move_rows(self._flat, slots, self._stride, stride, n_columns)
        self._lay_out(stride, min(self._slots_within(stride), self._flat.size // max(1, stride)))
        self._row[slots], self._used[slots], self._slot[rows] = rows, used, slots
        self._n_filled = rows.size

    def products(self, rows: Array, delta: Array, columns: Array) -> Array:
        """sum_r delta[r] * k(rows[r], columns) for columns that are not active; nothing is kept."""
        s = np.zeros(columns.size)
        accumulate(
            self.operand.take(rows), Strips(self.operand.take(columns)), delta, s, self.n_threads
        )
        self.n_values += rows.size * columns.size
        return s


class LinearGram(Gram):
    """The same for the linear kernel, which never needs a row.

    A change of coefficients is a change of one weight vector.
    """

    def __init__(self, operand: Operand, budget: float, n_threads: int = 1) -> None:
        super().__init__(operand, 0.0, n_threads)
        self._active = operand

    @property
    def full(self) -> bool:
        """There is nothing to fill."""
        return False

    def cached(self, rows: Array) -> Array:
        """Everything is as cheap as cached."""
        return np.ones(rows.size, bool)

    def fill(self, rows: Array) -> None:
        """There is nothing to keep."""

    def add(self, rows: Array, delta: Array, s: Array, keep: Array | None = None) -> None:
        """s += X_active (X_rows' delta)"""
        s += self._through_weights(rows, delta, self._active)

    def products(self, rows: Array, delta: Array, columns: Array) -> Array:
        """X_columns (X_rows' delta)"""
        return self._through_weights(rows, delta, self.operand.take(columns))

    def grow_with(self, columns: Array, rows: Array, delta: Array) -> Array:
        """Grow, and X_columns (X_rows' delta)."""
        self.grow(columns)
        return self.products(rows, delta, columns)

    def _through_weights(self, rows: Array, delta: Array, side: Operand) -> Array:
        X = self.operand.take(rows).X
        w = np.asarray(X.T @ delta.astype(np.float64))
        X = side.X
        self.n_values += rows.size + side.n
        if sp.issparse(X):
            return np.asarray(X @ w)
        out = np.empty(side.n)
        step = max(1024, -(-side.n // max(1, 4 * self.n_threads)))

        def part(t: int) -> None:
            out[t * step : (t + 1) * step] = X[t * step : (t + 1) * step] @ w.astype(X.dtype)

        with single_threaded_blas():
            parallel(part, -(-side.n // step), self.n_threads)
        return out

    def _set_columns(self, columns: Array) -> None:
        super()._set_columns(columns)
        self._active = self._strips.operand


def make_gram(operand: Operand, budget: float, n_threads: int = 1) -> Gram:
    """The Gram object that suits the operand's kernel."""
    kind = LinearGram if isinstance(operand.kernel, Linear) else Gram
    return kind(operand, budget, n_threads)
