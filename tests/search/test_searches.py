"""GridSearchCV and RandomizedSearchCV: the scores of separate fits, whatever is shared."""

import os
import signal
import subprocess
import sys
import threading
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from scipy.stats import loguniform
from sklearn import model_selection
from sklearn.base import clone
from sklearn.datasets import load_iris, make_classification, make_regression
from sklearn.exceptions import FitFailedWarning
from sklearn.feature_selection import SelectKBest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import make_scorer, matthews_corrcoef
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

from slimsvm import SVC, SVR, GridSearchCV, NuSVC, RandomizedSearchCV

IRIS = load_iris(return_X_y=True)
rng = np.random.default_rng(0)
TWO = make_classification(300, 6, n_informative=4, flip_y=0.1, random_state=1)
MANY = make_classification(1200, 8, n_informative=6, flip_y=0.1, random_state=2)
WORDS = (IRIS[0], np.array(["setosa", "other", "third"])[IRIS[1]])
NUMBERS = make_regression(200, 5, noise=10.0, random_state=0)
GRID = {"C": [0.5, 5.0, 50.0], "gamma": [0.02, 0.2]}


def both(estimator, grid, X, y, fit_params=None, **options):
    """Ours and scikit-learn's, fitted."""
    found = []
    for search in (GridSearchCV, model_selection.GridSearchCV):
        one = search(clone(estimator), grid, **options)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FitFailedWarning)
            found.append(one.fit(X, y, **(fit_params or {})))
    return found


def assert_same(ours, theirs, tolerance=0.003):
    assert set(ours.cv_results_) == set(theirs.cv_results_)
    assert ours.cv_results_["params"] == theirs.cv_results_["params"]
    for name, values in theirs.cv_results_.items():
        if name.startswith(("mean_test", "mean_train")):
            np.testing.assert_allclose(ours.cv_results_[name], values, atol=tolerance)
    if hasattr(theirs, "best_estimator_"):
        assert type(ours.best_estimator_) is type(theirs.best_estimator_)
    assert type(ours.estimator) is type(theirs.estimator)


@pytest.mark.parametrize(
    ("estimator", "grid", "data", "options"),
    [
        (SVC(), GRID, IRIS, {}),
        (SVC(), GRID, WORDS, {"cv": 3}),
        (SVC(), GRID, TWO, {"scoring": "roc_auc"}),
        (SVC(), GRID, MANY, {"return_train_score": True}),
        (SVC(), GRID, IRIS, {"return_train_score": True}),
        (SVC(), GRID, TWO, {"scoring": ["accuracy", "roc_auc", "f1"], "refit": "f1"}),
        (SVC(gamma="scale"), {"C": [1, 10]}, TWO, {"refit": False}),
        (SVC(), {**GRID, "class_weight": [None, "balanced", {0: 3.0}]}, TWO, {}),
        (SVC(decision_function_shape="ovo"), GRID, IRIS, {"scoring": "f1_macro"}),
        (SVC(break_ties=True), GRID, IRIS, {}),
        (SVC(), [{"kernel": ["linear"], "C": [1]}, {"kernel": ["poly"], "degree": [2]}], IRIS, {}),
        (SVC(), {"kernel": ["laplacian"], "C": [0.1, 1]}, TWO, {}),
        (SVR(), {**GRID, "epsilon": [0.0, 0.5, 20.0]}, NUMBERS, {}),
        (SVR(C=100.0), {"gamma": ["scale", 0.1]}, NUMBERS, {"scoring": "neg_mean_absolute_error"}),
        (SVC(), GRID, IRIS, {"cv": model_selection.ShuffleSplit(4, random_state=0)}),
        (SVC(), GRID, IRIS, {"cv": model_selection.RepeatedKFold(n_repeats=2, random_state=0)}),
        (SVC(), GRID, TWO, {"scoring": make_scorer(matthews_corrcoef), "n_jobs": 2}),
        (SVC(), {"C": [1.0]}, IRIS, {}),  # a single point
    ],
)
def test_scores_are_those_of_separate_fits(estimator, grid, data, options):
    ours, theirs = both(estimator, grid, *data, **options)
    assert_same(ours, theirs)
    assert ours.shared_.n_shared == ours.shared_.n_fits, str(ours.shared_)
    if options.get("refit", True) is not False:
        assert np.array_equal(ours.predict(data[0]), theirs.predict(data[0])) or (
            ours.best_params_ != theirs.best_params_
        )


@pytest.mark.parametrize("as_given", [sp.csr_matrix, sp.coo_array, pd.DataFrame, np.float32, list])
def test_rows_may_have_any_form(as_given):
    X = as_given(np.where(np.abs(TWO[0]) < 0.3, 0.0, TWO[0]))
    ours, theirs = both(SVC(), GRID, X, TWO[1].tolist())
    assert_same(ours, theirs)
    assert ours.shared_.n_shared == 30
    assert hasattr(ours, "feature_names_in_") == hasattr(theirs, "feature_names_in_")


def test_weights_and_groups_go_where_they_belong():
    X, y = TWO
    weight = rng.integers(0, 3, y.size).astype(float)
    groups = rng.integers(0, 10, y.size)
    given = {"sample_weight": weight, "groups": groups}
    ours, theirs = both(SVC(), GRID, X, y, given, cv=model_selection.GroupKFold(4))
    assert_same(ours, theirs)
    assert ours.shared_.n_shared == 24


def test_a_row_of_weight_two_is_a_row_twice():
    X, y = TWO
    twice = np.r_[np.arange(y.size), np.arange(0, y.size, 3)]
    third = np.arange(y.size) % 3
    folds = [(np.flatnonzero(third != k), np.flatnonzero(third == k)) for k in range(3)]
    more = [(np.flatnonzero(twice % 3 != k), np.flatnonzero(third == k)) for k in range(3)]
    weight = 1.0 + (third == 0)
    options = {"scoring": make_scorer(matthews_corrcoef), "refit": False}
    one = GridSearchCV(SVC(), GRID, cv=folds, **options).fit(X, y, sample_weight=weight)
    two = GridSearchCV(SVC(), GRID, cv=more, **options).fit(X[twice], y[twice])
    np.testing.assert_allclose(
        one.cv_results_["mean_test_score"], two.cv_results_["mean_test_score"], atol=1e-12
    )


def test_kernel_values_are_sliced_both_ways():
    X, y = TWO
    K = rbf_kernel(X, gamma=0.1)
    ours, theirs = both(SVC(kernel="precomputed"), {"C": [0.1, 1, 10]}, K, y)
    assert_same(ours, theirs)
    assert ours.shared_.n_shared == 15
    K[0, 1] += 0.5
    ours, theirs = both(SVC(kernel="precomputed"), {"C": [0.1, 1, 10]}, K, y)
    assert_same(ours, theirs, 0.0)
    assert "not symmetric" in str(ours.shared_)


@pytest.mark.parametrize("kind", ["classes", "numbers"])
def test_the_last_step_of_a_pipeline(kind):
    data, last = (MANY, SVC()) if kind == "classes" else (NUMBERS, SVR(C=10.0))
    name = type(last).__name__.lower()
    steps = make_pipeline(SelectKBest(k=4), StandardScaler(), last)
    grid = {f"{name}__{key}": values for key, values in GRID.items()}
    weight = {f"{name}__sample_weight": rng.uniform(0.5, 2.0, data[1].size)}
    if kind == "numbers":
        steps = make_pipeline(StandardScaler(), last)
    ours, theirs = both(steps, grid, *data, weight, return_train_score=True)
    assert_same(ours, theirs)
    assert ours.shared_.n_shared == 30 and ours.shared_.n_kernels == 10
    assert ours.best_estimator_[-1].support_.size and type(ours.best_estimator_[-1]) is type(last)


@pytest.mark.parametrize(
    ("estimator", "grid", "reason"),
    [
        (LogisticRegression(), {"C": [1.0, 2.0]}, "LogisticRegression"),
        (NuSVC(), {"random_state": [1, 2]}, "random_state is searched"),
        (SVC(max_iter=100), {"C": [1.0]}, "max_iter"),
        (SVC(), {"n_jobs": [1, 2]}, "n_jobs is searched"),
        (make_pipeline(SelectKBest(k=3), SVC()), {"selectkbest__k": [2, 3]}, "is searched"),
        (SVC(kernel=rbf_kernel), {"C": [1.0, 2.0]}, "function"),
        (SVC(kernel="sigmoid"), {"C": [1.0, 2.0]}, "not unique"),
    ],
)
def test_the_ordinary_way_and_why(estimator, grid, reason):
    ours, theirs = both(estimator, grid, *TWO)
    assert_same(ours, theirs, 0.0)
    assert not ours.shared_.n_shared and reason in str(ours.shared_)


def test_memory_is_a_limit():
    few, plain = NuSVC(), {"nu": [0.1, 0.2]}
    ours = GridSearchCV(few, plain, max_memory=0.5).fit(*TWO)
    assert "max_memory is 0.5 MB" in str(ours.shared_)
    assert_same(ours, model_selection.GridSearchCV(few, plain).fit(*TWO), 0.0)
    ours = GridSearchCV(SVC(), GRID, max_memory=1.0).fit(*TWO)  # the products are made twice
    assert ours.shared_.n_shared == 30
    more = GridSearchCV(SVC(), GRID).fit(*TWO)
    assert np.array_equal(ours.cv_results_["mean_test_score"], more.cv_results_["mean_test_score"])


def test_a_function_that_scores_may_look_at_everything():
    seen = []

    def score(estimator, X, y):
        assert isinstance(estimator, SVC) and isinstance(X, np.ndarray)
        seen.append(estimator.support_.size)  # which the shared work does not know
        return np.mean(estimator.predict(X) == y) - 1e-3 * X[:, 0].mean()

    def plain(estimator, X, y):
        return np.mean(estimator.predict(X) == y)

    ours, theirs = both(SVC(), GRID, *TWO, scoring=score)
    assert_same(ours, theirs)
    assert seen[:30] == seen[30:] and ours.scorer_ is score
    ours, theirs = both(SVC(), GRID, *TWO, scoring={"a": plain, "b": "roc_auc"}, refit="a")
    assert_same(ours, theirs)
    assert ours.scorer_["a"] is plain


def test_random_points():
    points = {"C": loguniform(0.1, 100), "gamma": [0.01, 0.1, 1.0]}
    options = {"n_iter": 12, "random_state": 3}
    ours = RandomizedSearchCV(SVC(), points, **options).fit(*TWO)
    theirs = model_selection.RandomizedSearchCV(SVC(), points, **options).fit(*TWO)
    assert_same(ours, theirs)
    assert ours.shared_.n_shared == 60


# -- bad input -----------------------------------------------------------------------------------


def test_a_fold_without_a_class():
    X, y = IRIS
    ours, theirs = both(SVC(), GRID, X, y, cv=model_selection.KFold(3))  # sorted by class
    assert_same(ours, theirs)
    y = (y > 0).astype(int)
    folds = [(np.arange(50), np.arange(50, 90)), (np.arange(150), np.array([3]))]
    ours, theirs = both(SVC(), GRID, X, y, cv=folds)
    np.testing.assert_array_equal(
        ours.cv_results_["mean_test_score"], theirs.cv_results_["mean_test_score"]
    )
    assert np.isnan(ours.cv_results_["split0_test_score"]).all()
    with pytest.raises(ValueError, match="number of classes has to be greater than one"):
        cv = [(np.arange(50), np.arange(50, 90))]
        GridSearchCV(SVC(), GRID, cv=cv, error_score="raise").fit(X, y)


def test_points_that_are_not_valid():
    ours, theirs = both(SVC(), {"C": [-1.0, 1.0], "gamma": [0.1]}, *IRIS)
    assert_same(ours, theirs)
    assert np.isnan(ours.cv_results_["mean_test_score"][0])
    assert ours.shared_.n_shared == 5 and "not all parameters" in str(ours.shared_)
    with pytest.raises(ValueError, match="Invalid parameter 'Gamma'"):
        GridSearchCV(SVC(), {"Gamma": [1.0]}).fit(*IRIS)


def test_scores_that_fail():
    def fails(estimator, X, y):
        raise RuntimeError("no score")

    def nothing(estimator, X, y):
        return np.nan

    for scoring in (fails, nothing):
        with pytest.warns(UserWarning):
            found = GridSearchCV(SVC(), GRID, scoring=scoring, cv=2).fit(*IRIS)
        assert np.isnan(found.cv_results_["mean_test_score"]).all()
    with pytest.raises(RuntimeError, match="no score"):
        GridSearchCV(SVC(), GRID, scoring=fails, error_score="raise").fit(*IRIS)


def test_rows_that_are_not_valid_say_so():
    X = IRIS[0].copy()
    X[3, 1] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        GridSearchCV(SVC(), GRID).fit(X, IRIS[1])
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        GridSearchCV(SVC(), GRID).fit(IRIS[0], IRIS[1][:-1])
    for name, value in (("max_memory", -1.0), ("max_memory", "much")):
        with pytest.raises(ValueError, match="'max_memory' parameter of GridSearchCV must be"):
            GridSearchCV(SVC(), GRID, **{name: value}).fit(*IRIS)


def test_after_an_error_the_search_is_as_it_was():
    search = GridSearchCV(SVC(), GRID, scoring="no such score")
    with pytest.raises(ValueError, match="scoring"):
        search.fit(*IRIS)
    assert type(search.estimator) is SVC and "_work" not in vars(search)


def test_ctrl_c_keeps_what_is_finished():
    X, y = make_classification(3000, 10, n_informative=6, flip_y=0.3, random_state=0)
    search = GridSearchCV(SVC(), {"C": [1.0, 10, 100, 1000], "gamma": np.logspace(-4, 2, 40)}, cv=3)
    GridSearchCV(SVC(), {"C": [1.0]}, cv=3).fit(X[:1500], y[:1500])  # compiled before
    timer = threading.Timer(1.0, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    try:
        with pytest.warns(UserWarning, match="of 160 points .* were evaluated") as record:
            search.fit(X, y)
    except KeyboardInterrupt:
        pytest.skip("nothing was finished within a second")
    finally:
        timer.cancel()
    scores = search.cv_results_["mean_test_score"]
    assert 0 < np.isfinite(scores).sum() < 160 and record
    assert search.best_score_ == np.nanmax(scores)
    assert "interrupted" in str(search.shared_)


# -- scikit-learn's own ----------------------------------------------------------------------------


def test_estimator_checks():
    check_estimator(GridSearchCV(SVC(), {"C": [0.1, 1.0]}, cv=2))


@pytest.mark.long
@pytest.mark.parametrize("names", ["search", "search and svm"])
def test_the_tests_of_scikit_learn(names, tmp_path):
    code = f"""
import sklearn.model_selection, sklearn.svm, slimsvm, pytest, sys
for name in ("GridSearchCV", "RandomizedSearchCV"):
    setattr(sklearn.model_selection, name, getattr(slimsvm, name))
if "svm" in {names!r}:
    for name in ("SVC", "SVR", "NuSVC", "NuSVR", "OneClassSVM"):
        setattr(sklearn.svm, name, getattr(slimsvm, name))
suite = "sklearn.model_selection.tests.test_search"
sys.exit(pytest.main(["-q", "-p", "no:cacheprovider", "-c", "/dev/null", "--pyargs", suite]))
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert done.returncode == 0, done.stdout[-3000:]


def test_a_search_that_is_interrupted_in_its_last_fit_is_as_it_was(monkeypatch):
    X, y = make_classification(60, random_state=0)
    search, usual = GridSearchCV(SVC(), {"C": [1.0, 2.0]}, cv=2), SVC.fit

    def interrupted(self, *given, **more):
        raise KeyboardInterrupt

    def fails():
        before = dict(vars(search))
        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr(SVC, "fit", interrupted)
            search.fit(X, y)
        return vars(search) == before

    assert fails() and not hasattr(search, "best_estimator_")
    search.fit(X, y)
    assert SVC.fit is usual and search.shared_.n_shared
    assert fails() and search.predict(X).size == 60
