"""A primal-dual interior-point solver for small quadratic problems with bounds.

Problem: min over x of  1/2 x'Hx + c'x   subject to   0 <= x <= upper,   and perhaps   z'x = total.

Algorithm: Vanderbei (1999), "LOQO: an interior point code for quadratic programming"
(vanderbei1999loqo), in the form of the solver by A. Smola that SVM-light uses for its working sets:
slacks g = x and t = upper - x with multipliers p and s; in every iteration a predictor (mu = 0) and
a corrector, both with the one factor of H + diag(p/g + s/t); steps go 95 % of the way to the
nearest bound.

What differs: variables and values are scaled first, so that C and the size of the kernel do not
matter; a variable may be without an upper bound; and at the end values within rounding errors of a
bound are put on it, and what the equality then misses goes to the variable with most room between
its bounds.

Symbols: y the multiplier of the equality; rho, nu, tau, sigma what is missing of the four linear
conditions; mu the complementarity that is aimed at. Cost of an iteration: n^3/3; with H = G G' and
G of d columns (:class:`Factored`) n d^2, by the Sherman-Morrison-Woodbury formula.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve

Array = NDArray[Any]
MARGIN = 0.95  # of the way to the nearest bound
CLOSE = 1e-12  # relative gap, and what is missing of the conditions, at the end
LEAST = 1e-3  # value of the scaled problem to which its gap is compared, at least
MOST = 100  # iterations
# distance from a bound, in units of the scaled problem, that counts as none; and that does where it
# is less than this share of the bound's multiplier
ON_BOUND, NEARLY, HELD = 1e-9, 1e-6, 1e-3


class Whole:
    """H as a matrix."""

    def __init__(self, H: Array) -> None:
        self.H, self.diagonal = H, np.diag(H)

    def times(self, x: Array) -> Array:
        """H x."""
        return np.asarray(self.H @ x)

    def scaled(self, factor: float) -> Whole:
        """The same times a number."""
        return Whole(self.H * factor)

    def with_diagonal(self, diagonal: Array) -> Callable[[Array], Array]:
        """Solves with H + diag; where rounding makes that singular, with more on the diagonal."""
        more = 0.0
        while True:
            matrix = self.H.copy()
            matrix[np.diag_indices(matrix.shape[0])] += diagonal + more
            try:
                factor = cho_factor(matrix, lower=True, overwrite_a=True, check_finite=False)
            except LinAlgError:
                more = max(10.0 * more, 1e-14 * float(np.max(self.diagonal + diagonal)))
                continue
            return lambda right: np.asarray(cho_solve(factor, right, check_finite=False))


class Factored:
    """H = G G', where G has few columns.

    Examples
    --------
    >>> G = np.array([[1.0], [2.0]])
    >>> solved = Factored(G).with_diagonal(np.ones(2))(np.array([1.0, 0.0]))
    >>> np.allclose((G @ G.T + np.eye(2)) @ solved, [1.0, 0.0])
    True
    """

    def __init__(self, G: Array) -> None:
        self.G, self.diagonal = G, np.einsum("ij,ij->i", G, G)

    def times(self, x: Array) -> Array:
        """H x."""
        return np.asarray(self.G @ (x @ self.G))

    def scaled(self, factor: float) -> Factored:
        """The same times a number."""
        return Factored(self.G * np.sqrt(factor))

    def with_diagonal(self, diagonal: Array) -> Callable[[Array], Array]:
        """Solves with H + diag."""
        over = self.G / diagonal[:, None]
        inner = Whole(self.G.T @ over).with_diagonal(np.ones(self.G.shape[1]))

        def solve(right: Array) -> Array:
            return np.asarray(right / diagonal - over @ inner(right @ over))

        return solve


class InteriorPoint:
    """One problem on its way to the solution; ``iterate`` until ``done``, then ``solution``.

    Parameters
    ----------
    H : array of shape (n, n), or Factored
        Symmetric, positive semidefinite.
    c : array of shape (n,)
        Linear part.
    upper : array of shape (n,)
        Upper bounds, not negative; infinity: none.
    z : array of shape (n,), optional
        Of the equality; without it there is none.
    total : float
        What z'x must be.

    Examples
    --------
    >>> problem = InteriorPoint(
    ...     np.eye(2), np.array([-1.0, -3.0]), np.full(2, 2.0), np.array([1.0, -1.0])
    ... )
    >>> while not problem.done:
    ...     problem.iterate()
    >>> problem.solution().round(4).tolist()
    [2.0, 2.0]
    """

    def __init__(
        self,
        H: Array | Factored,
        c: Array,
        upper: Array,
        z: Array | None = None,
        total: float = 0.0,
    ) -> None:
        n, given = c.size, H if isinstance(H, Factored) else Whole(H)
        self.upper_given, self.n_iter, self.done = np.asarray(upper, np.float64), 0, False
        # 1. the problem, scaled
        largest = float(np.max(given.diagonal, initial=0.0))
        typical = float(np.max(np.abs(c), initial=0.0)) / largest if largest > 0.0 else 1.0
        finite = self.upper_given[np.isfinite(self.upper_given)]
        self.unit = min(float(finite.max(initial=0.0)) or typical, typical) or 1.0
        value = max(float(np.max(np.abs(c), initial=0.0)), self.unit * largest) or 1.0
        self.H, self.c = given.scaled(self.unit / value), c / value
        self.upper = self.upper_given / self.unit
        self.z = np.zeros(n) if z is None else np.asarray(z, np.float64)
        self.equality, self.total = z is not None, total / self.unit
        self.bounded = np.isfinite(self.upper)
        # 2. where it begins: the problem without bounds, with H + I
        self._factor(np.ones(n))
        self.x, self.y = self._solve(-self.c, self.total)
        slope = self.H.times(self.x) + self.c - self.z * self.y
        self.g = np.maximum(np.abs(self.x), 1e-2)
        self.t = np.where(self.bounded, np.maximum(np.abs(self.upper - self.x), 1e-2), 1.0)
        self.p = np.maximum(np.abs(slope), 1e-2)
        self.s = np.where(self.bounded, self.p, 0.0)
        self._look()

    def _factor(self, diagonal: Array) -> None:
        """H with more on its diagonal."""
        self.factor = self.H.with_diagonal(diagonal)
        self.along = self.factor(self.z)
        self.stiff = float(self.z @ self.along)

    def _solve(self, right: Array, rest: float) -> tuple[Array, float]:
        """x and y of  (H + D) x - z y = right,   z'x = rest."""
        x = self.factor(right)
        if not self.equality or not self.stiff > 0.0:
            return x, 0.0
        y = (rest - float(self.z @ x)) / self.stiff
        return x + y * self.along, y

    def _look(self) -> None:
        """What is missing of the conditions, the gap, and whether that is the end."""
        Hx = self.H.times(self.x)
        self.rho = self.total - float(self.z @ self.x) if self.equality else 0.0
        self.nu = self.x - self.g
        self.tau = np.where(self.bounded, self.upper - self.x - self.t, 0.0)
        self.sigma = Hx + self.c - self.z * self.y - self.p + self.s
        curve = float(self.x @ Hx)
        primal = 0.5 * curve + float(self.c @ self.x)
        held = float(self.upper[self.bounded] @ self.s[self.bounded])
        dual = self.total * self.y - 0.5 * curve - held
        missing = max(
            abs(self.rho),
            *(float(np.max(np.abs(v), initial=0.0)) for v in (self.nu, self.tau, self.sigma)),
        )
        large = 1.0 + float(np.max(np.abs(self.x), initial=0.0))
        near = abs(primal - dual) <= CLOSE * (abs(primal) + LEAST)
        near = near and missing <= CLOSE * large
        self.done = near or self.n_iter >= MOST or not np.isfinite(missing)

    def iterate(self) -> None:
        """A predictor and a corrector."""
        if self.done:
            return
        self._factor(self.p / self.g + self.s / self.t)
        _, _, dg, dt, dp, ds = self._direction(0.0, 0.0, 0.0)
        length = self._longest(dg, dt, dp, ds)
        n_pairs = self.x.size + int(np.count_nonzero(self.bounded))
        mu = (float(self.p @ self.g) + float(self.s @ self.t)) / max(1, n_pairs)
        mu *= ((length - 1.0) / (length + 10.0)) ** 2
        dx, dy, dg, dt, dp, ds = self._direction(mu, dg * dp, dt * ds)
        length = self._longest(dg, dt, dp, ds)
        self.x, self.y = self.x + length * dx, self.y + length * dy
        self.g, self.p = self.g + length * dg, self.p + length * dp
        self.t, self.s = self.t + length * dt, self.s + length * ds
        self.n_iter += 1
        self._look()

    def _direction(
        self, mu: float, left_g: Any, left_t: Any
    ) -> tuple[Array, float, Array, Array, Array, Array]:
        """Newton's direction to g p = mu and t s = mu, less what the predictor leaves of them."""
        g, t, p, s = self.g, self.t, self.p, self.s
        for_g = mu - g * p - left_g
        for_t = np.where(self.bounded, mu - t * s - left_t, 0.0)
        right = -self.sigma + (for_g - p * self.nu) / g - (for_t - s * self.tau) / t
        dx, dy = self._solve(right, self.rho)
        dg, dt = dx + self.nu, np.where(self.bounded, self.tau - dx, 0.0)
        return dx, dy, dg, dt, (for_g - p * dg) / g, (for_t - s * dt) / t

    def _longest(self, dg: Array, dt: Array, dp: Array, ds: Array) -> float:
        """How far along the direction all of g, t, p and s stay positive, one at most."""
        some = self.bounded
        steepest = max(
            1.0,
            float(np.max(-dg / self.g, initial=0.0)),
            float(np.max(-dp / self.p, initial=0.0)),
            float(np.max(-dt[some] / self.t[some], initial=0.0)),
            float(np.max(-ds[some] / self.s[some], initial=0.0)),
        )
        return MARGIN / steepest

    def solution(self) -> Array:
        """x, on its bounds where it is next to them, with the equality kept."""
        x = np.clip(self.x, 0.0, self.upper)
        room = self.upper - x
        held = np.where(self.bounded, self.s, 0.0)
        low = (x <= ON_BOUND) | ((x < NEARLY) & (x < HELD * self.p))
        high = (room <= ON_BOUND) | ((room < NEARLY) & (room < HELD * held))
        x = np.where(low, 0.0, np.where(high, self.upper, x))
        exact = np.where(high & ~low, self.upper_given, self.unit * x)
        free = np.flatnonzero(~low & ~high)
        if self.equality and free.size:
            rest = self.unit * self.total - float(self.z @ exact)
            room = np.minimum(x, room)[free]
            k = free[np.argmax(room)]
            if abs(rest) < self.unit * float(room.max()):
                exact[k] += self.z[k] * rest
        return exact


def minimised(
    H: Array | Factored, c: Array, upper: Array, z: Array | None = None, total: float = 0.0
) -> Array:
    """The solution of one problem; arguments of :class:`InteriorPoint`.

    Examples
    --------
    >>> minimised(np.eye(2), np.array([-1.0, 2.0]), np.full(2, np.inf)).round(9).tolist()
    [1.0, 0.0]
    """
    problem = InteriorPoint(H, c, upper, z, total)
    while not problem.done:
        problem.iterate()
    return problem.solution()
