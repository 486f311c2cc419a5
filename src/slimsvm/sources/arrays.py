"""Arrays in memory, memory maps and ``.npy`` files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from slimsvm.sources.batches import matrix_of, target_of
from slimsvm.sources.files import Stamp, files_of, is_files
from slimsvm.sources.opened import Piece, refuse_twice

Array = NDArray[Any]


class ArrayReader:
    """Consecutive rows of a matrix, a CSR matrix or a DataFrame."""

    edges = None

    def __init__(
        self, X: Any, target: Any, weight: Any, features: Any, kind: str = "an array"
    ) -> None:
        self.names: list[str] | None = None
        if hasattr(X, "column_names") and hasattr(X, "to_pandas"):  # a table of Arrow
            X = X.to_pandas()
        if hasattr(X, "columns") and not sp.issparse(X):
            X, target, weight, features = self._of_frame(X, target, weight, features)
        if sp.issparse(X):
            X = X.tocsr()
        elif X.dtype.kind not in "fiub":
            raise ValueError(f"X is an array of {X.dtype}; expected numbers.")
        if not X.shape[1]:
            raise ValueError(f"The array has no columns (its shape is {X.shape}).")
        self.columns = None if features is None else _indices(features, X.shape[1])
        self.X, self.kind = X, kind
        self._stamps: list[Stamp] = []
        self.n_rows = int(X.shape[0])
        self.n_features = int(X.shape[1] if self.columns is None else self.columns.size)
        if self.names is not None and self.columns is not None:
            self.names = [self.names[j] for j in self.columns]
        self.y, self.weight = (
            _of_rows(what, of, self.n_rows) for what, of in (("target", target), ("weight", weight))
        )
        self.labelled = self.y is not None

    def _of_frame(self, X: Any, target: Any, weight: Any, features: Any) -> Any:
        names = list(X.columns)  # words, numbers, or pairs of these

        def place(of: Any) -> int:
            found = [j for j, name in enumerate(names) if name == of]
            if len(found) != 1:
                many = "several columns of the name" if found else "no column"
                raise ValueError(f"The DataFrame has {many} {of!r}.")
            return found[0]

        if isinstance(features, str):
            features = [features]
        label, own = (of if np.ndim(of) == 0 else None for of in (target, weight))
        refuse_twice(label, own, [] if features is None else list(features))
        beside = [
            place(of) if np.ndim(of) == 0 and of is not None else None for of in (target, weight)
        ]
        y, w = (
            of if j is None else X[names[j]].to_numpy()
            for of, j in zip((target, weight), beside, strict=True)
        )
        if features is None:
            columns = [j for j in range(len(names)) if j not in beside]
        else:
            columns = [place(of) for of in features]
        if not columns:
            raise ValueError("The DataFrame has no columns that are features.")
        own = [names[j] for j in columns]
        # only words are names of features, as for frames in memory
        self.names = own if all(isinstance(of, str) for of in own) else None
        if hasattr(X, "iloc"):
            return matrix_of(X.iloc[:, columns], "The DataFrame"), y, w, None
        return X[own].to_numpy(), y, w, None

    def place(self, row: int) -> str:
        """The row."""
        return f"{self.kind}, row {row:,} (counted from 0)"

    def read(self, first: int, last: int) -> Piece:
        """X, y and weight of consecutive rows."""
        for stamp in self._stamps:
            stamp.check()
        X = self.X[first:last]
        if self.columns is not None:
            X = X[:, self.columns]
        if X.dtype not in (np.float32, np.float64):
            X = X.astype(np.float64)
        if not sp.issparse(X):
            X = np.ascontiguousarray(X)
        y, weight = (None if of is None else of[first:last] for of in (self.y, self.weight))
        return X, y, weight if weight is None else weight.astype(np.float64)


class MappedReader:
    """Several ``.npy`` files, one after the other, as memory maps."""

    edges = None

    def __init__(self, parts: list[ArrayReader], paths: list[str]) -> None:
        self.parts, self.paths, self.names = parts, paths, None
        first = parts[0]
        self.kind = paths[0] if len(paths) == 1 else f"{len(paths)} .npy files ({paths[0]}, ...)"
        self.n_features, self.labelled = first.n_features, first.labelled
        for part, path in zip(parts, paths, strict=True):
            own, other = (part.X.dtype, part.X.shape[1]), (first.X.dtype, first.X.shape[1])
            if own != other:
                raise ValueError(
                    f"{path} has {own[1]} columns of {own[0]}, but {paths[0]} {other[1]} of "
                    f"{other[0]}."
                )
        self._starts = np.concatenate([[0], np.cumsum([of.n_rows for of in parts])])
        self.n_rows = int(self._starts[-1])

    def place(self, row: int) -> str:
        """File and row."""
        k = int(np.searchsorted(self._starts, row, side="right")) - 1
        return self.parts[k].place(row - int(self._starts[k]))

    def read(self, first: int, last: int) -> Piece:
        """X, y and weight of consecutive rows."""
        found = []
        for k, part in enumerate(self.parts):
            start, end = int(self._starts[k]), int(self._starts[k + 1])
            if start < last and end > first:
                found.append(part.read(max(first, start) - start, min(last, end) - start))
        X, y, weight = zip(*found, strict=True)
        join = [None if of[0] is None else np.concatenate(of) for of in (X, y, weight)]
        return join[0], join[1], join[2]


def mapped_files(paths: list[str], target: Any, weight: Any, features: Any) -> MappedReader:
    """Rows of ``.npy`` files, with targets and weights in as many files, or in arrays."""
    Y, W = (_beside(paths, what, of) for what, of in (("target", target), ("weight", weight)))
    parts = []
    for path, y, w in zip(paths, Y, W, strict=True):
        X = _loaded(path)
        if X.ndim != 2:
            raise ValueError(f"{path} has {X.ndim} dimension(s); expected rows and columns.")
        part = ArrayReader(X, _opened(y), _opened(w), features, path)
        part._stamps = [Stamp(of) for of in (path, y, w) if isinstance(of, str)]
        parts.append(part)
    return MappedReader(parts, paths)


def _beside(paths: list[str], what: str, given: Any) -> Sequence[Any]:
    """Targets or weights for each of the files."""
    if given is None:
        return [None] * len(paths)
    if is_files(given):
        found = files_of(given)[1]
        if len(found) != len(paths):
            raise ValueError(
                f"{what}: {len(found)} files, but {len(paths)} of rows. Give one for each."
            )
        return found
    sizes = [_loaded(path).shape[0] for path in paths]
    values = np.asarray(given)
    if values.shape[:1] != (sum(sizes),):
        raise ValueError(f"{what} has shape {values.shape}, but there are {sum(sizes)} rows.")
    return np.split(values, np.cumsum(sizes)[:-1])


def _loaded(path: str) -> Array:
    try:
        return np.asanyarray(np.load(path, mmap_mode="r", allow_pickle=False))
    except (ValueError, OSError, EOFError) as error:
        raise ValueError(f"{path} cannot be read as an array: {error}") from error


def _opened(given: Any) -> Any:
    return _loaded(given) if isinstance(given, str) else given


def _indices(features: Any, n_columns: int) -> Array:
    found = np.asarray(features)
    if found.dtype.kind not in "iu" or found.ndim != 1 or not found.size:
        raise ValueError(f"features={features!r}: the columns of an array go by their numbers.")
    if found.min() < -n_columns or found.max() >= n_columns:
        raise ValueError(f"features={features!r}: there are only {n_columns} columns.")
    return found % n_columns


def _of_rows(what: str, given: Any, n: int) -> Array | None:
    if given is None:
        return None
    if isinstance(given, str):
        raise ValueError(f"{what}={given!r}: the columns of an array have no names; pass an array.")
    values = given if isinstance(given, np.memmap) else np.asarray(given)
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.ndim != 1 or values.shape[0] != n:
        raise ValueError(f"{what} has shape {values.shape}, but there are {n} rows.")
    return target_of(values, what) if values.dtype.kind == "O" else values
