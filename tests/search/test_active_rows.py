"""Searches with the kernel values of some rows beside those with all of them."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import make_classification
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold

from slimsvm import SVC, SVR, GridSearchCV
from slimsvm.search import active_rows, row_cached

X, y = make_classification(1500, 6, n_informative=4, flip_y=0.1, random_state=0)
numbers = X[:, 0] + np.sin(3.0 * X[:, 1])
GRID = {"C": [0.5, 5.0, 50.0], "gamma": [0.05, 0.5]}
# megabytes: 1,118 of 1,500 rows; 500, which are too few for all C; 158, too few for most problems
BUDGETS = [5.0, 1.0, 0.1]
KINDS = {
    "labels": (SVC(), GRID, X, y),
    "class weights": (SVC(), GRID | {"class_weight": [None, {0: 5.0}]}, X, y),
    "numbers": (SVR(), GRID | {"epsilon": [0.05, 0.3]}, X, numbers),
    "another kernel": (SVC(kernel="laplacian"), GRID, X, y),
    "sparse rows": (SVC(), GRID, sp.csr_matrix(np.where(np.abs(X) > 0.5, X, 0.0)), y),
}


@pytest.fixture(params=BUDGETS)
def few_rows(request, monkeypatch):
    """A budget in megabytes, and fewer random rows than are used elsewhere."""
    monkeypatch.setattr(active_rows, "FIRST", 300)
    return request.param


@pytest.mark.parametrize("kind", KINDS)
def test_scores_are_those_with_all_rows(kind, few_rows):
    estimator, grid, X, y = KINDS[kind]
    some, every = (
        GridSearchCV(estimator, grid, cv=3, return_train_score=True, max_memory=m).fit(X, y)
        for m in (few_rows, 100.0)
    )
    assert "rows that matter" in str(some.shared_) and "matrices" in str(every.shared_)
    assert some.shared_.n_shared == some.shared_.n_fits
    for name in ("mean_test_score", "mean_train_score"):
        # each within its tolerance, a violation of 0.001: one or two predictions of 500
        assert np.abs(some.cv_results_[name] - every.cv_results_[name]).max() <= 0.005


def test_outputs_are_those_of_a_fit(few_rows):
    weight = np.random.default_rng(0).uniform(0.0, 2.0, y.size)
    weight[::7] = 0.0
    cv = StratifiedKFold(3)
    search = GridSearchCV(SVC(), GRID, cv=cv, scoring="roc_auc", max_memory=few_rows)
    search.fit(X, y, sample_weight=weight)
    assert search.shared_.n_shared == search.shared_.n_fits
    train, test = next(iter(cv.split(X, y)))
    for k, parameters in enumerate(search.cv_results_["params"]):
        fit = SVC(**parameters).fit(X[train], y[train], sample_weight=weight[train])
        f = fit.decision_function(X[test])
        area = roc_auc_score(y[test], f, sample_weight=weight[test])
        assert search.cv_results_["split0_test_score"][k] == pytest.approx(area, abs=5e-4)


def test_fewer_kernel_values_and_none_by_rows(monkeypatch):
    monkeypatch.setattr(row_cached, "solve", None)  # is not called
    search = GridSearchCV(SVC(), GRID, cv=3, max_memory=5.0).fit(X, y)
    assert search.shared_.n_shared == search.shared_.n_fits


def test_a_search_that_is_stopped_says_nothing_wrong(monkeypatch):
    every = GridSearchCV(SVC(), GRID, cv=3, refit=False).fit(X, y)
    hand_out = active_rows.Rounds._hand_out

    def until_some_are_done(self, job):
        before = sum(len(task.points) for task in job.tasks)
        hand_out(self, job)
        if sum(len(task.points) for task in job.tasks) < before:
            self.whole.stop = lambda: "enough"

    monkeypatch.setattr(active_rows.Rounds, "_hand_out", until_some_are_done)
    some = GridSearchCV(SVC(), GRID, cv=3, refit=False, max_memory=5.0).fit(X, y)
    assert 0 < some.shared_.n_shared < some.shared_.n_fits
    # what was not done is fitted one by one
    apart = some.cv_results_["mean_test_score"] - every.cv_results_["mean_test_score"]
    assert np.abs(apart).max() <= 0.005
