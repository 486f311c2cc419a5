"""LinearSVC and LinearSVR: no kernel, for many rows and features.

:mod:`slimsvm.solvers.linear` chooses the way. Few rows end at near float64 precision. An l1 penalty
has a solver of its own (:mod:`slimsvm.solvers.linear_l1`), and classes that share one problem are
left to :class:`slimsvm.CrammerSingerSVC`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from numbers import Real
from typing import Any, ClassVar, Literal

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions

from slimsvm.declarations import Attribute, attribute, declared, parameter
from slimsvm.ending import REASONS, Ending
from slimsvm.estimators.fitting import Classifier, Estimator, Regressor
from slimsvm.estimators.parameters import NOT_NEGATIVE, ClassWeight, shared
from slimsvm.losses import EpsilonInsensitive, Hinge, Loss, SquaredEpsilonInsensitive, SquaredHinge
from slimsvm.models.linear import LinearWeights, SparsifiableWeights
from slimsvm.multiclass import OneVsRest
from slimsvm.problems.coordinates import Coordinates, coordinates
from slimsvm.run import Result
from slimsvm.solvers.linear_asked import (
    LAGRANGIAN,
    PLAIN_NEWTON,
    AskedOfLinear,
    of_squares,
    refuse_combination,
    refuse_large,
    refuse_solver,
)
from slimsvm.training import CUTTING_PLANE, Data, Fit, Unsupported, canonical

Array = NDArray[Any]
LARGEST_SEED = 2**31 - 1
JOINT_TOL = 1e-4  # of the joint problem of all classes: as near as the others
# scikit-learn's words, and what is so
AS_LIBLINEAR = {
    "max_iter": "Liblinear failed to converge, increase the number of iterations. "
    + REASONS["max_iter"]
}
INTERCEPT = ("boolean", StrOptions({"free"}))
DUAL = ("boolean", StrOptions({"auto"}))
SCALING = (Interval(Real, 0.0, None, closed="neither"),)


def _oracle(*given: Any) -> Any:
    """That of cutting planes, which few fits come to."""
    from slimsvm.oracles import LossOracle

    return LossOracle(*given)


class LinearEstimator(LinearWeights, Estimator):
    """What LinearSVC and LinearSVR share: the kinds of intercepts, and the solvers.

    Parameters
    ----------
    dual : bool or 'auto'
        Accepted for compatibility, and refused for the combinations that LIBLINEAR has no solver
        for. Which problem is solved depends on the data: see :mod:`slimsvm.solvers.linear`.
    C : float
        Weight of the errors: 1/2 |w|^2 + C sum_i weight_i loss(y_i, f(x_i)).
    fit_intercept : bool or 'free'
        Whether there is an intercept: True is LIBLINEAR's, the weight of a further feature that is
        always ``intercept_scaling``, with a penalty as any other; 'free' is one without a penalty,
        with which shifting the features changes nothing.
    intercept_scaling : float
        The value of that feature. The larger, the less is the intercept penalised.
    tol : float
        Relative duality gap at the end. Up to 1,000 rows are always solved to near float64
        precision.
    random_state : int, RandomState or None
        Of the order in which rows are visited; None: always the same one.
    max_iter : int
        Limit on Newton's steps, on passes over the rows, or on rounds of cutting planes; -1: none.
    warm_start : bool
        Begin with the weights of the last fit. If their number has changed, a warning says so.
    """

    _same_as: ClassVar[str] = "SVC"
    _as_libsvm: ClassVar[bool] = True  # LIBLINEAR, too, leaves out rows of negative weight
    solver: Any = None
    random_state: Any
    fit_intercept: Any
    intercept_scaling: float

    @property
    def _scaling(self) -> float:
        """Of the intercept: infinite, if it is free; zero, if there is none."""
        if isinstance(self.fit_intercept, str):
            return math.inf
        return float(self.intercept_scaling) if self.fit_intercept else 0.0

    def _sized(self, data: Data) -> Data:
        """The weights with C, where squares of the largest values still are numbers."""
        data.weight = float(self.C) * data.weight
        largest = max(float(data.X.max()), -float(data.X.min()))
        refuse_large(largest, float(data.weight.max()), float(self.C))
        data.about["largest"] = largest
        return data

    def _prepared(self, data: Data) -> None:
        data.rows = coordinates(data.X, data.weight, math.isinf(self._scaling))

    def _asked(self, data: Data, target: Array, fit: Fit) -> AskedOfLinear:
        start = self._last(target.shape[1], data.X.shape[1]) if self.warm_start else None
        seed = 0
        if self.random_state is not None:
            seed = int(check_random_state(self.random_state).randint(LARGEST_SEED))
        return AskedOfLinear(
            tol=float(self.tol),
            max_iter=int(self.max_iter),
            scaling=self._scaling,
            solver=self.solver,
            start=None if start is None else data.rows.own(*start),
            seed=seed,
            fit=fit,
            oracle=_oracle,
        )

    def _hold(self, data: Data, solved: Result) -> None:
        coef, intercept = data.rows.given(solved.model.coef, solved.model.intercept)
        self._hold_weights(coef, intercept, data.about["largest"], bool(self._scaling))
        self.n_iter_ = int(solved.n_iter)

    def _solved_on_rows(self, data: Data, fit: Fit) -> Result:
        from slimsvm.far.linear import solved_on_rows

        return solved_on_rows(self, data, fit)

    def _loss(self) -> Loss:
        """That the parameters name."""
        raise NotImplementedError

    def _refuse_on_rows(self, data: Data) -> None:
        """Raise ValueError for what needs all rows in memory."""

    def _ending(self, results: list[Result], fit: Fit, **about: Any) -> Ending:
        return super()._ending(results, fit, **{"begins": AS_LIBLINEAR, **about})

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


@declared
class LinearSVC(SparsifiableWeights, LinearEstimator, Classifier):
    """Linear support vector classification, in time that grows with the size of the data alone.

    A drop-in for :class:`sklearn.svm.LinearSVC`: the same problem, with LIBLINEAR's penalised
    intercept unless ``fit_intercept='free'`` asks for one without a penalty, as in :class:`SVC`
    with a linear kernel. Several classes: each against the rest, or all in one problem.

    Parameters
    ----------
    penalty : {'l2', 'l1'}
        1/2 |w|^2, or the sum of the sizes of the weights, many of which are then zero.
    loss : {'squared_hinge', 'hinge'}
        What an error costs: max(0, 1 - y f)^2 or max(0, 1 - y f).
    multi_class : {'ovr', 'crammer_singer'}
        Several classes: each against the rest, or one problem with a joint margin
        (:class:`CrammerSingerSVC`), for which penalty, loss and dual do not matter.
    class_weight : dict or 'balanced'
        Factors of C for each class: of more than two classes, for the rows of the one that is held
        against the rest, as in LIBLINEAR.
    solver : CuttingPlane, LinearLagrangian, PlainNewton or None
        A solver that is followed to the letter, also for few rows. For loss='hinge' cutting planes
        with settings of their own (:class:`slimsvm.solvers.cutting_plane.CuttingPlane`); with
        ``stop="violation"``, tol is the violation of the last cut. For loss='squared_hinge' LSVM
        (:class:`slimsvm.solvers.linear_lagrangian.LinearLagrangian`), whose intercept is penalised,
        or whole steps of Newton's method (:class:`slimsvm.solvers.plain_newton.PlainNewton`).

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

    penalty: Literal["l1", "l2"] = parameter("l2", StrOptions({"l1", "l2"}), positional=True)
    loss: Literal["hinge", "squared_hinge"] = parameter(
        "squared_hinge", StrOptions({"squared_hinge", "hinge"}), positional=True
    )
    dual: bool | Literal["auto"] = parameter("auto", *DUAL)
    tol: float = shared("tol", default=1e-4)
    C: float = shared("C")
    multi_class: Literal["ovr", "crammer_singer"] = parameter(
        "ovr", StrOptions({"ovr", "crammer_singer"})
    )
    fit_intercept: bool | Literal["free"] = parameter(True, *INTERCEPT)
    intercept_scaling: float = parameter(1, *SCALING)
    class_weight: ClassWeight = shared("class_weight")
    verbose: bool = shared("verbose")
    random_state: Any = shared("random_state")
    max_iter: int = shared("max_iter", default=1000)
    max_time: float | None = shared("max_time")
    warm_start: bool = shared("warm_start")
    solver: Any = parameter(None, CUTTING_PLANE, LAGRANGIAN, PLAIN_NEWTON, None)
    n_jobs: int | None = shared("n_jobs")

    scheme: ClassVar[Any] = OneVsRest

    def _encoded(self, X: Any, y: Any, weight: Array) -> Data:
        refuse_combination(self.multi_class, self.penalty, self.loss, self.dual, X.shape)
        refuse_solver(self, math.isinf(self._scaling))
        return self._sized(super()._encoded(canonical(X), y, weight))

    def _prepared(self, data: Data) -> None:
        if self.penalty == "l1" or self.multi_class == "crammer_singer":
            data.rows = Coordinates(data.X)  # it matters which features they are
        else:
            super()._prepared(data)

    def _solved(self, data: Data, fit: Fit) -> Result:
        if self.multi_class == "crammer_singer":
            return self._joint(data)
        target, weight = OneVsRest(data.classes.size).columns(data.target), data.weight
        if data.classes.size > 2 and not (data.factors == 1.0).all():
            own = float(self.C) * data.sample_weight[:, None]
            weight = own * np.where(target > 0.0, data.factors, 1.0)
        from slimsvm.problems.linear import LEAST_WEIGHT

        weight = np.maximum(weight, LEAST_WEIGHT * float(weight.max()))
        if self.penalty == "l1":
            return self._asked(data, target, fit).solved_sparse(data.X, target, weight)
        return self._asked(data, target, fit).solved(data.rows.X, target, weight, self._loss())

    def _loss(self) -> Loss:
        return Hinge() if self.loss == "hinge" else SquaredHinge()

    def _refuse_on_rows(self, data: Data) -> None:
        refuse_combination(self.multi_class, self.penalty, self.loss, self.dual, data.X.shape)
        refuse_solver(self, math.isinf(self._scaling))
        if self.penalty == "l1" or self.multi_class == "crammer_singer" or of_squares(self.solver):
            raise Unsupported(
                "penalty='l1', multi_class='crammer_singer', LinearLagrangian and PlainNewton need "
                "all rows in memory; for joint classes use CrammerSingerSVC(kernel='linear')."
            )

    def _joint(self, data: Data) -> Result:
        """All classes in one problem; a penalised intercept is the weight of one more feature."""
        from slimsvm.estimators.structural_fronts import CrammerSingerSVC

        X, scaling = data.X, self._scaling
        if 0.0 < scaling < math.inf:
            constant = np.full((X.shape[0], 1), scaling, X.dtype)
            X = sp.hstack([X, constant], "csr") if sp.issparse(X) else np.hstack([X, constant])
        model = CrammerSingerSVC(
            C=float(self.C),
            kernel="linear",
            fit_intercept=math.isinf(scaling),
            tol=min(float(self.tol), JOINT_TOL),
            max_iter=int(self.max_iter),
            max_time=self.max_time,
            n_jobs=self.n_jobs,
        ).fit(X, data.classes[data.target], data.weight / float(self.C))
        coef, b = model.coef_.T, np.broadcast_to(model.intercept_, data.classes.size).copy()
        if 0.0 < scaling < math.inf:
            coef, b = coef[:-1], scaling * coef[-1]
        if data.classes.size == 2:
            coef, b = coef[:, 1:] - coef[:, :1], b[1:] - b[:1]
        about = model.certificate_, model.status_, model.history_, int(np.max(model.n_iter_))
        from slimsvm.problems.linear import LinearSolution

        return Result(LinearSolution(coef, b), *about)

    def _concluded(self, data: Data, solved: Result, fit: Fit) -> Ending:
        self._hold(data, solved)
        self.classes_, self.class_weight_ = data.classes, data.factors
        last_cut = CUTTING_PLANE.is_satisfied_by(self.solver) and self.solver.stop == "violation"
        measure = "cut" if last_cut or self.multi_class == "crammer_singer" else "gap"
        return self._ending([solved], fit, measure=measure)


@declared
class LinearSVR(LinearEstimator, Regressor):
    """Linear support vector regression: errors below epsilon cost nothing.

    A drop-in for :class:`sklearn.svm.LinearSVR`: the same problem, with LIBLINEAR's penalised
    intercept unless ``fit_intercept='free'`` asks for one without a penalty.

    Parameters
    ----------
    epsilon : float
        Half the width of the tube.
    loss : {'epsilon_insensitive', 'squared_epsilon_insensitive'}
        What an error costs: max(0, |y - f| - epsilon), or the square of that.

    Attributes
    ----------
    coef_
        Weights of the features.

    See Also
    --------
    SVR : With kernels.

    References
    ----------
    .. [1] C.-H. Ho, C.-J. Lin, "Large-scale linear support vector regression", 2012.

    Examples
    --------
    >>> import numpy as np
    >>> from slimsvm import LinearSVR
    >>> X = np.linspace(0, 6, 50).reshape(-1, 1)
    >>> model = LinearSVR(C=10.0).fit(X, 2 * X[:, 0] - 1)
    >>> model.coef_.round(2).tolist(), model.intercept_.round(2).tolist()
    ([2.0], [-1.0])
    """

    epsilon: float = parameter(0.0, NOT_NEGATIVE)
    tol: float = shared("tol", default=1e-4)
    C: float = shared("C")
    loss: Literal["epsilon_insensitive", "squared_epsilon_insensitive"] = parameter(
        "epsilon_insensitive", StrOptions({"epsilon_insensitive", "squared_epsilon_insensitive"})
    )
    fit_intercept: bool | Literal["free"] = parameter(True, *INTERCEPT)
    intercept_scaling: float = parameter(1.0, *SCALING)
    dual: bool | Literal["auto"] = parameter("auto", *DUAL)
    verbose: bool = shared("verbose")
    random_state: Any = shared("random_state")
    max_iter: int = shared("max_iter", default=1000)
    max_time: float | None = shared("max_time")
    warm_start: bool = shared("warm_start")
    n_jobs: int | None = shared("n_jobs")

    fitted: ClassVar[tuple[Attribute, ...]] = (attribute("coef_", "float", ("n_features",)),)
    _same_as: ClassVar[str] = "SVR"

    def _encoded(self, X: Any, y: Any, weight: Array) -> Data:
        refuse_combination("ovr", "l2", self.loss, self.dual, X.shape)
        return self._sized(super()._encoded(canonical(X), y, weight))

    def _solved(self, data: Data, fit: Fit) -> Result:
        target = data.target[:, None]
        asked = self._asked(data, target, fit)
        return asked.solved(data.rows.X, target, data.weight, self._loss())

    def _loss(self) -> Loss:
        squared = self.loss == "squared_epsilon_insensitive"
        kind: Callable[[float], Loss] = SquaredEpsilonInsensitive if squared else EpsilonInsensitive
        return kind(float(self.epsilon))

    def _refuse_on_rows(self, data: Data) -> None:
        refuse_combination("ovr", "l2", self.loss, self.dual, data.X.shape)

    def _concluded(self, data: Data, solved: Result, fit: Fit) -> Ending:
        self._hold(data, solved)
        self.coef_ = self.coef_[0]
        return self._ending([solved], fit, measure="gap")
