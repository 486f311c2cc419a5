"""A model with few vectors, learned from rows that pass by once.

Problem: none that is fixed. Of the rows that have passed, a *reservoir* is kept, and what is
learned is a function with k vectors,

    f(x) = sum_j coef_j exp(-g_j |M'(x - b_j)|^2) + intercept,    M = T diag(e) W,

whose mean loss over the rows that come is small: softmax for classes, squared beyond the tube for
numbers. T is fixed at the beginning: the kernel's own scale, and for many features with few
directions that matter, these directions.

Algorithm. FRESH rows at a time are joined by REPLAY rows drawn from the reservoir, and one step of
Adam (kingma2015adam) moves vectors b, widths g, coefficients, scales e and map W together. W is
pulled towards the identity and e towards one by shares of 1 / (rows seen): few rows keep the kernel
that was given, many may move it. What predicts is an average of the points on the way. Then the
rows may enter the reservoir, whose rows are an even sample of all that have passed, and beyond
1 / LEAST_IN times its size one that slowly forgets (vitter1985reservoir); rows of rare classes
always enter.

The beginning: up to 2 k rows are only collected, and the model is made anew from them whenever they
are a tenth more at the end of a call: k-means within each class, coefficients by ridge regression,
then FIRST steps. A new class has a column more from its first row on, and takes over the vectors
that matter least.

Change: every row is predicted before it is learned from. The errors beyond those that its class had
so far add up (a CUSUM, page1954continuous). When they reach ALARM, the concept has changed: the
rows since the sum was zero make a new reservoir, and the model begins anew with the scales it had.
A run of one class alone is no change of concept: such streams are sorted, not different.

What follows depends on the rows and their order, not on how they were cut into calls, once the
beginning is over. Everything random is drawn from the seed and the number of steps.

Symbols: R vectors in the coordinates after T, v = M'x, B = M'b; K = exp(E), E = [v, |v|^2, 1] A;
G = gradient of the loss in the scores, U = G coef' * K that in E. Cost of a step: three products of
(FRESH + REPLAY) by k by d, one exponential; memory: the reservoir and six times the model.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from slimsvm.ending import STREAM, Certificate

Array = NDArray[Any]
f4 = np.float32
FRESH, REPLAY = 24, 224  # rows of a step; 16 and 240 made a9a worse with more rows
RESERVOIR = 20_000  # rows; 10,000 lose 0.2 points on ijcnn1 and a9a
LEAST_IN = 0.1  # probability with which a row enters at the least
RECENT = 512  # rows from which a stream begins anew after a change
FIRST = 100  # steps of the beginning, of FIRST_ROWS rows each
FIRST_ROWS = 128
GROWTH = 1.1  # more rows by this factor: worth beginning anew
# Adam's steps for vectors, log widths, coefficients, intercept, log scales, map
RATES = (0.25, 0.02, 0.3, 0.3, 0.03, 0.2)
SLOWER, POWER, LEAST_RATE = 400.0, 0.75, 0.05  # rate (1 + t/SLOWER)^-POWER, at least LEAST_RATE
AVERAGED = 8.0, 1e-3  # the average gives step t the share (8 + 1)/(t + 8), at least 1/1000
PULL_MAP, PULL_SCALE = 200.0, 3.0  # towards the kernel given, over the number of rows
RIDGE = 1e-3  # of the coefficients to begin with
WIDE, HELD, FEW = 128, 0.85, 0.2  # more features: directions with 85 %, if these are a fifth
ALARM, ALLOWED = 25.0, (0.04, 0.25)  # errors beyond p + 0.04 + 0.25 p, p those of the class so far
YOUNG, JUDGED = 100, 200  # rows of a class before its errors are measured, and until they count
OTHERS = 0.02  # share of rows of other classes without which there is no change of concept
MEMORY = 2000.0  # rows over which errors are averaged
TINY = f4(1e-9)
BY_CLASS = ("passed", "judged", "error", "placed")


@dataclass
class RowsOfCall:
    """Rows that pass by: dense float32, class numbers or targets, and weights."""

    X: Array
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


def together(*parts: RowsOfCall) -> RowsOfCall:
    """One after the other."""
    if len(parts) == 1:
        return parts[0]
    return RowsOfCall(
        np.concatenate([p.X for p in parts]),
        np.concatenate([p.target for p in parts]),
        np.concatenate([p.weight for p in parts]),
    )


@dataclass(frozen=True)
class Layout:
    """Which part of a flat array is what."""

    k: int
    d: int
    outputs: int
    full: bool

    def views(self, flat: Array) -> list[Array]:
        """Vectors, log widths, coefficients, intercept, log scales, and the map if there is one."""
        k, d, c = self.k, self.d, self.outputs
        shapes = [(k, d), (k,), (k, c), (c,), (d,)] + [(d, d)] * self.full
        found, at = [], 0
        for shape in shapes:
            size = int(np.prod(shape))
            found.append(flat[at : at + size].reshape(shape))
            at += size
        return found

    @property
    def size(self) -> int:
        """Numbers in all."""
        k, d, c = self.k, self.d, self.outputs
        return k * d + k + k * c + c + d + d * d * self.full


@dataclass
class StreamModel:
    """The function: vectors in the space of the features, and M as one map of the features.

    ``metric`` is (d,) if it scales features, (d, q) if it maps them.
    """

    vectors: Array
    widths: Array
    coef: Array
    intercept: Array
    metric: Array


def _none(*shape: int) -> Any:
    return field(default_factory=lambda: np.zeros(shape, f4))


@dataclass
class StreamState:
    """All that is known of a stream, as plain values; two streams that agree in them go on alike."""

    seed: int
    n_outputs: int  # classes, or 1 for numbers
    classes: bool
    n_seen: int = 0
    n_since: int = 0  # rows since the last change of the concept
    n_steps: int = 0  # steps of all time: what random numbers depend on
    t: int = 0  # steps since the model began
    begun: int = 0  # rows that it began with
    n_alarms: int = 0
    n_kept: int = 0  # rows in the reservoir, which has room for more
    # the reservoir, rows that wait until there are FRESH, and the last RECENT rows
    kept: RowsOfCall = field(default_factory=lambda: _no_rows(0))
    waiting: RowsOfCall = field(default_factory=lambda: _no_rows(0))
    recent: RowsOfCall = field(default_factory=lambda: _no_rows(0))
    # the model
    k: int = 0
    shift: Array = _none(0)
    turn: Array = _none(0, 0)  # columns: directions; none: all features
    unit: float = 1.0
    offset: float = 0.0  # of targets, and their unit
    spread: float = 1.0
    flat: Array = _none(0)
    average: Array = _none(0)
    first: Array = _none(0)
    second: Array = _none(0)
    # errors of rows before they were learned from
    passed: Array = field(default_factory=lambda: np.zeros(0))  # rows of each class
    judged: Array = field(default_factory=lambda: np.zeros(0))  # those whose errors were measured
    error: Array = field(default_factory=lambda: np.zeros(0))
    placed: Array = field(default_factory=lambda: np.zeros(0))  # vectors given to a late class
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

    @property
    def layout(self) -> Layout:
        """Of the flat arrays."""
        d = self.shift.size if not self.turn.size else self.turn.shape[1]
        return Layout(self.k, d, self.n_outputs, self.flat.size > Layout(
            self.k, d, self.n_outputs, False).size)  # fmt: skip


def _no_rows(d: int, classes: bool = True) -> RowsOfCall:
    return RowsOfCall(np.zeros((0, d), f4), np.zeros(0, int if classes else float), np.zeros(0, f4))


def begun(seed: int, n_features: int, n_outputs: int, classes: bool) -> StreamState:
    """A stream that has seen nothing."""
    state = StreamState(seed, n_outputs if classes else 1, classes)
    state.kept, state.waiting, state.recent = (_no_rows(n_features, classes) for _ in range(3))
    for name in BY_CLASS:
        setattr(state, name, np.zeros(state.n_outputs))
    return state


@dataclass(kw_only=True)
class StreamDescent:
    """The solver; ``max_iter`` limits rows.

    Parameters
    ----------
    n_vectors : int
        k.
    gamma : float or callable
        Of the kernel; a function of the first rows where it is to be found from them.
    epsilon : float
        Half the width of the tube, for numbers.

    Examples
    --------
    >>> import numpy as np
    >>> from slimsvm.run import run
    >>> from slimsvm.solvers.stream_descent import RowsOfCall, StreamDescent, begun
    >>> X = np.random.default_rng(0).uniform(-1, 1, (2000, 2)).astype(np.float32)
    >>> label = (X[:, 0] * X[:, 1] > 0).astype(int)
    >>> state, solver = begun(0, 2, 2, classes=True), StreamDescent(n_vectors=20, gamma=1.0)
    >>> result = run(solver, RowsOfCall(X, label, np.ones(2000, np.float32)), tol=0.0, start=state)
    >>> result.model.vectors.shape, result.certificate.violation < 0.1
    ((20, 2), True)
    """

    done_is_converged: ClassVar[bool] = True  # a pass that is done is what was asked for
    n_vectors: int
    gamma: Any
    epsilon: float = 0.0
    n_reservoir: int = RESERVOIR

    def init(self, problem: RowsOfCall, start: StreamState) -> StreamState:
        """Go on from a state, in place."""
        start.at, start.n_iter, start.done = 0, 0, False
        return start

    def step(self, problem: RowsOfCall, state: StreamState, tol: float, max_iter: int) -> None:
        """Some batches: a tenth of a second or so."""
        S, end = state, min(problem.n, max_iter)
        if self._beginning(S):
            room = 2 * self.n_vectors - S.n_kept
            rows = problem.part(slice(S.at, min(end, S.at + room)))
            self._collect(S, rows)
            S.at += rows.n
            if S.at >= end or S.n_kept >= 2 * self.n_vectors:
                self._begin_if_worth_it(S)
        work = 0
        while S.at < end and work < 64 and not self._beginning(S):
            rows = problem.part(slice(S.at, min(end, S.at + FRESH - S.waiting.n)))
            S.at += rows.n
            S.waiting, work = together(S.waiting, rows), work + 1
            if S.waiting.n == FRESH:
                rows, S.waiting = S.waiting, S.waiting.part(slice(0, 0))
                self._learn(S, rows)
        S.n_iter, S.done = S.at, S.at >= problem.n

    def certificate(self, problem: RowsOfCall, state: StreamState, tol: float) -> Certificate:
        """No problem is solved: what is known is how well rows were predicted before learning."""
        return Certificate(STREAM, state.loss, state.wrong, np.inf, 0.0, "float32")

    def model(self, problem: RowsOfCall, state: StreamState) -> StreamModel:
        """The averaged function."""
        S = state
        R, log_width, Z, bias, *_ = S.layout.views(S.average)
        M = _metric(S.layout, S.average)
        if S.turn.size:
            metric = S.turn @ (M if M.ndim == 2 else np.diag(M))
            vectors = S.shift + R @ S.turn.T / f4(S.unit) ** 2
        else:
            metric, vectors = f4(S.unit) * M, S.shift + R / f4(S.unit)
        spread = S.spread
        return StreamModel(vectors, np.exp(log_width), Z * f4(spread), bias * f4(spread)
                           + f4(S.offset), metric)  # fmt: skip

    # -- the beginning -----------------------------------------------------------------------------

    def _beginning(self, S: StreamState) -> bool:
        return S.begun < 2 * self.n_vectors

    def _collect(self, S: StreamState, rows: RowsOfCall) -> None:
        """Rows of the beginning: all are kept."""
        self._append(S, rows)
        S.n_seen, S.n_since = S.n_seen + rows.n, S.n_since + rows.n
        self._remember(S, rows)
        if S.classes:
            S.passed += np.bincount(rows.target, minlength=S.n_outputs)

    def _begin_if_worth_it(self, S: StreamState) -> None:
        n = S.n_kept
        if n >= 2 * self.n_vectors or n >= GROWTH * S.begun:
            self._begin(S)

    def _begin(self, S: StreamState) -> None:
        """A model from the rows of the reservoir."""
        rows = S.kept.part(slice(0, S.n_kept))
        X, again = rows.X, S.n_alarms > 0 and S.average.size > 0
        scales = S.layout.views(S.average)[4].copy() if again else None
        weight = rows.weight / max(float(rows.weight.mean()), 1e-30)
        S.unit = float(np.sqrt(self.gamma(X) if callable(self.gamma) else self.gamma))
        if not again:
            S.shift = X.mean(axis=0)
            S.turn = _directions(X - S.shift, S.unit)
        V = self._turned(S, X)
        if S.classes:
            label = rows.target
            T = np.eye(S.n_outputs, dtype=f4)[label] - f4(1 / S.n_outputs)
            T *= 4
            groups, S.placed = label, np.where(np.bincount(label, minlength=S.n_outputs), np.inf, 0)
        else:
            S.offset = float(np.average(rows.target, weights=weight))
            S.spread = float(np.sqrt(np.average((rows.target - S.offset) ** 2, weights=weight)))
            S.spread = S.spread if S.spread > 0 else 1.0
            T = ((rows.target - S.offset) / S.spread)[:, None].astype(f4)
            cuts = np.quantile(T[:, 0], np.arange(1, 8) / 8)
            groups = np.searchsorted(cuts, T[:, 0])
        rng = self._random(S)
        B = _centres(V, groups, min(self.n_vectors, rows.n), rng)
        S.k, d = len(B), V.shape[1]
        layout = Layout(S.k, d, S.n_outputs, d <= 2 * self.n_vectors)
        S.flat, S.first, S.second = (np.zeros(layout.size, f4) for _ in range(3))
        views = layout.views(S.flat)
        views[0][:] = B
        if layout.full:
            views[5][:] = np.eye(d)
        if scales is not None and scales.size == d:
            views[4][:] = scales
        K = _values(layout, S.flat, V).astype(np.float64)
        H = (K * weight[:, None]).T @ K
        H[np.diag_indices(S.k)] += RIDGE * len(X)
        views[2][:] = np.linalg.solve(H, (K * weight[:, None]).T @ T)
        S.average, S.t, S.begun = S.flat.copy(), 0, rows.n
        S.cusum, S.since = 0.0, 0
        for _ in range(FIRST):
            some = self._random(S).integers(0, rows.n, FIRST_ROWS)
            self._descend(S, rows.part(some))

    # -- one batch ---------------------------------------------------------------------------------

    def _learn(self, S: StreamState, fresh: RowsOfCall) -> None:
        self._place(S, fresh)
        rng = self._random(S)
        again = rng.integers(0, S.n_kept, REPLAY)
        scores = self._descend(S, together(fresh, S.kept.part(again)))
        self._keep(S, fresh, rng)
        self._remember(S, fresh)
        S.n_seen, S.n_since = S.n_seen + fresh.n, S.n_since + fresh.n
        self._watch(S, fresh, scores[: fresh.n])

    def _random(self, S: StreamState) -> np.random.Generator:
        S.n_steps += 1
        return np.random.default_rng([S.seed, S.n_steps])

    def _turned(self, S: StreamState, X: Array) -> Array:
        V = X - S.shift
        return V @ S.turn if S.turn.size else V * f4(S.unit)

    def _descend(self, S: StreamState, rows: RowsOfCall) -> Array:
        """A step of Adam; returns the scores before it."""
        layout, x, b = S.layout, self._turned(S, rows.X), rows.n
        R, log_width, Z, bias, log_scale, *full = layout.views(S.flat)
        slope = np.empty(layout.size, f4)
        s_R, s_width, s_Z, s_bias, s_scale, *s_map = layout.views(slope)
        d, M = layout.d, _metric(layout, S.flat)
        e, g = np.exp(log_scale), np.exp(log_width)
        v, B = np.empty((b, d + 2), f4), R @ M if full else R * M
        v[:, :d] = x @ M if full else x * M
        np.einsum("ij,ij->i", v[:, :d], v[:, :d], out=v[:, d])
        v[:, d + 1] = 1
        A = _exponent(B, g)
        K = v @ A
        np.exp(np.minimum(K, 0, out=K), out=K)
        scores = K @ Z + bias
        G = self._slope(S, scores, rows)
        U = G @ Z.T
        U *= K
        in_A = v.T @ U
        in_X, last = in_A[:d].T, in_A[d + 1]
        in_B = (2 * g)[:, None] * (in_X - B * last[:, None])
        s_width[:] = g * (2 * np.einsum("ij,ij->i", B, in_X) - in_A[d]) + last * A[d + 1]
        s_Z[:], s_bias[:] = K.T @ G, G.sum(axis=0)
        Q = U @ A.T
        in_v = Q[:, :d] + v[:, :d] * (2 * Q[:, d : d + 1])
        n = max(1, S.n_since)
        if full:
            in_M = x.T @ in_v + R.T @ in_B
            s_R[:], pull = in_B @ M.T, f4(PULL_MAP / n)
            s_scale[:] = np.einsum("ij,ij->i", in_M, M)
            s_map[0][:] = in_M * e[:, None] + pull * full[0]
            s_map[0][np.diag_indices(d)] -= pull
        else:
            s_R[:] = in_B * e
            s_scale[:] = e * (np.einsum("ij,ij->j", x, in_v) + np.einsum("ij,ij->j", R, in_B))
        s_scale += f4(PULL_SCALE / n) * log_scale
        self._move(S, slope, float(np.sqrt(np.einsum("ij,ij->", x, x) / b)))
        return scores

    def _slope(self, S: StreamState, scores: Array, rows: RowsOfCall) -> Array:
        """Of the loss in the scores, by rows; their weights are shares of the mean one."""
        share = rows.weight / max(float(rows.weight.mean()), 1e-30) / rows.n
        if S.classes:
            G = scores - scores.max(axis=1, keepdims=True)
            np.exp(G, out=G)
            G /= G.sum(axis=1, keepdims=True)
            G[np.arange(rows.n), rows.target] -= 1
        else:
            away = scores - ((rows.target - S.offset) / S.spread)[:, None].astype(f4)
            tube = f4(self.epsilon / S.spread)
            G = np.sign(away) * np.maximum(np.abs(away) - tube, 0)
        G *= share[:, None].astype(f4)
        return np.asarray(G, f4)

    def _move(self, S: StreamState, slope: Array, size: float) -> None:
        S.t += 1
        t, layout = S.t, S.layout
        S.first += f4(0.1) * (slope - S.first)
        np.square(slope, out=slope)
        S.second += f4(0.01) * (slope - S.second)
        step = np.sqrt(S.second)
        step += TINY
        np.divide(S.first, step, out=step)
        rate = max(LEAST_RATE, (1 + t / SLOWER) ** -POWER) * min(1.0, t / 20)
        rate *= np.sqrt(1 - 0.99**t) / (1 - 0.9**t)
        d = layout.d
        units = (1 / np.sqrt(2 * d), 1, 1, 1, 1, 1 / (np.sqrt(2 * d) * max(size, 1e-6)))
        if not S.classes:  # targets of unit variance: smaller coefficients than those of a softmax
            units = (units[0], 1, 0.2, 0.2, 1, units[5])
        for part, own, unit in zip(layout.views(step), RATES, units, strict=False):
            part *= f4(rate * own * unit)
        S.flat -= step
        S.average += f4(max(AVERAGED[1], (AVERAGED[0] + 1) / (t + AVERAGED[0]))) * (
            S.flat - S.average
        )

    # -- the reservoir -----------------------------------------------------------------------------

    def _keep(self, S: StreamState, rows: RowsOfCall, rng: np.random.Generator) -> None:
        """Rows may enter the reservoir."""
        room = self.n_reservoir - S.n_kept
        if room > 0:
            self._append(S, rows.part(slice(0, room)))
            rows = rows.part(slice(room, None))
        if not rows.n:
            return
        n, most = S.n_since + rows.n, self.n_reservoir
        enters = rng.random(rows.n) < max(LEAST_IN, most / n)
        if S.classes:
            held = np.bincount(S.kept.target[: S.n_kept], minlength=S.n_outputs)
            enters |= held[rows.target] < most / (4 * S.n_outputs)
        S.kept.put(rng.integers(0, most, rows.n)[enters], rows.part(enters))

    def _append(self, S: StreamState, rows: RowsOfCall) -> None:
        """More rows in the reservoir, which is as large as it has to be, and twice that."""
        end = S.n_kept + rows.n
        if end > S.kept.n:
            larger, room = S.kept.part(slice(0, S.n_kept)), max(end, min(2 * end, self.n_reservoir))
            nothing = rows.part(np.zeros(room - S.n_kept, int)) if rows.n else rows
            S.kept = together(larger, nothing)
        S.kept.put(slice(S.n_kept, end), rows)
        S.n_kept = end

    @staticmethod
    def _remember(S: StreamState, rows: RowsOfCall) -> None:
        """The last RECENT rows, in their order."""
        S.recent = together(S.recent, rows).part(slice(-RECENT, None))

    def _place(self, S: StreamState, fresh: RowsOfCall) -> None:
        """Rows of a class that came late take over the vectors that matter least."""
        if not S.classes:
            return
        label, most = fresh.target, max(1, S.k // (2 * S.n_outputs))
        late = np.flatnonzero(S.placed[label] < most)
        if not late.size:
            return
        layout = S.layout
        views, mean = layout.views(S.flat), layout.views(S.average)
        least = np.argsort(np.abs(mean[2]).max(axis=1), kind="stable")[: late.size]
        late = late[: least.size]
        at = self._turned(S, fresh.X[late])
        for V in (views, mean):
            V[0][least], V[1][least], V[2][least] = at, 0.0, 0.0
            V[2][least, label[late]] = 2.0
        for V in (layout.views(S.first), layout.views(S.second)):
            V[0][least], V[1][least], V[2][least] = 0.0, 0.0, 0.0
        np.add.at(S.placed, label[late], 1)

    # -- change ------------------------------------------------------------------------------------

    def _watch(self, S: StreamState, fresh: RowsOfCall, scores: Array) -> None:
        """What rows cost before they were learned from; an alarm if that jumps."""
        n = fresh.n
        if S.classes:
            label = fresh.target
            missed = (scores.argmax(axis=1) != label).astype(float)
            top = scores.max(axis=1)
            cost = np.log(np.exp(scores - top[:, None]).sum(axis=1)) + top
            cost = cost - scores[np.arange(n), label]
            wrong = missed
        else:
            label = np.zeros(n, int)
            away = np.abs(scores[:, 0] - (fresh.target - S.offset) / S.spread)
            cost, wrong = away**2, away**2  # shares of the variance
            missed = away / (away + np.sqrt(max(S.wrong, 1e-12)))
        S.watched += n
        share = max(n / MEMORY, n / S.watched)
        S.loss += share * (float(cost.mean()) - S.loss)
        S.wrong += share * (float(wrong.mean()) - S.wrong)
        counts = np.bincount(label, minlength=S.passed.size)
        old = S.judged[label] >= JUDGED
        usual = S.error[label]
        beyond = np.where(old, missed - usual - ALLOWED[0] - ALLOWED[1] * usual, 0.0)
        for step in beyond.tolist():
            S.cusum = min(ALARM, max(0.0, S.cusum + step))
            S.since = S.since + 1 if S.cusum > 0.0 else 0
        sums = np.bincount(label, missed, minlength=S.passed.size)
        some = (S.passed >= YOUNG) & (counts > 0)
        S.judged[some] += counts[some]
        share_of = counts[some] / np.minimum(MEMORY, S.judged[some])
        S.error[some] += share_of * (sums[some] / counts[some] - S.error[some])
        S.passed += counts
        if S.cusum >= ALARM and self._several(S):
            self._begin_anew(S)

    @staticmethod
    def _several(S: StreamState) -> bool:
        """Whether the rows since the sum of errors was zero are of several classes."""
        if not S.classes:
            return True
        counts = np.bincount(S.recent.target[-S.since :].astype(int))
        return bool(counts.sum() - counts.max() >= max(2.0, OTHERS * counts.sum()))

    def _begin_anew(self, S: StreamState) -> None:
        """The concept has changed: forget the rows before."""
        S.kept = S.recent.part(slice(-S.since, None))
        S.n_kept = S.kept.n
        S.n_alarms, S.n_since = S.n_alarms + 1, S.kept.n
        for name in BY_CLASS:
            getattr(S, name)[:] = 0.0
        if S.classes:
            S.passed += np.bincount(S.kept.target, minlength=S.n_outputs)
        self._begin(S)


# -- classes ---------------------------------------------------------------------------------------


def with_classes(S: StreamState, place: Array, n_outputs: int) -> None:
    """More classes: those that were known are now at ``place``; in place."""
    old = S.layout
    for rows in (S.kept, S.waiting, S.recent):
        rows.target = place[rows.target] if rows.n else rows.target
    for name in BY_CLASS:
        values = np.zeros(n_outputs)
        values[place] = getattr(S, name)
        setattr(S, name, values)
    new = Layout(old.k, old.d, n_outputs, old.full)
    for name in ("flat", "average", "first", "second"):
        flat = getattr(S, name)
        if not flat.size:
            continue
        wider = np.zeros(new.size, f4)
        for part, (was, now) in enumerate(zip(old.views(flat), new.views(wider), strict=True)):
            if part not in (2, 3):
                now[:] = was
            else:
                now[..., place] = was
                if part == 3 and name in ("flat", "average"):  # nobody expects them yet
                    late = np.setdiff1d(np.arange(n_outputs), place)
                    now[late] = was.min() - 4.0
        setattr(S, name, wider)
    S.n_outputs = n_outputs


# -- the kernel ------------------------------------------------------------------------------------


def _exponent(B: Array, g: Array) -> Array:
    """A, for which [v, |v|^2, 1] A = -g_j |v - B_j|^2."""
    A = np.empty((B.shape[1] + 2, len(B)), f4)
    np.multiply((2 * g)[:, None], B, out=A[:-2].T)
    A[-2] = -g
    A[-1] = -g * np.einsum("ij,ij->i", B, B)
    return A


def _metric(layout: Layout, flat: Array) -> Array:
    *_, log_scale, W = layout.views(flat) if layout.full else [*layout.views(flat), None]
    e = np.exp(log_scale)
    return e if W is None else W * e[:, None]


def _values(layout: Layout, flat: Array, V: Array) -> Array:
    """Kernel values of rows in the coordinates after T."""
    R, log_width, *_ = layout.views(flat)
    M = _metric(layout, flat)
    v, B = (V @ M, R @ M) if M.ndim == 2 else (V * M, R * M)
    E = np.hstack([v, np.einsum("ij,ij->i", v, v)[:, None], np.ones((len(v), 1), f4)])
    return np.exp(np.minimum(E @ _exponent(B, np.exp(log_width)), 0))


def _directions(X: Array, unit: float) -> Array:
    """The principal directions that hold most of the variance; none if these are many."""
    d = X.shape[1]
    if d <= WIDE or len(X) < 2:
        return np.zeros((0, 0), f4)
    value, vector = np.linalg.eigh((X.T @ X).astype(np.float64))
    total = np.cumsum(value[::-1])
    q = int(np.searchsorted(total, HELD * total[-1])) + 1
    if q > FEW * d:
        return np.zeros((0, 0), f4)
    return np.ascontiguousarray(vector[:, ::-1][:, :q] * unit, f4)


def _centres(X: Array, groups: Array, k: int, rng: np.random.Generator) -> Array:
    """k vectors: a few steps of k-means within each group, more of them in larger groups."""
    counts = np.bincount(groups)
    size = np.sqrt(counts)
    quota = np.minimum(np.maximum(counts > 0, np.round(k * size / size.sum())), counts).astype(int)
    while quota.sum() != k:
        open_ = quota < counts if quota.sum() < k else quota > 0
        quota[np.argmax(np.where(open_, counts - quota if quota.sum() < k else quota, -1))] += (
            np.sign(k - quota.sum())
        )
    found = []
    for c, q in enumerate(quota):
        own = rng.permutation(np.flatnonzero(groups == c))
        if not q:
            continue
        S = X[own[: 15 * q]]
        B = S[:q].copy()
        for _ in range(4 if q < len(S) else 0):
            near = (np.einsum("ij,ij->i", B, B) - 2 * (S @ B.T)).argmin(axis=1)
            used, start, count = np.unique(
                np.sort(near), return_index=True, return_counts=True
            )
            order = np.argsort(near, kind="stable")
            B[used] = np.add.reduceat(S[order], start, axis=0) / count[:, None]
        found.append(B)
    return np.vstack(found).astype(f4)


# -- plain values ----------------------------------------------------------------------------------


def to_dict(S: StreamState) -> dict[str, Any]:
    """As plain values, for model files."""
    found: dict[str, Any] = {}
    for own in fields(S):
        value = getattr(S, own.name)
        if own.name in ("at", "n_iter", "done"):
            continue
        if isinstance(value, RowsOfCall):
            value = value.part(slice(0, S.n_kept)) if own.name == "kept" else value
            for name in ("X", "target", "weight"):
                found[f"{own.name}_{name}"] = getattr(value, name)
        else:
            found[own.name] = value
    return found


def from_dict(values: dict[str, Any]) -> StreamState:
    """The way back."""
    given = dict(values)
    rows = {
        name: RowsOfCall(*(np.array(given.pop(f"{name}_{x}")) for x in ("X", "target", "weight")))
        for name in ("kept", "waiting", "recent")
    }
    plain = {name: np.array(v) if isinstance(v, np.ndarray) else v for name, v in given.items()}
    return StreamState(**plain, **rows)
