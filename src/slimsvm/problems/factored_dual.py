"""A dual problem whose matrix is known by its factor: as many rows as variables, few columns.

    min over a of  D(a) = 1/2 a'(V V' + diag(shift)) a - linear'a     subject to
    0 <= a_i <= upper_i

It is the dual of a linear SVM on the rows v_i of V (labels inside), without an intercept or
with a penalised one, a column of V:

    min over w of  P(w) = 1/2 |w|^2 + sum_i loss_i(linear_i - v_i w),
    loss_i(t) = max over 0 <= a <= upper_i of  a t - shift_i a^2/2,

that is upper_i max(0, t) for shift_i = 0, and max(0, t)^2 / (2 shift_i) for an infinite upper_i. At
w = V'a, P(w) + D(a) >= 0 is the duality gap, and zero at the optimum.

Symbols: n variables; r columns of V; w = V'a; t_i = linear_i - v_i w, how much is missing of the
margin.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

Array = NDArray[Any]
BLOCK_VALUES = 1 << 18  # of V that are brought to float64 at a time
# of a point that is stretched, and how closely the best length is known: to 1e-5
LONGEST, HALVINGS = 1.5, 16


@dataclass
class FactoredDual:
    """The problem: a factor, and what stands beside it.

    Parameters
    ----------
    V : array or CSR matrix of shape (n, r)
        The factor, in float32 or float64; sums are made in float64.
    linear : array of shape (n,) or float
        What a variable earns; 1 for an SVM.
    shift : array of shape (n,) or float
        Added to the diagonal, not negative; 0 for the hinge, 1 / (2 C weight_i) for the squared
        hinge.
    upper : array of shape (n,) or float
        Upper bounds, not negative; C weight_i for the hinge, infinite for the squared hinge.

    Examples
    --------
    >>> problem = FactoredDual(np.array([[1.0], [-2.0]]), 1.0, 0.5, np.inf)
    >>> a = np.array([1.0, 0.5])
    >>> w = problem.combined(a)
    >>> float(w[0]), float(problem.dual(a, w)), float(problem.primal(w))
    (0.0, -1.1875, 2.0)
    """

    V: Any
    linear: Any = 1.0
    shift: Any = 0.0
    upper: Any = np.inf

    def __post_init__(self) -> None:
        sparse = sp.issparse(self.V)
        dtype = np.float32 if getattr(self.V, "dtype", None) == np.float32 else np.float64
        self.V = (
            self.V.tocsr().astype(dtype, copy=False)
            if sparse
            else np.ascontiguousarray(self.V, dtype)
        )
        if self.V.ndim != 2:
            raise ValueError(
                f"V has {self.V.ndim} dimensions; expected a matrix with one row for each variable."
            )
        for name in ("linear", "shift", "upper"):
            value = np.asarray(getattr(self, name), np.float64)
            if value.shape not in ((), (self.n,)):
                raise ValueError(
                    f"{name} has the shape {value.shape}; expected a number, or one for "
                    f"each of the {self.n} rows of V."
                )
            setattr(self, name, np.ascontiguousarray(np.broadcast_to(value, (self.n,))))
        for name in ("shift", "upper"):
            if not np.all(getattr(self, name) >= 0):
                raise ValueError(
                    f"{name} has the value {getattr(self, name).min():g}; expected numbers "
                    "that are not negative."
                )
        values = self.V.data if sparse else self.V
        if not (
            np.isfinite(values).all()
            and np.isfinite(self.linear).all()
            and np.isfinite(self.shift).all()
        ):
            raise ValueError(
                "V, linear or shift has values that are not finite (NaN or infinity); "
                "check the kernel that V was made from."
            )
        if np.any((self.diag() == 0) & (self.linear > 0) & np.isinf(self.upper)):
            raise ValueError(
                "A row of V is zero, with no shift and no upper bound: the problem has no "
                "minimum. Give a shift or a bound."
            )

    @property
    def n(self) -> int:
        """Number of variables."""
        return int(self.V.shape[0])

    @property
    def n_values(self) -> int:
        """Entries of V that are held."""
        return int(self.V.nnz if sp.issparse(self.V) else self.V.size)

    def _blocks(self) -> list[slice]:
        step = max(1, BLOCK_VALUES // max(1, self.V.shape[1]))
        return [slice(start, min(self.n, start + step)) for start in range(0, self.n, step)]

    def diag(self) -> Array:
        """Of V V' + diag(shift)."""
        if sp.issparse(self.V):
            V = self.V.astype(np.float64)
            return np.asarray(np.asarray(V.multiply(V).sum(axis=1)).ravel() + self.shift)
        squares = [
            np.einsum("ij,ij->i", block, block)
            for block in (self.V[part].astype(np.float64) for part in self._blocks())
        ]
        return np.asarray(np.concatenate([*squares, np.empty(0)]) + self.shift)

    def scores(self, w: Array) -> Array:
        """V w"""
        if sp.issparse(self.V):
            return np.asarray(self.V @ w, np.float64)
        return np.concatenate(
            [*(self.V[part].astype(np.float64) @ w for part in self._blocks()), np.empty(0)]
        )

    def combined(self, a: Array) -> Array:
        """V'a"""
        if sp.issparse(self.V):
            return np.asarray(self.V.T @ a, np.float64)
        total = np.zeros(self.V.shape[1])
        for part in self._blocks():
            active = np.flatnonzero(a[part])
            if active.size:
                V = (
                    self.V[part]
                    if 2 * active.size > part.stop - part.start
                    else self.V[part][active]
                )
                total += (a[part] if len(V) > active.size else a[part][active]) @ V.astype(
                    np.float64
                )
        return total

    def dual(self, a: Array, w: Array) -> float:
        """D(a), with w = V'a."""
        return float(0.5 * (w @ w) + 0.5 * (self.shift @ np.square(a)) - self.linear @ a)

    def rounding(self, a: Array, w: Array) -> float:
        """About what sums in float64 may have changed of D(a) and of P(w); V is what it is.

        Rows that are long beside what w makes of them lose digits of their scores, and each of
        them costs its slope times that; so do those of V'a, where w is that.
        """
        eps = (4.0 + np.sqrt(self.V.shape[1])) * float(np.finfo(float).eps)  # of a sum of so many
        norms = np.sqrt(np.maximum(self.diag() - self.shift, 0.0))
        length, pulled = float(np.linalg.norm(w)), eps * float(a @ norms)
        off = norms * (eps * length + pulled) + eps * np.abs(self.linear)
        missing = self.linear - self.scores(w)
        felt = missing > -off
        with np.errstate(divide="ignore"):
            slope = np.minimum(self.upper[felt], (missing + off)[felt] / self.shift[felt])
        ends = float(np.abs(self.linear) @ a) + float(self.shift @ np.square(a))
        return float(slope @ off[felt] + length * pulled + eps * (length**2 + ends))

    def primal(self, w: Array) -> float:
        """P(w); infinite where an unbounded variable without a shift has something missing."""
        return self._primal(w, self.scores(w))

    def stretched(self, w: Array) -> tuple[float, float]:
        """The least P(s w) over s from 1 to LONGEST, nearly, and s.

        Where bounds are large and w is not quite there, its margins are missed by little, which
        costs much: a slightly longer w costs little.
        """
        scores, square = self.scores(w), float(w @ w)
        value = self._primal(w, scores)

        def slope(s: float) -> float:
            missing = self.linear - s * scores
            active = np.flatnonzero(missing > 0)
            with np.errstate(divide="ignore"):
                a = np.minimum(self.upper[active], missing[active] / self.shift[active])
            return s * square - float(a @ scores[active])

        short, long = 1.0, LONGEST
        if not (np.isfinite(value) and slope(short) < 0.0):
            return value, 1.0
        for _ in range(HALVINGS):
            middle = 0.5 * (short + long)
            short, long = (middle, long) if slope(middle) < 0.0 else (short, middle)
        longer = self._primal(long * w, long * scores)
        return (longer, long) if longer < value else (value, 1.0)

    def _primal(self, w: Array, scores: Array) -> float:
        t = np.maximum(0.0, self.linear - scores)
        with np.errstate(divide="ignore", invalid="ignore"):
            # t from which on the best a is at its bound
            bend = np.where(self.shift > 0, self.shift * self.upper, 0.0)
            square = np.square(t) / (2.0 * self.shift)
            line = self.upper * (t - 0.5 * bend)
        loss = np.where(t > 0, np.where(t < bend, square, line), 0.0)
        return float(0.5 * (w @ w) + loss.sum())
