"""What all displays share: matplotlib, and the axes they draw on."""

from __future__ import annotations

from typing import Any, Self

QUIET, STRONG = "0.6", "C0"  # colours: of what is there for comparison, and of what matters


class Display:
    """Base of all displays: what was drawn last."""

    ax_: Any
    figure_: Any

    def _axes(self, ax: Any) -> Any:
        """The axes given, or new ones; a clear error where matplotlib is missing."""
        try:
            import matplotlib.pyplot as plt
        except ImportError as missing:
            raise ImportError(
                f"{type(self).__name__}.plot needs matplotlib: pip install 'slimsvm[plot]'."
            ) from missing
        if ax is None:
            _, ax = plt.subplots(layout="constrained")
        self.ax_, self.figure_ = ax, ax.figure
        return ax


class Drawing(Display):
    """Base of those that are one drawing."""

    def plot(self, *, ax: Any = None, **line: Any) -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Where to draw.
        **line
            Of matplotlib's plot; of a heat map, of its imshow.
        """
        self._drawn(self._axes(ax), line)
        return self

    def _drawn(self, ax: Any, line: dict[str, Any]) -> None:
        raise NotImplementedError


def last_step(estimator: Any) -> Any:
    """The estimator itself, or the last step of a Pipeline."""
    steps = getattr(estimator, "steps", None)
    return estimator if steps is None else steps[-1][1]


def demand_fitted(estimator: Any, name: str, what: str) -> Any:
    """The attribute, or an error that says which estimators have it."""
    from sklearn.utils.validation import check_is_fitted

    check_is_fitted(estimator)
    value = getattr(estimator, name, None)
    if value is None or len(value) == 0:
        raise ValueError(f"{type(estimator).__name__} has no {name} to show: {what}.")
    return value
