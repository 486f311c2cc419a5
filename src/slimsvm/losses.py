"""What a mistake costs: the losses, as small immutable objects.

A loss is a convex function of the score f for a given target y. It works entry by entry on arrays
and never sees rows or a kernel. The losses of classification take labels y of -1 and +1 and depend
on t = 1 - y f, how much is missing of the margin; those of regression depend on the residual f - y.

Every loss knows four things: its value, its derivative in f (at a kink, one of the subgradients),
its second derivative (at a kink of the derivative, the one-sided limit that is smaller), and its
convex conjugate L*(y, u) = sup_f u f - L(y, f), which is infinite outside its domain. The conjugate
is what a dual problem and a duality gap are made of: L(y, f) + L*(y, u) >= u f, with equality where
u is the gradient.

Symbols: t = 1 - y f; P the smooth positive part of t, s its slope; v = -y u.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, xlog1py, xlogy

from slimsvm.compiled import compiled
from slimsvm.forms import exp_rows

Array = NDArray[np.float64]
# of the smooth hinge's conjugate: measured to reach rounding error from its starting point for
# beta |u| from 1e-300 to 1e200
NEWTON_STEPS = 6
ROUNDING = 1e-9  # by which probabilities may miss their sum, or zero


@dataclass(frozen=True)
class Loss:
    """A convex function of the score f, for a given target y."""

    name: ClassVar[str] = ""
    differentiable: ClassVar[bool] = True  # False: the value has a kink
    takes_labels: ClassVar[bool] = True  # y is -1 or +1; False: any number

    def value(self, y: ArrayLike, f: ArrayLike) -> Array:
        """L(y, f)"""
        raise NotImplementedError

    def gradient(self, y: ArrayLike, f: ArrayLike) -> Array:
        """The derivative in f; at a kink, a subgradient."""
        raise NotImplementedError

    def curvature(self, y: ArrayLike, f: ArrayLike) -> Array:
        """The second derivative in f; zero for piecewise linear losses."""
        raise NotImplementedError

    def conjugate(self, y: ArrayLike, u: ArrayLike) -> Array:
        """sup_f u f - L(y, f); infinite outside its domain."""
        raise NotImplementedError

    def form(self) -> tuple[int, float]:
        """The first two arguments of :func:`slopes`, for losses with a derivative."""
        raise TypeError(f"{type(self).__name__} has a kink.")

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters by name."""
        return {f.name: getattr(self, f.name) for f in fields(self)}


SQUARED_HINGE, SMOOTH_HINGE, LEAST_SQUARES, SQUARED_TUBE, LOGISTIC, SMOOTH_TUBE = range(6)


@compiled
def slopes(form: int, p: float, y: float, f: float) -> tuple[float, float]:
    """First and second derivative of a loss in f at one point, for compiled loops.

    They are the same numbers as the methods of the loss return.
    """
    if form == SQUARED_HINGE:
        t = 1.0 - y * f
        # y = 0: a row that does not count
        return (-2.0 * y * t, 2.0 * y * y) if t > 0.0 else (0.0, 0.0)
    if form == SMOOTH_HINGE:
        x = p * (1.0 - y * f)
        if x < -700.0:
            return 0.0, 0.0
        small = np.exp(-abs(x))
        P = (max(x, 0.0) + np.log1p(small)) / p
        s = 1.0 / (1.0 + small) if x > 0.0 else small / (1.0 + small)
        rest = small / (1.0 + small) if x > 0.0 else 1.0 / (1.0 + small)
        return -2.0 * y * P * s, 2.0 * s * s + 2.0 * p * P * s * rest
    if form == LOGISTIC:
        x = y * f
        small = np.exp(-abs(x))
        s = small / (1.0 + small) if x > 0.0 else 1.0 / (1.0 + small)
        return -y * s, y * y * small / ((1.0 + small) * (1.0 + small))
    residual = f - y
    if form == LEAST_SQUARES:
        return 2.0 * residual, 2.0
    if form == SMOOTH_TUBE:
        t = abs(residual) - p
        if t <= 0.0:
            return 0.0, 0.0
        sign = 1.0 if residual > 0.0 else -1.0
        return (sign * t / p, 1.0 / p) if t < p else (sign, 0.0)
    if residual > p:
        return 2.0 * (residual - p), 2.0
    if residual < -p:
        return 2.0 * (residual + p), 2.0
    return 0.0, 0.0


def _floats(y: ArrayLike, f: ArrayLike) -> tuple[Array, Array]:
    return np.asarray(y, dtype=np.float64), np.asarray(f, dtype=np.float64)


def _missing(y: ArrayLike, f: ArrayLike) -> tuple[Array, Array]:
    """The labels, and t = 1 - y f."""
    labels, scores = _floats(y, f)
    return labels, np.asarray(1.0 - labels * scores)


def _residual(y: ArrayLike, f: ArrayLike) -> Array:
    targets, scores = _floats(y, f)
    return np.asarray(scores - targets)


@dataclass(frozen=True)
class Hinge(Loss):
    """L(y, f) = max(0, 1 - y f), the loss of the support vector machine.

    Examples
    --------
    >>> loss = Hinge()
    >>> loss.value([1, 1, -1], [2.0, 0.5, 0.5])
    array([0. , 0.5, 1.5])
    >>> loss.gradient([1, 1, -1], [2.0, 0.5, 0.5])
    array([ 0., -1.,  1.])
    >>> loss.conjugate([1, 1, -1], [-0.25, 0.25, 0.25])
    array([-0.25,   inf, -0.25])
    """

    name: ClassVar[str] = "hinge"
    differentiable: ClassVar[bool] = False

    def value(self, y: ArrayLike, f: ArrayLike) -> Array:
        """max(0, t)"""
        _, t = _missing(y, f)
        return np.maximum(0.0, t)

    def gradient(self, y: ArrayLike, f: ArrayLike) -> Array:
        """-y where the margin is missed; zero on the margin."""
        labels, t = _missing(y, f)
        return np.where(t > 0, -labels, 0.0)

    def curvature(self, y: ArrayLike, f: ArrayLike) -> Array:
        """Zero."""
        _, t = _missing(y, f)
        return np.zeros_like(t)

    def conjugate(self, y: ArrayLike, u: ArrayLike) -> Array:
        """y u for -1 <= y u <= 0"""
        labels, slopes = _floats(y, u)
        yu = np.asarray(labels * slopes)
        return np.where((yu >= -1.0) & (yu <= 0.0), yu, np.inf)


@dataclass(frozen=True)
class SquaredHinge(Loss):
    """L(y, f) = max(0, 1 - y f)^2

    Examples
    --------
    >>> loss = SquaredHinge()
    >>> loss.value([1, 1, -1], [2.0, 0.5, 0.5])
    array([0.  , 0.25, 2.25])
    >>> loss.gradient([1, 1, -1], [2.0, 0.5, 0.5])
    array([-0., -1.,  3.])
    >>> loss.curvature([1, 1, -1], [2.0, 0.5, 0.5])
    array([0., 2., 2.])
    """

    name: ClassVar[str] = "squared_hinge"

    def form(self) -> tuple[int, float]:
        """Of :func:`slopes`."""
        return SQUARED_HINGE, 0.0

    def value(self, y: ArrayLike, f: ArrayLike) -> Array:
        """max(0, t)^2"""
        _, t = _missing(y, f)
        return np.square(np.maximum(0.0, t))

    def gradient(self, y: ArrayLike, f: ArrayLike) -> Array:
        """-2 y max(0, t)"""
        labels, t = _missing(y, f)
        return np.asarray(-2.0 * labels * np.maximum(0.0, t))

    def curvature(self, y: ArrayLike, f: ArrayLike) -> Array:
        """2 where the margin is missed"""
        _, t = _missing(y, f)
        return np.where(t > 0, 2.0, 0.0)

    def conjugate(self, y: ArrayLike, u: ArrayLike) -> Array:
        """y u + u^2/4 for y u <= 0"""
        labels, slopes = _floats(y, u)
        yu = np.asarray(labels * slopes)
        return np.where(yu <= 0.0, yu + np.square(slopes) / 4.0, np.inf)


@dataclass(frozen=True)
class SmoothHinge(Loss):
    """L(y, f) = P(1 - y f)^2 with P(t) = t + log(1 + exp(-beta t))/beta.

    This is the squared hinge without the jump in its curvature. P exceeds max(0, t) by at most
    log(2)/beta. The loss of the smooth SVM (Lee & Mangasarian 2001).

    Parameters
    ----------
    beta : float
        Sharpness; the limit of large values is :class:`SquaredHinge`.

    Examples
    --------
    >>> loss = SmoothHinge(beta=5.0)
    >>> loss.value([1, 1, -1], [2.0, 0.5, 0.5]).round(4)
    array([0.    , 0.266 , 2.2503])
    >>> loss.gradient([1, 1, -1], [2.0, 0.5, 0.5]).round(4)
    array([-0.    , -0.9533,  2.9986])
    >>> SmoothHinge(beta=1e6).value([1, 1, -1], [2.0, 0.5, 0.5]).round(4)
    array([0.  , 0.25, 2.25])
    """

    name: ClassVar[str] = "smooth_hinge"
    beta: float = 5.0  # the value of the SSVM and RSVM papers

    def __post_init__(self) -> None:
        if not self.beta > 0:
            raise ValueError(f"beta={self.beta!r} must be a positive number.")

    def form(self) -> tuple[int, float]:
        """Of :func:`slopes`."""
        return SMOOTH_HINGE, float(self.beta)

    def _positive_part(self, t: Array) -> tuple[Array, Array]:
        """P and its slope s.

        logaddexp neither overflows for large beta t nor loses P for negative ones.
        """
        return np.logaddexp(0.0, self.beta * t) / self.beta, np.asarray(expit(self.beta * t))

    def value(self, y: ArrayLike, f: ArrayLike) -> Array:
        """P(t)^2"""
        _, t = _missing(y, f)
        return np.square(self._positive_part(t)[0])

    def gradient(self, y: ArrayLike, f: ArrayLike) -> Array:
        """-2 y P s"""
        labels, t = _missing(y, f)
        P, s = self._positive_part(t)
        return np.asarray(-2.0 * labels * P * s)

    def curvature(self, y: ArrayLike, f: ArrayLike) -> Array:
        """2 s^2 + 2 beta P s (1 - s)"""
        _, t = _missing(y, f)
        P, s = self._positive_part(t)
        # 1 - s would lose its digits where s is near 1
        return np.asarray(2.0 * s**2 + 2.0 * self.beta * P * s * expit(-self.beta * t))

    def conjugate(self, y: ArrayLike, u: ArrayLike) -> Array:
        """v (t - 1) - P(t)^2 at the t where 2 P s = v = -y u, for v >= 0; found by Newton's method.

        With x = beta t the equation is log softplus(x) + log sigmoid(x) = log(beta v / 2) =: log w.
        Its left side is increasing and concave, so Newton's steps from below never overshoot.
        The starting point is below since softplus(x) and sigmoid(x) are at most exp(x), and
        softplus(x) <= x + log 2 for x >= 0.
        """
        labels, slopes = _floats(y, u)
        v = np.asarray(-labels * slopes)
        inside = v > 0.0
        w = self.beta * np.where(inside, v, 1.0) / 2.0
        x = np.maximum(w - np.log(2.0), np.log(w) / 2.0)
        for _ in range(NEWTON_STEPS):
            softplus, s = np.logaddexp(0.0, x), expit(x)
            x = x + (np.log(w) - np.log(softplus) + np.logaddexp(0.0, -x)) / (
                s / softplus + expit(-x)
            )
        t = np.asarray(x / self.beta)
        P, _ = self._positive_part(t)
        # v = 0: the supremum of -P^2 is zero, at infinity
        return np.where(inside, v * (t - 1.0) - np.square(P), np.where(v == 0.0, 0.0, np.inf))


@dataclass(frozen=True)
class Logistic(Loss):
    """L(y, f) = log(1 + exp(-y f)), whose scores are log odds: P(y = 1 | x) = 1/(1 + exp(-f(x))).

    Examples
    --------
    >>> loss = Logistic()
    >>> loss.value([1, 1, -1], [2.0, 0.0, 2.0]).round(4)
    array([0.1269, 0.6931, 2.1269])
    >>> loss.gradient([1, 1, -1], [2.0, 0.0, 2.0]).round(4)
    array([-0.1192, -0.5   ,  0.8808])
    """

    name: ClassVar[str] = "logistic"

    def form(self) -> tuple[int, float]:
        """Of :func:`slopes`."""
        return LOGISTIC, 0.0

    def value(self, y: ArrayLike, f: ArrayLike) -> Array:
        """log(1 + exp(-y f))"""
        labels, scores = _floats(y, f)
        return np.logaddexp(0.0, -labels * scores)

    def gradient(self, y: ArrayLike, f: ArrayLike) -> Array:
        """-y / (1 + exp(y f))"""
        labels, scores = _floats(y, f)
        return np.asarray(-labels * expit(-labels * scores))

    def curvature(self, y: ArrayLike, f: ArrayLike) -> Array:
        """s (1 - s), s the probability of the label"""
        labels, scores = _floats(y, f)
        return np.asarray(np.square(labels) * expit(labels * scores) * expit(-labels * scores))

    def conjugate(self, y: ArrayLike, u: ArrayLike) -> Array:
        """v log v + (1 - v) log(1 - v) for 0 <= v = -y u <= 1"""
        labels, slopes = _floats(y, u)
        v = np.asarray(-labels * slopes)
        inside = (v >= 0.0) & (v <= 1.0)
        v = np.where(inside, v, 0.5)
        return np.where(inside, xlogy(v, v) + xlog1py(1.0 - v, -v), np.inf)


@compiled
def _softmax(y: Array, f: Array, most: Array, value: Array, gradient: Array) -> None:
    """Value and gradient, from exp(f - most) in the place of the gradient."""
    n, c = f.shape
    for i in range(n):
        own, total = 0.0, 0.0
        for j in range(c):
            own += y[i, j] * f[i, j]
            total += gradient[i, j]
        for j in range(c):
            gradient[i, j] = gradient[i, j] / total - y[i, j]
        value[i] = most[i] + np.log(total) - own


@dataclass(frozen=True)
class Softmax:
    """L(c, f) = log sum_j exp(f_j) - f_c, over the scores of all classes together.

    It is not a sum over columns, so it is no :class:`Loss` but has the same four methods, with rows
    of scores in place of scores and a one for the class of a row in place of the label: P(c | x) =
    exp(f_c(x)) / sum_j exp(f_j(x)).

    Examples
    --------
    >>> loss, y, f = Softmax(), np.array([[1.0, 0.0, 0.0]]), np.array([[2.0, 0.0, 0.0]])
    >>> loss.value(y, f).round(4), loss.gradient(y, f).round(4)
    (array([0.2395]), array([[-0.213 ,  0.1065,  0.1065]]))
    """

    name: ClassVar[str] = "softmax"
    differentiable: ClassVar[bool] = True
    takes_labels: ClassVar[bool] = True

    def value(self, y: ArrayLike, f: ArrayLike) -> Array:
        """log sum exp f - f_c, one number a row"""
        return self.both(y, f)[0]

    def gradient(self, y: ArrayLike, f: ArrayLike) -> Array:
        """p - y, p the probabilities"""
        return self.both(y, f)[1]

    def both(self, y: ArrayLike, f: ArrayLike) -> tuple[Array, Array]:
        """Value and gradient, in one pass."""
        labels, scores = _floats(y, f)
        labels, scores = np.ascontiguousarray(labels), np.ascontiguousarray(scores)
        most, value, gradient = scores.max(axis=1), np.empty(scores.shape[0]), scores.copy()
        exp_rows(gradient, 1.0, -1.0, most, np.zeros(scores.shape[1]))
        _softmax(labels, scores, most, value, gradient)
        return value, gradient

    def curvature(self, y: ArrayLike, f: ArrayLike) -> Array:
        """p (1 - p): the diagonal of the second derivative, diag(p) - p p'"""
        p = self.both(y, f)[1] + np.asarray(y, np.float64)
        return np.asarray(p * (1.0 - p))

    def conjugate(self, y: ArrayLike, u: ArrayLike) -> Array:
        """sum_j q_j log q_j for q = y + u >= 0 of sum one, one number a row"""
        labels, slopes = _floats(y, u)
        q = labels + slopes
        inside = (q >= -ROUNDING).all(axis=1) & (np.abs(q.sum(axis=1) - 1.0) <= ROUNDING)
        q = np.maximum(q, 0.0)
        return np.where(inside, xlogy(q, q).sum(axis=1), np.inf)


@dataclass(frozen=True)
class LeastSquares(Loss):
    """L(y, f) = (y - f)^2; for labels that is (1 - y f)^2.

    Examples
    --------
    >>> loss = LeastSquares()
    >>> loss.value([3.0, -1.0], [2.0, 1.0])
    array([1., 4.])
    >>> loss.gradient([3.0, -1.0], [2.0, 1.0])
    array([-2.,  4.])
    >>> loss.conjugate([3.0], [2.0])
    array([7.])
    """

    name: ClassVar[str] = "least_squares"
    takes_labels: ClassVar[bool] = False

    def form(self) -> tuple[int, float]:
        """Of :func:`slopes`."""
        return LEAST_SQUARES, 0.0

    def value(self, y: ArrayLike, f: ArrayLike) -> Array:
        """(f - y)^2"""
        return np.square(_residual(y, f))

    def gradient(self, y: ArrayLike, f: ArrayLike) -> Array:
        """2 (f - y)"""
        return np.asarray(2.0 * _residual(y, f))

    def curvature(self, y: ArrayLike, f: ArrayLike) -> Array:
        """2"""
        return np.full_like(_residual(y, f), 2.0)

    def conjugate(self, y: ArrayLike, u: ArrayLike) -> Array:
        """y u + u^2/4"""
        targets, slopes = _floats(y, u)
        return np.asarray(targets * slopes + np.square(slopes) / 4.0)


@dataclass(frozen=True)
class _Tube(Loss):
    """A loss that is zero where |y - f| is at most epsilon."""

    takes_labels: ClassVar[bool] = False
    epsilon: float = 0.1

    def __post_init__(self) -> None:
        if not self.epsilon >= 0:
            raise ValueError(f"epsilon={self.epsilon!r} must be a number >= 0.")


@dataclass(frozen=True)
class EpsilonInsensitive(_Tube):
    """L(y, f) = max(0, |y - f| - epsilon), the loss of support vector regression.

    Parameters
    ----------
    epsilon : float
        Half of the width of the tube in which errors cost nothing.

    Examples
    --------
    >>> loss = EpsilonInsensitive(epsilon=0.5)
    >>> loss.value([1.0, 1.0, 1.0], [1.25, 2.0, -1.0])
    array([0. , 0.5, 1.5])
    >>> loss.gradient([1.0, 1.0, 1.0], [1.25, 2.0, -1.0])
    array([ 0.,  1., -1.])
    >>> loss.conjugate([1.0, 1.0], [0.5, 1.5])
    array([0.75,  inf])
    """

    name: ClassVar[str] = "epsilon_insensitive"
    differentiable: ClassVar[bool] = False

    def value(self, y: ArrayLike, f: ArrayLike) -> Array:
        """max(0, |f - y| - epsilon)"""
        return np.maximum(0.0, np.abs(_residual(y, f)) - self.epsilon)

    def gradient(self, y: ArrayLike, f: ArrayLike) -> Array:
        """The sign of f - y outside the tube, zero inside and on its edge."""
        residual = _residual(y, f)
        return np.where(np.abs(residual) > self.epsilon, np.sign(residual), 0.0)

    def curvature(self, y: ArrayLike, f: ArrayLike) -> Array:
        """Zero."""
        return np.zeros_like(_residual(y, f))

    def conjugate(self, y: ArrayLike, u: ArrayLike) -> Array:
        """y u + epsilon |u| for |u| <= 1"""
        targets, slopes = _floats(y, u)
        return np.where(
            np.abs(slopes) <= 1.0, targets * slopes + self.epsilon * np.abs(slopes), np.inf
        )


@dataclass(frozen=True)
class SquaredEpsilonInsensitive(_Tube):
    """L(y, f) = max(0, |y - f| - epsilon)^2

    Parameters
    ----------
    epsilon : float
        As in :class:`EpsilonInsensitive`.

    Examples
    --------
    >>> loss, f = SquaredEpsilonInsensitive(epsilon=0.5), [1.25, 2.0, -1.0]
    >>> loss.value([1.0, 1.0, 1.0], f), loss.gradient([1.0, 1.0, 1.0], f)
    (array([0.  , 0.25, 2.25]), array([ 0.,  1., -3.]))
    """

    name: ClassVar[str] = "squared_epsilon_insensitive"

    def form(self) -> tuple[int, float]:
        """Of :func:`slopes`."""
        return SQUARED_TUBE, float(self.epsilon)

    def value(self, y: ArrayLike, f: ArrayLike) -> Array:
        """max(0, |f - y| - epsilon)^2"""
        return np.square(np.maximum(0.0, np.abs(_residual(y, f)) - self.epsilon))

    def gradient(self, y: ArrayLike, f: ArrayLike) -> Array:
        """2 (|f - y| - epsilon), with the sign of f - y, outside the tube"""
        residual = _residual(y, f)
        return np.asarray(
            2.0 * np.sign(residual) * np.maximum(0.0, np.abs(residual) - self.epsilon)
        )

    def curvature(self, y: ArrayLike, f: ArrayLike) -> Array:
        """2 outside the tube"""
        return np.where(np.abs(_residual(y, f)) > self.epsilon, 2.0, 0.0)

    def conjugate(self, y: ArrayLike, u: ArrayLike) -> Array:
        """y u + epsilon |u| + u^2/4"""
        targets, slopes = _floats(y, u)
        return np.asarray(
            targets * slopes + self.epsilon * np.abs(slopes) + np.square(slopes) / 4.0
        )


@dataclass(frozen=True)
class SmoothEpsilonInsensitive(_Tube):
    """The epsilon-insensitive loss with rounded edges.

    With t = |y - f| - epsilon it is zero for t <= 0, t^2 / (2 epsilon) up to t = epsilon, and
    t - epsilon/2 from there on: outliers count as in :class:`EpsilonInsensitive`, and it has a
    derivative.

    Parameters
    ----------
    epsilon : float
        Half of the width of the tube, positive; the edge is rounded over as much again.

    Examples
    --------
    >>> loss, f = SmoothEpsilonInsensitive(epsilon=0.5), [1.25, 1.75, -1.0]
    >>> loss.value([1.0, 1.0, 1.0], f), loss.gradient([1.0, 1.0, 1.0], f)
    (array([0.    , 0.0625, 1.25  ]), array([ 0. ,  0.5, -1. ]))
    """

    name: ClassVar[str] = "smooth_epsilon_insensitive"

    def __post_init__(self) -> None:
        if not self.epsilon > 0:
            raise ValueError(f"epsilon={self.epsilon!r} must be a positive number.")

    def form(self) -> tuple[int, float]:
        """Of :func:`slopes`."""
        return SMOOTH_TUBE, float(self.epsilon)

    def _beyond(self, y: ArrayLike, f: ArrayLike) -> tuple[Array, Array]:
        """The residual, and how far it is outside of the tube, over epsilon."""
        residual = _residual(y, f)
        return residual, np.maximum(0.0, np.abs(residual) - self.epsilon) / self.epsilon

    def value(self, y: ArrayLike, f: ArrayLike) -> Array:
        """epsilon times (s^2 / 2 up to s = 1, then s - 1/2), s = t / epsilon"""
        _, s = self._beyond(y, f)
        inner = np.minimum(s, 1.0)
        return np.asarray(self.epsilon * (0.5 * inner**2 + (s - inner)))

    def gradient(self, y: ArrayLike, f: ArrayLike) -> Array:
        """min(1, s), with the sign of f - y"""
        residual, s = self._beyond(y, f)
        return np.asarray(np.sign(residual) * np.minimum(s, 1.0))

    def curvature(self, y: ArrayLike, f: ArrayLike) -> Array:
        """1 / epsilon on the rounded edge"""
        _, s = self._beyond(y, f)
        return np.where((s > 0.0) & (s < 1.0), 1.0 / self.epsilon, 0.0)

    def conjugate(self, y: ArrayLike, u: ArrayLike) -> Array:
        """y u + epsilon (|u| + u^2/2) for |u| <= 1"""
        targets, slopes = _floats(y, u)
        size = np.abs(slopes)
        inside = targets * slopes + self.epsilon * (size + 0.5 * np.square(slopes))
        return np.where(size <= 1.0, inside, np.inf)


LOSSES: dict[str, type[Loss]] = {
    loss.name: loss
    for loss in (
        Hinge,
        SquaredHinge,
        SmoothHinge,
        Logistic,
        LeastSquares,
        EpsilonInsensitive,
        SquaredEpsilonInsensitive,
        SmoothEpsilonInsensitive,
    )
}
