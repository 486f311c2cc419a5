"""A basis that grows with the cuts."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from slimsvm.problems.subspace import KernelColumns
from slimsvm.rows import codes

Array = NDArray[Any]


class Growth:
    """Gives the cutting-plane driver vectors for each new cut, and remembers which rows they were.

    One at a time, or a share of those there are, if that is more.
    """

    def __init__(
        self, choose: Any, rng: np.random.Generator, candidates: Array, share: float = 0.0
    ) -> None:
        self.choose, self.rng, self.candidates, self.share = choose, rng, candidates, share
        self._found: list[int] = []
        self._offered: Array | None = None

    def __call__(self, columns: KernelColumns, row_weights: Array, basis_weights: Array) -> Any:
        """Vectors for the residual."""
        self._note(columns)
        n_new = min(max(1, int(self.share * columns.m)), columns.max_basis - columns.m)
        selection = self.choose.select(
            columns, row_weights, basis_weights, n_new, self.rng, self.candidates
        )
        self._offered = selection.indices if selection.n else None
        return selection.vectors

    def _note(self, columns: KernelColumns) -> None:
        """Which of the vectors that were offered last were accepted."""
        if self._offered is not None:
            self._found.extend(self._offered[: columns.accepted.size][columns.accepted].tolist())
        self._offered = None

    def indices(self, columns: KernelColumns) -> Array | None:
        """The rows that joined, if all vectors are rows."""
        self._note(columns)
        return np.array(self._found) if columns.m and len(self._found) == columns.m else None


def in_order(X: Any) -> Array:
    """An order of distinct rows that does not depend on the order they came in, nor on whether they are sparse."""
    return np.argsort(codes(X))
