"""Sums of kernel values over rows, made and added up while they are in cache.

Where both sides are dense or both are sparse, a strip of columns is done in one compiled loop that
does not come back to the interpreter between tiles.

Symbols: as in :mod:`slimsvm.tiles`; delta weights of rows, s the sums.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from slimsvm.buffers import own_scratch
from slimsvm.compiled import compiled, compiled_within
from slimsvm.forms import finish
from slimsvm.threads import parallel, single_threaded_blas
from slimsvm.tiles import (
    TILE_VALUES,
    Operand,
    Strips,
    for_each_tile,
    near_values,
    posting_products,
)

Array = NDArray[Any]
# 256 kB in float32: half of the second-level cache of one core
FUSED_ROWS, FUSED_COLUMNS = 256, 256
NEAR_ROWS, NEAR_COLUMNS = 32, 256  # a tile by differences stays in the first-level cache


@compiled
def add_rows(
    values: Array, slots: Array, delta: Array, s: Array, start: int, end: int, offset: int
) -> None:
    """s[start:end] += sum_r delta[r] * values[slots[r], start-offset:end-offset]

    Four rows at a time are summed in the type of the values, then added in float64: a sum of
    thousands of float32 terms keeps its digits.
    """
    n, n4 = slots.size, slots.size - slots.size % 4
    # parts that begin at zero: places that might be below zero, and count from the end, would keep
    # the loops from being vector code
    out, first, last = s[start:end], start - offset, end - offset
    for r in range(0, n4, 4):
        d0, d1, d2, d3 = delta[r], delta[r + 1], delta[r + 2], delta[r + 3]
        v0, v1 = values[slots[r], first:last], values[slots[r + 1], first:last]
        v2, v3 = values[slots[r + 2], first:last], values[slots[r + 3], first:last]
        for j in range(out.size):
            out[j] += (d0 * v0[j] + d1 * v1[j]) + (d2 * v2[j] + d3 * v3[j])
    for r in range(n4, n):
        d0, v0 = delta[r], values[slots[r], first:last]
        for j in range(out.size):
            out[j] += d0 * v0[j]


@compiled_within
def _add_and_keep(
    values: Array, delta: Array, s: Array, slots: Array, store: Array, first: int, start: int
) -> None:
    """One tile: s += delta' values for its columns; rows with a slot are stored."""
    n, width = values.shape
    each = np.empty(n, np.int64)  # np.arange takes longer to compile
    for r in range(n):
        each[r] = r
    add_rows(values, each, delta[first : first + n], s, start, start + width, start)
    for r in range(n):
        if slots[first + r] >= 0:
            row = store[slots[first + r], start : start + width]
            for j in range(width):
                row[j] = values[r, j]


@compiled
def _dense_strip(
    form: int, p: float, q: float, degree: int, A: Array, a_sq: Array, B: Array, b_sq: Array,
    start: int, end: int, delta: Array, s: Array, slots: Array, store: Array, scratch: Array,
) -> None:  # fmt: skip
    """All tiles of columns start..end, products by BLAS.

    They are made without coming back to the interpreter.
    """
    step = FUSED_COLUMNS
    # few rows: wider tiles of the same size, BLAS packs the rows less often
    if 2 * A.shape[0] <= FUSED_ROWS and A.itemsize == 4:
        step = 2 * FUSED_COLUMNS
    for c in range(start, end, step):
        width = min(end, c + step) - c
        columns, columns_sq = B[c : c + width], b_sq[c : c + width]
        for first in range(0, A.shape[0], FUSED_ROWS):
            n = min(A.shape[0], first + FUSED_ROWS) - first
            values = scratch[: n * width].reshape(n, width)
            np.dot(A[first : first + n], columns.T, values)
            finish(form, p, q, degree, values, a_sq[first : first + n], columns_sq)
            _add_and_keep(values, delta, s, slots, store, first, c)


@compiled
def _near_strip(
    scale: float, A: Array, B: Array, start: int, end: int, nothing: Array, delta: Array, s: Array,
    slots: Array, store: Array, scratch: Array,
) -> None:  # fmt: skip
    """The same with distances by differences; B is by feature."""
    for c in range(start, end, NEAR_COLUMNS):
        stop = min(end, c + NEAR_COLUMNS)
        for first in range(0, A.shape[0], NEAR_ROWS):
            last = min(A.shape[0], first + NEAR_ROWS)
            values = scratch[: (last - first) * (stop - c)].reshape(last - first, stop - c)
            near_values(scale, A, first, last, B, c, stop, nothing, values)
            _add_and_keep(values, delta, s, slots, store, first, c)


@compiled
def _sparse_strip(
    form: int, p: float, q: float, degree: int, indptr: Array, indices: Array, data: Array,
    a_sq: Array, p_indptr: Array, p_indices: Array, p_data: Array, b_sq: Array, start: int,
    end: int, delta: Array, s: Array, slots: Array, store: Array, scratch: Array,
) -> None:  # fmt: skip
    """The same over postings: a few rows at a time, since a strip is wide."""
    width, n_rows = end - start, indptr.size - 1
    step = max(1, scratch.size // width)
    for first in range(0, n_rows, step):
        n = min(n_rows, first + step) - first
        values = scratch[: n * width].reshape(n, width)
        posting_products(
            indptr, indices, data, first, first + n, p_indptr, p_indices, p_data, values
        )
        finish(form, p, q, degree, values, a_sq[first : first + n], b_sq[start:end])
        _add_and_keep(values, delta, s, slots, store, first, start)


def accumulate(
    rows: Operand,
    strips: Strips,
    delta: Array,
    s: Array,
    n_threads: int = 1,
    slots: Array | None = None,
    store: Array | None = None,
) -> None:
    """s += sum_r delta[r] * k(rows[r], columns), while the values are in cache.

    Rows with slots[r] >= 0 are kept in store[slots[r]].
    """
    kernel, columns, n = rows.kernel, strips.operand, rows.n
    delta = np.ascontiguousarray(delta, rows.dtype)
    slots = np.full(n, -1) if slots is None else slots
    store = np.empty((0, 0), delta.dtype) if store is None else store
    A, B = rows.X, columns.X
    if not kernel.uses_dots or sp.issparse(A) != sp.issparse(B):

        def consume(first: int, last: int, start: int, end: int, values: Array) -> None:
            _add_and_keep(values, delta, s, slots, store, first, start)

        for_each_tile(rows, strips, consume, n_threads)
        return
    assert rows.sq is not None and columns.sq is not None
    form, a_sq, b_sq = kernel.form(), rows.sq, columns.sq
    if sp.issparse(A):

        def strip(k: int) -> None:
            start, end = strips.edges(k)
            P = strips.postings(k)
            scratch = own_scratch("tile", max(end - start, FUSED_ROWS * FUSED_COLUMNS), rows.dtype)
            _sparse_strip(
                *form,
                A.indptr,
                A.indices,
                A.data,
                a_sq,
                P.indptr,
                P.indices,
                P.data,
                b_sq,
                start,
                end,
                delta,
                s,
                slots,
                store,
                scratch,
            )

        n_tasks = strips.n_strips
    else:
        # few rows: several strips a task
        step = FUSED_COLUMNS * max(1, min(8, TILE_VALUES // (FUSED_COLUMNS * max(1, n))))
        n_tasks = -(-columns.n // step)

        near = rows.by_differences and columns.by_differences
        by_feature = strips.by_feature if near else B  # made once, not by every thread
        nothing = np.zeros(max(NEAR_ROWS, NEAR_COLUMNS), np.float32)

        def strip(k: int) -> None:
            scratch = own_scratch("tile", FUSED_ROWS * FUSED_COLUMNS, rows.dtype)
            if near:
                first, last = k * step, min(columns.n, (k + 1) * step)
                about = (nothing, delta, s, slots, store, scratch)
                _near_strip(-form[1], A, by_feature, first, last, *about)
                return
            _dense_strip(
                *form,
                A,
                a_sq,
                B,
                b_sq,
                k * step,
                min(columns.n, (k + 1) * step),
                delta,
                s,
                slots,
                store,
                scratch,
            )

    with single_threaded_blas():
        parallel(strip, n_tasks, n_threads)
