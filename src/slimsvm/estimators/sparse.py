"""SparseSVC and SparseSVR: machines with as few vectors as you say."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.callback import with_callbacks
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.multiclass import _ovr_decision_function
from sklearn.utils.validation import check_is_fitted

from slimsvm.estimators.classification import class_factors, encoded, voted
from slimsvm.estimators.docs import described
from slimsvm.estimators.sparse_base import ALL, BASES, SparseMachine
from slimsvm.estimators.sparse_certificate import certified
from slimsvm.losses import LOSSES, Loss
from slimsvm.run import Certificate

Array = NDArray[Any]
AUTO_FRACTION = 0.1  # of the rows is held out when n_basis='auto' and nothing else is said


@described
class SparseSVC(ClassifierMixin, SparseMachine):
    """Support vector classification with a small basis that is learned: as accurate as thousands of support vectors, much faster to use.

    The function is f(x) = sum_j coef_j k(b_j, x) + intercept with n_basis vectors b_j, shared by all classes (one-vs-rest).

    Parameters
    ----------
    n_basis : int or 'auto', default=100
        Number of basis vectors. 'auto' holds a tenth of the rows out, looks at growing sizes up to max_basis, and takes the smallest within
        accuracy_loss of the best.
    C : float, default=1.0
        Weight of the errors: 1/2 |w|^2 + C sum_i weight_i loss(y_i, f(x_i)).
    {kernel}
    loss : {{'squared_hinge', 'hinge', 'smooth_hinge', 'least_squares'}}, default='squared_hinge'
        'hinge' is trained by cutting planes, the others by Newton's method.
    {sparse}

    Attributes
    ----------
    {sparse_attributes}
    classes_ : array
        The labels, sorted.
    pairwise_ : bool
        Only on what :func:`slimsvm.compress` made of a one-vs-one machine, and True there: the outputs are pairs of classes, which vote.

    See Also
    --------
    SVC : The exact machine.

    References
    ----------
    .. [1] T. Joachims, C.-N. Yu, "Sparse kernel SVMs via cutting-plane training", 2009.
    .. [2] M. Wu, B. Schoelkopf, G. Bakir, "A direct method for building sparse kernel learning algorithms", 2006.

    Examples
    --------
    >>> from slimsvm import SparseSVC
    >>> from slimsvm.datasets import checkers
    >>> X, y = checkers(2000, seed=0)
    >>> model = SparseSVC(n_basis=30, C=10.0, gamma=5.0, random_state=0).fit(X, y)
    >>> model.basis_.shape
    (30, 2)
    >>> model.score(X, y) > 0.9
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **SparseMachine._parameter_constraints,
        "loss": [StrOptions({"squared_hinge", "hinge", "smooth_hinge", "least_squares"})],
        "class_weight": [StrOptions({"balanced"}), dict, None],
    }

    def __init__(
        self,
        n_basis: int | str = 100,
        *,
        C: float = 1.0,
        kernel: Any = "rbf",
        gamma: float | str = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        loss: str = "squared_hinge",
        basis: Any = "pursuit",
        refine: bool | str = "auto",
        fit_intercept: bool = True,
        class_weight: Any = None,
        tol: float = 1e-3,
        max_iter: int = 1000,
        max_time: float | None = None,
        max_memory: float | None = None,
        max_basis: int = 500,
        accuracy_loss: float = 0.005,
        validation_fraction: float | None = None,
        warm_start: bool = False,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        self.n_basis = n_basis
        self.C = C
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.loss = loss
        self.basis = basis
        self.refine = refine
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.tol = tol
        self.max_iter = max_iter
        self.max_time = max_time
        self.max_memory = max_memory
        self.max_basis = max_basis
        self.accuracy_loss = accuracy_loss
        self.validation_fraction = validation_fraction
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def _loss(self) -> Loss:
        return LOSSES[self.loss]()

    def _score(self, scores: Array, target: Array, weight: Array) -> float:
        right = (
            (scores[:, 0] > 0) == (target[:, 0] > 0)
            if target.shape[1] == 1
            else scores.argmax(axis=1) == target.argmax(axis=1)
        )
        return float(np.average(right, weights=weight))

    def _targets(self, label: Array, n_classes: int) -> Array:
        """One column of -1 and +1 for two classes, else one for each class."""
        if n_classes == 2:
            return np.where(label == 1, 1.0, -1.0)[:, None]
        return np.where(label[:, None] == np.arange(n_classes), 1.0, -1.0)

    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> SparseSVC:
        """Train on rows X with labels y.

        Parameters
        ----------
        X : array, CSR matrix or DataFrame of shape (n_samples, n_features)
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
        if used.size < label.size:
            X, label, weight = X[used], label[used], weight[used]
        weights = class_factors(
            self.class_weight, classes=classes, y=classes[label], sample_weight=weight
        )
        plain, weight = weight, weight * weights[label]
        target, held_out = self._targets(label, classes.size), None
        fraction = self.validation_fraction or (AUTO_FRACTION if self.n_basis == "auto" else None)
        if fraction is not None:
            stays = self._split(label, classes.size, fraction)
            if not stays.all():
                held_out = X[~stays], target[~stays], weight[~stays]
                X, target, weight, plain = X[stays], target[stays], weight[stays], plain[stays]
        self.classes_ = classes
        self.__dict__.pop("pairwise_", None)  # of a compressed machine that is trained anew
        self._train(X, target, weight, held_out, plain)
        return self

    def _split(self, label: Array, n_classes: int, fraction: float) -> Array:
        """Which rows stay for training: of every class all but the fraction, and at least one."""
        rng = check_random_state(self.random_state)
        stays = np.ones(label.size, bool)
        for c in range(n_classes):
            own = rng.permutation(np.flatnonzero(label == c))
            stays[own[: min(own.size - 1, round(fraction * own.size))]] = False
        return stays

    def decision_function(self, X: Any) -> Array:
        """Decision values.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)
            New rows.

        Returns
        -------
        array of shape (n_samples,) for two classes, else (n_samples, n_classes)
        """
        values = self._outputs(X)
        if len(self.classes_) == 2:
            return values[:, 0]
        if getattr(self, "pairwise_", False):
            return np.asarray(_ovr_decision_function(values < 0, -values, len(self.classes_)))
        return values

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
        if len(self.classes_) == 2:
            label = (values[:, 0] > 0).astype(int)
        elif getattr(self, "pairwise_", False):
            label = voted(values, len(self.classes_))
        else:
            label = values.argmax(axis=1)
        return np.asarray(self.classes_[label])

    def certify(
        self, X: Any, y: Any, sample_weight: Any = None, *, max_time: float | None = None
    ) -> Certificate:
        """How far this machine is, at most, from the exact one with the same loss, on these rows.

        Takes the kernel values among all rows that are not safely on their side; the time that takes is printed first.

        Parameters
        ----------
        X, y, sample_weight
            The rows it was trained on.
        max_time : float, optional
            Limit in seconds; beyond, the gap is infinite, with a warning.

        Returns
        -------
        Certificate
            ``gap``, and ``violation``, the gap as a share of the objective.
        """
        check_is_fitted(self)
        if getattr(self, "pairwise_", False):
            raise ValueError(
                "A machine compressed from one-vs-one pairs has no problem of its own to certify; fit a SparseSVC on the rows."
            )
        X, label, weight = self._given_again(X, y, sample_weight)
        return certified(self, X, self._targets(label, len(self.classes_)), weight, max_time)

    def _given_again(self, X: Any, y: Any, sample_weight: Any) -> tuple[Any, Array, Array]:
        X, y, weight = self._checked(X, y, sample_weight, reset=False)
        known = np.isin(y, self.classes_)
        if not known.all():
            raise ValueError(
                f"y has the label {np.asarray(y)[~known].tolist()[0]!r}, which is not one of the classes {self.classes_.tolist()}."
            )
        label, used = np.searchsorted(self.classes_, y), weight > 0
        weights = class_factors(
            self.class_weight,
            classes=self.classes_,
            y=np.asarray(y)[used],
            sample_weight=weight[used],
        )
        return X[used], label[used], weight[used] * weights[label[used]]


@described
class SparseSVR(RegressorMixin, SparseMachine):
    """Support vector regression with a small basis that is learned.

    Parameters
    ----------
    n_basis : int or 'auto', default=100
        Number of basis vectors. 'auto' holds a tenth of the rows out, looks at growing sizes up to max_basis, and takes the smallest within
        accuracy_loss (of R^2) of the best.
    C : float, default=1.0
        Weight of the errors: 1/2 |w|^2 + C sum_i weight_i loss(y_i, f(x_i)).
    epsilon : float, default=0.1
        Half the width of the tube in which errors cost nothing.
    {kernel}
    loss : {{'squared_epsilon_insensitive', 'epsilon_insensitive', 'least_squares'}}, default='squared_epsilon_insensitive'
        'epsilon_insensitive' is trained by cutting planes, the others by Newton's method.
    {sparse}

    Attributes
    ----------
    {sparse_attributes}

    See Also
    --------
    SVR : The exact machine.

    Examples
    --------
    >>> import numpy as np
    >>> from slimsvm import SparseSVR
    >>> X = np.linspace(0, 6, 200).reshape(-1, 1)
    >>> model = SparseSVR(n_basis=8, C=10.0, epsilon=0.01, random_state=0).fit(X, np.sin(X[:, 0]))
    >>> round(model.score(X, np.sin(X[:, 0])), 2)
    1.0
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **SparseMachine._parameter_constraints,
        "loss": [
            StrOptions({"squared_epsilon_insensitive", "epsilon_insensitive", "least_squares"})
        ],
        "basis": [
            StrOptions({*BASES, ALL} - {"margin"}),
            "array-like",
            "sparse matrix",
        ],  # a small |f| says nothing of a regression
        "epsilon": [Interval(Real, 0.0, None, closed="left")],
    }

    def __init__(
        self,
        n_basis: int | str = 100,
        *,
        C: float = 1.0,
        epsilon: float = 0.1,
        kernel: Any = "rbf",
        gamma: float | str = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        loss: str = "squared_epsilon_insensitive",
        basis: Any = "pursuit",
        refine: bool | str = "auto",
        fit_intercept: bool = True,
        tol: float = 1e-3,
        max_iter: int = 1000,
        max_time: float | None = None,
        max_memory: float | None = None,
        max_basis: int = 500,
        accuracy_loss: float = 0.005,
        validation_fraction: float | None = None,
        warm_start: bool = False,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        self.n_basis = n_basis
        self.C = C
        self.epsilon = epsilon
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.loss = loss
        self.basis = basis
        self.refine = refine
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_iter = max_iter
        self.max_time = max_time
        self.max_memory = max_memory
        self.max_basis = max_basis
        self.accuracy_loss = accuracy_loss
        self.validation_fraction = validation_fraction
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def _loss(self) -> Loss:
        return (
            LOSSES[self.loss]()
            if self.loss == "least_squares"
            else LOSSES[self.loss](epsilon=float(self.epsilon))
        )  # type: ignore[call-arg]

    def _score(self, scores: Array, target: Array, weight: Array) -> float:
        mean = np.average(target[:, 0], weights=weight)
        spread = float(weight @ np.square(target[:, 0] - mean))
        return (
            1.0 - float(weight @ np.square(target[:, 0] - scores[:, 0])) / spread
            if spread > 0
            else 0.0
        )

    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> SparseSVR:
        """Train on rows X with targets y.

        Parameters
        ----------
        X : array, CSR matrix or DataFrame of shape (n_samples, n_features)
            Training rows.
        y : array of shape (n_samples,)
            Targets.
        sample_weight : array of shape (n_samples,), optional
            Scales C for each row. Zero removes the row, an integer repeats it.

        Returns
        -------
        self
        """
        X, y, weight = self._checked(X, y, sample_weight, y_numeric=True)
        target, used, held_out = (
            np.asarray(y, np.float64)[:, None],
            np.flatnonzero(weight > 0),
            None,
        )
        if used.size < weight.size:
            X, target, weight = X[used], target[used], weight[used]
        fraction = self.validation_fraction or (AUTO_FRACTION if self.n_basis == "auto" else None)
        if fraction is not None and used.size > 1:
            order = check_random_state(self.random_state).permutation(used.size)
            n_held = min(used.size - 1, round(fraction * used.size))
            held, stays = np.sort(order[:n_held]), np.sort(order[n_held:])
            if n_held:
                held_out = X[held], target[held], weight[held]
                X, target, weight = X[stays], target[stays], weight[stays]
        self._train(X, target, weight, held_out, weight)
        return self

    def predict(self, X: Any) -> Array:
        """Targets of new rows.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)
            New rows.

        Returns
        -------
        array of shape (n_samples,)
        """
        return self._outputs(X)[:, 0]

    def certify(
        self, X: Any, y: Any, sample_weight: Any = None, *, max_time: float | None = None
    ) -> Certificate:
        """How far this machine is, at most, from the exact one with the same loss, on these rows.

        Parameters
        ----------
        X, y, sample_weight
            The rows it was trained on.
        max_time : float, optional
            Limit in seconds; beyond, the gap is infinite, with a warning.

        Returns
        -------
        Certificate
            ``gap``, and ``violation``, the gap as a share of the objective.
        """
        check_is_fitted(self)
        X, y, weight = self._checked(X, y, sample_weight, y_numeric=True, reset=False)
        used = weight > 0
        return certified(
            self, X[used], np.asarray(y, np.float64)[used, None], weight[used], max_time
        )
