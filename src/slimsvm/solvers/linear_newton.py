"""Newton's method for the squared hinge over the weights of features.

Newton's method, after Chapelle (2007), "Training a support vector machine in the primal", section
3:

    min over w, b of  1/2 |w|^2 + sum_i weight_i max(0, 1 - y_i f_i)^2,     f = X w + b

with an exact line search. After every step the intercept is optimised on its own: then g_i =
weight_i L'(y_i, f_i) sums to zero, the multipliers -g are a feasible point of the dual, and the
duality gap is 1/2 |w + X'g|^2, half of the squared gradient. The intercept is eliminated from
Newton's system, which is centred by the mean of the rows with an error, weighted by their
curvatures D: (I + (X - mean)' D (X - mean)) step = -gradient. Few features: the matrix is made and
factorised, (rows with an error) d^2 + d^3/3. Many, or sparse ones: conjugate gradients scaled by
the diagonal, two passes over the rows for each of their steps. Then Newton's steps are made for a
small C first, which grows as they converge: from zero, at a large C, rows come and go in every
step. Where conjugate gradients have come to their last step once (a large C and nearly separable
classes: the condition of the system grows with C), the system is factorised as long as it has no
more than SOLVED features or rows with an error, k^2 entries a row + k^3/3 for the latter: with S =
D^1/2 (X - mean) on these rows,

    w + step = S' (I + S S')^-1 (S w - D^-1/2 g),

which does not lose the digits that two nearly equal terms of Woodbury's formula would. Where C
|x|^2 is so large that a matrix has no Cholesky factor in float64 (features that are not scaled,
classes that are separable), the same weights come from least squares over the rows. The errors a_i
/ (2 weight_i) of the rows on the margin are then less than the last digit of their scores: which
rows are there cannot be seen any more, and a step from elsewhere ends at the first of them that it
does not know of. So here, too, C grows, up to the share at which errors are no larger than
RESOLVED; from there one step, with the rows that have an error, goes to the margin itself.

Symbols: W weights of features (d, columns); G gradients; D second derivatives of the weighted loss.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from slimsvm.losses import Loss
from slimsvm.problems.linear import TINY, LinearSolution
from slimsvm.rows import Block, PerRow, joined
from slimsvm.run import FULL, Certificate
from slimsvm.solvers.line_search import least_along
from slimsvm.solvers.spaces import ExplicitSpace, chunks_of
from slimsvm.threads import parallel, single_threaded_blas

Array = NDArray[Any]
# features up to which Newton's matrix is made (60,000 x 784, C = 1: 3.5 s, by conjugate gradients
# 7.7 s)
DIRECT = 1000
# ... if they are sparse, up to features^2 of this many entries a row (32,561 x 123, 14 entries a
# row: the same time)
DIRECT_SPARSE = 4000
# partial sums of Newton's matrix: enough for threads, few enough for memory; fixed, for the same
# bits with any number of threads
GROUPS = 8
# conjugate gradients end at this share of the gradient: 0.3 and 0.5 need up to twice the products
# at large C, never clearly less
FORCING = 0.1
MOST_CG = 100  # of their steps, for one of Newton's
# features, or rows with an error, up to which a system that they do not solve is factorised: a
# second, and 128 MB
SOLVED = 4000
FIRST_SHARE = 10.0  # of sum_i weight_i |x_i|^2, at the first share of C: the norm still counts
# of the share, at this relative gap (20news, C = 100: 2,200 products instead of 6,900; C = 1: 90,
# as without)
GROWTH, NEARLY = 10.0, 0.1
UNRESOLVED = 2.0**52  # of the same sum, C included: Newton's matrix has no digit left of its ones
RESOLVED = 1e-6  # error of a row up to which the whole C is next: ten digits of the error are left
# entries of X they may visit for one of Newton's steps: about a second, so that Ctrl-C and max_time
# are heard
CG_WORK = 500_000_000


@dataclass
class LinearProblem:
    """Rows in a space of features, targets, weights, and a loss with a derivative.

    Targets have the shape (n, columns); the weights include C.
    """

    space: ExplicitSpace
    target: Array
    weight: Array
    loss: Loss
    fit_intercept: bool

    def risk(self, scores: Array) -> Array:
        """sum_i weight_i L(y_i, f_i) for each column."""
        return np.asarray(self.weight @ self.loss.value(self.target, scores))


@dataclass
class LinearState:
    """Where Newton's method is; scores with the intercept."""

    W: Array
    b: Array
    scores: Array
    objective: Array
    pull: Array  # X'g
    share: Array  # of C that each column has reached
    n_iter: int = 0
    done: bool = False
    n_products: int = 0  # passes over the rows
    slow: bool = False  # conjugate gradients have come to their last step
    rough: bool = False  # a system in rows has lost its digits

    @property
    def gap(self) -> Array:
        """The duality gap of each column."""
        return np.asarray(0.5 * np.square(self.W + self.pull).sum(axis=0))

    @property
    def relative_gap(self) -> Array:
        """The same, relative to the objective."""
        return np.asarray(self.gap / np.maximum(self.objective, TINY))

    @property
    def at_share(self) -> Array:
        """The objective with the share of C that each column has reached."""
        half_norm = 0.5 * np.einsum("jc,jc->c", self.W, self.W)
        return np.asarray(half_norm + self.share * (self.objective - half_norm))

    def record(self) -> dict[str, float]:
        """A line of the history; ``violation`` is the largest relative gap of a column."""
        return {
            "objective": float(self.objective.sum()),
            "gap": float(self.gap.sum()),
            "violation": float(self.relative_gap.max()),
            "products": float(self.n_products),
        }


@dataclass(kw_only=True)
class LinearNewton:
    """Newton's method over the weights of features; ``tol`` is the relative gap, of every column.

    Parameters
    ----------
    direct : bool, optional
        Make and factorise Newton's matrix, instead of conjugate gradients; by default where that is
        faster.
    """

    keeps_state: ClassVar[bool] = True

    direct: bool | None = None

    def init(self, problem: LinearProblem, start: tuple[Array, Array] | None = None) -> LinearState:
        """Begin at ``start`` (weights and intercepts), or at zero."""
        d, n_columns = problem.space.size, problem.target.shape[1]
        W, b = np.zeros((d, n_columns)), np.zeros(n_columns)
        scores = np.zeros_like(problem.target)
        if start is not None:
            W[:], b[:] = start[0], start[1] if problem.fit_intercept else 0.0
            scores = problem.space.scores(W) + b
        share = 1.0
        if start is None:
            squares = joined(problem.space.rows.map(squares_of_rows, problem.space.step))
            size = float(squares @ problem.weight)
            if size > UNRESOLVED or not self._makes_matrix(problem):
                share = min(1.0, FIRST_SHARE / max(size, TINY))
        state = LinearState(
            W, b, scores, np.full(n_columns, np.inf), np.zeros_like(W), np.full(n_columns, share)
        )
        self._look(problem, state)
        return state

    def _makes_matrix(self, problem: LinearProblem) -> bool:
        return _few_features(problem.space) if self.direct is None else self.direct

    def _look(self, problem: LinearProblem, S: LinearState) -> None:
        """The intercept on its own; objective and gradient there."""
        if problem.fit_intercept:
            nothing = np.zeros(S.b.size)
            for _ in range(2):  # the second repairs what rounding left of the first
                slope = problem.weight @ problem.loss.gradient(problem.target, S.scores)
                sign = np.where(slope > 0, -1.0, 1.0)
                along = np.ones_like(S.scores) * sign
                step = sign * least_along(
                    problem.loss, problem.target, problem.weight, S.scores, along, nothing, nothing
                )
                S.b, S.scores = S.b + step, S.scores + step
        S.objective = 0.5 * np.einsum("jc,jc->c", S.W, S.W) + problem.risk(S.scores)
        S.pull = problem.space.project(
            problem.weight[:, None] * problem.loss.gradient(problem.target, S.scores)
        )
        S.n_products += 1

    def step(self, problem: LinearProblem, state: LinearState, tol: float, max_iter: int) -> None:
        """One of Newton's steps for every column whose gap is too large."""
        S, space = state, problem.space
        which = np.flatnonzero(S.relative_gap > tol)
        if not which.size or S.n_iter >= max_iter:
            S.done = not which.size
            return
        # 1. directions
        dW, db, share = np.zeros((space.size, which.size)), np.zeros(which.size), S.share[which]
        for j, c in enumerate(which):
            weight, of = share[j] * problem.weight, (problem.target[:, c], S.scores[:, c])
            D, g = weight * problem.loss.curvature(*of), weight * problem.loss.gradient(*of)
            if D.any():
                dW[:, j], db[j] = self._direction(
                    problem, S, D, g, S.W[:, c], share[j] * S.pull[:, c]
                )
            else:
                dW[:, j], db[j] = (
                    -S.W[:, c],
                    _towards_both(*of, S.b[c])
                    if problem.fit_intercept and problem.loss.takes_labels
                    else 0.0,
                )
        # 2. the least value along each
        d_scores = space.scores(dW) + db
        W = S.W[:, which]
        slope, curve = np.einsum("jc,jc->c", W, dW) / share, np.einsum("jc,jc->c", dW, dW) / share
        t = least_along(
            problem.loss,
            problem.target[:, which],
            problem.weight,
            S.scores[:, which],
            d_scores,
            slope,
            curve,
        )
        before, gap, at_share = S.objective.copy(), S.gap, S.at_share
        S.W[:, which] += t * dW
        S.b[which] += t * db
        S.scores[:, which] += t * d_scores
        S.n_products += 1
        # 3. where that is; the end is also where rounding is all that is left
        self._look(problem, S)
        S.n_iter += 1
        stalled = (S.objective >= before) & (S.gap >= 0.5 * gap) & (S.share == 1.0)
        stuck = (S.at_share >= at_share) & (S.share < 1.0)
        # perhaps another way gets further
        if S.slow and not S.rough and bool(np.any((S.at_share >= at_share)[which])):
            S.rough, stalled, stuck = True, np.zeros_like(stalled), np.zeros_like(stuck)
        S.done = bool(np.all((S.relative_gap <= tol) | stalled))
        # 4. more of C, where its present share is nearly solved; all of it, where errors are small
        there = 0.5 * np.square(S.W + S.share * S.pull).sum(axis=0) <= NEARLY * S.at_share
        S.share = np.where(there | stuck, np.minimum(1.0, GROWTH * S.share), S.share)
        if problem.loss.takes_labels:
            worst = (1.0 - problem.target * S.scores).max(axis=0)
            S.share = np.where(there & (worst <= RESOLVED), 1.0, S.share)

    def _direction(
        self, problem: LinearProblem, S: LinearState, D: Array, g: Array, w: Array, pull: Array
    ) -> tuple[Array, float]:
        """Newton's step of one column: weights, intercept."""
        space = problem.space
        mean = np.zeros(space.size)
        if problem.fit_intercept:
            mean = space.project(D[:, None])[:, 0] / float(D.sum())
            S.n_products += 1
        active = np.flatnonzero(D)
        if self._makes_matrix(problem) or (
            S.slow and space.size <= (SOLVED if S.rough else min(active.size, SOLVED))
        ):
            try:
                factor = cho_factor(
                    _newton_matrix(space, D, mean), lower=True, overwrite_a=True, check_finite=False
                )
                step = -cho_solve(factor, w + pull, check_finite=False)
            except LinAlgError:
                step = _least_squares(space, D, g, mean, w) - w
        elif S.slow and not S.rough and active.size <= SOLVED:
            try:
                step = _solved_in_rows(space, D, g, mean, w, active) - w
            except LinAlgError:
                S.rough, step = True, -_conjugate_gradients(space, D, mean, w + pull, S)
        else:
            step = -_conjugate_gradients(space, D, mean, w + pull, S)
        return step, -float(mean @ step)

    def certificate(self, problem: LinearProblem, state: LinearState, tol: float) -> Certificate:
        """Objective and gap summed over the columns.

        ``violation`` is the largest relative gap of a column.
        """
        violation = float(state.relative_gap.max())
        about = (float(state.objective.sum()), violation, float(state.gap.sum()), tol)
        scores = state.scores - state.b
        slopes = problem.weight[:, None] * problem.loss.gradient(problem.target, state.scores)
        return Certificate(FULL, *about, problem.space.precision).rounded(
            problem.space.rounding(state.W, slopes, scores)
        )

    def model(self, problem: LinearProblem, state: LinearState) -> LinearSolution:
        """Weights and intercepts."""
        return LinearSolution(state.W, state.b)


def _few_features(space: ExplicitSpace) -> bool:
    return space.size <= DIRECT and (
        not space.sparse or space.size**2 <= DIRECT_SPARSE * float(space.entries) / space.n
    )


def _newton_matrix(space: ExplicitSpace, D: Array, mean: Array) -> Array:
    """I + (X - mean)' diag(D) (X - mean)"""
    return np.asarray(space.rows.sum(curved, space.step, PerRow(D), mean))


def _towards_both(target: Array, scores: Array, intercept: float) -> float:
    """The change of the intercept where no row has an error.

    It goes with -w as the change of the weights, and brings both classes to the margin.

    If one came there first, the intercept on its own would take back the error that it makes, and a
    step would be as short as 1 / C.
    """
    positive, negative = float(scores[target > 0].min()), -float(scores[target < 0].max())
    beyond = 0.5 * (positive + negative) - 1.0
    return (0.5 * (negative - positive) / beyond if beyond > 0 else 0.0) - intercept


def _solved_in_rows(
    space: ExplicitSpace, D: Array, g: Array, mean: Array, w: Array, active: Array
) -> Array:
    """The weights after Newton's step, from a system in the rows with curvature."""
    X = space.rows.take(active).X
    root, gradient = np.sqrt(D[active]), g[active]
    with single_threaded_blas():
        if sp.issparse(X):
            A = X.astype(np.float64)
            at_mean = np.asarray(A @ mean)
            matrix = (A @ A.T).toarray() - at_mean[:, None] - at_mean[None, :] + float(mean @ mean)
            scores = np.asarray(A @ w) - float(mean @ w)
        else:
            A = X.astype(np.float64) - mean
            matrix, scores, mean = A @ A.T, A @ w, np.zeros_like(mean)
        matrix *= root[:, None] * root
        matrix[np.diag_indices(active.size)] += 1.0
        factor = cho_factor(matrix, lower=True, overwrite_a=True, check_finite=False)
        v = root * cho_solve(factor, root * scores - gradient / root, check_finite=False)
        return np.asarray(A.T @ v - mean * float(v.sum()))


def _least_squares(space: ExplicitSpace, D: Array, g: Array, mean: Array, w: Array) -> Array:
    """The weights after Newton's step, from a QR factorisation of the rows.

    It has the condition of S = D^1/2 (X - mean) and not that of S'S.

    They are the v with the least |v|^2 + |S v - r|^2, r = S w - D^-1/2 g. Of S and r only the
    triangle of their QR factors is kept.
    """
    parts = space.rows.map(triangle_of, space.step, PerRow(D), PerRow(g), mean, w)
    triangle = parts[0]
    with single_threaded_blas():
        for part in parts[1:]:
            triangle = np.linalg.qr(np.vstack([triangle, part]), mode="r")
        U, size, V = np.linalg.svd(triangle[:, :-1], full_matrices=False)
    # rounding errors: what they say is not known
    size[size <= size[0] * space.size * np.finfo(float).eps] = 0.0
    return np.asarray(V.T @ (size / (1.0 + size**2) * (U.T @ triangle[:, -1])))


def _conjugate_gradients(
    space: ExplicitSpace, D: Array, mean: Array, gradient: Array, S: LinearState
) -> Array:
    """Solve (I + (X - mean)' diag(D) (X - mean)) x = gradient, nearly.

    The state records whether that took all its steps.
    """
    diagonal = _diagonal(space, D, mean)
    goal = FORCING * float(np.linalg.norm(gradient))
    x, r = np.zeros_like(gradient), gradient.copy()
    z = r / diagonal
    p, rz = z, float(r @ z)
    for _ in range(int(min(MOST_CG, max(10.0, CG_WORK / (2.0 * float(space.entries) + 1.0))))):
        if np.linalg.norm(r) <= goal:
            break
        u = D * (space.scores(p[:, None])[:, 0] - float(mean @ p))
        q = p + space.project(u[:, None])[:, 0] - mean * float(u.sum())
        S.n_products += 2
        bend = float(p @ q)
        if not bend > 0:
            break
        t = rz / bend
        x, r = x + t * p, r - t * q
        z = r / diagonal
        rz, last = float(r @ z), rz
        p = z + (rz / last) * p
    S.slow = S.slow or float(np.linalg.norm(r)) > goal
    return x if x.any() else gradient / diagonal


def _diagonal(space: ExplicitSpace, D: Array, mean: Array) -> Array:
    """Of I + (X - mean)' diag(D) (X - mean)."""
    squares = space.rows.sum(squares_of_features, space.step, PerRow(D))
    return np.asarray(np.maximum(1.0, 1.0 + squares - float(D.sum()) * mean**2))


# -- tasks -----------------------------------------------------------------------------------------


def curved(where: Block, step: int, D: Array, mean: Array) -> Array:
    """(X - mean)' diag(D) (X - mean) of a block; the first of all adds the identity."""
    chunks = chunks_of(where, step)
    groups = np.array_split(np.arange(len(chunks)), GROUPS)
    parts: list[Any] = [None] * GROUPS

    def task(k: int) -> None:
        for chunk in groups[k]:
            first, last, X = chunks[chunk]
            d = D[first:last]
            active = np.flatnonzero(d)
            if active.size:
                X = X[active]
                X = (X.toarray() if sp.issparse(X) else X).astype(np.float64) - mean
                X *= np.sqrt(d[active])[:, None]
                parts[k] = X.T @ X if parts[k] is None else parts[k] + X.T @ X

    with single_threaded_blas():
        parallel(task, GROUPS, where.n_threads)
    matrix = np.eye(mean.size) if where.start == 0 else np.zeros((mean.size, mean.size))
    for part in parts:
        if part is not None:
            matrix += part
    return matrix


def triangle_of(where: Block, step: int, D: Array, g: Array, mean: Array, w: Array) -> Array:
    """The triangle of the QR factors of S and r; see :func:`_least_squares`."""
    triangle: Any = np.zeros((0, mean.size + 1))
    with single_threaded_blas():
        for first, last, X in chunks_of(where, step):
            active = np.flatnonzero(D[first:last])
            X = X[active]
            X = (X.toarray() if sp.issparse(X) else X).astype(np.float64) - mean
            root = np.sqrt(D[first:last][active])
            r = root * (X @ w) - g[first:last][active] / root
            triangle = np.linalg.qr(
                np.vstack([triangle, np.column_stack([root[:, None] * X, r])]), mode="r"
            )
    return np.asarray(triangle)


def squares_of_features(where: Block, step: int, D: Array) -> Array:
    """sum_i D_i x_i^2, for every feature."""
    chunks = chunks_of(where, step)
    parts: list[Any] = [None] * len(chunks)

    def task(k: int) -> None:
        first, last, X = chunks[k]
        d = D[first:last]
        squares = X.multiply(X).T @ d if sp.issparse(X) else np.einsum("ij,ij,i->j", X, X, d)
        parts[k] = np.asarray(squares, np.float64).ravel()

    parallel(task, len(parts), where.n_threads)
    return np.asarray(sum(parts[1:], parts[0]))


def squares_of_rows(where: Block, step: int) -> Array:
    """|x_i|^2"""
    parts = [
        X.multiply(X).sum(axis=1) if sp.issparse(X) else np.einsum("ij,ij->i", X, X)
        for _, _, X in chunks_of(where, step)
    ]
    return np.concatenate([np.asarray(part, np.float64).ravel() for part in parts])
