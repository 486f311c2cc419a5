"""Numbers of a model in fewer bytes: float32, float16, or int8 with a scale for each row."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
FORMS = ("float32", "float16", "int8")
BLOCK = 1 << 18  # numbers that become codes at a time
LARGEST = 127  # of the codes of int8


@dataclass(frozen=True, eq=False, repr=False)
class Packed:
    """An array in few bytes: codes, times a scale for each row, plus a centre for each column.

    Parameters
    ----------
    codes : array
        float32, float16 or int8.
    scales, centre : arrays or None
        float32.

    Examples
    --------
    >>> found = packed(np.array([[1.0, -0.5], [0.0, 100.0]]), "int8")
    >>> found.codes.tolist(), found.unpacked().round(2).tolist(), found.nbytes
    ([[127, -64], [0, 127]], [[1.0, -0.5], [0.0, 100.0]], 12)
    """

    codes: Array
    scales: Array | None = None
    centre: Array | None = None

    def unpacked(self) -> Array:
        """The array, float32."""
        values = self.codes.astype(np.float32)
        if self.scales is not None:
            values = values * (self.scales[:, None] if values.ndim == 2 else self.scales)
        return np.asarray(values if self.centre is None else values + self.centre, np.float32)

    @property
    def nbytes(self) -> int:
        """Bytes of all its numbers."""
        arrays = (self.codes, self.scales, self.centre)
        return sum(int(a.nbytes) for a in arrays if a is not None)

    def check(self) -> None:
        """Raise ValueError unless types and shapes are those of :func:`packed`."""
        right = isinstance(self.codes, np.ndarray) and str(self.codes.dtype) in FORMS
        right = right and self.codes.ndim in (1, 2)
        n = self.codes.shape if right else (0, 0)
        for own, size in ((self.scales, n[0]), (self.centre, n[-1])):
            fits = own is None or (isinstance(own, np.ndarray) and own.shape in ((size,), (1,)))
            right = right and fits
        if not right:
            raise ValueError("packed numbers have codes, scales or a centre of a wrong form")


def packed(values: Array, form: str, centred: bool = False) -> Packed:
    """The array in this form; ``centred``: about the middle of its columns, for int8."""
    values = np.asarray(values)
    if form != "int8":
        with np.errstate(over="ignore"):
            codes = values.astype(form)
        if not np.isfinite(codes).all():
            raise ValueError(
                f"The model has numbers as large as {np.abs(values).max():.3g}, beyond {form}. "
                "Scale the features, or use 'float32' or 'int8'."
            )
        if values.any() and not codes.any():
            raise ValueError(
                f"The model has numbers of at most {np.abs(values).max():.3g}, which are zero in "
                f"{form}. Scale the features, or use 'int8'."
            )
        return Packed(codes)
    centre = None
    if centred and len(values):
        low, high = (
            np.asarray(end, np.float64) for end in (values.min(axis=0), values.max(axis=0))
        )
        centre = (0.5 * (low + high)).astype(np.float32)
    rows = np.atleast_2d(values)
    codes, scales = np.empty(rows.shape, np.int8), np.empty(rows.shape[0], np.float32)
    step = max(1, BLOCK // max(1, rows.shape[1]))
    for first in range(0, rows.shape[0], step):  # a large model is not copied whole
        part = slice(first, first + step)
        own = rows[part].astype(np.float64)
        if centre is not None:
            own -= centre
        size = np.abs(own).max(axis=1, initial=0.0)
        scales[part] = np.where(size > 0, size / LARGEST, 1.0)
        own /= scales[part, None]
        codes[part] = np.clip(np.rint(own, out=own), -LARGEST, LARGEST)
    return Packed(codes.reshape(values.shape), scales, centre)


def packed_model(own: dict[str, Array], form: str, mean: Array | None) -> dict[str, Packed]:
    """The arrays of a sparse model, by their names on it, in this form.

    ``mean`` of the rows, if known: what rounding of the metric moves all rows by, vectors are moved
    by, too. Intercepts, widths and a metric of factors stay float32 where the form is int8. Of few
    features, scales may take more than int8 saves: then it is float16, unless that has not the
    range.
    """
    if form == "int8":
        small = _packed_model(own, form, mean)
        with suppress(ValueError):
            other = _packed_model(own, "float16", mean)
            if _bytes(other) <= _bytes(small):
                return other
        return small
    return _packed_model(own, form, mean)


def _bytes(model: dict[str, Packed]) -> int:
    return sum(numbers.nbytes for numbers in model.values())


def _packed_model(own: dict[str, Array], form: str, mean: Array | None) -> dict[str, Packed]:
    exact = "float32" if form == "int8" else form
    forms = {name: form if name in ("basis_", "basis_coef_") else exact for name in own}
    basis, metric = np.asarray(own["basis_"], np.float64), own.get("metric_")
    if metric is not None:
        forms["metric_"] = form if metric.ndim == 2 else exact
        off = packed(metric, forms["metric_"]).unpacked().astype(np.float64) - metric
        if mean is None and metric.ndim == 1:
            mean = basis.mean(axis=0) / np.where(metric == 0, 1.0, metric)
        elif mean is None:
            mean = basis.mean(axis=0) @ np.linalg.pinv(metric.astype(np.float64))
        basis = basis + (mean * off if off.ndim == 1 else mean @ off)
    values = own | {"basis_": basis}
    return {
        name: packed(values[name], own, centred=name == "basis_") for name, own in forms.items()
    }
