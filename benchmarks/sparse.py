"""Sparse models by descent at their default settings, beside the exact SVM and gradient boosting.

    SLIMSVM_BASE=CHECKOUT python -m benchmarks run sparse --full [--only letter/]
    python -m benchmarks tables sparse

The same C and gamma for all on a set; three seeds; all cores for both. "base" is the exact SVC of
another checkout, whose folder the environment variable SLIMSVM_BASE names (commit 2ce823a, version
0.1.0), in a process of its own; "exact" is that of this one. Regression: standardised features,
70 % of the rows for training; "exact" is the best of four SVRs by a third of these.
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

from benchmarks.data import load, web_pages
from benchmarks.runner import Cell, forget_peak, memory_mb

RESULTS = Path(__file__).parent / "results" / "sparse.json"
SEEDS = 3


def _plain(name: str) -> Any:
    return load(name)


def _dense(name: str) -> Any:
    X, y, X_test, y_test = load(name)
    return X.toarray(), y, X_test.toarray(), y_test


def _web_pages() -> Any:
    X, y = web_pages()
    n = -(-len(y) * 4 // 5)  # the split of the file
    return X[:n].toarray(), y[:n], X[n:].toarray(), y[n:]


def _mnist(n: int, halves: bool) -> Any:
    X, y, X_test, y_test = load("mnist")
    return (X[:n], y[:n] >= 5, X_test, y_test >= 5) if halves else (X[:n], y[:n], X_test, y_test)


def _covtype(n: int | None) -> Any:
    X, y, X_test, y_test = load("covtype")
    rows = np.random.RandomState(0).permutation(len(X))[:n]
    return X[rows], y[rows], X_test, y_test


def _checkers() -> Any:
    from slimsvm.datasets import checkers

    X, y = checkers(1_000_000, seed=0)
    return X.astype(np.float32), y, *checkers(100_000, seed=1)


def _numbers(name: str) -> Any:
    from sklearn.preprocessing import StandardScaler

    from benchmarks.data import folder

    z = np.load(folder() / f"{name}.npz")
    X, y = z["X"].astype(np.float64), z["y"].astype(np.float64)
    order = np.random.RandomState(0).permutation(len(X))
    train, test = order[: len(X) * 7 // 10], order[len(X) * 7 // 10 :]
    scaler = StandardScaler().fit(X[train])
    return scaler.transform(X[train]), y[train], scaler.transform(X[test]), y[test]


# name: (text, C, gamma, how to load, the models: parameters of SparseSVC by their name)
SETS: dict[str, tuple[str, float, float, Any, dict[str, dict[str, Any]]]] = {
    "letter": ("letter", 16, 4, lambda: _plain("letter"),
               {"64 kB": {"max_bytes": 64_000}, "32 kB": {"max_bytes": 32_000}}),
    "covtype50": ("covtype, 50,000 rows", 1, 8, lambda: _covtype(50_000),
                  {"500": {"n_basis": 500}}),
    "covtype": ("covtype, all rows", 1, 8, lambda: _covtype(None), {"2000": {"n_basis": 2000}}),
    "ijcnn1": ("ijcnn1", 2, 2, lambda: _plain("ijcnn1"),
               {"50": {"n_basis": 50}, "200": {"n_basis": 200},
                "50, no metric": {"n_basis": 50, "metric": None},
                "200, no metric": {"n_basis": 200, "metric": None}}),
    "mnist_halves": ("mnist {0..4} vs {5..9}", 10, 1 / 32, lambda: _mnist(60_000, True),
                     {"200": {"n_basis": 200}}),
    "mnist": ("mnist, ten digits", 10, 1 / 32, lambda: _mnist(60_000, False),
              {"400": {"n_basis": 400}}),
    "a9a": ("a9a", 1, 0.05, lambda: _dense("a9a"), {"10": {"n_basis": 10}}),
    "satimage": ("satimage", 16, 1, lambda: _plain("satimage"), {"200": {"n_basis": 200}}),
    "shuttle": ("shuttle", 2048, 8, lambda: _plain("shuttle"), {"100": {"n_basis": 100}}),
    "dna": ("dna", 4, 0.02, lambda: _plain("dna"), {"100": {"n_basis": 100}}),
    "w8a": ("w8a", 1, 0.05, _web_pages, {"50": {"n_basis": 50}}),
    "rcv1": ("rcv1", 1, 1, lambda: _plain("rcv1"), {"100": {"n_basis": 100}}),
    "20news": ("20news", 10, 1, lambda: _plain("20news"), {"300": {"n_basis": 300}}),
    "splice": ("splice", 1, 0.01, lambda: _plain("splice"), {"100": {"n_basis": 100}}),
    "banana": ("banana", 1, 1, lambda: _plain("banana"), {"50": {"n_basis": 50}}),
    "waveform": ("waveform", 1, 0.05, lambda: _plain("waveform"), {"50": {"n_basis": 50}}),
    "checkers": ("checkers, 1,000,000 rows", 1, 20, _checkers, {"100": {"n_basis": 100}}),
}  # fmt: skip
NUMBERS = ("cadata", "abalone", "cpusmall")
NO_EXACT = ("covtype", "checkers")  # hours
# dense ones: gradient boosting takes no sparse rows
BOOSTED = (*(name for name in SETS if name not in ("rcv1", "20news")), *NUMBERS)


def _measured(make: Any, X: Any, y: Any, X_test: Any, y_test: Any) -> dict[str, Any]:
    """Warm up on a few rows, fit, and measure."""
    warnings.simplefilter("ignore")
    few = np.random.RandomState(0).permutation(X.shape[0])[:3000]
    make().fit(X[few], y[few])
    forget_peak()
    before, begin, cpu = memory_mb("VmRSS"), time.perf_counter(), time.process_time()
    model = make().fit(X, y)
    seconds, cpu = time.perf_counter() - begin, time.process_time() - cpu
    found = {"seconds": seconds, "cpu_seconds": cpu, "peak_mb": memory_mb("VmHWM") - before}
    return found | {"model": model, "accuracy": float(model.score(X_test, y_test))}


def ours(name: str, which: str, seed: str) -> dict[str, Any]:
    """A sparse model."""
    from slimsvm import SparseSVC, SparseSVR

    common = {"n_jobs": -1, "random_state": int(seed)}
    if name in NUMBERS:
        found = _measured(lambda: SparseSVR(100, **common), *_numbers(name))
    else:
        _, C, gamma, get, models = SETS[name]
        common |= {"C": C, "gamma": gamma, **models[which]}
        found = _measured(lambda: SparseSVC(**common), *get())
    model = found.pop("model")
    return found | {"n_basis": int(model.n_basis_), "bytes": int(model.model_nbytes_)}


def exact(name: str) -> dict[str, Any]:
    """The exact SVM of the package that is imported."""
    from slimsvm import SVC, SVR

    if name not in NUMBERS:
        _, C, gamma, get, _ = SETS[name]
        make = lambda: SVC(C=C, gamma=gamma, cache_size=2000, n_jobs=-1)  # noqa: E731
        found = _measured(make, *get())
    else:
        X, y, X_test, y_test = _numbers(name)
        part, spread = len(X) * 2 // 3, float(y.std())
        settings = [
            {"C": C * spread, "epsilon": 0.1 * spread, "gamma": g / X.shape[1]}
            for C in (1.0, 10.0)
            for g in (0.5, 2.0)
        ]

        def score(p: dict[str, float]) -> float:
            return SVR(**p, n_jobs=-1).fit(X[:part], y[:part]).score(X[part:], y[part:])

        best = max(settings, key=score)
        found = _measured(lambda: SVR(**best, n_jobs=-1), X, y, X_test, y_test)
    return found | {"n_basis": int(np.sum(found.pop("model").n_support_))}


def base(name: str) -> dict[str, Any]:
    """The same of the checkout that SLIMSVM_BASE names."""
    folder = os.environ.get("SLIMSVM_BASE")
    if not folder:
        raise SystemExit("Set SLIMSVM_BASE to a checkout of commit 2ce823a.")
    root = Path(__file__).resolve().parent.parent
    path = os.pathsep.join([str(Path(folder) / "src"), str(root)])
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.sparse", name],
        env=os.environ | {"PYTHONPATH": path},
        cwd=root,
        check=True,
        capture_output=True,
        text=True,
    )
    return dict(json.loads(done.stdout.splitlines()[-1]))


def boosted(name: str) -> dict[str, Any]:
    """HistGradientBoosting at its defaults."""
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

    numbers = name in NUMBERS
    kind: Any = HistGradientBoostingRegressor if numbers else HistGradientBoostingClassifier
    found = _measured(
        lambda: kind(random_state=0), *(_numbers(name) if numbers else SETS[name][3]())
    )
    found.pop("model")
    return found


def cells(quick: bool) -> list[Cell]:
    """All there is to measure."""
    found = []
    for name in ("satimage", "splice") if quick else (*SETS, *NUMBERS):
        models = {"100": {}} if name in NUMBERS else SETS[name][4]
        for which in models:
            for seed in range(SEEDS):
                key, words = f"{name}/{which}/{seed}", (name, which, str(seed))
                found.append(Cell(key, "ours", words, seconds=900, touch=True))
        if name not in NO_EXACT:
            found.append(Cell(f"{name}/exact", "exact", (name,), seconds=900, touch=True))
            if not quick:
                found.append(Cell(f"{name}/base", "base", (name,), seconds=900, touch=True))
        if name in BOOSTED:
            found.append(Cell(f"{name}/boosted", "boosted", (name,), seconds=900))
    return found


def table() -> str:
    """Accuracy (R^2) and seconds of all."""
    stored = json.loads(RESULTS.read_text())["cells"] if RESULTS.exists() else {}
    lines = [
        "| set | model | accuracy | kB | seconds | exact: accuracy, vectors, seconds (base, now) | "
        "gradient boosting |",
        "|---|---|---|---|---|---|---|",
    ]

    def value(key: str, name: str) -> float | None:
        return stored.get(key, {}).get(name)

    for name in (*SETS, *NUMBERS):
        text, models = (name, ["100"]) if name in NUMBERS else (SETS[name][0], list(SETS[name][4]))
        for which in models:
            keys = [f"{name}/{which}/{seed}" for seed in range(SEEDS)]
            if any(value(key, "accuracy") is None for key in keys):
                continue
            mean = {
                what: np.mean([value(key, what) for key in keys])
                for what in ("accuracy", "bytes", "seconds")
            }
            base_s, now = value(f"{name}/base", "seconds"), value(f"{name}/exact", "seconds")
            score, n = value(f"{name}/exact", "accuracy"), value(f"{name}/exact", "n_basis")
            both = "-"
            if score is not None and n is not None and now is not None:
                before = "-" if base_s is None else f"{base_s:.2f}"
                both = f"{100 * score:.2f}, {int(n):,}, {before}, {now:.2f}"
            boosting = value(f"{name}/boosted", "accuracy")
            trees = "-" if boosting is None else f"{100 * boosting:.2f}"
            lines.append(
                f"| {text} | {which} | {100 * mean['accuracy']:.2f} | {mean['bytes'] / 1000:.0f} | "
                f"{mean['seconds']:.2f} | {both} | {trees} |"
            )
    return "\n".join([*lines, "", _beside_boosting(stored)])


def _beside_boosting(stored: dict[str, Any]) -> str:
    """On how many sets the best of our models there is ahead of gradient boosting."""
    ahead, behind = [], []
    for name in BOOSTED:
        models = ["100"] if name in NUMBERS else SETS[name][4]
        keys = [[f"{name}/{which}/{seed}" for seed in range(SEEDS)] for which in models]
        found = [
            np.mean([stored[key]["accuracy"] for key in own])
            for own in keys
            if all("accuracy" in stored.get(key, {}) for key in own)
        ]
        trees = stored.get(f"{name}/boosted", {}).get("accuracy")
        if found and trees is not None:
            text = name if name in NUMBERS else SETS[name][0]
            (ahead if max(found) > trees else behind).append(text)
    of = len(ahead) + len(behind)
    last = f"; not on {'; '.join(behind)}" if behind else ""
    return f"Ahead of gradient boosting on {len(ahead)} of {of} sets{last}."


TABLES = {"sparse": table}

if __name__ == "__main__":
    print(json.dumps(exact(sys.argv[1])))
