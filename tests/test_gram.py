"""Kernel rows within a budget: whatever is cached, restricted, grown or thrown away, the numbers
are those of the full matrix.
"""

import numpy as np
import pytest
import scipy.sparse as sp

from slimsvm.gram import Gram, LinearGram, make_gram
from slimsvm.kernels import RBF, FromCallable, Laplacian, Linear, Polynomial, Precomputed
from slimsvm.tiles import Strips, block, prepare

N = 130


def _data():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N, 5))
    wide = sp.random(
        N, 3000, density=0.005, format="csr", random_state=rng, data_rvs=rng.standard_normal
    )
    return X, wide


X, WIDE = _data()
SQUARE = RBF(0.2)(X)
CASES = {
    "rbf dense float32": (RBF(0.2), X, np.float32),
    "rbf dense float64": (RBF(0.2), X, np.float64),
    "rbf sparse": (RBF(0.05), WIDE, np.float32),
    "poly sparse": (Polynomial(0.1, 2, 1.0), WIDE, np.float64),
    "linear dense": (Linear(), X, np.float32),
    "linear sparse": (Linear(), WIDE, np.float64),
    "laplacian": (Laplacian(0.2), X, np.float64),
    "precomputed": (Precomputed(), SQUARE, None),
    "callable": (FromCallable(lambda A, B: A @ B.T + 1.0), X, None),
}
every_case = pytest.mark.parametrize("case", CASES)
ROW = N * 8  # bytes of a row in float64


def operand_of(case):
    kernel, data, dtype = CASES[case]
    return prepare(kernel, data, dtype=None if dtype is None else np.dtype(dtype))


def full_matrix(case):
    kernel, data, _ = CASES[case]
    return (
        data
        if isinstance(kernel, Precomputed)
        else kernel(data.toarray() if sp.issparse(data) else data)
    )


def digits(case, K):
    """What rounding of values (and of coefficients) to the type may cost, relative to the largest
    value.
    """
    return (3e-6 if CASES[case][2] == np.float32 else 1e-13) * max(1.0, np.abs(K).max())


def grams(case, budgets=(0, 7 * ROW, 1000 * ROW)):
    for budget in budgets:
        for threads in (1, 2):
            yield make_gram(operand_of(case), budget, threads)


def store_bytes(gram):
    return gram._flat.nbytes


@every_case
def test_blocks(case):
    K = full_matrix(case)
    rng = np.random.default_rng(1)
    for gram in grams(case):
        last = np.empty(0, int)
        for size in (5, 1, 40, N, 2):
            # half of the rows from the last block, as a solver asks for them; in any order
            fresh = np.setdiff1d(rng.permutation(N)[:size], last[: size // 2])
            rows = rng.permutation(np.concatenate([last[: size // 2], fresh]))[:size].astype(int)
            block = gram.block(rows)
            np.testing.assert_allclose(block, K[np.ix_(rows, rows)], rtol=0, atol=digits(case, K))
            gram.add(
                rows, np.ones(rows.size), np.zeros(N)
            )  # so that some of the next block is cached
            last = rows


@every_case
def test_additions(case):
    K = full_matrix(case)
    rng = np.random.default_rng(2)
    for gram in grams(case):
        s, total = np.zeros(N), np.zeros(N)
        for _ in range(8):
            rows = rng.permutation(N)[: rng.integers(1, 30)]
            delta = rng.standard_normal(rows.size)
            keep = rng.random(rows.size) < 0.5
            gram.add(rows, delta, s, keep)
            total += delta @ K[rows]
        # eight additions of up to 30 terms of size |delta| <= 3
        np.testing.assert_allclose(s, total, rtol=0, atol=30 * digits(case, K))


@every_case
def test_products_with_rows_outside(case):
    K = full_matrix(case)
    rng = np.random.default_rng(3)
    for gram in grams(case, (0, 50 * ROW)):
        gram.restrict(np.arange(0, N, 2))
        rows, columns = rng.permutation(N)[:25], np.arange(1, N, 2)
        delta = rng.standard_normal(25)
        s = gram.products(rows, delta, columns)
        assert s.shape == columns.shape
        np.testing.assert_allclose(
            s, delta @ K[np.ix_(rows, columns)], rtol=0, atol=25 * digits(case, K)
        )
    assert gram.products(np.empty(0, int), np.empty(0), np.arange(3)).tolist() == [0.0, 0.0, 0.0]


@every_case
def test_restricting_and_growing(case):
    """A random life of a cache: additions, fewer columns, more columns, in turn."""
    K = full_matrix(case)
    rng = np.random.default_rng(4)
    for gram in grams(case, (0, 7 * ROW, 40 * ROW, 1000 * ROW)):
        columns = np.arange(N)
        for round_ in range(14):
            for _ in range(3):
                rows = rng.permutation(columns)[: rng.integers(1, 20)]
                delta, s = rng.standard_normal(rows.size), np.zeros(columns.size)
                gram.add(rows, delta, s)
                np.testing.assert_allclose(
                    s, delta @ K[np.ix_(rows, columns)], rtol=0, atol=20 * digits(case, K)
                )
                np.testing.assert_allclose(
                    gram.block(rows), K[np.ix_(rows, rows)], rtol=0, atol=digits(case, K)
                )
            assert store_bytes(gram) <= gram.budget
            if round_ % 3 == 2 and columns.size < N:
                back = rng.permutation(np.setdiff1d(np.arange(N), columns))[: rng.integers(1, N)]
                gram.grow(back)
                columns = np.concatenate([columns, back])
            elif columns.size > 20:
                columns = columns[np.sort(rng.permutation(columns.size)[: int(0.7 * columns.size)])]
                gram.restrict(columns)
            np.testing.assert_array_equal(gram.columns, columns)
            assert gram.width == columns.size


@every_case
def test_rows_outside_of_the_active_columns_can_be_added(case):
    """A solver restricts columns while rows that left still have coefficients."""
    K = full_matrix(case)
    for gram in grams(case):
        columns = np.arange(0, N, 3)
        gram.restrict(columns)
        rows, delta, s = (
            np.array([1, 2, 4, 6]),
            np.array([1.0, -2.0, 0.5, 3.0]),
            np.zeros(columns.size),
        )
        for _ in range(3):
            gram.add(rows, delta, s)
        np.testing.assert_allclose(
            s, 3 * delta @ K[np.ix_(rows, columns)], rtol=0, atol=20 * digits(case, K)
        )


@every_case
def test_diagonal(case):
    K = full_matrix(case)
    diagonal = make_gram(operand_of(case), 0).diag()
    assert diagonal.dtype == np.float64
    np.testing.assert_allclose(diagonal, np.diag(K), rtol=0, atol=digits(case, K))


def test_results_have_the_same_bits_for_any_number_of_threads():
    rng = np.random.default_rng(5)
    X = rng.standard_normal((5000, 4))
    results = []
    for threads in (1, 2, 3):
        gram = make_gram(prepare(RBF(0.2), X), 60 * 5000 * 4, threads)
        s = np.zeros(5000)
        pick = np.random.default_rng(6)
        for _ in range(4):
            rows = pick.permutation(200)[:50]
            gram.add(rows, pick.standard_normal(50), s)
        block = gram.block(np.arange(150))
        gram.restrict(np.arange(0, 5000, 2))
        more = np.zeros(2500)
        gram.add(np.arange(20), np.ones(20), more)
        gram.grow(np.arange(1, 5000, 2))
        rest = np.zeros(5000)
        gram.add(np.arange(20), np.ones(20), rest)
        results.append((s, block, more, rest))
    for other in results[1:]:
        for ours, theirs in zip(results[0], other, strict=True):
            np.testing.assert_array_equal(ours, theirs)


# -- the budget ------------------------------------------------------------------------------------


@pytest.mark.parametrize("budget", [0, 1, ROW - 1, ROW, 10 * ROW + 5, N * ROW, 10 * N * ROW])
def test_the_budget_is_obeyed(budget):
    gram = Gram(operand_of("rbf dense float64"), budget)
    rng = np.random.default_rng(7)
    most = min(N, budget // ROW)
    columns = np.arange(N)
    for _ in range(20):
        gram.add(rng.permutation(columns)[:9], np.ones(9), np.zeros(columns.size))
        assert store_bytes(gram) <= budget
        assert np.count_nonzero(gram.cached(np.arange(N))) <= most
    columns = columns[: N // 2]  # narrower rows: twice as many fit
    gram.restrict(columns)
    for _ in range(40):
        gram.add(rng.permutation(columns)[:9], np.ones(9), np.zeros(columns.size))
        assert store_bytes(gram) <= budget
        assert np.count_nonzero(gram.cached(np.arange(N))) <= min(N, budget // (ROW // 2))


def test_a_budget_for_all_rows_takes_no_more_than_all_rows():
    assert store_bytes(Gram(operand_of("rbf dense float64"), 1e12)) <= N * ROW
    assert store_bytes(Gram(operand_of("rbf dense float32"), 1e12)) <= N * ROW // 2


def test_a_linear_kernel_needs_no_cache():
    gram = make_gram(operand_of("linear dense"), 1e9)
    assert isinstance(gram, LinearGram) and store_bytes(gram) == 0 and not gram.full
    gram.add(np.arange(10), np.ones(10), np.zeros(N))
    assert gram.n_values <= 10 + N  # a pass over the rows each way, not 10 * N kernel values


# -- what is kept ----------------------------------------------------------------------------------


def cached(gram):
    return set(np.flatnonzero(gram.cached(np.arange(N))).tolist())


def add(gram, *rows, keep=None):
    rows = np.array(rows)
    gram.add(
        rows,
        np.ones(rows.size),
        np.zeros(gram.width),
        None if keep is None else np.full(rows.size, keep),
    )


def test_cached_rows_are_not_computed_again():
    gram = Gram(operand_of("rbf dense float32"), 20 * ROW)
    add(gram, 1, 2, 3)
    assert gram.n_values == 3 * N and cached(gram) == {1, 2, 3}
    add(gram, 3, 1, 2)
    assert gram.n_values == 3 * N
    add(gram, 3, 4)
    assert gram.n_values == 4 * N


def test_values_of_a_block_are_counted_and_known_ones_are_not():
    gram = Gram(operand_of("rbf dense float32"), 20 * ROW)
    gram.block(np.arange(10))
    assert gram.n_values == 100
    gram.block(np.arange(10)[::-1])  # the last block is at hand
    assert gram.n_values == 100
    gram.block(np.arange(5, 15))  # five rows are new
    assert gram.n_values == 100 + 5 * 10
    add(gram, *range(20, 30))
    before = gram.n_values
    gram.block(np.arange(20, 30))  # read from the cache
    assert gram.n_values == before


def test_values_of_products_and_of_growth_are_counted():
    gram = Gram(operand_of("rbf dense float32"), 20 * ROW)
    gram.products(np.arange(4), np.ones(4), np.arange(50))
    assert gram.n_values == 4 * 50
    gram.restrict(np.arange(30))
    add(gram, 0, 1, 2)
    assert gram.n_values == 4 * 50 + 3 * 30
    gram.grow(np.arange(30, 40))  # three cached rows get ten more columns
    assert gram.n_values == 4 * 50 + 3 * 30 + 3 * 10
    assert {0, 1, 2} <= cached(gram)


def test_rows_not_to_be_kept_are_kept_when_they_come_back():
    """A variable that went to its bound seldom moves again; one that did may do so once more."""
    gram = Gram(operand_of("rbf dense float32"), 20 * ROW)
    add(gram, 1, 2, keep=False)
    assert cached(gram) == set()
    add(gram, 2, 3, keep=False)
    assert cached(gram) == {2}


def test_the_least_recently_used_go_first():
    gram = Gram(operand_of("rbf dense float64"), 4 * ROW)
    for row in range(4):
        add(gram, row)
    assert gram.full and cached(gram) == {0, 1, 2, 3}
    for _ in range(10):  # 1 and 3 are in use, 0 and 2 grow old
        add(gram, 1)
        add(gram, 3)
    add(gram, 10)
    add(gram, 11)
    assert cached(gram) == {1, 3, 10, 11}


def test_rows_used_in_the_same_call_are_not_thrown_out():
    K = full_matrix("rbf dense float64")
    gram = Gram(operand_of("rbf dense float64"), 4 * ROW)
    add(gram, 0, 1, 2, 3)
    for _ in range(30):
        add(gram, 0)
    rows = np.array([20, 0, 21, 1, 22, 23, 24])
    s = np.zeros(N)
    gram.add(rows, np.ones(7), s)
    assert {0, 1} <= cached(gram)
    np.testing.assert_allclose(s, K[rows].sum(axis=0), atol=1e-12)


def test_a_sweep_through_more_rows_than_fit_still_hits():
    """Cyclic use is the worst case of least recently used: each row would be thrown out just before
    its turn.
    """
    gram = Gram(operand_of("rbf dense float64"), 60 * ROW)
    for _ in range(3):
        for start in range(0, 100, 10):
            add(gram, *range(start, start + 10))
    first_sweep = 100 * N
    assert (
        gram.n_values < 3 * first_sweep - 60 * N
    )  # at least half of the cache was of use in one of the two later sweeps


def test_rows_survive_a_restriction_and_growth():
    gram = Gram(operand_of("rbf dense float64"), 10 * ROW)
    add(gram, *range(10))
    assert gram.full
    gram.restrict(np.arange(0, N, 2))
    assert cached(gram) == set(range(10)) and not gram.full  # narrower rows leave room for more
    add(gram, *range(20, 30))
    assert cached(gram) == {*range(10), *range(20, 30)}
    before = gram.n_values
    gram.grow(np.arange(1, N, 2))  # only ten rows fit now: the newest
    assert cached(gram) == set(range(20, 30))
    assert gram.n_values == before + 10 * (N // 2)


@pytest.mark.parametrize("case", ["rbf dense float32", "linear dense"])
def test_upgrading_to_float64(case):
    """From float32 on to float64: all columns, full precision, and the count of values goes on."""
    K = full_matrix(case)
    gram = make_gram(operand_of(case), 20 * ROW, 2)
    assert gram.dtype == np.float32 and gram.rounding > 0
    add(gram, 1, 2, 3)
    gram.restrict(np.arange(50))
    before = gram.n_values
    gram.upgrade()
    assert (
        gram.dtype == np.float64
        and gram.rounding == 0
        and gram.width == N
        and gram.n_values == before
    )
    assert store_bytes(gram) <= 20 * ROW
    s = np.zeros(N)
    gram.add(np.arange(20), np.ones(20), s)
    np.testing.assert_allclose(s, K[:20].sum(axis=0), rtol=0, atol=1e-12)


def test_upgrading_to_differences_where_they_suffice():
    """Few features: float32 with smaller errors first, float64 where these are too large, too."""
    X = np.random.default_rng(5).standard_normal((N, 5))
    rows = prepare(RBF(4.0), X, dtype=np.float32)
    exact = rows.exact()
    K = block(exact, Strips(exact))
    gram = make_gram(rows, 20 * ROW, 2)
    add(gram, 1, 2, 3)
    before, n_values = gram.rounding, gram.n_values
    gram.upgrade(0.9 * before)
    assert gram.dtype == np.float32 and gram.operand.by_differences
    assert 0 < gram.rounding < 0.25 * before and gram.n_values == n_values
    delta, s = np.random.default_rng(6).standard_normal(N), np.zeros(N)
    gram.add(np.arange(N), delta, s)
    assert np.max(np.abs(s - delta @ K)) <= gram.rounding * np.linalg.norm(delta)
    gram.upgrade(0.9 * gram.rounding)
    assert gram.dtype == np.float64 and gram.rounding == 0
    gram = make_gram(rows, 20 * ROW, 2)
    gram.upgrade(1e-12)  # at once, where differences would not do
    assert gram.dtype == np.float64


def test_the_rounding_error_said_is_larger_than_the_one_made():
    """What float32 does to s, per unit of the norm of the coefficients."""
    K = full_matrix("rbf dense float64")
    gram = make_gram(operand_of("rbf dense float32"), 0)
    rng = np.random.default_rng(8)
    for _ in range(10):
        delta, s = rng.standard_normal(N), np.zeros(N)
        gram.add(np.arange(N), delta, s)
        assert np.max(np.abs(s - delta @ K)) <= gram.rounding * np.linalg.norm(delta)
