"""Solutions for many values of C from one kernel matrix in memory, with some rows held out.

Problem: classification and regression in one variable a row,

    minimise 1/2 b'Kb - t'b + epsilon |b|_1   subject to   lower <= b <= upper,  e'b = 0,

where t are labels -1 and +1 with epsilon = 0, and each b has the sign of its label; or targets,
with bounds on both sides of zero. It is the dual problem of :mod:`slimsvm.problems.dual_qp` with
b = z a. The bounds are C times the weights; a row that is held out has weight zero, so that its
inner product s = Kb is kept up to date like all others and is its score in the end.

Algorithm: decomposition (Joachims 1999) with working sets of some hundred rows, chosen by steepest
feasible descent, and SMO with second-order pairs (Fan, Chen & Lin 2005) inside. Along ascending C,
a solution times one factor is the start of the next: b, s *= clip((t'b - epsilon |b|) / b'Kb, 1,
C_new / C_old), without any product. Of five starts tried it was the best. The kernel block of the
rows that mattered is kept along the path. Minima and maxima are taken over integers with the same
order as the numbers: that is vector code without reassociation, which floating point minima are
not.

Symbols: o = s - t; up, low: the slope where a row may rise and where it may fall, a large number
elsewhere; bottom, top: the least and largest of them; B block of the rows S; q their number.
Cost of a step of SMO: O(q); of a round: O(n) for every row that moved.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types
from numba.extending import overload
from numpy.typing import NDArray

from slimsvm.compiled import compiled, compiled_within
from slimsvm.ranks import number_of_rank

Array = NDArray[Any]
FAR = 1e30  # stands for infinity; a float32, too
WIDE = 64  # rows whose extremes are found at once
PLACES = 2047  # bits of a place in the block
WORKING_SET = 512  # measured: 256 to 1,024 are alike
BLOCK = 2048  # rows of the block that is kept; a multiple of WIDE
SIDE = 32  # of the squares in which the block is mirrored
LARGER = 2  # times the rows that matter now: so large the block may be before others leave it
SPARE = 32  # rows beyond that
INNER = 0.1  # of the violation: how far SMO goes in a working set
MOST_ROUNDS = 1000
# of SMO for one C, a row and in all: where that does not do, the matrix is badly conditioned, and
# the estimator by itself has other means
STEPS_A_ROW, MOST_STEPS = 1000, 20_000


def _key(x: Any) -> Any:
    """An integer with the order of the numbers; for compiled callers."""
    raise NotImplementedError


def _number(key: Any) -> Any:
    """The number that has the key; for compiled callers."""
    raise NotImplementedError


def _marked(key: Any, k: int) -> Any:
    """The key with k in its last bits; for compiled callers."""
    raise NotImplementedError


def _gain(difference: Any, eta: Any, k: int) -> Any:
    """Half the logarithm of difference^2 / eta, nearly, and k in the last bits of it.

    The bits of a positive number are nearly its logarithm; so this costs no division.
    """
    raise NotImplementedError


# No annotations: Numba compares them with those of the function returned.
@overload(_key)
def _key_of(x):  # type: ignore[no-untyped-def]
    if x == types.float32:
        return lambda x: _turned32(np.float32(x).view(np.int32))
    return lambda x: _turned64(np.float64(x).view(np.int64))


@overload(_number)
def _number_of(key):  # type: ignore[no-untyped-def]
    if key == types.int32:
        return lambda key: _turned32(key).view(np.float32)
    return lambda key: _turned64(key).view(np.float64)


@overload(_marked)
def _marked_of(key, k):  # type: ignore[no-untyped-def]
    if key == types.int32:
        return lambda key, k: np.int32(np.int32(key & np.int32(~PLACES)) | np.int32(k))
    return lambda key, k: (key & ~PLACES) | k


@overload(_gain)
def _gain_of(difference, eta, k):  # type: ignore[no-untyped-def]
    if difference == types.float32:

        def of_float32(difference, eta, k):  # type: ignore[no-untyped-def]
            root = np.int32(np.float32(eta).view(np.int32) >> np.int32(1))
            gain = np.int32(np.float32(difference).view(np.int32) - root)
            return np.int32(np.int32(gain & np.int32(~PLACES)) | np.int32(k))

        return of_float32

    def of_float64(difference, eta, k):  # type: ignore[no-untyped-def]
        root = np.float64(eta).view(np.int64) >> 1
        return ((np.float64(difference).view(np.int64) - root) & ~PLACES) | k

    return of_float64


@compiled_within
def _turned32(i: Any) -> Any:
    """Bits of negative numbers in the order of the numbers, and back."""
    return np.int32(i ^ np.int32((i >> np.int32(31)) & np.int32(0x7FFFFFFF)))


@compiled_within
def _turned64(i: Any) -> Any:
    return np.int64(i ^ np.int64((i >> np.int64(63)) & np.int64(0x7FFFFFFFFFFFFFFF)))


@compiled
def _best_partner(
    low: Array, bottom: Any, diag: Array, i: int, row: Array, tiny: Any, n: int
) -> int:
    """The row whose exchange with i promises the largest decrease, up to some percent."""
    zero, two, d_i = low.dtype.type(0), low.dtype.type(2), diag[i]
    best = _gain(zero, low.dtype.type(FAR), 0)
    for k in range(n):
        eta = max(d_i + diag[k] - two * row[k], tiny)
        best = max(best, _gain(max(low[k] - bottom, zero), eta, k))
    return int(best & PLACES)


@compiled
def _move(up: Array, low: Array, row_i: Array, row_j: Array, t: Any, n: int) -> tuple[Any, Any]:
    """All slopes after a step; the key of the least, with its place, and that of the largest."""
    far = up.dtype.type(FAR)
    least, largest = _key(far), _key(-far)
    for k in range(n):
        change = t * (row_i[k] - row_j[k])
        x, y = up[k] + change, low[k] + change
        up[k], low[k] = x, y
        least, largest = min(least, _marked(_key(x), k)), max(largest, _key(y))
    return least, largest


@compiled
def _place(
    v: int, o: Any, b: Array, lower: Array, upper: Array, epsilon: Any, up: Array, low: Array
) -> None:
    """Enter the slopes of a row where it may rise and where it may fall."""
    far = up.dtype.type(FAR)
    up[v] = (o + epsilon if b[v] >= 0.0 else o - epsilon) if b[v] < upper[v] else far
    low[v] = (o + epsilon if b[v] > 0.0 else o - epsilon) if b[v] > lower[v] else -far


@compiled
def _pairs(
    B: Array,
    diag: Array,
    q: int,
    lower: Array,
    upper: Array,
    epsilon: float,
    b: Array,
    o: Array,
    tiny: float,
    tol: float,
    most: int,
) -> int:
    """Steps of SMO among the q rows of the block, until no pair violates by more than tol."""
    n = (q + WIDE - 1) // WIDE * WIDE
    kind = B.dtype.type
    up, low = np.full(n, kind(FAR)), np.full(n, -kind(FAR))
    eps, least_eta = kind(epsilon), kind(tiny)
    for v in range(q):
        _place(v, kind(o[v]), b, lower, upper, eps, up, low)
    bottom_key, top_key = _move(up, low, B[0], B[0], kind(0), n)
    steps = 0
    while steps < most:
        # the steepest row, but for the last bits of its slope; exactly, where that decides
        i = int(bottom_key & PLACES)
        bottom = up[i]
        if not top_key > _key(kind(bottom + kind(tol))):
            for v in range(n):
                if up[v] < bottom:
                    i, bottom = v, up[v]
            if not top_key > _key(kind(bottom + kind(tol))):
                break
        row_i = B[i]
        j = _best_partner(low, bottom, diag, i, row_i, least_eta, n)
        if not low[j] > bottom:  # the logarithm does not tell such small ones apart
            break
        row_j = B[j]
        o_i = bottom - (eps if b[i] >= 0.0 else -eps)
        o_j = low[j] - (eps if b[j] > 0.0 else -eps)
        t = float(low[j] - bottom) / max(
            float(diag[i]) + float(diag[j]) - 2.0 * float(row_i[j]), tiny
        )
        # exactly onto a bound, or onto zero, where the slope of regression has its kink
        end_i = 0.0 if b[i] < 0.0 and upper[i] > 0.0 else upper[i]
        end_j = 0.0 if b[j] > 0.0 and lower[j] < 0.0 else lower[j]
        room_i, room_j = end_i - b[i], b[j] - end_j
        t = min(t, room_i, room_j)
        b[i] = end_i if t == room_i else b[i] + t
        b[j] = end_j if t == room_j else b[j] - t
        up[i] = up[j] = kind(FAR)
        low[i] = low[j] = -kind(FAR)
        step = kind(t)
        bottom_key, top_key = _move(up, low, row_i, row_j, step, n)
        _place(i, o_i + step * (row_i[i] - row_j[i]), b, lower, upper, eps, up, low)
        _place(j, o_j + step * (row_i[j] - row_j[j]), b, lower, upper, eps, up, low)
        bottom_key = min(bottom_key, _marked(_key(up[i]), i), _marked(_key(up[j]), j))
        top_key = max(top_key, _key(low[i]), _key(low[j]))
        steps += 1
    return steps


@compiled
def _add_rows(
    K: Array, rows: Array, change: Array, s: Array, first: int, middle: int, second: int, end: int
) -> None:
    """s += sum_r change[r] K[rows[r]], at the columns first..middle and second..end."""
    kind, n = K.dtype.type, rows.size
    n4 = n - n % 4
    for part in range(2):
        start, stop, base = (first, middle, 0) if part == 0 else (second, end, middle - first)
        for c in range(start, stop, 2048):
            width = min(stop, c + 2048) - c
            out = s[base + c - start : base + c - start + width]
            for r in range(0, n4, 4):
                d0, d1 = kind(change[r]), kind(change[r + 1])
                d2, d3 = kind(change[r + 2]), kind(change[r + 3])
                v0, v1 = K[rows[r], c : c + width], K[rows[r + 1], c : c + width]
                v2, v3 = K[rows[r + 2], c : c + width], K[rows[r + 3], c : c + width]
                for k in range(width):
                    out[k] += (d0 * v0[k] + d1 * v1[k]) + (d2 * v2[k] + d3 * v3[k])
            for r in range(n4, n):
                d0, v0 = kind(change[r]), K[rows[r], c : c + width]
                for k in range(width):
                    out[k] += d0 * v0[k]


@compiled
def borders(
    target: Array, lower: Array, upper: Array, epsilon: float, b: Array, s: Array,
    up: Array, low: Array,
) -> tuple[float, float]:  # fmt: skip
    """The slopes of all rows; the least and the largest."""
    bottom, top = _key(FAR), _key(-FAR)
    for v in range(target.size):
        o = s[v] - target[v]
        rising = o + epsilon if b[v] >= 0.0 else o - epsilon
        falling = o + epsilon if b[v] > 0.0 else o - epsilon
        up[v] = rising if b[v] < upper[v] else FAR
        low[v] = falling if b[v] > lower[v] else -FAR
        bottom, top = min(bottom, _key(up[v])), max(top, _key(low[v]))
    return _number(bottom), _number(top)


@compiled
def _level(
    lower: Array, upper: Array, epsilon: float, b: Array, low: Array, bottom: float, top: float
) -> float:
    """Where the slopes of the free rows are; without any, between the two ends."""
    total, n_free = 0.0, 0
    for v in range(b.size):
        if lower[v] < b[v] < upper[v] and (b[v] != 0.0 or epsilon == 0.0):
            total += low[v]
            n_free += 1
    if n_free:
        return total / n_free
    if bottom >= FAR or top <= -FAR:
        return bottom if bottom < FAR else top if top > -FAR else 0.0
    return 0.5 * (bottom + top)


@compiled
def _chosen(up: Array, low: Array, bottom: float, top: float, most: int) -> Array:
    """The rows that are free or pair with a violation; if there are too many, the steepest.

    The level will be somewhere between the ends: rows at a bound that are on the right side of the
    middle would pair with a few only, and if they should matter after all, the next round has them.
    """
    n, found, middle = up.size, 0, 0.5 * (bottom + top)
    candidates = np.empty(n, np.int64)
    rising, falling = np.empty(n), np.empty(n)
    n_rising = n_falling = 0
    for v in range(n):
        if up[v] < middle or low[v] > middle or (up[v] < FAR and low[v] > -FAR and up[v] <= low[v]):
            candidates[found] = v
            found += 1
            if up[v] < FAR:
                rising[n_rising] = up[v]
                n_rising += 1
            if low[v] > -FAR:
                falling[n_falling] = -low[v]
                n_falling += 1
    if found <= most:
        return candidates[:found].copy()
    half = most // 2
    least, largest = FAR, FAR
    if n_rising > half:
        least = number_of_rank(rising[:n_rising], half - 1)
    if n_falling > half:
        largest = number_of_rank(falling[:n_falling], half - 1)
    out, kept, n_up, n_low = np.empty(2 * half, np.int64), 0, 0, 0
    for k in range(found):
        v = candidates[k]
        if up[v] < FAR and up[v] <= least and n_up < half:
            n_up += 1
        elif low[v] > -FAR and -low[v] <= largest and n_low < half:
            n_low += 1
        else:
            continue
        out[kept] = v
        kept += 1
    return out[:kept].copy()


@compiled
def _extend(K: Array, place_of: Array, new: Array, S: Array, place: Array, q: int, B: Array) -> int:
    """The block with more rows; its new number of rows."""
    old = q
    for k in range(new.size):
        if place[new[k]] < 0:
            place[new[k]] = q
            S[q] = new[k]
            q += 1
    columns = np.empty(q, np.int64)
    for c in range(q):
        columns[c] = place_of[S[c]]
    for r in range(old, q):
        row, out = K[columns[r]], B[r]
        for c in range(q):
            out[c] = row[columns[c]]
    # the matrix is symmetric, and the block is at hand; through squares, for the cache
    for r0 in range(0, old, SIDE):
        last = min(old, r0 + SIDE)
        for c in range(old, q):
            row = B[c]
            for r in range(r0, last):
                B[r, c] = row[r]
    return q


@compiled
def _keep(chosen: Array, S: Array, place: Array, q: int, B: Array) -> int:
    """The block with the rows alone that are chosen; their number. Values move within the block."""
    for r in range(q):
        place[S[r]] = -1
    for k in range(chosen.size):
        place[chosen[k]] = -2
    kept, old = 0, np.empty(q, np.int64)
    for r in range(q):
        if place[S[r]] == -2:
            old[kept] = r
            kept += 1
    for k in range(chosen.size):
        place[chosen[k]] = -1
    for r in range(kept):  # upwards: nothing is overwritten that is still to be read
        row, out = B[old[r]], B[r]
        for c in range(kept):
            out[c] = row[old[c]]
        S[r] = S[old[r]]
        place[S[r]] = r
    return kept


@compiled
def _solve(
    K: Array,
    diag: Array,
    edges: Array,
    place_of: Array,
    target: Array,
    lower: Array,
    upper: Array,
    epsilon: float,
    b: Array,
    s: Array,
    tol: float,
    tiny: float,
    B: Array,
    S: Array,
    place: Array,
    q: int,
) -> tuple[float, float, int]:
    """One problem, in place; the level, the violation that is left, and the rows of the block."""
    n, least = target.size, FAR
    up, low, block_diag = np.empty(n), np.empty(n), np.ones(B.shape[0], B.dtype)
    bottom = top = violation = 0.0
    stuck = steps = 0
    # of many rows with a loss, each must have been in a working set before the violation falls
    most_stuck = 20 + 4 * n // WORKING_SET
    for _ in range(MOST_ROUNDS):
        # 1. how far it is, and the rows that matter
        bottom, top = borders(target, lower, upper, epsilon, b, s, up, low)
        violation = max(0.0, top - bottom)
        stuck = 0 if violation < 0.999 * least else stuck + 1
        least = min(least, violation)
        if not violation > tol or stuck > most_stuck or steps > STEPS_A_ROW * n + MOST_STEPS:
            break
        chosen = _chosen(up, low, bottom, top, min(WORKING_SET, B.shape[0]))
        new = 0
        for k in range(chosen.size):
            new += place[chosen[k]] < 0
        if q + new > B.shape[0] or q > LARGER * chosen.size + SPARE:
            q = _keep(chosen, S, place, q, B)
        q = _extend(K, place_of, chosen, S, place, q, B)
        for r in range(q):
            block_diag[r] = diag[place_of[S[r]]]
        # 2. the subproblem
        least_x, most_x, x, o = np.empty(q), np.empty(q), np.empty(q), np.empty(q)
        for r in range(q):
            v = S[r]
            least_x[r], most_x[r] = lower[v], upper[v]
            x[r], o[r] = b[v], s[v] - target[v]
        goal = max(0.5 * tol, INNER * violation)
        most = 100 * q + 1000
        steps += _pairs(B, block_diag, q, least_x, most_x, epsilon, x, o, tiny, goal, most)
        # 3. the inner products of all rows, held out or not
        moved, rows, change = 0, np.empty(q, np.int64), np.empty(q)
        for r in range(q):
            if x[r] != b[S[r]]:
                rows[moved], change[moved] = place_of[S[r]], x[r] - b[S[r]]
                b[S[r]] = x[r]
                moved += 1
        if not moved:
            break
        _add_rows(K, rows[:moved], change[:moved], s, edges[0], edges[1], edges[2], edges[3])
    level = _level(lower, upper, epsilon, b, low, bottom, top)
    return level, violation, q


@compiled
def solution_paths(
    K: Array,
    diag: Array,
    edges: Array,
    target: Array,
    below: Array,
    above: Array,
    epsilon: float,
    Cs: Array,
    tol: float,
    tiny: float,
    B: Array,
    S: Array,
    place: Array,
    size: Array,
    given: bool,
    coef: Array,
    score: Array,
    level: Array,
    violation: Array,
) -> None:
    """Solve several problems for ascending C.

    They have the rows edges[0]..edges[1] and edges[2]..edges[3] of K. Row f of the other arrays is
    about problem f; its bounds are -C below[f] and C above[f]. For each problem and C:
    coefficients, inner products of all these rows, the level (minus the intercept), and the
    violation that is left. Where they are ``given``, coefficients with their inner products are the
    start for each C. C is the outer loop: folds of the same rows need nearly the same block
    of kernel values for one C, and a smaller one for the next.
    """
    n, first = target.shape[1], edges[1] - edges[0]
    place_of, lower, upper = np.empty(n, np.int64), np.empty(n), np.empty(n)
    for v in range(n):
        place_of[v] = edges[0] + v if v < first else edges[2] + v - first
    for c in range(Cs.size):
        for f in range(target.shape[0]):
            b, s, t = coef[f, c], score[f, c], target[f]
            if (
                c > 0 and not given and violation[f, c - 1] > 100.0 * tol
            ):  # so it will be for larger C
                level[f, c], violation[f, c] = 0.0, FAR
                for v in range(n):
                    b[v] = s[v] = 0.0
                continue
            for v in range(n):
                lower[v], upper[v] = -Cs[c] * below[f, v], Cs[c] * above[f, v]
            if c == 0 and not given:
                for v in range(n):
                    b[v] = s[v] = 0.0
            elif not given:
                slope = bend = 0.0
                before, s_before = coef[f, c - 1], score[f, c - 1]
                for v in range(n):
                    slope += t[v] * before[v] - epsilon * abs(before[v])
                    bend += before[v] * s_before[v]
                factor = min(max(slope / max(bend, 1e-300), 1.0), Cs[c] / Cs[c - 1])
                for v in range(n):
                    b[v] = min(max(before[v] * factor, lower[v]), upper[v])
                    s[v] = s_before[v] * factor
            # fmt: off
            level[f, c], violation[f, c], size[0] = _solve(
                K, diag, edges, place_of, t, lower, upper, epsilon, b, s, tol, tiny,
                B, S, place, size[0],
            )
            # fmt: on
