"""Models as ES modules, in Node."""

import json
import shutil
import subprocess
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import slimsvm
from slimsvm.export.description import described
from slimsvm.export.numbers import numbers_of
from tests.export.models import SET_UPS, classes, exact_outputs, fitted, rounded_outputs, scores_of

node = pytest.mark.skipif(shutil.which("node") is None, reason="Node is not installed")
RUN = """
import { readFileSync } from "node:fs";
const given = JSON.parse(readFileSync(0, "utf8")), found = {};
for (const [name, rows] of Object.entries(given)) {
  const model = await import(`./${name}.mjs`);
  const of = (f) => rows.map((row) => f(row));
  const [labels, scores] = [of(model.predict), of(model.scores)];
  found[name] = { labels, scores, probabilities: of(model.probabilities), about: model.about };
}
console.log(JSON.stringify(found));
"""


def in_node(folder, models):
    """What modules say of rows, all in one process: {name: (estimator, rows, dtype)}."""
    for name, (estimator, _, dtype) in models.items():
        slimsvm.to_javascript(estimator, folder / f"{name}.mjs", dtype=dtype)
    (folder / "run.mjs").write_text(RUN)
    given = json.dumps({name: rows.tolist() for name, (_, rows, _) in models.items()})
    run = subprocess.run(
        ["node", "run.mjs"], cwd=folder, input=given, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


@node
def test_modules_answer_as_the_models_do(tmp_path):
    models = {}
    for at, name in enumerate(SET_UPS):
        estimator, X = fitted(name)
        models[name.replace(" ", "_")] = estimator, X[:30], ("float64", "int8")[at % 2]
    for name, said in in_node(tmp_path, models).items():
        estimator, X, dtype = models[name]
        d = described(estimator)
        outputs = exact_outputs(estimator, X)
        if dtype == "int8":
            outputs = rounded_outputs(d, numbers_of(d, "int8"), X)
        error = 1e-9 * max(1.0, np.abs(outputs).max())
        if d.answer == "number":
            assert np.abs(np.array(said["labels"]) - outputs[:, 0]).max() < error, name
            continue
        expected = scores_of(estimator, outputs).reshape(len(X), -1)
        assert np.abs(np.array(said["scores"]) - expected).max() < error, name
        assert np.array_equal(said["labels"], estimator._predicted(outputs)), name


@node
def test_probabilities_words_and_names(tmp_path):
    pandas = pytest.importorskip("pandas")
    makers = {
        "svc": slimsvm.SVC(probability=True),
        "sparse": slimsvm.SparseSVC(15, random_state=0),
        "cv": slimsvm.SVCCV(Cs=[1.0, 10.0], gammas=[0.01, 0.1]),
        "calibrated": make_pipeline(
            StandardScaler(), CalibratedClassifierCV(slimsvm.SVC(), ensemble=False)
        ),
        "temperature": CalibratedClassifierCV(
            slimsvm.LinearSVC(), method="temperature", ensemble=False
        ),
    }
    models = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for n_classes in (2, 6):
            X, y = classes(n_classes, 16)
            X = pandas.DataFrame(X, columns=[f"wide {k}" for k in range(16)])
            words = np.array(["ä", "b", "c", "d", "e", "f"])[y]
            for name, model in makers.items():
                fitted_one = clone(model).fit(X, words)
                models[f"{name}{n_classes}"] = fitted_one, X.to_numpy()[:40], "float64"
        said = in_node(tmp_path, models)
        for name, (model, rows, _) in models.items():
            table = pandas.DataFrame(rows, columns=model.feature_names_in_)
            # 1e-6: SparseSVC computes in float32
            error = np.abs(np.array(said[name]["probabilities"]) - model.predict_proba(table))
            assert error.max() < 1e-6, name
            assert said[name]["labels"] == model.predict(table).tolist()
            assert said[name]["about"]["features"][:2] == ["wide 0", "wide 1"]


@node
def test_labels_that_javascript_would_round_are_strings(tmp_path):
    X, y = classes(3, 16)
    model = slimsvm.SVC().fit(X, 2**53 + y)
    said = in_node(tmp_path, {"large": (model, X[:20], "float64")})["large"]
    assert said["labels"] == [str(label) for label in model.predict(X[:20]).tolist()]


def test_what_is_refused_leaves_no_file(tmp_path):
    model, path = fitted("binary rbf 36")[0], tmp_path / "model.mjs"
    with pytest.raises(ValueError, match="is none of 'float64', 'float32', 'int8'"):
        slimsvm.to_javascript(model, path, dtype="float")
    for most in (1000, 39_000):
        with pytest.raises(ValueError, match="max_bytes="):
            slimsvm.to_javascript(model, path, max_bytes=most)
    with pytest.raises(IsADirectoryError):
        slimsvm.to_javascript(model, tmp_path)
    assert not list(tmp_path.iterdir())
