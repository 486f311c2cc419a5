"""Searches that share their work, against scikit-learn's GridSearchCV around SVC.

    SLIMSVM_BASE=CHECKOUT python -m benchmarks run tuning --full [--only satimage/]
    python -m benchmarks tables tuning

Two jobs on both sides, five folds, loops compiled before. "base" is scikit-learn's search around
the SVC of another checkout, whose folder the environment variable SLIMSVM_BASE names (commit
2ce823a), in a process of its own; "plain" is the same around the SVC of this one; "grid" is
``slimsvm.GridSearchCV``, "race" ``SVCCV`` with the same grid, the model on all rows included.
Where the plain searches take hours, one fold of the five is searched by "base" and "plain", and
their seconds are five times those. "defaults" is ``SVCCV()`` beside the best of a 10 x 10 grid on
test rows, and its probabilities beside CalibratedClassifierCV.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from sklearn import model_selection
from sklearn.datasets import make_classification
from sklearn.metrics import log_loss

from benchmarks.data import folder, load, web_pages
from benchmarks.runner import Cell

RESULTS = Path(__file__).parent / "results" / "tuning.json"
JOBS, FOLDS = 2, 5
CS = [1, 4, 16, 64, 256, 1024]
# name: (text, set, rows, log2 of the first of eight gammas, wanted of grid and race)
SETS: dict[str, tuple[str, str, int | None, int, float, float]] = {
    "satimage": ("satimage", "satimage", None, -5, 8, 16),
    "mnist4": ("mnist halves, 4,000 rows", "mnist", 4000, -9, 15, 30),
    "mnist20": ("mnist halves, 20,000 rows", "mnist", 20_000, -9, 5, 10),
    "a9a6": ("a9a, 6,000 rows", "a9a", 6000, -8, 6, 12),
    "a9a": ("a9a, all rows", "a9a", None, -8, 2, 5),
    "ijcnn6": ("ijcnn1, 6,000 rows", "ijcnn1", 6000, -5, 3.5, 7),
    "ijcnn1": ("ijcnn1, all rows", "ijcnn1", None, -5, 2, 5),
    "letter": ("letter", "letter", None, -5, 6, 12),
    "cadata": ("SVR cadata, 5,000 rows", "cadata", 5000, -4, 5, 10),
}
ONE_FOLD = ("mnist20", "a9a", "ijcnn1", "letter", "cadata")  # of the plain searches
DEFAULTS = ("satimage", "letter", "ijcnn1", "a9a", "dna", "splice", "banana", "waveform", "shuttle")
DEFAULTS += ("w8a", "mnist", "covtype")
MOST_TRAIN, MOST_TEST = 5000, 10_000  # of the defaults: the exhaustive grid takes its time


def rows(name: str) -> tuple[Any, Any, dict[str, list[float]]]:
    """Training rows, labels or targets, and the grid."""
    _, which, n, first, _, _ = SETS[name]
    grid: dict[str, list[float]] = {"C": CS, "gamma": [2.0**k for k in range(first, first + 8)]}
    if which == "cadata":
        z = np.load(folder() / "cadata.npz")
        X, y = z["X"].astype(np.float64), z["y"].astype(np.float64)
        X, y = (X - X.mean(axis=0)) / X.std(axis=0), (y - y.mean()) / y.std()
        grid = {"C": CS[:4], "gamma": grid["gamma"][::2], "epsilon": [0.03, 0.1, 0.3]}
    else:
        X, y, _, _ = load(which)
    chosen = np.random.RandomState(0).permutation(X.shape[0])[:n]
    X, y = X[chosen], y[chosen]
    X = X.toarray() if hasattr(X, "toarray") else X
    return X, (y >= 5).astype(int) if which == "mnist" else y, grid


def _seconds(run: Any) -> tuple[Any, dict[str, float]]:
    wall, cpu = time.perf_counter(), time.process_time()
    found = run()
    used = {"seconds": time.perf_counter() - wall, "cpu_seconds": time.process_time() - cpu}
    return found, used


def search(name: str, what: str) -> dict[str, Any]:
    """One search by the package that is imported."""
    import slimsvm

    warnings.simplefilter("ignore")
    X, y, grid = rows(name)
    numbers = name == "cadata"
    times = FOLDS if what == "plain" and name in ONE_FOLD else 1

    def run(X: Any, y: Any, grid: dict[str, list[float]]) -> Any:
        if what == "race":
            axes = {f"{key}s": values for key, values in grid.items()}
            kind = slimsvm.SVRCV if numbers else slimsvm.SVCCV
            return kind(**axes, n_jobs=JOBS).fit(X, y)
        kind = slimsvm.GridSearchCV if what == "grid" else model_selection.GridSearchCV
        estimator = slimsvm.SVR() if numbers else slimsvm.SVC()
        cv: Any = FOLDS
        if times > 1:
            cv = list(model_selection.check_cv(FOLDS, y, classifier=not numbers).split(X, y))[:1]
        return kind(estimator, grid, cv=cv, n_jobs=JOBS, refit=False).fit(X, y)

    few = min(2500, len(y) // 2)
    run(X[:few], y[:few], {key: values[:2] for key, values in grid.items()})
    found, used = _seconds(lambda: run(X, y, grid))
    known = {"score": float(found.best_score_), "best": found.best_params_}
    if what != "race":
        known["scores"] = np.asarray(found.cv_results_["mean_test_score"], float).tolist()
        known["first_fold"] = np.asarray(found.cv_results_["split0_test_score"], float).tolist()
    return {key: times * value for key, value in used.items()} | known | {"times": times}


def base(name: str) -> dict[str, Any]:
    """The plain search of the checkout that SLIMSVM_BASE names."""
    other = os.environ.get("SLIMSVM_BASE")
    if not other:
        raise SystemExit("Set SLIMSVM_BASE to a checkout of commit 2ce823a.")
    root = Path(__file__).resolve().parent.parent
    path = os.pathsep.join([str(Path(other) / "src"), str(root)])
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.tuning", name],
        env=os.environ | {"PYTHONPATH": path},
        cwd=root,
        check=True,
        capture_output=True,
        text=True,
    )
    return dict(json.loads(done.stdout.splitlines()[-1]))


def made(what: str) -> dict[str, Any]:
    """20,000 generated rows, 10 x 10 points, probabilities included; and one exact fit."""
    from slimsvm import SVC, SVCCV

    X, y = make_classification(25_000, 20, n_informative=10, n_clusters_per_class=4, random_state=0)
    Cs, gammas = 4.0 ** np.arange(-2, 8), 2.0 ** np.arange(-9, 1)
    SVCCV(Cs[:2], gammas[:2], search=what, n_jobs=JOBS).fit(X[:3000], y[:3000])
    model = SVCCV(Cs, gammas, search=what, n_jobs=JOBS)
    found, used = _seconds(lambda: model.fit(X[:20_000], y[:20_000]))
    _, single = _seconds(
        lambda: SVC(C=found.C_, gamma=found.gamma_, n_jobs=JOBS).fit(X[:20_000], y[:20_000])
    )
    own = {"single_seconds": single["seconds"], "accuracy": found.score(X[20_000:], y[20_000:])}
    loss = log_loss(y[20_000:], found.predict_proba(X[20_000:]))
    return used | own | {"log_loss": loss, "best": found.best_params_}


def _brier(y: Any, p: Any, classes: Any) -> float:
    return float(np.mean(np.sum((p - (np.asarray(y)[:, None] == classes)) ** 2, axis=1)))


def defaults(name: str) -> dict[str, Any]:
    """``SVCCV()`` with no arguments, on standardised features."""
    from sklearn.calibration import CalibratedClassifierCV
    from sklearn.preprocessing import StandardScaler

    from slimsvm import SVC, SVCCV, GridSearchCV

    warnings.simplefilter("ignore")
    if name == "w8a":
        X, y = web_pages()
        n = -(-len(y) * 4 // 5)  # the split of the file
        X, y, X_test, y_test = X[:n], y[:n], X[n:], y[n:]
    else:
        X, y, X_test, y_test = load(name)
    rng = np.random.RandomState(0)
    train, test = (rng.permutation(len(z))[:n] for z, n in ((y, MOST_TRAIN), (y_test, MOST_TEST)))
    test = test[np.isin(y_test[test], y[train])]  # shuttle has classes of a few rows
    X, y, X_test, y_test = X[train], y[train], X_test[test], y_test[test]
    X, X_test = (z.toarray() if hasattr(z, "toarray") else z for z in (X, X_test))
    scaler = StandardScaler().fit(X)
    X, X_test = scaler.transform(X), scaler.transform(X_test)
    SVCCV(n_jobs=JOBS).fit(X[:1500], y[:1500])
    model, used = _seconds(lambda: SVCCV(n_jobs=JOBS).fit(X, y))
    best = {"C": model.C_, "gamma": model.gamma_}
    _, single = _seconds(lambda: SVC(**best, n_jobs=JOBS).fit(X, y))
    middle = 1.0 / X.shape[1]
    grid = {"C": 4.0 ** np.arange(-3, 7), "gamma": middle * 4.0 ** np.arange(-6, 4)}
    whole = GridSearchCV(SVC(), grid, cv=FOLDS, n_jobs=JOBS).fit(X, y)
    other = CalibratedClassifierCV(SVC(**best), ensemble=False).fit(X, y)
    p, q = model.predict_proba(X_test), other.predict_proba(X_test)
    return used | {
        "fits": used["seconds"] / single["seconds"],
        "accuracy": float(model.score(X_test, y_test)),
        "grid_accuracy": float(whole.score(X_test, y_test)),
        "log_loss": float(log_loss(y_test, p, labels=model.classes_)),
        "calibrated_log_loss": float(log_loss(y_test, q, labels=model.classes_)),
        "brier": _brier(y_test, p, model.classes_),
        "calibrated_brier": _brier(y_test, q, model.classes_),
        "n_classes": len(model.classes_),
        "best": best,
    }


def cells(quick: bool) -> list[Cell]:
    """All there is to measure."""
    if quick:
        return [Cell(f"satimage/{what}", "search", ("satimage", what)) for what in ("grid", "race")]
    found = []
    for name in SETS:
        for what in ("grid", "race", "plain"):
            found.append(Cell(f"{name}/{what}", "search", (name, what), seconds=3600, touch=True))
        found.append(Cell(f"{name}/base", "base", (name,), seconds=3600, touch=True))
    found += [Cell(f"made/{what}", "made", (what,), seconds=900) for what in ("race", "grid")]
    return found + [Cell(f"defaults/{n}", "defaults", (n,), seconds=1800) for n in DEFAULTS]


def _stored() -> dict[str, Any]:
    return dict(json.loads(RESULTS.read_text())["cells"]) if RESULTS.exists() else {}


def table() -> str:
    """Seconds and ratios of the searches."""
    stored = _stored()
    lines = [
        "| set | base, s | plain now, s | grid, s | race, s | grid: ratio (wanted) | race: ratio "
        "(wanted) | largest difference of mean scores | same choice |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for name, (text, _, _, _, grid, race) in SETS.items():
        own = {what: stored.get(f"{name}/{what}", {}) for what in ("base", "plain", "grid", "race")}
        if "seconds" not in own["grid"]:
            continue
        used = {what: cell.get("seconds") for what, cell in own.items()}
        shown = ["-" if s is None else f"{s:.2f}" for s in used.values()]
        ratios = [
            "-"
            if used["base"] is None or used[what] is None
            else f"{used['base'] / used[what]:.1f} ({wanted:g})"
            for what, wanted in (("grid", grid), ("race", race))
        ]
        apart, same = "-", "-"
        against = own["base"] if "scores" in own["base"] else own["plain"]
        if "scores" in against:
            which = "first_fold" if against.get("times", 1) > 1 else "scores"
            apart = f"{np.abs(np.subtract(own['grid'][which], against[which])).max():.4f}"
            if which == "scores":
                same = "yes" if own["grid"]["best"] == against["best"] else "no"
            else:
                apart += " (one fold)"
        lines.append(f"| {text} | {' | '.join(shown)} | {' | '.join(ratios)} | {apart} | {same} |")
    return "\n".join(lines)


def table_of_defaults() -> str:
    """``SVCCV()`` on twelve sets, and 20,000 generated rows."""
    stored = _stored()
    lines = [
        "| set | accuracy | 10 x 10 grid | single fits | log loss (CalibratedClassifierCV) | "
        "Brier |",
        "|---|---|---|---|---|---|",
    ]
    for name in DEFAULTS:
        cell = stored.get(f"defaults/{name}", {})
        if "fits" not in cell:
            continue
        lines.append(
            f"| {name} | {100 * cell['accuracy']:.2f} | {100 * cell['grid_accuracy']:.2f} | "
            f"{cell['fits']:.1f} | {cell['log_loss']:.4f} ({cell['calibrated_log_loss']:.4f}) | "
            f"{cell['brier']:.4f} ({cell['calibrated_brier']:.4f}) |"
        )
    for what in ("race", "grid"):
        cell = stored.get(f"made/{what}", {})
        if "seconds" in cell:
            lines.append(
                f"| generated, 20,000 rows, 10 x 10, {what}: {cell['seconds']:.1f} s | "
                f"{100 * cell['accuracy']:.2f} | | {cell['seconds'] / cell['single_seconds']:.1f} "
                f"| {cell['log_loss']:.4f} | |"
            )
    return "\n".join(lines)


TABLES = {"tuning": table, "tuning-defaults": table_of_defaults}

if __name__ == "__main__":
    print(json.dumps(search(sys.argv[1], "plain")))
