"""Models for one task, to choose from: score against vectors and seconds, one question a panel.

A page may have many sets of models (all benchmarks); then a panel of each set stands in each
section, and the script shows those of the set that the reader chose.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape

from slimsvm.report.parts import Data, Table, figure

QUESTION = "Accuracy I may lose"  # of several sets, whatever their measures are
FIRST_LOSS = 5  # place in the script's list of losses: half a percentage point
MOST_AT_FIRST = 5  # methods in a chart before others are switched on; with the answer's, six
VIEWS = {"vectors": "vectors", "seconds": "seconds of training"}
NO_ANSWER = '<p class="answer" aria-live="polite"></p>'


@dataclass(frozen=True)
class Model:
    """One of the models that a comparison compares.

    Attributes
    ----------
    method : str
        How it was made; models of one method are connected by a line.
    vectors : float or None
        How many vectors it has.
    score : float or None
        In percent.
    seconds : float or None
        Of its training.
    note : str
        Anything that must be known of it.
    counts : bool
        Whether it may be the model to take; if not, it is drawn hollow.
    part : bool
        Whether it came out of the fit of a larger one, whose seconds it has.
    """

    method: str
    vectors: float | None
    score: float | None
    seconds: float | None = None
    note: str = ""
    counts: bool = True
    part: bool = False


@dataclass(frozen=True)
class Comparison:
    """Models for one task; as a part of a page, all its panels and its table.

    Attributes
    ----------
    name : str
        Of the set of rows.
    models : sequence of Model
        In any order; models of one method are one series.
    measure, unit : str
        Of the scores.
    styles : dict
        Marker and colour of each method, the same in all comparisons of a page.
    first : sequence of str
        Methods that the charts show before others are switched on; by default those with the best
        scores.
    rows : bool
        Whether the series are one model on several sets of rows, not several methods.
    scored : str
        Of which of these the score at the chosen size is said, too: rows that did not choose it.
    """

    name: str
    models: Sequence[Model]
    measure: str = "test accuracy, %"
    unit: str = "%"
    styles: dict[str, int] = field(default_factory=dict)
    first: Sequence[str] = ()
    rows: bool = False
    scored: str = ""

    def question(self) -> str:
        """What the slider asks for."""
        return "R² I may lose" if self.measure.startswith("R²") else QUESTION

    def views(self) -> list[str]:
        """Against what its scores can be drawn."""
        return [
            view
            for view in VIEWS
            if len({getattr(m, view) for m in self.models if m.score is not None} - {None}) > 1
        ]

    def place(self, data: Data) -> int:
        """Its place in the data of the page, where it is added once."""
        if id(self) not in data.places:
            methods = list(dict.fromkeys(model.method for model in self.models))
            styles = {**{method: at for at, method in enumerate(methods)}, **self.styles}
            least = min((m.score for m in self.models if m.score is not None), default=0.0)
            data.places[id(self)] = len(data.comparisons)
            data.comparisons.append(
                {
                    "name": self.name,
                    "measure": self.measure,
                    "unit": self.unit,
                    # of R^2, which may be below zero, a logarithm shows nothing
                    "scale": "error" if least >= 0 else "linear",
                    "methods": [{"name": method, "style": styles[method]} for method in methods],
                    "first": list(self.first or self._best(methods)),
                    "rows": self.rows,
                    "scored": self.scored,
                    "models": [vars(model) for model in self.models],
                }
            )
        return data.places[id(self)]

    def html(self, data: Data) -> str:
        """The part as HTML."""
        return Panels("vectors", [self]).html(data) + (
            Panels("seconds", [self]).html(data) + Numbers([self]).html(data)
        )

    def _best(self, methods: Sequence[str]) -> list[str]:
        best = {
            method: max((m.score or 0.0 for m in self.models if m.method == method), default=0.0)
            for method in methods
        }
        return sorted(methods, key=lambda method: -best[method])[:MOST_AT_FIRST]

    def table(self) -> Table:
        """All its models; columns that say nothing are left out."""
        names = {
            "method": "method",
            "vectors": "vectors",
            "score": self.measure,
            "seconds": "seconds of training",
            "note": "note",
        }
        used = [
            name
            for name in names
            if any(getattr(model, name) not in (None, "") for model in self.models)
        ]
        rows = [[getattr(model, name) for name in used] for model in self.models]
        return Table(
            [names[name] for name in used],
            rows,
            f"{self.name}: all models",
            keys=range(len(self.models)),
        )


@dataclass(frozen=True)
class Panels:
    """Score against vectors or seconds, of every set of models that has them.

    Each has the answer for the loss that the reader chose, and switches for its methods.
    """

    view: str
    comparisons: Sequence[Comparison]

    def html(self, data: Data) -> str:
        """The part as HTML."""
        several, out = len(self.comparisons) > 1, []
        for one in self.comparisons:
            at, words = one.place(data), VIEWS[self.view]
            if self.view not in one.views():
                if several:
                    out.append(
                        f'<div data-set="{at}"><p>The {words} of the models of '
                        f"{escape(one.name)} were not measured, or there is one value "
                        "only.</p></div>"
                    )
                continue
            slider = "" if several or data.n_sliders else control(data, one.question())
            drawn = figure(f"{one.name}: {one.measure}, against {words}")
            out.append(
                f'<div data-set="{at}" data-view="{self.view}">{slider}{NO_ANSWER}'
                f'{drawn}<div class="methods"></div></div>'
            )
        return "".join(out)


@dataclass(frozen=True)
class Numbers:
    """The table of all models of every set, folded."""

    comparisons: Sequence[Comparison]

    def html(self, data: Data) -> str:
        """The part as HTML."""
        return "".join(
            f'<div data-set="{one.place(data)}"><details><summary>All {len(one.models):,} models'
            f" of {escape(one.name)} in numbers</summary>{one.table().html(data)}</details></div>"
            for one in self.comparisons
        )


@dataclass(frozen=True)
class Answers:
    """For every set the best score, the smallest model and the quickest: a table."""

    comparisons: Sequence[Comparison]

    def html(self, data: Data) -> str:
        """The part as HTML."""
        rows = "".join(
            f'<tr><th scope="row"><button type="button">{escape(one.name)}</button></th>'
            '<td class="number"></td><td></td><td></td></tr>'
            for one in self.comparisons
            if one.place(data) is not None
        )
        head = "".join(
            f'<th scope="col"{" class=number" if name == "best, %" else ""}>{name}</th>'
            for name in ("data set", "best, %", "fewest vectors", "quickest training")
        )
        return (
            '<div class="scroll" tabindex="0" role="group" aria-label="Which model to take">'
            f'<table id="answers"><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>'
        )


def control(data: Data, question: str = QUESTION) -> str:
    """The slider for the accuracy that may be lost; a page has one."""
    data.n_sliders += 1
    return (
        f'<div class="control loss"><label for="loss">{question}</label><input type="range" '
        f'id="loss" min="0" max="13" step="1" value="{FIRST_LOSS}" aria-describedby="loss-text" />'
        '<output id="loss-text" for="loss"></output></div>'
    )


def chooser(comparisons: Sequence[Comparison], data: Data) -> str:
    """The choice of a set."""
    options = "".join(
        f'<option value="{one.place(data)}">{escape(one.name)}</option>' for one in comparisons
    )
    return (
        f'<div class="control"><label for="set">Data set</label><select id="set">{options}'
        "</select></div>"
    )
