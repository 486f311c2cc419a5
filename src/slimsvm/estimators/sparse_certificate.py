"""How far a sparse machine is from the exact one with the same loss: a feasible point of the dual of the whole problem, and its value."""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import validate_parameter_constraints

from slimsvm.run import FULL, Certificate, Limits
from slimsvm.solvers.decomposition import EXACT
from slimsvm.solvers.newton import best_shift
from slimsvm.threads import n_threads
from slimsvm.tiles import Strips, accumulate, ready

Array = NDArray[Any]
BAND = 0.05  # half the width, in units of the margin
TINY = np.finfo(float).tiny
CERTIFY_ROWS = 2048


def certified(
    machine: Any, X: Any, target: Array, weight: Array, max_time: float | None
) -> Certificate:
    """The gap to the exact machine with the same loss, from a feasible point of its dual.

    The dual point g is what the loss says at the scores (or the solver's own, where the loss has a kink), scaled so that its sum is zero;
    gap = |f|^2/2 + sum w L + |sum_i g_i phi(x_i)|^2/2 + sum w L*(g/w).
    """
    validate_parameter_constraints(
        {"max_time": machine._parameter_constraints["max_time"]},
        {"max_time": max_time},
        caller_name=f"{type(machine).__name__}.certify",
    )
    loss, threads = machine._loss(), n_threads(machine.n_jobs)
    w = float(machine.C) * weight[:, None]
    scores = machine._expansion().decision_function(X, threads)
    duals = getattr(machine, "_row_duals", None)
    if loss.differentiable:
        if machine.fit_intercept:
            scores = scores + best_shift(loss, target, w[:, 0], scores)
        g = w * loss.gradient(target, scores)
    elif duals is not None and duals.shape == target.shape:
        g = duals * (1.0 - 1e-9)  # rounding must not carry a multiplier beyond its bound
    else:  # a slope within a band around the kink, instead of a jump
        g = w * 0.5 * (loss.gradient(target, scores + BAND) + loss.gradient(target, scores - BAND))
    if machine.fit_intercept:  # the multipliers of both signs must balance
        up, down = np.maximum(g, 0).sum(axis=0), np.maximum(-g, 0).sum(axis=0)
        least = np.minimum(up, down)
        g = np.where(
            g > 0, g * (least / np.maximum(up, TINY)), g * (least / np.maximum(down, TINY))
        )
    objective = 0.5 * float(machine._expansion().squared_norm().sum()) + float(
        (w * loss.value(target, scores)).sum()
    )
    square = _dual_square(machine, X, g, threads, max_time)
    gap = objective + 0.5 * square + float((w * loss.conjugate(target, g / w)).sum())
    gap = max(0.0, gap)
    return Certificate(
        FULL,
        objective,
        gap / objective if objective > 0 else 0.0,
        gap,
        float(machine.tol),
        machine.certificate_.precision,
    )


def _dual_square(machine: Any, X: Any, g: Array, threads: int, max_time: float | None) -> float:
    """sum over columns of g' K g, in tiles, among the rows with g != 0; infinite when time does not suffice."""
    felt = np.flatnonzero((g != 0).any(axis=1))
    if not felt.size:
        return 0.0
    rows = ready(machine.kernel_, X[felt], dtype=np.float64 if X.shape[0] <= EXACT else None)
    g, strips, total = g[felt], Strips(rows), 0.0
    begin = time.perf_counter()
    limits = Limits(max_time)
    for start in range(0, felt.size, CERTIFY_ROWS):
        part = slice(start, min(felt.size, start + CERTIFY_ROWS))
        for c in range(g.shape[1]):
            s = np.zeros(felt.size)
            accumulate(rows.take(part), strips, g[part, c], s, threads)
            total += float(g[:, c] @ s)
        if start == 0 and felt.size > CERTIFY_ROWS:
            expected = (time.perf_counter() - begin) * felt.size / CERTIFY_ROWS
            print(
                f"certify: {felt.size:,} rows among themselves, about {expected:.0f} s", flush=True
            )
        if limits.reason() is not None and part.stop < felt.size:
            warnings.warn(
                f"certify stopped at max_time={max_time:g} s with {part.stop:,} of {felt.size:,} rows done: the gap is not known.",
                ConvergenceWarning,
                stacklevel=4,
            )
            return float("inf")
    return total
