"""Dual points of linear problems at near float64 precision."""

import numpy as np
import pytest

import slimsvm
from slimsvm.datasets import checkers
from slimsvm.losses import EpsilonInsensitive, Hinge
from slimsvm.problems.linear import LinearFit
from slimsvm.run import Limits
from slimsvm.solvers import polish as module
from slimsvm.solvers.interior_point import Factored, minimised


@pytest.fixture
def calls(monkeypatch):
    """The calls of the exact solver."""
    usual, seen = module.polish, []

    def polish(*given, **options):
        seen.append(options)
        return usual(*given, **options)

    monkeypatch.setattr(module, "polish", polish)
    return seen


def test_a_factor_is_the_matrix():
    rng = np.random.default_rng(0)
    for n, d in ((30, 2), (40, 7), (9, 12)):
        G, c, upper = rng.normal(size=(n, d)), rng.normal(size=n), 10.0 ** rng.uniform(-2, 3, n)
        for z in (None, rng.choice([-1.0, 1.0], n)):
            one, other = minimised(Factored(G), c, upper, z), minimised(G @ G.T, c, upper, z)
            values = [0.5 * np.sum((x @ G) ** 2) + c @ x for x in (one, other)]
            assert values[0] == pytest.approx(values[1], rel=1e-9, abs=1e-9)
            assert (one >= 0).all() and (one <= upper).all()


def test_few_columns_need_few_calls(calls):
    """Pairs and active sets alone took 20 calls here, 11 seconds, and ended at a gap of 8e-11."""
    X, y = checkers(300, seed=0)
    model = slimsvm.LinearSVR(random_state=3).fit(X, X[:, 0] + y)
    assert len(calls) <= 4
    assert model.certificate_.violation <= 1e-12


@pytest.mark.parametrize("scaling", [0.0, 1.0, np.inf])
@pytest.mark.parametrize("loss", [Hinge(), EpsilonInsensitive(0.01)])
def test_the_way_from_inside_leads_to_the_same_weights(scaling, loss, monkeypatch):
    rng = np.random.default_rng(1)
    X = rng.random((120, 3))
    target = X[:, 0] + 0.3 * rng.normal(size=120)
    target = np.where(target > 0.5, 1.0, -1.0) if loss.takes_labels else target
    column = LinearFit(X, target[:, None], np.full(120, 30.0), loss).column(0)
    far = np.zeros(120)
    _, direct = module.polished(X, column, far, scaling, Limits())
    monkeypatch.setattr(module, "FIRST_WORK", 1.0)  # not even one step: at once from inside
    v, inside = module.polished(X, column, far, scaling, Limits())
    assert scaling < np.inf or abs(v.sum()) <= 1e-12 * np.abs(v).sum()  # a feasible dual point
    assert np.abs(direct - inside).max() <= 1e-9 * np.abs(direct).max()
