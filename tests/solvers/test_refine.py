"""Refinement: its derivative against differences, and that it gains."""

import numpy as np
import pytest
import scipy.sparse as sp

from slimsvm.kernels import RBF, Linear, Polynomial
from slimsvm.losses import LeastSquares, SmoothHinge, SquaredEpsilonInsensitive, SquaredHinge
from slimsvm.run import Limits
from slimsvm.solvers.refine import gradient, refine, solve
from slimsvm.tiles import prepare
from tests.in_memory import kernel_columns, subspace_problem

KERNELS = [RBF(0.5), Polynomial(0.5, 3, 1.0), Polynomial(1.0, 2, 0.0), Linear()]


def make(kernel, loss, n=120, m=3, columns=1, dtype=np.float64):
    rng = np.random.default_rng(1)
    X = rng.standard_normal((n, 4))
    y = np.sign(rng.standard_normal((n, columns)) + X[:, [0]])
    rows = prepare(kernel, X, dtype=np.dtype(dtype))
    held = kernel_columns(rows, m)
    return subspace_problem(held, y, rng.uniform(0.5, 1.5, n), loss), rng.standard_normal((m, 4))


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
@pytest.mark.parametrize(
    "loss",
    [SmoothHinge(), SquaredHinge(), LeastSquares(), SquaredEpsilonInsensitive(0.1)],
    ids=lambda loss: loss.name,
)
@pytest.mark.parametrize("columns", [1, 3])
def test_derivative_is_that_of_differences(kernel, loss, columns):
    problem, vectors = make(kernel, loss, columns=columns)

    def value(B):
        problem.columns.replace(B)
        return solve(problem, None, 1e-15, 60)

    at = value(vectors)
    exact = gradient(problem, vectors, at.coef, at.trail)
    step = 1e-5
    for j, k in [(0, 0), (1, 2), (2, 3)]:
        above, below = vectors.copy(), vectors.copy()
        above[j, k] += step
        below[j, k] -= step
        difference = float((value(above).objective - value(below).objective).sum()) / (2 * step)
        assert difference == pytest.approx(exact[j, k], rel=2e-4, abs=2e-5 * np.abs(exact).max())


def test_derivative_with_sparse_rows():
    rng = np.random.default_rng(0)
    X = sp.random(150, 400, density=0.01, format="csr", random_state=0)
    rows = prepare(RBF(0.5), X, dtype=np.dtype(np.float64))
    assert sp.issparse(rows.X)
    problem = subspace_problem(
        kernel_columns(rows, 2),
        np.sign(rng.standard_normal((150, 1))),
        np.ones(150),
        SquaredHinge(),
    )
    vectors = np.asarray(X[:2].toarray() + 0.1 * rng.standard_normal((2, 400)))

    def value(B):
        problem.columns.replace(B)
        return solve(problem, None, 1e-15, 60)

    at = value(vectors)
    exact = gradient(problem, vectors, at.coef, at.trail)
    for j, k in [(0, int(X[0].indices[0])), (1, 7)]:
        above, below = vectors.copy(), vectors.copy()
        above[j, k] += 1e-5
        below[j, k] -= 1e-5
        difference = float((value(above).objective - value(below).objective).sum()) / 2e-5
        assert difference == pytest.approx(exact[j, k], rel=1e-3, abs=1e-4 * np.abs(exact).max())


@pytest.mark.parametrize("kernel", KERNELS[:2], ids=str)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_objective_falls_and_is_reported_truly(kernel, dtype):
    problem, vectors = make(kernel, SquaredHinge(), n=400, m=5, dtype=dtype)
    problem.columns.replace(vectors)
    before = float(solve(problem, None, 1e-10, 60).objective.sum())
    moved = refine(problem, vectors, max_iter=40)
    after = float(moved.state.objective.sum())
    assert after < 0.98 * before
    np.testing.assert_array_equal(problem.columns.vectors, moved.vectors)
    assert float(solve(problem, None, 1e-10, 60).objective.sum()) == pytest.approx(after, rel=1e-4)


def test_time_limit_and_interrupt_leave_a_machine():
    problem, vectors = make(RBF(0.5), SquaredHinge(), n=400, m=5)
    moved = refine(problem, vectors, limits=Limits(max_time=1e-9))
    assert moved.reason == "max_time"
    assert np.isfinite(moved.state.objective).all()
    stopped = Limits()
    stopped.interrupted = True
    assert refine(problem, vectors, limits=stopped).reason == "interrupted"


def test_the_best_on_held_out_rows_is_kept():
    problem, vectors = make(RBF(0.5), SquaredHinge(), n=400, m=5)
    seen = []

    def score(B, solution):
        seen.append(B.copy())
        return 1.0 if len(seen) == 2 else 0.0

    moved = refine(problem, vectors, score=score, max_iter=100)
    np.testing.assert_array_equal(moved.vectors, seen[1])
    assert len(seen) <= 2 + 10
