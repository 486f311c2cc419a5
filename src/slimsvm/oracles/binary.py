"""The oracle of risks that are sums over rows.

Any convex loss, several columns (one-vs-rest) at once.

    R(f) = sum_i weight_i L(y_i, f_i)  >=  offset + sum_i v_i f_i,
    v_i = weight_i u_i,  offset = -sum_i weight_i L*(y_i, u_i)

for any slopes u, with equality at f where u_i is a derivative of L there. The offset comes from the
conjugate L* and not from R(f) - v'f, so that a cut is a bound whatever the rounding errors of f.
For the hinge u_i is -y_i where the margin is missed and zero elsewhere: then v_i = -weight_i y_i,
and the offset is the sum of the weights in the cut (Joachims 2006, with C n times his scale).

The *balanced* cut takes the best intercept b for the scores, and at the kinks that b sits on the
one subgradient with sum_i v_i = 0. It supports min over b of R(f + b), a function of f alone: a
method that uses nothing but balanced cuts has an intercept without a penalty.

Piecewise linear losses are sums of kinks: the slope of row i is base_i plus the number of its kinks
below f_i (hinge: one, at y_i; epsilon- insensitive: two, at y_i -+ epsilon). The best intercept,
and the best step along a line, is where a sum of steps changes its sign: a weighted selection, O(n)
without sorting. Other losses have a derivative, and :func:`slimsvm.solvers.line_search.least_along`
does the same for them.

Symbols: f scores; d their change along a line; u slopes; at, jump where the slope of a sum jumps,
and by how much; tau share of a jump. Cost: O(n) for every column, in everything.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slimsvm.compiled import compiled
from slimsvm.losses import EpsilonInsensitive, Hinge, Loss
from slimsvm.precision import bent
from slimsvm.rows import PerRow
from slimsvm.solvers.cuts import Columns
from slimsvm.solvers.line_search import least_along
from slimsvm.threads import parallel

Array = NDArray[Any]
BLOCK = 16384  # rows in a block: its arrays stay in cache
FAR = 1e30  # steps beyond are never taken
# slopes of the risk in the intercept that count as none, relative to the sum of the weights
FLAT = 1e-12
MOST_VALUES = 255  # different slopes that a byte can name


@dataclass(frozen=True)
class Slopes:
    """The slopes of one cut, a byte a row: their values, and which one each row has.

    As float32, where there are too many values.
    """

    codes: Array
    values: Array | None


class LossOracle(PerRow):
    """Risk, cuts, best intercepts and best steps for a loss.

    Parameters
    ----------
    loss : Loss
        Any convex loss.
    target : array of shape (n,) or (n, columns)
        Labels of -1 and +1, or numbers; one column for each independent problem.
    weight : array of shape (n,)
        C times the weight of each row.
    n_threads : int
        Results are the same bits for any number.

    Examples
    --------
    >>> import numpy as np
    >>> from slimsvm.losses import Hinge
    >>> from slimsvm.oracles import LossOracle
    >>> oracle = LossOracle(Hinge(), np.array([1.0, 1.0, -1.0]), np.array([1.0, 1.0, 2.0]))
    >>> risk, offset, v = oracle.cut(0, 3, np.array([[2.0], [0.5], [-0.5]]))
    >>> risk, offset, v.ravel()
    (array([1.5]), array([3.]), array([ 0., -1.,  2.]))
    >>> oracle.intercept(np.zeros((3, 1)), middle=True)
    array([0.])
    >>> oracle.balanced(np.zeros((3, 1)))[3].ravel()
    array([-1., -1.,  2.])
    """

    def __init__(self, loss: Loss, target: Array, weight: Array, n_threads: int = 1) -> None:
        self.loss, self.n_threads = loss, n_threads
        self.target = np.asarray(target, np.float64)
        self.target = self.target[:, None] if self.target.ndim == 1 else self.target
        self.weight = np.ascontiguousarray(weight, np.float64)
        self.n, self.n_columns = self.target.shape
        self.labels = isinstance(loss, Hinge)  # whose base is -1 for positive rows only
        self.kinks = _kinks(loss)

    # -- risk and cuts -----------------------------------------------------------------------------

    def _part(self, first: int, last: int, columns: Array | None) -> tuple[Array, Array]:
        target = self.target[first:last]
        return (
            target if columns is None or columns.size == self.n_columns else target[:, columns]
        ), self.weight[first:last]

    def cut(
        self, first: int, last: int, scores: Array, columns: Columns = None
    ) -> tuple[Array, Array, Array]:
        """Risk, offset and responses v of rows first to last.

        Their share of the risk and of the offset, for each column; responses have the shape (rows,
        columns).

        ``columns`` are those that the scores stand for, in ascending order; None: all.
        """
        y, weight = self._part(first, last, columns)
        slopes = self.loss.gradient(y, scores)
        return (
            weight @ self.loss.value(y, scores),
            -(weight @ self.loss.conjugate(y, slopes)),
            weight[:, None] * slopes,
        )

    def bent(self, scores: Array, off: Array) -> float:
        """What errors ``off`` of all scores may cost beyond what slopes there say."""
        return bent(self.loss, self.target, self.weight, scores, off)

    def cuts(self, scores: Array, columns: Columns = None) -> tuple[Array, Array, Array]:
        """The same for all rows."""
        responses = np.empty_like(scores, dtype=np.float64)

        def work(first: int, last: int) -> Array:
            risk, offset, responses[first:last] = self.cut(first, last, scores[first:last], columns)
            return np.stack([risk, offset])

        risk, offset = self._summed(work)
        return risk, offset, responses

    def risk(self, scores: Array, columns: Columns = None) -> Array:
        """R(f) for each column."""

        def work(first: int, last: int) -> Array:
            y, weight = self._part(first, last, columns)
            return np.asarray(weight @ self.loss.value(y, scores[first:last]))

        return self._summed(work)

    def _summed(self, work: Callable[[int, int], Array]) -> Array:
        """The sum of work(first, last) over blocks with fixed edges, in order."""
        parts: list[Any] = [None] * max(1, -(-self.n // BLOCK))

        def task(k: int) -> None:
            parts[k] = work(k * BLOCK, min(self.n, (k + 1) * BLOCK))

        parallel(task, len(parts), self.n_threads)
        return np.asarray(sum(parts[1:], parts[0]))

    def balanced(self, scores: Array, columns: Columns = None) -> tuple[Array, Array, Array, Array]:
        """The best intercept for each column, and the cut there whose responses sum to zero.

        Of the cut: risk, offset and responses.

        ``scores`` are without an intercept; the cut is R(f) >= offset + v'f for every intercept in
        f.
        """
        y, weight = self._part(0, self.n, columns)
        intercept, slopes = np.empty(scores.shape[1]), np.empty_like(scores, dtype=np.float64)
        if self.kinks is not None:
            kinks = self.kinks

            def column(c: int) -> None:
                u = np.empty(self.n)
                s, t = np.ascontiguousarray(scores[:, c]), np.ascontiguousarray(y[:, c])
                intercept[c], tau = self._selected(s, t)
                _slopes_at(s, t, self.labels, kinks, intercept[c], tau, u)
                slopes[:, c] = u

            parallel(column, scores.shape[1], self.n_threads)
        else:
            intercept[:] = _smooth_intercept(self.loss, y, weight, scores)
            slopes[:] = self.loss.gradient(y, scores + intercept)
            # what is left of the sum goes by scaling the heavier sign down: towards zero, where
            # every conjugate is finite
            up, down = weight @ np.maximum(slopes, 0.0), weight @ np.maximum(-slopes, 0.0)
            least = np.minimum(up, down)
            with np.errstate(invalid="ignore", divide="ignore"):
                slopes *= np.where(
                    slopes > 0,
                    np.where(up > 0, least / up, 0.0),
                    np.where(down > 0, least / down, 0.0),
                )

        def work(first: int, last: int) -> Array:
            t, w = self._part(first, last, columns)
            u = slopes[first:last]
            sums = np.stack(
                [
                    w @ self.loss.value(t, scores[first:last] + intercept),
                    -(w @ self.loss.conjugate(t, u)),
                ]
            )
            u *= w[:, None]
            return sums

        risk, offset = self._summed(work)
        return intercept, risk, offset, slopes

    # -- one dimension at a time -------------------------------------------------------------------

    def intercept(self, scores: Array, columns: Columns = None, middle: bool = False) -> Array:
        """The b with the least R(f + b), for each column.

        ``middle``: where there are several, the middle of them.
        """
        y, weight = self._part(0, self.n, columns)
        if self.kinks is None:
            return _smooth_intercept(self.loss, y, weight, scores)
        out = np.empty(scores.shape[1])

        def column(c: int) -> None:
            s, t = np.ascontiguousarray(scores[:, c]), np.ascontiguousarray(y[:, c])
            if middle:
                flat = FLAT * float(self.weight.sum())
                out[c] = 0.5 * (self._selected(s, t, flat)[0] + self._selected(s, t, -flat)[0])
            else:
                out[c] = self._selected(s, t)[0]

        parallel(column, scores.shape[1], self.n_threads)
        return out

    def _selected(self, scores: Array, target: Array, extra: float = 0.0) -> tuple[float, float]:
        """Where the slope of R(f + b) in b turns positive, and the share of the jump there.

        ``extra`` is added to the slope.
        """
        assert self.kinks is not None
        at, jump = np.empty(scores.size * self.kinks.size), np.empty(scores.size * self.kinks.size)
        size, slope = _intercept_kinks(
            scores, target, self.weight, self.labels, self.kinks, at, jump
        )
        if not size:
            return 0.0, 0.0
        b, tau = _crossing(at, jump, size, slope + extra, 0.0)
        return float(b), float(tau)

    def line(
        self, scores: Array, change: Array, slope: Array, curvature: Array, columns: Columns = None
    ) -> Array:
        """The t >= 0 with the least t slope + t^2 curvature/2 + R(f + t d), for each column."""
        y, weight = self._part(0, self.n, columns)
        if self.kinks is None:
            return least_along(self.loss, y, weight, scores, change, slope, curvature)
        out, kinks = np.empty(scores.shape[1]), self.kinks

        def column(c: int) -> None:
            f, d, t = (np.ascontiguousarray(values[:, c]) for values in (scores, change, y))
            at, jump = np.empty(f.size * kinks.size), np.empty(f.size * kinks.size)
            size, begin = _line_kinks(f, d, t, self.weight, self.labels, kinks, at, jump)
            begin += float(slope[c])
            out[c] = 0.0
            if begin < 0.0 and (size or curvature[c] > 0.0):
                out[c] = max(0.0, float(_crossing(at, jump, size, begin, float(curvature[c]))[0]))

        parallel(column, scores.shape[1], self.n_threads)
        return out

    # -- cuts, kept compactly ----------------------------------------------------------------------

    def packed(self, responses: Array) -> Slopes:
        """The responses of one cut (one column of them) as slopes.

        In a byte a row where they have few different values.
        """
        with np.errstate(invalid="ignore", divide="ignore"):
            slopes = np.where(self.weight > 0, responses / self.weight, 0.0)
        codes = np.zeros(self.n, np.uint8)
        codes[slopes == 1.0], codes[slopes == -1.0] = 1, 2
        others = np.flatnonzero((slopes != 0.0) & (np.abs(slopes) != 1.0))
        different, names = np.unique(slopes[others], return_inverse=True)
        if different.size + 3 > MOST_VALUES:
            return Slopes(slopes.astype(np.float32), None)
        codes[others] = names + 3
        return Slopes(codes, np.concatenate([[0.0, 1.0, -1.0], different]))

    def unpacked(self, kept: Slopes, first: int, last: int) -> Array:
        """The responses of rows first to last."""
        codes = kept.codes[first:last]
        return np.asarray(
            self.weight[first:last] * (codes if kept.values is None else kept.values[codes])
        )

    def by_row(self, kept: list[Slopes]) -> LossCuts:
        """Cuts, of which each block of rows gets its part."""
        return LossCuts(self.weight, kept)

    def part(self, first: int, last: int) -> LossOracle:
        """The risk of rows first to last."""
        if last - first == self.n:
            return self
        return LossOracle(self.loss, self.target[first:last], self.weight[first:last])


class LossCuts(PerRow):
    """The responses of cuts, kept compactly."""

    def __init__(self, weight: Array, kept: list[Slopes]) -> None:
        self.weight, self.kept = weight, kept

    def part(self, first: int, last: int) -> LossCuts:
        """Of rows first to last."""
        some = [Slopes(cut.codes[first:last], cut.values) for cut in self.kept]
        return LossCuts(self.weight[first:last], some)

    def responses(self, first: int, last: int) -> Array:
        """Those of rows first to last: (rows, cuts)."""
        out = np.empty((last - first, len(self.kept)))
        for t, cut in enumerate(self.kept):
            codes = cut.codes[first:last]
            slopes = codes if cut.values is None else cut.values[codes]
            out[:, t] = self.weight[first:last] * slopes
        return out

    def products(self, first: int, last: int, values: Array) -> Array:
        """values (q, rows) times the responses of rows first to last, of each cut: (q, cuts)."""
        weighted = values * self.weight[first:last]
        out = np.empty((len(self.kept), values.shape[0]))
        for t, cut in enumerate(self.kept):
            codes = cut.codes[first:last]
            if cut.values is None:
                out[t] = weighted @ codes
            else:
                _named_sums(weighted, codes, cut.values, out[t])
        return out.T


@compiled
def _named_sums(weighted: Array, codes: Array, values: Array, out: Array) -> None:
    """out[r] = sum_i weighted[r, i] values[codes[i]]"""
    for r in range(weighted.shape[0]):
        total = 0.0
        for i in range(codes.size):
            total += weighted[r, i] * values[codes[i]]
        out[r] = total


def _kinks(loss: Loss) -> Array | None:
    """Where the loss has its kinks, relative to the target; None if it is not piecewise linear."""
    if isinstance(loss, Hinge):
        return np.zeros(1)  # 1 - y f = 0 is f = y
    if isinstance(loss, EpsilonInsensitive):
        return np.array([-loss.epsilon, loss.epsilon])
    return None


def _smooth_intercept(loss: Loss, target: Array, weight: Array, scores: Array) -> Array:
    slope = weight @ loss.gradient(target, scores)
    sign, nothing = np.where(slope > 0, -1.0, 1.0), np.zeros(scores.shape[1])
    return np.asarray(
        sign
        * least_along(loss, target, weight, scores, np.ones_like(scores) * sign, nothing, nothing)
    )


# -- loops -----------------------------------------------------------------------------------------


@compiled
def _intercept_kinks(
    scores: Array, target: Array, weight: Array, labels: bool, kinks: Array, at: Array, jump: Array
) -> tuple[int, float]:
    """Fill in where the slope of sum_i weight_i L(y_i, f_i + b) jumps as b grows.

    Returns the number of jumps, and the slope at minus infinity.
    """
    size, slope = 0, 0.0
    for i in range(scores.size):
        w = weight[i]
        if w > 0.0:
            if not labels or target[i] > 0.0:
                slope -= w
            for k in range(kinks.size):
                at[size], jump[size] = target[i] + kinks[k] - scores[i], w
                size += 1
    return size, slope


@compiled
def _slopes_at(
    scores: Array, target: Array, labels: bool, kinks: Array, b: float, tau: float, out: Array
) -> None:
    """The slopes at intercept b; where it is a kink, the share tau of its jump.

    The same differences as above: ties are exact.
    """
    for i in range(scores.size):
        u = -1.0 if not labels or target[i] > 0.0 else 0.0
        for k in range(kinks.size):
            x = target[i] + kinks[k] - scores[i]
            if x < b:
                u += 1.0
            elif x == b:
                u += tau
        out[i] = u


@compiled
def _line_kinks(
    f: Array,
    d: Array,
    target: Array,
    weight: Array,
    labels: bool,
    kinks: Array,
    at: Array,
    jump: Array,
) -> tuple[int, float]:
    """The same along f + t d, for t > 0; returns their number, and the slope just after t = 0."""
    size, slope = 0, 0.0
    for i in range(f.size):
        w, change = weight[i], d[i]
        if w > 0.0 and change != 0.0:
            u = -1.0 if not labels or target[i] > 0.0 else 0.0
            for k in range(kinks.size):
                ahead = target[i] + kinks[k] - f[i]
                if ahead < 0.0 or (ahead == 0.0 and change > 0.0):
                    u += 1.0
                if (
                    ahead != 0.0
                    and (ahead > 0.0) == (change > 0.0)
                    and abs(ahead) < FAR * abs(change)
                ):
                    at[size], jump[size] = ahead / change, w * abs(change)
                    size += 1
            slope += w * change * u
    return size, slope


@compiled
def _crossing(
    at: Array, jump: Array, size: int, slope: float, curvature: float
) -> tuple[float, float]:
    """Where slope + curvature x + (sum of the jumps below x) turns from negative to not.

    Also returns the share of the jump there that it takes.

    Quickselect: a pivot splits the jumps; the side that cannot hold the crossing is summed up, or
    dropped. Rearranges the arrays.
    """
    first, last = 0, size
    low, upper, share, negative = 0.0, 0.0, 1.0, slope < 0.0
    if size > 0:
        low = upper = at[0]
        for k in range(size):
            low, upper = min(low, at[k]), max(upper, at[k])
    seed = 1
    while first < last:
        # any sequence will do that no order of rows is made against
        seed = (seed * 16807) % 2147483647
        pivot = at[first + seed % (last - first)]
        i, k, j = first, first, last
        below, equal = 0.0, 0.0
        while k < j:
            x, y = at[k], jump[k]
            if x < pivot:
                below += y
                at[k], jump[k], at[i], jump[i] = at[i], jump[i], x, y
                i += 1
                k += 1
            elif x > pivot:
                j -= 1
                at[k], jump[k], at[j], jump[j] = at[j], jump[j], x, y
            else:
                equal += y
                k += 1
        before = slope + curvature * pivot + below
        if before >= 0.0:
            last, upper, share = i, pivot, 0.0
        elif before + equal >= 0.0:
            return pivot, min(1.0, -before / equal)
        else:
            slope += below + equal
            first = j
    if curvature > 0.0:
        root = -slope / curvature
        return (min(root, upper), 0.0) if share == 0.0 else (root, 0.0)
    # not by the sign that is left: it may be that of a rounding error
    return (upper, share) if negative else (low, 0.0)
