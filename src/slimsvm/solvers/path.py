"""The path of a sparse model: the best model at each of several sizes of a growing basis.

Problem: :class:`slimsvm.problems.sparse.Sparse`, for losses with a derivative
(:mod:`slimsvm.solvers.path_cuts` for the others; :mod:`slimsvm.solvers.path_all` where all rows are
the basis).

Algorithm: a step goes on to the next size. The basis grows (:mod:`slimsvm.solvers.pursuit`; or a
part of the vectors that were known at the beginning is taken), Newton's method finds the
coefficients, and the vectors are moved to a local optimum (:mod:`slimsvm.solvers.refine`).

Solvers inside are not cut into steps of a second, since moving vectors is SciPy's L-BFGS: they look
at the limits and tell the watchers themselves, and ``max_iter`` limits each of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slimsvm.basis import Selection
from slimsvm.expansion import Expansion
from slimsvm.precision import SUBSPACE_TOL, is_small
from slimsvm.problems.columns import KernelColumns
from slimsvm.problems.sparse import Sparse, as_given
from slimsvm.problems.subspace import Subspace
from slimsvm.run import Certificate, Limits, Record, Watcher
from slimsvm.solvers.growth import appended
from slimsvm.solvers.newton import Newton, NewtonState
from slimsvm.solvers.path_points import HISTORY, PathModel, PathPoint, Scoring
from slimsvm.solvers.pursuit import pursue
from slimsvm.solvers.refine import refine, solve

Array = NDArray[Any]
# vectors known before any training: from columns, problem and generator; None: there are none
First = Callable[[KernelColumns, Sparse, np.random.Generator], Selection | None]
# rows that are enough to grow a basis on, if it will be refined on all of them: at least so many,
# and so many for each vector (ijcnn1, 50 vectors, path included: 98.47 % after growing on 5,000
# rows and on all 49,990, 98.35 % on 22,700; four seeds, three for the last; seeds differ by 0.1, so
# that these are no different)
GROWING, GROWING_A_VECTOR = 5_000, 25
# of accuracy_loss: gained less than this at two sizes in a row, it looks no further
SATURATED = 0.2
SMALLER_SIZES = 0.5  # of the tolerance, for the refinement at the smaller sizes of a path
# of the tolerance, for the refinement at the size asked for. Accuracy on a sixth of the training
# rows and CPU seconds at 0.14, 0.07 and 0.035: mnist {0..4} vs {5..9}, 60 vectors, 98.42, 98.47,
# 98.57 % in 24, 31, 40 s; ijcnn1, 50 vectors, 98.19, 98.18, 98.20 % in 3.2, 3.3, 4.1 s
LAST_SIZE = 0.035


# -- what comes out --------------------------------------------------------------------------------


def path_point(
    columns: KernelColumns,
    solution: Any,
    indices: Array | None,
    gap: Array,
    training_score: float,
    scoring: Scoring,
    bound: tuple[float | None, float | None],
    rounding: float = 0.0,
) -> PathPoint:
    """The point of a solution, which has ``coef``, ``intercept`` and ``objective``."""
    basis, coef, intercept = as_given(columns), solution.coef, solution.intercept
    f = Expansion(columns.kernel, basis, coef, intercept, exact=is_small(columns.n))
    return PathPoint(
        columns.m,
        basis,
        coef,
        intercept,
        None if indices is None else indices[: columns.m],
        float(solution.objective.sum()),
        float(gap.sum()) + rounding,
        training_score,
        scoring.validated(f),
        bound[0],
        None if bound[1] is None else bound[1] + rounding,
        rounding,
    )


def distance_bound(
    weight: Array, objective: Array, gap: Array, largest: Array | None, together: Array | None
) -> tuple[float | None, float | None]:
    """Projection error and distance from the exact solution.

    Both follow from what of the cuts lies outside of the span.

    The multipliers of the cuts are feasible for the exact problem too, where what is outside of the
    span counts: its dual value is less by half the square of that (``together``, the combination).
    Joachims & Yu (2009) say C n (delta sqrt(2 C n) + eps), delta of the ``largest`` cut: sqrt(2 C
    n) is a bound on the norm of the exact solution, and so is the root of twice the value of any
    other. Either is a bound.
    """
    if largest is None or together is None:
        return None, None
    here = np.minimum(0.5 * together**2, largest * np.sqrt(2.0 * np.maximum(objective, 0.0)))
    return float(largest.max()) / float(weight.sum()), float((gap + here).sum())


# -- the solver ------------------------------------------------------------------------------------


@dataclass
class PathState:
    """Where a path is."""

    rng: np.random.Generator
    walk: Iterator[tuple[Subspace, NewtonState, Array | None]] | None = None
    points: list[PathPoint] = field(default_factory=list)
    records: list[Record] = field(default_factory=list)  # of solvers inside, in the last step
    n_iter: int = 0
    done: bool = False

    def hear(self, record: Record) -> None:
        """Take down a line of the history: a watcher of the solvers inside."""
        values = {name: record.values.get(name, np.nan) for name in HISTORY}
        self.records.append(Record(record.step, record.seconds, values))

    def record(self) -> list[Record]:
        """The lines of the last step."""
        return self.records


@dataclass(frozen=True, kw_only=True)
class PathSolver:
    """What paths share: where vectors come from, which sizes there are, and which is chosen.

    Parameters
    ----------
    sizes : list of int
        Of the basis, ascending.
    first : callable
        Gives vectors that are known before any training, or None.
    choose : class of a basis, optional
        Chooses those that follow; by default there are none.
    scoring : Scoring
        For the scores of the points.
    accuracy_loss : float, optional
        With rows held out: the smallest size within this of the best score is wanted. By default,
        the largest size.
    seed : int
        Of what is random.
    limits : Limits
        The solvers inside look at them.
    max_iter : int
        Of the solvers inside, at every size.
    watchers : tuple of callables
        Told by the solvers inside.
    """

    sizes: list[int]
    first: First
    choose: Callable[[], Any] | None
    scoring: Scoring
    accuracy_loss: float | None = None
    seed: int = 0
    limits: Limits = field(default_factory=Limits)
    max_iter: int = 1000
    watchers: tuple[Watcher, ...] = ()

    def chosen(self, points: list[PathPoint]) -> PathPoint:
        """The point that is wanted."""
        if self.accuracy_loss is None or self.scoring.held_out is None:
            return points[-1]
        scores = [point.validation_score or 0.0 for point in points]
        least = max(scores) - self.accuracy_loss
        good = [point for point, score in zip(points, scores, strict=True) if score >= least]
        return good[0] if good else points[-1]  # none if scores are not numbers

    def certificate(self, problem: Sparse, state: Any, tol: float) -> Certificate:
        """Of the point that is wanted, within the span of its basis."""
        precision = str(np.dtype(problem.rows.dtype))
        return self.model(problem, state).chosen.certificate(tol, precision)

    def model(self, problem: Sparse, state: Any) -> PathModel:
        """All points."""
        return PathModel(state.points, self.chosen(state.points), self.sizes[-1])


@dataclass(frozen=True, kw_only=True)
class Path(PathSolver):
    """The path for a loss with a derivative; ``tol`` is the relative gap within each span.

    Parameters
    ----------
    moves : bool
        Whether the vectors of each size are moved to a local optimum.
    """

    moves: bool = True

    def init(self, problem: Sparse, start: Any = None) -> PathState:
        """Before the first size."""
        return PathState(np.random.default_rng(self.seed))

    def enough(self, points: list[PathPoint]) -> bool:
        """Whether the last two sizes brought next to nothing, as the rows held out see it."""
        if self.accuracy_loss is None or len(points) < 4:
            return False
        held = [point.validation_score or 0.0 for point in points]
        return max(held[-2:]) <= max(held[:-2]) + SATURATED * self.accuracy_loss

    def step(self, problem: Sparse, state: PathState, tol: float, max_iter: int) -> None:
        """Go on to the next size; done where there is none."""
        S = state
        S.records = []
        watchers = (*self.watchers, S.hear)
        if S.walk is None:
            S.walk = self._walk(problem, S.rng, tol, watchers)
        found = next(S.walk, None)
        if found is None:
            S.done = True
            return
        there, solution, indices = found
        S.n_iter += solution.n_iter
        m, last = there.columns.m, there.columns.m == self.sizes[-1]
        if self.moves and m:
            whole, left = problem.over(m), len([size for size in self.sizes if size >= m])
            moved = refine(
                whole,
                there.columns.vectors,
                (solution.coef, solution.intercept),
                tol=tol * (LAST_SIZE if last and self.accuracy_loss is None else SMALLER_SIZES),
                max_iter=self.max_iter,
                limits=self.limits.part(left) if self.limits.max_time is not None else self.limits,
                rng=S.rng,
                score=self.scoring.while_moving(whole.columns),
                rough=self.accuracy_loss is None and not last,
                watchers=watchers,
            )
            there, solution, indices = whole, moved.state, None
            S.n_iter += moved.n_evaluations
        S.points.append(self._point(problem, there, solution, indices))
        S.points.sort(key=lambda point: point.n_basis)
        S.done = self.enough(S.points) or self.limits.reason() is not None

    def _walk(
        self, problem: Sparse, rng: np.random.Generator, tol: float, watchers: tuple[Watcher, ...]
    ) -> Iterator[tuple[Subspace, NewtonState, Array | None]]:
        """Problem, solution and rows at every size, before vectors are moved."""
        tol = SUBSPACE_TOL if is_small(problem.rows.n) else min(tol, 1e-3)
        enough = max(GROWING, GROWING_A_VECTOR * self.sizes[-1])
        if self.moves and 2 * enough <= problem.rows.n:  # a part of the rows is enough to grow on
            problem = problem.part(np.sort(rng.permutation(problem.rows.n)[:enough]))
        grown, indices = problem.over(self.sizes[-1]), None
        columns = grown.columns
        vectors = self.first(columns, problem, rng)
        if vectors is not None:
            indices = appended(columns, vectors)
        known = columns.m
        small = [size for size in self.sizes if size <= known]
        for size in small:
            yield *self._solved(replace(grown, columns=columns.first(size)), tol), indices
        if self.choose is None:  # nothing grows; what was refused is not replaced
            if not small or small[-1] < known:
                yield *self._solved(grown, tol), indices
            return
        if known >= self.sizes[-1]:
            return
        sizes, choose = [size for size in self.sizes if size > known], self.choose()
        options: dict[str, Any] = {"tol": tol, "limits": self.limits, "watchers": watchers}
        at_last = sizes[-1:] if choose.undisturbed else sizes
        for point in pursue(grown, choose, at_last, problem.candidates, rng, **options):
            indices = point.indices if known == 0 else None
            yield grown, point.state, indices
            for size in sizes if choose.undisturbed else ():  # afterwards, on its first vectors
                if size < columns.m:
                    yield *self._solved(replace(grown, columns=columns.first(size)), tol), indices

    def _solved(self, problem: Subspace, tol: float) -> tuple[Subspace, NewtonState]:
        state = solve(problem, None, tol, self.max_iter)
        Newton().finish(problem, state)
        return problem, state

    def _point(
        self, problem: Sparse, there: Subspace, solution: NewtonState, indices: Array | None
    ) -> PathPoint:
        columns, scores, outside = there.columns, solution.scores, None
        if columns.n == problem.rows.n:
            slope = np.abs(there.weight[:, None] * there.loss.gradient(there.target, scores))
            outside = slope.T @ columns.distances()
        objective, gap = solution.objective, solution.gap
        score = self.scoring.measure(scores, there.target, there.weight)
        _, bound = distance_bound(problem.weight, objective, gap, outside, outside)
        rounding = there.rounding(solution.coef, solution.intercept, scores, solution.left)
        about = (gap, score, self.scoring, (None, bound), rounding)
        return path_point(columns, solution, indices, *about)
