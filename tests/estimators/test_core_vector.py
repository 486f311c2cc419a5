"""CoreVectorSVC: balls that contain what they say, the model that a general solver finds, and
what is refused.
"""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize
from sklearn.datasets import load_digits, load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import normalize

import slimsvm
from slimsvm import CoreVectorSVC
from slimsvm.datasets import checkers
from slimsvm.kernels import RBF, Laplacian
from slimsvm.persistence.libsvm import load_libsvm, save_libsvm

both = pytest.mark.parametrize("ball", ["minimum", "fixed"])


def machine(**options):
    return CoreVectorSVC(**{"C": 2.0, "gamma": 1.0, "random_state": 0, **options})


def points(X, y, C=2.0, kernel=None):
    """The inner products of the points of the ball, naively."""
    s = np.where(y == np.unique(y)[1], 1.0, -1.0)
    kernel = RBF(1.0) if kernel is None else kernel
    return np.outer(s, s) * (kernel(X, X) + 1.0) + np.eye(len(y)) / (2.0 * C), s


def weights(model, n):
    """The share of every row in the centre of the ball."""
    a = np.zeros(n)
    a[model.support_] = np.abs(model.dual_coef_[0])
    return a / a.sum()


@pytest.mark.parametrize("n", [200, pytest.param(1100, marks=pytest.mark.long)])
@pytest.mark.parametrize("kernel", [RBF(1.0), Laplacian(0.7)])
def test_minimum_ball_against_scipy(n, kernel):
    X, y = checkers(n, seed=1)
    K, s = points(X, y, kernel=kernel)
    least = minimize(
        lambda a: (0.5 * a @ K @ a - a.sum(), K @ a - 1.0),
        np.ones(n),
        jac=True,
        method="L-BFGS-B",
        bounds=[(0.0, None)] * n,
        options={"maxiter": 20000, "maxfun": 10**6, "ftol": 1e-15, "gtol": 1e-9},
    )  # fmt: skip
    model = machine(kernel=kernel, gamma="scale").fit(X, y)
    assert model.certificate_.objective == pytest.approx(
        -least.fun, rel=1e-8 if n <= 1000 else 1e-4
    )
    assert 0.0 <= model.certificate_.gap <= 1e-4 * model.certificate_.objective
    tol = 1e-5 if n <= 1000 else 5e-2
    np.testing.assert_allclose(model.dual_coef_[0], (least.x * s)[model.support_], atol=tol)
    # the primal problem, as the documentation states it
    f = model.decision_function(X)
    w_sq = model.dual_coef_[0] @ kernel(X[model.support_], X[model.support_]) @ model.dual_coef_[0]
    value = 0.5 * (w_sq + model.intercept_[0] ** 2) + 2.0 * np.sum(
        np.maximum(0.0, 1.0 - s * f) ** 2
    )
    assert model.certificate_.objective == pytest.approx(value, rel=1e-5)
    assert model.intercept_[0] == pytest.approx(model.dual_coef_.sum(), rel=1e-9)


@both
@pytest.mark.parametrize("eps", [1e-3, 1e-5])
def test_no_row_lies_outside_of_the_ball(ball, eps):
    X, y = checkers(2500, seed=2)
    model = machine(ball=ball, eps=eps).fit(X, y)
    K, _ = points(X, y)
    al = weights(model, len(y))
    q, kappa = al @ K @ al, K[0, 0]
    radius = np.sqrt(kappa if ball == "fixed" else kappa - q)
    distance = np.sqrt(q - 2.0 * K @ al + kappa)
    assert distance.max() <= (1.0 + eps) * radius * (1.0 + 1e-6)
    assert model.certificate_.violation == pytest.approx(
        max(0.0, distance.max() / radius - 1.0), abs=1e-6
    )
    assert model.certificate_.holds and model.status_.converged
    assert model.certificate_.tol == eps


def test_a_smaller_eps_is_nearer_to_the_optimum_and_a_fixed_radius_keeps_half_of_the_margin():
    X, y = checkers(3000, seed=3)
    coarse, fine = (machine(eps=eps, C=10.0).fit(X, y).certificate_ for eps in (1e-4, 1e-6))
    assert fine.gap < coarse.gap and fine.gap < 1e-2 * fine.objective
    model = machine(ball="fixed", eps=1e-6, C=10.0).fit(X, y)
    assert model.certificate_.objective > 1.01 * fine.objective
    K, _ = points(X, y, C=10.0)
    al = weights(model, len(y))
    q, kappa = al @ K @ al, K[0, 0]
    assert (K @ al).min() >= 0.5 * (q - (2e-6 + 1e-12) * kappa) - 1e-7


@both
def test_threads_dense_and_sparse(ball):
    X, y = load_digits(return_X_y=True)
    X = X[:1100] / 16.0
    few, y = y[:1100] < 4, y[:1100]
    one, two = (machine(ball=ball, gamma=0.05, n_jobs=jobs, eps=1e-4).fit(X, y) for jobs in (1, 2))
    assert np.array_equal(one.dual_coef_, two.dual_coef_) and np.array_equal(
        one.intercept_, two.intercept_
    )
    assert one.score(X, y) > 0.95 and one.dual_coef_.shape == (9, one.support_.size)
    dense, sparse = (
        machine(ball=ball, gamma=0.05).fit(form, y[few]) for form in (X[few], sp.csr_matrix(X[few]))
    )
    assert sparse.certificate_.objective == pytest.approx(
        dense.certificate_.objective, rel=1e-6 if ball == "minimum" else 0.2
    )
    big = np.repeat(X[few], 4, axis=0) + np.random.default_rng(0).normal(
        0, 0.05, (4 * few.sum(), 64)
    )
    label = np.repeat(y[few] % 2, 4)
    dense, sparse = (
        machine(ball=ball, gamma=0.05).fit(form, label) for form in (big, sp.csr_matrix(big))
    )
    assert sparse.certificate_.holds
    assert np.mean(dense.predict(big) == sparse.predict(big)) > 0.98


def test_votes_of_pairs_and_labels():
    X, y = load_iris(return_X_y=True)
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    model = machine(C=10.0).fit(X, names)
    assert model.score(X, names) > 0.95
    assert model.decision_function(X).shape == (150, 3)


def test_a_repeated_row_counts_twice_and_the_order_of_the_rows_does_not_matter():
    X, y = checkers(120, seed=4)
    twice = machine(C=1.0).fit(np.vstack([X, X]), np.append(y, y))
    once = machine(C=2.0).fit(X, y)  # every row twice at C is every row once at 2 C
    np.testing.assert_allclose(twice.decision_function(X), once.decision_function(X), atol=1e-7)
    order = np.random.default_rng(0).permutation(120)
    np.testing.assert_allclose(
        machine().fit(X[order], y[order]).decision_function(X),
        machine().fit(X, y).decision_function(X),
        atol=1e-7,
    )


def test_the_budget_and_the_limits():
    X, y = checkers(3000, seed=0)
    with pytest.warns(ConvergenceWarning, match="max_memory"):
        model = machine(gamma=20.0, max_memory=0.1).fit(X, y)
    assert model.fit_status_ == 1 and model.certificate_.violation > 1e-6
    assert model.support_.size <= np.sqrt(0.1 * 2**20 / 4)
    assert model.score(X, y) > 0.6
    with pytest.warns(ConvergenceWarning, match="max_iter=50"):
        model = machine(gamma=20.0, max_iter=50).fit(X, y)
    assert model.support_.size <= 52 and model.certificate_.gap > 0
    with pytest.warns(ConvergenceWarning, match="max_time"):
        model = machine(gamma=100.0, max_time=1e-6).fit(X, y)
    assert np.isfinite(model.decision_function(X)).all()


@both
def test_files(ball, tmp_path):
    X, y = checkers(200, seed=0)
    for labels in (y, np.arange(200) % 3):
        model = machine(ball=ball).fit(X, labels)
        slimsvm.save(model, tmp_path / "model.slim")
        again = slimsvm.load(tmp_path / "model.slim")
        assert type(again) is CoreVectorSVC and again.get_params() == model.get_params()
        assert np.array_equal(again.decision_function(X), model.decision_function(X))
        assert again.certificate_ == model.certificate_
        assert np.array_equal(pickle.loads(pickle.dumps(model)).predict(X), model.predict(X))
        save_libsvm(model, tmp_path / "model.libsvm")
        np.testing.assert_allclose(
            load_libsvm(tmp_path / "model.libsvm").decision_function(X),
            model.decision_function(X),
            atol=1e-9,
        )


def test_kernels_with_a_constant_diagonal():
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match=r"k\(x, x\) to be the same for all rows.*unit length"):
        machine(kernel="linear").fit(X, y)
    unit = normalize(X)
    for options in (
        {"kernel": "linear"},
        {"kernel": "poly", "coef0": 1.0},
        {"kernel": lambda A, B: A @ B.T},
    ):
        assert machine(C=100.0, **options).fit(unit, y).score(unit, y) > 0.9
    K = RBF(0.5)(X, X)
    given, named = machine(kernel="precomputed").fit(K, y), machine(gamma=0.5).fit(X, y)
    np.testing.assert_allclose(given.decision_function(K), named.decision_function(X), atol=1e-6)
    with pytest.raises(ValueError, match="the same for all rows"):
        machine(kernel="precomputed").fit(K * np.outer(1 + np.arange(150), 1 + np.arange(150)), y)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"ball": "small"}, "ball"),
        ({"eps": 0.0}, "eps"),
        ({"eps": 1.0}, "eps"),
        ({"C": 0.0}, "C"),
        ({"max_memory": 0}, "max_memory"),
    ],
    ids=str,
)
def test_what_is_refused(options, words):
    X, y = checkers(50, seed=0)
    with pytest.raises(ValueError, match=words):
        machine(**options).fit(X, y)
    with pytest.raises(ValueError, match=r"admits no sample_weight.*Repeat rows"):
        machine().fit(X, y, sample_weight=np.ones(50))
    with pytest.raises(TypeError, match="unexpected argument 'weight'"):
        machine().fit(X, y, weight=np.ones(50))
    assert machine().fit(X, y, sample_weight=None).score(X, y) > 0.5


@both
def test_odd_but_legal_data(ball):
    same = np.ones((1500, 2))
    model = machine(ball=ball).fit(same, np.arange(1500) % 2)
    assert np.isfinite(model.decision_function(same)).all()
    two = machine(ball=ball).fit(np.array([[0.0], [1.0]]), ["a", "b"])
    assert two.score(np.array([[0.0], [1.0]]), ["a", "b"]) == 1.0
