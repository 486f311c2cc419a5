"""Probabilities of SVC and NuSVC: sigmoids from rows left out, pairs coupled."""

import pickle
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize
from sklearn.calibration import CalibratedClassifierCV, _sigmoid_calibration
from sklearn.datasets import load_breast_cancer, load_iris, make_classification
from sklearn.ensemble import StackingClassifier
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

import slimsvm
from slimsvm import SVC, NuSVC
from slimsvm.multiclass import OneVsOne
from slimsvm.probability import coupled, fold_of_rows, sigmoid

pytestmark = pytest.mark.filterwarnings("ignore:The `probability`:FutureWarning")


def test_the_sigmoid_is_that_of_maximum_likelihood():
    rng = np.random.default_rng(0)
    f = 3 * rng.normal(size=400)
    y = rng.uniform(size=400) < 1 / (1 + np.exp(1 - f))
    np.testing.assert_allclose(
        sigmoid(f, y, np.ones(400)), _sigmoid_calibration(f, y.astype(float)), atol=1e-6
    )
    weight = rng.integers(1, 4, 400).astype(float)
    repeated = np.repeat(f, weight.astype(int)), np.repeat(y, weight.astype(int))
    np.testing.assert_allclose(
        sigmoid(f, y, weight), sigmoid(*repeated, np.ones(repeated[0].size)), rtol=1e-6
    )


def test_coupling_is_the_least_squares_of_wu_lin_and_weng():
    r = np.random.default_rng(0).uniform(0.05, 0.95, (4, 6))
    i, j = np.triu_indices(4, 1)
    for pairs, p in zip(r, coupled(r, 4), strict=True):
        R = np.zeros((4, 4))
        R[i, j], R[j, i] = pairs, 1 - pairs

        def miss(q, R=R):
            return sum((R[b, a] * q[a] - R[a, b] * q[b]) ** 2 for a in range(4) for b in range(4))

        best = minimize(
            miss,
            np.full(4, 0.25),
            bounds=[(0, 1)] * 4,
            constraints={"type": "eq", "fun": lambda q: q.sum() - 1},
            tol=1e-14,
        )
        np.testing.assert_allclose(p, best.x, atol=1e-6)


@pytest.mark.parametrize("n", [300, 2600])
def test_out_of_fold_scores_are_those_of_fits_without_the_fold(n):
    """2,600 rows: by decomposition, with the cache of the fit; few: one subproblem."""
    X, y = make_classification(n, 6, flip_y=0.1, random_state=0)
    model = SVC(C=2.0, probability=True).fit(X, y)
    fold, scores = fold_of_rows(np.where(y == 1, 1.0, -1.0)), np.empty(n)
    gamma = model.kernel_.gamma
    for k in range(5):
        held = fold == k
        alone = SVC(C=2.0, gamma=gamma).fit(X[~held], y[~held])
        scores[held] = alone.decision_function(X[held])
    A, B = sigmoid(-scores, y == 0, np.ones(n))
    # the scores are known up to the tolerance of 1e-3
    np.testing.assert_allclose([model._probA[0], model._probB[0]], [A, B], atol=2e-2)
    p = model.predict_proba(X[:20])[:, 0]
    expected = 1 / (
        1 + np.exp(-model._probA[0] * model.decision_function(X[:20]) + model._probB[0])
    )
    np.testing.assert_allclose(p, expected, rtol=1e-9)


def test_many_small_classes_have_the_sigmoids_of_pairs_one_by_one():
    X, y = make_classification(480, 8, n_informative=6, n_classes=8, flip_y=0.1, random_state=0)
    weight = np.random.default_rng(0).integers(1, 4, y.size).astype(float)
    together = SVC(probability=True).fit(X, y, weight)  # in strips
    alone = SVC(probability=True, warm_start=True).fit(X, y, weight)
    np.testing.assert_allclose(together._probA, alone._probA, rtol=1e-3)
    np.testing.assert_allclose(together._probB, alone._probB, atol=1e-3)
    i, j = 2, 5  # and a pair from nothing but fits without the folds
    some = np.flatnonzero((y == i) | (y == j))
    fold, scores = fold_of_rows(y[some]), np.empty(some.size)
    for k in range(5):
        held, left = some[fold == k], some[fold != k]
        model = SVC(gamma=together.kernel_.gamma).fit(X[left], y[left], weight[left])
        scores[fold == k] = -model.decision_function(X[held])
    at = np.flatnonzero([pair == (i, j) for pair in OneVsOne(8).pairs])[0]
    A, B = sigmoid(scores, y[some] == i, weight[some])
    np.testing.assert_allclose([together._probA[at], together._probB[at]], [A, B], atol=1e-3)


@pytest.mark.parametrize("machine", [SVC, NuSVC])
def test_as_good_as_calibration(machine):
    X, y = load_breast_cancer(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    A, B, a, b = train_test_split(X, y, random_state=0)
    model = machine(probability=True).fit(A, a)
    calibrated = CalibratedClassifierCV(machine(), ensemble=False).fit(A, a)
    p, q = model.predict_proba(B), calibrated.predict_proba(B)
    assert log_loss(b, p) <= log_loss(b, q) + 0.005
    assert np.mean((p[:, 1] - b) ** 2) <= np.mean((q[:, 1] - b) ** 2) + 0.005


def test_nothing_is_random_and_files_keep_it(tmp_path):
    X, y = load_iris(return_X_y=True)
    model = SVC(probability=True).fit(X, y)
    p = model.predict_proba(X)
    assert p.shape == (150, 3) and np.allclose(p.sum(axis=1), 1.0) and (p >= 0).all()
    np.testing.assert_array_equal(
        SVC(probability=True, random_state=3).fit(X, y).predict_proba(X), p
    )
    np.testing.assert_array_equal(np.exp(model.predict_log_proba(X)).round(12), p.round(12))
    slimsvm.save(model, tmp_path / "model.slim")
    for again in (slimsvm.load(tmp_path / "model.slim"), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(again.predict_proba(X), p)
    sparse = SVC(probability=True).fit(sp.csr_matrix(X), y)
    np.testing.assert_allclose(sparse.predict_proba(sp.csr_matrix(X)), p, atol=1e-4)
    repeated = SVC(probability=True).fit(X, np.array(["a", "b", "c"])[y])
    np.testing.assert_allclose(repeated.predict_proba(X), p, rtol=1e-9)


def test_what_is_said():
    X, y = load_iris(return_X_y=True)
    with pytest.raises(AttributeError, match=r"CalibratedClassifierCV\(SVC.*SVC\(probability=True"):
        _ = SVC().fit(X, y).predict_proba
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        SVC().fit(X, y)
    few = SVC(probability=True).fit(X[[0, 60, 61]], y[[0, 60, 61]])  # a class of one row
    assert np.isfinite(few.predict_proba(X)).all()


def test_a_warm_start_that_cannot_go_on_says_so():
    X, y = load_iris(return_X_y=True)
    model = SVC(warm_start=True).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.set_params(C=2.0).fit(X, y)
    with pytest.warns(UserWarning, match="begins anew"):
        model.fit(X[1:], y[1:])


@pytest.mark.parametrize("kind", [SVC, NuSVC])
def test_methods_have_their_names_by_which_others_call_them(kind):
    """StackingClassifier asks for the name of the first method that there is."""
    X, y = load_iris(return_X_y=True)
    model = kind(probability=True).fit(X, y)
    for name in ("predict_proba", "predict_log_proba"):
        assert getattr(model, name).__name__ == getattr(kind, name).__name__ == name
        np.testing.assert_array_equal(getattr(kind, name)(model, X), getattr(model, name)(X))
        assert not hasattr(kind(), name)
    stacked = StackingClassifier([("ours", kind(probability=True))], cv=3).fit(X, y)
    assert stacked.stack_method_ == ["predict_proba"] and stacked.score(X, y) > 0.95
