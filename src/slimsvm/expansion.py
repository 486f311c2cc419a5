"""The learned function f(x) = sum_j coef_j k(b_j, x) + intercept: the model of every estimator."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from slimsvm.centring import safe_dtype
from slimsvm.compiled import compiled, compiled_sum
from slimsvm.forms import finish
from slimsvm.kernel_sums import accumulate
from slimsvm.kernels import Kernel, Linear, Precomputed, squared_norms
from slimsvm.mapping import Form, exponents, kernel_values, mapped, norm_matrix
from slimsvm.rows import Block, Rows, joined
from slimsvm.threads import parallel, single_threaded_blas
from slimsvm.tiles import Operand, Strips, for_each_tile, prepare

Array = NDArray[Any]
BLOCK_VALUES = 1 << 20  # values of X in one block of prediction: its copies stay small
UNTHREADED = 9216  # products: BLAS does so few on one thread by itself, and to hold it takes longer
# rows up to which one compiled call makes the outputs: all that BLAS and threads need costs more
FEW = 4


@compiled_sum
def _dot(a: Array, b: Array) -> Any:
    s = a[0] * b[0]
    for k in range(1, a.size):
        s += a[k] * b[k]
    return s


@compiled
def few_outputs(
    X: Array, shift: Array, B: Array, b_sq: Array, form: int, p: float, q: float, degree: int,
    coef: Array, ends: Array, intercept: Array, out: Array,
) -> None:  # fmt: skip
    """The outputs of few rows, without the interpreter.

    Basis vectors B are centred by shift. ``ends`` says where the vectors of each class begin in
    LIBSVM's layout; without any, ``coef`` has a column for each output.
    """
    n_classes, width = ends.size - 1, coef.shape[1]
    row, part = np.empty((1, X.shape[1]), B.dtype), np.empty(width)
    K, sq = np.empty((1, B.shape[0]), B.dtype), np.empty(1, B.dtype)
    for r in range(X.shape[0]):
        square = 0.0
        for k in range(X.shape[1]):
            x = X[r, k] - shift[k]
            row[0, k] = x
            square += x * x
        sq[0] = square
        for v in range(B.shape[0]):
            K[0, v] = _dot(row[0], B[v])
        finish(form, p, q, degree, K, sq, b_sq)
        for j in range(
            intercept.size
        ):  # not a slice: its checks of shapes take a second to compile
            out[r, j] = intercept[j]
        if n_classes < 2:
            for v in range(B.shape[0]):
                for j in range(width):
                    out[r, j] += K[0, v] * coef[v, j]
            continue
        # class c stands in its pair with j > c in column j - 1, with i < c in column i
        before = 0
        for c in range(n_classes):
            for j in range(width):
                part[j] = 0.0
            for v in range(ends[c], ends[c + 1]):
                for j in range(width):
                    part[j] += K[0, v] * coef[v, j]
            for j in range(c + 1, n_classes):
                out[r, before + j - c - 1] += part[j - 1]
            at = c - 1
            for i in range(c):
                out[r, at] += part[i]
                at += n_classes - i - 2
            before += n_classes - c - 1


@dataclass(eq=False, repr=False)
class Expansion:
    """A kernel expansion with one or several columns of coefficients.

    Parameters
    ----------
    kernel : Kernel
        With numbers for its parameters.
    basis : array or CSR matrix of shape (m, d), or indices
        The vectors that carry the coefficients; for a precomputed kernel, their columns in the rows
        that will be given.
    coef : array of shape (m, columns)
        Coefficients.
    intercept : array of shape (outputs,)
        Added to the outputs.
    n_support : array, optional
        One-vs-one models keep LIBSVM's layout: basis vectors sorted by class, n_support of them
        in each, and coef has one column fewer than there are classes. The outputs are the pairs
        (0,1), (0,2), ..., positive for the first class of a pair.
    exact : bool
        Whether kernel values are in float64 unless the basis is in float32; otherwise they are in
        float32 wherever that is safe.

    Examples
    --------
    >>> coef, intercept = np.array([[2.0], [3.0]]), np.array([0.5])
    >>> f = Expansion(Linear(), np.array([[1.0, 0.0], [0.0, 1.0]]), coef, intercept)
    >>> f.decision_function(np.array([[1.0, 1.0]]))
    array([[5.5]])
    """

    kernel: Kernel
    basis: Any
    coef: Array
    intercept: Array
    n_support: Array | None = None
    exact: bool = True
    # by whether the rows are sparse
    _prepared: dict[bool, Operand] = field(default_factory=dict, repr=False)
    _by_pair: Array | None = field(default=None, repr=False)
    # linear kernel: feature weights, by the identity of coefficients
    _weights: dict[int, Array] = field(default_factory=dict, repr=False)
    _few: Any = field(default=None, repr=False)  # what few_outputs takes

    def decision_function(self, X: Any, n_threads: int = 1) -> Array:
        """The outputs for every row of X, shape (n, outputs)."""
        if X.shape[0] <= FEW and isinstance(X, np.ndarray) and self.for_few():
            return self.of_few(X)
        return outputs_of(Block(0, X, n_threads=n_threads), self)

    def for_few(self) -> bool:
        """Whether :meth:`of_few` knows this function; it is made ready for it."""
        if self._few is None:
            self._few = ()
            if self.kernel.uses_dots and not isinstance(self.kernel, Linear) and self.coef.size:
                operand = self._operand(False)
                if not sp.issparse(operand.X):
                    d = operand.X.shape[1]
                    ends = np.empty(0, np.int64)
                    if self.n_support is not None:
                        ends = np.concatenate([[0], np.cumsum(self.n_support)]).astype(np.int64)
                    self._few = (
                        np.zeros(d) if operand.shift is None else operand.shift,
                        np.ascontiguousarray(operand.X),
                        operand.sq,
                        *self.kernel.form(),
                        np.ascontiguousarray(self.coef, np.float64),
                        ends,
                        np.asarray(self.intercept, np.float64),
                    )
        return bool(self._few)

    def of_few(self, X: Array) -> Array:
        """The outputs for few rows, in one compiled call, where :meth:`for_few` says so."""
        out = np.empty((X.shape[0], self._few[-1].size))
        given = (np.ascontiguousarray(X, np.float64), *self._few, out)
        few_outputs(*given)
        return out

    def over(self, rows: Rows) -> Array:
        """The same for rows wherever they are.

        They stay there, and the outputs are brought here.
        """
        return joined(rows.map(outputs_of, self))

    def __getstate__(self) -> dict[str, Any]:
        """What is sent or stored: not what was made on the way."""
        made: dict[str, Any] = {"_prepared": {}, "_by_pair": None, "_weights": {}, "_few": None}
        return self.__dict__ | made

    def squared_norm(self) -> Array:
        """<f, f> without the intercept, for every column of coefficients."""
        return np.asarray(np.einsum("ij,ij->j", self.coef, self.at_basis()))

    def rounding(self, X: Any) -> float:
        """The error of a kernel value in what :meth:`decision_function` adds up, for rows X."""
        if isinstance(self.kernel, Precomputed | Linear) or not self.coef.shape[0]:
            return 0.0
        dtype = self._operand(sp.issparse(X)).dtype
        # vectors may be longer than rows
        return max(prepare(self.kernel, Z, dtype=dtype).rounding() for Z in (X, self.basis))

    def at_basis(self) -> Array:
        """The values at the basis itself, without the intercept."""
        return self._products(self.basis, self.coef, 1)

    def _products(self, X: Any, coef: Array, n_threads: int) -> Array:
        n = X.shape[0]
        if isinstance(self.kernel, Precomputed):
            return np.asarray(X[:, self.basis] @ coef, np.float64)
        if isinstance(self.kernel, Linear):
            if id(coef) not in self._weights:
                # a sum of many products: in float32 it would be worse than the numbers stored
                wide = self.basis.T.astype(np.float64) @ coef.astype(np.float64)
                self._weights[id(coef)] = np.asarray(wide)
            return np.asarray(X @ self._weights[id(coef)], np.float64)
        out = np.zeros((n, coef.shape[1]))
        if not coef.shape[0]:
            return out
        basis = self._operand(sp.issparse(X))
        step = max(64, min(4096, BLOCK_VALUES // max(1, X.shape[1])))
        edges = range(0, n, step)

        def block(k: int) -> None:
            part = slice(edges[k], min(n, edges[k] + step))
            rows = prepare(self.kernel, X[part], like=basis if basis.sq is not None else None)
            if coef.shape[1] == 1:
                s = np.zeros(rows.n)
                accumulate(basis, Strips(rows), coef[:, 0], s)
                out[part, 0] = s
                return

            def consume(first: int, last: int, start: int, end: int, values: Array) -> None:
                out[edges[k] + start : edges[k] + end] += values.T @ coef[first:last]

            for_each_tile(basis, Strips(rows), consume)

        with single_threaded_blas():
            parallel(block, len(edges), n_threads)
        return out

    def _operand(self, for_sparse_rows: bool) -> Operand:
        """The basis, prepared once.

        Sparse rows are never centred, so a dense basis must not be either.
        """
        if for_sparse_rows not in self._prepared:
            dtype = np.float64 if self.exact and self.basis.dtype != np.float32 else None
            if for_sparse_rows and not sp.issparse(self.basis) and self.kernel.uses_dots:
                sq = squared_norms(self.basis)
                dtype = dtype or safe_dtype(self.kernel, sq, self.basis.shape[1])
                self._prepared[True] = Operand(
                    self.kernel, np.ascontiguousarray(self.basis, dtype), sq.astype(dtype)
                )
            else:
                self._prepared[for_sparse_rows] = prepare(self.kernel, self.basis, dtype=dtype)
        return self._prepared[for_sparse_rows]

    def _pairs(self, X: Any, n_threads: int) -> Array:
        """One-vs-one: pair (i, j) adds the vectors of both classes.

        Those of class i with coefficient column j - 1 and those of class j with column i.
        """
        assert self.n_support is not None
        n_classes = self.n_support.size
        ends = np.concatenate([[0], np.cumsum(self.n_support)])
        if n_classes > 4 and not isinstance(self.kernel, Linear | Precomputed):
            return self._products_by_class(X, ends, n_threads)
        if self._by_pair is None:
            self._by_pair = by_pair(self.coef.T, self.n_support)
        return self._products(X, self._by_pair, n_threads)

    def _products_by_class(self, X: Any, ends: Array, n_threads: int) -> Array:
        """Many classes: the coefficients of one class times K - 1 columns.

        Instead of K(K - 1)/2 columns that are mostly zero.
        """
        n_classes, n = ends.size - 1, X.shape[0]
        out = np.zeros((n, n_classes * (n_classes - 1) // 2))
        first_of = np.concatenate([[0], np.cumsum(np.arange(n_classes - 1, 0, -1))])
        basis = self._operand(sp.issparse(X))
        parts = [slice(int(ends[c]), int(ends[c + 1])) for c in range(n_classes)]
        vectors = [basis.take(part) for part in parts]
        # where the outputs of a class go: those with later classes, and those with earlier ones
        later = [first_of[c] + np.arange(n_classes - 1 - c) for c in range(n_classes)]
        earlier = [first_of[:c] + c - 1 - np.arange(c) for c in range(n_classes)]
        step = max(64, min(4096, BLOCK_VALUES // max(1, X.shape[1])))
        edges = range(0, n, step)

        def block(k: int) -> None:
            mine = slice(edges[k], min(n, edges[k] + step))
            rows = prepare(self.kernel, X[mine], like=basis if basis.sq is not None else None)
            strips = Strips(rows)
            for c, part in enumerate(parts):
                if part.start == part.stop:
                    continue
                values = np.zeros((rows.n, n_classes - 1))
                consume = partial(_add_products, values, self.coef[part])
                for_each_tile(vectors[c], strips, consume)
                out[mine, later[c]] += values[:, c:]
                out[mine, earlier[c]] += values[:, :c]

        with single_threaded_blas():
            parallel(block, len(edges), n_threads)
        return out


def _add_products(
    out: Array, coef: Array, first: int, last: int, start: int, end: int, tile: Array
) -> None:
    out[start:end] += tile.T @ coef[first:last]


@dataclass(eq=False, repr=False)
class MappedExpansion(Expansion):
    """The same for the rbf kernel in a metric, whose vectors have widths of their own.

    Parameters
    ----------
    kernel : RBF
        Its gamma is a factor of all widths.
    basis : array of shape (m, q)
        The vectors, in the metric.
    metric : array of shape (d,) or (d, q), optional
        Factors of the features, or one column for each coordinate. None: the features as they are.
    widths : array of shape (m,), optional
        None: ones.

    Examples
    --------
    >>> from slimsvm.kernels import RBF
    >>> basis, coef = np.array([[2.0, 0.0]]), np.array([[1.0]])
    >>> f = MappedExpansion(RBF(0.5), basis, coef, np.zeros(1), metric=np.array([2.0, 1.0]))
    >>> f.decision_function(np.array([[1.0, 0.0], [0.0, 0.0]]))
    array([[1.        ],
           [0.13533528]])
    """

    metric: Array | None = None
    widths: Array | None = None
    _ready: dict[str, Any] = field(default_factory=dict, repr=False)

    @property
    def _form(self) -> Form:
        form, _, coef0, degree = self.kernel.form()
        return form, 1.0, coef0, degree

    def _all_widths(self) -> Array:
        own = np.ones(self.basis.shape[0]) if self.widths is None else self.widths
        return np.asarray(own, np.float64) * float(self.kernel.form()[1])

    def _products(self, X: Any, coef: Array, n_threads: int) -> Array:
        n, dtype = X.shape[0], np.dtype(np.float64 if self.exact else np.float32)
        out = np.zeros((n, coef.shape[1]))
        if not coef.shape[0]:
            return out
        if "A" not in self._ready:  # around the mean of the vectors: differences keep their digits
            B = np.asarray(self.basis, np.float64)
            centre = B.mean(axis=0)
            A = exponents(self._form, B - centre, self._all_widths())
            self._ready = {"A": A.astype(dtype), "centre": centre}
        A, centre, Z = self._ready["A"], self._ready["centre"], coef.astype(dtype)
        step = max(64, min(4096, BLOCK_VALUES // max(1, X.shape[1], A.shape[1])))
        edges = range(0, n, step)

        def block(k: int) -> None:
            rows = X[edges[k] : edges[k] + step]
            z = mapped(rows, self.metric, np.result_type(rows.dtype, dtype)) - centre
            K = kernel_values(self._form, A, z.astype(dtype, copy=False))
            out[edges[k] : edges[k] + step] = K @ Z

        of_metric = 0 if self.metric is None else self.metric.size
        if 0 < n * (A.size + of_metric) <= UNTHREADED:
            block(0)
            return out
        with single_threaded_blas():
            parallel(block, len(edges), n_threads)
        return out

    def at_basis(self) -> Array:
        """K_BB coef in the norm of :mod:`slimsvm.mapping`."""
        K = norm_matrix(self._form, np.asarray(self.basis, np.float64), self._all_widths())
        return np.asarray(K @ np.asarray(self.coef, np.float64))

    def for_few(self) -> bool:
        """No: its values have a loop of their own."""
        return False

    def __getstate__(self) -> dict[str, Any]:
        return super().__getstate__() | {"_ready": {}}


def outputs_of(block: Block, function: Expansion) -> Array:
    """A task: the outputs for every row of a block."""
    values = (
        function._products(block.X, function.coef, block.n_threads)
        if function.n_support is None
        else function._pairs(block.X, block.n_threads)
    )
    values += function.intercept
    return values


def by_pair(dual_coef: Array, n_support: Array) -> Array:
    """Coefficients of all support vectors for every pair of classes, from LIBSVM's layout.

    Parameters
    ----------
    dual_coef : array of shape (n_classes - 1, n_SV)
        Support vectors sorted by class; the coefficients of class i in its pair with j > i are in
        row j - 1, with j < i in row j.
    n_support : array of shape (n_classes,)
        How many there are of each class.

    Returns
    -------
    array of shape (n_SV, n_classes (n_classes - 1) / 2)
        The pairs in the order (0, 1), (0, 2), ...; zero for vectors of other classes.

    Examples
    --------
    >>> by_pair(np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]), np.array([1, 1, 1]))
    array([[1., 4., 0.],
           [2., 0., 5.],
           [0., 3., 6.]])
    """
    n_classes, ends = n_support.size, np.concatenate([[0], np.cumsum(n_support)])
    out = np.zeros((dual_coef.shape[1], n_classes * (n_classes - 1) // 2))
    for pair, (i, j) in enumerate(zip(*np.triu_indices(n_classes, 1), strict=True)):
        of_i, of_j = slice(ends[i], ends[i + 1]), slice(ends[j], ends[j + 1])
        out[of_i, pair], out[of_j, pair] = dual_coef[j - 1, of_i], dual_coef[i, of_j]
    return out


def dense(coef: Any) -> Array:
    """Coefficients as an array."""
    return np.asarray(coef.toarray() if sp.issparse(coef) else coef)


def as_csr(coef: Array, kind: type) -> Any:
    """Coefficients with an entry for each number, zero or not."""
    n, m = coef.shape
    columns, ends = np.tile(np.arange(m), n), m * np.arange(n + 1)
    return kind((coef.ravel(), columns, ends), shape=coef.shape)


def by_pair_in_csr(coef: Array, n_support: Array) -> Any:
    """The same as :func:`by_pair`, a line a pair: only what is not zero by its place."""
    ends = np.concatenate([[0], np.cumsum(n_support)])
    values, columns, lengths = [], [], [0]
    for i in range(n_support.size):
        for j in range(i + 1, n_support.size):
            first, second = slice(ends[i], ends[i + 1]), slice(ends[j], ends[j + 1])
            values += [coef[j - 1, first], coef[i, second]]
            columns += [np.arange(ends[i], ends[i + 1]), np.arange(ends[j], ends[j + 1])]
            lengths.append(int(n_support[i] + n_support[j]))
    shape = (len(lengths) - 1, coef.shape[1])
    return sp.csr_array(
        (np.concatenate(values), np.concatenate(columns), np.cumsum(lengths)), shape=shape
    )


def predictor(
    function: Expansion, d: int, predicted: Callable[[Array], Any]
) -> Callable[[Any], Any]:
    """A function of one row of d numbers, or of an array of such, that does not look at them first.

    ``predicted`` makes predictions of outputs.
    """
    ready = function.for_few()

    def predict(rows: Any) -> Any:
        X = np.asarray(rows, np.float64)
        if X.ndim not in (1, 2) or X.shape[-1] != d:
            raise ValueError(
                f"Got an array of shape {X.shape}; expected one row of {d} features, or an "
                f"array of such rows, (n, {d})."
            )
        if X.ndim == 1:
            X = X[None, :]
            return predicted(function.of_few(X) if ready else function.decision_function(X))[0]
        return predicted(function.decision_function(X))

    return predict
