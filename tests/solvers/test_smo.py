"""SMO on a dense block, and the polish that follows it: against a general solver, and on problems
with nothing to hold on to.
"""

import numpy as np
import pytest

from slimsvm.kernels import RBF, Sigmoid
from slimsvm.solvers.smo import polish, smo
from tests.reference.machines import MACHINES, make_problem, random_rows
from tests.reference.naive import dual_minimum, dual_objective, dual_violation

every_machine = pytest.mark.parametrize("machine", MACHINES)
NO_LIMIT = 10_000_000


def set_up(machine, n=20, seed=0, kernel=None, **options):
    """The arguments of smo for a whole problem, its variables sorted by sign where there are two
    equalities; and the problem itself.
    """
    X, y, t = random_rows(n, seed)
    problem = make_problem(machine, X, y, t, kernel=kernel, **options)
    K = problem.gram.operand.kernel(X)
    order = (
        np.argsort(-problem.sign, kind="stable")
        if problem.two_equalities
        else np.arange(problem.n_variables)
    )
    split = (
        int(np.count_nonzero(problem.sign > 0)) if problem.two_equalities else problem.n_variables
    )
    rows, a = problem.row[order], problem.start[order].copy()
    block = np.ascontiguousarray(K[np.ix_(rows, rows)])
    o = (K @ problem.coef(problem.start))[rows] + problem.sign[order] * problem.linear[order]
    arguments = [block, np.diag(block).copy(), problem.sign[order], problem.upper[order], a, o]
    return problem, K, order, split, arguments


def unsorted(order, a):
    out = np.empty_like(a)
    out[order] = a
    return out


def check_feasible(problem, a):
    assert np.all(a >= 0) and np.all(a <= problem.upper)
    for group in problem.groups():
        z = problem.sign[group]
        # each step adds and subtracts the same number: what is lost is rounding
        assert z @ a[group] == pytest.approx(
            z @ problem.start[group], abs=1e-11 * max(1.0, problem.upper.sum())
        )


@every_machine
def test_the_optimum_is_that_of_a_general_solver(machine):
    problem, K, order, split, arguments = set_up(machine)
    steps, violation = smo(*arguments, split, 1e-10, NO_LIMIT)
    a = unsorted(order, arguments[4])
    check_feasible(problem, a)
    assert 0 < steps < NO_LIMIT and 0 <= violation <= 1e-10
    assert dual_violation(K, problem, a) == pytest.approx(violation, abs=1e-12)
    least = dual_objective(K, problem, dual_minimum(K, problem))
    assert dual_objective(K, problem, a) == pytest.approx(least, rel=1e-6, abs=1e-9)
    assert dual_objective(K, problem, a) <= least + 1e-9  # and not worse than the general solver's


@every_machine
@pytest.mark.parametrize("tol", [1e-1, 1e-3])
def test_it_stops_at_the_tolerance_and_says_the_truth(machine, tol):
    problem, K, order, split, arguments = set_up(machine, n=60)
    _, violation = smo(*arguments, split, tol, NO_LIMIT)
    assert violation <= tol
    assert dual_violation(K, problem, unsorted(order, arguments[4])) == pytest.approx(
        violation, abs=1e-11
    )


@every_machine
def test_the_gradient_is_kept(machine):
    """At exit o is s + z p at the new point, for free and bounded variables alike."""
    problem, K, order, split, arguments = set_up(machine, n=40)
    smo(*arguments, split, 1e-6, NO_LIMIT)
    a, o = arguments[4:]
    expected = problem.order(K @ problem.coef(unsorted(order, a)))[order]
    np.testing.assert_allclose(o, expected, atol=1e-11)


@every_machine
def test_every_step_decreases_the_objective(machine):
    problem, K, order, split, arguments = set_up(machine, n=30)
    last = dual_objective(K, problem, problem.start)
    for _ in range(40):
        steps, violation = smo(*arguments, split, 1e-9, 1)
        assert steps <= 1
        objective = dual_objective(K, problem, unsorted(order, arguments[4]))
        if violation <= 1e-9 and steps == 0:
            break
        assert objective < last + 1e-13 * abs(last)
        last = objective


def test_steps_are_limited_exactly():
    _, _, _, split, arguments = set_up("classification", n=60)
    assert smo(*arguments, split, 1e-9, 7)[0] == 7
    assert smo(*arguments, split, 1e-9, 0)[0] == 0


def test_variables_are_at_a_bound_or_free_never_nearly_so():
    problem, _, _, split, arguments = set_up("classification", n=80, C=0.3)
    smo(*arguments, split, 1e-8, NO_LIMIT)
    a = arguments[4]
    assert np.any(a == 0) and np.any(a == 0.3)
    inside = a[(a > 0) & (a < problem.upper)]
    assert np.all(inside > 1e-12) and np.all(0.3 - inside > 1e-12)


def test_one_step_of_two_points_by_hand():
    """Two points, k = [[1, c], [c, 1]], labels +1 and -1: a = min(C, 1 / (1 - c)) for both."""
    for c, C in ((0.5, 10.0), (0.5, 1.0)):
        K = np.array([[1.0, c], [c, 1.0]])
        a, sign = np.zeros(2), np.array([1.0, -1.0])
        o = -sign  # s = 0, p = -1
        steps, violation = smo(K, np.ones(2), sign, np.full(2, C), a, o, 2, 1e-12, 100)
        assert steps == 1
        np.testing.assert_allclose(a, min(C, 1 / (1 - c)), rtol=1e-14)
        assert violation <= 1e-12
        np.testing.assert_allclose(o, K @ (sign * a) - sign, atol=1e-14)


@pytest.mark.parametrize("C", [1.0, 1e6])
def test_identical_points_with_opposite_labels(C):
    """Curvature zero along the pair: both go to their upper bounds, and stay there."""
    K, sign = np.ones((2, 2)), np.array([1.0, -1.0])
    a, o = np.zeros(2), -sign
    steps, violation = smo(K, np.ones(2), sign, np.full(2, C), a, o, 2, 1e-6, 1000)
    assert steps < 1000 and violation <= 1e-6
    np.testing.assert_array_equal(a, C)


@every_machine
def test_variables_with_an_upper_bound_of_zero_change_nothing(machine):
    """A row of weight zero: the others find the point they find without it, o stays a number."""
    if machine in ("regression", "nu_regression"):
        weight = np.ones(20)
        weight[[3, 7]] = 0.0
    else:
        weight = np.array([1.0] * 18 + [0.0] * 2)
    problem, K, order, split, arguments = set_up(machine, weight=weight)
    smo(*arguments, split, 1e-10, NO_LIMIT)
    a = unsorted(order, arguments[4])
    assert np.all(a[problem.upper == 0] == 0)
    least = dual_objective(K, problem, dual_minimum(K, problem))
    assert dual_objective(K, problem, a) == pytest.approx(least, rel=1e-6, abs=1e-9)
    np.testing.assert_allclose(arguments[5], problem.order(K @ problem.coef(a))[order], atol=1e-9)


def test_an_indefinite_kernel_ends_too():
    problem, K, order, split, arguments = set_up("classification", n=60, kernel=Sigmoid(1.0, -0.5))
    assert np.linalg.eigvalsh(K).min() < -0.1
    steps, violation = smo(*arguments, split, 1e-3, 1_000_000)
    assert steps < 1_000_000 and violation <= 1e-3
    check_feasible(problem, unsorted(order, arguments[4]))


def test_float32_blocks_are_taken():
    problem, K, order, split, arguments = set_up("classification", n=40)
    arguments[0] = arguments[0].astype(np.float32)
    _, violation = smo(*arguments, split, 1e-3, NO_LIMIT)
    assert violation <= 1e-3
    assert dual_violation(K, problem, unsorted(order, arguments[4])) <= 1e-3 + 1e-5


# -- polish ----------------------------------------------------------------------------------------


@every_machine
@pytest.mark.parametrize("gamma", [0.05, 0.5, 5.0])
def test_polish_reaches_machine_precision(machine, gamma):
    problem, K, order, split, arguments = set_up(machine, n=60, kernel=RBF(gamma))
    smo(*arguments, split, 1e-3, NO_LIMIT)
    before = dual_objective(K, problem, unsorted(order, arguments[4]))
    polish(*arguments, split)
    a = unsorted(order, arguments[4])
    check_feasible(problem, a)
    scale = max(1.0, np.abs(arguments[5]).max())
    assert dual_violation(K, problem, a) <= 1e-11 * scale
    assert dual_objective(K, problem, a) <= before + 1e-12 * abs(before)


@every_machine
def test_polish_keeps_the_gradient(machine):
    problem, K, order, split, arguments = set_up(machine, n=60)
    smo(*arguments, split, 1e-3, NO_LIMIT)
    polish(*arguments, split)
    expected = problem.order(K @ problem.coef(unsorted(order, arguments[4])))[order]
    np.testing.assert_allclose(arguments[5], expected, atol=1e-11)


def test_polish_with_repeated_rows():
    """Each row three times: the system of the free variables is singular."""
    X, y, t = random_rows(20)
    X, y = np.repeat(X, 3, axis=0), np.repeat(y, 3)
    problem = make_problem("classification", X, y, np.repeat(t, 3))
    K = RBF(0.5)(X)
    a, o = np.zeros(60), -y
    smo(K, np.diag(K).copy(), y, problem.upper, a, o, 60, 1e-3, NO_LIMIT)
    polish(K, np.diag(K).copy(), y, problem.upper, a, o, 60)
    check_feasible(problem, a)
    assert dual_violation(K, problem, a) <= 1e-11


@every_machine
def test_polish_with_rows_of_weight_zero(machine):
    weight = np.ones(60)
    weight[-5:] = 0.0
    problem, K, order, split, arguments = set_up(machine, n=60, weight=weight)
    smo(*arguments, split, 1e-3, NO_LIMIT)
    polish(*arguments, split)
    assert dual_violation(K, problem, unsorted(order, arguments[4])) <= 1e-11
