"""Linear problems in explicit features: every score is to lie in an interval.

    min over w, b of  1/2 |w|^2 + b^2 / (2 scaling^2) + sum_i weight_i e_i^p,     f = X w + b,

e_i the distance of the score f_i from [low_i, high_i], p = 1 or 2. Labels +1 want [1, inf), labels
-1 want (-inf, -1]: the hinge and its square. Targets want [y - epsilon, y + epsilon]: the
epsilon-insensitive loss and its square. ``scaling`` is that of the intercept: inf is a free one, 0
none, any other number LIBLINEAR's, the weight of a further feature of this constant value.

Several columns (classes against the rest) are problems of their own over the same rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from slimsvm.compiled import compiled, compiled_sum, larger, smaller
from slimsvm.kernels import squared_norms
from slimsvm.losses import Loss
from slimsvm.threads import parallel

Array = NDArray[Any]
LEAST_WEIGHT = 1e-30  # of the largest: where the factor of a class is zero
FAR = 1e300  # stands for infinity in compiled loops
TINY = float(np.finfo(float).tiny)
PIECE = 100_000  # entries a thread that are worth handing out: a tenth of a millisecond
# of the root mean square of rows: how strongly a free intercept is held where it is during a sweep
# (measured on five sets: 0.1 and 0.3 need as many sweeps as a penalised one, 1 twice, 3 ten times)
FREE_BIAS = 0.2
NEWTONS = 60  # steps for an intercept on its own: two or three are usual


@compiled
def sparse_dot(indices: Array, data: Array, first: int, last: int, w: Array) -> float:
    """Entries first..last of a CSR matrix times w; four sums side by side.

    Indices without a sign: those with one are looked at for negative ones, which count from the
    end.
    """
    s0 = s1 = s2 = s3 = 0.0
    k = first
    while k + 4 <= last:
        s0 += data[k] * w[np.uint32(indices[k])]
        s1 += data[k + 1] * w[np.uint32(indices[k + 1])]
        s2 += data[k + 2] * w[np.uint32(indices[k + 2])]
        s3 += data[k + 3] * w[np.uint32(indices[k + 3])]
        k += 4
    while k < last:
        s0 += data[k] * w[np.uint32(indices[k])]
        k += 1
    return (s0 + s1) + (s2 + s3)


@compiled_sum
def dense_dot(row: Array, w: Array) -> float:
    """A dense row times w."""
    total = 0.0
    for k in range(row.size):
        total += row[k] * w[k]
    return total


@compiled
def row_products(
    dense: Array, indptr: Array, indices: Array, data: Array, w: Array, out: Array
) -> None:
    """out_i = x_i w, of dense rows or, where there are none, of those of a CSR matrix."""
    for i in range(out.size):
        if dense.shape[0] > 0:
            out[i] = dense_dot(dense[i], w)
        else:
            out[i] = sparse_dot(indices, data, indptr[i], indptr[i + 1], w)


@compiled
def row_sums(
    dense: Array, indptr: Array, indices: Array, data: Array, v: Array, out: Array
) -> None:
    """out += sum_i v_i x_i, of the rows with a factor."""
    for i in range(v.size):
        if v[i] == 0.0:
            continue
        if dense.shape[0] > 0:
            row = dense[i]
            for k in range(row.size):
                out[k] += v[i] * row[k]
        else:
            for k in range(indptr[i], indptr[i + 1]):
                out[np.uint32(indices[k])] += v[i] * data[k]


@compiled
def errors_along(
    low: Array, high: Array, scores: Array, change: Array, t: float, out: Array
) -> None:
    """out = by how much scores + t change miss their intervals.

    Apart from the sums that follow: these may be reordered, and what is exactly at the end of its
    interval must stay so.
    """
    for i in range(out.size):
        f = scores[i] + t * change[i]
        out[i] = larger(f - high[i], 0.0) + smaller(f - low[i], 0.0)


@compiled_sum
def derivatives(
    weight: Array, errors: Array, change: Array, g: float, h: float
) -> tuple[float, float]:
    """g, h and the first and second derivative of the squared errors along a change of scores."""
    for i in range(errors.size):
        c = 2.0 * weight[i] * change[i]
        g += c * errors[i]
        h += c * change[i] if errors[i] != 0.0 else 0.0
    return g, h


@compiled
def settled(low: Array, high: Array, weight: Array, scores: Array, b: float, ridge: float) -> float:
    """The intercept with the least squared errors, by Newton's method: it begins at ``b``.

    The slope is piecewise linear; a step beyond what is known to be too far halves the way.
    """
    below, above, errors, ones = -FAR, FAR, np.empty(scores.size), np.ones(scores.size)
    for _ in range(NEWTONS):
        errors_along(low, high, scores, ones, b, errors)
        slope, bend = derivatives(weight, errors, ones, ridge * b, ridge)
        if slope == 0.0 or bend == 0.0:
            break
        if slope < 0.0:
            below = b
        else:
            above = b
        new = b - slope / bend
        if not (below < new and new < above):
            if below == -FAR or above == FAR:
                break
            new = 0.5 * (below + above)
        if abs(new - b) <= 1e-15 * max(1.0, abs(b)):
            break
        b = new
    return b


@compiled
def values_at(
    low: Array, high: Array, weight: Array, squared: bool, scores: Array, b: float, v: Array
) -> tuple[float, float, float]:
    """The risk of scores + b, and of dual variables the gain and the sum."""
    risk, gain, total = 0.0, 0.0, 0.0
    for i in range(scores.size):
        f, u = scores[i] + b, v[i]
        e = max(f - high[i], 0.0) - min(f - low[i], 0.0)
        risk += weight[i] * (e * e if squared else e)
        if u != 0.0:
            gain += u * (low[i] if u > 0.0 else high[i])
            if squared:
                gain -= 0.25 * u * u / weight[i]
            total += u
    return risk, gain, total


@dataclass(frozen=True)
class LinearSolution:
    """Weights of the features (d, columns), and intercepts; of a dual solver its point, too."""

    coef: Array
    intercept: Array
    duals: Array | None = None  # (columns, n)


@dataclass(kw_only=True)
class GapOfColumns:
    """The state of a solver that knows of each column the best value, and a bound from below."""

    n_iter: int = 0
    done: bool = False
    primal: Array
    dual: Array

    @property
    def gap(self) -> Array:
        """The duality gap of each column."""
        return np.asarray(np.maximum(0.0, self.primal - self.dual))

    @property
    def relative_gap(self) -> Array:
        """The same, relative to the objective."""
        return np.asarray(self.gap / np.maximum(self.primal, TINY))

    def record(self) -> dict[str, float]:
        """A line of the history; ``violation`` is the largest relative gap of a column."""
        return {
            "objective": float(self.primal.sum()),
            "gap": float(self.gap.sum()),
            "violation": float(self.relative_gap.max()),
        }


@dataclass(frozen=True)
class Column:
    """One column: intervals, weights, and whether errors are squared."""

    low: Array
    high: Array
    weight: Array
    squared: bool

    @classmethod
    def of_labels(cls, y: Array, weight: Array, squared: bool = False) -> Column:
        """Labels +1 and -1 want scores beyond the margin."""
        positive = y > 0
        low, high = np.where(positive, 1.0, -FAR), np.where(positive, FAR, -1.0)
        return cls(low, high, weight, squared)

    @property
    def shift(self) -> Array:
        """What the dual problem has on its diagonal."""
        return 0.5 / self.weight if self.squared else np.zeros_like(self.weight)

    @property
    def bound(self) -> Array:
        """The largest size of a dual variable."""
        return np.full_like(self.weight, FAR) if self.squared else self.weight

    @property
    def edges(self) -> Array:
        """The size of the ends of the intervals, where there are such."""
        ends = [np.where(np.abs(end) < FAR / 2, np.abs(end), 0.0) for end in (self.low, self.high)]
        return np.maximum(*ends)

    def rounding(self, scores: Array, off: Array) -> float:
        """What errors ``off`` of the scores make of the risk; near an end they count, too."""
        away = np.maximum(self.low - scores, scores - self.high)
        felt = away > -off
        off, weight, away = off[felt], self.weight[felt], np.maximum(away[felt], 0.0)
        return float(weight @ (off * (2.0 * away + off) if self.squared else off))

    def error(self, scores: Array) -> Array:
        """How far scores are above (positive) or below their intervals."""
        above, below = np.maximum(scores - self.high, 0.0), np.minimum(scores - self.low, 0.0)
        return np.asarray(above + below)

    def dual_point(self, scores: Array) -> Array:
        """The dual variables that belong to scores: minus the slope of the risk."""
        e = self.error(scores)
        return np.asarray(-2.0 * self.weight * e if self.squared else -self.weight * np.sign(e))

    def values(
        self, w: Array, b: float, scores: Array, v: Array, of_v: Array, scaling: float
    ) -> tuple[float, float]:
        """The primal value of w and b, and the dual one of v, a bound of all primal ones.

        ``scores`` are those of w without the intercept, ``of_v`` is X'v. For a free intercept v
        sums to zero.
        """
        risk, gain, total = values_at(self.low, self.high, self.weight, self.squared, scores, b, v)
        primal, dual = 0.5 * float(w @ w) + risk, gain - 0.5 * float(of_v @ of_v)
        if 0.0 < scaling < np.inf:
            primal, dual = primal + 0.5 * (b / scaling) ** 2, dual - 0.5 * (scaling * total) ** 2
        return primal, dual

    def intercept(self, scores: Array, scaling: float, near: float) -> float:
        """The best intercept of scores; of a penalised one of the hinge, the one at hand."""
        if scaling == 0.0:
            return 0.0
        if np.isfinite(scaling):
            return (
                settled(self.low, self.high, self.weight, scores, near, 1.0 / scaling**2)
                if self.squared
                else near
            )
        return self.best_intercept(scores)

    def best_intercept(self, scores: Array) -> float:
        """The free intercept with the least risk; of several the middle."""
        up, down = self.low - scores, self.high - scores  # from where on, and up to where
        if not self.squared:
            ends = np.concatenate([up[up > -FAR / 2], down[down < FAR / 2]])
            weight = np.concatenate([self.weight[up > -FAR / 2], self.weight[down < FAR / 2]])
            order = np.argsort(ends)
            slope = np.cumsum(weight[order]) - float(self.weight[up > -FAR / 2].sum())
            least = 1e-12 * float(weight.sum())
            first = int(np.searchsorted(slope, -least))
            last = int(np.searchsorted(slope, least, side="right"))
            a, b = min(first, ends.size - 1), min(last, ends.size - 1)
            return 0.5 * float(ends[order[a]] + ends[order[b]])
        return settled(self.low, self.high, self.weight, scores, 0.0, 0.0)


@dataclass
class LinearFit:
    """Rows, targets (n, columns), weights with C ((n,) or (n, columns)), and the loss.

    Examples
    --------
    >>> from slimsvm.losses import Hinge
    >>> from slimsvm.run import run
    >>> from slimsvm.solvers.linear_descent import LinearDescent
    >>> X, y = np.array([[1.0], [-1.0]]), np.array([[1.0], [-1.0]])
    >>> result = run(LinearDescent(), LinearFit(X, y, np.ones(2), Hinge()), tol=1e-9)
    >>> result.model.coef.round(6).tolist(), result.certificate.holds
    ([[1.0]], True)
    """

    X: Any  # C-ordered array, or CSR with sorted distinct indices
    target: Array
    weight: Array
    loss: Loss
    scaling: float = np.inf
    n_threads: int = 1

    @property
    def n(self) -> int:
        """Rows."""
        return int(self.X.shape[0])

    @property
    def size(self) -> int:
        """Features."""
        return int(self.X.shape[1])

    @property
    def n_columns(self) -> int:
        """Columns of targets."""
        return int(self.target.shape[1])

    @property
    def entries(self) -> float:
        """Entries of X."""
        return float(self.X.nnz if sp.issparse(self.X) else self.n * self.size)

    @property
    def free(self) -> bool:
        """Whether the intercept is not penalised."""
        return self.scaling == np.inf

    @property
    def ridge(self) -> float:
        """The factor of b^2 / 2; zero for a free intercept, or none."""
        return 1.0 / self.scaling**2 if 0.0 < self.scaling < np.inf else 0.0

    @cached_property
    def squares(self) -> Array:
        """|x_i|^2"""
        return squared_norms(self.X)

    @cached_property
    def bias(self) -> float:
        """The value of the constant feature; of a free intercept a share of the size of rows."""
        if self.free:
            return FREE_BIAS * float(np.sqrt(max(self.squares.mean(), 1e-30)))
        return float(self.scaling)

    @cached_property
    def arrays(self) -> tuple[Array, Array, Array, Array]:
        """Dense rows or those of CSR, as compiled loops take them; the others are empty."""
        X = self.X
        if sp.issparse(X):
            small = np.int32 if X.shape[1] < 2**31 else np.int64
            indices = X.indices.astype(small, copy=False)
            return np.empty((0, 0), X.dtype), X.indptr.astype(np.int64), indices, X.data
        nothing = np.empty(0, X.dtype)
        return np.ascontiguousarray(X), np.empty(0, np.int64), np.empty(0, np.int32), nothing

    def column(self, c: int) -> Column:
        """The intervals of one column."""
        y, loss = self.target[:, c], self.loss
        weight = np.ascontiguousarray(self.weight if self.weight.ndim == 1 else self.weight[:, c])
        squared = loss.name.startswith("squared")
        if loss.takes_labels:
            return Column.of_labels(y, weight, squared)
        epsilon = float(loss.epsilon)  # type: ignore[attr-defined]
        return Column(y - epsilon, y + epsilon, weight, squared)

    def scores(self, w: Array) -> Array:
        """X w, by pieces of the rows on several threads: the same numbers with any of them."""
        out, w = np.empty(self.n), np.ascontiguousarray(w)
        dense, indptr, indices, data = self.arrays
        pieces = self.n_threads if self.entries > PIECE * self.n_threads else 1
        ends = np.linspace(0, self.n, pieces + 1).astype(int)

        def products(t: int) -> None:
            a, b = int(ends[t]), int(ends[t + 1])
            row_products(dense[a:b], indptr[a : b + 1], indices, data, w, out[a:b])

        parallel(products, pieces, self.n_threads)
        return out

    def pull(self, v: Array) -> Array:
        """X'v"""
        out = np.zeros(self.size)
        row_sums(*self.arrays, v, out)
        return out

    def rounding(self, solution: LinearSolution, duals: Array | None = None) -> float:
        """About how much rounding may have changed of values and bounds, summed over the columns.

        ``duals`` (columns, n) gave the bounds; None: the slopes at the solution.
        """
        eps = (4.0 + np.sqrt(self.size)) * float(np.finfo(float).eps)  # of a product of so many
        constant = self.scaling**2 if np.isfinite(self.scaling) else 0.0
        norms, total = np.sqrt(self.squares + constant), 0.0
        for c in range(self.n_columns):
            w, b = solution.coef[:, c], float(solution.intercept[c])
            column, scores = self.column(c), self.scores(w) + b
            v = column.dual_point(scores) if duals is None else duals[c]
            size = float(np.linalg.norm(w)) + (abs(b) / self.scaling if constant else 0.0)
            # X'v is w at the optimum, and may be much longer before
            length = float(np.linalg.norm(self.pull(v))) + np.sqrt(constant) * abs(float(v.sum()))
            v = np.abs(v)
            pulled = eps * float(v @ norms)  # of X'v
            edges = column.edges
            total += column.rounding(scores, eps * (norms * size + abs(b) + edges))
            total += (
                max(size, length) * pulled + 0.5 * pulled**2 + eps * (float(v @ edges) + size**2)
            )
            total += eps * abs(b) * float(v.sum()) if self.free else 0.0
        return total
