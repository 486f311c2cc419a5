"""Cross-validation as svm-train and grid.py have it: what is said of rows that were held out."""

from __future__ import annotations

import sys
import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


def splits_of(estimator: Any, X: Any, y: Array, n_folds: int) -> list[tuple[Array, Array]]:
    """Rows to train with and rows to ask, for each fold."""
    from sklearn.model_selection import KFold, StratifiedKFold

    if n_folds > y.size:
        text = f"WARNING: # folds ({n_folds}) > # data ({y.size}). Will use # folds = # data"
        print(f"{text} instead (i.e., leave-one-out cross validation)", file=sys.stderr)
        n_folds = y.size
    most = np.unique(y, return_counts=True)[1].max() if hasattr(estimator, "probability") else 0
    kind = StratifiedKFold if n_folds <= most else KFold
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The least populated class")
        return list(kind(n_folds, shuffle=True, random_state=0).split(X, y))


def one_label(estimator: Any, y: Array) -> bool:
    """Whether rows of one class are left, whose label is then the answer, as in LIBSVM."""
    return hasattr(estimator, "probability") and bool(np.all(y == y[0]))


def validated(estimator: Any, X: Any, y: Array, n_folds: int) -> list[str]:
    """The last lines of svm-train -v."""
    splits = splits_of(estimator, X, y, n_folds)
    shared = type(estimator).__name__ == "SVC" and estimator.kernel != "precomputed"
    if shared and estimator.probability is not True:
        (rate,) = rates(estimator, X, y, splits, [{}])
        return [f"Cross Validation Accuracy = {rate:.6g}%"]
    found = held_out(estimator, X, y, splits)
    if hasattr(estimator, "probability") or hasattr(estimator, "fit_predict"):
        return [f"Cross Validation Accuracy = {100 * np.mean(found == y):.6g}%"]
    error, correlation = regression_scores(found, y)
    return [
        f"Cross Validation Mean squared error = {error:.6g}",
        f"Cross Validation Squared correlation coefficient = {correlation:.6g}",
    ]


def held_out(estimator: Any, X: Any, y: Array, splits: list[tuple[Array, Array]]) -> Array:
    """What fits without a row say of it; with -b 1 the most probable class, as in LIBSVM."""
    from sklearn.base import clone

    found = np.empty(y.size)
    for known, asked in splits:
        if one_label(estimator, y[known]):
            found[asked] = y[known][0]
            continue
        gram = estimator.kernel == "precomputed"
        model = clone(estimator).fit(X[known][:, known] if gram else X[known], y[known])
        rows = X[asked][:, known] if gram else X[asked]
        if getattr(estimator, "probability", None) is True:
            found[asked] = model.classes_[model.predict_proba(rows).argmax(axis=1)]
        else:
            found[asked] = model.predict(rows)
    return found


def rates(
    estimator: Any,
    X: Any,
    y: Array,
    splits: list[tuple[Array, Array]],
    points: list[dict[str, float]],
) -> list[float]:
    """The share of rows that are right when held out, in percent, for each point of a search."""
    from slimsvm import search

    right = np.zeros(len(points))
    plain = [(known, asked) for known, asked in splits if one_label(estimator, y[known])]
    for known, asked in plain:
        right += np.sum(y[asked] == y[known][0])
    splits = [(known, asked) for known, asked in splits if not one_label(estimator, y[known])]
    if splits:
        axes = [{key: [v] for key, v in {"C": estimator.C, **point}.items()} for point in points]
        found = search.GridSearchCV(estimator, axes, cv=splits, refit=False, n_jobs=-1).fit(X, y)
        for k, (_, asked) in enumerate(splits):
            right += np.rint(found.cv_results_[f"split{k}_test_score"] * len(asked))  # whole rows
    return [float(100.0 * r / y.size) for r in right]


def regression_scores(found: Array, y: Array) -> tuple[float, float]:
    """Mean squared error, and the squared correlation coefficient as LIBSVM has it."""
    error = float(np.mean((found - y) ** 2))
    spread = float(np.var(found) * np.var(y))
    covariance = float(np.mean(found * y) - found.mean() * y.mean())
    return error, covariance**2 / spread if spread > 0 else float("nan")
