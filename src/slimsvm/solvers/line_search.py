"""The least value along a line, for sums of losses with a derivative.

    min over t >= 0 of  t slope + t^2 curve / 2 + sum_i weight_i L(y_i, f_i + t d_i),

for each column on its own

Algorithm: Newton's method on the derivative, which never decreases, with bisection or doubling
where a step leaves the bracket.

For rows wherever they are (:func:`least_in`) every look is a sum of two numbers a column; where all
are at one place (:func:`least_along`) it is one compiled loop. Both take the next point from the
same function.

Symbols: f scores; d their change along the line; low, high what brackets the minimum.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from slimsvm.compiled import compiled
from slimsvm.losses import Loss, slopes
from slimsvm.problems.subspace import Subspace, targets, weights
from slimsvm.problems.trail import Direction, Trail, columns_at
from slimsvm.rows import Block, MemoryRows

Array = NDArray[Any]
# two or three are usual; a narrow bend far away is found by doubling and halving
LINE_STEPS = 100
LINE_TOL = 1e-6  # slope at the end, relative to that at the beginning
FAR = 1e300  # for infinity, which compiled loops do not know


def slopes_along(
    block: Block,
    loss: Loss,
    trail: Trail,
    direction: Direction,
    t: Array,
    which: Array,
    slope: Array,
    curve: Array,
) -> Array:
    """A task: first and second derivative by t of the value along a direction, (2, which).

    The value is t slope + t^2 curve / 2 + sum_i weight_i L(y_i, f_i + t d_i).

    Only those of the direction's columns that ``which`` names; the first block of all adds the
    quadratic.
    """
    scores, change = trail.at(block), direction.at(block, trail.span)
    y, weight, out = targets(block), weights(block), np.empty((2, which.size))
    first = 1.0 if block.start == 0 else 0.0
    for k, j in enumerate(which):
        c = j if direction.columns is None else direction.columns[j]
        out[:, k] = _slopes_at(
            *loss.form(), y[:, c], weight, scores[:, c], change[:, j],
            float(t[j]), first * float(slope[j]), first * float(curve[j]),
        )  # fmt: skip
    return out


def least_in(
    problem: Subspace, trail: Trail, direction: Direction, slope: Array, curve: Array
) -> Array:
    """The best step t >= 0 of each of the direction's columns.

    It minimises t slope + t^2 curve / 2 + sum_i weight_i L(y_i, f_i + t d_i).
    """
    rows = problem.columns.rows
    if isinstance(rows, MemoryRows):  # all at one place: no sums are needed
        block, at = rows.block, columns_at(direction, trail.n_columns)
        return least_along(
            problem.loss,
            targets(block)[:, at],
            weights(block),
            trail.at(block)[:, at],
            direction.at(block, trail.span),
            slope,
            curve,
        )
    t, low, high = np.zeros(slope.size), np.zeros(slope.size), np.full(slope.size, FAR)
    at_begin, going = np.zeros(slope.size), np.arange(slope.size)
    for step in range(LINE_STEPS):
        found = rows.sum(slopes_along, problem.loss, trail, direction, t, going, slope, curve)
        at_begin = found[0] if step == 0 else at_begin
        for k, c in enumerate(going):
            bracket = float(t[c]), float(low[c]), float(high[c]), float(at_begin[c])
            t[c], low[c], high[c], ended = _next(step, *bracket, *map(float, found[:, k]))
            if ended:
                going = going[going != c]
        if not going.size:
            break
    return t


def best_shift_in(problem: Subspace, trail: Trail) -> Array:
    """What to add to the scores of each column so that the loss is least."""
    nothing, one = np.zeros(trail.n_columns), np.ones(trail.n_columns)
    up = least_in(problem, trail, Direction(None, one), nothing, nothing)
    if np.all(up > 0):
        return up
    return up - least_in(problem, trail, Direction(None, -one), nothing, nothing)


def best_shift(loss: Loss, target: Array, weight: Array, scores: Array) -> Array:
    """The same for scores of all rows at one place."""
    nothing, ones = np.zeros(scores.shape[1]), np.ones((scores.shape[0], 1))
    up = least_along(
        loss, target, weight, scores, np.broadcast_to(ones, scores.shape), nothing, nothing
    )
    if np.all(up > 0):
        return up
    return up - least_along(
        loss, target, weight, scores, np.broadcast_to(-ones, scores.shape), nothing, nothing
    )


def least_along(
    loss: Loss,
    target: Array,
    weight: Array,
    scores: Array,
    d_scores: Array,
    slope: Array,
    curve: Array,
) -> Array:
    """The best step t >= 0 of each column.

    It minimises t slope + t^2 curve / 2 + sum_i weight_i L(y_i, f_i + t d_i).

    Examples
    --------
    >>> from slimsvm.losses import LeastSquares
    >>> one, zero = np.ones((3, 1)), np.zeros(1)
    >>> y = np.array([[1.0], [2.0], [6.0]])
    >>> least_along(LeastSquares(), y, np.ones(3), 0 * one, one, zero, zero)
    array([3.])
    """
    target, scores, d_scores = (
        np.asfortranarray(values, np.float64) for values in (target, scores, d_scores)
    )

    return np.array(
        [
            _least(
                *loss.form(),
                target[:, c],
                weight,
                scores[:, c],
                d_scores[:, c],
                float(slope[c]),
                float(curve[c]),
            )
            for c in range(scores.shape[1])
        ]
    )


@compiled
def _least(
    form: int, p: float, y: Array, weight: Array, f: Array, d: Array, slope: float, curve: float
) -> float:
    """Newton's method on the derivative, which never decreases."""
    low, high, t, at_begin = 0.0, FAR, 0.0, 0.0
    for step in range(LINE_STEPS):
        first, second = _slopes_at(form, p, y, weight, f, d, t, slope, curve)
        if step == 0:
            at_begin = first
        t, low, high, ended = _next(step, t, low, high, at_begin, first, second)
        if ended:
            break
    return t


@compiled
def _next(
    step: int, t: float, low: float, high: float, at_begin: float, first: float, second: float
) -> tuple[float, float, float, bool]:
    """Where to look next, the bracket, and whether this is the end.

    Steps that leave it are replaced by bisection or doubling.
    """
    if step == 0:
        if first >= 0.0:
            return 0.0, low, high, True
    elif abs(first) <= LINE_TOL * abs(at_begin):
        return t, low, high, True
    if first < 0.0:
        low = t
    else:
        high = t
    newton = t - first / second if second > 0.0 else FAR
    if low < newton < high:
        t = newton
    elif high < FAR:
        t = 0.5 * (low + high)
    else:
        t = max(1.0, 2.0 * t)
    return t, low, high, t in (low, high)


@compiled
def _slopes_at(
    form: int,
    p: float,
    y: Array,
    weight: Array,
    f: Array,
    d: Array,
    t: float,
    slope: float,
    curve: float,
) -> tuple[float, float]:
    """First and second derivative by t."""
    first, second = slope + t * curve, curve
    for i in range(y.size):
        g, h = slopes(form, p, y[i], f[i] + t * d[i])
        first += weight[i] * d[i] * g
        second += weight[i] * d[i] * d[i] * h
    return first, second
