"""Weights of features."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from slimsvm.declarations import Attribute, attribute
from slimsvm.expansion import dense
from slimsvm.models.support import KernelModel

Array = NDArray[Any]


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
