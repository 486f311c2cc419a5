"""Kernel values of rows sorted by class: one matrix of all of them, or one for each pair."""

from __future__ import annotations

from threading import get_ident
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slimsvm.tiles import Operand, Strips, block, square

Array = NDArray[Any]


class Memory:
    """Memory of each thread while a search goes on, so that its pages are there already."""

    def __init__(self) -> None:
        self._of: dict[tuple[int, str], Array] = {}

    def take(self, name: str, shape: tuple[int, ...], dtype: Any) -> Array:
        """An array of the calling thread; its values are those of the last one of that name."""
        key, need = (get_ident(), name), int(np.prod(shape)) * np.dtype(dtype).itemsize
        if key not in self._of or self._of[key].size < need:
            self._of[key] = np.empty(need, np.uint8)
        return self._of[key][:need].view(dtype).reshape(shape)


class WholeMatrix:
    """The kernel values of all rows, sorted by class."""

    def __init__(self, K: Array, diag: Array, edges: Array) -> None:
        self.K, self.diag, self.edges = K, diag, edges
        self.dtype, self.most = K.dtype, float(diag.max())

    def of_pair(self, low: int, high: int) -> tuple[Array, Array, Array]:
        """A matrix with the rows of two classes, its diagonal, and their slices."""
        return self.K, self.diag, np.concatenate([self.edges[c : c + 2] for c in (low, high)])

    def between(self, rows: Array, c: int, which: Array | slice) -> Array:
        """Values of some rows with rows of a class."""
        return self.K[rows, self.edges[c] : self.edges[c + 1]][:, which]


class PairMatrices:
    """The same values pair by pair, each time they are asked for."""

    def __init__(self, operand: Operand, dtype: Any, edges: Array, memory: Memory) -> None:
        self.memory, self.operand, self.dtype, self.edges = memory, operand, dtype, edges
        self.diag = np.asarray(operand.diag(), dtype)
        self.most = float(self.diag.max())

    def of_pair(self, low: int, high: int) -> tuple[Array, Array, Array]:
        """A matrix with the rows of two classes, its diagonal, and their slices.

        It is valid until the calling thread asks for another one.
        """
        slices = [np.arange(*self.edges[c : c + 2]) for c in (low, high)]
        rows, n = np.concatenate(slices), slices[0].size
        K = self.memory.take("pair", (rows.size, rows.size), self.dtype)
        square(self.operand.take(rows), K)
        return K, self.diag[rows], np.array([0, n, n, rows.size])

    def between(self, rows: Array, c: int, which: Array | slice) -> Array:
        """Values of some rows with rows of a class."""
        columns = np.arange(*self.edges[c : c + 2])[which]
        return block(self.operand.take(rows), Strips(self.operand.take(columns)))


Matrix = WholeMatrix | PairMatrices
