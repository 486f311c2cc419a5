"""Joint refinement: the basis vectors themselves are moved, with the coefficients solved out.

Problem: min over B of F(B) = min over coef, intercept of the subspace problem on the basis B
(:mod:`slimsvm.problems.subspace`).

Algorithm: L-BFGS (SciPy's) on the entries of B. At the optimal coefficients the derivative of F is
that of the objective with the coefficients held fixed, so with Newton's method inside
(:mod:`slimsvm.solvers.newton`, warm-started) and a kernel whose slope is known

    dF/db_j = sum_i (sum_c g_ic coef_jc) dk(x_i, b_j)/db_j
              + sum_l (sum_c coef_lc coef_jc) dk(b_l, b_j)/db_j,     g = weight L'(f);

for the RBF kernel dk(x, b)/db = 2 gamma k(x, b) (x - b). Wu, Schoelkopf & Bakir (2006) did this on
small sets.

What differs: when there are many rows the first steps see a random part of them, with the weights
scaled up, and only the last ones all of them. Rows with g = 0 take no part in the derivative: most
of them, at the end. The coefficients are not quite solved out on the way: one or two Newton steps
from those of the best basis so far.

Symbols: B basis (m, d); G = weight L'(f), (n, columns); W the weight of x_i in the derivative by
b_j, (m, n). Cost of an evaluation: K_BX anew (n m d), a few Newton steps, and one product W X (rows
with g != 0, m, d).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.linalg import LinAlgError
from scipy.optimize import OptimizeResult, minimize

from slimsvm.losses import Loss
from slimsvm.problems.columns import KernelColumns, Values
from slimsvm.problems.span import Span
from slimsvm.problems.subspace import Subspace, targets, total_weight, weights
from slimsvm.problems.trail import Trail
from slimsvm.rows import Block
from slimsvm.run import Limits, Record, Watcher, tell
from slimsvm.solvers.newton import Newton, NewtonState, SubspaceSolution
from slimsvm.tiles import Strips, block, prepare

Array = NDArray[Any]
# of vectors and a solution, on held-out rows; larger is better
Score = Callable[[Any, SubspaceSolution], float]
INNER_TOL = 1e-6  # relative gap at which the coefficients count as solved out
# relative gap from which one more Newton step is enough, unseen: one or two steps an evaluation
# (ijcnn1, 50 vectors: with 1e-3 two or three, and no lower objective after as many evaluations;
# with always one step it is 8 % higher)
TRUSTED = 1.0
INNER_STEPS = 12
LOOK_BACK = 5  # iterations over which progress is measured
FEW_ROWS, FEW_ROWS_A_VECTOR = 16_000, 80  # of the first part of the rows that refinement sees
# gain of an iteration at which a part has done its work: more of it only fits the part
PART_TOL = 1e-3
PART_GROWTH = 5  # of the parts; all rows follow the last part
MEMORY = 20  # steps that L-BFGS remembers
PATIENCE = 10  # iterations without a better score on held-out rows


@dataclass
class Refined:
    """A basis that was moved, and the model on it."""

    vectors: Array
    state: NewtonState
    n_evaluations: int
    reason: str  # "converged", "max_iter", or a reason of the limits


@dataclass
class _Stage:
    """What one call of L-BFGS knows: the problem, the best point, what to stop on."""

    problem: Subspace
    tol: float
    limits: Limits
    score: Score | None
    start: tuple[Array, Array] | None
    unit: float = 0.0  # by which gains are measured; 0: the objective as it is
    best: float = np.inf
    best_vectors: Array = field(default_factory=lambda: np.empty(0))
    best_state: NewtonState | None = None
    n_evaluations: int = 0
    values: list[float] = field(default_factory=list)
    reason: str = "max_iter"
    top_score: float = -np.inf  # on held-out rows
    top: tuple[float, Array, NewtonState] | None = None
    since_top: int = 0

    def evaluate(self, flat: Array, shape: tuple[int, int]) -> tuple[float, Array]:
        """F and its derivative."""
        columns = self.problem.columns
        self.n_evaluations += 1
        vectors = flat.reshape(shape)
        try:
            columns.replace(vectors)
            state = solve(self.problem, self.start, trusted=TRUSTED)
        except (
            LinAlgError,
            ValueError,
        ):  # a step so long that the basis lost its meaning: the line search takes a shorter one
            return np.inf, np.zeros_like(flat)
        value = float(state.objective.sum())
        if not np.isfinite(value):
            return np.inf, np.zeros_like(flat)
        if value < self.best:
            self.best, self.best_state = value, state
            self.best_vectors = vectors.copy()
            self.start = (state.coef, state.intercept)
        return value, gradient(self.problem, vectors, state.coef, state.trail).ravel()

    def after_iteration(self, intermediate_result: OptimizeResult) -> None:
        """SciPy calls this after every iteration; StopIteration ends the minimisation."""
        self.values.append(float(intermediate_result.fun))
        stop = self.limits.reason()
        if self.score is not None and self.best_state is not None:
            S = self.best_state
            value, self.since_top = (
                self.score(self.best_vectors, SubspaceSolution(S.coef, S.intercept, S.scores)),
                self.since_top + 1,
            )
            if value > self.top_score:
                self.top_score, self.since_top, self.top = (
                    value,
                    0,
                    (self.best, self.best_vectors, S),
                )
            elif self.since_top >= PATIENCE:
                stop = stop or "converged"
        if stop is None and len(self.values) > LOOK_BACK:
            gained = self.values[-1 - LOOK_BACK] - self.values[-1]
            if gained <= self.tol * LOOK_BACK * (self.unit or abs(self.values[-1])):
                stop = "converged"
        if stop is not None:
            self.reason = stop
            raise StopIteration


def solve(
    problem: Subspace,
    start: tuple[Array, Array] | None = None,
    tol: float = INNER_TOL,
    max_steps: int = INNER_STEPS,
    trusted: float = 0.0,
) -> NewtonState:
    """The coefficients for the basis as it is, by a few Newton steps."""
    newton = Newton(trusted=trusted)
    state = newton.init(problem, start)
    while not state.done and state.n_iter < max_steps:
        newton.step(problem, state, tol, max_steps)
    return state


def gradient(problem: Subspace, vectors: Array, coef: Array, trail: Trail) -> Array:
    """dF/dB at the optimal coefficients, shape (m, d); the trail says the scores there."""
    columns = problem.columns
    inner, factor, centred = columns.kernel.slope()
    same, single = inner == columns.kernel, coef.shape[1] == 1
    out, total = columns.sum(pulls, problem.loss, trail, coef, vectors)
    if single:
        out, total = out * coef, total * coef[:, 0]
    K_BB = columns.K_BB if same else inner(vectors)
    W = K_BB * (coef @ coef.T)
    out += W.T @ vectors
    if centred:
        out -= (total + W.sum(axis=0))[:, None] * vectors
    return np.asarray(factor * out)


def pulls(
    where: Block, span: Span, loss: Loss, trail: Trail, coef: Array, vectors: Array
) -> tuple[Array, Array]:
    """A task: sum_i W_ji x_i and sum_i W_ji of the rows with a gradient.

    For one column without the coefficients, which may wait.
    """
    inner = span.frame.kernel.slope()[0]
    same, single = inner == span.frame.kernel, coef.shape[1] == 1
    X, scores = span.frame.prepared(where).operand.X, trail.at(where)
    y, weight = targets(where), weights(where)

    def work(start: int, end: int, K: Array) -> tuple[Array, Array]:
        part = slice(start, end)
        G = weight[part, None] * loss.gradient(y[part], scores[part])
        active = np.flatnonzero(G[:, 0] if single else G.any(axis=1))
        # brackets take twice as long
        rows = X[part][active] if sp.issparse(X) else np.take(X[part], active, axis=0, mode="clip")
        G = G[active].astype(span.dtype)
        W = (
            np.take(K, active, axis=1, mode="clip")
            if same
            else _inner_values(inner, vectors, rows, span.dtype)
        )
        W *= G[:, 0] if single else coef.astype(span.dtype) @ G.T
        total = W.sum(axis=1, dtype=np.float64)
        product = (rows.T @ W.T).T if sp.issparse(rows) else W @ rows
        return np.asarray(product, np.float64), total

    parts = Values(where, span).each(work)
    return np.asarray(sum(part[0] for part in parts)), np.asarray(sum(part[1] for part in parts))


def _inner_values(inner: Any, vectors: Array, rows: Any, dtype: Any) -> Array:
    """Values of another kernel than the one that is kept, for one block."""
    side = prepare(inner, rows, dtype=dtype)
    return block(prepare(inner, vectors, like=side), Strips(side))


def refine(
    problem: Subspace,
    vectors: Any,
    start: tuple[Array, Array] | None = None,
    *,
    tol: float = 1e-4,
    max_iter: int = 100,
    limits: Limits | None = None,
    rng: np.random.Generator | None = None,
    score: Score | None = None,
    rough: bool = False,
    watchers: tuple[Watcher, ...] = (),
) -> Refined:
    """Move the basis vectors to a local optimum of the objective.

    Parameters
    ----------
    problem : Subspace
        Its columns end with the refined basis.
    vectors : array of shape (m, d)
        Where to begin, in the coordinates of the rows.
    start : (coefficients, intercepts), optional
        A guess for the first basis.
    tol : float
        Ends when an iteration, over the last few, gains less than this share of the objective: of
        that without any basis where labels are learned (about one for each row, so that this is a
        share of the decisions, whatever the noise), else of that which it has.
    max_iter : int
        Iterations of L-BFGS on all rows, and on each part of them before.
    limits : Limits, optional
        Time limit and interrupt.
    rng : Generator, optional
        Chooses the rows of the first steps.
    score : callable, optional
        Of the held-out rows: the best is kept, and many iterations without a better one end the
        refinement.
    rough : bool
        Where there are many rows, only a part of them moves the vectors, and all of them decide on
        the coefficients.
    watchers : tuple of callables
        Told after every iteration.
    """
    limits = limits or Limits()
    rng = rng or np.random.default_rng(0)
    vectors = np.asarray(vectors.toarray() if sp.issparse(vectors) else vectors, np.float64)
    n_evaluations, reason = 0, "converged"
    parts = _parts(problem, vectors.shape[0], rng)
    unit = float(Newton().init(problem).objective.sum()) if problem.loss.takes_labels else 0.0
    for part in (*parts, problem):
        if limits.reason() is not None and part is not problem:
            continue
        moves = limits.reason() is None and not (rough and parts and part is problem)
        stage = _Stage(
            part,
            tol if part is problem else max(tol, PART_TOL),
            limits,
            score if part is problem else None,
            start,
            unit,
        )
        _descend(stage, vectors, max_iter if moves else 0, watchers)
        n_evaluations += stage.n_evaluations
        reason = stage.reason if moves or limits.reason() is not None else reason
        if stage.top is not None:
            stage.best, stage.best_vectors, stage.best_state = stage.top
        assert stage.best_state is not None
        vectors, state = stage.best_vectors, stage.best_state
        start = (state.coef, state.intercept)
    problem.columns.replace(vectors)
    state = solve(problem, start)
    Newton().finish(problem, state)
    return Refined(vectors, state, n_evaluations, reason)


def _parts(problem: Subspace, m: int, rng: np.random.Generator) -> list[Subspace]:
    """Problems over growing random parts of the rows, the weights scaled up to the same sum."""
    n, columns = problem.columns.n, problem.columns
    parts = []
    size = max(FEW_ROWS, FEW_ROWS_A_VECTOR * m)
    order = rng.permutation(n) if size * 2 <= n else None
    total = 0.0 if order is None else float(columns.rows.sum(total_weight))
    while order is not None and size * 2 <= n:
        rows = np.sort(order[:size])
        some = columns.rows.take(rows)
        scale = total / max(total_weight(some.block), np.finfo(float).tiny)
        part = KernelColumns(some.relabelled(partial(scaled, scale=scale)), columns.frame, m)
        parts.append(Subspace(part, problem.loss, problem.fit_intercept))
        size *= PART_GROWTH
    return parts


def scaled(where: Block, scale: float) -> tuple[Array, Array]:
    """The labels of a block, its weights scaled up."""
    return targets(where), weights(where) * scale


def _descend(stage: _Stage, vectors: Array, max_iter: int, watchers: tuple[Watcher, ...]) -> None:
    """L-BFGS from these vectors; the stage keeps the best point."""
    shape = vectors.shape
    stage.evaluate(vectors.ravel(), shape)  # so that there is a point, whatever happens
    if max_iter <= 0:
        stage.reason = stage.limits.reason() or "max_iter"
        return

    def told(intermediate_result: OptimizeResult) -> None:
        record = Record(
            len(stage.values),
            stage.limits.seconds,
            {"objective": float(intermediate_result.fun), "n_basis": shape[0]},
        )
        tell(watchers, record, stage.limits)
        stage.after_iteration(intermediate_result)

    result = minimize(
        stage.evaluate,
        vectors.ravel(),
        args=(shape,),
        jac=True,
        method="L-BFGS-B",
        callback=told,
        options={
            "maxiter": max_iter,
            "maxfun": 3 * max_iter,
            "maxcor": MEMORY,
            "ftol": 0.0,
            "gtol": 0.0,
        },
    )
    if stage.reason == "max_iter" and result.nit < max_iter:
        stage.reason = "converged"  # the line search found nothing better: precision is exhausted
