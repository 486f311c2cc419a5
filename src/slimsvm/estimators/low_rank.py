"""LowRankSVC: the dual problem on a factor of the kernel matrix, used with the kernel itself."""

from __future__ import annotations

from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils._param_validation import StrOptions

from slimsvm.declarations import Attribute, attribute, declared, parameter
from slimsvm.ending import Ending, worst
from slimsvm.estimators.dual import PairwiseClassifier
from slimsvm.estimators.parameters import (
    AT_LEAST_ONE,
    SHARE,
    ClassWeight,
    GammaLike,
    KernelLike,
    shared,
)
from slimsvm.multiclass import Part
from slimsvm.run import Limits, Result
from slimsvm.solvers.low_rank import ICFSVM, KINDS, LowRank
from slimsvm.training import Data, Fit

Array = NDArray[Any]


@declared
class LowRankSVC(PairwiseClassifier):
    """Support vector classification on an incomplete Cholesky factor of the kernel matrix.

    The kernel matrix of each pair of classes is approximated by F F', the dual problem is solved
    with F F' in its place, and its solution is used with the kernel itself:
    f(x) = sum_i a_i y_i k(x_i, x) + b. Training never needs the kernel matrix in memory; how good
    the model is depends on how much of the matrix the factor says. Compare :class:`SparseSVC` with
    basis='cholesky', which is the best model within the span of the pivots. Several classes: one
    binary model for each pair, which vote; equal votes are decided by the sums of the decision
    values.

    Parameters
    ----------
    factorization : {'pivoted', 'threshold'} or ICFSVM
        'pivoted': symmetric pivoting, F has ``rank`` columns and kernel values are computed on
        demand. 'threshold': column by column, of each the ``rank`` largest entries are kept; F is
        sparse, all of the kernel matrix is computed once, and F F' may be far from it. A
        :class:`slimsvm.solvers.low_rank.ICFSVM` is one of these with the solver of the papers;
        the recipes set it.
    rank : int or float
        Columns of F ('pivoted'), or entries that are kept in each of them ('threshold'): a
        number, or a share of the pair's distinct rows, then at least 50 of them.
    retrain : bool
        Whether the exact problem, with an intercept, is then solved on the support vectors found.
    fit_intercept : bool
        Whether there is an intercept, which is not penalised. The method as it was published has
        none.
    tol : float
        Duality gap of the factored problem at the end, relative to its value; with an intercept,
        and for ``retrain``, the largest violation of the KKT conditions. Up to 1,000 rows are
        always solved to near float64 precision.
    max_iter : int
        Limit on sweeps over the variables of a pair; with an intercept, and for ``retrain``, on
        pair steps. -1: none.
    random_state : int, RandomState or None
        Draws the orders in which the variables are visited.

    Attributes
    ----------
    factor_error_
        What the factor leaves of the kernel matrix of each pair, relative to its trace: the trace
        of the rest, or with 'threshold' its Frobenius norm.
    factor_shift_
        What 'threshold' had to add to the diagonal of the kernel matrix to find a factor. Where
        it is large beside k(x, x), the model is hardly that of the kernel any more: use
        'pivoted', a larger rank or gamma, or at least a smaller C.

    See Also
    --------
    SVC : The exact solution.
    SparseSVC : Models in the span of a basis; with basis='cholesky', of the pivots.

    Notes
    -----
    ``certificate_`` is about the factored problem, or with ``retrain`` about the support vectors
    found; neither says how far the exact solution is, and its ``scope`` is 'subspace'.

    References
    ----------
    .. [1] S. Fine, K. Scheinberg, "Efficient SVM training using low-rank kernel representations",
       2001.
    .. [2] C.-J. Lin, R. Saigal, "An incomplete Cholesky factorization for dense symmetric positive
       definite matrices", 2000.

    Examples
    --------
    >>> import slimsvm
    >>> X, y = slimsvm.datasets.checkers(2000, seed=0)
    >>> model = slimsvm.LowRankSVC(rank=200, C=10.0, gamma=5.0, random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.9
    True
    >>> model.certificate_.scope
    'subspace'
    """

    factorization: Any = parameter("pivoted", StrOptions(set(KINDS)), ICFSVM, positional=True)
    rank: int | float = parameter(0.1, AT_LEAST_ONE, SHARE, positional=True)
    retrain: bool = parameter(False, "boolean", positional=True)
    C: float = shared("C")
    kernel: KernelLike = shared("kernel")
    gamma: GammaLike = shared("gamma")
    degree: int = shared("degree")
    coef0: float = shared("coef0")
    fit_intercept: bool = shared("fit_intercept", default=False)
    class_weight: ClassWeight = shared("class_weight")
    tol: float = shared("tol")
    max_iter: int = shared("max_iter")
    max_time: float | None = shared("max_time")
    n_jobs: int | None = shared("n_jobs")
    random_state: Any = shared("random_state")
    verbose: bool = shared("verbose")

    fitted: ClassVar[tuple[Attribute, ...]] = (
        attribute("factor_error_", "float", ("n_outputs",)),
        attribute("factor_shift_", "float", ("n_outputs",)),
    )
    _same_as: ClassVar[str] = "SVC"

    def _shared(self, parts: list[Part], data: Data, fit: Fit) -> Array:
        n = data.rows.n
        if isinstance(self.rank, Integral) and int(self.rank) > n:
            raise ValueError(
                f"rank={self.rank} is more than the {n} rows with positive weight; use at most as "
                "many, or a share of them such as 0.1."
            )
        return self._seeds(parts)

    def _train(self, part: Part, data: Data, fit: Fit, limits: Limits, shared: Array) -> Result:
        solver = LowRank(
            factorization=self.factorization,
            rank=self.rank,
            retrain=bool(self.retrain),
            fit_intercept=bool(self.fit_intercept),
            tol=float(self.tol),
            max_iter=int(self.max_iter),
            seed=int(shared[part.k]),
            budget=self._cache_bytes,
            n_threads=fit.threads,
            watchers=fit.watchers,
        )
        return solver.solve(*self._pair(part, data), limits)

    def _point(self, result: Result) -> tuple[Array, float]:
        return result.model.a, result.model.intercept

    def _concluded(self, data: Data, solved: list[Result], fit: Fit) -> Ending:
        self.factor_error_ = np.array([result.model.left for result in solved])
        self.factor_shift_ = np.array([result.model.beta for result in solved])
        return super()._concluded(data, solved, fit)

    def _ending(self, results: list[Result], fit: Fit, **about: Any) -> Ending:
        model = worst(results).model
        published = isinstance(self.factorization, ICFSVM)
        kkt = self.fit_intercept or model.retrained or published
        about["measure"] = "kkt" if kkt else "gap"
        about["optimum"] = "the optimum with this factor"
        if model.retrained:
            about["optimum"] = "the optimum over the support vectors found"
        if not model.complete:
            about["further"] = "; the kernel matrix is factorised only in part"
        return super()._ending(results, fit, **about)
