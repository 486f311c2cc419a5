"""Probabilities of classes from pairs of them, each with a sigmoid: ``probability=True``."""

from __future__ import annotations

from collections.abc import Callable
from functools import update_wrapper
from types import MethodType
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from slimsvm.declarations import Attribute, attribute
from slimsvm.ending import warn

Array = NDArray[Any]


class _WithProbability:
    """A method that is there with ``probability=True`` only; else the error says how to get it.

    ``available_if`` of scikit-learn would do, but for its words. Like it, this gives a method with
    its name, by which StackingClassifier and others call it.
    """

    def __init__(self, method: Callable[[Any, Any], Array]) -> None:
        self.method = method
        update_wrapper(self, method)  # type: ignore[arg-type]

    def __get__(self, instance: Any, owner: type) -> Callable[..., Array]:
        if instance is None:
            return self.method
        instance._check_probability()
        return MethodType(self.method, instance)


class PairProbabilities:
    """Platt's sigmoids on the outputs of pairs.

    Attributes
    ----------
    _probA, _probB
        The sigmoids, for each pair of classes.
    """

    fitted: ClassVar[tuple[Attribute, ...]] = (
        attribute("_probA", "float", ("n_sigmoids",), optional=True),
        attribute("_probB", "float", ("n_sigmoids",), optional=True),
    )
    probability: bool | str
    classes_: Array
    _probA: Array
    _probB: Array
    _outputs: Callable[[Any], Array]
    _libsvm_sign: float

    @property
    def _wants_probabilities(self) -> bool:
        return self.probability != "deprecated" and bool(self.probability)

    def _warn_of_probability(self) -> None:
        if self.probability != "deprecated":
            warn(
                "The `probability` parameter was deprecated in 1.9 and will be removed in version "
                "1.11. Use `CalibratedClassifierCV(SVC(), ensemble=False)` instead of "
                "`SVC(probability=True)`",
                FutureWarning,
            )

    def _check_probability(self) -> None:
        if not self._wants_probabilities:
            name = type(self).__name__
            raise AttributeError(
                f"This {name!r} has no attribute 'predict_proba', which is not available when "
                "probability=False. Two ways lead to it: "
                f"CalibratedClassifierCV({name}(), ensemble=False) of sklearn.calibration, or "
                f"{name}(probability=True), which scikit-learn has deprecated."
            )

    @_WithProbability
    def predict_proba(self, X: Any) -> Array:
        """Probabilities of the classes, shape (n_samples, n_classes).

        It is there with ``probability=True`` only. The classes are in the order of ``classes_``.
        The most probable class may differ from that of ``predict``.
        """
        from slimsvm.probability import coupled, of_pairs

        check_is_fitted(self)
        if not getattr(self, "_probA", np.empty(0)).size:
            raise NotFittedError(
                "predict_proba is not available when fitted with probability=False"
            )
        outputs = self._libsvm_sign * self._outputs(X)
        return coupled(of_pairs(outputs, self._probA, self._probB), len(self.classes_))

    @_WithProbability
    def predict_log_proba(self, X: Any) -> Array:
        """Logarithms of :meth:`predict_proba`."""
        return np.log(self.predict_proba(X))

    def _deprecated(self, name: str) -> Array:
        warn(
            f"Attribute `{name}` was deprecated in version 1.9 and will be removed in 1.11 as the "
            "`probability=True` option for SVC and NuSVC was deprecated and will be removed in "
            "1.11.",
            FutureWarning,
        )
        return np.asarray(getattr(self, f"_{name[:-1]}"))

    @property
    def probA_(self) -> Array:
        """A of the sigmoids 1 / (1 + exp(A f + B)), with f as LIBSVM has it. Deprecated."""
        return self._deprecated("probA_")

    @property
    def probB_(self) -> Array:
        """B of the sigmoids. Deprecated."""
        return self._deprecated("probB_")
