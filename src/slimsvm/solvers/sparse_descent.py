"""A sparse fit by descent: from what is asked for to coordinates, a problem and a path."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from slimsvm.expansion import Expansion
from slimsvm.kernels import RBF, Kernel
from slimsvm.losses import Softmax
from slimsvm.precision import is_small
from slimsvm.problems.mapped import Coordinates, Mapped, Vectors, coordinates_for
from slimsvm.problems.mapped_wide import directions_of_wide, seen_by_others, turned
from slimsvm.row_hashes import codes, distinct
from slimsvm.run import Result
from slimsvm.solvers.growth import in_order
from slimsvm.solvers.path_descent import DescentPath
from slimsvm.solvers.path_points import Scoring
from slimsvm.solvers.sparse_asked import AUTO, Asked
from slimsvm.solvers.units import in_own_units
from slimsvm.training import Data, Fit

Array = NDArray[Any]
FORMS = {"learned": "full", "diagonal": "diagonal", "auto": "auto", None: None}
FEW_ROWS = 200  # up to which nothing is drawn: weights are repetitions there, to the last digits
EQUAL = 1e-9  # relative difference of two pivots that is nothing but rounding
FLOAT = 4  # bytes of a number of a model
# of weights and targets, and squares of rows: beyond, sums in float32 are not finite, or zero
LEAST_WEIGHT, LARGEST, LARGEST_SQUARE = 1e-20, 1e30, 1e37


def metric_given(metric: Any, n_features: int) -> Array | None:
    """The metric as an array, checked; None if it is to be learned, or there is none."""
    if metric is None or isinstance(metric, str):
        return None
    M = np.asarray(metric.toarray() if sp.issparse(metric) else metric)
    if M.dtype.kind not in "fiub" or M.ndim not in (1, 2) or M.shape[0] != n_features:
        raise ValueError(
            f"metric is an array of {M.dtype} of shape {M.shape}; expected numbers of shape "
            f"({n_features},), a factor for each feature, or ({n_features}, q)."
        )
    M = M.astype(np.float64)
    if not M.size or not np.isfinite(M).all():
        raise ValueError("metric has entries that are not finite (NaN or infinity), or none.")
    return M


def refuse_beyond_float32(
    X: Any, target: Array | None, kernel: Kernel | None = None, weight: Array | None = None
) -> None:
    """Raise ValueError for numbers whose products leave the range of float32."""
    largest = max(float(X.max()), -float(X.min()))
    gamma = kernel.form()[1] if isinstance(kernel, RBF) else 1.0
    known = largest < float(np.sqrt(LARGEST_SQUARE / X.shape[1]))
    if not known or not 1.0 / LARGEST_SQUARE < gamma < LARGEST_SQUARE:
        of_kernel = "" if kernel is None else f", and the kernel is {kernel!r}"
        raise ValueError(
            f"X has values as large as {largest:.3g}{of_kernel}: products of these leave the range "
            "of float32, in which vectors are found. Scale the features, for example with "
            "StandardScaler."
        )
    refuse_weights_beyond_float32(weight)
    if target is not None and not np.abs(target).max() <= LARGEST:
        raise ValueError(
            f"y has values as large as {np.abs(target).max():.3g}, which leave the range of "
            "float32, in which vectors are found. Scale the targets."
        )


def refuse_weights_beyond_float32(weight: Array | None) -> None:
    """Raise ValueError for weights, C included, whose sums leave the range of float32."""
    heaviest = 1.0 if weight is None else float(weight.max())
    if not LEAST_WEIGHT <= heaviest <= LARGEST:
        raise ValueError(
            f"C times the largest weight is {heaviest:.3g}, which leaves the range of float32, in "
            f"which vectors are found; choose a C for which it is between {LEAST_WEIGHT:g} and "
            f"{LARGEST:g}."
        )


def solved_by_descent(
    asked: Asked,
    data: Data,
    loss: Any,
    fit: Fit,
    *,
    scoring: Scoring,
    last: Expansion | None,
    whole: Callable[[Mapped, int], Any] | None = None,
) -> Result:
    """The path of one fit; ``last`` is a function to begin with, if any.

    ``whole`` makes the problem of all rows from that of the data, which are then some of them, and
    from the number of vectors.
    """
    X, Y, kernel = data.X, data.target, data.kernel
    weight = float(asked.C) * data.weight
    # a model within so many bytes is in float32, however few rows it has
    small = is_small(data.used.size) and asked.max_bytes is None
    if isinstance(loss, Softmax):
        Y = (Y > 0).astype(np.float64)
    if not small:
        refuse_beyond_float32(X, None if data.classes.size else Y, kernel, weight)
    seed = asked.seed()
    rng = np.random.default_rng(seed)
    given, d = metric_given(asked.metric, X.shape[1]), X.shape[1]
    outputs = Y.shape[1]
    learned = given is None and isinstance(kernel, RBF)  # no other kernel has a metric
    form = FORMS[asked.metric] if learned else None
    start, at = _begun(last, data)
    limit = int(asked.max_bytes or 0)
    # in numbers of four bytes; those of targets have eight
    intercepts = outputs if data.classes.size else 2 * outputs
    sizes = (d, outputs, intercepts, form)
    if start is not None and limit and start.n > _vectors_within(limit, *sizes, at)[0]:
        start, at = None, None
    seen: Array | None = None  # how the descent sees the rows, if not as they are
    if at is None:
        turns = isinstance(asked.metric, str) and asked.metric != "diagonal"
        target = Y if data.classes.size else None
        with np.errstate(over="ignore", invalid="ignore"):  # said below
            if learned and turns and target is not None and turned(X):
                directions, weights = directions_of_wide(X, target, weight, rng)
                at = coordinates_for(kernel, X, directions)
                about = (directions, weights), rng, fit.threads
                seen = seen_by_others(X, target, weight, *about)
                seen *= np.sqrt(kernel.form()[1])
            else:
                draws: Any = {"weight": weight, "target": target, "rng": rng}
                at = coordinates_for(kernel, X, given, turns=turns, **draws)
    q = at.turn.shape[1] if np.ndim(at.turn) == 2 else d
    wanted = asked.wanted
    if limit:
        fits, least, form = _vectors_within(limit, *sizes, at)
        if fits < 1:
            raise ValueError(
                f"max_bytes={limit} is too small for one vector: a model of {d} features "
                f"and {outputs} output{'s' * (outputs > 1)} needs {least} bytes at least."
            )
        wanted = min(wanted, fits) if asked.auto else fits
    rows = None if start is not None else _known_vectors(X, wanted, kernel)
    if rows is None:
        refuse_weights_beyond_float32(weight)
    options: dict[str, Any] = {
        "coordinates": at,
        "fit_intercept": bool(asked.fit_intercept),
        "n_threads": fit.threads,
        "max_memory": asked.max_memory,
    }
    if rows is not None:
        options["coordinates"] = coordinates_for(kernel, X, given, turns=False)
    with np.errstate(over="ignore", invalid="ignore"):  # said below
        problem = Mapped.of(
            kernel, X, Y, weight, loss, dtype=np.float64 if small else np.float32, **options
        )
    largest = float(np.abs(problem.X).max(initial=0.0))
    most = float(np.sqrt(np.finfo(problem.X.dtype).max / max(1, q)))
    if not largest < most or not np.isfinite(problem.norm):
        raise ValueError(
            f"The kernel {kernel!r} gives values that are not finite (NaN or infinity) for these "
            "rows. Scale the features, for example with StandardScaler, or choose other "
            "parameters of the kernel."
        )
    if rows is None and start is None and form == AUTO:
        problem = in_own_units(problem, X, scoring.measure, wanted, seed)
    proposed = asked.loss == AUTO and data.classes.size and whole is None  # C, of few rows
    path = DescentPath(
        n_basis=wanted,
        metric=form,
        scoring=scoring,
        accuracy_loss=asked.given_up,
        everything=None if rows is None else problem.X[rows],
        indices=rows,
        codes=codes(X) if rows is not None and proposed else None,
        start=start,
        whole=None if whole is None else whole(problem, wanted),
        seen=None if seen is None else problem.X + seen.astype(problem.X.dtype),
        fills=bool(limit),
        seed=seed,
        tol=float(asked.tol),
        max_iter=asked.steps,
    )
    return path.solved(problem, kernel, fit)


def _known_vectors(X: Any, wanted: int, kernel: Kernel) -> Array | None:
    """Rows that are the vectors, where nothing is to be drawn: there are no more, or few.

    Of few rows those on which the others depend most: pivots of a Cholesky factor.
    """
    most = max(wanted, FEW_ROWS)
    for part in (X[: 4 * most], X):
        rows = distinct(part)
        if rows.size > most:
            return None
    rows = np.asarray(rows[in_order(X[rows])])
    with np.errstate(over="ignore", invalid="ignore"):
        K = kernel(X[rows])
    return rows[_pivots(K, min(wanted, rows.size))] if np.isfinite(K).all() else rows


def _pivots(K: Array, k: int) -> Array:
    """The first k pivots of a Cholesky factorisation, in order; of equal ones the first."""
    left, L, chosen = np.diag(K).copy(), np.zeros((len(K), k)), np.zeros(k, np.intp)
    for j in range(k):
        chosen[j] = i = int(np.argmax(left >= (1.0 - EQUAL) * left.max()))
        if not left[i] > 1e-12 * K.max():
            return chosen[:j]
        L[:, j] = (K[:, i] - L[:, :j] @ L[i, :j]) / np.sqrt(left[i])
        left = np.maximum(left - L[:, j] ** 2, 0.0)
        left[chosen[: j + 1]] = 0.0
    return chosen


def _vectors_within(
    max_bytes: int, d: int, outputs: int, intercepts: int, form: str | None, at: Any
) -> tuple[int, int, str | None]:
    """How many vectors a model of so many bytes has, with its metric, intercepts and widths.

    And the bytes of a model of one, and the form of the metric.
    """
    q = at.turn.shape[1] if np.ndim(at.turn) == 2 else d
    a_vector = q + 1 + outputs
    fixed = 0 if np.ndim(at.turn) == 0 else int(np.size(at.turn))

    def number(metric: int) -> int:
        return (max_bytes // FLOAT - intercepts - max(fixed, metric)) // a_vector

    full, diagonal = number(d * q), number(d)
    k = {"full": full, "diagonal": diagonal, None: number(0)}.get(form, full)
    metric = {"full": d * q, None: 0}.get(form, d)
    if form == AUTO and q > 2 * full:  # a matrix would leave few vectors, or none
        k, form = diagonal, "diagonal"
    return k, FLOAT * (a_vector + intercepts + max(fixed, metric)), form


def _begun(last: Expansion | None, data: Data) -> tuple[Vectors, Coordinates] | tuple[None, None]:
    """The last function in inner coordinates, and these; None where it does not fit the rows."""
    if last is None or not isinstance(data.kernel, RBF) or sp.issparse(last.basis):
        return None, None
    metric = getattr(last, "metric", None)
    n_features = last.basis.shape[1] if metric is None else metric.shape[0]
    if (n_features, last.coef.shape[1]) != (data.X.shape[1], data.target.shape[1]):
        return None, None
    return inner_vectors(last, data.kernel, data.X)


def inner_vectors(f: Expansion, kernel: Kernel, X: Any) -> tuple[Vectors, Coordinates]:
    """A function in inner coordinates for rows X, and these; the kernel may be another of its kind.

    Examples
    --------
    >>> f = Expansion(RBF(4.0), np.array([[3.0]]), np.ones((1, 1)), np.zeros(1))
    >>> inner_vectors(f, f.kernel, np.array([[0.0], [2.0]]))[0].B
    array([[4.]])
    """
    M, widths = getattr(f, "metric", None), getattr(f, "widths", None)
    M = None if M is None else M.astype(np.float64)
    basis = f.basis.toarray() if sp.issparse(f.basis) else np.asarray(f.basis, np.float64)
    at = coordinates_for(kernel, X, M, turns=False)
    if at.mean is not None:
        basis = basis - (at.mean if M is None else at.mean * M if M.ndim == 1 else at.mean @ M)
    root = float(np.sqrt(kernel.form()[1])) if np.ndim(at.turn) else float(at.turn)
    own = np.ones(len(basis)) if widths is None else widths.astype(np.float64)
    coef, intercept = (np.asarray(values, np.float64) for values in (f.coef, f.intercept))
    return Vectors(basis * root, own, coef, intercept), at
