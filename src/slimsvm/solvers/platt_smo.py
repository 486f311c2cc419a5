"""Sequential minimal optimisation as Platt published it.

Problem: the dual of a classifier, :func:`slimsvm.problems.dual_qp.classification`.

Algorithm: Platt (1998), "Fast training of support vector machines using sequential minimal
optimization" (platt1998smo), the pseudo-code of its section 2.5: two variables at a time, solved in
closed form. The outer loop goes over all examples, then over those that are not at a bound as long
as something changes among them, then over all again. For an example that violates its conditions by
more than tol the second one is the one not at a bound with the largest |E1 - E2|; if that makes no
progress, the others that are not at a bound, and then all, each from a random place on. The
threshold is such that the two new points are right, and errors of examples that are not at a bound
are cached. Linear kernels keep the weight vector, and need no kernel values at all.

Joachims (1999) compares SVM-light with it: q = 2, heuristics in place of the steepest direction, no
cache of kernel rows.

What is left open: the random places; whether a pass over the examples that are not at a bound
visits those that come away from one in that pass (here not); and the second choice, which the paper
describes as the largest |E1 - E2|, and also as the least E2 where E1 is positive and the largest
where it is negative: the former, which is the latter but where the error farthest away lies on the
other side. A value is taken for a bound within 1e-8 of C, as its errata say for data of unit
scale.

What differs: such a value is put where both variables are within their bounds, so that they balance
still; in the paper the other one may end beyond its bound by as much, and the value of such a point
bounds nothing. Errors of the examples that the outer loop is about to visit are computed for many
at once, and brought up to date with every step, as those in the cache are: the same numbers, with
fewer calls. Which of many second examples is the first to make progress is found for all of them at
once.

Symbols: f = s (without the threshold b); E = f - b - y; ready: examples whose f is up to date.
Cost of a step: 2 kernel values for each example that is ready.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from slimsvm.kernel_sums import accumulate
from slimsvm.kernels import Linear
from slimsvm.options import at_least, between
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
from slimsvm.tiles import Operand, Strips, block

Array = NDArray[Any]
AHEAD = 256  # examples of the outer loop whose errors are computed at once
ON_BOUND = 1e-8  # of the upper bound: Platt's rounding
ROUNDED = 8.0 * float(np.finfo(float).eps)  # of the numbers that the other variable is a sum of
DIGITS = 9  # of errors that are compared
WORK = 2e7  # kernel values computed in a step of the run
VISITS = 2000  # examples visited in it


@dataclass
class PlattState(Measured):
    """Where the loops are; ``n_iter`` counts steps of two variables."""

    operand: Operand
    sign: Array
    upper: Array
    diag: Array
    a: Array
    f: Array
    ready: Array
    rng: np.random.Generator
    b: float = 0.0
    w: Array | None = None  # with a linear kernel
    visits: Iterator[None] = field(default_factory=lambda: iter(()))

    @property
    def free(self) -> Array:
        """Examples that are not at a bound."""
        return np.flatnonzero((self.a > 0.0) & (self.a < self.upper))

    def errors(self, rows: Array) -> Array:
        """E of examples that are ready."""
        return np.asarray(self.f[rows] - self.b - self.sign[rows])

    def record(self) -> dict[str, float]:
        """A line of the history."""
        return history_line(self, self.a.size)


@dataclass(kw_only=True)
class PlattSMO:
    """Platt's SMO; ``tol`` is his, ``max_iter`` limits steps of two variables.

    Parameters
    ----------
    progress : float
        The least relative change of a variable that counts as a step: eps in the paper.
    seed : int
        Of the random places from which on second examples are tried.

    Examples
    --------
    >>> from slimsvm import SVC
    >>> from slimsvm.datasets import checkers
    >>> X, y = checkers(200, seed=0)
    >>> SVC(C=1.0, gamma=5.0, solver=PlattSMO()).fit(X, y).certificate_.violation < 0.01
    True
    """

    progress: float = 1e-3
    seed: int = 0

    def __post_init__(self) -> None:
        between(0.0, 1.0, progress=self.progress)
        at_least(0, seed=self.seed)

    @property
    def stalls(self) -> str:
        """How a sentence begins about an end at which conditions are violated still."""
        return f"Stopped because no pair of variables can move by progress={self.progress:g}"

    def init(self, problem: DualQP, start: Array | None = None) -> PlattState:
        """Begin at ``start`` (a feasible a), or at zero; in float64."""
        if problem.gram.dtype == np.float32:
            problem.gram.upgrade()
        operand, n = problem.gram.operand, problem.n_variables
        a = np.array(problem.start if start is None else start, np.float64)
        rng = np.random.default_rng(self.seed)
        state = PlattState(
            operand,
            problem.sign,
            problem.upper,
            operand.diag(),
            a,
            np.zeros(n),
            np.zeros(n, bool),
            rng,
        )
        coef = problem.sign * a
        if isinstance(operand.kernel, Linear) and operand.index is None:
            state.w = np.asarray(operand.X.T @ coef).ravel()
        everyone = np.arange(n)
        if coef.any():
            self._make_ready(state, everyone)
            state.objective = float(0.5 * (coef @ state.f) - a.sum())
            free = state.free
            if free.size:
                state.b = float(np.mean(state.f[free] - state.sign[free]))
        return state

    def step(self, problem: DualQP, state: PlattState, tol: float, max_iter: int) -> None:
        """Some visits of the outer loop."""
        S, most = state, state.n_values + WORK
        if S.n_iter == 0:
            S.visits = self._loop(S, tol)
        for _ in range(VISITS):
            if S.n_iter >= max_iter or S.n_values > most:
                break
            if next(S.visits, True):  # the loop is at its end
                S.done = True
                break
        if S.done:
            self._measure(S)
        problem.gram.n_values = S.n_values

    def _loop(self, S: PlattState, tol: float) -> Iterator[None]:
        """The main routine; it stops for breath after every visit."""
        everyone, examine_all, changed = np.arange(S.a.size), True, 0
        while changed > 0 or examine_all:
            changed = 0
            visited = everyone if examine_all else S.free
            for begin in range(0, visited.size, AHEAD):
                ahead = visited[begin : begin + AHEAD]
                self._make_ready(S, ahead[~S.ready[ahead]])
                for i in ahead.tolist():
                    if examine_all or 0.0 < S.a[i] < S.upper[i]:
                        changed += self._examine(S, i, tol)
                        yield None
                S.ready[:] = False  # but for the cache: those that are not at a bound
                S.ready[S.free] = True
            examine_all = False if examine_all else changed == 0

    def _examine(self, S: PlattState, i: int, tol: float) -> bool:
        """examineExample: a step with this example, if it violates its conditions."""
        error = float(S.errors(np.array([i]))[0])
        r = error * S.sign[i]
        if not ((r < -tol and S.a[i] < S.upper[i]) or (r > tol and S.a[i] > 0.0)):
            return False
        free = S.free
        if free.size > 1:
            # the last two have the same error, but for rounding: the first of equal ones
            best = free[[np.argmax(np.round(np.abs(S.errors(free) - error), DIGITS))]]
            if self._first(S, best, i, error):
                return True
        if free.size and self._first(S, np.roll(free, -S.rng.integers(free.size)), i, error):
            return True
        everyone = np.roll(np.arange(S.a.size), -S.rng.integers(S.a.size))
        waiting = S.ready.copy()
        self._make_ready(S, np.flatnonzero(~S.ready))
        made = self._first(S, everyone, i, error)
        S.ready &= waiting | ((S.a > 0.0) & (S.a < S.upper))
        return made

    def _first(self, S: PlattState, candidates: Array, i: int, error: float) -> bool:
        """takeStep with the first of the candidates that makes progress; whether one did."""
        candidates = candidates[candidates != i]
        if not candidates.size:
            return False
        j, y, a, C = candidates, S.sign, S.a, S.upper
        same = y[j] == y[i]
        total = np.where(same, a[j] + a[i], a[i] - a[j])
        low = np.where(same, np.maximum(0.0, total - C[j]), np.maximum(0.0, total))
        high = np.where(same, np.minimum(C[i], total), np.minimum(C[i], total + C[j]))
        k = self._values(S, np.array([i]), j)[0]
        eta, difference = S.diag[j] + S.diag[i] - 2.0 * k, S.errors(j) - error
        slope = y[i] * difference  # minus the derivative of the value along a_i
        with np.errstate(divide="ignore", invalid="ignore"):
            inside = np.clip(a[i] + slope / eta, low, high)
        fall_low = (
            slope * (low - a[i]) - 0.5 * eta * (low - a[i]) ** 2
        )  # how much lower it is there
        fall_high = slope * (high - a[i]) - 0.5 * eta * (high - a[i]) ** 2
        end = np.where(
            fall_low > fall_high + self.progress,
            low,
            np.where(fall_high > fall_low + self.progress, high, a[i]),
        )
        new = np.where(eta > 0.0, inside, end)
        # Platt's rounding, to where both variables are within their bounds
        new = np.where(new < low + ON_BOUND * C[i], low, new)
        new = np.where(new > high - ON_BOUND * C[i], high, new)
        enough = np.abs(new - a[i]) >= self.progress * (new + a[i] + self.progress)
        found = np.flatnonzero((low < high) & enough)
        if not found.size:
            return False
        at = found[0]
        self._step(S, int(j[at]), i, float(new[at]), float(k[at]))
        return True

    def _step(self, S: PlattState, j: int, i: int, new: float, k: float) -> None:
        """The new values, the threshold, the weight vector, and the errors that are ready."""
        y, C = S.sign, S.upper
        other = S.a[j] + y[i] * y[j] * (S.a[i] - new)
        if other < ROUNDED * max(S.a[i], S.a[j], new):
            other = 0.0
        elif other > C[j] - ROUNDED * max(C[j], S.a[i], new):
            other = C[j]
        di, dj = y[i] * (new - S.a[i]), y[j] * (other - S.a[j])
        Ei, Ej = (float(e) for e in S.errors(np.array([i, j])))
        S.objective += di * (Ei + S.b) + dj * (Ej + S.b)
        S.objective += 0.5 * (di * di * S.diag[i] + dj * dj * S.diag[j]) + di * dj * k
        b_i = Ei + di * S.diag[i] + dj * k + S.b
        b_j = Ej + di * k + dj * S.diag[j] + S.b
        S.a[i], S.a[j] = new, other
        if 0.0 < new < C[i]:
            S.b = b_i
        elif 0.0 < other < C[j]:
            S.b = b_j
        else:
            S.b = 0.5 * (b_i + b_j)
        if S.w is not None:
            x = S.operand.X[[i, j]]
            S.w += np.asarray(x.T @ np.array([di, dj])).ravel()
        S.ready[[i, j]] = True
        ready = np.flatnonzero(S.ready)
        if S.w is None:
            S.f[ready] += np.array([di, dj]) @ self._values(S, np.array([i, j]), ready)
        else:
            S.f[ready] = self._through_weights(S, ready)
        S.n_iter += 1

    # -- values ------------------------------------------------------------------------------------

    @staticmethod
    def _values(S: PlattState, rows: Array, columns: Array) -> Array:
        """k(rows, columns)"""
        S.n_values += 0 if S.w is not None else rows.size * columns.size
        return block(S.operand.take(rows), Strips(S.operand.take(columns)))

    @staticmethod
    def _through_weights(S: PlattState, rows: Array) -> Array:
        X = S.operand.X[rows]
        return np.asarray(X @ S.w).ravel() if sp.issparse(X) else np.asarray(X @ S.w)

    def _make_ready(self, S: PlattState, rows: Array) -> None:
        """f of these examples, from nothing."""
        if rows.size and S.w is not None:
            S.f[rows] = self._through_weights(S, rows)
        elif rows.size:
            support, f = np.flatnonzero(S.a), np.zeros(rows.size)
            if support.size:
                side, coef = Strips(S.operand.take(rows)), S.sign[support] * S.a[support]
                accumulate(S.operand.take(support), side, coef, f)
                S.n_values += support.size * rows.size
            S.f[rows] = f
        S.ready[rows] = True

    # -- what comes out ----------------------------------------------------------------------------

    def _measure(self, S: PlattState) -> None:
        """Value, violation and gap, from all examples."""
        self._make_ready(S, np.arange(S.a.size))
        o = S.f - S.sign
        reduced = S.sign * (o - S.b)
        wrong = np.where(S.a < S.upper, -reduced, 0.0)
        wrong = np.maximum(wrong, np.where(S.a > 0.0, reduced, 0.0))
        S.violation = max(0.0, float(wrong.max(initial=0.0)))
        S.gap = max(0.0, float(measure(S.a, o, S.sign, S.upper, S.b, S.b)[0]))
        S.objective = float(0.5 * ((S.sign * S.a) @ S.f) - S.a.sum())

    def certificate(self, problem: DualQP, state: PlattState, tol: float) -> Certificate:
        """Violation of the conditions at the threshold found, and gap."""
        self._measure(state)
        problem.gram.n_values = state.n_values
        S = state
        coef = S.sign * S.a
        reduced = S.sign * S.errors(np.arange(S.a.size))
        slopes = np.where(felt_by(S.operand, coef, S.f, reduced), S.upper, 0.0)
        off = rounding_at(S.operand, coef, S.f, slopes, S.f, S.b * coef.sum())
        certificate = Certificate(FULL, S.objective, S.violation, S.gap, tol, "float64")
        return certificate.rounded(off)

    def model(self, problem: DualQP, state: PlattState) -> DualSolution:
        """The dual point, and the threshold."""
        return DualSolution(state.a, state.f, (state.b, state.b))
