"""SVCCV and SVRCV: the point of a plain search over the same grid, and probabilities from it."""

import numpy as np
import pytest
from sklearn import model_selection
from sklearn.datasets import load_digits, load_iris, make_classification
from sklearn.metrics import log_loss
from sklearn.model_selection import StratifiedKFold
from sklearn.utils.estimator_checks import parametrize_with_checks

from slimsvm import SVC, SVCCV, SVR, SVRCV, SparseSVCCV

IRIS = load_iris(return_X_y=True)
TWO = make_classification(2400, 8, n_informative=6, n_clusters_per_class=3, random_state=0)
LINE = np.linspace(0.0, 8.0, 150)[:, None]
NUMBERS = (LINE, 50.0 * np.sin(LINE[:, 0]) + np.random.default_rng(0).normal(0.0, 3.0, 150))
Cs, gammas = [0.5, 4.0, 32.0], [0.01, 0.05, 0.2]


@parametrize_with_checks(
    [
        SVCCV([1.0, 8.0], [0.1, 1.0]),
        SVRCV([1.0], [0.1, 1.0], [0.1]),
        SparseSVCCV(5, [1.0, 8.0], [0.1]),
    ]
)
def test_estimator_checks(estimator, check):
    check(estimator)


def test_the_grid_is_that_of_a_plain_search():
    X, y = IRIS
    model = SVCCV(Cs, gammas, search="grid").fit(X, y)
    plain = model_selection.GridSearchCV(
        SVC(break_ties=True), {"C": Cs, "gamma": gammas}, cv=StratifiedKFold(5)
    ).fit(X, y)
    expected = plain.cv_results_["mean_test_score"].reshape(3, 3)
    np.testing.assert_allclose(model.scores_.mean(axis=0).T, expected, atol=0.003)
    assert model.best_score_ == pytest.approx(plain.best_score_, abs=0.003)
    assert model.best_params_ == {"C": model.C_, "gamma": model.gamma_}
    same = SVC(C=model.C_, gamma=model.gamma_).fit(X, y)
    np.testing.assert_allclose(model.decision_function(X), same.decision_function(X), atol=1e-6)
    assert model.n_fits_ == 9 * 5 + 1 and model.shared_.n_shared == 45


def test_the_race_finds_as_good_a_point():
    X, y = TWO[0][:1800], TWO[1][:1800]
    race = SVCCV(Cs, gammas).fit(X, y)
    grid = SVCCV(Cs, gammas, search="grid").fit(X, y)
    assert np.isnan(race.scores_).any() and not np.isnan(grid.scores_).any()
    assert race.best_score_ >= grid.best_score_ - 0.005
    known = ~np.isnan(race.scores_)
    np.testing.assert_allclose(race.scores_[known], grid.scores_[known], atol=1e-12)


def test_no_arguments_are_a_good_model_with_good_probabilities():
    X, y = TWO
    model = SVCCV().fit(X[:1800], y[:1800])
    others = [
        SVC(C=C, gamma=g).fit(X[:1800], y[:1800]).score(X[1800:], y[1800:])
        for C in (1.0, 10.0, 100.0)
        for g in (0.02, 0.1, 0.4)
    ]
    assert model.score(X[1800:], y[1800:]) >= max(others) - 0.015
    p, f = model.predict_proba(X[1800:])[:, 1], model.decision_function(X[1800:])
    assert np.all(np.diff(p[np.argsort(f)]) >= 0)  # ranks agree
    share = y.mean()
    guess = -(share * np.log(share) + (1 - share) * np.log(1 - share))
    assert log_loss(y[1800:], p) < 0.6 * guess
    held = model.oof_decision_function_
    assert np.isfinite(held).all() and np.mean((held > 0) == y[:1800]) > 0.9 * model.best_score_


def test_several_classes():
    X, y = load_digits(return_X_y=True)
    model = SVCCV([4.0, 16.0], [0.0005, 0.002]).fit(X[:1200], y[:1200])
    p = model.predict_proba(X[1200:])
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    assert np.array_equal(p.argmax(axis=1), model.predict(X[1200:]))
    assert log_loss(y[1200:], p) < 0.3
    assert model.oof_decision_function_.shape == (1200, 10)


def test_regression():
    X, y = NUMBERS
    model = SVRCV().fit(X, y)
    assert model.best_score_ > 0.98 and set(model.best_params_) == {"C", "gamma", "epsilon"}
    same = SVR(C=model.C_, gamma=model.gamma_, epsilon=model.epsilon_).fit(X, y)
    np.testing.assert_allclose(model.predict(X), same.predict(X), atol=1e-4 * y.std())
    assert model.scores_.ndim == 4
    large = SVRCV(epsilons=[0.1], Cs=[10.0, 100.0]).fit(X, 1000.0 * y)
    assert large.scores_.shape[2:] == (2, 1)


def test_time_is_a_limit():
    X, y = TWO
    with pytest.warns(UserWarning, match="max_time was over before"):
        model = SVCCV(max_time=1e-9).fit(X, y)
    assert model.predict(X[:5]).shape == (5,) and np.isnan(model.best_score_)
    assert np.isfinite(model.predict_proba(X[:5])).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"Cs": [-1.0]}, "Cs must be positive numbers"),
        ({"gammas": []}, "gammas must be positive numbers"),
        ({"search": "random"}, "'search' parameter of SVCCV"),
        ({"max_time": 0.0}, "'max_time' parameter of SVCCV"),
        ({"scoring": "no such"}, "scoring"),
    ],
)
def test_what_is_refused(options, message):
    with pytest.raises(ValueError, match=message):
        SVCCV(**options).fit(*IRIS)


def test_features_of_different_size_are_worth_a_warning():
    X = IRIS[0] * np.array([1.0, 1.0, 1.0, 1e5])
    with pytest.warns(UserWarning, match="Features differ in size"):
        SVCCV([1.0], [0.1]).fit(X, IRIS[1])


def test_a_temperature_is_one_factor_of_all_decision_values():
    X, y = TWO
    model = SVCCV([4.0], [0.05], calibration="temperature").fit(X[:1200], y[:1200])
    p, f = model.predict_proba(X[1200:])[:, 1], model.decision_function(X[1200:])
    np.testing.assert_allclose(np.log(p / (1 - p)), model._beta * f, atol=1e-8)
    assert log_loss(y[1200:], p) < log_loss(y[1200:], np.full(p.size, y[:1200].mean()))
    three = SVCCV([1.0], [0.1], calibration="temperature").fit(*IRIS)
    found = three.predict_proba(IRIS[0])
    np.testing.assert_allclose(found.sum(axis=1), 1.0)
    assert np.array_equal(found.argmax(axis=1), three.decision_function(IRIS[0]).argmax(axis=1))


def test_a_sparse_model_chooses_its_parameters():
    X, y = TWO
    model = SparseSVCCV(30, random_state=0).fit(X[:1800], y[:1800])
    exact = SVCCV().fit(X[:1800], y[:1800])
    assert model.score(X[1800:], y[1800:]) >= exact.score(X[1800:], y[1800:]) - 0.03
    assert model.best_params_ == {"C": model.C_, "gamma": model.gamma_}
    assert model.best_score_ == pytest.approx(model.scores_.mean(axis=0).max(), abs=1e-6)
    oof = np.mean((model.oof_decision_function_ > 0) == y[:1800])
    assert oof == pytest.approx(model.best_score_, abs=1e-6)
    assert model.predict_proba(X[:5]).shape == (5, 2)
    assert "total minus the fold's" in str(model.shared_)


def test_sums_of_a_fold_are_those_of_separate_least_squares():
    X, y = TWO[0][:200], TWO[1][:200]
    model = SparseSVCCV(5, [2.0], [0.05], cv=4).fit(X, y)
    K, right = np.exp(-0.05 * ((X[:, None] - X[None]) ** 2).sum(axis=2)), []
    t = 2.0 * y - 1.0
    for train, test in StratifiedKFold(4).split(X, y):
        # all rows are columns: kernel ridge regression, and an intercept with a penalty as any
        coef = np.linalg.solve(K[np.ix_(train, train)] + 1.0 + np.eye(train.size) / 2.0, t[train])
        right.append(np.mean(((K[np.ix_(test, train)] + 1.0) @ coef > 0) == y[test]))
    np.testing.assert_allclose(model.scores_[:, 0, 0], right, atol=0.02)  # float32, the ridge


def test_a_sparse_search_of_a_sample_says_so():
    model = SparseSVCCV(5, [1.0], [0.05], max_memory=1.0).fit(*TWO)
    assert model.shared_.sample == 833 and "833 rows" in str(model.shared_)


@pytest.mark.parametrize("kind", [SVCCV, SVRCV, SparseSVCCV])
def test_a_fit_that_fails_leaves_the_estimator_as_it_was(kind, monkeypatch):
    X, y = make_classification(80, random_state=0)
    model = kind().fit(X, y)
    before = dict(vars(model))
    with pytest.raises(ValueError):
        model.fit(np.hstack([X, X]), y[:-1])
    monkeypatch.setattr(type(model), "_concluded", failing, raising=False)
    monkeypatch.setattr("slimsvm.run.Limits.reason", failing)
    with pytest.raises(MemoryError):
        model.fit(X[:60], y[:60])
    assert vars(model).keys() == before.keys()
    assert all(vars(model)[name] is value for name, value in before.items())


def failing(*given, **about):
    raise MemoryError("no more memory")
