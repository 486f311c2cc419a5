"""What every loss must do; a new loss joins by its place in LOSSES (and in INSTANCES, if its
parameters change the picture).
"""

from collections.abc import Callable
from dataclasses import FrozenInstanceError, fields
from typing import Any

import numpy as np
import pytest

from slimsvm.losses import (
    LOSSES,
    EpsilonInsensitive,
    Loss,
    SmoothEpsilonInsensitive,
    SmoothHinge,
    SquaredEpsilonInsensitive,
    slopes,
)

INSTANCES: list[Loss] = [
    *(kind() for kind in LOSSES.values()),
    SmoothHinge(beta=0.5),
    SmoothHinge(beta=200.0),
    EpsilonInsensitive(epsilon=0.0),
    EpsilonInsensitive(epsilon=1.5),
    SquaredEpsilonInsensitive(epsilon=0.0),
    SquaredEpsilonInsensitive(epsilon=1.5),
    SmoothEpsilonInsensitive(epsilon=1.5),
]
# where the first or the second derivative jumps, if not at the margin or the edges of the tube
KINKS: dict[str, Callable[[Any, np.ndarray], list[np.ndarray]]] = {
    "smooth_epsilon_insensitive": lambda loss, y: [
        y + place * loss.epsilon for place in (-2, -1, 1, 2)
    ],
}
every_loss = pytest.mark.parametrize("loss", INSTANCES, ids=repr)
smooth_losses = pytest.mark.parametrize(
    "loss", [loss for loss in INSTANCES if loss.differentiable], ids=repr
)


def points(loss, seed=0, n=400):
    """Targets and scores: random, and some exactly where kinks may be."""
    rng = np.random.default_rng(seed)
    f = 2.0 * rng.standard_normal(n)
    y = rng.choice([-1.0, 1.0], n) if loss.takes_labels else rng.standard_normal(n)
    y[:8] = [1, 1, 1, -1, -1, -1, 1, -1]
    f[:8] = [1, 0, -1, 1, 0, -1, 30, 30]
    return y, f


def kinks(loss, y):
    """Scores at which the first or the second derivative may jump."""
    if loss.name in KINKS:
        return KINKS[loss.name](loss, y)
    epsilon = getattr(loss, "epsilon", 0.0)
    return [y] if loss.takes_labels else [y - epsilon, y, y + epsilon]


def away_from_kinks(loss, y, f, distance):
    near = np.zeros(y.size, bool)
    for kink in kinks(loss, y):
        near |= np.abs(f - kink) < distance
    return ~near


@every_loss
def test_values_are_nonnegative_and_finite(loss):
    y, f = points(loss)
    value = loss.value(y, f)
    assert value.shape == f.shape and value.dtype == np.float64
    assert np.all(np.isfinite(value)) and np.all(value >= 0)


@every_loss
def test_gradient_is_the_derivative(loss):
    y, f = points(loss)
    h = 1e-6
    keep = away_from_kinks(loss, y, f, 1e-3)
    y, f = y[keep], f[keep]
    numeric = (loss.value(y, f + h) - loss.value(y, f - h)) / (2 * h)
    # central differences: rounding of values up to 1e3, over h, and a third derivative up to 2
    # beta^2 = 8e4 times h^2
    np.testing.assert_allclose(loss.gradient(y, f), numeric, rtol=1e-7, atol=1e-6)


@every_loss
def test_curvature_is_the_second_derivative(loss):
    y, f = points(loss)
    h = 1e-6
    keep = away_from_kinks(loss, y, f, 1e-3)
    y, f = y[keep], f[keep]
    numeric = (loss.gradient(y, f + h) - loss.gradient(y, f - h)) / (2 * h)
    # the curvature of the smooth hinge has a second derivative of up to 2 beta^2 = 8e4, which
    # enters times h^2
    np.testing.assert_allclose(loss.curvature(y, f), numeric, rtol=1e-6, atol=1e-6)


@smooth_losses
def test_compiled_slopes_are_gradient_and_curvature(loss):
    y, f = points(loss)
    compiled = np.array([slopes(*loss.form(), *pair) for pair in zip(y, f, strict=True)])
    # another order of a few operations, and another exponential: digits of each value, and those
    # that a sum with one has lost
    np.testing.assert_allclose(compiled[:, 0], loss.gradient(y, f), rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(compiled[:, 1], loss.curvature(y, f), rtol=1e-12, atol=1e-15)


@every_loss
def test_gradient_is_a_subgradient_everywhere(loss):
    """L(g) >= L(f) + L'(f)(g - f) for all pairs, kinks included: that is convexity, too."""
    y, f = points(loss, n=60)
    f[8 : 8 + len(kinks(loss, y))] = [kink[8] for kink in kinks(loss, y)]
    y[8:11] = y[8]
    other = np.concatenate([np.linspace(-5, 5, 41), f])
    left = loss.value(y[:, None], other[None, :])
    right = loss.value(y, f)[:, None] + loss.gradient(y, f)[:, None] * (other[None, :] - f[:, None])
    assert np.all(left >= right - 1e-12 * (1 + np.abs(right)))


@every_loss
def test_gradient_never_falls_and_curvature_is_nonnegative(loss):
    f = np.linspace(-6, 6, 2001)
    for y in (-1.0, 1.0):
        labels = np.full_like(f, y)
        assert np.all(np.diff(loss.gradient(labels, f)) >= -1e-14)
        assert np.all(loss.curvature(labels, f) >= 0)


@every_loss
def test_midpoints_lie_below_chords(loss):
    y, f = points(loss)
    g = np.roll(f, 1)
    middle = loss.value(y, (f + g) / 2)
    chord = (loss.value(y, f) + loss.value(y, g)) / 2
    assert np.all(middle <= chord + 1e-12 * (1 + chord))


@smooth_losses
def test_a_differentiable_loss_has_no_jump_in_its_gradient(loss):
    y, _ = points(loss)
    for kink in kinks(loss, y):
        np.testing.assert_allclose(
            loss.gradient(y, kink - 1e-9), loss.gradient(y, kink + 1e-9), atol=1e-6
        )


@pytest.mark.parametrize("loss", [loss for loss in INSTANCES if not loss.differentiable], ids=repr)
def test_a_loss_that_says_so_has_a_kink(loss):
    y, _ = points(loss)
    jump = max(
        np.max(np.abs(loss.gradient(y, kink + 1e-9) - loss.gradient(y, kink - 1e-9)))
        for kink in kinks(loss, y)
    )
    assert jump >= 1


@every_loss
def test_fenchel_young_inequality(loss):
    """L(y, f) + L*(y, u) >= u f for all f and u."""
    y, f = points(loss, n=60)
    u = np.concatenate([np.linspace(-3, 3, 61), [-1.0, 0.0, 1.0, 1e-12, -1e-12, 50.0, -50.0]])
    total = loss.value(y, f)[:, None] + loss.conjugate(y[:, None], u[None, :])
    product = f[:, None] * u[None, :]
    assert not np.any(np.isnan(total))
    assert np.all(total >= product - 1e-11 * (1 + np.abs(product)))


@every_loss
def test_fenchel_young_equality_at_the_gradient(loss):
    """L(y, f) + L*(y, L'(y, f)) = f L'(y, f): the conjugate is finite on gradients, and tight."""
    y, f = points(loss)
    u = loss.gradient(y, f)
    value = loss.value(y, f)
    np.testing.assert_allclose(value + loss.conjugate(y, u), f * u, rtol=1e-11, atol=1e-11)


@every_loss
def test_conjugate_is_the_supremum_on_a_grid(loss):
    """No grid point exceeds it (that is Fenchel-Young) and the best comes near, where the supremum
    is attained inside the grid.
    """
    f = np.linspace(-40, 40, 80_001)
    for y in (-1.0, 1.0):
        for u in (-0.9, -0.3, -0.01, 0.01, 0.3, 0.9):
            conjugate = float(loss.conjugate(y, u))
            best = np.max(u * f - loss.value(np.full_like(f, y), f))
            if np.isfinite(conjugate):
                assert best == pytest.approx(
                    conjugate, abs=2e-3
                )  # half a grid step of 1e-3 on either side of a kink, slope below 2
            else:
                assert best > 0.3 * np.abs(u) * 40 - 2  # grows without bound along f


@every_loss
def test_scalars_lists_and_broadcasting(loss):
    y, f = points(loss, n=12)
    for method in (loss.value, loss.gradient, loss.curvature, loss.conjugate):
        whole = method(y, f)
        np.testing.assert_array_equal(method(y.tolist(), f.tolist()), whole)
        np.testing.assert_array_equal(
            np.array([float(method(a, b)) for a, b in zip(y, f, strict=True)]), whole
        )
        np.testing.assert_array_equal(np.diag(method(y[:, None], f[None, :])), whole)
    np.testing.assert_allclose(
        loss.value(y.astype(np.float32), f.astype(np.float32)),
        loss.value(y, f),
        rtol=1e-4,
        atol=1e-5,
    )


@every_loss
def test_inputs_stay_untouched(loss):
    y, f = points(loss)
    y0, f0 = y.copy(), f.copy()
    y.setflags(write=False)
    f.setflags(write=False)
    for method in (loss.value, loss.gradient, loss.curvature, loss.conjugate):
        method(y, f)
    np.testing.assert_array_equal(y, y0)
    np.testing.assert_array_equal(f, f0)


@every_loss
def test_params_are_its_fields_and_rebuild_it(loss):
    assert set(loss.get_params()) == {field.name for field in fields(loss)}
    assert type(loss)(**loss.get_params()) == loss
    assert LOSSES[loss.name] is type(loss)


@every_loss
def test_it_is_frozen_and_hashable(loss):
    hash(loss)
    for name in loss.get_params():
        with pytest.raises(FrozenInstanceError):
            setattr(loss, name, 3.0)
