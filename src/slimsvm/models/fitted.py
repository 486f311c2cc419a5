"""What every fitted estimator holds, and what a model file must say of it."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from slimsvm.declarations import Attribute, attribute
from slimsvm.ending import Certificate, Status

Array = NDArray[Any]


class FittedModel:
    """Base of all models: how the fit ended, and what it was given.

    Attributes
    ----------
    intercept_
        Constants in the decision function.
    kernel_
        The kernel, with numbers for all its parameters.
    certificate_
        Objective, duality gap, and the violation that ``tol`` is about, at the end.
    status_
        Why the fit ended; ``str(status_)`` is a sentence.
    history_
        Seconds, objective, gap and more after every step of the solver.
    fit_status_
        0 if the tolerance was reached.
    n_iter_
        Steps of the solver.
    n_features_in_
        Number of features at fit.
    feature_names_in_
        Their names, if X had names.
    transformer_
        After a fit on rows that were transformed (:meth:`slimsvm.sources.OpenedRows.transformed`):
        what is applied to new rows first.
    """

    fitted: ClassVar[tuple[Attribute, ...]] = (
        attribute("certificate_", "certificate", optional=True),
        attribute("status_", "status", optional=True),
        attribute("history_", "history", optional=True),
        attribute("fit_status_", "count"),
        attribute("n_iter_", "counts", optional=True),
        attribute("n_features_in_", "count"),
        attribute("feature_names_in_", "labels", ("n_features_in",), optional=True),
        attribute("transformer_", "transformer", optional=True),
    )
    n_features_in_: int
    certificate_: Certificate
    status_: Status
    history_: dict[str, Array]
    fit_status_: int

    # -- what a model file must know --------------------------------------------------------------

    @classmethod
    def _n_outputs(cls, a: dict[str, Any]) -> int:
        """Columns of the decision values before classes are chosen, from fitted attributes."""
        return 1

    @staticmethod
    def _width(a: dict[str, Any]) -> int:
        """Number of features that the model itself sees, after what transforms them."""
        given = int(a["n_features_in_"])
        if "transformer_" not in a:
            return given
        return int(a["transformer_"].transform(np.zeros((1, given))).shape[1])

    @classmethod
    def _sizes(cls, a: dict[str, Any]) -> dict[str, int]:
        """Sizes that shapes of fitted attributes refer to, as far as others decide on them."""
        width, given = cls._width(a), int(a["n_features_in_"])
        sizes = {"n_features": width, "n_features_in": given, "n_outputs": cls._n_outputs(a)}
        return {**sizes, "n_classes": len(a["classes_"])} if "classes_" in a else sizes

    @classmethod
    def _check_fitted(cls, a: dict[str, Any]) -> None:
        """Raise ValueError where attributes break a rule that types and shapes do not say."""
