"""``partial_fit`` of the sparse estimators: rows that pass by once.

The solver is :mod:`slimsvm.solvers.stream_descent`; here are calls: what is checked, which classes
there are, what is set, and how it ended.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from slimsvm.ending import REASONS, Ending, Status
from slimsvm.kernels import Kernel
from slimsvm.multiclass import class_factors, sorted_labels
from slimsvm.run import Limits, Result, run
from slimsvm.solvers.path_descent import expansion_of
from slimsvm.solvers.path_points import PathPoint
from slimsvm.solvers.sparse_asked import Asked
from slimsvm.solvers.sparse_descent import (
    FORMS,
    inner_vectors,
    metric_given,
    refuse_beyond_float32,
)
from slimsvm.solvers.stream_descent import (
    RowsOfCall,
    StreamDescent,
    StreamState,
    begun,
    from_dict,
    going_on,
    vectors_of,
)
from slimsvm.training import Data, refuse_another_kernel

Array = NDArray[Any]


def learned(
    model: Any, X: Any, y: Any, sample_weight: Any, classes: Any = None, decay: float = 1.0
) -> None:
    """One call of ``partial_fit``: what passed before weighs ``decay`` of what it did."""
    first = not hasattr(model, "basis_coef_")
    with model._unchanged_on_failure():
        X, y, weight = model._checked(X, y, sample_weight, reset=first)
        kernel = model._named_kernel()
        if not first:
            refuse_another_kernel(kernel, model.kernel_)
        refuse_no_stream(Asked.of(model), kernel, X)
        batch = _of_classes if hasattr(model, "scheme") else _of_targets
        data = batch(model, X, y, weight, classes)
        if first and not data.used.size:
            raise ValueError("All rows of the first call have weight zero; give some weight.")
        named = model.kernel != "rbf" or isinstance(model.gamma, str)  # its width fits the rows
        target = None if data.classes.size else data.target
        refuse_beyond_float32(data.X, target, None if named else kernel)
        state = _stream_for(model, data)
        if data.classes.size:
            state.widen(getattr(model, "classes_", data.classes), data.classes)
            model.classes_, model.class_weight_ = data.classes, data.factors
        _pass(model, state, data, decay)


def _of_classes(model: Any, X: Any, y: Any, weight: Array, classes: Any) -> Data:
    """The rows that have weight; ``classes`` are labels that will come."""
    if getattr(model, "pairwise_", False):
        raise ValueError(
            "partial_fit cannot go on from a model that was compressed from one-vs-one pairs; "
            "use a new SparseSVC."
        )
    known = getattr(model, "classes_", None)
    found, label = classes_of_call(model.class_weight, y, classes, known, weight)
    factors = factors_of(model.class_weight, found)
    own = weight * factors[label]
    used = np.flatnonzero(own > 0)
    return Data(X[used], label[used], own[used], used, weight[used], found, factors)


def _of_targets(model: Any, X: Any, y: Any, weight: Array, classes: Any) -> Data:
    used = np.flatnonzero(weight > 0)
    return Data(X[used], np.asarray(y, np.float64)[used], weight[used], used, weight[used])


def _pass(model: Any, state: StreamState, data: Data, decay: float) -> None:
    """Learn from rows that are checked, and be the model then."""
    with model._fitting() as fit:
        state.decay(decay)
        result = run(
            _solver(model, fit.threads),
            RowsOfCall(data.X, data.target, data.weight),
            tol=0.0,
            limits=fit.limits,
            start=state,
            watchers=fit.watchers,
        )
        point = point_of(state)
        model.path_, model.n_iter_, model._row_duals = [point], max(1, state.n_steps), None
        model.n_seen_, model._stream = state.n_seen + state.waiting.n, state
        model.loss_ = loss_of(state)
        model._take(point, state.kernel)
        ending = ending_of(state, result, point.n_basis, data.used.size, fit.limits)
    ending.record_on(model)
    model._make_ready()


def _solver(model: Any, threads: int) -> StreamDescent:
    metric = model.metric
    return StreamDescent(
        n_vectors=Asked.of(model).wanted,
        kernel=model._named_kernel(),
        metric=FORMS[metric] if metric is None or isinstance(metric, str) else None,
        given=metric_given(metric, model._width(vars(model))),
        epsilon=float(getattr(model, "epsilon", 0.0)),
        fit_intercept=bool(model.fit_intercept),
        n_threads=threads,
    )


def _stream_for(model: Any, data: Data) -> StreamState:
    """The stream so far, or one that begins: with these rows, or with what ``fit`` has left."""
    known, classes = getattr(model, "_stream", None), hasattr(model, "scheme")
    if isinstance(known, dict):  # from a file
        known = from_dict(known, model.kernel_, _solver(model, 1))
    if known is not None:
        assert isinstance(known, StreamState)
        # who watches may raise, and a limit may warn: then the stream must be as it was
        watched = getattr(model, "_skl_callbacks", None) or hasattr(model, "_parent_callback_ctx")
        if not watched and model.max_time is None:
            return known
        kernel: Any = known.kernel  # none before the first model
        return from_dict(known.to_dict(), kernel, _solver(model, 1))
    n_outputs = len(getattr(model, "classes_", data.classes)) if classes else 1
    state = begun(Asked.of(model).seed(), data.X, n_outputs, classes)
    if hasattr(model, "basis_coef_"):
        if not classes:
            state.offset = float(np.mean(data.target)) if model.fit_intercept else 0.0
            state.unit = float(np.std(data.target)) or 1.0
        vectors, at = inner_vectors(model._function(), model.kernel_, data.X)
        going_on(_solver(model, 1), state, model.kernel_, at, vectors)
    return state


# -- what a call must be ---------------------------------------------------------------------------


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
    about = (S.coordinates, S.kernel, S.norm, S.form, False)
    f, metric, widths = expansion_of(v, *about, labels=bool(S.classes))
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
