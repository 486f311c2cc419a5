"""Pages in Chromium, driven by Playwright: charts, slider, sorting, pointer, keyboard, a phone's
width, and no word to the network.

Runs where Playwright is installed and there is a Chromium: Debian's, or the one that the variable
SLIMSVM_CHROMIUM names.
"""

import os
import shutil

import numpy as np
import pytest

from slimsvm.report import (
    Axis,
    Chart,
    Comparison,
    Facts,
    Matrix,
    Model,
    Page,
    Pictures,
    Series,
    Table,
)

playwright = pytest.importorskip("playwright.sync_api")
CHROMIUM = (
    os.environ.get("SLIMSVM_CHROMIUM")
    or shutil.which("chromium")
    or shutil.which("chromium-browser")
    or shutil.which("google-chrome")
)
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium")

NASTY = "<img src=x onerror=alert(1)></script>"


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as tool:
        made = tool.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield made
        made.close()


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    page = Page("A page", "with everything")
    models = [
        Model("small", k, score, seconds)
        for k, score, seconds in ((2, 80.0, 0.5), (10, 94.6, 1.0), (50, 94.9, 4.0))
    ]
    models += [
        Model(NASTY, 5000, 95.0, 2.0),
        Model("peer", 4900, 99.9, 9.0, "few rows", counts=False),
    ]
    page.section("First", Comparison("first", models))
    page.section("Second", Comparison("second", models[:3]), Facts([("a", "b")]))
    page.section(
        "Curve",
        Chart(
            "curve", Axis("seconds"), Axis("gap", "log"), [Series("gap", [0, 1, 2], [1, 0.1, 0.01])]
        ),
    )
    page.section("Wide", Matrix([f"class {k}" for k in range(30)], np.eye(30, dtype=int) * 7))
    page.section("Table", Table(["name", "n"], [["b", 2], ["a", 10], ["c", None]], "a table"))
    page.section("Pictures", Pictures(np.arange(128.0).reshape(2, 64), (8, 8), ["one", "two"]))
    path = tmp_path_factory.mktemp("page") / "page.html"
    path.write_text(page.html(), encoding="utf-8")
    return path.as_uri()


@pytest.fixture
def show(browser, address):
    """Opens the page; fails if the script did, if the policy refused something, or if the page
    asked for any address.
    """
    opened = []

    def run(**options):
        context = browser.new_context(**options)
        page = context.new_page()
        troubles = []
        page.on("console", lambda message: troubles.append(message.text))
        page.on("pageerror", lambda error: troubles.append(str(error)))
        page.on(
            "request",
            lambda request: (
                request.url == address
                or request.url.startswith("data:")
                or troubles.append(request.url)
            ),
        )
        page.goto(address)
        opened.append((context, troubles))
        return page

    yield run
    for context, troubles in opened:
        context.close()
        assert troubles == []


def test_charts_and_slider(show):
    page = show()
    assert page.locator("figure[data-chart] svg.chart").count() == 5
    assert page.locator("figure[data-chart] >> nth=0").locator(".mark.hollow").count() == 1
    take = page.locator(".take >> nth=0")
    assert (
        "Best: 95.00 %. Fewest vectors: small: 10 vectors, 94.60 %" in take.text_content()
    )  # half a point may be lost at first
    assert page.locator("#loss-text").text_content() == "0.5 percentage points"
    slider = page.locator("#loss")
    slider.focus()
    page.keyboard.press("Home")
    assert (
        f"Fewest vectors: {NASTY}: 5,000 vectors" in take.text_content()
        and slider.get_attribute("aria-valuetext") == "0 percentage points"
    )
    for _ in range(2):
        page.keyboard.press("ArrowRight")
    assert "small: 50 vectors, 94.90 %" in take.text_content()
    page.keyboard.press("End")
    assert (
        "small: 10 vectors" in take.text_content()
        and "10 vectors" in page.locator("#choice tbody tr >> nth=1").text_content()
    )
    assert (
        page.locator("tr.taken").count() == 2 and page.locator("svg .ring").count() == 4
    )  # a mark in each of two charts of two sets
    assert page.locator("img").count() == 2  # the pictures, and none from a name


def test_pointer_and_keys_show_the_numbers(show):
    page = show()
    chart = page.locator("figure[data-chart] >> nth=0")
    chart.locator(".mark >> nth=0").hover(force=True)
    assert (
        chart.locator(".readout").text_content() == "small: 2 vectors, 80.00 %, 0.5 s of training"
    )
    chart.locator("svg.chart").focus()
    page.keyboard.press("ArrowRight")
    assert "10 vectors" in chart.locator(".readout").text_content()
    curve = page.locator("figure", has_text="curve")
    curve.locator("svg.chart").focus()
    page.keyboard.press("ArrowLeft")
    assert curve.locator(".readout").text_content() == "gap: seconds 2, gap 0.01"


def test_legend_hides_a_series(show):
    page = show()
    chart = page.locator("figure[data-chart] >> nth=0")
    before = chart.locator("svg.chart .mark").count()
    button = chart.locator(".legend button >> nth=0")
    button.press("Enter")
    assert (
        button.get_attribute("aria-pressed") == "false"
        and chart.locator("svg.chart .mark").count() == before - 3
    )
    button.press("Enter")
    assert chart.locator("svg.chart .mark").count() == before


def test_tables_are_sorted_by_keyboard(show):
    page = show()
    table = page.locator("table", has_text="a table")

    def names():
        return table.locator("tbody td:first-child").all_text_contents()

    button = table.locator("th button >> nth=1")
    button.press("Enter")
    assert (
        names() == ["b", "a", "c"]
        and table.locator("th >> nth=1").get_attribute("aria-sort") == "ascending"
    )
    button.press("Enter")
    assert (
        names() == ["a", "b", "c"]
        and table.locator("th >> nth=1").get_attribute("aria-sort") == "descending"
    )
    table.locator("th button >> nth=0").click()
    assert (
        names() == ["a", "b", "c"]
        and table.locator("th >> nth=1").get_attribute("aria-sort") is None
    )


@pytest.mark.parametrize("width", [320, 390, 1280])
def test_fits_the_width(show, width):
    page = show(viewport={"width": width, "height": 700})
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.locator("#loss").bounding_box()["width"] >= 150


def test_light_and_dark(show):
    ground = "getComputedStyle(document.body).backgroundColor"
    assert show(color_scheme="light").evaluate(ground) == "rgb(255, 255, 255)"
    assert show(color_scheme="dark").evaluate(ground) == "rgb(20, 23, 27)"


ODD = (
    "<img src=x onerror=alert(1)>",
    "</script><script>alert(2)</script>",
    '" onmouseover="alert(3)" x="',
    "</style><svg onload=alert(4)>",
    "{{7*7}}&amp;&#60;b&#62;",
)


def test_markup_in_names_is_text(browser, tmp_path):
    """Classes, features, files and notes that hold markup, on the page of a model."""
    pandas = pytest.importorskip("pandas")
    from click.testing import CliRunner

    from slimsvm import SVC, save
    from slimsvm.cli.program import program

    rng = np.random.default_rng(0)
    X = pandas.DataFrame(rng.standard_normal((80, len(ODD))), columns=ODD)
    y = np.array(ODD[:3])[np.arange(80) % 3]
    model = tmp_path / "a<b onclick=alert(5)>.slim"
    data, out = tmp_path / "<u>rows.csv", tmp_path / "page.html"
    save(SVC().fit(X, y), model, metadata={ODD[0]: ODD[1], "note": ODD[3]})
    X.assign(label=y).to_csv(data, index=False)
    words = ["report", str(model), "--data", str(data), "--output", str(out)]
    done = CliRunner().invoke(program, words)
    assert done.exit_code == 0, done.output
    page = browser.new_page()
    troubles = []
    page.on("dialog", lambda dialog: (troubles.append(dialog.message), dialog.dismiss()))
    page.on("pageerror", lambda error: troubles.append(str(error)))
    page.on(
        "request",
        lambda asked: (
            asked.url.startswith(("file:", "data:", "blob:")) or troubles.append(asked.url)
        ),
    )
    page.goto(out.as_uri())
    page.mouse.move(200, 200)
    assert page.locator("img[src=x], u, b[onclick], svg[onload], [onmouseover]").count() == 0
    text = page.locator("body").text_content()
    assert ODD[0] in text and ODD[1] in text and ODD[2] in text
    page.close()
    assert troubles == []
