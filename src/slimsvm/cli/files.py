"""Model files and other output of the command line: formats, standard streams, safe replacement."""

from __future__ import annotations

import errno
import io
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from numpy.typing import NDArray

from slimsvm.cli.source import standard_input
from slimsvm.persistence import (
    file_facts,
    load,
    load_libsvm,
    load_svmlight,
    save,
    save_libsvm,
    save_svmlight,
)
from slimsvm.persistence.atomic import replacing

WRITERS: dict[str, Callable[..., Any]] = {
    "slim": save,
    "libsvm": save_libsvm,
    "svmlight": save_svmlight,
}
READERS: dict[str, Callable[..., Any]] = {
    "slim": load,
    "libsvm": load_libsvm,
    "svmlight": load_svmlight,
}
BY_EXTENSION = {".slim": "slim", ".libsvm": "libsvm", ".model": "libsvm", ".svmlight": "svmlight"}
BEGINNINGS = {b"PK\x03\x04": "slim", b"svm_type ": "libsvm", b"SVM-light ": "svmlight"}


def format_by_name(path: str) -> str | None:
    """The format of a model file by its extension, and LIBSVM's for ``-``.

    It is None if the extension says nothing.

    Examples
    --------
    >>> from slimsvm.cli.files import format_by_name
    >>> format_by_name("digits.slim"), format_by_name("digits.model"), format_by_name("digits.zip")
    ('slim', 'libsvm', None)
    """
    return "libsvm" if path == "-" else BY_EXTENSION.get(Path(path).suffix.lower())


def format_by_content(beginning: bytes) -> str | None:
    """The format of a model file by its first bytes; None if they are of no known format."""
    return next((name for first, name in BEGINNINGS.items() if beginning.startswith(first)), None)


def looks_like_model(path: str) -> bool:
    """Whether a file that should hold data holds a model.

    An NPZ file is a zip archive like a model of ours, so names count too.
    """
    if path == "-" or not os.path.isfile(path):
        return False
    with open(path, "rb") as file:
        found = format_by_content(file.read(16))
    return found in ("libsvm", "svmlight") or (found == "slim" and format_by_name(path) == "slim")


@dataclass
class ModelFile:
    """A model of any format in a file or in standard input, which is read once."""

    path: str
    _content: bytes = field(default=b"", repr=False)

    def __post_init__(self) -> None:
        if self.path == "-":
            self._content = standard_input()

    @property
    def format(self) -> str:
        """By the first bytes; where these are unknown, by the extension.

        The reader of that format will then say what is wrong.
        """
        beginning = self._content[:16]
        if self.path != "-":
            with open(self.path, "rb") as file:
                beginning = file.read(16)
        return format_by_content(beginning) or format_by_name(self.path) or "slim"

    @property
    def n_bytes(self) -> int:
        """Its size."""
        return len(self._content) if self.path == "-" else os.path.getsize(self.path)

    def about(self) -> dict[str, Any]:
        """When it was written, with which versions, and what the user said; files of slimsvm."""
        if self.format != "slim":
            return {}
        facts = file_facts(io.BytesIO(self._content) if self.path == "-" else self.path)
        return {name: facts[name] for name in ("saved", "versions", "metadata") if facts[name]}

    def load(self, machine: str = "svc", n_features: int | None = None) -> Any:
        """The fitted model.

        Parameters
        ----------
        machine : {"svc", "nu-svc", "svr", "nu-svr"}
            What a model of SVM-light is, whose file does not say it.
        n_features : int, optional
            Number of features, for the files of LIBSVM and SVM-light, which only show those of the
            support vectors.
        """
        options: dict[str, Any] = {} if self.format == "slim" else {"n_features": n_features}
        if self.format == "svmlight":
            options["estimator"] = {
                "svc": "SVC",
                "nu-svc": "NuSVC",
                "svr": "SVR",
                "nu-svr": "NuSVR",
            }[machine]
        reader = READERS[self.format]
        if self.path != "-":
            return reader(self.path, **options)
        with TemporaryDirectory() as folder:
            copy = os.path.join(folder, "model")
            Path(copy).write_bytes(self._content)
            try:
                return reader(copy, **options)
            except ValueError as error:
                raise ValueError(str(error).replace(copy, "standard input")) from error


def write_model(estimator: Any, path: str, format: str | Callable[..., Any]) -> int:
    """Save a model to a file, a device or standard output; returns its size in bytes.

    ``format`` is the name of a format, or what writes a model to a path.
    """
    writer = WRITERS[format] if isinstance(format, str) else format
    if path != "-" and is_replaceable(path):
        writer(estimator, path)
        return os.path.getsize(path)
    with TemporaryDirectory() as folder:
        copy = os.path.join(folder, "model")
        writer(estimator, copy)
        content = Path(copy).read_bytes()
    write_bytes(path, [content])
    return len(content)


def write_bytes(path: str, parts: Iterable[bytes]) -> None:
    """Write to a file, in one piece or not at all, to a device, or to standard output."""
    try:
        if path == "-":
            if sys.stdout is None:
                raise OSError(errno.EBADF, "it is closed")
            sys.stdout.flush()
            sys.stdout.buffer.writelines(parts)
            sys.stdout.buffer.flush()
        elif is_replaceable(path):
            with replacing(path) as file:
                file.writelines(parts)
        else:
            with open(path, "wb") as file:
                file.writelines(parts)
    except OSError as error:
        # a full device names no file
        error.filename = error.filename or ("standard output" if path == "-" else path)
        raise


def as_lines(values: NDArray[Any]) -> Iterator[bytes]:
    """One line for each row; numbers with 17 digits, which is exact."""
    if values.dtype.kind not in "fiub":
        return (f"{value}\n".encode() for value in values.tolist())
    if values.ndim == 1:
        return (b"%.17g\n" % value for value in values.tolist())
    return (b" ".join([b"%.17g" % value for value in row]) + b"\n" for row in values.tolist())


def is_replaceable(path: str) -> bool:
    """Whether the path is an ordinary file, or none yet.

    Pipes and devices are written to as they are.
    """
    return os.path.isfile(path) or not os.path.exists(path) or os.path.isdir(path)


def check_writable(path: str) -> None:
    """Raise an OSError if a file cannot be written there: before the work, not after it."""
    if path == "-":
        return
    folder = os.path.dirname(os.path.realpath(path))
    if os.path.isdir(path):
        raise OSError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    if not os.path.isdir(folder):
        raise OSError(errno.ENOENT, "the folder for it does not exist", path)
    if not os.access(folder if is_replaceable(path) else path, os.W_OK):
        raise OSError(errno.EACCES, os.strerror(errno.EACCES), path)


def same_file(one: str, other: str) -> bool:
    """Whether both paths lead to the same ordinary file."""
    return (
        "-" not in (one, other)
        and os.path.isfile(one)
        and os.path.isfile(other)
        and os.path.samefile(one, other)
    )
