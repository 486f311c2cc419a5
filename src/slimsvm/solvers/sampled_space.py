"""Functions that are sums of sampled cuts: the space of :mod:`slimsvm.solvers.sampled_cuts`.

A cut has a slot, and the coordinates of a function are the weights of the slots; inner products of
cuts are the metric. With ``keeps`` the products A of every cut with all parts are kept, in float32,
with the rows they belong to, within a budget of bytes: then scores of all parts cost O(slots n),
and no kernel values but those of a new cut, (its parts) n. Beyond the budget they are made anew in
every pass. Without, only kernel values among the parts of cuts are ever made; a cut of r examples
has few parts where most examples are right, so that those of many cuts are made together.

An intercept is a constant in the kernel.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slimsvm.frames import Frame, rounding_of
from slimsvm.kernel_sums import accumulate
from slimsvm.precision import errors_of_scores, rounding
from slimsvm.problems.columns import DEFAULT_MEMORY
from slimsvm.rows import Block, Rows, joined, serial
from slimsvm.run import SAMPLED
from slimsvm.solvers.spaces import Space
from slimsvm.threads import parallel, single_threaded_blas
from slimsvm.tiles import Operand, Strips, block, for_each_tile

Array = NDArray[Any]
FIRST_SLOTS = 64
ENTRIES_A_TASK = 1 << 15  # of the scores
# kernel values of a few cuts with new parts: a megabyte, which stays in cache
VALUES_A_TASK = 1 << 18


@dataclass
class Sample:
    """A cut that is a sum over few parts."""

    parts: Array  # indices of rows
    responses: Array  # (parts, width)
    vectors: Operand  # these rows, prepared
    place: int = -1  # of its products with all parts in A
    serial: str = field(default_factory=serial)


class SampledSpace(Space):
    """Functions that are sums of sampled cuts; see the module's text.

    Parameters
    ----------
    rows, frame
        As in :class:`slimsvm.problems.columns.KernelColumns`.
    width, n_linear : int
        Columns of the scores, and length of the linear part.
    intercept_scaling : float
        The root of the constant in the kernel; zero: no intercepts.
    keeps : bool
        Whether products of cuts with all parts are made, and kept: linear time.
    max_memory : float, optional
        Megabytes for them.
    """

    scope = SAMPLED

    def __init__(
        self,
        rows: Rows,
        frame: Frame,
        width: int,
        n_linear: int,
        intercept_scaling: float = 0.0,
        keeps: bool = True,
        max_memory: float | None = None,
    ) -> None:
        self.rows, self.frame, self.width, self.n_linear = rows, frame, width, n_linear
        self.keeps, self.n_threads = keeps, rows.n_threads
        self.n, self.variance = rows.n * width + n_linear, float(intercept_scaling) ** 2
        self.size = self.max_size = FIRST_SLOTS
        self.precision = str(np.dtype(frame.dtype))
        self.G = np.zeros((self.size, self.size))
        self.slots: list[Sample | None] = [None] * self.size
        # sums of the responses of each cut, and their linear parts
        self._totals = np.zeros((self.size, width))
        self._linears = np.zeros((self.size, n_linear))
        self.n_values = 0
        n_places = int(
            (DEFAULT_MEMORY if max_memory is None else float(max_memory))
            * 2**20
            / (4 * max(1, rows.n * width))
        )
        self._n_places = n_places
        self._capacity = 0  # places for which there is memory

    @property
    def n_basis(self) -> int:
        """Parts of all cuts."""
        return sum(sample.parts.size for sample in self.slots if sample is not None)

    def metric(self, B: Array) -> Array:
        """G b"""
        return np.asarray(self.G @ B)

    # -- scores ------------------------------------------------------------------------------------

    def scores(self, W: Array) -> Array:
        """Of all parts and labels, then the weights of the linear part, (n, 1)."""
        w, end = W[:, 0], self.n - self.n_linear
        used = [
            (k, sample) for k, sample in enumerate(self.slots) if sample is not None and w[k] != 0.0
        ]
        coef = np.zeros(self._capacity, np.float32)
        for k, sample in used:
            if sample.place >= 0:
                coef[sample.place] = w[k]
        kept = tuple(sample for _, sample in used if sample.place >= 0)
        out = joined(self.rows.map(scores_of_cuts, self.frame, coef, kept, self.width))
        if self.n_linear:
            out = np.append(out, np.empty(self.n_linear))
        others = [(k, sample) for k, sample in used if sample.place < 0]
        if others:
            vectors = self.take(np.concatenate([s.parts for _, s in others]))
            responses = np.concatenate([w[k] * s.responses for k, s in others])
            self.n_values += vectors.n * self.rows.n
            products = self.rows.map(expanded, self.frame, vectors, responses)
            out[:end] += joined(products).ravel()
        constant, linear = self.own(w)
        out[:end].reshape(-1, self.width)[:] += constant
        out[end:] = linear
        return out[:, None]

    def own(self, w: Array) -> tuple[Array, Array]:
        """Intercepts and linear part of a function."""
        return self.variance * (w @ self._totals), w @ self._linears

    def take(self, parts: Array) -> Operand:
        """Some rows, prepared; without what they came from, so that they can be sent."""
        rows = self.frame.prepared(self.rows.take(parts).block).operand
        return replace(rows, source=None, picked=None)

    def at(self, parts: Array) -> Array:
        """The products of all cuts with these parts alone, (slots, parts, width).

        Only kernel values among parts of cuts are needed.
        """
        used = [(k, sample) for k, sample in enumerate(self.slots) if sample is not None]
        out = np.zeros((self.size, parts.size, self.width))
        sizes = np.array([sample.parts.size for _, sample in used], np.int64)
        group = np.cumsum(sizes) * parts.size // VALUES_A_TASK
        edges = np.flatnonzero(np.diff(group, prepend=-1, append=-1))
        some = self.take(parts)

        def task(g: int) -> None:
            several = used[edges[g] : edges[g + 1]]
            values = block(
                self.take(np.concatenate([sample.parts for _, sample in several])),
                Strips(some),
            )
            first = 0
            for k, sample in several:
                last = first + sample.parts.size
                out[k] = values[first:last].T @ sample.responses.astype(values.dtype)
                first = last

        with single_threaded_blas():
            parallel(task, edges.size - 1, self.n_threads)
        self.n_values += parts.size * int(sizes.sum())
        return out

    # -- cuts --------------------------------------------------------------------------------------

    def add(
        self, parts: Array, responses: Array, linear: Array, known: Array | None = None
    ) -> tuple[int, Array]:
        """A new cut: its slot, and its products with the cuts in all slots.

        ``known``, from :meth:`at`, are theirs with its parts.
        """
        sample, slot = Sample(parts, responses, self.take(parts)), self._free_slot()
        row = np.zeros(self.size)
        if self.keeps:
            sample.place = self._place()
            self.n_values += parts.size * self.rows.n
            products = joined(self.rows.map(new_cut, self.frame, sample, self._capacity))
            for k, other in enumerate(self.slots):
                row[k] = (
                    0.0 if other is None else float(np.vdot(products[other.parts], other.responses))
                )
            row[slot] = float(np.vdot(products[parts], responses))
        else:
            assert known is not None
            row[: known.shape[0]] = np.einsum("kpl,pl->k", known, responses)
            own = sample.vectors
            row[slot] = float(np.vdot(responses, block(own, Strips(own)) @ responses))
        self.slots[slot] = sample
        self._totals[slot], self._linears[slot] = responses.sum(axis=0), linear
        row += (
            self.variance * (self._totals @ self._totals[slot])
            + self._linears @ self._linears[slot]
        )
        self.G[slot], self.G[:, slot] = row, row
        return slot, row

    def _free_slot(self) -> int:
        if None not in self.slots:
            more = len(self.slots)
            self.slots += [None] * more
            self.G = np.pad(self.G, (0, more))
            self._totals, self._linears = (
                np.pad(values, ((0, more), (0, 0))) for values in (self._totals, self._linears)
            )
            self.size = self.max_size = 2 * more
        return self.slots.index(None)

    def _place(self) -> int:
        """Where products with all parts go in A, or -1 if there is no room."""
        taken = {sample.place for sample in self.slots if sample is not None}
        place = next((p for p in range(self._capacity) if p not in taken), self._capacity)
        if place >= self._n_places:
            return -1
        if place == self._capacity:  # in a few large pieces: rows are long
            self._capacity = min(self._n_places, max(FIRST_SLOTS // 2, 2 * place))
        return place

    def grown(self) -> Any:
        """The cuts, without their products: these are made again."""
        cuts = [None if of is None else (of.parts, of.responses, of.place) for of in self.slots]
        # copies: what is the space's own would be looked for in the new one
        own = (array.copy() for array in (self.G, self._totals, self._linears))
        return cuts, *own, self._capacity

    def grow_again(self, known: Any) -> None:
        """Have the cuts of a space that was kept."""
        cuts, self.G, self._totals, self._linears, self._capacity = known
        self.slots = [
            None if of is None else Sample(of[0], of[1], self.take(of[0]), of[2]) for of in cuts
        ]
        self.size = self.max_size = len(cuts)

    def release(self, active: set[int], other: set[int]) -> None:
        """Forget all cuts but those in these slots.

        Scores will be asked for functions of the active ones only.
        """
        for k, sample in enumerate(self.slots):
            if sample is None or k in active:
                continue
            sample.place = -1
            if k not in other:
                self.slots[k] = None
                self.G[k], self.G[:, k], self._totals[k], self._linears[k] = 0.0, 0.0, 0.0, 0.0

    def rounding(self, W: Array, V: Array, scores: Array) -> float:
        """That of the kernel values, and of products of cuts that are kept in float32."""
        end = self.n - self.n_linear
        indices, coef, constant, _ = self.expansion(W[:, 0])
        f = scores[:end, 0].reshape(-1, self.width) - constant
        error = max(self.rows.map(rounding_of, self.frame))
        slopes = V[:end, 0].reshape(-1, self.width)
        largest = float(np.sqrt(max(float(np.diag(self.G).max(initial=0.0)), 0.0)))
        # twice what errors of random signs add up to: of few rows all may have the same
        sums = 2.0 * float(np.finfo(np.float32).eps) * float(np.abs(W).sum()) * largest
        lengths = float(np.sqrt(np.square(slopes).sum() + np.square(coef).sum()))
        return rounding(error, coef, f[indices], slopes, f) + sums * lengths

    def errors(self, W: Array, scores: Array) -> Array:
        """Those of kernel values."""
        end, out = self.n - self.n_linear, np.zeros((self.n, 1))
        _, coef, constant, _ = self.expansion(W[:, 0])
        f = scores[:end, 0].reshape(-1, self.width) - constant
        error = max(self.rows.map(rounding_of, self.frame))
        out[:end, 0] = errors_of_scores(error, coef, f).ravel()
        return out

    def expansion(self, w: Array) -> tuple[Array, Array, Array, Array]:
        """A function as indices of rows, coefficients, intercepts and linear part.

        Coefficients have the shape (indices, width).
        """
        used = [
            (w[k], sample)
            for k, sample in enumerate(self.slots)
            if sample is not None and w[k] != 0.0
        ]
        if not used:
            return (
                np.empty(0, np.int64),
                np.empty((0, self.width)),
                np.zeros(self.width),
                np.zeros(self.n_linear),
            )
        parts, where = np.unique(
            np.concatenate([sample.parts for _, sample in used]), return_inverse=True
        )
        coef = np.zeros((parts.size, self.width))
        np.add.at(
            coef, where, np.concatenate([factor * sample.responses for factor, sample in used])
        )
        return parts, coef, *self.own(w)


# -- where the rows are ----------------------------------------------------------------------------


class _Kept:
    """Products of cuts with the parts of one block, each in its place."""

    def __init__(self, n: int) -> None:
        self.A = np.empty((0, n), np.float32)
        self.serials: dict[int, str] = {}  # of the cut in a place

    def reserve(self, n_places: int) -> None:
        """Memory for so many."""
        if len(self.A) < n_places:
            A = np.zeros((n_places, self.A.shape[1]), np.float32)
            A[: len(self.A)] = self.A
            self.A = A

    def put(self, sample: Sample, products: Array) -> None:
        """The products of one cut."""
        self.A[sample.place], self.serials[sample.place] = products.ravel(), sample.serial


def _kept(where: Block, width: int, capacity: int) -> _Kept:
    known: _Kept | None = where.kept.get("cuts")
    if known is None or known.A.shape[1] != where.n * width or len(known.A) > capacity:
        known = where.kept["cuts"] = _Kept(where.n * width)
    known.reserve(capacity)
    return known


def expanded(where: Block, frame: Frame, vectors: Operand, responses: Array) -> Array:
    """A task: sum_p responses_p k(x_p, x) for all rows x of a block, (rows, width)."""
    prepared, width = frame.prepared(where), responses.shape[1]
    if width == 1:
        out = np.zeros(where.n)
        accumulate(vectors, prepared.strips, responses[:, 0], out, where.n_threads)
        return out[:, None]
    dtype = prepared.operand.dtype
    values_of, total = responses.astype(dtype), np.zeros((where.n, width), dtype)

    def consume(first: int, last: int, start: int, end: int, values: Array) -> None:
        total[start:end] += values.T @ values_of[first:last]

    for_each_tile(vectors, prepared.strips, consume, where.n_threads)
    return total


def new_cut(where: Block, frame: Frame, sample: Sample, capacity: int) -> Array:
    """A task: the products of a new cut with all rows of a block, (rows, width).

    They are kept, if the cut has a place.
    """
    products = expanded(where, frame, sample.vectors, sample.responses)
    if sample.place >= 0:
        _kept(where, sample.responses.shape[1], capacity).put(sample, products)
    return products


def scores_of_cuts(
    where: Block, frame: Frame, coef: Array, samples: tuple[Sample, ...], width: int
) -> Array:
    """A task: sum_t coef_t A_t over the places t of these cuts, (rows * width).

    Products that were lost are made again.
    """
    kept, end = _kept(where, width, coef.size), where.n * width
    for sample in samples:
        if kept.serials.get(sample.place) != sample.serial:
            kept.put(sample, expanded(where, frame, sample.vectors, sample.responses))
    out = np.empty(end)

    def task(b: int) -> None:
        part = slice(b * ENTRIES_A_TASK, min(end, (b + 1) * ENTRIES_A_TASK))
        out[part] = coef @ kept.A[:, part]

    with single_threaded_blas():
        parallel(task, -(-end // ENTRIES_A_TASK), where.n_threads)
    return out


def diagonal_of(where: Block, frame: Frame) -> Array:
    """A task: k(x, x)"""
    return frame.prepared(where).operand.diag()
