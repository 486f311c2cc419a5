"""Searches over many classes: votes without the outputs of most pairs, and matrices of pairs."""

import numpy as np
import pytest
from sklearn import model_selection
from sklearn.datasets import load_digits

from slimsvm import SVC, GridSearchCV
from slimsvm.search import held_out, matrices

X, y = load_digits(return_X_y=True)
X, y = X[:600] / 16.0, y[:600]
GRID = {"C": [0.1, 10.0], "gamma": [0.01, 0.5]}
# with smaller C all coefficients of balanced pairs are at bounds, and rounding picks the intercept
BALANCED = GRID | {"C": [1.0, 10.0]}
FOLDS = list(model_selection.StratifiedKFold(3).split(X, y))
WITHOUT_A_CLASS = [(train[y[train] != 4], test) for train, test in FOLDS]


@pytest.mark.parametrize(
    ("estimator", "options"),
    [
        (SVC(), {}),
        (SVC(), {"cv": WITHOUT_A_CLASS}),
        (SVC(), {"return_train_score": True, "n_jobs": 2}),
        (SVC(break_ties=True), {}),
        (SVC(class_weight="balanced", decision_function_shape="ovo"), {}),
        (SVC(kernel="poly", coef0=1.0), {}),
    ],
)
def test_votes_are_those_of_separate_fits(estimator, options):
    given = {"cv": FOLDS, "refit": False} | options
    grid = BALANCED if estimator.class_weight else GRID
    ours = GridSearchCV(estimator, grid, **given).fit(X, y)
    theirs = model_selection.GridSearchCV(estimator, grid, **given).fit(X, y)
    assert ours.shared_.n_shared == ours.shared_.n_fits, str(ours.shared_)
    for name in ("mean_test_score", "mean_train_score"):
        if name in theirs.cv_results_:
            np.testing.assert_allclose(ours.cv_results_[name], theirs.cv_results_[name], atol=2e-3)


def test_few_rows_need_the_outputs_of_all_pairs(monkeypatch):
    asked, sizes = [], []
    block, square = matrices.block, matrices.square

    def counted_block(rows, strips):
        asked.append(rows.n)
        return block(rows, strips)

    def seen_square(operand, out, *more):
        sizes.append(out.shape[0])
        square(operand, out, *more)

    monkeypatch.setattr(matrices, "block", counted_block)
    monkeypatch.setattr(matrices, "square", seen_square)
    monkeypatch.setattr(held_out, "square", seen_square)
    grid = {"C": [10.0], "gamma": [0.05]}
    search = GridSearchCV(SVC(), grid, cv=FOLDS, refit=False).fit(X, y)
    assert search.best_score_ > 0.9
    # a block for each of ten classes and each of three folds, of the rows that are not clear
    assert len(asked) == 30 and sum(asked) < 0.25 * 10 * y.size
    largest = np.sort(np.bincount(y))[-2:].sum()
    assert len(sizes) == 45 and max(sizes) <= largest
    sizes.clear()
    GridSearchCV(SVC(), grid, cv=FOLDS, refit=False, max_memory=3.0).fit(X, y)
    assert max(sizes) <= largest
    GridSearchCV(SVC(), grid, cv=3, refit=False).fit(X[y < 3], y[y < 3])
    assert max(sizes) == np.count_nonzero(y < 3)  # few pairs: one matrix of all rows
