"""One-vs-one machines: the pairs of classes, and the kernel work that they share.

The operand's rows are sorted by class. A pair (p, n) needs the kernel within p, within n, and between them; the first two are needed by every
other pair of p or of n again. For small classes the blocks within a class are computed once and kept. For large ones, rows that a pair had in
its cache leave their part within the class behind for the next pair (:class:`OwnRows`).
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slimsvm.gram import Gram, OwnRows, make_gram
from slimsvm.kernels import Linear
from slimsvm.solvers.decomposition import WHOLE
from slimsvm.tiles import Operand, Strips, block

Array = NDArray[Any]
OWN_SHARE = 0.25  # of the cache: for what pairs leave to one another


@dataclass(frozen=True)
class Pair:
    """Two classes, by their places among the sorted labels."""

    positive: int
    negative: int

    def rows(self, label: Array) -> Array:
        """The rows of the pair, in order."""
        return np.flatnonzero((label == self.positive) | (label == self.negative))


class PairGrams:
    """The Gram of every pair, made when asked for."""

    def __init__(
        self, operand: Operand, label: Array, pairs: list[Pair], budget: float, n_threads: int
    ) -> None:
        self.operand, self.label, self.pairs, self.budget, self.n_threads = (
            operand,
            label,
            pairs,
            budget,
            n_threads,
        )
        self._ends = np.concatenate([[0], np.cumsum(np.bincount(label))])
        self._own_blocks: dict[int, Array] = {}
        self._locks = [threading.Lock() for _ in range(self._ends.size - 1)]
        self._grams: dict[int, Gram] = {}
        self._own_rows: dict[int, OwnRows] = {}

    def __len__(self) -> int:
        return len(self.pairs)

    def rows(self, k: int) -> Array:
        """Rows of the operand that belong to pair k."""
        return self.pairs[k].rows(self.label)

    def split(self) -> tuple[list[int], list[int]]:
        """Pairs small enough to be solved side by side, and the others."""
        size = np.diff(self._ends)
        small = [
            k
            for k, pair in enumerate(self.pairs)
            if len(self) > 1 and size[pair.positive] + size[pair.negative] <= WHOLE
        ]
        return small, sorted(set(range(len(self))) - set(small))

    def gram(self, k: int) -> Gram:
        """The Gram of pair k."""
        if len(self) == 1:
            return make_gram(self.operand, self.budget, self.n_threads)
        pair, rows = self.pairs[k], self.rows(k)
        operand = self.operand.take(rows)
        if isinstance(operand.kernel, Linear):
            return make_gram(operand, self.budget, self.n_threads)
        low, high = sorted((pair.positive, pair.negative))
        if rows.size <= WHOLE:
            return WholePairGram(operand, self._own_block(low), self._own_block(high))
        gram = Gram(operand, (1 - OWN_SHARE) * self.budget, self.n_threads)
        first = int(self._ends[low + 1] - self._ends[low])
        gram.share(self._own(low), 0, first)
        gram.share(self._own(high), first, rows.size)
        self._grams[k] = gram
        return gram

    def done(self, k: int) -> None:
        """Pair k is solved: what its cache holds within the classes is left to the other pairs."""
        gram = self._grams.pop(k, None)
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
    """The Gram of a small pair, asked only for the block of all its rows: two blocks that are shared, and the one between them."""

    def __init__(self, operand: Operand, first: Array, second: Array) -> None:
        super().__init__(operand, 0.0, 1)
        self._first, self._second = first, second

    def block(self, rows: Array) -> Array:
        """k(rows, rows); without computing what is within a class."""
        if rows.size != self.n or self._first.dtype != self.dtype:
            return super().block(rows)
        n = self._first.shape[0]
        out = np.empty((self.n, self.n), self.dtype)
        out[:n, :n], out[n:, n:] = self._first, self._second
        between = block(self.operand.take(slice(0, n)), Strips(self.operand.take(slice(n, self.n))))
        out[:n, n:], out[n:, :n] = between, between.T
        self.n_values += between.size
        return out

    def upgrade(self) -> None:
        """In float64, and on its own."""
        Gram.__init__(self, self.operand.exact(), 0.0, 1)


def pair_grams(
    operand: Operand, label: Array, pairs: list[Pair], budget: float, n_threads: int
) -> PairGrams:
    """The Grams of all pairs of classes of an operand whose rows are sorted by class."""
    return PairGrams(operand, label, pairs, budget, n_threads)
