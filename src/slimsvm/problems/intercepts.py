"""The best intercepts for scores that are known, and what a look at all rows asks there.

Intercepts are not penalised: at the best ones the slopes of every column sum to zero, and only then
are they a point of the dual problem.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slimsvm.compiled import compiled, compiled_sum, larger
from slimsvm.forms import exp_rows
from slimsvm.losses import Loss, Softmax

Array = NDArray[Any]
CENTRING = 50  # steps of Newton's method for the intercepts, at most
SIDE_BY_SIDE = 256  # rows whose scores stay in the nearest cache


def centred(
    loss: Loss | Softmax,
    Y: Array,
    weight: Array,
    raw: Array,
    intercept: Array,
    exact: float = 1e-12,
) -> Array:
    """The best intercepts for these scores, from ``intercept`` on; see :func:`centred_by`."""
    sums = sums_over(loss, Y, weight, raw)
    return centred_by(sums.at, sums.bend, intercept, float(weight.sum()), exact)


def sums_over(
    loss: Loss | Softmax, Y: Array, weight: Array, raw: Array, label: Array | None = None
) -> Any:
    """Sums of losses over all rows with these scores, at one intercept after the other.

    ``label`` has the number of the class of each row, where that is known.
    """
    if isinstance(loss, Softmax):
        return SoftmaxSums(Y, weight, raw, Y.argmax(axis=1) if label is None else label)
    return ColumnSums(loss, Y, weight, raw)


class ColumnSums:
    """Of a loss that is a sum over columns."""

    def __init__(self, loss: Any, Y: Array, weight: Array, raw: Array) -> None:
        self.loss, self.Y, self.weight, self.raw = loss, Y, weight, raw
        self.risks: list[tuple[Array, float]] = []  # at the first intercepts, and where it ended

    def at(self, b: Array) -> tuple[float, Array, Array]:
        """The sum of all losses, slopes, and sums of the sizes of these."""
        found = risk_and_slopes(self.loss, self.Y, self.weight, self.raw + b)
        if not self.risks:
            self.risks.append((np.array(b), found[0]))
        return found

    def bend(self, b: Array) -> Array:
        """Second derivatives, by column."""
        return bends(self.loss, self.Y, self.weight, self.raw + b)

    def look(self, b: Array) -> tuple[Array, Array, float]:
        """Weighted slopes of all rows, sums of curvatures, and the sum of the losses."""
        values, slopes, curvature = losses_at(self.loss, self.Y, self.raw + b)
        value = float(np.sum(self.weight @ values))
        self.risks.append((np.array(b), value))
        return self.weight[:, None] * slopes, self.weight @ curvature, value


class SoftmaxSums:
    """The same of the softmax.

    A class that is rare, or never wrong, has its best intercept far away, and asks for dozens of
    points: each is one pass over the scores, which makes nothing that is as large as these.
    """

    def __init__(self, Y: Array, weight: Array, raw: Array, label: Array) -> None:
        self.raw, self.weight, self.label = np.ascontiguousarray(raw, np.float64), weight, label
        self.b, self.c = np.full(Y.shape[1], np.nan), Y.shape[1]
        self.last: tuple[float, Array, Array, Array] = 0.0, self.b, self.b, self.b
        self.risks: list[tuple[Array, float]] = []

    def at(self, b: Array) -> tuple[float, Array, Array]:
        """The sum of all losses, slopes, and sums of the sizes of these."""
        if not np.array_equal(b, self.b):
            sums, products = np.zeros((3, self.c)), np.zeros((self.c, self.c))
            about = self.label, self.weight, *sums, products, np.empty((0, 0))
            value = _softmax_sums(self.raw, b, *about)
            self.b, self.last = np.array(b), (value, *sums[:2], np.diag(sums[2]) - products)
            if not self.risks:
                self.risks.append((self.b, value))
        return self.last[:3]

    def bend(self, b: Array) -> Array:
        """The matrix of second derivatives."""
        self.at(b)
        return self.last[3]

    def look(self, b: Array) -> tuple[Array, Array, float]:
        """Weighted slopes of all rows, sums of curvatures, and the sum of the losses."""
        slopes, sums = np.empty(self.raw.shape), np.zeros((3, self.c))
        about = self.label, self.weight, *sums, np.empty((0, 0)), slopes
        value = _softmax_sums(self.raw, b, *about)
        self.risks.append((np.array(b), value))
        return slopes, sums[2], value


@compiled
def _softmax_sums(
    raw: Array, b: Array, label: Array, weight: Array, slopes: Array, sizes: Array, curves: Array,
    products: Array, every: Array
) -> float:  # fmt: skip
    """The sum of the losses of scores raw + b; by class, sums of the slopes and of their sizes.

    With room for ``products``, the weighted sum of p p', p the probabilities of a row, and of p in
    ``curves``. With room for ``every``: the weighted slopes of all rows, and sums of p (1 - p).
    """
    n, c = raw.shape
    part = np.zeros((c, SIDE_BY_SIDE))  # scores, then probabilities: a row a class
    heavy, share = np.zeros((c, SIDE_BY_SIDE)), np.empty((c, c))
    most, score, w = np.empty(SIDE_BY_SIDE), np.empty(SIDE_BY_SIDE), np.zeros(SIDE_BY_SIDE)
    zeros = np.zeros(max(c, SIDE_BY_SIDE))
    value = 0.0
    for begin in range(0, n, SIDE_BY_SIDE):
        m = min(SIDE_BY_SIDE, n - begin)
        w[:] = 0.0  # behind the last row
        for i in range(m):
            w[i] = weight[begin + i]
            for j in range(c):
                part[j, i] = raw[begin + i, j] + b[j]
        for j in range(c):
            for i in range(SIDE_BY_SIDE):
                most[i] = part[j, i] if j == 0 else larger(most[i], part[j, i])
        for i in range(m):
            score[i] = part[label[begin + i], i] - most[i]
        for j in range(c):
            for i in range(SIDE_BY_SIDE):
                part[j, i] -= most[i]
        exp_rows(part, 1.0, 0.0, zeros, zeros)
        most[:] = 0.0
        for j in range(c):
            for i in range(SIDE_BY_SIDE):
                most[i] += part[j, i]
        for i in range(m):
            value += w[i] * (np.log(most[i]) - score[i])
        for i in range(SIDE_BY_SIDE):
            most[i] = 1.0 / most[i]
        for j in range(c):
            for i in range(SIDE_BY_SIDE):
                part[j, i] *= most[i]
                heavy[j, i] = w[i] * part[j, i]
        if products.size:
            np.dot(heavy, part.T, share)
            for j in range(c):
                curves[j] += _sum(heavy[j])
                for i in range(c):
                    products[j, i] += share[j, i]
        if every.size:
            for j in range(c):
                curves[j] += _sum_of_products(heavy[j], part[j])
        # row by row: the difference of two sums would lose digits
        for i in range(m):
            heavy[label[begin + i], i] = w[i] * (part[label[begin + i], i] - 1.0)
        for j in range(c):
            slopes[j] += _sum(heavy[j])
            sizes[j] += _sum_of_sizes(heavy[j])
        if every.size:
            for i in range(m):
                for j in range(c):
                    every[begin + i, j] = heavy[j, i]
    return value


@compiled_sum
def _sum(a: Array) -> float:
    total = 0.0
    for i in range(a.size):
        total += a[i]
    return total


@compiled_sum
def _sum_of_sizes(a: Array) -> float:
    total = 0.0
    for i in range(a.size):
        total += abs(a[i])
    return total


@compiled_sum
def _sum_of_products(a: Array, p: Array) -> float:
    """Of a and 1 - p."""
    total = 0.0
    for i in range(a.size):
        total += a[i] * (1.0 - p[i])
    return total


def losses_at(loss: Loss | Softmax, Y: Array, F: Array) -> tuple[Array, Array, Array]:
    """Losses of rows, their slopes and their curvatures; those of the softmax are made once."""
    if not isinstance(loss, Softmax):
        return loss.value(Y, F), loss.gradient(Y, F), loss.curvature(Y, F)
    values, slopes = loss.both(Y, F)
    return values, slopes, (slopes + Y) * (1.0 - Y - slopes)


def risk_and_slopes(
    loss: Loss | Softmax, Y: Array, weight: Array, F: Array
) -> tuple[float, Array, Array]:
    """The sum of all losses, their slopes by the intercepts, and sums of the sizes of these."""
    if isinstance(loss, Softmax):
        values, G = loss.both(Y, F)
        value = float(weight @ values)
    else:
        value, G = float(np.sum(weight @ loss.value(Y, F))), loss.gradient(Y, F)
    return value, np.asarray(weight @ G), np.asarray(weight @ np.abs(G))


def bends(loss: Loss | Softmax, Y: Array, weight: Array, F: Array) -> Array:
    """Second derivatives by the intercepts: one for each column, or the matrix of the softmax."""
    if not isinstance(loss, Softmax):
        return np.asarray(weight @ loss.curvature(Y, F))
    p = loss.gradient(Y, F) + Y
    return np.asarray(np.diag(weight @ p) - (p * weight[:, None]).T @ p)


def centred_by(
    at: Callable[[Array], tuple[float, Array, Array]],
    bend: Callable[[Array], Array],
    intercept: Array,
    total: float,
    exact: float = 1e-12,
) -> Array:
    """The best intercepts, from ``intercept`` on: Newton's method, damped.

    Up to slopes of a share ``exact`` of what they are the sum of. ``at`` and ``bend`` are sums over
    all rows (:func:`risk_and_slopes`, :func:`bends`), ``total`` the sum of the weights.
    """
    b = np.array(intercept, np.float64)
    now, slope, size = at(b)
    for _ in range(CENTRING):
        if np.all(np.abs(slope) <= exact * np.maximum(size, 1e-300)):
            break
        curve = bend(b)
        if curve.ndim == 2:
            step = -np.linalg.lstsq(curve, slope, rcond=1e-12)[0]
        else:
            step = -slope / np.where(curve <= 1e-12 * total, total, curve)
        t = 1.0
        while t > 1e-10:
            new, new_slope, new_size = at(b + t * step)
            # slopes go on falling where values show nothing but rounding
            falls = np.abs(new_slope).sum() < 0.5 * np.abs(slope).sum()
            if new < now or (falls and new - now <= 1e-13 * abs(now)):
                break
            t *= 0.5
        else:
            break
        gained, b, now, slope, size = now - new, b + t * step, new, new_slope, new_size
        if gained <= 1e-15 * abs(now) and not falls:
            break
    return b
