"""Where a descent begins: a few steps of k-means within each class, and ridge regression.

As many vectors for a class as the root of its weight asks for. In regression, eight ranges of the
target are the classes. Coefficients: ridge regression on some of the rows, to targets of +-2
(logistic), 5 and 0 (softmax), or the targets themselves.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve

from slimsvm.losses import LOGISTIC
from slimsvm.mapping import exponents, kernel_values
from slimsvm.problems.mapped import SOFTMAX, Mapped, Vectors

Array = NDArray[Any]
STEPS, ROWS_A_CENTRE = 4, 15  # of k-means
RANGES = 8  # of a target that is a number
SOME, SOME_A_VECTOR = 4000, 3  # rows for the first coefficients
RIDGE_LABELS, RIDGE_NUMBERS = 1e-5, 1e-3  # of the rows


def groups_of(problem: Mapped) -> Array:
    """The class of every row, or the range that its target is in."""
    Y = problem.Y
    if problem.takes_labels:
        found = Y.argmax(axis=1) if Y.shape[1] > 1 else (Y[:, 0] > 0).astype(np.intp)
    else:
        edges = np.quantile(Y[:, 0], np.arange(1, RANGES) / RANGES)
        found = np.searchsorted(edges, Y[:, 0])
    return np.unique(found, return_inverse=True)[1]


def centres(X: Array, group: Array, weight: Array, k: int, rng: np.random.Generator) -> Array:
    """k vectors, by a few steps of k-means within each group."""
    size = np.sqrt(np.bincount(group, weights=weight))
    rows = np.bincount(group)
    quota = np.maximum(1, np.round(k * size / size.sum())).astype(int)
    quota = np.minimum(quota, rows)
    while quota.sum() > k and quota.max() > 1:
        quota[np.argmax(quota)] -= 1
    if quota.sum() > k:  # fewer vectors than groups: the lightest have none
        quota[np.argsort(-size, kind="stable")[k:]] = 0
    while quota.sum() < k and np.any(quota < rows):
        quota[np.argmax(np.where(quota < rows, size / quota, -1.0))] += 1
    found = []
    for g, q in enumerate(quota):
        if not q:
            continue
        own = rng.permutation(np.flatnonzero(group == g))[: ROWS_A_CENTRE * q]
        S = X[own]
        B = S[:q].copy()
        for _ in range(STEPS):
            near = (np.einsum("ij,ij->i", B, B) - 2 * (S @ B.T)).argmin(axis=1)
            order = np.argsort(near, kind="stable")
            used, start, count = np.unique(near[order], return_index=True, return_counts=True)
            B[used] = np.add.reduceat(S[order], start, axis=0) / count[:, None]
        found.append(B)
    return np.vstack(found)


def first_vectors(
    problem: Mapped,
    k: int,
    rng: np.random.Generator,
    placed: Array | None = None,
    ridge: float | None = None,
    width: float = 1.0,
) -> Vectors:
    """k vectors with coefficients; ``placed`` are vectors that are known already."""
    X = problem.X
    B = placed
    if B is None:
        B = centres(X, groups_of(problem), problem.weight, k, rng)
    B = np.asarray(B, X.dtype)
    k, widths, outputs = len(B), np.full(len(B), width), problem.Y.shape[1]
    some = rng.permutation(problem.n)[: max(SOME, SOME_A_VECTOR * k)]
    target, form = problem.Y[some], problem.loss_form[0]
    if form == LOGISTIC:
        target = 2.0 * target
    elif form == SOFTMAX:
        target = 5.0 * (target - 1.0 / outputs)
    weight = problem.weight[some] / problem.weight[some].mean()
    intercept = np.zeros(outputs)
    if not problem.takes_labels and problem.fit_intercept:
        intercept = np.average(target, axis=0, weights=weight)
    A = exponents(problem.form, B.astype(np.float64), widths).astype(X.dtype)
    K = kernel_values(problem.form, A, X[some]).astype(np.float64)
    if ridge is None:
        ridge = RIDGE_LABELS if problem.takes_labels else RIDGE_NUMBERS
    H = K.T @ (weight[:, None] * K) + ridge * len(some) * np.eye(k)
    coef = solve(H, K.T @ (weight[:, None] * (target - intercept)), assume_a="pos")
    return Vectors(B, widths, coef, intercept)
