"""The tables and ablations of SVM-light.

They are those of Joachims (1999), "Making large-scale SVM learning practical".

    python -m benchmarks run svmlight --full    everything, into benchmarks/results/svmlight.json
    python -m benchmarks run svmlight --full --only working_set --again
    python -m benchmarks tables svmlight

``scaling``: training time, the "minimum" (the time to compute the kernel rows of the final support
vectors once, with our own tiles; that of the paper uses symmetry, ours does not) and support
vectors against the number of rows, on the paper's subsets of Adult (C = 1, gamma = 0.05) and on
parts of a sparse set, rcv1 (C = 1, gamma = 1), in place of the paper's web pages and Ohsumed, which
are not at hand. ``working_set``: its size q, by steepest descent and by the basic strategy (any
violators). ``cache``: its size, with shrinking and without. ``prefer_cached``: the rule for many
free support vectors. All on one thread, CPU seconds, float32 tiles, tolerance 1e-3 on the KKT
conditions.

The problem is the dual of :mod:`slimsvm.problems.dual_qp`, solved as SVC does. Problems of at most
2,000 variables SVC solves whole, without decomposition; so that the smallest subsets and the
smallest working sets are what they say, that rule is switched off here.
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.data import dense, load
from benchmarks.runner import Cell

RESULTS = Path(__file__).parent / "results" / "svmlight.json"
# the paper's; its last has 32,562
ADULT = (1605, 2265, 3185, 4781, 6414, 11221, 16101, 22697, 32561)
SPARSE = (1000, 2000, 4000, 8000, 14401)
SETS = {"adult": (1.0, 0.05), "rcv1": (1.0, 1.0)}  # C, gamma
ABLATED = {"adult": 11221, "rcv1": 8000}  # rows
WORKING_SETS = (2, 10, 40, 100, 400, 1024, 2000)
CACHES_MB = (2, 10, 40, 200, 1000)
BASIC_FROM = 10  # with two variables there is only the pair that violates most


def _rows(name: str, n: int) -> tuple[Any, np.ndarray]:
    X, y, _, _ = load("a9a" if name == "adult" else name)
    X = dense(X[:n]).astype(np.float32) if name == "adult" else X[:n].astype(np.float32)
    return X, np.where(y[:n] > 0, 1.0, -1.0)


def _solve(
    X: Any, sign: np.ndarray, C: float, gamma: float, cache_mb: float, **options: Any
) -> tuple[Any, Any, float]:
    from slimsvm.gram import Gram
    from slimsvm.kernels import RBF
    from slimsvm.problems.dual_qp import classification
    from slimsvm.run import run
    from slimsvm.solvers.decomposition import Decomposition
    from slimsvm.tiles import prepare

    begin = time.process_time()
    gram = Gram(prepare(RBF(gamma), X, alone=True), cache_mb * 2**20, 1)
    problem = classification(gram, sign, np.full(sign.size, C))
    result = run(Decomposition(**options), problem, tol=1e-3)
    return problem, result, time.process_time() - begin


def fit(name: str, n: str, cache_mb: str = "1000", **options: Any) -> dict[str, Any]:
    """Solve one problem and measure; the minimum, too."""
    from slimsvm.solvers import decomposition
    from slimsvm.tiles import Strips, accumulate, prepare

    decomposition.WHOLE = decomposition.EXACT = 0  # see above
    (C, gamma), (X, sign) = SETS[name], _rows(name, int(n))
    # every compiled function is loaded
    _solve(X[:3000], sign[:3000], C, gamma, 1.0, **{**options, "working_set": 256})
    problem, result, seconds = _solve(X, sign, C, gamma, float(cache_mb), **options)
    a = result.model.a
    support = np.flatnonzero(a)
    rows = prepare(problem.gram.operand.kernel, X)
    part, columns = rows.take(support), Strips(rows)
    least = np.inf
    for _ in range(2):
        begin = time.process_time()
        accumulate(part, columns, np.ones(part.n), np.zeros(rows.n), 1)
        least = min(least, time.process_time() - begin)
    return {
        "cpu_seconds": seconds,
        "minimum": least,
        "n_support": int(support.size),
        "n_bounded": int(np.count_nonzero(a >= problem.upper)),
        "objective": float(result.certificate.objective),
        "violation": float(result.certificate.violation),
        "kernel_values": int(problem.gram.n_values),
        "of_the_minimum": problem.gram.n_values / max(1, support.size * sign.size),
        "converged": bool(result.status.converged),
    }


def working_set(name: str, n: str, q: str, strategy: str) -> dict[str, Any]:
    """The size of the working set, and how it is chosen."""
    return fit(name, n, working_set=int(q), selection=strategy)


def cache(name: str, n: str, cache_mb: str, shrinking: str, q: str = "1024") -> dict[str, Any]:
    """The size of the cache, with shrinking and without."""
    return fit(name, n, cache_mb, shrinking=shrinking == "shrinking", working_set=int(q))


def prefer_cached(name: str, n: str, cache_mb: str, rule: str) -> dict[str, Any]:
    """At least half of the new variables must have cached rows."""
    return fit(name, n, cache_mb, prefer_cached=rule == "cached")


def cells(quick: bool) -> list[Cell]:
    """What there is to measure."""
    limit, found = 120.0, []
    sizes = {"adult": ADULT[:6:2] if quick else ADULT, "rcv1": SPARSE[:3:2] if quick else SPARSE}
    for name, several in sizes.items():
        found += [Cell(f"scaling/{name}/{n}", "fit", (name, str(n)), limit) for n in several]
    for name, n in {"adult": 3185}.items() if quick else ABLATED.items():
        for strategy in ("steepest", "basic"):
            found += [
                Cell(
                    f"working_set/{name}/{strategy}/{q}",
                    "working_set",
                    (name, str(n), str(q), strategy),
                    limit,
                )
                for q in (WORKING_SETS[1::2] if quick else WORKING_SETS)
                if strategy == "steepest" or q >= BASIC_FROM
            ]
        for kind in ("shrinking", "no_shrinking"):
            found += [
                Cell(f"{what}/{name}/{kind}/{mb}", "cache", (name, str(n), str(mb), kind, q), limit)
                for what, q in (("cache", "1024"), ("cache_small_sets", "10"))
                for mb in (CACHES_MB[:1] if quick else CACHES_MB)
            ]
        for rule in () if quick else ("any", "cached"):
            found += [
                Cell(
                    f"prefer_cached/{name}/{rule}/{mb}",
                    "prefer_cached",
                    (name, str(n), str(mb), rule),
                    limit,
                )
                for mb in (10, 40)
            ]
    return found


def _exponent(points: list[tuple[float, float]]) -> str:
    """Slope of the line through the logarithms."""
    x, y = np.log(np.array(points)).T
    return f"{np.polyfit(x, y, 1)[0]:.2f}"


def _shown(cell: dict[str, Any]) -> str:
    if "failed" in cell:
        return "failed: " + " ".join(cell["failed"])
    if not cell:
        return ""
    return f"{cell['cpu_seconds']:.2f} ({cell['of_the_minimum']:.1f})" + (
        "" if cell["converged"] else " [not converged]"
    )


def table() -> str:
    """The stored results in Markdown."""
    cells = json.loads(RESULTS.read_text())["cells"]
    lines: list[str] = []
    for name, sizes in (("adult", ADULT), ("rcv1", SPARSE)):
        C, gamma = SETS[name]
        rows = [
            (n, cells[f"scaling/{name}/{n}"])
            for n in sizes
            if "cpu_seconds" in cells.get(f"scaling/{name}/{n}", {})
        ]
        if len(rows) < 2:
            continue
        lines += [
            f"{name.capitalize() if name == 'adult' else name}, C={C:g}, gamma={gamma:g}:",
            "",
        ]
        lines += [
            "| rows | CPU seconds | minimum | ratio | kernel values / those of the minimum | SVs "
            "| bounded SVs |",
            "|---|---|---|---|---|---|---|",
        ]
        for n, cell in rows:
            numbers = (
                f"{cell['cpu_seconds']:.3f} | {cell['minimum']:.3f} | "
                f"{cell['cpu_seconds'] / cell['minimum']:.1f}"
            )
            lines.append(
                f"| {n:,} | {numbers} | {cell['of_the_minimum']:.2f} | {cell['n_support']:,} | "
                f"{cell['n_bounded']:,} |"
            )
        time_, least = (
            _exponent([(n, cell[field]) for n, cell in rows])
            for field in ("cpu_seconds", "minimum")
        )
        lines += ["", f"Exponents in the number of rows: time {time_}, minimum {least}.", ""]
    lines += _ablation(
        cells, "working_set", "Size of the working set q", ("steepest", "basic"), WORKING_SETS
    )
    lines += _ablation(
        cells, "cache", "Megabytes of cache, q = 1,024", ("shrinking", "no_shrinking"), CACHES_MB
    )
    lines += _ablation(
        cells,
        "cache_small_sets",
        "Megabytes of cache, q = 10",
        ("shrinking", "no_shrinking"),
        CACHES_MB,
    )
    lines += _ablation(
        cells, "prefer_cached", "Megabytes of cache, new variables", ("any", "cached"), (10, 40)
    )
    return "\n".join(lines).rstrip()


def _ablation(
    cells: dict[str, Any], what: str, text: str, kinds: tuple[str, ...], values: tuple[int, ...]
) -> list[str]:
    found: list[str] = []
    for name, n in ABLATED.items():
        for kind in kinds:
            row = [cells.get(f"{what}/{name}/{kind}/{value}", {}) for value in values]
            if any(row):
                found.append(
                    f"| {name}, {n:,} | {kind.replace('_', ' ')} | "
                    + " | ".join(_shown(cell) for cell in row)
                    + " |"
                )
    head = "| set, rows | | " + " | ".join(f"{value:,}" for value in values) + " |"
    said = f"{text}: CPU seconds (kernel values computed, as a multiple of those of the minimum):"
    return [said, "", head, "|---|---|" + "---|" * len(values), *found, ""] if found else []


def pictures(folder: Path) -> None:
    """The two figures of the paper.

    They are seconds against the number of rows, and against the sizes of working set and cache.
    """
    cells = json.loads(RESULTS.read_text())["cells"]
    folder.mkdir(exist_ok=True)
    _scaling_picture(cells, folder / "svmlight_scaling.png")
    _ablation_picture(cells, folder / "svmlight_working_set_cache.png")


def _scaling_picture(cells: dict[str, Any], path: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 3.6), layout="constrained")
    for panel, (name, sizes) in zip(
        figure.subplots(1, 2), (("adult", ADULT), ("rcv1", SPARSE)), strict=True
    ):
        rows = [
            (n, cells[f"scaling/{name}/{n}"])
            for n in sizes
            if "cpu_seconds" in cells.get(f"scaling/{name}/{n}", {})
        ]
        for field, text, mark in (("cpu_seconds", "slimsvm", "o"), ("minimum", "minimum", "s")):
            panel.plot(
                [n for n, _ in rows], [cell[field] for _, cell in rows], marker=mark, label=text
            )
        panel.set(title=name, xlabel="rows", ylabel="CPU seconds")
        panel.legend()
    figure.savefig(path, dpi=90)


def _ablation_picture(cells: dict[str, Any], path: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 3.6), layout="constrained")
    panels = (
        ("working_set", ("steepest", "basic"), WORKING_SETS, "variables in the working set"),
        (
            "cache_small_sets",
            ("shrinking", "no_shrinking"),
            CACHES_MB,
            "megabytes of cache (working sets of ten)",
        ),
    )
    for panel, (what, kinds, values, label) in zip(figure.subplots(1, 2), panels, strict=True):
        for m, name in enumerate(ABLATED):
            for kind, line in zip(kinds, ("-", "--"), strict=True):
                some = [
                    (value, cells.get(f"{what}/{name}/{kind}/{value}", {}).get("cpu_seconds"))
                    for value in values
                ]
                shown = [(value, seconds) for value, seconds in some if seconds is not None]
                if shown:
                    text = f"{name}, {kind.replace('_', ' ')}"
                    panel.plot(
                        *zip(*shown, strict=True),
                        marker="os"[m],
                        color=f"C{m}",
                        linestyle=line,
                        label=text,
                    )
        panel.set(xscale="log", yscale="log", xlabel=label, ylabel="CPU seconds")
        panel.legend()
    figure.savefig(path, dpi=90)


TABLES = {"svmlight": table}
