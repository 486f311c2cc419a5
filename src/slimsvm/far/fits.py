"""The five steps of ``fit``, in passes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.multiclass import check_classification_targets

from slimsvm.ending import Ending, Status
from slimsvm.far.coding import EveryRow, FarMatrix, dtype_of, rows_of, summary_of
from slimsvm.kernels import FromCallable, Precomputed, make_kernel
from slimsvm.multiclass import class_factors, sorted_labels
from slimsvm.run import OutOfTime
from slimsvm.solvers.sparse_on_rows import drawn_rows
from slimsvm.training import Data, Unsupported, refuse_large_C, refuse_targets

Array = NDArray[Any]
FEW = 2000  # rows that are brought here at once: solved to more digits, or quickly
SOME = 20_000  # rows from which those of a model come that has no time for more
NO_ROWS = (
    "{name} needs all rows in memory; got {kind}. For data larger than memory use SVC, SVR, "
    "SparseSVC, SparseSVR, LinearSVC, LinearSVR, ReducedSVC, CrammerSingerSVC or StructuralSVM, "
    "or fit on some of the rows."
)


def fit_on_rows(model: Any, X: Any, y: Any, sample_weight: Any, begin: float) -> Any:
    """The five steps of ``fit``, in passes."""
    name = type(model).__name__
    if not hasattr(model, "_solved_on_rows"):
        raise Unsupported(NO_ROWS.format(name=name, kind=type(X).__name__))
    model._validate_params()
    if model._precomputed:
        raise ValueError("A precomputed kernel is a matrix of all pairs of rows: pass an array.")
    rows = rows_of(X, y, sample_weight)
    if not rows.labelled:
        raise ValueError(
            f"{name} requires y to be passed, but the rows have no target: name it in open_rows "
            "(target=...), or pass y."
        )
    with model._unchanged_on_failure():
        if rows.n <= FEW:
            _fitted_here(model, rows)
        else:
            try:
                _fitted_there(model, rows, begin)
            finally:
                if hasattr(rows, "forget"):
                    rows.forget()
        _completed(model, rows)
    for checkpoint in model._checkpoints() if rows.n > FEW else ():
        checkpoint.finish(model)
    return model


def _completed(model: Any, rows: Any) -> Any:
    """The model with what it must remember of the rows."""
    model.__dict__.pop("transformer_", None)
    if rows.transformer is not None:
        model.transformer_ = rows.transformer
    model.n_features_in_ = int(rows.n_features_in)
    model.__dict__.pop("feature_names_in_", None)
    if rows.names is not None:
        model.feature_names_in_ = np.asarray(rows.names, dtype=object)
    return model


def some_of(rows: Any) -> tuple[Any, Any, Any]:
    """X, y and weights of some rows, brought here."""
    some = rows.take(drawn_rows(rows.n, SOME, 0))
    return some.X, some.y, some.weight


def _fitted_here(model: Any, rows: Any) -> None:
    every = rows.take(np.arange(rows.n))
    model._fit(every.X, every.y, every.weight)


def _fitted_there(model: Any, rows: Any, begin: float) -> None:
    with model._fitting(begin) as fit:
        rows.n_threads = fit.threads
        data = summarised(model, rows)

        def so_far() -> Any:
            return _completed(model._so_far(data, fit, "_solved_on_rows"), rows)

        with model._kept(data, fit, so_far):
            try:
                solved = model._solved_on_rows(data, fit)
                ending = model._concluded(data, solved, fit)
            except OutOfTime:
                ending = model._concluded_on_few_rows(data, fit)
    seen = data.about.get("seen", rows.n)
    if seen < rows.n and ending.status.reason != "max_time":
        words = f"{ending.status} The vectors were found on {seen:,} of {rows.n:,} rows."
        ending = Ending(ending.certificate, Status(ending.status.reason, words), ending.history)
    ending.record_on(model)
    model.n_features_in_ = int(rows.n_features)
    model._make_ready()


def summarised(model: Any, rows: Any) -> Data:
    """Steps 1 to 3: what is known of all rows, classes, factors, and the kernel."""
    labels = hasattr(model, "scheme") or hasattr(model, "_oracle")
    found = rows.sum(summary_of, labels)
    if not found.total > 0:
        raise ValueError("Invalid input - all samples have zero or negative weights.")
    with np.errstate(over="ignore"):
        if not np.isfinite(np.square(found.largest) * rows.n_features):
            raise ValueError(
                f"X has values as large as {found.largest:.3g}, whose squares are beyond all "
                "numbers: kernel values would not be finite. Scale the features, for example by "
                "rows.transformed(StandardScaler())."
            )
    refuse_large_C(getattr(model, "C", None), np.array([found.heaviest]), model._largest_C)
    every: Any = EveryRow(rows.n)
    none = np.empty(0)
    data = Data(FarMatrix(rows), none, none, every, none)
    if labels:
        _refuse_mixed(found.classes)
        data.classes, _ = sorted_labels(np.array(list(found.classes)), "y")
        data.classes = data.classes.astype(np.result_type(*rows.map(dtype_of)), copy=False)
        _refuse_classes(data.classes)
        sums = np.array([found.classes[label] for label in data.classes.tolist()])
        about: Any = {"classes": data.classes, "y": data.classes, "sample_weight": sums}
        data.factors = class_factors(getattr(model, "class_weight", None), **about)
        found = replace(found, heaviest=found.heaviest * float(data.factors.max()))
        found = replace(found, total=float(sums @ data.factors))
    elif rows.map(dtype_of)[0].kind not in "fiub":
        refuse_targets(rows.take(np.arange(1)).y)
    else:
        refuse_targets(np.array([found.largest_target]))
    data.about = {"summary": found, "rows": rows, "descends": False, "largest": found.largest}
    if getattr(model, "kernel", None) is not None and model.kernel != "linear":
        data.kernel = kernel_of(model, rows)
    else:
        data.kernel = make_kernel("linear")
    return data


def kernel_of(model: Any, rows: Any) -> Any:
    """The kernel that the parameters name, with its numbers."""
    given = {"gamma": model.gamma, "degree": model.degree, "coef0": model.coef0}
    kernel = make_kernel(model.kernel, **given)
    return kernel if isinstance(kernel, FromCallable | Precomputed) else kernel.resolve(rows)


def _refuse_mixed(labels: Any) -> None:
    """Raise ValueError where words stand beside numbers."""
    words = [of for of in labels if isinstance(of, str)]
    if 0 < len(words) < len(labels):
        other = next(of for of in labels if not isinstance(of, str))
        raise ValueError(
            f"Labels are text in some blocks ({words[0]!r}) and numbers in others ({other!r}). Use "
            "only numbers or only strings."
        )


def _refuse_classes(classes: Array) -> None:
    check_classification_targets(classes)
    if classes.size < 2:
        raise ValueError(
            "The number of classes has to be greater than one; got 1 class: all samples belong to "
            f"class {classes.tolist()[0]!r}. Give rows of at least two classes."
        )
