"""Inputs whose examples have several rows: from a list of arrays to rows and lengths."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

Array = NDArray[Any]


def stacked(X: Any, name: str) -> tuple[Any, Array | None]:
    """All rows, and how many each example has if X is a list of arrays or CSR matrices, else None.

    Examples
    --------
    >>> import numpy as np
    >>> from slimsvm.oracles.sequences import stacked
    >>> rows, lengths = stacked([np.zeros((2, 3)), np.ones((4, 3))], "Chain")
    >>> rows.shape, lengths.tolist()
    ((6, 3), [2, 4])
    """
    # of one length, of different lengths
    several = isinstance(X, np.ndarray) and (X.ndim == 3 or (X.ndim == 1 and X.dtype == object))
    if several or isinstance(X, Iterator):
        X = list(X)
    first = X[0] if isinstance(X, list | tuple) and X else None
    if isinstance(first, list | tuple) and first and isinstance(first[0], Mapping):
        raise ValueError(
            f"{name}: the rows are dictionaries of features. Put "
            "slimsvm.sequences.SequenceTransformer(DictVectorizer()) before the estimator, in "
            "a Pipeline."
        )
    if not isinstance(X, list | tuple) or not len(X) or not _has_rows(X[0]):
        return X, None
    blocks = [_block(block, i, name) for i, block in enumerate(X)]
    width = blocks[0].shape[1]
    for i, block in enumerate(blocks):
        if block.shape[0] and block.shape[1] != width:
            raise ValueError(
                f"{name}: example {i} has {block.shape[1]} features, but example 0 has {width}."
            )
        if not block.shape[0]:
            raise ValueError(
                f"{name}: example {i} has no parts; every example needs at least one row."
            )
    lengths = np.array([block.shape[0] for block in blocks], np.int64)
    if any(sp.issparse(block) for block in blocks):
        return sp.vstack(blocks, format="csr"), lengths
    rows = np.concatenate(blocks)
    return (_framed(rows, X, name) if hasattr(X[0], "iloc") else rows), lengths


def of_positive_weight(
    X: Any, Y: Any, weight: Array, lengths: Array | None, name: str
) -> tuple[Any, Any, Array, Array | None, Array]:
    """The examples that count: rows, outputs, weights and lengths; and which rows these are.

    Examples
    --------
    >>> import numpy as np
    >>> from slimsvm.oracles.sequences import of_positive_weight
    >>> given = np.zeros((3, 1)), [[0, 1], [1]], np.array([0.0, 2.0]), np.array([2, 1])
    >>> of_positive_weight(*given, "Chain")[1:]
    ([[1]], array([2.]), array([1]), array([2]))
    """
    used = np.flatnonzero(weight > 0)
    Y = np.asarray(Y) if lengths is None else list(Y)
    if len(Y) != weight.size:
        raise ValueError(f"{name}: Y has {len(Y)} examples, but X has {weight.size}.")
    if lengths is None:
        return X[used], Y[used], weight[used], None, used
    kept = np.flatnonzero(np.repeat(weight > 0, lengths))
    return X[kept], [Y[i] for i in used], weight[used], lengths[used], kept


def _has_rows(x: Any) -> bool:
    """Whether x is an example of several parts."""
    try:
        return bool(sp.issparse(x) or np.ndim(x) == 2)
    except ValueError:  # rows of different lengths
        return True


def _block(x: Any, i: int, name: str) -> Any:
    """The rows of example i, as numbers that are finite."""
    block = x.tocsr() if sp.issparse(x) else _array(x, i, name)
    values: Any = block.data if sp.issparse(x) else block
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        raise ValueError(f"{name}: example {i} contains NaN or infinity.")
    return block


def _array(x: Any, i: int, name: str) -> Array:
    shape = "it must be an array of shape (length, n_features)"
    try:
        block = np.asarray(x)
    except ValueError as error:
        raise ValueError(
            f"{name}: the rows of example {i} have different lengths; {shape}."
        ) from error
    if block.ndim != 2:
        plural = "s" * (block.ndim != 1)
        raise ValueError(f"{name}: example {i} has {block.ndim} dimension{plural}; {shape}.")
    if block.dtype.kind not in "OUS":
        return block
    try:
        return block.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"{name}: example {i} has entries that are not numbers ({error}); {shape}."
        ) from error


def _framed(rows: Array, X: Any, name: str) -> Any:
    """The rows as a frame of pandas like those they come from: names of columns are checked."""
    columns = X[0].columns
    for i, block in enumerate(X):
        if hasattr(block, "iloc") and not columns.equals(block.columns):
            raise ValueError(
                f"{name}: example {i} has the columns {list(block.columns)}, but example 0 has "
                f"{list(columns)}."
            )
    return type(X[0])(rows, columns=columns)
