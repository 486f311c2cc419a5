"""Of structured outputs."""

from itertools import pairwise

import numpy as np

from tests.reference import optimum
from tests.reference.claims import Claim, dense, fitted, of_model, of_optimum
from tests.reference.outputs import outputs


def of_structural(p, model, X, examples, weight, fitted):
    """examples: the parts of each, and their labels as numbers."""
    e, c = p.estimator, model.certificate_
    oracle = model.oracle_

    def best(F):
        every = []
        for parts, labels in examples:
            own = [(d, parts, np.asarray(v), phi) for d, v, phi in outputs(oracle, labels)]
            every.append([o for o in own if o[0] > 0 or np.any(o[2]) or np.any(o[3])])
        return optimum.structured(F, every, weight, bool(e.fit_intercept))

    linear = p.kernel[0] == "linear"
    whole = best(dense(X).astype(float) if linear else optimum.factored(p.K(X, X)))
    true = whole
    if c.scope == "subspace":
        if model.basis_.shape[0] == 0:
            return []
        B = model.basis_
        true = best(optimum.coordinates(p.K(X, B), p.K(B, B)))
    value = _structural_value(p, model, X, examples, weight)
    size = float(weight.sum())  # of the losses that are added up, and cancel
    found = [of_optimum(c, *true, size=size), of_model(c, value, *true, size)]
    if c.bound is not None:
        low = c.objective - c.bound
        found.append(Claim("bound", "full", low, np.inf, *whole, max(size, abs(c.objective))))
    if fitted is not None:
        again = model.certify(*fitted, sweeps=p.options.get("sweeps", 3))
        found.append(of_optimum(again, *whole, "certify", size))
        found.append(of_model(again, value, *whole, size))
    return found


def _structural_value(p, model, X, examples, weight):
    oracle, e = model.oracle_, p.estimator
    if model.space_ == "explicit":
        W = np.asarray(model.coef_, float)
        S, square = np.asarray(X @ W.T) + model.intercept_, float(np.sum(W**2))
    else:
        B, coef = model.basis_, np.asarray(model.basis_coef_, float)
        S = p.K(X, B) @ coef + model.intercept_
        square = float(np.sum(coef * (p.K(B, B) @ coef)))
    if e.fit_intercept:
        square += float(np.sum(np.asarray(model.intercept_) ** 2))
    value = 0.5 * (square + float(np.sum(model.linear_**2)))
    for w, (parts, labels) in zip(weight, examples, strict=True):
        value += w * max(
            d + float(np.vdot(v, S[parts])) + float(phi @ model.linear_)
            for d, v, phi in outputs(oracle, labels)
        )
    return value


def of_crammersingersvc(p):
    model, weight = fitted(p), p.weights()
    rows = np.flatnonzero(weight > 0)
    labels = np.searchsorted(model.classes_, p.y[rows])
    examples = [(np.array([i]), [int(c)]) for i, c in enumerate(labels)]
    w = p.estimator.C * weight[rows]
    return of_structural(p, model, p.X[rows], examples, w, (p.X, p.y, p.weight))


of_structuralsvm = of_crammersingersvc


def of_chainsvm(p):
    ends = np.cumsum([0, *p.options["lengths"]])
    parts = [np.arange(a, b) for a, b in pairwise(ends)]
    rows = dense(p.X)
    X, Y = [rows[own] for own in parts], [p.y[own] for own in parts]
    weight = None if p.weight is None else np.maximum(p.weight[: len(parts)], 0.5)
    model = p.estimator.fit(X, Y, weight)
    w = p.estimator.C * (np.ones(len(parts)) if weight is None else weight)
    examples = [(own, np.searchsorted(model.classes_, p.y[own]).tolist()) for own in parts]
    return of_structural(p, model, rows, examples, w, (X, Y, weight))


def of_multivariatesvc(p):
    model = p.estimator.fit(p.X, p.y)
    labels = np.searchsorted(model.classes_, p.y)
    examples = [(np.arange(len(p.y)), labels.tolist())]
    if p.estimator.loss != "f1":  # only the ranking is claimed: the intercept was moved
        model.intercept_ = np.zeros(1)
        if p.estimator.fit_intercept:
            p.estimator.fit_intercept = False
    return of_structural(p, model, p.X, examples, np.full(1, p.estimator.C), None)
