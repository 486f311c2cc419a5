"""Rows that are far from the span of those before them, whatever their labels.

The unsupervised rule of Keerthi, Chapelle & DeCoste (2006).

The best of a random pool for each vector; with all rows as the pool (``n_candidates=None``, as in
Bakir & Chapelle's talk "Tricks of the trade for training SVMs") it is the incomplete Cholesky
factorisation (:mod:`slimsvm.basis.cholesky`), which costs n kernel values for each vector where
this costs the size of the pool times that of the basis.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from slimsvm.basis.cholesky import Cholesky
from slimsvm.basis.selection import (
    Basis,
    Selection,
    Wanted,
    against_basis,
    drawn,
    rows_at,
)
from slimsvm.options import none_or_at_least
from slimsvm.problems.columns import largest_diagonal
from slimsvm.problems.span import DEPENDENT, JITTER
from slimsvm.tiles import Strips, block

Array = NDArray[Any]
MOST_REFUSALS = 10  # pools in a row in which no row was outside of the span


@dataclass(frozen=True)
class Unsupervised(Basis):
    """The farthest from the span of a random pool of candidates.

    Parameters
    ----------
    n_candidates : int or None
        Size of the pool for each vector; None: all rows.

    Examples
    --------
    The two groups of rows have a vector each:

    >>> from slimsvm import SparseSVR
    >>> from slimsvm.basis import Unsupervised
    >>> X = [[0.0], [0.1], [5.0], [5.1]]
    >>> model = SparseSVR(2, gamma=1.0, basis=Unsupervised(None), refine=False).fit(X, range(4))
    >>> sorted(round(float(b)) for b in model.basis_[:, 0])
    [0, 5]
    """

    in_words: ClassVar[str] = "takes the farthest of 59 random rows"
    one_shot: ClassVar[bool] = True

    n_candidates: int | None = 59

    def __post_init__(self) -> None:
        none_or_at_least(1, n_candidates=self.n_candidates)

    def _choose(self, wanted: Wanted) -> Selection:
        """Up to ``n_new`` rows; all candidates, in order, if there are not more.

        The weights are ignored.
        """
        columns, n_new = wanted.columns, wanted.n_new
        rng, candidates = wanted.rng, wanted.candidates
        if n_new >= candidates.size:
            return rows_at(columns, candidates)
        if self.n_candidates is None:
            return Cholesky()._choose(wanted)
        largest = max(columns.rows.map(largest_diagonal, columns.frame))
        least = DEPENDENT * JITTER[columns.dtype.name] * largest
        free = np.ones(columns.n, bool)
        known = columns.m
        L, chosen = np.zeros((known + n_new, known + n_new)), np.empty(n_new, np.intp)
        L[:known, :known] = columns.L
        m = refused = 0
        while m < n_new and refused < MOST_REFUSALS:
            pool = drawn(candidates, self.n_candidates, rng)
            pool = pool[free[pool]]
            size = known + m
            some, Z = columns.take(pool), np.empty((0, pool.size))
            if size and pool.size:
                K_new = block(some, Strips(columns.take(chosen[:m])))
                K = np.hstack([against_basis(columns, pool), K_new]).astype(np.float64)
                columns.n_values += m * pool.size
                Z = solve_triangular(L[:size, :size], K.T, lower=True, check_finite=False)
            left = np.asarray(some.diag(), np.float64) - np.einsum("jq,jq->q", Z, Z)
            best = int(np.argmax(left)) if pool.size else -1
            if best < 0 or not left[best] > least:
                refused += 1
                continue
            L[size, :size], L[size, size], chosen[m] = Z[:, best], np.sqrt(left[best]), pool[best]
            free[pool[best]] = False
            m, refused = m + 1, 0
        return rows_at(columns, chosen[:m])
