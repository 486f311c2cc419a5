"""The command ``slimsvm export``, and what ``slimsvm info`` says of exports."""

import json

import pytest
from click.testing import CliRunner
from sklearn.datasets import load_iris

import slimsvm
from slimsvm.cli.program import program


@pytest.fixture
def model(tmp_path):
    X, y = load_iris(return_X_y=True)
    path = tmp_path / "iris.slim"
    slimsvm.save(slimsvm.SparseSVC(10, random_state=0).fit(X, y), path)
    return path


def run(*words):
    return CliRunner().invoke(program, [str(word) for word in words])


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("a.onnx", ["--dtype", "float32"]),
        ("a.h", ["--dtype", "int8", "--name", "iris", "--max-bytes", "4000"]),
        ("a.mjs", []),
        ("a.txt", ["--to", "javascript"]),
    ],
)
def test_models_are_written(model, tmp_path, name, options):
    if name.endswith("onnx"):
        pytest.importorskip("onnx")
    done = run("export", model, tmp_path / name, "--json", "--quiet", *options)
    assert done.exit_code == 0, done.output
    facts = json.loads(done.stdout)
    assert facts["bytes"] == (tmp_path / name).stat().st_size > 500


def test_what_is_wrong_is_said_and_nothing_is_written(model, tmp_path):
    for code, words, line in (
        (2, "names no language", ["a.txt"]),
        (2, "is for c and javascript", ["a.onnx", "--max-bytes", "3"]),
        (1, "is none of 'float', 'int8'", ["a.h", "--dtype", "float64"]),
        (1, "more than max_bytes=9", ["a.h", "--max-bytes", "9"]),
        (1, "Is a directory", ["."]),
    ):
        given = [tmp_path / line[0], *line[1:]] + (["--to", "c"] if line == ["."] else [])
        done = run("export", model, *given)
        assert done.exit_code == code and words in done.output, done.output
    assert [path.name for path in tmp_path.iterdir()] == ["iris.slim"]


def test_info_says_what_a_model_takes_elsewhere(model):
    assert "multiplications a row" in run("info", model).stdout
    facts = json.loads(run("info", model, "--json").stdout)
    assert facts["c_bytes"]["int8"] < facts["c_bytes"]["float32"] < 5000
    assert facts["multiplications_per_row"] > 60 and facts["microseconds_per_row"] > 0
