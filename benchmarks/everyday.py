"""Small, linear and many-class problems, beside scikit-learn's classes and scikit-learn-intelex's.

What :mod:`benchmarks.peers` races, both in one process: warmed up, then ours and theirs in turn,
the best of each. ``ratio`` is the quicker peer's time divided by ours. Who takes longer than half a
minute is run once: that is no time to warm up.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import make_classification

from benchmarks.data import dense, folder, load, web_pages

Call = Callable[[], Any]
SLOW = 30.0  # seconds
Race = tuple[Call, list[Call], int]  # ours, theirs, how often


def _intelex(name: str) -> Any:
    try:
        import sklearnex.svm

        return getattr(sklearnex.svm, name)
    except ImportError:
        return None


def _fits(
    name: str, X: Any, y: Any, repeats: int, exact: bool = True, slow: bool = False, **settings: Any
) -> Race:
    """The fits of an exact estimator, of both peers, with all cores.

    ``slow``: scikit-learn takes minutes, and is left out where the other peer is there.
    """
    import sklearn.svm

    import slimsvm

    def theirs(kind: Any, rows: Any) -> Call:
        return lambda: kind(**settings).fit(rows, y)

    ours = getattr(slimsvm, name)
    peers = [theirs(getattr(sklearn.svm, name), X)]
    other = _intelex(name) if exact else None
    if other is not None and not sp.issparse(X):
        peers = [*([] if slow else peers), theirs(other, X.astype(np.float32))]
    return lambda: ours(n_jobs=-1, **settings).fit(X, y), peers, repeats


def _predictions(X: Any, y: Any, row: Any, model: Any = None, **settings: Any) -> Race:
    import sklearn.svm

    import slimsvm

    ours = (model or slimsvm.SVC(**settings)).fit(X, y)
    theirs = sklearn.svm.SVC(**settings).fit(X, y)
    return lambda: ours.predict(row), [lambda: theirs.predict(row)], 2000


def _clusters(classes: int, rows: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(classes), rows)
    X = 2.0 * rng.standard_normal((classes, 20))[y] + rng.standard_normal((y.size, 20))
    return X, y


def _texts(classes: int = 105, rows: int = 60, words: int = 55_000) -> tuple[Any, Any]:
    """Classes of sparse rows with 160 entries: 60 of their own words, 100 common ones."""
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(classes), rows)
    topic = rng.integers(0, words, (classes, 400))
    own = np.take_along_axis(topic[y], rng.integers(0, 400, (y.size, 60)), 1)
    common = (words * rng.random((y.size, 100)) ** 4).astype(int)
    columns = np.concatenate([own, common], axis=1)
    at = np.repeat(np.arange(y.size), columns.shape[1])
    X = sp.csr_matrix((np.ones(at.size), (at, columns.ravel())), shape=(y.size, words))
    X.sum_duplicates()
    X.data[:] = 1.0
    norms = 1.0 / np.sqrt(np.asarray(X.sum(axis=1)).ravel())
    return sp.csr_matrix(sp.diags(norms) @ X), y


def _binary(n: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, 10))
    return X, (X[:, 0] + 0.5 * rng.standard_normal(n) > 0).astype(int)


def _satimage() -> tuple[Any, Any, Any]:
    X, y, X_test, _ = load("satimage")
    return dense(X), y, dense(X_test)[:1]


def _one_row(which: str) -> Race:
    import slimsvm

    if which == "mnist":
        X, y, X_test, _ = load("mnist")
        some = np.random.RandomState(0).permutation(len(y))[:3000]
        return _predictions(X[some], y[some], X_test[:1], C=5.0, gamma=0.02)
    X, y, row = _satimage()
    if which == "satimage":
        return _predictions(X, y, row, C=4.0, gamma=1.0)
    two = (y == y.max()).astype(int)
    model = slimsvm.SparseSVC(50, C=4.0, gamma=1.0, random_state=0)
    return _predictions(X, two, row, model, C=4.0, gamma=1.0)


def _linear(name: str, **settings: Any) -> Race:
    X, y = web_pages() if name == "w8a" else load(name)[:2]
    return _fits("LinearSVC", X, y, 5, exact=False, **settings)


def _regression(name: str, **settings: Any) -> Race:
    stored = np.load(folder() / f"{name}.npz")
    X, y = stored["X"].astype(np.float64), stored["y"].astype(np.float64)
    low, high = X.min(axis=0), X.max(axis=0)
    X = 2.0 * (X - low) / np.where(high > low, high - low, 1.0) - 1.0
    return _fits("SVR", X, (y - y.mean()) / y.std(), 3, **settings)


def _low_dimensions() -> Race:
    X, y = make_classification(
        60_000, 8, n_informative=6, n_redundant=0, n_clusters_per_class=6, class_sep=0.6,
        random_state=0,
    )  # fmt: skip
    return _fits("SVC", X, y, 1, slow=True, C=8.0, gamma=0.5, cache_size=2000)


def _news() -> Race:
    X, y, *_ = load("20news")
    return _fits("SVC", X, y, 1, C=1.0, gamma=1.0)


# name: (text, the ratio that is wanted, how to make the calls)
RACES: dict[str, tuple[str, float, Callable[[], Race]]] = {
    "row_satimage": ("predict 1 row, 6 classes", 2.0, lambda: _one_row("satimage")),
    "row_mnist": ("predict 1 row, 10 classes", 3.0, lambda: _one_row("mnist")),
    "row_sparse": ("predict 1 row, SparseSVC, 50 vectors", 1.5, lambda: _one_row("sparse")),
    "classes_100": ("100 classes x 10 rows", 1.5, lambda: _fits("SVC", *_clusters(100, 10), 5)),
    "classes_200": ("200 classes x 20 rows", 2.0, lambda: _fits("SVC", *_clusters(200, 20), 3)),
    "classes_sparse": ("105 classes x 60 sparse rows", 1.5, lambda: _fits("SVC", *_texts(), 1)),
    "classes_20news": ("20news, 20 classes, rbf", 1.5, _news),
    "binary_100": ("100 rows, two classes", 1.2, lambda: _fits("SVC", *_binary(100), 200)),
    "binary_500": ("500 rows, two classes", 1.2, lambda: _fits("SVC", *_binary(500), 50)),
    "binary_1000": ("1,000 rows, two classes", 1.5, lambda: _fits("SVC", *_binary(1000), 30)),
    "linear_w8a": ("LinearSVC, w8a", 1.5, lambda: _linear("w8a")),
    "linear_ijcnn1": ("LinearSVC, ijcnn1", 3.0, lambda: _linear("ijcnn1")),
    "linear_20news": ("LinearSVC, 20news", 1.5, lambda: _linear("20news")),
    "linear_rcv1": ("LinearSVC, rcv1", 1.0, lambda: _linear("rcv1")),
    "linear_hinge": ("LinearSVC, w8a, hinge", 1.0, lambda: _linear("w8a", loss="hinge")),
    "svr_cpusmall": ("SVR, cpusmall", 2.0, lambda: _regression("cpusmall", C=10.0, gamma=0.5)),
    "svr_cadata": ("SVR, cadata", 2.0, lambda: _regression("cadata", C=10.0, gamma=0.5)),
    "low_dimensions": ("60,000 rows, 8 features", 2.0, _low_dimensions),
}


def measured(name: str) -> dict[str, Any]:
    """The best time of ours and of each peer, in turn; and the ratio."""
    _, wanted, make = RACES[name]
    ours, theirs, repeats = make()
    calls = [ours, *theirs]
    best = [np.inf] * len(calls)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for turn in range(repeats + 1):
            for at, call in enumerate(calls):
                if turn and best[at] > SLOW and np.isfinite(best[at]):
                    continue
                begin = time.perf_counter()
                call()
                seconds = time.perf_counter() - begin
                if turn or seconds > SLOW:  # otherwise the first is the warm-up
                    best[at] = min(best[at], seconds)
    peer = min(best[1:])
    return {"seconds": best[0], "peer_seconds": peer, "wanted": wanted}
