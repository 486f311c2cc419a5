"""LinearSVC: the machine without a kernel, for many rows and features.

The squared hinge is minimised by Newton's method over the weights of the features, the hinge by cutting planes
(:mod:`slimsvm.solvers.cutting_plane`). Up to EXACT rows both end at near machine precision.

Newton's method, after Chapelle (2007), "Training a support vector machine in the primal", section 3:

    min over w, b of  1/2 |w|^2 + sum_i weight_i max(0, 1 - y_i f_i)^2,     f = X w + b

with an exact line search. After every step the intercept is optimised on its own: then g_i = weight_i L'(y_i, f_i) sums to zero, the
multipliers -g are a feasible point of the dual, and the duality gap is 1/2 |w + X'g|^2, half of the squared gradient. The intercept is
eliminated from Newton's system, which is centred by the mean of the rows with an error, weighted by their curvatures D:
(I + (X - mean)' D (X - mean)) step = -gradient. Few features: the matrix is made and factorised, (rows with an error) d^2 + d^3/3. Many, or
sparse ones: conjugate gradients scaled by the diagonal, two passes over the rows for each of their steps. Then Newton's steps are made for a
small C first, which grows as they converge: from zero, at a large C, rows come and go in every step.

Symbols: W weights of features (d, columns); G gradients; D second derivatives of the weighted loss.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from numbers import Real
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve, eigh
from sklearn.base import ClassifierMixin
from sklearn.callback import with_callbacks
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.validation import check_is_fitted, validate_data

from slimsvm.estimators.base import Fit, Machine
from slimsvm.estimators.classification import encoded
from slimsvm.losses import Hinge, Loss, SquaredHinge
from slimsvm.oracles import LossOracle
from slimsvm.run import FULL, Certificate, Result, Status, run
from slimsvm.solvers.cutting_plane import CuttingPlane, ExplicitSpace, OneSlack
from slimsvm.solvers.decomposition import EXACT
from slimsvm.solvers.newton import least_along
from slimsvm.solvers.smo import polish
from slimsvm.threads import parallel, single_threaded_blas

Array = NDArray[Any]
DIRECT = 1000  # features up to which Newton's matrix is made (60,000 x 784, C = 1: 3.5 s, by conjugate gradients 7.7 s)
DIRECT_SPARSE = 4000  # ... if they are sparse, up to features^2 of this many entries a row (32,561 x 123, 14 entries a row: the same time)
GROUPS = (
    8  # partial sums of Newton's matrix: enough for threads, few enough for memory; fixed, for the same bits with any number of threads
)
FORCING = (
    0.1  # conjugate gradients end at this share of the gradient: 0.3 and 0.5 need up to twice the products at large C, never clearly less
)
MOST_CG = 100  # of their steps, for one of Newton's
FIRST_SHARE = 10.0  # of sum_i weight_i |x_i|^2, at the first share of C: the norm still counts
GROWTH, NEARLY = 10.0, 0.1  # of the share, at this relative gap (20news, C = 100: 2,200 products instead of 6,900; C = 1: 90, as without)
CG_WORK = 500_000_000  # entries of X they may visit for one of Newton's steps: about a second, so that Ctrl-C and max_time are heard
ROUGH, EXACT_CUTS = 1e-9, 1e-13  # relative gaps: above the first, few rows are tried again with cuts down to the second
EXACT_TOL = 1e-26  # relative gap for few rows: half of a squared gradient, so 1e-13 in the weights
TINY = float(np.finfo(float).tiny)
CONVERGED = "Converged: the relative duality gap is {violation:.2g}, no more than tol={tol:g} (gap {gap:.3g})."


# -- Newton's method ------------------------------------------------------------------------------------------------------------------------


@dataclass
class LinearProblem:
    """Rows in a space of features, targets (n, columns), weights (C included), and a loss with a derivative."""

    space: ExplicitSpace
    target: Array
    weight: Array
    loss: Loss
    fit_intercept: bool

    def risk(self, scores: Array) -> Array:
        """sum_i weight_i L(y_i, f_i) for each column."""
        return np.asarray(self.weight @ self.loss.value(self.target, scores))


@dataclass
class LinearState:
    """Where Newton's method is; scores with the intercept."""

    W: Array
    b: Array
    scores: Array
    objective: Array
    pull: Array  # X'g
    share: Array  # of C that each column has reached
    n_iter: int = 0
    done: bool = False
    n_products: int = 0  # passes over the rows

    @property
    def gap(self) -> Array:
        """The duality gap of each column."""
        return 0.5 * np.square(self.W + self.pull).sum(axis=0)

    @property
    def relative_gap(self) -> Array:
        """The same, relative to the objective."""
        return np.asarray(self.gap / np.maximum(self.objective, TINY))

    def record(self) -> dict[str, float]:
        """A line of the history; ``violation`` is the largest relative gap of a column."""
        return {
            "objective": float(self.objective.sum()),
            "gap": float(self.gap.sum()),
            "violation": float(self.relative_gap.max()),
            "products": float(self.n_products),
        }


@dataclass(frozen=True)
class LinearSolution:
    """Weights of the features (d, columns), and intercepts."""

    coef: Array
    intercept: Array


@dataclass
class LinearNewton:
    """Newton's method over the weights of features; ``tol`` is the relative gap, of every column.

    Parameters
    ----------
    direct : bool, optional
        Make and factorise Newton's matrix, instead of conjugate gradients; by default where that is faster.
    """

    direct: bool | None = None

    def init(self, problem: LinearProblem, start: tuple[Array, Array] | None = None) -> LinearState:
        """Begin at ``start`` (weights and intercepts), or at zero."""
        d, n_columns = problem.space.size, problem.target.shape[1]
        W, b = np.zeros((d, n_columns)), np.zeros(n_columns)
        scores = np.zeros_like(problem.target)
        if start is not None:
            W[:], b[:] = start[0], start[1] if problem.fit_intercept else 0.0
            scores = problem.space.scores(W) + b
        share = 1.0
        if start is None and not self._makes_matrix(problem):
            share = min(1.0, FIRST_SHARE / max(float(_squared_norms(problem.space) @ problem.weight), TINY))
        state = LinearState(W, b, scores, np.full(n_columns, np.inf), np.zeros_like(W), np.full(n_columns, share))
        self._look(problem, state)
        return state

    def _makes_matrix(self, problem: LinearProblem) -> bool:
        return _few_features(problem.space) if self.direct is None else self.direct

    def _look(self, problem: LinearProblem, S: LinearState) -> None:
        """The intercept on its own; objective and gradient there."""
        if problem.fit_intercept:
            nothing = np.zeros(S.b.size)
            for _ in range(2):  # the second repairs what rounding left of the first
                slope = problem.weight @ problem.loss.gradient(problem.target, S.scores)
                sign = np.where(slope > 0, -1.0, 1.0)
                along = np.ones_like(S.scores) * sign
                step = sign * least_along(problem.loss, problem.target, problem.weight, S.scores, along, nothing, nothing)
                S.b, S.scores = S.b + step, S.scores + step
        S.objective = 0.5 * np.einsum("jc,jc->c", S.W, S.W) + problem.risk(S.scores)
        S.pull = problem.space.project(problem.weight[:, None] * problem.loss.gradient(problem.target, S.scores))
        S.n_products += 1

    def step(self, problem: LinearProblem, state: LinearState, tol: float, max_iter: int) -> None:
        """One of Newton's steps for every column whose gap is too large."""
        S, space = state, problem.space
        which = np.flatnonzero(S.relative_gap > tol)
        if not which.size or S.n_iter >= max_iter:
            S.done = not which.size
            return
        # 1. directions
        dW, db, share = np.zeros((space.size, which.size)), np.zeros(which.size), S.share[which]
        for j, c in enumerate(which):
            D = share[j] * problem.weight * problem.loss.curvature(problem.target[:, c], S.scores[:, c])
            dW[:, j], db[j] = self._direction(problem, S, D, S.W[:, c] + share[j] * S.pull[:, c])
        # 2. the least value along each
        d_scores = space.scores(dW) + db
        W = S.W[:, which]
        slope, curve = np.einsum("jc,jc->c", W, dW) / share, np.einsum("jc,jc->c", dW, dW) / share
        t = least_along(problem.loss, problem.target[:, which], problem.weight, S.scores[:, which], d_scores, slope, curve)
        before, gap = S.objective.copy(), S.gap
        S.W[:, which] += t * dW
        S.b[which] += t * db
        S.scores[:, which] += t * d_scores
        S.n_products += 1
        # 3. where that is; the end is also where rounding is all that is left
        self._look(problem, S)
        S.n_iter += 1
        stalled = (S.objective >= before) & (S.gap >= 0.5 * gap) & (S.share == 1.0)
        S.done = bool(np.all((S.relative_gap <= tol) | stalled))
        # 4. more of C, where its present share is nearly solved
        half_norm = 0.5 * np.einsum("jc,jc->c", S.W, S.W)
        there = 0.5 * np.square(S.W + S.share * S.pull).sum(axis=0) <= NEARLY * (half_norm + S.share * (S.objective - half_norm))
        S.share = np.where(there, np.minimum(1.0, GROWTH * S.share), S.share)

    def _direction(self, problem: LinearProblem, S: LinearState, D: Array, gradient: Array) -> tuple[Array, float]:
        """Newton's step of one column: weights, intercept."""
        space, total = problem.space, float(D.sum())
        mean = np.zeros(space.size)
        if problem.fit_intercept and total > 0:
            mean = space.project(D[:, None])[:, 0] / total
            S.n_products += 1
        if self._makes_matrix(problem):
            factor = cho_factor(_newton_matrix(space, D, mean), lower=True, overwrite_a=True, check_finite=False)
            step = -cho_solve(factor, gradient, check_finite=False)
        else:
            step = -_conjugate_gradients(space, D, mean, gradient, S)
        return step, -float(mean @ step)

    def certificate(self, problem: LinearProblem, state: LinearState, tol: float) -> Certificate:
        """Objective and gap summed over the columns; ``violation`` is the largest relative gap of a column."""
        violation = float(state.relative_gap.max())
        return Certificate(FULL, float(state.objective.sum()), violation, float(state.gap.sum()), tol, problem.space.precision)

    def model(self, problem: LinearProblem, state: LinearState) -> LinearSolution:
        """Weights and intercepts."""
        return LinearSolution(state.W, state.b)


def _entries(space: ExplicitSpace) -> float:
    """Entries of X that a pass over the rows visits."""
    return float(sum(block.nnz if sp.issparse(block) else block.size for block in space.blocks))


def _squared_norms(space: ExplicitSpace) -> Array:
    parts = [block.multiply(block).sum(axis=1) if sp.issparse(block) else np.einsum("ij,ij->i", block, block) for block in space.blocks]
    return np.concatenate([np.asarray(part, np.float64).ravel() for part in parts])


def _few_features(space: ExplicitSpace) -> bool:
    dense = not sp.issparse(space.blocks[0])
    return space.size <= DIRECT and (dense or space.size**2 <= DIRECT_SPARSE * _entries(space) / space.n)


def _newton_matrix(space: ExplicitSpace, D: Array, mean: Array) -> Array:
    """I + (X - mean)' diag(D) (X - mean)"""
    groups = np.array_split(np.arange(len(space.blocks)), GROUPS)
    parts: list[Any] = [None] * GROUPS

    def task(k: int) -> None:
        for block in groups[k]:
            d = D[slice(*space.edges[block])]
            felt = np.flatnonzero(d)
            if felt.size:
                X = space.blocks[block][felt]
                X = (X.toarray() if sp.issparse(X) else X).astype(np.float64) - mean
                X *= np.sqrt(d[felt])[:, None]
                parts[k] = X.T @ X if parts[k] is None else parts[k] + X.T @ X

    with single_threaded_blas():
        parallel(task, GROUPS, space.n_threads)
    matrix = np.eye(space.size)
    for part in parts:
        if part is not None:
            matrix += part
    return matrix


def _conjugate_gradients(space: ExplicitSpace, D: Array, mean: Array, gradient: Array, S: LinearState) -> Array:
    """Solve (I + (X - mean)' diag(D) (X - mean)) x = gradient, nearly."""
    diagonal = _diagonal(space, D, mean)
    goal = FORCING * float(np.linalg.norm(gradient))
    x, r = np.zeros_like(gradient), gradient.copy()
    z = r / diagonal
    p, rz = z, float(r @ z)
    for _ in range(int(min(MOST_CG, max(10.0, CG_WORK / (2.0 * _entries(space) + 1.0))))):
        if np.linalg.norm(r) <= goal:
            break
        u = D * (space.scores(p[:, None])[:, 0] - float(mean @ p))
        q = p + space.project(u[:, None])[:, 0] - mean * float(u.sum())
        S.n_products += 2
        bend = float(p @ q)
        if not bend > 0:
            break
        t = rz / bend
        x, r = x + t * p, r - t * q
        z = r / diagonal
        rz, last = float(r @ z), rz
        p = z + (rz / last) * p
    return x if x.any() else gradient / diagonal


def _diagonal(space: ExplicitSpace, D: Array, mean: Array) -> Array:
    """Of I + (X - mean)' diag(D) (X - mean)."""
    parts: list[Any] = [None] * len(space.blocks)

    def task(k: int) -> None:
        X, d = space.blocks[k], D[slice(*space.edges[k])]
        squares = X.multiply(X).T @ d if sp.issparse(X) else np.einsum("ij,ij,i->j", X, X, d)
        parts[k] = np.asarray(squares, np.float64).ravel()

    parallel(task, len(parts), space.n_threads)
    return np.asarray(np.maximum(1.0, 1.0 + sum(parts[1:], parts[0]) - float(D.sum()) * mean**2))


# -- few rows -------------------------------------------------------------------------------------------------------------------------------


@dataclass
class Coordinates:
    """The rows in the coordinates that the solver sees, and the way back.

    Few rows are centred, which changes nothing but rounding errors since the intercept is free, and, where there are more features than rows,
    turned into as many coordinates as there are rows.
    """

    X: Any
    mean: Array | None = None
    turn: Array | None = field(default=None, repr=False)  # (d, r)

    def given(self, W: Array, b: Array) -> tuple[Array, Array]:
        """Weights and intercepts for the features as they were given."""
        coef = W if self.turn is None else self.turn @ W
        return coef, (b if self.mean is None else b - self.mean @ coef)

    def own(self, coef: Array, intercept: Array) -> tuple[Array, Array]:
        """The other way round."""
        W = coef if self.turn is None else self.turn.T @ coef
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
    K = (K.toarray() if sp.issparse(K) else K) - at_mean[:, None] - at_mean[None, :] + float(mean @ mean)
    square, U = eigh(0.5 * (K + K.T))
    kept = np.flatnonzero(square > max(float(square[-1]), TINY) * n * np.finfo(float).eps)
    if not kept.size:  # all rows are the same
        return Coordinates(np.zeros((n, 1)), mean, np.zeros((d, 1)))
    Q = U[:, kept] / np.sqrt(square[kept])
    turn = np.asarray(X.T @ Q) - np.outer(mean, Q.sum(axis=0))
    return Coordinates(U[:, kept] * np.sqrt(square[kept]), mean, turn)


def _polished(X: Array, sign: Array, upper: Array, duals: Array, fit_intercept: bool) -> tuple[Array, Array]:
    """The hinge's dual point of one column at near machine precision, from one nearby; and the weights."""
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
        z, bounds, a, o = np.append(z, 1.0), np.append(bounds, 2.0 * room), np.append(a, room), np.append(o, 0.0)
    o = o + K @ (z * a)
    polish(K, np.diag(K).copy(), z, bounds, a, o, z.size)
    a = a[:n]
    w = X.T @ (sign * a)
    w[np.abs(w) <= n * np.finfo(float).eps * (np.abs(X).T @ a)] = 0.0  # rounding errors of a zero: they would decide between equal classes
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
        **{name: Machine._parameter_constraints[name] for name in ("tol", "max_iter", "max_time", "warm_start", "n_jobs", "verbose")},
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
        if sp.issparse(X) and not X.has_canonical_format:  # products of SciPy add up entries written in parts, in the caller's matrix
            X = X.copy()
            X.sum_duplicates()
        classes, label, used = encoded(y, weight)
        if used.size < weight.size:
            X, label, weight = X[used], label[used], weight[used]
        factors = compute_class_weight(self.class_weight, classes=classes, y=classes[label], sample_weight=weight)
        weight = float(self.C) * weight * factors[label]
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
        self.coef_ = np.ascontiguousarray(np.where(np.abs(coef).max(axis=0) * abs(X).max() <= 1e-12, 0.0, coef).T)
        self.intercept_ = np.asarray(intercept if self.fit_intercept else np.zeros(positive.size))
        self.certificate_, self.history_, self.n_iter_ = result.certificate, result.history, result.n_iter
        self.status_: Status = result.status
        self.fit_status_ = int(not self.status_.converged)
        if not self.status_.converged:
            warnings.warn(str(self.status_), ConvergenceWarning, stacklevel=3)
        return self

    def _last(self, rows: Coordinates, n_features: int, n_columns: int) -> tuple[Array, Array] | None:
        """The weights of the last fit, if they may be the start of this one."""
        if not self.warm_start or getattr(self, "coef_", np.empty(0)).shape != (n_columns, n_features):
            return None
        return rows.own(self.coef_.T, self.intercept_)

    def _newton(self, rows: Coordinates, target: Array, weight: Array, fit: Fit, start: Any) -> tuple[Result, Array, Array]:
        space = ExplicitSpace(rows.X, fit.threads)
        problem = LinearProblem(space, target, weight, SquaredHinge(), bool(self.fit_intercept))
        tol = min(float(self.tol), EXACT_TOL) if space.n <= EXACT else float(self.tol)
        result = run(LinearNewton(), problem, tol=tol, max_iter=int(self.max_iter), limits=fit.limits, start=start, watchers=fit.watchers)
        return self._told(result, result.certificate), result.model.coef, result.model.intercept

    def _cutting_planes(self, rows: Coordinates, target: Array, weight: Array, fit: Fit, start: Any) -> tuple[Result, Array, Array]:
        few = target.shape[0] <= EXACT
        space, oracle = ExplicitSpace(rows.X, fit.threads), LossOracle(Hinge(), target, weight, fit.threads)
        problem = OneSlack(space, oracle, np.inf if self.fit_intercept else 0.0)
        solver = CuttingPlane(keep_rows=few)
        state = solver.init(problem, start)
        result = self._run(solver, problem, float(self.tol), int(self.max_iter), fit, state)
        W, b, certificate = result.model.coef, result.model.intercept, result.certificate
        if few and fit.limits.reason() is None:
            W, b, certificate = self._exact(rows.X, oracle, result)
            left = -1 if self.max_iter < 0 else int(self.max_iter) - result.n_iter
            if certificate.violation > ROUGH and result.status.converged and left != 0:
                # features of very different size: more cuts find the way where the exact solver crawls
                more = self._run(solver, problem, EXACT_CUTS, left, fit, state)
                history = {name: np.concatenate([result.history[name], more.history[name]]) for name in result.history}
                result = Result(more.model, more.certificate, result.status, history, result.n_iter + more.n_iter)
                W, b, certificate = self._exact(rows.X, oracle, result)
        return self._told(result, certificate), W, b

    @staticmethod
    def _run(solver: Any, problem: Any, tol: float, max_iter: int, fit: Fit, start: Any) -> Result:
        return run(solver, problem, tol=tol, max_iter=max_iter, limits=fit.limits, start=start, watchers=fit.watchers)

    def _exact(self, X: Array, oracle: LossOracle, result: Result) -> tuple[Array, Array, Certificate]:
        """Few rows: on from the multipliers of the cuts to near machine precision; what it was, where that fails."""
        W, gap = np.empty_like(result.model.coef), np.empty(oracle.n_columns)
        for c in range(oracle.n_columns):
            sign = np.ascontiguousarray(oracle.target[:, c])
            a, W[:, c] = _polished(X, sign, oracle.weight, np.abs(result.model.row_duals[:, c]), bool(self.fit_intercept))
            gap[c] = float(W[:, c] @ W[:, c]) - float(a.sum())
        scores = X @ W
        b = oracle.intercept(scores, middle=True) if self.fit_intercept else np.zeros(oracle.n_columns)
        risk = oracle.risk(scores + b)
        values, gap = 0.5 * np.einsum("jc,jc->c", W, W) + risk, np.maximum(0.0, gap + risk)
        relative = float((gap / np.maximum(values, TINY)).max())
        certificate = Certificate(FULL, float(values.sum()), relative, float(gap.sum()), result.certificate.tol, "float64")
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
            status = Status("stopped", f"Stopped where rounding errors allow no progress: the relative gap is {certificate.violation:.2g}.")
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
        X = validate_data(self, X, dtype=[np.float64, np.float32], accept_sparse="csr", accept_large_sparse=True, reset=False)
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
        return self.classes_[(values > 0).astype(int) if values.ndim == 1 else np.argmax(values, axis=1)]
