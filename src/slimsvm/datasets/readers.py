"""From the files of the official sources to arrays, and the one layout in which arrays are kept.

Arrays of a data set are a dictionary with X_train, y_train, X_test, y_test, or X, y where the
source knows no split. A data set is kept as one ``.npz`` file under these keys; a CSR matrix X
becomes the four arrays X_data, X_indices, X_indptr, X_shape. X is float32 (or the bytes or short
integers of the source), indices start at 0, and classes are int8.
"""

from __future__ import annotations

import bz2
import gzip
import hashlib
import io
import re
import struct
import zlib
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np
import scipy.sparse as sp

Arrays = dict[str, Any]
UNREADABLE = (
    ValueError,
    OSError,
    EOFError,
    LookupError,
    ArithmeticError,
    struct.error,
    zlib.error,
)  # what a reader raises over wrong files
Reader = Callable[[Sequence[Path]], Arrays]

PARTS = ("X_train", "y_train", "X_test", "y_test", "X", "y")
SPARSE = ("data", "indices", "indptr", "shape")


# -- one layout ------------------------------------------------------------------------------------


def pack(arrays: Arrays) -> dict[str, np.ndarray]:
    """As plain arrays, the way they are kept."""
    packed: dict[str, np.ndarray] = {}
    for key, value in arrays.items():
        if sp.issparse(value):
            fields = (
                value.data,
                value.indices.astype(np.int32),
                value.indptr.astype(np.int64),
                np.array(value.shape, np.int64),
            )
            packed |= {f"{key}_{field}": array for field, array in zip(SPARSE, fields, strict=True)}
        else:
            packed[key] = np.asarray(value)
    return packed


def unpack(packed: Any) -> Arrays:
    """The inverse of ``pack``: from a dictionary of plain arrays or an open ``.npz`` file.

    What is no part of the layout stays as it is.
    """
    arrays: Arrays = {}
    for key in packed:
        name, _, field = key.rpartition("_")
        if name not in PARTS or field not in SPARSE:
            arrays[key] = packed[key]
        elif field == "data":
            data, indices, indptr, shape = (packed[f"{name}_{other}"] for other in SPARSE)
            arrays[name] = sp.csr_matrix(
                (data, indices, indptr), shape=tuple(int(side) for side in shape)
            )
    return arrays


def content_digest(arrays: Arrays) -> str:
    """SHA-256 of the rows and labels themselves, in hexadecimal digits.

    It is the same however the files were written or compressed.
    """
    packed = pack({key: arrays[key] for key in PARTS if key in arrays})
    total = hashlib.sha256()
    for key in sorted(packed):
        array = np.ascontiguousarray(packed[key])
        array = array.astype(array.dtype.newbyteorder("<"), copy=False)
        total.update(f"{key} {array.dtype.str} {array.shape} ".encode())
        total.update(array.data)
    return total.hexdigest()


# -- formats ---------------------------------------------------------------------------------------


def opened(path: Path) -> IO[bytes]:
    """Open for reading bytes, unpacked."""
    if path.suffix == ".bz2":
        return bz2.open(path)
    if path.suffix == ".gz":
        return gzip.open(path)  # type: ignore[return-value]
    return open(path, "rb")


def libsvm(n_features: int, *, dense: bool = True, regression: bool = False) -> Reader:
    """LIBSVM text, ``label index:value ...``: a training file and possibly a test file.

    For regression it is one file with all rows.
    """

    def read(paths: Sequence[Path]) -> Arrays:
        from sklearn.datasets import load_svmlight_file

        arrays: Arrays = {}
        for path, suffix in zip(paths, ("",) if regression else ("_train", "_test"), strict=False):
            with opened(path) as file:
                # the files of protein have blanks between index and value
                text = re.sub(rb":[ \t]+", b":", file.read())
            X, y = load_svmlight_file(
                io.BytesIO(text), n_features=n_features, zero_based=False, dtype=np.float32
            )
            X.eliminate_zeros()
            X.sort_indices()
            arrays[f"X{suffix}"] = X.toarray() if dense else X
            arrays[f"y{suffix}"] = y.astype(np.float32) if regression else whole(y)
        return arrays

    return read


def cadata(paths: Sequence[Path]) -> Arrays:
    """LIBSVM text of houses in California.

    The columns are longitude, latitude, age, rooms, bedrooms, people, households, income. StatLib's
    table begins with the income and ends with the longitude, which is the one column of negative
    numbers; this puts it first.
    """
    arrays = libsvm(8, regression=True)(paths)
    if arrays["X"][0, 0] > 0:
        arrays["X"] = np.ascontiguousarray(arrays["X"][:, [7, 6, 1, 2, 3, 4, 5, 0]])
    return arrays


def whole(y: Any) -> Any:
    """Labels as small integers; others are refused."""
    labels = np.asarray(y).astype(np.int8)
    if not np.array_equal(labels, y):
        raise ValueError("the labels are not small integers")
    return labels


def idx(paths: Sequence[Path]) -> Arrays:
    """The four files of MNIST: images and labels for training, images and labels for testing.

    Each is an array of bytes behind a short header.
    """
    arrays: Arrays = {}
    for path, key in zip(paths, PARTS, strict=False):
        with opened(path) as file:
            zero, kind, dimensions = struct.unpack(">HBB", file.read(4))
            if zero != 0 or kind != 8:
                raise ValueError("this is no idx file of bytes")
            shape = struct.unpack(f">{dimensions}I", file.read(4 * dimensions))
            array = np.frombuffer(file.read(), np.uint8).reshape(shape)
        arrays[key] = array.reshape(len(array), -1) if dimensions > 1 else array
    return arrays


def covtype(paths: Sequence[Path]) -> Arrays:
    """UCI's table of all rows, the class at the end of each; +1 is class 2, lodgepole pine."""
    with opened(paths[0]) as file:
        table = np.loadtxt(file, dtype=np.int16, delimiter=",", ndmin=2)
    return {"X": table[:, :-1].copy(), "y": np.where(table[:, -1] == 2, 1, -1).astype(np.int8)}


def statlog(paths: Sequence[Path]) -> Arrays:
    """Tables of integers, the class at the end of each row.

    Columns are scaled to [-1, 1] by their range in the training part.
    """
    train, test = (np.loadtxt(path, dtype=np.int64, ndmin=2) for path in paths)
    low, high = train[:, :-1].min(axis=0), train[:, :-1].max(axis=0)
    scaled = [
        (2 * (part[:, :-1] - low) / (high - low) - 1).astype(np.float32) for part in (train, test)
    ]
    return {
        "X_train": scaled[0],
        "y_train": whole(train[:, -1]),
        "X_test": scaled[1],
        "y_test": whole(test[:, -1]),
    }


def rcv1(paths: Sequence[Path]) -> Arrays:
    """Five training and five test files of documents with several topics each.

    Every document is taken once, and has label +1 for the topic CCAT. CCAT is the most frequent
    topic. Of equal documents the first one stays; one that is in both parts stays in the training
    part.
    """
    from sklearn.datasets import load_svmlight_file

    arrays: Arrays = {}
    seen: set[bytes] = set()
    ccat: float | None = None
    half = len(paths) // 2
    for part, files in (("train", paths[:half]), ("test", paths[half:])):
        blocks, topics = [], []
        for path in files:
            with opened(path) as file:
                X, labels = load_svmlight_file(
                    file, n_features=47_236, zero_based=False, multilabel=True, dtype=np.float32
                )
            blocks.append(X)
            topics += labels
        X = sp.vstack(blocks, format="csr")
        X.sort_indices()
        if ccat is None:
            ccat = Counter(topic for several in topics for topic in several).most_common(1)[0][0]
        first = [row for row in range(X.shape[0]) if _is_new(X, row, seen)]
        arrays[f"X_{part}"] = X[first]
        arrays[f"y_{part}"] = np.array([1 if ccat in topics[row] else -1 for row in first], np.int8)
    return arrays


def _is_new(X: Any, row: int, seen: set[bytes]) -> bool:
    """Whether a row was not seen yet; it is from now on."""
    inside = slice(X.indptr[row], X.indptr[row + 1])
    mark = hashlib.sha256(
        X.indices[inside].astype(np.int64).tobytes() + X.data[inside].tobytes()
    ).digest()
    if mark in seen:
        return False
    seen.add(mark)
    return True


# -- from what is kept to what is used -------------------------------------------------------------

COVTYPE_LOW = np.array([1859, 0, 0, 0, -173, 0, 0, 0, 0, 0], np.float32)
COVTYPE_HIGH = np.array([3858, 360, 66, 1397, 601, 7117, 254, 254, 254, 7173], np.float32)


def grey(arrays: Arrays) -> Arrays:
    """Bytes as float32 in [0, 1]."""
    return arrays | {
        key: arrays[key].reshape(len(arrays[key]), -1).astype(np.float32) / np.float32(255)
        for key in ("X_train", "X_test")
    }


def split_covtype(arrays: Arrays) -> Arrays:
    """A fifth of the rows, the same each time, for testing; numeric columns scaled to [0, 1]."""
    X, y = arrays["X"], arrays["y"]
    test = np.zeros(len(X), bool)
    test[np.random.RandomState(0).permutation(len(X))[: len(X) // 5]] = True
    split: Arrays = {}
    for part, rows in (("train", ~test), ("test", test)):
        block = X[rows].astype(np.float32)
        block[:, :10] = (block[:, :10] - COVTYPE_LOW) / (COVTYPE_HIGH - COVTYPE_LOW)
        split |= {f"X_{part}": block, f"y_{part}": y[rows]}
    return split
