"""Dual coordinate descent for linear problems, one column after the other or side by side.

Problem: :class:`slimsvm.problems.linear.LinearFit`,

    min over w, b of  1/2 |w|^2 + b^2 / (2 scaling^2) + sum_i weight_i e_i^p,     f = X w + b,

where e_i is the distance of the score f_i from the interval [low_i, high_i], and p is 1 or 2: the
hinge, the epsilon-insensitive loss, and the squares of both. The dual has a variable for each row,

    min over v of  1/2 |X'v|^2 + scaling^2 (sum v)^2 / 2 + sum_i shift_i v_i^2 / 2 - t_i v_i,

t_i = low_i where v_i > 0 and high_i where v_i < 0; |v_i| <= weight_i and shift_i = 0 for p = 1,
shift_i = 1 / (2 weight_i) for p = 2; an end that is not finite allows no such sign.

Algorithm: Hsieh, Chang, Lin, Keerthi & Sundararajan (2008), algorithm 3 (hsieh2008dcd), and for
intervals with two ends Ho & Lin (2012), algorithm 4 (ho2012svr): variables in random order, for
each the least value along it, while w = X'v is kept; variables that stay at a bound or at the kink
are set aside until the others are done.

What differs. A free intercept: it is penalised by its distance from a centre, which moves there
after every sweep, until v sums to zero (an augmented Lagrangian); the price is next to nothing. The
end is a duality gap, seen over all rows: for a free intercept the heavier sign of v is scaled down,
so that v sums to zero, and the primal point gets the best intercept of its scores. Values of primal
points go up and down where the dual ones only rise, and are ten times as far from the optimum: the
point that is kept is the best one between that of the last look and that of now. How small the
violation of the active variables must be before all are looked at follows from the last gap. Sums
over a row are four at a time, entries may be float32. The order is drawn by a generator of the
column's own: results do not depend on the number of threads.

Symbols: v dual variables, w = X'v, wb = scaling sum v the weight of the constant feature; G the
slope along a variable. Cost of a sweep: twice the entries of the active rows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from slimsvm.compiled import compiled, compiled_sum, larger, prefetch
from slimsvm.problems.linear import (
    FAR,
    TINY,
    GapOfColumns,
    LinearFit,
    LinearSolution,
    dense_dot,
    sparse_dot,
)
from slimsvm.run import FULL, Certificate
from slimsvm.threads import parallel

Array = NDArray[Any]
FIRST = 0.3  # of the first sweep's violation: when the active variables are so near, all are seen
MOST_STRICT, LEAST_STRICT = 0.1, 0.5  # factors of that from one look to the next
WORK = 4e8  # entries visited in a step: about half a second
LOOK = 5.0  # passes over all entries from one look to the next, at most: it costs two or three
TRIES = 12  # points between two primal ones: each takes as long as a few hundredths of a pass
AHEAD, NEXT = 8, 4  # rows ahead whose numbers, and whose entries, are asked for
# places in a column's numbers
CENTRE, WB, ACTIVE, TOP, BOTTOM, SWEEPS, TARGET, SEEN, VISITED = range(9)
# and in a row's
LOW, HIGH, SHIFT, BOUND, CURVE, V, FIRST_ENTRY, LAST_ENTRY = range(8)


@compiled
def descend(
    dense: Array, indptr: Array, indices: Array, data: Array, sq: Array, low: Array, high: Array,
    shift: Array, bound: Array, bias: float, free: bool, v: Array, w: Array, order: Array,
    seed: Array, at: Array, work: float,
) -> None:  # fmt: skip
    """Sweeps, in place, until the violation is small among all variables, or the work is done.

    Rows are dense ones, or those of a CSR matrix where ``dense`` has none. ``at`` has the numbers
    of the column; at[SEEN] says that the violation among all is at most at[TARGET].
    """
    n, is_dense = v.size, dense.shape[0] > 0
    active, centre, wb, top, bottom = int(at[ACTIVE]), at[CENTRE], at[WB], at[TOP], at[BOTTOM]
    random, bias_sq = seed[0], bias * bias
    at[SEEN], left = 0.0, work
    # what belongs to a row, side by side: rows are visited in random order, and each array of its
    # own would be a miss of the cache
    line = np.empty((n, 8))
    for i in range(n):
        line[i, LOW], line[i, HIGH], line[i, SHIFT] = low[i], high[i], shift[i]
        line[i, BOUND], line[i, CURVE], line[i, V] = bound[i], sq[i] + bias_sq + shift[i], v[i]
        if not is_dense:
            line[i, FIRST_ENTRY], line[i, LAST_ENTRY] = indptr[i], indptr[i + 1]
    lines = line.reshape(8 * n)
    while left > 0.0:
        # 1. an order of the active variables, drawn anew
        for s in range(active - 1):
            random ^= random << np.uint64(13)
            random ^= random >> np.uint64(7)
            random ^= random << np.uint64(17)
            share = (random >> np.uint64(32)) * np.uint64(active - s)
            j = s + np.int64(share >> np.uint64(32))
            order[s], order[j] = order[j], order[s]
        # 2. a sweep
        highest, lowest, s = 0.0, 0.0, 0
        while s < active:
            i = order[s]
            own = line[i]
            # rows are far apart: those that are next but a few are asked for now
            if s + AHEAD < active:
                prefetch(lines, 8 * order[s + AHEAD])
            if not is_dense and s + NEXT < active:
                soon = int(line[order[s + NEXT], FIRST_ENTRY])
                prefetch(indices, soon)
                prefetch(data, soon)
                prefetch(data, soon + 8)
            old, curve, most = own[V], own[CURVE], own[BOUND]
            g = bias * wb + centre + own[SHIFT] * old
            first, last = 0, 0
            if is_dense:
                g += dense_dot(dense[i], w)
                left -= w.size
            else:
                first, last = int(own[FIRST_ENTRY]), int(own[LAST_ENTRY])
                g += sparse_dot(indices, data, first, last, w)
                left -= last - first
            # the slope away from zero; what is pushed against a bound, or against the kink at zero,
            # harder than any other is towards it, is set aside
            rising, falling = g - own[LOW], g - own[HIGH]
            if old > 0.0:
                slope = rising
            elif old < 0.0:
                slope = -falling
            else:
                slope = min(rising, -falling)
            aside, still = False, False
            if old == 0.0:
                aside, still = slope > top, slope >= 0.0
            elif abs(old) >= most:
                aside, still = slope < bottom, slope <= 0.0
            if aside:
                active -= 1
                order[s], order[active] = order[active], i
                continue
            s += 1
            if still:
                continue
            highest, lowest = max(highest, slope), min(lowest, slope)
            if curve <= 0.0:
                new = most if rising < 0.0 else (-most if falling > 0.0 else 0.0)
            elif rising < curve * old:
                new = min(old - rising / curve, most)
            elif falling > curve * old:
                new = max(old - falling / curve, -most)
            else:
                new = 0.0
            change = new - old
            if change != 0.0:
                own[V] = new
                wb += change * bias
                if is_dense:
                    row = dense[i]
                    for k in range(row.size):
                        w[k] += change * row[k]
                else:
                    for k in range(first, last):
                        w[np.uint32(indices[k])] += change * data[k]
        at[SWEEPS] += 1.0
        left -= 1.0 + active  # what a row costs beside its entries
        moved = 0.0
        if free:  # the centre of the intercept goes where the intercept is
            moved = abs(bias * wb)
            centre += bias * wb
        if at[TARGET] <= 0.0:
            at[TARGET] = FIRST * (highest - lowest)
        if max(highest - lowest, moved) <= at[TARGET]:
            if active == n:
                at[SEEN] = 1.0
                break
            active, top, bottom = n, FAR, -FAR
        else:
            top = highest if highest > 0.0 else FAR
            bottom = lowest if lowest < 0.0 else -FAR
    for i in range(n):
        v[i] = line[i, V]
    at[VISITED] += work - left
    seed[0] = random
    at[ACTIVE], at[CENTRE], at[WB], at[TOP], at[BOTTOM] = active, centre, wb, top, bottom


@compiled_sum
def risk_between(
    low: Array, high: Array, weight: Array, squared: bool, first: Array, second: Array, t: float
) -> float:
    """The risk of the scores at t on the way from the first to the second."""
    total = 0.0
    for i in range(weight.size):
        f = first[i] + t * (second[i] - first[i])
        e = larger(f - high[i], 0.0) + larger(low[i] - f, 0.0)
        total += weight[i] * (e * e if squared else e)
    return total


@compiled
def least_between(
    low: Array, high: Array, weight: Array, squared: bool, first: Array, second: Array,
    slope: float, curve: float,
) -> float:  # fmt: skip
    """t from 0 to 1 with nearly the least slope t + curve t^2 / 2 and risk, by the golden section.

    Scores are with intercepts.
    """
    share = 0.6180339887498949
    a, b = 0.0, 1.0
    p, q = b - share * (b - a), a + share * (b - a)
    at_p = slope * p + 0.5 * curve * p * p
    at_p += risk_between(low, high, weight, squared, first, second, p)
    at_q = slope * q + 0.5 * curve * q * q
    at_q += risk_between(low, high, weight, squared, first, second, q)
    for _ in range(TRIES - 2):
        if at_p <= at_q:
            b, q, at_q = q, p, at_p
            p = b - share * (b - a)
            at_p = slope * p + 0.5 * curve * p * p
            at_p += risk_between(low, high, weight, squared, first, second, p)
        else:
            a, p, at_p = p, q, at_q
            q = a + share * (b - a)
            at_q = slope * q + 0.5 * curve * q * q
            at_q += risk_between(low, high, weight, squared, first, second, q)
    return p if at_p <= at_q else q


@dataclass
class DescentState(GapOfColumns):
    """Where the descent is: a line of every array for each column.

    ``n_iter`` counts passes over all rows; sweeps over a part of them are parts of such.
    """

    v: Array  # (columns, n)
    w: Array  # (columns, d)
    best: LinearSolution  # the primal points with the least values so far
    scores: Array  # (columns, n): those of the best points, without the intercept
    order: Array
    seed: Array
    at: Array

    def record(self) -> dict[str, float]:
        """A line of the history, with the sweeps so far."""
        return {**super().record(), "sweeps": float(self.at[:, SWEEPS].sum())}


@dataclass(kw_only=True)
class LinearDescent:
    """Dual coordinate descent; ``tol`` is the relative duality gap, of every column.

    Parameters
    ----------
    seed : int
        Of the order in which rows are visited.
    """

    keeps_state: ClassVar[bool] = True

    seed: int = 0

    def init(self, problem: LinearFit, start: LinearSolution | None = None) -> DescentState:
        """Begin at zero, or at the dual point of the scores of ``start``."""
        n, d, columns = problem.n, problem.size, problem.n_columns
        at = np.zeros((columns, 9))
        at[:, ACTIVE], at[:, TOP], at[:, BOTTOM] = n, FAR, -FAR
        numbers = np.random.SeedSequence(self.seed).generate_state(columns, np.uint64)
        state = DescentState(
            np.zeros((columns, n)),
            np.zeros((columns, d)),
            LinearSolution(np.zeros((d, columns)), np.zeros(columns)),
            np.zeros((columns, n)),
            np.tile(np.arange(n), (columns, 1)),
            (numbers | np.uint64(1)).reshape(columns, 1),
            at,
            primal=np.full(columns, np.inf),
            dual=np.zeros(columns),
        )
        bias = problem.bias

        def begin(c: int) -> None:
            column = problem.column(c)
            if start is not None:
                scores = problem.scores(start.coef[:, c]) + start.intercept[c]
                state.v[c] = column.dual_point(scores)
                state.w[c] = problem.pull(state.v[c])
                at[c, WB] = bias * float(state.v[c].sum())
                if problem.free:
                    at[c, CENTRE] = start.intercept[c]
                w, b, v = start.coef[:, c], float(start.intercept[c]), state.v[c]
                given = column.values(w, b, scores - b, v, w, problem.scaling)
                state.primal[c], state.best.coef[:, c], state.best.intercept[c] = given[0], w, b
                state.scores[c] = scores - b
            elif problem.free:
                at[c, CENTRE] = column.best_intercept(np.zeros(n))
            self._look(problem, state, c)

        parallel(begin, columns, problem.n_threads)
        return state

    def step(self, problem: LinearFit, state: DescentState, tol: float, max_iter: int) -> None:
        """Sweeps of every column whose gap is too large, and a look at all its rows."""
        S = state
        which = np.flatnonzero(S.relative_gap > tol)
        bias, a_pass = problem.bias, problem.entries + problem.n + 1.0
        work = max(a_pass, min(LOOK * a_pass, WORK / max(1, which.size)))

        def descend_one(t: int) -> None:
            c = int(which[t])
            column = problem.column(c)
            descend(
                *problem.arrays, problem.squares, column.low, column.high, column.shift,
                column.bound, bias, problem.free, S.v[c], S.w[c], S.order[c], S.seed[c], S.at[c],
                min(work, max_iter * a_pass - S.at[c, VISITED]),
            )  # fmt: skip
            self._look(problem, S, c)
            # how much nearer the active variables must come before the next look
            now = float(S.relative_gap[c])
            if S.at[c, SEEN]:
                S.at[c, TARGET] *= min(LEAST_STRICT, max(MOST_STRICT, 0.5 * tol / max(now, TINY)))

        parallel(descend_one, which.size, problem.n_threads)
        S.n_iter = int(S.at[:, VISITED].max() / a_pass)
        S.done = bool(np.all(S.relative_gap <= tol))

    @staticmethod
    def _look(problem: LinearFit, S: DescentState, c: int) -> None:
        """The values of the primal and of the dual problem, over all rows."""
        column, v, w = problem.column(c), S.v[c], S.w[c]
        feasible, of_feasible = v, w
        if problem.free:
            feasible = balanced(v)
            of_feasible = problem.pull(feasible)
        scores = problem.scores(of_feasible)
        b = column.intercept(scores, problem.scaling, problem.scaling * float(S.at[c, WB]))
        value, bound = column.values(of_feasible, b, scores, feasible, of_feasible, problem.scaling)
        S.dual[c] = max(S.dual[c], bound)
        points = [(value, of_feasible, b, scores)]
        if np.isfinite(S.primal[c]):
            old, old_b = S.best.coef[:, c], float(S.best.intercept[c])
            way, way_b = of_feasible - old, b - old_b
            t = least_between(
                column.low, column.high, column.weight, column.squared, S.scores[c] + old_b,
                scores + b, float(old @ way) + problem.ridge * old_b * way_b,
                float(way @ way) + problem.ridge * way_b * way_b,
            )  # fmt: skip
            point = old + t * way, old_b + t * way_b, S.scores[c] + t * (scores - S.scores[c])
            about = (*point, feasible, of_feasible, problem.scaling)
            points.append((column.values(*about)[0], *point))
        value, w, b, scores = min(points, key=lambda point: point[0])
        if value < S.primal[c]:
            S.primal[c], S.scores[c] = value, scores
            S.best.coef[:, c], S.best.intercept[c] = w, b

    def certificate(self, problem: LinearFit, state: DescentState, tol: float) -> Certificate:
        """Objective and gap summed over the columns.

        ``violation`` is the largest relative gap of a column.
        """
        violation = float(state.relative_gap.max())
        gap, objective = float(state.gap.sum()), float(state.primal.sum())
        found = Certificate(FULL, objective, violation, gap, tol, "float64")
        return found.rounded(problem.rounding(state.best, state.v))

    def model(self, problem: LinearFit, state: DescentState) -> LinearSolution:
        """Weights and intercepts."""
        return replace(state.best, duals=state.v)


def balanced(v: Array) -> Array:
    """The dual variables with the heavier sign scaled down, so that their sum is zero."""
    rising, falling = float(v[v > 0.0].sum()), -float(v[v < 0.0].sum())
    if rising == falling:
        return v
    if min(rising, falling) <= 0.0:
        return np.zeros_like(v)
    factor = min(rising, falling) / max(rising, falling)
    return np.where((v > 0.0) == (rising > falling), factor * v, v)
