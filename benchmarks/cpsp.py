"""Sparse models: accuracy, objective and time against the number of basis vectors.

Beside them are the exact solution and approximations.

    python -m benchmarks run cpsp --full    everything, into benchmarks/results/cpsp.json
    python -m benchmarks run cpsp --full --only ijcnn1/refined checkers    a part of it
    python -m benchmarks tables cpsp

Joachims & Yu (2009), "Sparse kernel SVMs via cutting-plane training", and what goes beyond it.
Every fit has a process of its own: load, a warm-up fit on the first rows, then the fit that counts.
Same C and gamma for all methods on a set.
"""

from __future__ import annotations

import json
import os
import time
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.data import dense, load
from benchmarks.runner import Cell, forget_peak, memory_mb

RESULTS = Path(__file__).parent / "results" / "cpsp.json"
SIZES = (10, 50, 200)
# the other sets take minutes for each seed
N_SEEDS, WITH_SEEDS = 6, ("a9a", "ijcnn1", "mnist_zero")
SCALING = (10_000, 30_000, 100_000, 300_000, 1_000_000)


def _plain(name: str) -> Any:
    X, y, X_test, y_test = load(name)
    return dense(X).astype(np.float32), y, dense(X_test).astype(np.float32), y_test


def _mnist(positive: Any) -> Any:
    X, y, X_test, y_test = load("mnist")
    return (
        X.astype(np.float32),
        positive(y).astype(int),
        X_test.astype(np.float32),
        positive(y_test).astype(int),
    )


def _rcv1() -> Any:
    X, y, X_test, y_test = load("rcv1")
    return X.astype(np.float32), y, X_test.astype(np.float32), y_test


# name: (text, C, gamma, how to load, size that must be within half a point of the exact solution)
SETS: dict[str, tuple[str, float, float, Any, int]] = {
    "a9a": ("a9a", 1, 0.05, lambda: _plain("a9a"), 3),
    "ijcnn1": ("ijcnn1", 2, 2, lambda: _plain("ijcnn1"), 50),
    "mnist_halves": ("mnist {0..4} vs {5..9}", 10, 1 / 32, lambda: _mnist(lambda y: y >= 5), 60),
    "mnist_zero": ("mnist 0 vs rest", 10, 1 / 32, lambda: _mnist(lambda y: y == 0), 20),
    "rcv1": ("rcv1 CCAT", 1, 1, _rcv1, 100),
}
# what others need at one size on one thread: (set, k): accuracy in percent, CPU seconds. refined: a
# prototype that refined from random rows; cpsp: the program of the paper's authors
OTHERS: dict[str, dict[tuple[str, int], tuple[float, float]]] = {
    "refined": {
        ("a9a", 10): (85.2, 1.2),
        ("ijcnn1", 10): (95.9, 1.1),
        ("ijcnn1", 50): (98.5, 2),
        ("ijcnn1", 200): (99.0, 11),
        ("mnist_halves", 50): (98.2, 11),
        ("mnist_halves", 100): (98.5, 43),
    },
    "cpsp": {
        ("a9a", 10): (84.6, 1.5),
        ("a9a", 50): (84.8, 1.7),
        ("a9a", 200): (84.8, 6.6),
        ("ijcnn1", 10): (90.1, 0.9),
        ("ijcnn1", 50): (91.8, 3.9),
        ("ijcnn1", 200): (96.3, 12.5),
        ("mnist_halves", 10): (86.7, 9),
        ("mnist_halves", 50): (94.1, 17),
        ("mnist_halves", 200): (97.1, 43),
    },
}
TOLERANCES = {"refined": (0.001, 0.004, 0.008), "cpsp": (0.001,)}  # the first is the default
OURS = ("refined", "cpsp", "cpsp_rows", "nystrom")
PEERS = ("sklearn_nystroem", "sklearn_fourier")


def _make(method: str, C: float, gamma: float, k: int) -> Any:
    from sklearn.kernel_approximation import Nystroem, RBFSampler
    from sklearn.pipeline import make_pipeline
    from sklearn.svm import LinearSVC

    from slimsvm import SVC, SparseSVC

    if method == "exact":
        return SVC(C=C, gamma=gamma, cache_size=2000, n_jobs=-1)
    if method == "refined":
        return SparseSVC(k, C=C, gamma=gamma, basis="pursuit", n_jobs=-1, random_state=0)
    if method in OURS:
        basis = {"cpsp": "pursuit", "cpsp_rows": "pursuit_rows", "nystrom": "random"}[method]
        return SparseSVC(
            k, C=C, gamma=gamma, loss="hinge", refine=False, basis=basis, n_jobs=-1, random_state=0
        )
    kind = Nystroem if method == "sklearn_nystroem" else RBFSampler
    return make_pipeline(
        kind(gamma=gamma, n_components=k, random_state=0), LinearSVC(C=C, random_state=0)
    )


def one(name: str, method: str, k: str) -> dict[str, Any]:
    """Fit once and measure."""
    _, C, gamma, get, _ = SETS[name]
    X, y, X_test, y_test = get()
    few = np.concatenate([np.flatnonzero(y == label)[:600] for label in np.unique(y)])
    _make(method, C, gamma, min(20, int(k))).fit(X[few], y[few])
    forget_peak()
    before, begin, cpu = memory_mb("VmRSS"), time.perf_counter(), time.process_time()
    model = _make(method, C, gamma, int(k)).fit(X, y)
    seconds, cpu = time.perf_counter() - begin, time.process_time() - cpu
    result: dict[str, Any] = {
        "seconds": seconds,
        "cpu_seconds": cpu,
        "peak_mb": memory_mb("VmHWM") - before,
    }
    result["accuracy"] = float(np.mean(model.predict(X_test) == y_test))
    if hasattr(model, "certificate_"):
        result |= {
            "objective": float(model.certificate_.objective),
            "gap": float(model.certificate_.gap),
        }
    if hasattr(model, "path_"):
        result["path"] = [
            [
                point.n_basis,
                float(np.mean(model.truncated(point.n_basis).predict(X_test) == y_test)),
            ]
            for point in model.path_
        ]
    if method == "exact":
        result["n_support"] = int(model.n_support_.sum())
    return result


def seeds(name: str) -> dict[str, Any]:
    """Accuracy of several seeds at the size that must be near the exact solution."""
    _, C, gamma, get, k = SETS[name]
    X, y, X_test, y_test = get()
    models = [
        _make("refined", C, gamma, k).set_params(random_state=seed).fit(X, y)
        for seed in range(N_SEEDS)
    ]
    return {
        "k": k,
        "accuracies": [float(np.mean(model.predict(X_test) == y_test)) for model in models],
    }


def alone(name: str, method: str, k: str, tol: str) -> dict[str, Any]:
    """CPU seconds on one thread of a fit at one size, without the models of smaller sizes.

    The least of three counts.
    """
    from slimsvm.estimators import sparse

    _, C, gamma, get, _ = SETS[name]
    X, y, X_test, y_test = get()
    _make(method, C, gamma, 20).set_params(n_jobs=1).fit(X[:3000], y[:3000])
    sparse.sizes_up_to = lambda most: [most]
    seconds = []
    for _ in range(3):
        begin = time.process_time()
        model = _make(method, C, gamma, int(k)).set_params(n_jobs=1, tol=float(tol)).fit(X, y)
        seconds.append(time.process_time() - begin)
    return {
        "accuracy": float(np.mean(model.predict(X_test) == y_test)),
        "cpu_seconds": min(seconds),
        "all_cpu_seconds": seconds,
    }


def scale(n: str) -> dict[str, Any]:
    """Checkers with n rows, 100 basis vectors."""
    from slimsvm import SparseSVC
    from slimsvm.datasets import checkers

    X, y = checkers(int(n), seed=0)
    X_test, y_test = checkers(100_000, seed=1)
    pursued = {"C": 1.0, "gamma": 20.0, "basis": "pursuit", "n_jobs": -1, "random_state": 0}
    SparseSVC(20, **pursued).fit(X[:2000], y[:2000])
    forget_peak()
    before, begin = memory_mb("VmRSS"), time.perf_counter()
    model = SparseSVC(100, **pursued).fit(X, y)
    seconds = time.perf_counter() - begin
    return {
        "seconds": seconds,
        "peak_mb": memory_mb("VmHWM") - before,
        "error": float(np.mean(model.predict(X_test) != y_test)),
    }


def prediction(name: str) -> dict[str, Any]:
    """Microseconds a row: our sparse model, the rate of kernel values, and scikit-learn's SVC.

    scikit-learn's model is trained on the support vectors of ours: it is the same, minutes earlier.
    """
    from sklearn.svm import SVC as Sklearn

    from slimsvm import SVC, SparseSVC
    from slimsvm.kernel_sums import accumulate
    from slimsvm.kernels import RBF
    from slimsvm.tiles import Strips, prepare

    _, C, gamma, get, k = SETS[name]
    X, y, X_test, _ = get()
    exact = SVC(C=C, gamma=gamma, cache_size=2000, n_jobs=-1).fit(X, y)
    theirs = Sklearn(C=C, gamma=gamma, cache_size=2000).fit(X[exact.support_], y[exact.support_])
    begin = time.perf_counter()
    theirs.predict(X_test[:1000])
    peer = (time.perf_counter() - begin) / 1000
    ours = SparseSVC(k, C=C, gamma=gamma, n_jobs=-1, random_state=0, refine=False).fit(
        X[:20000], y[:20000]
    )
    rows = X_test if X_test.shape[0] <= 50_000 else X_test[:50_000]
    f, best, tiles = ours._function(), np.inf, np.inf
    basis, columns = prepare(RBF(gamma), np.asarray(ours.basis_)), None
    for _ in range(5):
        begin = time.perf_counter()
        f.decision_function(rows, os.cpu_count() or 1)
        best = min(best, (time.perf_counter() - begin) / rows.shape[0])
        columns = prepare(RBF(gamma), rows, like=basis) if columns is None else columns
        begin = time.perf_counter()
        accumulate(
            basis, Strips(columns), np.ones(basis.n), np.zeros(columns.n), os.cpu_count() or 1
        )
        tiles = min(tiles, (time.perf_counter() - begin) / rows.shape[0])
    return {
        "k": k,
        "sparse_us": 1e6 * best,
        "tiles_us": 1e6 * tiles,
        "sklearn_us": 1e6 * peer,
        "n_support_sklearn": int(theirs.n_support_.sum()),
    }


def cells(quick: bool) -> list[Cell]:
    """What there is to measure."""
    if quick:
        found = [
            Cell("a9a/exact", "one", ("a9a", "exact", "0")),
            Cell("checkers/10000", "scale", ("10000",)),
        ]
        return [
            *found,
            *(Cell(f"a9a/{method}/10", "one", ("a9a", method, "10")) for method in (*OURS, *PEERS)),
        ]
    found = []
    for name, (*_, size) in SETS.items():
        found.append(Cell(f"{name}/exact", "one", (name, "exact", "0"), touch=True))
        for k, method in product(sorted({*SIZES, size}), (*OURS, *PEERS)):
            if k in SIZES or method == "refined":
                found.append(
                    Cell(f"{name}/{method}/{k}", "one", (name, method, str(k)), seconds=1200)
                )
    found += [Cell(f"{name}/seeds", "seeds", (name,)) for name in WITH_SEEDS]
    for method, points in OTHERS.items():
        for (name, k), tol in product(points, TOLERANCES[method]):
            found.append(
                Cell(
                    f"alone/{method}/{name}/{k}/{tol:g}", "alone", (name, method, str(k), str(tol))
                )
            )
    found += [Cell(f"checkers/{n}", "scale", (str(n),)) for n in SCALING]
    return [
        *found,
        *(
            Cell(f"{name}/prediction", "prediction", (name,))
            for name in ("a9a", "ijcnn1", "mnist_halves")
        ),
    ]


def table() -> str:
    """The stored results in Markdown."""
    cells = json.loads(RESULTS.read_text())["cells"]
    # "alone" has one more
    sizes = sorted({int(key.split("/")[2]) for key in cells if key.count("/") == 2})
    lines = ["Test accuracy in percent (seconds of training):", ""]
    lines += [
        "| set | method | " + " | ".join(f"k = {k}" for k in sizes) + " |",
        "|---|---|" + "---|" * len(sizes),
    ]
    for name, (text, C, gamma, _, _) in SETS.items():
        exact = cells.get(f"{name}/exact")
        if exact and "accuracy" in exact:
            first = (
                f"{100 * exact['accuracy']:.2f} ({exact['seconds']:.1f}), {exact['n_support']:,} "
                "SVs"
            )
            lines.append(
                f"| {text}, C={C:g}, gamma={gamma:.4g} | exact | {first} |"
                + " |" * (len(sizes) - 1)
            )
        for method in (*OURS, *PEERS):
            row = [cells.get(f"{name}/{method}/{k}", {}) for k in sizes]
            if any("accuracy" in cell for cell in row):
                shown = [
                    f"{100 * cell['accuracy']:.2f} ({cell['seconds']:.1f})"
                    if "accuracy" in cell
                    else ""
                    for cell in row
                ]
                lines.append(f"| | {method} | " + " | ".join(shown) + " |")
    spread = [
        (name, cells[f"{name}/seeds"], cells[f"{name}/exact"])
        for name in SETS
        if "accuracies" in cells.get(f"{name}/seeds", {})
    ]
    if spread:
        lines += [
            "",
            f"{N_SEEDS} seeds of *refined*: test accuracy in percent, and how far the mean is "
            "below the exact solution:",
            "",
        ]
        lines += ["| set | k | mean | least | largest | below exact |", "|---|---|---|---|---|---|"]
        for name, cell, exact in spread:
            found = 100 * np.array(cell["accuracies"])
            numbers = (
                f"{found.mean():.2f} | {found.min():.2f} | {found.max():.2f} | "
                f"{100 * exact['accuracy'] - found.mean():.2f}"
            )
            lines.append(f"| {SETS[name][0]} | {cell['k']} | {numbers} |")
    lines += [
        "",
        "Objective of the models with the hinge loss, as a multiple of the exact one:",
        "",
    ]
    lines += [
        "| set | method | " + " | ".join(f"k = {k}" for k in sizes) + " |",
        "|---|---|" + "---|" * len(sizes),
    ]
    for name, (text, *_) in SETS.items():
        exact = cells.get(f"{name}/exact", {})
        for method in OURS[1:]:
            row = [cells.get(f"{name}/{method}/{k}", {}) for k in sizes]
            if "objective" in exact and any("objective" in cell for cell in row):
                shown = [
                    f"{cell['objective'] / -exact['objective']:.3f}" if "objective" in cell else ""
                    for cell in row
                ]
                lines.append(f"| {text} | {method} | " + " | ".join(shown) + " |")
    about = (
        "On one thread and at one size, without the models of smaller sizes (CPU s, least of "
        "three); others: for refined a prototype"
    )
    lines += [
        "",
        f"{about} that refined from random rows, for cpsp the program of the paper's authors:",
        "",
    ]
    lines += [
        "| set | k | method | tol | accuracy | CPU s | others' accuracy | others' CPU s |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for method, points in OTHERS.items():
        for (name, k), (accuracy, seconds) in points.items():
            for tol in TOLERANCES[method]:
                cell = cells.get(f"alone/{method}/{name}/{k}/{tol:g}", {})
                if "accuracy" in cell:
                    numbers = (
                        f"{100 * cell['accuracy']:.2f} | {cell['cpu_seconds']:.2f} | {accuracy} | "
                        f"{seconds:g}"
                    )
                    lines.append(f"| {SETS[name][0]} | {k} | {method} | {tol:g} | {numbers} |")
    scaled = [
        (n, cells[f"checkers/{n}"]) for n in SCALING if "seconds" in cells.get(f"checkers/{n}", {})
    ]
    if scaled:
        lines += [
            "",
            "Checkers, C=1, gamma=20, 100 basis vectors:",
            "",
            "| rows | seconds | peak MB | test error |",
            "|---|---|---|---|",
        ]
        lines += [
            f"| {n:,} | {cell['seconds']:.1f} | {cell['peak_mb']:.0f} | {100 * cell['error']:.2f} "
            "% |"
            for n, cell in scaled
        ]
        exponent = np.polyfit(
            np.log([n for n, _ in scaled]), np.log([cell["seconds"] for _, cell in scaled]), 1
        )[0]
        lines += ["", f"Exponent of the time in the number of rows: {exponent:.2f}."]
    predicted = [
        (name, cells[f"{name}/prediction"])
        for name in SETS
        if "sparse_us" in cells.get(f"{name}/prediction", {})
    ]
    if predicted:
        lines += ["", "Prediction, microseconds a row on all cores:", ""]
        lines += [
            "| set | k | sparse | kernel values alone | scikit-learn SVC | times faster |",
            "|---|---|---|---|---|---|",
        ]
        for name, cell in predicted:
            ratio = cell["sklearn_us"] / cell["sparse_us"]
            numbers = (
                f"{cell['sparse_us']:.2f} | {cell['tiles_us']:.2f} | {cell['sklearn_us']:.0f} | "
                f"{ratio:.0f}"
            )
            lines.append(f"| {SETS[name][0]} | {cell['k']} | {numbers} |")
    return "\n".join(lines)


# sizes in the README
SHOWN = {
    "a9a": (3, 10),
    "ijcnn1": (50, 200),
    "mnist_halves": (50, 60),
    "mnist_zero": (20,),
    "rcv1": (100,),
}


def summary() -> str:
    """Vectors and accuracy alone, for the README."""
    cells = json.loads(RESULTS.read_text())["cells"]
    lines = [
        "| set | exact: support vectors, accuracy | `SparseSVC`: vectors, accuracy |",
        "|---|---|---|",
    ]
    for name, sizes in SHOWN.items():
        exact = cells[f"{name}/exact"]
        ours = ", ".join(
            f"{k}: {100 * cells[f'{name}/refined/{k}']['accuracy']:.2f} %" for k in sizes
        )
        lines.append(
            f"| {SETS[name][0]} | {exact['n_support']:,}: {100 * exact['accuracy']:.2f} % | "
            f"{ours} |"
        )
    return "\n".join(lines)


def pictures(folder: Path) -> None:
    """Accuracy against the number of basis vectors, and seconds against the number of rows."""
    cells = json.loads(RESULTS.read_text())["cells"]
    folder.mkdir(exist_ok=True)
    _accuracy_picture(cells, folder / "accuracy_against_size.png")
    _scaling_picture(cells, folder / "cpsp_scaling.png")


def _accuracy_picture(cells: dict[str, Any], path: Path) -> None:
    """The path of the largest refined fit of each set, and the exact solution."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 5), layout="constrained")
    axes = figure.subplots()
    for at, (name, (text, *_)) in enumerate(SETS.items()):
        fits = {
            int(key.split("/")[2]): cell
            for key, cell in cells.items()
            if key.startswith(f"{name}/refined/") and "path" in cell
        }
        exact = cells.get(f"{name}/exact", {})
        if not fits or "accuracy" not in exact:
            continue
        sizes, accuracies = zip(*fits[max(fits)]["path"], strict=True)
        label = f"{text}: exact has {exact['n_support']:,} support vectors"
        axes.plot(sizes, 100 * np.array(accuracies), marker="o", color=f"C{at}", label=label)
        axes.axhline(100 * exact["accuracy"], color=f"C{at}", linestyle="--", linewidth=1)
    axes.set(xscale="log", xlabel="basis vectors", ylabel="test accuracy, %")
    axes.legend()
    figure.savefig(path, dpi=100)


def _scaling_picture(cells: dict[str, Any], path: Path) -> None:
    """Figure 3 of the paper, right: checkers with 100 basis vectors, and a line of slope one."""
    from matplotlib.figure import Figure

    rows = sorted(
        (int(key.split("/")[1]), cell["seconds"])
        for key, cell in cells.items()
        if key.startswith("checkers/") and "seconds" in cell
    )
    if len(rows) < 2:
        return
    figure = Figure(figsize=(5, 3.6), layout="constrained")
    axes = figure.subplots()
    axes.plot(*zip(*rows, strict=True), marker="o", label="refined, 100 vectors")
    (first, seconds), (last, _) = rows[0], rows[-1]
    axes.plot(
        [first, last],
        [seconds, seconds * last / first],
        color="grey",
        linestyle="--",
        linewidth=1,
        label="in proportion to the rows",
    )
    axes.set(xscale="log", yscale="log", xlabel="rows of checkers", ylabel="seconds of training")
    axes.legend()
    figure.savefig(path, dpi=90)


TABLES = {"cpsp": table, "cpsp-summary": summary}
