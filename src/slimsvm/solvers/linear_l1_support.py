"""Newton's steps in the weights that are not zero, for an l1 penalty on many sparse features.

Problem: that of :mod:`slimsvm.solvers.linear_l1`. Passes over single weights find out soon which
weights are not zero, and then crawl: hundreds of passes change no sign.

Algorithm: with the signs held, the objective is smooth: Newton's system of the weights that are not
zero, with the rows that have an error, is solved by conjugate gradients scaled by the diagonal
(as :mod:`slimsvm.solvers.linear_primal` does). A weight stops where its sign would change, and the
step is halved until the objective falls. The rows are laid out once for a step: what conjugate
gradients read is then next to each other.

Symbols: Z the rows with an error and the features chosen, a line a row; H = Z' diag(2 weight) Z; g
the slope with the signs held. Cost of a step: the entries of the chosen columns, three times, and
twice those of Z for each of its CG steps.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from slimsvm.compiled import compiled

Array = NDArray[Any]
FORCING = 0.1  # conjugate gradients end at this share of the slope
MOST_CG = 100
MOST_HALVINGS = 8
SLOPE = 1e-3  # share of the expected fall that a step must bring
RIDGE = 1e-12  # of the mean diagonal of H: fewer rows than weights leave it singular


@compiled
def _laid_out(
    indptr: Array, indices: Array, data: Array, chosen: Array, free: bool, e: Array,
    ends: Array, at: Array,
) -> int:  # fmt: skip
    """Where the lines of Z end, and the place of each row in it, -1 for those without an error."""
    n_lines = 0
    for i in range(e.size):
        at[i] = -1
        if e[i] > 0.0:
            at[i] = n_lines
            n_lines += 1
            ends[n_lines] = 1 if free else 0
    for c in range(chosen.size):
        for p in range(indptr[chosen[c]], indptr[chosen[c] + 1]):
            line = at[indices[p]]
            if line >= 0:
                ends[line + 1] += 1
    ends[0] = 0
    for line in range(n_lines):
        ends[line + 1] += ends[line]
    return n_lines


@compiled
def _filled(
    indptr: Array, indices: Array, data: Array, chosen: Array, free: bool, at: Array,
    ends: Array, n_lines: int, columns: Array, values: Array,
) -> None:  # fmt: skip
    """The entries of Z; a free intercept is its last column."""
    next_ = ends[:n_lines].copy()
    for c in range(chosen.size):
        for p in range(indptr[chosen[c]], indptr[chosen[c] + 1]):
            line = at[indices[p]]
            if line >= 0:
                columns[next_[line]], values[next_[line]] = c, data[p]
                next_[line] += 1
    if free:
        for line in range(n_lines):
            columns[next_[line]], values[next_[line]] = chosen.size, 1.0


@compiled
def _direction(
    ends: Array, columns: Array, values: Array, twice: Array, diagonal: Array, slope: Array,
    x: Array,
) -> int:  # fmt: skip
    """Solve H x = -slope, nearly; the number of CG steps."""
    m, n_lines = slope.size, ends.size - 1
    r, p, q = np.empty(m), np.empty(m), np.empty(m)
    rz, goal, ridge = 0.0, 0.0, 0.0
    for k in range(m):
        ridge += diagonal[k]
    ridge = RIDGE * ridge / m + 1e-300
    for k in range(m):
        x[k], r[k] = 0.0, -slope[k]
        p[k] = r[k] / (diagonal[k] + ridge)
        rz += r[k] * p[k]
    goal = FORCING * FORCING * rz
    steps = 0
    while rz > goal and steps < MOST_CG:
        for k in range(m):
            q[k] = ridge * p[k]
        for line in range(n_lines):
            first, last = ends[line], ends[line + 1]
            s0, s1 = 0.0, 0.0
            t = first
            while t + 1 < last:
                s0 += values[t] * p[columns[t]]
                s1 += values[t + 1] * p[columns[t + 1]]
                t += 2
            if t < last:
                s0 += values[t] * p[columns[t]]
            u = twice[line] * (s0 + s1)
            for t in range(first, last):
                q[columns[t]] += u * values[t]
        bend = 0.0
        for k in range(m):
            bend += p[k] * q[k]
        if not bend > 0.0:
            break
        a, old, rz = rz / bend, rz, 0.0
        for k in range(m):
            x[k] += a * p[k]
            r[k] -= a * q[k]
            rz += r[k] * r[k] / (diagonal[k] + ridge)
        for k in range(m):
            p[k] = r[k] / (diagonal[k] + ridge) + rz / old * p[k]
        steps += 1
    return steps


@compiled
def newton_on_support(
    indptr: Array, indices: Array, data: Array, free: bool, y: Array, c: Array, e: Array, w: Array
) -> tuple[bool, float, float]:  # fmt: skip
    """One step, in place: whether there was one, the change of a free intercept, entries visited.

    Parameters
    ----------
    indptr, indices, data : arrays
        The features, in CSC format.
    free : bool
        Whether there is an intercept without a penalty.
    y, c, e, w : arrays
        Signs and weights of the rows; 1 - y f, and the weights of the features, both changed.
    """
    n = e.size
    chosen = np.flatnonzero(w)
    m = chosen.size + (1 if free else 0)
    if m == 0:
        return False, 0.0, 0.0
    ends, at = np.empty(n + 1, np.int64), np.empty(n, np.int64)
    n_lines = _laid_out(indptr, indices, data, chosen, free, e, ends, at)
    if n_lines == 0:
        return False, 0.0, float(n)
    ends = ends[: n_lines + 1]
    columns, values = np.empty(ends[n_lines], np.uint32), np.empty(ends[n_lines])
    _filled(indptr, indices, data, chosen, free, at, ends, n_lines, columns, values)
    # 1. slope and diagonal
    slope, diagonal, twice = np.zeros(m), np.zeros(m), np.empty(n_lines)
    for k in range(chosen.size):
        slope[k] = 1.0 if w[chosen[k]] > 0.0 else -1.0
    now, entries = 0.0, 0.0
    for k in range(chosen.size):
        now += abs(w[chosen[k]])
        entries += indptr[chosen[k] + 1] - indptr[chosen[k]]
    for i in range(n):
        line = at[i]
        if line >= 0:
            twice[line] = 2.0 * c[i]
            now += c[i] * e[i] * e[i]
            u = 2.0 * c[i] * y[i] * e[i]
            for t in range(ends[line], ends[line + 1]):
                slope[columns[t]] -= u * values[t]
                diagonal[columns[t]] += twice[line] * values[t] * values[t]
    # 2. the direction
    step = np.empty(m)
    n_cg = _direction(ends, columns, values, twice, diagonal, slope, step)
    expected = 0.0
    for k in range(m):
        expected += slope[k] * step[k]
    visited = float(ends[n_lines]) * (2.0 * n_cg + 3.0)
    if not expected < 0.0:
        return False, 0.0, visited
    # 3. as far as the objective falls; a weight stops where its sign would change
    length, new_e, new = 1.0, np.empty(n), np.empty(m)
    for _ in range(MOST_HALVINGS):
        value, fall = 0.0, 0.0
        for i in range(n):
            new_e[i] = e[i]
        for k in range(m):
            change = length * step[k]
            if k < chosen.size:
                j = chosen[k]
                new[k] = w[j] + change
                if new[k] * w[j] <= 0.0:
                    new[k] = 0.0
                change = new[k] - w[j]
                value += abs(new[k])
                for p in range(indptr[j], indptr[j + 1]):
                    i = indices[p]
                    new_e[i] -= change * y[i] * data[p]
            else:
                new[k] = change
                for i in range(n):
                    new_e[i] -= change * y[i]
            fall += slope[k] * change
        visited += entries
        for i in range(n):
            if new_e[i] > 0.0:
                value += c[i] * new_e[i] * new_e[i]
        if value < now + SLOPE * min(fall, 0.0):
            for k in range(chosen.size):
                w[chosen[k]] = new[k]
            for i in range(n):
                e[i] = new_e[i]
            return True, new[m - 1] if free else 0.0, visited
        length *= 0.5
    return False, 0.0, visited
