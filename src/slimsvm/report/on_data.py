"""What a model does on rows: its scores, confusions and errors; its size, chosen on other rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import is_regressor
from sklearn.metrics import accuracy_score, confusion_matrix, r2_score

from slimsvm.compression import compressible
from slimsvm.estimators import OneClassSVM
from slimsvm.report.comparison import Comparison, Model, Panels
from slimsvm.report.parts import (
    Axis,
    Chart,
    Facts,
    Folded,
    Matrix,
    Part,
    Series,
    Table,
    Text,
    Tiles,
)

Array = NDArray[Any]

MOST_CLASSES = 40  # of a confusion matrix; of more, the worst confusions are listed
MOST_CONFUSIONS = 50
MOST_POINTS = 400  # of a curve
LEAST_ROWS = 40  # that are halved to choose a size and to score it
ONE_SIZE = (
    "This model has one size. slimsvm.compress(model, n_basis={}) makes a small one of it, and "
    "{} trains small ones of all sizes in one fit."
)
FEW = 50  # vectors that most models need at most
# what is said of rows: the model is so good "on" these
HELD_OUT, CHOOSES, SCORES = "rows held out at training", "half of the data", "the other half"
ALL, TRAINED = "the data", "the training rows"


def as_rows(X: Any) -> Any:
    """Rows as an array or a sparse matrix, whose parts can be taken; None stays None."""
    if X is None or sp.issparse(X):
        return X if X is None else X.tocsr()
    return np.asarray(X)


def comparable(estimator: Any, y: Array) -> Array:
    """The labels, if they are text or numbers as those of the model are."""
    numbers, wanted = (
        y.dtype.kind in "fiub",
        getattr(estimator, "classes_", np.zeros(1)).dtype.kind in "fiub",
    )
    if numbers != wanted:
        kinds = ("numbers", "text") if numbers else ("text", "numbers")
        raise ValueError(f"The labels of the data are {kinds[0]}, those of the model {kinds[1]}.")
    if (
        y.dtype.kind == "f"
        and hasattr(estimator, "classes_")
        and (between := y[y != np.round(y)]).size
    ):
        raise ValueError(
            f"The data has labels such as {between[0]:g}, which are no classes: the model tells "
            f"the classes {_some(estimator.classes_)} apart. Pass rows with labels of classes; "
            "numbers of any size are the targets of a regression."
        )
    return y


def _some(classes: Array) -> str:
    """The first of many."""
    return ", ".join(str(label) for label in classes[:10].tolist()) + (
        ", ..." if len(classes) > 10 else ""
    )


def sizes(estimator: Any, path: list[dict[str, Any]], X: Any, y: Any) -> list[Part]:
    """The score at every size of the basis, and which size to take.

    Rows that choose a size do not say how good it is: they flatter it. Rows held out at the
    training choose; without these, half of the data does, and the other half scores. Without
    labels, only the training rows are left to choose, and the page says so.
    """
    if len(path) < 2:
        return one_size(estimator)
    regression = is_regressor(estimator)
    measure, unit = ("R², %", "% R²") if regression else ("accuracy, %", "%")
    held_out = all(point["validation_score"] is not None for point in path)
    series: list[tuple[str, list[float | None]]] = []
    scored = ""
    if held_out:
        series.append((HELD_OUT, [_percent(p["validation_score"]) for p in path]))
    if y is not None:
        answers = [estimator.truncated(p["n_basis"]).predict(X) for p in path]
        halves = np.random.default_rng(0).permutation(len(y)) % 2 == 0
        parts = [(ALL, np.ones(len(y), bool))]
        if not held_out and len(y) >= LEAST_ROWS:
            parts = [(CHOOSES, halves), (SCORES, ~halves)]
        scored = parts[-1][0]
        score = r2_score if regression else accuracy_score
        found: list[tuple[str, list[float | None]]] = [
            (name, [100 * float(score(y[rows], answer[rows])) for answer in answers])
            for name, rows in parts
        ]
        # with few rows, those of the training choose, and come first
        series += found if held_out or len(parts) > 1 else []
    if any(p["training_score"] is not None for p in path):
        series.append((TRAINED, [_percent(p["training_score"]) for p in path]))
    if y is not None and scored not in [name for name, _ in series]:
        series.append(found[0])
    models = [
        Model(name, point["n_basis"], value, counts=at == 0)
        for at, (name, values) in enumerate(series)
        for point, value in zip(path, values, strict=True)
    ]
    if not any(model.score is not None for model in models):
        return []
    note = (
        "One fit holds the models of all these sizes: truncated(n_basis) returns them without "
        f"training. The model here has {estimator.n_basis_:,}. The size below is chosen on "
        f"{series[0][0]}."
    )
    if series[0][0] == TRAINED:
        note += " Rows that were trained on flatter large models: data of its own would be better."
    if series[0][0] == scored:  # few rows, and nothing is known of the training
        note += " These are few, and they score what they chose: more would be better."
        scored = ""
    comparison = Comparison("This model", models, measure, unit, rows=True, scored=scored)
    return [Text(note), Panels("vectors", [comparison])]


def one_size(estimator: Any) -> list[Part]:
    """How a model of one size becomes smaller; nothing where it has to stay as it is."""
    vectors = getattr(estimator, "support_vectors_", None)
    if vectors is None or vectors.shape[0] < 2 or not compressible(estimator):
        return []
    sparse = "SparseSVR" if is_regressor(estimator) else "SparseSVC"
    return [Text(ONE_SIZE.format(min(FEW, vectors.shape[0] // 2), sparse))]


def score_tile(estimator: Any, X: Any, y: Any) -> list[tuple[str, str, str]]:
    """The score on the data as a large number; none without labels."""
    if y is None or isinstance(estimator, OneClassSVM):
        return []
    predicted, rows = estimator.predict(X), f"on {len(y):,} rows of data"
    if is_regressor(estimator):
        return [(f"{r2_score(y, predicted):.3f}", "R²", rows)] if len(y) > 1 else []
    return [(f"{100 * float(np.mean(predicted == y)):.2f} %", "accuracy", rows)]


def on_data(estimator: Any, X: Any, y: Any) -> list[Part]:
    """How right the predictions are, and where they are wrong."""
    predicted = estimator.predict(X)
    outliers = isinstance(estimator, OneClassSVM)
    if y is None or (outliers and not np.isin(y, (-1, 1)).all()):
        if outliers:
            return [
                Facts([("outliers", f"{int(np.sum(predicted == -1)):,} of {len(predicted):,}")])
            ]
        return [Text("The data has no labels to compare the predictions with.")]
    if is_regressor(estimator):
        return _errors(predicted, y)
    labels = np.unique(np.concatenate([getattr(estimator, "classes_", np.array([-1, 1])), y]))
    counts = confusion_matrix(y, predicted, labels=labels)
    names = [str(label) for label in labels.tolist()]
    right = int(np.trace(counts))
    parts: list[Part] = [
        Text(f"{100 * right / len(y):.2f} % of the rows are right ({right:,} of {len(y):,}).")
    ]
    rows = [
        [
            name,
            int(counts[i].sum()),
            _share(counts[i, i], counts[i].sum()),
            _share(counts[i, i], counts[:, i].sum()),
        ]
        for i, name in enumerate(names)
    ]
    if len(names) <= MOST_CLASSES:
        parts.append(Matrix(names, counts))
    wrong = [(int(counts[i, j]), names[i], names[j]) for i, j in np.argwhere(counts) if i != j]
    tables: list[Part] = []
    if len(names) > 2 and wrong:
        worst = [[true, said, n] for n, true, said in sorted(wrong, reverse=True)[:MOST_CONFUSIONS]]
        columns = ["class of the data", "prediction", "rows"]
        tables.append(Table(columns, worst, "The most frequent confusions"))
    tables.append(
        Table(["class", "rows", "found, %", "right where predicted, %"], rows, "Each class")
    )
    return [*parts, Folded("Confusions and classes in numbers", tables)]


def _errors(predicted: Array, y: Array) -> list[Part]:
    """What is said of a regression."""
    difference = predicted - y
    lines = [
        (f"{r2_score(y, predicted):.4f}" if len(y) > 1 else "needs two rows", "R²", ""),
        (f"{np.mean(np.abs(difference)):.4g}", "mean absolute error", ""),
        (f"{np.sqrt(np.mean(difference**2)):.4g}", "root mean squared error", ""),
        (f"{np.max(np.abs(difference)):.4g}", "largest error", ""),
    ]
    some = few(len(y), MOST_POINTS)
    rows = Series("rows", y[some], predicted[some], line=False)
    ends = [float(y.min()), float(y.max())]
    return [
        Tiles(lines),
        Chart(
            "Predictions against targets",
            Axis("target"),
            Axis("prediction"),
            [rows, Series("equal", ends, ends)],
        ),
    ]


def few(n: int, most: int) -> Sequence[int] | Array:
    """Places of n things, or of at most ``most`` of them, the first and the last included."""
    return range(n) if n <= most else np.unique(np.linspace(0, n - 1, most).astype(np.intp))


def _percent(value: float | None) -> float | None:
    return None if value is None else 100 * value


def _share(part: int, whole: int) -> float | None:
    return None if whole == 0 else round(100 * float(part) / float(whole), 3)
