"""Newton's method in the primal over *all* rows: the exact solution for losses with a derivative.

Problem: min over f of 1/2 |f|^2 + sum_i weight_i L(y_i, f(x_i) + b). At the optimum f = sum_i
coef_i k(x_i, .) with coef_i = -weight_i L'(y_i, f_i), zero for all rows where the loss
has no slope.

Algorithm: Chapelle (2007), "Training a support vector machine in the primal". With S the rows of
curvature D_i > 0, R those with a slope only, G the weighted slopes, a Newton step solves

    (K_SS + D_S^-1) coef_S + b e = f_S - G_S / D_S - K_SR coef_R,
    coef_R = -G_R,     e'coef_S = -e'coef_R,     the others zero;

for the squared hinge D = 2 C c_i, and the right side is y_S. The scores of all rows follow, and an
exact line search between the old and the new ones. Doubling: a random part of the rows is trained
first, then twice as many, from the coefficients of the last; rows that join with y f > 1 never
enter a system.

What differs: rows whose curvature is next to nothing (smooth losses have a little everywhere) count
as sloped, and those whose slope is too as having neither. Where rounding of the kernel values hides
D^-1, the curvature is taken for less than it is: still a direction of descent.

The gap is that to the multipliers G, scaled so that they balance where there is an intercept:

    gap = 1/2 |sum_i (coef_i + G_i) phi(x_i)|^2 + sum_i [w_i L(f_i) + w_i L*(G_i / w_i) - G_i f_i],

and the norm at most sum_i |coef_i + G_i| |phi(x_i)|: no kernel values, and at the optimum all terms
are zero.

Symbols: coef (n,) over all rows; support = rows with coef != 0; K_SS is kept in float64, n_sv^2
numbers: beyond ``max_memory`` it is refused. Cost of a step: n n_sv kernel values, n_sv^3 / 3.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dposv

from slimsvm.basis.selection import among
from slimsvm.frames import Frame, rounding_of
from slimsvm.kernel_sums import accumulate
from slimsvm.losses import Loss
from slimsvm.precision import bent, errors_of_scores, rounding
from slimsvm.rows import Rows, joined
from slimsvm.run import FULL, Certificate
from slimsvm.solvers.line_search import best_shift, least_along
from slimsvm.solvers.newton import SubspaceSolution
from slimsvm.solvers.sampled_space import diagonal_of, expanded
from slimsvm.tiles import Operand, Strips, block

Array = NDArray[Any]
FIRST = 1000  # rows of the first part
DEFAULT_MEMORY = 4000.0  # megabytes, for K_SS
# how near to 1 a step is the whole Newton step: the search along the line is not more exact
WHOLE = 1e-6
STALLED = 1e-15  # relative decrease of the objective below which rounding is all that is left
# relative difference of two values of the objective that are the same but for rounding
ROUNDED = 1e-12
FAINT = 1e-14  # of the largest: a curvature not worth an equation; a slope that is none
SEEN = 64  # rows on which the error of kernel values is seen
# of the trace of K_SS over its size, added to D^-1 after the first failure of a factorisation; then
# ten times as much
LESS = 1e-12


@dataclass
class AllRows:
    """The problem over all rows; several columns share the rows and nothing else.

    Parameters
    ----------
    rows : Rows
        All rows.
    frame : Frame
        How they are prepared.
    target : array of shape (n, columns)
        Labels of -1 and +1, or numbers.
    weight : array of shape (n,)
        C times the weight of each row.
    loss : Loss
        With a derivative.
    fit_intercept : bool
        Whether there is an intercept; it is not penalised.
    max_memory : float, optional
        Megabytes for the kernel values among the support vectors.
    """

    rows: Rows
    frame: Frame
    target: Array
    weight: Array
    loss: Loss
    fit_intercept: bool = True
    max_memory: float | None = None

    def take(self, which: Array) -> Operand:
        """Some rows, prepared."""
        return self.frame.prepared(self.rows.take(which).block).operand

    def expanded(self, which: Array, coef: Array) -> Array:
        """sum_j coef_j k(x_j, x) over some rows j, for all rows x."""
        vectors = replace(self.take(which), source=None, picked=None)
        return joined(self.rows.map(expanded, self.frame, vectors, coef[:, None]))[:, 0]

    def rounding_error(self) -> float:
        """About how much rounding of the kernel values changes the objective.

        As a share of it: 2 max(weight) error sqrt(n).

        At the optimum of the squared hinge the risk is |coef|^2 / (4 weight), and errors that are
        random change coef'K coef by error sqrt(n) |coef|^2. The error is seen on a few rows.
        """
        if np.dtype(self.frame.dtype) == np.float64:
            return 0.0
        some = np.unique(np.linspace(0, self.rows.n - 1, SEEN).astype(np.intp))
        values, exact = (
            among(side, np.arange(some.size)) for side in (self.take(some), self.take(some).exact())
        )
        error = float(np.sqrt(np.mean(np.square(values - exact))))
        return 2.0 * float(self.weight.max()) * error * float(np.sqrt(self.rows.n))

    def first(self, n: int, order: Array) -> AllRows:
        """The problem on the first n rows of an order."""
        some = order[:n]
        return AllRows(
            self.rows.take(some),
            self.frame,
            self.target[some],
            self.weight[some],
            self.loss,
            self.fit_intercept,
            self.max_memory,
        )


class AllRowsSolution(SubspaceSolution):
    """The same with a coefficient for each of the rows: (n, columns)."""


@dataclass
class KernelNewtonState:
    """Where the method is; ``order`` and ``size`` say which rows take part."""

    order: Array
    size: int
    part: AllRows
    coef: Array
    intercept: Array
    scores: Array
    objective: Array
    gap: Array
    n_iter: int = 0
    done: bool = False
    n_values: int = 0

    def record(self) -> dict[str, float]:
        """A line of the history."""
        return {
            "objective": float(self.objective.sum()),
            "gap": float(self.gap.sum()),
            "kernel_values": self.n_values,
            "n_basis": int(np.count_nonzero(self.coef.any(axis=1))),
            "active": self.size,
        }


@dataclass(kw_only=True)
class KernelNewton:
    """Newton's method over all rows; ``tol`` is the relative gap.

    Parameters
    ----------
    doubling : bool
        Begin with a part of the rows, and double it.
    seed : int
        Which rows are first.
    """

    doubling: bool = True
    seed: int = 0

    def init(self, problem: AllRows, start: tuple[Array, Array] | None = None) -> KernelNewtonState:
        """Begin at ``start`` (coefficients of all rows, intercepts), or at zero."""
        n, k = problem.target.shape
        size, order = n, np.arange(n)
        if start is None and self.doubling and n > 2 * FIRST:
            size, order = FIRST, np.random.default_rng(self.seed).permutation(n)
        coef, intercept = (
            (np.zeros((n, k)), np.zeros(k))
            if start is None
            else (np.array(start[0]), np.array(start[1]))
        )
        state = KernelNewtonState(
            order,
            size,
            problem,
            coef[:size],
            intercept,
            np.zeros((size, k)),
            np.zeros(k),
            np.full(k, np.inf),
        )
        self._enter(problem, state, size, coef[order[:size]])
        return state

    def _enter(self, problem: AllRows, S: KernelNewtonState, size: int, coef: Array) -> None:
        """Let so many rows take part, with these coefficients.

        What there is of a gap is seen from there.
        """
        S.size, S.coef = size, coef
        S.part = (
            problem
            if size == problem.target.shape[0] and (S.order[1:] > S.order[:-1]).all()
            else problem.first(size, S.order)
        )
        S.scores = self._expanded(S.part, coef, S) + S.intercept
        if problem.fit_intercept:
            shift = best_shift(problem.loss, S.part.target, S.part.weight, S.scores)
            S.intercept, S.scores = S.intercept + shift, S.scores + shift
        self._look(S)

    @staticmethod
    def _expanded(part: AllRows, coef: Array, S: KernelNewtonState) -> Array:
        """sum_j coef_j k(x_j, x_i) for all rows."""
        out = np.zeros(coef.shape, order="F")
        for c in range(coef.shape[1]):
            support = np.flatnonzero(coef[:, c])
            if support.size:
                out[:, c] = part.expanded(support, coef[support, c])
                S.n_values += support.size * part.rows.n
        return out

    def step(self, problem: AllRows, state: KernelNewtonState, tol: float, max_iter: int) -> None:
        """One Newton step of every column whose gap is too large.

        When there is none, twice as many rows.
        """
        S, part = state, state.part
        goal = tol if S.size == problem.target.shape[0] else max(tol, 1e-3)
        share = goal * np.maximum(S.objective, np.finfo(float).tiny)
        before = S.objective.copy()
        for c in np.flatnonzero(S.gap > share):
            self._newton(part, S, int(c))
        S.n_iter += 1
        self._look(S)
        stalled = float((before - S.objective).sum()) <= STALLED * abs(float(before.sum()))
        if (S.gap <= share).all() or stalled:
            if S.size == problem.target.shape[0]:
                S.done = True
                return
            size = min(problem.target.shape[0], 2 * S.size)
            if 2 * size > problem.target.shape[0]:
                size = problem.target.shape[0]
            coef = np.zeros((size, S.coef.shape[1]))
            coef[: S.size] = S.coef
            self._enter(problem, S, size, coef)

    def _newton(self, part: AllRows, S: KernelNewtonState, c: int) -> None:
        """The step of one column, with its line search."""
        y, f = part.target[:, c], S.scores[:, c]
        G = part.weight * part.loss.gradient(y, f)
        D = part.weight * part.loss.curvature(y, f)
        clear = FAINT * D.max(initial=0.0) < D
        curved, sloped = (
            np.flatnonzero(clear),
            np.flatnonzero(~clear & (np.abs(G) > FAINT * np.abs(G).max(initial=0.0))),
        )
        new = np.zeros(y.size)
        new[sloped] = -G[sloped]
        b = float(S.intercept[c])
        if curved.size:
            known = np.zeros(curved.size)
            if sloped.size:
                accumulate(
                    part.take(sloped),
                    Strips(part.take(curved)),
                    new[sloped],
                    known,
                    part.rows.n_threads,
                )
                S.n_values += sloped.size * curved.size
            solved = self._system(part, curved, f[curved] - known, G[curved], D[curved], S)
            if part.fit_intercept:
                b = float((solved[:, 0].sum() + new[sloped].sum()) / solved[:, 1].sum())
            new[curved] = solved[:, 0] - b * solved[:, 1]
        # the line between the old and the new point: scores of both are known after one pass
        scores = np.zeros(y.size)
        support = np.flatnonzero(new)
        if support.size:
            scores = part.expanded(support, new[support])
            S.n_values += support.size * y.size
        change, d_coef, d_s = scores + b - f, new - S.coef[:, c], scores - (f - S.intercept[c])
        slope, curve = np.array([S.coef[:, c] @ d_s]), np.array([max(float(d_coef @ d_s), 0.0)])
        # a line made of rounding errors leads anywhere
        if not -(float(slope[0]) + float(G @ change)) > STALLED * float(S.objective[c]):
            self._take_if_nearer(S, c, new, b, scores + b)
            return
        t = float(
            least_along(
                part.loss, y[:, None], part.weight, f[:, None], change[:, None], slope, curve
            )[0]
        )
        # the Newton step itself: all rows without a gradient have coefficients of exactly zero
        if abs(t - 1.0) < WHOLE:
            S.coef[:, c], S.intercept[c], S.scores[:, c] = new, b, scores + b
        else:
            S.coef[:, c] += t * d_coef
            S.intercept[c] += t * (b - S.intercept[c])
            S.scores[:, c] += t * change

    def _take_if_nearer(
        self, S: KernelNewtonState, c: int, coef: Array, b: float, scores: Array
    ) -> None:
        """Take this point if its gap is smaller than the present one's, at no larger value.

        Where the function is the best one already, as zero is for rows that are all equal, its
        coefficients may not say so yet.
        """
        before = S.coef[:, c].copy(), float(S.intercept[c]), S.scores[:, c].copy()
        value, gap = float(S.objective[c]), float(S.gap[c])
        S.coef[:, c], S.intercept[c], S.scores[:, c] = coef, b, scores
        self._look(S)
        if not (S.gap[c] < gap and S.objective[c] <= value + ROUNDED * abs(value)):
            S.coef[:, c], S.intercept[c], S.scores[:, c] = before

    def _system(
        self, part: AllRows, curved: Array, f: Array, G: Array, D: Array, S: KernelNewtonState
    ) -> Array:
        """(K_SS + D^-1)^-1 times f - G / D and times ones."""
        more = 0.0
        while True:
            K = self._block(part, curved, S)
            mean = float(np.trace(K)) / curved.size
            inverse = 1.0 / D + more * mean
            K[np.diag_indices_from(K)] += inverse
            _, solved, info = dposv(
                K, np.stack([f - G * inverse, np.ones(curved.size)], axis=1), overwrite_a=1, lower=1
            )
            if info == 0 and np.isfinite(solved).all():
                return np.asarray(solved)
            more = max(10.0 * more, LESS)
            if not (more <= 1.0 and np.isfinite(mean)):
                raise ValueError(
                    "The Newton system is singular in floating point: the kernel is not "
                    "positive, or C times its values is too large. "
                    "Use another kernel or a smaller C, or scale the features."
                )

    @staticmethod
    def _block(part: AllRows, which: Array, S: KernelNewtonState) -> Array:
        """K_SS in float64."""
        needed, budget = (
            which.size**2 * 8 / 2**20,
            DEFAULT_MEMORY if part.max_memory is None else part.max_memory,
        )
        if needed > budget:
            raise ValueError(
                f"basis='all' needs the kernel values among {which.size:,} rows, "
                f"{needed:,.0f} MB; max_memory allows {budget:,.0f} MB. "
                "Use a smaller basis, or SVC."
            )
        side = part.take(which)
        out = block(
            side, Strips(side), part.rows.n_threads, np.empty((which.size, which.size), order="F")
        )
        S.n_values += which.size**2
        return out

    @staticmethod
    def _look(S: KernelNewtonState) -> None:
        """Objective and gap at the present point."""
        part = S.part
        weight, f = part.weight[:, None], S.scores
        G = weight * part.loss.gradient(part.target, f)
        value = part.loss.value(part.target, f)
        S.objective = 0.5 * np.einsum("ic,ic->c", S.coef, f - S.intercept) + part.weight @ value
        apart = np.zeros(f.shape[1])
        if part.fit_intercept:
            up, down = np.maximum(G, 0.0).sum(axis=0), np.maximum(-G, 0.0).sum(axis=0)
            least, tiny = np.minimum(up, down), np.finfo(float).tiny
            G = np.where(
                G > 0, G * (least / np.maximum(up, tiny)), G * (least / np.maximum(down, tiny))
            )
            apart = (
                weight
                * np.maximum(
                    value + part.loss.conjugate(part.target, G / weight) - G / weight * f, 0.0
                )
            ).sum(axis=0)
        lengths = np.sqrt(np.maximum(joined(part.rows.map(diagonal_of, part.frame)), 0.0))
        S.gap = 0.5 * np.square(np.abs(S.coef + G).T @ lengths) + apart

    def certificate(self, problem: AllRows, state: KernelNewtonState, tol: float) -> Certificate:
        """The gap of the whole problem; ``violation`` is its ratio to the objective.

        Rows that have not taken part yet are looked at.
        """
        S, n = state, problem.target.shape[0]
        if S.size < n:
            coef = np.zeros((n, S.coef.shape[1]))
            coef[: S.size] = S.coef
            self._enter(problem, S, n, coef)
        elif problem.fit_intercept:
            # an intercept that is optimal on its own: the multipliers nearly balance
            shift = best_shift(problem.loss, S.part.target, S.part.weight, S.scores)
            S.intercept, S.scores = S.intercept + shift, S.scores + shift
            self._look(S)
        objective, gap = float(S.objective.sum()), float(S.gap.sum())
        relative = gap / objective if objective > 0 else 0.0
        precision = str(np.dtype(problem.frame.dtype))
        error = max(problem.rows.map(rounding_of, problem.frame))
        scores, (target, weight) = S.scores - S.intercept, (S.part.target, S.part.weight)
        slopes = weight[:, None] * S.part.loss.gradient(target, S.scores)
        off = errors_of_scores(error, S.coef, scores)
        return Certificate(FULL, objective, relative, gap, tol, precision).rounded(
            rounding(error, S.coef, scores, slopes, scores)
            + bent(S.part.loss, target, weight, S.scores, off)
        )

    def model(self, problem: AllRows, state: KernelNewtonState) -> AllRowsSolution:
        """In the order of the rows."""
        coef, scores = np.zeros(problem.target.shape), np.zeros(problem.target.shape)
        coef[state.order[: state.size]], scores[state.order[: state.size]] = (
            state.coef,
            state.scores,
        )
        return AllRowsSolution(coef, state.intercept, scores)
