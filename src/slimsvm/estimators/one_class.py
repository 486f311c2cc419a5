"""OneClassSVM."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import OutlierMixin

from slimsvm.declarations import Attribute, attribute, declared, of_new_rows, parameter
from slimsvm.ending import Ending
from slimsvm.estimators.dual import DualEstimator
from slimsvm.estimators.fitting import with_callbacks
from slimsvm.estimators.parameters import NU, GammaLike, KernelLike, MatrixLike, shared
from slimsvm.gram import make_gram
from slimsvm.problems.dual_qp import one_class
from slimsvm.run import Result
from slimsvm.training import Data, Fit

Array = NDArray[Any]


@declared
class OneClassSVM(OutlierMixin, DualEstimator):
    """The region where the rows are: novelty detection.

    A drop-in for :class:`sklearn.svm.OneClassSVM`.

    Parameters
    ----------
    nu : float in (0, 1]
        Bounds the share of training rows outside the region from above, and that of support
        vectors from below.

    Attributes
    ----------
    offset_
        The raw scores minus this are the decision function.

    References
    ----------
    .. [1] B. Schoelkopf et al., "Estimating the support of a high-dimensional distribution", 2001.

    Examples
    --------
    >>> from slimsvm import OneClassSVM
    >>> rows = [[0.0], [0.4], [0.5], [0.6], [1.0]]
    >>> OneClassSVM(gamma=0.5, nu=0.3).fit(rows).predict([[0.5], [9.0]])
    array([ 1, -1])
    """

    kernel: KernelLike = shared("kernel")
    degree: int = shared("degree")
    gamma: GammaLike = shared("gamma")
    coef0: float = shared("coef0")
    tol: float = shared("tol")
    nu: float = parameter(0.5, NU)
    shrinking: bool = shared("shrinking")
    cache_size: float = shared("cache_size")
    verbose: bool = shared("verbose")
    max_iter: int = shared("max_iter")
    max_time: float | None = shared("max_time")
    warm_start: bool = shared("warm_start")
    n_jobs: int | None = shared("n_jobs")

    fitted: ClassVar[tuple[Attribute, ...]] = (attribute("offset_", "float", ("n_outputs",)),)
    _takes_target: ClassVar[bool] = False
    _as_libsvm: ClassVar[bool] = True

    @with_callbacks
    def fit(self, X: MatrixLike, y: Any = None, sample_weight: ArrayLike | None = None) -> Self:
        """Find the region of the rows X.

        Parameters
        ----------
        X : array, CSR matrix or DataFrame of shape (n_samples, n_features)
            Training rows; for a precomputed kernel the values of all pairs of them.
        y : ignored
            Here for scikit-learn's conventions.
        sample_weight : array of shape (n_samples,), optional
            Zero removes a row, an integer repeats it.

        Returns
        -------
        self
        """
        return self._fit(X, None, sample_weight)

    def _solved(self, data: Data, fit: Fit) -> Result:
        last = self._last_coef(data, None)
        start = None if last is None else last[0, data.used]
        gram = make_gram(data.rows, self._cache_bytes, fit.threads)
        return self._decomposed(
            one_class(gram, data.weight, float(self.nu)), fit, fit.limits, start
        )

    def _concluded(self, data: Data, solved: Result, fit: Fit) -> Ending:
        self._hold(data, solved.model.a[None, :], None, np.array([-solved.model.level[0]]))
        self.offset_, self.n_iter_ = -self.intercept_, solved.n_iter
        return self._ending([solved], fit)

    @of_new_rows()
    def decision_function(self, X: MatrixLike) -> Array:
        """Signed distance from the border: positive inside, exactly zero for rows on it."""
        return self._from_border(self._outputs(X))

    def _from_border(self, outputs: Array) -> Array:
        """Free support vectors lie on the border: not a matter of rounding."""
        values = outputs[:, 0]
        return np.where(np.abs(values) <= 1e-11 * np.abs(self.offset_), 0.0, values)

    @of_new_rows()
    def score_samples(self, X: MatrixLike) -> Array:
        """The decision function before the offset is taken off."""
        return self.decision_function(X) + self.offset_

    @of_new_rows()
    def predict(self, X: MatrixLike) -> Array:
        """+1 for rows inside, -1 for those outside."""
        return self._predicted(self._outputs(X))

    def _predicted(self, outputs: Array) -> Array:
        """Signs from decision values."""
        return np.where(self._from_border(outputs) >= 0, 1, -1)
