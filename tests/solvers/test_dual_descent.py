"""Descent along dual variables: against a general minimiser and scikit-learn, arrays as CSR, and
its own gap.
"""

from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize
from sklearn import svm

from slimsvm.problems.factored_dual import FactoredDual
from slimsvm.run import run
from slimsvm.solvers.dual_descent import DualDescent


def factor(n=120, r=9, seed=0, density=1.0):
    rng = np.random.default_rng(seed)
    V = rng.standard_normal((n, r)) + 0.5
    V[rng.random((n, r)) >= density] = 0.0
    return np.sign(V @ rng.standard_normal(r) + rng.standard_normal(n))[:, None] * V


def problems():
    rng = np.random.default_rng(1)
    weight = rng.random(120) + 0.1
    return {
        "hinge": FactoredDual(factor(), 1.0, 0.0, weight),
        "squared hinge": FactoredDual(factor(), 1.0, 0.5 / weight, np.inf),
        "both": FactoredDual(factor(), rng.standard_normal(120), 0.1 * weight, weight),
    }


def by_lbfgs(problem):
    H = (
        problem.V @ problem.V.T
        if not sp.issparse(problem.V)
        else (problem.V @ problem.V.T).toarray()
    ) + np.diag(problem.shift)
    value = lambda a: (0.5 * a @ H @ a - problem.linear @ a, H @ a - problem.linear)  # noqa: E731
    bounds = [(0.0, None if np.isinf(bound) else bound) for bound in problem.upper]
    return minimize(
        value,
        np.zeros(problem.n),
        jac=True,
        method="L-BFGS-B",
        bounds=bounds,
        options={"maxiter": 20000, "ftol": 1e-15, "gtol": 1e-10},
    )


@pytest.mark.parametrize("name", ["hinge", "squared hinge", "both"])
def test_a_point_is_stretched_to_its_best_length(name):
    problem = problems()[name]
    w = run(DualDescent(), problem, tol=1e-6).model.w
    for short in (0.7, 0.9, 0.999, 1.0, 1.2):
        value, length = problem.stretched(short * w)
        lengths = np.linspace(1.0, 1.5, 2001)
        assert 1.0 <= length <= 1.5 and value == pytest.approx(
            problem.primal(length * short * w), rel=1e-12
        )
        assert value <= min(problem.primal(s * short * w) for s in lengths) * (1 + 1e-6)
    assert problem.stretched(np.zeros(9)) == (problem.primal(np.zeros(9)), 1.0)


@pytest.mark.parametrize("shrinking", [True, False])
@pytest.mark.parametrize("name", problems())
def test_minimum_is_that_of_a_general_minimiser(name, shrinking):
    problem = problems()[name]
    result = run(DualDescent(shrinking=shrinking), problem, tol=1e-9, max_iter=20000)
    point = result.model
    assert result.status.converged and result.certificate.holds
    assert np.all(point.a >= 0) and np.all(point.a <= problem.upper)
    assert point.dual == pytest.approx(by_lbfgs(problem).fun, rel=1e-7, abs=1e-9)
    assert point.dual == pytest.approx(problem.dual(point.a, problem.V.T @ point.a), rel=1e-10)
    assert result.certificate.objective == pytest.approx(-point.dual, rel=1e-8)


def test_the_hinge_is_that_of_liblinear():
    X = factor(n=400)  # labels inside: all +1, and so twice with both signs
    rows, sign = np.vstack([X, -X]), np.repeat([1.0, -1.0], 400)
    for loss, shift, upper in (("hinge", 0.0, 0.3), ("squared_hinge", 1 / 0.6, np.inf)):
        other = svm.LinearSVC(
            C=0.3, loss=loss, dual=True, fit_intercept=False, tol=1e-8, max_iter=200000
        ).fit(rows, sign)
        mine = run(
            DualDescent(),
            FactoredDual(sign[:, None] * rows, 1.0, shift, upper),
            tol=1e-10,
            max_iter=20000,
        )
        np.testing.assert_allclose(mine.model.w, other.coef_[0], rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("name", problems())
def test_the_gap_bounds_the_distance_to_the_minimum_at_every_step(name):
    problem = problems()[name]
    best = -run(DualDescent(), problem, tol=1e-11, max_iter=20000).model.dual
    solver = DualDescent()
    state, last = solver.init(problem), 0.0
    for _ in range(5):
        solver.step(problem, state, 1e-11, 10**6)
        assert state.primal - best <= state.gap + 1e-9 * best
        assert state.dual <= last + 1e-12
        last = state.dual


def test_the_best_primal_point_is_kept():
    problem = FactoredDual(
        factor(n=300, r=40), 1.0, 1e-4, np.inf
    )  # as with C = 5,000: w itself goes up and down
    result = run(DualDescent(), problem, tol=1e-9, max_iter=300)
    assert np.all(np.diff(result.history["objective"]) <= 0)
    assert problem.primal(result.model.best) == pytest.approx(result.model.primal, rel=1e-12)
    assert result.model.primal <= problem.primal(result.model.w)
    assert result.certificate.gap == pytest.approx(result.model.primal + result.model.dual)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_csr_gives_what_an_array_gives(dtype):
    V = factor(n=300, r=40, density=0.2).astype(dtype)
    a, b = (
        run(DualDescent(seed=3), FactoredDual(W, 1.0, 0.0, 0.7), tol=1e-8, max_iter=5000)
        for W in (V, sp.csr_matrix(V))
    )
    assert a.certificate.precision == np.dtype(dtype).name
    np.testing.assert_allclose(a.model.w, b.model.w, rtol=1e-7, atol=1e-9)
    assert a.n_iter == b.n_iter


def test_the_seed_decides_the_way_not_the_goal():
    problem = problems()["squared hinge"]
    one, same, other = (
        run(DualDescent(seed=s), problem, tol=1e-10, max_iter=5000).model for s in (1, 1, 2)
    )
    assert np.array_equal(one.a, same.a) and not np.array_equal(one.a, other.a)
    np.testing.assert_allclose(one.w, other.w, atol=1e-5)


def test_a_start_is_cut_at_the_bounds_and_used():
    problem = problems()["hinge"]
    cold = run(DualDescent(), problem, tol=1e-6, max_iter=5000)
    warm = run(DualDescent(), problem, tol=1e-6, max_iter=5000, start=cold.model.a * 1.0)
    assert (
        len(warm.history["gap"]) == 1 < len(cold.history["gap"]) and warm.n_iter < cold.n_iter
    )  # one step of the run
    state = DualDescent().init(problem, np.full(problem.n, 1e9))
    assert np.array_equal(state.a, problem.upper)


def test_max_iter_is_kept_and_said():
    result = run(DualDescent(), problems()["squared hinge"], tol=1e-12, max_iter=3)
    assert (
        result.n_iter == 3 and result.status.reason == "max_iter" and not result.certificate.holds
    )


def test_zero_rows_and_zero_bounds():
    V = np.vstack([factor(20), np.zeros((2, 9))])
    upper = np.full(22, 0.5)
    upper[3] = 0.0
    result = run(DualDescent(), FactoredDual(V, 1.0, 0.0, upper), tol=1e-8, max_iter=5000)
    assert (
        result.certificate.holds
        and result.model.a[3] == 0.0
        and np.array_equal(result.model.a[20:], [0.5, 0.5])
    )


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((np.ones(3),), "1 dimensions"),
        ((np.ones((3, 2)), np.ones(2)), r"linear has the shape \(2,\)"),
        ((np.ones((3, 2)), 1.0, -1.0), "shift has the value -1"),
        ((np.ones((3, 2)), 1.0, 0.0, -1.0), "upper has the value -1"),
        ((np.ones((3, 2)), 1.0, 0.0, np.nan), "not negative"),
        ((np.full((3, 2), np.nan),), "not finite"),
        ((np.zeros((3, 2)),), "no minimum"),
    ],
)
def test_what_is_refused(arguments, words):
    with pytest.raises(ValueError, match=words):
        FactoredDual(*arguments)


def exact_values(problem, a):
    """P(V'a) and D(a) of a problem without shift, in fractions."""
    V = [[Fraction(float(v)) for v in row] for row in problem.V]
    w = [sum(Fraction(float(x)) * row[j] for x, row in zip(a, V, strict=True)) for j in range(3)]
    missing = [1 - sum(v * u for v, u in zip(row, w, strict=True)) for row in V]
    loss = sum(Fraction(float(c)) * max(t, 0) for c, t in zip(problem.upper, missing, strict=True))
    half = sum(u * u for u in w) / 2
    return half + loss, half - sum(Fraction(float(x)) for x in a)


def test_rounding_counts_the_scores_of_long_rows():
    """Rows of length 1,000 with a w of length 0.01: their scores have lost digits, and each such
    digit costs C; the sizes of |w|^2 and of the sum of a say nothing of that."""
    rng = np.random.default_rng(0)
    seen = []
    for _ in range(20):
        V = 1000.0 * (rng.standard_normal((12, 3)) + np.array([3.0, 0.0, 0.0]))
        problem = FactoredDual(V, 1.0, 0.0, 1e4)
        a = run(DualDescent(own_value=True), problem, tol=1e-9, max_iter=500).model.a
        w = problem.combined(a)
        values = problem.primal(w), problem.dual(a, w)
        off = [
            abs(float(x - Fraction(y)))
            for x, y in zip(exact_values(problem, a), values, strict=True)
        ]
        rounding = problem.rounding(a, w)
        before = 16 * 2.2e-16 * (w @ w + a.sum())  # what was counted once
        assert max(off) <= rounding
        seen.append((max(off), rounding, before))
    true, found, before = np.array(seen).T
    assert np.any(true > before) and found.sum() <= 100 * true.sum()
