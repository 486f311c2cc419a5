"""Python values as JSON, and back again, without loss: what stands in the header of a model file.

None, booleans, integers, finite floats, strings and lists are themselves. Everything else is an
object with the key "type":

    {"type": "float", "value": "inf"}                            inf, -inf, nan
    {"type": "dict", "items": [[key, value], ...]}               keys keep their type
    {"type": "tuple", "items": [...]}
    {"type": "array", "member": "name.npy", "labels": "object"}
    {"type": "csr", "container": "csr_matrix", "shape": [n, d],
     "data": array, "indices": array, "indptr": array}
    {"type": "kernel", "name": "rbf", "parameters": {...}}
    {"type": "oracle", "class": "Multiclass", "parameters": {...}}
    {"type": "options", "class": "SVMLight", "parameters": {...}}    a solver, a choice of basis
    {"type": "estimator", "class": "SVC", "parameters": {...}, "fitted": {...}}
    {"type": "certificate", ...}, {"type": "status", ...}, {"type": "path_point", ...}

"labels" is there only where the array held Python objects or variable-width strings. "fitted" is
null before fit. The last three have their fields.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import MISSING, fields
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone

from slimsvm.basis import REGISTRY, FixedPoint
from slimsvm.cross_training import Discard
from slimsvm.declarations import attributes_of
from slimsvm.ending import Certificate, Status
from slimsvm.kernels import KERNELS, FromCallable, Kernel
from slimsvm.oracles import Binary, Chain, Multiclass, Multivariate
from slimsvm.persistence.fitted import class_named, is_known, rebuild
from slimsvm.persistence.plain import MARK, is_plain, put_together, taken_apart
from slimsvm.quantization import Packed
from slimsvm.solvers.core_rounds import CoreRounds
from slimsvm.solvers.core_vector import CoreVector
from slimsvm.solvers.cutting_plane import CuttingPlane
from slimsvm.solvers.decomposition import Decomposition
from slimsvm.solvers.dual_chunking import DualChunking
from slimsvm.solvers.linear_lagrangian import LinearLagrangian
from slimsvm.solvers.low_rank import ICFSVM
from slimsvm.solvers.online import Online
from slimsvm.solvers.online_rounds import OnlineRounds
from slimsvm.solvers.path_points import PathPoint
from slimsvm.solvers.plain_newton import PlainNewton
from slimsvm.solvers.platt_smo import PlattSMO
from slimsvm.solvers.rsvm import RSVM
from slimsvm.solvers.sampled_cuts import SampledCuts
from slimsvm.solvers.svm_light import SVMLight

Array = NDArray[Any]
ORACLES = {kind.__name__: kind for kind in (Binary, Multiclass, Multivariate, Chain)}
# solvers and ways to choose a basis, that a parameter may be
SOLVERS = (
    *(Decomposition, SVMLight, PlattSMO, DualChunking, RSVM, ICFSVM),
    *(CuttingPlane, SampledCuts, CoreVector, CoreRounds, Online, OnlineRounds),
    *(LinearLagrangian, PlainNewton),
)
OPTIONS: dict[str, type] = {
    kind.__name__: kind for kind in (*SOLVERS, *REGISTRY.values(), FixedPoint, Discard)
}
RECORDS: dict[str, type] = {
    "certificate": Certificate,
    "status": Status,
    "path_point": PathPoint,
    "packed": Packed,
}
CONTAINERS: dict[str, type] = {"csr_matrix": sp.csr_matrix, "csr_array": sp.csr_array}
DTYPES = "biufUSMm"  # kinds of arrays that need no pickle


def encode(value: Any, name: str, keep: Callable[[str, Array], str]) -> Any:
    """A value as JSON.

    Parameters
    ----------
    value : object
        What to encode; NumPy's scalars become Python's.
    name : str
        What to call it in messages, and its arrays in the file.
    keep : callable
        Called with a name and an array, for each array within the value; returns the name under
        which it is kept, which is another one if the same array has a name already.

    Raises
    ------
    ValueError
        If the value is of another type than those listed at the top of this module.

    Examples
    --------
    >>> from slimsvm.persistence.values import decode, encode
    >>> encode({1: 2.0, "b": float("inf")}, "class_weight", keep=None)
    {'type': 'dict', 'items': [[1, 2.0], ['b', {'type': 'float', 'value': 'inf'}]]}
    >>> decode(_, fetch=None)
    {1: 2.0, 'b': inf}
    """
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {"type": "float", "value": repr(value)}
    if isinstance(value, list):
        return [encode(item, f"{name}{i}", keep) for i, item in enumerate(value)]
    if isinstance(value, tuple):
        return {
            "type": "tuple",
            "items": [encode(item, f"{name}{i}", keep) for i, item in enumerate(value)],
        }
    if isinstance(value, dict):
        items = [
            [encode(key, name, keep), encode(item, f"{name}{key}", keep)]
            for key, item in value.items()
        ]
        return {"type": "dict", "items": items}
    if isinstance(value, np.ndarray):
        return _encode_array(value, name, keep)
    if sp.issparse(value) and value.format == "csr":
        container = "csr_array" if isinstance(value, sp.sparray) else "csr_matrix"
        parts = {
            part: encode(getattr(value, part), f"{name}{part}", keep)
            for part in ("data", "indices", "indptr")
        }
        return {
            "type": "csr",
            "container": container,
            "shape": [int(n) for n in value.shape],
            **parts,
        }
    if (
        isinstance(value, Kernel)
        and KERNELS.get(value.name) is type(value)
        and not isinstance(value, FromCallable)
    ):
        return {
            "type": "kernel",
            "name": value.name,
            "parameters": {k: encode(v, k, keep) for k, v in value.get_params().items()},
        }
    if type(value) in ORACLES.values():
        return {
            "type": "oracle",
            "class": type(value).__name__,
            "parameters": {k: encode(v, f"{name}{k}", keep) for k, v in value.get_params().items()},
        }
    if type(value) in OPTIONS.values():
        given = {field.name: getattr(value, field.name) for field in fields(value) if field.init}
        return {
            "type": "options",
            "class": type(value).__name__,
            "parameters": {k: encode(v, f"{name}{k}", keep) for k, v in given.items()},
        }
    if is_known(value) or is_plain(value):
        return {"type": "estimator", **encode_estimator(value, name, keep)}
    for record, kind in RECORDS.items():
        if isinstance(value, kind):
            return {
                "type": record,
                **{
                    field.name: encode(getattr(value, field.name), f"{name}{field.name}", keep)
                    for field in fields(kind)
                },
            }
    raise ValueError(
        f"{name} is an object of class {type(value).__name__}, which a model file cannot hold; it "
        "takes None, booleans, numbers, strings, lists, dicts, arrays of numbers or strings, and "
        "slimsvm's own kernels, oracles, solvers and estimators. Give a parameter another value "
        "(set_params) before saving, or use pickle or joblib."
    )


def encode_estimator(
    estimator: Any, prefix: str, keep: Callable[[str, Array], str]
) -> dict[str, Any]:
    """Class, parameters and, if there are any, fitted attributes of one of slimsvm's estimators.

    The names of its arrays begin with the prefix.
    """
    if is_plain(estimator):
        return _encode_plain(estimator, prefix, keep)
    kind = type(estimator).__name__
    # a parameter that is an estimator is a template: what it may have learned elsewhere is no part
    # of the model
    given = {
        name: clone(value) if isinstance(value, BaseEstimator) else value
        for name, value in estimator.get_params(deep=False).items()
    }
    parameters = {name: encode(value, f"{prefix}{name}", keep) for name, value in given.items()}
    fitted = None
    if _is_fitted(estimator):
        held = attributes_of(estimator) | getattr(estimator, "_packed", {})
        fitted = {name: encode(value, f"{prefix}{name}", keep) for name, value in held.items()}
    return {"class": kind, "parameters": parameters, "fitted": fitted}


def _encode_plain(estimator: Any, prefix: str, keep: Callable[[str, Array], str]) -> dict[str, Any]:
    """The same of one of scikit-learn's; steps of a pipeline are parameters, and fitted."""
    parts = [
        {name: encode(value, f"{prefix}{name}.", keep) for name, value in part.items()}
        for part in taken_apart(estimator)
    ]
    return {"class": MARK + type(estimator).__name__, "parameters": parts[0], "fitted": parts[1]}


def decode_estimator(entry: Any, fetch: Callable[[str], Array]) -> Any:
    """The estimator; its attributes are checked."""
    kind, fitted = entry["class"], entry["fitted"]
    if isinstance(kind, str) and kind.startswith(MARK):
        parts = _decode_each(entry["parameters"], fetch), _decode_each(fitted, fetch)
        return put_together(kind, *parts)
    found = class_named(kind)
    parameters = _decode_each(entry["parameters"], fetch)
    if fitted is None:
        return found(**parameters)
    held = _decode_each(fitted, fetch)
    packed = {name: value for name, value in held.items() if isinstance(value, Packed)}
    for name, value in packed.items():
        value.check()
        held[name] = value.unpacked()
    estimator = rebuild(kind, parameters, held)
    if packed:
        estimator._packed = packed
    return estimator


def _decode_each(entries: dict[str, Any], fetch: Callable[[str], Array]) -> dict[str, Any]:
    """The values of parameters or attributes; messages name them."""
    decoded = {}
    for name, value in entries.items():
        try:
            decoded[name] = decode(value, fetch)
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from error
    return decoded


def decode(value: Any, fetch: Callable[[str], Array]) -> Any:
    """The value that :func:`encode` made this JSON of; ``fetch`` returns the array of a name.

    Anything unexpected is a ValueError.
    """
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, list):
        return [decode(item, fetch) for item in value]
    kind = value.get("type") if isinstance(value, dict) else None
    try:
        if kind == "float":
            return float(value["value"])
        if kind == "tuple":
            return tuple(decode(item, fetch) for item in value["items"])
        if kind == "dict":
            return {decode(key, fetch): decode(item, fetch) for key, item in value["items"]}
        if kind == "array":
            return _decode_array(value, fetch)
        if kind == "csr":
            parts = tuple(decode(value[part], fetch) for part in ("data", "indices", "indptr"))
            matrix = CONTAINERS[value["container"]](parts, shape=tuple(value["shape"]))
            matrix.check_format(full_check=True)
            return matrix
        if kind == "kernel":
            return KERNELS[value["name"]](
                **{name: decode(item, fetch) for name, item in value["parameters"].items()}
            )
        if kind == "oracle":
            return ORACLES[value["class"]](
                **{name: decode(item, fetch) for name, item in value["parameters"].items()}
            )
        if kind == "options":
            return OPTIONS[value["class"]](
                **{name: decode(item, fetch) for name, item in value["parameters"].items()}
            )
        if kind == "estimator":
            return decode_estimator(value, fetch)
        if kind in RECORDS:
            known = [
                field.name
                for field in fields(RECORDS[kind])
                if field.name in value or field.default is MISSING
            ]
            return RECORDS[kind](**{name: decode(value[name], fetch) for name in known})
    except (KeyError, TypeError, AttributeError, OverflowError) as error:
        raise ValueError(
            f"an entry of type {kind!r} of the header makes no sense ({type(error).__name__}: "
            f"{error})"
        ) from error
    raise ValueError(f"an entry of the header has the unknown type {kind!r}")


def _is_fitted(estimator: Any) -> bool:
    return any(name.endswith("_") and not name.startswith("_") for name in vars(estimator))


def _encode_array(array: Array, name: str, keep: Callable[[str, Array], str]) -> dict[str, Any]:
    entry: dict[str, Any] = {"type": "array", "member": ""}
    if array.dtype.kind in "OT":  # Python objects, strings of variable width
        entry["labels"] = "object" if array.dtype.kind == "O" else "string"
        plain = np.array(array.tolist())
        # a mixture becomes text, a string that ends in NUL is cut: neither would come back
        if (
            plain.dtype.kind not in DTYPES
            or plain.shape != array.shape
            or plain.tolist() != array.tolist()
        ):
            raise ValueError(
                f"{name} holds Python objects that are neither all strings nor all numbers "
                f"({array.ravel()[:4].tolist()} ...), which a model file cannot hold; train with "
                "labels of one kind, or use pickle or joblib."
            )
        array = plain
    if array.dtype.kind not in DTYPES:
        raise ValueError(
            f"{name} is an array of type {array.dtype}, which a model file cannot hold; use "
            "pickle or joblib."
        )
    entry["member"] = keep(f"{name}.npy", array)
    return entry


def _decode_array(entry: dict[str, Any], fetch: Callable[[str], Array]) -> Array:
    array = fetch(entry["member"])
    labels = entry.get("labels")
    if labels is None:
        return array
    if labels == "string":
        return array.astype(np.dtypes.StringDType())
    if labels != "object":
        raise ValueError(f"labels of the unknown kind {labels!r}")
    objects = np.empty(array.shape, object)
    objects[...] = array.tolist()
    return objects
