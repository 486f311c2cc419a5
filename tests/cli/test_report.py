"""slimsvm report, within this process."""

import json
from pathlib import Path

import numpy as np
import pytest

from slimsvm import OneClassSVM, SparseSVC, load, save
from tests.cli.conftest import write_csv
from tests.report.test_page import check


@pytest.fixture
def model(slimsvm, files):
    slimsvm("train", "c.svm", "m.slim", "--gamma", 20, "--quiet")
    return load("m.slim")


def test_writes_beside_the_model_and_says_so(slimsvm, files, model):
    X, y = files
    result = slimsvm("report", "m.slim", "--data", "c.svm")
    assert result.stdout == "" and "page written to m.slim.html" in result.stderr
    page, _ = check(Path("m.slim.html").read_text(encoding="utf-8"))
    assert f"({np.sum(model.predict(X) == y)} of 300)" in page.text and "m.slim" in page.texts
    assert sorted(path.name for path in Path().glob("*html*")) == [
        "m.slim.html"
    ]  # nothing temporary is left


def test_output_json_and_quiet(slimsvm, model):
    result = slimsvm("report", "m.slim", "--output", "page.html", "--json", "--quiet")
    assert json.loads(result.stdout) == {
        "model": "m.slim",
        "output": "page.html",
        "bytes": Path("page.html").stat().st_size,
    }
    assert result.stderr == ""
    check(slimsvm("report", "m.slim", "--output", "-", "--quiet").stdout)
    check(
        slimsvm("report", "-", "--output", "-", "--quiet", input=Path("m.slim").read_bytes()).stdout
    )


def test_foreign_models_and_other_data(slimsvm, files, model):
    X, y = files
    slimsvm("convert", "m.slim", "m.libsvm", "--quiet")
    for data in ("c.csv", "c.npz"):
        slimsvm("report", "m.libsvm", "--data", data, "--output", "page.html", "--quiet")
        assert f"({np.sum(model.predict(X) == y)} of 300)" in Path("page.html").read_text(
            encoding="utf-8"
        )


def test_one_class_needs_no_labels(slimsvm, files):
    X, _ = files
    save(OneClassSVM(nu=0.2).fit(X), "o.slim")
    write_csv("numbers.csv", X[:4], [0.5, 1.0, 1.5, -1.0])
    np.savez("plain.npz", X=X)
    slimsvm("report", "o.slim", "--data", "plain.npz", "--quiet")
    assert "outliers" in Path("o.slim.html").read_text(encoding="utf-8")


def test_pictures(slimsvm):
    rng = np.random.default_rng(0)
    X = rng.random((60, 12))
    save(SparseSVC(4, refine=False, random_state=0).fit(X, X[:, 0] > 0.5), "p.slim")
    slimsvm("report", "p.slim", "--image-shape", 3, 4, "--quiet")
    assert Path("p.slim.html").read_text(encoding="utf-8").count("<img") == 4


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["m.slim", "--image-shape", 3, 4], 2, "--image-shape 3 4 does not fit the 2 features"),
        (["m.slim", "--image-shape", 0, 2], 2, "0 is not in the range"),
        (["-", "--data", "-"], 2, "cannot both come from standard input"),
        (["-"], 2, "name the file for the page"),
        (["m.slim", "--output", "-", "--json"], 2, "cannot both go to standard output"),
        (["m.slim", "--output", "m.slim"], 2, "one of the input files"),
        (["m.slim", "--data", "c.svm", "--output", "c.svm"], 2, "one of the input files"),
        (["none.slim"], 1, "none.slim: No such file or directory"),
        (["c.svm"], 1, "slimsvm: error:"),
        (["m.slim", "--data", "none.svm"], 1, "none.svm: No such file or directory"),
        (["m.slim", "--data", "bad.svm"], 1, "bad.svm, line 2"),
        (["m.slim", "--data", "text.csv"], 1, "labels of the data are text"),
        (["m.slim", "--data", "plain.npz"], 1, "no array y"),
        (["m.slim", "--data", "m.slim"], 2, "m.slim is a model, and --data is for rows"),
        (["m.slim", "--data", "numbers.csv"], 1, "labels such as 0.5, which are no classes"),
        (["m.slim", "--output", "no/where.html"], 1, "folder"),
    ],
)
def test_what_goes_wrong(slimsvm, files, model, arguments, code, message):
    X, _ = files
    Path("bad.svm").write_text("1 1:0.5\n-1 1:x\n")
    write_csv("text.csv", X[:4], ["a", "b", "a", "b"])
    write_csv("numbers.csv", X[:4], [0.5, 1.0, 1.5, -1.0])
    np.savez("plain.npz", X=X)
    before = {path: path.read_bytes() for path in Path().iterdir()}
    assert message in slimsvm("report", *arguments, code=code).stderr
    assert {path: path.read_bytes() for path in Path().iterdir()} == before  # nothing was written
