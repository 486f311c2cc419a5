"""Structural estimators on rows that are elsewhere."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from slimsvm.far.coding import Coded
from slimsvm.rows import Block
from slimsvm.solvers import structural_spaces as spaces
from slimsvm.solvers.joint import JointRisk
from slimsvm.training import Data, Fit, Unsupported

Array = NDArray[Any]


def labels_in(block: Block) -> tuple[Array, Array]:
    """A task: the numbers of the classes, and the weights."""
    assert block.y is not None and block.weight is not None
    return block.y, block.weight


def solved_on_rows(model: Any, data: Data, fit: Fit) -> tuple[str, spaces.Found]:
    """Step 4 for rows that are not in memory, each an example; their labels are brought here.

    The oracle needs the scores of all rows in one place.
    """
    oracle = model._oracle_on_rows()
    if oracle.one_example or oracle.name == "Chain":
        raise Unsupported(
            f"{oracle.name} needs whole examples, or all rows, at once: fit it on rows in memory."
        )
    rows, C = data.about["rows"], float(model.C)
    coded = rows.relabelled(Coded("labels", 1.0, data.classes, data.factors))
    parts, about = coded.map(labels_in), data.about
    labels, weight = (np.concatenate([part[i] for part in parts]) for i in range(2))
    model._with_oracle(data, oracle, data.classes[labels], weight)
    space = spaces.chosen_space(model, data.kernel, rows.n, rows.n, data.about["oracle"])
    true = data.about["true"]
    data.about |= about
    outputs = (true.labels, true.offsets, spaces.scaled(C, weight))
    risk = JointRisk(data.about["oracle"], *outputs, fit.threads)
    data.rows = coded
    if space not in ("explicit", "sampled"):
        raise Unsupported(
            f"space={space!r} needs all rows in memory; use 'sampled', or 'explicit' with "
            "kernel='linear'."
        )
    return space, spaces.SPACES[space](spaces.StructuralTask(model, data, risk, fit))
