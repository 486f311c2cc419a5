"""Where models are kept by others: skops and MLflow."""

import inspect
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


@pytest.mark.parametrize("format", ["pickle", "skops"])
def test_mlflow_logs_and_loads(tmp_path, monkeypatch, format):
    mlflow = pytest.importorskip("mlflow")
    store = pytest.importorskip("mlflow.sklearn")
    about = {"serialization_format": format}
    if format == "skops":  # the default of newer versions, which want to be told whom to trust
        io = pytest.importorskip("skops.io")
        if "skops_trusted_types" not in inspect.signature(store.log_model).parameters:
            pytest.skip("this MLflow has no skops_trusted_types")
    X, y = load_iris(return_X_y=True)
    model = slimsvm.SVC(C=10.0).fit(X, y)
    if format == "skops":
        about = {"skops_trusted_types": io.get_untrusted_types(data=io.dumps(model))}
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")  # a folder: databases need more packages
    mlflow.set_tracking_uri(f"file://{tmp_path / 'runs'}")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with mlflow.start_run():
            logged = mlflow.sklearn.log_model(model, name="model", **about)
        again = mlflow.sklearn.load_model(logged.model_uri)
    assert np.array_equal(again.predict(X), model.predict(X))
