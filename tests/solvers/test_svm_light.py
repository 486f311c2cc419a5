"""SVM-light as it was published: every iteration beside a naive twin that reads like the text, and
the parts that the text names (interior point, cache of rows) beside exact answers.
"""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.spatial.distance import cdist
from sklearn import svm

from slimsvm import SVC, SparseSVC, load, save
from slimsvm.kernels import RBF
from slimsvm.recipes import libsvm_q, svm_light
from slimsvm.run import run
from slimsvm.solvers.interior_point import InteriorPoint, minimised
from slimsvm.solvers.row_cache import RowCache
from slimsvm.solvers.smo import smo
from slimsvm.solvers.svm_light import SVMLight
from slimsvm.tiles import prepare
from tests.reference.machines import make_problem, random_rows
from tests.reference.naive import dual_gap, dual_objective

EPS = 1e-3


@pytest.fixture(scope="module")
def data():
    X, y, t = random_rows(120, seed=3)
    return X, y, t, np.exp(-0.5 * cdist(X, X, "sqeuclidean"))


@pytest.fixture(scope="module")
def minimum(data):
    """The least value of the dual problem at C = 2, by scikit-learn."""
    _, y, _, K = data
    there = svm.SVC(C=2.0, kernel="precomputed", tol=1e-10).fit(K, y)
    coef = np.zeros(120)
    coef[there.support_] = there.dual_coef_[0]
    return 0.5 * coef @ K @ coef - np.abs(coef).sum()


def violations(K, y, a, C):
    """The conditions of section 5.1, one number for each variable, and lambda_eq."""
    s = K @ (y * a)
    free = (a > 0) & (a < C)
    level = np.mean((y - s)[free])
    estimate = y * (s + level) - 1
    wrong = np.where(
        a == 0, np.maximum(0, -estimate), np.where(a == C, np.maximum(0, estimate), abs(estimate))
    )
    return wrong, estimate, level


def steepest(K, y, a, C, q, active):
    """Section 3: sort by omega in decreasing order, and pick from both ends of the list."""
    omega = y * (y * (K @ (y * a)) - 1)

    def picked(order, direction, chosen):
        for i in order:
            inside = 0 < a[i] < C
            obeys = (a[i] > 0 or direction[i] >= 0) and (a[i] < C or direction[i] <= 0)
            if active[i] and i not in chosen and (inside or obeys) and len(found) < q // 2:
                found.append(int(i))
        return found

    found = []
    top = picked(np.argsort(-omega, kind="stable"), -y, [])
    found = []
    return top + picked(np.argsort(omega, kind="stable"), y, top)


# -- the algorithm ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("q", "inner", "threshold"),
    [(2, "interior_point", 0.0), (6, "interior_point", 0.3), (2, "smo", 0.3), (6, "smo", 0.0)],
)
def test_every_iteration_is_that_of_the_text(data, q, inner, threshold):
    X, y, t, K = data
    problem = make_problem("classification", X, y, t)
    solver = SVMLight(working_set=q, history=7, inner=inner, threshold=threshold)
    state = solver.init(problem)
    C, positive = 2.0, np.zeros(120, int)
    active, value = np.ones(120, bool), 0.0
    for _ in range(60):
        before = state.a.copy()
        expected = steepest(K, y, before, C, q, active)
        omega = y * (y * (K @ (y * before)) - 1)
        rows = solver.iterate(state, EPS)
        solver._globalise(state)
        # exactly q variables, those with the steepest feasible direction; no other changes
        # (values of omega that the last problem made equal differ by rounding: any of them will do)
        assert np.allclose(omega[rows], omega[expected], atol=1e-7) and len(set(rows)) == q
        changed = np.flatnonzero(state.a != before)
        assert set(changed) <= set(rows)
        # the problem in the set is solved: no pair of it violates any more
        omega = y * (y * (K @ (y * state.a)) - 1)
        rise = np.where(y > 0, state.a < C, state.a > 0)[rows]
        fall = np.where(y > 0, state.a > 0, state.a < C)[rows]
        gap = np.max(omega[rows][fall], initial=-9) - np.min(omega[rows][rise], initial=9)
        assert gap <= 0.1 * EPS + 1e-8
        # a strict descent, in a feasible point
        assert dual_objective(K, problem, state.a) < value - 1e-13
        value = dual_objective(K, problem, state.a)
        assert state.objective == pytest.approx(value, abs=1e-9)
        assert abs(y @ state.a) < 1e-10 and state.a.min() >= 0 and state.a.max() <= C
        # shrinking: at a bound, with an estimate above the threshold in the last h iterations
        _, estimate, level = violations(K, y, state.a, C)
        assert state.level == pytest.approx(-level, abs=1e-9)
        pushed = (state.a == 0) & (estimate > threshold)
        pushed |= (state.a == C) & (estimate < -threshold)
        positive = np.where(pushed, positive + 1, 0)
        active &= positive < 7
        alive = np.zeros(120, bool)
        alive[state.cache.columns[state.alive_]] = True
        assert np.array_equal(alive, active)
        if state.violation <= EPS:
            break
    assert not active.all(), "something has left, or nothing was tested"


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"working_set": 2},
        {"working_set": 40},
        {"inner": "smo"},
        {"shrinking": False},
        {"history": 3},
        {"selection": "basic"},
        {"selection": "basic", "working_set": 4, "inner": "smo"},
        {"prefer_cached": True},
        {"new_variables": 2},
        {"new_variables": 3, "prefer_cached": True, "working_set": 8},
    ],
)
@pytest.mark.parametrize("budget", [1e8, 120 * 8 * 15])
def test_the_conditions_hold_within_eps_for_all_variables(data, minimum, options, budget):
    X, y, t, K = data
    problem = make_problem("classification", X, y, t, budget=budget)
    result = run(SVMLight(**options), problem, tol=EPS)
    wrong, _, _ = violations(K, y, result.model.a, 2.0)
    assert result.status.converged and wrong.max() <= EPS + 1e-9
    assert result.certificate.violation == pytest.approx(wrong.max(), abs=1e-8)
    assert 0 <= result.certificate.objective - minimum + 1e-8 <= result.certificate.gap + 2e-8
    level = result.model.level
    assert result.certificate.gap == pytest.approx(
        dual_gap(K, problem, result.model.a, level), rel=1e-6, abs=1e-7
    )


def test_n_new_variables_in_every_iteration(data):
    X, y, t, _ = data
    solver = SVMLight(working_set=8, new_variables=2, shrinking=False)
    state = solver.init(make_problem("classification", X, y, t))
    last = solver.iterate(state, EPS)
    for _ in range(20):
        rows = solver.iterate(state, EPS)
        assert rows.size == 8
        assert rows[:6].tolist() == last[2:].tolist(), "those that were in it longest have left"
        assert not set(rows[6:]) & set(rows[:6])
        last = rows


def test_the_basic_strategy_replaces_half_of_the_set_by_violators(data):
    X, y, t, K = data
    solver = SVMLight(working_set=8, selection="basic", shrinking=False)
    state = solver.init(make_problem("classification", X, y, t))
    last, whole = solver.iterate(state, EPS), 0
    for _ in range(30):
        wrong, _, _ = violations(K, y, state.a_, 2.0)
        rows = solver.iterate(state, EPS)
        new = [i for i in rows if i not in set(last)]
        assert rows.size == 8 and len(set(rows)) == 8
        assert len(new) <= 4 or np.count_nonzero(wrong > EPS) < 4
        violating = [i for i in rows[4:] if wrong[i] > EPS]
        whole += len(violating) == 4
        last = rows
    assert whole >= 25  # but for sets that would stand still


def test_half_of_the_whole_set_is_cached(data):
    X, y, t, _ = data
    solver = SVMLight(working_set=8, prefer_cached=True, shrinking=False)
    state = solver.init(make_problem("classification", X, y, t, budget=120 * 8 * 20))
    enough = 0
    for _ in range(60):
        before = state.cache.cached(np.arange(120))
        falls, rises = state.falls_ < 1e299, state.rises_ < 1e299
        can = min(np.count_nonzero(falls & before), np.count_nonzero(rises & before))
        rows = solver.iterate(state, EPS)
        if can >= 4:
            enough += 1
            assert np.count_nonzero(before[rows]) >= 4
    assert enough > 40


def test_no_size_is_solved_whole_and_no_goal_is_halved(data):
    X, y, _, _ = data
    model = SVC(C=2.0, gamma=0.5, solver=SVMLight()).fit(X, y)
    assert model.n_iter_[0] > 10 and 1e-5 < model.certificate_.violation <= EPS


def test_nothing_is_left_out_when_shrinking_is_wrong(data):
    X, y, t, K = data
    problem = make_problem("classification", X, y, t, C=20.0)
    result = run(SVMLight(history=1, working_set=4, inner="smo"), problem, tol=1e-4)
    assert result.history["active"].min() < 60
    wrong, _, _ = violations(K, y, result.model.a, 20.0)
    assert wrong.max() <= 1e-4 + 1e-8


def test_the_limits_are_kept(data, minimum):
    X, y, t, _ = data
    problem = make_problem("classification", X, y, t)
    result = run(SVMLight(history=2), problem, tol=1e-9, max_iter=17)
    assert result.n_iter == 17 and result.status.reason == "max_iter"
    assert result.certificate.objective - minimum <= result.certificate.gap


# -- the cache -------------------------------------------------------------------------------------


def test_the_least_recently_used_row_goes():
    X = np.random.default_rng(0).standard_normal((30, 2))
    cache, last = RowCache(prepare(RBF(1.0), X, dtype=np.float64), 7 * 30 * 8.0), {}
    K, hits, misses = np.exp(-cdist(X, X, "sqeuclidean")), 0, 0
    rng = np.random.default_rng(1)
    for now in range(100):
        rows = rng.choice(30, 4, replace=False).tolist()
        hits, misses = (
            hits + sum(i in last for i in rows),
            misses + sum(i not in last for i in rows),
        )
        assert np.allclose(cache.take(np.array(rows)), K[rows], atol=1e-12)
        kept = set(np.flatnonzero(cache.cached(np.arange(30))).tolist())
        gone = set(last) - kept
        last |= dict.fromkeys(rows, now)
        assert set(rows) <= kept and len(kept) == min(7, len(last))
        assert all(last[i] <= last[j] for i in gone for j in kept)
        last = {i: last[i] for i in kept}
    assert (cache.hits, cache.misses, cache.n_values) == (hits, misses, 30 * misses)
    assert hits > 50


def test_the_cache_is_reorganised_after_shrinking():
    X = np.random.default_rng(0).standard_normal((40, 2))
    K = np.exp(-cdist(X, X, "sqeuclidean"))
    cache = RowCache(prepare(RBF(1.0), X, dtype=np.float64), 5 * 40 * 8.0)
    cache.take(np.array([3, 1, 17]))
    keep = np.arange(0, 40, 2)
    cache.restrict(keep)
    assert cache.cached(np.array([3, 1, 17])).all()
    rows = np.array([1, 17, 3, 8, 9, 10, 11])  # twice as many rows fit
    assert np.allclose(cache.take(rows), K[np.ix_(rows, keep)]) and cache.cached(rows).all()
    assert (cache.hits, cache.misses, cache.n_values) == (3, 7, 3 * 40 + 4 * 20)


# -- the problem in the working set ----------------------------------------------------------------


def test_interior_point_against_pair_steps_at_every_scale():
    rng = np.random.default_rng(0)
    for trial in range(60):
        n, C = int(rng.integers(2, 25)), 10.0 ** rng.uniform(-4, 6)
        X = rng.standard_normal((n, 3))
        K = np.exp(-rng.uniform(0.01, 5) * cdist(X, X, "sqeuclidean")) * 10.0 ** rng.uniform(-3, 3)
        if trial % 4 == 0:  # two equal rows: singular
            K[1], K[:, 1] = K[0], K[:, 0]
            K[1, 1] = K[0, 0]
        z = np.where(np.arange(n) % 2, 1.0, -1.0)
        upper, start = C * rng.uniform(0.5, 2, n), np.zeros(n)
        start[:2] = 0.1 * C
        H, c = z[:, None] * K * z, np.full(n, -(10.0 ** rng.uniform(-2, 2)))
        x, a, o = minimised(H, c, upper, z, z @ start), start.copy(), z * (H @ start + c)
        smo(K, np.diag(K).copy(), z, upper, a, o, n, -1e-10 * c[0], 300_000)
        best = 0.5 * a @ H @ a + c @ a
        assert 0.5 * x @ H @ x + c @ x <= best + 1e-8 * abs(best)
        assert x.min() >= 0 and np.all(x <= upper) and abs(z @ x - z @ start) <= 1e-9 * C


def test_interior_point_against_closed_forms_and_scipy():
    # a projection on the positive orthant, and on a simplex
    v = np.array([0.7, -0.2, 0.1, 0.9])
    assert np.allclose(minimised(np.eye(4), -v, np.full(4, np.inf)), np.maximum(v, 0), atol=1e-9)
    ones = np.ones(4)
    simplex = minimised(np.eye(4), -v, np.full(4, np.inf), ones, 1.0)
    assert np.allclose(simplex, np.maximum(v - 0.3, 0), atol=1e-9)
    rng = np.random.default_rng(1)
    A = rng.standard_normal((6, 6))
    H, c, upper = A @ A.T, rng.standard_normal(6), np.array([1, np.inf, 0.3, 2, np.inf, 0.1])
    z = rng.standard_normal(6)
    there = minimize(
        lambda x: 0.5 * x @ H @ x + c @ x,
        np.full(6, 0.05),
        jac=lambda x: H @ x + c,
        bounds=[(0, None if np.isinf(u) else u) for u in upper],
        constraints=[{"type": "eq", "fun": lambda x: z @ x - 0.1}],
        options={"ftol": 1e-14, "maxiter": 1000},
    )
    x = minimised(H, c, upper, z, 0.1)
    assert 0.5 * x @ H @ x + c @ x <= there.fun + 1e-8 and abs(z @ x - 0.1) < 1e-12
    problem = InteriorPoint(H, c, upper, z, 0.1)
    while not problem.done:
        problem.iterate()
    assert problem.n_iter < 30


# -- recipes ---------------------------------------------------------------------------------------


def test_the_recipe_trains_the_same_svm(data):
    X, y, _, _ = data
    exact = SVC(C=2.0, gamma=0.5).fit(X, y)
    for model in (
        svm_light(C=2.0, gamma=0.5, eps=1e-5).fit(X, y),
        SVC(C=2.0, gamma=0.5, tol=1e-5, solver=SVMLight(working_set=4)).fit(X, y),
    ):
        assert np.allclose(model.decision_function(X), exact.decision_function(X), atol=1e-3)
    several = np.digitize(X[:, 0], [-0.5, 0.5])
    one, other = (m.fit(X, several) for m in (svm_light(C=2.0, eps=1e-5, inner="smo"), SVC(C=2.0)))
    assert np.allclose(one.decision_function(X), other.decision_function(X), atol=1e-3)


def test_model_files_hold_the_solver(data, tmp_path):
    X, y, _, _ = data
    model = svm_light(working_set=4, gamma=0.5, prefer_cached=True).fit(X, y)
    save(model, tmp_path / "model.slim")
    again = load(tmp_path / "model.slim")
    assert again.solver == model.solver == SVMLight(working_set=4, prefer_cached=True)
    assert np.array_equal(again.decision_function(X), model.decision_function(X))


def test_libsvm_q_is_the_squared_hinge(data):
    X, y, _, _ = data
    weight = np.linspace(0.5, 2.0, y.size)
    model = libsvm_q(C=2.0, gamma=0.5, tol=1e-7).fit(X, y, weight)
    exact = SparseSVC(y.size, basis="all", refine=False, C=2.0, gamma=0.5, tol=1e-9)
    exact.fit(X, y, weight)
    assert np.allclose(model.decision_function(X), exact.decision_function(X), atol=1e-5)
    # its certificate: minus the dual value is at most the primal one
    assert -model.certificate_.objective == pytest.approx(exact.certificate_.objective, rel=1e-6)
    assert 0 <= model.certificate_.gap < 1e-4


@pytest.mark.parametrize(
    ("given", "range_"),
    [
        ({"working_set": 1}, "even number from 2"),
        ({"working_set": 7}, "even number from 2"),
        ({"working_set": 0}, "even number from 2"),
        ({"working_set": "ten"}, "even number from 2"),
        ({"new_variables": 11}, "from 2 to working_set=10"),
        ({"new_variables": 1}, "from 2 to working_set=10"),
        ({"selection": "random"}, "'steepest', 'basic'"),
        ({"inner": "loqo"}, "'interior_point', 'smo'"),
        ({"history": 0}, "1 or more"),
        ({"working_set": 2, "prefer_cached": True}, "4 or more"),
    ],
)
def test_what_is_refused(given, range_):
    with pytest.raises(ValueError, match=range_):
        svm_light(**given)


def test_a_working_set_above_n_is_refused(data):
    X, y, _, _ = data
    with pytest.raises(ValueError, match="even number from 2 to 120"):
        svm_light(working_set=122).fit(X, y)
    with pytest.raises(ValueError, match="svm_light has tol="):
        svm_light(tol=0.1)
    with pytest.raises(ValueError, match="svm_light has solver="):
        svm_light(solver=None)
