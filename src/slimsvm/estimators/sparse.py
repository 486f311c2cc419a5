"""SparseSVC and SparseSVR: models with as few vectors as you say."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.callback import with_callbacks
from sklearn.utils._param_validation import StrOptions

from slimsvm.declarations import declared, parameter
from slimsvm.ending import Ending
from slimsvm.estimators.fitting import Classifier, Regressor
from slimsvm.estimators.parameters import (
    AT_LEAST_ONE,
    NOT_NEGATIVE,
    ClassWeight,
    GammaLike,
    KernelLike,
    shared,
)
from slimsvm.estimators.sparse_base import (
    ACCURACY,
    FRACTION,
    METRICS,
    SparseEstimator,
    basis_parameter,
)
from slimsvm.losses import LOSSES, Softmax
from slimsvm.models.sparse import SparseClasses
from slimsvm.multiclass import OneVsRest, class_factors
from slimsvm.run import Result
from slimsvm.solvers.path_points import accuracy, r_squared
from slimsvm.solvers.sparse_asked import MAX_ITER
from slimsvm.training import CUTTING_PLANE, Data, Fit

Array = NDArray[Any]


@declared
class SparseSVC(SparseClasses, SparseEstimator, Classifier):
    """Support vector classification with a small basis that is learned.

    As accurate as thousands of support vectors, much faster to use. The function is f(x) = sum_j
    coef_j k(b_j, x) + intercept with n_basis vectors b_j, shared by all classes (one-vs-rest).

    Parameters
    ----------
    n_basis : int or 'auto'
        Number of basis vectors. 'auto' holds a tenth of the rows out, looks at growing sizes up
        to max_basis, and takes the smallest within accuracy_loss of the best.
    loss : {'auto', 'logistic', 'squared_hinge', 'smooth_hinge', 'least_squares', 'hinge'}
        'logistic' is for a descent; of several classes it is the softmax, one joint problem, and
        :meth:`predict_proba` follows from it. 'hinge' is trained by cutting planes. 'auto' is
        'logistic' for a descent, otherwise 'squared_hinge'.

    See Also
    --------
    SVC : The exact solution.

    References
    ----------
    .. [1] T. Joachims, C.-N. Yu, "Sparse kernel SVMs via cutting-plane training", 2009.
    .. [2] M. Wu, B. Schoelkopf, G. Bakir, "A direct method for building sparse kernel learning
       algorithms", 2006.

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

    n_basis: int | Literal["auto"] = parameter(
        100, AT_LEAST_ONE, StrOptions({"auto"}), positional=True
    )
    C: float = shared("C")
    kernel: KernelLike = shared("kernel")
    gamma: GammaLike = shared("gamma")
    degree: int = shared("degree")
    coef0: float = shared("coef0")
    loss: str = parameter(
        "auto",
        StrOptions({"auto", "logistic", "squared_hinge", "hinge", "smooth_hinge", "least_squares"}),
    )
    basis: Any = basis_parameter(labels=True)
    metric: Any = parameter("auto", METRICS, "array-like", None)
    max_bytes: int | None = parameter(None, AT_LEAST_ONE, None)
    solver: Any = parameter(None, CUTTING_PLANE, None)
    refine: bool | str = parameter("auto", "boolean", StrOptions({"auto"}))
    fit_intercept: bool = shared("fit_intercept")
    class_weight: ClassWeight = shared("class_weight")
    tol: float = shared("tol")
    max_iter: int = shared("max_iter", MAX_ITER)
    max_time: float | None = shared("max_time")
    max_memory: float | None = shared("max_memory")
    max_basis: int = parameter(500, AT_LEAST_ONE)
    accuracy_loss: float = parameter(0.005, ACCURACY)
    validation_fraction: float | None = parameter(None, FRACTION, None)
    warm_start: bool = shared("warm_start")
    n_jobs: int | None = shared("n_jobs")
    random_state: Any = shared("random_state")
    verbose: bool = shared("verbose")

    scheme: ClassVar[Any] = OneVsRest
    _measure = staticmethod(accuracy)
    _same_as: ClassVar[str] = "SVC"

    def _loss(self, descends: bool, n_classes: int) -> Any:
        name = self.loss
        if name == "auto":
            name = "logistic" if descends else "squared_hinge"
        if name == "logistic" and not descends:
            raise ValueError(
                f"loss='logistic' is for vectors that are found by descent; got "
                f"basis={self.basis!r}, refine={self.refine!r}. Leave these two out, or use "
                "loss='squared_hinge'."
            )
        return Softmax() if name == "logistic" and n_classes > 2 else LOSSES[name]()

    def _targets(self, target: Array, n_classes: int) -> Array:
        return OneVsRest(n_classes).columns(target)

    def _given_again(self, X: Any, y: Any, sample_weight: Any) -> tuple[Any, Array, Array]:
        X, y, weight = self._checked(X, y, sample_weight, reset=False)
        known = np.isin(y, self.classes_)
        if not known.all():
            raise ValueError(
                f"y has the label {np.asarray(y)[~known].tolist()[0]!r}, which is not one of the "
                f"classes {self.classes_.tolist()}."
            )
        label, used = np.searchsorted(self.classes_, y), weight > 0
        about = {"y": np.asarray(y)[used], "sample_weight": weight[used]}
        factors = class_factors(self.class_weight, classes=self.classes_, **about)
        return X[used], label[used], weight[used] * factors[label[used]]

    def _concluded(self, data: Data, solved: Result, fit: Fit) -> Ending:
        self.classes_, self.class_weight_ = data.classes, data.factors
        self.__dict__.pop("pairwise_", None)  # of a compressed model that is trained anew
        return super()._concluded(data, solved, fit)

    @with_callbacks
    def partial_fit(
        self, X: Any, y: Any = None, classes: Any = None, sample_weight: Any = None
    ) -> Self:
        """Learn from a batch of rows once; a reservoir of rows that have passed is kept.

        What is learned is a model with n_basis vectors by the logistic loss (softmax), whatever
        ``loss`` is. After a ``fit`` it goes on from the fitted model.

        Parameters
        ----------
        X : array, CSR matrix or DataFrame of shape (n_samples, n_features)
            The next rows of the stream.
        y : array of shape (n_samples,)
            Their labels; new ones may come at any time.
        classes : array, optional
            Labels that will come, in any call.
        sample_weight : array of shape (n_samples,), optional
            How much each row counts beside the others. Zero removes the row.

        Returns
        -------
        self

        Examples
        --------
        >>> from slimsvm import SparseSVC
        >>> from slimsvm.datasets import checkers
        >>> X, y = checkers(4000, seed=0)
        >>> model = SparseSVC(50, gamma=5.0, random_state=0)
        >>> for first in range(0, 4000, 500):
        ...     model = model.partial_fit(X[first : first + 500], y[first : first + 500])
        >>> model.n_seen_, model.n_basis_, model.score(X, y) > 0.9
        (4000, 50, True)
        """
        return self._partial_fit(X, y, sample_weight, classes)


@declared
class SparseSVR(SparseEstimator, Regressor):
    """Support vector regression with a small basis that is learned.

    Parameters
    ----------
    n_basis : int or 'auto'
        Number of basis vectors. 'auto' holds a tenth of the rows out, looks at growing sizes up
        to max_basis, and takes the smallest within accuracy_loss (of R^2) of the best.
    epsilon : float
        Half the width of the tube in which errors cost nothing.
    loss : {'auto', 'squared_epsilon_insensitive', 'smooth_epsilon_insensitive', \
            'epsilon_insensitive', 'least_squares'}
        'smooth_epsilon_insensitive' grows linearly, with rounded edges: outliers count less.
        'epsilon_insensitive' is trained by cutting planes. 'auto' is 'squared_epsilon_insensitive'.

    See Also
    --------
    SVR : The exact solution.

    Examples
    --------
    >>> import numpy as np
    >>> from slimsvm import SparseSVR
    >>> X = np.linspace(0, 6, 200).reshape(-1, 1)
    >>> model = SparseSVR(n_basis=8, C=10.0, epsilon=0.01, random_state=0).fit(X, np.sin(X[:, 0]))
    >>> round(model.score(X, np.sin(X[:, 0])), 2)
    1.0
    """

    n_basis: int | Literal["auto"] = parameter(
        100, AT_LEAST_ONE, StrOptions({"auto"}), positional=True
    )
    C: float = shared("C")
    epsilon: float = parameter(0.1, NOT_NEGATIVE)
    kernel: KernelLike = shared("kernel")
    gamma: GammaLike = shared("gamma")
    degree: int = shared("degree")
    coef0: float = shared("coef0")
    loss: str = parameter(
        "auto",
        StrOptions(
            {
                "auto",
                "squared_epsilon_insensitive",
                "smooth_epsilon_insensitive",
                "epsilon_insensitive",
                "least_squares",
            }
        ),
    )
    basis: Any = basis_parameter(labels=False)
    metric: Any = parameter("auto", METRICS, "array-like", None)
    max_bytes: int | None = parameter(None, AT_LEAST_ONE, None)
    refine: bool | str = parameter("auto", "boolean", StrOptions({"auto"}))
    fit_intercept: bool = shared("fit_intercept")
    tol: float = shared("tol")
    max_iter: int = shared("max_iter", MAX_ITER)
    max_time: float | None = shared("max_time")
    max_memory: float | None = shared("max_memory")
    max_basis: int = parameter(500, AT_LEAST_ONE)
    accuracy_loss: float = parameter(0.005, ACCURACY)
    validation_fraction: float | None = parameter(None, FRACTION, None)
    warm_start: bool = shared("warm_start")
    n_jobs: int | None = shared("n_jobs")
    random_state: Any = shared("random_state")
    verbose: bool = shared("verbose")

    _measure = staticmethod(r_squared)
    _same_as: ClassVar[str] = "SVR"

    def _loss(self, descends: bool, n_classes: int) -> Any:
        name = "squared_epsilon_insensitive" if self.loss == "auto" else self.loss
        kind: Any = LOSSES[name]
        has_tube = any(own.name == "epsilon" for own in fields(kind))
        return kind(epsilon=float(self.epsilon)) if has_tube else kind()

    def _targets(self, target: Array, n_classes: int) -> Array:
        return target[:, None]

    @with_callbacks
    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn from a batch of rows once; a reservoir of rows that have passed is kept.

        What is learned is a model with n_basis vectors by the squared epsilon-insensitive loss,
        whatever ``loss`` is. After a ``fit`` it goes on from the fitted model.

        Parameters
        ----------
        X, y : as in fit
            The next rows of the stream, and their targets.
        sample_weight : array of shape (n_samples,), optional
            How much each row counts beside the others. Zero removes the row.

        Returns
        -------
        self
        """
        return self._partial_fit(X, y, sample_weight)

    def _given_again(self, X: Any, y: Any, sample_weight: Any) -> tuple[Any, Array, Array]:
        X, y, weight = self._checked(X, y, sample_weight, reset=False)
        used = weight > 0
        return X[used], np.asarray(y, np.float64)[used], weight[used]
