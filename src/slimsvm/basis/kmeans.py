"""Centres of k-means as the basis (Zhang, Tsang & Kwok 2008).

They cover the rows more evenly than rows drawn at random do.

Lloyd's algorithm on small random batches (Sculley 2010), scikit-learn's, in the coordinates of the
prepared rows. The centres are spread where rows are, not where the decision is: a good start for
refinement, and the better one-shot choice for distance kernels.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from slimsvm.basis.selection import Basis, Selection, Wanted, drawn, moved, rows_at

Array = NDArray[Any]
# at least; and at least twice as many as centres, so that most centres move in every batch
BATCH_ROWS = 1024
# for each centre, rows that take part at most: more of them change the centres little
SAMPLED_ROWS = 256
LEAST_CENTRES = 40  # as many rows as for so many centres take part in any case


@dataclass(frozen=True)
class KMeans(Basis):
    """Centres of mini-batch k-means, not rows.

    All candidate rows, in order, if that many are asked for.

    Parameters
    ----------
    sample_weight : array of shape (n,), optional
        How often each row counts.
    max_iter : int
        Passes over the rows, at most.

    Examples
    --------
    >>> from slimsvm.kernels import RBF
    >>> from slimsvm.problems.columns import KernelColumns
    >>> from slimsvm.frames import Frame, in_memory
    >>> from slimsvm.tiles import prepare
    >>> X = np.concatenate([np.linspace(-0.1, 0.1, 50), np.linspace(3.9, 4.1, 50)])[:, None]
    >>> rows = prepare(RBF(1.0), X)
    >>> columns = KernelColumns(in_memory(rows), Frame.like(rows), max_basis=2)
    >>> chosen = KMeans().select(columns, None, None, 2, np.random.default_rng(0), np.arange(100))
    >>> np.abs(np.sort(columns.in_given_coordinates(chosen.vectors).ravel()) - [0, 4]).max() < 0.05
    np.True_
    """

    in_words: ClassVar[str] = "takes centres of clusters"
    one_shot: ClassVar[bool] = True
    takes_weights: ClassVar[bool] = True

    sample_weight: Array | None = None
    max_iter: int = 20

    def _choose(self, wanted: Wanted) -> Selection:
        """``n_new`` centres; the weights of the residual are ignored."""
        columns, n_new = wanted.columns, wanted.n_new
        rng, candidates = wanted.rng, wanted.candidates
        if columns.precomputed:
            raise ValueError(
                "basis='kmeans' needs rows of features; with a precomputed kernel choose "
                "rows, for example basis='random'."
            )
        if n_new >= candidates.size:
            return rows_at(columns, candidates)
        # here: it takes longer to import than all other bases together
        from sklearn.cluster import MiniBatchKMeans

        weight = self.sample_weight
        seed = int(rng.integers(2**31 - 1))
        counts = np.arange(columns.n) if weight is None else np.flatnonzero(weight > 0)
        picked = np.sort(drawn(counts, SAMPLED_ROWS * max(n_new, LEAST_CENTRES), rng))
        X, weight = columns.take(picked).X, None if weight is None else weight[picked]
        batch = max(BATCH_ROWS, 2 * n_new)
        clustering = MiniBatchKMeans(
            n_new,
            max_iter=self.max_iter,
            batch_size=batch,
            n_init=1,
            random_state=seed,
            compute_labels=False,
        )
        # one thread: the sum by which it decides to stop would depend on the order in which threads
        # end
        with threadpool_limits(1), warnings.catch_warnings():
            # fewer clusters than asked for: the basis refuses what is there twice
            warnings.simplefilter("ignore", ConvergenceWarning)
            clustering.fit(X, sample_weight=weight)
        return moved(columns, clustering.cluster_centers_)
