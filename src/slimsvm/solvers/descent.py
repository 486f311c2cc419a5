"""Mini-batch descent over the vectors of a sparse model, their widths, coefficients, and a metric.

Problem: :class:`slimsvm.problems.mapped.Mapped`. The function is

    f(x) = sum_j coef_j k_j(x) + intercept,
    k_j(x) = exp(-width_j |M'x - M'b_j|^2),   M = diag(e) W,

for the rbf kernel, or (x . b_j + coef0)^degree for polynomials; Adam (Kingma & Ba 2015) moves
b, width, coef, intercept, e and W together on batches of rows in an order that follows from the
seed alone, with a rate that rises in a short warm-up and falls to zero along a cosine.

What follows from n rows, d coordinates, k vectors and C (:func:`plan_for`; one recipe, measured on
16 sets): labels are smoothed, so that margins stop growing and one set of rates serves every set; W
is pulled towards the identity and log e towards zero by constants over n, so that few rows keep the
kernel that was given and many may move it; a ridge on the coefficients where rows are few beside
vectors. These belong to the descent alone: :mod:`slimsvm.solvers.mapped_newton` then solves the
problem as it is written for the coefficients of the vectors found.

Work is in float32. A batch is cut into parts of PART rows whatever the number of threads, and the
gradients of the parts are added in their order: the same bits for any number of threads.

Symbols: R vectors (k, d); B = R M; g widths; Z coefficients (k, outputs); v rows of a batch in the
metric, with their squared norms and ones; E the matrix with exponents v E' (a row a vector); G
slopes of the loss; U slopes by the exponents.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slimsvm.compiled import compiled
from slimsvm.forms import EXPONENTIAL, exp_rows
from slimsvm.losses import LOGISTIC, slopes
from slimsvm.problems.mapped import SOFTMAX, Mapped, Vectors
from slimsvm.run import SUBSPACE, Certificate, Limits
from slimsvm.threads import parallel

Array = NDArray[Any]
f4 = np.float32
PART = 128  # rows of a batch that are one task
CHUNK_SECONDS = 0.25  # of steps between two looks at the limits
IN_TIME = 0.8  # of a time limit at which the schedule should be at its end
SMOOTH = 0.05  # of a label: so much of it is spread over all classes
PULL_METRIC, PULL_SCALE = 50.0, 3.0  # over n
RIDGE, ROWS_A_VECTOR = 0.6, 40  # the ridge ends where there are so many rows for each vector
WARM_UP = 0.05  # of the steps
FIRST, SECOND = 0.1, 0.01  # one minus the decay of Adam's two averages
# 12 % through, fewer than this share of the rows just seen were wrong: the rest goes faster
LOOK, EASY, FASTER = 0.12, 0.011, 8.0
# as many steps, at least, as this arithmetic is worth (a tenth of a second for few rows, which are
# gone through several times; a quarter for others), between these numbers
FEW, QUICK, LEAST = 2000, (2e9, 5e9), (250, 600)
CHECKS, PATIENCE = 20, 5  # looks at the rows held out, if there are any; without a gain: the end


@dataclass(frozen=True)
class Plan:
    """How to descend: numbers that :func:`plan_for` finds, so that nobody has to.

    Parameters
    ----------
    n_steps, batch : int
        Steps of the whole schedule, and rows of each.
    metric : {"full", "diagonal", None}
        What of the metric is learned.
    smooth, ridge, pull_metric, pull_scale : float
        See the module.
    rate_vectors, rate_widths, rate_coef, rate_scales, rate_metric : float
        Step sizes at the top of the schedule.
    easy : float
        Share of errors below which the schedule is run through faster; zero: never.
    """

    n_steps: int
    batch: int
    metric: str | None = "full"
    smooth: float = SMOOTH
    ridge: float = 0.0
    pull_metric: float = 0.0
    pull_scale: float = 0.0
    rate_vectors: float = 0.15
    rate_widths: float = 0.02
    rate_coef: float = 0.5
    rate_scales: float = 0.05
    rate_metric: float = 0.2
    easy: float = EASY


def plan_for(problem: Mapped, n_vectors: int, metric: str | None = "auto") -> Plan:
    """The plan that follows from the sizes of a problem.

    Examples
    --------
    >>> import numpy as np
    >>> from slimsvm.kernels import RBF
    >>> from slimsvm.losses import Logistic
    >>> from slimsvm.problems.mapped import Mapped
    >>> from slimsvm.solvers.descent import plan_for
    >>> y = np.where(np.arange(8000) % 2, 1.0, -1.0)[:, None]
    >>> problem = Mapped.of(RBF(0.5), np.zeros((8000, 3)), y, np.ones(8000), Logistic())
    >>> plan = plan_for(problem, 50)
    >>> plan.n_steps, plan.batch, plan.metric
    (800, 256, 'full')
    """
    n, d, k = problem.n, problem.n_coordinates, n_vectors
    if metric == "auto":
        metric = "full" if d <= 2 * k else "diagonal"
    if problem.form[0] != EXPONENTIAL:
        metric = None
    numbers = not problem.takes_labels
    batch = 128 if n < 5000 else 256 if n < 200_000 else 1024
    work = step_work(min(n, batch), k, d, metric)
    least = int(np.clip(QUICK[n > FEW] / work, *LEAST))
    n_steps = max(least, n // (4 if numbers else 10))
    if n >= 200_000:  # many rows: passes over all of them are not what is missing
        n_steps = min(n_steps, max(4000, 8 * k))
    few = max(0.0, 1.0 - n / (ROWS_A_VECTOR * k))
    return Plan(
        n_steps=n_steps,
        batch=min(n, batch),
        metric=metric,
        smooth=SMOOTH if problem.loss_form[0] in (LOGISTIC, SOFTMAX) else 0.0,
        ridge=RIDGE * few / max(problem.total_weight, np.finfo(float).tiny),
        pull_metric=PULL_METRIC / n,
        pull_scale=PULL_SCALE / n,
        easy=0.0 if numbers else EASY,
    )


def step_work(batch: int, k: int, d: int, metric: str | None) -> float:
    """Multiplications and additions of one step, about."""
    return 8.0 * batch * k * (d + 2) + (6.0 * k * d * d if metric == "full" else 0.0)


# -- what is moved ---------------------------------------------------------------------------------


class Moving:
    """Everything that the descent moves, in one flat array, and Adam's two averages of it.

    Parameters
    ----------
    vectors : Vectors
        Where to begin: vectors, widths, coefficients, intercepts and metric.
    problem : Mapped
        For the form of the kernel and of the loss.
    plan : Plan
        For the rates, and what of the metric is learned.
    spread : float
        Root of the mean of |x|^2: steps of W are measured by it.
    coef_scale : float
        Steps of the coefficients are measured by it.
    """

    def __init__(
        self,
        vectors: Vectors,
        problem: Mapped,
        plan: Plan,
        spread: float = 1.0,
        coef_scale: float = 1.0,
    ) -> None:
        k, d, c = vectors.n, vectors.n_coordinates, vectors.coef.shape[1]
        self.kernel_form, self.loss_form, self.plan = problem.form, problem.loss_form, plan
        self.n_threads, self.fit_intercept = problem.n_threads, problem.fit_intercept
        self.full, self.metric = plan.metric == "full", plan.metric is not None
        self.widths_too = problem.form[0] == EXPONENTIAL
        shapes: list[tuple[int, ...]] = [(k, d), (k,), (k, c), (c,), (d,)]
        shapes += [(d, d)] if self.full else []
        sizes = [int(np.prod(shape)) for shape in shapes]
        self._ends, self._shapes = np.cumsum([0, *sizes]), shapes
        total = int(self._ends[-1])
        self.flat, self.gradient = np.zeros(total, f4), np.zeros(total, f4)
        self.first, self.second = np.zeros(total, f4), np.zeros(total, f4)
        self.rates, self.t = np.zeros(total, f4), 0
        self.R, self.log_width, self.Z, self.bias, self.log_scale, *more = self._parts(self.flat)
        self.W: Array | None = more[0] if self.full else None
        self.R[:], self.Z[:], self.bias[:] = vectors.B, vectors.coef, vectors.intercept
        self.log_width[:] = np.log(vectors.widths)
        if vectors.scales is not None:
            self.log_scale[:] = np.log(vectors.scales)
        if self.W is not None:
            self.W[:] = np.eye(d) if vectors.W is None else vectors.W
        root = np.sqrt(2.0 * d)
        rates = [
            plan.rate_vectors / root,
            plan.rate_widths * self.widths_too,
            plan.rate_coef * coef_scale,
            plan.rate_coef * coef_scale * self.fit_intercept,
            plan.rate_scales * self.metric,
            plan.rate_metric / (root * max(spread, 1e-12)),
        ]
        for part, rate in zip(self._parts(self.rates), rates, strict=False):
            part[...] = rate
        self._E = np.empty((k, d + 2), f4)

    def _parts(self, flat: Array) -> list[Array]:
        edges = zip(self._ends[:-1], self._ends[1:], self._shapes, strict=True)
        return [flat[i:j].reshape(shape) for i, j, shape in edges]

    def vectors(self) -> Vectors:
        """What was found so far, as a copy."""
        return Vectors(
            self.R.copy(),
            np.exp(self.log_width.astype(np.float64)),
            self.Z.astype(np.float64),
            self.bias.astype(np.float64),
            np.exp(self.log_scale.astype(np.float64)) if self.metric else None,
            self.W.astype(np.float64) if self.W is not None else None,
        )

    def learn(self, x: Array, y: Array, weight: Array, rate: float) -> float:
        """One step on the rows x of a batch; returns the weight of those that were wrong before.

        Parameters
        ----------
        x : array of shape (rows, d), float32
            In the coordinates of the problem.
        y : array of shape (rows, outputs), float32
            Targets, as :class:`Mapped` has them.
        weight : array of shape (rows,), float32
            One on average.
        rate : float
            Share of the rates of the plan.
        """
        return self.learn_from(lambda part: (x[part], y[part], weight[part]), y.shape[0], rate)

    def learn_from(
        self, rows: Callable[[slice], tuple[Array, Array, Array]], n: int, rate: float
    ) -> float:
        """The same for n rows that are taken part by part: each part takes its own."""
        g = np.exp(self.log_width)
        e = np.exp(self.log_scale) if self.metric else None
        M = None if e is None else e if self.W is None else self.W * e[:, None]
        B = self.R if M is None else self.R * M if M.ndim == 1 else self.R @ M
        E, Z_T = self._E, np.ascontiguousarray(self.Z.T)
        _exponents(*self.kernel_form, B, g, E)
        starts = range(0, n, PART)
        found: list[Any] = [None] * len(starts)

        def work(p: int) -> None:
            given = rows(slice(starts[p], min(n, starts[p] + PART)))
            found[p] = self._slopes_of(*given, M, E, Z_T)

        parallel(work, len(starts), self.n_threads)
        sums = list(found[0])
        for other in found[1:]:
            for i, part in enumerate(other):
                if part is not None:
                    sums[i] = sums[i] + part
        self._chain(sums, 1.0 / n, g, e, M, B, E)
        self._move(rate)
        return float(sums[4])

    def _slopes_of(
        self, x: Array, y: Array, weight: Array, M: Array | None, E: Array, Z_T: Array
    ) -> tuple[Any, ...]:
        """Gradients of one part of a batch: by E, coefficients, intercepts, metric; and errors."""
        n, d = x.shape
        v = np.empty((n, d + 2), f4)
        _augmented(x if M is None else x * M if M.ndim == 1 else x @ M, v)
        K = v @ E.T
        slope = _values(*self.kernel_form, K)
        G = K @ self.Z
        G += self.bias
        wrong = _respond(*self.loss_form, self.plan.smooth, y, weight, G)
        U = G @ Z_T
        U *= slope
        by_metric = None
        if M is not None:
            Q = U @ E
            by_v = np.empty((n, d), f4)
            _back(Q, v, by_v)
            by_metric = x.T @ by_v if M.ndim == 2 else np.einsum("ij,ij->j", x, by_v)
        return U.T @ v, K.T @ G, G.sum(axis=0), by_metric, wrong

    def _chain(
        self, sums: list[Any], share: float, g: Array, e: Any, M: Any, B: Array, E: Array
    ) -> None:
        """The gradient by what is moved, from that by the exponents."""
        by_R, by_width, by_Z, by_bias, by_scale, *more = self._parts(self.gradient)
        by_E, of_Z, of_bias, by_M, _ = sums
        d, plan, factor = B.shape[1], self.plan, f4(share)
        by_B = by_R if M is None else np.empty_like(B)
        _by_vectors(*self.kernel_form[:2], by_E, share, E, B, g, by_B, by_width)
        by_Z[:] = of_Z * factor
        if plan.ridge:
            by_Z += f4(plan.ridge) * self.Z
        by_bias[:] = of_bias * factor
        if M is None:
            return
        by_M = by_M * factor
        if self.W is None:
            by_R[:] = by_B * e
            by_scale[:] = e * (by_M + np.einsum("ij,ij->j", self.R, by_B))
        else:
            by_M += self.R.T @ by_B
            np.dot(by_B, M.T, out=by_R)
            by_scale[:] = np.einsum("ij,ij->i", by_M, M)
            by_W = more[0]
            np.multiply(by_M, e[:, None], out=by_W)
            by_W += f4(plan.pull_metric) * self.W
            by_W[np.diag_indices(d)] -= f4(plan.pull_metric)
        by_scale += f4(plan.pull_scale) * self.log_scale

    def _move(self, rate: float) -> None:
        """One step of Adam."""
        self.t += 1
        debias = np.sqrt(1.0 - (1.0 - SECOND) ** self.t) / (1.0 - (1.0 - FIRST) ** self.t)
        arrays = (self.flat, self.gradient, self.first, self.second, self.rates)
        _adam(*arrays, float(rate * debias))


# -- the solver ------------------------------------------------------------------------------------


@dataclass
class DescentState:
    """Where a descent is."""

    moving: Moving = field(repr=False)
    rng: np.random.Generator = field(repr=False)
    order: Array = field(repr=False)
    at: int = 0
    share: float = 0.0  # of the schedule that is behind
    pace: float = 1.0
    wrong: float = 0.5  # running share of errors, on rows before they are learned from
    n_iter: int = 0
    done: bool = False
    looks: int = 0  # at the rows held out
    begin: float = field(default_factory=time.perf_counter)
    best: tuple[float, Vectors | None, int] = (
        -np.inf,
        None,
        0,
    )  # score, what had it, at which look

    def record(self) -> dict[str, float]:
        """A line of the history."""
        return {"share": self.share, "errors": self.wrong, "n_basis": self.moving.R.shape[0]}


@dataclass(frozen=True, kw_only=True)
class Descent:
    """The descent as a solver under :func:`slimsvm.run.run`; ``tol`` is the business of the finish.

    Parameters
    ----------
    plan : Plan
        How to descend.
    seed : int
        Of the order of the rows.
    score : callable, optional
        Of :class:`Vectors`, on rows held out: the best of CHECKS looks is kept, and the descent
        ends after PATIENCE looks without a gain.
    limits : Limits
        With a time limit, the schedule is run through faster where it would not end in time.
    measured : bool
        Whether the certificate is worth a pass over all rows; otherwise its gap is infinite.
    """

    plan: Plan
    seed: int = 0
    score: Callable[[Vectors], float] | None = None
    limits: Limits = field(default_factory=Limits)
    measured: bool = True
    done_is_converged = True

    def init(self, problem: Mapped, start: Any = None) -> DescentState:
        """Begin at ``start``, a :class:`Vectors`."""
        assert isinstance(start, Vectors)
        some = problem.X[:: max(1, problem.n // 4000)]
        spread = float(np.sqrt(np.square(some, dtype=np.float64).sum(axis=1).mean()))
        scale = 1.0 if problem.takes_labels else 0.2 * max(float(np.std(start.coef)), 1e-12)
        moving = Moving(start, problem, self.plan, spread, scale)
        rng = np.random.default_rng(self.seed)
        return DescentState(moving, rng, rng.permutation(problem.n))

    def step(self, problem: Mapped, state: DescentState, tol: float, max_iter: int) -> None:
        """Batches for half a second, or up to the next look at the rows held out."""
        S, begin = state, time.perf_counter()
        self._hurry(S)
        until = 1.0 if self.score is None else (S.looks + 1) / CHECKS
        while S.share < until and time.perf_counter() - begin < CHUNK_SECONDS:
            self._batch(problem, S)
        S.done = S.share >= 1.0
        if self.score is not None and S.share >= until:
            S.looks += 1
            found = S.moving.vectors()
            now = self.score(found)
            if now >= S.best[0]:
                S.best = (now, found, S.looks)
            S.done = S.done or (S.looks > CHECKS // 2 and S.looks - S.best[2] >= PATIENCE)
        if not np.isfinite(S.moving.flat).all():
            raise FloatingPointError("The descent left the range of float32.")

    def _hurry(self, S: DescentState) -> None:
        """Go through the schedule faster where it would not end in time."""
        most = self.limits.max_time
        if most is None or not S.n_iter:
            return
        now = time.perf_counter()
        a_step = (now - S.begin) / S.n_iter
        left = max(IN_TIME * most - self.limits.seconds, a_step)
        S.pace = max(S.pace, (1.0 - S.share) * self.plan.n_steps * a_step / left)

    def _batch(self, problem: Mapped, S: DescentState) -> None:
        plan, n = self.plan, problem.n
        if S.n_iter == int(LOOK * plan.n_steps) and S.wrong < plan.easy:
            S.pace = max(S.pace, FASTER)
        S.n_iter, S.share = S.n_iter + 1, min(1.0, S.share + S.pace / plan.n_steps)
        if S.at + plan.batch > n:
            S.order, S.at = S.rng.permutation(n), 0
        rows, S.at = S.order[S.at : S.at + plan.batch], S.at + plan.batch
        rate = min(1.0, S.share / WARM_UP) * 0.5 * (1.0 + np.cos(np.pi * S.share))
        wrong = S.moving.learn_from(lambda part: problem.batch(rows[part]), rows.size, rate)
        S.wrong += 0.02 * (wrong / rows.size - S.wrong)

    def certificate(self, problem: Mapped, state: DescentState, tol: float) -> Certificate:
        """Of the coefficients as they are, in the span of the vectors found."""
        if not self.measured:
            return Certificate(SUBSPACE, np.inf, np.inf, np.inf, tol, "float32")
        return problem.certificate(self.model(problem, state), tol)

    def model(self, problem: Mapped, state: DescentState) -> Vectors:
        """What was found: the best on the rows held out, if there are any."""
        best = state.best[1]
        return state.moving.vectors() if best is None else best


# -- loops -----------------------------------------------------------------------------------------


@compiled
def _exponents(
    form: int, gamma: float, coef0: float, degree: int, B: Array, g: Array, E: Array
) -> None:
    """E, so that [x, |x|^2, 1] E' are exponents, or what is raised to a power."""
    k, d = B.shape
    for j in range(k):
        sq, width = np.float32(0.0), g[j]
        if form == EXPONENTIAL:
            for i in range(d):
                E[j, i] = np.float32(2.0) * width * B[j, i]
                sq += B[j, i] * B[j, i]
            E[j, d], E[j, d + 1] = -width, -width * sq
        else:
            for i in range(d):
                E[j, i] = np.float32(gamma) * B[j, i]
            E[j, d], E[j, d + 1] = np.float32(0.0), np.float32(coef0)


@compiled
def _by_vectors(
    form: int,
    gamma: float,
    by_E: Array,
    share: float,
    E: Array,
    B: Array,
    g: Array,
    by_B: Array,
    by_width: Array,
) -> None:
    """Gradients by vectors in the metric and by the logarithms of widths, from that by E."""
    k, d = B.shape
    factor = np.float32(share)
    for j in range(k):
        if form == EXPONENTIAL:
            last, dots = by_E[j, d + 1] * factor, np.float32(0.0)
            twice = np.float32(2.0) * g[j]
            for i in range(d):
                slope = by_E[j, i] * factor
                dots += B[j, i] * slope
                by_B[j, i] = twice * (slope - B[j, i] * last)
            by_width[j] = twice * dots - g[j] * by_E[j, d] * factor + last * E[j, d + 1]
        else:
            for i in range(d):
                by_B[j, i] = np.float32(gamma) * by_E[j, i] * factor


@compiled
def _augmented(x: Array, v: Array) -> None:
    """v = [x, |x|^2, 1]"""
    n, d = x.shape
    for i in range(n):
        sq = np.float32(0.0)
        for j in range(d):
            v[i, j] = x[i, j]
            sq += x[i, j] * x[i, j]
        v[i, d], v[i, d + 1] = sq, np.float32(1.0)


def _values(form: int, gamma: float, coef0: float, degree: int, K: Array) -> Array:
    """Turn exponents into kernel values, in place; returns their slopes."""
    if form == EXPONENTIAL:
        exp_rows(K, 1.0, 0.0, np.zeros(K.shape[0], f4), np.zeros(K.shape[1], f4))
        return K
    slope = f4(degree) * K ** (degree - 1) if degree > 1 else np.ones_like(K)
    np.power(K, degree, out=K)
    return slope


@compiled
def _respond(form: int, p: float, smooth: float, y: Array, weight: Array, F: Array) -> float:
    """Turn scores into slopes of the weighted loss, in place; returns the weight of the errors."""
    n, c = F.shape
    wrong = 0.0
    for i in range(n):
        w = weight[i]
        if form == SOFTMAX:
            most, own = F[i, 0], np.float32(0.0)
            for j in range(c):
                most = max(most, F[i, j])
                own += y[i, j] * F[i, j]
            if own < most:
                wrong += w
            total = np.float32(0.0)
            for j in range(c):
                F[i, j] = np.exp(F[i, j] - most)
                total += F[i, j]
            for j in range(c):
                label = np.float32(1.0 - smooth) * y[i, j] + np.float32(smooth / c)
                F[i, j] = w * (F[i, j] / total - label)
        else:
            bad = False
            for j in range(c):
                bad = bad or F[i, j] * y[i, j] <= 0.0
                slope = slopes(form, p, y[i, j], F[i, j])[0]
                F[i, j] = w * np.float32(slope + 0.5 * smooth * y[i, j])
            if bad:
                wrong += w
    return wrong


@compiled
def _back(Q: Array, v: Array, out: Array) -> None:
    """The gradient by x of [x, |x|^2, 1]."""
    n, d = out.shape
    for i in range(n):
        twice = np.float32(2.0) * Q[i, d]
        for j in range(d):
            out[i, j] = Q[i, j] + twice * v[i, j]


@compiled
def _adam(
    flat: Array, gradient: Array, first: Array, second: Array, rates: Array, rate: float
) -> None:
    one, two, tiny = np.float32(FIRST), np.float32(SECOND), np.float32(1e-9)
    for i in range(flat.size):
        g = gradient[i]
        first[i] += one * (g - first[i])
        second[i] += two * (g * g - second[i])
        flat[i] -= np.float32(rate) * rates[i] * first[i] / (np.sqrt(second[i]) + tiny)
