"""The command tune, and train --tune."""

import json
from pathlib import Path

import pytest

import slimsvm as package
from slimsvm.datasets import checkers


@pytest.fixture
def data(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    X, y = checkers(150, seed=0)
    lines = [f"{int(label)} 1:{a:.6g} 2:{b:.6g}" for (a, b), label in zip(X, y, strict=True)]
    Path("c.svm").write_text("\n".join(lines) + "\n")
    return "c.svm"


def test_the_best_point_is_the_options_of_train(slimsvm, data):
    result = slimsvm("tune", data, "--cv", 3)
    words = result.stdout.split()
    assert words[::2] == ["--C", "--gamma"] and float(words[1]) > 0 and float(words[3]) > 0
    assert "score" in result.stderr and "shared" in result.stderr
    slimsvm("train", data, "m.slim", *words, "--quiet")
    facts = json.loads(slimsvm("tune", data, "--cv", 3, "--json", "--quiet").stdout)
    assert facts["best_params"]["C"] == pytest.approx(float(words[1]), rel=1e-5)
    assert facts["best_score"] == facts["best_points"][0]["score"]


def test_train_with_a_search(slimsvm, data):
    result = slimsvm("train", data, "m.slim", "--tune", "--json")
    facts = json.loads(result.stdout)
    assert facts["C"] == facts["search"]["best_params"]["C"]
    model = package.load("m.slim")
    assert type(model).__name__ == "SVC" and model.gamma == facts["search"]["best_params"]["gamma"]
    slimsvm("train", data, "s.slim", "--tune", "--n-basis", 10, "--quiet")
    assert type(package.load("s.slim")).__name__ == "SparseSVC"
    slimsvm("train", data, "r.slim", "--tune", "--machine", "svr", "--quiet")
    assert type(package.load("r.slim")).__name__ == "SVR"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--C", 1], "--C has no meaning for a search"),
        (["--kernel", "poly"], "--kernel has no meaning for a search"),
        (["--machine", "nu-svc"], "nu-svc has no search"),
        (["--n-basis", "5", "--machine", "svr"], "for svc"),
    ],
)
def test_what_a_search_cannot_take(slimsvm, data, options, words):
    result = slimsvm("train", data, "m.slim", "--tune", *options, code=2)
    assert words in result.stderr
    assert not Path("m.slim").exists()
