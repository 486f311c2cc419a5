"""What a path of sizes comes to: the model at each size, and how well they do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slimsvm.compiled import compiled
from slimsvm.ending import SUBSPACE, Certificate
from slimsvm.expansion import Expansion

Array = NDArray[Any]
STEPS = (1, 2, 5)  # the sizes of a path: these, times powers of ten
HISTORY = ("objective", "n_basis")  # what solvers inside say of their steps, all of them


@dataclass(frozen=True)
class PathPoint:
    """The model at one size of the basis.

    Attributes
    ----------
    n_basis : int
        Number of basis vectors.
    basis, coef, intercept : arrays
        The model; coef has one column for each output.
    indices : array or None
        Which training rows the basis vectors are, if they are rows.
    objective : float
        Value of the problem, over all columns.
    gap : float
        How far that is above the optimum within the span of this basis, at most.
    training_score : float
        Accuracy, or R^2, on the rows it was trained on.
    validation_score : float or None
        The same on the rows held out, if there are any.
    projection_error : float or None
        Of cuts: how much of one at most lies outside of the span (delta in the paper, whose cuts
        are means over the rows).
    bound : float or None
        The objective is at most so far above that of the exact solution with the same loss.
    rounding : float
        About how much rounding of kernel values may have changed the objective; part of ``gap``.
    metric, widths : arrays or None
        Of a descent: the metric that the vectors are in, and factors of gamma, one for each.
    """

    n_basis: int
    basis: Any = field(repr=False)
    coef: Array = field(repr=False)
    intercept: Array = field(repr=False)
    indices: Array | None = field(repr=False)
    objective: float
    gap: float
    training_score: float
    validation_score: float | None
    projection_error: float | None = None
    bound: float | None = None
    rounding: float = 0.0
    metric: Array | None = field(default=None, repr=False)
    widths: Array | None = field(default=None, repr=False)

    def certificate(self, tol: float, precision: str, scope: str = SUBSPACE) -> Certificate:
        """How far from the optimum the model is; ``violation`` is the gap over the objective."""
        gap = self.gap - self.rounding
        relative = gap / self.objective if self.objective > 0 else 0.0
        about = (tol, precision, self.projection_error, self.bound)
        return Certificate(scope, self.objective, relative, gap, *about).rounded(self.rounding)


@dataclass(frozen=True, eq=False, repr=False)
class PathModel:
    """The models at all sizes, smallest first, and which of them was looked for."""

    points: list[PathPoint]
    chosen: PathPoint
    wanted: int  # size that was asked for
    # (n, columns), where the derivative of the loss does not say them
    row_duals: Array | None = None


@dataclass(frozen=True, eq=False, repr=False)
class Scoring:
    """How well a model does: ``measure`` of scores, targets and weights; rows held out, if any."""

    measure: Callable[[Array, Array, Array], float]
    held_out: tuple[Any, Array, Array] | None = None  # rows as they were given, targets, weights
    n_threads: int = 1

    def validated(self, f: Expansion) -> float | None:
        """Its measure on the rows held out."""
        if self.held_out is None:
            return None
        X, target, weight = self.held_out
        return self.measure(f.decision_function(X, self.n_threads), target, weight)

    def while_moving(self, columns: Any) -> Callable[[Any, Any], float] | None:
        """The same of vectors that are being moved, for :func:`slimsvm.solvers.refine.refine`."""
        if self.held_out is None:
            return None

        def score(vectors: Any, solution: Any) -> float:
            basis = columns.in_given_coordinates(vectors)
            coef, intercept = solution.coef, solution.intercept
            f = Expansion(columns.kernel, basis, coef, intercept, exact=False)
            return float(self.validated(f) or 0.0)

        return score


def accuracy(scores: Array, target: Array, weight: Array) -> float:
    """The weighted share of rows whose class is found: a measure for labels in columns of +-1."""
    if target.shape[1] > 1:
        return _found(scores, target, weight) / float(weight.sum())
    return float(np.average((scores[:, 0] > 0) == (target[:, 0] > 0), weights=weight))


@compiled
def _found(scores: Array, target: Array, weight: Array) -> float:
    """The weight of rows whose largest score is where the largest target is."""
    found = 0.0
    for i in range(scores.shape[0]):
        ours, theirs = 0, 0
        for j in range(1, scores.shape[1]):
            ours = j if scores[i, j] > scores[i, ours] else ours
            theirs = j if target[i, j] > target[i, theirs] else theirs
        if ours == theirs:
            found += weight[i]
    return found


def r_squared(scores: Array, target: Array, weight: Array) -> float:
    """The weighted coefficient of determination: a measure for one column of numbers."""
    if not weight.sum() > 0:  # C so small that the products with it are zero
        return 0.0
    mean = np.average(target[:, 0], weights=weight)
    spread = float(weight @ np.square(target[:, 0] - mean))
    if not spread > 0:
        return 0.0
    return 1.0 - float(weight @ np.square(target[:, 0] - scores[:, 0])) / spread


def sizes_up_to(most: int) -> list[int]:
    """1, 2, 5, 10, ... up to most, and most.

    Examples
    --------
    >>> sizes_up_to(12)
    [1, 2, 5, 10, 12]
    """
    sizes = [step * 10**power for power in range(len(str(most))) for step in STEPS]
    return [*(size for size in sizes if size < most), most]
