"""What every source of rows must do: equal edges give equal bits, other edges the same model.

Wherever blocks are, and whatever was kept. A source is a way to hold the same rows; ``MODELS`` fit
whole models over any of them, by problems and solvers alone.
"""

import importlib
import inspect
import pickle
import pkgutil
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp

import slimsvm
from slimsvm.basis import KMeans, Margin, Pursuit, PursuitRows, Random, Unsupervised
from slimsvm.expansion import Expansion
from slimsvm.frames import Frame
from slimsvm.kernels import RBF, Polynomial, gamma_value
from slimsvm.losses import (
    EpsilonInsensitive,
    Hinge,
    LeastSquares,
    SmoothHinge,
    SquaredHinge,
)
from slimsvm.oracles import LossOracle, Multiclass
from slimsvm.problems.columns import KernelColumns
from slimsvm.problems.reduced import Reduced, SignedFeatures
from slimsvm.problems.subspace import Subspace
from slimsvm.rows import BlockedRows, MemoryRows, PerRow
from slimsvm.run import Limits, run
from slimsvm.solvers.chunking import Chunking
from slimsvm.solvers.cutting_plane import CuttingPlane, OneSlack
from slimsvm.solvers.joint import JointRisk, JointSpace
from slimsvm.solvers.kernel_newton import AllRows, KernelNewton
from slimsvm.solvers.lagrangian import AcceleratedLagrangian, Lagrangian
from slimsvm.solvers.least_squares import LeastSquaresSystem
from slimsvm.solvers.linear_newton import LinearNewton, LinearProblem
from slimsvm.solvers.newton import Newton
from slimsvm.solvers.outside import outside
from slimsvm.solvers.pursuit import pursue
from slimsvm.solvers.refine import refine
from slimsvm.solvers.sampled_cuts import CONSTANT, LINEAR, SampledCuts
from slimsvm.solvers.sampled_space import SampledSpace
from slimsvm.solvers.smooth_newton import SmoothNewton
from slimsvm.solvers.spaces import ExplicitSpace, SubspaceSpace
from slimsvm.solvers.whole_gap import whole_gap
from slimsvm.sources import open_rows

N, D = 2300, 4
EDGES = [0, 1100, 1101, 1700, N]  # more than one chunk, a single row, and less than a chunk
TASK_BYTES = 2000  # of a task alone
STATE_BYTES = 40_000  # with its state, for the models here: some 20 vectors

# -- sources ---------------------------------------------------------------------------------------


def data(form="dense", seed=0):
    """Rows, targets of one column, and weights."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((N, D)) + 1.0
    y = np.where(X[:, 0] * X[:, 1] + 0.4 * rng.standard_normal(N) > 1.0, 1.0, -1.0)
    weight = rng.uniform(0.2, 1.0, N)
    if form == "sparse":
        X = sp.random(N, 300, density=0.02, format="csr", random_state=rng)
        y = np.where(np.asarray(X.sum(axis=1)).ravel() > 3.0, 1.0, -1.0)
    return X, y, weight


class InBlocks(BlockedRows):
    """The rows of arrays, cut at the edges."""

    def __init__(self, X, y, weight, edges=EDGES, n_threads=1):
        def read(k):
            part = slice(edges[k], edges[k + 1])
            return X[part], y[part], weight[part]

        super().__init__(read, edges, X.shape[1], n_threads)


class Forgetful(InBlocks):
    """Forgets at random, between any two tasks, some or all of what was kept."""

    def __init__(self, *args, seed=0, **options):
        super().__init__(*args, **options)
        self.rng, self.n_forgotten = np.random.default_rng(seed), 0

    def _part(self, k, task, state):
        for key in list(self.kept[k]):
            if self.rng.random() < 0.4:
                del self.kept[k][key]
                self.n_forgotten += 1
        return super()._part(k, task, state)


class Sent(InBlocks):
    """Sends every task and its state as bytes, and gets the part back in the same way."""

    def __init__(self, *args, **options):
        super().__init__(*args, **options)
        self.largest = 0

    def _part(self, k, task, state):
        small = [of for of in state if not isinstance(of, PerRow)]
        self.largest = max(self.largest, len(pickle.dumps((task, small))))
        task, state = pickle.loads(pickle.dumps((task, state)))
        return pickle.loads(pickle.dumps(super()._part(k, task, state)))


def mapped(X, y, weight, folder):
    """Rows read from memory maps."""
    for name, values in (("X", X), ("y", y), ("weight", weight)):
        np.save(folder / f"{name}.npy", values)
    maps = [np.load(folder / f"{name}.npy", mmap_mode="r") for name in ("X", "y", "weight")]
    return InBlocks(*maps)


def in_batches(X, y, weight):
    """Rows that come in batches, through what opens files too."""
    parts = [slice(*ends) for ends in pairwise(EDGES)]
    return open_rows(lambda: ((X[part], y[part], weight[part]) for part in parts))


def on_dask(X, y, weight):
    """Partitions of Dask, with a few that are empty."""
    dask = pytest.importorskip("dask")
    from slimsvm.sources.dask_rows import from_dask

    ends = [*pairwise(EDGES), (0, 0)]
    ends.insert(1, (7, 7))
    return from_dask([dask.delayed((X[a:b], y[a:b], weight[a:b]), traverse=False) for a, b in ends])


def source(name, X, y, weight, folder=None):
    """The same rows, elsewhere."""
    if name in ("batches", "dask"):
        return {"batches": in_batches, "dask": on_dask}[name](X, y, weight)
    if name == "memory":
        return MemoryRows(X, y, weight)
    if name == "mapped":
        return mapped(X, y, weight, folder)
    if name == "threads":
        return InBlocks(X, y, weight, n_threads=2)
    return {"blocks": InBlocks, "forgetful": Forgetful, "sent": Sent}[name](X, y, weight)


SOURCES = ("memory", "blocks", "mapped", "threads", "forgetful", "sent", "batches", "dask")


# -- what rows do ----------------------------------------------------------------------------------


def total(block, factor):
    return factor * block.X.sum(axis=0), float(block.weight.sum())


def numbers(block, per_row):
    assert per_row.size == block.n
    return block.start, block.n, float(per_row @ block.y)


def doubled(block):
    return np.column_stack([block.y, -block.y]), 2.0 * block.weight


def labels(block):
    return block.y, block.weight


@pytest.mark.parametrize("name", SOURCES)
def test_sums_parts_and_few_rows(name, tmp_path):
    X, y, weight = data()
    rows = source(name, X, y, weight, tmp_path)
    assert (rows.n, rows.n_features) == X.shape
    sums, of_weights = rows.sum(total, 2.0)
    np.testing.assert_allclose(sums, 2.0 * X.sum(axis=0))
    assert of_weights == pytest.approx(weight.sum())
    parts = rows.map(numbers, PerRow(weight))
    assert parts[0][0] == 0 and sum(part[1] for part in parts) == N
    assert sum(part[2] for part in parts) == pytest.approx(weight @ y)
    which = np.array([N - 1, 0, 1100, 5, 1100, 1699])
    few = rows.take(which)
    assert isinstance(few, MemoryRows) and few.n == 6
    np.testing.assert_array_equal(few.X, X[which])
    np.testing.assert_array_equal(few.y, y[which])
    np.testing.assert_array_equal(few.weight, weight[which])
    assert rows.take(np.arange(0)).X.shape == (0, D)
    again = rows.relabelled(doubled)
    assert again.n == N
    found = again.map(labels)
    np.testing.assert_array_equal(np.concatenate([of for of, _ in found])[:, 1], -y)
    np.testing.assert_array_equal(np.concatenate([of for _, of in found]), 2.0 * weight)
    np.testing.assert_array_equal(again.take(which).weight, 2.0 * weight[which])


@pytest.mark.parametrize("form", ["dense", "sparse"])
@pytest.mark.parametrize("kernel", [RBF(0.5), Polynomial(0.5, 2, 1.0)], ids=lambda of: of.name)
def test_a_frame_is_that_of_rows_in_memory(form, kernel):
    from slimsvm.tiles import prepare

    X, y, weight = data(form)
    expected, rows = prepare(kernel, X), InBlocks(X, y, weight)
    own, frame = Frame.like(expected), Frame.of(kernel, rows)
    assert Frame.of(kernel, MemoryRows(X)).same(own)
    assert (frame.dtype, frame.sparse) == (own.dtype, own.sparse)
    if frame.shift is not None:
        np.testing.assert_allclose(frame.shift, own.shift, atol=1e-14)
    for block in (rows._block(0), rows._block(3)):
        part = slice(block.start, block.start + block.n)
        prepared, whole = own.prepared(block).operand, expected.X[part]
        assert sp.issparse(prepared.X) == sp.issparse(expected.X)
        dense = (of.toarray() if sp.issparse(of) else of for of in (prepared.X, whole))
        np.testing.assert_array_equal(*dense)
        np.testing.assert_array_equal(prepared.sq, expected.sq[part])


@pytest.mark.parametrize("name", SOURCES)
def test_gamma_is_the_same(name, tmp_path):
    X, y, weight = data()
    rows = source(name, X, y, weight, tmp_path)
    expected = gamma_value("scale", MemoryRows(X, y, weight))
    assert gamma_value("scale", rows) == pytest.approx(expected, rel=1e-12)


# -- whole models ----------------------------------------------------------------------------------
KERNEL = RBF(0.4)


def three_classes(block):
    """Two columns of labels."""
    return np.column_stack([block.y, np.where(block.X[:, 2] > 1.0, 1.0, -1.0)]), block.weight


def centred(block):
    """Targets for regression."""
    return block.X[:, 0] + 0.2 * block.y, block.weight


def columns_over(rows, max_basis, kernel=KERNEL, dtype=np.float64, max_memory=None):
    return KernelColumns(rows, Frame.of(kernel, rows, dtype), max_basis, max_memory)


def newton(rows, loss, max_memory=None, relabel=None, fit_intercept=True, dtype=np.float64):
    rows = rows if relabel is None else rows.relabelled(relabel)
    columns = columns_over(rows, 20, dtype=dtype, max_memory=max_memory)
    for k in range(3):  # in several pieces
        columns.append(columns.take(np.arange(5 * k, 5 * k + 5) * 150).X)
    problem = Subspace(columns, loss, fit_intercept)
    result = run(Newton(), problem, tol=1e-13, max_iter=40)
    some = Subspace(columns.first(7), loss, fit_intercept)
    smaller = run(Newton(), some, tol=1e-13, max_iter=40)
    return {
        "objective": result.certificate.objective,
        "scores": result.model.scores,
        "smaller": smaller.model.scores,
        "distances": columns.distances(),
    }


def pursuit(rows, basis, loss=None, dtype=np.float64):
    columns = columns_over(rows, 20, dtype=dtype)
    problem, rng = Subspace(columns, loss or SquaredHinge()), np.random.default_rng(0)
    if hasattr(basis, "sample_weight") or isinstance(basis, Margin):
        first = Random() if isinstance(basis, Margin) else basis
        columns.append(first.select(columns, None, None, 6, rng, np.arange(N)).vectors)
    sizes, some = [10, 16], np.arange(N)
    for grown in pursue(problem, basis, sizes, some, rng, tol=1e-12, limits=Limits()):
        state = grown.state
    return {"objective": state.objective, "scores": state.scores}


def refined(rows, loss, kernel=KERNEL):
    columns = columns_over(rows, 4, kernel)
    start = columns.take(np.array([3, 700, 1400, 2100])).X
    moved = refine(Subspace(columns, loss), start, max_iter=4, tol=1e-12)
    return {
        "objective": moved.state.objective,
        "scores": moved.state.scores,
        "vectors": moved.vectors,
    }


def oracle_of(rows, loss):
    parts = rows.map(labels)
    return LossOracle(loss, *(np.concatenate([part[i] for part in parts]) for i in range(2)))


def cutting_planes(rows, loss, grows=False, line_search=True, scaling=np.inf, **options):
    columns = columns_over(rows, 8, **options)
    choose, rng = Pursuit(), np.random.default_rng(0)

    def grow(columns, V, B):
        return choose.select(columns, V, B, 1, rng, np.arange(N)).vectors

    if not grows:
        columns.append(columns.take(np.arange(8) * 280).X)
    space = SubspaceSpace(columns, grow if grows else None)
    solver, problem = (
        CuttingPlane(line_search=line_search),
        OneSlack(space, oracle_of(rows, loss), scaling),
    )
    state = solver.init(problem)
    result = run(solver, problem, tol=1e-7, max_iter=60, start=state)
    # row by row: larger blocks would end where those of the rows do
    [parts] = outside(columns, [solver.active(problem, state, columns.m)], size=1)
    less = OneSlack(SubspaceSpace(columns.first(4)), problem.oracle, scaling)
    solver.reproject(less, state)
    return {
        "objective": result.model.objective,
        "scores": result.model.scores,
        "outside": parts[1],
        "fewer": state.best_scores,
    }


def explicit(rows, line_search=True, scaling=np.inf):
    problem = OneSlack(ExplicitSpace(rows), oracle_of(rows, Hinge()), scaling)
    # a number of rounds, and not a gap: which round is the last to be made depends on last digits
    result = run(CuttingPlane(line_search=line_search), problem, tol=1e-15, max_iter=20)
    return {"objective": result.model.objective, "coef": result.model.coef}


def structured(rows, kind):
    X_y = rows.map(labels)
    truth = (np.concatenate([y for y, _ in X_y]) > 0).astype(int)
    weight = np.concatenate([w for _, w in X_y])
    oracle = Multiclass()
    true = oracle.encode(truth, N, None)
    risk = JointRisk(oracle, true.labels, true.offsets, weight)
    if kind == "explicit":
        space = JointSpace(ExplicitSpace(rows), risk.width, risk.n_linear, 1.0)
        solver = CuttingPlane(keep_rows=False)
        result = run(solver, OneSlack(space, risk, 0.0), tol=1e-15, max_iter=20)  # as above
        return {"objective": result.model.objective, "coef": result.model.coef}
    if kind == "subspace":
        choose, rng = PursuitRows(), np.random.default_rng(0)

        def grow(columns, V, B):
            return choose.select(columns, V, B, 1, rng, np.arange(N)).vectors

        space = SubspaceSpace(columns_over(rows, 6), grow)
        joint = OneSlack(JointSpace(space, risk.width, risk.n_linear, 1.0), risk, 0.0)
        result = run(CuttingPlane(), joint, tol=1e-15, max_iter=8)
        return {"objective": result.model.objective, "coef": result.model.coef}
    memory = 3 * 4 * N * risk.width / 2**20 if kind == "few places" else None
    frame = Frame.of(KERNEL, rows, np.float64)
    space = SampledSpace(rows, frame, risk.width, risk.n_linear, 1.0, kind != CONSTANT, memory)
    solver = SampledCuts(sampling=CONSTANT if kind == CONSTANT else LINEAR, sample_size=60)
    result = run(solver, OneSlack(space, risk, 0.0), tol=0.05, max_iter=12)
    return {
        "objective": result.certificate.objective,
        "indices": result.model.indices,
        "coef": result.model.coef,
        "violation": result.certificate.violation,
    }


def certified(rows, loss):
    """The gap of a function that is known, over all functions."""
    some = rows.take(np.arange(12) * 190)
    coef = some.y[:, None] * np.linspace(0.1, 1.0, 12)[:, None]
    f = Expansion(KERNEL, some.X, coef, np.array([0.1]))
    objective, gap, _ = whole_gap(rows, f, loss, dtype=np.float64)
    return {"objective": objective, "gap": gap, "outputs": f.over(rows)}


def all_rows(rows):
    """The exact solution, on a part of the rows that doubles."""
    parts = rows.map(labels)
    y, weight = (np.concatenate([part[i] for part in parts]) for i in range(2))
    frame = Frame.of(KERNEL, rows, np.float64)
    problem = AllRows(rows, frame, y[:, None], weight, SquaredHinge())
    result = run(KernelNewton(), problem, tol=1e-12, max_iter=40)
    return {"objective": result.certificate.objective, "scores": result.model.scores}


def reduced(rows, solver, loss, max_memory=None, tol=1e-12, max_iter=100):
    weight = np.concatenate([weight for _, weight in rows.map(labels)])
    frame, basis = Frame.of(KERNEL, rows, np.float64), np.arange(12) * 190
    problem = Reduced(SignedFeatures(rows, frame, basis, max_memory), weight, loss)
    result = run(solver, problem, tol=tol, max_iter=max_iter)
    return {"objective": result.certificate.objective, "u": result.model.u}


def linear(rows, direct=None, C=1.0):
    parts = rows.map(labels)
    y, weight = (np.concatenate([part[i] for part in parts]) for i in range(2))
    space = ExplicitSpace(rows, exact=True)
    problem = LinearProblem(space, y[:, None], C * weight, SquaredHinge(), True)
    result = run(LinearNewton(direct=direct), problem, tol=1e-12, max_iter=60)
    return {"objective": result.certificate.objective, "coef": result.model.coef}


MODELS = {
    "newton": lambda rows: newton(rows, SquaredHinge()),
    "newton-not-kept": lambda rows: newton(rows, SquaredHinge(), max_memory=0.0),
    "newton-half-kept": lambda rows: newton(rows, SquaredHinge(), max_memory=0.2),
    "newton-two-columns": lambda rows: newton(rows, SmoothHinge(), relabel=three_classes),
    "newton-regression": lambda rows: newton(
        rows, LeastSquares(), relabel=centred, fit_intercept=False
    ),
    "pursuit": lambda rows: pursuit(rows, Pursuit()),
    "pursuit-rows": lambda rows: pursuit(rows, PursuitRows()),
    "random": lambda rows: pursuit(rows, Random()),
    "unsupervised": lambda rows: pursuit(rows, Unsupervised()),
    "margin": lambda rows: pursuit(rows, Margin()),
    "kmeans": lambda rows: pursuit(rows, KMeans()),
    "refine": lambda rows: refined(rows, SquaredHinge()),
    "refine-poly": lambda rows: refined(rows, LeastSquares(), Polynomial(0.5, 2, 1.0)),
    "cuts": lambda rows: cutting_planes(rows, Hinge()),
    "cuts-growing": lambda rows: cutting_planes(rows, Hinge(), grows=True),
    "cuts-fused": lambda rows: cutting_planes(rows, Hinge(), line_search=False, scaling=1.0),
    "cuts-regression": lambda rows: cutting_planes(
        rows.relabelled(centred), EpsilonInsensitive(0.1)
    ),
    "cuts-not-kept": lambda rows: cutting_planes(rows, Hinge(), grows=True, max_memory=0.0),
    "explicit": lambda rows: explicit(rows),
    "explicit-fused": lambda rows: explicit(rows, line_search=False, scaling=1.0),
    "structured-explicit": lambda rows: structured(rows, "explicit"),
    "structured-subspace": lambda rows: structured(rows, "subspace"),
    "sampled": lambda rows: structured(rows, LINEAR),
    "sampled-few-places": lambda rows: structured(rows, "few places"),
    "sampled-constant": lambda rows: structured(rows, CONSTANT),
    "certify": lambda rows: certified(rows, SquaredHinge()),
    "certify-kink": lambda rows: certified(rows, Hinge()),
    "all-rows": all_rows,
    "reduced": lambda rows: reduced(rows, SmoothNewton(), SmoothHinge(5.0)),
    "reduced-not-kept": lambda rows: reduced(rows, SmoothNewton(), SmoothHinge(5.0), 0.0),
    "reduced-least-squares": lambda rows: reduced(rows, LeastSquaresSystem(), LeastSquares()),
    "reduced-lagrangian": lambda rows: reduced(
        rows, Lagrangian(), SquaredHinge(), tol=1e-4, max_iter=60
    ),
    "reduced-accelerated": lambda rows: reduced(rows, AcceleratedLagrangian(), SquaredHinge()),
    "reduced-chunking": lambda rows: reduced(rows, Chunking(), SquaredHinge()),
    "linear": lambda rows: linear(rows),
    "linear-gradients": lambda rows: linear(rows, direct=False),
}
KNOWN = {}


def reference(model, form="dense"):
    """That of blocks of arrays in memory, and that of one block."""
    if (model, form) not in KNOWN:
        KNOWN[model, form] = [
            MODELS[model](source(name, *data(form))) for name in ("blocks", "memory")
        ]
    return KNOWN[model, form]


# Dask does for all of them what "sent" does, and blocks that are mapped or come in batches are
# arrays as any: there, one of each kind of pass
EACH_KIND = (
    "newton", "pursuit", "cuts", "explicit", "structured-subspace", "sampled", "certify",
    "all-rows", "reduced", "linear",
)  # fmt: skip
LONG = [pytest.mark.long]
EVERYWHERE = [
    pytest.param(
        model,
        name,
        marks=[] if name in ("threads", "forgetful", "sent") or model in EACH_KIND else LONG,
    )
    for name in ("mapped", "threads", "forgetful", "sent", "batches", "dask")
    for model in MODELS
]


@pytest.mark.parametrize(("model", "name"), EVERYWHERE)
def test_equal_edges_give_equal_bits(model, name, tmp_path):
    rows = source(name, *data(), tmp_path)
    found, expected = MODELS[model](rows), reference(model)[0]
    for key, values in expected.items():
        np.testing.assert_array_equal(found[key], values, err_msg=key)
    if name == "sent" and model != "all-rows":  # there the state is the support vectors
        assert rows.largest < STATE_BYTES


def assert_near(found, values, key):
    if values is None:  # not claimed, whatever the edges
        assert found is None
        return
    size = max(1e-12, float(np.abs(values).max()))
    np.testing.assert_allclose(found, values, atol=1e-6 * size, err_msg=key)


@pytest.mark.parametrize("model", MODELS)
def test_other_edges_give_the_same_model(model):
    blocks, memory = reference(model)
    for key, values in memory.items():
        assert_near(blocks[key], values, key)


@pytest.mark.parametrize(
    "model", ["newton", "cuts", "sampled", "explicit", "linear-gradients", "certify"]
)
def test_sparse_rows(model, tmp_path):
    blocks, memory = reference(model, "sparse")
    forgetful = MODELS[model](source("forgetful", *data("sparse")))
    for key, values in memory.items():
        np.testing.assert_array_equal(forgetful[key], blocks[key], err_msg=key)
        assert_near(blocks[key], values, key)


def test_what_is_forgotten_was_there():
    rows = source("forgetful", *data())
    MODELS["newton"](rows)
    assert rows.n_forgotten > 50


def test_values_are_kept_within_the_budget():
    rows = source("blocks", *data())
    MODELS["newton-half-kept"](rows)
    held = ["values" in kept for kept in rows.kept]
    assert held == [True, True, False, False]  # 0.2 megabytes are those of 1310 rows
    assert all("prepared" not in kept for kept in rows.kept)


# -- tasks -----------------------------------------------------------------------------------------


def tasks():
    """All functions of the package whose first argument is a block."""
    for module in pkgutil.walk_packages(slimsvm.__path__, "slimsvm."):
        if module.name.endswith("__main__"):
            continue
        found = importlib.import_module(module.name)
        for name, value in vars(found).items():
            if not inspect.isfunction(value) or value.__module__ != module.name:
                continue
            first = next(iter(inspect.signature(value).parameters.values()), None)
            if first is not None and first.annotation == "Block":
                yield pytest.param(value, id=f"{module.name}.{name}")


@pytest.mark.parametrize("task", list(tasks()))
def test_every_task_can_be_sent(task):
    sent = pickle.dumps(task)
    assert len(sent) < TASK_BYTES and pickle.loads(sent) is task


def test_a_span_is_small():
    rows = source("memory", *data())
    columns = columns_over(rows, 1000)
    columns.append(columns.take(np.arange(20)).X)
    assert len(pickle.dumps(columns.span)) < 10_000
    again = pickle.loads(pickle.dumps(columns.span))
    np.testing.assert_array_equal(again.inverse, columns.span.inverse)
    assert again.pieces == columns.span.pieces
