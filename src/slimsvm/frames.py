"""How rows are prepared for products: known once, and the same for every block of the data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from slimsvm.centring import dense_share_is_better, safe_dtype, squares_around
from slimsvm.kernels import Kernel, Precomputed
from slimsvm.rows import Block, MemoryRows, Rows
from slimsvm.tiles import Operand, Strips, prepare, prepare_at, prepare_sparse

Array = NDArray[Any]


@dataclass(frozen=True, eq=False, repr=False)
class Frame:
    """How rows are prepared for products.

    Small, known once, and the same for every block of the data.

    Parameters
    ----------
    kernel : Kernel
        With numbers for its parameters.
    shift : array of shape (d,) or None
        What is subtracted from every row: the centre of all of them, if the kernel allows.
    dtype : type
        Of the kernel values.
    sparse : bool
        Whether CSR rows stay so; otherwise products with arrays are faster.

    Examples
    --------
    >>> from slimsvm.kernels import RBF
    >>> frame = Frame.of(RBF(1.0), MemoryRows(np.array([[0.0], [2.0]])), np.float64)
    >>> frame.prepare(np.array([[5.0]])).X
    array([[4.]])
    """

    kernel: Kernel
    shift: Array | None
    dtype: Any
    sparse: bool = False

    @classmethod
    def of(cls, kernel: Kernel, rows: Rows, dtype: Any = None) -> Frame:
        """From two passes over the rows: their centre, and the largest norm.

        The norm says whether float32 is safe.

        For rows in memory this is what :func:`slimsvm.tiles.prepare` does.
        """
        if isinstance(kernel, Precomputed) or not (kernel.uses_dots or kernel.shift_invariant):
            return cls(kernel, None, np.dtype(np.float64))
        parts = rows.map(_centre_of)
        sparse = parts[0][2] is not None and not dense_share_is_better(
            sum(part[2] for part in parts), sum(part[3] for part in parts), rows.n, rows.n_features
        )
        shift = None
        if kernel.shift_invariant and rows.n and not sparse:
            shift = parts[0][1]
            if len(parts) > 1:
                shift = np.asarray(sum(n * mean for n, mean, *_ in parts) / rows.n)
        if dtype is None:
            largest = max(rows.map(_largest_square, shift))
            dtype = safe_dtype(kernel, np.array([largest]), rows.n_features)
        return cls(kernel, shift, np.dtype(dtype), sparse)

    @classmethod
    def like(cls, operand: Operand) -> Frame:
        """As these rows were prepared."""
        sparse = sp.issparse(operand.X)
        return cls(operand.kernel, operand.shift, operand.dtype, sparse)

    def same(self, other: Frame) -> bool:
        """Whether another frame prepares rows as this one does."""
        mine: Any = self.shift
        its: Any = other.shift
        return self is other or (
            self.kernel == other.kernel
            and (mine is None) == (its is None)
            and (mine is its or np.array_equal(mine, its))
            and (self.dtype, self.sparse) == (other.dtype, other.sparse)
        )

    def prepare(self, X: Any) -> Operand:
        """Rows as they were given, prepared."""
        if isinstance(self.kernel, Precomputed) or not (
            self.kernel.uses_dots or self.kernel.shift_invariant
        ):
            return prepare(self.kernel, X)
        if sp.issparse(X):
            X = X.tocsr()
            if self.sparse:
                return prepare_sparse(self.kernel, X, self.dtype, None)
        return prepare_at(self.kernel, X, self.shift, self.dtype, None)

    def vectors(self, V: Any) -> Operand:
        """Vectors in the coordinates of prepared rows already, for products with these.

        Nothing is subtracted again.
        """
        if isinstance(self.kernel, Precomputed) or not (
            self.kernel.uses_dots or self.kernel.shift_invariant
        ):
            return prepare(self.kernel, V)
        return prepare(self.kernel, V, like=Operand(self.kernel, V, np.empty(0, self.dtype)))

    def prepared(self, block: Block) -> Prepared:
        """The rows of a block, prepared; kept with it."""
        known: Prepared | None = block.kept.get("prepared")
        if known is None or not known.frame.same(self):
            known = block.kept["prepared"] = Prepared(self, self.prepare(block.X))
        return known


class Prepared:
    """Prepared rows as a block keeps them: as rows of a product, and as its columns."""

    def __init__(self, frame: Frame, operand: Operand) -> None:
        self.frame, self.operand = frame, operand
        self._strips: Strips | None = None

    @property
    def strips(self) -> Strips:
        """The rows as columns of a product."""
        if self._strips is None:
            self._strips = Strips(self.operand)
        return self._strips

    def take(self, indices: Array) -> Prepared:
        """Of some of the rows."""
        return Prepared(self.frame, self.operand.take(indices))


def in_memory(
    operand: Operand, y: Array | None = None, weight: Array | None = None, n_threads: int = 1
) -> MemoryRows:
    """Rows that are prepared already as :class:`slimsvm.rows.MemoryRows`; nothing is copied."""
    X, picked = operand.X, operand.index
    if operand.source is not None:
        X, of_source = operand.source, operand.picked
        picked = np.arange(X.shape[0])[of_source] if isinstance(of_source, slice) else of_source
    kept = {"prepared": Prepared(Frame.like(operand), operand)}
    return MemoryRows(X, y, weight, n_threads, kept=kept, picked=picked)


def _centre_of(block: Block) -> tuple[int, Array, int | None, Any]:
    """Number of rows, their mean, and for sparse ones the number of entries.

    Entries are counted in all and for each feature.
    """
    X = block.X
    if not sp.issparse(X):
        return block.n, np.asarray(X.mean(axis=0, dtype=np.float64)).ravel(), None, None
    counts = np.bincount(X.indices, minlength=X.shape[1])
    return block.n, np.asarray(X.mean(axis=0, dtype=np.float64)).ravel(), int(X.nnz), counts


def _largest_square(block: Block, shift: Array | None) -> float:
    """The largest squared norm of a row around the centre."""
    return float(squares_around(block.X, shift).max(initial=0.0))


def rounding_of(where: Block, frame: Frame) -> float:
    """A task: the error of a kernel value of a block."""
    return frame.prepared(where).operand.rounding()
