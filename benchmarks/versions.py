"""Another checkout against this one: did a change that is to change nothing cost time?

    python -m benchmarks versions /path/to/other/src [--rounds 10] [--only PATTERN] [--list]

The other one may also be named by the variable SLIMSVM_BASE. For every case both run in turn in
fresh processes, with one BLAS thread, so that a load of the computer falls on both alike; which of
them begins changes from round to round. A process makes its data, calls once (what is compiled is
loaded then), and measures the CPU seconds of further calls, of which the median counts. The table
has the ratio of the medians over all rounds, this checkout to the other, and the interval that
holds 95 % of the ratios of resampled rounds; and the calls of Python functions, Python's and C's,
which are the same whatever else the computer does (not counted at import; a compiled loop counts as
one call).

Cases say everything that could have another default, so that both solve the same problem.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent.parent / "src"
RESAMPLED = 4000
ENOUGH = 1.0  # CPU seconds of one case in one process
MOST = 200  # calls measured there
IMPORTED = ("SVC", "SVR", "LinearSVC", "SparseSVC", "ReducedSVC")
BLAS = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS", "BLIS_NUM_THREADS")


# -- the cases -------------------------------------------------------------------------------------


def _rows(n: int, n_classes: int = 2) -> Any:
    """Twenty features, a tenth of the labels wrong."""
    from sklearn.datasets import make_classification

    about = {"n_informative": 5, "n_classes": n_classes, "flip_y": 0.1, "random_state": 0}
    return make_classification(n, 20, **about)


def _fit(name: str, n: int, n_classes: int = 2, **parameters: Any) -> Callable[[], Any]:
    from sklearn.base import clone

    import slimsvm

    X, y = _rows(n, n_classes)
    if name.endswith("SVR"):
        y = X[:, 0] + 0.5 * X[:, 1] ** 2
    estimator = getattr(slimsvm, name)(**parameters)
    return lambda: clone(estimator).fit(X, y)


def _predict(name: str, n: int, times: int = 1, **parameters: Any) -> Callable[[], Any]:
    import slimsvm

    X, y = _rows(2000)
    new, _ = _rows(n)
    model = getattr(slimsvm, name)(**parameters).fit(X, y)

    def calls() -> None:
        for _ in range(times):
            model.predict(new[:n])

    return calls


# what is made in a process, and called there again and again
CASES: dict[str, Callable[[], Callable[[], Any]]] = {
    "SVC, 100 rows": lambda: _fit("SVC", 100),
    "SVC, 300 rows": lambda: _fit("SVC", 300),
    "SVC, 1,000 rows": lambda: _fit("SVC", 1000),
    "SVC, 1,000 rows, 5 classes": lambda: _fit("SVC", 1000, 5),
    "SVC, 8,000 rows": lambda: _fit("SVC", 8000),
    "SVR, 300 rows": lambda: _fit("SVR", 300),
    "LinearSVC, 300 rows": lambda: _fit("LinearSVC", 300, loss="squared_hinge"),
    "LinearSVC, 20,000 rows": lambda: _fit("LinearSVC", 20_000, loss="squared_hinge"),
    "LinearSVC, hinge, 300 rows": lambda: _fit("LinearSVC", 300, loss="hinge"),
    "SparseSVC, 300 rows": lambda: _sparse(300, 10),
    "SparseSVC, 20,000 rows": lambda: _sparse(20_000, 20),
    "SparseSVC, hinge, 5,000 rows": lambda: _sparse(5000, 20, loss="hinge"),
    "ReducedSVC, 300 rows": lambda: _fit("ReducedSVC", 300, solver="smooth", random_state=0),
    "CrammerSingerSVC, 3,000 rows": lambda: _fit(
        "CrammerSingerSVC", 3000, 3, space="subspace", n_basis=30, random_state=0
    ),
    "one row at a time, SVC": lambda: _predict("SVC", 1, 200),
    "one row at a time, 20 vectors": lambda: _predict("SparseSVC", 1, 200, **TWENTY),
    "20,000 rows, SVC": lambda: _predict("SVC", 20_000),
    "20,000 rows, 20 vectors": lambda: _predict("SparseSVC", 20_000, **TWENTY),
}
PURSUED: dict[str, Any] = {"basis": "pursuit", "random_state": 0}
TWENTY: dict[str, Any] = {"n_basis": 20, "loss": "squared_hinge", **PURSUED}


def _sparse(n: int, n_basis: int, loss: str = "squared_hinge") -> Callable[[], Any]:
    return _fit("SparseSVC", n, n_basis=n_basis, loss=loss, **PURSUED)


# -- in a process of its own -----------------------------------------------------------------------


def measured(case: str) -> dict[str, float]:
    """CPU seconds of one call, and the calls of functions in it."""
    import warnings

    warnings.simplefilter("ignore")
    if case == "import":
        import numba  # noqa: F401
        import sklearn.svm  # noqa: F401

        begin = time.process_time()
        package = importlib.import_module("slimsvm")
        for name in IMPORTED:
            getattr(package, name)
        return {"seconds": time.process_time() - begin, "calls": 0}
    call = CASES[case]()
    call()
    every: list[float] = []
    while len(every) < 3 or (sum(every) < ENOUGH and len(every) < MOST):
        begin = time.process_time()
        call()
        every.append(time.process_time() - begin)
    return {"seconds": statistics.median(every), "calls": _counted(call)}


def _counted(call: Callable[[], Any]) -> int:
    """The calls of functions, Python's and C's."""
    count = 0

    def hear(frame: Any, event: str, argument: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(hear)
    try:
        call()
    finally:
        sys.setprofile(None)
    return count


# -- the race --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Ratio:
    """This checkout to the other: seconds with an interval, and calls."""

    seconds: float
    low: float
    high: float
    calls: float


def ratio_of(ours: list[dict[str, float]], theirs: list[dict[str, float]]) -> Ratio:
    """Of the medians over all rounds, which are resampled together."""
    import numpy as np

    pairs = np.array([[a["seconds"], b["seconds"]] for a, b in zip(ours, theirs, strict=True)])
    drawn = np.random.default_rng(0).integers(len(pairs), size=(RESAMPLED, len(pairs)))
    medians = np.median(pairs[drawn], axis=1)
    low, high = np.quantile(medians[:, 0] / medians[:, 1], [0.025, 0.975])
    seconds = np.median(pairs, axis=0)
    calls = statistics.median(a["calls"] for a in ours)
    others = statistics.median(b["calls"] for b in theirs)
    found = calls / others if others else float("nan")
    return Ratio(float(seconds[0] / seconds[1]), float(low), float(high), found)


def _run(case: str, source: Path) -> dict[str, float]:
    """The case with the package of this folder."""
    environment = {**os.environ, **dict.fromkeys(BLAS, "1"), "PYTHONPATH": str(source)}
    command = [sys.executable, str(Path(__file__).resolve()), case]
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    if done.returncode:
        raise SystemExit(f"{case} with {source} failed:\n{done.stderr[-2000:]}")
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def main(words: list[str] | None = None) -> None:
    """Command line."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks versions", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument(
        "base",
        nargs="?",
        default=os.environ.get("SLIMSVM_BASE"),
        help="the folder src of the other checkout; default: SLIMSVM_BASE",
    )
    parser.add_argument("--rounds", type=int, default=10, help="default: 10")
    parser.add_argument("--only", default="", metavar="PATTERN", help="cases whose name matches")
    parser.add_argument("--list", action="store_true", help="the names of the cases")
    given = parser.parse_args(words)
    names = [name for name in ("import", *CASES) if re.search(given.only, name)]
    if given.list:
        print("\n".join(names))
        return
    if given.base is None or not (Path(given.base) / "slimsvm").is_dir():
        parser.error(f"there is no package slimsvm in {given.base}: name the folder src of another")
    base = Path(given.base).resolve()
    print(f"load {os.getloadavg()[0]:.1f}, {given.rounds} rounds; ratios: this checkout to {base}")
    print("| case | ms | there | ratio | 95 % | calls |\n|---|---|---|---|---|---|", flush=True)
    for name in names:
        ours: list[dict[str, float]] = []
        theirs: list[dict[str, float]] = []
        for k in range(given.rounds):
            for mine in (True, False) if k % 2 else (False, True):
                (ours if mine else theirs).append(_run(name, HERE if mine else base))
        found = ratio_of(ours, theirs)
        ms, there = (1e3 * statistics.median(a["seconds"] for a in own) for own in (ours, theirs))
        print(
            f"| {name} | {ms:.3g} | {there:.3g} | {found.seconds:.3f} | "
            f"{found.low:.3f} to {found.high:.3f} | {found.calls:.3f} |",
            flush=True,
        )
    print(f"load {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    print(json.dumps(measured(sys.argv[1])))
