"""The rows of a linear problem in the coordinates that its solver sees, and the way back."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.linalg import eigh

from slimsvm.precision import is_small

Array = NDArray[Any]
TINY = float(np.finfo(float).tiny)


@dataclass(eq=False, repr=False)
class Coordinates:
    """The rows in the coordinates that the solver sees, and the way back.

    Few rows are centred, which changes nothing but rounding errors since the intercept is free,
    and, where there are more features than rows, turned into as many coordinates as there are rows.
    The axes of these are combinations of the centred rows, and are never written down: with a
    million features they would take gigabytes.
    """

    X: Any
    mean: Array | None = None
    rows: Any = field(default=None, repr=False)  # as given, (n, d)
    # (n, r): the axes are (rows - mean)^T turn
    turn: Array | None = field(default=None, repr=False)

    def given(self, W: Array, b: Array) -> tuple[Array, Array]:
        """Weights and intercepts for the features as they were given."""
        coef = W
        if self.turn is not None and self.mean is not None:
            of_rows = self.turn @ W
            coef = np.asarray(self.rows.T @ of_rows) - np.outer(self.mean, of_rows.sum(axis=0))
        return coef, (b if self.mean is None else b - self.mean @ coef)

    def own(self, coef: Array, intercept: Array) -> tuple[Array, Array]:
        """The other way round."""
        W = (
            coef
            if self.turn is None or self.mean is None
            else self.turn.T @ (np.asarray(self.rows @ coef) - self.mean @ coef)
        )
        return W, (intercept if self.mean is None else intercept + self.mean @ coef)


def coordinates(X: Any, weight: Array, centred: bool) -> Coordinates:
    """Few rows get float64, a centre, and no more coordinates than rows; many stay as they are."""
    n, d = X.shape
    if not is_small(n):
        return Coordinates(X)
    X = X.astype(np.float64)
    mean = np.asarray(X.T @ weight).ravel() / float(weight.sum()) if centred else np.zeros(d)
    if d <= n:
        return Coordinates((X.toarray() if sp.issparse(X) else X) - mean, mean)
    K, at_mean = X @ X.T, np.asarray(X @ mean).ravel()
    K = (
        (K.toarray() if sp.issparse(K) else K)
        - at_mean[:, None]
        - at_mean[None, :]
        + float(mean @ mean)
    )
    square, U = eigh(0.5 * (K + K.T))
    kept = np.flatnonzero(square > max(float(square[-1]), TINY) * n * np.finfo(float).eps)
    if not kept.size:  # all rows are the same
        return Coordinates(np.zeros((n, 1)), mean, X, np.zeros((n, 1)))
    size = np.sqrt(square[kept])
    return Coordinates(U[:, kept] * size, mean, X, U[:, kept] / size)
