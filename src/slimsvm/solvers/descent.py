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

Work is in float32, in :mod:`slimsvm.solvers.descent_loops`: the same bits for any number of
threads.

Symbols: R vectors (k, d); B = R M; g widths; Z coefficients (k, outputs); v rows of a batch in the
metric, with their squared norms and ones; E the matrix with exponents v E' (a row a vector); G
slopes of the loss; U slopes by the exponents.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from slimsvm.forms import EXPONENTIAL
from slimsvm.losses import LOGISTIC
from slimsvm.problems.mapped import SOFTMAX, Mapped, Vectors
from slimsvm.run import SUBSPACE, Certificate, Limits
from slimsvm.solvers import descent_loops as loops
from slimsvm.threads import parallel

Array = NDArray[Any]
f4 = np.float32
yield_processor: Callable[[], None] = getattr(os, "sched_yield", lambda: time.sleep(0))
CHUNK_SECONDS = 0.25  # of steps between two looks at the limits
AT_ONCE = 32  # steps without coming back to the interpreter
IN_TIME = 0.8  # of a time limit at which the schedule should be at its end
SMOOTH = 0.05  # of a label: so much of it is spread over all classes
PULL_METRIC, PULL_SCALE = 50.0, 3.0  # over n
RIDGE, ROWS_A_VECTOR = 0.6, 40  # the ridge ends where there are so many rows for each vector
WARM_UP = 0.05  # of the steps
# 12 % through, fewer than this share of the rows just seen were wrong: the rest goes faster
LOOK, EASY, FASTER = 0.12, 0.011, 8.0
# as many steps, at least, as this arithmetic is worth (a tenth of a second for few rows, which are
# gone through several times; a quarter for others), between these numbers
FEW, QUICK, LEAST = 2000, (4e9, 5e9), (400, 600)
LONG = 2e10  # arithmetic of a descent beyond which a diagonal metric has fewer steps
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
    width : float
        Of the vectors, at the beginning: so many times the gamma that was given.
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
    width: float = 1.0


def plan_for(problem: Mapped, n_vectors: int, metric: str | None = "auto") -> Plan:
    """The plan that follows from the sizes of a problem.

    Examples
    --------
    >>> from slimsvm.kernels import RBF
    >>> from slimsvm.losses import Logistic
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
    if metric == "diagonal":  # many coordinates: the first steps of a long way bring the most
        n_steps = min(n_steps, max(least, n // 30, int(LONG / work)))
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
        self._room: loops.Room | None = None
        self._own: list[loops.Own] = []

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
        every = np.arange(y.shape[0])[None]
        return float(self.learn_from(x, y, weight, every, np.array([rate]))[0])

    def learn_from(self, X: Array, Y: Array, weight: Array, rows: Array, pace: Array) -> Array:
        """A step for each line of ``rows``, numbers of rows of X, at shares ``pace`` of the rates.

        Returns the weights of those that were wrong before.
        """
        numbers = self._numbers()
        batches = loops.Batches(X, Y, weight, rows, pace.astype(f4), np.zeros(len(rows)))
        n_parts = -(-rows.shape[1] // loops.PART)
        n_blocks = -(-self.R.shape[0] // loops.BLOCK)
        # on a batch of one part others would wait for nearly all of each step
        n_threads = 1 if n_parts == 1 else min(self.n_threads, max(n_parts, n_blocks))
        room, own = self._room_for(n_parts, n_threads)
        shared = np.zeros(loops.SHARED, np.int64)
        shared[loops.ROUND] = -1

        def work(who: int) -> None:
            try:
                while not loops.work(shared, who, numbers, room, own[who], batches):
                    yield_processor()
            finally:  # the first has led them; if it failed, nobody will
                shared[loops.OVER] = 1

        parallel(work, n_threads, n_threads)
        self.t += len(rows)
        return batches.errors

    def _numbers(self) -> loops.Numbers:
        """The plan, for compiled loops."""
        plan, kind = self.plan, loops.FULL if self.full else loops.DIAGONAL
        form, gamma, coef0, degree = self.kernel_form
        loss, p = self.loss_form
        pulls = float(plan.pull_metric), float(plan.pull_scale)
        return loops.Numbers(
            form, gamma, coef0, degree, loss, p, kind if self.metric else loops.NO_METRIC,
            float(plan.smooth), float(plan.ridge), *pulls, self.t
        )  # fmt: skip

    def _room_for(self, n_parts: int, n_threads: int) -> tuple[loops.Room, list[loops.Own]]:
        """Memory for so many parts of a batch, and threads; what there is, where it suffices."""
        (k, d), c, rows = self.R.shape, self.Z.shape[1], loops.PART
        n_blocks, powers, width = -(-k // loops.BLOCK), 1 if self.widths_too else k, 1

        def empty(*shape: int) -> Array:
            return np.empty(shape, f4)

        if self._room is None or len(self._room.wrong) < n_parts:
            by_R, by_width, by_Z, by_bias, by_scale, *more = self._parts(self.gradient)
            W, by_W = empty(0, 0), empty(0, 0)
            if self.W is not None:
                W, by_W, width = self.W, more[0], d
            self._room = loops.Room(
                self._ends, self.flat, self.gradient, self.first, self.second, self.rates,
                self.R, self.log_width, self.Z, self.bias, self.log_scale, W,
                by_R, by_width, by_Z, by_bias, by_scale, by_W,
                empty(k), np.ones(d, f4), empty(d, width),
                empty(k, d), empty(k, d + 2), empty(k, d),
                empty(n_parts, k, d + 2), empty(n_parts, k, c), empty(n_parts, c),
                empty(n_parts, d, width), np.zeros(n_parts), empty(n_blocks, d, width),
                np.zeros(max(k, c, rows), f4),
            )  # fmt: skip
        while len(self._own) < n_threads:
            shapes = (d, d, d + 2, d + 2, k, powers, k, c)
            x, z, v, Q, K, slope, U, y = (empty(rows, size) for size in shapes)
            last = empty(rows), empty(rows, c), empty(rows)
            self._own.append(loops.Own(x, z, v, Q, K, slope, U, y, *last))
        return self._room, self._own


# -- the solver ------------------------------------------------------------------------------------


@dataclass
class DescentState:
    """Where a descent is."""

    moving: Moving = field(repr=False)
    given: tuple[Array, Array, Array] = field(repr=False)  # rows, targets, weights
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

    keeps_state: ClassVar[bool] = True

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
        return DescentState(moving, problem.in_float32(), rng, rng.permutation(problem.n))

    def step(self, problem: Mapped, state: DescentState, tol: float, max_iter: int) -> None:
        """Batches for a part of a second, or up to the next look at the rows held out."""
        S, begin = state, time.perf_counter()
        self._hurry(S)
        until = 1.0 if self.score is None else (S.looks + 1) / CHECKS
        while S.share < until and time.perf_counter() - begin < CHUNK_SECONDS:
            self._batches(problem, S, until)
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

    def _batches(self, problem: Mapped, S: DescentState, until: float) -> None:
        """Some steps at once."""
        plan, n, look = self.plan, problem.n, int(LOOK * self.plan.n_steps)
        if S.n_iter == look and S.wrong < plan.easy:
            S.pace = max(S.pace, FASTER)
        a_step = S.pace / plan.n_steps
        n_steps = min(AT_ONCE, int(np.ceil((until - S.share) / a_step - 1e-9)))
        if S.n_iter < look:
            n_steps = min(n_steps, look - S.n_iter)
        n_steps = max(1, n_steps)
        rows = np.stack([self._next_rows(S, n) for _ in range(n_steps)])
        share = np.minimum(1.0, S.share + a_step * np.arange(1, n_steps + 1))
        rates = np.minimum(1.0, share / WARM_UP) * 0.5 * (1.0 + np.cos(np.pi * share))
        for wrong in S.moving.learn_from(*S.given, rows, rates):
            S.wrong += 0.02 * (wrong / plan.batch - S.wrong)
        S.n_iter, S.share = S.n_iter + n_steps, float(share[-1])
        S.share = 1.0 if S.share > 1.0 - 1e-9 else S.share

    def _next_rows(self, S: DescentState, n: int) -> Array:
        """Numbers of the rows of a batch."""
        if S.at + self.plan.batch > n:
            S.order, S.at = S.rng.permutation(n), 0
        S.at += self.plan.batch
        return S.order[S.at - self.plan.batch : S.at]

    def certificate(self, problem: Mapped, state: DescentState, tol: float) -> Certificate:
        """Of the coefficients as they are, in the span of the vectors found."""
        if not self.measured:
            return Certificate(SUBSPACE, np.inf, np.inf, np.inf, tol, "float32")
        return problem.certificate(self.model(problem, state), tol)

    def model(self, problem: Mapped, state: DescentState) -> Vectors:
        """What was found: the best on the rows held out, if there are any."""
        best = state.best[1]
        return state.moving.vectors() if best is None else best
