"""The path of a sparse model for losses with a kink, by cutting planes.

Problem: :class:`slimsvm.problems.sparse.Sparse`. The first step is at the largest size: cuts are
collected (:mod:`slimsvm.solvers.cutting_plane`), and the basis grows with them if it is pursued.
Every further step goes on to the next smaller size, with the same cuts seen from a part of the
basis: a few more of them suffice there.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from slimsvm.losses import Hinge
from slimsvm.precision import CUTS_TOL, is_small
from slimsvm.problems.columns import KernelColumns
from slimsvm.problems.sparse import Sparse
from slimsvm.run import Certificate, run
from slimsvm.solvers.cuts import CutState
from slimsvm.solvers.cutting_plane import CuttingPlane, OneSlack, Oracle
from slimsvm.solvers.growth import Growth, appended
from slimsvm.solvers.outside import ActiveCuts, outside
from slimsvm.solvers.path import PathSolver, PathState, distance_bound, path_point
from slimsvm.solvers.path_points import PathModel
from slimsvm.solvers.spaces import SubspaceSpace

Array = NDArray[Any]


@dataclass(kw_only=True)
class CutPathState(PathState):
    """Where the path is: the largest basis, the sizes to come, and the cuts so far."""

    columns: KernelColumns
    growth: Growth | None
    indices: Array | None  # which rows the vectors are
    sizes: list[int] = field(default_factory=list)  # descending
    cuts: CutState | None = None
    row_duals: Array | None = None
    # of each point: the active cuts, value and gap of every column
    seen: list[tuple[ActiveCuts, Array, Array]] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class CutPath(PathSolver):
    """The path from its largest size downwards; ``tol`` is the relative gap within each span.

    Parameters
    ----------
    oracle : Oracle
        The risk: weighted losses of all rows.
    solver : CuttingPlane, optional
        Cutting planes that are followed to the letter, also for few rows.
    """

    keeps_state: ClassVar[bool] = True

    oracle: Oracle
    solver: CuttingPlane | None = None

    def init(self, problem: Sparse, start: Any = None) -> CutPathState:
        """Before the first cut."""
        rng, columns = np.random.default_rng(self.seed), problem.columns(self.sizes[-1])
        vectors, growth = self.first(columns, problem, rng), None
        indices = None if vectors is None else appended(columns, vectors)
        if self.choose is not None and columns.m < self.sizes[-1]:
            growth = Growth(self.choose(), rng, problem.candidates)
        sizes = sorted({columns.m or self.sizes[-1], *self.sizes}, reverse=True)
        about: dict[str, Any] = {"growth": growth, "indices": indices, "sizes": sizes}
        return CutPathState(rng, columns=columns, **about)

    def step(self, problem: Sparse, state: CutPathState, tol: float, max_iter: int) -> None:
        """The largest size, and then the next smaller one."""
        S, first = state, state.cuts is None
        solver = CuttingPlane() if self.solver is None else replace(self.solver, keep_rows=True)
        S.records = []
        some = S.columns if first else S.columns.first(S.sizes[0])
        space = SubspaceSpace(some, S.growth if first else None)
        inner = OneSlack(space, self.oracle, np.inf if problem.fit_intercept else 0.0)
        if S.cuts is not None:
            solver.reproject(inner, S.cuts)
        S.cuts = solver.init(inner, S.cuts)
        result = run(
            solver,
            inner,
            tol=CUTS_TOL if is_small(problem.rows.n) and self.solver is None else tol,
            max_iter=self.max_iter,
            limits=self.limits,
            start=S.cuts,
            watchers=(*self.watchers, S.hear),
        )
        S.n_iter += result.n_iter
        model = result.model
        if first:
            S.row_duals = model.row_duals
            S.indices = S.indices if S.growth is None else S.growth.indices(S.columns)
        S.seen.insert(0, (solver.active(inner, S.cuts, some.m), model.objective, S.cuts.gap))
        gap = np.maximum(0.0, model.objective - model.lower_bound)
        score = self.scoring.measure(model.scores, problem.target, problem.weight)
        about = (gap, score, self.scoring, (None, None), result.certificate.rounding)
        point = path_point(some, model, S.indices, *about)
        S.points.insert(0, point)  # the smallest first
        S.sizes = [size for size in S.sizes if size < some.m]
        S.done = not S.sizes

    def _look_outside(self, problem: Sparse, S: CutPathState) -> None:
        """What the cuts have outside of their spans: of all sizes with the same kernel values."""
        cuts = [cuts for cuts, _, _ in S.seen]
        found = outside(S.columns, cuts, going_on=lambda: self.limits.reason() is None)
        for k, ((_, objective, gap), parts) in enumerate(zip(S.seen, found, strict=True)):
            error, bound = distance_bound(problem.weight, objective, gap, *parts)
            assert bound is not None
            bound += S.points[k].rounding
            S.points[k] = replace(S.points[k], projection_error=error, bound=bound)
        S.seen = []

    def certificate(self, problem: Sparse, state: CutPathState, tol: float) -> Certificate:
        """Of the point that is wanted; with the rule of the papers, about its newest cut."""
        self._look_outside(problem, state)
        about = super().certificate(problem, state, tol)
        if state.cuts is None or state.cuts.excess is None:
            return about
        return replace(about, violation=state.cuts.measured, max_cuts=self._most(problem, tol))

    def _most(self, problem: Sparse, tol: float) -> float | None:
        """Theorem 1 of Joachims & Yu (2009): rounds after which each column ends at the latest.

        A round for each vector, and then as many as in any fixed space (Joachims 2006): the bound
        of the dual rises by C min(eps / 2, eps^2 / (8 C R^2)) each, to at most C. Their C is the
        sum of the weights, R^2 the largest k(x, x).
        """
        if problem.fit_intercept or not isinstance(problem.loss, Hinge):
            return None
        longest = float(np.max(problem.rows.diag(), initial=0.0))
        C = float(problem.weight.sum())
        return self.sizes[-1] + max(2.0 / tol, 8.0 * C * longest / tol**2)

    def model(self, problem: Sparse, state: CutPathState) -> PathModel:
        """All points, and the multipliers of the rows at the largest."""
        return replace(super().model(problem, state), row_duals=state.row_duals)
