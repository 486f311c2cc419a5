"""Predictions for Dask collections: lazy, with the chunks of the rows."""

from __future__ import annotations

from typing import Any

import numpy as np


def said_of(rows: Any, model: Any, name: str) -> Any:
    """What a method of the model says of a block; nothing, of no rows."""
    if rows.shape[0]:
        return np.asarray(getattr(model, name)(rows))
    return _like(model, name)[:0]


def _like(model: Any, name: str) -> Any:
    """What the method says of one row: for its type and shape."""
    row = np.zeros((1, model.n_features_in_))
    known = getattr(model, "feature_names_in_", None)
    if known is not None:
        import pandas

        row = pandas.DataFrame(row, columns=known)
    return np.asarray(getattr(model, name)(row))


def said_of_partition(rows: Any, model: Any, name: str) -> Any:
    """The same of a partition of a DataFrame, with its index."""
    import pandas

    said = said_of(rows, model, name)
    made = pandas.Series if said.ndim == 1 else pandas.DataFrame
    return made(said, index=rows.index)


def lazily(model: Any, name: str, X: Any) -> Any:
    """``model.name(X)`` of a Dask array, DataFrame or delayed blocks; nothing is computed."""
    from dask.delayed import Delayed

    if isinstance(X, list | tuple | Delayed):
        from dask import delayed

        said = delayed(said_of, pure=False)
        return (
            [said(of, model, name) for of in X]
            if isinstance(X, list | tuple)
            else said(X, model, name)
        )
    if X.ndim != 2:
        raise ValueError(
            f"X has {X.ndim} dimension(s); expected rows and columns. For one row, "
            "X.reshape(1, -1)."
        )
    from slimsvm.sources.dask_rows import names_of

    refuse_features(model, int(X.shape[1]), names_of(X))
    like = _like(model, name)
    if hasattr(X, "columns"):
        import pandas

        made = pandas.Series if like.ndim == 1 else pandas.DataFrame
        return X.map_partitions(said_of_partition, model, name, meta=made(like[:0]))
    if len(X.chunks[1]) > 1:
        X = X.rechunk({1: -1})
    meta: Any = {"dtype": like.dtype, "meta": like[:0]}
    if like.ndim == 1:
        return X.map_blocks(said_of, model, name, drop_axis=1, **meta)
    return X.map_blocks(said_of, model, name, chunks=(X.chunks[0], (like.shape[1],)), **meta)


def refuse_features(model: Any, n_features: int, names: Any = None) -> None:
    """Raise ValueError unless the rows have the features of the model."""
    if n_features != model.n_features_in_:
        raise ValueError(
            f"X has {n_features} features, but {type(model).__name__} is expecting "
            f"{model.n_features_in_} features as input."
        )
    known = getattr(model, "feature_names_in_", None)
    if known is not None and names is not None and list(known) != list(names):
        raise ValueError(
            "The feature names should match those that were passed during fit: got "
            f"{list(names)[:8]}, expected {list(known)[:8]}, in this order. Choose them by name: "
            "X[list(model.feature_names_in_)], or open_rows(..., features=...)."
        )
