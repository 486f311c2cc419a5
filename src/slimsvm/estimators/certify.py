"""How far a sparse model is from the exact solution with the same loss."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils._param_validation import validate_parameter_constraints

from slimsvm.ending import FULL, Certificate, warn
from slimsvm.precision import is_small
from slimsvm.rows import MemoryRows
from slimsvm.run import Limits
from slimsvm.solvers.whole_gap import whole_gap
from slimsvm.threads import n_threads

Array = NDArray[Any]


def certified(
    model: Any, X: Any, target: Array, weight: Array, max_time: float | None
) -> Certificate:
    """The gap to the exact solution with the same loss, from a feasible point of its dual."""
    validate_parameter_constraints(
        {"max_time": model._parameter_constraints["max_time"]},
        {"max_time": max_time},
        caller_name=f"{type(model).__name__}.certify",
    )
    objective, gap = whole_gap(
        MemoryRows(X, target, float(model.C) * weight, n_threads(model.n_jobs)),
        model._function(),
        model._loss(),
        bool(model.fit_intercept),
        getattr(model, "_row_duals", None),
        np.float64 if is_small(X.shape[0]) else None,
        _Clock(max_time),
    )
    relative = gap / objective if objective > 0 else 0.0
    precision = model.certificate_.precision
    return Certificate(FULL, objective, relative, gap, float(model.tol), precision)


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
        warn(
            f"certify stopped at max_time={self.max_time:g} s with {done:,} of {n:,} rows done: "
            "the gap is not known."
        )
        return False
