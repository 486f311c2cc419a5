"""Of exact solvers: SVC and its kin, and linear ones."""

import numpy as np

from slimsvm import oracles
from tests.reference import exact, optimum
from tests.reference.claims import (
    CANCELS,
    columns,
    dense,
    fitted,
    negative,
    of_model,
    of_optimum,
    over_pairs,
    primal,
    sums,
    used,
)
from tests.reference.outputs import outputs


def of_svc(p):
    model = fitted(p)
    C, loss = float(p.estimator.C), getattr(p.estimator.solver, "loss", "hinge")

    def pair(rows, sign, weight):
        X = p.X[rows]
        return negative(optimum.regularised(p.K(X, X), loss, sign, C * weight))

    below, above = over_pairs(p, pair)
    found = [of_optimum(model.certificate_, below, above)]
    if len(model.classes_) == 2:
        value = primal(p, model, loss, C)
        found.append(of_model(model.certificate_, value, -above, -below))
    return found


def of_nusvc(p):
    model = fitted(p)
    nu = float(p.estimator.nu)

    def pair(rows, sign, weight):
        X = p.X[rows]
        largest = 2 * min(weight[sign > 0].sum(), weight[sign < 0].sum()) / weight.sum()
        return optimum.nu_classes(p.K(X, X), sign, weight, min(nu, largest))

    size = CANCELS * len(p.y) ** 2 * np.abs(p.K(p.X, p.X)).max()
    return [of_optimum(model.certificate_, *over_pairs(p, pair), size=size)]


def of_svr(p):
    model, (rows, weight) = fitted(p), used(p)
    e, X = p.estimator, p.X[rows]
    t = p.y[rows].astype(float)
    true = optimum.tubes(p.K(X, X), t, e.C * weight, e.epsilon)
    return [of_optimum(model.certificate_, *true, size=e.C * float(weight @ np.abs(t)) * 1e-3)]


def of_nusvr(p):
    model, (rows, weight) = fitted(p), used(p)
    e, X = p.estimator, p.X[rows]
    t = p.y[rows].astype(float)
    true = optimum.tubes(p.K(X, X), t, e.C * weight, nu=e.nu)
    return [of_optimum(model.certificate_, *true, size=e.C * float(weight @ np.abs(t)) * 1e-3)]


def of_oneclasssvm(p):
    e = p.estimator
    model = e.fit(p.X, sample_weight=p.weight)
    rows, weight = used(p)
    X = p.X[rows]
    K = p.K(X, X)
    size = CANCELS * weight.sum() ** 2 * np.abs(K).max()
    return [of_optimum(model.certificate_, *optimum.one_class(K, weight, e.nu), size=size)]


def constant(e):
    """What the intercept adds to inner products, and whether it is free."""
    free = e.fit_intercept == "free"
    return (0.0 if free or not e.fit_intercept else float(e.intercept_scaling) ** 2), free


def of_linearsvc(p):
    model, weight = fitted(p), p.weights()
    e, used = p.estimator, weight > 0
    X, w, c = dense(p.X[used]).astype(float), e.C * weight[used], model.certificate_
    more, free = constant(e)
    K, W = X @ X.T + more, np.asarray(model.coef_, float)
    b = np.asarray(model.intercept_, float)
    penalty = float(np.sum(b**2)) / more if more else 0.0
    if e.multi_class == "crammer_singer":
        labels = np.searchsorted(model.classes_, p.y[used])
        oracle = oracles.Multiclass()
        oracle.prepare(model.classes_)
        every = [[(d, np.array([i]), v, phi) for d, v, phi in outputs(oracle, [int(y)]) if d > 0]
                 for i, y in enumerate(labels)]  # fmt: skip
        wider = np.hstack([X, np.full((len(X), 1), np.sqrt(more))])
        true = optimum.structured(wider, every, w, False)
        if len(model.classes_) == 2:  # one column of scores: their difference
            return [of_optimum(c, *true, size=float(w.sum()))]
        F = X @ W.T + b
        margins = 1.0 + F - F[np.arange(len(labels)), labels][:, None]
        margins[np.arange(len(labels)), labels] = 0.0
        value = 0.5 * (float(np.sum(W**2)) + penalty) + w @ margins.max(axis=1)
        return [
            of_optimum(c, *true, size=float(w.sum())),
            of_model(c, value, *true, float(w.sum())),
        ]
    signs = [sign[used] for sign in columns(p, model.classes_)]
    every = [w] * len(signs)
    if len(signs) > 1:  # as LIBLINEAR: the factor of a class is for its own problem alone
        plain = np.ones(len(p.y)) if p.weight is None else p.weight
        plain = e.C * plain[used]
        every = [np.where(s > 0, w, plain) for s in signs]
    if e.penalty == "l1":
        Z = np.column_stack([X, np.full(len(X), np.sqrt(more))]) if more else X
        true = sums([optimum.lasso(Z, *own, free) for own in zip(signs, every, strict=True)])
        size = float(np.abs(W).sum()) + (float(np.abs(b).sum()) / np.sqrt(more) if more else 0.0)
    else:
        both = zip(signs, every, strict=True)
        Z = np.column_stack([X, np.full(len(X), np.sqrt(more))])
        true = sums([optimum.regularised(K, e.loss, s, own, free, features=Z) for s, own in both])
        size = 0.5 * (float(np.sum(W**2)) + penalty)
    F = exact.scores(X, W, b)
    of = enumerate(zip(signs, every, strict=True))
    value = size + sum(exact.risk(e.loss, s, own, F[:, k]) for k, (s, own) in of)
    return [of_optimum(c, *true), of_model(c, value, *true)]


def of_linearsvr(p):
    model, (rows, weight) = fitted(p), used(p)
    e, X, t = p.estimator, dense(p.X[rows]).astype(float), p.y[rows].astype(float)
    more, free = constant(e)
    w, c = e.C * weight, model.certificate_
    Z = np.column_stack([X, np.full(len(X), np.sqrt(more))])
    about = {"epsilon": e.epsilon, "features": Z}
    true = optimum.regularised(X @ X.T + more, e.loss, t, w, free, **about)
    W, b = np.asarray(model.coef_, float).ravel(), float(np.ravel(model.intercept_)[0])
    value = 0.5 * (float(W @ W) + (b**2 / more if more else 0.0))
    value += exact.risk(e.loss, t, w, exact.scores(X, W[None], [b])[:, 0], e.epsilon)
    return [of_optimum(c, *true), of_model(c, value, *true)]
