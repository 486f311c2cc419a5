"""Values of every estimator, kept from before a change and compared after it.

    OPENBLAS_NUM_THREADS=1 python tests/golden/golden.py save FILE
    OPENBLAS_NUM_THREADS=1 python tests/golden/golden.py check FILE [--only PATTERN] [--rtol 0]

Not a part of "make test": a change of the code that is meant to change no number is tried with it.
The same processor and the same libraries give the same bits; elsewhere a relative difference is
allowed by --rtol. The file is not kept in the repository.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import make_blobs, make_moons
from sklearn.metrics.pairwise import rbf_kernel

import slimsvm as s
from slimsvm.oracles import Multiclass

BASES = ("random", "kmeans", "cholesky", "unsupervised", "greedy", "margin", "all", "pursuit_rows")
CLASSIFIERS = {
    "SVC": s.SVC(C=3.0),
    "SVC-ovo-linear": s.SVC(kernel="linear", decision_function_shape="ovo"),
    "SVC-poly": s.SVC(kernel="poly", coef0=1.0),
    "SVC-ties": s.SVC(break_ties=True),
    "SVC-balanced": s.SVC(class_weight="balanced"),
    "SVC-laplacian-jobs": s.SVC(kernel="laplacian", n_jobs=2),
    "SVC-few-steps": s.SVC(max_iter=7),
    "NuSVC": s.NuSVC(nu=0.3),
    "Sparse-pursuit": s.SparseSVC(12, random_state=0, basis="pursuit"),
    **{f"Sparse-{b}": s.SparseSVC(12, basis=b, random_state=0) for b in BASES},
    **{
        f"Sparse-{loss}": s.SparseSVC(12, loss=loss, random_state=0, basis="pursuit")
        for loss in ("hinge", "smooth_hinge", "least_squares")
    },
    "Sparse-hinge-random": s.SparseSVC(12, loss="hinge", basis="random", random_state=0),
    "Sparse-auto": s.SparseSVC("auto", max_basis=20, random_state=0),
    "Sparse-held-out": s.SparseSVC(12, validation_fraction=0.2, random_state=0, basis="pursuit"),
    "Sparse-fixed": s.SparseSVC(12, refine=False, random_state=0, basis="pursuit"),
    "Sparse-balanced": s.SparseSVC(12, class_weight="balanced", random_state=0, basis="pursuit"),
    "Sparse-jobs": s.SparseSVC(12, n_jobs=2, max_memory=0.01, random_state=0, basis="pursuit"),
    "Sparse-everything": s.SparseSVC(2000, random_state=0, basis="pursuit"),
    **{
        f"Reduced-{k}": s.ReducedSVC(solver=k, random_state=0)
        for k in ("smooth", "least_squares", "lagrangian", "decomposition")
    },
    "Reduced-balanced": s.ReducedSVC(20, class_weight="balanced", n_jobs=2, random_state=0),
    "LowRank": s.LowRankSVC(random_state=0),
    "LowRank-threshold": s.LowRankSVC("threshold", random_state=0),
    "LowRank-intercept": s.LowRankSVC(fit_intercept=True, retrain=True, random_state=0),
    "LowRank-balanced": s.LowRankSVC(class_weight="balanced", n_jobs=2, random_state=0),
    "Online": s.OnlineSVC(random_state=0),
    "Online-small": s.OnlineSVC(max_support=40, finishing=False, random_state=0),
    "Online-balanced": s.OnlineSVC(class_weight="balanced", selection="gradient", random_state=0),
    "CoreVector": s.CoreVectorSVC(eps=1e-4, random_state=0),
    "CoreVector-fixed": s.CoreVectorSVC(ball="fixed", eps=1e-3, random_state=0),
    "Linear": s.LinearSVC(),
    "Linear-hinge": s.LinearSVC(loss="hinge"),
    "Linear-balanced": s.LinearSVC(class_weight="balanced", fit_intercept=False),
    "CrammerSinger": s.CrammerSingerSVC(random_state=0),
    "CrammerSinger-balanced": s.CrammerSingerSVC(class_weight="balanced", random_state=0),
    "CrammerSinger-sub": s.CrammerSingerSVC(space="subspace", n_basis=12, random_state=0),
    "CrammerSinger-sampled": s.CrammerSingerSVC(space="sampled", sample_size=50, random_state=0),
    "CrammerSinger-explicit": s.CrammerSingerSVC(kernel="linear", random_state=0),
    "Structural": s.StructuralSVM(Multiclass(), random_state=0),
    "Structural-constant": s.StructuralSVM(
        Multiclass(), space="sampled", sampling="constant_time", sample_size=50, random_state=0
    ),
    "Multivariate": s.MultivariateSVC(random_state=0),
    "Multivariate-auc": s.MultivariateSVC("roc_auc", kernel="linear", random_state=0),
    "Cross": s.CrossTraining(random_state=0),
    "Cross-sparse": s.CrossTraining(s.SparseSVC(8, basis="pursuit"), random_state=0),
}
REGRESSORS = {
    "SVR": s.SVR(C=3.0),
    "NuSVR": s.NuSVR(),
    "SparseSVR": s.SparseSVR(12, random_state=0, basis="pursuit"),
    "SparseSVR-eps": s.SparseSVR(12, loss="epsilon_insensitive", random_state=0, basis="pursuit"),
    "SparseSVR-auto": s.SparseSVR("auto", max_basis=20, random_state=0),
    "OneClass": s.OneClassSVM(nu=0.2),
}
UNWEIGHTED = ("CoreVector", "Multivariate")


def data(n: int, n_classes: int, seed: int = 0) -> tuple[Any, Any]:
    """Rows of four features."""
    if n_classes == 2:
        X, y = make_moons(n, noise=0.3, random_state=seed)
        return np.hstack([X, X**2 - 1.0]), y
    return make_blobs(n, 4, centers=n_classes, cluster_std=4.0, random_state=seed)


def facts(model: Any, X: Any) -> Any:
    """Decision values of some rows, the certificate, iterations."""
    some = X[:60] if not isinstance(X, list) else X[:5]
    out = (
        model.decision_function(some)
        if hasattr(model, "decision_function")
        else model.predict(some)
    )
    c = getattr(model, "certificate_", None)
    parts = [
        np.ravel(np.asarray(out, float)),
        [np.nan] * 3 if c is None else [c.objective, c.violation, c.gap],
        np.ravel(getattr(model, "n_iter_", 0)),
        [float(getattr(model, "fit_status_", -1))],
    ]
    return np.concatenate([np.asarray(part, float) for part in parts])


def plain(model: Any, X: Any, y: Any, weight: Any) -> Any:
    """One fit."""
    given = {} if weight is None else {"sample_weight": weight}
    return facts(clone(model).fit(X, y, **given), X)


def cases() -> Iterator[tuple[str, Callable[[], Any]]]:
    """Names, and functions that return numbers."""
    rng = np.random.default_rng(0)
    for name, model in {**CLASSIFIERS, **REGRESSORS}.items():
        for n, n_classes in ((150, 2), (150, 4), (1300, 2), (2200, 3)):
            weight = rng.integers(0, 3, n).astype(float)
            if n_classes > 2 and (name in REGRESSORS or name.startswith("Multivariate")):
                continue
            if n > 2000 and not name.startswith(("SVC", "Sparse-pursuit", "Reduced-smooth", "Lin")):
                continue
            X, y = data(n, n_classes)
            if name in REGRESSORS:
                y = X[:, 0] + np.sin(X[:, 1])
            sparse = sp.csr_matrix(X * (np.abs(X) > 0.5))
            for form, rows in (("dense", X), ("float32", X.astype(np.float32)), ("csr", sparse)):
                for weighted in (False, True):
                    if (n > 1000 and form != "dense") or (weighted and name.startswith(UNWEIGHTED)):
                        continue
                    key = f"{name}/{n}/{n_classes}/{form}/{'weights' if weighted else 'plain'}"
                    w = weight if weighted else None
                    yield key, lambda m=model, X=rows, y=y, w=w: plain(m, X, y, w)
    yield from others()


def others() -> Iterator[tuple[str, Callable[[], Any]]]:
    """Precomputed kernels, sequences, warm starts, streams, and what is made of fitted models."""
    for n_classes in (2, 4):
        X, y = data(300, n_classes)
        K = rbf_kernel(X, gamma=0.3)
        for name, model in (
            ("SVC", s.SVC(kernel="precomputed")),
            ("LowRank", s.LowRankSVC(kernel="precomputed", random_state=0)),
            ("CoreVector", s.CoreVectorSVC(kernel="precomputed", eps=1e-4, random_state=0)),
            ("Online", s.OnlineSVC(kernel="precomputed", random_state=0)),
            ("Cross", s.CrossTraining(s.SVC(kernel="precomputed"), random_state=0)),
        ):
            yield f"precomputed/{name}/{n_classes}", lambda m=model, y=y, K=K: facts(m.fit(K, y), K)
        for name, model in (
            ("SVC", s.SVC(warm_start=True)),
            ("Linear", s.LinearSVC(warm_start=True)),
            ("Sparse", s.SparseSVC(6, warm_start=True, random_state=0, basis="pursuit")),
            (
                "Sparse-hinge",
                s.SparseSVC(6, loss="hinge", warm_start=True, random_state=0, basis="pursuit"),
            ),
        ):
            yield f"warm/{name}/{n_classes}", lambda m=model, X=X, y=y: warm(m, X, y)
        for name, model in (
            ("plain", s.OnlineSVC(random_state=0)),
            ("weights", s.OnlineSVC(class_weight={0: 2.0, 1: 1.0}, random_state=0)),
            ("budget", s.OnlineSVC(max_support=30, decay=0.9, random_state=0)),
        ):
            yield f"stream/{name}/{n_classes}", lambda m=model, X=X, y=y: stream(m, X, y)
        for name, model in (
            ("SVC", s.SVC()),
            ("Reduced", s.ReducedSVC(40, random_state=0)),
            ("Sparse", s.SparseSVC(20, random_state=0, basis="pursuit")),
        ):
            yield f"compress/{name}/{n_classes}", lambda m=model, X=X, y=y: compressed(m, X, y)
        yield f"truncated/{n_classes}", lambda X=X, y=y: truncated(X, y)
        yield f"certify/{n_classes}", lambda X=X, y=y: certified(X, y)
        for name, model in (
            ("SVC", s.SVC()),
            ("NuSVC", s.NuSVC(nu=0.3)),
            ("Sparse", s.SparseSVC(6, random_state=0, basis="pursuit")),
            ("Reduced", s.ReducedSVC(random_state=0)),
            ("LowRank", s.LowRankSVC(random_state=0)),
            ("Online", s.OnlineSVC(random_state=0)),
            ("CoreVector", s.CoreVectorSVC(random_state=0)),
            ("Linear", s.LinearSVC()),
            ("CrammerSinger", s.CrammerSingerSVC(random_state=0)),
            ("Cross", s.CrossTraining(random_state=0)),
        ):
            yield f"saved/{name}/{n_classes}", lambda m=model, X=X, y=y: saved(m.fit(X, y), X)
    X, y = data(500, 2)
    for name, model in (
        ("SVR", s.SVR(warm_start=True)),
        ("OneClass", s.OneClassSVM(warm_start=True)),
    ):
        yield f"warm/{name}", lambda m=model: warm(m, X, X[:, 0])
    yield "compress/SVR", lambda: compressed(s.SVR(), X, X[:, 0])
    yield "precomputed/SVR", lambda: plain(s.SVR(kernel="precomputed"), X @ X.T, X[:, 0], None)
    rng = np.random.default_rng(0)
    Y = [(np.arange(10) + start) % 2 for start in rng.integers(2, size=20)]
    S = [label[:, None] + rng.normal(scale=0.7, size=(10, 1)) for label in Y]
    for name, model in (
        ("rbf", s.ChainSVM(random_state=0)),
        ("linear", s.ChainSVM(kernel="linear")),
        ("sampled", s.ChainSVM(space="sampled", sample_size=10, random_state=0)),
        ("subspace", s.ChainSVM(space="subspace", n_basis=8, random_state=0)),
    ):
        for weight in (None, np.arange(20.0) % 3):
            key = f"chain/{name}/{'plain' if weight is None else 'weights'}"
            yield key, lambda m=model, w=weight: facts(clone(m).fit(S, Y, w), S)
    big, label = data(12_000, 2)
    for name, model in (
        ("Sparse", s.SparseSVC(20, random_state=0, basis="pursuit")),
        ("Sparse-hinge", s.SparseSVC(10, loss="hinge", random_state=0, basis="pursuit")),
        ("SVC-jobs", s.SVC(n_jobs=2)),
        ("Structural", s.StructuralSVM(Multiclass(), tol=0.01, random_state=0)),
    ):
        yield f"large/{name}", lambda m=model: facts(m.fit(big, label), big)


def warm(model: Any, X: Any, y: Any) -> Any:
    """A fit, and one that goes on from it with another C or nu."""
    first = facts(model.fit(X, y), X)
    model.set_params(**({"nu": 0.4} if hasattr(model, "nu") else {"C": 2.0}))
    if hasattr(model, "n_basis"):
        model.set_params(n_basis=9)
    return np.concatenate([first, facts(model.fit(X, y), X)])


def stream(model: Any, X: Any, y: Any) -> Any:
    """Three batches, the last after a round trip through a file."""
    for start in (0, 100):
        model.partial_fit(X[start : start + 100], y[start : start + 100], classes=np.unique(y))
    first = facts(model, X)
    again = through_file(model).partial_fit(X[200:], y[200:])
    return np.concatenate([first, facts(again, X), facts(model.fit(X, y).partial_fit(X, y), X)])


def compressed(model: Any, X: Any, y: Any) -> Any:
    """To ten vectors, with data and without."""
    model.fit(X, y)
    small = s.compress(model, 10, random_state=0)
    return np.concatenate([facts(small, X), facts(s.compress(model, 10, X, y, random_state=0), X)])


def truncated(X: Any, y: Any) -> Any:
    """Smaller models of a path."""
    model = s.SparseSVC(12, random_state=0, basis="pursuit").fit(X, y)
    sizes = [[p.n_basis, p.objective, p.gap, p.training_score] for p in model.path_]
    return np.concatenate([facts(model.truncated(5), X), np.ravel(np.asarray(sizes, float))])


def certified(X: Any, y: Any) -> Any:
    """Distance from the exact model."""
    c = s.SparseSVC(12, random_state=0, basis="pursuit").fit(X, y).certify(X, y)
    return np.array([c.objective, c.violation, c.gap])


def through_file(model: Any) -> Any:
    """The model as it comes back from a file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.slim"
        s.save(model, path)
        return s.load(path)


def saved(model: Any, X: Any) -> Any:
    """Before and after a round trip."""
    return np.concatenate([facts(model, X), facts(through_file(model), X)])


@cache  # once a process: the data of all cases takes longer than most fits
def named() -> dict[str, Callable[[], Any]]:
    """All cases."""
    return dict(cases())


def made(key: str) -> tuple[str, Any, float]:
    """The numbers of one case; an error is one number that no other case has."""
    function = named()[key]
    begin = time.perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            out = function()
        except Exception as error:
            print(f"{key}: {type(error).__name__}: {error}", file=sys.stderr)
            out = np.array([-1.0, np.inf])
    return key, np.append(out, len(caught)), time.perf_counter() - begin


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("what", choices=("save", "check"))
    parser.add_argument("file", type=Path)
    parser.add_argument("--only", default="", help="a regular expression that names must contain")
    parser.add_argument("--rtol", type=float, default=0.0)
    parser.add_argument("--workers", type=int, default=2)
    given = parser.parse_args()
    kept = np.load(given.file) if given.what == "check" else None
    keys = [key for key, _ in cases() if re.search(given.only, key)]
    with ProcessPoolExecutor(given.workers, get_context("spawn")) as pool:
        parts = list(pool.map(made, keys))
    found = {key: values for key, values, _ in parts}
    if kept is None:
        with given.file.open("wb") as file:  # by its name NumPy would add .npz to it
            np.savez_compressed(file, **found)
        slow = sorted(parts, key=lambda part: -part[2])[:5]
        print(
            f"{len(found)} cases kept; slowest: {', '.join(f'{k} {t:.1f} s' for k, _, t in slow)}"
        )
        return 0
    wrong = []
    for key in kept.files:
        if not re.search(given.only, key):
            continue
        new, old = found.get(key), kept[key]
        same = new is not None and new.shape == old.shape
        if not (same and np.allclose(new, old, rtol=given.rtol, atol=0.0, equal_nan=True)):
            far = float(np.nanmax(np.abs(new - old))) if same else np.nan
            wrong.append(f"{key}: " + (f"differs by up to {far:.3g}" if same else "other numbers"))
    fresh = [key for key in found if key not in kept.files]
    print(
        f"{len(found) - len(wrong) - len(fresh)} of {len(found)} cases are the same, "
        f"{len(fresh)} are new",
        *wrong,
        sep="\n  ",
    )
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
