"""A basis that the user gives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from slimsvm.basis.selection import Basis, Selection, Wanted, moved

Array = NDArray[Any]


@dataclass(frozen=True)
class Given(Basis):
    """The vectors as they were given, the first ``n_new`` of them.

    Parameters
    ----------
    vectors : array-like or sparse matrix of shape (n, d)
        In the coordinates of the data as it was given to ``fit``.

    Examples
    --------
    >>> from slimsvm.kernels import Linear
    >>> from slimsvm.problems.columns import KernelColumns
    >>> from slimsvm.frames import Frame, in_memory
    >>> from slimsvm.tiles import prepare
    >>> rows = prepare(Linear(), np.eye(3))
    >>> columns = KernelColumns(in_memory(rows), Frame.like(rows), max_basis=2)
    >>> rng = np.random.default_rng(0)
    >>> Given([[1.0, 2.0, 3.0]]).select(columns, None, None, 2, rng, np.arange(3)).vectors
    array([[1., 2., 3.]])
    """

    one_shot: ClassVar[bool] = True

    vectors: Any

    @property
    def size(self) -> int:
        """How many vectors there are; 1 where that cannot be said.

        What is wrong then, :meth:`select` says.
        """
        try:
            shape = np.shape(self.vectors)
        except ValueError:  # rows of different lengths
            return 1
        return int(shape[0]) if len(shape) == 2 else 1

    def _choose(self, wanted: Wanted) -> Selection:
        """The vectors, checked; the weights and the candidates are ignored."""
        columns, n_new = wanted.columns, wanted.n_new
        if columns.precomputed:
            raise ValueError(
                "A basis given as an array needs rows of features; the kernel is precomputed."
            )
        return moved(
            columns,
            columns.in_rows_coordinates(_checked(self.vectors, columns.rows.n_features)[:n_new]),
        )


def _checked(vectors: Any, n_features: int) -> Any:
    """As float64, dense or CSR; what is wrong is said."""
    try:
        vectors = (
            vectors.tocsr().astype(np.float64)
            if sp.issparse(vectors)
            else np.asarray(vectors, np.float64)
        )
    except (TypeError, ValueError) as error:
        raise ValueError(f"The basis given is not an array of numbers: {error}") from error
    if vectors.ndim != 2:
        raise ValueError(
            f"The basis given has shape {vectors.shape}; expected two dimensions, one row "
            "for each vector."
        )
    if vectors.shape[0] == 0:
        raise ValueError("The basis given has no vectors.")
    if vectors.shape[1] != n_features:
        raise ValueError(
            f"The basis given has {vectors.shape[1]} features, the data has {n_features}."
        )
    if not np.isfinite(vectors.data if sp.issparse(vectors) else vectors).all():
        raise ValueError("The basis given contains NaN or infinity.")
    return vectors
