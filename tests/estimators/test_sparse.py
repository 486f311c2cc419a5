"""SparseSVC and SparseSVR: what they promise, against exact machines, and what they refuse."""

import copy
import pickle
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import load_digits, load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV
from sklearn.utils.estimator_checks import parametrize_with_checks

from slimsvm import SVC, SVR, SparseSVC, SparseSVR
from slimsvm.datasets import checkers
from slimsvm.kernels import RBF

ESTIMATORS = [
    SparseSVC(),
    SparseSVC(n_basis=5),
    SparseSVC(loss="hinge"),
    SparseSVC(n_basis=10, loss="hinge", basis="pursuit_rows"),
    SparseSVC(n_basis=10, loss="smooth_hinge", basis="kmeans", class_weight="balanced"),
    SparseSVC(loss="least_squares", kernel="poly", coef0=1.0, fit_intercept=False, n_jobs=2),
    SparseSVC(n_basis=10, kernel="laplacian", basis="random"),
    SparseSVC(n_basis=10, kernel="linear"),
    SparseSVR(),
    SparseSVR(n_basis=5),
    SparseSVR(loss="epsilon_insensitive"),
    SparseSVR(loss="least_squares", n_basis=10, refine=False),
]


@parametrize_with_checks(ESTIMATORS)
def test_sklearn_checks(estimator, check):
    check(estimator)


def rows(n=400, seed=0):
    return checkers(n, seed=seed)


def quick(n_basis=20, **options):
    return SparseSVC(n_basis, **{"C": 10.0, "gamma": 5.0, "random_state": 0, **options})


@pytest.mark.parametrize("kernel", ["rbf", "poly", "laplacian"])
def test_with_all_rows_the_hinge_machine_is_the_exact_one(kernel):
    X, y = rows(200)
    exact = SVC(C=2.0, kernel=kernel, gamma=1.0, coef0=1.0).fit(X, y)
    sparse = SparseSVC(500, C=2.0, kernel=kernel, gamma=1.0, coef0=1.0, loss="hinge", tol=1e-6).fit(X, y)
    assert sparse.n_basis_ <= 200
    objective = -exact.certificate_.objective
    assert sparse.certificate_.objective == pytest.approx(objective, rel=1e-3)
    assert np.mean(exact.predict(X) == sparse.predict(X)) > 0.97


def test_with_all_rows_the_squared_hinge_machine_solves_the_whole_problem():
    X, y = rows(150)
    model = quick(500).fit(X, y)
    s = np.where(y == model.classes_[1], 1.0, -1.0)
    K = RBF(5.0)(X)
    f = model.decision_function(X)
    a = 2 * 10.0 * np.maximum(0.0, 1 - s * f)  # optimality: f = sum a_i s_i k(x_i, .) + b, sum a_i s_i = 0
    np.testing.assert_allclose(K @ (a * s) + model.intercept_, f, atol=1e-5)
    assert abs(a @ s) < 1e-6


@pytest.mark.parametrize("loss", ["squared_hinge", "smooth_hinge", "least_squares", "hinge"])
@pytest.mark.parametrize("basis", ["pursuit", "pursuit_rows", "random", "kmeans"])
def test_every_loss_with_every_basis(loss, basis):
    X, y = rows(1500)
    model = quick(30, loss=loss, basis=basis).fit(X, y)
    assert model.n_basis_ == 30
    assert model.basis_.shape == (30, 2)
    assert model.basis_coef_.shape == (30, 1)
    assert model.score(*rows(1000, seed=1)) > (0.8 if basis in ("pursuit", "kmeans") else 0.65)
    assert model.status_.converged, str(model.status_)
    assert (model.basis_indices_ is not None) == (basis in ("pursuit_rows", "random") and loss == "hinge")
    if model.basis_indices_ is not None:
        np.testing.assert_allclose(model.basis_, X[model.basis_indices_], atol=1e-6)


def test_refinement_gains_over_pursuit_and_pursuit_over_chance():
    X, y = rows(3000)
    refined, pursuit, chance = (
        quick(20, **options).fit(X, y).certificate_.objective for options in ({}, {"refine": False}, {"refine": False, "basis": "random"})
    )
    assert refined < pursuit < chance


def test_path_and_truncated_machines():
    X, y = rows(1000)
    model = quick(20, validation_fraction=0.2).fit(X, y)
    assert [point.n_basis for point in model.path_] == [1, 2, 5, 10, 20]
    objectives = [point.objective for point in model.path_]
    assert objectives == sorted(objectives, reverse=True)
    assert all(0 <= point.validation_score <= 1 and 0 <= point.training_score <= 1 for point in model.path_)
    small = model.truncated(5)
    assert small.n_basis_ == 5
    assert small.basis_.shape == (5, 2)
    assert model.n_basis_ == 20
    assert np.array_equal(model.truncated(20).decision_function(X), model.decision_function(X))
    with pytest.raises(ValueError, match=r"not a size of the path; the sizes are \[1, 2, 5, 10, 20\]"):
        model.truncated(7)


def test_hinge_path_is_solved_at_every_size():
    X, y = rows(1000)
    model = quick(20, loss="hinge", refine=False).fit(X, y)
    assert [point.n_basis for point in model.path_] == [1, 2, 5, 10, 20]
    objectives = [point.objective for point in model.path_]
    assert all(after <= before * 1.002 for before, after in pairwise(objectives))
    for point in model.path_:
        assert point.gap <= 1.1e-3 * point.objective


def test_auto_takes_the_smallest_that_suffices():
    X, y = load_iris(return_X_y=True)
    model = SparseSVC("auto", max_basis=50, random_state=0).fit(X, y)
    best = max(point.validation_score for point in model.path_)
    chosen = next(point for point in model.path_ if point.n_basis == model.n_basis_)
    assert chosen.validation_score >= best - 0.005
    assert all(point.validation_score < best - 0.005 for point in model.path_ if point.n_basis < model.n_basis_)


def test_several_classes_share_one_basis():
    X, y = load_digits(return_X_y=True)
    model = SparseSVC(40, C=1.0, gamma=0.001, random_state=0).fit(X[:1200], y[:1200])
    assert model.basis_.shape == (40, 64)
    assert model.basis_coef_.shape == (40, 10)
    assert model.decision_function(X[1200:]).shape == (597, 10)
    assert model.score(X[1200:], y[1200:]) > 0.93


@pytest.mark.parametrize("options", [{}, {"loss": "hinge"}, {"refine": False}], ids=str)
def test_dense_sparse_and_float32_agree(options):
    X, y = rows(1500)
    X = np.hstack([X, np.zeros((1500, 40))])
    X[:, 2:] = (np.random.default_rng(0).random((1500, 40)) < 0.05) * 0.1
    model = quick(10, **options).fit(X, y)
    sparse = quick(10, **options).fit(sp.csr_matrix(X), y)
    single = quick(10, **options).fit(X.astype(np.float32), y)
    test, _ = rows(500, seed=3)
    test = np.hstack([test, np.zeros((500, 40))])
    for other in (sparse, single):
        assert other.certificate_.objective == pytest.approx(
            model.certificate_.objective, rel=0.15
        )  # another path to another local optimum
    np.testing.assert_allclose(model.decision_function(test), model.decision_function(sp.csr_matrix(test)), atol=1e-4, rtol=1e-4)


def test_truly_sparse_rows():
    rng = np.random.default_rng(0)
    X = sp.random(800, 5000, density=0.004, format="csr", random_state=0)
    X.data[:] = 1.0
    w = rng.standard_normal(5000)
    y = (X @ w > 0).astype(int)
    model = SparseSVC(20, C=5.0, gamma=0.05, random_state=0).fit(X, y)
    assert model.score(X, y) > 0.8
    hinge = SparseSVC(20, C=5.0, gamma=0.05, loss="hinge", random_state=0).fit(X, y)
    assert hinge.score(X, y) > 0.7
    np.testing.assert_allclose(model.decision_function(X[:50]), model.decision_function(X[:50].toarray()), atol=1e-4)


def test_same_bits_for_any_number_of_threads_and_the_same_seed():
    X, y = rows(3000)
    for options in ({}, {"loss": "hinge"}):
        one, two, again = (quick(15, n_jobs=jobs, **options).fit(X, y) for jobs in (1, 2, 1))
        assert np.array_equal(one.basis_, two.basis_)
        assert np.array_equal(one.basis_coef_, two.basis_coef_)
        assert np.array_equal(one.basis_, again.basis_)


@pytest.mark.parametrize("loss", ["squared_hinge", "least_squares", "hinge"])
def test_certify_bounds_the_distance_to_the_exact_machine(loss):
    X, y = rows(300)
    exact = quick(500, loss=loss, refine=False, tol=1e-6).fit(X, y)
    least = exact.certificate_.objective
    for k in (5, 40):
        sparse = quick(k, loss=loss, refine=False).fit(X, y)
        true = sparse.certify(X, y)
        assert true.scope == "full"
        assert sparse.certificate_.scope == "subspace"
        assert true.gap >= (true.objective - least) * (1 - 1e-6) - 1e-6
        # what the fit itself says is a bound too, and a looser one: it has not seen the kernel values between the rows
        assert sparse.certificate_.bound >= (sparse.certificate_.objective - least) * (1 - 1e-6) - 1e-6
        assert sparse.certificate_.bound >= true.gap * (1 - 1e-6) - 1e-6 or loss == "hinge"
        assert 0 < sparse.certificate_.projection_error <= 1.0
        small = sparse.truncated(sparse.path_[0].n_basis).certificate_
        assert small.projection_error >= sparse.certificate_.projection_error
        assert small.bound >= (small.objective - least) * (1 - 1e-6) - 1e-6
    assert exact.certify(X, y).violation < (0.05 if loss == "hinge" else 1e-6)
    assert exact.certificate_.projection_error < 1e-3  # everything is in the span


def test_certify_obeys_its_time_limit():
    X, y = rows(6000)
    model = quick(3, refine=False).fit(X, y)
    with pytest.warns(ConvergenceWarning, match="certify stopped at max_time"):
        assert model.certify(X, y, max_time=1e-9).gap == np.inf


def test_weights_act_as_repetition_and_zero_removes():
    X, y = rows(120)
    weight = np.random.default_rng(0).integers(0, 3, 120)
    for loss in ("squared_hinge", "hinge"):
        weighted = quick(500, loss=loss).fit(X, y, sample_weight=weight)
        repeated = quick(500, loss=loss).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
        atol = 1e-6 if loss == "squared_hinge" else 1e-4
        np.testing.assert_allclose(weighted.decision_function(X), repeated.decision_function(X), atol=atol)


def test_regression_learns_a_curve_with_few_vectors():
    X = np.linspace(-3, 3, 1500)[:, None]
    y = np.sinc(X[:, 0])
    for options in ({}, {"loss": "epsilon_insensitive"}, {"loss": "least_squares"}):
        model = SparseSVR(8, C=10.0, epsilon=0.01, gamma=1.0, random_state=0, **options).fit(X, y)
        assert model.score(X, y) > 0.98, options
    exact = SVR(C=10.0, epsilon=0.01, gamma=1.0).fit(X, y)
    assert model.basis_.shape[0] < exact.support_.size
    assert SparseSVR("auto", C=10.0, epsilon=0.01, gamma=1.0, random_state=0).fit(X, y).n_basis_ <= 10


def test_max_time_leaves_a_machine_and_says_so():
    X, y = rows(20000)
    with pytest.warns(ConvergenceWarning, match="max_time"):
        model = quick(200, max_time=0.3).fit(X, y)
    assert model.score(X, y) > 0.5
    assert model.status_.reason == "max_time"
    for loss in ("hinge",):
        with pytest.warns(ConvergenceWarning, match="max_time"):
            assert quick(200, max_time=0.05, loss=loss).fit(X, y).n_basis_ >= 1


def test_warm_start_goes_on_from_the_basis():
    X, y = rows(1500)
    model = quick(10, warm_start=True).fit(X, y)
    before = model.certificate_.objective
    model.fit(X, y)
    assert model.certificate_.objective <= before * 1.001


def test_given_vectors_are_used_as_they_are():
    X, y = rows(800)
    given = np.random.default_rng(0).uniform(-2, 2, (25, 2))
    model = quick(25, basis=given).fit(X, y)
    np.testing.assert_allclose(model.basis_, given, atol=1e-6)
    moved = quick(25, basis=given, refine=True).fit(X, y)
    assert moved.certificate_.objective < model.certificate_.objective


def test_pickle_clone_copy_and_search():
    X, y = rows(300)
    model = quick(5).fit(X, y)
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(again.decision_function(X), model.decision_function(X))
    assert np.array_equal(copy.deepcopy(model).predict(X), model.predict(X))
    assert clone(model).get_params()["n_basis"] == 5
    assert GridSearchCV(quick(), {"n_basis": [3, 6]}, cv=2).fit(X, y).best_params_["n_basis"] in (3, 6)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"n_basis": 0}, "n_basis"),
        ({"n_basis": "many"}, "n_basis"),
        ({"loss": "hinge", "refine": True}, "'squared_hinge', 'smooth_hinge' or 'least_squares'"),
        ({"kernel": "laplacian", "refine": True}, "known derivative"),
        ({"kernel": "precomputed"}, "precomputed"),
        ({"basis": np.full((3, 2), np.nan)}, "NaN"),
        ({"basis": np.zeros((3, 5))}, "features"),
        ({"basis": np.zeros(3)}, "two dimensions"),
        ({"basis": "best"}, "basis"),
        ({"C": -1.0}, "C"),
        ({"gamma": -1.0}, "gamma"),
        ({"validation_fraction": 1.5}, "validation_fraction"),
        ({"max_memory": 0}, "max_memory"),
    ],
    ids=str,
)
def test_what_is_refused(options, words):
    X, y = rows(50)
    with pytest.raises(ValueError, match=words):
        quick(**options).fit(X, y)


def test_odd_but_legal_data():
    X, y = rows(60)
    assert quick(1000).fit(X, y).n_basis_ <= 60  # more than rows
    same = np.ones((40, 2))
    labels = np.array([0, 1] * 20)
    for loss in ("squared_hinge", "hinge"):
        assert quick(5, loss=loss).fit(same, labels).n_basis_ == 1
        two = quick(5, loss=loss).fit(np.vstack([same, -same]), np.repeat([0, 1], 40))
        assert two.score(np.vstack([same, -same]), np.repeat([0, 1], 40)) == 1.0
    rare = np.r_[np.zeros(59, int), 1]
    assert quick(5, validation_fraction=0.5).fit(X, rare).classes_.tolist() == [0, 1]


def test_little_memory_gives_the_same_machine():
    X, y = rows(4000)
    roomy, tight = (quick(10, refine=False, max_memory=megabytes).fit(X, y) for megabytes in (None, 1e-3))
    assert tight.certificate_.objective == pytest.approx(roomy.certificate_.objective, rel=1e-3)
