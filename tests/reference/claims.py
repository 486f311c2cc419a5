"""A claim of a certificate beside the truth, and what all kinds of problems need to make one."""

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from tests.reference import optimum

RESOLVED = 1e-8  # of a reference interval, as a share of what is measured: wider ones say nothing
SLACK = 1e-12  # of the numbers that are added up: rounding errors of the sums here
CANCELS = 1e-2  # share of a sum that cancels to an optimum of zero: 1e-14 of it is rounding


@dataclass
class Claim:
    """``low`` and ``high`` are claimed, ``below`` and ``above`` are known to enclose the truth."""

    what: str
    scope: str
    low: float
    high: float
    below: float
    above: float
    size: float = 0.0  # of the numbers that were added up

    @property
    def slack(self):
        known = [abs(end) for end in (self.below, self.above) if np.isfinite(end)]
        return SLACK * max(self.size, *known, 1e-300)

    @property
    def resolved(self):
        """Whether it is as true, or as false, wherever between its ends the truth is."""
        if not self.true or (self.low <= self.below and self.above <= self.high):
            return True
        if not np.isfinite(self.below):
            return True
        size = max(self.size, abs(self.above))
        return np.isfinite(self.above) and self.above - self.below <= RESOLVED * size + 1e-300

    @property
    def true(self):
        return self.low <= self.above + self.slack and self.below <= self.high + self.slack

    def __str__(self):
        return (
            f"{self.what} ({self.scope}): [{self.low:.12g}, {self.high:.12g}] claimed, "
            f"[{self.below:.12g}, {self.above:.12g}] true"
        )


def fitted(p):
    """The estimator, fitted."""
    if p.weight is None:
        return p.estimator.fit(p.X, p.y)
    return p.estimator.fit(p.X, p.y, sample_weight=p.weight)


def of_optimum(certificate, below, above, what="optimum", size=0.0):
    """The optimum lies in the interval."""
    low, high = certificate.interval
    size = max(size, abs(high) if np.isfinite(high) else 0.0)
    return Claim(what, certificate.scope, low, high, below, above, size)


def of_model(certificate, value, below, above, size=0.0):
    """The value of the model is at most the gap above the optimum."""
    gap = certificate.gap
    return Claim("model", certificate.scope, value - gap, np.inf, below, above, size)


def sums(intervals):
    """That of the sum."""
    return tuple(np.sum(np.atleast_2d(intervals), axis=0))


def over_pairs(p, of_pair):
    """The sum over pairs of classes of intervals; of_pair(rows, signs, weights of the rows)."""
    weight = p.weights()
    used = weight > 0
    classes = np.unique(p.y[used])
    found = []
    for i in range(classes.size):
        for j in range(i + 1, classes.size):
            rows = np.flatnonzero(used & np.isin(p.y, classes[[i, j]]))
            sign = np.where(p.y[rows] == classes[j], 1.0, -1.0)
            found.append(of_pair(rows, sign, weight[rows]))
    return sums(found)


def negative(interval):
    """That of the other sign."""
    return -interval[1], -interval[0]


def dense(A):
    """An array."""
    return A.toarray() if sp.issparse(A) else np.asarray(A)


def primal(p, model, loss, C, constant=0.0):
    """1/2 |f|^2 + sum_i w_i L of a fitted model of two classes, in float64.

    The least that it may be: sums of large terms that cancel have rounding errors here, too.
    """
    sign = np.where(p.y == model.classes_[1], 1.0, -1.0)
    V, coef = model.support_vectors_, dense(model.dual_coef_).ravel()
    K, K_VV = p.K(p.X, V), p.K(V, V)
    f = K @ coef + float(model.intercept_[0])
    f += sign * optimum.EPS * (np.abs(K) @ np.abs(coef))
    square = coef @ K_VV @ coef + constant * float(model.intercept_[0]) ** 2
    square -= optimum.EPS * float(np.abs(coef) @ np.sqrt(np.diag(K_VV))) ** 2
    return 0.5 * square + C * (p.weights() @ optimum.loss_values(loss, sign, f))


def used(p):
    """Rows with a weight, and their weights."""
    weight = np.ones(len(p.y)) if p.weight is None else p.weight
    rows = np.flatnonzero(weight > 0)
    return rows, weight[rows]


def columns(p, classes):
    """Signs of one class against the others; one column for two classes."""
    if len(classes) == 2:
        return [np.where(p.y == classes[1], 1.0, -1.0)]
    return [np.where(p.y == c, 1.0, -1.0) for c in classes]
