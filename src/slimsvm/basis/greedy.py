"""Rows that promise the largest decrease of the objective: the greedy rule of Keerthi, Chapelle & DeCoste (2006).

For every vector a random pool of candidate rows; the one joins whose *virtual Newton step*, from the present optimum, decreases the quadratic
model of the objective most: by 1/2 g_j^2 / h_j, summed over the columns,

    g_j = k_jB coef + sum_i G_i k_ij,     h_jj = k_jj + sum_i D_i k_ij^2,     h_j = h_jj - u' H^-1 u,     u = (k_jB + K_BX D k_j, 1'D k_j),

G and D first and second derivatives of the weighted loss, H the Hessian in the coefficients and the intercept. With h_jj alone in place of h_j
(``alone``) only the new coefficient moves, as in the paper's text: cheap, and much too timid.

Between retrainings the step is made in the model: D stays, scores, G and coefficients follow, and the factor of H grows by one row. The
machine is trained anew when its size is a power of 2 (``at_once``).

Symbols: R lower Cholesky factor of H, the intercept first; q candidates; t vectors chosen since the last training.
Cost of a vector: q n kernel values, q n (m + t) for u, for each column.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cholesky, solve_triangular

from slimsvm.basis.selection import Here, Selection, block, drawn, rows_at
from slimsvm.problems.subspace import KernelColumns
from slimsvm.threads import parallel, single_threaded_blas
from slimsvm.tiles import Strips, for_each_tile

Array = NDArray[Any]
FLAT = 1e-10  # of h_jj: what is left for the new direction below this is rounding, the row is in the span
STRIP = 4096  # rows of the data that a thread takes at once
REGULAR = 1e-12  # of its diagonal, added to H: where no row has a curvature the intercept has none


@dataclass(frozen=True)
class Greedy:
    """The best of a random pool by a virtual Newton step, for each vector.

    Parameters
    ----------
    n_candidates : int
        Size of the pool for each vector.
    alone : bool
        Whether only the new coefficient moves in the virtual step.

    Examples
    --------
    >>> import numpy as np
    >>> from slimsvm.basis import Greedy, Here
    >>> from slimsvm.kernels import RBF
    >>> from slimsvm.losses import SquaredHinge
    >>> from slimsvm.problems.subspace import KernelColumns, Subspace
    >>> from slimsvm.tiles import ready
    >>> X, y = np.linspace(0.0, 1.0, 40)[:, None], np.where(np.arange(40) < 30, -1.0, 1.0)[:, None]
    >>> columns = KernelColumns(ready(RBF(20.0), X), max_basis=2)
    >>> here = Here(Subspace(columns, y, np.ones(40), SquaredHinge()), np.full((40, 1), -0.5))
    >>> found = Greedy().select(columns, None, np.zeros((0, 1)), 1, np.random.default_rng(0), np.arange(40), here)
    >>> bool(found.indices[0] >= 30)  # where the mistakes are
    True
    """

    n_candidates: int = 59
    alone: bool = False

    @staticmethod
    def at_once(m: int) -> int:
        """How many join before the machine is trained anew: up to the next power of 2."""
        return 1 << m.bit_length() if m == 0 else (1 << m.bit_length()) - m

    def select(
        self,
        columns: KernelColumns,
        row_weights: Array | None,
        basis_weights: Array | None,
        n_new: int,
        rng: np.random.Generator,
        candidates: Array,
        here: Here | None = None,
    ) -> Selection:
        """Up to ``n_new`` rows; ``basis_weights`` are the coefficients with their sign changed."""
        if here is None:
            raise ValueError("basis='greedy' needs a machine to improve, and a loss with a curvature such as 'squared_hinge'.")
        coef = np.zeros((columns.m, here.scores.shape[1])) if basis_weights is None else -np.asarray(basis_weights, np.float64)
        model = _Model(columns, here, coef)
        free = np.ones(columns.n, bool)
        chosen: list[int] = []
        with single_threaded_blas():
            for _ in range(n_new):
                pool = drawn(candidates, self.n_candidates, rng)
                pool = pool[free[pool]]
                best = model.join_best(pool, self.alone) if pool.size else -1
                if best < 0:
                    continue
                chosen.append(int(pool[best]))
                free[pool[best]] = False
        return rows_at(columns, np.array(chosen, np.intp))


class _Model:
    """The quadratic model of the objective around a machine, over a basis that grows."""

    def __init__(self, columns: KernelColumns, here: Here, coef: Array) -> None:
        problem, self.columns, self.coef = here.problem, columns, coef
        weight = problem.weight[:, None]
        self.G = weight * problem.loss.gradient(problem.target, here.scores)
        self.D = weight * problem.loss.curvature(problem.target, here.scores)
        self.intercept = problem.fit_intercept
        self.new = np.empty((0, columns.n), columns.dtype)  # kernel rows of those that joined
        self.new_rows = np.empty(0, np.intp)
        first = self._products(self.D[:, :, None] * np.ones(1)) if columns.m and self.intercept else None
        self.R = [self._factor(c, first) for c in range(coef.shape[1])]

    def _factor(self, c: int, first: Array | None) -> Array:
        """The lower Cholesky factor of H for column c."""
        m, columns, b = self.columns.m, self.columns, int(self.intercept)
        H = np.empty((m + b, m + b))
        if m:

            def work(start: int, end: int, K: Array) -> Array:
                K = K.astype(np.float64, copy=False)
                root = K * np.sqrt(self.D[start:end, c])
                return np.asarray(root @ root.T)

            H[b:, b:] = np.asarray(sum(columns.each_block(work))) + columns.K_BB + columns.jitter * np.eye(m)
        if b:
            H[0, 0] = self.D[:, c].sum()
            if m:
                assert first is not None
                H[0, 1:] = H[1:, 0] = first[:, 0, c]
        H[np.diag_indices_from(H)] *= 1.0 + REGULAR
        H[np.diag_indices_from(H)] += np.finfo(float).tiny ** 0.5
        return np.asarray(cholesky(H, lower=True, check_finite=False)) if H.size else H

    def _products(self, right: Array) -> Array:
        """K_BX right over the basis and the new ones, right (n, columns, q): (m + t, q, columns)."""
        n, k, q = right.shape
        flat = right.reshape(n, k * q)

        def work(start: int, end: int, K: Array) -> Array:
            return np.asarray(K @ flat[start:end].astype(K.dtype), np.float64)

        parts = [np.asarray(sum(self.columns.each_block(work)))] if self.columns.m else []
        if self.new.shape[0]:
            edges = [(start, min(n, start + STRIP)) for start in range(0, n, STRIP)]
            pieces: list[Any] = [None] * len(edges)

            def task(e: int) -> None:
                part = slice(*edges[e])
                pieces[e] = np.asarray(self.new[:, part] @ flat[part].astype(self.new.dtype), np.float64)

            parallel(task, len(edges), self.columns.n_threads)
            parts.append(np.asarray(sum(pieces)))
        out = np.vstack(parts) if parts else np.empty((0, k * q))
        return out.reshape(-1, k, q).transpose(0, 2, 1)

    def join_best(self, pool: Array, alone: bool) -> int:
        """The candidate with the largest decrease joins, and the model moves to its optimum; -1 if none is outside of the span."""
        columns, rows, n_columns = self.columns, self.columns.rows, self.coef.shape[1]
        K = block(rows, pool, None, columns.n_threads)
        K_PB = np.hstack([self._against_basis(pool), K[:, self.new_rows]]).astype(np.float64)
        columns.n_values += K.size + K_PB.size
        diag = np.asarray(rows.diag(), np.float64)[pool]
        g = K_PB @ self.coef + K @ self.G.astype(K.dtype)
        h = diag[:, None] + np.square(K) @ self.D.astype(K.dtype)
        u = self._products(self.D[:, :, None] * K.T[:, None, :])
        left, solved = h.copy(), []
        for c in range(n_columns):
            column = u[:, :, c] + K_PB.T
            if self.intercept:
                column = np.vstack([(K @ self.D[:, c].astype(K.dtype))[None, :], column])
            solved.append(solve_triangular(self.R[c], column, lower=True, check_finite=False) if self.R[c].size else column)
            left[:, c] -= np.einsum("jq,jq->q", solved[c], solved[c])
        good = (left > FLAT * h).all(axis=1)
        if not good.any():
            return -1
        gain = np.where(good, (np.square(g) / np.where(good[:, None], h if alone else left, 1.0)).sum(axis=1), -1.0)
        best = int(np.argmax(gain))
        self._join(int(pool[best]), K[best], g[best], left[best], [part[:, best] for part in solved])
        return best

    def _against_basis(self, pool: Array) -> Array:
        out = np.empty((pool.size, self.columns.m), self.columns.dtype)
        if self.columns.m:

            def keep(i: int, j: int, start: int, end: int, values: Array) -> None:
                out[i:j, start:end] = values

            for_each_tile(self.columns.rows.take(pool), Strips(self.columns.basis), keep, self.columns.n_threads)
        return out

    def _join(self, row: int, k: Array, g: Array, left: Array, solved: list[Array]) -> None:
        """One vector more: the factors grow, and the model goes to its new optimum."""
        size, n_columns, b = self.coef.shape[0], self.coef.shape[1], int(self.intercept)
        along, shift = np.zeros((size, n_columns)), np.zeros(n_columns)
        step = -g / left
        for c in range(n_columns):
            back = -solve_triangular(self.R[c], solved[c], lower=True, trans="T", check_finite=False) if self.R[c].size else solved[c]
            along[:, c], shift[c] = back[b:], back[0] if b else 0.0
            R = np.zeros((size + b + 1, size + b + 1))
            R[:-1, :-1], R[-1, :-1], R[-1, -1] = self.R[c], solved[c], np.sqrt(left[c])
            self.R[c] = R
        m = self.columns.m
        change = self.columns.scores(along[:m]) if m else np.zeros((self.columns.n, n_columns))
        if size > m:
            change += self.new.T @ along[m:].astype(self.new.dtype)
        change += k[:, None] + shift
        self.G += self.D * (step * change)
        self.coef = np.vstack([self.coef + step * along, step[None, :]])
        self.new, self.new_rows = np.vstack([self.new, k[None, :]]), np.append(self.new_rows, row)
