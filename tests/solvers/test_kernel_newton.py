"""Newton's method over all rows: the optimum of the whole problem, whatever the loss, and an honest
gap.
"""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize

from slimsvm.frames import Frame, in_memory
from slimsvm.kernels import RBF, Linear, Polynomial, Sigmoid
from slimsvm.losses import LeastSquares, SmoothHinge, SquaredEpsilonInsensitive, SquaredHinge
from slimsvm.run import run
from slimsvm.solvers import kernel_newton
from slimsvm.solvers.kernel_newton import AllRows, KernelNewton
from slimsvm.tiles import prepare
from tests.pairs import every_pair

LOSSES = [SquaredHinge(), SmoothHinge(), SmoothHinge(beta=50.0), LeastSquares()]
KERNEL = RBF(0.4)
RULES = [
    SquaredHinge(),
    SmoothHinge(),
]  # rows that are felt or not; a slope and curvature everywhere
every_loss = pytest.mark.parametrize("loss", LOSSES, ids=repr)
every_rule = pytest.mark.parametrize("loss", RULES, ids=lambda loss: loss.name)
either_way = pytest.mark.parametrize("fit_intercept", [True, False])


@pytest.fixture
def few_first(monkeypatch):
    """Doubling begins with a fifth of the rows that it usually begins with."""
    monkeypatch.setattr(kernel_newton, "FIRST", 200)


def rows(n=120, n_columns=1, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 3)) + 1.0
    y = np.where(
        np.sin(2 * X[:, :n_columns]) + 0.5 * rng.standard_normal((n, n_columns)) > 0.2, 1.0, -1.0
    )
    return X, y, rng.uniform(0.2, 3.0, n)


def problem_of(
    X, y, weight, loss, kernel=KERNEL, fit_intercept=True, dtype=np.float64, n_threads=1, **options
):
    rows = prepare(kernel, X, dtype=dtype)
    return AllRows(
        in_memory(rows, n_threads=n_threads),
        Frame.like(rows),
        y,
        weight,
        loss,
        fit_intercept,
        **options,
    )


def solved(problem, tol=1e-14, **options):
    return run(KernelNewton(**options), problem, tol=tol, max_iter=200)


def value(K, y, weight, loss, coef, b):
    """The objective, by its definition."""
    f = K @ coef + b
    return 0.5 * np.einsum("ic,ij,jc->", coef, K, coef) + float(
        (weight[:, None] * loss.value(y, f)).sum()
    )


@every_pair(loss=LOSSES, fit_intercept=[True, False], n_columns=[1, 3], C=[1e-3, 1.0, 1e4])
def test_stationary_point(loss, fit_intercept, n_columns, C):
    X, y, weight = rows(n_columns=n_columns)
    weight = C * weight
    result = solved(problem_of(X, y, weight, loss, fit_intercept=fit_intercept))
    coef, b = result.model.coef, result.model.intercept
    K = RBF(0.4)(X)
    f = K @ coef + b
    np.testing.assert_allclose(result.model.scores, f, atol=1e-8 * max(1.0, np.abs(f).max()))
    G = weight[:, None] * loss.gradient(y, f)
    np.testing.assert_allclose(coef, -G, atol=1e-6 * np.abs(G).max())
    if fit_intercept:
        assert np.abs(G.sum(axis=0)).max() <= 1e-6 * np.abs(G).sum()
    else:
        assert not b.any()
    certificate = result.certificate
    assert certificate.scope == "full"
    assert certificate.objective == pytest.approx(value(K, y, weight, loss, coef, b), rel=1e-9)
    assert certificate.violation <= 1e-9


@every_loss
@either_way
def test_against_scipy(loss, fit_intercept):
    X, y, weight = rows(40)
    K = RBF(0.4)(X)

    def objective(point):
        coef, b = point[:-1], point[-1] if fit_intercept else 0.0
        f = K @ coef + b
        G = weight * loss.gradient(y[:, 0], f)
        return 0.5 * coef @ K @ coef + weight @ loss.value(y[:, 0], f), np.append(
            K @ (coef + G), G.sum() if fit_intercept else 0.0
        )

    least = minimize(
        objective, np.zeros(41), jac=True, method="BFGS", options={"maxiter": 5000, "gtol": 1e-9}
    ).fun
    assert solved(
        problem_of(X, y, weight, loss, fit_intercept=fit_intercept)
    ).certificate.objective == pytest.approx(least, rel=1e-8)


@either_way
def test_least_squares_has_a_closed_form(fit_intercept):
    X, y, weight = rows()
    result = solved(problem_of(X, y, weight, LeastSquares(), fit_intercept=fit_intercept))
    n, b = len(X), int(fit_intercept)
    system = np.zeros((n + b, n + b))
    system[:n, :n] = RBF(0.4)(X) + np.diag(0.5 / weight)
    if b:
        system[n, :n] = system[:n, n] = 1.0
    expected = np.linalg.solve(system, np.append(y[:, 0], [0.0] * b))
    np.testing.assert_allclose(result.model.coef[:, 0], expected[:n], atol=1e-8)
    assert result.n_iter <= 2
    if b:
        assert result.model.intercept[0] == pytest.approx(expected[n], abs=1e-8)


def test_regression():
    X, _, weight = rows()
    y = np.sin(2 * X[:, :1])
    loss = SquaredEpsilonInsensitive(epsilon=0.1)
    result = solved(problem_of(X, y, 10 * weight, loss))
    G = 10 * weight[:, None] * loss.gradient(y, result.model.scores)
    np.testing.assert_allclose(result.model.coef, -G, atol=1e-6)
    assert 0 < np.count_nonzero(result.model.coef) < len(X)


@pytest.mark.parametrize(
    "loss",
    [SquaredEpsilonInsensitive(epsilon=0.1), SquaredHinge(), SmoothHinge()],
    ids=lambda loss: loss.name,
)
def test_rounding_errors_lead_nowhere(loss):
    """A tolerance that no arithmetic reaches: it ends where it was."""
    for seed in range(5):
        X, y, weight = rows(30, seed=seed)
        problem = problem_of(X, y, weight, loss)
        near, far = solved(problem, 1e-9).certificate, solved(problem, 1e-300).certificate
        assert far.objective == pytest.approx(near.objective, rel=1e-8)
        assert far.violation < 1e-12


@pytest.mark.parametrize(
    "loss", [SquaredHinge(), SmoothHinge(), LeastSquares()], ids=lambda loss: loss.name
)
@either_way
def test_the_best_function_is_there_at_the_start(loss, fit_intercept):
    """Equal rows, as many of either label: zero is best, and the multipliers say so."""
    y = np.tile([[1.0], [-1.0]], (20, 1))
    result = solved(problem_of(np.ones((40, 2)), y, np.ones(40), loss, fit_intercept=fit_intercept))
    assert result.status.converged and result.certificate.violation < 1e-12
    np.testing.assert_allclose(result.model.scores, 0.0, atol=1e-12)
    np.testing.assert_allclose(result.model.coef, -loss.gradient(y, np.zeros((40, 1))), atol=1e-9)


@pytest.mark.parametrize("kernel", [Linear(), Polynomial(0.3, 3, 1.0)], ids=["linear", "poly"])
@either_way
def test_kernels_of_low_rank(kernel, fit_intercept):
    X, y, weight = rows()
    X[:5] = 0.0  # rows without a norm still move the intercept
    result = solved(problem_of(X, y, weight, SquaredHinge(), kernel, fit_intercept))
    assert result.certificate.violation < 1e-9
    K = kernel(X)
    f = K @ result.model.coef + result.model.intercept
    np.testing.assert_allclose(
        K @ (result.model.coef + weight[:, None] * SquaredHinge().gradient(y, f)), 0.0, atol=1e-6
    )


def test_rows_that_are_not_felt_have_no_coefficient():
    X, y, weight = rows(400)
    y = np.where(X[:, :1] > 1.0, 1.0, -1.0)
    result = solved(problem_of(X, y, 10 * weight, SquaredHinge()))
    felt = result.model.coef[:, 0] != 0
    assert felt.mean() < 0.7
    np.testing.assert_array_equal(felt, y[:, 0] * result.model.scores[:, 0] < 1)


@every_pair(loss=LOSSES, fit_intercept=[True, False], steps=[1, 2, 3])
def test_the_gap_is_a_bound_wherever_it_stops(loss, fit_intercept, steps):
    X, y, weight = rows(n_columns=2)
    problem = problem_of(X, y, 30 * weight, loss, fit_intercept=fit_intercept)
    least = solved(problem).certificate.objective
    early = run(KernelNewton(), problem, tol=1e-14, max_iter=steps).certificate
    assert early.gap >= early.objective - least - 1e-9 * least
    assert early.gap <= 1e6 * early.objective


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@every_rule
def test_doubling_ends_where_all_rows_at_once_end(dtype, loss, few_first):
    X, y, weight = rows(500, n_columns=2)
    problem = problem_of(X, y, weight, loss, dtype=dtype)
    tol = 1e-6 if dtype == np.float32 else 1e-9
    doubled, whole = solved(problem, tol), solved(problem, tol, doubling=False)
    assert KernelNewton().init(problem).size == 200
    assert doubled.history["active"][-1] == 500
    assert doubled.certificate.holds and whole.certificate.holds
    assert doubled.certificate.objective == pytest.approx(whole.certificate.objective, rel=3 * tol)
    np.testing.assert_allclose(
        doubled.model.scores, whole.model.scores, atol=2e-2 if dtype == np.float32 else 1e-3
    )
    K = RBF(0.4)(X)
    np.testing.assert_allclose(
        doubled.model.scores, K @ doubled.model.coef + doubled.model.intercept, atol=1e-3
    )
    assert doubled.certificate.objective == pytest.approx(
        value(K, y, weight, loss, doubled.model.coef, doubled.model.intercept), rel=1e-5
    )


def test_a_stop_among_the_first_rows_is_seen_from_all_of_them(few_first):
    X, y, weight = rows(600)
    problem = problem_of(X, y, 10 * weight, SquaredHinge())
    least = solved(problem, 1e-9).certificate.objective
    early = run(KernelNewton(), problem, tol=1e-9, max_iter=1)
    K = RBF(0.4)(X)
    assert early.certificate.objective == pytest.approx(
        value(K, y, 10 * weight, SquaredHinge(), early.model.coef, early.model.intercept), rel=1e-6
    )
    assert early.certificate.gap >= early.certificate.objective - least
    assert not early.status.converged


@every_rule
def test_same_bits_for_any_number_of_threads(loss, few_first):
    X, y, weight = rows(1300, n_columns=2)
    first, *others = (
        solved(problem_of(X, y, weight, loss, dtype=None, n_threads=threads), 1e-4).model
        for threads in (1, 2, 3)
    )
    for other in others:
        assert np.array_equal(first.coef, other.coef)
        assert np.array_equal(first.intercept, other.intercept)


def test_dense_and_sparse_rows_agree():
    X, y, weight = rows(300)
    X[np.random.default_rng(0).random(X.shape) < 0.4] = 0.0
    X = np.hstack([X, np.zeros((300, 200))])
    dense, sparse = (
        solved(problem_of(given, y, weight, SquaredHinge())).model
        for given in (X, sp.csr_matrix(X))
    )
    np.testing.assert_allclose(dense.scores, sparse.scores, atol=1e-8)


def test_float32_at_a_large_weight_of_the_errors():
    """Rounding of the values hides 1 / (2 C): the problem says so beforehand, and a step still goes
    down.
    """
    X, y, _ = rows(1200)
    exact, rough = (
        problem_of(X, y, np.full(1200, 1e6), SquaredHinge(), RBF(0.05), dtype=dtype)
        for dtype in (np.float64, np.float32)
    )
    assert exact.rounding_error() == 0.0
    least, found = (
        run(KernelNewton(), problem, tol=1e-4, max_iter=30).certificate.objective
        for problem in (exact, rough)
    )
    assert least <= found <= (1 + rough.rounding_error()) * least
    assert rough.rounding_error() > 0.1
    assert (
        problem_of(
            X, y, np.ones(1200), SquaredHinge(), RBF(0.05), dtype=np.float32
        ).rounding_error()
        < 1e-4
    )


def test_start_from_a_solution():
    X, y, weight = rows()
    problem = problem_of(X, y, weight, SquaredHinge())
    first = solved(problem)
    again = run(KernelNewton(), problem, tol=1e-6, start=(first.model.coef, first.model.intercept))
    assert again.n_iter == 1
    assert again.certificate.objective == pytest.approx(first.certificate.objective, rel=1e-9)


def test_what_is_refused():
    X, y, weight = rows(500)
    with pytest.raises(ValueError, match=r"max_memory allows 1 MB.*SVC"):
        solved(problem_of(X, y, weight, SquaredHinge(), max_memory=1.0))
    with pytest.raises(ValueError, match="kernel is not positive"):
        solved(problem_of(X, y, 1e6 * weight, SquaredHinge(), Sigmoid(2.0, -3.0)))
