"""Sequential minimal optimisation of a small dense dual problem: the inner solver of the decomposition, and for few rows the whole solver.

    minimise 1/2 a'Qa + p'a over 0 <= a <= upper, z'a fixed (see :mod:`slimsvm.problems.dual_qp`), with the kernel block K in memory.

Algorithm: pairs by second-order information (Fan, Chen & Lin 2005, WSS 2), with the first of a pair the steepest, as in LIBSVM. What differs:
the variables are kept as two arrays, o where they may rise and o where they may fall (a large number elsewhere), so that each pass over
them is vector code. With two equalities the variables are sorted by sign; the pair comes from the part with the larger violation.

Symbols: i bottom (rises by +z), j top (falls by -z), t step, eta curvature along the pair.
Cost of a step: O(q).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from slimsvm.compiled import compiled

Array = NDArray[Any]
FAR = 1e300  # stands for infinity in the arrays: vector code without special cases
TINY = 1e-12  # the least curvature of a pair (LIBSVM's TAU): identical rows with opposite labels still move


@compiled
def _least(values: Array, start: int, end: int) -> float:
    least = FAR
    for v in range(start, end):
        x = values[v]
        least = x if x < least else least
    return least


@compiled
def _largest(values: Array, start: int, end: int) -> float:
    largest = -FAR
    for v in range(start, end):
        x = values[v]
        largest = x if x > largest else largest
    return largest


@compiled
def _find(values: Array, wanted: float, start: int, end: int) -> int:
    for v in range(start, end):
        if values[v] == wanted:
            return v
    return start


@compiled
def _gains(low: Array, bottom: float, diag_i: float, diag: Array, row_i: Array, gain: Array, start: int, end: int) -> float:
    """gain[v] = (o_v - o_i)^2 / eta for the variables above o_i that may fall, zero for the others; returns the largest."""
    best = 0.0
    for v in range(start, end):
        difference = max(low[v] - bottom, 0.0)
        eta = max(diag_i + diag[v] - 2.0 * row_i[v], TINY)
        g = difference * difference / eta
        gain[v] = g
        best = g if g > best else best
    return best


@compiled
def _move(up: Array, low: Array, row_i: Array, row_j: Array, step: float, n: int) -> None:
    for v in range(n):
        change = step * (row_i[v] - row_j[v])
        up[v] += change
        low[v] += change


@compiled
def _place(v: int, o: float, a: Array, sign: Array, upper: Array, up: Array, low: Array) -> None:
    """Enter o_v where the variable may rise and where it may fall."""
    above_zero, below_upper = a[v] > 0.0, a[v] < upper[v]
    up[v] = o if (below_upper if sign[v] > 0 else above_zero) else FAR
    low[v] = o if (above_zero if sign[v] > 0 else below_upper) else -FAR


@compiled
def smo(
    K: Array, diag: Array, sign: Array, upper: Array, a: Array, o: Array, split: int, tol: float, max_steps: int
) -> tuple[int, float]:
    """Improve ``a`` in place until no pair violates by more than ``tol``; returns the number of steps and the violation left.

    ``o`` holds s + z p at entry and at exit. Variables before ``split`` exchange among themselves, those from it on too; split = n: all do.
    """
    n = sign.size
    up, low, gain = np.empty(n), np.empty(n), np.empty(n)
    for v in range(n):
        _place(v, o[v], a, sign, upper, up, low)
    steps = 0
    while True:
        # 1. the part, and in it the bottom variable: the steepest that may rise
        start, end = 0, split
        bottom = _least(up, 0, split)
        violation = _largest(low, 0, split) - bottom
        if split < n:
            other = _least(up, split, n)
            other_violation = _largest(low, split, n) - other
            if other_violation > violation:
                start, end, bottom, violation = split, n, other, other_violation
        if not violation > tol or steps >= max_steps:
            break
        i = _find(up, bottom, start, end)
        # 2. the top variable: the one whose exchange with i promises the largest decrease
        row_i = K[i]
        best = _gains(low, bottom, diag[i], diag, row_i, gain, start, end)
        j = _find(gain, best, start, end)
        # 3. the step, cut at the bounds of both
        row_j = K[j]
        o_i, o_j = bottom, low[j]
        t = (o_j - o_i) / max(diag[i] + diag[j] - 2.0 * row_i[j], TINY)
        room_i = upper[i] - a[i] if sign[i] > 0 else a[i]
        room_j = a[j] if sign[j] > 0 else upper[j] - a[j]
        if t >= room_i or t >= room_j:  # exactly onto the bound: a variable is either free or at one, never nearly so
            t = min(room_i, room_j)
        a[i] = _onto_bound(a[i] + sign[i] * t, upper[i], t == room_i, sign[i] > 0)
        a[j] = _onto_bound(a[j] - sign[j] * t, upper[j], t == room_j, sign[j] < 0)
        # 4. all o, and where i and j may go now
        _move(up, low, row_i, row_j, t, n)
        _place(i, o_i + t * (row_i[i] - row_j[i]), a, sign, upper, up, low)
        _place(j, o_j + t * (row_i[j] - row_j[j]), a, sign, upper, up, low)
        steps += 1
    for v in range(n):
        o[v] = up[v] if up[v] < 0.5 * FAR else low[v]
    return steps, max(violation, 0.0)


@compiled
def _onto_bound(value: float, upper: float, at_bound: bool, rises: bool) -> float:
    if at_bound:
        return upper if rises else 0.0
    return min(max(value, 0.0), upper)


def polish(K: Array, diag: Array, sign: Array, upper: Array, a: Array, o: Array, split: int, rounds: int = 30) -> None:
    """Bring a nearly optimal point to near machine precision, in place.

    At the optimum all free variables of a part have one o. Newton's method finds that point of the current free set in one step, a linear
    system; the step is cut at the first bound, and SMO repairs what the new set of free variables makes wrong. Repeated rows make the system
    singular: the least-squares solution then moves them alike.
    """
    scale = max(1.0, float(np.max(np.abs(o))))
    for _ in range(rounds):
        _, violation = smo(K, diag, sign, upper, a, o, split, 1e-14 * scale, 20 * a.size)
        free = np.flatnonzero((a > 0) & (a < upper))
        if violation <= 1e-13 * scale or free.size < 2:
            return
        parts = np.stack([free < split, free >= split], axis=1).astype(np.float64)
        parts = parts[:, parts.any(axis=0)]
        n, n_parts = free.size, parts.shape[1]
        system = np.zeros((n + n_parts, n + n_parts))
        system[:n, :n] = K[np.ix_(free, free)]
        system[:n, n:], system[n:, :n] = parts, parts.T
        change = np.linalg.lstsq(system, np.concatenate([-o[free], np.zeros(n_parts)]), rcond=1e-13)[0][:n]
        step_a = sign[free] * change
        with np.errstate(divide="ignore", invalid="ignore"):
            room = np.where(step_a > 0, (upper[free] - a[free]) / step_a, np.where(step_a < 0, -a[free] / step_a, np.inf))
        t = min(1.0, float(room.min()))
        if not np.isfinite(t):
            return
        trial = a.copy()
        trial[free] = np.clip(a[free] + t * step_a, 0.0, upper[free])
        if t < 1.0:  # exactly onto the bound that cut the step
            cut = room <= t
            trial[free[cut]] = np.where(step_a[cut] > 0, upper[free[cut]], 0.0)
        moved = sign * (trial - a)
        a[:] = trial
        o += K @ moved
