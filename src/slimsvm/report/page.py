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
from slimsvm.report.parts import Comparison, Data, Part
from slimsvm.report.words import plain

QUESTION = "What accuracy may I lose?"
FEW_SECTIONS = 8  # whose list is unfolded
FIRST_LOSS = 5  # place in the script's list of losses: half a percentage point


@dataclass
class Page:
    """A page of sections, each with a title and parts.

    Parameters
    ----------
    title : str
        Of the page.
    lead : str
        A sentence or two below the title.

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
    sections: list[tuple[str, tuple[Part, ...]]] = field(default_factory=list)

    def section(self, title: str, *parts: Part) -> None:
        """Add a section at the end; one without parts is left out."""
        if parts:
            self.sections.append((title, parts))

    def html(self) -> str:
        """The whole page."""
        data = Data()
        names = [
            part.name
            for _, parts in self.sections
            for part in parts
            if isinstance(part, Comparison)
        ]
        body = []
        for at, (title, parts) in enumerate(self.sections):
            body.append(f'<section aria-labelledby="s-{at}"><h2 id="s-{at}">{escape(title)}</h2>')
            body += [part.html(data) for part in parts]
            body.append("</section>")
        style, script = (
            files("slimsvm.report").joinpath(name).read_text(encoding="utf-8")
            for name in ("page.css", "page.js")
        )
        trusted = f"style-src '{_digest(style)}'; script-src '{_digest(script)}'"
        policy = (
            f"default-src 'none'; img-src data:; {trusted}; base-uri 'none'; form-action 'none'"
        )
        numbers = safe_json({"charts": data.charts, "comparisons": data.comparisons})
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
                + "</header>",
                "<noscript><p>Charts and slider need JavaScript; all numbers are in the "
                "tables.</p></noscript>",
                self._contents() if len(self.sections) > 3 else "",
                _slider(names) if names else "",
                f"<main>{''.join(body)}</main>",
                f'<footer><p class="quiet">Written by slimsvm {escape(__version__)}.</p></footer>',
                f'<script type="application/json" id="data">{numbers}</script>',
                f"<script>{script}</script></body></html>",
                "",
            ]
        )

    def _contents(self) -> str:
        links = [
            f'<li><a href="#s-{at}">{escape(title)}</a></li>'
            for at, (title, _) in enumerate(self.sections)
        ]
        unfolded = " open" * (len(links) <= FEW_SECTIONS)
        return (
            f'<nav aria-label="Sections"><details{unfolded}><summary>Sections</summary>'
            f"<ul>{''.join(links)}</ul></details></nav>"
        )


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


def _digest(text: str) -> str:
    """How the policy of the page names a text that it trusts."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode("ascii")


def _slider(names: Sequence[str]) -> str:
    """The question, the slider, and of several comparisons the table of all answers."""
    control = (
        f'<div class="slider"><label for="loss">{QUESTION}</label><input type="range" id="loss" '
        f'min="0" max="13" step="1" value="{FIRST_LOSS}" aria-describedby="loss-text" /><output '
        'id="loss-text" for="loss"></output></div>'
    )
    if len(names) < 2:
        return control
    rows = "".join(
        f'<tr><th scope="row">{escape(name)}</th><td></td><td></td></tr>' for name in names
    )
    head = "".join(
        f'<th scope="col">{name}</th>' for name in ("set", "fewest vectors", "quickest training")
    )
    table = (
        "<table><caption>Which model to "
        f"take</caption><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
    )
    return (
        f'{control}<div id="choice" class="scroll tall" tabindex="0" role="group" '
        f'aria-label="Which model to take">{table}</div>'
    )
