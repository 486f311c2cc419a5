"""Plots of models and searches."""

import numpy as np
import pytest
from sklearn.datasets import load_digits, load_iris, make_moons
from sklearn.model_selection import GridSearchCV as TheirGridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from slimsvm import SVC, GridSearchCV, LinearSVC, RandomizedSearchCV, SparseSVC, SparseSVR
from slimsvm.displays import BasisDisplay, ConvergenceDisplay, GridDisplay, PathDisplay

plt = pytest.importorskip("matplotlib.pyplot")


@pytest.fixture(autouse=True)
def no_windows():
    plt.switch_backend("agg")
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return X[:400] / 16.0, y[:400]


@pytest.fixture(scope="module")
def sparse(digits):
    return SparseSVC(10, gamma=0.3, random_state=0).fit(*digits)


def test_path_scores_every_size_on_the_rows_given(sparse, digits):
    X, y = digits
    display = PathDisplay.from_estimator(sparse, X, y, exact=0.5)
    assert list(display.n_basis) == [point.n_basis for point in sparse.path_]
    wanted = [sparse.truncated(size).score(X, y) for size in display.n_basis]
    np.testing.assert_allclose(display.scores, wanted)
    assert display.ax_.get_ylabel() == "accuracy"
    curve = display.ax_.get_lines()[0]
    np.testing.assert_allclose(curve.get_ydata(), wanted)


def test_path_says_whose_scores_it_shows(sparse, digits):
    X, y = digits
    assert "training rows" in PathDisplay.from_estimator(sparse).ax_.get_ylabel()
    held = SparseSVC(5, gamma=0.3, validation_fraction=0.3, random_state=0).fit(X, y)
    assert "held out" in PathDisplay.from_estimator(held).ax_.get_ylabel()
    values = SparseSVR(5, random_state=0).fit(X, X[:, 20])
    assert "R²" in PathDisplay.from_estimator(values).ax_.get_ylabel()


def test_path_of_a_pipeline_and_an_exact_model(digits):
    X, y = digits
    model = make_pipeline(StandardScaler(), SparseSVC(5, random_state=0)).fit(X, y)
    exact = make_pipeline(StandardScaler(), SVC()).fit(X, y)
    display = PathDisplay.from_estimator(model, X, y, exact=exact)
    assert display.exact == exact.score(X, y)
    assert display.scores[-1] == model.score(X, y)


def test_paths_that_cannot_be_shown(sparse, digits):
    X, y = digits
    with pytest.raises(ValueError, match="SVC has no path_ to show"):
        PathDisplay.from_estimator(SVC().fit(X, y))
    with pytest.raises(ValueError, match="X and y go together"):
        PathDisplay.from_estimator(sparse, X)
    with pytest.raises(ValueError, match="score the exact model"):
        PathDisplay.from_estimator(sparse, exact=SVC().fit(X, y))


@pytest.mark.parametrize("estimator", [SVC(), LinearSVC(), SparseSVC(5, random_state=0)])
def test_convergence_draws_the_history(estimator, digits):
    X, y = digits
    display = ConvergenceDisplay.from_estimator(estimator.fit(X, y))
    assert display.ax_.get_xlabel() == "seconds" and display.objective_ax_.get_lines()


def test_convergence_shows_the_gap_of_one_problem():
    model = SVC().fit(*make_moons(2500, noise=0.3, random_state=0))
    _, ax = plt.subplots()
    display = ConvergenceDisplay.from_estimator(model, ax=ax)
    assert display.ax_ is ax and ax.get_yscale() == "log"
    np.testing.assert_array_equal(ax.get_lines()[0].get_ydata(), model.history_["gap"])


def test_vectors_as_pictures_and_as_bars(sparse):
    display = BasisDisplay.from_estimator(sparse, n_vectors=6)
    assert len(display.axes_) == 6 and display.image_shape == (8, 8)
    assert display.axes_[0].images
    X, y = load_iris(return_X_y=True, as_frame=True)
    display = BasisDisplay.from_estimator(SVC().fit(X, y), n_vectors=4)
    shown = [text.get_text() for text in display.axes_[0].get_yticklabels()]
    assert set(shown) == set(X.columns) and display.image_shape is None


def test_vectors_that_cannot_be_shown(sparse, digits):
    with pytest.raises(ValueError, match="Pictures of 3 x 5"):
        BasisDisplay.from_estimator(sparse, image_shape=(3, 5))
    with pytest.raises(ValueError, match="2 feature names were given for 64"):
        BasisDisplay.from_estimator(sparse, feature_names=["a", "b"])
    with pytest.raises(ValueError, match="has no support_vectors_"):
        BasisDisplay.from_estimator(LinearSVC().fit(*digits))


@pytest.mark.parametrize("search", [GridSearchCV, TheirGridSearchCV])
def test_grid_of_a_pipeline(search, digits):
    X, y = digits
    grid = {"svc__gamma": [0.01, 0.1], "svc__C": [0.1, 1, 10], "svc__shrinking": [True, False]}
    found = search(make_pipeline(StandardScaler(), SVC()), grid, cv=3).fit(X[:150], y[:150])
    display = GridDisplay.from_search(found)
    assert display.rows == ("C", [0.1, 1, 10]) and display.columns == ("gamma", [0.01, 0.1])
    assert np.nanmax(display.scores) == found.best_score_
    turned = GridDisplay.from_search(found, rows="gamma", columns="svc__C")
    np.testing.assert_array_equal(turned.scores, display.scores.T)


def test_grids_with_holes_and_grids_that_cannot_be_shown(digits):
    X, y = digits[0][:150], digits[1][:150]
    some = RandomizedSearchCV(
        SVC(), {"C": [0.1, 1, 10], "gamma": [0.01, 0.1]}, n_iter=3, random_state=0, cv=3
    ).fit(X, y)
    assert np.isnan(GridDisplay.from_search(some).scores).sum() == (
        GridDisplay.from_search(some).scores.size - 3
    )
    one = GridSearchCV(SVC(), {"C": [1, 2]}, cv=3).fit(X, y)
    with pytest.raises(ValueError, match="two parameters"):
        GridDisplay.from_search(one)
    with pytest.raises(ValueError, match="'degree' is not one of"):
        GridDisplay.from_search(some, rows="degree")
    with pytest.raises(ValueError, match="was not measured"):
        GridDisplay.from_search(some, metric="f1")
