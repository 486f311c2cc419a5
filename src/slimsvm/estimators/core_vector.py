"""CoreVectorSVC: the squared hinge as the smallest ball around points, found from few of them."""

from __future__ import annotations

from dataclasses import replace
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils._param_validation import Interval, StrOptions

from slimsvm.declarations import declared, parameter
from slimsvm.ending import Ending, Status, worst
from slimsvm.estimators.dual import PairwiseClassifier
from slimsvm.estimators.fitting import with_callbacks
from slimsvm.estimators.parameters import POSITIVE, GammaLike, KernelLike, MatrixLike, shared
from slimsvm.multiclass import Part
from slimsvm.run import Limits, Result, run
from slimsvm.solvers.core_vector import Ball, CoreVector, refuse_unequal
from slimsvm.training import Data, Fit

Array = NDArray[Any]


@declared
class CoreVectorSVC(PairwiseClassifier):
    """Core vector machine: the squared hinge and a penalised intercept, from a core set of rows.

    The model is the smallest ball around the rows as points of another space. An approximate ball
    is found from a *core set* that grows by far points, until no row lies outside of the ball by
    more than the share ``eps`` of its radius. Several classes: one binary model for each pair,
    which vote; equal votes are decided by the sums of the decision values.

    Parameters
    ----------
    ball : {'minimum', 'fixed'}
        'minimum': the smallest ball (CVM). 'fixed': a ball of a fixed radius that far points pull
        to themselves (BVM), which is simpler and does not end at the optimum.
    eps : float
        How far outside of the ball, as a share of its radius, a row may lie. Up to 1,000 rows the
        smallest ball is found to near float64 precision.
    C : float
        Weight of the errors: 1/2 (|w|^2 + intercept^2) + C sum_i max(0, 1 - y_i f(x_i))^2.
    max_iter : int
        Limit on core vectors that join, or on pulls of the ball, for each pair; -1: none.
    max_memory : float
        Megabytes for kernel values within the core set. Where it would grow beyond, the fit ends
        with a ConvergenceWarning.
    solver : CoreVector or None
        Another way to look for far points: :class:`slimsvm.solvers.core_rounds.CoreRounds`, one
        point a round as in the papers, at every size.
    random_state : int, RandomState or None
        Draws the rows that are looked at.

    Attributes
    ----------
    class_weight_
        Ones.

    See Also
    --------
    SVC : The exact solution with the hinge.
    SparseSVC : With basis='all', the exact solution with the squared hinge and an intercept that is
        not penalised.

    Notes
    -----
    The method needs k(x, x) to be the same for all rows, as it is for the rbf and Laplacian
    kernels, and for others on rows of unit length; otherwise the fit is refused. For the same
    reason it admits neither sample weights nor class weights.

    ``certificate_.violation`` is the achieved eps; objective and gap are those of the problem with
    the squared hinge. The paper's C is twice ours.

    References
    ----------
    .. [1] I. W. Tsang, J. T. Kwok, P.-M. Cheung, "Core vector machines: fast SVM training on very
       large data sets", 2005.
    .. [2] I. W. Tsang, A. Kocsor, J. T. Kwok, "Simpler core vector machines with enclosing balls",
       2007.

    Examples
    --------
    >>> import slimsvm
    >>> X, y = slimsvm.datasets.checkers(2000, seed=0)
    >>> model = slimsvm.CoreVectorSVC(C=10.0, gamma=5.0, random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.95
    True
    >>> model.certificate_.violation <= 1e-6
    True
    """

    ball: str = parameter("minimum", StrOptions({"minimum", "fixed"}))
    eps: float = parameter(1e-6, Interval(Real, 0.0, 1.0, closed="neither"))
    C: float = shared("C")
    kernel: KernelLike = shared("kernel")
    gamma: GammaLike = shared("gamma")
    degree: int = shared("degree")
    coef0: float = shared("coef0")
    max_iter: int = shared("max_iter")
    max_time: float | None = shared("max_time")
    max_memory: float = parameter(2000, POSITIVE)
    solver: Any = parameter(None, CoreVector, None)
    n_jobs: int | None = shared("n_jobs")
    random_state: Any = shared("random_state")
    verbose: bool = shared("verbose")

    _same_as: ClassVar[str] = "SVC"

    @with_callbacks
    def fit(  # type: ignore[override]
        self, X: MatrixLike, y: ArrayLike | None = None, **refused: Any
    ) -> Self:
        """Train on rows X with labels y.

        Parameters
        ----------
        X : array, CSR matrix or DataFrame of shape (n_samples, n_features)
            Training rows; for a precomputed kernel the values of all pairs of them.
        y : array of shape (n_samples,)
            Labels, numbers or strings.
        **refused
            Nothing: a ``sample_weight`` is refused, because all points of the ball must weigh the
            same.

        Returns
        -------
        self
        """
        if refused.pop("sample_weight", None) is not None:
            raise ValueError(
                "CoreVectorSVC admits no sample_weight: its ball needs all points at the same "
                "distance from the origin, which weights would change. Repeat rows instead, or use "
                "SVC or SparseSVC."
            )
        if refused:
            raise TypeError(f"fit() got an unexpected argument {min(refused)!r}")
        return self._fit(X, y, None)

    def _shared(self, parts: list[Part], data: Data, fit: Fit) -> Array:
        refuse_unequal(data.rows)
        return self._seeds(parts)

    def _train(self, part: Part, data: Data, fit: Fit, limits: Limits, shared: Array) -> Result:
        operand, sign, _ = self._pair(part, data)
        budget = float(self.max_memory) * 2**20 / fit.side_by_side(shared.size)
        solver = CoreVector() if self.solver is None else self.solver
        result = run(
            replace(solver, ball=self.ball, seed=int(shared[part.k])),
            Ball(operand, sign, float(self.C), budget, fit.threads),
            tol=float(self.eps),
            max_iter=int(self.max_iter),
            limits=limits,
            watchers=fit.watchers,
        )
        if result.model.full and not result.certificate.holds:
            result = replace(result, status=Status("max_memory"))
        return result

    def _point(self, result: Result) -> tuple[Array, float]:
        return result.model.a, result.model.intercept

    def _ending(self, results: list[Result], fit: Fit, **about: Any) -> Ending:
        size = np.count_nonzero(worst(results).model.a)
        full = f"Stopped at max_memory={self.max_memory:g}, with a core set of {size:,} vectors"
        begins = {"max_memory": full}
        return super()._ending(results, fit, measure="ball", begins=begins, **about)
