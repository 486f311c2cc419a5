"""Platt's sigmoids for many small pairs of classes: a strip of them in one compiled call.

Problem and algorithm: those of :mod:`slimsvm.solvers.out_of_fold`, for the strips of
:mod:`slimsvm.solvers.pair_strips`, whose kernel values are still there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slimsvm.compiled import compiled
from slimsvm.probability import N_FOLDS, places, platt
from slimsvm.solvers.out_of_fold import STEPS_A_ROW, fold_tol, held_out
from slimsvm.solvers.pair_strips import matrix_of_pair, room_for_pairs

Array = NDArray[Any]


@compiled
def _sigmoids(
    first: int, S: Array, own: Array, own_at: Array, ends: Array, upper: Array, coef: Array,
    place: Array, weight: Array, tol: float, most: int, A: Array, B: Array,
) -> None:  # fmt: skip
    """Platt's sigmoids of a strip that is solved: each pair again without one fold after another.

    ``place`` of each row in its class says in which fold it is.
    """
    n_classes, a0, a1 = ends.size - 1, ends[first], ends[first + 1]
    n_first, room = a1 - a0, room_for_pairs(first, ends, S)
    k = first * n_classes - first * (first + 1) // 2
    for j in range(first + 1, n_classes):
        K = matrix_of_pair(first, j, S, own, own_at, ends, room)
        n = n_first + ends[j + 1] - ends[j]
        sign, bound, a, s, diag = np.empty(n), np.empty(n), np.empty(n), np.zeros(n), np.empty(n)
        fold, of_first, each, score = (
            np.empty(n, np.int64),
            np.empty(n, np.bool_),
            s.copy(),
            s.copy(),
        )
        for r in range(n):
            row = a0 + r if r < n_first else ends[j] + r - n_first
            of_first[r], diag[r] = r < n_first, K[r, r]
            sign[r] = 1.0 if r < n_first else -1.0
            bound[r], each[r] = upper[row], weight[row]
            a[r] = abs(coef[j - 1 if r < n_first else first, row])
            fold[r] = (place[row] + (0 if r < n_first else n_first)) % N_FOLDS
            if a[r] > 0.0:
                line = K[r]
                for v in range(n):
                    s[v] += sign[r] * a[r] * line[v]
        held_out(K, diag, sign, bound, a, s, fold, tol, most, score)
        A[k], B[k] = platt(score, of_first, each)
        k += 1


def sigmoids_of_strips(sizes: Array, weight: Array, A: Array, B: Array) -> Callable[..., None]:
    """What fills A and B of all pairs, strip by strip; ``weight`` of the rows, sorted by class."""
    place = np.concatenate([places(int(size)) for size in sizes])

    def fill(
        first: int, S: Array, own: Array, own_at: Array, ends: Array, upper: Array, coef: Array,
        tol: float, steps: int,
    ) -> None:  # fmt: skip
        n = place.size
        most = STEPS_A_ROW * n if steps < 0 else steps
        goal = fold_tol(tol, n)
        _sigmoids(first, S, own, own_at, ends, upper, coef, place, weight, goal, most, A, B)

    return fill
