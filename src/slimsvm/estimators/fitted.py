"""Fitted attributes of estimators: declared on their classes, read by model files and documentation.

A class lists those that it adds, ``fitted_of`` those of all its bases too. A shape is a tuple of
names of sizes. Model files check that equal names are equal sizes: some sizes follow from other
attributes (``Estimator._sizes``), the others have the value they have where they are met first.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from slimsvm.ending import Certificate, Status
from slimsvm.kernels import FromCallable, Kernel, Precomputed
from slimsvm.oracles.structured import StructuredOracle

# kind -> its name in the documentation
KINDS = {
    "float": "array",
    "int": "array of int",
    "rows": "array or CSR matrix",
    "labels": "array",
    "number": "float",
    "count": "int",
    "flag": "bool",
    "text": "str",
    "kernel": "Kernel",
    "certificate": "Certificate",
    "status": "Status",
    "history": "dict of arrays",
    "path": "list of PathPoint",
    "oracle": "StructuredOracle",
    "shape": "tuple",
    "indices": "array of int or None",
    "counts": "int or array of int",
    "list": "list",
    "lists": "list of arrays",
    "stream": "dict",
}


@dataclass(frozen=True)
class Attribute:
    """One fitted attribute.

    Attributes
    ----------
    name, kind : str
        As on the estimator; one of KINDS.
    shape : tuple of str
        Names of sizes, for arrays.
    text : str
        For the documentation.
    stored : bool
        Whether model files hold it.
    optional : bool
        Whether a fitted estimator may be without it.
    """

    name: str
    kind: str
    shape: tuple[str, ...]
    text: str
    stored: bool = True
    optional: bool = False

    @property
    def in_words(self) -> str:
        """The type, as documentation has it."""
        if not self.shape:
            return KINDS[self.kind]
        sizes = ", ".join(self.shape) + ("," if len(self.shape) == 1 else "")
        return f"{KINDS[self.kind]} of shape ({sizes})"


def attribute(
    name: str,
    kind: str,
    shape: tuple[str, ...] = (),
    text: str = "",
    *,
    stored: bool = True,
    optional: bool = False,
) -> Attribute:
    """Declare a fitted attribute.

    Examples
    --------
    >>> from slimsvm.estimators.fitted import attribute
    >>> attribute("intercept_", "float", ("n_outputs",), "Constants.").in_words
    'array of shape (n_outputs,)'
    """
    if kind not in KINDS:
        raise ValueError(
            f"{name}: {kind!r} is not a kind of attribute; expected one of {[*KINDS]}."
        )
    return Attribute(name, kind, shape, text, stored, optional)


def fitted_of(kind: type) -> list[Attribute]:
    """All fitted attributes of a class; what a subclass says of one replaces what its bases say.

    Examples
    --------
    >>> from slimsvm import SVC
    >>> from slimsvm.estimators.fitted import fitted_of
    >>> [attribute.name for attribute in fitted_of(SVC)][:3]
    ['support_', 'support_vectors_', 'n_support_']
    """
    found: dict[str, Any] = {}
    for base in kind.__mro__:
        for own in vars(base).get("fitted", ()):
            found.setdefault(own.name, own)
    return list(found.values())


# -- what comes from a file is checked before it reaches an estimator: compiled code trusts it ---


def check_attributes(kind: Any, attributes: dict[str, Any]) -> None:
    """Raise ValueError unless names, types, shapes and indices are those of a fitted ``kind``."""
    known = {own.name: own for own in fitted_of(kind) if own.stored}
    missing = {name for name, own in known.items() if not own.optional} - set(attributes)
    demand(not missing, f"the fitted attribute {min(missing, default='')!r} is missing")
    unknown = set(attributes) - set(known)
    what = min(unknown, default="")
    demand(not unknown, f"a fitted {kind.__name__} has no attribute {what!r}")
    check_types(known, attributes)
    check_shapes(known, attributes, kind._sizes(attributes))
    kind._check_fitted(attributes)


def check_types(known: dict[str, Attribute], values: dict[str, Any], where: str = "") -> None:
    """Raise ValueError unless every value is of the kind that is declared; ``where`` it comes from."""
    for name, value in values.items():
        right = TYPES.get(known[name].kind, lambda value: True)(value)
        demand(right, f"{name}{where} is not what it should be: {known[name].in_words}")


def check_shapes(
    known: dict[str, Attribute], values: dict[str, Any], sizes: dict[str, int], where: str = ""
) -> None:
    """Raise ValueError unless equal names of sizes are equal sizes; those met first are noted."""
    for name, own in known.items():
        if name in values and own.shape:
            _check_shape(own, values[name], sizes, values.get("kernel_"), where)


def _check_shape(
    own: Attribute, value: Any, sizes: dict[str, int], kernel: Any, where: str
) -> None:
    if value is None or (own.kind == "rows" and isinstance(kernel, Precomputed)):
        return  # indices that are not known; rows that no one has
    shape = np.shape(value)
    expected = tuple(sizes.get(size, n) for size, n in zip(own.shape, shape, strict=False))
    demand(
        len(shape) == len(own.shape) and shape == expected,
        f"{own.name}{where} has the shape {shape}, expected ({', '.join(own.shape)}) = {expected}",
    )
    for size, n in zip(own.shape, shape, strict=True):
        sizes.setdefault(size, n)


def demand(condition: bool, complaint: str) -> None:
    """Raise ValueError with the complaint unless the condition holds."""
    if not condition:
        raise ValueError(complaint)


def check_classes(classes: Any) -> None:
    """Raise ValueError unless these are the labels of two or more classes, sorted."""
    vector = classes.ndim == 1 and classes.size >= 2
    demand(vector, "classes_ is not a vector of two or more labels")
    demand(bool(np.all(classes[:-1] < classes[1:])), "classes_ is not in ascending order")


def _is_kernel(value: Any) -> bool:
    """Whether it is a kernel that a file can hold, with numbers for its parameters."""
    gamma = getattr(value, "gamma", 1.0)
    number = isinstance(gamma, int | float) and bool(np.isfinite(gamma))
    return isinstance(value, Kernel) and not isinstance(value, FromCallable) and number


def _of_dtype(value: Any, kinds: str) -> bool:
    return isinstance(value, np.ndarray) and value.dtype.kind in kinds


TYPES: dict[str, Callable[[Any], bool]] = {
    "float": lambda value: _of_dtype(value, "f"),
    "int": lambda value: _of_dtype(value, "iu"),
    "rows": lambda value: _of_dtype(value, "f") or (sp.issparse(value) and value.dtype.kind == "f"),
    "labels": lambda value: isinstance(value, np.ndarray),
    "number": lambda value: isinstance(value, int | float),
    "count": lambda value: isinstance(value, int) and value >= 0,
    "flag": lambda value: isinstance(value, bool),
    "text": lambda value: isinstance(value, str),
    "kernel": _is_kernel,
    "certificate": lambda value: value is None or isinstance(value, Certificate),
    "status": lambda value: isinstance(value, Status),
    "history": lambda value: isinstance(value, dict),
    "oracle": lambda value: isinstance(value, StructuredOracle),
    "indices": lambda value: value is None or _of_dtype(value, "iu"),
    "counts": lambda value: isinstance(value, int) or _of_dtype(value, "iu"),
    "shape": lambda value: isinstance(value, tuple),
    "path": lambda value: isinstance(value, list),
    "list": lambda value: isinstance(value, list),
    "lists": lambda value: isinstance(value, list),
    "stream": lambda value: isinstance(value, dict),
}
