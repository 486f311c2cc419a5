"""Rows as products want them: around a centre, in one type, and with their squared norms.

Distances keep their digits where the rows lie around zero. Sparse rows stay sparse where that is
quicker; float32 is taken where the error bound of the kernel says that it is safe.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from slimsvm.compiled import compiled
from slimsvm.kernels import Kernel, squared_norms

Array = NDArray[Any]
# the largest error bound of a value, relative to the largest value, at which float32 counts as safe
FLOAT32_ERROR = 5e-5
# a scattered multiply-add costs as much as this many in BLAS (measured: 42e9 against 0.7e9 a second
# a core)
DENSE_WORTH = 60.0


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


def dense_is_better(X: Any) -> bool:
    """Whether BLAS on the densified rows beats the postings.

    At no more than eight times their memory.
    """
    return dense_share_is_better(
        X.nnz, lambda: np.bincount(X.indices, minlength=X.shape[1]), *X.shape
    )


def dense_share_is_better(nnz: int, counts: Any, n: int, d: int) -> bool:
    """The same, from the number of entries: of all, and of each feature."""
    if nnz == 0 or n == 0 or d > 16 * nnz / n:
        return bool(n == 0 or d <= 16)
    share = (counts() if callable(counts) else counts) / n
    return bool(d <= DENSE_WORTH * float(share @ share) + 16)


def _blocks(n: int, d: int) -> Iterator[slice]:
    step = max(1, (1 << 19) // max(1, d))
    for start in range(0, n, step):
        yield slice(start, min(n, start + step))


def squares_around(X: Any, shift: Array | None) -> Array:
    """Squared norms of X - shift."""
    if shift is None:
        return squared_norms(X)
    sq = np.empty(X.shape[0])
    for part in _blocks(*X.shape):
        block = _dense(X[part]).astype(np.float64) - shift
        np.einsum("ij,ij->i", block, block, out=sq[part])
    return sq


def converted(X: Any, shift: Array | None, dtype: Any, columns: Array | None = None) -> Array:
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


def varying(X: Any) -> Array | None:
    """The features that are not constant; None if they are nearly all."""
    if sp.issparse(X):
        return None
    varies = np.flatnonzero(np.asarray(X.min(axis=0) != X.max(axis=0)))
    return varies if 0 < varies.size < 0.97 * X.shape[1] else None


@compiled
def centre(X: Array, shift: Array, out: Array, sq: Array) -> None:
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
