"""SparseSVC and SparseSVR: what they promise, against exact models, and what they refuse."""

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

from slimsvm import SVC, SVR, CrammerSingerSVC, SparseSVC, SparseSVR
from slimsvm.datasets import checkers
from slimsvm.kernels import RBF


def rows(n=400, seed=0):
    return checkers(n, seed=seed)


def quick(n_basis=20, **options):
    given = {"C": 10.0, "gamma": 5.0, "basis": "pursuit", "random_state": 0, **options}
    return SparseSVC(n_basis, **given)


@pytest.mark.parametrize("kernel", ["rbf", "poly", "laplacian"])
def test_with_all_rows_the_hinge_machine_is_the_exact_one(kernel):
    X, y = rows(200)
    exact = SVC(C=2.0, kernel=kernel, gamma=1.0, coef0=1.0).fit(X, y)
    sparse = SparseSVC(500, C=2.0, kernel=kernel, gamma=1.0, coef0=1.0, loss="hinge", tol=1e-6).fit(
        X, y
    )
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
    a = (
        2 * 10.0 * np.maximum(0.0, 1 - s * f)
    )  # optimality: f = sum a_i s_i k(x_i, .) + b, sum a_i s_i = 0
    np.testing.assert_allclose(K @ (a * s) + model.intercept_, f, atol=1e-5)
    assert abs(a @ s) < 1e-6


@pytest.mark.parametrize("loss", ["squared_hinge", "smooth_hinge", "least_squares", "hinge"])
@pytest.mark.parametrize(
    "basis",
    ["pursuit", "pursuit_rows", "random", "kmeans", "cholesky", "unsupervised", "greedy", "margin"],
)
def test_every_loss_with_every_basis(loss, basis):
    X, y = rows(700)
    if loss == "hinge" and basis in ("greedy", "margin"):
        with pytest.raises(
            ValueError, match=rf"basis='{basis}' needs a loss with a curvature.*use 'squared_hinge'"
        ):
            quick(30, loss=loss, basis=basis).fit(X, y)
        return
    model = quick(30, loss=loss, basis=basis).fit(X, y)
    assert model.n_basis_ == 30
    assert model.basis_.shape == (30, 2)
    assert model.basis_coef_.shape == (30, 1)
    assert model.score(*rows(1000, seed=1)) > (0.8 if basis in ("pursuit", "kmeans") else 0.65)
    assert model.status_.converged, str(model.status_)
    assert (model.basis_indices_ is not None) == (
        basis not in ("pursuit", "kmeans") and loss == "hinge"
    )
    if model.basis_indices_ is not None:
        np.testing.assert_allclose(model.basis_, X[model.basis_indices_], atol=1e-6)


ROWS = ["pursuit_rows", "random", "cholesky", "unsupervised", "greedy", "margin"]
every_choice_of_rows = pytest.mark.parametrize("basis", ROWS)


@every_choice_of_rows
def test_bases_of_rows(basis):
    X, y = rows(1500)
    model = quick(20, basis=basis, refine=False).fit(X, y)
    assert model.n_basis_ == 20 and model.status_.converged
    assert [point.n_basis for point in model.path_] == [1, 2, 5, 10, 20]
    objectives = [point.objective for point in model.path_]
    assert objectives == sorted(objectives, reverse=True)
    for point in model.path_:
        np.testing.assert_allclose(point.basis, X[point.indices], atol=1e-6)
    # the model of every size is the best on its rows
    given = quick(basis=X[model.basis_indices_]).fit(X, y)
    assert model.certificate_.objective == pytest.approx(given.certificate_.objective, rel=2e-3)
    small = model.truncated(5)
    assert small.n_basis_ == 5
    np.testing.assert_array_equal(small.basis_indices_, model.path_[2].indices)
    assert model.certificate_.bound >= model.certificate_.gap


@every_choice_of_rows
def test_bases_of_rows_of_any_form_and_for_any_number_of_threads(basis):
    X, y = rows(2500)
    X = np.hstack([X, np.zeros((2500, 30))])
    X[::3, 1] = 0.0
    options = {"basis": basis, "refine": False}
    one, two = (quick(12, n_jobs=jobs, **options).fit(X, y) for jobs in (1, 2))
    for name in ("basis_indices_", "basis_coef_", "intercept_"):
        assert np.array_equal(getattr(one, name), getattr(two, name))
    sparse = quick(12, **options).fit(sp.csr_matrix(X), y)
    assert sparse.n_basis_ == 12
    assert sparse.certificate_.objective == pytest.approx(
        one.certificate_.objective, rel=0.05
    )  # ties may fall otherwise
    few = slice(0, 600)
    one, sparse = (
        quick(12, **options).fit(form, y[few]) for form in (X[few], sp.csr_matrix(X[few]))
    )
    np.testing.assert_array_equal(one.basis_indices_, sparse.basis_indices_)
    np.testing.assert_allclose(
        one.decision_function(X), sparse.decision_function(sp.csr_matrix(X)), atol=1e-6
    )


@every_choice_of_rows
def test_bases_of_few_rows(basis):
    X, y = rows(40)
    machine = quick(25, basis=basis, refine=False).fit(X, y)
    assert machine.n_basis_ == 25
    everything, exact = (
        quick(60, basis=basis, refine=False).fit(X, y),
        quick(60, basis="random").fit(X, y),
    )
    assert np.array_equal(everything.decision_function(X), exact.decision_function(X))
    same = quick(5, basis=basis, refine=False).fit(np.ones((40, 2)), np.arange(40) % 2)
    assert same.n_basis_ == 1


@every_choice_of_rows
def test_bases_of_several_classes(basis):
    X, y = load_iris(return_X_y=True)
    model = SparseSVC(12, C=10.0, basis=basis, refine=False, random_state=0).fit(X, y)
    assert model.basis_coef_.shape == (12, 3)
    assert model.score(X, y) > (0.9 if basis in ("greedy", "random", "pursuit_rows") else 0.6)


def test_greedy_is_ahead_of_the_blind_choices():
    X, y = rows(3000)
    objective = {
        basis: np.mean(
            [
                quick(16, basis=basis, refine=False, random_state=seed)
                .fit(X, y)
                .certificate_.objective
                for seed in range(3)
            ]
        )
        for basis in ROWS
    }
    assert objective["greedy"] < 0.9 * min(objective["random"], objective["unsupervised"])
    assert objective["greedy"] < 1.02 * objective["pursuit_rows"]


# -- all rows --------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", ["squared_hinge", "smooth_hinge", "least_squares"])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_all_rows_is_the_exact_machine(loss, fit_intercept):
    X, y = rows(300)
    options = {"loss": loss, "fit_intercept": fit_intercept}
    model, given = (
        quick(basis="all", **options).fit(X, y),
        quick(basis=X, refine=False, **options).fit(X, y),
    )
    assert model.certificate_.scope == "full"
    assert model.certificate_.holds and model.status_.converged
    assert "of all functions" in str(model.status_)
    assert model.certificate_.objective == pytest.approx(given.certificate_.objective, rel=1e-6)
    np.testing.assert_allclose(model.decision_function(X), given.decision_function(X), atol=1e-4)
    np.testing.assert_array_equal(model.basis_, X[model.basis_indices_])
    assert model.certify(X, y).violation < 1e-8
    if loss == "squared_hinge":
        assert model.n_basis_ < 300
    assert len(model.path_) == 1 and model.truncated(model.n_basis_).n_basis_ == model.n_basis_
    assert model.history_["n_basis"][-1] == model.n_basis_


def test_all_rows_of_several_classes_and_weights():
    X, y = load_iris(return_X_y=True)
    weight = np.random.default_rng(0).integers(0, 3, 150)
    options = {"C": 5.0, "gamma": 0.5, "basis": "all", "class_weight": "balanced"}
    model = SparseSVC(**options).fit(X, y, sample_weight=weight)
    repeated = SparseSVC(**options).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    np.testing.assert_allclose(model.decision_function(X), repeated.decision_function(X), atol=1e-7)
    order = np.random.default_rng(1).permutation(150)
    moved = SparseSVC(**options).fit(X[order], y[order], sample_weight=weight[order])
    np.testing.assert_allclose(model.decision_function(X), moved.decision_function(X), atol=1e-7)
    sparse = SparseSVC(**options).fit(sp.csr_matrix(X), y, sample_weight=weight)
    np.testing.assert_allclose(
        model.decision_function(X), sparse.decision_function(sp.csr_matrix(X)), atol=1e-7
    )


def test_all_rows_of_a_larger_set():
    X, y = rows(3000)
    one, two = (quick(basis="all", n_jobs=jobs).fit(X, y) for jobs in (1, 2))
    assert one.certificate_.precision == "float32" and one.certificate_.holds
    assert np.array_equal(one.basis_coef_, two.basis_coef_)
    certified = one.certify(X, y)
    assert certified.violation < 3e-3
    assert quick(basis="all", tol=1e-7).fit(X, y).certificate_.precision == "float64"
    assert one.certificate_.objective == pytest.approx(certified.objective, rel=1e-4)
    again = pickle.loads(pickle.dumps(one))
    assert np.array_equal(again.decision_function(X), one.decision_function(X))


def test_all_rows_at_a_large_weight_of_the_errors():
    X, y = rows(1500)
    model = quick(basis="all", C=1e6, gamma=1.0).fit(X, y)
    assert model.certificate_.precision == "float64" and model.certificate_.holds
    assert model.certify(X, y).violation < 2e-3


def test_all_rows_of_a_regression():
    X = np.linspace(-3, 3, 300)[:, None]
    y = np.sinc(X[:, 0])
    for loss in ("squared_epsilon_insensitive", "least_squares"):
        options = {"C": 10.0, "epsilon": 0.01, "gamma": 1.0, "loss": loss}
        model, given = (
            SparseSVR(basis="all", **options).fit(X, y),
            SparseSVR(basis=X, refine=False, **options).fit(X, y),
        )
        assert model.certificate_.objective == pytest.approx(given.certificate_.objective, rel=1e-6)
        np.testing.assert_allclose(model.predict(X), given.predict(X), atol=1e-4)


def test_all_rows_stops_at_its_limits():
    X, y = rows(20_000)
    with pytest.warns(ConvergenceWarning, match="max_time"):
        model = quick(basis="all", max_time=0.05).fit(X, y)
    assert model.certificate_.scope == "full" and model.certificate_.gap > 0
    assert np.isfinite(model.decision_function(X)).all()
    with pytest.raises(ValueError, match="max_memory allows 2 MB"):
        quick(basis="all", max_memory=2).fit(X, y)


def test_incomplete_cholesky_as_a_rival_of_pursuit():
    X, y = rows(1500)
    model = quick(30, basis="cholesky", loss="hinge", refine=False).fit(X, y)
    pivots = quick(30, basis="cholesky", refine=False).fit(X, y).basis_indices_
    np.testing.assert_array_equal(model.basis_indices_, pivots)
    assert model.status_.converged and model.score(X, y) > 0.6


def test_refinement_gains_over_pursuit_and_pursuit_over_chance():
    X, y = rows(3000)
    refined, pursuit, chance = (
        quick(20, **options).fit(X, y).certificate_.objective
        for options in ({}, {"refine": False}, {"refine": False, "basis": "random"})
    )
    assert refined < pursuit < chance


def test_path_and_truncated_machines():
    X, y = rows(1000)
    model = quick(20, validation_fraction=0.2).fit(X, y)
    assert [point.n_basis for point in model.path_] == [1, 2, 5, 10, 20]
    objectives = [point.objective for point in model.path_]
    assert objectives == sorted(objectives, reverse=True)
    assert all(
        0 <= point.validation_score <= 1 and 0 <= point.training_score <= 1 for point in model.path_
    )
    small = model.truncated(5)
    assert small.n_basis_ == 5
    assert small.basis_.shape == (5, 2)
    assert model.n_basis_ == 20
    assert np.array_equal(model.truncated(20).decision_function(X), model.decision_function(X))
    with pytest.raises(
        ValueError, match=r"not a size of the path; the sizes are \[1, 2, 5, 10, 20\]"
    ):
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
    assert all(
        point.validation_score < best - 0.005
        for point in model.path_
        if point.n_basis < model.n_basis_
    )


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
    np.testing.assert_allclose(
        model.decision_function(test),
        model.decision_function(sp.csr_matrix(test)),
        atol=1e-4,
        rtol=1e-4,
    )


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
    np.testing.assert_allclose(
        model.decision_function(X[:50]), model.decision_function(X[:50].toarray()), atol=1e-4
    )


def test_same_bits_for_any_number_of_threads_and_the_same_seed():
    X, y = rows(1500)
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
        # what the fit itself says is a bound too
        assert (
            sparse.certificate_.bound >= (sparse.certificate_.objective - least) * (1 - 1e-6) - 1e-6
        )
        # and a looser one, where it has not seen the kernel values between the rows
        assert sparse.certificate_.bound >= true.gap * (1 - 1e-6) - 1e-6 or loss == "hinge"
        small = sparse.truncated(sparse.path_[0].n_basis).certificate_
        if loss == "hinge":
            assert 0 < sparse.certificate_.projection_error <= 1.0
            assert small.projection_error >= sparse.certificate_.projection_error
        else:  # no cuts
            assert sparse.certificate_.projection_error is None
        assert small.bound >= (small.objective - least) * (1 - 1e-6) - 1e-6
    assert exact.certify(X, y).violation < (0.05 if loss == "hinge" else 1e-6)
    if loss == "hinge":
        assert exact.certificate_.projection_error < 1e-3  # everything is in the span


def test_the_bound_of_a_regression_with_large_targets():
    X = np.linspace(-3, 3, 200)[:, None]
    y = 50.0 * np.sinc(X[:, 0])
    for loss in ("squared_epsilon_insensitive", "epsilon_insensitive"):
        options = {"C": 10.0, "gamma": 1.0, "loss": loss, "refine": False, "random_state": 0}
        least = SparseSVR(500, tol=1e-6, **options).fit(X, y).certificate_.objective
        few = SparseSVR(3, basis="random", **options).fit(X, y).certificate_
        assert few.bound >= (few.objective - least) * (1 - 1e-6)


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
        np.testing.assert_allclose(
            weighted.decision_function(X), repeated.decision_function(X), atol=atol
        )


def test_regression_learns_a_curve_with_few_vectors():
    X = np.linspace(-3, 3, 500)[:, None]
    y = np.sinc(X[:, 0])
    for options in ({}, {"loss": "epsilon_insensitive"}, {"loss": "least_squares"}):
        model = SparseSVR(8, C=10.0, epsilon=0.01, gamma=1.0, random_state=0, **options).fit(X, y)
        assert model.score(X, y) > 0.98, options
    exact = SVR(C=10.0, epsilon=0.01, gamma=1.0).fit(X, y)
    assert model.basis_.shape[0] < exact.support_.size
    assert (
        SparseSVR("auto", C=10.0, epsilon=0.01, gamma=1.0, random_state=0).fit(X, y).n_basis_ <= 10
    )


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


@pytest.mark.parametrize("loss", ["squared_hinge", "hinge"])
@pytest.mark.parametrize("basis", ["pursuit_rows", "kmeans"])
def test_warm_start_with_another_number_of_vectors(loss, basis):
    X, y = rows(200)
    model, sizes = quick(3, warm_start=True, loss=loss, basis=basis, refine=False).fit(X, y), []
    for size in (8, 2, 6):
        sizes.append(model.set_params(n_basis=size).fit(X, y).n_basis_)
    assert sizes == [8, 2, 6]


@pytest.mark.parametrize("loss", ["squared_hinge", "hinge"])
def test_warm_start_takes_a_given_basis_as_it_is(loss):
    X, y = rows(200)
    model = (
        quick(basis=X[:5], warm_start=True, loss=loss, refine=False)
        .fit(X, y)
        .set_params(basis=X[10:16])
        .fit(X, y)
    )
    np.testing.assert_allclose(model.basis_, X[10:16], atol=1e-9)


@pytest.mark.parametrize(
    "machine",
    [SparseSVC(), SparseSVR(), CrammerSingerSVC(space="subspace")],
    ids=lambda m: type(m).__name__,
)
def test_given_vectors_of_different_lengths(machine):
    X, y = rows(50)
    with pytest.raises(ValueError, match="basis given is not an array of numbers"):
        machine.set_params(basis=[[1.0, 2.0], [1.0]]).fit(X, y)


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
    assert GridSearchCV(quick(), {"n_basis": [3, 6]}, cv=2).fit(X, y).best_params_["n_basis"] in (
        3,
        6,
    )


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
        ({"basis": "all", "loss": "hinge"}, "basis='all' needs a loss with a curvature"),
        ({"basis": "all", "refine": True}, "nothing to move"),
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


def test_what_a_regression_refuses():
    X, y = rows(50)
    with pytest.raises(ValueError, match="basis"):
        SparseSVR(basis="margin").fit(X, y)
    with pytest.raises(ValueError, match="'squared_epsilon_insensitive'"):
        SparseSVR(basis="greedy", loss="epsilon_insensitive").fit(X, y)


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
    roomy, tight = (
        quick(10, refine=False, max_memory=megabytes).fit(X, y) for megabytes in (None, 1e-3)
    )
    assert tight.certificate_.objective == pytest.approx(roomy.certificate_.objective, rel=1e-3)


def test_rounding_errors_are_not_said_to_be_max_iter():
    X = np.random.default_rng(0).standard_normal((60, 3))
    with pytest.warns(
        ConvergenceWarning, match="rounding errors hide any further progress.*smaller C"
    ):
        model = SparseSVC(basis="all", C=1e30, random_state=0).fit(X, X[:, 0] > 0)
    assert model.status_.reason == "stalled" and model.n_iter_ < model.max_iter


@pytest.mark.parametrize(
    "model",
    [
        quick(basis="random", refine=False),
        quick(basis="random", loss="hinge"),
        CrammerSingerSVC(
            C=10.0, gamma=5.0, space="subspace", n_basis=20, basis="random", random_state=0
        ),
    ],
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_rows_far_from_zero_keep_their_vectors(model):
    """Kernel values are in float32, around the centre; vectors are where the rows are."""
    X, y = rows(1100)
    near, far = (clone(model).fit(X + away, y) for away in (0.0, 1e6))
    assert near.basis_.dtype == np.float32
    expected, found = near.decision_function(X), far.decision_function(X + 1e6)
    assert np.abs(found - expected).max() < 1e-2 * np.abs(expected).max()
