"""The programs in the documentation run as they stand."""

import importlib.util
import json
import re
import warnings
from pathlib import Path

import pytest
from benchmarks import runner

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted(
    [
        ROOT / "docs" / "tutorial.md",
        *ROOT.glob("docs/howto/*.md"),
        *ROOT.glob("docs/explanation/*.md"),
    ]
)
WITH_PROGRAMS = [page for page in PAGES if "```python" in page.read_text(encoding="utf-8")]
NEEDS_MORE = ("beyond_memory",)  # files of the reader, and a cluster
LONG = ("tutorial", "tuning", "probabilities")


def checker():
    """docs/links.py, which belongs to no package."""
    spec = importlib.util.spec_from_file_location("links", ROOT / "docs" / "links.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_links_within_the_project(tmp_path):
    found = checker()
    here = [
        (page.name, line, target, found.wrong_here(page, target))
        for page in found.pages()
        for line, target in found.links(page)
        if "://" not in target and not target.startswith("mailto:")
    ]
    assert len(here) > 50 and [link for link in here if link[-1]] == []
    page = tmp_path / "page.md"
    page.write_text(
        "# One, two\n```\n[no](code)\n```\n`[no](code)`\n[a](gone.md) [b](#one-two) [c](#no)\n"
    )
    own = {target: found.wrong_here(page, target) for _, target in found.links(page)}
    assert own == {
        "gone.md": "there is no such file",
        "#one-two": "",
        "#no": "there is no heading #no",
    }


def test_what_could_not_be_reached_is_told_from_what_is_broken():
    """The first name never resolves; the second port answers nobody."""
    wrong = checker().wrong_elsewhere
    for address in ("https://nowhere.invalid/page", "http://127.0.0.1:9/"):
        text, said = wrong(address)
        assert text and not said


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, id=page.stem, marks=[pytest.mark.long] if page.stem in LONG else [])
        for page in WITH_PROGRAMS
        if page.stem not in NEEDS_MORE
    ],
)
def test_programs_of_a_page(page, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), flags=re.S)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec(compile("\n".join(blocks), str(page), "exec"), {"__name__": page.stem})


@pytest.mark.parametrize(
    "page",
    # that of the whole package, and the one for those who change it, say whom they are for
    [
        *PAGES,
        *(page for page in ROOT.glob("docs/*.md") if page.stem not in ("index", "architecture")),
    ],
    ids=lambda page: page.stem,
)
def test_a_page_opens_with_what_the_reader_can_do_after_it(page):
    first = page.read_text(encoding="utf-8").split("\n\n")[1]
    assert first.startswith("After "), first


# -- the papers, row by row ------------------------------------------------------------------------

PAPERS = (ROOT / "docs" / "papers.md").read_text(encoding="utf-8")


def test_every_recipe_has_its_row_and_every_row_something_that_shows_it():
    from slimsvm.recipes import RECIPES

    beside = {"refined", "lasvm"}  # of other papers
    missing = {name for name in RECIPES if f"`{name}" not in PAPERS} - beside
    assert not missing
    rows = [line for line in PAPERS.splitlines() if line.startswith("|")]
    told = [row for row in rows if not row.startswith(("| in the text", "|---"))]
    assert len(told) > 80
    for row in told:
        text, here, shown = (part.strip() for part in row.strip("|").split(" | "))
        assert text and here and ("test_" in shown or "python -m benchmarks" in shown), row
        assert "deviat" not in row.lower() and "differs" not in row.lower(), row


def test_tests_and_cells_that_the_rows_name_exist():
    code = "\n".join(path.read_text(encoding="utf-8") for path in ROOT.glob("tests/**/*.py"))
    for path, name in re.findall(r"`([\w/]*test_\w+\.py)?(?:::)?(test_\w+)?`", PAPERS):
        if path:
            assert (ROOT / "tests" / path.removeprefix("tests/")).exists(), path
        if name:
            assert f"def {name}(" in code, name
    commands = set(re.findall(r"benchmarks run (\w+) --full(?: --only ([\w/]+))?`", PAPERS))
    assert len(commands) > 20
    for module, only in commands:
        cells = importlib.import_module(f"benchmarks.{module}").cells(False)
        assert any(only in cell.key for cell in cells), (module, only)


@pytest.mark.parametrize("name", ["published", "svmlight", "rsvm"])
def test_cells_that_are_not_stored_are_named_with_what_they_would_take(name):
    module = importlib.import_module(f"benchmarks.{name}")
    stored = json.loads(module.RESULTS.read_text(encoding="utf-8"))["cells"]
    cells = module.cells(False)
    lines = runner.not_measured(cells, stored, module.LATER)
    assert all(": " in line for line in lines), "every one has a reason"
    numbers = [int(re.search(r"\((\d+)\)", line)[1]) for line in lines]
    assert sum(numbers) == sum(cell.key not in stored for cell in cells)
    page = (ROOT / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    assert all(line in page for line in lines)


def test_a_cell_without_a_reason_is_named_alone():
    cells = [runner.Cell(key, "f") for key in ("a/1", "a/2", "b", "c")]
    lines = runner.not_measured(cells, {"c": {}}, {"a/*": "an hour each", "c": "a day"})
    assert lines == ["- `a/*` (2): an hour each", "- `b`"]
