"""Rows that come in batches, from an iterable or a function: generated, or from anywhere else."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from slimsvm.sources.opened import Consecutive, Piece

Array = NDArray[Any]


class BatchReader:
    """Rows of batches; they are gone through once to count them, and must not change."""

    def __init__(self, source: Any, target: Any, weight: Any, features: Any) -> None:
        self._make, self.kind = _again(source), "batches"
        self.names: list[str] | None = None
        for what, of in (("target", target), ("weight", weight), ("features", features)):
            if of is not None:
                raise ValueError(
                    f"{what} is for files and arrays; batches have their own: X, (X, y) or (X, y, "
                    "weight)."
                )
        self._checks: list[tuple[int, int]] = []
        starts, first = [0], None
        for batch in self._make():
            X, y, weight = piece_of(batch, len(self._checks))
            about = X.shape[1], sp.issparse(X), y is None, weight is None
            names = names_of_batch(batch)
            if first is None:
                first, self.names = about, names
            elif about != first:
                raise ValueError(
                    f"Batch {len(self._checks)} has {_in_words(about)}, but the first one "
                    f"{_in_words(first)}."
                )
            refuse_names(f"Batch {len(self._checks)}", names, "the first one", self.names)
            self._checks.append((X.shape[0], checksum(X, y, weight)))
            starts.append(starts[-1] + X.shape[0])
        if first is None:
            raise ValueError("There are no batches.")
        self._starts, self.n_rows, self.n_features = np.array(starts), starts[-1], first[0]
        self.labelled = not first[2]
        # batches without rows are no blocks
        self.edges: list[int] | None = sorted(set(starts))
        self._pieces = Consecutive(self._begin, _cut, lambda of: of[0].shape[0])

    def place(self, row: int) -> str:
        """Batch and row."""
        k = int(np.searchsorted(self._starts, row, side="right")) - 1
        return f"batch {k}, row {row - int(self._starts[k]):,} (counted from 0)"

    def _begin(self, row: int) -> Iterator[tuple[int, Piece]]:
        for k, batch in enumerate(self._make()):
            piece = piece_of(batch, k)
            if k >= len(self._checks) or self._checks[k] != (piece[0].shape[0], checksum(*piece)):
                raise ValueError(
                    f"Batch {k} is not the one that came when the rows were opened: passes over "
                    "the rows must see the same ones, in the same order. If they are drawn at "
                    "random, begin with the same seed every time."
                )
            refuse_names(f"Batch {k}", names_of_batch(batch), "the first one", self.names)
            yield int(self._starts[k]), piece
        raise ValueError(
            f"There were {len(self._checks)} batches when the rows were opened, and now they end "
            "before: a function must return a new iterator of all batches every time."
        )

    def read(self, first: int, last: int) -> Piece:
        """X, y and weight of consecutive rows."""
        found = list(zip(*self._pieces.read(first, last), strict=True))
        if len(found[0]) == 1:
            return found[0][0], found[1][0], found[2][0]
        X = sp.vstack(found[0], format="csr") if sp.issparse(found[0][0]) else np.vstack(found[0])
        y, weight = (None if of[0] is None else np.concatenate(of) for of in found[1:])
        return X, y, weight


def _again(source: Any) -> Callable[[], Iterator[Any]]:
    """A function that begins anew every time."""
    if callable(source):

        def again() -> Iterator[Any]:
            found = source()
            if not hasattr(found, "__iter__"):
                raise ValueError(
                    "The function must return an iterator of batches (X, y); it returned "
                    f"{type(found).__name__}."
                )
            return iter(found)

        return again
    if not hasattr(source, "__iter__") or isinstance(source, Mapping):
        raise ValueError(
            f"Rows cannot be read from {type(source).__name__}; expected a path, an array, an "
            "iterable of batches (X, y), or a function that returns an iterator of them."
        )
    if iter(source) is source:
        raise ValueError(
            "An iterator can be gone through only once, and a fit has several passes. Pass a "
            "function that returns a new iterator."
        )
    return lambda: iter(source)


def piece_of(batch: Any, k: int) -> Piece:
    """X, y and weight of a batch, checked."""
    parts = parts_of_batch(batch)
    if not 1 <= len(parts) <= 3:
        raise ValueError(f"Batch {k} has {len(parts)} parts; expected X, (X, y) or (X, y, weight).")
    X, y, weight = (*parts, None, None)[:3]
    X = X.tocsr() if sp.issparse(X) else matrix_of(X, f"Batch {k}")
    if X.ndim != 2 or X.dtype.kind not in "fiub":
        raise ValueError(f"Batch {k}: X is {X.dtype} of shape {X.shape}; expected rows of numbers.")
    X = X if X.dtype in (np.float32, np.float64) else X.astype(np.float64)
    if not sp.issparse(X):
        X = np.ascontiguousarray(X)
    y = None if y is None else target_of(y, f"Batch {k}")
    weight = None if weight is None else np.asarray(weight, np.float64)
    for what, of in (("y", y), ("weight", weight)):
        if of is not None and of.shape != (X.shape[0],):
            raise ValueError(f"Batch {k}: {what} has shape {of.shape}, but X {X.shape[0]} rows.")
    return X, y, weight


def parts_of_batch(batch: Any) -> tuple[Any, ...]:
    """X, and perhaps y and weight."""
    return tuple(batch) if isinstance(batch, tuple | list) else (batch,)


def names_of_batch(batch: Any) -> list[str] | None:
    """The names of the columns of a frame, if all are words; as for frames in memory."""
    columns = getattr(next(iter(parts_of_batch(batch)), None), "columns", None)
    names = [] if columns is None else list(columns)
    return names if names and all(isinstance(of, str) for of in names) else None


def refuse_names(
    what: str, names: list[str] | None, first: str, expected: list[str] | None
) -> None:
    """Raise ValueError if frames have other columns than the first one, or in another order."""
    if names is not None and expected is not None and names != expected:
        own, other = next((a, b) for a, b in zip(names, expected, strict=True) if a != b)
        raise ValueError(
            f"{what} has the column {own!r} where {first} has {other!r}: all frames must have the "
            "same columns in the same order."
        )


def matrix_of(X: Any, where: str) -> Array:
    """A matrix of numbers from an array or a frame; what is missing in a frame is NaN."""
    names, types = getattr(X, "columns", None), getattr(X, "dtypes", None)
    if names is None or types is None or not hasattr(X, "iloc"):
        return np.asarray(X)
    for name, type_ in zip(names, types, strict=True):
        if getattr(type_, "kind", "O") not in "fiub":  # also of nullable types
            raise ValueError(
                f"{where}: column {name!r} is of type {type_}, not a number. Leave it out, or "
                "encode it first."
            )
    plain = all(isinstance(of, np.dtype) for of in types) and len(set(types)) <= 1
    single = all(str(of) in ("float32", "Float32") for of in types)
    if plain:
        return np.asarray(X)
    kind = np.float32 if single else np.float64
    return np.asarray(X.to_numpy(dtype=kind, na_value=np.nan))


def target_of(y: Any, where: str) -> Array:
    """Targets as an array of numbers or words; none may be missing."""
    values = np.asarray(y)
    if values.dtype.kind != "O":
        return values
    missing = [of is None or str(of) == "<NA>" or of != of for of in values.ravel().tolist()]
    if any(missing):
        raise ValueError(
            f"{where}, row {missing.index(True):,} (counted from 0): the target is missing. Input "
            "contains NaN; fill or drop such rows first."
        )
    kinds = {type(of) for of in values.ravel().tolist()}
    if kinds <= {int, bool} or kinds <= {int, float, bool}:  # of nullable types
        return np.asarray(values.tolist())
    return values.astype(str)


def checksum(X: Any, y: Array | None, weight: Array | None) -> int:
    """A number that other rows hardly have: sums of their bytes, in words of eight."""
    total = 0
    pieces = (X.data, X.indices, X.indptr) if sp.issparse(X) else (X,)
    for i, piece in enumerate((*pieces, y, weight)):
        if piece is None or not piece.size:
            continue
        raw = np.frombuffer(np.ascontiguousarray(piece).data.cast("B"), np.uint8)
        words = raw[: raw.size // 8 * 8].view(np.uint64)
        own = int(words.sum(dtype=np.uint64)) + int(raw[words.size * 8 :].sum(dtype=np.uint64))
        # the order counts, too: every second word once more
        own += 3 * int(words[::2].sum(dtype=np.uint64))
        total += (2 * i + 1) * own
    return total % 2**64


def _cut(piece: Piece, first: int, last: int) -> Piece:
    X, y, weight = piece
    if (first, last) == (0, X.shape[0]):
        return piece
    part = slice(first, last)
    return X[part], *(None if of is None else of[part] for of in (y, weight))


def _in_words(about: tuple[int, bool, bool, bool]) -> str:
    width, sparse, no_y, no_weight = about
    return (
        f"{width} {'sparse ' * sparse}features, {'no ' * no_y}labels and {'no ' * no_weight}weights"
    )
