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
it has, the other one fills up; and the classes of a subset may also have their share of all rows (``balanced_subsets``). Rows on the margin
itself, which a solver finds at 1 +- its tolerance, are not redundant (BEYOND). A class that would vanish keeps its rows that are nearest to
the margin, as many as a subset has of it. Where the classifier takes weights, equal rows of one class are one row with the sum of their
weights; subsets are drawn from distinct rows, in an order that does not depend on that of the rows: so weights are repetitions, and the order
of the rows does not matter. The talk warns that the balance of the classes is lost: it is reported, and the intercept can be chosen anew for
all rows. Its guess for the exact problem, to begin where the margins point to, is ``warm_start_dual``.

Symbols: m, v as above; sign y_i = +1 for the second class of a pair; f decision values.
Cost: s trainings on N2 rows, s n decision values, and one training on what is left.
"""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.utils import check_random_state, get_tags
from sklearn.utils._param_validation import HasMethods, Interval, RealNotInt
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.multiclass import _ovr_decision_function
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, has_fit_parameter, validate_data

from slimsvm.estimators.base import refuse_broken
from slimsvm.estimators.classification import SVC, encoded
from slimsvm.losses import Hinge
from slimsvm.oracles import LossOracle
from slimsvm.rows import row_codes

Array = NDArray[Any]
BEYOND = 1e-3  # how far a mean margin must lie beyond 1: the default tolerance of SVC, within which support vectors on the margin lie
LEAST = 50  # rows in a subset that is given as a fraction, if there are so many: as for the sizes of a basis


@dataclass(frozen=True)
class Given:
    """What fit was given: rows, labels, and weights if the estimator takes them, else None; square: X holds kernel values of all rows."""

    X: Any
    y: Array
    weight: Array | None
    square: bool

    def part(self, rows: Array, against: Array) -> Any:
        """The rows; of kernel values, those with the rows ``against``."""
        if self.square:
            return self.X[np.ix_(rows, against)]
        everything = rows.size == self.X.shape[0] and bool(np.all(rows[1:] > rows[:-1]))
        return self.X if everything else self.X[rows]


@dataclass(frozen=True)
class Candidates:
    """The distinct rows of one class: their indices, and the weight of each."""

    rows: Array
    weight: Array


@dataclass(frozen=True)
class Judged:
    """What the machines of the subsets say about the rows of one pair."""

    rows: Array
    sign: Array
    mean: Array
    variance: Array
    kept: Array  # indices, as rows
    n_noise: int
    n_redundant: int

    @property
    def stays(self) -> Array:
        """Which of the rows are kept."""
        return np.isin(self.rows, self.kept, assume_unique=True)


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
    refit_intercept : bool, default=False
        Whether a constant is added to the decision function of each pair such that the hinge loss on all its rows, discarded ones included,
        is least. Discarding changes the balance of the classes, and with it the best constant.
    warm_start_dual : bool, default=False
        Discard nothing: train the exact machine on all rows, but begin at a point of its dual problem that the mean margins suggest. For
        :class:`SVC` only. Seldom worth it: on Adult, IJCNN1 and Covertype the solver took 2 to 21 % more steps than from zero, and 1.1 to 1.4
        times the kernel values.
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
        Mean and variance of y f(x) over the machines of the subsets, for each of these rows.
    n_features_in_ : int
        Number of features at fit.
    feature_names_in_ : array
        Their names, if X had names.

    Notes
    -----
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
        "subset_size": [Interval(Integral, 2, None, closed="left"), Interval(RealNotInt, 0.0, 1.0, closed="right")],
        "balanced_subsets": ["boolean"],
        "refit_intercept": ["boolean"],
        "warm_start_dual": ["boolean"],
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
        refit_intercept: bool = False,
        warm_start_dual: bool = False,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        self.estimator = estimator
        self.n_subsets = n_subsets
        self.subset_size = subset_size
        self.balanced_subsets = balanced_subsets
        self.refit_intercept = refit_intercept
        self.warm_start_dual = warm_start_dual
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
        candidates, same = _candidates(given, members)
        pairs = [(i, j) for i in range(classes.size) for j in range(i + 1, classes.size)]
        seeds = check_random_state(self.random_state).randint(2**31 - 1, size=(len(pairs), int(self.n_subsets) + 1))
        judged = []
        with Parallel(n_jobs=self.n_jobs, prefer="threads") as parallel:
            for (i, j), own in zip(pairs, seeds, strict=True):
                rows = np.sort(np.concatenate([members[i], members[j]]))
                sign = np.where(label[rows] == j, 1.0, -1.0)
                judged.append(self._judge(given, rows, sign, (candidates[i], candidates[j]), same, own, parallel))
                if self.verbose:
                    print(_line(classes[[i, j]].tolist(), judged[-1]), flush=True)
            # 6. the final machines
            finals = parallel(
                delayed(_final)(seeded(self._template, own[-1]), given, pair, self.refit_intercept, self.warm_start_dual)
                for pair, own in zip(judged, seeds, strict=True)
            )
        self.classes_, self.pairs_ = classes, classes[np.array(pairs)]
        self.estimators_ = [machine for machine, _ in finals]
        self.shifts_ = np.array([shift for _, shift in finals])
        self._report(judged, weight)
        return self

    @property
    def _template(self) -> Any:
        return SVC() if self.estimator is None else self.estimator

    def _checked(self, X: Any, y: Any, sample_weight: Any) -> tuple[Given, Array]:
        """What was given, validated, and the weights."""
        if isinstance(self.estimator, type):
            name = self.estimator.__name__
            raise ValueError(
                f"The 'estimator' parameter of CrossTraining must be an estimator, got the class {name}. Pass {name}() instead."
            )
        if self.warm_start_dual and type(self._template) is not SVC:
            raise ValueError(
                f"warm_start_dual=True needs an SVC of slimsvm as the estimator, whose dual problem takes a start; got {self._template!r}. "
                "Leave warm_start_dual out, or pass slimsvm.SVC(...)."
            )
        tags = get_tags(self).input_tags
        X, y = validate_data(self, X, y, accept_sparse="csr" if tags.sparse else False, ensure_all_finite=_finite(tags))
        refuse_broken(X)
        if tags.pairwise and X.shape[0] != X.shape[1]:
            raise ValueError(
                f"Precomputed matrix must be a square matrix. Input is a {X.shape[0]}x{X.shape[1]} matrix. "
                "Pass kernel values between all pairs of training rows."
            )
        weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True, copy=True)
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
    ) -> Judged:
        """Steps 1 to 5 for one pair, on its distinct rows; ``same`` says which of them stands for a row."""
        distinct = np.sort(np.concatenate([candidates[0].rows, candidates[1].rows]))
        counts = drawn(self._size(distinct.size), (candidates[0].rows.size, candidates[1].rows.size), self.balanced_subsets)
        # 1. and 2. subsets, and their machines
        shown = None if given.square else given.part(distinct, distinct)
        values = parallel(
            delayed(_opinion)(seeded(self._template, seed), given, *_subset(candidates, counts, seed), distinct, shown)
            for seed in seeds[:-1]
        )
        # 3. mean and variance of the margins
        place = np.searchsorted(distinct, same[rows])
        sign_of = np.empty(distinct.size)
        sign_of[place] = sign
        margins = sign_of * np.stack(values)
        mean, variance = margins.mean(axis=0), margins.var(axis=0)
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
        self.balance_after_ = np.array([_balance(weight[pair.kept], pair.sign[pair.stays]) for pair in judged])

    # -- prediction ---------------------------------------------------------------------------------------------------------------------

    def _values(self, X: Any) -> Array:
        """Decision values of the pairs, shape (n, pairs); positive for the second class."""
        check_is_fitted(self)
        tags = get_tags(self).input_tags
        X = validate_data(self, X, accept_sparse="csr" if tags.sparse else False, ensure_all_finite=_finite(tags), reset=False)
        out = np.empty((X.shape[0], len(self.estimators_)))
        for k, (machine, shift) in enumerate(zip(self.estimators_, self.shifts_, strict=True)):
            out[:, k] = decisions(machine, X[:, self.kept_indices_[k]] if tags.pairwise else X) + shift
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
        return self.classes_[(values > 0).astype(int) if values.ndim == 1 else np.argmax(values, axis=1)]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        own = get_tags(self._template)
        tags.input_tags.sparse = own.input_tags.sparse
        tags.input_tags.pairwise = own.input_tags.pairwise
        tags.input_tags.allow_nan = own.input_tags.allow_nan
        tags.input_tags.positive_only = own.input_tags.positive_only
        tags.classifier_tags.poor_score = own.classifier_tags is not None and own.classifier_tags.poor_score
        return tags


# -- subsets ----------------------------------------------------------------------------------------------------------------------------------


def _candidates(given: Given, members: list[Array]) -> tuple[list[Candidates], Array]:
    """The distinct rows of each class, in an order of their own; and for every row the one that stands for it.

    Equal rows become one only where weights can say how many they were.
    """
    same = np.arange(given.y.size)
    if given.weight is None or given.square:
        weight = np.ones(same.size) if given.weight is None else given.weight
        return [Candidates(rows, weight[rows]) for rows in members], same
    code, found = row_codes(given.X), []
    for rows in members:
        _, first, place = np.unique(code[rows], return_index=True, return_inverse=True)
        same[rows] = rows[first][place]
        found.append(Candidates(rows[first], np.bincount(place, given.weight[rows])))
    return found, same


def drawn(size: int, counts: tuple[int, int], balanced: bool = True) -> tuple[int, int]:
    """How many of ``size`` rows come from either class: half, or as much as its share, at least one; where there are less, the other fills up.

    Examples
    --------
    >>> from slimsvm.estimators.cross_training import drawn
    >>> drawn(10, (100, 100)), drawn(10, (3, 100)), drawn(10, (100, 3))
    ((5, 5), (3, 7), (7, 3))
    >>> drawn(10, (30, 70), balanced=False), drawn(10, (1000, 1), balanced=False)
    ((3, 7), (9, 1))
    """
    wanted = size // 2 if balanced else round(size * counts[0] / sum(counts))
    first = min(counts[0], max(1, min(size - 1, wanted), size - counts[1]))
    return first, min(counts[1], size - first)


def _subset(candidates: tuple[Candidates, Candidates], counts: tuple[int, int], seed: int) -> tuple[Array, Array]:
    """Rows of one subset, and their weights."""
    rng = np.random.RandomState(seed)
    chosen = [np.sort(rng.permutation(own.rows.size)[:count]) for own, count in zip(candidates, counts, strict=True)]
    return (
        np.concatenate([own.rows[places] for own, places in zip(candidates, chosen, strict=True)]),
        np.concatenate([own.weight[places] for own, places in zip(candidates, chosen, strict=True)]),
    )


# -- machines ---------------------------------------------------------------------------------------------------------------------------------


def seeded(estimator: Any, seed: int) -> Any:
    """A clone in which every random_state that is None has the given value."""
    machine = clone(estimator)
    unset = [name for name, value in machine.get_params().items() if name.split("__")[-1] == "random_state" and value is None]
    return machine.set_params(**dict.fromkeys(unset, int(seed)))


def decisions(machine: Any, X: Any) -> Array:
    """Decision values of a machine for two classes, as a vector."""
    values = np.asarray(machine.decision_function(X), np.float64)
    values = values[:, 0] if values.ndim == 2 and values.shape[1] == 1 else values
    if values.shape != (X.shape[0],):
        raise ValueError(
            f"decision_function of {type(machine).__name__} returned shape {values.shape} for {X.shape[0]} rows of two classes; CrossTraining "
            "needs one value a row."
        )
    if not np.isfinite(values).all():
        raise ValueError(
            f"decision_function of {type(machine).__name__} returned values that are not finite: nothing can be said about such rows. Scale "
            "the features, or choose other parameters of the estimator."
        )
    return values


def _weights(given: Given, weight: Array) -> dict[str, Array]:
    """The weights as an argument of fit, where they are taken and say something."""
    return {} if given.weight is None or bool(np.all(weight == 1.0)) else {"sample_weight": weight}


def _opinion(machine: Any, given: Given, subset: Array, weight: Array, rows: Array, shown: Any) -> Array:
    """Train on the subset; decision values of the rows."""
    machine.fit(given.part(subset, subset), given.y[subset], **_weights(given, weight))
    if getattr(getattr(machine, "status_", None), "reason", None) == "interrupted":
        raise KeyboardInterrupt  # machines of slimsvm end with what they have; but here the final one is still to come
    return decisions(machine, given.part(rows, subset) if shown is None else shown)


def _final(machine: Any, given: Given, pair: Judged, refit: bool, warm: bool) -> tuple[Any, float]:
    """The final machine of a pair, trained on the kept rows; and the shift of its decision values."""
    X, y = given.part(pair.kept, pair.kept), given.y[pair.kept]
    weight = np.ones(y.size) if given.weight is None else given.weight[pair.kept]
    if warm:
        machine._fit_from(_dual_point(machine, pair, weight), X, y, **_weights(given, weight))
    else:
        machine.fit(X, y, **_weights(given, weight))
    return machine, _best_shift(machine, given, pair) if refit else 0.0


def _dual_point(machine: SVC, pair: Judged, weight: Array) -> Array:
    """A guess at the dual variables: at the bound for rows that the machines of the subsets get wrong, the surest of support vectors.

    To take all rows that miss the margin, by more than 0, 1 or 2 deviations, or in proportion, needs up to three times the kernel values.
    """
    return float(machine.C) * weight * (pair.mean < 0.0)


def _best_shift(machine: Any, given: Given, pair: Judged) -> float:
    """The constant that, added to the decision values, makes the hinge loss on all rows of the pair least; zero if that is as good."""
    y = given.y[pair.rows]
    weight = np.ones(y.size) if given.weight is None else given.weight[pair.rows]
    by_class = compute_class_weight(getattr(machine, "class_weight", None), classes=machine.classes_, y=y, sample_weight=weight)
    oracle = LossOracle(Hinge(), pair.sign, weight * by_class[(pair.sign > 0).astype(int)])
    values = decisions(machine, given.part(pair.rows, pair.kept))[:, None]
    shift = float(oracle.intercept(values, middle=True)[0])
    return shift if oracle.risk(values + shift)[0] < oracle.risk(values)[0] else 0.0


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
