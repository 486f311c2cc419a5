"""What svm-train adds to a fit: its last lines, and how likely regressions and one class are."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slimsvm.expansion import dense

Array = NDArray[Any]
N_MARKS = 10  # of the density of decision values, half of them on either side of zero
AT_BOUND = 1.0 - 1e-9  # of the largest coefficient that is allowed


def ending_of(estimator: Any, X: Any, y: Array) -> list[str]:
    """What svm-train prints of each of its problems, and the number of support vectors.

    ``y`` is what the estimator was fitted to: for classes, their places in its ``classes_``.
    """
    lines = []
    steps = np.atleast_1d(estimator.n_iter_)
    for k, (coef, limits, n_rows) in enumerate(_problems(estimator, y)):
        objective, sizes = _objective(estimator, k), np.abs(coef)
        lines.append(f"optimization finished, #iter = {int(steps[k])}")
        kind = type(estimator).__name__
        if kind == "NuSVC":  # sum |coef| = nu n C, which is one divided by LIBSVM's r
            C = float(sizes.sum()) / (estimator.nu * n_rows)
            limits, objective = np.full(sizes.size, C), objective * C * C
            lines.append(f"C = {C:.6f}")
        elif kind == "NuSVR":
            lines.append(f"epsilon = {_tube(estimator, X, y):.6f}")
        elif kind == "SVR" or (kind == "SVC" and limits.min() == limits.max()):
            lines.append(f"nu = {sizes.sum() / (estimator.C * _weight(estimator) * n_rows):.6f}")
        rho = -float(estimator.intercept_[k])
        n_vectors, n_bound = np.sum(sizes > 0), np.sum(sizes >= limits * AT_BOUND)
        lines.append(f"obj = {objective:.6f}, rho = {rho:.6f}")
        lines.append(f"nSV = {n_vectors}, nBSV = {n_bound}")
    if hasattr(estimator, "probability"):
        lines.append(f"Total nSV = {len(estimator.support_)}")
    return lines


def _weight(estimator: Any) -> float:
    """That of the classes of a problem whose classes have the same."""
    return float(estimator.class_weight_[0]) if hasattr(estimator, "class_weight_") else 1.0


def _problems(estimator: Any, y: Array) -> Iterator[tuple[Array, Array, int]]:
    """Coefficients, the largest that each may be, and the number of rows: of pairs, or of all."""
    coef = dense(estimator.dual_coef_)
    if not hasattr(estimator, "probability"):
        yield coef[0], np.full(coef.shape[1], getattr(estimator, "C", 1.0)), y.size
        return
    ends = np.concatenate([[0], np.cumsum(estimator.n_support_)])
    rows = np.bincount(y, minlength=ends.size - 1)
    C = getattr(estimator, "C", 1.0) * estimator.class_weight_
    for i, j in zip(*np.triu_indices(rows.size, 1), strict=True):
        own, other = slice(ends[i], ends[i + 1]), slice(ends[j], ends[j + 1])
        limits = np.repeat(C[[i, j]], estimator.n_support_[[i, j]])
        yield np.concatenate([coef[j - 1, own], coef[i, other]]), limits, int(rows[i] + rows[j])


def _objective(estimator: Any, k: int) -> float:
    """That of problem k; only where there are several is it in the history alone."""
    if np.size(estimator.n_iter_) == 1:
        return float(estimator.certificate_.objective)
    of = np.flatnonzero(np.asarray(estimator.history_["problem"]) == k)
    return float(estimator.history_["objective"][of[-1]]) if of.size else float("nan")


def _tube(estimator: Any, X: Any, y: Array) -> float:
    """Half the width of the tube of a NuSVR, on whose surface the vectors below the bound lie.

    If there are none it ends anywhere between the rows inside and those at the bound.
    """
    sizes, apart = np.zeros(y.size), np.abs(estimator.predict(X) - y)
    sizes[estimator.support_] = np.abs(dense(estimator.dual_coef_)[0])
    outside = sizes >= estimator.C * AT_BOUND
    inside = sizes == 0.0
    if not np.all(inside | outside):
        return float(np.mean(apart[~(inside | outside)]))
    ends = [apart[inside].max()] if inside.any() else []
    return float(np.mean([*ends, apart[outside].min()] if outside.any() else ends))


# -- probabilities without classes -----------------------------------------------------------------


def laplace_scale(found: Array, y: Array) -> float:
    """Mean distance of predictions for held-out rows; those beyond 5 deviations do not count."""
    distance = np.abs(y - found)
    inside = distance[distance <= 5.0 * np.sqrt(2.0) * distance.mean()]
    return float(inside.mean())


def of_laplace(scale: float, equals: str) -> list[str]:
    """The lines of LIBSVM about it; svm-train has a blank behind its sign, svm-predict none."""
    return [
        "Prob. model for test data: target value = predicted value + z,",
        f"z: Laplace distribution e^(-|z|/sigma)/(2sigma),sigma={equals}{scale:g}",
    ]


def density_marks(values: Array) -> Array | None:
    """Ten decision values of the training rows between which about equally many lie."""
    values, middle = np.sort(values), N_MARKS // 2
    n_negative = int(np.searchsorted(values, 0.0))
    n_positive = values.size - n_negative
    if min(n_negative, n_positive) < middle:
        print(
            f"WARNING: number of positive or negative decision values <{middle}; too few to do a "
            "probability estimation.",
            file=sys.stderr,
        )
        return None
    steps = np.arange(middle)
    below = values[steps * n_negative // middle]
    above = values[n_negative - 1 + (steps + 1) * n_positive // middle]
    edges = np.concatenate([below, [0.0], above])
    return (edges[:-1] + edges[1:]) / 2.0


def of_density(values: Array, marks: Array) -> Array:
    """How probable it is that a row is no outlier: the share of marks below its value."""
    share = np.searchsorted(marks, values, side="right") / marks.size
    return np.where(values < marks[0], 0.001, np.where(values > marks[-1], 0.999, share))
