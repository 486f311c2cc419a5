"""Model selection for the papers' methods: the same points as the plain loop, with shared work."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn import model_selection
from sklearn.datasets import make_moons

from slimsvm import GridSearchCV, ReducedSVC, SparseSVC, SparseSVCCV, recipes

Array = NDArray[Any]


@pytest.fixture(scope="module")
def moons() -> tuple[Array, Array]:
    X, y = make_moons(160, noise=0.3, random_state=0)
    return X, y


def both(estimator: Any, grid: dict[str, Any], rows: tuple[Array, Array]) -> tuple[Any, Any]:
    """Ours and the plain loop, with the same folds."""
    given: dict[str, Any] = {"cv": 3, "refit": False}
    plain = model_selection.GridSearchCV(estimator, grid, **given).fit(*rows)
    return GridSearchCV(estimator, grid, **given).fit(*rows), plain


def agree(ours: Any, plain: Any, within: float = 1e-9) -> None:
    mean = "mean_test_score"
    np.testing.assert_allclose(ours.cv_results_[mean], plain.cv_results_[mean], atol=within)
    assert ours.best_params_ == plain.best_params_


@pytest.mark.parametrize("basis", ["pursuit", "pursuit_rows"])
def test_cutting_planes_have_all_sizes_from_one_fit(
    moons: tuple[Array, Array], basis: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = SparseSVC(loss="hinge", refine=False, basis=basis, random_state=0)
    grid = {"C": [0.1, 10.0], "gamma": [0.3, 3.0], "n_basis": [2, 5, 7]}
    some = moons[0][:90], moons[1][:90]
    plain = model_selection.GridSearchCV(model, grid, cv=3, refit=False).fit(*some)
    sizes, fit = [], SparseSVC.fit

    def counted(self: Any, *args: Any, **given: Any) -> Any:
        sizes.append(self.n_basis)
        return fit(self, *args, **given)

    monkeypatch.setattr(SparseSVC, "fit", counted)
    ours = GridSearchCV(model, grid, cv=3, refit=False).fit(*some)
    assert sizes == [7] * 12  # three folds, two C, two gammas
    assert ours.shared_.n_shared == ours.shared_.n_fits == 36
    agree(ours, plain)


def test_a_size_that_is_not_on_the_path_is_fitted(moons: tuple[Array, Array]) -> None:
    model = SparseSVC(loss="hinge", refine=False, basis="pursuit", gamma=1.0, random_state=0)
    agree(*both(model, {"n_basis": [3, 5, 8]}, moons))


@pytest.mark.parametrize(
    "make",
    [
        lambda: recipes.cpsp(6, random_state=0),
        lambda: recipes.rsvm_smooth(20, random_state=0),
        lambda: ReducedSVC(20, solver="least_squares", random_state=0),
        lambda: recipes.sampled_cuts_linear(50, random_state=0),
        lambda: recipes.sampled_cuts_constant(50, random_state=0),
    ],
    ids=["cpsp", "rsvm as published", "rsvm", "sampled cuts linear", "sampled cuts constant"],
)
def test_papers_choose_what_the_plain_loop_chooses(moons: tuple[Array, Array], make: Any) -> None:
    agree(*both(make(), {"C": [0.1, 1.0], "gamma": [0.3, 3.0]}, moons))


def test_auto_takes_its_held_out_rows_from_the_search(
    moons: tuple[Array, Array], monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y = moons
    seen, held_out = [], SparseSVC._held_out

    def watched(self: Any, data: Any, fraction: float) -> Any:
        held = held_out(self, data, fraction)
        seen.append(data.used[held])
        return held

    monkeypatch.setattr(SparseSVC, "_held_out", watched)
    folds = list(model_selection.StratifiedKFold(4).split(X, y))
    model = SparseSVCCV("auto", cv=folds, Cs=[1.0, 4.0], gammas=[1.0]).fit(X, y)
    (held,) = seen
    assert held.size == 16
    assert np.isin(held, folds[0][1]).all()
    assert 1 <= model.best_estimator_.basis_.shape[0] < 100
    assert not hasattr(model.best_estimator_, "_held_rows")
