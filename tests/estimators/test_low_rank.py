"""LowRankSVC: the exact model where the factor is exact, and what it promises where it is not."""

import pickle
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize
from sklearn.datasets import load_digits, load_iris
from sklearn.exceptions import ConvergenceWarning

import slimsvm
from slimsvm import SVC, LowRankSVC
from slimsvm.basis.cholesky import pivoted, thresholded
from slimsvm.datasets import checkers
from slimsvm.kernels import RBF
from slimsvm.persistence.libsvm import load_libsvm, save_libsvm
from slimsvm.tiles import prepare

both = pytest.mark.parametrize("factorization", ["pivoted", "threshold"])
either_way = pytest.mark.parametrize("fit_intercept", [True, False])


def rows(n=300, seed=0):
    return checkers(n, seed=seed)


def machine(factorization="pivoted", rank=1.0, **options):
    return LowRankSVC(factorization, rank, **{"C": 2.0, "gamma": 1.0, "random_state": 0, **options})


@both
@pytest.mark.parametrize("kernel", ["rbf", "poly", "linear", "laplacian"])
def test_with_all_columns_and_an_intercept_it_is_the_exact_machine(factorization, kernel):
    X, y = rows()
    options = {"kernel": kernel, "coef0": 1.0, "C": 2.0, "gamma": 1.0}
    exact, model = (
        SVC(**options).fit(X, y),
        machine(factorization, fit_intercept=True, **options).fit(X, y),
    )
    scale = np.abs(exact.decision_function(X)).max()
    np.testing.assert_allclose(
        model.decision_function(X), exact.decision_function(X), atol=2e-4 * scale
    )
    assert model.certificate_.scope == "subspace"
    assert model.status_.converged and model.certificate_.holds


def least(Q, upper):
    """The dual without an equality, by SciPy."""
    found = minimize(
        lambda a: (0.5 * a @ Q @ a - a.sum(), Q @ a - 1.0),
        np.zeros(len(Q)),
        jac=True,
        method="L-BFGS-B",
        bounds=[(0.0, u) for u in upper],
        options={"maxiter": 20000, "maxfun": 10**6, "ftol": 1e-15, "gtol": 1e-10},
    )  # fmt: skip
    return found.fun


@both
@pytest.mark.parametrize("rank", [10, 60, 1.0])
def test_without_an_intercept_against_scipy(factorization, rank):
    X, y = rows(150)
    weight = np.random.default_rng(0).uniform(0.5, 2.0, 150)
    model = machine(factorization, rank).fit(X, y, sample_weight=weight)
    s = np.where(y == model.classes_[1], 1.0, -1.0)
    operand = prepare(RBF(1.0), X, dtype=np.float64)
    size = rank if isinstance(rank, int) else 150
    F = (
        pivoted(operand, size).V
        if factorization == "pivoted"
        else thresholded(operand, size).V.toarray()
    )
    value = least((F @ F.T) * np.outer(s, s), 2.0 * weight)
    assert model.certificate_.objective == pytest.approx(-value, rel=1e-6)
    assert model.certificate_.gap <= 1e-9 * model.certificate_.objective
    a = np.abs(model.dual_coef_[0])
    assert (a <= 2.0 * weight[model.support_] * (1 + 1e-9)).all()
    np.testing.assert_array_equal(np.sign(model.dual_coef_[0]), s[model.support_])
    # the prediction is with the kernel itself
    expected = RBF(1.0)(X, X[model.support_]) @ model.dual_coef_[0]
    np.testing.assert_allclose(model.decision_function(X), expected, atol=1e-9)
    assert not model.intercept_.any()


@both
@either_way
def test_weights_act_as_repetition_and_zero_removes(factorization, fit_intercept):
    X, y = rows(45)
    X = np.vstack([X, X[:15]])  # equal rows, some with another label
    y = np.append(y, y[5:20])
    weight = np.random.default_rng(0).integers(0, 4, 60)
    options = {"fit_intercept": fit_intercept, "rank": 0.1}
    weighted = machine(factorization, **options).fit(X, y, sample_weight=weight)
    repeated = machine(factorization, **options).fit(
        np.repeat(X, weight, axis=0), np.repeat(y, weight)
    )
    np.testing.assert_allclose(
        weighted.decision_function(X), repeated.decision_function(X), atol=1e-6
    )
    order = np.random.default_rng(1).permutation(60)
    moved = machine(factorization, **options).fit(X[order], y[order], sample_weight=weight[order])
    np.testing.assert_allclose(weighted.decision_function(X), moved.decision_function(X), atol=1e-6)


@both
@pytest.mark.parametrize("options", [{}, {"fit_intercept": True}, {"retrain": True}], ids=str)
def test_dense_sparse_and_threads(factorization, options):
    X, y = load_digits(return_X_y=True)
    X, y, new, labels = X[:400] / 16.0, y[:400], X[400:] / 16.0, y[400:]
    one, two = (
        machine(factorization, 0.1, n_jobs=jobs, gamma=0.05, **options).fit(X, y) for jobs in (1, 2)
    )
    assert np.array_equal(one.dual_coef_, two.dual_coef_) and np.array_equal(
        one.intercept_, two.intercept_
    )
    assert one.score(new, labels) > (
        0.9 if factorization == "pivoted" else 0.1
    )  # "may not be close"
    assert one.factor_error_.shape == one.factor_shift_.shape == (45,)
    assert one.factor_shift_.any() == (factorization == "threshold")
    assert one.dual_coef_.shape == (9, one.support_.size)
    few = y < 3
    dense, sparse = (
        machine(factorization, 0.3, gamma=0.05, **options).fit(form, y[few])
        for form in (X[few], sp.csr_matrix(X[few]))
    )
    assert dense.certificate_.objective == pytest.approx(sparse.certificate_.objective, rel=1e-6)


@pytest.mark.parametrize("retrain", [False, True])
def test_more_rows(retrain):
    X, y = rows(3000)
    model = machine(rank=300, C=10.0, gamma=5.0, retrain=retrain, tol=1e-4).fit(X, y)
    assert model.certificate_.precision == "float32" or retrain
    assert 0 < model.factor_error_[0] < 0.1
    assert model.status_.converged and model.certificate_.holds
    assert model.score(*rows(1000, seed=1)) > 0.85
    assert {"seconds", "objective", "gap", "violation"} <= set(model.history_)
    early = machine(rank=300, C=1e4, gamma=5.0, tol=1e-9, max_iter=2)
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        early.fit(X, y)
    assert early.fit_status_ == 1 and early.certificate_.gap > 0


def test_retrained_is_the_exact_machine_on_the_support_vectors():
    X, y = rows(400)
    found = machine(rank=40).fit(X, y)
    again = machine(rank=40, retrain=True).fit(X, y)
    exact = SVC(C=2.0, kernel=RBF(1.0)).fit(X[found.support_], y[found.support_])
    np.testing.assert_allclose(again.decision_function(X), exact.decision_function(X), atol=1e-6)
    assert again.intercept_.any()
    assert set(again.support_) <= set(found.support_)


def test_retraining_where_all_support_vectors_are_of_one_class():
    X = np.array([[0.0], [0.1], [0.2], [9.0]])
    model = machine(rank=1, retrain=True, kernel="linear", C=1.0).fit(X, [0, 0, 0, 1])
    assert np.isfinite(model.decision_function(X)).all()


@both
def test_votes_of_pairs(factorization):
    X, y = load_iris(return_X_y=True)
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    model = machine(factorization, 0.5, gamma=0.5).fit(X, names)
    assert model.score(X, names) > 0.95
    assert model.decision_function(X).shape == (150, 3)
    assert model.n_support_.sum() == model.support_.size
    pair = y < 2
    two = machine(factorization, 0.5, gamma=0.5).fit(X[pair], names[pair])
    assert two.decision_function(X).shape == (150,)


def test_files(tmp_path):
    X, y = rows(200)
    for labels in (y, np.arange(200) % 3):
        model = machine(rank=30).fit(X, labels)
        slimsvm.save(model, tmp_path / "model.slim")
        again = slimsvm.load(tmp_path / "model.slim")
        assert type(again) is LowRankSVC and again.get_params() == model.get_params()
        assert np.array_equal(again.decision_function(X), model.decision_function(X))
        assert np.array_equal(again.factor_error_, model.factor_error_)
        assert np.array_equal(pickle.loads(pickle.dumps(model)).predict(X), model.predict(X))
        save_libsvm(model, tmp_path / "model.libsvm")
        np.testing.assert_allclose(
            load_libsvm(tmp_path / "model.libsvm").decision_function(X),
            model.decision_function(X),
            atol=1e-9,
        )


def test_max_time():
    X, y = rows(8000)
    with pytest.warns(ConvergenceWarning, match="max_time"):
        model = machine(rank=0.2, max_time=0.05, C=1e5, tol=1e-12, gamma=20.0).fit(X, y)
    assert np.isfinite(model.decision_function(X)).all()


@pytest.mark.parametrize("factorization", ["pivoted", "threshold"])
def test_max_time_ends_the_factorisation(factorization):
    X, y = checkers(1500, seed=0)
    with pytest.warns(ConvergenceWarning, match="max_time"):
        model = LowRankSVC(
            factorization, 0.5, max_time=1e-6, gamma=20.0, tol=0.9, random_state=0
        ).fit(X, y)
    assert model.status_.reason == "max_time" and model.fit_status_ == 1
    assert np.isfinite(model.factor_error_).all() and np.isfinite(model.decision_function(X)).all()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"rank": 0}, "rank"),
        ({"rank": 0.0}, "rank"),
        ({"rank": 1.5}, "rank"),
        ({"rank": -3}, "rank"),
        ({"rank": 51}, "rank=51 is more than the 50 rows"),
        ({"factorization": "complete"}, "factorization"),
        ({"retrain": "yes"}, "retrain"),
        ({"C": 0.0}, "C"),
        ({"gamma": -1.0}, "gamma"),
        ({"tol": 0.0}, "tol"),
        ({"max_time": 0}, "max_time"),
    ],
    ids=str,
)
def test_what_is_refused(options, words):
    X, y = rows(50)
    with pytest.raises(ValueError, match=words):
        machine(**options).fit(X, y)


def test_odd_but_legal_data():
    same = np.ones((40, 2))
    for factorization in ("pivoted", "threshold"):
        model = machine(factorization, 0.1).fit(same, np.arange(40) % 2)
        assert np.isfinite(model.decision_function(same)).all()
        zero = machine(factorization, 0.1, kernel="linear").fit(
            np.zeros((10, 2)), np.arange(10) % 2
        )
        assert not zero.decision_function(np.ones((3, 2))).any()
        two = machine(factorization, 2).fit(np.array([[0.0], [1.0]]), ["a", "b"])
        assert two.score(np.array([[0.0], [1.0]]), ["a", "b"]) == 1.0
    with pytest.raises(ValueError, match="cannot be factorised"):
        machine("threshold", kernel="precomputed").fit(-np.eye(6), np.arange(6) % 2)


def test_few_rows_at_a_large_C():
    """The exact solver is called until it has nothing to do, not once."""
    X, y = rows(200)
    model = machine(rank=5, C=1e5, max_iter=-1).fit(X, y)
    assert model.status_.converged and model.certificate_.violation < 1e-9
    with warnings.catch_warnings():  # whether rounding errors are in the way depends on digits
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = machine(rank=5, C=1e30, max_iter=-1).fit(X, y)
    assert model.status_.converged == model.certificate_.holds
