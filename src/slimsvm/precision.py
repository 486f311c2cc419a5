"""Few rows are solved to near rounding errors: how few, and the tolerances that stand for it.

There the last digits cost next to nothing, and results that do not depend on the order of the
rows, on their form or on the solver's path are worth much: repeated rows equal weights, and two
fits can be compared.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
EXACT = 1000  # rows up to which a problem is solved to near float64 precision
NEWTON_TOL = 1e-26  # relative gap: half of a squared gradient, so 1e-13 in the coefficients
SUBSPACE_TOL = 1e-16  # relative gap of Newton's method in a basis, whose coordinates lose digits
CUTS_TOL = 1e-12  # relative gap of cutting planes: a difference of sums over all rows
LINEAR_CUTS_TOL = 1e-13  # the same with explicit features, whose products are more exact


RANDOM = 1.0  # of errors that are random: the bound is several standard deviations


def rounding(error: float, coef: Array, own: Array, slopes: Array, scores: Array) -> float:
    """By how much errors of kernel values may change the objective of a function.

    Three kinds of errors are counted, each as if it were as large as the bound: those that all
    values of a vector share (its norm, and the norm of the row), which do not average out, and
    those of single values, which do.

    Parameters
    ----------
    error : float
        Bound on the error of a kernel value.
    coef, own : arrays of shape (vectors, columns)
        Of the function, and its inner products with its own vectors.
    slopes, scores : arrays of shape (rows, columns)
        Of the losses, weights included, and of the function without its intercept.

    Examples
    --------
    >>> one = np.ones((1, 1))
    >>> rounding(1e-7, one, one, one, one) < 1e-5
    True
    """
    shared = float(np.abs(coef * own).sum() + np.abs(slopes * scores).sum())
    squares = np.square(coef).sum(axis=0)
    with np.errstate(over="ignore"):  # of such targets nothing is known
        random = squares + np.sqrt(squares * np.square(slopes).sum(axis=0))
    return float(error) * (shared + RANDOM * float(random.sum()))


def errors_of_scores(error: float, coef: Array, scores: Array) -> Array:
    """How large the errors of scores are, (rows, columns): those that a row has alone, and shared.

    Parameters
    ----------
    error : float
        Bound on the error of a kernel value.
    coef, scores : arrays of shape (vectors, columns) and (rows, columns)
        Of the function, without its intercept.
    """
    with np.errstate(over="ignore"):
        own = np.sqrt(np.square(coef).sum(axis=0))
    return np.asarray(float(error) * (np.abs(scores) + own))


def bent(loss: Any, target: Any, weight: Array, scores: Array, off: Array) -> float:
    """What errors ``off`` of scores may cost beyond what the slopes there say: where losses bend.

    With a large C this is most of it: on the margin slopes are next to nothing.

    Parameters
    ----------
    loss : Loss
        What a mistake costs.
    target, scores, off : arrays of shape (rows, columns)
        Scores with the intercept.
    weight : array of shape (rows,)
        C included.

    Examples
    --------
    >>> from slimsvm.losses import SquaredHinge
    >>> one = np.ones((1, 1))
    >>> round(bent(SquaredHinge(), 1.0, np.full(1, 1e10), one, 1e-5 * one), 6)
    1.0
    """
    with np.errstate(over="ignore", invalid="ignore"):
        here, slopes = loss.value(target, scores), loss.gradient(target, scores)
        sides = [loss.value(target, scores + side) - here - slopes * side for side in (-off, off)]
        total = float(weight @ np.maximum(*sides).clip(0.0).sum(axis=1))
    return np.inf if np.isnan(total) else total


def is_small(n_rows: int) -> bool:
    """Whether so many rows are solved to near rounding errors.

    Examples
    --------
    >>> is_small(1000), is_small(1001)
    (True, False)
    """
    return n_rows <= EXACT
