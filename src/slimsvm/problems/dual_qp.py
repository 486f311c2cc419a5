"""The dual problems of kernel SVMs, in one form.

    minimise  W(a) = 1/2 a'Qa + p'a,   Q_uv = z_u z_v k(x_u, x_v),
    subject to  0 <= a <= upper,  z'a fixed, and for the nu forms e'a fixed too.

Every variable v belongs to a row x_v of the data and has a sign z_v. The learned function is f(x) =
sum_v z_v a_v k(x_v, x) + intercept. The solver keeps s = the inner products of the function with
the rows, so the gradient is g_v = z_v s_v + p_v, and what it sorts by is o_v = z_v g_v = s_v + z_v
p_v. A variable may move by +z_v or by -z_v if its bound allows; at the optimum no o of the second
kind (*low*) exceeds one of the first kind (*up*), within one equality.

| problem | variables | z | p | upper | fixed |
|---|---|---|---|---|---|
| C-SVC | rows | y | -1 | C c | y'a = 0 |
| epsilon-SVR | rows twice | +1, -1 | eps - t, eps + t | C c | z'a = 0 |
| one-class | rows | +1 | 0 | c | e'a = nu sum c |
| nu-SVC | rows | y | 0 | c | y'a = 0, e'a = nu sum c |
| nu-SVR | rows twice | +1, -1 | -t, +t | C c | z'a = 0, e'a = C nu sum c |

Sources: LIBSVM (Chang & Lin 2011), SVM-light (Joachims 1999), nu forms (Schoelkopf et al. 2000).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slimsvm.gram import Gram

Array = NDArray[Any]


@dataclass(eq=False, repr=False)
class DualQP:
    """One dual problem; see the module's text for the symbols.

    Attributes
    ----------
    gram : Gram
        Kernel rows of the data.
    sign, linear, upper : arrays, one entry a variable
        z, p and the upper bounds.
    row : int array
        The row of the data a variable belongs to.
    start : array
        A feasible point.
    two_equalities : bool
        True for the nu forms: variables exchange only with others of their own sign.
    """

    gram: Gram
    sign: Array
    linear: Array
    upper: Array
    row: Array
    start: Array
    two_equalities: bool = False

    @property
    def n_variables(self) -> int:
        """Number of variables."""
        return int(self.sign.size)

    def feasible(self, a: Array) -> Array:
        """A point near ``a`` that meets the constraints.

        It is clipped to the bounds, and the heavier side of the equality is scaled down.

        Where the equalities fix more than a balance (nu forms, one-class), a point that misses
        them is given up for the starting point.
        """
        a = np.clip(a, 0.0, self.upper)
        fixed = self.two_equalities or bool(np.all(self.sign > 0))
        for group in self.groups():
            z = self.sign[group]
            miss = float(z @ a[group] - z @ self.start[group])
            if abs(miss) <= 1e-12 * max(1.0, float(a[group].sum())):
                continue
            if fixed:
                return self.start.copy()
            heavy = group[z > 0] if miss > 0 else group[z < 0]
            a[heavy] *= 1.0 - abs(miss) / float(a[heavy].sum())
        return a

    def coef(self, a: Array) -> Array:
        """The coefficient of every row of the data: sum over its variables of z a."""
        return np.bincount(self.row, self.sign * a, minlength=self.gram.n)

    def objective(self, a: Array, s: Array) -> float:
        """W(a), from s at every row of the data."""
        return float(0.5 * (self.coef(a) @ s) + self.linear @ a)

    def order(self, s: Array) -> Array:
        """o_v = s_v + z_v p_v"""
        return np.asarray(s[self.row] + self.sign * self.linear)

    def can_rise(self, a: Array) -> Array:
        """Variables that may move by +z."""
        return np.where(self.sign > 0, a < self.upper, a > 0)

    def can_fall(self, a: Array) -> Array:
        """Variables that may move by -z."""
        return np.where(self.sign > 0, a > 0, a < self.upper)

    def groups(self) -> list[Array]:
        """The variables that exchange with one another."""
        if self.two_equalities:
            return [np.flatnonzero(self.sign > 0), np.flatnonzero(self.sign < 0)]
        return [np.arange(self.n_variables)]

    def multiplier(self, a: Array, s: Array, group: Array) -> tuple[float, float]:
        """The multiplier of a group's equality, and the group's KKT violation.

        The multiplier is minus the mean of o over the free variables; without any, the midpoint of
        the interval that the bounds leave.
        """
        o = self.order(s)[group]
        up, low = o[self.can_rise(a)[group]], o[self.can_fall(a)[group]]
        bottom, top = (up.min() if up.size else np.inf), (low.max() if low.size else -np.inf)
        violation = max(0.0, float(top - bottom))
        free = (a[group] > 0) & (a[group] < self.upper[group])
        if free.any():
            return -float(o[free].mean()), violation
        ends = [end for end in (top, bottom) if np.isfinite(end)]
        return (-float(np.mean(ends)) if ends else 0.0), violation

    def violation(self, a: Array, s: Array) -> float:
        """The largest violation of the KKT conditions: how much a top o exceeds a bottom one."""
        return max(self.multiplier(a, s, group)[1] for group in self.groups())

    def gap(self, a: Array, s: Array) -> float:
        """The duality gap.

        It is a'g + sum over groups of the multiplier's term + sum_v upper_v max(0, -(g_v + z_v
        multiplier)).

        For the C-SVC that is a'Qa - e'a + C sum_i c_i max(0, 1 - y_i f(x_i)).
        """
        o = self.order(s)
        total = 0.0
        for group in self.groups():
            multiplier, _ = self.multiplier(a, s, group)
            reduced = self.sign[group] * (o[group] + multiplier)  # the gradient of the Lagrangian
            total += float(a[group] @ reduced) + float(
                self.upper[group] @ np.maximum(0.0, -reduced)
            )
        return max(0.0, total)


def classification(gram: Gram, sign: Array, upper: Array) -> DualQP:
    """C-SVC: labels +1 and -1, upper bounds C times the weights."""
    n = sign.size
    return DualQP(gram, sign, np.full(n, -1.0), upper, np.arange(n), np.zeros(n))


def regression(gram: Gram, target: Array, upper: Array, epsilon: float) -> DualQP:
    """epsilon-SVR: two variables a row, for errors on either side."""
    n = target.size
    sign = np.concatenate([np.ones(n), -np.ones(n)])
    linear = np.concatenate([epsilon - target, epsilon + target])
    return DualQP(gram, sign, linear, np.tile(upper, 2), np.tile(np.arange(n), 2), np.zeros(2 * n))


def one_class(gram: Gram, weight: Array, nu: float) -> DualQP:
    """One-class SVM: the rows share nu times the total weight."""
    n = weight.size
    return DualQP(
        gram, np.ones(n), np.zeros(n), weight, np.arange(n), _spread(weight, nu * weight.sum())
    )


def nu_classification(gram: Gram, sign: Array, weight: Array, nu: float) -> DualQP:
    """nu-SVC: each class carries half of nu times the total weight.

    The result must be divided by the margin.
    """
    n, half = sign.size, nu * weight.sum() / 2
    # the scale is free (it goes with the margin): take the one that equal weights would have, so
    # that a tolerance means the same for all
    weight, half = weight * (nu * n / 2 / half), nu * n / 2
    # by rounding, at the largest feasible nu
    if nu * n / 2 > (least := min(weight[sign > 0].sum(), weight[sign < 0].sum())):
        half = least
    start = np.zeros(n)
    for side in (sign > 0, sign < 0):
        start[side] = _spread(weight[side], half)
    return DualQP(gram, sign, np.zeros(n), weight, np.arange(n), start, two_equalities=True)


def largest_nu(sign: Array, weight: Array) -> float:
    """The largest nu that the weights of both classes allow."""
    lighter = min(float(weight[sign > 0].sum()), float(weight[sign < 0].sum()))
    return 2.0 * lighter / float(weight.sum())


def nu_regression(gram: Gram, target: Array, upper: Array, nu: float) -> DualQP:
    """nu-SVR: the tube's width is a result, its outside a share nu of the rows."""
    n, half = target.size, nu * upper.sum() / 2
    sign = np.concatenate([np.ones(n), -np.ones(n)])
    start = np.tile(_spread(upper, half), 2)
    return DualQP(
        gram,
        sign,
        np.concatenate([-target, target]),
        np.tile(upper, 2),
        np.tile(np.arange(n), 2),
        start,
        two_equalities=True,
    )


def _spread(upper: Array, total: float) -> Array:
    """A point with the given total: every variable at the same share of its bound.

    So it does not depend on the order of the rows.
    """
    return np.asarray(upper * min(1.0, total / upper.sum()))
