"""The dual problem of two classes on an incomplete Cholesky factor of the kernel matrix.

Problem: with K ~ F F' (:mod:`slimsvm.basis.cholesky`) and V = diag(y) F,

    min over a of  1/2 |V'a|^2 - e'a     subject to     0 <= a_i <= C weight_i
    (and y'a = 0 with an intercept).

Four steps: equal rows of one class become one variable whose bound is the sum of theirs, so that
weights are repetitions (not in the method as published); the factor; the problem on it, by
:mod:`slimsvm.solvers.dual_descent`, or with an intercept as a linear one on the rows of F by
:mod:`slimsvm.solvers.decomposition`; and perhaps the exact solution over the support vectors found,
with an intercept.

The method is that of Fine & Scheinberg (2001) and of Lin & Lin (2003), lin2003rsvm.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from slimsvm.basis.cholesky import Factor, pivoted, thresholded
from slimsvm.ending import SUBSPACE, Certificate, Status
from slimsvm.gram import make_gram
from slimsvm.kernels import Linear
from slimsvm.precision import is_small
from slimsvm.problems.dual_qp import classification
from slimsvm.problems.factored_dual import FactoredDual
from slimsvm.problems.linear import Column
from slimsvm.row_hashes import places
from slimsvm.run import Limits, Result, Watcher, run
from slimsvm.solvers.decomposition import Decomposition
from slimsvm.solvers.dual_descent import DualDescent
from slimsvm.solvers.fixed_sets import FixedSets
from slimsvm.solvers.polish import polished
from slimsvm.tiles import Operand, prepare

Array = NDArray[Any]
KINDS = ("pivoted", "threshold")
LEAST = 50  # a share of the rows is never fewer columns than this
# of the trace of K: what is left when more columns are not worth their work, in float32 not even
# meant
SMALL_TRACE = 1e-6
NEAR = 1e-6  # relative gap from which few rows are brought to near float64 precision
FEW_SWEEPS = 1000  # of the descent, for few rows
# of the histories: what all solvers say
KEPT = ("seconds", "objective", "gap", "violation", "n_support", "active")


@dataclass
class ICFSVM:
    """The method as it was published, for the parameter ``factorization`` of LowRankSVC.

    The dual problem is solved by decomposition with working sets of a fixed size ("ICFSVM in dual
    form: use decomposition to implement", Lin & Lin 2003, lin2003rsvm; see
    :mod:`slimsvm.solvers.fixed_sets` for what the slides leave open), whose end is the largest
    violation of a condition; few rows are not brought any nearer; a share of the rows is that
    share of all of them, however few; and equal rows are rows and variables of their own.

    Parameters
    ----------
    kind : {"pivoted", "threshold"}
        The second ICF algorithm of the slides, or the first.
    working_set : int
        Variables in a working set.

    Examples
    --------
    >>> from slimsvm import LowRankSVC
    >>> from slimsvm.datasets import checkers
    >>> X, y = checkers(200, seed=0)
    >>> LowRankSVC(ICFSVM("pivoted"), gamma=5.0).fit(X, y).certificate_.holds
    True
    """

    kind: str = "pivoted"
    working_set: int = 10

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"kind={self.kind!r} must be one of {KINDS}.")
        FixedSets(working_set=self.working_set)  # complains


@dataclass(frozen=True)
class FactorModel:
    """The multipliers of all rows, the intercept, and how good the factor is."""

    a: Array
    intercept: float
    left: float = 0.0
    beta: float = 0.0
    complete: bool = True  # False: a limit ended the factorisation
    retrained: bool = False


@dataclass(frozen=True, kw_only=True)
class LowRank:
    """How a pair of classes is trained on a factor.

    Parameters
    ----------
    factorization, rank, retrain, fit_intercept, tol, max_iter
        As in :class:`slimsvm.LowRankSVC`.
    seed : int
        Of the orders in which the descent visits the variables.
    budget : float
        Bytes for kernel values.
    n_threads : int
        Threads.
    watchers : tuple
        Told after every step.

    Examples
    --------
    >>> from slimsvm.kernels import RBF
    >>> rows = prepare(RBF(0.5), np.array([[0.0], [1.0], [3.0], [4.0]]))
    >>> y = np.array([-1.0, -1.0, 1.0, 1.0])
    >>> result = LowRank(rank=4).solve(rows, y, np.full(4, 10.0), Limits())
    >>> result.status.converged, result.model.a.round(2).tolist()
    (True, [0.53, 0.79, 0.79, 0.53])
    """

    factorization: str | ICFSVM = "pivoted"
    rank: int | float = 0.1
    retrain: bool = False
    fit_intercept: bool = False
    tol: float = 1e-3
    max_iter: int = -1
    seed: int = 0
    budget: float = 2e8
    n_threads: int = 1
    watchers: tuple[Watcher, ...] = ()

    @property
    def published(self) -> ICFSVM | None:
        """The method as it was published, if that is asked for."""
        return self.factorization if isinstance(self.factorization, ICFSVM) else None

    @property
    def kind(self) -> str:
        """How the factor is made."""
        found = self.factorization
        return found.kind if isinstance(found, ICFSVM) else found

    def solve(self, operand: Operand, sign: Array, upper: Array, limits: Limits) -> Result:
        """The model of the rows with these signs and upper bounds."""
        # 1. equal rows have one row of the factor; equal rows of one class are one variable
        if self.published is not None:
            first = place = chosen = np.arange(operand.n)
            own = sign
        else:
            first, place = places(operand.X if operand.index is None else operand.X[operand.index])
            both = 2 * place + (sign > 0)
            _, chosen, which = np.unique(both, return_index=True, return_inverse=True)
            upper, own = np.bincount(which, upper), sign[chosen]
        # 2. the factor, in half of the time
        half = limits.part(2)
        distinct = operand if first.size == operand.n else operand.take(first)
        factor = self._of_rank(distinct.n, operand.n)._factor(distinct, half)
        F, late = factor.V[place[chosen]], half.reason()
        # 3. the problem on it
        small = is_small(operand.n)
        if self.fit_intercept:
            rows = prepare(Linear(), F, dtype=np.float64 if small else None)
            result = self._decomposed(rows, own, upper, limits)
            a, intercept = result.model.a, -float(result.model.level[0])
        else:
            result = self._descended(F, own, upper, small, limits)
            a, intercept = result.model.a, 0.0
        # 4. the exact solution over its support vectors; of one class alone there is none
        support = np.flatnonzero(a > 0)
        again = self.retrain and np.unique(own[support]).size == 2 and limits.reason() is None
        if again:
            n_iter, rows = result.n_iter, operand.take(chosen[support])
            result = self._decomposed(rows, own[support], upper[support], limits)
            a, intercept = np.zeros(a.size), -float(result.model.level[0])
            a[support] = result.model.a
            result = replace(result, n_iter=n_iter + result.n_iter)
        everywhere = np.zeros(sign.size)
        everywhere[chosen] = a
        return replace(
            result,
            model=FactorModel(
                everywhere, intercept, factor.left, factor.beta, late is None, bool(again)
            ),
            certificate=replace(result.certificate, scope=SUBSPACE),
            # with half a factor, its optimum is not what was asked for
            status=Status(late) if late and result.status.converged else result.status,
            history={name: result.history[name] for name in KEPT},
        )

    def _of_rank(self, n_distinct: int, n_rows: int) -> LowRank:
        """The same with a number for its rank, where that is a share of all rows, as published."""
        if self.published is None or isinstance(self.rank, Integral):
            return self
        return replace(self, rank=min(n_distinct, max(1, round(self.rank * n_rows))))

    def _factor(self, operand: Operand, limits: Limits) -> Factor:
        """F with F F' ~ K, one row for each row of the operand."""
        size = min(operand.n, int(self.rank))
        if not isinstance(self.rank, Integral):
            size = max(math.ceil(self.rank * operand.n), min(LEAST, operand.n))

        def enough() -> bool:
            return limits.reason() is not None

        if self.kind == "threshold":
            return thresholded(operand, size, enough=enough, n_threads=self.n_threads)
        tol = 0.0 if is_small(operand.n) else SMALL_TRACE
        return pivoted(operand, size, tol=tol, enough=enough, n_threads=self.n_threads)

    def _decomposed(self, rows: Operand, sign: Array, upper: Array, limits: Limits) -> Result:
        """The problem with an intercept."""
        problem = classification(make_gram(rows, self.budget, self.n_threads), sign, upper)
        result = self._run(Decomposition(), problem, self.tol, self.max_iter, limits)
        # the value of the function, as without an intercept: the gap is its distance from W
        known = result.certificate
        value = known.gap - known.rounding - known.objective
        return replace(result, certificate=replace(known, objective=value))

    def _descended(self, F: Any, sign: Array, upper: Array, small: bool, limits: Limits) -> Result:
        """The problem without an intercept; few rows to near float64 precision."""
        V = sp.diags(sign) @ F if sp.issparse(F) else F * sign[:, None].astype(F.dtype)
        problem, tol, most = FactoredDual(V, 1.0, 0.0, upper), self.tol, self.max_iter
        if self.published is not None:
            sets = FixedSets(working_set=self.published.working_set)
            result = self._run(sets, problem, tol, most, limits)
            return replace(result, model=FactorModel(result.model.a, 0.0))
        if small:  # a kernel of bad scale makes the descent crawl, but not what follows it
            tol, most = min(tol, NEAR), FEW_SWEEPS if most < 0 else min(most, FEW_SWEEPS)
        solver = DualDescent(seed=self.seed, own_value=True)
        result = self._run(solver, problem, tol, most, limits)
        a, certificate = result.model.length * result.model.a, result.certificate
        if small and limits.reason() is None:
            X = F.toarray() if sp.issparse(F) else F.astype(np.float64)
            v, _ = polished(X, Column.of_labels(sign, upper), sign * result.model.a, 0.0, limits)
            exact = sign * v
            w = problem.combined(exact)
            primal = problem.primal(w)
            gap = max(0.0, primal + problem.dual(exact, w))
            if gap <= certificate.gap:
                share, a = gap / primal if primal > 0 else 0.0, exact
                about = (primal, share, gap, certificate.tol, certificate.precision)
                certificate = Certificate(SUBSPACE, *about).rounded(problem.rounding(a, w))
        certificate, reason = replace(certificate, tol=self.tol), result.status.reason
        if certificate.holds:
            reason = "converged"
        elif reason == "converged" or (reason == "max_iter" and most != self.max_iter):
            reason = "stalled"  # also where the limit that few rows have was the end
        return replace(
            result, model=FactorModel(a, 0.0), certificate=certificate, status=Status(reason)
        )

    def _run(self, solver: Any, problem: Any, tol: float, most: int, limits: Limits) -> Result:
        watchers = self.watchers
        return run(solver, problem, tol=tol, max_iter=most, limits=limits, watchers=watchers)
