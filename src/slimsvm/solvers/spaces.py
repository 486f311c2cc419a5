"""Where functions and cuts live: what an inner product with a cut is, and how scores come about.

The cutting-plane driver (:mod:`slimsvm.solvers.cutting_plane`) is the same in all of them.

Symbols: W coordinates of functions, one column each; P those of cuts; V responses v of the rows (n,
columns).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from slimsvm.precision import errors_of_scores, rounding
from slimsvm.problems.columns import KernelColumns, Values, combined, products, sums_of
from slimsvm.problems.span import Span
from slimsvm.rows import Block, PerRow, Rows, added, joined
from slimsvm.run import FULL, SUBSPACE
from slimsvm.solvers.cuts import columnwise
from slimsvm.threads import parallel, single_threaded_blas

Array = NDArray[Any]
# columns, row weights (n, columns), basis weights (m, columns) -> vectors or None
Growth = Callable[[KernelColumns, Array, Array], Any]
ROWS_A_TASK = 16384
FEW_ACTIVE = 0.7  # share of rows with a response up to which it pays to copy them
BLOCK_VALUES = 1 << 19  # of X in one block: four megabytes of float64


class Swept(NamedTuple):
    """What one pass finds."""

    P: Array  # coordinates of the cuts, (size, columns)
    scores: Array  # without b, (n, columns)
    V: Array  # responses, (n, columns)
    sums: Array  # risks and offsets, (2, columns)


class Space:
    """Where functions live.

    Coordinates of cuts and functions, their inner products, and scores of all rows.

    Attributes
    ----------
    n, n_threads : int
        Rows; threads.
    size, max_size : int
        Number of coordinates, and what it may become.
    scope : str
        What an optimum in this space is an optimum of.
    precision : str
        Type of the numbers that scores and cuts are made of.
    kept_in : type
        That of the coordinates of cuts, in memory.
    growing : bool
        Whether the space may gain coordinates.
    """

    n: int
    n_threads: int = 1
    size: int
    max_size: int
    scope: str = FULL
    precision: str = "float64"
    kept_in: Any = np.float64
    growing: bool = False

    def grown(self) -> Any:
        """What a space that is as new needs to be this one; TypeError where that is not known."""
        return None

    def grow_again(self, known: Any) -> None:
        """Be the space that gave this."""

    @property
    def n_basis(self) -> int:
        """Number of vectors, or features, that carry weight; for the history."""
        return self.size

    def scores(self, W: Array) -> Array:
        """<w, phi(x)> for all rows x and columns w of W: (n, columns)."""
        raise NotImplementedError

    def project(self, V: Array) -> Array:
        """Coordinates of sum_i v_i phi(x_i) for each column v of V: (size, columns)."""
        raise NotImplementedError

    def sweep(self, W: Array, b: Array, which: Array, oracle: Any) -> Swept:
        """Scores, the oracle's cuts at scores + b, and their coordinates.

        In one pass where possible.
        """
        scores = self.scores(W)
        risk, offset, V = oracle.cut(0, self.n, scores + b, which)
        return Swept(self.project(V), scores, V, np.stack([risk, offset]))

    def metric(self, B: Array) -> Array:
        """What coordinates are multiplied with in inner products: <a, b> = a' metric(b)."""
        return B

    def inner(self, A: Array, B: Array) -> Array:
        """<a, b> for the columns of A and B, pairwise."""
        return columnwise(A, self.metric(B))

    def gram_row(self, P: Array, p: Array) -> Array:
        """<p_t, p> for all rows p_t of P (t, size)."""
        return np.asarray(P @ self.metric(p).astype(P.dtype, copy=False), np.float64)

    def rounding(self, W: Array, V: Array, scores: Array) -> float:
        """What rounding may have changed of the value and the lower bound of functions W.

        V: the slopes of the risk at their scores.
        """
        eps, own = float(np.finfo(np.float64).eps), self.metric(W)
        return rounding(4.0 * eps, W, own, V, scores)

    def errors(self, W: Array, scores: Array) -> Array:
        """How large the errors of the scores of functions W are: (n, columns)."""
        return errors_of_scores(4.0 * float(np.finfo(np.float64).eps), W, scores)

    def coef(self, W: Array) -> Array:
        """What a model stores for coordinates W."""
        return W

    def weights(self, coef: Array) -> Array:
        """The other way round."""
        return coef


class ExplicitSpace(Space):
    """Features as they are, dense or CSR: O(n d) a round.

    Parameters
    ----------
    rows : Rows
        The rows.
    exact : bool
        Whether products with rows in float32 are in float64 all the same.
    """

    def __init__(self, rows: Rows, exact: bool = False) -> None:
        self.rows, self.n, self.size = rows, rows.n, rows.n_features
        self.max_size, self.n_threads = self.size, rows.n_threads
        kinds = rows.map(_kind)
        single = all(dtype == np.float32 for dtype, _ in kinds)
        self.dtype = np.float32 if single and not exact else np.float64
        # features may be millions
        self.precision, self.kept_in = str(np.dtype(self.dtype)), self.dtype
        width, self.sparse, self.entries = self.size, kinds[0][1] is not None, self.n * self.size
        if self.sparse:  # every chunk makes d sums: enough rows that these are the smaller part
            self.entries = sum(entries for _, entries in kinds)
            per_row = max(1, self.entries // max(1, self.n))
            width = max(1, min(per_row, BLOCK_VALUES * per_row // max(1, 8 * self.size)))
        self.step = max(256, BLOCK_VALUES // max(1, width))

    def scores(self, W: Array) -> Array:
        """X W"""
        return joined(self.rows.map(products_with, self.step, W.astype(self.dtype)))

    def project(self, V: Array) -> Array:
        """X'V"""
        return np.asarray(self.rows.sum(sums_with, self.step, PerRow(V), self.dtype))

    def rounding(self, W: Array, V: Array, scores: Array) -> float:
        """Products of d terms, and cuts that are kept in the precision of the features."""
        eps, own = self._products(W)
        random = float((np.sqrt(np.square(V).sum(axis=0)) * own).sum())
        return rounding(eps, W, W, V, scores) + eps * random

    def errors(self, W: Array, scores: Array) -> Array:
        """The same products."""
        eps, own = self._products(W)
        return np.asarray(eps * (np.abs(scores) + own))

    def _products(self, W: Array) -> tuple[float, Array]:
        """The error of one product, and how large those of d terms are at most, nearly."""
        largest = max(self.rows.map(largest_of))
        own = np.sqrt(self.size) * largest * np.abs(W).sum(axis=0)
        return 4.0 * float(np.finfo(self.dtype).eps), own

    def sweep(self, W: Array, b: Array, which: Array, oracle: Any) -> Swept:
        """X' respond(X W), chunk by chunk."""
        state = (self.step, W.astype(self.dtype), b, which, oracle)
        return _gathered(self.rows.map(swept_features, *state))


def _gathered(parts: list[Swept]) -> Swept:
    """That of all blocks."""
    P, sums = parts[0].P, parts[0].sums
    for part in parts[1:]:
        P, sums = added(P, part.P), added(sums, part.sums)
    return Swept(P, joined([part.scores for part in parts]), joined([p.V for p in parts]), sums)


def _kind(where: Block) -> tuple[Any, int | None]:
    """The type of the rows, and the number of their entries if they are sparse."""
    X = where.X
    return np.dtype(X.dtype), int(X.nnz) if sp.issparse(X) else None


def largest_of(where: Block) -> float:
    """A task: the largest size of an entry."""
    X = where.X.data if sp.issparse(where.X) else where.X
    return float(max(X.max(), -X.min())) if X.size else 0.0


def chunks_of(where: Block, step: int) -> list[tuple[int, int, Any]]:
    """Consecutive parts of a block, so many rows each, and their edges; kept with it."""
    known = where.kept.get("chunks")
    if known is None or known[0] != step:
        edges = [(first, min(where.n, first + step)) for first in range(0, where.n, step)]
        found = [(first, last, _rows_of(where.X, first, last)) for first, last in edges]
        known = where.kept["chunks"] = (step, found)
    return known[1]


def products_with(where: Block, step: int, W: Array) -> Array:
    """A task: X W"""
    chunks, out = chunks_of(where, step), np.empty((where.n, W.shape[1]))

    def task(k: int) -> None:
        first, last, X = chunks[k]
        out[first:last] = X @ W

    with single_threaded_blas():
        parallel(task, len(chunks), where.n_threads)
    return out


def sums_with(where: Block, step: int, V: Array, dtype: Any) -> Array:
    """A task: X'V"""

    def work(first: int, last: int, X: Any) -> Array:
        responses = V[first:last]
        if sp.issparse(X):  # where most rows are right, only the others are gone through
            active = np.flatnonzero(responses.any(axis=1))
            if active.size < FEW_ACTIVE * responses.shape[0]:
                X, responses = X[active], responses[active]
        return np.asarray(X.T @ responses.astype(dtype))

    return summed(where, step, work)


def swept_features(where: Block, step: int, W: Array, b: Array, which: Array, oracle: Any) -> Swept:
    """A task: see :meth:`Space.sweep`."""
    shape = (where.n, which.size)
    all_scores, V = np.empty(shape), np.empty(shape)
    sums: dict[int, Array] = {}

    def work(first: int, last: int, X: Any) -> Array:
        all_scores[first:last] = scores = np.asarray(X @ W, np.float64)
        risk, offset, V[first:last] = oracle.cut(first, last, scores + b, which)
        sums[first] = np.stack([risk, offset])
        return np.asarray(X.T @ V[first:last].astype(W.dtype))

    P = summed(where, step, work)
    return Swept(P, all_scores, V, _in_order(sums))


def _in_order(sums: dict[int, Array]) -> Array:
    """Their sum in the order of the rows, whatever thread came first."""
    return np.asarray(np.sum([sums[first] for first in sorted(sums)], axis=0))


def summed(where: Block, step: int, work: Callable[[int, int, Any], Array]) -> Array:
    """The sum of work(first, last, rows) over all chunks of a block, in order."""
    chunks = chunks_of(where, step)
    parts: list[Any] = [None] * len(chunks)

    def task(k: int) -> None:
        parts[k] = work(*chunks[k])

    with single_threaded_blas():
        parallel(task, len(parts), where.n_threads)
    total = np.asarray(parts[0], np.float64)
    for part in parts[1:]:
        total += part
    return total


def _rows_of(X: Any, first: int, last: int) -> Any:
    """Consecutive rows, without a copy."""
    if not sp.issparse(X):
        return X[first:last]
    a, b = X.indptr[first], X.indptr[last]
    return sp.csr_matrix(
        (X.data[a:b], X.indices[a:b], X.indptr[first : last + 1] - a),
        shape=(last - first, X.shape[1]),
        copy=False,
    )


class KernelSpace(Space):
    """Exact kernel expansions over all rows, with K in memory.

    A round costs O(n^2): the reference for small n.

    Coordinates are coefficients of the rows, and the inner product is that of K.

    Parameters
    ----------
    K : array of shape (n, n)
        Kernel values of all rows.
    error : float
        Of a kernel value, about.
    """

    def __init__(self, K: Array, error: float = 0.0) -> None:
        self.K, self.error = np.asarray(K, np.float64), float(error)
        self.n = self.size = self.max_size = int(self.K.shape[0])

    def scores(self, W: Array) -> Array:
        """K W"""
        return np.asarray(self.K @ W)

    def project(self, V: Array) -> Array:
        """V itself"""
        return V.copy()

    def metric(self, B: Array) -> Array:
        """K b"""
        return np.asarray(self.K @ B)

    def rounding(self, W: Array, V: Array, scores: Array) -> float:
        """That of the kernel values, and of sums over all rows."""
        sums = super().rounding(W, V, scores)
        return sums + rounding(self.error, W, self.metric(W), V, scores)

    def errors(self, W: Array, scores: Array) -> Array:
        """The same."""
        return super().errors(W, scores) + errors_of_scores(self.error, W, scores)


class SubspaceSpace(Space):
    """The span of a basis, in orthonormal coordinates: O(n m) a round.

    With ``grow``, the span gains vectors while cuts arrive.

    Parameters
    ----------
    columns : KernelColumns
        Rows and basis.
    grow : callable, optional
        grow(columns, row_weights (n, columns), basis_weights (m, columns)) -> vectors in the
        coordinates of the rows, or None. Called once for the newest cuts of a round while there are
        less than ``max_basis`` vectors, with their residuals: sum_i row_weights_i phi(x_i) + sum_j
        basis_weights_j phi(b_j) is what the span cannot say of a cut.
    max_basis : int, optional
        Where growth ends; by default the capacity of ``columns``.
    """

    scope = SUBSPACE

    def __init__(
        self, columns: KernelColumns, grow: Growth | None = None, max_basis: int | None = None
    ) -> None:
        self.columns, self.grow = columns, grow
        self.n, self.n_threads = columns.n, columns.n_threads
        self.max_size = columns.max_basis
        self.max_basis = min(self.max_size, self.max_size if max_basis is None else max_basis)
        self.precision = str(np.dtype(columns.dtype))

    @property
    def size(self) -> int:  # type: ignore[override]
        """Number of basis vectors."""
        return self.columns.m

    @property
    def growing(self) -> bool:  # type: ignore[override]
        """Whether the basis may gain vectors."""
        return self.grow is not None and self.columns.m < self.max_basis

    def scores(self, W: Array) -> Array:
        """K_XB L^-T W"""
        return self.columns.scores(self.coef(W)) if self.size else np.zeros((self.n, W.shape[1]))

    def project(self, V: Array) -> Array:
        """L^-1 K_BX V"""
        if not self.size:
            return np.empty((0, V.shape[1]))

        return self.columns.coordinates(self.columns.sum(sums_of, PerRow(V), False))

    def sweep(self, W: Array, b: Array, which: Array, oracle: Any) -> Swept:
        """L^-1 K_BX respond(K_XB L^-T W), chunk by chunk."""
        if not self.size:
            return super().sweep(W, b, which, oracle)
        found = _gathered(self.columns.map(swept_columns, self.coef(W), b, which, oracle))
        return found._replace(P=self.columns.coordinates(found.P))

    def coef(self, W: Array) -> Array:
        """L^-T W"""
        return self.columns.coefficients(W) if self.size else W

    def rounding(self, W: Array, V: Array, scores: Array) -> float:
        """That of the kernel values, of value and lower bound."""
        return 8.0 * self.columns.rounding(self.coef(W), self.coef(W), V, scores)

    def errors(self, W: Array, scores: Array) -> Array:
        """That of the kernel values."""
        return errors_of_scores(self.columns.error if self.size else 0.0, self.coef(W), scores)

    def weights(self, coef: Array) -> Array:
        """L' coef"""
        return np.asarray(self.columns.L.T @ coef)

    def extend(self, V: Array, P: Array) -> int:
        """Offer the residuals of cuts with responses V and coordinates P to ``grow``.

        Returns the number of vectors that joined.
        """
        assert self.grow is not None
        before = self.size
        vectors = self.grow(self.columns, V, -self.coef(P))
        if vectors is not None and vectors.shape[0]:
            self.columns.append(vectors[: self.max_basis - before])
        return self.size - before

    def grown(self) -> Any:
        """The vectors, and what their choice remembers."""
        grow: Any = self.grow
        if grow is None:
            return None
        if not hasattr(grow, "remembered"):
            raise TypeError("what this space grows by does not say what it remembers")
        return np.array(self.columns.vectors), grow.remembered(self.columns)

    def grow_again(self, known: Any) -> None:
        """Let the vectors of a space join that was kept."""
        if known is None:
            return
        (vectors, remembered), columns = known, self.columns
        grow: Any = self.grow
        span, accepted = columns.span.appended(vectors[columns.m :])
        if not accepted.all():
            raise ValueError("the vectors that were kept are not those of these rows")
        columns.span, columns.accepted = span, np.empty(0, bool)
        grow.remember(remembered)

    def further(self, n_old: int, cuts: PerRow, P: Array) -> Array:
        """The coordinates of old cuts along the vectors from n_old on: (new, cuts).

        With l the row of L that belongs to a new vector b, lam its last entry: (k_b'v - l.p)/lam.
        ``P`` (n_old, cuts) holds the old ones, ``cuts.products(first, last, K)`` makes k_b'v over a
        part of the rows, for all cuts.
        """
        columns, L = self.columns, self.columns.L
        columns.n_values += 0 if columns.keeps else (self.size - n_old) * self.n
        right = (
            columns.rows.sum(further_products, columns.span, n_old, cuts) - L[n_old:, :n_old] @ P
        )
        return np.asarray(
            solve_triangular(L[n_old:, n_old:], right, lower=True, check_finite=False)
        )


def swept_columns(
    where: Block, span: Span, coef: Array, b: Array, which: Array, oracle: Any
) -> Swept:
    """A task: see :meth:`Space.sweep`; P is K_BX V."""
    shape = (where.n, which.size)
    all_scores, V = np.empty(shape), np.empty(shape)
    sums: dict[int, Array] = {}

    def work(first: int, last: int, K: Array) -> Array:
        all_scores[first:last] = scores = combined(K, coef)
        risk, offset, V[first:last] = oracle.cut(first, last, scores + b, which)
        sums[first] = np.stack([risk, offset])
        return products(K, V[first:last])

    P = np.asarray(sum(Values(where, span).each(work)))
    return Swept(P, all_scores, V, _in_order(sums))


def further_products(where: Block, span: Span, n_old: int, cuts: Any) -> Array:
    """A task: kernel values of the vectors from n_old on times the responses of cuts."""
    K, n = Values(where, span).newest(n_old), where.n
    parts: list[Any] = [None] * -(-n // ROWS_A_TASK)

    def task(k: int) -> None:
        first, last = k * ROWS_A_TASK, min(n, (k + 1) * ROWS_A_TASK)
        parts[k] = cuts.products(first, last, K[:, first:last])

    parallel(task, len(parts), where.n_threads)
    return np.asarray(sum(parts))
