"""The path of a sparse model by descent: one run at the size asked for, then smaller ones.

1. :mod:`slimsvm.solvers.descent` finds vectors, widths and metric.
2. :mod:`slimsvm.solvers.mapped_newton` solves the problem as it is written for their coefficients.
   Few vectors with large coefficients may be better than what the norm of f allows: if that costs
   more than WORTH of the score on held-out rows, or probabilities become worse, or Newton's method
   would take longer than AFFORDABLE of the descent, the descent's coefficients stay, times the one
   number that makes the held-out rows most likely, with the gap that they have. Many rows: TRIED
   of them are left out of the descent for that; few: a descent on three quarters of them is tried,
   going on from there with a stronger ridge, one without a metric, and going on as before, for as
   long as that brings something; all rows then go on from the best. Where held-out rows
   would have the scores more than SURE times as large, smooth labels hide how sure one can be: a
   descent on labels as they are is tried, too. Rows in a sequence are judged by the last ones
   (:mod:`slimsvm.solvers.row_order`); of many such rows, short descents say whether a metric is
   learned at all.
3. The path downwards: vectors that contribute least leave, and a short descent follows.

Where there are no more distinct rows than vectors were asked for, or few rows at all, rows are the
vectors, in the order of the pivots of a Cholesky factor, and their best coefficients are found to
near float64 precision: nothing is drawn.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve
from scipy.linalg.lapack import dpstrf
from scipy.optimize import minimize_scalar

from slimsvm.expansion import Expansion, MappedExpansion
from slimsvm.forms import EXPONENTIAL
from slimsvm.losses import Logistic, Softmax
from slimsvm.precision import NEWTON_TOL
from slimsvm.problems.mapped import (
    Coordinates,
    Look,
    Mapped,
    MappedSpan,
    Vectors,
    standardised,
)
from slimsvm.problems.mapped_rows import MappedRows
from slimsvm.run import Certificate, Result, Status, run
from slimsvm.solvers.descent import FEW, Descent, plan_for, step_work
from slimsvm.solvers.descent import RIDGE as RIDGE_OF_FEW
from slimsvm.solvers.first_vectors import first_vectors, groups_of
from slimsvm.solvers.mapped_newton import (
    FACTORISED,
    SAMPLED,
    SAMPLED_A_VECTOR,
    MappedNewton,
)
from slimsvm.solvers.path_points import HISTORY, PathModel, PathPoint, Scoring, sizes_up_to
from slimsvm.solvers.row_order import in_sequence, last_first
from slimsvm.training import Fit

Array = NDArray[Any]
CHEAP = 5000  # rows up to which Newton's method costs next to nothing
WORTH = 0.001  # of the score: what the best coefficients may cost on held-out rows
LIKELY = 1.02  # times the logarithm of the likelihood of these, too
TRIED, TRIED_SHARE = 1000, 0.05  # rows left out of a descent, at most
FEW_SHARE = 0.25  # of few rows, or of a sequence: descents without these say which way is best
TRIAL_ROWS = 4000  # on which the best coefficients are tried before they are found on all rows
SHORTER, SHORTER_AUTO = 0.03, 0.15  # steps of the descent at a smaller size, as a share
AFFORDABLE = 0.5  # of the descent's arithmetic that Newton's method may take
LEAST_STEPS = 20
FACTOR_EXACT = 5e-3  # of a factor of the scores
# arithmetic of a descent that is tried in all ways, if rows are few, or not so few; or in two
RACED, RACED_IN_TWO, IN_TWO = (4e9, 2.5e9), 8e9, 12_000
# times as much and as many, for long sparse rows and narrower vectors alone: exact fits of these
# rows take longer
OF_TEXT = 1.4
# factor of the scores from which on smooth labels are in the way; steps on sharp ones, as a share
SURE, SHARPENED = 2.2, 0.3
SHORT_RACE = 0.15  # of the steps, for a race of metrics
AFTER_RACE = 0.7  # of the steps, from where such a race has ended
# of the steps, for a descent that goes on where one has ended; for the last one, if that was of use
AGAIN, LONGER = 0.5, 1.5
# mean square of rows in inner coordinates, and share of rows that are right, below which narrower
# vectors are tried: those of gamma="scale"
SMOOTH_KERNEL, LEARNED = 0.5, 0.95
FIRM = 0.05
# of few rows: times C, by folds of this many; so much the cost is to fall at least, and their gap
MORE_C, FOLDS, LIKELIER, FOLD_TOL = (1.0, 4.0, 16.0, 64.0), 5, 0.99, 1e-3
STRONGER, SLOWLY = 5.0, 0.05  # times the ridge; the rate of the coefficients
PRUNED_ON, RIDGE = 2000, 1e-6  # rows on which vectors are told apart; of these, for coefficients
NEWTON_STEPS, NEWTON_STEPS_USUALLY = 50, 5
PRODUCTS = 15  # of conjugate gradients in a step, usually
WIDER = 20_000_000  # kernel values that may be made again in float64


@dataclass(frozen=True, kw_only=True)
class DescentPath:
    """What a descent needs to know beside the problem.

    Parameters
    ----------
    n_basis : int
        Vectors.
    metric : {"auto", "full", "diagonal", None}
        What of the metric is learned.
    scoring : Scoring
        For the scores of the points, and when to stop if it has rows that were held out.
    accuracy_loss : float, optional
        With rows held out: the smallest size within this of the best score is wanted.
    everything : array, optional
        The vectors, if they are the distinct rows, in inner coordinates; ``indices`` are theirs.
    start : Vectors, optional
        Where to begin.
    whole : MappedRows, optional
        All rows, where the problem has only some of them: there, the best coefficients are found,
        and models are measured.
    seen : array, optional
        The rows as the descent sees them, where they are not what they seem
        (:mod:`slimsvm.problems.mapped_wide`).
    fills : bool
        Whether the size is of a model with its metric, whose bytes would be lost without one.
    codes : array, optional
        With ``everything``: hashes of the rows. C is then a proposal: rows left out say whether
        coefficients for a larger one do better.
    seed, tol, max_iter :
        As usual; ``max_iter`` limits Newton's method.
    """

    n_basis: int
    metric: str | None
    scoring: Scoring
    accuracy_loss: float | None = None
    everything: Array | None = None
    indices: Array | None = None
    codes: Array | None = None
    start: Vectors | None = None
    whole: MappedRows | None = None
    seen: Array | None = None
    fills: bool = False
    seed: int = 0
    tol: float = 1e-3
    max_iter: int = NEWTON_STEPS

    def solved(self, problem: Mapped, kernel: Any, fit: Fit) -> Result:
        """All points, as a :class:`slimsvm.solvers.path.PathModel`."""
        work = _Work(self, problem, kernel, fit)
        return work.exact() if self.everything is not None else work.path()


class _Work:
    """One fit."""

    def __init__(self, path: DescentPath, problem: Mapped, kernel: Any, fit: Fit) -> None:
        self.path_, self.problem, self.kernel, self.fit = path, problem, kernel, fit
        self.rng = np.random.default_rng(path.seed)
        self.history: dict[str, list[Array]] = {name: [] for name in ("seconds", *HISTORY)}
        self.n_iter = 0
        self.way: dict[str, Any] = {}  # what a race has found to be better than the plan
        self.longer = 1.0  # times the steps
        self._metric: tuple[Coordinates, Any] | None = None
        self.whole: Any = problem if path.whole is None else path.whole  # all rows
        self.seen = problem if path.seen is None else replace(problem, X=path.seen)

    # -- the two ways ------------------------------------------------------------------------------

    @property
    def _exact(self) -> bool:
        """Whether rows, and so the model, are in float64."""
        return bool(self.problem.X.dtype == np.float64)

    def exact(self) -> Result:
        B, asked, outputs = self.path_.everything, self.path_, self.problem.Y.shape[1]
        assert B is not None
        tol = NEWTON_TOL if self._exact else asked.tol
        points, coef, intercept = [], np.zeros((0, outputs)), np.zeros(outputs)
        times, factor = (1.0, 1.0) if asked.codes is None else self._larger_C(asked.codes)
        problem = self.whole if times == 1.0 else _with_C(self.problem, times)
        for size in sizes_up_to(len(B)):
            coef = np.vstack([coef, np.zeros((size - len(coef), outputs))])
            start = Vectors(B[:size], np.ones(size), coef, intercept)
            found = self._newton(problem, start, tol)
            coef, intercept = found.model.coef, found.model.intercept
            if times == 1.0:
                points.append(self._point(found.model, found.certificate))
            else:
                point, about = self._measured(_scaled(found.model, factor))
                points.append(point)
                found = replace(found, certificate=about, status=Status("converged"))
        model = PathModel(points, self._chosen(points), len(B))
        return replace(found, model=model, history=self._history(), n_iter=self.n_iter)

    def _larger_C(self, codes: Array) -> tuple[float, float]:
        """How many times C, and the scores then, make rows that are left out likeliest.

        The logistic loss of few rows at a moderate C is far from its asymptote everywhere, where
        the hinge is zero already: scores stay small, and those of rare classes below the others.
        Folds follow from the rows and nothing else, so that repeated rows are weights here too.
        """
        P, B = self.problem, self.path_.everything
        assert B is not None
        label = P.Y.argmax(axis=1) if P.Y.shape[1] > 1 else (P.Y[:, 0] > 0).astype(np.intp)
        kinds, kind = np.unique(np.c_[label, codes], axis=0, return_inverse=True)
        begin = np.searchsorted(kinds[:, 0], kinds[:, 0])
        fold = ((np.arange(len(kinds)) - begin) % FOLDS)[kind.ravel()]
        alone = np.bincount(kinds[:, 0]) < 2  # no class is left out whole
        fold[alone[label]] = FOLDS
        best, least, factor = 1.0, np.inf, 1.0
        outputs = P.Y.shape[1]
        zeros = np.zeros((len(B), outputs)), np.zeros(outputs)
        starts = [Vectors(B, np.ones(len(B)), *zeros)] * FOLDS
        for times in MORE_C:
            scores = np.zeros_like(P.Y)
            for f in range(FOLDS):
                out = np.flatnonzero(fold == f)
                solver = MappedNewton(vectors=starts[f])
                part = _with_C(P.some(np.flatnonzero(fold != f)), times)
                v = starts[f] = self._run(solver, part, None, tol=FOLD_TOL).model
                scores[out] = MappedSpan(P.some(out), v).scores(v.coef) + v.intercept
            cost, own = self._cost(P.some(np.flatnonzero(fold < FOLDS)), scores[fold < FOLDS])
            if cost < least * (1.0 if best > 1.0 else LIKELIER):
                best, least, factor = times, cost, own if times > 1.0 else 1.0
        return best, factor

    @staticmethod
    def _cost(problem: Mapped, scores: Array) -> tuple[float, float]:
        """The least cost of scores times a factor, and the factor."""
        factor = _likeliest_factor(problem, scores)
        losses = problem.loss.value(problem.Y, factor * scores)
        return float(np.sum(problem.weight @ losses)), factor

    def path(self) -> Result:
        P, asked = self.seen, self.path_
        score = self._score_of_held_out()
        n, rng = P.n, self.rng
        factor, best, tried, start = 1.0, True, None, asked.start
        n_ways = self._ways(P) if score is None else 0
        if score is None:
            group = groups_of(P)
            own = np.random.default_rng(asked.seed)  # what is drawn later does not depend on it
            sequence = P.takes_labels and in_sequence(P.X, group, own)
            order = last_first(group) if sequence else rng.permutation(n)
        if n_ways:  # descents on a part say which way is best
            out = order[: round(FEW_SHARE * n)]
            if out.size >= 10:
                part, rest = P.some(np.sort(order[out.size :])), P.some(out)
                start, liked = self._raced(part, rest, n_ways)
                best, factor = self._trial(part, liked, rest)
        elif score is None:
            if sequence and asked.metric == "auto" and plan_for(P, asked.n_basis).metric:
                ended = self._race_metric(P, order)
                if start is None:
                    start, self.longer = ended, AFTER_RACE
            h = min(TRIED, round(TRIED_SHARE * n))
            tried, P = P.some(order[:h]), P.some(np.sort(order[h:]))
        found = self._descended(P, score, start, self.longer)
        if tried is not None:
            found = self._surer(P, found, tried)
            best, factor = self._trial(P, found, tried)
        elif score is not None:
            best, factor = self._trial(P, found, self._held_out())
        # from here on the metric is the one found, of all sizes
        if asked.whole is not None:
            self.whole = asked.whole.in_metric(found)
        seen = None if self.seen is self.problem else self.seen.in_metric(found)[0]
        self.problem, found = self.problem.in_metric(found)
        self.seen = self.problem if seen is None else seen
        if asked.whole is None:
            self.whole = self.problem
        result, first = self._finished(self.whole, found, best, factor)
        if best and tried is not None and self._by_chance(found, factor, first):
            best = False
            result, first = self._finished(self.whole, found, best, factor)
        points, vectors = [first], result.model
        known = {vectors.n: vectors}
        for size in reversed(sizes_up_to(asked.n_basis)[:-1]):
            if self.fit.limits.reason():
                break
            if size < vectors.n:
                vectors = self._smaller(vectors, size, factor)
                points.append(self._measured(vectors)[0])
                known[size] = vectors
        points.reverse()
        chosen = self._chosen(points)
        if chosen is not points[-1]:
            at = points.index(chosen)
            result, chosen = self._finished(self.whole, known[chosen.n_basis], best, 1.0)
            points[at] = chosen
        model = PathModel(points, chosen, asked.n_basis)
        return replace(result, model=model, history=self._history(), n_iter=self.n_iter)

    def _history(self) -> dict[str, Array]:
        return {name: np.concatenate(parts) for name, parts in self.history.items()}

    @property
    def _options(self) -> dict[str, Any]:
        return {"seed": self.path_.seed, "limits": self.fit.limits, "measured": False}

    def _ways(self, problem: Mapped) -> int:
        """In how many ways a descent may be tried: so that all take about half a second at most."""
        plan, k = plan_for(problem, self.path_.n_basis, self.path_.metric), self.path_.n_basis
        work = plan.n_steps * step_work(plan.batch, k, problem.n_coordinates, plan.metric)
        if problem.n > FEW and not problem.takes_labels:
            return 0  # of numbers the descents are longer
        if problem.n <= CHEAP and work <= RACED[problem.n > FEW]:
            return 4 + 2 * (not problem.takes_labels and 2 * work <= RACED[0])
        if problem.n <= IN_TWO and work <= RACED_IN_TWO:
            return 3
        text = self.path_.seen is not None and problem.n <= OF_TEXT * IN_TWO
        return 1 if text and work <= OF_TEXT * RACED_IN_TWO else 0

    def _raced(
        self, problem: Mapped, tried: Mapped, n_rounds: int
    ) -> tuple[Vectors | None, Vectors]:
        """Of several ways to go on after a descent, what these rows like best; the way is kept.

        Where to begin with all rows, if not anew, and what was liked best.
        """
        few = problem.n <= FEW
        first = self._descended(problem)
        right, cost, factor = self._seen(first, tried)
        best, sure, rounds = (cost, first), [factor], 1

        def tries(way: dict[str, Any], start: Vectors | None = None) -> bool:
            """Whether it is better, which is kept."""
            nonlocal best, rounds
            if rounds >= n_rounds or self.fit.limits.reason():
                return False
            keep, self.way, rounds = self.way, way, rounds + 1
            v = self._descended(problem, start=start, share=1.0 if start is None else AGAIN)
            score, cost, factor = self._seen(v, tried)
            sure.append(factor)
            # likelier, perhaps, but more often wrong than the plan: not where that can be seen
            if cost < best[0] and (few or score >= right):
                best = cost, v
                return True
            self.way = keep
            return False

        if problem.form[0] == EXPONENTIAL and right < LEARNED:
            spread = float(np.square(problem.X - problem.X.mean(axis=0)).sum(axis=1).mean())
            if spread < SMOOTH_KERNEL:  # nearly linear: a way out of it may not have been found
                n_rounds += 1
                tries({"width": 1.0 / spread})
        tries({**self.way, "ridge": STRONGER * RIDGE_OF_FEW / problem.total_weight}, best[1])
        if few and self.path_.metric in ("auto", None) and not self.path_.fills:
            tries({"metric": None, "rate_coef": SLOWLY})
        if few and not problem.takes_labels:  # what is learned of few numbers may be their noise
            ridge = FIRM
            while tries({**self.way, "ridge": ridge}, best[1]):
                ridge *= STRONGER
        self.longer = 1.0
        while tries(self.way, best[1]):
            self.longer = LONGER
        if max(sure) >= SURE:
            n_rounds = rounds + 1
            tries({**self.way, "smooth": 0.0}, _scaled(best[1], max(sure)))
        # where going on was of no use, rows are not gone through more often than that
        return None if best[1] is first and not few else best[1], best[1]

    def _seen(self, v: Vectors, tried: Mapped) -> tuple[float, float, float]:
        """The score of vectors on these rows, their cost, and the factor that makes it least."""
        scores = MappedSpan(tried, v).scores(v.coef) + v.intercept
        factor = _likeliest_factor(tried, scores)
        score = float(self.path_.scoring.measure(scores, tried.Y, tried.weight))
        cost = float(np.sum(tried.weight @ tried.loss.value(tried.Y, factor * scores)))
        return score, cost, factor

    def _surer(self, problem: Mapped, found: Vectors, tried: Mapped) -> Vectors:
        """The same after steps on labels as they are, where smooth ones hide how sure one can be.

        Rows without noise, and many in few dimensions: there the boundary is as sharp as it looks.
        """
        plan = plan_for(problem, found.n, self.path_.metric)
        if not plan.smooth or self.fit.limits.reason():
            return found
        score, cost, factor = self._seen(found, tried)
        if factor < SURE:
            return found
        keep, self.way = self.way, {**self.way, "smooth": 0.0}
        sharp = self._descended(problem, start=_scaled(found, factor), share=SHARPENED)
        self.way = keep
        new_score, new_cost, _ = self._seen(sharp, tried)
        return sharp if new_score >= score and new_cost < cost else found

    def _race_metric(self, problem: Mapped, order: Array) -> Vectors:
        """Short descents with and without a metric, judged by rows that come later.

        Without one, if these rows clearly like that better: what fits rows of one time may not fit
        those of another. Returns what the way that is taken has come to: where to go on.
        """
        out = round(FEW_SHARE * problem.n)
        part, rest = problem.some(np.sort(order[out:])), problem.some(order[:out])
        n_steps = round(SHORT_RACE * plan_for(problem, self.path_.n_basis).n_steps)
        ways: list[dict[str, Any]] = [{}, {"metric": None}]
        scores, ended = [], []
        for way in ways:
            self.way = {"n_steps": n_steps, **way}
            v = self._descended(part)
            ended.append(v)
            found = MappedSpan(rest, v).scores(v.coef) + v.intercept
            scores.append(float(self.path_.scoring.measure(found, rest.Y, rest.weight)))
        errors = 2.0 - sum(scores)
        clearly = scores[1] - scores[0] > 2.0 * np.sqrt(max(errors, 0.0) / max(1, out))
        self.way = ways[int(clearly)]
        return ended[int(clearly)]

    # -- their parts -------------------------------------------------------------------------------

    def _descended(
        self, problem: Mapped, score: Any = None, start: Any = None, share: float = 1.0
    ) -> Vectors:
        """Vectors by a descent; in regression, on targets of mean zero and deviation one.

        With a share of the steps.
        """
        mean, scale = 0.0, 1.0
        if not problem.takes_labels:
            problem, mean, scale = standardised(problem)
        plan = replace(plan_for(problem, self.path_.n_basis, self.path_.metric), **self.way)
        if start is None:
            start = first_vectors(problem, self.path_.n_basis, self.rng, width=plan.width)
        elif not problem.takes_labels:
            start = _in_units(start, -mean / scale, 1.0 / scale)
        plan = replace(plan, n_steps=max(LEAST_STEPS, round(share * plan.n_steps)))
        judge = None
        if score is not None:

            def judge(v: Vectors) -> float:
                return float(score(_in_units(v, mean, scale)))

        solver = Descent(plan=plan, score=judge, **self._options)
        return _in_units(self._run(solver, problem, start).model, mean, scale)

    def _trial(self, problem: Mapped, found: Vectors, tried: Mapped) -> tuple[bool, float]:
        """Whether the best coefficients do as well on these rows; the factor for the others."""
        measure = self.path_.scoring.measure

        def scores(v: Vectors) -> Array:
            return MappedSpan(tried, v).scores(v.coef) + v.intercept

        before = scores(found)
        factor = _likeliest_factor(tried, before)
        if self.fit.limits.reason() or not self._affordable(found):
            return False, factor
        if self.path_.seen is not None:  # the best ones for rows that are not what they seem
            return False, factor
        part, n = problem, problem.n
        wanted = max(TRIAL_ROWS, 4 * found.n)
        if n > 2 * wanted:
            part = problem.some(np.sort(self.rng.permutation(n)[:wanted]))
            part = replace(part, weight=part.weight * (problem.total_weight / part.total_weight))
        best = scores(self._newton(part, found, max(self.path_.tol, 1e-2)).model)
        as_right = measure(best, tried.Y, tried.weight) >= (
            measure(before, tried.Y, tried.weight) - WORTH
        )
        if not isinstance(tried.loss, Logistic | Softmax):
            return as_right, factor
        # probabilities are part of the model

        def cost(of: Array) -> float:
            return float(np.sum(tried.weight @ tried.loss.value(tried.Y, of)))

        return as_right and cost(best) <= LIKELY * cost(factor * before), factor

    def _by_chance(self, found: Vectors, factor: float, point: PathPoint) -> bool:
        """Whether the best coefficients are clearly worse than the descent's on all rows.

        Of many rows, few were held out, and these may have liked both alike.
        """
        if not self.problem.takes_labels or self.fit.limits.reason():
            return False
        other = self._measured(_scaled(found, factor))[0].training_score
        errors = 2.0 - other - point.training_score
        return bool(other - point.training_score > 2.0 * np.sqrt(max(errors, 0.0) / self.whole.n))

    def _finished(
        self, problem: Any, found: Vectors, best: bool, factor: float
    ) -> tuple[Result, PathPoint]:
        """The best coefficients for these vectors, or those of the descent; and their point."""
        if best and not self.fit.limits.reason():
            result = self._newton(problem, found, self.path_.tol)
            return result, self._point(result.model, result.certificate)
        found = _scaled(found, factor)
        point, certificate = self._measured(found)
        return Result(found, certificate, Status("converged"), {}, max(1, self.n_iter)), point

    def _measured(self, v: Vectors) -> tuple[PathPoint, Certificate]:
        """The point of coefficients as they are, with the gap that they have.

        Of intercepts as they are stored: where they are not the best, what rounding them costs is
        no square of a rounding error.
        """
        stored = v.intercept.astype(self.problem.stored).astype(np.float64)
        v, span = replace(v, intercept=stored), self.whole.span(v)
        look = span.look(v.coef, v.intercept)
        about = span.certificate_of(v, look, self.path_.tol)
        return self._point(v, about, look), about

    def _affordable(self, found: Vectors) -> bool:
        """Whether Newton's method takes no more than a part of the work of the descent."""
        problem, n = self.problem, self.whole.n
        k, columns = found.n, problem.Y.shape[1]
        if n <= CHEAP:
            return True
        plan = plan_for(problem, k, self.path_.metric)
        descent = self.n_iter * step_work(plan.batch, k, problem.n_coordinates, plan.metric)
        newton = 2.0 * min(n, max(SAMPLED, SAMPLED_A_VECTOR * k)) * k * k
        newton += 8.0 * n * k * columns * (PRODUCTS if columns > FACTORISED else 1)
        return bool(NEWTON_STEPS_USUALLY * newton <= AFFORDABLE * descent)

    def _newton(self, problem: Any, start: Vectors, tol: float) -> Result:
        options = {"tol": tol, "max_iter": min(self.path_.max_iter, NEWTON_STEPS)}
        result = self._run(MappedNewton(vectors=start), problem, None, **options)
        hidden = not result.certificate.holds and problem.dtype == np.float32
        if hidden and problem.n * start.n <= WIDER and not self.fit.limits.reason():
            # rounding errors of float32 hide how far it is
            solver = MappedNewton(vectors=result.model)
            result = self._run(solver, problem.wider(), None, **options)
        return result

    def _run(self, solver: Any, problem: Any, start: Any, **options: Any) -> Result:
        options = {"tol": self.path_.tol, **options}
        limits, watchers = self.fit.limits, self.fit.watchers
        result = run(solver, problem, limits=limits, start=start, watchers=watchers, **options)
        n = result.history["seconds"].size
        for name, parts in self.history.items():
            parts.append(result.history.get(name, np.full(n, np.nan)))
        self.n_iter += result.n_iter
        return result

    def _smaller(self, vectors: Vectors, size: int, factor: float) -> Vectors:
        """Some of the vectors, after a short descent in the metric that is known.

        Those whose contributions the others depend on most: pivots of a Cholesky factor.
        """
        P, scale, mean = self.seen, 1.0, 0.0
        if not P.takes_labels:
            P, mean, scale = standardised(P)
        v = _in_units(_scaled(vectors, 1.0 / factor), -mean / scale, 1.0 / scale)
        some = np.sort(self.rng.permutation(P.n)[:PRUNED_ON])
        K = MappedSpan(P.some(some), v).values_of_all()
        shares = K * np.linalg.norm(v.coef, axis=1)
        _, pivots, _, _ = dpstrf(shares.T @ shares, tol=0.0, lower=1)
        stay = np.sort(pivots[:size] - 1)
        # what is left of the others goes to those that stay
        H = K[:, stay].T @ K[:, stay] + RIDGE * len(some) * np.eye(size)
        coef = solve(H, K[:, stay].T @ (K @ v.coef), assume_a="pos")
        kept = Vectors(v.B[stay], v.widths[stay], coef, v.intercept)
        plan = plan_for(P, size, None)
        share = SHORTER if self.path_.accuracy_loss is None else SHORTER_AUTO
        plan = replace(plan, n_steps=max(LEAST_STEPS, round(share * plan.n_steps)))
        found = self._run(Descent(plan=plan, **self._options), P, kept)
        return _scaled(_in_units(found.model, mean, scale), factor)

    # -- points ------------------------------------------------------------------------------------

    def _expansion(self, v: Vectors) -> tuple[Expansion, Any, Any]:
        """The function in terms of the features; its metric and widths."""
        P, about = self.problem, self._metric
        if P.form[0] == EXPONENTIAL and (about is None or about[0] is not P.coordinates):
            # once for all sizes, which share one array
            dtype = np.float64 if self._exact else np.float32
            about = P.coordinates, metric_and_centre(P.coordinates, self.kernel, dtype)
            self._metric = about
        known = None if about is None else about[1]
        of = (P.coordinates, self.kernel, P.norm, P.form, self._exact)
        return expansion_of(v, *of, labels=P.takes_labels, known=known)

    def _point(self, v: Vectors, about: Certificate, look: Look | None = None) -> PathPoint:
        f, metric, widths = self._expansion(v)
        return PathPoint(
            v.n,
            f.basis,
            f.coef,
            f.intercept,
            None if self.path_.indices is None else self.path_.indices[: v.n],
            about.objective,
            about.gap,
            self._training_score(v, look),
            self.path_.scoring.validated(f),
            metric=metric,
            widths=widths,
            rounding=about.rounding,
        )

    def _training_score(self, v: Vectors, look: Look | None) -> float:
        """On all rows, whose scores the look knows."""
        P = self.problem
        if self.whole is not P:
            return float(self.whole.training_score(P.takes_labels, v, look))
        raw = MappedSpan(P, v).scores(v.coef) if look is None else look.scores
        return self.path_.scoring.measure(raw + v.intercept, P.Y, P.weight)

    def _held_out(self) -> Mapped:
        held = self.path_.scoring.held_out
        assert held is not None
        X, target, weight = held
        P = self.problem
        if isinstance(P.loss, Softmax):
            target = (target > 0).astype(np.float64)
        return replace(P, X=P.coordinates.of(X, P.X.dtype.type), Y=target, weight=weight)

    def _score_of_held_out(self) -> Any:
        """Of vectors, on the rows held out; None if there are none."""
        if self.path_.scoring.held_out is None:
            return None
        held, measure = self._held_out(), self.path_.scoring.measure

        def score(v: Vectors) -> float:
            found = MappedSpan(held, v).scores(v.coef) + v.intercept
            return float(measure(found, held.Y, held.weight))

        return score

    def _chosen(self, points: list[PathPoint]) -> PathPoint:
        """The largest, or the smallest that is nearly as good on the rows held out."""
        loss = self.path_.accuracy_loss
        if loss is None or self.path_.scoring.held_out is None:
            return points[-1]
        scores = [point.validation_score or 0.0 for point in points]
        good = [p for p, s in zip(points, scores, strict=True) if s >= max(scores) - loss]
        return good[0] if good else points[-1]


def expansion_of(
    v: Vectors,
    at: Coordinates,
    kernel: Any,
    norm: float,
    form: Any,
    exact: bool,
    *,
    labels: bool,
    known: Any = None,
) -> tuple[Expansion, Array | None, Array | None]:
    """Vectors in inner coordinates as a function of features; with its metric and widths.

    In float32, unless ``exact``; but intercepts only for labels, since targets may lie far from
    zero, where float32 has no digits left for what the function says beside it. ``known`` is what
    :func:`metric_and_centre` says of these coordinates, where it was asked before.
    """
    dtype = np.float64 if exact else np.float32
    coef = (v.coef / norm).astype(dtype)
    intercept = v.intercept.astype(dtype if labels else np.float64)
    B, at = v.placed(v.B.astype(np.float64)), at.then(v.metric)
    if form[0] != EXPONENTIAL:
        plain = Expansion(kernel, (B / at.turn).astype(dtype), coef, intercept, exact=exact)
        return plain, None, None
    if known is None or v.metric is not None:
        known = metric_and_centre(at, kernel, dtype)
    metric, centre, root = known
    basis, widths = (B / root + centre).astype(dtype), v.widths.astype(dtype)
    if metric is None and np.all(widths == 1.0):
        return Expansion(kernel, basis, coef, intercept, exact=exact), None, None
    f = MappedExpansion(kernel, basis, coef, intercept, exact=exact, metric=metric, widths=widths)
    return f, metric, widths


def metric_and_centre(at: Coordinates, kernel: Any, dtype: Any) -> tuple[Array | None, Any, float]:
    """What turns features into those of the model, their mean there, and the root of gamma."""
    assert at.mean is not None
    root = float(np.sqrt(kernel.form()[1]))
    if not np.ndim(at.turn):
        return None, at.mean, root
    metric = np.asarray(at.turn) / root
    centre = at.mean * metric if metric.ndim == 1 else at.mean @ metric
    return np.ascontiguousarray(metric, dtype), centre, root


def _in_units(v: Vectors, mean: float, scale: float) -> Vectors:
    return replace(v, coef=v.coef * scale, intercept=v.intercept * scale + mean)


def _with_C(problem: Mapped, times: float) -> Mapped:
    return replace(problem, weight=problem.weight * times)


def _scaled(v: Vectors, factor: float) -> Vectors:
    return v if factor == 1.0 else replace(v, coef=v.coef * factor, intercept=v.intercept * factor)


def _likeliest_factor(tried: Mapped, scores: Array) -> float:
    """What the scores of a descent are to be multiplied by.

    Its labels were smoothed; rows that it has not seen say how sure it may be. One where scores are
    not the logarithms of odds.
    """
    if not isinstance(tried.loss, Logistic | Softmax):
        return 1.0

    weight = tried.weight
    if isinstance(tried.loss, Softmax):  # turned, so that operations run along the rows
        turned = np.ascontiguousarray((scores - scores.max(axis=1, keepdims=True)).T)
        own = turned[tried.Y.argmax(axis=1), np.arange(tried.n)]

        def cost(log_factor: float) -> float:
            t = np.exp(log_factor)
            return float(weight @ (np.log(np.exp(t * turned).sum(axis=0)) - t * own))

    else:

        def cost(log_factor: float) -> float:
            return float(np.sum(weight @ tried.loss.value(tried.Y, np.exp(log_factor) * scores)))

    options = {"xatol": FACTOR_EXACT}
    bounds = (np.log(0.2), np.log(5.0))
    found = minimize_scalar(cost, bounds=bounds, method="bounded", options=options)
    return float(np.exp(found.x))
