import numpy as np
import pytest

from slimsvm.datasets import checkers


def test_checkers_are_where_they_belong():
    noise = 0.1
    X, y = checkers(20_000, noise=noise, seed=3)
    assert X.shape == (20_000, 2) and X.dtype == np.float64
    assert y.shape == (20_000,) and y.dtype.kind == "i"
    assert X.min() >= -2 and X.max() <= 2 + noise
    # A point belongs to its own cell or, within the noise, to the one before: away from the overlaps the label follows from the place.
    clear = (noise < X % 1).all(axis=1)
    assert clear.mean() > 0.6
    np.testing.assert_array_equal((-1.0) ** np.floor(X[clear]).sum(axis=1), y[clear])
    # ... and in the overlaps both labels occur.
    wrong = (-1.0) ** np.floor(X).sum(axis=1) != y
    assert 0.05 < wrong.mean() < 0.25
    # All 16 cells are equally likely, and each is filled evenly.
    counts = np.histogram2d(*X[~wrong].T, bins=[np.arange(-2, 3)] * 2)[0]
    assert counts.min() > 0.7 * counts.max()
    assert abs(y.mean()) < 0.03


def test_the_bayes_error_is_that_of_the_paper():
    X, y = checkers(400_000)
    # The best guess at a point is the majority over the cells that reach there, which is the label of the square it lies in.
    best = (-1.0) ** np.floor(np.clip(X, -2, 2 - 1e-9)).sum(axis=1)
    assert abs(np.mean(best != y) - 0.029) < 0.002


def test_seeds():
    first, again, other = checkers(50, seed=1), checkers(50, seed=1), checkers(50, seed=2)
    np.testing.assert_array_equal(first[0], again[0])
    np.testing.assert_array_equal(first[1], again[1])
    assert not np.array_equal(first[0], other[0])


@pytest.mark.parametrize("arguments", [{"n": 0}, {"n": 5, "noise": -0.1}, {"n": 5, "noise": float("nan")}])
def test_nonsense_is_refused(arguments):
    with pytest.raises(ValueError):
        checkers(**arguments)
