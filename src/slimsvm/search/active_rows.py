"""The same outputs at held-out rows from the kernel values of the rows that matter alone.

Where kernel values of all rows do not fit into memory. Of many rows, most are on the right side of
the margin for every fold and every C, and have no coefficient; the others fit far more often.

Algorithm, for each kernel: (1) all points are solved with the matrix of the active rows
(:mod:`slimsvm.search.held_out`); (2) one pass over all other rows, for all points at once: what
they violate, and their outputs where they are held out; (3) points that no row violates are done;
rows that violate, or nearly so, become active, and the other points go on from where they were.
The first rows are those near the margin with the kernel before; of the first kernel, random ones,
whose solutions say which rows are near. Where too many rows matter, large and small C part ways: of
small ones more rows matter. Where they do for one C, kernel rows are cached
(:mod:`slimsvm.search.row_cached`).

The conditions hold for all rows within the tolerance: rows that are not active are required to be
on the right side of the level by what the active ones leave of it.

Symbols: f = s - level is the output, the inner products s = Kb and the level as in
:mod:`slimsvm.solvers.shared_path`. Cost of a round: (rows) x (support vectors of all points) kernel
values and as many multiplications for each point, beside the work within the active rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slimsvm.expansion import Expansion
from slimsvm.kernels import RBF, Kernel, Linear
from slimsvm.multiclass import OneVsOne
from slimsvm.precision import is_small
from slimsvm.run import Limits
from slimsvm.search import row_cached
from slimsvm.search.held_out import Consumer, FoldProblem, Path, Point, Space

Array = NDArray[Any]
FIRST = 4000  # random rows, to begin with
OF_EACH = 8  # rows of each class of each fold, at least
# how near the margin a row is, in units of the outputs, that joins with those that violate; and
# that is active from the beginning after the random rows, or with the next kernel
NEAR, NEXT = 0.05, 0.1
BLOCK = 1 << 22  # outputs of other rows that are made at once


@dataclass
class Task:
    """The points of a fold that are solved together, and what is known of them."""

    problem: FoldProblem
    points: list[Point]
    used: Array  # of all rows: whether they are in training
    target: Array  # of all rows: -1 and 1, or targets
    place: Array  # of all rows: where they are among those with outputs, or -1
    # of each point: outputs; coefficients and inner products of the active rows, minus the
    # intercept, and the violation among them; outputs of other rows that are close to the margin,
    # and the least slack of all others
    outputs: Array
    coef: Array
    score: Array
    level: Array
    violation: Array
    close: Array
    least: Array

    def slack(self, f: Array, rows: Array) -> Array:
        """How far rows are on the right side of the margin, for outputs f, shape (points, rows).

        Rows that are not in training are anywhere.
        """
        own = self.target[rows]
        if self.problem.classes.size:
            far = own * f - 1.0
        else:
            far = self.points[0].epsilon - np.abs(f - own)
        far[:, ~self.used[rows]] = np.inf
        return far

    def only(self, which: Array) -> Task:
        """The same for some of the points."""
        points = [point for point, one in zip(self.points, which, strict=True) if one]
        named = ("outputs", "coef", "score", "level", "violation", "close", "least")
        return replace(self, points=points, **{name: getattr(self, name)[which] for name in named})

    def enter(self, f: Array, rows: Array) -> Array:
        """Keep outputs f where they are wanted; the slack."""
        places = self.place[rows]
        wanted = places >= 0
        self.outputs[:, places[wanted]] = f[:, wanted]
        return self.slack(f, rows)


class ActiveRows:
    """The rows that matter, from one kernel to the next."""

    def __init__(
        self,
        X: Any,
        label: Array | None,
        max_bytes: float,
        threads: int,
        limits: Limits,
        stop: Callable[[], str],
    ) -> None:
        self.X, self.n, self.label = X, int(X.shape[0]), label
        self.max_bytes, self.threads, self.limits, self.stop = max_bytes, threads, limits, stop
        self.near: Array | None = None  # with the last kernel

    def solve(
        self, kernel: Kernel, problems: list[FoldProblem], consume: Consumer
    ) -> list[tuple[int, int]]:
        """Solve all problems of a kernel; candidates and folds that missed their tolerance."""
        near = np.zeros(self.n, bool)
        found = self._within(kernel, problems, self.near, near, consume)
        if near.any():
            self.near = np.flatnonzero(near)
        return found

    def _within(
        self,
        kernel: Kernel,
        problems: list[FoldProblem],
        start: Array | None,
        near: Array,
        consume: Consumer,
    ) -> list[tuple[int, int]]:
        """The same for some values of C, halved where too many rows matter."""
        work = None
        if not isinstance(kernel, Linear):  # which needs no kernel rows
            work = Rounds(self, kernel, problems, near, consume)
            work.run(start)
            if not work.tasks or self.stop():
                return work.missed
            problems = [replace(task.problem, points=task.points) for task in work.tasks]
        missed = [] if work is None else work.missed
        Cs = sorted({point.C for problem in problems for point in problem.points})
        if work is None or len(Cs) == 1:
            how = (self.max_bytes, self.threads, self.limits)
            return missed + row_cached.solve(self.X, kernel, problems, *how, consume)
        middle = Cs[len(Cs) // 2]
        for large in (True, False):
            parts = []
            for problem in problems:
                own = [p for p in problem.points if (middle <= p.C) == large]
                parts += [replace(problem, points=own)] if own else []
            missed += self._within(kernel, parts, None, near, consume)
        return missed


class Rounds:
    """The rounds of one kernel; ``tasks`` are those that are left."""

    def __init__(
        self,
        whole: ActiveRows,
        kernel: Kernel,
        problems: list[FoldProblem],
        near: Array,
        consume: Consumer,
    ) -> None:
        self.whole, self.kernel, self.near, self.consume = whole, kernel, near, consume
        self.missed: list[tuple[int, int]] = []
        self.tasks = [task for problem in problems for task in self._tasks(problem)]
        wanted = [rows for task in self.tasks for rows in (task.problem.rows, task.problem.test)]
        self.every = np.unique(np.concatenate(wanted))
        itemsize = 4 if isinstance(kernel, RBF) and not is_small(self.every.size) else 8
        self.most = int(np.sqrt(whole.max_bytes / itemsize))

    def _tasks(self, problem: FoldProblem) -> Iterator[Task]:
        n, groups = self.whole.n, dict[tuple[float, float], list[Point]]()
        used, target, place = np.zeros(n, bool), np.zeros(n), np.full(n, -1)
        used[problem.rows], target[problem.rows] = problem.weight > 0.0, problem.target
        if problem.classes.size:  # of two, as in :meth:`Space.paths`
            positive, _ = OneVsOne(2).pairs[0]
            target = np.where(target == positive, 1.0, -1.0)
        wanted = np.unique(problem.test)
        place[wanted] = np.arange(wanted.size)
        for point in problem.points:
            groups.setdefault((point.epsilon, point.tol), []).append(point)
        for points in groups.values():
            points.sort(key=lambda point: point.C)
            outputs, none = np.empty((len(points), wanted.size)), np.empty((len(points), 0))
            level, violation, least = np.full((3, len(points)), np.nan)
            known = (outputs, none, none, level, violation, none, least)
            yield Task(problem, points, used, target, place, *known)

    def run(self, start: Array | None) -> None:
        """Until there are no tasks, too many rows matter, or the search is stopped."""
        rows = np.union1d(self._first() if start is None else start, self._of_each_class())
        warm = False
        while rows.size <= self.most and self._solve(rows, warm):
            self._drop_missed()
            if not self.tasks:
                break
            self._mark_near(rows, self.near)
            close = self._outside(rows, self.near)
            if self.whole.stop():
                break
            self._hand_out()
            if not self.tasks:
                break
            rows, warm = self._join(rows, close), True

    def _of_each_class(self) -> Array:
        """Some rows of each class of each fold: without these it is no problem."""
        found = []
        for own in (task.problem for task in self.tasks):
            for c in range(max(1, own.classes.size)):
                of_class = own.target == c if own.classes.size else own.weight > 0.0
                found.append(own.rows[np.flatnonzero(of_class)[:OF_EACH]])
        return np.unique(np.concatenate(found))

    def _first(self) -> Array:
        """The rows that are near the margin of what random rows yield.

        The random rows have the weight of all.
        """
        size = min(FIRST, self.most // 2)
        rows = np.random.default_rng(0).permutation(self.every)[:size]
        rows = np.union1d(rows, self._of_each_class())
        near = np.zeros(self.whole.n, bool)
        if self._solve(rows, False, self.every.size / rows.size):
            self._mark_near(rows, near)
            self._outside(rows, near)
        return np.flatnonzero(near)

    def _solve(self, rows: Array, warm: bool, heavier: float = 1.0) -> bool:
        """Solve all points with these rows; False where the search was stopped."""
        whole, here = self.whole, np.full(self.whole.n, -1)
        here[rows] = np.arange(rows.size)
        label = None if whole.label is None else whole.label[rows]
        space = Space(whole.X[rows], label, whole.threads, whole.max_bytes, whole.stop)
        paths: list[Path] = []
        for task in self.tasks:
            own = task.problem
            inside = here[own.rows] >= 0
            small = replace(
                own,
                rows=here[own.rows[inside]],
                target=own.target[inside],
                weight=heavier * own.weight[inside],
                test=own.test[:0],
                points=list(task.points),
            )
            (path,) = space.paths(small)
            if warm:
                path.start = task.coef[:, space.order], task.score[:, space.order]
            paths.append(path)
        for _, matrix in space.matrices([self.kernel]):
            # in the order of the rows, whatever that of the space is
            by_path = {id(path): solved for path, solved in space.along(matrix, paths)}
            for task, path in zip(self.tasks, paths, strict=True):
                solved = by_path[id(path)]
                if solved is None:
                    return False
                assert solved.score is not None
                task.coef, task.score = solved.coef[:, space.place], solved.score[:, space.place]
                task.level, task.violation = solved.level, solved.violation
        return True

    def _drop_missed(self) -> None:
        """Points that missed the tolerance with the active rows are given up."""
        left = []
        for task in self.tasks:
            good = task.violation <= task.points[0].tol
            for point, one in zip(task.points, good, strict=True):
                if not one:
                    self.missed.append((point.candidate, task.problem.fold))
            left.append(task.only(good))
        self.tasks = [task for task in left if task.points]

    def _mark_near(self, rows: Array, near: Array) -> None:
        """Mark the active rows that have coefficients or are near the margin; keep outputs."""
        for task in self.tasks:
            slack = task.enter(task.score - task.level[:, None], rows)
            near[rows] |= ((task.coef != 0.0) | (slack < NEXT)).any(axis=0)

    def _outside(self, rows: Array, near: Array) -> Array:
        """Go over all other rows; which ones are close to the margin."""
        whole, ends = self.whole, np.cumsum([len(task.points) for task in self.tasks])
        for task in self.tasks:
            task.least = np.full(len(task.points), np.inf)
        coef = np.concatenate([task.coef for task in self.tasks])
        support = np.flatnonzero(coef.any(axis=0))
        basis, coef = whole.X[rows[support]], np.ascontiguousarray(coef[:, support].T)
        model = Expansion(self.kernel, basis, coef, np.zeros(coef.shape[1]), exact=False)
        others = np.setdiff1d(self.every, rows, assume_unique=True)
        found, size = [rows[:0]], max(1, BLOCK // coef.shape[1])
        kept = [[own[:, :0]] for own in (task.coef for task in self.tasks)]
        for begin in range(0, others.size, size):
            if whole.stop():
                break
            some = others[begin : begin + size]
            values = np.split(model.decision_function(whole.X[some], whole.threads).T, ends[:-1])
            least = np.full(some.size, np.inf)
            for task, own in zip(self.tasks, values, strict=True):
                own -= task.level[:, None]
                slack = task.enter(own, some)
                task.least = np.minimum(task.least, slack.min(axis=1))
                least = np.minimum(least, slack.min(axis=0))
            near[some[least < NEXT]] = True
            close = np.flatnonzero(least < NEAR)
            found.append(some[close])
            for parts, own in zip(kept, values, strict=True):
                parts.append(own[:, close])
        for task, parts in zip(self.tasks, kept, strict=True):
            task.close = np.concatenate(parts, axis=1)
        return np.concatenate(found)

    def _hand_out(self) -> None:
        """Points that no other row violates are done."""
        left = []
        for task in self.tasks:
            tol, at = task.points[0].tol, task.place[task.problem.test]
            done = task.least >= -np.minimum(tol - task.violation, 0.5 * tol)
            for c in np.flatnonzero(done):
                self.consume(task.points[c], task.problem, task.outputs[c, at][:, None], None)
            left.append(task.only(~done))
        self.tasks = [task for task in left if task.points]

    def _join(self, rows: Array, others: Array) -> Array:
        """The active rows with those that are close to the margin for a point that is left."""
        least = np.min([task.slack(task.close, others).min(axis=0) for task in self.tasks], axis=0)
        close = least < NEAR
        for task in self.tasks:
            score = task.close[:, close] + task.level[:, None]
            task.coef = np.concatenate([task.coef, np.zeros_like(score)], axis=1)
            task.score = np.concatenate([task.score, score], axis=1)
        return np.concatenate([rows, others[close]])
