import numpy as np
import pytest
from sklearn.neighbors import KNeighborsClassifier

from slimsvm.datasets import banana, checkers, waveform


def test_checkers_are_where_they_belong():
    noise = 0.1
    X, y = checkers(20_000, noise=noise, seed=3)
    assert X.shape == (20_000, 2) and X.dtype == np.float64
    assert y.shape == (20_000,) and y.dtype.kind == "i"
    assert X.min() >= -2 and X.max() <= 2 + noise
    # A point belongs to its own cell or, within the noise, to the one before: away from the
    # overlaps the label follows from the place.
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
    # The best guess at a point is the majority over the cells that reach there, which is the label
    # of the square it lies in.
    best = (-1.0) ** np.floor(np.clip(X, -2, 2 - 1e-9)).sum(axis=1)
    assert abs(np.mean(best != y) - 0.029) < 0.002


def test_seeds():
    first, again, other = checkers(50, seed=1), checkers(50, seed=1), checkers(50, seed=2)
    np.testing.assert_array_equal(first[0], again[0])
    np.testing.assert_array_equal(first[1], again[1])
    assert not np.array_equal(first[0], other[0])


@pytest.mark.parametrize(
    "arguments",
    [{"n": 0}, {"n": 2.5}, {"n": "many"}, {"n": 5, "noise": -0.1}, {"n": 5, "noise": float("nan")}],
)
def test_nonsense_is_refused(arguments):
    with pytest.raises(ValueError):
        checkers(**arguments)


def test_bananas_lie_on_arcs_that_do_not_touch():
    X, y = banana(20_000, noise=0.0, seed=3)
    assert X.shape == (20_000, 2) and X.dtype == np.float64 and y.dtype.kind == "i"
    outer, inner = X[y == 1], X[y == -1] + 0.75
    np.testing.assert_allclose(np.linalg.norm(outer, axis=1), 1)
    np.testing.assert_allclose(np.linalg.norm(inner, axis=1), 1)
    # Five eighths of a circle each: nothing of the first in the upper left, nothing of the second
    # in the lower right.
    assert (outer @ [-1, 1] < np.sqrt(2) * np.cos(np.pi * 3 / 8) + 1e-12).all()
    assert (inner @ [1, -1] < np.sqrt(2) * np.cos(np.pi * 3 / 8) + 1e-12).all()
    assert abs(y.mean()) < 0.03
    # ... and a gap between them, so that the nearest neighbour is always right.
    nearest = KNeighborsClassifier(1).fit(X[:2000], y[:2000])
    assert nearest.score(X[2000:4000], y[2000:4000]) == 1.0


def test_the_blur_of_bananas_has_the_deviation_it_was_given():
    sharp, y = banana(50_000, noise=0.0, seed=5)
    blurred, same = banana(50_000, noise=0.3, seed=5)
    np.testing.assert_array_equal(y, same)
    assert abs((blurred - sharp).std() - 0.3) < 0.005
    assert abs((blurred - sharp).mean()) < 0.005


def test_waves_without_noise_are_mixtures_of_two_triangles():
    X, y = waveform(3_000, noise=0.0, seed=1)
    assert X.shape == (3_000, 21)
    waves = [[max(6 - abs(place - peak), 0) for place in range(1, 22)] for peak in (7, 11, 15)]
    shares, residuals, _, _ = np.linalg.lstsq(np.array(waves, float).T, X.T)
    assert np.max(residuals) < 1e-20  # every row is in the span of the three
    np.testing.assert_allclose(shares.sum(axis=0), 1)
    assert shares.min() > -1e-12
    np.testing.assert_array_equal(
        np.abs(shares).min(axis=0) < 1e-12, True
    )  # one of the three takes no part
    np.testing.assert_array_equal(
        y == -1, np.abs(shares[2]) < 1e-12
    )  # ... which for the negative class is the last
    assert abs((y == -1).mean() - 1 / 3) < 0.03


def test_the_noise_of_waves_is_normal_and_white():
    difference = waveform(20_000, noise=2.0, seed=4)[0] - waveform(20_000, noise=0.0, seed=4)[0]
    np.testing.assert_allclose(np.cov(difference.T), 4.0 * np.eye(21), atol=0.2)


@pytest.mark.parametrize("generate", [checkers, banana, waveform])
@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ((True,), "n=True"),
        ((5, "x"), "noise .* got 'x'"),
        ((5, 1e308), "noise .* got 1e"),
        ((5, 0.1, "s"), "seed .* got 's'"),
        ((5, 0.1, -1), "seed"),
    ],
)
def test_what_is_no_number_is_named(generate, arguments, match):
    with pytest.raises(ValueError, match=match):
        generate(*arguments)


@pytest.mark.parametrize("generate", [banana, waveform])
def test_seeds_and_nonsense_of_the_others(generate):
    first, again, other = generate(50, seed=1), generate(50, seed=1), generate(50, seed=2)
    np.testing.assert_array_equal(first[0], again[0])
    np.testing.assert_array_equal(first[1], again[1])
    assert not np.array_equal(first[0], other[0])
    for arguments in (
        {"n": 0},
        {"n": 2.5},
        {"n": "many"},
        {"n": 5, "noise": -0.1},
        {"n": 5, "noise": float("nan")},
    ):
        with pytest.raises(ValueError):
            generate(**arguments)
