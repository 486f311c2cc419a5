"""Fitted estimators taken apart into their parameters and attributes, and put together again.

Predictions follow from the fitted attributes alone, so an estimator that gets them back is the same
model. Which attributes there are, and which values they may have, each class declares itself
(:mod:`slimsvm.declarations`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from slimsvm import estimators
from slimsvm.declarations import check_attributes, demand
from slimsvm.ending import FULL, Certificate, Status
from slimsvm.kernels import FromCallable
from slimsvm.persistence.plain import MARK, is_plain, plain_class

OWN = "a slimsvm model file"


def class_named(name: Any) -> Any:
    """The estimator's class; ValueError if there is none of this name."""
    if isinstance(name, str) and name.startswith(MARK):
        return plain_class(name)
    if not isinstance(name, str) or name not in estimators.REGISTRY:
        raise ValueError(
            f"it holds an estimator of the unknown class {name!r}, expected one of "
            f"{', '.join(estimators.REGISTRY)}"
        )
    return getattr(estimators, name)


def is_known(estimator: Any) -> bool:
    """Whether a model file can hold it: subclasses add what a file could not bring back."""
    kind = getattr(estimator, "_saved_as", type(estimator))
    return kind.__name__ in estimators.REGISTRY and class_named(kind.__name__) is kind


def check_savable(estimator: Any, form: str) -> None:
    """Raise unless it is a fitted estimator that model files know, with a kernel that has a name.

    Raises
    ------
    ValueError
        For any other class, and for kernels that are functions, which no file can hold.
    NotFittedError
        If ``fit`` was not called.
    """
    if is_plain(estimator) and form == OWN:
        check_is_fitted(estimator)
        return
    if not is_known(estimator):
        kind = type(estimator)
        raise ValueError(
            f"A model file holds one of slimsvm's {', '.join(estimators.REGISTRY)}, or as .slim a "
            "Pipeline or CalibratedClassifierCV around one; got an object of class "
            f"{kind.__module__}.{kind.__name__}. Give the fitted slimsvm estimator itself (of a "
            "search best_estimator_, else of a pipeline that step), or use pickle or joblib."
        )
    check_is_fitted(estimator, estimator._learned)
    for inner in getattr(estimator, "estimators_", ()):
        check_savable(inner, form)
    kernels = (getattr(estimator, "kernel_", None), getattr(estimator, "kernel", None))
    if any(isinstance(kernel, FromCallable) for kernel in kernels):
        raise ValueError(
            f"A kernel that is a Python function cannot be written to {form}: the file holds "
            "numbers, not code. Use pickle or joblib, which refer to the function by its name, or "
            "train with a kernel that has a name ('linear', 'rbf', 'poly', 'sigmoid', 'laplacian', "
            "or 'precomputed' with the values of your function)."
        )


def rebuild(name: str, parameters: dict[str, Any], attributes: dict[str, Any]) -> Any:
    """An estimator of the named class with these parameters and fitted attributes, all checked."""
    kind = class_named(name)
    unknown = set(parameters) - set(kind._get_param_names())
    demand(not unknown, f"{name} has no parameter {min(unknown, default='')!r}")
    check_attributes(kind, attributes)
    estimator = kind(**parameters)
    estimator._validate_params()  # as fit would: prediction relies on them, too
    for attribute, value in attributes.items():
        setattr(estimator, attribute, value)
    if hasattr(estimator, "_make_ready"):
        estimator._make_ready()
    return estimator


def outside_facts(n_problems: int | None, source: str) -> dict[str, Any]:
    """What a file of another program says nothing about, with values that say so."""
    unknown = float("nan")
    words = f"Read from a model file of {source}, which does not say how the training ended."
    return {
        "fit_status_": 0,
        "n_iter_": 0 if n_problems is None else np.zeros(n_problems, np.int32),
        "certificate_": Certificate(FULL, unknown, unknown, unknown, unknown, "unknown"),
        "status_": Status("loaded", words),
        "history_": {},
    }
