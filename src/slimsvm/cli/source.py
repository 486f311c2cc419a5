"""Where data for the command line comes from, what is asked of it, and what its columns are."""

from __future__ import annotations

import bz2
import codecs
import csv
import errno
import gzip
import io
import math
import sys
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

from numpy.typing import NDArray

Array = NDArray[Any]

# all others: LIBSVM text
BY_EXTENSION = {
    ".csv": "csv",
    ".tsv": "csv",
    ".npz": "npz",
    ".parquet": "parquet",
    ".pq": "parquet",
}
PACKED: dict[str, Any] = {".gz": gzip.open, ".bz2": bz2.open}


@dataclass
class Data:
    """Rows, and what is known of them: labels (numbers or text), and the names of the features.

    Rows of kernel values in LIBSVM's text have serial numbers, from 1: which column is their own.
    """

    X: Any
    y: Array | None = None
    names: list[str] | None = None
    serials: Array | None = None


@dataclass
class Request:
    """What the caller knows of the data, or wants of it.

    Attributes
    ----------
    labelled : bool or None
        Whether a column of CSV and Parquet holds the labels; None: if there is one column more than
        ``n_features``.
    label_column : str or None
        Name or index of that column; None: the last.
    n_features : int or None
        How many features there must be; None: as many as there are.
    any_width : bool
        ``n_features`` is not certain: text in LIBSVM's format may have more or fewer.
    names : sequence of str or None
        Names of the features in the right order, if the model knows them. Where the data has names
        too, columns are chosen by them.
    text_labels : bool
        Labels of CSV are taken as text even where all of them are numbers.
    precomputed : bool
        The features are kernel values: in LIBSVM text, index 0 holds a serial number.
    zero_based : bool
        The first column is that of index 0, whether a row of the LIBSVM text has it or none.
    """

    labelled: bool | None = True
    label_column: str | None = None
    n_features: int | None = None
    any_width: bool = False
    names: Sequence[str] | None = None
    text_labels: bool = False
    precomputed: bool = False
    zero_based: bool = False


@dataclass
class Source:
    """A file, or standard input for ``-``, that can be opened more than once."""

    path: str
    _content: bytes | None = field(default=None, repr=False)

    @property
    def name(self) -> str:
        """For messages."""
        return "standard input" if self.path == "-" else self.path

    @property
    def format(self) -> str:
        """By the extension; ``.gz`` and ``.bz2`` are looked through."""
        suffixes = [
            suffix.lower() for suffix in Path(self.path).suffixes if suffix.lower() not in PACKED
        ]
        return BY_EXTENSION.get(suffixes[-1] if suffixes else "", "libsvm")

    @contextmanager
    def open(self) -> Iterator[BinaryIO]:
        """The bytes, unpacked; damage to a packed file is a ValueError."""
        if self.path == "-":
            if self._content is None:
                self._content = standard_input()
            yield io.BytesIO(self._content)
            return
        try:
            with PACKED.get(Path(self.path).suffix.lower(), open)(self.path, "rb") as file:
                yield file
        except (EOFError, zlib.error, OSError) as error:
            # of the system; those of gzip and bzip2 have no number
            if isinstance(error, OSError) and error.errno is not None:
                raise
            raise ValueError(
                f"{self.name}: the packed file is damaged, or of another kind ({error})"
            ) from error

    @contextmanager
    def open_lines(self) -> Iterator[BinaryIO]:
        """The bytes of a text, behind its byte order mark if it has one.

        A pipe cannot be rewound, so we look before we read.
        """
        with self.open() as file:
            if hasattr(file, "peek"):
                begin = file.peek(3)[:3]
            else:
                begin = file.getbuffer()[:3]  # type: ignore[attr-defined]
            if begin == codecs.BOM_UTF8:
                file.read(3)
            yield file

    @contextmanager
    def open_text(self) -> Iterator[io.TextIOWrapper]:
        """The text, in UTF-8 with or without a byte order mark."""
        with self.open() as file, io.TextIOWrapper(file, encoding="utf-8-sig", newline="") as text:
            try:
                yield text
            except UnicodeDecodeError as error:
                raise ValueError(f"{self.name}: not text in UTF-8") from error
            except csv.Error as error:
                raise ValueError(f"{self.name}: {error}") from error

    def bad(self, line: int, what: str) -> NoReturn:
        """Refuse a line."""
        raise ValueError(f"{self.name}, line {line}: {what}")


def standard_input() -> bytes:
    """All of it."""
    if sys.stdin is None:
        raise OSError(errno.EBADF, "it is closed", "standard input")
    return sys.stdin.buffer.read()


def label_index(source: Source, header: Sequence[str], request: Request) -> int | None:
    """The index of the label, by ``label_column``, a name or an index; None if it is not given."""
    wanted, n_columns = request.label_column, len(header)
    if wanted is None:
        return None if request.labelled is False else n_columns - 1
    stripped = [cell.strip() for cell in header]
    if wanted in stripped:
        return stripped.index(wanted)
    if is_integer(wanted) and -n_columns <= int(wanted) < n_columns:
        return int(wanted) % n_columns
    raise ValueError(
        f"{source.name}: there is no column {wanted!r}; there are {n_columns} columns, counted "
        "from 0"
    )


def choose_columns(
    source: Source, n_columns: int, header: list[str] | None, request: Request
) -> tuple[list[int], int | None]:
    """The columns of the features, in the order the model wants them, and that of the label."""
    everything = list(range(n_columns))
    if request.names is not None and header is not None:  # by name
        missing = [name for name in request.names if name not in header]
        if missing:
            raise ValueError(
                f"{source.name}: there is no column {missing[0]!r}, which the model was trained "
                "with"
            )
        features = [header.index(name) for name in request.names]
        rest = [column for column in everything if column not in set(features)]
        label = (
            label_index(source, header, request)
            if request.label_column is not None
            else rest[0]
            if len(rest) == 1
            else None
        )
        return features, label
    labelled, n_features = request.labelled, request.n_features
    if labelled is None and n_features is not None:
        labelled = request.label_column is not None or n_columns == n_features + 1
        if n_columns - int(labelled) != n_features:
            raise ValueError(
                f"{source.name}: {n_columns} columns, but the model has {n_features} features"
            )
    label = label_index(source, header or [""] * n_columns, request) if labelled else None
    features = [column for column in everything if column != label]
    if not features:
        raise ValueError(
            f"{source.name}: "
            f"{'there are no features, only a label' if n_columns else 'the file is empty'}"
        )
    return features, label


def is_number(word: str | bytes) -> bool:
    """Whether ``float`` understands the word."""
    try:
        float(word)
    except ValueError:
        return False
    return True


def is_finite(word: str | bytes) -> bool:
    """Whether the word is a number other than NaN and infinity."""
    return is_number(word) and math.isfinite(float(word))


def is_integer(word: str | bytes) -> bool:
    """Whether ``int`` understands the word."""
    try:
        int(word)
    except ValueError:
        return False
    return True


def show(word: str | bytes) -> str:
    """A word of the file for a message: quoted, and not longer than a few characters."""
    text = word.decode("utf-8", "replace") if isinstance(word, bytes) else word
    return repr(text if len(text) <= 30 else text[:27] + "...")
