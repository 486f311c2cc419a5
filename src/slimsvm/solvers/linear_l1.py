"""Sparse weights: the squared hinge with the sum of the sizes of the weights as the penalty.

    min over w, b of  sum_j |w_j| + |b| / scaling + sum_i weight_i e_i^2,
    e_i = max(0, 1 - y_i f_i),  f = X w + b

``scaling`` is that of the intercept: inf is a free one, 0 none, any other number LIBLINEAR's, the
value of a further, constant feature.

Algorithm: coordinate descent by Newton steps in one weight, Yuan, Chang, Hsieh & Lin (2010),
section 4 and appendix (yuan2010comparison): along w_j the loss is replaced by its quadratic
expansion, the least value with |w_j| is known, and the step is halved until the objective falls
enough; a bound on the curvature often saves the look. Weights that stay at zero are set aside until
the others are done.

What differs. The end is a duality gap: v_i = 2 weight_i e_i, scaled down until |sum_i y_i v_i x_ij|
<= 1 for every feature, is a feasible point of the dual, sum_i v_i - v_i^2 / (4 weight_i). A free
intercept is a coordinate without a penalty, and is put to its optimum before the gap is looked at,
where sum_i y_i v_i = 0. Every look has the slopes along all weights: until the next one, only those
that are not zero or violate their condition take part, at most about twice as many as are not zero.
Between passes all weights that are not zero move at once (:mod:`slimsvm.solvers.linear_l1_support`;
where features are fewer, all weights, :mod:`slimsvm.solvers.linear_l1_newton`). The order is drawn
by a generator of the column's own: results do not depend on the number of threads.

Symbols: e = 1 - y f (also where negative), G, H slope and curvature of the loss along a weight.
Cost of a sweep: two to three times the entries of the active columns.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.linalg.lapack import dposv

from slimsvm.compiled import compiled
from slimsvm.problems.linear import TINY, LinearSolution
from slimsvm.run import FULL, Certificate
from slimsvm.solvers.linear_l1_newton import MOST_FEATURES, Expansion, product
from slimsvm.solvers.linear_l1_support import newton_on_support
from slimsvm.threads import parallel, single_threaded_blas

Array = NDArray[Any]
SLOPE = 0.01  # share of the expected fall that a step must bring (LIBLINEAR's sigma)
MOST_HALVINGS = 20
LEAST_CURVATURE = 1e-12
WORK = 2e8  # entries visited in a step of all columns: about half a second
MOST_NEWTON = 100  # steps for a free intercept on its own
# weights that are not zero, up to which all move at once
LARGEST = 1000
# columns that are made dense: if they have few entries, or one of DENSE is not zero
SMALL, DENSE = 100_000, 5
RIDGE = 1e-12  # of that step's system
FIRST = 2  # passes before all weights move at once, zero or not
AT_ONCE = 5  # such steps, between looks
# with many features, from one look to the next: at most so many rounds of passes and a step in all
# weights that are not zero, until the violation has fallen to a share of what it was
ROUNDS, PASSES, INNER = 8, 2, 0.2
FEWEST = 200  # weights that take part, at least
NEARLY = 1e-3  # slopes so near to one take part
# a step that does not lower the objective but for rounding must lower the largest slope
ROUNDED, FLATTER = 1e-14, 0.5
FLAT = 1e-13  # slope that is rounding: the penalty's is one
LEAST_FALL = 1e-9  # of the objective, for a step that was cut short: else it goes to and fro
FAR = 1e300  # for infinity, which compiled loops do not know


@compiled
def _sweep(
    indptr: Array, indices: Array, data: Array, y: Array, c: Array, sq: Array, e: Array, w: Array,
    order: Array, active: int, last: float,
) -> tuple[int, float, float, float]:  # fmt: skip
    """One pass over the active weights, in place: how many stay active, and the violation.

    ``last`` is the violation of the pass before; ``sq`` are weighted sums of squares. Also returns
    the sum of all violations, and the entries visited.
    """
    largest, total, visited = 0.0, 0.0, 0.0
    k = 0
    while k < active:
        j = order[k]
        first, end = indptr[j], indptr[j + 1]
        visited += 2.0 * (end - first)
        G, H = 0.0, 0.0
        for p in range(first, end):
            i = indices[p]
            if e[i] > 0.0:
                t = c[i] * y[i] * data[p]
                G -= t * e[i]
                H += t * y[i] * data[p]
        G, H = 2.0 * G, max(2.0 * H, LEAST_CURVATURE)
        up, down = G + 1.0, G - 1.0
        if w[j] == 0.0:
            if up < 0.0:
                violation = -up
            elif down > 0.0:
                violation = down
            else:
                violation = 0.0
                if up > last and down < -last:
                    active -= 1
                    order[k], order[active] = order[active], order[k]
                    continue
        else:
            violation = abs(up) if w[j] > 0.0 else abs(down)
        largest, total = max(largest, violation), total + violation
        if up <= H * w[j]:
            d = -up / H
        elif down >= H * w[j]:
            d = -down / H
        else:
            d = -w[j]
        k += 1
        if abs(d) < 1e-300:
            continue
        expected = abs(w[j] + d) - abs(w[j]) + G * d
        done, t = 0.0, 1.0
        for _ in range(MOST_HALVINGS):
            goal = abs(w[j] + t * d) - abs(w[j]) - SLOPE * t * expected
            # the curvature with all rows is a bound
            enough = sq[j] * (t * d) ** 2 + G * t * d + goal <= 0.0
            if not enough:
                visited += end - first
                change = 0.0
                for p in range(first, end):
                    i = indices[p]
                    new = e[i] - t * d * y[i] * data[p]
                    old = max(e[i], 0.0)
                    change += c[i] * (max(new, 0.0) ** 2 - old * old)
                enough = change + goal <= 0.0
            if enough:
                done = t * d
                break
            t /= 2.0
        if done != 0.0:
            w[j] = 0.0 if done == -w[j] else w[j] + done
            for p in range(first, end):
                i = indices[p]
                e[i] -= done * y[i] * data[p]
    return active, largest, total, visited


@compiled
def _balance(y: Array, c: Array, e: Array) -> float:
    """The change of a free intercept that is best for these e, which are changed with it."""
    whole, below, above = 0.0, -FAR, FAR
    for _ in range(MOST_NEWTON):
        slope, bend = 0.0, 0.0
        for i in range(e.size):
            r = e[i] - whole * y[i]
            if r > 0.0:
                slope -= 2.0 * c[i] * y[i] * r
                bend += 2.0 * c[i]
        if slope == 0.0 or bend == 0.0:
            break
        if slope < 0.0:
            below = whole
        else:
            above = whole
        new = whole - slope / bend
        if not (below < new and new < above):
            if below == -FAR or above == FAR:
                break
            new = 0.5 * (below + above)
        if abs(new - whole) <= 1e-16 * max(1.0, abs(whole)):
            break
        whole = new
    for i in range(e.size):
        e[i] -= whole * y[i]
    return whole


@compiled
def _chosen_columns(indptr: Array, indices: Array, data: Array, chosen: Array, out: Array) -> None:
    """Some columns as dense ones; ``out`` is zero."""
    for c in range(chosen.size):
        for p in range(indptr[chosen[c]], indptr[chosen[c] + 1]):
            out[indices[p], c] = data[p]


@compiled
def _errors(
    indptr: Array, indices: Array, data: Array, y: Array, w: Array, b: float, e: Array
) -> None:
    """e = 1 - y (X w + b)."""
    for i in range(e.size):
        e[i] = b
    for j in range(w.size):
        if w[j] != 0.0:
            for p in range(indptr[j], indptr[j + 1]):
                e[indices[p]] += w[j] * data[p]
    for i in range(e.size):
        e[i] = 1.0 - y[i] * e[i]


@compiled
def _pulls(indptr: Array, indices: Array, data: Array, u: Array, out: Array) -> None:
    """|X'u|."""
    for j in range(out.size):
        total = 0.0
        for p in range(indptr[j], indptr[j + 1]):
            total += data[p] * u[indices[p]]
        out[j] = abs(total)


def _chosen(w: Array, pulls: Array, order: Array) -> int:
    """The weights that take part, first in ``order``; how many they are."""
    score = np.where(w != 0.0, np.inf, pulls)
    takes_part = score > 1.0 - NEARLY
    most = max(FEWEST, 2 * int(np.count_nonzero(w)))
    if int(np.count_nonzero(takes_part)) > most:
        takes_part[:] = False
        takes_part[np.argpartition(-score, most - 1)[:most]] = True
    first = np.flatnonzero(takes_part)
    order[: first.size], order[first.size :] = first, np.flatnonzero(~takes_part)
    return int(first.size)


def _of_dense(X: Array) -> Any:
    """A dense array in CSC format: without looking for zeros where they are few."""
    n, d = X.shape
    if n * d >= 2**31 or 2 * np.count_nonzero(X) < X.size:
        return sp.csc_array(X, dtype=np.float64)
    at, ends = np.tile(np.arange(n, dtype=np.int32), d), np.arange(0, n * d + 1, max(n, 1))
    return sp.csc_array((np.array(X.T, np.float64).ravel(), at, ends.astype(np.int32)), (n, d))


@dataclass
class L1Problem:
    """Rows, signs (n, columns), weights with C ((n,) or (n, columns)), and the intercept's kind.

    Examples
    --------
    >>> from slimsvm.run import run
    >>> X, y = np.array([[1.0, 0.1], [-1.0, 0.1]]), np.array([[1.0], [-1.0]])
    >>> result = run(L1Descent(), L1Problem(X, y, np.full(2, 2.0), 0.0), tol=1e-6)
    >>> result.model.coef.round(3).tolist()
    [[0.875], [0.0]]
    """

    X: Any
    target: Array
    weight: Array
    scaling: float = 1.0
    n_threads: int = 1
    columns: Any = field(init=False, repr=False)  # CSC, with the constant feature

    def __post_init__(self) -> None:
        X = self.X
        if 0.0 < self.scaling < np.inf:
            constant = np.full((X.shape[0], 1), self.scaling)
            X = sp.hstack([X, constant]) if sp.issparse(X) else np.hstack([X, constant])
        self.columns = sp.csc_array(X, dtype=np.float64) if sp.issparse(X) else _of_dense(X)
        self.columns.sum_duplicates()

    @property
    def free(self) -> bool:
        """Whether the intercept has no penalty."""
        return self.scaling == np.inf

    def some(self, chosen: Array) -> Any:
        """Some columns, with that of a free intercept: dense, unless they would be mostly zeros."""
        A, n = self.columns, self.columns.shape[0]
        shape = (n, chosen.size + self.free)
        if n * shape[1] > SMALL:
            few = A[:, chosen]
            if DENSE * few.nnz < few.shape[0] * few.shape[1]:
                ones = [np.ones((n, 1))] if self.free else []
                return sp.hstack([few, *ones], format="csr")
        Z = np.zeros(shape)
        _chosen_columns(A.indptr, A.indices, A.data, chosen, Z)
        Z[:, chosen.size :] = 1.0
        return Z

    def of_column(self, k: int) -> tuple[Array, Array]:
        """Signs and weights of a column."""
        weight = self.weight if self.weight.ndim == 1 else self.weight[:, k]
        return np.ascontiguousarray(self.target[:, k]), np.ascontiguousarray(weight)


@dataclass
class L1State:
    """One entry a column of targets."""

    W: Array  # (columns, features with the constant one)
    b: Array
    e: Array  # (columns, n): 1 - y f
    sq: list[Array]
    order: list[Array]
    active: list[int]
    last: Array  # violation of the last pass
    objective: Array
    gap: Array
    rng: list[Any]
    n_iter: int = 0
    done: bool = False

    def record(self) -> dict[str, float]:
        """A line of the history; ``violation`` is the largest relative gap of a column."""
        relative = self.gap / np.maximum(self.objective, TINY)
        return {
            "objective": float(self.objective.sum()),
            "gap": float(self.gap.sum()),
            "violation": float(relative.max()),
            "n_nonzero": float(np.count_nonzero(self.W)),
        }


@dataclass(kw_only=True)
class L1Descent:
    """Coordinate descent, until the relative duality gap of every column is within the tolerance.

    ``max_iter`` of :func:`slimsvm.run.run` limits the passes over the weights.
    """

    keeps_state: ClassVar[bool] = True

    seed: int = 0

    def init(self, problem: L1Problem, start: LinearSolution | None = None) -> L1State:
        """Begin at weights and intercepts, or at zero."""
        d = problem.columns.shape[1]
        k = problem.target.shape[1]
        W, b = np.zeros((k, d)), np.zeros(k)
        if start is not None:
            W[:, : start.coef.shape[0]] = start.coef.T
            if problem.free:
                b[:] = start.intercept
            elif problem.scaling > 0.0:
                W[:, -1] = start.intercept / problem.scaling
        squares = problem.columns.copy()
        squares.data = squares.data**2
        sq = [np.asarray(squares.T @ problem.of_column(c)[1]).ravel() for c in range(k)]
        state = L1State(
            W,
            b,
            np.empty((k, problem.columns.shape[0])),
            sq,
            [np.arange(d) for _ in range(k)],
            [d] * k,
            np.full(k, np.inf),
            np.empty(k),
            np.full(k, np.inf),
            [np.random.RandomState([self.seed, c]) for c in range(k)],
        )
        parallel(lambda c: self._look(problem, state, c), k, problem.n_threads)
        return state

    def step(self, problem: L1Problem, state: L1State, tol: float, max_iter: int) -> None:
        """Passes and Newton's steps of the columns that are not done, and looks at their gaps."""
        which = np.flatnonzero(state.gap > tol * np.maximum(state.objective, TINY))
        passes, left = np.zeros(which.size, np.int64), max_iter - state.n_iter
        rounds = ROUNDS
        if which.size:
            rounds = int(min(ROUNDS, 1 + WORK / (which.size * PASSES * (problem.columns.nnz + 1))))

        def improve(t: int) -> None:
            c = int(which[t])
            if problem.columns.shape[1] > MOST_FEATURES:
                passes[t] = self._with_some(problem, state, c, rounds, left)
                self._look(problem, state, c)
                return
            passes[t] = self._passes(problem, state, c, min(left, FIRST if not state.n_iter else 0))
            if passes[t]:
                self._look(problem, state, c)
            if passes[t] < left and state.gap[c] > tol * max(float(state.objective[c]), TINY):
                self._expanded(problem, state, c, tol)
                passes[t] += 1

        with single_threaded_blas():
            parallel(improve, which.size, problem.n_threads)
        state.n_iter += int(passes.max(initial=0))
        state.done = bool((state.gap <= tol * np.maximum(state.objective, TINY)).all())

    @staticmethod
    def _passes(problem: L1Problem, state: L1State, c: int, most: int) -> int:
        """Passes over the active weights of a column."""
        columns, (y, weight) = problem.columns, problem.of_column(c)
        for _ in range(most):
            order, active = state.order[c], state.active[c]
            order[:active] = state.rng[c].permutation(order[:active])
            last = 0.01 * state.last[c] if np.isfinite(state.last[c]) else FAR
            state.active[c], state.last[c], _, _ = _sweep(
                columns.indptr, columns.indices, columns.data, y, weight, state.sq[c],
                state.e[c], state.W[c], order, active, last,
            )  # fmt: skip
            if problem.free:
                state.b[c] += _balance(y, weight, state.e[c])
        return most

    def _with_some(self, problem: L1Problem, state: L1State, c: int, rounds: int, left: int) -> int:
        """Rounds of passes and of a step in all weights that are not zero; how many passes."""
        columns, (y, weight) = problem.columns, problem.of_column(c)
        done, goal = 0, -1.0
        for at in range(rounds):
            done += self._passes(problem, state, c, min(PASSES, left - done))
            if state.last[c] <= goal or done >= left:
                break
            goal = INNER * float(state.last[c]) if not at else goal
            if y.size <= LARGEST:  # as near as rounding allows
                self._newton(problem, state, c)
                continue
            _, change, _ = newton_on_support(
                columns.indptr, columns.indices, columns.data, problem.free, y, weight,
                state.e[c], state.W[c],
            )  # fmt: skip
            state.b[c] += change
        return done

    def _expanded(self, problem: L1Problem, state: L1State, c: int, tol: float) -> None:
        """Newton's steps in all weights of a column, zero or not; single weights crawl here."""
        y, weight = problem.of_column(c)
        expansion = Expansion(problem.columns, problem.free, y, weight)
        penalty = np.ones(expansion.H.shape[0])
        if problem.free:
            penalty[-1] = 0.0
        d = state.W.shape[1]
        for _ in range(AT_ONCE):
            w = np.append(state.W[c], state.b[c]) if problem.free else state.W[c]
            found = expansion.step(penalty, w, state.e[c])
            if found is None:
                break
            state.W[c], state.e[c] = found[0][:d], found[1]
            state.b[c] = found[0][d:].sum() if problem.free else state.b[c]
            self._look(problem, state, c)
            if state.gap[c] <= tol * max(float(state.objective[c]), TINY):
                break

    def _newton(self, problem: L1Problem, state: L1State, c: int) -> bool:
        """One step of Newton's in all weights that are not zero, as far as their signs hold.

        Along single weights one gets on slowly where features are alike; the signs, and the rows
        with an error, are known long before.
        """
        y, weight = problem.of_column(c)
        w, e = state.W[c], state.e[c]
        chosen, rows = np.flatnonzero(w), np.flatnonzero(e > 0.0)
        n_features, size = chosen.size, chosen.size + problem.free
        if not n_features or size > LARGEST:
            return False
        Z = problem.some(chosen)
        sign = np.concatenate([np.sign(w[chosen]), np.zeros(size - n_features)])
        slope = sign - Z.T @ (2.0 * weight * y * np.maximum(e, 0.0))
        if np.abs(slope).max() <= FLAT:
            return False
        H = product(Z[rows], 2.0 * weight[rows])
        H[np.diag_indices(size)] += RIDGE * float(np.trace(H)) / size + TINY
        _, step, failed = dposv(H, -slope)
        if failed:
            step = np.linalg.lstsq(H, -slope, rcond=None)[0]
        now = float(np.abs(w).sum() + weight @ np.maximum(e, 0.0) ** 2)
        of_weights, moved = step[:n_features], np.flatnonzero(step[:n_features] * w[chosen] < 0.0)
        meets_zero = -w[chosen[moved]] / of_weights[moved]
        nearest = float(meets_zero.min(initial=np.inf))
        # a system that is nearly singular leads far away: then to where the first weight is zero
        for t in (1.0, 0.25, min(1.0, nearest)):
            new = w[chosen] + t * of_weights
            new[new * sign[:n_features] <= 0.0] = 0.0  # a weight stops where its sign would change
            if t == nearest:
                new[moved[meets_zero.argmin()]] = 0.0
            change = np.concatenate([new - w[chosen], t * step[n_features:]])
            new_e = e - y * (Z @ change)
            value = float(np.abs(new).sum() + weight @ np.maximum(new_e, 0.0) ** 2)
            better = value < now * (1.0 - (LEAST_FALL if t < 1.0 else 0.0))
            if not better and t == 1.0 and value <= now * (1.0 + ROUNDED):
                # the value has no digits left, the slope has
                error = np.maximum(new_e, 0.0)
                after = sign - Z.T @ (2.0 * weight * y * error)
                better = bool(new.all() and np.abs(after).max() < FLATTER * np.abs(slope).max())
            if better:
                w[chosen], state.e[c] = new, new_e
                state.b[c] += float(change[n_features:].sum())
                return True
        return False

    @staticmethod
    def _look(problem: L1Problem, state: L1State, c: int) -> None:
        """Objective and gap of a column, and which of its weights take part from now on.

        e is made anew: it has been carried along through all steps.
        """
        A, (y, weight) = problem.columns, problem.of_column(c)
        _errors(A.indptr, A.indices, A.data, y, state.W[c], float(state.b[c]), state.e[c])
        if problem.free:
            state.b[c] += _balance(y, weight, state.e[c])
        error = np.maximum(state.e[c], 0.0)
        v = 2.0 * weight * error
        state.objective[c] = float(np.abs(state.W[c]).sum() + weight @ error**2)
        pulls = np.empty(state.W.shape[1])
        _pulls(A.indptr, A.indices, A.data, y * v, pulls)
        reach = float(pulls.max(initial=0.0))
        linear, square = float(v.sum()), float(v @ error) / 2.0
        # along the ray of v: the best point, as far as it is feasible
        s = linear / (2.0 * square) if square > 0.0 else 1.0
        s = min(s, 1.0 / reach if reach > 0.0 else s)
        state.gap[c] = max(0.0, state.objective[c] - (s * linear - s * s * square))
        state.active[c], state.last[c] = pulls.size, np.inf
        if pulls.size > MOST_FEATURES:
            state.active[c] = _chosen(state.W[c], pulls, state.order[c])

    def certificate(self, problem: L1Problem, state: L1State, tol: float) -> Certificate:
        """The sum of the gaps, and the largest relative one."""
        found = state.record()
        gap = found["gap"]
        about = (found["objective"], found["violation"], gap, tol, "float64")
        return Certificate(FULL, *about).rounded(self._rounding(problem, state))

    @staticmethod
    def _rounding(problem: L1Problem, state: L1State) -> float:
        """What errors of scores make of the value, and those of X'v of the bound."""
        X, total = problem.columns, 0.0
        eps = (4.0 + np.sqrt(X.shape[1])) * float(np.finfo(float).eps)
        norms = np.sqrt(np.bincount(X.indices, X.data**2, X.shape[0]))
        for c in range(problem.target.shape[1]):
            _, weight = problem.of_column(c)
            off = eps * (norms * np.linalg.norm(state.W[c]) + abs(state.b[c]) + 1.0)
            error = np.maximum(state.e[c] + off, 0.0)
            v = 2.0 * weight * error
            # multipliers that pull a feature by more than one are shortened by as much
            pulled = eps * float(v @ norms) * float(np.abs(state.W[c]).sum())
            total += float(v @ off) + pulled + eps * float(state.objective[c])
            total += eps * abs(float(state.b[c])) * float(v.sum())
        return total

    def model(self, problem: L1Problem, state: L1State) -> LinearSolution:
        """Weights without the constant feature, and intercepts."""
        d = problem.X.shape[1]
        b = state.b if problem.free else np.zeros_like(state.b)
        if 0.0 < problem.scaling < np.inf:
            b = problem.scaling * state.W[:, -1]
        return LinearSolution(state.W[:, :d].T.copy(), b.copy())
