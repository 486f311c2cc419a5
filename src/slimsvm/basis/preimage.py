"""Basis vectors that are made for the residual.

The pre-image problem of cutting-plane subspace pursuit:

    maximise over b  drop(b) = sum_c <r_c, phi(b)>^2 / D(b)     (:mod:`slimsvm.basis.criterion`)

Algorithm: section 3.3 of Joachims & Yu (2009). :class:`PursuitRows` is their CPSP(tr): the best of
59 random rows, which is with probability 0.95 among the best 5 % of all rows. :class:`Pursuit`
climbs from the best of such rows by the fixed point of the drop, all starts as one block.
:class:`FixedPoint`, and ``PursuitRows(n_rows=None, orthogonal=False)``, are those of the paper to
the letter.

What differs otherwise: the drop is the true one, with the distance to the span; the sum over rows
is a sample; several columns share one vector; the fixed point serves every differentiable kernel; a
step that is not better is shortened and one that is better is followed by a longer one, so that no
start ever ends below where it began; several vectors at once are chosen greedily, each for what
those before it leave.

    1. score random candidate rows on a small sample: q (T + m) kernel values
    2. choose starts among them, greedily, so that they differ
    3. climb: b <- b + rate g(b) / (drop(b) k'(b,b)), 2 (T + m) d operations a start and iteration,
       and m^2
    4. choose the best ends and one more; see on another sample how much of their drop is real, and
       take a sample to suit
    5. climb on, there
    6. choose among the ends, and the rows for lack of better, greedily

**How large a sample.** Climbing finds the errors of the sample too. On another sample the same
vectors have inner products S' that do not know of them: rho = <S, S'> / <S, S> is the share that is
real, and 1/rho - 1 is error over truth. Error is inversely proportional to the size of the sample,
so (1/rho - 1) / NOISE times as many rows bring it down to NOISE. With few basis vectors the
residual is large and a few thousand rows do; later, or with noisy labels, it is buried (a9a, 100
vectors: rho < 0.1 at 2,000 rows) and everything that is there is needed.

Symbols as in :mod:`slimsvm.basis.criterion`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from slimsvm.basis.criterion import Criterion, Values
from slimsvm.basis.selection import (
    Basis,
    Selection,
    Wanted,
    drawn,
    moved,
    rows_at,
)
from slimsvm.kernels import RBF, squared_norms
from slimsvm.options import at_least, between, flags, none_or_at_least
from slimsvm.threads import single_threaded_blas
from slimsvm.tiles import Operand

Array = NDArray[Any]
# the best of so many is among the best 5 % with probability 1 - 0.95^59 = 0.95 (Smola & Schoelkopf
# 2000)
N_CANDIDATES = 59
# the rate after a better step, after a worse one, and its bounds
LONGER, SHORTER, LONGEST, SHORTEST = 2.0, 0.25, 8.0, 1e-3
# error of the last sample over truth that is wanted; half of it found nothing better on a9a, in a
# quarter more time
NOISE = 0.2
SOON = 1.25  # growth of the basis until the number of rows is looked at again
# the share of |b|^2 that may go when the smallest entries of a vector for sparse rows are set to
# zero
THIN = 1e-3


@dataclass(frozen=True)
class PursuitRows(Basis):
    """The best of a random sample of rows, for each vector: CPSP(tr).

    Parameters
    ----------
    n_candidates : int
        Size of the sample for each vector.
    n_rows : int or None
        Terms of the residual that are summed; if it has more, they are sampled. None: all.
    orthogonal : bool
        Measure a vector by what it adds to the span, rather than by itself, as the paper does.

    Examples
    --------
    >>> from slimsvm import SparseSVC
    >>> from slimsvm.basis import PursuitRows
    >>> from slimsvm.datasets import banana
    >>> X, y = banana(300, seed=0)
    >>> model = SparseSVC(9, basis=PursuitRows(n_candidates=20), refine=False, random_state=0)
    >>> model.fit(X, y).basis_indices_.size  # vectors are training rows
    9
    """

    in_words: ClassVar[str] = "takes the best of 59 random rows each time"

    n_candidates: int = N_CANDIDATES
    n_rows: int | None = 8000
    orthogonal: bool = True

    def __post_init__(self) -> None:
        none_or_at_least(1, n_candidates=self.n_candidates)
        none_or_at_least(1, n_rows=self.n_rows)
        flags(orthogonal=self.orthogonal)

    def _choose(self, wanted: Wanted) -> Selection:
        """Up to ``n_new`` rows, fewer if the candidates are in the span already."""
        columns = wanted.columns
        with single_threaded_blas():
            indices = wanted.pool(self.n_candidates)
            criterion = _criterion(wanted, self.n_rows, self.orthogonal)
            pool = columns.take(indices)
            best = criterion.greedy(pool, criterion.at(pool, indices), wanted.n_new)
            return rows_at(columns, indices[best])


@dataclass(frozen=True)
class Pursuit(Basis):
    """Vectors that need not be rows, found by climbing from the best of a sample of rows: CPSP.

    Kernels without a known derivative, and precomputed ones, get the best rows, as from
    :class:`PursuitRows`.

    Parameters
    ----------
    n_starts : int
        Rows to climb from; at least two for each vector.
    n_rows : int
        Terms of the residual that are summed at first; if it has more, they are sampled.
    max_rows : int
        Terms that are summed at last, at most.
    max_iter : int
        Steps of the fixed point, at most, in each of the two rounds.
    n_candidates : int
        Rows among which the starts are chosen, for each vector.
    orthogonal : bool
        Measure a vector by what it adds to the span, rather than by itself.
    tol : float
        A start whose drop grows by less than this share has arrived.

    Examples
    --------
    A function with two bumps where no rows are:

    >>> import numpy as np
    >>> from slimsvm.basis import Pursuit
    >>> from slimsvm.kernels import RBF
    >>> from slimsvm.problems.columns import KernelColumns
    >>> from slimsvm.frames import Frame, in_memory
    >>> from slimsvm.tiles import prepare
    >>> X = np.array([-0.4, 0.4, 2.6, 3.4])[:, None]
    >>> rows = prepare(RBF(1.0), X)
    >>> columns = KernelColumns(in_memory(rows), Frame.like(rows), max_basis=2)
    >>> weights = np.array([1.0, 1.0, -1.0, -1.0])
    >>> found = Pursuit().select(columns, weights, None, 2, np.random.default_rng(0), np.arange(4))
    >>> vectors = columns.in_given_coordinates(found.vectors)
    >>> np.allclose(np.sort(vectors.ravel()), [0.0, 3.0], atol=0.1)
    True
    """

    in_words: ClassVar[str] = "makes vectors where the objective falls most"

    n_starts: int = 4
    n_rows: int = 2000
    max_rows: int = 6_000
    max_iter: int = 5
    n_candidates: int = N_CANDIDATES
    orthogonal: bool = True
    tol: float = 1e-3
    # size of the basis at the last look, and rows it asked for
    _seen: dict[str, int] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        none_or_at_least(1, n_starts=self.n_starts, n_rows=self.n_rows, max_rows=self.max_rows)
        none_or_at_least(1, n_candidates=self.n_candidates)
        at_least(0, max_iter=self.max_iter)

    def _choose(self, wanted: Wanted) -> Selection:
        """Up to ``n_new`` vectors, fewer if all that was found is in the span already."""
        columns, n_new = wanted.columns, wanted.n_new
        with single_threaded_blas():
            # 1. random candidate rows
            indices = wanted.pool(self.n_candidates)
            first = self._seen.get("m", 0)
            lately = (
                first <= columns.m <= SOON * first and self._seen.get("rows", 0) >= 2 * self.n_rows
            )
            criterion = _criterion(
                wanted, self._seen["rows"] if lately else self.n_rows, self.orthogonal
            )
            pool = columns.take(indices)
            known = criterion.at(pool, indices)
            if columns.precomputed or not columns.kernel.differentiable:
                return rows_at(columns, indices[criterion.greedy(pool, known, n_new)])
            # 2. starts that differ
            starts = criterion.greedy(
                pool, known, n_new + 1 if lately else max(self.n_starts, 2 * n_new)
            )
            if not starts.size:
                return rows_at(columns, indices[starts])
            # 3. up from each
            ends = climbed(criterion, _dense(pool.X[starts]), self.max_iter, self.tol)
            # 4. and 5. the best of them go on, on more rows; not where it is known already that
            # many are needed, and all saw them
            last = criterion
            if not lately:
                points = _like(pool, ends)
                values = criterion.at(points)
                best = criterion.greedy(points, values, n_new + 1)
                ends = ends[best]
                if criterion.is_sample:
                    self._seen["m"] = columns.m
                    self._seen["rows"] = self._enough(
                        criterion, points.take(best), values.take(best), wanted.rng
                    )
                    last = criterion.resampled(self._seen["rows"], wanted.rng)
                ends = climbed(last, ends, self.max_iter, self.tol)
            # 6. the best of the ends
            points = _like(pool, ends)
            values = last.at(points)
            chosen = last.greedy(points, values, n_new)
            if chosen.size < n_new:  # some came to the same point: rows fill up
                points, values = _stacked(points, pool), _together(criterion.at(points), known)
                chosen = criterion.greedy(points, values, n_new)
            return moved(columns, points.X[chosen])

    def _enough(
        self, criterion: Criterion, points: Operand, values: Values, rng: np.random.Generator
    ) -> int:
        """Rows at which the errors of the sample are a share NOISE of the truth.

        See the module's text.
        """
        again = criterion.resampled(self.n_rows, rng).at(points)
        size = np.maximum(values.left, 1e-3 * values.diag)[:, None]
        real = float((values.S * again.S / size).sum()) / max(
            float((values.S**2 / size).sum()), 1e-300
        )
        wanted = (1.0 / min(max(real, 1e-6), 1.0) - 1.0) / NOISE
        return int(min(max(2.0, wanted) * self.n_rows, max(self.max_rows, self.n_rows)))


@dataclass(frozen=True)
class FixedPoint(Basis):
    """The pre-image of the newest cut by the plain fixed point, over all terms: CPSP as published.

    Section 3.3 of Joachims & Yu (2009), for the RBF kernel, one vector at a time: b <- sum_i r_i
    k(x_i, b) x_i / sum_i r_i k(x_i, b) over all rows of the cut and all basis vectors (Schoelkopf &
    Smola, Learning with Kernels, section 18.2.2), until the criterion <r, phi(b)>^2 / k(b, b) grows
    by less than ``tol`` of itself. The paper leaves open where it begins, and what happens where
    the denominator vanishes or a step is worse than the one before: here it begins at the best of
    59 random rows, at the next best one where it cannot go on, and the best point on its way is
    taken.

    Parameters
    ----------
    n_candidates : int
        Random rows, of which the best is the start.
    max_iter : int
        Steps, at most.
    tol : float
        Growth of the criterion below which it has arrived.

    Examples
    --------
    A bump where no row is:

    >>> import numpy as np
    >>> from slimsvm.basis import FixedPoint
    >>> from slimsvm.kernels import RBF
    >>> from slimsvm.problems.columns import KernelColumns
    >>> from slimsvm.frames import Frame, in_memory
    >>> from slimsvm.tiles import prepare
    >>> rows = prepare(RBF(1.0), np.array([-0.4, 0.4])[:, None])
    >>> columns = KernelColumns(in_memory(rows), Frame.like(rows), max_basis=1)
    >>> weights, rng = np.ones(2), np.random.default_rng(0)
    >>> found = FixedPoint(tol=1e-9).select(columns, weights, None, 1, rng, np.arange(2))
    >>> bool(np.abs(columns.in_given_coordinates(found.vectors)).max() < 1e-3)
    True
    """

    in_words: ClassVar[str] = "makes vectors by the plain fixed point of the paper"

    n_candidates: int = N_CANDIDATES
    max_iter: int = 100
    tol: float = 1e-3

    def __post_init__(self) -> None:
        none_or_at_least(1, n_candidates=self.n_candidates)
        at_least(1, max_iter=self.max_iter)
        between(0.0, np.inf, tol=self.tol)

    def _choose(self, wanted: Wanted) -> Selection:
        """One vector; a row where no start leads anywhere."""
        columns = wanted.columns
        if columns.precomputed or not isinstance(columns.kernel, RBF):
            raise ValueError(
                f"The fixed point of the paper is for the RBF kernel; got {columns.kernel!r}. Use "
                "another basis, such as PursuitRows ('pursuit_rows'), or 'pursuit'."
            )
        with single_threaded_blas():
            indices = drawn(wanted.candidates, self.n_candidates, wanted.rng)
            criterion = _criterion(wanted, columns.n, orthogonal=False)
            pool = columns.take(indices)
            known = criterion.at(pool, indices)
            order = np.argsort(-known.drop, kind="stable")
            order = order[known.drop[order] >= 0.0]
            for start in order:
                b = self._arrived(criterion, _dense(pool.X[start : start + 1]))
                if b is not None:
                    return moved(columns, _like(pool, b).X)
            return rows_at(columns, indices[order[:1]])

    def _arrived(self, criterion: Criterion, b: Array) -> Array | None:
        """Where the fixed point leads; None where its denominator vanishes at once."""
        points = criterion.points(b)
        values = criterion.at(points)
        best, largest, moves = b, float(values.drop[0]), False
        for _ in range(self.max_iter):
            step = criterion.step(points, values)
            if not step.any():
                break
            b, moves = b + step, True
            points = criterion.points(b)
            before, values = float(values.drop[0]), criterion.at(points)
            if values.drop[0] > largest:
                best, largest = b, float(values.drop[0])
            if not values.drop[0] > (1.0 + self.tol) * before:
                break
        return best if moves and largest > 0.0 else None


def _criterion(wanted: Wanted, n_rows: int | None, orthogonal: bool) -> Criterion:
    if wanted.row_weights is None:
        raise ValueError(
            "A pursuit needs the weights of the residual; choose the first vectors with "
            "another basis, such as Random."
        )
    n_rows = wanted.columns.n if n_rows is None else n_rows
    return Criterion(wanted.columns, wanted.row_weights, n_rows, wanted.rng, orthogonal)


def climbed(criterion: Criterion, B: Array, max_iter: int, tol: float) -> Array:
    """Where the rows of B arrive by the fixed point.

    None ends with a lower drop than it began with.
    """
    B = criterion.contained(B)
    points = criterion.points(B)
    values = criterion.at(points)
    step, drop = criterion.step(points, values), values.drop
    rate = np.ones(len(B))
    active = np.flatnonzero(step.any(axis=1))
    for _ in range(max_iter):
        if not active.size:
            break
        trial = criterion.contained(B[active] + rate[active, None] * step[active])
        points = criterion.points(trial)
        values = criterion.at(points)
        better = np.flatnonzero(values.drop > drop[active])
        won = active[better]
        arrived = np.zeros(active.size, bool)
        arrived[better] = values.drop[better] <= (1.0 + tol) * drop[won]
        if won.size:
            B[won], drop[won] = trial[better], values.drop[better]
            step[won] = criterion.step(points.take(better), values.take(better))
        rate[active] *= SHORTER
        rate[won] = np.minimum(rate[won] / SHORTER * LONGER, LONGEST)
        active = active[~arrived & (rate[active] >= SHORTEST)]
    return B


def thinned(B: Array, share: float) -> Any:
    """The rows of B as a CSR matrix, without their smallest entries.

    These together make up at most ``share`` of a squared norm.

    Examples
    --------
    >>> thinned(np.array([[3.0, 0.01, 0.0, -4.0]]), 1e-3).toarray()
    array([[ 3.,  0.,  0., -4.]])
    """
    rows = []
    for b in B:
        filled = np.flatnonzero(b)
        order = filled[np.argsort(np.abs(b[filled]), kind="stable")]
        squares = np.cumsum(b[order] ** 2)
        kept = np.sort(order[squares > share * squares[-1]]) if order.size else order
        rows.append(sp.csr_matrix((b[kept], kept, [0, kept.size]), shape=(1, b.size)))
    return sp.vstack(rows, format="csr")


def _like(pool: Operand, vectors: Array) -> Operand:
    """Vectors as an operand of the same form as the pool."""
    X = thinned(vectors, THIN) if sp.issparse(pool.X) else vectors
    return Operand(pool.kernel, X.astype(pool.dtype), squared_norms(X).astype(pool.dtype))


def _stacked(first: Operand, second: Operand) -> Operand:
    X = (
        sp.vstack([first.X, second.X], format="csr")
        if sp.issparse(second.X)
        else np.vstack([first.X, second.X])
    )
    assert first.sq is not None and second.sq is not None
    return Operand(first.kernel, X, np.concatenate([first.sq, second.sq]))


def _together(a: Values, b: Values) -> Values:
    return Values(
        np.concatenate([a.S, b.S]),
        np.concatenate([a.drop, b.drop]),
        np.concatenate([a.left, b.left]),
        np.concatenate([a.diag, b.diag]),
        np.concatenate([a.Z, b.Z], axis=1),
        np.concatenate([a.K_terms, b.K_terms]),
        np.concatenate([a.K_B, b.K_B]),
    )


def _dense(X: Any) -> Array:
    return np.asarray(X.toarray() if sp.issparse(X) else X, np.float64)
