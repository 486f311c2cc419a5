"""The finish of a descent: the best coefficients for the vectors found, on all rows.

Problem: :class:`slimsvm.problems.mapped.Mapped` with vectors, widths and metric fixed,

    min over coef, intercept of  1/2 tr(coef' K_BB coef) + sum_i weight_i L(y_i, f_i),

the loss without smoothing, no pull and no ridge. The columns of the softmax are one joint problem.

Algorithm: Newton's method with a line search. A system of a few independent columns is factorised;
that of many columns, or of the softmax, is solved by conjugate gradients, scaled by one matrix for
all columns: K_BB + K' diag(d) K with d the mean curvature of a row (in the columns that have one).
With very many rows Newton's matrix is that of SAMPLED rows, and the line search makes up for it.

The multipliers weight_i L'_i at the best intercepts are feasible for the dual, so that

    gap = 1/2 |L^-1 (K_BB coef + K' g)|^2

is the duality gap of this problem: scope "subspace".
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

from slimsvm.losses import Softmax
from slimsvm.problems.mapped import GROUPS, Look, Mapped, MappedSpan, Vectors
from slimsvm.run import Certificate

Array = NDArray[Any]
FACTORISED = 3  # columns up to which each has a matrix of its own
SAMPLED = 20_000  # rows of Newton's matrix, and SAMPLED_A_VECTOR for each vector, at least
SAMPLED_A_VECTOR = 20
FORCING, MOST_CG = 0.1, 40  # conjugate gradients end at this share of the gradient, or here
HALVINGS = 30
STALLED, FALLS = (
    1e-14,
    0.25,
)  # relative decrease, and share of the gap: rounding is all that is left
SHRUNK = 0.5  # of the largest coefficients: then scores are made anew, not changed


@dataclass
class MappedNewtonState:
    """Where the finish is."""

    span: MappedSpan = field(repr=False)
    coef: Array
    look: Look = field(repr=False)
    largest: float = 0.0  # norm of the coefficients since the scores were last made
    n_iter: int = 0
    done: bool = False

    def record(self) -> dict[str, float]:
        """A line of the history."""
        return {
            "objective": self.look.objective,
            "gap": self.look.gap,
            "n_basis": self.coef.shape[0],
        }


@dataclass(frozen=True, kw_only=True)
class MappedNewton:
    """Newton's method over the coefficients; ``tol`` is the relative gap in the span.

    Parameters
    ----------
    vectors : Vectors
        Those found; their coefficients are where it begins.
    """

    keeps_state: ClassVar[bool] = True

    vectors: Vectors = field(repr=False)

    def init(self, problem: Mapped, start: Any = None) -> MappedNewtonState:
        """Begin with the coefficients of the vectors."""
        span, found = problem.span(self.vectors), self.vectors
        coef = np.array(found.coef, np.float64)
        look, largest = span.look(coef, found.intercept), float(np.linalg.norm(coef))
        return MappedNewtonState(span, coef, look, largest)

    def step(self, problem: Mapped, state: MappedNewtonState, tol: float, max_iter: int) -> None:
        """One step of Newton's method, unless the gap is small enough."""
        S, before = state, state.look
        if before.gap <= tol * before.objective or not S.coef.size or S.n_iter >= max_iter:
            S.done = True
            return
        step, d_intercept = self._direction(problem, S)
        change = S.span.change(step)
        K_step = S.span.K_BB @ step
        slope = float(np.einsum("jc,jc->", S.coef, K_step))
        curve = float(np.einsum("jc,jc->", step, K_step))
        t = _line(S.span.along(before, change, d_intercept), slope, curve)
        S.n_iter += 1
        if t == 0.0:
            S.done = True
            return
        S.coef = S.coef + t * step
        intercept = before.intercept + t * d_intercept
        size, moved = float(np.linalg.norm(S.coef)), None
        if size < SHRUNK * S.largest:  # of large scores that cancelled rounding errors are left
            S.largest = size
        else:
            S.largest, moved = max(S.largest, size), S.span.moved(before.scores, change, t)
        S.look = S.span.look(S.coef, intercept, moved)
        gained = before.objective - S.look.objective
        # the gap is of squared slopes, which go on falling where the objective shows nothing
        stalled = gained <= STALLED * before.objective and S.look.gap > FALLS * before.gap
        S.done = S.look.gap <= tol * S.look.objective or stalled

    def certificate(self, problem: Mapped, state: MappedNewtonState, tol: float) -> Certificate:
        """The gap within the span; ``violation`` is its ratio to the objective."""
        return state.span.certificate(state.coef, state.look, tol)

    def model(self, problem: Mapped, state: MappedNewtonState) -> Vectors:
        """The vectors with their best coefficients."""
        v = self.vectors
        return Vectors(v.B, v.widths, state.coef, state.look.intercept, v.scales, v.W)

    # -- the direction -----------------------------------------------------------------------------

    def _direction(self, problem: Mapped, S: MappedNewtonState) -> tuple[Array, Array]:
        at = S.look
        P, span, F, slopes = S.span.here(at)
        joint = isinstance(P.loss, Softmax)
        n_columns, k = F.shape[1], S.coef.shape[0]
        slope = at.slope if P.fit_intercept else np.zeros(n_columns)
        right = np.vstack([-at.gradient, -slope[None]])
        curvature = P.weight[:, None] * P.loss.curvature(P.Y, F)
        wanted = max(SAMPLED, SAMPLED_A_VECTOR * k)
        if not joint and n_columns <= FACTORISED:
            out = np.empty((k + 1, n_columns))
            for c in range(n_columns):
                factor = self._matrix(P, span, curvature[:, c], wanted)
                out[:, c] = cho_solve(factor, right[:, c])
            out[-1] *= P.fit_intercept
            return out[:-1], out[-1]
        typical = np.square(curvature).sum(axis=1) / np.maximum(curvature.sum(axis=1), 1e-300)
        factor = self._matrix(P, span, typical, wanted)
        p = slopes / P.weight[:, None] + P.Y if joint else None

        def times(V: Array) -> Array:
            T = span.scores(V[:-1]) + V[-1] * P.fit_intercept
            if p is None:
                T *= curvature
            else:
                T = P.weight[:, None] * p * (T - np.einsum("ic,ic->i", p, T)[:, None])
            ones = T.sum(axis=0) * P.fit_intercept
            return np.vstack([span.K_BB @ V[:-1] + span.products(T), ones[None]])

        out = _conjugate_gradients(times, right, lambda r: cho_solve(factor, r))
        return out[:-1], out[-1] * P.fit_intercept

    @staticmethod
    def _matrix(problem: Mapped, span: MappedSpan, curvature: Array, wanted: int) -> Any:
        """Cholesky factor of K_BB + K' diag(curvature) K, bordered by the intercept."""
        k, n = span.k, problem.n
        every = max(1, n // wanted)  # of the chunks
        parts = np.zeros((min(GROUPS, len(span.starts)), k + 1, k + 1))

        def work(rows: slice, K: Array, g: int) -> None:
            if (rows.start // (rows.stop - rows.start or 1)) % every and rows.stop < n:
                return
            which = np.flatnonzero(curvature[rows])
            root = np.sqrt(every * curvature[rows][which])
            K = K[which] if which.size < K.shape[0] else K
            scaled = np.empty((which.size, k + 1), span.dtype)
            np.multiply(K, root[:, None], out=scaled[:, :k], casting="same_kind")
            scaled[:, k] = root if problem.fit_intercept else 0.0
            parts[g] += scaled.T @ scaled

        span.each(work)
        H = parts.sum(axis=0)
        H[:k, :k] += span.K_BB
        size = float(np.trace(H)) / (k + 1)
        H[k, k] += 1e-12 * size if problem.fit_intercept else 1.0
        more = 0.0
        while True:
            try:
                return cho_factor(H + more * np.eye(k + 1), lower=True, check_finite=True)
            except np.linalg.LinAlgError:
                more = max(10.0 * more, 1e-10 * size)


def _conjugate_gradients(times: Any, right: Array, scale: Any) -> Array:
    """The solution of times(x) = right to a share FORCING of its size."""
    x = np.zeros_like(right)
    r = right.copy()
    z = scale(r)
    d, rz = z.copy(), float((r * z).sum())
    first = rz
    for _ in range(MOST_CG):
        if not rz > FORCING**2 * first:
            break
        H_d = times(d)
        curve = float((d * H_d).sum())
        if not curve > 0.0:
            break
        a = rz / curve
        x += a * d
        r -= a * H_d
        z = scale(r)
        new = float((r * z).sum())
        d = z + (new / rz) * d
        rz = new
    return x if x.any() else scale(right)


def _line(at: Callable[[float], tuple[float, float]], slope: float, curve: float) -> float:
    """The step t that minimises the objective along a direction: Newton's method, in a bracket.

    ``at`` gives slope and curvature of the losses after t of it; ``slope`` and ``curve`` are those
    of the norm.
    """
    low, high, t = 0.0, np.inf, 1.0
    for _ in range(HALVINGS):
        of_losses, bend = at(t)
        first, second = slope + t * curve + of_losses, curve + bend
        if first > 0.0:
            high = t
        else:
            low = t
        step = -first / max(second, 1e-300)
        if abs(step) <= 1e-3 * t:
            return t + step if low <= t + step <= high else t
        t = t + step
        if not low < t < high:
            t = 0.5 * (low + high) if np.isfinite(high) else 2.0 * max(low, 1e-3)
    return low
