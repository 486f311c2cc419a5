"""Outputs at held-out rows for all points of a grid and all folds, from shared kernel values.

The order of the work: the kernel outermost, with its matrix over all rows once; then the pairs of
classes, side by side on threads; then C, ascending, each solution the start of the next, and the
folds (:mod:`slimsvm.solvers.shared_path`). Inner products of rows are made once for all kernels
that follow from them; rows are sorted by class, so that a pair is two slices of the matrix.

Where nothing but votes is asked for, most held-out rows need no outputs beside those that were
carried along, of the pairs of their own class: if that wins all of them, no other class has as many
votes. The other pairs vote on the rows that are left. So no kernel values of rows of other classes
are needed for these pairs, and where there are many pairs and rows are short, each pair has a
matrix of its own, made when it is solved, which stays near the processor.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from slimsvm.centring import safe_dtype
from slimsvm.kernels import RBF, Kernel, Linear, Precomputed
from slimsvm.multiclass import OneVsOne
from slimsvm.precision import is_small
from slimsvm.search.matrices import Matrix, Memory, PairMatrices, WholeMatrix
from slimsvm.solvers.shared_path import BLOCK, WIDE, solution_paths
from slimsvm.threads import local, parallel, single_threaded_blas
from slimsvm.tiles import Operand, prepare, square

Array = NDArray[Any]
CHUNK_VALUES = 1 << 17  # of the matrix become kernel values at once: half a megabyte stays near
NARROW = 64  # features: inner products are made anew in the time that it takes to read them
MANY = 4  # bundles of problems for each thread: then a bundle has all folds
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
    only_votes: bool = False  # of several classes: whether it suffices to know which one is chosen
    points: list[Point] = field(default_factory=list)


@dataclass
class Path:
    """One problem along C: of two classes, by their places among all; or of regression."""

    problem: FoldProblem
    points: list[Point]
    weight: Array  # of all rows, in the order of the matrix; zero: held out
    target: Array  # of regression
    classes: tuple[int, int] = (-1, -1)  # the positive one, and the other
    # coefficients and inner products of all rows for each C: where to begin
    start: tuple[Array, Array] | None = None


@dataclass
class Solved:
    """What comes out for each C."""

    coef: Array
    level: Array  # minus the intercept
    violation: Array
    score: Array | None  # inner products with all rows, where these are all there are
    won: Array | None  # whether the rows of the pair are on the side of their own class


@dataclass
class Votes:
    """What is known without outputs: the class of each row that was asked for, but for some."""

    chosen: Array  # by its place among the classes
    rest: Array  # the rows for which it is not known; outputs are those of these rows


# receives the point, the fold, outputs of the rows `test`, one column a pair of classes, and what
# is known of rows without outputs
Consumer = Callable[[Point, FoldProblem, Array, Votes | None], None]


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
        self._token, self._n_matrices, self.memory = object(), 0, Memory()

    def matrices(
        self, kernels: list[Kernel], by_pairs: bool = False
    ) -> Iterator[tuple[Kernel, Matrix]]:
        """The matrix of each kernel; valid until the next one."""
        X = self.X[self.order]
        dots = K = np.empty((0, 0))
        made: Any = None
        for at, kernel in enumerate(kernels):
            if isinstance(kernel, Precomputed):
                K = np.ascontiguousarray(X[:, self.order], np.float64)
                diag = np.ascontiguousarray(K.diagonal())
                yield kernel, WholeMatrix(K, diag, self.edges)
                continue
            operand = prepare(kernel, X, dtype=self._dtype(kernel, X))
            stored = operand.dtype
            if isinstance(kernel, RBF) and not is_small(self.n):
                stored = np.dtype(np.float32)  # of values up to one; what they are made of decides
            if by_pairs and self._may_be_in_pairs(kernel, stored):
                yield kernel, PairMatrices(operand, stored, self.edges, self.memory)
                continue
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
            yield kernel, WholeMatrix(K, diag, self.edges)

    def _may_be_in_pairs(self, kernel: Kernel, dtype: Any) -> bool:
        """Whether it is worth it to make kernel values again for each pair of classes."""
        sizes = np.sort(np.diff(self.edges))
        need = self.threads * dtype.itemsize * int(sizes[-2:].sum()) ** 2
        n_pairs = sizes.size * (sizes.size - 1) // 2
        narrow = not sp.issparse(self.X) and self.X.shape[1] <= NARROW
        many = n_pairs >= MANY * self.threads
        return kernel.uses_dots and narrow and many and need <= self.max_bytes

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
        self, matrix: Matrix, problems: list[FoldProblem], consume: Consumer
    ) -> list[tuple[int, int]]:
        """Solve all problems of a kernel; candidates and folds that missed their tolerance."""
        by_group: dict[tuple[int, int], list[tuple[Path, Any]]] = {}
        missed: list[tuple[int, int]] = []
        with single_threaded_blas():
            paths = [path for problem in problems for path in self.paths(problem)]
            for path, found in self.along(matrix, paths):
                by_group.setdefault((id(path.problem), id(path.points)), []).append((path, found))
            groups = [g for g in by_group.values() if all(found is not None for _, found in g)]

            def hand_out(k: int) -> None:
                missed.extend(self._hand_out(matrix, groups[k], consume))

            parallel(hand_out, len(groups), self.threads)
        return missed

    def along(self, matrix: Matrix, paths: list[Path]) -> list[tuple[Path, Solved | None]]:
        """The paths with what comes out, in another order; None where the search was stopped."""
        bundles = self._bundles(paths)
        self._n_matrices += 1
        solved: list[Any] = [[None] * len(bundle) for bundle in bundles]

        def solve_bundle(k: int) -> None:
            if not self.stop():
                solved[k] = self._solved(matrix, bundles[k])

        with single_threaded_blas():
            parallel(solve_bundle, len(bundles), self.threads)
        return list(zip(chain(*bundles), chain(*solved), strict=True))

    def _bundles(self, paths: list[Path]) -> list[list[Path]]:
        """Problems of the same classes and points in several folds, for one thread."""
        groups: dict[Any, list[Path]] = {}
        for path in paths:
            first = path.points[0]
            Cs = tuple(point.C for point in path.points)
            groups.setdefault((path.classes, first.epsilon, first.tol, Cs), []).append(path)
        if len(groups) >= MANY * self.threads:
            return [groups[key] for key in sorted(groups)]
        # few: folds side by side; the block of a thread is kept over them
        return [[path] for key in sorted(groups) for path in groups[key]]

    def paths(self, problem: FoldProblem) -> Iterator[Path]:
        """What is solved in one call: a pair of classes, one epsilon, ascending C."""
        groups: dict[tuple[float, float], list[Point]] = {}
        for point in problem.points:
            groups.setdefault((point.epsilon, point.tol), []).append(point)
        weight, target = np.zeros(self.n), np.zeros(self.n)
        places = self.place[problem.rows]
        weight[places] = problem.weight
        if not problem.classes.size:
            target[places] = problem.target
        own = self._own_classes(problem)
        pairs = OneVsOne(len(own)).pairs if own else [(-1, -1)]
        for points in groups.values():
            points.sort(key=lambda point: point.C)
            for positive, negative in pairs:
                path = Path(problem, points, weight, target)
                if own:
                    path.classes = (own[positive], own[negative])
                yield path

    def _own_classes(self, problem: FoldProblem) -> list[int]:
        """Where the classes of the fold are among those of all rows."""
        firsts = [np.argmax(problem.target == c) for c in range(problem.classes.size)]
        return [int(self.label[problem.rows[first]]) for first in firsts]

    def _solved(self, matrix: Matrix, bundle: list[Path]) -> list[Solved]:
        """Coefficients, levels and violations of the problems of a bundle."""
        points, classes = bundle[0].points, bundle[0].classes
        Cs = np.array([point.C for point in points])
        tol = (TIGHTER if is_small(self.n) else 1.0) * points[0].tol
        tiny = TINY[matrix.dtype.itemsize] * max(matrix.most, 1e-300)
        low, high = sorted(classes)
        if low < 0:
            assert isinstance(matrix, WholeMatrix)
            K, diag, edges = matrix.K, matrix.diag, np.array([0, self.n, self.n, self.n])
            target = np.array([path.target for path in bundle])
            below = above = np.array([path.weight for path in bundle])
        else:
            K, diag, edges = matrix.of_pair(low, high)
            own = [slice(*self.edges[c : c + 2]) for c in (low, high)]
            weight = np.array([np.concatenate([p.weight[k] for k in own]) for p in bundle])
            target = np.empty_like(weight)
            middle = int(edges[1] - edges[0])
            target[:, :middle] = 1.0 if classes[0] == low else -1.0
            target[:, middle:] = -target[:, :1]
            above, below = np.where(target > 0, weight, 0.0), np.where(target < 0, weight, 0.0)
        n = target.shape[1]
        shape = (2, len(bundle), Cs.size, n)
        given = bundle[0].start is not None
        if given:
            coef, score = (np.stack([p.start[k] for p in bundle if p.start]) for k in (0, 1))
        elif n == self.n:  # the scores are kept
            coef, score = np.empty(shape)
        else:
            coef, score = self.memory.take("found", shape, np.float64)
        level, violation = np.empty((2, len(bundle), Cs.size))
        kept = _kept((self._token, self._n_matrices), classes, n, K.dtype)
        epsilon = points[0].epsilon
        solution_paths(
            K, diag, edges, target, below, above, epsilon, Cs, tol, tiny,
            *kept, given, coef, score, level, violation,
        )  # fmt: skip
        found = []
        for f, path in enumerate(bundle):
            own_score = won = None
            if n == self.n:
                own_score = score[f]
            elif path.problem.only_votes:
                won = (score[f] - level[f, :, None]) * target[f] > 0.0
            # of all rows, where a path may go on from it; of a pair as they are multiplied, a copy
            own_coef = coef[f] if n == self.n else coef[f].astype(K.dtype)
            found.append(Solved(own_coef, level[f], violation[f], own_score, won))
        return found

    def _hand_out(
        self, matrix: Matrix, found: list[tuple[Path, Solved]], consume: Consumer
    ) -> list[tuple[int, int]]:
        """Outputs at the rows that are asked for; what missed its tolerance."""
        problem, points, missed = found[0][0].problem, found[0][0].points, []
        test = self.place[problem.test]
        worst = np.max([solved.violation for _, solved in found], axis=0)
        first, votes = found[0][1], None
        if first.score is not None:
            outputs = (first.score[:, test] - first.level[:, None])[:, None, :]
        else:
            if problem.only_votes:
                votes = self._votes(test, problem, found)
                test = test[votes.rest]
            outputs = self._products(matrix, test, found)
        for c, point in enumerate(points):
            if not worst[c] <= point.tol:
                missed.append((point.candidate, problem.fold))
            else:
                consume(point, problem, np.ascontiguousarray(outputs[c].T), votes)
        return missed

    def _votes(self, test: Array, problem: FoldProblem, group: list[tuple[Path, Solved]]) -> Votes:
        """The rows whose own class wins all its pairs for each C: they need no other outputs."""
        code = np.full(self.edges.size - 1, -1)
        code[self._own_classes(problem)] = np.arange(problem.classes.size)
        chosen = code[self.label[problem.test]]
        won = np.ones((group[0][1].level.size, self.n), bool)
        for path, solved in group:
            assert solved.won is not None
            low, high = sorted(path.classes)
            middle = int(self.edges[low + 1] - self.edges[low])
            won[:, self.edges[low] : self.edges[low + 1]] &= solved.won[:, :middle]
            won[:, self.edges[high] : self.edges[high + 1]] &= solved.won[:, middle:]
        always = np.asarray(won.all(axis=0))[test]
        return Votes(chosen, np.flatnonzero((chosen < 0) | ~always))

    def _products(self, matrix: Matrix, test: Array, group: list[tuple[Path, Solved]]) -> Array:
        """The outputs of all pairs at some rows, shape (Cs, pairs, rows); a product for each class.

        A pair has coefficients at the rows of its two classes only.
        """
        outputs = np.empty((group[0][1].level.size, len(group), test.size), matrix.dtype)
        of_class: dict[int, list[tuple[int, Array]]] = {}
        for k, (path, solved) in enumerate(group):
            low, high = sorted(path.classes)
            middle = int(self.edges[low + 1] - self.edges[low])
            of_class.setdefault(low, []).append((k, solved.coef[:, :middle]))
            of_class.setdefault(high, []).append((k, solved.coef[:, middle:]))
            outputs[:, k] = -solved.level[:, None]
        for c, parts in of_class.items() if test.size else ():
            A = np.concatenate([coef for _, coef in parts])
            support = np.flatnonzero(A.any(axis=0))
            which: Array | slice = slice(None)
            if support.size < GATHERED * A.shape[1]:
                A, which = A[:, support], support
            values = (A @ matrix.between(test, c, which).T).reshape(len(parts), -1, test.size)
            for own, (k, _) in zip(values, parts, strict=True):
                outputs[:, k] += own
        return outputs


def _kept(matrix: Any, classes: Any, n: int, dtype: Any) -> tuple[Array, Array, Array, Array]:
    """The calling thread's block of kernel values: rows, their places, how many there are.

    It begins anew with another matrix or pair of classes.
    """
    if getattr(local, "search_key", None) != (matrix, classes):
        size = min(BLOCK, -(-n // WIDE) * WIDE)
        # a width that is no power of two, for caches
        need = size * (size + WIDE) * np.dtype(dtype).itemsize
        if getattr(local, "search_block", None) is None:
            local.search_block = np.empty(BLOCK * (BLOCK + WIDE) * 8, np.uint8)
        buffer = local.search_block
        # what is left from another matrix may be no number
        first = local.search_clean if getattr(local, "search_matrix", None) == matrix else 0
        buffer[first:need] = 0
        local.search_matrix, local.search_clean = matrix, max(first, need)
        block = buffer[:need].view(dtype).reshape(size, size + WIDE)
        places = np.full(n, -1, np.int64)
        local.search_kept = (block, np.empty(size, np.int64), places, np.zeros(1, np.int64))
        local.search_key = (matrix, classes)
    return local.search_kept
