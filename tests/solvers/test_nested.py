"""Rows that join one after the other: the end is that of the decomposition, and what is said of a
fit that was stopped on the way is true of all rows.
"""

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import slimsvm
import slimsvm.estimators.dual as dual
import slimsvm.solvers.decomposition as decomposition
import slimsvm.solvers.nested as nested
import slimsvm.solvers.removed_rows as removed_rows
from slimsvm.kernels import RBF, FromCallable, Linear, Precomputed
from slimsvm.run import Limits, run
from slimsvm.solvers.decomposition import Decomposition
from slimsvm.solvers.nested import Nested
from tests.reference.machines import MACHINES, make_problem, random_rows
from tests.reference.naive import dual_gap, dual_objective, dual_violation

every_machine = pytest.mark.parametrize("machine", MACHINES)
N = 700


@pytest.fixture(autouse=True)
def few_rows_are_many(monkeypatch):
    monkeypatch.setattr(decomposition, "WHOLE", 8)
    monkeypatch.setattr(decomposition, "EXACT", 0)
    monkeypatch.setattr(decomposition, "LEAST_DROP", 0.05)  # remove early and often
    monkeypatch.setattr(nested, "FEWEST", 10)


def solve(problem, solver=None, **options):
    solver = solver or Nested(first=40, working_set=24, history=1)
    return run(solver, problem, **{"tol": 1e-4, "limits": Limits(max_time=60.0), **options})


def check_feasible(problem, a):
    assert np.all(a >= 0) and np.all(a <= problem.upper)
    for group in problem.groups():
        z = problem.sign[group]
        assert z @ a[group] == pytest.approx(z @ problem.start[group], abs=1e-8)


@every_machine
@pytest.mark.parametrize("budget", [0, 1e8])
def test_the_end_is_that_of_the_decomposition(machine, budget):
    n = N // 2
    X, y, t = random_rows(n, seed=3)
    K = RBF(0.5)(X)
    weight = np.random.default_rng(0).uniform(0.2, 3.0, n)
    plain = solve(make_problem(machine, X, y, t, weight=weight), Decomposition())
    problem = make_problem(machine, X, y, t, weight=weight, budget=budget)
    result = solve(problem)
    a, about = result.model.a, result.certificate
    check_feasible(problem, a)
    assert result.status.converged and about.scope == "full" and result.model.n_waiting == 0
    assert about.violation == pytest.approx(dual_violation(K, problem, a), abs=1e-9)
    assert about.objective == pytest.approx(dual_objective(K, problem, a), rel=1e-9)
    gap = dual_gap(K, problem, a, result.model.level)
    assert about.gap == pytest.approx(gap, rel=1e-6, abs=1e-7)
    assert abs(about.objective - plain.certificate.objective) <= about.gap + plain.certificate.gap
    assert result.history["waiting"][0] > 0


@every_machine
@pytest.mark.parametrize("part", [1, 300_000_000])
def test_what_is_said_on_the_way_is_true(machine, part, monkeypatch):
    """``part``: how much may be looked at for a certificate; nothing, or everything."""
    monkeypatch.setattr(removed_rows, "PART", part)
    X, y, t = random_rows(N, seed=5)
    K = RBF(0.5)(X)
    best = solve(make_problem(machine, X, y, t), Decomposition(), tol=1e-8).certificate.objective
    for most in (1, 30, 100, 300, 1000):
        problem = make_problem(machine, X, y, t, budget=0)
        result = solve(problem, tol=1e-6, max_iter=most)
        a, about = result.model.a, result.certificate
        assert np.all(a >= 0) and np.all(a <= problem.upper)
        if about.scope == "full":
            check_feasible(problem, a)
            assert about.objective == pytest.approx(dual_objective(K, problem, a), rel=1e-8)
            low, high = about.interval
            assert low - 1e-9 <= best <= high + 1e-9
        if np.isfinite(about.gap):
            violation = dual_violation(K, problem, a)
            assert about.violation == pytest.approx(violation, abs=1e-9)
        else:
            assert not about.holds


def test_stopped_early_it_has_the_best_primal_value():
    """Over the rows that have joined: never worse than at the end of the stage before."""
    X, y, t = random_rows(N, seed=6)
    K, C = RBF(0.5)(X), 2.0

    def primal(result, problem):
        coef = problem.coef(result.model.a)
        s = K @ coef
        losses = np.maximum(0.0, 1.0 - y * (s - result.model.level[0]))
        return 0.5 * coef @ s + C * losses.sum()

    values = []
    for most in range(50, 1500, 50):
        problem = make_problem("classification", X, y, t, C=C)
        values.append(primal(solve(problem, max_iter=most), problem))
    final = values[-1]
    begin = values[0]
    assert all(value <= 1.2 * begin for value in values)
    assert final < 0.8 * begin


@pytest.mark.parametrize("kernel", [Linear(), Precomputed(), FromCallable(RBF(0.5))], ids=repr)
def test_other_kernels(kernel):
    X, y, t = random_rows(N, seed=4)
    X = RBF(0.5)(X) if isinstance(kernel, Precomputed) else X
    one, other = (
        solve(make_problem("classification", X, y, t, kernel=kernel), solver).certificate
        for solver in (Decomposition(), None)
    )
    assert abs(one.objective - other.objective) <= one.gap + other.gap


def test_float64_where_rounding_reaches_the_tolerance():
    X, y, t = random_rows(N, seed=8)
    plain = solve(make_problem("classification", X, y, t, C=100.0), Decomposition(), tol=1e-6)
    problem = make_problem("classification", X, y, t, C=100.0, dtype=np.float32)
    result = solve(problem, tol=1e-6)
    assert problem.gram.dtype == np.float64 and result.status.converged
    assert result.certificate.objective == pytest.approx(plain.certificate.objective, rel=1e-7)


@every_machine
def test_it_begins_at_a_given_point(machine):
    X, y, t = random_rows(N, seed=9)
    problem = make_problem(machine, X, y, t)
    found = solve(problem)
    again = solve(make_problem(machine, X, y, t), start=found.model.a)
    assert again.status.converged and again.n_iter < 0.5 * found.n_iter
    assert again.certificate.objective == pytest.approx(found.certificate.objective, rel=1e-5)


def test_a_rare_class_is_among_the_first():
    X, y, t = random_rows(N, seed=2)
    y[:] = -1.0
    y[[3, 400, 650]] = 1.0
    problem = make_problem("classification", X, y, t)
    state = Nested(first=40).init(problem)
    assert np.isin([3, 400, 650], state.rows).all() and state.rows.size == 40


def test_threads_and_seeds_of_an_estimator(monkeypatch):
    monkeypatch.setattr(dual, "FIRST", 300)
    X, y, _ = random_rows(1500, seed=1)
    y = np.where(X[:, 2] > 1.0, 2.0, y)
    one, two, other = (
        slimsvm.SVC(max_time=100.0, n_jobs=jobs, random_state=seed).fit(X, y)
        for jobs, seed in ((1, 3), (2, 3), (1, 4))
    )
    assert "waiting" in one.history_ and one.status_.converged
    assert np.array_equal(one.dual_coef_, two.dual_coef_)
    assert np.allclose(one.decision_function(X), other.decision_function(X), atol=0.01)


@pytest.mark.parametrize("name", ["SVC", "NuSVC", "SVR", "NuSVR", "OneClassSVM"])
def test_the_words_of_an_estimator(name, monkeypatch):
    monkeypatch.setattr(dual, "FIRST", 200)
    monkeypatch.setattr(removed_rows, "PART", 1)
    X, y, t = random_rows(1500, seed=1)
    model = getattr(slimsvm, name)(max_time=1000.0, max_iter=5)
    with pytest.warns(ConvergenceWarning, match=r"1,3\d\d rows had not been looked at"):
        model.fit(X, t if "SVR" in name else y)
    assert "how far from the optimum is not known" in str(model.status_)
    assert model.certificate_.gap == np.inf and not model.certificate_.holds
