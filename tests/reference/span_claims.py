"""Of sparse models: functions in the span of a few vectors, perhaps with widths in a metric."""

from functools import cache

import numpy as np

import slimsvm
from tests.reference import optimum
from tests.reference.claims import Claim, columns, dense, fitted, of_model, of_optimum, sums, used

# what is added to the diagonal of K_BB, as a share of it: scope "subspace" says so
JITTER = {"float32": 1e-6, "float64": 1e-10}


def values(p, model, X):
    """Of the vectors of a model at rows, and the matrix of its norm."""
    B, (kind, params) = model.basis_, p.kernel
    metric, widths = getattr(model, "metric_", None), getattr(model, "widths_", None)
    if metric is None and widths is None:
        return p.K(X, B), p.K(B, B)
    assert kind == "rbf"
    X, B = dense(X).astype(float), dense(B).astype(float)
    M = np.ones(X.shape[1]) if metric is None else np.asarray(metric, float)
    Z = X * M if M.ndim == 1 else X @ M
    g = params["gamma"] * (np.ones(len(B)) if widths is None else np.asarray(widths, float))
    K_XB = np.exp(-g * ((Z[:, None] - B) ** 2).sum(axis=2))
    far, mean = ((B[:, None] - B) ** 2).sum(axis=2), 0.5 * (g[:, None] + g)
    both = g[:, None] * g
    K_BB = (np.sqrt(both) / mean) ** (0.5 * B.shape[1]) * np.exp(-both / mean * far)
    return K_XB, K_BB


def of_sparse(p, model, targets, weight, X, loss, epsilon=0.1):
    """Of the model, of smaller ones of its path, of their bounds, and of ``certify``."""
    beta = slimsvm.losses.SmoothHinge().beta
    intercept = bool(model.fit_intercept)

    def best(K, F):
        if loss == "softmax":
            return optimum.smooth(F, loss, targets, weight, intercept, K=K)
        about = {"intercept": intercept, "epsilon": epsilon, "beta": beta, "F": F}
        return sums([optimum.regularised(K, loss, t, weight, **about) for t in targets.T])

    def value(K_XB, K_BB, coef, intercepts):
        f = K_XB @ coef + intercepts
        half = 0.5 * float(np.sum(coef * (K_BB @ coef)))
        if loss in optimum.SMOOTH:
            return half + weight @ optimum.slopes(loss, targets, f, beta)[0]
        lost = [optimum.loss_values(loss, t, f[:, k], epsilon) for k, t in enumerate(targets.T)]
        return half + sum(weight @ own for own in lost)

    @cache
    def whole():
        K = p.K(X, X)
        return best(K, None)

    def within(c, K_XB, K_BB):
        """In the span; as far as rounding shows how long its directions are."""
        F = optimum.coordinates(K_XB, K_BB)
        longer = K_BB + JITTER[c.precision] * np.diag(K_BB).max() * np.eye(len(K_BB))
        above = optimum.coordinates(K_XB, longer, 0.0)
        return best(F @ F.T, F)[0], best(above @ above.T, above)[1]

    found, models = [], [model] + [model.truncated(q.n_basis) for q in model.path_[:-1]]
    for other in models:
        c, coef = other.certificate_, np.asarray(other.basis_coef_, float)
        if coef.shape[0] == 0:
            continue
        K_XB, K_BB = values(p, other, X)
        true = whole() if c.scope == "full" else within(c, K_XB, K_BB)
        own = value(K_XB, K_BB, coef, other.intercept_)
        what = "optimum" if other is model else f"truncated to {other.n_basis_}"
        found += [of_optimum(c, *true, what), of_model(c, own, *true)]
        if c.bound is not None:
            low = c.objective - c.bound
            found.append(Claim("bound", "full", low, np.inf, *whole(), abs(c.objective)))
        plain = not hasattr(other, "metric_") and not hasattr(other, "widths_")
        if plain and loss != "softmax" and (other is model or len(models) < 4):
            again = other.certify(p.X, p.y, p.weight)
            found += [of_optimum(again, *whole(), "certify"), of_model(again, own, *whole())]
    return found


def of_sparsesvc(p):
    """Classes in columns."""
    model, weight = fitted(p), p.weights()
    rows = weight > 0
    return of_classes(p, model, p.estimator.C * weight[rows], rows, model.loss_)


def of_classes(p, model, weight, rows, loss):
    """The same, of weights and rows that are used."""
    signs = np.stack([sign[rows] for sign in columns(p, model.classes_)], axis=1)
    targets = (signs > 0).astype(float) if loss == "softmax" else signs
    return of_sparse(p, model, targets, weight, p.X[rows], loss)


def of_sparsesvr(p):
    """One column of numbers."""
    model, (rows, weight) = fitted(p), used(p)
    e, loss = p.estimator, str(model.loss_)
    targets = p.y[rows].astype(float)[:, None]
    return of_sparse(p, model, targets, e.C * weight, p.X[rows], loss, e.epsilon)
