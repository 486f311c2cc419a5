"""Streams within a budget: accuracy with more rows, after a change, sorted by class; rows a second.

    python -m benchmarks run streams --full [--only covtype]
    python -m benchmarks tables streams

``OnlineSVC(max_support=500)`` learns from batches of 1,000 rows, at most 50,000 in random order, on
one thread; beside it the exact SVC on all rows that have passed, at the same C and gamma. Only
learning is timed. "turned": after half of the rows the labels mean something else (the next class;
of two the other), and the accuracy is that on the new ones 5,000 rows later. "sorted": the same
rows by class, one after the other.
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.data import load
from benchmarks.runner import Cell

RESULTS = Path(__file__).parent / "results" / "streams.json"
# name: C, gamma
SETS = {
    "ijcnn1": (2.0, 2.0),
    "covtype": (1.0, 8.0),
    "a9a": (1.0, 0.05),
    "letter": (16.0, 4.0),
    "mnist": (10.0, 1 / 32),
}
VECTORS, MOST, BATCH, TESTED = 500, 50_000, 1000, 20_000
FIRST, AFTER = 5000, 5000


def _rows(name: str) -> Any:
    X, y, X_test, y_test = load(name)
    order = np.random.RandomState(0).permutation(len(y))[:MOST]
    tested = np.random.RandomState(1).permutation(len(y_test))[:TESTED]
    dense = [x.toarray() if hasattr(x, "toarray") else x for x in (X[order], X_test[tested])]
    label, new = y[order], y_test[tested]
    return dense[0].astype(np.float32), label, dense[1].astype(np.float32), new


def _stream(name: str, X: Any, y: Any, look: Any) -> dict[str, Any]:
    """Learn in batches; ``look(model, n)`` after each of them."""
    from slimsvm import OnlineSVC

    C, gamma = SETS[name]
    few = slice(None, None, max(1, len(y) // 500))
    OnlineSVC(max_support=20, gamma=gamma).partial_fit(X[few], y[few])  # compiled
    model = OnlineSVC(C=C, gamma=gamma, max_support=VECTORS, random_state=0)
    seconds = cpu = 0.0
    for start in range(0, len(y), BATCH):
        begin, used = time.perf_counter(), time.process_time()
        model.partial_fit(X[start : start + BATCH], y[start : start + BATCH])
        seconds, cpu = seconds + time.perf_counter() - begin, cpu + time.process_time() - used
        look(model, min(len(y), start + BATCH))
    return {
        "seconds": seconds,
        "cpu_seconds": cpu,
        "rows_per_second": len(y) / seconds,
        "rows_per_cpu_second": len(y) / cpu,
        "features": X.shape[1],
    }


def mixed(name: str) -> dict[str, Any]:
    """In random order."""
    X, y, X_test, y_test = _rows(name)
    found: dict[str, float] = {}

    def look(model: Any, n: int) -> None:
        if n in (FIRST, len(y)):
            found["first" if n == FIRST else "accuracy"] = float(model.score(X_test, y_test))

    return {**_stream(name, X, y, look), **found, "rows": len(y)}


def turned(name: str) -> dict[str, Any]:
    """The labels mean something else in the second half."""
    X, y, X_test, y_test = _rows(name)
    classes = np.unique(y)
    half = len(y) // (2 * BATCH) * BATCH
    shift = (np.searchsorted(classes, y) + 1) % len(classes)
    new = classes[(np.searchsorted(classes, y_test) + 1) % len(classes)]
    y = np.concatenate([y[:half], classes[shift[half:]]])
    found: dict[str, float] = {}

    def look(model: Any, n: int) -> None:
        if n == half:
            found["before"] = float(model.score(X_test, y_test))
        if n == min(half + AFTER, len(y)):
            found["accuracy"] = float(model.score(X_test, new))
            found["alarms"] = float(model.sparse_.stream_["n_alarms"])

    return {**_stream(name, X, y, look), **found}


def by_class(name: str) -> dict[str, Any]:
    """One class after the other."""
    X, y, X_test, y_test = _rows(name)
    order = np.argsort(y, kind="stable")
    found: dict[str, float] = {}

    def look(model: Any, n: int) -> None:
        if n == len(y):
            found["accuracy"] = float(model.score(X_test, y_test))

    return {**_stream(name, X[order], y[order], look), **found}


def exact(name: str) -> dict[str, Any]:
    """The exact SVC on the same rows."""
    from slimsvm import SVC

    X, y, X_test, y_test = _rows(name)
    C, gamma = SETS[name]
    begin, used = time.perf_counter(), time.process_time()
    model = SVC(C=C, gamma=gamma, cache_size=2000, n_jobs=1).fit(X, y)
    found = {"seconds": time.perf_counter() - begin, "cpu_seconds": time.process_time() - used}
    few = SVC(C=C, gamma=gamma, cache_size=2000).fit(X[:FIRST], y[:FIRST])
    found |= {"accuracy": float(model.score(X_test, y_test)), "vectors": len(model.support_)}
    return {**found, "first": float(few.score(X_test, y_test))}


def cells(quick: bool) -> list[Cell]:
    """All sets, or the two smallest."""
    names = ("ijcnn1", "letter") if quick else tuple(SETS)
    kinds = ("exact", "mixed") if quick else ("exact", "mixed", "turned", "by_class")
    return [Cell(f"{name}/{kind}", kind, (name,)) for name in names for kind in kinds]


def table() -> str:
    """One line for each set."""
    stored = json.loads(RESULTS.read_text())["cells"]

    def percent(key: str, name: str) -> str:
        cell = stored.get(key, {})
        return f"{100 * cell[name]:.2f}" if name in cell else ""

    lines = [
        "| set | after 5,000 rows | after all | exact SVC | 5,000 rows after a change "
        "| sorted by class | rows a CPU second (features) |",
        "|---|---|---|---|---|---|---|",
    ]
    for name in SETS:
        cell = stored.get(f"{name}/mixed", {})
        if "rows" not in cell:
            continue
        columns = (("mixed", "first"), ("mixed", "accuracy"), ("exact", "accuracy"))
        columns += (("turned", "accuracy"), ("by_class", "accuracy"))
        shown = [percent(f"{name}/{kind}", what) for kind, what in columns]
        speed = f"{cell['rows_per_cpu_second']:,.0f} ({cell['features']})"
        lines.append(f"| {name}, {cell['rows']:,} rows | {' | '.join(shown)} | {speed} |")
    return "\n".join(lines)


TABLES = {"streams": table}
