"""The same outputs at held-out rows from the kernel values of the rows that matter alone.

Where kernel values of all rows do not fit into memory. Of many rows, most are on the right side of
the margin for every fold and every C, and have no coefficient; the others fit far more often.

Algorithm, for each kernel: (1) all points are solved with the matrix of the active rows
(:mod:`slimsvm.search.held_out`), at first with a larger tolerance; (2) one pass over all other
rows, for all points at once: what they violate, and their outputs where they are held out;
(3) points that no row violates are done; rows that violate, or nearly so, become active in place of
those that are farthest from the margin, and the other points go on from where they were. The first
rows are those near the margin with the kernel before; of the first kernel, random ones, whose
solutions say which rows are near. Where rows with coefficients alone are too many, large and small
C part ways, then folds. Where there are too many for one problem, kernel rows are cached
(:mod:`slimsvm.search.row_cached`).

The conditions hold for all rows within the tolerance: the slopes of rows that may fall and of those
that may rise, active or not, overlap by no more.

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
from slimsvm.solvers.shared_path import borders

Array = NDArray[Any]
FIRST = 4000  # random rows, to begin with
OF_EACH = 8  # rows of each class of each fold, at least
# how near the margin a row is, in units of the outputs, that joins with those that violate; and
# that is active from the beginning after the random rows, or with the next kernel
NEAR, NEXT = 0.05, 0.1
# the tolerance as long as more of the rows than this are violated; rounds of this kind, at most
LOOSE, MANY, MOST_LOOSE = 0.02, 0.05, 4
MOST_ROUNDS = 20  # 3 to 6 are usual; more where rounding errors are as large as what is left
SOME = 256  # rows that join without a violation, beside as many as violate
# of the rows for which there is memory: those to begin with, and those with coefficients, at most
BEGIN, MOST = 0.7, 0.85
# what a task has for each of its points
OF_POINT = (
    *("outputs", "coef", "score", "level", "violation", "close"),
    *("over", "under", "others_over", "others_under"),
)
BLOCK = 1 << 22  # outputs of other rows that are made at once


@dataclass
class Task:
    """The points of a fold that are solved together, and what is known of them."""

    problem: FoldProblem
    points: list[Point]
    target: Array  # of all rows: -1 and 1, or targets
    # of all rows: weights, where coefficients may be below zero, and above
    below: Array
    above: Array
    place: Array  # of all rows: where they are among those with outputs, or -1
    # of each point: outputs; coefficients and inner products of the active rows, minus the
    # intercept, and the violation among them; outputs of other rows that are close to the margin
    outputs: Array
    coef: Array
    score: Array
    level: Array
    violation: Array
    close: Array
    # how far slopes of active rows that may fall are above the level, those that may rise below it;
    # and the same of other rows
    over: Array
    under: Array
    others_over: Array
    others_under: Array

    def slack(self, f: Array, rows: Array) -> tuple[Array, Array]:
        """How far rows without coefficients are from rising, and from falling: (points, rows).

        Negative: they violate the conditions. f are outputs.
        """
        epsilon, far = self.points[0].epsilon, f - self.target[rows]
        rise, fall = epsilon + far, epsilon - far
        rise[:, self.above[rows] == 0.0] = np.inf
        fall[:, self.below[rows] == 0.0] = np.inf
        return rise, fall

    def look_inside(self, rows: Array) -> None:
        """What the violation is on either side of the level."""
        target, below, above = (of[rows] for of in (self.target, self.below, self.above))
        scratch = np.empty((2, rows.size))
        for c, point in enumerate(self.points):
            bounds = -point.C * below, point.C * above
            known = np.ascontiguousarray(self.coef[c]), np.ascontiguousarray(self.score[c])
            bottom, top = borders(target, *bounds, point.epsilon, *known, *scratch)
            self.over[c], self.under[c] = top - self.level[c], self.level[c] - bottom

    def done(self) -> Array:
        """Which points no row violates."""
        over = np.maximum(self.over, self.others_over)
        under = np.maximum(self.under, self.others_under)
        tol = self.points[0].tol
        return np.asarray((self.violation <= tol) & (over + under <= tol))

    def only(self, which: Array) -> Task:
        """The same for some of the points."""
        points = [point for point, one in zip(self.points, which, strict=True) if one]
        return replace(
            self, points=points, **{name: getattr(self, name)[which] for name in OF_POINT}
        )

    def keep(self, f: Array, rows: Array) -> None:
        """Outputs f, where they are wanted."""
        places = self.place[rows]
        wanted = places >= 0
        self.outputs[:, places[wanted]] = f[:, wanted]


@dataclass
class Job:
    """Points that are solved with the same active rows; and other rows, close to the margin.

    Before the first round, these are not known. The first rounds are ``loose``.
    """

    tasks: list[Task]
    rows: Array
    others: Array | None = None
    loose: int = 1
    n_rounds: int = 0


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
        self.near: Array | None = None  # of all rows: the least slack with the last kernel

    def solve(
        self, kernel: Kernel, problems: list[FoldProblem], consume: Consumer
    ) -> list[tuple[int, int]]:
        """Solve all problems of a kernel; candidates and folds that missed their tolerance."""
        missed: list[tuple[int, int]] = []
        if not isinstance(kernel, Linear):  # which needs no kernel rows
            work = Rounds(self, kernel, problems, consume)
            work.run(self.near)
            self.near, missed = work.near, work.missed
            problems = [replace(task.problem, points=task.points) for task in work.too_large]
        if not problems or self.stop():
            return missed
        how = (self.max_bytes, self.threads, self.limits)
        return missed + row_cached.solve(self.X, kernel, problems, *how, consume)


class Rounds:
    """The rounds of one kernel."""

    def __init__(
        self, whole: ActiveRows, kernel: Kernel, problems: list[FoldProblem], consume: Consumer
    ) -> None:
        self.whole, self.kernel, self.consume = whole, kernel, consume
        self.near = np.full(whole.n, np.inf)
        self.missed: list[tuple[int, int]] = []
        self.too_large: list[Task] = []
        self.tasks = [task for problem in problems for task in self._tasks(problem)]
        wanted = [rows for task in self.tasks for rows in (task.problem.rows, task.problem.test)]
        self.every = np.unique(np.concatenate(wanted))
        itemsize = 4 if isinstance(kernel, RBF) and not is_small(self.every.size) else 8
        self.most = int(np.sqrt(whole.max_bytes / itemsize))

    def _tasks(self, problem: FoldProblem) -> Iterator[Task]:
        n, groups = self.whole.n, dict[tuple[float, float], list[Point]]()
        weight, target, place = np.zeros(n), np.zeros(n), np.full(n, -1)
        weight[problem.rows], target[problem.rows] = problem.weight, problem.target
        below = above = weight
        if problem.classes.size:  # of two, as in :meth:`Space.paths`
            positive, _ = OneVsOne(2).pairs[0]
            target = np.where(target == positive, 1.0, -1.0)
            above, below = np.where(target > 0, weight, 0.0), np.where(target < 0, weight, 0.0)
        wanted = np.unique(problem.test)
        place[wanted] = np.arange(wanted.size)
        for point in problem.points:
            groups.setdefault((point.epsilon, point.tol), []).append(point)
        for points in groups.values():
            points.sort(key=lambda point: point.C)
            outputs, none = np.empty((len(points), wanted.size)), np.empty((len(points), 0))
            level, violation, *sides = np.full((6, len(points)), np.nan)
            known = (outputs, none, none, level, violation, none, *sides)
            yield Task(problem, points, target, below, above, place, *known)

    def run(self, near: Array | None) -> None:
        """Until all points are done or too large, or the search is stopped."""
        needed = self._of_each_class(self.tasks)
        if needed.size > self.most // 2:
            self.too_large = self.tasks
            return
        if near is None:
            near = self._near_random_rows(needed)
        begin = np.argsort(near, kind="stable")[: int(BEGIN * self.most) - needed.size]
        jobs = [Job(self.tasks, np.union1d(begin[near[begin] < NEXT], needed))]
        while jobs and not self.whole.stop():
            job = jobs.pop()
            job.n_rounds += 1
            if job.n_rounds > MOST_ROUNDS:
                self.too_large += job.tasks
            elif job.others is not None and not self._exchange(job):
                jobs += self._parts(job)
            elif self._solve(job):
                if not job.loose:
                    self._drop_missed(job)
                self._inside(job, self.near)
                self._outside(job, self.near)
                if not self.whole.stop():
                    self._hand_out(job)
                jobs += [job] if job.tasks else []

    def _of_each_class(self, tasks: list[Task]) -> Array:
        """Some rows of each class of each fold: without these it is no problem."""
        found = []
        for own in (task.problem for task in tasks):
            for c in range(max(1, own.classes.size)):
                of_class = own.target == c if own.classes.size else own.weight > 0.0
                found.append(own.rows[np.flatnonzero(of_class)[:OF_EACH]])
        return np.unique(np.concatenate(found))

    def _near_random_rows(self, needed: Array) -> Array:
        """The least slack of all rows with what random rows yield; these have the weight of all."""
        rows = np.random.default_rng(0).permutation(self.every)[: min(FIRST, self.most // 2)]
        near, job = np.full(self.whole.n, np.inf), Job(self.tasks, np.union1d(rows, needed))
        if self._solve(job, self.every.size / job.rows.size):
            self._inside(job, near)
            self._outside(job, near)
        return near

    def _solve(self, job: Job, heavier: float = 1.0) -> bool:
        """Solve all points with the active rows; False where the search was stopped."""
        whole, rows, here = self.whole, job.rows, np.full(self.whole.n, -1)
        warm, least = job.others is not None, LOOSE if job.loose else 0.0
        here[rows] = np.arange(rows.size)
        label = None if whole.label is None else whole.label[rows]
        space = Space(whole.X[rows], label, whole.threads, whole.max_bytes, whole.stop)
        paths: list[Path] = []
        for task in job.tasks:
            own = task.problem
            inside = here[own.rows] >= 0
            small = replace(
                own,
                rows=here[own.rows[inside]],
                target=own.target[inside],
                weight=heavier * own.weight[inside],
                test=own.test[:0],
                points=[replace(point, tol=max(point.tol, least)) for point in task.points],
            )
            (path,) = space.paths(small)
            if warm:
                path.start = task.coef[:, space.order], task.score[:, space.order]
            paths.append(path)
        for _, matrix in space.matrices([self.kernel]):
            by_path = {id(path): solved for path, solved in space.along(matrix, paths)}
            for task, path in zip(job.tasks, paths, strict=True):
                solved = by_path[id(path)]
                if solved is None:
                    return False
                assert solved.score is not None
                # in the order of the rows, whatever that of the space is
                task.coef, task.score = solved.coef[:, space.place], solved.score[:, space.place]
                task.level, task.violation = solved.level, solved.violation
        return True

    def _drop_missed(self, job: Job) -> None:
        """Points that missed the tolerance with the active rows are given up."""
        left = []
        for task in job.tasks:
            good = task.violation <= task.points[0].tol
            for point, one in zip(task.points, good, strict=True):
                if not one:
                    self.missed.append((point.candidate, task.problem.fold))
            left.append(task.only(good))
        job.tasks = [task for task in left if task.points]

    def _inside(self, job: Job, near: Array) -> None:
        """Outputs of the active rows, and how near the margin they are."""
        for task in job.tasks:
            task.keep(task.score - task.level[:, None], job.rows)
            task.look_inside(job.rows)
        near[job.rows] = np.minimum(near[job.rows], self._least_inside(job))

    def _least_inside(self, job: Job) -> Array:
        """The least slack of the active rows for any point; none if they have coefficients."""
        least = np.full(job.rows.size, np.inf)
        for task in job.tasks:
            slack = np.minimum(*task.slack(task.score - task.level[:, None], job.rows))
            slack[task.coef != 0.0] = -np.inf
            least = np.minimum(least, slack.min(axis=0))
        return least

    def _outside(self, job: Job, near: Array) -> None:
        """Outputs of all other rows, and which ones are close to the margin."""
        if not job.tasks:
            return
        whole, ends = self.whole, np.cumsum([len(task.points) for task in job.tasks])
        for task in job.tasks:
            task.others_over, task.others_under = np.full((2, len(task.points)), -np.inf)
        coef = np.concatenate([task.coef for task in job.tasks])
        support = np.flatnonzero(coef.any(axis=0))
        basis, coef = whole.X[job.rows[support]], np.ascontiguousarray(coef[:, support].T)
        model = Expansion(self.kernel, basis, coef, np.zeros(coef.shape[1]), exact=False)
        others = np.setdiff1d(self.every, job.rows, assume_unique=True)
        found, size = [job.rows[:0]], max(1, BLOCK // coef.shape[1])
        kept = [[own[:, :0]] for own in (task.coef for task in job.tasks)]
        for begin in range(0, others.size, size):
            if whole.stop():
                break
            some = others[begin : begin + size]
            values = np.split(model.decision_function(whole.X[some], whole.threads).T, ends[:-1])
            least = np.full(some.size, np.inf)
            for task, own in zip(job.tasks, values, strict=True):
                own -= task.level[:, None]
                task.keep(own, some)
                rise, fall = task.slack(own, some)
                task.others_under = np.maximum(task.others_under, -rise.min(axis=1))
                task.others_over = np.maximum(task.others_over, -fall.min(axis=1))
                least = np.minimum(least, np.minimum(rise, fall).min(axis=0))
            near[some] = np.minimum(near[some], least)
            close = np.flatnonzero(least < NEAR)
            found.append(some[close])
            for parts, own in zip(kept, values, strict=True):
                parts.append(own[:, close])
        for task, parts in zip(job.tasks, kept, strict=True):
            task.close = np.concatenate(parts, axis=1)
        job.others = np.concatenate(found)

    def _hand_out(self, job: Job) -> None:
        """Points that no other row violates are done."""
        left = []
        for task in job.tasks:
            at, done = task.place[task.problem.test], task.done()
            for c in np.flatnonzero(done):
                self.consume(task.points[c], task.problem, task.outputs[c, at][:, None], None)
            left.append(task.only(~done))
        job.tasks = [task for task in left if task.points]

    def _exchange(self, job: Job) -> bool:
        """Rows that are close to the margin become active, instead of the farthest ones.

        False where those with coefficients leave no room.
        """
        assert job.others is not None
        slack = self._least_inside(job)
        least = np.full(job.others.size, np.inf)
        for task in job.tasks:
            own = np.minimum(*task.slack(task.close, job.others))
            least = np.minimum(least, own.min(axis=0))
        slack[np.isin(job.rows, self._of_each_class(job.tasks))] = -np.inf
        if np.sum(slack == -np.inf) > MOST * self.most:
            return False
        room = self.most - int(np.sum(slack == -np.inf))
        n_violated = int(np.sum(least < 0.0))
        n_close = min(2 * n_violated + SOME, int(np.sum(least < NEAR)), room)
        close = np.argsort(least, kind="stable")[:n_close]
        keep = np.sort(np.argsort(slack, kind="stable")[: self.most - close.size])
        for task in job.tasks:
            score = task.close[:, close] + task.level[:, None]
            task.coef = np.hstack([task.coef[:, keep], np.zeros_like(score)])
            task.score = np.hstack([task.score[:, keep], score])
        many = n_violated > MANY * job.rows.size and job.loose < MOST_LOOSE
        job.loose = job.loose + 1 if many else 0
        job.rows = np.concatenate([job.rows[keep], job.others[close]])
        return True

    def _parts(self, job: Job) -> list[Job]:
        """Two jobs of fewer points, that with larger C last; too large is a single problem."""
        Cs = sorted({point.C for task in job.tasks for point in task.points})
        if len(Cs) == 1 and len(job.tasks) == 1:
            self.too_large += job.tasks
            return []
        if len(Cs) == 1:
            half = len(job.tasks) // 2
            parts = [job.tasks[:half], job.tasks[half:]]
        else:
            parts = [[], []]
            for task in job.tasks:
                large = np.array([Cs[len(Cs) // 2] <= point.C for point in task.points])
                for tasks, which in zip(parts, (~large, large), strict=True):
                    tasks += [task.only(which)] if which.any() else []
        return [Job(tasks, job.rows, job.others, job.loose) for tasks in parts]
