"""From decision values to labels, numbers and scores."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, RegressorMixin

from slimsvm.declarations import Attribute, attribute, of_new_rows
from slimsvm.rows import is_far
from slimsvm.training import MatrixLike

Array = NDArray[Any]


def over_rows(model: Any, name: str, X: Any) -> Any:
    """A method of new rows that are not in memory."""
    from slimsvm.far import predictions

    return predictions.over_rows(model, name, X)


def score_on_rows(model: Any, X: Any, y: Any, sample_weight: Any) -> float:
    """A score of rows that are not in memory."""
    from slimsvm.far import predictions

    return predictions.score_on_rows(model, X, y, sample_weight)


class Scored:
    """The score of a classifier or regressor, also on rows that are not in memory."""

    def score(self, X: MatrixLike, y: Any = None, sample_weight: Any = None) -> float:
        """The share of rows whose label is predicted; of numbers R^2, how much is explained.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)
            Rows; or rows that are not in memory, as in ``fit``: what is counted or summed is made
            where they are.
        y : array of shape (n_samples,)
            Their labels, or targets.
        sample_weight : array of shape (n_samples,), optional
            How much each row counts.

        Returns
        -------
        float
        """
        if is_far(X):
            return score_on_rows(self, X, y, sample_weight)
        of_sklearn: Any = super()
        return float(of_sklearn.score(X, y, sample_weight))


class ClassPredictions(Scored, ClassifierMixin):
    """``scheme`` says how the outputs of a fitted estimator decide between its classes.

    Attributes
    ----------
    classes_
        The labels, sorted.
    """

    fitted: ClassVar[tuple[Attribute, ...]] = (attribute("classes_", "labels", ("n_classes",)),)

    scheme: ClassVar[Any]  # OneVsOne, OneVsRest or Joint: an estimator says which
    classes_: Array
    _outputs: Callable[[Any], Array]  # of new rows: decision values, shape (n, outputs)
    # of those that have no such parameter
    decision_function_shape = "ovr"
    break_ties = True

    def _scheme(self) -> Any:
        """How the classes share the outputs."""
        return self.scheme(len(self.classes_))

    @of_new_rows(
        "array of shape (n_samples,) for two classes, else (n_samples, n_classes)",
        "    With decision_function_shape='ovo', where there is such a parameter, one a pair.",
    )
    def decision_function(self, X: MatrixLike) -> Array:
        """Decision values."""
        if is_far(X):
            return over_rows(self, "decision_function", X)
        outputs = self._outputs(X)
        return self._scheme().decision(outputs, self.decision_function_shape)

    @of_new_rows()
    def predict(self, X: MatrixLike) -> Array:
        """Labels of new rows."""
        if is_far(X):
            return over_rows(self, "predict", X)
        shape, ties = self.decision_function_shape, bool(self.break_ties)
        if ties and shape == "ovo" and len(getattr(self, "classes_", ())) > 2:
            raise ValueError("break_ties must be False when decision_function_shape is 'ovo'")
        return self._predicted(self._outputs(X))

    def _predicted(self, outputs: Array) -> Array:
        """Labels from decision values."""
        shape, ties = self.decision_function_shape, bool(self.break_ties)
        return np.asarray(self.classes_[self._scheme().chosen(outputs, shape, ties)])


class NumberPredictions(Scored, RegressorMixin):
    """The output of a fitted estimator is its prediction."""

    @of_new_rows()
    def predict(self, X: MatrixLike) -> Array:
        """Targets of new rows."""
        if is_far(X):
            return over_rows(self, "predict", X)
        return self._predicted(self._outputs(X))

    def _predicted(self, outputs: Array) -> Array:
        """Targets from decision values."""
        return outputs[:, 0]

    def _outputs(self, X: Any) -> Array:
        raise NotImplementedError
