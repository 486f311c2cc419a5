"""OneClassSVM."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import OutlierMixin
from sklearn.callback import with_callbacks
from sklearn.utils._param_validation import Interval

from slimsvm.estimators.base import NO_TARGET, KernelMachine
from slimsvm.estimators.docs import described
from slimsvm.gram import make_gram
from slimsvm.problems.dual_qp import one_class
from slimsvm.rows import MemoryRows

Array = NDArray[Any]


@described
class OneClassSVM(OutlierMixin, KernelMachine):
    """The region where the rows are: a machine for novelty detection.

    A drop-in for :class:`sklearn.svm.OneClassSVM`.

    Parameters
    ----------
    {kernel}
    nu : float in (0, 1], default=0.5
        Bounds the share of training rows outside the region from above, and that of support vectors from below.
    {solver}
    {limits}

    Attributes
    ----------
    {attributes}
    offset_ : float
        The raw scores minus this are the decision function.

    References
    ----------
    .. [1] B. Schoelkopf et al., "Estimating the support of a high-dimensional distribution", 2001.

    Examples
    --------
    >>> from slimsvm import OneClassSVM
    >>> OneClassSVM(gamma=0.5, nu=0.3).fit([[0.0], [0.4], [0.5], [0.6], [1.0]]).predict([[0.5], [9.0]])
    array([ 1, -1])
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **KernelMachine._parameter_constraints,
        "nu": [Interval(Real, 0.0, 1.0, closed="right")],
    }

    def __init__(
        self,
        *,
        kernel: Any = "rbf",
        degree: int = 3,
        gamma: float | str = "scale",
        coef0: float = 0.0,
        tol: float = 1e-3,
        nu: float = 0.5,
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
        self.nu = nu
        self.shrinking = shrinking
        self.cache_size = cache_size
        self.verbose = verbose
        self.max_iter = max_iter
        self.max_time = max_time
        self.warm_start = warm_start
        self.n_jobs = n_jobs

    @with_callbacks
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> OneClassSVM:
        """Find the region of the rows X.

        Parameters
        ----------
        X : array, CSR matrix or DataFrame of shape (n_samples, n_features), or (n_samples, n_samples) kernel values
            Training rows.
        y : ignored
            Here for scikit-learn's conventions.
        sample_weight : array of shape (n_samples,), optional
            Zero removes a row, an integer repeats it.

        Returns
        -------
        self
        """
        X, _, weight = self._checked(X, NO_TARGET, sample_weight)
        used = np.flatnonzero(weight > 0)
        start = None
        if self._start_from_last_fit(MemoryRows(X, weight=weight)):
            start = np.zeros(X.shape[0])
            start[self.support_] = self.dual_coef_[0]
            start = start[used]
        with self._fitting() as fit:
            operand = self._prepared(X, weight, used)
            problem = one_class(
                make_gram(operand, self._cache_bytes, fit.threads), weight[used], float(self.nu)
            )
            result = self._solve(problem, fit, fit.limits, start)
        a = result.model.a
        support = np.flatnonzero(a)
        self.n_support_ = np.array([support.size], np.int32)
        self._store_support(X, used[support], a[None, support], np.array([-result.model.level[0]]))
        self.offset_ = -self.intercept_
        self.n_iter_ = result.n_iter
        self._report([result])
        return self

    def decision_function(self, X: Any) -> Array:
        """Signed distance from the border: positive inside, exactly zero for rows on it (within rounding).

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)
            New rows.

        Returns
        -------
        array of shape (n_samples,)
        """
        values = self._outputs(X)[:, 0]
        values[np.abs(values) <= 1e-11 * np.abs(self.offset_)] = (
            0.0  # free support vectors lie on the border: not a matter of rounding
        )
        return values

    def score_samples(self, X: Any) -> Array:
        """The decision function before the offset is taken off.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)
            New rows.

        Returns
        -------
        array of shape (n_samples,)
        """
        return self.decision_function(X) + self.offset_

    def predict(self, X: Any) -> Array:
        """+1 for rows inside, -1 for those outside.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)
            New rows.

        Returns
        -------
        array of shape (n_samples,)
        """
        return np.where(self.decision_function(X) >= 0, 1, -1)
