"""How quickly kernel values are made, beside what the machine could do: matrix products alone and exponentials alone.

    python -m benchmarks.kernel_rate [--threads N] [--rows 20000] [--seconds 0.3]

For m rows against n columns of d features (RBF kernel, float32), in 1e9 kernel values a second:

    tiles        for_each_tile with a consumer that does nothing: products and exponentials
    sums         accumulate: the same, and every value multiplied and added up; what a solver does with kernel rows
    sgemm        BLAS's own product of the same shape, on as many threads of its own
    exp          exp_rows on tiles that stay in cache, on as many threads
    of sgemm     tiles / sgemm
    of both      tiles / (1 / (1/sgemm + 1/exp)): 100 % is products and exponentials one after the other, and nothing else

GFLOP/s counts the products only, 2 d a value. The best of several repetitions counts: what is slower was disturbed by something else.
"""

from __future__ import annotations

import argparse
import os
import platform
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
import numpy as np
import scipy
from threadpoolctl import threadpool_info, threadpool_limits

from slimsvm.forms import exp_rows
from slimsvm.kernels import RBF
from slimsvm.threads import parallel
from slimsvm.tiles import Operand, Strips, accumulate, for_each_tile, ready

FEATURES, ROWS = (2, 22, 123, 784), (50, 500, 2000)
TILE = 256, 1024  # one megabyte in float32, as the tiles have it


def rate(work: Callable[[], Any], n_values: int, seconds: float) -> float:
    """Values a second in the best repetition; repeated for about so many seconds after a warm-up."""
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
    return rate(lambda: for_each_tile(rows, strips, lambda *tile: None, threads), rows.n * columns.n, seconds)


def rate_of_sums(rows: Operand, columns: Operand, threads: int, seconds: float) -> float:
    strips, delta, s = Strips(columns), np.full(rows.n, 1e-3), np.zeros(columns.n)
    return rate(lambda: accumulate(rows, strips, delta, s, threads), rows.n * columns.n, seconds)


def rate_of_sgemm(rows: Operand, columns: Operand, threads: int, seconds: float) -> float:
    """BLAS as it likes it: one large product into memory that is there already, with its own threads."""
    A, B = np.ascontiguousarray(rows.X), np.ascontiguousarray(columns.X)
    out = np.zeros((rows.n, columns.n), np.float32)
    with threadpool_limits(threads, user_api="blas"):
        return rate(lambda: np.dot(A, B.T, out=out), out.size, seconds)


def rate_of_exp(threads: int, seconds: float) -> float:
    """One tile for each thread, again and again; the argument is negative, as a squared distance makes it."""
    tiles = [np.zeros(TILE, np.float32) for _ in range(threads)]
    row, column = np.ones(TILE[0], np.float32), np.ones(TILE[1], np.float32)
    again = 16

    def work(k: int) -> None:
        for _ in range(again):
            exp_rows(tiles[k], -0.5, -0.5, row, column)

    return rate(lambda: parallel(work, threads, threads), threads * again * TILE[0] * TILE[1], seconds)


def machine(threads: int) -> str:
    """The facts without which the numbers mean nothing."""
    model = platform.processor() or platform.machine()
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        model = next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), model)
    except OSError:
        pass
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    blas = {
        f"{lib['internal_api']} {lib['version']} ({lib.get('architecture', '?')})" for lib in threadpool_info() if lib["user_api"] == "blas"
    }
    return "\n".join(
        [
            f"machine   {model}, {os.cpu_count()} cores, {allowed} allowed, {threads} threads used",
            f"blas      {', '.join(sorted(blas))}",
            f"versions  Python {platform.python_version()}, NumPy {np.__version__}, SciPy {scipy.__version__}, Numba {numba.__version__}",
            f"load      {load_average()}",
        ]
    )


def load_average() -> str:
    return ", ".join(f"{value:.2f}" for value in os.getloadavg()) + " (1, 5, 15 minutes)" if hasattr(os, "getloadavg") else "unknown"


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.kernel_rate", description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1, help="threads for all contestants (all cores)")
    parser.add_argument("--rows", type=int, default=20_000, metavar="N", help="number of columns n of the kernel matrix (20,000)")
    parser.add_argument("--seconds", type=float, default=0.3, help="time for each measurement (0.3)")
    options = parser.parse_args(arguments)
    threads, n, seconds = max(1, options.threads), options.rows, options.seconds

    print(machine(threads))
    exponentials = rate_of_exp(threads, seconds)
    print(f"exp       {exponentials / 1e9:.2f}e9 values/s, float32, {threads} threads\n")
    print(f"{'':>11}  {'1e9 kernel values a second':^27}  {'GFLOP/s':^22}  {'tiles in % of':^15}")
    print(f"{'d':>4} {'m':>6}  {'tiles':>8} {'sums':>8} {'sgemm':>8}   {'tiles':>7} {'sums':>6} {'sgemm':>7}  {'sgemm':>7} {'both':>7}")
    rng = np.random.default_rng(0)
    for d in FEATURES:
        X = rng.standard_normal((n, d), dtype=np.float32)
        columns = ready(RBF(0.5 / d), X, dtype=np.dtype(np.float32))
        for m in ROWS:
            rows = columns.take(slice(0, min(m, n)))
            tiles, sums, products = (measure(rows, columns, threads, seconds) for measure in (rate_of_tiles, rate_of_sums, rate_of_sgemm))
            both = 1.0 / (1.0 / products + 1.0 / exponentials)
            flops = [2e-9 * d * value for value in (tiles, sums, products)]
            print(
                f"{d:4d} {rows.n:6d}  {tiles / 1e9:8.3f} {sums / 1e9:8.3f} {products / 1e9:8.3f}   "
                f"{flops[0]:7.1f} {flops[1]:6.1f} {flops[2]:7.1f}  {100 * tiles / products:6.0f}% {100 * tiles / both:6.0f}%",
                flush=True,
            )
    print(f"\nload      {load_average()} at the end")


if __name__ == "__main__":
    main()
