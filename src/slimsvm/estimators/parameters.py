"""Parameters of estimators: declared once, with default, accepted values and text.

An estimator lists its parameters as the fields of a dataclass, in the order of its signature::

    @declared
    class SVC(...):
        C: float = parameter(1.0, POSITIVE, kind="float", text="Weight of the errors.")
        kernel: Any = shared("kernel")

``declared`` makes ``__init__``, scikit-learn's ``_parameter_constraints`` and the "Parameters" and
"Attributes" sections of the documentation from that. Parameters that several estimators have are
in SHARED; ``shared`` takes one from there, and may change its default or its text.
"""

from __future__ import annotations

import inspect
import textwrap
from dataclasses import MISSING, dataclass, field, fields
from numbers import Integral, Real
from typing import Any, TypeVar, dataclass_transform

from sklearn.utils._param_validation import Interval, RealNotInt, StrOptions

from slimsvm.estimators.fitted import fitted_of
from slimsvm.kernels import KERNELS, Kernel

Class = TypeVar("Class", bound=type)
WIDTH = 92  # of a line of documentation
POSITIVE = Interval(Real, 0.0, None, closed="neither")
NOT_NEGATIVE = Interval(Real, 0.0, None, closed="left")
AT_LEAST_ONE = Interval(Integral, 1, None, closed="left")
COUNT_OR_NONE = Interval(Integral, -1, None, closed="left")  # -1: no limit
SHARE = Interval(RealNotInt, 0.0, 1.0, closed="right")
NU = Interval(Real, 0.0, 1.0, closed="right")
CLASS_WEIGHT = (StrOptions({"balanced"}), dict, None)


def parameter(
    default: Any = MISSING,
    *accepts: Any,
    kind: str,
    text: str,
    positional: bool = False,
) -> Any:
    """A parameter: its default, what scikit-learn's validation accepts, its type in words, its text.

    Without a default it must be given. ``positional``: it may also be given by its place.
    """
    about = {"accepts": list(accepts), "kind": kind, "text": inspect.cleandoc(text)}
    return field(default=default, kw_only=not positional, metadata=about)


def shared(name: str, **changes: Any) -> Any:
    """A parameter of SHARED, perhaps with another default, text, kind or accepted values."""
    about = {**SHARED.get(name, {}), **changes}
    default, accepts = about.pop("default"), about.pop("accepts")
    return parameter(default, *accepts, **about)


@dataclass_transform()  # no field_specifiers: type checkers want their defaults by keyword
def declared(kind: Class) -> Class:
    """``__init__``, constraints and documentation from the parameters that the class lists."""
    made: Any = dataclass(repr=False, eq=False, kw_only=True)(kind)
    made._parameter_constraints = {f.name: f.metadata["accepts"] for f in fields(made)}
    made.__doc__ = _documented(made)
    return made


def _documented(kind: Any) -> str:
    """The class's own text, with sections for parameters and attributes before all others."""
    own = inspect.cleandoc(kind.__doc__).split("\n")
    rules = [i for i, line in enumerate(own) if line and not line.strip("-") and i > 0]
    first = rules[0] - 1 if rules else len(own)
    about = ["Parameters", "----------"]
    for f in fields(kind):
        about += _entry(f"{f.name} : {f.metadata['kind']}{_default(f)}", f.metadata["text"])
    about += ["", "Attributes", "----------"]
    for attribute in fitted_of(kind):
        if attribute.name.startswith("_"):
            continue
        about += _entry(f"{attribute.name} : {attribute.in_words}", attribute.text)
    text = "\n".join([*own[:first], *about, "", *own[first:]])
    return textwrap.indent(text, "    ").lstrip()


def _default(f: Any) -> str:
    if f.metadata["kind"] == "ignored" or f.default is MISSING:
        return ""
    if f.default is not None:
        return f", default={f.default!r}"
    return ", default=None" if "None" in f.metadata["kind"] else ", optional"


def _entry(head: str, text: str) -> list[str]:
    """A name with its type, and its text below; a text of several lines keeps them."""
    lines = text.split("\n") if "\n" in text else textwrap.wrap(text, WIDTH)
    return [head, *(f"    {line}".rstrip() for line in lines)]


def _spec(default: Any, *accepts: Any, kind: str, text: str) -> dict[str, Any]:
    return {"default": default, "accepts": accepts, "kind": kind, "text": text}


SHARED: dict[str, dict[str, Any]] = {
    # the kernel
    "kernel": _spec(
        "rbf",
        StrOptions(set(KERNELS)),
        callable,
        Kernel,
        kind="{'linear', 'poly', 'rbf', 'sigmoid', 'laplacian', 'precomputed'}, callable or Kernel",
        text="Similarity of two rows. A callable gets two blocks of rows and returns the matrix of "
        "their values.",
    ),
    "degree": _spec(
        3,
        Interval(Integral, 0, None, closed="left"),
        kind="int",
        text="Of the polynomial kernel.",
    ),
    "gamma": _spec(
        "scale",
        StrOptions({"scale", "auto"}),
        NOT_NEGATIVE,
        kind="{'scale', 'auto'} or float",
        text="Of the rbf, polynomial, sigmoid and Laplacian kernels. 'scale' is 1 / (n_features * "
        "variance of X), with sample weights; 'auto' is 1 / n_features.",
    ),
    "coef0": _spec(
        0.0,
        Interval(Real, None, None, closed="neither"),
        kind="float",
        text="Constant in the polynomial and sigmoid kernels.",
    ),
    # the problem
    "C": _spec(
        1.0,
        POSITIVE,
        kind="float",
        text="Weight of the errors: 1/2 |w|^2 + C sum_i weight_i max(0, 1 - y_i f(x_i)).",
    ),
    "fit_intercept": _spec(
        True,
        "boolean",
        kind="bool",
        text="Whether there is an intercept, which is not penalised.",
    ),
    "class_weight": _spec(
        None, *CLASS_WEIGHT, kind="dict or 'balanced'", text="Factors of C for each class."
    ),
    # the solver
    "shrinking": _spec(
        True,
        "boolean",
        kind="bool",
        text="Whether variables that stay at a bound leave the problem until the end.",
    ),
    "tol": _spec(
        1e-3,
        POSITIVE,
        kind="float",
        text="Largest violation of the KKT conditions at the end. Up to 1,000 rows are always "
        "solved to near machine precision.",
    ),
    "cache_size": _spec(
        200,
        POSITIVE,
        kind="float",
        text="Megabytes for kernel values. Up to 2,000 rows (of a pair of classes) the problem is "
        "one block of them, of at most 32 megabytes and as much to make it, whatever is said here.",
    ),
    "warm_start": _spec(
        False,
        "boolean",
        kind="bool",
        text="Go on from the last solution if the rows are the same.",
    ),
    # limits
    "max_iter": _spec(
        -1,
        COUNT_OR_NONE,
        kind="int",
        text="Limit on pair steps of the solver, for each problem; -1: none.",
    ),
    "max_time": _spec(
        None,
        POSITIVE,
        None,
        kind="float",
        text="Limit in seconds. At the limit, and at Ctrl-C, the best model so far is kept, with a "
        "ConvergenceWarning.",
    ),
    "max_memory": _spec(
        None,
        POSITIVE,
        None,
        kind="float",
        text="Megabytes for kernel values; beyond, they are computed again in every pass. Default "
        "2,000.",
    ),
    "n_jobs": _spec(
        None,
        Integral,
        None,
        kind="int",
        text="Threads: None is one unless a joblib context says otherwise, -1 all. The result does "
        "not depend on it.",
    ),
    "verbose": _spec(False, "verbose", kind="bool", text="Show a line of progress."),
    "random_state": _spec(
        None, "random_state", kind="int, RandomState or None", text="Seed of what is random."
    ),
    # votes
    "decision_function_shape": _spec(
        "ovr",
        StrOptions({"ovr", "ovo"}),
        kind="{'ovr', 'ovo'}",
        text="Columns of the decision function for more than two classes: one a class, or one a "
        "pair.",
    ),
    "break_ties": _spec(
        False,
        "boolean",
        kind="bool",
        text="Decide equal votes by the sums of the decision values.",
    ),
}
