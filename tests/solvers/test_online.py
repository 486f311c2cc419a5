"""The expansion of LASVM: what it says of itself is true, whatever joined, left, was absorbed or
frozen.
"""

import numpy as np
import pytest

from slimsvm.datasets import checkers
from slimsvm.kernels import RBF, Linear, Polynomial
from slimsvm.run import run
from slimsvm.solvers.online import SELECTIONS, WEIGHT, Online, Passing, decayed, empty, restored
from slimsvm.tiles import prepare

KERNELS = [RBF(2.0), Linear(), Polynomial(2, 0.5, 1.0)]


def passing(n=1500, kernel=KERNELS[0], budget=2e8, seed=0, dtype=np.float64):
    X, y = checkers(n, seed=seed)
    y = np.where(np.random.default_rng(seed).random(n) < 0.1, -y, y).astype(float)
    operand = prepare(kernel, X, dtype=dtype)
    order = np.random.default_rng(seed + 1).permutation(n)
    return X, Passing(
        operand,
        y,
        np.random.default_rng(seed + 2).uniform(0.5, 3.0, n),
        np.arange(n),
        order,
        budget=budget,
    )


def check(S, X, kernel, most=np.inf):
    """o, the balance, the bounds and the ends, from scratch."""
    v = S.alive
    ids = np.concatenate([S.ids[v], S.f_ids])
    assert np.unique(ids).size == ids.size <= most
    coef = np.concatenate([S.sign[v] * S.a[v], S.f_sign * S.f_a])
    o = kernel(X[S.ids[v]], X[ids]) @ coef - S.sign[v]
    np.testing.assert_allclose(S.o[v], o, atol=1e-8 * max(1.0, np.abs(o).max()))
    assert abs(coef.sum()) < 1e-9 * max(1.0, np.abs(coef).sum())
    assert (S.a[v] >= 0).all() and (S.a[v] <= S.upper[v] * (1 + 1e-12)).all()
    np.testing.assert_allclose(S.K[np.ix_(v, v)], kernel(X[S.ids[v]], X[S.ids[v]]), atol=1e-9)
    np.testing.assert_allclose(
        S.vectors.operand(S.m).X[v] + (0 if S.vectors.like.shift is None else S.vectors.like.shift),
        X[S.ids[v]],
        atol=1e-9,
    )
    rises = np.where(S.sign[v] > 0, S.a[v] < S.upper[v], S.a[v] > 0)
    falls = np.where(S.sign[v] > 0, S.a[v] > 0, S.a[v] < S.upper[v])
    assert S.bottom == pytest.approx(o[rises].min(), abs=1e-7) and S.top == pytest.approx(
        o[falls].max(), abs=1e-7
    )


@pytest.mark.parametrize("selection", SELECTIONS)
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name)
@pytest.mark.parametrize("max_support", [None, 70])
def test_what_the_expansion_says_of_itself(selection, kernel, max_support):
    X, problem = passing(kernel=kernel)
    S = run(Online(selection=selection, max_support=max_support), problem, tol=1e-3).model
    check(S, X, kernel, np.inf if max_support is None else max_support)
    if max_support is None:
        np.testing.assert_array_equal(S.upper[S.alive], problem.upper[S.ids[S.alive]])
    else:
        assert S.upper[S.alive].sum() <= (WEIGHT * 70 + 256) * 3.0


def test_frozen_vectors_count_in_every_value():
    X, problem = passing(4000, budget=1.0)  # the least: 1,024 vectors
    S = run(Online(), problem, tol=1e-3).model
    assert S.f_a.size > 100 and S.K.shape[0] <= 1024
    np.testing.assert_array_equal(S.f_a, S.f_upper)
    check(S, X, KERNELS[0])
    known = [
        np.concatenate([getattr(S, name)[S.alive], getattr(S, f"f_{name}")])
        for name in ("a", "upper", "sign", "ids")
    ]
    again = restored(problem.operand.take(known[3]), X, *known, 1.0)
    assert again.f_a.size > 0
    check(again, X, KERNELS[0])
    assert again.level == pytest.approx(S.level, abs=0.5)


def test_decay_scales_the_function_and_stays_feasible():
    _, problem = passing()
    S = run(Online(), problem, tol=1e-3).model
    v = S.alive
    f, upper = S.o[v] + S.sign[v], S.upper[v].copy()
    decayed(S, 0.7)
    np.testing.assert_allclose(S.o[v] + S.sign[v], 0.7 * f, atol=1e-12)
    np.testing.assert_allclose(S.upper[v], 0.7 * upper)
    assert abs(S.sign[v] @ S.a[v]) < 1e-9


def test_the_first_rows_by_hand():
    """Two rows of one class wait; one of the other makes a pair, whose optimum is known."""
    X = np.array([[0.0], [0.1], [1.0]])
    problem = Passing(
        prepare(RBF(1.0), X, dtype=np.float64),
        np.array([1.0, 1.0, -1.0]),
        np.full(3, 100.0),
        np.arange(3),
        np.arange(3),
    )
    S = run(Online(), problem, tol=1e-9, max_iter=2).model
    assert S.alive.size == 2 and not S.a[S.alive].any() and S.level == -1.0
    S = run(
        Online(),
        Passing(problem.operand, problem.sign, problem.upper, problem.ids, np.array([2, 0])),
        tol=1e-9,
    ).model
    a = 2.0 / (2.0 - 2.0 * np.exp(-1.0))  # both at the margin: a (1 - k) = 1
    np.testing.assert_allclose(np.sort(S.a[S.alive]), [a, a])
    assert S.violation < 1e-12


def test_an_empty_batch_and_rows_without_weight():
    _, problem = passing(300)
    problem.upper[:] = 0.0
    S = run(Online(), problem, tol=1e-3).model
    assert not S.a[S.alive].any()
    nothing = Passing(problem.operand, problem.sign, problem.upper, problem.ids, np.empty(0, int))
    assert run(Online(), nothing, tol=1e-3, start=empty(problem.operand)).model.alive.size == 0
