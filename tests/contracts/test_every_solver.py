"""What every solver must do, seen from a model that it trains; a new file under solvers/ joins by
its place in ESTIMATORS or in OTHERS.
"""

import warnings
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

import slimsvm.solvers
from slimsvm import (
    SVC,
    CoreVectorSVC,
    CrammerSingerSVC,
    LinearSVC,
    LowRankSVC,
    ReducedSVC,
    SparseSVC,
)
from slimsvm.solvers.core_rounds import CoreRounds
from slimsvm.solvers.dual_chunking import DualChunking
from slimsvm.solvers.linear_lagrangian import LinearLagrangian
from slimsvm.solvers.plain_newton import PlainNewton
from slimsvm.solvers.svm_light import SVMLight

N = 1200  # more rows than are solved to the last digit whatever the tolerance
CENTRES = np.random.default_rng(1).standard_normal((15, 3))
COMMON = {"C": 5.0, "gamma": 1.0}
# file of the solver, and what it trains
ESTIMATORS = {
    "decomposition": SVC(**COMMON),
    "dual_chunking": SVC(**COMMON, solver=DualChunking(chunk=100)),
    "svm_light": SVC(**COMMON, solver=SVMLight(working_set=20, inner="smo")),
    "kernel_newton, path_all": SparseSVC(N, basis="all", refine=False, **COMMON),
    "newton, path": SparseSVC(15, basis=CENTRES, refine=False, **COMMON),
    "cutting_plane, path_cuts": SparseSVC(15, basis=CENTRES, refine=False, loss="hinge", **COMMON),
    "linear_descent": LinearSVC(loss="hinge"),
    "linear_l1": LinearSVC(penalty="l1"),
    "linear_primal": LinearSVC(),
    "smooth_newton": ReducedSVC(30, solver="smooth", **COMMON, random_state=0),
    "least_squares": ReducedSVC(30, solver="least_squares", **COMMON, random_state=0),
    "lagrangian": ReducedSVC(30, solver="lagrangian", **COMMON, random_state=0),
    "chunking": ReducedSVC(30, solver="decomposition", **COMMON, random_state=0),
    "dual_descent": LowRankSVC(rank=30, **COMMON, random_state=0),
    "low_rank": LowRankSVC(rank=30, fit_intercept=True, **COMMON, random_state=0),
    "core_vector": CoreVectorSVC(**COMMON, random_state=0),
    "core_rounds": CoreVectorSVC(**COMMON, random_state=0, solver=CoreRounds()),
    "linear_lagrangian": LinearSVC(solver=LinearLagrangian(), max_iter=-1),
    "plain_newton": LinearSVC(solver=PlainNewton(), max_iter=-1),
    "joint": CrammerSingerSVC(
        basis=CENTRES, n_basis=15, space="subspace", **COMMON, random_state=0
    ),
}
OTHERS = {
    "descent, descent_loops, first_vectors, mapped_newton": "tests/solvers/test_descent.py",
    "row_order": "tests/solvers/test_row_order.py",
    "sparse_on_rows, linear_on_rows": "tests/estimators/test_on_rows.py",
    "platt_smo": "ends when no pair makes progress; its tests have a twin",
    "rsvm, fixed_sets": "as published, slow; tests/solvers/test_published_reduced.py",
    "linear_l1_support": "its steps with many features; tests/estimators/test_linear_surface.py",
    "linear_l1_newton": "its steps at many passes; tests/estimators/test_linear_surface.py",
    "linear_asked": "which problem and solver; tests/estimators/test_linear_surface.py",
    "sparse_asked, sparse_path, sparse_descent, path_points": "what is asked for, what comes out",
    "path_descent": "the three above, one after the other; tests/estimators/test_descending.py",
    "interior_point, row_cache": "parts of svm_light; its tests have exact answers",
    "pair_sigmoids": "probabilities for these; tests/estimators/test_probability.py",
    "pair_strips": "many small problems at once; tests/solvers/test_pair_strips.py",
    "smo, small_qp": "solve the small problems of a round; tests/solvers has exact answers",
    "pursuit, refine, reduced_set": "look for vectors; what others would give has no bound",
    "stream_descent": "a stream solves no fixed problem; tests/solvers/test_stream_descent.py",
    "online, online_rounds, finishing": "one pass; its certificate is that of the vectors it holds",
    "sampled_cuts": "ends when samples say so",
    "cuts, spaces, sampled_space, dual_state, online_loops, growth": "parts of the above",
    "duality, line_search, structural_spaces, reduced_ways": "parts that solvers share",
    "polish": "brings few rows to the last digits; tests/solvers/test_smo.py has exact answers",
    "linear, linear_newton": "the choice among them, and the one for hard problems: test_linear.py",
    "outside": "measures what a span misses; tests/solvers/test_outside.py",
    "whole_gap": "measures what others found; tests/contracts/test_every_rows.py",
    "structural_gap": "measures what others found; tests/contracts/test_every_certificate.py",
    "core_rounds, online_rounds": "as published, one row a round; test_every_certificate.py",
    "units": "looks at features before a descent begins; tests/estimators/test_descending.py",
    "out_of_fold": "decision values of rows left out; tests/estimators/test_cross_training.py",
    "nested, nested_on_rows, removed_rows": "decomposition in stages; solvers/test_nested.py",
    "shared_path": "many related problems; tests/search has them one by one",
}
# one linear system, or for three features as good as that: no tolerance makes it stop early
DIRECT = {"least_squares", "linear_l1"}
DRAWN = {
    "smooth_newton",
    "least_squares",
    "lagrangian",
    "chunking",
    "dual_descent",
    "low_rank",
}  # basis or first pivot depend on the order of the rows
ROUNDING = {
    "float32": 2e-6,
    "float64": 1e-9,
}  # of an objective: some times the precision of the kernel values that a certificate names
every_solver = pytest.mark.parametrize("name", ESTIMATORS)


@pytest.fixture(scope="module")
def rows():
    """Two classes that overlap."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N, 3))
    return X, (X[:, 0] * X[:, 1] + X[:, 2] + 0.5 * rng.standard_normal(N) > 0).astype(int)


def fitted(name, rows, tol=None, **limits):
    machine = clone(ESTIMATORS[name])
    if tol is not None:
        limits["eps" if "eps" in machine.get_params() else "tol"] = tol
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return machine.set_params(**limits).fit(*rows)


def assert_within_gaps(one, other):
    rounding = max(ROUNDING[one.precision], ROUNDING[other.precision]) * max(
        abs(one.objective), abs(other.objective)
    )
    assert abs(one.objective - other.objective) <= one.gap + other.gap + rounding


def test_no_solver_is_forgotten():
    files = {path.stem for path in Path(slimsvm.solvers.__file__).parent.glob("*.py")} - {
        "__init__"
    }
    named = [word for key in (*ESTIMATORS, *OTHERS) for word in key.split(", ")]
    assert files == set(named)


@every_solver
def test_it_ends_with_a_certificate_that_holds(name, rows):
    model = fitted(name, rows)
    certificate = model.certificate_
    assert model.status_.reason == "converged" and certificate.holds
    assert 0 <= certificate.violation <= certificate.tol
    assert np.isfinite(certificate.objective) and certificate.gap >= 0


@every_solver
def test_the_gap_bounds_what_more_work_would_gain(name, rows):
    loose, tight = fitted(name, rows, 0.1).certificate_, fitted(name, rows, 1e-7).certificate_
    assert tight.gap < loose.gap or name in DIRECT
    assert_within_gaps(loose, tight)


@pytest.mark.parametrize("name", [name for name in ESTIMATORS if name not in DRAWN])
def test_the_order_of_the_rows_changes_nothing_but_digits(name, rows):
    X, y = rows
    order = np.random.default_rng(2).permutation(N)
    assert_within_gaps(
        fitted(name, rows, 1e-6).certificate_, fitted(name, (X[order], y[order]), 1e-6).certificate_
    )


@every_solver
def test_stopped_early_it_says_so_and_its_model_works(name, rows):
    model = fitted(name, rows, 1e-7, max_iter=1)
    if model.status_.reason == "converged":
        assert name in DIRECT
        return
    assert not model.certificate_.holds
    assert np.all(np.isfinite(model.decision_function(rows[0])))
    assert_within_gaps(model.certificate_, fitted(name, rows, 1e-7).certificate_)
