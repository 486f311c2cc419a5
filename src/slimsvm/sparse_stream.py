"""``partial_fit`` of the sparse estimators, apart from what is set on them.

What a call must be, which classes there are, and how it ended. The solver is
:mod:`slimsvm.solvers.stream_descent`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from slimsvm.ending import REASONS, Ending, Status
from slimsvm.kernels import Kernel
from slimsvm.multiclass import class_factors, sorted_labels
from slimsvm.run import Limits, Result
from slimsvm.solvers.path import PathPoint
from slimsvm.solvers.path_descent import expansion_of
from slimsvm.solvers.sparse_asked import Asked
from slimsvm.solvers.stream_descent import StreamState, vectors_of

Array = NDArray[Any]


def refuse_no_stream(asked: Asked, kernel: Kernel, X: Any) -> None:
    """Raise ValueError for a kernel or a basis that a stream cannot have."""
    if not asked.descends(kernel, X):
        raise ValueError(
            "partial_fit is for vectors that are found by descent: basis='auto' or 'descent', the "
            "kernel 'rbf', 'poly' with coef0 >= 0 or 'linear', and a loss with a derivative; got "
            f"basis={asked.basis!r}, kernel={kernel!r}, loss={asked.loss!r}."
        )


def classes_of_call(
    class_weight: Any, y: Any, classes: Any, known: Array | None, weight: Array
) -> tuple[Array, Array]:
    """All classes so far, those of this call among them, and the class number of every row."""
    if isinstance(class_weight, str):
        raise ValueError(
            "class_weight='balanced' needs to see all labels, which partial_fit does not. Pass a "
            "dict of class weights."
        )
    found = sorted_labels(np.asarray(y)[weight > 0], "y")[0]
    for more in (known, None if classes is None else sorted_labels(classes, "classes")[0]):
        if more is not None:
            both = np.concatenate([more, found]) if found.size else np.asarray(more)
            found = sorted_labels(both, "y and the classes before")[0]
    label = np.zeros(np.shape(y)[0], int)
    label[weight > 0] = np.searchsorted(found, np.asarray(y)[weight > 0])
    return found, label


def factors_of(class_weight: Any, classes: Array) -> Array:
    """Factors of the classes so far."""
    if classes.size < 2:
        return np.ones(classes.size)
    given = class_weight
    if isinstance(given, dict):  # of classes that come later, too
        given = {label: given[label] for label in classes.tolist() if label in given}
    return class_factors(given, classes=classes, y=classes)


# -- what a call has made --------------------------------------------------------------------------


def point_of(S: StreamState) -> PathPoint:
    """The model that the stream has now."""
    assert S.coordinates is not None
    v = vectors_of(S)
    f, metric, widths = expansion_of(v, S.coordinates, S.kernel, S.norm, S.form, False)
    shown = 1.0 - S.wrong if S.watched else float("nan")
    return PathPoint(
        v.n, f.basis, f.coef, f.intercept, None, S.loss, np.inf, shown, None,
        metric=metric, widths=widths
    )  # fmt: skip


def loss_of(S: StreamState) -> str:
    """The name of the loss that is minimised."""
    if not S.classes:
        return "squared_epsilon_insensitive"
    return "softmax" if S.n_outputs > 2 else "logistic"


def ending_of(S: StreamState, result: Result, n_vectors: int, n: int, limits: Limits) -> Ending:
    """How a call with n rows ended."""
    reason, begin = result.status.reason, f"All {n:,} rows of this call have passed"
    if reason != "converged":
        begin = REASONS[reason].format(seconds=limits.seconds, max_iter=-1)
        begin += f": {S.at:,} of the {n:,} rows of this call have passed"
    share = f"{100 * S.wrong:.2g} %"
    seen = f"; {share} of the last rows were wrong before they were learned from"
    if not S.classes:
        seen = f"; errors of the last rows, before learning, are {share} of the variance"
    seen = f"; {n_vectors:,} vectors{seen * (S.watched > 0)}"
    again = f", which began anew {S.n_alarms:,} times" if S.n_alarms else ""
    words = (
        f"{begin}, {S.n_seen + S.waiting.n:,} of the stream{again}{seen}. "
        "A stream solves no fixed problem: there is no gap."
    )
    return Ending(result.certificate, Status(reason, words), result.history)
