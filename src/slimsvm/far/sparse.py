"""SparseSVC and SparseSVR on rows that are elsewhere."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slimsvm.basis import is_choice
from slimsvm.far.coding import Coded
from slimsvm.oracles import LossOracle
from slimsvm.run import Result
from slimsvm.solvers.path_points import Scoring
from slimsvm.solvers.sparse_asked import AUTO_FRACTION, Asked
from slimsvm.solvers.sparse_on_rows import (
    OnRows,
    descended_on_rows,
    held_out_rows,
    path_on_rows,
)
from slimsvm.solvers.sparse_path import Around
from slimsvm.training import Data, Fit

Array = NDArray[Any]


def solved_on_rows(model: Any, data: Data, fit: Fit) -> Result:
    """Step 4 for rows that are not in memory."""
    asked, rows, about = Asked.of(model), data.about["rows"], data.about["summary"]
    some = rows.take(np.arange(1)).X
    descends = asked.descends(data.kernel, some)
    loss = model._loss(descends, data.classes.size)
    data.about |= {"descends": descends, "loss": loss.name}
    labels = (data.classes, data.factors) if data.classes.size else (None, None)
    coded, C = Coded("columns", float(model.C), *labels), float(model.C)
    fraction = model.validation_fraction or (AUTO_FRACTION if asked.auto else None)
    held = None
    if fraction is not None:
        held, without = held_out_rows(rows.relabelled(coded), float(fraction), asked.seed())
        coded = replace(coded, without=without)
    given = OnRows(
        rows.relabelled(coded),
        data.kernel,
        data.classes,
        about.largest,
        C * about.total,
        C * about.heaviest,
        getattr(rows, "bytes_to_read", 0),
    )
    scoring = Scoring(model._measure, held, fit.threads)
    warm = model.warm_start and hasattr(model, "basis_coef_")
    last = model._function() if warm else None
    if descends:
        result, data.about["seen"] = descended_on_rows(asked, given, loss, fit, scoring, last)
        return result
    basis = None if last is None or not is_choice(asked.vectors) else last.basis
    return path_on_rows(asked, given, loss, fit, Around(scoring, basis, LossOracle))
