"""A sparse model in a metric that is learned: rows in inner coordinates, and vectors among them.

    min over coef, intercept of  1/2 |f|^2 + sum_i weight_i L(y_i, f(x_i)),
    f(x) = sum_j coef_j k_j(x) + intercept

with the vectors, widths and metric that :mod:`slimsvm.solvers.descent` found. Inner coordinates are
the features without their mean, times the root of gamma (the kernel's width is one there), perhaps
in a few principal directions.

Which norm |f| is, with widths of their own: see :mod:`slimsvm.mapping`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.linalg import cho_solve, cholesky, solve_triangular

from slimsvm.compiled import compiled
from slimsvm.ending import SUBSPACE, Certificate
from slimsvm.forms import EXPONENTIAL, LINEAR, POWER
from slimsvm.kernels import Kernel
from slimsvm.losses import LeastSquares, Loss, Softmax
from slimsvm.mapping import Form, exponents, kernel_values, mapped, norm_matrix
from slimsvm.precision import rounding
from slimsvm.problems.intercepts import centred_by, sums_over
from slimsvm.problems.mapped_wide import directions_of_wide, turned
from slimsvm.problems.span import price_of_jitter
from slimsvm.threads import parallel

Array = NDArray[Any]
SOFTMAX = 100  # beside the forms of the losses that are sums over columns
CHUNK = 2048  # rows whose kernel values are made at once
GROUPS = 8  # of chunks, whose sums are added in order: the same bits for any number of threads
JITTER = {"float32": 1e-6, "float64": 1e-10}  # of the mean of K_BB's diagonal, by type of values
MEGABYTES = 2000.0  # for kernel values, unless something else is said
DIRECTIONS = 128  # coordinates up to which principal directions are not looked for
HELD, AT_MOST = 0.85, 0.2  # of the variance, by this share of the coordinates: then they are taken
LOOKED_AT = 4000  # rows
SEEN = 64  # rows on which errors of kernel values are seen


@dataclass(frozen=True)
class Coordinates:
    """From features to inner coordinates: (x - mean) turn.

    Parameters
    ----------
    mean : array of shape (d,), or None
        None: nothing is subtracted.
    turn : float, or array of shape (d,) or (d, q)
        Root of gamma, perhaps times a metric that was given, or principal directions.
    """

    mean: Array | None
    turn: Any

    def of(self, X: Any, dtype: Any = np.float32) -> Array:
        """Rows in inner coordinates."""
        n, out = X.shape[0], None
        turns = bool(sp.issparse(X)) and np.ndim(self.turn) == 2  # only the result is dense
        away = self.mean @ self.turn if turns and self.mean is not None else 0.0
        step = max(64, (1 << 21) // max(1, self.turn.shape[1] if turns else X.shape[1]))
        for i in range(0, n, step):  # differences in float64, one block at a time
            x = X[i : i + step]
            if turns:
                z = x @ self.turn
                z -= away
            else:
                x = x.toarray() if sp.issparse(x) else x
                x = x.astype(np.float64) if self.mean is None else x - self.mean
                z = x @ self.turn if np.ndim(self.turn) == 2 else x * self.turn
            if out is None:
                out = np.empty((n, z.shape[1]), dtype)
            out[i : i + step] = z
        return np.empty((0, 0), dtype) if out is None else out

    @cached_property
    def away(self) -> Any:
        """Sizes of what is subtracted, in inner coordinates, before terms of both signs meet."""
        if self.mean is None:
            return 0.0
        mean, turn = np.abs(self.mean), np.abs(self.turn)
        return mean @ turn if turn.ndim == 2 else mean * turn

    def then(self, metric: Array | None) -> Coordinates:
        """These coordinates in a metric."""
        if metric is None:
            return self
        turn = np.asarray(self.turn, np.float64)
        if metric.ndim == 1:
            return Coordinates(self.mean, turn * metric)
        if turn.ndim == 2:
            return Coordinates(self.mean, turn @ metric)
        return Coordinates(self.mean, np.broadcast_to(turn, len(metric))[:, None] * metric)


@dataclass(frozen=True)
class Vectors:
    """Vectors in inner coordinates, with all that makes a function of them.

    Attributes
    ----------
    B : array of shape (k, q)
        The vectors, before the metric.
    widths : array of shape (k,)
        Factors of gamma; ones for kernels that have none.
    coef, intercept : arrays of shape (k, outputs), (outputs,)
        The function.
    scales, W : arrays of shape (q,), (q, q), or None
        The metric is diag(scales) W.
    """

    B: Array
    widths: Array
    coef: Array
    intercept: Array
    scales: Array | None = None
    W: Array | None = None

    @property
    def n(self) -> int:
        """Number of vectors."""
        return int(self.B.shape[0])

    @property
    def n_coordinates(self) -> int:
        """Number of inner coordinates."""
        return int(self.B.shape[1])

    @property
    def metric(self) -> Array | None:
        """diag(scales) W: None, its diagonal, or all of it."""
        if self.scales is None:
            return None
        return self.scales if self.W is None else self.scales[:, None] * self.W

    def placed(self, X: Array) -> Array:
        """Rows of inner coordinates in the metric."""
        M = self.metric
        if M is None:
            return X
        M = M.astype(X.dtype)
        return X * M if M.ndim == 1 else X @ M


@dataclass(frozen=True)
class Mapped:
    """Rows in inner coordinates, with targets and weights.

    Parameters
    ----------
    X : array of shape (n, q)
        Rows in inner coordinates, float32, or float64 where they are few.
    Y : array of shape (n, outputs)
        Labels of -1 and +1, ones for the class of a row (softmax), or numbers.
    weight : array of shape (n,)
        C times the weight of each row.
    loss : Loss or Softmax
        What a mistake costs.
    form : tuple
        Of the kernel in inner coordinates; see :mod:`slimsvm.forms`.
    coordinates : Coordinates
        How the rows were made.
    norm : float
        Kernel values are so many times those of ``form``.
    fit_intercept : bool
        Whether there are intercepts, which are not penalised.
    n_threads : int
        Results are the same bits for any number.
    max_memory : float, optional
        Megabytes for kernel values between rows and vectors.
    rounded : type, optional
        What rows were rounded to before they were made wider, and what the model is stored in; by
        default that of the rows.
    """

    X: Array = field(repr=False)
    Y: Array = field(repr=False)
    weight: Array = field(repr=False)
    loss: Loss | Softmax
    form: Form
    coordinates: Coordinates = field(repr=False)
    norm: float = 1.0
    fit_intercept: bool = True
    n_threads: int = 1
    max_memory: float | None = None
    rounded: Any = None

    @classmethod
    def of(
        cls,
        kernel: Kernel,
        X: Any,
        Y: Array,
        weight: Array,
        loss: Loss | Softmax,
        *,
        coordinates: Coordinates | None = None,
        dtype: Any = np.float32,
        **options: Any,
    ) -> Self:
        """The problem of rows as they were given."""
        form, gamma, coef0, degree = kernel.form()
        norm = 1.0
        if coordinates is None:
            coordinates = coordinates_for(kernel, X)
        inner = coordinates.of(X, dtype)
        if form != EXPONENTIAL:  # of mean size one, and with gamma in the coordinates
            power = degree if form == POWER else 1
            sizes = np.abs(kernel.diag_from_sq(np.einsum("ij,ij->i", inner, inner) / gamma))
            norm = float(max(sizes.mean(), np.finfo(float).tiny)) if len(sizes) else 1.0
            shrink = norm ** (-1.0 / power)
            if np.isfinite(shrink) and shrink > 0:
                coef0 *= shrink
                coordinates = replace(coordinates, turn=coordinates.turn * np.sqrt(shrink))
                inner *= dtype(np.sqrt(shrink))
            gamma, degree, form = 1.0, power, POWER
        return cls(
            inner, np.asarray(Y, np.float64), np.asarray(weight, np.float64), loss,
            (form, 1.0, float(coef0), int(degree)), coordinates, norm, **options,
        )  # fmt: skip

    @property
    def n(self) -> int:
        """Number of rows."""
        return int(self.X.shape[0])

    @property
    def n_coordinates(self) -> int:
        """Number of inner coordinates."""
        return int(self.X.shape[1])

    @property
    def dtype(self) -> Any:
        """Of the rows, and of kernel values."""
        return self.X.dtype

    def span(self, vectors: Vectors) -> MappedSpan:
        """Kernel values of the rows against vectors."""
        return MappedSpan(self, vectors)

    @property
    def takes_labels(self) -> bool:
        """Whether targets are labels."""
        return isinstance(self.loss, Softmax) or self.loss.takes_labels or self._signs

    @property
    def _signs(self) -> bool:
        return isinstance(self.loss, LeastSquares) and bool(np.all(np.abs(self.Y[:100]) == 1.0))

    @property
    def stored(self) -> Any:
        """Type in which a model has intercepts: those of targets are in float64."""
        return (self.rounded or self.dtype) if self.takes_labels else np.float64

    @cached_property
    def label(self) -> Array:
        """The number of the class of each row, where there are several outputs."""
        return np.asarray(self.Y.argmax(axis=1))

    @property
    def total_weight(self) -> float:
        """C times the sum of the weights."""
        return float(self.weight.sum())

    @property
    def loss_form(self) -> tuple[int, float]:
        """Number of the loss in compiled loops, and its parameter."""
        return (SOFTMAX, 0.0) if isinstance(self.loss, Softmax) else self.loss.form()

    def in_float32(self) -> tuple[Array, Array, Array]:
        """Coordinates, targets, and weights that are one on average, of all rows."""
        mean = self.total_weight / self.n
        return (
            np.ascontiguousarray(self.X, np.float32),
            np.ascontiguousarray(self.Y, np.float32),
            (self.weight / mean).astype(np.float32),
        )

    def in_metric(self, vectors: Vectors) -> tuple[Mapped, Vectors]:
        """The same problem, and vectors, in coordinates in which the metric is the plain one."""
        if vectors.metric is None:
            return self, vectors
        placed = vectors.placed(vectors.B.astype(np.float64))
        return (
            replace(
                self,
                X=vectors.placed(self.X),
                coordinates=self.coordinates.then(vectors.metric),
            ),
            replace(vectors, B=placed, scales=None, W=None),
        )

    def wider(self) -> Mapped:
        """The same in float64; digits that the rows have lost do not come back."""
        return replace(self, X=self.X.astype(np.float64), rounded=self.rounded or self.dtype)

    def some(self, rows: Array) -> Mapped:
        """The problem on some of its rows."""
        return replace(self, X=self.X[rows], Y=self.Y[rows], weight=self.weight[rows])

    def certificate(self, vectors: Vectors, tol: float, look: Look | None = None) -> Certificate:
        """How far these coefficients and intercepts are from the best for these vectors."""
        span = self.span(vectors)
        if look is None:
            look = span.look(vectors.coef, vectors.intercept)
        return span.certificate_of(vectors, look, tol)

    def risk(self, scores: Array) -> float:
        """The losses of all rows, weighted."""
        return float(np.sum(self.weight @ self.loss.value(self.Y, scores)))


def coordinates_for(
    kernel: Kernel,
    X: Any,
    metric: Array | None = None,
    *,
    turns: bool = True,
    weight: Array | None = None,
    target: Array | None = None,
    rng: Any = None,
) -> Coordinates:
    """Inner coordinates for rows: centred if the kernel allows it, in a metric if one is given.

    Otherwise in principal directions where few of them hold the variance, unless ``turns`` says no;
    sparse rows of many features always in a few (:mod:`slimsvm.problems.mapped_wide`).

    Examples
    --------
    >>> from slimsvm.kernels import RBF
    >>> coordinates_for(RBF(4.0), np.array([[0.0], [2.0]]))
    Coordinates(mean=array([1.]), turn=2.0)
    """
    form, gamma, _, _ = kernel.form()
    root = float(np.sqrt(gamma if form != LINEAR else 1.0))
    if not root > 0.0:
        raise ValueError(
            f"The kernel {kernel!r} has the same value for all rows: there are no vectors to find. "
            "Give a larger gamma; if it comes from the features (gamma='scale'), scale these, for "
            "example with StandardScaler."
        )
    if not kernel.shift_invariant:
        return Coordinates(None, root)
    mean = np.asarray(X.mean(axis=0), np.float64).ravel()
    n, d = X.shape
    if metric is not None:
        return Coordinates(mean, root * metric)
    if turns and turned(X):
        return Coordinates(mean, root * directions_of_wide(X, target, weight, rng)[0])
    if turns and d > DIRECTIONS:
        some = X[:: max(1, n // LOOKED_AT)]
        S = (some.toarray() if sp.issparse(some) else np.asarray(some, np.float64)) - mean
        square = S.T @ S
        if not np.isfinite(square).all():  # said where all rows are looked at
            return Coordinates(mean, root)
        # the sum of q numbers is at most sqrt(q) times the root of the sum of their squares: where
        # even that is too little, there is no need to know them
        most = np.sqrt(AT_MOST * d) * np.linalg.norm(square)
        if most < HELD * np.trace(square):
            return Coordinates(mean, root)
        value, vector = np.linalg.eigh(square)
        total = np.cumsum(value[::-1])
        q = int(np.searchsorted(total, HELD * total[-1])) + 1
        if q <= AT_MOST * d:
            return Coordinates(mean, root * vector[:, ::-1][:, :q])
    return Coordinates(mean, root)


# -- values of all rows ----------------------------------------------------------------------------


@dataclass
class Look:
    """A point of the problem: scores, slopes, and how far it is from the optimum at most."""

    scores: Any  # without intercepts: an array, or how rows that are elsewhere know theirs
    intercept: Array
    slopes: Array  # weighted, (n, outputs)
    gradient: Array  # by the coefficients
    objective: float
    gap: float
    slope: Array  # sums of the slopes
    # intercepts whose losses are known, and the sums of these
    risks: list[tuple[Array, float]] = field(default_factory=list)


class MappedSpan:
    """Kernel values of all rows against vectors with widths in a metric, kept or made again."""

    def __init__(self, problem: Mapped, vectors: Vectors) -> None:
        self.problem, self.k = problem, vectors.n
        self.dtype = problem.dtype
        placed = vectors.placed(vectors.B.astype(np.float64))
        M = vectors.metric
        self.M = None if M is None else M.astype(self.dtype)
        self._wide = M, exponents(problem.form, placed, vectors.widths)
        self.A = self._wide[1].astype(self.dtype)
        self.K_BB = norm_matrix(problem.form, placed, vectors.widths) / problem.norm
        self.jitter = JITTER[self.dtype.name] * float(np.trace(self.K_BB)) / max(1, self.k)
        self.K_BB[np.diag_indices(self.k)] += self.jitter
        self.L = _factor(self.K_BB)
        budget = (problem.max_memory or MEGABYTES) * 1e6
        self._keeps = problem.n * self.k * self.dtype.itemsize <= budget
        self._kept: list[Array | None] = [None] * len(self.starts)

    @property
    def starts(self) -> range:
        """Of the chunks."""
        return range(0, self.problem.n, CHUNK)

    def values(self, chunk: int) -> Array:
        """k_j(x) of the rows of a chunk, (rows, k)."""
        kept = self._kept[chunk]
        if kept is not None:
            return kept
        x = self.problem.X[self.starts[chunk] : self.starts[chunk] + CHUNK]
        K = kernel_values(self.problem.form, self.A, mapped(x, self.M, self.dtype))
        if self._keeps:
            self._kept[chunk] = K
        return K

    def values_of_all(self) -> Array:
        """The same for all rows, float64: for few of them."""
        return np.vstack([self.values(c) for c in range(len(self.starts))]).astype(np.float64)

    def each(self, work: Callable[[slice, Array, int], None]) -> None:
        """work(rows, their values, group) for all chunks; those of a group one after the other."""
        n_chunks, n = len(self.starts), self.problem.n

        def group(g: int) -> None:
            for chunk in range(g, n_chunks, GROUPS):
                start = self.starts[chunk]
                work(slice(start, min(n, start + CHUNK)), self.values(chunk), g)

        parallel(group, min(GROUPS, n_chunks), self.problem.n_threads)

    def scores(self, coef: Array) -> Array:
        """Sums over the vectors, for all rows, without intercepts."""
        out, Z = np.empty((self.problem.n, coef.shape[1])), coef.astype(self.dtype)

        def work(rows: slice, K: Array, g: int) -> None:
            out[rows] = K @ Z

        self.each(work)
        return out

    def products(self, G: Array) -> Array:
        """sum_i k_j(x_i) G_i, for all vectors."""
        parts = np.zeros((min(GROUPS, len(self.starts)), self.k, G.shape[1]))

        def work(rows: slice, K: Array, g: int) -> None:
            parts[g] += K.T @ G[rows].astype(self.dtype)

        self.each(work)
        return np.asarray(parts.sum(axis=0))

    def look(self, coef: Array, intercept: Array, scores: Array | None = None) -> Look:
        """The point with the best intercepts for these coefficients: only there is the gap a bound.

        ``scores`` without intercepts, where they are known.
        """
        P = self.problem
        raw = self.scores(coef) if scores is None else scores
        label = P.label if isinstance(P.loss, Softmax) else None
        sums = sums_over(P.loss, P.Y, P.weight, raw, label)
        b = np.asarray(intercept, np.float64)
        if P.fit_intercept:  # no nearer than the type of the kernel values is worth
            b = centred_by(sums.at, sums.bend, b, P.total_weight, self._centring)
        G, curve, value = sums.look(b)
        look = self._look(raw, b, G, coef, (self.products(G), G.sum(axis=0), curve, value))
        look.risks = sums.risks
        return look

    @property
    def _centring(self) -> float:
        """How near the best intercepts are looked for: as near as kernel values are worth."""
        return 1e-12 if self.dtype == np.float64 else 1e-5

    def _look(self, raw: Any, b: Array, G: Array, coef: Array, sums: tuple[Any, ...]) -> Look:
        """The point, from sums over all rows: K'G, slopes, curvatures and losses."""
        products, slope, curve, value = sums
        gradient = self.K_BB @ coef + products
        gap = 0.5 * float(np.square(solve_triangular(self.L, gradient, lower=True)).sum())
        if self.problem.fit_intercept:
            gap += 0.5 * float((np.square(slope) / np.maximum(curve, 1e-300)).sum())
        objective = 0.5 * float(np.einsum("jc,jc->", coef, self.K_BB @ coef)) + value
        return Look(raw, b, G, gradient, objective, gap, slope)

    # -- what Newton's method asks -----------------------------------------------------------------

    def here(self, look: Look) -> tuple[Mapped, MappedSpan, Array, Array]:
        """Rows for Newton's matrix, with their values, scores and weighted slopes: all of them."""
        return self.problem, self, look.scores + look.intercept, look.slopes

    def change(self, step: Array) -> Any:
        """Of the scores, for a change of the coefficients."""
        return self.scores(step)

    def moved(self, scores: Any, change: Any, t: float) -> Any:
        """The scores after t of the change."""
        return scores + t * change

    def along(self, look: Look, change: Any, d_intercept: Array) -> Callable[[float], Any]:
        """Slope and curvature of the losses after t of a change, as a function of t."""
        P, F, line = self.problem, look.scores + look.intercept, change + d_intercept

        def at(t: float) -> tuple[float, float]:
            return derivatives_along(P.loss, P.Y, P.weight, F + t * line, line)

        return at

    def risk_at(self, look: Look, intercept: Array) -> float:
        """The losses of all rows, weighted, with other intercepts."""
        for b, risk in look.risks:
            if np.array_equal(b, intercept):
                return risk
        return self.problem.risk(look.scores + intercept)

    def certificate_of(self, vectors: Vectors, look: Look, tol: float) -> Certificate:
        """Of vectors with intercepts of their own.

        The look is at the best ones for the coefficients: what theirs cost more is a part of the
        gap.
        """
        found = self.certificate(vectors.coef, look, tol)
        more = self.risk_at(look, vectors.intercept) - self.risk_at(look, look.intercept)
        more = max(0.0, more)
        objective, gap = found.objective + more, found.gap + more
        relative = (look.gap + more) / objective if objective > 0 else 0.0
        return replace(found, objective=objective, gap=gap, violation=relative)

    def certificate(self, coef: Array, look: Look, tol: float) -> Certificate:
        """The gap within the span; ``violation`` is its ratio to the objective."""
        relative = look.gap / look.objective if look.objective > 0 else 0.0
        about = (look.objective, relative, look.gap, tol, str(self.dtype))
        own = self.K_BB @ coef
        plain = self.K_BB - self.jitter * np.eye(self.k)
        error, jitter = self._error(), 0.0
        off = rounding(error, coef, own, *self._felt(look)) + self._bent(error, coef, look)
        if self.k:
            # the bound is the value of a dual point, whose function is another one by this much
            apart = cho_solve((self.L, True), look.gradient, check_finite=False)
            off += rounding(error, apart, self.K_BB @ apart, *self._felt_by(look, apart))
            jitter = price_of_jitter(plain, self.jitter, coef, coef - apart)
        return Certificate(SUBSPACE, *about).rounded(2.0 * off + jitter)

    def _felt(self, look: Look) -> tuple[Array, Array]:
        """Slopes and scores, for the error that rounding makes: of a row that feels it as all."""
        return _as_one_row(*_felt_by_rows(look.slopes, look.scores))

    def _felt_by(self, look: Look, coef: Array) -> tuple[Array, Array]:
        """The same slopes, with the scores of another function, which are made and forgotten."""
        n_groups, Z = min(GROUPS, len(self.starts)), coef.astype(self.dtype)
        parts = np.zeros((n_groups, 2, coef.shape[1]))

        def work(rows: slice, K: Array, g: int) -> None:
            parts[g] += _felt_by_rows(look.slopes[rows], K @ Z)

        self.each(work)
        return _as_one_row(*parts.sum(axis=0))

    def _bent(self, error: float, coef: Array, look: Look) -> float:
        """What errors of scores cost where slopes say nothing: rows on a kink, losses of zero."""
        own, more = self._off(error, np.zeros(1), coef, look.intercept), float(error)
        return float(_squares_off(self.problem.weight, look.scores, more, own))

    def _off(self, error: float, scores: Array, coef: Array, intercept: Array) -> Array:
        """The errors of scores of these sizes."""
        own = np.sqrt(np.square(coef).sum(axis=0))
        eps = float(np.finfo(self.problem.stored).eps)
        return np.asarray(error * (scores + own) + eps * np.abs(intercept))

    def _error(self) -> float:
        """Of a kernel value, seen on a few rows: of its own type, and of what is stored.

        Rows, vectors and metric are rounded, vectors and rows where they are, far from their mean
        perhaps.
        """
        P = self.problem
        eps = float(np.finfo(P.rounded or self.dtype).eps)
        x = P.X[np.unique(np.linspace(0, P.n - 1, min(SEEN, P.n)).astype(np.intp))]
        (M, A), exactly = self._wide, x.astype(np.float64)
        z, far = mapped(exactly, M, np.float64), P.coordinates.then(M).away
        known = kernel_values(P.form, A, z)
        side = np.where(np.arange(z.size).reshape(z.shape) % 3 == 0, -1.0, 1.0)
        moved = kernel_values(P.form, A, z + 2.0 * eps * (z + side * far))
        own = kernel_values(P.form, self.A, mapped(x, self.M, self.dtype))
        off = float(np.abs(own - known).max(initial=0.0))
        off += float(np.abs(moved - known).max(initial=0.0))
        return 2.0 * off + 4.0 * eps


@compiled
def _felt_by_rows(slopes: Array, scores: Array) -> Array:
    """Sums over all rows, by column: of the sizes of slopes times scores, and of squared slopes."""
    n, c = slopes.shape
    sums = np.zeros((2, c))
    for i in range(n):
        for j in range(c):
            sums[0, j] += abs(slopes[i, j] * scores[i, j])
            sums[1, j] += slopes[i, j] * slopes[i, j]
    return sums


def _as_one_row(shared: Array, squares: Array) -> tuple[Array, Array]:
    """Slopes and scores of one row that have these sums."""
    size = np.sqrt(np.maximum(squares, 1e-300))
    return size[None], (shared / size)[None]


@compiled
def _squares_off(weight: Array, scores: Array, error: float, off: Array) -> float:
    """The weighted sum of the squares of error |scores| + off."""
    n, c = scores.shape
    total = 0.0
    for i in range(n):
        own = 0.0
        for j in range(c):
            one = error * abs(scores[i, j]) + off[j]
            own += one * one
        total += weight[i] * own
    return total


def _factor(K: Array) -> Array:
    """Lower Cholesky factor, of K with as much more on its diagonal as that takes."""
    more, size = 0.0, float(np.trace(K)) / max(1, len(K))
    while True:
        try:
            return np.asarray(cholesky(K + more * np.eye(len(K)), lower=True, check_finite=True))
        except np.linalg.LinAlgError:
            more = max(10.0 * more, 1e-12 * size)


def derivatives_along(
    loss: Loss | Softmax, Y: Array, weight: Array, F: Array, line: Array
) -> tuple[float, float]:
    """Slope and curvature of the sum of all losses along a line of scores."""
    G = loss.gradient(Y, F)
    first = float(weight @ np.einsum("ic,ic->i", G, line))
    if isinstance(loss, Softmax):
        p = G + Y
        mean = np.einsum("ic,ic->i", p, line)
        bend = np.einsum("ic,ic->i", p, np.square(line)) - np.square(mean)
    else:
        bend = np.einsum("ic,ic->i", loss.curvature(Y, F), np.square(line))
    return first, float(weight @ bend)


def standardised(problem: Mapped) -> tuple[Mapped, float, float]:
    """A regression whose targets have mean zero and deviation one; the mean and deviation."""
    w = problem.weight / problem.total_weight
    mean = float(w @ problem.Y[:, 0]) if problem.fit_intercept else 0.0
    scale = float(np.sqrt(w @ np.square(problem.Y[:, 0] - mean)))
    scale = scale if scale > 0 and np.isfinite(1.0 / scale) else 1.0
    loss: Any = problem.loss
    if hasattr(loss, "epsilon"):
        loss = replace(loss, epsilon=loss.epsilon / scale)
    return replace(problem, Y=(problem.Y - mean) / scale, loss=loss), mean, scale
