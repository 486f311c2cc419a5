"""A dual point of plain errors with explicit features, brought to near float64 precision.

For few rows.

What a solver with a tolerance leaves is settled by pair steps with all products of rows in memory
(:func:`slimsvm.solvers.smo.polish`). Linear estimators and LowRankSVC end with it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from slimsvm.problems.linear import FAR, Column
from slimsvm.run import Limits
from slimsvm.solvers.interior_point import Factored, minimised
from slimsvm.solvers.smo import polish

Array = NDArray[Any]
# calls of the exact solver, a tenth of a second each: 300 rows whose factor has 5 columns, C = 1e6,
# need 11
POLISHES = 20
FIRST_WORK = 1e7  # of the first: most problems need less, some hundredths of a second
# columns a variable, at most, where what is not settled then is begun anew by an interior-point
# method: few columns leave most directions without curvature, along which active sets and pairs
# take a bound at a time (LinearSVR, 300 rows of 2 features: 11 s without it, 0.1 s with it)
FEW_COLUMNS = 0.3
ROUNDING = 1e-11  # relative violation at which no progress means that rounding is all that is left


def polished(
    X: Array, column: Column, duals: Array, scaling: float, limits: Limits
) -> tuple[Array, Array]:
    """The dual point of one column of plain errors at near float64 precision, and the weights.

    It begins at a point nearby; where the limits end it, the point is nearer than that at least.
    ``scaling`` is that of the intercept: see :mod:`slimsvm.problems.linear`.

    Examples
    --------
    >>> from slimsvm.losses import Hinge
    >>> from slimsvm.problems.linear import LinearFit
    >>> X, y = np.array([[1.0], [-1.0]]), np.array([[1.0], [-1.0]])
    >>> column = LinearFit(X, y, np.full(2, 9.0), Hinge()).column(0)
    >>> v, w = polished(X, column, np.array([0.4, -0.6]), np.inf, Limits())
    >>> v.round(12).tolist(), w.round(12).tolist()
    ([0.5, -0.5], [1.0])
    """
    # a variable for each finite end of an interval: it pulls the score up to it, or down
    up, down = np.flatnonzero(column.low > -FAR), np.flatnonzero(column.high < FAR)
    row = np.concatenate([up, down])
    order = np.argsort(row, kind="stable")
    row, z = row[order], np.repeat([1.0, -1.0], [up.size, down.size])[order]
    o = -np.concatenate([column.low[up], column.high[down]])[order]  # s + z p
    bounds = column.weight[row]
    a = np.clip(z * duals[row], 0.0, bounds)
    K = X @ X.T
    if 0.0 < scaling < np.inf:
        K += scaling**2
    K = np.ascontiguousarray(K[np.ix_(row, row)])
    if scaling == np.inf:  # both signs must have the same sum: the heavier one is scaled down
        _balance(z, a)
    else:  # a variable that costs nothing takes up what the equality demands
        K = np.pad(K, (0, 1))
        room = float(bounds.sum()) + 1.0
        z, bounds = np.append(z, 1.0), np.append(bounds, 2.0 * room)
        a, o = np.append(a, room), np.append(o, 0.0)
    ends, o = o, o + K @ (z * a)
    _, more = polish(K, np.diag(K).copy(), z, bounds, a, o, z.size, work=FIRST_WORK)
    if more and X.shape[1] < FEW_COLUMNS * row.size:
        a[: row.size] = _from_inside(X[row], z[: row.size], ends[: row.size], bounds, scaling)
        if scaling == np.inf:
            _balance(z, a)
        o = ends + K @ (z * a)
    left = _violation(z, bounds, a, o)
    for _ in range(POLISHES):
        if not more or limits.reason() is not None:
            break
        _, more = polish(K, np.diag(K).copy(), z, bounds, a, o, z.size)
        before, left = left, _violation(z, bounds, a, o)
        if left > 0.5 * before and left <= ROUNDING * max(1.0, float(np.max(np.abs(o)))):
            break
    v = np.bincount(row, z[: row.size] * a[: row.size], minlength=X.shape[0])
    w = X.T @ v
    # rounding errors of a zero would decide between equal classes
    w[np.abs(w) <= v.size * np.finfo(float).eps * (np.abs(X).T @ np.abs(v))] = 0.0
    return v, w


def _balance(z: Array, a: Array) -> None:
    """Scale the heavier sign down to the sum of the other, in place."""
    miss = float(z @ a)
    heavy = z > 0 if miss > 0 else z < 0
    total = float(a[heavy].sum())
    if total > 0:
        a[heavy] *= max(0.0, 1.0 - abs(miss) / total)


def _violation(z: Array, bounds: Array, a: Array, o: Array) -> float:
    """Of the KKT conditions: what can fall has no larger o than what can rise."""
    falls, rises = np.where(z > 0, a > 0, a < bounds), np.where(z > 0, a < bounds, a > 0)
    return float(np.max(o[falls], initial=-np.inf) - np.min(o[rises], initial=np.inf))


def _from_inside(G: Array, z: Array, ends: Array, bounds: Array, scaling: float) -> Array:
    """The solution within some 1e-9, from a path that meets no bounds on its way."""
    if 0.0 < scaling < np.inf:
        G = np.column_stack([G, np.full(z.size, scaling)])
    signs = z if scaling == np.inf else None
    return minimised(Factored(G * z[:, None]), z * ends, bounds[: z.size], signs)
