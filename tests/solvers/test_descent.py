"""The descent over vectors, widths, coefficients and metric, and the coefficients after it."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose
from scipy.optimize import minimize
from sklearn.datasets import make_classification
from sklearn.metrics import log_loss

from slimsvm import SVC, SparseSVC
from slimsvm.kernels import RBF, Linear, Polynomial
from slimsvm.losses import (
    LeastSquares,
    Logistic,
    SmoothEpsilonInsensitive,
    SmoothHinge,
    Softmax,
    SquaredEpsilonInsensitive,
    SquaredHinge,
)
from slimsvm.precision import rounding
from slimsvm.problems import intercepts, mapped_wide
from slimsvm.problems.mapped import Mapped, MappedSpan, Vectors, coordinates_for
from slimsvm.problems.span import TAKEN_APART, price_of_jitter
from slimsvm.run import run
from slimsvm.solvers import path_descent
from slimsvm.solvers.descent import Descent, Moving, plan_for
from slimsvm.solvers.first_vectors import first_vectors
from slimsvm.solvers.mapped_newton import MappedNewton
from slimsvm.solvers.path_points import accuracy

LABELS = [Logistic(), SquaredHinge(), SmoothHinge(), Softmax(), LeastSquares()]
NUMBERS = [SquaredEpsilonInsensitive(0.1), SmoothEpsilonInsensitive(0.1)]
KERNELS = [RBF(0.7), Polynomial(0.5, 2, 1.0), Linear()]


def rows(n=300, d=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    return X, np.sin(2 * X[:, 0]) * X[:, 1] + 0.1 * rng.standard_normal(n)


def problem(loss, kernel=RBF(0.7), n=300, dtype=np.float64, weight=None, **options):  # noqa: B008
    X, f = rows(n)
    group = np.digitize(f, [-0.3, 0.3])
    if isinstance(loss, Softmax):
        Y = np.eye(3)[group]
    elif loss.takes_labels or isinstance(loss, LeastSquares):
        Y = 2.0 * np.eye(3)[group] - 1.0
    else:
        Y = f[:, None]
    weight = np.full(n, 2.0) if weight is None else weight
    return Mapped.of(kernel, X, Y, weight, loss, dtype=dtype, **options)


def random_vectors(P, k=6, seed=1):
    rng = np.random.default_rng(seed)
    d, c = P.n_coordinates, P.Y.shape[1]
    return Vectors(
        rng.standard_normal((k, d)),
        np.exp(0.3 * rng.standard_normal(k)) if P.form[0] == 1 else np.ones(k),
        rng.standard_normal((k, c)),
        rng.standard_normal(c),
        np.exp(0.2 * rng.standard_normal(d)),
        np.eye(d) + 0.2 * rng.standard_normal((d, d)),
    )


@pytest.mark.parametrize("loss", [*LABELS, *NUMBERS], ids=repr)
@pytest.mark.parametrize("metric", ["full", "diagonal", None])
def test_the_gradient_of_a_batch_is_the_derivative_of_its_mean_loss(loss, metric):
    weight = np.random.default_rng(2).uniform(0.5, 2.0, 300)
    P = problem(loss, weight=weight)
    found = random_vectors(P)
    if metric != "full":
        found = replace(found, W=None)
    if metric is None:
        found = replace(found, scales=None)
    plan = replace(plan_for(P, 6, metric), smooth=0.0, ridge=0.0, pull_metric=0.0, pull_scale=0.0)
    moving = Moving(found, P, plan)
    at = moving.flat.astype(np.float64)
    x, y, w = P.in_float32()

    def value(flat):
        moving.flat[:] = flat
        found = moving.vectors()
        F = MappedSpan(P, found).scores(found.coef) + found.intercept
        losses = P.loss.value(P.Y, F)
        return float(np.mean(P.weight / P.weight.mean() * losses.reshape(P.n, -1).sum(axis=1)))

    moving.learn(x, y, w, 0.0)
    gradient = moving.gradient.astype(np.float64)
    rng = np.random.default_rng(3)
    for _ in range(3):
        direction = rng.standard_normal(at.size)
        h = 1e-2 / np.linalg.norm(direction)
        up, down = at + h * direction, at - h * direction
        numeric = (value(up) - value(down)) / (2 * h)
        assert numeric == pytest.approx(float(gradient @ direction), rel=2e-3, abs=2e-3)


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
@pytest.mark.parametrize("loss", [*LABELS, *NUMBERS], ids=repr)
def test_the_coefficients_are_the_best_for_these_vectors(loss, kernel):
    P = problem(loss, kernel, n=120)
    found = random_vectors(P)
    if kernel != KERNELS[0]:
        found = replace(found, scales=None, W=None)
    result = run(MappedNewton(vectors=found), P, tol=1e-10, max_iter=100)
    assert result.status.reason == "converged" and result.certificate.violation <= 1e-10
    span, shape = MappedSpan(P, found), found.coef.shape

    def value(flat):
        coef, b = flat[: -shape[1]].reshape(shape), flat[-shape[1] :]
        F = span.scores(coef) + b
        g = P.weight[:, None] * P.loss.gradient(P.Y, F)
        slope = span.K_BB @ coef + span.products(g)
        norm = 0.5 * np.sum(coef * (span.K_BB @ coef))
        risk = np.sum(P.weight @ P.loss.value(P.Y, F))
        return norm + risk, np.concatenate([slope.ravel(), g.sum(axis=0)])

    start = np.zeros(found.coef.size + shape[1])
    best = minimize(value, start, jac=True, method="BFGS", options={"gtol": 1e-8, "maxiter": 5000})
    assert result.certificate.objective == pytest.approx(best.fun, rel=1e-7)


def test_the_gap_is_a_bound_for_any_coefficients():
    P = problem(Softmax())
    found = random_vectors(P)
    best = run(MappedNewton(vectors=found), P, tol=1e-12, max_iter=100).certificate.objective
    for scale in (0.0, 0.3, 1.0):
        about = P.certificate(replace(found, coef=scale * found.coef), 1e-3)
        assert 0.0 <= about.objective - best <= about.gap


def test_equal_widths_have_the_norm_of_the_kernel():
    P = problem(Logistic())
    found = replace(random_vectors(P), widths=np.ones(6), scales=None, W=None)
    np.testing.assert_allclose(MappedSpan(P, found).K_BB, RBF(1.0)(found.B), atol=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_the_norm_of_other_widths_is_a_norm(seed):
    P = problem(Logistic())
    K = MappedSpan(P, random_vectors(P, k=40, seed=seed)).K_BB
    assert np.linalg.eigvalsh(K).min() > 0.0


@pytest.mark.parametrize("loss", [Logistic(), Softmax(), SquaredEpsilonInsensitive(0.1)], ids=repr)
def test_threads_do_not_change_a_bit(loss):
    found = []
    for n_threads in (1, 2):
        P = problem(loss, dtype=np.float32, n=1000, n_threads=n_threads)
        start = first_vectors(P, 10, np.random.default_rng(0))
        plan = replace(plan_for(P, 10), batch=300, n_steps=60)
        result = run(Descent(plan=plan), P, tol=1e-3, start=start)
        found.append(run(MappedNewton(vectors=result.model), P, tol=1e-3).model)
    for name in ("B", "widths", "coef", "intercept", "scales", "W"):
        np.testing.assert_array_equal(getattr(found[0], name), getattr(found[1], name))


@pytest.mark.parametrize("kernel", [RBF(0.7), Polynomial(0.5, 3, 1.0)], ids=repr)
def test_a_descent_learns(kernel):
    X, f = rows(2000)
    Y = np.where(f > 0, 1.0, -1.0)[:, None]
    P = Mapped.of(kernel, X, Y, np.ones(2000), Logistic())
    start = first_vectors(P, 5, np.random.default_rng(0))
    found = run(Descent(plan=plan_for(P, 5)), P, tol=1e-3, start=start).model

    def errors(v):
        return np.mean((MappedSpan(P, v).scores(v.coef) + v.intercept) * Y <= 0)

    assert errors(found) < 0.7 * errors(start)


def test_sums_for_the_intercepts_of_the_softmax_are_those_of_the_loss():
    rng = np.random.default_rng(0)
    Y, w = np.eye(4)[rng.integers(0, 4, 300)], rng.random(300)
    raw = 9.0 * Y + rng.standard_normal((300, 4))  # nearly all rows are sure
    sums = intercepts.sums_over(Softmax(), Y, w, raw)
    for b in (np.zeros(4), np.array([0.0, 5.0, -20.0, 1.0])):
        F = raw + b
        for ours, known in zip(
            sums.at(b), intercepts.risk_and_slopes(Softmax(), Y, w, F), strict=True
        ):
            assert_allclose(ours, known, rtol=1e-11)
        bend = intercepts.bends(Softmax(), Y, w, F)
        assert_allclose(sums.bend(b), bend, rtol=1e-10, atol=1e-14)
        slopes, curves, value = sums.look(b)
        assert_allclose(slopes, w[:, None] * Softmax().gradient(Y, F), rtol=1e-10, atol=1e-15)
        assert_allclose(curves, np.diag(bend), rtol=1e-9, atol=1e-14)
        assert_allclose(value, w @ Softmax().value(Y, F), rtol=1e-11)
    bend = intercepts.bends(Softmax(), Y, w, raw)
    assert_allclose(sums.bend(np.zeros(4)), bend, atol=1e-12)
    # what was asked at the first intercepts, and at those of each look, is known
    assert [b.tolist() for b, _ in sums.risks] == [[0.0] * 4, [0.0] * 4, [0.0, 5.0, -20.0, 1.0]]


def test_what_rounding_changes_is_summed_without_the_scores_of_all_rows():
    P = problem(Softmax(), n=5000)
    v = first_vectors(P, 12, np.random.default_rng(0))
    span = MappedSpan(P, v)
    look, other = span.look(v.coef, v.intercept), v.coef + 0.3
    for felt, scores in (
        (span._felt(look), look.scores),
        (span._felt_by(look, other), span.scores(other)),
    ):
        ours = rounding(1e-6, v.coef, v.coef, *felt)
        assert_allclose(ours, rounding(1e-6, v.coef, v.coef, look.slopes, scores), rtol=1e-9)
    off = span._off(1e-3, np.abs(look.scores), v.coef, look.intercept)
    assert_allclose(span._bent(1e-3, v.coef, look), P.weight @ np.square(off).sum(axis=1))
    other_b = look.intercept + 0.5  # known at those of the look, made anew at others
    assert_allclose(span.risk_at(look, other_b), P.risk(look.scores + other_b), rtol=1e-12)
    assert_allclose(span.risk_at(look, look.intercept), P.risk(look.scores + look.intercept))


@pytest.mark.parametrize("m", [20, TAKEN_APART + 1])
def test_the_price_of_several_points_is_the_largest(m):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((m, 3))
    K = RBF(0.1)(X)
    points = [rng.standard_normal((m, 2)) for _ in range(3)]
    each = [price_of_jitter(K, 1e-4, point) for point in points]
    assert_allclose(price_of_jitter(K, 1e-4, *points), max(each), rtol=1e-6)


def test_accuracy_takes_the_first_of_equal_scores():
    rng = np.random.default_rng(0)
    scores, target = rng.integers(0, 3, (200, 4)).astype(float), np.eye(4)[rng.integers(0, 4, 200)]
    weight = rng.random(200)
    known = np.average(scores.argmax(axis=1) == target.argmax(axis=1), weights=weight)
    assert_allclose(accuracy(scores, target, weight), known)


def test_directions_are_not_computed_where_the_spectrum_cannot_be_steep(monkeypatch):
    X = np.random.default_rng(0).standard_normal((400, 150))
    monkeypatch.setattr(np.linalg, "eigh", None)
    assert np.ndim(coordinates_for(RBF(1.0), X).turn) == 0


def words(n, d=700, seed=0, signal=0.15):
    """Sparse rows like texts of two kinds: few of their words tell them apart."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    common, own = rng.dirichlet(np.full(d, 0.1)), rng.dirichlet(np.full(d, 0.05), 2)
    chances = (1.0 - signal) * common + signal * own[y]
    X = np.sqrt(np.array([rng.multinomial(30, p) for p in chances], float))
    return sp.csr_array(X / np.linalg.norm(X, axis=1, keepdims=True)), y


def test_wide_rows_are_seen_with_the_weights_of_others():
    every, labels = words(1600, signal=0.08)
    X, y, new, y_new = every[:600], labels[:600], every[600:], labels[600:]
    Y, rng = np.where(y == 1, 1.0, -1.0)[:, None], np.random.default_rng(0)
    directions, weights = mapped_wide.directions_of_wide(X, Y, np.ones(600), rng)
    assert_allclose(directions.T @ directions, np.eye(directions.shape[1]), atol=1e-9)
    about = X, Y, np.ones(600), (directions, weights)
    added = mapped_wide.seen_by_others(*about, np.random.default_rng(1))
    again = mapped_wide.seen_by_others(*about, np.random.default_rng(1), n_threads=2)
    assert np.array_equal(added, again)
    assert not added[:, :-1].any()  # singular vectors know nothing of the targets
    own = X @ directions
    seen, later = own + added, new @ directions

    def apart(Z, y):  # how far the classes are from each other along the weights
        z = (Z @ (directions.T @ weights))[:, 0]
        return abs(z[y == 1].mean() - z[y == 0].mean()) / z.std()

    assert apart(own, y) > 1.2 * apart(later, y_new)  # what the weights know by heart
    assert apart(seen, y) < 1.1 * apart(later, y_new)


def test_sparse_rows_of_some_hundred_features_are_seen_in_a_few_directions():
    X, y = words(1500)
    model = SparseSVC(20, gamma=1.0, random_state=0).fit(X[:700], y[:700])
    assert model.metric_.shape[1] <= mapped_wide.SINGULAR + 1
    exact = SVC(gamma=1.0).fit(X[:700], y[:700]).score(X[700:], y[700:])
    assert model.score(X[700:], y[700:]) >= exact - 0.03
    assert log_loss(y[700:], model.predict_proba(X[700:])) < 0.6 * np.log(2)


def test_the_best_coefficients_that_rows_held_out_liked_by_chance(monkeypatch):
    X, y = make_classification(3000, 6, n_informative=4, weights=[0.9], flip_y=0.02, random_state=0)
    trial = path_descent._Work._trial
    monkeypatch.setattr(path_descent._Work, "_ways", lambda self, problem: 0)
    monkeypatch.setattr(
        path_descent._Work, "_trial", lambda self, *given: (True, trial(self, *given)[1])
    )
    # with so small a C they find no second class
    model = SparseSVC(20, C=0.01, gamma=0.2, random_state=0).fit(X, y)
    assert model.score(X, y) > 0.96
    assert "rows held out" in str(model.status_)
