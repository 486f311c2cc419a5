"""train and predict on files that need not fit into memory."""

import json

import numpy as np
import pytest
from click.testing import CliRunner

import slimsvm
from slimsvm.cli.program import program

pd = pytest.importorskip("pandas")
pytest.importorskip("pyarrow")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("rows")
    rng = np.random.default_rng(0)
    X = rng.standard_normal((3000, 3))
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    frame.insert(1, "label", np.where(X[:, 0] * X[:, 1] > 0, "in", "out"))
    frame[:1800].to_parquet(path / "0.parquet")
    frame[1800:].to_parquet(path / "1.parquet")
    return path


def called(*words):
    result = CliRunner().invoke(program, [str(word) for word in words])
    return result


@pytest.mark.parametrize(
    ("kind", "near"), [(("--n-basis", 20, "--random-state", 0), 1e-4), (("--C", 2), 0.01)]
)
def test_train_and_predict_stream(kind, near, folder, tmp_path):
    model, output = tmp_path / "m.slim", tmp_path / "out.txt"
    files = folder / "*.parquet"
    words = ("train", files, model, "--target", "label", *kind, "--json")
    done = called(*words, "--stream")
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["rows"] == 3000
    fitted = slimsvm.load(model)
    assert fitted.feature_names_in_.tolist() == ["a", "b", "c"]
    again = called(*words[:2], tmp_path / "n.slim", *words[3:], "--no-stream")
    assert again.exit_code == 0, again.output
    frame = pd.read_parquet(folder)
    here = slimsvm.load(tmp_path / "n.slim")
    np.testing.assert_allclose(
        fitted.decision_function(frame[["a", "b", "c"]]),
        here.decision_function(frame[["a", "b", "c"]]),
        atol=near,
    )
    done = called("predict", files, model, output, "--json")
    assert done.exit_code == 0, done.output
    facts = json.loads(done.stdout)
    said = output.read_text().split()
    assert said == fitted.predict(frame[["a", "b", "c"]]).tolist()
    assert facts["accuracy"] == pytest.approx(np.mean(np.array(said) == frame["label"]))


def test_predict_streams_text_and_large_files(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 4))
    y = np.where(X[:, 0] > 0, 1, -1)
    (tmp_path / "text").mkdir()
    few = X.copy()
    few[:, 3] = 0.0  # text does not show that there is a fourth feature
    for k, part in enumerate((slice(0, 200), slice(200, 300))):
        lines = (
            f"{label} " + " ".join(f"{j + 1}:{value!r}" for j, value in enumerate(row) if value)
            for label, row in zip(y[part], few[part].tolist(), strict=True)
        )
        (tmp_path / "text" / f"{k}.svm").write_text("\n".join(lines) + "\n")
    model = tmp_path / "m.slim"
    fitted = slimsvm.SVC().fit(X, y)
    slimsvm.save(fitted, model)
    done = called("predict", tmp_path / "text", model, "--json", "--quiet")
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["predictions"] == fitted.predict(few).tolist()
    one = ("predict", tmp_path / "text" / "0.svm", model, "--json", "--quiet", "--decision")
    known = json.loads(called(*one).stdout)["decision"]
    monkeypatch.setattr("slimsvm.cli.streaming.free_bytes", lambda: 1000)
    calls = []
    before = slimsvm.cli.commands._predict_streaming
    monkeypatch.setattr(
        "slimsvm.cli.commands._predict_streaming",
        lambda *words, **more: calls.append(1) or before(*words, **more),
    )
    found = json.loads(called(*one).stdout)["decision"]
    np.testing.assert_allclose(found, known)
    assert calls
    np.savetxt(tmp_path / "bare.csv", X, delimiter=",")
    done = called("predict", tmp_path / "bare.csv", model)
    assert done.exit_code != 0 and "the first line has numbers" in done.output


def test_the_index_that_pandas_writes_is_no_column(folder, tmp_path):
    frame = pd.read_parquet(folder)
    frame[["a", "b", "c", "label"]].sort_values("a").to_parquet(tmp_path / "0.parquet")
    for how in ("--stream", "--no-stream"):
        done = called("train", tmp_path / "0.parquet", tmp_path / "m.slim", how, "--n-basis", 5)
        assert done.exit_code == 0, done.output
        model = slimsvm.load(tmp_path / "m.slim")
        assert model.feature_names_in_.tolist() == ["a", "b", "c"]
        assert model.classes_.tolist() == ["in", "out"]


def test_what_is_refused(folder, tmp_path):
    files = folder / "*.parquet"
    done = called("train", files, "--n-basis", 5)
    assert done.exit_code == 2 and "name the file for the model" in done.output
    nu = ("--machine", "nu-svc", "--stream", "--target", "label")
    done = called("train", files, tmp_path / "m.slim", *nu)
    assert done.exit_code == 2 and "--machine nu-svc needs all rows in memory" in done.output
    done = called("train", files, tmp_path / "m.slim", "--n-basis", 5, "--target", "goal")
    assert done.exit_code != 0 and not (tmp_path / "m.slim").exists()
    assert "goal" in (done.output + str(done.exception))
