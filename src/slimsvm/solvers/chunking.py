"""Decomposition for the dual of the reduced problem: chunking.

The working set ends with all support vectors.

Problem: :class:`slimsvm.problems.reduced.Reduced` with the squared hinge; its dual is

    min over a >= 0 of  1/2 a'(V V' + D^-1)a - 1'a,     D = diag(2 weight_i),     and u = V'a.

Algorithm: the decomposition of Lin & Lin (2003), lin2003rsvm: choose a working set of variables by
their violation, solve the problem in them with the others fixed, update u = V'a and with it all
slopes v_i u + a_i/D_i - 1, which takes one pass over V. Here the variables outside of the working
set are all zero (chunking; Vapnik 1982, Osuna, Freund & Girosi 1997, osuna1997): the set begins
with a few random rows, and takes in those that violate their conditions most, up to twice its size
at a time, until none does.

Why not sets of a fixed size: where C is large, they never end. Let the rows be K sets; given the
others, each is solved exactly. In the primal problem that is a sum of K losses with curvatures H_k
~ 2C V_k'V_k beside |u|^2/2, so that a sweep over the sets leaves about 1 - K/(K + lambda(H_1 + ...
+ H_K)) of the error in a direction: next to all of it for C = 2^12, whether a set has one row or
thousands. (:mod:`slimsvm.solvers.dual_descent` is the case of one row; after 1,000 sweeps its gap
was still near one.) A set that holds all support vectors has no such partners to agree with.

The problem in the working set is that of its rows alone, and its dual solution is
a_i = D_i (1 - v_i u)_+ at the solution u of its primal, which
:class:`slimsvm.solvers.smooth_newton.SmoothNewton` finds with the squared hinge itself. The others'
slopes come with it.

What differs: every value of u on the way is a primal point of the whole problem, and a a dual one,
scaled to its best; the best of them are kept, and their difference is the gap.

Symbols: inside: the working set; u = V'a; missing: 1 - v_i u, the violation of a variable that is
zero. Cost: of a step of Newton's, (support vectors in the set) m^2 + m^3/3, and two passes over V.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slimsvm.problems.reduced import Reduced, ReducedState
from slimsvm.solvers.duality import BestValues, ReducedSolver
from slimsvm.solvers.smooth_newton import SmoothNewton

Array = NDArray[Any]
FIRST = 500  # rows in the first working set, or as many as V has columns
CLOSER = 0.1  # of the tolerance: that of the problem in the working set
WORK, AT_ONCE = (
    5e7,
    5,
)  # entries of V visited in a step of the run, and Newton's steps in it, at most
MOST_NEWTON = 200  # steps for one working set: so many are needed by rounding errors only


@dataclass
class ChunkingState(BestValues):
    """The working set, the problem in it, and the best values; ``n_iter`` counts the sets."""

    inside: Array
    part: Reduced  # the problem on the working set: other rows have no weight
    inner: ReducedState
    closer: float  # tolerance of that problem, as a share of the whole one's
    u: Array  # the best so far
    n_newton: int = 0  # for this working set

    def record(self) -> dict[str, float]:
        """A line of the history; ``violation`` is the relative gap."""
        return super().record() | {
            "n_basis": float(self.u.size - 1),
            "active": float(np.count_nonzero(self.inside)),
        }


@dataclass(kw_only=True)
class Chunking(ReducedSolver):
    """Working sets that grow.

    ``tol`` is the duality gap relative to the objective, ``max_iter`` limits the number of sets.

    Parameters
    ----------
    seed : int
        Of the first working set.

    Examples
    --------
    >>> from slimsvm.kernels import RBF
    >>> from slimsvm.losses import SquaredHinge
    >>> from slimsvm.problems.reduced import SignedFeatures
    >>> from slimsvm.run import run
    >>> from slimsvm.frames import Frame, in_memory
    >>> from slimsvm.tiles import prepare
    >>> rows = prepare(RBF(1.0), np.arange(2000.0)[:, None] / 200, dtype=np.float64)
    >>> sign = np.where(np.arange(2000) % 700 < 300, 1.0, -1.0)
    >>> signed = in_memory(rows, sign)
    >>> V = SignedFeatures(signed, Frame.like(rows), np.arange(0, 2000, 100))
    >>> result = run(Chunking(), Reduced(V, np.full(2000, 1e4), SquaredHinge()), tol=1e-6)
    >>> result.certificate.holds, result.n_iter < 10
    (True, True)
    """

    seed: int = 0

    def init(self, problem: Reduced, start: Array | None = None) -> ChunkingState:
        """A few rows.

        Newton's method begins at ``start`` (coefficients and intercept), or at zero.
        """
        V = problem.features
        inside = np.zeros(V.n, bool)
        inside[np.random.default_rng(self.seed).permutation(V.n)[: max(FIRST, V.size)]] = True
        part = self._part(problem, inside)
        inner = SmoothNewton().init(part, start)
        return ChunkingState(inside, part, inner, CLOSER, inner.u.copy())

    @staticmethod
    def _part(problem: Reduced, inside: Array) -> Reduced:
        return replace(problem, weight=np.where(inside, problem.weight, 0.0))

    def step(self, problem: Reduced, state: ChunkingState, tol: float, max_iter: int) -> None:
        """Some of Newton's steps for the working set; once it is solved, the next one."""
        S, newton = state, SmoothNewton()
        most = max(1.0, WORK / max(1, problem.features.n * problem.features.size))
        for _ in range(int(min(AT_ONCE, most))):
            # 1. the problem in the working set
            newton.step(S.part, S.inner, S.closer * tol, MOST_NEWTON)
            S.n_newton += 1
            self._measure(problem, S)
            S.done = S.relative_gap <= tol
            if S.done:
                return
            if not S.inner.done and S.n_newton < MOST_NEWTON:
                continue
            # 2. the next working set: the rows that are missing most join it
            S.n_iter += 1
            missing = np.where(S.inside, 0.0, 1.0 - S.inner.margins)
            many = min(np.count_nonzero(missing > 0.0), np.count_nonzero(S.inside))
            if many:
                S.inside[np.argpartition(-missing, many - 1)[:many]] = True
                S.part = self._part(problem, S.inside)
            elif S.inner.stalled:  # no row is missing, and no digit can be gained
                S.stalled = S.done = True
                return
            else:
                S.closer *= 0.01
            S.inner, S.n_newton = newton.init(S.part, S.inner.u), 0
            if S.n_iter >= max_iter:
                return

    @staticmethod
    def _measure(problem: Reduced, S: ChunkingState) -> None:
        """The value of u in the primal problem, and of its multipliers in the dual one.

        These are zero outside of the working set.
        """
        inner = S.inner
        primal = problem.value(inner.u, inner.margins)
        if primal < S.primal:
            S.primal, S.u = primal, inner.u
        loss = inner.objective - 0.5 * float(inner.u @ inner.u)
        a = -S.part.weight * S.part.loss.gradient(1.0, inner.margins)
        combined, total = inner.u - inner.gradient, float(a.sum())  # V'a
        curve = float(combined @ combined) + 2.0 * loss  # a_i^2 / D_i is twice the loss of row i
        if curve > 0.0:
            S.dual = max(S.dual, 0.5 * total**2 / curve)
