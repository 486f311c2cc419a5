"""The decomposition: every model, every option and every cache reaches the optimum, and the
certificate says how near it is.

Objectives, violations and decision values are compared, never dual variables: those are not unique.
"""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.spatial.distance import cdist

import slimsvm.solvers.decomposition as decomposition
from slimsvm.kernels import RBF, FromCallable, Laplacian, Linear, Polynomial, Precomputed, Sigmoid
from slimsvm.run import Limits, run
from slimsvm.solvers.decomposition import Decomposition
from tests.reference.machines import (
    MACHINES,
    NU,
    decision_values,
    make_problem,
    random_rows,
    reference_values,
)
from tests.reference.naive import dual_gap, dual_minimum, dual_objective, dual_violation

every_machine = pytest.mark.parametrize("machine", MACHINES)
MOST = 20.0  # seconds; nothing here should take two


@pytest.fixture
def small_sets(monkeypatch):
    """Problems of a few hundred variables are decomposed like large ones: neither solved as a whole
    nor polished.
    """
    monkeypatch.setattr(decomposition, "WHOLE", 8)
    monkeypatch.setattr(decomposition, "EXACT", 0)


def solve(problem, tol=1e-3, start=None, max_iter=-1, **options):
    return run(
        Decomposition(**options),
        problem,
        tol=tol,
        limits=Limits(max_time=MOST),
        start=start,
        max_iter=max_iter,
    )


def check_feasible(problem, a):
    assert np.all(a >= 0) and np.all(a <= problem.upper)
    for group in problem.groups():
        z = problem.sign[group]
        assert z @ a[group] == pytest.approx(
            z @ problem.start[group], abs=1e-10 * max(1.0, problem.upper.sum())
        )


def check_certificate(result, problem, K, tol, exact=None):
    """What the certificate claims is true of the point that was returned, computed anew from the
    whole kernel matrix.
    """
    a, certificate = result.model.a, result.certificate
    check_feasible(problem, a)
    rounding = 1e-9 * max(1.0, np.abs(a).max())
    violation, objective = dual_violation(K, problem, a), dual_objective(K, problem, a)
    assert result.status.converged and certificate.holds and certificate.violation <= tol
    assert violation <= tol + rounding
    assert certificate.violation == pytest.approx(violation, abs=rounding)
    assert certificate.objective == pytest.approx(objective, rel=1e-9, abs=1e-9)
    assert certificate.gap == pytest.approx(
        dual_gap(K, problem, a, result.model.level), rel=1e-6, abs=1e-7
    )
    if exact is not None:
        assert (
            -1e-8 * max(1.0, abs(exact))
            <= objective - exact
            <= certificate.gap + 1e-8 * max(1.0, abs(exact))
        )


# -- the optimum -----------------------------------------------------------------------------------


@every_machine
@pytest.mark.parametrize(
    "options",
    [{}, {"working_set": 12}, {"working_set": 4, "keep": 0.0}],
    ids=["whole", "sets of 12", "sets of 4"],
)
def test_the_optimum_is_that_of_a_general_solver(machine, options, monkeypatch):
    if options:
        monkeypatch.setattr(decomposition, "WHOLE", 4)
        monkeypatch.setattr(decomposition, "EXACT", 0)
    X, y, t = random_rows(24, seed=1)
    weight = np.random.default_rng(2).uniform(0.3, 2.0, 24)
    problem = make_problem(machine, X, y, t, weight=weight)
    K = RBF(0.5)(X)
    least = dual_objective(K, problem, dual_minimum(K, problem))
    result = solve(problem, 1e-7, **options)
    check_certificate(result, problem, K, 1e-7)
    assert dual_objective(K, problem, result.model.a) == pytest.approx(least, rel=1e-6, abs=1e-9)


@every_machine
@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
@pytest.mark.parametrize("options", [{}, {"working_set": 64}], ids=["whole", "sets of 64"])
def test_decision_values_are_scikit_learns(machine, weighted, options, monkeypatch):
    if options:
        monkeypatch.setattr(decomposition, "WHOLE", 8)
        monkeypatch.setattr(decomposition, "EXACT", 0)
    X, y, t = random_rows(150, seed=3)
    weight = np.random.default_rng(4).uniform(0.5, 2.0, 150) if weighted else None
    if weighted and machine == "nu_classification":
        nu_weight = (
            weight / weight.mean()
        )  # scikit-learn's bounds are the weights as they are; the scale goes with the margin
    else:
        nu_weight = weight
    problem = make_problem(machine, X, y, t, weight=nu_weight)
    K = RBF(0.5)(X)
    result = solve(problem, 1e-9, **options)
    ours = decision_values(machine, problem, result.model, K)
    theirs = reference_values(machine, K, y, t, weight)
    # a KKT violation of 1e-9 on either side leaves decision values this near, the kernel being well
    # conditioned
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-6 * max(1.0, np.abs(theirs).max()))


@pytest.mark.parametrize(
    "kernel", [Linear(), Polynomial(0.3, 2, 1.0), Laplacian(0.4), RBF(5.0)], ids=repr
)
@pytest.mark.parametrize("form", ["dense", "sparse", "float32"])
def test_other_kernels_and_rows(kernel, form, small_sets):
    X, y, t = random_rows(150, seed=5, d=6)
    X[np.abs(X) < 0.7] = 0.0
    K = kernel(X)
    exact = {}
    for machine in ("classification", "regression"):
        problem = make_problem(
            machine,
            sp.csr_matrix(X) if form == "sparse" else X,
            y,
            t,
            kernel=kernel,
            dtype=None if form == "float32" else np.float64,
        )
        result = solve(problem, 1e-4, working_set=32)
        exact[machine] = solve(
            make_problem(machine, X, y, t, kernel=kernel), 1e-8, working_set=400
        ).certificate.objective
        assert result.status.converged
        objective = dual_objective(K, problem, result.model.a)
        assert objective - exact[machine] <= result.certificate.gap + 1e-5 * abs(exact[machine])
        assert (
            dual_violation(K, problem, result.model.a) <= 2e-4
        )  # of which float32 may take as much again as the tolerance


def test_precomputed_and_callable_kernels_give_the_same(small_sets):
    X, y, t = random_rows(150, seed=6)
    K = RBF(0.5)(X)
    reference = solve(make_problem("classification", X, y, t), 1e-6, working_set=32)
    for kernel, data in ((Precomputed(), K), (FromCallable(RBF(0.5)), X)):
        problem = make_problem("classification", data, y, t, kernel=kernel, dtype=None)
        result = solve(problem, 1e-6, working_set=32)
        check_certificate(result, problem, K, 1e-6, reference.certificate.objective)


# -- the certificate -------------------------------------------------------------------------------


@every_machine
@pytest.mark.parametrize("tol", [0.3, 1e-2, 1e-4])
def test_the_gap_bounds_the_distance_to_the_optimum(machine, tol, small_sets):
    X, y, t = random_rows(200, seed=7)
    K = RBF(0.5)(X)
    exact = dual_objective(
        K, p := make_problem(machine, X, y, t), solve(p, 1e-9, working_set=800).model.a
    )
    problem = make_problem(machine, X, y, t)
    check_certificate(solve(problem, tol, working_set=24), problem, K, tol, exact)


@every_machine
def test_the_certificate_of_an_unfinished_run_is_true_too(machine, small_sets):
    X, y, t = random_rows(200, seed=7)
    K = RBF(0.5)(X)
    exact = dual_objective(
        K, p := make_problem(machine, X, y, t), solve(p, 1e-9, working_set=800).model.a
    )
    for max_iter in (0, 1, 5, 40, 150):
        problem = make_problem(machine, X, y, t, budget=0)
        result = solve(problem, 1e-6, max_iter=max_iter, working_set=16, history=1)
        a = result.model.a
        check_feasible(problem, a)
        assert result.status.reason == "max_iter" and not result.certificate.holds
        assert result.certificate.violation == pytest.approx(
            dual_violation(K, problem, a), abs=1e-9
        )
        assert result.certificate.objective == pytest.approx(
            dual_objective(K, problem, a), rel=1e-9
        )
        assert dual_objective(K, problem, a) - exact <= result.certificate.gap + 1e-9


@pytest.mark.parametrize("machine", ["classification", "regression", "one_class"])
def test_what_is_said_of_removed_rows_is_true(machine, small_sets, monkeypatch):
    """After each recheck: no row that stays removed is nearer to violating than its ``slack`` says,
    which is what a recheck relies on.
    """
    monkeypatch.setattr(decomposition, "LEAST_DROP", 0.05)  # remove early and often
    usual, excess = Decomposition._rechecking, []

    def checked(self, problem, state, tol):
        yield from usual(self, problem, state, tol)
        self._globalise(state)
        s = K @ problem.coef(state.a)
        for group in (
            state.removed
        ):  # slack is relative to the level of the check: the next one adds how far it has moved
            reduced = problem.sign * (
                problem.order(s) - np.where(problem.sign > 0, *group.check_level)
            )
            estimate = np.where(
                state.a <= 0,
                reduced,
                np.where(state.a >= problem.upper, -reduced, -np.abs(reduced)),
            )
            least = np.full(problem.gram.n, np.inf)
            np.minimum.at(least, problem.row, estimate)
            excess.append(float(np.max(group.slack - least[group.rows])))

    monkeypatch.setattr(Decomposition, "_rechecking", checked)
    for seed in (1, 12, 18, 35, 36):
        X, y, t = random_rows(150, seed, d=2)
        K = RBF(0.3)(X)
        problem = make_problem(machine, X, y, t, kernel=RBF(0.3), C=3.0, nu=0.3, budget=0)
        solve(problem, 1e-2, working_set=8, history=1)
    assert excess, "nothing was removed, so nothing was tested"
    assert max(excess) <= 1e-9


@pytest.mark.parametrize(
    ("history", "gamma", "C", "tol", "seeds"),
    [
        (1, 0.85, 9.0, 0.01, (24, 25, 33, 39, 60)),
        (2, 0.85, 9.0, 0.01, (24, 25, 33, 39, 60)),
        (4, 0.85, 9.0, 0.01, (24, 25, 33, 39, 60)),
        (1, 0.2, 100.0, 0.1, (24, 27, 49, 50)),
        (2, 0.2, 100.0, 0.1, (29, 71, 78)),
    ],
)
def test_shrinking_never_leads_to_a_false_certificate(
    history, gamma, C, tol, seeds, small_sets, monkeypatch
):
    """Rows move, leave, and others are rechecked against bounds that know of these moves: whatever
    the order of events, the end is true.
    """
    monkeypatch.setattr(decomposition, "LEAST_DROP", 0.1)
    for seed in seeds:
        X, y, t = random_rows(350, seed, d=2 if gamma > 0.5 or history == 1 else 3)
        problem = make_problem("classification", X, y, t, kernel=RBF(gamma), C=C, budget=0)
        result = solve(problem, tol, working_set=16, history=history, inner=0.9)
        check_certificate(result, problem, RBF(gamma)(X), tol)


@pytest.mark.parametrize("coef0", [-0.5, -2.0])
@pytest.mark.filterwarnings("error")
def test_shrinking_with_an_indefinite_kernel_never_leads_to_a_false_certificate(
    coef0, small_sets, monkeypatch
):
    """Without an inner product there is no |w - w_then| to bound a change by: k(x, x) and
    "distances" may be negative.
    """
    monkeypatch.setattr(decomposition, "LEAST_DROP", 0.1)
    for seed in range(8):
        X, y, t = random_rows(250, seed, d=2)
        kernel = Sigmoid(1.0, coef0)
        problem = make_problem("classification", X, y, t, kernel=kernel, C=3.0, budget=0)
        assert problem.gram.diag().min() < 0
        result = run(
            Decomposition(working_set=16, history=1), problem, tol=0.01, limits=Limits(max_time=1.0)
        )
        true = dual_violation(kernel(X), problem, result.model.a)
        assert result.certificate.violation == pytest.approx(
            true, abs=1e-8 * max(1.0, np.abs(result.model.a).sum())
        )


# -- the options of the ablations ------------------------------------------------------------------

OPTIONS = {
    "as it is": {},
    "sets of 64": {"working_set": 64},
    "sets of 4": {"working_set": 4},
    "sets of 4, none kept": {"working_set": 4, "keep": 0.0},
    "one set": {"working_set": 1024},
    "none kept": {"working_set": 64, "keep": 0.0},
    "no shrinking": {"working_set": 64, "shrinking": False},
    "eager shrinking": {"working_set": 64, "history": 1},
    "basic selection": {"working_set": 64, "selection": "basic"},
    "basic, none kept": {"working_set": 64, "selection": "basic", "keep": 0.0},
    "prefer cached": {"working_set": 64, "prefer_cached": True},
    "rough inner": {"working_set": 64, "inner": 0.9},
    "SMO": {"working_set": 2, "keep": 0.0, "shrinking": False},
}
BUDGETS = {"no cache": 0.0, "tiny cache": 5 * 280 * 8.0, "large cache": 1e8}


@pytest.fixture(scope="module")
def large():
    X, y, t = random_rows(280, seed=8)
    K = RBF(0.5)(X)
    exact = {}
    for machine in MACHINES:
        problem = make_problem(machine, X, y, t)
        exact[machine] = dual_objective(K, problem, solve(problem, 1e-10).model.a)
    return X, y, t, K, exact


@every_machine
@pytest.mark.parametrize("option", OPTIONS)
def test_every_option_reaches_the_optimum(machine, option, large, small_sets):
    X, y, t, K, exact = large
    problem = make_problem(machine, X, y, t)
    result = solve(problem, 1e-3, **OPTIONS[option])
    check_certificate(result, problem, K, 1e-3, exact[machine])
    # W - W* is at most violation^2-ish in each variable: far below the gap, which is linear in the
    # violation
    assert dual_objective(K, problem, result.model.a) == pytest.approx(exact[machine], rel=1e-5)


@every_machine
@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize("prefer_cached", [False, True])
def test_every_cache_size_reaches_the_optimum(machine, budget, prefer_cached, large, small_sets):
    X, y, t, K, exact = large
    problem = make_problem(machine, X, y, t, budget=BUDGETS[budget])
    result = solve(problem, 1e-5, working_set=64, prefer_cached=prefer_cached)
    check_certificate(result, problem, K, 1e-5, exact[machine])
    assert problem.gram._flat.nbytes <= BUDGETS[budget]
    assert dual_objective(K, problem, result.model.a) == pytest.approx(exact[machine], rel=1e-8)


@every_machine
def test_threads_do_not_change_the_result(machine, large, small_sets):
    X, y, t, _, _ = large
    results = [
        solve(make_problem(machine, X, y, t, n_threads=threads), 1e-3, working_set=64)
        for threads in (1, 2, 3)
    ]
    for other in results[1:]:
        np.testing.assert_array_equal(other.model.a, results[0].model.a)
        assert other.certificate == results[0].certificate


@every_machine
def test_smo_and_decomposition_agree_on_decision_values(machine, large, small_sets):
    """Working sets of two are SMO: the oracle that shares the least with large sets, shrinking and
    caching.
    """
    X, y, t = (A[:80] for A in large[:3])
    K = RBF(0.5)(X)
    values = []
    for options in (
        {"working_set": 2, "keep": 0.0, "shrinking": False},
        {"working_set": 32, "history": 1},
    ):
        problem = make_problem(machine, X, y, t, budget=0.0 if "history" in options else 1e8)
        values.append(decision_values(machine, problem, solve(problem, 1e-6, **options).model, K))
    np.testing.assert_allclose(values[0], values[1], atol=2e-4 * np.abs(values[0]).max())


def test_shrinking_removes_variables_and_saves_kernel_values(small_sets):
    """Many rows far from the boundary, few near it: once the latter are found, the former need not
    be looked at.
    """
    rng = np.random.default_rng(9)
    X = rng.standard_normal((600, 2)) * [1.0, 0.15]
    X[:, 0] += np.where(rng.random(600) < 0.5, 1.5, -1.5)
    y = np.sign(X[:, 0] + 0.2 * rng.standard_normal(600))
    # The last bits decide which way is taken: rows changed by 1e-13 (40 of them) leave 30 to 430
    # variables, 252 with a deviation of 85, and need 0.90 of the kernel values, with one of 0.09.
    # The means of 16 stay below a third that leaves, and below all values, by more than four
    # deviations.
    values, active = {True: [], False: []}, {True: [], False: []}
    for _ in range(16):
        moved = X * (1.0 + 1e-13 * rng.standard_normal(X.shape))
        for shrinking in (True, False):
            problem = make_problem("classification", moved, y, y, C=100.0, budget=0.0)
            result = solve(problem, 1e-4, working_set=16, shrinking=shrinking)
            check_certificate(result, problem, RBF(0.5)(moved), 1e-4)
            values[shrinking].append(problem.gram.n_values)
            active[shrinking].append(result.history["active"].min())
    assert np.mean(active[True]) < 400 and set(active[False]) == {600}
    assert np.mean(np.divide(values[True], values[False])) < 1.0


def test_rows_that_never_move_are_never_computed(small_sets):
    """Few support vectors among many rows: kernel rows only for those that moved."""
    rng = np.random.default_rng(10)
    X = rng.standard_normal((500, 2))
    X[:, 0] += np.where(np.arange(500) % 2, 6.0, -6.0)
    y = np.where(np.arange(500) % 2, 1.0, -1.0)
    problem = make_problem("classification", X, y, y, kernel=RBF(0.05), C=10.0)
    result = solve(problem, 1e-3, working_set=16)
    n_support = np.count_nonzero(result.model.a)
    assert result.status.converged and n_support < 30
    assert problem.gram.n_values < 500 * 100  # of 250,000


# -- precision -------------------------------------------------------------------------------------


def test_float32_is_given_up_where_it_cannot_reach_the_tolerance(small_sets):
    """A tolerance of 1e-7 with coefficients in the hundreds: float32 values would end in noise."""
    X, y, t = random_rows(300, seed=11)
    K = RBF(0.5)(X)
    problem = make_problem("classification", X, y, t, C=100.0, dtype=None)
    assert problem.gram.dtype == np.float32
    result = solve(problem, 1e-7, working_set=64)
    assert result.certificate.precision == "float64"
    check_certificate(result, problem, K, 1e-7)


def test_float32_is_kept_where_it_suffices(small_sets):
    X, y, t = random_rows(300, seed=11)
    K = RBF(0.5)(X)
    problem = make_problem("classification", X, y, t, C=1.0, dtype=None)
    result = solve(problem, 1e-2, working_set=64)
    assert result.status.converged and result.certificate.precision == "float32"
    assert dual_violation(K, problem, result.model.a) <= 1.1e-2


def test_a_certificate_in_float32_is_nearly_true(small_sets):
    """The violation it states is off by no more than the rounding that the solver tolerates, which
    is at most the tolerance.
    """
    for seed in range(3):
        X, y, t = random_rows(300, seed=seed)
        problem = make_problem("classification", X + 100.0, y, t, C=10.0, dtype=None)
        result = solve(problem, 1e-3, working_set=64)
        assert dual_violation(RBF(0.5)(X), problem, result.model.a) <= 2e-3


@every_machine
def test_small_problems_are_solved_to_machine_precision(machine):
    X, y, t = random_rows(150, seed=12)
    K = RBF(0.5)(X)
    problem = make_problem(machine, X, y, t)
    result = solve(problem, 1e-3)
    assert dual_violation(K, problem, result.model.a) <= 1e-11


# -- starting elsewhere ----------------------------------------------------------------------------


@every_machine
def test_a_start_from_the_solution_ends_in_one_step(machine, large, small_sets):
    X, y, t, K, _ = large
    problem = make_problem(machine, X, y, t)
    first = solve(problem, 1e-3, working_set=64)
    again = make_problem(machine, X, y, t)
    second = solve(again, 1e-3, start=first.model.a, working_set=64)
    assert second.status.converged and len(second.history["seconds"]) == 1 and second.n_iter == 1
    np.testing.assert_array_equal(second.model.a, first.model.a)
    check_certificate(second, again, K, 1e-3)


@every_machine
def test_a_start_from_elsewhere_ends_at_the_optimum_and_leaves_the_start_alone(
    machine, large, small_sets
):
    X, y, t, K, exact = large
    problem = make_problem(machine, X, y, t)
    start = problem.feasible(
        solve(make_problem(machine, X, y, t, nu=NU, C=2.0), 0.5, working_set=64).model.a
    )
    before = start.copy()
    result = solve(problem, 1e-3, start=start, working_set=64)
    check_certificate(result, problem, K, 1e-3, exact[machine])
    np.testing.assert_array_equal(start, before)


def test_a_path_through_C_needs_fewer_steps_from_its_neighbour(large, small_sets):
    X, y, t, _, _ = large
    cold = solve(make_problem("classification", X, y, t, C=2.2), 1e-4, working_set=64)
    neighbour = solve(make_problem("classification", X, y, t, C=2.0), 1e-4, working_set=64)
    problem = make_problem("classification", X, y, t, C=2.2)
    warm = solve(problem, 1e-4, start=problem.feasible(neighbour.model.a), working_set=64)
    assert warm.status.converged and warm.n_iter < cold.n_iter
    assert warm.certificate.objective == pytest.approx(cold.certificate.objective, rel=1e-6)


# -- metamorphosis ---------------------------------------------------------------------------------


@every_machine
@pytest.mark.parametrize("options", [{}, {"working_set": 32}], ids=["whole", "sets of 32"])
def test_repeated_rows_are_rows_of_weight_two_and_a_doubled_C(machine, options, monkeypatch):
    if options:
        monkeypatch.setattr(decomposition, "WHOLE", 8)
        monkeypatch.setattr(decomposition, "EXACT", 0)
    tol, digits = (
        (1e-7, 1e-5) if options else (1e-3, 1e-9)
    )  # the whole is polished, the other is not
    X, y, t = random_rows(100, seed=13)
    K = RBF(0.5)(X)
    twice = [np.repeat(A, 2, axis=0) for A in (X, y, t)]
    problems = {
        "repeated": make_problem(machine, *twice, C=1.5),
        "weight two": make_problem(machine, X, y, t, C=1.5, weight=np.full(100, 2.0)),
        "doubled C": make_problem(machine, X, y, t, C=3.0),
    }
    values, objectives = {}, {}
    for name, problem in problems.items():
        result = solve(problem, tol, **options)
        assert result.status.converged
        rows = np.repeat(K, 2, axis=0) if name == "repeated" else K
        values[name] = decision_values(machine, problem, result.model, rows)
        objectives[name] = result.certificate.objective
    scale = np.abs(values["repeated"]).max()
    if machine == "one_class":
        values["doubled C"] = (
            2 * values["doubled C"]
        )  # it has no C: with bounds half as large, the function is half as large
    np.testing.assert_allclose(
        values["weight two"], values["repeated"], rtol=0, atol=digits * scale
    )
    np.testing.assert_allclose(values["doubled C"], values["repeated"], rtol=0, atol=digits * scale)
    if machine in ("classification", "regression", "nu_regression"):
        assert objectives["weight two"] == pytest.approx(objectives["repeated"], rel=1e-7)
        assert objectives["doubled C"] == pytest.approx(objectives["repeated"], rel=1e-7)


@every_machine
@pytest.mark.parametrize("options", [{}, {"working_set": 32}], ids=["whole", "sets of 32"])
def test_the_order_of_the_rows_does_not_matter(machine, options, monkeypatch):
    if options:
        monkeypatch.setattr(decomposition, "WHOLE", 8)
        monkeypatch.setattr(decomposition, "EXACT", 0)
    tol, digits = (1e-7, 1e-5) if options else (1e-3, 1e-9)
    X, y, t = random_rows(120, seed=14)
    K = RBF(0.5)(X)
    order = np.random.default_rng(15).permutation(120)
    straight = make_problem(machine, X, y, t)
    shuffled = make_problem(machine, X[order], y[order], t[order])
    values = decision_values(machine, straight, solve(straight, tol, **options).model, K)
    others = decision_values(
        machine, shuffled, solve(shuffled, tol, **options).model, K[np.ix_(order, order)]
    )
    np.testing.assert_allclose(others, values[order], rtol=0, atol=digits * np.abs(values).max())


@pytest.mark.parametrize("machine", ["classification", "nu_classification"])
def test_swapped_labels_swap_the_sign(machine):
    X, y, t = random_rows(120, seed=16)
    K = RBF(0.5)(X)
    values = []
    for labels in (y, -y):
        problem = make_problem(machine, X, labels, t)
        values.append(decision_values(machine, problem, solve(problem).model, K))
    np.testing.assert_allclose(values[0], -values[1], atol=1e-9)


@pytest.mark.parametrize("machine", ["regression", "nu_regression"])
def test_a_shifted_target_shifts_the_function(machine):
    X, y, t = random_rows(120, seed=17)
    K = RBF(0.5)(X)
    values = []
    for target in (t, t + 5.0):
        problem = make_problem(machine, X, y, target)
        values.append(decision_values(machine, problem, solve(problem).model, K))
    np.testing.assert_allclose(values[1], values[0] + 5.0, atol=1e-9)


@every_machine
def test_rows_of_weight_zero_are_rows_left_out(machine):
    X, y, t = random_rows(120, seed=18)
    weight = np.ones(120)
    weight[::5] = 0.0
    kept = weight > 0
    K = RBF(0.5)(X)
    values = []
    for problem, rows in (
        (make_problem(machine, X, y, t, weight=weight), K),
        (make_problem(machine, X[kept], y[kept], t[kept]), K[kept]),
    ):
        result = solve(problem, 1e-3)
        assert result.status.converged
        values.append(decision_values(machine, problem, result.model, rows))
    np.testing.assert_allclose(values[0], values[1], atol=1e-8 * np.abs(values[1]).max())


# -- nothing hangs ---------------------------------------------------------------------------------


def identical_points(rng):
    return np.ones((2, 3)), np.array([1.0, -1.0])


def few_identical_among_many(rng):
    X, y, _ = random_rows(200, seed=19)
    X[50:60] = X[50]
    y[50:60] = np.resize([1.0, -1.0], 10)
    return X, y


def constant_features(rng):
    return np.full((100, 4), 3.0), np.resize([1.0, -1.0, 1.0], 100)


def thousandfold_duplicates(rng):
    X, _, _ = random_rows(3, seed=20)
    return np.repeat(X, 1000, axis=0), np.repeat(np.array([1.0, -1.0, 1.0]), 1000)


def thousandfold_with_both_labels(rng):
    X, _, _ = random_rows(3, seed=20)
    return np.repeat(X, 1000, axis=0), rng.choice([-1.0, 1.0], 3000)


def unscaled_features(rng):
    X, y, _ = random_rows(300, seed=21)
    return X * [1.0, 1e4, 1e-4] + [0.0, 1e6, 0.0], y


DEGENERATE = {
    "identical points": identical_points,
    "a few identical points": few_identical_among_many,
    "constant features": constant_features,
    "thousandfold duplicates": thousandfold_duplicates,
    "thousandfold with both labels": thousandfold_with_both_labels,
    "unscaled features": unscaled_features,
}


def check_end(problem, result, X):
    """Convergence, or a status that says truly why not; and a usable point either way."""
    a = result.model.a
    check_feasible(problem, a)
    assert (
        np.all(np.isfinite(result.model.s))
        and np.all(np.isfinite(result.model.level))
        and np.isfinite(result.certificate.gap)
    )
    assert result.status.converged == result.certificate.holds
    if not result.status.converged:
        assert result.status.reason == "max_time" and "max_time" in str(result.status)
    if len(X) <= 300:  # the twin is slow
        K = np.exp(
            -0.5 * cdist(X, X, "sqeuclidean")
        )  # by differences: sums of squares lose the digits of unscaled features
        rounding = 1e-9 + 1e-12 * np.abs(a).sum()  # s is a sum of |a| kernel values of size one
        # and a kernel value comes from sums of squares, whose last digit is worth so much for
        # unscaled features
        rounding += (
            0.5
            * 4
            * np.finfo(float).eps
            * float(np.square(X - X.mean(axis=0)).sum(axis=1).max())
            * float(np.abs(a).max())
        )
        assert dual_violation(K, problem, a) == pytest.approx(
            result.certificate.violation, abs=rounding
        )


@every_machine
@pytest.mark.parametrize("case", DEGENERATE)
@pytest.mark.parametrize("decomposed", [False, True], ids=["whole", "sets of 64"])
def test_degenerate_data_converges(machine, case, decomposed, monkeypatch):
    if decomposed:
        monkeypatch.setattr(decomposition, "WHOLE", 64)
        monkeypatch.setattr(decomposition, "EXACT", 0)
    rng = np.random.default_rng(22)
    X, y = DEGENERATE[case](rng)
    t = y + 0.1 * rng.standard_normal(y.size)
    nu = min(NU, 1.8 * min(np.mean(y > 0), np.mean(y < 0)))
    problem = make_problem(machine, X, y, t, nu=nu)
    result = run(Decomposition(working_set=64), problem, tol=1e-3, limits=Limits(max_time=MOST))
    check_end(problem, result, X)
    assert result.status.converged, f"{result.status} after {result.n_iter} steps"


@pytest.mark.parametrize("machine", ["classification", "regression", "nu_regression"])
@pytest.mark.parametrize("case", [*DEGENERATE, "overlapping classes"])
@pytest.mark.parametrize("decomposed", [False, True], ids=["whole", "sets of 64"])
def test_a_huge_C_ends(machine, case, decomposed, monkeypatch):
    """Hard margins on data that overlaps are the worst case of SMO: LIBSVM needs minutes for some
    of these. It ends, and says how.
    """
    if decomposed:
        monkeypatch.setattr(decomposition, "WHOLE", 64)
        monkeypatch.setattr(decomposition, "EXACT", 0)
    rng = np.random.default_rng(22)
    X, y = DEGENERATE[case](rng) if case in DEGENERATE else random_rows(300, seed=23)[:2]
    t = y + 0.1 * rng.standard_normal(y.size)
    problem = make_problem(machine, X, y, t, C=1e6)
    limits = Limits(max_time=0.2)
    result = run(Decomposition(working_set=64), problem, tol=1e-3, limits=limits)
    assert limits.seconds < MOST
    check_end(problem, result, X)
    if machine == "classification" and case in (
        "identical points",
        "constant features",
        "thousandfold duplicates",
        "unscaled features",
    ):
        assert result.status.converged, f"{result.status} after {result.n_iter} steps"


@pytest.mark.parametrize("C", [1.0, 1e6])
def test_an_indefinite_kernel_ends(C, small_sets):
    X, y, t = random_rows(300, seed=24)
    problem = make_problem("classification", X, y, t, kernel=Sigmoid(1.0, -0.5), C=C)
    result = run(Decomposition(working_set=64), problem, tol=1e-3, limits=Limits(max_time=0.2))
    check_feasible(problem, result.model.a)
    assert result.status.converged == result.certificate.holds
    assert np.isfinite(result.certificate.objective)


@every_machine
@pytest.mark.parametrize("working_set", [2, 3, 4, 5])
def test_the_smallest_working_sets_go_on(machine, working_set, small_sets):
    """Two equalities want a pair of each sign, and half of the set may be kept: something new must
    come in nevertheless.
    """
    X, y, t = random_rows(60, seed=25)
    problem = make_problem(machine, X, y, t)
    check_certificate(solve(problem, 1e-2, working_set=working_set), problem, RBF(0.5)(X), 1e-2)


@pytest.mark.parametrize(
    "machine, scale",
    [
        ("one_class", 1e15),  # a step is too short to change a multiplier
        ("one_class", 1e17),
        ("nu_regression", 1e15),  # multipliers of either side cancel
        ("nu_regression", 1e20),
        ("nu_regression", 1e100),
    ],
)
@pytest.mark.parametrize("n_whole", [2000, 8])
def test_multipliers_whose_last_digit_is_beyond_the_tolerance_end(
    machine, scale, n_whole, monkeypatch
):
    """Their o cannot be within it, however many steps are made."""
    monkeypatch.setattr(decomposition, "WHOLE", n_whole)
    monkeypatch.setattr(decomposition, "SMO_WORK", 20_000)  # short rounds
    X, y, t = random_rows(60, seed=26)
    problem = make_problem(machine, X, y, t, C=1.0, weight=np.full(60, scale))
    options = {} if n_whole > 8 else {"working_set": 16, "exact": False}
    result = solve(problem, max_iter=2_000_000, **options)
    assert result.status.reason in ("stalled", "converged"), f"{result.n_iter} steps"
    assert np.all(result.model.a >= 0) and np.all(result.model.a <= problem.upper)
    assert result.certificate.gap >= 0.0
    if machine == "one_class":  # at the optimum, up to rounding
        assert result.certificate.gap <= 1e-9 * result.certificate.objective


@every_machine
def test_a_tolerance_below_rounding_ends(machine, monkeypatch):
    """Steps too short to change a large multiplier change o: a gain that is rounding errors."""
    monkeypatch.setattr(decomposition, "SMO_WORK", 100_000)  # short rounds
    X, y, t = random_rows(40, seed=27)
    problem = make_problem(machine, X, y, t)
    result = solve(problem, 1e-300, max_iter=500_000, exact=False)
    assert result.status.reason in ("stalled", "converged"), f"{result.n_iter} steps"
    K = RBF(0.5)(X)
    assert result.certificate.violation == pytest.approx(
        dual_violation(K, problem, result.model.a), abs=1e-8
    )
    assert dual_gap(K, problem, result.model.a, result.model.level) <= 1e-8
