"""Many small pairs in strips: the same solutions as those of pairs one by one."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

from slimsvm import SVC
from slimsvm.solvers.decomposition import Decomposition


def make(classes=12, rows=9, d=4, seed=0, spread=1.5):
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(classes), rows)
    X = spread * rng.standard_normal((classes, d))[y] + rng.standard_normal((y.size, d))
    order = rng.permutation(y.size)
    return X[order], y[order]


def both(X, y, weight=None, **settings):
    settings = {"decision_function_shape": "ovo", **settings}
    one = SVC(solver=Decomposition(), **settings).fit(X, y, weight)  # pair by pair
    return SVC(**settings).fit(X, y, weight), one


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"C": 100.0},
        {"C": 1e-3},
        {"kernel": "poly", "degree": 2, "coef0": 1.0},
        {"kernel": "linear"},
        {"kernel": "laplacian"},
        {"class_weight": "balanced"},
        {"n_jobs": 2},
    ],
)
def test_the_same_as_pair_by_pair(settings):
    X, y = make()
    weight = np.random.default_rng(1).integers(0, 4, y.size).astype(float)
    for given in (None, weight):
        strips, one = both(X, y, given, **settings)
        without = [m.decision_function(X) - m.intercept_ for m in (strips, one)]
        np.testing.assert_allclose(*without, rtol=1e-8, atol=1e-8)
        # an intercept is not unique where all variables are at a bound, up to rounding errors
        same = np.isclose(strips.intercept_, one.intercept_, rtol=1e-8, atol=1e-8)
        assert same.sum() >= 63
        a, b = strips.certificate_, one.certificate_
        assert a.holds and a.objective == pytest.approx(b.objective, rel=1e-9)
        assert a.violation <= 1e-9 and a.precision == b.precision
        assert str(strips.status_)[:10] == str(one.status_)[:10]
        assert set(strips.history_) == set(one.history_)
        assert strips.n_iter_.shape == one.n_iter_.shape == (66,)
        assert np.unique(strips.history_["problem"]).tolist() == list(range(66))


def test_single_precision_sparse_and_precomputed_rows():
    X, y = make(30, 40)  # more than a thousand rows: float32
    strips, one = both(X, y)
    assert strips.certificate_.precision == "float32" and strips.certificate_.holds
    assert abs(strips.certificate_.objective - one.certificate_.objective) <= (
        strips.certificate_.gap + one.certificate_.gap
    )
    np.testing.assert_allclose(strips.decision_function(X), one.decision_function(X), atol=5e-3)
    rows = sp.random(240, 500, 0.03, format="csr", random_state=0)
    label = np.arange(240) % 12
    strips, one = both(rows, label)
    np.testing.assert_allclose(
        strips.decision_function(rows), one.decision_function(rows), atol=1e-8
    )
    X, y = make()
    K = np.exp(-0.3 * ((X[:, None] - X) ** 2).sum(-1))
    strips, one = both(K, y, kernel="precomputed")
    np.testing.assert_allclose(strips.decision_function(K), one.decision_function(K), atol=1e-8)


def test_repeated_rows_equal_weights_and_threads_the_same_bits():
    X, y = make(8, 10)
    weight = np.where(np.arange(80) % 3 == 0, 2.0, 1.0)
    twice = np.concatenate([np.arange(80), np.flatnonzero(weight == 2.0)])
    gamma = {"gamma": 0.2, "decision_function_shape": "ovo"}
    weighted = SVC(**gamma).fit(X, y, weight).decision_function(X)
    repeated = SVC(**gamma).fit(X[twice], y[twice]).decision_function(X)
    np.testing.assert_allclose(weighted, repeated, atol=1e-8)
    threads = SVC(n_jobs=2, **gamma).fit(X, y, weight)
    np.testing.assert_array_equal(threads.decision_function(X), weighted)


def test_limits():
    X, y = make()
    for limit in ({"max_iter": 2}, {"max_time": 1e-9}):
        with pytest.warns(ConvergenceWarning):
            model = SVC(C=10.0, **limit).fit(X, y)
        assert model.fit_status_ == 1 and not model.certificate_.holds
        assert model.predict(X).shape == y.shape and (model.n_iter_ <= 2).all()
