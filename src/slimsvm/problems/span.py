"""The span of a basis: its vectors, their kernel values, and the factor of these.

It has no rows.

    K_BB + jitter I = L L',     z(x) = L^-1 k_B(x) orthonormal coordinates of the span

A span is small, does not change, and can be sent to where rows are;
:func:`slimsvm.problems.columns.values` makes its kernel values with these. So that values which
were kept can be told from others, vectors join in *pieces*, each with a serial number of its own: a
longer span adds rows to what is kept, one with other pieces remakes it. Values are made piece by
piece, in the same products as at first, so that what was lost comes back with the same bits.

The basis lives in the coordinates of the prepared rows (centred for distance kernels);
``in_given_coordinates`` brings it back.

Symbols: m basis vectors.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cholesky, eigh
from scipy.linalg.lapack import dposv, dtrtri, dtrtrs

from slimsvm.frames import Frame
from slimsvm.rows import serial
from slimsvm.tiles import Operand

Array = NDArray[Any]
# added to the diagonal of K_BB, relative to its largest entry: well above the rounding errors of
# K_BX, far below what changes a model
JITTER = {"float32": 1e-6, "float64": 1e-10}
# by types: to ask one for its name takes microseconds
OF_DTYPE = {np.dtype(name): share for name, share in JITTER.items()}
DEPENDENT = 10.0  # a vector whose distance^2 to the span is below so many jitters is refused
TAKEN_APART = 300  # vectors up to which the eigenvalues of K_BB are looked at
CHUNK_VALUES = 1 << 18  # of K_BX in one chunk of rows: one megabyte of float32


@dataclass(frozen=True)
class Piece:
    """Vectors that joined together: from where to where, and a number that no others have."""

    serial: str
    first: int
    last: int


class _Store:
    """K_BB and L, with room for more; spans that grew out of one another share it."""

    def __init__(self, size: int) -> None:
        self.K_BB, self.L = np.empty((size, size)), np.zeros((size, size))
        self.used = 0

    def grown_from(self, m: int, size: int) -> _Store:
        """A store in which vectors from m on may be written.

        This one, unless another span has written there already.
        """
        if self.used == m and self.L.shape[0] >= size:
            return self
        other = _Store(size)
        other.K_BB[:m, :m], other.L[:m, :m], other.used = self.K_BB[:m, :m], self.L[:m, :m], m
        return other


class Span:
    """The span of a basis.

    Parameters
    ----------
    frame : Frame
        How the rows are prepared.
    max_basis : int
        How many vectors there may be.
    kept_rows : int
        Of how many rows, the first ones, kernel values may be kept: beyond, they are made in every
        pass.

    Attributes
    ----------
    vectors : array or CSR matrix of shape (m, d), or None
        The basis in the coordinates of the prepared rows, in float64.
    K_BB : array of shape (m, m)
        In float64, jitter not included.
    L : array of shape (m, m)
        Lower Cholesky factor of K_BB + jitter I.

    Examples
    --------
    >>> from slimsvm.kernels import RBF
    >>> span = Span(Frame(RBF(1.0), None, np.dtype(np.float64)), max_basis=3)
    >>> span, accepted = span.appended(np.array([[0.0], [2.0], [0.0]]))
    >>> accepted, span.m
    (array([ True,  True, False]), 2)
    """

    def __init__(self, frame: Frame, max_basis: int, kept_rows: int = 0) -> None:
        self.frame, self.max_basis, self.kept_rows = frame, int(max_basis), kept_rows
        self.dtype = np.dtype(frame.dtype)
        self.step = max(1024, min(16384, CHUNK_VALUES // max(1, self.max_basis) // 1024 * 1024))
        self.m = 0
        self.pieces: tuple[Piece, ...] = ()
        self._all: Any = None  # the vectors of all pieces: those beyond m are not in this span
        self._store = _Store(self.max_basis)
        self._forget()

    def _forget(self) -> None:
        self._operand: Operand | None = None
        self._inverse: Array | None = None
        self._jitter: float | None = None

    def __getstate__(self) -> dict[str, Any]:
        """What is sent: K_BB and L without spare capacity, and nothing that follows from them."""
        store = _Store(0)
        store.K_BB, store.L, store.used = self.K_BB.copy(), self.L.copy(), self.m
        return self.__dict__ | {"_store": store, "_operand": None, "_inverse": None}

    @property
    def vectors(self) -> Any:
        """The basis."""
        return (
            self._all if self._all is None or self.m == self._all.shape[0] else self._all[: self.m]
        )

    @property
    def K_BB(self) -> Array:
        """Kernel values among the basis."""
        return self._store.K_BB[: self.m, : self.m]

    @property
    def L(self) -> Array:
        """Lower Cholesky factor of K_BB + jitter I."""
        return self._store.L[: self.m, : self.m]

    @property
    def inverse(self) -> Array:
        """L^-1, for thousands of products with small arrays.

        There, a call of a solver costs more than its work.
        """
        if self._inverse is None:
            self._inverse, _ = dtrtri(np.asfortranarray(self.L), lower=1)
        return self._inverse

    @property
    def jitter(self) -> float:
        """What is added to the diagonal of K_BB."""
        if self._jitter is None:
            largest = float(np.abs(np.diag(self.K_BB)).max()) if self.m else 1.0
            self._jitter = OF_DTYPE[self.dtype] * largest
        return self._jitter

    @property
    def operand(self) -> Operand:
        """The basis, prepared for products with the rows."""
        if self._operand is None:
            self._operand = self.frame.vectors(self.vectors)
        return self._operand

    def of_piece(self, piece: Piece) -> Operand:
        """The vectors of one piece, all of them, prepared for products with the rows."""
        return self.frame.vectors(self._all[piece.first : piece.last])

    # -- other spans -------------------------------------------------------------------------------

    def appended(self, vectors: Any) -> tuple[Span, Array]:
        """With more basis vectors, one by one; and which of them were accepted.

        The vectors are in the coordinates of the rows.

        A vector that depends on those before it (its distance to their span is within rounding
        errors) is refused.
        """
        kernel, known = self.frame.kernel, self.vectors
        accepted = np.zeros(vectors.shape[0], bool)
        new = _float64(vectors)
        K_new = kernel.block(new, new, np.float64) if not sp.issparse(new) else kernel(new)
        K_old = kernel(new, known) if self.m else np.empty((vectors.shape[0], 0))
        more = self._empty(self._store.grown_from(self.m, self.max_basis))
        more.m = self.m
        for i in range(vectors.shape[0]):
            if more.m == self.max_basis:
                break
            k_B = np.concatenate([K_old[i], K_new[i, np.flatnonzero(accepted)]])
            diag = float(K_new[i, i])
            jitter = OF_DTYPE[self.dtype] * max(
                diag, float(np.diag(more.K_BB).max()) if more.m else diag
            )
            row = solved_triangular(more.L, k_B) if more.m else k_B
            left = diag + jitter - float(row @ row)
            if not (np.isfinite(left) and left > DEPENDENT * jitter):
                continue
            more._write(k_B, diag, row, np.sqrt(left))
            accepted[i] = True
        if not accepted.any():
            return self, accepted
        chosen = new[accepted]
        more._all = (
            chosen
            if known is None
            else sp.vstack([known, chosen], format="csr")
            if sp.issparse(chosen)
            else np.vstack([known, chosen])
        )
        more.pieces = (*self.pieces, Piece(serial(), self.m, more.m))
        return more, accepted

    def replaced(self, vectors: Any) -> Span:
        """Another basis of any size within the capacity.

        All its vectors are taken; jitter keeps the factor regular.
        """
        other, new = self._empty(_Store(self.max_basis)), _float64(vectors)
        m = other.m = other._store.used = new.shape[0]
        other._all, other.pieces = new, (Piece(serial(), 0, m),)
        other._store.K_BB[:m, :m] = self.frame.kernel(new)
        regular = other.K_BB + other.jitter * np.eye(m)
        other._store.L[:m, :m] = cholesky(regular, lower=True, check_finite=False)
        return other

    def first(self, m: int) -> Span:
        """The first m basis vectors only; nothing is copied."""
        some = copy.copy(self)
        some.m = some.max_basis = m
        some.pieces = tuple(piece for piece in self.pieces if piece.first < m)
        some._forget()
        return some

    def _empty(self, store: _Store) -> Span:
        other = copy.copy(self)
        other.m, other.pieces, other._all, other._store = 0, (), None, store
        other._forget()
        return other

    def _write(self, k_B: Array, diag: float, row: Array, last: float) -> None:
        """One vector more in K_BB and L."""
        m, store = self.m, self._store
        store.K_BB[m, :m] = store.K_BB[:m, m] = k_B
        store.K_BB[m, m] = diag
        store.L[m, :m], store.L[m, m] = row, last
        self.m = store.used = m + 1

    # -- coordinates -------------------------------------------------------------------------------

    def coordinates(self, P: Array) -> Array:
        """L^-1 P: products with the basis in orthonormal coordinates of its span."""
        return np.asarray(self.inverse @ P)

    def coefficients(self, W: Array) -> Array:
        """L^-T W: coefficients of the basis for a function given in orthonormal coordinates."""
        return np.asarray(self.inverse.T @ W)

    def in_given_coordinates(self, vectors: Any = None) -> Any:
        """Basis vectors (all, or these) in the coordinates of the data as it was given."""
        vectors, shift = self.vectors if vectors is None else vectors, self.frame.shift
        return vectors if shift is None or sp.issparse(vectors) else vectors + shift

    def in_rows_coordinates(self, vectors: Any) -> Any:
        """The other way round."""
        if self.frame.shift is None:
            return vectors
        dense = vectors.toarray() if sp.issparse(vectors) else np.asarray(vectors, np.float64)
        return dense - self.frame.shift


def solved_triangular(L: Array, B: Array, transposed: bool = False) -> Array:
    """L^-1 B, or L'^-1 B, for a lower triangular L in float64.

    SciPy's solve_triangular without what it asks of its arguments, which takes longer than a system
    of a few vectors.

    Examples
    --------
    >>> solved_triangular(np.array([[2.0, 0.0], [1.0, 4.0]]), np.array([2.0, 9.0]))
    array([1., 2.])
    """
    if L.flags.f_contiguous:
        x, info = dtrtrs(L, B, lower=1, trans=int(transposed))
    else:  # LAPACK takes columns: L' is upper triangular
        x, info = dtrtrs(L.T, B, lower=0, trans=int(not transposed))
    if info:
        raise LinAlgError(f"the factor is singular: its diagonal is zero at {info - 1}")
    return np.asarray(x)


def price_of_jitter(K_BB: Array, jitter: float, *coefs: Array) -> float:
    """By how much the penalty of K_BB + jitter I may hide the optimum with that of K_BB.

    It adds 1/2 jitter |coef|^2 to the value; to the bound from the dual point that belongs to coef
    as much once more, and 1/2 jitter^2 coef' K_BB^-1 coef, which counts in directions that are
    shorter than the jitter. Eigenvalues within rounding errors of zero are taken for these. Of
    several coefs the largest price.

    Examples
    --------
    >>> round(price_of_jitter(np.eye(2), 0.1, np.ones((2, 1))), 6)
    0.21
    """
    m = K_BB.shape[0]
    every, outputs = np.hstack(coefs), coefs[0].shape[1]
    if m <= TAKEN_APART:
        values, U = eigh(K_BB)
        least = m * float(np.finfo(float).eps) * float(values[-1])
        short = np.sum(np.square(U.T @ every) / np.maximum(values, least)[:, None], axis=0)
    else:
        _, solved, info = dposv(K_BB + 0.01 * jitter * np.eye(m), every, lower=1)
        short = np.einsum("jc,jc->c", every, solved if info == 0 else every / jitter)
    short = np.abs(short.reshape(len(coefs), outputs).sum(axis=1))
    sizes = np.square(every).sum(axis=0).reshape(len(coefs), outputs).sum(axis=1)
    return float((jitter * sizes + 0.5 * jitter**2 * short).max())


def _float64(vectors: Any) -> Any:
    return (
        vectors.tocsr().astype(np.float64)
        if sp.issparse(vectors)
        else np.ascontiguousarray(vectors, np.float64)
    )
