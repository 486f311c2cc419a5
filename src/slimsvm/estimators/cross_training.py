"""Cross-training: machines on small subsets say which rows matter, and the final machine is trained on these alone.

Problem: with noisy labels the number of support vectors grows with the number of rows, since every row on the wrong side of its margin is one
(steinwart2004sparseness): training and prediction slow down for rows that teach nothing.

Algorithm: Bakir, Bottou & Weston, "Breaking SVM complexity with cross-training", NIPS 17, 2005 (bakir2005crosstraining), as in Bakir &
Chapelle's talk "Tricks of the trade for training SVMs":

    1. draw s subsets of N2 rows, half of them from either class
    2. train s machines f_1 ... f_s, one on each
    3. m_i = 1/s sum_r y_i f_r(x_i),  v_i = 1/s sum_r (m_i - y_i f_r(x_i))^2     for every row
    4. discard rows with m_i + v_i < 0: noise, on the wrong side whatever the subset
    5. discard rows with m_i - v_i > 1: redundant, no support vectors anyway
    6. train the final machine on the rest

What differs. Any classifier with a decision function will do, and several classes are one-vs-one. A class with fewer than N2/2 rows gives all
it has, the other one fills up; and the classes of a subset may also have their share of all rows (``balanced_subsets``). Mean and variance are
taken over the machines whose subset a row is not in (``held_out``): the talk calls step 3 cross-validation, and a machine that was trained on a
noisy row will often side with it. Where subsets hold half of the rows, as in the talk's smallest sets, that makes the difference. Rows on the
margin itself, which a solver finds at 1 +- its tolerance, are not redundant (BEYOND). A class that would vanish keeps its rows that are nearest
to the margin, as many as a subset has of it. Where the classifier takes weights, equal rows of one class are one row with the sum of their
weights; subsets are drawn from distinct rows, in an order that does not depend on that of the rows: so weights are repetitions, and the order
of the rows does not matter. The talk warns that the balance of the classes is lost: it is reported, and the intercept can be chosen anew for
all rows. Its guess for the exact problem, to begin where the margins point to, is ``warm_start_dual``.

Symbols: m, v as above; sign y_i = +1 for the second class of a pair; f decision values.
Cost: s trainings on N2 rows, s n decision values, and one training on what is left.
"""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin
from sklearn.utils import check_random_state, get_tags
from sklearn.utils._param_validation import HasMethods, Interval, RealNotInt
from sklearn.utils.multiclass import _ovr_decision_function
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import (
    _check_sample_weight,
    check_is_fitted,
    has_fit_parameter,
    validate_data,
)

from slimsvm.estimators.base import refuse_broken
from slimsvm.estimators.classification import SVC, encoded
from slimsvm.estimators.cross_subsets import (
    Candidates,
    Given,
    Judged,
    certified,
    decisions,
    distinct_rows,
    draw_subset,
    drawn,
    ended,
    final_machine,
    knows_limits,
    limited,
    opinion_of,
    seeded,
)
from slimsvm.run import Limits, Status, interrupts_at_once

Array = NDArray[Any]
BEYOND = 1e-3  # how far a mean margin must lie beyond 1: the default tolerance of SVC, within which support vectors on the margin lie
LEAST = 50  # rows in a subset that is given as a fraction, if there are so many: as for the sizes of a basis


class CrossTraining(MetaEstimatorMixin, ClassifierMixin, BaseEstimator):
    """Train a classifier on the rows that matter, as found by machines on small subsets.

    Machines are trained on random subsets. Rows that they agree to be on the wrong side are noise, rows that they agree to be beyond the
    margin are redundant; the final machine is trained on the others. On noisy data a support vector machine then has far fewer support
    vectors and trains faster, for little or no loss of accuracy. Several classes are treated pair by pair (one-vs-one), with votes.

    Parameters
    ----------
    estimator : classifier with ``decision_function``, default=None
        What is trained on subsets and on the kept rows; None is ``SVC()``.
    n_subsets : int, default=5
        Number of subsets for each pair of classes.
    subset_size : int or float in (0, 1], default=0.2
        Rows in a subset: a number, or a share of the distinct rows of the pair. A share never means fewer than 50 rows, or all if there are
        less.
    balanced_subsets : bool, default=False
        Whether both classes give half of a subset, as in the slides. By default they give as much as their share of the rows, which is better
        by far where one class is rarer than the other: machines of balanced subsets take too many rows of the larger class for noise.
    held_out : bool, default=True
        Whether a row is judged only by machines whose subset it is not in, as in cross-validation; if it is in all, by all. The slides let all
        machines judge all rows, and those that were trained on a noisy row take it for a good one.
    refit_intercept : bool, default=False
        Whether a constant is added to the decision function of each pair such that the hinge loss on all its rows, discarded ones included,
        is least. Discarding changes the balance of the classes, and with it the best constant.
    warm_start_dual : bool, default=False
        Discard nothing: train the exact machine on all rows, but begin at a point of its dual problem that the mean margins suggest. For
        :class:`SVC` only. Seldom worth it: on Adult, IJCNN1 and Covertype the solver took 2 to 21 % more steps than from zero, and 1.1 to 1.4
        times the kernel values.
    max_time : float, optional
        Limit in seconds for the whole fit, for estimators with a parameter ``max_time`` of their own: at most half of it is for the machines of
        the subsets, the rest for the final ones, each of which gets an equal share of what is left. Machines that reach their limit are used
        as they are, with a ConvergenceWarning; decision values in between are not limited.
    n_jobs : int, optional
        Subsets, and then pairs, that are trained at the same time, in threads unless a joblib context says otherwise. The result does not
        depend on it.
    random_state : int, RandomState or None, default=None
        Draws the subsets, and a value for each ``random_state`` of the estimator that is None.
    verbose : bool, default=False
        Print a line for each pair.

    Attributes
    ----------
    classes_ : array
        The labels, sorted.
    pairs_ : array of shape (n_pairs, 2)
        The two labels of each pair. With two classes there is one pair.
    estimators_ : list
        The final machine of each pair.
    shifts_ : array of shape (n_pairs,)
        What ``refit_intercept`` adds to their decision values, else zero.
    kept_indices_ : list of arrays
        Rows that the final machine of each pair was trained on.
    n_kept_, n_noise_, n_redundant_ : arrays of shape (n_pairs,)
        How many rows of each pair were kept, and how many discarded by which rule.
    balance_before_, balance_after_ : arrays of shape (n_pairs, 2)
        Share of the two classes in the weight of all rows of the pair, and in that of the kept ones.
    pair_indices_ : list of arrays
        All rows of each pair.
    margin_means_, margin_variances_ : lists of arrays
        Mean and variance of y f(x) over the machines that judge the row, for each of these rows.
    status_ : Status
        How the fit ended: its ``reason`` is 'converged' only if all machines, those of the subsets included, reached their tolerance, and
        'trained' if the estimator does not say; ``str(status_)`` is a sentence.
    certificate_ : Certificate or None
        Of the final machines: sums of their objectives and gaps, the largest violation. Its ``scope`` is 'subspace' unless no row was
        discarded: the problem is that of the kept rows. None if the estimator has none.
    n_features_in_ : int
        Number of features at fit.
    feature_names_in_ : array
        Their names, if X had names.

    Notes
    -----
    Ctrl-C in the training of a final machine of slimsvm ends that training, and the model is usable; before, there is no model yet and
    KeyboardInterrupt is raised.

    Where the estimator's ``fit`` takes ``sample_weight``, integer weights give what repeated rows give. If it does not, weights other than
    zero (the row is removed) and one common value are refused.

    The rules are made for the hinge loss, for which rows beyond the margin do not matter. For a loss that goes on there, as that of
    ``LogisticRegression``, more is lost; ``refit_intercept=True`` helps.

    ``slimsvm.save`` writes a fitted CrossTraining whose estimator is one of slimsvm's; for others use joblib or pickle.

    References
    ----------
    .. [1] G. Bakir, L. Bottou, J. Weston, "Breaking SVM complexity with cross-training", NIPS 17, 2005.

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

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "estimator": [HasMethods(["fit", "decision_function"]), None],
        "n_subsets": [Interval(Integral, 1, None, closed="left")],
        "subset_size": [
            Interval(Integral, 2, None, closed="left"),
            Interval(RealNotInt, 0.0, 1.0, closed="right"),
        ],
        "balanced_subsets": ["boolean"],
        "held_out": ["boolean"],
        "refit_intercept": ["boolean"],
        "warm_start_dual": ["boolean"],
        "max_time": [Interval(Real, 0.0, None, closed="neither"), None],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        estimator: Any = None,
        n_subsets: int = 5,
        subset_size: float = 0.2,
        *,
        balanced_subsets: bool = False,
        held_out: bool = True,
        refit_intercept: bool = False,
        warm_start_dual: bool = False,
        max_time: float | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        self.estimator = estimator
        self.n_subsets = n_subsets
        self.subset_size = subset_size
        self.balanced_subsets = balanced_subsets
        self.held_out = held_out
        self.refit_intercept = refit_intercept
        self.warm_start_dual = warm_start_dual
        self.max_time = max_time
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    # -- training -----------------------------------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> CrossTraining:
        """Train on rows X with labels y.

        Parameters
        ----------
        X : array, CSR matrix or DataFrame of shape (n_samples, n_features), or (n_samples, n_samples) kernel values
            Training rows, as the estimator takes them.
        y : array of shape (n_samples,)
            Labels, numbers or strings.
        sample_weight : array of shape (n_samples,), optional
            Passed on to the estimator, if it takes weights. Zero removes the row.

        Returns
        -------
        self
        """
        self._validate_params()
        given, weight = self._checked(X, y, sample_weight)
        classes, label, used = encoded(given.y, weight)
        if isinstance(self.subset_size, Integral) and self.subset_size > used.size:
            raise ValueError(
                f"subset_size={self.subset_size} is more than the {used.size} rows of positive weight that were given. Pass a smaller number, "
                "or a share such as 0.2."
            )
        members = [used[label[used] == c] for c in range(classes.size)]
        candidates, same = distinct_rows(given, members)
        pairs = [(i, j) for i in range(classes.size) for j in range(i + 1, classes.size)]
        seeds = check_random_state(self.random_state).randint(
            2**31 - 1, size=(len(pairs), int(self.n_subsets) + 1)
        )
        limits, judging = (
            Limits(self.max_time),
            Limits(None if self.max_time is None else 0.5 * self.max_time),
        )
        judged: list[Judged] = []
        before: list[Status | None] = []
        with Parallel(n_jobs=self.n_jobs, prefer="threads") as parallel:
            for (i, j), own in zip(pairs, seeds, strict=True):
                share = judging.part(len(pairs) - len(judged))
                rows = np.sort(np.concatenate([members[i], members[j]]))
                sign = np.where(label[rows] == j, 1.0, -1.0)
                with interrupts_at_once():
                    judged.append(
                        self._judge(
                            given,
                            rows,
                            sign,
                            (candidates[i], candidates[j]),
                            same,
                            own,
                            parallel,
                            share,
                            before,
                        )
                    )
                if self.verbose:
                    print(_line(classes[[i, j]].tolist(), judged[-1]), flush=True)
            # 6. the final machines
            finals = parallel(
                delayed(final_machine)(
                    self._machine(own[-1], limits, len(pairs) - k),
                    given,
                    pair,
                    self.refit_intercept,
                    self.warm_start_dual,
                )
                for k, (pair, own) in enumerate(zip(judged, seeds, strict=True))
            )
        self.classes_, self.pairs_ = classes, classes[np.array(pairs)]
        self.estimators_ = [machine for machine, _ in finals]
        self.shifts_ = np.array([shift for _, shift in finals])
        self._report(judged, weight)
        self.status_ = ended(self.estimators_, before)
        self.certificate_ = certified(
            self.estimators_, all(pair.kept.size == pair.rows.size for pair in judged)
        )
        return self

    @property
    def _template(self) -> Any:
        return SVC() if self.estimator is None else self.estimator

    def _machine(self, seed: int, limits: Limits, n_left: int) -> Any:
        """The next of n_left machines to train."""
        return limited(seeded(self._template, seed), limits, n_left, self.n_jobs)

    def _checked(self, X: Any, y: Any, sample_weight: Any) -> tuple[Given, Array]:
        """What was given, validated, and the weights."""
        if isinstance(self.estimator, type):
            name = self.estimator.__name__
            raise ValueError(
                f"The 'estimator' parameter of CrossTraining must be an estimator, got the class {name}. Pass {name}() instead."
            )
        if (kind := get_tags(self._template).estimator_type) not in (None, "classifier"):
            raise ValueError(
                f"The 'estimator' parameter of CrossTraining must be a classifier; {self._template!r} is of the kind {kind!r}."
            )
        if self.warm_start_dual and type(self._template) is not SVC:
            raise ValueError(
                f"warm_start_dual=True needs an SVC of slimsvm as the estimator, whose dual problem takes a start; got {self._template!r}. "
                "Leave warm_start_dual out, or pass slimsvm.SVC(...)."
            )
        if self.max_time is not None and not knows_limits(self._template):
            raise ValueError(
                f"max_time={self.max_time!r} needs an estimator that has a parameter max_time itself; {type(self._template).__name__} has "
                "none, and its fits cannot be ended. Leave max_time out, or choose one of slimsvm's machines."
            )
        tags = get_tags(self).input_tags
        X, y = validate_data(
            self,
            X,
            y,
            accept_sparse="csr" if tags.sparse else False,
            ensure_all_finite=_finite(tags),
        )
        refuse_broken(X)
        if tags.pairwise and X.shape[0] != X.shape[1]:
            raise ValueError(
                f"Precomputed matrix must be a square matrix. Input is a {X.shape[0]}x{X.shape[1]} matrix. "
                "Pass kernel values between all pairs of training rows."
            )
        weight = _check_sample_weight(
            sample_weight, X, dtype=np.float64, ensure_non_negative=True, copy=True
        )
        takes_weights = has_fit_parameter(self._template, "sample_weight")
        if not takes_weights and np.unique(weight[weight > 0]).size > 1:
            raise ValueError(
                f"sample_weight was given, but fit of {type(self._template).__name__} does not take it: only zeros and one other value are "
                "possible then. Choose an estimator that takes weights; of a pipeline, put CrossTraining around the last step alone."
            )
        return Given(X, y, weight if takes_weights else None, bool(tags.pairwise)), weight

    def _judge(
        self,
        given: Given,
        rows: Array,
        sign: Array,
        candidates: tuple[Candidates, Candidates],
        same: Array,
        seeds: Array,
        parallel: Parallel,
        limits: Limits,
        before: list[Status | None],
    ) -> Judged:
        """Steps 1 to 5 for one pair, on its distinct rows; ``same`` says which of them stands for a row. How trainings end joins ``before``."""
        distinct = np.sort(np.concatenate([candidates[0].rows, candidates[1].rows]))
        counts = drawn(
            self._size(distinct.size),
            (candidates[0].rows.size, candidates[1].rows.size),
            self.balanced_subsets,
        )
        # 1. and 2. subsets, and their machines
        shown = None if given.square else given.part(distinct, distinct)
        subsets = [draw_subset(candidates, counts, seed) for seed in seeds[:-1]]
        opinions = parallel(
            delayed(opinion_of)(
                self._machine(seed, limits, len(subsets) - k), given, *subset, distinct, shown
            )
            for k, (seed, subset) in enumerate(zip(seeds[:-1], subsets, strict=True))
        )
        values = [own for own, _ in opinions]
        before += [status for _, status in opinions]
        # 3. mean and variance of the margins, over the machines that have not seen the row; over all, if there is none such
        place = np.searchsorted(distinct, same[rows])
        sign_of = np.empty(distinct.size)
        sign_of[place] = sign
        margins = sign_of * np.stack(values)
        heard = np.array(
            [
                ~np.isin(distinct, own) if self.held_out else np.ones(distinct.size, bool)
                for own, _ in subsets
            ]
        )
        heard[:, ~heard.any(axis=0)] = True
        mean = margins.mean(axis=0, where=heard)
        variance = margins.var(axis=0, where=heard)
        # 4. and 5. noise, and what is redundant
        noise, redundant = mean + variance < 0.0, mean - variance > 1.0 + BEYOND
        kept = np.ones(distinct.size, bool) if self.warm_start_dual else ~(noise | redundant)
        for side, count in zip((-1.0, 1.0), counts, strict=True):
            mine = np.flatnonzero(sign_of == side)
            if not kept[mine].any():
                away = np.abs(mean[mine] - 1.0)
                kept[mine] = away <= np.partition(away, count - 1)[count - 1]
        return Judged(
            rows,
            sign,
            mean[place],
            variance[place],
            rows[kept[place]],
            int(np.count_nonzero((noise & ~kept)[place])),
            int(np.count_nonzero((redundant & ~kept)[place])),
        )

    def _size(self, n: int) -> int:
        """Rows in a subset of n."""
        if isinstance(self.subset_size, Integral):
            return min(n, int(self.subset_size))
        return min(n, max(LEAST, int(np.ceil(self.subset_size * n))))

    def _report(self, judged: list[Judged], weight: Array) -> None:
        """Set the attributes that say what was discarded."""
        self.kept_indices_ = [pair.kept for pair in judged]
        self.pair_indices_ = [pair.rows for pair in judged]
        self.margin_means_ = [pair.mean for pair in judged]
        self.margin_variances_ = [pair.variance for pair in judged]
        self.n_kept_ = np.array([pair.kept.size for pair in judged])
        self.n_noise_ = np.array([pair.n_noise for pair in judged])
        self.n_redundant_ = np.array([pair.n_redundant for pair in judged])
        self.balance_before_ = np.array([_balance(weight[pair.rows], pair.sign) for pair in judged])
        self.balance_after_ = np.array(
            [_balance(weight[pair.kept], pair.sign[pair.stays]) for pair in judged]
        )

    # -- prediction ---------------------------------------------------------------------------------------------------------------------

    def _values(self, X: Any) -> Array:
        """Decision values of the pairs, shape (n, pairs); positive for the second class."""
        check_is_fitted(self)
        tags = get_tags(self).input_tags
        X = validate_data(
            self,
            X,
            accept_sparse="csr" if tags.sparse else False,
            ensure_all_finite=_finite(tags),
            reset=False,
        )
        out = np.empty((X.shape[0], len(self.estimators_)))
        for k, (machine, shift) in enumerate(zip(self.estimators_, self.shifts_, strict=True)):
            out[:, k] = (
                decisions(machine, X[:, self.kept_indices_[k]] if tags.pairwise else X) + shift
            )
        return out

    def decision_function(self, X: Any) -> Array:
        """Decision values.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)
            New rows.

        Returns
        -------
        array of shape (n_samples,) for two classes, else (n_samples, n_classes): votes of the pairs, and their confidence for equal votes.
        """
        values = self._values(X)
        if len(self.classes_) == 2:
            return values[:, 0]
        return np.asarray(_ovr_decision_function(values > 0, values, len(self.classes_)))

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

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        own = get_tags(self._template)
        tags.input_tags.sparse = own.input_tags.sparse
        tags.input_tags.pairwise = own.input_tags.pairwise
        tags.input_tags.allow_nan = own.input_tags.allow_nan
        tags.input_tags.positive_only = own.input_tags.positive_only
        tags.classifier_tags.poor_score = (
            own.classifier_tags is not None and own.classifier_tags.poor_score
        )
        return tags


# -- what is said -----------------------------------------------------------------------------------------------------------------------------


def _balance(weight: Array, sign: Array) -> Array:
    """Share of either class in the weight."""
    second = float(weight[sign > 0].sum()) / float(weight.sum())
    return np.array([1.0 - second, second])


def _line(names: list[Any], pair: Judged) -> str:
    return (
        f"CrossTraining  {names[0]!r} and {names[1]!r}: {pair.rows.size} rows, {pair.n_noise} noise, {pair.n_redundant} redundant, "
        f"{pair.kept.size} kept"
    )


def _finite(tags: Any) -> bool | str:
    return "allow-nan" if tags.allow_nan else True
