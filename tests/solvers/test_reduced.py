"""The reduced model: its solvers against a general minimiser, closed forms, one another, and
their own gaps.
"""

import numpy as np
import pytest
from scipy.optimize import minimize, minimize_scalar

from slimsvm.frames import Frame, in_memory
from slimsvm.kernels import RBF, Laplacian, Polynomial, Sigmoid
from slimsvm.losses import LeastSquares, SmoothHinge, SquaredHinge
from slimsvm.problems.reduced import Reduced, SignedFeatures
from slimsvm.run import SUBSPACE, run
from slimsvm.solvers.chunking import Chunking
from slimsvm.solvers.lagrangian import AcceleratedLagrangian, Lagrangian
from slimsvm.solvers.least_squares import LeastSquaresSystem
from slimsvm.solvers.smooth_newton import SmoothNewton
from slimsvm.tiles import prepare

KERNELS = [RBF(0.5), Laplacian(0.3), Polynomial(0.2, 2, 1.0), Sigmoid(0.1, 0.2)]


def features_of(rows, sign, basis, max_memory=None, n_threads=1, many=False):
    """The features of prepared rows with these labels."""
    labelled = in_memory(rows, sign, n_threads=n_threads)
    return SignedFeatures(labelled, Frame.like(rows), basis, max_memory, many)


def make(
    loss,
    n=150,
    m=12,
    kernel=None,
    C=1.0,
    weight=None,
    dtype=np.float64,
    threads=1,
    max_memory=None,
    seed=0,
):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 3))
    sign = np.where(X[:, 0] * X[:, 1] + 0.5 * rng.standard_normal(n) > 0, 1.0, -1.0)
    rows = prepare(kernel or RBF(0.5), X, dtype=dtype)
    V = features_of(rows, sign, np.sort(rng.permutation(n)[:m]), max_memory, threads)
    return Reduced(V, C * (np.ones(n) if weight is None else weight), loss)


def naive(problem):
    """V and F, from the kernel itself."""
    features = problem.features
    frame, sign = features.signed.frame, features.rows.y
    rows = frame.prepared(features.rows.block).operand
    K = frame.kernel(
        np.asarray(rows.X, np.float64), np.asarray(features.signed.basis.X, np.float64)
    )
    V = sign[:, None] * np.hstack([K, np.ones((features.n, 1))])
    return V, lambda u: 0.5 * u @ u + problem.weight @ problem.loss.value(1.0, V @ u)


def by_bfgs(problem):
    V, value = naive(problem)
    slope = lambda u: u + V.T @ (problem.weight * problem.loss.gradient(1.0, V @ u))  # noqa: E731
    return minimize(
        value,
        np.zeros(V.shape[1]),
        jac=slope,
        method="BFGS",
        options={"gtol": 1e-9, "maxiter": 20000},
    ).fun


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name)
def test_features_are_labels_times_kernel_values_and_one(kernel):
    problem = make(SquaredHinge(), kernel=kernel)
    V, _ = naive(problem)
    u = np.random.default_rng(1).standard_normal(V.shape[1])
    np.testing.assert_allclose(problem.features.margins(u), V @ u, atol=1e-11)
    np.testing.assert_allclose(problem.features.project(V @ u), V.T @ (V @ u), rtol=1e-11)
    D = np.random.default_rng(0).random(V.shape[0])
    D[::3] = 0.0
    np.testing.assert_allclose(
        np.tril(problem.features.gram(D)),
        np.tril(np.eye(V.shape[1]) + V.T @ (D[:, None] * V)),
        atol=1e-9,
    )


@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name)
def test_three_solvers_find_the_minimum_of_one_problem(kernel, C):
    rng = np.random.default_rng(5)
    weight = rng.random(150) + 0.5
    problem = make(SquaredHinge(), kernel=kernel, C=C, weight=weight)
    best = by_bfgs(problem)
    results = {
        "newton": run(SmoothNewton(), problem, tol=1e-8, max_iter=100),
        "smooth": run(
            SmoothNewton(),
            make(SmoothHinge(beta=1e7), kernel=kernel, C=C, weight=weight),
            tol=1e-8,
            max_iter=200,
        ),
        "decomposition": run(Chunking(), problem, tol=1e-8, max_iter=100),
        "lagrangian": run(Lagrangian(), problem, tol=1e-8, max_iter=300000)
        if C < 100
        else None,  # it would not end
        "accelerated": run(AcceleratedLagrangian(), problem, tol=1e-8, max_iter=300000),
    }
    _, value = naive(problem)
    for name, result in results.items():
        if result is None:
            continue
        assert result.certificate.holds and result.certificate.scope == SUBSPACE, name
        assert value(result.model.u) == pytest.approx(best, rel=1e-6), name
        assert result.certificate.objective == pytest.approx(best, rel=1e-6), name


@pytest.mark.parametrize("beta", [0.5, 5.0, 100.0])
def test_smooth_newton_against_a_general_minimiser(beta):
    problem = make(SmoothHinge(beta), C=10.0)
    result = run(SmoothNewton(), problem, tol=1e-12, max_iter=100)
    assert result.certificate.objective == pytest.approx(by_bfgs(problem), rel=1e-9)
    assert result.certificate.holds and result.n_iter < 30


def test_the_smooth_problem_tends_to_the_squared_hinge():
    exact = run(SmoothNewton(), make(SquaredHinge()), tol=1e-14, max_iter=100).certificate.objective
    away = [
        run(SmoothNewton(), make(SmoothHinge(beta)), tol=1e-14, max_iter=100).certificate.objective
        - exact
        for beta in (1, 10, 100)
    ]
    assert np.all(np.diff(away) < 0) and 0 < away[-1] < 1e-3 * exact


def test_smooth_newton_begins_with_less_of_a_large_C():
    """Where rows come and go along every direction, even exact steps with all of C are short and
    many; the minimum is the same.
    """
    X = np.random.default_rng(0).standard_normal((1500, 4)) * [1.0, 0.3, 0.1, 0.05] / 3
    V = features_of(
        prepare(RBF(16.0), X, dtype=np.float64),
        np.where(np.abs(X[:, 0]) > 0.43, 1.0, -1.0),
        np.arange(0, 1500, 10),
        many=True,
    )
    problem, solver = Reduced(V, np.full(1500, 4096.0), SmoothHinge(1e4)), SmoothNewton()
    ends, shares = [], []
    for whole in (False, True):
        state = solver.init(problem)
        state.eased = whole  # as if it had been done
        while not state.done:
            solver.step(problem, state, 1e-6, 200)
            shares += [] if whole else [state.share]
        assert state.relative_gap <= 1e-6 and state.share == 1.0
        ends.append(state)
    lowest = int(np.argmin(shares))
    assert shares[lowest] < 1.0 and np.all(np.diff(shares[lowest:]) >= 0)
    assert (
        ends[0].objective == pytest.approx(ends[1].objective, rel=1e-6)
        and ends[0].n_iter < 0.7 * ends[1].n_iter
    )


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name)
def test_least_squares_is_one_linear_system(kernel):
    weight = np.random.default_rng(0).random(150)
    problem = make(LeastSquares(), kernel=kernel, C=3.0, weight=weight)
    result = run(LeastSquaresSystem(), problem, tol=1e-20, max_iter=10)
    V, _ = naive(problem)
    D = 2 * problem.weight
    expected = np.linalg.solve(V.T @ (D[:, None] * V) + np.eye(V.shape[1]), V.T @ D)
    np.testing.assert_allclose(result.model.u, expected, rtol=1e-7, atol=1e-9)
    assert result.n_iter == 1 and result.certificate.violation < 1e-15


@pytest.mark.parametrize("C", [1e-3, 0.1, 10.0, 1e5])
def test_least_squares_of_float32_rows_is_corrected(C):
    """Products in float32, where C is small enough for them, end where those in float64 end."""
    problem = make(LeastSquares(), n=4000, m=80, C=C, dtype=np.float32)
    V = problem.features.V
    D = 2 * problem.weight
    expected = np.linalg.solve(V.T @ (D[:, None] * V) + np.eye(81), V.T @ D)
    result = run(LeastSquaresSystem(), problem, tol=1e-3, max_iter=10)
    assert result.certificate.violation <= 1e-10
    np.testing.assert_allclose(
        result.model.u, expected, rtol=1e-3, atol=1e-5 * np.abs(expected).max()
    )
    single, double = problem.features.gram(D, True), problem.features.gram(D)
    assert 0 < np.abs(single - double).max() <= 1e-4 * np.abs(double).max()


@pytest.mark.parametrize("loss", [SmoothHinge(), SquaredHinge()], ids=lambda loss: loss.name)
def test_the_gap_bounds_the_distance_to_the_minimum_at_every_step(loss):
    problem = make(loss, C=10.0)
    best = run(SmoothNewton(), problem, tol=1e-15, max_iter=100).certificate.objective
    solver = SmoothNewton()
    state, last = solver.init(problem), np.inf
    for _ in range(8):
        solver.step(problem, state, 1e-15, 100)
        assert state.objective - best <= state.gap + 1e-10 * best
        assert state.objective <= last * (1 + 1e-12)
        last = state.objective


def test_the_lagrangian_gap_bounds_too():
    problem = make(SquaredHinge(), C=3.0)
    best = run(SmoothNewton(), problem, tol=1e-15, max_iter=100).certificate.objective
    for solver, value in ((Lagrangian(), "primal"), (AcceleratedLagrangian(), "objective")):
        state = solver.init(problem)
        for _ in range(60):
            solver.step(problem, state, 1e-15, state.n_iter + 1)
            assert state.dual <= best * (1 + 1e-12) <= getattr(state, value) * (1 + 2e-12)


def test_the_lagrangian_iteration_is_that_of_the_paper():
    """With the dense H, and the iteration written out."""
    problem = make(SquaredHinge(), n=40, m=6, C=2.0)
    V, _ = naive(problem)
    H = V @ V.T + np.diag(0.5 / problem.weight)
    a, beta = np.linalg.solve(H, np.ones(40)), 0.5 / 2.0
    solver = Lagrangian(share=beta * 2.0)
    state = solver.init(problem)
    for k in range(25):
        solver.step(problem, state, 1e-15, k + 1)
        expected = np.linalg.solve(H, 1 + np.maximum(0, H @ a - 1 - beta * a))
        np.testing.assert_allclose(1 + state.z, H @ expected, atol=1e-8)
        a = expected


def test_the_first_accelerated_move_is_a_longer_step_of_the_papers():
    """In the metric I + V'DV; and as far along it as the value falls, by a search of its own."""
    problem = make(SquaredHinge(), n=40, m=6, C=50.0)
    V, value = naive(problem)
    solver = AcceleratedLagrangian()
    state = solver.init(problem)
    M = np.eye(7) + V.T @ (2 * problem.weight[:, None] * V)
    u = np.linalg.solve(M, V.T @ (2 * problem.weight))
    np.testing.assert_allclose(state.u, u, atol=1e-9)  # where the paper begins
    z = np.maximum(0, V @ u - 1)
    papers = np.linalg.solve(M, V.T @ (2 * problem.weight * (1 + z))) - u
    best = minimize_scalar(lambda t: value(u + t * papers), bracket=(0.0, 1.0), tol=1e-12).x
    solver.step(problem, state, 1e-15, 1)
    np.testing.assert_allclose(state.u, u + best * papers, atol=1e-6)


def test_the_corrected_metric_is_that_of_dense_bfgs():
    """The two loops against the update of the inverse matrix, for fewer moves than are kept."""
    problem = make(SquaredHinge(), n=60, m=8, C=100.0)
    V, _ = naive(problem)
    solver = AcceleratedLagrangian()
    state = solver.init(problem)
    B = np.linalg.inv(np.eye(9) + V.T @ (2 * problem.weight[:, None] * V))
    for k in range(12):
        u, gradient = state.u, state.gradient
        solver.step(problem, state, 1e-15, k + 1)
        s, y = state.u - u, state.gradient - gradient
        direction = -B @ gradient
        np.testing.assert_allclose(
            s / np.linalg.norm(s), direction / np.linalg.norm(direction), atol=1e-5
        )
        left = np.eye(9) - np.outer(s, y) / (s @ y)
        B = left @ B @ left.T + np.outer(s, s) / (s @ y)


def test_the_corrected_metric_brings_a_large_C_to_its_end():
    problem = make(SquaredHinge(), n=400, C=1e4)
    quick, slow = (
        run(solver, problem, tol=1e-3, max_iter=2000)
        for solver in (AcceleratedLagrangian(), Lagrangian())
    )
    assert quick.certificate.holds and quick.n_iter < 500
    assert not slow.certificate.holds or slow.n_iter > 3 * quick.n_iter


def test_features_for_many_passes_are_the_same_numbers():
    rng = np.random.default_rng(0)
    X, sign = rng.standard_normal((3000, 4)), np.where(rng.random(3000) < 0.5, 1.0, -1.0)
    rows = prepare(RBF(0.5), X, dtype=np.float32)
    once, often, tight = (
        features_of(rows, sign, np.arange(0, 3000, 60), memory, many=many)
        for memory, many in ((None, False), (None, True), (0.6, True))
    )
    assert (once.megabytes, often.megabytes, tight.megabytes) == (
        3000 * 51 * 4 / 2**20,
        3000 * 51 * 8 / 2**20,
        3000 * 51 * 4 / 2**20,
    )
    u = rng.standard_normal(51)
    assert np.array_equal(once.margins(u), often.margins(u)) and np.array_equal(
        once.margins(u), tight.margins(u)
    )


@pytest.mark.parametrize("max_memory", [None, 0.01])
@pytest.mark.parametrize("n_felt", [0, 1, 60, 149, 151, 400])
def test_a_system_in_few_rows_is_that_in_all_columns(n_felt, max_memory):
    """Either form of the inverse, against the dense one."""
    problem = make(SquaredHinge(), n=2000, m=300, max_memory=max_memory)
    V, _ = naive(problem)
    rng = np.random.default_rng(2)
    D, x = np.zeros(2000), rng.standard_normal(301)
    D[rng.permutation(2000)[:n_felt]] = 100.0 * rng.random(n_felt)
    expected = np.linalg.solve(np.eye(301) + V.T @ (D[:, None] * V), x)
    np.testing.assert_allclose(problem.features.inverse(D)(x), expected, atol=1e-8)


def test_rows_that_hardly_count_are_left_out_and_change_nothing():
    problem = make(SmoothHinge(beta=50.0), n=3000, m=30, C=100.0)
    result = run(SmoothNewton(), problem, tol=1e-13, max_iter=100)
    assert result.certificate.holds and result.certificate.objective == pytest.approx(
        by_bfgs(problem), rel=1e-8
    )
    state = SmoothNewton().init(problem, result.model.u)
    D = problem.curvatures(state.margins)
    state.gradient = state.gradient + 1e6  # as if far from the end
    counting = SmoothNewton._counting(problem, state, state.relative_gap)
    V, _ = naive(problem)
    out = counting == 0
    assert 100 < out.sum() < 2900 and np.array_equal(counting[~out], D[~out])
    assert np.linalg.norm(V[out].T @ (D[out, None] * V[out]), 2) <= 0.1


@pytest.mark.parametrize("C", [1.0, 1e4])
def test_working_sets_grow_until_they_hold_all_support_vectors(C):
    problem = make(SquaredHinge(), n=6000, m=20, C=C)
    best = run(SmoothNewton(), problem, tol=1e-14, max_iter=100)
    solver = Chunking(seed=1)
    state, sizes = solver.init(problem), []
    while not state.done:
        before = (state.dual, state.primal)
        solver.step(problem, state, 1e-9, state.n_iter + 1)
        sizes.append(int(state.inside.sum()))
        assert state.dual >= before[0] and state.primal <= before[1], "the best of both are kept"
        assert state.dual <= best.certificate.objective * (
            1 + 1e-9
        ) and state.primal >= best.certificate.objective * (1 - 1e-9)
    assert (
        sizes[0] <= 1000
        and np.all(np.diff(sizes) >= 0)
        and np.all(np.array(sizes[1:]) <= 2 * np.array(sizes[:-1]))
    )
    assert (
        np.all(state.inside[problem.features.margins(best.model.u) < 1 - 1e-6]) and sizes[-1] < 6000
    )
    np.testing.assert_allclose(state.u, best.model.u, atol=1e-3 * np.abs(best.model.u).max())


def test_working_sets_are_counted_and_limited():
    problem = make(SquaredHinge(), n=6000, m=20, C=1e4)
    result = run(Chunking(), problem, tol=1e-12, max_iter=1)
    assert (
        result.n_iter == 1 and result.status.reason == "max_iter" and not result.certificate.holds
    )
    assert np.isfinite(result.model.u).all() and result.history["active"][-1] <= 1000


@pytest.mark.parametrize(
    "solver", [Lagrangian(), AcceleratedLagrangian()], ids=lambda solver: type(solver).__name__
)
def test_the_lagrangian_says_when_it_has_not_converged(solver):
    result = run(solver, make(SquaredHinge(), C=1e5), tol=1e-8, max_iter=4)
    assert (
        result.n_iter == 4 and result.status.reason == "max_iter" and not result.certificate.holds
    )
    assert np.isfinite(result.model.u).all() and result.certificate.violation > 1e-8


@pytest.mark.parametrize("share", [0.0, 1.0, 1.5, -0.2, np.nan])
def test_a_step_with_which_it_may_diverge_is_refused(share):
    with pytest.raises(ValueError, match="between 0 and 1"):
        Lagrangian(share=share)


@pytest.mark.parametrize(
    "solver",
    [SmoothNewton(), LeastSquaresSystem(), Lagrangian(), AcceleratedLagrangian(), Chunking()],
    ids=lambda solver: type(solver).__name__,
)
def test_a_weight_of_two_is_a_row_twice(solver):
    loss = {"SmoothNewton": SmoothHinge(), "LeastSquaresSystem": LeastSquares()}.get(
        type(solver).__name__, SquaredHinge()
    )
    one = make(loss, n=80)
    labelled = one.features.rows
    rows, sign = one.features.signed.frame.prepared(labelled.block).operand, labelled.y
    basis = np.arange(0, 80, 7)
    weighted = Reduced(features_of(rows, sign, basis), 1.0 + (np.arange(80) % 2), loss)
    twice = np.concatenate([np.arange(80), np.arange(1, 80, 2)])
    repeated = Reduced(features_of(rows.take(twice), sign[twice], basis), np.ones(120), loss)
    a, b = (run(solver, problem, tol=1e-12, max_iter=100) for problem in (weighted, repeated))
    np.testing.assert_allclose(
        a.model.u, b.model.u, atol=1e-9
    )  # also of an iteration that has not converged yet: every step is the same
    assert a.n_iter == b.n_iter


@pytest.mark.parametrize(
    "solver",
    [SmoothNewton(), Lagrangian(), AcceleratedLagrangian(), Chunking()],
    ids=lambda solver: type(solver).__name__,
)
def test_same_bits_for_any_number_of_threads(solver):
    one, two = (
        run(solver, make(SquaredHinge(), n=9000, m=60, threads=t), tol=1e-6, max_iter=20).model.u
        for t in (1, 2)
    )
    assert np.array_equal(one, two)


def test_float32_values_and_blocks_made_anew_agree_with_float64():
    exact = run(
        SmoothNewton(), make(SmoothHinge(), n=3000, m=20), tol=1e-10, max_iter=50
    ).certificate
    rounded = run(
        SmoothNewton(), make(SmoothHinge(), n=3000, m=20, dtype=np.float32), tol=1e-10, max_iter=50
    ).certificate
    little = make(SmoothHinge(), n=3000, m=20, dtype=np.float32, max_memory=1e-3)
    anew = run(SmoothNewton(), little, tol=1e-10, max_iter=50).certificate
    assert rounded.precision == "float32" and exact.precision == "float64"
    assert rounded.objective == pytest.approx(exact.objective, rel=1e-5)
    assert anew.objective == pytest.approx(rounded.objective, rel=1e-6)


def test_values_beyond_all_reason():
    """Kernel values of 1e12: the identity drowns in rounding errors, the result is finite and its
    gap says how good it is.
    """
    huge = make(SquaredHinge(), kernel=Polynomial(100.0, 6, 1.0), C=1e6)
    for solver in (SmoothNewton(), Lagrangian(), AcceleratedLagrangian(), Chunking()):
        result = run(solver, huge, tol=1e-6, max_iter=30)
        assert np.isfinite(result.model.u).all() and np.isfinite(result.certificate.objective)
