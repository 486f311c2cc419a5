"""SVCCV and SVRCV: the exact estimators that choose their own parameters."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.special import logsumexp, softmax
from sklearn.base import RegressorMixin, clone
from sklearn.model_selection import BaseCrossValidator, KFold, StratifiedKFold, check_cv
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import StrOptions

from slimsvm.declarations import Attribute, attribute, declared, of_new_rows, parameter
from slimsvm.estimators.classification import SVC
from slimsvm.estimators.parameters import ClassWeight
from slimsvm.estimators.regression import SVR
from slimsvm.multiclass import OneVsOne
from slimsvm.probability import coupled, of_pairs, sigmoid
from slimsvm.search.choosing import (
    EPSILONS,
    FEW,
    LEAST_C,
    ChoosesClassifier,
    ChoosesParameters,
    of_search,
)
from slimsvm.search.sharing import Sharing
from slimsvm.threads import n_threads

Array = NDArray[Any]
MOST_BETA = 12.0  # logarithm of the inverse temperature


@declared
class SVCCV(ChoosesClassifier):
    """Support vector classification that chooses C and gamma by itself, with probabilities.

    The kernel is exp(-gamma |x - z|^2). All fits of the search share their work
    (:class:`slimsvm.GridSearchCV`), the model is an :class:`slimsvm.SVC` on all rows, and
    ``predict_proba`` comes from the held-out scores of the best point. Features should be of
    similar size: scale them first.

    Parameters
    ----------
    calibration : {'sigmoid', 'temperature'}
        How probabilities follow from held-out scores: a sigmoid for each pair of classes, coupled;
        or one factor of all decision values, and the softmax of them.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from slimsvm import SVCCV
    >>> X, y = load_iris(return_X_y=True)
    >>> model = SVCCV().fit(X, y)
    >>> model.best_score_ > 0.95, int(model.predict_proba(X[:1]).argmax())
    (True, 0)
    """

    Cs: Any = of_search("Cs")
    gammas: Any = of_search("gammas")
    search: Literal["race", "grid"] = of_search("search")
    scoring: str | Callable[..., Any] | None = of_search("scoring")
    cv: int | BaseCrossValidator | Iterable[Any] | None = of_search("cv")
    class_weight: ClassWeight = of_search("class_weight")
    calibration: str = parameter("sigmoid", StrOptions({"sigmoid", "temperature"}))
    tol: float = of_search("tol")
    max_time: float | None = of_search("max_time")
    max_memory: float = of_search("max_memory")
    n_jobs: int | None = of_search("n_jobs")
    verbose: int = of_search("verbose")
    random_state: Any = of_search("random_state")

    def _estimator(self) -> SVC:
        given: Any = {"class_weight": self.class_weight, "tol": self.tol, "n_jobs": self.n_jobs}
        return SVC(**given, break_ties=True)  # the class with the largest decision value

    def _splitter(self, y: Array) -> Any:
        if self.cv is not None:
            return check_cv(self.cv, y, classifier=True)
        fewest = int(np.unique(y, return_counts=True)[1].min())
        return StratifiedKFold(max(2, min(5, fewest)))

    def _spread_evenly(self, y: Array, rng: Any) -> Array:
        """Rows in an order whose beginnings have the classes in their shares."""
        when = np.empty(y.size)
        for label in np.unique(y):
            own = rng.permutation(np.flatnonzero(y == label))
            when[own] = (np.arange(own.size) + 0.5) / own.size
        return np.argsort(when, kind="stable")

    def _after(self, X: Any, y: Array, used: Array, weight: Array | None) -> None:
        """Held-out decision values of the best point, and a sigmoid for each pair of classes."""
        scheme = OneVsOne(len(self.classes_))
        outputs = np.full((y.size, scheme.n_outputs), np.nan)
        rows = used[self._rows]
        point = self._estimator().set_params(**self.best_params_)
        weights = None if weight is None else weight[self._rows]
        for test, values, classes in self._held_out(point, X[rows], y[rows], weights):
            if classes.size == len(self.classes_):
                outputs[rows[test]] = values
        self._outputs = None
        known = np.isfinite(outputs[:, 0])
        shape = (y.size,) if len(self.classes_) == 2 else (y.size, len(self.classes_))
        self.oof_decision_function_ = np.full(shape, np.nan)
        if known.any():
            self.oof_decision_function_[known] = scheme.decision(outputs[known])
        label = np.searchsorted(self.classes_, y)
        counts = np.ones(y.size)
        if weight is not None:
            counts[:] = 0.0
            counts[used] = weight
        if self.calibration == "temperature":
            self._beta = inverse_temperature(
                scores_of_classes(self.oof_decision_function_[known]), label[known], counts[known]
            )
        self._sigmoids = np.array(
            [
                self._sigmoid(outputs[:, k], label, pair, known, counts)
                for k, pair in enumerate(scheme.pairs)
            ]
        )

    def _held_out(self, point: SVC, X: Any, y: Array, weight: Array | None) -> Any:
        """Rows, outputs and classes of each fold at the best point."""
        if y.size > FEW and self._outputs is not None:
            yield from self._outputs
            return
        if y.size > FEW:
            own = {} if weight is None else {"sample_weight": weight}
            work = Sharing(point, X, y, own, self.max_memory, n_threads(self.n_jobs))
            yield from work.outputs(self._splits)
            return
        for train, test in self._splits:  # few rows: to the last digits
            own = {} if weight is None else {"sample_weight": weight[train]}
            try:
                model = clone(point).fit(X[train], y[train], **own)
            except ValueError:  # of one class
                continue
            yield test, model._outputs(X[test]), model.classes_

    def _sigmoid(
        self, outputs: Array, label: Array, pair: tuple[int, int], known: Array, weight: Array
    ) -> tuple[float, float]:
        """A and B of a pair, for the first class and values that are positive for it."""
        first, second = min(pair), max(pair)
        rows = np.flatnonzero(known & ((label == first) | (label == second)))
        if np.unique(label[rows]).size < 2:
            return -1.0, 0.0
        sign = 1.0 if pair[0] == first else -1.0
        return sigmoid(sign * outputs[rows], label[rows] == first, weight[rows])

    @of_new_rows("array of shape (n_samples, n_classes)")
    def predict_proba(self, X: Any) -> Array:
        """Probabilities of the classes, in the order of ``classes_``.

        From the held-out scores of the best point: Platt's sigmoid for each pair of classes, pairs
        coupled, or one temperature (``calibration``). For more than two classes the predicted one
        is the most probable; for two the probability grows with the decision value.
        """
        X = self._new_rows(X)
        model = self.best_estimator_
        if self.calibration == "temperature":
            return np.asarray(
                softmax(self._beta * scores_of_classes(model.decision_function(X)), axis=1)
            )
        outputs = model._libsvm_sign * model._outputs(X)
        A, B = self._sigmoids.T
        found = coupled(of_pairs(outputs, A, B), len(self.classes_))
        if len(self.classes_) > 2:
            rows, chosen = np.arange(found.shape[0]), model._scheme().decision(outputs).argmax(1)
            most = found.argmax(axis=1)
            # seldom: the class that is predicted changes places with the most probable one
            found[rows, chosen], found[rows, most] = found[rows, most], found[rows, chosen]
        return found

    @of_new_rows("array of shape (n_samples, n_classes)")
    def predict_log_proba(self, X: Any) -> Array:
        """Logarithms of :meth:`predict_proba`."""
        return np.log(self.predict_proba(X))


@declared
class SVRCV(RegressorMixin, ChoosesParameters):
    """Support vector regression that chooses C, gamma and epsilon by itself.

    The kernel is exp(-gamma |x - z|^2). All fits of the search share their work
    (:class:`slimsvm.GridSearchCV`), and the model is an :class:`slimsvm.SVR` on all rows. Features
    should be of similar size: scale them first.

    Parameters
    ----------
    epsilons : array-like of float
        The same of epsilon; by default 0.03, 0.1 and 0.3 standard deviations of the targets.
    cv : int, splitter or iterable
        The folds; by default five of rows in random order.
    tol : float
        Largest violation of the KKT conditions, of every fit, in standard deviations of the
        targets.
    random_state : int, RandomState instance or None
        Of the folds, and of the rows that come first.

    Attributes
    ----------
    epsilon_
        The epsilon that was chosen.
    scores_
        Of all points, NaN where a point was out of the race before.

    Examples
    --------
    >>> import numpy as np
    >>> from slimsvm import SVRCV
    >>> X = np.linspace(0, 6, 100).reshape(-1, 1)
    >>> model = SVRCV().fit(X, np.sin(X[:, 0]))
    >>> model.best_score_ > 0.99
    True
    """

    fitted: ClassVar[tuple[Attribute, ...]] = (
        attribute("epsilon_", "number"),
        attribute("scores_", "float", ("n_folds", "n_gammas", "n_Cs", "n_epsilons")),
    )

    Cs: Any = of_search("Cs")
    gammas: Any = of_search("gammas")
    epsilons: Any = parameter(None, "array-like", None, positional=True)
    search: Literal["race", "grid"] = of_search("search")
    scoring: str | Callable[..., Any] | None = of_search("scoring")
    cv: int | BaseCrossValidator | Iterable[Any] | None = of_search("cv")
    tol: float = of_search("tol")
    max_time: float | None = of_search("max_time")
    max_memory: float = of_search("max_memory")
    n_jobs: int | None = of_search("n_jobs")
    verbose: int = of_search("verbose")
    random_state: Any = of_search("random_state")

    def _estimator(self) -> SVR:
        return SVR(tol=self.tol * self._unit, n_jobs=self.n_jobs)

    def _splitter(self, y: Array) -> Any:
        if self.cv is not None:
            return check_cv(self.cv, y)
        seed = check_random_state(self.random_state).randint(2**31 - 1)
        return KFold(max(2, min(5, y.size // 2)), shuffle=True, random_state=seed)

    @staticmethod
    def _spread(y: Array, weight: Array) -> float:
        mean = np.average(y, weights=weight)
        return float(np.sqrt(np.average((y - mean) ** 2, weights=weight))) or 1.0

    def _first_C(self, y: Array, weight: Array) -> float:
        self._unit = self._spread(y, weight)
        return LEAST_C * self._unit

    def _more_axes(self, y: Array, weight: Array) -> dict[str, Array]:
        if self.epsilons is None:
            return {"epsilon": np.array(EPSILONS) * self._spread(y, weight)}
        values = np.unique(np.asarray(self.epsilons, np.float64))
        if not (values.size and np.all(values >= 0) and np.all(np.isfinite(values))):
            raise ValueError(f"epsilons must be numbers from zero on; got {self.epsilons!r}.")
        return {"epsilon": values}

    def _after(self, X: Any, y: Array, used: Array, weight: Array | None) -> None:
        self.epsilon_ = float(self.best_params_["epsilon"])


def scores_of_classes(decision: Array) -> Array:
    """A column a class; of two, zero for the first."""
    if decision.ndim == 1:
        return np.column_stack([np.zeros(decision.size), decision])
    return decision


def inverse_temperature(scores: Array, label: Array, weight: Array) -> float:
    """The factor of the scores whose softmax is most likely.

    Examples
    --------
    >>> import numpy as np
    >>> from slimsvm.search.cv_estimators import inverse_temperature
    >>> scores = np.array([[0.0, 1.0], [0.0, 1.0], [0.0, 1.0], [0.0, 1.0]])
    >>> round(inverse_temperature(scores, np.array([1, 1, 1, 0]), np.ones(4)), 3)  # log 3
    1.099
    """
    own = scores[np.arange(label.size), label]

    def cost(log_beta: float) -> float:
        beta = np.exp(log_beta)
        return float(weight @ (logsumexp(beta * scores, axis=1) - beta * own))

    found = minimize_scalar(cost, bounds=(-MOST_BETA, MOST_BETA), method="bounded")
    return float(np.exp(found.x))
