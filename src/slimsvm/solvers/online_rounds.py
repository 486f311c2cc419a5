"""LASVM as it was published: one row a round, of 50 random ones among all that have not passed.

Problem and symbols: :mod:`slimsvm.solvers.online`, whose batches this is without.

Algorithm: Bordes, Ertekin, Weston & Bottou (2005), bordes2005lasvm, section 3. The expansion begins
with SEEDS rows of each class. Each round

    1. chooses a row among those that have not passed: the next one at random; of 50 random ones the
       one with the smallest y f ("gradient"), or with the smallest |f| ("margin", the active
       selection, which looks at no label);
    2. PROCESS: the row joins, and moves with the extreme vector of the expansion if these two
       violate by more than ``tol``;
    3. REPROCESS: the most violating pair of the expansion moves; vectors with a = 0 that can be in
       no violating pair leave; the intercept is the middle of the two extremes.

The finishing is REPROCESS until no pair violates: :mod:`slimsvm.solvers.decomposition` over the
expansion. What the paper leaves open: with "margin", the rounds end where the chosen row lies
outside of the margin, |f| >= 1 (Schohn & Cohn 2000), and with "gradient" where it does not violate.

Cost of a round: 51 times the expansion kernel values, and a few passes over so many numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slimsvm.options import at_least
from slimsvm.solvers.online import WORK, Expanding, Online, Passing
from slimsvm.solvers.online_loops import CANDIDATES, SEEDS
from slimsvm.solvers.smo import FAR, TINY
from slimsvm.tiles import Strips, block

Array = NDArray[Any]
ROUNDS = 200  # in one step, at most


@dataclass(kw_only=True)
class OnlineRounds(Online):
    """LASVM with one row a round; ``max_iter`` limits rounds.

    Parameters
    ----------
    selection : {"random", "gradient", "margin"}
        Which row is next.
    n_candidates : int
        Random rows that the last two choose from.
    seed : int or sequence of int
        Of the candidates.

    Examples
    --------
    >>> from slimsvm import OnlineSVC
    >>> from slimsvm.solvers.online_rounds import OnlineRounds
    >>> stream = OnlineSVC(C=10.0, gamma=0.5, solver=OnlineRounds(n_candidates=10))
    >>> stream.fit([[0.0], [1.0], [3.0], [4.0]], [0, 0, 1, 1]).support_.tolist()
    [0, 1, 2, 3]
    """

    n_candidates: int = CANDIDATES

    def __post_init__(self) -> None:
        at_least(1, n_candidates=self.n_candidates)

    def init(self, problem: Passing, start: Expanding | None = None) -> Expanding:
        """Begin with a few rows of each class, in the order in which they come."""
        state = super().init(problem, start)
        first = [problem.order[problem.sign[problem.order] == side][:SEEDS] for side in (1.0, -1.0)]
        seeds = np.unique(np.concatenate(first))
        self.left = problem.order[~np.isin(problem.order, seeds)].copy()
        if start is None:
            for row in seeds:
                self._insert(problem, state, int(row))
            self._extremes(state)
        state.n_iter = int(seeds.size)
        return state

    def step(self, problem: Passing, state: Expanding, tol: float, max_iter: int) -> None:
        """Some rounds."""
        S, most = state, state.n_values + WORK
        for _ in range(ROUNDS):
            S.done = not self.left.size
            if S.done or S.n_iter >= max_iter or S.n_values >= most:
                return
            row = self._chosen(problem, S, tol)
            if row < 0:
                self.left, S.done = self.left[:0], True
                return
            S.n_iter += 1
            S.at += 1
            self._process(problem, S, row, tol)
            self._reprocess(S, tol)

    # -- 1. which row ------------------------------------------------------------------------------

    def _chosen(self, problem: Passing, S: Expanding, tol: float) -> int:
        """The next row, which leaves the others; -1 where none is worth it."""
        if self.selection == "random":
            row, self.left = int(self.left[0]), self.left[1:]
            return row
        n = self.left.size
        draws = self.rng.integers(n, size=min(n, self.n_candidates))
        rows = self.left[draws] if n > self.n_candidates else self.left
        draws = draws if n > self.n_candidates else np.arange(n)
        f = self._scores(problem, S, rows) - self._middle(S)
        score = np.abs(f) if self.selection == "margin" else problem.sign[rows] * f
        best = int(np.argmin(score))
        if score[best] >= (1.0 if self.selection == "margin" else 1.0 - tol):
            return -1
        at, row = int(draws[best]), int(rows[best])
        self.left[at] = self.left[-1]
        self.left = self.left[:-1]
        return row

    @staticmethod
    def _scores(problem: Passing, S: Expanding, rows: Array) -> Array:
        """sum_v sign_v a_v k(row, v) over all vectors, frozen ones too."""
        new = problem.operand.take(rows)
        S.n_values += rows.size * (S.m + S.f_a.size)
        values = block(new, Strips(S.vectors.operand(S.m))).astype(np.float64)
        out = np.asarray(values @ (S.sign[: S.m] * S.a[: S.m]))
        if S.f_a.size:
            frozen = block(new, Strips(S.frozen.operand(S.f_a.size))).astype(np.float64)
            out += frozen @ (S.f_sign * S.f_a)
        return out

    @staticmethod
    def _middle(S: Expanding) -> float:
        """Minus the intercept: the middle of the extremes."""
        return 0.5 * (S.bottom + S.top) if abs(S.bottom) + abs(S.top) < FAR else 0.0

    # -- 2. PROCESS --------------------------------------------------------------------------------

    def _insert(self, problem: Passing, S: Expanding, row: int) -> int:
        """The row joins with a = 0; its slot."""
        self._make_room(problem, S, 1)
        free = np.flatnonzero(S.ids[: S.m] < 0)
        slot = int(free[0]) if free.size else S.m
        one = np.array([row])
        rows = problem.operand.take(one)
        S.vectors.put(np.array([slot]), rows, None if problem.raw is None else problem.raw[one],
                      np.zeros(1, np.intp))  # fmt: skip
        S.m = max(S.m, slot + 1)
        k = block(rows, Strips(S.vectors.operand(S.m)))[0]
        S.n_values += S.m
        S.K[slot, : S.m] = S.K[: S.m, slot] = k
        S.ids[slot], S.sign[slot] = problem.ids[row], problem.sign[row]
        S.upper[slot], S.a[slot] = problem.upper[row], 0.0
        s = float(self._scores(problem, S, one)[0])
        S.o[slot] = s - problem.sign[row]
        return slot

    def _process(self, problem: Passing, S: Expanding, row: int, tol: float) -> None:
        slot = self._insert(problem, S, row)
        low, up = self._extremes(S)
        if S.sign[slot] > 0:  # it may rise: with the largest that may fall
            self._move(S, slot, low, tol)
        else:
            self._move(S, up, slot, tol)

    # -- 3. REPROCESS ------------------------------------------------------------------------------

    def _reprocess(self, S: Expanding, tol: float) -> None:
        low, up = self._extremes(S)
        if not self._move(S, up, low, tol):
            return
        self._extremes(S)
        v = S.alive
        bare = v[S.a[v] <= 0.0]
        plus = S.sign[bare] > 0
        gone = np.where(plus, S.o[bare] >= S.top, S.o[bare] <= S.bottom)
        S.ids[bare[gone]] = -1  # a is zero there

    @staticmethod
    def _extremes(S: Expanding) -> tuple[int, int]:
        """The largest o that may fall, and the least that may rise; where they are."""
        v = S.alive
        plus = S.sign[v] > 0
        rises = np.where(plus, S.a[v] < S.upper[v], S.a[v] > 0.0)
        falls = np.where(plus, S.a[v] > 0.0, S.a[v] < S.upper[v])
        up, low = np.where(rises, S.o[v], FAR), np.where(falls, S.o[v], -FAR)
        S.bottom, S.top = float(up.min(initial=FAR)), float(low.max(initial=-FAR))
        if not v.size:
            return -1, -1
        return int(v[np.argmax(low)]), int(v[np.argmin(up)])

    @staticmethod
    def _move(S: Expanding, i: int, j: int, tol: float) -> bool:
        """i rises and j falls along the direction of y; False if they do not violate."""
        if i < 0 or j < 0 or not S.o[j] - S.o[i] > tol:
            return False
        room_i = S.upper[i] - S.a[i] if S.sign[i] > 0 else S.a[i]
        room_j = S.a[j] if S.sign[j] > 0 else S.upper[j] - S.a[j]
        curvature = float(S.K[i, i]) + float(S.K[j, j]) - 2.0 * float(S.K[i, j])
        t = min((S.o[j] - S.o[i]) / max(curvature, TINY), room_i, room_j)
        if not t > 0.0:
            return False
        for v, up, room in ((i, S.sign[i] > 0, room_i), (j, S.sign[j] < 0, room_j)):
            end, change = (S.upper[v], t) if up else (0.0, -t)
            S.a[v] = end if t >= room else S.a[v] + change  # at the bound exactly
        m = S.m
        S.o[:m] += t * (S.K[i, :m].astype(np.float64) - S.K[j, :m])
        return True
