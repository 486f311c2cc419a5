"""Pages in Chromium, driven by Playwright: charts, choices, trying a model, sorting, pointer,
keyboard, a phone's width, what axe-core says, and no word to the network.

Runs where Playwright is installed and there is a Chromium: Debian's, or the one that the variable
SLIMSVM_CHROMIUM names. axe-core is looked for in node_modules (npm install --no-save axe-core).
"""

import os
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_digits, load_iris
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from slimsvm import SVC, SVR, SparseSVC
from slimsvm.report import (
    Answers,
    Axis,
    Chart,
    Comparison,
    Facts,
    Matrix,
    Model,
    Numbers,
    Page,
    Panels,
    Pictures,
    Series,
    Table,
    model_page,
)

playwright = pytest.importorskip("playwright.sync_api")
CHROMIUM = (
    os.environ.get("SLIMSVM_CHROMIUM")
    or shutil.which("chromium")
    or shutil.which("chromium-browser")
    or shutil.which("google-chrome")
)
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium")
AXE = Path(__file__).parents[2] / "node_modules" / "axe-core" / "axe.min.js"

PATIENCE = 300_000  # milliseconds: a busy computer is no failure
NASTY = "<img src=x onerror=alert(1)></script>"


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as tool:
        made = tool.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield made
        made.close()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("pages")


@pytest.fixture(scope="module")
def address(folder):
    models = [
        Model("small", k, score, seconds)
        for k, score, seconds in ((2, 80.0, 0.5), (10, 94.6, 1.0), (50, 94.9, 4.0))
    ]
    models += [
        Model(NASTY, 5000, 95.0, 2.0),
        Model("peer", 4900, 99.9, 9.0, "few rows", counts=False),
        *(Model(f"other {k}", 100 + k, 90.0 - k, 3.0 + k) for k in range(5)),
    ]
    first = ["small", "peer", "other 0", "other 1", "other 2"]
    sets = [Comparison("first", models, first=first), Comparison("second", models[:3])]
    page = Page("A page", "with everything", sets=sets)
    page.section("How small?", Panels("vectors", sets))
    page.section("How fast?", Panels("seconds", sets), Facts([("a", "b")]), Numbers(sets))
    page.section("All", Answers(sets))
    gap = Series("gap", [0, 1, 2], [1, 0.1, 0.01])
    page.section("Curve", Chart("curve", Axis("seconds"), Axis("gap", "log"), [gap]))
    page.section("Wide", Matrix([f"class {k}" for k in range(30)], np.eye(30, dtype=int) * 7))
    page.section("Table", Table(["name", "n"], [["b", 2], ["a", 10], ["c", None]], "a table"))
    page.section("Pictures", Pictures(np.arange(128.0).reshape(2, 64), (8, 8), ["one", "two"]))
    return kept(folder, "page", page.html())


def kept(folder, name, html):
    path = folder / f"{name}.html"
    path.write_text(html, encoding="utf-8")
    return path.as_uri()


@pytest.fixture
def show(browser, address):
    """Opens a page; fails if a script did, if the policy refused something, or if the page asked
    for any address.
    """
    opened = []

    def run(url=address, **options):
        context = browser.new_context(**options)
        context.set_default_timeout(PATIENCE)
        page = context.new_page()
        troubles = []
        page.on("console", lambda message: troubles.append(message.text))
        page.on("pageerror", lambda error: troubles.append(str(error)))
        page.on(
            "request",
            lambda request: (
                request.url == url
                or request.url.startswith("data:")
                or troubles.append(request.url)
            ),
        )
        page.goto(url)
        opened.append((context, troubles))
        return page

    yield run
    for context, troubles in opened:
        context.close()
        assert troubles == []


def panel(page, view, at=0):
    return page.locator(f'[data-set="{at}"][data-view="{view}"]')


def test_answers_follow_the_slider(show):
    page = show()
    small, quick = (panel(page, view).locator(".answer") for view in ("vectors", "seconds"))
    # half a point may be lost at first
    assert small.text_content() == "10 vectors small: 94.60 %, 0.40 below the best."
    assert quick.text_content() == "1 s small: 94.60 %, 0.40 below the best."
    assert page.locator("#loss-text").text_content() == "0.5 percentage points"
    slider = page.locator("#loss")
    slider.focus()
    page.keyboard.press("Home")
    assert small.text_content() == f"5,000 vectors {NASTY}: 95.00 %, the best of all."
    assert slider.get_attribute("aria-valuetext") == "0 percentage points"
    for _ in range(2):
        page.keyboard.press("ArrowRight")
    assert "50 vectors" in small.text_content()
    page.keyboard.press("End")
    assert "10 vectors" in small.text_content()
    answers = page.locator("#answers tbody tr >> nth=1").text_content()
    assert answers == "second94.9010 vectors small, 94.60 %1 s small, 94.60 %"
    assert panel(page, "vectors").locator("svg .ring").count() == 1
    assert page.locator("img").count() == 2  # the pictures, and none from a name


def test_the_choice_of_a_set(show):
    page = show()
    assert panel(page, "vectors").is_visible() and panel(page, "vectors", 1).is_hidden()
    page.locator("#set").select_option("1")
    assert panel(page, "vectors").is_hidden() and panel(page, "vectors", 1).is_visible()
    assert panel(page, "vectors", 1).locator("svg.chart .mark").count() == 3
    page.locator("#answers button", has_text="first").press("Enter")
    assert panel(page, "seconds").is_visible() and page.locator("#set").input_value() == "0"


def test_at_most_six_methods_at_first(show):
    """Five, and the one of the answer; the others behind a switch, with names beside their
    points.
    """
    page = show()
    own = panel(page, "vectors")
    names = own.locator("svg.chart .label").all_text_contents()
    assert names == ["small", "peer", "other 0", "other 1", "other 2"]
    assert own.locator(".mark.hollow").count() == 1
    page.locator("#loss").focus()
    page.keyboard.press("Home")
    assert own.locator("svg.chart .label").count() == 6  # that of the answer joined
    own.locator("summary", has_text="3 more methods").click()
    button = own.locator(".methods button", has_text="other 4")
    assert button.get_attribute("aria-pressed") == "false"
    button.press("Enter")
    assert button.get_attribute("aria-pressed") == "true"
    assert "other 4" in own.locator("svg.chart .label").all_text_contents()
    own.locator(".methods button", has_text="peer").press("Enter")
    assert own.locator(".mark.hollow").count() == 0


def test_axes_run_the_usual_way(show):
    """Vectors from left to right, accuracy upwards."""
    own = panel(show(), "vectors")
    marks = [own.locator(".mark").nth(at).bounding_box() for at in range(3)]
    assert [box["x"] for box in marks] == sorted(box["x"] for box in marks)
    assert [-box["y"] for box in marks] == sorted(-box["y"] for box in marks)


def test_pointer_and_keys_show_the_numbers(show):
    page = show()
    chart = panel(page, "vectors")
    chart.locator(".mark >> nth=0").hover(force=True)
    assert chart.locator(".readout").text_content() == (
        "small: 2 vectors, 80.00 %, 0.5 s of training"
    )
    chart.locator("svg.chart").focus()
    page.keyboard.press("ArrowRight")
    assert "10 vectors" in chart.locator(".readout").text_content()
    curve = page.locator("figure", has_text="curve")
    curve.locator("svg.chart").focus()
    page.keyboard.press("ArrowLeft")
    assert curve.locator(".readout").text_content() == "gap: seconds 2, gap 0.01"


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


# -- trying a model --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def digits(folder):
    X, y = load_digits(return_X_y=True)
    model = SparseSVC(30, C=10, gamma=1e-3, random_state=0).fit(X[:900], y[:900])
    return model, X, kept(folder, "digits", model_page(model, X[900:], y[900:], name="digits"))


@pytest.fixture(scope="module")
def iris(folder):
    X, y = load_iris(return_X_y=True, as_frame=True)
    names = np.array(["setosa", "<b>versicolor</b>", "</script>"])[y]
    model = make_pipeline(StandardScaler(), SVC(C=10)).fit(X, names)
    return model, X, kept(folder, "iris", model_page(model, X, names, name="iris"))


def test_sliders_ask_the_model(show, iris):
    """Every position has the answer of Python's model, in the units before the scaler."""
    model, X, url = iris
    page = show(url)
    sliders = page.locator(".feature input")
    assert page.locator(".feature label").all_text_contents() == list(X.columns)
    rng, said = np.random.default_rng(0), []
    for _ in range(12):
        row = rng.uniform(X.min(), X.max())
        for at, value in enumerate(row):
            sliders.nth(at).evaluate(
                "(input, v) => { input.value = v; input.dispatchEvent(new Event('input')) }",
                float(value),
            )
        shown = [float(sliders.nth(at).input_value()) for at in range(4)]
        assert np.allclose(shown, row, atol=0.01)
        said.append(
            (
                page.locator(".verdict").text_content(),
                model.predict(pd.DataFrame([shown], columns=X.columns))[0],
            )
        )
    assert len({answer for answer, _ in said}) > 1
    assert all(shown == wanted for shown, wanted in said)
    assert page.locator(".feature polyline").nth(0).get_attribute("points").count(",") == 41
    before = page.locator(".verdict").text_content()
    page.locator(".another").press("Enter")
    assert "whose label is" in page.locator(".truth").text_content()
    page.locator(".reset").press("Enter")
    assert page.locator(".truth").text_content() == "" and before is not None


def test_a_slider_moves_by_keys(show, iris):
    page = show(iris[2])
    slider = page.locator(".feature input >> nth=2")
    slider.focus()
    before = float(slider.input_value())
    page.keyboard.press("ArrowRight")
    assert float(slider.input_value()) > before
    shown = float(page.locator(".feature output >> nth=2").text_content())
    assert shown == pytest.approx(float(slider.input_value()), rel=1e-3)


def test_a_drawing_asks_the_model(show, digits):
    model, X, url = digits
    page = show(url)
    right = 0
    for _ in range(12):  # rows of the data: the labels of Python's model
        at = int(page.locator(".truth").text_content().split()[1].replace(",", "")) - 1
        wanted = str(model.predict(X[900 + at][None])[0])
        assert page.locator(".verdict").text_content() == wanted
        right += page.locator(".truth").text_content().endswith(f"whose label is {wanted}.")
        page.locator(".another").click()
    assert right >= 10
    canvas = page.locator("canvas")
    page.locator(".reset").click()
    box = canvas.bounding_box()
    middle = box["x"] + 0.55 * box["width"]
    page.mouse.move(middle, box["y"] + 0.06 * box["height"])
    page.mouse.down()
    page.mouse.move(middle, box["y"] + 0.95 * box["height"], steps=8)
    page.mouse.up()
    assert page.locator(".verdict").text_content() == "1"


def test_a_drawing_by_keys(show, digits):
    page = show(digits[2])
    page.locator(".reset").click()
    page.locator("canvas").focus()
    ink = """() => Array.from(document.querySelector('canvas').getContext('2d')
        .getImageData(0, 0, 8, 8).data).filter((v, k) => k % 4 == 0 && v > 128).length"""
    page.keyboard.press("Space")
    for _ in range(2):
        page.keyboard.press("ArrowUp")
        page.keyboard.press("Space")
    assert page.evaluate(ink) >= 3


def test_numbers_and_many_features(show, folder):
    """A regression on twelve features: eight sliders, those that matter; the number of Python."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 12))
    y = X[:, 3] ** 2 + X[:, 7]
    model = SVR(C=10).fit(X, y)
    page = show(kept(folder, "many", model_page(model, X, y, name="many")))
    labels = page.locator(".feature label").all_text_contents()
    assert len(labels) == 8 and {"feature 4", "feature 8"} <= set(labels)
    typical = np.median(X, axis=0)[None]
    assert float(page.locator(".verdict").text_content()) == pytest.approx(
        model.predict(typical)[0], rel=1e-3
    )


# -- every page ------------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [320, 390, 1280])
@pytest.mark.parametrize("which", ["page", "digits", "iris"])
def test_fits_the_width(show, address, digits, iris, which, width):
    url = {"page": address, "digits": digits[2], "iris": iris[2]}[which]
    page = show(url, viewport={"width": width, "height": 700})
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    if which != "iris":
        assert page.locator("#loss").bounding_box()["width"] >= 150


@pytest.mark.skipif(not AXE.is_file(), reason="needs axe-core: npm install --no-save axe-core")
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_axe_finds_nothing_serious(browser, address, digits, iris, width, scheme):
    for url in (address, digits[2], iris[2]):
        context = browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme=scheme, bypass_csp=True
        )
        context.set_default_timeout(PATIENCE)
        page = context.new_page()
        page.goto(url)
        page.evaluate("document.querySelectorAll('details').forEach((d) => { d.open = true })")
        page.evaluate(AXE.read_text(encoding="utf-8"))
        found = page.evaluate("axe.run()")["violations"]
        context.close()
        assert [(v["id"], v["nodes"][0]["html"]) for v in found if v["impact"] != "minor"] == []


def test_light_and_dark(show):
    ground = "getComputedStyle(document.body).backgroundColor"
    assert show(color_scheme="light").evaluate(ground) == "rgb(255, 255, 255)"
    assert show(color_scheme="dark").evaluate(ground) == "rgb(16, 19, 23)"


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
