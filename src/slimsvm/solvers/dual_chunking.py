"""Chunking: quadratic problems that hold all support vectors.

Problem: the dual of a classifier, :func:`slimsvm.problems.dual_qp.classification`.

Algorithm: Boser, Guyon & Vapnik (1992), boser1992, as Joachims (1999) and Platt (1998) describe it;
Osuna, Freund & Girosi (1997), osuna1997, prove that it ends at the optimum: a random subset of the
rows; the problem in it is solved, all other variables are zero; the next chunk holds the support
vectors found and the rows outside that violate the optimality conditions most; until none does by
more than eps.

What is left open: the size of the first subset and the number of rows that join, here one number;
that both classes are in the first subset; how closely the problem of a chunk is solved (as in
:mod:`slimsvm.solvers.svm_light`).

Its disadvantage, says Joachims, is that the problems grow with the number of support vectors: three
square matrices are held, and a ValueError says so where they are more than the budget of bytes.

Cost of a chunk of k rows: k^2 kernel values, k^3/3 for each of some 20 iterations of the
interior-point solver, and (support vectors) x n kernel values to look for violators.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slimsvm.kernel_sums import accumulate
from slimsvm.options import at_least, one_of
from slimsvm.problems.dual_qp import DualQP
from slimsvm.run import FULL, Certificate
from slimsvm.solvers.dual_state import (
    DualSolution,
    Measured,
    felt_by,
    history_line,
    measure,
    rounding_at,
)
from slimsvm.solvers.interior_point import InteriorPoint
from slimsvm.solvers.smo import smo
from slimsvm.tiles import Operand, Strips, block

Array = NDArray[Any]
INNER = ("interior_point", "smo")
MATRICES = 3  # of a chunk that are in memory at the same time
SMO_WORK = 50_000_000  # variables visited by pair steps in one step of the run
FINE = 0.1  # of eps: where pair steps of a chunk end


@dataclass
class ChunkState(Measured):
    """The chunk, the solution of the last one, and s of all rows; ``n_iter`` counts chunks."""

    operand: Operand
    a: Array
    s: Array
    chunk: Array
    n_threads: int
    inner: Any = None  # the problem of the chunk on its way
    level: float = 0.0

    def record(self) -> dict[str, float]:
        """A line of the history; ``active`` is the size of the chunk."""
        return history_line(self, self.chunk.size)


@dataclass
class PairSteps:
    """The problem of a chunk by pair steps."""

    K: Array
    diag: Array
    sign: Array
    upper: Array
    a: Array
    o: Array
    tol: float
    done: bool = False

    def iterate(self) -> None:
        """Some steps."""
        many = max(100, SMO_WORK // self.a.size)
        steps, _ = smo(
            self.K, self.diag, self.sign, self.upper, self.a, self.o, self.a.size, self.tol, many
        )
        self.done = steps < many

    def solution(self) -> Array:
        """The point."""
        return self.a


@dataclass(kw_only=True)
class DualChunking:
    """Chunking; ``tol`` is the violation at the end, ``max_iter`` limits chunks.

    Parameters
    ----------
    chunk : int
        Rows in the first chunk, and how many violators join at most.
    inner : {"interior_point", "smo"}
        How the problem of a chunk is solved.
    seed : int
        Of the first chunk.

    Examples
    --------
    >>> from slimsvm import SVC
    >>> from slimsvm.datasets import checkers
    >>> X, y = checkers(300, seed=0)
    >>> model = SVC(C=10.0, gamma=5.0, solver=DualChunking(chunk=50)).fit(X, y)
    >>> model.certificate_.holds
    True
    """

    chunk: int = 500
    inner: str = "interior_point"
    seed: int = 0

    def __post_init__(self) -> None:
        at_least(2, chunk=self.chunk)
        at_least(0, seed=self.seed)
        one_of(INNER, inner=self.inner)

    def init(self, problem: DualQP, start: Array | None = None) -> ChunkState:
        """A random chunk, with both classes; or that of the support vectors of ``start``."""
        if problem.gram.dtype == np.float32:
            problem.gram.upgrade()
        gram, n = problem.gram, problem.n_variables
        a = np.array(problem.start if start is None else start, np.float64)
        order = np.random.default_rng(self.seed).permutation(n)
        # the first row of either class, then the others: still a random subset
        first = [order[np.argmax(problem.sign[order] == y)] for y in (1.0, -1.0)]
        drawn = np.concatenate([first, order[~np.isin(order, first)]])[: self.chunk]
        chunk = np.union1d(drawn, np.flatnonzero(a))
        state = ChunkState(gram.operand, a, np.zeros(n), chunk, gram.n_threads)
        self._add(state, problem.sign * a)
        self._begin(problem, state)
        return state

    def _add(self, S: ChunkState, change: Array) -> None:
        """s, after a change of coefficients."""
        moved = np.flatnonzero(change)
        if moved.size:
            side = Strips(S.operand)
            accumulate(S.operand.take(moved), side, change[moved], S.s, S.n_threads)
            S.n_values += moved.size * S.operand.n

    def _begin(self, problem: DualQP, S: ChunkState, inner: str = "") -> None:
        """The problem of the chunk; all other variables are zero."""
        k = S.chunk.size
        largest = int(np.sqrt(problem.gram.budget / (8 * MATRICES)))
        if k > largest:
            raise ValueError(
                f"A chunk of {k:,} rows does not fit: with cache_size="
                f"{problem.gram.budget / 2**20:g} megabytes it may have {largest:,}, and all "
                "support vectors must be in it. Raise cache_size, or use svm_light, whose working "
                "sets are small."
            )
        rows, sign = S.operand.take(S.chunk), problem.sign[S.chunk]
        K = block(rows, Strips(rows), S.n_threads)
        S.n_values += K.size
        upper = problem.upper[S.chunk]
        if (inner or self.inner) == "smo":
            a = S.a[S.chunk]
            o = K @ (sign * a) - sign
            S.inner = PairSteps(K, np.diag(K).copy(), sign, upper, a, o, 0.0)
        else:
            K *= sign[:, None]
            K *= sign
            S.inner = InteriorPoint(K, np.full(k, -1.0), upper, sign, 0.0)

    def step(self, problem: DualQP, state: ChunkState, tol: float, max_iter: int) -> None:
        """An iteration for the chunk; once it is solved, the next one."""
        S = state
        if isinstance(S.inner, PairSteps):
            S.inner.tol = FINE * tol
        S.inner.iterate()
        if not S.inner.done:
            return
        a = np.zeros(S.a.size)
        a[S.chunk] = S.inner.solution()
        change, S.a = problem.sign * (a - S.a), a
        self._add(S, change)
        S.n_iter += 1
        wrong = self._measure(problem, S)
        S.done = S.violation <= tol
        outside = np.setdiff1d(np.flatnonzero(wrong > tol), S.chunk)
        problem.gram.n_values = S.n_values
        if S.done or S.n_iter >= max_iter:
            return
        if not outside.size:  # what is left is within the chunk: its last digits, by pair steps
            S.done = isinstance(S.inner, PairSteps)
            if not S.done:
                self._begin(problem, S, "smo")
            return
        worst = outside[np.argsort(-wrong[outside], kind="stable")][: self.chunk]
        S.chunk = np.union1d(np.flatnonzero(S.a), worst)
        self._begin(problem, S)

    @staticmethod
    def _measure(problem: DualQP, S: ChunkState) -> Array:
        """Level, violation, gap and value; returns the violation of every variable."""
        multiplier, _ = problem.multiplier(S.a, S.s, np.arange(S.a.size))
        S.level, o = -multiplier, problem.order(S.s)
        reduced = problem.sign * (o - S.level)
        wrong = np.where(S.a < problem.upper, -reduced, 0.0)
        wrong = np.maximum(wrong, np.where(S.a > 0.0, reduced, 0.0))
        S.violation = max(0.0, float(wrong.max(initial=0.0)))
        found = measure(S.a, o, problem.sign, problem.upper, S.level, S.level)
        S.gap, S.objective = max(0.0, float(found[0])), problem.objective(S.a, S.s)
        return np.asarray(wrong)

    def certificate(self, problem: DualQP, state: ChunkState, tol: float) -> Certificate:
        """Violation and gap over all variables."""
        self._measure(problem, state)
        S = state
        coef, operand, s = problem.coef(S.a), problem.gram.operand, S.s[problem.row]
        felt = felt_by(operand, coef, s, problem.sign * (problem.order(S.s) - S.level))
        slopes = np.where(felt, problem.upper, 0.0)
        about = operand, coef, S.s, slopes, s, S.level * coef.sum()
        certificate = Certificate(FULL, S.objective, S.violation, S.gap, tol, "float64")
        return certificate.rounded(rounding_at(*about))

    def model(self, problem: DualQP, state: ChunkState) -> DualSolution:
        """The dual point of the last chunk that was solved."""
        return DualSolution(state.a, state.s, (state.level, state.level))
