"""Pursuit: a basis that grows where the objective falls most, for losses with a derivative.

Problem: :class:`slimsvm.problems.subspace.Subspace`, over the coefficients *and* over which vectors
are in the basis.

Algorithm: the idea of Joachims & Yu (2009), "Sparse kernel SVMs via cutting-plane training", with
the gradient in place of the newest cut. At the optimum within the span, the negative gradient of
the whole problem,

    r = -( sum_j coef_j phi(b_j) + sum_i g_i phi(x_i) ),     g_i = weight_i L'(y_i, f_i),

is orthogonal to the span; a :mod:`slimsvm.basis` finds vectors b with large <r, phi(b)>^2, they
join, and Newton's method solves again. What differs: a share of the present size joins at once, so
that the number of solves grows with the logarithm of the size.

Cost: for every solve a few Newton steps; for every vector one row of K_BX and the search of its
pre-image.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slimsvm.basis.selection import Here
from slimsvm.problems.subspace import Subspace
from slimsvm.run import Limits, Record, Watcher, tell
from slimsvm.solvers.newton import Newton, NewtonState
from slimsvm.solvers.refine import solve

Array = NDArray[Any]
LOOSE = 1e-4  # relative gap while the basis grows
MOST_REFUSALS = 3  # rounds in a row in which no vector was new


@dataclass
class Grown:
    """The model at one size of the basis."""

    n_basis: int
    state: NewtonState
    indices: Array | None = None  # the rows that joined, where all that joined were rows


def pursue(
    problem: Subspace,
    choose: Any,
    sizes: list[int],
    candidates: Array,
    rng: np.random.Generator,
    *,
    tol: float,
    limits: Limits,
    watchers: tuple[Watcher, ...] = (),
) -> Iterator[Grown]:
    """Grow the basis of the problem to each of the sizes in turn, and solve there.

    Ends early when nothing new can be found or time is up.

    Parameters
    ----------
    choose : a basis
        With a method ``select``.
    candidates : array of indices
        Rows that may join, or be starting points.
    """
    columns, newton = problem.columns, Newton()
    state = solve(problem, None, LOOSE) if columns.m else newton.init(problem)
    refused = 0
    found: list[Array] | None = []
    for size in sizes:
        while (
            columns.m < size
            and refused < MOST_REFUSALS
            and (limits.reason() is None or columns.m == 0)
        ):
            G = problem.gradients(state.trail)
            at_once = choose.at_once(columns.m)
            here = Here(problem, state.scores)
            selection = choose.select(
                columns, -G, -state.coef, min(size - columns.m, at_once), rng, candidates, here
            )
            accepted = columns.append(selection.vectors)
            if not accepted.any():
                refused += 1
                continue
            refused = 0
            found = (
                None
                if found is None or selection.indices is None
                else [*found, selection.indices[accepted]]
            )
            if choose.undisturbed and selection.indices is not None:
                # as published: p candidates are p rows that may still join
                candidates = np.setdiff1d(candidates, selection.indices[accepted])
            state = solve(problem, (state.coef, state.intercept), LOOSE)
            tell(watchers, Record(columns.m, limits.seconds, state.record()), limits)
        if columns.m == 0:
            yield Grown(0, state)
            return
        state = solve(problem, (state.coef, state.intercept), tol, 50)
        newton.finish(problem, state)
        yield Grown(columns.m, state, np.concatenate(found) if found else None)
        if columns.m < size:
            return
