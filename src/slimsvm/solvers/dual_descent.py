"""Descent along one dual variable after the other, with the matrix known by its factor.

Problem: :class:`slimsvm.problems.factored_dual.FactoredDual`,

    min over a of  1/2 a'(V V' + diag(shift)) a - linear'a     subject to     0 <= a_i <= upper_i.

Algorithm: dual coordinate descent, Hsieh, Chang, Lin, Keerthi & Sundararajan (2008), algorithm 3
(hsieh2008dcd): the variables are visited in random order; for each, the least value along it, cut
at its bounds, while w = V'a is kept, so that a step costs a row of V; variables that stay at a
bound are set aside until the others are done. It trains the models on low-rank factors of Lin &
Lin (2003), lin2003rsvm. The reduced problem has a dual of this form, too, with shift_i = 1/(2 C
weight_i) and no upper bound, but for the C it needs steps along single variables take too long: see
:mod:`slimsvm.solvers.chunking`.

What differs: it ends by the duality gap, seen over all variables after each step, and w is then
summed up anew, so that no rounding errors add up. For small shifts, that is a large C, the dual
value rises slowly (an a_i as large as C takes many steps, whose size C does not change), and the
primal value of w goes up and down with the last variables visited. Therefore a mean of w over the
sweeps, the later ones with more weight (Shamir & Zhang 2013, shamir2013sgd), is a second primal
point; both are stretched to their best length, since margins that are missed by little cost much;
and the best point of all is kept. V may be an array or CSR, in float32 or float64; sums are in
float64.

Symbols: G_i = v_i w + shift_i a_i - linear_i the slope along a_i; its part that is feasible is zero
at the optimum; lowest and highest of these in the last sweep say which variables may be set aside.
Cost of a sweep: twice the entries of V in the rows that are active.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from slimsvm.compiled import compiled
from slimsvm.problems.factored_dual import FactoredDual
from slimsvm.run import SUBSPACE, Certificate
from slimsvm.solvers.duality import BestValues
from slimsvm.sums import dot

Array = NDArray[Any]
FAR = 1e300  # stands for infinity in compiled loops
WORK = 1e8  # entries of V visited in a step: 0.1 to 0.2 s
# over all variables in a step, of small and of large problems: the gap costs as much as three
MOST_SWEEPS, FEWEST_SWEEPS = 10, 2
CALL = 5e4  # what a sweep costs at least, in entries of V
# of the first sweep's violation: when the active variables are so near, all are looked at again;
# then a tenth of it, ...
SET_ASIDE = 0.1
ROUNDING = 64 * float(np.finfo(float).eps)  # errors of a slope, relative to the size of its terms
ETA = 3  # of the mean: the paper's eta, which gives the last half of the sweeps most of the weight


@compiled
def _feasible(g: float, a: float, upper: float) -> float:
    """The part of the slope along which the variable may move."""
    if a <= 0.0:
        return g if g < 0.0 and upper > 0.0 else 0.0
    if a >= upper:
        return max(g, 0.0)
    return g


@compiled
def _least(g: float, a: float, curve: float, upper: float) -> float:
    """Where along the variable the value is least."""
    if curve > 0.0:
        return min(max(a - g / curve, 0.0), upper)
    if g < 0.0:
        return upper
    return 0.0 if g > 0.0 else a


@compiled
def _pressed(g: float, a: float, upper: float, lowest: float, highest: float) -> bool:
    """Whether a variable at a bound is pushed against it harder than any was in the last sweep."""
    return (a <= 0.0 and g > highest) or (a >= upper and g < lowest)


@compiled
def _set_aside(order: Array, s: int, n: int) -> int:
    """Variable s changes places with the last of n; how many are left."""
    order[s], order[n - 1] = order[n - 1], order[s]
    return n - 1


@compiled
def _moved(i: int, g: float, a: Array, diag: Array, upper: Array) -> tuple[float, float]:
    """Variable i goes to the least value along it: the slope that allowed it, and how far."""
    slope = _feasible(g, a[i], upper[i])
    if slope == 0.0:
        return slope, 0.0
    change = _least(g, a[i], diag[i], upper[i]) - a[i]
    a[i] += change
    return slope, change


@compiled
def _add_row(w: Array, change: float, row: Array) -> None:
    if change != 0.0:
        for j in range(row.size):
            w[j] += change * row[j]


@compiled
def _add_entries(
    w: Array, change: float, indices: Array, data: Array, first: int, last: int
) -> None:
    if change != 0.0:
        for p in range(first, last):
            w[indices[p]] += change * data[p]


@compiled
def _sweep_dense(
    V: Array,
    w: Array,
    a: Array,
    linear: Array,
    shift: Array,
    upper: Array,
    diag: Array,
    order: Array,
    lowest: float,
    highest: float,
) -> tuple[int, float, float]:
    """Visit the variables in ``order``, in place; those set aside end up at its end.

    Returns how many are left, and the extremes of slopes.
    """
    n, s, least, largest = order.size, 0, FAR, -FAR
    while s < n:
        # 1. the slope along the variable
        i = order[s]
        row = V[i]
        g = dot(row, w) + shift[i] * a[i] - linear[i]
        # 2. pushed against a bound: set aside
        if _pressed(g, a[i], upper[i], lowest, highest):
            n = _set_aside(order, s, n)
            continue
        # 3. the least value along it, and w
        slope, change = _moved(i, g, a, diag, upper)
        least, largest = min(least, slope), max(largest, slope)
        _add_row(w, change, row)
        s += 1
    return n, least, largest


@compiled
def _sweep_sparse(
    indptr: Array, indices: Array, data: Array, w: Array, a: Array, linear: Array, shift: Array,
    upper: Array, diag: Array, order: Array, lowest: float, highest: float,
) -> tuple[int, float, float]:  # fmt: skip
    """The same over rows of a CSR matrix."""
    n, s, least, largest = order.size, 0, FAR, -FAR
    while s < n:
        i = order[s]
        g = shift[i] * a[i] - linear[i]
        for p in range(indptr[i], indptr[i + 1]):
            g += data[p] * w[indices[p]]
        if _pressed(g, a[i], upper[i], lowest, highest):
            n = _set_aside(order, s, n)
            continue
        slope, change = _moved(i, g, a, diag, upper)
        least, largest = min(least, slope), max(largest, slope)
        _add_entries(w, change, indices, data, indptr[i], indptr[i + 1])
        s += 1
    return n, least, largest


@dataclass(frozen=True)
class DualPoint:
    """The dual variables a, w = V'a, and the value of a.

    With them, the best primal point that was seen, its value, and its length as a multiple of w
    where it is one. The gap is primal + dual.
    """

    a: Array
    w: Array
    dual: float
    best: Array
    primal: float
    length: float = 1.0


@dataclass
class DescentState(BestValues):
    """Where the descent is; ``n_iter`` counts sweeps."""

    a: Array
    w: Array
    upper: Array  # finite
    diag: Array
    rng: np.random.Generator
    active: Array
    mean: Array  # of w over the sweeps
    best: Array  # the primal point with the least value so far
    lowest: float = -FAR
    highest: float = FAR
    length: float = 1.0  # of the best point, as a multiple of w, where its value is asked for
    near: float = 0.0  # violation at which all variables are looked at again; 0: not yet known

    @property
    def gap(self) -> float:
        """The duality gap; ``dual`` is the least value of the dual problem, with its sign."""
        return max(0.0, self.primal + self.dual)

    def record(self) -> dict[str, float]:
        """A line of the history; ``violation`` is the relative gap."""
        return super().record() | {
            "n_support": float(np.count_nonzero(self.a)),
            "active": float(self.active.size),
        }


@dataclass(kw_only=True)
class DualDescent:
    """Dual coordinate descent.

    ``tol`` is the duality gap relative to the primal value, ``max_iter`` limits sweeps over the
    variables.

    Parameters
    ----------
    seed : int
        Of the orders in which variables are visited.
    shrinking : bool
        Whether variables that stay at a bound are set aside for a while.
    own_value : bool
        Whether the primal value is that of the function of the last dual point, times the length
        that is best for it, for those who use it; else that of the best primal point seen.

    Examples
    --------
    >>> from slimsvm.run import run
    >>> V = np.array([[1.0, 1.0], [2.0, -1.0], [0.5, 0.5]])
    >>> result = run(DualDescent(seed=0), FactoredDual(V, 1.0, shift=0.0, upper=10.0), tol=1e-9)
    >>> result.model.w.round(4), result.certificate.holds
    (array([1., 1.]), True)
    """

    seed: int = 0
    shrinking: bool = True
    own_value: bool = False

    def init(self, problem: FactoredDual, start: Array | None = None) -> DescentState:
        """Begin at ``start``, cut at the bounds, or at zero."""
        upper = np.minimum(problem.upper, FAR)
        a = (
            np.zeros(problem.n)
            if start is None
            else np.clip(np.asarray(start, np.float64), 0.0, upper)
        )
        w, everything = problem.combined(a), np.arange(problem.n)
        return DescentState(
            a,
            w,
            upper,
            problem.diag(),
            np.random.default_rng(self.seed),
            everything,
            w.copy(),
            w.copy(),
        )

    def step(self, problem: FactoredDual, state: DescentState, tol: float, max_iter: int) -> None:
        """Some sweeps, and the gap where they end."""
        S, n, steepest = state, problem.n, np.inf
        values = problem.n_values
        # entries of V to visit
        budget = max(
            MOST_SWEEPS * CALL, min(MOST_SWEEPS * values, max(FEWEST_SWEEPS * values, WORK))
        )
        while budget > 0 and S.n_iter < max_iter:
            budget -= max(CALL, values * S.active.size / n)
            # 1. a sweep over the active variables, in random order
            whole, order = S.active.size == n, S.rng.permutation(S.active)
            left, least, largest = self._sweep(problem, S, order)
            violation = max(0.0, largest) - min(0.0, least)
            S.n_iter += 1
            S.mean += (ETA + 1) / (S.n_iter + ETA) * (S.w - S.mean)
            steepest = violation if whole else steepest
            if not self.shrinking:
                continue
            # 2. which variables the next sweep visits, and which of them it may set aside
            S.near = S.near or SET_ASIDE * violation
            # sorted: what follows does not depend on when variables left
            S.active = np.sort(order[:left])
            S.lowest, S.highest = least if least < 0.0 else -FAR, largest if largest > 0.0 else FAR
            # the active ones are done, for now: all are looked at again, once in a while more
            # closely
            if violation <= S.near or not left:
                S.near = 0.1 * S.near if whole else S.near
                S.active, S.lowest, S.highest = np.arange(n), -FAR, FAR
        # 3. the gap, from a w without rounding errors of thousands of steps
        S.w = problem.combined(S.a)
        S.dual = problem.dual(S.a, S.w)
        if self.own_value:
            S.primal, S.length = problem.stretched(S.w)
            S.best = S.length * S.w
        for point in () if self.own_value else (S.w, S.mean):
            value, length = problem.stretched(point)
            if value < S.primal:
                S.primal, S.best = value, length * point
        scale = float(
            np.abs(problem.linear).max(initial=0.0) + np.sqrt(S.diag.max(initial=0.0) * (S.w @ S.w))
        )
        S.stalled = steepest <= ROUNDING * scale  # of the slopes: they are all that is left
        S.done = S.relative_gap <= tol or S.stalled

    @staticmethod
    def _sweep(problem: FactoredDual, S: DescentState, order: Array) -> tuple[int, float, float]:
        about = (
            S.w,
            S.a,
            problem.linear,
            problem.shift,
            S.upper,
            S.diag,
            order,
            S.lowest,
            S.highest,
        )
        if sp.issparse(problem.V):
            return _sweep_sparse(problem.V.indptr, problem.V.indices, problem.V.data, *about)
        return _sweep_dense(problem.V, *about)

    def certificate(self, problem: FactoredDual, state: DescentState, tol: float) -> Certificate:
        """Value of the best primal point, and duality gap; ``violation`` is their ratio."""
        measured = (state.primal, state.relative_gap, state.gap, tol, str(problem.V.dtype))
        return Certificate(SUBSPACE, *measured).rounded(problem.rounding(state.a, state.best))

    def model(self, problem: FactoredDual, state: DescentState) -> DualPoint:
        """The dual point, w, and the best primal point."""
        point = (state.a, state.w, state.dual, state.best, state.primal)
        return DualPoint(*point, state.length)
