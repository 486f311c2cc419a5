"""Random problems for every estimator, and what their certificates claim beside the truth.

``problem(name, seed)`` draws rows, labels, weights and parameters; ``claims(name, seed)`` fits and
returns, for everything that the fit claims, the claimed interval and that of an independent solver
(:mod:`tests.reference.optimum`). ``python -m tests.reference.certificates NAME SEED`` shows one.
"""

import sys
import warnings
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
import scipy.sparse as sp

import slimsvm
from slimsvm import oracles, precision
from tests.reference import optimum
from tests.reference.outputs import outputs

RESOLVED = 1e-8  # of a reference interval, as a share of what is measured: wider ones say nothing
SLACK = 1e-9  # of the numbers that are added up: rounding errors of the reference
CANCELS = 1e-5  # share of a sum that cancels to an optimum of zero: 1e-14 of it is rounding
SMALL = 0  # rows up to which a problem counts as small, in problems that play large ones


@dataclass
class Claim:
    """``low`` and ``high`` are claimed, ``below`` and ``above`` are known to enclose the truth."""

    what: str
    scope: str
    low: float
    high: float
    below: float
    above: float
    size: float = 0.0  # of the numbers that were added up

    @property
    def slack(self):
        return SLACK * max(self.size, abs(self.below), abs(self.above), 1e-300)

    @property
    def resolved(self):
        if not np.isfinite(self.below):
            return True
        size = max(self.size, abs(self.above))
        return np.isfinite(self.above) and self.above - self.below <= RESOLVED * size + 1e-300

    @property
    def true(self):
        return self.low <= self.above + self.slack and self.below <= self.high + self.slack

    def __str__(self):
        return (
            f"{self.what} ({self.scope}): [{self.low:.12g}, {self.high:.12g}] claimed, "
            f"[{self.below:.12g}, {self.above:.12g}] true"
        )


@dataclass
class Problem:
    """What was drawn."""

    estimator: object
    X: object
    y: object
    weight: np.ndarray | None
    large: bool  # whether it plays a large one
    kernel: tuple
    options: dict = field(default_factory=dict)

    def K(self, X, Z):
        name, params = self.kernel
        return optimum.kernel(name, X, Z, **params)

    def weights(self, y=None):
        """Factors of C: sample weights times class weights; rows without weight are left out."""
        weight = np.ones(len(self.y)) if self.weight is None else self.weight.astype(float)
        balance = getattr(self.estimator, "class_weight", None)
        if balance is None:
            return weight
        classes, factors = np.unique(self.y[weight > 0]), np.ones(len(self.y))
        for c in classes:
            own = self.y == c
            factors[own] = (
                weight.sum() / (classes.size * weight[own].sum())
                if balance == "balanced"
                else balance.get(int(c), 1.0)
            )
        return weight * factors


# -- what is drawn ---------------------------------------------------------------------------------


def _rows(rng, classes, regression=False, most=60, least=6):
    n = int(rng.integers(least, most))
    d = int(rng.integers(1, 6))
    X = rng.standard_normal((n, d)) * 10.0 ** rng.uniform(-1, 1)
    f = X[:, 0] * X[:, -1] / (np.abs(X).max() + 1e-9) + rng.uniform(0, 1) * rng.standard_normal(n)
    if regression:
        y = f * 10.0 ** rng.uniform(-1, 1)
    elif classes == 2:
        y = (f > np.quantile(f, rng.choice([0.5, 0.5, 0.8, 0.95]))).astype(int)
    else:
        y = np.digitize(f, np.quantile(f, [0.3, 0.7]))
    if not regression:
        y[:classes] = np.arange(classes)
    if rng.random() < 0.3:  # repeated rows, some with other labels
        again = rng.integers(n, size=n // 3)
        X, more = np.concatenate([X, X[again]]), y[again].copy()
        if rng.random() < 0.5 and not regression:
            more = rng.permutation(more)
        y = np.concatenate([y, more])
    return X, y


def _weights(rng, n, y=None):
    kind = rng.choice(["none", "none", "whole", "real"])
    if kind == "none":
        return None
    weight = rng.integers(0, 4, n).astype(float) if kind == "whole" else rng.lognormal(0, 1, n)
    if y is not None:
        for c in np.unique(y):
            if not weight[y == c].any():
                weight[np.flatnonzero(y == c)[0]] = 1.0
    elif np.count_nonzero(weight) < 3:
        weight[:3] = 1.0
    return weight


def _kernel(rng, names=("rbf", "rbf", "rbf", "laplacian", "linear", "poly")):
    name = str(rng.choice(names))
    if name in ("rbf", "laplacian"):
        return name, {"gamma": float(10.0 ** rng.uniform(-2, 1))}
    if name == "poly":
        return name, {"gamma": float(10.0 ** rng.uniform(-2, 0)), "degree": 2, "coef0": 1.0}
    return name, {}


def _limits(rng, largest=100):
    kind = rng.choice(["none", "none", "none", "steps", "steps", "time"])
    if kind == "none":
        return {}
    if kind == "time":
        return {"max_time": float(10.0 ** rng.uniform(-5, -2.5))}
    return {"max_iter": int(largest ** rng.uniform(0, 1))}


def problem(name, seed):
    """The problem of this number."""
    rng = np.random.default_rng([seed, *name.encode()])
    base = name.split("/")[0]
    regression = base in ("SVR", "NuSVR", "SparseSVR", "LinearSVR")
    classes = int(rng.choice([2, 2, 3]))
    if base in ("LowRankSVC", "ReducedSVC", "OnlineSVC", "MultivariateSVC"):
        classes = 2
    if base == "CrossTraining":
        classes = 2
    most = {"MultivariateSVC": 8, "ChainSVM": 14, "CrossTraining": 120}.get(base, 60)
    X, y = _rows(rng, classes, regression, most=most, least=6 if base != "CrossTraining" else 60)
    if base == "MultivariateSVC":  # all rankings of the rows are outputs
        X, y = X[:5], np.append(y[:4], 1 - y[0])[: len(y[:5])]
    kernel = _kernel(rng)
    if base == "CoreVectorSVC":
        kernel = _kernel(rng, ("rbf", "laplacian"))
    params = {"C": float(10.0 ** rng.uniform(-2, 3)), **_limits(rng)}
    params["tol"] = float(10.0 ** rng.uniform(-8, -1))
    if base not in ("LinearSVC", "LinearSVR"):
        params |= {"kernel": kernel[0], **kernel[1]}
    if rng.random() < 0.4:
        X = X.astype(np.float32)
    if rng.random() < 0.2:
        X = sp.csr_array(X)
    weight = _weights(rng, len(y), None if regression else y)
    made, more = globals()[f"_make_{base.lower()}"](rng, name, params, X, y, classes)
    if base in ("CoreVectorSVC", "MultivariateSVC"):
        weight = None
    if not regression and "class_weight" in made.get_params() and rng.random() < 0.3:
        heavy = {0: float(10.0 ** rng.uniform(-1, 1)), 1: 1.0}
        made.class_weight = "balanced" if rng.random() < 0.5 else heavy
    return Problem(made, X, y, weight, bool(rng.random() < 0.6), kernel, more)


def _make_svc(rng, name, params, X, y, classes):
    return slimsvm.SVC(shrinking=bool(rng.random() < 0.7), **params), {}


def _make_nusvc(rng, name, params, X, y, classes):
    params.pop("C")
    return slimsvm.NuSVC(nu=float(rng.uniform(0.02, 0.9)), **params), {}


def _make_svr(rng, name, params, X, y, classes):
    return slimsvm.SVR(epsilon=float(rng.choice([0.0, 0.1, 0.5])), **params), {}


def _make_nusvr(rng, name, params, X, y, classes):
    return slimsvm.NuSVR(nu=float(rng.uniform(0.05, 0.95)), **params), {}


def _make_oneclasssvm(rng, name, params, X, y, classes):
    params.pop("C")
    return slimsvm.OneClassSVM(nu=float(rng.uniform(0.05, 0.95)), **params), {}


def _make_linearsvc(rng, name, params, X, y, classes):
    params |= {"fit_intercept": [True, False, "free"][int(rng.integers(3))]}
    params["intercept_scaling"] = float(rng.choice([1.0, 1.0, 3.0]))
    kind = rng.choice(["l2", "l2", "l2", "l1", "joint"])
    if kind == "l1":
        params |= {"penalty": "l1", "loss": "squared_hinge", "dual": False}
        params.setdefault("max_time", 0.5)
        params["fit_intercept"] = bool(params["fit_intercept"])
    elif kind == "joint":
        params |= {"multi_class": "crammer_singer"}
        params["fit_intercept"] = bool(params["fit_intercept"])
    else:
        params["loss"] = str(rng.choice(["hinge", "squared_hinge"]))
    return slimsvm.LinearSVC(**params), {}


def _make_linearsvr(rng, name, params, X, y, classes):
    losses = ["epsilon_insensitive", "squared_epsilon_insensitive"]
    params["fit_intercept"] = [True, False, "free"][int(rng.integers(3))]
    made = slimsvm.LinearSVR(
        epsilon=float(rng.choice([0.0, 0.1, 0.5])),
        loss=str(rng.choice(losses)),
        intercept_scaling=float(rng.choice([1.0, 3.0])),
        **params,
    )
    return made, {}


def _sparse(rng, X, params):
    n = X.shape[0]
    kind = rng.choice(["all", "many", "pursuit", "random", "cholesky", "given"])
    params["fit_intercept"] = bool(rng.random() < 0.7)
    params["random_state"] = int(rng.integers(1000))
    if "max_iter" in params:
        params["max_iter"] = max(1, params["max_iter"])
    if kind == "all":
        return {"basis": "all", "refine": False, **params}
    size = n + 5 if kind == "many" else int(rng.integers(1, max(2, n // 2)))
    params["n_basis"] = size
    if kind == "given":
        dense = X.toarray() if sp.issparse(X) else X
        params["basis"] = np.asarray(dense[:size], np.float64) + 0.1
        params["n_basis"] = len(params["basis"])
        params["refine"] = False
    elif kind in ("random", "cholesky"):
        params["basis"] = str(kind)
        params["refine"] = False
    elif rng.random() < 0.5:
        params["refine"] = False
    return params


def _make_sparsesvc(rng, name, params, X, y, classes):
    losses = ("hinge", "squared_hinge", "smooth_hinge", "least_squares")
    params = _sparse(rng, X, params)
    params["loss"] = str(rng.choice(losses))
    if params["loss"] == "hinge" and str(params.get("basis")) == "all":
        params.pop("basis")
        params["n_basis"] = X.shape[0]
    if params["loss"] == "hinge":
        params["refine"] = False
    return slimsvm.SparseSVC(**params), {}


def _make_sparsesvr(rng, name, params, X, y, classes):
    params = _sparse(rng, X, params)
    losses = ("epsilon_insensitive", "squared_epsilon_insensitive", "least_squares")
    params["loss"] = str(rng.choice(losses))
    if params["loss"] == "epsilon_insensitive" and str(params.get("basis")) == "all":
        params.pop("basis")
        params["n_basis"] = X.shape[0]
    if params["loss"] == "epsilon_insensitive":
        params["refine"] = False
    return slimsvm.SparseSVR(epsilon=float(rng.choice([0.0, 0.1])), **params), {}


def _make_reducedsvc(rng, name, params, X, y, classes):
    solver = str(rng.choice(["smooth", "least_squares", "lagrangian", "decomposition"]))
    size = int(rng.integers(1, max(2, len(y) // 2)))
    if rng.random() < 0.3 and solver == "smooth":
        params["beta"] = float(10.0 ** rng.uniform(0, 2))
    seed = int(rng.integers(1000))
    return slimsvm.ReducedSVC(size, solver=solver, random_state=seed, **params), {}


def _make_lowranksvc(rng, name, params, X, y, classes):
    params.setdefault("max_iter", 20_000)  # sweeps: of few rows that play many there may be more
    made = slimsvm.LowRankSVC(
        str(rng.choice(["pivoted", "threshold"])),
        float(rng.uniform(0.05, 1.0)),
        bool(rng.random() < 0.2),
        fit_intercept=bool(rng.random() < 0.4),
        random_state=0,
        **params,
    )
    return made, {}


def _make_corevectorsvc(rng, name, params, X, y, classes):
    params["eps"] = params.pop("tol") / 10
    ball = str(rng.choice(["minimum", "minimum", "fixed"]))
    return slimsvm.CoreVectorSVC(ball=ball, random_state=0, **params), {}


def _make_onlinesvc(rng, name, params, X, y, classes):
    made = slimsvm.OnlineSVC(
        finishing=bool(rng.random() < 0.6),
        epochs=int(rng.integers(1, 3)),
        max_support=None if rng.random() < 0.6 else int(rng.integers(2, 30)),
        random_state=0,
        **params,
    )
    return made, {"batches": int(rng.choice([0, 0, 1, 3]))}


def _make_crosstraining(rng, name, params, X, y, classes):
    inner = slimsvm.SVC(**params)
    return slimsvm.CrossTraining(inner, random_state=0), {}


def _structural(rng, params, samples=True):
    params["fit_intercept"] = bool(rng.random() < 0.5)
    params["line_search"] = bool(rng.random() < 0.7)
    params["random_state"] = int(rng.integers(1000))
    spaces = ["auto", "kernel", "subspace", "sampled"] if samples else ["auto", "subspace"]
    space = str(rng.choice(spaces))
    if space == "sampled":
        params["sample_size"] = int(rng.integers(1, 8))
        params["sampling"] = str(rng.choice(["linear_time", "constant_time"]))
        params["max_iter"] = int(min(params.get("max_iter", 200), 200))
    if space == "subspace":
        params["n_basis"] = int(rng.integers(1, 12))
        params["basis"] = str(rng.choice(["pursuit", "random", "pursuit_rows"]))
    params["space"] = space
    return params


def _make_crammersingersvc(rng, name, params, X, y, classes):
    cost = None
    if rng.random() < 0.3:
        cost = rng.integers(1, 4, (classes, classes)).astype(float)
        np.fill_diagonal(cost, 0.0)
    return slimsvm.CrammerSingerSVC(cost=cost, **_structural(rng, params)), {}


def _make_structuralsvm(rng, name, params, X, y, classes):
    oracle = oracles.Binary() if classes == 2 else oracles.Multiclass()
    return slimsvm.StructuralSVM(oracle, **_structural(rng, params)), {}


def _make_chainsvm(rng, name, params, X, y, classes):
    lengths = []
    while sum(lengths) < len(y):
        lengths.append(int(min(rng.integers(1, 4), len(y) - sum(lengths))))
    params = _structural(rng, params)
    made = slimsvm.ChainSVM(start_end=bool(rng.random() < 0.5), **params)
    return made, {"lengths": lengths}


def _make_multivariatesvc(rng, name, params, X, y, classes):
    losses = ["f1", "roc_auc", "average_precision", "precision_at_k", "recall_at_k"]
    loss = str(rng.choice(losses))
    return slimsvm.MultivariateSVC(loss, k=2, **_structural(rng, params, False)), {}


ESTIMATORS = (
    "SVC", "NuSVC", "SVR", "NuSVR", "OneClassSVM", "LinearSVC", "LinearSVR", "SparseSVC",
    "SparseSVR",
    "ReducedSVC", "LowRankSVC", "CoreVectorSVC", "OnlineSVC", "CrossTraining",
    "CrammerSingerSVC", "StructuralSVM", "ChainSVM", "MultivariateSVC",
)  # fmt: skip


# -- what is claimed, and what is true -------------------------------------------------------------


@contextmanager
def playing_large(is_large):
    """Few rows are solved as many are: not to near float64 precision."""
    known = precision.EXACT
    precision.EXACT = SMALL if is_large else known
    try:
        yield
    finally:
        precision.EXACT = known


def claims(name, seed):
    """What the fit of this problem claims."""
    p = problem(name, seed)
    with playing_large(p.large), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return globals()[f"_of_{name.split('/')[0].lower()}"](p)


def _fit(p):
    if p.weight is None:
        return p.estimator.fit(p.X, p.y)
    return p.estimator.fit(p.X, p.y, sample_weight=p.weight)


def _claim(certificate, below, above, what="optimum", size=0.0):
    low, high = certificate.interval
    return Claim(what, certificate.scope, low, high, below, above, max(size, abs(high)))


def _model(certificate, value, above, size=0.0):
    """The value of the model is at most the gap above the optimum."""
    gap = certificate.gap
    return Claim("model", certificate.scope, value - gap, np.inf, -np.inf, above, size)


def _sums(intervals):
    return tuple(np.sum(np.atleast_2d(intervals), axis=0))


def _pairs(p, of_pair):
    """The sum over pairs of classes of intervals; of_pair(rows, signs, weights of the rows)."""
    weight = p.weights()
    used = weight > 0
    classes = np.unique(p.y[used])
    found = []
    for i in range(classes.size):
        for j in range(i + 1, classes.size):
            rows = np.flatnonzero(used & np.isin(p.y, classes[[i, j]]))
            sign = np.where(p.y[rows] == classes[j], 1.0, -1.0)
            found.append(of_pair(rows, sign, weight[rows]))
    return _sums(found)


def _negative(interval):
    return -interval[1], -interval[0]


def _of_svc(p):
    model = _fit(p)
    C = float(p.estimator.C)

    def pair(rows, sign, weight):
        X = p.X[rows]
        return _negative(optimum.regularised(p.K(X, X), "hinge", sign, C * weight))

    below, above = _pairs(p, pair)
    found = [_claim(model.certificate_, below, above)]
    if len(model.classes_) == 2:
        value = _primal(p, model, "hinge", C)
        found.append(_model(model.certificate_, value, -below))
    return found


def _dense(A):
    return A.toarray() if sp.issparse(A) else np.asarray(A)


def _primal(p, model, loss, C, constant=0.0):
    """1/2 |f|^2 + sum_i w_i L of a fitted model of two classes, in float64."""
    sign = np.where(p.y == model.classes_[1], 1.0, -1.0)
    V, coef = model.support_vectors_, _dense(model.dual_coef_).ravel()
    K = p.K(p.X, V)
    f = K @ coef + float(model.intercept_[0])
    square = coef @ p.K(V, V) @ coef + constant * float(model.intercept_[0]) ** 2
    return 0.5 * square + C * (p.weights() @ optimum.loss_values(loss, sign, f))


def _of_nusvc(p):
    model = _fit(p)
    nu = float(p.estimator.nu)

    def pair(rows, sign, weight):
        X = p.X[rows]
        largest = 2 * min(weight[sign > 0].sum(), weight[sign < 0].sum()) / weight.sum()
        return optimum.nu_classes(p.K(X, X), sign, weight, min(nu, largest))

    size = CANCELS * len(p.y) ** 2 * np.abs(p.K(p.X, p.X)).max()
    return [_claim(model.certificate_, *_pairs(p, pair), size=size)]


def _used(p):
    weight = np.ones(len(p.y)) if p.weight is None else p.weight
    rows = np.flatnonzero(weight > 0)
    return rows, weight[rows]


def _of_svr(p):
    model, (rows, weight) = _fit(p), _used(p)
    e, X = p.estimator, p.X[rows]
    t = p.y[rows].astype(float)
    true = optimum.tubes(p.K(X, X), t, e.C * weight, e.epsilon)
    return [_claim(model.certificate_, *true, size=e.C * float(weight @ np.abs(t)) * 1e-3)]


def _of_nusvr(p):
    model, (rows, weight) = _fit(p), _used(p)
    e, X = p.estimator, p.X[rows]
    t = p.y[rows].astype(float)
    true = optimum.tubes(p.K(X, X), t, e.C * weight, nu=e.nu)
    return [_claim(model.certificate_, *true, size=e.C * float(weight @ np.abs(t)) * 1e-3)]


def _of_oneclasssvm(p):
    e = p.estimator
    model = e.fit(p.X, sample_weight=p.weight)
    rows, weight = _used(p)
    X = p.X[rows]
    K = p.K(X, X)
    size = CANCELS * weight.sum() ** 2 * np.abs(K).max()
    return [_claim(model.certificate_, *optimum.one_class(K, weight, e.nu), size=size)]


def _columns(p, classes):
    """Signs of one class against the others; one column for two classes."""
    if len(classes) == 2:
        return [np.where(p.y == classes[1], 1.0, -1.0)]
    return [np.where(p.y == c, 1.0, -1.0) for c in classes]


def _constant(e):
    """What the intercept adds to inner products, and whether it is free."""
    free = e.fit_intercept == "free"
    return (0.0 if free or not e.fit_intercept else float(e.intercept_scaling) ** 2), free


def _of_linearsvc(p):
    model, weight = _fit(p), p.weights()
    e, used = p.estimator, weight > 0
    X, w, c = _dense(p.X[used]).astype(float), e.C * weight[used], model.certificate_
    more, free = _constant(e)
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
            return [_claim(c, *true, size=float(w.sum()))]
        F = X @ W.T + b
        margins = 1.0 + F - F[np.arange(len(labels)), labels][:, None]
        margins[np.arange(len(labels)), labels] = 0.0
        value = 0.5 * (float(np.sum(W**2)) + penalty) + w @ margins.max(axis=1)
        return [_claim(c, *true, size=float(w.sum())), _model(c, value, true[1], float(w.sum()))]
    signs = [sign[used] for sign in _columns(p, model.classes_)]
    every = [w] * len(signs)
    if len(signs) > 1:  # as LIBLINEAR: the factor of a class is for its own problem alone
        plain = np.ones(len(p.y)) if p.weight is None else p.weight
        plain = e.C * plain[used]
        every = [np.where(s > 0, w, plain) for s in signs]
    if e.penalty == "l1":
        Z = np.column_stack([X, np.full(len(X), np.sqrt(more))]) if more else X
        true = _sums([optimum.lasso(Z, *own, free) for own in zip(signs, every, strict=True)])
        size = float(np.abs(W).sum()) + (float(np.abs(b).sum()) / np.sqrt(more) if more else 0.0)
    else:
        both = zip(signs, every, strict=True)
        true = _sums([optimum.regularised(K, e.loss, s, own, free) for s, own in both])
        size = 0.5 * (float(np.sum(W**2)) + penalty)
    F = X @ W.T + b
    losses = [optimum.loss_values(e.loss, s, F[:, k]) for k, s in enumerate(signs)]
    value = size + sum(own @ lost for own, lost in zip(every, losses, strict=True))
    return [_claim(c, *true), _model(c, value, true[1])]


def _of_linearsvr(p):
    model, (rows, weight) = _fit(p), _used(p)
    e, X, t = p.estimator, _dense(p.X[rows]).astype(float), p.y[rows].astype(float)
    more, free = _constant(e)
    w, c = e.C * weight, model.certificate_
    true = optimum.regularised(X @ X.T + more, e.loss, t, w, free, epsilon=e.epsilon)
    W, b = np.asarray(model.coef_, float).ravel(), float(np.ravel(model.intercept_)[0])
    value = 0.5 * (float(W @ W) + (b**2 / more if more else 0.0))
    value += w @ optimum.loss_values(e.loss, t, X @ W + b, e.epsilon)
    return [_claim(c, *true), _model(c, value, true[1])]


def _of_sparse(p, model, targets, weight, X, loss, epsilon=0.1):
    e, c = p.estimator, model.certificate_
    K = p.K(X, X)
    beta = slimsvm.losses.SmoothHinge().beta
    about = {"intercept": bool(e.fit_intercept), "epsilon": epsilon, "beta": beta}

    def best(K):
        return _sums([optimum.regularised(K, loss, t, weight, **about) for t in targets])

    whole = best(K)
    found = []
    models = [model] + [model.truncated(point.n_basis) for point in model.path_[:-1]]
    for other in models:
        c, B = other.certificate_, other.basis_
        if B.shape[0] == 0:
            continue
        K_NB, K_BB = p.K(X, B), p.K(B, B)
        true = whole if c.scope == "full" else best(optimum.within(K_NB, K_BB))
        coef = np.asarray(other.basis_coef_, float)
        F = K_NB @ coef + other.intercept_
        value = 0.5 * float(np.sum(coef * (K_BB @ coef)))
        value += sum(
            weight @ optimum.loss_values(loss, t, F[:, k], epsilon, beta)
            for k, t in enumerate(targets)
        )
        what = "optimum" if other is model else f"truncated to {other.n_basis_}"
        found += [_claim(c, *true, what), _model(c, value, true[1])]
        if c.bound is not None:
            low = c.objective - c.bound
            bound = Claim("bound", "full", low, np.inf, *whole, abs(c.objective))
            found.append(bound)
        if other is model or len(models) < 4:
            again = other.certify(p.X, p.y, p.weight)
            found += [_claim(again, *whole, "certify"), _model(again, value, whole[1])]
    return found


def _of_sparsesvc(p):
    model, weight = _fit(p), p.weights()
    used = weight > 0
    signs = [sign[used] for sign in _columns(p, model.classes_)]
    e = p.estimator
    return _of_sparse(p, model, signs, e.C * weight[used], p.X[used], e.loss)


def _of_sparsesvr(p):
    model, (rows, weight) = _fit(p), _used(p)
    e = p.estimator
    targets = [p.y[rows].astype(float)]
    return _of_sparse(p, model, targets, e.C * weight, p.X[rows], e.loss, e.epsilon)


def _of_reducedsvc(p):
    model, weight = _fit(p), p.weights()
    e, used = p.estimator, weight > 0
    X, sign = p.X[used], np.where(p.y[used] == model.classes_[1], 1.0, -1.0)
    V = np.column_stack([p.K(X, model.basis_), np.ones(len(sign))])
    names = {"smooth": "smooth_hinge", "least_squares": "least_squares"}
    loss = names.get(e.solver, "squared_hinge")
    beta = slimsvm.losses.SmoothHinge().beta if e.beta is None else float(e.beta)
    w = e.C * weight[used]
    true = optimum.regularised(V @ V.T, loss, sign, w, False, beta=beta)
    u = np.append(np.asarray(model.basis_coef_).ravel(), model.intercept_)
    value = 0.5 * u @ u + w @ optimum.loss_values(loss, sign, V @ u, beta=beta)
    return [_claim(model.certificate_, *true), _model(model.certificate_, value, true[1])]


def _of_lowranksvc(p):
    """The factor is part of the problem: it is the library's."""
    from slimsvm.basis import cholesky
    from slimsvm.solvers import low_rank

    seen = []

    def factor(own, operand, *about):
        seen.append((operand, known(own, operand, *about)))
        return seen[-1][1]

    known = low_rank.LowRank._factor
    low_rank.LowRank._factor = factor
    try:
        model = _fit(p)
    finally:
        low_rank.LowRank._factor = known
    assert cholesky is not None
    weight = p.weights()
    e, used = p.estimator, np.flatnonzero(weight > 0)
    sign, w = np.where(p.y[used] == model.classes_[1], 1.0, -1.0), e.C * weight[used]
    c = model.certificate_
    if "support vectors found" in str(model.status_):
        rows = model.support_
        K = p.K(p.X[rows], p.X[rows])
        where = np.searchsorted(used, rows)
        X = p.X[used]
        own = p.K(X, p.X[rows])
        # equal rows of one class are one variable with the sum of their bounds
        w_rows = np.zeros(rows.size)
        dense = X.toarray() if sp.issparse(X) else X
        for k, r in enumerate(where):
            same = (dense == dense[r]).all(axis=1) & (sign == sign[r])
            w_rows[k] = w[same].sum()
        true = optimum.regularised(K, "hinge", sign[where], w_rows, True)
        del own
        return [_claim(c, -np.inf, true[1])]
    F = seen[-1][1].V
    F = F.toarray() if sp.issparse(F) else np.asarray(F)
    F = F.astype(np.float64)
    X = p.X[used]
    dense = X.toarray() if sp.issparse(X) else np.asarray(X)
    operand = seen[-1][0]
    # the row of the factor of each row: equal rows share one
    distinct = operand.X.toarray() if sp.issparse(operand.X) else np.asarray(operand.X)
    from slimsvm.row_hashes import places

    first, place = places(X)
    assert len(F) in (first.size, distinct.shape[0])
    F = F[place] if len(F) == first.size else F
    true = optimum.regularised(F @ F.T, "hinge", sign, w, bool(e.fit_intercept))
    a = np.zeros(len(p.y))
    a[model.support_] = _dense(model.dual_coef_).ravel()
    v = F.T @ a[used]
    f = F @ v + float(model.intercept_[0])
    value = 0.5 * v @ v + w @ optimum.loss_values("hinge", sign, f)
    del dense
    return [_claim(c, *true), _model(c, value, true[1])]


def _of_corevectorsvc(p):
    model = _fit(p)
    C = float(p.estimator.C)

    def pair(rows, sign, weight):
        X = p.X[rows]
        return optimum.regularised(p.K(X, X) + 1.0, "squared_hinge", sign, C * weight, False)

    true = _pairs(p, pair)
    found = [_claim(model.certificate_, *true)]
    if len(model.classes_) == 2:
        value = _primal(p, model, "squared_hinge", C, constant=1.0)
        found.append(_model(model.certificate_, value, true[1]))
    return found


def _of_onlinesvc(p):
    e, batches = p.estimator, p.options["batches"]
    if not batches:
        model = _fit(p)
    else:
        e.class_weight = None
        for part in np.array_split(np.arange(len(p.y)), batches):
            weight = None if p.weight is None else p.weight[part]
            if weight is not None and not weight.any():
                continue
            e.partial_fit(p.X[part], p.y[part], classes=[0, 1], sample_weight=weight)
        model = e
    c = model.certificate_
    if c.scope == "stream":  # claims nothing, whatever the optimum is
        return [_claim(c, -1e300, -1e300), _claim(c, 1e300, 1e300)]
    if batches:
        S = model.stream_["pairs"][0]
        alive = np.flatnonzero(np.asarray(S["ids"]) >= 0)
        if len(S["f_a"]):
            return []
        X, sign, w = S["raw"][alive], S["sign"][alive], S["upper"][alive]
    else:
        weight = p.weights()
        rows = np.flatnonzero(weight > 0)
        if c.scope != "full" and not hasattr(model, "support_"):
            return [_finite(c)]  # a descent's metric and widths are part of its problem
        if c.scope != "full":
            rows = model.support_
        if e.max_support is not None and c.scope != "full":
            return [_finite(c)]  # what a vector stands for is not kept
        X, w = p.X[rows], e.C * weight[rows]
        sign = np.where(p.y[rows] == model.classes_[1], 1.0, -1.0)
    if np.unique(sign).size < 2:
        return [_finite(c)]
    below, above = _negative(optimum.regularised(p.K(X, X), "hinge", sign, w))
    return [_claim(c, below, above)]


def _finite(c):
    """Nothing is known but that the numbers are some."""
    ok = np.isfinite(c.objective) and c.gap >= 0
    return Claim("numbers", c.scope, 0.0, 0.0, 0.0, 0.0 if ok else np.nan)


def _of_crosstraining(p):
    model = _fit(p)
    c, e = model.certificate_, p.estimator.estimator
    weight, rows = p.weights(), model.kept_indices_[0]
    sign = np.where(p.y[rows] == model.classes_[1], 1.0, -1.0)
    X = p.X[rows]
    true = optimum.regularised(p.K(X, X), "hinge", sign, e.C * weight[rows])
    return [_claim(c, *_negative(true))]


def _of_structural(p, model, X, examples, weight, fitted):
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
    whole = best(_dense(X).astype(float) if linear else optimum.factored(p.K(X, X)))
    true = whole
    if c.scope == "subspace":
        if model.basis_.shape[0] == 0:
            return []
        B = model.basis_
        true = best(optimum.coordinates(p.K(X, B), p.K(B, B)))
    value = _structural_value(p, model, X, examples, weight)
    size = float(weight.sum())  # of the losses that are added up, and cancel
    found = [_claim(c, *true, size=size), _model(c, value, true[1], size)]
    if c.bound is not None:
        low = c.objective - c.bound
        found.append(Claim("bound", "full", low, np.inf, *whole, max(size, abs(c.objective))))
    if fitted is not None:
        again = model.certify(*fitted, sweeps=p.options.get("sweeps", 3))
        found += [_claim(again, *whole, "certify", size), _model(again, value, whole[1], size)]
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


def _of_crammersingersvc(p):
    model, weight = _fit(p), p.weights()
    rows = np.flatnonzero(weight > 0)
    labels = np.searchsorted(model.classes_, p.y[rows])
    examples = [(np.array([i]), [int(c)]) for i, c in enumerate(labels)]
    w = p.estimator.C * weight[rows]
    return _of_structural(p, model, p.X[rows], examples, w, (p.X, p.y, p.weight))


_of_structuralsvm = _of_crammersingersvc


def _of_chainsvm(p):
    ends = np.cumsum([0, *p.options["lengths"]])
    parts = [np.arange(a, b) for a, b in pairwise(ends)]
    dense = p.X.toarray() if sp.issparse(p.X) else p.X
    X, Y = [dense[own] for own in parts], [p.y[own] for own in parts]
    weight = None if p.weight is None else np.maximum(p.weight[: len(parts)], 0.5)
    model = p.estimator.fit(X, Y, weight)
    w = p.estimator.C * (np.ones(len(parts)) if weight is None else weight)
    examples = [(own, np.searchsorted(model.classes_, p.y[own]).tolist()) for own in parts]
    return _of_structural(p, model, dense, examples, w, (X, Y, weight))


def _of_multivariatesvc(p):
    model = p.estimator.fit(p.X, p.y)
    labels = np.searchsorted(model.classes_, p.y)
    examples = [(np.arange(len(p.y)), labels.tolist())]
    if p.estimator.loss != "f1":  # only the ranking is claimed: the intercept was moved
        model.intercept_ = np.zeros(1)
        if p.estimator.fit_intercept:
            p.estimator.fit_intercept = False
    return _of_structural(p, model, p.X, examples, np.full(1, p.estimator.C), None)


if __name__ == "__main__":
    shown = problem(sys.argv[1], int(sys.argv[2]))
    print(shown.estimator, shown.X.shape, shown.X.dtype, "large" if shown.large else "")
    for claim in claims(sys.argv[1], int(sys.argv[2])):
        print("true " if claim.true else "FALSE", "" if claim.resolved else "unresolved", claim)
