"""How much of the cuts lies outside of the span of a basis: delta of Joachims & Yu (2009).

The norm of sum_i v_i phi'(x_i), phi' the part of phi that is orthogonal to the span, needs all
kernel values among the rows. Here it is made for blocks of s rows, each exactly, and the norms of
the blocks are added: n s kernel values, and never below the norm itself. Up to s rows it is the
norm; with s = 1 it would be the triangle inequality over the rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slimsvm.problems.columns import KernelColumns, Values
from slimsvm.problems.span import JITTER, Span
from slimsvm.rows import Block, PerRow
from slimsvm.tiles import Strips, block

Array = NDArray[Any]
ROWS = 1024  # of a block
STRIP = 128  # of these rows, in float64 at once


@dataclass(frozen=True)
class ActiveCuts:
    """The cuts that carry weight.

    Attributes
    ----------
    m : int
        The span is that of the first so many vectors.
    cuts : PerRow
        Their responses; see :class:`slimsvm.solvers.cutting_plane.Oracle`.
    a : array of shape (cuts, columns)
        Their multipliers: zero but for the column that a cut belongs to.
    width : int
        Responses of a row in one cut.
    """

    m: int
    cuts: PerRow
    a: Array
    width: int = 1


def outside(
    columns: KernelColumns,
    several: list[ActiveCuts],
    size: int = ROWS,
    going_on: Callable[[], bool] | None = None,
) -> list[tuple[Array, Array]]:
    """A bound on how much of each column's active cuts lies outside of the span.

    The largest such part of a cut, and that of their combination sum_t a_t g_t, for each column;
    for several sets of cuts, with the same kernel values.

    Parameters
    ----------
    columns : KernelColumns
        Rows and basis.
    several : list of ActiveCuts
        Each with its own span, a part of that of ``columns``.
    size : int
        Rows in a block.
    going_on : callable, optional
        Asked before every block, for rows in memory; where it says no, the rest is by the triangle
        inequality over the rows, without kernel values among them.
    """
    about = [(some.m, some.a, some.width) for some in several]
    cuts = [some.cuts for some in several]
    columns.n_values += columns.n * min(size, columns.n)
    parts = columns.map(norms_of, about, size, going_on, *cuts)
    found = []
    for some, norms in zip(several, [sum(part) for part in zip(*parts, strict=True)], strict=True):
        of_cuts, together = norms[: len(some.a)], norms[len(some.a) :]
        largest = np.where(some.a != 0.0, of_cuts[:, None], 0.0).max(axis=0, initial=0.0)
        found.append((largest, np.asarray(together)))
    return found


def norms_of(
    where: Block,
    span: Span,
    about: list[tuple[int, Array, int]],
    size: int,
    going_on: Callable[[], bool] | None,
    *cuts: Any,
) -> list[Array]:
    """A task: the norms, for each set of cuts, of them and of their combinations."""
    operand = span.frame.prepared(where).operand
    diag = np.asarray(operand.diag(), np.float64)
    # rounding errors of kernel values, and what jitter makes the span smaller by, as in distances
    floor = np.sqrt(JITTER[span.dtype.name] * np.maximum(diag, 0.0))

    def norms(first: int, last: int, Z: Array) -> list[Array]:
        responses = [
            combined(one.responses(first, last), a, width)
            for one, (_, a, width) in zip(cuts, about, strict=True)
        ]
        felt = np.flatnonzero(np.any([R.any(axis=(1, 2)) for R in responses], axis=0))
        if not felt.size:
            return [np.zeros(R.shape[2]) for R in responses]
        rows, Z, products = felt + first, Z[:, felt], None
        each = [R[felt].reshape(felt.size, -1) for R in responses]
        if size > 1 and (going_on is None or going_on()):
            some = operand.take(rows)
            products = in_float64(block(some, Strips(some)), np.hstack(each))
        out, at = [], 0
        for (m, _, _), R, V in zip(about, responses, each, strict=True):
            own = slice(at, at := at + V.shape[1])
            if products is None:
                left = diag[rows] - np.einsum("ji,ji->i", Z[:m], Z[:m])
                near = np.sqrt(np.maximum(left, 0.0) + floor[rows] ** 2)
                square = np.square(near @ np.abs(V))
            else:
                square = np.einsum("ic,ic->c", V, products[:, own])
                square -= np.square(Z[:m] @ V).sum(axis=0)
                square = np.maximum(square, 0.0) + np.square(floor[rows] @ np.abs(V))
            out.append(np.sqrt(square.reshape(R.shape[1:]).sum(axis=0)))
        return out

    def work(start: int, end: int, K: Array) -> list[Array]:
        Z = span.inverse @ K.astype(np.float64, copy=False)
        step = size if size > 1 else end - start
        edges = [(a, min(end, a + step)) for a in range(start, end, step)]
        parts = [norms(a, b, Z[:, a - start : b - start]) for a, b in edges]
        return [np.asarray(sum(part)) for part in zip(*parts, strict=True)]

    chunks = Values(where, span).each(work)
    return [np.asarray(sum(part)) for part in zip(*chunks, strict=True)]


def in_float64(K: Array, V: Array) -> Array:
    """K V; a few rows of K are float64 at a time, which stay in the cache."""
    if K.dtype == np.float64:
        return np.asarray(K @ V)
    strips = range(0, len(K), STRIP)
    return np.concatenate([K[i : i + STRIP].astype(np.float64) @ V for i in strips])


def combined(V: Array, a: Array, width: int) -> Array:
    """Responses (rows, width * cuts), and after them those of the combinations of the cuts.

    Their shape is (rows, width, cuts + columns).
    """
    V = V.reshape(V.shape[0], width, -1)
    return np.concatenate([V, V @ a], axis=2)
