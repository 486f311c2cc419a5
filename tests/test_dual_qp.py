"""The five dual problems: what each of them fills in, and what it says of a point, against
definitions written out with loops.
"""

import numpy as np
import pytest

from slimsvm.problems.dual_qp import (
    classification,
    nu_classification,
    nu_regression,
    one_class,
    regression,
)
from tests.reference.machines import EPSILON, MACHINES, NU, make_problem, random_rows
from tests.reference.naive import dual_gap, dual_minimum, dual_objective, dual_violation

every_machine = pytest.mark.parametrize("machine", MACHINES)
N = 16
X, Y, T = random_rows(N)
K = make_problem("classification", X, Y, T).gram.operand.kernel(X)
WEIGHT = np.random.default_rng(1).uniform(0.5, 2.0, N)


def random_feasible(problem, rng):
    """A point between the starting point and another that moves within the equalities: pairs of
    equal z up and down, opposite z together.
    """
    a = problem.start.copy()
    for _ in range(60):
        group = problem.groups()[rng.integers(len(problem.groups()))]
        u, v = rng.choice(group, 2, replace=False)
        zu, zv = problem.sign[u], problem.sign[v]
        # a_u + zu d, a_v - zv d keeps z'a; within one sign it keeps e'a too
        room_u = problem.upper[u] - a[u] if zu > 0 else a[u]
        room_v = a[v] if zv > 0 else problem.upper[v] - a[v]
        d = min(room_u, room_v) * rng.choice([1.0, rng.random()])
        a[u] += zu * d
        a[v] -= zv * d
    return np.clip(a, 0.0, problem.upper)


def inner_products(problem, a):
    return K @ problem.coef(a)


# -- what each model fills in ----------------------------------------------------------------------


@every_machine
@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["plain", "weighted"])
def test_the_starting_point_is_feasible(machine, weight):
    problem = make_problem(machine, X, Y, T, weight=weight)
    assert np.all(problem.start >= 0) and np.all(problem.start <= problem.upper)
    total = {
        "classification": 0.0,
        "regression": 0.0,
        "one_class": NU * problem.upper.sum(),
        "nu_classification": NU * problem.upper.sum(),
        "nu_regression": NU * problem.upper.sum() / 2,  # e'a = C nu sum c; upper holds C c twice
    }[machine]
    assert problem.start.sum() == pytest.approx(total, rel=1e-12)
    balance = NU * problem.upper.sum() if machine == "one_class" else 0.0
    assert problem.sign @ problem.start == pytest.approx(balance, abs=1e-12)


def test_classification_is_the_textbook_problem():
    problem = classification(make_problem("classification", X, Y, T).gram, Y, 3.0 * WEIGHT)
    np.testing.assert_array_equal(problem.sign, Y)
    np.testing.assert_array_equal(problem.linear, -np.ones(N))
    np.testing.assert_array_equal(problem.upper, 3.0 * WEIGHT)
    np.testing.assert_array_equal(problem.row, np.arange(N))
    assert not problem.two_equalities


def test_regression_has_two_variables_a_row():
    gram = make_problem("classification", X, Y, T).gram
    for problem, width in (
        (regression(gram, T, 3.0 * WEIGHT, EPSILON), EPSILON),
        (nu_regression(gram, T, 3.0 * WEIGHT, NU), 0.0),
    ):
        assert problem.n_variables == 2 * N
        np.testing.assert_array_equal(problem.row, [*range(N), *range(N)])
        np.testing.assert_array_equal(problem.sign, [1.0] * N + [-1.0] * N)
        np.testing.assert_allclose(problem.linear, np.concatenate([width - T, width + T]))
        np.testing.assert_array_equal(problem.upper, np.tile(3.0 * WEIGHT, 2))
    assert problem.two_equalities and not regression(gram, T, WEIGHT, EPSILON).two_equalities


def test_the_machines_without_targets():
    gram = make_problem("classification", X, Y, T).gram
    # the scale of nu-SVC is free: it is that of weights whose mean is one
    for problem, upper in (
        (one_class(gram, WEIGHT, NU), WEIGHT),
        (nu_classification(gram, Y, WEIGHT, NU), WEIGHT / WEIGHT.mean()),
    ):
        np.testing.assert_array_equal(problem.linear, np.zeros(N))
        np.testing.assert_allclose(problem.upper, upper, rtol=1e-14)
    assert problem.two_equalities and np.all(one_class(gram, WEIGHT, NU).sign == 1)


def test_starting_points_do_not_depend_on_the_order_of_the_rows():
    order = np.random.default_rng(2).permutation(N)
    for machine in ("one_class", "nu_classification", "nu_regression"):
        straight = make_problem(machine, X, Y, T, weight=WEIGHT).start
        shuffled = make_problem(machine, X[order], Y[order], T[order], weight=WEIGHT[order]).start
        np.testing.assert_allclose(shuffled[:N], straight[:N][order], rtol=1e-13)


# -- what it says of a point -----------------------------------------------------------------------


@every_machine
def test_coefficients_objective_order_and_violation(machine):
    problem = make_problem(machine, X, Y, T, weight=WEIGHT)
    rng = np.random.default_rng(3)
    for _ in range(10):
        a = random_feasible(problem, rng)
        s = inner_products(problem, a)
        coef = [
            sum(problem.sign[v] * a[v] for v in range(a.size) if problem.row[v] == i)
            for i in range(N)
        ]
        np.testing.assert_allclose(problem.coef(a), coef, atol=1e-13)
        assert problem.objective(a, s) == pytest.approx(
            dual_objective(K, problem, a), rel=1e-12, abs=1e-12
        )
        gradient = np.array(
            [problem.sign[v] * s[problem.row[v]] + problem.linear[v] for v in range(a.size)]
        )
        np.testing.assert_allclose(problem.order(s), problem.sign * gradient, atol=1e-12)
        assert problem.violation(a, s) == pytest.approx(
            dual_violation(K, problem, a), rel=1e-10, abs=1e-12
        )


@every_machine
def test_which_variables_may_move(machine):
    problem = make_problem(machine, X, Y, T)
    a = problem.upper * np.resize([0.0, 1.0, 0.5], problem.n_variables)
    rises, falls = problem.can_rise(a), problem.can_fall(a)
    for v in range(problem.n_variables):
        up, down = a[v] < problem.upper[v], a[v] > 0
        assert rises[v] == (up if problem.sign[v] > 0 else down)
        assert falls[v] == (down if problem.sign[v] > 0 else up)


@every_machine
def test_the_gap_is_that_of_its_multipliers_and_bounds_the_distance_to_the_optimum(machine):
    problem = make_problem(machine, X, Y, T, weight=WEIGHT)
    least = dual_objective(K, problem, dual_minimum(K, problem))
    rng = np.random.default_rng(4)
    for _ in range(20):
        a = random_feasible(problem, rng)
        s = inner_products(problem, a)
        multipliers = [problem.multiplier(a, s, group)[0] for group in problem.groups()]
        levels = (-multipliers[0], -multipliers[-1])
        gap = problem.gap(a, s)
        assert gap == pytest.approx(dual_gap(K, problem, a, levels), rel=1e-10, abs=1e-12)
        assert dual_objective(K, problem, a) - least <= gap + 1e-9


def test_the_gap_of_classification_is_primal_minus_dual():
    """a'Qa - e'a + C sum_i c_i max(0, 1 - y_i f(x_i)), as METHODS writes it."""
    problem = make_problem("classification", X, Y, T, C=2.0, weight=WEIGHT)
    rng = np.random.default_rng(5)
    for _ in range(5):
        a = random_feasible(problem, rng)
        s = inner_products(problem, a)
        intercept, _ = problem.multiplier(a, s, np.arange(N))
        f = s + intercept
        primal = 0.5 * problem.coef(a) @ K @ problem.coef(a) + 2.0 * WEIGHT @ np.maximum(
            0.0, 1.0 - Y * f
        )
        assert problem.gap(a, s) == pytest.approx(primal + problem.objective(a, s), rel=1e-10)


def test_the_gap_of_regression_is_primal_minus_dual():
    problem = make_problem("regression", X, Y, T, C=2.0, weight=WEIGHT)
    a = random_feasible(problem, np.random.default_rng(6))
    both = np.minimum(
        a[:N], a[N:]
    )  # a row pays for one side only, which is where the two expressions agree
    a[:N] -= both
    a[N:] -= both
    s = inner_products(problem, a)
    intercept, _ = problem.multiplier(a, s, np.arange(2 * N))
    primal = 0.5 * problem.coef(a) @ K @ problem.coef(a) + 2.0 * WEIGHT @ np.maximum(
        0.0, np.abs(T - s - intercept) - EPSILON
    )
    assert problem.gap(a, s) == pytest.approx(primal + problem.objective(a, s), rel=1e-10)


def test_without_free_variables_the_multiplier_is_the_midpoint():
    problem = make_problem("classification", X[:4], np.array([1.0, -1.0, 1.0, -1.0]), T[:4], C=0.5)
    a = np.array([0.5, 0.5, 0.0, 0.0])
    s = np.array([0.3, -0.2, 0.9, -1.0])
    # o = s - y = [-0.7, 0.8, -0.1, 0.0]; may rise: a < C with y = 1, a > 0 with y = -1: rows 1 and
    # 2; may fall: rows 0 and 3
    multiplier, violation = problem.multiplier(a, s, np.arange(4))
    assert violation == pytest.approx(max(-0.7, 0.0) - min(0.8, -0.1))
    assert multiplier == pytest.approx(-(0.0 + -0.1) / 2)


def test_with_free_variables_the_multiplier_is_minus_their_mean():
    problem = make_problem("classification", X[:4], np.array([1.0, -1.0, 1.0, -1.0]), T[:4], C=0.5)
    a = np.array([0.2, 0.3, 0.1, 0.0])
    s = np.array([0.3, -0.2, 0.9, -1.0])
    assert problem.multiplier(a, s, np.arange(4))[0] == pytest.approx(-(-0.7 + 0.8 - 0.1) / 3)


def test_one_sided_groups_have_a_multiplier_too():
    """All at their upper bounds: nothing may rise, and the interval has one end only."""
    problem = make_problem("one_class", X[:3], Y[:3], T[:3], nu=1.0)
    s = np.array([0.5, 0.2, 0.9])
    multiplier, violation = problem.multiplier(problem.upper, s, np.arange(3))
    assert violation == 0.0 and multiplier == pytest.approx(-0.9)
    assert np.isfinite(problem.gap(problem.upper, s))


# -- starting points from elsewhere ----------------------------------------------------------------


@every_machine
def test_a_feasible_point_stays(machine):
    problem = make_problem(machine, X, Y, T, weight=WEIGHT)
    a = random_feasible(problem, np.random.default_rng(7))
    before = a.copy()
    np.testing.assert_allclose(problem.feasible(a), a, rtol=1e-12, atol=1e-14)
    np.testing.assert_array_equal(a, before)


@every_machine
def test_an_infeasible_point_becomes_feasible(machine):
    problem = make_problem(machine, X, Y, T, weight=WEIGHT)
    rng = np.random.default_rng(8)
    wanted = [problem.sign[group] @ problem.start[group] for group in problem.groups()]
    points = [
        rng.uniform(-1, 3, problem.n_variables),
        problem.upper.copy(),
        np.zeros(problem.n_variables),
        -problem.upper,
        10 * problem.upper,
    ]
    for point in points:
        a = problem.feasible(point)
        assert np.all(a >= 0) and np.all(a <= problem.upper)
        for group, value in zip(problem.groups(), wanted, strict=True):
            assert problem.sign[group] @ a[group] == pytest.approx(value, abs=1e-11)
