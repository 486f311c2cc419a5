"""Sparse rows of many features, such as text: a few directions, in which a descent sees them.

Directions of the largest variance (a randomised singular value decomposition, without centring),
and the weights of ridge regression to the targets, which singular vectors may miss.

These weights know the targets of the rows that they were found with: along them, such rows seem
farther from the boundary than others will. A descent therefore sees each row with the weights that
rows of other folds have (:func:`seen_by_others`): what it learns then holds for rows to come. All
else, predictions and certificates too, is with the weights of all rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.linalg import cholesky, solve_triangular

from slimsvm.threads import parallel

Array = NDArray[Any]
WIDE = 2000  # features from which on sparse rows are never made dense
TURNED = 500  # from which on they are seen in a few directions: text, on rows held out
SINGULAR = 30  # directions of the largest variance
# of the weights: the ridge; rounds, steps of each, and share of the slopes that is left: of one
# target, of which they say nearly all, and of several, which take their time
RIDGE, ONE, SEVERAL = 2.0, (6, 100, 1e-3), (2, 15, 3e-2)
# of the rows: weights of nearly all rows are nearer to those of all, where they take little time
FOLDS, FEW, FOLDS_OF_FEW = 4, 4000, 8
TINY = np.finfo(np.float32).tiny
ORTHONORMAL = 1e-10  # largest error of products of directions


def wide(X: Any) -> bool:
    """Whether rows are sparse, with so many features that they are never made dense."""
    return bool(sp.issparse(X)) and X.shape[1] > WIDE


def turned(X: Any) -> bool:
    """Whether rows are sparse, with so many features that they are seen in a few directions."""
    return bool(sp.issparse(X)) and X.shape[1] > TURNED


def directions_of_wide(
    X: Any, target: Array | None, weight: Array | None, rng: Any
) -> tuple[Array, Array | None]:
    """Directions for sparse rows, orthonormal, zero at columns that do not occur; and the weights.

    Singular vectors first, then what the weights for the targets add to them, if there are any.
    """
    from sklearn.utils.extmath import randomized_svd

    n, d = X.shape
    X = X.tocsr().astype(np.float32)
    q = min(SINGULAR, d - 1, n - 1)
    _, size, right = randomized_svd(
        X, q, n_iter=2, random_state=int(rng.integers(2**31 - 1)) if rng is not None else 0
    )
    found = right[size > 1e-6 * size.max()].T.astype(np.float64)
    if target is None:
        return _orthonormal(found), None
    weights = _weights(X, _signs(target), weight)
    return _orthonormal(np.hstack([found, weights])), weights


def seen_by_others(
    X: Any,
    target: Array,
    weight: Array,
    found: tuple[Array, Any],
    rng: np.random.Generator,
    n_threads: int = 1,
) -> Array:
    """What is to be added to the rows' coordinates in these directions: as other folds see them.

    ``found`` is what :func:`directions_of_wide` has found: its last directions come from weights.
    """
    directions, every = found
    X, Y, n = X.tocsr().astype(np.float32), _signs(target), X.shape[0]
    first = directions.shape[1] - Y.shape[1]
    out = np.zeros((n, directions.shape[1]))
    # weights are singular vectors times something, and the last directions times this matrix
    turn = np.linalg.pinv(directions[:, first:].T @ every)
    n_folds = FOLDS_OF_FEW if n <= FEW or Y.shape[1] == 1 else FOLDS
    fold = rng.permutation(n) % n_folds

    def work(f: int) -> None:
        own, others = np.flatnonzero(fold == f), np.flatnonzero(fold != f)
        if own.size and np.any(weight[others] > 0):
            theirs = _weights(X[others], Y[others], weight[others], every)
            out[own, first:] = (X[own] @ (theirs - every)) @ turn

    parallel(work, n_folds, n_threads)
    return out


def _signs(target: Array) -> Array:
    return np.where(target > 0, 1.0, -1.0)


def _orthonormal(A: Array) -> Array:
    """The columns of a tall matrix made orthonormal, in their order.

    Cholesky factors of A'A, twice: a fraction of the work of Householder's reflections, and as
    exact unless columns are nearly dependent.
    """
    try:
        Q = A / np.maximum(np.linalg.norm(A, axis=0), np.finfo(float).tiny)
        for _ in range(2):
            Q = solve_triangular(cholesky(Q.T @ Q, lower=True), Q.T, lower=True).T
    except np.linalg.LinAlgError:
        Q = np.linalg.qr(A)[0]
    apart = np.abs(Q.T @ Q - np.eye(A.shape[1])).max(initial=0.0)
    return np.asarray(Q if apart < ORTHONORMAL else np.linalg.qr(A)[0])


def _weights(X: Any, Y: Array, weight: Array | None, start: Array | None = None) -> Array:
    """Weights of linear SVMs with squared hinge, for all columns of Y side by side.

    Newton's method: in each round the rows with a loss are those of a ridge regression, which some
    steps of conjugate gradients improve; a pass over X is for all columns. In float32, until so
    small a share of the slopes is left.
    """
    n = X.shape[0]
    rounds, steps, exact = ONE if Y.shape[1] == 1 else SEVERAL
    w = np.ones(n, np.float32) if weight is None else (weight / weight.mean()).astype(np.float32)
    across, w, Y = X.T.tocsr(), w[:, None], Y.astype(np.float32)
    found = np.zeros((X.shape[1], Y.shape[1]), np.float32) if start is None else start
    found = found.astype(np.float32)
    counts = w * np.ones_like(Y)  # all rows in the first round
    first = _squares(across @ (counts * (Y - Y.mean(axis=0))))
    for r in range(rounds if start is None else 1):
        scores = X @ found
        if r or start is not None:
            middle = np.average(Y - scores, axis=0, weights=counts)
            counts = w * (Y * (scores + middle) < 1.0) + TINY
        left = Y - scores
        left -= np.average(left, axis=0, weights=counts)
        residual = across @ (counts * left) - np.float32(RIDGE) * found
        step, size = residual.copy(), _squares(residual)
        for _ in range(steps):
            if not np.any(size > exact**2 * first):
                break
            moved = across @ (counts * (X @ step))
            moved += np.float32(RIDGE) * step
            t = size / np.maximum(np.einsum("ij,ij->j", step, moved), TINY)
            found += t * step
            residual -= t * moved
            before, size = size, _squares(residual)
            step *= size / np.maximum(before, TINY)
            step += residual
    return np.asarray(found, np.float64)


def _squares(A: Array) -> Array:
    return np.asarray(np.einsum("ij,ij->j", A, A))
