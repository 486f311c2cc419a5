"""LinearSVC and LinearSVR as LIBLINEAR has them: the same optimum for every combination."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn import svm
from sklearn.datasets import load_digits, load_iris, make_classification, make_regression
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler

import slimsvm
from slimsvm import LinearSVC, LinearSVR
from slimsvm.run import run
from slimsvm.solvers.linear_l1 import L1Descent, L1Problem
from tests.pairs import every_pair

LIBLINEAR = {"tol": 1e-9, "max_iter": 200_000}


def rows(n=150, d=12, classes=2, seed=0):
    X, y = make_classification(
        n, d, n_informative=6, n_classes=classes, flip_y=0.1, random_state=seed
    )
    return X + 0.5, y


def value(model, X, target, weight, of_error, penalty="l2", scaling=1.0):
    """The objective of LIBLINEAR, of every column."""
    w, b = np.atleast_2d(model.coef_), np.atleast_1d(model.intercept_)
    with_b = np.column_stack([w, b / scaling]) if scaling else w
    norm = np.abs(with_b).sum(axis=1) if penalty == "l1" else 0.5 * (with_b**2).sum(axis=1)
    return norm + (weight * of_error(target, X @ w.T + b)).sum(axis=0)


def squared_hinge(y, f):
    return np.maximum(0.0, 1.0 - y * f) ** 2


def hinge(y, f):
    return np.maximum(0.0, 1.0 - y * f)


@every_pair(
    loss=["hinge", "squared_hinge"],
    penalty=["l1", "l2"],
    classes=[2, 3],
    scaling=[0.0, 1.0, 10.0],
    n=[150, 1500],
)
def test_the_optimum_is_that_of_liblinear(loss, penalty, classes, scaling, n):
    if (loss, penalty) == ("hinge", "l1"):
        pytest.skip("refused, by LIBLINEAR too")
    X, y = rows(n, classes=classes)
    weight = np.random.default_rng(0).uniform(0.5, 2.0, n)
    factors = {0: 2.0, 1: 0.5, 2: 1.5}
    given = {
        "loss": loss,
        "penalty": penalty,
        "C": 0.1,
        "class_weight": {c: factors[c] for c in range(classes)},
        "fit_intercept": bool(scaling),
        "intercept_scaling": scaling or 1.0,
    }
    tol = 1e-5 if loss == "hinge" and n > 1000 else 1e-7  # the last digits of kinks are slow
    ours = LinearSVC(**given, tol=tol).fit(X, y, sample_weight=weight)
    theirs = svm.LinearSVC(**given, dual="auto", **LIBLINEAR).fit(X, y, sample_weight=weight)
    positive = np.array([1]) if classes == 2 else np.arange(classes)
    sign = np.where(y[:, None] == positive, 1.0, -1.0)
    own = np.array([factors[c] for c in y])[:, None]
    of_rows = own if classes == 2 else np.where(sign > 0, own, 1.0)
    about = (sign, 0.1 * weight[:, None] * of_rows, hinge if loss == "hinge" else squared_hinge)
    found, expected = (value(m, X, *about, penalty, scaling) for m in (ours, theirs))
    assert (found <= expected * (1 + 10 * tol)).all()
    # a relative gap g leaves |w - w*|^2 <= 2 g (objective)
    near = 1e-4 * np.abs(theirs.coef_).max() if tol < 1e-6 else np.sqrt(2 * tol * found.max())
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=near)
    np.testing.assert_allclose(
        ours.intercept_,
        np.broadcast_to(theirs.intercept_, ours.intercept_.shape),
        atol=max(1e-3, near),
    )
    assert ours.certificate_.holds and isinstance(ours.n_iter_, int)
    assert ours.coef_.shape == theirs.coef_.shape


@pytest.mark.parametrize("loss", ["epsilon_insensitive", "squared_epsilon_insensitive"])
@pytest.mark.parametrize("scaling", [0.0, 1.0, 5.0])
@pytest.mark.parametrize("n", [100, 1500])
def test_regression_is_that_of_liblinear(loss, scaling, n):
    X, y = make_regression(n, 8, noise=5.0, random_state=0)
    y = y / y.std() + 1.0
    given = {"loss": loss, "C": 0.3, "epsilon": 0.1, "fit_intercept": bool(scaling)}
    given["intercept_scaling"] = scaling or 1.0
    ours = LinearSVR(**given, tol=1e-7).fit(X, y)
    theirs = svm.LinearSVR(**given, **LIBLINEAR).fit(X, y)

    def error(t, f):
        e = np.maximum(0.0, np.abs(t - f) - 0.1)
        return e if loss == "epsilon_insensitive" else e**2

    found, best = (value(m, X, y[:, None], 0.3, error, "l2", scaling) for m in (ours, theirs))
    assert found <= best * (1 + 1e-6)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=2e-4)
    assert ours.coef_.shape == (8,) and ours.certificate_.holds
    np.testing.assert_allclose(ours.predict(X), X @ ours.coef_ + ours.intercept_, rtol=1e-12)


def test_a_free_intercept_knows_no_shift_of_the_features():
    X, y = rows()
    for make in (
        lambda: LinearSVC(fit_intercept="free"),
        lambda: LinearSVC(fit_intercept="free", penalty="l1"),
        lambda: LinearSVC(fit_intercept="free", loss="hinge"),
        lambda: LinearSVR(fit_intercept="free", loss="squared_epsilon_insensitive"),
    ):
        model, shifted = make().fit(X, y), make().fit(X + 10.0, y)
        # sparse weights end at a relative gap of 1e-10, the others at 1e-20: its root is an error
        np.testing.assert_allclose(shifted.coef_, model.coef_, atol=1e-5)
    penalised, shifted = LinearSVC().fit(X, y), LinearSVC().fit(X + 10.0, y)
    assert np.abs(shifted.coef_ - penalised.coef_).max() > 1e-3


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_crammer_and_singer(classes, fit_intercept):
    X, y = rows(classes=classes)
    given = {"multi_class": "crammer_singer", "C": 0.1, "fit_intercept": fit_intercept}
    ours = LinearSVC(**given).fit(X, y)
    theirs = svm.LinearSVC(**given, **LIBLINEAR).fit(X, y)
    assert ours.coef_.shape == theirs.coef_.shape
    if classes == 3:  # of two, LIBLINEAR gives away what the two norms were

        def joint(model):
            scores = X @ model.coef_.T + model.intercept_
            cost = scores + 1.0 - np.eye(3)[y]
            loss = cost.max(axis=1) - scores[np.arange(len(y)), y]
            with_b = np.column_stack([model.coef_, np.broadcast_to(model.intercept_, 3)])
            return 0.5 * (with_b**2).sum() + 0.1 * loss.sum()

        assert joint(ours) <= joint(theirs) * (1 + 1e-3)
    assert np.mean(ours.predict(X) == theirs.predict(X)) > 0.97


def test_the_gap_of_sparse_weights_bounds_what_more_work_would_gain():
    X, y = rows(400, 30)
    sign = np.where(y == 1, 1.0, -1.0)[:, None]
    for scaling in (0.0, 1.0, np.inf):
        problem = L1Problem(X, sign, np.full(400, 0.05), scaling)
        best = run(L1Descent(), problem, tol=1e-10, max_iter=5000).certificate
        for most in (1, 3, 10):
            rough = run(L1Descent(), problem, tol=1e-12, max_iter=most).certificate
            assert rough.objective - rough.gap <= best.objective * (1 + 1e-9)
            assert rough.objective >= best.objective * (1 - 1e-9)
        sparse = L1Problem(sp.csr_matrix(X), sign, np.full(400, 0.05), scaling)
        assert run(L1Descent(), sparse, tol=1e-8, max_iter=5000).certificate.objective == (
            pytest.approx(best.objective, rel=1e-6)
        )


def test_sparse_weights_on_features_that_are_alike():
    """The same feature three times: along single weights one would crawl."""
    X, y = rows(300, 10)
    X = StandardScaler().fit_transform(np.hstack([X, X + 1e-3 * X[:, ::-1], X]))
    model = LinearSVC(penalty="l1", C=1.0).fit(X, y)
    assert model.certificate_.holds and np.count_nonzero(model.coef_) < 30


@pytest.mark.parametrize("intercept", [True, "free", False])
@pytest.mark.parametrize("kind", [np.asarray, sp.csr_matrix])
def test_sparse_weights_at_a_large_C_meet_the_conditions_of_the_optimum(intercept, kind):
    """Redundant features, C = 1,000: the slopes of the loss say whether weights are the best."""
    X, y = make_classification(150, 14, n_informative=6, flip_y=0.2, random_state=1)
    X = np.where(np.abs(X) > 0.3, X, 0.0)
    X = np.hstack([X, X[:, :10] - X[:, 2:12]])
    sign, C = 2.0 * y - 1.0, 1e3
    model = LinearSVC(penalty="l1", C=C, fit_intercept=intercept).fit(kind(X), y)
    assert model.certificate_.holds and model.n_iter_ < 50
    error = np.maximum(0.0, 1.0 - sign * model.decision_function(kind(X)))
    w, Z = model.coef_[0], X
    if intercept is True:
        w, Z = np.append(w, model.intercept_), np.hstack([X, np.ones((150, 1))])
    slope = -2.0 * C * (Z.T @ (sign * error))
    assert 0 < np.count_nonzero(w) < w.size
    np.testing.assert_allclose(slope[w != 0.0], -np.sign(w[w != 0.0]), atol=1e-4)
    assert np.abs(slope[w == 0.0]).max() <= 1.0 + 1e-4
    if intercept == "free":
        assert 2.0 * C * (sign @ error) == pytest.approx(0.0, abs=1e-4)
    objective = np.abs(w).sum() + C * (error @ error)
    assert model.certificate_.objective == pytest.approx(objective, rel=1e-9)


@pytest.mark.parametrize("scaling", [1.0, np.inf])
def test_sparse_weights_of_many_features_need_few_passes(scaling):
    """Words of texts: single weights crawl for a thousand passes, whose signs do not change."""
    rng = np.random.default_rng(0)
    n, d, k = 1200, 3000, 3
    y = np.repeat(np.arange(k), n // k)
    own = rng.integers(0, d, (k, 300))[y[:, None], rng.integers(0, 300, (n, 40))]
    words = np.hstack([own, (d * rng.random((n, 60)) ** 4).astype(int)])
    X = sp.csr_matrix((np.full(words.size, 0.1), words.ravel(), np.arange(0, words.size + 1, 100)))
    X.resize(n, d)
    X.sum_duplicates()
    sign = np.where(y[:, None] == np.arange(k), 1.0, -1.0)
    sign[rng.random(sign.shape) < 0.05] *= -1.0
    found = [
        run(L1Descent(), L1Problem(X, sign, np.full(n, 10.0), scaling, threads), tol=1e-6,
            max_iter=500)
        for threads in (1, 2)
    ]  # fmt: skip
    one, two = found
    np.testing.assert_array_equal(one.model.coef, two.model.coef)
    assert one.certificate.violation <= 1e-6  # before: more than 1,000 passes
    error = np.maximum(0.0, 1.0 - sign * (X @ one.model.coef + one.model.intercept))
    slope = -20.0 * (X.T @ (sign * error))
    w = one.model.coef
    np.testing.assert_allclose(slope[w != 0.0], -np.sign(w[w != 0.0]), atol=1e-2)
    assert np.abs(slope[w == 0.0]).max() <= 1.0 + 1e-2
    if scaling == np.inf:
        np.testing.assert_allclose(20.0 * (sign * error).sum(axis=0), 0.0, atol=1e-6)


def test_weights_become_sparse_and_dense_again(tmp_path):
    X, y = load_iris(return_X_y=True)
    model = LinearSVC(penalty="l1", C=0.1).fit(X, y)
    before = model.decision_function(X)
    assert sp.issparse(model.sparsify().coef_)
    np.testing.assert_allclose(model.decision_function(X), before)
    np.testing.assert_allclose(model.decision_function(sp.csr_matrix(X)), before)
    slimsvm.save(model, tmp_path / "model.slim")
    np.testing.assert_allclose(slimsvm.load(tmp_path / "model.slim").decision_function(X), before)
    np.testing.assert_allclose(model.densify().decision_function(X), before)


def test_words_of_scikit_learn():
    X, y = rows()
    for wrong in ({"penalty": "l1", "loss": "hinge"}, {"loss": "hinge", "dual": False}):
        with pytest.raises(ValueError, match="Unsupported set of arguments"):
            LinearSVC(**wrong).fit(X, y)
    with pytest.raises(ValueError, match="penalty"):
        LinearSVC("hinge").fit(X, y)
    with pytest.raises(ValueError, match="Unsupported set of arguments"):
        LinearSVR(dual=False).fit(X, y)
    X, y = load_digits(return_X_y=True)
    with pytest.warns(ConvergenceWarning, match="Liblinear failed to converge, increase the num"):
        LinearSVC(max_iter=1, tol=1e-12).fit(X, y)


def test_a_warm_start_that_cannot_go_on_says_so():
    X, y = rows()
    for model in (LinearSVC(warm_start=True), LinearSVR(warm_start=True)):
        model.fit(X, y)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            model.fit(X, y)
        with pytest.warns(UserWarning, match="begins anew"):
            model.fit(X[:, 1:], y)


def test_l1_min_c_is_where_the_first_weight_appears():
    X, y = rows()
    least = slimsvm.l1_min_c(X, y)
    assert not LinearSVC(penalty="l1", C=least * 0.999).fit(X, y).coef_.any()
    more = LinearSVC(penalty="l1", C=least * 1.01).fit(X, y)
    assert more.coef_.any() or more.intercept_.any()


@pytest.mark.parametrize("C", [1e-3, 1e5])
def test_a_free_intercept_beside_an_l1_penalty_is_found_for_weights_of_ten_orders(C):
    """Loops that are compiled without infinities must not have one as the end of a bracket."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 5))
    y = (X @ rng.normal(size=5) + rng.normal(size=60) > 0).astype(int)
    weight = 10.0 ** rng.uniform(-5, 5, 60)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = LinearSVC(penalty="l1", C=C, fit_intercept="free").fit(X, y, weight)
    error = squared_hinge(2.0 * y - 1.0, model.decision_function(X))
    objective = np.abs(model.coef_).sum() + C * (weight @ error)
    assert model.certificate_.objective == pytest.approx(objective)


def test_the_certificate_is_that_of_the_model_where_cutting_planes_did_not_help():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(60, 5)) * [1e-8, 1e8, 1.0, 1e4, 1e-4]
    score = X @ rng.normal(size=5)
    y = np.digitize(score, np.quantile(score, [0.33, 0.66]))
    with pytest.warns(ConvergenceWarning):
        model = LinearSVC(loss="hinge").fit(X, y)
    target = np.where(y[:, None] == np.arange(3), 1.0, -1.0)
    error = np.maximum(0.0, 1.0 - target * model.decision_function(X)).sum()
    penalty = 0.5 * (model.coef_**2).sum() + 0.5 * (model.intercept_**2).sum()
    assert model.certificate_.objective == pytest.approx(penalty + error)
