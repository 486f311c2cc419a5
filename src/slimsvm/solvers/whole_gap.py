"""How far a function is from the optimum over all functions of its kernel.

Measured by the value of a feasible point of the dual of the whole problem:

    gap = 1/2 |f|^2 + sum_i w_i L(y_i, f_i)
          + 1/2 |sum_i g_i phi(x_i)|^2 + sum_i w_i L*(y_i, g_i / w_i)

The dual point g is what the loss says at the scores, or a solver's own, scaled so that its sum is
zero where there is an intercept.

Scores and labels of all rows are brought here, 8 bytes a row and column. Of the rows themselves
only those with g_i != 0 are, and a sum over all pairs of them is made: what is too much for memory
is far too much for that.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slimsvm.ending import warn
from slimsvm.expansion import Expansion
from slimsvm.kernel_sums import accumulate
from slimsvm.losses import Loss, Softmax
from slimsvm.precision import bent, errors_of_scores, rounding
from slimsvm.problems.intercepts import centred
from slimsvm.problems.subspace import weights
from slimsvm.rows import Block, Rows, joined
from slimsvm.run import Limits
from slimsvm.solvers.line_search import best_shift
from slimsvm.tiles import Strips, prepare

Array = NDArray[Any]
BAND = 0.05  # half the width, in units of the margin
TINY = np.finfo(float).tiny
ROWS_AT_ONCE = 2048


def whole_gap(
    rows: Rows,
    function: Expansion,
    loss: Loss | Softmax,
    fit_intercept: bool = True,
    duals: Array | None = None,
    dtype: Any = None,
    going_on: Callable[[int, int], bool] = lambda done, n: True,
) -> tuple[float, float, float]:
    """The objective of a function, and how far it is above the optimum at most.

    The third number is about how much rounding may have changed either; the gap includes it.

    Parameters
    ----------
    rows : Rows
        With targets, one column for each output of the function, and weights, C included.
    function : Expansion
        With coefficients for each output.
    loss : Loss or Softmax
        What a mistake costs.
    fit_intercept : bool
        Whether the problem has an intercept.
    duals : array of shape (n, columns), optional
        A solver's own point of the dual, for losses with a kink.
    dtype : type, optional
        Of the kernel values among the rows; None: float32 where that is safe.
    going_on : callable
        Told before the sum, and asked after every few rows of it, with how many are done and how
        many there are: where it says no, the gap is infinite.

    Examples
    --------
    >>> from slimsvm.kernels import Linear
    >>> from slimsvm.losses import LeastSquares
    >>> from slimsvm.rows import MemoryRows
    >>> rows = MemoryRows(np.array([[1.0], [2.0]]), np.array([1.0, 2.0]), np.ones(2))
    >>> best = Expansion(Linear(), np.array([[1.0]]), np.array([[10 / 11]]), np.zeros(1))
    >>> objective, gap, _ = whole_gap(rows, best, LeastSquares(), False, dtype=np.float64)
    >>> round(objective, 6), bool(gap < 1e-12)
    (0.454545, True)
    """
    target, w = joined(rows.map(targets_given)), joined(rows.map(weights))[:, None]
    given = scores = function.over(rows)
    joint = isinstance(loss, Softmax)
    if isinstance(loss, Softmax):  # at the best intercepts the multipliers balance
        if fit_intercept:
            scores = scores + centred(loss, target, w[:, 0], scores, np.zeros(scores.shape[1]))
        g = w * loss.gradient(target, scores)
    elif loss.differentiable:
        if fit_intercept:
            scores = scores + best_shift(loss, target, w[:, 0], scores)
        g = w * loss.gradient(target, scores)
    elif duals is not None and duals.shape == target.shape:
        g = duals * (1.0 - 1e-9)  # rounding must not carry a multiplier beyond its bound
    else:  # a slope within a band around the kink, instead of a jump
        g = w * 0.5 * (loss.gradient(target, scores + BAND) + loss.gradient(target, scores - BAND))
    if fit_intercept and not joint:  # the multipliers of both signs must balance
        up, down = np.maximum(g, 0).sum(axis=0), np.maximum(-g, 0).sum(axis=0)
        least = np.minimum(up, down)
        g = np.where(
            g > 0, g * (least / np.maximum(up, TINY)), g * (least / np.maximum(down, TINY))
        )
    own = function.at_basis()
    objective = 0.5 * float(np.vdot(function.coef, own))
    objective += _total(w, loss.value(target, given))  # with the intercepts that it has
    square, felt = _square(rows, function, g, dtype, going_on)
    gap = objective + 0.5 * square + _total(w, loss.conjugate(target, g / w))
    error = max(rows.map(error_of, function, dtype))
    raw = given - function.intercept
    of_scores = errors_of_scores(error, function.coef, raw)
    slopes = w * loss.gradient(target, given)
    off = rounding(error, function.coef, own, slopes, raw) + rounding(error, g, felt, g, felt)
    off += _bent(loss, target, w[:, 0], given, of_scores)
    return objective, max(0.0, gap) + off, off


def _bent(loss: Loss | Softmax, target: Array, weight: Array, scores: Array, off: Array) -> float:
    """What errors of scores cost beyond what slopes say; those of the softmax are at most one."""
    if isinstance(loss, Softmax):
        return float(weight @ np.square(off).sum(axis=1))
    return bent(loss, target, weight, scores, off)


def error_of(block: Block, function: Expansion, dtype: Any) -> float:
    """A task: the error of a kernel value, of the function's or of those among the rows."""
    own = prepare(function.kernel, block.X, dtype=dtype).rounding()
    return max(own, function.rounding(block.X))


def _total(w: Array, values: Array) -> float:
    """The weighted sum of losses: one for each column, or one for all."""
    return float((w * values).sum()) if values.ndim == 2 else float(w[:, 0] @ values)


def targets_given(block: Block) -> Array:
    """A task: the targets of a block, (n, columns), as they are."""
    assert block.y is not None
    return block.y[:, None] if block.y.ndim == 1 else block.y


def _square(
    rows: Rows, function: Expansion, g: Array, dtype: Any, going_on: Callable[[int, int], bool]
) -> tuple[float, Array]:
    """Sum over columns of g' K g, in tiles, among the rows with g != 0; and K g at these.

    Infinite if ``going_on`` ended it early.
    """
    felt, active = np.zeros(g.shape), np.flatnonzero((g != 0).any(axis=1))
    if not active.size:
        return 0.0, felt
    some = prepare(function.kernel, rows.take(active).X, dtype=dtype)
    g, strips, total = g[active], Strips(some), 0.0
    going_on(0, active.size)
    for start in range(0, active.size, ROWS_AT_ONCE):
        part = slice(start, min(active.size, start + ROWS_AT_ONCE))
        for c in range(g.shape[1]):
            s = np.zeros(active.size)
            accumulate(some.take(part), strips, g[part, c], s, rows.n_threads)
            total += float(g[:, c] @ s)
            felt[active, c] += s
        if not going_on(part.stop, active.size):
            return float("inf"), felt
    return total, felt


class Clock:
    """For ``going_on``: says how long the sum will take, and ends it at the time limit."""

    def __init__(
        self, max_time: float | None, so: str = "the gap is not known", worth: float = 0.0
    ) -> None:
        self.max_time, self.limits, self.begin = max_time, Limits(), 0.0
        self.told, self.so, self.worth = False, so, worth

    def __call__(self, done: int, n: int) -> bool:
        """Whether to go on, with so many of n rows done."""
        if not done:
            self.limits, self.begin = Limits(self.max_time), time.perf_counter()
            return True
        if not self.told and n > done:
            expected = (time.perf_counter() - self.begin) * n / done
            if expected >= self.worth:
                print(f"certify: {n:,} rows among themselves, about {expected:.0f} s", flush=True)
        self.told = True
        if self.limits.reason() is None or done == n:
            return True
        warn(
            f"certify stopped at max_time={self.max_time:g} s with {done:,} of {n:,} rows done: "
            f"{self.so}."
        )
        return False
