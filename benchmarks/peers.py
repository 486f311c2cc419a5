"""The races against peers: exact SVMs, and what people use instead of them.

    python -m benchmarks run peers --full    everything, into benchmarks/results/peers.json
    python -m benchmarks run peers --full --only letter/float32 --again
    python -m benchmarks tables peers

Exact SVMs: slimsvm, scikit-learn-intelex, scikit-learn, libsvm-official, thundersvm-cpu. Every
fit has a process of its own: load, a warm-up fit on the first rows, then the fit that counts. The
contestants alternate. Same C, gamma, tolerance 1e-3 and cache of 2,000 MB for all; best of three
(of scikit-learn one only, where that took over 30 s, and one of LIBSVM and ThunderSVM). Before
every process memory is filled and released. scikit-learn, LIBSVM and ThunderSVM have a type of
their own whatever they are given, so they run once for both; the objective of every contestant is
computed here in float64 from its coefficients.

Instead of them: scikit-learn's Nystroem + LinearSVC, Nystroem + SGDClassifier, and
HistGradientBoostingClassifier, beside the exact SVM and SparseSVC, for accuracy and CPU seconds
on one thread.

Everyday problems (:mod:`benchmarks.everyday`): small, linear, of many classes, one row to predict;
``--only everyday``.
"""

from __future__ import annotations

import json
import os
import time
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.data import dense, load
from benchmarks.everyday import RACES, measured
from benchmarks.runner import Cell, forget_peak, memory_mb

RESULTS = Path(__file__).parent / "results" / "peers.json"
CACHE_MB = 2000
SLOW_SECONDS = 30
BOTH_TYPES = ("slimsvm", "intelex")  # the others compute in a type of their own
ONE_TYPE = ("sklearn", "libsvm", "thundersvm")
SLOW = ("sklearn", "libsvm")  # one core
OTHERS = ("libsvm", "thundersvm")  # once, and their CPU seconds are compared
INSTEAD_SETS = ("ijcnn1", "a9a_dense", "letter", "rcv1", "covtype", "mnist60")
INSTEAD = ("exact", "sparse_svc", "nystroem_linear", "nystroem_sgd", "gradient_boosting")
N_COMPONENTS = 500


def _a9a(sparse: bool) -> Any:
    X, y, X_test, y_test = load("a9a")
    return (X, y, X_test, y_test) if sparse else (dense(X), y, dense(X_test), y_test)


def _plain(name: str) -> Any:
    X, y, X_test, y_test = load(name)
    return dense(X), y, dense(X_test), y_test


def _mnist(n: int) -> Any:
    X, y, X_test, y_test = load("mnist")
    return X[:n], (y[:n] >= 5).astype(int), X_test, (y_test >= 5).astype(int)


def _covtype(n: int) -> Any:
    X, y, X_test, y_test = load("covtype")
    rows = np.random.RandomState(0).permutation(len(X))[:n]
    return X[rows], y[rows], X_test, y_test


# name: (text, C, gamma, how to load, whether scikit-learn ends in reasonable time)
SETS: dict[str, tuple[str, float, float, Any, bool]] = {
    "a9a_dense": ("a9a dense", 1, 0.05, lambda: _a9a(False), True),
    "a9a_sparse": ("a9a sparse", 1, 0.05, lambda: _a9a(True), True),
    "ijcnn1": ("ijcnn1", 2, 2, lambda: _plain("ijcnn1"), True),
    "letter": ("letter (26 classes)", 16, 4, lambda: _plain("letter"), True),
    "shuttle": ("shuttle (7 classes)", 2048, 8, lambda: _plain("shuttle"), True),
    "rcv1": ("rcv1 sparse", 1, 1, lambda: load("rcv1"), True),
    "mnist20": ("mnist {0..4} vs {5..9}, 20,000", 10, 1 / 32, lambda: _mnist(20000), True),
    "mnist60": ("mnist {0..4} vs {5..9}, 60,000", 10, 1 / 32, lambda: _mnist(60000), False),
    "covtype": ("covtype, 50,000 random rows", 1, 8, lambda: _covtype(50000), True),
}


# -- one fit, in its own process -------------------------------------------------------------------


def _make(who: str, C: float, gamma: float) -> Any:
    if who == "slimsvm":
        from slimsvm import SVC

        return SVC(C=C, gamma=gamma, tol=1e-3, cache_size=CACHE_MB, n_jobs=-1)
    if who == "intelex":
        from sklearnex.svm import SVC as Intelex

        return Intelex(C=C, gamma=gamma, tol=1e-3, cache_size=CACHE_MB)
    if who == "libsvm":
        return Libsvm(C, gamma)
    if who == "thundersvm":
        return _thunder(C, gamma)
    from sklearn.svm import SVC as Sklearn

    return Sklearn(C=C, gamma=gamma, tol=1e-3, cache_size=CACHE_MB)


def _thunder(C: float, gamma: float) -> Any:
    from thundersvm import SVC

    class Thunder(SVC):
        """With the attribute that it does not have."""

        def fit(self, X: Any, y: np.ndarray) -> Any:
            super().fit(X, y)
            self.classes_ = np.unique(y)
            return self

    return Thunder(C=C, gamma=gamma, tol=1e-3, cache_size=CACHE_MB, max_mem_size=CACHE_MB)


class Libsvm:
    """LIBSVM by its own Python package, with the attributes that the race looks at."""

    def __init__(self, C: float, gamma: float) -> None:
        self.options = f"-s 0 -t 2 -c {C!r} -g {gamma!r} -e 0.001 -m {CACHE_MB} -q"

    def fit(self, X: Any, y: np.ndarray) -> Libsvm:
        from libsvm.svmutil import svm_train

        self.model = svm_train(np.asarray(y, np.float64), X.astype(np.float64), self.options)
        self.classes_ = np.asarray(self.model.get_labels())
        self.n_support_ = np.asarray(self.model.nSV[: self.model.get_nr_class()])
        self.support_ = np.asarray(self.model.get_sv_indices()) - 1
        self.dual_coef_ = np.asarray(self.model.get_sv_coef(), np.float64).T
        return self

    def predict(self, X: Any) -> np.ndarray:
        from libsvm.svmutil import svm_predict

        return np.asarray(svm_predict([], X.astype(np.float64), self.model, "-q")[0])


def _pairs(model: Any) -> list[tuple[np.ndarray, np.ndarray]]:
    """For each pair of classes: places of its support vectors, and their coefficients."""
    coef = np.asarray(
        model.dual_coef_.toarray() if hasattr(model.dual_coef_, "toarray") else model.dual_coef_,
        np.float64,
    )
    n_classes = len(model.classes_)
    if n_classes == 2:
        return [(np.arange(coef.shape[1]), coef[0])]
    ends = np.concatenate([[0], np.cumsum(model.n_support_)])
    pairs = []
    for i in range(n_classes):
        for j in range(i + 1, n_classes):
            of_i, of_j = np.arange(ends[i], ends[i + 1]), np.arange(ends[j], ends[j + 1])
            at = np.concatenate([of_i, of_j])
            value = np.concatenate([coef[j - 1, of_i], coef[i, of_j]])
            pairs.append((at[value != 0], value[value != 0]))
    return pairs


def _objective(model: Any, X: Any, gamma: float) -> float:
    """The dual objective, 1/2 a'Qa - sum a, of all pairs; in float64."""
    from slimsvm.kernel_sums import accumulate
    from slimsvm.kernels import RBF
    from slimsvm.tiles import Strips, prepare

    support = prepare(RBF(gamma), X[np.asarray(model.support_)], dtype=np.float64)
    total = 0.0
    for at, coef in _pairs(model):
        part, s = support.take(at), np.zeros(at.size)
        accumulate(part, Strips(part), coef, s, 2)
        total += 0.5 * float(coef @ s) - float(np.abs(coef).sum())
    return total


def _minimum(model: Any, X: Any, y: np.ndarray, gamma: float) -> float:
    """The paper's bound: seconds to compute the kernel rows of the final support vectors once.

    They are computed with our own tiles, pair by pair.
    """
    from slimsvm.kernel_sums import accumulate
    from slimsvm.kernels import RBF
    from slimsvm.tiles import Strips, prepare

    rows = prepare(RBF(gamma), X)
    label = np.searchsorted(model.classes_, y)
    support = np.asarray(model.support_)
    jobs = []
    for at, _ in _pairs(model):
        classes = np.unique(label[support[at]])
        columns = (
            rows if len(model.classes_) == 2 else rows.take(np.flatnonzero(np.isin(label, classes)))
        )
        jobs.append((rows.take(support[at]), columns))
    best = np.inf
    for _ in range(2):
        begin = time.perf_counter()
        for part, columns in jobs:
            accumulate(
                part, Strips(columns), np.ones(part.n), np.zeros(columns.n), os.cpu_count() or 1
            )
        best = min(best, time.perf_counter() - begin)
    return best


def one(name: str, who: str, kind: str, repeat: str = "0") -> dict[str, Any]:
    """Fit once and measure; what does not change between repeats is computed in the first only."""
    _, C, gamma, get, _ = SETS[name]
    X, y, X_test, y_test = get()
    X, X_test = X.astype(kind), X_test.astype(kind)
    model = _make(who, C, gamma)
    # enough rows that every compiled function of the fit is loaded
    n_each = max(600, 3000 // len(np.unique(y)))
    few = np.concatenate([np.flatnonzero(y == label)[:n_each] for label in np.unique(y)])[:6000]
    model.fit(X[few], y[few])
    forget_peak()
    before = memory_mb("VmRSS")
    begin, cpu = time.perf_counter(), time.process_time()
    model = _make(who, C, gamma).fit(X, y)
    seconds, cpu = time.perf_counter() - begin, time.process_time() - cpu
    peak = memory_mb("VmHWM") - before
    result: dict[str, Any] = {
        "seconds": seconds,
        "cpu_seconds": cpu,
        "peak_mb": peak,
        "n_support": int(np.sum(model.n_support_)),
    }
    if repeat != "0":
        return result
    # the peers' own prediction takes minutes on large test sets
    some = slice(None if who == "slimsvm" else 2000)
    result |= {
        "accuracy": float(np.mean(model.predict(X_test[some]) == y_test[some])),
        "objective": _objective(model, X, gamma),
    }
    if who == "slimsvm":
        copies = (
            X.shape[0] * X.shape[1] * 4 / 2**20 if not hasattr(X, "nnz") else 4 * X.nnz * 8 / 2**20
        )
        result |= {
            "minimum": _minimum(model, X, y, gamma),
            "relative_gap": model.certificate_.gap / abs(model.certificate_.objective),
            "violation": model.certificate_.violation,
            "precision": model.certificate_.precision,
            "memory_ratio": peak / (copies + CACHE_MB),
        }
    return result


# -- instead of an exact SVM -----------------------------------------------------------------------


def _make_instead(method: str, C: float, gamma: float) -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.kernel_approximation import Nystroem
    from sklearn.linear_model import SGDClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.svm import LinearSVC

    from slimsvm import SVC, SparseSVC

    features = Nystroem(gamma=gamma, n_components=N_COMPONENTS, random_state=0)
    return {
        "exact": lambda n: SVC(C=C, gamma=gamma, cache_size=CACHE_MB),
        "sparse_svc": lambda n: SparseSVC(50, C=C, gamma=gamma, random_state=0),
        "nystroem_linear": lambda n: make_pipeline(features, LinearSVC(C=C, random_state=0)),
        # the same problem, by SGD
        "nystroem_sgd": lambda n: make_pipeline(
            features, SGDClassifier(alpha=1 / (C * n), random_state=0)
        ),
        # its defaults: no C, no gamma
        "gradient_boosting": lambda n: HistGradientBoostingClassifier(random_state=0),
    }[method]


def instead(name: str, method: str) -> dict[str, Any]:
    """Fit once on one thread and measure; all test rows."""
    from threadpoolctl import threadpool_limits

    _, C, gamma, get, _ = SETS[name]
    X, y, X_test, y_test = get()
    X, X_test = X.astype(np.float32), X_test.astype(np.float32)
    make = _make_instead(method, C, gamma)
    few = np.concatenate([np.flatnonzero(y == label)[:600] for label in np.unique(y)])
    with threadpool_limits(1):
        make(few.size).fit(X[few], y[few])
        forget_peak()
        before, begin, cpu = memory_mb("VmRSS"), time.perf_counter(), time.process_time()
        model = make(len(y)).fit(X, y)
        seconds, cpu = time.perf_counter() - begin, time.process_time() - cpu
        peak = memory_mb("VmHWM") - before
        begin = time.process_time()
        accuracy = float(np.mean(model.predict(X_test) == y_test))
        each = (time.process_time() - begin) / len(y_test)
    vectors = {
        "exact": lambda: int(model.n_support_.sum()),
        "sparse_svc": lambda: int(model.n_basis_),
    }.get(method, lambda: N_COMPONENTS)
    result = {
        "seconds": seconds,
        "cpu_seconds": cpu,
        "peak_mb": peak,
        "accuracy": accuracy,
        "predict_us": 1e6 * each,
    }
    return result if method == "gradient_boosting" else result | {"n_support": vectors()}


# -- everyday problems -----------------------------------------------------------------------------


def everyday(name: str) -> dict[str, Any]:
    """Ours and the peers in one process, in turn."""
    return measured(name)


# -- the race --------------------------------------------------------------------------------------


def exact_cells(
    sets: list[str], kinds: list[str], contestants: list[str], repeats: int
) -> list[Cell]:
    """The race of the exact SVMs, in the order of the run: contestants alternate."""
    found = []
    for name, kind, repeat, who in product(sets, kinds, range(repeats), contestants):
        if who in ONE_TYPE and (kind != "float64" or (who in SLOW and not SETS[name][4])):
            continue
        if repeat and who in OTHERS:
            continue
        found.append(
            Cell(
                f"{name}/{kind}/{who}",
                "one",
                (name, who, kind, str(repeat)),
                seconds=400 if who in OTHERS else 1200,
                peer=f"{name}/{kind}/intelex" if who == "slimsvm" else None,
                repeat=repeat,
                enough=np.inf if who in BOTH_TYPES else SLOW_SECONDS,
                touch=True,
            )
        )
    return found


def cells(quick: bool) -> list[Cell]:
    """What there is to measure."""
    if quick:
        found = exact_cells(["a9a_dense", "ijcnn1"], ["float32"], list(BOTH_TYPES), 1)
        found += exact_cells(["letter"], ["float64"], [*BOTH_TYPES, *ONE_TYPE], 1)
        return [
            *found,
            *(
                Cell(f"ijcnn1/instead/{method}", "instead", ("ijcnn1", method))
                for method in INSTEAD
            ),
        ]
    found = exact_cells(list(SETS), ["float32", "float64"], [*BOTH_TYPES, *ONE_TYPE], 3)
    return [
        *found,
        *(
            Cell(f"{name}/instead/{method}", "instead", (name, method))
            for name in INSTEAD_SETS
            for method in INSTEAD
        ),
        *(Cell(f"everyday/{name}", "everyday", (name,)) for name in RACES),
    ]


def table() -> str:
    """The stored results in Markdown."""
    stored = json.loads(RESULTS.read_text())
    return "\n".join(
        [
            *_exact_table(stored),
            "",
            *_others_table(stored["cells"]),
            "",
            *_instead_table(stored["cells"]),
            *_everyday_table(stored["cells"]),
        ]
    )


def summary() -> str:
    """Seconds alone, for the README."""
    cells = json.loads(RESULTS.read_text())["cells"]
    lines = [
        "| set | slimsvm | scikit-learn-intelex, float32 | scikit-learn-intelex, float64 | "
        "scikit-learn |",
        "|---|---|---|---|---|",
    ]
    for name, (text, *_, ends) in SETS.items():
        row = [
            cells.get(f"{name}/{who}", {})
            for who in ("float32/slimsvm", "float32/intelex", "float64/intelex", "float64/sklearn")
        ]
        if "seconds" in row[0]:
            shown = [
                f"{cell['seconds']:.{1 if cell['seconds'] < 20 else 0}f}"
                if "seconds" in cell
                else ""
                for cell in row
            ]
            lines.append(
                f"| {text} | "
                + " | ".join([*shown[:3], shown[3] if ends else "(over 10 minutes)"])
                + " |"
            )
    return "\n".join(lines)


def _exact_table(stored: dict[str, Any]) -> list[str]:
    cells = stored["cells"]
    lines = [
        "| set, C, gamma | type | slimsvm | intelex | scikit-learn | ratio to the better peer | "
        "ratio to the minimum | SVs | accuracy | objective against scikit-learn | relative gap | "
        "peak memory / (copies + cache) |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for name, (text, C, gamma, _, _) in SETS.items():
        for kind in ("float32", "float64"):
            ours, intelex = (
                cells.get(f"{name}/{kind}/{who}", {}) for who in ("slimsvm", "intelex")
            )
            sklearn = cells.get(f"{name}/float64/sklearn", {})
            if "seconds" not in ours:
                continue
            peers = [peer["seconds"] for peer in (intelex, sklearn) if "seconds" in peer]
            ratio = f"{min(peers) / ours['seconds']:.1f} x" if peers else ""
            reference = sklearn if "objective" in sklearn else intelex
            worse = (
                (ours["objective"] - reference["objective"]) / abs(reference["objective"])
                if "objective" in reference
                else float("nan")
            )
            seconds = [
                f"{cell['seconds']:.2f}" if "seconds" in cell else ""
                for cell in (ours, intelex, sklearn)
            ]
            lines.append(
                f"| {text}, {C:g}, {gamma:.4g} | {kind} | **{seconds[0]}** | {seconds[1]} | "
                f"{seconds[2]} | {ratio} | {ours['seconds'] / ours['minimum']:.1f} | "
                f"{ours['n_support']:,} | {100 * ours['accuracy']:.2f} | {worse:+.1e} | "
                f"{ours['relative_gap']:.1e} | {ours['memory_ratio']:.2f} |"
            )
    computer = ", ".join(
        f"{key} {value:.3g}" if isinstance(value, float) else f"{key} {value}"
        for key, value in stored["machine"].items()
    )
    return [*lines, "", f"Computer: {computer}."]


def _everyday_table(cells: dict[str, Any]) -> list[str]:
    """Small, linear and many-class problems, once they are measured."""
    if not any(f"everyday/{name}" in cells for name in RACES):
        return []
    lines = [
        "",
        "| everyday problems | slimsvm, ms | the quicker peer, ms | ratio | wanted |",
        "|---|---|---|---|---|",
    ]
    for name, (text, wanted, _) in RACES.items():
        cell = cells.get(f"everyday/{name}", {})
        ours, peer = (_number(cell, of, "{:.3g}", 1e3) for of in ("seconds", "peer_seconds"))
        measured = "seconds" in cell and "peer_seconds" in cell
        ratio = f"{cell['peer_seconds'] / cell['seconds']:.2f}" if measured else ""
        lines.append(f"| {text} | {ours} | {peer} | {ratio} | {wanted:g} |")
    return lines


def _number(cell: dict[str, Any], field: str, form: str, scale: float = 1.0) -> str:
    """A number of a cell; why there is none, if it failed."""
    if "failed" in cell:
        return "failed: " + " ".join(cell["failed"])[:80]
    return form.format(scale * cell[field]) if field in cell else ""


def _others_table(cells: dict[str, Any]) -> list[str]:
    """LIBSVM and ThunderSVM."""
    heads = ["SVs", "objective against slimsvm", "seconds", "CPU seconds"]
    lines = ["LIBSVM and ThunderSVM by their own packages, beside slimsvm on the same rows:", ""]
    lines += ["| set | package | " + " | ".join(heads) + " |", "|---|---|" + "---|" * len(heads)]
    for name, (text, *_) in SETS.items():
        ours = cells.get(f"{name}/float64/slimsvm", {})
        for who in OTHERS:
            cell = cells.get(f"{name}/float64/{who}", {})
            if "failed" in cell:
                lines.append(
                    f"| {text} | {who} | {_number(cell, '', '')} |" + " |" * (len(heads) - 1)
                )
            elif "seconds" in cell:
                worse = (
                    (cell["objective"] - ours["objective"]) / abs(ours["objective"])
                    if "objective" in ours
                    else np.nan
                )
                numbers = (
                    f"{cell['n_support']:,} | {worse:+.1e} | {cell['seconds']:.1f} | "
                    f"{cell.get('cpu_seconds', np.nan):.1f}"
                )
                lines.append(f"| {text} | {who} | {numbers} |")
    return lines


def _instead_table(cells: dict[str, Any]) -> list[str]:
    """What people use instead."""
    lines = [
        f"Instead of an exact SVM, one thread ({N_COMPONENTS} components; SparseSVC has 50 "
        "vectors):",
        "",
    ]
    lines += [
        "| set | method | test accuracy, % | CPU seconds | microseconds to predict a row | "
        "vectors |",
        "|---|---|---|---|---|---|",
    ]
    for name in INSTEAD_SETS:
        text = SETS[name][0]
        for method in INSTEAD:
            cell = cells.get(f"{name}/instead/{method}", {})
            if "failed" in cell:
                lines.append(f"| {text} | {method} | {_number(cell, '', '')} | | | |")
            elif cell:
                numbers = (
                    f"{100 * cell['accuracy']:.2f} | {cell['cpu_seconds']:.1f} | "
                    f"{cell['predict_us']:.2f}"
                )
                lines.append(
                    f"| {text} | {method} | {numbers} | {_number(cell, 'n_support', '{:,.0f}')} |"
                )
    return lines


TABLES = {"peers": table, "peers-summary": summary}
