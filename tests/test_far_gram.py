"""The Gram of rows that are elsewhere gives the values of rows in memory, and lets rows go."""

import numpy as np
import pytest
import scipy.sparse as sp

import slimsvm.solvers.decomposition as decomposition
import slimsvm.solvers.nested as nested
from slimsvm import open_rows
from slimsvm.frames import Frame
from slimsvm.kernels import RBF, Linear, Polynomial
from slimsvm.problems.dual_qp import classification
from slimsvm.problems.far_gram import Held, far_gram, known_of
from slimsvm.run import Limits, run
from slimsvm.solvers.nested_on_rows import NestedOnRows
from tests.reference.naive import dual_gap, dual_objective, dual_violation

KERNELS = {"rbf": RBF(0.4), "linear": Linear(), "poly": Polynomial(gamma=0.5, degree=2, coef0=1.0)}


def rows_and_gram(kernel, *, sparse=False, dtype=None, n=300, numbers=None):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, 5)) * (rng.random((n, 5)) < 0.5)
    given = sp.csr_matrix(X) if sparse else X
    rows = open_rows([(given[a : a + 70],) for a in range(0, n, 70)])
    numbers = np.arange(n) if numbers is None else numbers
    frame = Frame.of(kernel, rows, dtype)
    known = known_of(rows, frame)
    gram = far_gram(Held(rows, numbers, frame, known.of(numbers)), 1e5, 1)
    return kernel(X)[np.ix_(numbers, numbers)], gram


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_values_and_products(kernel, sparse, dtype):
    own = np.sort(np.random.default_rng(1).permutation(300)[:200])
    K, gram = rows_and_gram(KERNELS[kernel], sparse=sparse, dtype=dtype, numbers=own)
    near = {"rtol": 1e-4 if dtype is np.float32 else 1e-9, "atol": 1e-4 * K.max()}
    np.testing.assert_allclose(gram.diag(), K.diagonal(), **near)
    first, second, away = np.arange(0, 60), np.arange(60, 90), np.arange(120, 200)
    gram.restrict(first)
    np.testing.assert_allclose(gram.block(np.arange(5, 25)), K[5:25, 5:25], **near)
    gram.grow(second)
    s, delta = np.zeros(90), np.linspace(-1.0, 1.0, 10)
    gram.add(np.arange(30, 40), delta, s)
    np.testing.assert_allclose(s, delta @ K[30:40, :90], **near)
    found = gram.products(np.arange(30, 40), delta, away)  # columns are elsewhere
    np.testing.assert_allclose(found, delta @ K[30:40, 120:], **near)
    found = gram.products(np.arange(85, 95), delta, away)  # and some of the rows, too
    np.testing.assert_allclose(found, delta @ K[85:95, 120:], **near)
    assert gram.operand.error() >= 0.0 and np.isfinite(gram.operand.rounding())


def test_rows_that_are_released_leave_and_come_back():
    K, gram = rows_and_gram(RBF(0.4), dtype=np.float64)
    gram.restrict(np.arange(200))
    assert gram.operand.X.shape[0] == 200
    gram.restrict(np.arange(100))
    gram.release(np.arange(100, 200))
    assert gram.operand.X.shape[0] == 100
    gram.grow(np.arange(150, 160))
    assert gram.operand.X.shape[0] == 110
    found = gram.block(np.arange(90, 100))
    np.testing.assert_allclose(found, K[90:100, 90:100], atol=1e-12)
    gram.upgrade()
    gram.restrict(np.array([3, 155]))
    np.testing.assert_allclose(gram.block(np.array([3, 155]))[0, 1], K[3, 155], atol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_certificate_is_of_all_rows_though_few_are_here(dtype, monkeypatch):
    for module, name, value in (
        (decomposition, "WHOLE", 8),
        (decomposition, "EXACT", 0),
        (decomposition, "LEAST_DROP", 0.05),
        (nested, "FEWEST", 10),
    ):
        monkeypatch.setattr(module, name, value)
    K, gram = rows_and_gram(RBF(0.4), dtype=dtype, n=900)
    rng = np.random.default_rng(2)
    sign = np.where(K[:, 0] + 0.02 * rng.standard_normal(900) > np.median(K[:, 0]), 1.0, -1.0)
    problem = classification(gram, sign, np.full(900, 3.0))
    solver = NestedOnRows(first=60, working_set=24, history=1)
    result = run(solver, problem, tol=1e-4, limits=Limits(max_time=60.0))
    a, about = result.model.a, result.certificate
    assert result.status.converged and about.scope == "full"
    assert gram.operand.X.shape[0] < 900  # settled rows are not here
    near = 1e-6 if dtype is np.float64 else 1e-4
    assert about.violation == pytest.approx(dual_violation(K, problem, a), abs=near)
    assert about.objective == pytest.approx(dual_objective(K, problem, a), rel=near)
    gap = dual_gap(K, problem, a, result.model.level)
    assert about.gap >= gap - near and about.gap <= gap + 1e-4 * abs(about.objective)
