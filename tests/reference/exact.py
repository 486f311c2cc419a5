"""Quadratic programs of a few features in many digits: where C leaves float64 none to decide by.

    min over low <= x <= high, Ax = b of  1/2 x'(VV' + diag(shift))x + q'x

by the method of :mod:`tests.reference.optimum`, in decimal numbers; systems are as small as V has
columns. The interval is what follows from the last point, as it is there.
"""

from decimal import Decimal, localcontext

import numpy as np

DIGITS, ENOUGH, STEPS = 70, Decimal("1e-24"), 400
NONE = Decimal(0)
decimals = np.vectorize(Decimal, otypes=[object])


def minimum(V, shift, q, low, high, A, b):
    """Below and above of the minimum, as float64."""
    with localcontext() as context:
        context.prec = DIGITS
        V, shift, q, low, high, A, b = (
            decimals(v) if np.size(v) else np.zeros(np.shape(v), object)
            for v in (V, shift, q, low, high, A, b)
        )
        below, above = _interior(V, shift, q, low, high, A, b)
        return float(below), float(above)


def _interior(V, shift, q, low, high, A, b):
    n, m = q.size, len(A)
    half = Decimal("0.5")
    size = max(Decimal(1), abs(q).max(initial=NONE))
    x, dual = half * (low + high), np.full(m, NONE)
    z, v = np.full(n, size), np.full(n, size)
    least = Decimal("1e-60") * (high - low)
    best = (Decimal("-Infinity"), Decimal("Infinity"))
    for _ in range(STEPS):
        s, t = np.maximum(x - low, least), np.maximum(high - x, least)
        P_x = V @ (V.T @ x) + shift * x if V.shape[1] else shift * x
        r = P_x + q - (A.T @ dual if m else NONE)
        miss = b - A @ x if m else np.zeros(0, object)
        value = half * (x @ P_x) + q @ x
        moved = value + (dual @ miss if m else NONE)
        below = moved + np.minimum(r * (low - x), r * (high - x)).sum()
        above = moved + (abs(dual) @ abs(miss) if m else NONE)
        if above - below < best[1] - best[0]:
            best = below, above
        if above - below <= ENOUGH * (abs(value) + abs(q @ x)):
            break
        h = shift + z / s + v / t
        inverse = _inverse(V, h)
        W = inverse(A.T) if m else None
        about = inverse, A, W, A @ W if m else None, r - z + v, miss, s, t, z, v
        mu = (z @ s + v @ t) / (2 * n)
        dx, dl, dz, dv = _direction(about, -z * s, -v * t)
        step = _longest(s, dx, t, -dx, z, dz, v, dv)
        ahead = (z + step * dz) @ (s + step * dx) + (v + step * dv) @ (t - step * dx)
        aim = mu * (ahead / (2 * n) / mu) ** 3
        dx, dl, dz, dv = _direction(about, aim - z * s - dz * dx, aim - v * t + dv * dx)
        step = Decimal("0.9995") * _longest(s, dx, t, -dx, z, dz, v, dv)
        x, dual = x + step * dx, dual + step * dl
        z, v = z + step * dz, v + step * dv
    return best


def _inverse(V, h):
    """(diag(h) + VV')^-1, as a function."""
    if not V.shape[1]:
        return lambda R: R / (h if R.ndim == 1 else h[:, None])
    scaled = V / h[:, None]
    inner = V.T @ scaled + decimals(np.eye(V.shape[1]))

    def times(R):
        own = R / (h if R.ndim == 1 else h[:, None])
        return own - scaled @ solved(inner, V.T @ own)

    return times


def _direction(about, c_z, c_v):
    inverse, A, W, schur, r_d, miss, s, t, z, v = about
    dx, dl = inverse(-r_d + c_z / s - c_v / t), np.zeros(0, object)
    if len(A):
        dl = solved(schur, miss - A @ dx)
        dx = dx + W @ dl
    return dx, dl, (c_z - z * dx) / s, (c_v + v * dx) / t


def _longest(*pairs):
    step = Decimal(1)
    for value, change in zip(pairs[::2], pairs[1::2], strict=True):
        falling = change < 0
        if falling.any():
            step = min(step, (-value[falling] / change[falling]).min())
    return max(step, NONE)


def solved(M, R):
    """M^-1 R by elimination with pivots; what does not occur in M stays zero."""
    M, R, k = M.copy(), R.copy(), len(M)
    smallest, out = Decimal("1e-50") * abs(M).max(), np.full(R.shape, NONE)
    for j in range(k):
        at = j + int(np.argmax(abs(M[j:, j])))
        M[[j, at]], R[[j, at]] = M[[at, j]], R[[at, j]]
        if abs(M[j, j]) <= smallest:
            continue
        for i in range(j + 1, k):
            factor = M[i, j] / M[j, j]
            if factor:
                M[i, j:], R[i] = M[i, j:] - factor * M[j, j:], R[i] - factor * R[j]
    for j in reversed(range(k)):
        if abs(M[j, j]) > smallest:
            out[j] = (R[j] - M[j, j + 1 :] @ out[j + 1 :] if j + 1 < k else R[j]) / M[j, j]
    return out


def scores(X, W, b):
    """X W' + b, in decimals."""
    with localcontext() as context:
        context.prec = DIGITS
        return decimals(X) @ decimals(W).T + decimals(b)


def risk(loss, target, weight, f, epsilon=0.1):
    """The weighted losses of scores in decimals, as float64."""
    with localcontext() as context:
        context.prec = DIGITS
        t, w = decimals(target), decimals(weight)
        lost = abs(t - f) - Decimal(epsilon) if "epsilon" in loss else 1 - t * f
        lost = np.maximum(lost, NONE)
        return float(w @ (lost * lost if loss.startswith("squared") else lost))
