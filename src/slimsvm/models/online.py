"""Support vectors that came one by one; with a budget, a sparse model in their place."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from slimsvm.declarations import Attribute, attribute, demand
from slimsvm.expansion import Expansion
from slimsvm.models.streams import KeptStream
from slimsvm.models.support import KernelModel, SupportVectors
from slimsvm.multiclass import OneVsRest
from slimsvm.stream import check_stream

Array = NDArray[Any]
# what only a model of support vectors has
OF_ROWS = ("support_", "support_vectors_", "n_support_", "dual_coef_", "shape_fit_")


class OnlineModel(KeptStream, SupportVectors):
    """The expansion, or ``sparse_``.

    Attributes
    ----------
    n_seen_
        Rows that ``partial_fit`` has seen; ``support_`` counts them from zero.
    sparse_
        With max_support, the model (see there); then there are no support vectors.
    """

    fitted: ClassVar[tuple[Attribute, ...]] = (
        *KeptStream.fitted,
        attribute("sparse_", "sparse", optional=True),
        *(replace(own, optional=True) for own in SupportVectors.fitted if own.name in OF_ROWS),
    )
    _learned = "classes_"
    sparse_: Any
    classes_: Array

    def _be(self, model: Any) -> None:
        """Say what the sparse model says."""
        self.sparse_, self.classes_, self.class_weight_ = model, model.classes_, model.class_weight_
        self.kernel_, self.intercept_ = model.kernel_, model.intercept_
        self.n_iter_ = np.array([model.n_iter_])
        self.certificate_, self.status_ = model.certificate_, model.status_
        self.history_, self.fit_status_ = model.history_, model.fit_status_

    def _forget_stream(self) -> None:
        super()._forget_stream()
        self.__dict__.pop("sparse_", None)

    def _function(self) -> Expansion:
        model = self.__dict__.get("sparse_")
        return super()._function() if model is None else model._function()

    def _new_rows(self, X: Any) -> Any:
        sparse = "sparse_" in self.__dict__
        return KernelModel._new_rows(self, X) if sparse else super()._new_rows(X)

    def _scheme(self) -> Any:
        sparse = "sparse_" in self.__dict__
        return OneVsRest(len(self.classes_)) if sparse else super()._scheme()  # type: ignore[misc]

    @classmethod
    def _n_outputs(cls, a: dict[str, Any]) -> int:
        if "sparse_" in a:
            return OneVsRest(len(a["classes_"])).n_outputs
        return int(super()._n_outputs(a))

    @classmethod
    def _check_fitted(cls, a: dict[str, Any]) -> None:
        if "sparse_" in a:
            model = a["sparse_"]
            right = model.n_features_in_ == a["n_features_in_"]
            right = right and np.array_equal(model.classes_, a["classes_"])
            demand(right, "sparse_ has other features or classes")
            return
        missing = [name for name in OF_ROWS if name not in a]
        demand(not missing, f"the fitted attribute {min(missing, default='')!r} is missing")
        super()._check_fitted(a)
        if "stream_" in a:
            check_stream(a["stream_"], a["n_features_in_"], cls._n_outputs(a))
