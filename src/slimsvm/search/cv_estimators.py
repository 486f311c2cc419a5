"""SVCCV and SVRCV: estimators that choose their own parameters by cross-validation.

The grid comes from the data: gamma around the inverse of the median squared distance between rows,
C in steps of four. The race is a first pass over the whole grid on a quarter of the rows; a quarter
of the points goes on to all rows. Where the best point of a pass is at an edge of the grid, the
grid grows there.
"""

from __future__ import annotations

import warnings
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, clone
from sklearn.model_selection import KFold, ParameterGrid, StratifiedKFold, check_cv
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, RealNotInt, StrOptions
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from slimsvm.ending import warn
from slimsvm.estimators.classification import SVC
from slimsvm.estimators.regression import SVR
from slimsvm.kernels import squared_norms
from slimsvm.multiclass import OneVsOne, encoded
from slimsvm.probability import coupled, of_pairs, sigmoid
from slimsvm.run import Limits
from slimsvm.search.searches import GridSearchCV
from slimsvm.search.shared import Shared
from slimsvm.search.sharing import Sharing
from slimsvm.search.stand_in import Interrupted
from slimsvm.threads import n_threads
from slimsvm.training import refuse_broken

Array = NDArray[Any]
STEP = 4.0  # between neighbours of the grid
BELOW, ABOVE = 3, 3  # gammas on either side of the inverse median distance
LEAST_C, N_CS = 0.25, 7  # up to 1,024
EPSILONS = (0.03, 0.1, 0.3)  # of regression, in standard deviations of the targets
GROWN = 2  # times that the grid may grow
FEW = 1000  # rows up to which there is no race
MOST = 10_000  # rows of the last pass of a race
KEPT = 0.25  # of the rows of the first pass, and of its points
SEEN = 500  # rows whose distances are looked at
SCALES = 1000.0  # standard deviations of features that differ by so much are worth a warning
DIGITS = 6  # of scores that count
SHARE = 0.7  # of max_time: for the search; the rest is for the last fit
POSITIVES = ["array-like", None]


def typical_gamma(X: Any, random_state: Any) -> float:
    """The inverse of the median squared distance between rows that are not the same."""
    rng = check_random_state(random_state)
    rows = X if X.shape[0] <= SEEN else X[np.sort(rng.choice(X.shape[0], SEEN, replace=False))]
    dense = np.asarray(rows.toarray() if sp.issparse(rows) else rows, np.float64)
    dense = np.unique(dense, axis=0)  # a row of weight two is a row twice
    dense = dense - dense.mean(axis=0)
    sq = squared_norms(dense)
    distance = (sq[:, None] + sq[None, :] - 2.0 * dense @ dense.T)[np.triu_indices(sq.size, 1)]
    distance = distance[distance > 1e-12 * max(float(sq.max(initial=0.0)), 1e-300)]
    return 1.0 / float(np.median(distance)) if distance.size else 1.0


def warn_of_scales(X: Any) -> None:
    """One warning where features are of very different size: distances are those of the largest."""
    if sp.issparse(X):
        mean = np.asarray(X.mean(axis=0)).ravel()
        spread = np.sqrt(np.maximum(np.asarray(X.multiply(X).mean(axis=0)).ravel() - mean**2, 0.0))
    else:
        spread = np.asarray(X.std(axis=0, dtype=np.float64))
    spread = spread[spread > 0]
    if spread.size > 1 and spread.max() > SCALES * spread.min():
        warn(
            f"Features differ in size by {spread.max() / spread.min():.3g} times: distances are "
            "those of the largest ones alone. Scale them first, for example with StandardScaler.",
            UserWarning,
        )


class ChoosesParameters(BaseEstimator):
    """What SVCCV and SVRCV have in common."""

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "Cs": POSITIVES,
        "gammas": POSITIVES,
        "search": [StrOptions({"race", "grid"})],
        "scoring": [str, callable, None],
        "cv": ["cv_object"],
        "tol": [Interval(RealNotInt, 0.0, None, closed="neither")],
        "max_time": [Interval(RealNotInt, 0.0, None, closed="neither"), int, None],
        "max_memory": [Interval(RealNotInt, 0.0, None, closed="left"), int],
        "n_jobs": [int, None],
        "random_state": ["random_state"],
    }
    best_estimator_: Any
    best_params_: dict[str, Any]
    n_features_in_: int

    # -- what differs ------------------------------------------------------------------------------

    def _estimator(self) -> Any:
        raise NotImplementedError

    def _splitter(self, y: Array) -> Any:
        raise NotImplementedError

    def _more_axes(self, y: Array, weight: Array) -> dict[str, Array]:
        """Axes of the grid beside C and gamma."""
        return {}

    def _first_C(self, y: Array, weight: Array) -> float:
        return LEAST_C

    # -- fit ---------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Choose the parameters, and train on all rows with them.

        Parameters
        ----------
        X : array, CSR matrix or DataFrame of shape (n_samples, n_features)
            Training rows.
        y : array of shape (n_samples,)
            Labels or targets.
        sample_weight : array of shape (n_samples,), optional
            Scales C for each row, and counts in the score.

        Returns
        -------
        self
        """
        self._validate_params()
        numeric = isinstance(self, RegressorMixin)
        X, y = validate_data(
            self,
            X,
            y,
            dtype=[np.float64, np.float32],
            accept_sparse="csr",
            accept_large_sparse=True,
            y_numeric=numeric,
        )
        refuse_broken(X)
        weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        if not numeric:
            self.classes_ = encoded(y, weight)[0]
        # folds that are given are about all rows
        self._fixed = self.cv is not None and not (
            isinstance(self.cv, int) or hasattr(self.cv, "split")
        )
        used = np.arange(y.size) if self._fixed else np.flatnonzero(weight > 0)
        weights = None if sample_weight is None else weight[used]
        limits = Limits(None if self.max_time is None else SHARE * float(self.max_time))
        warn_of_scales(X)
        self._chosen(X[used], y[used], weights, limits)
        remaining = None if self.max_time is None else max(0.1, self.max_time - limits.seconds)
        final = self._estimator().set_params(**self.best_params_, max_time=remaining)
        final.fit(X, y, **({} if sample_weight is None else {"sample_weight": weight}))
        final.set_params(max_time=None)
        self.best_estimator_ = final
        self.C_, self.gamma_ = float(self.best_params_["C"]), float(self.best_params_["gamma"])
        self.n_fits_ += 1
        if limits.reason() == "interrupted":
            warn("The search was interrupted: the best point so far was chosen.", UserWarning)
        self._after(X, y, used, weights)
        return self

    def _after(self, X: Any, y: Array, used: Array, weight: Array | None) -> None:
        """What else is known after the search."""

    def _chosen(self, X: Any, y: Array, weight: Array | None, limits: Limits) -> None:
        """The search: the best point, its scores, and what was done."""
        n, ones = X.shape[0], np.ones(y.size)
        first = self._first_C(y, ones if weight is None else weight)
        middle = typical_gamma(
            X if weight is None else X[np.flatnonzero(weight > 0)], self.random_state
        )
        axes = {
            "gamma": self._axis("gammas", middle * STEP ** np.arange(-BELOW, ABOVE + 1.0)),
            "C": self._axis("Cs", first * STEP ** np.arange(0.0, N_CS)),
            **self._more_axes(y, ones if weight is None else weight),
        }
        rng = check_random_state(self.random_state)
        order = self._spread_evenly(y, rng)  # of which any beginning is a fair sample
        most = int(np.sqrt(self.max_memory * 1e6 / 4.0))
        race = self.search == "race" and not self._fixed
        rows = np.sort(order[: n if self._fixed else min(n, most, MOST if race else n)])
        self._rows, self._splits, self.n_fits_, self._seconds = rows, [], 0, 0.0
        points: list[dict[str, Any]] | None = None
        best: Any = None
        try:
            if race and rows.size > FEW:
                few = np.sort(order[: max(FEW // 2, int(KEPT * rows.size))])
                best, axes = self._grown(X, y, weight, few, axes, limits)
                points = self._kept(best)
                best = self._searched(X, y, weight, rows, points, limits)
            else:
                best, axes = self._grown(X, y, weight, rows, axes, limits)
        except Interrupted:
            if best is None:  # no point was finished: the middle of the grid
                warn("max_time was over before a point was evaluated.", UserWarning)
                self.best_params_ = {
                    name: values[values.size // 2] for name, values in axes.items()
                }
                self.best_score_, self.cv_results_ = np.nan, {}
                self.scores_ = np.full((0, *(values.size for values in axes.values())), np.nan)
                self.shared_ = Shared(0, 0, reason="max_time was over")
                return
        self._splits = best._splits_
        self._rows = rows if best._n_rows == rows.size else few
        self.best_params_ = {name: float(value) for name, value in best.best_params_.items()}
        self.best_score_, self.cv_results_ = float(best.best_score_), best.cv_results_
        self.shared_, self.gammas_, self.Cs_ = best.shared_, axes["gamma"], axes["C"]
        self.scores_ = _in_axes(best, axes)

    def _axis(self, name: str, usual: Array) -> Array:
        given = getattr(self, name)
        if given is None:
            return usual
        values = np.unique(np.asarray(given, np.float64))
        if not (values.size and np.all(values > 0) and np.all(np.isfinite(values))):
            raise ValueError(f"{name} must be positive numbers; got {given!r}.")
        return values

    def _spread_evenly(self, y: Array, rng: Any) -> Array:
        return np.asarray(rng.permutation(y.size))

    def _grown(
        self, X: Any, y: Array, weight: Array | None, rows: Array, axes: Any, limits: Limits
    ) -> tuple[Any, Any]:
        """The search of a grid that grows where its best point is at an edge."""
        best = self._searched(X, y, weight, rows, _points(axes), limits)
        for _ in range(GROWN):
            longer = dict(axes)
            for name, given in (("gamma", self.gammas), ("C", self.Cs)):
                values, at = axes[name], best.best_params_[name]
                if given is None and at == values[0]:
                    longer[name] = np.r_[values[0] / STEP**2, values[0] / STEP, values]
                elif given is None and at == values[-1]:
                    longer[name] = np.r_[values, values[-1] * STEP, values[-1] * STEP**2]
            known = {tuple(p[k] for k in sorted(p)) for p in best.cv_results_["params"]}
            new = [p for p in _points(longer) if tuple(p[k] for k in sorted(p)) not in known]
            if not new or limits.reason():
                break
            try:
                best = _joined(best, self._searched(X, y, weight, rows, new, limits))
            except Interrupted:
                break
            axes = longer
        return best, axes

    def _searched(
        self,
        X: Any,
        y: Array,
        weight: Array | None,
        rows: Array,
        points: list[dict[str, Any]],
        limits: Limits,
    ) -> Any:
        """Scores of some points on some rows."""
        if limits.reason():
            raise Interrupted(str(limits.reason()))
        whole = rows.size == X.shape[0]
        X, y = (X, y) if whole else (X[rows], y[rows])
        given = {} if weight is None else {"sample_weight": weight[rows]}
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="The least populated class")
            splits = list(self._splitter(y).split(X, y))
        search = GridSearchCV(
            self._estimator(),
            [{name: [value] for name, value in point.items()} for point in points],
            scoring=self.scoring,
            cv=splits,
            refit=False,
            n_jobs=self.n_jobs,
            max_memory=self.max_memory,
            error_score=np.nan,
        )
        search._limits, search._only_shared = limits, True  # points that take long are left out
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="One or more of the test scores are non")
            warnings.filterwarnings("ignore", message="(?s).*fits failed out of a total")
            if limits.max_time is not None:
                warnings.filterwarnings("ignore", message="Max_time was over")
            search.fit(X, y, **given)
        if not np.isfinite(search.cv_results_["mean_test_score"]).any():
            raise ValueError(
                f"No point of the search has a score that is a number (scoring={self.scoring!r}, "
                f"{len(splits)} folds). Try another score, or other folds."
            )
        search._splits_, search._n_rows = splits, rows.size
        _choose(search)
        self.n_fits_ += len(points) * len(splits)
        return search

    def _kept(self, search: Any) -> list[dict[str, Any]]:
        """The best quarter of the points."""
        mean = search.cv_results_["mean_test_score"]
        order = np.argsort(np.where(np.isfinite(mean), -mean, np.inf), kind="stable")
        kept = order[: max(1, int(np.ceil(KEPT * order.size)))]
        return [search.cv_results_["params"][k] for k in np.sort(kept)]

    # -- predictions -------------------------------------------------------------------------------

    def predict(self, X: Any) -> Array:
        """Labels or targets of new rows.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)
            New rows.

        Returns
        -------
        array of shape (n_samples,)
        """
        X = self._new_rows(X)
        return np.asarray(self.best_estimator_.predict(X))

    def _new_rows(self, X: Any) -> Any:
        check_is_fitted(self)
        kinds = [np.float64, np.float32]
        return validate_data(self, X, reset=False, dtype=kinds, accept_sparse="csr")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def _points(axes: dict[str, Array]) -> list[dict[str, Any]]:
    return list(ParameterGrid({name: list(values) for name, values in axes.items()}))


def _joined(first: Any, second: Any) -> Any:
    """The results of two searches with the same folds as those of one."""
    more = second.cv_results_
    for name, values in first.cv_results_.items():
        joined = (
            list(values) + list(more[name])
            if name == "params"
            else np.ma.concatenate([values, more[name]])
        )
        second.cv_results_[name] = (
            joined
            if name == "params"
            else (joined if np.ma.isMaskedArray(values) else np.asarray(joined))
        )
    mean = second.cv_results_["mean_test_score"]
    rank = 1 + np.sum(mean[None, :] > mean[:, None], axis=1)
    second.cv_results_["rank_test_score"] = rank.astype(np.int32)
    _choose(second)
    a, b = first.shared_, second.shared_
    second.shared_ = Shared(
        a.n_fits + b.n_fits,
        a.n_shared + b.n_shared,
        a.n_kernels + b.n_kernels,
        a.seconds + b.seconds,
        a.reason or b.reason,
    )
    return second


def _choose(search: Any) -> None:
    """The best point; of those that differ in digits without meaning, that with the smallest C."""
    mean = np.round(search.cv_results_["mean_test_score"], DIGITS)
    points = search.cv_results_["params"]
    best = np.flatnonzero(mean == np.nanmax(mean))
    search.best_index_ = int(min(best, key=lambda k: sorted(points[k].items())))
    search.best_score_ = search.cv_results_["mean_test_score"][search.best_index_]
    search.best_params_ = points[search.best_index_]


def _in_axes(search: Any, axes: dict[str, Array]) -> Array:
    """Scores by folds and the axes of the grid; NaN: not evaluated on all rows."""
    results = search.cv_results_
    n_folds = len(search._splits_)
    scores = np.full((n_folds, *(values.size for values in axes.values())), np.nan)
    for k, point in enumerate(results["params"]):
        at = tuple(int(np.searchsorted(values, point[name])) for name, values in axes.items())
        for fold in range(n_folds):
            scores[(fold, *at)] = results[f"split{fold}_test_score"][k]
    return scores


class SVCCV(ClassifierMixin, ChoosesParameters):
    """Support vector classification that chooses C and gamma by itself, with probabilities.

    The kernel is exp(-gamma |x - z|^2). All fits of the search share their work
    (:class:`slimsvm.GridSearchCV`), the model is an :class:`slimsvm.SVC` on all rows, and
    ``predict_proba`` comes from the held-out scores of the best point. Features should be of
    similar size: scale them first.

    Parameters
    ----------
    Cs, gammas : array-like of float, optional
        The points of the grid; by default seven each from the data, more where the best one is at
        an edge.
    search : {'race', 'grid'}
        'race': all points on a quarter of the rows, and the best quarter of them on all rows (at
        most 10,000). 'grid': all points on all rows.
    scoring : str or callable, optional
        What is to be large, as in scikit-learn; by default accuracy.
    cv : int, splitter or iterable, optional
        The folds; by default five, stratified, or fewer where a class has fewer rows.
    class_weight : dict or 'balanced'
        Factors of C for each class.
    tol : float
        Largest violation of the KKT conditions, of every fit.
    max_time : float, optional
        Limit in seconds. The best point so far is taken.
    max_memory : float
        Megabytes for kernel values. A search of more rows than there is room for (22,000 with
        2,000 MB) takes a random sample of them; the last fit has all rows.
    n_jobs : int, optional
        Number of threads; -1: all.
    random_state : int, RandomState instance or None
        Of the rows that come first.

    Attributes
    ----------
    C_, gamma_ : float
        The parameters that were chosen.
    best_estimator_ : SVC
        The model on all rows.
    best_params_, best_score_ : dict, float
        The best point, and its mean score on held-out rows.
    scores_ : array of shape (n_folds, n_gammas, n_Cs)
        Of all points, NaN where a point was out of the race before; the axes are ``gammas_`` and
        ``Cs_``.
    cv_results_ : dict
        As in scikit-learn, of the points on all rows.
    oof_decision_function_ : array of shape (n_samples,) or (n_samples, n_classes)
        Decision values of each row by a model without its fold; NaN for rows without one.
    n_fits_ : int
        Fits of the search, and the last one.
    shared_
        What they shared.
    classes_, n_features_in_, feature_names_in_
        As usual.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from slimsvm import SVCCV
    >>> X, y = load_iris(return_X_y=True)
    >>> model = SVCCV().fit(X, y)
    >>> model.best_score_ > 0.95, int(model.predict_proba(X[:1]).argmax())
    (True, 0)
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **ChoosesParameters._parameter_constraints,
        "class_weight": [dict, StrOptions({"balanced"}), None],
    }

    def __init__(
        self,
        Cs: Any = None,
        gammas: Any = None,
        *,
        search: str = "race",
        scoring: Any = None,
        cv: Any = None,
        class_weight: Any = None,
        tol: float = 1e-3,
        max_time: float | None = None,
        max_memory: float = 2000.0,
        n_jobs: int | None = None,
        random_state: Any = 0,
    ) -> None:
        self.Cs = Cs
        self.gammas = gammas
        self.search = search
        self.scoring = scoring
        self.cv = cv
        self.class_weight = class_weight
        self.tol = tol
        self.max_time = max_time
        self.max_memory = max_memory
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _estimator(self) -> SVC:
        given = {"class_weight": self.class_weight, "tol": self.tol, "n_jobs": self.n_jobs}
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
        self._sigmoids = np.array(
            [
                self._sigmoid(outputs[:, k], label, pair, known, counts)
                for k, pair in enumerate(scheme.pairs)
            ]
        )

    def _held_out(self, point: SVC, X: Any, y: Array, weight: Array | None) -> Any:
        """Rows, outputs and classes of each fold at the best point."""
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

    def decision_function(self, X: Any) -> Array:
        """Decision values of new rows.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)
            New rows.

        Returns
        -------
        array of shape (n_samples,) for two classes, else (n_samples, n_classes)
        """
        X = self._new_rows(X)
        return np.asarray(self.best_estimator_.decision_function(X))

    def predict_proba(self, X: Any) -> Array:
        """Probabilities of the classes, in the order of ``classes_``.

        Platt's sigmoid for each pair of classes, fitted to the held-out scores of the best point;
        pairs are coupled. For more than two classes the predicted one is the most probable; for two
        the probability grows with the decision value, and is 1/2 where the sigmoid says.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)
            New rows.

        Returns
        -------
        array of shape (n_samples, n_classes)
        """
        X = self._new_rows(X)
        model = self.best_estimator_
        outputs = model._libsvm_sign * model._outputs(X)
        A, B = self._sigmoids.T
        found = coupled(of_pairs(outputs, A, B), len(self.classes_))
        if len(self.classes_) > 2:
            rows, chosen = np.arange(found.shape[0]), model._scheme().decision(outputs).argmax(1)
            most = found.argmax(axis=1)
            # seldom: the class that is predicted changes places with the most probable one
            found[rows, chosen], found[rows, most] = found[rows, most], found[rows, chosen]
        return found

    def predict_log_proba(self, X: Any) -> Array:
        """Logarithms of :meth:`predict_proba`.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)
            New rows.

        Returns
        -------
        array of shape (n_samples, n_classes)
        """
        return np.log(self.predict_proba(X))


class SVRCV(RegressorMixin, ChoosesParameters):
    """Support vector regression that chooses C, gamma and epsilon by itself.

    The kernel is exp(-gamma |x - z|^2). All fits of the search share their work
    (:class:`slimsvm.GridSearchCV`), and the model is an :class:`slimsvm.SVR` on all rows. Features
    should be of similar size: scale them first.

    Parameters
    ----------
    Cs, gammas, epsilons : array-like of float, optional
        The points of the grid. By default seven C and gamma each from the data, more where the best
        one is at an edge; and epsilon of 0.03, 0.1 and 0.3 standard deviations of the targets.
    search : {'race', 'grid'}
        'race': all points on a quarter of the rows, and the best quarter of them on all rows (at
        most 10,000). 'grid': all points on all rows.
    scoring : str or callable, optional
        What is to be large, as in scikit-learn; by default R^2.
    cv : int, splitter or iterable, optional
        The folds; by default five of rows in random order.
    tol : float
        Largest violation of the KKT conditions, of every fit, in standard deviations of the
        targets.
    max_time : float, optional
        Limit in seconds. The best point so far is taken.
    max_memory : float
        Megabytes for kernel values. A search of more rows than there is room for (22,000 with
        2,000 MB) takes a random sample of them; the last fit has all rows.
    n_jobs : int, optional
        Number of threads; -1: all.
    random_state : int, RandomState instance or None
        Of the folds, and of the rows that come first.

    Attributes
    ----------
    C_, gamma_, epsilon_ : float
        The parameters that were chosen.
    best_estimator_ : SVR
        The model on all rows.
    best_params_, best_score_ : dict, float
        The best point, and its mean score on held-out rows.
    scores_ : array of shape (n_folds, n_gammas, n_Cs, n_epsilons)
        Of all points, NaN where a point was out of the race before.
    cv_results_ : dict
        As in scikit-learn, of the points on all rows.
    n_fits_ : int
        Fits of the search, and the last one.
    shared_
        What they shared.
    n_features_in_, feature_names_in_
        As usual.

    Examples
    --------
    >>> import numpy as np
    >>> from slimsvm import SVRCV
    >>> X = np.linspace(0, 6, 100).reshape(-1, 1)
    >>> model = SVRCV().fit(X, np.sin(X[:, 0]))
    >>> model.best_score_ > 0.99
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **ChoosesParameters._parameter_constraints,
        "epsilons": ["array-like", None],
    }

    def __init__(
        self,
        Cs: Any = None,
        gammas: Any = None,
        epsilons: Any = None,
        *,
        search: str = "race",
        scoring: Any = None,
        cv: Any = None,
        tol: float = 1e-3,
        max_time: float | None = None,
        max_memory: float = 2000.0,
        n_jobs: int | None = None,
        random_state: Any = 0,
    ) -> None:
        self.Cs = Cs
        self.gammas = gammas
        self.epsilons = epsilons
        self.search = search
        self.scoring = scoring
        self.cv = cv
        self.tol = tol
        self.max_time = max_time
        self.max_memory = max_memory
        self.n_jobs = n_jobs
        self.random_state = random_state

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
