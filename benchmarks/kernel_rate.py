"""How quickly kernel values are computed, beside matrix products alone and exponentials alone.

    python -m benchmarks run kernel_rate --full    into benchmarks/results/kernel_rate.json
    python -m benchmarks tables kernel_rate [--show]

For m rows against 20,000 columns of d features (RBF kernel, float32), in 1e9 kernel values a
second:

    tiles        for_each_tile with a consumer that does nothing: products and exponentials
    sums         accumulate: the same, and every value multiplied and added up; what a solver does
                 with kernel rows
    sgemm        BLAS's own product of the same shape, on as many threads of its own
    exp          exp_rows on tiles that stay in cache, on as many threads
    of sgemm     tiles / sgemm
    of both      tiles / (1 / (1/sgemm + 1/exp)): 100 % is products and exponentials one after the
                 other, and nothing else

GFLOP/s counts the products only, 2 d a value. All cores. The best of several repetitions counts:
what is slower was disturbed by something else.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_info, threadpool_limits

from benchmarks.runner import Cell
from slimsvm.forms import exp_rows
from slimsvm.kernel_sums import accumulate
from slimsvm.kernels import RBF
from slimsvm.threads import parallel
from slimsvm.tiles import Operand, Strips, for_each_tile, prepare

RESULTS = Path(__file__).parent / "results" / "kernel_rate.json"
FEATURES, ROWS, COLUMNS = (2, 22, 123, 784), (50, 500, 2000), 20_000
SECONDS = 0.3  # for each measurement
TILE = 256, 1024  # one megabyte in float32, as the tiles have it


def rate(work: Callable[[], Any], n_values: int, seconds: float) -> float:
    """Values a second in the best repetition, during about that many seconds after a warm-up."""
    work()
    best, end = np.inf, time.perf_counter() + seconds
    while True:
        begin = time.perf_counter()
        work()
        now = time.perf_counter()
        best = min(best, now - begin)
        if now >= end:
            return n_values / best


def rate_of_tiles(rows: Operand, columns: Operand, threads: int, seconds: float) -> float:
    strips = Strips(columns)
    return rate(
        lambda: for_each_tile(rows, strips, lambda *tile: None, threads),
        rows.n * columns.n,
        seconds,
    )


def rate_of_sums(rows: Operand, columns: Operand, threads: int, seconds: float) -> float:
    strips, delta, s = Strips(columns), np.full(rows.n, 1e-3), np.zeros(columns.n)
    return rate(lambda: accumulate(rows, strips, delta, s, threads), rows.n * columns.n, seconds)


def rate_of_sgemm(rows: Operand, columns: Operand, threads: int, seconds: float) -> float:
    """BLAS at its best: one large product into memory that is there already, on its own threads."""
    A, B = np.ascontiguousarray(rows.X), np.ascontiguousarray(columns.X)
    out = np.zeros((rows.n, columns.n), np.float32)
    with threadpool_limits(threads, user_api="blas"):
        return rate(lambda: np.dot(A, B.T, out=out), out.size, seconds)


def rate_of_exp(threads: int, seconds: float) -> float:
    """One tile for each thread, again and again; arguments are negative, as those of the RBF."""
    tiles = [np.zeros(TILE, np.float32) for _ in range(threads)]
    row, column = np.ones(TILE[0], np.float32), np.ones(TILE[1], np.float32)
    again = 16

    def work(k: int) -> None:
        for _ in range(again):
            exp_rows(tiles[k], -0.5, -0.5, row, column)

    return rate(
        lambda: parallel(work, threads, threads), threads * again * TILE[0] * TILE[1], seconds
    )


def rates(d: str) -> dict[str, Any]:
    """All rates for this number of features."""
    threads, rng = os.cpu_count() or 1, np.random.default_rng(0)
    columns = prepare(
        RBF(0.5 / int(d)),
        rng.standard_normal((COLUMNS, int(d)), dtype=np.float32),
        dtype=np.dtype(np.float32),
    )
    found: dict[str, Any] = {"threads": threads, "exp": rate_of_exp(threads, SECONDS)}
    for m in ROWS:
        rows = columns.take(slice(0, m))
        found[f"m={m}"] = [
            measure(rows, columns, threads, SECONDS)
            for measure in (rate_of_tiles, rate_of_sums, rate_of_sgemm)
        ]
    blas = (lib for lib in threadpool_info() if lib["user_api"] == "blas")
    return found | {
        "blas": sorted(
            {
                f"{lib['internal_api']} {lib['version']} ({lib.get('architecture', '?')})"
                for lib in blas
            }
        )
    }


def cells(quick: bool) -> list[Cell]:
    """What there is to measure."""
    return [Cell(f"d={d}", "rates", (str(d),)) for d in (FEATURES[1:2] if quick else FEATURES)]


def table() -> str:
    """The stored results in Markdown."""
    cells = json.loads(RESULTS.read_text())["cells"]
    lines = [
        "| d | m | tiles | sums | sgemm | exp | tiles, GFLOP/s | sgemm, GFLOP/s | tiles in % of "
        "sgemm | of both |",
        "|" + "---|" * 10,
    ]
    for d in FEATURES:
        cell = cells.get(f"d={d}", {})
        for m in ROWS if "exp" in cell else ():
            tiles, sums, products = cell[f"m={m}"]
            both = 1.0 / (1.0 / products + 1.0 / cell["exp"])
            numbers = [f"{value / 1e9:.3f}" for value in (tiles, sums, products, cell["exp"])]
            numbers += [f"{2e-9 * d * value:.1f}" for value in (tiles, products)]
            lines.append(
                f"| {d} | {m:,} | "
                + " | ".join(
                    [*numbers, f"{100 * tiles / products:.0f}", f"{100 * tiles / both:.0f}"]
                )
                + " |"
            )
    known = [cell for cell in cells.values() if "blas" in cell]
    loads = [load for cell in known for load in cell["measured"]["load"]]
    if known:
        lines += [
            "",
            f"1e9 kernel values a second, {known[0]['threads']} threads; "
            f"{', '.join(known[0]['blas'])}; ",
        ]
        lines[-1] += f"load averages from {min(loads)} to {max(loads)}."
    return "\n".join(lines)


TABLES = {"kernel_rate": table}
