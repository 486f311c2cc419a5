"""LinearSVC: no kernel, for many rows and features.

The squared hinge is minimised by Newton's method (:mod:`slimsvm.solvers.linear_newton`), the hinge
by cutting planes (:mod:`slimsvm.solvers.cutting_plane`). Few rows end at near float64 precision.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils._param_validation import StrOptions

from slimsvm.declarations import declared, parameter
from slimsvm.ending import FULL, Certificate, Ending
from slimsvm.estimators.fitting import Classifier
from slimsvm.estimators.models import LinearWeights
from slimsvm.estimators.parameters import shared
from slimsvm.losses import Hinge, SquaredHinge
from slimsvm.multiclass import OneVsRest
from slimsvm.oracles import LossOracle
from slimsvm.precision import LINEAR_CUTS_TOL, NEWTON_TOL, is_small
from slimsvm.problems.coordinates import coordinates
from slimsvm.rows import MemoryRows
from slimsvm.run import Limits, Result, run
from slimsvm.solvers.cutting_plane import CuttingPlane, OneSlack
from slimsvm.solvers.linear_newton import LinearNewton, LinearProblem
from slimsvm.solvers.polish import polished
from slimsvm.solvers.spaces import ExplicitSpace
from slimsvm.training import Data, Fit

Array = NDArray[Any]
ROUGH = 1e-9  # relative gap above which few rows are tried again with more cuts
TINY = float(np.finfo(float).tiny)
LARGEST_SQUARE = 1e150  # of a value, times C: the same squared is still a number
ZERO = 1e-12  # scores that are zero but for rounding errors would decide ties between classes


@declared
class LinearSVC(LinearWeights, Classifier):
    """Linear support vector classification, in time that grows with the size of the data alone.

    The same problem as :class:`sklearn.svm.LinearSVC`, but the intercept is not penalised: shifting
    the features changes nothing, as in :class:`SVC` with a linear kernel. Several classes: each
    against the rest.

    Parameters
    ----------
    loss : {'squared_hinge', 'hinge'}
        What an error costs: max(0, 1 - y f)^2 (Newton's method) or max(0, 1 - y f) (cutting
        planes).
    C : float
        Weight of the errors: 1/2 |w|^2 + C sum_i weight_i loss(y_i, f(x_i)).
    class_weight : dict or 'balanced'
        Factors of the weights of the rows of each class.
    tol : float
        Relative duality gap at the end. Up to 1,000 rows are always solved to near float64
        precision.
    max_iter : int
        Limit on Newton steps, or on rounds of cutting planes; -1: none.
    warm_start : bool
        Begin with the weights of the last fit.

    See Also
    --------
    SVC : With kernels; with the hinge and a linear kernel, the same for two classes.

    References
    ----------
    .. [1] O. Chapelle, "Training a support vector machine in the primal", 2007.
    .. [2] T. Joachims, "Training linear SVMs in linear time", 2006.
    .. [3] V. Franc, S. Sonnenburg, "Optimized cutting plane algorithm for support vector machines",
       2008.

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

    loss: str = parameter("squared_hinge", StrOptions({"squared_hinge", "hinge"}), positional=True)
    C: float = shared("C")
    fit_intercept: bool = shared("fit_intercept")
    class_weight: Any = shared("class_weight")
    tol: float = shared("tol", default=1e-4)
    max_iter: int = shared("max_iter", default=1000)
    max_time: float | None = shared("max_time")
    warm_start: bool = shared("warm_start")
    n_jobs: int | None = shared("n_jobs")
    verbose: bool = shared("verbose")

    scheme: ClassVar[Any] = OneVsRest
    _same_as: ClassVar[str] = "SVC"

    # -- training ---------------------------------------------------------------------------------

    def _encoded(self, X: Any, y: Any, weight: Array) -> Data:
        if sp.issparse(X) and not X.has_canonical_format:
            X = X.copy()  # products of SciPy add up entries written in parts, in the given matrix
            X.sum_duplicates()
        data = super()._encoded(X, y, weight)
        data.weight = float(self.C) * data.weight
        largest = max(float(data.X.max()), -float(data.X.min()))
        if largest > math.sqrt(LARGEST_SQUARE / max(1.0, float(data.weight.max()))):
            raise ValueError(
                f"X has values as large as {largest:.3g}: with C={self.C:g}, products of such "
                "squares leave the range of float64. Scale the features, for example with "
                "StandardScaler."
            )
        data.about["largest"] = largest
        return data

    def _prepared(self, data: Data) -> None:
        data.rows = coordinates(data.X, data.weight, bool(self.fit_intercept))

    def _solved(self, data: Data, fit: Fit) -> tuple[Result, Array, Array]:
        target = OneVsRest(data.classes.size).columns(data.target)
        start = None
        if self.warm_start:
            last = getattr(self, "coef_", np.empty(0))
            if last.shape == (target.shape[1], data.X.shape[1]):
                start = data.rows.own(last.T, self.intercept_)
        train = self._cutting_planes if self.loss == "hinge" else self._newton
        return train(data.rows.X, target, data.weight, fit, start)

    def _newton(
        self, X: Any, target: Array, weight: Array, fit: Fit, start: Any
    ) -> tuple[Result, Array, Array]:
        # scores are carried on from step to step: products in float32 would hide how far they stray
        space = ExplicitSpace(MemoryRows(X, n_threads=fit.threads), exact=True)
        problem = LinearProblem(space, target, weight, SquaredHinge(), bool(self.fit_intercept))
        tol = min(float(self.tol), NEWTON_TOL) if is_small(space.n) else float(self.tol)
        result = self._run(LinearNewton(), problem, tol, int(self.max_iter), fit, start)
        return result.against(float(self.tol)), result.model.coef, result.model.intercept

    def _cutting_planes(
        self, X: Any, target: Array, weight: Array, fit: Fit, start: Any
    ) -> tuple[Result, Array, Array]:
        small = is_small(target.shape[0])
        oracle = LossOracle(Hinge(), target, weight, fit.threads)
        scaling = np.inf if self.fit_intercept else 0.0
        problem = OneSlack(ExplicitSpace(MemoryRows(X, n_threads=fit.threads)), oracle, scaling)
        solver = CuttingPlane(keep_rows=small)
        state = solver.init(problem, start)
        result = self._run(solver, problem, float(self.tol), int(self.max_iter), fit, state)
        found = result.model.coef, result.model.intercept, result.certificate
        if small and fit.limits.reason() is None:
            found = self._exact(X, oracle, result, fit.limits)
            left = -1 if self.max_iter < 0 else int(self.max_iter) - result.n_iter
            if found[2].violation > ROUGH and result.status.converged and left != 0:
                # features of very different size: more cuts get on where the exact solver crawls
                more = self._run(solver, problem, LINEAR_CUTS_TOL, left, fit, state)
                history = {
                    name: np.concatenate([values, more.history[name]])
                    for name, values in result.history.items()
                }
                steps = result.n_iter + more.n_iter
                result = replace(more, status=result.status, history=history, n_iter=steps)
                found = self._exact(X, oracle, result, fit.limits)
        result = replace(result, certificate=found[2]).against(float(self.tol))
        return result, found[0], found[1]

    @staticmethod
    def _run(solver: Any, problem: Any, tol: float, max_iter: int, fit: Fit, start: Any) -> Result:
        limits, watchers = fit.limits, fit.watchers
        return run(
            solver,
            problem,
            tol=tol,
            max_iter=max_iter,
            limits=limits,
            start=start,
            watchers=watchers,
        )

    def _exact(
        self, X: Array, oracle: LossOracle, result: Result, limits: Limits
    ) -> tuple[Array, Array, Certificate]:
        """Few rows: on from the multipliers of the cuts; what it was, where that fails."""
        intercept = bool(self.fit_intercept)
        W, gap = np.empty_like(result.model.coef), np.empty(oracle.n_columns)
        for c in range(oracle.n_columns):
            sign = np.ascontiguousarray(oracle.target[:, c])
            duals = np.abs(result.model.row_duals[:, c])
            a, W[:, c] = polished(X, sign, oracle.weight, duals, intercept, limits)
            gap[c] = float(W[:, c] @ W[:, c]) - float(a.sum())
        scores = X @ W
        b = oracle.intercept(scores, middle=True) if intercept else np.zeros(oracle.n_columns)
        risk = oracle.risk(scores + b)
        values = 0.5 * np.einsum("jc,jc->c", W, W) + risk
        gap = np.maximum(0.0, gap + risk)
        relative = float((gap / np.maximum(values, TINY)).max())
        if relative > max(ROUGH, result.certificate.violation):
            return result.model.coef, result.model.intercept, result.certificate
        total, tol = float(values.sum()), result.certificate.tol
        return W, b, Certificate(FULL, total, relative, float(gap.sum()), tol, "float64")

    def _concluded(self, data: Data, solved: Any, fit: Fit) -> Ending:
        result, W, b = solved
        coef, intercept = data.rows.given(W, b)
        nothing = np.abs(coef).max(axis=0) * data.about["largest"] <= ZERO
        self.coef_ = np.ascontiguousarray(np.where(nothing, 0.0, coef).T)
        self.intercept_ = np.asarray(intercept if self.fit_intercept else np.zeros(W.shape[1]))
        self.classes_, self.class_weight_, self.n_iter_ = data.classes, data.factors, result.n_iter
        seconds = fit.limits.seconds
        return Ending.of([result], "gap", seconds=seconds, max_iter=int(self.max_iter))
