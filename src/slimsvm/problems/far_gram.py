"""The Gram of rows that are elsewhere: those that a dual solver looks at are here.

A solver asks for kernel values of its active rows only (:class:`slimsvm.gram.Gram`), and for inner
products of the learned function with others. Active rows, and those that carry weight, are *held*
here, ready for products; what is asked of the others is a pass over their blocks, to which the
vectors and their coefficients are sent. Rows that the solver releases leave the memory, and come
back when they are active again.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from slimsvm.buffers import Buffer
from slimsvm.frames import Frame
from slimsvm.gram import Gram, LinearGram
from slimsvm.kernel_sums import accumulate
from slimsvm.kernels import Linear
from slimsvm.rows import Block, Rows
from slimsvm.threads import local
from slimsvm.tiles import Operand, Strips

Array = NDArray[Any]
EMPTY = 0.3  # share of the rows here that were released: then the others move together


@dataclass(frozen=True)
class Known:
    """What one pass says of the kernel values of all rows."""

    diag: Array
    largest: float  # squared norm of a row
    rounding: float  # error of a value that is to be expected
    none: Operand  # no rows, prepared as all others

    def of(self, numbers: Array) -> Known:
        """The same of some rows."""
        constant = self.diag.strides == (0,)
        return replace(self, diag=self.diag[: numbers.size] if constant else self.diag[numbers])


def about(block: Block, frame: Frame) -> tuple[Array, float, float, Operand]:
    """A task: values of rows with themselves (one number if all are equal), and the like."""
    operand = frame.prepare(block.X)
    diag = operand.diag()
    if diag.size and (diag == diag[0]).all():
        diag = diag[:1]
    largest = 0.0 if operand.sq is None else float(operand.sq.max(initial=0.0))
    none = replace(operand.take(np.empty(0, np.intp)), source=None, picked=None)
    return diag, largest, operand.rounding(), none


def known_of(rows: Any, frame: Frame) -> Known:
    """By one pass over all rows."""
    parts = rows.map(about, frame)
    sizes = np.diff(rows.edges)
    first = parts[0][0]
    diag = np.concatenate(
        [np.broadcast_to(part[0], n) for part, n in zip(parts, sizes, strict=True)]
    )
    if first.size == 1 and (diag == first).all():
        diag = np.broadcast_to(first, rows.n)
    largest, rounding = (max(part[i] for part in parts) for i in (1, 2))
    return Known(diag, largest, rounding, parts[0][3])


def products_at(block: Block, places: Array, vectors: Operand, delta: Array, frame: Frame) -> Array:
    """A task: sum_r delta[r] k(vectors[r], x) of some rows x of a block."""
    out = np.zeros(places.size)
    X = block.X if places.size == block.n else block.X[places]
    accumulate(vectors, Strips(frame.prepare(X)), delta, out, block.n_threads)
    return out


class Held(Operand):
    """Rows of a problem, of which some are here; all are known by their places in the problem.

    Parameters
    ----------
    rows : Rows
        Where they are.
    numbers : int array
        Which of these rows the problem has.
    frame : Frame
        How they are prepared.
    known : Known
        Of the kernel values of the rows of the problem.
    """

    def __init__(self, rows: Rows, numbers: Array, frame: Frame, known: Known) -> None:
        none = known.none
        typed = none.X if none.sq is None else none.X.astype(frame.dtype)
        sq = None if none.sq is None else none.sq.astype(frame.dtype)
        super().__init__(none.kernel, typed, sq, none.shift)
        self.rows, self.numbers, self.of, self.known = rows, numbers, frame, known
        self._place = np.full(numbers.size, -1, np.intp)  # among those here
        self._own = np.empty(0, np.intp)  # which is in each of these places; -1: none any more

    @property
    def n(self) -> int:
        """Number of rows of the problem."""
        return int(self.numbers.size)

    def finer(self) -> None:
        """None: rows that are read again by and by are prepared as they were, or in float64."""

    def take(self, indices: Array | slice, buffer: Buffer | None = None) -> Operand:
        """The operand of some rows; those that are not here are read."""
        assert isinstance(indices, np.ndarray)
        here = Operand(self.kernel, self.X, self.sq, self.shift)
        places = self._place[indices]
        away = np.flatnonzero(places < 0)
        if not away.size:
            return here.take(places, buffer)
        if away.size == indices.size:
            return self._read(indices)
        found = _joined(here.take(places[places >= 0]), self._read(indices[away]))
        order = np.empty(indices.size, np.intp)
        order[np.concatenate([np.flatnonzero(places >= 0), away])] = np.arange(indices.size)
        return found.take(order)

    def _read(self, indices: Array) -> Operand:
        read = self.of.prepare(self.rows.take(self.numbers[indices]).X)
        return Operand(self.kernel, read.X, read.sq, read.shift)

    def bring(self, indices: Array) -> None:
        """Let these rows be here."""
        missing = np.sort(indices[self._place[indices] < 0])
        if missing.size:
            both = _joined(Operand(self.kernel, self.X, self.sq), self._read(missing))
            self.X, self.sq = both.X, both.sq
            self._place[missing] = self._own.size + np.arange(missing.size)
            self._own = np.concatenate([self._own, missing])

    def release(self, indices: Array) -> None:
        """Let these rows go, sooner or later."""
        places = self._place[indices]
        self._own[places[places >= 0]] = -1
        self._place[indices] = -1
        kept = np.flatnonzero(self._own >= 0)
        if kept.size < (1 - EMPTY) * self._own.size:
            left = Operand(self.kernel, self.X, self.sq).take(kept)
            self.X, self.sq, self._own = left.X, left.sq, self._own[kept]
            self._place[self._own] = np.arange(kept.size)

    def here(self, indices: Array) -> bool:
        """Whether all of these are."""
        return bool((self._place[indices] >= 0).all())

    def exact(self) -> Held:
        """The same in float64; those that are here are read again."""
        wide = Held(
            self.rows, self.numbers, replace(self.of, dtype=np.dtype(np.float64)), self.known
        )
        wide.bring(self._own[self._own >= 0])
        return wide

    def error(self) -> float:
        """A bound on the error of a kernel value."""
        if self.sq is None:
            return 0.0
        bound = self.kernel.error(
            self.known.largest, int(self.X.shape[1]), float(np.finfo(self.dtype).eps) / 2
        )
        return float(np.abs(self.diag()).max(initial=0.0)) * bound

    def rounding(self) -> float:
        """The largest error of a kernel value that is to be expected."""
        return super().rounding() if self.dtype == np.float64 else self.known.rounding

    def diag(self) -> Array:
        """k(x, x) of all rows."""
        return self.known.diag


def _joined(first: Operand, second: Operand) -> Operand:
    """Rows of both."""
    X: Any
    if sp.issparse(first.X):
        X = sp.vstack([first.X, second.X], format="csr")
    else:
        X = np.concatenate([first.X, second.X])
    sq = None
    if first.sq is not None and second.sq is not None:
        sq = np.concatenate([first.sq, second.sq])
    return Operand(first.kernel, X, sq, first.shift)


class FarGram(Gram):
    """Kernel rows among those that are here; products with others by a pass over their blocks."""

    operand: Held

    def __init__(self, operand: Held, budget: float, n_threads: int = 1) -> None:
        super().__init__(operand, budget, n_threads)
        none = np.empty(0, np.intp)
        self._set_columns(none)
        self._move(none, 0)

    def restrict(self, columns: Array) -> None:
        """Make these rows the only columns: the first ones, or a subset of the active ones."""
        if self.width:
            super().restrict(columns)
        else:
            self.grow(columns)

    def grow(self, columns: Array) -> None:
        """Add these rows to the active columns."""
        self.operand.bring(columns)
        super().grow(columns)

    def release(self, rows: Array) -> None:
        """These rows neither are active nor have coefficients."""
        self.operand.release(rows)

    def products(self, rows: Array, delta: Array, columns: Array) -> Array:
        """sum_r delta[r] * k(rows[r], columns), wherever the columns are."""
        if self.operand.here(columns):
            return super().products(rows, delta, columns)
        look = getattr(local, "look", None)
        if look is not None:  # a worker elsewhere does not know of the limits of this fit
            look()
        vectors = self._vectors(rows, delta)
        out, where = np.zeros(columns.size), self.operand
        for which, part in where.rows.at(where.numbers[columns], products_at, *vectors, where.of):
            out[which] = part
        self.n_values += rows.size * columns.size
        return out

    def _vectors(self, rows: Array, delta: Array) -> tuple[Operand, Array]:
        """What is sent with a pass."""
        return self.operand.take(rows), delta


class FarLinearGram(FarGram, LinearGram):
    """The same for the linear kernel: one vector is sent."""

    def _vectors(self, rows: Array, delta: Array) -> tuple[Operand, Array]:
        w = np.asarray(self.operand.take(rows).X.T @ delta.astype(np.float64))
        return self.operand.of.vectors(w[None, :]), np.ones(1)


def far_gram(operand: Held, budget: float, n_threads: int) -> FarGram:
    """The Gram object that suits the kernel."""
    kind = FarLinearGram if isinstance(operand.kernel, Linear) else FarGram
    return kind(operand, budget, n_threads)
