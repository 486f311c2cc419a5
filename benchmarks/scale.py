"""Rows that are not in memory: files and Dask against memory, workers that die, and growth.

    python -m benchmarks run scale --full          into benchmarks/results/scale.json
    python -m benchmarks run scale --full --only memory-and-time

Rows: 20 features, float32, ``default_rng(0).standard_normal``; the label is the sign of sin(2 x0) +
x1 x2 + 0.4 noise. Files are written into a temporary folder. ``SLIMSVM_SCALE`` (a number) makes all
sizes that many times smaller, for a computer that is busy.
"""

from __future__ import annotations

import json
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.runner import Cell, forget_peak, memory_mb

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


class Clock:
    """Seconds since it was made, on the wall and of this process's CPU (both threads)."""

    def __init__(self) -> None:
        self.wall, self.cpu = time.perf_counter(), time.process_time()

    def read(self) -> dict[str, float]:
        """Both."""
        wall, cpu = time.perf_counter() - self.wall, time.process_time() - self.cpu
        return {"seconds": wall, "cpu_seconds": cpu}


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
        clock = Clock()
        fitted = model(max_memory=float(max_memory)).fit(rows)
        taken, above = clock.read(), peak() - before
        n_passes = len(passes) / rows.n_blocks
        clock = Clock()
        slimsvm.open_rows(files, target="label").sum(_touch)
        reading = clock.read()["cpu_seconds"]
        batch = int(np.diff(rows.edges).max()) * FEATURES * 4 / 1e6
        return {
            "rows": size,
            **taken,
            "megabytes_above": above,
            "allowed": float(max_memory) + 24e-6 * size + 2 * batch,
            "passes": n_passes,
            "cpu_seconds_of_reading_once": reading,
            "accuracy": fitted.score(rows),
        }


def _touch(block: Any) -> float:
    return float(block.X[0, 0])


def fit_in_memory(n: str, max_memory: str) -> dict[str, Any]:
    """The same rows in memory."""
    X, y = in_memory(smaller(n))
    model(10).fit(X[:5000], y[:5000])
    clock = Clock()
    fitted = model(max_memory=float(max_memory)).fit(X, y)
    return {"rows": len(X), **clock.read(), "accuracy": fitted.score(X, y)}


def equal_bits(n: str) -> dict[str, Any]:
    """Memory, memory map, Parquet, and Dask on 1, 2 and 4 workers; and plain arrays."""
    import dask.array as da

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
            with processes(workers):
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

    X, y = in_memory(smaller(n))
    step = max(1, len(X) // 16)
    model(10).fit(X[:5000], y[:5000])
    begin = time.perf_counter()
    model().fit(X, y)
    here = time.perf_counter() - begin
    with processes(int(workers)) as client:
        data = da.from_array(X, chunks=(step, FEATURES)), da.from_array(y, chunks=step)
        data = tuple(client.persist(data))
        model(10).fit(*data)  # workers have compiled
        begin = time.perf_counter()
        model().fit(*data)
        there = time.perf_counter() - begin
    return {"rows": len(X), "memory": here, "dask": there}


@contextmanager
def processes(workers: int) -> Iterator[Any]:
    """A client of a scheduler and workers that are processes of their own, by the dask command."""
    from distributed import Client

    with tempfile.TemporaryDirectory() as folder:
        file = f"{folder}/scheduler.json"
        dask = [sys.executable, "-m", "dask"]
        scheduler = [*dask, "scheduler", "--port", "0", "--scheduler-file", file, "--no-dashboard"]
        worker = [*dask, "worker", "--scheduler-file", file, "--nthreads", "1", "--no-dashboard"]
        worker += ["--local-directory", folder]
        quiet: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        begun = [subprocess.Popen(words, **quiet) for words in [scheduler] + workers * [worker]]
        try:
            with Client(scheduler_file=file, timeout=120) as client:
                client.wait_for_workers(workers, timeout=120)
                yield client
        finally:
            for process in begun:
                process.terminate()
            for process in begun:
                process.wait(timeout=60)


def killed(n: str, fits: str, kind: str = "sparse") -> dict[str, Any]:
    """A random worker is killed at a random time, in every one of so many fits.

    Scheduler and workers are processes of their own; a worker that was killed comes back.
    """
    import dask.array as da

    import slimsvm

    X, y = in_memory(smaller(n))
    step = max(1, len(X) // 16)
    made = model(20) if kind == "sparse" else slimsvm.SVC(C=2.0)
    rows = slimsvm.open_rows(X, target=y, batch_rows=step)
    expected = made.fit(rows).decision_function(X[:2000])
    with processes(2) as client:
        data = da.from_array(X, chunks=(step, FEATURES)), da.from_array(y, chunks=step)
        made.fit(*data)
        begin = time.perf_counter()
        made.fit(*data)
        usual, ratios, equal = time.perf_counter() - begin, [], 0
        for k in range(int(fits)):
            client.wait_for_workers(2, timeout=120)
            pids = list(client.run(os.getpid).values())
            chance = random.Random(k)
            timer = threading.Timer(
                chance.random() * usual, os.kill, (chance.choice(pids), signal.SIGKILL)
            )
            timer.start()
            begin = time.perf_counter()
            found = made.fit(*data).decision_function(X[:2000])
            ratios.append((time.perf_counter() - begin) / usual)
            equal += bool(np.array_equal(found, expected))
            timer.join()
    done = {"rows": len(X), "fits": int(fits), "equal": equal, "usual": usual}
    return {**done, "slowest": max(ratios), "median": float(np.median(ratios))}


def at_any_time(n: str, seconds: str) -> dict[str, Any]:
    """SVC with a time limit, beside fits to the end on random subsets of the rows."""
    import warnings

    from slimsvm import SVC

    def rows(first: int, size: int) -> tuple[Any, Any]:
        rng = np.random.default_rng(first)
        X = rng.standard_normal((size, 10), dtype=np.float32)
        value = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.4 * rng.standard_normal(size)
        return X, value > 0

    warnings.simplefilter("ignore")
    (X, y), held_out = rows(0, smaller(n)), rows(1, 100_000)
    about: dict[str, Any] = {"C": 2.0, "gamma": 0.05, "n_jobs": 2}
    SVC(max_time=60.0, **about).fit(X[:5000], y[:5000])  # compiled
    limit, subsets = float(seconds), {}
    for size in (20_000, 80_000, 160_000, 300_000, 450_000):
        begin = time.perf_counter()
        some = SVC(**about, max_time=limit).fit(X[:size], y[:size])
        taken = time.perf_counter() - begin
        if not some.status_.converged:
            break
        subsets[size] = {"seconds": taken, "accuracy": some.score(*held_out)}
    begin = time.perf_counter()
    whole = SVC(**about, max_time=limit).fit(X, y)
    taken = time.perf_counter() - begin
    best = max(of["accuracy"] for of in subsets.values())
    score = whole.score(*held_out)
    return {"rows": len(X), "seconds": taken, "accuracy": score, "best": best, "subsets": subsets}


def covtype_from_files(n: str, megabytes: str, max_time: str = "3600") -> dict[str, Any]:
    """An exact fit to the end, or for so many seconds, from Parquet and from memory.

    Seconds, CPU seconds and the status of both; the peak is that of the fit from files.
    """
    import warnings

    import pyarrow as pa
    import pyarrow.parquet as pq

    import slimsvm
    from benchmarks.peers import _covtype

    warnings.simplefilter("ignore")  # that the time is over, the status says
    X, y = _covtype(int(n))[:2]
    some, labels = X[:5000].copy(), y[:5000].copy()
    about: dict[str, Any] = {"C": 1.0, "gamma": 8.0, "cache_size": float(megabytes), "n_jobs": 2}
    slimsvm.SVC(**about, max_time=60.0).fit(some, labels)  # compiled
    slimsvm.SVC(**about).fit(slimsvm.open_rows(some, target=labels, batch_rows=2000))
    found: dict[str, Any] = {"rows": int(n), "max_time": float(max_time)}
    with tempfile.TemporaryDirectory() as folder:
        columns = {f"x{j}": np.ascontiguousarray(X[:, j]) for j in range(X.shape[1])}
        pq.write_table(pa.table(columns | {"label": y}), f"{folder}/x.parquet")
        del X, y, columns
        forget_peak()
        before, passes = memory_mb("VmRSS"), list[int]()
        rows = slimsvm.open_rows(f"{folder}/x.parquet", target="label")
        rows.shown = passes.append
        clock = Clock()
        far = slimsvm.SVC(**about, max_time=float(max_time)).fit(rows)
        taken = clock.read()
        found |= {f"files_{name}": value for name, value in taken.items()}
        found |= {"files_status": str(far.status_), "passes": len(passes) / rows.n_blocks}
        found["files_megabytes_above"] = memory_mb("VmHWM") - before
    X, y = _covtype(int(n))[:2]
    clock = Clock()
    here = slimsvm.SVC(**about, max_time=float(max_time)).fit(X, y)
    found |= {f"memory_{name}": value for name, value in clock.read().items()}
    expected = here.certificate_.objective
    differs = np.abs(far.decision_function(some) - here.decision_function(some)).max()
    return {
        **found,
        "memory_status": str(here.status_),
        "objective_differs_by": abs(far.certificate_.objective / expected - 1.0),
        "values_differ_by": float(differs),
        "holds": bool(far.certificate_.holds and here.certificate_.holds),
        "vectors": int(far.support_.size),
    }


PROGRAM = """
import sys
import numpy as np, slimsvm
rng = np.random.default_rng(0)
X = rng.standard_normal((int(sys.argv[2]), 10))
y = np.sign(np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.4 * rng.standard_normal(len(X)))
models = {"exact": slimsvm.SVC(C=100.0, gamma=0.2),
          "linear": slimsvm.LinearSVC(loss="hinge", tol=1e-7, random_state=0),
          "sparse": slimsvm.SparseSVC(300, random_state=0),
          "rows": slimsvm.SparseSVC(300, random_state=0),
          "structural": slimsvm.CrammerSingerSVC(C=10.0, tol=1e-4, random_state=0)}
kind = sys.argv[3]
model = models[kind].set_callbacks(slimsvm.Checkpoint(sys.argv[1], every=float(sys.argv[4])))
if kind == "linear":  # many features
    X = np.hstack([X] + [np.cos(np.pi * X * k + k) for k in range(1, 8)])
if kind == "structural":
    y = y * (1 + (X[:, 3] > 0.5) + (X[:, 4] > 0.5))
data = (X, y)
if kind == "rows":
    data = (slimsvm.open_rows(X, target=y, batch_rows=1 + len(X) // 16),)
print("begins", flush=True)
model.fit(*data)
print("done", model.status_.converged, flush=True)
"""


def kills(kind: str, n: str, times: str, every: str = "1") -> dict[str, Any]:
    """A fit with a checkpoint is killed at random times, and restarted until it ends.

    What is lost is the time from the last writing of the file to the kill.
    """
    import slimsvm

    lost, unreadable, finished, starts, wanted = [], 0, 0, 0, int(times)
    chance = random.Random(0)
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/kept.slim"
        words = [sys.executable, "-W", "ignore", "-c", PROGRAM, path, n, kind, every]
        while len(lost) < wanted or not finished:
            starts += 1
            with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
                assert process.stdout is not None
                process.stdout.readline()
                begin = time.time()
                left = float(every) * (0.2 + 4.0 * chance.random())
                try:
                    process.wait(left if len(lost) < wanted else 3600.0)
                except subprocess.TimeoutExpired:
                    now = time.time()
                    process.send_signal(signal.SIGKILL)
                    process.wait()
                    written = os.path.getmtime(path) if os.path.exists(path) else begin
                    lost.append(now - max(begin, written))
                else:
                    finished += process.returncode == 0
                    if len(lost) < wanted:
                        os.unlink(path)
            if os.path.exists(path):
                try:
                    slimsvm.load(path)
                except ValueError:
                    unreadable += 1
    about = {"kills": len(lost), "starts": starts, "finished": finished, "every": float(every)}
    return {**about, "unreadable": unreadable, "most_lost": max(lost), "mean": float(np.mean(lost))}


def bytes_sent(n: str, workers: str) -> dict[str, Any]:
    """Bytes of tasks with their state, and of parts, in a pass; on so many worker processes.

    Counted where they are made: what is sent with each task of a pass over all rows (state, and
    what is known of its blocks), and the parts that come back. What brings rows to the client (the
    sample) is counted apart.
    """
    import pickle

    import dask
    import dask.array as da

    from slimsvm.sources import dask_rows

    X, y = in_memory(smaller(n))
    step = max(1, len(X) // 32)
    sums = {"passes": 0, "tasks": 0, "sent": 0, "back": 0, "rows_brought": 0}
    before, compute = dask_rows.DaskRows._parts, dask.compute
    dumped, sizes, whole = dask_rows._dumped, list[int](), [False]

    def measured(given: Any) -> bytes:
        found = dumped(given)
        sizes.append(len(found))
        return found

    def parts(self: Any, work: Any, task: Any, state: Any, groups: Any, own: Any) -> Any:
        sizes.clear()
        found = before(self, work, task, state, groups, own)
        whole[0] = getattr(task, "__name__", "") != "rows_at"
        if whole[0]:
            sums["passes"] += 1
            sums["tasks"] += len(groups)
            # the state goes with each task, or once to each worker where it is large
            times = len(groups) if sizes[0] <= dask_rows.WITH_TASKS else int(workers)
            sums["sent"] += times * sizes[0] + sum(sizes[1:])
        return found

    def computed(*given: Any, **options: Any) -> Any:
        found = compute(*given, **options)
        sums["back" if whole[0] else "rows_brought"] += len(pickle.dumps(found))
        return found

    with processes(int(workers)):
        data = da.from_array(X, chunks=(step, FEATURES)), da.from_array(y, chunks=step)
        dask_rows.DaskRows._parts = parts  # type: ignore[method-assign]
        dask_rows._dumped, dask.compute = measured, computed
        try:
            model(max_memory=200.0).fit(*data)
        finally:
            dask_rows.DaskRows._parts = before  # type: ignore[method-assign]
            dask_rows._dumped, dask.compute = dumped, compute
    passes = sums["passes"]
    about = {"rows": len(X), "workers": int(workers), "blocks": 32, "passes": passes}
    return {
        **about,
        "tasks": sums["tasks"] / passes,
        "sent": sums["sent"] / passes,
        "back": sums["back"] / passes,
        "rows_brought": sums["rows_brought"],
    }


def growth(n: str) -> dict[str, Any]:
    """Rows that are generated on the fly, and nowhere stored."""
    import slimsvm

    size, step = smaller(n), min(PART, 1 << 18)
    model(10).fit(*in_memory(5000))
    before, clock = peak(), Clock()
    rows = slimsvm.open_rows(lambda: batches(size, step))
    opened, read = clock.read()["cpu_seconds"], list[int]()
    rows.shown = read.append
    clock = Clock()
    fitted = model(max_memory=500.0).fit(rows)
    taken, clock = clock.read(), Clock()
    some = next(batches(step))
    score = fitted.score(*some)
    return {
        "rows": size,
        "cpu_seconds_of_a_pass_alone": opened,
        "passes": len(read) / rows.n_blocks,
        **taken,
        "accuracy": score,
        "megabytes_above": peak() - before,
        "cpu_seconds_to_predict_a_block": clock.read()["cpu_seconds"],
    }


def cells(quick: bool) -> list[Cell]:
    """What there is to measure."""
    if quick:
        return [Cell("growth/1e5", "growth", ("1e5",))]
    long: dict[str, Any] = {"seconds": 7200.0, "gigabytes": 20.0}
    night: dict[str, Any] = long | {"seconds": 24000.0}  # two fits of three hours at most
    found = [
        Cell("memory-and-time/2e7", "memory_and_time", ("2e7", "500"), **long),
        Cell("in-memory/2e7", "fit_in_memory", ("2e7", "500"), **long),
        Cell("equal-bits/2e6", "equal_bits", ("2e6",), **long),
        Cell("dask/2e6", "on_dask", ("2e6", "2"), **long),
        Cell("killed/2e5", "killed", ("2e5", "50"), **long),
        Cell("killed/exact", "killed", ("1e4", "10", "exact"), **long),
        Cell("any-time/3e6", "at_any_time", ("3e6", "60"), **long),
        Cell("covtype/100000", "covtype_from_files", ("100000", "2000"), **long),
        Cell("covtype/464810", "covtype_from_files", ("464810", "2000", "10800"), **night),
    ]
    found += [Cell("kills/exact", "kills", ("exact", "20000", "34"), **long)]
    found += [
        Cell(f"kills/{kind}", "kills", (kind, size, "17"), **long)
        for kind, size in (
            ("sparse", "50000"),
            ("rows", "50000"),
            ("linear", "20000"),
            ("structural", "2000"),
        )
    ]
    found += [Cell(f"bytes/{w}", "bytes_sent", ("4e5", str(w)), **long) for w in (2, 4, 8)]
    found += [Cell("bytes/2/1e5", "bytes_sent", ("1e5", "2"), **long)]  # whatever the rows
    return found + [Cell(f"growth/{n}", "growth", (n,), **long) for n in ("1e6", "1e7", "1e8")]


RESULTS = Path(__file__).parent / "results" / "scale.json"


def _said(key: str, of: dict[str, Any], others: dict[str, Any]) -> str:
    """A measurement in words."""
    kind = key.split("/")[0]
    if kind == "memory-and-time":
        here = others.get("in-memory/2e7", {})
        text = (
            f"{of['rows']:,} rows in Parquet, 100 vectors, 500 MB: peak "
            f"{of['megabytes_above']:.0f} MB above the import ({of['allowed']:.0f} allowed), "
            f"{of['cpu_seconds']:.0f} CPU s in {of['passes']:.1f} passes "
            f"(reading once: {of['cpu_seconds_of_reading_once']:.1f}), "
            f"accuracy {100 * of['accuracy']:.2f} %"
        )
        if "accuracy" in here:
            text += f"; in memory {here['cpu_seconds']:.0f} CPU s, {100 * here['accuracy']:.2f} %"
        return text
    if kind == "equal-bits":
        right = [name for name, same in of["equal"].items() if same]
        return (
            f"{of['rows']:,} rows: equal bits by {', '.join(right)} ({len(right)} of "
            f"{len(of['equal'])}); `fit(X, y)` differs by {of['plain_differs_by']:.1e}"
        )
    if kind == "dask":
        return (
            f"{of['rows']:,} rows: Dask with two workers {of['dask']:.1f} s, two threads in memory "
            f"{of['memory']:.1f} s, ratio {of['dask'] / of['memory']:.2f}"
        )
    if kind == "killed":
        return (
            f"{of['fits']} fits of {of['rows']:,} rows, a random worker killed in each: "
            f"{of['equal']} with equal bits, slowest {of['slowest']:.2f} times the usual time"
        )
    if kind == "any-time":
        return (
            f"`SVC(max_time=60)` on {of['rows']:,} rows: {100 * of['accuracy']:.2f} % after "
            f"{of['seconds']:.0f} s; best of subsets that end in that time {100 * of['best']:.2f} %"
        )
    if kind == "covtype":
        ended = " ".join(
            f"The fit {where} says: {of[name]}"
            for where, name in (("in memory", "memory_status"), ("from files", "files_status"))
            if not of.get(name, "Converged").startswith("Converged")
        )
        above = of.get("files_megabytes_above")
        return (
            f"`SVC` on {of['rows']:,} rows of covtype{' to the end' * (not ended)}: "
            f"{of['memory_cpu_seconds']:,.0f} CPU s in memory, {of['files_cpu_seconds']:,.0f} from "
            f"Parquet in {of['passes']:.0f} passes"
            + (f" with {above:,.0f} MB above the import" if above else "")
            + f"; objectives differ by {of['objective_differs_by']:.1e}"
            + (f" ({ended})" if ended else "")
        )
    if kind == "kills":
        kind = key.split("/")[1].replace("rows", "sparse (streamed)")
        return (
            f"{kind} fit, checkpoint every {of['every']:g} s, {of['kills']} kills: "
            f"{of['finished']} finished, {of['unreadable']} unreadable files, most lost "
            f"{of['most_lost']:.1f} s"
        )
    if kind == "bytes":
        return (
            f"{of['workers']} workers, {of['rows']:,} rows in {of['blocks']} partitions: "
            f"{of['passes']} passes of {of['tasks']:.0f} tasks, {of['sent'] / 1e3:,.0f} kB sent "
            f"and {of['back'] / 1e3:,.1f} kB brought back in a pass; once, "
            f"{of['rows_brought'] / 1e6:,.0f} MB of rows for the sample"
        )
    return (
        f"{of['rows']:,} rows generated on the fly: {of['cpu_seconds']:.1f} CPU s in "
        f"{of['passes']:.1f} passes ({of['cpu_seconds_of_a_pass_alone']:.1f} CPU s to generate "
        f"once), {of['megabytes_above']:.0f} MB, accuracy {100 * of['accuracy']:.2f} %"
    )


def table() -> str:
    """The stored results in Markdown."""
    cells = json.loads(RESULTS.read_text())["cells"] if RESULTS.exists() else {}
    done = {key: of for key, of in cells.items() if "rows" in of or "kills" in of}  # not failed
    lines = [f"- {_said(key, of, cells)}." for key, of in done.items() if key != "in-memory/2e7"]
    return "\n".join(lines)


TABLES = {"scale": table}
