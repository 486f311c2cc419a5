"""Every estimator whose fits share something, beside scikit-learn's search around the same one."""

import numpy as np
import pytest
from sklearn import model_selection
from sklearn.datasets import make_classification, make_regression
from sklearn.metrics import make_scorer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import slimsvm
from slimsvm import GridSearchCV

X, y = make_classification(150, 6, n_informative=4, n_classes=3, n_clusters_per_class=1, flip_y=0.1,
                           random_state=0)  # fmt: skip
Z, t = make_regression(120, 5, noise=5.0, random_state=0)
t = t / t.std()
CASES = {
    "NuSVC": (slimsvm.NuSVC(), {"nu": [0.2, 0.4], "gamma": [0.05, 0.2]}, X, y),
    "NuSVR": (slimsvm.NuSVR(), {"nu": [0.3, 0.6], "C": [1.0, 10.0], "gamma": [0.05]}, Z, t),
    "LinearSVC": (slimsvm.LinearSVC(), {"C": [1.0, 0.01, 0.1], "loss": ["hinge"]}, X, y),
    "LinearSVR": (slimsvm.LinearSVR(), {"C": [0.1, 1.0], "epsilon": [0.0, 0.1]}, Z, t),
    "SparseSVC": (slimsvm.SparseSVC(5, random_state=0), {"C": [1.0, 10.0], "gamma": [0.1]}, X, y),
    "SparseSVR": (slimsvm.SparseSVR(5, random_state=0), {"C": [1.0, 10.0]}, Z, t),
}


def both(estimator, grid, X, y, **options):
    """Our search and scikit-learn's, and how far their scores are apart."""
    ours = GridSearchCV(estimator, grid, cv=3, **options).fit(X, y)
    others = {name: value for name, value in options.items() if name != "max_memory"}
    theirs = model_selection.GridSearchCV(estimator, grid, cv=3, **others).fit(X, y)
    names = [name for name in theirs.cv_results_ if name.startswith(("split", "mean_test"))]
    apart = [np.abs(ours.cv_results_[name] - theirs.cv_results_[name]).max() for name in names]
    return ours, theirs, max(apart)


@pytest.mark.parametrize("name", CASES)
def test_scores_are_those_of_separate_fits(name):
    estimator, grid, X, y = CASES[name]
    ours, theirs, apart = both(estimator, grid, X, y, return_train_score=True)
    assert ours.shared_.n_shared == ours.shared_.n_fits == 3 * len(theirs.cv_results_["params"])
    assert apart <= 1e-6  # few rows are solved to near rounding errors
    assert ours.best_params_ == theirs.best_params_
    assert type(ours.best_estimator_) is type(estimator)


@pytest.mark.parametrize("name", CASES)
def test_behind_the_steps_of_a_pipeline(name):
    estimator, grid, X, y = CASES[name]
    grid = {f"{name.lower()}__{key}": values for key, values in grid.items()}
    ours, _, apart = both(make_pipeline(StandardScaler(), estimator), grid, X * 3.0 + 1.0, y)
    assert ours.shared_.n_shared == ours.shared_.n_fits
    assert apart <= 1e-6


def inside(estimator, X, y=None):
    return float(np.mean(estimator.predict(X) == 1) - 0.1 * estimator.nu)


@pytest.mark.parametrize("labels", [None, np.where(X[:, 0] > 2.0, -1, 1)])
def test_one_class_with_and_without_labels(labels):
    scoring = inside if labels is None else "accuracy"
    grid = {"nu": [0.1, 0.5], "gamma": [0.05, 0.5]}
    ours, theirs, apart = both(slimsvm.OneClassSVM(), grid, X, labels, scoring=scoring)
    assert ours.shared_.n_shared == 12
    assert apart <= 1e-6
    assert ours.best_params_ == theirs.best_params_


def test_a_decision_that_a_scorer_wants():
    two = y == 2
    grid = {"C": [0.1, 1.0]}
    ours, _, apart = both(slimsvm.LinearSVC(), grid, X, two, scoring=["roc_auc", "accuracy"],
                          refit="roc_auc")  # fmt: skip
    assert ours.shared_.n_shared == 6
    assert apart <= 1e-6


@pytest.mark.parametrize("megabytes", [0.05, 0.12])  # 79 rows, 122 rows; 150 need 0.18
@pytest.mark.parametrize(
    ("estimator", "grid", "targets"),
    [
        (slimsvm.SVC(), {"C": [0.1, 1.0, 10.0], "gamma": [0.05, 0.5]}, y == 2),
        (slimsvm.SVC(kernel="linear"), {"C": [0.1, 1.0]}, y == 2),
        (slimsvm.SVR(), {"C": [0.1, 1.0], "epsilon": [0.1, 0.3]}, X[:, 0] + X[:, 1] ** 2),
    ],
)
def test_above_the_memory_rows_that_matter_suffice(estimator, grid, targets, megabytes):
    ours, theirs, apart = both(estimator, grid, X, targets, max_memory=megabytes)
    assert ours.shared_.n_shared == ours.shared_.n_fits
    assert "rows that matter" in str(ours.shared_)
    assert apart <= 0.005  # here the tolerance is that of the estimator, a violation of 0.001
    assert ours.best_params_ == theirs.best_params_


def test_above_the_memory_others_are_fitted_one_by_one():
    search = GridSearchCV(slimsvm.SVC(), {"C": [1.0]}, max_memory=0.05).fit(X, y)
    assert search.shared_.n_shared == 0
    assert "several classes" in str(search.shared_)


@pytest.mark.parametrize("kind", [slimsvm.SVC, slimsvm.NuSVC])
def test_precomputed_kernels_are_sliced_both_ways(kind):
    K = np.exp(-0.1 * ((X[:, None] - X[None]) ** 2).sum(axis=2))
    grid = {"C": [0.5, 5.0]} if kind is slimsvm.SVC else {"nu": [0.2, 0.4]}
    ours, _, apart = both(kind(kernel="precomputed"), grid, K, y)
    assert ours.shared_.n_shared == 6
    assert apart <= 1e-6
    assert ours.predict(K).shape == (150,)


def test_a_fit_that_fails_is_reported_as_ever():
    grid = {"loss": ["squared_hinge", "hinge"]}  # the second is refused with an l1 penalty
    with pytest.warns(Warning, match="fits failed|non-finite"):
        ours = GridSearchCV(slimsvm.LinearSVC(penalty="l1", dual=False), grid, cv=3).fit(X, y)
    assert ours.cv_results_["mean_test_score"][0] > 0.5
    assert np.isnan(ours.cv_results_["mean_test_score"][1])
    assert ours.shared_.n_shared == 3 and "a fit failed" in str(ours.shared_)


def test_weights_of_rows_reach_every_fit():
    weight = np.random.default_rng(0).uniform(0.1, 3.0, y.size)
    search = GridSearchCV(slimsvm.NuSVC(), {"nu": [0.2, 0.3]}, cv=3)
    plain = model_selection.GridSearchCV(slimsvm.NuSVC(), {"nu": [0.2, 0.3]}, cv=3)
    scorer = make_scorer(lambda y, p: np.mean(y == p))
    for each in (search, plain):
        each.set_params(scoring=scorer).fit(X, y, sample_weight=weight)
    assert search.shared_.n_shared == 6
    found = search.cv_results_["mean_test_score"], plain.cv_results_["mean_test_score"]
    assert np.array_equal(*found)
