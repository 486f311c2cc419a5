"""The exact solution over rows that are elsewhere: only those near the margin come here.

Problem: that of :mod:`slimsvm.solvers.decomposition`, with the Gram of
:mod:`slimsvm.problems.far_gram`.

Algorithm: that of :mod:`slimsvm.solvers.nested`, with a pass over blocks in place of products. What
differs: of the rows that join, those that are far from violating do not come here; they are set
aside as those are that shrinking removes, whose rows leave the memory. When all have joined, those
set aside are looked at by a pass, and what violates comes back. The end is the recheck of all rows
that the decomposition makes anyway, in passes: the certificate is one of all rows.

Here are, in the end: support vectors, and rows within ``settled`` of the margin.

Cost beyond it: a pass a stage, a reading of rows a stage, and the passes of rechecks.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slimsvm.gram import Gram
from slimsvm.problems.dual_qp import DualQP
from slimsvm.problems.far_gram import FarGram
from slimsvm.solvers.decomposition import Decomposition
from slimsvm.solvers.dual_state import DualSolution, State, variables_of
from slimsvm.solvers.nested import Aside, Nested, NestedState
from slimsvm.solvers.removed_rows import products_in_parts, slack

Array = NDArray[Any]
NONE = np.empty(0, np.intp)


@dataclass(kw_only=True)
class NestedOnRows(Nested):
    """Decomposition over a growing set of rows, of which few are here."""

    @staticmethod
    def _again(gram: Gram, rows: Array) -> None:
        """Nothing is to be done: they are no columns yet."""

    @staticmethod
    def _products(gram: Gram, rows: Array, moved: Array, coef: Array) -> Array:
        """By a pass over the blocks that have them."""
        return gram.products(moved, coef, rows)

    def _admitted(self, problem: DualQP, S: NestedState, new: Array) -> Array:
        """Those that violate, or nearly so; the others are set aside where they are."""
        settled = slack(problem, S, new) > self.settled * self._unit(S)
        if settled.any():
            coef = problem.coef(S.a)
            moved, away = np.flatnonzero(coef), new[settled]
            S.aside.append(Aside(away, S.s[away], moved, coef[moved]))
        problem.gram.grow(new[~settled])
        return new[~settled]

    def _remove(self, problem: DualQP, S: State, gone: Array) -> None:
        super()._remove(problem, S, gone)
        assert isinstance(problem.gram, FarGram)
        problem.gram.release(gone[problem.coef(S.a)[gone] == 0.0])

    def _upgrading(self, problem: DualQP, state: State, tol: float) -> Iterator[None]:
        """Go on in float64; rows that are not active will be looked at anew."""
        assert isinstance(state, NestedState)
        S, gram = state, problem.gram
        self._globalise(S)
        gram.upgrade()
        S.rows = np.sort(S.rows)
        gram.restrict(S.rows)
        coef = problem.coef(S.a)
        moved = np.flatnonzero(coef)
        known = np.union1d(S.rows, moved)  # the objective needs those of all that carry weight
        yield from products_in_parts(gram, moved, coef[moved], known, s := np.zeros(gram.n))
        away = [group.rows for group in S.removed] + [group.rows for group in S.aside]
        S.aside = [Aside(rows, np.zeros(rows.size), NONE, np.empty(0)) for rows in away]
        S.s, S.removed = s, []
        S.variables = variables_of(problem, S.rows)
        S.objective = problem.objective(S.a, S.s)
        self._localise(problem, S)
        self._begin_anew(S)

    @staticmethod
    def nothing(problem: DualQP) -> DualSolution:
        """The model of a problem that has not begun; no row is read for it."""
        return DualSolution(problem.start, np.empty(0), (0.0, 0.0))

    def _see_all(self, problem: DualQP, S: NestedState) -> bool:
        """A pass over all rows may take longer than there is time for."""
        return False


def solver_for(gram: Gram, shrinking: bool, seed: int) -> Decomposition:
    """Rows that are elsewhere join one after the other; of few, all are here."""
    if isinstance(gram, FarGram):
        return NestedOnRows(shrinking=shrinking, seed=seed)
    return Decomposition(shrinking=shrinking)
