"""Where models are kept by others: skops and MLflow."""

import warnings

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import slimsvm

MODELS = [
    slimsvm.SVC(C=10.0),
    slimsvm.SparseSVC(10, random_state=0),
    slimsvm.LinearSVC(),
    slimsvm.ReducedSVC(20, random_state=0),
    make_pipeline(StandardScaler(), slimsvm.NuSVC(nu=0.1)),
]


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_skops_brings_a_model_back(model):
    io = pytest.importorskip("skops.io")
    X, y = load_iris(return_X_y=True)
    stored = io.dumps(model.fit(X, y))
    unknown = io.get_untrusted_types(data=stored)
    assert all(name.startswith(("slimsvm.", "sklearn.")) for name in unknown), unknown
    again = io.loads(stored, trusted=unknown)
    assert np.array_equal(again.predict(X), model.predict(X))
    assert np.array_equal(again.decision_function(X), model.decision_function(X))


def test_mlflow_logs_and_loads(tmp_path, monkeypatch):
    mlflow = pytest.importorskip("mlflow")
    pytest.importorskip("mlflow.sklearn")
    X, y = load_iris(return_X_y=True)
    model = slimsvm.SVC(C=10.0).fit(X, y)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")  # a folder: databases need more packages
    mlflow.set_tracking_uri(f"file://{tmp_path / 'runs'}")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with mlflow.start_run():
            logged = mlflow.sklearn.log_model(model, name="model", serialization_format="pickle")
        again = mlflow.sklearn.load_model(logged.model_uri)
    assert np.array_equal(again.predict(X), model.predict(X))
