"""Functions that are sums of sampled cuts: the space of :mod:`slimsvm.solvers.sampled_cuts`.

A cut has a slot, and the coordinates of a function are the weights of the slots; inner products of cuts are the metric. With ``keeps`` the
products A of every cut with all parts are kept, in float32, within a budget of bytes: then scores of all parts cost O(slots n), and no kernel
values but those of a new cut, (its parts) n. Beyond the budget they are made anew in every pass. Without, only kernel values among the parts
of cuts are ever made; a cut of r examples has few parts where most examples are right, so that those of many cuts are made together.

An intercept is a constant in the kernel.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slimsvm.problems.columns import DEFAULT_MEMORY
from slimsvm.run import FULL
from slimsvm.solvers.spaces import Space
from slimsvm.threads import parallel, single_threaded_blas
from slimsvm.tiles import Operand, Strips, accumulate, block, for_each_tile

Array = NDArray[Any]
FIRST_SLOTS = 64
ENTRIES_A_TASK = 1 << 15  # of the scores
VALUES_A_TASK = (
    1 << 18
)  # kernel values of a few cuts with new parts: a megabyte, which stays in cache


@dataclass
class Sample:
    """A cut that is a sum over few parts."""

    parts: Array  # indices of rows
    responses: Array  # (parts, width)
    place: int = -1  # of its products with all parts in A


class SampledSpace(Space):
    """Functions that are sums of sampled cuts; see the module's text.

    Parameters
    ----------
    rows : Operand
        All rows of the data, readied.
    width, n_linear : int
        Columns of the scores, and length of the linear part.
    intercept_scaling : float
        The root of the constant in the kernel; zero: no intercepts.
    keeps : bool
        Whether products of cuts with all parts are made, and kept: linear time.
    max_memory : float, optional
        Megabytes for them.
    n_threads : int
        Results are the same bits for any number.
    """

    scope = FULL

    def __init__(
        self,
        rows: Operand,
        width: int,
        n_linear: int,
        intercept_scaling: float = 0.0,
        keeps: bool = True,
        max_memory: float | None = None,
        n_threads: int = 1,
    ) -> None:
        self.rows, self.width, self.n_linear, self.keeps, self.n_threads = (
            rows,
            width,
            n_linear,
            keeps,
            n_threads,
        )
        self.n, self.variance = rows.n * width + n_linear, float(intercept_scaling) ** 2
        self.size = self.max_size = FIRST_SLOTS
        self.precision = str(np.dtype(rows.dtype))
        self.G = np.zeros((self.size, self.size))
        self.slots: list[Sample | None] = [None] * self.size
        self._totals = np.zeros(
            (self.size, width)
        )  # sums of the responses of each cut, and their linear parts
        self._linears = np.zeros((self.size, n_linear))
        self.n_values = 0
        self._strips = Strips(rows)
        n_places = int(
            (DEFAULT_MEMORY if max_memory is None else float(max_memory))
            * 2**20
            / (4 * max(1, rows.n * width))
        )
        self._A = np.empty((0, rows.n * width), np.float32)
        self._n_places = n_places

    @property
    def n_basis(self) -> int:
        """Parts of all cuts."""
        return sum(sample.parts.size for sample in self.slots if sample is not None)

    def metric(self, B: Array) -> Array:
        """G b"""
        return np.asarray(self.G @ B)

    # -- scores -------------------------------------------------------------------------------------------------------------------------

    def scores(self, W: Array) -> Array:
        """Of all parts and labels, then the weights of the linear part, (n, 1)."""
        w, out = W[:, 0], np.empty(self.n)
        end = self.n - self.n_linear
        used = [
            (k, sample) for k, sample in enumerate(self.slots) if sample is not None and w[k] != 0.0
        ]
        coef = np.zeros(self._A.shape[0], np.float32)
        for k, sample in used:
            if sample.place >= 0:
                coef[sample.place] = w[k]

        def task(b: int) -> None:
            part = slice(b * ENTRIES_A_TASK, min(end, (b + 1) * ENTRIES_A_TASK))
            out[part] = coef @ self._A[:, part]

        with single_threaded_blas():
            parallel(task, -(-end // ENTRIES_A_TASK), self.n_threads)
        others = [(k, sample) for k, sample in used if sample.place < 0]
        if others:
            parts, responses = (
                np.concatenate([s.parts for _, s in others]),
                np.concatenate([w[k] * s.responses for k, s in others]),
            )
            out[:end] += self._expanded(parts, responses).ravel()
        constant, linear = self.own(w)
        out[:end].reshape(-1, self.width)[:] += constant
        out[end:] = linear
        return out[:, None]

    def own(self, w: Array) -> tuple[Array, Array]:
        """Intercepts and linear part of a function."""
        return self.variance * (w @ self._totals), w @ self._linears

    def _expanded(self, parts: Array, responses: Array) -> Array:
        """sum_p responses_p k(x_p, x) for all rows x, (rows, width)."""
        some = self.rows.take(parts)
        self.n_values += parts.size * self.rows.n
        if self.width == 1:
            out = np.zeros(self.rows.n)
            accumulate(some, self._strips, responses[:, 0], out, self.n_threads)
            return out[:, None]
        values_of, total = (
            responses.astype(self.rows.dtype),
            np.zeros((self.rows.n, self.width), self.rows.dtype),
        )

        def consume(first: int, last: int, start: int, end: int, values: Array) -> None:
            total[start:end] += values.T @ values_of[first:last]

        for_each_tile(some, self._strips, consume, self.n_threads)
        return total

    def at(self, parts: Array) -> Array:
        """The products of all cuts with these parts alone, (slots, parts, width): only kernel values among parts of cuts."""
        used = [(k, sample) for k, sample in enumerate(self.slots) if sample is not None]
        out = np.zeros((self.size, parts.size, self.width))
        sizes = np.array([sample.parts.size for _, sample in used], np.int64)
        group = np.cumsum(sizes) * parts.size // VALUES_A_TASK
        edges = np.flatnonzero(np.diff(group, prepend=-1, append=-1))
        some = self.rows.take(parts)

        def task(g: int) -> None:
            several = used[edges[g] : edges[g + 1]]
            values = block(
                self.rows.take(np.concatenate([sample.parts for _, sample in several])),
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

    # -- cuts ---------------------------------------------------------------------------------------------------------------------------

    def add(
        self, parts: Array, responses: Array, linear: Array, known: Array | None = None
    ) -> tuple[int, Array]:
        """A new cut: its slot, and its products with the cuts in all slots; ``known``, from :meth:`at`, are theirs with its parts."""
        sample, slot = Sample(parts, responses), self._free_slot()
        row = np.zeros(self.size)
        if self.keeps:
            products = self._expanded(parts, responses)
            sample.place = self._keep(products)
            for k, other in enumerate(self.slots):
                row[k] = (
                    0.0 if other is None else float(np.vdot(products[other.parts], other.responses))
                )
            row[slot] = float(np.vdot(products[parts], responses))
        else:
            assert known is not None
            row[: known.shape[0]] = np.einsum("kpl,pl->k", known, responses)
            own = self.rows.take(parts)
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

    def _keep(self, products: Array) -> int:
        """Products with all parts go into A, if there is room; returns their place."""
        taken = {sample.place for sample in self.slots if sample is not None}
        place = next((p for p in range(self._A.shape[0]) if p not in taken), self._A.shape[0])
        if place >= self._n_places:
            return -1
        if place == self._A.shape[0]:  # in a few large pieces: rows are long
            A = np.zeros(
                (min(self._n_places, max(FIRST_SLOTS // 2, 2 * place)), self._A.shape[1]),
                np.float32,
            )
            A[:place] = self._A
            self._A = A
        self._A[place] = products.ravel()
        return place

    def release(self, active: set[int], other: set[int]) -> None:
        """Forget all cuts but those in these slots; scores will be asked for functions of the active ones only."""
        for k, sample in enumerate(self.slots):
            if sample is None or k in active:
                continue
            sample.place = -1
            if k not in other:
                self.slots[k] = None
                self.G[k], self.G[:, k], self._totals[k], self._linears[k] = 0.0, 0.0, 0.0, 0.0

    def expansion(self, w: Array) -> tuple[Array, Array, Array, Array]:
        """A function as indices of rows, coefficients (indices, width), intercepts and linear part."""
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
