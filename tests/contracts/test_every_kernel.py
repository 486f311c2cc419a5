"""What every kernel must do, alone (``kernel(X, Z)``) and through the tiles; a new one joins by its
place in KERNELS.
"""

import pickle
from dataclasses import FrozenInstanceError

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics import pairwise
from sklearn.svm import SVC as ReferenceSVC

from slimsvm.kernels import (
    KERNELS,
    RBF,
    FromCallable,
    Kernel,
    Laplacian,
    Linear,
    Polynomial,
    Precomputed,
    Sigmoid,
    gamma_value,
    make_kernel,
)
from slimsvm.rows import MemoryRows
from slimsvm.tiles import kernel_values
from tests.reference.naive import kernel_matrix, weighted_variance


def _poly2(X, Z):
    """A kernel as a user writes it; takes dense and sparse blocks, as they were given, and answers
    in float64.
    """
    dots = X.astype(np.float64) @ Z.astype(np.float64).T
    return (np.asarray(dots.toarray() if sp.issparse(dots) else dots) + 1.0) ** 2


# the kernel, and the arguments of its naive twin
EVERY: dict[str, tuple[Kernel, dict]] = {
    "linear": (Linear(), {"name": "linear"}),
    "rbf": (RBF(0.3), {"name": "rbf", "gamma": 0.3}),
    "rbf narrow": (RBF(4.0), {"name": "rbf", "gamma": 4.0}),
    "poly": (Polynomial(0.7, 3, 0.5), {"name": "poly", "gamma": 0.7, "degree": 3, "coef0": 0.5}),
    "poly degree 1": (
        Polynomial(0.7, 1, -0.5),
        {"name": "poly", "gamma": 0.7, "degree": 1, "coef0": -0.5},
    ),
    "poly degree 6": (
        Polynomial(0.4, 6, 1.0),
        {"name": "poly", "gamma": 0.4, "degree": 6, "coef0": 1.0},
    ),
    "poly degree 0": (
        Polynomial(0.4, 0, 1.0),
        {"name": "poly", "gamma": 0.4, "degree": 0, "coef0": 1.0},
    ),
    "sigmoid": (Sigmoid(0.2, -0.3), {"name": "sigmoid", "gamma": 0.2, "coef0": -0.3}),
    "laplacian": (Laplacian(0.25), {"name": "laplacian", "gamma": 0.25}),
    "callable": (FromCallable(_poly2), {"name": "poly", "gamma": 1.0, "degree": 2, "coef0": 1.0}),
}
every_kernel = pytest.mark.parametrize(("kernel", "twin"), EVERY.values(), ids=EVERY.keys())
OF_SCIKIT_LEARN = {
    Linear: (pairwise.linear_kernel, ()),
    RBF: (pairwise.rbf_kernel, ("gamma",)),
    Polynomial: (pairwise.polynomial_kernel, ("gamma", "degree", "coef0")),
    Sigmoid: (pairwise.sigmoid_kernel, ("gamma", "coef0")),
    Laplacian: (pairwise.laplacian_kernel, ("gamma",)),
}


def test_the_list_above_is_complete():
    assert {type(kernel) for kernel, _ in EVERY.values()} == {*KERNELS.values(), FromCallable} - {
        Precomputed
    }


@pytest.fixture(scope="module")
def data():
    """Dense rows with many zeros, so that they are a fair sparse example too; one row is all zeros,
    one stands on both sides.
    """
    rng = np.random.default_rng(3)
    X, Z = rng.standard_normal((23, 7)), rng.standard_normal((17, 7))
    X[rng.random(X.shape) < 0.5] = 0.0
    Z[rng.random(Z.shape) < 0.5] = 0.0
    X[4] = 0.0
    Z[3] = X[5]
    return X, Z


@pytest.fixture(scope="module")
def wide():
    """Truly sparse rows: so many features that the tiles take the sparse path, with an empty row
    and an empty column.
    """
    rng = np.random.default_rng(4)
    X, Z = (
        sp.random(
            n, 3000, density=0.004, format="csr", random_state=rng, data_rvs=rng.standard_normal
        )
        for n in (31, 19)
    )
    X = sp.csr_matrix(sp.vstack([X[:7], sp.csr_matrix((1, 3000)), X[7:], Z[:2]]))
    return X, Z


def scale(K):
    return np.abs(K).max()


# -- values ----------------------------------------------------------------------------------------


@every_kernel
def test_values_equal_the_twin(kernel, twin, data):
    X, Z = data
    expected = kernel_matrix(X=X, Z=Z, **twin).astype(np.float64)
    # float64 throughout: a few roundings of products of d = 7 terms, times the degree; relative to
    # the largest value
    np.testing.assert_allclose(kernel(X, Z), expected, rtol=1e-13, atol=1e-14 * scale(expected))
    np.testing.assert_allclose(
        kernel_values(kernel, X, Z, dtype=np.float64),
        expected,
        rtol=1e-13,
        atol=1e-14 * scale(expected),
    )


@pytest.mark.parametrize(
    "kernel", [kernel for kernel, _ in EVERY.values() if type(kernel) in OF_SCIKIT_LEARN], ids=repr
)
def test_values_equal_scikit_learns(kernel, data):
    X, Z = data
    if getattr(kernel, "degree", 1) == 0:
        expected = np.ones(
            (len(X), len(Z))
        )  # pairwise.polynomial_kernel refuses what sklearn.svm takes
    else:
        function, names = OF_SCIKIT_LEARN[type(kernel)]
        expected = function(X, Z, **{name: getattr(kernel, name) for name in names})
    np.testing.assert_allclose(kernel(X, Z), expected, rtol=1e-12, atol=1e-13 * scale(expected))


@every_kernel
def test_one_argument_means_the_same_rows_twice(kernel, twin, data):
    X, _ = data
    np.testing.assert_array_equal(kernel(X), kernel(X, X))


@every_kernel
def test_symmetric(kernel, twin, data):
    X, Z = data
    K = kernel(X)
    np.testing.assert_allclose(K, K.T, rtol=1e-13, atol=1e-15 * scale(K))
    np.testing.assert_allclose(kernel(X, Z), kernel(Z, X).T, rtol=1e-13, atol=1e-15 * scale(K))
    tiled = kernel_values(kernel, X, X, dtype=np.float64)
    np.testing.assert_allclose(tiled, tiled.T, rtol=1e-13, atol=1e-15 * scale(K))


@every_kernel
def test_diag(kernel, twin, data, wide):
    for X in (data[0], data[0][:1], sp.csr_matrix(data[0]), wide[0]):
        K = kernel(X)
        diagonal = kernel.diag(X)
        assert diagonal.shape == (X.shape[0],) and diagonal.dtype == np.float64
        np.testing.assert_allclose(diagonal, np.diag(K), rtol=1e-13, atol=1e-15 * scale(K))


@every_kernel
def test_float32_is_near_float64(kernel, twin, data):
    X, Z = data
    exact = kernel_values(kernel, X, Z, dtype=np.float64)
    # five digits: 2^-24 times the degree, the number of terms and, in an exponent, gamma |x|^2
    # (below 100 here)
    for A, B in ((X, Z), (X.astype(np.float32), Z.astype(np.float32))):
        single = kernel_values(kernel, A, B, dtype=np.float32)
        if kernel.name != "callable":
            assert single.dtype == np.float32
        np.testing.assert_allclose(single, exact, atol=2e-5 * scale(exact), rtol=0)


@every_kernel
def test_the_error_bound_holds(kernel, twin, data):
    """``error`` decides whether float32 is safe: it must not promise more than is kept, nor be
    absurdly pessimistic.
    """
    X, Z = data
    if kernel.name == "callable":
        return
    exact = kernel_matrix(X=X, Z=Z, **twin)
    largest = max((X**2).sum(axis=1).max(), (Z**2).sum(axis=1).max())
    for dtype in (np.float32, np.float64):
        bound = kernel.error(float(largest), X.shape[1], float(np.finfo(dtype).eps) / 2)
        values = kernel_values(kernel, X.astype(dtype), Z.astype(dtype), dtype=dtype)
        inputs = kernel_matrix(
            X=X.astype(dtype), Z=Z.astype(dtype), **twin
        )  # rounding of the input is not the kernel's fault
        worst = float(np.abs(values.astype(np.longdouble) - inputs).max())
        # relative to the largest value a row of that norm can have
        reference = max(
            float(np.abs(exact).max()),
            float(np.abs(kernel.diag_from_sq(np.array([largest]))).max()),
        )
        assert worst <= bound * reference
        assert bound < 1e6 * np.finfo(dtype).eps


@pytest.mark.parametrize(
    "name", [name for name, (kernel, _) in EVERY.items() if kernel.differentiable]
)
def test_slope_is_the_derivative(name, data):
    kernel, twin = EVERY[name]
    X, Z = (A.astype(np.longdouble) for A in data)
    inner, factor, centred = kernel.slope()
    values = factor * inner(*data)
    h = 1e-6
    for k in range(Z.shape[1]):
        moved = h * np.eye(Z.shape[1])[k]
        up, down = (kernel_matrix(X=X, Z=Z + sign * moved, **twin) for sign in (1, -1))
        by = X[:, [k]] - Z[:, k] if centred else X[:, [k]]
        # central differences in extended precision: third derivatives times h^2
        np.testing.assert_allclose(
            (values * by).astype(np.float64),
            ((up - down) / (2 * h)).astype(np.float64),
            rtol=1e-7,
            atol=1e-9 * scale(values),
        )


# -- where the rows live ---------------------------------------------------------------------------

FORMS = {
    "csr_matrix": sp.csr_matrix,
    "csr_array": sp.csr_array,
    "csr int64": lambda A: _int64(sp.csr_matrix(A)),
    "csr unsorted": lambda A: _unsorted(sp.csr_matrix(A)),
    "F order": np.asfortranarray,
    "every other row": lambda A: np.repeat(A, 2, axis=0)[::2],
    "float32": lambda A: A.astype(np.float32),
}


def _int64(A):
    A.indices, A.indptr = A.indices.astype(np.int64), A.indptr.astype(np.int64)
    return A


def _unsorted(A):
    """The same matrix with the entries of every row backwards."""
    for i in range(A.shape[0]):
        part = slice(A.indptr[i], A.indptr[i + 1])
        A.indices[part], A.data[part] = A.indices[part][::-1].copy(), A.data[part][::-1].copy()
    A.has_sorted_indices = False
    return A


@every_kernel
@pytest.mark.parametrize("form", FORMS)
def test_the_form_of_the_rows_does_not_matter(kernel, twin, form, data):
    dense = tuple(
        A.astype(np.float32).astype(np.float64) for A in data
    )  # representable in every form
    expected = kernel(*dense)
    X, Z = (FORMS[form](A) for A in dense)
    assert sp.issparse(X) == form.startswith("csr")
    for A, B in ((X, dense[1]), (dense[0], Z), (X, Z)):
        values = kernel_values(kernel, A, B, dtype=np.float64)
        np.testing.assert_allclose(values, expected, rtol=1e-12, atol=1e-13 * scale(expected))


@every_kernel
@pytest.mark.parametrize(
    "container",
    [sp.csr_matrix, sp.csr_array, lambda A: _int64(sp.csr_matrix(A))],
    ids=["matrix", "array", "int64"],
)
def test_sparse_rows_of_many_features(kernel, twin, container, wide):
    """Here the sparse path is really taken, on one side, on the other, on both."""
    X, Z = (A.toarray() for A in wide)
    expected = kernel(X, Z)
    for A, B in (
        (container(wide[0]), container(wide[1])),
        (container(wide[0]), Z),
        (X, container(wide[1])),
    ):
        values = kernel_values(kernel, A, B, dtype=np.float64)
        np.testing.assert_allclose(values, expected, rtol=1e-12, atol=1e-13 * scale(expected))


@every_kernel
def test_repeated_entries_of_a_sparse_row_add_up(kernel, twin, data, wide):
    """SciPy allows (row, column) twice in a CSR matrix and means the sum; a kernel value must not
    depend on how the matrix was written.
    """
    for X, Z in (data, wide):
        X = sp.csr_matrix(X)
        halves = sp.csr_matrix(
            (np.repeat(X.data / 2, 2), np.repeat(X.indices, 2), 2 * X.indptr), shape=X.shape
        )
        assert not halves.has_canonical_format and halves.nnz == 2 * X.nnz
        expected = kernel(X, Z)
        np.testing.assert_allclose(
            kernel_values(kernel, halves, Z, dtype=np.float64),
            expected,
            rtol=1e-12,
            atol=1e-13 * scale(expected),
        )


def test_repeated_entries_of_a_sparse_row_do_not_change_gamma(data):
    X = sp.csr_matrix(data[0])
    halves = sp.csr_matrix(
        (np.repeat(X.data / 2, 2), np.repeat(X.indices, 2), 2 * X.indptr), shape=X.shape
    )
    assert gamma_value("scale", MemoryRows(halves)) == pytest.approx(
        gamma_value("scale", MemoryRows(X)), rel=1e-12
    )


@every_kernel
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_read_only_memory_maps(kernel, twin, dtype, data, tmp_path):
    maps = []
    for name, A in zip("XZ", data, strict=True):
        path = tmp_path / f"{name}.npy"
        np.save(path, A.astype(dtype))
        maps.append(np.load(path, mmap_mode="r"))
        assert isinstance(maps[-1], np.memmap) and not maps[-1].flags.writeable
    dense = [np.array(A, dtype=np.float64) for A in maps]
    expected = kernel(*dense)
    np.testing.assert_allclose(
        kernel_values(kernel, *maps, dtype=np.float64),
        expected,
        rtol=1e-12,
        atol=1e-13 * scale(expected),
    )
    np.testing.assert_allclose(
        kernel_values(kernel, *maps, dtype=dtype), expected, rtol=0, atol=2e-5 * scale(expected)
    )
    np.testing.assert_allclose(kernel.diag(maps[0]), np.diag(kernel(dense[0])), rtol=1e-12)


@every_kernel
@pytest.mark.parametrize("dtype", [np.int64, np.int8, np.bool_])
def test_integers_and_booleans(kernel, twin, dtype):
    rng = np.random.default_rng(5)
    X, Z = rng.integers(0, 2, (9, 5)).astype(dtype), rng.integers(0, 2, (4, 5)).astype(dtype)
    expected = kernel(X.astype(np.float64), Z.astype(np.float64))
    np.testing.assert_allclose(kernel_values(kernel, X, Z, dtype=np.float64), expected, rtol=1e-13)
    np.testing.assert_allclose(
        kernel_values(kernel, sp.csr_matrix(X), Z, dtype=np.float64), expected, rtol=1e-13
    )


@every_kernel
def test_the_input_stays_untouched(kernel, twin, data):
    X, Z = (A.copy() for A in data)
    kernel_values(kernel, X, Z)
    kernel(X, Z)
    np.testing.assert_array_equal(X, data[0])
    np.testing.assert_array_equal(Z, data[1])


# -- gamma -----------------------------------------------------------------------------------------

WITH_GAMMA = [kind for kind in KERNELS.values() if "gamma" in kind.params]


@pytest.mark.parametrize("kind", WITH_GAMMA)
def test_gamma_scale_is_scikit_learns(kind, data):
    X, _ = data
    for A in (
        X,
        X + 1000.0,
        X.astype(np.float32),
        np.asfortranarray(X),
        sp.csr_matrix(X),
        sp.csr_array(X),
    ):
        dense = A.toarray() if sp.issparse(A) else A.astype(np.float64)
        gamma = kind("scale").resolve(MemoryRows(A)).gamma
        assert gamma == pytest.approx(1.0 / (X.shape[1] * dense.var()), rel=1e-10)
    reference = ReferenceSVC(gamma="scale").fit(X, np.arange(len(X)) % 2)
    assert kind("scale").resolve(MemoryRows(X)).gamma == pytest.approx(reference._gamma, rel=1e-13)


def test_gamma_auto_is_one_over_the_number_of_features(data):
    assert RBF("auto").resolve(MemoryRows(data[0])).gamma == 1.0 / 7


def test_gamma_scale_of_constant_features_is_one_as_in_scikit_learn():
    X = np.full((6, 3), 4.0)
    assert RBF("scale").resolve(MemoryRows(X)).gamma == 1.0
    assert ReferenceSVC(gamma="scale").fit(X, [0, 1] * 3)._gamma == 1.0


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix], ids=["dense", "sparse"])
def test_a_weight_acts_on_gamma_as_repetition_does(form, data):
    X, _ = data
    weight = np.random.default_rng(6).integers(0, 4, len(X)).astype(float)
    weighted = gamma_value("scale", MemoryRows(form(X), weight=weight))
    repeated = gamma_value("scale", MemoryRows(form(np.repeat(X, weight.astype(int), axis=0))))
    assert weighted == pytest.approx(repeated, rel=1e-13)
    assert weighted == pytest.approx(1.0 / (X.shape[1] * weighted_variance(X, weight)), rel=1e-13)


def test_gamma_scale_keeps_its_digits_far_from_the_origin():
    """Variance 1 around a mean of 1e8: mean of squares minus square of mean would be all
    cancellation.
    """
    X = 1e8 + np.random.default_rng(7).standard_normal((50, 3))
    assert gamma_value("scale", MemoryRows(X)) == pytest.approx(
        1.0 / (3 * weighted_variance(X, np.ones(50))), rel=1e-7
    )


@pytest.mark.parametrize("kind", WITH_GAMMA)
@pytest.mark.parametrize("gamma", [0.5, 2, np.float32(0.25)])
def test_gamma_numbers_stay(kind, gamma, data):
    kernel = kind(gamma)
    assert kernel.resolve(MemoryRows(data[0])) is kernel
    assert gamma_value(gamma, MemoryRows(data[0])) == float(gamma)


@pytest.mark.parametrize("kind", WITH_GAMMA)
def test_unresolved_gamma_says_what_to_do(kind, data):
    with pytest.raises(ValueError, match=r"gamma='scale'.*resolve"):
        kind("scale")(*data)


def test_unknown_gamma(data):
    with pytest.raises(ValueError, match="gamma='wide'"):
        RBF("wide").resolve(MemoryRows(data[0]))


# -- making them -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", KERNELS)
def test_by_name(name):
    kernel = make_kernel(name, gamma=0.5, degree=2, coef0=1.0)
    assert type(kernel) is KERNELS[name] and kernel.name == name
    expected = {"gamma": 0.5, "degree": 2, "coef0": 1.0}
    given = {key: expected[key] for key in KERNELS[name].params}
    assert kernel.get_params() == KERNELS[name](**given).get_params()  # others have their defaults
    assert kernel.get_params().items() >= given.items()


def test_by_function():
    assert make_kernel(_poly2) == FromCallable(_poly2)


def test_by_object():
    kernel = RBF(0.25)
    assert make_kernel(kernel) is kernel


@pytest.mark.parametrize(
    "beside", [{"gamma": 0.5}, {"gamma": "auto"}, {"degree": 2}, {"coef0": 1.0}]
)
def test_parameters_beside_an_object_are_refused(beside):
    (name,) = beside
    with pytest.raises(ValueError, match=f"kernel is an object.*{name}"):
        make_kernel(RBF(0.25), **beside)


@pytest.mark.parametrize("kernel", ["gauss", "", None, 3, b"rbf"])
def test_unknown_kernels_are_refused_and_the_known_ones_named(kernel):
    with pytest.raises(ValueError, match=r"Unknown kernel.*linear.*rbf"):
        make_kernel(kernel)


def test_a_function_that_returns_the_wrong_shape_is_named(data):
    with pytest.raises(ValueError, match="shape"):
        FromCallable(lambda X, Z: np.zeros(3))(*data)
    with pytest.raises(ValueError, match="shape"):
        kernel_values(FromCallable(lambda X, Z: Z @ X.T), *data)


@every_kernel
def test_params_rebuild_it_and_it_survives_a_pickle(kernel, twin):
    assert type(kernel)(**kernel.get_params()) == kernel
    assert pickle.loads(pickle.dumps(kernel)) == kernel


@every_kernel
def test_it_is_frozen_and_hashable(kernel, twin):
    hash(kernel)
    for name in kernel.get_params():
        with pytest.raises(FrozenInstanceError):
            setattr(kernel, name, 1.0)
