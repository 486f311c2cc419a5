"""Random problems of every estimator: ordinary ones, and such that nobody would wish for."""

import warnings

import numpy as np
import scipy.sparse as sp

import slimsvm

REGRESSIONS = ("SVR", "NuSVR", "SparseSVR", "LinearSVR")
MAKERS = {
    "SVC": lambda C, g: slimsvm.SVC(C=C, gamma=g),
    "NuSVC": lambda C, g: slimsvm.NuSVC(nu=0.2, gamma=g),
    "SVR": lambda C, g: slimsvm.SVR(C=C, gamma=g, epsilon=0.05),
    "NuSVR": lambda C, g: slimsvm.NuSVR(C=C, nu=0.4, gamma=g),
    "OneClassSVM": lambda C, g: slimsvm.OneClassSVM(nu=0.3, gamma=g),
    "LinearSVC": lambda C, g: slimsvm.LinearSVC(C=C),
    "LinearSVR": lambda C, g: slimsvm.LinearSVR(C=C, epsilon=0.05),
    "SparseSVC": lambda C, g: slimsvm.SparseSVC(5, C=C, gamma=g, random_state=0),
    "SparseSVR": lambda C, g: slimsvm.SparseSVR(5, C=C, gamma=g, random_state=0),
    "ReducedSVC": lambda C, g: slimsvm.ReducedSVC(C=C, gamma=g, random_state=0),
    "LowRankSVC": lambda C, g: slimsvm.LowRankSVC(C=C, gamma=g, random_state=0),
    "CoreVectorSVC": lambda C, g: slimsvm.CoreVectorSVC(C=C, gamma=g, random_state=0),
    "OnlineSVC": lambda C, g: slimsvm.OnlineSVC(C=C, gamma=g, random_state=0),
    "CrammerSingerSVC": lambda C, g: slimsvm.CrammerSingerSVC(C=C, gamma=g, random_state=0),
}
# those whose solution is unique but for rounding, so that it may be compared
EXACT = ("SVC", "SVR", "NuSVR", "OneClassSVM", "LinearSVC", "LinearSVR")


def ordinary(rng, most=60):
    """Rows, labels and targets of a size and scale that people have."""
    n, d = int(rng.integers(8, most)), int(rng.integers(1, 6))
    X = rng.standard_normal((n, d)) * 10.0 ** rng.uniform(-1, 1)
    f = X[:, 0] * X[:, -1] / (np.abs(X).max() + 1e-9) + 0.3 * rng.standard_normal(n)
    y = (f > np.median(f)).astype(int)
    y[:2] = 0, 1
    return X, y, f


def hostile(rng):
    """Rows, labels, targets and weights of extreme scales, constant or repeated rows, odd types."""
    X, y, f = ordinary(rng, 40)
    kind = rng.integers(10)
    if kind == 0:
        X = X * 10.0 ** rng.uniform(-150, 150)
    elif kind == 1:
        X = X * 10.0 ** rng.uniform(-20, 20, X.shape[1])
    elif kind == 2:
        X[:, int(rng.integers(X.shape[1]))] = rng.choice([0.0, 1.0, 1e8, -1e-300])
    elif kind == 3:
        again = np.repeat(np.arange(4), 30)
        X, y, f = X[again], np.tile([0, 1], 60), f[again]
    elif kind == 4:
        X[:] = X[0]
    elif kind == 5:
        y[:] = 0
        y[0] = 1
    elif kind == 6:
        X = X * 5e-324 * 10.0 ** rng.integers(0, 15)
    elif kind == 7:
        X = X.astype(np.float32)
    elif kind == 8:
        X = odd_csr(X, rng)
    else:
        f = f * 10.0 ** rng.uniform(-100, 100)
    weight = None
    if rng.random() < 0.4:
        weight = 10.0 ** rng.uniform(-5, 5, len(y))
        weight[rng.random(len(y)) < 0.2] = 0.0
        weight[:2] = 1.0
    return X, y, f, weight if weight is None or len(weight) == len(y) else None


def odd_csr(X, rng):
    """A CSR matrix with explicit zeros, columns out of order, and entries in two parts."""
    n, d = X.shape
    rows = np.repeat(np.arange(n), d)
    columns = np.concatenate([rng.permutation(d) for _ in range(n)])
    values = X[rows, columns]
    values[rng.random(values.size) < 0.2] = 0.0
    split = rng.random(values.size) < 0.1
    rows = np.concatenate([rows, rows[split]])
    columns = np.concatenate([columns, columns[split]])
    values = np.concatenate([np.where(split, values / 2, values), values[split] / 2])
    order = np.argsort(rows, kind="stable")
    indptr = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=n))])
    return sp.csr_matrix((values[order], columns[order], indptr), shape=(n, d))


def target_of(name, y, f):
    """Labels or numbers."""
    return f if name in REGRESSIONS else y


def fitted(name, C, gamma, X, target, weight=None):
    """The model, without a word."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = MAKERS[name](C, gamma)
        if weight is None or name == "CrossTraining":
            return model.fit(X, target)
        return model.fit(X, target, sample_weight=weight)


def values(model, X):
    """Decision values, or predictions of a regression."""
    known = hasattr(model, "decision_function")
    return np.asarray(model.decision_function(X) if known else model.predict(X))
