"""Scores of searches on random small problems: those of scikit-learn around scikit-learn's SVMs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn import model_selection as theirs
from sklearn import svm
from sklearn.datasets import make_classification, make_regression
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

import slimsvm
from slimsvm.kernels import RBF

KERNELS = ("rbf", "rbf", "linear", "poly", "precomputed")


def problem(seed: int) -> tuple[Any, ...]:
    """Rows, labels or targets, the name and parameters of an estimator, a grid, other options."""
    rng = np.random.RandomState(seed)
    numbers, kernel = seed % 4 == 3, str(rng.choice(KERNELS))
    n, d = int(rng.choice([50, 80, 120])), int(rng.choice([4, 10]))
    if numbers:
        X, y = make_regression(n, d, n_informative=3, noise=5.0, random_state=seed)
        y = y / y.std()
    else:
        shape: dict[str, Any] = {"n_informative": 4, "n_redundant": 0, "flip_y": 0.1}
        X, y = make_classification(
            n, d, n_classes=int(rng.choice([2, 3])), random_state=seed, **shape
        )
        y = np.array(["a", "b", "c"])[y] if rng.rand() < 0.5 else y
    grid: dict[str, Any] = {"C": [0.3, 2.0, 20.0]}
    if kernel in ("rbf", "poly"):
        grid["gamma"] = [0.05, 0.4 if kernel == "rbf" else 0.1]
    if numbers:
        grid["epsilon"] = [0.02, 0.3]
    given: dict[str, Any] = {"kernel": kernel} | ({"coef0": 1.0} if kernel == "poly" else {})
    piped = kernel != "precomputed" and rng.rand() < 0.3
    if kernel == "precomputed":
        X = RBF(0.1)(X, X)
    elif not piped and rng.rand() < 0.3:
        X = sp.csr_matrix(X)
    scoring: Any = rng.choice([None, "neg_mean_absolute_error" if numbers else "f1_macro"])
    if not numbers and np.unique(y).size == 2 and rng.rand() < 0.5:
        scoring = {"auc": "roc_auc", "accuracy": "accuracy"}
    options = {
        "cv": [3, theirs.KFold(4, shuffle=True, random_state=seed), theirs.GroupKFold(3)][seed % 3],
        "scoring": scoring,
        "refit": not isinstance(scoring, dict),
        "return_train_score": bool(rng.rand() < 0.4),
    }
    fit: dict[str, Any] = {"groups": rng.randint(0, 9, n)} if seed % 3 == 2 else {}
    if rng.rand() < 0.4:
        fit["m__sample_weight" if piped else "sample_weight"] = 0.2 + rng.rand(n)
    return X, y, "SVR" if numbers else "SVC", given, grid, piped, options, fit


@pytest.mark.parametrize("seed", range(12))
def test_scores_are_those_of_scikit_learn(seed: int) -> None:
    X, y, name, given, grid, piped, options, fit = problem(seed)
    found = []
    for module, search, tol in ((svm, theirs, 1e-6), (slimsvm, slimsvm, 1e-3)):
        model = getattr(module, name)(tol=tol, **given)
        points = grid
        if piped:
            model = Pipeline([("scaler", StandardScaler()), ("m", model)])
            points = {f"m__{key}": values for key, values in grid.items()}
        found.append(search.GridSearchCV(model, points, **options).fit(X, y, **fit))
    a, b = found
    assert set(a.cv_results_) == set(b.cv_results_)
    # the others are fitted one by one: a linear kernel with a large C is badly conditioned
    assert b.shared_.n_shared >= 0.8 * b.shared_.n_fits
    for key in a.cv_results_:
        if key.startswith(("mean_t", "split")):
            np.testing.assert_allclose(b.cv_results_[key], a.cv_results_[key], atol=0.003)
    if options["refit"]:
        best = a.cv_results_["mean_test_score"]
        assert best[b.best_index_] >= best.max() - 0.003
        assert b.predict(X).shape == a.predict(X).shape
