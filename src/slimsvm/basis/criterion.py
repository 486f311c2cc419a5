"""What a basis vector is worth: the drop of the residual when it joins the basis.

    drop(b) = sum_c <r_c, phi(b)>^2 / D(b),      r_c = sum_i A_ic phi(x_i) + sum_j W_jc phi(b_j)

D(b) = k(b,b) - |z(b)|^2 is the squared distance of phi(b) to the span of the present basis: then
this is by how much sum_c |r_c|^2 falls when b joins and all coefficients are found anew
(``orthogonal``). With D(b) = k(b,b) it is the drop when only the new coefficient moves, as in
Joachims & Yu (2009). D is never taken below a share RIDGE of k(b,b): near the span a quotient of
two small numbers is mostly rounding errors.

**Terms.** For many rows the sum over i runs over a sample: row i is drawn p_i = min(1, n_rows |A_i|
/ total) times on average, by stratified sampling, and has weight A_i / p_i each time, so that the
sum is unbiased. The weights W are those that make the residual of the sample orthogonal to the
span, as the true one is. That is unbiased too, and what is left of the sampling error is its part
outside of the span.

**Fixed point.** Let s_c = <r_c, phi(b)>, rho_i = sum_c s_c A_ic for the terms, and rho_j = sum_c
s_c W_jc + drop(b) u_j for the basis, where u = K_BB^-1 k_B(b) comes from the derivative of
|z(b)|^2. With dk(x,b)/db = f k'(x,b) (x - b) for the RBF kernel, f k'(x,b) x for powers of inner
products, the gradient of the drop is 2 f / D times

    g(b) = sum rho k'(x,b) (x - b)    or    g(b) = sum rho k'(x,b) x  -  drop(b) k'(b,b) b

(sums over terms and basis). In both cases b + g(b) / (drop(b) k'(b,b)) is the fixed-point
iteration: for RBF the mean of the points with weights rho k (Schoelkopf & Smola, Learning with
Kernels, chapter 18), since these sum to drop(b); for the linear kernel it is power iteration. The
factor is positive, so the step is one of ascent, whatever the signs of the weights.

Symbols: q vectors b at a time, T terms, m basis vectors, C columns; S (q, C) inner products s; left
= D without the ridge. Cost of an evaluation: q (T + m) kernel values and q m^2; of a step: q (T +
m) d and q m^2.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from slimsvm.kernels import Kernel, squared_norms
from slimsvm.problems.columns import KernelColumns
from slimsvm.problems.span import DEPENDENT, JITTER, solved_triangular
from slimsvm.threads import parallel, single_threaded_blas
from slimsvm.tiles import Operand, Strips, block

Array = NDArray[Any]
STRIP = 4096  # points of a sum that a thread takes at once
RIDGE = 1e-3  # the least squared distance to the span that counts, relative to k(b,b)
# a vector of which those chosen before it leave less than this share of its squared distance to the
# span is skipped
CLOSE = 0.1


class Sum:
    """The points of a sum over kernel values, in strips that the threads share.

    They are the terms of the residual, or its basis.
    """

    def __init__(self, operand: Operand, n_threads: int) -> None:
        self.operand, self.n, self.n_threads = operand, operand.n, n_threads
        self.strips = Strips(operand, STRIP)

    def values(self, points: Operand) -> Array:
        """k(b, x) for all b and all points x of the sum, with the kernel of ``points``."""
        return block(points, self.strips, self.n_threads)

    def combined(self, weights: Array) -> Array:
        """weights (q, n) times the points themselves, shape (q, d), in float64.

        Strips are added in order.
        """
        X = self.operand.X
        weights = weights.astype(X.dtype)
        parts: list[Any] = [None] * self.strips.n_strips

        def strip(k: int) -> None:
            start, end = self.strips.edges(k)
            part = weights[:, start:end]
            parts[k] = (X[start:end].T @ part.T).T if sp.issparse(X) else part @ X[start:end]

        with single_threaded_blas():
            parallel(strip, self.strips.n_strips, self.n_threads)
        out = np.zeros((weights.shape[0], X.shape[1]))
        for part in parts:
            out += part
        return out


@dataclass(eq=False, repr=False)
class Values:
    """What is known of q vectors."""

    S: Array  # (q, C) inner products with the residual
    drop: Array  # (q,), negative where the vector depends on the basis
    left: Array  # (q,) squared distance to the span
    diag: Array  # (q,) k(b, b)
    Z: Array  # (m, q) orthonormal coordinates of what is in the span
    K_terms: Array  # (q, T)
    K_B: Array  # (q, m)

    def take(self, which: Array) -> Values:
        """Of some of the vectors."""
        return Values(
            self.S[which],
            self.drop[which],
            self.left[which],
            self.diag[which],
            self.Z[:, which],
            self.K_terms[which],
            self.K_B[which],
        )


class Criterion:
    """The drop as a function of a new basis vector, and the step of its fixed point.

    Parameters
    ----------
    columns : KernelColumns
        The rows and the basis.
    row_weights : array of shape (n, C) or (n,)
        A. The weights of the basis follow from it, since the residual is orthogonal to the span.
    n_rows : int
        Terms at most; rows beyond are sampled.
    rng : Generator
        For the sample.
    orthogonal : bool
        Which D.
    """

    def __init__(
        self,
        columns: KernelColumns,
        row_weights: Array,
        n_rows: int,
        rng: np.random.Generator,
        orthogonal: bool = True,
    ) -> None:
        self.columns, self.orthogonal, self.kernel = columns, orthogonal, columns.kernel
        A = np.asarray(row_weights, np.float64)
        self.row_weights = A[:, None] if A.ndim == 1 else A
        # a part of a larger array, of which every solve would make a copy
        self.L = np.ascontiguousarray(columns.L)
        if columns.m:
            self.basis = Sum(
                columns.take(columns.vectors) if columns.precomputed else columns.span.operand,
                columns.n_threads,
            )
        self._sample(n_rows, rng)

    def _sample(self, n_rows: int, rng: np.random.Generator) -> None:
        """Choose the terms."""
        A = self.row_weights
        self.n_rows = n_rows
        self.picked, divisor = sampled(
            np.abs(A[:, 0]) if A.shape[1] == 1 else np.sqrt(np.einsum("ic,ic->i", A, A)),
            n_rows,
            rng,
        )
        self.A = A[self.picked] / divisor[:, None]
        self.excess = self.A - A[self.picked]  # what a row of the sample weighs more than it should
        self.is_sample = bool(np.any(divisor != 1.0))
        self.terms = Sum(self.columns.take(self.picked), self.columns.n_threads)
        if self.columns.m:
            self.W = self._orthogonal_weights()

    def resampled(self, n_rows: int, rng: np.random.Generator) -> Criterion:
        """The same on other terms."""
        other = copy(self)
        other._sample(n_rows, rng)
        return other

    def _orthogonal_weights(self) -> Array:
        """-K_BB^-1 K_B,terms A: with these the residual of the sample is orthogonal to the span."""
        K = self._K_B_terms()
        # a sample's sum: float32 is the least of its errors
        products = np.asarray(K @ self.A.astype(K.dtype), np.float64)
        return -self._solved(self._solved(products), "T")

    def _K_B_terms(self) -> Array:
        """Kernel values of the basis against the terms: known already if the columns are kept."""
        columns = self.columns
        if not columns.keeps:
            columns.n_values += columns.m * self.picked.size
            return self.basis.values(self.terms.operand).T
        return columns.at_rows(self.picked)

    def _solved(self, B: Array, trans: str = "N") -> Array:
        return solved_triangular(self.L, B, transposed=trans == "T") if B.size else B

    # -- values ------------------------------------------------------------------------------------

    def points(self, vectors: Array) -> Operand:
        """Vectors (dense, float64, in the coordinates of the rows) as an operand."""
        dtype = self.columns.dtype
        return Operand(
            self.kernel, np.ascontiguousarray(vectors, dtype), squared_norms(vectors).astype(dtype)
        )

    def at(self, points: Operand, rows: Array | None = None) -> Values:
        """The drop and what belongs to it.

        ``rows`` says which rows of the data the points are, if they are.
        """
        columns, q = self.columns, points.n
        diag = np.asarray(points.diag(), np.float64)
        K_terms = self.terms.values(points)
        S = K_terms.astype(np.float64) @ self.A
        if columns.m:
            K_B = self.basis.values(points)
            exact = K_B.astype(np.float64)
            Z = self._solved(exact.T)
            S += exact @ self.W
        else:
            K_B, Z = np.empty((q, 0), K_terms.dtype), np.empty((0, q))
        columns.n_values += q * (K_terms.shape[1] + columns.m)
        left = diag - np.einsum("jq,jq->q", Z, Z)
        if rows is not None:
            self._without_own_excess(S, left, rows)
        return Values(S, self._drop(S, left, diag), left, diag, Z, K_terms, K_B)

    def _without_own_excess(self, S: Array, left: Array, rows: Array) -> None:
        """Let a row of the sample count only for itself where it is.

        It stands for others too, but is alone there.
        """
        if not self.picked.size:
            return
        place = np.minimum(np.searchsorted(self.picked, rows), self.picked.size - 1)
        own = np.flatnonzero(self.picked[place] == rows)
        S[own] -= self.excess[place[own]] * left[own, None]

    def _jitter(self, diag: Array) -> Array:
        """As in :meth:`Span.appended`."""
        known = float(np.diag(self.columns.K_BB).max()) if self.columns.m else 0.0
        return np.asarray(JITTER[str(np.dtype(self.columns.dtype))] * np.maximum(diag, known))

    def _drop(self, S: Array, left: Array, diag: Array) -> Array:
        """sum_c S^2 / D, and -1 where the vector depends on the basis.

        Such a vector would be refused.
        """
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            drop = np.einsum("qc,qc->q", S, S) / (left + RIDGE * diag if self.orthogonal else diag)
            fits = np.isfinite(drop) & (left > DEPENDENT * self._jitter(diag))
        return np.where(fits, drop, -1.0)

    # -- the fixed point ---------------------------------------------------------------------------

    def step(self, points: Operand, values: Values) -> Array:
        """g(b) / (drop(b) k'(b,b)) for every b; zero where there is no drop to speak of."""
        inner, _, centred = self.kernel.slope()
        drop = np.maximum(values.drop, 0.0)
        weights = self._inner_values(self.terms, inner, points, values.K_terms) * (
            values.S @ self.A.T
        )
        step = self.terms.combined(weights)
        total = weights.sum(axis=1)
        if self.columns.m:
            rho = values.S @ self.W.T
            if self.orthogonal:
                rho += drop[:, None] * self._solved(values.Z, "T").T
            weights = self._inner_values(self.basis, inner, points, values.K_B) * rho
            step += self.basis.combined(weights)
            total += weights.sum(axis=1)
        own = np.asarray(replace(points, kernel=inner).diag(), np.float64)
        scale = drop * own * (1.0 + RIDGE if self.orthogonal else 1.0)
        step -= (total if centred else scale)[:, None] * np.asarray(points.X, np.float64)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            step /= scale[:, None]
        step[~np.isfinite(step).all(axis=1)] = 0.0
        return step

    def _inner_values(self, over: Sum, inner: Kernel, points: Operand, values: Array) -> Array:
        """k'(b, x); for RBF these are the kernel values, which are known."""
        if inner != self.kernel:
            values = over.values(replace(points, kernel=inner))
            self.columns.n_values += values.size
        return values.astype(np.float64)

    def contained(self, vectors: Array) -> Array:
        """Vectors whose norm suits the rows.

        Powers of inner products grow without bound, and if homogeneous the drop does not see the
        norm.
        """
        if self.kernel.slope()[2]:
            return vectors
        sq = self.terms.operand.sq
        norm = np.sqrt(squared_norms(vectors))
        most = np.sqrt(float(sq.max())) if sq is not None and sq.size else 1.0
        homogeneous = getattr(self.kernel, "coef0", 0.0) == 0.0
        wanted = np.where(norm > 0, most, norm) if homogeneous else np.minimum(norm, most)
        return np.asarray(vectors * (wanted / np.where(norm > 0, norm, 1.0))[:, None])

    # -- several at once ---------------------------------------------------------------------------

    def greedy(self, pool: Operand, values: Values, n_new: int) -> Array:
        """Indices of up to n_new of the pool, chosen greedily.

        Each is the best once those before it have joined the basis; near-duplicates are skipped.

        A partial Cholesky factorisation of the pool's kernel matrix outside of the span, pivoted by
        the drop: O(n_new (d + m)) for each.
        """
        S, left = values.S.copy(), values.left.copy()
        # only its values matter, not where the rows came from
        pool = replace(pool, source=None, picked=None)
        everyone = Sum(pool, 1)
        G = np.empty((n_new, pool.n))
        free = values.drop >= 0.0
        chosen: list[int] = []
        while True:
            drop = np.where(
                free & (left > CLOSE * values.left), self._drop(S, left, values.diag), -1.0
            )
            best = int(np.argmax(drop)) if drop.size else -1
            if best < 0 or drop[best] < 0.0:
                break
            chosen.append(best)
            if len(chosen) == n_new:
                break
            t, size = len(chosen) - 1, np.sqrt(left[best])
            column = everyone.values(pool.take(np.array([best])))[0].astype(np.float64)
            self.columns.n_values += pool.n
            G[t] = (column - values.Z[:, best] @ values.Z - G[:t, best] @ G[:t]) / size
            S -= np.outer(G[t], S[best] / size)
            left -= G[t] ** 2
            free[best] = False
        return np.array(chosen, dtype=np.intp)


def sampled(size: Array, n: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Up to n indices drawn with probability proportional to size, in order.

    Also returns the numbers to divide by for an unbiased sum.

    All of size > 0 if there are not more than n. Otherwise the shares of the total are laid end to
    end and cut into n strata, each of which picks one at random. (One random start for all strata
    would do with less chance, but follows any period that the rows have.) Whose share is a whole
    stratum or more is taken for certain.

    Examples
    --------
    >>> sampled(np.array([1.0, 0.0, 9.0, 1.0, 2.0]), 2, np.random.default_rng(0))
    (array([2, 4]), array([1. , 0.5]))
    """
    positive = np.flatnonzero(size > 0)
    if positive.size <= n:
        return positive, np.ones(positive.size)
    size = size[positive]
    certain = np.zeros(size.size, bool)
    # the others share what the certain ones leave, and then some of them may be certain too
    while True:
        share = size * ((n - np.count_nonzero(certain)) / size[~certain].sum())
        beyond = ~certain & (share >= 1.0)
        if not beyond.any():
            break
        certain |= beyond
    share[certain] = 0.0
    n_strata = n - np.count_nonzero(certain)
    hits = np.searchsorted(
        np.cumsum(share), np.arange(n_strata) + rng.random(n_strata), side="right"
    )
    found, times = np.unique(np.minimum(hits, np.flatnonzero(~certain)[-1]), return_counts=True)
    kept = np.concatenate([np.flatnonzero(certain), found])
    divisor = np.concatenate([np.ones(kept.size - found.size), share[found] / times])
    order = np.argsort(kept)
    return positive[kept[order]], divisor[order]
