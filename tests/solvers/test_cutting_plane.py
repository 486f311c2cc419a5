"""Cutting planes: the oracle against brute force, and the driver in every space against exact
models.
"""

import threading

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize_scalar
from sklearn import svm

from slimsvm import SVC
from slimsvm.kernels import RBF, Linear
from slimsvm.losses import (
    EpsilonInsensitive,
    Hinge,
    LeastSquares,
    SmoothHinge,
    SquaredEpsilonInsensitive,
    SquaredHinge,
)
from slimsvm.oracles import LossOracle
from slimsvm.recipes import linear_cutting_plane
from slimsvm.rows import MemoryRows
from slimsvm.run import FULL, SUBSPACE, Limits, run
from slimsvm.solvers.cutting_plane import CuttingPlane, OneSlack
from slimsvm.solvers.spaces import ExplicitSpace, KernelSpace, SubspaceSpace
from slimsvm.tiles import prepare
from tests.in_memory import kernel_columns
from tests.reference.machines import random_rows

LOSSES = [
    Hinge(),
    EpsilonInsensitive(0.2),
    EpsilonInsensitive(0.0),
    SquaredHinge(),
    SmoothHinge(),
    LeastSquares(),
    SquaredEpsilonInsensitive(0.1),
]
every_loss = pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: repr(loss))
search = pytest.mark.parametrize("line_search", [True, False])


def make_oracle(loss, n=60, columns=2, seed=0, **options):
    rng = np.random.default_rng(seed)
    target = rng.standard_normal((n, columns))
    if loss.takes_labels:
        target = np.where(target > 0.3, 1.0, -1.0)
    return LossOracle(loss, target, rng.uniform(0.0, 2.0, n), **options), rng


# -- the oracle ------------------------------------------------------------------------------------


@every_loss
def test_cuts_support_the_risk(loss):
    oracle, rng = make_oracle(loss)
    f = rng.standard_normal((60, 2))
    risk, offset, v = oracle.cuts(f)
    np.testing.assert_allclose(risk, oracle.weight @ loss.value(oracle.target, f))
    np.testing.assert_allclose(offset + (v * f).sum(axis=0), risk, rtol=1e-10)
    for _ in range(50):
        other = f + rng.standard_normal((60, 2)) * rng.choice([1e-3, 1.0, 10.0])
        assert np.all(oracle.risk(other) >= offset + (v * other).sum(axis=0) - 1e-10)


def test_the_hinge_cut_is_that_of_the_paper():
    oracle, rng = make_oracle(Hinge(), columns=1)
    f = rng.standard_normal((60, 1))
    _, offset, v = oracle.cuts(f)
    inside = oracle.target * f < 1
    assert offset[0] == pytest.approx(oracle.weight @ inside[:, 0])
    np.testing.assert_array_equal(v, np.where(inside, -oracle.weight[:, None] * oracle.target, 0.0))


@every_loss
def test_columns_and_blocks(loss):
    oracle, rng = make_oracle(loss, columns=3)
    f = rng.standard_normal((60, 3))
    some = np.array([0, 2])
    for method in ("cuts", "balanced"):
        whole, part = getattr(oracle, method)(f), getattr(oracle, method)(f[:, some], some)
        for a, b in zip(whole, part, strict=True):
            np.testing.assert_allclose(b, a[..., some], rtol=1e-9, atol=1e-12)
    parts = [oracle.cut(0, 25, f[:25]), oracle.cut(25, 60, f[25:])]
    whole = oracle.cuts(f)
    np.testing.assert_allclose(parts[0][0] + parts[1][0], whole[0])
    np.testing.assert_allclose(parts[0][1] + parts[1][1], whole[1], atol=1e-12)
    np.testing.assert_array_equal(np.vstack([parts[0][2], parts[1][2]]), whole[2])


@every_loss
def test_the_intercept_is_the_best(loss):
    oracle, rng = make_oracle(loss)
    f = rng.standard_normal((60, 2))
    for middle in (False, True):
        b = oracle.intercept(f, middle=middle)
        for c in range(2):
            found = minimize_scalar(
                lambda x, c=c: oracle.risk(f + x)[c], bracket=(-5, 5), options={"xtol": 1e-12}
            )
            assert oracle.risk(f + b)[c] <= found.fun + 1e-9 * abs(found.fun)


@every_loss
def test_balanced_cuts_bound_the_risk_for_every_intercept(loss):
    oracle, rng = make_oracle(loss)
    f = rng.standard_normal((60, 2))
    b, risk, offset, v = oracle.balanced(f)
    np.testing.assert_allclose(v.sum(axis=0), 0.0, atol=1e-12 * oracle.weight.sum())
    np.testing.assert_allclose(risk, oracle.risk(f + b))
    np.testing.assert_allclose(offset + (v * f).sum(axis=0), risk, rtol=1e-8)
    for _ in range(50):
        other = f + rng.standard_normal((60, 2)) * rng.choice([1e-3, 1.0, 10.0])
        assert np.all(
            oracle.risk(other + 3 * rng.standard_normal(2))
            >= offset + (v * other).sum(axis=0) - 1e-10
        )


@every_loss
@pytest.mark.parametrize("curvature", [0.0, 3.0])
def test_the_line_search_finds_the_least_value(loss, curvature):
    oracle, rng = make_oracle(loss)
    f, d = rng.standard_normal((60, 2)), rng.standard_normal((60, 2))
    d[:5] = 0.0
    for slope in (-20.0, -1.0, 1e4):
        t = oracle.line(f, d, np.full(2, slope), np.full(2, curvature))
        for c in range(2):

            def along(x, c=c, slope=slope):
                return x * slope + 0.5 * curvature * x * x + oracle.risk(f + x * d)[c]

            if slope == 1e4 or along(1e9) < along(1e8) < along(
                1e7
            ):  # uphill from the beginning; downhill for ever
                assert np.isfinite(t[c]) and (t[c] == 0.0 or slope < 0)
                continue
            grid = np.concatenate(
                [np.linspace(0, 2 * t[c] + 1, 400), t[c] + np.linspace(-1e-6, 1e-6, 5)]
            )
            least = min(along(x) for x in grid if x >= 0)
            assert np.isfinite(t[c]) and along(t[c]) <= least + 1e-7 * abs(least)


def test_kinks_in_one_place():
    """All scores zero: every row of a class has its kink at the same intercept, and shares the
    jump.
    """
    y, weight = np.array([1.0, -1.0, -1.0, -1.0]), np.ones(4)
    oracle = LossOracle(Hinge(), y, weight)
    b, risk, offset, v = oracle.balanced(np.zeros((4, 1)))
    assert b[0] == -1.0 and risk[0] == pytest.approx(2.0) and offset[0] == pytest.approx(2.0)
    np.testing.assert_allclose(v[:, 0], [-1.0, 1 / 3, 1 / 3, 1 / 3])


def test_one_class_only():
    for label in (1.0, -1.0):
        oracle = LossOracle(Hinge(), np.full(3, label), np.ones(3))
        b, risk, _, v = oracle.balanced(np.array([[0.0], [1.0], [2.0]]))
        assert risk[0] == 0.0 and np.isfinite(b[0]) and not v.any()


def test_the_middle_of_several_best_intercepts():
    oracle = LossOracle(Hinge(), np.array([1.0, -1.0]), np.array([0.1, 0.1]))
    assert oracle.intercept(np.array([[3.0], [0.0]]), middle=True)[0] == pytest.approx(-1.5)


@every_loss
def test_packed_responses_come_back(loss):
    oracle, rng = make_oracle(loss)
    oracle.weight[:3] = 0.0
    for v in (oracle.cuts(rng.standard_normal((60, 2)))[2], oracle.balanced(np.zeros((60, 2)))[3]):
        kept = oracle.packed(v[:, 0])
        np.testing.assert_allclose(
            oracle.unpacked(kept, 10, 50), v[10:50, 0], rtol=1e-6, atol=1e-12
        )
        if isinstance(loss, Hinge | EpsilonInsensitive):
            assert kept.codes.dtype == np.uint8
            np.testing.assert_allclose(oracle.unpacked(kept, 0, 60), v[:, 0], rtol=1e-15)


# -- the driver ------------------------------------------------------------------------------------


def check_certificate(result, optimum):
    """The value is at most its gap above the optimum, and the lower bound below it."""
    certificate = result.certificate
    assert certificate.objective >= optimum * (1 - 1e-6)  # the other model's precision
    assert certificate.objective - certificate.gap <= optimum * (1 + 1e-9)
    assert certificate.holds == (certificate.violation <= certificate.tol)


def exact_objective(K, y, C, weight=None, fit_intercept=True):
    """Of the exact model, from scikit-learn's (intercept) or slimsvm's trick of a huge constant
    (none).
    """
    weight = np.ones(len(y)) if weight is None else weight
    assert fit_intercept
    model = svm.SVC(kernel="precomputed", C=C, tol=1e-10).fit(K, y, sample_weight=weight)
    a = np.zeros(len(y))
    a[model.support_] = model.dual_coef_[0]
    f = K @ a + model.intercept_[0]
    return 0.5 * a @ K @ a + C * weight @ np.maximum(0, 1 - y * f)


@search
@pytest.mark.parametrize("C", [0.1, 10.0])
def test_the_kernel_space_is_the_exact_machine(line_search, C):
    X, y, _ = random_rows(80)
    K = RBF(0.5)(X)
    oracle = LossOracle(Hinge(), y, np.full(80, C))
    result = run(
        CuttingPlane(line_search=line_search),
        OneSlack(KernelSpace(K), oracle),
        tol=1e-6,
        max_iter=3000,
    )
    assert result.status.converged and result.certificate.scope == FULL
    check_certificate(result, exact_objective(K, y, C))
    model = SVC(C=C, kernel=RBF(0.5)).fit(X, y)
    np.testing.assert_allclose(result.model.scores[:, 0], model.decision_function(X), atol=0.02)
    np.testing.assert_allclose(
        K @ result.model.coef + result.model.intercept, result.model.scores, atol=1e-9
    )


@search
@pytest.mark.parametrize("kind", [np.asarray, sp.csr_matrix])
def test_the_explicit_space_is_the_linear_machine(line_search, kind):
    X, y, _ = random_rows(300)
    oracle = LossOracle(Hinge(), y, np.full(300, 0.5))
    result = run(
        CuttingPlane(line_search=line_search),
        OneSlack(ExplicitSpace(MemoryRows(kind(X))), oracle),
        tol=1e-7,
    )
    check_certificate(result, exact_objective(X @ X.T, y, 0.5))
    np.testing.assert_allclose(
        X @ result.model.coef + result.model.intercept, result.model.scores, atol=1e-9
    )


@search
def test_a_penalised_intercept_is_a_constant_feature(line_search):
    X, y, _ = random_rows(200)
    oracle = LossOracle(Hinge(), y, np.full(200, 0.5))
    s = 2.0
    ours = run(
        CuttingPlane(line_search=line_search),
        OneSlack(ExplicitSpace(MemoryRows(X)), oracle, s),
        tol=1e-7,
    )
    wide = np.column_stack([X, np.full(200, s)])
    other = run(
        CuttingPlane(line_search=line_search),
        OneSlack(ExplicitSpace(MemoryRows(wide)), oracle, 0.0),
        tol=1e-7,
    )
    assert ours.certificate.objective == pytest.approx(other.certificate.objective, rel=1e-6)
    np.testing.assert_allclose(ours.model.coef, other.model.coef[:-1], atol=1e-3)
    reference = svm.LinearSVC(
        loss="hinge", C=0.5, intercept_scaling=s, tol=1e-9, max_iter=1_000_000
    ).fit(X, y)
    w = np.append(reference.coef_[0], reference.intercept_[0] / s)
    check_certificate(ours, 0.5 * w @ w + 0.5 * np.maximum(0, 1 - y * (wide @ w)).sum())
    # the model's own intercept is the best without the penalty
    for b in ours.model.intercept + np.array([-1e-3, 1e-3]):
        assert oracle.risk(ours.model.scores) <= oracle.risk(X @ ours.model.coef + b) + 1e-12


def test_without_an_intercept():
    X, y, _ = random_rows(200)
    oracle = LossOracle(Hinge(), y, np.full(200, 0.5))
    result = run(CuttingPlane(), OneSlack(ExplicitSpace(MemoryRows(X)), oracle, 0.0), tol=1e-7)
    reference = svm.LinearSVC(
        loss="hinge", C=0.5, fit_intercept=False, tol=1e-9, max_iter=1_000_000
    ).fit(X, y)
    w = reference.coef_[0]
    check_certificate(result, 0.5 * w @ w + 0.5 * np.maximum(0, 1 - y * (X @ w)).sum())
    assert result.model.intercept[0] == 0.0


@every_loss
@search
def test_every_loss(loss, line_search):
    """Against the KKT condition: w = -sum of row duals, and the gap closes."""
    X, y, t = random_rows(150)
    oracle = LossOracle(loss, y if loss.takes_labels else t, np.full(150, 0.3))
    result = run(
        CuttingPlane(line_search=line_search),
        OneSlack(ExplicitSpace(MemoryRows(X)), oracle),
        tol=1e-5,
        max_iter=2000,
    )
    assert result.certificate.holds
    duals = result.model.row_duals[:, 0]
    slopes = duals / oracle.weight
    w = -X.T @ duals
    dual = -0.5 * w @ w - oracle.weight @ loss.conjugate(oracle.target[:, 0], slopes * (1 - 1e-9))
    assert dual <= result.certificate.objective * (1 + 1e-9)
    assert dual >= result.model.lower_bound[0] * (
        1 - 1e-6
    )  # the sum of cuts is no worse a bound than the cuts
    assert duals.sum() == pytest.approx(0.0, abs=1e-9)


def test_regression_is_the_exact_machine():
    X, _, t = random_rows(120)
    K = RBF(0.3)(X)
    oracle = LossOracle(EpsilonInsensitive(0.1), t, np.full(120, 2.0))
    result = run(CuttingPlane(), OneSlack(KernelSpace(K), oracle), tol=1e-6, max_iter=3000)
    model = svm.SVR(kernel="precomputed", C=2.0, epsilon=0.1, tol=1e-9).fit(K, t)
    a = np.zeros(120)
    a[model.support_] = model.dual_coef_[0]
    optimum = 0.5 * a @ K @ a + 2.0 * np.maximum(0, np.abs(t - model.predict(K)) - 0.1).sum()
    check_certificate(result, optimum)
    assert result.certificate.objective == pytest.approx(optimum, rel=1e-5)


def columns_for(X, basis, kernel=None, max_basis=None, dtype=np.float64, **options):
    rows = prepare(kernel or RBF(0.5), X, dtype=dtype)
    columns = kernel_columns(rows, max_basis or (len(basis) if basis is not None else 1), **options)
    if basis is not None and len(basis):
        columns.append(columns.in_rows_coordinates(basis))
    return columns


@pytest.mark.parametrize("keeps", [True, False])
def test_all_rows_as_the_basis_are_the_exact_machine(keeps):
    X, y, _ = random_rows(80)
    K = RBF(0.5)(X)
    columns = columns_for(X, X, max_memory=None if keeps else 1e-9)
    assert columns.m == 80 and columns.keeps is keeps
    oracle = LossOracle(Hinge(), y, np.full(80, 2.0))
    result = run(CuttingPlane(), OneSlack(SubspaceSpace(columns), oracle), tol=1e-6, max_iter=3000)
    assert result.certificate.scope == SUBSPACE and result.certificate.holds
    check_certificate(result, exact_objective(K, y, 2.0))
    np.testing.assert_allclose(
        K @ result.model.coef + result.model.intercept, result.model.scores, atol=1e-6
    )
    # the row duals are a feasible point of the exact dual
    a = np.abs(result.model.row_duals[:, 0])
    assert np.all(a <= 2.0 + 1e-12) and y @ a == pytest.approx(0.0, abs=1e-9)
    dual = a.sum() - 0.5 * (y * a) @ K @ (y * a)
    assert dual <= exact_objective(K, y, 2.0) * (1 + 1e-9)
    assert dual >= result.certificate.objective * (1 - 1e-4)


@search
@pytest.mark.parametrize("scaling", [0.0, 1.0, np.inf])
def test_bounds_are_monotone_in_a_fixed_space(line_search, scaling):
    X, y, _ = random_rows(200)
    columns = columns_for(X, X[:30])
    oracle = LossOracle(Hinge(), y, np.full(200, 5.0))
    result = run(
        CuttingPlane(line_search=line_search),
        OneSlack(SubspaceSpace(columns), oracle, scaling),
        tol=1e-5,
        max_iter=3000,
    )
    assert result.certificate.holds
    lower, upper = result.history["lower_bound"], result.history["objective"]
    assert np.all(np.diff(lower) >= 0) and np.all(np.diff(upper) <= 0)
    assert np.all(lower <= upper[-1] * (1 + 1e-9))
    assert result.history["gap"][-1] == pytest.approx(upper[-1] - lower[-1], abs=1e-9)


def test_columns_are_independent():
    """Three columns at once are the three columns one by one."""
    X, _, t = random_rows(150)
    target = np.where(np.column_stack([t > 0, X[:, 0] > 0.5, X[:, 1] > X[:, 2]]), 1.0, -1.0)
    weight = np.full(150, 1.0)
    space = ExplicitSpace(MemoryRows(X))
    together = run(CuttingPlane(), OneSlack(space, LossOracle(Hinge(), target, weight)), tol=1e-6)
    for c in range(3):
        alone = run(
            CuttingPlane(), OneSlack(space, LossOracle(Hinge(), target[:, c], weight)), tol=1e-6
        )
        assert together.model.objective[c] == pytest.approx(alone.model.objective[0], rel=1e-9)
        np.testing.assert_allclose(
            together.model.coef[:, c], alone.model.coef[:, 0], rtol=1e-7, atol=1e-10
        )


def test_weights_are_repetitions():
    X, y, _ = random_rows(100)
    times = np.random.default_rng(3).integers(0, 4, 100)
    again = np.repeat(np.arange(100), times)
    weighted = run(
        CuttingPlane(),
        OneSlack(ExplicitSpace(MemoryRows(X)), LossOracle(Hinge(), y, 0.5 * times)),
        tol=1e-8,
    )
    repeated = run(
        CuttingPlane(),
        OneSlack(
            ExplicitSpace(MemoryRows(X[again])),
            LossOracle(Hinge(), y[again], np.full(again.size, 0.5)),
        ),
        tol=1e-8,
    )
    assert weighted.certificate.objective == pytest.approx(repeated.certificate.objective, rel=1e-7)
    np.testing.assert_allclose(weighted.model.coef, repeated.model.coef, atol=1e-3)


# -- growth ----------------------------------------------------------------------------------------


def growing_problem(
    n=200, max_basis=25, columns=1, seed=0, tol=1e-4, refuse=lambda k: False, **options
):
    """CPSP(tr): the best of some random rows joins, by the drop of the residual."""
    X, y, t = random_rows(n, seed)
    target = (
        y[:, None]
        if columns == 1
        else np.where(np.column_stack([y, X[:, 0] - 0.3, t]) > 0, 1.0, -1.0)
    )
    kernel, rng, calls = RBF(0.5), np.random.default_rng(seed), []
    store = columns_for(X, None, kernel, max_basis, **options)
    rows = store.in_rows_coordinates(X)

    def grow(columns, row_weights, basis_weights):
        assert (
            columns is store
            and row_weights.shape == target.shape
            and basis_weights.shape == (columns.m, target.shape[1])
        )
        calls.append(columns.m)
        if refuse(len(calls)):
            return rows[:1] if columns.m and len(calls) % 2 else None
        chosen = rng.choice(n, 20, replace=False)
        products = kernel(rows[chosen], rows) @ row_weights
        if columns.m:
            products += kernel(rows[chosen], columns.vectors) @ basis_weights
        return rows[chosen[[np.argmax(np.square(products).sum(axis=1))]]]

    return OneSlack(SubspaceSpace(store, grow), LossOracle(Hinge(), target, np.full(n, 2.0))), calls


@search
@pytest.mark.parametrize("columns", [1, 3])
@pytest.mark.parametrize("scaling", [0.0, 1.0, np.inf])
def test_growth_keeps_coordinates(line_search, columns, scaling):
    """At every size, coordinates and inner products of all cuts are those of a fresh projection,
    and bounds are bounds.
    """
    problem, calls = growing_problem(columns=columns)
    problem.intercept_scaling = scaling
    solver = CuttingPlane(line_search=line_search)
    state = solver.init(problem)
    assert problem.space.size == 0
    for _ in range(40):
        solver.step(problem, state, 1e-4, 1000)
        space = problem.space
        for c, cuts in enumerate(state.cuts):
            V = np.column_stack([problem.oracle.unpacked(rows, 0, 200) for rows in cuts.rows])
            P = space.project(V)
            np.testing.assert_allclose(
                cuts.coordinates(space.size), P.T, atol=1e-7 * np.abs(P).max(initial=1.0)
            )
            gram = P.T @ P + problem.variance * np.outer(V.sum(axis=0), V.sum(axis=0))
            np.testing.assert_allclose(cuts.gram, gram, rtol=1e-7, atol=1e-7 * np.abs(gram).max())
            np.testing.assert_allclose(
                space.scores(state.best_W)[:, c], state.best_scores[:, c], atol=1e-7
            )
        assert np.all(state.lower <= state.objective * (1 + 1e-12))
    assert problem.space.size == 25 and calls == list(range(25))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_grown_basis_is_solved_to_the_end(dtype):
    problem, calls = growing_problem(dtype=dtype)
    result = run(CuttingPlane(), problem, tol=1e-4, max_iter=2000)
    assert (
        result.certificate.holds and problem.space.size == 25 and result.model.coef.shape == (25, 1)
    )
    assert result.certificate.precision == np.dtype(dtype).name
    fixed = run(
        CuttingPlane(),
        OneSlack(SubspaceSpace(problem.space.columns), problem.oracle),
        tol=1e-4,
        max_iter=2000,
    )
    assert abs(fixed.certificate.objective - result.certificate.objective) <= 1.1 * (
        fixed.certificate.gap + result.certificate.gap
    )
    assert len(calls) == 25


def test_growth_in_spite_of_refusals():
    problem, calls = growing_problem(max_basis=10, refuse=lambda k: 3 <= k <= 8)
    result = run(CuttingPlane(), problem, tol=1e-4, max_iter=2000)
    assert result.certificate.holds and problem.space.size == 10 and len(calls) > 10
    nothing, calls = growing_problem(refuse=lambda k: True)
    result = run(CuttingPlane(), nothing, tol=1e-4, max_iter=2000)
    assert (
        result.certificate.holds and nothing.space.size == 0 and result.model.coef.shape == (0, 1)
    )


def test_going_on_after_a_change_of_the_basis():
    """A state of a large basis, brought to its first vectors, and back to more precision."""
    problem, _ = growing_problem()
    solver = CuttingPlane()
    state = solver.init(problem)
    while not state.done:
        solver.step(problem, state, 1e-3, 2000)
    cold = run(
        solver,
        OneSlack(SubspaceSpace(problem.space.columns), problem.oracle),
        tol=1e-5,
        max_iter=2000,
    )
    finer = run(solver, problem, tol=1e-5, max_iter=2000, start=state)
    assert finer.certificate.holds and finer.n_iter < cold.n_iter
    less = OneSlack(SubspaceSpace(problem.space.columns.first(8)), problem.oracle)
    solver.reproject(less, state)
    short = run(solver, less, tol=1e-5, max_iter=2000, start=state)
    fresh = run(solver, less, tol=1e-5, max_iter=2000)
    assert short.certificate.holds and short.model.coef.shape == (8, 1)
    assert short.certificate.objective == pytest.approx(fresh.certificate.objective, rel=3e-5)


def test_rows_that_were_thrown_away():
    problem, _ = growing_problem()
    with pytest.raises(ValueError, match="keep_rows"):
        run(CuttingPlane(keep_rows=False), problem, tol=1e-4)
    X, y, _ = random_rows(50)
    result = run(
        CuttingPlane(keep_rows=False),
        OneSlack(ExplicitSpace(MemoryRows(X)), LossOracle(Hinge(), y, np.ones(50))),
        tol=1e-4,
    )
    assert result.model.row_duals is None and result.certificate.holds


# -- the loop around it ----------------------------------------------------------------------------


def test_a_step_after_the_end_makes_no_cut():
    X, y, _ = random_rows(50)
    problem = OneSlack(ExplicitSpace(MemoryRows(X)), LossOracle(Hinge(), y, np.ones(50)))
    solver = CuttingPlane()
    state = solver.init(problem)
    while not state.done:
        solver.step(problem, state, 1e-3, 1000)
    steps, objective = state.n_iter, state.objective.copy()
    solver.step(problem, state, 1e-3, 1000)
    assert state.done and state.n_iter == steps
    np.testing.assert_array_equal(state.objective, objective)


def test_a_start_is_a_point_to_begin_with():
    X, y, _ = random_rows(300)
    oracle, space = LossOracle(Hinge(), y, np.full(300, 1.0)), ExplicitSpace(MemoryRows(X))
    cold = run(CuttingPlane(), OneSlack(space, oracle), tol=1e-4)
    warm = run(
        CuttingPlane(),
        OneSlack(space, oracle),
        tol=1e-4,
        start=(cold.model.coef, cold.model.intercept),
    )
    assert (
        warm.history["objective"][0] <= cold.certificate.objective * (1 + 1e-12)
        and warm.certificate.holds
    )


def test_limits():
    X, y, _ = random_rows(300)
    problem = OneSlack(ExplicitSpace(MemoryRows(X)), LossOracle(Hinge(), y, np.full(300, 100.0)))
    for limit, options in (
        ("max_iter", {"max_iter": 3}),
        ("max_time", {"limits": Limits(1e-9)}),
        ("interrupted", {"limits": Limits(interrupted=True)}),
    ):
        result = run(CuttingPlane(), problem, tol=1e-9, **options)
        assert result.status.reason == limit and np.isfinite(result.model.coef).all()
        assert result.model.objective <= 300 * 100.0


def test_the_same_bits_for_any_number_of_threads():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40_000, 30))
    target = np.where(
        np.column_stack([X[:, 0] + X[:, 1], X[:, 2]]) + rng.standard_normal((40_000, 2)) > 0,
        1.0,
        -1.0,
    )
    models = []
    for threads in (1, 3):
        for space in (
            ExplicitSpace(MemoryRows(X, n_threads=threads)),
            SubspaceSpace(columns_for(X, X[:20], RBF(0.01), dtype=None, n_threads=threads)),
        ):
            for line_search in (True, False):
                problem = OneSlack(
                    space, LossOracle(Hinge(), target, np.full(40_000, 1e-3), threads), 1.0
                )
                models.append(
                    run(CuttingPlane(line_search=line_search), problem, tol=1e-9, max_iter=5).model
                )
    for one, three in zip(models[:4], models[4:], strict=True):
        np.testing.assert_array_equal(one.coef, three.coef)
        np.testing.assert_array_equal(one.intercept, three.intercept)
        np.testing.assert_array_equal(one.row_duals, three.row_duals)


def test_another_thread():
    X, y, _ = random_rows(60)
    out = []
    problem = OneSlack(ExplicitSpace(MemoryRows(X)), LossOracle(Hinge(), y, np.ones(60)))
    thread = threading.Thread(target=lambda: out.append(run(CuttingPlane(), problem, tol=1e-4)))
    thread.start()
    thread.join()
    assert out[0].certificate.holds


@search
@pytest.mark.parametrize("scaling", [0.0, 1.0, np.inf])
def test_degenerate_input(line_search, scaling):
    one, pair = np.array([1.0]), np.array([1.0, -1.0])
    cases = [
        (np.array([[2.0]]), one, np.ones(1)),
        (np.array([[0.0]]), one, np.ones(1)),
        (np.array([[1.0], [1.0]]), pair, np.ones(2)),
        (np.array([[1.0], [2.0]]), pair, np.full(2, 1e-300)),
        (np.array([[1.0], [2.0]]), pair, np.full(2, 1e5)),
        (np.full((6, 3), 7.0), np.tile(pair, 3), np.ones(6)),
        (
            np.random.default_rng(0).standard_normal((5, 20)),
            np.array([1.0, -1.0, 1.0, 1.0, -1.0]),
            np.zeros(5),
        ),
    ]
    for X, y, weight in cases:
        problem = OneSlack(ExplicitSpace(MemoryRows(X)), LossOracle(Hinge(), y, weight), scaling)
        result = run(CuttingPlane(line_search=line_search), problem, tol=1e-6, max_iter=500)
        assert np.isfinite(result.model.coef).all() and np.isfinite(result.model.intercept).all()
        assert result.certificate.holds, (X, y, weight)


def test_a_tolerance_below_rounding_ends_too():
    X, y, _ = random_rows(400)
    columns = columns_for(X, X[:40], dtype=np.float32)
    result = run(
        CuttingPlane(),
        OneSlack(SubspaceSpace(columns), LossOracle(Hinge(), y, np.full(400, 1.0))),
        tol=1e-15,
        max_iter=20_000,
    )
    assert result.n_iter < 20_000 and result.certificate.violation < 1e-4


def test_linear_kernel_subspace_is_the_explicit_space():
    X, y, _ = random_rows(200, d=4)
    oracle = LossOracle(Hinge(), y, np.full(200, 0.5))
    explicit = run(CuttingPlane(), OneSlack(ExplicitSpace(MemoryRows(X)), oracle), tol=1e-6)
    columns = columns_for(X, np.eye(4), Linear())
    spanned = run(CuttingPlane(), OneSlack(SubspaceSpace(columns), oracle), tol=1e-6)
    assert spanned.certificate.objective == pytest.approx(explicit.certificate.objective, rel=3e-6)
    np.testing.assert_allclose(spanned.model.coef, explicit.model.coef, atol=3e-3)


def test_a_small_weight_is_not_nothing_where_losses_cost_much():
    """w = 4e-7 of a feature of a million: its square is nothing beside C, its scores are not."""
    X, y = np.full((6, 1), 1e6), np.array([1, 1, 1, 1, 0, 0])
    X[5] = -1e6
    model = linear_cutting_plane(C=1e13).fit(X, y)
    scores = X @ model.coef_.ravel() + model.intercept_
    loss = np.maximum(0.0, 1.0 - np.where(y > 0, 1.0, -1.0) * scores).sum()
    assert 1e13 * loss == pytest.approx(model.certificate_.objective, rel=1e-9)
    assert model.predict(X).tolist() == [1, 1, 1, 1, 1, 0]
