"""The optimum of every problem of the package by one general method, as an interval.

All are quadratic programs with bounds and a few equalities, solved densely by a primal-dual
interior-point method in float64. Nothing rests on its having converged: for any point x within the
bounds and any multipliers l of the equalities,

    W(x) + l'(b - Ax) + sum_i min over the bounds of r_i (t - x_i),    r = Px + q - A'l,

is below the minimum, since W is convex, and W at a feasible point is above it. Both are widened by
what rounding may have changed of P, whose entries are inner products: of W by about eps times
(sum_i |x_i| sqrt(P_ii))^2, however much of that cancels.
"""

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from tests.reference import exact

EPS = 4.0 * float(np.finfo(float).eps)  # of an inner product of a few numbers


FEW = 30  # features, for more digits
BALANCED = 1e-12  # slopes that add up to so little of their sizes add up to zero, but for rounding
RESOLVED = 1e-9  # of an interval, relative: wider ones are narrowed in more digits, if they can be


def minimum(P, q, low, high, A=None, b=None, factor=None):
    """The interval that the minimum of 1/2 x'Px + q'x is in, where low <= x <= high, Ax = b; and
    the point x.

    With ``factor``, V of few columns and a diagonal, P = VV' + diag(it), rounding is no excuse.
    """
    q, low, high = (np.asarray(v, float) for v in (q, low, high))
    A = np.zeros((0, q.size)) if A is None else np.atleast_2d(np.asarray(A, float))
    b = np.zeros(len(A)) if b is None else np.atleast_1d(np.asarray(b, float))
    fixed = high - low <= 1e-14 * np.maximum(np.abs(high), np.abs(low))
    free = np.flatnonzero(~fixed)
    x = np.where(fixed, low, 0.5 * (low + high))
    dual = np.zeros(len(A))
    if free.size:
        x[free], dual = _interior(
            P[np.ix_(free, free)],
            q[free] + P[np.ix_(free, np.flatnonzero(fixed))] @ x[fixed],
            low[free],
            high[free],
            A[:, free],
            b - A[:, fixed] @ x[fixed],
        )
    value = 0.5 * x @ P @ x + q @ x
    r = P @ x + q - A.T @ dual
    miss = b - A @ x
    below = value + dual @ miss + np.minimum(r * (low - x), r * (high - x)).sum()
    above = value + dual @ miss + np.abs(dual) @ np.abs(miss)
    size = float(np.abs(x) @ np.sqrt(np.maximum(np.diag(P), 0.0))) ** 2 + float(
        np.abs(q) @ np.abs(x)
    )
    below, above = float(below) - EPS * size, float(above) + EPS * size
    if factor is not None and not above - below <= RESOLVED * abs(above):
        exactly = exact.minimum(*factor, q, low, high, A, b)
        below, above = max(below, exactly[0]), min(above, exactly[1])
    return below, above, x


def _interior(P, q, low, high, A, b, most=120):
    """Mehrotra's predictor and corrector."""
    n, m = q.size, len(A)
    size = max(1.0, float(np.abs(q).max()), float(np.abs(P).max()))
    x, dual = 0.5 * (low + high), np.zeros(m)
    z = np.full(n, size)  # of x >= low
    v = np.full(n, size)  # of x <= high
    best, found = np.inf, (x, dual)
    least = 1e-22 * (high - low)  # a distance from a bound that x cannot show
    for _ in range(most):
        s, t = np.maximum(x - low, least), np.maximum(high - x, least)
        r_d = P @ x + q - A.T @ dual - z + v
        r_p = A @ x - b
        mu = float(z @ s + v @ t) / (2 * n)
        r = P @ x + q - A.T @ dual
        gap = float(-np.minimum(r * (low - x), r * (high - x)).sum() + np.abs(dual) @ np.abs(r_p))
        if gap < best:
            best, found = gap, (x.copy(), dual.copy())
        scale = abs(0.5 * x @ P @ x) + abs(q @ x)
        if gap <= 1e-15 * scale:
            break
        D = z / s + v / t
        H = P + np.diag(D)
        try:
            factor = cho_factor(H + 1e-16 * np.trace(P) / n * np.eye(n))
        except (np.linalg.LinAlgError, ValueError):  # rounding: the best point so far
            break
        HA = cho_solve(factor, A.T, check_finite=False)
        about = factor, A, HA, A @ HA, r_d, r_p, s, t, z, v
        dx, dl, dz, dv = _direction(about, -z * s, -v * t)
        step = _longest(s, dx, t, -dx, z, dz, v, dv)
        ahead = (z + step * dz) @ (s + step * dx) + (v + step * dv) @ (t - step * dx)
        sigma = (float(ahead) / (2 * n) / mu) ** 3
        aims = sigma * mu - z * s - dz * dx, sigma * mu - v * t + dv * dx
        dx, dl, dz, dv = _direction(about, *aims)
        step = 0.9995 * _longest(s, dx, t, -dx, z, dz, v, dv)
        if not np.isfinite(dx).all() or step < 1e-14:
            break
        x, dual, z, v = x + step * dx, dual + step * dl, z + step * dz, v + step * dv
        x = np.clip(x, low, high)
        z, v = np.maximum(z, 1e-300), np.maximum(v, 1e-300)
    return found


def _direction(about, c_z, c_v):
    """Newton's step towards z s = c_z and v t = c_v, as changes of the two."""
    factor, A, HA, schur, r_d, r_p, s, t, z, v = about
    dx = cho_solve(factor, -r_d + c_z / s - c_v / t, check_finite=False)
    dl = np.zeros(0)
    if len(A):
        dl = np.linalg.pinv(schur, rcond=1e-14, hermitian=True) @ (-r_p - A @ dx)
        dx = dx + HA @ dl
    return dx, dl, (c_z - z * dx) / s, (c_v + v * dx) / t


def _longest(*pairs):
    step = 1.0
    for value, change in zip(pairs[::2], pairs[1::2], strict=True):
        falling = change < 0
        if falling.any():
            step = min(step, float((-value[falling] / change[falling]).min()))
    return max(step, 0.0)


# -- losses ----------------------------------------------------------------------------------------


def loss_values(loss, target, f, epsilon=0.1, beta=5.0):
    """L(y, f) of every row, from the definitions."""
    if loss == "hinge":
        return np.maximum(0.0, 1.0 - target * f)
    if loss == "squared_hinge":
        return np.maximum(0.0, 1.0 - target * f) ** 2
    if loss == "smooth_hinge":
        return (np.logaddexp(0.0, beta * (1.0 - target * f)) / beta) ** 2
    if loss == "least_squares":
        return (target - f) ** 2
    if loss == "epsilon_insensitive":
        return np.maximum(0.0, np.abs(target - f) - epsilon)
    if loss == "squared_epsilon_insensitive":
        return np.maximum(0.0, np.abs(target - f) - epsilon) ** 2
    raise ValueError(loss)


def regularised(
    K, loss, target, weight, intercept=True, epsilon=0.1, beta=5.0, F=None, features=None
):
    """The interval of  min over f, b of  1/2 |f|^2 + sum_i weight_i L(y_i, f_i + b).

    K is the matrix of inner products in whatever space f may be from; F the rows in coordinates of
    it, where these are known: the eigenvectors of K have rounding errors among them, which are
    directions of their own. ``features``: the same, if they are few.
    """
    n = target.size
    if loss in SMOOTH:
        return smooth(F, loss, target[:, None], weight, intercept, beta, K)
    if loss in ("hinge", "squared_hinge"):
        sign, q, high, shift = target, -np.ones(n), weight.copy(), np.zeros(n)
        if loss == "squared_hinge":  # no multiplier is larger: P(0) bounds every loss
            shift, high = 0.5 / weight, 2.0 * np.sqrt(weight * weight.sum()) + 1e-9
        low = np.zeros(n)
    elif loss == "least_squares":
        high = 2.0 * np.sqrt(weight * (weight @ target**2)) + 1e-9
        sign, shift, q, low = np.ones(n), 0.5 / weight, -target, -high
    else:
        sign = np.concatenate([np.ones(n), -np.ones(n)])
        q, high, low = epsilon - sign * np.tile(target, 2), np.tile(weight, 2), np.zeros(2 * n)
        shift = np.zeros(2 * n)
        if loss == "squared_epsilon_insensitive":
            most = weight @ np.maximum(0.0, np.abs(target) - epsilon) ** 2
            shift, high = 0.5 / high, 2.0 * np.sqrt(high * most) + 1e-9
    rows = np.arange(sign.size) % n
    P = K[np.ix_(rows, rows)] * np.outer(sign, sign) + np.diag(shift)
    factor = None if features is None else (features[rows] * sign[:, None], shift)
    A, b = (sign[None, :], np.zeros(1)) if intercept else (None, None)
    below, above, _ = minimum(P, q, low, high, A, b, factor)
    return -above, -below


def lasso(X, y, weight, intercept):
    """The interval of  min over w, b of  |w|_1 + sum_i weight_i max(0, 1 - y_i (w'x_i + b))^2.

    Its dual: max of sum_i a_i - a_i^2 / (4 weight_i) where |sum_i a_i y_i x_i| <= 1 in every
    feature, with a slack for each.
    """
    n, d = X.shape
    P = np.diag(np.concatenate([0.5 / weight, np.zeros(d)]))
    q = np.concatenate([-np.ones(n), np.zeros(d)])
    high = np.concatenate([2.0 * np.sqrt(weight * weight.sum()) + 1e-9, np.full(d, 2.0)])
    A, b = np.hstack([(X * y[:, None]).T, np.eye(d)]), np.ones(d)
    if intercept:
        A, b = np.vstack([A, np.append(y, np.zeros(d))]), np.append(b, 0.0)
    factor = np.zeros((n + d, 0)), np.diag(P)
    below, above, _ = minimum(P, q, np.zeros(n + d), high, A, b, factor)
    return -above, -below


SMOOTH = ("smooth_hinge", "logistic", "softmax")


def losses(loss, Y, S, beta=5.0):
    """Values (n,) of a smooth loss."""
    if loss == "softmax":  # Y has a one for the class of a row
        top = S.max(axis=1)
        return np.log(np.exp(S - top[:, None]).sum(axis=1)) + top - (Y * S).sum(axis=1)
    if loss == "logistic":
        return np.logaddexp(0.0, -Y * S).sum(axis=1)
    return ((np.logaddexp(0.0, beta * (1.0 - Y * S)) / beta) ** 2).sum(axis=1)


def slopes(loss, Y, S, beta=5.0):
    """Values (n,), slopes (n, columns) and curvatures (n, columns, columns) of a smooth loss."""
    n, c = S.shape
    if loss == "softmax":  # Y has a one for the class of a row
        p = np.exp(S - S.max(axis=1)[:, None])
        p /= p.sum(axis=1)[:, None]
        return losses(loss, Y, S), p - Y, p[:, :, None] * (np.eye(c) - p[:, None, :])
    H = np.zeros((n, c, c))
    if loss == "logistic":
        s = 0.5 * (1.0 - np.tanh(0.5 * Y * S))
        H[:, np.arange(c), np.arange(c)] = s * (1.0 - s)
        return losses(loss, Y, S), -Y * s, H
    t = 1.0 - Y * S
    P, s = np.logaddexp(0.0, beta * t) / beta, 0.5 * (1.0 + np.tanh(0.5 * beta * t))
    H[:, np.arange(c), np.arange(c)] = 2.0 * (s * s + beta * P * s * (1.0 - s))
    return losses(loss, Y, S, beta), -2.0 * Y * P * s, H


def smooth(F, loss, Y, weight, intercept, beta=5.0, K=None):
    """The interval of the optimum over functions with a column for every column of Y.

    By Newton's method on the coordinates F. From any point, with multipliers g that are the slopes
    there, the minimum is no more than 1/2 |u + F'g|^2 below, if those of a column add up to zero;
    what rounding leaves of that sum is taken times the intercept, and where it is more than
    rounding, nothing is known from below. Without coordinates the eigenvectors of K are, nearly,
    and where that has led is judged by K itself.
    """
    judged = F is None
    F = factored(K) if judged else F
    (n, k), c = F.shape, Y.shape[1]
    Z = np.column_stack([F, np.ones(n)]) if intercept else F
    ridge = np.ones(Z.shape[1])
    ridge[k:] = 0.0
    u = np.zeros((Z.shape[1], c))

    def value(u):
        return 0.5 * float(ridge @ (u**2).sum(axis=1)) + weight @ losses(loss, Y, Z @ u, beta)

    def apart(u, g):
        """How far above the minimum it is at most."""
        return 0.5 * float(np.sum((u[:k] + F.T @ g) ** 2)) + unbalanced(u[k:], g)

    best, found, worse, now = np.inf, u, 0, value(u)
    for _ in range(200):
        _, g, H = slopes(loss, Y, Z @ u, beta)
        g, H = weight[:, None] * g, weight[:, None, None] * H
        off = apart(u, g)
        if off < best:
            best, found, worse = off, u, 0
        elif np.isfinite(off):
            worse += 1
        if worse == 4 or best <= 1e-30 * now:  # rounding: no more is to be had
            break
        slope = ridge[:, None] * u + Z.T @ g
        M = np.einsum("ia,icd,ib->acbd", Z, H, Z, optimize=True).reshape(slope.size, slope.size)
        M += np.diag(np.repeat(ridge, c))
        M += 1e-15 * np.trace(M) / len(M) * np.eye(len(M))
        # of the softmax, all intercepts may move together
        step = -np.linalg.lstsq(M, slope.ravel(), rcond=1e-14)[0].reshape(slope.shape)
        length = 1.0
        while (after := value(u + length * step)) > now * (1.0 + 1e-15) and length > 1e-10:
            length *= 0.5
        if length <= 1e-10:
            break
        u, now = u + length * step, after
    u = found if np.isfinite(best) else u
    if intercept:
        u = np.vstack([u[:k], settled(loss, Y, weight, F @ u[:k], u[k:], beta)])
    g = weight[:, None] * slopes(loss, Y, Z @ u, beta)[1]
    if judged:
        return by_inner_products(K, loss, Y, weight, -g, u[k:], beta)
    size = float((np.linalg.norm(F, axis=1)[:, None] * np.abs(g)).sum()) * np.linalg.norm(u[:k])
    off = EPS * (size + value(u))
    return value(u) - apart(u, g) - off, value(u) + off


def unbalanced(b, g):
    """What slopes that do not add up to zero cost the bound; infinite if that is not rounding."""
    if not len(b):
        return 0.0
    left = np.abs(g.sum(axis=0))
    return (
        float(np.abs(b).ravel() @ left)
        if (left <= BALANCED * np.abs(g).sum(axis=0)).all()
        else np.inf
    )


def settled(loss, Y, weight, f, b, beta=5.0):
    """The best intercepts of scores, nearly: Newton's steps, as long as slopes fall."""
    least = np.inf
    for _ in range(20):
        _, g, H = slopes(loss, Y, f + b, beta)
        slope = weight @ g
        if not np.abs(slope).max() < least:
            break
        best, least = b, np.abs(slope).max()
        b = b - np.linalg.lstsq(np.einsum("i,icd->cd", weight, H), slope, rcond=1e-14)[0]
    return best


def by_inner_products(K, loss, Y, weight, a, b, beta=5.0):
    """The interval that the optimum is in, from the function with the coefficients a and b.

    The same bound as in :func:`smooth`, and the same widening as in :func:`minimum`.
    """
    f = K @ a
    value = 0.5 * float(np.sum(a * f))
    if len(b):
        b = settled(loss, Y, weight, f, b, beta)
        f = f + b
    value += weight @ losses(loss, Y, f, beta)
    g = weight[:, None] * slopes(loss, Y, f, beta)[1]
    left = a + g
    apart = max(0.5 * float(np.sum(left * (K @ left))), 0.0) + unbalanced(b, g)
    off = EPS * (float(np.square(np.sqrt(np.diag(K)) @ np.abs(a)).sum()) + value)
    return value - apart - off, value + off


# -- structured outputs ----------------------------------------------------------------------------


def factored(K):
    """F with FF' = K."""
    d, U = np.linalg.eigh(K)
    return U * np.sqrt(np.where(d > 1e-15 * d.max(), d, 0.0))


def structured(F, outputs, weight, intercept):
    """The interval of the optimum over functions with a column for every label.

    Parameters
    ----------
    F : array (parts, coordinates)
        The parts of all examples, in coordinates of the space that functions may be from. (Not
        their inner products: the rounding errors of those are directions of their own, which a
        large C makes use of.)
    outputs : list of lists
        For every example, of each of its outputs: loss, the parts, the change of the score
        (parts, columns), the change of the linear part.
    weight : array
        Of the examples, C included.
    intercept : bool
        Whether a constant is added to the kernel.
    """
    F = np.hstack([F, np.ones((len(F), 1))]) if intercept else F
    rows, delta, owner = [], [], []
    for i, own in enumerate(outputs):
        for loss, parts, change, phi in own:
            rows.append(np.concatenate([(F[parts].T @ change).ravel(), phi]))
            delta.append(loss)
            owner.append(i)
    D, delta, owner = np.array(rows), np.array(delta), np.array(owner)
    n, m = len(outputs), delta.size
    P = np.zeros((m + n, m + n))
    P[:m, :m] = D @ D.T
    q = np.concatenate([-delta, np.zeros(n)])
    high = np.concatenate([weight[owner], weight])
    A = np.zeros((n, m + n))
    A[owner, np.arange(m)] = 1.0
    A[np.arange(n), m + np.arange(n)] = 1.0
    factor = None
    if D.shape[1] <= FEW:
        factor = np.vstack([D, np.zeros((n, D.shape[1]))]), np.zeros(m + n)
    below, above, _ = minimum(P, q, np.zeros(m + n), high, A, weight, factor)
    return -above, -below


# -- the nu forms ----------------------------------------------------------------------------------


def nu_classes(K, y, weight, nu):
    """1/2 a'Qa over 0 <= a <= weight, of which each class carries half of nu times the sum; the
    weights scaled so that nu n is that sum.
    """
    n = y.size
    weight = weight * (n / weight.sum())
    half = min(nu * n / 2, weight[y > 0].sum(), weight[y < 0].sum())
    A = np.stack([(y > 0).astype(float), (y < 0).astype(float)])
    return minimum(K * np.outer(y, y), np.zeros(n), np.zeros(n), weight, A, np.full(2, half))[:2]


def one_class(K, weight, nu):
    """1/2 a'Ka over 0 <= a <= weight with the sum nu times that of the weights."""
    n = weight.size
    total = nu * weight.sum()
    return minimum(K, np.zeros(n), np.zeros(n), weight, np.ones((1, n)), [total])[:2]


def tubes(K, t, weight, epsilon=None, nu=None):
    """The dual of the epsilon-SVR, or of the nu-SVR."""
    n = t.size
    z = np.concatenate([np.ones(n), -np.ones(n)])
    P = np.block([[K, -K], [-K, K]])
    q = (0.0 if epsilon is None else epsilon) - z * np.tile(t, 2)
    A, b = z[None, :], np.zeros(1)
    if nu is not None:
        A, b = np.stack([z, np.ones(2 * n)]), np.array([0.0, nu * weight.sum()])
    return minimum(P, q, np.zeros(2 * n), np.tile(weight, 2), A, b)[:2]


# -- kernels ---------------------------------------------------------------------------------------


def kernel(name, X, Z, gamma=1.0, degree=3, coef0=0.0):
    """k(X, Z) in float64, differences taken before squares."""
    X, Z = (A.toarray() if hasattr(A, "toarray") else np.asarray(A) for A in (X, Z))
    X, Z = X.astype(np.float64), Z.astype(np.float64)
    if name == "rbf":
        return np.exp(-gamma * ((X[:, None, :] - Z[None, :, :]) ** 2).sum(axis=2))
    if name == "laplacian":
        return np.exp(-gamma * np.abs(X[:, None, :] - Z[None, :, :]).sum(axis=2))
    if name == "poly":
        return (gamma * (X @ Z.T) + coef0) ** degree
    return X @ Z.T


def within(K_NB, K_BB):
    """Inner products of the rows as far as they lie in the span of the basis."""
    F = coordinates(K_NB, K_BB)
    return F @ F.T


def coordinates(K_NB, K_BB, least=1e-13):
    """Of the rows, in an orthonormal basis of the span; shorter directions are left out."""
    d, U = np.linalg.eigh(0.5 * (K_BB + K_BB.T))
    kept = d > least * d.max()
    return K_NB @ (U[:, kept] / np.sqrt(d[kept]))
