"""Recipes of cutting planes and of subsets in the primal, step by step as they were published."""

import tracemalloc
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize
from sklearn.base import clone
from sklearn.datasets import make_moons
from sklearn.exceptions import ConvergenceWarning

from slimsvm import (
    SVC,
    CrossTraining,
    LinearSVC,
    OnlineSVC,
    SparseSVC,
    StructuralSVM,
    load,
    recipes,
    save,
)
from slimsvm.basis import FixedPoint, Greedy, Margin, Pursuit, PursuitRows, Unsupervised, greedy
from slimsvm.cross_training import Discard
from slimsvm.datasets import checkers
from slimsvm.frames import Frame, in_memory
from slimsvm.gram import Gram
from slimsvm.kernels import RBF, Linear
from slimsvm.losses import SquaredHinge
from slimsvm.oracles import Binary
from slimsvm.problems.columns import KernelColumns
from slimsvm.problems.linear import LinearFit
from slimsvm.recipes import (
    bvm,
    cpsp,
    cpsp_rows,
    cross_training,
    cvm,
    greedy_subset,
    incomplete_cholesky,
    kernel_cutting_plane,
    lasvm,
    lasvm_active,
    linear_cutting_plane,
    linear_newton,
    lsvm,
    margin_subset,
    nystrom,
    sampled_cuts_constant,
    sampled_cuts_linear,
    unsupervised_subset,
)
from slimsvm.run import run
from slimsvm.solvers import pursuit, sampled_cuts
from slimsvm.solvers.core_rounds import CoreRounds
from slimsvm.solvers.core_vector import Ball
from slimsvm.solvers.cutting_plane import CuttingPlane
from slimsvm.solvers.decomposition import Decomposition
from slimsvm.solvers.linear_lagrangian import LinearLagrangian
from slimsvm.solvers.online import Passing
from slimsvm.solvers.online_rounds import OnlineRounds
from slimsvm.solvers.plain_newton import PlainNewton
from slimsvm.solvers.sampled_cuts import Draw, SampledCuts
from slimsvm.tiles import prepare
from tests.reference.naive import kernel_matrix

GAMMA = 5.0


def small(n=60, seed=0):
    X, y = checkers(n, seed=seed)
    return X, np.where(y > 0, 1.0, -1.0)


def matrix(X, Z, gamma=GAMMA):
    return np.asarray(kernel_matrix("rbf", X, Z, gamma=gamma), float)


def solved(G, h, C):
    """max h'a - 1/2 a'Ga over a >= 0, sum a <= C, by SciPy; and xi."""
    t = len(h)
    start = np.full(t, C / (2 * t))
    for _ in range(3):
        found = minimize(
            lambda a: 0.5 * a @ G @ a - h @ a,
            start,
            jac=lambda a: G @ a - h,
            bounds=[(0, C)] * t,
            constraints={
                "type": "ineq",
                "fun": lambda a: C - a.sum(),
                "jac": lambda a: -np.ones(t),
            },
            method="SLSQP",
            options={"ftol": 1e-15, "maxiter": 1000},
        )
        start = np.clip(found.x, 0, None)
    a = start
    return a, float(h @ a - 0.5 * a @ G @ a), max(0.0, float((h - G @ a).max()))


def algorithm_2(K, y, C, eps, most=200):
    """Cutting planes over kernels, as printed: one slack, the mean loss, no cut is ever dropped."""
    n = y.size
    cuts, offsets, a, xi = [], [], np.empty(0), 0.0
    bounds = []
    for _ in range(most):
        w = sum((a_t * v for a_t, v in zip(a, cuts, strict=True)), np.zeros(n))
        f = K @ w
        inside = y * f < 1.0
        v, offset = np.where(inside, y, 0.0) / n, inside.mean()
        if offset - f @ v <= xi + eps:
            return f, bounds
        cuts.append(v)
        offsets.append(offset)
        V, h = np.array(cuts), np.array(offsets)
        a, value, xi = solved(V @ K @ V.T, h, C)
        bounds.append(value)
    raise AssertionError("no end")


@pytest.mark.parametrize("eps", [0.1, 0.01])
def test_cutting_planes_over_kernels_are_algorithm_2(eps):
    X, y = small(40)
    f, bounds = algorithm_2(matrix(X, X), y, 40 * 0.5, eps)
    model = kernel_cutting_plane(C=0.5, gamma=GAMMA, tol=eps).fit(X, y)
    assert model.n_iter_ == len(bounds) + 1, "the last round finds nothing violated"
    np.testing.assert_allclose(model.history_["lower_bound"][:-1], bounds, rtol=1e-5)
    np.testing.assert_allclose(model.decision_function(X)[:, 0], f, atol=2e-4)
    assert model.certificate_.violation <= eps and model.status_.converged
    best = StructuralSVM(Binary(), C=0.5, gamma=GAMMA, space="kernel").fit(X, y)
    about = model.certificate_
    optimum = best.certificate_.objective
    assert about.objective - about.gap <= optimum <= about.objective, "the interval holds it"
    assert about.gap <= 0.5 * 40 * eps + 1e-12, "C n eps, as the papers say"


def test_linear_cutting_planes_are_algorithm_1():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 4))
    y = np.where(X @ [1.0, -1.0, 0.5, 0.0] + 0.3 * rng.normal(size=50) > 0, 1.0, -1.0)
    f, bounds = algorithm_2(X @ X.T, y, 50 * 0.2, 0.01)
    model = linear_cutting_plane(C=0.2, tol=0.01).fit(X, y)
    assert model.n_iter_ == len(bounds) + 1 and model.intercept_ == 0.0
    np.testing.assert_allclose(model.history_["lower_bound"][:-1], bounds, rtol=1e-5)
    np.testing.assert_allclose(model.decision_function(X), f, atol=2e-4)


def test_a_round_less_is_violated_and_idle_cuts_leave():
    X, y = small(300)
    model = cpsp_rows(30, C=5.0, gamma=GAMMA, random_state=0).fit(X, y)
    less = cpsp_rows(30, C=5.0, gamma=GAMMA, random_state=0, max_iter=model.n_iter_ - 1)
    with pytest.warns(ConvergenceWarning, match="violated by"):
        less.fit(X, y)
    assert less.certificate_.violation > 1e-3 >= model.certificate_.violation


@pytest.mark.parametrize("recipe", [cpsp, cpsp_rows])
def test_one_vector_a_cut(recipe):
    X, y = small(300)
    model = recipe(12, C=5.0, gamma=GAMMA, random_state=0).fit(X, y)
    grown = model.history_["n_basis"]
    assert grown[:12].tolist() == list(range(1, 13)) and set(grown[12:]) == {12.0}
    assert model.n_basis_ == 12 and model.intercept_ == 0.0
    assert [p.n_basis for p in model.path_] == [12]
    assert (model.basis_indices_ is None) == (recipe is cpsp)


@pytest.mark.parametrize("recipe", [cpsp, cpsp_rows, nystrom, incomplete_cholesky])
def test_the_model_is_the_best_in_its_span(recipe):
    X, y = small(200)
    model = recipe(20, C=1.0, gamma=GAMMA, tol=1e-6, random_state=0).fit(X, y)
    K, K_BB = matrix(X, model.basis_), matrix(model.basis_, model.basis_)
    coef = model.basis_coef_[:, 0]
    value = 0.5 * coef @ K_BB @ coef + np.maximum(0, 1 - y * (K @ coef)).sum()
    assert value == pytest.approx(model.certificate_.objective, rel=1e-6)
    again = SparseSVC(
        C=1.0, gamma=GAMMA, loss="hinge", basis=model.basis_, fit_intercept=False, refine=False
    ).fit(X, y)
    assert value == pytest.approx(again.certificate_.objective, rel=1e-4)


def residual(seed=0, n=40, m=3):
    """Rows, a basis, the weights of a cut, and what the basis leaves of it."""
    rng = np.random.default_rng(seed)
    X, B = rng.normal(size=(n, 2)), rng.normal(size=(m, 2))
    v = np.where(rng.random(n) < 0.6, np.sign(rng.normal(size=n)), 0.0) / n
    rows = prepare(RBF(GAMMA), X, dtype=np.float64)
    columns = KernelColumns(in_memory(rows), Frame.like(rows), max_basis=m + 5)
    columns.append(columns.in_rows_coordinates(B))
    beta = np.linalg.solve(matrix(B, B), matrix(B, X) @ v)
    return X, B, v, beta, columns


def inner(b, X, B, v, beta):
    """<r, phi(b)>"""
    b = np.atleast_2d(b)
    return matrix(b, X) @ v - matrix(b, B) @ beta


def test_the_best_of_59_rows_by_the_plain_criterion():
    X, B, v, beta, columns = residual(n=300)
    choice = PursuitRows(59, n_rows=None, orthogonal=False)
    found = choice.select(columns, v, None, 1, np.random.default_rng(7), np.arange(300))
    seen = np.random.default_rng(7).choice(np.arange(300), 59, replace=False)
    score = inner(X[seen], X, B, v, beta) ** 2  # k(b, b) = 1
    assert found.indices.tolist() == [seen[np.argmax(score)]]


def test_the_fixed_point_is_plain():
    X, B, v, beta, columns = residual()
    score = inner(X, X, B, v, beta) ** 2
    b = X[np.argmax(score)]
    points, weights = np.vstack([X, B]), np.concatenate([v, -beta])
    best = (score.max(), b)
    before = score.max()
    for _ in range(100):
        k = weights * matrix(points, b[None, :])[:, 0]
        b = k @ points / k.sum()
        now = inner(b, X, B, v, beta)[0] ** 2
        best = max(best, (now, b), key=lambda pair: pair[0])
        if now <= (1 + 1e-6) * before:
            break
        before = now
    found = FixedPoint(tol=1e-6).select(
        columns, v, None, 3, np.random.default_rng(0), np.arange(40)
    )
    assert found.n == 1 and found.indices is None, "one vector for a cut"
    vector = columns.in_given_coordinates(found.vectors)[0]
    np.testing.assert_allclose(vector, best[1], atol=1e-6)
    assert best[0] >= score.max()


def test_the_fixed_point_is_for_the_rbf_kernel():
    X, y = small(100)
    with pytest.raises(ValueError, match="RBF kernel"):
        cpsp(5, kernel="poly").fit(X, y)
    rows = prepare(Linear(), X)
    columns = KernelColumns(in_memory(rows), Frame.like(rows), max_basis=2)
    with pytest.raises(ValueError, match="RBF kernel"):
        FixedPoint().select(columns, y, None, 1, np.random.default_rng(0), np.arange(100))


# -- sampled cuts ----------------------------------------------------------------------------------


def test_the_violated_examples_are_never_taken_whole():
    few = np.arange(5)
    all_of_them = Draw(np.ones(20))
    chosen, weight = all_of_them(10, np.random.default_rng(0), few)
    assert chosen.tolist() == few.tolist() and weight.tolist() == [1.0] * 5
    with_replacement = Draw(np.ones(20), whole=False)
    chosen, weight = with_replacement(10, np.random.default_rng(0), few)
    assert weight.sum() == pytest.approx(5.0), "|I| / r for each draw"
    np.testing.assert_allclose(weight * 10 / 5, np.round(weight * 10 / 5))
    assert len(set(weight)) > 1


@pytest.mark.parametrize("recipe", [sampled_cuts_linear, sampled_cuts_constant])
def test_sampled_cuts_stay_sampled(recipe):
    X, y = small(200)
    model = recipe(500, gamma=GAMMA, random_state=0).fit(X, y)
    assert model.space_ == "sampled" and model.status_.converged


def test_redraws_go_on_and_the_status_names_their_limit(monkeypatch):
    X, y = small(200)
    states = []
    init = SampledCuts.init

    def remembered(self, problem, start=None):
        states.append(init(self, problem, start))
        return states[-1]

    monkeypatch.setattr(SampledCuts, "init", remembered)
    model = sampled_cuts_linear(5, C=1.0, gamma=GAMMA, tol=0.05, random_state=0).fit(X, y)
    assert model.status_.converged
    assert states[-1].n_draws > states[-1].n_iter, "some were drawn again"
    solver = SampledCuts(line_search=False, stop="violation", whole=False, max_draws=2)
    few = StructuralSVM(
        Binary(), gamma=GAMMA, space="sampled", sample_size=5, solver=solver, tol=1e-3
    ).set_params(random_state=0)
    with pytest.warns(ConvergenceWarning, match="max_draws=2 samples in a row"):
        few.fit(X, y)
    assert few.status_.reason == "max_draws" and states[-1].exhausted
    assert few.certificate_.violation > 1e-3


def test_many_redraws_keep_the_limit_of_time(monkeypatch):
    X, y = small(200)
    monkeypatch.setattr(sampled_cuts, "DRAWS", 3)
    once = sampled_cuts_linear(5, C=1.0, gamma=GAMMA, tol=0.05, random_state=0).fit(X, y)
    monkeypatch.setattr(sampled_cuts, "DRAWS", 10_000)
    other = sampled_cuts_linear(5, C=1.0, gamma=GAMMA, tol=0.05, random_state=0).fit(X, y)
    np.testing.assert_array_equal(once.basis_coef_, other.basis_coef_)


def test_the_model_of_sampled_cuts_is_the_last_point():
    X, y = small(200)
    model = sampled_cuts_linear(50, C=1.0, gamma=GAMMA, tol=0.01, random_state=1).fit(X, y)
    f, coef = model.decision_function(X)[:, 0], model.basis_coef_[:, 0]
    norm = coef @ matrix(model.basis_, model.basis_) @ coef
    value = 0.5 * norm + np.maximum(0.0, 1.0 - y * f).sum()
    assert value == pytest.approx(model.certificate_.objective, rel=1e-5)
    assert model.history_["objective"][-1] == pytest.approx(value, rel=1e-5)


# -- LSVM ------------------------------------------------------------------------------------------


def test_lsvm_is_its_iteration():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    y = np.where(X @ [1.0, -1.0, 0.5] + 0.5 * rng.normal(size=60) > 0, 1.0, -1.0)
    C = 0.7
    V = y[:, None] * np.hstack([X, np.ones((60, 1))])
    H = V @ V.T + np.eye(60) / (2 * C)
    a = np.linalg.solve(H, np.ones(60))
    for _ in range(30):
        a = np.linalg.solve(H, 1.0 + np.maximum(0.0, H @ a - 1.0 - 0.95 / C * a))
    problem = LinearFit(X, y[:, None], np.full(60, C), SquaredHinge(), 1.0)
    solver = LinearLagrangian()
    state = solver.init(problem)
    while state.n_iter < 31:
        solver.step(problem, state, 0.0, 31)
    np.testing.assert_allclose(state.u[:, 0], V.T @ a, rtol=1e-8)


def test_newton_and_lsvm_on_one_problem():
    """The same C, and an intercept that is a feature, with its penalty, in both."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(1500, 5)) + 1.0
    y = np.where(X @ [1.0, -1.0, 0.5, 0.0, 0.2] + rng.normal(size=1500) > 1.0, 1, 0)
    for rows in (X, sp.csr_matrix(X)):
        ours = lsvm(C=0.05, tol=1e-9).fit(rows, y)
        assert ours.status_.converged
        one = np.hstack([X, np.ones((1500, 1))])
        newton = LinearSVC(C=0.05, fit_intercept=False, tol=1e-9).fit(one, y)
        assert ours.certificate_.objective == pytest.approx(newton.certificate_.objective, rel=1e-8)
        np.testing.assert_allclose(ours.coef_, newton.coef_[:, :-1], atol=1e-5)
        np.testing.assert_allclose(ours.intercept_, newton.coef_[:, -1], atol=1e-5)
    few = lsvm(C=1e4, max_iter=7)
    with pytest.warns(ConvergenceWarning, match="max_iter=7"):
        few.fit(X, y)
    about, exact = few.certificate_, LinearSVC(C=1e4, fit_intercept=False).fit(one, y).certificate_
    assert about.objective - about.gap <= exact.objective <= about.objective * (1 + 1e-12)
    three = lsvm(C=0.05).fit(X, np.arange(1500) % 3)
    assert three.coef_.shape == (3, 5)
    with pytest.raises(ValueError, match="between 0 and 1"):
        LinearLagrangian(share=1.0)
    with pytest.raises(ValueError, match="loss='squared_hinge'"):
        LinearSVC(loss="hinge", solver=LinearLagrangian()).fit(X, y)


@pytest.mark.parametrize("intercept", ["free", True, False])
def test_newtons_steps_are_whole(intercept):
    """Step by step that of the talk, for w and b together, whether or not the objective falls."""
    rng = np.random.default_rng(2)
    X = rng.normal(size=(80, 3)) * [1.0, 30.0, 0.1] + 2.0
    y = np.where(X @ [1.0, 0.05, 1.0] + rng.normal(size=80) > 3.0, 1.0, -1.0)
    C, weight = 7.0, rng.uniform(0.5, 2.0, 80)
    ridge = np.array([1.0, 1.0, 1.0, 1.0 if intercept is True else 0.0])
    one = np.hstack([X, np.full((80, 1), float(bool(intercept)))])
    u, values = np.zeros(4), []
    for step in range(1, 7):
        missing = 1.0 - y * (one @ u)
        S = missing >= 0.0
        g = ridge * u - 2.0 * C * one[S].T @ (weight[S] * y[S] * missing[S])
        H = np.diag(ridge) + 2.0 * C * (one[S] * weight[S, None]).T @ one[S]
        u = u - np.linalg.lstsq(H, g, rcond=None)[0]
        values.append(0.5 * ridge @ u**2 + C * weight @ np.maximum(0.0, 1.0 - y * (one @ u)) ** 2)
        model = linear_newton(C=C, fit_intercept=intercept, max_iter=step, tol=1e-15)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(X, y, weight)
        np.testing.assert_allclose(
            np.append(model.coef_, model.intercept_), u, rtol=1e-6, atol=1e-9
        )
        assert model.certificate_.objective == pytest.approx(values[-1], rel=1e-9)
    ours = LinearSVC(C=C, fit_intercept=intercept, tol=1e-12).fit(X, y, weight)
    for rows in (X, sp.csr_matrix(X)):
        model = linear_newton(C=C, fit_intercept=intercept).fit(rows, y, weight)
        about = model.certificate_
        assert about.holds and about.tol == 1e-7
        assert about.objective - about.gap <= ours.certificate_.objective * (1 + 1e-12)
        assert about.objective == pytest.approx(ours.certificate_.objective, rel=1e-6)


def test_whole_steps_may_rise_and_circle():
    """What a line search is for: the run ends at its limit, and its interval is true."""
    rose = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        X, y = rng.standard_cauchy((12, 2)), rng.permutation([0, 1] * 6)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model = linear_newton(C=1e3, tol=1e-12, max_iter=30).fit(X, y)
        about, exact = model.certificate_, LinearSVC(C=1e3, fit_intercept="free").fit(X, y)
        least = exact.certificate_
        assert about.interval[0] <= least.interval[1] and least.interval[0] <= about.interval[1]
        rose += bool((np.diff(model.history_["objective"]) > 1e-9 * least.objective).any())
    assert rose
    with pytest.raises(ValueError, match="loss='squared_hinge'"):
        LinearSVC(loss="hinge", solver=PlainNewton()).fit(X, y)
    with pytest.raises(ValueError, match="solver"):
        linear_newton(solver=None)


# -- subsets in the primal -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("retrain", "sizes"),
    [("powers", [1, 3, 7, 15, 20]), ("always", list(range(1, 21))), ("sizes", None)],
)
def test_when_the_model_is_trained_anew(monkeypatch, retrain, sizes):
    X, y = small(150)
    trained = []
    solve = pursuit.solve

    def noted(problem, *rest):
        trained.append(problem.columns.m)
        return solve(problem, *rest)

    monkeypatch.setattr(pursuit, "solve", noted)
    basis = Greedy(n_candidates=20, retrain=retrain)
    model = SparseSVC(20, gamma=GAMMA, basis=basis, refine=False, random_state=0).fit(X, y)
    assert [p.n_basis for p in model.path_] == [1, 2, 5, 10, 20], "the path stays"
    if sizes is None:  # powers of 2, and the sizes of the path
        sizes = [1, 2, 4, 5, 8, 10, 16, 20]
        named = SparseSVC(20, gamma=GAMMA, basis="greedy", refine=False, random_state=0).fit(X, y)
        plain = clone(model).set_params(basis=Greedy()).fit(X, y)
        np.testing.assert_array_equal(named.basis_indices_, plain.basis_indices_)
        trained = trained[: trained.index(20) + 1]
    assert sorted(set(trained)) == sizes


def test_the_pool_of_the_greedy_rule():
    """The first vector: g^2 / h of the empty model, over all rows or 10 of them."""
    X, y = small(120)
    K = matrix(X, X)
    g, h = -2.0 * K @ y, 1.0 + 2.0 * (K**2).sum(axis=1)
    for alone in (True, False):  # no other coefficient is there to move
        model = greedy_subset(
            1, n_candidates=None, alone=alone, gamma=GAMMA, fit_intercept=False, random_state=0
        ).fit(X, y)
        assert model.basis_indices_.tolist() == [np.argmax(g**2 / h)]
    both = [
        greedy_subset(
            10, n_candidates=None, alone=alone, gamma=GAMMA, retrain="always", random_state=0
        ).fit(X, y)
        for alone in (True, False)
    ]
    assert both[0].basis_indices_.tolist() != both[1].basis_indices_.tolist()
    assert both[1].certificate_.objective < both[0].certificate_.objective


@pytest.mark.parametrize("retrain", ["powers", "always"])
def test_the_greedy_rule_sees_p_candidates_for_every_vector(monkeypatch, retrain):
    """And none of them is in the subset already."""
    X, y = small(24)
    seen, joined = [], []

    def spy(self, pool, alone, known=greedy._Model.join_best):
        best = known(self, pool, alone)
        seen.append(set(pool.tolist()))
        joined.append(int(pool[best]))
        return best

    monkeypatch.setattr(greedy._Model, "join_best", spy)
    options = {"n_candidates": 10, "retrain": retrain, "gamma": GAMMA, "random_state": 0}
    model = greedy_subset(16, **options).fit(X, y)
    assert model.basis_indices_.tolist() == joined and len(joined) == 16
    assert [len(pool) for pool in seen] == [min(10, 24 - i) for i in range(16)]
    assert all(pool.isdisjoint(joined[:i]) for i, pool in enumerate(seen))


def test_margin_over_all_rows_after_every_training():
    X, y = small(80)
    chosen = margin_subset(5, gamma=GAMMA, random_state=0).fit(X, y).basis_indices_
    for m in range(1, 5):
        here = SparseSVC(gamma=GAMMA, basis=X[chosen[:m]], refine=False).fit(X, y)
        doubt = np.abs(here.decision_function(X))
        doubt[chosen[:m]] = np.inf
        assert np.argmin(doubt) == chosen[m]


def test_unsupervised_over_all_rows_takes_the_farthest():
    X, y = small(80)
    chosen = unsupervised_subset(6, gamma=GAMMA, random_state=0).fit(X, y).basis_indices_
    K = matrix(X, X)
    for m in range(1, 6):
        some = chosen[:m]
        left = 1.0 - np.einsum("ij,jk,ik->i", K[:, some], np.linalg.inv(K[np.ix_(some, some)]),
                               K[:, some])  # fmt: skip
        assert left[chosen[m]] == pytest.approx(left.max(), abs=1e-9)


# -- balls -----------------------------------------------------------------------------------------


def ball(n=120, C=10.0, seed=0):
    X, y = small(n, seed)
    problem = Ball(prepare(RBF(GAMMA), X, dtype=np.float64), y, C)
    Kt = np.outer(y, y) * (matrix(X, X) + 1.0) + np.eye(n) / (2.0 * C)
    return problem, Kt


@pytest.mark.parametrize("eps", [0.01, 0.0003])
def test_bvm_pulls_by_the_farthest_of_59(eps):
    problem, Kt = ball()
    n, kappa = len(Kt), Kt[0, 0]
    rng, al, rounds = np.random.default_rng(3), np.zeros(len(Kt)), 0
    first = [rng.choice(np.flatnonzero(problem.sign == side)) for side in (1.0, -1.0)]
    al[first[0]] = 1.0
    stage = 0.5
    while True:
        radius = (1.0 + max(stage, eps)) * np.sqrt(kappa)
        distance = np.sqrt(al @ Kt @ al - 2.0 * Kt @ al + kappa)
        drawn = rng.integers(n, size=59)
        point = drawn[np.argmax(distance[drawn])]
        if distance[point] <= radius:
            point = np.argmax(distance)
            if distance[point] <= radius:
                if stage <= eps:
                    break
                stage /= 2.0
                continue
        t = np.sqrt(kappa) / distance[point]
        al *= t
        al[point] += 1.0 - t
        rounds += 1
    found = run(CoreRounds(ball="fixed", seed=3), problem, tol=eps)
    assert found.n_iter == rounds
    np.testing.assert_allclose(found.model.a, al / (al @ Kt @ al), rtol=1e-8, atol=1e-10)


def test_cvm_lets_one_point_join_a_round(monkeypatch):
    problem, Kt = ball()
    n, kappa, eps = len(Kt), Kt[0, 0], 1e-4
    shadow, seen = np.random.default_rng(5), []
    for side in (1.0, -1.0):
        shadow.choice(np.flatnonzero(problem.sign == side))
    joined = CoreRounds._joined

    def checked(self, problem, S, point, s, eps):
        distance = S.al @ Kt @ S.al - 2.0 * Kt @ S.al + kappa
        limit = (1.0 + eps) ** 2 * (kappa - S.al @ Kt @ S.al)
        drawn = shadow.integers(n, size=59)
        outside = distance[drawn].max() > limit
        farthest = drawn[np.argmax(distance[drawn])] if outside else np.argmax(distance)
        assert distance[point] == pytest.approx(distance[farthest]) and distance[point] > limit
        before = S.core.size
        out = joined(self, problem, S, point, s, eps)
        assert S.core.size == before + 1 and S.core[-1] == point
        o = Kt @ S.al
        spread = o[S.core][S.al[S.core] > 0].max() - o[S.core].min()
        assert spread <= 0.3 * eps * (kappa - S.al @ o) + 1e-9, "the ball of the core set"
        assert not np.delete(S.al, S.core).any()
        seen.append(point)
        return out

    monkeypatch.setattr(CoreRounds, "_joined", checked)
    found = run(CoreRounds(seed=5), problem, tol=eps)
    assert found.certificate.holds and found.n_iter == len(seen) == len(set(seen))
    distance = np.sqrt(found.certificate.violation + 1.0)
    assert distance < 1.001


@pytest.mark.parametrize("recipe", [cvm, bvm])
def test_balls_keep_their_limits(recipe):
    X, y = small(2500)
    with pytest.warns(ConvergenceWarning, match="max_time"):
        recipe(C=100.0, gamma=GAMMA, max_time=0.05, random_state=0).fit(X, y)
    with pytest.warns(ConvergenceWarning, match="max_iter=20"):
        few = recipe(C=100.0, gamma=GAMMA, max_iter=20, random_state=0).fit(X, y)
    assert few.n_iter_.tolist() == [20] and few.support_.size <= 22
    if recipe is cvm:
        with pytest.warns(ConvergenceWarning, match="max_memory=0.05"):
            recipe(C=100.0, gamma=GAMMA, max_memory=0.05, random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="n_candidates=0 must be an integer, 1 or more"):
        CoreRounds(n_candidates=0)


# -- rows that pass by -----------------------------------------------------------------------------


class Witness(OnlineRounds):
    """Looks at every step of LASVM, with all kernel values at hand.

    Pairs that have just moved have equal gradients: which of them is the extreme one, rounding
    decides, and so a twin would part ways.
    """

    def look(self, problem, K, C):
        self.K, self.C, self.y, self.asked, self.moves = K, C, problem.sign, [], 0

    def alpha(self, S):
        out = np.zeros(self.y.size)
        out[S.ids[S.alive]] = (S.a * S.sign)[S.alive]
        return out

    def _chosen(self, problem, S, tol):
        shadow, left, alpha = np.random.default_rng(), self.left.copy(), self.alpha(S)
        shadow.bit_generator.state = self.rng.bit_generator.state
        row = super()._chosen(problem, S, tol)
        if self.selection == "random":
            assert row == left[0]
        else:
            draws = shadow.integers(left.size, size=min(left.size, 50))
            some = left[draws] if left.size > 50 else left
            f = np.abs(self.K[some] @ alpha - 0.5 * (S.bottom + S.top))
            assert (row < 0) == (f.min() >= 1.0)
            assert row < 0 or f[some.tolist().index(row)] == pytest.approx(f.min())
        assert row < 0 or (left.size == self.left.size + 1 and row not in self.left)
        self.asked.append(row)
        return row

    def _process(self, problem, S, row, tol):
        before = self.alpha(S)
        super()._process(problem, S, row, tol)
        assert row in S.ids[S.alive], "it joins in any case"
        y, g = self.y, self.y - self.K @ before
        expansion = S.ids[S.alive]
        up = expansion[before[expansion] < np.maximum(0, self.C * y[expansion])]
        low = expansion[before[expansion] > np.minimum(0, self.C * y[expansion])]
        i, j = (row, low[np.argmin(g[low])]) if y[row] > 0 else (up[np.argmax(g[up])], row)
        self.stepped(before, self.alpha(S), g, i, j, tol)

    def _reprocess(self, S, tol):
        before, expansion = self.alpha(S), S.ids[S.alive]
        super()._reprocess(S, tol)
        y, g = self.y, self.y - self.K @ before
        up = expansion[before[expansion] < np.maximum(0, self.C * y[expansion])]
        low = expansion[before[expansion] > np.minimum(0, self.C * y[expansion])]
        after = self.alpha(S)
        moved = self.stepped(before, after, g, up[np.argmax(g[up])], low[np.argmin(g[low])], tol)
        if moved:
            g = self.y - self.K @ after
            stays = S.ids[S.alive]
            up = expansion[after[expansion] < np.maximum(0, self.C * y[expansion])]
            low = expansion[after[expansion] > np.minimum(0, self.C * y[expansion])]
            far = np.where(y < 0, g - g[up].max(), g[low].min() - g)[expansion]
            gone = ~np.isin(expansion, stays)
            assert not after[expansion[gone]].any() and (far[gone] >= -1e-9).all()
            bare = (after[expansion] == 0.0) & ~gone
            assert (far[bare] <= 1e-9).all()

    def stepped(self, before, after, g, i, j, tol):
        """One pair, as extreme as (i, j), by the best step within the bounds; or none."""
        changed = np.flatnonzero(np.abs(after - before) > 0)
        if g[i] - g[j] <= tol:
            assert changed.size == 0
            return False
        rise, fall = changed[np.argsort(before[changed] - after[changed])]
        assert g[rise] == pytest.approx(g[i]) and g[fall] == pytest.approx(g[j])
        K, y, C = self.K, self.y, self.C
        best = (g[rise] - g[fall]) / (K[rise, rise] + K[fall, fall] - 2 * K[rise, fall])
        room = max(0, C * y[rise]) - before[rise], before[fall] - min(0, C * y[fall])
        assert after[rise] - before[rise] == pytest.approx(min(best, *room))
        assert after[fall] - before[fall] == pytest.approx(-min(best, *room))
        self.moves += 1
        return True


@pytest.mark.parametrize("selection", ["random", "margin"])
def test_lasvm_is_process_and_reprocess(selection):
    X, y = small(150, seed=1)
    order = np.random.default_rng(2).permutation(150)
    rows = prepare(RBF(GAMMA), X, dtype=np.float64)
    problem = Passing(rows, y, np.full(150, 2.0), np.arange(150), order)
    solver = Witness(selection=selection, seed=4)
    solver.look(problem, matrix(X, X), 2.0)
    found = run(solver, problem, tol=1e-3).model
    taken = [row for row in solver.asked if row >= 0]
    assert found.n_iter == len(taken) + 10 and len(set(taken)) == len(taken)
    assert (len(taken) == 140) or selection == "margin"
    assert solver.moves > len(taken) and found.alive.size < found.n_iter


def test_active_lasvm_takes_few_rows_and_finishes():
    X, y = small(1500)
    model = lasvm_active(C=10.0, gamma=GAMMA, random_state=0).fit(X, y)
    assert model.certificate_.violation <= 1e-3 and model.certificate_.scope == "subspace"
    with pytest.warns(ConvergenceWarning, match="max_iter=100"):
        few = lasvm_active(C=10.0, gamma=GAMMA, random_state=0, max_iter=100).fit(X, y)
    assert few.support_.size <= 100 < model.support_.size
    with pytest.raises(ValueError, match="max_support=5"):
        OnlineSVC(solver=OnlineRounds(), max_support=5).fit(X, y)
    with pytest.raises(ValueError, match="leave solver out"):
        OnlineSVC(solver=OnlineRounds()).partial_fit(X, y, classes=[-1.0, 1.0])
    with pytest.raises(ValueError, match="1 or more"):
        OnlineRounds(n_candidates=0)


def test_lasvm_within_a_small_cache():
    """Vectors that rest count in every decision: the finishing ends at the same solution."""
    X, y = small(3000)
    plain = lasvm(C=0.05, gamma=GAMMA, random_state=0).fit(X, y)
    tight = lasvm(C=0.05, gamma=GAMMA, random_state=0, cache_size=1.0).fit(X, y)
    assert plain.support_.size > 1100, "more than the cache holds"
    assert tight.score(X, y) == pytest.approx(plain.score(X, y), abs=0.01)


# -- cross-training --------------------------------------------------------------------------------


@pytest.mark.parametrize("discard", ["both", "noise", "redundant"])
def test_the_rules_of_cross_training_are_plain(discard):
    X, y = make_moons(300, noise=0.4, random_state=0)
    model = cross_training(4, 100, discard=discard, gamma=2.0, random_state=0).fit(X, y)
    m, v = model.margin_means_[0], model.margin_variances_[0]
    noise, redundant = m + v < 0.0, m - v > 1.0
    gone = (noise & (discard != "redundant")) | (redundant & (discard != "noise"))
    assert model.kept_indices_[0].tolist() == np.flatnonzero(~gone).tolist()
    assert 0 < gone.sum() < 300
    assert (model.n_noise_[0] > 0) == (discard != "redundant")
    assert (model.n_redundant_[0] > 0) == (discard != "noise")
    with pytest.raises(ValueError, match="'both', 'noise', 'redundant'"):
        cross_training(discard="all")
    with pytest.raises(ValueError, match="zero or more"):
        Discard(beyond=-1.0)


def test_equal_rows_are_drawn_and_judged_one_by_one():
    """The naive twin draws N2/2 examples of each class, whatever rows are equal to them."""
    X, y = make_moons(200, noise=0.4, random_state=0)
    X, y = np.concatenate([X, X[:100]]), np.concatenate([y, y[:100]])
    seen, fit = [], SVC.fit

    class Noted(SVC):
        def fit(self, X, y, sample_weight=None):
            seen.append((X.copy(), y.copy(), sample_weight))
            return fit(self, X, y, sample_weight)

    model = cross_training(4, 100, gamma=2.0, random_state=0).set_params(estimator=Noted(gamma=2.0))
    model.fit(X, y)
    *subsets, final = seen
    sign = np.where(y == 1, 1.0, -1.0)
    margins = []
    for rows, labels, weight in subsets:
        assert weight is None and np.bincount(labels).tolist() == [50, 50]
        margins.append(sign * SVC(gamma=2.0).fit(rows, labels).decision_function(X))
    assert any(len(np.unique(rows, axis=0)) < 100 for rows, _, _ in subsets), "equal rows drawn"
    m, v = np.mean(margins, axis=0), np.var(margins, axis=0)
    stays = ~((m + v < 0.0) | (m - v > 1.0))
    assert model.kept_indices_[0].tolist() == np.flatnonzero(stays).tolist()
    assert final[2] is None and np.array_equal(final[0], X[stays])
    merged = CrossTraining(SVC(gamma=2.0), 4, 100, discard=Discard(beyond=0.0), random_state=0)
    assert merged.fit(X, y).kept_indices_[0].tolist() != model.kept_indices_[0].tolist()


def test_redundant_begins_at_the_margin():
    """Of rows between 1 and 1.001 the estimator's own rule keeps what the talk's discards."""
    X, y = make_moons(300, noise=0.3, random_state=0)
    options = {"balanced_subsets": True, "held_out": False, "random_state": 0}
    m, v = (
        CrossTraining(SVC(gamma=2.0), 4, 100, **options).fit(X, y).margin_means_[0],
        CrossTraining(SVC(gamma=2.0), 4, 100, **options).fit(X, y).margin_variances_[0],
    )
    plain = CrossTraining(SVC(gamma=2.0), 4, 100, discard=Discard(beyond=0.0), **options).fit(X, y)
    far = CrossTraining(SVC(gamma=2.0), 4, 100, discard=Discard(beyond=0.3), **options).fit(X, y)
    assert plain.n_redundant_[0] == np.count_nonzero(m - v > 1.0) > far.n_redundant_[0]
    assert far.n_redundant_[0] == np.count_nonzero(m - v > 1.3)


def test_the_cache_begins_with_what_the_margins_say(monkeypatch):
    X, y = make_moons(2500, noise=0.4, random_state=0)
    filled = []
    fill = Gram.fill

    def noted(self, rows):
        filled.append((rows.copy(), self._row.size))
        fill(self, rows)
        assert self.cached(rows[: self._row.size]).all()

    monkeypatch.setattr(Gram, "fill", noted)
    model = cross_training(
        3, 300, warm_start_dual=True, gamma=2.0, cache_size=5.0, random_state=0
    ).fit(X, y)
    mean = model.margin_means_[0]
    (rows, slots), *others = filled
    assert not others and slots < rows.size, "one, which is full"
    assert rows.tolist() == np.argsort(mean, kind="stable")[: np.count_nonzero(mean < 1)].tolist()
    exact = SVC(gamma=2.0).fit(X, y)
    assert model.certificate_.objective == pytest.approx(exact.certificate_.objective, rel=1e-4)
    assert model.n_kept_[0] == 2500 and model.certificate_.scope == "full"


# -- parameters ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: CuttingPlane(stop="soon"), "'gap', 'violation'"),
        (lambda: CuttingPlane(stop="violation"), "line_search=False"),
        (lambda: CuttingPlane(max_idle=0), "1 or more"),
        (lambda: CuttingPlane(towards=0.0), r"in \(0, 1\]"),
        (lambda: SampledCuts(max_draws=0), "1 or more"),
        (lambda: SampledCuts(quiet=0), "1 or more"),
        (lambda: SampledCuts(sampling="often"), "linear_time"),
        (lambda: Greedy(n_candidates=0), "1 or more"),
        (lambda: Greedy(retrain="never"), "'sizes', 'powers', 'always'"),
        (lambda: greedy_subset(retrain="sizes"), "'powers', 'always'"),
        (lambda: Decomposition(working_set=1), "an integer, 2 or more"),
        (lambda: Decomposition(history=0.5), "an integer, 1 or more"),
        (lambda: Decomposition(selection="best"), "'steepest', 'basic'"),
        (lambda: Decomposition(keep=1.0), "1 excluded"),
        (lambda: recipes.rsvm_decomposition(working_set="q"), "from 1 to the rows"),
        (lambda: recipes.chunking(chunk=2.5), "an integer, 2 or more"),
        (lambda: recipes.chunking(seed="x"), "an integer, 0 or more"),
        (lambda: recipes.smo(seed=-1), "an integer, 0 or more"),
        (lambda: recipes.smo("x"), "between 0 and 1, both excluded"),
        (lambda: recipes.svm_light(shrinking="no"), "True or False"),
        (lambda: recipes.svm_light(prefer_cached=2), "True or False"),
        (lambda: recipes.svm_light(history=True), "an integer, 1 or more"),
        (lambda: recipes.svm_light(threshold=-1.0), "a finite number above 0"),
        (lambda: recipes.rsvm_smooth(beta="x"), "a finite number above 0"),
        (lambda: recipes.rsvm_smooth(beta=np.inf), "a finite number above 0"),
        (lambda: recipes.rsvm_decomposition(working_set=True), "from 1 to the rows"),
        (lambda: LinearLagrangian(share="x"), "between 0 and 1, both excluded"),
        (lambda: CuttingPlane(line_search=None), "True or False"),
        (lambda: SampledCuts(sample_size=1.5), "an integer, 1 or more"),
        (lambda: CoreRounds(n_candidates=None), "an integer, 1 or more"),
        (lambda: OnlineRounds(n_candidates="x"), "an integer, 1 or more"),
        (lambda: Discard(beyond="x"), "zero or more"),
        (lambda: Discard(merged=1), "True or False"),
        (lambda: Greedy(alone="x"), "True or False"),
        (lambda: FixedPoint(max_iter=None), "an integer, 1 or more"),
        (lambda: Margin(retrain="powers"), "'share', 'always'"),
        (lambda: Unsupervised(n_candidates=2.5), "an integer"),
        (lambda: PursuitRows(n_rows=0), "1 or more"),
        (lambda: Pursuit(n_starts=0), "1 or more"),
        (lambda: FixedPoint(tol=0.0), "above 0"),
        (lambda: greedy_subset(5, retrain="later"), "'powers'"),
    ],
)
def test_values_that_make_no_sense(make, words):
    with pytest.raises(ValueError, match=words):
        make()


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (LinearSVC(solver=CuttingPlane()), "loss='hinge'"),
        (SparseSVC(solver=CuttingPlane()), "loss='hinge'"),
        (SparseSVC(basis=Greedy(), loss="hinge"), "needs a loss with a curvature"),
        (StructuralSVM(Binary(), space="sampled", solver=CuttingPlane()), "needs a SampledCuts"),
        (StructuralSVM(Binary(), space="kernel", solver=SampledCuts()), "needs a CuttingPlane"),
        (StructuralSVM(Binary(), space="subspace", basis=Greedy(), n_basis=5), "curvature"),
        (SparseSVC(solver="fast"), "solver"),
        (SparseSVC(basis=SquaredHinge()), "basis"),
    ],
)
def test_solvers_and_bases_that_do_not_fit(model, words):
    X, y = small(60)
    with pytest.raises(ValueError, match=words):
        model.fit(X, y)


@pytest.mark.parametrize(
    "model",
    [
        cpsp(5, gamma=GAMMA, random_state=0),
        linear_cutting_plane(),
        sampled_cuts_linear(20, gamma=GAMMA, random_state=0),
        greedy_subset(5, n_candidates=7, alone=True, gamma=GAMMA, random_state=0),
        margin_subset(5, gamma=GAMMA, random_state=0),
        cvm(gamma=GAMMA, eps=1e-3, random_state=0),
        cross_training(2, 30, gamma=GAMMA, random_state=0),
    ],
    ids=lambda model: type(model).__name__,
)
def test_a_file_holds_solver_and_basis(model, tmp_path):
    X, y = small(60)
    model.fit(X, y)
    save(model, tmp_path / "model")
    again = load(tmp_path / "model")
    assert repr(again) == repr(model)
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))
    assert clone(again).fit(X, y).certificate_ == model.certificate_


def test_what_a_pursuit_learns_stays_in_its_fit():
    X, y = small(3000)
    basis = Pursuit()
    model = SparseSVC(12, gamma=GAMMA, basis=basis, refine=False, random_state=0)
    first = model.fit(X, y).basis_.copy()
    named = clone(model).set_params(basis="pursuit").fit(X, y)
    assert not basis._seen
    np.testing.assert_array_equal(model.fit(X, y).basis_, first)
    np.testing.assert_array_equal(named.basis_, first)


def test_time_is_limited():
    X, y = small(3000)
    model = cpsp(50, C=100.0, gamma=GAMMA, tol=1e-9, random_state=0, max_time=0.2)
    with pytest.warns(ConvergenceWarning, match="max_time"):
        model.fit(X, y)
    assert model.score(X, y) > 0.5


def test_the_kernel_matrix_of_the_cutting_planes_is_in_memory_once():
    X, y = checkers(1500, seed=0)
    model = recipes.kernel_cutting_plane(C=1.0, gamma=5.0, max_iter=2, random_state=0)
    tracemalloc.start()
    try:
        with pytest.warns(ConvergenceWarning, match="max_iter"):
            model.fit(X, y)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 1.5 * 8 * 1500**2, "max_memory counts one"


def test_the_time_of_cross_training_is_that_of_all_its_fits():
    model = cross_training(4, 50, max_time=600.0, C=2.0)
    assert (model.max_time, model.estimator.max_time, model.estimator.C) == (600.0, None, 2.0)
    X, y = small(120)
    model.set_params(max_time=1e-6, estimator__max_iter=10, random_state=0)
    with pytest.warns(ConvergenceWarning, match="max_"):
        model.fit(X, y)
