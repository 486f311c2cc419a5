"""The quadratic problem over a few cuts: tens to a few hundred variables, dense, solved exactly.

    maximise  h'a - 1/2 a'Ga   over  a >= 0,  sum a <= bound,
    G positive semidefinite, perhaps singular

It is the dual of min 1/2 |w|^2 + bound * xi over w and xi >= 0 with xi >= h_t + <g_t, w> for all t:
w = -sum_t a_t g_t, G_st = <g_s, g_t>, and xi = max(0, max_t h_t + <g_t, w>) (Joachims 2006,
Tsochantaridis et al. 2005: the working set of a cutting-plane method).

Algorithm: a primal active-set method, warm-started. What is left of the bound is a variable of its
own, with h and G zero, so that the sum is fixed. Newton's step within the free variables (those
above zero) is cut at the first that meets zero, which then leaves; after a whole step all free
variables have the same gain, and the one with the largest gain outside joins, until none has more.
Singular G (repeated cuts, more cuts than dimensions): every variable gets a curvature of its own as
small as the rounding errors of G. Along a direction without curvature the step is then so long that
it ends at a bound, and a variable leaves; where nothing is gained nothing is lost.

Symbols: r = h - Ga gains, the derivatives; F the free variables, p the largest of them, from which
the others exchange; level the common gain. Cost: |F|^3/3 for every variable that joins or leaves;
usually a handful, when one cut is new.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dpotrf, dpotrs

from slimsvm.compiled import compiled

Array = NDArray[Any]
EPS = float(np.finfo(float).eps)
# gains are compared to so much of the largest h; rounding errors of Ga are added to that
EXACT = 1e-13
# least curvature, relative to (difference of gains) / bound: along it a step crosses everything
FLAT = 1e-15
# whole steps in a row within one free set: the second repairs what the small curvatures cost
MOST_REFINEMENTS = 3


@dataclass(frozen=True)
class SmallSolution:
    """What :func:`solve_small_qp` returns.

    Attributes
    ----------
    a : array
        The point; feasible, with exact zeros.
    xi : float
        max(0, largest gain): the slack of the problem it is the dual of.
    value : float
        h'a - 1/2 a'Ga: a lower bound of the problem it is the dual of, whatever the precision of a.
    violation : float
        The largest violation of the optimality conditions, in units of h.
    n_steps : int
        Newton steps.
    """

    a: Array
    xi: float
    value: float
    violation: float
    n_steps: int


def solve_small_qp(
    G: Array, h: Array, bound: float = 1.0, start: Array | None = None, max_steps: int | None = None
) -> SmallSolution:
    """Maximise h'a - 1/2 a'Ga over a >= 0, sum a <= bound.

    Parameters
    ----------
    G : array of shape (t, t)
        Positive semidefinite up to rounding.
    h : array of shape (t,)
        The linear part.
    bound : float
        Of the sum.
    start : array, optional
        A point near the solution; if shorter than h, zeros follow. It is made feasible.
    max_steps : int, optional
        Limit on Newton steps; by default so many that only an ill-posed problem meets it.

    Returns
    -------
    SmallSolution

    Examples
    --------
    >>> G = np.array([[2.0, 0.0], [0.0, 1.0]])
    >>> solve_small_qp(G, np.array([1.0, 1.0]), bound=10.0).a
    array([0.5, 1. ])
    >>> solution = solve_small_qp(G, np.array([1.0, 1.0]), bound=0.9)
    >>> solution.a, round(solution.xi, 12)
    (array([0.3, 0.6]), 0.4)
    """
    t = h.size
    if t == 0 or not bound > 0:
        xi = float(max(0.0, h.max())) if t else 0.0
        return SmallSolution(np.zeros(t), xi, 0.0, 0.0, 0)
    G_, h_ = np.zeros((t + 1, t + 1)), np.zeros(t + 1)  # the last: what is left of the bound
    G_[:t, :t], h_[:t] = G, h
    a, r = _feasible(start, t, bound), np.empty(t + 1)
    free, barred = a > 0, np.zeros(t + 1, bool)
    most = 50 * (t + 10) if max_steps is None else max_steps
    largest = float(np.abs(h_).max())
    steps, refined, last_spread = 0, 0, np.inf
    rounding = _gains(G_, h_, a, r)
    while True:
        tolerance = EXACT * largest + 4.0 * EPS * rounding
        F = np.flatnonzero(free)
        gains = r[F]
        spread = float(gains.max() - gains.min())
        # 1. Newton's step within the free variables, unless they agree, or rounding is all that is
        # left
        if (
            spread > tolerance
            and refined < MOST_REFINEMENTS
            and spread < 0.5 * last_spread
            and steps < most
        ):
            p = int(np.argmax(a[F]))
            whole, moved = _advance(F, p, _direction(G_, r, F, p, bound), a, free, barred, bound)
            rounding = _gains(G_, h_, a, r)
            steps += 1
            if moved:
                barred[:] = False
            refined, last_spread = (refined + 1, spread) if whole else (0, np.inf)
            continue
        refined, last_spread = 0, np.inf
        # 2. who joins: the largest gain outside
        level = float(a @ r) / bound
        outside = np.where(free | barred, -np.inf, r)
        i = int(np.argmax(outside))
        if not outside[i] > level + tolerance or steps >= most:
            break
        free[i] = True
    return _finished(G, h, a[:t], r, free, bound, steps)


def _feasible(start: Array | None, t: int, bound: float) -> Array:
    """The starting point, with what is left of the bound as the last entry."""
    a = np.zeros(t + 1)
    if start is not None:
        a[: min(t, start.size)] = np.maximum(0.0, np.where(np.isfinite(start), start, 0.0))[:t]
    total = float(a.sum())
    if total > bound:
        a *= bound / total
        return a
    a[t] = bound - total
    return a


@compiled
def _gains(G: Array, h: Array, a: Array, r: Array) -> float:
    """r = h - Ga.

    Returns the largest sum of absolute terms, which rounding errors are relative to.
    """
    largest = 0.0
    for i in range(h.size):
        total, size = 0.0, 0.0
        for j in range(h.size):
            if a[j] != 0.0:
                term = G[i, j] * a[j]
                total += term
                size += abs(term)
        r[i] = h[i] - total
        largest = max(largest, size)
    return largest


def _direction(G: Array, r: Array, F: Array, p: int, bound: float) -> Array:
    """Newton's step of the free variables but the p-th, which takes the sum of theirs."""
    k = F.size - 1
    H, slope, scale = np.empty((k, k), order="F"), np.empty(k), np.empty(k)
    more = 1.0
    for _ in range(12):
        _scaled(G, r, F, p, bound, more, H, slope, scale)
        factor, failed = dpotrf(H, lower=1, overwrite_a=1)
        if not failed:
            solved, _ = dpotrs(factor, slope, lower=1)
            if np.isfinite(solved).all():
                return np.asarray(solved * scale)
        # not positive definite by rounding: with more curvature of its own for every variable
        more *= 30.0
    _scaled(G, r, F, p, bound, more, H, slope, scale)
    return slope * scale


@compiled
def _scaled(
    G: Array,
    r: Array,
    F: Array,
    p: int,
    bound: float,
    more: float,
    H: Array,
    slope: Array,
    scale: Array,
) -> None:
    """Second and first derivatives of exchanges with the p-th free variable.

    Scaled to a diagonal of ones; lower half.
    """
    k, q = F.size - 1, F[p]
    steepest = 0.0
    for i in range(k):
        u = F[i] if i < p else F[i + 1]
        slope[i] = r[u] - r[q]
        steepest = max(steepest, abs(slope[i]))
    for i in range(k):
        u = F[i] if i < p else F[i + 1]
        least = more * max(8.0 * EPS * (abs(G[u, u]) + abs(G[q, q])), FLAT * steepest / bound)
        scale[i] = 1.0 / np.sqrt(max(G[u, u] - 2.0 * G[u, q] + G[q, q], 0.0) + least)
    for j in range(k):
        v = F[j] if j < p else F[j + 1]
        H[j, j] = 1.0 + 4.0 * EPS * k
        for i in range(j + 1, k):
            u = F[i] if i < p else F[i + 1]
            H[i, j] = (G[v, u] - G[q, u] - G[v, q] + G[q, q]) * scale[i] * scale[j]
    for i in range(k):
        slope[i] *= scale[i]


@compiled
def _advance(
    F: Array, p: int, step: Array, a: Array, free: Array, barred: Array, bound: float
) -> tuple[bool, bool]:
    """Go along the step until a variable meets zero, which leaves.

    Returns whether none did, and whether anything moved.
    """
    k = F.size
    d = np.empty(k)
    total = 0.0
    for i in range(k):
        d[i] = 0.0 if i == p else step[i if i < p else i - 1]
        total += d[i]
    d[p] = -total
    longest = 2.0
    for i in range(k):
        if d[i] < 0.0:
            longest = min(longest, a[F[i]] / -d[i])
    whole, length = longest > 1.0, min(1.0, longest)
    moved, total = False, 0.0
    for i in range(k):
        before = a[F[i]]
        after = max(0.0, before + length * d[i])
        # exactly zero, or it would be free for ever
        if not whole and d[i] < 0.0 and before / -d[i] <= longest:
            after = 0.0
        moved = moved or after != before
        a[F[i]] = after
        total += after
    for i in range(k):
        a[F[i]] *= bound / total
        if a[F[i]] == 0.0:
            free[F[i]] = False
            # joined and left without a step: not again before something moves
            barred[F[i]] = barred[F[i]] or not moved
    return whole, moved


def _finished(
    G: Array, h: Array, a: Array, r: Array, free: Array, bound: float, steps: int
) -> SmallSolution:
    a = a.copy()
    total = float(a.sum())
    if total > bound:
        a *= bound / total
    xi = float(r.max())  # the last entry is zero
    held = float((xi - r[free]).max()) if free.any() else 0.0
    return SmallSolution(a, xi, float(h @ a - 0.5 * (a @ (G @ a))), max(0.0, held), steps)
