"""What similarity is: the kernels, as small immutable objects.

A kernel never sees where the data lives. A *dot-product kernel* turns inner products into kernel
values, in place, and that is all it writes (:meth:`Kernel.form` says how); products, tiles and
threads belong to :mod:`slimsvm.tiles`. The others evaluate a block by themselves.

Symbols: x_sq, z_sq squared norms of the rows on either side; gamma, coef0, degree as in
scikit-learn and LIBSVM.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from slimsvm.compiled import compiled
from slimsvm.forms import EXPONENTIAL, LINEAR, POWER, TANH, exp_rows, finish, l1_distances
from slimsvm.threads import single_threaded_blas

Array = NDArray[Any]
Gamma = float | str


@dataclass(frozen=True)
class Kernel:
    """A symmetric similarity k(x, z).

    All but the sigmoid are inner products of feature vectors. Subclasses define either :meth:`form`
    (``uses_dots`` is True) or :meth:`block`.
    """

    name: ClassVar[str] = ""
    uses_dots: ClassVar[bool] = True  # values follow from inner products (and squared norms)
    shift_invariant: ClassVar[bool] = False  # k(x + c, z + c) = k(x, z): data may be centred
    params: ClassVar[tuple[str, ...]] = ()  # which of gamma, degree, coef0 it has

    @property
    def positive(self) -> bool:
        """Whether it is known to be an inner product of feature vectors.

        Values are then bounded by norms.
        """
        return True

    def resolve(self, rows: Any) -> Self:
        """The same kernel with 'scale' and 'auto' replaced by the numbers for these rows.

        The rows are a :class:`slimsvm.rows.Rows`.
        """
        gamma = getattr(self, "gamma", None)
        if not isinstance(gamma, str):
            return self
        return replace(self, gamma=gamma_value(gamma, rows))  # type: ignore[call-arg]

    def form(self) -> tuple[int, float, float, int]:
        """What becomes of an inner product: the first four arguments of :func:`finish`."""
        raise TypeError(f"{type(self).__name__} is not a function of inner products.")

    def from_dots(self, dots: Array, x_sq: Array, z_sq: Array) -> None:
        """Turn inner products (rows x columns) into kernel values, in place."""
        finish(*self.form(), dots, x_sq, z_sq)

    def block(self, X: Array, Z: Array, dtype: Any) -> Array:
        """k(X, Z) for two small dense blocks."""
        dots = np.ascontiguousarray(_densified(X @ Z.T), dtype=dtype)
        self.from_dots(dots, squared_norms(X).astype(dtype), squared_norms(Z).astype(dtype))
        return dots

    def diag(self, X: Any) -> Array:
        """k(x, x) for every row."""
        return self.diag_from_sq(squared_norms(X))

    def diag_from_sq(self, x_sq: Array) -> Array:
        """k(x, x) where |x|^2 is known."""
        raise TypeError(f"{type(self).__name__} does not know its diagonal from norms alone.")

    def error(self, max_sq: float, n_features: int, eps: float) -> float:
        """A bound on the error of a value computed with unit roundoff ``eps``.

        It is relative to the largest value and holds for rows of norm^2 <= max_sq. A dot product of
        d terms summed blockwise is off by about sqrt(d) eps |x||z|; each kernel says what becomes
        of that.
        """
        return float("inf")

    @property
    def differentiable(self) -> bool:
        """Whether :meth:`slope` is known, and basis vectors can be moved."""
        return False

    def slope(self) -> tuple[Kernel, float, bool]:
        """The derivative of k(x, b) in b: the inner kernel, the factor, and whether it is centred.

        It is factor * inner(x, b) * (x - b) if centred, else factor * inner(x, b) * x.
        """
        raise TypeError(f"{type(self).__name__} has no derivative that is known here.")

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters by name."""
        return {f.name: getattr(self, f.name) for f in fields(self)}

    def __call__(self, X: Any, Z: Any = None) -> Array:
        """k(X, Z) in float64, without tiles: for small blocks and as the reference of the tests.

        Examples
        --------
        >>> from slimsvm.kernels import RBF
        >>> RBF(gamma=0.5)([[0.0], [2.0]])
        array([[1.        , 0.13533528],
               [0.13533528, 1.        ]])
        """
        X = _as_float64(X)
        return self.block(X, X if Z is None else _as_float64(Z), np.float64)


def _dot_error(n_features: int, eps: float) -> float:
    # measured on normal data: about half of this
    return float(2.0 * eps * (1.0 + np.sqrt(n_features) / 4.0))


@dataclass(frozen=True)
class Linear(Kernel):
    """k(x, z) = x.z"""

    name: ClassVar[str] = "linear"

    def form(self) -> tuple[int, float, float, int]:
        """The products are the values."""
        return LINEAR, 1.0, 0.0, 1

    def diag_from_sq(self, x_sq: Array) -> Array:
        """|x|^2"""
        return x_sq

    @property
    def differentiable(self) -> bool:
        """Yes."""
        return True

    def slope(self) -> tuple[Kernel, float, bool]:
        """x"""
        return Polynomial(1.0, 0, 0.0), 1.0, False

    def error(self, max_sq: float, n_features: int, eps: float) -> float:
        """Relative to max |x|^2."""
        return _dot_error(n_features, eps)


@dataclass(frozen=True)
class RBF(Kernel):
    """k(x, z) = exp(-gamma |x - z|^2)"""

    name: ClassVar[str] = "rbf"
    shift_invariant: ClassVar[bool] = True
    params: ClassVar[tuple[str, ...]] = ("gamma",)
    gamma: Gamma = "scale"

    def form(self) -> tuple[int, float, float, int]:
        """exp(2 gamma x.z - gamma |x|^2 - gamma |z|^2)"""
        return EXPONENTIAL, number(self, "gamma"), 0.0, 1

    def diag_from_sq(self, x_sq: Array) -> Array:
        """Ones."""
        return np.ones_like(x_sq)

    @property
    def differentiable(self) -> bool:
        """Yes."""
        return True

    def slope(self) -> tuple[Kernel, float, bool]:
        """2 gamma k(x, b) (x - b)"""
        return self, 2.0 * number(self, "gamma"), True

    def error(self, max_sq: float, n_features: int, eps: float) -> float:
        """The error of the exponent is the relative error of the value.

        The exponent is a difference of numbers of size gamma |x|^2.
        """
        return 4.0 * number(self, "gamma") * max_sq * _dot_error(n_features, eps) + 4.0 * eps


@dataclass(frozen=True)
class Polynomial(Kernel):
    """k(x, z) = (gamma x.z + coef0)^degree"""

    name: ClassVar[str] = "poly"
    params: ClassVar[tuple[str, ...]] = ("gamma", "degree", "coef0")
    gamma: Gamma = "scale"
    degree: int = 3
    coef0: float = 0.0

    def form(self) -> tuple[int, float, float, int]:
        """(gamma x.z + coef0)^degree"""
        return POWER, number(self, "gamma"), float(self.coef0), int(self.degree)

    def diag_from_sq(self, x_sq: Array) -> Array:
        """(gamma |x|^2 + coef0)^degree"""
        return np.asarray((number(self, "gamma") * x_sq + self.coef0) ** int(self.degree))

    @property
    def differentiable(self) -> bool:
        """Yes, if it is known to be an inner product.

        Otherwise the norm of a function has no meaning, and neither has the problem.
        """
        return self.positive and self.degree >= 1

    def slope(self) -> tuple[Kernel, float, bool]:
        """degree gamma (gamma x.b + coef0)^(degree - 1) x"""
        gamma = number(self, "gamma")
        return Polynomial(gamma, int(self.degree) - 1, self.coef0), int(self.degree) * gamma, False

    def error(self, max_sq: float, n_features: int, eps: float) -> float:
        """A power multiplies the relative error of its base by the degree."""
        return max(1, int(self.degree)) * (_dot_error(n_features, eps) + eps)

    @property
    def positive(self) -> bool:
        """With a constant that is not negative."""
        return self.coef0 >= 0


@dataclass(frozen=True)
class Sigmoid(Kernel):
    """k(x, z) = tanh(gamma x.z + coef0); not positive semi-definite in general."""

    positive: ClassVar[bool] = False

    name: ClassVar[str] = "sigmoid"
    params: ClassVar[tuple[str, ...]] = ("gamma", "coef0")
    gamma: Gamma = "scale"
    coef0: float = 0.0

    def form(self) -> tuple[int, float, float, int]:
        """tanh(gamma x.z + coef0)"""
        return TANH, number(self, "gamma"), float(self.coef0), 1

    def diag_from_sq(self, x_sq: Array) -> Array:
        """tanh(gamma |x|^2 + coef0)"""
        return np.tanh(number(self, "gamma") * x_sq + self.coef0)

    def error(self, max_sq: float, n_features: int, eps: float) -> float:
        """tanh has slope at most one."""
        return number(self, "gamma") * max_sq * _dot_error(n_features, eps) + 2.0 * eps


@dataclass(frozen=True)
class Laplacian(Kernel):
    """k(x, z) = exp(-gamma |x - z|_1)"""

    name: ClassVar[str] = "laplacian"
    uses_dots: ClassVar[bool] = False
    shift_invariant: ClassVar[bool] = True
    params: ClassVar[tuple[str, ...]] = ("gamma",)
    gamma: Gamma = "scale"

    def block(self, X: Array, Z: Array, dtype: Any) -> Array:
        """exp(-gamma |x - z|_1)"""
        X, Z = _densified(X).astype(dtype, copy=False), _densified(Z).astype(dtype, copy=False)
        out = np.empty((X.shape[0], Z.shape[0]), dtype)
        l1_distances(X, np.ascontiguousarray(Z.T), out)
        exp_rows(out, -number(self, "gamma"), 0.0, np.zeros(len(X), dtype), np.zeros(len(Z), dtype))
        return out

    def diag_from_sq(self, x_sq: Array) -> Array:
        """Ones."""
        return np.ones_like(x_sq)

    def error(self, max_sq: float, n_features: int, eps: float) -> float:
        """|x - z|_1 <= 2 sqrt(d) max |x|, summed directly, without cancellation."""
        return float(
            number(self, "gamma") * 2.0 * np.sqrt(n_features * max_sq) * _dot_error(n_features, eps)
            + 4.0 * eps
        )


@dataclass(frozen=True)
class FromCallable(Kernel):
    """A kernel given as a function K(X_block, B) that returns the matrix of values."""

    positive: ClassVar[bool] = False

    name: ClassVar[str] = "callable"
    uses_dots: ClassVar[bool] = False
    function: Callable[[Any, Any], Any] = None  # type: ignore[assignment]

    def block(self, X: Any, Z: Any, dtype: Any) -> Array:
        """What the function says, checked for its shape."""
        values = np.asarray(_densified(self.function(X, Z)))
        expected = len_of(X), len_of(Z)
        if values.shape != expected:
            raise ValueError(
                f"The kernel function returned an array of shape {values.shape} for blocks of "
                f"{expected[0]} and {expected[1]} rows; expected {expected}."
            )
        return values.astype(dtype, copy=False)

    def diag(self, X: Any) -> Array:
        """k(x, x) by blocks of 64 rows: a callable knows nothing cheaper."""
        return np.concatenate(
            [
                np.diag(self.block(X[i : i + 64], X[i : i + 64], np.float64))
                for i in range(0, X.shape[0], 64)
            ]
        )


@dataclass(frozen=True)
class Precomputed(Kernel):
    """The rows are kernel values already: X is (n, n) at fit, and (n, n_fit) at predict."""

    positive: ClassVar[bool] = False

    name: ClassVar[str] = "precomputed"
    uses_dots: ClassVar[bool] = False


KERNELS: dict[str, type[Kernel]] = {
    kernel.name: kernel for kernel in (Linear, RBF, Polynomial, Sigmoid, Laplacian, Precomputed)
}


def make_kernel(
    kernel: Any, *, gamma: Gamma = "scale", degree: int = 3, coef0: float = 0.0
) -> Kernel:
    """The Kernel object for a name, a callable or a Kernel.

    Examples
    --------
    >>> from slimsvm.kernels import make_kernel
    >>> make_kernel("poly", gamma=2.0, degree=2)
    Polynomial(gamma=2.0, degree=2, coef0=0.0)
    """
    given = {"gamma": gamma, "degree": degree, "coef0": coef0}
    if isinstance(kernel, Kernel):
        defaults = {"gamma": "scale", "degree": 3, "coef0": 0.0}
        beside = [name for name, value in given.items() if value != defaults[name]]
        if beside:
            raise ValueError(
                f"kernel is an object, {kernel!r}, and {', '.join(beside)} was given beside it; "
                "put the value into the object."
            )
        return kernel
    if callable(kernel):
        return FromCallable(kernel)
    if not isinstance(kernel, str) or kernel not in KERNELS:
        raise ValueError(
            f"Unknown kernel {kernel!r}; expected one of {sorted(KERNELS)}, a callable K(X, B), "
            "or a slimsvm.kernels.Kernel."
        )
    kind = KERNELS[kernel]
    return kind(**{name: given[name] for name in kind.params})


def gamma_value(gamma: Gamma, rows: Any) -> float:
    """The number that gamma stands for.

    'scale' is 1 / (n_features * variance of X), 'auto' is 1 / n_features, and a number is itself.
    The variance is weighted, so that an integer weight acts as a repeated row does.

    Examples
    --------
    >>> import numpy as np
    >>> from slimsvm.kernels import gamma_value
    >>> from slimsvm.rows import MemoryRows
    >>> gamma_value("scale", MemoryRows(np.array([[0.0, 2.0], [2.0, 0.0]])))
    0.5
    """
    if not isinstance(gamma, str):
        return float(gamma)
    n_features = max(1, rows.n_features)
    if gamma == "auto":
        return float(1.0 / n_features)
    if gamma != "scale":
        raise ValueError(
            f"gamma={gamma!r} is not known; expected 'scale', 'auto', or a number >= 0."
        )

    weight = float(rows.sum(_total_weight))
    if not weight > 0.0:  # a stream may begin with rows that count for nothing
        raise ValueError(
            "gamma='scale' needs the variance of X, but all rows here have sample weight zero. "
            "Give rows with a positive weight first, or a number for gamma."
        )
    mean = float(rows.sum(_total_of_entries)) / (weight * n_features)
    variance = float(rows.sum(_total_of_squares, mean)) / (weight * n_features)
    value = float(1.0 / (n_features * variance) if variance > 0 else 1.0)
    if not np.isfinite(value):
        raise ValueError(
            f"The variance of X, {variance:.2g}, is too small for gamma={gamma!r}. Scale the "
            "features, or give a number."
        )
    return value


def _total_weight(block: Any) -> float:
    return float(block.n if block.weight is None else np.sum(block.weight))


def _total_of_entries(block: Any) -> float:
    """The sum of all entries, weighted."""
    return _weighted(block, _row_sums)


def _total_of_squares(block: Any, mean: float) -> float:
    """The sum of the squares of all entries without the mean, weighted."""
    return _weighted(block, lambda X: squared_norms(X, shift=mean))


def _weighted(block: Any, of_rows: Callable[[Any], Array]) -> float:
    """The weighted sum of a number for each row; chunks are added in order."""
    total = 0.0
    with single_threaded_blas():  # several threads would add up in another order
        for X, _, weight in block.chunks():
            values = of_rows(X)
            total += float(values.sum() if weight is None else weight @ values)
    return total


def number(kernel: Kernel, name: str) -> float:
    """A parameter as a number; 'scale' and 'auto' must have been resolved."""
    value = getattr(kernel, name)
    if isinstance(value, str):
        raise ValueError(
            f"{kernel!r} still has {name}={value!r}; call kernel.resolve(X) first, it needs the "
            "data."
        )
    return float(value)


def squared_norms(X: Any, shift: float = 0.0) -> Array:
    """|x - shift|^2 for every row, summed in float64 whatever the type of X, by blocks of rows."""
    out = np.empty(X.shape[0])
    step = max(1, (1 << 20) // max(1, X.shape[1]))
    if sp.issparse(X):
        # the square of an entry that is written in parts is not the sum of their squares
        if not X.has_canonical_format:
            X = X.copy()
            X.sum_duplicates()
        data = X.data.astype(np.float64)
        # what is not finite is seen by those who ask, as for dense rows
        with np.errstate(over="ignore", invalid="ignore"):
            filled = _sums_by_row((data - shift) ** 2, X.indptr)
            return np.asarray(filled + shift * shift * (X.shape[1] - np.diff(X.indptr)))
    for start in range(0, X.shape[0], step):
        block = np.asarray(X[start : start + step], dtype=np.float64) - shift
        np.einsum("ij,ij->i", block, block, out=out[start : start + step])
    return out


def _row_sums(X: Any) -> Array:
    if sp.issparse(X):
        return _sums_by_row(X.data.astype(np.float64), X.indptr)
    return np.asarray(X.sum(axis=1, dtype=np.float64))


@compiled
def _sums_by_row(data: Array, indptr: Array) -> Array:
    """Sums of consecutive pieces of data; an empty row gives zero."""
    out = np.zeros(indptr.size - 1)
    for i in range(out.size):
        for k in range(indptr[i], indptr[i + 1]):
            out[i] += data[k]
    return out


def len_of(X: Any) -> int:
    """Number of rows, of whatever kind."""
    return int(X.shape[0] if hasattr(X, "shape") else len(X))


def _as_float64(X: Any) -> Any:
    return (
        X.astype(np.float64) if sp.issparse(X) else np.atleast_2d(np.asarray(X, dtype=np.float64))
    )


def _densified(X: Any) -> Array:
    return np.asarray(X.toarray()) if sp.issparse(X) else X
