"""SVC and NuSVC."""

from __future__ import annotations

import warnings
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.callback import with_callbacks
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.multiclass import _ovr_decision_function, check_classification_targets

from slimsvm.estimators.base import Fit, KernelMachine
from slimsvm.estimators.docs import described
from slimsvm.estimators.pairs import Pair, pair_grams
from slimsvm.gram import Gram
from slimsvm.problems.dual_qp import DualQP, classification, nu_classification
from slimsvm.rows import MemoryRows
from slimsvm.run import Limits, Result
from slimsvm.threads import parallel

Array = NDArray[Any]


def encoded(y: Any, weight: Array) -> tuple[Array, Array, Array]:
    """Classes, the number of the class of each row, and the rows that count; classes whose rows all have weight zero are not there."""
    classes, label = sorted_labels(y, "y")
    check_classification_targets(y)
    used = np.flatnonzero(weight > 0)
    present = np.unique(label[used])
    if present.size < 2:
        what = "samples" if used.size == label.size else "samples with positive weights"
        raise ValueError(
            f"The number of classes has to be greater than one; got {present.size} class: all {what} belong to class "
            f"{classes[present].tolist()[0]!r}. Give rows of at least two classes."
        )
    if present.size < classes.size:
        label = np.searchsorted(present, label)  # meaningful for the used rows only
        classes = classes[present]
    return classes, label, used


def sorted_labels(y: Any, name: str) -> tuple[Array, Array]:
    """The distinct labels in order, and the number of each label; complains about labels without an order, such as words beside numbers."""
    try:
        labels = np.unique(y)
        return labels, np.searchsorted(
            labels, y
        )  # labels are few: quicker than the sort behind return_inverse
    except TypeError as error:
        raise ValueError(
            f"The labels in {name} cannot be put in order ({error}). Use only numbers or only strings, and leave out rows without a label."
        ) from error


def class_factors(
    class_weight: Any, *, classes: Array, y: Array, sample_weight: Array | None = None
) -> Array:
    """Factor of C for each class: finite, not negative, and positive for two classes at least."""
    factors = np.asarray(
        compute_class_weight(class_weight, classes=classes, y=y, sample_weight=sample_weight),
        np.float64,
    )
    wrong = np.flatnonzero(~((factors >= 0.0) & (factors < np.inf)))
    if wrong.size:
        label, factor = classes.tolist()[wrong[0]], float(factors[wrong[0]])
        raise ValueError(
            f"The class_weight of class {label!r} is {factor:g}; weights must be finite and not negative."
        )
    if np.count_nonzero(factors) < 2:
        raise ValueError(
            f"class_weight={class_weight!r} leaves fewer than two of the classes {classes.tolist()} with a positive weight."
        )
    return factors


def voted(values: Array, n_classes: int) -> Array:
    """The class with most votes of the pairs; the first on ties, as LIBSVM."""
    votes = np.zeros((values.shape[0], n_classes), np.int64)
    for column, (i, j) in enumerate(zip(*np.triu_indices(n_classes, 1), strict=True)):
        first = values[:, column] > 0
        votes[:, i] += first
        votes[:, j] += ~first
    return np.argmax(votes, axis=1)


def pair_values(values: Array, n_classes: int, shape: str) -> Array:
    """What ``decision_function`` returns of the outputs of all pairs: one column a class, or with 'ovo' one a pair; two classes: one in all."""
    if n_classes == 2:
        return np.asarray(values[:, 0])
    return (
        np.asarray(_ovr_decision_function(values < 0, -values, n_classes))
        if shape == "ovr"
        else values
    )


def pair_labels(values: Array, n_classes: int, shape: str, break_ties: bool) -> Array:
    """The class of every row from the outputs of all pairs: by votes, equal ones by the sums of the decision values if so wished."""
    if n_classes == 2:
        return (values[:, 0] > 0).astype(int)
    if break_ties:
        if shape == "ovo":
            raise ValueError("break_ties must be False when decision_function_shape is 'ovo'")
        return np.argmax(_ovr_decision_function(values < 0, -values, n_classes), axis=1)
    return voted(values, n_classes)


class KernelClassifier(ClassifierMixin, KernelMachine):
    """What SVC and NuSVC share: classes, weights, pairs, votes."""

    classes_: Array
    class_weight_: Array

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **KernelMachine._parameter_constraints,
        "class_weight": [StrOptions({"balanced"}), dict, None],
        "decision_function_shape": [StrOptions({"ovr", "ovo"})],
        "break_ties": ["boolean"],
        "random_state": ["random_state"],
    }

    def _problem(self, gram: Gram, sign: Array, weight: Array, names: tuple[Any, Any]) -> DualQP:
        """The dual problem of one pair."""
        raise TypeError("A subclass says which problem it solves.")

    def _finished(self, result: Result) -> tuple[Array, float]:
        """The dual point and the intercept of a solved pair, in units of the decision function."""
        return result.model.a, -result.model.level[0]

    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> KernelClassifier:
        """Train on rows X with labels y.

        Parameters
        ----------
        X : array, CSR matrix or DataFrame of shape (n_samples, n_features), or (n_samples, n_samples) kernel values
            Training rows.
        y : array of shape (n_samples,)
            Labels, numbers or strings.
        sample_weight : array of shape (n_samples,), optional
            Scales C for each row. Zero removes the row, an integer repeats it.

        Returns
        -------
        self
        """
        X, y, weight = self._checked(X, y, sample_weight)
        classes, label, used = encoded(y, weight)
        # several classes: sorted, so that the rows of a class stand together; two: as they are, without a copy
        order = used if classes.size == 2 else used[np.argsort(label[used], kind="stable")]
        label = label[order]
        weights = class_factors(
            self.class_weight, classes=classes, y=classes[label], sample_weight=weight[order]
        )
        resume = self._start_from_last_fit(MemoryRows(X, label, weight)) and classes.size == len(
            self.classes_
        )
        with self._fitting() as fit:
            operand = self._prepared(X, weight, order)
            pairs = [Pair(i, j) for i in range(classes.size) for j in range(i + 1, classes.size)]
            if classes.size == 2:
                pairs = [Pair(1, 0)]  # binary: positive is the second class
            starts = [self._first_point(pair, order, label, resume) for pair in pairs]
            bounds = weight[order] * weights[label]
            results = self._solve_pairs(
                pair_grams(operand, label, pairs, self._cache_bytes, fit.threads),
                label,
                bounds,
                classes,
                fit,
                starts,
            )
        self.classes_, self.class_weight_ = classes, weights
        self._collect(X, order, label, pairs, results)
        self._report(results)
        return self

    def _solve_pairs(
        self,
        grams: Any,
        label: Array,
        bounds: Array,
        classes: Array,
        fit: Fit,
        starts: list[Array | None],
    ) -> list[Result]:
        """All pairs; small ones side by side, one a thread."""
        results: list[Any] = [None] * len(grams)

        def solve(k: int, limits: Limits) -> None:
            pair, rows = grams.pairs[k], grams.rows(k)
            sign = np.where(label[rows] == pair.positive, 1.0, -1.0)
            names = tuple(classes[[pair.positive, pair.negative]].tolist())
            results[k] = self._solve(
                self._problem(grams.gram(k), sign, bounds[rows], names), fit, limits, starts[k]
            )
            grams.done(k)

        small, large = grams.split()
        for at, k in enumerate(large):
            solve(k, fit.limits.part(len(large) - at + len(small)))
        at_once = 1 if fit.watchers else fit.threads
        parallel(
            lambda t: solve(small[t], fit.limits.part(len(small) - t, at_once)), len(small), at_once
        )
        return results

    def _collect(
        self, X: Any, order: Array, label: Array, pairs: list[Pair], results: list[Result]
    ) -> None:
        """LIBSVM's layout: support vectors sorted by class, one row of coefficients fewer than classes."""
        n_classes = len(self.classes_)
        points = [self._finished(result) for result in results]
        coef = np.zeros((n_classes - 1, order.size))
        for pair, (a, _) in zip(pairs, points, strict=True):
            rows = pair.rows(label)
            for own, other, sign in (
                (pair.positive, pair.negative, 1.0),
                (pair.negative, pair.positive, -1.0),
            ):
                mine = label[rows] == own
                line = 0 if n_classes == 2 else other - (other > own)
                coef[line, rows[mine]] = sign * a[mine]
        support = np.flatnonzero(np.any(coef != 0, axis=0))
        support = support[np.argsort(label[support], kind="stable")]
        self.n_support_ = np.bincount(label[support], minlength=n_classes).astype(np.int32)
        self._store_support(
            X, order[support], coef[:, support], np.array([intercept for _, intercept in points])
        )
        self.n_iter_ = np.array(
            [result.n_iter for result in results],
            np.int32 if max(r.n_iter for r in results) < 2**31 else np.int64,
        )

    def _fit_from(
        self, start: Array, X: Any, y: Any, sample_weight: Any = None
    ) -> KernelClassifier:
        """Fit that begins at a point of the dual problem, one value for each row of two classes; it is made feasible if it is not."""
        self._start = start
        try:
            return self.fit(X, y, sample_weight)
        finally:
            del self._start

    def _first_point(self, pair: Pair, order: Array, label: Array, resume: bool) -> Array | None:
        """Where the solver begins with a pair; None for the problem's own start."""
        given = getattr(self, "_start", None)
        if given is not None:
            return np.asarray(given[order][pair.rows(label)])
        return self._last_point(pair, order, label) if resume else None

    def _last_point(self, pair: Pair, order: Array, label: Array) -> Array:
        """The dual point of a pair in the last fit."""
        place = np.full(int(order.max()) + 1, -1)
        place[order] = np.arange(order.size)
        coef = np.zeros((self.dual_coef_.shape[0], order.size))
        coef[:, place[self.support_]] = np.abs(self.dual_coef_)
        rows = pair.rows(label)
        if self.dual_coef_.shape[0] == 1:
            return coef[0, rows]
        other = np.where(label[rows] == pair.positive, pair.negative, pair.positive)
        return coef[other - (other > label[rows]), rows]

    # -- prediction ---------------------------------------------------------------------------------------------------------------------

    def decision_function(self, X: Any) -> Array:
        """Decision values.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)
            New rows.

        Returns
        -------
        array of shape (n_samples,) for two classes, else (n_samples, n_classes) or, with decision_function_shape='ovo', one column a pair.
        """
        return pair_values(self._outputs(X), len(self.classes_), self.decision_function_shape)

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
        values = self._outputs(X)
        return self.classes_[
            pair_labels(
                values, len(self.classes_), self.decision_function_shape, bool(self.break_ties)
            )
        ]

    def _linear_weights(self) -> Array:
        if len(self.classes_) == 2:
            return super()._linear_weights()
        function = self._expansion()
        zero = np.zeros((1, self.n_features_in_))
        at_zero = function.decision_function(zero)
        return np.asarray((function.decision_function(np.eye(self.n_features_in_)) - at_zero).T)


@described
class SVC(KernelClassifier):
    """Support vector classification with kernels, solved exactly.

    A drop-in for :class:`sklearn.svm.SVC` that uses all cores, shows what it does, and says how far from the optimum it ended.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the errors: 1/2 |w|^2 + C sum_i weight_i max(0, 1 - y_i f(x_i)).
    {kernel}
    {solver}
    class_weight : dict or 'balanced', optional
        Factors of C for each class.
    {limits}
    decision_function_shape : {{'ovr', 'ovo'}}, default='ovr'
        Columns of the decision function for more than two classes: one a class, or one a pair.
    break_ties : bool, default=False
        Decide equal votes by the sums of the decision values.
    random_state : ignored
        Here for compatibility: nothing is random.

    Attributes
    ----------
    {attributes}
    classes_ : array
        The labels, sorted.
    class_weight_ : array
        Factor of C for each class.

    See Also
    --------
    NuSVC : The share of errors as the parameter instead of their weight.

    References
    ----------
    .. [1] T. Joachims, "Making large-scale SVM learning practical", 1999.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from slimsvm import SVC
    >>> X, y = load_iris(return_X_y=True)
    >>> model = SVC(C=10.0).fit(X, y)
    >>> round(model.score(X, y), 2)
    0.99
    >>> model.certificate_.holds
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **KernelClassifier._parameter_constraints,
        "C": [Interval(Real, 0.0, None, closed="neither")],
    }

    def __init__(
        self,
        *,
        C: float = 1.0,
        kernel: Any = "rbf",
        degree: int = 3,
        gamma: float | str = "scale",
        coef0: float = 0.0,
        shrinking: bool = True,
        tol: float = 1e-3,
        cache_size: float = 200,
        class_weight: Any = None,
        verbose: bool = False,
        max_iter: int = -1,
        max_time: float | None = None,
        decision_function_shape: str = "ovr",
        break_ties: bool = False,
        warm_start: bool = False,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.C = C
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.shrinking = shrinking
        self.tol = tol
        self.cache_size = cache_size
        self.class_weight = class_weight
        self.verbose = verbose
        self.max_iter = max_iter
        self.max_time = max_time
        self.decision_function_shape = decision_function_shape
        self.break_ties = break_ties
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _problem(self, gram: Gram, sign: Array, weight: Array, names: tuple[Any, Any]) -> DualQP:
        return classification(gram, sign, float(self.C) * weight)


@described
class NuSVC(KernelClassifier):
    """Support vector classification where nu bounds the share of margin errors from above and of support vectors from below.

    A drop-in for :class:`sklearn.svm.NuSVC`. A pair of classes for which nu is not feasible is trained at its largest feasible nu, with a
    warning that names both.

    Parameters
    ----------
    nu : float in (0, 1], default=0.5
        Bound on the shares.
    {kernel}
    {solver}
    class_weight : dict or 'balanced', optional
        Factors of the weights for each class.
    {limits}
    decision_function_shape : {{'ovr', 'ovo'}}, default='ovr'
        Columns of the decision function for more than two classes: one a class, or one a pair.
    break_ties : bool, default=False
        Decide equal votes by the sums of the decision values.
    random_state : ignored
        Here for compatibility: nothing is random.

    Attributes
    ----------
    {attributes}
    classes_ : array
        The labels, sorted.
    class_weight_ : array
        Factor of the weight for each class.

    See Also
    --------
    SVC : The weight of errors as the parameter.

    References
    ----------
    .. [1] B. Schoelkopf, A. Smola, R. Williamson, P. Bartlett, "New support vector algorithms", 2000.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from slimsvm import NuSVC
    >>> X, y = load_iris(return_X_y=True)
    >>> round(NuSVC(nu=0.1).fit(X, y).score(X, y), 2)
    0.99
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **KernelClassifier._parameter_constraints,
        "nu": [Interval(Real, 0.0, 1.0, closed="right")],
    }

    def __init__(
        self,
        *,
        nu: float = 0.5,
        kernel: Any = "rbf",
        degree: int = 3,
        gamma: float | str = "scale",
        coef0: float = 0.0,
        shrinking: bool = True,
        tol: float = 1e-3,
        cache_size: float = 200,
        class_weight: Any = None,
        verbose: bool = False,
        max_iter: int = -1,
        max_time: float | None = None,
        decision_function_shape: str = "ovr",
        break_ties: bool = False,
        warm_start: bool = False,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.nu = nu
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.shrinking = shrinking
        self.tol = tol
        self.cache_size = cache_size
        self.class_weight = class_weight
        self.verbose = verbose
        self.max_iter = max_iter
        self.max_time = max_time
        self.decision_function_shape = decision_function_shape
        self.break_ties = break_ties
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _problem(self, gram: Gram, sign: Array, weight: Array, names: tuple[Any, Any]) -> DualQP:
        largest = (
            2.0
            * min(float(weight[sign > 0].sum()), float(weight[sign < 0].sum()))
            / float(weight.sum())
        )
        nu = float(self.nu)
        if nu > largest:
            warnings.warn(
                f"nu={nu:g} is not feasible for the classes {names[0]!r} and {names[1]!r}; this pair is trained at nu={largest:.4g}, "
                "the largest that their weights allow. Choose a smaller nu, or balance the classes.",
                UserWarning,
                stacklevel=5,
            )
            nu = largest
        return nu_classification(gram, sign, weight, nu)

    def _finished(self, result: Result) -> tuple[Array, float]:
        """Divide by the margin: the levels of o are rho - b for positive rows and -rho - b for negative ones.

        At the largest feasible nu all rows of the lighter class are at their bound, and its level may lie anywhere beyond them: the border
        between the classes may move from the middle of the margin towards the lighter class, and once it has passed its last row nothing
        changes any more. The border is put halfway.
        """
        plus, minus = result.model.level
        if result.model.open[1]:
            minus = (3 * minus - plus) / 2
        elif result.model.open[0]:
            plus = (3 * plus - minus) / 2
        margin = (plus - minus) / 2
        if not margin > 1e-12:  # nu so small, or classes so alike, that no margin is left
            margin = 1.0
        return result.model.a / margin, -(plus + minus) / (2 * margin)
