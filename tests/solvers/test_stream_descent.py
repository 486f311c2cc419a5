"""Rows that pass by once: what a stream learns, keeps and notices."""

import numpy as np
import pytest

from slimsvm.kernels import RBF, Linear, Polynomial
from slimsvm.run import run
from slimsvm.solvers.stream_descent import (
    BY_CLASS,
    FRESH,
    RowsOfCall,
    StreamDescent,
    begun,
    from_dict,
    scores_of,
    vectors_of,
    with_classes,
)

K = 30


def rows(n, seed=0, turned=False):
    """Which quadrants a point is in; another rule where turned."""
    X = np.random.default_rng(seed).uniform(-1, 1, (n, 2))
    label = (X[:, 0] * X[:, 1] > 0).astype(int)
    return RowsOfCall(X, 1 - label if turned else label, np.ones(n))


def passed(state, given, cut=None, **options):
    solver = StreamDescent(n_vectors=K, kernel=options.pop("kernel", RBF(1.0)), **options)
    for start in range(0, given.n, cut or given.n):
        part = given.part(slice(start, start + (cut or given.n)))
        result = run(solver, part, tol=0.0, start=state)
        assert result.model.done and result.status.reason == "converged"
    return state


def new(X, n_outputs=2, classes=True):
    return begun(0, X, n_outputs, classes)


def accuracy(state, given):
    scores = scores_of(state, state.coordinates.of(given.X))
    return float(np.mean(scores.argmax(axis=1) == given.target))


@pytest.mark.parametrize("kernel", [RBF("scale"), Polynomial(1.0, 2, 1.0), Linear()])
def test_learns(kernel):
    given, others = rows(3000), rows(1000, seed=1)
    if isinstance(kernel, Linear):
        given.target, others.target = ((r.X[:, 0] > 0.2).astype(int) for r in (given, others))
    state = passed(new(given.X), given, kernel=kernel)
    assert accuracy(state, others) > 0.95
    assert state.moving.R.shape[0] <= K and state.n_seen + state.waiting.n == 3000
    assert vectors_of(state).coef.shape == (state.moving.R.shape[0], 1)


def test_how_rows_are_cut_into_calls_makes_no_difference():
    given = rows(1000)
    states = [passed(new(given.X), given, cut) for cut in (1000, 137, 10)]
    for other in states[1:]:
        assert np.array_equal(states[0].average, other.average)
        assert (states[0].n_kept, states[0].n_steps) != (0, 0) and other.n_kept == states[0].n_kept


def test_plain_values_go_on_alike():
    given, more = rows(700), rows(500, seed=2)
    state = passed(new(given.X), given)
    values = state.to_dict()
    again = from_dict(values, state.kernel, StreamDescent(n_vectors=K, kernel=RBF(1.0)))
    for one in (state, again):
        passed(one, more)
    assert np.array_equal(state.average, again.average) and again.cusum == state.cusum
    assert np.array_equal(state.kept.X[: state.n_kept], again.kept.X[: again.n_kept])


def test_a_change_of_the_concept_is_noticed():
    state = passed(new(rows(1).X), rows(4000))
    assert state.n_alarms == 0
    passed(state, rows(1500, seed=3, turned=True))
    assert state.n_alarms == 1 and accuracy(state, rows(1000, seed=4, turned=True)) > 0.93
    assert state.n_since < 1600  # the rows before are forgotten


def test_noise_and_blocks_of_one_class_are_no_change():
    given = rows(6000)
    noise = np.random.default_rng(5).random(6000) < 0.3
    given.target = np.where(noise, 1 - given.target, given.target)
    assert passed(new(given.X), given).n_alarms == 0
    given = rows(6000)
    order = np.argsort(given.target, kind="stable")
    blocks = np.concatenate([order[k::6] for k in range(6)])  # 0, 1, 0, 1, ...
    state = passed(new(given.X), given.part(blocks))
    assert state.n_alarms == 0 and accuracy(state, rows(1000, seed=6)) > 0.93


def test_new_classes():
    X = np.random.default_rng(0).uniform(-1, 1, (3000, 2))
    label = (X[:, 0] > 0).astype(int) + (X[:, 1] > 0.5)
    first = X[label != 1][:500]
    state = passed(
        new(X), RowsOfCall(first, (label[label != 1][:500] > 0).astype(int), np.ones(500))
    )
    before = scores_of(state, state.coordinates.of(X[:50]))
    with_classes(state, np.array([0, 2]), 3)
    after = scores_of(state, state.coordinates.of(X[:50]))
    np.testing.assert_allclose(after[:, [0, 2]], before, rtol=1e-6)
    assert (after[:, 1] < before.max(axis=1)).all()  # nobody expects it yet
    assert all(getattr(state, name).shape == (3,) for name in BY_CLASS)
    passed(state, RowsOfCall(X, label, np.ones(3000)))
    assert accuracy(state, RowsOfCall(X, label, np.ones(3000))) > 0.93


def test_the_reservoir_is_an_even_sample():
    given = rows(4000)
    given.weight = 1.0 + 1e-9 * np.arange(4000)  # when a row came
    state = passed(new(given.X), given, n_reservoir=500)
    share = float(np.mean(state.kept.weight[: state.n_kept] >= given.weight[2000]))
    assert state.n_kept == 500 and abs(share - 0.5) < 0.1  # more than four deviations


def test_numbers():
    X = np.random.default_rng(0).uniform(-2, 2, (4000, 2))
    y = 100.0 + 10.0 * np.sin(2 * X[:, 0]) + X[:, 1]
    state = passed(new(X, 1, False), RowsOfCall(X, y, np.ones(4000)), epsilon=0.01)
    found = scores_of(state, state.coordinates.of(X))[:, 0] * state.unit + state.offset
    assert 1 - np.var(y - found) / np.var(y) > 0.98
    assert state.wrong < 0.1 and state.n_alarms == 0


def test_weights():
    """Rows of a small weight hardly count."""
    good, bad = rows(2000), rows(2000, seed=1, turned=True)
    both = RowsOfCall(
        np.concatenate([good.X, bad.X]),
        np.concatenate([good.target, bad.target]),
        np.concatenate([np.full(2000, 1.0), np.full(2000, 0.02)]),
    ).part(np.random.default_rng(0).permutation(4000))
    assert accuracy(passed(new(both.X), both), rows(1000, seed=2)) > 0.93


def test_no_claim():
    state = new(rows(1).X)
    result = run(StreamDescent(n_vectors=K, kernel=RBF(1.0)), rows(2000), tol=0.0, start=state)
    about = result.certificate
    assert about.scope == "stream" and about.gap == np.inf and not about.holds
    assert 0 <= about.violation < 0.3 and about.objective > 0
    assert state.waiting.n < FRESH
