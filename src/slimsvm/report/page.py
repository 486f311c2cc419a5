"""One HTML page made of parts: one file, without network, safe whatever the names in it are.

Style and script are written into the page, and a policy in its head lets the browser run these and
nothing else: both are named by their SHA-256, and no address may be loaded. The numbers for the
script are JSON in an element that is not run; ``<``, ``>`` and ``&`` are escaped there, so that no
text can end the element.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape
from importlib.resources import files
from typing import Any

from slimsvm import __version__
from slimsvm.report.comparison import Comparison, chooser, control
from slimsvm.report.parts import Data, Part
from slimsvm.report.words import plain


@dataclass
class Page:
    """A page of sections, each with a title and parts.

    Parameters
    ----------
    title : str
        Of the page.
    lead : str
        A sentence or two below the title.
    top : sequence of parts
        What comes before the first section.
    sets : sequence of Comparison
        Sets of models to choose from, whose panels are in the sections: a bar for that choice, and
        for the accuracy that may be lost, stays at the top of the window.

    Examples
    --------
    >>> from slimsvm.report import Page, Table, Text
    >>> page = Page("Models", "Two of them.")
    >>> table = Table(["model", "vectors"], [["a", 10], ["b <b>", 500]], "Sizes")
    >>> page.section("Sizes", Text("Smaller is quicker."), table)
    >>> html = page.html()
    >>> html.startswith("<!DOCTYPE html>"), "b &lt;b&gt;" in html, "//" in html.split("<script>")[0]
    (True, True, False)
    """

    title: str
    lead: str = ""
    top: Sequence[Part] = ()
    sets: Sequence[Comparison] = ()
    sections: list[tuple[str, tuple[Part, ...]]] = field(default_factory=list)

    def section(self, title: str, *parts: Part) -> None:
        """Add a section at the end; one without parts is left out."""
        if parts:
            self.sections.append((title, parts))

    def html(self) -> str:
        """The whole page."""
        data = Data()
        bar = ""
        if self.sets:
            inside = f"{chooser(self.sets, data)}{control(data)}"
            bar = f'<div class="bar" role="region" aria-label="What to compare">{inside}</div>'
        head = "".join(part.html(data) for part in self.top)
        body = []
        for at, (title, parts) in enumerate(self.sections):
            inside = "".join(part.html(data) for part in parts)
            body.append(
                f'<section aria-labelledby="s-{at}"><h2 id="s-{at}">{escape(title)}</h2>'
                f"{inside}</section>"
            )
        style, script, trying = map(_text, ("page.css", "page.js", "try.js"))
        # the model, and below it in the same module what asks it
        module = f"{data.module}\n{trying}" if data.module else ""
        scripts = [script, module] if module else [script]
        run = " ".join(f"'{_digest(text)}'" for text in scripts)
        policy = (
            f"default-src 'none'; img-src data:; style-src '{_digest(style)}'; script-src {run}; "
            "base-uri 'none'; form-action 'none'"
        )
        numbers = safe_json(
            {"charts": data.charts, "comparisons": data.comparisons, "trying": data.trying}
        )
        return "\n".join(
            [
                "<!DOCTYPE html>",
                '<html lang="en"><head><meta charset="utf-8" />',
                f'<meta http-equiv="Content-Security-Policy" content="{policy}" />',
                '<meta name="viewport" content="width=device-width, initial-scale=1" />',
                f'<meta name="generator" content="slimsvm {escape(__version__)}" />',
                f"<title>{escape(self.title)}</title><style>{style}</style></head><body>",
                f"<header><h1>{escape(self.title)}</h1>"
                + (f"<p>{escape(self.lead)}</p>" if self.lead else "")
                + f"{head}</header>",
                "<noscript><p>Charts and sliders need JavaScript; all numbers are in the "
                "tables.</p></noscript>",
                self._contents() if len(self.sections) > 2 else "",
                bar,
                f"<main>{''.join(body)}</main>",
                f'<footer><p class="quiet">Written by slimsvm {escape(__version__)}.</p></footer>',
                f'<script type="application/json" id="data">{numbers}</script>',
                f"<script>{script}</script>",
                f'<script type="module">{module}</script>' if module else "",
                "</body></html>",
                "",
            ]
        )

    def _contents(self) -> str:
        links = [
            f'<li><a href="#s-{at}">{escape(title)}</a></li>'
            for at, (title, _) in enumerate(self.sections)
        ]
        return f'<nav aria-label="Sections"><ul>{"".join(links)}</ul></nav>'


def safe_json(value: Any) -> str:
    r"""JSON that may stand inside a script element, whatever the texts in it.

    NaN and infinity become null.

    Examples
    --------
    >>> from slimsvm.report.page import safe_json
    >>> print(safe_json({"class": "</script>", "gap": float("nan")}))
    {"class":"\u003c/script\u003e","gap":null}
    """
    # ASCII: line separators are escaped, too
    text = json.dumps(plain(value), separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _text(name: str) -> str:
    return files("slimsvm.report").joinpath(name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    """How the policy of the page names a text that it trusts."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode("ascii")
