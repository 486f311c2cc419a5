"""Sampled cuts: structural SVMs with kernels in time linear in n, or independent of it.

Problem: that of :mod:`slimsvm.solvers.joint`, over all functions of the kernel. An exact cut is a
sum over all rows, and each product with it costs n kernel values; here a cut is made of a sample.

Algorithms: Yu & Joachims (2008), "Training structural SVMs with kernels using sampled cuts".

``sampling="linear_time"``, their Algorithm 3. Each round

    1. scores of all parts, from A: the products of all cuts with all parts, which are kept: O(t n)
    2. the worst output of every example: risk R, offset h, and I, the examples that are in the cut
    3. the end, if R <= xi + eps: the exact cut decides
    4. r examples of I, drawn with replacement, each with |I| / r times its share; drawn again
       (``max_draws`` times at most, then the most violated is taken) until the sampled gradient
       with the exact offset is violated by eps, as the exact cut is
    5. its products with all parts (r n kernel values), with all cuts (none), and the small problem

``sampling="constant_time"``, their Algorithm 2. Each round draws r examples and makes the cut of
these alone, as if they were all. It stops after ``quiet`` rounds in a row without a violation above
eps (1 in Algorithm 2, p = 4 in the experiments); other rounds add their cut. Only kernel values
among drawn parts are ever made.

eps is ``tol`` times the sum of the weights: the papers' eps, whose risk is a mean.
``SampledCuts(line_search=False, stop="violation", whole=False, max_draws=10_000)`` is the paper to
the letter: I is never taken whole, the model is the last point, and it stops where so many draws in
a row were not violated, which the status says. (The paper's loop would go on.) What differs
otherwise. (1) Where I has no more than r examples all of them are taken, so that the cut is exact;
examples are drawn in proportion to their weights; A has a budget of bytes, and the products of cuts
beyond it are made anew in every round. (2) ``line_search``, in linear time: as in the exact driver,
the best point moves towards the solution of the small problem by an exact search, and the cut is
taken near it. The end is where the best point's value is at most eps above that of the small
problem; at the solution of the small problem that is the same rule. Checkers with 100,000 rows, r =
400: 262 rounds instead of 523, to a lower objective.

The coordinates of the space (:mod:`slimsvm.solvers.sampled_space`) are the cuts themselves, each in
a slot.

Guarantees (theirs, with D the largest loss, R the longest difference of features, C the sum of our
weights, 1 - d the confidence): at most 8 C D R^2 / eps^2 cuts; :func:`risk_bound` says how far the
objective may be above the optimum. Both are in the certificate, where there is no line search: the
proofs are about the point that it replaces. A sampled cut is not below the risk, so that the value
of the small problem is no lower bound: :mod:`slimsvm.solvers.structural_gap` finds one.

Symbols: t cuts; r sample; slot of a cut in the space.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slimsvm.options import at_least, flags, one_of
from slimsvm.rows import joined
from slimsvm.run import SAMPLED, Certificate
from slimsvm.solvers.cuts import Cuts, CutState, padded
from slimsvm.solvers.cutting_plane import LEAST_DEPTH, CuttingPlane, OneSlack
from slimsvm.solvers.joint import JointRisk
from slimsvm.solvers.sampled_space import diagonal_of
from slimsvm.threads import single_threaded_blas

Array = NDArray[Any]
LINEAR, CONSTANT = "linear_time", "constant_time"
DRAWS = 100  # samples in one step, so that it does not take long
RECENT = 4  # samples whose mean risk is said to be that of the point
# where a cut is taken: each round and place has random numbers of its own, whatever was drawn
# before
NEAR, HERE = 0, 1
CONFIDENCE = 0.95  # of the bound in the certificate


# -- drawing ---------------------------------------------------------------------------------------


class Draw:
    """Draws examples in proportion to their weights, with replacement.

    Those among a subset are draws among all, of which only those inside count: where the subset
    gains or loses an example, by a rounding error for one, the others stay the same.
    """

    def __init__(self, weight: Array, whole: bool = True) -> None:
        self.weight, self.whole = weight, whole
        self.even = bool(weight.size) and bool(np.all(weight == weight[0]))
        self._sums = np.empty(0) if self.even else np.cumsum(weight)

    def __call__(
        self, r: int, rng: np.random.Generator, among: Array | None = None
    ) -> tuple[Array, Array]:
        """Distinct examples in ascending order, and their weights.

        The weights sum to that of all among which the examples were drawn.
        """
        n = self.weight.size if among is None else among.size
        if n <= r and self.whole:  # all of them: exact
            chosen = np.arange(self.weight.size) if among is None else among
            return chosen, self.weight[chosen]
        total = (
            float(self.weight[0]) * n
            if self.even
            else float(self._sums[-1] if among is None else self.weight[among].sum())
        )
        if among is None:
            drawn = self._places(r, rng)
        else:
            inside, drawn = np.zeros(self.weight.size, bool), np.empty(0, np.int64)
            inside[among] = True
            share = total / (
                float(self.weight[0]) * self.weight.size if self.even else float(self._sums[-1])
            )
            while drawn.size < r:
                more = self._places(int(1.2 * (r - drawn.size) / share) + 16, rng)
                drawn = np.concatenate([drawn, more[inside[more]]])[:r]
        chosen, counts = np.unique(drawn, return_counts=True)
        return chosen, counts * (total / r)

    def _places(self, r: int, rng: np.random.Generator) -> Array:
        """Draws among all."""
        n, u = self.weight.size, rng.random(r)
        places = (
            (u * n).astype(np.int64)
            if self.even
            else np.searchsorted(self._sums, u * self._sums[-1], side="right")
        )
        return np.asarray(np.minimum(places, n - 1))


# -- the driver ------------------------------------------------------------------------------------


@dataclass
class SampledState(CutState):
    """Where the driver is.

    ``violation`` is that of the last cut looked at, in units of the objective.
    """

    violation: float = np.inf
    quiet: int = 0
    recent: list[float] = field(default_factory=list)  # risks of the last samples
    n_draws: int = 0  # samples that were drawn for cuts
    # of a round that is not over: samples drawn for it, and the most violated of them
    tried: tuple[int, Any] | None = None
    exhausted: bool = False  # whether no sample was found that is violated as the exact cut is
    total: float = 1.0  # of the weights

    def record(self) -> dict[str, float]:
        """A line of the history; ``violation`` in units of the mean loss."""
        return super().record() | {
            "gap": max(0.0, self.violation),
            "violation": max(0.0, self.violation) / self.total,
        }


@dataclass(frozen=True)
class Look:
    """All examples at one point.

    Scores of parts and of the linear part, the examples in the exact cut, its offset, and the risk.
    """

    parts: Array
    linear: Array
    inside: Array
    offset: float
    risk: float


@dataclass(frozen=True)
class SampledSolution:
    """The function found: rows and coefficients (rows, width), intercepts (width,), linear part.

    ``exhausted``: it ended because no sample was violated.
    """

    indices: Array
    coef: Array
    intercept: Array
    linear: Array
    exhausted: bool = False


@dataclass(kw_only=True)
class SampledCuts(CuttingPlane):
    """Cutting planes with sampled cuts; ``tol`` of :func:`slimsvm.run.run` is eps of the paper.

    Parameters
    ----------
    line_search : bool
        In linear time: search between the best point and the solution of the small problem. False:
        as in the paper.
    sampling : {"linear_time", "constant_time"}
        Which of the two algorithms.
    sample_size : int
        r, the number of examples drawn for a cut.
    towards : float
        As in the exact driver; a sampled cut is less to be trusted near the best point, and more of
        the way is better: on checkers with 20,000 rows 0.1 takes 202 rounds, 0.4 takes 157, 0.7
        takes 205.
    stop : {"gap", "violation"}
        "violation", in linear time without a line search: the model is the last point, not the
        best, and it ends where ``max_draws`` samples in a row were not violated.
    max_draws : int
        Samples that are drawn for a cut, at most, until one is violated as the exact cut is.
    whole : bool
        Whether all examples are taken where there are no more than a sample has.
    quiet : int
        In constant time: rounds in a row without a violated cut, after which it ends; p in the
        paper.
    seed : int
        The same seed gives the same model.
    """

    towards: float = 0.4
    keep_rows: bool = False
    sampling: str = LINEAR
    sample_size: int = 400
    max_draws: int = 10
    whole: bool = True
    quiet: int = 4
    seed: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least(1, sample_size=self.sample_size, max_draws=self.max_draws, quiet=self.quiet)
        flags(whole=self.whole)
        one_of((LINEAR, CONSTANT), sampling=self.sampling)

    def init(self, problem: OneSlack, start: Any = None) -> SampledState:
        """Begin at zero."""
        space, risk = problem.space, problem.oracle
        assert isinstance(risk, JointRisk)
        self._draw = Draw(risk.weight, self.whole)
        W = np.zeros((space.size, 1))
        objective = np.array([np.inf])
        S = SampledState(
            W, np.zeros(1), W.copy(), np.zeros(1), np.empty(0), objective, np.zeros(1), np.zeros(1),
            [Cuts(space.size)], np.ones(1, bool), np.zeros(1, bool),
        )  # fmt: skip
        S.total = float(risk.weight.sum())
        return S

    def step(self, problem: OneSlack, state: CutState, tol: float, max_iter: int) -> None:
        """One round."""
        S = state
        assert isinstance(S, SampledState)
        if S.n_iter >= max_iter:
            return
        with single_threaded_blas():
            cut = (
                self._linear(problem, S, tol * S.total)
                if self.sampling == LINEAR
                else self._constant(problem, S, tol * S.total)
            )
            if cut is not None:
                self._take(problem, S, *cut)
        if S.tried is not None:  # the round is not over: there are samples to draw
            return
        S.n_iter += 1
        S.done = cut is None and (self.sampling == LINEAR or S.quiet >= self.quiet)
        S.n_basis, S.n_values = problem.space.n_basis, problem.space.n_values

    def _linear(self, problem: OneSlack, S: SampledState, eps: float) -> Any:
        risk = problem.oracle
        # 1. scores of all parts, 2. the worst outputs
        scores = problem.space.scores(S.W)[:, 0]
        here = self._looked(risk, scores)
        objective = float(self._value(problem, S.W, S.b)[0]) + here.risk
        # the best point moves
        searched = self.line_search and S.best_scores.size > 0
        if searched:
            self._search_line(problem, S, scores)
        elif objective < S.objective[0] or self.stop == "violation":
            S.objective[0], S.best_W, S.best_scores = objective, S.W.copy(), scores
        # 3. the end
        S.violation = (
            float(S.objective[0] - S.lower[0]) if self.line_search else here.risk - float(S.xi[0])
        )
        if S.violation <= eps:
            return None
        # 4. a sample of those in the cut: near the best point, if that cuts off enough of the
        # solution of the small problem; else there
        best = None
        if searched:
            near = self._looked(risk, S.best_scores + self.towards * (scores - S.best_scores))
            best = self._drawn(risk, S, near, scores, max(eps, LEAST_DEPTH * S.violation), NEAR)
        if best is None or best[0] <= eps:
            best = self._drawn(risk, S, here, scores, eps, HERE)
            if S.tried is not None:
                return None
        S.exhausted = self.stop == "violation" and best[0] <= eps
        return None if S.exhausted else (*best[1:], None)

    @staticmethod
    def _looked(risk: JointRisk, scores: Array) -> Look:
        inside, offset, value = risk.worst(scores)
        return Look(*risk.split(scores), inside, offset, value)

    def _search_line(self, problem: OneSlack, S: SampledState, scores: Array) -> None:
        """Move the best point to the least value on the line to W."""
        space, risk = problem.space, problem.oracle
        dW, change = S.W - S.best_W, scores - S.best_scores
        t = float(
            risk.line(
                S.best_scores[:, None],
                change[:, None],
                space.inner(S.best_W, dW),
                space.inner(dW, dW),
            )[0]
        )
        W, scores = S.best_W + t * dW, S.best_scores + t * change
        value = float(self._value(problem, W, S.b)[0] + risk.risk(scores[:, None])[0])
        if value < S.objective[0]:
            S.objective[0], S.best_W, S.best_scores = value, W, scores

    def _drawn(
        self, risk: JointRisk, S: SampledState, look: Look, scores: Array, least: float, where: int
    ) -> Any:
        """A sampled cut, drawn again until it cuts off more than ``least``.

        Returns depth, offset, parts, responses and linear response.
        """
        (parts, linear), (first, best) = risk.split(scores), S.tried or (0, None)
        last, S.tried = min(self.max_draws, first + DRAWS), None
        for k in range(first, last):
            S.n_draws += 1
            examples, weight = self._draw(
                self.sample_size,
                np.random.default_rng([self.seed, S.n_iter, where, k]),
                look.inside,
            )
            which, offsets = parts_of(examples, risk.offsets)
            _, _, V, of_linear = risk.oracle.cut(
                look.parts[which], risk.labels[which], offsets, weight, look.linear, risk.n_threads
            )
            depth = (
                look.offset
                + float(np.vdot(V, parts[which]))
                + float(of_linear @ linear)
                - float(S.xi[0])
            )
            if best is None or depth > best[0]:
                best = depth, look.offset, which, V, of_linear
            if depth > least or (self.whole and look.inside.size <= self.sample_size):
                return best
        S.tried = (last, best) if last < self.max_draws else None
        return best

    def _constant(self, problem: OneSlack, S: SampledState, eps: float) -> Any:
        space, risk = problem.space, problem.oracle
        examples, weight = self._draw(
            self.sample_size, np.random.default_rng([self.seed, S.n_iter])
        )
        which, offsets = parts_of(examples, risk.offsets)
        known = space.at(which)
        constant, linear = space.own(S.W[:, 0])
        scores = np.tensordot(S.W[:, 0], known, axes=1) + constant
        value, offset, V, of_linear = risk.oracle.cut(
            scores, risk.labels[which], offsets, weight, linear, risk.n_threads
        )
        S.violation = value - float(S.xi[0])
        S.recent = [*S.recent[1 - RECENT :], value]
        S.objective[0] = float(self._value(problem, S.W, S.b)[0]) + float(np.mean(S.recent))
        S.best_W = S.W
        S.quiet = S.quiet + 1 if S.violation <= eps else 0
        return None if S.quiet else (offset, which, V, of_linear, known)

    def _take(
        self,
        problem: OneSlack,
        S: SampledState,
        offset: float,
        parts: Array,
        V: Array,
        linear: Array,
        known: Array | None,
    ) -> None:
        """5. The cut joins, and the small problem is solved."""
        space, cuts = problem.space, S.cuts[0]
        active = np.flatnonzero(V.any(axis=1))
        before = space.size
        slot, row = space.add(
            parts[active], V[active], linear, None if known is None else known[:, active]
        )
        if space.size > before:
            cuts.replace(
                np.pad(cuts.coordinates(before), ((0, 0), (0, space.size - before))), cuts.gram
            )
            S.W, S.best_W = padded(S.W, space.size), padded(S.best_W, space.size)
        p = np.zeros(space.size)
        p[slot] = 1.0
        cuts.append(p, offset, 0.0, row[[*cuts.rows, slot]], slot)
        self._solve(problem, S, 0, fresh=True)
        space.release(set(cuts.rows), set(np.flatnonzero(S.best_W[:, 0]).tolist()))

    def certificate(self, problem: OneSlack, state: CutState, tol: float) -> Certificate:
        """``violation`` is that of the last cut in units of the mean loss, as ``tol``.

        Sampled cuts are no lower bound: the gap is not known. The guarantees of the paper are for
        its algorithm, without a line search.
        """
        S, risk = state, problem.oracle
        assert isinstance(S, SampledState)
        violation = max(0.0, S.violation) / S.total
        if self.sampling == CONSTANT and not S.done:
            violation = max(violation, 2.0 * tol)  # one quiet sample says little
        about = (float(S.objective[0]), violation, np.inf, tol, problem.space.precision)
        certificate = Certificate(SAMPLED, *about, estimated=self.sampling == CONSTANT)
        if self.sampling == LINEAR and S.best_scores.size:
            V = risk.cuts(S.best_scores[:, None])[2]
            space, scores = problem.space, S.best_scores[:, None]
            off = space.rounding(S.best_W, V, scores)
            off += risk.bent(scores, space.errors(S.best_W, scores))
            certificate = certificate.rounded(off)
        largest, longest = risk.oracle.max_loss(risk.offsets), longest_sq(problem)
        most = 8.0 * S.total * largest * longest / tol**2
        if not np.isfinite(most) or (self.line_search and self.sampling == LINEAR):
            return certificate  # the theorems are about the method as published
        achieved = max(tol, violation)
        size = (S.total, largest, longest, most, achieved, self.sample_size)
        bound = risk_bound(self.sampling, *size)
        return replace(certificate, max_cuts=most, risk_bound=bound, confidence=CONFIDENCE)

    def model(self, problem: OneSlack, state: CutState) -> Any:
        """The best point (linear time), or the last."""
        assert isinstance(state, SampledState)
        indices, coef, intercept, linear = problem.space.expansion(state.best_W[:, 0])
        return SampledSolution(indices, coef, intercept, linear, state.exhausted)


def parts_of(examples: Array, offsets: Array) -> tuple[Array, Array]:
    """The parts of some examples, one after the other, and where each begins."""
    lengths = offsets[examples + 1] - offsets[examples]
    begin = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
    return np.repeat(offsets[examples] - begin[:-1], lengths) + np.arange(begin[-1]), begin


def longest_sq(problem: OneSlack) -> float:
    """R^2 of the paper: a bound on the squared distance of two outputs' features."""
    space, risk = problem.space, problem.oracle
    diag = joined(space.rows.map(diagonal_of, space.frame))
    lengths = np.sqrt((1.0 if risk.width == 1 else 2.0) * np.maximum(diag + space.variance, 0.0))
    square = float(np.add.reduceat(lengths, risk.offsets[:-1]).max()) ** 2
    if risk.n_linear:  # transitions, beginning and end of the longest sequence
        square += 2.0 * float(np.diff(risk.offsets).max() + 1) ** 2
    return square


def risk_bound(
    sampling: str, C: float, D: float, R_sq: float, most: float, eps: float, r: int
) -> float:
    """How far the objective may be above the optimum, with probability CONFIDENCE.

    Yu & Joachims (2008), theorems 2 and 4.

    Parameters
    ----------
    sampling : {"linear_time", "constant_time"}
        Which algorithm.
    C, D, R_sq : float
        Sum of the weights, largest loss, squared length of the longest difference of features.
    most : float
        Bound on the number of cuts.
    eps : float
        Violation at the end.
    r : int
        Size of the samples.

    Examples
    --------
    >>> few = risk_bound("linear_time", 1.0, 1.0, 1.0, 100.0, 1e-3, 400)
    >>> many = risk_bound("linear_time", 1.0, 1.0, 1.0, 100.0, 1e-3, 40_000)
    >>> bool(many < few)
    True
    """
    if sampling == LINEAR:
        return float(
            C * (eps + np.sqrt(4.0 * C * D * R_sq * np.log(most / (1.0 - CONFIDENCE)) / r))
        )
    d = 0.5 * (1.0 - CONFIDENCE)
    return float(
        C
        * (
            eps
            + 2.0 * (D + 2.0 * np.sqrt(R_sq * 2.0 * C * D)) * np.sqrt(np.log(most / d) / (2.0 * r))
        )
    )
