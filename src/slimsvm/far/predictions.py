"""Predictions and scores of rows that are elsewhere."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from slimsvm.far.coding import rows_of
from slimsvm.far.on_dask import lazily, refuse_features
from slimsvm.rows import Block
from slimsvm.solvers.sparse_on_rows import drawn_rows

Array = NDArray[Any]


def outputs_of(block: Block, model: Any, name: str, transformed: bool) -> Array:
    """A task: what a method of the model says of the rows of a block."""
    return np.asarray(getattr(plain(model, transformed, block.X.shape[1]), name)(block.X))


def plain(model: Any, transformed: bool, width: int) -> Any:
    """The model for rows whose names were compared: without names, and without a transformer.

    The latter where the rows, of so many features then, are transformed already.
    """
    bare = copy.copy(model)
    bare.__dict__.pop("feature_names_in_", None)
    if transformed:
        bare.__dict__.pop("transformer_", None)
        bare.n_features_in_ = width
    return bare


def over_rows(model: Any, name: str, X: Any) -> Any:
    """``model.name(X)`` for rows that are not in memory.

    Of a Dask collection lazily, with its chunks; of opened rows block by block, as an array.
    """
    check_is_fitted(model)
    if not hasattr(type(X), "relabelled"):
        return lazily(model, name, X)
    refuse_rows(model, X)
    return np.concatenate(X.map(outputs_of, model, name, X.transformer is not None))


def refuse_rows(model: Any, rows: Any) -> None:
    """Raise ValueError unless these are rows for the model.

    Rows that were transformed, for a model that transforms none, are those that come out.
    """
    if rows.transformer is not None and "transformer_" not in vars(model):
        refuse_features(model, rows.n_features)
    else:
        refuse_features(model, rows.n_features_in, rows.names)


def score_of(block: Block, model: Any, labels: bool, transformed: bool, mean: Any) -> Any:
    """A task: weighted sums that make up accuracy, or R^2."""
    found, y = plain(model, transformed, block.X.shape[1]).predict(block.X), block.y
    weight = np.ones(block.n) if block.weight is None else block.weight
    if labels:
        words = np.asarray(y).dtype.kind in "OSU"
        if words != (model.classes_.dtype.kind in "OSU"):
            own, given = ("numbers", "text") if words else ("text", "numbers")
            raise ValueError(
                f"The labels of the rows are {given}, but the classes of the model are {own} "
                f"({model.classes_.tolist()[:4]}): none would be right."
            )
        return float(weight @ (found == y)), float(weight.sum())
    off = np.asarray(y, np.float64) - mean
    errors = np.square(np.asarray(y, np.float64) - found)
    return (
        float(weight @ errors),
        float(weight @ np.square(off)),
        float(weight @ off),
        float(weight.sum()),
    )


def score_on_rows(model: Any, X: Any, y: Any, sample_weight: Any) -> float:
    """Accuracy or R^2 by counts and sums of blocks."""
    check_is_fitted(model)
    rows = rows_of(X, y, sample_weight)
    if not rows.labelled:
        raise ValueError("A score needs targets: pass y, or name the target in open_rows.")
    refuse_rows(model, rows)
    labels, transformed = hasattr(model, "classes_"), rows.transformer is not None
    mean = 0.0 if labels else float(np.mean(rows.take(drawn_rows(rows.n, 1000, 0)).y))
    sums = rows.sum(score_of, model, labels, transformed, mean)
    if labels:
        return float(sums[0] / sums[1])
    wrong, squares, off, total = sums
    spread = squares - off**2 / total
    return 1.0 - float(wrong / spread) if spread > 0 else 0.0
