"""``fit``, ``predict`` and ``score`` on rows that are not in memory.

The same five steps as :mod:`slimsvm.estimators.fitting`, in passes: one looks at all rows (finite
values, classes, weights), labels are coded where the rows are, and an estimator's
``_solved_on_rows`` does the rest. Few rows are brought here and fitted as any others.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from slimsvm.ending import Ending, Status
from slimsvm.estimators.on_dask import lazily, refuse_features
from slimsvm.kernels import FromCallable, Precomputed, make_kernel
from slimsvm.multiclass import OneVsRest, class_factors, sorted_labels
from slimsvm.rows import Block, Rows, is_far
from slimsvm.run import OutOfTime
from slimsvm.solvers.sparse_on_rows import drawn_rows
from slimsvm.training import Data, Unsupported, refuse_large_C, refuse_targets

Array = NDArray[Any]
FEW = 2000  # rows that are brought here at once: solved to more digits, or quickly
SOME = 20_000  # rows from which those of a model come that has no time for more
NO_ROWS = (
    "{name} needs all rows in memory; got {kind}. For data larger than memory use SparseSVC, "
    "SparseSVR, LinearSVC, LinearSVR, ReducedSVC, CrammerSingerSVC or StructuralSVM, or fit on "
    "some of the rows."
)


def rows_of(X: Any, y: Any = None, sample_weight: Any = None) -> Any:
    """Rows that are somewhere else; targets and weights of opened rows are their own."""
    if hasattr(X, "relabelled"):
        for what, given in (("y", y), ("sample_weight", sample_weight)):
            if given is not None:
                raise ValueError(
                    f"{what} comes with the rows that are opened: leave it out, and name it in "
                    "open_rows (target=, weight=)."
                )
        return X
    from slimsvm.sources.dask_rows import from_dask

    return from_dask(X, y, sample_weight)


# -- one look at all rows --------------------------------------------------------------------------


@dataclass(frozen=True)
class Summary:
    """What is known of rows after one look: sums, and the largest of some numbers."""

    total: float = 0.0  # of weights
    heaviest: float = 0.0
    largest: float = 0.0  # of X
    largest_target: float = 0.0
    n_used: int = 0
    classes: dict[Any, float] = field(default_factory=dict)  # weights of rows by label

    def __add__(self, other: Summary) -> Summary:
        both = dict(self.classes)
        for label, weight in other.classes.items():
            both[label] = both.get(label, 0.0) + weight
        return Summary(
            self.total + other.total,
            max(self.heaviest, other.heaviest),
            max(self.largest, other.largest),
            max(self.largest_target, other.largest_target),
            self.n_used + other.n_used,
            both,
        )


def summary_of(block: Block, labels: bool) -> Summary:
    """A task: what there is in a block."""
    X, y, weight = block.X, block.y, block.weight
    values = X.data if sp.issparse(X) else X
    largest = float(max(values.max(), -values.min())) if values.size else 0.0
    own = np.ones(block.n) if weight is None else weight
    used, classes, far = own > 0, {}, 0.0
    assert y is not None
    if labels:
        found, which = np.unique(y[used], return_inverse=True)
        sums = np.bincount(which, weights=own[used], minlength=found.size)
        classes = dict(zip(found.tolist(), sums.tolist(), strict=True))
    elif y.dtype.kind in "fiub" and y.size:
        far = float(np.abs(y.astype(np.float64)).max())
    heaviest = float(own.max()) if own.size else 0.0
    return Summary(float(own.sum()), heaviest, largest, far, int(used.sum()), classes)


def dtype_of(block: Block) -> Any:
    """A task: the type of the targets."""
    assert block.y is not None
    return block.y.dtype


@dataclass(frozen=True)
class Coded:
    """A task: targets of a block as solvers want them, and weights times factors and C.

    ``layout``: 'columns' of signs, 'labels' as numbers, or 'numbers'. Rows whose label is not among
    the classes have weight zero, and so have those of ``without``, by their numbers.
    """

    layout: str
    C: float = 1.0
    classes: Array | None = None
    factors: Array | None = None
    without: Array | None = None

    def __call__(self, block: Block) -> tuple[Array, Array]:
        """Targets and weights."""
        assert block.y is not None
        weight = np.ones(block.n) if block.weight is None else block.weight.astype(np.float64)
        if self.classes is None or self.factors is None:
            target = np.asarray(block.y, np.float64)[:, None]
        else:
            label = np.minimum(np.searchsorted(self.classes, block.y), self.classes.size - 1)
            weight = np.where(self.classes[label] == block.y, weight * self.factors[label], 0.0)
            columns = self.layout == "columns"
            target = OneVsRest(self.classes.size).columns(label) if columns else label
        if self.without is not None:
            ends = np.searchsorted(self.without, [block.start, block.start + block.n])
            weight = weight.copy()
            weight[self.without[ends[0] : ends[1]] - block.start] = 0.0
        return target, self.C * weight


@dataclass(frozen=True)
class PairCoded:
    """A task: signs of a pair of classes, and weights; those of other classes are zero."""

    classes: Array
    factors: Array
    C: float
    positive: int
    negative: int

    def __call__(self, block: Block) -> tuple[Array, Array]:
        """Targets and weights."""
        label, weight = Coded("labels", self.C, self.classes, self.factors)(block)
        own = (label == self.positive) | (label == self.negative)
        return np.where(label == self.positive, 1.0, -1.0), np.where(own, weight, 0.0)


# -- the five steps --------------------------------------------------------------------------------


class FarMatrix:
    """X of rows that are elsewhere: its shape, and some of its rows by their numbers."""

    def __init__(self, rows: Rows) -> None:
        self.rows, self.shape = rows, (rows.n, rows.n_features)

    def __getitem__(self, indices: Any) -> Any:
        return self.rows.take(np.asarray(indices)).X


class EveryRow:
    """The numbers of all rows: each is its own."""

    def __init__(self, n: int) -> None:
        self.size = n

    def __getitem__(self, indices: Any) -> Any:
        return indices


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
        model.__dict__.pop("transformer_", None)
        if rows.transformer is not None:
            model.transformer_ = rows.transformer
        _remember_features(model, rows)
    return model


def _fitted_here(model: Any, rows: Any) -> None:
    every = rows.take(np.arange(rows.n))
    model._fit(every.X, every.y, every.weight)


def _remember_features(model: Any, rows: Any) -> None:
    model.n_features_in_ = int(rows.n_features_in)
    model.__dict__.pop("feature_names_in_", None)
    if rows.names is not None:
        model.feature_names_in_ = np.asarray(rows.names, dtype=object)


def _fitted_there(model: Any, rows: Any, begin: float) -> None:
    with model._fitting(begin) as fit:
        rows.n_threads = fit.threads
        data = summarised(model, rows)
        try:
            solved = model._solved_on_rows(data, fit)
            ending = model._concluded(data, solved, fit)
        except OutOfTime:
            some = rows.take(drawn_rows(rows.n, SOME, 0))
            here = model._encoded(*model._checked(some.X, some.y, some.weight))
            ending = model._concluded_on_few_rows(here, fit)
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
    C = float(getattr(model, "C", 1.0))
    refuse_large_C(C, np.array([found.heaviest]), model._largest_C)
    every: Any = EveryRow(rows.n)
    none = np.empty(0)
    data = Data(FarMatrix(rows), none, none, every, none)
    if labels:
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


def _refuse_classes(classes: Array) -> None:
    check_classification_targets(classes)
    if classes.size < 2:
        raise ValueError(
            "The number of classes has to be greater than one; got 1 class: all samples belong to "
            f"class {classes.tolist()[0]!r}. Give rows of at least two classes."
        )


# -- predictions and scores ------------------------------------------------------------------------


def outputs_of(block: Block, model: Any, name: str, transformed: bool) -> Array:
    """A task: what a method of the model says of the rows of a block."""
    return np.asarray(getattr(plain(model, transformed), name)(block.X))


def plain(model: Any, transformed: bool) -> Any:
    """The model for rows whose names were compared: without names, and without a transformer.

    The latter where the rows are transformed already.
    """
    import copy

    bare = copy.copy(model)
    bare.__dict__.pop("feature_names_in_", None)
    if transformed:
        bare.__dict__.pop("transformer_", None)
    return bare


def over_rows(model: Any, name: str, X: Any) -> Any:
    """``model.name(X)`` for rows that are not in memory.

    Of a Dask collection lazily, with its chunks; of opened rows block by block, as an array.
    """
    check_is_fitted(model)
    if not hasattr(X, "relabelled"):
        return lazily(model, name, X)
    refuse_features(model, X.n_features_in, X.names)
    return np.concatenate(X.map(outputs_of, model, name, X.transformer is not None))


def score_of(block: Block, model: Any, labels: bool, transformed: bool, mean: Any) -> Any:
    """A task: weighted sums that make up accuracy, or R^2."""
    found, y = plain(model, transformed).predict(block.X), block.y
    weight = np.ones(block.n) if block.weight is None else block.weight
    if labels:
        return float(weight @ (found == y)), float(weight.sum())
    off = np.asarray(y, np.float64) - mean
    errors = np.square(np.asarray(y, np.float64) - found)
    return (
        float(weight @ errors),
        float(weight @ np.square(off)),
        float(weight @ off),
        float(weight.sum()),
    )


def score_on_rows(model: Any, X: Any, y: Any, sample_weight: Any) -> float:
    """Accuracy or R^2 by counts and sums of blocks."""
    check_is_fitted(model)
    rows = rows_of(X, y, sample_weight)
    if not rows.labelled:
        raise ValueError("A score needs targets: pass y, or name the target in open_rows.")
    refuse_features(model, rows.n_features_in, rows.names)
    labels, transformed = hasattr(model, "classes_"), rows.transformer is not None
    mean = 0.0 if labels else float(np.mean(rows.take(drawn_rows(rows.n, 1000, 0)).y))
    sums = rows.sum(score_of, model, labels, transformed, mean)
    if labels:
        return float(sums[0] / sums[1])
    wrong, squares, off, total = sums
    spread = squares - off**2 / total
    return 1.0 - float(wrong / spread) if spread > 0 else 0.0


__all__ = ["fit_on_rows", "is_far", "over_rows", "score_on_rows"]
