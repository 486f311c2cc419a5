"""Structured outputs in every space of the cutting-plane driver: against a general solver with all
constraints, and against each other.
"""

import numpy as np
import pytest
from scipy.optimize import minimize

from slimsvm.basis import Pursuit
from slimsvm.frames import Frame, in_memory
from slimsvm.kernels import RBF
from slimsvm.oracles import Binary, Chain, Multiclass, Multivariate
from slimsvm.rows import MemoryRows
from slimsvm.run import SAMPLED, run
from slimsvm.solvers import sampled_space
from slimsvm.solvers.cutting_plane import CuttingPlane, OneSlack
from slimsvm.solvers.joint import JointRisk, JointSpace, least_on_line
from slimsvm.solvers.sampled_cuts import CONSTANT, LINEAR, Draw, SampledCuts, parts_of, risk_bound
from slimsvm.solvers.sampled_space import SampledSpace
from slimsvm.solvers.spaces import ExplicitSpace, KernelSpace, SubspaceSpace
from slimsvm.tiles import prepare
from tests.in_memory import kernel_columns
from tests.reference.outputs import outputs

KERNEL = RBF(0.3)


def prepared(X, n_threads=1):
    """Rows in memory, and how they are prepared."""
    rows = prepare(KERNEL, X, dtype=np.float64)
    return in_memory(rows, n_threads=n_threads), Frame.like(rows)


def problem_data(oracle, n=6, seed=0):
    """Rows, true outputs and weights of a tiny problem."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 2))
    if isinstance(oracle, Chain):
        lengths = np.array([2, 1, n - 3])
        Y = np.split(rng.integers(0, 2, n), np.cumsum(lengths)[:-1])
        Y[0][:] = 0, 1
        true = oracle.encode(Y, n, lengths)
    else:
        y = np.arange(n) % (3 if isinstance(oracle, Multiclass) else 2)
        true = oracle.encode(y, n)
    weight = rng.uniform(0.5, 3.0, true.offsets.size - 1)
    return X, true, weight


def by_enumeration(oracle, Z, true, weight, scaling=0.0):
    """The optimum of the problem with a slack for each example and a constraint for every output,
    by a general solver; Z Z' is the kernel.
    """
    width, n_linear, d = oracle.n_columns, oracle.n_linear, Z.shape[1]
    rows, losses, owner = [], [], []
    for i, (a, b) in enumerate(zip(true.offsets[:-1], true.offsets[1:], strict=True)):
        for loss, change, phi in outputs(oracle, true.labels[a:b].tolist()):
            bias = scaling * change.sum(axis=0) if scaling else np.empty(0)
            rows.append(np.concatenate([(Z[a:b].T @ change).ravel(), bias, phi]))
            losses.append(loss)
            owner.append(i)
    different = np.unique(
        np.column_stack([rows, losses, owner]).round(12), axis=0
    )  # many rankings have the same score
    A, losses, owner = different[:, :-2], different[:, -2], different[:, -1].astype(int)
    size, m = d * width + (width if scaling else 0) + n_linear, weight.size

    def value(x):
        return 0.5 * x[:size] @ x[:size] + weight @ x[size:]

    def slope(x):
        return np.concatenate([x[:size], weight])

    slack = np.zeros((owner.size, m))
    slack[np.arange(owner.size), owner] = 1.0
    whole = np.hstack([-A, slack])
    start = np.zeros(size + m)
    start[size:] = losses.max()
    # ftol: where it is finer SLSQP gives up at rounding errors ("positive directional derivative")
    # though it is at the optimum
    found = minimize(
        value,
        start,
        jac=slope,
        constraints=[{"type": "ineq", "fun": lambda x: whole @ x - losses, "jac": lambda _: whole}],
        method="SLSQP",
        options={"maxiter": 1000, "ftol": 1e-11},
    )
    assert found.success, found.message
    return found.fun


ORACLES = [
    Binary(),
    Multiclass(),
    Multiclass(cost=[[0, 1, 3], [2, 0, 1], [1, 1, 0]]),
    Chain(),
    Chain(start_end=False),
    Multivariate("f1"),
    Multivariate("roc_auc"),
    Multivariate("average_precision"),
    Multivariate("precision_at_k", k=2),
]
every_oracle = pytest.mark.parametrize("oracle", ORACLES, ids=repr)


def solved(space, risk, tol=1e-9, solver=None, max_iter=3000):
    problem = OneSlack(space, risk, 0.0)
    result = run(solver or CuttingPlane(), problem, tol=tol, max_iter=max_iter)
    assert result.status.converged
    return result


@every_oracle
@pytest.mark.parametrize("scaling", [0.0, 0.7])
def test_every_space_finds_the_optimum_with_all_constraints(oracle, scaling):
    X, true, weight = problem_data(oracle)
    K = KERNEL(X, X)
    risk = JointRisk(oracle, true.labels, true.offsets, weight)
    best = by_enumeration(
        oracle, np.linalg.cholesky(K + 1e-13 * np.eye(len(X))), true, weight, scaling
    )
    columns = kernel_columns(prepare(KERNEL, X, dtype=np.float64), len(X))
    columns.append(columns.operand.X)
    for space in (KernelSpace(K), SubspaceSpace(columns)):
        for line_search in (True, False):
            joint = JointSpace(space, risk.width, risk.n_linear, scaling)
            certificate = solved(
                joint, risk, solver=CuttingPlane(line_search=line_search)
            ).certificate
            assert certificate.objective == pytest.approx(best, rel=1e-6)
    sparse_best = by_enumeration(oracle, X, true, weight, scaling)
    joint = JointSpace(ExplicitSpace(MemoryRows(X)), risk.width, risk.n_linear, scaling)
    assert solved(joint, risk).certificate.objective == pytest.approx(sparse_best, rel=1e-6)


@pytest.mark.parametrize("oracle", [Multiclass(), Chain()], ids=repr)
@pytest.mark.parametrize("sampling", [LINEAR, CONSTANT])
def test_samples_of_all_examples_are_exact(oracle, sampling):
    X, true, weight = problem_data(oracle, 12)
    risk = JointRisk(oracle, true.labels, true.offsets, weight)
    exact = solved(
        JointSpace(KernelSpace(KERNEL(X, X)), risk.width, risk.n_linear, 0.5), risk
    ).certificate.objective
    space = SampledSpace(*prepared(X), risk.width, risk.n_linear, 0.5, sampling == LINEAR)
    result = solved(space, risk, 1e-5, SampledCuts(sampling=sampling, sample_size=100))
    assert (
        exact - 1e-6 * exact <= result.certificate.objective <= exact + 1e-5 * weight.sum() * 1.01
    )
    assert result.certificate.scope == SAMPLED and np.isinf(result.certificate.gap)


@pytest.mark.parametrize("line_search", [True, False])
@pytest.mark.parametrize("max_memory", [None, 1e-3])
def test_the_scores_of_sampled_cuts_are_those_of_the_expansion(line_search, max_memory):
    """Also where the products with all rows do not fit the budget, and slots were used again."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 3))
    y = rng.integers(0, 3, 80)
    oracle = Multiclass()
    true = oracle.encode(y, 80)
    risk = JointRisk(oracle, true.labels, true.offsets, np.full(80, 2.0))
    space = SampledSpace(*prepared(X), 3, 0, 0.5, max_memory=max_memory)
    problem, solver = (
        OneSlack(space, risk, 0.0),
        SampledCuts(sample_size=10, max_idle=2, line_search=line_search),
    )
    state = solver.init(problem)
    for _ in range(90):
        solver.step(problem, state, 1e-6, 1000)
    parts, coef, intercept, _ = space.expansion(state.W[:, 0])
    expected = KERNEL(X, X[parts]) @ coef + intercept
    np.testing.assert_allclose(space.scores(state.W).reshape(80, 3), expected, atol=2e-5)
    norm = (
        np.einsum("il,ij,jl->", coef, KERNEL(X[parts], X[parts]), coef)
        + (intercept**2).sum() / 0.25
    )
    assert space.inner(state.W, state.W)[0] == pytest.approx(norm, rel=1e-5)


def test_the_objective_of_linear_time_is_that_of_its_model():
    rng = np.random.default_rng(1)
    X, y = rng.standard_normal((300, 2)), rng.integers(0, 2, 300)
    oracle = Binary()
    true = oracle.encode(y, 300)
    risk = JointRisk(oracle, true.labels, true.offsets, np.full(300, 0.5))
    space = SampledSpace(*prepared(X), 1, 0)
    solver = SampledCuts(sample_size=40, line_search=False)
    result = solved(space, risk, 1e-2, solver)
    model = result.model
    K = KERNEL(X, X[model.indices])
    value = (
        0.5 * float(model.coef[:, 0] @ K[model.indices] @ model.coef[:, 0])
        + risk.at((K @ model.coef).ravel())[0]
    )
    assert result.certificate.objective == pytest.approx(value, rel=1e-5)
    exact = solved(JointSpace(KernelSpace(KERNEL(X, X)), 1), risk).certificate.objective
    assert exact * (1 - 1e-6) <= value <= exact + result.certificate.risk_bound


def test_a_basis_grows_for_all_labels_at_once():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((150, 3)), rng.integers(0, 3, 150)
    X[:, 0] += y
    oracle = Multiclass()
    true = oracle.encode(y, 150)
    risk = JointRisk(oracle, true.labels, true.offsets, np.ones(150))
    choose, seed = Pursuit(), np.random.default_rng(0)
    columns = kernel_columns(prepare(KERNEL, X, dtype=np.float64), 25)

    def grow(columns, V, B):
        return choose.select(columns, V, B, 1, seed, np.arange(150)).vectors

    grown = solved(JointSpace(SubspaceSpace(columns, grow), 3, 0, 1.0), risk, 1e-8)
    assert columns.m == 25
    again = solved(
        JointSpace(SubspaceSpace(columns), 3, 0, 1.0), risk, 1e-8
    )  # the same basis, from the beginning
    assert grown.certificate.objective == pytest.approx(again.certificate.objective, rel=1e-7)


def test_kept_cuts_come_back():
    oracle = Chain()
    _, true, weight = problem_data(oracle, 9)
    risk = JointRisk(oracle, true.labels, true.offsets, weight)
    rng = np.random.default_rng(0)
    V = risk.at(rng.standard_normal(risk.n))[2]
    kept = risk.packed(V)
    np.testing.assert_array_equal(risk.unpacked(kept, 0, risk.n), V)
    values = rng.standard_normal((2, 9))
    by_label, _ = risk.split(V)
    whole = risk.by_row([kept, kept]).products(0, 9, values).reshape(2, risk.width, 2)
    np.testing.assert_allclose(whole[:, :, 1], values @ by_label)


def test_the_line_search_finds_the_least_value():
    rng = np.random.default_rng(0)
    for _ in range(20):
        kinks, jumps = rng.uniform(-1, 3, 20), rng.uniform(0, 1, 20)
        slope, curvature = -rng.uniform(0, 15), rng.uniform(0, 1)

        def look(t, kinks=kinks, jumps=jumps):
            return t, float(jumps @ np.maximum(0, t - kinks)), float(jumps @ (t > kinks))

        def value(t, look=look, slope=slope, curvature=curvature):
            return look(t)[1] + t * slope + 0.5 * t * t * curvature

        if look(1e9)[2] + slope <= 0 and curvature < 1e-3:
            continue
        grid = np.linspace(0, max(4.0, -slope / curvature), 1001)
        least = min(value(t) for t in grid)
        found = value(least_on_line(look, slope, curvature))
        assert found - least <= 0.2 * (value(0.0) - least) + 1e-9


# -- drawing ---------------------------------------------------------------------------------------


def test_draws_are_in_proportion_to_the_weights():
    rng = np.random.default_rng(0)
    weight = np.array([1.0, 0.5, 3.0, 0.5, 5.0])
    total, among = np.zeros(5), np.array([0, 2, 4])
    draw = Draw(weight)
    for _ in range(4000):
        examples, shares = draw(2, rng, among)
        assert shares.sum() == pytest.approx(9.0)
        total[examples] += shares / 4000
    np.testing.assert_allclose(total, [1.0, 0.0, 3.0, 0.0, 5.0], atol=0.3)
    examples, shares = draw(3, rng, among)
    np.testing.assert_array_equal(examples, among)
    np.testing.assert_array_equal(shares, weight[among])
    even = Draw(np.full(100, 2.0))
    assert even(10, rng)[1].sum() == pytest.approx(200.0)


@pytest.mark.parametrize(
    "weight", [np.ones(300), np.arange(300) % 3 + 0.5], ids=["even", "weighted"]
)
def test_draws_do_not_depend_on_who_else_is_in_the_subset(weight):
    """So that a rounding error, which lets an example in or out, changes no more of the sample."""
    draw, among = Draw(weight), np.arange(0, 300, 2)
    one, _ = draw(40, np.random.default_rng(0), among)
    gone = one[5]
    other, shares = draw(40, np.random.default_rng(0), among[among != gone])
    assert gone not in other and shares.sum() == pytest.approx(weight[among].sum() - weight[gone])
    assert np.setdiff1d(one, other).tolist() == [gone] and np.setdiff1d(other, one).size <= 2


def test_products_of_cuts_are_the_same_in_groups(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((50, 3))
    for values in (1 << 18, 60):
        monkeypatch.setattr(sampled_space, "VALUES_A_TASK", values)
        space = SampledSpace(*prepared(X, 2), 2, 0, keeps=False)
        cuts = [
            (rng.permutation(50)[:size], rng.standard_normal((size, 2)))
            for size in (3, 20, 0, 7, 1)
        ]
        for parts, responses in cuts:
            space.add(parts, responses, np.empty(0), space.at(parts))
        new = np.arange(11)
        found = space.at(new)
        for k, (parts, responses) in enumerate(cuts):
            np.testing.assert_allclose(found[k], KERNEL(X[new], X[parts]) @ responses, atol=1e-12)
            for j, (others, theirs) in enumerate(cuts):
                assert space.G[k, j] == pytest.approx(
                    np.vdot(responses, KERNEL(X[parts], X[others]) @ theirs), abs=1e-10
                )


def test_the_parts_of_examples():
    which, begin = parts_of(np.array([0, 2]), np.array([0, 2, 3, 6]))
    assert which.tolist() == [0, 1, 3, 4, 5]
    assert begin.tolist() == [0, 2, 5]


def test_the_bounds_of_the_paper():
    """Theorems of Yu & Joachims (2008), by hand."""
    C, D, R_sq, eps, r = 2.0, 1.0, 3.0, 0.1, 400
    most = 8 * C * D * R_sq / eps**2
    assert risk_bound(LINEAR, C, D, R_sq, most, eps, r) == pytest.approx(
        C * (eps + np.sqrt(4 * C * D * R_sq * np.log(most / 0.05) / r))
    )
    assert risk_bound(CONSTANT, C, D, R_sq, most, eps, r) == pytest.approx(
        C
        * (
            eps
            + 2
            * (D + 2 * np.sqrt(3.0) * np.sqrt(2 * C * D))
            * np.sqrt(np.log(most / 0.025) / (2 * r))
        )
    )
