"""Reading data for the command line: LIBSVM and SVM-light text, CSV, NPZ and Parquet."""

from __future__ import annotations

import io
import struct
import tokenize
import zlib
from typing import Any
from zipfile import BadZipFile

import numpy as np
import scipy.sparse as sp

from slimsvm.cli.source import Data, Request, Source, choose_columns
from slimsvm.cli.text import read_csv, read_libsvm

__all__ = ["FORMATS", "Data", "Request", "in_serial_order", "read", "widen"]


def read(path: str, format: str | None = None, request: Request | None = None) -> Data:
    r"""Read rows and labels from a file.

    Parameters
    ----------
    path : str
        A file, or ``-`` for standard input.
    format : {"libsvm", "csv", "npz", "parquet"}, optional
        Default: by the extension, and LIBSVM text if that says nothing.
    request : Request, optional
        What is known of the data.

    Returns
    -------
    Data
        CSR rows from text in the format of LIBSVM, dense rows otherwise (NPZ: either). ``y`` is
        None where there are no labels.

    Raises
    ------
    ValueError
        With the name of the file and, for text, the number of the line.

    Examples
    --------
    >>> import os, tempfile
    >>> from slimsvm.cli.data import read
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "train.csv")
    ...     with open(path, "w") as file:
    ...         print("height,width,kind", "1.0,2.0,cat", "3.5,4.0,dog", sep="\n", file=file)
    ...     data = read(path)
    >>> data.X.tolist(), data.y.tolist(), data.names
    ([[1.0, 2.0], [3.5, 4.0]], ['cat', 'dog'], ['height', 'width'])
    """
    source, request = Source(path), request or Request()
    format = format or source.format
    if request.label_column is not None and format in ("libsvm", "npz"):
        where = "is the first word of a line" if format == "libsvm" else "is in the array y"
        raise ValueError(
            f"{source.name}: --label-column is for CSV and Parquet files; in {format} files the "
            f"label {where}"
        )
    data = READERS[format](source, request)
    if data.X.shape[0] == 0:
        raise ValueError(f"{source.name}: there are no rows")
    if request.n_features not in (None, data.X.shape[1]) and not request.any_width:
        raise ValueError(
            f"{source.name}: {data.X.shape[1]} features, but there must be {request.n_features}"
        )
    return data


def widen(X: Any, n_features: int) -> Any:
    """Sparse rows, with columns of zeros up to the number of features; dense rows as they are."""
    if sp.issparse(X) and X.shape[1] < n_features:
        X.resize(X.shape[0], n_features)
    return X


def in_serial_order(data: Data, name: str) -> Data:
    """Rows of kernel values in the order of their columns, by the serial numbers of LIBSVM's files.

    Without serial numbers they are taken to be in this order.
    """
    if data.serials is None or not data.serials.any():
        return data
    order = np.argsort(data.serials, kind="stable")
    if not np.array_equal(data.serials[order], np.arange(1, order.size + 1)):
        raise ValueError(
            f"{name}: the serial numbers (0:1, 0:2, ...) of {order.size} rows of kernel values "
            f"must be 1 to {order.size}, in any order; slim-train -t 4 takes some of all rows"
        )
    y = None if data.y is None else data.y[order]
    return Data(data.X[order], y, data.names, data.serials[order])


# -- files with arrays -----------------------------------------------------------------------------


def read_npz(source: Source, request: Request) -> Data:
    """Arrays ``X`` and ``y``.

    ``X_data``, ``X_indices``, ``X_indptr`` and ``X_shape`` of a CSR matrix may stand in place of
    ``X``.
    """
    with source.open() as file:
        content = file.read()
    if not content.startswith(b"PK"):  # NumPy would take it for a pickle
        raise ValueError(
            f"{source.name}: not a readable NPZ file (it is no zip archive of arrays, as "
            "numpy.savez writes it)"
        )
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
            found = {name: arrays[name] for name in arrays.files}
    except (
        ValueError,
        BadZipFile,
        EOFError,
        KeyError,
        zlib.error,
        struct.error,
        tokenize.TokenError,
        SyntaxError,
        AttributeError,
        TypeError,
        OverflowError,
        NotImplementedError,  # a zip of another kind
        RuntimeError,  # an encrypted one
        MemoryError,  # a shape that cannot be
    ) as error:
        raise ValueError(f"{source.name}: not a readable NPZ file ({error})") from error
    if {"X_data", "X_indices", "X_indptr", "X_shape"} <= set(found):
        try:
            X = sp.csr_matrix(
                (found["X_data"], found["X_indices"], found["X_indptr"]),
                shape=tuple(found["X_shape"].tolist()),
            )
            X.check_format(full_check=True)
        except (ValueError, TypeError, IndexError) as error:
            raise ValueError(
                f"{source.name}: X_data, X_indices, X_indptr and X_shape are not a CSR matrix "
                f"({error})"
            ) from error
    elif "X" in found:
        X = found["X"]
    else:
        raise ValueError(
            f"{source.name}: there is no array X, nor X_data, X_indices, X_indptr and X_shape; "
            f"found {sorted(found) or 'none'}"
        )
    if X.ndim != 2 or X.dtype.kind not in "fiub":
        raise ValueError(
            f"{source.name}: X must be a matrix of numbers, but has shape {X.shape} and type "
            f"{X.dtype}"
        )
    y = found.get("y")
    if y is None and request.labelled:
        raise ValueError(
            f"{source.name}: there is no array y for the labels; found {sorted(found)}"
        )
    if y is not None and y.shape != (X.shape[0],):
        raise ValueError(
            f"{source.name}: y must have one label for each of the {X.shape[0]} rows, but has "
            f"shape {y.shape}"
        )
    check_finite(source, X)
    return Data(X, checked_labels(source, y, request))


def read_parquet(source: Source, request: Request) -> Data:
    """Columns of numbers, and one for the labels."""
    try:
        import pyarrow
        import pyarrow.parquet

        from slimsvm.sources.tables import columns_without_index
    except ImportError as error:
        raise ValueError(
            f"{source.name}: Parquet needs pyarrow: pip install 'slimsvm[parquet]'"
        ) from error
    try:
        with source.open() as file:
            table = pyarrow.parquet.read_table(pyarrow.BufferReader(file.read()))
    except pyarrow.ArrowException as error:
        raise ValueError(f"{source.name}: not a readable Parquet file ({error})") from error
    names = columns_without_index(table.schema)
    if len(names) < len(table.column_names):
        table = table.select(names)
    features, label = choose_columns(source, len(names), names, request)
    columns = []
    for place in features:
        column = table.column(place).to_numpy()
        if column.dtype.kind not in "fiub":
            raise ValueError(
                f"{source.name}: column {names[place]!r} is not made of numbers; text must be "
                "encoded first, and gaps filled"
            )
        columns.append(column)
    X = np.column_stack(columns)
    check_finite(source, X)
    y = None if label is None else table.column(label).to_numpy()
    if y is not None and y.dtype.kind == "O":
        if any(value is None for value in y):
            raise ValueError(f"{source.name}: a label is missing in column {names[label or 0]!r}")
        y = y.astype(str)
    return Data(X, checked_labels(source, y, request), [names[place] for place in features])


def check_finite(source: Source, X: Any) -> None:
    """Refuse NaN and infinity, naming the row."""
    values = X.data if sp.issparse(X) else X
    if np.isfinite(values).all():
        return
    place = np.argwhere(~np.isfinite(values))[0]
    row = np.searchsorted(X.indptr, place[0], side="right") - 1 if sp.issparse(X) else place[0]
    raise ValueError(
        f"{source.name}: row {row} (counted from 0) has a value that is missing or not finite"
    )


def checked_labels(source: Source, y: Any, request: Request) -> Any:
    """The labels, which are numbers or text.

    If some are missing: None where the request can do without labels, else an error that names the
    row.
    """
    if y is None or y.dtype.kind in "iubUT":
        return y
    if y.dtype.kind != "f":
        raise ValueError(
            f"{source.name}: the labels must be numbers or text, but have the type {y.dtype}"
        )
    missing = np.flatnonzero(~np.isfinite(y))
    if missing.size and request.labelled:
        raise ValueError(
            f"{source.name}: row {missing[0]} (counted from 0) has a label that is missing or not "
            "finite"
        )
    return None if missing.size else y


READERS = {"libsvm": read_libsvm, "csv": read_csv, "npz": read_npz, "parquet": read_parquet}
FORMATS = tuple(READERS)
