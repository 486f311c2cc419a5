"""What an option of a solver or of a basis may be: a ValueError names the range.

Parameters of estimators are checked by scikit-learn (:mod:`slimsvm.declarations`); these are those
of the objects that an estimator or a recipe is given.
"""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np


def at_least(least: int, **values: Any) -> None:
    """Raise ValueError unless these are integers of this size.

    Examples
    --------
    >>> at_least(1, n_candidates=59)
    >>> at_least(1, n_candidates=0)
    Traceback (most recent call last):
        ...
    ValueError: n_candidates=0 must be an integer, 1 or more.
    """
    for name, value in values.items():
        if not (is_whole(value) and value >= least):
            raise ValueError(f"{name}={value!r} must be an integer, {least} or more.")


def none_or_at_least(least: int, **values: Any) -> None:
    """The same of options that may be None, too.

    Examples
    --------
    >>> none_or_at_least(1, n_rows=None)
    """
    at_least(least, **{name: value for name, value in values.items() if value is not None})


def is_whole(value: Any) -> bool:
    """Whether this is an integer: True and False are none.

    Examples
    --------
    >>> is_whole(np.int64(3)), is_whole(True), is_whole(3.0)
    (True, False, False)
    """
    return isinstance(value, Integral) and not isinstance(value, bool)


def one_of(choices: tuple[str, ...], **values: Any) -> None:
    """Raise ValueError unless these are among the names.

    Examples
    --------
    >>> one_of(("powers", "always"), retrain="always")
    """
    for name, value in values.items():
        if not isinstance(value, str) or value not in choices:
            raise ValueError(f"{name}={value!r} is not one of {', '.join(map(repr, choices))}.")


def between(low: float, high: float, why: str = "", **values: Any) -> None:
    """Raise ValueError unless these are numbers between two others, both excluded.

    Examples
    --------
    >>> between(0.0, 1.0, progress=0.5)
    >>> between(0.0, np.inf, beta=-1)
    Traceback (most recent call last):
        ...
    ValueError: beta=-1 must be a finite number above 0.
    """
    for name, value in values.items():
        known = isinstance(value, Real) and not isinstance(value, bool)
        if not (known and low < value < high):
            where = f"between {low:g} and {high:g}, both excluded"
            where = where if np.isfinite(high) else f"a finite number above {low:g}"
            raise ValueError(f"{name}={value!r}{why} must be {where}.")


def flags(**values: Any) -> None:
    """Raise ValueError unless these are True or False.

    Examples
    --------
    >>> flags(shrinking="no")
    Traceback (most recent call last):
        ...
    ValueError: shrinking='no' must be True or False.
    """
    for name, value in values.items():
        if not isinstance(value, bool | np.bool_):
            raise ValueError(f"{name}={value!r} must be True or False.")
