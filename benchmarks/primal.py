"""Training in the primal, choice of the subset, and cross-training.

The figures and the table are those of Bakir & Chapelle's slides ("Tricks of the trade").

    python -m benchmarks run primal --full    everything, into benchmarks/results/primal.json
    python -m benchmarks run primal --full --only linear/ crosstraining/banana
    python -m benchmarks tables primal

``linear``: Newton against the Lagrangian iteration on a9a, against n (the slides' C = 0.05) and
against C (6,414 rows). ``selection``: accuracy and objective against k for the rules on mnist 0 vs
rest, 10,000 rows, polynomial kernel of degree 5. ``syrk``: 500 coefficients trained on 60,000 rows,
against the symmetric products alone. ``adult``: error and objective against the number of random
rows, 22,697 rows of Adult. ``multiclass``: error against k on mnist, all 60,000 rows and ten
classes with one shared basis, greedy and random. ``crosstraining``: the table, C and gamma by
5-fold cross-validation for the plain SVM, the sparsest within one standard error of the best,
and reused.
"""

from __future__ import annotations

import json
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.data import dense, load
from benchmarks.runner import Cell

RESULTS = Path(__file__).parent / "results" / "primal.json"
RULES = ("random", "unsupervised", "margin", "greedy")
SIZES = (10, 20, 50, 100, 200)
# set: rows that train, subsets, their size; the slides' accuracy and SVs of the plain SVM and of
# the cross-trained one
CROSSTRAINING: dict[str, tuple[str, int, int, int, float | None, int | None, float, int]] = {
    "banana": ("banana", 400, 5, 200, 89.0, 111, 88.2, 51),
    "waveform": ("waveform", 400, 5, 200, 90.2, 172, 88.7, 87),
    "splice": ("splice", 1000, 5, 300, 90.0, 601, 89.9, 522),
    "adult_3185": ("a9a", 3185, 5, 700, 84.2, 1207, 84.2, 606),
    "adult_32560": ("a9a", 32560, 5, 6000, 85.1, 11325, 84.8, 1194),
    "covtype_50000": ("covtype", 50000, 5, 10000, 90.3, 12476, 89.2, 7967),
    "covtype_90000": ("covtype", 90000, 5, 18000, 91.6, 18983, 90.7, 13023),
    "covtype_200000": ("covtype", 200000, 8, 30000, None, None, 92.1, 19526),
}
RESAMPLED = 5000  # with fewer rows, ten resamples
GRID_C, GRID_GAMMA = 2.0 ** np.arange(-2, 9), 2.0 ** np.arange(-8, 7)
SEARCHED = 10_000  # rows that the search for C and gamma sees, in the last of its three rounds
JUDGED = 50_000  # rows that say who is to judge
LINEAR_N, LINEAR_C = (1605, 3185, 6414, 11220, 16281, 22697, 32561), 10.0 ** np.arange(-3, 5)
ADULT_SIZES, ADULT_REPEATS = (5, 10, 20, 50, 100, 200, 500), 10


def linear(what: str, n: str, C: str) -> dict[str, Any]:
    """Newton against the Lagrangian iteration, to 1e-7 of the objective; one thread."""
    from slimsvm import LinearSVC
    from slimsvm.losses import SquaredHinge
    from slimsvm.problems.linear import LinearFit
    from slimsvm.run import run
    from slimsvm.solvers.linear_lagrangian import LinearLagrangian

    X, y, _, _ = load("a9a")
    X, y = dense(X).astype(np.float64), np.where(y > 0, 1.0, -1.0)
    X, y, cost = X[: int(n)], y[: int(n)], float(C)
    LinearSVC(tol=1e-7).fit(X[:500], y[:500])
    begin = time.process_time()
    model = LinearSVC(C=cost, tol=1e-7, max_iter=200).fit(X, y)
    found: dict[str, Any] = {
        "newton": time.process_time() - begin,
        "newton_iterations": int(model.n_iter_),
    }
    # the same problem with a penalty on the intercept: the Lagrangian method knows no other
    problem = LinearFit(X, y[:, None], np.full(len(y), cost), SquaredHinge(), 1.0)
    begin = time.process_time()
    result = run(LinearLagrangian(share=0.5), problem, tol=1e-7, max_iter=2000)
    return found | {
        "lagrangian": time.process_time() - begin,
        "lagrangian_iterations": int(result.n_iter),
        "lagrangian_converged": bool(result.certificate.holds),
    }


def adult() -> dict[str, Any]:
    """Error and objective (squared hinge) against the number of random rows.

    With them the error and the CPU seconds of the exact solution, with the hinge.
    """
    from slimsvm import SVC, SparseSVC

    X, y, X_test, y_test = load("a9a")
    X, X_test = (dense(part).astype(np.float32) for part in (X[:22697], X_test))
    y = y[:22697]
    begin = time.process_time()
    exact = SVC(C=1.0, gamma=0.05, n_jobs=-1).fit(X, y)
    cell: dict[str, Any] = {
        "exact": [1.0 - exact.score(X_test, y_test), time.process_time() - begin],
        "points": {},
        "cpu": [],
    }
    for seed in range(ADULT_REPEATS):
        begin = time.process_time()
        model = SparseSVC(
            ADULT_SIZES[-1],
            C=1.0,
            gamma=0.05,
            basis="random",
            refine=False,
            n_jobs=-1,
            random_state=seed,
        ).fit(X, y)
        cell["cpu"].append(time.process_time() - begin)
        for point in model.path_:
            error = 1.0 - model.truncated(point.n_basis).score(X_test, y_test)
            cell["points"].setdefault(str(point.n_basis), []).append([error, point.objective])
    return cell


def multiclass(rule: str) -> dict[str, Any]:
    """Error against k on all of mnist, one basis for ten binary models."""
    from slimsvm import SparseSVC

    X, y, X_test, y_test = load("mnist")
    model = SparseSVC(
        200,
        C=10.0,
        kernel="poly",
        degree=5,
        gamma=0.01,
        coef0=1.0,
        basis=rule,
        refine=False,
        n_jobs=-1,
        random_state=0,
    )
    begin = time.process_time()
    model.fit(X, y)
    seconds = time.process_time() - begin
    points = {
        str(p.n_basis): [1.0 - model.truncated(p.n_basis).score(X_test, y_test), p.objective]
        for p in model.path_
    }
    return {"cpu": seconds, "points": points}


def selection(rule: str, seed: str) -> dict[str, Any]:
    """Accuracy and objective against k for a rule."""
    from slimsvm import SparseSVC

    X, y, X_test, y_test = load("mnist")
    X, y, y_test = X[:10_000], (y[:10_000] == 0).astype(int), (y_test == 0).astype(int)
    model = SparseSVC(
        SIZES[-1],
        C=1.0,
        kernel="poly",
        degree=5,
        gamma=0.01,
        coef0=1.0,
        basis=rule,
        refine=False,
        n_jobs=-1,
        random_state=int(seed),
    )
    begin = time.perf_counter()
    model.fit(X, y)
    seconds = time.perf_counter() - begin
    points = {}
    for point in model.path_:
        error = 1.0 - float(np.mean(model.truncated(point.n_basis).predict(X_test) == y_test))
        points[str(point.n_basis)] = [error, point.objective]
    return {"seconds": seconds, "points": points}


def syrk() -> dict[str, Any]:
    """Newton's method over 500 coefficients and 60,000 rows, against its symmetric products."""
    from scipy.linalg.blas import dsyrk
    from threadpoolctl import threadpool_limits

    from slimsvm.frames import Frame, in_memory
    from slimsvm.kernels import RBF
    from slimsvm.losses import SquaredHinge
    from slimsvm.problems.columns import KernelColumns
    from slimsvm.problems.subspace import Subspace
    from slimsvm.solvers.newton import Newton
    from slimsvm.tiles import prepare

    X, y, _, _ = load("mnist")
    target = np.where(y >= 5, 1.0, -1.0)[:, None]
    rows = prepare(RBF(1 / 32), X)
    columns = KernelColumns(
        in_memory(rows, target, np.full(len(X), 10.0), n_threads=2), Frame.like(rows), 500
    )
    columns.append(rows.X[np.random.default_rng(0).permutation(len(X))[:500]])
    problem = Subspace(columns, SquaredHinge())
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
    return {"seconds": seconds, "limit": limit, "steps": state.n_iter, "over": seconds / limit}


def _rows(name: str, n: int, seed: int) -> Any:
    X, y, X_test, y_test = load(name)
    X, X_test = (dense(part).astype(np.float32) for part in (X, X_test))
    y, y_test = (np.where(part == np.unique(y)[1], 1, -1) for part in (y, y_test))
    if name == "splice":  # letters 1 to 4: one indicator for each
        X, X_test = (
            (part[:, :, None] == np.arange(1, 5)).reshape(len(part), -1).astype(np.float32)
            for part in (X, X_test)
        )
    if n < RESAMPLED:  # resample: other rows train, the rest of all tests
        every, labels = np.vstack([X, X_test]), np.concatenate([y, y_test])
        order = np.random.RandomState(seed).permutation(len(every))
        X, y, X_test, y_test = (
            every[order[:n]],
            labels[order[:n]],
            every[order[n:]],
            labels[order[n:]],
        )
    elif n < len(X):
        order = np.random.RandomState(0).permutation(len(X))[:n]
        X, y = X[order], y[order]
    return X, y, X_test, y_test


def _searched(name: str, n: int) -> dict[str, float]:
    """C and gamma of the plain SVM by 5-fold scores.

    Of small sets the scores are averaged over five resamples. Of large sets all settings are tried
    on few rows, the best third of them on three times as many, and the best third of those on three
    times as many again. What comes out is the sparsest of the best of the last round.
    """
    from sklearn.model_selection import GridSearchCV, ParameterGrid

    from slimsvm import SVC

    settings = list(ParameterGrid({"C": GRID_C, "gamma": GRID_GAMMA}))
    for rows in (n,) if n < RESAMPLED else (SEARCHED // 9, SEARCHED // 3, SEARCHED):
        scores, sizes = [], []
        for seed in range(5 if n < RESAMPLED else 1):
            X, y, _, _ = _rows(name, n, seed)
            grid = [{key: [value] for key, value in setting.items()} for setting in settings]
            found = (
                GridSearchCV(SVC(max_time=60), grid, scoring=_scored, cv=5, refit=False)
                .fit(X[:rows], y[:rows])
                .cv_results_
            )
            scores += [found[f"split{fold}_test_accuracy"] for fold in range(5)]
            sizes.append(found["mean_test_size"])
        tried, order = settings, np.argsort(-np.mean(scores, axis=0), kind="stable")
        settings = [tried[k] for k in order[: -(-len(tried) // 3)]]
    return {key: float(value) for key, value in tried[_sparsest(scores, sizes)].items()}


def _sparsest(scores: list[Any], sizes: list[Any]) -> int:
    """Of all settings within one standard error of the best, that with the fewest support vectors.

    Many differ by less than they vary.
    """
    mean, deviation = np.mean(scores, axis=0), np.std(scores, axis=0, ddof=1)
    best = int(np.argmax(mean))
    near = mean >= mean[best] - deviation[best] / np.sqrt(len(scores))
    return int(np.argmin(np.where(near, np.mean(sizes, axis=0), np.inf)))


def _held_out(name: str, n: int, svm: Any, parts: dict[str, Any]) -> bool:
    """Whether rows are judged by the models that have not seen them, or by all.

    That is chosen by 5-fold scores, as C and gamma are.
    """
    from sklearn.model_selection import GridSearchCV

    from slimsvm import CrossTraining

    choices, scores, sizes = [True, False], [], []
    for seed in range(5 if n < RESAMPLED else 1):
        X, y, _, _ = _rows(name, n, seed)
        estimator = CrossTraining(
            svm,
            n_subsets=parts["n_subsets"],
            subset_size=parts["subset_size"] / n,
            random_state=seed,
        )
        search = GridSearchCV(estimator, {"held_out": choices}, scoring=_scored, cv=5, refit=False)
        found = search.fit(X[:JUDGED], y[:JUDGED]).cv_results_
        scores += [found[f"split{fold}_test_accuracy"] for fold in range(5)]
        sizes.append(found["mean_test_size"])
    return choices[_sparsest(scores, sizes)]


def _scored(model: Any, X: Any, y: Any) -> dict[str, float]:
    final = model.estimators_[0] if hasattr(model, "estimators_") else model
    return {"accuracy": model.score(X, y), "size": float(len(final.support_))}


def crosstraining(key: str) -> dict[str, Any]:
    """A row of the table: the plain SVM, the cross-trained one, and that of the slides.

    In the slides all models judge, and the subsets are balanced.
    """
    from slimsvm import SVC, CrossTraining

    warnings.simplefilter("ignore")
    name, n, n_subsets, size, *_ = CROSSTRAINING[key]
    rows: dict[str, list[list[float]]] = {}
    found = _searched(name, n)
    svm = SVC(**found, cache_size=2000, n_jobs=-1)
    parts: dict[str, Any] = {"n_subsets": n_subsets, "subset_size": size}
    held_out = _held_out(name, n, svm, parts)
    for seed in range(10 if n < RESAMPLED else 1):
        X, y, X_test, y_test = _rows(name, n, seed)
        estimators = {
            "plain": svm,
            "crossed": CrossTraining(svm, held_out=held_out, random_state=seed, **parts),
            "as in the slides": CrossTraining(
                svm, balanced_subsets=True, held_out=False, random_state=seed, **parts
            ),
        }
        if n > 100_000:  # as in the slides, no plain SVM
            del estimators["plain"]
        for kind, estimator in estimators.items():
            begin = time.process_time()
            estimator.fit(X, y)
            seconds = time.process_time() - begin
            final = estimator if estimator is svm else estimator.estimators_[0]
            rows.setdefault(kind, []).append(
                [
                    100 * float(np.mean(estimator.predict(X_test) == y_test)),
                    len(final.support_),
                    seconds,
                ]
            )
    mean = {kind: np.mean(values, axis=0).tolist() for kind, values in rows.items()}
    return {**mean, **found, "held_out": held_out, "resamples": len(rows["crossed"])}


def cells(quick: bool) -> list[Cell]:
    """What there is to measure."""
    ns, Cs = ((1605, 3185), (1e-2, 1.0)) if quick else (LINEAR_N, LINEAR_C)
    found = [("linear", "n", str(n), "0.05") for n in ns] + [
        ("linear", "C", "6414", f"{C:g}") for C in Cs
    ]
    found += [("selection", rule, str(seed)) for rule in RULES for seed in range(1 if quick else 3)]
    if not quick:
        found += [("adult",), ("multiclass", "greedy"), ("multiclass", "random"), ("syrk",)]
        found += [("crosstraining", key) for key in CROSSTRAINING]
    return [Cell("/".join(words), words[0], words[1:], seconds=3600) for words in found]


def table() -> str:
    """The stored results in Markdown."""
    cells = json.loads(RESULTS.read_text())["cells"]
    lines = []
    rows = [(key.split("/"), cell) for key, cell in cells.items() if key.startswith("linear/")]
    if rows:
        lines += [
            "Linear, a9a, CPU seconds of one thread (iterations) to 1e-7 of the objective:",
            "",
        ]
        lines += [
            "| rows | C | Newton | Lagrangian | Lagrangian, accelerated |",
            "|---|---|---|---|---|",
        ]
        for (_, _, n, C), cell in rows:
            row = [f"{cell['newton']:.3f} ({cell['newton_iterations']})"]
            for kind in ("lagrangian", "accelerated"):
                end = "" if cell.get(f"{kind}_converged") else ", not converged"
                row.append(
                    f"{cell[kind]:.3f} ({cell[f'{kind}_iterations']}{end})" if kind in cell else ""
                )
            lines.append(f"| {int(n):,} | {C} | " + " | ".join(row) + " |")
        lines.append("")
    if "adult" in cells:
        cell = cells["adult"]
        lines += [
            "Adult, 22,697 rows, C=1, gamma=0.05, random rows as the basis, mean of "
            f"{ADULT_REPEATS} draws. The exact solution (hinge): {100 * cell['exact'][0]:.2f} % in "
            f"{cell['exact'][1]:.1f} CPU seconds; all sizes up to {ADULT_SIZES[-1]} together take "
            f"{np.mean(cell['cpu']):.1f}.",
            "",
            "| k | test error in percent | objective |",
            "|---|---|---|",
        ]
        for k in ADULT_SIZES:
            if str(k) in cell["points"]:
                error, objective = np.mean(cell["points"][str(k)], axis=0)
                lines.append(f"| {k} | {100 * error:.2f} | {objective:,.0f} |")
        lines.append("")
    rules = {
        rule: [cell for key, cell in cells.items() if key.startswith(f"selection/{rule}/")]
        for rule in RULES
    }
    if all(rules.values()):
        lines += [
            "mnist 0 vs rest, 10,000 rows, polynomial of degree 5: test error in percent "
            "(objective), mean of three seeds:",
            "",
        ]
        lines += [
            "| rule | " + " | ".join(f"k = {k}" for k in SIZES) + " | seconds |",
            "|---|" + "---|" * (len(SIZES) + 1),
        ]
        for rule, runs in rules.items():
            row = []
            for k in SIZES:
                error, objective = np.mean([cell["points"][str(k)] for cell in runs], axis=0)
                row.append(f"{100 * error:.2f} ({objective:,.1f})")
            lines.append(
                f"| {rule} | "
                + " | ".join(row)
                + f" | {np.mean([cell['seconds'] for cell in runs]):.1f} |"
            )
        lines.append("")
    several = [
        (key.split("/")[1], cell) for key, cell in cells.items() if key.startswith("multiclass/")
    ]
    if several:
        sizes = [
            k
            for k in (10, 20, 50, 100, 200, 500)
            if all(str(k) in cell["points"] for _, cell in several)
        ]
        lines += [
            "mnist, 60,000 rows, ten classes, one basis for all, polynomial of degree 5: test "
            "error in percent (sum of objectives):",
            "",
        ]
        lines += [
            "| rule | " + " | ".join(f"k = {k}" for k in sizes) + " | CPU seconds |",
            "|---|" + "---|" * (len(sizes) + 1),
        ]
        for rule, cell in several:
            row = [
                f"{100 * cell['points'][str(k)][0]:.2f} ({cell['points'][str(k)][1]:,.0f})"
                for k in sizes
            ]
            lines.append(f"| {rule} | " + " | ".join(row) + f" | {cell['cpu']:.0f} |")
        lines.append("")
    if "syrk" in cells:
        cell = cells["syrk"]
        lines += [
            f"Newton over 500 coefficients and 60,000 rows (mnist): {cell['seconds']:.2f} s for "
            f"{cell['steps']} steps, {cell['over']:.2f} times the symmetric products on the "
            f"active rows alone ({cell['limit']:.2f} s).",
            "",
        ]
    crossed = [
        (key.split("/")[1], cell) for key, cell in cells.items() if key.startswith("crosstraining/")
    ]
    if crossed:
        lines += ["Cross-training, accuracy in percent / support vectors:", ""]
        heads = [
            "set",
            "C, gamma",
            "judges",
            "SVM",
            "cross-trained",
            "the slides' rule",
            "slides: SVM",
            "their cross-trained",
        ]
        heads += ["drop (slides)", "share (slides)"]
        lines += ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
        for key, cell in crossed:
            _, _, _, _, acc, svs, x_acc, x_svs = CROSSTRAINING[key]
            c_acc, c_svs, _ = cell["crossed"]
            rule = (
                "{:.1f} / {:.0f}".format(*cell["as in the slides"][:2])
                if "as in the slides" in cell
                else ""
            )
            plain = drop = share = theirs = ""
            if "plain" in cell:
                p_acc, p_svs, _ = cell["plain"]
                plain, drop, share = (
                    f"{p_acc:.1f} / {p_svs:.0f}",
                    f"{p_acc - c_acc:.1f}",
                    f"{c_svs / p_svs:.2f}",
                )
            if acc is not None and svs is not None:
                theirs, drop, share = (
                    f"{acc} / {svs}",
                    f"{drop} ({acc - x_acc:.1f})",
                    f"{share} ({x_svs / svs:.2f})",
                )
            judges = "others" if cell.get("held_out", True) else "all"
            ours = (
                f"{cell['C']:g}, {cell['gamma']:g} | {judges} | {plain} | {c_acc:.1f} / "
                f"{c_svs:.0f} | {rule}"
            )
            lines.append(f"| {key} | {ours} | {theirs} | {x_acc} / {x_svs} | {drop} | {share} |")
    return "\n".join(lines)


def pictures(folder: Path) -> None:
    """The figures of the slides: Newton against the Lagrangian iteration, and selection rules."""
    stored = json.loads(RESULTS.read_text())["cells"]
    folder.mkdir(exist_ok=True)
    _newton_picture(stored, folder / "primal_newton_lagrangian.png")
    _selection_picture(stored, folder / "primal_selection.png")


def _newton_picture(stored: dict[str, Any], path: Path) -> None:
    """Newton against the Lagrangian iteration on Adult: seconds against rows, and against C.

    Empty markers did not converge.
    """
    from matplotlib.figure import Figure

    cells = [
        (key.split("/")[1:], cell) for key, cell in stored.items() if key.startswith("linear/")
    ]
    kinds = {
        "newton": "Newton",
        "lagrangian": "Lagrangian (LSVM)",
        "accelerated": "Lagrangian, accelerated",
    }
    figure = Figure(figsize=(9, 3.6), layout="constrained")
    axes = figure.subplots(1, 2, sharey=True)
    for panel, what, at, title in zip(
        axes, ("n", "C"), (1, 2), ("C = 0.05", "6,414 rows"), strict=True
    ):
        some = sorted((float(words[at]), cell) for words, cell in cells if words[0] == what)
        for m, (kind, text) in enumerate(kinds.items()):
            points = [
                (x, cell[kind], cell.get(f"{kind}_converged", True))
                for x, cell in some
                if kind in cell
            ]
            panel.plot(
                [x for x, *_ in points], [y for _, y, _ in points], label=text, color=f"C{m}"
            )
            for x, seconds, converged in points:
                panel.plot(
                    x,
                    seconds,
                    marker="os^"[m],
                    color=f"C{m}",
                    fillstyle="full" if converged else "none",
                    markersize=5,
                )
        panel.set(
            title=f"Adult, linear, {title}",
            xscale="log",
            yscale="log",
            xlabel={"n": "rows", "C": "C"}[what],
        )
    axes[0].set_xticks([2000, 5000, 10_000, 20_000], labels=["2,000", "5,000", "10,000", "20,000"])
    axes[0].set_xticks([], minor=True)
    axes[0].set_ylabel("CPU seconds to 1e-7")
    axes[0].legend()
    figure.savefig(path, dpi=90)


def _selection_picture(stored: dict[str, Any], path: Path) -> None:
    """Test error and objective against k.

    They are the rules on mnist 0 vs rest, random rows on Adult, and all ten classes of mnist.
    """
    from matplotlib.figure import Figure

    titles = {
        "selection": "mnist 0 vs rest, 10,000 rows",
        "adult": "Adult, 22,697 rows",
        "multiclass": "mnist, ten classes",
    }
    curves: dict[str, dict[str, list[dict[str, Any]]]] = {part: {} for part in titles}
    for key, cell in stored.items():
        part, rule = [*key.split("/"), ""][:2]
        if part in titles and "points" in cell:
            curves[part].setdefault(rule or "random", []).append(cell)
    figure = Figure(figsize=(12, 6.5), layout="constrained")
    axes = figure.subplots(2, 3)
    for column, (part, rules) in enumerate(curves.items()):
        for rule, cells in rules.items():
            at = RULES.index(rule)
            sizes = sorted(map(int, cells[0]["points"]))
            means = np.array(
                [
                    np.mean(
                        [
                            np.reshape(cell["points"][str(k)], (-1, 2)).mean(axis=0)
                            for cell in cells
                        ],
                        axis=0,
                    )
                    for k in sizes
                ]
            )
            for row, values in enumerate((100 * means[:, 0], means[:, 1])):
                axes[row, column].plot(
                    sizes, values, marker="os^v"[at], color=f"C{at}", label=rule, markersize=5
                )
        axes[0, column].set(title=titles[part], xscale="log", yscale="log", ylabel="test error, %")
        axes[1, column].set(xscale="log", yscale="log", xlabel="basis vectors", ylabel="objective")
        axes[0, column].legend()
    figure.savefig(path, dpi=90)


TABLES = {"primal": table}
