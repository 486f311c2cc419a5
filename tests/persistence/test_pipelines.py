"""Model files of pipelines and calibrated models, and file objects: nothing is pickled."""

import io
import zipfile

import numpy as np
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_iris
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.impute import SimpleImputer
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    Binarizer,
    FunctionTransformer,
    MinMaxScaler,
    PolynomialFeatures,
    PowerTransformer,
    QuantileTransformer,
    RobustScaler,
    StandardScaler,
)

from slimsvm import SVC, LinearSVC, SparseSVC, load, save

X, y = load_iris(return_X_y=True)


@pytest.mark.parametrize(
    "model",
    [
        make_pipeline(StandardScaler(), SVC()),
        make_pipeline(MinMaxScaler((-1, 1)), PCA(3), LinearSVC(penalty="l1")),
        make_pipeline(RobustScaler(), make_pipeline(StandardScaler(), SparseSVC(n_basis=5))),
        CalibratedClassifierCV(SVC(), ensemble=False),
        CalibratedClassifierCV(make_pipeline(StandardScaler(), LinearSVC()), method="isotonic"),
        CalibratedClassifierCV(SVC(), method="temperature"),
        make_pipeline(SimpleImputer(missing_values=1.4, add_indicator=True), SVC()),
        make_pipeline(PowerTransformer(), PolynomialFeatures(), LinearSVC()),
        make_pipeline(QuantileTransformer(n_quantiles=20), Binarizer(threshold=0.3), SVC()),
        make_pipeline(Nystroem(n_components=9), RBFSampler(n_components=9), LinearSVC()),
    ],
    ids=[
        "scaler",
        "three steps",
        "nested",
        "calibrated",
        "isotonic",
        "temperature",
        "imputer",
        "powers",
        "quantiles",
        "approximate kernels",
    ],
)
def test_the_same_predictions_from_a_file(model, tmp_path):
    model.fit(X, y)
    save(model, tmp_path / "model.slim")
    again = load(tmp_path / "model.slim")
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    method = "predict_proba" if hasattr(model, "predict_proba") else "decision_function"
    np.testing.assert_array_equal(getattr(again, method)(X), getattr(model, method)(X))
    assert str(again) == str(model)
    with zipfile.ZipFile(tmp_path / "model.slim") as archive:
        names = archive.namelist()
        assert all(
            name == "header.json" or archive.read(name)[:6] == b"\x93NUMPY" for name in names
        )


def test_file_objects(tmp_path):
    model, buffer = SVC().fit(X, y), io.BytesIO()
    save(model, buffer)
    buffer.seek(0)
    np.testing.assert_array_equal(load(buffer).predict(X), model.predict(X))
    with open(tmp_path / "model.slim", "wb") as file:
        save(model, file)
        assert not file.closed
    with open(tmp_path / "model.slim", "rb") as file:
        np.testing.assert_array_equal(load(file).predict(X), model.predict(X))
    with pytest.raises(ValueError, match="The file is not a model that can be loaded"):
        load(io.BytesIO(b"nothing"))


def test_what_a_file_cannot_hold():
    with pytest.raises(NotFittedError):
        save(make_pipeline(StandardScaler(), SVC()), io.BytesIO())
    for model in (
        make_pipeline(FunctionTransformer(np.abs), SVC()),
        make_pipeline(StandardScaler(), LogisticRegression()),
    ):
        with pytest.raises(ValueError, match="which a model file cannot hold"):
            save(model.fit(X, y), io.BytesIO())
