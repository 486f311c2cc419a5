"""Tasks over rows that are elsewhere: what there is, and targets as solvers want them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from slimsvm.multiclass import OneVsRest
from slimsvm.rows import Block, Rows

Array = NDArray[Any]


def rows_of(X: Any, y: Any = None, sample_weight: Any = None) -> Any:
    """Rows that are somewhere else; targets and weights of opened rows are their own."""
    if hasattr(type(X), "relabelled"):  # of the type: a Delayed has any attribute
        for what, given in (("y", y), ("sample_weight", sample_weight)):
            if given is not None:
                raise ValueError(
                    f"{what} comes with the rows that are opened: leave it out, and name it in "
                    "open_rows (target=, weight=)."
                )
        return X
    from slimsvm.sources.dask_rows import from_dask

    return from_dask(X, y, sample_weight)


@dataclass(frozen=True)
class Summary:
    """What is known of rows after one look: sums, and the largest of some numbers."""

    total: float = 0.0  # of weights
    heaviest: float = 0.0
    largest: float = 0.0  # of X
    largest_target: float = 0.0
    n_used: int = 0
    classes: dict[Any, float] = field(default_factory=dict)  # weights of rows by label

    def __add__(self, other: Summary) -> Summary:
        both = dict(self.classes)
        for label, weight in other.classes.items():
            both[label] = both.get(label, 0.0) + weight
        return Summary(
            self.total + other.total,
            max(self.heaviest, other.heaviest),
            max(self.largest, other.largest),
            max(self.largest_target, other.largest_target),
            self.n_used + other.n_used,
            both,
        )


def summary_of(block: Block, labels: bool) -> Summary:
    """A task: what there is in a block."""
    X, y, weight = block.X, block.y, block.weight
    values = X.data if sp.issparse(X) else X
    largest = float(max(values.max(), -values.min())) if values.size else 0.0
    own = np.ones(block.n) if weight is None else weight
    used, classes, far = own > 0, {}, 0.0
    assert y is not None
    if labels:
        found, which = np.unique(y[used], return_inverse=True)
        sums = np.bincount(which, weights=own[used], minlength=found.size)
        classes = dict(zip(found.tolist(), sums.tolist(), strict=True))
    elif y.dtype.kind in "fiub" and y.size:
        far = float(np.abs(y.astype(np.float64)).max())
    heaviest = float(own.max()) if own.size else 0.0
    return Summary(float(own.sum()), heaviest, largest, far, int(used.sum()), classes)


def dtype_of(block: Block) -> Any:
    """A task: the type of the targets."""
    assert block.y is not None
    return block.y.dtype


def targets_in(block: Block) -> tuple[Array, Array]:
    """A task: numbers of classes in few bytes, or targets; and the weights."""
    assert block.y is not None and block.weight is not None
    y = block.y if block.y.ndim == 1 else block.y[:, 0]
    small = y.dtype.kind == "i" and y.max(initial=0) < 2**15
    return y.astype(np.int16) if small else y, block.weight


@dataclass(frozen=True)
class Coded:
    """A task: targets of a block as solvers want them, and weights times factors and C.

    ``layout``: 'columns' of signs, 'labels' as numbers, or 'numbers'. Rows whose label is not among
    the classes have weight zero, and so have those of ``without``, by their numbers.
    """

    layout: str
    C: float = 1.0
    classes: Array | None = None
    factors: Array | None = None
    without: Array | None = None

    def __call__(self, block: Block) -> tuple[Array, Array]:
        """Targets and weights."""
        assert block.y is not None
        weight = np.ones(block.n) if block.weight is None else block.weight.astype(np.float64)
        if self.classes is None or self.factors is None:
            target = np.asarray(block.y, np.float64)[:, None]
        else:
            label = np.minimum(np.searchsorted(self.classes, block.y), self.classes.size - 1)
            weight = np.where(self.classes[label] == block.y, weight * self.factors[label], 0.0)
            columns = self.layout == "columns"
            target = OneVsRest(self.classes.size).columns(label) if columns else label
        if self.without is not None:
            ends = np.searchsorted(self.without, [block.start, block.start + block.n])
            weight = weight.copy()
            weight[self.without[ends[0] : ends[1]] - block.start] = 0.0
        return target, self.C * weight


@dataclass(frozen=True)
class PairCoded:
    """A task: signs of a pair of classes, and weights; those of other classes are zero."""

    classes: Array
    factors: Array
    C: float
    positive: int
    negative: int

    def __call__(self, block: Block) -> tuple[Array, Array]:
        """Targets and weights."""
        label, weight = Coded("labels", self.C, self.classes, self.factors)(block)
        own = (label == self.positive) | (label == self.negative)
        return np.where(label == self.positive, 1.0, -1.0), np.where(own, weight, 0.0)


class FarMatrix:
    """X of rows that are elsewhere: its shape, and some of its rows by their numbers."""

    def __init__(self, rows: Rows) -> None:
        self.rows, self.shape = rows, (rows.n, rows.n_features)

    def __getitem__(self, indices: Any) -> Any:
        return self.rows.take(np.asarray(indices)).X


class EveryRow:
    """The numbers of all rows: each is its own."""

    def __init__(self, n: int) -> None:
        self.size = n

    def __getitem__(self, indices: Any) -> Any:
        return indices
