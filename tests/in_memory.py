"""Problems over rows in memory, from arrays."""

import copy

import numpy as np

from slimsvm.frames import Frame, in_memory
from slimsvm.problems.columns import KernelColumns
from slimsvm.problems.subspace import Subspace


def kernel_columns(operand, max_basis, max_memory=None, n_threads=1):
    """The columns of prepared rows."""
    return KernelColumns(
        in_memory(operand, n_threads=n_threads), Frame.like(operand), max_basis, max_memory
    )


def subspace_problem(columns, target, weight, loss, fit_intercept=True):
    """The problem over the basis of these columns, with other labels."""
    labelled = copy.copy(columns)
    labelled.rows = columns.rows.relabelled(lambda block: (np.asarray(target), weight))
    return Subspace(labelled, loss, fit_intercept)
