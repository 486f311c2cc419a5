"""The problem of a sparse model: over the coefficients of a basis, and over the basis itself.

    min over B, coef, intercept of  1/2 |f|^2 + sum_i weight_i L(y_i, f(x_i)),
    f in the span of B,

for several columns at once, which share the basis. With a fixed basis it is a
:class:`~slimsvm.problems.subspace.Subspace`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slimsvm.frames import Frame, in_memory
from slimsvm.losses import Loss
from slimsvm.problems.columns import KernelColumns
from slimsvm.problems.subspace import Subspace
from slimsvm.tiles import Operand

Array = NDArray[Any]


@dataclass(frozen=True)
class Sparse:
    """The problem.

    Parameters
    ----------
    rows : Operand
        All rows, prepared for products.
    target : array of shape (n, columns)
        Labels of -1 and +1, or numbers.
    weight : array of shape (n,)
        C times the weight of each row.
    loss : Loss
        What a mistake costs.
    fit_intercept : bool
        Whether there is an intercept; it is not penalised.
    candidates : array of indices
        Distinct rows, in order: those that may join the basis.
    max_memory : float, optional
        Megabytes for kernel values between rows and basis.
    n_threads : int
        Results are the same bits for any number.
    """

    rows: Operand
    target: Array
    weight: Array
    loss: Loss
    fit_intercept: bool
    candidates: Array
    max_memory: float | None = None
    n_threads: int = 1

    def columns(self, max_basis: int) -> KernelColumns:
        """Kernel values of the rows and a basis of up to so many vectors, still empty."""
        rows = in_memory(self.rows, self.target, self.weight, self.n_threads)
        return KernelColumns(rows, Frame.like(self.rows), max_basis, self.max_memory)

    def over(self, max_basis: int) -> Subspace:
        """The problem over a basis of up to so many vectors, still empty."""
        return Subspace(self.columns(max_basis), self.loss, self.fit_intercept)

    def part(self, rows: Array) -> Sparse:
        """The same on some of the rows, their weights scaled up."""
        return replace(
            self,
            rows=self.rows.take(rows),
            target=self.target[rows],
            weight=self.weight[rows] * (self.weight.sum() / self.weight[rows].sum()),
            candidates=np.flatnonzero(np.isin(rows, self.candidates)),
        )


def as_given(columns: KernelColumns) -> Any:
    """The basis in the coordinates of the data as it was given.

    In float32 if kernel values are, unless the rows lie so far from zero that float32 would move
    the vectors by more than it does around the centre, where kernel values are made: the model
    would be another one than that which was trained.
    """
    if not columns.m:
        return np.empty((0, columns.rows.n_features), columns.dtype)
    vectors = columns.in_given_coordinates()
    if columns.dtype != np.float32:
        return vectors
    with np.errstate(over="ignore"):  # infinite is far, too
        single = vectors.astype(np.float32)
    lost, size = np.abs(single - vectors).max(), np.abs(columns.vectors).max()
    return single if lost <= np.finfo(np.float32).eps * size else vectors
