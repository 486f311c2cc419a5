"""SVM-light as it was published.

Problem: the dual of a classifier, :func:`slimsvm.problems.dual_qp.classification`: min 1/2 a'Qa -
1'a, 0 <= a <= upper, y'a = 0; or, with the squared hinge, 1/2 a'(Q + D^-1)a - 1'a, 0 <= a, D =
diag(2 upper).

Algorithm: Joachims (1999), "Making large-scale SVM learning practical" (joachims1999svmlight):

1. section 3, the working set: exactly q variables with the steepest feasible direction of descent.
   Sorted by o = y g, the q/2 largest that may fall, and of the others the q/2 smallest that may
   rise. Or the strategy that it is compared with (section 6.5): half of the set is replaced by
   variables that violate the conditions. With the rule of section 6.3, at least half of the whole
   set has its kernel rows cached.
2. section 5.4, the problem in the working set: a primal-dual interior-point solver (Vanderbei's,
   :mod:`slimsvm.solvers.interior_point`); or pair steps.
3. section 5.2: q kernel rows are known in each iteration, from a cache of rows or computed, and s
   and with it the gradient and the conditions are brought up to date with them.
4. section 4, shrinking: a variable at a bound whose multiplier estimate was positive in each of the
   last h iterations leaves the problem. After convergence the conditions of all are checked, and
   where they do not hold the whole problem goes on from there.
5. section 5.1, the end: the conditions hold within eps, with the mean of y - s over the free
   variables for the multiplier of the equality.

What the text leaves open, and what is done here. Equal values of o: the row that comes first. No
free variable: the middle of what the bounds allow. "Half of the working set" that the basic
strategy replaces: those that were in it longest, by violators that follow one another in the order
of the rows; and where the set that results has no pair that violates, the worst pair takes the
place of its last two (without this it may stand still: Osuna's minimal requirement). New variables
with the rule for cached rows: q/2 of them among the cached ones first. How closely the problem in
the working set is solved: to 12 digits, or by pair steps to eps/10. Where memory of columns that
left is used again: when a tenth of the columns has left. When the whole problem goes on, nothing is
cached, as rows have other columns then.

What differs: kernel values are in float32 where a bound on their errors allows it, and from where
it does not any more in float64.

Symbols: o = s + y p, p = -1 + a/D; level = minus the multiplier of the equality; alive: variables
that have not left; the local arrays hold the columns that have memory.
Cost of an iteration: (rows of the set that are not cached) x (active rows) kernel values, O(q l).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slimsvm.compiled import compiled
from slimsvm.options import at_least, between, flags, is_whole, one_of
from slimsvm.problems.dual_qp import DualQP
from slimsvm.run import FULL, Certificate
from slimsvm.solvers.dual_state import DualSolution, LocalArrays, felt_by, history_line, rounding_at
from slimsvm.solvers.interior_point import minimised
from slimsvm.solvers.row_cache import RowCache
from slimsvm.solvers.smo import FAR, smo

Array = NDArray[Any]
SELECTIONS, INNER = ("steepest", "basic"), ("interior_point", "smo")
LOSSES = ("hinge", "squared_hinge")
# in a step of the run: values added to s, and iterations
WORK, MOST_ROUNDS = 2e7, 100
UNUSED = 0.1  # share of the columns that has left, when their memory is used again
FINE = 0.1  # of eps: where pair steps of a working set end
MOST_PAIRS = 100_000
CACHED_FROM = 4  # variables: half of fewer would leave no choice of a pair


@compiled
def look(
    a: Array,
    s: Array,
    sign: Array,
    upper: Array,
    shift: Array,
    alive: Array,
    o: Array,
    rises: Array,
    falls: Array,
) -> tuple[float, float, float, int]:
    """o, keys to sort by (FAR: may not move so); their least and largest, sum and number of free o.

    Keys: o of those that may rise, -o of those that may fall.
    """
    bottom, top, free_sum, n_free = FAR, -FAR, 0.0, 0
    for v in range(a.size):
        x = s[v] + sign[v] * (shift[v] * a[v] - 1.0)
        o[v] = x
        above, below = a[v] > 0.0, a[v] < upper[v]
        plus = sign[v] > 0
        up = alive[v] and (below if plus else above)
        down = alive[v] and (above if plus else below)
        rises[v] = x if up else FAR
        falls[v] = -x if down else FAR
        if up and x < bottom:
            bottom = x
        if down and x > top:
            top = x
        if above and below and alive[v]:
            free_sum += x
            n_free += 1
    return bottom, top, free_sum, n_free


@compiled
def judge(
    a: Array,
    o: Array,
    sign: Array,
    upper: Array,
    alive: Array,
    level: float,
    count: Array,
    threshold: float,
) -> tuple[float, float, int, float]:
    """The largest violation, the duality gap of the hinge, the support vectors, and |a|^2.

    Counts for how many iterations in a row the multiplier estimate of a bound was above the
    threshold.
    """
    worst, gap, n_support, square = 0.0, 0.0, 0, 0.0
    for v in range(a.size):
        reduced = sign[v] * (o[v] - level)
        above, below = a[v] > 0.0, a[v] < upper[v]
        if not (above or below):  # both bounds are zero
            continue
        estimate = reduced if not above else -reduced
        bound = not above or not below
        count[v] = count[v] + 1 if bound and estimate > threshold else 0
        if alive[v]:
            wrong = -estimate if bound else abs(reduced)
            worst = wrong if wrong > worst else worst
        gap += a[v] * reduced
        if reduced < 0.0:
            gap -= upper[v] * reduced
        n_support += above
        square += a[v] * a[v]
    return worst, gap, n_support, square


@dataclass
class Gone:
    """Columns without memory: their rows, s, and the coefficients of all rows at that time."""

    rows: Array
    s: Array
    coef: Array


@dataclass
class LightState(LocalArrays):
    """Where the solver is; local arrays belong to ``cache.columns``."""

    cache: RowCache
    sign: Array  # of all rows, like upper, shift, a and s
    upper: Array
    shift: Array
    a: Array
    s: Array
    n_iter: int = 0
    done: bool = False
    stalled: bool = False
    objective: float = 0.0
    violation: float = np.inf
    level: float = 0.0
    hinge_gap: float = np.inf
    n_support: int = 0
    norm: float = 0.0
    bottom: float = FAR
    top: float = -FAR
    gone: list[Gone] = field(default_factory=list)
    working: Array = field(default_factory=lambda: np.empty(0, np.intp))  # rows, the oldest first
    still: int = 0  # iterations in a row that changed nothing
    next_row: int = 0  # where the basic strategy goes on
    n_values: int = 0
    alive_: Array = field(default_factory=lambda: np.empty(0, bool))
    count_: Array = field(default_factory=lambda: np.empty(0, np.int64))
    rises_: Array = field(default_factory=lambda: np.empty(0))
    falls_: Array = field(default_factory=lambda: np.empty(0))

    @property
    def n_active(self) -> int:
        """Variables that have not left."""
        return int(np.count_nonzero(self.alive_))

    def record(self) -> dict[str, float]:
        """A line of the history."""
        return history_line(self, self.n_active, (self.n_support, self.norm), self.hinge_gap)


@dataclass(kw_only=True)
class SVMLight:
    """SVM-light's decomposition; ``tol`` is eps, ``max_iter`` limits its iterations.

    Parameters
    ----------
    working_set : int
        Variables in a working set, q: an even number.
    new_variables : int, optional
        How many of them are new in each iteration, at most q: those that were in the set longest
        make room for them. Without it all q are chosen anew; for the basic strategy half of them.
        (An option of the program, -n; the text has the latter only.)
    selection : {"steepest", "basic"}
        How variables are chosen.
    prefer_cached : bool
        At least half of the working set must have its kernel rows cached, for problems with many
        free support vectors; with working sets of four or more.
    shrinking : bool
        Whether variables that stay at a bound leave the problem.
    history : int
        Iterations in which a multiplier estimate must be positive before its variable leaves, h.
    threshold : float
        Above which the estimates must be instead: "positive (or above some threshold)".
    inner : {"interior_point", "smo"}
        How the problem in the working set is solved.
    loss : {"hinge", "squared_hinge"}
        The squared hinge is not in the text: with working sets of two it is what Lin & Lin (2003)
        call libsvm-q.

    Examples
    --------
    >>> from slimsvm import SVC
    >>> from slimsvm.datasets import checkers
    >>> model = SVC(C=10.0, gamma=5.0, solver=SVMLight(working_set=4))
    >>> model.fit(*checkers(300, seed=0)).certificate_.holds
    True
    """

    working_set: int = 10
    new_variables: int | None = None
    selection: str = "steepest"
    prefer_cached: bool = False
    shrinking: bool = True
    history: int = 100
    threshold: float = 0.0
    inner: str = "interior_point"
    loss: str = "hinge"

    def __post_init__(self) -> None:
        q, new = self.working_set, self.new_variables
        if not is_whole(q) or q < 2 or q % 2:
            raise ValueError(
                f"working_set={q!r} must be an even number from 2 to the number of rows."
            )
        # one alone has no feasible direction to move in
        if new is not None and not (is_whole(new) and 2 <= new <= q):
            raise ValueError(f"new_variables={new!r} must be from 2 to working_set={q}.")
        at_least(1, history=self.history)
        if self.threshold != 0.0:
            between(0.0, np.inf, threshold=self.threshold)
        flags(prefer_cached=self.prefer_cached, shrinking=self.shrinking)
        if self.prefer_cached and q < CACHED_FROM:
            raise ValueError(f"prefer_cached needs a working_set of 4 or more; got {q}.")
        one_of(SELECTIONS, selection=self.selection)
        one_of(INNER, inner=self.inner)
        one_of(LOSSES, loss=self.loss)

    # -- the run -----------------------------------------------------------------------------------

    def init(self, problem: DualQP, start: Array | None = None) -> LightState:
        """Begin at ``start`` (a feasible a), or at zero."""
        n = problem.n_variables
        if self.working_set > n:
            raise ValueError(
                f"working_set={self.working_set} is more than the {n} rows of the problem (of a "
                f"pair of classes, if there are several): it must be an even number from 2 to {n}."
            )
        gram, squared = problem.gram, self.loss == "squared_hinge"
        upper = np.full(n, np.inf) if squared else problem.upper
        shift = 0.5 / problem.upper if squared else np.zeros(n)
        a = np.array(problem.start if start is None else start, np.float64)
        cache = RowCache(gram.operand, gram.budget, gram.n_threads)
        state = LightState(cache, problem.sign, upper, shift, a, np.zeros(n))
        self._begin(state)
        return state

    def _begin(self, S: LightState) -> None:
        """s and the value from nothing; all columns."""
        coef = S.sign * S.a
        moved = np.flatnonzero(coef)
        S.s = S.cache.products(moved, coef[moved], np.arange(S.a.size))
        S.objective = float(0.5 * (coef @ S.s) + 0.5 * (S.shift @ np.square(S.a)) - S.a.sum())
        S.gone = []
        self._localise(S)

    def _localise(self, S: LightState) -> None:
        """Fill the local arrays from the global ones; nobody has left, nothing is counted."""
        at = S.cache.columns
        S.a_, S.s_, S.sign_, S.upper_ = S.a[at], S.s[at], S.sign[at], S.upper[at]
        S.shift_, S.alive_ = S.shift[at], np.ones(at.size, bool)
        S.count_ = np.zeros(at.size, np.int64)
        S.o_, S.rises_, S.falls_ = np.empty(at.size), np.empty(at.size), np.empty(at.size)
        self._look(S)
        S.count_[:] = 0

    @staticmethod
    def _globalise(S: LightState) -> None:
        S.a[S.cache.columns], S.s[S.cache.columns] = S.a_, S.s_

    def _look(self, S: LightState) -> None:
        """The ends of o, the level, the violation and the counts of an iteration."""
        S.bottom, S.top, free, n_free = look(
            S.a_, S.s_, S.sign_, S.upper_, S.shift_, S.alive_, S.o_, S.rises_, S.falls_
        )
        ends = [end for end in (S.bottom, S.top) if abs(end) < FAR]
        S.level = free / n_free if n_free else float(np.mean(ends)) if ends else 0.0
        S.violation, S.hinge_gap, S.n_support, square = judge(
            S.a_, S.o_, S.sign_, S.upper_, S.alive_, S.level, S.count_, self.threshold
        )
        S.norm = float(np.sqrt(square + sum(float(S.a[g.rows] @ S.a[g.rows]) for g in S.gone)))

    def step(self, problem: DualQP, state: LightState, tol: float, max_iter: int) -> None:
        """Some iterations."""
        S, q = state, self.working_set
        many = int(max(1, min(MOST_ROUNDS, WORK / (q * max(1, S.cache.columns.size)))))
        for _ in range(many):
            if problem.gram.rounding * S.norm > tol:
                self._upgrade(problem, S)
            if S.violation <= tol or S.n_iter >= max_iter or S.still > 1:
                if S.n_active < S.a.size:
                    self._recheck(S)
                S.done = S.violation <= tol or S.still > 1
                if S.done or S.n_iter >= max_iter:
                    break
            self.iterate(S, tol)
        S.n_values = problem.gram.n_values = S.cache.n_values

    def iterate(self, S: LightState, tol: float) -> Array:
        """One iteration: the working set (returned, as rows), its problem, s, and who leaves."""
        chosen = self.choose(S, tol)
        rows = S.working
        values = S.cache.take(rows)
        delta = self._solved(S, chosen, values[:, chosen].astype(np.float64), tol)
        if delta.any():
            S.s_ += delta @ values
        S.still = 0 if delta.any() else S.still + 1
        S.n_iter += 1
        self._look(S)
        if self.shrinking:
            self._shrink(S)
        return rows

    # -- 1. the working set ------------------------------------------------------------------------

    def choose(self, S: LightState, tol: float) -> Array:
        """q variables: places among the local ones, the longest in the set first."""
        q, basic = self.working_set, self.selection == "basic"
        n_new = self.new_variables or (q // 2 if basic else q)
        place = np.full(S.a.size, -1)
        place[S.cache.columns] = np.arange(S.cache.columns.size)
        kept = place[S.working]
        kept = kept[kept >= 0]
        kept = kept[S.alive_[kept]]
        if basic:
            chosen = self._basic(S, kept, n_new if kept.size else q, tol)
        else:
            kept = kept[max(0, kept.size - (q - n_new)) :]
            chosen = np.concatenate([kept, self._steepest(S, kept)])
        S.working = S.cache.columns[chosen]
        return chosen

    def _steepest(self, S: LightState, kept: Array) -> Array:
        """The largest o that may fall, and of the others the least that may rise."""
        rises, falls = S.rises_.copy(), S.falls_.copy()
        n_new, found = self.working_set - kept.size, np.empty(0, np.intp)
        rises[kept] = falls[kept] = FAR
        wanted = [n_new - n_new // 2, n_new // 2]  # from the top, and from the bottom
        if self.prefer_cached:
            cached = S.cache.cached(S.cache.columns)
            half = max(0, self.working_set // 2 - int(np.count_nonzero(cached[kept])))
            for k, part in ((0, half - half // 2), (1, half // 2)):
                key = np.where(cached, falls if k == 0 else rises, FAR)
                some = first_smallest(key, min(part, wanted[k]))
                rises[some] = falls[some] = FAR
                wanted[k] -= some.size
                found = np.concatenate([found, some])
        for k in (0, 1):
            some = first_smallest(falls if k == 0 else rises, wanted[k])
            rises[some] = falls[some] = FAR
            found = np.concatenate([found, some])
        return found

    def _basic(self, S: LightState, kept: Array, n_new: int, tol: float) -> Array:
        """Variables that violate the conditions in place of part of the set."""
        reduced = S.sign_ * (S.o_ - S.level)
        wrong = np.where(S.a_ <= 0, -reduced, np.where(S.a_ >= S.upper_, reduced, np.abs(reduced)))
        wrong[kept] = 0.0
        found = np.flatnonzero(S.alive_ & (wrong > tol) & (S.upper_ > 0))
        begin = int(np.searchsorted(S.cache.columns[found], S.next_row))
        new = np.roll(found, -begin)[:n_new]
        if new.size:
            S.next_row = int(S.cache.columns[new[-1]]) + 1
        q = self.working_set
        chosen = np.concatenate([kept[max(0, kept.size - (q - new.size)) :], new])
        highest = -float(np.min(S.falls_[chosen], initial=FAR))
        if not highest - float(np.min(S.rises_[chosen], initial=FAR)) > tol:
            pair = np.array([np.argmin(S.falls_), np.argmin(S.rises_)])
            rest = chosen[~np.isin(chosen, pair)]
            chosen = np.concatenate([rest[: q - 2], pair])
        return np.asarray(chosen)

    # -- 2. the problem in the working set ---------------------------------------------------------

    def _solved(self, S: LightState, chosen: Array, K: Array, tol: float) -> Array:
        """The changes of the coefficients; a and the value are brought up to date."""
        sign, upper, old, o = S.sign_[chosen], S.upper_[chosen], S.a_[chosen], S.o_[chosen]
        K[np.diag_indices(chosen.size)] += S.shift_[chosen]
        for inner in (self.inner, "smo"):  # the second where rounding leaves the first no descent
            if inner == "interior_point":
                H = sign[:, None] * K * sign
                a = minimised(H, sign * o - H @ old, upper, sign, float(sign @ old))
            else:
                a, after = old.copy(), o.copy()
                diag = np.diag(K).copy()
                smo(K, diag, sign, upper, a, after, chosen.size, FINE * tol, MOST_PAIRS)
            delta = sign * (a - old)
            change = float(delta @ o) + 0.5 * float(delta @ (K @ delta))
            if change < 0.0:
                S.objective += change
                S.a_[chosen] = a
                return np.asarray(delta)
        return np.zeros(chosen.size)

    # -- 3. shrinking ------------------------------------------------------------------------------

    def _shrink(self, S: LightState) -> None:
        """Those whose multiplier estimate was positive for h iterations leave."""
        S.alive_ &= S.count_ < self.history
        if S.a_.size - S.n_active >= max(1.0, UNUSED * S.a_.size) and S.n_active:
            self._globalise(S)
            keep = np.flatnonzero(S.alive_)
            rows = S.cache.columns[~S.alive_]
            S.gone.append(Gone(rows, S.s[rows], S.sign * S.a))
            S.cache.restrict(keep)
            for name in ("a_", "s_", "sign_", "upper_", "shift_", "alive_", "count_", "o_"):
                setattr(S, name, getattr(S, name)[keep])
            S.rises_, S.falls_ = S.rises_[keep], S.falls_[keep]

    def _recheck(self, S: LightState) -> None:
        """The conditions of all variables: s of those without memory is computed from the changes.

        All are active then, and have memory.
        """
        self._globalise(S)
        coef = S.sign * S.a
        for group in S.gone:
            since = np.flatnonzero(coef != group.coef)
            delta = coef[since] - group.coef[since]
            S.s[group.rows] = group.s + S.cache.products(since, delta, group.rows)
        if S.gone:
            S.cache.reset()
        S.gone = []
        self._localise(S)

    def _upgrade(self, problem: DualQP, S: LightState) -> None:
        """Go on in float64: rounding errors of float32 values have reached the tolerance."""
        self._globalise(S)
        problem.gram.upgrade()
        before = S.cache
        S.cache = RowCache(problem.gram.operand, problem.gram.budget, problem.gram.n_threads)
        S.cache.n_values, S.cache.hits, S.cache.misses = before.n_values, before.hits, before.misses
        self._begin(S)

    # -- 4. what comes out -------------------------------------------------------------------------

    def certificate(self, problem: DualQP, state: LightState, tol: float) -> Certificate:
        """Violation of the conditions and gap over all variables."""
        S = state
        if S.n_active < S.a.size:
            self._recheck(S)
        self._globalise(S)
        gap, precision = S.hinge_gap, str(np.dtype(problem.gram.dtype))
        missing = np.maximum(0.0, 1.0 - S.sign * (S.s - S.level))
        coef, operand = S.sign * S.a, problem.gram.operand
        felt = felt_by(operand, coef, S.s, S.sign * (S.s - S.level) - 1.0)
        slopes = np.where(felt, problem.upper, 0.0)
        if self.loss == "squared_hinge":
            value = 0.5 * float((S.sign * S.a) @ S.s) + float(problem.upper @ np.square(missing))
            gap, slopes = value + S.objective, 2.0 * problem.upper * missing
        about = (S.objective, S.violation, max(0.0, gap), tol, precision)
        off = rounding_at(operand, coef, S.s, slopes, S.s, S.level * coef.sum())
        return Certificate(FULL, *about).rounded(off)

    def model(self, problem: DualQP, state: LightState) -> DualSolution:
        """The dual point."""
        self._globalise(state)
        open_ = abs(state.bottom) >= FAR or abs(state.top) >= FAR
        return DualSolution(state.a, state.s, (state.level, state.level), (open_, open_))


def first_smallest(key: Array, k: int) -> Array:
    """Places of the k smallest keys in their order, of equal ones the first; none that is FAR."""
    if k <= 0:
        return np.empty(0, np.intp)
    if k < key.size:
        last = np.partition(key, k - 1)[k - 1]
        below = np.flatnonzero(key < last)
        found = np.concatenate([below, np.flatnonzero(key == last)[: k - below.size]])
    else:
        found = np.arange(key.size)
    found = found[key[found] < FAR]
    return np.asarray(found[np.argsort(key[found], kind="stable")])
