"""Prediction of few rows: a compiled call that must say what many rows are told."""

import numpy as np
import pytest
from sklearn.datasets import load_iris, make_classification
from sklearn.exceptions import NotFittedError

from slimsvm import SVC, SVR, LinearSVC, NuSVC, OneClassSVM, SparseSVC, SparseSVR

KERNELS = {
    "rbf": {},
    "poly": {"degree": 2, "coef0": 1.0, "gamma": 0.5},
    "sigmoid": {"gamma": 0.01},
    "linear": {},
    "laplacian": {"gamma": 0.2},
}


@pytest.fixture(scope="module", params=[np.float64, np.float32])
def rows(request):
    X, y = make_classification(
        300, 7, n_informative=6, n_redundant=0, n_classes=6, n_clusters_per_class=1, random_state=0
    )
    return (X + 3.0).astype(request.param), y


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("n_classes", [2, 3, 6])
def test_one_row_as_many(rows, kernel, n_classes):
    X, y = rows
    model = SVC(kernel=kernel, decision_function_shape="ovo", **KERNELS[kernel]).fit(
        X, np.minimum(y, n_classes - 1)
    )
    many = model.decision_function(X)
    largest = 3000.0 if kernel == "poly" else 100.0 if kernel == "linear" else 1.0  # kernel value
    near = {"atol": largest * (1e-6 if X.dtype == np.float32 else 1e-11)}
    for n in (1, 3, 4):
        np.testing.assert_allclose(model.decision_function(X[:n]), many[:n], **near)
    np.testing.assert_array_equal(model.predict(X[5:6]), model.predict(X)[5:6])
    predict = model.fast_predictor()
    assert [predict(x) for x in X[:50]] == model.predict(X[:50]).tolist()
    np.testing.assert_array_equal(predict(X), model.predict(X))


@pytest.mark.parametrize(
    "model", [SVR(), OneClassSVM(nu=0.1), SparseSVC(20), SparseSVR(20), NuSVC(nu=0.05)]
)
def test_every_kind_of_model(rows, model):
    X, y = rows
    model.fit(X, y)
    predict, many = model.fast_predictor(), model.predict(X)
    near = {"rtol": 1e-4, "atol": 1e-4}
    np.testing.assert_allclose([predict(x) for x in X[:30]], many[:30], **near)
    np.testing.assert_allclose(
        [model.predict(X[i : i + 1])[0] for i in range(30)], many[:30], **near
    )


def test_what_is_refused_as_ever(rows):
    X, y = rows
    for model in (SVC(), LinearSVC()):
        with pytest.raises(NotFittedError):
            model.predict(X[:1])
        model.fit(X, y)
        with pytest.raises(ValueError, match="features"):
            model.predict(X[:1, :3])
        with pytest.raises(ValueError, match="NaN"):
            model.predict(np.full((1, 7), np.nan, X.dtype))
        with pytest.raises(ValueError, match="infinity"):
            model.predict(np.full((1, 7), np.inf, X.dtype))
        with pytest.raises(ValueError, match="2D"):
            model.predict(X[0])
    with pytest.raises(NotFittedError):
        SVC().fast_predictor()


def test_replaced_attributes_count(rows):
    X, y = rows
    model = SVC().fit(X, y > 2)
    before = model.decision_function(X[:1])
    model.intercept_ = model.intercept_ + 1.0
    np.testing.assert_allclose(model.decision_function(X[:1]), before + 1.0)


@pytest.mark.parametrize("rows", [[0.0], [0.0] * 5, [], 1.0, [[0.0]], np.zeros((1, 2, 4))])
def test_a_fast_predictor_refuses_rows_of_another_length(rows):
    """Compiled loops would read what stands behind them in memory."""
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match="expected one row of 4 features"):
        SVC().fit(X, y).fast_predictor()(rows)
