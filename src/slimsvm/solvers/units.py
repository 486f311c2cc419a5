"""Whether features count in units of their own: a look before a descent begins.

A kernel of one width for all features hears only those with large numbers, and a gamma that comes
from them makes the others silent. Where features are that unlike, or the kernel is nearly constant
or nearly zero, two quick fits (:func:`slimsvm.solvers.first_vectors.first_vectors`), on features as
they are and on features of deviation one, are judged by rows that neither has seen.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slimsvm.problems.mapped import Mapped, MappedSpan
from slimsvm.solvers.first_vectors import first_vectors

Array = NDArray[Any]
UNLIKE = 8.0  # the largest deviation is so many times the one in the middle
LEAST, LARGEST = 1e-2, 1e3  # mean square of rows in inner coordinates: the kernel tells them apart
FITTED, JUDGED = 2000, 1000  # rows, at most
VECTORS = 100
BETTER = 0.02  # of R^2


def in_own_units(problem: Mapped, X: Any, measure: Any, n_vectors: int, seed: int) -> Mapped:
    """The problem on rows X, with features of deviation one if unseen rows clearly like that.

    Features that do not vary count for nothing then.
    """
    rng = np.random.default_rng(seed)
    every = problem.X[rng.permutation(problem.n)[: FITTED + JUDGED]].astype(np.float64)
    spread = every.std(axis=0)
    varies = spread > 0.0
    if not varies.any() or np.ndim(problem.coordinates.turn) != 0:
        return problem
    mean_square = float(np.square(spread).sum())
    alike = spread.max() <= UNLIKE * float(np.median(spread[varies]))
    if alike and LEAST <= mean_square <= LARGEST:
        return problem
    own = np.where(varies, 1.0 / np.where(varies, spread, 1.0), 0.0) / np.sqrt(varies.sum())
    at = problem.coordinates.then(own)
    scaled = replace(problem, X=at.of(X, problem.X.dtype.type), coordinates=at)
    if not np.isfinite(scaled.X).all():
        return problem
    order = rng.permutation(problem.n)
    n_judged = min(JUDGED, problem.n // 3)
    judged, fitted = order[:n_judged], np.sort(order[n_judged : n_judged + FITTED])
    k, scores = min(n_vectors, VECTORS, fitted.size // 4), []
    for one in (problem, scaled):
        part, rest = one.some(fitted), one.some(judged)
        v = first_vectors(part, max(1, k), np.random.default_rng(seed))
        found = MappedSpan(rest, v).scores(v.coef) + v.intercept
        scores.append(float(measure(found, rest.Y, rest.weight)))
    gained = scores[1] - scores[0]
    enough = BETTER
    if problem.takes_labels:  # two deviations of the difference
        enough = 2.0 * np.sqrt(max(2.0 - sum(scores), 0.0) / max(1, n_judged))
    return scaled if gained > enough else problem
