"""Random problems for every estimator and every recipe: rows, labels, weights and parameters.

``problem(name, seed)`` is the one of this number; a name is that of an estimator, perhaps with a
kind of problem behind a slash, or "recipes/" and that of a recipe.
"""

import inspect
from dataclasses import dataclass, field

import numpy as np
import scipy.sparse as sp

import slimsvm
from slimsvm import cross_training, oracles, recipes
from tests.reference import optimum


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


# rows, from and to
SIZES = {
    "MultivariateSVC": (6, 8),
    "ChainSVM": (6, 14),
    "CrossTraining": (60, 120),
    "recipes/cross_training": (60, 120),
    "SparseSVC/descent": (12, 120),
    "SparseSVR/descent": (12, 120),
    "OnlineSVC/budget": (12, 120),
}
LINEAR = ("recipes/linear_cutting_plane", "recipes/linear_newton", "recipes/lsvm")


def problem(name, seed):
    """The problem of this number."""
    rng = np.random.default_rng([seed, *name.encode()])
    base = name.split("/")[0]
    regression = base in ("SVR", "NuSVR", "SparseSVR", "LinearSVR")
    classes = 2 if base == "MultivariateSVC" else int(rng.choice([2, 2, 3]))
    least, most = SIZES.get(name, SIZES.get(base, (6, 60)))
    X, y = _rows(rng, classes, regression, most=most, least=least)
    if base == "MultivariateSVC":  # all rankings of the rows are outputs
        X, y = X[:5], np.append(y[:4], 1 - y[0])[: len(y[:5])]
    kernel = _kernel(rng)
    if base == "CoreVectorSVC" or name in ("recipes/cvm", "recipes/bvm"):
        kernel = _kernel(rng, ("rbf", "laplacian"))
    elif name == "recipes/cpsp":
        kernel = _kernel(rng, ("rbf",))
    elif name.endswith("/offset"):
        kernel = _kernel(rng, ("rbf", "laplacian"))
    elif "/descent" in name or name.endswith(("/budget", "/refined")):
        kernel = _kernel(rng, ("rbf", "rbf", "rbf", "poly", "linear"))
    largest = 3
    if name.endswith("/extreme"):  # of kernel values in float32 little is left at 1e10
        largest = 15 if base in ("LinearSVC", "LinearSVR") else 10
    C = rng.uniform(-10, -3) if "/tiny" in name else rng.uniform(-2, largest)
    params = {"C": float(10.0**C), **_limits(rng)}
    params["tol"] = float(10.0 ** rng.uniform(-8, -1))
    if base not in ("LinearSVC", "LinearSVR") and name not in LINEAR:
        params |= {"kernel": kernel[0], **kernel[1]}
    if rng.random() < 0.4:
        X = X.astype(np.float32)
    if rng.random() < 0.2:
        X = sp.csr_array(X)
    if name.endswith("/offset"):  # float32 rows far from zero, and from any float32 of a basis
        X = X.toarray() if sp.issparse(X) else X
        X = (X + 10.0 ** rng.uniform(0, 5)).astype(np.float32)
    weight = _weights(rng, len(y), None if regression else y)
    made, more = globals()[f"_make_{base.lower()}"](rng, name, params, X, y, classes)
    if isinstance(made, slimsvm.CoreVectorSVC | slimsvm.MultivariateSVC):
        weight = None
    if not regression and "class_weight" in made.get_params() and rng.random() < 0.3:
        heavy = {0: float(10.0 ** rng.uniform(-1, 1)), 1: 1.0}
        made.class_weight = "balanced" if rng.random() < 0.5 else heavy
    large = bool(rng.random() < 0.6) or name.endswith(("/offset", "/tiny"))
    return Problem(made, X, y, weight, large, kernel, more)


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


def _descent(rng, params, losses):
    """Vectors in a metric that is learned, with widths of their own."""
    params |= {"n_basis": int(rng.integers(2, 12)), "random_state": int(rng.integers(1000))}
    params["fit_intercept"] = bool(rng.random() < 0.7)
    params["loss"] = str(rng.choice(losses))
    params["basis"] = "descent"
    if params["kernel"] == "rbf":
        params["metric"] = [None, "auto", "learned", "diagonal"][int(rng.integers(4))]
    if rng.random() < 0.2:
        params["max_bytes"] = int(rng.integers(500, 3000))
        del params["n_basis"]
    return params


def _make_sparsesvc(rng, name, params, X, y, classes):
    if "/descent" in name:
        losses = ("auto", "logistic", "squared_hinge", "smooth_hinge", "least_squares")
        return slimsvm.SparseSVC(**_descent(rng, params, losses)), {}
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
    if "/descent" in name:
        losses = ("squared_epsilon_insensitive", "least_squares")
        return slimsvm.SparseSVR(epsilon=0.1, **_descent(rng, params, losses)), {}
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
    if name.endswith("/budget"):
        made = slimsvm.OnlineSVC(
            selection=str(rng.choice(["random", "random", "gradient", "margin"])),
            finishing=bool(rng.random() < 0.6),
            max_support=int(rng.integers(2, 80)),
            random_state=0,
            **params,
        )
        return made, {"batches": int(rng.choice([0, 0, 1, 3]))}
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


def _make_recipes(rng, name, params, X, y, classes):
    """What the papers leave open is drawn."""
    recipe = getattr(recipes, name.split("/")[1])
    own, half = inspect.signature(recipe).parameters, max(2, len(y) // 2)
    share = float(rng.uniform(0.05, 0.6))
    drawn = {
        "n_basis": share if name.startswith("recipes/rsvm") else int(rng.integers(1, half)),
        "rank": share,
        "sample_size": int(rng.integers(1, 8)),
        "working_set": int(rng.choice([2, 2, 4])) if classes == 2 else 2,
        "penalty": str(rng.choice(["norm", "kernel"])),
        "selection": str(rng.choice(["steepest", "basic"])),
        "inner": str(rng.choice(["interior_point", "smo"])),
        "history": int(rng.integers(1, 100)),
        "shrinking": bool(rng.random() < 0.7),
        "discard": str(rng.choice(sorted(cross_training.DISCARDS))),
        "warm_start_dual": bool(rng.random() < 0.5),
        "retrain": str(rng.choice(["powers", "always"])),
        "alone": bool(rng.random() < 0.5),
        "chunk": int(rng.integers(2, 40)),
        "oracle": oracles.Binary() if classes == 2 else oracles.Multiclass(),
    }
    drawn["prefer_cached"] = drawn["working_set"] > 2 and bool(rng.random() < 0.3)
    params |= {key: value for key, value in drawn.items() if key in own}
    if "eps" in own or name in ("recipes/cvm", "recipes/bvm"):
        params["eps"] = params.pop("tol")
    if name in UNLIMITED or name in LINEAR:
        params.pop("max_iter", None)
    if name == "recipes/cross_training":
        params.setdefault("random_state", 0)
    params["max_time"] = min(params.get("max_time", 2.0), 2.0)  # what is published may be slow
    made = recipe(**params)
    if "random_state" in made.get_params():
        made.random_state = 0
    return made, {}


# estimators whose max_iter the recipe says
UNLIMITED = tuple(
    f"recipes/{own}"
    for own in (
        "cpsp", "cpsp_rows", "nystrom", "incomplete_cholesky", "kernel_cutting_plane",
        "sampled_cuts_linear", "sampled_cuts_constant",
    )
)  # fmt: skip
ESTIMATORS = (
    "SVC", "NuSVC", "SVR", "NuSVR", "OneClassSVM", "LinearSVC", "LinearSVR", "SparseSVC",
    "SparseSVR",
    "ReducedSVC", "LowRankSVC", "CoreVectorSVC", "OnlineSVC", "CrossTraining",
    "CrammerSingerSVC", "StructuralSVM", "ChainSVM", "MultivariateSVC",
)  # fmt: skip
KINDS = (
    "SparseSVC/descent", "SparseSVR/descent", "SparseSVC/descent/tiny", "OnlineSVC/budget",
    "LinearSVC/extreme",
    "LinearSVR/extreme", "SparseSVC/extreme", "SparseSVR/extreme", "ReducedSVC/extreme",
    "SVC/extreme", "SVR/extreme", "CoreVectorSVC/extreme", "MultivariateSVC/extreme",
    "SparseSVC/offset", "SparseSVR/offset", "CrammerSingerSVC/offset",
)  # fmt: skip
RECIPES = tuple(f"recipes/{own}" for own in sorted(recipes.RECIPES))
