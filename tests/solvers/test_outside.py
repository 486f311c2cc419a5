"""What of the cuts lies outside of the span: never below the norm, and equal to it if few rows."""

import numpy as np
import pytest
import scipy.sparse as sp

from slimsvm import StructuralSVM, oracles, recipes
from slimsvm.frames import Frame
from slimsvm.kernels import RBF
from slimsvm.losses import Hinge
from slimsvm.oracles import LossOracle, Multiclass
from slimsvm.problems.columns import KernelColumns
from slimsvm.rows import MemoryRows
from slimsvm.run import run
from slimsvm.solvers.cutting_plane import CuttingPlane, OneSlack
from slimsvm.solvers.joint import JointRisk, JointSpace
from slimsvm.solvers.outside import outside
from slimsvm.solvers.spaces import SubspaceSpace

N, M = 600, 12


def data(n=N):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, 3))
    return X, np.where(X[:, 0] * X[:, 1] + 0.3 * rng.standard_normal(n) > 0, 1.0, -1.0)


def columns_over(X, dtype, m=M):
    rows = MemoryRows(X)
    columns = KernelColumns(rows, Frame.of(RBF(0.5), rows, dtype), m)
    assert columns.append(columns.take(np.arange(m)).X).all()
    return columns


def exact_parts(V, X, m):
    """The norms of sum_i v_i phi'(x_i) for the columns of V, densely and by an eigenbasis."""
    K = RBF(0.5)(X, X)
    values, vectors = np.linalg.eigh(K[:m, :m])
    Z = (vectors / np.sqrt(values)).T @ K[:m]
    return np.sqrt(np.maximum(np.einsum("ic,ij,jc->c", V, K - Z.T @ Z, V), 0.0))


def binary(dtype):
    """Cuts of two columns, and all their responses."""
    X, y = data()
    target = np.stack([y, np.where(X[:, 2] > 0, 1.0, -1.0)], axis=1)
    weight = np.random.default_rng(1).uniform(0.2, 2.0, N)
    columns = columns_over(X, dtype)
    problem = OneSlack(SubspaceSpace(columns), LossOracle(Hinge(), target, weight), np.inf)
    solver = CuttingPlane()
    state = solver.init(problem)
    run(solver, problem, tol=1e-3, max_iter=40, start=state)
    responses = [
        np.stack([problem.oracle.unpacked(cuts.rows[t], 0, N) for t in np.flatnonzero(cuts.a)], 1)
        for cuts in state.cuts
    ]
    multipliers = [cuts.a[np.flatnonzero(cuts.a)] for cuts in state.cuts]
    return X, columns, solver.active(problem, state, M), responses, multipliers


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_blocks_are_never_below_the_norm_and_equal_to_it_up_to_their_size(dtype):
    X, columns, cuts, responses, a = binary(dtype)
    truth = [exact_parts(V, X, M).max() for V in responses]
    together = [exact_parts((V @ a)[:, None], X, M)[0] for V, a in zip(responses, a, strict=True)]
    last = np.inf, np.inf
    for size in (1, 8, 64, 512, 1024):
        [found] = outside(columns, [cuts], size)
        for parts, before, true in zip(found, last, (truth, together), strict=True):
            assert (parts >= np.array(true)).all()
            assert (parts < before).all()
        last = found
    near = {"rtol": 1e-6} if dtype == np.float64 else {"rtol": 2e-2}
    np.testing.assert_allclose(last[0], truth, **near)
    np.testing.assert_allclose(last[1], together, **near)
    # without time for kernel values it is the triangle inequality over the rows
    [late] = outside(columns, [cuts], going_on=lambda: False)
    [single] = outside(columns, [cuts], 1)
    np.testing.assert_allclose(late, single)
    by_hand = max(np.abs(V).T @ columns.distances() for V in responses[:1])
    np.testing.assert_allclose(single[0][0], by_hand.max(), rtol=1e-6)


def test_several_spans_share_their_kernel_values():
    X, columns, cuts, responses, _ = binary(np.float64)
    few = type(cuts)(4, cuts.cuts, cuts.a)
    before = columns.n_values
    found = outside(columns, [few, cuts])
    assert columns.n_values - before == N * N
    np.testing.assert_allclose(found[1], outside(columns, [cuts])[0])
    np.testing.assert_allclose(
        found[0][0], [exact_parts(V, X, 4).max() for V in responses], rtol=1e-6
    )


def test_cuts_of_many_labels():
    X, _ = data(200)
    y = (np.abs(X[:, 0]) * 2).astype(int).clip(0, 2)
    columns, oracle = columns_over(X, np.float64), Multiclass()
    true = oracle.encode(y, len(y), None)
    risk = JointRisk(oracle, true.labels, true.offsets, np.full(len(y), 2.0))
    space = JointSpace(SubspaceSpace(columns), risk.width, risk.n_linear, 0.0)
    solver, problem = CuttingPlane(), OneSlack(space, risk, 0.0)
    state = solver.init(problem)
    run(solver, problem, tol=1e-3, max_iter=30, start=state)
    [(largest, _)] = outside(columns, [solver.active(problem, state, M, risk.width)])
    cuts = state.cuts[0]
    parts = [risk.unpacked(cuts.rows[t], 0, risk.n) for t in np.flatnonzero(cuts.a)]
    norms = [np.linalg.norm(exact_parts(risk.split(v)[0], X, M)) for v in parts]
    np.testing.assert_allclose(largest[0], max(norms), rtol=1e-6)


def test_rounds_stay_below_theorem_1():
    X, y = data(300)
    model = recipes.cpsp_rows(15, gamma=0.5, C=0.1, tol=0.05, random_state=0).fit(X, y)
    certificate = model.certificate_
    assert certificate.max_cuts == pytest.approx(15 + 8 * 0.1 * 300 / 0.05**2)
    assert len(model.history_["seconds"]) <= certificate.max_cuts
    free = recipes.cpsp_rows(15, gamma=0.5, C=0.1, tol=0.05, random_state=0)
    assert free.set_params(solver=None).fit(X, y).certificate_.max_cuts is None


def of_rows(X, Z):
    return RBF(0.5)(X, Z)


@pytest.mark.parametrize("kind", ["sparse", "callable"])
def test_any_rows_and_kernels(kind):
    X, y = data(200)
    given = sp.csr_matrix(X) if kind == "sparse" else X
    kernel = {"kernel": of_rows} if kind == "callable" else {"gamma": 0.5}
    model = recipes.nystrom(10, C=1.0, tol=0.01, random_state=0, **kernel).fit(given, y)
    plain = recipes.nystrom(10, C=1.0, tol=0.01, random_state=0, gamma=0.5).fit(X, y)
    assert 0 < plain.certificate_.projection_error < 1
    for name in ("projection_error", "bound"):
        ours, its = getattr(model.certificate_, name), getattr(plain.certificate_, name)
        assert ours == pytest.approx(its, rel=1e-3)


def test_beyond_a_block_and_stopped():
    X, y = data(1500)
    options = {"space": "subspace", "n_basis": 10, "gamma": 0.5, "random_state": 0}
    whole = StructuralSVM(oracles.Binary(), **options).fit(X, y).certificate_
    with pytest.warns(UserWarning):
        late = StructuralSVM(oracles.Binary(), max_time=1e-9, **options).fit(X, y).certificate_
    assert 0 < whole.projection_error < 0.5
    assert late.projection_error > whole.projection_error  # by the rows' distances alone
