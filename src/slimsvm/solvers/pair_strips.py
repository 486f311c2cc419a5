"""Many small pairs of classes: those of one class after the other, in one compiled call.

Problem: the dual of the C-SVC (:mod:`slimsvm.problems.dual_qp`) for every pair of classes, of which
each has few rows. With a hundred classes there are thousands of problems that take microseconds
each: whatever the interpreter does for one of them takes longer than all of its steps.

Algorithm: rows are sorted by class. The kernel values of a class with itself and all later ones are
one strip, made at once, and the blocks within classes are made once for all pairs; a pair takes its
matrix from there. It is solved by pair steps (:mod:`slimsvm.solvers.smo`), and where kernel values
are in float64 polished: Newton steps within the free variables, cut at the first bound, until no
pair violates by more than rounding errors, as :func:`slimsvm.solvers.smo.polish` does, with a
Cholesky factor made in place. Pairs whose factor does not exist, or for which float32 is not
enough, are named, and solved one by one.

Symbols as in :mod:`slimsvm.solvers.decomposition`; a strip belongs to class ``first``.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slimsvm.compiled import compiled, compiled_sum
from slimsvm.gram import ROUNDING as KERNEL_ROUNDING
from slimsvm.multiclass import Part
from slimsvm.precision import RANDOM
from slimsvm.run import FULL, Certificate, Limits, Record, Result, Status
from slimsvm.solvers.smo import WELL, level_and_ends, pair_steps
from slimsvm.threads import parallel
from slimsvm.tiles import Operand, Strips, block, square

Array = NDArray[Any]
ALONE = 200  # rows of two classes that are solved in one call
LARGEST = 512  # rows of a pair; larger ones are worth the interpreter
A_ROW = 100  # steps for each row of a pair: more are made where Ctrl-C and max_time are heard
MOST_NEWTONS = 100  # for one pair
ROUNDED = 1e-12  # of the bound
UNBALANCED = 1e-9  # sum of coefficients, of their sizes: more than rounding
# what is known of a pair
STEPS, VIOLATION, GAP, OBJECTIVE, LEVEL, NORM, ROUNDING, SUPPORT, OPEN, ROWS, VALUES = range(11)
# of that, a line of the history
SAID = {
    "objective": OBJECTIVE,
    "gap": GAP,
    "violation": VIOLATION,
    "kernel_values": VALUES,
    "active": ROWS,
    "n_support": SUPPORT,
    "norm": NORM,
}


@compiled_sum
def _dot(x: Array, y: Array, n: int) -> float:
    """Of the first n."""
    total = 0.0
    for k in range(n):
        total += x[k] * y[k]
    return total


@compiled
def _newton_steps(
    K: Array, sign: Array, upper: Array, a: Array, o: Array, free: Array, L: Array, x: Array
) -> int:
    """Newton steps within the free variables, cut at bounds, until one is whole.

    Returns their number; -1: the matrix has no Cholesky factor.
    """
    n = a.size
    for step in range(n + 1):
        m = 0
        for v in range(n):
            if a[v] > 0.0 and a[v] < upper[v]:
                free[m] = v
                m += 1
        if m < 2:
            return step
        # 1. the Cholesky factor of K within the free variables
        largest = 0.0
        for r in range(m):
            largest = max(largest, K[free[r], free[r]])
        for r in range(m):
            for c in range(r + 1):
                s = K[free[r], free[c]] - _dot(L[r], L[c], c)
                if c < r:
                    L[r, c] = s / L[c, c]
                elif s > WELL * largest:
                    L[r, r] = np.sqrt(s)
                else:
                    return -1
        # 2. K x = o and K y = 1; the change is y (1'x / 1'y) - x
        for right in range(2):
            for r in range(m):
                s = o[free[r]] if right == 0 else 1.0
                x[right, r] = (s - _dot(L[r], x[right], r)) / L[r, r]
            for r in range(m - 1, -1, -1):
                s = x[right, r]
                for k in range(r + 1, m):
                    s -= L[k, r] * x[right, k]
                x[right, r] = s / L[r, r]
        sum_x = sum_y = 0.0
        for r in range(m):
            sum_x += x[0, r]
            sum_y += x[1, r]
        # 3. as far as the first bound
        t, at, total, size = 1.0, -1, 0.0, 0.0
        for r in range(m):
            v = free[r]
            x[0, r] = x[1, r] * (sum_x / sum_y) - x[0, r]
            total, size = total + x[0, r], size + abs(x[0, r])
            move = sign[v] * x[0, r]
            if move > 0.0 and a[v] + t * move > upper[v]:
                t, at = (upper[v] - a[v]) / move, r
            elif move < 0.0 and a[v] + t * move < 0.0:
                t, at = -a[v] / move, r
        if abs(total) > UNBALANCED * size:  # the sum must stay: the factor has no digits left
            return -1
        for r in range(m):
            v = free[r]
            change = t * x[0, r]
            if r == at:
                new = upper[v] if sign[v] * x[0, r] > 0.0 else 0.0
                change = sign[v] * (new - a[v])
                a[v] = new
            else:
                a[v] = min(max(a[v] + sign[v] * change, 0.0), upper[v])
            row = K[v]
            for u in range(n):
                o[u] += change * row[u]
        if at < 0:
            return step + 1
    return n + 1


@compiled
def _begun(K: Array, sign: Array, a: Array, o: Array) -> Array:
    """Begin at zero, in place; returns the diagonal."""
    diag = np.empty(a.size, K.dtype)
    for v in range(a.size):
        a[v], o[v], diag[v] = 0.0, -sign[v], K[v, v]
    return diag


@compiled
def _largest(x: Array) -> float:
    """Of the absolute values."""
    found = 0.0
    for k in range(x.size):
        found = max(found, abs(x[k]))
    return found


# loops in what follows, and no assignments of slices: Numba's check of shapes takes longer to
# compile than all steps
def _in_the_interpreter(
    K: Array, sign: Array, upper: Array, a: Array, o: Array, tol: float, most: int, exact: bool,
    about: Array,
) -> None:  # fmt: skip
    """One pair, in place; ``about`` is what is known of it."""
    n = a.size
    diag = _begun(K, sign, a, o)
    steps, violation = pair_steps(K, diag, sign, upper, a, o, n, tol, most)
    about[OPEN] = 0.0
    if exact and violation <= tol:
        free, L, x = np.empty(n, np.int64), np.empty((n, n)), np.empty((2, n))
        for _ in range(MOST_NEWTONS):
            scale, before = max(1.0, _largest(o)), violation
            more = _newton_steps(K, sign, upper, a, o, free, L, x)
            if more < 0:
                about[OPEN] = 1.0
                break
            steps += more
            done, violation = pair_steps(
                K, diag, sign, upper, a, o, n, 1e-14 * scale, min(n, max(0, most - steps))
            )
            steps += done
            if violation <= 1e-13 * scale or steps >= most:
                break
            # no nearer: what is left is rounding, or not to be had this way
            if (more == 0 and done == 0) or (violation >= before and violation <= 1e-11 * scale):
                about[OPEN] = 1.0 if violation > 1e-11 * scale else 0.0
                break
        else:
            about[OPEN] = 1.0
    about[STEPS] = steps
    _measure(exact, sign, upper, a, o, about)


_pair = compiled(_in_the_interpreter)


@compiled
def _measure(exact: bool, sign: Array, upper: Array, a: Array, o: Array, about: Array) -> None:
    """Where a pair is, into ``about``; what is ``exact`` is at a bound but for rounding errors."""
    if exact:  # without this, it would count as free
        for v in range(a.size):
            if a[v] <= ROUNDED * upper[v]:
                a[v] = 0.0
            elif upper[v] - a[v] <= ROUNDED * upper[v]:
                a[v] = upper[v]
    level, bottom, top = level_and_ends(a, o, sign, upper)
    gap = objective = norm = shared = slopes = support = balance = total = 0.0
    for v in range(a.size):
        balance, total = balance + sign[v] * a[v], total + a[v]
        s, reduced = o[v] + sign[v], sign[v] * (o[v] - level)
        gap += a[v] * reduced + upper[v] * max(0.0, -reduced)
        objective += 0.5 * sign[v] * a[v] * s - a[v]
        norm += a[v] * a[v]
        support += 1.0 if a[v] > 0.0 else 0.0
        slope = upper[v] if reduced < 0.0 else 0.0
        shared += abs(a[v] * s) + abs(slope * s)
        slopes += slope * slope
    about[VIOLATION], about[GAP] = max(0.0, top - bottom), max(0.0, gap)
    about[OBJECTIVE], about[LEVEL], about[NORM] = objective, level, np.sqrt(norm)
    about[ROUNDING] = shared + RANDOM * (norm + np.sqrt(norm * slopes))
    about[SUPPORT] = support
    if abs(balance) > UNBALANCED * total:
        about[OPEN] = 1.0


@compiled
def matrix_of_pair(
    first: int, j: int, S: Array, own: Array, own_at: Array, ends: Array, room: Array
) -> Array:
    """The kernel values of classes ``first`` and j, within ``room``."""
    a0, b0 = ends[first], ends[j]
    n_first = ends[first + 1] - a0
    n = n_first + ends[j + 1] - b0
    K = room[: n * n].reshape(n, n)
    for r in range(n_first):
        for c in range(n_first):
            K[r, c] = S[r, c]
        for c in range(n_first, n):
            value = S[r, b0 - a0 + c - n_first]
            K[r, c] = value
            K[c, r] = value
    at = own_at[j]
    for r in range(n_first, n):
        for c in range(n_first, n):
            K[r, c] = own[at]
            at += 1
    return K


@compiled
def room_for_pairs(first: int, ends: Array, like: Array) -> Array:
    """For the largest matrix of a strip."""
    largest = 0
    for j in range(first + 1, ends.size - 1):
        largest = max(largest, ends[j + 1] - ends[j])
    return np.empty((ends[first + 1] - ends[first] + largest) ** 2, like.dtype)


@compiled
def _strip(
    first: int, S: Array, own: Array, own_at: Array, ends: Array, upper: Array, tol: float,
    most: int, exact: bool, coef: Array, about: Array,
) -> None:  # fmt: skip
    """All pairs of class ``first`` with a later one: coefficients in LIBSVM's layout."""
    n_classes, a0, a1 = ends.size - 1, ends[first], ends[first + 1]
    n_first, room = a1 - a0, room_for_pairs(first, ends, S)
    k = first * n_classes - first * (first + 1) // 2
    for j in range(first + 1, n_classes):
        b0, b1 = ends[j], ends[j + 1]
        K = matrix_of_pair(first, j, S, own, own_at, ends, room)
        n = n_first + b1 - b0
        sign, bound, a, o = np.empty(n), np.empty(n), np.empty(n), np.empty(n)
        for r in range(n):
            sign[r] = 1.0 if r < n_first else -1.0
            bound[r] = upper[a0 + r] if r < n_first else upper[b0 + r - n_first]
        _pair(K, sign, bound, a, o, tol, most, exact, about[k])
        about[k, ROWS], about[k, VALUES] = n, n_first * (n - n_first)
        for r in range(n_first):
            coef[j - 1, a0 + r] = a[r]
        for r in range(n_first, n):
            coef[first, b0 + r - n_first] = -a[r]
        k += 1


@dataclass
class SolvedPairs:
    """All pairs: coefficients in LIBSVM's layout, and what is known of each."""

    coef: Array  # (classes - 1, n)
    about: Array  # (pairs, ...), see the places above
    seconds: Array  # when each was solved
    open: Array  # pairs that are still to be solved, one by one
    reason: str | None  # why it ended early, if it did

    @property
    def intercept(self) -> Array:
        """Of each pair."""
        return -self.about[:, LEVEL]

    @property
    def steps(self) -> Array:
        """Of each pair."""
        steps = self.about[:, STEPS]
        return steps.astype(np.int32 if steps.max() < 2**31 else np.int64)

    def record(self) -> Record:
        """The line of the history of a single pair."""
        values = {name: float(self.about[0, k]) for name, k in SAID.items()}
        return Record(0, float(self.seconds[0]), values)

    def replace(self, part: Part, result: Result, a: Array, intercept: float) -> None:
        """A pair that was open is solved: its dual point and intercept."""
        k, at = part.k, part.rows
        result.history["problem"] = np.full(result.history["seconds"].size, k)
        self.coef[part.line(at, self.coef.shape[0] + 1), at] = part.sign(at) * a
        self.about[k, LEVEL], self.about[k, STEPS] = -intercept, result.n_iter


def is_for_strips(operand: Operand, sizes: Array) -> bool:
    """Whether classes of these sizes are many and small."""
    two = np.sort(sizes)[-2:].sum()
    return bool(sizes.size > 2 and two <= LARGEST and operand.n >= 2)


def solved_in_strips(
    operand: Operand,
    sizes: Array,
    upper: Array,
    *,
    tol: float,
    max_iter: int,
    limits: Limits,
    n_threads: int,
    sigmoids: Callable[..., None] | None = None,
) -> SolvedPairs:
    """Solve all pairs of classes; rows are sorted by class.

    With kernel values in float64 they are polished to near its precision. In float32, a pair for
    which their errors may do more than ``tol`` stays open.

    Parameters
    ----------
    operand : Operand
        The rows.
    sizes : int array
        Rows of each class.
    upper : array of shape (n,)
        Bounds of the dual variables: C times the weights.
    tol, max_iter : numbers
        Violation at the end, and the limit on steps of a pair (-1: none).
    limits : Limits
        Time and interrupt; at the limit every pair that is left makes one step.
    n_threads : int
        Results are the same bits for any number.
    sigmoids : callable, optional
        What is to be done with every strip that is solved
        (:func:`slimsvm.solvers.pair_sigmoids.sigmoids_of_strips`).
    """
    n_classes, n = sizes.size, operand.n
    ends = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    own_at = np.concatenate([[0], np.cumsum(sizes.astype(np.int64) ** 2)])
    n_pairs = n_classes * (n_classes - 1) // 2
    own, coef = np.empty(int(own_at[-1]), operand.dtype), np.zeros((n_classes - 1, n))
    about, seconds = np.zeros((n_pairs, 11)), np.zeros(n_pairs)
    most = sys.maxsize if max_iter < 0 else max_iter
    why: list[str] = []
    single = operand.dtype == np.float32
    # what errors of kernel values do to s, for a unit of the norm of the coefficients
    error = KERNEL_ROUNDING * operand.error() if single else 0.0

    def within(c: int) -> None:
        part = operand.take(slice(int(ends[c]), int(ends[c + 1])))
        own[own_at[c] : own_at[c + 1]] = block(part, Strips(part)).ravel()

    def strip(c: int) -> None:
        reason = limits.reason()
        if reason is not None:
            why.append(reason)
        rows = operand.take(slice(int(ends[c]), int(ends[c + 1])))
        S = block(rows, Strips(operand.take(slice(int(ends[c]), n))))
        steps = min(most, A_ROW * LARGEST) if reason is None else min(1, most)
        _strip(c, S, own, own_at, ends, upper, tol, steps, not single, coef, about)
        if sigmoids is not None:
            steps = -1 if reason is None else 1
            sigmoids(c, S, own, own_at, ends, upper, coef, tol, steps)
        k = c * n_classes - c * (c + 1) // 2
        seconds[k : k + n_classes - 1 - c] = limits.seconds

    parallel(within, n_classes, n_threads)
    parallel(strip, n_classes - 1, n_threads)
    open_ = _is_open(about, tol, most) | (error * about[:, NORM] > tol)
    open_ = open_ if not why else np.zeros_like(open_)
    return SolvedPairs(coef, about, seconds, np.flatnonzero(open_), why[0] if why else None)


def is_for_one_call(operand: Operand, sizes: Array) -> bool:
    """Whether two classes are so few rows that the interpreter would take longer than the steps."""
    return bool(sizes.size == 2 and operand.n <= ALONE and operand.dtype == np.float64)


def solved_in_one_call(
    operand: Operand, sign: Array, upper: Array, *, tol: float, max_iter: int, limits: Limits
) -> SolvedPairs:
    """The same for one pair, whose rows need not be sorted, in float64."""
    n = operand.n
    K, a, o, about = np.empty((n, n)), np.empty(n), np.empty(n), np.zeros((1, 11))
    square(operand, K)
    most = sys.maxsize if max_iter < 0 else max_iter
    # what it calls is compiled: as a whole, it would take longer to compile than all of that
    _in_the_interpreter(K, sign, upper, a, o, tol, min(most, A_ROW * n), True, about[0])
    about[0, ROWS], about[0, VALUES] = n, n * n
    open_ = np.flatnonzero(_is_open(about, tol, most))
    seconds = np.array([limits.seconds])
    return SolvedPairs((sign * a)[None, :], about, seconds, open_, limits.reason())


def _is_open(about: Array, tol: float, most: int) -> Array:
    """Pairs that could not be solved so, or not within the steps that nobody can interrupt."""
    return (about[:, OPEN] > 0.0) | ((about[:, VIOLATION] > tol) & (about[:, STEPS] < most))


def rounded_pairs(pairs: SolvedPairs, operand: Operand, tol: float) -> Result:
    """All solved pairs as one result: sums, the largest violation, a line of history for each."""
    left = np.ones(len(pairs.about), bool)
    left[pairs.open] = False
    about, error = np.asfortranarray(pairs.about[left]), operand.rounding()
    violation = float(about[:, VIOLATION].max(initial=0.0))
    gap, objective = about[:, GAP], about[:, OBJECTIVE]
    certificate = Certificate(
        FULL, float(objective.sum()), violation, float(gap.sum()), tol, str(operand.dtype)
    ).rounded(error * float(about[:, ROUNDING].sum()))
    reason = pairs.reason or ("converged" if certificate.holds else "max_iter")
    if certificate.holds:
        reason = "converged"
    history = {"seconds": pairs.seconds[left]} | {name: about[:, k] for name, k in SAID.items()}
    if left.size > 1:
        history["problem"] = np.flatnonzero(left)
    return Result(None, certificate, Status(reason), history, int(about[:, STEPS].max(initial=1)))
