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
import scipy.sparse as sp
from numpy.typing import NDArray

from slimsvm.centring import safe_dtype
from slimsvm.kernels import RBF, Kernel, Linear, Precomputed
from slimsvm.multiclass import OneVsOne
from slimsvm.precision import is_small
from slimsvm.solvers.shared_path import BLOCK, WIDE, pair_path, solution_path
from slimsvm.threads import local, parallel, single_threaded_blas
from slimsvm.tiles import Operand, prepare, square

Array = NDArray[Any]
CHUNK_VALUES = 1 << 17  # of the matrix become kernel values at once: half a megabyte stays near
NARROW = 64  # features: inner products are made anew in the time that it takes to read them
GATHERED = 0.6  # of the rows of a class have coefficients: below, these alone are multiplied
# few rows are solved to the last digits by the estimators: here nearly so
TIGHTER = 0.01
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


@dataclass
class Path:
    """One problem along C: of two classes, by their places among all; or of regression."""

    problem: FoldProblem
    points: list[Point]
    weight: Array  # of all rows, in the order of the matrix; zero: held out
    target: Array  # of regression
    classes: tuple[int, int] = (-1, -1)  # the positive one, and the other


@dataclass
class Solved:
    """What comes out for each C."""

    coef: Array
    score: Array  # inner products with all rows of the pair
    level: Array  # minus the intercept
    violation: Array


# receives candidate, fold, and outputs of the rows `test`, one column a pair of classes
Consumer = Callable[[Point, FoldProblem, Array], None]


class Space:
    """Rows of which kernel matrices are made: sorted by class."""

    def __init__(
        self,
        X: Any,
        label: Array | None,
        threads: int,
        max_bytes: float,
        stop: Callable[[], str] = lambda: "",
    ) -> None:
        self.X, self.n, self.threads, self.stop = X, int(X.shape[0]), threads, stop
        self.max_bytes = max_bytes
        label = np.zeros(self.n, np.intp) if label is None else label
        self.order = np.argsort(label, kind="stable")
        self.place = np.empty(self.n, np.intp)
        self.place[self.order] = np.arange(self.n)
        self.edges = np.concatenate([[0], np.cumsum(np.bincount(label))])
        self.label = label
        self._token, self._n_matrices = object(), 0

    def matrices(self, kernels: list[Kernel]) -> Iterator[tuple[Kernel, Array, Array]]:
        """The matrix of each kernel, with its diagonal; valid until the next one."""
        X = self.X[self.order]
        dots = K = np.empty((0, 0))
        made: Any = None
        for at, kernel in enumerate(kernels):
            if isinstance(kernel, Precomputed):
                K = np.ascontiguousarray(X[:, self.order], np.float64)
                yield kernel, K, np.ascontiguousarray(K.diagonal())
                continue
            operand = prepare(kernel, X, dtype=self._dtype(kernel, X))
            stored = operand.dtype
            if isinstance(kernel, RBF) and not is_small(self.n):
                stored = np.dtype(np.float32)  # of values up to one; what they are made of decides
            if (K.shape[0], K.dtype) != (self.n, stored):
                dots = K = np.empty((0, 0))  # before there is another one
                K, made = np.empty((self.n, self.n), stored), None
            others = sum(other.uses_dots for other in kernels[at:])
            if self._keeps_dots(kernel, operand) and (made is not None or others > 1):
                if made != (kernel.shift_invariant, operand.dtype):
                    if dots.dtype != operand.dtype or not dots.size:
                        dots = np.empty((0, 0))
                        dots = np.empty(K.shape, operand.dtype)
                    square(Operand(Linear(), operand.X, operand.sq), dots, self.threads)
                    made = (kernel.shift_invariant, operand.dtype)
                assert operand.sq is not None
                self._finish(kernel, dots, operand.sq, K)
            else:
                square(operand, K, self.threads)
            diag = np.asarray(operand.diag(), K.dtype)
            np.fill_diagonal(K, diag)
            yield kernel, K, diag

    def _dtype(self, kernel: Kernel, X: Any) -> Any:
        """float32 where it is safe and the rows are not few; None: as the kernel takes it."""
        if is_small(self.n) or not kernel.uses_dots:
            return np.float64 if is_small(self.n) else None
        return safe_dtype(kernel, self._squares(kernel, X), X.shape[1])

    def _keeps_dots(self, kernel: Kernel, operand: Operand) -> bool:
        """Whether inner products are worth the memory of another matrix."""
        wide = sp.issparse(self.X) or self.X.shape[1] > NARROW
        need = 2 * operand.dtype.itemsize * self.n**2
        return kernel.uses_dots and wide and need <= self.max_bytes

    def _squares(self, kernel: Kernel, X: Any) -> Array:
        """Squared norms of the rows as the kernel has them: centred, or not."""
        known: dict[bool, Array] = self.__dict__.setdefault("_known_squares", {})
        if kernel.shift_invariant not in known:
            sq = prepare(kernel, X, dtype=np.float64).sq
            known[kernel.shift_invariant] = np.empty(0) if sq is None else sq
        return known[kernel.shift_invariant]

    def _finish(self, kernel: Kernel, dots: Array, sq: Array, out: Array) -> None:
        size = max(1, CHUNK_VALUES // self.n)

        def chunk(k: int) -> None:
            rows = slice(k * size, (k + 1) * size)
            values = out[rows] if out.dtype == dots.dtype else np.empty_like(dots[rows])
            values[:] = dots[rows]
            kernel.from_dots(values, sq[rows], sq)
            if values.dtype != out.dtype:
                out[rows] = values

        parallel(chunk, -(-self.n // size), self.threads)

    # -- one matrix --------------------------------------------------------------------------------

    def solve(
        self, K: Array, diag: Array, problems: list[FoldProblem], consume: Consumer
    ) -> list[tuple[int, int]]:
        """Solve all problems of a kernel; candidates and folds that missed their tolerance."""
        # pair by pair: the block of a thread is kept over folds
        paths = sorted(
            (path for problem in problems for path in self._paths(problem)),
            key=lambda path: path.classes,
        )
        self._n_matrices += 1
        solved: list[Any] = [None] * len(paths)

        def solve_path(k: int) -> None:
            if not self.stop():
                solved[k] = self._solved(K, diag, paths[k])

        by_group: dict[tuple[int, int], list[tuple[Path, Solved]]] = {}
        missed: list[tuple[int, int]] = []
        with single_threaded_blas():
            parallel(solve_path, len(paths), self.threads)
            for path, found in zip(paths, solved, strict=True):
                by_group.setdefault((id(path.problem), id(path.points)), []).append((path, found))
            groups = [g for g in by_group.values() if all(found is not None for _, found in g)]

            def hand_out(k: int) -> None:
                missed.extend(self._hand_out(K, groups[k], consume))

            parallel(hand_out, len(groups), self.threads)
        return missed

    def _paths(self, problem: FoldProblem) -> Iterator[Path]:
        """What is solved in one call: a pair of classes, one epsilon, ascending C."""
        groups: dict[tuple[float, float], list[Point]] = {}
        for point in problem.points:
            groups.setdefault((point.epsilon, point.tol), []).append(point)
        weight, target = np.zeros(self.n), np.zeros(self.n)
        places = self.place[problem.rows]
        weight[places] = problem.weight
        if not problem.classes.size:
            target[places] = problem.target
        # where the classes of the fold are among those of all rows
        own = [int(self.label[problem.rows[np.argmax(problem.target == c)]])
               for c in range(problem.classes.size)]  # fmt: skip
        pairs = OneVsOne(len(own)).pairs if own else [(-1, -1)]
        for points in groups.values():
            points.sort(key=lambda point: point.C)
            for positive, negative in pairs:
                path = Path(problem, points, weight, target)
                if own:
                    path.classes = (own[positive], own[negative])
                yield path

    def _solved(self, K: Array, diag: Array, path: Path) -> Solved:
        """Coefficients, inner products, levels and violations of a path."""
        points = path.points
        Cs = np.array([point.C for point in points])
        tol = (TIGHTER if is_small(self.n) else 1.0) * points[0].tol
        tiny = TINY[K.itemsize] * max(float(diag.max()), 1e-300)
        low, high = sorted(path.classes)
        if low < 0:
            edges, n = np.array([0, self.n, self.n, self.n]), self.n
        else:
            edges = np.concatenate([self.edges[low : low + 2], self.edges[high : high + 2]])
            n = int(edges[1] - edges[0] + edges[3] - edges[2])
        found = Solved(np.empty((Cs.size, n)), np.empty((Cs.size, n)), *np.empty((2, Cs.size)))
        out = (found.coef, found.score, found.level, found.violation)
        kept = _kept((self._token, self._n_matrices, path.classes), n, K.dtype)
        if low < 0:
            given = (path.target, path.weight, path.weight, points[0].epsilon)
            solution_path(K, diag, edges, *given, Cs, tol, tiny, *kept, *out)
        else:
            first = 1.0 if path.classes[0] == low else -1.0
            pair_path(K, diag, edges, path.weight, first, Cs, tol, tiny, *kept, *out)
        return found

    def _hand_out(
        self, K: Array, found: list[tuple[Path, Solved]], consume: Consumer
    ) -> list[tuple[int, int]]:
        """Outputs at the rows that are asked for; what missed its tolerance."""
        problem, points, missed = found[0][0].problem, found[0][0].points, []
        test = self.place[problem.test]
        worst = np.max([solved.violation for _, solved in found], axis=0)
        first = found[0][1]
        if first.score.shape[1] == self.n:
            outputs = (first.score[:, test] - first.level[:, None])[:, None, :]
        else:
            outputs = self._products(K, test, found)
        for c, point in enumerate(points):
            if not worst[c] <= point.tol:
                missed.append((point.candidate, problem.fold))
            else:
                consume(point, problem, np.ascontiguousarray(outputs[c].T))
        return missed

    def _products(self, K: Array, test: Array, group: list[tuple[Path, Solved]]) -> Array:
        """The outputs of all pairs at some rows, shape (Cs, pairs, rows); a product for each class.

        A pair has coefficients at the rows of its two classes only.
        """
        outputs = np.empty((group[0][1].level.size, len(group), test.size), K.dtype)
        of_class: dict[int, list[tuple[int, Array]]] = {}
        for k, (path, solved) in enumerate(group):
            low, high = sorted(path.classes)
            middle = int(self.edges[low + 1] - self.edges[low])
            of_class.setdefault(low, []).append((k, solved.coef[:, :middle]))
            of_class.setdefault(high, []).append((k, solved.coef[:, middle:]))
            outputs[:, k] = -solved.level[:, None]
        for c, parts in of_class.items():
            A = np.concatenate([coef for _, coef in parts]).astype(K.dtype)
            K_test = K[test, self.edges[c] : self.edges[c + 1]]
            support = np.flatnonzero(A.any(axis=0))
            if support.size < GATHERED * A.shape[1]:
                A, K_test = A[:, support], K_test[:, support]
            values = (A @ K_test.T).reshape(len(parts), -1, test.size)
            for own, (k, _) in zip(values, parts, strict=True):
                outputs[:, k] += own
        return outputs


def _kept(key: Any, n: int, dtype: Any) -> tuple[Array, Array, Array, Array]:
    """The calling thread's block of kernel values: rows, their places, how many there are.

    It begins anew with another kernel or pair of classes.
    """
    if getattr(local, "search_key", None) != key:
        if getattr(local, "search_block", None) is None:
            local.search_block = np.zeros(BLOCK * (BLOCK + WIDE) * 8, np.uint8)
        size = min(BLOCK, -(-n // WIDE) * WIDE)
        # a width that is no power of two, for caches
        buffer = local.search_block[: size * (size + WIDE) * np.dtype(dtype).itemsize]
        buffer[:] = 0  # what is left from another problem may be no number
        block = buffer.view(dtype).reshape(size, size + WIDE)
        places = np.full(n, -1, np.int64)
        local.search_kept = (block, np.empty(size, np.int64), places, np.zeros(1, np.int64))
        local.search_key = key
    return local.search_kept
