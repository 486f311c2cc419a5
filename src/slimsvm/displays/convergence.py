"""How a fit came to its end."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from slimsvm.displays.axes import QUIET, STRONG, Drawing, demand_fitted, last_step

Array = NDArray[Any]
MOST_CURVES = 8  # of problems (pairs of classes); those with the most steps


class ConvergenceDisplay(Drawing):
    """Duality gap (or violation) and objective against seconds.

    Parameters
    ----------
    history : mapping of str to array
        As ``history_``: "seconds", "objective", and "gap" or "violation" where the solver knows
        it; "problem" where several problems were solved.
    tol : float, optional
        Drawn where the violation is shown.
    name : str, default=""
        Title.

    Attributes
    ----------
    ax_, figure_
        What was drawn last.
    objective_ax_
        The axes of the objective, at the right.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from slimsvm import SVC
    >>> from slimsvm.displays import ConvergenceDisplay
    >>> model = SVC().fit(*make_moons(3000, noise=0.3, random_state=0))
    >>> display = ConvergenceDisplay.from_estimator(model)
    >>> display.ax_.get_xlabel(), display.ax_.get_ylabel()
    ('seconds', 'duality gap')
    """

    def __init__(
        self, *, history: Mapping[str, Array], tol: float | None = None, name: str = ""
    ) -> None:
        self.history, self.tol, self.name = history, tol, name

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None, **line: Any) -> Self:
        """Draw the history of a fitted estimator.

        Parameters
        ----------
        estimator : estimator of slimsvm, or a Pipeline that ends with one
            Fitted.
        ax : matplotlib axes, optional
            Where to draw.
        **line
            Of matplotlib's plot.
        """
        model = last_step(estimator)
        history = demand_fitted(model, "history_", "files of other programs hold no history")
        tol = getattr(getattr(model, "certificate_", None), "tol", None)
        return cls(history=history, tol=tol, name=type(model).__name__).plot(ax=ax, **line)

    def _drawn(self, ax: Any, line: dict[str, Any]) -> None:
        measure = next((name for name in ("gap", "violation") if name in self.history), None)
        self.objective_ax_ = ax.twinx() if measure is not None else ax
        for chosen in self._problems():
            seconds = self.history["seconds"][chosen]
            about = {"marker": "." if seconds.size < 50 else "", **line}
            self.objective_ax_.plot(
                seconds, self.history["objective"][chosen], **{"color": QUIET, **about}
            )
            if measure is not None:
                ax.plot(seconds, self.history[measure][chosen], **{"color": STRONG, **about})
        self.objective_ax_.set_ylabel("objective", color=QUIET)
        if measure is not None:
            ax.set_ylabel({"gap": "duality gap", "violation": "violation"}[measure])
            positive = self.history[measure][np.isfinite(self.history[measure])]
            if np.any(positive > 0.0):
                ax.set_yscale("log")
            if measure == "violation" and self.tol:
                ax.axhline(self.tol, color=QUIET, linestyle="--")
        ax.set(xlabel="seconds", title=self.name)

    def _problems(self) -> list[Array]:
        """Which entries of the history belong to each problem, the longest problems first."""
        problem = self.history.get("problem")
        if problem is None:
            return [np.ones(self.history["seconds"].size, bool)]
        numbers, counts = np.unique(problem, return_counts=True)
        longest = numbers[np.argsort(-counts, kind="stable")][:MOST_CURVES]
        return [problem == number for number in np.sort(longest)]
