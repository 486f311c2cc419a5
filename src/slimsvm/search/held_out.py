"""Outputs at held-out rows for all points of a grid and all folds, from shared kernel values.

The order of the work: the kernel outermost, with its matrix over all rows once; then the folds and
the pairs of classes, side by side on threads; then C, ascending, each solution the start of the
next (:mod:`slimsvm.solvers.shared_path`). Inner products of rows are made once for all kernels that
follow from them; rows are sorted by class, so that a pair is two slices of the matrix.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slimsvm.kernels import Kernel, Linear, Precomputed
from slimsvm.multiclass import OneVsOne
from slimsvm.precision import is_small
from slimsvm.solvers.shared_path import BLOCK, WIDE, solution_path
from slimsvm.threads import local, parallel, single_threaded_blas
from slimsvm.tiles import Operand, Strips, block, prepare, safe_dtype

Array = NDArray[Any]
CHUNK = 128  # rows of the matrix that become kernel values at once
SMALL_TOL = 1e-5  # few rows are solved to the last digits by the estimators: here nearly so
# the least curvature of a pair of rows, relative to the largest k(x, x); as prepared in float32
TINY = {4: 1e-7, 8: 1e-12}


@dataclass(frozen=True)
class Point:
    """One candidate: its number, and what the solutions of a kernel differ by."""

    candidate: int
    C: float
    epsilon: float
    tol: float


@dataclass
class FoldProblem:
    """The rows of one fold with one kernel, and the points to be solved with it."""

    fold: int
    kernel: Kernel
    rows: Array  # in training, by their places in the space
    target: Array  # class numbers, or targets
    weight: Array
    test: Array  # where outputs are wanted: the rows that are held out, and perhaps others
    n_test: int  # how many are held out
    classes: Array  # none: regression
    points: list[Point] = field(default_factory=list)


# receives candidate, fold, and outputs of the rows `test`, one column a pair of classes
Consumer = Callable[[Point, FoldProblem, Array], None]


class Space:
    """Rows of which kernel matrices are made: sorted by class."""

    def __init__(
        self, X: Any, label: Array | None, threads: int, stop: Callable[[], str] = lambda: ""
    ) -> None:
        self.X, self.n, self.threads, self.stop = X, int(X.shape[0]), threads, stop
        label = np.zeros(self.n, np.intp) if label is None else label
        self.order = np.argsort(label, kind="stable")
        self.place = np.empty(self.n, np.intp)
        self.place[self.order] = np.arange(self.n)
        self.edges = np.concatenate([[0], np.cumsum(np.bincount(label))])
        self.label = label

    def matrices(self, kernels: list[Kernel]) -> Iterator[tuple[Kernel, Array, Array]]:
        """The matrix of each kernel, with its diagonal; valid until the next one."""
        X = self.X[self.order]
        dtype = np.float64 if is_small(self.n) else None
        dots: Array | None = None
        out: Array | None = None
        made: tuple[Any, ...] = ()
        for at, kernel in enumerate(kernels):
            if isinstance(kernel, Precomputed):
                K = np.ascontiguousarray(X[:, self.order], np.float64)
                yield kernel, K, np.ascontiguousarray(K.diagonal())
                continue
            if not kernel.uses_dots:
                operand = prepare(kernel, X, dtype=dtype)
                K = block(operand, Strips(operand), self.threads)
                yield kernel, K, np.asarray(operand.diag(), K.dtype)
                continue
            kind = dtype or safe_dtype(kernel, self._squares(kernel, X), X.shape[1])
            if made != (kernel.shift_invariant, kind):
                dots = out = None  # before there is another one
                operand = prepare(kernel, X, dtype=kind)
                made = (kernel.shift_invariant, kind)
                plain = Operand(Linear(), operand.X, operand.sq)
                dots = block(plain, Strips(plain), self.threads)
            assert dots is not None and operand.sq is not None
            last = not any(other.uses_dots for other in kernels[at + 1 :])
            out = dots if last else np.empty_like(dots) if out is None else out
            self._finish(kernel, dots, operand.sq, out)
            diag = np.asarray(kernel.diag_from_sq(operand.sq), out.dtype)
            np.fill_diagonal(out, diag)
            yield kernel, out, diag

    def _squares(self, kernel: Kernel, X: Any) -> Array:
        """Squared norms of the rows as the kernel has them: centred, or not."""
        known: dict[bool, Array] = self.__dict__.setdefault("_known_squares", {})
        if kernel.shift_invariant not in known:
            sq = prepare(kernel, X, dtype=np.float64).sq
            known[kernel.shift_invariant] = np.empty(0) if sq is None else sq
        return known[kernel.shift_invariant]

    def _finish(self, kernel: Kernel, dots: Array, sq: Array, out: Array) -> None:
        def chunk(k: int) -> None:
            rows = slice(k * CHUNK, (k + 1) * CHUNK)
            if out is not dots:
                out[rows] = dots[rows]
            kernel.from_dots(out[rows], sq[rows], sq)

        parallel(chunk, -(-self.n // CHUNK), self.threads)

    # -- one matrix --------------------------------------------------------------------------------

    def solve(
        self, K: Array, diag: Array, problems: list[FoldProblem], consume: Consumer
    ) -> list[tuple[int, int]]:
        """Solve all problems of a kernel; candidates and folds that missed their tolerance."""
        paths = [path for problem in problems for path in self._paths(problem)]
        solved: list[Any] = [None] * len(paths)

        def solve_path(k: int) -> None:
            if not self.stop():
                solved[k] = self._solved(K, diag, *paths[k])

        with single_threaded_blas():
            parallel(solve_path, len(paths), self.threads)
        missed: list[tuple[int, int]] = []
        by_problem: dict[int, list[Any]] = {}
        for path, found in zip(paths, solved, strict=True):
            by_problem.setdefault(id(path[0]), []).append((path, found))
        for problem in problems:
            found = by_problem[id(problem)]
            if all(result is not None for _, result in found):
                missed += self._hand_out(K, problem, found, consume)
        return missed

    def _paths(self, problem: FoldProblem) -> Iterator[tuple[Any, ...]]:
        """What is solved in one call: a pair of classes, one epsilon, ascending C."""
        groups: dict[tuple[float, float], list[Point]] = {}
        for point in problem.points:
            groups.setdefault((point.epsilon, point.tol), []).append(point)
        pairs = OneVsOne(problem.classes.size).pairs if problem.classes.size else [(-1, -1)]
        for points in groups.values():
            points.sort(key=lambda point: point.C)
            for k, pair in enumerate(pairs):
                yield problem, points, k, pair

    def _solved(
        self, K: Array, diag: Array, problem: FoldProblem, points: list[Point], k: int, pair: Any
    ) -> tuple[Array, Array, Array, Array, Array]:
        """Columns of the matrix, coefficients, inner products, levels and violations."""
        rows, places = problem.rows, self.place[problem.rows]
        if pair[0] < 0:
            edges, here = np.array([0, self.n, self.n, self.n]), np.arange(rows.size)
            sign = np.zeros(0)
        else:
            here = np.flatnonzero((problem.target == pair[0]) | (problem.target == pair[1]))
            own = [int(self.label[rows[problem.target == c][0]]) for c in pair]
            low, high = sorted(own)
            edges = np.concatenate([self.edges[low : low + 2], self.edges[high : high + 2]])
            sign = np.where(problem.target[here] == pair[0], 1.0, -1.0)
        columns = np.concatenate([np.arange(edges[0], edges[1]), np.arange(edges[2], edges[3])])
        local_place = np.searchsorted(columns, places[here])
        n = columns.size
        target, below, above = np.zeros(n), np.zeros(n), np.zeros(n)
        weight = problem.weight[here]
        if pair[0] < 0:
            target[local_place] = problem.target
            below[local_place] = above[local_place] = weight
        else:
            target[local_place] = sign
            above[local_place] = np.where(sign > 0, weight, 0.0)
            below[local_place] = np.where(sign < 0, weight, 0.0)
        Cs = np.array([point.C for point in points])
        coef, score = np.empty((Cs.size, n)), np.empty((Cs.size, n))
        level, violation = np.empty(Cs.size), np.empty(Cs.size)
        tol = min(points[0].tol, SMALL_TOL) if is_small(self.n) else points[0].tol
        tiny = TINY[K.itemsize] * max(float(np.abs(diag).max()), 1e-300)
        size = min(BLOCK, -(-n // WIDE) * WIDE)
        solution_path(
            K, diag, edges.astype(np.int64), target, below, above, points[0].epsilon, Cs, tol, tiny,
            _buffer(size, K.dtype), coef, score, level, violation,
        )  # fmt: skip
        return columns, coef, score, level, violation

    def _hand_out(
        self, K: Array, problem: FoldProblem, found: list[Any], consume: Consumer
    ) -> list[tuple[int, int]]:
        """Outputs at the rows that are asked for."""
        test, missed = self.place[problem.test], []
        whole = len(found) and all(columns.size == self.n for _, (columns, *_) in found)
        by_group: dict[int, list[Any]] = {}
        for path, result in found:
            by_group.setdefault(id(path[1]), []).append((path, result))
        for group in by_group.values():
            points = group[0][0][1]
            worst = np.max([result[4] for _, result in group], axis=0)
            if whole:
                _, _, score, level, _ = group[0][1]
                outputs = (score[:, test] - level[:, None])[:, :, None]
            else:
                outputs = self._products(K, test, [result for _, result in group])
            for c, point in enumerate(points):
                if not worst[c] <= point.tol:
                    missed.append((point.candidate, problem.fold))
                else:
                    consume(point, problem, outputs[c])
        return missed

    def _products(self, K: Array, test: Array, results: list[Any]) -> Array:
        """The outputs of all pairs at some rows, shape (Cs, rows, pairs); a product for each class.

        A pair has coefficients at the rows of its two classes only.
        """
        n_points = results[0][3].size
        outputs = np.zeros((n_points, test.size, len(results)), K.dtype)
        K_test = K[test]
        with single_threaded_blas():
            for start, end in zip(self.edges[:-1], self.edges[1:], strict=True):
                parts, ks = [], []
                for k, (columns, coef, *_) in enumerate(results):
                    first = np.searchsorted(columns, start)
                    if end > start and first < columns.size and columns[first] == start:
                        parts.append(coef[:, first : first + end - start])
                        ks.append(k)
                if not parts:
                    continue
                A = np.concatenate(parts).astype(K.dtype)
                support = np.flatnonzero(np.any(A != 0, axis=0))
                values = K_test[:, start + support] @ A[:, support].T
                values = values.reshape(test.size, len(ks), n_points)
                outputs[:, :, ks] += values.transpose(2, 0, 1)
        for k, (_, _, _, level, _) in enumerate(results):
            outputs[:, :, k] -= level[:, None]
        return outputs


def _buffer(size: int, dtype: Any) -> Array:
    """The calling thread's own block of kernel values."""
    buffer: Array | None = getattr(local, "search_block", None)
    if buffer is None:  # zeros: what is left from another problem must be finite, no more
        buffer = local.search_block = np.zeros(BLOCK * BLOCK * 8, np.uint8)
    found = buffer[: size * size * np.dtype(dtype).itemsize].view(dtype).reshape(size, size)
    if getattr(local, "search_block_type", None) != dtype:  # other bits may be no numbers
        buffer[:] = 0
        local.search_block_type = dtype
    return found
