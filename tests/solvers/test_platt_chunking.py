"""SMO and chunking as they were published, step by step beside naive twins."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from sklearn import svm

from slimsvm import SVC
from slimsvm.recipes import chunking, smo
from slimsvm.run import run
from slimsvm.solvers.dual_chunking import DualChunking
from slimsvm.solvers.platt_smo import PlattSMO
from tests.reference.machines import make_problem, random_rows
from tests.reference.naive import dual_gap, dual_objective

C, TOL = 2.0, 1e-3


@pytest.fixture(scope="module")
def data():
    X, y, t = random_rows(90, seed=5)
    return X, y, t, np.exp(-0.5 * cdist(X, X, "sqeuclidean"))


def minimum(K, y):
    there = svm.SVC(C=C, kernel="precomputed", tol=1e-10).fit(K, y)
    coef = np.zeros(y.size)
    coef[there.support_] = there.dual_coef_[0]
    return 0.5 * coef @ K @ coef - np.abs(coef).sum()


class Platt:
    """The pseudo-code of the paper, word by word, over the whole kernel matrix."""

    def __init__(self, K, y, eps, seed):
        self.K, self.y, self.eps, self.b = K, y, eps, 0.0
        self.a, self.rng, self.steps = np.zeros(y.size), np.random.default_rng(seed), []

    def error(self, i):
        return self.K[i] @ (self.y * self.a) - self.b - self.y[i]

    def free(self):
        return [i for i in range(self.y.size) if 0 < self.a[i] < C]

    def take_step(self, i1, i2):
        K, y, a, eps = self.K, self.y, self.a, self.eps
        if i1 == i2:
            return False
        E1, E2, s = self.error(i1), self.error(i2), y[i1] * y[i2]
        if s < 0:
            L, H = max(0, a[i2] - a[i1]), min(C, C + a[i2] - a[i1])
        else:
            L, H = max(0, a[i1] + a[i2] - C), min(C, a[i1] + a[i2])
        if L >= H:
            return False
        eta = K[i1, i1] + K[i2, i2] - 2 * K[i1, i2]
        assert eta > 0  # no equal rows here
        a2 = min(max(a[i2] + y[i2] * (E1 - E2) / eta, L), H)
        a2 = L if a2 < L + 1e-8 * C else H if a2 > H - 1e-8 * C else a2
        if abs(a2 - a[i2]) < eps * (a2 + a[i2] + eps):
            return False
        a1 = a[i1] + s * (a[i2] - a2)
        a1 = 0.0 if a1 < 1e-14 * C else C if a1 > C * (1 - 1e-14) else a1
        d1, d2 = y[i1] * (a1 - a[i1]), y[i2] * (a2 - a[i2])
        b1 = E1 + d1 * K[i1, i1] + d2 * K[i1, i2] + self.b
        b2 = E2 + d1 * K[i1, i2] + d2 * K[i2, i2] + self.b
        self.b = b2 if 0 < a2 < C else b1 if 0 < a1 < C else (b1 + b2) / 2
        a[i1], a[i2] = a1, a2
        self.steps.append((i1, i2))
        return True

    def examine(self, i2):
        E2 = self.error(i2)
        r = E2 * self.y[i2]
        if not ((r < -TOL and self.a[i2] < C) or (r > TOL and self.a[i2] > 0)):
            return 0
        free = self.free()
        if len(free) > 1:
            i1 = max(free, key=lambda i: round(abs(self.error(i) - E2), 9))
            if self.take_step(i1, i2):
                return 1
        for several in (free, list(range(self.y.size))):
            if several:
                k = self.rng.integers(len(several))
                for i1 in several[k:] + several[:k]:
                    if self.take_step(i1, i2):
                        return 1
        return 0

    def train(self):
        changed, examine_all = 0, True
        while changed > 0 or examine_all:
            several = range(self.y.size) if examine_all else self.free()
            changed = sum(self.examine(i) for i in several if examine_all or 0 < self.a[i] < C)
            examine_all = False if examine_all else changed == 0


def test_platts_steps_one_by_one(data, monkeypatch):
    X, y, t, K = data
    taken, step = [], PlattSMO._step
    monkeypatch.setattr(
        PlattSMO, "_step", lambda *given: (taken.append(given[2:4]), step(*given))[1]
    )
    problem = make_problem("classification", X, y, t, C=C)
    result = run(PlattSMO(progress=1e-4, seed=3), problem, tol=TOL)
    twin = Platt(K, y, 1e-4, 3)
    twin.train()
    assert len(taken) > 100 and result.n_iter == len(taken)
    assert taken == twin.steps
    assert np.allclose(result.model.a, twin.a, atol=1e-9)
    assert result.model.level[0] == pytest.approx(twin.b, abs=1e-9)


@pytest.mark.parametrize(
    "solver",
    [
        PlattSMO(progress=1e-5),
        DualChunking(chunk=20),
        DualChunking(chunk=90),
        DualChunking(chunk=7, inner="smo"),
    ],
)
@pytest.mark.parametrize("weighted", [False, True])
def test_the_optimum_and_its_certificate(data, solver, weighted):
    X, y, t, K = data
    weight = np.where(np.arange(90) % 3, 1.0, 2.0) if weighted else None
    problem = make_problem("classification", X, y, t, C=C, weight=weight)
    result = run(solver, problem, tol=TOL)
    a, certificate = result.model.a, result.certificate
    assert result.status.converged and certificate.violation <= TOL
    assert abs(y @ a) < 1e-8 and a.min() >= 0 and np.all(a <= problem.upper)
    assert certificate.objective == pytest.approx(dual_objective(K, problem, a), rel=1e-9)
    gap = dual_gap(K, problem, a, result.model.level)
    assert certificate.gap == pytest.approx(gap, rel=1e-6, abs=1e-8)
    if not weighted:
        assert -1e-8 <= certificate.objective - minimum(K, y) <= certificate.gap + 1e-8


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_variables_that_are_next_to_a_bound_balance_still():
    """A bound so large that a hundred-millionth of it is as large as the variables are.

    A point that does not balance has a value beyond the optimum, which its certificate claims.
    """
    rng = np.random.default_rng(3)
    X, y = rng.standard_normal((30, 3)) * 20.0, np.where(np.arange(30) % 3 == 0, 1.0, -1.0)
    kernel = {"kernel": "poly", "gamma": 0.1, "degree": 2, "coef0": 1.0}
    model = SVC(C=1e3, **kernel, max_iter=200, solver=PlattSMO()).fit(X, y)
    assert abs(model.dual_coef_.sum()) <= 1e-12 * np.abs(model.dual_coef_).sum()


def test_a_linear_kernel_needs_no_kernel_values():
    X, y, _ = random_rows(200, seed=1)
    for rows in (X, X.astype(np.float32)):
        model = smo(kernel="linear", C=0.5, progress=1e-5).fit(rows, y)
        exact = SVC(kernel="linear", C=0.5, tol=1e-6).fit(rows, y)
        assert model.history_["kernel_values"].max() == 0
        assert np.allclose(model.decision_function(rows), exact.decision_function(rows), atol=5e-3)


def test_equal_rows_with_opposite_labels_are_stepped_over():
    X = np.repeat(np.arange(10.0)[:, None], 2, axis=0)
    y = np.where(np.arange(20) % 2, 1, -1)
    model = smo(C=1.0, gamma=1.0).fit(X, y)
    assert np.isfinite(model.decision_function(X)).all() and model.certificate_.gap < 1e-6


def test_where_no_pair_makes_progress_the_sentence_says_so(data):
    X, y, _, _ = data
    with pytest.warns(UserWarning, match=r"no pair .* by progress=0\.3"):
        smo(progress=0.3, C=C, gamma=0.5, tol=1e-6).fit(X, y)


def test_chunks_hold_the_support_vectors_and_the_worst_violators(data):
    X, y, t, K = data
    problem = make_problem("classification", X, y, t, C=C)
    solver = DualChunking(chunk=12, seed=1)
    state = solver.init(problem)
    first = state.chunk
    assert first.size == 12 and set(y[first]) == {-1.0, 1.0}
    assert set(first) != set(range(12)), "drawn"
    for _ in range(500):
        chunk, chunks = state.chunk, state.n_iter
        solver.step(problem, state, TOL, 100)
        if state.n_iter == chunks:
            continue
        a, outside = state.a, np.setdiff1d(np.arange(90), chunk)
        assert not a[outside].any()
        s = K @ (y * a)
        free = (a > 0) & (a < C)
        wrong = 1 - y * (s + np.mean((y - s)[free]))
        if state.done:
            assert wrong[a == 0].max() <= TOL
            break
        worst = outside[np.argsort(-wrong[outside])][:12]
        worst = worst[wrong[worst] > TOL]
        assert set(state.chunk) == set(np.flatnonzero(a)) | set(worst)
    assert state.done and state.n_iter > 2


def test_what_is_refused(data):
    X, y, _, _ = data
    with pytest.raises(ValueError, match="2 or more"):
        chunking(1)
    with pytest.raises(ValueError, match="interior_point"):
        chunking(inner="qp")
    with pytest.raises(ValueError, match="between 0 and 1"):
        smo(progress=0.0)
    with pytest.raises(ValueError, match="smo has solver="):
        smo(solver=None)
    with pytest.raises(ValueError, match=r"does not fit: with cache_size=0\.01 megabytes"):
        chunking(chunk=50, cache_size=0.01).fit(X, y)


def test_the_recipes_train_several_classes(data):
    X, _, _, _ = data
    several = np.digitize(X[:, 0], [-0.5, 0.5])
    exact = SVC(C=C, gamma=0.5).fit(X, several).decision_function(X)
    for model in (smo(progress=1e-5, C=C, gamma=0.5), chunking(20, C=C, gamma=0.5)):
        assert np.allclose(model.fit(X, several).decision_function(X), exact, atol=1e-2)
