"""ReducedSVC on rows that are elsewhere."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from slimsvm.basis.selection import drawn
from slimsvm.far.coding import EveryRow, PairCoded
from slimsvm.frames import Frame
from slimsvm.multiclass import OneVsOne
from slimsvm.problems.reduced import SignedFeatures
from slimsvm.problems.subspace import weights
from slimsvm.row_hashes import distinct
from slimsvm.rows import joined
from slimsvm.run import Result
from slimsvm.solvers.reduced_ways import FEWEST, AskedOfPair
from slimsvm.training import Data, Fit

Array = NDArray[Any]
MOST = 20_000  # basis vectors: Newton's matrix has 3 gigabytes


def solved_on_rows(model: Any, data: Data, fit: Fit) -> tuple[list[Result], list[Array], Any]:
    """Step 4 for rows that are not in memory: rows of other classes have weight zero."""
    rows, way = data.about["rows"], model._way
    rng = np.random.default_rng(check_random_state(model.random_state).randint(2**31 - 1))
    by_norm = model._by_norm
    frame = Frame.of(data.kernel, rows, np.float64 if by_norm else None)
    results, bases = [], []
    for part in OneVsOne(data.classes.size).parts(np.empty(0, int)):
        pair = (part.positive, part.negative)
        own = rows.relabelled(PairCoded(data.classes, data.factors, float(model.C), *pair))
        weight = joined(own.map(weights))
        published = not isinstance(model.solver, str)
        basis = basis_on_rows(model.n_basis, own, weight, rng, published)
        about = {"many": way.many, "function_norm": by_norm}
        V = SignedFeatures(own, frame, basis, model.max_memory, **about)
        asked: dict[str, Any] = {"tol": float(model.tol), "max_iter": int(model.max_iter)}
        asked |= {"beta": model.beta, "C": float(model.C), "seed": int(rng.integers(2**31 - 1))}
        left: dict[str, Any] = {"limits": fit.limits, "watchers": fit.watchers}
        results.append(way.solved(V, weight, AskedOfPair(**asked, **left)))
        bases.append(basis)
    every: Any = EveryRow(rows.n)
    return results, bases, every


def basis_on_rows(
    n_basis: Any, rows: Any, weight: Array, rng: np.random.Generator, published: bool = False
) -> Array:
    """Distinct rows of the pair, by their numbers; as published any, and no least number."""
    used = np.flatnonzero(weight > 0)
    size = n_basis
    if not isinstance(size, Integral):
        size = max(1 if published else FEWEST, round(float(size) * used.size))
    if int(size) > min(MOST, used.size):
        raise ValueError(
            f"n_basis={n_basis} of {used.size:,} rows is more than the {MOST:,} vectors "
            "that rows out of memory allow; pass their number, such as n_basis=500."
        )
    if published:
        return np.sort(drawn(used, int(size), rng))
    some = np.sort(drawn(used, min(used.size, 4 * int(size)), rng))
    some = some[distinct(rows.take(some).X)]
    return np.sort(drawn(some, min(int(size), some.size), rng))
