"""Estimators of scikit-learn that a model file may hold: those whose state is arrays and numbers.

They are taken apart into parameters and attributes, and put together again: no code comes from a
file, and only the classes listed here are made.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np

from slimsvm.declarations import demand

# class -> the module that has it
PLAIN = {
    "Pipeline": "sklearn.pipeline",
    "StandardScaler": "sklearn.preprocessing",
    "MinMaxScaler": "sklearn.preprocessing",
    "MaxAbsScaler": "sklearn.preprocessing",
    "RobustScaler": "sklearn.preprocessing",
    "Normalizer": "sklearn.preprocessing",
    "Binarizer": "sklearn.preprocessing",
    "PowerTransformer": "sklearn.preprocessing",
    "QuantileTransformer": "sklearn.preprocessing",
    "PolynomialFeatures": "sklearn.preprocessing",
    "SimpleImputer": "sklearn.impute",
    "MissingIndicator": "sklearn.impute",
    "Nystroem": "sklearn.kernel_approximation",
    "RBFSampler": "sklearn.kernel_approximation",
    "PCA": "sklearn.decomposition",
    "TruncatedSVD": "sklearn.decomposition",
    "VarianceThreshold": "sklearn.feature_selection",
    "CalibratedClassifierCV": "sklearn.calibration",
    "_CalibratedClassifier": "sklearn.calibration",
    "_SigmoidCalibration": "sklearn.calibration",
    "_TemperatureScaling": "sklearn.calibration",
    "IsotonicRegression": "sklearn.isotonic",
}
DTYPES = ("_fit_dtype", "_fill_dtype")  # of an imputer
NUMBERS = ("<f4", "<f8", ">f4", ">f8", "<i4", "<i8", ">i4", ">i8")
MARK = "sklearn:"  # before their names in a file


def is_plain(value: Any) -> bool:
    """Whether it is one of these, and no subclass.

    Examples
    --------
    >>> from sklearn.preprocessing import StandardScaler
    >>> from slimsvm.persistence.plain import is_plain
    >>> is_plain(StandardScaler()), is_plain(StandardScaler)
    (True, False)
    """
    kind = type(value)
    where = PLAIN.get(kind.__name__)
    return where is not None and getattr(import_module(where), kind.__name__) is kind


def plain_class(name: Any) -> Any:
    """The class that is marked so in a file; ValueError if there is none."""
    own = name.removeprefix(MARK) if isinstance(name, str) else ""
    demand(own in PLAIN, f"it holds an estimator of the unknown class {name!r}")
    return getattr(import_module(PLAIN[own]), own)


def taken_apart(value: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Parameters and all other attributes of one of these."""
    parameters = value.get_params(deep=False) if hasattr(value, "get_params") else {}
    away = {*parameters, "f_"}  # the function of an IsotonicRegression follows from its thresholds
    held = {k: v for k, v in vars(value).items() if k not in away}
    return parameters, held | {k: v.str for k, v in held.items() if k in DTYPES}


def put_together(name: str, parameters: dict[str, Any], attributes: dict[str, Any]) -> Any:
    """The way back."""
    kind = plain_class(name)
    for attribute in attributes:
        right = attribute.isidentifier() and not attribute.startswith("__")
        demand(right, f"{name} has no attribute {attribute!r}")
    dtypes = {k: v for k, v in attributes.items() if k in DTYPES}
    for own in dtypes.values():
        demand(own in NUMBERS, f"{name} has values of the unknown type {own!r}")
    attributes = attributes | {k: np.dtype(v) for k, v in dtypes.items()}
    if not hasattr(kind, "get_params"):
        made = kind.__new__(kind)
    else:
        unknown = set(parameters) - set(kind._get_param_names())
        demand(not unknown, f"{name} has no parameter {min(unknown, default='')!r}")
        made = kind(**parameters)
    vars(made).update(attributes)
    if hasattr(made, "_build_f"):
        made._build_f(made.X_thresholds_, made.y_thresholds_)
    return made
