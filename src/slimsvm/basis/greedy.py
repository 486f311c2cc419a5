"""Rows that promise the largest decrease of the objective.

The greedy rule of Keerthi, Chapelle & DeCoste (2006).

For every vector a random pool of candidate rows; the one joins whose *virtual Newton step*, from
the present optimum, decreases the quadratic model of the objective most: by 1/2 g_j^2 / h_j, summed
over the columns,

    g_j = k_jB coef + sum_i G_i k_ij,     h_jj = k_jj + sum_i D_i k_ij^2,
    h_j = h_jj - u' H^-1 u,     u = (k_jB + K_BX D k_j, 1'D k_j),

G and D first and second derivatives of the weighted loss, H the Hessian in the coefficients and the
intercept. With h_jj alone in place of h_j (``alone``) only the new coefficient moves, as in the
paper's text: cheap, and much too timid.

Between retrainings the step is made in the model: D stays, scores, G and coefficients follow, and
the factor of H grows by one row. The model is trained anew when its size is a power of 2
(``retrain="sizes"``). Bakir & Chapelle's talk "Tricks of the trade for training SVMs" has the loop
"for i = 1 to k: if i is a power of 2, train; choose p candidates, the best of them joins", which
trains before the i-th vector (``retrain="powers"``), and compares selection rules with a training
after each (``retrain="always"``).

Symbols: R lower Cholesky factor of H, the intercept first; q candidates; t vectors chosen since the
last training. Cost of a vector: q n kernel values, q n (m + t) for u, for each column.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cholesky, solve_triangular

from slimsvm.basis.selection import (
    Basis,
    Here,
    Selection,
    Wanted,
    against_basis,
    among,
    drawn,
    rows_at,
)
from slimsvm.options import flags, none_or_at_least, one_of
from slimsvm.problems.columns import KernelColumns
from slimsvm.problems.span import DEPENDENT
from slimsvm.threads import parallel, single_threaded_blas

Array = NDArray[Any]
# of h_jj: what is left for the new direction below this is rounding, the row is in the span
FLAT = {"float32": 1e-7, "float64": 1e-10}
STRIP = 4096  # rows of the data that a thread takes at once
REGULAR = 1e-12  # of its diagonal, added to H: where no row has a curvature the intercept has none


@dataclass(frozen=True)
class Greedy(Basis):
    """The best of a random pool by a virtual Newton step, for each vector.

    Parameters
    ----------
    n_candidates : int or None
        Size of the pool for each vector, p in the talk; None: all rows.
    alone : bool
        Whether only the new coefficient moves in the virtual step.
    retrain : {"sizes", "powers", "always"}
        When the model is trained anew: when its size is a power of 2; before the i-th vector joins,
        i a power of 2; or after every vector.

    Examples
    --------
    >>> from slimsvm import SparseSVC
    >>> from slimsvm.basis import Greedy
    >>> X, y = [[0.1 * i] for i in range(40)], [i >= 30 for i in range(40)]
    >>> model = SparseSVC(2, basis=Greedy(n_candidates=None), refine=False).fit(X, y)
    >>> model.score(X, y) > 0.9  # with two of the rows
    True
    """

    in_words: ClassVar[str] = "takes the one of 59 random rows with the best virtual Newton step"
    needs_curvature: ClassVar[bool] = True

    n_candidates: int | None = 59
    alone: bool = False
    retrain: str = "sizes"

    def __post_init__(self) -> None:
        none_or_at_least(1, n_candidates=self.n_candidates)
        flags(alone=self.alone)
        one_of(("sizes", "powers", "always"), retrain=self.retrain)

    @property
    def undisturbed(self) -> bool:
        """Whether no other training may come between its own."""
        return self.retrain != "sizes"

    def at_once(self, m: int) -> int:
        """How many join before the model is trained anew: up to the next power of 2.

        Examples
        --------
        >>> from slimsvm.basis import Greedy
        >>> [Greedy().at_once(m) for m in (0, 1, 2, 3, 4)]
        [1, 1, 2, 1, 4]
        >>> [Greedy(retrain="powers").at_once(m) for m in (0, 1, 3, 7)]  # i = m + 1
        [1, 2, 4, 8]
        """
        if self.retrain == "always":
            return 1
        i = m + 1 if self.retrain == "powers" else m
        return (1 << i.bit_length()) - i

    def _choose(self, wanted: Wanted) -> Selection:
        """Up to ``n_new`` rows; ``basis_weights`` are the coefficients with their sign changed."""
        columns, n_new = wanted.columns, wanted.n_new
        rng, candidates = wanted.rng, wanted.candidates
        basis_weights, here = wanted.basis_weights, wanted.here
        if here is None:
            raise ValueError(
                "basis='greedy' needs a model to improve, and a loss with a curvature "
                "such as 'squared_hinge'."
            )
        coef = (
            np.zeros((columns.m, here.scores.shape[1]))
            if basis_weights is None
            else -np.asarray(basis_weights, np.float64)
        )
        model = _Model(columns, here, coef)
        free = np.ones(columns.n, bool)
        chosen: list[int] = []
        with single_threaded_blas():
            for _ in range(n_new):
                pool = candidates
                if self.undisturbed:  # as published: p candidates, none that joined before
                    pool = pool[free[pool]]
                if self.n_candidates is not None:
                    pool = drawn(pool, self.n_candidates, rng)
                pool = pool[free[pool]]
                best = model.join_best(pool, self.alone) if pool.size else -1
                if best < 0:
                    continue
                chosen.append(int(pool[best]))
                free[pool[best]] = False
        return rows_at(columns, np.array(chosen, np.intp))


class _Model:
    """The quadratic model of the objective around a solution, over a basis that grows."""

    def __init__(self, columns: KernelColumns, here: Here, coef: Array) -> None:
        problem, self.columns, self.coef = here.problem, columns, coef
        weight = problem.weight[:, None]
        self.G = weight * problem.loss.gradient(problem.target, here.scores)
        self.D = weight * problem.loss.curvature(problem.target, here.scores)
        self.intercept = problem.fit_intercept
        self.new = np.empty((0, columns.n), columns.dtype)  # kernel rows of those that joined
        self.new_rows = np.empty(0, np.intp)
        first = self._products(np.ones((1, columns.n))) if columns.m and self.intercept else None
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

            H[b:, b:] = (
                np.asarray(sum(columns.values.each(work)))
                + columns.K_BB
                + columns.jitter * np.eye(m)
            )
        if b:
            H[0, 0] = self.D[:, c].sum()
            if m:
                assert first is not None
                H[0, 1:] = H[1:, 0] = first[:, 0, c]
        more = REGULAR
        while H.size:
            regular = H.copy()
            regular[np.diag_indices_from(H)] *= 1.0 + more
            regular[np.diag_indices_from(H)] += np.finfo(float).tiny ** 0.5
            try:
                return np.asarray(cholesky(regular, lower=True, check_finite=False))
            except LinAlgError:  # rounding hides the jitter beside a large curvature
                more *= 10.0
        return H

    def _products(self, right: Array) -> Array:
        """K_BX D_c right' for every column c, over the basis and the new ones.

        With right (q, n), the shape is (m + t, q, columns); summed in float64.
        """
        n, k, q = self.columns.n, self.coef.shape[1], right.shape[0]

        def work(start: int, end: int, K: Array) -> Array:
            flat = self.D[start:end, :, None] * right[:, start:end].T[:, None, :].astype(np.float64)
            return np.asarray(K.astype(np.float64, copy=False) @ flat.reshape(end - start, k * q))

        parts = [np.asarray(sum(self.columns.values.each(work)))] if self.columns.m else []
        if self.new.shape[0]:
            edges = [(start, min(n, start + STRIP)) for start in range(0, n, STRIP)]
            pieces: list[Any] = [None] * len(edges)

            def task(e: int) -> None:
                start, end = edges[e]
                pieces[e] = work(start, end, self.new[:, start:end])

            parallel(task, len(edges), self.columns.n_threads)
            parts.append(np.asarray(sum(pieces)))
        out = np.vstack(parts) if parts else np.empty((0, k * q))
        return out.reshape(-1, k, q).transpose(0, 2, 1)

    def _sums(self, K: Array) -> tuple[Array, Array, Array]:
        """K G, K^2 D and K D of the candidates' rows K (q, n), summed in float64."""
        n = self.columns.n
        edges = [(start, min(n, start + STRIP)) for start in range(0, n, STRIP)]
        pieces: list[Any] = [None] * len(edges)

        def task(e: int) -> None:
            part = slice(*edges[e])
            values = K[:, part].astype(np.float64)
            pieces[e] = (
                values @ self.G[part],
                np.square(values) @ self.D[part],
                values @ self.D[part],
            )

        parallel(task, len(edges), self.columns.n_threads)
        first, second, third = (np.asarray(sum(piece[i] for piece in pieces)) for i in range(3))
        return first, second, third

    def join_best(self, pool: Array, alone: bool) -> int:
        """The candidate with the largest decrease joins, and the model moves to its optimum.

        -1 if none is outside of the span.
        """
        columns, rows, n_columns = self.columns, self.columns.operand, self.coef.shape[1]
        K = among(rows, pool, None, columns.n_threads)
        K_PB = np.hstack([against_basis(columns, pool), K[:, self.new_rows]]).astype(np.float64)
        columns.n_values += K.size
        K_G, K_sq_D, K_D = self._sums(K)
        g = K_PB @ self.coef + K_G
        h = np.asarray(rows.diag(), np.float64)[pool, None] + K_sq_D
        u = self._products(K)
        left, solved = h.copy(), []
        for c in range(n_columns):
            column = u[:, :, c] + K_PB.T
            if self.intercept:
                column = np.vstack([K_D[None, :, c], column])
            solved.append(
                solve_triangular(self.R[c], column, lower=True, check_finite=False)
                if self.R[c].size
                else column
            )
            left[:, c] -= np.einsum("jq,jq->q", solved[c], solved[c])
        good = np.asarray((left > FLAT[columns.dtype.name] * h).all(axis=1))
        if columns.m:  # a row that would not be accepted
            Z = columns.coordinates(K_PB[:, : columns.m].T)
            good &= (
                np.asarray(rows.diag(), np.float64)[pool] - np.einsum("jq,jq->q", Z, Z)
                > DEPENDENT * columns.jitter
            )
        if not good.any():
            return -1
        gain = np.where(
            good,
            (np.square(g) / np.where(good[:, None], h if alone else left, 1.0)).sum(axis=1),
            -1.0,
        )
        best = int(np.argmax(gain))
        self._join(
            int(pool[best]), K[best], g[best], left[best], [part[:, best] for part in solved]
        )
        return best

    def _join(self, row: int, k: Array, g: Array, left: Array, solved: list[Array]) -> None:
        """One vector more: the factors grow, and the model goes to its new optimum."""
        size, n_columns, b = self.coef.shape[0], self.coef.shape[1], int(self.intercept)
        along, shift = np.zeros((size, n_columns)), np.zeros(n_columns)
        step = -g / left
        for c in range(n_columns):
            back = (
                -solve_triangular(self.R[c], solved[c], lower=True, trans="T", check_finite=False)
                if self.R[c].size
                else solved[c]
            )
            along[:, c], shift[c] = back[b:], back[0] if b else 0.0
            R = np.zeros((size + b + 1, size + b + 1))
            R[:-1, :-1], R[-1, :-1], R[-1, -1] = self.R[c], solved[c], np.sqrt(left[c])
            self.R[c] = R
        m = self.columns.m
        change = self.columns.scores(along[:m]) if m else np.zeros((self.columns.n, n_columns))
        if size > m:
            change += self.new.T @ along[m:]
        change += k[:, None] + shift
        self.G += self.D * (step * change)
        self.coef = np.vstack([self.coef + step * along, step[None, :]])
        self.new, self.new_rows = np.vstack([self.new, k[None, :]]), np.append(self.new_rows, row)
