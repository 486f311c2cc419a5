"""Model files that are text: exact numbers, ``index:value`` pairs, errors that name the line."""

from __future__ import annotations

import math
import os
from array import array
from collections.abc import Iterator
from typing import Any, NoReturn, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

Array = NDArray[Any]


def written(value: float) -> str:
    """The shortest decimal that reads back as the same float64.

    Examples
    --------
    >>> from slimsvm.persistence.text import written
    >>> written(0.1), written(1.0), written(1 / 3)
    ('0.1', '1', '0.3333333333333333')
    """
    return repr(float(value)).removesuffix(".0")


def written_rows(X: Any, first: int = 1) -> Iterator[str]:
    """Each row as ``index:value index:value ...``, ascending, without zeros.

    ``first`` is the index of the first column.
    """
    if sp.issparse(X):
        rows = X.tocsr(copy=True).astype(np.float64)
        rows.sum_duplicates()  # and sorts
        for start, end in zip(rows.indptr[:-1].tolist(), rows.indptr[1:].tolist(), strict=True):
            yield _written_row(rows.indices[start:end] + first, rows.data[start:end])
    else:
        every = np.arange(first, X.shape[1] + first)
        for row in np.asarray(X, dtype=np.float64):
            yield _written_row(every, row)


def _written_row(indices: Array, values: Array) -> str:
    there = values != 0.0
    pairs = zip(indices[there].tolist(), values[there].tolist(), strict=True)
    return " ".join([f"{index}:{value!r}".removesuffix(".0") for index, value in pairs])


def require_finite(what: str, *values: Any) -> None:
    """Raise ValueError if a number is infinite or missing: the text formats have no word for it."""
    for each in values:
        if not np.isfinite(each.data if sp.issparse(each) else each).all():
            raise ValueError(
                f"The model has infinite or undefined numbers among its {what}; such a model "
                "cannot be written. Fit it again."
            )


class Lines:
    """The lines of a text file, one after the other, and errors that name file and line.

    Parameters
    ----------
    path : str or path-like
        The file; one that is not ASCII text, or whose last line has no end, is refused.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path, self.number = os.fspath(path), 0
        self._file = open(path, "rb")  # noqa: SIM115 (closed by __exit__)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: object) -> None:
        self._file.close()

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        line = self._file.readline()
        if not line and self.number:
            raise StopIteration
        self.number += 1
        if not line:
            self.fail("the file is empty")
        if not line.endswith(b"\n"):
            self.fail(
                "the file ends within this line, so it was cut short; if it is known to be whole, "
                "end it with a new line"
            )
        try:
            return line.decode("ascii")
        except UnicodeDecodeError:
            self.fail("there are bytes that are not text")

    def expect(self, what: str) -> str:
        """The next line; its absence is an error."""
        for line in self:
            return line
        self.number += 1
        self.fail(f"the file ends here, expected {what}")

    def fail(self, complaint: str) -> NoReturn:
        """Raise ValueError for the current line."""
        raise ValueError(f"{self.path}, line {self.number}: {complaint}.")

    def real(self, word: str, what: str) -> float:
        """A finite number."""
        try:
            value = float(word) if "_" not in word else math.nan  # Python would take 1_000
        except ValueError:
            value = math.nan
        if not math.isfinite(value):
            self.fail(f"{what} is {word!r}, expected a number")
        return value

    def whole(self, word: str, what: str, least: int = 1 - 2**31) -> int:
        """An integer of 32 bits, perhaps with a lower limit."""
        try:
            value = int(word) if "_" not in word else None
        except ValueError:
            value = None
        if value is None or not least <= value < 2**31:
            self.fail(
                f"{what} is {word[:40]!r}, expected an integer "
                f"{f'of at least {least}' if least >= 0 else 'of 32 bits'}"
            )
        return value


class RowReader:
    """Collects rows of ``index:value`` pairs as CSR.

    Parameters
    ----------
    lines : Lines
        Where errors are reported.
    first : int, default=1
        The index of the first column.
    """

    def __init__(self, lines: Lines, first: int = 1) -> None:
        self.lines, self.first = lines, first
        self._data, self._indices, self._ends = array("d"), array("q"), array("q", [0])

    def add(self, words: list[str]) -> None:
        """One more row; indices ascend."""
        try:
            pairs = [word.split(":") for word in words]
            indices = np.array([int(index) for index, _ in pairs], np.int64)
            values = np.array([float(value) for _, value in pairs], np.float64)
        except ValueError:
            odd = next(word for word in words if not _is_pair(word))
            self.lines.fail(f"{odd!r} is not of the form index:value")
        except OverflowError:
            self.lines.fail("a feature number is too large")
        if indices.size and (indices[0] < self.first or not np.all(indices[:-1] < indices[1:])):
            self.lines.fail(f"feature numbers must start at {self.first} and ascend")
        if not np.isfinite(values).all() or "_" in "".join(words):  # Python would take 1_000
            self.lines.fail("a value is not a finite number")
        self._data.frombytes(values.tobytes())
        self._indices.frombytes(indices.tobytes())
        self._ends.append(len(self._data))

    def csr(self, n_features: int | None, at_least: int = 0) -> sp.csr_matrix:
        """The rows.

        ``n_features`` may be more than the file shows, since trailing zeros leave no trace in it.
        """
        data = np.array(self._data, np.float64)
        indices = np.array(self._indices, np.int64) - self.first
        width = max(at_least, int(indices.max(initial=-1)) + 1)
        if n_features is not None and n_features < width:
            raise ValueError(
                f"n_features={n_features} is less than the {width} features of the model in "
                f"{self.lines.path}."
            )
        shape = (len(self._ends) - 1, width if n_features is None else int(n_features))
        small = np.int32 if max(data.size, *shape) < 2**31 else np.int64
        return sp.csr_matrix(
            (data, indices.astype(small), np.array(self._ends, small)), shape=shape
        )


def _is_pair(word: str) -> bool:
    index, colon, value = word.partition(":")
    try:
        return bool(colon) and isinstance(int(index), int) and isinstance(float(value), float)
    except ValueError:
        return False


def as_stored(rows: sp.csr_matrix, sparse: bool | None) -> Any:
    """The rows as CSR or as an array.

    They are an array if ``sparse`` is False, or None and at least a quarter of the values are
    given.
    """
    if sparse is None:
        sparse = rows.nnz < 0.25 * rows.shape[0] * rows.shape[1]
    return rows if sparse else rows.toarray()
