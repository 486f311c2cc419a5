"""The programs in the documentation run as they stand."""

import re
import warnings
from pathlib import Path

import pytest

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


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_opens_with_what_the_reader_can_do_after_it(page):
    first = page.read_text(encoding="utf-8").split("\n\n")[1]
    assert first.startswith("After "), first
