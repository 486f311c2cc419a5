"""Which points carry weight: ways to choose the basis vectors.

Each is a small immutable object with one method, ``select(columns, row_weights, basis_weights,
n_new, rng, candidates, here)``, that returns a :class:`~slimsvm.basis.selection.Selection` of up to
``n_new`` vectors. One-shot choices ignore the weights. A class says itself what it needs; its name
for users is in REGISTRY, from which estimators, documentation and command line have it.
"""

from __future__ import annotations

from copy import copy
from dataclasses import is_dataclass, replace
from typing import Any

from slimsvm.basis.cholesky import Cholesky
from slimsvm.basis.given import Given
from slimsvm.basis.greedy import Greedy
from slimsvm.basis.kmeans import KMeans
from slimsvm.basis.margin import Margin
from slimsvm.basis.preimage import FixedPoint, Pursuit, PursuitRows
from slimsvm.basis.random import Random
from slimsvm.basis.selection import Basis, Here, Selection
from slimsvm.basis.unsupervised import Unsupervised

ALL = "all"  # no choice: all rows that carry weight (slimsvm.solvers.kernel_newton)
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
    "ALL",
    "REGISTRY",
    "Basis",
    "Cholesky",
    "FixedPoint",
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
    "choice_of",
    "choices",
    "is_choice",
]


def choices(labels: bool) -> tuple[set[str], list[str]]:
    """Names of all choices, and a sentence about each; some make no sense without ``labels``.

    Examples
    --------
    >>> from slimsvm.basis import choices
    >>> sorted(choices(labels=True)[0] - choices(labels=False)[0])
    ['margin']
    """
    found = {name: kind for name, kind in REGISTRY.items() if labels or not kind.needs_labels}
    words = [
        f"{name!r} {kind.in_words}{', for a loss with a curvature' * kind.needs_curvature};"
        for name, kind in found.items()
    ]
    words.append(
        f"{ALL!r} finds the exact solution over all rows by Newton's method, for a loss with a "
        "curvature; n_basis is ignored, and the basis is the rows that carry weight."
    )
    return {*found, ALL}, words


def is_choice(basis: Any) -> bool:
    """Whether it is a way to choose vectors, by name or as an object; else an array of vectors."""
    return isinstance(basis, str | Basis)


def choice_of(basis: Any, weight: Any = None) -> Basis:
    """The choice that a name stands for, a copy of one, or an array of vectors.

    ``weight`` of the rows.

    Examples
    --------
    >>> from slimsvm.basis import choice_of
    >>> choice_of("random"), choice_of("greedy").needs_curvature
    (Random(), True)
    """
    made: Basis
    if isinstance(basis, Basis):  # a copy: what one learns in a fit is no part of the next
        chosen: Any = replace(basis) if is_dataclass(basis) else copy(basis)
        weigh = chosen.takes_weights and chosen.sample_weight is None
        made = replace(chosen, sample_weight=weight) if weigh else chosen
        return made
    if not isinstance(basis, str):
        return Given(basis)
    kind = REGISTRY[basis]
    made = kind(sample_weight=weight) if kind.takes_weights else kind()
    return made
