"""What estimators share that choose their own parameters by cross-validation.

The grid comes from the data: gamma around the inverse of the median squared distance between rows,
C in steps of four. The race is a first pass over the whole grid on a quarter of the rows; a quarter
of the points goes on to all rows. Where the best point of a pass is at an edge of the grid, the
grid grows there.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, Self

import joblib
import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.callback import CallbackSupportMixin
from sklearn.model_selection import ParameterGrid
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, RealNotInt, StrOptions
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from slimsvm.declarations import Attribute, attribute, of_new_rows, parameter
from slimsvm.ending import warn
from slimsvm.estimators.fitting import Estimator
from slimsvm.kernels import squared_norms
from slimsvm.multiclass import OneVsOne, encoded
from slimsvm.progress import Progress
from slimsvm.run import Limits
from slimsvm.search.course import Course, Inside
from slimsvm.search.searches import GridSearchCV
from slimsvm.search.shared import NotShared, Shared
from slimsvm.search.stand_in import Book, Interrupted
from slimsvm.training import AS_ROWS, refuse_broken, refuse_rows

Array = NDArray[Any]
STEP = 4.0  # between neighbours of the grid
BELOW, ABOVE = 3, 3  # gammas on either side of the inverse median distance
LEAST_C, N_CS = 0.25, 7  # up to 1,024
EPSILONS = (0.03, 0.1, 0.3)  # of regression, in standard deviations of the targets
GROWN = 2  # times that the grid may grow
FEW = 1000  # rows up to which there is no race
MOST = 10_000  # rows of the last pass of a race
KEPT = 0.25  # of the rows of the first pass, and of its points
LEAST_KEPT, CLEARLY = 4, 2.5  # points that go on in any case; standard errors
SEEN = 500  # rows whose distances are looked at
SCALES = 1000.0  # standard deviations of features that differ by so much are worth a warning
DIGITS = 6  # of scores that count
SHARE = 0.7  # of max_time: for the search; the rest is for the last fit
OUTPUTS = 0.1  # of max_memory: for held-out outputs of all points of a pass
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


SEARCH: dict[str, tuple[Any, ...]] = {  # defaults, and values that are accepted
    "Cs": (None, *POSITIVES),
    "gammas": (None, *POSITIVES),
    "search": ("race", StrOptions({"race", "grid"})),
    "scoring": (None, str, callable, None),
    "cv": (None, "cv_object"),
    "class_weight": (None, dict, StrOptions({"balanced"}), None),
    "tol": (1e-3, Interval(RealNotInt, 0.0, None, closed="neither")),
    "max_time": (None, Interval(RealNotInt, 0.0, None, closed="neither"), int, None),
    "max_memory": (2000.0, Interval(RealNotInt, 0.0, None, closed="left"), int),
    "n_jobs": (None, int, None),
    "verbose": (0, "verbose"),
    "random_state": (0, "random_state"),
}


def of_search(name: str) -> Any:
    """A parameter that all of them have."""
    return parameter(*SEARCH[name], positional=name in ("Cs", "gammas"))


class ChoosesParameters(CallbackSupportMixin, BaseEstimator):
    """What SVCCV, SVRCV and SparseSVCCV have in common.

    Parameters
    ----------
    Cs : array-like of float
        Points of the grid; by default seven from the data, more where the best one is at an edge.
    gammas : array-like of float
        The same of gamma.
    search : {'race', 'grid'}
        'race': all points on a quarter of the rows, and the best quarter of them on all rows (at
        most 10,000). 'grid': all points on all rows.
    scoring : str or callable
        What is to be large, as in scikit-learn; by default accuracy, or R^2 for numbers.
    cv : int, splitter or iterable
        The folds; by default five, stratified, or fewer where a class has fewer rows.
    class_weight : dict or 'balanced'
        Factors of C for each class.
    tol : float
        Largest violation of the KKT conditions, of every fit.
    max_time : float
        Limit in seconds. The best point so far is taken.
    max_memory : float
        Megabytes for kernel values. A search of more rows than there is room for (22,000 with
        2,000 MB) takes a random sample of them; the last fit has all rows.
    n_jobs : int
        Number of threads; -1: all.
    verbose : int
        Whether a line every second says how much of the search is done, and the time left.
    random_state : int, RandomState instance or None
        Of the rows that come first.

    Attributes
    ----------
    C_
        The C that was chosen.
    gamma_
        The gamma that was chosen.
    best_estimator_
        The model on all rows.
    best_params_
        The best point.
    best_score_
        Its mean score on held-out rows.
    scores_
        Of all points, NaN where a point was out of the race before; the axes are ``gammas_`` and
        ``Cs_``.
    cv_results_
        As in scikit-learn, of the points on all rows.
    n_fits_
        Fits of the search, and the last one.
    shared_
        What they shared.
    n_features_in_
        Number of features.
    """

    _unchanged_on_failure = Estimator._unchanged_on_failure
    fitted: ClassVar[tuple[Attribute, ...]] = (
        attribute("C_", "number"),
        attribute("gamma_", "number"),
        attribute("best_estimator_", "estimator"),
        attribute("best_params_", "dict"),
        attribute("best_score_", "number"),
        attribute("scores_", "float", ("n_folds", "n_gammas", "n_Cs")),
        attribute("cv_results_", "dict"),
        attribute("n_fits_", "count"),
        attribute("shared_", "shared"),
        attribute("n_features_in_", "count"),
    )

    best_estimator_: Any
    best_params_: dict[str, Any]
    n_features_in_: int
    classes_: Array

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

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
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
        with self._unchanged_on_failure():
            self._fit(X, y, sample_weight)
        return self

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> None:
        self._validate_params()
        refuse_rows(X)
        numeric = isinstance(self, RegressorMixin)
        X, y = validate_data(self, X, y, **AS_ROWS, y_numeric=numeric)
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
        self._stages = self._checkpointed(X, y, sample_weight)
        warn_of_scales(X)
        name = type(self).__name__
        with Progress(name, shown=bool(self.verbose), max_time=self.max_time) as progress:
            course = Course(limits, progress)
            course.plan(y.size, 1)  # the last fit
            self._chosen(X[used], y[used], weights, course)
        remaining = None if self.max_time is None else max(0.1, self.max_time - limits.seconds)
        final = self._estimator().set_params(**self.best_params_, max_time=remaining)
        self._before_last(final, used)
        with self._last_kept(final):
            final.fit(X, y, **({} if sample_weight is None else {"sample_weight": weight}))
        final.set_params(max_time=None)
        self.best_estimator_ = final
        self.C_, self.gamma_ = float(self.best_params_["C"]), float(self.best_params_["gamma"])
        self.n_fits_ += 1
        if limits.reason() == "interrupted":
            warn("The search was interrupted: the best point so far was chosen.", UserWarning)
        self._after(X, y, used, weights)

    def _checkpointed(self, X: Any, y: Array, weight: Any) -> Any:
        """Where the searches of this fit are kept, if anywhere."""
        callbacks = getattr(self, "_skl_callbacks", None) or []
        for callback in callbacks:
            if not hasattr(callback, "keep_search") or len(callbacks) > 1:
                raise ValueError(
                    f"{type(self).__name__} takes one Checkpoint and no other callbacks; got "
                    f"{callbacks!r}."
                )
            return callback.in_stages(self, joblib.hash((X, y, weight)))
        return None

    @contextmanager
    def _last_kept(self, final: Any) -> Iterator[None]:
        """The last fit has a checkpoint of its own, until it ends."""
        stages = self.__dict__.pop("_stages")
        if stages is None:
            yield
            return
        last = stages.of_last_fit()
        final.set_callbacks(last)
        yield
        final.set_callbacks()
        Path(last.path).unlink(missing_ok=True)

    def _before_last(self, final: Any, used: Array) -> None:
        """What the last fit is told of the search."""

    def _after(self, X: Any, y: Array, used: Array, weight: Array | None) -> None:
        """What else is known after the search."""

    def _chosen(self, X: Any, y: Array, weight: Array | None, course: Course) -> None:
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
        self._rows, self._splits, self._outputs, self.n_fits_ = rows, [], None, 0
        points: list[dict[str, Any]] | None = None
        best: Any = None
        try:
            if race and rows.size > FEW:
                few = np.sort(order[: max(FEW // 2, int(KEPT * rows.size))])
                course.plan(rows.size, KEPT * np.prod([values.size for values in axes.values()]))
                best, axes = self._grown(X, y, weight, few, axes, course)
                points = self._kept(best)
                best = self._searched(X, y, weight, rows, points, course)
            else:
                best, axes = self._grown(X, y, weight, rows, axes, course)
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
        self._splits, self._outputs = best._splits_, best._outputs
        self._rows = rows if best._n_rows == rows.size else few
        self.best_params_ = {name: float(value) for name, value in best.best_params_.items()}
        self.best_score_, self.cv_results_ = float(best.best_score_), best.cv_results_
        self.shared_, self.gammas_, self.Cs_ = best.shared_, axes["gamma"], axes["C"]
        if self._rows.size < n:
            self.shared_ = replace(self.shared_, sample=int(self._rows.size))
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
        self, X: Any, y: Array, weight: Array | None, rows: Array, axes: Any, course: Course
    ) -> tuple[Any, Any]:
        """The search of a grid that grows where its best point is at an edge."""
        course.plan(rows.size, len(_points(axes)))
        best = self._searched(X, y, weight, rows, _points(axes), course)
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
            if not new or course.limits.reason():
                break
            course.plan(rows.size, len(new))
            try:
                best = _joined(best, self._searched(X, y, weight, rows, new, course))
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
        course: Course,
    ) -> Any:
        """Scores of some points on some rows."""
        limits = course.limits
        if limits.reason():
            raise Interrupted(str(limits.reason()))
        whole = rows.size == X.shape[0]
        X, y = (X, y) if whole else (X[rows], y[rows])
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
        # outputs of the best point give probabilities
        n_outputs = (
            0 if isinstance(self, RegressorMixin) else OneVsOne(len(self.classes_)).n_outputs
        )
        need = 4.0 * len(points) * rows.size * n_outputs
        kept = 0.0 < need <= OUTPUTS * self.max_memory * 1e6
        inside = Inside(limits, course.of_pass(rows.size, len(points)), kept, only_shared=True)
        search._inside, own = inside, None if weight is None else weight[rows]
        if self._stages is not None:
            search.set_callbacks(self._stages)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="One or more of the test scores are non")
            warnings.filterwarnings("ignore", message="(?s).*fits failed out of a total")
            if limits.max_time is not None:
                warnings.filterwarnings("ignore", message="Max_time was over")
            try:
                search.look_up(X, y, own, splits, inside)
            except NotShared:
                search.fit(X, y, **({} if own is None else {"sample_weight": own}))
        if not np.isfinite(search.cv_results_["mean_test_score"]).any():
            raise ValueError(
                f"No point of the search has a score that is a number (scoring={self.scoring!r}, "
                f"{len(splits)} folds). Try another score, or other folds."
            )
        search._splits_, search._n_rows = splits, rows.size
        _choose(search)
        search._outputs = _outputs(search, inside.book)
        del search._inside
        self.n_fits_ += len(points) * len(splits)
        return search

    def _kept(self, search: Any) -> list[dict[str, Any]]:
        """The best quarter of the points, without those that are clearly worse than the best.

        Clearly: by more than some standard errors of the difference, as the folds show it.
        """
        results = search.cv_results_
        mean = np.asarray(results["mean_test_score"], np.float64)
        folds = np.array(
            [results[f"split{fold}_test_score"] for fold in range(len(search._splits_))], np.float64
        )
        behind = folds[:, search.best_index_, None] - folds
        error = behind.std(axis=0, ddof=1) / np.sqrt(folds.shape[0])
        order = np.argsort(np.where(np.isfinite(mean), -mean, np.inf), kind="stable")
        most = max(1, int(np.ceil(KEPT * order.size)))
        kept = [
            k
            for place, k in enumerate(order[:most])
            if place < LEAST_KEPT or not behind[:, k].mean() > CLEARLY * error[k]
        ]
        return [results["params"][k] for k in sorted(kept)]

    # -- predictions -------------------------------------------------------------------------------

    @of_new_rows()
    def predict(self, X: Any) -> Array:
        """Labels or targets of new rows."""
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


class ChoosesClassifier(ClassifierMixin, ChoosesParameters):
    """What those of classes have in common.

    Attributes
    ----------
    classes_
        The labels, sorted.
    oof_decision_function_
        Decision values of each row by a model without its fold; NaN for rows without one. Of two
        classes a vector.
    """

    fitted: ClassVar[tuple[Attribute, ...]] = (
        attribute("classes_", "labels", ("n_classes",)),
        attribute("oof_decision_function_", "float", ("n_samples", "n_classes")),
    )

    @of_new_rows("array of shape (n_samples,) for two classes, else (n_samples, n_classes)")
    def decision_function(self, X: Any) -> Array:
        """Decision values of new rows."""
        X = self._new_rows(X)
        return np.asarray(self.best_estimator_.decision_function(X))


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
    own = second.best_params_
    mean = second.cv_results_["mean_test_score"]
    rank = 1 + np.sum(mean[None, :] > mean[:, None], axis=1)
    second.cv_results_["rank_test_score"] = rank.astype(np.int32)
    _choose(second)
    if second.best_params_ != own:
        second._outputs = first._outputs
    a, b = first.shared_, second.shared_
    second.shared_ = Shared(
        a.n_fits + b.n_fits,
        a.n_shared + b.n_shared,
        a.n_kernels + b.n_kernels,
        a.seconds + b.seconds,
        a.reason or b.reason,
        a.what or b.what,
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


def _outputs(search: Any, book: Book | None) -> list[tuple[Array, Array, Array]] | None:
    """Of the best point, for each fold: rows, outputs, classes; None: not all were kept."""
    if book is None:
        return None
    parameters = {**search.estimator.get_params(), **search.best_params_}
    found = []
    for fold in range(len(search._splits_)):
        known = book.known.get(book.key(parameters, fold))
        if known is None or known.outputs is None or known.classes is None:
            return None
        found.append((known.rows[0], np.asarray(known.outputs, np.float64), known.classes))
    return found


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
