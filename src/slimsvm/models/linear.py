"""Weights of features."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from slimsvm.declarations import Attribute, attribute
from slimsvm.ending import warn
from slimsvm.expansion import dense
from slimsvm.models.support import KernelModel

Array = NDArray[Any]
ZERO = 1e-12  # scores that are zero but for rounding errors would decide ties between classes


class LinearWeights:
    """Weights of features, one row for each output.

    Attributes
    ----------
    coef_
        Weights of the features.
    """

    _learned = "coef_"
    fitted: ClassVar[tuple[Attribute, ...]] = (
        attribute("coef_", "matrix", ("n_outputs", "n_features")),
        attribute("intercept_", "float", ("n_outputs",)),
    )

    coef_: Any
    intercept_: Array

    kernel = "linear"  # what the checks of all estimators ask for
    _new_rows: Any = KernelModel._new_rows
    _same_as: ClassVar[str] = ""

    def _outputs(self, X: Any) -> Array:
        """Decision values, shape (n, outputs)."""
        products = self._new_rows(X) @ self.coef_.T
        products = dense(products).reshape(products.shape[0], -1)
        return np.asarray(products + self.intercept_)

    def _hold_weights(self, coef: Array, intercept: Array, largest: float, has_one: bool) -> None:
        """Set the attributes, from (features, outputs); ``largest`` is that of all values."""
        nothing = np.abs(coef).max(axis=0) * largest <= ZERO
        self.coef_ = np.ascontiguousarray(np.where(nothing, 0.0, coef).T)
        self.intercept_ = np.asarray(intercept if has_one else np.zeros(coef.shape[1]))

    def _last(self, n_outputs: int, n_features: int) -> tuple[Array, Array] | None:
        """Weights (features, outputs) and intercepts of the last fit, if they are so many."""
        if not hasattr(self, "coef_"):
            return None
        last = np.atleast_2d(dense(self.coef_))
        if last.shape != (n_outputs, n_features):
            warn(
                f"warm_start=True, but the last fit had weights of the shape {last.shape}, and "
                f"this one has {(n_outputs, n_features)}: it begins anew.",
                UserWarning,
            )
            return None
        return last.T, np.broadcast_to(self.intercept_, n_outputs)


class SparsifiableWeights(LinearWeights):
    """Weights that may be stored as a sparse matrix."""

    def sparsify(self) -> Self:
        """Turn ``coef_`` into a CSR matrix: less memory where most weights are zero.

        Returns
        -------
        self
        """
        self.coef_ = sp.csr_matrix(self.coef_)
        return self

    def densify(self) -> Self:
        """Turn ``coef_`` into an array again.

        Returns
        -------
        self
        """
        self.coef_ = self.coef_.toarray() if sp.issparse(self.coef_) else self.coef_
        return self
