"""ReducedSVC: one problem by several solvers, draws, pairs, limits, and what it refuses."""

import pickle
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import load_digits, load_iris
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV

from slimsvm import ReducedSVC, compress
from slimsvm.datasets import checkers
from slimsvm.kernels import RBF
from slimsvm.report.words import describe, describe_in_words

SOLVERS = ["smooth", "least_squares", "lagrangian", "decomposition"]
every_solver = pytest.mark.parametrize("solver", SOLVERS)


def quick(solver="smooth", **options):
    return ReducedSVC(**{"C": 10.0, "gamma": 5.0, "random_state": 0, "solver": solver, **options})


def objective(model, X, sign, weight=None):
    u, f = np.append(model.basis_coef_[:, 0], model.intercept_), model.decision_function(X)
    missing = 1 - sign * f if model.solver == "least_squares" else np.maximum(0, 1 - sign * f)
    return 0.5 * u @ u + model.C * (np.ones(len(sign)) if weight is None else weight) @ missing**2


@every_solver
def test_it_learns(solver):
    X, y = checkers(3000, seed=0)
    model = quick(solver, C=100.0).fit(X, y)
    assert (
        model.basis_.shape == (300, 2)
        and model.basis_coef_.shape == (300, 1)
        and model.n_basis_ == 300
    )
    np.testing.assert_array_equal(model.basis_, X[model.basis_indices_])
    assert model.score(*checkers(2000, seed=1)) > 0.9
    assert (
        model.certificate_.holds and model.status_.converged and "Converged" in str(model.status_)
    )
    assert model.certificate_.scope == "subspace"


@pytest.mark.parametrize("n", [400, 2500])
def test_three_solvers_one_problem(n):
    X, y = checkers(n, seed=0)
    sign = np.where(y == 1, 1.0, -1.0)
    models = [
        quick("smooth", beta=1e7, tol=1e-8),
        quick("lagrangian", tol=1e-8, max_iter=-1),
        quick("decomposition", tol=1e-8, max_iter=-1),
    ]
    values = [objective(model.set_params(n_basis=40).fit(X, y), X, sign) for model in models]
    assert (
        np.ptp(values) < 1e-5 * values[0] if n > 1000 else np.ptp(values) < 1e-8 * values[0]
    )  # float32 kernel values in prediction
    for model, value in zip(models, values, strict=True):
        assert model.certificate_.objective == pytest.approx(value, rel=1e-5)
    another = quick("least_squares", n_basis=40).fit(X, y)
    assert objective(another, X, sign) > 1.01 * values[0], "another loss"


@every_solver
def test_the_order_of_the_rows_does_not_matter(solver):
    X, y = checkers(800, seed=0)
    order = np.random.default_rng(0).permutation(800)
    one, other = (
        quick(solver, max_iter=5000).fit(X, y),
        quick(solver, max_iter=5000).fit(X[order], y[order]),
    )
    np.testing.assert_array_equal(one.basis_, other.basis_)
    np.testing.assert_allclose(one.decision_function(X), other.decision_function(X), atol=1e-7)


@every_solver
def test_weights_act_as_repetition_and_zero_removes(solver):
    X, y = checkers(300, seed=0)
    weight = np.random.default_rng(0).integers(0, 4, 300)
    for n_basis in (0.1, 25, 1.0):
        make = quick(solver, n_basis=n_basis, C=1.0, gamma=1.0, max_iter=20000)
        one = clone(make).fit(X, y, sample_weight=weight)
        other = clone(make).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
        np.testing.assert_array_equal(one.basis_, other.basis_)
        np.testing.assert_allclose(one.decision_function(X), other.decision_function(X), atol=1e-7)
        assert weight[one.basis_indices_].all()
        np.testing.assert_array_equal(X[one.basis_indices_], one.basis_)


@every_solver
def test_dense_sparse_and_float32_agree(solver):
    X, y = load_digits(return_X_y=True)
    X, y = X[:600] / 16, y[:600] % 3
    make = ReducedSVC(60, C=1.0, random_state=0, solver=solver, max_iter=20000)
    dense, sparse, single = (
        clone(make).fit(rows, y) for rows in (X, sp.csr_matrix(X), X.astype(np.float32))
    )
    assert sp.issparse(sparse.basis_) and single.basis_.dtype == np.float32
    np.testing.assert_array_equal(dense.basis_, sparse.basis_.toarray())
    np.testing.assert_allclose(
        dense.decision_function(X), sparse.decision_function(sp.csr_matrix(X)), atol=1e-6
    )
    np.testing.assert_allclose(dense.decision_function(X), single.decision_function(X), atol=1e-3)


@every_solver
def test_same_bits_for_any_number_of_threads_and_the_same_seed(solver):
    X, y = load_digits(return_X_y=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        one, two, other = (
            ReducedSVC(solver=solver, random_state=seed, n_jobs=jobs, max_iter=50).fit(X, y)
            for seed, jobs in ((0, 1), (0, 2), (1, 1))
        )
    assert np.array_equal(one.basis_coef_, two.basis_coef_) and np.array_equal(
        one.intercept_, two.intercept_
    )
    assert not np.array_equal(one.basis_indices_, other.basis_indices_)


def test_pairs_have_a_basis_each_and_vote():
    X, y = load_digits(return_X_y=True)
    model = ReducedSVC(random_state=0, C=10.0).fit(X[:1200], y[:1200])
    assert (
        model.basis_coef_.shape == (model.n_basis_, 45)
        and model.intercept_.shape == (45,)
        and model.n_iter_.shape == (45,)
    )
    counts = (model.basis_coef_ != 0).sum(axis=0)
    assert np.all(counts == 50), "a tenth of about 240 rows is fewer than 50"
    first, second = np.triu_indices(10, 1)
    labels = y[model.basis_indices_]
    for k in range(45):
        assert set(labels[model.basis_coef_[:, k] != 0]) == {first[k], second[k]}
    assert len(set(model.basis_indices_)) == model.n_basis_
    assert model.score(X[1200:], y[1200:]) > 0.93
    assert model.decision_function(X).shape == (len(X), 10)
    pairs = clone(model).set_params(decision_function_shape="ovo").fit(X[:1200], y[:1200])
    values = pairs.decision_function(X)
    assert values.shape == (len(X), 45)
    votes = np.zeros((len(X), 10))
    for k in range(45):
        votes[np.arange(len(X)), np.where(values[:, k] > 0, first[k], second[k])] += 1
    np.testing.assert_array_equal(pairs.predict(X), votes.argmax(axis=1))
    ties = clone(model).set_params(break_ties=True).fit(X[:1200], y[:1200])
    np.testing.assert_array_equal(ties.predict(X), ties.decision_function(X).argmax(axis=1))


def test_a_pair_of_several_classes_is_the_machine_of_its_two_classes():
    X, y = load_iris(return_X_y=True)
    whole = ReducedSVC(
        1.0, gamma=0.3, solver="decomposition", max_iter=20000, decision_function_shape="ovo"
    ).fit(X, y)
    for k, (i, j) in enumerate([(0, 1), (0, 2), (1, 2)]):
        two = np.isin(y, [i, j])
        alone = ReducedSVC(1.0, gamma=0.3, max_iter=20000, solver="decomposition").fit(
            X[two], y[two]
        )
        np.testing.assert_allclose(
            whole.decision_function(X)[:, k], -alone.decision_function(X), atol=1e-7
        )


def test_sizes_of_the_basis():
    X, y = checkers(1200, seed=0)
    assert quick().fit(X, y).n_basis_ == 120
    assert quick(n_basis=7).fit(X, y).n_basis_ == 7
    assert quick(n_basis=0.001).fit(X, y).n_basis_ == 50
    assert quick(n_basis=0.001).fit(X[:30], y[:30]).n_basis_ == 30
    X[:40] = X[0]
    for n_basis in (1.0, 161, 200):
        assert quick(n_basis=n_basis).fit(X[:200], y[:200]).n_basis_ == 161, "distinct rows"


def test_class_weights_and_labels():
    X, y = checkers(500, seed=0)
    names = np.where(y == 1, "yes", "no")
    weighted = quick(class_weight={"yes": 3.0}).fit(X, names)
    other = quick().fit(X, names, sample_weight=np.where(y == 1, 3.0, 1.0))
    np.testing.assert_allclose(weighted.decision_function(X), other.decision_function(X), atol=1e-8)
    assert set(weighted.predict(X)) == {"yes", "no"} and weighted.class_weight_.tolist() == [
        1.0,
        3.0,
    ]


@pytest.mark.parametrize(
    "kernel",
    [
        "linear",
        "sigmoid",
        "laplacian",
        RBF(5.0),
        lambda A, B: np.exp(-np.abs(A[:, None] - B[None]).sum(-1)),
    ],
)
@every_solver
def test_any_kernel(kernel, solver):
    X, y = checkers(400, seed=0)
    model = ReducedSVC(30, kernel=kernel, solver=solver, random_state=0, max_iter=20000).fit(X, y)
    assert model.certificate_.holds and np.isfinite(model.decision_function(X)).all()
    assert objective(model, X, np.where(y == 1, 1.0, -1.0)) <= model.certificate_.objective * (
        1 + 1e-9
    )  # equal, but for the smooth loss


@pytest.mark.parametrize("solver", ["smooth", "lagrangian", "decomposition"])
def test_limits_leave_a_machine_and_are_said(solver):
    X, y = checkers(3000, seed=0)
    for limit in ({"max_iter": 1}, {"max_time": 1e-9}):
        with pytest.warns(ConvergenceWarning, match=next(iter(limit))):
            model = quick(solver, C=1e4, tol=1e-9, **limit).fit(X, y)
        assert (
            model.fit_status_ == 1 and not model.status_.converged and not model.certificate_.holds
        )
        assert np.isfinite(model.basis_coef_).all() and set(model.predict(X)) <= set(y)
    assert model.history_["seconds"].size >= 1 and model.history_["objective"][-1] == pytest.approx(
        model.certificate_.objective
    )


def test_the_lagrangian_method_reports_that_it_has_not_converged():
    X, y = checkers(1500, seed=0)
    with pytest.warns(ConvergenceWarning, match="before the tolerance was reached"):
        model = quick("lagrangian", C=1e6, tol=1e-6, max_iter=1000).fit(X, y)
    assert (
        model.n_iter_[0] == 1000
        and model.status_.reason == "max_iter"
        and model.certificate_.violation > 1e-6
    )


def test_callbacks_and_progress(capsys):
    X, y = checkers(1500, seed=0)
    quick("decomposition", verbose=True).fit(X, y)
    assert "ReducedSVC" in capsys.readouterr().out


def test_little_memory_gives_the_same_machine():
    X, y = checkers(2000, seed=0)
    for solver in SOLVERS:
        one, other = (
            quick(solver, n_basis=30, max_memory=memory, max_iter=50, tol=0.5).fit(X, y)
            for memory in (None, 0.01)
        )
        np.testing.assert_allclose(one.decision_function(X), other.decision_function(X), atol=1e-3)


def test_pickle_clone_and_search():
    X, y = load_iris(return_X_y=True)
    model = ReducedSVC(random_state=0).fit(X, y)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))
    search = GridSearchCV(
        ReducedSVC(random_state=0), {"C": [0.1, 10.0], "solver": SOLVERS[:2]}, cv=3
    ).fit(X, y)
    assert search.best_score_ > 0.9
    assert (
        model.model_nbytes_
        == model.basis_.nbytes + model.basis_coef_.nbytes + model.intercept_.nbytes
    )


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"n_basis": 0}, "n_basis"),
        ({"n_basis": 0.0}, "n_basis"),
        ({"n_basis": 1.5}, "n_basis"),
        ({"n_basis": 101}, "n_basis=101 is more than the 100 rows"),
        ({"n_basis": "many"}, "n_basis"),
        ({"C": 0.0}, "C"),
        ({"solver": "newton"}, "solver"),
        ({"beta": 0.0}, "beta"),
        ({"beta": -1.0, "solver": "lagrangian"}, "beta"),
        (
            {"beta": 0.5, "C": 2.0, "solver": "lagrangian"},
            r"not less than 1/C=0\.5.*may then cycle or diverge",
        ),
        ({"beta": 3.0, "solver": "lagrangian"}, "not less than 1/C=1"),
        ({"beta": 1.0, "solver": "least_squares"}, "has no beta"),
        ({"beta": 1.0, "solver": "decomposition"}, "has no beta"),
        ({"kernel": "precomputed"}, "needs the rows themselves"),
        ({"tol": 0.0}, "tol"),
        ({"max_memory": 0.0}, "max_memory"),
        ({"kernel": RBF(1.0), "gamma": 2.0}, "gamma"),
    ],
)
def test_what_is_refused(options, words):
    X, y = checkers(100, seed=0)
    with pytest.raises(ValueError, match=words):
        ReducedSVC(**options).fit(X, y)


def test_other_mistakes():
    X, y = checkers(100, seed=0)
    with pytest.raises(ValueError, match="class"):
        ReducedSVC().fit(X, np.zeros(100))
    with pytest.raises(ValueError, match="positive weights"):
        ReducedSVC().fit(X, y, sample_weight=(y == 1).astype(float))
    with pytest.raises(ValueError, match="NaN"):
        ReducedSVC().fit(np.where(X > 0, np.nan, X), y)
    with pytest.raises(NotFittedError):
        ReducedSVC().predict(X)
    with pytest.raises(ValueError, match=r"not finite|too large"):
        ReducedSVC(kernel="poly", gamma=1e200).fit(X, y)


@every_solver
def test_odd_but_legal_data(solver):
    same = ReducedSVC(solver=solver, max_iter=20000).fit(np.ones((6, 2)), [0, 0, 1, 1, 1, 1])
    assert (
        same.n_basis_ == 1
        and np.isfinite(same.basis_coef_).all()
        and same.predict([[1.0, 1.0]])[0] == 1
    )
    two = ReducedSVC(solver=solver, max_iter=20000).fit([[0.0], [1.0]], ["a", "b"])
    assert two.predict([[0.0], [1.0]]).tolist() == ["a", "b"]
    blank = ReducedSVC(solver=solver, max_iter=20000).fit(sp.csr_matrix((4, 3)), [0, 1, 1, 1])
    assert blank.predict(np.zeros((1, 3)))[0] == 1


@pytest.mark.parametrize("n_classes", [2, 4])
def test_it_can_be_compressed(n_classes):
    X, y = load_digits(n_class=n_classes, return_X_y=True)
    model = ReducedSVC(random_state=0, C=10.0).fit(X, y)
    same, small = compress(model, 10**6), compress(model, 20, random_state=0)
    np.testing.assert_allclose(same.decision_function(X), model.decision_function(X), atol=1e-8)
    np.testing.assert_array_equal(same.predict(X), model.predict(X))
    assert small.n_basis_ == 20 and np.mean(small.predict(X) == model.predict(X)) > 0.9


def test_the_command_line_can_describe_it():
    X, y = load_iris(return_X_y=True)
    text = describe_in_words(describe(ReducedSVC(random_state=0).fit(X, y)))
    assert "ReducedSVC" in text and "basis vectors" in text
