"""SVR and NuSVR."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from slimsvm.declarations import declared, parameter
from slimsvm.ending import Ending
from slimsvm.estimators.dual import DualEstimator
from slimsvm.estimators.fitting import Regressor
from slimsvm.estimators.parameters import (
    NOT_NEGATIVE,
    NU,
    POSITIVE_OR_INFINITE,
    GammaLike,
    KernelLike,
    shared,
)
from slimsvm.gram import Gram, make_gram
from slimsvm.problems.dual_qp import DualQP, nu_regression, regression
from slimsvm.run import Result
from slimsvm.training import Data, Fit

Array = NDArray[Any]


class DecomposedRegressor(DualEstimator, Regressor):
    """What SVR and NuSVR share: a variable for errors above, and one for errors below, each row."""

    _as_libsvm: ClassVar[bool] = True

    def _problem(self, gram: Gram, target: Array, weight: Array) -> DualQP:
        raise NotImplementedError

    def _solved(self, data: Data, fit: Fit) -> tuple[Array, Result]:
        given = np.zeros(data.X.shape[0])
        given[data.used] = data.target
        last, start = self._last_coef(data, given), None
        if last is not None:
            coef = last[0, data.used]
            start = np.concatenate([np.maximum(coef, 0.0), np.maximum(-coef, 0.0)])
        gram = make_gram(data.rows, self._cache_bytes, fit.threads)
        problem = self._problem(gram, data.target, data.weight)
        result = self._decomposed(problem, fit, fit.limits, start)
        return problem.coef(result.model.a), result

    def _concluded(self, data: Data, solved: tuple[Array, Result], fit: Fit) -> Ending:
        coef, result = solved
        intercept = -(result.model.level[0] + result.model.level[1]) / 2
        self._hold(data, coef[None, :], None, np.array([intercept]))
        self.n_iter_ = result.n_iter
        return self._ending([result], fit)


@declared
class SVR(DecomposedRegressor):
    """Support vector regression with kernels, solved exactly: errors below epsilon cost nothing.

    A drop-in for :class:`sklearn.svm.SVR`.

    Parameters
    ----------
    C : float
        Weight of the errors: 1/2 |w|^2 + C sum_i weight_i max(0, |y_i - f(x_i)| - epsilon).
    epsilon : float
        Half the width of the tube.

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

    kernel: KernelLike = shared("kernel")
    degree: int = shared("degree")
    gamma: GammaLike = shared("gamma")
    coef0: float = shared("coef0")
    tol: float = shared("tol")
    C: float = parameter(1.0, POSITIVE_OR_INFINITE)
    epsilon: float = parameter(0.1, NOT_NEGATIVE)
    shrinking: bool = shared("shrinking")
    cache_size: float = shared("cache_size")
    verbose: bool = shared("verbose")
    max_iter: int = shared("max_iter")
    max_time: float | None = shared("max_time")
    warm_start: bool = shared("warm_start")
    n_jobs: int | None = shared("n_jobs")

    def _problem(self, gram: Gram, target: Array, weight: Array) -> DualQP:
        return regression(gram, target, self._finite_C * weight, float(self.epsilon))

    def _solved_on_rows(self, data: Data, fit: Fit) -> tuple[Array, Result]:
        from slimsvm.far.dual import regression_on_rows

        return regression_on_rows(self, data, fit)


@declared
class NuSVR(DecomposedRegressor):
    """Support vector regression where nu bounds the share of rows outside the tube.

    The width of the tube is found. A drop-in for :class:`sklearn.svm.NuSVR`.

    Parameters
    ----------
    nu : float in (0, 1]
        Bound on the share of rows outside the tube.
    C : float
        Weight of the errors.

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

    nu: float = parameter(0.5, NU)
    C: float = parameter(1.0, POSITIVE_OR_INFINITE)
    kernel: KernelLike = shared("kernel")
    degree: int = shared("degree")
    gamma: GammaLike = shared("gamma")
    coef0: float = shared("coef0")
    shrinking: bool = shared("shrinking")
    tol: float = shared("tol")
    cache_size: float = shared("cache_size")
    verbose: bool = shared("verbose")
    max_iter: int = shared("max_iter")
    max_time: float | None = shared("max_time")
    warm_start: bool = shared("warm_start")
    n_jobs: int | None = shared("n_jobs")

    def _problem(self, gram: Gram, target: Array, weight: Array) -> DualQP:
        return nu_regression(gram, target, self._finite_C * weight, float(self.nu))
