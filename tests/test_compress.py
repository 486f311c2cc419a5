"""compress, and the reduced set behind it."""

import sys
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from scipy.optimize import approx_fprime
from sklearn import svm as sklearn_svm
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.pipeline import make_pipeline

import slimsvm
from slimsvm import SVC, SVR, LinearSVC, NuSVC, NuSVR, OneClassSVM, SparseSVC, SparseSVR, compress
from slimsvm.compression import OfPairs, by_pair
from slimsvm.datasets import checkers
from slimsvm.frames import Frame, in_memory
from slimsvm.kernels import RBF, Laplacian, Linear, Polynomial
from slimsvm.losses import SquaredHinge
from slimsvm.problems.columns import KernelColumns
from slimsvm.run import Limits
from slimsvm.solvers.reduced_set import Reduction, Towards, singular_vectors
from slimsvm.solvers.refine import solve
from slimsvm.tiles import prepare
from tests.in_memory import kernel_columns, subspace_problem
from tests.pairs import every_pair

KERNELS = [RBF(0.3), Polynomial(0.3, 3, 1.0), Polynomial(0.5, 2, 0.0)]


@pytest.fixture(scope="module")
def rng():
    return np.random.default_rng(0)


def blobs(n, n_classes, seed=0, d=5):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % n_classes
    return rng.normal(size=(n, d)) + 1.5 * np.random.default_rng(99).normal(size=(n_classes, d))[
        y
    ], y


def reduction(kernel, S, A, n_basis, dtype=np.float64):
    rows = prepare(kernel, S, dtype=dtype)
    columns = KernelColumns(in_memory(rows, A), Frame.like(rows), n_basis)
    return Reduction(columns, A, float(np.einsum("ic,ij,jc->", A, kernel(S), A)))


def distance_sq(kernel, S, A, B, coef):
    """|f - f'|^2 by definition, over all columns."""
    Z, W = np.vstack([S, B]), np.vstack([A, -coef])
    return float(np.einsum("ic,ij,jc->", W, kernel(Z), W))


# -- the reduced set -------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("n_columns", [1, 3])
def test_derivative(kernel, n_columns):
    rng = np.random.default_rng(0)
    S, A, B = rng.normal(size=(30, 4)), rng.normal(size=(30, n_columns)), rng.normal(size=(5, 4))
    problem = reduction(kernel, S, A, 5)
    value, slope = problem.evaluate(B.ravel(), B.shape)
    numeric = approx_fprime(B.ravel(), lambda flat: problem.evaluate(flat, B.shape)[0], 1e-6)
    assert value > 0
    np.testing.assert_allclose(slope, numeric, rtol=2e-4, atol=2e-4 * np.abs(slope).max())


@pytest.mark.parametrize("kernel", [*KERNELS, Laplacian(0.3)])
def test_coefficients_are_the_best_and_the_distance_is_true(kernel):
    rng = np.random.default_rng(1)
    S, A, B = rng.normal(size=(30, 4)), rng.normal(size=(30, 2)), rng.normal(size=(5, 4))
    problem = reduction(kernel, S, A, 5)
    problem.columns.replace(problem.columns.in_rows_coordinates(B))
    coef, error = problem.solution()
    expected = np.linalg.solve(kernel(B), kernel(B, S) @ A)
    np.testing.assert_allclose(coef, expected, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(error, distance_sq(kernel, S, A, B, coef), rtol=1e-7)


def test_a_function_of_few_bumps_is_found_again():
    rng = np.random.default_rng(2)
    kernel, centres = RBF(1.0), 3.0 * np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    S = np.repeat(centres, 20, axis=0)  # each bump made of twenty equal vectors
    A = rng.uniform(0.5, 1.0, size=(80, 1)) * np.repeat([1.0, -1.0, -1.0, 1.0], 20)[:, None]
    problem = reduction(kernel, S, A, 4)
    problem.grow(4, rng, np.arange(80), Limits())
    problem.descend(Limits())
    _, error = problem.solution()
    assert error <= 1e-9 * problem.square
    found = problem.columns.in_given_coordinates()
    assert max(np.abs(found - centre).sum(axis=1).min() for centre in centres) < 1e-3


def test_growth_and_descent_only_come_nearer():
    X, y = checkers(400, seed=3)
    model = SVC(C=10.0, gamma=5.0).fit(X, y)
    errors = []
    for n_basis in (5, 10, 20, 40):
        problem = reduction(RBF(5.0), model.support_vectors_, model.dual_coef_.T.copy(), n_basis)
        problem.grow(n_basis, np.random.default_rng(0), np.arange(len(model.support_)), Limits())
        grown = problem.solution()[1]
        problem.descend(Limits())
        errors.append(problem.solution()[1])
        assert errors[-1] < grown
    assert errors == sorted(errors, reverse=True) and errors[-1] < 0.2 * errors[0]


def test_towards_is_minus_the_inner_product():
    loss, a, f = Towards(), np.array([1.0, -2.0]), np.array([3.0, 0.5])
    np.testing.assert_array_equal(loss.value(a, f), -a * f)
    np.testing.assert_array_equal(loss.gradient(a, f), -a)
    assert not loss.curvature(a, f).any()
    np.testing.assert_array_equal(loss.conjugate(a, -a), 0.0)
    assert np.isinf(loss.conjugate(a, a)).all()


def test_singular_vectors():
    rng = np.random.default_rng(0)
    W = rng.normal(size=(6, 2)) @ rng.normal(size=(2, 9))  # rank 2
    vectors, coef, error, square = singular_vectors(W, 10)
    assert vectors.shape == (2, 9) and error == 0.0
    np.testing.assert_allclose(coef.T @ vectors, W, atol=1e-12)
    vectors, coef, error, square = singular_vectors(W, 1)
    np.testing.assert_allclose(np.square(W - coef.T @ vectors).sum(), error, rtol=1e-10)
    np.testing.assert_allclose(np.square(W).sum(), square)
    assert singular_vectors(np.zeros((3, 2)), 5)[0].shape == (1, 2)


def test_pairs_of_classes():
    X, y = blobs(60, 4)
    model = SVC().fit(X, y)
    A = by_pair(model.dual_coef_, model.n_support_)
    values = RBF(model.kernel_.gamma)(X, model.support_vectors_) @ A + model.intercept_
    np.testing.assert_allclose(
        values, model.set_params(decision_function_shape="ovo").decision_function(X), atol=1e-10
    )


def test_rows_of_other_classes_cost_nothing():
    loss, y, f = OfPairs(), np.array([1.0, -1.0, 0.0]), np.array([0.5, 0.5, 0.5])
    np.testing.assert_array_equal(loss.value(y, f), [0.25, 2.25, 0.0])
    np.testing.assert_array_equal(loss.gradient(y, f), [-1.0, 3.0, 0.0])
    np.testing.assert_array_equal(loss.curvature(y, f), [2.0, 2.0, 0.0])


def test_pairs_over_one_basis_are_as_if_each_were_alone():
    X, y = blobs(120, 3)
    target = (y[:, None] == [0, 0, 1]).astype(float) - (y[:, None] == [1, 2, 2])

    def solved(rows, target, loss):
        columns = kernel_columns(prepare(RBF(0.1), rows, dtype=np.float64), 10)
        columns.append(columns.in_rows_coordinates(X[:10]))
        return solve(
            subspace_problem(columns, target, np.full(len(rows), 2.0), loss), None, 1e-12, 50
        )

    together = solved(X, target, OfPairs())
    for pair in range(3):
        own = target[:, pair] != 0
        alone = solved(X[own], target[own][:, [pair]], SquaredHinge())
        np.testing.assert_allclose(together.objective[pair], alone.objective[0], rtol=1e-9)
        np.testing.assert_allclose(together.scores[own, pair], alone.scores[:, 0], atol=1e-5)


# -- models ----------------------------------------------------------------------------------------

CLASSIFIERS = [SVC(C=5.0), NuSVC(nu=0.2), sklearn_svm.SVC(C=5.0), sklearn_svm.NuSVC(nu=0.2)]
REGRESSORS = [SVR(C=5.0), NuSVR(C=5.0), sklearn_svm.SVR(C=5.0), sklearn_svm.NuSVR(C=5.0)]


def names(models):
    return [f"{type(model).__module__.split('.')[0]} {type(model).__name__}" for model in models]


@every_pair(
    model=dict(zip(names(CLASSIFIERS), CLASSIFIERS, strict=True)),
    n_classes=[2, 3, 5],
    sparse=[False, True],
)
def test_classifiers(model, n_classes, sparse):
    X, y = blobs(200, n_classes)
    y = np.array(["a", "b", "c", "d", "e"])[y]
    new = blobs(200, n_classes, seed=1)[0]
    given = sp.csr_matrix(X) if sparse else X
    model = clone(model).fit(given, y)
    exact = compress(model, 10_000)
    np.testing.assert_array_equal(exact.predict(new), model.predict(new))
    np.testing.assert_allclose(
        exact.decision_function(new), model.decision_function(new), atol=1e-6
    )
    assert (
        exact.n_basis_ == len(model.support_)
        and exact.certificate_.violation == 0.0
        and "the same function" in str(exact.status_)
    )
    np.testing.assert_array_equal(exact.basis_indices_, model.support_)
    n_basis = min(30, len(model.support_) // 2)
    near = compress(model, n_basis, random_state=0)
    tuned = compress(model, n_basis, given, y, random_state=0)
    for small in (near, tuned):
        assert isinstance(small, SparseSVC) and small.basis_.shape == (n_basis, 5)
        np.testing.assert_array_equal(small.classes_, model.classes_)
        assert small.basis_coef_.shape[1] == n_classes * (n_classes - 1) // 2
        assert getattr(small, "pairwise_", False) == (n_classes > 2)
        assert small.decision_function(new).shape == model.decision_function(new).shape
        assert (
            small.certificate_.scope == ("distance" if small is near else "subspace")
            and small.status_.converged
        )
    assert np.mean(near.predict(new) == model.predict(new)) > 0.93
    assert tuned.score(X, y) > model.score(X, y) - 0.02
    assert tuned.path_[0].training_score == tuned.score(X, y) and np.isnan(
        near.path_[0].training_score
    )


@pytest.mark.parametrize(
    ("model", "sparse"),
    list(zip(REGRESSORS, [True, False, False, True], strict=True)),
    ids=names(REGRESSORS),
)
def test_regressors(model, sparse):
    X, _ = blobs(300, 2)
    y = np.sin(X[:, 0]) + 0.3 * X[:, 1]
    new = blobs(200, 2, seed=1)[0]
    given = sp.csr_matrix(X) if sparse else X
    model = clone(model).fit(given, y)
    np.testing.assert_allclose(compress(model, 10_000).predict(new), model.predict(new), atol=1e-6)
    near, tuned = compress(model, 40, random_state=0), compress(model, 40, given, y, random_state=0)
    assert isinstance(near, SparseSVR) and near.basis_.shape == (40, 5)
    assert np.corrcoef(near.predict(new), model.predict(new))[0, 1] > 0.98
    assert tuned.score(X, y) > model.score(X, y) - 0.03
    if type(model).__name__ == "NuSVR":  # half of the rows lie outside of the tube
        assert abs(np.mean(np.abs(y - model.predict(X)) > tuned.epsilon) - 0.5) < 0.02


def test_the_distance_that_is_reported_is_true():
    X, y = blobs(200, 2)
    model = SVC(C=5.0, gamma=0.1).fit(X, y)
    small = compress(model, 10, random_state=0)
    A, kernel = model.dual_coef_.T, model.kernel_
    square = float(np.einsum("ic,ij,jc->", A, kernel(model.support_vectors_), A))
    error = distance_sq(kernel, model.support_vectors_, A, small.basis_, small.basis_coef_)
    np.testing.assert_allclose(small.certificate_.violation, np.sqrt(error / square), rtol=1e-5)
    assert f"differs by {small.certificate_.violation:.2g} of its norm" in str(small.status_)
    left, weight = (
        model.decision_function(model.support_vectors_)
        - small.decision_function(model.support_vectors_),
        np.abs(A[:, 0]),
    )
    np.testing.assert_allclose(weight @ left, 0.0, atol=1e-8 * weight.sum())


def test_many_vectors_in_float32():
    X, y = blobs(4000, 2)
    y = np.where(np.random.default_rng(0).random(4000) < 0.2, 1 - y, y)
    model = SVC(C=1.0, gamma=0.1).fit(X, y)
    assert len(model.support_) > 1000
    small = compress(model, 60, random_state=0, n_jobs=2)
    assert small.basis_.dtype == np.float32 and small.certificate_.precision == "float32"
    again = compress(model, 60, random_state=0, n_jobs=1)
    np.testing.assert_array_equal(small.basis_, again.basis_)
    A, kernel = model.dual_coef_.T, model.kernel_
    square = float(np.einsum("ic,ij,jc->", A, kernel(model.support_vectors_), A))
    error = distance_sq(kernel, model.support_vectors_, A, small.basis_, small.basis_coef_)
    np.testing.assert_allclose(small.certificate_.violation, np.sqrt(error / square), rtol=1e-2)
    tuned = compress(model, 60, X, y, random_state=0, n_jobs=2)
    assert tuned.score(X, y) > model.score(X, y) - 0.02


def test_digits_with_thirty_vectors():
    X, y = load_digits(return_X_y=True)
    X, test = X / 16.0, np.arange(len(y)) % 3 == 0
    model = sklearn_svm.SVC(C=10.0, gamma=0.05).fit(X[~test], y[~test])
    exact = model.score(X[test], y[test])
    assert compress(model, 30, random_state=0).score(X[test], y[test]) > exact - 0.03
    assert (
        compress(model, 30, X[~test], y[~test], random_state=0).score(X[test], y[test])
        > exact - 0.01
    )


@pytest.mark.parametrize("package", [slimsvm, sklearn_svm])
@pytest.mark.parametrize("sparse", [False, True])
def test_one_vector_is_enough_for_a_linear_machine(package, sparse):
    X, y = blobs(200, 2)
    given = sp.csr_matrix(X) if sparse else X
    model = package.SVC(kernel="linear").fit(given, y)
    for small in (compress(model, 1), compress(model, 50, given, y)):
        assert (
            small.n_basis_ == 1
            and small.basis_indices_ is None
            and "the same function" in str(small.status_)
        )
        np.testing.assert_allclose(
            small.decision_function(given), model.decision_function(given), atol=1e-10
        )
    target = package.SVR(kernel="linear").fit(given, X[:, 0])
    np.testing.assert_allclose(
        compress(target, 3).predict(given), target.predict(given), atol=1e-10
    )


def test_linear_machines_of_several_classes():
    X, y = blobs(300, 4)
    model = SVC(kernel="linear").fit(X, y)
    exact = compress(model, 6)
    assert exact.n_basis_ == 5  # features, and fewer than pairs
    np.testing.assert_array_equal(exact.predict(X), model.predict(X))
    fewer, tuned = compress(model, 3), compress(model, 3, X, y)
    assert fewer.n_basis_ == tuned.n_basis_ == 3
    assert 0 < fewer.certificate_.violation < 0.5
    assert tuned.score(X, y) > model.score(X, y) - 0.05


@pytest.mark.parametrize("kernel", ["poly", "laplacian"])
@pytest.mark.parametrize("sparse", [False, True])
def test_other_kernels(kernel, sparse):
    X, y = blobs(300, 2)
    given = sp.csr_matrix(X) if sparse else X
    model = (
        SVC(kernel=kernel, coef0=1.0, C=2.0).fit(given, y)
        if kernel == "poly"
        else SVC(kernel=kernel, C=2.0).fit(given, y)
    )
    n_basis = len(model.support_) // 2
    small, tuned = (
        compress(model, n_basis, random_state=0),
        compress(model, n_basis, given, y, random_state=0),
    )
    assert small.kernel_ == model.kernel_ and small.kernel == kernel
    assert np.mean(small.predict(X) == model.predict(X)) > 0.95
    assert tuned.score(X, y) > model.score(X, y) - 0.03


@pytest.mark.parametrize("n_classes", [2, 3])
def test_sparse_machines_and_compressed_ones_are_compressed_again(n_classes):
    X, y = blobs(300, n_classes)
    for model in (
        SparseSVC(30, C=2.0, basis="pursuit", random_state=0).fit(X, y),
        compress(SVC(C=2.0).fit(X, y), 30, random_state=0),
    ):
        for small in (
            compress(model, 10, random_state=0),
            compress(model, 10, X, y, random_state=0),
        ):
            assert small.n_basis_ == 10 and small.n_basis == 10 and small.C == 2.0
            assert small.basis_coef_.shape[1] == model.basis_coef_.shape[1]
            assert getattr(small, "pairwise_", False) == getattr(model, "pairwise_", False)
            assert small.score(X, y) > model.score(X, y) - 0.06
    hinge = SparseSVC(30, loss="hinge", basis=X[:30]).fit(X, y)
    small = compress(hinge, 5, X, y, random_state=0)
    assert (small.loss, small.basis, small.n_basis_) == ("auto", "pursuit", 5)


def test_sparse_regression_is_compressed_again():
    X, _ = blobs(300, 2)
    y = np.sin(X[:, 0])
    model = SparseSVR(30, C=10.0, epsilon=0.01, basis="pursuit", random_state=0).fit(X, y)
    small = compress(model, 15, X, y, random_state=0)
    assert small.epsilon == 0.01 and small.score(X, y) > model.score(X, y) - 0.1


def test_what_comes_out_is_an_estimator_like_any_other():
    X, y = blobs(200, 3)
    frame = pd.DataFrame(X, columns=list("abcde"))
    model = SVC(C=3.0, gamma=0.2, class_weight={0: 2.0, 1: 1.0, 2: 1.0}).fit(frame, y)
    small = compress(model, 10, frame, y, random_state=7)
    assert small.feature_names_in_.tolist() == list("abcde")
    expected = {
        "C": 3.0,
        "gamma": 0.2,
        "kernel": "rbf",
        "n_basis": 10,
        "random_state": 7,
        "class_weight": model.class_weight,
    }
    assert {name: small.get_params()[name] for name in expected} == expected
    assert small.truncated(10).predict(frame).tolist() == small.predict(frame).tolist()
    assert (
        small.model_nbytes_
        == small.basis_.nbytes + small.basis_coef_.nbytes + small.intercept_.nbytes
    )
    trained = clone(small).fit(frame, y)
    assert trained.score(frame, y) > 0.8 and not hasattr(trained, "pairwise_")
    small.fit(frame, y)  # over the compressed one: pairs are forgotten
    assert not hasattr(small, "pairwise_") and small.basis_coef_.shape == (10, 3)
    np.testing.assert_array_equal(small.predict(frame), trained.predict(frame))


def test_certify_has_no_pairs():
    X, y = blobs(100, 3)
    with pytest.raises(ValueError, match="one-vs-one"):
        compress(SVC().fit(X, y), 5).certify(X, y)


def test_weights_of_rows():
    X, y = blobs(300, 2)
    model = SVC().fit(X, y)
    weight = np.ones(300)
    weight[::3] = 0.0
    flipped = np.where(weight > 0, y, 1 - y)  # wrong labels that must not count
    a = compress(model, 10, X[weight > 0], y[weight > 0], random_state=0)
    b = compress(model, 10, X, flipped, weight, random_state=0)
    np.testing.assert_allclose(a.decision_function(X), b.decision_function(X), atol=1e-8)


def test_the_same_seed_gives_the_same_machine():
    X, y = blobs(300, 3)
    model = SVC().fit(X, y)
    for data in ((), (X, y)):
        first, second = (
            compress(model, 12, *data, random_state=np.random.RandomState(3)) for _ in range(2)
        )
        np.testing.assert_array_equal(first.basis_, second.basis_)
        np.testing.assert_array_equal(first.basis_coef_, second.basis_coef_)


def test_a_machine_without_vectors_and_one_of_equal_vectors():
    X, _ = blobs(50, 2)
    empty = SVR(epsilon=10.0).fit(X, np.zeros(50))
    small = compress(empty, 3)
    assert small.n_basis_ == 0 and (small.predict(X) == empty.predict(X)).all()
    X = np.repeat([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]], 20, axis=0)
    y = np.arange(60) % 2
    equal = SVC(gamma=1.0).fit(X, y)
    small = compress(equal, 10, random_state=0)
    assert small.n_basis_ <= 3
    np.testing.assert_allclose(small.decision_function(X), equal.decision_function(X), atol=1e-5)


def test_time_limit():
    X, y = checkers(4000, seed=0)
    model = SVC(gamma=20.0).fit(X, y)
    with pytest.warns(ConvergenceWarning, match="Stopped at max_time"):
        small = compress(model, 200, max_time=1e-6)
    assert (
        small.status_.reason == "max_time"
        and small.n_basis_ >= 1
        and small.predict(X).shape == y.shape
    )
    with pytest.warns(ConvergenceWarning, match="Stopped at max_time"):
        assert compress(model, 200, X, y, max_time=1e-6).n_basis_ >= 1


def test_a_reduction_cut_short_is_not_converged_although_the_tuning_was(monkeypatch):
    X, y = blobs(60, 2)
    model = SVC(gamma=0.5).fit(X, y)
    reduced = vars(sys.modules["slimsvm.compression"])["_reduced"]

    def until_its_share_of_the_time_is_gone(function, n_basis, rng, limits, threads):
        found = reduced(function, n_basis, rng, limits, threads)
        limits.max_time = 0.0
        return found

    assert compress(model, 5, X, y, max_time=100.0, random_state=0).status_.reason == "converged"
    monkeypatch.setattr(
        sys.modules["slimsvm.compression"], "_reduced", until_its_share_of_the_time_is_gone
    )
    with pytest.warns(ConvergenceWarning, match="Stopped at max_time"):
        small = compress(model, 5, X, y, max_time=100.0, random_state=0)
    assert small.status_.reason == "max_time" and small.fit_status_ == 1


# -- refusals --------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_basis", [0, -1, 2.5, "auto", None, True])
def test_sizes_that_are_none(n_basis):
    X, y = blobs(50, 2)
    with pytest.raises(
        ValueError, match=r"n_basis=.* is not a size; expected a whole number of at least 1"
    ):
        compress(SVC().fit(X, y), n_basis)


@pytest.mark.parametrize(
    "option",
    [
        {"max_time": -1.0},
        {"max_time": "long"},
        {"max_time": np.nan},
        {"n_jobs": "all"},
        {"random_state": -1},
    ],
    ids=str,
)
def test_options_that_are_refused(option):
    X, y = blobs(40, 2)
    with pytest.raises(ValueError, match=f"'{next(iter(option))}' parameter of compress must be"):
        compress(SVC().fit(X, y), 3, **option)


def test_machines_that_are_refused():
    X, y = blobs(50, 2)
    for model in (
        OneClassSVM().fit(X),
        LinearSVC().fit(X, y),
        make_pipeline(SVC()).fit(X, y),
        sklearn_svm.OneClassSVM().fit(X),
        None,
    ):
        with pytest.raises(
            ValueError, match=r"compress takes a fitted SVC.*got an object of class"
        ):
            compress(model, 5)
    for model in (SVC(), sklearn_svm.SVC(), SparseSVC(), SVR()):
        with pytest.raises(NotFittedError):
            compress(model, 5)


@pytest.mark.parametrize("package", [slimsvm, sklearn_svm])
def test_kernels_that_are_refused(package):
    X, y = blobs(50, 2)
    with pytest.raises(ValueError, match="The model has a precomputed kernel"):
        compress(package.SVC(kernel="precomputed").fit(X @ X.T, y), 5)
    with pytest.raises(ValueError, match="The model has a kernel that is a Python function"):
        compress(package.SVC(kernel=lambda A, B: A @ B.T).fit(X, y), 5)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for parameters in (
            {"kernel": "sigmoid", "gamma": 0.01},
            {"kernel": "poly", "degree": 2, "coef0": -0.1},
        ):
            model = package.SVC(**parameters).fit(X, y)
            with pytest.raises(ValueError, match="not an inner product"):
                compress(model, 2)
            np.testing.assert_allclose(
                compress(model, 1000).decision_function(X), model.decision_function(X), atol=1e-8
            )


def test_data_that_is_refused():
    X, y = blobs(50, 2)
    model = SVC().fit(X, y)
    for arguments, match in [
        ((X,), "y is missing"),
        ((None, y), "X is missing"),
        ((None, None, y), "sample_weight was given without rows"),
        ((X[:, :3], y), "3 features"),
        ((X, np.where(y == 1, 7, 0)), "label .*7.*not one of the classes"),
        ((X, y[:-1]), "inconsistent numbers of samples"),
        ((np.where(X > 1, np.nan, X), y), "NaN"),
        ((X, y, np.zeros(50)), "weight"),
        ((X, y, np.full(50, -1.0)), "[Nn]egative"),
    ]:
        with pytest.raises(ValueError, match=match):
            compress(model, 5, *arguments)
    with pytest.raises(ValueError, match="3 features"):
        compress(SVR().fit(X, X[:, 0]), 5, X[:, :3], y)
    with pytest.raises(ValueError, match="zero"):
        compress(SVR().fit(X, X[:, 0]), 5, X, y, np.zeros(50))


def test_linear_kernels_are_linear():
    assert isinstance(compress(SVC(kernel="linear").fit([[0.0], [1.0]], [0, 1]), 1).kernel_, Linear)
