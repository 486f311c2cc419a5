"""GridSearchCV and RandomizedSearchCV: scikit-learn's own, around fits that share their work."""

from __future__ import annotations

from collections.abc import Iterator
from numbers import Real
from typing import Any, ClassVar

import joblib
import numpy as np
from sklearn import get_config, model_selection
from sklearn.base import is_classifier, is_regressor
from sklearn.model_selection._search import BaseSearchCV
from sklearn.utils._param_validation import Interval, RealNotInt
from sklearn.utils.validation import _check_method_params, indexable

from slimsvm.ending import warn
from slimsvm.estimators.fitting import Estimator
from slimsvm.search.course import Inside
from slimsvm.search.shared import NotShared, Shared
from slimsvm.search.sharing import Sharing
from slimsvm.search.stand_in import (
    Book,
    Interrupted,
    RowNumbers,
    StandIn,
    each,
    is_plain,
    itself,
    own_score,
    seeing_rows,
    stand_in,
)
from slimsvm.threads import n_threads
from slimsvm.training import refuse_rows

PROPAGATED = "_parent_callback_ctx"


class _Splits:
    """The folds as they were, once: another call of a splitter may give others."""

    def __init__(self, splits: list[Any]) -> None:
        self._splits = splits

    def split(self, X: Any, y: Any = None, **given: Any) -> Iterator[Any]:
        """The folds."""
        return iter(self._splits)


class _SplitterOfRows:
    """A splitter that is given the rows themselves."""

    def __init__(self, splitter: Any, X: Any) -> None:
        self.splitter, self.X = splitter, X

    def split(self, X: Any, y: Any = None, **given: Any) -> Any:
        """The folds."""
        return self.splitter.split(self.X, y, **given)

    def get_n_splits(self, X: Any = None, y: Any = None, **given: Any) -> Any:
        """Their number, as the splitter says."""
        return self.splitter.get_n_splits(self.X, y, **given)


class _Work:
    """What one call of ``fit`` has beside the search."""

    def __init__(self, sharing: Sharing, book: Book, inside: Inside, all_known: bool) -> None:
        self.sharing, self.book, self.limits = sharing, book, inside.limits
        self.only_shared, self.all_known = inside.only_shared, all_known
        self.split_params: dict[str, Any] = {}


class SharedWork(BaseSearchCV):
    """What both searches have beside scikit-learn's: the fits share their work where they can."""

    max_memory: float
    shared_: Shared
    estimator: Any
    n_jobs: int | None
    _checked_cv_orig: Any
    _constraint: ClassVar[dict[str, Any]] = {
        "max_memory": [Interval(RealNotInt, 0, None, closed="left"), int]
    }

    # a search that is interrupted in its last fit would keep a best estimator that is none
    _unchanged_on_failure = Estimator._unchanged_on_failure

    def _searched(self) -> Any:
        """A grid or distributions, or a list of them."""
        raise NotImplementedError

    def fit(self, X: Any, y: Any = None, **params: Any) -> Any:
        """Run fit with all sets of parameters.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features) or (n_samples, n_samples)
            Training rows; for a precomputed kernel the values of all pairs of them.
        y : array-like of shape (n_samples,), optional
            Labels or targets.
        **params : dict of str -> object
            Passed to the ``fit`` of the estimator, the scorer and the splitter, as in scikit-learn.

        Returns
        -------
        self
        """
        with self._unchanged_on_failure():
            self._fit(X, y, params)
        return self

    def _fit(self, X: Any, y: Any, params: dict[str, Any]) -> None:
        self.__dict__.pop("shared_", None)
        try:
            work = self._work_of(X, y, params)
        except NotShared as why:
            if self._checkpoint() is not None:
                warn(f"The checkpoint keeps nothing of this search: {why}.", UserWarning)
            super().fit(X, y, **params)
            n_fits = len(self.cv_results_["params"]) * self.n_splits_
            self.shared_ = Shared(n_fits, 0, reason=str(why))
            return
        refuse_rows(X)
        own, asked, self._work = self.estimator, self.n_jobs, work
        self.estimator = stand_in(own, work.book)
        try:
            jobs = n_threads(self.n_jobs)
            with joblib.parallel_config("threading", n_jobs=jobs):  # nothing worth a process
                # to look up what is known takes one thread; a fit that is left has all of them
                self.n_jobs = 1 if work.all_known else asked
                super().fit(RowNumbers(work.sharing.X), work.sharing.y, **params)
        finally:
            self.estimator, self.n_jobs = own, asked
            self.__dict__.pop("_work", None)
            for name in ("best_estimator_", "_checked_cv_orig"):
                if name in self.__dict__:
                    setattr(self, name, _as_given(self.__dict__[name]))
        scorers = self._get_scorers()[0]
        self.scorer_ = getattr(scorers, "_scorers", scorers)
        self.shared_ = work.sharing.result()

    def __dir__(self) -> list[str]:
        # a search that shared nothing looks like scikit-learn's, whose tests compare all it has
        names = set(super().__dir__())
        hidden = "shared_" in self.__dict__ and not self.shared_.n_shared
        return sorted(names - {"shared_"} if hidden else names)

    def _checkpoint(self) -> Any:
        """The callback that keeps what is known, if there is one."""
        callbacks = getattr(self, "_skl_callbacks", None) or ()
        return next((c for c in callbacks if hasattr(c, "keep_search")), None)

    # -- whether there is anything to share --------------------------------------------------------

    def _work_of(self, X: Any, y: Any, params: dict[str, Any]) -> _Work:
        if not isinstance(self.max_memory, Real):
            raise NotShared("max_memory is no number")
        config = get_config()
        given = {name: value for name, value in params.items() if value is not None}
        groups = given.pop("groups", None)
        if config["array_api_dispatch"] or (config["enable_metadata_routing"] and given):
            raise NotShared("array API or metadata routing is in use")
        callbacks = list(getattr(self, "_skl_callbacks", None) or ())
        if hasattr(self, PROPAGATED) or callbacks not in ([], [self._checkpoint()]):
            raise NotShared("callbacks look at every fit")
        threads = max(n_threads(self.n_jobs), n_threads(getattr(self.estimator, "n_jobs", None)))
        X, y = indexable(X, y)
        if y is None and (is_classifier(self.estimator) or is_regressor(self.estimator)):
            raise NotShared("there is no y")
        given = _check_method_params(X, params=given)
        del groups
        sharing = Sharing(self.estimator, X, y, given, float(self.max_memory), threads)
        grids = self._searched()
        grids = [grids] if isinstance(grids, dict) else grids
        try:
            names = {name for grid in grids for name in grid}
        except TypeError as error:
            raise NotShared("that is no grid") from error
        sharing.refuse_names(names)
        sharing.refuse_size()
        try:
            plain = all(is_plain(scorer) for scorer in each(self._get_scorers()[0]))
        except (TypeError, ValueError) as error:  # the search says it
            raise NotShared("there is no such score") from error
        if sharing.prefix and not plain:
            raise NotShared("a function that scores may look at the steps of the pipeline")
        inside = getattr(self, "_inside", None) or Inside()
        sharing.show, sharing.keep_outputs = inside.show, inside.keep_outputs
        book, known = Book(sorted(names)), sharing.takes_all(list(grids))
        if inside.keep_outputs:
            inside.book = book
        return _Work(sharing, book, inside, known)

    # -- scikit-learn's own places for what differs ------------------------------------------------

    def _get_scorers(self) -> Any:
        scorers, metric = super()._get_scorers()
        return (seeing_rows(scorers) if "_work" in self.__dict__ else scorers), metric

    def _check_input_parameters(self, X: Any, y: Any, split_params: Any) -> None:
        super()._check_input_parameters(X, y, split_params)
        if "_work" in self.__dict__:
            self._work.split_params = split_params
            self._checked_cv_orig = _SplitterOfRows(self._checked_cv_orig, self._work.sharing.X)

    def _run_search(self, evaluate_candidates: Any, *, callback_ctx: Any = None) -> None:
        if "_work" not in self.__dict__:
            super()._run_search(evaluate_candidates, callback_ctx=callback_ctx)
            return
        work = self._work

        def after_sharing(
            candidate_params: Any,
            cv: Any = None,
            more_results: Any = None,
            callback_ctx: Any = None,
        ) -> Any:
            candidates, splitter = list(candidate_params), cv or self._checked_cv_orig
            X, y = work.sharing.X, work.sharing.y
            splits = list(splitter.split(X, y, **work.split_params))
            self._share(work, candidates, splits)
            more = (more_results, callback_ctx)
            results = evaluate_candidates(candidates, _Splits(splits), *more)
            if work.sharing.n_shared:  # every fit has the same part of what was done for all
                results["mean_fit_time"] += work.sharing.seconds / work.sharing.n_fits
            return results

        super()._run_search(after_sharing, callback_ctx=callback_ctx)

    def _share(self, work: _Work, candidates: list[Any], splits: list[Any]) -> None:
        """Fill the book; Ctrl-C ends that, and the search goes on with what is in it."""
        sharing, limits = work.sharing, work.limits
        words = {"interrupted": "the search was interrupted", "max_time": "max_time was over"}

        def stop() -> str:
            reason = limits.reason()
            return words.get(reason, reason) if reason else ""

        sharing.stop, sharing.limits, sharing.checkpoint = stop, limits, self._checkpoint()
        responses = [getattr(scorer, "_response_method", None) for scorer in self._each_scorer()]
        decision = any(response != "predict" for response in responses)
        try:
            with limits.watching_interrupts():
                sharing.write(work.book, candidates, splits, decision, self.return_train_score)
        except (NotShared, ValueError, TypeError, MemoryError) as why:
            # where the rows are not valid, the fits one by one say so
            sharing.reasons[str(why).splitlines()[0]] = None
        if work.only_shared and sharing.n_shared and not work.book.reason:
            work.book.reason = "its solution takes too long"
            return
        if work.book.reason:
            n_done = sharing.n_done(len(splits))
            if isinstance(self.error_score, str) or not n_done:
                raise KeyboardInterrupt if limits.interrupted else Interrupted(work.book.reason)
            warn(
                f"{work.book.reason[0].upper()}{work.book.reason[1:]}: of {len(candidates)} points "
                f"{n_done} were evaluated, and the best of these is chosen. The scores of the "
                "others are error_score.",
                UserWarning,
            )

    def look_up(self, X: Any, y: Any, weight: Any, splits: list[Any], inside: Inside) -> None:
        """The results of a grid by the estimator's own score, without scikit-learn's loop.

        That takes a millisecond for each point and fold, and most of the time of a small search.
        Weights count in the score. Raises NotShared where scikit-learn's loop must do it.
        """
        if self.scoring is not None:
            raise NotShared("the score is another one")
        self._inside = inside
        work = self._work_of(X, y, {} if weight is None else {"sample_weight": weight})
        points = list(model_selection.ParameterGrid(self._searched()))
        self._share(work, points, splits)
        sharing, classes = work.sharing, not is_regressor(self.estimator)
        if not sharing.n_shared:
            raise NotShared("nothing is known")
        out = []
        for point in points:
            parameters = {**self.estimator.get_params(), **point}
            for fold, (_, test) in enumerate(splits):
                known, value = work.book.known.get(work.book.key(parameters, fold)), np.nan
                if known is not None:
                    own = None if weight is None else weight[test]
                    value = own_score(y[test], known.predicted[0], own, classes)
                each_time = sharing.seconds / sharing.n_fits
                out.append({"fit_time": each_time, "score_time": 0.0, "test_scores": value})
        self.cv_results_ = self._format_results(points, len(splits), out)
        self.shared_ = sharing.result()

    def _each_scorer(self) -> list[Any]:
        """Scorers that ask for predictions alone stand for ``estimator.score``, too."""
        found = each(super()._get_scorers()[0])
        return [_Predicts if type(one).__name__ == "_PassthroughScorer" else one for one in found]


class _Predicts:
    _response_method = "predict"


def _as_given(value: Any) -> Any:
    """What stood there before the search: an estimator, a splitter."""
    if isinstance(value, StandIn):
        return itself(value)
    return value.splitter if isinstance(value, _SplitterOfRows) else value


class GridSearchCV(SharedWork, model_selection.GridSearchCV):
    """Exhaustive search over a grid, a drop-in for scikit-learn's whose fits share their work.

    For :class:`slimsvm.SVC` and :class:`slimsvm.SVR`, alone or as the last step of a Pipeline whose
    other steps are not searched, distances between rows are computed once, kernel values once for
    each kernel, solutions go from each C to the next, and scores of held-out rows are carried
    along. NuSVC, NuSVR and OneClassSVM share kernel values, LinearSVC and LinearSVR their starts,
    SparseSVC and SparseSVR the rows of folds. Scores are those of separate fits within their
    tolerance. Whatever cannot be shared
    (other estimators or parameters, kernels that are functions) is fitted one by one;
    ``shared_`` says which.

    Parameters
    ----------
    estimator, param_grid, scoring, n_jobs, refit, cv, verbose, pre_dispatch, error_score, \
return_train_score
        As in :class:`sklearn.model_selection.GridSearchCV`. ``n_jobs`` is a number of threads where
        work is shared.
    max_memory : float
        Megabytes for kernel values; where they need more, rows of them are cached (two classes,
        and regression), or fits are done one by one.

    Attributes
    ----------
    cv_results_, best_estimator_, best_score_, best_params_, best_index_, scorer_, n_splits_, \
refit_time_, multimetric_
        As in scikit-learn. ``mean_fit_time`` has for each fit the same part of the shared work.
    shared_
        What was shared; ``str(shared_)`` is a sentence.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from slimsvm import SVC, GridSearchCV
    >>> X, y = load_iris(return_X_y=True)
    >>> search = GridSearchCV(SVC(), {"C": [1, 10, 100], "gamma": [0.01, 0.1]}).fit(X, y)
    >>> search.best_params_
    {'C': 1, 'gamma': 0.1}
    >>> search.shared_.n_shared, search.shared_.n_kernels
    (30, 2)
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **model_selection.GridSearchCV._parameter_constraints,
        **SharedWork._constraint,
    }

    def __init__(
        self,
        estimator: Any,
        param_grid: Any,
        *,
        scoring: Any = None,
        n_jobs: int | None = None,
        refit: Any = True,
        cv: Any = None,
        verbose: int = 0,
        pre_dispatch: Any = "2*n_jobs",
        error_score: Any = np.nan,
        return_train_score: bool = False,
        max_memory: float = 2000.0,
    ) -> None:
        super().__init__(
            estimator,
            param_grid,
            scoring=scoring,
            n_jobs=n_jobs,
            refit=refit,
            cv=cv,
            verbose=verbose,
            pre_dispatch=pre_dispatch,
            error_score=error_score,
            return_train_score=return_train_score,
        )
        self.max_memory = max_memory

    def _searched(self) -> Any:
        return self.param_grid


class RandomizedSearchCV(SharedWork, model_selection.RandomizedSearchCV):
    """Random search, a drop-in for scikit-learn's whose fits share their work.

    See :class:`slimsvm.GridSearchCV` for what is shared. Where gamma is drawn from a distribution,
    every point has a kernel of its own, and distances alone are shared: draw it from a list, and C
    from a distribution.

    Parameters
    ----------
    estimator, param_distributions, n_iter, scoring, n_jobs, refit, cv, verbose, pre_dispatch, \
random_state, error_score, return_train_score
        As in :class:`sklearn.model_selection.RandomizedSearchCV`.
    max_memory : float
        Megabytes for kernel values; where they need more, rows of them are cached (two classes,
        and regression), or fits are done one by one.

    Attributes
    ----------
    cv_results_, best_estimator_, best_score_, best_params_, best_index_, scorer_, n_splits_, \
refit_time_, multimetric_
        As in scikit-learn.
    shared_
        What was shared; ``str(shared_)`` is a sentence.

    Examples
    --------
    >>> from scipy.stats import loguniform
    >>> from sklearn.datasets import load_iris
    >>> from slimsvm import SVC, RandomizedSearchCV
    >>> X, y = load_iris(return_X_y=True)
    >>> points = {"C": loguniform(1, 100), "gamma": [0.01, 0.1, 1.0]}
    >>> search = RandomizedSearchCV(SVC(), points, random_state=0).fit(X, y)
    >>> search.shared_.n_shared
    50
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **model_selection.RandomizedSearchCV._parameter_constraints,
        **SharedWork._constraint,
    }

    def __init__(
        self,
        estimator: Any,
        param_distributions: Any,
        *,
        n_iter: int = 10,
        scoring: Any = None,
        n_jobs: int | None = None,
        refit: Any = True,
        cv: Any = None,
        verbose: int = 0,
        pre_dispatch: Any = "2*n_jobs",
        random_state: Any = None,
        error_score: Any = np.nan,
        return_train_score: bool = False,
        max_memory: float = 2000.0,
    ) -> None:
        super().__init__(
            estimator,
            param_distributions,
            n_iter=n_iter,
            scoring=scoring,
            n_jobs=n_jobs,
            refit=refit,
            cv=cv,
            verbose=verbose,
            pre_dispatch=pre_dispatch,
            random_state=random_state,
            error_score=error_score,
            return_train_score=return_train_score,
        )
        self.max_memory = max_memory

    def _searched(self) -> Any:
        return self.param_distributions
