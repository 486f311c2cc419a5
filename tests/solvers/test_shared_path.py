"""Solutions for many C from one matrix: against the dual problem itself, and SVC and SVR."""

import numpy as np
import pytest
from sklearn.datasets import make_classification

from slimsvm import SVC, SVR
from slimsvm.gram import Gram
from slimsvm.kernels import RBF
from slimsvm.problems.dual_qp import classification, regression
from slimsvm.search.held_out import _kept
from slimsvm.solvers.shared_path import solution_paths
from slimsvm.tiles import prepare

Cs = np.array([0.1, 1.0, 10.0, 100.0])
X, label = make_classification(1400, 8, n_informative=5, flip_y=0.1, random_state=0)
numbers = X[:, 0] + np.sin(X[:, 1])
sign = np.where(label > 0, 1.0, -1.0)
held = np.arange(1400) % 4 == 0
weight = np.where(held, 0.0, np.random.default_rng(0).uniform(0.5, 2.0, held.size))
kernel = RBF(0.1)
operand = prepare(kernel, X, dtype=np.float64)


def paths(K, target, below, above, epsilon, tol=1e-3, edges=None, Cs=Cs, start=None):
    m, n = target.shape
    coef, score = np.empty((2, m, Cs.size, n)) if start is None else start
    level, violation = np.empty((2, m, Cs.size))
    edges = np.array([0, n, n, n]) if edges is None else edges
    diag = np.ascontiguousarray(K.diagonal())
    block = _kept(object(), (), n, K.dtype)  # that of no other problem
    solution_paths(
        K, diag, edges, target, below, above, epsilon, Cs, tol, 1e-7, *block, start is not None,
        coef, score, level, violation,
    )  # fmt: skip
    return coef, score, level, violation


def path(K, target, below, above, *given, **options):
    found = paths(K, target[None], below[None], above[None], *given, **options)
    return [one[0] for one in found]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", ["classes", "numbers"])
def test_every_solution_meets_the_conditions_of_its_own_problem(dtype, kind):
    K, tol = kernel(X), 1e-3
    if kind == "classes":
        epsilon, target = 0.0, sign
        below, above = np.where(sign < 0, weight, 0.0), np.where(sign > 0, weight, 0.0)
    else:
        epsilon, target, below, above = 0.1, numbers, weight, weight
    coef, score, _, violation = path(K.astype(dtype), target, below, above, epsilon, tol)
    assert np.all(violation <= tol)
    assert not coef[:, held].any()
    for c, C in enumerate(Cs):
        gram = Gram(operand, 0.0)
        if kind == "classes":
            problem, a = classification(gram, sign, C * weight), sign * coef[c]
        else:
            problem = regression(gram, numbers, C * weight, epsilon)
            a = np.concatenate([np.maximum(coef[c], 0.0), np.maximum(-coef[c], 0.0)])
        s = K @ coef[c]
        slack = 1e-12 * C  # of the bounds
        assert np.all(a >= -slack) and np.all(a <= problem.upper + slack)
        assert abs(problem.sign @ a) < 1e-9 * C * weight.sum()
        assert problem.violation(np.clip(a, 0.0, problem.upper), s) < 2.0 * tol
        np.testing.assert_allclose(score[c], s, atol=2e-4 * max(1.0, C**0.5))


def test_held_out_scores_are_predictions_of_a_model_without_these_rows():
    K = kernel(X)
    below, above = np.where(sign < 0, weight, 0.0), np.where(sign > 0, weight, 0.0)
    _, score, level, _ = path(K, sign, below, above, 0.0, 1e-5)
    _, guess, base, _ = path(K, numbers, weight, weight, 0.1, 1e-5)
    for c, C in enumerate(Cs):
        given = {"C": C, "gamma": 0.1, "tol": 1e-6}
        model = SVC(**given).fit(X[~held], label[~held], weight[~held])
        np.testing.assert_allclose(
            score[c, held] - level[c], model.decision_function(X[held]), atol=2e-4
        )
        fitted = SVR(**given).fit(X[~held], numbers[~held], weight[~held])
        np.testing.assert_allclose(guess[c, held] - base[c], fitted.predict(X[held]), atol=2e-4)


def test_two_slices_of_a_matrix_are_the_matrix_of_these_rows():
    K = kernel(X)
    edges = np.array([100, 400, 700, 900])
    rows = np.r_[100:400, 700:900]
    above = np.where(sign[rows] > 0, 1.0, 0.0)
    of_slices = path(K, sign[rows], 1.0 - above, above, 0.0, edges=edges)
    own = np.ascontiguousarray(K[np.ix_(rows, rows)])
    for one, other in zip(of_slices, path(own, sign[rows], 1.0 - above, above, 0.0), strict=True):
        assert np.array_equal(one, other)


def test_equal_rows_with_opposite_labels_and_rows_without_weight():
    K = np.ones((64, 64))
    t = np.where(np.arange(64) % 2, 1.0, -1.0)
    coef, _, _, violation = path(K, t, (t < 0) * 1.0, (t > 0) * 1.0, 0.0, Cs=np.array([1.0]))
    assert np.allclose(np.abs(coef), 1.0)  # nothing separates them: all at the bound
    nothing = np.zeros(64)
    coef, _, level, violation = path(K, t, nothing, nothing, 0.0, Cs=np.array([1.0]))
    assert not coef.any() and not violation.any() and np.isfinite(level).all()


def test_folds_that_share_a_block_are_solved_as_each_alone():
    K = kernel(X).astype(np.float32)
    fold = np.arange(1400) % 3
    weights = np.array([weight * (fold != f) for f in range(3)])
    targets = np.array([sign] * 3)
    below, above = np.where(targets < 0, weights, 0.0), np.where(targets > 0, weights, 0.0)
    _, scores, levels, violations = paths(K, targets, below, above, 0.0, 1e-5)
    assert np.all(violations <= 1e-5)
    for f in range(3):
        _, score, level, _ = path(K, targets[f], below[f], above[f], 0.0, 1e-5)
        alone = score - level[:, None]
        np.testing.assert_allclose(scores[f] - levels[f][:, None], alone, atol=3e-4)
