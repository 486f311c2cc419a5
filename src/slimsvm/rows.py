"""Where the data lives: rows in blocks with fixed edges, and the map-reduce over them.

Whatever touches all rows once is a :meth:`Rows.map_reduce`. Block edges depend on the shape of the data only, and partial results are combined
in order, so the result has the same bits for any number of workers. Today the blocks are views of an array, a CSR matrix or a memory map; a
cluster would be another class with the same three methods.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from slimsvm.compiled import compiled
from slimsvm.threads import parallel

Array = NDArray[Any]
Part = TypeVar("Part")
BLOCK_VALUES = 1 << 19  # a float64 block of four megabytes: stays in the outer cache


@dataclass(frozen=True)
class Block:
    """Consecutive rows, with what belongs to them."""

    start: int
    X: Any
    y: Array | None
    weight: Array | None


@dataclass(frozen=True)
class Rows:
    """The rows of one data set, with targets and weights.

    Examples
    --------
    >>> import numpy as np
    >>> from slimsvm.rows import Rows
    >>> rows = Rows(np.arange(6.0).reshape(3, 2))
    >>> float(rows.map_reduce(lambda block: block.X.sum(), lambda a, b: a + b))
    15.0
    """

    X: Any
    y: Array | None = None
    weight: Array | None = None

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and of features."""
        return int(self.X.shape[0]), int(self.X.shape[1])

    def blocks(self) -> Iterator[Block]:
        """The rows in order, block by block."""
        return (self._block(k) for k in range(self._n_blocks))

    @property
    def _step(self) -> int:
        n, d = self.shape
        width = max(1, self.X.nnz // max(1, n)) if sp.issparse(self.X) else d
        return max(1, BLOCK_VALUES // max(1, width))

    @property
    def _n_blocks(self) -> int:
        return -(-self.shape[0] // self._step)

    def _block(self, k: int) -> Block:
        part = slice(k * self._step, min(self.shape[0], (k + 1) * self._step))
        return Block(
            part.start,
            self.X[part],
            None if self.y is None else self.y[part],
            None if self.weight is None else self.weight[part],
        )

    def take(self, indices: Array) -> Rows:
        """Some of the rows, as a copy."""
        return Rows(
            self.X[indices],
            None if self.y is None else self.y[indices],
            None if self.weight is None else self.weight[indices],
        )

    def map_reduce(
        self,
        partial: Callable[[Block], Part],
        combine: Callable[[Part, Part], Part],
        n_threads: int = 1,
    ) -> Part:
        """combine(... combine(partial(block 0), partial(block 1)) ...), in this order whatever thread made which part."""
        parts: list[Any] = [None] * self._n_blocks

        def work(k: int) -> None:
            parts[k] = partial(self._block(k))

        parallel(work, self._n_blocks, n_threads)
        total = parts[0]
        for part in parts[1:]:
            total = combine(total, part)
        return total  # type: ignore[no-any-return]

    def fingerprint(self) -> str:
        """A hash of the rows, targets and weights: whether two fits saw the same data."""
        digest = hashlib.sha256(repr((self.shape, str(self.X.dtype))).encode())
        for block in self.blocks():
            X = block.X
            pieces = (X.data, X.indices, X.indptr) if sp.issparse(X) else (X,)
            for piece in (*pieces, block.y, block.weight):
                if piece is not None:
                    digest.update(np.ascontiguousarray(piece).data)
        return digest.hexdigest()


def codes(X: Any) -> Array:
    """A hash of 64 bits for every row: the same for equal rows, whether they are in an array or in a CSR matrix.

    Examples
    --------
    >>> import numpy as np
    >>> from slimsvm.rows import codes
    >>> code = codes(np.array([[1.0, 0.0], [2.0, 0.0], [1.0, -0.0]]))
    >>> bool(code[0] == code[2]), bool(code[0] == code[1])
    (True, False)
    """
    key = np.random.default_rng(0).integers(1, 2**62, size=X.shape[1])
    code = np.empty(X.shape[0], np.int64)
    if sp.issparse(X):
        _hash_sparse(X.indptr, X.indices, X.data.astype(np.float64, copy=False), key, code)
    else:
        step = max(1, BLOCK_VALUES // max(1, X.shape[1]))
        for start in range(0, X.shape[0], step):
            _hash_dense(
                np.ascontiguousarray(X[start : start + step], np.float64),
                key,
                code[start : start + step],
            )
    return code


def places(X: Any) -> tuple[Array, Array]:
    """The first of every set of equal rows, as ascending indices, and for every row the place of its first among these.

    Examples
    --------
    >>> import numpy as np
    >>> from slimsvm.rows import places
    >>> places(np.array([[2.0, 0.0], [1.0, 0.0], [2.0, -0.0]]))
    (array([0, 1]), array([0, 1, 0]))
    """
    _, first, inverse = np.unique(codes(X), return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty_like(order)
    rank[order] = np.arange(order.size)
    return first[order], rank[inverse]


def distinct(X: Any) -> Array:
    """The first of every set of equal rows, as ascending indices; by a hash of 64 bits.

    Examples
    --------
    >>> import numpy as np
    >>> from slimsvm.rows import distinct
    >>> distinct(np.array([[1.0, 0.0], [2.0, 0.0], [1.0, -0.0]]))
    array([0, 1])
    """
    return np.sort(np.unique(codes(X), return_index=True)[1])


@compiled
def _mixed(value: float, key: int) -> Any:
    """A number of 64 bits that depends on every bit of both; of zeros none is made, so that minus zero is zero."""
    bits = np.float64(value).view(np.int64)
    bits = (bits ^ (bits >> 29)) * key
    bits = (bits ^ (bits >> 32)) * -7046029254386353131
    return bits ^ (bits >> 31)


@compiled
def _hash_dense(X: Array, key: Array, code: Array) -> None:
    for i in range(X.shape[0]):
        total = np.int64(0)
        for j in range(X.shape[1]):
            if X[i, j] != 0.0:
                total += _mixed(X[i, j], key[j])
        code[i] = total


@compiled
def _hash_sparse(indptr: Array, indices: Array, data: Array, key: Array, code: Array) -> None:
    for i in range(code.size):
        total = np.int64(0)
        for p in range(indptr[i], indptr[i + 1]):
            if data[p] != 0.0:
                total += _mixed(data[p], key[indices[p]])
        code[i] = total
