"""Kernel rows within a byte budget, the least recently used out first.

As in Joachims (1999), section 5.3: when the cache is full, the row that has not been used for the
greatest number of iterations makes room for the current one; only the columns of active variables
are computed and cached; after shrinking the cache is reorganised.

(:class:`slimsvm.gram.Gram`, the cache of the default solver, keeps some rows and not others, and
computes none for variables that do not move.)
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from slimsvm.kernel_sums import accumulate
from slimsvm.tiles import Operand, Strips, block

Array = NDArray[Any]


class RowCache:
    """Rows of the kernel matrix over the active columns.

    Parameters
    ----------
    operand : Operand
        The rows of the data.
    budget : float
        Bytes for cached rows.
    n_threads : int
        Threads.

    Attributes
    ----------
    columns : array
        The active ones, ascending.
    hits, misses : int
        Rows that were asked for and found, or computed.
    n_values : int
        Kernel values computed.

    Examples
    --------
    >>> from slimsvm.kernels import Linear
    >>> from slimsvm.tiles import prepare
    >>> cache = RowCache(prepare(Linear(), np.array([[1.0], [2.0], [3.0]])), budget=48.0)
    >>> cache.take(np.array([0, 2])).tolist(), cache.take(np.array([2])).tolist()
    ([[1.0, 2.0, 3.0], [3.0, 6.0, 9.0]], [[3.0, 6.0, 9.0]])
    >>> cache.hits, cache.misses, cache.n_values
    (1, 2, 6)
    """

    def __init__(self, operand: Operand, budget: float, n_threads: int = 1) -> None:
        self.operand, self.n_threads = operand, n_threads
        self.hits = self.misses = self.n_values = 0
        itemsize = np.dtype(operand.dtype).itemsize
        n_slots = int(min(operand.n, budget // max(1, operand.n * itemsize)))
        self._flat = np.empty(n_slots * operand.n, operand.dtype)
        self._clock = 0
        self.reset()

    def reset(self) -> None:
        """All columns are active again, nothing is cached."""
        n = self.operand.n
        self.columns, self._strips = np.arange(n), Strips(self.operand)
        self._lay_out(n)

    def _lay_out(self, width: int) -> None:
        n_slots = min(self.operand.n, self._flat.size // max(1, width))
        self._store = self._flat[: n_slots * width].reshape(n_slots, width)
        self._slot = np.full(self.operand.n, -1)  # of a row
        self._row = np.full(n_slots, -1)  # in a slot
        self._used = np.full(n_slots, -1)  # when; -1: never

    def cached(self, rows: Array) -> Array:
        """Which of these rows are in the cache."""
        return np.asarray(self._slot[rows] >= 0)

    def take(self, rows: Array) -> Array:
        """k(rows, active columns): from the cache, or computed and put into it."""
        self._clock += 1
        out = np.empty((rows.size, self.columns.size), self._flat.dtype)
        slots = self._slot[rows]
        known = slots >= 0
        out[known] = self._store[slots[known]]
        self._used[slots[known]] = self._clock
        self.hits += int(np.count_nonzero(known))
        missing = np.flatnonzero(~known)
        if missing.size:
            fresh = rows[missing]
            out[missing] = block(self.operand.take(fresh), self._strips, self.n_threads)
            self.misses += missing.size
            self.n_values += missing.size * self.columns.size
            for k, slot in zip(missing, self._oldest(missing.size), strict=False):
                if self._row[slot] >= 0:
                    self._slot[self._row[slot]] = -1
                self._row[slot], self._slot[rows[k]] = rows[k], slot
                self._used[slot], self._store[slot] = self._clock, out[k]
        return out

    def _oldest(self, many: int) -> Array:
        """Slots that were never used, then the least recently used ones; not those of now."""
        order = np.argsort(self._used, kind="stable")[:many]
        return order[self._used[order] < self._clock]

    def restrict(self, keep: Array) -> None:
        """Go on with some of the columns: places among the active ones, ascending."""
        filled = np.flatnonzero(self._row >= 0)
        rows, used, old = self._row[filled], self._used[filled], self._store
        width = keep.size
        for k, slot in enumerate(filled.tolist()):  # to the front: nothing is overwritten too soon
            self._flat[k * width : (k + 1) * width] = old[slot][keep]
        self.columns = self.columns[keep]
        self._strips = Strips(self.operand.take(self.columns))
        self._lay_out(width)
        n = filled.size
        self._row[:n], self._used[:n], self._slot[rows] = rows, used, np.arange(n)

    def products(self, rows: Array, delta: Array, columns: Array) -> Array:
        """sum_r delta[r] k(rows[r], columns); nothing is kept."""
        s = np.zeros(columns.size)
        if rows.size and columns.size:
            side = Strips(self.operand.take(columns))
            accumulate(self.operand.take(rows), side, delta, s, self.n_threads)
            self.n_values += rows.size * columns.size
        return s
