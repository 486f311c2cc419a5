"""Training in the primal, choice of the subset, cross-training: the figures and the table of Bakir & Chapelle's slides ("Tricks of the trade").

    python -m benchmarks.primal                              everything, into benchmarks/results/primal.json
    python -m benchmarks.primal --parts selection | linear | syrk | crosstraining
    python -m benchmarks.primal --write docs/benchmarks.md

``linear``: Newton against the Lagrangian iteration on a9a, against n (the slides' C = 0.05) and against C (6,414 rows). ``selection``: accuracy
and objective against k for the rules on mnist 0 vs rest, 10,000 rows, polynomial kernel of degree 5. ``syrk``: 500 coefficients trained on
60,000 rows, against the symmetric products alone. ``crosstraining``: the table, C and gamma by 5-fold cross-validation for the plain machine,
and reused.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.data import dense, load
from benchmarks.exact import _facts, write

RESULTS = Path(__file__).parent / "results" / "primal.json"
RULES = ("random", "unsupervised", "margin", "greedy")
SIZES = (10, 20, 50, 100, 200)
# set: rows that train, subsets, their size; the slides' accuracy and SVs of the plain machine and of the cross-trained one
CROSSTRAINING: dict[str, tuple[str, int, int, int, float, int, float, int]] = {
    "banana": ("banana", 400, 5, 200, 89.0, 111, 88.2, 51),
    "waveform": ("waveform", 400, 5, 200, 90.2, 172, 88.7, 87),
    "splice": ("splice", 1000, 5, 300, 90.0, 601, 89.9, 522),
    "adult_3185": ("a9a", 3185, 5, 700, 84.2, 1207, 84.2, 606),
    "adult_32560": ("a9a", 32560, 5, 6000, 85.1, 11325, 84.8, 1194),
    "covtype_50000": ("covtype", 50000, 5, 10000, 90.3, 12476, 89.2, 7967),
    "covtype_90000": ("covtype", 90000, 5, 18000, 91.6, 18983, 90.7, 13023),
}
GRID_C, GRID_GAMMA = 2.0 ** np.arange(-2, 9, 2), 2.0 ** np.arange(-8, 5, 2)
SEARCHED = 3000  # rows that the search for C and gamma sees


def linear(keep: Any) -> None:
    """Newton against the Lagrangian iteration, to 1e-7 of the objective."""
    from slimsvm.problems.reduced import Reduced
    from slimsvm.solvers.lagrangian import Lagrangian

    from slimsvm import LinearSVC
    from slimsvm.run import run

    X, y, _, _ = load("a9a")
    X, y = dense(X).astype(np.float64), np.where(y > 0, 1.0, -1.0)
    cases = [("n", n, 0.05) for n in (1605, 3185, 6414, 11220, 16281, 22697, 32561)]
    cases += [("C", 6414, C) for C in (1e-3, 1e-2, 1e-1, 1.0, 10.0, 100.0, 1e3, 1e4)]
    LinearSVC(tol=1e-7).fit(X[:500], y[:500])
    for what, n, C in cases:
        begin = time.perf_counter()
        model = LinearSVC(C=C, tol=1e-7, max_iter=200).fit(X[:n], y[:n])
        newton = time.perf_counter() - begin
        # the same problem with a penalty on the intercept: the Lagrangian method knows no other
        problem = Reduced(np.hstack([X[:n], np.ones((n, 1))]), y[:n], np.full(n, C))
        begin = time.perf_counter()
        result = run(Lagrangian(), problem, tol=1e-7, max_iter=2000)
        lagrangian = time.perf_counter() - begin
        keep(
            f"linear/{what}/{n}/{C:g}",
            {
                "newton": newton,
                "newton_iterations": int(model.n_iter_),
                "lagrangian": lagrangian,
                "lagrangian_iterations": int(result.n_iter),
                "lagrangian_converged": bool(result.certificate.holds),
            },
        )


def selection(keep: Any) -> None:
    """Accuracy and objective against k for the rules."""
    from slimsvm import SparseSVC

    X, y, X_test, y_test = load("mnist")
    X, y, X_test, y_test = X[:10_000], (y[:10_000] == 0).astype(int), X_test, (y_test == 0).astype(int)
    for rule in RULES:
        for seed in range(3):
            model = SparseSVC(
                SIZES[-1], C=1.0, kernel="poly", degree=5, gamma=0.01, coef0=1.0, basis=rule, refine=False, n_jobs=-1, random_state=seed
            )
            begin = time.perf_counter()
            model.fit(X, y)
            seconds = time.perf_counter() - begin
            points = {}
            for point in model.path_:
                error = 1.0 - float(np.mean(model.truncated(point.n_basis).predict(X_test) == y_test))
                points[str(point.n_basis)] = [error, point.objective]
            keep(f"selection/{rule}/{seed}", {"seconds": seconds, "points": points})


def syrk(keep: Any) -> None:
    """Newton's method over 500 coefficients and 60,000 rows, against its symmetric products alone."""
    from scipy.linalg.blas import dsyrk
    from threadpoolctl import threadpool_limits

    from slimsvm.kernels import RBF
    from slimsvm.losses import SquaredHinge
    from slimsvm.problems.subspace import KernelColumns, Subspace
    from slimsvm.solvers.newton import Newton
    from slimsvm.tiles import ready

    X, y, _, _ = load("mnist")
    target = np.where(y >= 5, 1.0, -1.0)[:, None]
    columns = KernelColumns(ready(RBF(1 / 32), X), 500, None, 2)
    columns.append(columns.rows.X[np.random.default_rng(0).permutation(len(X))[:500]])
    problem = Subspace(columns, target, np.full(len(X), 10.0), SquaredHinge())
    newton = Newton()
    state = newton.init(problem)
    seconds, limit = 0.0, 0.0
    while not state.done and state.n_iter < 30:
        active = int((target * state.scores < 1).sum())
        begin = time.perf_counter()
        newton.step(problem, state, 1e-8, 30)
        seconds += time.perf_counter() - begin
        A = np.random.default_rng(1).random((500, active))
        with threadpool_limits(2):
            begin = time.perf_counter()
            dsyrk(1.0, A.T, trans=1)
            limit += time.perf_counter() - begin
    keep("syrk", {"seconds": seconds, "limit": limit, "steps": state.n_iter, "ratio": seconds / limit})


def _rows(name: str, n: int, seed: int) -> Any:
    X, y, X_test, y_test = load(name)
    X, X_test = (dense(part).astype(np.float32) for part in (X, X_test))
    y, y_test = (np.where(part == np.unique(y)[1], 1, -1) for part in (y, y_test))
    if name == "splice":  # letters 1 to 4: one indicator for each
        X, X_test = ((part[:, :, None] == np.arange(1, 5)).reshape(len(part), -1).astype(np.float32) for part in (X, X_test))
    if n < 5000:  # resample: other rows train, the rest of all tests
        every, labels = np.vstack([X, X_test]), np.concatenate([y, y_test])
        order = np.random.RandomState(seed).permutation(len(every))
        X, y, X_test, y_test = every[order[:n]], labels[order[:n]], every[order[n:]], labels[order[n:]]
    elif n < len(X):
        order = np.random.RandomState(0).permutation(len(X))[:n]
        X, y = X[order], y[order]
    return X, y, X_test, y_test


def crosstraining(keep: Any) -> None:
    """The table: the plain machine and the cross-trained one."""
    from sklearn.model_selection import GridSearchCV

    from slimsvm import SVC, CrossTraining

    for key, (name, n, n_subsets, size, *_) in CROSSTRAINING.items():
        plain, crossed = [], []
        found: dict[str, float] | None = None
        for seed in range(10 if n < 5000 else 1):
            X, y, X_test, y_test = _rows(name, n, seed)
            if found is None:
                search = GridSearchCV(SVC(max_time=20), {"C": GRID_C, "gamma": GRID_GAMMA}, cv=5, n_jobs=2)
                found = search.fit(X[:SEARCHED], y[:SEARCHED]).best_params_
            svm = SVC(**found, cache_size=2000, n_jobs=-1)
            for out, machine in (
                (plain, svm),
                (crossed, CrossTraining(svm, n_subsets=n_subsets, subset_size=size, random_state=seed)),
            ):
                begin = time.perf_counter()
                machine.fit(X, y)
                seconds = time.perf_counter() - begin
                final = machine if machine is svm else machine.estimators_[0]
                out.append([100 * float(np.mean(machine.predict(X_test) == y_test)), len(final.support_), seconds])
        mean = {kind: np.mean(rows, axis=0).tolist() for kind, rows in (("plain", plain), ("crossed", crossed))}
        keep(f"crosstraining/{key}", {**mean, **found, "resamples": len(plain)})  # type: ignore[dict-item]


PARTS = {"linear": linear, "selection": selection, "syrk": syrk, "crosstraining": crosstraining}


def table() -> str:
    """The stored results in Markdown."""
    cells = json.loads(RESULTS.read_text())["cells"]
    lines = []
    rows = [(key.split("/"), cell) for key, cell in cells.items() if key.startswith("linear/")]
    if rows:
        lines += ["Linear, a9a, seconds (iterations) to 1e-7 of the objective:", ""]
        lines += ["| rows | C | Newton | Lagrangian |", "|---|---|---|---|"]
        for (_, _, n, C), cell in rows:
            end = "" if cell["lagrangian_converged"] else ", not converged"
            both = f"{cell['newton']:.3f} ({cell['newton_iterations']}) | {cell['lagrangian']:.3f} ({cell['lagrangian_iterations']}{end})"
            lines.append(f"| {int(n):,} | {C} | {both} |")
        lines.append("")
    rules = {rule: [cell for key, cell in cells.items() if key.startswith(f"selection/{rule}/")] for rule in RULES}
    if all(rules.values()):
        lines += ["mnist 0 vs rest, 10,000 rows, polynomial of degree 5: test error in percent (objective), mean of three seeds:", ""]
        lines += ["| rule | " + " | ".join(f"k = {k}" for k in SIZES) + " | seconds |", "|---|" + "---|" * (len(SIZES) + 1)]
        for rule, runs in rules.items():
            row = []
            for k in SIZES:
                error, objective = np.mean([cell["points"][str(k)] for cell in runs], axis=0)
                row.append(f"{100 * error:.2f} ({objective:,.1f})")
            lines.append(f"| {rule} | " + " | ".join(row) + f" | {np.mean([cell['seconds'] for cell in runs]):.1f} |")
        lines.append("")
    if "syrk" in cells:
        cell = cells["syrk"]
        lines += [
            f"Newton over 500 coefficients and 60,000 rows (mnist): {cell['seconds']:.2f} s for {cell['steps']} steps, {cell['ratio']:.2f} "
            f"times the symmetric products on the active rows alone ({cell['limit']:.2f} s).",
            "",
        ]
    crossed = [(key.split("/")[1], cell) for key, cell in cells.items() if key.startswith("crosstraining/")]
    if crossed:
        lines += ["Cross-training, accuracy in percent / support vectors:", ""]
        lines += ["| set | SVM | cross-trained | slides: SVM | slides: cross-trained | drop (slides) | share kept (slides) |"]
        lines += ["|---|---|---|---|---|---|---|"]
        for key, cell in crossed:
            _, _, _, _, acc, svs, x_acc, x_svs = CROSSTRAINING[key]
            (p_acc, p_svs, _), (c_acc, c_svs, _) = cell["plain"], cell["crossed"]
            ours = f"{p_acc:.1f} / {p_svs:.0f} | {c_acc:.1f} / {c_svs:.0f} | {acc} / {svs} | {x_acc} / {x_svs}"
            lines.append(f"| {key} | {ours} | {p_acc - c_acc:.1f} ({acc - x_acc:.1f}) | {c_svs / p_svs:.2f} ({x_svs / svs:.2f}) |")
    return "\n".join(lines)


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--parts", nargs="*", default=list(PARTS), choices=list(PARTS))
    parser.add_argument("--table", action="store_true")
    parser.add_argument("--write", type=Path, metavar="PAGE", help="write the tables of the stored results into a page of the docs")
    given = parser.parse_args()
    if given.write:
        write(given.write, "primal", table())
    elif given.table:
        print(table())
    else:
        stored = json.loads(RESULTS.read_text()) if RESULTS.exists() else {"cells": {}}
        stored["machine"] = _facts()

        def keep(key: str, cell: dict[str, Any]) -> None:
            stored["cells"][key] = cell
            print(key, cell, flush=True)
            RESULTS.parent.mkdir(exist_ok=True)
            RESULTS.write_text(json.dumps(stored, indent=1))

        warnings.simplefilter("ignore")
        for part in given.parts:
            PARTS[part](keep)
        print(table())


if __name__ == "__main__":
    main()
