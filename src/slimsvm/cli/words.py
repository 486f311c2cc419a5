"""What a model is, as a dictionary for programs and in words for people."""

from __future__ import annotations

import math
from dataclasses import asdict, is_dataclass
from typing import Any

import numpy as np

PARAMETERS = ("C", "nu", "epsilon", "tol", "class_weight")  # those of the five machines that say most


def describe(estimator: Any) -> dict[str, Any]:
    """The facts about a fitted machine.

    Examples
    --------
    >>> from slimsvm import SVC
    >>> from slimsvm.cli.words import describe
    >>> facts = describe(SVC(kernel="linear").fit([[0.0], [1.0]], [3, 5]))
    >>> facts["machine"], facts["kernel"], facts["classes"], facts["n_support_vectors"], facts["status"]["reason"]
    ('SVC', {'name': 'linear'}, [3, 5], 2, 'converged')
    """
    facts: dict[str, Any] = {"machine": type(estimator).__name__}
    facts["kernel"] = {"name": estimator.kernel_.name, **estimator.kernel_.get_params()}
    parameters = estimator.get_params()
    if estimator.status_.reason != "loaded":  # the files of other programs do not hold them
        facts |= {name: parameters[name] for name in PARAMETERS if name in parameters}
    facts["n_features"] = estimator.n_features_in_
    if hasattr(estimator, "classes_"):
        facts["classes"] = estimator.classes_.tolist()
        facts["n_support"] = estimator.n_support_.tolist()
    facts["n_support_vectors"] = len(estimator.support_)
    facts["intercept"] = np.asarray(estimator.intercept_).tolist()
    if hasattr(estimator, "feature_names_in_"):
        facts["feature_names"] = list(estimator.feature_names_in_)
    for name in ("certificate", "status"):
        value = getattr(estimator, f"{name}_", None)
        if is_dataclass(value) and not isinstance(value, type):
            facts[name] = asdict(value)
    return facts


def describe_in_words(facts: dict[str, Any]) -> str:
    """The facts of :func:`describe`, one line each, with the name of the thing in front.

    Examples
    --------
    >>> from slimsvm.cli.words import describe_in_words
    >>> print(describe_in_words({"machine": "SVC", "kernel": {"name": "rbf", "gamma": 0.5}, "C": 1.0, "classes": [0, 1], "bytes": 2048}))
    machine          SVC
    kernel           rbf, gamma 0.5
    C                1
    classes          0, 1
    size             2.0 kB
    """
    lines: list[tuple[str, str]] = [("machine", facts["machine"])]
    kernel = dict(facts["kernel"])
    lines.append(("kernel", ", ".join([kernel.pop("name"), *(f"{name} {short(value)}" for name, value in kernel.items())])))
    lines += [(name.replace("_", " "), short(facts[name])) for name in PARAMETERS if facts.get(name) is not None]
    if "n_features" in facts:
        lines.append(("features", f"{facts['n_features']:,}"))
    if "classes" in facts:
        lines.append(("classes", several(facts["classes"])))
    if "n_support_vectors" in facts:
        by_class = f" ({several(facts['n_support'])} by class)" if "n_support" in facts else ""
        lines.append(("support vectors", f"{facts['n_support_vectors']:,}{by_class}"))
    certificate = facts.get("certificate")
    if certificate and math.isfinite(certificate["violation"]):
        numbers = ", ".join(f"{name} {short(certificate[name])}" for name in ("violation", "gap", "objective"))
        lines.append(("certificate", f"{numbers} (scope: {certificate['scope']}; kernel values: {certificate['precision']})"))
    if "status" in facts:
        lines.append(("status", facts["status"]["sentence"]))
    if facts.get("format"):
        lines.append(("format", facts["format"]))
    if "bytes" in facts:
        lines.append(("size", size_in_words(facts["bytes"])))
    return "\n".join(f"{name:15}  {text}" for name, text in lines)


def short(value: Any) -> str:
    """A number with few digits; anything else as it is."""
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def several(values: list[Any], most: int = 12) -> str:
    """The first values of a list, and how many there are if that is not all.

    Examples
    --------
    >>> from slimsvm.cli.words import several
    >>> several([1, 2, 3]), several(list(range(100)), most=3)
    ('1, 2, 3', '0, 1, 2, ... (100)')
    """
    shown = ", ".join(str(value) for value in values[:most])
    return shown if len(values) <= most else f"{shown}, ... ({len(values)})"


def size_in_words(n_bytes: int) -> str:
    """A size with a unit.

    Examples
    --------
    >>> from slimsvm.cli.words import size_in_words
    >>> size_in_words(900), size_in_words(3_500_000)
    ('900 bytes', '3.3 MB')
    """
    if n_bytes < 1024:
        return f"{n_bytes} bytes"
    return f"{n_bytes / 1024:.1f} kB" if n_bytes < 1024**2 else f"{n_bytes / 1024**2:.1f} MB"


def plain(value: Any) -> Any:
    """A value that strict JSON can hold: NumPy's types become Python's, NaN and infinity become null.

    Examples
    --------
    >>> from slimsvm.cli.words import plain
    >>> plain({"gap": float("inf"), "n": [1, 2.5, "three", None, True]})
    {'gap': None, 'n': [1, 2.5, 'three', None, True]}
    """
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, bool | int | str) else str(value)
