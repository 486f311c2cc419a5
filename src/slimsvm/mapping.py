"""Vectors with widths of their own, in a metric that was learned: their kernel values and norm.

    k_j(x) = exp(-width_j |M'x - b_j|^2)   or   (x . b_j + coef0)^degree

A block of values is one matrix product and one loop: [x, |x|^2, 1] A are the exponents (or what is
raised to a power), with one column of A for each vector.

The norm. Vectors with widths of their own are not values of one kernel; |f|^2 = coef' K_BB coef
with

    K_BB[i, j] = (sqrt(g_i g_j) / ((g_i + g_j) / 2))^(q/2)
                 exp(-2 g_i g_j / (g_i + g_j) |b_i - b_j|^2),

g the widths, q coordinates: the inner products of the functions exp(-2 g_j |x - b_j|^2) of norm one
(Gibbs 1997), which is the kernel's own matrix where all widths are equal.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from slimsvm.forms import EXPONENTIAL, exp_rows

Array = NDArray[Any]
Form = tuple[int, float, float, int]  # of a kernel; see slimsvm.forms


def unmapped(vectors: Array, metric: Array | None) -> Array:
    """The shortest rows that a metric takes to these vectors, as near as it can.

    Examples
    --------
    >>> import numpy as np
    >>> from slimsvm.mapping import unmapped
    >>> unmapped(np.array([[2.0, 0.0]]), np.array([4.0, 0.0]))
    array([[0.5, 0. ]])
    """
    if metric is None:
        return vectors
    if metric.ndim == 2:
        return np.asarray(vectors @ np.linalg.pinv(metric, rcond=1e-6))
    size = np.abs(metric)
    seen = size > 1e-6 * size.max(initial=0.0)  # a feature that does not count may be anything
    return np.asarray(np.where(seen, vectors / np.where(seen, metric, 1.0), 0.0))


def mapped(X: Any, metric: Array | None, dtype: Any) -> Array:
    """Rows in a metric: None, factors of the features, or a matrix with a column a coordinate."""
    if metric is None:
        return np.asarray(X.toarray() if sp.issparse(X) else X, dtype)
    if metric.ndim == 1:
        return np.asarray(X.multiply(metric).toarray() if sp.issparse(X) else X * metric, dtype)
    # in the type of the rows: features far from zero lose their digits in float32
    return np.asarray(X @ metric.astype(X.dtype, copy=False), dtype)


def exponents(form: Form, B: Array, widths: Array) -> Array:
    """The matrix A of the module's text, float64."""
    k, q = B.shape
    A = np.zeros((q + 2, k))
    if form[0] == EXPONENTIAL:
        A[:q] = 2.0 * (widths[:, None] * B).T
        A[q], A[q + 1] = -widths, -widths * np.einsum("ij,ij->i", B, B)
    else:
        A[:q], A[q + 1] = form[1] * B.T, form[2]
    return A


def kernel_values(form: Form, A: Array, z: Array) -> Array:
    """k_j of rows that are in the metric already, (rows, vectors)."""
    v = np.empty((z.shape[0], z.shape[1] + 2), A.dtype)
    v[:, :-2] = z
    np.einsum("ij,ij->i", z, z, out=v[:, -2])
    v[:, -1] = 1.0
    K = v @ A
    if form[0] == EXPONENTIAL:
        zero = np.zeros(max(K.shape), A.dtype)
        exp_rows(K, 1.0, 0.0, zero[: K.shape[0]], zero[: K.shape[1]])
    else:
        np.power(K, form[3], out=K)
    return np.asarray(K)


def norm_matrix(form: Form, B: Array, widths: Array) -> Array:
    """K_BB of the module's text.

    Examples
    --------
    >>> B = np.array([[0.0], [1.0]])
    >>> norm_matrix((EXPONENTIAL, 1.0, 0.0, 1), B, np.ones(2)).round(4)
    array([[1.    , 0.3679],
           [0.3679, 1.    ]])
    """
    dots = B @ B.T
    if form[0] != EXPONENTIAL:
        return np.asarray((form[1] * dots + form[2]) ** form[3])
    sq = np.diag(dots)
    distance = np.maximum(sq[:, None] + sq - 2.0 * dots, 0.0)
    np.fill_diagonal(distance, 0.0)
    mean = 0.5 * (widths[:, None] + widths)
    both = np.sqrt(widths[:, None] * widths)
    overlap = 0.5 * B.shape[1] * np.log(both / mean)
    return np.asarray(np.exp(overlap - both**2 / mean * distance))
