"""The demo, with few rows."""

import sys
from pathlib import Path

import pytest

from slimsvm.cli.demo import run_demo

LINES = [
    (data, machine)
    for data in ("checkers", "digits")
    for machine in ("slimsvm", "scikit-learn", "slimsvm sparse")
]


def check(results):
    assert [(line["data"], line["method"]) for line in results["results"]] == LINES
    for ours, theirs, sparse in (results["results"][:3], results["results"][3:]):
        assert abs(ours["accuracy"] - theirs["accuracy"]) < 0.01
        assert abs(ours["vectors"] - theirs["vectors"]) < 0.03 * theirs["vectors"] + 3
        assert ours["fit_seconds"] > 0
        assert sparse["vectors"] == 50
        assert sparse["accuracy"] > theirs["accuracy"] - 0.05
    assert results["results"][3]["accuracy"] > 0.97


def test_demo(slimsvm):
    pytest.importorskip("matplotlib")
    result = slimsvm("demo", "--rows", 1000)
    assert "compilation of all models" in result.stdout and "slimsvm-demo.png" in result.stdout
    assert result.stdout.count("checkers") >= 3 and result.stdout.count("scikit-learn") >= 2
    assert Path("slimsvm-demo.png").read_bytes().startswith(b"\x89PNG")


def test_demo_as_json(result_of):
    results = result_of("demo", "--rows", 1000, "--picture", "other.png")
    check(results)
    assert results["compilation_seconds"] > 0
    assert results["picture"] is None or Path(results["picture"]).exists()


def test_demo_without_rich_and_matplotlib(monkeypatch):
    for name in ("rich", "rich.console", "rich.table", "matplotlib", "matplotlib.figure"):
        monkeypatch.setitem(sys.modules, name, None)
    said = []
    results = run_demo(1000, n_jobs=1, show=said.append)
    check(results)
    assert results["picture"] is None and any(
        "pip install 'slimsvm[plot]'" in text for text in said
    )
    table = [line for line in said if line.startswith(("data", "checkers  ", "digits  "))]
    assert len(table) == 7 and len({len(line) for line in table}) == 1
    assert not Path("slimsvm-demo.png").exists()
