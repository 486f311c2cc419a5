"""Fitted attributes of estimators: declared on their classes, read by model files and documentation.

A class lists those that it adds, ``fitted_of`` those of all its bases too. A shape is a tuple of
names of sizes. Model files check that equal names are equal sizes: some sizes follow from other
attributes (``Estimator._sizes``), the others have the value they have where they are met first.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

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
