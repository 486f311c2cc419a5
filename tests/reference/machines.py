"""The five dual problems on small random data, and what they mean: decision values by the shortest
code, ours and scikit-learn's.
"""

import numpy as np
from sklearn import svm

from slimsvm.gram import make_gram
from slimsvm.kernels import RBF
from slimsvm.problems.dual_qp import (
    classification,
    nu_classification,
    nu_regression,
    one_class,
    regression,
)
from slimsvm.tiles import prepare

MACHINES = ("classification", "regression", "one_class", "nu_classification", "nu_regression")
EPSILON, NU = 0.1, 0.4


def random_rows(n, seed=0, d=3):
    """Rows, overlapping labels and noisy targets: free and bounded variables in every model."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    f = np.sin(X[:, 0]) + 0.5 * X[:, 1] ** 2 - 0.4
    y = np.where(f + 0.3 * rng.standard_normal(n) > 0, 1.0, -1.0)
    y[:2] = 1.0, -1.0
    return X, y, f + 0.2 * rng.standard_normal(n)


def make_problem(
    machine,
    X,
    y,
    t,
    *,
    kernel=None,
    C=2.0,
    weight=None,
    nu=NU,
    budget=1e8,
    dtype=np.float64,
    n_threads=1,
):
    """The DualQP of one model; ``y`` are labels, ``t`` targets."""
    kernel = kernel or RBF(0.5)
    gram = make_gram(
        prepare(kernel, X, dtype=None if dtype is None else np.dtype(dtype)), budget, n_threads
    )
    weight = np.ones(X.shape[0]) if weight is None else np.asarray(weight, float)
    if machine == "classification":
        return classification(gram, y, C * weight)
    if machine == "regression":
        return regression(gram, t, C * weight, EPSILON)
    if machine == "one_class":
        return one_class(gram, weight, nu)
    if machine == "nu_classification":
        return nu_classification(gram, y, weight, nu)
    if machine == "nu_regression":
        return nu_regression(gram, t, C * weight, nu)
    raise ValueError(machine)


def decision_values(machine, problem, solution, K):
    """f at the columns of K (rows: the training rows), from the dual point and the levels of its
    two signs.
    """
    s = problem.coef(solution.a) @ K
    plus, minus = solution.level
    if machine == "nu_classification":
        return (s - (plus + minus) / 2) / ((plus - minus) / 2)
    return s - (plus + minus) / 2


def reference_machine(machine, C=2.0, nu=NU, tol=1e-9):
    """scikit-learn's model for a precomputed kernel."""
    options = {"kernel": "precomputed", "tol": tol}
    return {
        "classification": lambda: svm.SVC(C=C, **options),
        "regression": lambda: svm.SVR(C=C, epsilon=EPSILON, **options),
        "one_class": lambda: svm.OneClassSVM(nu=nu, **options),
        "nu_classification": lambda: svm.NuSVC(nu=nu, **options),
        "nu_regression": lambda: svm.NuSVR(C=C, nu=nu, **options),
    }[machine]()


def reference_values(machine, K, y, t, weight=None, **parameters):
    """Its decision values at the training rows."""
    model = reference_machine(machine, **parameters)
    if machine == "one_class":
        return model.fit(K, sample_weight=weight).decision_function(K)
    if machine in ("classification", "nu_classification"):
        return model.fit(K, y, sample_weight=weight).decision_function(K)
    return model.fit(K, t, sample_weight=weight).predict(K)
