"""The parts of a page: text, facts, tables, charts, comparisons, confusion matrices and pictures.

Each part knows how to write itself as HTML. What a script must draw (charts, and the answers to the
slider) is left as an empty figure, and its numbers are put into the data of the page. Whatever
comes from outside (names of classes, files, methods) passes through ``escape``.
"""

from __future__ import annotations

import base64
import struct
import zlib
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
    """What the script of the page gets: charts and comparisons, with the keys of their elements."""

    charts: list[dict[str, Any]] = field(default_factory=list)
    comparisons: list[dict[str, Any]] = field(default_factory=list)
    n_keys: int = 0

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
        return _figure(key, self.caption)


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
        Whether its score can be compared with the others'; if not, it is drawn hollow, and never
        the model to take.
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
    """Models for one task: score against vectors and seconds, and the table.

    It also says which model to take for a loss that the reader chooses.
    """

    name: str
    models: Sequence[Model]
    measure: str = "test accuracy, %"
    unit: str = "%"
    # marker and colour of each method, the same in all comparisons of a page
    styles: dict[str, int] = field(default_factory=dict)

    def html(self, data: Data) -> str:
        """The part as HTML."""
        key = data.key("set")
        charts = []
        figures = []
        for name, label in (("vectors", "vectors"), ("seconds", "seconds of training")):
            if (
                len(
                    {getattr(model, name) for model in self.models if model.score is not None}
                    - {None}
                )
                > 1
            ):
                charts.append({"key": data.key("chart"), "x": name, "label": label})
                figures.append(
                    _figure(charts[-1]["key"], f"{self.name}: {self.measure}, against {label}")
                )
        methods = list(dict.fromkeys(model.method for model in self.models))
        styles = {**{method: at for at, method in enumerate(methods)}, **self.styles}
        least = min((model.score for model in self.models if model.score is not None), default=0.0)
        data.comparisons.append(
            {
                "key": key,
                "name": self.name,
                "measure": self.measure,
                "unit": self.unit,
                # of R^2, which may be below zero, a logarithm shows nothing
                "scale": "error" if least >= 0 else "linear",
                "charts": charts,
                "methods": [{"name": method, "style": styles[method]} for method in methods],
                "models": [vars(model) for model in self.models],
            }
        )
        drawn = f'<div class="charts">{"".join(figures)}</div>'
        return (
            f'<div id="{key}"><p class="take" '
            f'aria-live="polite"></p>{drawn}{self._table().html(data)}</div>'
        )

    def _table(self) -> Table:
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
                classes = f"right g{shade}" if i == j else f"b{shade}"
                cells.append(f'<td class="{classes}">{int(self.counts[i, j]):,}</td>')
            rows.append(f'<tr><th scope="row">{escape(label)}</th>{"".join(cells)}</tr>')
        caption = "Rows: the class of the data. Columns: what the model says."
        return (
            '<div class="scroll" tabindex="0" role="group" aria-label="Confusion matrix">'
            f'<table class="matrix"><caption>{caption}</caption>'
            f"<thead><tr><td></td>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table></div>"
        )


@dataclass(frozen=True)
class Pictures:
    """Rows as grey pictures, each from its smallest value (black) to its largest (white)."""

    rows: Array
    shape: tuple[int, int]
    captions: Sequence[str]

    def html(self, data: Data) -> str:
        """The part as HTML."""
        items = []
        for row, caption in zip(self.rows, self.captions, strict=True):
            image = base64.b64encode(
                grey_png(np.asarray(row, np.float64).reshape(self.shape))
            ).decode("ascii")
            items.append(
                f'<li><img src="data:image/png;base64,{image}" alt="" '
                f"/><span>{escape(caption)}</span></li>"
            )
        return f'<ul class="pictures">{"".join(items)}</ul>'


def grey_png(values: Array) -> bytes:
    r"""A matrix as a grey PNG of 8 bits, from its smallest value (black) to its largest (white).

    Examples
    --------
    >>> import numpy as np
    >>> from slimsvm.report.parts import grey_png
    >>> grey_png(np.eye(8))[:8]
    b'\x89PNG\r\n\x1a\n'
    """
    low, high = float(values.min()), float(values.max())
    pixels = (
        np.zeros(values.shape, np.uint8)
        if high == low
        else np.rint(255 * ((values - low) / (high - low))).astype(np.uint8)
    )
    height, width = pixels.shape
    # the first byte of a line names its filter: none
    lines = np.hstack([np.zeros((height, 1), np.uint8), pixels])

    def chunk(kind: bytes, content: bytes) -> bytes:
        return (
            struct.pack(">I", len(content))
            + kind
            + content
            + struct.pack(">I", zlib.crc32(kind + content))
        )

    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + chunk(b"IDAT", zlib.compress(lines.tobytes(), 9))
        + chunk(b"IEND", b"")
    )


def shown(value: Any) -> str:
    """A value as tables show it.

    Examples
    --------
    >>> from slimsvm.report.parts import shown
    >>> shown(12345), shown(0.123456789), shown(None), shown(True), shown("a"), shown(float("nan"))
    ('12,345', '0.12346', '', 'yes', 'a', '')
    """
    if value is None or (isinstance(value, float) and not np.isfinite(value)):
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int) or (
        isinstance(value, float) and value.is_integer() and abs(value) < 1e9
    ):
        return f"{int(value):,}"
    return f"{value:.5g}" if isinstance(value, float) else str(value)


def _cell(value: Any, number: bool) -> str:
    if not number:
        return f"<td>{escape(shown(value))}</td>"
    exact = repr(value) if shown(value) else ""
    return f'<td class="number" data-value="{escape(exact)}">{escape(shown(value))}</td>'


def _figure(key: str, caption: str) -> str:
    """A place for a chart; the script finds it by its key."""
    words = escape(caption)
    return (
        f'<figure data-chart="{key}"><figcaption>{words}</figcaption><svg class="chart" '
        f'role="img" tabindex="0" aria-label="{words}. The arrow keys go from point to '
        'point."></svg><output class="readout" aria-live="polite"></output><ul class="legend" '
        'aria-label="Shown in the chart"></ul></figure>'
    )


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _drawable(value: float, axis: Axis) -> bool:
    return bool(np.isfinite(value)) and (axis.scale != "log" or value > 0)
