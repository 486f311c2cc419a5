"""What an estimator's class says of itself: its parameters, and its fitted attributes.

An estimator lists its parameters as the fields of a dataclass, in the order of its signature, and
describes them in the "Parameters" section of its docstring, as usual::

    @declared
    class SVR(...):
        C: float = shared("C")
        epsilon: float = parameter(0.1, NOT_NEGATIVE)

``declared`` makes ``__init__`` and scikit-learn's ``_parameter_constraints`` from the fields, and
completes the documentation: defaults, texts that a base class has, and the attributes.

Fitted attributes are listed in ``fitted``, with kind and shape, by the class that sets them. Model
files read that list: which attributes there must be, and what is checked before they reach an
estimator. A shape is a tuple of names of sizes; equal names are equal sizes. Some sizes follow from
other attributes (``FittedModel._sizes``), the others have the value they have where they are met
first.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, field, fields
from functools import cache
from typing import Any, TypeVar, dataclass_transform

import numpy as np
import scipy.sparse as sp

from slimsvm.ending import Certificate, Status
from slimsvm.kernels import FromCallable, Kernel, Precomputed

Class = TypeVar("Class", bound=type)
Method = TypeVar("Method", bound=Callable[..., Any])
LONGEST = 60  # of a value in a message
NEW_ROWS = ("X : array or CSR matrix of shape (n_samples, n_features)", "    New rows.")
Texts = Mapping[str, tuple[str, list[str]]]  # name -> its type in words, the lines of its text


# -- parameters ------------------------------------------------------------------------------------


def parameter(
    default: Any, *accepts: Any, positional: bool = False, text: Callable[[], str] | None = None
) -> Any:
    """A parameter: its default (MISSING: none), and what scikit-learn's validation accepts.

    ``positional``: it may also be given by its place. ``text`` stands for one in the docstring.
    """
    return field(
        default=default, kw_only=not positional, metadata={"accepts": accepts, "text": text}
    )


@dataclass_transform(kw_only_default=True)  # what stands on the right is a default
def declared(kind: Class) -> Class:
    """``__init__``, constraints and documentation from what the class lists."""
    text = kind.__doc__  # None where Python leaves docstrings out
    made: Any = dataclass(repr=False, eq=False, kw_only=True)(kind)
    made._parameter_constraints = {f.name: list(f.metadata["accepts"]) for f in fields(made)}
    made._declared = (made.__init__, {f.name: f.default for f in fields(made)})
    made.__doc__ = None if text is None else _documented(made)
    return made


@cache  # of bases, whose classes are many
def described(docstring: str | None, title: str) -> Texts:
    r"""The entries of a section of a docstring.

    Examples
    --------
    >>> described("Text.\n\nParameters\n----------\nC : float\n    Weight.", "Parameters")
    {'C': ('float', ['    Weight.'])}
    """
    if not docstring or title not in docstring:
        return {}
    lines = inspect.cleandoc(docstring).split("\n")
    found: dict[str, tuple[str, list[str]]] = {}
    for title_at, end in _sections(lines):
        if lines[title_at] != title:
            continue
        for line in lines[title_at + 2 : end]:
            if line and not line.startswith(" "):
                name, _, words = line.partition(" : ")
                found[name] = (words, [])
            elif found:
                found[list(found)[-1]][1].append(line)
    for _, text in found.values():
        while text and not text[-1]:
            text.pop()
    return found


def _sections(lines: list[str]) -> list[tuple[int, int]]:
    """First line (the title) and end of every section."""
    titles = [
        i
        for i in range(len(lines) - 1)
        if lines[i + 1] and not lines[i + 1].strip("-") and lines[i]
    ]
    return list(zip(titles, [*titles[1:], len(lines)], strict=False))


def _documented(kind: Any) -> str:
    """The class's own text, with complete sections for parameters and attributes."""
    own = inspect.cleandoc(kind.__doc__).split("\n")
    ours = ("Parameters", "Attributes")
    sections = _sections(own)
    first = sections[0][0] if sections else len(own)
    others = [
        own[i] for start, end in sections if own[start] not in ours for i in range(start, end)
    ]
    known: dict[str, dict[str, tuple[str, list[str]]]] = {title: {} for title in ours}
    for base in reversed(kind.__mro__):
        for title in ours:  # what a class says replaces what its bases say
            known[title] |= described(vars(base).get("__doc__"), title)
    about = ["Parameters", "----------"]
    for f in fields(kind):
        words, text = _entry(kind, known["Parameters"], f.name)
        if f.metadata["text"] is not None:
            text = [f"    {line}".rstrip() for line in f.metadata["text"]().split("\n")]
        about += [f"{f.name} : {words}{_default(f, words)}", *text]
    about += ["", "Attributes", "----------"]
    for attribute in fitted_of(kind):
        if not attribute.name.startswith("_"):
            about += [f"{attribute.name} : {attribute.in_words}"]
            about += _entry(kind, known["Attributes"], attribute.name)[1]
    lines = [*own[:first], *about, "", *others]
    return "\n".join(f"    {line}".rstrip() for line in lines).strip() + "\n    "


def _entry(kind: type, known: Texts, name: str) -> tuple[str, list[str]]:
    if name not in known:
        raise TypeError(f"{name} is declared in {kind.__name__}, but no docstring describes it.")
    return known[name]


def _default(f: Any, words: str) -> str:
    if words == "ignored" or f.default is MISSING:
        return ""
    if f.default is not None:
        return f", default={f.default!r}"
    return ", default=None" if "None" in words else ", optional"


def of_new_rows(*returns: str, X: tuple[str, ...] = NEW_ROWS) -> Callable[[Method], Method]:
    """A method of new rows X: its docstring is completed by what X is, and what ``returns``.

    Examples
    --------
    >>> from slimsvm import SVR
    >>> print(SVR.predict.__doc__.splitlines()[0])
    Targets of new rows.
    >>> "New rows." in SVR.predict.__doc__, "(n_samples,)" in SVR.predict.__doc__
    (True, True)
    """

    def completed(method: Method) -> Method:
        if method.__doc__ is not None:  # else Python leaves docstrings out
            sections = ["Parameters", "----------", *X, "", "Returns", "-------"]
            lines = [*sections, *(returns or ("array of shape (n_samples,)",)), ""]
            text = inspect.cleandoc(method.__doc__)
            method.__doc__ = "\n".join([text, "", *lines])
        return method

    return completed


# -- fitted attributes -----------------------------------------------------------------------------


# kind -> its name in the documentation
KINDS = {
    "float": "array",
    "int": "array of int",
    "rows": "array or CSR matrix",
    "matrix": "array or CSR matrix",
    "labels": "array",
    "number": "float",
    "count": "int",
    "flag": "bool",
    "text": "str",
    "kernel": "Kernel",
    "certificate": "Certificate",
    "certificate?": "Certificate or None",
    "status": "Status",
    "history": "dict of arrays",
    "path": "list of PathPoint",
    "oracle": "StructuredOracle",
    "transformer": "transformer of scikit-learn",
    "shape": "tuple",
    "indices": "array of int or None",
    "counts": "int or array of int",
    "list": "list",
    "lists": "list of arrays",
    "stream": "dict",
    "dict": "dict",
    "sparse": "SparseSVC",
    "estimator": "estimator",
    "shared": "Shared",
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
    stored : bool
        Whether model files hold it.
    optional : bool
        Whether a fitted estimator may be without it.
    """

    name: str
    kind: str
    shape: tuple[str, ...] = ()
    stored: bool = True
    optional: bool = False

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"{self.name}: {self.kind!r} is not one of {[*KINDS]}.")

    @property
    def in_words(self) -> str:
        """The type, as documentation has it.

        Examples
        --------
        >>> attribute("intercept_", "float", ("n_outputs",)).in_words
        'array of shape (n_outputs,)'
        """
        if not self.shape:
            return KINDS[self.kind]
        sizes = ", ".join(self.shape) + ("," if len(self.shape) == 1 else "")
        return f"{KINDS[self.kind]} of shape ({sizes})"


attribute = Attribute


def fitted_of(kind: type) -> list[Attribute]:
    """All fitted attributes of a class; what a subclass says of one replaces what its bases say.

    Examples
    --------
    >>> from slimsvm import OneClassSVM
    >>> [attribute.name for attribute in fitted_of(OneClassSVM)][:1]
    ['offset_']
    """
    found: dict[str, Any] = {}
    for base in kind.__mro__:
        for own in vars(base).get("fitted", ()):
            found.setdefault(own.name, own)
    return list(found.values())


def attributes_of(estimator: Any) -> dict[str, Any]:
    """The fitted attributes that model files hold, by name."""
    return {
        own.name: getattr(estimator, own.name)
        for own in fitted_of(type(estimator))
        if own.stored and (not own.optional or hasattr(estimator, own.name))
    }


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
    if "classes_" in attributes:  # sizes follow from it
        check_classes(attributes["classes_"])
    check_shapes(known, attributes, kind._sizes(attributes))
    kind._check_fitted(attributes)


def check_types(known: dict[str, Attribute], values: dict[str, Any], where: str = "") -> None:
    """Raise ValueError unless every value is of the kind that is declared.

    ``where`` it comes from.
    """
    for name, value in values.items():
        own = known[name]
        expected = own.in_words + FURTHER.get(own.kind, "")
        demand(TYPES[own.kind](value), f"{name}{where} is {_in_short(value)}, expected {expected}")


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


def _in_short(value: Any) -> str:
    """A value for a message; of arrays, only what they are."""
    if hasattr(value, "dtype"):
        return f"{type(value).__name__} of {value.dtype} of shape {np.shape(value)}"
    text = repr(value)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."


def demand(condition: bool, complaint: str) -> None:
    """Raise ValueError with the complaint unless the condition holds."""
    if not condition:
        raise ValueError(complaint)


def check_classes(classes: Any) -> None:
    """Raise ValueError unless these are the labels of two or more classes, sorted."""
    vector = classes.ndim == 1 and classes.size >= 2
    demand(vector, f"classes_ has the shape {classes.shape}, expected two or more labels")
    demand(bool(np.all(classes[:-1] < classes[1:])), "classes_ is not in ascending order")


def _is_kernel(value: Any) -> bool:
    """Whether it is a kernel that a file can hold, with numbers for its parameters."""
    if not isinstance(value, Kernel) or isinstance(value, FromCallable):
        return False
    numbers = value.get_params().values()
    return all(_is_number(number) and math.isfinite(number) for number in numbers)


def _is_certificate(value: Any) -> bool:
    """Whether it is a certificate, with numbers where there must be some."""
    if not isinstance(value, Certificate):
        return False
    words = ("scope", "precision")
    others = (*words, "estimated")
    numbers = [v for k, v in vars(value).items() if k not in others and v is not None]
    needed = (value.objective, value.violation, value.gap, value.tol)
    right = all(_is_number(number) for number in (*needed, *numbers))
    right = right and isinstance(value.estimated, bool)
    return right and all(isinstance(getattr(value, word), str) for word in words)


def _is_oracle(value: Any) -> bool:
    from slimsvm.oracles.structured import StructuredOracle  # few estimators have one

    return isinstance(value, StructuredOracle)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _of_dtype(value: Any, kinds: str) -> bool:
    return isinstance(value, np.ndarray) and value.dtype.kind in kinds


def _is_real_matrix(value: Any) -> bool:
    return _of_dtype(value, "f") or (sp.issparse(value) and value.dtype.kind == "f")


# kind -> what a value must also be, for messages
FURTHER = {
    "count": ", zero or more",
    "kernel": " with numbers for its parameters",
    "certificate": " of numbers",
    "certificate?": ", of numbers",
    "status": " of words",
    "shape": " of two counts",
}
TYPES: dict[str, Callable[[Any], bool]] = {
    "float": lambda value: _of_dtype(value, "f"),
    "int": lambda value: _of_dtype(value, "iu"),
    "rows": lambda value: _is_real_matrix(value),
    "matrix": lambda value: _is_real_matrix(value),
    "labels": lambda value: isinstance(value, np.ndarray),
    "number": _is_number,
    "count": _is_count,
    "flag": lambda value: isinstance(value, bool),
    "text": lambda value: isinstance(value, str),
    "kernel": _is_kernel,
    "certificate": _is_certificate,
    "certificate?": lambda value: value is None or _is_certificate(value),
    "status": lambda value: (
        isinstance(value, Status) and all(isinstance(word, str) for word in vars(value).values())
    ),
    "history": lambda value: (
        isinstance(value, dict) and all(_of_dtype(column, "fiu") for column in value.values())
    ),
    "transformer": lambda value: hasattr(value, "transform"),
    "oracle": _is_oracle,
    "indices": lambda value: value is None or _of_dtype(value, "iu"),
    "counts": lambda value: _is_count(value) or _of_dtype(value, "iu"),
    "shape": lambda value: (
        isinstance(value, tuple) and len(value) == 2 and all(_is_count(n) for n in value)
    ),
    "path": lambda value: isinstance(value, list),
    "list": lambda value: isinstance(value, list),
    "lists": lambda value: isinstance(value, list),
    "stream": lambda value: isinstance(value, dict),
    "dict": lambda value: isinstance(value, dict),
    "estimator": lambda value: hasattr(value, "get_params"),
    "shared": lambda value: type(value).__name__ == "Shared",
    "sparse": lambda value: type(value).__name__ == "SparseSVC" and hasattr(value, "basis_"),
}
