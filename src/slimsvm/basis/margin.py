"""Rows where the model is least sure: those with the smallest |f|.

As in the active learning of Bordes, Ertekin, Weston & Bottou (2005). ``Margin(n_candidates=None,
retrain="always")`` is the rule of Bakir & Chapelle's talk "Tricks of the trade for training SVMs":
of all rows the one with the smallest |f|, and the objective is minimised after each.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from slimsvm.basis.selection import (
    Basis,
    Selection,
    Wanted,
    against_basis,
    grown_share,
    rows_at,
)
from slimsvm.options import none_or_at_least, one_of
from slimsvm.problems.span import DEPENDENT

Array = NDArray[Any]


@dataclass(frozen=True)
class Margin(Basis):
    """The rows of a random pool with the smallest |f|; for several columns, the smallest over them.

    Parameters
    ----------
    n_candidates : int or None
        As in :class:`slimsvm.basis.Unsupervised`.
    retrain : {"share", "always"}
        When the model is trained anew: when an eighth of its size has joined, or after every
        vector.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from slimsvm import SparseSVC
    >>> from slimsvm.basis import Margin
    >>> moons = make_moons(200, random_state=0)
    >>> few, many = (SparseSVC(k, basis=Margin(), random_state=0).fit(*moons) for k in (2, 20))
    >>> few.score(*moons) < many.score(*moons)
    True
    """

    in_words: ClassVar[str] = "takes the one of 59 random rows with the smallest decision value"
    needs_curvature: ClassVar[bool] = True
    needs_labels: ClassVar[bool] = True

    n_candidates: int | None = 59
    retrain: str = "share"

    def __post_init__(self) -> None:
        none_or_at_least(1, n_candidates=self.n_candidates)
        one_of(("share", "always"), retrain=self.retrain)

    @property
    def undisturbed(self) -> bool:
        """Whether no other training may come between its own."""
        return self.retrain == "always"

    def at_once(self, m: int) -> int:
        """How many join before the model is trained anew."""
        return 1 if self.retrain == "always" else grown_share(m)

    def _choose(self, wanted: Wanted) -> Selection:
        """Up to ``n_new`` rows that are not in the span of the basis already.

        The weights are ignored.
        """
        columns, n_new = wanted.columns, wanted.n_new
        here = wanted.here
        if here is None:
            raise ValueError(
                "basis='margin' needs the scores of a model; choose the first vectors "
                "with another basis, such as Random."
            )
        pool = wanted.pool(self.n_candidates)
        if columns.m:  # a row of the basis is as good as any other to stay unsure about
            Z = columns.coordinates(against_basis(columns, pool).T.astype(np.float64))
            diag = np.asarray(columns.take(pool).diag(), np.float64)
            left = diag - np.einsum("jq,jq->q", Z, Z)
            pool = pool[left > DEPENDENT * columns.jitter]
        doubt = np.abs(here.scores[pool]).min(axis=1)
        return rows_at(columns, pool[np.argsort(doubt, kind="stable")[:n_new]])
