"""The methods of the papers: one function for each, which returns the unfitted estimator.

A method is a choice of basis, problem and solver, and so a row of a table: its estimator, the
parameters that make the method, and the key of its paper in docs/refs.bib. A recipe is the method
as it was published; where the defaults of an estimator are quicker, the recipe has them off. What a
paper leaves open, its docstring says. Whatever a recipe leaves open (C, kernel, gamma, weights,
limits) is passed on to the estimator. The sections of a docstring that all recipes have are written
from the row.
"""

from __future__ import annotations

from slimsvm.recipes.exact import (
    chunking,
    libsvm_q,
    smo,
    svm_light,
)
from slimsvm.recipes.linear_and_structural import (
    kernel_cutting_plane,
    linear_cutting_plane,
    linear_newton,
    lsvm,
    sampled_cuts_constant,
    sampled_cuts_linear,
)
from slimsvm.recipes.reduced import (
    icf_pivoted,
    icf_retrain,
    icf_threshold,
    rsvm_decomposition,
    rsvm_lagrangian,
    rsvm_least_squares,
    rsvm_smooth,
)
from slimsvm.recipes.sparse import (
    cpsp,
    cpsp_rows,
    greedy_subset,
    incomplete_cholesky,
    margin_subset,
    nystrom,
    primal_newton,
    random_subset,
    refined,
    unsupervised_subset,
)
from slimsvm.recipes.subsets import (
    bvm,
    cross_training,
    cvm,
    lasvm,
    lasvm_active,
)
from slimsvm.recipes.table import RECIPES

__all__ = [
    "RECIPES",
    "bvm",
    "chunking",
    "cpsp",
    "cpsp_rows",
    "cross_training",
    "cvm",
    "greedy_subset",
    "icf_pivoted",
    "icf_retrain",
    "icf_threshold",
    "incomplete_cholesky",
    "kernel_cutting_plane",
    "lasvm",
    "lasvm_active",
    "libsvm_q",
    "linear_cutting_plane",
    "linear_newton",
    "lsvm",
    "margin_subset",
    "nystrom",
    "primal_newton",
    "random_subset",
    "refined",
    "rsvm_decomposition",
    "rsvm_lagrangian",
    "rsvm_least_squares",
    "rsvm_smooth",
    "sampled_cuts_constant",
    "sampled_cuts_linear",
    "smo",
    "svm_light",
    "unsupervised_subset",
]
