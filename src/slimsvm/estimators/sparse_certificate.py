"""How far a sparse machine is from the exact one with the same loss: a feasible point of the dual of the whole problem, and its value."""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import validate_parameter_constraints

from slimsvm.rows import MemoryRows
from slimsvm.run import FULL, Certificate, Limits
from slimsvm.solvers.decomposition import EXACT
from slimsvm.solvers.whole_gap import whole_gap
from slimsvm.threads import n_threads

Array = NDArray[Any]


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
    rows = MemoryRows(X, target, float(machine.C) * weight, n_threads(machine.n_jobs))
    objective, gap = whole_gap(
        rows,
        machine._expansion(),
        machine._loss(),
        bool(machine.fit_intercept),
        getattr(machine, "_row_duals", None),
        np.float64 if X.shape[0] <= EXACT else None,
        _Clock(max_time),
    )
    return Certificate(
        FULL,
        objective,
        gap / objective if objective > 0 else 0.0,
        gap,
        float(machine.tol),
        machine.certificate_.precision,
    )


class _Clock:
    """Says how long the sum over pairs of rows will take, and ends it at the time limit."""

    def __init__(self, max_time: float | None) -> None:
        self.max_time, self.limits, self.begin = max_time, Limits(), 0.0
        self.told = False

    def __call__(self, done: int, n: int) -> bool:
        if not done:
            self.limits, self.begin = Limits(self.max_time), time.perf_counter()
            return True
        if not self.told and n > done:
            expected = (time.perf_counter() - self.begin) * n / done
            print(f"certify: {n:,} rows among themselves, about {expected:.0f} s", flush=True)
        self.told = True
        if self.limits.reason() is None or done == n:
            return True
        warnings.warn(
            f"certify stopped at max_time={self.max_time:g} s with {done:,} of {n:,} rows done: the gap is not known.",
            ConvergenceWarning,
            stacklevel=6,
        )
        return False
