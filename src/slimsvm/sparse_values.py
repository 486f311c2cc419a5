"""What a model file of a sparse estimator must hold beside arrays: its path, and its stream."""

from __future__ import annotations

from typing import Any

import numpy as np

from slimsvm.declarations import Attribute, check_shapes, check_types, demand
from slimsvm.solvers.path_points import PathPoint
from slimsvm.solvers.stream_descent import ADAM, BY_CLASS, PLAIN, ROWS


def check_path(known: dict[str, Attribute], points: list[Any], sizes: dict[str, int]) -> None:
    """Raise ValueError unless these are the points of a path, as the attributes are declared."""
    for i, p in enumerate(points):
        demand(isinstance(p, PathPoint), "path_ is not a list of models")
        where = f" of path_[{i}]"
        values = {
            "n_basis_": p.n_basis,
            "basis_": p.basis,
            "basis_coef_": p.coef,
            "basis_indices_": p.indices,
            "intercept_": p.intercept,
        }
        if p.widths is not None:
            values["widths_"] = p.widths
        check_types(known, values, where)
        check_shapes(known, values, {**sizes, "n_basis": p.n_basis}, where)
        maybe = (p.validation_score, p.projection_error, p.bound)
        numbers = [p.objective, p.gap, p.training_score, *(v for v in maybe if v is not None)]
        right = all(isinstance(number, int | float) for number in numbers)
        demand(right, f"a score or objective{where} is not a number")


def check_stream_values(values: Any, n_features: int, n_outputs: int) -> None:
    """Raise ValueError unless it is what :meth:`StreamState.to_dict` writes."""
    shapes = {f"{name}_{x}" for name in ROWS for x in ("X", "target", "weight")}
    always = {*PLAIN, *BY_CLASS, *shapes, "form"}
    model = {*ADAM, "average", "t", "k", "d", "mean", "turn", "metric"}
    demand(set(values) in (always, always | model), "stream_ has not the entries of a stream")
    counts = ("seed", "n_outputs", *(name for name in PLAIN if name.startswith("n_")))
    right = all(isinstance(values[name], int) and values[name] >= 0 for name in counts)
    demand(right, "a count of stream_ is not one")
    demand(values["n_outputs"] == n_outputs, f"stream_ has not {n_outputs} outputs")
    for name in BY_CLASS:
        right = isinstance(values[name], np.ndarray) and values[name].shape == (n_outputs,)
        demand(right, f"{name} of stream_ has not {n_outputs} values")
    for name in ROWS:
        width = values["d"] if values["inner"] and name != "waiting" else n_features
        X, target, weight = (values[f"{name}_{x}"] for x in ("X", "target", "weight"))
        right = X.ndim == 2 and X.shape == (np.size(target), width) and target.ndim == 1
        right = right and np.shape(weight) == target.shape
        if values["classes"]:
            right = right and target.dtype.kind == "i"
            right = right and not (
                target.size and not 0 <= target.min() <= target.max() < n_outputs
            )
        demand(right, f"the rows {name} of stream_ are not what they should be")
    demand(values["n_kept"] == len(values["kept_target"]), "n_kept of stream_ is wrong")
    form = values["form"]
    right = len(form) == 4 and all(isinstance(v, int | float) for v in form)
    demand(right, "the form of stream_ is not that of a kernel")
    if "flat" not in values:
        demand(False, "stream_ has no model")
        return
    k, d, c = values["k"], values["d"], n_outputs
    right = (
        isinstance(k, int) and isinstance(d, int) and values["metric"] in ("full", "diagonal", None)
    )
    demand(right, "the sizes of stream_ are none")
    size = k * d + k + k * c + c + d + d * d * (values["metric"] == "full")
    for name in (*ADAM, "average"):
        array = values[name]
        right = (
            isinstance(array, np.ndarray) and array.shape == (size,) and array.dtype == np.float32
        )
        demand(right, f"{name} of stream_ has not {size} values")
    turn, mean = values["turn"], values["mean"]
    turned = d if np.ndim(turn) == 0 else np.shape(turn)[-1]
    right = turned == d and (np.ndim(turn) == 0 or np.shape(turn)[0] == n_features)
    right = right and (mean is None or np.shape(mean) == (n_features,))
    demand(right, "the coordinates of stream_ do not fit to its features")
