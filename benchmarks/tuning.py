"""Searches that share their work, against scikit-learn's GridSearchCV around SVC.

``python benchmarks/tuning.py satimage --base PATH``: CPU seconds of ``slimsvm.GridSearchCV`` and
``SVCCV`` here, of scikit-learn's search around the SVC of now, and around the SVC of another
checkout (``--base``, its ``src`` folder). Data from the folder SLIMSVM_DATA, whose load.py
reads it. Set OPENBLAS_NUM_THREADS=1.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time

import numpy as np
from sklearn import model_selection
from sklearn.datasets import make_classification

CS = [1, 4, 16, 64, 256, 1024]
FIRST = {"satimage": -5, "ijcnn1": -5, "a9a": -8, "mnist": -9, "letter": -5, "made": -6}


def rows(name: str, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Training rows and labels."""
    if name == "made":
        X, y = make_classification(
            25_000, 20, n_informative=10, n_clusters_per_class=4, random_state=0
        )
        return X[:n], y[:n]
    folder = os.environ["SLIMSVM_DATA"]
    sys.path.insert(0, folder)
    from load import load  # type: ignore[import-not-found]

    X, y, _, _ = load(name)
    chosen = np.random.RandomState(0).permutation(X.shape[0])[:n]
    X, y = X[chosen], y[chosen]
    return X, (y >= 5).astype(int) if name == "mnist" else y


def measured(name: str, n: int, what: str, jobs: int) -> dict[str, float]:
    """CPU seconds and the best score of one search; loops are compiled before."""
    import slimsvm

    X, y = rows(name, n)
    grid = {"C": CS, "gamma": [2.0**k for k in range(FIRST[name], FIRST[name] + 8)]}

    def run(X: np.ndarray, y: np.ndarray, grid: dict[str, list[float]]) -> object:
        if what == "race":
            return slimsvm.SVCCV(grid["C"], grid["gamma"], n_jobs=jobs).fit(X, y)
        kind = slimsvm.GridSearchCV if what == "shared" else model_selection.GridSearchCV
        return kind(slimsvm.SVC(), grid, n_jobs=jobs, refit=False).fit(X, y)

    run(X[: n // 2], y[: n // 2], {"C": CS[:2], "gamma": grid["gamma"][:1]})
    wall, cpu = time.perf_counter(), time.process_time()
    found = run(X, y, grid)
    return {
        "seconds": time.perf_counter() - wall,
        "cpu": time.process_time() - cpu,
        "score": float(found.best_score_),  # type: ignore[attr-defined]
    }


def main() -> None:
    """Measure one set."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", choices=FIRST)
    parser.add_argument("--rows", type=int, default=6000)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--base", help="src folder of another checkout")
    parser.add_argument("--what", choices=["shared", "race", "plain"])
    given = parser.parse_args()
    if given.what:
        print(json.dumps(measured(given.name, given.rows, given.what, given.jobs)))
        return
    found = {}
    for label, what, source in (
        ("shared", "shared", None),
        ("race", "race", None),
        ("plain, now", "plain", None),
        ("plain, base", "plain", given.base),
    ):
        if label == "plain, base" and source is None:
            continue
        own = [given.name, "--rows", str(given.rows), "--jobs", str(given.jobs), "--what", what]
        environment = {**os.environ, **({"PYTHONPATH": source} if source else {})}
        done = subprocess.run(
            [sys.executable, __file__, *own],
            capture_output=True,
            text=True,
            env=environment,
            check=True,
        )
        found[label] = json.loads(done.stdout.splitlines()[-1])
        print(label, found[label], flush=True)


if __name__ == "__main__":
    main()
