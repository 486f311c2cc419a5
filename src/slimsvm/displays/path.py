"""How good a sparse model is at every size."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

from slimsvm.displays.axes import QUIET, STRONG, Drawing, demand_fitted, last_step


class PathDisplay(Drawing):
    """Score against the number of basis vectors, with the size of the model marked.

    Parameters
    ----------
    n_basis : sequence of int
        Sizes.
    scores : sequence of float
        Accuracy, or R^2, at each.
    chosen : int, optional
        Size of the model.
    exact : float, optional
        Score of the exact model, drawn as a line.
    name : str, default="accuracy"
        What the scores are.

    Attributes
    ----------
    ax_, figure_
        What was drawn last.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from slimsvm import SVC, SparseSVC
    >>> from slimsvm.displays import PathDisplay
    >>> X, y = load_digits(return_X_y=True)
    >>> sparse = SparseSVC(20, gamma=1e-3, random_state=0).fit(X[:500], y[:500])
    >>> exact = SVC(gamma=1e-3).fit(X[:500], y[:500])
    >>> display = PathDisplay.from_estimator(sparse, X[500:900], y[500:900], exact=exact)
    >>> display.chosen, display.ax_.get_xlabel()
    (20, 'basis vectors')
    """

    def __init__(
        self,
        *,
        n_basis: Sequence[int],
        scores: Sequence[float],
        chosen: int | None = None,
        exact: float | None = None,
        name: str = "accuracy",
    ) -> None:
        self.n_basis, self.scores, self.chosen = n_basis, scores, chosen
        self.exact, self.name = exact, name

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any = None,
        y: Any = None,
        *,
        exact: Any = None,
        ax: Any = None,
        **line: Any,
    ) -> Self:
        """Draw the path of a fitted model.

        Parameters
        ----------
        estimator : SparseSVC or SparseSVR, or a Pipeline that ends with one
            Fitted.
        X, y : array-likes, optional
            Rows to score every size on, and their labels or targets. Without them the scores are
            those of the rows held out in the fit (``validation_fraction``), or else of the
            training rows, and the label of the axis says so.
        exact : fitted estimator or float, optional
            An exact model, scored on the same rows, or its score.
        ax : matplotlib axes, optional
            Where to draw.
        **line
            Of matplotlib's plot.
        """
        model = last_step(estimator)
        what = "a path is found by SparseSVC and SparseSVR"
        path = demand_fitted(model, "path_", what)
        name = "accuracy" if hasattr(model, "classes_") else "R²"
        if (X is None) != (y is None):
            raise ValueError("X and y go together: one of them was given alone.")
        if X is not None:
            seen = X if model is estimator else estimator[:-1].transform(X)
            scores = [model.truncated(point.n_basis).score(seen, y) for point in path]
        elif all(point.validation_score is not None for point in path):
            scores = [point.validation_score for point in path]
            name += ", rows held out"
        else:
            scores = [point.training_score for point in path]
            name += ", training rows"
        if exact is not None and not isinstance(exact, int | float):
            if X is None:
                raise ValueError("Give X and y to score the exact model, or its score as a number.")
            exact = exact.score(X, y)
        sizes = [point.n_basis for point in path]
        made = cls(n_basis=sizes, scores=scores, chosen=model.n_basis_, exact=exact, name=name)
        return made.plot(ax=ax, **line)

    def _drawn(self, ax: Any, line: dict[str, Any]) -> None:
        ax.plot(self.n_basis, self.scores, **{"marker": "o", "color": STRONG, **line})
        if self.chosen in list(self.n_basis):
            at = list(self.n_basis).index(self.chosen)
            ax.annotate(
                f"{self.chosen} vectors: {self.scores[at]:.4g}",
                (self.chosen, self.scores[at]),
                xytext=(0, -18),
                textcoords="offset points",
                ha="right",
            )
        if self.exact is not None:
            ax.axhline(self.exact, color=QUIET, linestyle="--")
            ax.annotate(
                f"exact model: {self.exact:.4g}",
                (self.n_basis[0], self.exact),
                xytext=(0, -12),
                textcoords="offset points",
                color=QUIET,
            )
        if max(self.n_basis) > 4 * min(self.n_basis):
            ax.set_xscale("log")
            ax.set_xticks(self.n_basis, [f"{size:,}" for size in self.n_basis])
            ax.minorticks_off()
        ax.set(xlabel="basis vectors", ylabel=self.name)
