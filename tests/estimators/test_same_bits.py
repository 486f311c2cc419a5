"""The same rows give the same bits, however they lie in memory and whoever watches the fit."""

import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.model_selection import GridSearchCV as UsualGridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import slimsvm
from slimsvm import SVC, GridSearchCV

NAMES = ("SVC", "NuSVC", "SVR", "NuSVR", "OneClassSVM", "LinearSVC", "LinearSVR", "SparseSVC")


def at(X, offset, order="C"):
    """A copy of X that begins so many bytes after a multiple of 64."""
    memory = np.empty(X.nbytes + 128, np.uint8)
    first = -memory.ctypes.data % 64 + offset
    out = memory[first : first + X.nbytes].view(X.dtype).reshape(X.shape, order=order)
    out[...] = X
    return out


def laid_out(X):
    """X in many ways."""
    yield from (at(X, offset) for offset in range(0, 64, 8))
    yield from (at(X, offset, "F") for offset in (0, 8, 48))
    wide = np.zeros((2 * X.shape[0], X.shape[1] + 3), X.dtype)
    wide[::2, 1:-2] = X
    yield wide[::2, 1:-2]
    yield np.ascontiguousarray(X[::-1])[::-1]


def bits(model):
    names = ("dual_coef_", "basis_coef_", "coef_", "intercept_", "_gamma")
    held = [vars(model)[name] for name in names if name in vars(model)]
    assert len(held) >= 2
    return b"".join(np.ascontiguousarray(x).tobytes() for x in held)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(("n", "d"), [(100, 7), (201, 20), (300, 33)])
def test_any_place_and_order_of_the_rows(name, dtype, n, d):
    X, y = make_classification(n, d, n_informative=5, flip_y=0.1, random_state=0)
    options = {"n_basis": 5, "random_state": 0} if name == "SparseSVC" else {}
    y = y + 0.1 * X[:, 0] if name.endswith("SVR") else y
    model = getattr(slimsvm, name)(**options)
    ways = list(laid_out(X.astype(dtype)))
    ways = ways[:: 4 if name == "SparseSVC" else 1]
    assert len({bits(model.fit(way, y)) for way in ways}) == 1


@pytest.mark.parametrize("search", [GridSearchCV, UsualGridSearchCV])
@pytest.mark.parametrize("classes", [2, 3])
def test_a_search_fits_as_the_estimator_does(search, classes):
    X, y = make_classification(
        200, 100, n_informative=5, n_classes=classes, flip_y=0.1, random_state=0
    )
    alone = SVC(gamma=0.1).fit(X, y)
    assert bits(search(SVC(), {"gamma": [0.1]}).fit(X, y).best_estimator_) == bits(alone)
    steps = make_pipeline(FunctionTransformer(), SVC(gamma=0.1)).fit(X, y)
    assert bits(steps[-1]) == bits(alone)


def test_who_watches_changes_nothing(capsys):
    X, y = make_classification(200, 100, random_state=0)
    watched = SVC(gamma=0.1, verbose=True).fit(X, y)
    assert bits(watched) == bits(SVC(gamma=0.1).fit(X, y))
    assert "support vectors" in capsys.readouterr().out
