"""Does rounding change what a model says? Asked at its own vectors, the only rows that it knows."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from slimsvm.export.description import Description
from slimsvm.export.numbers import Numbers
from slimsvm.multiclass import OneVsOne

Array = NDArray[Any]
MOST = 0.05  # of the answers that may differ, or of the spread of numbers
N_ASKED = 200  # vectors
WORK = 2e8  # products of features at most
BLOCK = 1 << 16  # numbers of vectors at a time


def warn_if_coarse(d: Description, numbers: Numbers) -> None:
    """Warn if codes of int8 make another model of it."""
    share = changed(d, numbers)
    if share <= MOST:
        return
    what = f"{100 * share:.0f} % of its own vectors get another answer"
    if d.answer != "class":
        what = f"at its own vectors the error is {100 * share:.0f} % of the spread of the values"
    warnings.warn(
        f"Codes of int8 are too coarse for this {d.name}: {what}. Use floating point, or fit "
        "SparseSVC or SparseSVR, whose vectors and coefficients bear rounding.",
        UserWarning,
        stacklevel=3,
    )


def changed(d: Description, numbers: Numbers) -> float:
    """The share of vectors with another answer; of numbers, the error by their spread."""
    if d.basis is None or d.n_vectors < 2:
        return 0.0
    size = d.basis.shape[0] * d.basis.shape[1]
    n_asked = int(np.clip(WORK // max(1, size), 20, N_ASKED))
    at = np.unique(np.linspace(0, d.n_vectors - 1, n_asked).astype(int))
    z = np.asarray(d.basis[at], np.float64)
    exact = _outputs(d, z, lambda part: (np.asarray(d.basis)[part], d.coef[part]))
    rounded = _outputs(d, z, lambda part: _unpacked(numbers.arrays, part))
    if d.answer != "class":
        spread = np.std(exact) if d.answer == "number" else np.abs(d.intercept).max()
        error = np.sqrt(np.mean((exact - rounded) ** 2))
        return float(error / spread) if spread > 0 else 0.0
    return float(np.mean(_classes(d, exact) != _classes(d, rounded)))


def _classes(d: Description, outputs: Array) -> Array:
    if outputs.shape[1] == 1:
        return np.asarray(outputs[:, 0] > 0)
    if d.pairwise:
        outputs = OneVsOne(d.n_classes).decision(outputs)
    return np.asarray(outputs.argmax(axis=1))


def _unpacked(a: dict[str, Array], part: slice) -> tuple[Array, Array]:
    vectors, coef = (a[k][part] * a[f"{k}_scale"][part, None] for k in ("basis", "coef"))
    return vectors + a["centre"] if "centre" in a else vectors, coef


def _outputs(d: Description, z: Array, some: Callable[[slice], tuple[Array, Array]]) -> Array:
    """The formulas of the description, some vectors at a time: nothing large is held whole."""
    step = max(1, BLOCK // d.n_mapped)
    groups = np.array([d.n_vectors]) if d.n_support is None else d.n_support
    sums = np.zeros((len(groups), len(z), d.coef.shape[1]))
    for c, (first, last) in enumerate(pairwise(np.concatenate([[0], np.cumsum(groups)]))):
        for start in range(first, last, step):
            part = slice(start, min(start + step, last))
            vectors, coef = some(part)
            sums[c] += _values(d, z, vectors, part) @ coef
    if d.n_support is None or d.n_classes == 2:
        return np.asarray(sums.sum(axis=0) + d.intercept)
    i, j = np.triu_indices(d.n_classes, 1)
    return np.asarray((sums[i, :, j - 1] + sums[j, :, i]).T + d.intercept)


def _values(d: Description, z: Array, vectors: Array, part: slice) -> Array:
    if d.form in ("rbf", "laplacian"):
        apart = cdist(z, vectors, "sqeuclidean" if d.form == "rbf" else "cityblock")
        return np.asarray(np.exp(-np.asarray(d.widths)[part] * apart))
    values = d.gamma * (z @ vectors.T) + d.coef0
    return np.asarray(np.tanh(values) if d.form == "sigmoid" else values**d.degree)
