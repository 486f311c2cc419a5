"""Reduced SVMs and ICFSVM as they were published: closed forms, and naive twins step by step."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.spatial.distance import cdist

from slimsvm import LowRankSVC, ReducedSVC, load, open_rows, save
from slimsvm.frames import Frame, in_memory
from slimsvm.kernels import RBF
from slimsvm.losses import SmoothHinge, SquaredHinge
from slimsvm.problems.factored_dual import FactoredDual
from slimsvm.problems.reduced import Reduced, SignedFeatures
from slimsvm.recipes import (
    icf_pivoted,
    icf_retrain,
    icf_threshold,
    rsvm_decomposition,
    rsvm_lagrangian,
    rsvm_least_squares,
    rsvm_smooth,
)
from slimsvm.run import run
from slimsvm.solvers.fixed_sets import FixedSets
from slimsvm.solvers.low_rank import ICFSVM
from slimsvm.solvers.rsvm import RSVM, ArmijoNewton
from slimsvm.tiles import prepare
from tests.reference.machines import random_rows

GAMMA, C, M = 0.5, 3.0, 12


@pytest.fixture(scope="module")
def data():
    X, y, _ = random_rows(150, seed=2)
    V = np.column_stack([np.exp(-GAMMA * cdist(X, X[:M], "sqeuclidean")), np.ones(150)])
    return X, y, y[:, None] * V


def reduced(X, y, loss, weight=C, **options):
    rows = prepare(RBF(GAMMA), X, dtype=np.float64)
    V = SignedFeatures(in_memory(rows, y), Frame.like(rows), np.arange(M), **options)
    return Reduced(V, np.full(y.size, weight), loss)


# -- SSVM ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("weight", [0.1, 3.0, 1e4])
def test_newtons_steps_with_armijos_rule(data, weight):
    X, y, V = data
    problem, solver = reduced(X, y, SmoothHinge(5.0), weight), ArmijoNewton()
    state, u, halved = solver.init(problem), np.zeros(M + 1), 0

    def at(u):
        t = 1 - V @ u
        P, s = np.logaddexp(0, 5 * t) / 5, 1 / (1 + np.exp(-5 * t))
        value = 0.5 * u @ u + weight * P @ P
        bend = 2 * weight * (s * s + 5 * P * s * (1 - s))
        return value, u - 2 * weight * V.T @ (P * s), np.eye(M + 1) + V.T @ (bend[:, None] * V)

    for _ in range(30):
        value, gradient, H = at(u)
        if np.linalg.norm(gradient) <= 1e-6:
            break
        d, t = -np.linalg.solve(H, gradient), 1.0
        while value - at(u + t * d)[0] < -1e-4 * t * (gradient @ d):
            t, halved = t / 2, halved + 1
        u = u + t * d
        solver.step(problem, state, 1e-6, 100)
        assert np.allclose(state.u, u, atol=1e-6 * max(1, np.abs(u).max()))
    for _ in range(3):  # the two gradients round otherwise: one may be below, the other not yet
        solver.step(problem, state, 1e-6, 100)
    assert state.done and np.linalg.norm(state.gradient) <= 1e-6, "the end is the gradient"
    certificate = solver.certificate(problem, state, 1e-6)
    assert certificate.violation == pytest.approx(np.linalg.norm(state.gradient))


# -- LSVM ------------------------------------------------------------------------------------------


def test_the_lagrangian_iteration_and_nothing_after_it(data):
    X, y, _ = data
    model = rsvm_lagrangian(M, C=C, gamma=GAMMA, random_state=0, tol=1e-4).fit(X, y)
    basis = model.basis_
    V = y[:, None] * np.column_stack(
        [np.exp(-GAMMA * cdist(X, basis, "sqeuclidean")), np.ones(y.size)]
    )
    H = V @ V.T + np.eye(y.size) / (2 * C)
    inverse, beta, e = np.linalg.inv(H), 1.9 / (2 * C), np.ones(y.size)
    a, points = inverse @ e, []
    for _ in range(int(model.n_iter_[0])):
        points.append(V.T @ a)
        a = inverse @ (e + np.maximum(0, H @ a - e - beta * a))
    u = np.append(model.basis_coef_.ravel(), model.intercept_)
    distances = [np.abs(u - point).max() for point in points]
    assert min(distances) < 1e-8, "the model is one of the iterates"
    assert 1e-7 < model.certificate_.violation <= 1e-4 and model.n_iter_[0] < 1000
    with pytest.raises(ValueError, match="between 0 and 1"):
        rsvm_lagrangian(M, C=C, beta=1.0 / C).fit(X, y)


# -- the penalty before the simplification ---------------------------------------------------------


def test_the_kernel_penalty_has_a_closed_form_with_equalities(data):
    X, y, _ = data
    model = rsvm_least_squares(M, penalty="kernel", C=C, gamma=GAMMA, random_state=0).fit(X, y)
    K = np.exp(-GAMMA * cdist(X, model.basis_, "sqeuclidean"))
    K_RR = np.exp(-GAMMA * cdist(model.basis_, model.basis_, "sqeuclidean"))
    G, P = np.column_stack([K, np.ones(y.size)]), np.zeros((M + 1, M + 1))
    P[:M, :M], P[M, M] = K_RR, 1.0
    u = np.linalg.solve(P + 2 * C * G.T @ G, 2 * C * G.T @ y)
    value = 0.5 * u @ P @ u + C * np.sum((y - G @ u) ** 2)
    assert np.allclose(model.decision_function(X), G @ u, atol=1e-6)
    assert model.certificate_.objective == pytest.approx(value, rel=1e-9)


@pytest.mark.parametrize("recipe", [rsvm_smooth, rsvm_lagrangian, rsvm_decomposition])
def test_the_kernel_penalty_by_every_solver(data, recipe):
    X, y, _ = data
    given = {"beta": 500.0} if recipe is rsvm_smooth else {}  # hardly smoothed
    model = recipe(M, penalty="kernel", C=0.5, gamma=GAMMA, random_state=0, tol=1e-4, **given)
    model.fit(X, y)
    G = np.column_stack([np.exp(-GAMMA * cdist(X, model.basis_, "sqeuclidean")), np.ones(y.size)])
    P = np.zeros((M + 1, M + 1))
    P[:M, :M] = np.exp(-GAMMA * cdist(model.basis_, model.basis_, "sqeuclidean"))
    P[M, M] = 1.0

    def F(u):
        missing = np.maximum(0, 1 - y * (G @ u))
        return 0.5 * u @ P @ u + 0.5 * missing @ missing, P @ u - G.T @ (y * missing)

    best = minimize(F, np.zeros(M + 1), jac=True, method="BFGS", options={"gtol": 1e-9}).fun
    u = np.append(model.basis_coef_.ravel(), model.intercept_)
    assert F(u)[0] == pytest.approx(best, rel=2e-4)
    plain = recipe(M, C=0.5, gamma=GAMMA, random_state=0, tol=1e-4, **given).fit(X, y)
    assert abs(F(np.append(plain.basis_coef_.ravel(), plain.intercept_))[0] - best) > 1e-3 * best


def test_singular_bases_are_no_trouble():
    X, y, _ = random_rows(120, seed=4)  # of a linear kernel with 3 features and 20 vectors
    model = rsvm_smooth(20, penalty="kernel", kernel="linear", random_state=0).fit(X, y)
    assert model.status_.converged and np.isfinite(model.decision_function(X)).all()
    # float32 rows: K_RR of near rows would be all rounding errors
    near = np.repeat(X[:60], 20, axis=0).astype(np.float32)
    near += 1e-4 * np.random.default_rng(0).standard_normal(near.shape).astype(np.float32)
    model = rsvm_smooth(40, penalty="kernel", gamma=0.1, random_state=0)
    model.fit(near, np.repeat(y[:60], 20))
    assert model.status_.converged and model.certificate_.precision == "float64"


# -- decomposition ---------------------------------------------------------------------------------


def test_working_sets_of_q_variables_one_by_one(data, monkeypatch):
    X, y, V = data
    problem, solver, q = reduced(X, y, SquaredHinge()), FixedSets(working_set=6), 6
    passes, taken = [], []
    kept, at = SignedFeatures.margins, SignedFeatures._at
    monkeypatch.setattr(
        SignedFeatures, "margins", lambda own, u: (passes.append(1), kept(own, u))[1]
    )
    monkeypatch.setattr(SignedFeatures, "_at", lambda own, r: (taken.append(r.size), at(own, r))[1])
    state = solver.init(problem)
    H = V @ V.T + np.eye(150) / (2 * C)
    for k in range(40):
        before = state.a.copy()
        g = H @ before - 1  # the naive update: all of H
        assert np.allclose(state.g, g, atol=1e-8)
        pull = np.where(before > 0, np.abs(g), np.maximum(0, -g))
        chosen = solver.iterate(state)
        assert chosen.size == q and np.allclose(np.sort(pull)[-q:], np.sort(pull[chosen]))
        assert set(np.flatnonzero(state.a != before)) <= set(chosen)
        # one pass over V, and q of its rows: O(l m) and O(q m)
        assert len(passes) == k + 1 and taken[-1] == q
        # the problem in the set is solved
        after = (H @ state.a - 1)[chosen]
        left = np.where(state.a[chosen] > 0, np.abs(after), np.maximum(0, -after))
        assert left.max() <= 5e-3 * pull.max() + 1e-10  # a sweep moves what it has looked at
        assert (
            0.5 * state.a @ H @ state.a - state.a.sum() < 0.5 * before @ H @ before - before.sum()
        )
    assert np.allclose(state.u, V.T @ state.a)


def test_decomposition_ends_at_the_optimum_of_both_problems(data):
    X, y, V = data
    problem = reduced(X, y, SquaredHinge(), 0.5)
    result = run(FixedSets(), problem, tol=1e-6)
    assert result.certificate.violation <= 1e-6
    exact = run(ArmijoNewton(), problem, tol=1e-8).certificate.objective
    assert -1e-7 <= result.certificate.objective - exact <= result.certificate.gap + 1e-7
    upper = np.full(150, 0.7)
    factored = FactoredDual(V[:, :M], 1.0, 0.0, upper)
    found = run(FixedSets(working_set=8), factored, tol=1e-5)
    Q = V[:, :M] @ V[:, :M].T
    best = minimize(
        lambda a: (0.5 * a @ Q @ a - a.sum(), Q @ a - 1),
        np.zeros(150),
        jac=True,
        bounds=[(0, 0.7)] * 150,
        options={"ftol": 1e-15, "gtol": 1e-10, "maxiter": 5000},
    ).fun
    a = found.model.a
    assert 0.5 * a @ Q @ a - a.sum() == pytest.approx(best, rel=1e-5)
    assert found.certificate.objective - found.certificate.gap <= -best + 1e-6


# -- shares, ICFSVM --------------------------------------------------------------------------------


def test_a_tenth_of_the_rows_is_a_tenth(data):
    X, y, _ = data
    for recipe in (rsvm_smooth, rsvm_least_squares, rsvm_lagrangian):
        assert recipe(C=1.0, random_state=0).fit(X, y).n_basis_ == 15
        rows = open_rows(X, target=y, batch_rows=64)
        assert recipe(C=1.0, random_state=0).fit(rows).n_basis_ == 15
    assert ReducedSVC(random_state=0).fit(X, y).n_basis_ == 50
    small = icf_pivoted(gamma=GAMMA).fit(X, y).factor_error_
    assert small == pytest.approx(icf_pivoted(15, gamma=GAMMA).fit(X, y).factor_error_)
    assert small > LowRankSVC(gamma=GAMMA).fit(X, y).factor_error_


@pytest.mark.parametrize("recipe", [icf_pivoted, icf_threshold, icf_retrain])
def test_icfsvm_by_decomposition(data, recipe):
    X, y, _ = data
    model = recipe(40, C=1.0, gamma=GAMMA, tol=1e-5).fit(X, y)
    kind = "threshold" if recipe is icf_threshold else "pivoted"
    exact = LowRankSVC(kind, 40, recipe is icf_retrain, C=1.0, gamma=GAMMA).fit(X, y)
    assert model.status_.converged and "KKT" in str(model.status_)
    assert np.allclose(model.factor_error_, exact.factor_error_)
    # the same problem: its value, and what follows from it
    one, other = model.certificate_, exact.certificate_
    assert abs(one.objective - other.objective) <= one.gap + other.gap
    assert np.mean(model.predict(X) == exact.predict(X)) > 0.97


def test_equal_rows_may_be_in_the_basis_more_than_once(data, monkeypatch):
    """R is a random subset of the samples, whether or not some of them are equal."""
    X, y, _ = data
    X, y = np.repeat(X[:30], 3, axis=0), np.repeat(np.where(y[:30] > 0, 1.0, -1.0), 3)
    drawn = []

    def spy(self, *given, known=ReducedSVC._basis):
        drawn.append(known(self, *given))
        return drawn[-1]

    monkeypatch.setattr(ReducedSVC, "_basis", spy)
    model = rsvm_least_squares(0.5, C=2.0, gamma=GAMMA, random_state=0).fit(X, y)
    R = drawn[0].basis
    assert R.size == 45 and len(set((R // 3).tolist())) == model.n_basis_ < 45
    V = np.hstack([np.exp(-GAMMA * cdist(X, X[R], "sqeuclidean")), np.ones((90, 1))])
    u = np.linalg.solve(V.T @ V + np.eye(46) / 4.0, V.T @ y)
    assert np.allclose(model.decision_function(X), V @ u, atol=1e-8)


@pytest.mark.parametrize("recipe", [icf_pivoted, icf_threshold, icf_retrain])
def test_equal_rows_of_icfsvm_are_variables_of_their_own(data, recipe):
    """As in the slides' tables, which count their support vectors; the estimator makes them one."""
    X, y, _ = data
    X, y = np.repeat(X[:40], 2, axis=0), np.repeat(y[:40], 2)
    model = recipe(20, C=1.0, gamma=GAMMA, tol=1e-4).fit(X, y)
    support = set(model.support_.tolist())
    assert any({2 * i, 2 * i + 1} <= support for i in range(40))
    kind = "threshold" if recipe is icf_threshold else "pivoted"
    merged = LowRankSVC(kind, 20, C=1.0, gamma=GAMMA).fit(X, y)
    assert len(set((merged.support_ // 2).tolist())) == merged.support_.size


def test_several_classes_limits_and_files(data, tmp_path):
    X, _, _ = data
    several = np.digitize(X[:, 0], [-0.5, 0.5])
    with pytest.warns(UserWarning, match="max_iter=5"):
        model = rsvm_decomposition(gamma=GAMMA, max_iter=5, random_state=0).fit(X, several)
    assert model.n_iter_.tolist() == [5, 5, 5]
    for made in (
        model,
        rsvm_smooth(penalty="kernel").fit(X, several),
        icf_pivoted().fit(X, several),
    ):
        save(made, tmp_path / "model.slim")
        again = load(tmp_path / "model.slim")
        assert repr(again) == repr(made)
        assert np.array_equal(again.decision_function(X), made.decision_function(X))


@pytest.mark.parametrize(
    ("make", "range_"),
    [
        (lambda: RSVM("primal"), "'smooth', 'least_squares'"),
        (lambda: rsvm_smooth(penalty="l2"), "'norm', 'kernel'"),
        (lambda: rsvm_smooth(beta=-1.0), "above 0"),
        (lambda: RSVM("least_squares", beta=1.0), "has no beta"),
        (lambda: rsvm_decomposition(working_set=0), "from 1 to"),
        (lambda: icf_pivoted(working_set=0), "from 1 to"),
        (lambda: ICFSVM("columns"), "'pivoted', 'threshold'"),
        (lambda: rsvm_smooth(solver="smooth"), "rsvm_smooth has solver="),
        (lambda: icf_pivoted(factorization="pivoted"), "icf_pivoted has factorization="),
    ],
)
def test_what_is_refused(make, range_):
    with pytest.raises(ValueError, match=range_):
        make()


def test_what_is_refused_at_fit(data):
    X, y, _ = data
    with pytest.raises(ValueError, match="from 1 to 150"):
        rsvm_decomposition(working_set=151).fit(X, y)
    with pytest.raises(ValueError, match="has no beta"):
        ReducedSVC(solver=RSVM("smooth"), beta=3.0).fit(X, y)
