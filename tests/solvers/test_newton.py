"""Newton's method on the subspace problem: against a general minimiser, closed forms, and its own
certificate.
"""

import numpy as np
import pytest
from scipy.optimize import minimize

from slimsvm.kernels import RBF, Laplacian, Polynomial
from slimsvm.losses import (
    LeastSquares,
    Logistic,
    SmoothEpsilonInsensitive,
    SmoothHinge,
    SquaredEpsilonInsensitive,
    SquaredHinge,
)
from slimsvm.run import SUBSPACE, run
from slimsvm.solvers.line_search import least_along
from slimsvm.solvers.newton import Newton
from slimsvm.tiles import prepare
from tests.in_memory import kernel_columns, subspace_problem

LOSSES = [
    SquaredHinge(),
    SmoothHinge(),
    Logistic(),
    LeastSquares(),
    SquaredEpsilonInsensitive(0.1),
    SmoothEpsilonInsensitive(0.1),  # many rows have a slope and no curvature
]


def make(
    loss,
    n=150,
    m=12,
    kernel=None,
    columns=1,
    dtype=np.float64,
    fit_intercept=True,
    threads=1,
    seed=0,
):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 3))
    y = np.sign(X[:, [0]] * X[:, [1]] + 0.3 * rng.standard_normal((n, columns)))
    if not loss.takes_labels:
        y = y + 0.1 * rng.standard_normal((n, columns))
    weight = rng.uniform(0.5, 2.0, n)
    rows = prepare(kernel or RBF(0.5), X, dtype=np.dtype(dtype))
    held = kernel_columns(rows, m, n_threads=threads)
    held.append(rows.X[:m])
    return subspace_problem(held, y, weight, loss, fit_intercept)


def naive_objective(problem, coef, intercept):
    c = problem.columns
    K_XB = c.kernel(np.asarray(c.operand.X, np.float64), c.vectors)
    K_BB = c.kernel(c.vectors) + c.jitter * np.eye(c.m)
    f = K_XB @ coef + intercept
    return (
        0.5 * np.einsum("jc,jl,lc->", coef, K_BB, coef)
        + (problem.weight @ problem.loss.value(problem.target, f)).sum()
    )


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_minimum_is_that_of_a_general_minimiser(loss, fit_intercept):
    problem = make(loss, fit_intercept=fit_intercept)
    result = run(Newton(), problem, tol=1e-12, max_iter=50)
    m = problem.columns.m

    def value(flat):
        return naive_objective(problem, flat[:m, None], flat[m:] if fit_intercept else 0.0)

    other = minimize(
        value, np.zeros(m + fit_intercept), method="BFGS", options={"gtol": 1e-9, "maxiter": 5000}
    )
    assert result.certificate.objective <= other.fun * (1 + 1e-9)
    assert result.certificate.objective == pytest.approx(
        naive_objective(problem, result.model.coef, result.model.intercept), rel=1e-10
    )
    assert result.certificate.scope == SUBSPACE
    assert result.certificate.holds


def test_a_line_finds_a_narrow_bend_that_is_far_away():
    loss, y, one = SmoothEpsilonInsensitive(0.1), np.array([[0.0], [1e6], [1e6]]), np.ones((3, 1))
    t = least_along(loss, y, np.ones(3), 0.0 * one, one, np.zeros(1), np.zeros(1))
    assert t == pytest.approx(1e6 - 0.15, rel=1e-12)


@pytest.mark.parametrize("spread", [1e3, 1e6])
def test_where_almost_all_rows_have_a_slope_and_no_curvature(spread):
    """Two heaps of targets: the intercept is at one of them, in a bend of 0.2."""
    problem = make(SmoothEpsilonInsensitive(0.1), n=99, m=8)
    target = spread * np.where(np.arange(99) % 2, 1.0, -1.0)[:, None] + problem.target
    problem = subspace_problem(problem.columns, target, problem.weight, problem.loss)
    result = run(Newton(), problem, tol=1e-10, max_iter=100)
    assert result.certificate.holds
    # the multipliers of the solution are those of the dual problem: they balance, and their
    # function is that of the coefficients
    G = problem.weight * problem.loss.gradient(problem.target, result.model.scores)[:, 0]
    c = problem.columns
    K_XB = c.kernel(np.asarray(c.operand.X, np.float64), c.vectors)
    K_BB = c.kernel(c.vectors) + c.jitter * np.eye(c.m)
    left = K_BB @ result.model.coef[:, 0] + K_XB.T @ G
    # of sums of 99 terms of about one, of which the scores have lost the digits above the bend
    assert abs(G.sum()) < 1e-7 * spread and np.abs(left).max() < 1e-7 * spread


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
def test_the_gap_bounds_the_distance_to_the_minimum_at_every_step(loss):
    problem = make(loss)
    best = run(Newton(), problem, tol=1e-13, max_iter=60).certificate.objective
    newton = Newton()
    state = newton.init(problem)
    for _ in range(6):
        newton.step(problem, state, 1e-13, 100)
        assert float(state.objective.sum() - best) <= float(state.gap.sum()) + 1e-9 * best


def test_columns_are_independent_machines():
    several = make(SquaredHinge(), columns=3)
    together = run(Newton(), several, tol=1e-12, max_iter=60).model
    for c in range(3):
        one = subspace_problem(
            several.columns, several.target[:, [c]], several.weight, several.loss
        )
        alone = run(Newton(), one, tol=1e-12, max_iter=60).model
        np.testing.assert_allclose(together.scores[:, c], alone.scores[:, 0], atol=1e-6)


@pytest.mark.parametrize(
    "kernel", [RBF(0.3), Laplacian(0.2), Polynomial(0.5, 2, 1.0)], ids=lambda kernel: kernel.name
)
def test_least_squares_has_a_closed_form(kernel):
    problem = make(LeastSquares(), m=6, kernel=kernel)
    c = problem.columns
    result = run(Newton(), problem, tol=1e-14, max_iter=30).model
    K = np.hstack([c.kernel(np.asarray(c.operand.X), c.vectors), np.ones((c.n, 1))])
    penalty = np.zeros((c.m + 1, c.m + 1))
    penalty[: c.m, : c.m] = c.kernel(c.vectors) + c.jitter * np.eye(c.m)
    W = 2 * problem.weight[:, None]
    solved = np.linalg.solve(penalty + K.T @ (W * K), K.T @ (W * problem.target))
    np.testing.assert_allclose(K @ solved, result.scores, atol=1e-7)


def test_float32_values_and_blocks_made_anew_agree_with_float64():
    exact = run(Newton(), make(SquaredHinge(), n=3000, m=20), tol=1e-10, max_iter=50)
    small = make(SquaredHinge(), n=3000, m=20, dtype=np.float32)
    rounded = run(Newton(), small, tol=1e-10, max_iter=50)
    assert rounded.certificate.objective == pytest.approx(exact.certificate.objective, rel=1e-4)
    again = kernel_columns(small.columns.operand, 20, max_memory=1e-3)
    assert not again.keeps
    again.append(np.asarray(small.columns.vectors))
    anew = run(
        Newton(),
        subspace_problem(again, small.target, small.weight, small.loss),
        tol=1e-10,
        max_iter=50,
    )
    assert anew.certificate.objective == pytest.approx(rounded.certificate.objective, rel=1e-6)


def test_same_bits_for_any_number_of_threads():
    one, two = (
        run(Newton(), make(SquaredHinge(), n=5000, m=30, threads=t), tol=1e-8, max_iter=30).model
        for t in (1, 2)
    )
    assert np.array_equal(one.coef, two.coef)
    assert np.array_equal(one.scores, two.scores)


def test_a_weight_of_two_is_a_row_twice():
    problem = make(SquaredHinge(), n=80)
    c = problem.columns
    twice = kernel_columns(c.take(np.tile(np.arange(80), 2)), c.m)
    twice.append(np.asarray(c.vectors))
    doubled = subspace_problem(c, problem.target, 2 * problem.weight, problem.loss)
    repeated = subspace_problem(
        twice, np.vstack([problem.target] * 2), np.concatenate([problem.weight] * 2), problem.loss
    )
    a, b = (run(Newton(), p, tol=1e-14, max_iter=60).model for p in (doubled, repeated))
    np.testing.assert_allclose(a.scores, b.scores[:80], atol=1e-8)


def test_a_dependent_vector_is_refused():
    problem = make(SquaredHinge(), m=12)
    c = kernel_columns(problem.columns.operand, 10)
    vectors = np.asarray(problem.columns.vectors)[[0, 1, 1, 2, 0]]
    assert c.append(vectors).tolist() == [True, True, False, True, False]
    assert c.m == 3
    np.testing.assert_allclose(c.L @ c.L.T, c.K_BB + c.jitter * np.eye(3), atol=1e-12)


def test_growing_the_factor_equals_factoring_at_once():
    rows = make(SquaredHinge()).columns.operand
    grown, at_once = kernel_columns(rows, 12), kernel_columns(rows, 12)
    for i in range(12):
        grown.append(rows.X[i : i + 1])
    at_once.replace(rows.X[:12])
    np.testing.assert_allclose(grown.L, at_once.L, atol=1e-10)
    np.testing.assert_allclose(grown.values.chunk(0), at_once.values.chunk(0), atol=1e-14)


def test_no_basis_leaves_the_intercept():
    problem = make(LeastSquares())
    empty = subspace_problem(
        kernel_columns(problem.columns.operand, 3), problem.target, problem.weight, problem.loss
    )
    state = Newton().init(empty)
    assert state.intercept[0] == pytest.approx(
        np.average(problem.target[:, 0], weights=problem.weight)
    )


def test_search_along_a_line_that_only_rises_stays():
    loss, one = SquaredHinge(), np.ones((4, 1))
    assert (
        least_along(loss, one, np.ones(4), 2 * one, one, np.array([1.0]), np.array([1.0]))[0] == 0.0
    )
