"""Random rows as the basis.

The Nystrom method's choice (Williams & Seeger 2001), and RSVM's (Lee & Mangasarian 2001).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from numpy.typing import NDArray

from slimsvm.basis.selection import Basis, Selection, Wanted, drawn, rows_at

Array = NDArray[Any]


@dataclass(frozen=True)
class Random(Basis):
    """Distinct candidate rows, drawn without regard to the problem.

    All of them, in order, if that many are asked for.

    Examples
    --------
    >>> import numpy as np
    >>> from slimsvm.kernels import RBF
    >>> from slimsvm.problems.columns import KernelColumns
    >>> from slimsvm.frames import Frame, in_memory
    >>> from slimsvm.tiles import prepare
    >>> rows = prepare(RBF(1.0), np.arange(8.0)[:, None])
    >>> columns = KernelColumns(in_memory(rows), Frame.like(rows), max_basis=8)
    >>> Random().select(columns, None, None, 3, np.random.default_rng(0), np.arange(8)).n
    3
    >>> rng = np.random.default_rng(0)
    >>> Random().select(columns, None, None, 9, rng, np.array([1, 4, 6])).indices
    array([1, 4, 6])
    """

    in_words: ClassVar[str] = "takes rows at random"
    one_shot: ClassVar[bool] = True

    def _choose(self, wanted: Wanted) -> Selection:
        """Up to ``n_new`` rows; the weights are ignored."""
        columns, n_new = wanted.columns, wanted.n_new
        rng, candidates = wanted.rng, wanted.candidates
        return rows_at(columns, drawn(candidates, n_new, rng))
