"""CVM and BVM as they were published: one point a round, the farthest of 59 random ones.

Problem and symbols: :mod:`slimsvm.solvers.core_vector`, whose pools this is without.

``ball="minimum"``, Tsang, Kwok & Cheung (2005), tsang2005cvm, section 4. Each round

    1. draws 59 points of all, and finds the one that is farthest from the centre;
    2. if it is outside of the (1 + eps) ball, it joins the core set;
    3. the smallest ball around the core set is found by pair steps (SMO);

until no point is outside. ``ball="fixed"``, Tsang, Kocsor & Kwok (2007), tsang2007bvm, Algorithm 2
with the stages eps = 1/2, 1/4, ...: the same, but in step 3 the centre moves by the least that puts
the point on the sphere, al <- t al + (1 - t) e_i, t = sqrt(kappa) / distance.

What the papers leave open: where none of the 59 is outside, all points are looked at, and the
farthest of them is taken, so that the end is certain; CVM begins with one random point of each
class, BVM with the first of these; the ball of the core set is found up to the share INNER of eps.

Cost of a round: 59 times the core set kernel values, and n times where all points are looked at.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slimsvm.options import at_least
from slimsvm.solvers.core_vector import DRAWN, INNER, POOL, Ball, BallState, CoreVector, settle
from slimsvm.solvers.smo import FAR

Array = NDArray[Any]
WORK = 4e6  # kernel values in one step: a fraction of a second


@dataclass(kw_only=True)
class CoreRounds(CoreVector):
    """CVM and BVM with one point a round.

    ``tol`` is eps, ``max_iter`` limits rounds.

    Parameters
    ----------
    ball
        As in :class:`slimsvm.solvers.core_vector.CoreVector`.
    n_candidates : int
        Random points of which the farthest is looked at.
    seed : int
        Of the draws.

    Examples
    --------
    >>> from slimsvm import CoreVectorSVC
    >>> from slimsvm.solvers.core_rounds import CoreRounds
    >>> model = CoreVectorSVC(C=10.0, gamma=0.5, eps=1e-6, solver=CoreRounds())
    >>> model.fit([[0.0], [1.0], [3.0], [4.0]], [0, 0, 1, 1]).dual_coef_.round(2).tolist()
    [[-0.53, -0.75, 0.75, 0.53]]
    """

    n_candidates: int = DRAWN

    def __post_init__(self) -> None:
        at_least(1, n_candidates=self.n_candidates)

    def step(self, problem: Ball, state: BallState, tol: float, max_iter: int) -> None:
        """Some rounds; where no point is outside, the next stage or the end."""
        S, fixed = state, self.ball == "fixed"
        work = 0
        while work < WORK and S.n_iter < max_iter and not (S.done or S.full):
            eps = max(S.eps, tol)
            # 1. the farthest of 59
            drawn = S.rng.integers(problem.n, size=self.n_candidates)
            s = problem.products(drawn, S.al)
            work += drawn.size * int(np.count_nonzero(S.al))
            point, at = int(drawn[np.argmin(s)]), float(s.min())
            if not at < self._limit(problem, S, eps):
                everything = self._looked(problem, S)
                work += problem.n * int(np.count_nonzero(S.al))
                point, at = int(np.argmin(everything)), float(everything.min())
                if not at < self._limit(problem, S, eps):
                    S.done, S.eps = not fixed or eps <= tol, S.eps / 2.0
                    continue
            # 2. and 3.
            S.n_iter, S.seen = S.n_iter + 1, False
            if fixed:
                self._pulled(problem, S, point, at)
            else:
                work += self._joined(problem, S, point, at, eps)
            S.farthest = float(S.q - 2.0 * at + problem.kappa)
            S.violation = self._outside(problem, S)
        S.done = S.done or S.full

    def _limit(self, problem: Ball, S: BallState, eps: float) -> float:
        """Outside of the (1 + eps) ball are points whose s is less than this."""
        radius_sq = problem.kappa if self.ball == "fixed" else problem.kappa - S.q
        return 0.5 * (S.q + problem.kappa - (1.0 + eps) ** 2 * radius_sq)

    def _looked(self, problem: Ball, S: BallState) -> Array:
        """s at all points; primal value and achieved eps follow from it."""
        parts = []
        for start in range(0, problem.n, 4 * POOL):
            parts.append(problem.products(np.arange(start, min(problem.n, start + 4 * POOL)), S.al))
        s = np.concatenate(parts)
        S.farthest = float(S.q - 2.0 * s.min() + problem.kappa)
        S.loss = self._loss(problem, S, np.arange(problem.n), s)
        self._conclude(problem, S)
        return s

    @staticmethod
    def _pulled(problem: Ball, S: BallState, point: int, s: float) -> None:
        """BVM: the centre moves until the point is on the sphere."""
        t = float(np.sqrt(problem.kappa / (S.q - 2.0 * s + problem.kappa)))
        S.q = t * t * S.q + 2.0 * t * (1.0 - t) * s + (1.0 - t) ** 2 * problem.kappa
        S.al *= t
        S.al[point] += 1.0 - t

    def _joined(self, problem: Ball, S: BallState, point: int, s: float, eps: float) -> int:
        """CVM: the point joins, and the ball of the core set is found."""
        if point in S.core:  # rounding: it is on the sphere already, as far as can be told
            S.done = True
            return 0
        m, capacity = S.core.size, self._capacity(problem)
        if m >= capacity:
            S.full = True
            return 0
        if S.K.shape[0] <= m:
            larger = np.empty((min(capacity, max(64, 2 * m)),) * 2, S.K.dtype)
            larger[:m, :m] = S.K[:m, :m]
            S.K = larger
        S.K[m, :m] = S.K[:m, m] = problem.values(S.core, np.array([point]))[:, 0]
        S.K[m, m] = problem.kappa
        S.core, m = np.append(S.core, point), m + 1
        al, o = np.append(S.al[S.core[:-1]], 0.0), np.append(S.o, s)
        low, gain, diag = np.where(al > 0.0, o, -FAR), np.empty(m), np.full(m, problem.kappa)
        within, none = np.empty((m, 0), S.K.dtype), np.empty(0)
        tol = INNER * eps * (problem.kappa - float(al @ o))
        settle(S.K, within, al, o, low, gain, diag, none, m, tol)
        S.al[S.core], S.o, S.q = al, o, float(al @ o)
        return m
