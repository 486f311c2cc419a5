"""Which points carry weight: ways to choose the basis vectors.

Each is a small immutable object with one method, ``select(columns, row_weights, basis_weights, n_new, rng, candidates)``, that returns a
:class:`~slimsvm.basis.selection.Selection` of up to ``n_new`` vectors. One-shot choices ignore the weights.
"""

from slimsvm.basis.given import Given
from slimsvm.basis.kmeans import KMeans
from slimsvm.basis.preimage import Pursuit, PursuitRows
from slimsvm.basis.random import Random
from slimsvm.basis.selection import Basis, Selection

__all__ = ["Basis", "Given", "KMeans", "Pursuit", "PursuitRows", "Random", "Selection"]
