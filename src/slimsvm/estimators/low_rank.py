"""LowRankSVC: the dual machine on an incomplete Cholesky factor of the kernel matrix, used with the kernel itself.

For each pair of classes, K ~ F F' (:mod:`slimsvm.basis.cholesky`), and with V = diag(y) F

    min over a of  1/2 |V'a|^2 - e'a     subject to     0 <= a_i <= C weight_i     (and y'a = 0 with an intercept),

by :mod:`slimsvm.solvers.dual_descent`; with an intercept it is a linear machine on the rows of F, which :mod:`slimsvm.solvers.decomposition`
solves. The prediction is f(x) = sum_i a_i y_i k(x_i, x) + b: the multipliers of the approximate problem with the kernel that it approximates.

Equal rows of one class are one variable whose bound is the sum of theirs: weights are repetitions.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, RealNotInt, StrOptions

from slimsvm.basis.cholesky import Factor, pivoted, thresholded
from slimsvm.estimators.base import Fit
from slimsvm.estimators.classification import KernelClassifier
from slimsvm.estimators.docs import described
from slimsvm.estimators.linear import CONVERGED, STALLED, polished
from slimsvm.estimators.pairs import Pair
from slimsvm.gram import make_gram
from slimsvm.kernels import Linear
from slimsvm.problems.dual_qp import classification
from slimsvm.problems.factored_dual import FactoredDual
from slimsvm.row_hashes import places
from slimsvm.run import SENTENCES, SUBSPACE, Limits, Result, Status, run
from slimsvm.solvers.decomposition import EXACT
from slimsvm.solvers.dual_descent import DualDescent
from slimsvm.threads import parallel
from slimsvm.tiles import Operand, ready

Array = NDArray[Any]
LEAST = 50  # a share of the rows is never fewer columns than this
SMALL_TRACE = 1e-6  # of the trace of K: what is left when more columns are not worth their work, in float32 not even meant
NEAR = 1e-6  # relative gap from which few rows are brought to near machine precision
FEW_SWEEPS = 1000  # of the descent, for few rows
KEPT = (
    "seconds",
    "objective",
    "gap",
    "violation",
    "n_support",
    "active",
)  # of the histories: what all solvers say


@dataclass(frozen=True)
class Found:
    """The multipliers of all rows of a pair, its intercept, and how good its factor is."""

    a: Array
    intercept: float
    left: float = 0.0
    beta: float = 0.0


@described
class LowRankSVC(KernelClassifier):
    """Support vector classification on an incomplete Cholesky factor of the kernel matrix.

    The kernel matrix of each pair of classes is approximated by F F', the dual problem is solved with F F' in its place, and its solution is
    used with the kernel itself. Training never needs the kernel matrix in memory; how good the machine is depends on how much of the matrix
    the factor says. Compare :class:`SparseSVC` with basis='cholesky', which is the best machine within the span of the pivots. Several classes:
    one machine for each pair, which vote; equal votes are decided by the sums of the decision values.

    Parameters
    ----------
    factorization : {{'pivoted', 'threshold'}}, default='pivoted'
        'pivoted': symmetric pivoting, F has ``rank`` columns and kernel values are computed on demand. 'threshold': column by column, of each
        the ``rank`` largest entries are kept; F is sparse, all of the kernel matrix is computed once, and F F' may be far from it.
    rank : int or float, default=0.1
        Columns of F ('pivoted'), or entries that are kept in each of them ('threshold'): a number, or a share of the pair's distinct rows,
        then at least 50 of them.
    retrain : bool, default=False
        Whether an exact machine, with an intercept, is then trained on the support vectors found.
    C : float, default=1.0
        Weight of the errors: 1/2 |w|^2 + C sum_i weight_i max(0, 1 - y_i f(x_i)).
    {kernel}
    fit_intercept : bool, default=False
        Whether there is an intercept, which is not penalised. The method as it was published has none.
    class_weight : dict or 'balanced', optional
        Factors of C for each class.
    tol : float, default=1e-3
        Duality gap of the factored problem at the end, relative to its value; with an intercept, and for ``retrain``, the largest violation of
        the Kuhn-Tucker conditions. Up to 1,000 rows are always solved to near machine precision.
    max_iter : int, default=-1
        Limit on sweeps over the variables of a pair; with an intercept, and for ``retrain``, on pair steps. -1: none.
    max_time : float, optional
        Limit in seconds. At the limit, and at Ctrl-C, the best model so far is kept, with a ConvergenceWarning.
    n_jobs : int, optional
        Threads: None is one unless a joblib context says otherwise, -1 all. The result does not depend on it.
    random_state : int, RandomState or None, default=None
        Draws the orders in which the variables are visited.
    verbose : bool, default=False
        Show a line of progress.

    Attributes
    ----------
    {attributes}
    classes_ : array
        The labels, sorted.
    class_weight_ : array
        Factor of C for each class.
    factor_error_ : array of shape (n_pairs,)
        What the factor leaves of the kernel matrix of each pair, relative to its trace: the trace of the rest, or with 'threshold' its
        Frobenius norm.
    factor_shift_ : array of shape (n_pairs,)
        What 'threshold' had to add to the diagonal of the kernel matrix to find a factor. Where it is large beside k(x, x), the machine is
        hardly that of the kernel any more: use 'pivoted', a larger rank or gamma, or at least a smaller C.

    See Also
    --------
    SVC : The exact machine.
    SparseSVC : Machines in the span of a basis; with basis='cholesky', of the pivots.

    Notes
    -----
    ``certificate_`` is about the factored problem, or with ``retrain`` about the machine on the support vectors found; neither says how far the
    exact machine is, and its ``scope`` is 'subspace'.

    References
    ----------
    .. [1] S. Fine, K. Scheinberg, "Efficient SVM training using low-rank kernel representations", 2001.
    .. [2] C.-J. Lin, R. Saigal, "An incomplete Cholesky factorization for dense symmetric positive definite matrices", 2000.

    Examples
    --------
    >>> from slimsvm import LowRankSVC
    >>> from slimsvm.datasets import checkers
    >>> X, y = checkers(2000, seed=0)
    >>> model = LowRankSVC(rank=200, C=10.0, gamma=5.0, random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.9
    True
    >>> model.certificate_.scope
    'subspace'
    """

    # what the machines with all parameters let their users choose
    decision_function_shape: ClassVar[str] = "ovr"
    break_ties: ClassVar[bool] = True
    warm_start: ClassVar[bool] = False
    shrinking: ClassVar[bool] = True
    cache_size: ClassVar[float] = 200.0

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "factorization": [StrOptions({"pivoted", "threshold"})],
        "rank": [
            Interval(Integral, 1, None, closed="left"),
            Interval(RealNotInt, 0.0, 1.0, closed="right"),
        ],
        "retrain": ["boolean"],
        "C": [Interval(Real, 0.0, None, closed="neither")],
        "fit_intercept": ["boolean"],
        **{
            name: constraint
            for name, constraint in KernelClassifier._parameter_constraints.items()
            if name
            not in (
                "shrinking",
                "cache_size",
                "decision_function_shape",
                "break_ties",
                "warm_start",
            )
        },
    }

    def __init__(
        self,
        factorization: str = "pivoted",
        rank: int | float = 0.1,
        retrain: bool = False,
        *,
        C: float = 1.0,
        kernel: Any = "rbf",
        gamma: float | str = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        fit_intercept: bool = False,
        class_weight: Any = None,
        tol: float = 1e-3,
        max_iter: int = -1,
        max_time: float | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        self.factorization = factorization
        self.rank = rank
        self.retrain = retrain
        self.C = C
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.tol = tol
        self.max_iter = max_iter
        self.max_time = max_time
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def _finished(self, result: Result) -> tuple[Array, float]:
        return result.model.a, result.model.intercept

    def _collect(
        self, X: Any, order: Array, label: Array, pairs: list[Pair], results: list[Result]
    ) -> None:
        super()._collect(X, order, label, pairs, results)
        self.factor_error_ = np.array([result.model.left for result in results])
        self.factor_shift_ = np.array([result.model.beta for result in results])

    def _solve_pairs(
        self,
        grams: Any,
        label: Array,
        bounds: Array,
        classes: Array,
        fit: Fit,
        starts: list[Array | None],
    ) -> list[Result]:
        """All pairs, side by side."""
        if isinstance(self.rank, Integral) and int(self.rank) > grams.operand.n:
            raise ValueError(
                f"rank={self.rank} is more than the {grams.operand.n} rows with positive weight; use at most as many, or a share of them such "
                "as 0.1."
            )
        n_pairs = len(grams)
        seeds = check_random_state(self.random_state).randint(2**31 - 1, size=n_pairs)
        side_by_side = 1 if fit.watchers else fit.threads
        results: list[Any] = [None] * n_pairs

        def solve(k: int) -> None:
            rows = grams.rows(k)
            sign = np.where(label[rows] == grams.pairs[k].positive, 1.0, -1.0)
            operand = grams.operand if n_pairs == 1 else grams.operand.take(rows)
            limits = fit.limits if n_pairs == 1 else fit.limits.part(n_pairs - k, side_by_side)
            results[k] = self._solve_pair(
                operand, sign, float(self.C) * bounds[rows], fit, limits, int(seeds[k])
            )

        parallel(solve, n_pairs, side_by_side)
        return results

    def _solve_pair(
        self, operand: Operand, sign: Array, upper: Array, fit: Fit, limits: Limits, seed: int
    ) -> Result:
        # 1. equal rows have one row of the factor; equal rows of one class are one variable
        first, place = places(operand.X if operand.index is None else operand.X[operand.index])
        _, chosen, which = np.unique(2 * place + (sign > 0), return_index=True, return_inverse=True)
        upper, own = np.bincount(which, upper), sign[chosen]
        # 2. the factor
        factor = self._factor(
            operand if first.size == operand.n else operand.take(first), fit, limits
        )
        F, late = factor.V[place[chosen]], limits.reason()
        # 3. the machine on it
        if self.fit_intercept:
            rows = ready(Linear(), F, dtype=np.float64 if operand.n <= EXACT else None)
            result = self._solve(
                classification(make_gram(rows, self._cache_bytes, fit.threads), own, upper),
                fit,
                limits,
                None,
            )
            a, intercept = result.model.a, -float(result.model.level[0])
        else:
            result = self._descended(F, own, upper, operand, fit, limits, seed)
            a, intercept = result.model.a, 0.0
        # 4. the exact machine on its support vectors; of one class alone they make none
        support = np.flatnonzero(a > 0)
        if self.retrain and np.unique(own[support]).size == 2 and limits.reason() is None:
            gram = make_gram(operand.take(chosen[support]), self._cache_bytes, fit.threads)
            again = self._solve(
                classification(gram, own[support], upper[support]), fit, limits, None
            )
            a, intercept = np.zeros(a.size), -float(again.model.level[0])
            a[support] = again.model.a
            result = replace(again, n_iter=result.n_iter + again.n_iter)
        if (
            late is not None and result.status.converged
        ):  # the machine is as good as its factor, which is not what was asked for
            sentence = f"Stopped ({late}) after {limits.seconds:.1f} s, while the kernel matrix was factorised: the factor is incomplete."
            result = replace(result, status=Status(late, sentence))
        everywhere = np.zeros(sign.size)
        everywhere[chosen] = a
        return replace(
            result,
            model=Found(everywhere, intercept, factor.left, factor.beta),
            certificate=replace(result.certificate, scope=SUBSPACE),
            history={name: result.history[name] for name in KEPT},
        )

    def _factor(self, operand: Operand, fit: Fit, limits: Limits) -> Factor:
        """F with F F' ~ K, one row for each row of the operand."""
        size = min(operand.n, int(self.rank))
        if not isinstance(self.rank, Integral):
            size = max(math.ceil(self.rank * operand.n), min(LEAST, operand.n))

        def enough() -> bool:
            return limits.reason() is not None

        if self.factorization == "threshold":
            return thresholded(operand, size, enough=enough, n_threads=fit.threads)
        tol = 0.0 if operand.n <= EXACT else SMALL_TRACE
        return pivoted(operand, size, tol=tol, enough=enough, n_threads=fit.threads)

    def _descended(
        self,
        F: Any,
        sign: Array,
        upper: Array,
        operand: Operand,
        fit: Fit,
        limits: Limits,
        seed: int,
    ) -> Result:
        """The machine without an intercept; few rows to near machine precision."""
        V = sp.diags(sign) @ F if sp.issparse(F) else F * sign[:, None].astype(F.dtype)
        problem, few, most = (
            FactoredDual(V, 1.0, 0.0, upper),
            operand.n <= EXACT,
            int(self.max_iter),
        )
        tol = min(float(self.tol), NEAR) if few else float(self.tol)
        if (
            few
        ):  # where the scale of the kernel is bad, the descent crawls, and what follows does not
            most = FEW_SWEEPS if most < 0 else min(most, FEW_SWEEPS)
        result = run(
            DualDescent(seed), problem, tol=tol, max_iter=most, limits=limits, watchers=fit.watchers
        )
        a, certificate = result.model.a, result.certificate
        if few and limits.reason() is None:
            exact, _ = polished(
                F.toarray() if sp.issparse(F) else F.astype(np.float64),
                sign,
                upper,
                a,
                False,
                limits,
            )
            w = problem.combined(exact)
            primal = problem.primal(w)
            gap = max(0.0, primal + problem.dual(exact, w))
            if gap <= certificate.gap:
                a, certificate = (
                    exact,
                    replace(
                        certificate,
                        objective=primal,
                        gap=gap,
                        violation=gap / primal if primal > 0 else 0.0,
                    ),
                )
        certificate = replace(certificate, tol=float(self.tol))
        status = result.status
        if certificate.holds:
            status = Status("converged", CONVERGED.format(**certificate.to_dict()))
        elif status.converged or (
            status.reason == "max_iter" and most != int(self.max_iter)
        ):  # the limit that few rows have was the end
            status = Status("stopped", STALLED.format(**certificate.to_dict()))
        elif status.reason == "max_iter":
            status = Status(
                "max_iter",
                SENTENCES["max_iter"].format(n_iter=result.n_iter, **certificate.to_dict()),
            )
        return replace(result, model=Found(a, 0.0), certificate=certificate, status=status)
