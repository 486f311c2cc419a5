"""Small models of every kind, for all exports."""

import copy
from functools import cache

import numpy as np
from sklearn.datasets import make_blobs, make_classification, make_regression

import slimsvm
from slimsvm.expansion import by_pair


@cache
def classes(n_classes, n_features, n=260):
    """Rows of overlapping classes, so that pairs are not all on one side."""
    if n_classes == 2:
        return make_classification(
            n, n_features, n_informative=min(6, n_features), n_redundant=0, random_state=3
        )
    return make_blobs(n, n_features, centers=n_classes, cluster_std=6.0, random_state=4)


@cache
def numbers(n_features, n=200):
    X, y = make_regression(n, n_features, n_informative=4, noise=3.0, random_state=5)
    return X, y / y.std()


def rows(n_features, kind):
    """New rows beside those of the training."""
    rng = np.random.default_rng(6)
    return kind[0][:120] + 0.3 * rng.normal(size=(120, n_features))


# name -> (estimator, number of classes (0: regression, 1: one class), features)
SET_UPS = {
    "binary rbf 36": (slimsvm.SVC(C=10.0), 2, 36),
    "binary rbf 784": (slimsvm.SVC(C=10.0), 2, 784),
    "binary linear": (slimsvm.SVC(kernel="linear"), 2, 36),
    "six rbf": (slimsvm.SVC(C=10.0), 6, 36),
    "six poly": (slimsvm.SVC(kernel="poly", degree=3, coef0=1.0), 6, 36),
    "six laplacian": (slimsvm.SVC(kernel="laplacian"), 6, 36),
    "six sigmoid": (slimsvm.SVC(kernel="sigmoid", gamma=1e-3), 6, 36),
    "six ties": (slimsvm.SVC(break_ties=True), 6, 36),
    "six pairs": (slimsvm.SVC(decision_function_shape="ovo"), 6, 36),
    "six linear": (slimsvm.SVC(kernel="linear"), 6, 36),
    "26 rbf": (slimsvm.SVC(C=10.0), 26, 36),
    "26 784": (slimsvm.SVC(), 26, 784),
    "26 nu": (slimsvm.NuSVC(nu=0.1, break_ties=True), 26, 16),
    "regression": (slimsvm.SVR(C=10.0), 0, 36),
    "regression nu 784": (slimsvm.NuSVR(), 0, 784),
    "regression sparse": (slimsvm.SparseSVR(20, random_state=0), 0, 36),
    "one class": (slimsvm.OneClassSVM(nu=0.2), 1, 36),
    "one class laplacian": (slimsvm.OneClassSVM(kernel="laplacian", nu=0.2), 1, 784),
    "sparse metric": (slimsvm.SparseSVC(30, random_state=0), 6, 36),
    "sparse binary": (slimsvm.SparseSVC(10, metric="diagonal", random_state=0), 2, 36),
    "sparse pursuit": (slimsvm.SparseSVC(20, basis="pursuit", random_state=0), 26, 16),
    "linear binary": (slimsvm.LinearSVC(), 2, 36),
    "linear 26": (slimsvm.LinearSVC(), 26, 36),
    "linear joint": (slimsvm.LinearSVC(multi_class="crammer_singer"), 2, 36),
    "linear regression": (slimsvm.LinearSVR(), 0, 36),
    "reduced": (slimsvm.ReducedSVC(20, random_state=0), 6, 36),
    "low rank": (slimsvm.LowRankSVC(), 6, 36),
    "online": (slimsvm.OnlineSVC(random_state=0), 6, 36),
    "online budget": (slimsvm.OnlineSVC(max_support=20, random_state=0), 6, 36),
    "core": (slimsvm.CoreVectorSVC(random_state=0), 2, 36),
    "joint kernel": (slimsvm.CrammerSingerSVC(C=100.0), 2, 16),
    "joint linear": (slimsvm.CrammerSingerSVC(C=100.0, kernel="linear"), 6, 16),
    "measure": (slimsvm.MultivariateSVC("f1", kernel="linear", C=0.1), 2, 16),
}


@cache
def fitted(name):
    """The model of a set-up, and new rows."""
    estimator, n_classes, n_features = SET_UPS[name]
    data = classes(max(2, n_classes), n_features) if n_classes else numbers(n_features)
    if n_classes == 1:
        data = (data[0], None)
    return estimator.fit(*data), rows(n_features, data)


def exact_outputs(estimator, X):
    """Decision values in float64, whatever the model computes in."""
    if not hasattr(estimator, "_function") or getattr(estimator, "space_", "") == "explicit":
        return estimator._outputs(X)
    function = copy.copy(estimator._function())
    function.basis, function.exact = np.asarray(function.basis, np.float64), True
    return function.decision_function(X)


def scores_of(estimator, outputs):
    """What decision_function makes of outputs."""
    if hasattr(estimator, "_from_border"):
        return estimator._from_border(outputs)
    return estimator._scheme().decision(outputs, estimator.decision_function_shape)


def largest_value(d, X):
    """Of the kernel: errors of scores are a share of this and of the sum of |coef|."""
    if d.basis is None:
        return np.abs(X).max()
    if d.form != "poly":
        return 1.0
    return np.abs(d.gamma * X @ d.basis.T + d.coef0).max() ** d.degree


def rounded_outputs(d, numbers, X):
    """The outputs of codes and scales, in float64 and by the formulas of the description."""
    a = {key: value.astype(np.float64) for key, value in numbers.arrays.items()}
    for key in ("metric", "basis", "coef"):
        if f"{key}_scale" in a:
            a[key] = a[key] * a[f"{key}_scale"][:, None]
    z = X - a.get("shift", 0.0)
    if "metric" in a:
        z = z @ a["metric"] if a["metric"].ndim == 2 else z * a["metric"]
    if d.basis is None:
        return z @ a["coef"].T + a["intercept"]
    z = z - a.get("centre", 0.0)
    apart = z[:, None, :] - a["basis"]
    if d.form == "rbf":
        K = np.exp(-a["width"] * (apart**2).sum(axis=2))
    elif d.form == "laplacian":
        K = np.exp(-a["width"] * np.abs(apart).sum(axis=2))
    else:
        K = d.gamma * z @ a["basis"].T + d.coef0
        K = np.tanh(K) if d.form == "sigmoid" else K**d.degree
    coef = a["coef"] if d.n_support is None else by_pair(a["coef"].T, d.n_support)
    return K @ coef + a["intercept"]
