"""The quadratic problem over a few cuts: against enumeration, a general solver, and problems with
nothing to hold on to.
"""

import itertools

import numpy as np
import pytest
from scipy.optimize import minimize

from slimsvm.solvers.small_qp import solve_small_qp


def make(t, rank, seed, scale=1.0):
    rng = np.random.default_rng(seed)
    P = scale * rng.standard_normal((t, rank))
    return P @ P.T, scale * rng.standard_normal(t)


def value(G, h, a):
    return float(h @ a - 0.5 * a @ G @ a)


def check_optimal(G, h, bound, solution, tol=1e-10):
    """Feasible, and the KKT conditions within tol of the scale: what rises gains no more
    than xi, what is there gains xi.
    """
    a = solution.a
    assert np.all(a >= 0) and a.sum() <= bound * (1 + 1e-14)
    gain = h - G @ a
    scale = max(
        np.abs(h).max(), 1e3 * np.finfo(float).eps * (np.abs(G) @ a).max() / tol, 1e-300
    )  # ... or of the rounding errors of Ga
    assert solution.xi == pytest.approx(max(0.0, gain.max()), abs=tol * scale)
    assert np.all(gain <= solution.xi + tol * scale)
    assert np.all(gain[a > 0] >= solution.xi - tol * scale)
    left = bound - a.sum()
    assert left <= 1e-12 * bound or solution.xi <= tol * scale
    assert solution.violation <= tol * scale
    assert solution.value == pytest.approx(value(G, h, a), rel=1e-12, abs=tol * scale * bound)


def by_enumeration(G, h, bound):
    """The best over all sets of variables above zero, with the sum free or at its bound."""
    best, t = 0.0, h.size
    for size in range(1, t + 1):
        for chosen in map(list, itertools.combinations(range(t), size)):
            block = G[np.ix_(chosen, chosen)]
            full = np.linalg.lstsq(block, h[chosen], rcond=None)[0]
            kkt = np.block([[block, np.ones((size, 1))], [np.ones((1, size)), np.zeros((1, 1))]])
            held = np.linalg.lstsq(kkt, np.append(h[chosen], bound), rcond=None)[0][:size]
            for part in (full, held):
                if np.all(part >= -1e-12) and part.sum() <= bound * (1 + 1e-9):
                    a = np.zeros(t)
                    a[chosen] = np.maximum(part, 0)
                    best = max(best, value(G, h, a))
    return best


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("bound", [0.05, 1.0, 100.0])
def test_against_enumeration(seed, bound):
    G, h = make(6, 6 if seed % 2 else 3, seed)
    G += 1e-9 * np.eye(6)  # enumeration needs regular blocks
    solution = solve_small_qp(G, h, bound)
    check_optimal(G, h, bound, solution)
    assert solution.value == pytest.approx(by_enumeration(G, h, bound), rel=1e-9, abs=1e-12)


@pytest.mark.parametrize(("t", "rank"), [(15, 20), (15, 4), (40, 10)])
def test_against_a_general_solver(t, rank):
    G, h = make(t, rank, seed=t + rank)
    solution = solve_small_qp(G, h, 2.0)
    check_optimal(G, h, 2.0, solution)
    other = minimize(
        lambda a: -value(G, h, a),
        np.full(t, 1.0 / t),
        jac=lambda a: G @ a - h,
        bounds=[(0, None)] * t,
        constraints={"type": "ineq", "fun": lambda a: 2.0 - a.sum(), "jac": lambda a: -np.ones(t)},
        method="SLSQP",
        options={"maxiter": 1000, "ftol": 1e-14},
    )
    assert solution.value >= -other.fun - 1e-9
    assert solution.value == pytest.approx(-other.fun, rel=1e-6, abs=1e-8)


@pytest.mark.parametrize("t", [1, 2, 30, 200])
@pytest.mark.parametrize("rank", [1, 5, 60])
@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_any_size_rank_and_scale(t, rank, scale):
    G, h = make(t, rank, seed=7 * t + rank, scale=scale)
    check_optimal(G, h, 1.0, solve_small_qp(G, h))


def test_repeated_cuts():
    G, h = make(10, 8, 3)
    h = np.abs(h)
    twice = np.tile(G, (3, 3))
    solution, alone = solve_small_qp(twice, np.tile(h, 3)), solve_small_qp(G, h)
    check_optimal(twice, np.tile(h, 3), 1.0, solution)
    assert solution.value == pytest.approx(alone.value, rel=1e-12)
    np.testing.assert_allclose(solution.a.reshape(3, 10).sum(axis=0), alone.a, atol=1e-9)


def test_the_same_direction_with_another_offset():
    """Two planes with one slope: only the higher counts, and there is no curvature between them."""
    G, h = np.ones((2, 2)), np.array([1.0, 1.5])
    solution = solve_small_qp(G, h, 10.0)
    check_optimal(G, h, 10.0, solution)
    np.testing.assert_allclose(solution.a, [0.0, 1.5], atol=1e-12)


def test_no_curvature_at_all():
    solution = solve_small_qp(np.zeros((3, 3)), np.array([1.0, 3.0, 2.0]), 2.0)
    np.testing.assert_array_equal(solution.a, [0.0, 2.0, 0.0])
    assert solution.xi == 3.0 and solution.value == 6.0
    assert solve_small_qp(np.zeros((2, 2)), np.array([-1.0, -2.0])).value == 0.0
    assert solve_small_qp(np.zeros((2, 2)), np.zeros(2)).value == 0.0


def test_nothing_to_solve():
    empty = solve_small_qp(np.empty((0, 0)), np.empty(0))
    assert empty.a.size == 0 and empty.value == 0.0 and empty.xi == 0.0
    held = solve_small_qp(np.eye(2), np.array([1.0, 2.0]), bound=0.0)
    assert held.value == 0.0 and held.xi == 2.0


def test_warm_starts():
    G, h = make(60, 40, 5)
    h = np.abs(h)
    cold = solve_small_qp(G, h)
    warm = solve_small_qp(G, h, start=cold.a)
    assert warm.n_steps <= 2 and warm.value == pytest.approx(cold.value, rel=1e-13)
    shorter = solve_small_qp(G, h, start=solve_small_qp(G[:59, :59], h[:59]).a)
    assert shorter.value == pytest.approx(cold.value, rel=1e-12) and shorter.n_steps <= cold.n_steps
    for start in (np.full(60, 5.0), np.full(60, -1.0), np.full(60, np.nan), np.zeros(60)):
        check_optimal(G, h, 1.0, solve_small_qp(G, h, start=start))


@pytest.mark.parametrize("seed", range(5))
def test_cuts_as_they_come(seed):
    """One cut after the other, ever more alike, of very different size: what the driver does."""
    rng = np.random.default_rng(seed)
    P, h = np.empty((0, 12)), np.empty(0)
    a, last = np.empty(0), 0.0
    for round_ in range(120):
        size = 10.0 ** (4 - round_ / 30)
        P = np.vstack(
            [P, size * (rng.standard_normal(12) + 0.5) + (P[-1] * 0.9 if round_ else 0.0)]
        )
        h = np.append(h, size * rng.uniform(0.5, 1.0))
        solution = solve_small_qp(P @ P.T, h, start=a)
        check_optimal(P @ P.T, h, 1.0, solution)
        assert solution.value >= last * (1 - 1e-12)  # more cuts, a higher bound
        a, last = solution.a, solution.value


def test_variables_are_exactly_zero_or_well_above():
    G, h = make(50, 30, 11)
    a = solve_small_qp(G, h).a
    assert np.all((a == 0) | (a > 1e-12))
