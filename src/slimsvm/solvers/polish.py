"""The hinge's dual point with explicit features, brought to near float64 precision: for few rows.

What a solver with a tolerance leaves is settled by pair steps with all products of rows in memory
(:func:`slimsvm.solvers.smo.polish`). LinearSVC and LowRankSVC end with it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from slimsvm.run import Limits
from slimsvm.solvers.smo import polish

Array = NDArray[Any]
# calls of the exact solver, a tenth of a second each: 300 rows whose factor has 5 columns, C = 1e6,
# need 11
POLISHES = 20


def polished(
    X: Array, sign: Array, upper: Array, duals: Array, fit_intercept: bool, limits: Limits
) -> tuple[Array, Array]:
    """The hinge's dual point of one column at near float64 precision, and the weights.

    It begins at a point nearby; where the limits end it, the point is nearer than that at least.

    Examples
    --------
    >>> import numpy as np
    >>> from slimsvm.run import Limits
    >>> from slimsvm.solvers.polish import polished
    >>> X, sign = np.array([[1.0], [-1.0]]), np.array([1.0, -1.0])
    >>> a, w = polished(X, sign, np.full(2, 9.0), np.array([0.4, 0.6]), True, Limits())
    >>> a.round(12).tolist(), w.round(12).tolist()
    ([0.5, 0.5], [1.0])
    """
    n = sign.size
    K, a = X @ X.T, np.clip(duals, 0.0, upper)
    z, bounds, o = sign, upper, -sign  # o = s + z p, p = -1
    if fit_intercept:  # the sum over both classes must be the same: the heavier one is scaled down
        miss = float(sign @ a)
        heavy = sign > 0 if miss > 0 else sign < 0
        total = float(a[heavy].sum())
        if total > 0:
            a[heavy] *= max(0.0, 1.0 - abs(miss) / total)
    else:  # a variable that costs nothing takes up what the equality demands
        K = np.pad(K, (0, 1))
        room = float(upper.sum()) + 1.0
        z, bounds = np.append(z, 1.0), np.append(bounds, 2.0 * room)
        a, o = np.append(a, room), np.append(o, 0.0)
    o = o + K @ (z * a)
    for _ in range(POLISHES):
        _, more = polish(K, np.diag(K).copy(), z, bounds, a, o, z.size)
        if not more or limits.reason() is not None:
            break
    a = a[:n]
    w = X.T @ (sign * a)
    # rounding errors of a zero would decide between equal classes
    w[np.abs(w) <= n * np.finfo(float).eps * (np.abs(X).T @ a)] = 0.0
    return a, w
