"""The steps of a descent, compiled: several threads work on one step without the interpreter.

A step is three rounds of tasks, with all of a round done before the next begins:

    PLACES   of BLOCK vectors each in the metric, and their exponents;
    PARTS    of the batch: kernel values of PART rows, slopes of the loss, and the gradients by the
             exponents, the coefficients and the metric;
    BLOCKS   of the vectors: the sums over the parts, the gradients by these vectors, Adam.

After the last, the thread that leads moves metric and intercepts. Tasks are claimed by
number, one at a time; the leader waits for nobody but those who have claimed one, so that helpers
may come late, or never. Sums are in the order of parts and blocks, whoever made them: the same bits
for any number of threads.

A thread that finds nothing to do looks SPINS times, and then returns to the interpreter, which
lets others have the processor, and calls again.

Symbols: as in :mod:`slimsvm.solvers.descent`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from slimsvm.atomics import add, exchange, load, store
from slimsvm.compiled import compiled, compiled_within
from slimsvm.forms import EXPONENTIAL, exp_rows
from slimsvm.losses import slopes
from slimsvm.problems.mapped import SOFTMAX

Array = NDArray[Any]
f4 = np.float32
PART, BLOCK = 128, 128  # rows, and vectors, of a task
NO_METRIC, DIAGONAL, FULL = range(3)
FIRST, SECOND = 0.1, 0.01  # one minus the decay of Adam's two averages
SPINS = 100_000  # about a tenth of a millisecond: longer than what one thread does alone
PLACES, PARTS, BLOCKS = range(3)
# places in the shared array, each on a line of the cache of its own: the next number to claim, the
# end of those that may be, how many are done, round, number of its first task, whether it is over
TICKET, LIMIT, DONE, ROUND, BASE, OVER, SHARED = 0, 8, 16, 24, 32, 40, 48


class Numbers(NamedTuple):
    """What does not change in a run of steps."""

    form: int  # of the kernel
    gamma: float
    coef0: float
    degree: int
    loss: int
    p: float  # of the loss
    metric: int
    smooth: float
    ridge: float
    pull_metric: float
    pull_scale: float
    t: int  # steps before these


class Room(NamedTuple):
    """Arrays of a descent: what it moves, and memory to work in."""

    ends: Array  # of R, log_width, Z, bias, log_scale, W in the flat arrays
    flat: Array
    gradient: Array
    first: Array
    second: Array
    rates: Array
    R: Array
    log_width: Array
    Z: Array
    bias: Array
    log_scale: Array
    W: Array
    by_R: Array  # views of the gradient
    by_width: Array
    by_Z: Array
    by_bias: Array
    by_scale: Array
    by_W: Array
    g: Array  # widths, scales, metric, and vectors in it
    e: Array
    M: Array
    B: Array
    E: Array
    by_B: Array
    of_E: Array  # by part: gradients by E, Z, bias, M; errors
    of_Z: Array
    of_bias: Array
    of_M: Array
    wrong: Array
    blocks_M: Array  # by block of vectors
    zeros: Array


class Own(NamedTuple):
    """Memory of one thread, for the rows of a part."""

    x: Array
    z: Array  # in the metric; then the gradient by it
    v: Array
    Q: Array
    K: Array
    slope: Array
    U: Array
    y: Array
    weight: Array
    G: Array
    most: Array


class Batches(NamedTuple):
    """Rows to learn from."""

    X: Array  # (n, d), float32
    Y: Array  # (n, outputs), float32
    weight: Array  # (n,), float32
    rows: Array  # (steps, batch)
    pace: Array  # (steps,): shares of the rates
    errors: Array  # (steps,): weight of those that were wrong, to be filled


# -- who does what ---------------------------------------------------------------------------------


@compiled
def work(shared: Array, who: int, N: Any, A: Any, own: Any, T: Any) -> bool:
    """Tasks, until all steps are done; the first thread, who = 0, leads.

    False: others are not done, or there is nothing to do now: call again.
    """
    n_steps, batch = T.rows.shape
    n_parts = (batch + PART - 1) // PART
    n_blocks = (A.R.shape[0] + BLOCK - 1) // BLOCK
    spins = 0
    while load(shared, OVER) == 0:
        limit = load(shared, LIMIT)
        if who == 0 and load(shared, DONE) == limit:  # the next round
            at = load(shared, ROUND) + 1
            step = at // 3
            if at % 3 == PLACES:
                if step > 0:
                    _move_metric(N, A, n_parts, batch, T.pace[step - 1], N.t + step)
                if step == n_steps:
                    store(shared, OVER, 1)
                    return True
                _place_metric(N.metric, A.log_scale, A.W, A.e, A.M)
            elif at % 3 == BLOCKS:
                for p in range(n_parts):
                    T.errors[step] += A.wrong[p]
            store(shared, ROUND, at)
            store(shared, BASE, limit)
            limit += n_parts if at % 3 == PARTS else n_blocks
            store(shared, LIMIT, limit)
        number = load(shared, TICKET)
        if number >= limit:
            spins += 1
            if spins > SPINS:
                return False
        elif exchange(shared, TICKET, number, number + 1):
            # the round cannot end before this task
            at, task = load(shared, ROUND), number - load(shared, BASE)
            step = at // 3
            if at % 3 == PLACES:
                _place_block(N, A, task)
            elif at % 3 == PARTS:
                _part(N, A, own, T, step, task)
            else:
                _move_block(N, A, n_parts, task, batch, T.pace[step], N.t + step + 1)
            add(shared, DONE, 1)
            spins = 0
    return True


# -- the tasks -------------------------------------------------------------------------------------


@compiled_within
def _part(N: Any, A: Any, own: Any, T: Any, step: int, part: int) -> None:
    """Gradients of one part of a batch: by E, coefficients, intercepts, metric; and errors."""
    v, K, G, U, z = own.v, own.K, own.G, own.U, own.z
    _take(T.rows, step, part * PART, T.X, T.Y, T.weight, own.x, own.y, own.weight)
    if N.metric == FULL:
        np.dot(own.x, A.M, z)
    _augment(N.metric, A.e, own.x, z, v)
    np.dot(v, A.E.T, K)
    _values(N.form, N.degree, K, own.slope, A.zeros)
    np.dot(K, A.Z, G)
    A.wrong[part] = _respond(
        N.loss, N.p, N.smooth, A.bias, own.y, own.weight, G, own.most, A.zeros, A.of_bias, part
    )
    np.dot(G, A.Z.T, U)
    _times_slope(N.form, U, K, own.slope)
    np.dot(U.T, v, A.of_E[part])
    np.dot(K.T, G, A.of_Z[part])
    if N.metric != NO_METRIC:
        np.dot(U, A.E, own.Q)
        _back(own.Q, v, z)
        if N.metric == FULL:
            np.dot(own.x.T, z, A.of_M[part])
        else:
            _diagonal(own.x, z, 0, own.x.shape[0], A.of_M, part)


@compiled
def _take(
    rows: Array, step: int, begin: int, X: Array, Y: Array, weight: Array, x: Array, y: Array,
    w: Array
) -> None:  # fmt: skip
    """Rows by number; where there are no more, rows of weight zero."""
    for i in range(x.shape[0]):
        inside = begin + i < rows.shape[1]
        row = rows[step, begin + i] if inside else rows[step, 0]
        w[i] = weight[row] if inside else f4(0.0)
        for j in range(x.shape[1]):
            x[i, j] = X[row, j]
        for j in range(y.shape[1]):
            y[i, j] = Y[row, j]


@compiled
def _augment(metric: int, e: Array, x: Array, z: Array, v: Array) -> None:
    """v = [z, |z|^2, 1], z the rows x in the metric."""
    n, d = x.shape
    for i in range(n):
        sq = f4(0.0)
        for j in range(d):
            value = z[i, j] if metric == FULL else x[i, j] * e[j]
            v[i, j] = value
            sq += value * value
        v[i, d], v[i, d + 1] = sq, f4(1.0)


@compiled
def _values(form: int, degree: int, K: Array, slope: Array, zeros: Array) -> None:
    """Turn exponents, or what is raised to a power, into values; slopes of powers."""
    if form == EXPONENTIAL:
        exp_rows(K, 1.0, 0.0, zeros, zeros)
        return
    for i in range(K.shape[0]):
        for j in range(K.shape[1]):
            value, below = K[i, j], f4(1.0)
            for _ in range(degree - 1):
                below *= value
            K[i, j], slope[i, j] = below * value, f4(degree) * below


@compiled
def _times_slope(form: int, U: Array, K: Array, slope: Array) -> None:
    """The slope of an exponential is its value."""
    for i in range(U.shape[0]):
        for j in range(U.shape[1]):
            U[i, j] *= K[i, j] if form == EXPONENTIAL else slope[i, j]


@compiled
def _respond(
    form: int, p: float, smooth: float, bias: Array, y: Array, weight: Array, F: Array,
    most: Array, zeros: Array, of_bias: Array, part: int
) -> float:  # fmt: skip
    """Turn scores into slopes of the weighted loss, in place, and sum them.

    Returns the weight of the errors.
    """
    n, c = F.shape
    wrong = 0.0
    for i in range(n):
        own, bad = f4(0.0), False
        for j in range(c):
            F[i, j] += bias[j]
            most[i] = F[i, j] if j == 0 else max(most[i], F[i, j])
            own += y[i, j] * F[i, j]
            bad = bad or F[i, j] * y[i, j] <= 0.0
        if own < most[i] if form == SOFTMAX else bad:
            wrong += weight[i]
    if form == SOFTMAX:
        exp_rows(F, 1.0, -1.0, most, zeros)
    for j in range(c):
        of_bias[part, j] = f4(0.0)
    for i in range(n):
        total = f4(0.0)
        for j in range(c):
            total += F[i, j]
        for j in range(c):
            if form == SOFTMAX:
                label = f4(1.0 - smooth) * y[i, j] + f4(smooth / c)
                F[i, j] = weight[i] * (F[i, j] / total - label)
            else:
                slope = slopes(form, p, y[i, j], F[i, j])[0]
                F[i, j] = weight[i] * f4(slope + 0.5 * smooth * y[i, j])
            of_bias[part, j] += F[i, j]
    return wrong


@compiled
def _back(Q: Array, v: Array, by_z: Array) -> None:
    """The gradient by z from that by [z, |z|^2, 1]."""
    n, d = by_z.shape
    for i in range(n):
        twice = f4(2.0) * Q[i, d]
        for j in range(d):
            by_z[i, j] = Q[i, j] + twice * v[i, j]


@compiled
def _diagonal(x: Array, z: Array, begin: int, end: int, out: Array, at: int) -> None:
    """The diagonal of x'z, of some rows."""
    for j in range(x.shape[1]):
        out[at, j, 0] = f4(0.0)
    for i in range(begin, end):
        for j in range(x.shape[1]):
            out[at, j, 0] += x[i, j] * z[i, j]


@compiled_within
def _move_block(N: Any, A: Any, n_parts: int, block: int, batch: int, pace: float, t: int) -> None:
    """Sums over the parts, gradients of some of the vectors, and a step of Adam for them."""
    begin, end = block * BLOCK, min(A.R.shape[0], (block + 1) * BLOCK)
    _sum_parts(A.of_E, n_parts, begin, end)
    _sum_parts(A.of_Z, n_parts, begin, end)
    _by_coef(A.of_Z, 1.0 / batch, N.ridge, A.Z, A.by_Z, begin, end)
    _by_vectors(N.form, N.gamma, A.of_E, 1.0 / batch, A.E, A.B, A.g, A.by_B, A.by_width, begin, end)
    if N.metric == FULL:
        by_B = A.by_B[begin:end]
        np.dot(A.R[begin:end].T, by_B, A.blocks_M[block])
        np.dot(by_B, A.M.T, A.by_R[begin:end])
    else:
        _scaled(A.by_B, A.e, A.by_R, begin, end)
        _diagonal(A.R, A.by_B, begin, end, A.blocks_M, block)
    for i in range(3):  # R, log_width, Z
        size = (A.ends[i + 1] - A.ends[i]) // A.R.shape[0]
        first, last = A.ends[i] + begin * size, A.ends[i] + end * size
        _adam(A.flat, A.gradient, A.first, A.second, A.rates, pace, t, first, last)


@compiled
def _sum_parts(of: Array, n_parts: int, begin: int, end: int) -> None:
    """Add the gradients of all parts to those of the first."""
    for p in range(1, n_parts):
        for j in range(begin, end):
            for i in range(of.shape[2]):
                of[0, j, i] += of[p, j, i]


@compiled
def _by_coef(
    of_Z: Array, share: float, ridge: float, Z: Array, by_Z: Array, begin: int, end: int
) -> None:
    for j in range(begin, end):
        for i in range(Z.shape[1]):
            by_Z[j, i] = f4(share) * of_Z[0, j, i] + f4(ridge) * Z[j, i]


@compiled
def _by_vectors(
    form: int, gamma: float, of_E: Array, share: float, E: Array, B: Array, g: Array, by_B: Array,
    by_width: Array, begin: int, end: int
) -> None:  # fmt: skip
    """Gradients by vectors in the metric and by the logarithms of widths, from that by E."""
    d, factor = B.shape[1], f4(share)
    for j in range(begin, end):
        if form == EXPONENTIAL:
            last, dots = of_E[0, j, d + 1] * factor, f4(0.0)
            twice = f4(2.0) * g[j]
            for i in range(d):
                slope = of_E[0, j, i] * factor
                dots += B[j, i] * slope
                by_B[j, i] = twice * (slope - B[j, i] * last)
            by_width[j] = twice * dots - g[j] * of_E[0, j, d] * factor + last * E[j, d + 1]
        else:
            for i in range(d):
                by_B[j, i] = f4(gamma) * of_E[0, j, i] * factor


@compiled
def _scaled(given: Array, e: Array, out: Array, begin: int, end: int) -> None:
    for j in range(begin, end):
        for i in range(e.size):
            out[j, i] = given[j, i] * e[i]


@compiled_within
def _move_metric(N: Any, A: Any, n_parts: int, batch: int, pace: float, t: int) -> None:
    """A step of Adam for the intercepts and the metric."""
    for j in range(A.bias.size):
        A.by_bias[j] = f4(0.0)
        for p in range(n_parts):
            A.by_bias[j] += A.of_bias[p, j] / f4(batch)
    if N.metric != NO_METRIC:
        _sum_parts(A.of_M, n_parts, 0, A.e.size)
        _by_metric(N.metric, A.of_M, A.blocks_M, batch, A.e, A.M, A.by_scale, A.by_W)
        _pull(N.pull_scale, N.pull_metric, A.log_scale, A.W, A.by_scale, A.by_W)
    _adam(A.flat, A.gradient, A.first, A.second, A.rates, pace, t, A.ends[3], A.flat.size)


@compiled
def _by_metric(
    metric: int, of_M: Array, blocks_M: Array, batch: int, e: Array, M: Array, by_scale: Array,
    by_W: Array
) -> None:  # fmt: skip
    """Gradients by scales and matrix, from those by their product."""
    for i in range(e.size):
        by_scale[i] = f4(0.0)
        for j in range(of_M.shape[2]):
            total = of_M[0, i, j] / f4(batch)
            for b in range(blocks_M.shape[0]):
                total += blocks_M[b, i, j]
            if metric == FULL:
                by_scale[i] += total * M[i, j]
                by_W[i, j] = total * e[i]
            else:
                by_scale[i] = total * e[i]


@compiled
def _pull(
    of_scale: float, of_W: float, log_scale: Array, W: Array, by_scale: Array, by_W: Array
) -> None:
    """Towards the kernel that was given."""
    for i in range(log_scale.size):
        by_scale[i] += f4(of_scale) * log_scale[i]
    for i in range(W.shape[0]):
        for j in range(W.shape[0]):
            by_W[i, j] += f4(of_W) * (W[i, j] - (f4(1.0) if i == j else f4(0.0)))


@compiled
def _place_metric(metric: int, log_scale: Array, W: Array, e: Array, M: Array) -> None:
    """The metric of the scales and the matrix."""
    for i in range(e.size):
        e[i] = np.exp(log_scale[i]) if metric != NO_METRIC else f4(1.0)
        for j in range(W.shape[0]):
            M[i, j] = e[i] * W[i, j]


@compiled_within
def _place_block(N: Any, A: Any, block: int) -> None:
    """Some vectors in the metric, and their E."""
    begin, end = block * BLOCK, min(A.R.shape[0], (block + 1) * BLOCK)
    if N.metric == FULL:
        np.dot(A.R[begin:end], A.M, A.B[begin:end])
    else:
        _scaled(A.R, A.e, A.B, begin, end)
    _exponents(N.form, N.gamma, N.coef0, A.B, A.log_width, A.g, A.E, begin, end)


@compiled
def _exponents(
    form: int, gamma: float, coef0: float, B: Array, log_width: Array, g: Array, E: Array,
    begin: int, end: int
) -> None:  # fmt: skip
    """E, so that [z, |z|^2, 1] E' are exponents, or what is raised to a power."""
    d = B.shape[1]
    for j in range(begin, end):
        g[j] = width = np.exp(log_width[j])
        sq = f4(0.0)
        for i in range(d):
            E[j, i] = (f4(2.0) * width if form == EXPONENTIAL else f4(gamma)) * B[j, i]
            sq += B[j, i] * B[j, i]
        if form == EXPONENTIAL:
            E[j, d], E[j, d + 1] = -width, -width * sq
        else:
            E[j, d], E[j, d + 1] = f4(0.0), f4(coef0)


@compiled
def _adam(
    flat: Array, gradient: Array, first: Array, second: Array, rates: Array, pace: float, t: int,
    begin: int, end: int
) -> None:  # fmt: skip
    """The t-th step of Adam, for a range of what is moved."""
    one, two, tiny = f4(FIRST), f4(SECOND), f4(1e-9)
    rate = pace * np.sqrt(1.0 - (1.0 - SECOND) ** t) / (1.0 - (1.0 - FIRST) ** t)
    for i in range(begin, end):
        g = gradient[i]
        first[i] += one * (g - first[i])
        second[i] += two * (g * g - second[i])
        flat[i] -= f4(rate) * rates[i] * first[i] / (np.sqrt(second[i]) + tiny)
