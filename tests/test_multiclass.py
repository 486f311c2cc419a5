"""Pairs of classes: layout of coefficients, votes, shares of time."""

from dataclasses import dataclass, field

import numpy as np
import pytest
from sklearn.utils.multiclass import _ovr_decision_function

from slimsvm.multiclass import Joint, OneVsOne, OneVsRest, class_factors, encoded
from slimsvm.run import Limits


@dataclass
class Fit:
    limits: Limits = field(default_factory=Limits)
    threads: int = 2
    watchers: tuple = ()

    def side_by_side(self, n):
        return min(self.threads, n)


@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_the_layout_and_the_way_back(n_classes):
    rng = np.random.default_rng(0)
    label, scheme = rng.integers(n_classes, size=40), OneVsOne(n_classes)
    parts = scheme.parts(label)
    duals = [rng.uniform(size=part.rows.size) for part in parts]
    coef = scheme.laid_out(parts, duals, label.size)
    assert coef.shape == (n_classes - 1, 40)
    for part, a in zip(parts, duals, strict=True):
        np.testing.assert_array_equal(scheme.taken_apart(coef, part), a)


def test_the_layout_is_libsvms():
    label = np.array([0, 1, 2])
    scheme = OneVsOne(3)
    duals = [np.array([1.0, 2.0]), np.array([3.0, 4.0]), np.array([5.0, 6.0])]
    coef = scheme.laid_out(scheme.parts(label), duals, 3)
    np.testing.assert_array_equal(coef, [[1.0, -2.0, -4.0], [3.0, 5.0, -6.0]])


def test_votes_and_ties():
    scheme = OneVsOne(3)
    cycle = np.array([[1.0, -0.1, 0.5]])  # 0 beats 1, 2 beats 0, 1 beats 2: one vote each
    assert scheme.chosen(cycle).tolist() == [0]
    assert scheme.chosen(cycle, break_ties=True).tolist() == [int(scheme.decision(cycle).argmax())]
    assert scheme.decision(cycle, "ovo") is cycle


def test_two_classes_are_one_column():
    values = np.array([[-1.0], [2.0]])
    for scheme in (OneVsOne(2), OneVsRest(2)):
        assert scheme.chosen(values).tolist() == [0, 1]
        assert scheme.decision(values).tolist() == [-1.0, 2.0]
    scores = np.array([[1.0, 3.0]])
    assert Joint(2).decision(scores).tolist() == [2.0] and Joint(2).chosen(scores).tolist() == [1]


def test_every_problem_is_trained_once_and_large_ones_first():
    label, order = np.repeat(np.arange(4), [10, 1, 1, 10]), []
    parts = OneVsOne(4).parts(label)

    def train(part, limits):
        order.append(part.k)
        return part.k

    found = OneVsOne.trained(parts, train, Fit(), small=lambda part: part.rows.size < 15)
    assert found == list(range(6)) and sorted(order) == found
    assert order[0] == 2  # the pair of the two large classes


def test_time_is_shared():
    parts, shares = OneVsOne(3).parts(np.arange(3)), []
    fit = Fit(Limits(max_time=60.0), threads=1)
    OneVsOne.trained(parts, lambda part, limits: shares.append(limits.max_time), fit)
    assert 19 < shares[0] <= 20 and 29 < shares[1] <= 30 and 59 < shares[2] <= 60


def test_classes_without_weight_are_not_there():
    classes, label, used = encoded(np.array(["c", "a", "b", "a"]), np.array([1.0, 1.0, 0.0, 1.0]))
    assert classes.tolist() == ["a", "c"] and label[used].tolist() == [1, 0, 0]
    with pytest.raises(ValueError, match="belong to the same class: 0"):
        encoded(np.array([0, 1]), np.array([1.0, 0.0]))
    with pytest.raises(ValueError, match="greater than one; got 1 class"):
        encoded(np.array([0, 0]), np.ones(2))
    with pytest.raises(ValueError, match="cannot be put in order"):
        encoded(np.array(["a", 1], object), np.ones(2))
    with pytest.raises(ValueError, match="not negative"):
        class_factors({0: -1.0, 1: 1.0}, classes=np.arange(2), y=np.arange(2))


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_decision_values_have_the_bits_of_scikit_learn(kind):
    rng = np.random.default_rng(0)
    for n_classes in (3, 5, 12):
        values = rng.normal(size=(60, n_classes * (n_classes - 1) // 2)).astype(kind)
        values[rng.random(values.shape) < 0.1] = 0.0
        theirs = _ovr_decision_function(values < 0, -values, n_classes)
        np.testing.assert_array_equal(OneVsOne(n_classes).decision(values), theirs)
