"""Newton's method in the primal, over the coefficients of a basis.

Problem: :class:`slimsvm.problems.subspace.Subspace` with a loss that has a derivative,

    min over coef, intercept of  1/2 coef' K_BB coef + sum_i weight_i L(y_i, f_i),
    f = K_XB coef + intercept,

for several columns at once, which share the basis and nothing else.

Algorithm: Chapelle (2007), "Training a support vector machine in the primal", section 4, and
Keerthi, Chapelle & DeCoste (2006): Newton steps with an exact line search. What differs: steps are
solved in orthonormal coordinates of the span, where the Hessian is I + Z D Z' and always regular;
at the end the intercept is optimised on its own, so that the multipliers -weight_i L'_i are a
feasible point of the dual and

    gap = 1/2 |L^-1 (K_BB coef + K_BX g)|^2,     g_i = weight_i L'(y_i, f_i),

the duality gap of the subspace problem, costs nothing.

Symbols: G, D first and second derivatives of the weighted loss, (n, columns); P = K_BX G; L L' =
K_BB + jitter I. Cost of a step: (rows with D > 0) m^2 + m^3 for every column, and two passes over
K_BX; the search along a line sums two numbers a column, two or three times.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError
from scipy.linalg.lapack import dposv

from slimsvm.buffers import own_scratch
from slimsvm.compiled import compiled
from slimsvm.losses import Loss, slopes
from slimsvm.problems.columns import Values
from slimsvm.problems.span import Span
from slimsvm.problems.subspace import Subspace, targets, weights
from slimsvm.problems.trail import Direction, Trail
from slimsvm.rows import Block
from slimsvm.run import SUBSPACE, Certificate
from slimsvm.solvers.line_search import best_shift_in, least_in

Array = NDArray[Any]
GROUPS = 8  # of chunks, whose sums of second derivatives are in memory at the same time
STALLED = 1e-15  # relative decrease of the objective below which rounding is all that is left


@dataclass(frozen=True)
class SubspaceSolution:
    """Coefficients (m, columns), intercepts (columns,), and scores of all rows.

    Scores have the shape (n, columns) and include the intercept.
    """

    coef: Array
    intercept: Array
    scores: Array


@dataclass
class NewtonState:
    """Where Newton's method is."""

    problem: Subspace = field(repr=False)
    coef: Array
    intercept: Array
    trail: Trail = field(repr=False)  # the scores, intercept included
    objective: Array  # one for each column
    gap: Array
    left: Array  # the gradient that the gap is of, in orthonormal coordinates
    n_iter: int = 0
    done: bool = False
    n_values: int = 0

    @property
    def scores(self) -> Array:
        """Of all rows, (n, columns), intercept included; brought here from where the rows are."""
        return self.problem.scores(self.trail)

    def record(self) -> dict[str, float]:
        """A line of the history."""
        return {
            "objective": float(self.objective.sum()),
            "gap": float(self.gap.sum()),
            "kernel_values": self.n_values,
            "n_basis": self.coef.shape[0],
        }


@dataclass(kw_only=True)
class Newton:
    """Newton's method over the coefficients of a fixed basis.

    ``tol`` is the relative gap in the subspace.

    Parameters
    ----------
    trusted : float
        A step from a relative gap below this is the last, and its end is not looked at: there the
        method converges quadratically. Zero: every end is looked at.
    """

    trusted: float = 0.0

    def init(self, problem: Subspace, start: tuple[Array, Array] | None = None) -> NewtonState:
        """Begin at ``start``, or at zero.

        A start is coefficients and intercepts; coefficients of the first vectors suffice.
        """
        columns, c = problem.columns, problem.n_columns
        coef, intercept = np.zeros((columns.m, c)), np.zeros(c)
        trail = Trail(columns.span, c)
        if start is not None:
            coef[: start[0].shape[0]], intercept[:] = start
            trail = Trail(columns.span, c, (coef.copy(), intercept.copy()))
            columns.count_pass()
        unknown = np.zeros(c), np.full(c, np.inf), np.zeros_like(coef)
        state = NewtonState(problem, coef, intercept, trail, *unknown)
        if start is None:
            self._centre(problem, state)
        state.objective = self._objective(problem, state)
        return state

    @staticmethod
    def _objective(problem: Subspace, state: NewtonState) -> Array:
        jitter = 0.5 * problem.columns.jitter * np.square(state.coef).sum(axis=0)
        return np.asarray(problem.objective(state.coef, state.trail) + jitter)

    def step(self, problem: Subspace, state: NewtonState, tol: float, max_iter: int) -> None:
        """Look at the gap, and take one Newton step of every column where it is too large.

        The gap that the state remembers is that before the step: a bound where it ends too, since
        no step increases the objective.
        """
        S, columns = state, problem.columns
        total = max(float(S.objective.sum()), np.finfo(float).tiny)
        share = tol * total / problem.n_columns
        ended = not columns.m or S.n_iter >= max_iter
        # 1. derivatives in orthonormal coordinates
        maybe = np.flatnonzero(S.gap > share)
        hessians = self._look(problem, S, None if ended else maybe)
        if problem.fit_intercept and any(
            total == 0.0 and slope != 0.0 for _, _, total, slope in hessians.values()
        ):
            # lines only, along which Newton's step of the intercept has no end: it goes alone
            self._centre(problem, S)
            S.objective = self._objective(problem, S)
            hessians = self._look(problem, S, maybe)
        open_ = np.intersect1d(maybe, np.flatnonzero(S.gap > share))
        S.done = ended or not open_.size or float(S.gap.sum()) <= tol * total
        if not S.done:
            # 2. the step of each column
            d_coef, d_intercept = np.zeros_like(S.coef), np.zeros_like(S.intercept)
            for c in open_:
                d_coef[:, c], d_intercept[c] = self._direction(
                    problem, S.left[:, c], hessians[int(c)]
                )
            # 3. how far: the least value along the line
            direction = Direction(d_coef[:, open_], d_intercept[open_], open_)
            columns.count_pass()
            K_d = columns.K_BB @ d_coef[:, open_] + columns.jitter * d_coef[:, open_]
            slope = np.einsum("jc,jc->c", S.coef[:, open_], K_d)
            curve = np.einsum("jc,jc->c", d_coef[:, open_], K_d)
            t = least_in(problem, S.trail, direction, slope, curve)
            S.coef[:, open_] += t * d_coef[:, open_]
            S.intercept[open_] += t * d_intercept[open_]
            S.trail = S.trail.moved(direction, t)
            # 4. the value there
            before, S.objective = S.objective, self._objective(problem, S)
            S.n_iter += 1
            stalled = float((before - S.objective).sum()) <= STALLED * abs(float(before.sum()))
            S.done = stalled or float(S.gap.sum()) <= self.trusted * float(before.sum())
        S.n_values = columns.n_values

    def finish(self, problem: Subspace, state: NewtonState) -> None:
        """Optimise the intercept on its own, and look at the gap there: only then is it a bound."""
        self._centre(problem, state)
        state.objective = self._objective(problem, state)
        self._look(problem, state, None)

    def _look(
        self, problem: Subspace, state: NewtonState, open_: Array | None
    ) -> dict[int, tuple[Array, Array, float, float]]:
        """Gap and gradient (in orthonormal coordinates) of all columns, into the state.

        Returns K_BX D K_XB, K_BX D 1, 1'D 1 and 1'G of the open ones.

        In the second derivatives only rows that have one, few at the end, take part. To the gap is
        added what the intercept alone would gain.
        """
        columns = problem.columns
        wanted = np.empty(0, np.intp) if open_ is None else open_
        P, sums, A, u = columns.sum(derivatives, problem.loss, state.trail, wanted)
        gradient = (
            columns.coordinates(columns.K_BB @ state.coef + columns.jitter * state.coef + P)
            if columns.m
            else np.zeros_like(state.coef)
        )
        total, slope = sums
        hessians = {
            int(c): (A[k], u[k], float(total[c]), float(slope[c])) for k, c in enumerate(wanted)
        }
        gap = 0.5 * np.square(gradient).sum(axis=0)
        if problem.fit_intercept:
            with np.errstate(over="ignore"):  # lines only: what would be gained is not known
                gap += 0.5 * np.square(slope) / np.maximum(total, np.finfo(float).tiny)
        state.gap, state.left = gap, gradient
        return hessians

    @staticmethod
    def _direction(
        problem: Subspace, gradient: Array, hessian: tuple[Array, Array, float, float]
    ) -> tuple[Array, float]:
        """Solve the Newton system [I + Z D Z', Z D 1; 1'D Z', 1'D 1] for one column."""
        columns = problem.columns
        A, u, total, slope = hessian
        M = columns.span.inverse @ A @ columns.span.inverse.T
        M = 0.5 * (M + M.T)
        u = columns.coordinates(u)
        solved = _solved(M + np.eye(len(M)), np.stack([gradient, u], axis=1))
        step, d_intercept = -solved[:, 0], 0.0
        if problem.fit_intercept and total > 0:
            # what the intercept adds that the basis cannot do
            left = total - float(u @ solved[:, 1])
            if left > 1e-12 * total:
                d_intercept = -(slope + float(u @ step)) / left
                step = step - solved[:, 1] * d_intercept
        return columns.coefficients(step), d_intercept

    @staticmethod
    def _centre(problem: Subspace, state: NewtonState) -> None:
        """Optimise the intercept alone."""
        if problem.fit_intercept:
            step = best_shift_in(problem, state.trail)
            state.intercept += step
            state.trail = state.trail.shifted(step)

    def certificate(self, problem: Subspace, state: NewtonState, tol: float) -> Certificate:
        """The gap within the subspace; ``violation`` is its ratio to the objective."""
        self.finish(problem, state)
        objective, gap = float(state.objective.sum()), float(state.gap.sum())
        relative = gap / objective if objective > 0 else 0.0
        precision = str(np.dtype(problem.columns.dtype))
        return Certificate(SUBSPACE, objective, relative, gap, tol, precision).rounded(
            problem.rounding(state.coef, state.intercept, state.scores, state.left)
        )

    def model(self, problem: Subspace, state: NewtonState) -> SubspaceSolution:
        """Coefficients, intercepts, scores."""
        return SubspaceSolution(state.coef, state.intercept, state.scores)


def _solved(M: Array, right: Array) -> Array:
    """M^-1 right.

    Where values are so large that rounding hides the identity in M, with a little more of it.

    The direction is one of descent all the same, and the line search says how far it is good.
    """
    more = 0.0
    while True:
        _, solved, info = dposv(M + more * np.eye(len(M)), right)
        if info == 0 and np.isfinite(solved).all():
            return np.asarray(solved)
        more = max(10.0 * more, 1e-14 * float(np.trace(M)))
        if not np.isfinite(more):
            raise LinAlgError("The Newton system is not finite.")


# -- sums over rows --------------------------------------------------------------------------------


def derivatives(
    block: Block, span: Span, loss: Loss, trail: Trail, wanted: Array
) -> tuple[Array, Array, Array, Array]:
    """A task: K_BX G (m, columns), and the sums of D and G (2, columns).

    Of the wanted columns also K_BX D K_XB and K_BX D 1.
    """
    values, scores, y, weight = Values(block, span), trail.at(block), targets(block), weights(block)
    form, m, n_columns = loss.form(), span.m, trail.n_columns
    n_groups, place = min(GROUPS, values.n_chunks), {int(c): k for k, c in enumerate(wanted)}
    P, sums = np.zeros((n_groups, m, n_columns)), np.zeros((n_groups, 2, n_columns))
    A, u = np.zeros((n_groups, len(place), m, m)), np.zeros((n_groups, len(place), m))

    def work(g: int, start: int, end: int, K: Array) -> None:
        part, n = slice(start, end), end - start
        curved, root_D, G = np.empty(n, np.intp), np.empty(n), np.empty(n)
        for c in range(n_columns):
            size, straight = _sloped(
                *form, y[part, c], weight[part], scores[part, c], curved, root_D, G
            )
            if straight < n:  # a loss that grows as a line there: no part of the Hessian
                scratch = own_scratch("newton", m * (n - straight)).reshape(m, n - straight)
                _scaled(K, curved[straight:], G[straight:], scratch)
                P[g, :, c] += scratch.sum(axis=1)
                sums[g, 1, c] += G[straight:].sum()
            which, root, slope = curved[:size], root_D[:size], G[:size]
            sums[g, 0, c] += root @ root
            sums[g, 1, c] += slope.sum()
            scratch = own_scratch("newton", m * size).reshape(m, size)
            if c in place:
                _scaled(K, which, root, scratch)
                A[g, place[c]] += scratch @ scratch.T  # NumPy sees that this is symmetric
                u[g, place[c]] += scratch @ root
                P[g, :, c] += scratch @ (slope / root)
            else:
                _scaled(K, which, slope, scratch)
                P[g, :, c] += scratch.sum(axis=1)

    values.each_group(work, n_groups)
    A_of, u_of = (np.array([of[:, k].sum(axis=0) for k in range(len(place))]) for of in (A, u))
    return P.sum(axis=0), sums.sum(axis=0), A_of, u_of


@compiled
def _scaled(K: Array, which: Array, factor: Array, out: Array) -> None:
    """out[:, t] = factor[t] K[:, which[t]], in float64."""
    for j in range(K.shape[0]):
        k, row = K[j], out[j]
        for t in range(which.size):
            row[t] = factor[t] * k[which[t]]


@compiled
def _sloped(
    form: int, p: float, y: Array, weight: Array, f: Array, which: Array, root: Array, G: Array
) -> tuple[int, int]:
    """The rows where the weighted loss has a derivative: how many are curved, where others begin.

    First come those with a second derivative, of which the root is kept; from the end on those
    with a slope alone, as losses that grow linearly have. The first derivative is zero elsewhere.
    """
    n, straight = 0, y.size
    for i in range(y.size):
        g, h = slopes(form, p, y[i], f[i])
        if weight[i] == 0.0:
            continue
        if h != 0.0:
            which[n], root[n], G[n] = i, np.sqrt(weight[i] * h), weight[i] * g
            n += 1
        elif g != 0.0:
            straight -= 1
            which[straight], G[straight] = i, weight[i] * g
    return n, straight
