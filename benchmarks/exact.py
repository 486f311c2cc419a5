"""The race of the exact machines: slimsvm against scikit-learn-intelex and scikit-learn.

    python -m benchmarks.exact                      all rows, both types, writes benchmarks/results/exact.json
    python -m benchmarks.exact --sets letter --repeats 1 --types float32 --who slimsvm intelex
    python -m benchmarks.exact --table              prints the table of the stored results
    python -m benchmarks.exact --write docs/benchmarks.md

Every fit has a process of its own: load, a warm-up fit on the first rows, then the fit that counts. The contestants alternate. Same C, gamma,
tolerance 1e-3 and cache of 2,000 MB for all; best of the repeats (of scikit-learn one only, where that took over 30 s). Before every process
memory is filled and released: on a virtual machine the very first touch of a page can cost ten times more than any later one, and would decide
the race by chance. scikit-learn computes in float64 whatever it is given, so it runs once for both types; the objective of every contestant is
computed here in float64 from its coefficients.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import platform
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.data import dense, load

RESULTS = Path(__file__).parent / "results" / "exact.json"
CACHE_MB = 2000
TOUCHED_GB = 3
SLOW_SECONDS = 30


def _a9a(sparse: bool) -> Any:
    X, y, X_test, y_test = load("a9a")
    return (X, y, X_test, y_test) if sparse else (dense(X), y, dense(X_test), y_test)


def _plain(name: str) -> Any:
    X, y, X_test, y_test = load(name)
    return dense(X), y, dense(X_test), y_test


def _mnist(n: int) -> Any:
    X, y, X_test, y_test = load("mnist")
    return X[:n], (y[:n] >= 5).astype(int), X_test, (y_test >= 5).astype(int)


def _covtype(n: int) -> Any:
    X, y, X_test, y_test = load("covtype")
    rows = np.random.RandomState(0).permutation(len(X))[:n]
    return X[rows], y[rows], X_test, y_test


# name: (text, C, gamma, how to load, whether scikit-learn ends in reasonable time)
SETS: dict[str, tuple[str, float, float, Any, bool]] = {
    "a9a_dense": ("a9a dense", 1, 0.05, lambda: _a9a(False), True),
    "a9a_sparse": ("a9a sparse", 1, 0.05, lambda: _a9a(True), True),
    "ijcnn1": ("ijcnn1", 2, 2, lambda: _plain("ijcnn1"), True),
    "letter": ("letter (26 classes)", 16, 4, lambda: _plain("letter"), True),
    "shuttle": ("shuttle (7 classes)", 2048, 8, lambda: _plain("shuttle"), True),
    "rcv1": ("rcv1 sparse", 1, 1, lambda: load("rcv1"), True),
    "mnist20": ("mnist {0..4} vs {5..9}, 20,000", 10, 1 / 32, lambda: _mnist(20000), True),
    "mnist60": ("mnist {0..4} vs {5..9}, 60,000", 10, 1 / 32, lambda: _mnist(60000), False),
    "covtype": ("covtype, 50,000 random rows", 1, 8, lambda: _covtype(50000), True),
}


# -- one fit, in its own process --------------------------------------------------------------------------------------------------------


def _memory(field: str) -> float:
    """Resident memory of this process (VmRSS) or its peak (VmHWM), in megabytes."""
    try:
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith(field):
                return int(line.split()[1]) / 1024
    except OSError:
        pass
    return float("nan")


def _forget_peak() -> None:
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def _make(who: str, C: float, gamma: float) -> Any:
    if who == "slimsvm":
        from slimsvm import SVC

        return SVC(C=C, gamma=gamma, tol=1e-3, cache_size=CACHE_MB, n_jobs=-1)
    if who == "intelex":
        from sklearnex.svm import SVC as Intelex

        return Intelex(C=C, gamma=gamma, tol=1e-3, cache_size=CACHE_MB)
    from sklearn.svm import SVC as Sklearn

    return Sklearn(C=C, gamma=gamma, tol=1e-3, cache_size=CACHE_MB)


def _pairs(model: Any) -> list[tuple[np.ndarray, np.ndarray]]:
    """For each pair of classes: places of its support vectors, and their coefficients."""
    coef = np.asarray(model.dual_coef_.toarray() if hasattr(model.dual_coef_, "toarray") else model.dual_coef_, np.float64)
    n_classes = len(model.classes_)
    if n_classes == 2:
        return [(np.arange(coef.shape[1]), coef[0])]
    ends = np.concatenate([[0], np.cumsum(model.n_support_)])
    pairs = []
    for i in range(n_classes):
        for j in range(i + 1, n_classes):
            of_i, of_j = np.arange(ends[i], ends[i + 1]), np.arange(ends[j], ends[j + 1])
            at = np.concatenate([of_i, of_j])
            value = np.concatenate([coef[j - 1, of_i], coef[i, of_j]])
            pairs.append((at[value != 0], value[value != 0]))
    return pairs


def _objective(model: Any, X: Any, gamma: float) -> float:
    """The dual objective, 1/2 a'Qa - sum a, of all pairs; in float64."""
    from slimsvm.kernels import RBF
    from slimsvm.tiles import Strips, accumulate, ready

    support = ready(RBF(gamma), X[np.asarray(model.support_)], dtype=np.float64)
    total = 0.0
    for at, coef in _pairs(model):
        part, s = support.take(at), np.zeros(at.size)
        accumulate(part, Strips(part), coef, s, 2)
        total += 0.5 * float(coef @ s) - float(np.abs(coef).sum())
    return total


def _minimum(model: Any, X: Any, y: np.ndarray, gamma: float) -> float:
    """The paper's bound: seconds to compute the kernel rows of the final support vectors once, with our own tiles, pair by pair."""
    from slimsvm.kernels import RBF
    from slimsvm.tiles import Strips, accumulate, ready

    rows = ready(RBF(gamma), X)
    label = np.searchsorted(model.classes_, y)
    support = np.asarray(model.support_)
    jobs = []
    for at, _ in _pairs(model):
        classes = np.unique(label[support[at]])
        columns = rows if len(model.classes_) == 2 else rows.take(np.flatnonzero(np.isin(label, classes)))
        jobs.append((rows.take(support[at]), columns))
    best = np.inf
    for _ in range(2):
        begin = time.perf_counter()
        for part, columns in jobs:
            accumulate(part, Strips(columns), np.ones(part.n), np.zeros(columns.n), os.cpu_count() or 1)
        best = min(best, time.perf_counter() - begin)
    return best


def one(name: str, who: str, kind: str, repeat: str = "0") -> dict[str, Any]:
    """Fit once and measure; what does not change between repeats is computed in the first only."""
    _, C, gamma, get, _ = SETS[name]
    X, y, X_test, y_test = get()
    X, X_test = X.astype(kind), X_test.astype(kind)
    model = _make(who, C, gamma)
    n_each = max(600, 3000 // len(np.unique(y)))  # so many rows that every compiled function of the fit is loaded
    few = np.concatenate([np.flatnonzero(y == label)[:n_each] for label in np.unique(y)])[:6000]
    model.fit(X[few], y[few])
    _forget_peak()
    before = _memory("VmRSS")
    begin = time.perf_counter()
    model = _make(who, C, gamma).fit(X, y)
    seconds = time.perf_counter() - begin
    peak = _memory("VmHWM") - before
    result: dict[str, Any] = {"seconds": seconds, "peak_mb": peak, "n_support": int(np.sum(model.n_support_))}
    if repeat != "0":
        return result
    some = slice(None if who == "slimsvm" else 2000)  # the peers' own prediction takes minutes on large test sets
    result |= {"accuracy": float(np.mean(model.predict(X_test[some]) == y_test[some])), "objective": _objective(model, X, gamma)}
    if who == "slimsvm":
        copies = X.shape[0] * X.shape[1] * 4 / 2**20 if not hasattr(X, "nnz") else 4 * X.nnz * 8 / 2**20
        result |= {
            "minimum": _minimum(model, X, y, gamma),
            "relative_gap": model.certificate_.gap / abs(model.certificate_.objective),
            "violation": model.certificate_.violation,
            "precision": model.certificate_.precision,
            "memory_ratio": peak / (copies + CACHE_MB),
        }
    return result


# -- the race -------------------------------------------------------------------------------------------------------------------------------


def _facts() -> dict[str, Any]:
    import numba
    import sklearn

    import slimsvm

    model = next((line.split(":")[1].strip() for line in _cpuinfo() if line.startswith("model name")), platform.processor())
    return {
        "cpu": model,
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "numba": numba.__version__,
        "scikit-learn": sklearn.__version__,
        "slimsvm": slimsvm.__version__,
        "load_average_before": os.getloadavg()[0],
        "date": time.strftime("%Y-%m-%d"),
    }


def _cpuinfo() -> list[str]:
    try:
        return Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return []


def _touch_memory() -> None:
    np.empty(TOUCHED_GB * 2**30, np.uint8)[::4096] = 1


def _slow(cells: dict[str, Any], name: str, repeat: int) -> bool:
    """Whether scikit-learn has run once, and took so long that repeating it would change nothing."""
    return repeat > 0 and cells.get(f"{name}/float64/sklearn", {}).get("seconds", np.inf) > SLOW_SECONDS


def race(sets: list[str], kinds: list[str], contestants: list[str], repeats: int) -> None:
    """Run what is asked for, storing every cell as soon as it is measured."""
    stored = json.loads(RESULTS.read_text()) if RESULTS.exists() else {"cells": {}}
    stored["machine"] = _facts()
    for name in sets:
        for kind in kinds:
            for repeat in range(repeats):
                for who in contestants:
                    if who == "sklearn" and (kind != "float64" or not SETS[name][4] or _slow(stored["cells"], name, repeat)):
                        continue
                    command = [sys.executable, "-m", "benchmarks.exact", "--one", name, who, kind, str(repeat)]
                    _touch_memory()
                    done = subprocess.run(command, capture_output=True, text=True, check=False)
                    key = f"{name}/{kind}/{who}"
                    if done.returncode:
                        stored["cells"][key] = {"failed": done.stderr.strip().splitlines()[-1:]}
                        print(key, "FAILED", done.stderr[-500:], flush=True)
                        continue
                    cell = json.loads(done.stdout.splitlines()[-1])
                    before = stored["cells"].get(key) if repeat else None
                    all_seconds = [*(before or {}).get("all_seconds", []), cell["seconds"]]
                    cell = {**cell, **(before or {}), "seconds": min(all_seconds), "all_seconds": all_seconds}
                    stored["cells"][key] = cell
                    print(key, f"{all_seconds[-1]:.2f} s", f"{cell['n_support']} SVs", flush=True)
                    RESULTS.parent.mkdir(exist_ok=True)
                    RESULTS.write_text(json.dumps(stored, indent=1))


def table() -> str:
    """The stored results in Markdown."""
    stored = json.loads(RESULTS.read_text())
    cells = stored["cells"]
    lines = [
        "| set, C, gamma | type | slimsvm | intelex | scikit-learn | ratio to the better peer | ratio to the minimum | SVs | accuracy | "
        "objective against scikit-learn | relative gap | peak memory / (copies + cache) |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for name, (text, C, gamma, _, _) in SETS.items():
        for kind in ("float32", "float64"):
            ours, intelex = (cells.get(f"{name}/{kind}/{who}", {}) for who in ("slimsvm", "intelex"))
            sklearn = cells.get(f"{name}/float64/sklearn", {})
            if "seconds" not in ours:
                continue
            peers = [peer["seconds"] for peer in (intelex, sklearn) if "seconds" in peer]
            ratio = f"{min(peers) / ours['seconds']:.1f} x" if peers else ""
            reference = sklearn if "objective" in sklearn else intelex
            worse = (ours["objective"] - reference["objective"]) / abs(reference["objective"]) if "objective" in reference else float("nan")
            seconds = [f"{cell['seconds']:.2f}" if "seconds" in cell else "" for cell in (ours, intelex, sklearn)]
            lines.append(
                f"| {text}, {C:g}, {gamma:.4g} | {kind} | **{seconds[0]}** | {seconds[1]} | {seconds[2]} | {ratio} | "
                f"{ours['seconds'] / ours['minimum']:.1f} | {ours['n_support']:,} | {100 * ours['accuracy']:.2f} | {worse:+.1e} | "
                f"{ours['relative_gap']:.1e} | {ours['memory_ratio']:.2f} |"
            )
    machine = ", ".join(f"{key} {value}" for key, value in stored["machine"].items())
    return "\n".join([*lines, "", f"Machine: {machine}."])


def write(path: Path, name: str, text: str) -> None:
    """Put the text between the marks of this name in a page."""
    begin, end = f"<!-- {name}:begin -->", f"<!-- {name}:end -->"
    before, rest = path.read_text().split(begin)
    path.write_text(before + begin + "\n" + text + "\n" + end + rest.split(end)[1])


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", nargs="*", default=list(SETS), choices=list(SETS))
    parser.add_argument("--types", nargs="*", default=["float32", "float64"])
    parser.add_argument("--who", nargs="*", default=["slimsvm", "intelex", "sklearn"])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--table", action="store_true")
    parser.add_argument("--write", type=Path, metavar="PAGE", help="write the table of the stored results into a page of the docs")
    parser.add_argument("--one", nargs=4, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        print(json.dumps(one(*given.one)))
    elif given.write:
        write(given.write, "exact", table())
    elif given.table:
        print(table())
    else:
        race(given.sets, given.types, given.who, given.repeats)
        print(table())


if __name__ == "__main__":
    main()
