"""Trying a model in its page: sliders for features or a drawing, answered by its JavaScript."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from slimsvm.export.description import described
from slimsvm.export.javascript import source
from slimsvm.export.numbers import numbers_of
from slimsvm.notebook import size_in_words
from slimsvm.report.parts import Data, Part, Text

Array = NDArray[Any]

MOST_SLIDERS = 8
MOST_FEATURES = 2_000  # of a model that is tried with sliders: its typical row stands in the page
MOST_BYTES = 8 << 20  # of the model in the page
MOST_EXAMPLES = 12
MOST_ROWS = 5_000  # that say what a typical row is
STEPS = 5  # of each feature, to see which of them matter


@dataclass(frozen=True)
class Try:
    """Sliders or a drawing, and what the model says of them.

    Attributes
    ----------
    spec : dict
        For the script: kind, row to begin with, examples; features, or shape and values.
    module : str
        The model in JavaScript.
    """

    spec: dict[str, Any]
    module: str

    def html(self, data: Data) -> str:
        """The part as HTML."""
        data.trying, data.module = self.spec, self.module
        drawing = self.spec["kind"] == "drawing"
        given = _canvas(self.spec) if drawing else _sliders_html(self.spec)
        another = ""
        if self.spec["examples"]:
            another = f'<button type="button" class="another">{self.spec["another"]}</button>'
        reset = f'<button type="button" class="reset">{"Clear" if drawing else "Typical row"}'
        size = size_in_words(len(self.module))
        return (
            f'<div class="try"><div>{given}<div class="buttons">{another}{reset}</button></div>'
            '</div><div class="says"><p class="quiet">The model says</p>'
            '<output class="verdict" aria-live="polite"></output><ul class="bars"></ul>'
            f'<p class="quiet truth"></p><p class="quiet">Answered here, in <span class="clock">'
            f"</span>, by the model as JavaScript ({size}, slimsvm.to_javascript).</p></div></div>"
        )


def trying(
    estimator: Any, X: Any, y: Any, vectors: Array | None, shape: tuple[int, int] | None
) -> list[Part]:
    """The part, or a sentence where the model cannot be tried in a page.

    Rows of the data, or else the vectors of the model, say which values features have.
    """
    try:
        found = described(estimator)
        numbers = numbers_of(found, "float32")
    except (ValueError, TypeError, AttributeError) as refused:
        return [Text(f"This model cannot be tried in the page. {refused}")]
    if numbers.nbytes > MOST_BYTES or (shape is None and found.n_features > MOST_FEATURES):
        return [
            Text(
                "This model is too large to be tried in the page: it has "
                f"{found.n_features:,} features and {size_in_words(numbers.nbytes)} of numbers. "
                "slimsvm.compress makes smaller ones."
            )
        ]
    rows = _some(X if X is not None and X.shape[0] else vectors)
    if rows is None or rows.shape[1] != found.n_features:
        rows = np.array([[-3.0], [0.0], [3.0]]) * np.ones(found.n_features)
    spec = _drawing(rows, shape) if shape is not None else _sliders(estimator, rows)
    from_data = X is not None and X.shape[0] > 0
    spec["another"] = "Show a row of the data" if from_data else "Show a vector of the model"
    spec["examples"] = _examples(X if from_data else vectors, y, found.n_features)
    return [Try(spec, "".join(source(found, numbers)))]


def _sliders(estimator: Any, rows: Array) -> dict[str, Any]:
    typical = np.median(rows, axis=0)
    low, high = rows.min(axis=0), rows.max(axis=0)
    chosen = _influential(estimator, typical, low, high)
    names = getattr(estimator, "feature_names_in_", None)
    features = [
        {
            "index": int(i),
            "name": f"feature {i + 1}" if names is None else str(names[i]),
            "low": float(low[i]),
            "high": float(high[i]) if high[i] > low[i] else float(low[i]) + 1.0,
        }
        for i in chosen
    ]
    return {
        "kind": "sliders",
        "row": _rounded(typical),
        "features": features,
        "all": len(chosen) == typical.size,
    }


def _influential(estimator: Any, typical: Array, low: Array, high: Array) -> Array:
    """The features that change the answer most, from a typical row, in their own order."""
    n = typical.size
    if n <= MOST_SLIDERS:
        return np.arange(n)
    rows = np.repeat(typical[None], n * STEPS, axis=0)
    values = np.linspace(low, high, STEPS)
    for i in range(n):
        rows[i * STEPS : (i + 1) * STEPS, i] = values[:, i]
    outputs = getattr(estimator, "decision_function", estimator.predict)(rows)
    spread = np.ptp(np.asarray(outputs, np.float64).reshape(n, STEPS, -1), axis=1).max(axis=1)
    return np.sort(np.argsort(-spread, kind="stable")[:MOST_SLIDERS])


def _drawing(rows: Array, shape: tuple[int, int]) -> dict[str, Any]:
    low, high = float(np.quantile(rows, 0.001)), float(np.quantile(rows, 0.999))
    return {
        "kind": "drawing",
        "shape": list(shape),
        "low": low,
        "high": high if high > low else low + 1.0,
        "row": [low] * (shape[0] * shape[1]),
    }


def _examples(X: Any, y: Array | None, n_features: int) -> list[dict[str, Any]]:
    """Rows to begin with, of every class if there are few."""
    if X is None or X.shape[1] != n_features:
        return []
    order = np.random.default_rng(0).permutation(X.shape[0])
    if y is not None and len(y) == X.shape[0]:
        # one of each class, then a second one of each, and so on
        turn = np.empty(len(y), np.intp)
        for label in np.unique(y):
            at = np.flatnonzero(y[order] == label)
            turn[at] = np.arange(at.size)
        order = order[np.argsort(turn, kind="stable")]
    chosen = order[:MOST_EXAMPLES]
    rows = _dense(X[chosen])
    texts = [
        f"Row {at + 1:,} of the data" + ("." if y is None else f", whose label is {y[at]}.")
        for at in chosen
    ]
    return [{"row": _rounded(row), "text": text} for row, text in zip(rows, texts, strict=True)]


def _sliders_html(spec: dict[str, Any]) -> str:
    note = "A line above a slider: how the answer changes with that feature alone."
    if not spec["all"]:
        note += (
            f" These are the {len(spec['features'])} of {len(spec['row']):,} features that change "
            "it most; the others stay as in a typical row."
        )
    return "".join(map(_slider, spec["features"])) + f'<p class="quiet">{note}</p>'


def _slider(feature: dict[str, Any]) -> str:
    key, low, high = f"feature-{feature['index']}", feature["low"], feature["high"]
    name = escape(feature["name"])
    return (
        f'<div class="feature"><label for="{key}">{name}</label><output for="{key}"></output>'
        '<svg viewBox="0 0 100 28" preserveAspectRatio="none" aria-hidden="true">'
        '<line x1="0" y1="0" x2="0" y2="28" vector-effect="non-scaling-stroke"></line>'
        '<polyline points="" vector-effect="non-scaling-stroke"></polyline></svg>'
        f'<input type="range" id="{key}" min="{low!r}" max="{high!r}" step="any" /></div>'
    )


def _canvas(spec: dict[str, Any]) -> str:
    height, width = spec["shape"]
    words = (
        f"A drawing of {width} by {height} points. Draw with the pointer, or move with the arrow "
        "keys and paint with the space bar."
    )
    return (
        f'<canvas class="drawing" width="{width}" height="{height}" tabindex="0" '
        f'role="application" aria-label="{words}"></canvas>'
        '<p class="quiet">Draw here. Without a pointer: the arrow keys move, the space bar '
        "paints.</p>"
    )


def _some(rows: Any) -> Array | None:
    if rows is None or rows.shape[0] == 0:
        return None
    if rows.shape[0] > MOST_ROWS:
        rows = rows[np.linspace(0, rows.shape[0] - 1, MOST_ROWS).astype(np.intp)]
    found = _dense(rows)
    return found if found.dtype.kind == "f" else found.astype(np.float64)


def _dense(rows: Any) -> Array:
    return np.asarray(rows.toarray() if sp.issparse(rows) else rows)


def _rounded(row: Sequence[float] | Array) -> list[float]:
    """Five digits are enough to begin with, and take few bytes."""
    return [float(f"{value:.5g}") for value in np.asarray(row, np.float64)]
