"""CrossTraining: a classifier trained on the rows that matter (:mod:`slimsvm.cross_training`).

The fit has the steps of all estimators, but is one of its own: it has no kernel and no solver, and
limits, Ctrl-C, callbacks, history and warnings are those of the fits inside.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from numbers import Integral
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, MetaEstimatorMixin
from sklearn.utils import check_random_state, get_tags
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.validation import validate_data

from slimsvm.cross_training import DISCARDS, Discard
from slimsvm.cross_training.models import (
    CrossResult,
    CrossTrainer,
    refuse_template,
    takes_weights_of,
)
from slimsvm.cross_training.subsets import Judged, PairRows, TrainingSet, rows_of_pairs
from slimsvm.declarations import declared, parameter
from slimsvm.ending import LOG
from slimsvm.estimators.classification import SVC
from slimsvm.estimators.fitting import Estimator
from slimsvm.estimators.parameters import AT_LEAST_ONE, SHARE, MatrixLike, shared
from slimsvm.models.cross_trained import CrossTrained, accepted
from slimsvm.multiclass import encoded
from slimsvm.notebook import ShowsItsFit
from slimsvm.training import checked_weights, refuse_broken, refuse_not_square, refuse_rows

Array = NDArray[Any]


@dataclass(frozen=True)
class CrossData:
    """What a fit works on: the rows of each pair of classes, and seeds for its estimators."""

    given: TrainingSet
    weight: Array
    classes: Array
    pairs: list[tuple[int, int]]
    rows: list[PairRows]
    seeds: Array


@declared
class CrossTraining(ShowsItsFit, MetaEstimatorMixin, CrossTrained, BaseEstimator):
    """Train a classifier on the rows that matter, as found by models of small subsets.

    Models are trained on random subsets. Rows that they agree to be on the wrong side are noise,
    rows that they agree to be beyond the margin are redundant; the final model is trained on the
    others. On noisy data a support vector machine then has far fewer support vectors and trains
    faster, for little or no loss of accuracy. Several classes are treated pair by pair
    (one-vs-one), with votes.

    Parameters
    ----------
    estimator : classifier with ``decision_function`` or None
        What is trained on subsets and on the kept rows; None is ``SVC()``.
    n_subsets : int
        Number of subsets for each pair of classes.
    subset_size : int or float in (0, 1]
        Rows in a subset: a number, or a share of the distinct rows of the pair. A share never
        means fewer than 50 rows, or all if there are less.
    balanced_subsets : bool
        Whether both classes give half of a subset, as in the slides. By default they give as much
        as their share of the rows, which is better by far where one class is rarer than the
        other: models of balanced subsets take too many rows of the larger class for noise.
    held_out : bool
        Whether a row is judged only by models whose subset it is not in, as in cross-validation;
        if it is in all, by all. The slides let all models judge all rows, and those that were
        trained on a noisy row take it for a good one.
    discard : {'both', 'noise', 'redundant'} or Discard
        Which rows leave; noise alone is called editing, redundant rows alone condensing.
        ``Discard(beyond=0.0)`` of :mod:`slimsvm.cross_training` takes rows for redundant from the
        margin itself on, as in the slides, not only from 0.001 beyond it.
    refit_intercept : bool
        Whether a constant is added to the decision function of each pair such that the hinge loss
        on all its rows, discarded ones included, is least. Discarding changes the balance of the
        classes, and with it the best constant.
    warm_start_dual : bool
        Discard nothing: find the exact solution for all rows, but begin at a point of its dual
        problem that the mean margins suggest, with the kernel rows of those that miss the margin in
        the cache. For :class:`SVC` only. Seldom worth it: on Adult,
        IJCNN1 and Covertype the solver took 2 to 21 % more steps than from zero, and 1.1 to 1.4
        times the kernel values.
    max_time : float
        Limit in seconds for the whole fit, for estimators with a parameter ``max_time`` of their
        own: at most half of it is for the models of the subsets, the rest for the final ones,
        each of which gets an equal share of what is left. Models that reach their limit are used
        as they are, with a ConvergenceWarning; decision values in between are not limited.
    n_jobs : int
        Subsets, and then pairs, that are trained at the same time, in threads unless a joblib
        context says otherwise. The result does not depend on it.
    random_state : int, RandomState or None
        Draws the subsets, and a value for each ``random_state`` of the estimator that is None.
    verbose : bool
        Print a line for each pair.

    Notes
    -----
    Ctrl-C in the training of a final model of slimsvm ends that training, and the model is usable;
    before, there is no model yet and KeyboardInterrupt is raised.

    Where the estimator's ``fit`` takes ``sample_weight``, integer weights give what repeated rows
    give. If it does not, weights other than zero (the row is removed) and one common value are
    refused.

    The rules are made for the hinge loss, for which rows beyond the margin do not matter. For a
    loss that goes on there, as that of ``LogisticRegression``, more is lost;
    ``refit_intercept=True`` helps.

    ``slimsvm.save`` writes a fitted CrossTraining whose estimator is one of slimsvm's; for others
    use joblib or pickle.

    References
    ----------
    .. [1] G. Bakir, L. Bottou, J. Weston, "Breaking SVM complexity with cross-training", NIPS 17,
       2005.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from slimsvm import SVC, CrossTraining
    >>> X, y = make_moons(1000, noise=0.4, random_state=0)
    >>> plain = SVC(gamma=1.0).fit(X, y)
    >>> model = CrossTraining(SVC(gamma=1.0), random_state=0).fit(X, y)
    >>> bool(model.estimators_[0].n_support_.sum() < plain.n_support_.sum() / 2)
    True
    >>> bool(model.score(X, y) > plain.score(X, y) - 0.02)
    True
    """

    estimator: Any = parameter(
        None, HasMethods(["fit", "decision_function"]), None, positional=True
    )
    n_subsets: int = parameter(5, AT_LEAST_ONE, positional=True)
    subset_size: float = parameter(
        0.2, Interval(Integral, 2, None, closed="left"), SHARE, positional=True
    )
    balanced_subsets: bool = parameter(False, "boolean")
    held_out: bool = parameter(True, "boolean")
    discard: Any = parameter("both", StrOptions(set(DISCARDS)), Discard)
    refit_intercept: bool = parameter(False, "boolean")
    warm_start_dual: bool = parameter(False, "boolean")
    max_time: float | None = shared("max_time")
    n_jobs: int | None = shared("n_jobs")
    random_state: Any = shared("random_state")
    verbose: bool = shared("verbose")

    _unchanged_on_failure = Estimator._unchanged_on_failure

    # -- training ----------------------------------------------------------------------------------

    def fit(
        self, X: MatrixLike, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Train on rows X with labels y.

        Parameters
        ----------
        X : array, CSR matrix or DataFrame of shape (n_samples, n_features)
            Training rows, as the estimator takes them; for a precomputed kernel the values of all
            pairs of them.
        y : array of shape (n_samples,)
            Labels, numbers or strings.
        sample_weight : array of shape (n_samples,), optional
            Passed on to the estimator, if it takes weights. Zero removes the row.

        Returns
        -------
        self
        """
        with self._unchanged_on_failure():
            given, weight = self._checked(X, y, sample_weight)
            data = self._encoded(given, weight)
            self._concluded(data, self._solved(data))
        return self

    @property
    def _template(self) -> Any:
        return SVC() if self.estimator is None else self.estimator

    def _checked(self, X: Any, y: Any, sample_weight: Any) -> tuple[TrainingSet, Array]:
        """What was given, validated, and the weights."""
        self._validate_params()
        template = self._template
        refuse_template(template, self.warm_start_dual, self.max_time, SVC)
        tags = get_tags(self).input_tags
        refuse_rows(X)
        X, y = validate_data(self, X, y, **accepted(tags))
        refuse_broken(X)
        if tags.pairwise:
            refuse_not_square(X)
        weight = checked_weights(sample_weight, X)
        takes_weights = takes_weights_of(template, weight)
        return TrainingSet(X, y, weight if takes_weights else None, bool(tags.pairwise)), weight

    def _encoded(self, given: TrainingSet, weight: Array) -> CrossData:
        """The pairs of classes and their rows; seeds for the fits of each."""
        classes, label, used = encoded(given.y, weight)
        if isinstance(self.subset_size, Integral) and self.subset_size > used.size:
            raise ValueError(
                f"subset_size={self.subset_size} is more than the {used.size} rows of positive "
                "weight that were given. Pass a smaller number, or a share such as 0.2."
            )
        merged = Discard.named(self.discard).merged
        pairs, found = rows_of_pairs(given, label, used, classes.size, merged)
        size = (len(pairs), int(self.n_subsets) + 1)
        seeds = check_random_state(self.random_state).randint(2**31 - 1, size=size)
        return CrossData(given, weight, classes, pairs, found, seeds)

    def _solved(self, data: CrossData) -> CrossResult:
        """What is kept of each pair, and the final models."""
        names = [field.name for field in fields(CrossTrainer) if field.name != "template"]
        asked = {name: getattr(self, name) for name in names}
        asked["discard"] = Discard.named(self.discard)

        def tell(k: int, pair: Judged) -> None:
            first, second = data.classes[list(data.pairs[k])].tolist()
            line = f"CrossTraining  {pair.in_words(first, second)}"
            LOG.info(line)
            if self.verbose:
                print(line, flush=True)

        trainer = CrossTrainer(template=self._template, **asked)
        return trainer.trained(data.given, data.rows, data.seeds, tell)

    def _concluded(self, data: CrossData, solved: CrossResult) -> None:
        """Set the fitted attributes."""
        self.__dict__.update(solved.attributes(data.weight))
        self.classes_, self.pairs_ = data.classes, data.classes[np.array(data.pairs)]

    def __sklearn_tags__(self) -> Any:
        tags, own = super().__sklearn_tags__(), get_tags(self._template)
        for name in ("sparse", "pairwise", "allow_nan", "positive_only"):
            setattr(tags.input_tags, name, getattr(own.input_tags, name))
        kind = own.classifier_tags
        tags.classifier_tags.poor_score = kind is not None and kind.poor_score
        return tags
