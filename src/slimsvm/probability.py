"""Probabilities from decision values: Platt's sigmoid for a pair of classes, and pairs coupled.

A sigmoid P(first class | f) = 1 / (1 + exp(A f + B)) is fitted to decision values of rows that the
function was not trained on, by maximum likelihood with targets that are moved a little from 0 and 1
(Platt 2000; Newton's method as in Lin, Lin & Weng 2007). For several classes the probabilities of
pairs are coupled by the second method of Wu, Lin & Weng (2004): p minimises sum over pairs of
(r_ji p_i - r_ij p_j)^2 with sum p = 1, one small linear system a row.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from slimsvm.compiled import compiled, compiled_sum
from slimsvm.forms import exp_rows_f8

Array = NDArray[Any]
N_FOLDS = 5  # as LIBSVM
SEED = 20000  # of the folds: they depend on nothing but the labels
LEAST = 1e-7  # probability of a pair, as LIBSVM
MOST_STEPS = 100
RIDGE, PRECISE, SHORTEST = 1e-12, 1e-9, 1e-10  # relative to the sum of weights; of a step
TINY = float(np.finfo(float).tiny)
NOTHING = np.zeros(1)
BLOCK_VALUES = 1 << 22  # of the linear systems that are solved at the same time


def places(n: int) -> Array:
    """The rows of a class in an order that depends on their number only."""
    return np.random.RandomState(SEED).permutation(n)


def fold_of_rows(label: Array) -> Array:
    """The fold that each row is left out of: every class is spread evenly over all folds.

    Examples
    --------
    >>> np.bincount(fold_of_rows(np.repeat([0, 1], 10))).tolist()
    [4, 4, 4, 4, 4]
    """
    fold, first = np.empty(label.size, np.intp), 0
    for c in np.unique(label):
        rows = np.flatnonzero(label == c)
        fold[rows] = (first + places(rows.size)) % N_FOLDS
        first += rows.size  # classes of less than N_FOLDS rows do not all go to the first folds
    return fold


def sigmoid(score: Array, first: Array, weight: Array) -> tuple[float, float]:
    """A and B of the sigmoid for decision values that are positive for the first class.

    ``first`` says which rows are of it.

    Examples
    --------
    >>> A, B = sigmoid(np.array([-1.0, 1.0] * 50), np.array([False, True] * 50), np.ones(100))
    >>> bool(A < 0), round(float(1 / (1 + np.exp(A + B))), 2)
    (True, 0.98)
    """
    A, B = platt(np.array(score, float), np.asarray(first, bool), np.asarray(weight, float))
    return float(A), float(B)


@compiled
def platt(score: Array, first: Array, weight: Array) -> tuple[float, float]:
    """The same for compiled loops: Newton's method from A = 0 on.

    A step goes as far as the slope along it is falling there, which needs no logarithm; where it is
    not, the step is halved until the cost falls.
    """
    n, size, n_first, n_other = score.size, TINY, 0.0, 0.0
    for i in range(n):
        size = max(size, abs(score[i]))
        if first[i]:
            n_first += weight[i]
        else:
            n_other += weight[i]
    f, target, e = np.empty(n), np.empty(n), np.empty((1, n))
    for i in range(n):
        f[i] = score[i] / size  # so that the Newton step is well scaled
        target[i] = (n_first + 1.0) / (n_first + 2.0) if first[i] else 1.0 / (n_other + 2.0)
    A, B, total = 0.0, np.log((n_other + 1.0) / (n_first + 1.0)), n_first + n_other
    g_A, g_B, h_AA, h_AB, h_BB = _slopes(f, target, weight, e, A, B)
    for _ in range(MOST_STEPS):
        if max(abs(g_A), abs(g_B)) <= PRECISE * total:
            break
        h_AA, h_BB = h_AA + RIDGE * total, h_BB + RIDGE * total
        det = h_AA * h_BB - h_AB * h_AB
        d_A, d_B = -(h_BB * g_A - h_AB * g_B) / det, -(h_AA * g_B - h_AB * g_A) / det
        before, t, expected = -1.0, 1.0, 1e-4 * (g_A * d_A + g_B * d_B)
        while t > SHORTEST:
            g_A, g_B, h_AA, h_AB, h_BB = _slopes(f, target, weight, e, A + t * d_A, B + t * d_B)
            if g_A * d_A + g_B * d_B <= 0.0:
                break
            if before < 0.0:
                before = _cost(f, target, weight, A, B)
            if _cost(f, target, weight, A + t * d_A, B + t * d_B) <= before + t * expected:
                break
            t /= 2.0
        if t <= SHORTEST:
            break
        A, B = A + t * d_A, B + t * d_B
    return A / size, B


@compiled
def _slopes(
    f: Array, target: Array, weight: Array, e: Array, A: float, B: float
) -> tuple[float, float, float, float, float]:
    """First and second derivatives of the cost; ``e`` is room for exponentials."""
    for i in range(f.size):
        e[0, i] = abs(A * f[i] + B)
    exp_rows_f8(e, -1.0, 0.0, NOTHING, f)
    return _sums(f, target, weight, e[0], A, B)


@compiled_sum
def _sums(
    f: Array, target: Array, weight: Array, e: Array, A: float, B: float
) -> tuple[float, float, float, float, float]:
    g_A = g_B = h_AA = h_AB = h_BB = 0.0
    for i in range(f.size):
        p = (e[i] if A * f[i] + B >= 0.0 else 1.0) / (1.0 + e[i])
        slope, curvature = weight[i] * (target[i] - p), weight[i] * p * (1.0 - p)
        g_A += slope * f[i]
        g_B += slope
        h_AA += curvature * f[i] * f[i]
        h_AB += curvature * f[i]
        h_BB += curvature
    return g_A, g_B, h_AA, h_AB, h_BB


@compiled
def _cost(f: Array, target: Array, weight: Array, A: float, B: float) -> float:
    """Minus the logarithm of the likelihood."""
    total = 0.0
    for i in range(f.size):
        z = A * f[i] + B
        total += weight[i] * (np.log1p(np.exp(-abs(z))) + max(z, 0.0) - (1.0 - target[i]) * z)
    return total


def of_pairs(outputs: Array, A: Array, B: Array) -> Array:
    """The probability of the first class of each pair, for outputs that are positive for it."""
    return np.clip(_logistic(-(outputs * A + B)), LEAST, 1 - LEAST)


def coupled(pairs: Array, n_classes: int) -> Array:
    """Probabilities of classes, shape (n, classes), from those of pairs (0, 1), (0, 2), ...

    Examples
    --------
    >>> coupled(np.array([[0.5, 0.75, 0.75]]), 3).round(2)
    array([[0.43, 0.43, 0.14]])
    """
    if n_classes == 2:
        return np.column_stack([pairs[:, 0], 1 - pairs[:, 0]])
    out = np.empty((pairs.shape[0], n_classes))
    i, j = np.triu_indices(n_classes, 1)
    step = max(1, BLOCK_VALUES // (n_classes + 1) ** 2)
    for start in range(0, pairs.shape[0], step):
        r = np.zeros((min(step, pairs.shape[0] - start), n_classes, n_classes))
        r[:, i, j] = pairs[start : start + step]
        r[:, j, i] = 1 - r[:, i, j]
        system = np.zeros((r.shape[0], n_classes + 1, n_classes + 1))
        Q = system[:, :-1, :-1]
        Q[:] = -r.transpose(0, 2, 1) * r
        diagonal = np.arange(n_classes)
        Q[:, diagonal, diagonal] = np.einsum("nji,nji->ni", r, r)
        system[:, -1, :-1] = system[:, :-1, -1] = 1.0
        right = np.zeros((r.shape[0], n_classes + 1, 1))
        right[:, -1] = 1.0
        out[start : start + step] = np.linalg.solve(system, right)[:, :-1, 0]
    out = np.maximum(out, 0.0)  # zero but for rounding errors
    return out / out.sum(axis=1, keepdims=True)


def _logistic(z: Array) -> Array:
    """1 / (1 + exp(-z)), for any z."""
    e = np.exp(-np.abs(z))
    return np.where(z >= 0, 1.0, e) / (1.0 + e)
