"""What users of scikit-learn's classes rely on, and its own tests do not try."""

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.svm
from sklearn.datasets import load_diabetes, load_iris

import slimsvm


@pytest.mark.parametrize("kind", [sp.csr_matrix, sp.csc_matrix, sp.coo_matrix])
@pytest.mark.parametrize("classes", [2, 3])
def test_weights_of_a_sparse_matrix_are_one(kind, classes):
    """With ``*`` a matrix multiplies as a matrix, and an array entry by entry."""
    X, y = load_iris(return_X_y=True)
    X, y = kind(X[y < classes]), y[y < classes]
    ours, theirs = (m.SVC(kernel="linear", tol=1e-6).fit(X, y) for m in (slimsvm, sklearn.svm))
    assert type(ours.coef_) is type(theirs.coef_)
    np.testing.assert_allclose((X * ours.coef_.T).toarray(), (X * theirs.coef_.T).toarray(), 1e-3)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("LinearSVC", {"tol": 1e-9}),
        ("LinearSVC", {"penalty": "l1", "dual": False, "tol": 1e-9, "max_iter": 100_000}),
        ("LinearSVR", {"tol": 1e-9, "C": 0.01, "max_iter": 1_000_000}),
    ],
)
def test_rows_of_negative_weight_leave(name, options):
    X, y = load_iris(return_X_y=True)
    weight = np.ones(y.size)
    weight[::7] = -1.0
    ours, theirs = (
        getattr(m, name)(**options).fit(X, y, sample_weight=weight) for m in (slimsvm, sklearn.svm)
    )
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-3)  # LIBLINEAR's own precision
    without = getattr(slimsvm, name)(**options).fit(X[weight > 0], y[weight > 0])
    np.testing.assert_allclose(ours.coef_, without.coef_, atol=1e-9)
    with pytest.raises(ValueError, match="all samples have zero or negative weights"):
        getattr(slimsvm, name)().fit(X, y, sample_weight=-np.ones(y.size))


@pytest.mark.parametrize("kind", [str, object])
def test_targets_may_be_texts_of_numbers(kind):
    X, y = load_diabetes(return_X_y=True)
    texts = np.array([str(value) for value in y[:50]], kind)
    model, plain = slimsvm.SVR().fit(X[:50], texts), slimsvm.SVR().fit(X[:50], y[:50])
    np.testing.assert_array_equal(model.predict(X), plain.predict(X))


def test_probabilities_that_are_not_there_are_named_in_scikit_learns_words():
    """Which its SelfTrainingClassifier, among others, passes on."""
    for name in ("SVC", "NuSVC"):
        with pytest.raises(AttributeError, match=f"This '{name}' has no attribute 'predict_proba'"):
            _ = getattr(slimsvm, name)().predict_proba


@pytest.mark.parametrize("wrong", ["nan", "inf", "many"])
def test_other_texts_are_no_targets(wrong):
    with pytest.raises(ValueError, match=r"must be numbers|could not convert|NaN|infinity"):
        slimsvm.SVR().fit([[0.0], [1.0]], np.array(["1", wrong]))
