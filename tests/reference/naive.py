"""Naive twins of the fast code: plain loops, dense arrays, no tiles, threads or caches. Slow on
purpose.
"""

import math

import numpy as np
from scipy.optimize import minimize


def kernel_value(name, x, z, gamma=1.0, degree=3, coef0=0.0):
    """k(x, z) of two rows in extended precision, by the formula."""
    x, z = np.asarray(x, np.longdouble), np.asarray(z, np.longdouble)
    gamma, coef0 = np.longdouble(gamma), np.longdouble(coef0)
    dot = sum((a * b for a, b in zip(x, z, strict=True)), np.longdouble(0))
    if name == "linear":
        return dot
    if name == "poly":
        return (gamma * dot + coef0) ** degree
    if name == "sigmoid":
        return np.tanh(gamma * dot + coef0)
    if name == "rbf":
        return np.exp(
            -gamma * sum(((a - b) ** 2 for a, b in zip(x, z, strict=True)), np.longdouble(0))
        )
    if name == "laplacian":
        return np.exp(
            -gamma * sum((abs(a - b) for a, b in zip(x, z, strict=True)), np.longdouble(0))
        )
    raise ValueError(name)


def kernel_matrix(name, X, Z, **params):
    """k(X, Z), entry by entry."""
    X, Z = (A.toarray() if hasattr(A, "toarray") else np.asarray(A) for A in (X, Z))
    return np.array([[kernel_value(name, x, z, **params) for z in Z] for x in X]).reshape(
        len(X), len(Z)
    )


def weighted_variance(X, weight):
    """The variance of all entries of X, where the entries of a row count as often as its weight
    says; exact sums.
    """
    X = X.toarray() if hasattr(X, "toarray") else np.asarray(X)
    total = math.fsum(w for w in weight for _ in range(X.shape[1]))
    mean = (
        math.fsum(float(w) * float(x) for w, row in zip(weight, X, strict=True) for x in row)
        / total
    )
    return (
        math.fsum(
            float(w) * (float(x) - mean) ** 2 for w, row in zip(weight, X, strict=True) for x in row
        )
        / total
    )


def dual_matrix(K, problem):
    """Q_uv = z_u z_v k(x_u, x_v) of a DualQP, from the whole kernel matrix."""
    z = problem.sign
    return z[:, None] * z[None, :] * K[np.ix_(problem.row, problem.row)]


def dual_objective(K, problem, a):
    """W(a) = 1/2 a'Qa + p'a"""
    return 0.5 * a @ dual_matrix(K, problem) @ a + problem.linear @ a


def dual_minimum(K, problem):
    """A minimiser of a DualQP by SciPy's general solver for smooth constrained problems (SLSQP); up
    to about 60 variables.

    It starts from the problem's own feasible point and is restarted from where it stopped, with the
    bounds and the equalities exact to 1e-10.
    """
    Q, p, upper = dual_matrix(K, problem), problem.linear, problem.upper
    equalities = [problem.sign] + ([np.ones_like(p)] if problem.two_equalities else [])
    A = np.array(equalities, dtype=float)
    b = A @ problem.start
    a = problem.start.astype(float)
    scale = max(1.0, np.abs(p).max(), np.abs(Q).max())
    for _ in range(3):
        found = minimize(
            lambda v: (0.5 * v @ Q @ v + p @ v) / scale,
            a,
            jac=lambda v: (Q @ v + p) / scale,
            bounds=list(zip(np.zeros_like(upper), upper, strict=True)),
            constraints={"type": "eq", "fun": lambda v: A @ v - b, "jac": lambda v: A},
            method="SLSQP",
            options={"maxiter": 2000, "ftol": 1e-15},
        )
        a = np.clip(found.x, 0.0, upper)
    return a


def dual_gap(K, problem, a, levels):
    """Duality gap of a DualQP for given levels (minus the multipliers) of either sign, from nothing
    but definitions.

    The Lagrangian with multipliers for the equalities only is minimised over the box where every
    component of its gradient decides.
    """
    gradient = dual_matrix(K, problem) @ a + problem.linear
    level = np.where(problem.sign > 0, levels[0], levels[1])
    reduced = gradient - problem.sign * level
    return float(
        sum(max(0.0, -r) * u + r * v for r, u, v in zip(reduced, problem.upper, a, strict=True))
    )


def dual_violation(K, problem, a, at_bound=0.0):
    """The largest o of a variable that may fall minus the smallest of one that may rise, within
    each equality; by loops.
    """
    s = K @ np.bincount(problem.row, problem.sign * a, minlength=K.shape[0])
    worst = 0.0
    for side in (1, -1) if problem.two_equalities else (None,):
        bottom, top = math.inf, -math.inf
        for v in range(a.size):
            z = problem.sign[v]
            if side is not None and z != side:
                continue
            o = s[problem.row[v]] + z * problem.linear[v]
            above, below = a[v] > at_bound, a[v] < problem.upper[v] - at_bound
            if below if z > 0 else above:
                bottom = min(bottom, o)
            if above if z > 0 else below:
                top = max(top, o)
        worst = max(worst, top - bottom)
    return worst
