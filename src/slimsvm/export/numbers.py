"""The numbers of a description in the form that a program holds: float32, float64 or int8 codes."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slimsvm.export.description import Description
from slimsvm.quantization import Packed, packed

Array = NDArray[Any]
CODE_BYTES = 2500  # of a header in C, compiled by gcc -Os for x86-64: 0.5 to 2.4 kB were measured


@dataclass(frozen=True)
class Numbers:
    """Arrays by name, in the order in which they are written."""

    form: str
    arrays: dict[str, Array]

    @property
    def nbytes(self) -> int:
        """Of all of them."""
        return sum(int(a.nbytes) for a in self.arrays.values())


def numbers_of(d: Description, form: str) -> Numbers:
    """The arrays of a description; ``form`` is 'float64', 'float32' or 'int8'.

    int8: codes of the basis about a centre with a scale for each vector, of its coefficients, of a
    metric that is a matrix (a scale for each feature), and of linear weights (one for each output).
    Everything else, a number for each vector or feature, stays float32.

    Examples
    --------
    >>> from slimsvm import SVC
    >>> from slimsvm.export.description import described
    >>> from slimsvm.export.numbers import numbers_of
    >>> found = numbers_of(described(SVC(kernel="linear").fit([[0.0], [2.0]], [3, 5])), "int8")
    >>> found.arrays["coef"].tolist(), found.nbytes
    ([[127]], 9)
    """
    plain = "float64" if form == "float64" else "float32"
    arrays: dict[str, Array] = {}

    def add(name: str, values: Array | None, codes: bool = False) -> None:
        if values is None:
            return
        if not codes:
            arrays[name] = _rounded(values, plain)
            return
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            found: Packed = packed(values, "int8", centred=name == "basis" and centred)
        assert found.scales is not None
        _check(values, found.scales, "float32")
        arrays[name] = found.codes
        arrays[f"{name}_scale"] = found.scales
        if found.centre is not None:
            arrays["centre"] = found.centre

    small = form == "int8"
    centred = d.form in ("rbf", "laplacian")  # of others, only products with z are known
    add("shift", d.shift)
    add("metric", d.metric, small and d.metric is not None and d.metric.ndim == 2)
    if d.basis is None:
        add("coef", np.ascontiguousarray(d.coef.T), small)
    elif d.n_vectors:
        add("basis", d.basis, small)
        if d.widths is not None and centred:
            same = bool(np.all(d.widths == d.widths[0]))
            add("width", d.widths[:1] if same else d.widths)
        add("coef", d.coef, small)
    add("intercept", d.intercept)
    if d.n_support is not None and d.n_vectors:
        arrays["ends"] = np.cumsum(d.n_support).astype(np.int32)
    if d.probabilities is not None:
        for name, values in (("prob_a", d.probabilities.A), ("prob_b", d.probabilities.B)):
            if values.size:
                add(name, values)
    return Numbers(form, arrays)


def _rounded(values: Array, dtype: str) -> Array:
    with np.errstate(over="ignore"):
        found = np.asarray(values).astype(dtype)
    _check(values, found, dtype)
    return np.asarray(found)


def _check(values: Array, found: Array, dtype: str) -> None:
    """Raise ValueError where numbers have become infinite, or all of them zero."""
    advice = "Scale the features, for example with StandardScaler, and train again."
    largest = np.abs(values).max(initial=0.0)
    if not np.isfinite(found).all():
        raise ValueError(
            f"The model has numbers as large as {largest:.3g}, beyond {dtype}. {advice}"
        )
    if largest > 0 and not found.any():
        raise ValueError(
            f"The model has numbers of at most {largest:.3g}, which are zero in {dtype}. {advice}"
        )


def check_size(
    numbers: Numbers, max_bytes: int | None, code: int = CODE_BYTES, text: float = 1.0
) -> None:
    """Raise ValueError if the model takes more bytes than there are.

    ``text`` is the number of bytes that a byte of a number takes where it is written as text.
    """
    if max_bytes is not None and not isinstance(max_bytes, Real):
        raise TypeError(f"max_bytes={max_bytes!r} must be a number of bytes, or None.")
    n_bytes = int(numbers.nbytes * text)
    if max_bytes is not None and n_bytes + code > max_bytes:
        raise ValueError(
            f"The model takes {n_bytes:,} bytes and about {code:,} of code, more than "
            f"max_bytes={max_bytes:,}. Use dtype='int8', slimsvm.compress, or fit SparseSVC or "
            "SparseSVR with fewer vectors (max_bytes there counts numbers alone)."
        )
