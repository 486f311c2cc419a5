"""Sequential minimal optimisation of a small dense dual problem.

The inner solver of the decomposition, and for few rows the whole solver.

    minimise 1/2 a'Qa + p'a over 0 <= a <= upper, z'a fixed (see :mod:`slimsvm.problems.dual_qp`),

with the kernel block K in memory.

Algorithm: pairs by second-order information (Fan, Chen & Lin 2005, WSS 2), with the first of a pair
the steepest, as in LIBSVM. What differs: the variables are kept as two arrays, o where they may
rise and o where they may fall (a large number elsewhere), so that each pass over them is vector
code. With two equalities the variables are sorted by sign; the pair comes from the part with the
larger violation.

Symbols: i bottom (rises by +z), j top (falls by -z), t step, eta curvature along the pair.
Cost of a step: O(q), q the number of variables that may matter.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dpotrf, dpotrs

from slimsvm.compiled import compiled, compiled_within, larger, smaller
from slimsvm.threads import single_threaded_blas

Array = NDArray[Any]
FAR = 1e300  # stands for infinity in the arrays: vector code without special cases
SHRINKS = 256  # variables from which on some are set aside
FIRST = 2  # steps for each variable before the first time: small problems are solved by then
BLOCK = 64  # places that are looked at together
LOOK = 16  # steps among all variables between the steps of a few
# the least curvature of a pair (LIBSVM's TAU): identical rows with opposite labels still move
TINY = 1e-12
# square of the least by that of the largest entry of a Cholesky factor's diagonal at which it is
# trusted
WELL = 1e-11


@compiled
def find(values: Array, wanted: float, start: int, end: int) -> int:
    """The last place of this value: of several alike, LIBSVM takes the last."""
    while end - start > BLOCK:
        some, found = values[end - BLOCK : end], 0
        for v in range(BLOCK):  # a count is vector code, a loop with an exit is not
            found += some[v] == wanted
        if found:
            break
        end -= BLOCK
    for v in range(end - 1, start, -1):
        if values[v] == wanted:
            return v
    return start


@compiled_within
def gains(
    low: Array,
    bottom: float,
    diag_i: float,
    diag: Array,
    row_i: Array,
    gain: Array,
    start: int,
    end: int,
) -> float:
    """gain[v] = (o_v - o_i)^2 / eta for the variables above o_i that may fall.

    Zero for the others. Returns the largest.
    """
    best = 0.0
    # parts that begin at zero: a place that might be below zero, and count from the end, would
    # keep this from being vector code
    low_, diag_, row, out = low[start:end], diag[start:end], row_i[start:end], gain[start:end]
    for v in range(out.size):
        difference = larger(low_[v] - bottom, 0.0)
        eta = larger(diag_i + diag_[v] - 2.0 * row[v], TINY)
        g = difference * difference / eta
        out[v] = g
        best = larger(g, best)
    return best


@compiled
def move(
    up: Array, low: Array, row_i: Array, row_j: Array, step: float, start: int, end: int
) -> tuple[float, float]:
    """All o after the step, and the extremes, in one pass.

    The extremes are the least that may rise and the largest that may fall.
    """
    least, largest = FAR, -FAR
    up_, low_, k_i, k_j = up[start:end], low[start:end], row_i[start:end], row_j[start:end]
    for v in range(up_.size):
        change = step * (k_i[v] - k_j[v])
        x, y = up_[v] + change, low_[v] + change
        up_[v], low_[v] = x, y
        least = smaller(x, least)
        largest = larger(y, largest)
    return least, largest


@compiled
def place(v: int, o: float, a: Array, sign: Array, upper: Array, up: Array, low: Array) -> None:
    """Enter o_v where the variable may rise and where it may fall."""
    above_zero, below_upper = a[v] > 0.0, a[v] < upper[v]
    up[v] = o if (below_upper if sign[v] > 0 else above_zero) else FAR
    low[v] = o if (above_zero if sign[v] > 0 else below_upper) else -FAR


@compiled_within
def onto_bound(value: float, upper: float, at_bound: bool, rises: bool) -> float:
    """The value, exactly at the bound that it was to reach, and never beyond one."""
    if at_bound:
        return upper if rises else 0.0
    return min(max(value, 0.0), upper)


@compiled_within
def exchange(
    i: int, j: int, t: float, sign: Array, upper: Array, a: Array, up: Array, low: Array
) -> float:
    """i rises and j falls by t, cut at the bounds of both; their places are empty afterwards.

    Returns t as it was cut.
    """
    room_i = upper[i] - a[i] if sign[i] > 0 else a[i]
    room_j = a[j] if sign[j] > 0 else upper[j] - a[j]
    # exactly onto the bound: a variable is either free or at one, never nearly so
    if t >= room_i or t >= room_j:
        t = min(room_i, room_j)
    a[i] = onto_bound(a[i] + sign[i] * t, upper[i], t == room_i, sign[i] > 0)
    a[j] = onto_bound(a[j] - sign[j] * t, upper[j], t == room_j, sign[j] < 0)
    up[i] = up[j] = FAR
    low[i] = low[j] = -FAR
    return t


@compiled
def pair_steps(
    K: Array, diag: Array, sign: Array, upper: Array, a: Array, o: Array, split: int, tol: float,
    max_steps: int,
) -> tuple[int, float]:  # fmt: skip
    """Steps of pairs among all variables; arguments and results of :func:`smo`."""
    n, zero = sign.size, 0 * split  # a literal 0 would be a type of its own, with its own code
    up, low, gain, before = np.empty(n), np.empty(n), np.empty(n), a.copy()
    for v in range(n):
        place(v, o[v], a, sign, upper, up, low)
    bottom, top = move(up, low, K[0], K[0], 0.0, zero, split)  # a step of zero: the extremes
    other_bottom, other_top = move(up, low, K[0], K[0], 0.0, split, n)
    steps = 0
    while True:
        # 1. the part, and in it the bottom variable: the steepest that may rise
        start, end, least, violation = zero, split, bottom, top - bottom
        if other_top - other_bottom > violation:
            start, end, least, violation = split, n, other_bottom, other_top - other_bottom
        if not violation > tol or steps >= max_steps:
            break
        i = find(up, least, start, end)
        # 2. the top variable: the one whose exchange with i promises the largest decrease
        row_i = K[i]
        best = gains(low, least, diag[i], diag, row_i, gain, start, end)
        j = find(gain, best, start, end)
        # 3. the step, cut at the bounds of both
        row_j = K[j]
        o_i, o_j = least, low[j]
        t = (o_j - o_i) / max(diag[i] + diag[j] - 2.0 * row_i[j], TINY)
        t = exchange(i, j, t, sign, upper, a, up, low)
        # 4. all o, and where i and j may go now: first without these two, so that their new places
        # join the extremes
        bottom, top = move(up, low, row_i, row_j, t, zero, split)
        other_bottom, other_top = move(up, low, row_i, row_j, t, split, n)
        place(i, o_i + t * (row_i[i] - row_j[i]), a, sign, upper, up, low)
        place(j, o_j + t * (row_i[j] - row_j[j]), a, sign, upper, up, low)
        if start < split:
            bottom, top = min(bottom, up[i], up[j]), max(top, low[i], low[j])
        else:
            other_bottom, other_top = (
                min(other_bottom, up[i], up[j]),
                max(other_top, low[i], low[j]),
            )
        steps += 1
    for v in range(n):
        if upper[v] > 0.0:
            o[v] = up[v] if up[v] < 0.5 * FAR else low[v]
        else:  # can neither rise nor fall: stands in neither array
            row = K[v]
            for u in range(n):
                o[v] += sign[u] * (a[u] - before[u]) * row[u]
    return steps, max(violation, 0.0)


@compiled
def level_and_ends(a: Array, o: Array, sign: Array, upper: Array) -> tuple[float, float, float]:
    """Where o is at the free variables, and its least that may rise and largest that may fall.

    Without free variables the level is between these two.
    """
    free_sum, n_free, bottom, top = 0.0, 0, FAR, -FAR
    for v in range(a.size):
        above, below = a[v] > 0.0, a[v] < upper[v]
        if above and below:
            free_sum += o[v]
            n_free += 1
        if (below if sign[v] > 0 else above) and o[v] < bottom:
            bottom = o[v]
        if (above if sign[v] > 0 else below) and o[v] > top:
            top = o[v]
    level = 0.0
    if n_free:
        level = free_sum / n_free
    elif abs(bottom) < FAR and abs(top) < FAR:
        level = 0.5 * (bottom + top)
    elif abs(bottom) < FAR or abs(top) < FAR:
        level = bottom if abs(bottom) < FAR else top
    return level, bottom, top


def _may_matter(sign: Array, upper: Array, a: Array, o: Array, part: slice) -> Array:
    """Which variables of a part could still take part in a step.

    They are free, or at a bound with an o from which they could pair with another one as things
    are.
    """
    sign, a, o = sign[part], a[part], o[part]
    above_zero, below_upper = a > 0.0, a < upper[part]
    rises, falls = (
        np.where(sign > 0, below_upper, above_zero),
        np.where(sign > 0, above_zero, below_upper),
    )
    bottom, top = np.min(o, where=rises, initial=FAR), np.max(o, where=falls, initial=-FAR)
    return np.asarray((rises & falls) | (rises & (o <= top)) | (falls & (o >= bottom)))


@compiled
def _gather(K: Array, which: Array, out: Array) -> None:
    """out = K[which][:, which]; NumPy would hold the interpreter lock meanwhile."""
    for r in range(which.size):
        row = K[which[r]]
        for c in range(which.size):
            out[r, c] = row[which[c]]


@compiled
def _follow(K: Array, rows: Array, change: Array, o: Array) -> None:
    """o += sum_r change[r] K[rows[r]]"""
    for r in range(rows.size):
        if change[r] != 0.0:
            row = K[rows[r]]
            for v in range(o.size):
                o[v] += change[r] * row[v]


def smo(
    K: Array,
    diag: Array,
    sign: Array,
    upper: Array,
    a: Array,
    o: Array,
    split: int,
    tol: float,
    max_steps: int,
) -> tuple[int, float]:
    """Improve ``a`` in place until no pair violates by more than ``tol``.

    Returns the number of steps and the violation left.

    ``o`` holds s + z p at entry and at exit. Variables before ``split`` exchange among themselves,
    those from it on too; split = n: all do. Now and then the variables that may matter go on by
    themselves (as in LIBSVM), until the violation among them is a fifth of what it was. Not
    compiled itself: all that takes time is, and one function around it took as long to compile as
    all the others.
    """
    n, steps = sign.size, 0
    many = FIRST * n if n >= SHRINKS else max_steps
    more = many
    while True:
        done, violation = pair_steps(
            K, diag, sign, upper, a, o, split, tol, min(more, max_steps - steps)
        )
        steps += done
        if not violation > tol or steps >= max_steps:
            return steps, violation
        few = np.flatnonzero(
            np.concatenate(
                [_may_matter(sign, upper, a, o, part) for part in (slice(split), slice(split, n))]
            )
        )
        more = many
        if 3 * few.size <= 2 * n:
            a_few, o_few, small = a[few], o[few], np.empty((few.size, few.size), K.dtype)
            _gather(K, few, small)
            part, target = (diag[few], sign[few], upper[few]), max(tol, 0.2 * violation)
            done, _ = pair_steps(
                small,
                *part,
                a_few,
                o_few,
                int(np.searchsorted(few, split)),
                target,
                max_steps - steps,
            )
            steps += done
            _follow(K, few, sign[few] * (a_few - a[few]), o)
            a[few], o[few], more = a_few, o_few, LOOK


def polish(
    K: Array, diag: Array, sign: Array, upper: Array, a: Array, o: Array, split: int,
    max_steps: int = 10**9, work: float = 1e8,
) -> tuple[int, bool]:  # fmt: skip
    """Bring a point to near float64 precision, in place, or at least nearer.

    Returns the number of steps, and whether there is more to do.

    At the optimum all free variables of a part have one o. An active-set method goes there: a
    Newton step within the current free set, cut at the first bound; the variable that met it is no
    longer free; again, until a whole step is possible. Then SMO frees what should be free. Where
    the kernel is so badly scaled that SMO alone would crawl, this is what makes the way. ``work``
    limits the cubes of the numbers of free variables, added up: about a second.
    """
    steps, most = 0, 0
    while work > 0:
        scale = max(1.0, float(np.max(np.abs(o))))
        # first a look only, then few: one Newton step may do what pair steps take thousands for
        few = min(most, max_steps - steps)
        done, violation = smo(K, diag, sign, upper, a, o, split, 1e-14 * scale, few)
        steps += done
        n_free = int(np.count_nonzero((a > 0) & (a < upper)))
        if violation <= 1e-13 * scale or steps >= max_steps:
            return steps, False
        looked, most = most == 0, min(20 * a.size, max(SHRINKS // 4, 4 * most))
        if n_free < 2:
            if (looked or done) and few < 20 * a.size:
                continue
            return steps, False
        for _ in range(n_free if n_free <= 200 else 2):  # each step costs n_free^3
            steps += 1
            work -= max(float(n_free), 100.0) ** 3
            # matrices too small for threads, which would only wait for one another
            with single_threaded_blas():
                whole_step, moved = _newton(K, sign, upper, a, o, split)
            if whole_step or work <= 0:
                break
        if not moved and not looked and few >= 20 * a.size:  # rounding is all that is left
            return steps, False
    return steps, True


def _newton(
    K: Array, sign: Array, upper: Array, a: Array, o: Array, split: int
) -> tuple[bool, bool]:
    """One Newton step in the free variables, in place.

    Returns whether no bound cut it, and whether the objective fell.

    Directions without curvature (repeated rows, kernels of low rank) get a tiny one: along them the
    step goes to a bound.
    """
    free = np.flatnonzero((a > 0) & (a < upper))
    if free.size < 2:
        return True, False
    block = K[free].take(free, axis=1)
    if free[0] >= split or free[-1] < split:  # one part
        slope = o[free] - o[free].mean()
        change = _by_cholesky(block, slope)
        if change is not None:
            return _along(K, sign, upper, a, o, free, block, slope, change)
    parts = [part for part in (free < split, free >= split) if part.any()]

    def balanced(x: Array) -> Array:
        """Without the mean of each part, along the last axis: the sums stay as they are."""
        x = x.copy()
        for part in parts:
            x[..., part] -= x[..., part].mean(axis=-1, keepdims=True)
        return x

    slope = balanced(o[free])
    curvature, directions = np.linalg.eigh(balanced(balanced(block).T))
    least = max(float(curvature[-1]), 1e-300) * free.size * np.finfo(float).eps
    along = directions.T @ slope
    along[(curvature <= least) & (np.abs(along) <= 1e-12 * max(1.0, float(np.max(np.abs(o)))))] = (
        0.0  # no curvature, no slope: stay
    )
    # kernel values near the smallest float: there is no such step
    with np.errstate(over="ignore", invalid="ignore"):
        change = balanced(-directions @ (along / np.maximum(curvature, least)))
        fall = float(slope @ change)
    if not -np.inf < fall < 0.0:
        return True, False
    return _along(K, sign, upper, a, o, free, block, slope, change)


def _by_cholesky(block: Array, slope: Array) -> Array | None:
    """The change of the free variables with one sum, by a Cholesky factor; None without one.

    A third of the time of eigenvectors, or less; but where a direction has next to no curvature,
    these are what says so.
    """
    L, info = dpotrf(block, lower=1)
    corner = L.diagonal()
    if info or corner.min() ** 2 <= WELL * corner.max() ** 2:
        return None
    sides = np.ones((2, slope.size))
    sides[0] = slope
    x, y = dpotrs(L, sides.T, lower=1)[0].T
    change = y * (x.sum() / y.sum()) - x
    return np.asarray(change - change.mean())


def _along(
    K: Array, sign: Array, upper: Array, a: Array, o: Array, free: Array, block: Array,
    slope: Array, change: Array,
) -> tuple[bool, bool]:  # fmt: skip
    """Along a direction as far as the first bound, in place; results of :func:`_newton`."""
    fall = float(slope @ change)
    if not -np.inf < fall < 0.0:
        return True, False
    bend = float(change @ (block @ change))
    at, most, z = a[free], upper[free], sign[free]
    step_a = z * change
    size, rises = np.abs(step_a), step_a > 0
    room = np.full(size.size, np.inf)
    np.divide(np.where(rises, most - at, at), size, out=room, where=size > 0)
    longest = float(room.min())
    t = min(-fall / bend if bend > 0 else np.inf, longest)
    trial = np.minimum(np.maximum(at + t * step_a, 0.0), most)
    if t == longest:  # exactly onto the bound that cut the step
        trial = np.where(room <= t, np.where(rises, most, 0.0), trial)
    moved = z * (trial - at)
    after = o.copy()
    _follow(K, free, moved, after)
    now = after[free]
    spread = now.max() - now.min() < slope.max() - slope.min()
    if not (float(moved @ (o[free] + now)) < 0.0 or spread):
        return True, False
    a[free], o[:] = trial, after
    return t < longest, True
