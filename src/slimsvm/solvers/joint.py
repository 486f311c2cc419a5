"""Structured outputs for the cutting-plane driver.

One problem, whose function has a column for every label.

    min over w of  1/2 |w|^2 + sum_i weight_i max over y of [Delta(y_i, y) + s_i(y) - s_i(y_i)]

    s_i(y) = sum over the parts p of example i of f_{y_p}(x_p)  +  <linear, phi(y)>,
    f_l(x) = <w_l, phi(x)> + b_l

To the driver this is *one* column: its coordinates are those of all w_l, of the intercepts and of
the linear part, one after the other, and its scores those of all parts and labels, with the linear
part at the end. :class:`JointSpace` lays them out so over any space of
:mod:`slimsvm.solvers.spaces`, :class:`JointRisk` does so for any oracle of structured outputs.
Nothing else is needed, and every oracle works in every space: with a basis that grows, this is
cutting-plane subspace pursuit (Joachims & Yu 2009) for multi-class models and for sequences.

An intercept is a constant in the kernel, with the penalty b^2 / (2 intercept_scaling^2); zero:
there is none.

Line search: the risk along a line is convex, and an oracle gives its value and slope at a point.
Two planes, one on either side of the minimum, say where to look next; few looks are enough, and
they cost no product with the rows.

Symbols: l labels; V responses (parts, labels) flattened, then those of the linear part; d
derivative of the risk along a line.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from slimsvm.rows import PerRow
from slimsvm.solvers.cuts import Columns
from slimsvm.solvers.spaces import Space
from slimsvm.threads import parallel

Array = NDArray[Any]
BLOCK_SCORES = 1 << 16  # in one block of examples: what is made of them stays in cache
LINE_SHARE = 0.1  # of what a line search has gained may be missing at its end
MOST_LOOKS = 30
EDGE = 0.05  # share of the bracket that a look keeps away from its ends


class StructuredOracle(Protocol):
    """What is asked of an oracle for structured outputs; see :mod:`slimsvm.oracles.structured`."""

    n_columns: int
    n_linear: int

    def cut(
        self,
        scores: Array,
        labels: Array,
        offsets: Array,
        weight: Array,
        linear: Array,
        n_threads: int = 1,
    ) -> tuple[float, float, Array, Array]:
        """Risk, sum of losses, responses and linear response of a block of whole examples.

        Responses have the shape (parts, columns).
        """

    def worst(
        self, scores: Array, labels: Array, offsets: Array, linear: Array, n_threads: int = 1
    ) -> tuple[Array, Array, Array]:
        """The most violating labels, their losses, and by how much they violate."""

    def losses(self, labels: Array, found: Array, offsets: Array) -> Array:
        """Of every example."""

    def max_loss(self, offsets: Array) -> float:
        """A bound on the loss of any example."""


@dataclass(frozen=True)
class Kept:
    """The responses of one cut, in little memory: most are zero."""

    parts: Array  # of each response, in ascending order
    labels: Array
    values: Array
    linear: Array


class JointSpace(Space):
    """All labels' functions as one.

    Coordinates: linear part; intercepts, if there are any; then label by label for each coordinate
    of the space, so that a space that grows adds coordinates at the end.

    Parameters
    ----------
    space : Space
        Where the function of one label lives.
    width, n_linear : int
        Columns of the scores, and length of the linear part, of the oracle.
    intercept_scaling : float
        The constant in the kernel; zero: no intercepts.

    Examples
    --------
    >>> from slimsvm.rows import MemoryRows
    >>> from slimsvm.solvers.spaces import ExplicitSpace
    >>> space = JointSpace(ExplicitSpace(MemoryRows(np.array([[1.0], [2.0]]))), width=2)
    >>> space.scores(np.array([[3.0], [-1.0]])).reshape(2, 2)
    array([[ 3., -1.],
           [ 6., -2.]])
    """

    def __init__(
        self, space: Any, width: int, n_linear: int = 0, intercept_scaling: float = 0.0
    ) -> None:
        self.space, self.width, self.n_linear = space, width, n_linear
        self.scaling = float(intercept_scaling)
        self.n_own = n_linear + (width if self.scaling else 0)
        self.n, self.n_threads = space.n * width + n_linear, space.n_threads
        self.scope, self.precision, self.kept_in = space.scope, space.precision, space.kept_in

    @property
    def size(self) -> int:  # type: ignore[override]
        """Number of coordinates."""
        return int(self.n_own + self.space.size * self.width)

    @property
    def max_size(self) -> int:  # type: ignore[override]
        """What it may become."""
        return int(self.n_own + self.space.max_size * self.width)

    @property
    def growing(self) -> bool:  # type: ignore[override]
        """Whether the space may gain coordinates."""
        return bool(self.space.growing)

    def grown(self) -> Any:
        """As the space of one label."""
        return self.space.grown()

    def grow_again(self, known: Any) -> None:
        """As the space of one label."""
        self.space.grow_again(known)

    @property
    def n_basis(self) -> int:
        """Of the space."""
        return int(self.space.n_basis)

    @property
    def columns(self) -> Any:
        """Of the space, if it has any."""
        return getattr(self.space, "columns", None)

    def by_label(self, W: Array) -> Array:
        """The coordinates of one function in the space, (coordinates, labels)."""
        return W[self.n_own :].reshape(-1, self.width)

    def intercepts(self, W: Array) -> Array:
        """Those of one function, (labels,)."""
        return (
            self.scaling * W[self.n_linear : self.n_own].ravel()
            if self.scaling
            else np.zeros(self.width)
        )

    def scores(self, W: Array) -> Array:
        """Of all parts and labels, then the weights of the linear part: (n, columns)."""
        out = np.empty((self.n, W.shape[1]))
        end = self.n - self.n_linear
        for c in range(W.shape[1]):
            S = self.space.scores(self.by_label(W[:, c]))
            if self.scaling:
                S += self.intercepts(W[:, c])
            out[:end, c], out[end:, c] = S.ravel(), W[: self.n_linear, c]
        return out

    def project(self, V: Array) -> Array:
        """Coordinates of cuts."""
        out = np.empty((self.size, V.shape[1]))
        end = self.n - self.n_linear
        for c in range(V.shape[1]):
            responses = V[:end, c].reshape(-1, self.width)
            out[: self.n_linear, c] = V[end:, c]
            if self.scaling:
                out[self.n_linear : self.n_own, c] = self.scaling * responses.sum(axis=0)
            out[self.n_own :, c] = self.space.project(responses).ravel()
        return out

    def metric(self, B: Array) -> Array:
        """That of the space, for every label."""
        if type(self.space).metric is Space.metric:
            return B
        columns = B.reshape(self.size, -1)
        inside = [self.space.metric(self.by_label(b)).ravel() for b in columns.T]
        return np.vstack([columns[: self.n_own], np.stack(inside, axis=1)]).reshape(B.shape)

    def rounding(self, W: Array, V: Array, scores: Array) -> float:
        """That of the space, over all labels."""
        end = self.n - self.n_linear
        slopes, f = (values[:end, 0].reshape(-1, self.width) for values in (V, scores))
        own, f = W[: self.n_own, 0], f - self.intercepts(W[:, 0])
        exact = 8.0 * float(np.finfo(float).eps) * float(own @ own + np.abs(V).sum())
        # intercepts are sums of responses, in the precision that cuts are kept in
        kept = 2.0 * float(np.finfo(self.kept_in).eps) * float(np.abs(own).sum() * np.abs(V).sum())
        return float(self.space.rounding(self.by_label(W[:, 0]), slopes, f)) + exact + kept

    def errors(self, W: Array, scores: Array) -> Array:
        """Those of the space; of the linear part and intercepts there are none to speak of."""
        end, out = self.n - self.n_linear, np.zeros((self.n, 1))
        f = scores[:end, 0].reshape(-1, self.width) - self.intercepts(W[:, 0])
        out[:end, 0] = self.space.errors(self.by_label(W[:, 0]), f).ravel()
        return out

    def extend(self, V: Array, P: Array) -> int:
        """Offer what a cut has outside of the space, of all labels at once.

        Returns the number of coordinates gained.
        """
        responses = V[: self.n - self.n_linear, 0].reshape(-1, self.width)
        return int(self.space.extend(responses, self.by_label(P[:, 0]))) * self.width

    def further(self, n_old: int, cuts: PerRow, P: Array) -> Array:
        """The coordinates of old cuts that the space gained since it had n_old: (new, cuts)."""
        old = P[self.n_own :].reshape((n_old - self.n_own) // self.width, self.width * P.shape[1])
        new = self.space.further(old.shape[0], cuts, old)
        return np.asarray(new.reshape(new.shape[0] * self.width, P.shape[1]))


class JointRisk:
    """The risk of structured outputs, as the driver asks for it.

    Parameters
    ----------
    oracle : StructuredOracle
        The outputs and their loss.
    labels : int array of shape (parts,)
        The right labels of all parts.
    offsets : int array of shape (examples + 1,)
        Where the parts of each example begin.
    weight : array of shape (examples,)
        C times the weight of each example.
    n_threads : int
        Results are the same bits for any number.
    """

    n_columns = 1

    def __init__(
        self,
        oracle: StructuredOracle,
        labels: Array,
        offsets: Array,
        weight: Array,
        n_threads: int = 1,
    ) -> None:
        self.oracle, self.labels, self.offsets, self.n_threads = oracle, labels, offsets, n_threads
        self.weight = np.ascontiguousarray(weight, np.float64)
        self.n_parts, self.width, self.n_linear = labels.size, oracle.n_columns, oracle.n_linear
        self.n = self.n_parts * self.width + self.n_linear
        size = max(1, BLOCK_SCORES // max(1, self.width))
        self.edges = np.unique(
            np.append(np.searchsorted(offsets, np.arange(0, self.n_parts, size)), offsets.size - 1)
        )

    def split(self, scores: Array) -> tuple[Array, Array]:
        """Scores of one function as (parts, labels), and those of the linear part."""
        end = self.n_parts * self.width
        return scores[:end].reshape(self.n_parts, self.width), np.ascontiguousarray(
            scores[end:]
        ).ravel()

    def each_block(self, work: Callable[[int, int, int, int], Any]) -> list[Any]:
        """The results of ``work`` for blocks with fixed edges, on all threads, in order.

        The arguments of ``work``: first and last example, first and last part.
        """
        results: list[Any] = [None] * (self.edges.size - 1)

        def task(k: int) -> None:
            first, last = int(self.edges[k]), int(self.edges[k + 1])
            try:
                results[k] = work(first, last, int(self.offsets[first]), int(self.offsets[last]))
            except ValueError as error:
                # of an oracle of one's own: it counts examples from the beginning of the block
                if hasattr(error, "example"):
                    error.example += first
                raise

        parallel(task, len(results), self.n_threads)
        return results

    def _cut(self, first: int, last: int, S: Array, linear: Array) -> Any:
        """The oracle's cut of a block with scores S."""
        a, b = self.offsets[first], self.offsets[last]
        n_threads = self.n_threads if self.edges.size == 2 else 1
        return self.oracle.cut(
            S,
            self.labels[a:b],
            self.offsets[first : last + 1] - a,
            self.weight[first:last],
            linear,
            n_threads,
        )

    def at(self, scores: Array) -> tuple[float, float, Array]:
        """Risk, offset and responses of the cut at the scores of one function, in one vector."""
        (S, linear), V = self.split(scores), np.empty(self.n)
        responses, _ = self.split(V)

        def work(first: int, last: int, a: int, b: int) -> Any:
            risk, loss, responses[a:b], of_linear = self._cut(first, last, S[a:b], linear)
            return np.concatenate([[risk, loss], of_linear])

        total = np.sum(self.each_block(work), axis=0)
        V[self.n - self.n_linear :] = total[2:]
        return float(total[0]), float(total[1]), V

    def worst(self, scores: Array) -> tuple[Array, float, float]:
        """The examples whose worst output costs anything, the sum of these costs, and the risk."""
        S, linear = self.split(scores)

        def work(first: int, last: int, a: int, b: int) -> Any:
            where, weight = self.offsets[first : last + 1] - a, self.weight[first:last]
            _, delta, margin = self.oracle.worst(
                S[a:b],
                self.labels[a:b],
                where,
                linear,
                self.n_threads if self.edges.size == 2 else 1,
            )
            return (
                np.flatnonzero(delta > 0.0) + first,
                float(weight @ delta),
                float(weight @ margin),
            )

        inside, offset, risk = zip(*self.each_block(work), strict=True)
        return np.concatenate(inside), float(np.sum(offset)), float(np.sum(risk))

    def risk(self, scores: Array, columns: Columns = None) -> Array:
        """R(f)"""
        return np.array([self.worst(scores[:, 0])[2]])

    def bent(self, scores: Array, off: Array) -> float:
        """What errors ``off`` of scores may cost beyond what the responses there say.

        The worst are those that lower the right labels' scores and raise all others; of outputs
        that are not labels of parts, perhaps the opposite ones.
        """
        risk, _, V = self.at(scores[:, 0])
        up = np.ones((self.n_parts, self.width))
        if self.width > 1:
            up[np.arange(self.n_parts), self.labels] = -1.0
        else:  # labels are 0 and 1, and there is one column for both
            up[self.labels > 0] = -1.0
        worst = np.zeros(self.n)
        worst[: self.n_parts * self.width] = up.ravel()
        worst *= off[:, 0]
        sides = (
            self.at(scores[:, 0] + side)[0] - risk - float(V @ side) for side in (worst, -worst)
        )
        return sum(max(0.0, side) for side in sides)

    def cuts(self, scores: Array, columns: Columns = None) -> tuple[Array, Array, Array]:
        """Risk, offset and responses of the cut at these scores."""
        risk, loss, V = self.at(scores[:, 0])
        return np.array([risk]), np.array([loss]), V[:, None]

    def cut(
        self, first: int, last: int, scores: Array, columns: Columns = None
    ) -> tuple[Array, Array, Array]:
        """The same; the block is always the whole."""
        return self.cuts(scores)

    def line(
        self, scores: Array, change: Array, slope: Array, curvature: Array, columns: Columns = None
    ) -> Array:
        """The t >= 0 with nearly the least t slope + t^2 curvature/2 + R(f + t d)."""
        (S, linear), (D, along) = self.split(scores[:, 0]), self.split(change[:, 0])

        def look(t: float) -> tuple[float, float, float]:
            def work(first: int, last: int, a: int, b: int) -> Any:
                risk, _, V, response = self._cut(
                    first, last, S[a:b] + t * D[a:b], linear + t * along
                )
                return risk, float(np.vdot(V, D[a:b])) + float(response @ along)

            risk, rise = np.sum(self.each_block(work), axis=0)
            return t, float(risk), float(rise)

        return np.array([least_on_line(look, float(slope[0]), float(curvature[0]))])

    # -- cuts, kept compactly ----------------------------------------------------------------------

    def packed(self, responses: Array) -> Kept:
        """The responses of one cut, without zeros."""
        V, linear = self.split(responses)
        parts, labels = np.nonzero(V)
        return Kept(
            parts.astype(np.int32), labels.astype(np.int32), V[parts, labels], linear.copy()
        )

    def unpacked(self, kept: Kept, first: int, last: int) -> Array:
        """The responses first to last, of all."""
        out = np.zeros(self.n)
        responses, _ = self.split(out)
        responses[kept.parts, kept.labels] = kept.values
        out[self.n - self.n_linear :] = kept.linear
        return out[first:last]

    def by_row(self, kept: list[Kept]) -> JointCuts:
        """Cuts, of which each block of rows gets its part."""
        return JointCuts(self.width, kept)


class JointCuts(PerRow):
    """The responses of cuts, kept compactly."""

    def __init__(self, width: int, kept: list[Kept]) -> None:
        self.width, self.kept = width, kept

    def part(self, first: int, last: int) -> JointCuts:
        """Of rows first to last, counted from there."""
        some = []
        for cut in self.kept:
            inside = slice(*np.searchsorted(cut.parts, (first, last)))
            where = cut.parts[inside] - first if first else cut.parts[inside]
            some.append(Kept(where, cut.labels[inside], cut.values[inside], cut.linear))
        return JointCuts(self.width, some)

    def responses(self, first: int, last: int) -> Array:
        """Those of parts first to last: (parts, labels * cuts)."""
        return np.asarray(self._matrix(first, last).T.toarray())

    def products(self, first: int, last: int, values: Array) -> Array:
        """values (q, parts) times the responses of parts first to last: (q, labels * cuts).

        One product for each label and cut.
        """
        matrix = self._matrix(first, last)
        return np.asarray((matrix @ values.T.astype(np.float64)).T)

    def _matrix(self, first: int, last: int) -> Any:
        """The responses of parts first to last: (labels * cuts, parts)."""
        # one product for all cuts: each by itself would cost more to call than to make
        kept = self.kept
        inside = [slice(*np.searchsorted(cut.parts, (first, last))) for cut in kept]
        several = list(enumerate(zip(kept, inside, strict=True)))
        of = np.concatenate(
            [cut.labels[some].astype(np.int64) * len(kept) + t for t, (cut, some) in several]
        )
        parts = np.concatenate([cut.parts[some] for _, (cut, some) in several]) - first
        responses = np.concatenate([cut.values[some] for _, (cut, some) in several])
        shape = (self.width * len(kept), last - first)
        return sp.csr_matrix((responses, (of, parts)), shape=shape)


def least_on_line(
    look: Callable[[float], tuple[float, float, float]], slope: float, curvature: float
) -> float:
    """The t >= 0 with nearly the least R(t) + t slope + t^2 curvature/2, for a convex R.

    Parameters
    ----------
    look : callable
        look(t) -> (t, R(t), a slope of R there).
    slope, curvature : float
        Of the quadratic.

    Examples
    --------
    >>> round(least_on_line(lambda t: (t, abs(t - 0.3), 1.0 if t > 0.3 else -1.0), 0.0, 1e-3), 6)
    0.3
    """

    def value(point: tuple[float, float, float]) -> float:
        t, risk, _ = point
        return risk + t * slope + 0.5 * t * t * curvature

    def rises(point: tuple[float, float, float]) -> bool:
        return point[2] + slope + point[0] * curvature >= 0.0

    start = low = best = look(0.0)
    if rises(low):
        return 0.0
    high = look(1.0)
    for _ in range(MOST_LOOKS):  # how far the minimum is, at most
        best = min(best, high, key=value)
        if rises(high):
            break
        low, high = high, look(2.0 * high[0])
    for _ in range(MOST_LOOKS):
        t = _between(low, high, slope, curvature)
        lower = (
            max(point[1] + (t - point[0]) * point[2] for point in (low, high))
            + t * slope
            + 0.5 * t * t * curvature
        )
        if value(best) - lower <= LINE_SHARE * (value(start) - value(best)):
            break
        width = high[0] - low[0]
        t = min(max(t, low[0] + EDGE * width), high[0] - EDGE * width)
        if not low[0] < t < high[0]:
            break
        point = look(t)
        best = min(best, point, key=value)
        low, high = (low, point) if rises(point) else (point, high)
    return best[0]


def _between(
    low: tuple[float, float, float],
    high: tuple[float, float, float],
    slope: float,
    curvature: float,
) -> float:
    """Where the larger of two planes plus the quadratic is least.

    Between the points that the planes touch.
    """
    (a, risk_a, d_a), (b, risk_b, d_b) = low, high
    crossing = a if d_b <= d_a else ((risk_a - a * d_a) - (risk_b - b * d_b)) / (d_b - d_a)
    crossing = min(max(crossing, a), b)
    if curvature > 0.0:
        on_low, on_high = -(slope + d_a) / curvature, -(slope + d_b) / curvature
        return min(max(min(on_low, crossing), on_high, a), b)
    return crossing
