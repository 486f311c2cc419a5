"""LIBSVM text: ``label index:value ...``, a row a line, indices from 1 on."""

from __future__ import annotations

import bz2
import gzip
import io
import zlib
from codecs import BOM_UTF8
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from slimsvm.sources.files import Stamp
from slimsvm.sources.opened import Piece

Array = NDArray[Any]
MARKED = 256  # rows from one known place in a file to the next
SHOWN = 200  # letters of an error: it may quote the file


class LibsvmReader:
    """Rows of LIBSVM files, which are gone through once to see how many there are."""

    edges, names, labelled = None, None, True

    def __init__(self, paths: list[str], target: Any, weight: Any, features: Any) -> None:
        for what, of in (("target", target), ("weight", weight), ("features", features)):
            if of is not None:
                raise ValueError(
                    f"{what} is for files with columns, but {paths[0]} is read as LIBSVM text, in "
                    "which labels come first and all else are features. What a file is is seen by "
                    "its ending: .parquet, .arrow, .feather, .csv, .tsv or .npy have columns."
                )
        self.kind = paths[0] if len(paths) == 1 else f"{len(paths)} files ({paths[0]}, ...)"
        self.paths, self._stamps = paths, [Stamp(path) for path in paths]
        found = [_marks(path) for path in paths]
        self._marks = [marks for marks, _, _ in found]
        self._starts = np.concatenate([[0], np.cumsum([n for _, n, _ in found])])
        self.n_rows, self.n_features = int(self._starts[-1]), max(width for *_, width in found)
        self._open: tuple[int, Any] | None = None

    def place(self, row: int) -> str:
        """File and row."""
        k = int(np.searchsorted(self._starts, row, side="right")) - 1
        return f"{self.paths[k]}, row {row - int(self._starts[k]):,} (counted from 0)"

    def read(self, first: int, last: int) -> Piece:
        """X (CSR) and y of consecutive rows."""
        found = []
        for k in range(len(self.paths)):
            start, end = int(self._starts[k]), int(self._starts[k + 1])
            if start < last and end > first:
                self._stamps[k].check()
                found.append(self._rows(k, max(first, start) - start, min(last, end) - start))
        X = sp.vstack([X for X, _ in found], format="csr") if len(found) > 1 else found[0][0]
        return X, np.concatenate([y for _, y in found]), None

    def _rows(self, k: int, first: int, last: int) -> tuple[Any, Array]:
        marks, path = self._marks[k], self.paths[k]
        begin, end = marks[first // MARKED], marks[min(len(marks) - 1, -(-last // MARKED))]
        X, y = _parsed(self._bytes(k, int(begin), int(end)), path, self.n_features)
        skip = first - first // MARKED * MARKED
        return X[skip : skip + last - first], y[skip : skip + last - first]

    def _bytes(self, k: int, begin: int, end: int) -> bytes:
        """A part of a file, which stays open: what is compressed is unpacked once a pass."""
        if self._open is None or self._open[0] != k or self._open[1].tell() > begin:
            self._close()
            self._open = k, text_file(self.paths[k])
        file = self._open[1]
        with unpacking(self.paths[k]):
            file.seek(begin)
            found = file.read(end - begin)
        if end == self._marks[k][-1]:
            self._close()
        return found

    def _close(self) -> None:
        if self._open is not None:
            self._open[1].close()
        self._open = None


def text_file(path: str) -> Any:
    """A file of text, perhaps compressed."""
    if path.lower().endswith(".gz"):
        return gzip.open(path, "rb")
    return bz2.open(path, "rb") if path.lower().endswith(".bz2") else open(path, "rb")


@contextmanager
def unpacking(path: str) -> Iterator[None]:
    """Errors of a file that is compressed, as a ValueError that names it."""
    try:
        yield
    except (EOFError, zlib.error, gzip.BadGzipFile, OSError) as error:
        raise ValueError(f"{path} cannot be read: {error}") from error


def _parsed(text: bytes, path: str, n_features: int | None = None) -> tuple[Any, Array]:
    from sklearn.datasets import load_svmlight_file

    try:
        X, y = load_svmlight_file(io.BytesIO(text), n_features=n_features, zero_based=False)
    except (ValueError, IndexError, OverflowError) as error:
        raise ValueError(f"{path} is not LIBSVM text: {str(error)[:SHOWN]}") from error
    return X, y


def _marks(path: str) -> tuple[Array, int, int]:
    """Where every MARKED-th row begins, and the end; number of rows; largest index."""
    places, n, width, at, lines = [0], 0, 0, 0, []
    with unpacking(path), text_file(path) as file:
        for line in file:
            at += len(line)
            if at == len(line) and line.startswith(BOM_UTF8):
                line = line[len(BOM_UTF8) :]
                places = [len(BOM_UTF8)]
            if line.split(b"#", 1)[0].strip():
                n += 1
                lines.append(line)
            if len(lines) == MARKED:
                width = max(width, _parsed(b"".join(lines), path)[0].shape[1])
                places.append(at)
                lines = []
    if lines:
        width = max(width, _parsed(b"".join(lines), path)[0].shape[1])
        places.append(at)
    return np.array(places), n, width
