"""What a model is, as a dictionary for programs and in words for people."""

from __future__ import annotations

import math
from dataclasses import asdict, is_dataclass
from typing import Any

import numpy as np

from slimsvm.notebook import model_nbytes, size_in_words
from slimsvm.run import DISTANCE

PARAMETERS = ("C", "nu", "epsilon", "loss", "tol", "class_weight")  # those that say most


def describe(estimator: Any) -> dict[str, Any]:
    """The facts about a fitted model.

    Examples
    --------
    >>> from slimsvm import SVC
    >>> from slimsvm.report.words import describe
    >>> facts = describe(SVC(kernel="linear").fit([[0.0], [1.0]], [3, 5]))
    >>> facts["estimator"], facts["kernel"], facts["classes"], facts["n_support_vectors"]
    ('SVC', {'name': 'linear'}, [3, 5], 2)
    >>> facts["status"]["reason"]
    'converged'
    """
    facts: dict[str, Any] = {"estimator": type(estimator).__name__}
    # several: the pairs of a CrossTraining
    whole, models = estimator, getattr(estimator, "estimators_", [estimator])
    # they differ in little else
    estimator = next((model for model in models if not model.status_.converged), models[0])
    kernel = getattr(estimator, "kernel_", None)
    facts["kernel"] = (
        {"name": "linear"} if kernel is None else {"name": kernel.name, **kernel.get_params()}
    )
    parameters = estimator.get_params()
    if estimator.status_.reason != "loaded":  # the files of other programs do not hold them
        facts |= {name: parameters[name] for name in PARAMETERS if name in parameters}
    if facts.get("loss") == "auto":  # the one that was minimised
        facts["loss"] = getattr(whole, "loss_", "auto")
    facts["n_features"] = whole.n_features_in_
    if hasattr(whole, "classes_"):
        facts["classes"] = whole.classes_.tolist()
        if hasattr(whole, "n_support_"):
            facts["n_support"] = whole.n_support_.tolist()
    if hasattr(estimator, "support_"):
        facts["n_support_vectors"] = sum(len(model.support_) for model in models)
    if whole is not estimator:
        facts["n_models"] = len(models)
        facts |= {
            name: int(getattr(whole, f"{name}_").sum())
            for name in ("n_kept", "n_noise", "n_redundant")
        }
    if hasattr(estimator, "basis_coef_"):
        facts["n_basis"] = estimator.n_basis_
    if hasattr(estimator, "path_"):
        names = ("n_basis", "objective", "training_score", "validation_score")
        facts["path"] = [
            {name: getattr(point, name) for name in names} for point in estimator.path_
        ]
    facts["model_bytes"] = sum(model_nbytes(model) for model in models)
    facts["intercept"] = np.concatenate([model.intercept_ for model in models]).tolist()
    if hasattr(whole, "feature_names_in_"):
        facts["feature_names"] = list(whole.feature_names_in_)
    for name in ("certificate", "status"):
        value = getattr(whole, f"{name}_", None) or getattr(estimator, f"{name}_", None)
        if is_dataclass(value) and not isinstance(value, type):
            facts[name] = asdict(value)
    return facts


def describe_in_words(facts: dict[str, Any]) -> str:
    """The facts of :func:`describe`, one line each, with the name of the thing in front.

    Examples
    --------
    >>> from slimsvm.report.words import describe_in_words
    >>> facts = {"estimator": "SVC", "kernel": {"name": "rbf", "gamma": 0.5}, "C": 1.0}
    >>> print(describe_in_words({**facts, "classes": [0, 1], "bytes": 2048}))
    model            SVC
    kernel           rbf, gamma 0.5
    C                1
    classes          0, 1
    size             2.0 kB
    """
    return "\n".join(f"{name:15}  {text}" for name, text in lines_of(facts))


def lines_of(facts: dict[str, Any]) -> list[tuple[str, str]]:
    """The facts of :func:`describe` as pairs of a name and a text.

    An empty name continues the line before.

    Examples
    --------
    >>> from slimsvm.report.words import lines_of
    >>> lines_of({"estimator": "SVC", "kernel": {"name": "linear"}, "n_features": 2048})
    [('model', 'SVC'), ('kernel', 'linear'), ('features', '2,048')]
    """
    lines: list[tuple[str, str]] = [("model", facts["estimator"])]
    kernel = dict(facts["kernel"])
    lines.append(
        (
            "kernel",
            ", ".join(
                [kernel.pop("name"), *(f"{name} {short(value)}" for name, value in kernel.items())]
            ),
        )
    )
    lines += [
        (name.replace("_", " "), short(facts[name]))
        for name in PARAMETERS
        if facts.get(name) is not None
    ]
    if "n_features" in facts:
        lines.append(("features", f"{facts['n_features']:,}"))
    if "classes" in facts:
        lines.append(("classes", several(facts["classes"])))
    if "n_support_vectors" in facts:
        by_class = f" ({several(facts['n_support'])} by class)" if "n_support" in facts else ""
        lines.append(("support vectors", f"{facts['n_support_vectors']:,}{by_class}"))
    if "n_models" in facts:
        lines.append(("binary models", f"{facts['n_models']:,}"))
        lines.append(
            (
                "rows",
                "{n_kept:,} kept, {n_noise:,} noise, {n_redundant:,} redundant".format(**facts),
            )
        )
    if "n_basis" in facts:
        lines.append(("basis vectors", f"{facts['n_basis']:,}"))
        lines += path_in_words(facts.get("path", []))
    certificate = facts.get("certificate")
    if certificate and math.isfinite(certificate["violation"]):
        numbers = ", ".join(
            f"{name} {short(certificate[name])}" for name in ("violation", "gap", "objective")
        )
        if certificate["scope"] == DISTANCE:
            numbers = (
                f"distance to the model it was made from {short(certificate['violation'])} of its "
                "norm"
            )
        lines.append(
            (
                "certificate",
                f"{numbers} (scope: {certificate['scope']}; kernel values: "
                f"{certificate['precision']})",
            )
        )
    if "status" in facts:
        lines.append(("status", facts["status"]["sentence"]))
    if facts.get("format"):
        lines.append(("format", facts["format"]))
    if facts.get("saved"):
        lines.append(("saved", f"{facts['saved']}, numpy {facts['versions']['numpy']}"))
    lines += [(str(name), short(value)) for name, value in facts.get("metadata", {}).items()]
    if "bytes" in facts:
        lines.append(("size", size_in_words(facts["bytes"])))
    if "model_bytes" in facts:
        lines.append(("in memory", size_in_words(facts["model_bytes"])))
    if "microseconds_per_row" in facts:
        batch = f"measured, {facts['rows_measured']:,} rows at once"
        lines.append(
            ("prediction", f"{facts['microseconds_per_row']:.3g} microseconds a row ({batch})")
        )
    if "microseconds_one_row" in facts:
        alone = f"{facts['microseconds_one_row']:.3g} microseconds for one row alone"
        lines.append(("", f"{alone} (measured, a call each)"))
    if "c_bytes" in facts:
        count = f"{facts['multiplications_per_row']:,} multiplications a row"
        sizes = (f"{size_in_words(n)} ({form})" for form, n in facts["c_bytes"].items())
        lines.append(("as C code", f"{', '.join(sizes)}, {count}"))
    return lines


def summary(facts: dict[str, Any]) -> str:
    """The model in one sentence.

    Examples
    --------
    >>> from slimsvm.report.words import summary
    >>> summary({"estimator": "SparseSVC", "kernel": {"name": "rbf"}, "n_basis": 50,
    ...     "classes": [0, 1], "n_features": 4})
    'SparseSVC: 50 basis vectors, rbf kernel, 4 features, 2 classes.'
    """
    said = []
    for name, word in (("n_basis", "basis vector"), ("n_support_vectors", "support vector")):
        if name in facts:
            said.append(_counted(facts[name], word))
            break
    said.append(f"{facts['kernel']['name']} kernel")
    said.append(_counted(facts["n_features"], "feature"))
    if "classes" in facts:
        n = len(facts["classes"])
        said.append(f"{n:,} class{'es' if n != 1 else ''}")
    return f"{facts['estimator']}: {', '.join(said)}."


def size_tiles(facts: dict[str, Any]) -> list[tuple[str, str, str]]:
    """How many vectors a model has, and how many bytes."""
    tiles = []
    for name, word in (("n_basis", "basis vectors"), ("n_support_vectors", "support vectors")):
        if name in facts:
            tiles.append((f"{facts[name]:,}", word, ""))
            break
    held = facts.get("bytes")
    note = "in memory" + (f"; {size_in_words(held)} as a file" if held else "")
    return [*tiles, (size_in_words(facts["model_bytes"]), "size", note)]


def speed_tiles(facts: dict[str, Any]) -> list[tuple[str, str, str]]:
    """Latency of one row, time of a row among many, and how many rows that is in a second."""
    alone, batch = facts["microseconds_one_row"], facts["microseconds_per_row"]
    n = f"{facts['rows_measured']:,} at once"
    return [
        (_time(alone), "one row alone", "latency of a call"),
        (_time(batch), "a row in a batch", n),
        (f"{_rounded(1e6 / batch)}", "rows a second", n),
    ]


def code_tiles(facts: dict[str, Any]) -> list[tuple[str, str, str]]:
    """What the model takes as C: nothing where it has no export."""
    if "c_bytes" not in facts:
        return []
    sizes = facts["c_bytes"]
    return [
        (size_in_words(sizes["float32"]), "as C, float32", "numbers and code"),
        (size_in_words(sizes["int8"]), "as C, int8", "numbers and code"),
        (f"{facts['multiplications_per_row']:,}", "multiplications a row", "counted"),
    ]


def _counted(n: int, word: str) -> str:
    return f"{n:,} {word}{'' if n == 1 else 's'}"


def _time(microseconds: float) -> str:
    if microseconds < 1000:
        return f"{float(f'{microseconds:.2g}'):g} µs"
    milliseconds = microseconds / 1000
    if milliseconds < 1000:
        return f"{float(f'{milliseconds:.2g}'):g} ms"
    return f"{float(f'{milliseconds / 1000:.2g}'):g} s"


def _rounded(count: float) -> str:
    for size, word in ((1e9, " G"), (1e6, " M")):
        if count >= size:
            return f"{float(f'{count / size:.2g}'):g}{word}"
    return f"{int(float(f'{count:.2g}')):,}"


def path_in_words(path: list[dict[str, Any]]) -> list[tuple[str, str]]:
    """A line for each size of the basis that has a model, with its scores.

    There are none if there is only one size.

    Examples
    --------
    >>> from slimsvm.report.words import path_in_words
    >>> first = {"n_basis": 1, "training_score": 0.5, "validation_score": None}
    >>> path_in_words([first, {"n_basis": 2, "training_score": 0.75, "validation_score": 0.7}])
    [('path', '     1  score 0.5000'), ('', '     2  score 0.7500, held out 0.7000')]
    """
    if len(path) < 2:
        return []
    lines: list[tuple[str, str]] = []
    for point in path:
        text = f"{point['n_basis']:6,}  score {point['training_score']:.4f}"
        if point["validation_score"] is not None:
            text += f", held out {point['validation_score']:.4f}"
        lines.append(("" if lines else "path", text))
    return lines


def short(value: Any) -> str:
    """A number with few digits; anything else as it is."""
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def several(values: list[Any], most: int = 12) -> str:
    """The first values of a list, and how many there are if that is not all.

    Examples
    --------
    >>> from slimsvm.report.words import several
    >>> several([1, 2, 3]), several(list(range(100)), most=3)
    ('1, 2, 3', '0, 1, 2, ... (100)')
    """
    shown = ", ".join(str(value) for value in values[:most])
    return shown if len(values) <= most else f"{shown}, ... ({len(values)})"


def plain(value: Any) -> Any:
    """A value that strict JSON can hold.

    NumPy's types become Python's, NaN and infinity become null.

    Examples
    --------
    >>> from slimsvm.report.words import plain
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
