"""Decomposition with working sets of a fixed size, where the matrix is known by its factor.

Problem: min over a of  1/2 a'(V V' + diag(shift))a - linear'a,   0 <= a <= upper: the dual of the
reduced problem (:class:`slimsvm.problems.reduced.Reduced` with the squared hinge: shift = 1/(2 C),
no upper bounds), and that of an SVM on an incomplete Cholesky factor
(:class:`slimsvm.problems.factored_dual.FactoredDual`).

Algorithm: "Use Decomposition" of Lin & Lin (2003), lin2003rsvm: in each iteration a working set of
q variables is modified; the main cost is the change of the gradient, and with

    V V' d = V (V'd),   d the change of the q variables,

it takes O(m q) + O(l m) operations instead of O(l q m).

What the slides leave open, and what is done here: q (10, as SVM-light's); which variables are
chosen (the q with the largest part of the gradient along which they may move: the steepest feasible
direction of descent with q components, as in BSVM, which they name); the problem in the working set
(coordinate descent, to a thousandth of its largest violation); the end ("as close criteria as
possible": the largest such part of the gradient is at most tol, as in LIBSVM). There is no caching
or shrinking: once V is known, there are no kernel values to save.

It is slow for large C: see :mod:`slimsvm.solvers.chunking`, which the estimators use by themselves.

Symbols: w = V'a; g the gradient V w + shift a - linear; pull: the part of g along which a variable
may move.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from slimsvm.compiled import compiled
from slimsvm.options import is_whole
from slimsvm.problems.factored_dual import FactoredDual
from slimsvm.problems.reduced import Reduced
from slimsvm.run import SUBSPACE, Certificate
from slimsvm.solvers.dual_descent import DualPoint
from slimsvm.solvers.duality import TINY, ReducedSolver

Array = NDArray[Any]
# in a step of the run: entries of V visited, and iterations
WORK, MOST_ROUNDS = 5e7, 100
FINE, SWEEPS = 1e-3, 1000  # of the largest violation, where the problem in a working set ends
ANEW = 1000  # iterations after which w and g are made from a again: rounding errors add up


@compiled
def descend(H: Array, g: Array, a: Array, upper: Array, tol: float) -> None:
    """Coordinate descent from a, where the gradient is g; both are changed."""
    for _ in range(SWEEPS):
        worst = 0.0
        for i in range(a.size):
            slope = g[i]
            if (a[i] <= 0.0 and slope > 0.0) or (a[i] >= upper[i] and slope < 0.0):
                continue
            worst = max(worst, abs(slope))
            if H[i, i] > 0.0:
                new = min(max(a[i] - slope / H[i, i], 0.0), upper[i])
            else:
                new = upper[i] if slope < 0.0 else 0.0
            change = new - a[i]
            if change != 0.0:
                a[i] = new
                for j in range(a.size):
                    g[j] += change * H[i, j]
        if worst <= tol:
            break


class Factored(Protocol):
    """What the solver needs of a problem."""

    linear: Array
    shift: Array
    upper: Array

    @property
    def n_values(self) -> int:
        """Entries of V."""

    def rows(self, which: Array) -> Array:
        """Rows of V, ascending, dense, in float64."""

    def scores(self, w: Array) -> Array:
        """V w"""

    def combined(self, a: Array) -> Array:
        """V'a"""

    def value(self, w: Array, scores: Array) -> float:
        """The primal value."""


@dataclass
class OfReduced:
    """The dual of the reduced problem."""

    problem: Reduced

    def __post_init__(self) -> None:
        n = self.problem.features.n
        self.linear, self.upper = np.ones(n), np.full(n, np.inf)
        self.shift = 0.5 / self.problem.weight
        self.rows = self.problem.features._at
        self.scores, self.combined = self.problem.features.margins, self.problem.features.project
        self.value = self.problem.value

    @property
    def n_values(self) -> int:
        """Entries of V."""
        return self.problem.features.n * self.problem.features.size


@dataclass
class OfFactor:
    """The problem on a factor."""

    problem: FactoredDual

    def __post_init__(self) -> None:
        p = self.problem
        self.linear, self.shift, self.upper = p.linear, p.shift, p.upper
        self.scores, self.combined, self.value = p.scores, p.combined, p._primal

    @property
    def n_values(self) -> int:
        """Entries of V."""
        return self.problem.n_values

    def rows(self, which: Array) -> Array:
        """Rows of V."""
        some = self.problem.V[which]
        return np.asarray(some.toarray() if sp.issparse(some) else some, np.float64)


@dataclass
class SetsState:
    """Where the solver is; ``n_iter`` counts iterations."""

    dual: Factored
    a: Array
    u: Array  # w
    g: Array
    working: Array
    n_iter: int = 0
    done: bool = False
    stalled: bool = False
    violation: float = np.inf
    objective: float = np.inf  # the primal value of w
    gap: float = np.inf

    @property
    def relative_gap(self) -> float:
        """The duality gap, relative to the primal value."""
        return self.gap / max(self.objective, TINY) if np.isfinite(self.objective) else np.inf

    @property
    def pull(self) -> Array:
        """The part of the gradient along which each variable may move."""
        pull = np.where(self.a <= 0.0, np.minimum(self.g, 0.0), self.g)
        return np.where(self.a >= self.dual.upper, np.maximum(self.g, 0.0), pull)

    def record(self) -> dict[str, float]:
        """A line of the history."""
        return {
            "objective": self.objective,
            "gap": self.gap,
            "violation": self.violation,
            "n_basis": float(self.u.size - 1),
            "n_support": float(np.count_nonzero(self.a)),
            "active": float(self.working.size),
        }


@dataclass(kw_only=True)
class FixedSets(ReducedSolver):
    """Working sets of q variables; ``tol`` is the largest violation, ``max_iter`` their number.

    Parameters
    ----------
    working_set : int
        Variables in a working set, q.

    Examples
    --------
    >>> from slimsvm.run import run
    >>> V = np.array([[1.0, 1.0], [2.0, -1.0], [0.5, 0.5]])
    >>> problem = FactoredDual(V, 1.0, shift=0.0, upper=10.0)
    >>> run(FixedSets(working_set=2), problem, tol=1e-9).model.w.round(4)
    array([1., 1.])
    """

    working_set: int = 10

    def __post_init__(self) -> None:
        if not is_whole(self.working_set) or self.working_set < 1:
            raise ValueError(f"working_set={self.working_set!r} must be from 1 to the rows.")

    def init(self, problem: Any, start: Array | None = None) -> SetsState:
        """Begin at zero."""
        dual: Any = OfReduced(problem) if isinstance(problem, Reduced) else OfFactor(problem)
        n = dual.linear.size
        if self.working_set > n:
            raise ValueError(
                f"working_set={self.working_set} is more than the {n} variables of the problem (of "
                f"a pair of classes, if there are several): it must be from 1 to {n}."
            )
        a = np.zeros(n)
        w = np.zeros_like(dual.combined(a))
        return SetsState(dual, a, w, -dual.linear.copy(), np.empty(0, np.intp))

    def step(self, problem: Any, state: SetsState, tol: float, max_iter: int) -> None:
        """Some iterations, and the gap."""
        S = state
        many = int(max(1, min(MOST_ROUNDS, WORK / max(1, S.dual.n_values))))
        for _ in range(many):
            S.violation = float(np.max(np.abs(S.pull), initial=0.0))
            S.done = S.violation <= tol or S.stalled
            if S.done or S.n_iter >= max_iter:
                break
            self.iterate(S)
        scores = S.g - S.dual.shift * S.a + S.dual.linear
        S.violation = float(np.max(np.abs(S.pull), initial=0.0))
        S.objective = S.dual.value(S.u, scores)
        least = 0.5 * float(S.u @ S.u + S.dual.shift @ np.square(S.a)) - float(S.dual.linear @ S.a)
        S.gap = max(0.0, S.objective + least)

    def iterate(self, S: SetsState) -> Array:
        """One iteration; returns the working set."""
        dual, pull = S.dual, np.abs(S.pull)
        # 1. the variables with the steepest feasible direction
        q = min(self.working_set, pull.size)
        chosen = np.sort(np.argsort(-pull, kind="stable")[:q])
        # 2. the problem in them
        V, old = dual.rows(chosen), S.a[chosen]
        H = V @ V.T
        H[np.diag_indices(q)] += dual.shift[chosen]
        new = old.copy()
        descend(H, S.g[chosen], new, dual.upper[chosen], FINE * float(pull[chosen].max()))
        change = new - old
        fall = float(change @ S.g[chosen]) + 0.5 * float(change @ (H @ change))
        S.working, S.n_iter = chosen, S.n_iter + 1
        if not fall < 0.0:
            S.stalled = True
            return chosen
        # 3. w and the gradient: O(m q) and O(l m)
        moved = change @ V
        S.a[chosen] = new
        S.u = S.u + moved
        S.g += dual.scores(moved)
        S.g[chosen] += dual.shift[chosen] * change
        if S.n_iter % ANEW == 0:
            S.u = dual.combined(S.a)
            S.g = dual.scores(S.u) + dual.shift * S.a - dual.linear
        return chosen

    def certificate(self, problem: Any, state: Any, tol: float) -> Certificate:
        """The primal value of w, the duality gap, and the largest violation."""
        if isinstance(problem, Reduced):
            found = super().certificate(problem, state, tol)
            return replace(found, violation=state.violation)
        measured = (state.objective, state.violation, state.gap, tol, str(problem.V.dtype))
        return Certificate(SUBSPACE, *measured).rounded(problem.rounding(state.a, state.u))

    def model(self, problem: Any, state: Any) -> Any:
        """Coefficients and intercept of the reduced problem; of a factor, the dual point."""
        if isinstance(problem, Reduced):
            return super().model(problem, state)
        dual = problem.dual(state.a, state.u)
        return DualPoint(state.a, state.u, dual, state.u, state.objective)
