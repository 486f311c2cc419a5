"""Rows in a sequence, and which of them are held out."""

import numpy as np
import pytest

from slimsvm import SparseSVC
from slimsvm.solvers.row_order import in_sequence, last_first


def walk(n=3000, d=4, seed=0):
    """A random walk: each row is near to the one before."""
    rng = np.random.default_rng(seed)
    X = np.cumsum(rng.standard_normal((n, d)), axis=0)
    return X, rng.integers(0, 3, n), rng


def test_a_walk_is_a_sequence_and_its_rows_in_another_order_are_none():
    X, group, rng = walk()
    assert in_sequence(X, group, rng)
    assert not in_sequence(rng.permutation(X), group, rng)


def test_rows_sorted_by_class_alone_are_no_sequence():
    rng = np.random.default_rng(1)
    group = np.repeat([0, 1, 2], 500)
    X = rng.standard_normal((1500, 5)) + 3.0 * group[:, None]
    assert not in_sequence(X, group, rng)


def test_equal_rows_and_few_rows_are_no_sequence():
    rng = np.random.default_rng(2)
    assert not in_sequence(np.ones((2000, 2)), np.zeros(2000, int), rng)
    assert not in_sequence(walk(100)[0], np.zeros(100, int), rng)


@pytest.mark.parametrize("share", [0.1, 0.25])
def test_the_last_rows_of_every_group_come_first(share):
    group = np.random.default_rng(3).choice(3, 1000, p=[0.7, 0.2, 0.1])
    order = last_first(group)
    assert np.array_equal(np.sort(order), np.arange(1000))
    held = np.zeros(1000, bool)
    held[order[: round(share * 1000)]] = True
    for g in range(3):
        own = held[group == g]
        assert abs(own.mean() - share) < 0.02
        assert np.array_equal(own, np.sort(own))  # the last ones


def test_what_holds_at_one_time_only_is_not_learned():
    """A small feature tells the label early on, and nothing later: only a metric makes it count."""
    rng, n = np.random.default_rng(4), 16_000
    time = np.linspace(0, 20, n)
    X = np.c_[np.sin(time), np.cos(1.7 * time), rng.standard_normal((n, 2))]
    y = np.where(X[:, 2] * X[:, 3] > 0, 1, -1)
    told = np.where(time < 15, y, rng.choice([-1, 1], n))
    X = np.c_[X, 0.15 * told + 0.02 * rng.standard_normal(n)]
    model = SparseSVC(30, gamma=1.0, random_state=0).fit(X, y)
    assert not hasattr(model, "metric_")
    shuffled = rng.permutation(n)
    other = SparseSVC(30, gamma=1.0, random_state=0).fit(X[shuffled], y[shuffled])
    assert hasattr(other, "metric_")
