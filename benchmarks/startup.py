"""What the first call costs, and small problems.

These are import, the very first fit (compilation), the first fit of a later process, few rows, and
many classes.

    python -m benchmarks run startup --full                  into benchmarks/results/startup.json
    python -m benchmarks tables startup [--show]

Small problems are where scikit-learn's SVC is hard to beat: it is compiled ahead of time, and its
overhead is that of one call. Both estimators are fitted in turn in one process, after a warm-up
fit; milliseconds of the quickest of up to seven fits.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.runner import Cell

RESULTS = Path(__file__).parent / "results" / "startup.json"
IMPORT = "import time; t = time.perf_counter(); import {modules}; print(time.perf_counter() - t)"
FIT = """
import time, numpy as np
from slimsvm import SVC
rng = np.random.default_rng(0)
X = rng.standard_normal((500, 10)); y = (X[:, 0] + X[:, 1] ** 2 > 0.5).astype(int)
t = time.perf_counter(); SVC().fit(X, y); print(time.perf_counter() - t)
"""
MODULES = {
    "alone": "",
    "slimsvm": ", slimsvm",
    "SVC": "; from slimsvm import SVC",
    "SparseSVC": "; from slimsvm import SparseSVC",
}
REPEATS, ENOUGH = 7, 30.0  # seconds of a cell after which there are no more repeats
# each: rows of a class
FEW_ROWS, MANY_CLASSES, EACH = (100, 300, 1000, 3000, 10_000), (10, 30, 100, 300), 10


def _seconds(code: str, **environment: str) -> float:
    """What the code prints last, in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, **environment},
    )
    return float(done.stdout.split()[-1])


def imports() -> dict[str, Any]:
    """Seconds to import scikit-learn's SVMs and Numba, alone and with ours; the least of each."""
    every: dict[str, list[float]] = {name: [] for name in MODULES}
    for _ in range(REPEATS):
        for name, more in MODULES.items():
            every[name].append(_seconds(IMPORT.format(modules="sklearn.svm, numba" + more)))
    return {name: min(seconds) for name, seconds in every.items()}


def fits() -> dict[str, Any]:
    """Seconds of a fit of 500 rows with an empty cache of compiled code, and in later processes."""
    with tempfile.TemporaryDirectory() as folder:
        first = _seconds(FIT, NUMBA_CACHE_DIR=folder)
        return {
            "first": first,
            "later": min(_seconds(FIT, NUMBA_CACHE_DIR=folder) for _ in range(REPEATS)),
        }


def small(what: str, n: str) -> dict[str, Any]:
    """Ours and scikit-learn's on few rows of two classes, or on many classes of few rows."""
    from sklearn.datasets import make_classification
    from sklearn.svm import SVC as Theirs

    from slimsvm import SVC

    if what == "rows":
        X, y = make_classification(int(n), 20, n_informative=5, flip_y=0.1, random_state=0)
    else:
        y = np.repeat(np.arange(int(n)), EACH)
        X = np.random.default_rng(0).standard_normal((int(n), 20))[y] + 0.5 * np.random.default_rng(
            1
        ).standard_normal((y.size, 20))
    found: dict[str, list[float]] = {"slimsvm": [], "sklearn": []}
    start = time.perf_counter()
    for repeat in range(8):
        if repeat > 1 and time.perf_counter() - start > ENOUGH:
            break
        for name, make in (("slimsvm", SVC), ("sklearn", Theirs)):
            begin = time.perf_counter()
            make().fit(X, y)
            if repeat:
                found[name].append(time.perf_counter() - begin)
    return {name: 1e3 * min(seconds) for name, seconds in found.items()}


def cells(quick: bool) -> list[Cell]:
    """What there is to measure."""
    rows, classes = ((300,), (30,)) if quick else (FEW_ROWS, MANY_CLASSES)
    found = [Cell(f"rows/{n}", "small", ("rows", str(n))) for n in rows]
    found += [Cell(f"classes/{n}", "small", ("classes", str(n))) for n in classes]
    return found if quick else [Cell("imports", "imports"), *found, Cell("fits", "fits")]


def table() -> str:
    """The stored results in Markdown."""
    cells = json.loads(RESULTS.read_text())["cells"]
    lines = ["| what | seconds |", "|---|---|"]
    if "alone" in cells.get("imports", {}):
        cell = cells["imports"]
        lines.append(f"| `import sklearn.svm, numba` | {cell['alone']:.2f} |")
        lines.append(f"| `import slimsvm` after them | {cell['slimsvm'] - cell['alone']:+.2f} |")
        lines += [
            f"| `from slimsvm import {name}` after them | {cell[name] - cell['alone']:+.2f} |"
            for name in ("SVC", "SparseSVC")
        ]
    if "first" in cells.get("fits", {}):
        lines.append(f"| `SVC().fit` of 500 rows, the first ever | {cells['fits']['first']:.2f} |")
        lines.append(f"| the same, first of a later process | {cells['fits']['later']:.3f} |")
    lines += [
        "",
        "Small problems, milliseconds of a fit with the defaults (20 features; many classes: "
        f"{EACH} rows of each):",
        "",
    ]
    lines += ["| problem | slimsvm | scikit-learn |", "|---|---|---|"]
    problems = {f"rows/{n}": f"{n:,} rows, two classes" for n in FEW_ROWS} | {
        f"classes/{n}": f"{n} classes" for n in MANY_CLASSES
    }
    for key, text in problems.items():
        if "slimsvm" in cells.get(key, {}):
            lines.append(f"| {text} | {cells[key]['slimsvm']:.1f} | {cells[key]['sklearn']:.1f} |")
    return "\n".join(lines)


TABLES = {"startup": table}
