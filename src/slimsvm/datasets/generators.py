"""Data that is made on the spot: generators for examples, tests and benchmarks."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["banana", "checkers", "waveform"]
LARGEST_NOISE = 1e100  # squares of the rows are still numbers


def checkers(
    n: int, noise: float = 0.02, seed: int = 0
) -> tuple[NDArray[np.float64], NDArray[Any]]:
    """Rows from the squares of a four by four checkerboard, whose edges overlap a little [1]_.

    A cell (i, j), both in {-2, -1, 0, 1}, is drawn first, then a point of [i, i + 1 + noise] x [j,
    j + 1 + noise]; its label is (-1)^(i + j). With the default noise no classifier can be right for
    more than about 97.1 % of the rows.

    Parameters
    ----------
    n : int
        Number of rows.
    noise : float
        By how much each cell reaches into the next one to the right and above.
    seed : int
        The same seed gives the same rows.

    Returns
    -------
    X : ndarray of shape (n, 2), float64
        The points.
    y : ndarray of shape (n,), int64
        The labels, -1 or +1.

    References
    ----------
    .. [1] C.-N. J. Yu and T. Joachims, "Training Structural SVMs with Kernels Using Sampled Cuts",
       KDD 2008.

    Examples
    --------
    >>> import numpy as np
    >>> from slimsvm.datasets import checkers
    >>> X, y = checkers(1000, noise=0.0)
    >>> X.shape, y.shape, sorted(set(y.tolist()))
    ((1000, 2), (1000,), [-1, 1])
    >>> bool(((-1.0) ** np.floor(X).sum(axis=1) == y).all())
    True
    """
    _check(n, noise, seed)
    rng = np.random.default_rng(seed)
    cells = rng.integers(-2, 2, size=(n, 2))
    X = cells + (1.0 + noise) * rng.random((n, 2))
    y = 1 - 2 * (cells.sum(axis=1) % 2)
    return X, y


def banana(n: int, noise: float = 0.2, seed: int = 0) -> tuple[NDArray[np.float64], NDArray[Any]]:
    """Two bent clouds that hold each other, like a pair of bananas [1]_.

    Both are five eighths of a circle of radius 1, blurred by a normal distribution: +1 around the
    origin, open to the upper left; -1 around (-0.75, -0.75), open to the lower right. Without noise
    they do not touch. The benchmark of the same name, ``load("banana")``, is of the same kind but
    not drawn from this distribution.

    Parameters
    ----------
    n, seed : int
        As in :func:`checkers`.
    noise : float
        Standard deviation of the blur, in both directions.

    Returns
    -------
    X, y : ndarray
        As in :func:`checkers`; both labels have the same probability.

    References
    ----------
    .. [1] R. P. W. Duin et al., "PRTools: a Matlab toolbox for pattern recognition", routine
       gendatb.

    Examples
    --------
    >>> import numpy as np
    >>> from slimsvm.datasets import banana
    >>> X, y = banana(1000, noise=0.0)
    >>> X.shape, sorted(set(y.tolist()))
    ((1000, 2), [-1, 1])
    >>> bool(np.allclose(np.linalg.norm(X[y == 1], axis=1), 1))
    True
    """
    _check(n, noise, seed)
    rng = np.random.default_rng(seed)
    y = 1 - 2 * rng.integers(0, 2, size=n)
    # The angle runs clockwise from the vertical axis; the second arc is the first one turned by
    # half a circle.
    angle = np.pi * (0.125 + 1.25 * rng.random(n))
    X = y[:, None] * np.column_stack([np.sin(angle), np.cos(angle)])
    X[y == -1] -= 0.75
    X += noise * rng.standard_normal((n, 2))
    return X, y


def waveform(n: int, noise: float = 1.0, seed: int = 0) -> tuple[NDArray[np.float64], NDArray[Any]]:
    """Noisy mixtures of two out of three triangular waves, seen at 21 places [1]_.

    The waves have height 6 and half-width 6, and their peaks at the places 7, 11 and 15 (counted
    from 1). A row is u times one wave plus 1 - u times another, u uniform in [0, 1], plus normal
    noise; the three pairs of waves are equally likely. Breiman et al. tell the three pairs apart;
    here, as in the usual benchmark for two classes, -1 is the pair (7, 11) and +1 is any other. The
    columns of ``load("waveform")`` have mean 0 and variance 1 besides.

    Parameters
    ----------
    n, seed : int
        As in :func:`checkers`.
    noise : float
        Standard deviation of the noise.

    Returns
    -------
    X : ndarray of shape (n, 21), float64
        The waves.
    y : ndarray of shape (n,), int64
        The labels: -1 for one row in three, else +1.

    References
    ----------
    .. [1] L. Breiman, J. Friedman, R. Olshen and C. Stone, "Classification and Regression Trees",
       1984.

    Examples
    --------
    >>> from slimsvm.datasets import waveform
    >>> X, y = waveform(3000)
    >>> X.shape, round(float((y == -1).mean()), 1)
    ((3000, 21), 0.3)
    """
    _check(n, noise, seed)
    rng = np.random.default_rng(seed)
    place = np.arange(1, 22)
    waves = np.maximum(6.0 - np.abs(place - np.array([[7], [11], [15]])), 0.0)
    first, second = np.array([[0, 1], [1, 2], [0, 2]])[rng.integers(0, 3, size=n)].T
    u = rng.random((n, 1))
    X = u * waves[first] + (1.0 - u) * waves[second] + noise * rng.standard_normal((n, 21))
    y = np.where(second == 1, -1, 1)
    return X, y


def _check(n: int, noise: float, seed: int) -> None:
    """Refuse sizes, noises and seeds that mean nothing."""
    if not isinstance(n, Integral) or isinstance(n, bool) or n < 1:
        raise ValueError(f"A data set needs a whole number of rows, at least one; got n={n!r}.")
    if not isinstance(noise, Real) or not 0 <= noise <= LARGEST_NOISE:
        raise ValueError(f"noise must be a number from 0 to {LARGEST_NOISE:g}, got {noise!r}.")
    if not isinstance(seed, Integral) or seed < 0:
        raise ValueError(f"seed must be a whole number, zero or more, got {seed!r}.")
