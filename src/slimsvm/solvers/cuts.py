"""What a cutting-plane method remembers: the working set of cuts, where it is, and what comes out.

Symbols as in :mod:`slimsvm.solvers.cutting_plane`: W coordinates of functions, one column each; P
those of cuts; a multipliers of cuts.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Columns = NDArray[Any] | None  # which columns the scores stand for; None: all
TINY = float(np.finfo(float).tiny)


@dataclass(frozen=True)
class CutSolution:
    """What :meth:`CuttingPlane.model` returns.

    Attributes
    ----------
    coef : array of shape (size, columns)
        Features' weights, or coefficients of the rows or the basis.
    intercept : array of shape (columns,)
        The best for these coefficients, without a penalty; zero if there is none.
    scores : array of shape (n, columns)
        Of all rows, intercept included.
    row_duals : array of shape (n, columns), or None
        sum_t a_t v_t, a feasible point of the exact problem's dual: w = -sum_i row_duals_i phi(x_i)
        in a space without projection. For the hinge its absolute values are the usual multipliers,
        between 0 and C times the weight.
    objective, lower_bound : arrays of shape (columns,)
        Best value, and what it cannot fall below.
    """

    coef: Array
    intercept: Array
    scores: Array
    row_duals: Array | None
    objective: Array
    lower_bound: Array


class Cuts:
    """The working set of one column."""

    def __init__(self, max_size: int, dtype: Any = np.float64) -> None:
        self.n = 0
        self._P, self._gram = np.empty((0, max_size), dtype), np.empty((0, 0))
        self.offset, self.total, self.a = np.empty(0), np.empty(0), np.empty(0)
        self.idle = np.empty(0, np.int64)  # rounds since a was above zero
        self.rows: list[Any] = []

    def coordinates(self, size: int) -> Array:
        """(cuts, size)"""
        return self._P[: self.n, :size]

    def combined(self, size: int) -> Array:
        """sum_t a_t p_t"""
        return np.asarray(self.a.astype(self._P.dtype) @ self.coordinates(size), np.float64)

    @property
    def gram(self) -> Array:
        """Inner products of the cuts."""
        return self._gram[: self.n, : self.n]

    def append(self, p: Array, offset: float, total: float, row: Array, kept: Any) -> None:
        """A new cut: its coordinates, its inner products with all cuts and itself, and its rows."""
        # twice the capacity: coordinates may be many, and are not to be copied every round
        if self.n == self._P.shape[0]:
            capacity = max(16, 2 * self.n)
            P, gram = (
                np.empty((capacity, self._P.shape[1]), self._P.dtype),
                np.empty((capacity, capacity)),
            )
            P[: self.n], gram[: self.n, : self.n] = self._P[: self.n], self.gram
            self._P, self._gram = P, gram
        self._P[self.n, : p.size] = p
        self._gram[self.n, : self.n + 1] = self._gram[: self.n + 1, self.n] = row
        self.n += 1
        self.offset, self.total = np.append(self.offset, offset), np.append(self.total, total)
        self.a, self.idle = np.append(self.a, 0.0), np.append(self.idle, 0)
        self.rows.append(kept)

    def replace(self, P: Array, gram: Array) -> None:
        """Other coordinates (cuts, size) of the same cuts."""
        if P.shape[1] > self._P.shape[1]:
            self._P = np.empty((self._P.shape[0], P.shape[1]), self._P.dtype)
        self._P[: self.n, : P.shape[1]] = P
        self._gram[: self.n, : self.n] = gram

    def drop(self, max_idle: int) -> None:
        """Without the cuts that were inactive for more rounds than this."""
        keep = np.flatnonzero(self.idle <= max_idle)
        n = keep.size
        if n == self.n:
            return
        # filled with the last cuts that stay: coordinates may be many
        holes = np.flatnonzero(self.idle[:n] > max_idle)
        keep, moved = np.arange(n), keep[n - holes.size :]
        keep[holes] = moved
        self._P[holes] = self._P[moved]
        self._gram[:n, :n] = self._gram[np.ix_(keep, keep)]
        self.offset, self.total, self.a, self.idle = (
            self.offset[keep],
            self.total[keep],
            self.a[keep],
            self.idle[keep],
        )
        self.rows, self.n = [self.rows[k] for k in keep], n


@dataclass
class CutState:
    """Where the driver is."""

    W: Array  # the solution of the small problems, (size, columns)
    b: Array
    best_W: Array  # the best point so far, its scores without the intercept, and its value
    best_b: Array
    best_scores: Array
    objective: Array
    lower: Array  # bound of the objective, in the present space
    xi: Array  # of the small problems
    cuts: list[Cuts]
    open: Array  # columns whose gap is too large
    stalled: Array
    scores: Array | None = None  # of W, if they are known already
    n_iter: int = 0
    done: bool = False
    n_basis: int = 0
    n_values: int = 0
    marks: list[Array] = field(default_factory=list)  # gaps of the last rounds in a fixed space
    # by how much the newest cuts are violated more than xi, in units of the mean loss; where that
    # decides the end
    excess: Array | None = None
    grown: Any = None  # of a fit that is kept: see :meth:`SubspaceSpace.grown`

    @property
    def gap(self) -> Array:
        """How far each column is from its optimum, at most."""
        return np.asarray(np.maximum(0.0, self.objective - self.lower))

    @property
    def relative_gap(self) -> Array:
        """The same, relative to the objective."""
        return np.asarray(self.gap / np.maximum(self.objective, TINY))

    @property
    def measured(self) -> float:
        """What ``tol`` is about, of the worst column: its relative gap, or its newest cut."""
        return float((self.relative_gap if self.excess is None else self.excess).max())

    def record(self) -> dict[str, float]:
        """A line of the history; ``violation`` is the largest relative gap of a column."""
        return {
            "objective": float(self.objective.sum()),
            "lower_bound": float(self.lower.sum()),
            "gap": float(self.gap.sum()),
            "violation": self.measured,
            "n_cuts": float(sum(cuts.n for cuts in self.cuts)),
            "n_basis": float(self.n_basis),
            "kernel_values": float(self.n_values),
        }


def chosen(A: Array, which: Array) -> Array:
    """Some columns, in order; all of them are the array itself, which may be large."""
    return A if which.size == A.shape[1] else A[:, which]


def raised(scores: Array, b: Array) -> Array:
    """scores + b, without a copy where b is zero."""
    return scores + b if b.any() else scores


def columnwise(A: Array, B: Array) -> Array:
    """Inner products of the columns of A and B, pairwise; one long column goes to BLAS."""
    return (
        np.array([np.dot(A[:, 0], B[:, 0])])
        if A.shape[1] == 1
        else np.asarray(np.einsum("ic,ic->c", A, B))
    )


def padded(W: Array, size: int) -> Array:
    """With zeros for the coordinates that are missing."""
    return np.vstack([W, np.zeros((size - W.shape[0], W.shape[1]))]) if W.shape[0] < size else W
