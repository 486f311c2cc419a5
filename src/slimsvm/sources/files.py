"""Which files a source is, and whether they are still what they were."""

from __future__ import annotations

import errno
import glob
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

KINDS = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
    ".csv": "csv",
    ".tsv": "csv",
    ".npy": "npy",
    ".libsvm": "libsvm",
    ".svmlight": "libsvm",
    ".svm": "libsvm",
    ".txt": "libsvm",
    ".dat": "libsvm",
}
COMPRESSED = (".gz", ".bz2")  # of text
# what surely is no LIBSVM text, whose files often have no extension that says so
OTHERS = (
    *(".h5", ".hdf5", ".hdf", ".npz", ".mat", ".pkl", ".joblib", ".orc", ".avro", ".json"),
    *(".jsonl", ".xlsx", ".xls", ".ods", ".db", ".sqlite", ".zip", ".tar", ".tgz", ".zst", ".xz"),
)
IN_WORDS = {
    "parquet": "Parquet",
    "arrow": "Arrow",
    "csv": "CSV",
    "npy": "NumPy",
    "libsvm": "LIBSVM",
}


def is_files(source: Any) -> bool:
    """Whether a source is a path, or a list of them."""
    if isinstance(source, str | os.PathLike):
        return True
    return (
        isinstance(source, Sequence)
        and len(source) > 0
        and all(isinstance(of, str | os.PathLike) for of in source)
    )


def files_of(source: Any) -> tuple[str, list[str]]:
    """The kind of the files, and their paths, in the order of their names."""
    given = [source] if isinstance(source, str | os.PathLike) else list(source)
    paths = [path for of in given for path in _expanded(os.fspath(of))]
    for path in paths:
        if _extension(path) in OTHERS:
            raise ValueError(
                f"{path}: {_extension(path)} files are not read. Write a Parquet, Arrow, CSV, .npy "
                "or LIBSVM file of it; or pass slimsvm.open_rows an array, or a function that "
                "returns an iterator of batches (X, y)."
            )
    kinds = {path: kind_of(path) for path in paths}
    first = kinds[paths[0]]
    for path, kind in kinds.items():
        if kind != first:
            raise ValueError(
                f"{path} is read as {IN_WORDS[kind]}, but {paths[0]} as {IN_WORDS[first]}: the "
                "files of one source must be of one kind. Name those that are meant, for example "
                "by a glob such as 'data/*.parquet'."
            )
    return first, paths


def kind_of(path: str) -> str:
    """By the extension; without one that is known, LIBSVM text.

    Examples
    --------
    >>> kind_of("rows.parquet"), kind_of("rows.csv.gz"), kind_of("a9a")
    ('parquet', 'csv', 'libsvm')
    """
    return KINDS.get(_extension(path), "libsvm")


def _extension(path: str) -> str:
    """What a file is by its name; of one that is compressed, what is inside."""
    name = Path(path)
    own = name.suffix.lower()
    if own not in COMPRESSED:
        return own
    inside = Path(name.stem).suffix.lower()
    if KINDS.get(inside, "libsvm") not in ("csv", "libsvm"):
        raise ValueError(
            f"{path} is a {own} file of {IN_WORDS[KINDS[inside]]}, which is compressed inside: "
            "unpack it first."
        )
    return inside


def _expanded(path: str) -> list[str]:
    """A file, those of a folder, or those that a pattern matches; ~ is the home folder."""
    if path.startswith("~") and not os.path.exists(path):
        path = os.path.expanduser(path)
    if "://" in path and not os.path.exists(path):
        raise ValueError(
            f"{path} is an address, and files of this computer are read. Download it, or read it "
            "with Dask (dask.dataframe.read_parquet) and pass its frames to fit."
        )
    if os.path.isdir(path):
        inside = sorted(str(of) for of in Path(path).rglob("*") if of.is_file())
        found = [of for of in inside if _extension(of) in KINDS and not _hidden(of, path)]
        if not found:
            raise ValueError(
                f"The folder {path} has no files that end in {', '.join(sorted(KINDS))}."
            )
        return found
    if os.path.exists(path):
        if not os.path.isfile(path):
            raise ValueError(
                f"{path} is no file but a pipe or a device, which cannot be read again and again: "
                "write its content into a file."
            )
        return [path]
    if glob.has_magic(path):
        found = sorted(of for of in glob.glob(path, recursive=True) if os.path.isfile(of))
        if not found:
            raise ValueError(f"No file matches {path!r} (in {os.getcwd()}).")
        return found
    raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)


def _hidden(path: str, folder: str) -> bool:
    parts = Path(path).relative_to(folder).parts
    return any(part.startswith((".", "_")) for part in parts)


class Stamp:
    """Size and time of a file when it was opened."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.known = self._now()

    def _now(self) -> tuple[int, int]:
        about = os.stat(self.path)
        return about.st_size, about.st_mtime_ns

    def check(self) -> None:
        """Raise ValueError if it is not the file that was opened."""
        try:
            now = self._now()
        except OSError as error:
            raise ValueError(
                f"{self.path} can no longer be read ({error.strerror}): it was there when it was "
                "opened. Put it back, and fit again."
            ) from error
        if now != self.known:
            raise ValueError(
                f"{self.path} has changed since it was opened ({self.known[0]:,} bytes then, "
                f"{now[0]:,} now): passes over the rows must see the same ones. Open it again once "
                "nobody writes to it."
            )
