"""The problem of :mod:`slimsvm.problems.mapped` over rows that are not here.

What needs all rows is a task: scores (:class:`slimsvm.problems.trail.Trail`), slopes and products,
sums along a line. Newton's matrix is that of some of the rows, as it is for very many rows in
memory, too; these are brought here once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slimsvm.losses import Loss, Softmax
from slimsvm.mapping import Form, kernel_values
from slimsvm.problems.intercepts import bends, centred_by, losses_at, risk_and_slopes
from slimsvm.problems.mapped import (
    CHUNK,
    GROUPS,
    MEGABYTES,
    Coordinates,
    Look,
    Mapped,
    MappedSpan,
    Vectors,
    derivatives_along,
)
from slimsvm.problems.subspace import targets, weights
from slimsvm.problems.trail import Direction, Trail
from slimsvm.rows import Block, Rows, serial
from slimsvm.threads import parallel

Array = NDArray[Any]
SINGLE = np.dtype(np.float32)


@dataclass(frozen=True)
class MappedFrame:
    """What a block needs to make kernel values: small, and sent."""

    form: Form
    A: Array = field(repr=False)
    coordinates: Coordinates = field(repr=False)
    metric: Array | None = field(repr=False)
    kept_rows: int
    serial: str = field(default_factory=serial)

    def inner(self, X: Any) -> Array:
        """Rows in inner coordinates and in the metric."""
        Z, M = self.coordinates.of(X, self.A.dtype.type), self.metric
        if M is None:
            return Z
        return Z * M if M.ndim == 1 else Z @ M

    def each(self, block: Block, work: Callable[[slice, Array, int], None]) -> None:
        """work(rows, their values, group) for all chunks of a block, in order within a group."""
        starts, kept = range(0, block.n, CHUNK), self._kept(block)
        known = kept is not None and all(K is not None for K in kept)
        X = None if known else block.X

        def group(g: int) -> None:
            for c in range(g, len(starts), GROUPS):
                rows = slice(starts[c], min(block.n, starts[c] + CHUNK))
                K = None if kept is None else kept[c]
                if K is None:
                    assert X is not None
                    # chunk by chunk: copies of the whole block would be twice its size
                    K = kernel_values(self.form, self.A, self.inner(X[rows]))
                    if kept is not None:
                        kept[c] = K
                work(rows, K, g)

        parallel(group, min(GROUPS, len(starts)), block.n_threads)

    def _kept(self, block: Block) -> list[Array | None] | None:
        if block.start + block.n > self.kept_rows:
            return None
        known = block.kept.get("mapped")
        if known is None or known[0] != self.serial:
            empty: list[Array | None] = [None] * len(range(0, block.n, CHUNK))
            known = block.kept["mapped"] = (self.serial, empty)
        return known[1]

    def scores_in(self, block: Block, coef: Array) -> Array:
        """Sums over the vectors, without intercepts."""
        out, Z = np.empty((block.n, coef.shape[1]), order="F"), coef.astype(self.A.dtype)

        def work(rows: slice, K: Array, g: int) -> None:
            out[rows] = K @ Z

        self.each(block, work)
        return out

    def products(self, block: Block, G: Array) -> Array:
        """sum_i k_j(x_i) G_i of a block, for all vectors."""
        n_groups = min(GROUPS, len(range(0, block.n, CHUNK)))
        parts = np.zeros((n_groups, self.A.shape[1], G.shape[1]))

        def work(rows: slice, K: Array, g: int) -> None:
            parts[g] += K.T @ G[rows].astype(self.A.dtype)

        self.each(block, work)
        return np.asarray(parts.sum(axis=0))


# -- tasks -----------------------------------------------------------------------------------------


def look_at(
    block: Block, frame: MappedFrame, loss: Loss | Softmax, trail: Trail, b: Array
) -> tuple[Any, ...]:
    """K'G, sums of slopes, curvatures and losses; |G| times scores, and squares of the slopes."""
    raw, Y, w = trail.at(block), targets(block), weights(block)
    F = raw + b
    values, slopes, curvature = losses_at(loss, Y, F)
    G = w[:, None] * slopes
    felt = np.abs(G * raw).sum(axis=0), np.square(G).sum(axis=0)
    sums = G.sum(axis=0), np.asarray(w @ curvature), float(np.sum(w @ values))
    return frame.products(block, G), *sums, *felt


def centre_at(
    block: Block, loss: Loss | Softmax, trail: Trail, b: Array
) -> tuple[float, Array, Array, Array, float, float]:
    """A task: all that is asked of the scores with some intercepts, in one pass.

    See :mod:`slimsvm.problems.intercepts`; and the weight of rows whose class is found, and of all
    rows.
    """
    F, Y, w = trail.at(block) + b, targets(block), weights(block)
    right = found_among(F, Y, w), float(w.sum())
    return *risk_and_slopes(loss, Y, w, F), bends(loss, Y, w, F), *right


def found_among(F: Array, Y: Array, w: Array) -> float:
    """The weight of rows whose class is found."""
    if Y.shape[1] > 1:
        return float(w @ (F.argmax(axis=1) == Y.argmax(axis=1)))
    return float(w @ ((F[:, 0] > 0) == (Y[:, 0] > 0)))


def along_at(
    block: Block,
    frame: MappedFrame,
    loss: Loss | Softmax,
    trail: Trail,
    b: Array,
    direction: Direction,
    d_intercept: Array,
    t: float,
) -> tuple[float, float]:
    """A task: see :func:`slimsvm.problems.mapped.derivatives_along`."""
    F, line = trail.at(block) + b, direction.at(block, frame) + d_intercept
    return derivatives_along(loss, targets(block), weights(block), F + t * line, line)


def spread_at(block: Block, trail: Trail, b: Array, mean: float) -> tuple[float, ...]:
    """A task: weighted sums for R^2: errors, squares and targets around a mean, weights."""
    f, y, w = trail.at(block)[:, 0] + b, targets(block)[:, 0], weights(block)
    off = y - mean
    return (
        float(w @ np.square(y - f)),
        float(w @ np.square(off)),
        float(w @ off),
        float(w.sum()),
    )


# -- the problem -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class MappedRows:
    """All rows, wherever they are, with targets in columns and weights that include C.

    Parameters
    ----------
    rows : Rows
        The rows.
    near : Mapped
        Some of them, here: those of Newton's matrix. Their weights make up for the others.
    coordinates : Coordinates
        From features to inner coordinates.
    metric : array, optional
        What these are multiplied with; near rows are in the metric already.
    dtype : type
        Of kernel values.
    bytes_to_read : int
        What the source of the rows needs for itself, which is part of ``max_memory``.
    """

    rows: Rows
    near: Mapped
    coordinates: Coordinates
    metric: Array | None = None
    dtype: Any = SINGLE
    bytes_to_read: int = 0

    @property
    def n(self) -> int:
        """Number of rows."""
        return self.rows.n

    @property
    def loss(self) -> Any:
        """What a mistake costs."""
        return self.near.loss

    @property
    def form(self) -> Form:
        """Of the kernel in inner coordinates."""
        return self.near.form

    @property
    def norm(self) -> float:
        """Kernel values are so many times those of ``form``."""
        return self.near.norm

    @property
    def fit_intercept(self) -> bool:
        """Whether there are intercepts."""
        return self.near.fit_intercept

    @property
    def max_memory(self) -> float | None:
        """Megabytes for kernel values."""
        return self.near.max_memory

    @property
    def total_weight(self) -> float:
        """Of all rows, about: near rows make up for the others."""
        return self.near.total_weight

    def span(self, vectors: Vectors) -> RowsSpan:
        """Kernel values of the rows against vectors, which are in the metric already."""
        return RowsSpan(self, vectors)

    def in_metric(self, vectors: Vectors) -> MappedRows:
        """The same problem in coordinates in which the metric of the vectors is the plain one."""
        M = vectors.metric
        if M is None:
            return self
        return replace(self, near=self.near.in_metric(vectors)[0], metric=M.astype(self.dtype))

    def wider(self) -> MappedRows:
        """The same in float64."""
        metric = None if self.metric is None else self.metric.astype(np.float64)
        return replace(self, near=self.near.wider(), metric=metric, dtype=np.dtype(np.float64))

    def certificate(self, vectors: Vectors, tol: float, look: Look) -> Any:
        """How far these coefficients are from the best for these vectors."""
        return self.span(vectors).certificate(vectors.coef, look, tol)

    def training_score(self, labels: bool, vectors: Vectors, look: Look | None) -> float:
        """Accuracy, or R^2."""
        b = vectors.intercept
        if look is None:
            trail = Trail(self.span(vectors).frame, b.size, (vectors.coef, np.zeros_like(b)))
            scores = Scores(trail, np.empty(0))
        else:
            scores = look.scores
        if labels:
            right, total = self.centre(scores, b)[4:]
            return float(right / total)
        mean = float(np.average(self.near.Y[:, 0], weights=self.near.weight))
        wrong, squares, off, total = self.rows.sum(spread_at, scores.trail, b, mean)
        spread = squares - off**2 / total
        return 1.0 - float(wrong / spread) if spread > 0 else 0.0

    def centre(self, scores: Scores, b: Array) -> tuple[Any, ...]:
        """What :func:`centre_at` says of these intercepts; each pass is made once."""
        b = np.asarray(b, np.float64)
        found = scores.known.get(b.tobytes().hex())
        if found is None:
            found = self.rows.sum(centre_at, self.loss, scores.trail, b)
            scores.known[b.tobytes().hex()] = found
        return found


@dataclass(frozen=True)
class Scores:
    """The scores of all rows as a trail, and those of the rows that are near.

    ``known``: sums over all rows with some intercepts, by the bytes of these.
    """

    trail: Trail
    near: Array
    known: dict[str, tuple[Any, ...]] = field(default_factory=dict, repr=False)


class RowsSpan(MappedSpan):
    """Kernel values of rows that are elsewhere, and those of the near ones here."""

    problem: Any

    def __init__(self, problem: MappedRows, vectors: Vectors) -> None:
        super().__init__(problem, vectors)  # type: ignore[arg-type]
        budget = (problem.max_memory or MEGABYTES) * 1e6
        # the rows that are near have theirs, and the source what it needs to read
        budget -= problem.near.n * self.k * self.dtype.itemsize
        budget = max(0.0, budget - problem.bytes_to_read)
        kept_rows = int(budget // max(1, self.k * self.dtype.itemsize))
        about = (problem.coordinates, problem.metric, kept_rows)
        self.frame: Any = MappedFrame(problem.form, self.A, *about)
        self.near = MappedSpan(problem.near, vectors)

    @property
    def starts(self) -> range:
        """Nothing is kept here."""
        return range(0)

    def look(self, coef: Array, intercept: Array, scores: Any = None) -> Look:
        """The point with the best intercepts for these coefficients."""
        P, b = self.problem, np.asarray(intercept, np.float64)
        if scores is None:
            trail = Trail(self.frame, b.size, (coef, np.zeros(b.size)))
            scores = Scores(trail, self.near.scores(coef))
        rows, trail = P.rows, scores.trail
        if P.fit_intercept:
            b = centred_by(
                lambda at: P.centre(scores, at)[:3],
                lambda at: P.centre(scores, at)[3],
                b,
                P.total_weight,
                self._centring,
            )
        *sums, shared, squares = rows.sum(look_at, self.frame, P.loss, trail, b)
        # one row that rounding feels as it does all rows
        size = np.sqrt(np.maximum(squares, 1e-300))
        look = self._look(scores, b, size[None], coef, tuple(sums))
        self._shared = shared / size
        return look

    def risk_at(self, look: Look, intercept: Array) -> float:
        """The losses of all rows, weighted, with other intercepts."""
        return float(self.problem.centre(look.scores, intercept)[0])

    def _felt(self, look: Look) -> tuple[Array, Array]:
        return look.slopes, self._shared[None]

    def _felt_by(self, look: Look, coef: Array) -> tuple[Array, Array]:
        """As if all rows were as those that are near: no sum of products is larger."""
        near = self.near.scores(coef)
        share = self.problem.rows.n / len(near)
        return look.slopes, np.sqrt(share * np.square(near).sum(axis=0))[None]

    def _bent(self, error: float, coef: Array, look: Look) -> float:
        largest = np.abs(look.scores.near).max(axis=0, initial=0.0)
        off = self.near._off(error, largest, coef, look.intercept)
        return float(self.problem.total_weight * np.square(off).sum())

    def _error(self) -> float:
        return self.near._error()

    def certificate(self, coef: Array, look: Look, tol: float) -> Any:
        """The gap within the span; ``violation`` is its ratio to the objective."""
        if not hasattr(self, "_shared"):  # looked at by another span of the same vectors
            *_, shared, squares = self.problem.rows.sum(
                look_at, self.frame, self.problem.loss, look.scores.trail, look.intercept
            )
            self._shared = shared / np.sqrt(np.maximum(squares, 1e-300))
        return super().certificate(coef, look, tol)

    def here(self, look: Look) -> tuple[Mapped, MappedSpan, Array, Array]:
        """Rows for Newton's matrix, with their values, scores and weighted slopes."""
        P = self.problem.near
        F = look.scores.near + look.intercept
        return P, self.near, F, P.weight[:, None] * P.loss.gradient(P.Y, F)

    def change(self, step: Array) -> tuple[Direction, Array]:
        """Of the scores, for a change of the coefficients."""
        return Direction(step, np.zeros(step.shape[1])), self.near.scores(step)

    def moved(self, scores: Any, change: Any, t: float) -> Scores:
        """The scores after t of the change."""
        direction, near = change
        there = scores.trail.moved(direction, np.full(near.shape[1], t))
        return Scores(there, scores.near + t * near)

    def along(self, look: Look, change: Any, d_intercept: Array) -> Callable[[float], Any]:
        """Slope and curvature of the losses after t of a change, as a function of t."""
        P, state = self.problem, (look.scores.trail, look.intercept, change[0], d_intercept)
        return lambda t: P.rows.sum(along_at, self.frame, P.loss, *state, t)


def rows_of_matrix(n: int, wanted: int) -> tuple[Array, int]:
    """The rows of Newton's matrix: whole chunks, evenly spread, and the last; how many each is."""
    every = max(1, n // wanted)
    last = (n - 1) // CHUNK
    chunks = sorted({*range(0, last + 1, every), last})
    found = [np.arange(c * CHUNK, min(n, (c + 1) * CHUNK)) for c in chunks]
    return np.concatenate(found), every
