"""What goes with one call of ``fit``: its data, limits, threads and watchers.

And what is refused.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.utils._param_validation import HasMethods
from sklearn.utils.validation import _check_sample_weight

from slimsvm.ending import warn
from slimsvm.kernels import Kernel
from slimsvm.run import Limits, Watcher
from slimsvm.tiles import Operand

Array = NDArray[Any]
# of C times the largest weight: squares of it, times kernel values and numbers of rows, are still
# numbers
LARGEST_C = 1e100
LARGEST_TARGET = 1e150
FEWEST = 20  # rows of a class, where only some rows are taken


class SparseRows(Protocol):
    """A sparse matrix or array of SciPy."""

    def tocsr(self) -> Any:
        """In compressed sparse rows."""


MatrixLike = ArrayLike | SparseRows  # rows: anything that NumPy understands, or a sparse matrix
# what scikit-learn's validation makes of rows
AS_ROWS: dict[str, Any] = {
    "dtype": [np.float64, np.float32],
    "accept_sparse": "csr",
    "accept_large_sparse": True,
}


class InstanceOf(HasMethods):  # type: ignore[misc]
    """A constraint: an object of a class that is imported only by who makes one."""

    def __init__(self, module: str, name: str) -> None:
        super().__init__(["init", "step"])
        self.name = f"slimsvm.{module}.{name}"

    def is_satisfied_by(self, val: Any) -> bool:
        """Whether it is one, or one of a subclass."""
        return any(f"{k.__module__}.{k.__qualname__}" == self.name for k in type(val).__mro__)

    def __str__(self) -> str:
        return f"an instance of {self.name!r}"


CUTTING_PLANE = InstanceOf("solvers.cutting_plane", "CuttingPlane")


class Unsupported(ValueError):
    """What scikit-learn's estimators may do with the same arguments, but ours do not."""


@dataclass(eq=False, repr=False)
class Fit:
    """What goes with one call of fit: limits, threads, and who watches."""

    limits: Limits
    threads: int
    watchers: tuple[Watcher, ...]

    def side_by_side(self, n_problems: int) -> int:
        """How many of so many problems are solved at the same time: one, where someone watches."""
        return 1 if self.watchers else min(self.threads, n_problems)


@dataclass(eq=False, repr=False)
class Data:
    """What a fit works on.

    ``X`` has the rows of positive weight; where the class says ``_all_rows``, all that were given,
    of which ``used`` are the rows of the problem, in its order.
    """

    X: Any
    target: Array  # class numbers, signs in columns, or numbers; of the rows of the problem
    weight: Array  # of the rows of the problem: sample weights times factors of classes
    used: Array  # which of the given rows these are
    sample_weight: Array  # of X, without factors of classes
    classes: Array = field(default_factory=lambda: np.empty(0))
    factors: Array = field(default_factory=lambda: np.empty(0))
    kernel: Any = None
    rows: Any = None  # ready for products
    start: Any = None  # where the solver is to begin
    margins: Any = None  # y f(x) of another model: rows that violate are wanted first
    about: dict[str, Any] = field(default_factory=dict)  # what else an estimator must remember


def some_places(label: Array, n: int) -> Array:
    """Places of about n random rows in order, of each label at least a few if it has them."""
    rng = np.random.default_rng(0)
    found = [
        rng.permutation(own)[: max(FEWEST, round(n * own.size / label.size))]
        for own in (np.flatnonzero(label == c) for c in np.unique(label))
    ]
    return np.concatenate(found)


def some_rows(data: Data, n: int, all_rows: bool) -> Data:
    """About n random rows of the problem, and of each class at least a few if it has them.

    ``all_rows``: X stays as it is.
    """
    label = data.target if data.classes.size else np.zeros(data.used.size, int)
    if label.ndim == 2:  # signs in columns, one for two classes
        label = label.argmax(axis=1) if label.shape[1] > 1 else label[:, 0]
    rows = some_places(label, n)
    if not all_rows:
        rows.sort()
    few = replace(data, target=data.target[rows], weight=data.weight[rows], used=data.used[rows])
    if not all_rows:
        few = replace(few, X=data.X[rows], sample_weight=data.sample_weight[rows])
    return replace(few, start=None, rows=None)


def canonical(X: Any) -> Any:
    """X; a copy of a sparse matrix that has entries written in parts, with these added up.

    Products of SciPy would add them up in the caller's matrix.
    """
    if sp.issparse(X) and not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return X


# -- what is refused -------------------------------------------------------------------------------


def checked_weights(sample_weight: Any, X: Any, drop_negative: bool = False) -> Array:
    """The weights of the rows of X, a copy; ones, where none were given.

    With ``drop_negative`` a negative one is as zero, as in LIBSVM.
    """
    if sample_weight is None:
        return np.ones(X.shape[0])
    weight = np.asarray(
        _check_sample_weight(
            sample_weight,
            X,
            dtype=np.float64,
            ensure_non_negative=not drop_negative,
            allow_all_zero_weights=drop_negative,
            copy=True,
        )
    )
    if drop_negative:
        weight = np.maximum(weight, 0.0)
        if not weight.any():
            raise ValueError("Invalid input - all samples have zero or negative weights.")
    return weight


def is_plain(X: Any, y: Any) -> bool:
    """Whether scikit-learn's validation would find nothing to convert, to name or to refuse.

    Rows in an array of floats, targets in one of numbers, as many of both, all finite. For a
    hundred rows that validation takes a third of the time of a fit.
    """
    return (
        type(X) is np.ndarray
        and type(y) is np.ndarray
        and X.dtype.char in "fd"
        and y.dtype.char in "?bhilqfdBHILQ"
        and X.dtype.isnative
        and y.dtype.isnative
        and X.ndim == 2
        and X.size > 0
        and y.shape == X.shape[:1]
        and _adds_up(X)
        and (y.dtype.kind != "f" or _adds_up(y))
    )


def _adds_up(values: Array) -> bool:
    """Whether the sum is finite: then all of them are."""
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.isfinite(values.sum(dtype=np.float64)))


def refuse_large_C(C: float | None, weight: Array, largest: float) -> None:
    """Raise ValueError where C times the largest weight is beyond what squares can be taken of.

    ``C``: None for an estimator without one.
    """
    most = float(weight.max())
    if C is None and most > largest:
        raise Unsupported(
            f"The largest weight, {most:g}, is more than {largest:g}, where squares leave the "
            "range of float64. Divide all weights by the largest."
        )
    if C is None:
        return
    if most > 0.0 and largest / most < C < np.inf:
        raise Unsupported(
            f"C={C:g} times the largest weight, {most:g}, is more than {largest:g}, where squares "
            "leave the range of float64. Pass a smaller C: from about 1e10 on, no error is allowed "
            "anyway."
        )


def refuse_sparse_kernel(X: Any) -> None:
    """Raise TypeError for kernel values in a sparse matrix."""
    if sp.issparse(X):
        raise TypeError(
            "Sparse precomputed kernels are not supported: pass the matrix of kernel values as a "
            "dense array."
        )


def refuse_not_square(X: Any) -> None:
    """Raise ValueError for kernel values that are not those of all pairs of rows."""
    if X.shape[0] != X.shape[1]:
        raise ValueError(
            f"Precomputed matrix must be a square matrix. Input is a {X.shape[0]}x{X.shape[1]} "
            "matrix. Pass kernel values between all pairs of training rows."
        )


def is_table(X: Any) -> bool:
    """Whether these are rows of numbers; otherwise only a kernel that is a function knows them."""
    if sp.issparse(X) or hasattr(X, "columns"):  # a DataFrame, or one of another library
        return True
    try:
        X = np.asarray(X)
    except ValueError:  # rows of different lengths
        return False
    return bool(X.ndim == 2 and X.dtype.kind in "fiub")


def refuse_rows(X: Any) -> None:
    """Raise TypeError for opened rows, which say themselves what else to do; warn of Dask's."""
    if hasattr(type(X), "relabelled"):
        np.asarray(X)
    elif hasattr(X, "__dask_graph__"):
        warn(
            "All rows of this Dask collection are brought into the memory of this process. "
            "SVC, SVR, SparseSVC, SparseSVR, LinearSVC, LinearSVR, ReducedSVC, CrammerSingerSVC "
            "and StructuralSVM by themselves leave them where they are.",
            UserWarning,
        )


def refuse_broken(X: Any) -> None:
    """Raise ValueError for a sparse matrix with column indices that compiled loops cannot trust."""
    if sp.issparse(X) and X.nnz and not (X.indices.min() >= 0 and X.indices.max() < X.shape[1]):
        raise ValueError(
            f"The sparse matrix X is broken: it has column indices from {X.indices.min()} to "
            f"{X.indices.max()}, but only {X.shape[1]} columns. Build it anew; X.check_format() "
            "says more."
        )


def numbers_in(y: Array) -> Array:
    """Targets that are texts of numbers, as tables that were read without types have them."""
    if y.dtype.kind not in "USTO":
        return y
    try:
        found = y.astype(np.float64)
    except (TypeError, ValueError):
        return y
    return found if np.isfinite(found).all() else y


def refuse_targets(y: Array) -> None:
    """Raise ValueError for targets that are no numbers, or whose squares are none."""
    if y.dtype.kind not in "fiub":
        raise ValueError(
            f"y must be numbers, but holds {y.dtype.type.__name__} such as {y.tolist()[0]!r}. For "
            "classes, use a classifier."
        )
    largest = float(np.abs(y.astype(np.float64)).max())
    if largest > LARGEST_TARGET:
        raise ValueError(
            f"y has values as large as {largest:.3g}, whose squares are beyond float64. Scale the "
            "targets."
        )


def refuse_another_kernel(asked: Kernel, known: Kernel) -> None:
    """Coefficients of one kernel mean nothing with another; other parameters may change."""
    has, values = known.get_params(), asked.get_params().items()
    same = type(asked) is type(known)
    if not same or any(value not in ("scale", "auto", has[name]) for name, value in values):
        raise ValueError(
            f"The kernel cannot change in the middle of a stream: it is {known}, but {asked} is "
            "asked for. Use a new estimator."
        )


def finite(operand: Operand) -> Operand:
    """The operand; complains if its kernel values are not finite: nothing would mean anything."""
    known = operand.sq is None or np.isfinite(operand.sq).all()
    if not (np.isfinite(operand.diag()).all() and known):
        raise ValueError(
            "The dual coefficients or intercepts are not finite: the kernel "
            f"{operand.kernel!r} gives values that are not finite (NaN or infinity) for these "
            "rows. Scale the features, for example with StandardScaler, or choose other parameters "
            "of the kernel."
        )
    return operand
