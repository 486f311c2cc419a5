"""Linear estimators on rows that are elsewhere."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from slimsvm.far.coding import Coded
from slimsvm.oracles import LossOracle
from slimsvm.problems.coordinates import Coordinates
from slimsvm.problems.linear import LEAST_WEIGHT
from slimsvm.problems.subspace import labels_of
from slimsvm.rows import joined
from slimsvm.run import Result
from slimsvm.solvers.linear_asked import refuse_large
from slimsvm.solvers.linear_on_rows import LinearOnRows, linear_on_rows
from slimsvm.training import Data, Fit

Array = NDArray[Any]


def solved_on_rows(model: Any, data: Data, fit: Fit) -> Result:
    """Step 4 for rows that are not in memory."""
    model._refuse_on_rows(data)
    about, rows, C = data.about["summary"], data.about["rows"], float(model.C)
    refuse_large(about.largest, C * about.heaviest, C)
    data.rows = Coordinates(None)
    several = data.classes.size > 2 and not (data.factors == 1.0).all()
    ones = np.ones(data.classes.size)
    labels = (data.classes, ones if several else data.factors) if data.classes.size else ()
    coded = rows.relabelled(Coded("columns", C, *labels))
    parts = coded.map(labels_of)
    target, weight = (joined([part[i] for part in parts]) for i in range(2))
    if several:
        weight = weight[:, None] * np.where(target > 0.0, data.factors, 1.0)
    weight = np.maximum(weight, LEAST_WEIGHT * float(weight.max()))
    problem = LinearOnRows(coded, target, weight, model._loss(), model._scaling)
    limits: Any = {"tol": float(model.tol), "max_iter": int(model.max_iter)}
    return linear_on_rows(problem, LossOracle, fit=fit, planes=model.solver, **limits)
