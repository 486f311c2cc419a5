"""Kernel values by tiles: the same bits for any number of threads, the same digits for any tile, in
the type that keeps them.
"""

import threading

import numpy as np
import pytest
import scipy.sparse as sp

from slimsvm.centring import FLOAT32_ERROR, safe_dtype
from slimsvm.forms import exp_rows
from slimsvm.kernel_sums import accumulate
from slimsvm.kernels import RBF, FromCallable, Kernel, Laplacian, Linear, Polynomial, Sigmoid
from slimsvm.tiles import Strips, block, for_each_tile, kernel_values, prepare, square
from tests.reference.naive import kernel_matrix


def dots_plus_one(X, Z):
    dots = X @ Z.T
    return (dots.toarray() if sp.issparse(dots) else dots) + 1.0


KERNELS: dict[str, Kernel] = {
    "linear": Linear(),
    "rbf": RBF(0.1),
    "poly": Polynomial(0.2, 3, 1.0),
    "sigmoid": Sigmoid(0.05, 0.1),
    "laplacian": Laplacian(0.1),
    "callable": FromCallable(dots_plus_one),
}
every_kernel = pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS.keys())


@pytest.fixture(scope="module")
def dense():
    rng = np.random.default_rng(0)
    return rng.standard_normal((301, 9)), rng.standard_normal(
        (2500, 9)
    )  # columns: three strips of the usual width


@pytest.fixture(scope="module")
def sparse():
    rng = np.random.default_rng(1)
    X, B = (
        sp.random(
            n, 4000, density=0.003, format="csr", random_state=rng, data_rvs=rng.standard_normal
        )
        for n in (57, 900)
    )
    return X, B


# -- threads and tiles -----------------------------------------------------------------------------


@every_kernel
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_same_bits_for_any_number_of_threads(kernel, dtype, dense):
    X, B = dense
    alone = kernel_values(kernel, X, B, dtype=dtype, n_threads=1)
    for threads in (2, 3):
        np.testing.assert_array_equal(
            kernel_values(kernel, X, B, dtype=dtype, n_threads=threads), alone
        )


@every_kernel
def test_same_bits_for_any_number_of_threads_with_sparse_rows(kernel, sparse):
    X, B = sparse
    for A, C in ((X, B), (X.toarray(), B), (X, B.toarray()[:100])):
        alone = kernel_values(kernel, A, C, n_threads=1, width=128)
        for threads in (2, 3):
            np.testing.assert_array_equal(
                kernel_values(kernel, A, C, n_threads=threads, width=128), alone
            )


@every_kernel
@pytest.mark.parametrize("form", ["dense", "sparse"])
def test_sums_have_the_same_bits_for_any_number_of_threads(kernel, form, dense, sparse):
    X, B = dense if form == "dense" else sparse
    columns = prepare(kernel, B)
    rows = prepare(kernel, X, like=columns if columns.sq is not None else None)
    delta = np.random.default_rng(2).standard_normal(rows.n)
    sums = []
    for threads in (1, 2, 3):
        s = np.ones(columns.n)
        accumulate(rows, Strips(columns, 128 if form == "sparse" else None), delta, s, threads)
        sums.append(s)
    np.testing.assert_array_equal(sums[1], sums[0])
    np.testing.assert_array_equal(sums[2], sums[0])


@every_kernel
@pytest.mark.parametrize("form", ["dense", "sparse"])
@pytest.mark.parametrize(("dtype", "digits"), [(np.float64, 1e-12), (np.float32, 1e-5)])
def test_same_digits_for_any_tile_width(kernel, form, dtype, digits, dense, sparse):
    X, B = dense if form == "dense" else sparse
    B = B[:701]
    usual = kernel_values(kernel, X, B, dtype=dtype)
    for width in (1, 7, 100, 256, 5000) if form == "dense" else (50, 256, 5000):
        values = kernel_values(kernel, X, B, dtype=dtype, width=width)
        if kernel.name in ("rbf", "laplacian"):  # relative to each value
            np.testing.assert_allclose(values, usual, rtol=digits, atol=0)
        else:  # a sum of terms of either sign has digits only relative to the largest value
            np.testing.assert_allclose(values, usual, rtol=0, atol=digits * np.abs(usual).max())


def test_a_block_is_written_where_it_is_wanted(dense):
    X, _ = dense
    side = prepare(RBF(0.3), X, dtype=np.float64)
    known = np.exp(-0.3 * np.square(X[:, None] - X[None]).sum(axis=2))
    np.testing.assert_allclose(block(side, Strips(side)), known, rtol=0, atol=1e-12)
    room = np.zeros((len(X) + 2, len(X)), order="F")
    block(side, Strips(side, 7), 2, room[1:-1])
    np.testing.assert_allclose(room[1:-1], known, rtol=0, atol=1e-12)
    assert not room[[0, -1]].any()


def test_every_tile_comes_once_and_those_of_a_strip_in_order(dense):
    X, B = dense
    columns = prepare(RBF(0.1), B)
    seen = np.zeros((len(X), len(B)), int)
    last_of_strip: dict[int, int] = {}
    makers: dict[int, set[int]] = {}

    def consume(first, last, start, end, values):
        assert values.shape == (last - first, end - start)
        assert last_of_strip.get(start, 0) == first
        last_of_strip[start] = last
        makers.setdefault(start, set()).add(threading.get_ident())
        seen[first:last, start:end] += 1

    for_each_tile(prepare(RBF(0.1), X, like=columns), Strips(columns, 300), consume, 3)
    assert (seen == 1).all()
    assert all(len(threads) == 1 for threads in makers.values())


# -- the exponential -------------------------------------------------------------------------------


def own_exp(x):
    values = x.reshape(1, -1).copy()
    zeros = np.zeros(values.shape[1], x.dtype)
    exp_rows(values, 1.0, 0.0, zeros[:1], zeros)
    return values[0]


def arguments(least, dtype):
    """The whole range, evenly and towards zero, and the places where the integer part of x / ln 2
    changes.
    """
    rng = np.random.default_rng(3)
    steps = (np.arange(0, int(-least / np.log(2)) + 1) + 0.5) * -np.log(2)
    near_steps = np.concatenate(
        [np.nextafter(steps.astype(dtype), dtype(end)) for end in (-np.inf, 0)]
        + [steps.astype(dtype)]
    )
    x = np.concatenate(
        [
            np.linspace(least, 0, 200_001),
            -np.logspace(-30, np.log10(-least), 50_000),
            least * rng.random(100_000),
            [0.0, -0.0],
        ]
    )
    x = np.concatenate([x.astype(dtype), near_steps])
    return x[x >= least]


def test_exp_float32():
    x = arguments(-87.0, np.float32)
    np.testing.assert_allclose(
        own_exp(x).astype(np.float64), np.exp(x.astype(np.float64)), rtol=1e-6
    )
    np.testing.assert_allclose(own_exp(x), np.exp(x), rtol=1e-6)


def test_exp_float64():
    x = arguments(-708.0, np.float64)
    np.testing.assert_allclose(own_exp(x), np.exp(x), rtol=1e-14)


@pytest.mark.parametrize(("dtype", "least"), [(np.float32, -87.0), (np.float64, -708.0)])
def test_exp_outside_its_range(dtype, least):
    """Below, zero and never a denormal, which would be slow; above, one: a squared distance is
    never negative but by rounding.
    """
    x = np.array([least * 1.001, least * 2, least * 1e10, -0.9 * np.finfo(dtype).max], dtype)
    small = own_exp(x)
    assert np.all(small == 0.0)
    np.testing.assert_array_equal(
        own_exp(np.array([0.0, 1e-30, 1e-3, 5.0, 1e10], dtype)), np.ones(5)
    )


def test_exp_takes_norms_along():
    rng = np.random.default_rng(4)
    values, row, column = rng.standard_normal((5, 7)), rng.random(5), rng.random(7)
    expected = np.exp(np.minimum(0.0, 0.6 * values - 0.3 * (row[:, None] + column)))
    exp_rows(values, 0.6, -0.3, row, column)
    np.testing.assert_allclose(values, expected, rtol=1e-14)


def test_no_self_similarity_exceeds_one(dense):
    X, _ = dense
    for dtype in (np.float32, np.float64):
        K = kernel_values(RBF(0.5), 100 * X, 100 * X, dtype=dtype)
        assert K.max() <= 1.0


# -- digits ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("offset", [0.0, 1e2, 1e4, 1e6])
@pytest.mark.parametrize("kind", ["rbf", "laplacian"])
def test_rows_far_from_the_origin_keep_their_digits(kind, offset):
    """Norms of 1e4 and differences of 1: without centring, float32 has no digit left of |x|^2 +
    |z|^2 - 2 x.z.
    """
    rng = np.random.default_rng(5)
    X, B = (offset + rng.standard_normal((n, 6)) for n in (20, 30))
    kernel = KERNELS[kind]
    exact = kernel_matrix(kind, X, B, gamma=0.1)
    assert prepare(kernel, B).dtype == np.float32  # centring cures it: no need for float64
    values = kernel_values(kernel, X, B)
    assert values.dtype == np.float32
    # 2^-24 * gamma |x - mean|^2 and some: five digits; and the rounding of the input itself, which
    # float64 has at an offset of 1e6: none
    assert np.max(np.abs(values - exact.astype(np.float64))) < 5e-6
    in_float64 = kernel_values(kernel, X, B, dtype=np.float64)
    assert np.max(np.abs(in_float64 - exact.astype(np.float64))) < 1e-12 * max(1.0, offset)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix], ids=["dense", "sparse"])
def test_one_unscaled_feature_falls_back_to_float64(form):
    """A feature that spreads over 1e4 cannot be centred away: gamma |x|^2 = 1e8 costs eight digits,
    and float32 has seven.
    """
    rng = np.random.default_rng(6)
    X = rng.standard_normal((40, 5))
    X[:, 0] = rng.uniform(-1e4, 1e4, 40)
    B = X[::-1] + 0.3 * rng.standard_normal((40, 5))  # close pairs, so that values are not all zero
    kernel = RBF(1.0)
    exact = kernel_matrix("rbf", X, B, gamma=1.0)
    assert np.sort(exact.max(axis=1))[20] > 0.05
    values = kernel_values(kernel, form(X), form(B))
    assert values.dtype == np.float64
    # four digits are lost to 1e8 = gamma |x|^2, and twelve are left; the bound that the kernel
    # itself gives is kept
    worst = np.max(np.abs(values - exact.astype(np.float64)))
    assert worst < 1e-7
    assert worst <= kernel.error(
        float((B**2).sum(axis=1).max()), 5, float(np.finfo(np.float64).eps) / 2
    )


def test_sparse_rows_with_large_norms_keep_their_digits(sparse):
    """Sparse rows are not centred; their norms decide."""
    X, B = (1e4 * A[:40] for A in sparse)
    gamma = 1e-7
    values = kernel_values(RBF(gamma), X, B)
    exact = kernel_matrix(
        "rbf", X[:, :1000], B[:, :1000], gamma=gamma
    )  # the twin is slow, so the first features only
    np.testing.assert_allclose(
        kernel_values(RBF(gamma), sp.csr_matrix(X[:, :1000]), B[:, :1000]),
        exact.astype(np.float64),
        atol=FLOAT32_ERROR,
    )
    np.testing.assert_allclose(values, RBF(gamma)(X.toarray(), B.toarray()), atol=FLOAT32_ERROR)


@pytest.mark.parametrize(
    ("kernel", "largest", "safe"),
    [
        (RBF(1.0), 1.0, True),
        (RBF(1.0), 10.0, True),
        (RBF(1.0), 1e4, False),
        (RBF(1e-4), 1e4, True),
        (RBF(1e4), 1.0, False),
        (Linear(), 1e8, True),
        (Linear(), 1e35, False),  # a product of two such rows overflows
        (Polynomial(1.0, 3, 0.0), 1e3, True),
        (Polynomial(1.0, 9, 0.0), 1e8, False),  # (1e8)^9 overflows float32
        (Sigmoid(1.0, 0.0), 1.0, True),
        (Sigmoid(1.0, 0.0), 1e6, False),
        (Laplacian(1.0), 1.0, True),
        (Laplacian(1.0), 1e8, False),
    ],
    ids=repr,
)
def test_which_type_is_safe(kernel, largest, safe):
    assert safe_dtype(kernel, np.array([0.0, largest]), 10) == (np.float32 if safe else np.float64)


@pytest.mark.parametrize("unit", [1e-25, 1e-20, 1e-12, 1.0, 1e12, 1e20])
@pytest.mark.parametrize("name", ["linear", "rbf", "poly", "sigmoid", "laplacian"])
def test_the_unit_of_the_features_does_not_matter(name, unit):
    """Charges in coulomb or distances in metres between stars: products of float32 values that are
    fine may be zero or infinite.
    """
    rng = np.random.default_rng(11)
    X, B = (rng.standard_normal((n, 4)) for n in (8, 9))
    gamma = 0.3
    expected = kernel_matrix(name, X, B, gamma=gamma).astype(np.float64)
    if name == "linear":
        kernel, factor = Linear(), unit**2
    elif name == "laplacian":
        kernel, factor = Laplacian(gamma / unit), 1.0
    else:
        kernel, factor = (
            {"rbf": RBF, "poly": Polynomial, "sigmoid": Sigmoid}[name](gamma / unit**2),
            1.0,
        )
    values = kernel_values(kernel, unit * X, unit * B).astype(np.float64) / factor
    np.testing.assert_allclose(
        values, expected, rtol=0, atol=FLOAT32_ERROR * np.abs(expected).max()
    )


@pytest.mark.parametrize("gamma", [1e-6, 1e-4])
def test_small_powers_do_not_underflow(gamma):
    """(1e-6)^9 is zero in float32."""
    X = np.random.default_rng(12).standard_normal((8, 4))
    kernel = Polynomial(gamma, 9, 0.0)
    exact = kernel_matrix("poly", X, X, gamma=gamma, degree=9).astype(np.float64)
    np.testing.assert_allclose(
        kernel_values(kernel, X, X), exact, rtol=0, atol=FLOAT32_ERROR * np.abs(exact).max()
    )


def test_values_beyond_float32_do_not_overflow():
    """(gamma x.z)^degree may leave the range of float32 where x.z does not."""
    X = 1e4 * np.random.default_rng(7).standard_normal((12, 4))
    kernel = Polynomial(1.0, 6, 0.0)
    exact = kernel_matrix("poly", X, X, gamma=1.0, degree=6).astype(np.float64)
    assert np.abs(exact).max() > np.finfo(np.float32).max
    values = kernel_values(kernel, X, X)
    assert np.all(np.isfinite(values))
    np.testing.assert_allclose(values, exact, rtol=0, atol=1e-12 * np.abs(exact).max())


@pytest.mark.parametrize("far", [1e2, 1e4, 1e10, 1e18, 1e25, 1e37])
@pytest.mark.parametrize("kind", ["rbf", "laplacian"])
def test_new_rows_far_from_the_basis_have_value_zero(kind, far, dense):
    """The type is chosen by the basis; rows to predict may lie anywhere, also where float32
    overflows.
    """
    B = dense[1][:50]
    X = np.vstack([B[:3], far * np.ones((1, 9)), -far * np.ones((1, 9)), far * np.eye(9)[:1]])
    values = kernel_values(KERNELS[kind], X, B)
    np.testing.assert_allclose(values[:3], KERNELS[kind](X[:3], B), atol=1e-5)
    assert np.all(values[3:5] < 1e-30)
    assert np.all(values[5] < (1e-3 if far < 1e3 else 1e-30))


@pytest.mark.parametrize("far", [1e10, 1e25])
def test_new_rows_of_a_linear_kernel_may_be_large(far, dense):
    B = dense[1][:50]
    X = far * B[:5]
    np.testing.assert_allclose(
        kernel_values(Linear(), X, B), X @ B.T, atol=1e-5 * far * np.abs(B[:5] @ B.T).max()
    )


def test_preparing_keeps_the_rows_and_centres_a_copy(dense):
    X, B = dense
    before = B.copy()
    columns = prepare(RBF(0.1), B + 50.0)
    np.testing.assert_allclose(columns.shift, B.mean(axis=0) + 50.0, rtol=1e-12)
    np.testing.assert_allclose(columns.X.mean(axis=0), 0.0, atol=1e-6)
    np.testing.assert_array_equal(B, before)
    rows = prepare(RBF(0.1), X + 50.0, like=columns)
    assert rows.dtype == columns.dtype and rows.shift is columns.shift
    assert prepare(Linear(), B).shift is None  # an inner product changes with the centre


def test_an_exact_copy_has_the_rows_as_given(dense):
    _, B = dense
    columns = prepare(RBF(0.1), B + 50.0)
    some = columns.take(np.arange(10, 40)).take(np.array([3, 1, 20]))
    exact = some.exact()
    assert columns.dtype == np.float32 and exact.dtype == np.float64
    np.testing.assert_allclose(exact.X - exact.X[0], B[[13, 11, 30]] - B[13], atol=1e-12)
    strided = columns.take(slice(5, 50)).take(np.array([2, 0]))
    np.testing.assert_allclose(strided.exact().X[0] - strided.exact().X[1], B[7] - B[5], atol=1e-12)


# -- sums ------------------------------------------------------------------------------------------


@every_kernel
@pytest.mark.parametrize("form", ["dense", "sparse", "mixed"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sums_over_rows_equal_the_product(kernel, form, dtype, dense, sparse):
    X, B = dense if form == "dense" else sparse
    if form == "mixed":
        B = B.toarray()[:300]
    columns = prepare(kernel, B, dtype=np.dtype(dtype))
    rows = prepare(kernel, X, like=columns if columns.sq is not None else None)
    rng = np.random.default_rng(8)
    delta, s0 = rng.standard_normal(rows.n), rng.standard_normal(columns.n)
    K = kernel_values(kernel, X, B, dtype=dtype).astype(np.float64)
    s = s0.copy()
    accumulate(rows, Strips(columns), delta, s)
    size = np.abs(delta) @ np.abs(K) + 1.0
    # rounding of the values and of delta to the type, and of sums of four in it
    assert np.max(np.abs(s - s0 - delta @ K) / size) < (
        2e-6 if dtype == np.float32 and kernel.name != "callable" else 1e-14
    )


@every_kernel
@pytest.mark.parametrize("form", ["dense", "sparse"])
def test_rows_with_a_slot_are_kept_and_others_leave_no_trace(kernel, form, dense, sparse):
    X, B = dense if form == "dense" else sparse
    columns = prepare(kernel, B)
    rows = prepare(kernel, X, like=columns if columns.sq is not None else None)
    store = np.full((8, columns.n), -7.0, columns.dtype)
    slots = np.full(rows.n, -1)
    slots[[3, 11, 50]] = [6, 0, 2]
    delta = np.random.default_rng(9).standard_normal(rows.n)
    s = np.zeros(columns.n)
    accumulate(rows, Strips(columns), delta, s, 2, slots, store)
    K = kernel_values(kernel, X, B)
    scale = np.abs(K).max()
    np.testing.assert_allclose(store[[6, 0, 2]], K[[3, 11, 50]], rtol=0, atol=1e-5 * scale)
    assert np.all(store[[1, 3, 4, 5, 7]] == -7.0)
    plain = np.zeros(columns.n)
    accumulate(rows, Strips(columns), delta, plain, 2)
    np.testing.assert_array_equal(s, plain)


def test_a_sum_of_thousands_of_float32_terms_keeps_its_digits():
    """Terms are added up in float64: the error does not grow with their number."""
    rng = np.random.default_rng(10)
    X, B = rng.random((6000, 3)), rng.random((5, 3))
    kernel = RBF(0.1)
    columns = prepare(kernel, B, dtype=np.dtype(np.float32))
    rows = prepare(kernel, X, like=columns)
    s = np.zeros(5)
    accumulate(rows, Strips(columns), np.ones(6000), s)
    np.testing.assert_allclose(s, kernel(X, B).sum(axis=0), rtol=5e-7)


# -- edges -----------------------------------------------------------------------------------------


@every_kernel
@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix], ids=["dense", "sparse"])
@pytest.mark.parametrize(("n", "m"), [(0, 5), (5, 0), (0, 0), (1, 1), (1, 300), (300, 1)])
@pytest.mark.filterwarnings("error")
def test_few_rows_or_none(kernel, form, n, m, dense):
    X, B = dense[0][:n], dense[1][:m]
    values = kernel_values(kernel, form(X), form(B), n_threads=2)
    assert values.shape == (n, m)
    if n and m:
        np.testing.assert_allclose(
            values, kernel(X, B), rtol=0, atol=1e-5 * np.abs(kernel(X, B)).max()
        )
    columns = prepare(kernel, form(B))
    rows = prepare(kernel, form(X), like=columns if columns.sq is not None else None)
    s, delta = np.zeros(m), np.arange(1.0, n + 1)
    accumulate(rows, Strips(columns), delta, s, 2)
    np.testing.assert_allclose(s, delta @ values.astype(np.float64), atol=1e-5 * max(1.0, n))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_read_only_operand_can_be_summed_over(dtype, tmp_path, dense):
    """A linear kernel does not copy rows that have its type already: they may be a read-only memory
    map.
    """
    np.save(tmp_path / "X.npy", dense[1].astype(dtype))
    X = np.load(tmp_path / "X.npy", mmap_mode="r")
    for kernel in (Linear(), Polynomial(0.1, 2, 1.0)):
        operand = prepare(kernel, X, dtype=np.dtype(dtype))
        s = np.zeros(len(X))
        accumulate(operand.take(slice(0, 7)), Strips(operand), np.ones(7), s, 2)
        expected = kernel(np.array(X[:7]), np.array(X)).sum(axis=0)
        np.testing.assert_allclose(s, expected, atol=1e-5 * np.abs(expected).max())


def test_scratch_memory_serves_both_types_in_turn(dense):
    X, B = dense
    for dtype in (np.float64, np.float32, np.float64, np.float32):
        values = kernel_values(RBF(0.1), X, B, dtype=dtype)
        np.testing.assert_allclose(values, RBF(0.1)(X, B), atol=1e-6)


@pytest.mark.parametrize("d", [1, 3, 4, 8, 13, 16])
@pytest.mark.parametrize("size", [12.0, 50.0])
def test_distances_of_few_features_by_differences(d, size):
    """Rows of norms that float32 products do not bear: values, sums and bits by differences."""
    rng = np.random.default_rng(d)
    X = rng.standard_normal((700, d)) * np.where(rng.random((700, 1)) < 0.5, 1.0, size)
    kernel = RBF(1.0)
    rows, wide = prepare(kernel, X, alone=True), prepare(kernel, X, dtype=np.float64)
    assert prepare(kernel, X).dtype == np.float64  # against rows that are not known
    assert rows.by_differences and rows.dtype == np.float32 and rows.error() <= FLOAT32_ERROR
    K, exact = np.empty((700, 700), np.float32), block(wide, Strips(wide))
    square(rows, K, 2)
    off = np.abs(K - exact).max()
    assert off <= rows.error() == rows.rounding()
    assert (K == K.T).all() and (K.diagonal() == 1.0).all()
    some = rows.take(np.arange(0, 700, 3))
    np.testing.assert_array_equal(block(some, Strips(rows), 3), K[::3])
    delta, sums = rng.standard_normal(some.n), []
    for n_threads in (1, 2, 3):
        s, store = np.zeros(700), np.zeros((some.n, 700), np.float32)
        accumulate(some, Strips(rows), delta, s, n_threads, np.arange(some.n)[::-1], store)
        np.testing.assert_array_equal(store[::-1], K[::3])
        sums.append(s)
    np.testing.assert_allclose(sums[0], delta @ exact[::3], rtol=0, atol=1e-4)
    assert all((s == sums[0]).all() for s in sums)


def test_when_distances_come_from_differences(dense):
    """Only for an RBF kernel, few dense features, one set of rows, and where float32 needs it."""
    X = 50.0 * dense[1]
    assert prepare(RBF(1.0), X, alone=True).by_differences
    assert not prepare(RBF(1e-6), X, alone=True).by_differences  # products are safe
    assert not prepare(RBF(1.0), X, dtype=np.float64, alone=True).by_differences
    assert not prepare(Laplacian(1.0), X, alone=True).by_differences
    assert not prepare(RBF(1.0), np.tile(X, 2), alone=True).by_differences  # 18 features
    far = prepare(RBF(1.0), 1e6 * X, alone=True)  # not even so
    assert not far.by_differences and far.dtype == np.float64
    finer = prepare(RBF(0.1), dense[1]).finer()
    assert finer is not None and finer.by_differences and finer.finer() is None
    assert finer.error() < prepare(RBF(0.1), dense[1]).error()
    assert prepare(RBF(0.1), np.tile(dense[1], 2)).finer() is None
