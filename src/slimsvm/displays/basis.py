"""What the vectors of a model look like."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from slimsvm.displays.axes import Display, demand_fitted, last_step
from slimsvm.mapping import unmapped

Array = NDArray[Any]
# of a square that is taken for a picture unless image_shape says otherwise: fewer features are
# hardly one
LEAST_SIDE = 8
MOST_FEATURES = 12  # bars of a vector: those that vary most from vector to vector


class BasisDisplay(Display):
    """Vectors as pictures, or as bars of features with their names.

    Parameters
    ----------
    vectors : array of shape (n_vectors, n_features)
        What to show.
    titles : sequence of str
        One for each vector.
    image_shape : (int, int), optional
        Height and width, if rows are pictures.
    feature_names : sequence of str, optional
        Of the bars.

    Attributes
    ----------
    ax_, figure_
        What was drawn last.
    axes_ : list
        The small axes, one for each vector.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from slimsvm import SparseSVC
    >>> from slimsvm.displays import BasisDisplay
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> display = BasisDisplay.from_estimator(SparseSVC(6, random_state=0).fit(X, y))
    >>> len(display.axes_), str(display.feature_names[0])
    (6, 'sepal length (cm)')
    """

    def __init__(
        self,
        *,
        vectors: Array,
        titles: Sequence[str],
        image_shape: tuple[int, int] | None = None,
        feature_names: Sequence[str] | None = None,
    ) -> None:
        self.vectors, self.titles = vectors, titles
        self.image_shape, self.feature_names = image_shape, feature_names

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        *,
        n_vectors: int = 20,
        image_shape: tuple[int, int] | None = None,
        feature_names: Sequence[str] | None = None,
        ax: Any = None,
    ) -> Self:
        """Draw the vectors with the largest coefficients of a fitted model.

        Parameters
        ----------
        estimator : estimator with basis or support vectors, or a Pipeline that ends with one
            Fitted. The vectors are shown as the model has them: after the other steps.
        n_vectors : int, default=20
            How many.
        image_shape : (int, int), optional
            Height and width, if rows are pictures. By default squares of 8 x 8 and more are taken
            for pictures.
        feature_names : sequence of str, optional
            By default those that the model was fitted with.
        ax : matplotlib axes, optional
            Where to draw: it is divided into small ones.
        """
        model = last_step(estimator)
        kind = "basis_" if hasattr(model, "basis_") else "support_vectors_"
        vectors = getattr(model, kind, None)
        if vectors is None or not hasattr(vectors, "shape"):
            demand_fitted(model, kind, "it has no vectors")
            raise ValueError(f"{kind} of {type(model).__name__} is no array of vectors.")
        coef = model.basis_coef_ if kind == "basis_" else model.dual_coef_.T
        coef = np.asarray(coef.todense() if hasattr(coef, "todense") else coef)
        coef = coef.reshape(vectors.shape[0], -1)
        largest = np.argsort(-np.abs(coef).max(axis=1), kind="stable")[:n_vectors]
        chosen = vectors[largest]
        chosen = np.asarray(chosen.todense() if hasattr(chosen, "todense") else chosen, float)
        chosen = unmapped(chosen, getattr(model, "metric_", None))
        shape = picture_shape(chosen.shape[1], image_shape)
        if feature_names is None:
            feature_names = getattr(
                model, "feature_names_in_", [f"x{j}" for j in range(chosen.shape[1])]
            )
        if len(feature_names) != chosen.shape[1]:
            raise ValueError(
                f"{len(feature_names)} feature names were given for {chosen.shape[1]} features."
            )
        titles = [_title(model, kind, coef[i]) for i in largest]
        made = cls(vectors=chosen, titles=titles, image_shape=shape, feature_names=feature_names)
        return made.plot(ax=ax)

    def plot(self, *, ax: Any = None) -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Where to draw: it is divided into small ones.
        """
        ax = self._axes(ax)
        ax.set_axis_off()
        n = len(self.vectors)
        n_columns = int(np.ceil(np.sqrt(n * (1.6 if self.image_shape else 0.6))))
        n_columns = min(max(n_columns, 1), n)
        n_rows = -(-n // n_columns)
        inner = ax.get_subplotspec()
        parts = (
            inner.subgridspec(n_rows, n_columns, hspace=0.5)
            if inner is not None
            else self.figure_.add_gridspec(n_rows, n_columns, hspace=0.5)
        )
        self.axes_: list[Any] = []
        bars = np.argsort(-self.vectors.std(axis=0), kind="stable")[:MOST_FEATURES]
        for i, vector in enumerate(self.vectors):
            small = self.figure_.add_subplot(parts[i // n_columns, i % n_columns])
            small.set_title(self.titles[i], fontsize="x-small")
            if self.image_shape is not None:
                small.imshow(vector.reshape(self.image_shape), cmap="gray_r")
                small.set_axis_off()
            else:
                names = [""] * bars.size
                if i % n_columns == 0 and self.feature_names is not None:
                    names = [str(self.feature_names[j]) for j in bars]
                small.barh(np.arange(bars.size), vector[bars])
                small.set_yticks(np.arange(bars.size), names, fontsize="x-small")
                small.axvline(0.0, color="0.6", linewidth=0.5)
                small.invert_yaxis()
            self.axes_.append(small)
        return self


def picture_shape(n_features: int, asked: tuple[int, int] | None = None) -> tuple[int, int] | None:
    """Height and width of the pictures that rows are, or None if they seem to be none.

    Examples
    --------
    >>> from slimsvm.displays.basis import picture_shape
    >>> picture_shape(784), picture_shape(123), picture_shape(6, (2, 3))
    ((28, 28), None, (2, 3))
    """
    if asked is not None:
        if asked[0] < 1 or asked[1] < 1 or asked[0] * asked[1] != n_features:
            raise ValueError(
                f"Pictures of {asked[0]} x {asked[1]} have {asked[0] * asked[1]} values, but the "
                f"model has {n_features} features."
            )
        return asked
    side = round(n_features**0.5)
    return (side, side) if side >= LEAST_SIDE and side * side == n_features else None


def _title(model: Any, kind: str, coef: Array) -> str:
    """Whose vector it is: the class that it speaks for most, or the coefficient."""
    classes = getattr(model, "classes_", None)
    if kind == "basis_" and classes is not None and coef.size == len(classes):
        return f"for {classes[int(np.argmax(coef))]}"
    return f"{coef[np.argmax(np.abs(coef))]:+.2g}"
