"""Any model as the support vectors of an exact one: what model files of other programs hold."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from slimsvm.declarations import attributes_of
from slimsvm.expansion import dense
from slimsvm.kernels import Linear

Array = NDArray[Any]


def in_support_layout(model: Any, form: str) -> tuple[str, dict[str, Any]]:
    """Class and attributes of the exact model that is the same function.

    ``form`` is what is to be written, for the message.
    """
    name = type(model).__name__
    if "transformer_" in vars(model):
        raise ValueError(
            f"{form} has no place for what this {name} does with rows first "
            f"({model.transformer_!r}). Use slimsvm.save."
        )
    if hasattr(model, "estimators_"):
        raise ValueError(
            f"{form} holds one model, a {name} one for each pair of classes. Use slimsvm.save, or "
            "write its models (estimators_) one by one; what refit_intercept added to their "
            "decision values is in shifts_."
        )
    if hasattr(model, "oracle_"):
        raise ValueError(
            f"{form} holds models that compare numbers with zero; a {name} does more with its "
            "scores. Use slimsvm.save."
        )
    if hasattr(model, "sparse_"):  # of a stream with a budget
        return in_support_layout(model.sparse_, form)
    if hasattr(model, "metric_") or hasattr(model, "widths_"):
        raise ValueError(
            f"{form} has no place for a metric or for widths of basis vectors, which this {name} "
            "has. Use slimsvm.save, or fit with basis='pursuit'."
        )
    if hasattr(model, "basis_coef_"):
        own = model.basis_, model.basis_coef_[:, 0], model.kernel_
        return model._same_as, as_support_vectors(model, form, *own)
    if hasattr(model, "dual_coef_"):
        attributes = {**attributes_of(model), "dual_coef_": dense(model.dual_coef_)}
        return model._same_as or name, attributes
    weights = np.atleast_2d(dense(model.coef_))
    return model._same_as, as_support_vectors(model, form, weights, np.ones(1), Linear())


def as_support_vectors(
    model: Any, form: str, vectors: Any, coef: Array, kernel: Any
) -> dict[str, Any]:
    """A kernel expansion with one output, whoever found it, as support vectors.

    They are sorted by the sign of their coefficients in place of their class. Other programs have
    no place for a basis that classes share.
    """
    a, order, counts = attributes_of(model), np.arange(coef.size), [coef.size]
    if "classes_" in a:
        if len(a["classes_"]) > 2:
            raise ValueError(
                f"{form} holds one model for each pair of classes; a {type(model).__name__} of "
                f"{len(a['classes_'])} classes is made differently, its classes share all vectors. "
                "Use slimsvm.save, or write one model for each class against the rest "
                "(sklearn.multiclass.OneVsRestClassifier)."
            )
        order = np.argsort(coef > 0, kind="stable")
        counts = [int(np.sum(coef <= 0)), int(np.sum(coef > 0))]
    common = ("classes_", "n_features_in_", "intercept_")
    same: dict[str, Any] = {name: a[name] for name in common if name in a}
    return {
        **same,
        "kernel_": kernel,
        "dual_coef_": coef[None, order],
        "n_support_": np.array(counts, np.int32),
        "support_": np.full(coef.size, -1, np.int32),
        "support_vectors_": vectors[order],
        "shape_fit_": (coef.size, a["n_features_in_"]),
    }
