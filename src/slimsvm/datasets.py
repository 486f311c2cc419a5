"""Data that is made on the spot: generators for examples, tests and benchmarks."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["checkers"]


def checkers(n: int, noise: float = 0.02, seed: int = 0) -> tuple[NDArray[np.float64], NDArray[Any]]:
    """Rows from the squares of a four by four checkerboard, whose edges overlap a little [1]_.

    A cell (i, j), both in {-2, -1, 0, 1}, is drawn first, then a point of [i, i + 1 + noise] x [j, j + 1 + noise]; its label is
    (-1)^(i + j). With the default noise no classifier can be right for more than about 97.1 % of the rows.

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
    .. [1] C.-N. J. Yu and T. Joachims, "Training Structural SVMs with Kernels Using Sampled Cuts", KDD 2008.

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
    if n < 1:
        raise ValueError(f"checkers needs at least one row, got n={n}.")
    if not 0 <= noise < np.inf:
        raise ValueError(f"noise must be zero or a positive number, got {noise}.")
    rng = np.random.default_rng(seed)
    cells = rng.integers(-2, 2, size=(n, 2))
    X = cells + (1.0 + noise) * rng.random((n, 2))
    y = 1 - 2 * (cells.sum(axis=1) % 2)
    return X, y
