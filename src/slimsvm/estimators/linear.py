"""LinearSVC: the machine without a kernel, for many rows and features.

The squared hinge is minimised by Newton's method (:mod:`slimsvm.solvers.linear_newton`), the hinge by cutting planes
(:mod:`slimsvm.solvers.cutting_plane`). Up to EXACT rows both end at near machine precision.

"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, field
from numbers import Real
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.linalg import eigh
from sklearn.base import ClassifierMixin
from sklearn.callback import with_callbacks
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted, validate_data

from slimsvm.estimators.base import Fit, Machine
from slimsvm.estimators.classification import class_factors, encoded
from slimsvm.losses import Hinge, SquaredHinge
from slimsvm.oracles import LossOracle
from slimsvm.rows import MemoryRows
from slimsvm.run import FULL, SENTENCES, Certificate, Limits, Result, Status, run
from slimsvm.solvers.cutting_plane import CuttingPlane, OneSlack
from slimsvm.solvers.decomposition import EXACT
from slimsvm.solvers.linear_newton import LinearNewton, LinearProblem
from slimsvm.solvers.smo import polish
from slimsvm.solvers.spaces import ExplicitSpace

Array = NDArray[Any]
ROUGH, EXACT_CUTS = (
    1e-9,
    1e-13,
)  # relative gaps: above the first, few rows are tried again with cuts down to the second
EXACT_TOL = 1e-26  # relative gap for few rows: half of a squared gradient, so 1e-13 in the weights
TINY = float(np.finfo(float).tiny)
LARGEST_SQUARE = 1e150  # of a value, times C: the same squared is still a number
POLISHES = 20  # calls of the exact solver, a tenth of a second each: 300 rows whose factor has 5 columns, C = 1e6, need 11
STALLED = "Stopped where rounding errors allow no progress: the relative gap is {violation:.2g}. Scale the features, or use a smaller C."
CONVERGED = "Converged: the relative duality gap is {violation:.2g}, no more than tol={tol:g} (gap {gap:.3g})."


# -- few rows -------------------------------------------------------------------------------------------------------------------------------


@dataclass
class Coordinates:
    """The rows in the coordinates that the solver sees, and the way back.

    Few rows are centred, which changes nothing but rounding errors since the intercept is free, and, where there are more features than rows,
    turned into as many coordinates as there are rows. The axes of these are combinations of the centred rows, and are never written down:
    with a million features they would take gigabytes.
    """

    X: Any
    mean: Array | None = None
    rows: Any = field(default=None, repr=False)  # as given, (n, d)
    turn: Array | None = field(
        default=None, repr=False
    )  # (n, r): the axes are (rows - mean)^T turn

    def given(self, W: Array, b: Array) -> tuple[Array, Array]:
        """Weights and intercepts for the features as they were given."""
        coef = W
        if self.turn is not None and self.mean is not None:
            of_rows = self.turn @ W
            coef = np.asarray(self.rows.T @ of_rows) - np.outer(self.mean, of_rows.sum(axis=0))
        return coef, (b if self.mean is None else b - self.mean @ coef)

    def own(self, coef: Array, intercept: Array) -> tuple[Array, Array]:
        """The other way round."""
        W = (
            coef
            if self.turn is None or self.mean is None
            else self.turn.T @ (np.asarray(self.rows @ coef) - self.mean @ coef)
        )
        return W, (intercept if self.mean is None else intercept + self.mean @ coef)


def _coordinates(X: Any, weight: Array, centred: bool) -> Coordinates:
    """Few rows get float64, a centre, and no more coordinates than rows; many stay as they are."""
    n, d = X.shape
    if n > EXACT:
        return Coordinates(X)
    X = X.astype(np.float64)
    mean = np.asarray(X.T @ weight).ravel() / float(weight.sum()) if centred else np.zeros(d)
    if d <= n:
        return Coordinates((X.toarray() if sp.issparse(X) else X) - mean, mean)
    K, at_mean = X @ X.T, np.asarray(X @ mean).ravel()
    K = (
        (K.toarray() if sp.issparse(K) else K)
        - at_mean[:, None]
        - at_mean[None, :]
        + float(mean @ mean)
    )
    square, U = eigh(0.5 * (K + K.T))
    kept = np.flatnonzero(square > max(float(square[-1]), TINY) * n * np.finfo(float).eps)
    if not kept.size:  # all rows are the same
        return Coordinates(np.zeros((n, 1)), mean, X, np.zeros((n, 1)))
    size = np.sqrt(square[kept])
    return Coordinates(U[:, kept] * size, mean, X, U[:, kept] / size)


def polished(
    X: Array, sign: Array, upper: Array, duals: Array, fit_intercept: bool, limits: Limits
) -> tuple[Array, Array]:
    """The hinge's dual point of one column at near machine precision, from one nearby, or at least nearer; and the weights."""
    n = sign.size
    K, a = X @ X.T, np.clip(duals, 0.0, upper)
    z, bounds, o = sign, upper, -sign  # o = s + z p, p = -1
    if fit_intercept:  # the sum over both classes must be the same: the heavier one is scaled down
        miss = float(sign @ a)
        heavy = sign > 0 if miss > 0 else sign < 0
        total = float(a[heavy].sum())
        if total > 0:
            a[heavy] *= max(0.0, 1.0 - abs(miss) / total)
    else:  # a variable that costs nothing takes up what the equality demands
        K = np.pad(K, (0, 1))
        room = float(upper.sum()) + 1.0
        z, bounds, a, o = (
            np.append(z, 1.0),
            np.append(bounds, 2.0 * room),
            np.append(a, room),
            np.append(o, 0.0),
        )
    o = o + K @ (z * a)
    for _ in range(POLISHES):
        _, more = polish(K, np.diag(K).copy(), z, bounds, a, o, z.size)
        if not more or limits.reason() is not None:
            break
    a = a[:n]
    w = X.T @ (sign * a)
    w[np.abs(w) <= n * np.finfo(float).eps * (np.abs(X).T @ a)] = (
        0.0  # rounding errors of a zero: they would decide between equal classes
    )
    return a, w


# -- the estimator --------------------------------------------------------------------------------------------------------------------------


class LinearSVC(ClassifierMixin, Machine):
    """Linear support vector classification, by methods whose time grows with the size of the data and hardly with anything else.

    The same problem as :class:`sklearn.svm.LinearSVC`, but the intercept is not penalised: shifting the features changes nothing, as in
    :class:`SVC` with a linear kernel. Several classes: one machine for each class against the rest.

    Parameters
    ----------
    loss : {'squared_hinge', 'hinge'}, default='squared_hinge'
        What an error costs: max(0, 1 - y f)^2 (Newton's method) or max(0, 1 - y f) (cutting planes).
    C : float, default=1.0
        Weight of the errors: 1/2 |w|^2 + C sum_i weight_i loss(y_i, f(x_i)).
    fit_intercept : bool, default=True
        Whether there is an intercept.
    class_weight : dict or 'balanced', optional
        Factors of the weights of the rows of each class.
    tol : float, default=1e-4
        Relative duality gap at the end. Up to 1,000 rows are always solved to near machine precision.
    max_iter : int, default=1000
        Limit on Newton steps, or on rounds of cutting planes; -1: none.
    max_time : float, optional
        Limit in seconds. At the limit, and at Ctrl-C, the best model so far is kept, with a ConvergenceWarning.
    warm_start : bool, default=False
        Begin with the weights of the last fit.
    n_jobs : int, optional
        Threads: None is one unless a joblib context says otherwise, -1 all. The result does not depend on it.
    verbose : bool, default=False
        Show a line of progress.

    Attributes
    ----------
    coef_ : array of shape (1, n_features) or (n_classes, n_features)
        Weights of the features.
    intercept_ : array of shape (1,) or (n_classes,)
        Constants in the decision function.
    classes_ : array
        The labels, sorted.
    class_weight_ : array
        Factor of the weights for each class.
    certificate_ : Certificate
        Objective and duality gap at the end; its ``violation`` is the largest relative gap of a class.
    status_ : Status
        Why the fit ended; ``str(status_)`` is a sentence.
    history_ : dict of arrays
        Seconds, objective, gap after every step.
    fit_status_ : int
        0 if the tolerance was reached.
    n_iter_ : int
        Steps made.
    n_features_in_ : int
        Number of features at fit.
    feature_names_in_ : array
        Their names, if X had names.

    See Also
    --------
    SVC : With kernels, and with the hinge and a linear kernel the same machine for two classes.

    References
    ----------
    .. [1] O. Chapelle, "Training a support vector machine in the primal", 2007.
    .. [2] T. Joachims, "Training linear SVMs in linear time", 2006.
    .. [3] V. Franc, S. Sonnenburg, "Optimized cutting plane algorithm for support vector machines", 2008.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from slimsvm import LinearSVC
    >>> X, y = load_iris(return_X_y=True)
    >>> model = LinearSVC().fit(X, y)
    >>> round(model.score(X, y), 2)
    0.97
    >>> model.coef_.shape, model.certificate_.holds
    ((3, 4), True)
    """

    kernel: ClassVar[str] = "linear"  # what the checks of the base class ask for

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "loss": [StrOptions({"squared_hinge", "hinge"})],
        "C": [Interval(Real, 0.0, None, closed="neither")],
        "fit_intercept": ["boolean"],
        "class_weight": [StrOptions({"balanced"}), dict, None],
        **{
            name: Machine._parameter_constraints[name]
            for name in ("tol", "max_iter", "max_time", "warm_start", "n_jobs", "verbose")
        },
    }

    classes_: Array
    class_weight_: Array
    coef_: Array
    intercept_: Array

    def __init__(
        self,
        loss: str = "squared_hinge",
        *,
        C: float = 1.0,
        fit_intercept: bool = True,
        class_weight: Any = None,
        tol: float = 1e-4,
        max_iter: int = 1000,
        max_time: float | None = None,
        warm_start: bool = False,
        n_jobs: int | None = None,
        verbose: bool = False,
    ) -> None:
        self.loss = loss
        self.C = C
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.tol = tol
        self.max_iter = max_iter
        self.max_time = max_time
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.verbose = verbose

    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> LinearSVC:
        """Train on rows X with labels y.

        Parameters
        ----------
        X : array, CSR matrix or DataFrame of shape (n_samples, n_features)
            Training rows.
        y : array of shape (n_samples,)
            Labels, numbers or strings.
        sample_weight : array of shape (n_samples,), optional
            Scales C for each row. Zero removes the row, an integer repeats it.

        Returns
        -------
        self
        """
        X, y, weight = self._checked(X, y, sample_weight)
        if (
            sp.issparse(X) and not X.has_canonical_format
        ):  # products of SciPy add up entries written in parts, in the caller's matrix
            X = X.copy()
            X.sum_duplicates()
        classes, label, used = encoded(y, weight)
        if used.size < weight.size:
            X, label, weight = X[used], label[used], weight[used]
        factors = class_factors(
            self.class_weight, classes=classes, y=classes[label], sample_weight=weight
        )
        weight = float(self.C) * weight * factors[label]
        largest = max(float(X.max()), -float(X.min()))
        if largest > math.sqrt(LARGEST_SQUARE / max(1.0, float(weight.max()))):
            raise ValueError(
                f"X has values as large as {largest:.3g}: with C={self.C:g}, products of such squares leave the range of float64. Scale the "
                "features, for example with StandardScaler."
            )
        positive = np.arange(classes.size) if classes.size > 2 else np.array([1])
        target = np.where(label[:, None] == positive, 1.0, -1.0)
        with self._fitting() as fit:
            rows = _coordinates(X, weight, bool(self.fit_intercept))
            start = self._last(rows, X.shape[1], positive.size)
            if self.loss == "hinge":
                result, W, b = self._cutting_planes(rows, target, weight, fit, start)
            else:
                result, W, b = self._newton(rows, target, weight, fit, start)
            coef, intercept = rows.given(W, b)
        self.classes_, self.class_weight_ = classes, factors
        # weights that are zero but for rounding errors would decide ties between classes by them
        self.coef_ = np.ascontiguousarray(
            np.where(np.abs(coef).max(axis=0) * largest <= 1e-12, 0.0, coef).T
        )
        self.intercept_ = np.asarray(intercept if self.fit_intercept else np.zeros(positive.size))
        self.certificate_, self.history_, self.n_iter_ = (
            result.certificate,
            result.history,
            result.n_iter,
        )
        self.status_: Status = result.status
        self.fit_status_ = int(not self.status_.converged)
        if not self.status_.converged:
            warnings.warn(str(self.status_), ConvergenceWarning, stacklevel=3)
        return self

    def _last(
        self, rows: Coordinates, n_features: int, n_columns: int
    ) -> tuple[Array, Array] | None:
        """The weights of the last fit, if they may be the start of this one."""
        if not self.warm_start or getattr(self, "coef_", np.empty(0)).shape != (
            n_columns,
            n_features,
        ):
            return None
        return rows.own(self.coef_.T, self.intercept_)

    def _newton(
        self, rows: Coordinates, target: Array, weight: Array, fit: Fit, start: Any
    ) -> tuple[Result, Array, Array]:
        # scores are carried on from step to step: products in float32 would hide how far they stray
        space = ExplicitSpace(MemoryRows(rows.X, n_threads=fit.threads), exact=True)
        problem = LinearProblem(space, target, weight, SquaredHinge(), bool(self.fit_intercept))
        tol = min(float(self.tol), EXACT_TOL) if space.n <= EXACT else float(self.tol)
        result = run(
            LinearNewton(),
            problem,
            tol=tol,
            max_iter=int(self.max_iter),
            limits=fit.limits,
            start=start,
            watchers=fit.watchers,
        )
        return self._told(result, result.certificate), result.model.coef, result.model.intercept

    def _cutting_planes(
        self, rows: Coordinates, target: Array, weight: Array, fit: Fit, start: Any
    ) -> tuple[Result, Array, Array]:
        few = target.shape[0] <= EXACT
        space, oracle = (
            ExplicitSpace(MemoryRows(rows.X, n_threads=fit.threads)),
            LossOracle(Hinge(), target, weight, fit.threads),
        )
        problem = OneSlack(space, oracle, np.inf if self.fit_intercept else 0.0)
        solver = CuttingPlane(keep_rows=few)
        state = solver.init(problem, start)
        result = self._run(solver, problem, float(self.tol), int(self.max_iter), fit, state)
        W, b, certificate = result.model.coef, result.model.intercept, result.certificate
        if few and fit.limits.reason() is None:
            W, b, certificate = self._exact(rows.X, oracle, result, fit.limits)
            left = -1 if self.max_iter < 0 else int(self.max_iter) - result.n_iter
            if certificate.violation > ROUGH and result.status.converged and left != 0:
                # features of very different size: more cuts find the way where the exact solver crawls
                more = self._run(solver, problem, EXACT_CUTS, left, fit, state)
                history = {
                    name: np.concatenate([result.history[name], more.history[name]])
                    for name in result.history
                }
                result = Result(
                    more.model,
                    more.certificate,
                    result.status,
                    history,
                    result.n_iter + more.n_iter,
                )
                W, b, certificate = self._exact(rows.X, oracle, result, fit.limits)
        return self._told(result, certificate), W, b

    @staticmethod
    def _run(solver: Any, problem: Any, tol: float, max_iter: int, fit: Fit, start: Any) -> Result:
        return run(
            solver,
            problem,
            tol=tol,
            max_iter=max_iter,
            limits=fit.limits,
            start=start,
            watchers=fit.watchers,
        )

    def _exact(
        self, X: Array, oracle: LossOracle, result: Result, limits: Limits
    ) -> tuple[Array, Array, Certificate]:
        """Few rows: on from the multipliers of the cuts to near machine precision; what it was, where that fails."""
        W, gap = np.empty_like(result.model.coef), np.empty(oracle.n_columns)
        for c in range(oracle.n_columns):
            sign = np.ascontiguousarray(oracle.target[:, c])
            a, W[:, c] = polished(
                X,
                sign,
                oracle.weight,
                np.abs(result.model.row_duals[:, c]),
                bool(self.fit_intercept),
                limits,
            )
            gap[c] = float(W[:, c] @ W[:, c]) - float(a.sum())
        scores = X @ W
        b = (
            oracle.intercept(scores, middle=True)
            if self.fit_intercept
            else np.zeros(oracle.n_columns)
        )
        risk = oracle.risk(scores + b)
        values, gap = 0.5 * np.einsum("jc,jc->c", W, W) + risk, np.maximum(0.0, gap + risk)
        relative = float((gap / np.maximum(values, TINY)).max())
        certificate = Certificate(
            FULL, float(values.sum()), relative, float(gap.sum()), result.certificate.tol, "float64"
        )
        if relative > max(ROUGH, result.certificate.violation):
            return result.model.coef, result.model.intercept, result.certificate
        return W, b, certificate

    def _told(self, result: Result, certificate: Certificate) -> Result:
        """The result with its final certificate, measured against the tolerance that was asked for."""
        certificate = Certificate(**{**certificate.to_dict(), "tol": float(self.tol)})
        status = result.status
        if certificate.holds:
            status = Status("converged", CONVERGED.format(**certificate.to_dict()))
        elif status.converged:  # the solver could not get any further
            status = Status("stopped", STALLED.format(**certificate.to_dict()))
        elif status.reason == "max_iter":  # solvers of few rows have a tolerance of their own
            status = Status(
                "max_iter",
                SENTENCES["max_iter"].format(n_iter=result.n_iter, **certificate.to_dict()),
            )
        return Result(result.model, certificate, status, result.history, result.n_iter)

    # -- prediction ---------------------------------------------------------------------------------------------------------------------

    def decision_function(self, X: Any) -> Array:
        """Decision values.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)
            New rows.

        Returns
        -------
        array of shape (n_samples,) for two classes, else (n_samples, n_classes).
        """
        check_is_fitted(self)
        X = validate_data(
            self,
            X,
            dtype=[np.float64, np.float32],
            accept_sparse="csr",
            accept_large_sparse=True,
            reset=False,
        )
        values = np.asarray(X @ self.coef_.T + self.intercept_)
        return values[:, 0] if len(self.classes_) == 2 else values

    def predict(self, X: Any) -> Array:
        """Labels of new rows.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)
            New rows.

        Returns
        -------
        array of shape (n_samples,)
        """
        values = self.decision_function(X)
        return self.classes_[
            (values > 0).astype(int) if values.ndim == 1 else np.argmax(values, axis=1)
        ]
