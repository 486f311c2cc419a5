"""The compiled loops of :mod:`slimsvm.solvers.online`, which explains them and their symbols."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from slimsvm.compiled import compiled
from slimsvm.solvers.smo import FAR, TINY, exchange, find, gains, move, place
from slimsvm.sums import dot

Array = NDArray[Any]
CANDIDATES = 50  # random rows of which the best is taken (the paper's number)
SEEDS = 5  # rows of the first class that wait for one of the other


@compiled
def enter(K: Array, between: Array, own: Array, slots: Array, new: Array, m: int) -> None:
    """Rows and columns of K for the new vectors."""
    for q in range(slots.size):
        for v in range(m):
            K[slots[q], v] = between[new[q], v]
    for q0 in range(0, slots.size, 32):
        for v in range(m):  # along the rows of K; what is read next to it stays in the cache
            for q in range(q0, min(slots.size, q0 + 32)):
                K[v, slots[q]] = between[new[q], v]
    for q in range(slots.size):
        for r in range(slots.size):
            K[slots[q], slots[r]] = own[new[q], new[r]]


@compiled
def _value(K: Array, between: Array, own: Array, i: int, j: int, m: int) -> float:
    """k of variables i and j, wherever it stands."""
    if i < m:
        return float(K[i, j] if j < m else between[j - m, i])
    return float(between[i - m, j] if j < m else own[i - m, j - m])


@compiled
def _shift(
    K: Array,
    between: Array,
    own: Array,
    up: Array,
    low: Array,
    joined: Array,
    n_joined: int,
    i: int,
    j: int,
    t: float,
    m: int,
) -> tuple[float, float]:
    """All o after i rises and j falls by t.

    Returns the least that may rise and the largest that may fall, i and j left out by the caller.
    """
    row_i, row_j = K[i] if i < m else between[i - m], K[j] if j < m else between[j - m]
    bottom, top = move(up, low, row_i, row_j, t, 0, m)
    for r in range(n_joined):
        v = joined[r]
        change = t * (_value(K, between, own, i, v, m) - _value(K, between, own, j, v, m))
        up[v] += change
        low[v] += change
        bottom, top = min(bottom, up[v]), max(top, low[v])
    return bottom, top


@compiled
def _pair(
    K: Array, between: Array, own: Array, sign: Array, upper: Array, a: Array, up: Array,
    low: Array, joined: Array, n_joined: int, i: int, j: int, o_i: float, o_j: float, m: int,
) -> tuple[float, float]:  # fmt: skip
    """i rises, j falls, as far as is best or possible; returns bottom and top afterwards."""
    k_ii, k_jj, k_ij = (
        _value(K, between, own, i, i, m), _value(K, between, own, j, j, m),
        _value(K, between, own, i, j, m),
    )  # fmt: skip
    t = (o_j - o_i) / max(k_ii + k_jj - 2.0 * k_ij, TINY)
    t = exchange(i, j, t, sign, upper, a, up, low)
    bottom, top = _shift(K, between, own, up, low, joined, n_joined, i, j, t, m)
    place(i, o_i + t * (k_ii - k_ij), a, sign, upper, up, low)
    place(j, o_j + t * (k_ij - k_jj), a, sign, upper, up, low)
    return min(bottom, up[i], up[j]), max(top, low[i], low[j])


@compiled
def _reprocess(
    K: Array, between: Array, own: Array, sign: Array, upper: Array, a: Array, up: Array,
    low: Array, gain: Array, diag: Array, joined: Array, n_joined: int, bottom: float, top: float,
    m: int,
) -> tuple[int, int, float, float]:  # fmt: skip
    """The steepest variable that may rise, with the one whose exchange with it promises most."""
    i = _where(up, bottom, joined, n_joined, m)
    best, j = 0.0, -1
    if i < m:
        best = gains(low, bottom, diag[i], diag, K[i], gain, 0, m)
    else:
        best = gains(low, bottom, diag[i], diag, between[i - m], gain, 0, m)
    if best > 0.0:
        j = find(gain, best, 0, m)
    for r in range(n_joined):
        v = joined[r]
        difference = max(low[v] - bottom, 0.0)
        g = (
            difference
            * difference
            / max(diag[i] + diag[v] - 2.0 * _value(K, between, own, i, v, m), TINY)
        )
        if g > best:
            best, j = g, v
    if j < 0:  # rounding: no exchange promises anything
        return i, i, bottom, bottom
    bottom, top = _pair(
        K, between, own, sign, upper, a, up, low, joined, n_joined, i, j, bottom, low[j], m
    )
    return i, j, bottom, top


@compiled
def _where(values: Array, wanted: float, joined: Array, n_joined: int, m: int) -> int:
    """The variable with this value."""
    for r in range(n_joined):
        if values[joined[r]] == wanted:
            return int(joined[r])
    return find(values, wanted, 0, m)


@compiled
def _absorb(
    K: Array, between: Array, own: Array, sign: Array, upper: Array, a: Array, up: Array,
    low: Array, here: Array, diag: Array, joined: Array, n_joined: int, m: int, draw: Array,
    bottom: float, top: float,
) -> tuple[int, int, float, float]:  # fmt: skip
    """Remove one vector.

    Returns which (-1: there is no pair of one class), and bottom and top afterwards.
    """
    n = m + n_joined
    # the candidates: the one with the smallest a, and some at random
    least, first = FAR, -1
    for r in range(n):
        v = r if r < m else joined[r - m]
        if here[v] and a[v] < least:
            least, first = a[v], v
    best, gone, taker = FAR, -1, -1
    for c in range(draw.size + 1):
        i = first
        if c > 0:
            r = draw[c - 1] % n
            i = r if r < m else joined[r - m]
        if not here[i]:
            continue
        near, j = FAR, -1
        row = K[i] if i < m else between[i - m]
        for v in range(m):
            distance = diag[v] - 2.0 * row[v]
            if distance < near and here[v] and sign[v] == sign[i] and v != i:
                near, j = distance, v
        for r in range(n_joined):
            v = joined[r]
            if here[v] and sign[v] == sign[i] and v != i:
                distance = diag[v] - 2.0 * _value(K, between, own, i, v, m)
                if distance < near:
                    near, j = distance, v
        change = a[i] * a[i] * max(0.0, near + diag[i])
        if j >= 0 and change < best:
            best, gone, taker = change, i, j
    if gone < 0:
        return -1, -1, bottom, top
    t, o = sign[gone] * a[gone], up[taker] if up[taker] < 0.5 * FAR else low[taker]
    here[gone] = False
    up[gone] = up[taker] = FAR
    low[gone] = low[taker] = -FAR
    bottom, top = _shift(K, between, own, up, low, joined, n_joined, taker, gone, t, m)
    a[taker] += a[gone]
    upper[taker] += upper[gone]
    a[gone] = 0.0
    o += t * (diag[taker] - _value(K, between, own, taker, gone, m))
    place(taker, o, a, sign, upper, up, low)
    return gone, taker, min(bottom, up[taker]), max(top, low[taker])


@compiled
def _gradient(
    between: Array, own: Array, coef: Array, o: Array, joined: Array, n_joined: int, p: int, m: int
) -> float:
    """s at row p of the batch: what frozen vectors say stands in o."""
    s = float(o[m + p]) + dot(between[p], coef[:m])
    for r in range(n_joined):
        s += float(coef[joined[r]]) * float(own[p, joined[r] - m])
    return s


@compiled
def _choose(
    between: Array, own: Array, coef: Array, o: Array, sign: Array, joined: Array, n_joined: int,
    left: Array, n_left: int, draw: Array, selection: int, n_here: int, bottom: float, top: float,
    m: int,
) -> tuple[int, float]:  # fmt: skip
    """The place of the next row among those that are left, and its s.

    -1 if none of the candidates is worth it.
    """
    # a function of a few rows does not know what to ask for
    if selection == 0 or n_here < CANDIDATES:
        return 0, _gradient(between, own, coef, o, joined, n_joined, left[0], m)
    best, at, s_at = -FAR if selection == 1 else -1.0, -1, 0.0
    known = top > -0.5 * FAR and bottom < 0.5 * FAR
    middle = 0.5 * (bottom + top) if known else 0.0
    for c in range(min(draw.size, n_left)):
        k = c if n_left <= draw.size else draw[c] % n_left
        s = _gradient(between, own, coef, o, joined, n_joined, left[k], m)
        score = -abs(s - middle)  # margin: f = s - level
        if selection == 1:
            y = sign[m + left[k]]
            score = -y * (s - y - middle) if known else 0.0
        if not known or score > best:
            best, at, s_at = score, k, s
            if not known:
                break
    return at, s_at


@compiled
def pass_by(
    K: Array, between: Array, own: Array, sign: Array, upper: Array, a: Array, o: Array,
    here: Array, tol: float, selection: int, draws: Array, max_support: int, absorbs: Array,
) -> tuple[float, float]:  # fmt: skip
    """The rows of a batch one after the other, in place.

    ``here`` says which variables are in the expansion. Returns bottom and top.
    """
    n_batch = own.shape[0]
    m = sign.size - n_batch
    up, low, gain, coef, diag = (
        np.full(a.size, FAR),
        np.full(a.size, -FAR),
        np.empty(a.size),
        np.zeros(a.size),
        np.empty(a.size),
    )
    joined, left, n_joined, n_left, n_here = (
        np.empty(n_batch, np.int64),
        np.arange(n_batch),
        0,
        n_batch,
        0,
    )
    bottom, top = FAR, -FAR
    for v in range(m):
        diag[v] = K[v, v]
        if here[v]:
            place(v, o[v], a, sign, upper, up, low)
            bottom, top = min(bottom, up[v]), max(top, low[v])
            coef[v] = sign[v] * a[v]
            n_here += 1
    for p in range(n_batch):
        diag[m + p] = own[p, p]
    d = 0
    while n_left > 0:
        # 1. the next row
        k, s = _choose(
            between,
            own,
            coef,
            o,
            sign,
            joined,
            n_joined,
            left,
            n_left,
            draws[d],
            selection,
            n_here,
            bottom,
            top,
            m,
        )
        if k < 0:
            break
        p = left[k]
        n_left -= 1
        if selection == 0:  # in the order in which they came
            left = left[1:]
        else:
            left[k] = left[n_left]
        d += 1
        v = m + p
        y, o_p = sign[v], s - sign[v]
        if upper[v] <= 0.0:
            continue
        # 2. PROCESS: a pair with the extreme of the expansion
        if (y > 0 and o_p < top - tol) or (y < 0 and o_p > bottom + tol):
            joined[n_joined] = v
            n_joined, n_here, here[v] = n_joined + 1, n_here + 1, True
            if y > 0:
                j = _where(low, top, joined, n_joined - 1, m)
                bottom, top = _pair(
                    K, between, own, sign, upper, a, up, low, joined, n_joined, v, j, o_p, top, m
                )
                coef[j] = sign[j] * a[j]
            else:
                j = _where(up, bottom, joined, n_joined - 1, m)
                bottom, top = _pair(
                    K, between, own, sign, upper, a, up, low, joined, n_joined, j, v, bottom, o_p, m
                )
                coef[j] = sign[j] * a[j]
            coef[v] = y * a[v]
        elif ((top < -0.5 * FAR or bottom > 0.5 * FAR) and n_here < SEEDS) or (
            o_p < bottom - tol if y > 0 else o_p > top + tol
        ):
            # one class so far; or all vectors are at bounds that leave a gap, and this row lies in
            # it: it waits for one of the other class
            joined[n_joined] = v
            n_joined, n_here, here[v] = n_joined + 1, n_here + 1, True
            place(v, o_p, a, sign, upper, up, low)
            bottom, top = min(bottom, up[v]), max(top, low[v])
        else:
            continue
        # 3. the budget
        while n_here > max_support:
            gone, taker, bottom, top = _absorb(
                K, between, own, sign, upper, a, up, low, here, diag, joined, n_joined, m,
                absorbs[d - 1], bottom, top
            )  # fmt: skip
            if gone < 0:
                break
            n_here -= 1
            coef[gone], coef[taker] = 0.0, sign[taker] * a[taker]
        # 4. REPROCESS
        if top - bottom > tol and top > -0.5 * FAR and bottom < 0.5 * FAR:
            i, j, bottom, top = _reprocess(
                K,
                between,
                own,
                sign,
                upper,
                a,
                up,
                low,
                gain,
                diag,
                joined,
                n_joined,
                bottom,
                top,
                m,
            )
            coef[i], coef[j] = sign[i] * a[i], sign[j] * a[j]
    # 5. o of all, and who can be in no violating pair leaves
    known = top > -0.5 * FAR and bottom < 0.5 * FAR
    for r in range(m + n_joined):
        v = r if r < m else joined[r - m]
        if here[v]:
            o[v] = up[v] if up[v] < 0.5 * FAR else low[v]
            bare = known and a[v] <= 0.0
            if bare and (
                (o[v] >= top and o[v] > bottom) if sign[v] > 0 else (o[v] <= bottom and o[v] < top)
            ):  # those that wait stay
                here[v] = False
    return bottom, top
