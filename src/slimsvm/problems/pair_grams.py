"""The kernel work that the pairs of classes share in one-vs-one.

The operand's rows are sorted by class. A pair (p, n) needs the kernel within p, within n, and
between them; the first two are needed by every other pair of p or of n again. For small classes
the blocks within a class are computed once and kept. For large ones, rows that a pair had in its
cache leave their part within the class behind for the next pair (:class:`OwnRows`).
"""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slimsvm.gram import Gram, OwnRows, make_gram
from slimsvm.kernels import Linear
from slimsvm.multiclass import Part
from slimsvm.tiles import Operand, Strips, block

Array = NDArray[Any]
OWN_SHARE = 0.25  # of the cache: for what pairs leave to one another


class PairGrams:
    """The Gram of every pair, made when asked for; up to ``whole`` rows it is asked for once."""

    def __init__(
        self, operand: Operand, parts: list[Part], budget: float, n_threads: int, whole: int
    ) -> None:
        self.operand, self.parts, self.budget = operand, parts, budget
        self.n_threads, self.whole = n_threads, whole
        self._ends = np.concatenate([[0], np.cumsum(np.bincount(parts[0].label))])
        self._own_blocks: dict[int, Array] = {}
        self._locks = [threading.Lock() for _ in range(self._ends.size - 1)]
        self._grams: dict[int, Gram] = {}
        self._own_rows: dict[int, OwnRows] = {}
        if len(parts) > 1:
            operand.rounding()  # errors are seen once, not for every pair

    def is_small(self, part: Part) -> bool:
        """Whether the pair is solved as one block, and so beside others."""
        size = np.diff(self._ends)
        return bool(size[part.positive] + size[part.negative] <= self.whole)

    def gram(self, part: Part) -> Gram:
        """The Gram of a pair."""
        if len(self.parts) == 1:
            return make_gram(self.operand, self.budget, self.n_threads)
        rows = part.rows
        operand = self.operand.take(rows)
        if isinstance(operand.kernel, Linear):
            return make_gram(operand, self.budget, self.n_threads)
        low, high = sorted((part.positive, part.negative))
        if rows.size <= self.whole:
            return WholePairGram(operand, self._own_block(low), self._own_block(high))
        gram = Gram(operand, (1 - OWN_SHARE) * self.budget, self.n_threads)
        first = int(self._ends[low + 1] - self._ends[low])
        gram.share(self._own(low), 0, first)
        gram.share(self._own(high), first, rows.size)
        self._grams[part.k] = gram
        return gram

    def done(self, part: Part) -> None:
        """The pair is solved: what its cache holds within the classes is left to other pairs."""
        gram = self._grams.pop(part.k, None)
        if gram is not None:
            gram.leave_behind()

    def _own(self, c: int) -> OwnRows:
        if c not in self._own_rows:
            n = int(self._ends[c + 1] - self._ends[c])
            self._own_rows[c] = OwnRows(
                n, OWN_SHARE * self.budget * n / max(1, self.operand.n), self.operand.dtype
            )
        return self._own_rows[c]

    def _own_block(self, c: int) -> Array:
        """The kernel within class c."""
        with self._locks[c]:
            if c not in self._own_blocks:
                part = self.operand.take(slice(int(self._ends[c]), int(self._ends[c + 1])))
                self._own_blocks[c] = block(part, Strips(part))
            return self._own_blocks[c]


class WholePairGram(Gram):
    """The Gram of a small pair: two blocks that are shared, and the one between them."""

    def __init__(self, operand: Operand, first: Array, second: Array) -> None:
        super().__init__(operand, 0.0, 1)
        self._first, self._second = first, second
        self._whole: Array | None = None

    def block(self, rows: Array) -> Array:
        """k(rows, rows); without computing what is within a class."""
        if rows.size != self.n or self._first.dtype != self.dtype:
            return super().block(rows)
        if self._whole is None:
            self._whole = self._block()
        return self._whole

    def _block(self) -> Array:
        n = self._first.shape[0]
        out = np.empty((self.n, self.n), self.dtype)
        out[:n, :n], out[n:, n:] = self._first, self._second
        between = block(self.operand.take(slice(0, n)), Strips(self.operand.take(slice(n, self.n))))
        out[:n, n:], out[n:, :n] = between, between.T
        self.n_values += between.size
        return out

    def upgrade(self, wanted: float = 0.0) -> None:
        """In float64, and on its own."""
        Gram.__init__(self, self.operand.exact(), 0.0, 1)


class OwnGrams(PairGrams):
    """The same without sharing: every pair has the whole budget, for solvers with their own cache.

    What such a solver needs of a Gram is its rows, and what rounding does to their values.
    """

    def gram(self, part: Part) -> Gram:
        """The Gram of a pair."""
        return Gram(
            self.operand if len(self.parts) == 1 else self.operand.take(part.rows),
            self.budget,
            self.n_threads,
        )
