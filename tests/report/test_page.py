"""Pages: well-formed, complete, without network, and safe whatever the names in them are."""

import base64
import hashlib
import json
import re
import struct
import zlib
from html.parser import HTMLParser
from importlib.resources import files

import numpy as np
import pytest

from slimsvm.report import (
    Answers,
    Axis,
    Badge,
    Chart,
    Comparison,
    Facts,
    Folded,
    Matrix,
    Model,
    Numbers,
    Page,
    Panels,
    Pictures,
    Series,
    Table,
    Text,
    Tiles,
)
from slimsvm.report.page import safe_json
from slimsvm.report.pictures import grey_png

VOID = {"meta", "input", "img", "br"}
NASTY = "</script><script>alert('1')</script>&\"<i>\u2028 \\"


class Reader(HTMLParser):
    """Elements, attributes and texts of a page; complains about tags that do not match."""

    def __init__(self, page):
        super().__init__(convert_charrefs=True)
        self.open, self.found, self.texts, self.data = [], [], [], []
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        names = [name for name, _ in attributes]
        assert len(set(names)) == len(names), (tag, names)
        self.found.append((tag, dict(attributes)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        assert tag in VOID
        self.handle_starttag(tag, attributes)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, text):
        (self.data if self.open[-1:] in (["script"], ["style"]) else self.texts).append(text)

    def all(self, tag):
        return [attributes for name, attributes in self.found if name == tag]

    @property
    def text(self):
        return " ".join(self.texts)


def check(html):
    """What holds for every page; returns the reader and the numbers for the script."""
    page = Reader(html)
    assert (
        "http:" not in html
        and "https:" not in html
        and "@import" not in html
        and "url(" not in html
    )
    for tag, attributes in page.found:
        for name in ("src", "href", "action", "xlink:href", "srcset", "poster"):
            assert attributes.get(name, "#").startswith(("#", "data:image/png;base64,")), (
                tag,
                attributes,
            )
        assert not [
            name for name in attributes if name.startswith("on") or name == "style"
        ]  # the policy would not run them
    ids = [attributes["id"] for _, attributes in page.found if "id" in attributes]
    assert len(set(ids)) == len(ids)
    for attributes in page.all("a"):
        assert attributes["href"][1:] in ids
    for attributes in page.all("label"):
        assert attributes["for"] in ids
    assert page.all("html") == [{"lang": "en"}] and "width=device-width" in html
    scripts = page.all("script")
    module = [{"type": "module"}] if "try.js" in html or 'class="try"' in html else []
    assert scripts == [{"type": "application/json", "id": "data"}, {}, *module]
    policy = page.all("meta")[1]["content"]
    assert "default-src 'none'" in policy
    trusted = [
        files("slimsvm.report").joinpath(name).read_text() for name in ("page.css", "page.js")
    ]
    if module:  # the exported model, and what asks it
        trusted.append(html[html.index('<script type="module">') + 22 :].split("</script>")[0])
        assert trusted[-1].endswith(files("slimsvm.report").joinpath("try.js").read_text())
    for text in trusted:
        assert base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() in policy
        assert text in html
    assert policy.count("sha256-") == len(trusted)
    return page, json.loads(re.search(r'id="data">(.*?)</script>', html, re.S)[1])


def full_page(name="a name"):
    page = Page(name, f"lead {name}")
    page.section(
        name,
        Text(name),
        Facts([(name, name), ("", "more")]),
        Tiles([(name, name, name)]),
        Badge(name),
        Folded(name, [Text(name)]),
        Table([name, "n"], [[name, 3], ["", None]], name),
    )
    page.section(
        "curves",
        Chart(name, Axis(name), Axis("y", "log"), [Series(name, [1, 2, 3], [0.1, 0, np.nan])]),
    )
    page.section("matrix", Matrix([name, "other"], np.array([[5, 1], [0, 2]])))
    page.section("pictures", Pictures(np.arange(12.0).reshape(2, 6), (2, 3), [name, "b"]))
    models = [
        Model(name, 10, 90.0, 1.5, name),
        Model(name, 20, 91.0, 2.5),
        Model("peer", 5000, 99.0, 30.0, counts=False),
    ]
    page.section("models", Comparison(name, models), Comparison("second", models[:2]))
    page.section("nothing")
    return page.html()


def test_a_page_is_well_formed_and_complete():
    page, data = check(full_page())
    assert "nothing" not in page.text and "more" in page.text
    (chart,) = data["charts"]
    assert chart["series"][0]["points"] == [
        {"x": 1.0, "y": 0.1}
    ]  # zero has no logarithm, and NaN is nowhere
    keys = [attributes.get("data-chart") for attributes in page.all("figure")]
    assert keys.count(chart["key"]) == 1 and keys.count(None) == 4 and len(keys) == 5
    panels = [(a["data-set"], a["data-view"]) for a in page.all("div") if "data-view" in a]
    assert panels == [("0", "vectors"), ("0", "seconds"), ("1", "vectors"), ("1", "seconds")]
    assert [each["name"] for each in data["comparisons"]] == ["a name", "second"]
    assert data["comparisons"][0]["models"][2] == vars(
        Model("peer", 5000, 99.0, 30.0, counts=False)
    )
    assert page.all("input")[0]["type"] == "range"


def test_no_slider_without_models_to_choose_from():
    page = Page("t")
    page.section("s", Text("x"))
    html = page.html()
    assert check(html)[0].all("input") == []
    assert check(html)[1] == {"charts": [], "comparisons": [], "trying": None}


def test_several_sets_have_a_bar_and_panels():
    """One slider for all, a choice of sets, a row of answers for each; what was not measured is
    said.
    """
    models = [Model("a", 10, 90.0, 1.5), Model("b", 20, 91.0, 2.5)]
    sets = [Comparison("first", models), Comparison("second", [Model("c", 5, 80.0)])]
    page = Page("t", sets=sets)
    page.section("small", Panels("vectors", sets))
    page.section("fast", Panels("seconds", sets))
    page.section("all", Answers(sets), Numbers(sets))
    found, data = check(page.html())
    assert [a["id"] for a in found.all("input")] == ["loss"]
    assert [a["value"] for a in found.all("option")] == ["0", "1"]
    assert [c["name"] for c in data["comparisons"]] == ["first", "second"]
    assert found.text.count("were not measured") == 2
    assert {"All 2 models of first in numbers", "All 1 models of second in numbers"} <= set(
        found.texts
    )


def test_few_methods_at_first():
    """Those that are named, or those with the best scores: five, and the answer's makes six."""
    models = [Model(f"m{k}", 10, 80.0 + k) for k in range(9)]
    page = Page("t")
    page.section("s", Comparison("c", models), Comparison("d", models, first=["m0", "m1"]))
    own, named = check(page.html())[1]["comparisons"]
    assert own["first"] == ["m8", "m7", "m6", "m5", "m4"] and named["first"] == ["m0", "m1"]


def test_names_are_text_and_nothing_else():
    page, data = check(full_page(NASTY))
    assert NASTY in page.text and data["comparisons"][0]["models"][0]["note"] == NASTY
    assert not page.all("i")


def test_json_in_a_script_element():
    text = safe_json({"a": NASTY, "b": [np.float64(0.5), float("inf"), np.int64(3)]})
    assert not set("<>&\u2028") & set(text) and json.loads(text) == {
        "a": NASTY,
        "b": [0.5, None, 3],
    }


def test_tables_say_what_can_be_compared_as_a_number():
    page, _ = check(full_page())
    cells = [attributes for attributes in page.all("td") if "data-value" in attributes]
    assert {"3", "", "10", "90.0", "1.5"} <= {attributes["data-value"] for attributes in cells}
    assert all("scope" in attributes for attributes in page.all("th"))


@pytest.mark.parametrize(
    "values",
    [
        np.arange(6.0).reshape(2, 3),
        np.full((3, 2), 7.0),
        np.array([[-1e300, 1e299], [3e299, 1e300]]) / 4,
    ],
)
def test_pictures_are_png(values):
    """Read back by hand: chunks, checksums and grey values."""
    png = grey_png(values)
    assert png[:8] == b"\x89PNG\r\n\x1a\n"
    at, chunks = 8, {}
    while at < len(png):
        (size,) = struct.unpack(">I", png[at : at + 4])
        kind, content = png[at + 4 : at + 8], png[at + 8 : at + 8 + size]
        assert struct.unpack(">I", png[at + 8 + size : at + 12 + size])[0] == zlib.crc32(
            kind + content
        )
        chunks[kind] = content
        at += 12 + size
    assert struct.unpack(">II", chunks[b"IHDR"][:8]) == (
        values.shape[1],
        values.shape[0],
    ) and chunks[b"IHDR"][8:] == bytes([8, 0, 0, 0, 0])
    pixels = np.frombuffer(zlib.decompress(chunks[b"IDAT"]), np.uint8).reshape(values.shape[0], -1)
    assert (pixels[:, 0] == 0).all()
    spread = values.max() - values.min()
    expected = (
        np.zeros_like(values) if spread == 0 else np.rint(255 * (values - values.min()) / spread)
    )
    np.testing.assert_array_equal(pixels[:, 1:], expected)


# -- colours ---------------------------------------------------------------------------------------


def luminance(colour):
    """Of WCAG 2."""
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one, other):
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("which", [0, 1], ids=["light", "dark"])
def test_colours_have_the_contrast_of_level_aa(which):
    css = files("slimsvm.report").joinpath("page.css").read_text()
    block = re.findall(r":root \{(.*?)\}", css, re.S)[which]
    colours = dict(re.findall(r"--(\w+): (#[0-9a-f]{6});", block))
    assert {
        "ground",
        "raised",
        "text",
        "quiet",
        "accent",
        "take",
        *(f"s{k}" for k in range(8)),
    } <= set(colours)
    for ground in ("ground", "raised"):
        for name in ("text", "quiet", "accent"):
            assert contrast(colours[name], colours[ground]) >= 4.5, (name, ground)
    for name in ("take", *(f"s{k}" for k in range(8))):  # names of series are written in them
        assert contrast(colours[name], colours["ground"]) >= 4.5, name
    assert contrast(colours["edge"], colours["ground"]) >= 3  # of buttons
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
