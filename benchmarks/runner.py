"""Measures the cells of a benchmark, each in a process of its own, within limits.

NAME is a module of this folder, or all; quick is the default:

    python -m benchmarks run NAME --quick | --full
    python -m benchmarks run NAME --list               the cells, and which of them are stored
    python -m benchmarks run NAME --full --only letter --again

A benchmark is a module with a function ``cells(quick)``, which returns all there is to measure in
the order of the run. A cell names a function of that module and its words; the function returns
numbers. A run that was killed goes on where it was: what is stored is not measured again, failures
included, unless --again (all) or --retry (failures) says so. Quick runs keep their cells in a
folder of their own, for they are about this computer; those of full runs are part of the
repository.

A process that takes more seconds or memory than its cell allows is ended, and the cell is stored as
failed, as is one whose function raises: "failed" then has the last line of the message. Besides
what the function returns, "measured" has when, in which run and on which computer (key of
"machines" in the same file: processor, cores, versions), load averages before and after, peak
memory and CPU seconds of the whole process with loading and warm-up, and the seed. A cell with a
peer has "ratio": seconds of the peer divided by its own, if both are of the same run.
"""

from __future__ import annotations

import argparse
import contextlib
import fnmatch
import importlib
import importlib.metadata
import json
import math
import os
import platform
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

RESULTS = Path(__file__).parent / "results"
PACKAGES = (
    "slimsvm",
    "numpy",
    "scipy",
    "numba",
    "scikit-learn",
    "scikit-learn-intelex",
    "libsvm-official",
    "thundersvm-cpu",
)
LOOK = 0.05  # seconds between two looks at a process
# how many times its seconds a process has on a busy computer, if it could not use its CPU
PATIENCE = 4
TOUCHED_GB = 3


@dataclass(frozen=True)
class Cell:
    """One measurement.

    ``key`` is its name in the results; ``function`` of the module is called with ``words``.
    ``seconds`` and ``gigabytes`` are limits of the whole process; other work on the computer does
    not use up the former, as long as it leaves a quarter of the time. With ``repeat`` k the cell is
    measured for the (k+1)st time: the results have all seconds, and the least; a cell that took
    more than ``enough`` seconds is not repeated. ``touch``: fill and release memory first, since on
    a virtual server the very first touch of a page can cost ten times more than any later one, and
    would decide a race by chance. ``several``: the function returns cells by their keys.
    """

    key: str
    function: str
    words: tuple[str, ...] = ()
    seconds: float = 600.0
    gigabytes: float = 12.0
    peer: str | None = None
    repeat: int = 0
    enough: float = math.inf
    touch: bool = False
    several: bool = False
    seed: int = 0


# -- the computer ----------------------------------------------------------------------------------


def facts() -> dict[str, Any]:
    """Processor, cores and versions."""
    versions = {}
    for package in PACKAGES:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            versions[package] = importlib.metadata.version(package)
    if "slimsvm" not in versions:  # from the source tree, not installed
        versions["slimsvm"] = importlib.import_module("slimsvm").__version__
    model = next(
        (
            line.split(":")[1].strip()
            for line in _lines("/proc/cpuinfo")
            if line.startswith("model name")
        ),
        platform.processor(),
    )
    return {
        "cpu": model,
        "cores": os.cpu_count(),
        "system": platform.system(),
        "python": platform.python_version(),
        **versions,
    }


def memory_mb(field: str, process: str = "self") -> float:
    """Resident memory of a process (VmRSS) or its peak (VmHWM), in megabytes; NaN if unknown."""
    for line in _lines(f"/proc/{process}/status"):
        if line.startswith(field + ":"):
            return int(line.split()[1]) / 1024
    return float("nan")


def forget_peak() -> None:
    """Let VmHWM begin anew."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def touch_memory() -> None:
    """Fill and release memory."""
    np.empty(TOUCHED_GB * 2**30, np.uint8)[::4096] = 1


def _cpu_seconds(process: int) -> float:
    """CPU seconds of a process so far; infinite where the system does not say."""
    for line in _lines(f"/proc/{process}/stat"):
        user, system = line.rsplit(")", 1)[1].split()[11:13]
        return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")
    return math.inf


def _lines(path: str) -> list[str]:
    try:
        return Path(path).read_text().splitlines()
    except OSError:
        return []


def _load() -> float:
    return round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else float("nan")


# -- one cell --------------------------------------------------------------------------------------


def measure(module: str, cell: Cell) -> dict[str, Any]:
    """The cell, from a process of its own; {"failed": [message]} if it comes to nothing."""
    if cell.touch:
        touch_memory()
    with tempfile.TemporaryDirectory() as folder:
        answer, output = Path(folder, "answer.json"), Path(folder, "output.txt")
        words = [
            sys.executable,
            "-u",
            "-m",
            "benchmarks.runner",
            str(answer),
            str(cell.seed),
            module,
            cell.function,
            *cell.words,
        ]
        with output.open("wb") as file:
            child = subprocess.Popen(
                words, stdin=subprocess.PIPE, stdout=file, stderr=subprocess.STDOUT
            )
        try:
            message, peak = _watch(child, cell)
        finally:
            if child.poll() is None:  # Ctrl-C
                child.kill()
            child.wait()
            child.stdin.close()  # type: ignore[union-attr]
        if answer.exists() and not message:
            result: dict[str, Any] = json.loads(answer.read_text())
            result["own"]["peak_mb"] = max(result["own"]["peak_mb"], peak or 0.0)
            return result
        if not message and child.returncode < 0:
            message = f"ended by {signal.Signals(-child.returncode).name}"
        last = [line for line in output.read_text(errors="replace").splitlines() if line.strip()][
            -1:
        ]
        return {
            "failed": [message]
            if message
            else [line.strip()[:300] for line in last] or ["no answer"],
            "peak_mb": peak,
        }


def _watch(child: subprocess.Popen[bytes], cell: Cell) -> tuple[str, float | None]:
    """Wait for the end of a process, or end it at its limits.

    Returns why it was ended, and its peak memory as far as seen.
    """
    used, peak, last = 0.0, 0.0, time.monotonic()
    while child.poll() is None:
        time.sleep(LOOK)
        now = time.monotonic()
        used += min(now - last, 20 * LOOK)  # not the time for which all of us were suspended
        last = now
        seen = memory_mb("VmHWM", str(child.pid))
        peak = max(peak, 0.0 if math.isnan(seen) else seen)
        # the peak may have been forgotten in between: both are looked at
        resident = memory_mb("VmRSS", str(child.pid))
        late = used > cell.seconds and (
            _cpu_seconds(child.pid) > cell.seconds or used > PATIENCE * cell.seconds
        )
        if late or resident > 1024 * cell.gigabytes or peak > 1024 * cell.gigabytes:
            child.kill()
            child.wait()
            over = f"{cell.seconds:g} s" if late else f"{cell.gigabytes:g} GB of memory"
            return f"more than {over}", peak or None
    return "", peak or None


def _child(answer: str, seed: str, module: str, function: str, *words: str) -> None:
    """What the process of a cell does."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    random.seed(int(seed))
    np.random.seed(int(seed))  # noqa: NPY002 -- for libraries that draw from it
    called: Callable[..., dict[str, Any]] = getattr(importlib.import_module(module), function)
    result = called(*words)
    own = {
        "peak_mb": round(memory_mb("VmHWM"), 1),
        "cpu_seconds": round(time.process_time(), 3),
        "seed": int(seed),
    }
    text = json.dumps({"result": result, "own": own})
    Path(answer).with_suffix(".part").write_text(text)
    Path(answer).with_suffix(".part").rename(answer)
    sys.stdout.flush()
    os._exit(0)  # libraries may crash at their end: not our concern


def _end_with_parent() -> None:
    """End this process when the run is gone, since a killed run must not leave a long fit behind.

    The pipe is closed when its other end is gone.
    """
    os.read(0, 1)
    os._exit(1)


# -- the store -------------------------------------------------------------------------------------


class Store:
    """The file of a benchmark: cells by their keys, written whole after every cell."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self) -> dict[str, Any]:
        """As it is now: another run may have written meanwhile."""
        if not self.path.exists():
            return {"cells": {}}
        try:
            stored: dict[str, Any] = json.loads(self.path.read_text(encoding="utf-8"))
            cells = stored["cells"].values()
            if not all(isinstance(cell, dict) for cell in cells):
                error = "a cell is no object"
            elif not all(isinstance(cell.get("all_seconds", []), list) for cell in cells):
                error = "the seconds of a cell are no list"
            else:
                return stored
        except (ValueError, KeyError, TypeError, AttributeError) as trouble:
            error = f"{type(trouble).__name__}: {trouble}"
        raise SystemExit(
            f"{self.path} does not hold the results of a benchmark ({error}). Repair it, or move "
            "it away to begin anew."
        )

    def check(self) -> None:
        """Raise if there can be no file: before the first cell, which may take hours."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=self.path.parent):
                pass
        except OSError as error:
            raise SystemExit(
                f"{self.path.parent}: results cannot be written there ({error.strerror}). Name "
                "another folder with --results."
            ) from error

    def write(self, stored: dict[str, Any]) -> None:
        """All of it, or nothing."""
        # here: the processes of cells begin more quickly without it
        from slimsvm.persistence.atomic import replacing

        self.path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(self.path, text=True) as file:
            file.write(json.dumps(stored, indent=1))

    def begin(self, cells: list[Cell], again: bool, retry: bool) -> str:
        """Forget what is to be measured anew, and return the name of the run.

        It is the old one if part of that is there.
        """
        stored = self.read()
        for cell in cells:
            for key in _keys(cell, stored["cells"]):
                if again or (retry and "failed" in stored["cells"][key]):
                    del stored["cells"][key]
        old = [
            stored["cells"][key].get("measured", {}).get("run")
            for cell in cells
            for key in _keys(cell, stored["cells"])
        ]
        if again or retry:
            self.write(stored)
        return max((run for run in old if run), default=time.strftime("%Y-%m-%dT%H:%M:%S"))

    def has(self, cell: Cell) -> bool:
        """Whether the cell is measured, so often as it asks for."""
        cells = self.read()["cells"]
        found = [cells[key] for key in _keys(cell, cells)]
        if not found or not cell.repeat:
            return bool(found)
        times = found[0].get("all_seconds", [])
        return (
            "failed" in found[0]
            or len(times) > cell.repeat
            or min(times, default=0.0) > cell.enough
        )

    def keep(
        self, cell: Cell, result: dict[str, Any], measured: dict[str, Any], computer: dict[str, Any]
    ) -> dict[str, Any]:
        """Store what was measured; returns it."""
        stored = self.read()
        name = f"{zlib.crc32(json.dumps(computer, sort_keys=True).encode()):08x}"
        stored["machine"] = computer
        stored.setdefault("machines", {})[name] = computer
        cells = stored["cells"]
        own = result if cell.several and "failed" not in result else {cell.key: result}
        for key, value in own.items():
            before = cells.get(key, {}) if cell.repeat else {}
            if "seconds" in value and isinstance(value["seconds"], int | float):
                every = [*before.get("all_seconds", []), value["seconds"]]
                value = {**value, **before, "seconds": min(every), "all_seconds": every}
            # a repeat that fails does not take back what was measured
            if "failed" not in value or not before:
                cells[key] = {**value, "measured": {"machine": name, **measured}}
            if cell.peer and cell.peer != key and "failed" not in cells[key]:
                cells[key]["peer"] = cell.peer
        # the peer may come after those that name it
        for key in (key for key in cells if cell.key in (key, cells[key].get("peer"))):
            _compare(cells[key], cells.get(cells[key].get("peer"), {}))
        self.write(stored)
        return {key: cells[key] for key in own}


def _compare(cell: dict[str, Any], peer: dict[str, Any]) -> None:
    """The ratio to the peer, where both are of one run."""
    cell.pop("ratio", None)
    same = cell.get("measured", {}).get("run", "") == peer.get("measured", {}).get("run")
    if same and isinstance(cell.get("seconds"), float) and isinstance(peer.get("seconds"), float):
        cell["ratio"] = peer["seconds"] / cell["seconds"]


def _keys(cell: Cell, cells: dict[str, Any]) -> list[str]:
    return [
        key for key in cells if key == cell.key or (cell.several and key.startswith(cell.key + "/"))
    ]


def not_measured(cells: list[Cell], stored: dict[str, Any], later: dict[str, str]) -> list[str]:
    """Lines of a list: the cells that are not stored, and why, by patterns of their keys."""
    left = [cell.key for cell in cells if cell.key not in stored]
    lines = []
    for pattern, why in later.items():
        own = fnmatch.filter(left, pattern)
        left = [key for key in left if key not in own]
        lines += [f"- `{pattern}` ({len(own)}): {why}"] if own else []
    return lines + [f"- `{key}`" for key in left]


# -- the run ---------------------------------------------------------------------------------------


def run(
    module: str, cells: list[Cell], path: Path, *, again: bool = False, retry: bool = False
) -> None:
    """Measure what is not stored yet."""
    store, computer = Store(path), facts()
    store.check()
    name = store.begin(cells, again, retry)
    waiting = [cell for cell in cells if not store.has(cell)]
    print(
        f"{path.stem}: {len(cells)} measurements, {len(cells) - len(waiting)} of them stored "
        f"already in {path}",
        flush=True,
    )
    for cell in _progress(path.stem, waiting):
        if store.has(cell):  # a repeat that is not worth it, or another run was here
            continue
        load, begin = _load(), time.strftime("%Y-%m-%dT%H:%M:%S")
        answer = measure(module, cell)
        own = answer.get("own") or {"peak_mb": answer.pop("peak_mb", None), "seed": cell.seed}
        measured = {"run": name, "at": begin, "load": [load, _load()], **own}
        kept = store.keep(cell, answer.get("result", answer), measured, computer)
        for key, value in kept.items():
            print("  ", key, _line(value), flush=True)


def _line(cell: dict[str, Any]) -> str:
    """The numbers of a cell that one wants to see at once."""
    if "failed" in cell:
        return "FAILED: " + " ".join(map(str, cell["failed"]))
    shown = []
    for field, form in (
        ("seconds", "{:.2f} s"),
        ("cpu_seconds", "{:.2f} CPU s"),
        ("accuracy", "accuracy {:.4f}"),
        ("ratio", "{:.2f} x peer"),
    ):
        value = cell.get(field)
        value = np.mean(value) if isinstance(value, list) and value else value
        if isinstance(value, int | float | np.floating):
            shown.append(form.format(value))
    peak = cell.get("measured", {}).get("peak_mb")
    return ", ".join([*shown, *([f"{peak:.0f} MB"] if peak else [])]) or "done"


def _progress(name: str, cells: list[Cell]) -> Iterator[Cell]:
    """The cells one by one, behind a bar if there is a terminal and rich is installed."""
    if not cells:
        return
    try:
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            Progress,
            TextColumn,
            TimeElapsedColumn,
            TimeRemainingColumn,
        )
    except ImportError:
        yield from cells
        return
    if not (console := Console()).is_terminal:
        yield from cells
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console) as bar:
        task = bar.add_task(name, total=len(cells))
        for cell in cells:
            bar.update(task, description=f"{name}: {cell.key}")
            yield cell
            bar.advance(task)


def main(names: tuple[str, ...], words: list[str] | None = None) -> None:
    """Command line of ``python -m benchmarks run``."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks run", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("name", choices=[*names, "all"])
    size = parser.add_mutually_exclusive_group()
    size.add_argument(
        "--quick", action="store_true", help="few cells, into a folder of their own (the default)"
    )
    size.add_argument("--full", action="store_true", help="all cells")
    parser.add_argument(
        "--only",
        nargs="+",
        default=[""],
        metavar="TEXT",
        help="cells whose key contains one of these",
    )
    parser.add_argument("--skip", nargs="+", default=[], metavar="TEXT", help="but none of these")
    parser.add_argument(
        "--again", action="store_true", help="forget these cells and measure them anew"
    )
    parser.add_argument("--retry", action="store_true", help="measure those anew that failed")
    parser.add_argument(
        "--list", action="store_true", help="say what there is to measure, and stop"
    )
    parser.add_argument(
        "--results",
        type=Path,
        metavar="FOLDER",
        help="default: benchmarks/results, or its folder quick",
    )
    given = parser.parse_args(words)
    folder = given.results or (RESULTS if given.full else RESULTS / "quick")
    begin, found = time.perf_counter(), 0
    for name in names if given.name == "all" else (given.name,):
        module = f"benchmarks.{name}"
        cells = [
            cell
            for cell in importlib.import_module(module).cells(not given.full)
            if any(text in cell.key for text in given.only)
            and not any(text in cell.key for text in given.skip)
        ]
        found += len(cells)
        path = folder / f"{name}.json"
        if given.list:
            store = Store(path)
            print(
                "\n".join(
                    f"{name} {cell.key}{' (stored)' if store.has(cell) else ''}" for cell in cells
                )
            )
        elif cells:
            run(module, cells, path, again=given.again, retry=given.retry)
    if not found:
        parser.error("no cell has a key like that; --list shows them (with --full, all)")
    if not given.list:
        print(
            f"{time.perf_counter() - begin:.0f} s. The page of it: python -m benchmarks report "
            f"--results {folder}"
        )


if __name__ == "__main__":
    _child(*sys.argv[1:])
