"""What every certificate claims is true, for every estimator, on random problems.

From ``objective - gap`` to ``objective + rounding`` there is the optimum of the problem that the
scope names, and the model is no farther from it than the gap says; the optimum is that of an
independent interior-point method. Problems have weights, repeated rows, unbalanced classes, rows in
float32, limits that end them early, and code paths of large data on few rows; every recipe of a
paper has some, too. A claim is exempted from nothing.
``python -m benchmarks run certificates`` does the same for ten thousand problems.
"""

import dataclasses

import numpy as np
import pytest

from slimsvm import (
    SVC,
    CrammerSingerSVC,
    MultivariateSVC,
    ReducedSVC,
    SparseSVC,
    StructuralSVM,
    estimators,
)
from slimsvm.datasets import checkers
from slimsvm.oracles import Binary
from slimsvm.run import OutOfTime
from slimsvm.solvers.path import PathSolver
from slimsvm.solvers.path_cuts import CutPath
from tests.reference import optimum
from tests.reference.certificates import NAMES, OF, claims
from tests.reference.drawn import ESTIMATORS, RECIPES, Problem

FEW, FEWER, MANY = 6, 2, 150  # problems: of an estimator, of a recipe, and where there is time
LEAST = 0.8  # of claims that the reference is exact enough to decide
every = pytest.mark.parametrize("name", NAMES)


def assert_true(name, seeds):
    found = [(seed, claim) for seed in seeds for claim in claims(name, seed)]
    false = [f"{name} {seed}: {claim}" for seed, claim in found if not claim.true]
    assert not false, "\n".join(false)
    assert sum(claim.resolved for _, claim in found) >= LEAST * len(found)


def test_no_estimator_is_forgotten():
    assert set(ESTIMATORS) == set(estimators.REGISTRY)


@every
def test_claims_are_true(name):
    assert_true(name, range(FEWER if name in RECIPES else FEW))


def test_claims_that_were_false_once():
    assert_true("StructuralSVM", (269, 3028))  # a span of one vector; sums kept in float32
    assert_true("ChainSVM", (527,))  # the same of six sequences, where errors have one sign
    assert_true("OnlineSVC", (137,))  # a stream of sparse float32 rows: their centre was float32
    assert_true("LinearSVC", (161, 537))  # a line search far beyond a tiny step
    assert_true("SparseSVC", (181,))  # vectors that depend on one another up to the jitter
    # rows on the edge of the tube, on either side of it after rounding
    assert_true("SparseSVR", (129, 137))
    # Newton's method in float64, on rows that had been rounded to float32, as the model is
    assert_true("SparseSVC/descent", (134,))
    assert_true("SparseSVR/descent", (60, 81, 95, 130))
    # an optimum of zero, an intercept on the edge of the tube that was stored in float32
    assert_true("SparseSVR/descent", (225,))
    assert_true("LowRankSVC", (783,))  # scores of long rows, whose last digits cost C each
    # true, but judged by eigenvectors of K, whose rounding a large C makes use of
    assert_true("OnlineSVC/budget", (84,))
    # coefficients of zero, of which rounding is nothing: the bound is from those of a dual point
    assert_true("recipes/random_subset", (147,))
    # rounding errors of kernel values that small eigenvalues of K_RR divide
    assert_true("recipes/rsvm_smooth", (147, 10024))
    assert_true("recipes/rsvm_least_squares", (10043,))
    assert_true("recipes/rsvm_lagrangian", (10037,))
    assert_true("recipes/chunking", (10039,))  # scores of rows with k(x, x) = 400,000
    # true, but judged at intercepts that were not the best, where slopes do not add up to zero
    assert_true("SparseSVC/descent", (10054,))
    # large C: what the square of a rounding error of a score costs, or a row that it takes across a
    # kink, whichever loss it is
    assert_true("SparseSVC/extreme", (263, 285, 327, 360, 364))
    assert_true("MultivariateSVC/extreme", (123, 144))
    assert_true("SVC/extreme", (199,))  # scores of terms of 1e9 that many steps changed
    # a basis that float32 rounds far from zero, by more than where kernel values are made
    assert_true("SparseSVC/offset", (0,))
    assert_true("SparseSVR/offset", (3, 16))
    # scores of a descent that Newton's method takes to next to nothing
    assert_true("SparseSVC/descent/tiny", (21,))
    # intercepts that are not the best, stored in float32
    assert_true("SparseSVC/descent/tiny", (94, 135, 316))


@pytest.mark.long
@every
def test_more_claims_are_true(name):
    assert_true(name, range(1000, 1000 + MANY))


def test_rows_on_the_margin_cost_as_much_as_c_says():
    """C = 1e10: a rounding error of a score on the margin is a millionth of the optimum."""
    for seed in range(26, 37):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(2, 6))
        X, y = rng.standard_normal((n, 2)), np.arange(n) % 2
        drawn = Problem(SVC(C=1e10, kernel="linear"), X, y, None, False, ("linear", {}))
        false = [f"{seed}: {claim}" for claim in OF["svc"](drawn) if not claim.true]
        assert not false, "\n".join(false)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_a_span_stays_one_where_there_was_no_time_to_look(loss, monkeypatch):
    """The last look is broken off: what is known of the span is claimed of nothing else."""

    def out_of_time(*_):
        raise OutOfTime

    for kind in (PathSolver, CutPath):
        monkeypatch.setattr(kind, "certificate", out_of_time)
    X, y = checkers(60, seed=0)
    options = {"basis": "random", "refine": False, "random_state": 0, "max_time": 1e-4}
    model = SparseSVC(n_basis=3, loss=loss, gamma=10.0, **options).fit(X, y)
    assert model.certificate_.scope == "subspace" and "in the span of" in str(model.status_)


def test_a_false_claim_is_seen():
    """A gap of zero, or a value below the optimum, where the fit was stopped early."""
    seed = next(
        s for s in range(100) if (c := claims("SVC", s)[0]).high - c.low > 1e-3 * abs(c.low)
    )
    claim = claims("SVC", seed)[0]
    assert claim.true
    assert not dataclasses.replace(claim, low=claim.high).true
    below = claim.below - 1e-3 * abs(claim.below)
    assert not dataclasses.replace(claim, low=below - 1.0, high=below).true


def test_the_reference_knows_closed_forms():
    """Two rows of a linear SVM, a ridge regression, and points that bounds decide."""
    K = np.array([[1.0, -1.0], [-1.0, 1.0]])
    below, above = optimum.regularised(K, "hinge", np.array([1.0, -1.0]), np.full(2, 9.0))
    assert below == pytest.approx(0.5, abs=1e-10) and above == pytest.approx(0.5, abs=1e-10)
    t, w = np.array([1.0, 2.0, -1.0]), np.full(3, 2.0)
    K = np.diag([1.0, 2.0, 3.0])
    ridge = 0.5 * t @ np.linalg.solve(K + 0.5 * np.eye(3) / w[0], t)
    assert optimum.regularised(K, "least_squares", t, w, False) == pytest.approx((ridge, ridge))
    low, high, x = optimum.minimum(np.eye(2), np.array([-5.0, 5.0]), np.zeros(2), np.ones(2))
    assert (low, high) == pytest.approx((-4.5, -4.5)) and x == pytest.approx([1.0, 0.0])


def test_the_reference_knows_the_best_intercepts():
    """A function of next to nothing: what is left is the logarithm of odds, far from zero."""
    F = np.full((100, 1), 1e-6)
    y = np.where(np.arange(100) < 3, 1.0, -1.0)
    known = -3 * np.log(0.03) - 97 * np.log(0.97)
    low, high = optimum.smooth(F, "logistic", y[:, None], np.ones(100), True)
    assert low == pytest.approx(known, rel=1e-9) and high == pytest.approx(known, rel=1e-9)
    low, high = optimum.smooth(None, "logistic", y[:, None], np.ones(100), True, K=F @ F.T)
    assert low == pytest.approx(known, rel=1e-9) and high == pytest.approx(known, rel=1e-9)
    # slopes that do not add up to zero bound nothing
    assert np.isinf(optimum.unbalanced(np.zeros((1, 1)), np.ones((100, 1))))


def test_more_digits_decide_what_float64_cannot():
    """One feature and a free intercept at C = 1e14: the optimum is known, 2 C sum of errors."""
    X, y = np.array([[1.0], [1.0], [3.0], [3.0]]), np.array([1.0, -1.0, 1.0, -1.0])
    C = np.full(4, 1e14)  # labels say nothing: w = 0, and every loss is 1 at b = 0
    about = {"intercept": True, "features": X}
    low, high = optimum.regularised(X @ X.T, "hinge", y, C, **about)
    assert low == pytest.approx(4e14, rel=1e-15) and high == pytest.approx(4e14, rel=1e-15)
    t = np.array([0.5, 1.5, 0.25, 1.75])  # a line through pairs: w = 0 is the best, b = 1
    low, high = optimum.regularised(X @ X.T, "squared_epsilon_insensitive", t, C, **about)
    known = 1e14 * float(np.sum((np.abs(t - 1.0) - 0.1) ** 2))
    assert low == pytest.approx(known, rel=1e-12) and high == pytest.approx(known, rel=1e-12)


# -- certify ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("sampling", ["linear_time", "constant_time"])
def test_certify_encloses_the_optimum_of_sampled_cuts(sampling):
    X, y = checkers(600, seed=0)
    K = optimum.kernel("rbf", X, X, gamma=10.0)
    below, above = optimum.regularised(K, "hinge", np.where(y > 0, 1.0, -1.0), np.ones(600), False)
    options = {"space": "sampled", "sampling": sampling, "gamma": 10.0, "random_state": 0}
    model = StructuralSVM(Binary(), **options).fit(X, y)
    assert model.certificate_.scope == "sampled" and np.isinf(model.certificate_.gap)
    gaps = []
    for sweeps in (0, 1, 3, 10):
        certificate = model.certify(X, y, sweeps=sweeps)
        low, high = certificate.interval
        assert certificate.scope == "full" and low <= above and below <= high
        gaps.append(certificate.gap)
    assert gaps == sorted(gaps, reverse=True) and gaps[-1] < 0.5 * gaps[0]


def test_certify_refuses_what_it_was_not_trained_on():
    X, y = checkers(300, seed=0)
    model = CrammerSingerSVC(C=1.0, gamma=10.0, space="sampled", sample_size=50).fit(X, y)
    with pytest.raises(ValueError, match="not the rows that the model was trained on"):
        model.certify(X[::-1], y[::-1])
    with pytest.raises(ValueError, match="the same rows, outputs and weights"):
        model.certify(X, y, np.full(300, 5.0))
    with pytest.raises(ValueError, match="classes"):
        model.certify(X, np.where(y > 0, 7, 8))
    with pytest.raises(ValueError, match="sweeps"):
        model.certify(X, y, sweeps=-1)
    with pytest.raises(ValueError, match="max_time"):
        model.certify(X, y, max_time=0)
    other = MultivariateSVC().fit(X, y)
    with pytest.raises(ValueError, match="whole set is one example"):
        other.certify(X, y)


def test_certify_at_its_time_limit_is_true_all_the_same():
    X, y = checkers(2000, seed=0)
    options = {"space": "sampled", "gamma": 10.0, "random_state": 0}
    model = StructuralSVM(Binary(), **options).fit(X, y)
    with pytest.warns(UserWarning, match="certify stopped at max_time"):
        stopped = model.certify(X, y, sweeps=1000, max_time=1e-9)
    assert stopped.interval[0] <= model.certify(X, y).objective <= stopped.interval[1]


def test_equal_rows_are_weights_to_certify():
    X, y = checkers(200, seed=0)
    twice = np.concatenate([X, X]), np.concatenate([y, y])
    once = CrammerSingerSVC(gamma=10.0).fit(X, y, np.full(200, 2.0))
    both = CrammerSingerSVC(gamma=10.0).fit(*twice)
    a, b = once.certify(X, y, np.full(200, 2.0)), both.certify(*twice)
    assert a.objective == pytest.approx(b.objective, rel=1e-9)
    assert a.gap < 1e-6 * a.objective and b.gap < 1e-6 * b.objective


def test_a_gap_in_float32_is_never_below_rounding():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((1500, 10))
    certificate = SVC(tol=1e-9).fit(X, (X[:, 0] > 0).astype(int)).certificate_
    assert certificate.rounding > 0 and certificate.gap >= certificate.rounding


@pytest.mark.parametrize("C", [1.0, 1000.0])
def test_rounding_says_little_where_c_is_usual(C):
    """What its square costs is far below the tolerance."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((1500, 6))
    y = (X[:, 0] * X[:, 1] + 0.3 * rng.standard_normal(1500) > 0).astype(int)
    sparse = SparseSVC(C=C, n_basis=50, basis="random", refine=False, random_state=0)
    for model in (sparse, ReducedSVC(50, C=C, solver="least_squares", random_state=0)):
        certificate = model.fit(X, y).certificate_
        assert certificate.precision == "float32"
        assert 0 < certificate.rounding < 1e-4 * certificate.objective
