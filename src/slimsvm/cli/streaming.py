"""Data that need not fit into memory, for the commands train and predict."""

from __future__ import annotations

import glob
import os
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slimsvm.cli.data import widen
from slimsvm.cli.source import Data, Source, is_finite, is_integer
from slimsvm.cli.steps import score
from slimsvm.sources import OpenedRows, open_rows
from slimsvm.sources.files import files_of, kind_of

Array = NDArray[Any]
TABLES = ("parquet", "arrow")
FREE_SHARE = 0.5  # of the free memory: files that take more are streamed
BLOCK = 1 << 16  # rows of a block of predictions


def is_many(data: str) -> bool:
    """Whether data is a folder or a pattern."""
    return os.path.isdir(data) or (glob.has_magic(data) and not os.path.exists(data))


def free_bytes() -> int:
    """Memory that is free, as far as the system says."""
    try:
        with open("/proc/meminfo", encoding="ascii") as file:
            lines = dict(line.split(":", 1) for line in file)
        return 1024 * int(lines["MemAvailable"].split()[0])
    except (OSError, KeyError, ValueError):
        return int(4e9)


def is_large(data: str) -> bool:
    """Whether the files are larger than half of the free memory, once they are read."""
    if data == "-" or Source(data).format == "npz":
        return False
    from slimsvm.sources.tables import bytes_in_memory

    kind, paths = files_of(data)
    sizes = bytes_in_memory(paths) if kind == "parquet" else sum(map(os.path.getsize, paths))
    return sizes > FREE_SHARE * free_bytes()


def streams(data: str) -> bool:
    """Whether predictions of the files are made block by block: what is cheap, or needed."""
    if is_many(data) or kind_of(data) in TABLES:
        return True
    return os.path.isfile(data) and is_large(data)


def columns_of(path: str) -> list[str] | None:
    """The names of the columns of a table; None for other files."""
    from slimsvm.sources.tables import (
        ArrowTable,
        CsvTable,
        ParquetTable,
        columns_without_index,
    )

    table: Any = {"parquet": ParquetTable, "arrow": ArrowTable, "csv": CsvTable}.get(kind_of(path))
    names = None if table is None else columns_without_index(table(path).schema)
    if table is CsvTable and any(is_finite(of) for of in names or ()):
        raise ValueError(
            f"{path}: the first line has numbers; a CSV file that is read block by block needs the "
            "names of its columns there"
        )
    return names


def opened_to_train(data: str, label_column: str | None) -> OpenedRows:
    """Rows with labels: those of a column, by default the last."""
    names = columns_of(files_of(data)[1][0])
    if names is None:
        return open_rows(data)
    return open_rows(data, target=named(names, label_column, data))


def read_whole(rows: OpenedRows) -> Data:
    """The same rows at once."""
    every = rows.take(np.arange(rows.n))
    return Data(every.X, every.y, rows.names)


def labels_of_all(rows: OpenedRows) -> Array:
    """The distinct labels, in one pass."""
    return np.unique(np.concatenate(rows.map(_distinct_labels)))


def _distinct_labels(block: Any) -> Array:
    return np.unique(block.y)


def named(names: list[str], label_column: str | None, data: str) -> str:
    """The name of the label's column."""
    if label_column is None:
        return names[-1]
    if label_column in names:
        return label_column
    if is_integer(label_column) and -len(names) <= int(label_column) < len(names):
        return names[int(label_column)]
    raise ValueError(
        f"{data}: there is no column {label_column!r}; there are {', '.join(names[:8])}"
        f"{', ...' if len(names) > 8 else ''}"
    )


def opened_to_predict(data: str, estimator: Any, label_column: str | None) -> OpenedRows:
    """Rows for a model: features by name if it knows names; with a label, if there is one."""
    names = columns_of(files_of(data)[1][0])
    if names is None:
        return open_rows(data, batch_rows=BLOCK)
    known = [str(of) for of in getattr(estimator, "feature_names_in_", ())]
    n_features = int(estimator.n_features_in_)
    label = None if label_column is None else named(names, label_column, data)
    if not known or not set(known) <= set(names):
        if label is None and len(names) == n_features + 1:
            label = names[-1]
        known = [of for of in names if of != label]
        if len(known) != n_features:
            raise ValueError(
                f"{data}: {len(names)} columns, but the model has {n_features} features"
            )
    rest = [of for of in names if of not in set(known)]
    if label is None and len(rest) == 1:
        label = rest[0]
    return open_rows(data, target=label, features=known, batch_rows=BLOCK)


class Tally:
    """Rows and how well they were predicted, counted while blocks pass."""

    def __init__(self) -> None:
        self.rows, self._sums = 0, {"correct": 0.0, "squares": 0.0}
        self._scored = True

    def add(self, estimator: Any, labels: Array, y: Array | None) -> None:
        """One block."""
        self.rows += len(labels)
        found = {} if y is None else score(estimator, labels, y)
        self._scored = self._scored and bool(found)
        self._sums["correct"] += found.get("correct", 0)
        self._sums["squares"] += found.get("mean_squared_error", 0.0) * len(labels)
        self._regression = "mean_squared_error" in found

    def facts(self) -> dict[str, Any]:
        """Accuracy, or the mean squared error, if there were labels."""
        if not (self._scored and self.rows):
            return {}
        if self._regression:
            return {"mean_squared_error": self._sums["squares"] / self.rows}
        correct = int(self._sums["correct"])
        return {"accuracy": correct / self.rows, "correct": correct}


def predicted(rows: OpenedRows, estimator: Any, decision: bool, tally: Tally) -> Iterator[Array]:
    """What is said of the rows, block by block."""
    for k in range(rows.n_blocks):
        block = rows._block(k)
        # text shows only the features that are not zero in some row
        X = widen(block.X, estimator.n_features_in_)
        said = estimator.decision_function(X) if decision else estimator.predict(X)
        scored = decision and block.y is not None
        tally.add(estimator, estimator.predict(X) if scored else said, block.y)
        yield np.asarray(said)


def passes_shown(rows: OpenedRows) -> Callable[[int], None]:
    """A line on standard error that says which pass it is, and how many rows it has seen."""
    passes = 0

    def show(k: int) -> None:
        nonlocal passes
        passes += k == 0
        seen = int(rows.edges[k + 1])
        sys.stderr.write(f"\rpass {passes}: {seen:,} of {rows.n:,} rows ")
        if seen == rows.n:
            sys.stderr.write("\n")
        sys.stderr.flush()

    return show
