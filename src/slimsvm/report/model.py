"""The page of one model: one question a section, and the model itself to be tried.

Everything is taken from the public attributes of the estimator, so that models from files can be
shown as well; the page says what a file lacks (the steps of the training, in the files of other
programs).
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from slimsvm.displays.axes import last_step
from slimsvm.displays.basis import picture_shape
from slimsvm.mapping import unmapped
from slimsvm.report.on_data import MOST_POINTS, as_rows, comparable, few, on_data, score_tile, sizes
from slimsvm.report.page import Page
from slimsvm.report.parts import (
    Axis,
    Badge,
    Chart,
    Facts,
    Folded,
    Heading,
    Part,
    Series,
    Table,
    Text,
    Tiles,
)
from slimsvm.report.pictures import Pictures
from slimsvm.report.speed import measured, of_sequences
from slimsvm.report.trying import trying
from slimsvm.report.words import (
    code_tiles,
    describe,
    lines_of,
    size_tiles,
    speed_tiles,
    summary,
)
from slimsvm.run import DISTANCE

Array = NDArray[Any]

MOST_PICTURES = 100
MOST_CURVES = 8
MOST_VALUES = 1 << 22  # of vectors that say which values features have
# why a fit ended: what the badge says, and whether that is as it should be
STATUS = {
    "converged": ("Converged", True),
    "loaded": ("From another program", True),
    "trained": ("Trained", True),
}
# what a certificate speaks of, after "within 0.1"
SCOPES = {
    "full": "of the optimum of the exact problem",
    "subspace": "of the best model with these vectors",
}
SPEED = (
    "Measured on this computer when the page was written, with predict in Python: one row alone, "
    "where most of the time goes into the call, and many rows at once."
)

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
    estimator : a fitted estimator of this package, or a Pipeline that ends with one
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
    model, taken = last_step(estimator), as_rows(X)
    shape = picture_shape(int(estimator.n_features_in_), image_shape)
    if X is not None and of_sequences(model):
        raise ValueError(
            f"{type(model).__name__} labels sequences, and the page shows rows: leave the data out."
        )
    y = None if y is None else comparable(model, np.asarray(y))
    before = model.get_params(deep=False)["n_jobs"]
    model.set_params(n_jobs=n_jobs)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "X does not have valid feature names")
            rows = taken if model is estimator or taken is None else estimator[:-1].transform(taken)
            page = _page(estimator, model, taken, rows, y, name, shape, facts or {})
    finally:
        model.set_params(n_jobs=before)
    return page.html()


def _page(
    estimator: Any,
    model: Any,
    given: Any,
    rows: Any,
    y: Array | None,
    name: str,
    shape: tuple[int, int] | None,
    facts: dict[str, Any],
) -> Page:
    """The page, one question a section; ``rows`` are those that come to the last step."""
    about = {**describe(model), **facts, **measured(model, model.n_jobs)}
    path = about.pop("path", [])  # has a section of its own
    status, proof = about.get("status", {}), about.get("certificate") or {}
    badge = STATUS.get(status.get("reason", ""), ("Stopped early", False))
    if badge == STATUS["converged"] and proof.get("violation", 0.0) > proof.get("tol", np.inf):
        badge = STATUS["trained"]  # it ended as it should, by another rule than the tolerance
    page = Page(
        name,
        summary(about),
        top=[
            Badge(*badge),
            Tiles([*score_tile(model, rows, y), *size_tiles(about), *speed_tiles(about)[:2]]),
        ],
    )
    if not of_sequences(model):
        vectors = _vectors(model) if model is estimator else None
        page.section("Try it", *trying(estimator, given, y, vectors, shape))
    page.section("How small can it be?", *sizes(model, path, rows, y))
    page.section("How fast is it?", Text(SPEED), Tiles([*speed_tiles(about), *code_tiles(about)]))
    data = []
    if rows is not None:
        data = [Heading(f"On the data: {rows.shape[0]:,} rows"), *on_data(model, rows, y)]
    certificate = [Heading("Certificate"), *_certificate(about.get("certificate"))]
    page.section("Can I trust it?", Text(status.get("sentence", "")), *data, *certificate)
    page.section("Which vectors does it keep?", *_pictures(model, shape))
    page.section(
        "Details",
        Folded("Everything known of the model", [Facts(lines_of(about))]),
        Folded("How the training went", _convergence(model)),
    )
    return page


def _vectors(model: Any) -> Array | None:
    """Basis or support vectors as rows of features, dense."""
    first = getattr(model, "estimators_", [model])[0]  # of a CrossTraining
    vectors = getattr(first, "basis_", getattr(first, "support_vectors_", None))
    if vectors is None or not hasattr(vectors, "shape") or not vectors.shape[0]:
        return None
    if vectors.shape[0] * vectors.shape[1] > MOST_VALUES:
        vectors = vectors[:: 1 + vectors.shape[0] * vectors.shape[1] // MOST_VALUES]
    found = unmapped(np.asarray(_dense(vectors)), getattr(first, "metric_", None))
    return found if found.shape[1] == model.n_features_in_ else None


def _certificate(certificate: dict[str, Any] | None) -> list[Part]:
    if certificate is None or not np.isfinite(certificate["violation"]):
        return [Text("The model does not say how far from its optimum it is.")]
    objective, gap = certificate["objective"], certificate["gap"]
    of = SCOPES.get(certificate["scope"], "of its optimum")
    said = f"Its objective, {objective:.4g}, is proved to be within {gap:.2g} {of}."
    if not np.isfinite(gap):
        said = "No bound on the distance of its objective from the optimum is known."
    elif certificate["scope"] == DISTANCE:
        said = (
            "Its distance to the model it was made from, in feature space, is "
            f"{certificate['violation']:.2g} of the norm of that."
        )
    elif certificate["violation"] > certificate["tol"]:
        said += f" The tolerance that was asked for, {certificate['tol']:g}, is not reached."
    known = [(name, certificate[name]) for name in MEANINGS if certificate.get(name) is not None]
    rows = [
        [name.replace("_", " "), f"{v:.3g}" if isinstance(v, float) else str(v), MEANINGS[name]]
        for name, v in known
    ]
    table = Table(["what", "value", "meaning"], rows, "The certificate")
    return [Text(said), Folded("The certificate in numbers", [table])]


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
                some = few(len(run["seconds"]), MOST_POINTS)
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
    if shape is None or vectors is None or not vectors.shape[0]:
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
    rows = unmapped(np.asarray(_dense(vectors[order])), getattr(model, "metric_", None))
    if rows.shape[1] != shape[0] * shape[1]:
        return []
    return [Text(note), Pictures(rows, shape, [_vote(model, coef, int(at)) for at in order])]


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


def _dense(values: Any) -> Any:
    return values.toarray() if sp.issparse(values) else values
