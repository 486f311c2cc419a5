"""Rows that are not in memory: files and Dask against memory, workers that die, and growth.

    python -m benchmarks run scale --full          into benchmarks/results/scale.json
    python -m benchmarks run scale --full --only memory-and-time

Rows: 20 features, float32, ``default_rng(0).standard_normal``; the label is the sign of sin(2 x0) +
x1 x2 + 0.4 noise. Files are written into a temporary folder. ``SLIMSVM_SCALE`` (a number) makes all
sizes that many times smaller, for a computer that is busy.
"""

from __future__ import annotations

import os
import random
import resource
import signal
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.runner import Cell

FEATURES, PART = 20, 1 << 20
SMALLER = float(os.environ.get("SLIMSVM_SCALE", "1"))


def batches(n: int, step: int = PART) -> Iterator[tuple[Any, Any]]:
    """The rows, generated in the order of their numbers: the same for every pass."""
    for k, first in enumerate(range(0, n, step)):
        rng = np.random.default_rng([0, k])
        X = rng.standard_normal((min(step, n - first), FEATURES), dtype=np.float32)
        noise = 0.4 * rng.standard_normal(len(X))
        yield (
            X,
            np.where(np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + noise > 0, 1, -1).astype(np.int8),
        )


def in_memory(n: int) -> tuple[Any, Any]:
    """All of them."""
    parts = list(batches(n))
    return np.vstack([X for X, _ in parts]), np.concatenate([y for _, y in parts])


def written(folder: str, n: int) -> str:
    """Parquet files of PART rows each."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    for k, (X, y) in enumerate(batches(n)):
        columns = {f"x{j}": np.ascontiguousarray(X[:, j]) for j in range(FEATURES)}
        pq.write_table(pa.table(columns | {"label": y}), f"{folder}/{k:04d}.parquet")
    return f"{folder}/*.parquet"


def peak() -> float:
    """Megabytes that this process has had at once."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def model(k: str | int = 100, **options: Any) -> Any:
    """What is fitted."""
    from slimsvm import SparseSVC

    return SparseSVC(int(k), random_state=0, n_jobs=2, **options)


def smaller(n: str) -> int:
    """So many rows, or fewer where the computer is busy."""
    return int(float(n) / SMALLER)


def memory_and_time(n: str, max_memory: str) -> dict[str, Any]:
    """Peak memory above the import, and time beside reading the files as often as there are passes.

    The fit in memory is a cell of its own: its peak is not that of the files.
    """
    import slimsvm

    size = smaller(n)
    with tempfile.TemporaryDirectory() as folder:
        files = written(folder, size)
        model(10).fit(*in_memory(5000))  # compiled
        before = peak()
        rows = slimsvm.open_rows(files, target="label")
        passes = []
        rows.shown = passes.append
        begin = time.perf_counter()
        fitted = model(max_memory=float(max_memory)).fit(rows)
        seconds, above = time.perf_counter() - begin, peak() - before
        n_passes = len(passes) / rows.n_blocks
        begin = time.perf_counter()
        slimsvm.open_rows(files, target="label").sum(_touch)
        reading = time.perf_counter() - begin
        batch = int(np.diff(rows.edges).max()) * FEATURES * 4 / 1e6
        return {
            "rows": size,
            "seconds": seconds,
            "megabytes_above": above,
            "allowed": float(max_memory) + 24e-6 * size + 2 * batch,
            "passes": n_passes,
            "reading_a_pass": reading,
            "reading": n_passes * reading,
            "accuracy": fitted.score(rows),
        }


def _touch(block: Any) -> float:
    return float(block.X[0, 0])


def fit_in_memory(n: str, max_memory: str) -> dict[str, Any]:
    """The same rows in memory."""
    X, y = in_memory(smaller(n))
    model(10).fit(X[:5000], y[:5000])
    begin = time.perf_counter()
    fitted = model(max_memory=float(max_memory)).fit(X, y)
    seconds = time.perf_counter() - begin
    return {"rows": len(X), "seconds": seconds, "accuracy": fitted.score(X, y)}


def equal_bits(n: str) -> dict[str, Any]:
    """Memory, memory map, Parquet, and Dask on 1, 2 and 4 workers; and plain arrays."""
    import dask.array as da
    from distributed import Client, LocalCluster

    import slimsvm

    size = smaller(n)
    step = max(1, size // 16)
    X, y = in_memory(size)
    with tempfile.TemporaryDirectory() as folder:
        np.save(f"{folder}/X.npy", X)
        np.save(f"{folder}/y.npy", y)
        os.mkdir(f"{folder}/parquet")
        files = written(f"{folder}/parquet", size)
        sources = {
            "memory": slimsvm.open_rows(X, target=y, batch_rows=step),
            "map": slimsvm.open_rows(f"{folder}/X.npy", target=f"{folder}/y.npy", batch_rows=step),
            "parquet": slimsvm.open_rows(files, target="label", batch_rows=step),
        }
        fitted = {name: model().fit(rows) for name, rows in sources.items()}
        for workers in (1, 2, 4):
            local = {"n_workers": workers, "threads_per_worker": 1, "dashboard_address": None}
            with LocalCluster(**local) as cluster, Client(cluster):
                chunks = da.from_array(X, chunks=(step, FEATURES)), da.from_array(y, chunks=step)
                fitted[f"dask-{workers}"] = model().fit(*chunks)
    plain, some = model().fit(X, y), X[:100_000]
    expected = fitted["memory"].decision_function(some)
    same = {
        name: bool(np.array_equal(of.decision_function(some), expected))
        and bool(np.array_equal(of.basis_coef_, fitted["memory"].basis_coef_))
        for name, of in fitted.items()
    }
    off = float(np.abs(plain.decision_function(some) - expected).max())
    return {"rows": size, "equal": same, "plain_differs_by": off}


def on_dask(n: str, workers: str) -> dict[str, Any]:
    """Seconds on workers that are processes, beside as many threads in memory."""
    import dask.array as da
    from distributed import Client, LocalCluster

    X, y = in_memory(smaller(n))
    step = max(1, len(X) // 16)
    model(10).fit(X[:5000], y[:5000])
    begin = time.perf_counter()
    model().fit(X, y)
    here = time.perf_counter() - begin
    local = {"n_workers": int(workers), "threads_per_worker": 1, "dashboard_address": None}
    with LocalCluster(**local) as cluster, Client(cluster) as client:
        data = da.from_array(X, chunks=(step, FEATURES)), da.from_array(y, chunks=step)
        data = tuple(client.persist(data))
        model(10).fit(*data)  # workers have compiled
        begin = time.perf_counter()
        model().fit(*data)
        there = time.perf_counter() - begin
    return {"rows": len(X), "memory": here, "dask": there, "ratio": there / here}


def killed(n: str, fits: str) -> dict[str, Any]:
    """A random worker is killed at a random time, in every one of so many fits."""
    import dask.array as da
    from distributed import Client, LocalCluster

    import slimsvm

    X, y = in_memory(smaller(n))
    step = max(1, len(X) // 16)
    expected = model(20).fit(slimsvm.open_rows(X, target=y, batch_rows=step)).basis_coef_
    local = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
    with LocalCluster(**local) as cluster, Client(cluster) as client:
        data = da.from_array(X, chunks=(step, FEATURES)), da.from_array(y, chunks=step)
        model(20).fit(*data)
        begin = time.perf_counter()
        model(20).fit(*data)
        usual, ratios, equal = time.perf_counter() - begin, [], 0
        for k in range(int(fits)):
            pids = list(client.run(os.getpid).values())
            chance = random.Random(k)
            timer = threading.Timer(
                chance.random() * usual, os.kill, (chance.choice(pids), signal.SIGKILL)
            )
            timer.start()
            begin = time.perf_counter()
            equal += bool(np.array_equal(model(20).fit(*data).basis_coef_, expected))
            ratios.append((time.perf_counter() - begin) / usual)
            timer.join()
    done = {"rows": len(X), "fits": int(fits), "equal": equal, "usual": usual}
    return {**done, "slowest": max(ratios), "median": float(np.median(ratios))}


def bytes_sent(n: str, workers: str) -> dict[str, Any]:
    """Bytes of tasks, state and parts in a pass, counted on so many worker processes."""
    import pickle

    import dask.array as da
    from distributed import Client, LocalCluster

    from slimsvm.far.coding import rows_of
    from slimsvm.sources import dask_rows

    X, y = in_memory(smaller(n))
    step = max(1, len(X) // 32)
    counted = {"passes": 0, "state": 0, "parts": 0}
    before = dask_rows.DaskRows.sum

    def counting(self: Any, task: Any, *state: Any) -> Any:
        found = before(self, task, *state)
        counted["passes"] += 1
        counted["state"] += len(pickle.dumps((task, state)))
        counted["parts"] += len(pickle.dumps(found))
        return found

    local = {"n_workers": int(workers), "threads_per_worker": 1, "dashboard_address": None}
    with LocalCluster(**local) as cluster, Client(cluster):
        data = da.from_array(X, chunks=(step, FEATURES)), da.from_array(y, chunks=step)
        rows_of(*data).forget()
        dask_rows.DaskRows.sum = counting  # type: ignore[method-assign]
        try:
            model(max_memory=200.0).fit(*data)
        finally:
            dask_rows.DaskRows.sum = before  # type: ignore[method-assign]
    passes = counted["passes"]
    about = {"rows": len(X), "workers": int(workers), "blocks": 32, "passes": passes}
    return {**about, "state": counted["state"] / passes, "part": counted["parts"] / passes}


def growth(n: str) -> dict[str, Any]:
    """Rows that are generated on the fly, and nowhere stored."""
    import slimsvm

    size, step = smaller(n), min(PART, 1 << 18)
    model(10).fit(*in_memory(5000))
    before, begin = peak(), time.perf_counter()
    rows = slimsvm.open_rows(lambda: batches(size, step))
    opened, read = time.perf_counter() - begin, []
    rows.shown = read.append
    begin = time.perf_counter()
    fitted = model(max_memory=500.0).fit(rows)
    seconds = time.perf_counter() - begin
    begin = time.perf_counter()
    some = next(batches(step))
    score = fitted.score(*some)
    return {
        "rows": size,
        "generating_a_pass": opened,
        "passes": len(read) / rows.n_blocks,
        "seconds": seconds,
        "accuracy": score,
        "megabytes_above": peak() - before,
        "prediction_a_block": time.perf_counter() - begin,
    }


def cells(quick: bool) -> list[Cell]:
    """What there is to measure."""
    if quick:
        return [Cell("growth/1e5", "growth", ("1e5",))]
    long: dict[str, Any] = {"seconds": 7200.0, "gigabytes": 20.0}
    found = [
        Cell("memory-and-time/2e7", "memory_and_time", ("2e7", "500"), **long),
        Cell("in-memory/2e7", "fit_in_memory", ("2e7", "500"), **long),
        Cell("equal-bits/2e6", "equal_bits", ("2e6",), **long),
        Cell("dask/2e6", "on_dask", ("2e6", "2"), **long),
        Cell("killed/2e5", "killed", ("2e5", "50"), **long),
    ]
    found += [Cell(f"bytes/{w}", "bytes_sent", ("4e5", str(w)), **long) for w in (2, 4, 8)]
    return found + [Cell(f"growth/{n}", "growth", (n,), **long) for n in ("1e6", "1e7", "1e8")]


RESULTS = Path(__file__).parent / "results" / "scale.json"
TABLES: dict[str, Any] = {}
