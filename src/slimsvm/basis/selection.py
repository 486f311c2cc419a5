"""What a choice of basis vectors is, and the form in which it is handed over.

A basis lives in the coordinates of the prepared rows (centred for distance kernels), dense or CSR,
all of it in one form. For a precomputed kernel a basis vector is the index of a row.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from slimsvm.problems.columns import KernelColumns
from slimsvm.problems.subspace import Subspace
from slimsvm.tiles import Operand, Strips, block

Array = NDArray[Any]
# an entry of a CSR matrix takes 12 bytes, of an array 8; and products with an array are faster
SPARSE_DENSITY = 1 / 3
GROWTH = 1 / 8  # of the present size: so many vectors join at once


@dataclass(frozen=True, eq=False, repr=False)
class Selection:
    """New basis vectors, the best first.

    Parameters
    ----------
    vectors : array or CSR matrix of shape (n, d)
        In the coordinates of the prepared rows; for a precomputed kernel an array of row indices.
    indices : int array of shape (n,) or None
        The rows they are; None if they are not rows.
    """

    vectors: Any
    indices: Array | None = None

    @property
    def n(self) -> int:
        """Number of vectors."""
        return int(self.vectors.shape[0])


@dataclass(frozen=True, eq=False, repr=False)
class Here:
    """The model on the present basis, for choices that depend on more than its residual."""

    problem: Subspace
    scores: Array  # (n, columns), intercept included


@dataclass(frozen=True, eq=False, repr=False)
class Wanted:
    """What a choice is asked for; see :meth:`Basis.select`."""

    columns: KernelColumns
    row_weights: Array | None
    basis_weights: Array | None
    n_new: int
    rng: np.random.Generator
    candidates: Array
    here: Here | None

    def pool(self, n_each: int | None) -> Array:
        """Random candidates, so many for each vector that is wanted; see :func:`drawn`.

        None: all of them.
        """
        if n_each is None:
            return self.candidates
        return drawn(self.candidates, n_each * self.n_new, self.rng)


@runtime_checkable
class Basis(Protocol):
    """A way to choose basis vectors.

    The function to be approximated is r_c = sum_i row_weights[i, c] phi(x_i) + sum_j
    basis_weights[j, c] phi(b_j) for every column c: the residual of the newest cut, or the negative
    gradient of the objective; it is (nearly) orthogonal to the span of the present basis.

    Attributes
    ----------
    in_words : str
        What it does, for the documentation: the sentence after its name.
    one_shot : bool
        Whether vectors are chosen before any training.
    needs_curvature : bool
        Whether they are chosen by what Newton's method knows: ``here`` must be given, and the loss
        must have a curvature.
    needs_labels : bool
        Whether the sign of the function must mean something: of no use to a regression.
    takes_weights : bool
        Whether rows count by the weights that its constructor gets as ``sample_weight``.
    undisturbed : bool
        Whether the model is trained only when this choice asks for it, while the basis grows.
    """

    in_words: ClassVar[str] = ""
    one_shot: ClassVar[bool] = False
    needs_curvature: ClassVar[bool] = False
    needs_labels: ClassVar[bool] = False
    takes_weights: ClassVar[bool] = False

    @property
    def undisturbed(self) -> bool:
        """See above."""
        return False

    def at_once(self, m: int) -> int:
        """How many join a basis of m vectors before the model is trained anew."""
        return grown_share(m)

    def select(
        self,
        columns: KernelColumns,
        row_weights: Array | None,
        basis_weights: Array | None,
        n_new: int,
        rng: np.random.Generator,
        candidates: Array,
        here: Here | None = None,
    ) -> Selection:
        """Up to ``n_new`` vectors.

        ``candidates`` are the indices of distinct rows of positive weight, in order.
        """
        return self._choose(
            Wanted(columns, row_weights, basis_weights, n_new, rng, candidates, here)
        )

    def _choose(self, wanted: Wanted) -> Selection:
        """The vectors, chosen in the way of this class."""
        ...


def grown_share(m: int) -> int:
    """How many vectors join m others before the model is trained anew."""
    return max(1, int(GROWTH * m))


def rows_at(columns: KernelColumns, indices: Array) -> Selection:
    """These rows as basis vectors."""
    if columns.precomputed:
        return Selection(indices, indices)
    return Selection(_as_kept(columns, columns.take(indices).X), indices)


def among(rows: Operand, first: Array, second: Array | None = None, n_threads: int = 1) -> Array:
    """Kernel values of some rows against some, or against all of them."""
    return block(rows.take(first), Strips(rows if second is None else rows.take(second)), n_threads)


def against_basis(columns: KernelColumns, which: Array) -> Array:
    """Kernel values of some rows against the present basis."""
    if not columns.m:
        return np.empty((which.size, 0), columns.dtype)
    columns.n_values += which.size * columns.m
    return block(columns.take(which), Strips(columns.span.operand), columns.n_threads)


def drawn(candidates: Array, n: int, rng: np.random.Generator) -> Array:
    """n distinct candidates; all of them, in order, if there are not more."""
    return candidates if n >= candidates.size else rng.choice(candidates, n, replace=False)


def moved(columns: KernelColumns, vectors: Any) -> Selection:
    """Vectors that are not rows as basis vectors.

    In the form of those that are there already, or else in the smaller one.
    """
    return Selection(_as_kept(columns, vectors))


def _as_kept(columns: KernelColumns, vectors: Any) -> Any:
    """Dense or CSR, as the basis is already.

    At first dense for dense rows, and for CSR rows whatever takes fewer bytes.
    """
    known = columns.vectors
    if known is not None:
        sparse = sp.issparse(known)
    elif not columns.frame.sparse:
        sparse = False
    else:
        filled = vectors.nnz if sp.issparse(vectors) else np.count_nonzero(vectors)
        sparse = (
            filled < SPARSE_DENSITY * vectors.shape[0] * vectors.shape[1] or vectors.shape[0] == 0
        )
    if sparse:
        return vectors.tocsr() if sp.issparse(vectors) else sp.csr_matrix(vectors)
    return vectors.toarray() if sp.issparse(vectors) else np.ascontiguousarray(vectors)
