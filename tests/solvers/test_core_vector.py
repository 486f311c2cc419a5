"""The steps of the core vector machines against their formulas, one by one."""

import numpy as np
import pytest

from slimsvm.datasets import checkers
from slimsvm.kernels import RBF
from slimsvm.run import run
from slimsvm.solvers.core_vector import Ball, CoreVector, _farthest, _pull_centre
from slimsvm.tiles import prepare


def ball(n=1300, C=2.0, **options):
    X, y = checkers(n, seed=0)
    return X, Ball(
        prepare(RBF(1.0), X, dtype=np.float64), np.where(y == y.max(), 1.0, -1.0), C, **options
    )


def test_kernel_values_of_the_ball():
    X, problem = ball(60)
    s = problem.sign
    K = np.outer(s, s) * (RBF(1.0)(X, X) + 1.0) + np.eye(60) / 4.0
    rows, columns = np.array([3, 50, 7]), np.arange(5, 55)
    np.testing.assert_allclose(problem.values(rows, columns), K[np.ix_(rows, columns)], atol=1e-12)
    al = np.random.default_rng(0).dirichlet(np.ones(60)) * (np.arange(60) % 2)
    np.testing.assert_allclose(problem.products(rows, al), K[rows] @ al, atol=1e-12)
    assert problem.kappa == K[0, 0] == 2.25


def test_pulls_against_the_formula():
    _, problem = ball(200)
    rows = np.arange(200)
    K, al = problem.values(rows, rows), np.zeros(200)
    al[0] = 1.0
    draws = np.random.default_rng(0).integers(200, size=(40, 59))
    s, a = K @ al, al.copy()
    q, scale, n_pulls, _ = _pull_centre(K, s, a, problem.kappa, problem.kappa, 0.05, draws)
    radius = np.sqrt(problem.kappa)
    for draw in draws[:n_pulls]:
        distance = np.sqrt(al @ K @ al - 2.0 * K @ al + problem.kappa)
        far = draw[np.argmax(distance[draw])]
        far = far if distance[far] > 1.05 * radius else np.argmax(distance)
        t = radius / distance[far]
        al = t * al + (1.0 - t) * np.eye(200)[far]
        np.testing.assert_allclose(
            np.sqrt(al @ K @ al - 2.0 * (K @ al)[far] + problem.kappa), radius
        )  # it is on the sphere now
    assert n_pulls > 5
    np.testing.assert_allclose(scale * a, al, atol=1e-12)
    np.testing.assert_allclose(s, K @ al, atol=1e-12)
    assert q == pytest.approx(al @ K @ al)


def test_the_farthest():
    s, nobody = np.array([0.5, -1.0, 0.2, -3.0]), np.zeros(4, bool)
    assert _farthest(s, nobody, np.array([0, 1]), 0.0) == 1  # of those drawn
    assert _farthest(s, nobody, np.array([0, 2]), 0.0) == 3  # none of these is outside: of all
    assert _farthest(s, s < -2.0, np.array([0, 2]), 0.0) == 1
    assert _farthest(s, nobody, np.array([0, 2]), -5.0) == -1


def test_the_core_set_is_solved_and_the_centre_is_a_mean():
    _, problem = ball()
    solver = CoreVector(seed=1)
    state = solver.init(problem)
    for _ in range(2):
        solver.step(problem, state, 1e-5, 10**9)
        K = problem.values(state.core, state.core)
        al = state.al[state.core]
        assert (
            al.sum() == pytest.approx(1.0)
            and (al >= 0).all()
            and state.al.sum() == pytest.approx(1.0)
        )
        np.testing.assert_allclose(state.o, K @ al, atol=1e-10)
        assert state.q == pytest.approx(al @ K @ al)
        assert state.o[al > 0].max() - state.o.min() <= 1e-5 * problem.kappa
    result = run(CoreVector(seed=1), problem, tol=1e-5)
    other = run(CoreVector(seed=2), problem, tol=1e-5)
    assert result.certificate.objective == pytest.approx(other.certificate.objective, rel=1e-2)
    assert result.certificate.gap >= 0 and result.certificate.holds


@pytest.mark.parametrize("kind", ["minimum", "fixed"])
def test_the_certificate_of_a_run_that_was_cut_short(kind):
    _, problem = ball()
    result = run(CoreVector(ball=kind), problem, tol=1e-6, max_iter=30)
    al = result.model.a / result.model.a.sum()
    K = problem.values(np.arange(1300), np.arange(1300))
    q = al @ K @ al
    far = (
        np.sqrt(
            (q - 2.0 * K @ al + problem.kappa).max()
            / (problem.kappa - (q if kind == "minimum" else 0.0))
        )
        - 1.0
    )
    assert (
        result.certificate.violation == pytest.approx(far, rel=1e-6)
        and not result.certificate.holds
    )
    f = (K - np.eye(1300) * problem.ridge) @ result.model.a
    value = 0.5 * result.model.a @ f + 2.0 * np.sum(np.maximum(0.0, 1.0 - f) ** 2)
    assert result.certificate.objective == pytest.approx(value, rel=1e-8)
