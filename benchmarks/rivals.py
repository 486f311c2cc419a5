"""The rivals of the papers beside the project's own machines: LASVM, CVM, BVM; and LASVM on a stream.

    python -m benchmarks.rivals                                    what is not stored yet, into benchmarks/results/rivals.json
    python -m benchmarks.rivals --parts race --sets a9a ijcnn1 --methods lasvm cvm
    python -m benchmarks.rivals --parts online | stream | again    "again": measure what is stored, too
    python -m benchmarks.rivals --write docs/benchmarks.md
    python -m benchmarks.rivals --plot docs/images                 accuracy against vectors and against seconds

Every fit has a process of its own: load, a warm-up fit on the first rows, then the fit that counts. Same C and gamma for all methods on a set.
Each cell is stored as soon as it is measured, so that a run that was ended goes on where it was. The exact and the sparse machines of the
tables are those of benchmarks/results/sparse.json.

"objective" is that of the problem that the method solves, relative to its optimum: for LASVM the dual value against that of the exact machine,
for CVM the squared hinge with a penalised intercept against a lower bound on its optimum (BVM: against the same, from CVM).
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.data import load
from benchmarks.exact import SETS as EXACT_SETS
from benchmarks.exact import _facts, _forget_peak, _memory, _touch_memory, write
from benchmarks.sparse import RESULTS as SPARSE_RESULTS
from benchmarks.sparse import SETS

RESULTS = Path(__file__).parent / "results" / "rivals.json"
SIZES = (10, 50, 200, 1000)
WHOLE = ("lasvm", "cvm", "bvm")  # as large as they get
LIMITED = ("lasvm_budget", "cvm_core", "bvm_pulls")  # to so many vectors
MOST_SECONDS = 300
STREAM = 450_000
BATCH = 1000


def _make(method: str, C: float, gamma: float, k: int) -> Any:
    from slimsvm import CoreVectorSVC, OnlineSVC

    common = {"C": C, "gamma": gamma, "n_jobs": -1, "random_state": 0, "max_time": MOST_SECONDS}
    if method.startswith("lasvm"):
        return OnlineSVC(**common, max_support=k if method == "lasvm_budget" else None, cache_size=2000)
    ball = "minimum" if method.startswith("cvm") else "fixed"
    eps = 1e-6 if method.startswith("cvm") else 1e-5
    return CoreVectorSVC(ball=ball, eps=eps, **common, max_iter=k if method in LIMITED else -1)


def one(name: str, method: str, k: str) -> dict[str, Any]:
    """Fit once and measure."""
    warnings.simplefilter("ignore")
    _, C, gamma, get, _ = SETS[name]
    X, y, X_test, y_test = get()
    few = np.concatenate([np.flatnonzero(y == label)[:600] for label in np.unique(y)])
    _make(method, C, gamma, min(20, int(k))).fit(X[few], y[few])
    _forget_peak()
    before, begin, cpu = _memory("VmRSS"), time.perf_counter(), time.process_time()
    model = _make(method, C, gamma, int(k)).fit(X, y)
    seconds, cpu = time.perf_counter() - begin, time.process_time() - cpu
    return {
        "seconds": seconds,
        "cpu_seconds": cpu,
        "peak_mb": _memory("VmHWM") - before,
        "accuracy": float(np.mean(model.predict(X_test) == y_test)),
        "objective": float(model.certificate_.objective),
        "gap": float(model.certificate_.gap),
        "violation": float(model.certificate_.violation),
        "n_support": int(model.support_.size),
        "status": str(model.status_),
    }


def online(who: str) -> dict[str, Any]:
    """50,000 random rows of covtype: one pass and finishing, or the exact machine."""
    from slimsvm import SVC, OnlineSVC

    _, C, gamma, get, _ = EXACT_SETS["covtype"]
    X, y, X_test, y_test = get()
    X, X_test = X.astype(np.float32), X_test.astype(np.float32)
    common = {"C": C, "gamma": gamma, "cache_size": 2000, "n_jobs": -1}
    make = (lambda: SVC(**common)) if who == "exact" else (lambda: OnlineSVC(random_state=0, **common))
    make().fit(X[:3000], y[:3000])
    _forget_peak()
    before, begin, cpu = _memory("VmRSS"), time.perf_counter(), time.process_time()
    model = make().fit(X, y)
    seconds, cpu = time.perf_counter() - begin, time.process_time() - cpu
    result = {"seconds": seconds, "cpu_seconds": cpu, "peak_mb": _memory("VmHWM") - before, "n_support": int(model.support_.size)}
    return result | {"objective": float(model.certificate_.objective), "accuracy": float(np.mean(model.predict(X_test) == y_test))}


def stream(n: str) -> dict[str, Any]:
    """Covtype row by row: predict a batch, then learn from it. The seconds are of learning alone."""
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
        memory.append(_memory("VmRSS"))
    last = max(1, 100_000 // BATCH)
    result = {"seconds": seconds, "cpu_seconds": cpu, "rows_per_second": len(y) / seconds, "rows_per_cpu_second": len(y) / cpu}
    result |= {"prequential": float(np.mean(hits[-last:])), "accuracy": float(np.mean(model.predict(X_test) == y_test))}
    result["grown_mb"] = memory[-1] - memory[len(memory) // 10]
    # exact machines on random samples, of sizes that keep about 1,000 support vectors
    samples = []
    for seed in range(5):
        some = np.random.RandomState(seed).permutation(len(y))[:1200]
        exact = SVC(C=1, gamma=8).fit(X[some], y[some])
        samples.append((int(exact.support_.size), float(np.mean(exact.predict(X[-100_000:]) == y[-100_000:]))))
    result["sample_support"], result["sample_accuracy"] = (float(np.mean(values)) for values in zip(*samples, strict=True))
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
            memory.append(_memory("VmRSS"))
    return {"memory_mb": memory, "grown_mb": memory[-1] - memory[0]}


def _child(*words: str) -> dict[str, Any]:
    if words[0] == "--online":  # as in benchmarks.exact: the first touch of gigabytes must not decide this race
        _touch_memory()
    done = subprocess.run([sys.executable, "-m", "benchmarks.rivals", *words], capture_output=True, text=True, check=False)
    if done.returncode:
        return {"failed": done.stderr.strip().splitlines()[-1:]}
    return json.loads(done.stdout.splitlines()[-1])  # type: ignore[no-any-return]


def race(parts: list[str], sets: list[str], methods: list[str], sizes: list[int]) -> None:
    """Run what is asked for and not stored, storing every cell as soon as it is measured."""

    def keep(key: str, *words: str) -> None:
        stored = json.loads(RESULTS.read_text()) if RESULTS.exists() else {"cells": {}}
        if key in stored["cells"] and "failed" not in stored["cells"][key] and "again" not in parts:
            return
        cell = _child(*words)
        stored["machine"] = _facts()
        stored["cells"][key] = cell
        print(key, {name: round(value, 5) for name, value in cell.items() if isinstance(value, float)} or cell, flush=True)
        RESULTS.write_text(json.dumps(stored, indent=1))

    if "online" in parts:
        for who in ("exact", "lasvm"):
            keep(f"covtype_50000/{who}", "--online", who)
    if "stream" in parts:
        keep("covtype/stream", "--stream", str(STREAM))
        keep("covtype/calls", "--calls", "1000")
    if "race" in parts:
        for name in sets:
            for method in methods:
                for k in sizes if method in LIMITED else [0]:
                    keep(f"{name}/{method}" + (f"/{k}" if k else ""), "--one", name, method, str(k))


def _relative(name: str, method: str, cell: dict[str, Any], cells: dict[str, Any], sparse: dict[str, Any]) -> str:
    """The objective as a multiple of the optimum of the method's problem."""
    exact = sparse.get(f"{name}/exact", {}).get("objective")
    if method.startswith(("cvm", "bvm")):
        best = cells.get(f"{name}/cvm", {})
        return f"{cell['objective'] / (best['objective'] - best['gap']):.4f}" if "objective" in best else ""
    if exact is None or method in ("refined", "lasvm_budget"):  # another loss; vectors that stand for several rows
        return ""
    return f"{abs(cell['objective'] / exact):.4f}"


def table() -> str:
    """The stored results in Markdown."""
    cells = json.loads(RESULTS.read_text())["cells"]
    sparse = json.loads(SPARSE_RESULTS.read_text())["cells"]
    lines = []
    if "seconds" in cells.get("covtype_50000/lasvm", {}) and "seconds" in cells.get("covtype_50000/exact", {}):
        lines += ["Covtype, 50,000 random rows, C=1, gamma=8:", ""]
        lines += ["| machine | seconds | CPU seconds | SVs | test accuracy | dual value |", "|---|---|---|---|---|---|"]
        for who, text in (("exact", "`SVC`"), ("lasvm", "`OnlineSVC`, one pass and finishing")):
            cell = cells[f"covtype_50000/{who}"]
            numbers = f"{cell['seconds']:.1f} | {cell['cpu_seconds']:.1f} | {cell['n_support']:,} | {100 * cell['accuracy']:.2f} %"
            lines.append(f"| {text} | {numbers} | {cell['objective']:.1f} |")
        lines.append("")
    if "seconds" in cells.get("covtype/stream", {}):
        cell = cells["covtype/stream"]
        lines += [
            f"A stream of {STREAM:,} rows of covtype in batches of {BATCH:,}, `max_support=1000`, C=1, gamma=8: {cell['rows_per_second']:,.0f} "
            f"rows a second ({cell['rows_per_cpu_second']:,.0f} a CPU second), prequential accuracy over the last 100,000 rows "
            f"{100 * cell['prequential']:.2f} %; exact machines on random samples, with {cell['sample_support']:,.0f} support vectors on "
            f"average, have {100 * cell['sample_accuracy']:.2f} % on the same rows. Resident memory after a tenth of the stream and at its "
            f"end differ by {cell['grown_mb']:.1f} MB.",
            "",
        ]
    if "grown_mb" in cells.get("covtype/calls", {}):
        grown = cells["covtype/calls"]["grown_mb"]
        lines += [f"From the 100th to the 1,000th call of `partial_fit` (100 rows each), resident memory grew by {grown:.1f} MB.", ""]
    lines += ["| set | method | vectors | test accuracy | CPU seconds | objective |", "|---|---|---|---|---|---|"]
    for name, (text, C, gamma, _, _) in SETS.items():
        if not any(key.startswith(f"{name}/") for key in cells):  # nothing here that the table of the sparse machines does not have
            continue
        first = f"{text}, C={C:g}, gamma={gamma:.4g}"
        for key, cell in _cells_of(name, cells, sparse):
            method, _, k = key.partition("/")
            vectors = cell.get("n_support", int(k or 0))
            late = " (stopped)" if str(cell.get("status", "")).startswith("Stopped at max_time") else ""
            numbers = f"{vectors:,} | {100 * cell['accuracy']:.2f} % | {cell['cpu_seconds']:.1f}{late}"
            lines.append(f"| {first} | {method} | {numbers} | {_relative(name, method, cell, cells, sparse)} |")
            first = ""
    return "\n".join(lines)


def _cells_of(name: str, cells: dict[str, Any], sparse: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """All measured machines of a set: the exact one, those as large as they get, those of limited size."""
    wanted = ["exact", *WHOLE]
    for method in (*LIMITED, "refined", "cpsp", "cpsp_rows", "nystrom"):
        wanted += [f"{method}/{k}" for k in SIZES]
    found = [(key, cells.get(f"{name}/{key}", sparse.get(f"{name}/{key}", {}))) for key in wanted]
    return [(key, cell) for key, cell in found if "accuracy" in cell and "cpu_seconds" in cell]


def plot(folder: Path) -> None:
    """Accuracy against the number of vectors, and against the seconds of training."""
    from matplotlib.figure import Figure

    cells = json.loads(RESULTS.read_text())["cells"]
    sparse = json.loads(SPARSE_RESULTS.read_text())["cells"]
    methods = ["exact", *WHOLE, *LIMITED, "refined", "cpsp", "cpsp_rows", "nystrom"]
    for what, label in (("vectors", "vectors"), ("seconds", "CPU seconds of training")):
        figure = Figure(figsize=(12, 7), layout="constrained")
        axes = figure.subplots(2, 3).ravel()
        for at, (name, (text, *_)) in enumerate(SETS.items()):
            found = _cells_of(name, cells, sparse)
            for m, method in enumerate(methods):
                points = [(c.get("n_support", int(key.partition("/")[2] or 0)) if what == "vectors" else c["cpu_seconds"], 100 * c["accuracy"])
                          for key, c in found if key.partition("/")[0] == method]  # fmt: skip
                if points:
                    x, y = zip(*sorted(points), strict=True)
                    axes[at].plot(
                        x, y, marker="*" if len(points) == 1 else ".", color=f"C{m % 10}", linestyle="--" if m > 9 else "-", label=method
                    )
            axes[at].set(title=text, xscale="log", xlabel=label, ylabel="test accuracy, %")
        handles = {label: handle for panel in axes for handle, label in zip(*panel.get_legend_handles_labels(), strict=True)}
        axes[-1].axis("off")
        axes[-1].legend(handles.values(), handles.keys(), loc="center")
        folder.mkdir(exist_ok=True)
        figure.savefig(folder / f"rivals_{what}.png", dpi=90)


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--parts", nargs="*", default=["online", "stream", "race"])
    parser.add_argument("--sets", nargs="*", default=list(SETS), choices=list(SETS))
    parser.add_argument("--methods", nargs="*", default=[*LIMITED, *WHOLE])
    parser.add_argument("--sizes", nargs="*", type=int, default=list(SIZES))
    parser.add_argument("--table", action="store_true")
    parser.add_argument("--write", type=Path, metavar="PAGE", help="write the tables of the stored results into a page of the docs")
    parser.add_argument("--plot", type=Path, metavar="FOLDER", help="draw the pictures of the stored results")
    parser.add_argument("--one", nargs=3, help=argparse.SUPPRESS)
    for part in ("online", "stream", "calls"):
        parser.add_argument(f"--{part}", help=argparse.SUPPRESS)
    given = parser.parse_args()
    for part, measure in (("online", online), ("stream", stream), ("calls", calls)):
        if getattr(given, part):
            print(json.dumps(measure(getattr(given, part))))
            return
    if given.one:
        print(json.dumps(one(*given.one)))
    elif given.plot:
        plot(given.plot)
    elif given.write:
        write(given.write, "rivals", table())
    elif given.table:
        print(table())
    else:
        race(given.parts, given.sets, given.methods, given.sizes)
        print(table())


if __name__ == "__main__":
    main()
