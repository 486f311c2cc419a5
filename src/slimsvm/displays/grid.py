"""Which parameters a search found good."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from slimsvm.displays.axes import Drawing, demand_fitted

Array = NDArray[Any]
LARGEST_WITH_NUMBERS = 64  # cells


class GridDisplay(Drawing):
    """Mean score against two parameters of a search, as a heat map.

    Parameters
    ----------
    scores : array of shape (n_rows, n_columns)
        The best mean score over all other parameters; NaN where no point was tried.
    rows, columns : tuple of a name and a list of values
        The two parameters: down and across.
    name : str, default="mean score"
        Of the scores.

    Attributes
    ----------
    ax_, figure_
        What was drawn last.
    image_
        The heat map.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import scale
    >>> from slimsvm import SVC, GridSearchCV
    >>> from slimsvm.displays import GridDisplay
    >>> X, y = load_wine(return_X_y=True)
    >>> grid = {"C": [0.1, 1, 10], "gamma": [0.01, 0.1]}
    >>> search = GridSearchCV(SVC(), grid).fit(scale(X), y)
    >>> display = GridDisplay.from_search(search)
    >>> display.scores.shape, display.rows[0], display.columns[0]
    ((3, 2), 'C', 'gamma')
    """

    def __init__(
        self,
        *,
        scores: Array,
        rows: tuple[str, list[Any]],
        columns: tuple[str, list[Any]],
        name: str = "mean score",
    ) -> None:
        self.scores, self.rows, self.columns, self.name = scores, rows, columns, name

    @classmethod
    def from_search(
        cls,
        search: Any,
        *,
        rows: str | None = None,
        columns: str | None = None,
        metric: str = "score",
        ax: Any = None,
        **image: Any,
    ) -> Self:
        """Draw what a search found.

        Parameters
        ----------
        search : GridSearchCV, RandomizedSearchCV, SVCCV or any search with ``cv_results_``
            Fitted.
        rows, columns : str, optional
            The two parameters; the name after the last ``__`` is enough. By default C and gamma,
            or else the first two that were varied.
        metric : str, default="score"
            Which of several metrics, as in ``mean_test_<metric>``.
        ax : matplotlib axes, optional
            Where to draw.
        **image
            Of matplotlib's imshow.
        """
        results = demand_fitted(search, "cv_results_", "a search has it")
        key = f"mean_test_{metric}"
        if key not in results:
            known = [name[10:] for name in results if name.startswith("mean_test_")]
            raise ValueError(f"metric={metric!r} was not measured; there are {known}.")
        names = _two_parameters(results, rows, columns)
        values = [_distinct(results[f"param_{name}"]) for name in names]
        scores = np.full((len(values[0]), len(values[1])), np.nan)
        for i, score in enumerate(results[key]):
            at = tuple(
                values[axis].index(results[f"param_{name}"][i]) for axis, name in enumerate(names)
            )
            scores[at] = np.fmax(scores[at], score)
        shown = [name.rpartition("__")[2] for name in names]
        made = cls(scores=scores, rows=(shown[0], values[0]), columns=(shown[1], values[1]))
        return made.plot(ax=ax, **image)

    def _drawn(self, ax: Any, image: dict[str, Any]) -> None:
        about = {"origin": "lower", "aspect": "auto", "cmap": "viridis", **image}
        self.image_ = ax.imshow(self.scores, **about)
        self.figure_.colorbar(self.image_, ax=ax, label=self.name)
        ax.set(xlabel=self.columns[0], ylabel=self.rows[0])
        ax.set_xticks(range(len(self.columns[1])), [_short(v) for v in self.columns[1]])
        ax.set_yticks(range(len(self.rows[1])), [_short(v) for v in self.rows[1]])
        if np.all(np.isnan(self.scores)):
            return
        best = np.unravel_index(np.nanargmax(self.scores), self.scores.shape)
        if self.scores.size <= LARGEST_WITH_NUMBERS:
            middle = np.nanmean([np.nanmin(self.scores), np.nanmax(self.scores)])
            for (i, j), score in np.ndenumerate(self.scores):
                if np.isfinite(score):
                    weight = "bold" if (i, j) == best else "normal"
                    colour = "white" if score < middle else "black"
                    ax.text(
                        j, i, f"{score:.3f}", ha="center", va="center", color=colour, weight=weight
                    )
        else:
            ax.plot(best[1], best[0], marker="o", color="white", markeredgecolor="black")


def _two_parameters(
    results: Mapping[str, Any], rows: str | None, columns: str | None
) -> tuple[str, str]:
    """The full names of the two parameters to show."""
    searched = [name[6:] for name in results if name.startswith("param_")]
    varied = [name for name in searched if len(_distinct(results[f"param_{name}"])) > 1]

    def full(name: str) -> str:
        found = [one for one in searched if one == name or one.rpartition("__")[2] == name]
        if len(found) != 1:
            raise ValueError(f"{name!r} is not one of the parameters searched: {searched}.")
        return found[0]

    chosen = [None if name is None else full(name) for name in (rows, columns)]
    usual = sorted(varied, key=lambda n: {"C": 0, "gamma": 1}.get(n.rpartition("__")[2], 2))
    left = iter(name for name in dict.fromkeys([*usual, *searched]) if name not in chosen)
    filled = []
    for name in chosen:
        name = name or next(left, None)
        if name is None:
            raise ValueError(
                f"A heat map needs two parameters, and the search had {searched or 'none'}."
            )
        filled.append(name)
    return filled[0], filled[1]


def _distinct(values: Any) -> list[Any]:
    """The values that occur, in order where they have one."""
    found: list[Any] = []
    present: list[Any] = np.ma.asarray(values, dtype=object).compressed().tolist()
    for value in present:
        if value not in found:
            found.append(value)
    try:
        return sorted(found)
    except TypeError:
        return found


def _short(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, int | float | np.number) else str(value)
