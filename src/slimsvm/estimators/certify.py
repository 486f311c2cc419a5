"""How far a sparse model is from the exact solution with the same loss.

A feasible point of the dual of the whole problem, and its value.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils._param_validation import validate_parameter_constraints

from slimsvm.ending import FULL, Certificate, warn
from slimsvm.precision import is_small
from slimsvm.run import Limits
from slimsvm.solvers.newton import best_shift
from slimsvm.threads import n_threads
from slimsvm.tiles import Strips, accumulate, ready

Array = NDArray[Any]
BAND = 0.05  # half the width, in units of the margin
TINY = np.finfo(float).tiny
CERTIFY_ROWS = 2048


def certified(
    model: Any, X: Any, target: Array, weight: Array, max_time: float | None
) -> Certificate:
    """The gap to the exact solution with the same loss, from a feasible point of its dual.

    The dual point g is what the loss says at the scores (or the solver's own, where the loss has a
    kink), scaled so that its sum is zero;
    gap = |f|^2/2 + sum w L + |sum_i g_i phi(x_i)|^2/2 + sum w L*(g/w).
    """
    validate_parameter_constraints(
        {"max_time": model._parameter_constraints["max_time"]},
        {"max_time": max_time},
        caller_name=f"{type(model).__name__}.certify",
    )
    loss, threads, function = model._loss(), n_threads(model.n_jobs), model._function()
    w = float(model.C) * weight[:, None]
    scores = function.decision_function(X, threads)
    duals = getattr(model, "_row_duals", None)
    if loss.differentiable:
        if model.fit_intercept:
            scores = scores + best_shift(loss, target, w[:, 0], scores)
        g = w * loss.gradient(target, scores)
    elif duals is not None and duals.shape == target.shape:
        g = duals * (1.0 - 1e-9)  # rounding must not carry a multiplier beyond its bound
    else:  # a slope within a band around the kink, instead of a jump
        g = w * 0.5 * (loss.gradient(target, scores + BAND) + loss.gradient(target, scores - BAND))
    if model.fit_intercept:  # the multipliers of both signs must balance
        up, down = np.maximum(g, 0).sum(axis=0), np.maximum(-g, 0).sum(axis=0)
        least = np.minimum(up, down)
        up, down = least / np.maximum(up, TINY), least / np.maximum(down, TINY)
        g = np.where(g > 0, g * up, g * down)
    risk = float((w * loss.value(target, scores)).sum())
    objective = 0.5 * float(function.squared_norm().sum()) + risk
    square = _dual_square(model, X, g, threads, max_time)
    gap = objective + 0.5 * square + float((w * loss.conjugate(target, g / w)).sum())
    gap = max(0.0, gap)
    share = gap / objective if objective > 0 else 0.0
    return Certificate(FULL, objective, share, gap, float(model.tol), model.certificate_.precision)


def _dual_square(model: Any, X: Any, g: Array, threads: int, max_time: float | None) -> float:
    """Sum over columns of g' K g, in tiles, among rows with g != 0; infinite if time is too short."""
    which = np.flatnonzero((g != 0).any(axis=1))
    n = which.size
    if not n:
        return 0.0
    rows = ready(model.kernel_, X[which], dtype=np.float64 if is_small(X.shape[0]) else None)
    g, strips, total = g[which], Strips(rows), 0.0
    limits = Limits(max_time)
    for start in range(0, n, CERTIFY_ROWS):
        part = slice(start, min(n, start + CERTIFY_ROWS))
        begin = time.perf_counter()
        for c in range(g.shape[1]):
            s = np.zeros(n)
            accumulate(rows.take(part), strips, g[part, c], s, threads)
            total += float(g[:, c] @ s)
        if start == 0 and n > CERTIFY_ROWS:
            expected = (time.perf_counter() - begin) * n / CERTIFY_ROWS
            print(f"certify: {n:,} rows among themselves, about {expected:.0f} s", flush=True)
        if limits.reason() is not None and part.stop < n:
            warn(
                f"certify stopped at max_time={max_time:g} s with {part.stop:,} of {n:,} rows "
                "done: the gap is not known."
            )
            return float("inf")
    return total
