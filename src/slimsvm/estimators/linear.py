"""LinearSVC: no kernel, for many rows and features.

:mod:`slimsvm.solvers.linear` chooses the way. Few rows end at near float64 precision.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils._param_validation import StrOptions

from slimsvm.declarations import declared, parameter
from slimsvm.ending import Ending
from slimsvm.estimators.fitting import Classifier
from slimsvm.estimators.models import LinearWeights
from slimsvm.estimators.parameters import shared
from slimsvm.losses import Hinge, SquaredHinge
from slimsvm.multiclass import OneVsRest
from slimsvm.oracles import LossOracle
from slimsvm.problems.coordinates import coordinates
from slimsvm.problems.linear import LinearFit, LinearSolution
from slimsvm.run import Result, run
from slimsvm.solvers.cutting_plane import CuttingPlane
from slimsvm.solvers.linear import linear
from slimsvm.solvers.linear_lagrangian import LinearLagrangian
from slimsvm.training import Data, Fit, canonical

Array = NDArray[Any]
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
        What an error costs: max(0, 1 - y f)^2 or max(0, 1 - y f).
    C : float
        Weight of the errors: 1/2 |w|^2 + C sum_i weight_i loss(y_i, f(x_i)).
    class_weight : dict or 'balanced'
        Factors of the weights of the rows of each class.
    tol : float
        Relative duality gap at the end. Up to 1,000 rows are always solved to near float64
        precision.
    max_iter : int
        Limit on Newton's steps, on passes over the rows, or on rounds of cutting planes; -1: none.
    warm_start : bool
        Begin with the weights of the last fit.
    solver : CuttingPlane, LinearLagrangian or None
        A solver that is followed to the letter, also for few rows. For loss='hinge' cutting planes
        with settings of their own (:class:`slimsvm.solvers.cutting_plane.CuttingPlane`); with
        ``stop="violation"``, tol is the violation of the last cut. For loss='squared_hinge' LSVM
        (:class:`slimsvm.solvers.linear_lagrangian.LinearLagrangian`), whose intercept is penalised
        like a weight.

    See Also
    --------
    SVC : With kernels; with the hinge and a linear kernel, the same for two classes.

    References
    ----------
    .. [1] O. Chapelle, "Training a support vector machine in the primal", 2007.
    .. [2] C.-J. Hsieh, K.-W. Chang, C.-J. Lin, S. S. Keerthi, S. Sundararajan, "A dual coordinate
       descent method for large-scale linear SVM", 2008.
    .. [3] T. Joachims, "Training linear SVMs in linear time", 2006.
    .. [4] V. Franc, S. Sonnenburg, "Optimized cutting plane algorithm for support vector machines",
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
    solver: Any = parameter(None, CuttingPlane, LinearLagrangian, None)
    n_jobs: int | None = shared("n_jobs")
    verbose: bool = shared("verbose")

    scheme: ClassVar[Any] = OneVsRest
    _same_as: ClassVar[str] = "SVC"

    # -- training ---------------------------------------------------------------------------------

    @property
    def _is_lagrangian(self) -> bool:
        return isinstance(self.solver, LinearLagrangian)

    def _encoded(self, X: Any, y: Any, weight: Array) -> Data:
        data = super()._encoded(canonical(X), y, weight)
        data.weight = float(self.C) * data.weight
        if isinstance(self.solver, CuttingPlane) and self.loss != "hinge":
            raise ValueError(
                f"solver={self.solver!r} makes cutting planes, which are for loss='hinge'; with "
                f"loss={self.loss!r} leave solver out."
            )
        if self._is_lagrangian and self.loss != "squared_hinge":
            raise ValueError(
                f"solver={self.solver!r} is for loss='squared_hinge'; with loss={self.loss!r} "
                "leave solver out."
            )
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
        centred = bool(self.fit_intercept) and not self._is_lagrangian
        data.rows = coordinates(data.X, data.weight, centred)

    def _solved(self, data: Data, fit: Fit) -> Result:
        target = OneVsRest(data.classes.size).columns(data.target)
        start = None
        if self.warm_start:
            last = getattr(self, "coef_", np.empty(0))
            if last.shape == (target.shape[1], data.X.shape[1]):
                start = LinearSolution(*data.rows.own(last.T, self.intercept_))
        loss = Hinge() if self.loss == "hinge" else SquaredHinge()
        usual = 1.0 if self._is_lagrangian else np.inf
        scaling = usual if self.fit_intercept else 0.0
        problem = LinearFit(data.rows.X, target, data.weight, loss, scaling, fit.threads)
        tol, most = float(self.tol), int(self.max_iter)
        if self._is_lagrangian:
            within: dict[str, Any] = {"limits": fit.limits, "watchers": fit.watchers}
            return run(self.solver, problem, tol=tol, max_iter=most, **within)
        going: dict[str, Any] = {"start": start, "planes": self.solver}
        return linear(problem, LossOracle, tol=tol, max_iter=most, fit=fit, **going)

    def _concluded(self, data: Data, solved: Result, fit: Fit) -> Ending:
        coef, intercept = data.rows.given(solved.model.coef, solved.model.intercept)
        nothing = np.abs(coef).max(axis=0) * data.about["largest"] <= ZERO
        self.coef_ = np.ascontiguousarray(np.where(nothing, 0.0, coef).T)
        self.intercept_ = np.asarray(intercept if self.fit_intercept else np.zeros(coef.shape[1]))
        self.classes_, self.class_weight_, self.n_iter_ = data.classes, data.factors, solved.n_iter
        last_cut = isinstance(self.solver, CuttingPlane) and self.solver.stop == "violation"
        return self._ending([solved], fit, measure="cut" if last_cut else "gap")
