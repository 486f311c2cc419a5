"""Each loss against its formula, written out by hand, and the limits that connect them."""

import math

import numpy as np
import pytest

from slimsvm.losses import (
    EpsilonInsensitive,
    Hinge,
    LeastSquares,
    SmoothHinge,
    SquaredEpsilonInsensitive,
    SquaredHinge,
)

inf = math.inf


@pytest.mark.parametrize(
    ("loss", "y", "f", "value", "gradient", "curvature"),
    [
        (Hinge(), 1, 3.0, 0.0, 0.0, 0.0),
        (Hinge(), 1, -3.0, 4.0, -1.0, 0.0),
        (Hinge(), -1, 0.25, 1.25, 1.0, 0.0),
        (Hinge(), -1, -1.0, 0.0, 0.0, 0.0),
        (SquaredHinge(), 1, -3.0, 16.0, -8.0, 2.0),
        (SquaredHinge(), -1, 0.5, 2.25, 3.0, 2.0),
        (SquaredHinge(), -1, -1.0, 0.0, 0.0, 0.0),
        # P(0) = log(2)/beta, s(0) = 1/2
        (SmoothHinge(2.0), 1, 1.0, (math.log(2) / 2) ** 2, -math.log(2) / 2, 0.5 + math.log(2) / 2),
        (LeastSquares(), 2.0, 5.0, 9.0, 6.0, 2.0),
        (EpsilonInsensitive(0.5), 2.0, 5.0, 2.5, 1.0, 0.0),
        (EpsilonInsensitive(0.5), 2.0, 1.0, 0.5, -1.0, 0.0),
        (EpsilonInsensitive(0.5), 2.0, 2.4, 0.0, 0.0, 0.0),
        (SquaredEpsilonInsensitive(0.5), 2.0, 5.0, 6.25, 5.0, 2.0),
        (SquaredEpsilonInsensitive(0.5), 2.0, 1.0, 0.25, -1.0, 2.0),
        (SquaredEpsilonInsensitive(0.5), 2.0, 2.4, 0.0, 0.0, 0.0),
    ],
)
def test_values_by_hand(loss, y, f, value, gradient, curvature):
    assert float(loss.value(y, f)) == pytest.approx(value, rel=1e-14)
    assert float(loss.gradient(y, f)) == pytest.approx(gradient, rel=1e-14)
    assert float(loss.curvature(y, f)) == pytest.approx(curvature, rel=1e-14)


@pytest.mark.parametrize(
    ("loss", "y", "u", "conjugate"),
    [
        (Hinge(), 1, -0.5, -0.5),
        (Hinge(), -1, 1.0, -1.0),
        (Hinge(), 1, 0.0, 0.0),
        (Hinge(), 1, 1e-9, inf),
        (Hinge(), -1, 1.0 + 1e-9, inf),
        (SquaredHinge(), 1, -3.0, -3.0 + 9.0 / 4),
        (SquaredHinge(), -1, 3.0, -3.0 + 9.0 / 4),
        (SquaredHinge(), -1, -1e-9, inf),
        (SmoothHinge(), 1, 0.0, 0.0),
        (SmoothHinge(), 1, 1e-9, inf),
        (LeastSquares(), 2.0, 3.0, 6.0 + 9.0 / 4),
        (EpsilonInsensitive(0.5), 2.0, -1.0, -2.0 + 0.5),
        (EpsilonInsensitive(0.5), 2.0, 1.0 + 1e-9, inf),
        (SquaredEpsilonInsensitive(0.5), 2.0, -3.0, -6.0 + 1.5 + 9.0 / 4),
    ],
)
def test_conjugates_by_hand(loss, y, u, conjugate):
    assert float(loss.conjugate(y, u)) == pytest.approx(conjugate, rel=1e-14)


@pytest.mark.parametrize("beta", [0.1, 1.0, 5.0, 1e2, 1e4, 1e8])
def test_the_smooth_hinge_exceeds_the_squared_hinge_within_its_bound(beta):
    """0 < P - max(0, t) <= log(2)/beta, hence 0 <= P^2 - max(0, t)^2 <= (log(2)/beta)(2 max(0, t) +
    log(2)/beta).
    """
    f = np.concatenate([np.linspace(-8, 8, 1001), [1.0]])
    y = np.ones_like(f)
    smooth, sharp = SmoothHinge(beta).value(y, f), SquaredHinge().value(y, f)
    root, positive = np.sqrt(smooth), np.maximum(0.0, 1 - f)
    bound = math.log(2) / beta
    assert np.all(root - positive >= -1e-15 * (1 + positive))
    assert np.all(root - positive <= bound + 1e-15 * (1 + positive))
    assert root[-1] == pytest.approx(bound, rel=1e-12)  # attained at t = 0
    assert np.all(smooth - sharp <= bound * (2 * positive + bound) + 1e-14 * (1 + sharp))


def test_gradient_and_conjugate_of_the_smooth_hinge_have_the_limit_too():
    rng = np.random.default_rng(0)
    y, f = rng.choice([-1.0, 1.0], 300), rng.standard_normal(300) * 2
    beta = 1e7
    np.testing.assert_allclose(
        SmoothHinge(beta).gradient(y, f), SquaredHinge().gradient(y, f), atol=4 / beta
    )
    u = -y * np.abs(f)
    np.testing.assert_allclose(
        SmoothHinge(beta).conjugate(y, u), SquaredHinge().conjugate(y, u), atol=4 / beta
    )


@pytest.mark.parametrize("beta", [1e-3, 5.0, 1e6])
def test_the_smooth_hinge_neither_overflows_nor_underflows_to_nonsense(beta):
    f = np.concatenate([-np.logspace(-8, 100, 50), np.logspace(-8, 100, 50)])
    with np.errstate(over="raise", invalid="raise", divide="raise"):
        loss = SmoothHinge(beta)
        value, gradient, curvature = (
            method(np.ones_like(f), f) for method in (loss.value, loss.gradient, loss.curvature)
        )
        conjugate = loss.conjugate(np.ones_like(f), -np.abs(f))
    for array in (value, gradient, curvature, conjugate):
        assert np.all(np.isfinite(array))
    assert (
        np.all(gradient <= 0) and np.all(curvature >= 0) and np.all(curvature <= 3)
    )  # its largest value is below 2.2, whatever beta


def test_the_smooth_hinge_keeps_its_relative_digits_far_beyond_the_margin():
    """P(t) ~ exp(beta t)/beta for very negative t: the naive t + log(1 + exp(-beta t))/beta would
    be rounding error only.
    """
    f = np.array([11.0, 21.0, 41.0])
    expected = (np.exp(5.0 * (1 - f)) / 5.0) ** 2
    np.testing.assert_allclose(SmoothHinge(5.0).value(np.ones(3), f), expected, rtol=1e-12)


def test_least_squares_for_labels_is_a_function_of_the_margin():
    rng = np.random.default_rng(1)
    y, f = rng.choice([-1.0, 1.0], 50), rng.standard_normal(50)
    np.testing.assert_allclose(LeastSquares().value(y, f), (1 - y * f) ** 2, rtol=1e-13)


def test_without_a_tube_the_squared_loss_is_least_squares():
    rng = np.random.default_rng(2)
    y, f = rng.standard_normal(50), rng.standard_normal(50)
    for method in ("value", "gradient", "conjugate"):
        np.testing.assert_allclose(
            getattr(SquaredEpsilonInsensitive(0.0), method)(y, f),
            getattr(LeastSquares(), method)(y, f),
            rtol=1e-13,
            atol=1e-15,
        )


@pytest.mark.parametrize("beta", [0.0, -1.0, math.nan])
def test_beta_must_be_positive(beta):
    with pytest.raises(ValueError, match="beta="):
        SmoothHinge(beta)


@pytest.mark.parametrize("kind", [EpsilonInsensitive, SquaredEpsilonInsensitive])
@pytest.mark.parametrize("epsilon", [-0.1, math.nan])
def test_epsilon_must_not_be_negative(kind, epsilon):
    with pytest.raises(ValueError, match="epsilon="):
        kind(epsilon)
