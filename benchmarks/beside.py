"""What it costs to be true to a paper: every recipe beside its estimator's own defaults.

    python -m benchmarks run beside --full
    python -m benchmarks tables beside

Both train on the same rows with the same C, kernel and size: checkers with 2,000 rows (C = 10,
gamma = 10, 50 vectors or a tenth of the rows), and for linear ones 5,000 rows of 20 normal features
with labels that one in five is wrong about. Seconds are CPU seconds of one thread. Recipes may be
about another problem than the defaults (another loss, no intercept): errors stand beside the times.
"""

from __future__ import annotations

import json
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.runner import Cell

RESULTS = Path(__file__).parent / "results" / "beside.json"
PROCESSES = 4
ROWS, TEST, LINEAR_ROWS, VECTORS, SHARE, SAMPLE = 2000, 5000, 5000, 50, 0.1, 100
MOST = 120.0  # seconds of a fit; one that ends there has a star


def _rows(linear: bool) -> tuple[Any, ...]:
    from slimsvm.datasets import checkers

    if not linear:
        return *checkers(ROWS, seed=0), *checkers(TEST, seed=1)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(LINEAR_ROWS + TEST, 20))
    y = (X @ rng.normal(size=20) > 0) ^ (rng.random(len(X)) < 0.2)
    return X[:LINEAR_ROWS], y[:LINEAR_ROWS], X[LINEAR_ROWS:], y[LINEAR_ROWS:]


def _pair(name: str) -> tuple[Any, Any]:
    """The recipe, and the estimator's defaults with the same C, kernel and size."""
    import inspect

    from slimsvm import SVC, CrossTraining
    from slimsvm.oracles import Binary
    from slimsvm.recipes import RECIPES

    function, own = RECIPES[name][0], {}
    sizes = {"n_basis": VECTORS, "rank": SHARE, "sample_size": SAMPLE}
    if name.startswith("rsvm"):
        sizes["n_basis"] = SHARE
    for key in inspect.signature(function).parameters:
        own |= {key: sizes[key]} if key in sizes else {}
    common: dict[str, Any] = {"C": 10.0, "gamma": 10.0, "max_time": MOST}
    if name in ("linear_cutting_plane", "linear_newton", "lsvm"):
        common = {"C": 0.1, "max_time": MOST}
    if name == "cross_training":
        del common["max_time"]
        return function(**common, random_state=0), CrossTraining(SVC(**common), random_state=0)
    published = function(**own, **common)
    kind = type(published)
    first = {"oracle": Binary()} if "oracle" in published.get_params() else {}
    plain = kind(**first, **own, **common)
    for model in (published, plain):
        if "random_state" in model.get_params():
            model.set_params(random_state=0)
    return published, plain


def beside(part: str) -> dict[str, Any]:
    """CPU seconds, error and ending of some of the recipes and of the defaults."""
    from sklearn.base import clone

    from slimsvm.recipes import RECIPES

    warnings.simplefilter("ignore")
    found = {}
    for name in sorted(RECIPES)[int(part) :: PROCESSES]:
        published, plain = _pair(name)
        X, y, X_test, y_test = _rows(type(plain).__name__ == "LinearSVC")
        cell: dict[str, Any] = {"estimator": type(plain).__name__}
        for who, model in (("recipe", published), ("default", plain)):
            clone(model).fit(X, y)  # compiles
            begin = time.process_time()
            model.fit(X, y)
            cell[who] = time.process_time() - begin
            cell[f"{who}_error"] = 100.0 * (1.0 - float(model.score(X_test, y_test)))
            cell[f"{who}_end"] = model.status_.reason
        found[f"{part}/{name}"] = cell
    return found


def cells(quick: bool) -> list[Cell]:
    """Several recipes in a process."""
    parts = range(1 if quick else PROCESSES)
    return [Cell(str(k), "beside", (str(k),), seconds=3600, several=True) for k in parts]


def table() -> str:
    """The stored results in Markdown."""
    stored = json.loads(RESULTS.read_text(encoding="utf-8"))["cells"] if RESULTS.exists() else {}
    lines = [
        "| recipe | CPU s | test error | estimator by itself | CPU s | test error |",
        "|---|---|---|---|---|---|",
    ]
    known = {key.split("/")[1]: cell for key, cell in stored.items() if "recipe" in cell}
    for name, cell in sorted(known.items()):
        shown = []
        for who in ("recipe", "default"):
            late = "" if cell[f"{who}_end"] == "converged" else "*"
            shown.append(f"{cell[who]:.2f}{late} | {cell[f'{who}_error']:.2f} %")
        lines.append(f"| `{name}` | {shown[0]} | `{cell['estimator']}` | {shown[1]} |")
    return "\n".join(lines)


TABLES = {"beside": table}
