"""SVR and NuSVR."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin
from sklearn.callback import with_callbacks
from sklearn.utils._param_validation import Interval

from slimsvm.estimators.base import KernelMachine
from slimsvm.estimators.docs import described
from slimsvm.gram import Gram, make_gram
from slimsvm.problems.dual_qp import DualQP, nu_regression, regression
from slimsvm.rows import MemoryRows

Array = NDArray[Any]


class KernelRegressor(RegressorMixin, KernelMachine):
    """What SVR and NuSVR share."""

    def _problem(self, gram: Gram, target: Array, weight: Array) -> DualQP:
        raise TypeError("A subclass says which problem it solves.")

    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> KernelRegressor:
        """Train on rows X with targets y.

        Parameters
        ----------
        X : array, CSR matrix or DataFrame of shape (n_samples, n_features), or (n_samples, n_samples) kernel values
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
        y = np.asarray(y, np.float64)
        used = np.flatnonzero(weight > 0)
        start = None
        if self._start_from_last_fit(MemoryRows(X, y, weight)):
            coef = np.zeros(X.shape[0])
            coef[self.support_] = self.dual_coef_[0]
            start = np.concatenate([np.maximum(coef[used], 0.0), np.maximum(-coef[used], 0.0)])
        with self._fitting() as fit:
            operand = self._prepared(X, weight, used)
            problem = self._problem(
                make_gram(operand, self._cache_bytes, fit.threads), y[used], weight[used]
            )
            result = self._solve(problem, fit, fit.limits, start)
        coef = problem.coef(result.model.a)
        support = np.flatnonzero(coef)
        self.n_support_ = np.array([support.size], np.int32)
        intercept = -(result.model.level[0] + result.model.level[1]) / 2
        self._store_support(X, used[support], coef[None, support], np.array([intercept]))
        self.n_iter_ = result.n_iter
        self._report([result])
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


@described
class SVR(KernelRegressor):
    """Support vector regression with kernels, solved exactly: errors below epsilon cost nothing.

    A drop-in for :class:`sklearn.svm.SVR`.

    Parameters
    ----------
    {kernel}
    C : float, default=1.0
        Weight of the errors: 1/2 |w|^2 + C sum_i weight_i max(0, |y_i - f(x_i)| - epsilon).
    epsilon : float, default=0.1
        Half the width of the tube.
    {solver}
    {limits}

    Attributes
    ----------
    {attributes}

    See Also
    --------
    NuSVR : The width of the tube is found from a share of the rows.

    Examples
    --------
    >>> import numpy as np
    >>> from slimsvm import SVR
    >>> X = np.linspace(0, 6, 50).reshape(-1, 1)
    >>> round(SVR(C=10.0).fit(X, np.sin(X[:, 0])).score(X, np.sin(X[:, 0])), 2)
    0.99
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **KernelMachine._parameter_constraints,
        "C": [Interval(Real, 0.0, None, closed="neither")],
        "epsilon": [Interval(Real, 0.0, None, closed="left")],
    }

    def __init__(
        self,
        *,
        kernel: Any = "rbf",
        degree: int = 3,
        gamma: float | str = "scale",
        coef0: float = 0.0,
        tol: float = 1e-3,
        C: float = 1.0,
        epsilon: float = 0.1,
        shrinking: bool = True,
        cache_size: float = 200,
        verbose: bool = False,
        max_iter: int = -1,
        max_time: float | None = None,
        warm_start: bool = False,
        n_jobs: int | None = None,
    ) -> None:
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.tol = tol
        self.C = C
        self.epsilon = epsilon
        self.shrinking = shrinking
        self.cache_size = cache_size
        self.verbose = verbose
        self.max_iter = max_iter
        self.max_time = max_time
        self.warm_start = warm_start
        self.n_jobs = n_jobs

    def _problem(self, gram: Gram, target: Array, weight: Array) -> DualQP:
        return regression(gram, target, float(self.C) * weight, float(self.epsilon))


@described
class NuSVR(KernelRegressor):
    """Support vector regression where nu bounds the share of rows outside the tube, and the tube's width is found.

    A drop-in for :class:`sklearn.svm.NuSVR`.

    Parameters
    ----------
    nu : float in (0, 1], default=0.5
        Bound on the share of rows outside the tube.
    C : float, default=1.0
        Weight of the errors.
    {kernel}
    {solver}
    {limits}

    Attributes
    ----------
    {attributes}

    See Also
    --------
    SVR : The width of the tube is given.

    Examples
    --------
    >>> import numpy as np
    >>> from slimsvm import NuSVR
    >>> X = np.linspace(0, 6, 50).reshape(-1, 1)
    >>> round(NuSVR(C=10.0).fit(X, np.sin(X[:, 0])).score(X, np.sin(X[:, 0])), 2)
    1.0
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **KernelMachine._parameter_constraints,
        "C": [Interval(Real, 0.0, None, closed="neither")],
        "nu": [Interval(Real, 0.0, 1.0, closed="right")],
    }

    def __init__(
        self,
        *,
        nu: float = 0.5,
        C: float = 1.0,
        kernel: Any = "rbf",
        degree: int = 3,
        gamma: float | str = "scale",
        coef0: float = 0.0,
        shrinking: bool = True,
        tol: float = 1e-3,
        cache_size: float = 200,
        verbose: bool = False,
        max_iter: int = -1,
        max_time: float | None = None,
        warm_start: bool = False,
        n_jobs: int | None = None,
    ) -> None:
        self.nu = nu
        self.C = C
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.shrinking = shrinking
        self.tol = tol
        self.cache_size = cache_size
        self.verbose = verbose
        self.max_iter = max_iter
        self.max_time = max_time
        self.warm_start = warm_start
        self.n_jobs = n_jobs

    def _problem(self, gram: Gram, target: Array, weight: Array) -> DualQP:
        return nu_regression(gram, target, float(self.C) * weight, float(self.nu))
