"""Probabilities by ``probability=True`` beside scikit-learn's calibration, on ten sets.

    python -m benchmarks run probabilities --full
    python -m benchmarks tables probabilities [--show]

Every set is split several times (small ones often: one split of wine has 71 rows to be judged by,
and decides nothing). Log loss and Brier score (the sum over classes) of the held-out rows: ours,
``CalibratedClassifierCV(SVC(), ensemble=False)`` around our SVC, and scikit-learn's
``SVC(probability=True)``; the time of our fit with probabilities divided by that of our plain one.
"""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import (
    load_breast_cancer,
    load_digits,
    load_iris,
    load_wine,
    make_classification,
)
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from benchmarks.data import dense, load
from benchmarks.runner import Cell

RESULTS = Path(__file__).parent / "results" / "probabilities.json"
SMALL: dict[str, Callable[..., Any]] = {
    "iris": load_iris,
    "wine": load_wine,
    "breast cancer": load_breast_cancer,
    "digits": load_digits,
}
LARGE = ("satimage", "dna", "letter", "ijcnn1", "a9a")
SETS = (*SMALL, *LARGE, "noisy")
ROWS = 3000  # of the large sets
SPLITS = {"iris": 20, "wine": 20, "breast cancer": 20, "digits": 3}
CONTESTANTS = ("ours", "calibrated", "sklearn")


def _data(name: str) -> tuple[Any, Any]:
    if name in SMALL:
        return SMALL[name](return_X_y=True)
    if name == "noisy":
        return make_classification(2000, 20, flip_y=0.15, random_state=0)
    X, y, *_ = load(name)
    some = np.random.default_rng(0).permutation(len(y))[:ROWS]
    return dense(X[some]), y[some]


def _fitted(model: Any, X: Any, y: Any) -> tuple[Any, float]:
    begin = time.process_time()
    return model.fit(X, y), time.process_time() - begin


def scores(name: str) -> dict[str, Any]:
    """Means over the splits, and the standard error of the difference in log loss."""
    import sklearn.svm

    from slimsvm import SVC

    X, y = _data(name)
    losses, briers, slower = [], [], []
    SVC(probability=True).fit(X[:200], y[:200])  # warm-up
    for split in range(SPLITS.get(name, 2)):
        X_a, X_b, y_a, y_b = train_test_split(X, y, test_size=0.4, random_state=split, stratify=y)
        scaler = StandardScaler().fit(X_a)
        X_a, X_b = scaler.transform(X_a), scaler.transform(X_b)
        plain = min(_fitted(SVC(), X_a, y_a)[1] for _ in range(3))
        model, seconds = min(
            (_fitted(SVC(probability=True), X_a, y_a) for _ in range(3)), key=lambda found: found[1]
        )
        slower.append(seconds / plain)
        models = [
            model,
            CalibratedClassifierCV(SVC(), ensemble=False).fit(X_a, y_a),
            sklearn.svm.SVC(probability=True, random_state=0).fit(X_a, y_a),
        ]
        found = [one.predict_proba(X_b) for one in models]
        right = y_b[:, None] == model.classes_
        losses.append([log_loss(y_b, p, labels=model.classes_) for p in found])
        briers.append([float(np.mean(np.sum((p - right) ** 2, axis=1))) for p in found])
    loss, brier = np.mean(losses, axis=0), np.mean(briers, axis=0)
    difference = np.array([row[0] - row[1] for row in losses])
    result = {f"log_loss_{who}": float(loss[k]) for k, who in enumerate(CONTESTANTS)}
    result |= {f"brier_{who}": float(brier[k]) for k, who in enumerate(CONTESTANTS)}
    error = float(difference.std(ddof=1) / np.sqrt(difference.size))
    return result | {"splits": difference.size, "error": error, "slower": float(np.median(slower))}


def probabilities(name: str) -> dict[str, Any]:
    """The scores of a set, without the warnings that probability=True is deprecated."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return scores(name)


def cells(quick: bool) -> list[Cell]:
    """What there is to measure."""
    return [Cell(name, "probabilities", (name,)) for name in (("iris",) if quick else SETS)]


def table() -> str:
    """The stored results in Markdown."""
    stored = json.loads(RESULTS.read_text())["cells"]
    lines = [
        "| set | splits | log loss: slimsvm | calibrated | difference | scikit-learn's | "
        "Brier: slimsvm | calibrated | scikit-learn's | time / plain fit |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for name in SETS:
        cell = stored.get(name, {})
        if "slower" not in cell:
            continue
        difference = cell["log_loss_ours"] - cell["log_loss_calibrated"]
        numbers = [
            f"{cell['log_loss_ours']:.4f}",
            f"{cell['log_loss_calibrated']:.4f}",
            f"{difference:+.4f} ± {cell['error']:.4f}",
            f"{cell['log_loss_sklearn']:.4f}",
            *(f"{cell[f'brier_{who}']:.4f}" for who in CONTESTANTS),
            f"{cell['slower']:.1f}",
        ]
        lines.append(f"| {name} | {cell['splits']} | " + " | ".join(numbers) + " |")
    return "\n".join(lines)


TABLES = {"probabilities": table}
