"""Newton's steps for the squared hinge with an l1 penalty, where features are not too many.

Problem: that of :mod:`slimsvm.solvers.linear_l1`. Coordinate descent over the rows crawls where
features are nearly collinear or C is large.

Algorithm: a proximal Newton method. The loss is replaced by its quadratic expansion, with the
matrix H of the rows with an error, in all features at once:

    min over z of  g'(z - w) + 1/2 (z - w)'H(z - w) + sum_j penalty_j |z_j|

which is solved without the rows: sweeps of coordinate descent on H find out which weights are not
zero; then a step of Newton's in these goes where sweeps would crawl: weights whose signs would
change stop at zero, or, where that is no better, the step ends at the first zero (the feature-sign
search of Lee, Battle, Raina & Ng 2007). On the way from w to z the true objective
is followed; H changes with the rows that come and go.

Symbols: Z rows with the constant feature as columns, r = g + H (z - w) the slope of the expansion.
Cost of a step: (rows that came or went) d^2, and d^2 a sweep.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.linalg.lapack import dposv

from slimsvm.compiled import compiled

Array = NDArray[Any]
MOST_FEATURES = 1500  # H has 18 MB
SWEEPS = 20  # of coordinate descent between steps in all weights that are not zero
MOST_ROUNDS = 20
MOST_CUTS = 30  # steps that end at the first zero, in a row
MOST_HALVINGS = 30
SLOPE = 1e-4  # share of the expected fall that a step must bring
INNER = 0.05  # violation of the expansion's conditions at its end, of that at its beginning
RIDGE = 1e-13  # of H
TINY = float(np.finfo(float).tiny)


@compiled
def _sweeps(H: Array, penalty: Array, z: Array, r: Array, target: float, most: int) -> float:
    """Coordinate descent on the expansion, in place; returns the violation in the last sweep."""
    largest = 0.0
    for _ in range(most):
        largest = 0.0
        for j in range(z.size):
            h, old = H[j, j], z[j]
            if h <= 0.0:
                continue
            centre, width = h * old - r[j], penalty[j]
            new = 0.0
            if centre > width:
                new = (centre - width) / h
            elif centre < -width:
                new = (centre + width) / h
            change = new - old
            if change != 0.0:
                z[j] = new
                largest = max(largest, abs(change) * h)
                row = H[j]
                for k in range(r.size):
                    r[k] += change * row[k]
        if largest <= target:
            break
    return largest


def product(Z: Any, weight: Array) -> Array:
    """Z' diag(weight) Z, dense."""
    root = np.sqrt(weight)[:, None]
    if not sp.issparse(Z):
        part = Z * root
        return np.asarray(part.T @ part)
    part = sp.csr_array(Z.multiply(root))
    return np.asarray((part.T @ part).toarray())


def _violation(penalty: Array, z: Array, r: Array) -> float:
    """How far the conditions of the optimum are from holding."""
    away = np.where(z != 0.0, np.abs(r + penalty * np.sign(z)), np.abs(r) - penalty)
    return max(0.0, float(away.max()))


def _in_all(H: Array, penalty: Array, z: Array, r: Array) -> None:
    """Newton's steps in the weights that are not zero, each as far as the first zero, in place."""
    for _ in range(MOST_CUTS):
        chosen = np.flatnonzero((z != 0.0) | (penalty == 0.0))
        if not chosen.size:
            return
        own, block = penalty[chosen] > 0.0, H[np.ix_(chosen, chosen)]
        block[np.diag_indices(chosen.size)] += RIDGE * float(np.trace(block)) + TINY
        _, step, failed = dposv(block, -(r[chosen] + penalty[chosen] * np.sign(z[chosen])))
        if failed or not np.isfinite(step).all():
            return
        at = z[chosen]
        shrinks = np.flatnonzero(own & (step * at < 0.0) & (np.abs(step) >= np.abs(at)))
        new = at + step
        new[shrinks] = 0.0
        change = (new - at) @ H[chosen]
        if shrinks.size:
            # all that would change their signs stop at zero; if that is no better, the first does
            sizes = float(penalty[chosen] @ (np.abs(new) - np.abs(at)))
            if not float((r[chosen] + 0.5 * change[chosen]) @ (new - at)) + sizes < 0.0:
                share = -at[shrinks] / step[shrinks]
                t = float(share.min())
                new = at + t * step
                new[shrinks[share <= t]] = 0.0
                change = (new - at) @ H[chosen]
        r += change
        z[chosen] = new
        if not shrinks.size:
            return


def _least(H: Array, penalty: Array, w: Array, g: Array) -> Array:
    """z of the expansion at w, nearly."""
    z, r = w.copy(), g.copy()
    target = INNER * _violation(penalty, z, r)
    for _ in range(MOST_ROUNDS):
        _sweeps(H, penalty, z, r, target, SWEEPS)
        _in_all(H, penalty, z, r)
        if _violation(penalty, z, r) <= target:
            break
    return z


class Expansion:
    """The rows with the features of a problem, and H of those rows that have an error."""

    def __init__(self, columns: Any, free: bool, y: Array, weight: Array) -> None:
        if free:
            columns = sp.hstack([columns, np.ones((columns.shape[0], 1))], format="csc")
        full = 2 * columns.nnz > columns.shape[0] * columns.shape[1]
        self.Z = columns.toarray() if full else sp.csr_array(columns)
        self.y, self.weight = y, weight
        self.H = np.zeros((columns.shape[1], columns.shape[1]))
        self.seen = np.zeros(y.size, bool)

    def update(self, error: Array) -> None:
        """H for other rows with an error."""
        for rows, sign in ((error & ~self.seen, 1.0), (self.seen & ~error, -1.0)):
            at = np.flatnonzero(rows)
            if at.size:
                self.H += sign * product(self.Z[at], 2.0 * self.weight[at])
        if int((error != self.seen).sum()) > 0 and not error.any():
            self.H[:] = 0.0  # nothing but rounding
        self.seen = error.copy()

    def step(self, penalty: Array, w: Array, e: Array) -> tuple[Array, Array] | None:
        """Weights and e = 1 - y f after one step; None: no better point was found."""
        error = np.maximum(e, 0.0)
        self.update(e > 0.0)
        g = -2.0 * np.asarray(self.Z.T @ (self.weight * self.y * error)).ravel()
        now = float(penalty @ np.abs(w) + self.weight @ error**2)
        change = _least(self.H, penalty, w, g) - w
        along = self.y * np.asarray(self.Z @ change).ravel()
        expected = float(g @ change + penalty @ (np.abs(w + change) - np.abs(w)))
        if not expected < 0.0:
            return None
        t = 1.0
        for _ in range(MOST_HALVINGS):
            new = w + t * change
            value = float(penalty @ np.abs(new) + self.weight @ np.maximum(e - t * along, 0.0) ** 2)
            if value <= now + SLOPE * t * expected:
                return new, e - t * along
            t /= 2.0
        return None
