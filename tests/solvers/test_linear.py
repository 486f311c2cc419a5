"""Linear problems: four losses, three kinds of intercept, dense and sparse, against LIBLINEAR."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.svm import LinearSVC, LinearSVR

from slimsvm.losses import EpsilonInsensitive, Hinge, SquaredEpsilonInsensitive, SquaredHinge
from slimsvm.oracles import LossOracle
from slimsvm.problems.linear import LinearFit
from slimsvm.run import Limits, run
from slimsvm.solvers.linear import linear
from slimsvm.solvers.linear_descent import LinearDescent
from slimsvm.solvers.linear_primal import LinearPrimal
from slimsvm.training import Fit

LOSSES = {
    "hinge": Hinge(),
    "squared_hinge": SquaredHinge(),
    "epsilon_insensitive": EpsilonInsensitive(0.3),
    "squared_epsilon_insensitive": SquaredEpsilonInsensitive(0.3),
}
every_loss = pytest.mark.parametrize("name", LOSSES)
SCALINGS = [0.0, 1.0, 3.0, np.inf]


def make(n, d, *, name, seed=0, columns=1):
    """Rows with some zeros, weights, and targets that the loss takes."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) * (rng.random((n, d)) < 0.4)
    target = X @ rng.standard_normal((d, columns)) + rng.standard_normal((n, columns)) + 0.7
    if LOSSES[name].takes_labels:
        target = np.where(target > 0, 1.0, -1.0)
    return X, target, rng.uniform(0.2, 1.5, n)


def solved(problem, *, tol=1e-6, max_iter=-1, start=None):
    fit = Fit(Limits(), problem.n_threads, ())
    return linear(problem, LossOracle, tol=tol, max_iter=max_iter, fit=fit, start=start)


def value(problem, model, c=0):
    """The objective, written out: an independent way."""
    w, b, y = model.coef[:, c], model.intercept[c], problem.target[:, c]
    risk = problem.weight @ problem.loss.value(y, problem.X @ w + b)
    penalty = 0.0 if problem.scaling in (0.0, np.inf) else (b / problem.scaling) ** 2
    return 0.5 * w @ w + 0.5 * penalty + risk


@every_loss
@pytest.mark.parametrize("scaling", [0.0, 1.0, 3.0])
@pytest.mark.parametrize("shape", [(300, 8), (1500, 8)])
def test_as_good_as_liblinear(name, scaling, shape):
    X, target, weight = make(*shape, name=name)
    problem = LinearFit(X, target, weight, LOSSES[name], scaling)
    given = {"loss": name, "tol": 1e-8, "max_iter": 200_000, "dual": True}
    given |= {"fit_intercept": scaling > 0, "intercept_scaling": scaling or 1.0}
    peer = (LinearSVC if problem.loss.takes_labels else LinearSVR)(**given)
    if not problem.loss.takes_labels:
        peer.set_params(epsilon=0.3)
    peer.fit(X, target[:, 0], weight)
    w, b = np.ravel(peer.coef_), float(np.ravel(peer.intercept_)[0])
    risk = weight @ problem.loss.value(target[:, 0], X @ w + b)
    theirs = 0.5 * w @ w + 0.5 * (b / (scaling or 1.0)) ** 2 + risk
    result = solved(problem)
    assert result.certificate.holds
    assert value(problem, result.model) == pytest.approx(result.certificate.objective, rel=1e-9)
    assert result.certificate.objective <= theirs * (1 + 2e-6)
    assert result.certificate.objective - result.certificate.gap <= theirs * (1 + 1e-9)
    np.testing.assert_allclose(result.model.coef[:, 0], w, atol=5e-3)


@every_loss
@pytest.mark.parametrize("scaling", SCALINGS)
def test_both_solvers_sparse_rows_and_single_precision(name, scaling):
    X, target, weight = make(1200, 15, name=name, columns=2)
    X = X.astype(np.float32)
    solvers = [LinearDescent()]
    if name.startswith("squared"):
        solvers.append(LinearPrimal())
    values = []
    for rows in (X, sp.csr_matrix(X), X.astype(np.float64)):
        for solver in solvers:
            problem = LinearFit(rows, target, weight, LOSSES[name], scaling)
            result = run(solver, problem, tol=1e-5, max_iter=3000)
            assert result.certificate.holds
            values.append(result.certificate.objective)
            total = value(problem, result.model) + value(problem, result.model, 1)
            assert total == pytest.approx(values[-1], rel=1e-6)
    assert max(values) <= min(values) * (1 + 2e-5)


@every_loss
def test_more_features_than_rows_and_any_number_of_threads(name):
    X, target, weight = make(1100, 1500, name=name, columns=3)
    weight *= 0.01
    rows = sp.csr_matrix(X)
    one, two = (
        solved(LinearFit(rows, target, weight, LOSSES[name], np.inf, threads), tol=1e-4)
        for threads in (1, 2)
    )
    assert one.certificate.holds
    np.testing.assert_array_equal(one.model.coef, two.model.coef)
    np.testing.assert_array_equal(one.model.intercept, two.model.intercept)


@every_loss
def test_weights_of_columns_and_repeated_rows(name):
    """A weight of two is a row that stands twice; each column may have weights of its own."""
    X, target, _ = make(150, 5, name=name, columns=2)
    weight = np.ones((150, 2))
    weight[:40, 1] = 2.0
    both = solved(LinearFit(X, target, weight, LOSSES[name], 2.0)).model
    twice = np.concatenate([np.arange(150), np.arange(40)])
    first = solved(LinearFit(X, target[:, :1], np.ones(150), LOSSES[name], 2.0)).model
    second = solved(LinearFit(X[twice], target[twice, 1:], np.ones(190), LOSSES[name], 2.0)).model
    for c, one in enumerate((first, second)):
        np.testing.assert_allclose(both.coef[:, c], one.coef[:, 0], atol=1e-8)
        np.testing.assert_allclose(both.intercept[c], one.intercept[0], atol=1e-8)


@every_loss
def test_shifted_features_change_nothing_where_the_intercept_is_free(name):
    X, target, weight = make(1200, 6, name=name)
    plain, shifted = (
        solved(LinearFit(X + shift, target, weight, LOSSES[name]), tol=1e-7).model
        for shift in (0.0, 3.0)
    )
    np.testing.assert_allclose(shifted.coef, plain.coef, atol=2e-3)
    moved = shifted.intercept + 3.0 * shifted.coef.sum(axis=0)
    np.testing.assert_allclose(moved, plain.intercept, atol=2e-3)


@every_loss
@pytest.mark.parametrize("C", [1e4, 1e-6])
def test_extreme_weights_end_with_a_certificate(name, C):
    X, target, _ = make(1200, 10, name=name)
    result = solved(LinearFit(X * np.logspace(-2, 2, 10), target, np.full(1200, C), LOSSES[name]),
                    tol=1e-3, max_iter=2000)  # fmt: skip
    assert result.certificate.holds
    assert {"seconds", "objective", "gap", "violation"} <= set(result.history)


@pytest.mark.parametrize("scaling", [0.0, 1.0, np.inf])
@pytest.mark.parametrize("loss", [Hinge(), SquaredHinge()])
def test_descent_keeps_a_point_between_those_it_looks_at(scaling, loss):
    """Primal values go up and down: the best between two points is below both."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, 30))
    y = np.where(X[:, :1] + 0.7 * rng.standard_normal((400, 1)) > 0.0, 1.0, -1.0)
    problem, solver = LinearFit(X, y, np.full(400, 5.0), loss, scaling), LinearDescent()
    state, seen, below = solver.init(problem), [], 0
    for n in range(1, 6):
        solver.step(problem, state, 1e-12, 5 * n)
        w, found = state.w[0], solver.model(problem, state)
        column, scores = problem.column(0), problem.scores(w)
        b = column.intercept(scores, scaling, scaling * state.at[0, 1] if scaling else 0.0)
        seen.append(column.values(w, b, scores, state.v[0], w, scaling)[0])
        own = problem.scores(found.coef[:, 0])
        value = column.values(
            found.coef[:, 0], found.intercept[0], own, state.v[0], w, scaling
        )[0]  # fmt: skip
        assert value == pytest.approx(state.primal[0], rel=1e-12)
        if scaling < np.inf:  # there the point that is looked at is another one
            assert state.primal[0] <= min(seen)
        below += state.primal[0] < min(seen)
    assert below >= 2


def test_scores_are_the_same_with_any_number_of_threads(monkeypatch):
    monkeypatch.setattr("slimsvm.problems.linear.PIECE", 10)
    X = np.random.default_rng(0).standard_normal((101, 7))
    for rows in (X, sp.csr_matrix(np.where(np.abs(X) > 0.5, X, 0.0))):
        found = [
            LinearFit(rows, np.ones((101, 1)), np.ones(101), Hinge(), 1.0, threads).scores(X[0])
            for threads in (1, 2, 3)
        ]
        np.testing.assert_array_equal(found[0], found[1])
        np.testing.assert_array_equal(found[0], found[2])
        np.testing.assert_allclose(found[0], rows @ X[0])


@pytest.mark.parametrize("name", ["squared_hinge", "hinge"])
def test_an_interrupt_at_the_last_step_of_one_solver_is_what_the_status_says(name, monkeypatch):
    monkeypatch.setattr("slimsvm.solvers.linear.MOST_STEPS", 1)
    monkeypatch.setattr("slimsvm.solvers.linear.MOST_PASSES", 1)
    limits = Limits()

    def interrupt(record):
        limits.interrupted = True

    X, target, weight = make(2500, 20, name=name)
    problem = LinearFit(X, target, weight, LOSSES[name], 1.0)
    fit = Fit(limits, 1, (interrupt,))
    result = linear(problem, LossOracle, tol=1e-9, max_iter=-1, fit=fit)
    assert not result.certificate.holds and result.status.reason == "interrupted"
