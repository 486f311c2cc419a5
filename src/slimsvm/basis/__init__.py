"""Which points carry weight: ways to choose the basis vectors.

Each is a small immutable object with one method, ``select(columns, row_weights, basis_weights, n_new, rng, candidates, here)``, that returns a
:class:`~slimsvm.basis.selection.Selection` of up to ``n_new`` vectors. One-shot choices ignore the weights.
"""

from typing import Any

from slimsvm.basis.cholesky import Cholesky
from slimsvm.basis.given import Given
from slimsvm.basis.greedy import Greedy
from slimsvm.basis.kmeans import KMeans
from slimsvm.basis.margin import Margin
from slimsvm.basis.preimage import Pursuit, PursuitRows
from slimsvm.basis.random import Random
from slimsvm.basis.selection import Basis, Here, Selection
from slimsvm.basis.unsupervised import Unsupervised

REGISTRY: dict[str, Any] = {
    "pursuit": Pursuit,
    "pursuit_rows": PursuitRows,
    "random": Random,
    "kmeans": KMeans,
    "cholesky": Cholesky,
    "unsupervised": Unsupervised,
    "greedy": Greedy,
    "margin": Margin,
}

__all__ = [
    "REGISTRY",
    "Basis",
    "Cholesky",
    "Given",
    "Greedy",
    "Here",
    "KMeans",
    "Margin",
    "Pursuit",
    "PursuitRows",
    "Random",
    "Selection",
    "Unsupervised",
]
