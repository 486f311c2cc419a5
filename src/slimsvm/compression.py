"""Any fitted kernel machine with as few vectors as you say.

A machine f with many vectors is replaced by the nearest f' with few, in the space of the kernel: the reduced set of Burges & Schoelkopf
(burges1997reduced; :mod:`slimsvm.solvers.reduced_set`). That needs no data. With data, vectors and coefficients are then tuned to the training
objective (wu2006direct; :mod:`slimsvm.solvers.refine`).

All outputs of a machine share the new vectors. A machine of one-vs-one pairs keeps its pairs: each is one column of coefficients.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import validate_parameter_constraints
from sklearn.utils.validation import check_is_fitted

from slimsvm.estimators import SVC, SVR, NuSVC, NuSVR
from slimsvm.estimators.reduced import ReducedSVC
from slimsvm.estimators.sparse import SparseSVC, SparseSVR
from slimsvm.estimators.sparse_base import LAST_SIZE
from slimsvm.estimators.sparse_path import PathPoint
from slimsvm.expansion import Expansion
from slimsvm.kernels import FromCallable, Kernel, Linear, Precomputed, make_kernel
from slimsvm.losses import Loss, SquaredEpsilonInsensitive, SquaredHinge
from slimsvm.problems.columns import KernelColumns
from slimsvm.problems.subspace import Subspace
from slimsvm.row_hashes import distinct
from slimsvm.run import DISTANCE, SUBSPACE, Certificate, Limits, Status
from slimsvm.solvers.decomposition import EXACT
from slimsvm.solvers.reduced_set import Reduction, singular_vectors
from slimsvm.solvers.refine import refine, solve
from slimsvm.threads import n_threads, single_threaded_blas
from slimsvm.tiles import in_memory, ready

Array = NDArray[Any]


def compress(
    model: Any,
    n_basis: int,
    X: Any = None,
    y: Any = None,
    sample_weight: Any = None,
    *,
    random_state: Any = None,
    n_jobs: int | None = None,
    max_time: float | None = None,
) -> SparseSVC | SparseSVR:
    """A machine with few vectors in place of a fitted one with many.

    Without data, the new machine is the one nearest to the old in the space of the kernel. With the training data, its vectors and
    coefficients are then tuned to the data, which is more accurate at the same size.

    Parameters
    ----------
    model : SVC, NuSVC, SVR or NuSVR, of slimsvm or of scikit-learn; SparseSVC, SparseSVR or ReducedSVC
        A fitted machine. The kernel must be an inner product of feature vectors: linear, rbf, laplacian, or poly with coef0 >= 0.
    n_basis : int
        Number of vectors, at least 1. If the machine has no more than that already, it keeps them all, and stays the same function.
    X : array or CSR matrix of shape (n_samples, n_features), optional
        Training rows.
    y : array of shape (n_samples,), optional
        Their labels or targets; together with X.
    sample_weight : array of shape (n_samples,), optional
        Their weights.
    random_state : int, RandomState or None, default=None
        Draws the rows where the search for a vector begins.
    n_jobs : int, optional
        Threads: None is one unless a joblib context says otherwise, -1 all.
    max_time : float, optional
        Limit in seconds. At the limit, and at Ctrl-C, the best machine so far is returned, with a ConvergenceWarning.

    Returns
    -------
    SparseSVC or SparseSVR
        Fitted, with the same ``classes_`` and features. A machine of several classes from one-vs-one pairs keeps its pairs, over shared
        vectors, and lets them vote as before (``pairwise_`` is True). ``status_`` says how far it is from the old one, as a share |f - f'|/|f|.

    Raises
    ------
    ValueError
        If the machine is of another class, not fitted, or has a kernel of another kind; if n_basis or the data do not fit.

    Notes
    -----
    With data, the problem is that of the returned estimator: the machine's own C, and the squared hinge or squared epsilon-insensitive loss
    in place of losses with a kink, whose derivative jumps. For NuSVC, and for models from files of other programs, which do not hold it, C is
    the largest of the coefficients; for NuSVR, epsilon is the distance from f that a share nu of the rows exceeds.

    References
    ----------
    .. [1] C. Burges, B. Schoelkopf, "Improving the accuracy and speed of support vector machines", 1997.
    .. [2] M. Wu, B. Schoelkopf, G. Bakir, "A direct method for building sparse kernel learning algorithms", 2006.

    Examples
    --------
    >>> from slimsvm import SVC
    >>> from slimsvm.compression import compress
    >>> from slimsvm.datasets import checkers
    >>> X, y = checkers(1000, seed=0)
    >>> exact = SVC(C=10.0, gamma=5.0).fit(X, y)
    >>> small = compress(exact, 20, X, y, random_state=0)
    >>> len(exact.support_) > 100, small.basis_.shape
    (True, (20, 2))
    >>> bool(small.score(X, y) > exact.score(X, y) - 0.02)
    True
    """
    if isinstance(n_basis, bool) or not isinstance(n_basis, Integral) or n_basis < 1:
        raise ValueError(
            f"n_basis={n_basis!r} is not a size; expected a whole number of at least 1."
        )
    if (X is None) != (y is None):
        raise ValueError(
            f"{'X' if X is None else 'y'} is missing: give the rows and their labels or targets, or neither of them."
        )
    if X is None and sample_weight is not None:
        raise ValueError("sample_weight was given without rows; give X and y too, or leave it out.")
    options = {"random_state": random_state, "n_jobs": n_jobs, "max_time": max_time}
    validate_parameter_constraints(
        {name: SparseSVC._parameter_constraints[name] for name in options},
        options,
        caller_name="compress",
    )
    function, pairwise = _function_of(model)
    machine = _machine_for(model, function.kernel, int(n_basis), random_state, n_jobs)
    machine.n_features_in_ = int(model.n_features_in_)
    if hasattr(model, "feature_names_in_"):
        machine.feature_names_in_ = model.feature_names_in_
    if isinstance(machine, SparseSVC):
        machine.classes_ = model.classes_
        if pairwise:
            machine.pairwise_ = True
    data = None if X is None else _data(machine, model, function, pairwise, X, y, sample_weight)
    rng = np.random.default_rng(check_random_state(random_state).randint(2**31 - 1))
    limits, threads = Limits(max_time), n_threads(n_jobs)
    with limits.watching_interrupts(), single_threaded_blas():
        first = limits if data is None else limits.part(2)
        reduced = _reduced(function, int(n_basis), rng, first, threads)
        reduced.ended = first.reason()
        if data is not None and not reduced.exact and reduced.coef.size:
            _refine_on(data, machine, reduced, function.kernel, rng, limits, threads)
    _finish(machine, model, function, reduced, limits)
    if data is not None:  # the path has the one size, and its score
        score = float(machine.score(X, y, sample_weight))
        machine.path_ = [replace(machine.path_[0], training_score=score)]
    return machine


# -- 1. what is given -----------------------------------------------------------------------------------------------------------------------


def _function_of(model: Any) -> tuple[Expansion, bool]:
    """The function of a fitted machine, one column for each output, and whether its outputs are pairs of classes."""
    from sklearn import svm  # here, since it takes longer to import than all of slimsvm

    theirs = isinstance(model, svm.SVC | svm.NuSVC | svm.SVR | svm.NuSVR)
    if not theirs and not isinstance(
        model, SVC | NuSVC | SVR | NuSVR | SparseSVC | SparseSVR | ReducedSVC
    ):
        raise ValueError(
            "compress takes a fitted SVC, NuSVC, SVR or NuSVR, of slimsvm or scikit-learn, or a SparseSVC, SparseSVR or ReducedSVC; got an "
            f"object of class {type(model).__module__}.{type(model).__name__}. Of a pipeline or a search, give that step or best_estimator_."
        )
    check_is_fitted(model)
    if isinstance(model, SparseSVC | SparseSVR | ReducedSVC):
        kernel, coef = model.kernel_, np.asarray(model.basis_coef_, np.float64)
        pairwise = (
            len(model.classes_) > 2
            if isinstance(model, ReducedSVC)
            else bool(getattr(model, "pairwise_", False))
        )
        _check_kernel(kernel)
        return Expansion(
            kernel, model.basis_, coef, np.asarray(model.intercept_, np.float64)
        ), pairwise
    if theirs:
        gamma = (
            float(model._gamma) if model.kernel != "linear" else "scale"
        )  # theirs is a number after the fit
        kernel = make_kernel(model.kernel, gamma=gamma, degree=model.degree, coef0=model.coef0)
    else:
        kernel = model.kernel_
    _check_kernel(kernel)
    rows = (
        model.dual_coef_.toarray()
        if sp.issparse(model.dual_coef_)
        else np.asarray(model.dual_coef_, np.float64)
    )
    pairwise = rows.shape[0] > 1
    coef = by_pair(rows, np.asarray(model.n_support_)) if pairwise else np.ascontiguousarray(rows.T)
    vectors = model.support_vectors_
    return Expansion(
        kernel,
        vectors.tocsr() if sp.issparse(vectors) else vectors,
        coef,
        np.asarray(model.intercept_, np.float64),
    ), pairwise


def _check_kernel(kernel: Kernel) -> None:
    if isinstance(kernel, Precomputed | FromCallable):
        what = (
            "a precomputed kernel"
            if isinstance(kernel, Precomputed)
            else "a kernel that is a Python function"
        )
        raise ValueError(
            f"The machine has {what}: vectors other than its own cannot be made for it. Train with 'rbf', 'laplacian', 'poly' or 'linear'."
        )


def by_pair(dual_coef: Array, n_support: Array) -> Array:
    """Coefficients of all support vectors for every pair of classes, from LIBSVM's layout; zero for those of other classes.

    Parameters
    ----------
    dual_coef : array of shape (n_classes - 1, n_SV)
        Support vectors sorted by class; the coefficients of class i in its pair with j > i are in row j - 1, with j < i in row j.
    n_support : array of shape (n_classes,)
        How many there are of each class.

    Returns
    -------
    array of shape (n_SV, n_classes (n_classes - 1) / 2)
        The pairs in the order (0, 1), (0, 2), ...

    Examples
    --------
    >>> import numpy as np
    >>> from slimsvm.compression import by_pair
    >>> by_pair(np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]), np.array([1, 1, 1]))
    array([[1., 4., 0.],
           [2., 0., 5.],
           [0., 3., 6.]])
    """
    n_classes, ends = n_support.size, np.concatenate([[0], np.cumsum(n_support)])
    out = np.zeros((dual_coef.shape[1], n_classes * (n_classes - 1) // 2))
    for pair, (i, j) in enumerate(zip(*np.triu_indices(n_classes, 1), strict=True)):
        of_i, of_j = slice(ends[i], ends[i + 1]), slice(ends[j], ends[j + 1])
        out[of_i, pair], out[of_j, pair] = dual_coef[j - 1, of_i], dual_coef[i, of_j]
    return out


def _machine_for(
    model: Any, kernel: Kernel, n_basis: int, random_state: Any, n_jobs: int | None
) -> SparseSVC | SparseSVR:
    """The estimator that will hold the result: trained on data by itself, it would solve the same problem."""
    common: dict[str, Any] = {"n_basis": n_basis, "n_jobs": n_jobs}
    common["random_state"] = (
        random_state if isinstance(random_state, Integral) else None
    )  # the state of a generator has moved on
    if isinstance(model, SparseSVC | SparseSVR):
        common = {**model.get_params(deep=False), **common}
        if not model._loss().differentiable:
            common["loss"] = type(model)().loss
        if not isinstance(model.basis, str):
            common["basis"] = "pursuit"
        return type(model)(**common)
    common |= {"kernel": kernel.name, **kernel.get_params()}
    common["C"] = _C_of(model)
    if hasattr(model, "classes_"):
        return SparseSVC(**common, class_weight=model.class_weight)
    if _has_epsilon(model):
        common["epsilon"] = float(model.epsilon)
    return SparseSVR(**common)


def _C_of(model: Any) -> float:
    """The weight of errors; where it is no parameter or not known, the largest coefficient, which is the same if any is at its bound."""
    known = (
        "C" in model.get_params(deep=False)
        and getattr(getattr(model, "status_", None), "reason", "") != "loaded"
    )
    if known:
        return float(model.C)
    return float(np.abs(model.dual_coef_).max()) if model.dual_coef_.size else 1.0


def _has_epsilon(model: Any) -> bool:
    """Whether the width of the tube is a parameter; the attribute alone says nothing, scikit-learn's NuSVR has one that it does not use."""
    return "epsilon" in model.get_params(deep=False)


# -- 2. the reduced set ---------------------------------------------------------------------------------------------------------------------


@dataclass
class Reduced:
    """A machine with few vectors, and how far it is from the one it stands for."""

    vectors: Any  # as the data was given
    coef: Array
    intercept: Array
    error: float  # E
    square: float  # sum_c |f_c|^2
    exact: bool = False  # the same function, by construction
    n_evaluations: int = 0
    precision: str = "float64"
    objective: float | None = (
        None  # of the training problem, and its gap within the span: with data only
    )
    gap: float = 0.0
    ended: str | None = None  # why the reduction had to end before it was done

    @property
    def distance(self) -> float:
        """|f - f'| / |f|"""
        return float(np.sqrt(self.error / self.square)) if self.square > 0 else 0.0


def _reduced(
    function: Expansion, n_basis: int, rng: np.random.Generator, limits: Limits, threads: int
) -> Reduced:
    kernel, S, A = function.kernel, function.basis, function.coef
    if isinstance(kernel, Linear):
        W = np.asarray((S.T @ A).T, np.float64)
        vectors, coef, error, square = singular_vectors(W, n_basis)
        intercept = (
            function.intercept
            if error == 0.0
            else _centred(function.intercept, A, np.asarray(S @ (W - coef.T @ vectors).T))
        )
        return Reduced(vectors, coef, intercept, error, square, exact=error == 0.0)
    n = A.shape[0]
    if n_basis >= n:
        return Reduced(
            S,
            A,
            function.intercept,
            0.0,
            1.0,
            exact=True,
            precision="float32" if S.dtype == np.float32 else "float64",
        )
    if not kernel.positive:
        raise ValueError(
            f"{kernel!r} is not an inner product of feature vectors for sure, so that the distance between two machines is not defined. "
            "Use 'rbf', 'laplacian', 'linear' or 'poly' with coef0 >= 0, or train a SparseSVC or SparseSVR with this kernel and refine=False."
        )
    few = n <= EXACT
    values = Expansion(kernel, S, A, np.zeros(A.shape[1]), exact=few).decision_function(S, threads)
    rows = ready(kernel, S, dtype=np.float64 if few else None)
    columns = KernelColumns(in_memory(rows, A, n_threads=threads), rows.frame, n_basis)
    reduction = Reduction(columns, A, float(np.einsum("ic,ic->", A, values)))
    reduction.grow(n_basis, rng, distinct(S), limits)
    if kernel.differentiable:
        reduction.descend(limits)
    coef, error = reduction.solution()
    if not columns.m:  # the function is zero
        return Reduced(S[:0], coef, function.intercept, error, reduction.square, exact=error == 0.0)
    intercept, precision = (
        _centred(function.intercept, A, values - columns.scores(coef)),
        str(columns.dtype),
    )
    return Reduced(
        _as_stored(columns),
        coef,
        intercept,
        error,
        reduction.square,
        n_evaluations=reduction.n_evaluations,
        precision=precision,
    )


def _centred(intercept: Array, A: Array, left: Array) -> Array:
    """The intercept of the reduced machine: what is left of f at its own vectors has the mean zero, with their coefficients as weights.

    The distance in feature space does not see the intercept, but a few vectors leave a large share of f, and its mean is not zero. On satimage
    with 10 vectors this is worth 16 points of accuracy; where more vectors leave little of f, nothing.
    """
    weight = np.abs(A)
    return np.asarray(
        intercept
        + (weight * left).sum(axis=0) / np.maximum(weight.sum(axis=0), np.finfo(float).tiny)
    )


def _as_stored(columns: KernelColumns) -> Any:
    """The basis as the data was given; in float32 where kernel values are."""
    vectors = columns.in_given_coordinates()
    return vectors.astype(np.float32) if columns.dtype == np.float32 else vectors


# -- 3. with data ---------------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class OfPairs(SquaredHinge):
    """The squared hinge where a row with the label 0 costs nothing: one that belongs to neither class of a pair."""

    def value(self, y: ArrayLike, f: ArrayLike) -> Array:
        """max(0, 1 - y f)^2"""
        return super().value(y, f) * np.square(y)

    def curvature(self, y: ArrayLike, f: ArrayLike) -> Array:
        """2 where the margin is missed"""
        return super().curvature(y, f) * np.square(y)


@dataclass
class Data:
    """The training problem: rows, one column of targets for each output, weights (times C), loss."""

    X: Any
    target: Array
    weight: Array
    loss: Loss


def _data(
    machine: Any,
    model: Any,
    function: Expansion,
    pairwise: bool,
    X: Any,
    y: Any,
    sample_weight: Any,
) -> Data:
    """The data, checked against the machine."""
    loss = machine._loss()
    if isinstance(machine, SparseSVC):
        X, label, weight = machine._given_again(X, y, sample_weight)
        n_classes = len(machine.classes_)
        target = machine._targets(label, n_classes)
        if pairwise:
            first, second = np.triu_indices(n_classes, 1)
            target = (label[:, None] == first).astype(np.float64) - (label[:, None] == second)
            loss = OfPairs()
    else:
        X, y, weight = machine._checked(X, y, sample_weight, y_numeric=True, reset=False)
        used = weight > 0
        X, target, weight = X[used], np.asarray(y, np.float64)[used, None], weight[used]
        if (
            not _has_epsilon(model) and machine.loss == "squared_epsilon_insensitive"
        ):  # NuSVR: the width was found by the fit
            away = np.abs(target - function.decision_function(X, n_threads(machine.n_jobs)))[:, 0]
            machine.epsilon = float(
                np.quantile(away, 1.0 - float(model.nu), weights=weight, method="inverted_cdf")
            )
            loss = SquaredEpsilonInsensitive(epsilon=machine.epsilon)
    if not X.shape[0]:
        raise ValueError(
            "All rows have weight zero; give at least one with a positive weight, or no data."
        )
    return Data(X, target, float(machine.C) * weight, loss)


def _refine_on(
    data: Data,
    machine: Any,
    reduced: Reduced,
    kernel: Kernel,
    rng: np.random.Generator,
    limits: Limits,
    threads: int,
) -> None:
    """Tune the reduced machine to the data, in place."""
    n, m, tol = data.X.shape[0], reduced.coef.shape[0], float(machine.tol)
    rows = ready(kernel, data.X, dtype=np.float64 if n <= EXACT else None)
    labelled = in_memory(rows, data.target, data.weight, threads)
    columns = KernelColumns(labelled, rows.frame, m, machine.max_memory)
    problem = Subspace(columns, data.loss, bool(machine.fit_intercept))
    start = (reduced.coef, reduced.intercept)
    vectors = columns.in_rows_coordinates(reduced.vectors)
    if kernel.differentiable:
        moved = refine(
            problem,
            vectors,
            start,
            tol=LAST_SIZE * tol,
            max_iter=int(machine.max_iter),
            limits=limits,
            rng=rng,
        )
        state, reduced.n_evaluations = moved.state, reduced.n_evaluations + moved.n_evaluations
    else:
        columns.replace(vectors)
        state = solve(problem, start, tol, 50)
    reduced.vectors = _as_stored(columns)
    reduced.coef, reduced.intercept, reduced.precision = (
        state.coef,
        state.intercept,
        str(columns.dtype),
    )
    reduced.objective, reduced.gap = float(state.objective.sum()), float(state.gap.sum())


# -- 4. what comes out ----------------------------------------------------------------------------------------------------------------------


def _finish(
    machine: Any, model: Any, function: Expansion, reduced: Reduced, limits: Limits
) -> None:
    """Set the fitted attributes."""
    n, m = function.coef.shape[0], reduced.coef.shape[0]
    machine.kernel_ = function.kernel
    nan, tuned = float("nan"), reduced.objective is not None
    if reduced.objective is not None:
        relative = reduced.gap / reduced.objective if reduced.objective else 0.0
        machine.certificate_ = Certificate(
            SUBSPACE,
            reduced.objective,
            relative,
            reduced.gap,
            float(machine.tol),
            reduced.precision,
        )
    else:  # nothing is nearer than zero, which bounds the gap
        machine.certificate_ = Certificate(
            DISTANCE, reduced.error, reduced.distance, reduced.error, 0.0, reduced.precision
        )
    reason = limits.reason() or reduced.ended or "converged"
    words = f"Compressed from {n:,} to {m:,} vectors: "
    if reduced.exact:
        words += "the same function."
    else:
        words += f"the function differs by {reduced.distance:.2g} of its norm in feature space"
        words += ", and was then tuned to the data" if tuned else ""
        words += (
            "."
            if m == machine.n_basis or reason != "converged"
            else f"; no more of the {machine.n_basis} asked for are independent of these."
        )
    if reason != "converged":
        how = {"max_time": "Stopped at max_time", "interrupted": "Interrupted"}.get(
            reason, "Stopped"
        )
        words = f"{how} after {limits.seconds:.1f} s. {words}"
    machine.status_ = Status(reason, words)
    machine.fit_status_ = int(reason != "converged")
    machine.history_, machine.n_iter_ = {}, max(1, reduced.n_evaluations)
    support = getattr(
        model,
        "basis_indices_" if isinstance(model, SparseSVC | SparseSVR | ReducedSVC) else "support_",
        None,
    )
    kept = reduced.exact and m == n and not isinstance(function.kernel, Linear)
    indices = (
        np.asarray(support)
        if kept and support is not None and np.all(np.asarray(support) >= 0)
        else None
    )
    objective, gap = machine.certificate_.objective, machine.certificate_.gap
    machine.path_ = [
        PathPoint(
            m, reduced.vectors, reduced.coef, reduced.intercept, indices, objective, gap, nan, None
        )
    ]
    machine._take_point(machine.path_[0])
    if reason != "converged":
        warnings.warn(words, ConvergenceWarning, stacklevel=3)
