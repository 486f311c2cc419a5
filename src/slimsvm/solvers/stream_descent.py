"""A model with few vectors, learned from rows that pass by once.

Problem: none that is fixed. What is learned is a function of the form of
:mod:`slimsvm.problems.mapped`, k vectors with widths in a metric, whose mean loss over the rows
that come is small: softmax for classes, a tube with squared sides for numbers.

Algorithm. FRESH rows at a time are joined by REPLAY rows drawn from a *reservoir* of rows that have
passed, and one step of Adam moves everything together (:mod:`slimsvm.solvers.descent`). The metric
is pulled towards the kernel that was given by constants over the number of rows: few rows keep it,
many may move it. What predicts is an average of the points on the way. Then the rows may enter the
reservoir: an even sample of all that have passed (Vitter 1985), and beyond 1 / LEAST_IN times its
size one that slowly forgets; rows of rare classes always enter.

The beginning: up to 2 k rows are only collected, and at the end of a call the model is made anew
from them if they are a tenth more: k-means within each class, coefficients by ridge regression,
then FIRST steps and more. A new class has a column from its first row on, and takes over the
vectors that matter least; after some rows of it (LATE) the model is made anew from the reservoir.

Change: every row is predicted before it is learned from. The errors beyond those that its class had
so far add up (CUSUM, Page 1954). When they reach ALARM, the concept has changed: the rows since the
sum was zero make a new reservoir, and the model begins anew with the metric it had. A run of one
class alone is no change of concept: such streams are sorted, not different.

What follows depends on the rows and their order, not on how they were cut into calls, once the
beginning is over. Everything random is drawn from the seed and the number of steps.

Cost of a step: that of a descent on FRESH + REPLAY rows. Memory: the reservoir, in inner
coordinates, and five times the model.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from slimsvm.ending import STREAM, Certificate
from slimsvm.forms import EXPONENTIAL
from slimsvm.kernels import Kernel
from slimsvm.losses import LeastSquares, Softmax, SquaredEpsilonInsensitive
from slimsvm.problems.mapped import Coordinates, Mapped, Vectors, coordinates_for
from slimsvm.rows import MemoryRows
from slimsvm.solvers.descent import Moving, Plan
from slimsvm.solvers.first_vectors import first_vectors

Array = NDArray[Any]
f4 = np.float32
FRESH, REPLAY = 24, 224  # rows of a step; 16 and 240 made a9a worse with more rows
RESERVOIR = 20_000  # rows; 10,000 lose 0.2 points on ijcnn1 and a9a
LEAST_IN = 0.1  # probability with which a row enters at the least
RECENT = 512  # rows from which a stream begins anew after a change
# steps of the beginning, one more for ten rows up to so many, and their rows
FIRST, MORE, FIRST_ROWS = 100, 100, 128
SECOND = 8  # times k rows: the model is made anew, from better ones than the first
# rows of a class that came late for which the model is made anew from the reservoir: 10, then five
# times as many, until it began with 50; and all rows are 2 % more than at the last time
LATE = 10, 5, 50, 1.02
RIDGE = 1e-3  # of the first coefficients: with 1e-5 a9a loses two points after 1,000 rows
GROWTH = 1.1  # so many times the rows are worth beginning anew
SLOWER, POWER, LEAST_RATE = 400.0, 0.75, 0.05  # rate (1 + t/SLOWER)^-POWER, at least LEAST_RATE
WARM_UP = 20  # steps
AVERAGED, LEAST_SHARE = 8.0, 1e-3  # the average gives step t the share (8 + 1)/(t + 8) or 1/1000
PULL_METRIC, PULL_SCALE = 200.0, 3.0  # over the number of rows
PLAN = Plan(
    n_steps=1, batch=FRESH + REPLAY, smooth=0.0, rate_vectors=0.25, rate_coef=0.3, rate_scales=0.03
)
ALARM, ALLOWED = 25.0, (0.04, 0.25)  # errors beyond p + 0.04 + 0.25 p, p those of the class so far
YOUNG, JUDGED = 100, 200  # rows of a class before its errors are measured, and until they count
OTHERS = 0.02  # share of rows of other classes without which there is no change of concept
AT_ONCE = 50 * FRESH  # rows between two looks at the limits
MEMORY = 2000.0  # rows over which errors are averaged
BY_CLASS = ("passed", "judged", "error", "placed", "built")
TINY = 1e-30
AFTER_A_FIT = 2000  # steps that a fitted model counts as
ROWS = ("kept", "waiting", "recent")
PLAIN = (
    "seed", "classes", "n_outputs", "n_kept", "n_seen", "n_since", "n_steps", "n_alarms", "begun",
    "made_at", "inner", "norm", "offset", "unit", "spread", "coef_scale", "loss", "wrong",
    "watched", "cusum", "since",
)  # fmt: skip
ADAM = ("flat", "first", "second")


@dataclass
class RowsOfCall:
    """Rows that pass by, with class numbers or targets, and weights."""

    X: Any
    target: Array
    weight: Array

    @property
    def n(self) -> int:
        """Number of rows."""
        return int(self.target.size)

    def part(self, rows: Any) -> RowsOfCall:
        """Some of them."""
        return RowsOfCall(self.X[rows], self.target[rows], self.weight[rows])

    def put(self, slots: Any, rows: RowsOfCall) -> None:
        """Other rows into these places."""
        self.X[slots], self.target[slots], self.weight[slots] = rows.X, rows.target, rows.weight


def together(first: RowsOfCall, then: RowsOfCall) -> RowsOfCall:
    """One after the other."""
    if not first.n or not then.n:
        return then if then.n else first
    X = (first.X, then.X)
    if sp.issparse(first.X) or sp.issparse(then.X):
        stacked = sp.vstack([sp.csr_matrix(x) for x in X], format="csr")
    else:
        stacked = np.concatenate(X)
    return RowsOfCall(
        stacked,
        np.concatenate([first.target, then.target]),
        np.concatenate([first.weight, then.weight]),
    )


@dataclass
class StreamState:
    """All that is known of a stream: two that agree in it go on alike."""

    seed: int
    classes: bool
    n_outputs: int  # classes, or 1 for numbers
    kept: RowsOfCall  # the reservoir; as given in the beginning, then in inner coordinates
    waiting: RowsOfCall  # as given, until there are FRESH
    recent: RowsOfCall  # the last RECENT
    n_kept: int = 0  # rows of the reservoir, which has room for more
    n_seen: int = 0
    n_since: int = 0  # rows since the last change of the concept
    n_steps: int = 0  # of all time: what random numbers depend on
    n_alarms: int = 0
    begun: int = 0  # rows that the model began with
    made_at: int = 0  # rows since the change, then
    # the model
    kernel: Kernel | None = None
    coordinates: Coordinates | None = None
    inner: bool = False  # the beginning is over: rows are kept in inner coordinates
    moving: Moving | None = field(default=None, repr=False)
    average: Array = field(default_factory=lambda: np.zeros(0, f4), repr=False)
    form: tuple[int, float, float, int] = (0, 1.0, 0.0, 1)  # of the kernel in inner coordinates
    norm: float = 1.0  # kernel values are so many times those of the form
    offset: float = 0.0  # of targets that are numbers, and their unit
    unit: float = 1.0
    spread: float = 1.0  # of rows, by which steps of the metric are measured
    coef_scale: float = 1.0  # and of coefficients
    # of every class: rows, those whose errors were measured, their share, vectors given late
    passed: Array = field(default_factory=lambda: np.zeros(0))
    judged: Array = field(default_factory=lambda: np.zeros(0))
    error: Array = field(default_factory=lambda: np.zeros(0))
    placed: Array = field(default_factory=lambda: np.zeros(0))
    built: Array = field(default_factory=lambda: np.zeros(0))  # rows that the model began with
    # of rows before they were learned from
    loss: float = 0.0
    wrong: float = 0.0
    watched: float = 0.0
    cusum: float = 0.0
    since: int = 0  # rows since the sum was zero
    # of one call
    at: int = 0
    n_iter: int = 0
    done: bool = False

    def record(self) -> dict[str, float]:
        """A line of the history."""
        return {"loss": self.loss, "error": self.wrong, "n_seen": float(self.n_seen)}

    def widen(self, known: Array, classes: Array) -> None:
        """Take part of more classes than were known, in place."""
        if classes.size > known.size:
            with_classes(self, np.searchsorted(classes, known), classes.size)

    def decay(self, factor: float) -> None:
        """Rows that have passed weigh so much less, in place."""
        if factor < 1.0:
            for rows in {id(own): own for own in (self.kept, self.recent)}.values():
                rows.weight = rows.weight * factor

    def to_dict(self) -> dict[str, Any]:
        """As plain values: with them, what follows is the same to the last bit."""
        found: dict[str, Any] = {name: getattr(self, name) for name in (*PLAIN, *BY_CLASS)}
        found["form"] = list(self.form)
        for name in ROWS:
            rows = getattr(self, name)
            rows = rows.part(slice(0, self.n_kept)) if name == "kept" else rows
            found |= {f"{name}_{x}": getattr(rows, x) for x in ("X", "target", "weight")}
        if self.moving is not None and self.coordinates is not None:
            k, d = self.moving.R.shape
            found |= {name: getattr(self.moving, name) for name in ADAM}
            found |= {"average": self.average, "t": self.moving.t, "k": k, "d": d}
            found |= {"mean": self.coordinates.mean, "turn": self.coordinates.turn}
            found["metric"] = self.moving.plan.metric
        return found


def begun(seed: int, X: Any, n_outputs: int, classes: bool) -> StreamState:
    """A stream of rows such as X that has seen none."""
    nothing = RowsOfCall(X[:0], np.zeros(0, int if classes else float), np.zeros(0))
    state = StreamState(seed, classes, n_outputs, nothing, nothing, nothing)
    for name in BY_CLASS:
        setattr(state, name, np.zeros(n_outputs))
    return state


@dataclass(kw_only=True)
class StreamDescent:
    """The solver; ``max_iter`` limits rows.

    Parameters
    ----------
    n_vectors : int
        k.
    kernel : Kernel
        rbf, polynomial or linear; gamma='scale' is found from the rows of the beginning.
    metric : {"full", "diagonal", None}, optional
        What of the metric is learned; 'auto': all of it, unless that outweighs the vectors.
    given : array, optional
        A metric that was given.
    epsilon : float
        Half the width of the tube, for numbers.
    fit_intercept : bool
        Whether there are intercepts.
    n_reservoir : int
        Rows that are kept.
    n_threads : int
        Threads.

    Examples
    --------
    >>> from slimsvm.kernels import RBF
    >>> from slimsvm.run import run
    >>> X = np.random.default_rng(0).uniform(-1, 1, (2000, 2))
    >>> rows = RowsOfCall(X, (X[:, 0] * X[:, 1] > 0).astype(int), np.ones(2000))
    >>> solver = StreamDescent(n_vectors=20, kernel=RBF(1.0))
    >>> result = run(solver, rows, tol=0.0, start=begun(0, X, 2, classes=True))
    >>> result.model.n_seen, result.certificate.violation < 0.1  # 16 rows wait for others
    (1984, True)
    """

    done_is_converged: ClassVar[bool] = True  # a pass that is done is what was asked for
    n_vectors: int
    kernel: Kernel
    metric: str | None = "auto"
    given: Array | None = None
    epsilon: float = 0.0
    fit_intercept: bool = True
    n_reservoir: int = RESERVOIR
    n_threads: int = 1

    def init(self, problem: RowsOfCall, start: Any = None) -> StreamState:
        """Go on from a state, in place."""
        assert isinstance(start, StreamState)
        start.at, start.n_iter, start.done = 0, 0, False
        return start

    def step(self, problem: RowsOfCall, state: StreamState, tol: float, max_iter: int) -> None:
        """Rows of the beginning, or some batches: a tenth of a second or so."""
        S, end = state, min(problem.n, max_iter)
        if self._beginning(S):
            room = 2 * self.n_vectors - S.n_kept
            rows = problem.part(slice(S.at, min(end, S.at + room)))
            S.at += rows.n
            self._collect(S, rows)
            if S.at >= end or S.n_kept >= 2 * self.n_vectors:
                self._begin_if_worth_it(S)
        last = min(end, S.at + AT_ONCE)
        while S.at < last and not self._beginning(S):
            some = slice(S.at, min(last, S.at + FRESH - S.waiting.n))
            S.waiting, S.at = together(S.waiting, problem.part(some)), some.stop
            if S.waiting.n == FRESH:  # always so many: a product of another shape rounds otherwise
                fresh, S.waiting = S.waiting, S.waiting.part(slice(0, 0))
                self._learn(S, _inner(S, fresh))
        S.n_iter, S.done = S.at, S.at >= problem.n

    def certificate(self, problem: RowsOfCall, state: StreamState, tol: float) -> Certificate:
        """No problem is solved: what is known is how well rows were predicted before learning."""
        return Certificate(STREAM, state.loss, state.wrong, np.inf, 0.0, "float32")

    def model(self, problem: RowsOfCall, state: StreamState) -> StreamState:
        """The stream; :func:`vectors_of` has the function."""
        return state

    # -- the beginning -----------------------------------------------------------------------------

    def _beginning(self, S: StreamState) -> bool:
        return S.begun < 2 * self.n_vectors

    def _collect(self, S: StreamState, rows: RowsOfCall) -> None:
        """Rows of the beginning: all are kept."""
        rows = _inner(S, rows) if S.inner else rows
        self._append(S, rows)
        self._passed(S, rows)
        S.passed += _counts(S, rows)

    def _begin_if_worth_it(self, S: StreamState) -> None:
        if S.n_kept >= min(2 * self.n_vectors, GROWTH * S.begun):
            self._begin(S)

    def _begin(self, S: StreamState) -> None:
        """A model from the rows of the reservoir."""
        rows = S.kept.part(slice(0, S.n_kept))
        if not S.classes:
            S.offset, S.unit = _moments(rows, self.fit_intercept)
        if S.inner:
            problem = self._problem(S, rows)
        else:
            S.n_steps = 0  # what follows does not depend on how often it began
            S.kernel = self.kernel.resolve(MemoryRows(rows.X, weight=rows.weight))
            given = (self._targets(S, rows), rows.weight, self._loss(S))
            about = {"weight": rows.weight, "target": given[0] if S.classes else None}
            turns = self.given is None and self.metric in ("auto", "full")
            at = coordinates_for(
                S.kernel, rows.X, self.given, turns=turns, rng=self._random(S), **about
            )
            options: dict[str, Any] = {"fit_intercept": self.fit_intercept, "coordinates": at}
            problem = Mapped.of(S.kernel, rows.X, *given, n_threads=self.n_threads, **options)
            S.form, S.norm, S.coordinates = problem.form, problem.norm, problem.coordinates
            if S.n_kept >= 2 * self.n_vectors:
                S.kept, S.recent = replace(rows, X=problem.X), _inner(S, S.recent)
                S.inner = True
        start = first_vectors(problem, min(self.n_vectors, rows.n), self._random(S), ridge=RIDGE)
        S.spread = float(np.sqrt(np.square(problem.X, dtype=np.float64).sum(axis=1).mean()))
        S.coef_scale = 1.0 if S.classes else 0.2 * max(float(np.std(start.coef)), 1e-12)
        S.moving = self._moving(S, start)
        S.average, S.begun, S.cusum, S.since = S.moving.flat.copy(), rows.n, 0.0, 0
        S.built, S.made_at = _counts(S, rows), S.n_since
        S.placed = np.where(S.built > 0, np.inf, 0.0)
        learned = replace(rows, X=problem.X)
        for _ in range(FIRST + min(MORE, rows.n // 10)):
            self._descend(S, learned.part(self._random(S).integers(0, rows.n, FIRST_ROWS)))

    # -- one batch ---------------------------------------------------------------------------------

    def _learn(self, S: StreamState, fresh: RowsOfCall) -> None:
        self._place(S, fresh)
        scores = scores_of(S, fresh.X)
        rng = self._random(S)
        again = rng.integers(0, max(1, S.n_kept), REPLAY if S.n_kept else 0)
        self._descend(S, together(fresh, S.kept.part(again)))
        self._keep(S, fresh, rng)
        self._passed(S, fresh)
        self._watch(S, fresh, scores)
        if self._is_worth_making_anew(S):
            self._fold_metric(S)
            self._begin(S)

    def _is_worth_making_anew(self, S: StreamState) -> bool:
        """Whether the model began with too few rows, of all classes or of one."""
        if S.begun < SECOND * self.n_vectors <= S.n_since:
            return True
        many = S.passed >= np.maximum(LATE[0], LATE[1] * S.built)
        late = S.classes and bool(np.any(many & (S.built < LATE[2])))
        return late and S.n_since >= LATE[3] * S.made_at

    @staticmethod
    def _random(S: StreamState) -> np.random.Generator:
        S.n_steps += 1
        return np.random.default_rng([S.seed, S.n_steps])

    def _descend(self, S: StreamState, rows: RowsOfCall) -> None:
        """A step of Adam, and what predicts follows."""
        moving = S.moving
        assert moving is not None
        n, t = max(1, S.n_since), moving.t + 1
        moving.plan = replace(moving.plan, pull_metric=PULL_METRIC / n, pull_scale=PULL_SCALE / n)
        rate = max(LEAST_RATE, (1.0 + t / SLOWER) ** -POWER) * min(1.0, t / WARM_UP)
        rate *= min(1.0, (S.n_kept + 1.0) / S.begun)  # less than one after a fit: few to replay
        share = (rows.weight / max(float(rows.weight.mean()), TINY)).astype(f4)
        moving.learn(rows.X, self._targets(S, rows).astype(f4), share, rate)
        S.average += f4(max(LEAST_SHARE, (AVERAGED + 1.0) / (t + AVERAGED))) * (
            moving.flat - S.average
        )

    def _targets(self, S: StreamState, rows: RowsOfCall) -> Array:
        """As the problem has them: ones for the class of a row, or numbers."""
        if S.classes:
            Y = np.zeros((rows.n, S.n_outputs))
            Y[np.arange(rows.n), rows.target] = 1.0
            return Y
        return np.asarray((rows.target - S.offset) / S.unit)[:, None]

    def _loss(self, S: StreamState) -> Any:
        return Softmax() if S.classes else SquaredEpsilonInsensitive(self.epsilon / S.unit)

    def _problem(self, S: StreamState, rows: RowsOfCall) -> Mapped:
        """Of rows in inner coordinates."""
        assert S.coordinates is not None
        given = (self._targets(S, rows), rows.weight, self._loss(S), S.form, S.coordinates, S.norm)
        return Mapped(rows.X, *given, self.fit_intercept, self.n_threads)

    def _moving(self, S: StreamState, start: Vectors) -> Moving:
        metric = self.metric
        if metric == "auto":
            metric = "full" if start.n_coordinates <= 2 * self.n_vectors else "diagonal"
        if S.form[0] != EXPONENTIAL:
            metric = None
        plan = replace(PLAN, metric=metric)
        return Moving(start, self._problem(S, S.recent.part(slice(0, 0))), plan, S.spread,
                      S.coef_scale)  # fmt: skip

    # -- the reservoir -----------------------------------------------------------------------------

    def _keep(self, S: StreamState, rows: RowsOfCall, rng: np.random.Generator) -> None:
        """Rows may enter the reservoir."""
        n, most, room = S.n_since + rows.n, self.n_reservoir, self.n_reservoir - S.n_kept
        if room > 0:
            self._append(S, rows.part(slice(0, room)))
            rows = rows.part(slice(room, None))
        if not rows.n:
            return
        enters = rng.random(rows.n) < max(LEAST_IN, most / n)
        if S.classes:
            held = np.bincount(S.kept.target[: S.n_kept], minlength=S.n_outputs)
            enters |= held[rows.target] < most / (4 * S.n_outputs)
        S.kept.put(rng.integers(0, most, rows.n)[enters], rows.part(enters))

    def _append(self, S: StreamState, rows: RowsOfCall) -> None:
        """More rows in the reservoir, which has room for twice as many as there are."""
        end = S.n_kept + rows.n
        if not S.inner:
            S.kept = together(S.kept, rows)
        elif rows.n:
            if end > S.kept.n:
                room = max(end, min(2 * end, self.n_reservoir)) - S.n_kept
                empty = rows.part(np.zeros(room, int))
                S.kept = together(S.kept.part(slice(0, S.n_kept)), empty)
            S.kept.put(slice(S.n_kept, end), rows)
        S.n_kept = end

    @staticmethod
    def _passed(S: StreamState, rows: RowsOfCall) -> None:
        """Rows were learned from; the last RECENT are remembered in their order."""
        S.n_seen, S.n_since = S.n_seen + rows.n, S.n_since + rows.n
        S.recent = together(S.recent, rows).part(slice(-RECENT, None))

    @staticmethod
    def _place(S: StreamState, fresh: RowsOfCall) -> None:
        """Rows of a class that came late take over the vectors that matter least."""
        moving = S.moving
        assert moving is not None
        if not S.classes:
            return
        label, k = fresh.target, moving.R.shape[0]
        late = np.flatnonzero(S.placed[label] < max(1, k // (2 * S.n_outputs)))[:k]
        if not late.size:
            return
        mean = moving._parts(S.average)
        least = np.argsort(np.abs(mean[2]).max(axis=1), kind="stable")[: late.size]
        for parts in (moving._parts(moving.flat), mean):
            parts[0][least], parts[1][least], parts[2][least] = fresh.X[late], 0.0, 0.0
            parts[2][least, label[late]] = 2.0
        for parts in (moving._parts(moving.first), moving._parts(moving.second)):
            parts[0][least], parts[1][least], parts[2][least] = 0.0, 0.0, 0.0
        np.add.at(S.placed, label[late], 1.0)

    # -- change ------------------------------------------------------------------------------------

    def _watch(self, S: StreamState, fresh: RowsOfCall, scores: Array) -> None:
        """What rows cost before they were learned from; an alarm if that jumps."""
        n, Y = fresh.n, self._targets(S, fresh)
        if S.classes:
            label = fresh.target
            missed = wrong = (scores.argmax(axis=1) != label).astype(float)
            cost = self._loss(S).value(Y, scores)
        else:
            label, away = np.zeros(n, int), np.abs(scores - Y)[:, 0]
            cost = wrong = away**2  # shares of the variance
            missed = away / (away + np.sqrt(max(S.wrong, TINY)))
        S.watched += n
        share = n / min(MEMORY, S.watched)
        S.loss += share * (float(np.mean(cost)) - S.loss)
        S.wrong += share * (float(wrong.mean()) - S.wrong)
        usual, old = S.error[label], S.judged[label] >= JUDGED
        beyond = np.where(old, missed - usual - ALLOWED[0] - ALLOWED[1] * usual, 0.0)
        for more in beyond.tolist():
            S.cusum = min(ALARM, max(0.0, S.cusum + more))
            S.since = S.since + 1 if S.cusum > 0.0 else 0
        counts = _counts(S, fresh)
        some = (S.passed >= YOUNG) & (counts > 0)
        S.judged[some] += counts[some]
        mean = np.bincount(label, missed, minlength=counts.size)[some] / counts[some]
        S.error[some] += counts[some] / np.minimum(MEMORY, S.judged[some]) * (mean - S.error[some])
        S.passed += counts
        if S.cusum >= ALARM and self._several(S):
            self._begin_anew(S)

    @staticmethod
    def _several(S: StreamState) -> bool:
        """Whether the rows since the sum of errors was zero are of several classes."""
        if not S.classes:
            return True
        counts = np.bincount(S.recent.target[-S.since :])
        return bool(counts.sum() - counts.max() >= max(2.0, OTHERS * counts.sum()))

    def _begin_anew(self, S: StreamState) -> None:
        """The concept has changed: forget the rows before, and keep the metric."""
        self._fold_metric(S)
        S.kept = S.recent.part(slice(-S.since, None))
        S.n_kept = S.n_since = S.kept.n
        S.n_alarms += 1
        for name in BY_CLASS:
            getattr(S, name)[:] = 0.0
        S.passed += _counts(S, S.kept)
        self._begin(S)

    @staticmethod
    def _fold_metric(S: StreamState) -> None:
        """The metric becomes a part of the coordinates, where what is made anew begins."""
        assert S.coordinates is not None
        found = _vectors(S)
        S.coordinates = S.coordinates.then(found.metric)
        for rows in {id(own): own for own in (S.kept, S.recent)}.values():
            rows.X = found.placed(rows.X)


def _counts(S: StreamState, rows: RowsOfCall) -> Array:
    """Rows of each class; numbers are one class."""
    if not S.classes:
        return np.array([float(rows.n)])
    return np.bincount(rows.target, minlength=S.n_outputs).astype(float)


def _moments(rows: RowsOfCall, centred: bool) -> tuple[float, float]:
    """Mean and deviation of the targets."""
    mean = float(np.average(rows.target, weights=rows.weight)) if centred else 0.0
    unit = float(np.sqrt(np.average((rows.target - mean) ** 2, weights=rows.weight)))
    return mean, unit if unit > 0 and np.isfinite(1.0 / unit) else 1.0


def _inner(S: StreamState, rows: RowsOfCall) -> RowsOfCall:
    assert S.coordinates is not None
    return replace(rows, X=S.coordinates.of(rows.X)) if rows.n else rows


# -- from a fitted model, and from files -----------------------------------------------------------


def going_on(
    solver: StreamDescent, S: StreamState, kernel: Kernel, at: Coordinates, start: Vectors
) -> None:
    """Let a stream begin with a model: vectors in these coordinates, one output for two classes."""
    coef, intercept = start.coef, start.intercept
    if S.classes and S.n_outputs == 2:
        coef = np.hstack([-0.5 * coef, 0.5 * coef])
        intercept = np.concatenate([-0.5 * intercept, 0.5 * intercept])
    coef, intercept = coef / S.unit, (intercept - S.offset) / S.unit
    form, _, coef0, degree = kernel.form()
    S.kernel, S.coordinates, S.inner, S.form = kernel, at, True, (form, 1.0, coef0, degree)
    S.kept = S.recent = replace(S.kept, X=np.zeros((0, start.n_coordinates), f4))
    S.spread = float(np.sqrt(np.square(start.B).sum(axis=1).mean()))
    S.coef_scale = 1.0 if S.classes else 0.2 * max(float(np.std(coef)), 1e-12)
    S.moving = solver._moving(S, replace(start, coef=coef, intercept=intercept))
    S.moving.t, S.average = AFTER_A_FIT, S.moving.flat.copy()
    S.begun = S.n_since = 2 * solver.n_vectors
    S.placed[:], S.built[:] = np.inf, np.inf


def from_dict(values: dict[str, Any], kernel: Kernel, solver: StreamDescent) -> StreamState:
    """The way back."""
    given: dict[str, Any] = {
        name: RowsOfCall(*(values[f"{name}_{x}"].copy() for x in ("X", "target", "weight")))
        for name in ROWS
    }
    given |= {name: values[name] for name in PLAIN}
    given |= {name: np.array(values[name]) for name in BY_CLASS}
    S = StreamState(**given, form=tuple(values["form"]))
    if "flat" in values:
        k, d, c = values["k"], values["d"], S.n_outputs
        S.kernel, S.coordinates = kernel, Coordinates(values["mean"], values["turn"])
        start = Vectors(np.zeros((k, d)), np.ones(k), np.zeros((k, c)), np.zeros(c))
        S.moving = replace(solver, metric=values["metric"])._moving(S, start)
        for name in ADAM:
            getattr(S.moving, name)[:] = values[name]
        S.moving.t, S.average = int(values["t"]), np.array(values["average"])
    return S


# -- the function ----------------------------------------------------------------------------------


def _vectors(S: StreamState) -> Vectors:
    """The averaged model, in inner coordinates; targets in their unit."""
    moving = S.moving
    assert moving is not None
    R, log_width, Z, bias, log_scale, *more = moving._parts(S.average)
    return Vectors(
        R,
        np.exp(log_width.astype(np.float64)),
        Z,
        bias,
        np.exp(log_scale) if moving.metric else None,
        more[0] if more else None,
    )


def scores_of(S: StreamState, X: Array) -> Array:
    """Scores of rows in inner coordinates."""
    found = _vectors(S)
    B, v = found.placed(found.B), found.placed(X)
    E = v @ B.T
    if S.form[0] == EXPONENTIAL:
        E *= 2
        E -= np.einsum("ij,ij->i", v, v)[:, None]
        E -= np.einsum("ij,ij->i", B, B)
        E *= found.widths.astype(f4)
        np.exp(np.minimum(E, 0, out=E), out=E)
    else:
        np.power(E + f4(S.form[2]), S.form[3], out=E)
    return np.asarray(E @ found.coef + found.intercept)


def vectors_of(S: StreamState) -> Vectors:
    """The function that was learned; two classes have one output."""
    found = _vectors(S)
    coef, intercept = found.coef.astype(np.float64), found.intercept.astype(np.float64)
    if S.classes and S.n_outputs == 2:
        coef, intercept = coef[:, 1:] - coef[:, :1], intercept[1:] - intercept[:1]
    return replace(found, coef=S.unit * coef, intercept=S.unit * intercept + S.offset)


def with_classes(S: StreamState, place: Array, n_outputs: int) -> None:
    """More classes: those that were known are now at ``place``."""
    for rows in {id(r): r for r in (S.kept, S.waiting, S.recent)}.values():
        rows.target = place[rows.target]
    for name in BY_CLASS:
        values = np.zeros(n_outputs)
        values[place] = getattr(S, name)
        setattr(S, name, values)
    S.n_outputs, moving = n_outputs, S.moving
    if moving is None:
        return
    late = np.setdiff1d(np.arange(n_outputs), place)
    k, d = moving.R.shape
    zeros = np.zeros((k, n_outputs)), np.zeros(n_outputs)
    wider = _like(S, Vectors(np.zeros((k, d)), np.ones(k), *zeros))
    arrays = [(getattr(moving, name), getattr(wider, name)) for name in ADAM]
    average = np.zeros_like(wider.flat)
    for at, (was, now) in enumerate([*arrays, (S.average, average)]):
        for part, (a, b) in enumerate(zip(moving._parts(was), wider._parts(now), strict=True)):
            if part not in (2, 3):
                b[...] = a
            else:
                b[..., place] = a
                if part == 3 and at in (0, 3):  # nobody expects them yet
                    b[late] = a.min() - 4.0
    wider.t, S.moving, S.average = moving.t, wider, average


def _like(S: StreamState, start: Vectors) -> Moving:
    """Another one with the same options."""
    old = S.moving
    assert old is not None
    about = Mapped(
        start.B[:0], start.coef[:0], start.widths[:0], Softmax() if S.classes else LeastSquares(),
        S.form, Coordinates(None, 1.0), 1.0, old.fit_intercept, old.n_threads
    )  # fmt: skip
    found = Moving(start, about, old.plan, S.spread, S.coef_scale)
    found.loss_form = old.loss_form
    return found
