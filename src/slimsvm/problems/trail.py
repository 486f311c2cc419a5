"""How the scores of all rows came about: a start, and moves.

A solver over a basis never holds scores: it holds a :class:`Trail`, which is small. Scores are kept
with the rows of a block, and brought up to date by the moves that are missing there; where they
were lost, all moves are made again, in the same order, with the same bits. A search along a
direction keeps the change of the scores in the same way.

Symbols: m basis vectors; n rows of a block; c columns.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slimsvm.problems.columns import Values
from slimsvm.problems.span import Span
from slimsvm.rows import Block, serial

Array = NDArray[Any]


def scores_in(block: Block, span: Any, coef: Array) -> Array:
    """Sums over the vectors of a span for the rows of a block, (n, columns).

    A frame of vectors in a metric (:class:`slimsvm.problems.mapped_rows.MappedFrame`) makes its
    own.
    """
    if isinstance(span, Span):
        return Values(block, span).scores(coef)
    return np.asarray(span.scores_in(block, coef))


@dataclass(frozen=True, eq=False, repr=False)
class Direction:
    """A change of the function: of coefficients (m, k) and intercepts (k,), for k of the columns.

    Without coefficients only the intercepts move, and no kernel values are needed.
    """

    coef: Array | None
    intercept: Array
    columns: Array | None = None  # which, ascending; None: all
    serial: str = field(default_factory=serial)

    def at(self, block: Block, span: Any) -> Array:
        """The change of the scores of a block, (n, k); kept with it."""
        known = block.kept.get("direction")
        if known is None or known[0] != self.serial:
            if self.coef is None:
                change = np.empty((block.n, self.intercept.size), order="F")
                change[:] = self.intercept
            else:
                change = scores_in(block, span, self.coef)
                change += self.intercept
            known = block.kept["direction"] = (self.serial, change)
        return np.asarray(known[1])


@dataclass(frozen=True, eq=False, repr=False)
class Trail:
    """Scores over a span, as a start, coefficients (m, c) and intercepts (c,) or zero, and moves.

    A move is a direction and how far it was gone in each of its columns; or no direction, and what
    is added to each column.

    Examples
    --------
    >>> from slimsvm.kernels import RBF
    >>> from slimsvm.rows import MemoryRows
    >>> from slimsvm.frames import Frame
    >>> rows = MemoryRows(np.zeros((3, 1)))
    >>> trail = Trail(Span(Frame.of(RBF(1.0), rows), max_basis=1), n_columns=2)
    >>> trail.shifted(np.array([1.0, 2.0])).at(rows.block)
    array([[1., 2.],
           [1., 2.],
           [1., 2.]])
    """

    span: Any  # a Span, or what else makes scores
    n_columns: int
    start: tuple[Array, Array] | None = None
    moves: tuple[tuple[Direction | None, Array], ...] = ()
    serial: str = field(default_factory=serial)

    def shifted(self, step: Array) -> Trail:
        """With something added to all scores of a column."""
        return Trail(
            self.span, self.n_columns, self.start, (*self.moves, (None, step)), self.serial
        )

    def moved(self, direction: Direction, t: Array) -> Trail:
        """t of the way along a direction."""
        return Trail(
            self.span, self.n_columns, self.start, (*self.moves, (direction, t)), self.serial
        )

    def at(self, block: Block) -> Array:
        """The scores of a block, (n, c), columns in memory one after the other.

        Kept with the block, and not to be changed.
        """
        known: _Kept | None = block.kept.get("scores")
        if known is None or known.serial != self.serial or known.n_moves > len(self.moves):
            known = block.kept["scores"] = _Kept(self.serial, self._first(block))
        for direction, t in self.moves[known.n_moves :]:
            if direction is None:
                known.scores += t
            else:
                change = direction.at(block, self.span)
                change *= t
                del block.kept["direction"]
                known.scores[:, columns_at(direction, self.n_columns)] += change
            known.n_moves += 1
        return known.scores

    def _first(self, block: Block) -> Array:
        if self.start is None:
            return np.zeros((block.n, self.n_columns), order="F")
        scores = scores_in(block, self.span, self.start[0])
        scores += self.start[1]
        return scores


@dataclass(eq=False, repr=False)
class _Kept:
    """The scores of a block after so many moves of a trail."""

    serial: str
    scores: Array
    n_moves: int = 0


def columns_at(direction: Direction, n_columns: int) -> Any:
    """The columns of a direction; all of them without a copy."""
    which = direction.columns
    return slice(None) if which is None or which.size == n_columns else which


def trail_at(block: Block, trail: Trail) -> Array:
    """A task: the scores of a block."""
    return trail.at(block)
