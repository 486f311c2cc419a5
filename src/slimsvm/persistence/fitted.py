"""What a fitted machine consists of: its public attributes, taken out of an estimator and put back into one.

Predictions follow from these attributes alone, so an estimator that gets them back is the same model. Whatever comes from a file is checked
here before it reaches an estimator: compiled code trusts shapes and indices.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from slimsvm.estimators import SVC, SVR, NuSVC, NuSVR, OneClassSVM
from slimsvm.kernels import FromCallable, Kernel, Precomputed
from slimsvm.run import FULL, Certificate, Status

Array = NDArray[Any]

CLASSES: dict[str, type] = {"SVC": SVC, "NuSVC": NuSVC, "SVR": SVR, "NuSVR": NuSVR, "OneClassSVM": OneClassSVM}
CLASSIFIERS = ("SVC", "NuSVC")

REQUIRED = (
    "support_",
    "support_vectors_",
    "dual_coef_",
    "intercept_",
    "n_support_",
    "n_features_in_",
    "shape_fit_",
    "fit_status_",
    "kernel_",
)
OF_CLASSIFIERS = ("classes_", "class_weight_")
OPTIONAL = ("feature_names_in_", "n_iter_", "certificate_", "status_", "history_", "_fingerprint")  # the last: of the rows, for warm_start


def names_of(kind: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The attributes that a fitted machine of this class must have, and those that it may have."""
    required = REQUIRED + (OF_CLASSIFIERS if kind in CLASSIFIERS else ("offset_",) if kind == "OneClassSVM" else ())
    return required, OPTIONAL


def class_of(estimator: Any) -> str:
    """The name of the estimator's class, if it is one that model files know, and fitted.

    Raises
    ------
    ValueError
        For any other class, subclasses of these included: a file could not bring back what a subclass adds.
    NotFittedError
        If ``fit`` was not called.
    """
    kind = type(estimator).__name__
    if CLASSES.get(kind) is not type(estimator):
        raise ValueError(
            f"A model file holds one of slimsvm's {', '.join(CLASSES)}; got an object of class {type(estimator).__module__}.{kind}."
            " Give the fitted slimsvm estimator itself (of a pipeline or a search: that step, or best_estimator_), or use pickle or joblib."
        )
    check_is_fitted(estimator, "support_")
    return kind


def refuse_callable(estimator: Any, form: str) -> None:
    """Raise ValueError if the kernel is a function, which no model file can hold."""
    if isinstance(getattr(estimator, "kernel_", None), FromCallable) or isinstance(estimator.kernel, FromCallable):
        raise ValueError(
            f"A kernel that is a Python function cannot be written to {form}: the file holds numbers, not code."
            " Use pickle or joblib, which refer to the function by its name, or train with a kernel that has a name"
            " ('linear', 'rbf', 'poly', 'sigmoid', 'laplacian', or 'precomputed' with the values of your function)."
        )


def attributes_of(estimator: Any, kind: str) -> dict[str, Any]:
    """The public fitted attributes by name."""
    required, optional = names_of(kind)
    return {name: getattr(estimator, name) for name in (*required, *(name for name in optional if hasattr(estimator, name)))}


def rebuild(kind: str, parameters: dict[str, Any], attributes: dict[str, Any]) -> Any:
    """An estimator of the named class with these parameters and fitted attributes, which are checked.

    Raises
    ------
    ValueError
        If a name is unknown or missing, or if the arrays do not fit together.
    """
    known = set(CLASSES[kind]().get_params())
    _demand(known >= set(parameters), f"{kind} has no parameter {_first(set(parameters) - known)!r}")
    required, optional = names_of(kind)
    _demand(set(attributes) >= set(required), f"the fitted attribute {_first(set(required) - set(attributes))!r} is missing")
    unknown = set(attributes) - {*required, *optional}
    _demand(not unknown, f"a fitted {kind} has no attribute {_first(unknown)!r}")
    check_attributes(kind, attributes)
    estimator = CLASSES[kind](**parameters)
    for name, value in attributes.items():
        setattr(estimator, name, value)
    return estimator


def check_attributes(kind: str, attributes: dict[str, Any]) -> None:
    """Raise ValueError unless types, shapes and indices fit together."""
    a = attributes
    support, vectors, coef, kernel = a["support_"], a["support_vectors_"], a["dual_coef_"], a["kernel_"]
    _demand(isinstance(kernel, Kernel) and not isinstance(kernel, FromCallable), "kernel_ is not a kernel")
    gamma = getattr(kernel, "gamma", 1.0)
    _demand(isinstance(gamma, int | float) and np.isfinite(gamma), f"gamma of kernel_ is {gamma!r}, not a number")
    n_features = a["n_features_in_"]
    _demand(isinstance(n_features, int) and n_features >= 0, f"n_features_in_ is {n_features!r}, not a count")
    _demand(_is_integer(support) and support.ndim == 1, "support_ is not a vector of indices")
    n_sv = support.size
    _demand(_is_real(vectors) and vectors.ndim == 2, "support_vectors_ is not a matrix of numbers")
    if isinstance(kernel, Precomputed):
        inside = not n_sv or (support.min() >= 0 and support.max() < n_features)
        _demand(inside, f"support_ points outside of the {n_features} columns of a precomputed kernel")
    else:
        _demand(vectors.shape == (n_sv, n_features), f"support_vectors_ has shape {vectors.shape}, expected {(n_sv, n_features)}")
    n_classes = 2
    if kind in CLASSIFIERS:
        classes = a["classes_"]
        _demand(
            isinstance(classes, np.ndarray) and classes.ndim == 1 and classes.size >= 2, "classes_ is not a vector of two or more labels"
        )
        n_classes = classes.size
        _demand(bool(np.all(classes[:-1] < classes[1:])), "classes_ is not in ascending order")
        _demand(np.shape(a["class_weight_"]) == (n_classes,), f"class_weight_ has not {n_classes} values, one for each class")
    _demand(_is_real(coef) and coef.shape == (n_classes - 1, n_sv), f"dual_coef_ has not the shape {(n_classes - 1, n_sv)}")
    n_pairs = n_classes * (n_classes - 1) // 2
    _demand(_is_real(a["intercept_"]) and a["intercept_"].shape == (n_pairs,), f"intercept_ has not the shape {(n_pairs,)}")
    counts = a["n_support_"]
    expected = n_classes if kind in CLASSIFIERS else 1
    _demand(_is_integer(counts) and counts.shape == (expected,), f"n_support_ has not {expected} counts")
    _demand(bool(np.all(counts >= 0)) and int(counts.sum()) == n_sv, f"the counts of n_support_ do not add up to {n_sv}")
    names = a.get("feature_names_in_")
    _demand(names is None or np.shape(names) == (n_features,), f"feature_names_in_ has not {n_features} names")


def outside_facts(kind: str, source: str, n_pairs: int) -> dict[str, Any]:
    """The attributes that a foreign model file says nothing about, with values that say so."""
    nan = float("nan")
    return {
        "fit_status_": 0,
        "n_iter_": np.zeros(n_pairs, np.int32) if kind in CLASSIFIERS else 0,
        "certificate_": Certificate(scope=FULL, objective=nan, violation=nan, gap=nan, tol=nan, precision="unknown"),
        "status_": Status("loaded", f"Read from a model file of {source}, which does not say how the training ended."),
        "history_": {},
    }


def _is_integer(values: Any) -> bool:
    return isinstance(values, np.ndarray) and values.dtype.kind in "iu"


def _is_real(values: Any) -> bool:
    return (isinstance(values, np.ndarray) or sp.issparse(values)) and values.dtype.kind == "f"


def _first(names: set[str]) -> str:
    return min(names, default="")


def _demand(condition: bool, complaint: str) -> None:
    if not condition:
        raise ValueError(complaint)
