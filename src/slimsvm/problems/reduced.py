"""The reduced problem: kernel values against a few rows as features.

The penalty is the plain norm of their coefficients:

    min over u of  F(u) = 1/2 |u|^2 + sum_i weight_i L(v_i u),
    v_i = y_i [k(x_i, r_1), ..., k(x_i, r_m), 1],     weight_i = C c_i

Lee & Mangasarian (2001), lee2001rsvm, in the form of Lin & Lin (2003), lin2003rsvm. Two things set
it apart from :mod:`slimsvm.problems.subspace`: the penalty is |u|^2 and not the norm of the
function in the space of the kernel, and it includes the intercept, the last entry of u. Both make
it easy: Newton's matrix is I + V'DV, always regular, whatever the kernel; and for any u

    gap = 1/2 |u + V'g|^2,     g_i = weight_i L'(v_i u),

half of the squared gradient, is the duality gap: -g is a feasible point of the dual. L is the
squared hinge max(0, 1 - t)^2 (lagrangian and chunking), its smooth version P(1 - t)^2 (smooth
Newton), or (1 - t)^2 (least squares), all seen with the label +1: labels are in V.

V is kept with the rows, in float32 where that is safe, as long as it fits the budget of bytes;
beyond it, it is made anew in every pass. Sums are in float64, over chunks with fixed edges.

Symbols: n rows, m basis vectors, V (n, m + 1), D second derivatives of the weighted loss.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from slimsvm.frames import Frame, rounding_of
from slimsvm.losses import Loss
from slimsvm.precision import bent, errors_of_scores, rounding
from slimsvm.problems.columns import largest_diagonal
from slimsvm.rows import Block, PerRow, Rows, joined, serial
from slimsvm.threads import parallel, single_threaded_blas
from slimsvm.tiles import CHUNK_ROWS, Operand, Strips, block, for_each_tile

Array = NDArray[Any]
BLOCK_VALUES = 1 << 18  # of V in one block
DEFAULT_MEMORY = 2000.0  # megabytes
NOTHING = 1e-12  # of the largest eigenvalue of K_RR: what is left out
FEW_ROWS = 256  # columns of V from which on a system in few rows is solved in these
GROUPS, GROUP_VALUES = (
    8,
    1 << 26,
)  # partial sums of V'DV: enough for threads, and no more than 512 MB of them


def block_rows(size: int) -> int:
    """Rows of V in one block, if it has so many columns.

    Whole chunks of the tiles that it is made of, where there is more than one.
    """
    most = max(64, BLOCK_VALUES // size)
    return most if most < CHUNK_ROWS else most // CHUNK_ROWS * CHUNK_ROWS


@dataclass(frozen=True)
class Signed:
    """What V is, without the rows: small, and sent to where they are."""

    frame: Frame
    basis: Operand
    size: int  # columns
    step: int  # rows in one chunk
    dtype: Any  # of the kernel values
    kept: Any  # of V, where it is kept
    kept_rows: int  # of how many rows, the first ones, V is kept
    mapped: Array | None = None  # what kernel values are multiplied with, from the right
    serial: str = field(default_factory=serial)

    def made(self, where: Block, part: slice, n_threads: int = 1, dtype: Any = None) -> Array:
        """Rows of V, of a part of a block."""
        n, y = part.stop - part.start, where.y
        assert y is not None
        out, sign = np.empty((n, self.size), dtype or self.dtype), y[part].astype(self.dtype)
        found = out if self.mapped is None else np.empty((n, self.basis.n), out.dtype)
        rows, basis = self.frame.prepared(where).operand.take(part), Strips(self.basis)

        def chunk(k: int) -> None:  # tiles of so many rows are written as they lie
            begin = k * self.step
            some = slice(begin, min(n, begin + self.step))

            def keep(first: int, last: int, start: int, end: int, values: Array) -> None:
                np.multiply(
                    values,
                    sign[begin + first : begin + last, None],
                    out=found[begin + first : begin + last, start:end],
                )

            for_each_tile(rows.take(some), basis, keep)

        with single_threaded_blas():
            parallel(chunk, -(-n // self.step), n_threads)
            if self.mapped is not None:
                out[:, :-1] = found @ self.mapped
        out[:, -1] = sign
        return out

    def all(self, where: Block) -> Array | None:
        """V of a block, if it is kept."""
        if where.start + where.n > self.kept_rows:
            return None
        known = where.kept.get("features")
        if known is None or known[0] != self.serial:
            V = self.made(where, slice(0, where.n), where.n_threads, self.kept)
            known = where.kept["features"] = (self.serial, V)
        return np.asarray(known[1])

    def rows(self, where: Block, V: Array | None, start: int, end: int) -> Array:
        """Rows of V, in float64, from all of them if these are kept."""
        some = self.made(where, slice(start, end)) if V is None else V[start:end]
        return some.astype(np.float64, copy=False)

    def each(self, where: Block, work: Callable[[int, int, Array], Any]) -> list[Any]:
        """work(first row, last row, rows of V in float64) for all chunks of a block, in order."""
        V, parts = self.all(where), [None] * -(-where.n // self.step)

        def task(k: int) -> None:
            start, end = k * self.step, min(where.n, (k + 1) * self.step)
            parts[k] = work(start, end, self.rows(where, V, start, end))

        with single_threaded_blas():
            parallel(task, len(parts), where.n_threads)
        return parts


# -- tasks -----------------------------------------------------------------------------------------


def margins_of(where: Block, signed: Signed, u: Array) -> Array:
    """V u"""
    return np.concatenate(signed.each(where, lambda start, end, V: V @ u))


def projected(where: Block, signed: Signed, g: Array) -> Array:
    """V'g"""
    return np.asarray(sum(signed.each(where, lambda start, end, V: g[start:end] @ V)))


def squares_of(where: Block, signed: Signed) -> Array:
    """|v_i|^2"""
    return np.concatenate(signed.each(where, lambda a, b, V: np.einsum("ij,ij->i", V, V)))


def looked_at(
    where: Block, signed: Signed, loss: Loss, u: Array, weight: Array
) -> tuple[Array, float, Array]:
    """Margins, the sum of the losses, and V' times their slopes."""

    def work(start: int, end: int, V: Array) -> tuple[Array, float, Array]:
        margins, own = V @ u, weight[start:end]
        slopes = own * loss.gradient(1.0, margins)
        return margins, float(own @ loss.value(1.0, margins)), slopes @ V

    margins, losses, slopes = zip(*signed.each(where, work), strict=True)
    return np.concatenate(margins), sum(losses), np.asarray(sum(slopes))


def rows_of(where: Block, signed: Signed, which: Array) -> Array:
    """The rows of V that are in the block, of those with these numbers (ascending), in float64."""
    a, b = np.searchsorted(which, (where.start, where.start + where.n))
    rows, V, step = which[a:b] - where.start, signed.all(where), signed.step
    if V is not None:
        return np.asarray(V[rows].astype(np.float64, copy=False))
    parts = np.split(rows, np.searchsorted(rows, np.arange(step, where.n, step)))
    made = [
        signed.rows(where, None, k, min(where.n, k + step))[part - k]
        for k, part in zip(range(0, where.n, step), parts, strict=True)
        if part.size
    ]
    return np.vstack([np.empty((0, signed.size)), *made])


def gram_of(where: Block, signed: Signed, D: Array, dtype: Any, even: bool) -> Array:
    """V' diag(D) V; ``even``: without D, whose entries are zero or all the same."""
    step = max(
        signed.step, signed.size
    )  # as many rows as columns, at least: adding up must not take longer than multiplying
    starts, all_V = np.arange(0, where.n, step), signed.all(where)
    n_groups = int(min(GROUPS, starts.size, max(1, GROUP_VALUES // signed.size**2)))
    groups, parts = (
        np.array_split(starts, n_groups),
        np.zeros((n_groups, signed.size, signed.size)),
    )

    def task(k: int) -> None:
        for start in groups[k]:
            end = min(where.n, int(start) + step)
            active = np.flatnonzero(D[start:end])
            if active.size:
                V = (
                    signed.made(where, slice(int(start), end))
                    if all_V is None
                    else all_V[start:end]
                )
                V, own = (
                    (V, D[start:end])
                    if active.size == len(V)
                    else (V[active], D[start:end][active])
                )
                scaled: Array = (
                    V.astype(dtype, copy=False)
                    if even
                    else np.multiply(V, np.sqrt(own)[:, None].astype(dtype), dtype=dtype)
                )
                parts[k] += (
                    scaled.T @ scaled
                )  # NumPy sees that this is symmetric, and lets other threads run meanwhile

    with single_threaded_blas():
        parallel(task, n_groups, where.n_threads)
    matrix: Array = parts[0]
    for part in parts[1:]:
        matrix += part
    return matrix


def inverse_root(K: Array) -> tuple[Array, Array]:
    """M with M'K M = I, a column for each direction in which K says anything; its eigenvalues."""
    values, directions = np.linalg.eigh(np.asarray(K, np.float64))
    said = values > NOTHING * max(float(values[-1]), float(np.finfo(float).tiny))
    return np.asarray(directions[:, said] / np.sqrt(values[said])), values[said]


# -- all rows --------------------------------------------------------------------------------------


class SignedFeatures:
    """V: one row y_i [k(x_i, r_1), ..., k(x_i, r_m), 1] for each row of the data.

    Parameters
    ----------
    rows : Rows
        The rows, with labels of -1 and +1 as their targets.
    frame : Frame
        How they are prepared.
    basis : int array of shape (m,)
        Which of the rows are the basis.
    max_memory : float, optional
        Megabytes for V; beyond, its chunks are computed in every pass.
    many : bool
        Whether there will be many passes over V: then it is kept in float64, if that fits, and not
        converted in each.
    function_norm : bool
        Whether the plain norm of u is to be that of the function: kernel values are multiplied with
        ``mapped`` = K_RR^-1/2, and the coefficients are ``mapped`` u.

    Examples
    --------
    >>> from slimsvm.kernels import Linear
    >>> from slimsvm.rows import MemoryRows
    >>> rows = MemoryRows(np.array([[1.0], [2.0], [3.0]]), np.array([1.0, -1.0, 1.0]))
    >>> V = SignedFeatures(rows, Frame.of(Linear(), rows, np.float64), np.array([1]))
    >>> V.margins(np.array([1.0, 10.0]))
    array([ 12., -14.,  16.])
    """

    _squares: Array | None = None  # of all rows, once they were asked for

    def __init__(
        self,
        rows: Rows,
        frame: Frame,
        basis: Array,
        max_memory: float | None = None,
        many: bool = False,
        function_norm: bool = False,
    ) -> None:
        taken = frame.prepared(rows.take(basis).block).operand
        self.mapped, self._values = None, np.empty(0)
        if function_norm:
            self.mapped, self._values = inverse_root(block(taken, Strips(taken)))
        width = int(basis.size) if self.mapped is None else self.mapped.shape[1]
        self.rows, self.n, self.size = rows, rows.n, width + 1
        self.dtype = np.dtype(frame.dtype)
        self.budget = DEFAULT_MEMORY if max_memory is None else float(max_memory)
        kept = np.dtype(np.float64) if many and self._megabytes(8) <= self.budget else self.dtype
        self.megabytes = self._megabytes(kept.itemsize)
        kept_rows = int(self.budget * 2**20 // (self.size * kept.itemsize))
        self.signed = Signed(
            frame,
            replace(taken, source=None, picked=None),
            self.size,
            block_rows(self.size),
            self.dtype,
            kept,
            kept_rows,
            self.mapped,
        )

    def _megabytes(self, itemsize: int) -> float:
        return self.n * self.size * itemsize / 2**20

    @property
    def V(self) -> Array | None:
        """All of it in float64, brought here; None where it is not kept."""
        if self.n > self.signed.kept_rows:
            return None
        return joined(self.rows.map(rows_of, self.signed, np.arange(self.n)))

    def rounding(
        self, loss: Loss, weight: Array, u: Array, margins: Array, gradient: Array
    ) -> float:
        """What rounding may have changed of the value of u, and of the bound by its slopes.

        ``margins`` are V u. The bound is the value of minus the slopes in the dual, whose u is
        another one by the gradient.
        """
        slopes = weight * loss.gradient(1.0, margins)
        error, coef, own = self._felt(u)
        off = errors_of_scores(error, coef, margins[:, None])
        found = rounding(error, coef, own, slopes[:, None], margins[:, None])
        found += bent(loss, 1.0, weight, margins[:, None], off)
        error, coef, own = self._felt(gradient)
        apart = self.margins(gradient)[:, None]
        found += rounding(error, coef, own, slopes[:, None], apart)
        # in the bound is the square of V'g, too, and that of its errors
        lengths = self.size if self.mapped is None else float(np.square(self.mapped).sum()) + 1.0
        return found + 0.5 * (error * error) * lengths * float(slopes @ slopes)

    def _felt(self, u: Array) -> tuple[float, Array, Array]:
        """The error of a kernel value, coefficients, and products of the function with its vectors.

        Where kernel values are multiplied with ``mapped``, what counts are the coefficients, which
        small eigenvalues make large, and the errors of eigenvectors and products, too, which are as
        large as the largest eigenvalue is.
        """
        error = float(max(self.rows.map(rounding_of, self.signed.frame)))
        if self.mapped is None:
            return error, u[:, None], u[:, None]
        coef, own = self.mapped @ u[:-1], self.mapped @ (self._values * u[:-1])
        longest = max(self.rows.map(largest_diagonal, self.signed.frame))
        size = float(self._values.max(initial=0.0))
        error += float(np.finfo(float).eps) * np.sqrt(size * max(size, longest))
        return error, coef[:, None], own[:, None]

    def margins(self, u: Array) -> Array:
        """V u: labels times the values of the function."""
        return joined(self.rows.map(margins_of, self.signed, u))

    def project(self, g: Array) -> Array:
        """V'g"""
        return np.asarray(self.rows.sum(projected, self.signed, PerRow(g)))

    @property
    def single(self) -> bool:
        """Whether V is kept, in float32."""
        return self.n <= self.signed.kept_rows and bool(self.signed.kept == np.float32)

    def squares(self, rows: slice | None = None) -> Array:
        """|v_i|^2 of some rows, or of all, which are kept for the next time."""
        if rows is not None:
            return np.asarray(np.square(self._at(np.arange(self.n)[rows])).sum(axis=1))
        if self._squares is None:
            self._squares = joined(self.rows.map(squares_of, self.signed))
        return self._squares

    def inverse(self, D: Array, single: bool = False) -> Callable[[Array], Array]:
        """x -> (I + V' diag(D) V)^-1 x.

        Cost: (rows with D > 0) m^2 + m^3/3, or for k < m/2 such rows k^2 m + k^3/3.

        With ``single`` the products may be in float32: nearly the inverse then, for those who
        correct what they solve with it. Where values are so large that rounding errors hide the
        identity, a little more of it is added: what is solved with it is not exact then, but a
        direction of descent all the same.
        """
        active = np.flatnonzero(D)
        if self.size >= FEW_ROWS and 2 * active.size < self.size:
            # Woodbury: I - S'(I + S S')^-1 S with S = D^1/2 V, on these rows alone
            S = np.sqrt(D[active])[:, None] * self._at(active)
            with single_threaded_blas():
                small = S @ S.T
            small[np.diag_indices(active.size)] += 1.0
            try:
                factor = cho_factor(small, lower=True, check_finite=True)
                return lambda x: x - S.T @ cho_solve(factor, S @ x, check_finite=False)
            except (LinAlgError, ValueError):
                pass
        matrix, more = self.gram(D, single), 0.0
        scale = float(np.trace(matrix))
        if not np.isfinite(scale):
            raise ValueError(
                "Sums of squared kernel values are too large for floating-point numbers. Scale the "
                "features, or choose other parameters of "
                "the kernel."
            )
        while True:
            try:
                factor = cho_factor(matrix, lower=True, check_finite=False)
                return lambda x: np.asarray(cho_solve(factor, x, check_finite=False))
            except LinAlgError:
                matrix[np.diag_indices(self.size)] += max(9.0 * more, 1e-14 * scale)
                more = max(10.0 * more, 1e-14 * scale)

    def _at(self, rows: Array) -> Array:
        """Some rows of V (ascending), in float64."""
        return joined(self.rows.map(rows_of, self.signed, rows))

    def gram(self, D: Array, single: bool = False) -> Array:
        """I + V' diag(D) V.

        Single: products of chunks in float32, where V is kept so, which takes half of the time.
        """
        dtype = np.float32 if single and self.single else np.float64
        least, most = (float(D[D > 0].min()), float(D.max())) if D.any() else (1.0, 1.0)
        even = (
            least == most
            # as with least squares and the squared hinge, without weights: V is multiplied as is,
            # without a copy
        )
        state = (self.signed, PerRow(D), dtype, even)
        matrix: Array = self.rows.sum(gram_of, *state)
        if even:
            matrix *= most
        matrix[np.diag_indices(self.size)] += 1.0
        return matrix


@dataclass
class Reduced:
    """The problem.

    Parameters
    ----------
    features : SignedFeatures
        V.
    weight : array of shape (n,)
        C times the weight of each row.
    loss : Loss
        One with a derivative, for labels.
    """

    features: SignedFeatures
    weight: Array
    loss: Loss

    def value(self, u: Array, margins: Array) -> float:
        """F(u), with margins = V u."""
        return float(0.5 * (u @ u) + self.weight @ self.loss.value(1.0, margins))

    def at(self, u: Array) -> tuple[Array, float, Array]:
        """Margins, value and gradient at u, in one pass over V."""
        V = self.features
        parts = V.rows.map(looked_at, V.signed, self.loss, u, PerRow(self.weight))
        margins, losses, slopes = zip(*parts, strict=True)
        return (
            joined(list(margins)),
            float(0.5 * (u @ u) + sum(losses)),
            np.asarray(u + sum(slopes)),
        )

    def curvatures(self, margins: Array) -> Array:
        """D"""
        return np.asarray(self.weight * self.loss.curvature(1.0, margins))


@dataclass
class ReducedState:
    """Where a solver of the primal problem is."""

    u: Array
    margins: Array
    objective: float
    gradient: Array
    n_iter: int = 0
    done: bool = False
    stalled: bool = False  # rounding is all that is left
    share: float = (
        1.0  # of C that counts in the present steps, where a solver begins with less than all of it
    )
    eased: bool = False  # whether it has begun so

    @property
    def gap(self) -> float:
        """The duality gap."""
        return float(0.5 * (self.gradient @ self.gradient))

    @property
    def relative_gap(self) -> float:
        """The same, relative to the objective."""
        return self.gap / max(self.objective, float(np.finfo(float).tiny))

    def record(self) -> dict[str, float]:
        """A line of the history; ``violation`` is the relative gap."""
        return {
            "objective": self.objective,
            "gap": self.gap,
            "violation": self.relative_gap,
            "n_basis": float(self.u.size - 1),
        }


@dataclass(frozen=True)
class ReducedSolution:
    """Coefficients of the basis, and the intercept."""

    coef: Array
    intercept: float

    @property
    def u(self) -> Array:
        """Both in one."""
        return np.append(self.coef, self.intercept)


def begin(problem: Reduced, start: Array | None) -> ReducedState:
    """The state at ``start``, or at zero."""
    V = problem.features
    if start is None:
        u, margins = np.zeros(V.size), np.zeros(V.n)
        return ReducedState(
            u,
            margins,
            problem.value(u, margins),
            V.project(problem.weight * problem.loss.gradient(1.0, margins)),
        )
    u = np.array(start, np.float64)
    return ReducedState(u, *problem.at(u))
