"""The parts of a page: text, large numbers, facts, tables, charts and confusion matrices.

Each part knows how to write itself as HTML. What a script must draw (charts, and the answers to the
slider) is left as an empty figure, and its numbers are put into the data of the page. Whatever
comes from outside (names of classes, files, methods) passes through ``escape``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

TALL = 15  # rows; longer tables scroll in a box of their own
SHADES = 4  # of a confusion matrix, besides none


@dataclass
class Data:
    """What the scripts of the page get.

    Attributes
    ----------
    charts : list
        With the keys of their elements.
    comparisons : list
        Sets of models to choose from, in the order of their places.
    trying : dict or None
        How the model of the page can be tried; ``module`` is that model in JavaScript.
    """

    charts: list[dict[str, Any]] = field(default_factory=list)
    comparisons: list[dict[str, Any]] = field(default_factory=list)
    trying: dict[str, Any] | None = None
    module: str = ""
    n_keys: int = 0
    n_sliders: int = 0
    places: dict[int, int] = field(default_factory=dict)  # of comparisons, by identity

    def key(self, kind: str) -> str:
        """A name that no other element of the page has."""
        self.n_keys += 1
        return f"{kind}-{self.n_keys}"


class Part(Protocol):
    """What a page is made of."""

    def html(self, data: Data) -> str:
        """The part as HTML; numbers for the script are added to the data."""


@dataclass(frozen=True)
class Text:
    """A paragraph."""

    text: str

    def html(self, data: Data) -> str:
        """The part as HTML."""
        return f"<p>{escape(self.text)}</p>"


@dataclass(frozen=True)
class Heading:
    """The title of what follows inside of a section."""

    text: str

    def html(self, data: Data) -> str:
        """The part as HTML."""
        return f"<h3>{escape(self.text)}</h3>"


@dataclass(frozen=True)
class Badge:
    """Two or three words in a frame: how something ended."""

    text: str
    good: bool = True

    def html(self, data: Data) -> str:
        """The part as HTML."""
        return f'<p class="badge {"good" if self.good else "poor"}">{escape(self.text)}</p>'


@dataclass(frozen=True)
class Tiles:
    """Large numbers, each with what it is and a line below that says how it was found."""

    items: Sequence[tuple[str, str, str]]

    def html(self, data: Data) -> str:
        """The part as HTML."""
        tiles = "".join(
            f"<li><b>{escape(value)}</b><span>{escape(name)}</span>"
            + (f"<small>{escape(note)}</small>" if note else "")
            + "</li>"
            for value, name, note in self.items
        )
        return f'<ul class="tiles">{tiles}</ul>'


@dataclass(frozen=True)
class Folded:
    """Parts that open when they are asked for."""

    summary: str
    parts: Sequence[Part]

    def html(self, data: Data) -> str:
        """The part as HTML."""
        inside = "".join(part.html(data) for part in self.parts)
        return f"<details><summary>{escape(self.summary)}</summary>{inside}</details>"


@dataclass(frozen=True)
class Facts:
    """Names and what is said of them; an empty name goes on with the one before."""

    pairs: Sequence[tuple[str, str]]

    def html(self, data: Data) -> str:
        """The part as HTML."""
        lines = [
            (f"<dt>{escape(name)}</dt>" if name else "") + f"<dd>{escape(text)}</dd>"
            for name, text in self.pairs
        ]
        return f"<dl>{''.join(lines)}</dl>"


@dataclass(frozen=True)
class Table:
    """Rows that can be sorted by any column.

    Attributes
    ----------
    columns : sequence of str
        Their names.
    rows : sequence of sequences
        Numbers, texts, or None where nothing is known.
    caption : str
        What the table shows.
    keys : sequence of int, optional
        For each row the place of its model in a comparison.
    """

    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]
    caption: str
    keys: Sequence[int] | None = None

    def html(self, data: Data) -> str:
        """The part as HTML."""
        numeric = [
            any(_is_number(row[at]) for row in self.rows)
            and all(row[at] is None or _is_number(row[at]) for row in self.rows)
            for at in range(len(self.columns))
        ]
        head = "".join(
            f'<th scope="col" class="{"number" if number else "text"}"><button '
            f'type="button">{escape(name)}</button></th>'
            for name, number in zip(self.columns, numeric, strict=True)
        )
        body = []
        for at, row in enumerate(self.rows):
            cells = [_cell(value, number) for value, number in zip(row, numeric, strict=True)]
            key = "" if self.keys is None else f' data-model="{self.keys[at]}"'
            body.append(f"<tr{key}>{''.join(cells)}</tr>")
        tall = " tall" * (len(self.rows) > TALL)
        return (
            f'<div class="scroll{tall}" tabindex="0" role="group" '
            f'aria-label="{escape(self.caption)}"><table class="sortable">'
            f"<caption>{escape(self.caption)}</caption><thead><tr>{head}</tr></thead>"
            f"<tbody>{''.join(body)}</tbody></table></div>"
        )


@dataclass(frozen=True)
class Axis:
    """What an axis shows, and its scale: "linear", "log", or "error" (logarithm of 100 - value)."""

    label: str
    scale: str = "linear"


@dataclass(frozen=True)
class Series:
    """Points of one thing in a chart; ``line=False`` leaves them unconnected."""

    name: str
    x: Sequence[float] | Array
    y: Sequence[float] | Array
    line: bool = True

    def points(self, x: Axis, y: Axis) -> list[dict[str, float]]:
        """Those that can be drawn: finite, and positive on an axis with a logarithm."""
        pairs = [(float(a), float(b)) for a, b in zip(self.x, self.y, strict=True)]
        return [{"x": a, "y": b} for a, b in pairs if _drawable(a, x) and _drawable(b, y)]


@dataclass(frozen=True)
class Chart:
    """Curves; the numbers of a point are shown when the pointer or the arrow keys are on it."""

    caption: str
    x: Axis
    y: Axis
    series: Sequence[Series]

    def html(self, data: Data) -> str:
        """The part as HTML."""
        key = data.key("chart")
        series = [
            {"name": one.name, "style": at, "line": one.line, "points": one.points(self.x, self.y)}
            for at, one in enumerate(self.series)
        ]
        axes = {
            "x": {"label": self.x.label, "scale": self.x.scale},
            "y": {"label": self.y.label, "scale": self.y.scale},
        }
        data.charts.append({"key": key, **axes, "series": series})
        return figure(self.caption, key)


@dataclass(frozen=True)
class Matrix:
    """A confusion matrix: rows are the true classes, columns the predicted ones.

    The darker a cell, the larger its share of the row.
    """

    labels: Sequence[str]
    counts: Array

    def html(self, data: Data) -> str:
        """The part as HTML."""
        totals = np.maximum(self.counts.sum(axis=1), 1)
        head = "".join(
            f'<th scope="col" class="number">{escape(label)}</th>' for label in self.labels
        )
        rows = []
        for i, label in enumerate(self.labels):
            cells = []
            for j in range(len(self.labels)):
                shade = int(np.ceil(SHADES * self.counts[i, j] / totals[i]))
                classes = f"right g{shade}" if i == j else f"b{shade}" if shade else "zero"
                cells.append(f'<td class="{classes}">{int(self.counts[i, j]):,}</td>')
            rows.append(f'<tr><th scope="row">{escape(label)}</th>{"".join(cells)}</tr>')
        caption = "Rows: the class of the data. Columns: what the model says."
        return (
            '<div class="scroll" tabindex="0" role="group" aria-label="Confusion matrix">'
            f'<table class="matrix"><caption>{caption}</caption>'
            f"<thead><tr><td></td>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table></div>"
        )


def shown(value: Any) -> str:
    """A value as tables show it.

    Examples
    --------
    >>> from slimsvm.report.parts import shown
    >>> shown(12345), shown(0.123456789), shown(None), shown(True), shown("a"), shown(float("nan"))
    ('12,345', '0.1235', '', 'yes', 'a', '')
    """
    if value is None or (isinstance(value, float) and not np.isfinite(value)):
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int) or (
        isinstance(value, float) and value.is_integer() and abs(value) < 1e9
    ):
        return f"{int(value):,}"
    if isinstance(value, float):
        return f"{value:,.0f}" if 1e4 <= abs(value) < 1e9 else f"{value:.4g}"
    return str(value)


def _cell(value: Any, number: bool) -> str:
    if not number:
        return f"<td>{escape(shown(value))}</td>"
    exact = repr(value) if shown(value) else ""
    return f'<td class="number" data-value="{escape(exact)}">{escape(shown(value))}</td>'


def figure(caption: str, key: str | None = None) -> str:
    """A place for a chart; the script finds it by its key, or by the panel around it."""
    words = escape(caption)
    named = "" if key is None else f' data-chart="{key}"'
    return (
        f'<figure{named}><figcaption>{words}</figcaption><svg class="chart" '
        f'role="img" tabindex="0" aria-label="{words}. The arrow keys go from point to '
        'point."></svg><output class="readout" aria-live="polite">Point at a mark, or use the '
        "arrow keys, for its numbers.</output></figure>"
    )


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _drawable(value: float, axis: Axis) -> bool:
    return bool(np.isfinite(value)) and (axis.scale != "log" or value > 0)
