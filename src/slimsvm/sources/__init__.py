"""Where rows come from: files of several formats, arrays, batches, and Dask collections.

:func:`open_rows` opens what is on disk or comes in batches; Dask arrays and DataFrames are passed
to ``fit`` as they are. One module for each format: a *reader* knows how many rows there are, which
features they have, and reads any consecutive ones, quickly if they follow those read before.
"""

from __future__ import annotations

from typing import Any

from slimsvm.sources.opened import OpenedRows, rows_of_batch

__all__ = ["OpenedRows", "open_rows"]


def open_rows(
    source: Any,
    *,
    target: Any = None,
    weight: Any = None,
    features: Any = None,
    batch_rows: int | None = None,
) -> OpenedRows:
    """Open rows that need not fit into memory, for ``fit``, ``predict`` and ``score``.

    Nothing but names, types and numbers of rows is read now (CSV and LIBSVM text, and batches, are
    gone through once to count them). A fit reads them block by block, as often as it has passes,
    with one block read ahead.

    Parameters
    ----------
    source : path, glob, folder, list of these, array, iterable or callable
        Files: Parquet, Arrow or Feather, CSV, LIBSVM text (both also as ``.gz`` or ``.bz2``), or
        arrays (``.npy``), all of one kind, with the same columns. An array, memory map, CSR matrix,
        DataFrame or Arrow table. Or batches: an iterable that can
        be gone through again and again, or a function that returns an iterator, of ``X``, ``(X,
        y)`` or ``(X, y, weight)``.
    target : str, array or path, optional
        The column of labels or targets, by its name; for arrays, an array or a ``.npy`` file.
        LIBSVM text and batches have their own.
    weight : str, array or path, optional
        The same for weights of rows.
    features : list of str or int, optional
        Columns that are features, in this order; by default all others.
    batch_rows : int, optional
        Rows of a block; by default some 32 megabytes of them (of batches: as they come). Equal
        blocks give equal bits, whatever the rows are read from.

    Returns
    -------
    OpenedRows
        What ``fit``, ``predict`` and ``score`` take in place of arrays.

    Examples
    --------
    >>> import numpy as np
    >>> import slimsvm
    >>> from slimsvm.datasets import checkers
    >>> X, y = checkers(4000, seed=0)
    >>> rows = slimsvm.open_rows(X, target=y, batch_rows=1024)
    >>> rows
    OpenedRows(4,000 rows of 2 features in 4 blocks, from an array)
    >>> model = slimsvm.SparseSVC(n_basis=30, gamma=5.0, random_state=0).fit(rows)
    >>> model.score(rows) > 0.9
    True
    """
    reader = _reader(source, target, weight, features)
    return OpenedRows(reader, rows_of_batch(reader, batch_rows))


def _reader(source: Any, target: Any, weight: Any, features: Any) -> Any:
    """What reads a source."""
    from slimsvm.sources.files import files_of, is_files

    if is_files(source):
        kind, paths = files_of(source)
        if kind == "npy":
            from slimsvm.sources.arrays import mapped_files

            return mapped_files(paths, target, weight, features)
        if kind == "libsvm":
            from slimsvm.sources.libsvm import LibsvmReader

            return LibsvmReader(paths, target, weight, features)
        from slimsvm.sources.tables import TableReader

        return TableReader(kind, paths, target, weight, features)
    if hasattr(source, "__dask_graph__"):
        raise ValueError(
            "Dask collections are not opened: pass them to fit, predict and score as they are."
        )
    if hasattr(source, "shape") and len(source.shape) != 2:
        many = "one dimension" if len(source.shape) == 1 else f"{len(source.shape)} dimensions"
        raise ValueError(f"The array has {many}; expected rows and columns.")
    if isinstance(source, list | tuple) and not source:
        raise ValueError("There are no batches, and no files: the list is empty.")
    if isinstance(source, bytes):
        raise ValueError(f"Rows cannot be read from bytes; pass the path {source!r} as text.")
    if is_rows_and_labels(source):
        raise ValueError(
            "Pass rows and labels as open_rows(X, target=y); batches are a list [(X, y), ...]."
        )
    if hasattr(source, "shape"):
        from slimsvm.sources.arrays import ArrayReader

        return ArrayReader(source, target, weight, features)
    from slimsvm.sources.batches import BatchReader

    return BatchReader(source, target, weight, features)


def is_rows_and_labels(source: Any) -> bool:
    """Whether this is (X, y) itself, and no batches."""
    if not isinstance(source, tuple) or not 2 <= len(source) <= 3:
        return False
    sizes = [len(getattr(of, "shape", ())) for of in source]
    return sizes[0] == 2 and set(sizes[1:]) == {1}
