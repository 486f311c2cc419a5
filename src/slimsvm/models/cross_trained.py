"""A model for each pair of classes, whoever trained it on which rows."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted, validate_data

from slimsvm.cross_training.models import decisions
from slimsvm.declarations import Attribute, attribute, demand
from slimsvm.models.predictions import ClassPredictions
from slimsvm.multiclass import OneVsOne

Array = NDArray[Any]


class CrossTrained(ClassPredictions):
    """Final models of all pairs, and what became of the rows.

    Attributes
    ----------
    pairs_
        The two labels of each pair. With two classes there is one pair.
    estimators_
        The final model of each pair.
    shifts_
        What ``refit_intercept`` adds to their decision values, else zero.
    kept_indices_
        Rows that the final model of each pair was trained on.
    n_kept_
        How many rows of each pair were kept.
    n_noise_
        How many were discarded as noise.
    n_redundant_
        How many were discarded as redundant.
    balance_before_
        Share of the two classes in the weight of all rows of the pair.
    balance_after_
        The same of the kept ones.
    pair_indices_
        All rows of each pair.
    margin_means_
        Mean of y f(x) over the models that judge the row, for each of these rows.
    margin_variances_
        Variance of the same.
    status_
        How the fit ended: its ``reason`` is 'converged' only if all models, those of the subsets
        included, reached their tolerance, and 'trained' if the estimator does not say;
        ``str(status_)`` is a sentence.
    certificate_
        Of the final models: sums of their objectives and gaps, the largest violation. Its
        ``scope`` is 'subspace' unless no row was discarded: the problem is that of the kept rows.
        None if the estimator has none.
    n_features_in_
        Number of features at fit.
    feature_names_in_
        Their names, if X had names.
    """

    scheme: ClassVar[Any] = OneVsOne
    fitted: ClassVar[tuple[Attribute, ...]] = (
        attribute("pairs_", "labels", ("n_pairs", "2")),
        attribute("estimators_", "list"),
        attribute("shifts_", "float", ("n_pairs",)),
        attribute("kept_indices_", "lists"),
        attribute("n_kept_", "int", ("n_pairs",)),
        attribute("n_noise_", "int", ("n_pairs",)),
        attribute("n_redundant_", "int", ("n_pairs",)),
        attribute("balance_before_", "float", ("n_pairs", "2")),
        attribute("balance_after_", "float", ("n_pairs", "2")),
        attribute("pair_indices_", "lists", stored=False, optional=True),
        attribute("margin_means_", "lists", stored=False, optional=True),
        attribute("margin_variances_", "lists", stored=False, optional=True),
        attribute("status_", "status", optional=True),
        attribute("certificate_", "certificate?", optional=True),
        attribute("n_features_in_", "count"),
        attribute("feature_names_in_", "labels", ("n_features_in",), optional=True),
    )
    _learned: ClassVar[str] = "estimators_"
    estimators_: list[Any]
    shifts_: Array
    kept_indices_: list[Array]

    def _outputs(self, X: Any) -> Array:
        """Decision values of the pairs, shape (n, pairs); with the signs that OneVsOne expects."""
        check_is_fitted(self)
        tags = get_tags(self).input_tags
        X = validate_data(self, X, reset=False, **accepted(tags))
        out = np.empty((X.shape[0], len(self.estimators_)))
        for k, (model, shift) in enumerate(zip(self.estimators_, self.shifts_, strict=True)):
            seen = X[:, self.kept_indices_[k]] if tags.pairwise else X
            out[:, k] = decisions(model, seen) + shift
        # positive for the second class of a pair; there, of more than two classes, for the first
        return out if len(self.classes_) == 2 else -out

    @classmethod
    def _sizes(cls, a: dict[str, Any]) -> dict[str, int]:
        n = len(a["classes_"])
        sizes = {"n_features": int(a["n_features_in_"]), "n_classes": n}
        return {**sizes, "n_pairs": n * (n - 1) // 2, "2": 2}

    @classmethod
    def _check_fitted(cls, a: dict[str, Any]) -> None:
        """One model for each pair of classes.

        What is inside them was checked when they were made.
        """
        classes, n_features = a["classes_"], a["n_features_in_"]
        pairs = classes[np.sort(OneVsOne(classes.size).pairs, axis=1)]
        demand(np.array_equal(a["pairs_"], pairs), "pairs_ are not the pairs of classes_")
        for name in ("estimators_", "kept_indices_"):
            demand(len(a[name]) == len(pairs), f"{name} is not a list of {len(pairs)}, one a pair")
        models = zip(a["estimators_"], a["kept_indices_"], pairs, strict=True)
        for k, (model, rows, own) in enumerate(models):
            name, kept = f"estimators_[{k}]", f"kept_indices_[{k}]"
            demand(hasattr(model, "classes_"), f"{name} is not a fitted classifier")
            right = np.array_equal(model.classes_, own)
            demand(right, f"{name} is not for the classes {own.tolist()}")
            right = isinstance(rows, np.ndarray) and rows.dtype.kind in "iu" and rows.ndim == 1
            demand(right and rows.size > 0, f"{kept} is not a vector of indices")
            expected = n_features
            if get_tags(model).input_tags.pairwise:  # its columns are the rows it was trained on
                inside = rows.min() >= 0 and rows.max() < n_features
                demand(inside, f"{kept} points outside of the {n_features} kernel values")
                expected = rows.size
            has = model.n_features_in_
            demand(has == expected, f"{name} has {has} features, expected {expected}")


def accepted(tags: Any) -> dict[str, Any]:
    """How rows are validated: what the estimator takes is taken."""
    finite = "allow-nan" if tags.allow_nan else True
    return {"accept_sparse": "csr" if tags.sparse else False, "ensure_all_finite": finite}
