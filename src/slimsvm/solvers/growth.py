"""Where the vectors of a basis come from: those known before any training, and those for cuts."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from slimsvm.basis import Basis, Selection
from slimsvm.problems.columns import KernelColumns
from slimsvm.row_hashes import codes

Array = NDArray[Any]


class Growth:
    """Gives the cutting-plane driver vectors for each new cut, and remembers which rows they were.

    One at a time, or a share of those there are, if that is more.
    """

    def __init__(
        self, choose: Basis, rng: np.random.Generator, candidates: Array, share: float = 0.0
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

    def remembered(self, columns: KernelColumns) -> tuple[list[int], np.random.Generator]:
        """What another one needs to go on from here."""
        self._note(columns)
        return list(self._found), self.rng

    def remember(self, known: tuple[list[int], np.random.Generator]) -> None:
        """Go on from there."""
        self._found, self._offered = list(known[0]), None
        self.rng.bit_generator.state = known[1].bit_generator.state

    def indices(self, columns: KernelColumns) -> Array | None:
        """The rows that joined, if all vectors are rows."""
        self._note(columns)
        return np.array(self._found) if columns.m and len(self._found) == columns.m else None


def appended(columns: KernelColumns, selection: Selection) -> Array | None:
    """Let vectors join; which rows those are that were accepted, if they are rows."""
    accepted = np.flatnonzero(columns.append(selection.vectors))
    return None if selection.indices is None else selection.indices[accepted]


def in_order(X: Any) -> Array:
    """An order of distinct rows that does not depend on how they came, nor on their form."""
    return np.argsort(codes(X))
