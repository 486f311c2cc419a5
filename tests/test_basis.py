"""The basis: every way to choose vectors keeps one contract, and a pursuit finds what lowers the
residual most.
"""

import pickle
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from slimsvm.basis import (
    Cholesky,
    Given,
    Greedy,
    Here,
    KMeans,
    Margin,
    Pursuit,
    PursuitRows,
    Random,
    Unsupervised,
)
from slimsvm.basis.cholesky import pivoted, thresholded
from slimsvm.basis.criterion import RIDGE, Criterion, sampled
from slimsvm.basis.preimage import climbed, thinned
from slimsvm.kernels import (
    RBF,
    FromCallable,
    Kernel,
    Laplacian,
    Linear,
    Polynomial,
    Precomputed,
    Sigmoid,
)
from slimsvm.losses import LeastSquares, SmoothHinge, SquaredHinge
from slimsvm.solvers.newton import Newton
from slimsvm.solvers.refine import solve
from slimsvm.tiles import prepare
from tests.in_memory import kernel_columns, subspace_problem
from tests.pairs import every_pair


def dots_plus_one(X, Z):
    dots = X @ Z.T
    return (np.asarray(dots.toarray()) if sp.issparse(dots) else dots) + 1.0


KERNELS: dict[str, Kernel] = {
    "rbf": RBF(0.2),
    "linear": Linear(),
    "poly": Polynomial(0.3, 3, 1.0),
    "poly homogeneous": Polynomial(0.3, 2, 0.0),
    "sigmoid": Sigmoid(0.05, 0.1),
    "laplacian": Laplacian(0.2),
    "callable": FromCallable(dots_plus_one),
}
MOVING = [name for name, kernel in KERNELS.items() if kernel.differentiable]
BASES = {
    "random": Random(),
    "kmeans": KMeans(),
    "pursuit_rows": PursuitRows(),
    "pursuit": Pursuit(),
    "cholesky": Cholesky(),
    "unsupervised": Unsupervised(),
    "greedy": Greedy(),
    "greedy alone": Greedy(alone=True),
    "margin": Margin(),
}
STEERED = Pursuit | PursuitRows | Greedy | Margin  # by the model on the present basis
DRAWS_NOTHING = Cholesky  # the same vectors for every seed
every_kernel = pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS.keys())
moving_kernel = pytest.mark.parametrize("kernel", [KERNELS[name] for name in MOVING], ids=MOVING)
every_basis = pytest.mark.parametrize("basis", BASES.values(), ids=BASES.keys())
every_pursuit = pytest.mark.parametrize(
    "basis", [Pursuit(), PursuitRows()], ids=["pursuit", "pursuit_rows"]
)
FORMS = ["dense", "csr"]
every_form = pytest.mark.parametrize("form", FORMS)


def data(form, n=120):
    rng = np.random.default_rng(0)
    if form == "dense":
        return rng.standard_normal((n, 5)) + 3.0
    return sp.random(
        n, 400, density=0.02, format="csr", random_state=rng, data_rvs=rng.standard_normal
    )


def subspace(kernel, X, n_basis=0, dtype=None, n_threads=1, max_basis=60):
    columns = kernel_columns(prepare(kernel, X, dtype=dtype), max_basis, n_threads=n_threads)
    if n_basis:
        columns.append(columns.operand.X[:n_basis])
    return columns


def residual(columns, n_columns=2, seed=1):
    """Weights of a function that is orthogonal to the basis."""
    A = np.random.default_rng(seed).standard_normal((columns.n, n_columns))
    if not columns.m:
        return A, None
    K = columns.kernel(columns.vectors, columns.operand.X)
    return A, -columns.coefficients(columns.coordinates(K @ A))


def machine(columns, seed=1, n_columns=2):
    """Where a model on the present basis might be."""
    rng = np.random.default_rng(seed)
    y = np.where(rng.standard_normal((columns.n, n_columns)) > 0, 1.0, -1.0)
    return Here(
        subspace_problem(columns, y, np.full(columns.n, 0.1), SquaredHinge()),
        rng.standard_normal((columns.n, n_columns)),
    )


def norm_sq(columns, A, W):
    """sum_c |r_c|^2, in float64."""
    X = columns.operand.X.toarray() if sp.issparse(columns.operand.X) else columns.operand.X
    points, weights = X.astype(np.float64), A
    if columns.m:
        B = columns.vectors.toarray() if sp.issparse(columns.vectors) else columns.vectors
        points, weights = np.vstack([points, B]), np.vstack([A, W])
    return float(np.einsum("ic,ij,jc->", weights, columns.kernel(points), weights))


def as_dense(vectors):
    return np.asarray(vectors.toarray() if sp.issparse(vectors) else vectors, np.float64)


# -- the contract ----------------------------------------------------------------------------------


@every_pair(basis=BASES, kernel=KERNELS, form=FORMS, n_basis=[0, 3], n_new=[1, 4])
def test_contract(basis, kernel, form, n_basis, n_new):
    X = data(form)
    columns = subspace(kernel, X, n_basis)
    A, W = residual(columns)
    candidates = np.arange(10, 110)
    chosen = basis.select(
        columns, A, W, n_new, np.random.default_rng(5), candidates, machine(columns)
    )

    assert chosen.n == chosen.vectors.shape[0] <= n_new
    assert chosen.vectors.shape[1] == columns.operand.X.shape[1]
    assert np.isfinite(as_dense(chosen.vectors)).all()
    if kernel.positive and not (
        isinstance(kernel, Linear) and form == "dense"
    ):  # five features: a basis of seven depends on itself
        assert chosen.n == n_new
        assert columns.append(chosen.vectors).all()
    if chosen.indices is not None:
        assert np.unique(chosen.indices).size == chosen.n
        assert np.isin(chosen.indices, candidates).all()
        np.testing.assert_array_equal(
            as_dense(chosen.vectors), as_dense(columns.operand.X[chosen.indices])
        )
    if n_basis:
        assert sp.issparse(chosen.vectors) == sp.issparse(columns.vectors)
    if form == "dense":
        assert not sp.issparse(chosen.vectors)


@every_pair(basis=BASES, kernel=KERNELS, form=FORMS)
def test_same_bits_from_the_same_seed_for_any_number_of_threads(basis, kernel, form):
    X = data(form, n=1500)
    found = []
    for n_threads in (1, 1, 2, 3):
        columns = subspace(kernel, X, 3, n_threads=n_threads)
        A, W = residual(columns)
        found.append(
            basis.select(
                columns, A, W, 3, np.random.default_rng(5), np.arange(1500), machine(columns)
            )
        )
    for other in found[1:]:
        np.testing.assert_array_equal(as_dense(other.vectors), as_dense(found[0].vectors))
    columns = subspace(kernel, X, 3)
    another = basis.select(
        columns, A, W, 3, np.random.default_rng(6), np.arange(1500), machine(columns)
    )
    if not (isinstance(kernel, Linear) and isinstance(basis, Pursuit)) and not isinstance(
        basis, DRAWS_NOTHING
    ):  # one global optimum
        assert not np.array_equal(as_dense(another.vectors), as_dense(found[0].vectors))


@every_basis
def test_is_data(basis):
    assert pickle.loads(pickle.dumps(basis)) == basis


@pytest.mark.parametrize(
    "basis",
    [basis for name, basis in BASES.items() if name != "kmeans"],
    ids=[name for name in BASES if name != "kmeans"],
)
def test_a_precomputed_kernel_gets_row_indices(basis):
    X = data("dense")
    plain = subspace(RBF(0.2), X, dtype=np.float64)
    columns = kernel_columns(prepare(Precomputed(), RBF(0.2)(X)), 5)
    A, _ = residual(columns)
    chosen = basis.select(
        columns, A, None, 3, np.random.default_rng(0), np.arange(columns.n), machine(columns)
    )
    assert chosen.vectors is chosen.indices and chosen.indices.size == 3
    if not isinstance(basis, Pursuit):
        expected = basis.select(
            plain, A, None, 3, np.random.default_rng(0), np.arange(columns.n), machine(plain)
        )
        np.testing.assert_array_equal(chosen.indices, expected.indices)


def test_centres_of_a_precomputed_kernel_are_refused():
    columns = kernel_columns(prepare(Precomputed(), np.eye(4)), 2)
    for basis in (KMeans(), Given(np.eye(4))):
        with pytest.raises(ValueError, match="precomputed"):
            basis.select(columns, None, None, 2, np.random.default_rng(0), np.arange(4))


# -- nothing to choose from ------------------------------------------------------------------------


@every_pair(basis=BASES, kernel=KERNELS, form=FORMS)
def test_zero_residual(basis, kernel, form):
    columns = subspace(kernel, data(form), 2)
    zero, at = np.zeros((columns.n, 1)), machine(columns, n_columns=1)
    satisfied = replace(at, scores=2.0 * at.problem.target)  # the loss feels no row
    chosen = basis.select(
        columns,
        zero,
        np.zeros((columns.m, 1)),
        3,
        np.random.default_rng(0),
        np.arange(columns.n),
        satisfied,
    )
    assert chosen.n <= 3
    assert np.isfinite(as_dense(chosen.vectors)).all()


@every_kernel
@every_basis
def test_all_rows_identical(basis, kernel):
    X = np.tile([[1.0, 2.0, 0.5]], (30, 1))
    columns = subspace(kernel, X)
    chosen = basis.select(
        columns,
        np.ones((30, 1)),
        None,
        3,
        np.random.default_rng(0),
        np.array([0]),
        machine(columns, n_columns=1),
    )
    assert chosen.n == 1
    np.testing.assert_allclose(
        columns.kernel(chosen.vectors), columns.kernel(columns.operand.X[:1]), rtol=1e-4
    )
    columns.append(chosen.vectors)
    W = np.full((1, 1), -30.0)
    again = basis.select(
        columns,
        np.ones((30, 1)),
        W,
        3,
        np.random.default_rng(0),
        np.array([0]),
        machine(columns, n_columns=1),
    )
    assert np.isfinite(again.vectors).all()
    if isinstance(basis, STEERED):
        assert again.n == 0  # what is there would not be accepted again


@every_kernel
@every_basis
def test_one_row(basis, kernel):
    columns = subspace(kernel, np.array([[1.0, 2.0]]))
    chosen = basis.select(
        columns,
        np.ones((1, 1)),
        None,
        2,
        np.random.default_rng(0),
        np.array([0]),
        machine(columns, n_columns=1),
    )
    assert chosen.n == 1
    assert np.isfinite(chosen.vectors).all()


@every_pair(basis=BASES, kernel=KERNELS, form=FORMS)
def test_more_vectors_than_distinct_rows(basis, kernel, form):
    X = data(form, n=6)
    X = sp.vstack([X, X], format="csr") if form == "csr" else np.vstack([X, X])
    columns = subspace(kernel, X)
    A, _ = residual(columns)
    chosen = basis.select(
        columns, A, None, 20, np.random.default_rng(0), np.arange(6), machine(columns)
    )
    assert np.isfinite(as_dense(chosen.vectors)).all()
    assert chosen.n <= 20
    if not isinstance(basis, STEERED):
        np.testing.assert_array_equal(np.sort(chosen.indices), np.arange(6))


@every_pursuit
def test_a_pursuit_needs_weights(basis):
    with pytest.raises(ValueError, match="weights of the residual"):
        basis.select(
            subspace(RBF(0.2), data("dense")), None, None, 1, np.random.default_rng(0), np.arange(9)
        )


# -- one-shot choices ------------------------------------------------------------------------------


def test_random_takes_all_candidates_in_order():
    columns = subspace(RBF(0.2), data("dense"))
    candidates = np.array([3, 8, 50])
    for n_new in (3, 10):
        np.testing.assert_array_equal(
            Random()
            .select(columns, None, None, n_new, np.random.default_rng(0), candidates)
            .indices,
            candidates,
        )
    assert set(
        Random().select(columns, None, None, 2, np.random.default_rng(0), candidates).indices
    ) < set(candidates)


@every_form
def test_kmeans_heeds_the_weights(form):
    rng = np.random.default_rng(0)
    centres = np.zeros((3, 300))
    centres[0, :10], centres[1, 10:20], centres[2, 20:30] = 5.0, 5.0, 5.0
    X = np.repeat(centres, 100, axis=0)
    X[X > 0] += 0.1 * rng.standard_normal(np.count_nonzero(X))
    weight = np.repeat([1.0, 2.0, 0.0], 100)
    X = sp.csr_matrix(X) if form == "csr" else X
    columns = subspace(RBF(0.01), X)
    chosen = KMeans(sample_weight=weight).select(columns, None, None, 2, rng, np.arange(200))
    assert chosen.indices is None
    assert sp.issparse(chosen.vectors) == sp.issparse(columns.operand.X)
    found = as_dense(columns.in_given_coordinates(chosen.vectors))
    np.testing.assert_allclose(found[np.argsort(-found[:, 0])], centres[:2], atol=0.2)


@pytest.mark.parametrize(
    ("vectors", "message"),
    [
        (np.zeros(5), "two dimensions"),
        (np.zeros((2, 4)), "4 features, the data has 5"),
        (np.full((2, 5), np.nan), "NaN or infinity"),
        (np.empty((0, 5)), "no vectors"),
        ([["a"] * 5], "not an array of numbers"),
        (sp.csr_matrix((2, 4)), "4 features"),
    ],
)
def test_a_bad_basis_is_refused(vectors, message):
    with pytest.raises(ValueError, match=message):
        Given(vectors).select(
            subspace(RBF(0.2), data("dense")), None, None, 9, np.random.default_rng(0), np.arange(9)
        )


@every_kernel
@every_form
@pytest.mark.parametrize("given_form", ["dense", "csr"])
def test_given_vectors_come_back(kernel, form, given_form):
    columns = subspace(kernel, data(form))
    vectors = data("dense")[:3] if form == "dense" else data("csr")[:3].toarray()
    given = sp.csr_matrix(vectors) if given_form == "csr" else vectors
    chosen = Given(given).select(columns, None, None, 9, np.random.default_rng(0), np.arange(9))
    assert sp.issparse(chosen.vectors) == sp.issparse(columns.operand.X)
    np.testing.assert_allclose(
        as_dense(columns.in_given_coordinates(chosen.vectors)), vectors, atol=1e-12
    )
    assert (
        Given(given).select(columns, None, None, 2, np.random.default_rng(0), np.arange(9)).n == 2
    )


# -- the criterion ---------------------------------------------------------------------------------


@every_form
@pytest.mark.parametrize(
    "kernel",
    [kernel for kernel in KERNELS.values() if kernel.positive],
    ids=lambda kernel: kernel.name,
)
@pytest.mark.parametrize("n_basis", [0, 3])
def test_the_drop_is_what_a_vector_takes_from_the_residual(kernel, form, n_basis):
    columns = subspace(kernel, data(form), n_basis, dtype=np.float64)
    A, W = residual(columns)
    criterion = Criterion(columns, A, 10**6, np.random.default_rng(0))
    row = np.array([50])
    values = criterion.at(columns.take(row), row)
    before = norm_sq(columns, A, W)
    assert columns.append(columns.operand.X[row]).all()
    after = norm_sq(columns, *residual(columns))
    true_drop = values.drop * (values.left + RIDGE * values.diag) / values.left
    np.testing.assert_allclose(true_drop, before - after, rtol=1e-5)


@moving_kernel
@pytest.mark.parametrize("orthogonal", [True, False])
@pytest.mark.parametrize("n_basis", [0, 3])
@pytest.mark.parametrize("n_columns", [1, 3])
def test_the_step_is_the_gradient(kernel, orthogonal, n_basis, n_columns):
    columns = subspace(kernel, data("dense")[:, :4] - 3.0, n_basis, dtype=np.float64)
    A, _ = residual(columns, n_columns)
    criterion = Criterion(columns, A, 10**6, np.random.default_rng(0), orthogonal)
    B = columns.operand.X[60:64] + 0.1
    values = criterion.at(criterion.points(B))
    assert (values.drop > 0).all()
    step = criterion.step(criterion.points(B), values)
    inner, factor, _ = kernel.slope()
    ridge = RIDGE if orthogonal else 0.0
    D = values.left + ridge * values.diag if orthogonal else values.diag
    gradient = step * (2.0 * factor / D * values.drop * inner.diag(B) * (1.0 + ridge))[:, None]
    for k in range(B.shape[1]):
        moved = np.zeros(B.shape[1])
        moved[k] = 1e-5
        up, down = (criterion.at(criterion.points(B + sign * moved)).drop for sign in (1, -1))
        np.testing.assert_allclose(
            gradient[:, k], (up - down) / 2e-5, rtol=1e-5, atol=1e-6 * np.abs(gradient).max()
        )


@every_form
@moving_kernel
@pytest.mark.parametrize("orthogonal", [True, False])
@pytest.mark.parametrize("n_basis", [0, 3])
def test_no_start_ends_below_where_it_began(kernel, form, orthogonal, n_basis):
    columns = subspace(kernel, data(form), n_basis)
    A, _ = residual(columns)
    criterion = Criterion(columns, A, 10**6, np.random.default_rng(0), orthogonal)
    starts = as_dense(columns.operand.X[40:56])
    before = criterion.at(criterion.points(criterion.contained(starts))).drop
    ends = climbed(criterion, starts.copy(), 20, 1e-4)
    after = criterion.at(criterion.points(ends)).drop
    movable = before >= 0
    assert (after[movable] >= before[movable]).all()
    assert (after > 1.05 * before).sum() >= 8
    assert np.isfinite(ends).all()


def test_the_linear_optimum_is_the_leading_direction():
    X = data("dense") - 3.0
    columns = subspace(Linear(), X, dtype=np.float64)
    A, _ = residual(columns, 3)
    found = (
        Pursuit(max_iter=200, tol=1e-12)
        .select(columns, A, None, 1, np.random.default_rng(0), np.arange(len(X)))
        .vectors[0]
    )
    leading = np.linalg.svd(A.T @ X)[2][0]
    assert abs(found @ leading) / np.linalg.norm(found) == pytest.approx(1.0, abs=1e-6)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_pursuit_finds_two_bumps_between_the_rows(dtype, sign):
    rng = np.random.default_rng(0)
    X = rng.uniform(-3, 3, (400, 2))
    centres = np.array([[-1.0, 0.5], [1.5, -0.7]])
    kernel = RBF(0.8)
    K = kernel(X)
    A = np.linalg.solve(
        K + 1e-4 * np.eye(len(X)), kernel(X, centres)
    )  # each bump, as a function of the rows
    columns = subspace(kernel, X, dtype=dtype)
    chosen = Pursuit(max_iter=50, tol=1e-6).select(
        columns, A[:, 0] + sign * A[:, 1], None, 2, rng, np.arange(len(X))
    )
    found = columns.in_given_coordinates(chosen.vectors)
    np.testing.assert_allclose(found[np.argsort(found[:, 0])], centres, atol=1e-2)


def test_a_pursuit_beats_rows_which_beat_chance():
    rng = np.random.default_rng(3)
    X = rng.standard_normal((800, 6))
    left = {}
    for name, basis in {"pursuit": Pursuit(), "rows": PursuitRows(), "random": Random()}.items():
        columns = subspace(RBF(0.1), X, 5)
        A, W = residual(columns)
        for _ in range(8):
            chosen = basis.select(columns, A, W, 1, rng, np.arange(800))
            assert columns.append(chosen.vectors).all()
            A, W = residual(columns)
        left[name] = norm_sq(columns, A, W)
    assert left["pursuit"] < 0.95 * left["rows"] < 0.9 * left["random"]


@every_pursuit
def test_several_at_once_are_each_the_best_for_what_those_before_leave(basis):
    columns = subspace(RBF(0.2), data("dense"), 3, dtype=np.float64)
    A, _ = residual(columns)
    criterion = Criterion(columns, A, 10**6, np.random.default_rng(0))
    pool = columns.take(np.arange(columns.n))
    chosen = criterion.greedy(pool, criterion.at(pool), 5)
    for expected in chosen:
        values = Criterion(columns, residual(columns)[0], 10**6, np.random.default_rng(0)).at(pool)
        assert values.drop[expected] == pytest.approx(values.drop.max(), rel=1e-5)
        assert columns.append(columns.operand.X[[expected]]).all()


# -- many rows: the terms are a sample -------------------------------------------------------------


def test_sampled_sums_are_unbiased():
    rng = np.random.default_rng(0)
    size = rng.exponential(size=300) ** 3
    size[::7] = 0.0
    value = rng.standard_normal(300) * size
    estimates = []
    counts = np.zeros(300)
    for _ in range(3000):
        indices, chance = sampled(size, 40, rng)
        assert np.all(np.diff(indices) > 0) and size[indices].min() > 0 and indices.size <= 40
        estimates.append((value[indices] / chance).sum())
        counts[indices] += 1 / chance
    error = np.std(estimates) / np.sqrt(len(estimates))
    assert abs(np.mean(estimates) - value.sum()) < 4 * error
    assert counts[::7].max() == 0
    often = 40 * size / size.sum() > 0.05
    np.testing.assert_allclose(counts[often] / 3000, 1.0, atol=0.4)  # five deviations of the rarest


def test_few_terms_are_taken_as_they_are():
    indices, chance = sampled(np.array([0.0, 2.0, 0.0, 1e-9]), 2, np.random.default_rng(0))
    np.testing.assert_array_equal(indices, [1, 3])
    np.testing.assert_array_equal(chance, 1.0)


@pytest.mark.parametrize("keeps", [True, False])
def test_a_sampled_criterion_is_unbiased(keeps):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((3000, 4))
    columns = kernel_columns(
        prepare(RBF(0.1), X, dtype=np.float64), 20, max_memory=None if keeps else 0.0
    )
    columns.append(columns.operand.X[:10])
    A, _ = residual(columns)
    rows = np.arange(100, 130)
    pool = columns.take(rows)
    exact = Criterion(columns, A, 10**6, rng).at(pool, rows)
    draws = np.array([Criterion(columns, A, 500, rng).at(pool, rows).S for _ in range(200)])
    error = draws.std(axis=0) / np.sqrt(len(draws))
    assert np.abs((draws.mean(axis=0) - exact.S) / error).max() < 5
    # orthogonal to the span, as the true residual is
    basis = Criterion(columns, A, 500, rng).at(columns.span.operand)
    assert np.abs(basis.S).max() < 1e-6 * np.abs(exact.S).max()


def test_more_rows_are_taken_where_the_sample_is_mostly_error():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((20_000, 3))
    columns = subspace(RBF(0.5), X)
    smooth = np.exp(-(X**2).sum(axis=1))  # the same sign everywhere: any sample sees it
    noise = rng.choice([-1.0, 1.0], len(X))  # of no sample
    taken = {}
    for name, A in {"smooth": smooth, "noise": noise}.items():
        before = columns.n_values
        Pursuit(n_rows=500, max_rows=16_000).select(
            columns, A, None, 1, np.random.default_rng(0), np.arange(len(X))
        )
        taken[name] = columns.n_values - before
    assert taken["noise"] > 2 * taken["smooth"]


# -- sparse rows -----------------------------------------------------------------------------------


@moving_kernel
def test_pre_images_of_wide_sparse_rows_stay_sparse(kernel):
    rng = np.random.default_rng(0)
    X = sp.random(3000, 50_000, density=0.001, format="csr", random_state=rng, data_rvs=rng.random)
    X.data /= np.sqrt(np.repeat(np.asarray(X.multiply(X).sum(axis=1)).ravel(), np.diff(X.indptr)))
    columns = subspace(kernel, X)
    assert sp.issparse(columns.operand.X)
    A, _ = residual(columns)
    chosen = Pursuit(n_rows=200, max_rows=400).select(columns, A, None, 2, rng, np.arange(3000))
    assert sp.issparse(chosen.vectors) and chosen.vectors.nnz < 2 * 50_000 / 3
    assert columns.append(chosen.vectors).all()
    A, W = residual(columns)
    columns.append(
        Pursuit(n_rows=200, max_rows=400).select(columns, A, W, 1, rng, np.arange(3000)).vectors
    )
    assert columns.m == 3


@every_basis
def test_a_dense_basis_of_sparse_rows_stays_dense(basis):
    X = data("csr")
    columns = subspace(RBF(0.2), X)
    columns.append(X[:3].toarray())
    A, W = residual(columns)
    chosen = basis.select(
        columns, A, W, 2, np.random.default_rng(0), np.arange(columns.n), machine(columns)
    )
    assert not sp.issparse(chosen.vectors)
    assert columns.append(chosen.vectors).all()


def test_thinned_vectors_keep_nearly_all_of_their_norm():
    rng = np.random.default_rng(0)
    B = rng.standard_normal((5, 1000)) ** 5
    B[3] = 0.0
    thin = thinned(B, 1e-3)
    assert thin.nnz < 0.5 * B.size
    lost = ((B - thin.toarray()) ** 2).sum(axis=1)
    assert (lost <= 1e-3 * (B**2).sum(axis=1)).all()


def test_options_change_what_is_computed_only():
    columns = subspace(RBF(0.2), data("dense"), 3)
    A, W = residual(columns)
    before = columns.n_values
    replace(Pursuit(), n_starts=2, max_iter=0).select(
        columns, A, W, 1, np.random.default_rng(0), np.arange(columns.n)
    )
    few = columns.n_values - before
    Pursuit().select(columns, A, W, 1, np.random.default_rng(0), np.arange(columns.n))
    assert columns.m == 3
    assert 0 < few < columns.n_values - before - few


# -- incomplete Cholesky ---------------------------------------------------------------------------


def naive_pivots(K, rank, candidates=None):
    """Pivoted Cholesky by its definition: the largest diagonal of what is left, whose column is
    then taken off.
    """
    left, pivots, columns = K.copy(), [], []
    allowed = np.arange(len(K)) if candidates is None else candidates
    for _ in range(rank):
        pivot = int(allowed[np.argmax(np.diag(left)[allowed])])
        column = left[:, pivot] / np.sqrt(left[pivot, pivot])
        left = left - np.outer(column, column)
        pivots.append(pivot)
        columns.append(column)
    return np.array(pivots), np.array(columns).T, left


@every_form
@pytest.mark.parametrize(
    "kernel",
    [KERNELS["poly"], KERNELS["laplacian"], RBF(0.02), KERNELS["callable"]],
    ids=lambda kernel: kernel.name,
)
def test_pivoted_cholesky_is_the_naive_one(kernel, form):
    X = data(form, n=40)
    rows = prepare(kernel, X, dtype=np.float64)
    K = np.asarray(kernel(X))
    rank = 4 if isinstance(kernel, FromCallable) else 12
    pivots, V, left = naive_pivots(K, rank)
    for threads in (1, 3):
        found = pivoted(rows, rank, n_threads=threads)
        np.testing.assert_array_equal(found.pivots, pivots)
        np.testing.assert_allclose(found.V, V, atol=1e-8 * np.sqrt(K.max()))
        assert found.left == pytest.approx(np.trace(left) / np.trace(K), rel=1e-6)
    some = np.arange(5, 30, 2)
    np.testing.assert_array_equal(
        pivoted(rows, 4, candidates=some).pivots, naive_pivots(K, 4, some)[0]
    )
    # it goes on from a span that is there already
    on = pivoted(rows, rank - 3, known=V[:, :3].T)
    np.testing.assert_array_equal(on.pivots, pivots[3:])
    np.testing.assert_allclose(on.V, V[:, 3:], atol=1e-8 * np.sqrt(K.max()))


def test_all_pivots_give_the_matrix_and_a_small_trace_ends_early():
    X = data("dense", n=30)
    K = RBF(0.5)(X)
    rows = prepare(RBF(0.5), X, dtype=np.float64)
    full = pivoted(rows, 99)
    assert sorted(full.pivots) == list(range(30))
    np.testing.assert_allclose(full.V @ full.V.T, K, atol=1e-10)
    part = pivoted(rows, 99, tol=0.3)
    assert 0 < part.pivots.size < 30 and part.left <= 0.3
    np.testing.assert_array_equal(part.pivots, full.pivots[: part.pivots.size])
    assert naive_pivots(K, part.pivots.size - 1)[2].trace() > 0.3 * 30
    # a matrix of rank 5
    flat = pivoted(prepare(Linear(), X, dtype=np.float64), 20)
    assert flat.pivots.size == 5 and flat.left < 1e-9


def test_pivots_in_float32_and_over_several_strips():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((9000, 3))
    kernel = RBF(0.3)
    single, double = (
        pivoted(prepare(kernel, X, dtype=dtype), 40) for dtype in (np.float32, np.float64)
    )
    assert single.V.dtype == np.float32
    some = rng.integers(9000, size=50)
    for found, error in ((single, 1e-3), (double, 1e-9)):
        # V V' is the kernel projected on the span of the pivots
        B = X[found.pivots]
        projected = kernel(X[some], B) @ np.linalg.solve(kernel(B), kernel(B, X[some]))
        V = found.V[some].astype(np.float64)
        np.testing.assert_allclose(V @ V.T, projected, atol=error)
    again = pivoted(prepare(kernel, X, dtype=np.float32), 40, n_threads=3)
    np.testing.assert_array_equal(again.V, single.V)


def naive_thresholded(K, n_entries):
    """Column by column on a dense matrix; None at a bad pivot."""
    n = len(K)
    V = np.zeros((n, n))
    for j in range(n):
        column = K[j:, j] - V[j:, :j] @ V[j, :j]
        if not column[0] > 0:
            return None
        V[j, j] = np.sqrt(column[0])
        kept = 1 + np.argsort(-np.abs(column[1:]), kind="stable")[:n_entries]
        V[j + kept, j] = column[kept] / V[j, j]
    return V


def test_columns_that_are_computed_ahead_change_no_pivot(monkeypatch):
    X = np.random.default_rng(3).standard_normal((9000, 3))
    found = {}
    for most in (1, 7, 32):
        monkeypatch.setattr("slimsvm.basis.cholesky.MOST_AHEAD", most)
        found[most] = pivoted(prepare(RBF(0.5), X, dtype=np.float64), 60)
        np.testing.assert_array_equal(found[most].pivots, found[1].pivots)
        np.testing.assert_allclose(found[most].V, found[1].V, atol=1e-9)
        assert 60 * 9000 <= found[most].n_values <= 3 * 60 * 9000


@every_form
@pytest.mark.parametrize("n_entries", [0, 1, 5, 20, 299, 1000])
def test_thresholded_cholesky_is_the_naive_one(form, n_entries):
    X = data(form, n=300)  # more than one block of columns
    kernel = RBF(0.5)
    K = np.asarray(kernel(X))
    for threads in (1, 2):
        found = thresholded(prepare(kernel, X, dtype=np.float64), n_entries, n_threads=threads)
        V = naive_thresholded(K + found.beta * np.eye(300), n_entries)
        np.testing.assert_allclose(found.V.toarray(), V, atol=1e-9)
        np.testing.assert_allclose(
            found.left, np.linalg.norm(K + found.beta * np.eye(300) - V @ V.T) / 300, atol=1e-12
        )
    assert found.V.nnz <= 300 * (n_entries + 1)
    if n_entries >= 299:
        assert found.beta == 0
        np.testing.assert_allclose(found.V.toarray(), np.linalg.cholesky(K), atol=1e-9)


def test_a_bad_pivot_starts_again_with_a_heavier_diagonal():
    X = np.random.default_rng(0).standard_normal((80, 2))
    kernel = RBF(0.05)
    K = kernel(X)
    assert naive_thresholded(K, 10) is None
    found = thresholded(prepare(kernel, X, dtype=np.float64), 10)
    assert found.beta > 0
    assert naive_thresholded(K + found.beta * np.eye(80), 10) is not None
    assert (
        found.beta == pytest.approx(1e-3)
        or naive_thresholded(K + found.beta / 2 * np.eye(80), 10) is None
    )
    with pytest.raises(ValueError, match="cannot be factorised"):
        thresholded(prepare(Precomputed(), np.full((3, 3), np.nan)), 2)
    with pytest.raises(ValueError, match="cannot be factorised"):
        thresholded(prepare(Precomputed(), -np.eye(3)), 2)


def test_threshold_factor_that_is_cut_short():
    X = np.random.default_rng(0).standard_normal((700, 3))
    kernel, asked = RBF(1.0), []
    rows, K = prepare(kernel, X, dtype=np.float64), kernel(X, X)
    whole = thresholded(rows, 699).V.toarray()
    found = thresholded(rows, 699, enough=lambda: asked.append(1) or len(asked) == 2)
    V = found.V.toarray()
    done = np.count_nonzero(np.count_nonzero(V, axis=0) > 1)
    assert 0 < done < 699 and len(asked) == 2
    np.testing.assert_array_equal(V[:, :done], whole[:, :done])
    np.testing.assert_allclose(np.diag(V @ V.T), np.diag(K), atol=1e-9)
    assert np.linalg.norm(V @ V.T - K) / np.trace(K) <= found.left < 1.0


# -- the farthest, the least sure, the greediest ---------------------------------------------------


@pytest.mark.parametrize("n_basis", [0, 4])
def test_unsupervised_takes_the_farthest_from_the_span(n_basis):
    X = data("dense", n=50)  # the pool is all of them
    columns = subspace(RBF(0.05), X, n_basis, dtype=np.float64)
    found = (
        Unsupervised()
        .select(columns, None, None, 6, np.random.default_rng(0), np.arange(50))
        .indices
    )
    K, span = RBF(0.05)(X), list(range(n_basis))
    for index in found:
        if span:
            left = np.diag(K) - np.einsum(
                "ij,ji->i", K[:, span], np.linalg.solve(K[np.ix_(span, span)], K[span])
            )
            assert index == np.argmax(left)
        span.append(index)
    if n_basis == 0:
        pivots = (
            Cholesky()
            .select(columns, None, None, 6, np.random.default_rng(0), np.arange(50))
            .indices
        )
        np.testing.assert_array_equal(found, pivots)


@pytest.mark.parametrize("basis", [Cholesky(), Unsupervised()], ids=["cholesky", "unsupervised"])
def test_rows_in_the_span_are_not_taken_again(basis):
    columns = subspace(RBF(0.2), data("dense", n=40), 10)
    found = basis.select(columns, None, None, 20, np.random.default_rng(0), np.arange(40)).indices
    assert found.size == 20 and found.min() >= 10


@pytest.mark.parametrize("n_columns", [1, 3])
def test_margin_takes_the_smallest_outside_of_the_span(n_columns):
    columns = subspace(RBF(0.2), data("dense"), 3)
    at = machine(columns, n_columns=n_columns)
    at.scores[1] = 0.0  # in the basis already
    found = (
        Margin(n_candidates=120)
        .select(columns, None, None, 5, np.random.default_rng(0), np.arange(120), at)
        .indices
    )
    doubt = np.abs(at.scores).min(axis=1)
    doubt[:3] = np.inf
    np.testing.assert_array_equal(found, np.argsort(doubt)[:5])


@pytest.mark.parametrize("basis", [Greedy(), Margin()], ids=["greedy", "margin"])
def test_a_machine_is_needed(basis):
    with pytest.raises(ValueError, match="needs"):
        basis.select(
            subspace(RBF(0.2), data("dense")), None, None, 1, np.random.default_rng(0), np.arange(9)
        )


def trained(columns, loss, n_columns, fit_intercept, seed=0):
    """A model on the present basis, and its coefficients."""
    rng = np.random.default_rng(seed)
    X = as_dense(columns.operand.X)
    y = np.where(
        X[:, :n_columns] + 0.7 * rng.standard_normal((columns.n, n_columns)) > 0, 1.0, -1.0
    )
    problem = subspace_problem(columns, y, rng.uniform(0.5, 2.0, columns.n), loss, fit_intercept)
    state = solve(problem, None, 1e-14, 100)
    Newton().finish(problem, state)
    return problem, state


def naive_hessian(problem, scores, c, K_BB, K_BX):
    """Of the objective in (intercept, coefficients)."""
    D = problem.weight * problem.loss.curvature(problem.target[:, c], scores[:, c])
    ones = np.ones((1, K_BX.shape[1]))
    F = np.vstack([ones, K_BX]) if problem.fit_intercept else K_BX
    H = (F * D) @ F.T
    b = int(problem.fit_intercept)
    H[b:, b:] += K_BB
    return H, F, D


@pytest.mark.parametrize(
    "loss", [SquaredHinge(), SmoothHinge(), LeastSquares()], ids=lambda loss: loss.name
)
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("n_basis", [0, 4])
@pytest.mark.parametrize("n_columns", [1, 3])
@pytest.mark.parametrize("alone", [False, True])
def test_the_greediest_has_the_largest_virtual_step(loss, fit_intercept, n_basis, n_columns, alone):
    X = data("dense", n=50) - 3.0  # the pool is all of them
    kernel = RBF(0.2)
    columns = subspace(kernel, X, n_basis, dtype=np.float64)
    problem, state = trained(columns, loss, n_columns, fit_intercept)
    found = (
        Greedy(alone=alone)
        .select(
            columns,
            None,
            -state.coef,
            1,
            np.random.default_rng(0),
            np.arange(50),
            Here(problem, state.scores),
        )
        .indices
    )
    K, b = kernel(X), int(fit_intercept)
    gains = np.zeros(50)
    for j in range(n_basis, 50):
        span = [*range(n_basis), j]
        for c in range(n_columns):
            H, F, _ = naive_hessian(problem, state.scores, c, K[np.ix_(span, span)], K[span])
            G = problem.weight * loss.gradient(problem.target[:, c], state.scores[:, c])
            gradient = F @ G
            gradient[b:] += K[np.ix_(span, span)] @ np.append(state.coef[:, c], 0.0)
            if alone:
                gains[j] += 0.5 * gradient[-1] ** 2 / H[-1, -1]
            else:
                gradient[:-1] = 0.0  # the optimum
                gains[j] += 0.5 * gradient @ np.linalg.lstsq(H, gradient, rcond=1e-13)[0]
    assert found.size == 1
    assert gains[found[0]] >= (1 - 1e-5) * gains.max()


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("n_basis", [0, 4])
def test_between_trainings_the_model_moves_as_the_quadratic_one(fit_intercept, n_basis):
    """With least squares the model is the objective: what joins second is what a retrained model
    would take.
    """
    X = data("dense", n=50) - 3.0
    columns = subspace(RBF(0.2), X, n_basis, dtype=np.float64)
    problem, state = trained(columns, LeastSquares(), 2, fit_intercept)
    here = Here(problem, state.scores)
    at_once = (
        Greedy()
        .select(columns, None, -state.coef, 6, np.random.default_rng(0), np.arange(50), here)
        .indices
    )
    one_by_one = []
    for _ in range(6):
        selection = Greedy().select(
            columns,
            None,
            -state.coef,
            1,
            np.random.default_rng(0),
            np.arange(50),
            Here(problem, state.scores),
        )
        one_by_one.extend(selection.indices)
        assert columns.append(selection.vectors).all()
        problem, state = trained(columns, LeastSquares(), 2, fit_intercept)
    np.testing.assert_array_equal(at_once, one_by_one)


def test_greedy_retrains_at_powers_of_two():
    sizes, m = [], 0
    while m < 40:
        m += Greedy().at_once(m)
        sizes.append(m)
    assert sizes == [1, 2, 4, 8, 16, 32, 64]


@pytest.mark.parametrize("basis", [Greedy(), Margin()], ids=["greedy", "margin"])
def test_rows_of_the_basis_do_not_join_again(basis):
    columns = subspace(RBF(0.2), data("dense", n=40) - 3.0, 10)
    problem, state = trained(columns, SquaredHinge(), 1, True)
    found = basis.select(
        columns,
        None,
        -state.coef,
        25,
        np.random.default_rng(0),
        np.arange(40),
        Here(problem, state.scores),
    ).indices
    assert found.size == np.unique(found).size and found.min() >= 10
    assert found.size >= 20
