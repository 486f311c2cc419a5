"""The page of one model: what it is, its training, its results on data, its vectors as pictures.

Everything is taken from the public attributes of the estimator, so that models from files can be
shown as well; the page says what a file lacks (the steps of the training, in the files of other
programs).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import is_regressor
from sklearn.metrics import accuracy_score, confusion_matrix, r2_score

from slimsvm.displays.basis import picture_shape
from slimsvm.estimators import OneClassSVM
from slimsvm.report.page import Page
from slimsvm.report.parts import (
    Axis,
    Chart,
    Comparison,
    Facts,
    Matrix,
    Model,
    Part,
    Pictures,
    Series,
    Table,
    Text,
)
from slimsvm.report.speed import of_sequences, seconds_per_row
from slimsvm.report.words import describe, lines_of, short
from slimsvm.run import DISTANCE

Array = NDArray[Any]

MOST_CLASSES = 40  # of a confusion matrix; of more, the worst confusions are listed
MOST_CONFUSIONS = 50
MOST_PICTURES = 100
MOST_CURVES = 8
MOST_POINTS = 400  # of a curve

# of the certificate: name, and what it means
MEANINGS = {
    "scope": (
        "full: the exact solution; subspace: the best model within the span of the basis; "
        "distance: the model it was compressed from"
    ),
    "objective": "value of the problem that was minimised",
    "violation": "largest violation of the optimality conditions",
    "gap": "the objective is at most this far from its optimum",
    "tol": "the violation that was asked for",
    "precision": "type of the kernel values",
    "projection_error": "how much of a cut lies outside the span",
    "bound": "the objective is at most this far from that of the exact solution",
}


def model_page(
    estimator: Any,
    X: Any = None,
    y: Any = None,
    *,
    name: str = "model",
    image_shape: tuple[int, int] | None = None,
    n_jobs: int | None = None,
    facts: dict[str, Any] | None = None,
) -> str:
    """A page that shows a fitted model, as HTML that needs no network.

    Parameters
    ----------
    estimator : a fitted estimator of this package
        What to show.
    X : array or sparse matrix of shape (n, n_features), optional
        Rows to try it on, better not those it was trained on.
    y : array of shape (n,), optional
        Their labels or targets.
    name : str, default="model"
        For the title.
    image_shape : (int, int), optional
        Height and width, if rows are pictures. By default squares of 8 x 8 and more are taken for
        pictures.
    n_jobs : int, optional
        Threads of the predictions.
    facts : dict, optional
        More facts about the model: ``format`` and ``bytes`` of its file.

    Returns
    -------
    str
        The page.

    Raises
    ------
    ValueError
        If the shape does not fit the features; if labels are text where those of the model are
        numbers, or are not its classes; if there is data, and the model labels sequences.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from slimsvm import SparseSVC
    >>> from slimsvm.report import model_page
    >>> digits = load_digits()
    >>> X, y = digits.data, digits.target
    >>> model = SparseSVC(10, gamma=1e-3, random_state=0).fit(X[:500], y[:500])
    >>> html = model_page(model, X[500:], y[500:], name="digits")
    >>> html.count("<img"), "Confusion matrix" in html
    (10, True)
    """
    shape = picture_shape(int(estimator.n_features_in_), image_shape)
    if X is not None and of_sequences(estimator):
        raise ValueError(
            f"{type(estimator).__name__} labels sequences, and the page shows rows: leave the "
            "data out."
        )
    X = X if X is None or hasattr(X, "shape") else np.asarray(X)
    y = None if y is None else _comparable(estimator, np.asarray(y))
    about = {**describe(estimator), **(facts or {})}
    seconds, about["rows_measured"] = seconds_per_row(estimator, n_jobs)
    about["microseconds_per_row"] = 1e6 * seconds
    path = about.pop("path", [])  # has a section of its own
    page = Page(f"{about['machine']}: {name}", about.get("status", {}).get("sentence", ""))
    page.section("The model", Facts(lines_of(about)))
    before = estimator.get_params(deep=False)["n_jobs"]
    estimator.set_params(n_jobs=n_jobs)
    try:
        page.section("Size and accuracy", *_path(estimator, path, X, y))
        if X is not None:
            page.section(f"On the data: {X.shape[0]:,} rows", *_on_data(estimator, X, y))
    finally:
        estimator.set_params(n_jobs=before)
    page.section("Certificate", *_certificate(about.get("certificate")))
    page.section("Training", *_convergence(estimator))
    page.section("Vectors as pictures", *_pictures(estimator, shape))
    return page.html()


def _comparable(estimator: Any, y: Array) -> Array:
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


def _path(estimator: Any, path: list[dict[str, Any]], X: Any, y: Any) -> list[Part]:
    """The score at every size of the basis: on the data if it has labels, else that of training."""
    if len(path) < 2:
        return []
    regression = is_regressor(estimator)
    measure, unit = ("R², %", "% R²") if regression else ("accuracy, %", "%")
    models = []
    if y is not None:
        score = r2_score if regression else accuracy_score
        models = [
            Model(
                "on the data",
                p["n_basis"],
                100 * float(score(y, estimator.truncated(p["n_basis"]).predict(X))),
            )
            for p in path
        ]
    for which, label in (
        ("validation_score", "held out at training"),
        ("training_score", "on the training rows"),
    ):
        if not all(p[which] is None for p in path):
            counts = not models  # the first of these that is there decides
            models += [Model(label, p["n_basis"], _percent(p[which]), counts=counts) for p in path]
    note = (
        "One fit holds the models of all these sizes: truncated(n_basis) returns them without "
        "training. The model here has "
    )
    return [Text(f"{note}{estimator.n_basis_:,}."), Comparison("This model", models, measure, unit)]


def _on_data(estimator: Any, X: Any, y: Any) -> list[Part]:
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
        Facts([("accuracy", f"{100 * right / len(y):.4g} % ({right:,} of {len(y):,})")])
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
    if len(names) > 2 and wrong:
        worst = [[true, said, n] for n, true, said in sorted(wrong, reverse=True)[:MOST_CONFUSIONS]]
        parts.append(
            Table(
                ["class of the data", "prediction", "rows"], worst, "The most frequent confusions"
            )
        )
    parts.append(
        Table(["class", "rows", "found, %", "right where predicted, %"], rows, "Each class")
    )
    return parts


def _errors(predicted: Array, y: Array) -> list[Part]:
    """What is said of a regression."""
    difference = predicted - y
    lines = [
        ("R²", f"{r2_score(y, predicted):.6g}" if len(y) > 1 else "needs two rows"),
        ("mean squared error", f"{np.mean(difference**2):.6g}"),
        ("mean absolute error", f"{np.mean(np.abs(difference)):.6g}"),
        ("largest error", f"{np.max(np.abs(difference)):.6g}"),
    ]
    some = _few(len(y), MOST_POINTS)
    rows = Series("rows", y[some], predicted[some], line=False)
    ends = [float(y.min()), float(y.max())]
    return [
        Facts(lines),
        Chart(
            "Predictions against targets",
            Axis("target"),
            Axis("prediction"),
            [rows, Series("equal", ends, ends)],
        ),
    ]


def _certificate(certificate: dict[str, Any] | None) -> list[Part]:
    if certificate is None or not np.isfinite(certificate["violation"]):
        return [Text("The model does not say how far from its optimum it is.")]
    holds = (
        f"Within the tolerance: {'yes' if certificate['violation'] <= certificate['tol'] else 'no'}"
    )
    if certificate["scope"] == DISTANCE:
        holds = (
            "The objective is the squared distance in feature space, the violation the distance "
            "as a share of the norm"
        )
    known = [(name, certificate[name]) for name in MEANINGS if certificate.get(name) is not None]
    rows = [[name.replace("_", " "), short(value), MEANINGS[name]] for name, value in known]
    return [Table(["what", "value", "meaning"], rows, holds)]


def _convergence(estimator: Any) -> list[Part]:
    """Objective, gap and violation against the seconds of training, a curve for each problem."""
    # several: CrossTraining
    histories = [
        getattr(model, "history_", {}) for model in getattr(estimator, "estimators_", [estimator])
    ]
    runs = [run for history in histories if history for run in _runs(history)]
    if not runs:
        return [Text("The model file does not hold the steps of the training.")]
    parts: list[Part] = []
    if len(runs) > MOST_CURVES:
        parts.append(Text(f"The first {MOST_CURVES} of {len(runs):,} problems that were solved."))
    for name, scale in (("objective", "linear"), ("gap", "log"), ("violation", "log")):
        curves = []
        for at, run in enumerate(runs[:MOST_CURVES]):
            if name in run:
                some = _few(len(run["seconds"]), MOST_POINTS)
                label = name if len(runs) == 1 else f"problem {at + 1}"
                curves.append(
                    Series(
                        label,
                        np.asarray(run["seconds"])[some],
                        np.asarray(run[name], np.float64)[some],
                    )
                )
        x, y = Axis("seconds"), Axis(name, scale)
        if any(len(curve.points(x, y)) > 1 for curve in curves):
            parts.append(Chart(f"{name.capitalize()} against seconds of training", x, y, curves))
    return parts or [Text("The training took one step: there is no curve to show.")]


def _runs(history: dict[str, Array]) -> list[dict[str, Array]]:
    """The history of each problem of a model."""
    if "problem" not in history:
        return [history]
    problem = np.asarray(history["problem"])
    return [
        {name: np.asarray(values)[problem == which] for name, values in history.items()}
        for which in np.unique(problem)
    ]


def _pictures(estimator: Any, shape: tuple[int, int] | None) -> list[Part]:
    model = getattr(estimator, "estimators_", [estimator])[0]  # of a CrossTraining
    vectors = getattr(model, "basis_", getattr(model, "support_vectors_", None))
    if (
        shape is None
        or vectors is None
        or not vectors.shape[0]
        or vectors.shape[1] != shape[0] * shape[1]
    ):
        return []
    coef = (
        model.basis_coef_
        if hasattr(model, "basis_coef_")
        else np.asarray(_dense(model.dual_coef_)).T
    )
    coef = np.asarray(coef).reshape(vectors.shape[0], -1)
    order = np.argsort(-np.linalg.norm(coef, axis=1), kind="stable")[:MOST_PICTURES]
    kind = "basis vectors" if hasattr(model, "basis_") else "support vectors"
    which = f"All {kind}"
    if len(order) < vectors.shape[0]:
        which = f"The {len(order):,} of {vectors.shape[0]:,} {kind} with the largest coefficients"
    note = (
        f"{which}, largest coefficients first; each picture goes from its smallest value (black) "
        "to its largest (white)."
    )
    return [
        Text(note),
        Pictures(_dense(vectors[order]), shape, [_vote(model, coef, int(at)) for at in order]),
    ]


def _vote(model: Any, coef: Array, at: int) -> str:
    """What a vector votes for, as far as that is known."""
    classes = getattr(model, "classes_", None)
    row = coef[at]
    if classes is None:
        return f"{row[0]:+.3g}"
    if len(classes) == 2 and row.size == 1:
        return f"{classes[int(row[0] > 0)]} ({row[0]:+.3g})"
    if row.size == len(classes):
        return f"{classes[int(np.argmax(row))]} ({row.max():+.3g})"
    if hasattr(model, "n_support_"):  # in the order of the classes
        return str(classes[int(np.searchsorted(np.cumsum(model.n_support_), at, side="right"))])
    return f"norm {np.linalg.norm(row):.3g}"


def _few(n: int, most: int) -> Sequence[int] | Array:
    """Places of n things, or of at most ``most`` of them, the first and the last included."""
    return range(n) if n <= most else np.unique(np.linspace(0, n - 1, most).astype(np.intp))


def _dense(values: Any) -> Any:
    return values.toarray() if sp.issparse(values) else values


def _percent(value: float | None) -> float | None:
    return None if value is None else 100 * value


def _share(part: int, whole: int) -> float | None:
    return None if whole == 0 else round(100 * float(part) / float(whole), 3)
