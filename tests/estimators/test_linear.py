"""LinearSVC: the same optimum as other models, weights as repetitions, limits."""

import pickle
import tracemalloc
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn import svm
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler

import slimsvm
from slimsvm import SVC
from slimsvm.losses import SquaredHinge
from slimsvm.problems.coordinates import coordinates
from slimsvm.rows import MemoryRows
from slimsvm.run import run
from slimsvm.solvers.linear_newton import LinearNewton, LinearProblem
from slimsvm.solvers.spaces import ExplicitSpace


def LinearSVC(loss="squared_hinge", *, fit_intercept=True, **parameters):
    """With an intercept that is not penalised, if any; LIBLINEAR's is tested further below."""
    free = "free" if fit_intercept else False
    return slimsvm.LinearSVC(loss=loss, fit_intercept=free, **parameters)


both = pytest.mark.parametrize("loss", ["squared_hinge", "hinge"])


def make(n, d=5, seed=0, classes=2):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) + 0.5
    score = X @ rng.standard_normal((d, classes)) + 1.5 * rng.standard_normal((n, classes))
    return X, np.argmax(score, axis=1)


def objective(model, X, sign, C, column=0, weight=None):
    w, b = model.coef_[column], model.intercept_[column]
    missing = np.maximum(0, 1 - sign * (X @ w + b))
    weight = np.ones(len(sign)) if weight is None else weight
    return 0.5 * w @ w + C * weight @ (missing if model.loss == "hinge" else missing**2)


@pytest.mark.parametrize("n", [200, 3000])
@pytest.mark.parametrize("C", [1e-3, 1.0, 100.0])
def test_the_hinge_is_that_of_svc(n, C):
    X, y = make(n)
    model, other = (
        LinearSVC("hinge", C=C, max_iter=-1).fit(X, y),
        svm.SVC(kernel="linear", C=C, tol=1e-6).fit(X, y),
    )
    sign = np.where(y == 1, 1.0, -1.0)
    w = other.coef_[0]
    best = 0.5 * w @ w + C * np.maximum(0, 1 - sign * other.decision_function(X)).sum()
    assert model.certificate_.objective == pytest.approx(objective(model, X, sign, C), rel=1e-9)
    assert (
        model.certificate_.holds
        and model.certificate_.objective - model.certificate_.gap <= best * (1 + 1e-6)
    )
    assert model.certificate_.objective <= best * (1 + (1e-6 if n <= 1000 else 1e-4))
    if n <= 1000:
        np.testing.assert_allclose(
            model.decision_function(X),
            SVC(kernel="linear", C=C).fit(X, y).decision_function(X),
            atol=1e-7,
        )


@pytest.mark.parametrize("n", [200, 3000])
@pytest.mark.parametrize("C", [1e-3, 1.0, 100.0])
def test_the_squared_hinge_is_that_of_liblinear(n, C):
    X, y = make(n)
    model = LinearSVC(C=C, tol=1e-10).fit(X, y)
    # liblinear's intercept is penalised: a huge constant feature makes that vanish
    other = svm.LinearSVC(C=C, dual=False, intercept_scaling=1e4, tol=1e-10, max_iter=100_000).fit(
        X, y
    )
    sign = np.where(y == 1, 1.0, -1.0)
    other.loss = "squared_hinge"
    assert objective(model, X, sign, C) <= objective(other, X, sign, C) * (1 + 1e-9)
    assert objective(model, X, sign, C) >= objective(other, X, sign, C) * (1 - 1e-4)
    assert model.certificate_.objective == pytest.approx(objective(model, X, sign, C), rel=1e-9)
    without = LinearSVC(C=C, fit_intercept=False, tol=1e-10).fit(X, y)
    other = svm.LinearSVC(C=C, dual=False, fit_intercept=False, tol=1e-10, max_iter=100_000).fit(
        X, y
    )
    np.testing.assert_allclose(without.coef_, other.coef_, rtol=1e-4, atol=1e-6)


@both
def test_several_classes_are_one_against_the_rest(loss):
    X, y = make(300, classes=4)
    model = LinearSVC(loss, C=0.5).fit(X, y)
    assert (
        model.coef_.shape == (4, 5)
        and model.intercept_.shape == (4,)
        and model.decision_function(X).shape == (300, 4)
    )
    for c in range(4):
        alone = LinearSVC(loss, C=0.5).fit(X, y == c)
        np.testing.assert_allclose(model.coef_[c], alone.coef_[0], atol=1e-8)
        np.testing.assert_allclose(model.intercept_[c], alone.intercept_[0], atol=1e-8)
    np.testing.assert_array_equal(model.predict(X), np.argmax(model.decision_function(X), axis=1))


@both
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("d", [4, 400])
def test_weights_are_repetitions(loss, fit_intercept, d):
    X, y = make(200, d)
    times = np.random.default_rng(1).integers(0, 4, 200)
    again = np.repeat(np.arange(200), times)
    model = LinearSVC(loss, C=0.3, fit_intercept=fit_intercept, class_weight="balanced")
    weighted = clone(model).fit(X, y, sample_weight=times)
    repeated = clone(model).fit(X[again], y[again])
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(weighted.intercept_, repeated.intercept_, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(weighted.class_weight_, repeated.class_weight_)


@both
@pytest.mark.parametrize("n", [300, 2000])
def test_dense_sparse_and_single_precision(loss, n):
    X, y = make(n, 12)
    X[np.abs(X) < 0.7] = 0.0
    model = LinearSVC(loss, C=0.1, tol=1e-6).fit(X, y)
    sparse = LinearSVC(loss, C=0.1, tol=1e-6).fit(sp.csr_matrix(X), y)
    single = LinearSVC(loss, C=0.1, tol=1e-5).fit(X.astype(np.float32), y)
    atol = 1e-9 if n <= 1000 else 5e-3
    np.testing.assert_allclose(sparse.coef_, model.coef_, atol=atol)
    np.testing.assert_allclose(single.coef_, model.coef_, atol=max(atol, 1e-5))
    np.testing.assert_allclose(
        sparse.decision_function(sp.csr_matrix(X)), model.decision_function(X), atol=20 * atol
    )


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_matrix])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_conjugate_gradients_are_newtons_matrix(kind, fit_intercept):
    X, y = make(2000, 40)
    X[:, 3] += 50.0
    X[:, 4] *= 30.0
    target = np.where(y == 1, 1.0, -1.0)[:, None]
    problem = LinearProblem(
        ExplicitSpace(MemoryRows(kind(X))),
        target,
        np.full(2000, 0.7),
        SquaredHinge(),
        fit_intercept,
    )
    one, other = (
        run(LinearNewton(direct=direct), problem, tol=1e-10, max_iter=200)
        for direct in (True, False)
    )
    assert one.certificate.holds and other.certificate.holds and one.n_iter < 20
    assert one.certificate.objective == pytest.approx(other.certificate.objective, rel=1e-9)
    np.testing.assert_allclose(one.model.coef, other.model.coef, rtol=1e-3, atol=1e-4)


@both
def test_more_features_than_rows(loss):
    rng = np.random.default_rng(0)
    X, y = sp.random(80, 3000, 0.02, format="csr", random_state=rng), rng.integers(0, 2, 80)
    sparse, dense = LinearSVC(loss).fit(X, y), LinearSVC(loss).fit(X.toarray(), y)
    np.testing.assert_allclose(sparse.coef_, dense.coef_, atol=1e-9)
    K = (X @ X.T).toarray()
    if loss == "hinge":
        other = svm.SVC(kernel="precomputed", tol=1e-9).fit(K, y)
        np.testing.assert_allclose(
            dense.decision_function(X), other.decision_function(K), atol=1e-5
        )
    rows = coordinates(X, np.ones(80), True)
    W, b = rng.standard_normal((rows.X.shape[1], 2)), rng.standard_normal(2)
    coef, intercept = rows.given(W, b)
    np.testing.assert_allclose(X @ coef + intercept, rows.X @ W + b, atol=1e-10)
    again = rows.own(coef, intercept)
    np.testing.assert_allclose(again[0], W, atol=1e-9)
    np.testing.assert_allclose(again[1], b, atol=1e-9)


@both
def test_many_more_features_than_rows_take_no_matrix_of_both(loss):
    """As from scikit-learn's HashingVectorizer, with 2^20 features: the coordinates of the rows
    stay implicit.
    """
    n, d, rng = 200, 1 << 17, np.random.default_rng(0)
    column = rng.integers(d, size=(n, 20))
    X, y = (
        sp.csr_matrix(
            (rng.standard_normal(n * 20), (np.repeat(np.arange(n), 20), column.ravel())),
            shape=(n, d),
        ),
        np.arange(n) % 2,
    )
    tracemalloc.start()
    try:
        wide = LinearSVC(loss).fit(X, y)
        assert tracemalloc.get_traced_memory()[1] < 24 * 8 * d
    finally:
        tracemalloc.stop()
    used = np.unique(X.indices)
    narrow = LinearSVC(loss).fit(X[:, used], y)
    assert wide.coef_[:, used] == pytest.approx(narrow.coef_, abs=1e-9)
    assert np.count_nonzero(wide.coef_) <= used.size
    again = LinearSVC(loss, warm_start=True, max_iter=1)
    again.coef_, again.intercept_ = wide.coef_, wide.intercept_
    assert again.fit(X, y).coef_ == pytest.approx(wide.coef_, abs=1e-9)


@both
def test_shifted_and_constant_features_change_nothing(loss):
    X, y = make(300)
    model = LinearSVC(loss).fit(X, y)
    shifted = LinearSVC(loss).fit(np.column_stack([X + 1e4, np.full(300, 3.0)]), y)
    np.testing.assert_allclose(shifted.coef_[:, :-1], model.coef_, atol=1e-8)
    assert shifted.coef_[0, -1] == pytest.approx(0.0, abs=1e-10)
    np.testing.assert_allclose(
        shifted.decision_function(np.column_stack([X + 1e4, np.full(300, 3.0)])),
        model.decision_function(X),
        atol=1e-6,
    )


@both
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_features_of_very_different_size(loss, fit_intercept):
    X, y = make(300, 3)
    model = LinearSVC(loss, fit_intercept=fit_intercept).fit(X * [1e6, 1.0, 1e-6], y)
    # the hinge is polished on X X', whose entries are 1e12 times what decides: of 16 digits, four
    # are left for sums of 300 products, and a gap is the square of that (2e-7 was seen without
    # fused multiply-add, 1e-9 with it)
    assert model.certificate_.violation < 1e-6 and model.status_.converged
    huge = LinearSVC(loss, C=1e8, fit_intercept=fit_intercept).fit(X, y)
    assert huge.certificate_.violation < 1e-6


def test_conjugate_gradients_at_a_large_C():
    """More features than rows, separable: from zero, Newton's method alone would take hundreds of
    steps.
    """
    rng = np.random.default_rng(0)
    X = rng.standard_normal((1100, 1500))
    model = LinearSVC().fit(X, X[:, 0] > 0)
    assert model.certificate_.holds and model.n_iter_ < 120 and model.score(X, X[:, 0] > 0) == 1.0


def least_squared_hinge(X, y, C, steps=300):
    """The least value, by another way: active rows as a least-squares problem, solved by QR, and
    bisection along each direction.
    """
    u, A = np.zeros(X.shape[1] + 1), np.hstack([X, np.ones((len(X), 1))])
    penalty = np.eye(X.shape[1], X.shape[1] + 1)

    def value(u):
        return 0.5 * np.sum((penalty @ u) ** 2) + C * np.sum(np.maximum(0, 1 - y * (A @ u)) ** 2)

    for _ in range(steps):
        felt = y * (A @ u) < 1
        d = (
            np.linalg.lstsq(
                np.vstack([np.sqrt(2 * C) * A[felt], penalty]),
                np.append(np.sqrt(2 * C) * y[felt], 0 * u[1:]),
                rcond=None,
            )[0]
            - u
        )
        low, high = 0.0, 2.0
        for _ in range(60):
            t = 0.5 * (low + high)
            slope = (penalty @ (u + t * d)) @ (penalty @ d) - 2 * C * np.maximum(
                0, 1 - y * (A @ (u + t * d))
            ) @ (y * (A @ d))
            low, high = (t, high) if slope < 0 else (low, t)
        if not value(u + t * d) < value(u) * (1 - 1e-15):
            break
        u = u + t * d
    return value(u)


def above_dual(X, y, C, model):
    """The objective of the model, and how far it is above a value of the dual problem, relative to
    it: nothing of the solver's is used.
    """
    w, b = model.coef_[0], model.intercept_[0]
    a = 2 * C * np.maximum(0, 1 - y * (np.asarray(X @ w).ravel() + b))
    a[y > 0] *= min(1.0, a[y < 0].sum() / a[y > 0].sum())
    a[y < 0] *= a[y > 0].sum() / a[y < 0].sum()
    quadratic = np.sum(np.asarray(X.T @ (a * y)) ** 2) + a @ a / (2 * C)
    value = 0.5 * w @ w + C * np.sum(np.maximum(0, 1 - y * (np.asarray(X @ w).ravel() + b)) ** 2)
    return value, 1.0 - 0.5 * a.sum() ** 2 / quadratic / value


@pytest.mark.parametrize("C", [1e-3, 1.0, 1e3, 1e5, 1e6])
@pytest.mark.parametrize("separable", [False, True])
@pytest.mark.parametrize("spread", [0, 3])
def test_seven_digits_at_any_C(C, separable, spread):
    rng = np.random.default_rng(7)
    X = rng.standard_normal((1200, 15)) * 10.0 ** rng.uniform(-spread, spread, 15)
    y = np.where(
        X / np.abs(X).max(axis=0) @ rng.standard_normal(15)
        + 0.2 * (not separable) * rng.standard_normal(1200)
        > 0.05,
        1.0,
        -1.0,
    )
    model = LinearSVC(C=C, tol=1e-7).fit(X, y)
    value, gap = above_dual(X, y, C, model)
    assert model.status_.converged and abs(gap) < 1e-7
    assert value == pytest.approx(least_squared_hinge(X, y, C), rel=1e-7)


@pytest.mark.parametrize("C", [1e3, 1e6])
@pytest.mark.parametrize(("d", "spread"), [(300, 0), (700, 0), (700, 3)])
def test_seven_digits_of_sparse_rows_at_a_large_C(C, d, spread):
    """Conjugate gradients alone are far from the end after a thousand steps; systems in rows lose
    their digits with such features.
    """
    rng = np.random.default_rng(1)
    X = sp.random(1300, d, 12.0 / d, random_state=1, format="csr")
    y = np.where(X @ rng.standard_normal(d) + 0.1 * rng.standard_normal(1300) > 0, 1.0, -1.0)
    X = (X @ sp.diags(10.0 ** rng.uniform(-spread, spread, d))).tocsr()
    model = LinearSVC(C=C, tol=1e-7).fit(X, y)
    assert model.status_.converged and abs(above_dual(X, y, C, model)[1]) < 1e-7


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_matrix])
def test_certificates_of_single_precision_hold(kind):
    """Rows in float32, separable, at a large C: scores in float32 would be wrong by more than is
    left of the objective.
    """
    rng = np.random.default_rng(0)
    X = rng.standard_normal((1500, 20)).astype(np.float32)
    y = np.where(X @ rng.standard_normal(20) > 0, 1.0, -1.0)
    model = LinearSVC(C=1e6, tol=1e-7).fit(kind(X), y)
    assert (
        model.status_.converged and abs(above_dual(X.astype(np.float64), y, 1e6, model)[1]) < 1e-7
    )


@both
def test_class_weights(loss):
    X, y = make(400)
    model = LinearSVC(loss, class_weight={0: 1.0, 1: 3.0}).fit(X, y)
    same = LinearSVC(loss).fit(X, y, sample_weight=np.where(y == 1, 3.0, 1.0))
    np.testing.assert_allclose(model.coef_, same.coef_, atol=1e-9)
    np.testing.assert_array_equal(model.class_weight_, [1.0, 3.0])


@both
def test_the_same_bits_for_any_number_of_threads(loss):
    X, y = make(30_000, 20, classes=3)
    one, two = (LinearSVC(loss, C=1e-3, n_jobs=jobs).fit(X, y) for jobs in (1, 2))
    np.testing.assert_array_equal(one.coef_, two.coef_)
    np.testing.assert_array_equal(one.intercept_, two.intercept_)


@both
def test_limits_and_warm_starts(loss):
    X, y = make(4000, 30)
    C = 10.0 if loss == "hinge" else 1.0
    for limit in ({"max_iter": 1}, {"max_time": 1e-9}):
        with pytest.warns(ConvergenceWarning, match=next(iter(limit))):
            rough = LinearSVC(loss, C=C, tol=1e-9, warm_start=True, **limit).fit(X, y)
        assert (
            rough.fit_status_ == 1
            and not rough.certificate_.holds
            and np.isfinite(rough.coef_).all()
            and rough.n_iter_ <= (10 if loss == "hinge" else 1)  # a step is up to ten passes
        )
    rough.set_params(max_iter=-1, max_time=None, tol=1e-4).fit(X, y)
    assert rough.fit_status_ == 0 and "relative duality gap" in str(rough.status_)
    first = rough.certificate_.objective
    rough.fit(X, y)
    assert rough.history_["objective"][0] <= first * (1 + 1e-12)
    cold = LinearSVC(loss, C=C, max_iter=-1).fit(X, y)
    assert (
        abs(cold.certificate_.objective - first)
        <= cold.certificate_.gap + rough.certificate_.gap + 1e-4 * first
    )
    other = LinearSVC(loss, warm_start=True).fit(X, y)
    with pytest.warns(UserWarning, match="begins anew"):
        other.fit(X[:, :3], y)  # another shape: from the beginning
    assert other.coef_.shape == (1, 3)


@both
def test_history_and_certificate(loss):
    X, y = make(3000, 10)
    model = LinearSVC(loss, C=0.1).fit(X, y)
    history = model.history_
    assert {"seconds", "objective", "gap", "violation"} <= set(history)
    assert np.all(np.diff(history["objective"]) <= 1e-12 * history["objective"][0])
    assert (
        model.certificate_.scope == "full"
        and model.certificate_.violation <= 1e-4
        and model.n_iter_ >= 1
    )
    assert model.certificate_.precision == "float64"


@both
def test_real_data_and_what_the_ecosystem_needs(loss, capsys):
    X, y = load_breast_cancer(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    model = LinearSVC(loss, verbose=True).fit(X, y.astype(str))
    assert "LinearSVC" in capsys.readouterr().out
    assert model.score(X, y.astype(str)) > 0.97 and set(model.classes_) == {"0", "1"}
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict(X), model.predict(X))
    assert LinearSVC(loss).fit(*load_iris(return_X_y=True)).score(*load_iris(return_X_y=True)) > 0.9
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        LinearSVC(loss, C=1e-6).fit(X, y)
        LinearSVC(loss, C=1e3).fit(X, y)


def test_data_frames():
    pytest.importorskip("pandas")
    X, y = load_iris(return_X_y=True, as_frame=True)
    model = LinearSVC().fit(X, y)
    assert list(model.feature_names_in_) == list(X.columns)


def test_bad_parameters():
    X, y = make(10)
    for wrong in (
        {"loss": "log"},
        {"C": 0.0},
        {"tol": 0.0},
        {"max_iter": -2},
        {"max_time": 0},
        {"fit_intercept": "no"},
        {"class_weight": "no"},
    ):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            slimsvm.LinearSVC(**wrong).fit(X, y)
    with pytest.raises(ValueError, match="class"):
        LinearSVC().fit(X, np.zeros(10))


@both
def test_nearly_nothing(loss):
    for X, y in (
        ([[0.0], [1.0]], [0, 1]),
        ([[1.0], [1.0]], [0, 1]),
        ([[1.0], [1.0], [1.0]], [0, 1, 1]),
        (np.zeros((4, 3)), [0, 1, 2, 1]),
    ):
        for fit_intercept in (True, False):
            model = LinearSVC(loss, fit_intercept=fit_intercept).fit(X, y)
            assert (
                np.isfinite(model.coef_).all()
                and np.isfinite(model.intercept_).all()
                and model.certificate_.holds
            )


@pytest.mark.parametrize("n", [100, 1100])
@pytest.mark.parametrize("C", [1e3, 1e12])
def test_features_that_are_not_scaled(n, C):
    """C |x|^2 beyond the digits of float64, separable: no Cholesky factor, and yet the widest
    margin.

    |w| grows with C and ends at that of the widest margin, which a weight vector that leaves all
    rows right can only exceed: the norm at C = 1e6 in scaled features, and the same divided by its
    least margin, are its bounds (1.6e-5 apart at most). The solver knows the rows on the margin
    once their errors are below 1e-6, and goes there in one step: a thousandth leaves three digits
    for the condition of that step.
    """
    X, _ = make(n, d=40)
    y = (X[:, 0] > 0.5).astype(int)
    with pytest.warns(
        ConvergenceWarning, match=r"rounding errors.*Scale the features, or use a smaller C"
    ):
        model = LinearSVC(C=C).fit(1e6 * X, y)
    scaled = LinearSVC(C=1e6, tol=1e-9).fit(X, y)
    least = np.min(np.where(y == 1, 1.0, -1.0) * scaled.decision_function(X))
    norm = np.linalg.norm(scaled.coef_)
    assert scaled.certificate_.holds and 0.9999 < least < 1.0
    assert np.min(np.where(y == 1, 1.0, -1.0) * model.decision_function(1e6 * X)) > 1.0 - 1e-9
    assert norm < 1e6 * np.linalg.norm(model.coef_) < 1.001 * norm / least


@pytest.mark.parametrize("C", [1e7, 1e8, 1e12])
@pytest.mark.parametrize("shift", [0.0, 3.0])
def test_steps_without_an_error(C, shift):
    """Once all rows are right, the intercept must not take back what brings one class to the
    margin: a thousand steps as short as 1 / C. It takes 3 to 33.
    """
    X = np.array([[-1.0, 0.0], [-2.0, 1.0], [1.0, 0.0], [2.0, 1.0]]) + shift
    start = LinearSVC(C=C, warm_start=True).fit(X, [0, 0, 1, 1])
    np.testing.assert_allclose(start.coef_, [[1.0, 0.0]], atol=1e-6)
    start.coef_, start.intercept_ = (
        5.0 * start.coef_,
        5.0 * start.intercept_ + 0.5,
    )  # right, and far from the margin
    model = start.fit(X, [0, 0, 1, 1])
    assert model.certificate_.holds and model.n_iter_ < 50
    np.testing.assert_allclose(model.coef_, [[1.0, 0.0]], atol=1e-6)


@both
@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
def test_values_whose_squares_are_beyond_floats(loss, form):
    X, y = make(60)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        with pytest.raises(
            ValueError, match=r"X has values as large as .*e\+200.*Scale the features"
        ):
            LinearSVC(loss).fit(form(1e200 * X), y)
        with pytest.raises(ValueError, match=r"with C=1e\+20, products of such squares"):
            LinearSVC(loss, C=1e20).fit(form(1e70 * X), y)
        for tiny, C in ((1e-200, 1.0), (1e-200, 1e100), (1e-300, 1e50)):
            assert np.isfinite(LinearSVC(loss, C=C).fit(form(tiny * X), y).coef_).all()
