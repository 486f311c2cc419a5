"""Of estimators that train each pair of classes in a way of its own."""

from contextlib import contextmanager

import numpy as np

import slimsvm
from slimsvm.row_hashes import places
from tests.reference import optimum
from tests.reference.claims import (
    dense,
    fitted,
    negative,
    of_model,
    of_optimum,
    over_pairs,
    primal,
    sums,
)
from tests.reference.span_claims import of_classes


@contextmanager
def seen(owner, name, keep=lambda given, result: (given, result)):
    """What a function is given and returns, call by call: parts of problems that are drawn."""
    known, calls = getattr(owner, name), []

    def spy(*given, **named):
        result = known(*given, **named)
        calls.append(keep(given, result))
        return result

    setattr(owner, name, spy)
    try:
        yield calls
    finally:
        setattr(owner, name, known)


def _signs(p, rows, at, classes):
    """Of the pair of this number: of two classes the second has +1, of several the first of two."""
    n = len(classes)
    pairs = [(i, j) for i in range(n) for j in range(i + 1, n)] if n > 2 else [(1, 0)]
    return np.where(p.y[rows] == classes[pairs[at][0]], 1.0, -1.0)


def of_reducedsvc(p):
    """Which rows a basis has is drawn: they are those that the fit has drawn."""
    with seen(slimsvm.ReducedSVC, "_basis") as calls:
        model = fitted(p)
    weight = p.weights()
    e, used, c = p.estimator, np.flatnonzero(weight > 0), model.certificate_
    if np.isnan(c.objective):  # no time for a step: the rows are others, and nothing is claimed
        return [of_optimum(c, -np.inf, np.inf)]
    way = e.solver if isinstance(e.solver, str) else e.solver.solver
    beta = e.beta if isinstance(e.solver, str) else e.solver.beta
    names = {"smooth": "smooth_hinge", "least_squares": "least_squares"}
    loss = names.get(way, "squared_hinge")
    beta = slimsvm.losses.SmoothHinge().beta if beta is None else float(beta)
    by_norm = getattr(e.solver, "penalty", "norm") == "kernel"
    found, value = [], 0.0
    for k, (_, pair) in enumerate(calls):
        rows = used[pair.rows]
        X, R, w = p.X[rows], p.X[rows[pair.basis]], e.C * weight[rows]
        sign = _signs(p, rows, k, model.classes_)
        K, K_RR = p.K(X, R), p.K(R, R)
        F = optimum.coordinates(K, K_RR, 1e-12) if by_norm else K
        V = np.column_stack([F, np.ones(len(sign))])
        about = {"beta": beta, "F": V, "features": V if V.shape[1] <= optimum.FEW else None}
        true = optimum.regularised(V @ V.T, loss, sign, w, False, **about)
        b = float(model.intercept_[k])
        f = p.K(X, model.basis_) @ np.asarray(model.basis_coef_, float)[:, k] + b
        coef = np.asarray(model.basis_coef_, float)[:, k]
        if by_norm:
            square = coef @ p.K(model.basis_, model.basis_) @ coef
        else:  # equal vectors have equal shares in a coefficient, and a penalty each
            same = [np.equal(dense(R), own).all(axis=1).sum() for own in dense(model.basis_)]
            square = float(np.square(coef) @ (1.0 / np.maximum(same, 1)))
        lost = (
            optimum.slopes(loss, sign[:, None], f[:, None], beta)[0]
            if (loss in optimum.SMOOTH)
            else optimum.loss_values(loss, sign, f)
        )
        value += 0.5 * (square + b * b) + w @ lost
        if by_norm:  # errors of K, divided by the roots of small eigenvalues
            d = np.linalg.eigvalsh(K_RR)
            off = optimum.EPS * np.sqrt(max(square, 0.0) / d[d > 1e-12 * d[-1]][0])
            off *= float((2.0 * w * np.sqrt(lost)).sum()) * np.abs(K).max()
            true = true[0] - off, true[1] + off
        found.append(true)
    true = sums(found)
    return [of_optimum(c, *true), of_model(c, value, *true)]


def of_lowranksvc(p):
    """The factor is part of the problem: it is the library's."""
    from slimsvm.solvers.low_rank import LowRank

    with seen(LowRank, "solve") as solved, seen(LowRank, "_factor") as factors:
        model = fitted(p)
    c, e, found, value = model.certificate_, p.estimator, [], 0.0
    for (given, result), (_, factor) in zip(solved, factors, strict=True):
        _, operand, sign, upper = given[:4]
        X = dense(operand.source if operand.picked is None else operand.source[operand.picked])
        published = not isinstance(e.factorization, str)  # then equal rows stay apart
        if result.model.retrained:
            rows, own, w = _merged(X, sign, upper, result.model.a, published)
            K = p.K(X[rows], X[rows])
            found.append((-np.inf, optimum.regularised(K, "hinge", own, w, True)[1]))
            value = np.nan
            continue
        _, place = places(operand.X if operand.index is None else operand.X[operand.index])
        F = dense(factor.V).astype(np.float64)
        F = F if published else F[place]
        found.append(optimum.regularised(F @ F.T, "hinge", sign, upper, bool(e.fit_intercept)))
        v = F.T @ (sign * result.model.a)
        lost = optimum.loss_values("hinge", sign, F @ v + float(result.model.intercept))
        value += 0.5 * v @ v + upper @ lost
    true = sums(found)
    if np.isnan(value):
        return [of_optimum(c, *true)]
    return [of_optimum(c, *true), of_model(c, value, *true)]


def _merged(X, sign, upper, a, apart):
    """Support vectors, their signs, and the bounds of all rows that are equal to them."""
    rows = np.flatnonzero(a > 0)
    if apart:
        return rows, sign[rows], upper[rows]
    same = [np.equal(X, X[r]).all(axis=1) & (sign == sign[r]) for r in rows]
    return rows, sign[rows], np.array([upper[own].sum() for own in same])


def of_corevectorsvc(p):
    """The squared hinge with a penalised intercept."""
    model = fitted(p)
    C = float(p.estimator.C)

    def pair(rows, sign, weight):
        X = p.X[rows]
        return optimum.regularised(p.K(X, X) + 1.0, "squared_hinge", sign, C * weight, False)

    true = over_pairs(p, pair)
    found = [of_optimum(model.certificate_, *true)]
    if len(model.classes_) == 2:
        value = primal(p, model, "squared_hinge", C, constant=1.0)
        found.append(of_model(model.certificate_, value, *true))
    return found


def of_onlinesvc(p):
    """Over all rows, over the expansion of each pair, or of nothing in a stream with a budget."""
    from slimsvm.estimators import online

    e, batches = p.estimator, p.options.get("batches", 0)
    with seen(online, "pass_over", _expansion) as passed, seen(online, "finished") as calls:
        model = _streamed(p, batches) if batches else fitted(p)
    c = model.certificate_
    if c.scope == "stream":  # claims nothing, whatever the optimum is
        return [of_optimum(c, -1e300, -1e300), of_optimum(c, 1e300, 1e300)]
    if hasattr(model, "sparse_"):
        weight = p.weights()
        rows = weight > 0
        return of_classes(p, model.sparse_, e.C * weight[rows], rows, model.sparse_.loss_)
    if batches:
        parts = [_of_expansion(own) for own in model.stream_["pairs"]]
    else:
        ends = [result.certificate.scope for _, result in calls]
        parts = [_of_pass(*own, scope) for own, scope in zip(passed, ends, strict=True)]
    found = []
    for X, sign, w in parts:
        some = np.unique(sign).size == 2
        K = p.K(X, X)
        found.append(negative(optimum.regularised(K, "hinge", sign, w)) if some else (0.0, 0.0))
    return [of_optimum(c, *sums(found))]


def _streamed(p, batches):
    e = p.estimator
    e.class_weight = None
    for part in np.array_split(np.arange(len(p.y)), batches):
        weight = None if p.weight is None else p.weight[part]
        if weight is None or weight.any():
            e.partial_fit(p.X[part], p.y[part], np.unique(p.y), weight)
    return e


def _of_expansion(S):
    alive = np.flatnonzero(np.asarray(S["ids"]) >= 0)
    assert not len(S["f_a"])
    return S["raw"][alive], S["sign"][alive], S["upper"][alive]


def _expansion(given, result):
    """The problem of a pass, and rows and bounds of its expansion: some have taken in others."""
    S = result.model
    ids, upper = S.ids[S.alive], S.upper[S.alive]
    return given[1], np.append(ids, S.f_ids).astype(int), np.append(upper, S.f_upper)


def _of_pass(problem, ids, upper, scope):
    """Rows, signs and bounds of what was solved."""
    operand = problem.operand
    X = dense(operand.source if operand.picked is None else operand.source[operand.picked])
    if scope == "full":
        return X, problem.sign, problem.upper
    return X[ids], problem.sign[ids], upper


def of_crosstraining(p):
    """Over the rows that were kept."""
    model = fitted(p)
    c, e, weight = model.certificate_, p.estimator.estimator, p.weights()
    found = []
    for k, rows in enumerate(model.kept_indices_):
        X, sign = p.X[rows], _signs(p, rows, k, model.classes_)
        found.append(negative(optimum.regularised(p.K(X, X), "hinge", sign, e.C * weight[rows])))
    return [of_optimum(c, *sums(found))]
