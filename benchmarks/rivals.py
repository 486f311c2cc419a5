"""The rivals of the papers beside the project's own methods, and LASVM on a stream.

    python -m benchmarks run rivals --full [--only a9a/]
    python -m benchmarks tables rivals

Figures 1 and 2 and table 2 of Joachims & Yu (2009) with every method of the project: same C and
gamma for all on a set, one thread, one fit for each number of vectors. "primal" is the objective of
the plain SVM, 1/2 |w|^2 + C sum max(0, 1 - y f), at what the method found; methods that
minimise something else (squared hinge, least squares, dual values of fewer rows) have another
scale, so f is first multiplied by the factor that is best for it. Divided by the optimum, which the
exact solution has, it is at least one. "objective" is that of the method's own problem.
"""

from __future__ import annotations

import json
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.cpsp import RESULTS as SPARSE_RESULTS
from benchmarks.cpsp import SETS
from benchmarks.data import load
from benchmarks.peers import SETS as EXACT_SETS
from benchmarks.runner import Cell, forget_peak, memory_mb

RESULTS = Path(__file__).parent / "results" / "rivals.json"
SIZES = (10, 50, 200, 500)
WHOLE = ("exact", "linear", "lasvm", "cvm", "bvm")  # as large as they get
# to a given number of vectors; the first ones are ours
LIMITED = (
    "refined", "cpsp", "cpsp_rows", "greedy", "nystrom", "cholesky", "rsvm_smooth",
    "rsvm_least_squares", "icf", "lasvm_budget", "cvm_core", "bvm_pulls",
)  # fmt: skip
SLOW = ("refined", "greedy", "icf")  # not with the largest number of vectors
MOST_SECONDS = 150  # of a process: loading, warm-up, fit and testing
NEAR = 0.005  # table 2: at most this much below the accuracy of the exact solution
STREAM = 450_000
BATCH = 1000


def _make(method: str, C: float, gamma: float, k: int) -> Any:
    from slimsvm import SVC, CoreVectorSVC, LinearSVC, LowRankSVC, OnlineSVC, SparseSVC, recipes

    common: dict[str, Any] = {"C": C, "gamma": gamma, "n_jobs": 1, "random_state": 0}
    if method == "exact":
        return SVC(C=C, gamma=gamma, cache_size=2000, n_jobs=1)
    if method == "linear":
        return LinearSVC(C=C, loss="hinge", n_jobs=1)
    if method.startswith("lasvm"):
        return OnlineSVC(
            **common, max_support=k if method == "lasvm_budget" else None, cache_size=2000
        )
    if method.startswith(("cvm", "bvm")):
        ball, eps = ("minimum", 1e-6) if method.startswith("cvm") else ("fixed", 1e-5)
        return CoreVectorSVC(ball=ball, eps=eps, **common, max_iter=k if method in LIMITED else -1)
    # the pivots as the basis: the IncChol of the paper, where icf has all rows and the original
    # kernel
    if method == "cholesky":
        return SparseSVC(k, basis="cholesky", loss="hinge", refine=False, **common)
    if method == "icf":
        return LowRankSVC(rank=k, fit_intercept=True, **common)
    recipe: Any = recipes.greedy_subset if method == "greedy" else recipes.RECIPES[method][0]
    return recipe(k, **common)


def _primal(model: Any, X: Any, y: np.ndarray, C: float) -> float:
    """The plain SVM's objective at the best multiple of the learned function."""
    from scipy.optimize import minimize_scalar

    f = model._function()
    margins = np.where(y == model.classes_[1], 1.0, -1.0) * f.decision_function(X, 1)[:, 0]
    half = 0.5 * float(f.squared_norm()[0])

    def value(log_t: float) -> float:
        t = np.exp(log_t)
        return float(half * t * t + C * np.maximum(0.0, 1.0 - t * margins).sum())

    found = minimize_scalar(value, bounds=(-12.0, 12.0), method="bounded")
    return min(float(found.fun), value(0.0), C * len(y))


def one(name: str, method: str, k: str) -> dict[str, Any]:
    """Fit once and measure."""
    warnings.simplefilter("ignore")
    _, C, gamma, get, _ = SETS[name]
    X, y, X_test, y_test = get()
    few = np.concatenate([np.flatnonzero(y == label)[:600] for label in np.unique(y)])
    _make(method, C, gamma, min(20, int(k))).fit(X[few], y[few])
    forget_peak()
    before, begin, cpu = memory_mb("VmRSS"), time.perf_counter(), time.process_time()
    model = _make(method, C, gamma, int(k)).fit(X, y)
    seconds, cpu = time.perf_counter() - begin, time.process_time() - cpu
    found = {
        "seconds": seconds,
        "cpu_seconds": cpu,
        "peak_mb": memory_mb("VmHWM") - before,
        "accuracy": float(np.mean(model.predict(X_test) == y_test)),
        "objective": float(model.certificate_.objective),
        "gap": float(model.certificate_.gap),
        "violation": float(model.certificate_.violation),
        "status": str(model.status_),
    }
    if method == "linear":  # one vector, w; its objective is that of another kernel
        return {**found, "n_support": 1}
    return {
        **found,
        "primal": _primal(model, X, y, C),
        "n_support": int(model._function().basis.shape[0]),
    }


def online(who: str) -> dict[str, Any]:
    """50,000 random rows of covtype: one pass and finishing, or the exact solution; all cores."""
    from slimsvm import SVC, OnlineSVC

    _, C, gamma, get, _ = EXACT_SETS["covtype"]
    X, y, X_test, y_test = get()
    X, X_test = X.astype(np.float32), X_test.astype(np.float32)
    common = {"C": C, "gamma": gamma, "cache_size": 2000, "n_jobs": -1}
    make = (
        (lambda: SVC(**common)) if who == "exact" else (lambda: OnlineSVC(random_state=0, **common))
    )
    make().fit(X[:3000], y[:3000])
    forget_peak()
    before, begin, cpu = memory_mb("VmRSS"), time.perf_counter(), time.process_time()
    model = make().fit(X, y)
    seconds, cpu = time.perf_counter() - begin, time.process_time() - cpu
    result = {
        "seconds": seconds,
        "cpu_seconds": cpu,
        "peak_mb": memory_mb("VmHWM") - before,
        "n_support": int(model.support_.size),
    }
    return result | {
        "objective": float(model.certificate_.objective),
        "accuracy": float(np.mean(model.predict(X_test) == y_test)),
    }


def stream(n: str) -> dict[str, Any]:
    """Covtype row by row: predict a batch, then learn from it. Only learning is timed."""
    from slimsvm import SVC, OnlineSVC

    X, y, X_test, y_test = load("covtype")
    rows = np.random.RandomState(0).permutation(len(X))[: int(n)]
    X, y = X[rows].astype(np.float32), y[rows]
    model = OnlineSVC(C=1, gamma=8, max_support=1000, random_state=0, n_jobs=-1)
    for start in range(0, 3000, BATCH):
        model.partial_fit(X[start : start + BATCH], y[start : start + BATCH], classes=np.unique(y))
    model = OnlineSVC(C=1, gamma=8, max_support=1000, random_state=0, n_jobs=-1)
    hits, seconds, cpu, memory = [], 0.0, 0.0, []
    for start in range(0, len(y), BATCH):
        part = slice(start, start + BATCH)
        if start:
            hits.append(float(np.mean(model.predict(X[part]) == y[part])))
        begin, used = time.perf_counter(), time.process_time()
        model.partial_fit(X[part], y[part], classes=np.unique(y))
        seconds, cpu = seconds + time.perf_counter() - begin, cpu + time.process_time() - used
        memory.append(memory_mb("VmRSS"))
    last = max(1, 100_000 // BATCH)
    result = {
        "seconds": seconds,
        "cpu_seconds": cpu,
        "rows_per_second": len(y) / seconds,
        "rows_per_cpu_second": len(y) / cpu,
    }
    result |= {
        "prequential": float(np.mean(hits[-last:])),
        "accuracy": float(np.mean(model.predict(X_test) == y_test)),
    }
    result["grown_mb"] = memory[-1] - memory[len(memory) // 10]
    # exact SVMs on random samples, of sizes that keep about 1,000 support vectors
    samples = []
    for seed in range(5):
        some = np.random.RandomState(seed).permutation(len(y))[:1200]
        exact = SVC(C=1, gamma=8).fit(X[some], y[some])
        samples.append(
            (int(exact.support_.size), float(np.mean(exact.predict(X[-100_000:]) == y[-100_000:])))
        )
    result["sample_support"], result["sample_accuracy"] = (
        float(np.mean(values)) for values in zip(*samples, strict=True)
    )
    return result


def calls(n: str) -> dict[str, Any]:
    """Resident memory over many calls of partial_fit."""
    from slimsvm import OnlineSVC

    X, y, _, _ = load("covtype")
    rows = np.random.RandomState(0).permutation(len(X))[: 100 * int(n)]
    X, y = X[rows].astype(np.float32), y[rows]
    model, memory = OnlineSVC(C=1, gamma=8, max_support=500, random_state=0), []
    for k in range(int(n)):
        part = slice(100 * k, 100 * (k + 1))
        model.partial_fit(X[part], y[part], classes=np.unique(y))
        if (k + 1) % (int(n) // 10) == 0:
            memory.append(memory_mb("VmRSS"))
    return {"memory_mb": memory, "grown_mb": memory[-1] - memory[0]}


def cells(quick: bool) -> list[Cell]:
    """What there is to measure: LASVM beside the exact SVM, the stream, and the race."""
    if quick:
        methods = ("greedy", "rsvm_least_squares", "icf", "lasvm_budget")
        return [Cell("ijcnn1/exact", "one", ("ijcnn1", "exact", "0"))] + [
            Cell(f"ijcnn1/{method}/{k}", "one", ("ijcnn1", method, str(k)), peer="ijcnn1/exact")
            for k in (10, 50)
            for method in methods
        ]
    found = [
        Cell(f"covtype_50000/{who}", "online", (who,), peer="covtype_50000/exact", touch=True)
        for who in ("exact", "lasvm")
    ]
    found += [
        Cell("covtype/stream", "stream", (str(STREAM),)),
        Cell("covtype/calls", "calls", ("1000",)),
    ]

    def whole(method: str) -> list[Cell]:
        return [
            Cell(f"{name}/{method}", "one", (name, method, "0"), MOST_SECONDS, peer=f"{name}/exact")
            for name in SETS
        ]

    found += whole("exact")
    for k in SIZES:
        methods = tuple(method for method in LIMITED if k < SIZES[-1] or method not in SLOW)
        for name in SETS:
            found += [
                Cell(
                    f"{name}/{method}/{k}",
                    "one",
                    (name, method, str(k)),
                    MOST_SECONDS,
                    peer=f"{name}/exact",
                )
                for method in methods
            ]
    return [*found, *(cell for method in WHOLE[1:] for cell in whole(method))]


# -- tables and pictures ---------------------------------------------------------------------------


def _cells() -> dict[str, Any]:
    """What is stored here, or for sparse models where that is missing, in their own benchmark.

    That one runs on all cores and has the CPU seconds of all.
    """
    stored: dict[str, Any] = json.loads(RESULTS.read_text())["cells"]
    others: dict[str, Any] = json.loads(SPARSE_RESULTS.read_text())["cells"]
    for key, cell in others.items():
        name, method, k = [*key.split("/"), "", ""][:3]
        if (
            name in SETS
            and method in LIMITED
            and "accuracy" in cell
            and "accuracy" not in stored.get(key, {})
        ):
            hinge = {} if method == "refined" else {"primal": cell["objective"]}
            stored[key] = {**cell, "n_support": int(k), "elsewhere": True, **hinge}
    return stored


def _points(
    name: str, cells: dict[str, Any]
) -> dict[str, list[tuple[float, float, float, float | None]]]:
    """For each method: vectors, CPU seconds, test accuracy in percent, and objective, by vectors.

    The objective is a multiple of the optimum.
    """
    best = cells.get(f"{name}/exact", {}).get("primal")
    found: dict[str, list[tuple[float, float, float, float | None]]] = {}
    for method in (*WHOLE, *LIMITED):
        keys = [
            key for key in cells if key == f"{name}/{method}" or key.startswith(f"{name}/{method}/")
        ]
        rows = sorted(
            (cells[key] for key in keys if "accuracy" in cells.get(key, {})),
            key=lambda cell: cell["n_support"],
        )
        found[method] = [
            (
                cell["n_support"],
                cell["cpu_seconds"],
                100 * cell["accuracy"],
                cell["primal"] / best if best and "primal" in cell else None,
            )
            for cell in rows
        ]
    return {method: points for method, points in found.items() if points}


def table() -> str:
    """The stored results in Markdown."""
    cells = _cells()
    return "\n".join([*_streams(cells), *_race(cells), *_near(cells)])


def _streams(cells: dict[str, Any]) -> list[str]:
    """LASVM: once through covtype, and on a stream."""
    lines = []
    if "seconds" in cells.get("covtype_50000/lasvm", {}) and "seconds" in cells.get(
        "covtype_50000/exact", {}
    ):
        lines += ["Covtype, 50,000 random rows, C=1, gamma=8:", ""]
        lines += [
            "| method | seconds | CPU seconds | SVs | test accuracy | dual value |",
            "|---|---|---|---|---|---|",
        ]
        for who, text in (("exact", "`SVC`"), ("lasvm", "`OnlineSVC`, one pass and finishing")):
            cell = cells[f"covtype_50000/{who}"]
            numbers = (
                f"{cell['seconds']:.1f} | {cell['cpu_seconds']:.1f} | {cell['n_support']:,} | "
                f"{100 * cell['accuracy']:.2f} %"
            )
            lines.append(f"| {text} | {numbers} | {cell['objective']:.1f} |")
        lines.append("")
    if "seconds" in cells.get("covtype/stream", {}):
        cell = cells["covtype/stream"]
        lines += [
            f"A stream of {STREAM:,} rows of covtype in batches of {BATCH:,}, `max_support=1000`, "
            f"C=1, gamma=8: {cell['rows_per_second']:,.0f} rows a second "
            f"({cell['rows_per_cpu_second']:,.0f} a CPU second), prequential accuracy over the "
            f"last 100,000 rows {100 * cell['prequential']:.2f} %; exact SVMs on random "
            f"samples, with {cell['sample_support']:,.0f} support vectors on average, have "
            f"{100 * cell['sample_accuracy']:.2f} % on the same rows. Resident memory after a "
            f"tenth of the stream and at its end differ by {cell['grown_mb']:.1f} MB.",
            "",
        ]
    if "grown_mb" in cells.get("covtype/calls", {}):
        grown = cells["covtype/calls"]["grown_mb"]
        lines += [
            "From the 100th to the 1,000th call of `partial_fit` (100 rows each), resident "
            f"memory grew by {grown:.1f} MB.",
            "",
        ]
    return lines


def _race(cells: dict[str, Any]) -> list[str]:
    """Accuracy, objective and seconds at each number of vectors."""
    heads = ["as large as it gets", *(f"k = {k}" for k in SIZES)]
    lines = [
        "Test accuracy in percent; objective as a multiple of the optimum; CPU seconds on one "
        "thread, or where marked * on all cores, from the benchmark of the sparse models (at "
        "all sizes up to k); vectors. Empty: not run.",
        "",
    ]
    lines += ["| set | method | " + " | ".join(heads) + " |", "|---|---|" + "---|" * len(heads)]
    for name, (text, C, gamma, _, _) in SETS.items():
        best, first = (
            cells.get(f"{name}/exact", {}).get("primal"),
            f"{text}, C={C:g}, gamma={gamma:.4g}",
        )
        for method in (*WHOLE, *LIMITED):
            row = [
                cells.get(key, {})
                for key in (f"{name}/{method}", *(f"{name}/{method}/{k}" for k in SIZES))
            ]
            if any("accuracy" in cell or "failed" in cell for cell in row):
                lines.append(
                    f"| {first} | {method} | "
                    + " | ".join(_shown(cell, best) for cell in row)
                    + " |"
                )
                first = ""
    return [*lines, ""]


def _shown(cell: dict[str, Any], best: float | None) -> str:
    if "failed" in cell:
        return "failed: " + " ".join(cell["failed"])[:60]
    if "accuracy" not in cell:
        return ""
    multiple = f"{cell['primal'] / best:.3f}" if best and "primal" in cell else "-"
    mark = "*" if "elsewhere" in cell else ""
    return (
        f"{100 * cell['accuracy']:.2f}; {multiple}; {cell['cpu_seconds']:.1f} s{mark} "
        f"({cell['n_support']:,})"
    )


def _near(cells: dict[str, Any]) -> list[str]:
    """Table 2 of the paper: the fewest vectors to be near the exact solution, and their seconds.

    They are the fewest of the sizes that were run.
    """
    sets = [name for name in SETS if "accuracy" in cells.get(f"{name}/exact", {})]
    lines = [
        f"Vectors and CPU seconds of the smallest model at most {100 * NEAR:g} points below the "
        "exact one (of the sizes that were run):",
        "",
    ]
    lines += [
        "| method | " + " | ".join(SETS[name][0] for name in sets) + " |",
        "|---|" + "---|" * len(sets),
    ]
    for method in (*WHOLE, *LIMITED):
        texts = []
        for name in sets:
            points = _points(name, cells).get(method, [])
            enough = [
                p for p in points if p[2] >= 100 * (cells[f"{name}/exact"]["accuracy"] - NEAR)
            ]
            texts.append(
                f"{enough[0][0]:,}, {enough[0][1]:.1f} s"
                if enough
                else f"> {points[-1][0]:,}"
                if points
                else ""
            )
        lines.append(f"| {method} | " + " | ".join(texts) + " |")
    return lines


def pictures(folder: Path) -> None:
    """Accuracy and objective against vectors and seconds, and seconds against vectors."""
    folder.mkdir(exist_ok=True)
    cells = _cells()
    vectors, seconds = ("vectors", "vectors", 0), ("seconds", "CPU seconds of training", 1)
    accuracy, objective = (
        ("accuracy", "test accuracy, %", 2),
        ("objective", "objective / optimum", 3),
    )
    for y, x in (
        (accuracy, vectors),
        (accuracy, seconds),
        (objective, vectors),
        (objective, seconds),
        (seconds, vectors),
    ):
        _picture(cells, x, y, folder / f"rivals_{y[0]}_{x[0]}.png")


def _picture(
    cells: dict[str, Any], x: tuple[str, str, int], y: tuple[str, str, int], path: Path
) -> None:
    """A panel for each set, a line for each method; x and y: name, label, and place in a point."""
    from matplotlib.figure import Figure

    methods = (*WHOLE, *LIMITED)
    figure = Figure(figsize=(12, 7), layout="constrained")
    axes = figure.subplots(2, 3).ravel()
    for at, (name, (text, *_)) in enumerate(SETS.items()):
        for method, points in _points(name, cells).items():
            m = methods.index(method)
            line = {
                "marker": "os^vDP*X"[m % 8],
                "color": f"C{m % 10}",
                "linestyle": "--" if m > 9 else "-",
                "markersize": 5,
            }
            some = [(p[x[2]], p[y[2]]) for p in points if p[y[2]] is not None]
            if some:
                axes[at].plot(*zip(*some, strict=True), label=method, **line)
        axes[at].set(
            title=text,
            xscale="log",
            xlabel=x[1],
            ylabel=y[1],
            yscale="linear" if y[0] == "accuracy" else "log",
        )
    handles = {
        label: handle
        for panel in axes
        for handle, label in zip(*panel.get_legend_handles_labels(), strict=True)
    }
    axes[-1].axis("off")
    axes[-1].legend(handles.values(), handles.keys(), loc="center")
    figure.savefig(path, dpi=90)


TABLES = {"rivals": table}
