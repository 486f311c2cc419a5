"""Which rows are equal: a hash for every row, and the first of every set of equal ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from slimsvm.compiled import compiled

Array = NDArray[Any]
BLOCK_VALUES = 1 << 19  # a float64 block of four megabytes: stays in the outer cache


def codes(X: Any) -> Array:
    """A hash of 64 bits for every row.

    It is the same for equal rows, whether they are in an array or in a CSR matrix.

    Examples
    --------
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
    """The first of every set of equal rows, as ascending indices.

    Also returns, for every row, the place of its first among these.

    Examples
    --------
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
    >>> distinct(np.array([[1.0, 0.0], [2.0, 0.0], [1.0, -0.0]]))
    array([0, 1])
    """
    return np.sort(np.unique(codes(X), return_index=True)[1])


@compiled
def _mixed(value: float, key: int) -> Any:
    """A number of 64 bits that depends on every bit of both.

    Zeros make none, so that minus zero is zero.
    """
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
