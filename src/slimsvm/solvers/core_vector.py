"""CVM and BVM: the squared hinge's solution as a ball around points, from few of them.

Problem: with kt(i, j) = y_i y_j (k(x_i, x_j) + 1) + 1[i = j] / (2C), kt(i, i) = kappa the same for
all rows,

    minimise  1/2 (|w|^2 + b^2) + C sum_i max(0, 1 - y_i f(x_i))^2     has the dual

    maximise  e'a - 1/2 a'Kt a,  a >= 0,

whose solution is a = al / (al'Kt al), where al minimises q = al'Kt al on the simplex. The centre of
the smallest ball around the points whose inner products are kt is sum_i al_i phi_i, and its squared
radius kappa - q.

Algorithms. ``ball="minimum"``: CVM, Tsang, Kwok & Cheung (2005), tsang2005cvm: the core set grows
by the farthest of 59 random points that are outside of the (1 + eps) ball, and al is brought to the
optimum of the core set; until no point at all is outside. ``ball="fixed"``: BVM, Tsang, Kocsor &
Kwok (2007), tsang2007bvm: the radius stays sqrt(kappa), and a point outside of the (1 + eps) ball
pulls the centre until it is on the sphere, al <- t al + (1 - t) e_i, t = sqrt(kappa) / distance;
eps = 1/2, 1/4, ... down to the one that is wanted. Its limit is not the optimum.

What differs (:mod:`slimsvm.solvers.core_rounds` is as in the papers). The 59 are drawn from a
*pool* of POOL random rows, whose kernel values with the core set and with one another are computed
together; a pool is left when none of its points is outside, and the pools of a sweep are all the
rows. If none of the 59 is outside, the farthest of the pool is taken. Large core sets take several
points, each the farthest of its 59, before they are solved again. So no kernel value is computed
for one point alone, and the end is certain, not only likely. Core vectors that have lost their
weight may leave the core set. Up to EXACT rows the core set is everything, and al ends at near
float64 precision. With a fixed radius Kt al is kept at all rows: a pull adds one kernel row to it,
and at the end it is computed anew; pools with no point outside are passed over.

Symbols: o = Kt al at the core set, s = Kt al at the pool; a point is the farther away the smaller
its s; q = al'Kt al. Cost of a pool: POOL times core set kernel values; of a new core vector: a few
pair steps, each over the core set and the pool. With a fixed radius: of a pull n kernel values.
Memory: the core set squared, within ``budget``, and POOL times the core set.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from slimsvm.compiled import compiled
from slimsvm.kernel_sums import accumulate, add_rows
from slimsvm.precision import RANDOM
from slimsvm.run import FULL, Certificate
from slimsvm.solvers.decomposition import EXACT
from slimsvm.solvers.smo import FAR, TINY, find, gains, move, polish, smo
from slimsvm.tiles import Operand, Strips, for_each_tile

Array = NDArray[Any]
POOL = 1024  # rows that are looked at together
# the best of so many is among the best 5 % with a probability of 95 % (Smola & Schoelkopf 2000)
DRAWN = 59
DRAWS = 512  # of 59 in one call of a compiled loop: at most about a second of work
FEW_DRAWS = 32  # where a pool needs few
# the core set is solved until its points are this share of eps from their places on the sphere
INNER = 0.3
LOOSE = 0.3  # and while points are being added, this share of how far these were outside
TOGETHER = 64  # one vector joins at a time, and one more for every so many in the core set
SAME = 1e-5  # relative differences of k(x, x) up to which they are rounding errors of the rows
SPARE = 0.2  # share of core vectors without weight from which on they leave


@dataclass
class Ball:
    """The rows of two classes as points of which a ball is wanted."""

    operand: Operand
    sign: Array
    C: float
    budget: float = 2e9  # bytes for kernel values within the core set
    n_threads: int = 1
    ridge: float = field(init=False)
    kappa: float = field(init=False)

    def __post_init__(self) -> None:
        self.ridge = 1.0 / (2.0 * self.C)
        self.kappa = float(np.median(self.operand.diag())) + 1.0 + self.ridge

    @property
    def n(self) -> int:
        """Number of rows."""
        return int(self.sign.size)

    def values(self, rows: Array, columns: Array) -> Array:
        """kt(rows, columns)."""
        operand, out = self.operand, np.empty((rows.size, columns.size), self.operand.dtype)
        y, z = self.sign[rows].astype(out.dtype), self.sign[columns].astype(out.dtype)

        def keep(first: int, last: int, start: int, end: int, tile: Array) -> None:
            part = out[first:last, start:end]
            np.add(tile, 1, out=part)
            part *= y[first:last, None]
            part *= z[start:end]

        for_each_tile(operand.take(rows), Strips(operand.take(columns), 256), keep, self.n_threads)
        at = np.full(self.n, -1)
        at[columns] = np.arange(columns.size)
        both = np.flatnonzero(at[rows] >= 0)
        out[both, at[rows[both]]] += out.dtype.type(self.ridge)
        return out

    def products(self, rows: Array, al: Array) -> Array:
        """(Kt al) at some rows; nothing is kept."""
        support, s = np.flatnonzero(al), np.zeros(rows.size)
        coef = self.sign[support] * al[support]
        accumulate(
            self.operand.take(support),
            Strips(self.operand.take(rows), 256),
            coef,
            s,
            self.n_threads,
        )
        return np.asarray(self.sign[rows] * (s + coef.sum()) + self.ridge * al[rows])

    @cached_property
    def strips(self) -> Strips:
        """All rows as columns."""
        return Strips(self.operand)

    def add(self, rows: Array, delta: Array, s: Array) -> None:
        """s += Kt[:, rows] delta."""
        coef, sums = self.sign[rows] * delta, np.zeros(self.n)
        accumulate(self.operand.take(rows), self.strips, coef, sums, self.n_threads)
        s += self.sign * (sums + coef.sum())
        s[rows] += self.ridge * delta


def refuse_unequal(operand: Operand) -> None:
    """Raise ValueError unless k(x, x) is the same for all rows."""
    diag = operand.diag()
    low, high = float(diag.min()), float(diag.max())
    if high - low > SAME * max(abs(low), abs(high)):
        raise ValueError(
            f"CoreVectorSVC needs k(x, x) to be the same for all rows; with {operand.kernel!r} it "
            f"goes from {low:.4g} to {high:.4g}. Use the rbf or the Laplacian kernel, or scale the "
            "rows to unit length (sklearn.preprocessing.Normalizer), or use SVC."
        )


@dataclass
class BallState:
    """Where the algorithm is: al of all rows, and of the core set what the pair steps need."""

    al: Array
    q: float
    rng: np.random.Generator
    core: Array = field(default_factory=lambda: np.empty(0, np.intp))
    K: Array = field(default_factory=lambda: np.empty((0, 0)))
    o: Array = field(default_factory=lambda: np.empty(0))
    s: Array = field(default_factory=lambda: np.empty(0))  # Kt al at all rows, for the fixed radius
    fresh: bool = False  # s was computed anew from the al that is there, not by adding
    order: Array = field(default_factory=lambda: np.empty(0, np.intp))
    at: int = 0  # of the next pool in the sweep
    eps: float = 0.5  # of the stage, for the fixed radius
    still: bool = False  # nothing has moved in this sweep
    farthest: float = -np.inf  # squared distance, of the points seen since the last move
    loss: float = 0.0  # sum of squared hinges of the same
    primal: float = np.inf
    # the achieved eps, if a sweep has seen it; else that of the last pool
    violation: float = np.inf
    seen: bool = False  # whether primal and violation are of all rows and of this al
    n_iter: int = 0
    done: bool = False
    full: bool = False

    def record(self) -> dict[str, float]:
        """A line of the history."""
        return {
            "objective": self.primal,
            "gap": self.primal - 0.5 / self.q,
            "violation": self.violation,
            "n_support": float(np.count_nonzero(self.al)),
        }


@dataclass(frozen=True)
class Centre:
    """The dual point a = al / (al'Kt al) of the SVM, and the intercept y'a.

    ``full``: the budget was used up.
    """

    a: Array
    intercept: float
    full: bool = False


@dataclass(kw_only=True)
class CoreVector:
    """CVM and BVM, over a core set of rows.

    ``tol`` is eps, ``max_iter`` limits core vectors that join (pulls, for a fixed radius).

    Parameters
    ----------
    ball : {"minimum", "fixed"}
        CVM or BVM.
    seed : int
        Of the pools and of the draws from them.

    Examples
    --------
    >>> from slimsvm.kernels import RBF
    >>> from slimsvm.run import run
    >>> from slimsvm.tiles import prepare
    >>> X = np.array([[0.0], [1.0], [3.0], [4.0]])
    >>> ball = Ball(prepare(RBF(0.5), X), np.array([-1.0, -1.0, 1.0, 1.0]), C=10.0)
    >>> result = run(CoreVector(), ball, tol=1e-6)
    >>> result.certificate.holds, result.model.a.round(2)
    (True, array([0.53, 0.75, 0.75, 0.53]))
    """

    keeps_state: ClassVar[bool] = True

    ball: str = "minimum"
    seed: int = 0

    def init(self, problem: Ball, start: Any = None) -> BallState:
        """Begin with one random point of each class (a fixed radius: with the first of them)."""
        rng, al = np.random.default_rng(self.seed), np.zeros(problem.n)
        first = np.array([rng.choice(np.flatnonzero(problem.sign == sign)) for sign in (1.0, -1.0)])
        if self.ball == "fixed":
            al[first[0]] = 1.0
            return BallState(
                al, problem.kappa, rng, s=problem.products(np.arange(problem.n), al), fresh=True
            )
        al[first] = 0.5
        K = problem.values(first, first)
        o = 0.5 * K.sum(axis=1, dtype=np.float64)
        return BallState(al, float(0.5 * o.sum()), rng, first, K, o, eps=0.0)

    def step(self, problem: Ball, state: BallState, tol: float, max_iter: int) -> None:
        """One pool; at the end of a sweep in which nothing moved, the next stage or the end."""
        if self.ball == "fixed":
            self._pull(problem, state, tol, max_iter)
        elif problem.n <= EXACT:
            self._solve_whole(problem, state)
        else:
            self._sweep(problem, state, tol, max_iter)

    # -- CVM ---------------------------------------------------------------------------------------

    def _sweep(self, problem: Ball, S: BallState, eps: float, max_iter: int) -> None:
        """The next pool of a sweep over all rows."""
        if S.at >= S.order.size:
            S.order, S.at, S.still = S.rng.permutation(problem.n), 0, True
            S.farthest, S.loss = -np.inf, 0.0
        pool = S.order[S.at : S.at + POOL]
        moved, s = self._grow(problem, S, pool, eps, max_iter)
        S.at += pool.size
        S.still, S.seen = S.still and not moved, S.seen and not moved
        # what the pool says of the point as it is now; a sum over a whole sweep without a move is
        # about all rows
        S.farthest = max(S.farthest, float(S.q - 2.0 * s.min() + problem.kappa))
        S.loss += self._loss(problem, S, pool, s)
        if not (S.still and S.seen):
            S.violation = self._outside(problem, S)
        if S.at >= S.order.size and S.still:
            self._conclude(problem, S)
            S.done = True
        S.done = S.done or S.full

    def _grow(
        self, problem: Ball, S: BallState, pool: Array, eps: float, max_iter: int
    ) -> tuple[bool, Array]:
        """Core vectors from one pool, until none of it is outside."""
        moved = False
        self._leave(S)
        m, capacity = S.core.size, self._capacity(problem)
        room = min(capacity, m + pool.size)
        within = np.zeros((room, pool.size), problem.operand.dtype)
        within[:m] = problem.values(S.core, pool)
        own = problem.values(pool, pool)
        if S.K.shape[0] < room:  # twice as much as now, so that it is not copied for every pool
            larger = np.empty((min(capacity, max(room, 2 * m)),) * 2, S.K.dtype)
            larger[:m, :m] = S.K[:m, :m]
            S.K = larger
        al, o, s = np.zeros(S.K.shape[0]), np.zeros(S.K.shape[0]), np.zeros(pool.size)
        al[:m], o[:m] = S.al[S.core], S.o
        add_rows(within, np.arange(m), al[:m].astype(own.dtype), s, 0, pool.size, 0)
        core, inside = np.full(room, -1), np.zeros(pool.size, np.bool_)
        inside[np.isin(pool, S.core)] = True
        while True:
            draws = S.rng.integers(
                pool.size, size=(int(min(DRAWS, max(0, max_iter - S.n_iter))), DRAWN)
            )
            before = m
            m, more, S.full = _grow_core(
                S.K, within, own, al, o, s, core, inside, m, room, problem.kappa, eps, draws
            )
            S.n_iter += m - before
            moved = moved or m > before
            if not more or S.n_iter >= max_iter:
                break
        S.core = np.concatenate([S.core, pool[core[S.core.size : m]]])
        S.al[S.core], S.o = al[:m], o[:m]
        S.q = float(al[:m] @ o[:m])
        S.full = S.full and room == capacity
        return moved, s

    @staticmethod
    def _capacity(problem: Ball) -> int:
        """Core vectors whose kernel values fit into the budget."""
        return max(64, int(np.sqrt(problem.budget / problem.operand.dtype.itemsize)))

    @staticmethod
    def _leave(S: BallState) -> None:
        """Core vectors without weight leave, when they are many."""
        stays = np.flatnonzero(S.al[S.core] > 0)
        m = S.core.size
        if m - stays.size > SPARE * m:
            S.K[: stays.size, : stays.size] = S.K[:m, :m][np.ix_(stays, stays)]
            S.core, S.o = S.core[stays], S.o[stays]

    def _solve_whole(self, problem: Ball, S: BallState) -> None:
        """Few rows: all are the core set, in float64.

        The simplex has as much mass as rows, so that o is of the order of one.
        """
        n, everything = problem.n, np.arange(problem.n)
        K = problem.values(everything, everything)
        a, o, diag, sign, upper = (
            np.ones(n),
            K.sum(axis=1),
            np.full(n, problem.kappa),
            np.ones(n),
            np.full(n, 2.0 * n),
        )
        steps, _ = smo(K, diag, sign, upper, a, o, n, 1e-6 * problem.kappa, 100 * n)
        more, rough = polish(K, diag, sign, upper, a, o, n)
        while rough and S.n_iter < 20:
            S.n_iter += 1
            more, rough = polish(K, diag, sign, upper, a, o, n)
        S.al = a / a.sum()
        S.n_iter = steps + more
        s = K @ S.al
        S.q = float(S.al @ s)
        S.farthest, S.loss = (
            float(S.q - 2.0 * s.min() + problem.kappa),
            self._loss(problem, S, everything, s),
        )
        self._conclude(problem, S)
        S.done = True

    # -- BVM ---------------------------------------------------------------------------------------

    def _pull(self, problem: Ball, S: BallState, tol: float, max_iter: int) -> None:
        """Pulls by the next pool with points outside, until none of it is.

        If there are none at all, the next stage or the end.
        """
        eps, everyone = max(S.eps, tol), np.arange(problem.n)
        outside = S.s < 0.5 * (S.q + problem.kappa - (1.0 + eps) ** 2 * problem.kappa)
        S.seen = not outside.any()
        if not S.seen:
            pool = np.empty(0, np.intp)
            while not outside[pool].any():
                if S.at >= S.order.size:
                    S.order, S.at = S.rng.permutation(problem.n), 0
                pool, S.at = S.order[S.at : S.at + POOL], S.at + POOL
            self._pull_by(problem, S, pool, eps, max_iter)
        elif eps <= tol and not S.fresh:
            # what is said at the end rests on no sum of many small terms
            S.s, S.fresh = problem.products(everyone, S.al), True
        else:
            S.done, S.eps = eps <= tol, S.eps / 2.0
        S.farthest = float(S.q - 2.0 * S.s.min() + problem.kappa)
        if S.seen:
            S.loss = self._loss(problem, S, everyone, S.s)
            self._conclude(problem, S)
        else:
            S.violation = self._outside(problem, S)

    def _pull_by(self, problem: Ball, S: BallState, pool: Array, eps: float, max_iter: int) -> None:
        own, s, al, shrunk, more = problem.values(pool, pool), S.s[pool], S.al[pool], 1.0, True
        old, pulling = al.copy(), np.zeros(pool.size, bool)
        while more and S.n_iter < max_iter:
            draws = S.rng.integers(
                pool.size, size=(int(min(FEW_DRAWS, max_iter - S.n_iter)), DRAWN)
            )
            before = al.copy()
            S.q, scale, n_pulls, more = _pull_centre(own, s, al, S.q, problem.kappa, eps, draws)
            S.n_iter += n_pulls
            pulling |= al != before
            al *= scale
            shrunk *= scale
        S.al *= shrunk
        S.al[pool] = al
        S.s *= shrunk
        problem.add(pool[pulling], (al - shrunk * old)[pulling], S.s)
        S.fresh = False

    # -- what is known -----------------------------------------------------------------------------

    @staticmethod
    def _loss(problem: Ball, S: BallState, rows: Array, s: Array) -> float:
        """Sum of the squared hinges of some rows: y f = (s without the ridge's part) / q."""
        hinge = np.maximum(0.0, 1.0 - (s - problem.ridge * S.al[rows]) / S.q)
        return float(hinge @ hinge)

    def _outside(self, problem: Ball, S: BallState) -> float:
        """By which share of the radius the farthest point lies outside of the ball."""
        radius_sq = problem.kappa if self.ball == "fixed" else problem.kappa - S.q
        return max(0.0, float(np.sqrt(S.farthest / radius_sq) - 1.0))

    def _conclude(self, problem: Ball, S: BallState) -> None:
        """Primal value and achieved eps, from a look at all rows."""
        # in turn: the square overflows where C is tiny
        norm_sq = 1.0 / S.q - problem.ridge * float(S.al @ S.al) / S.q / S.q
        S.primal, S.violation, S.seen = (
            0.5 * norm_sq + problem.C * S.loss,
            self._outside(problem, S),
            True,
        )

    def certificate(self, problem: Ball, state: BallState, tol: float) -> Certificate:
        """The achieved eps is the violation.

        Objective and gap are those of the squared hinge with a penalised intercept.
        """
        S = state
        if not S.seen:  # stopped in the middle of a sweep: one more look at everything
            S.farthest, S.loss = -np.inf, 0.0
            for start in range(0, problem.n, 4 * POOL):
                rows = np.arange(start, min(problem.n, start + 4 * POOL))
                s = problem.products(rows, S.al)
                S.farthest = max(S.farthest, float(S.q - 2.0 * s.min() + problem.kappa))
                S.loss += self._loss(problem, S, rows, s)
            self._conclude(problem, S)
        gap = max(0.0, S.primal - 0.5 / S.q)
        certificate = Certificate(FULL, S.primal, S.violation, gap, tol, str(problem.operand.dtype))
        # |y f| is at most one more than the hinge, whose sum of squares is known
        a = S.al / S.q
        norm, slopes = float(np.sqrt(a @ a)), 2.0 * problem.C * float(np.sqrt(S.loss))
        shared = 2.0 * float(a.sum()) + slopes * (np.sqrt(problem.n) + np.sqrt(S.loss))
        error = problem.operand.rounding() + float(np.finfo(problem.operand.dtype).eps)
        return certificate.rounded(error * (shared + RANDOM * norm * (norm + slopes)))

    def model(self, problem: Ball, state: BallState) -> Centre:
        """The dual point of the SVM."""
        a = state.al / state.q
        return Centre(a, float(problem.sign @ a), state.full)


@compiled
def _farthest(s: Array, inside: Array, draw: Array, limit: float) -> int:
    """The farthest of the drawn points if it is outside, else the farthest of all.

    -1 if none is outside. Core vectors do not count.
    """
    at, least = -1, limit
    for d in range(draw.size):
        if s[draw[d]] < least and not inside[draw[d]]:
            at, least = draw[d], s[draw[d]]
    if at < 0:
        for p in range(s.size):
            if s[p] < least and not inside[p]:
                at, least = p, s[p]
    return at


@compiled
def _grow_core(
    K: Array, within: Array, own: Array, al: Array, o: Array, s: Array, core: Array, inside: Array,
    m: int, room: int, kappa: float, eps: float, draws: Array,
) -> tuple[int, bool, bool]:  # fmt: skip
    """Let points of a pool join the core set.

    Returns its size, whether points may be left outside, and whether a lack of space ended it.

    K: within the core set; within: core set and pool; own: within the pool. core[m]: the place in
    the pool of core vector m.
    """
    low, gain, diag = np.empty(room), np.empty(room), np.full(room, kappa)
    for v in range(m):
        low[v] = o[v] if al[v] > 0.0 else -FAR
    d, exact = 0, False
    while d < draws.shape[0]:
        # 1. outside of the (1 + eps) ball is where q - 2 s + kappa > (1 + eps)^2 (kappa - q)
        q = 0.0
        for v in range(m):
            q += al[v] * o[v]
        limit, enough = (
            0.5 * (q + kappa - (1.0 + eps) ** 2 * (kappa - q)),
            INNER * eps * (kappa - q),
        )
        # 2. the farthest of those drawn joins; a large core set takes several at a time
        farthest, joined = limit, 0
        while joined < 1 + m // TOGETHER and d < draws.shape[0] and m < room:
            p = _farthest(s, inside, draws[d], limit)
            if p < 0:
                break
            for v in range(m):
                K[m, v] = K[v, m] = within[v, p]
            K[m, m] = own[p, p]
            for r in range(own.shape[0]):  # assigned as arrays, it takes seconds to compile
                within[m, r] = own[p, r]
            o[m], al[m], low[m], core[m], inside[p] = s[p], 0.0, -FAR, p, True
            farthest = min(farthest, s[p])
            m, d, joined = m + 1, d + 1, joined + 1
        if not joined and exact:
            return m, False, m == room and _farthest(s, inside, draws[0], limit) >= 0
        # 3. the core set's own optimum, by pairs: as near as is worth it while others are still
        # farther away
        exact = not joined
        settle(
            K,
            within,
            al,
            o,
            low,
            gain,
            diag,
            s,
            m,
            enough if exact else max(enough, LOOSE * (limit - farthest)),
        )
    return m, True, False


@compiled
def settle(
    K: Array, within: Array, al: Array, o: Array, low: Array, gain: Array, diag: Array, s: Array,
    m: int, tol: float
) -> None:  # fmt: skip
    """Move weight between pairs of core vectors, up to the tolerance.

    Ends when no o of a vector that has weight exceeds another by more than ``tol``.
    """
    bottom, top = move(o, low, K[0], K[0], 0.0, 0, m)  # a step of zero: the extremes
    steps = 0
    while top - bottom > tol and steps < 100 * m:
        i = find(o, bottom, 0, m)
        best = gains(low, bottom, diag[i], diag, K[i], gain, 0, m)
        j = find(gain, best, 0, m)
        t = min((low[j] - bottom) / max(diag[i] + diag[j] - 2.0 * K[i, j], TINY), al[j])
        al[i] += t
        al[j] = al[j] - t if t < al[j] else 0.0
        low[i] = low[j] = -FAR
        bottom, top = move(o, low, K[i], K[j], t, 0, m)
        low[i], low[j] = o[i], o[j] if al[j] > 0.0 else -FAR
        top = max(top, low[i], low[j])
        row_i, row_j = within[i], within[j]
        for p in range(s.size):
            s[p] += t * (row_i[p] - row_j[p])
        steps += 1


@compiled
def _pull_centre(
    own: Array, s: Array, al: Array, q: float, kappa: float, eps: float, draws: Array
) -> tuple[float, float, int, bool]:
    """Pull the centre towards points of a pool.

    Returns q, the factor of all al, the number of pulls, and whether points may be left.
    """
    scale, n_pulls, anyone = 1.0, 0, np.zeros(s.size, np.bool_)
    for d in range(draws.shape[0]):
        limit = 0.5 * (q + kappa - (1.0 + eps) ** 2 * kappa)
        p = _farthest(s, anyone, draws[d], limit)
        if p < 0:
            return q, scale, n_pulls, False
        t = np.sqrt(kappa / (q - 2.0 * s[p] + kappa))
        q = t * t * q + 2.0 * t * (1.0 - t) * s[p] + (1.0 - t) ** 2 * kappa
        row = own[p]
        for v in range(s.size):
            s[v] = t * s[v] + (1.0 - t) * row[v]
        scale *= t
        al[p] += (1.0 - t) / scale
        n_pulls += 1
    return q, scale, n_pulls, True
