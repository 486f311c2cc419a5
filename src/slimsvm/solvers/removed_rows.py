"""What becomes of rows that left a dual problem: the recheck at its end.

A removed variable is rechecked by a bound first: s changed by at most |w - w_then| sqrt(k(x, x)),
and that norm is known from the active variables; only the rest is computed. Work over all rows is a
generator that yields after about a third of a second, so that a time limit is heard. Symbols as in
:mod:`slimsvm.solvers.decomposition`.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slimsvm.gram import Gram
from slimsvm.kernels import Precomputed
from slimsvm.problems.dual_qp import DualQP
from slimsvm.solvers.dual_state import Removed, State

Array = NDArray[Any]
# kernel values made in one part of such work: about a third of a second with ten features
PART = 300_000_000
FEWEST = 1000  # rows in a part
CHEAP_FEATURES = 32  # from so many on a value takes longer in proportion
SLOWER = 1 / 30  # rate of kernels that are no function of inner products


def values_in_a_part(gram: Gram) -> float:
    """How many kernel values are made in one part."""
    X, kernel = gram.operand.X, gram.operand.kernel
    if isinstance(kernel, Precomputed):
        return PART
    features: float = X.shape[1] if isinstance(X, np.ndarray) else X.nnz / max(1, X.shape[0])
    values = PART / max(1.0, features / CHEAP_FEATURES)
    return values if kernel.uses_dots else SLOWER * values


def rows_in_a_part(gram: Gram, n_moved: int) -> int:
    """How many rows get their products with so many others in one part."""
    return int(max(FEWEST, values_in_a_part(gram) // max(1, n_moved)))


def products_in_parts(
    gram: Gram, moved: Array, delta: Array, rows: Array, out: Array
) -> Iterator[None]:
    """out[rows] += sum_r delta[r] k(moved[r], rows), which need not be active columns."""
    many = rows_in_a_part(gram, moved.size)
    for first in range(0, rows.size if moved.size else 0, many):
        if first:
            yield
        part = rows[first : first + many]
        out[part] += gram.products(moved, delta, part)


def slack(problem: DualQP, S: State, rows: Array) -> Array:
    """How far each row is from violating.

    The least over its variables of the multiplier's estimate; s must be exact there.
    """
    o = problem.order(S.s)
    reduced = problem.sign * (o - np.where(problem.sign > 0, *S.level))
    estimate = np.where(
        S.a <= 0, reduced, np.where(S.a >= problem.upper, -reduced, -np.abs(reduced))
    )
    least = np.full(problem.gram.n, np.inf)
    np.minimum.at(least, problem.row, estimate)
    return least[rows]


def rechecked(problem: DualQP, state: State, tol: float) -> Generator[None, None, Array]:
    """Look at all that was removed: by a bound, and exactly where that does not suffice.

    Those that must come back are the value of the generator.
    """
    S = state
    coef = problem.coef(S.a)
    # rows that moved after the last check of some group, and then left themselves: norms need
    # their s
    moved_since = np.zeros(coef.size, bool)
    for group in S.removed:
        moved_since |= coef != group.check_coef
    for group in S.removed:
        yield from _make_exact(problem, S, group, coef, moved_since[group.rows])
    for group in S.removed:
        if problem.gram.operand.kernel.positive:
            change = coef - group.check_coef
            moved = np.flatnonzero(change)
            distance = np.sqrt(max(0.0, float(change[moved] @ (S.s[moved] - group.check_s[moved]))))
            # and what rounding may have added to a norm of zero
            distance = 1.001 * distance + 1e-9 * float(np.abs(change).sum())
            drift = max(abs(S.level[k] - group.check_level[k]) for k in (0, 1))
            group.slack = (
                group.slack - distance * np.sqrt(np.maximum(S.diag[group.rows], 0.0)) - drift
            )
        else:  # no norm, no bound
            group.slack = np.full(group.rows.size, -np.inf)
        yield from _make_exact(problem, S, group, coef, group.slack <= 0)
    # only now: s of rows that come back below is exact in what the next check compares with
    for group in S.removed:
        group.check_coef, group.check_s, group.check_level = coef, S.s.copy(), S.level
    S.removed = [group for group in S.removed if group.rows.size]
    rows = np.concatenate([np.empty(0, np.intp), *S.exact])
    S.exact = []
    if not rows.size:
        return rows
    left = slack(problem, S, rows)
    # those within the tolerance come back too: the next rounds move the level by as much
    rest = left > 10 * tol
    if rest.any():
        S.removed.append(
            Removed(rows[rest], S.s[rows[rest]], coef, left[rest], coef, S.s.copy(), S.level)
        )
    return rows[~rest]


def _make_exact(
    problem: DualQP, S: State, group: Removed, coef: Array, which: Array
) -> Iterator[None]:
    """Compute s of some rows of a group as it is now, in parts that leave it for S.exact."""
    delta = coef - group.coef
    since = np.flatnonzero(delta)
    many = rows_in_a_part(problem.gram, since.size)
    left = group.rows[which]
    while left.size:
        rows, left = left[:many], left[many:]
        own = np.isin(group.rows, rows)
        S.s[group.rows[own]] = group.s[own]
        S.s[rows] += problem.gram.products(since, delta[since], rows)
        S.exact.append(rows)
        group.rows, group.s, group.slack = group.rows[~own], group.s[~own], group.slack[~own]
        if left.size:
            yield
