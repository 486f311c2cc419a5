"""Parquet, Arrow and CSV files: tables whose columns have names and types.

Parquet is read by ``ParquetFile.iter_batches`` of the columns that are wanted: the scanner of
datasets keeps what it has read in memory.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slimsvm.sources.files import IN_WORDS, Stamp
from slimsvm.sources.libsvm import text_file, unpacking
from slimsvm.sources.opened import Consecutive, Piece, refuse_twice

Array = NDArray[Any]
# rows that are decoded at once, and bytes of a column that are read at once: without the latter,
# all columns of a group of rows, often a million, stand in memory
PIECE, BUFFER = 1 << 14, 1 << 16
PAGES = 3_000_000  # bytes of a column that is read from Parquet: its dictionary and a page
COPIED = 4096  # rows of columns that become rows at once: they stay in the cache
# of CSV that is parsed at once: bytes, and lines; and bytes of a line that are looked at for that
LEAST_TEXT, LINES, MOST_TEXT = 1 << 20, 8, 1 << 26
JUMP = 1 << 17  # rows ahead from which on Parquet is opened anew, at another group of rows
SHOWN = 8  # columns in a message


def needs_pyarrow() -> Any:
    """The package, or an error that says how to get it."""
    try:
        import pyarrow
    except ImportError as error:
        raise ImportError(
            "Parquet, Arrow and CSV files are read by pyarrow: pip install 'slimsvm[parquet]'."
        ) from error
    return pyarrow


@contextmanager
def naming(path: str, *more: type[BaseException]) -> Iterator[None]:
    """Errors of a file as a ValueError that names it."""
    pa = needs_pyarrow()
    try:
        yield
    except (pa.ArrowException, OSError, EOFError, *more) as error:
        raise ValueError(f"{path} cannot be read: {str(error).strip()}") from error


class ParquetTable:
    """One Parquet file."""

    def __init__(self, path: str) -> None:
        import pyarrow.parquet as pq

        self.path, self.stamp = path, Stamp(path)
        with naming(path), pq.ParquetFile(path) as file:
            about = file.metadata
            self.schema, self.n_rows = file.schema_arrow, about.num_rows
            sizes = [about.row_group(g).num_rows for g in range(about.num_row_groups)]
        self._starts = np.concatenate([[0], np.cumsum(sizes)]).astype(int)

    def bytes_to_read(self, columns: list[str]) -> int:
        """What Arrow holds while it reads these columns: of each a dictionary and a page."""
        import pyarrow.parquet as pq

        with naming(self.path), pq.ParquetFile(self.path) as file:
            group = file.metadata.row_group(int(np.argmax(np.diff(self._starts))))
            chunks = [group.column(j) for j in range(group.num_columns)]
        sizes = {of.path_in_schema: of.total_uncompressed_size for of in chunks}
        return sum(min(PAGES, 2 * sizes.get(name, PAGES)) for name in columns)

    def begin(self, row: int, columns: list[str]) -> Iterator[tuple[int, Any]]:
        """Batches from the group of the row on."""
        import pyarrow.parquet as pq

        if not self.n_rows:
            return
        group = int(np.searchsorted(self._starts, row, side="right")) - 1
        at = int(self._starts[group])
        with pq.ParquetFile(self.path, pre_buffer=False, buffer_size=BUFFER) as file:
            groups = list(range(group, file.metadata.num_row_groups))
            how: dict[str, Any] = {"row_groups": groups, "columns": columns, "use_threads": False}
            for batch in file.iter_batches(PIECE, **how):
                yield at, batch
                at += batch.num_rows


class ArrowTable:
    """One file in Arrow's format, which Feather (version 2) is too."""

    def __init__(self, path: str) -> None:
        import pyarrow as pa

        self.path, self.stamp = path, Stamp(path)
        with naming(path), pa.memory_map(path) as source, pa.ipc.open_file(source) as file:
            self.schema = file.schema
            sizes = [file.get_batch(k).num_rows for k in range(file.num_record_batches)]
        self._starts = np.concatenate([[0], np.cumsum(sizes)]).astype(int)
        self.n_rows = int(self._starts[-1])

    def begin(self, row: int, columns: list[str]) -> Iterator[tuple[int, Any]]:
        """Batches from that of the row on."""
        import pyarrow as pa

        first = int(np.searchsorted(self._starts, row, side="right")) - 1
        with pa.memory_map(self.path) as source, pa.ipc.open_file(source) as file:
            for k in range(first, file.num_record_batches):
                yield int(self._starts[k]), file.get_batch(k).select(columns)


def bytes_at_once(path: str) -> int:
    """How much of a CSV file is parsed at once: several lines, as long as the first ones are."""
    with unpacking(path), text_file(path) as file:
        longest = max(len(file.readline(MOST_TEXT)) for _ in range(3))
    return max(LEAST_TEXT, LINES * longest)


class CsvTable:
    """One CSV file with a header; it is gone through once to count its rows."""

    def __init__(self, path: str, words: tuple[str, ...] = ()) -> None:
        import pyarrow as pa
        import pyarrow.csv as pc

        self.path, self.stamp = path, Stamp(path)
        self._tabs = path.lower().endswith((".tsv", ".tsv.gz", ".tsv.bz2"))
        self._block = bytes_at_once(path)
        with naming(path), pc.open_csv(path, **self._options()) as file:
            found = file.schema
        name, times = Counter(found.names).most_common(1)[0]
        if times > 1:
            raise ValueError(f"{path} has several columns of the name {name!r}.")
        # a later line may have what the first ones do not show: whole numbers may be any numbers
        types = {of.name: of.type for of in found}
        for name, type_ in types.items():
            if pa.types.is_integer(type_) and name not in words:
                types[name] = pa.float64()
            if pa.types.is_null(type_):
                types[name] = pa.string() if name in words else pa.float64()
        self._types = types
        try:
            self.n_rows = self._count()
        except ValueError:  # labels that are numbers only in the first lines
            wider = {name: pa.string() for name in words if not pa.types.is_string(types[name])}
            if not wider:
                raise
            self._types = types | wider
            self.n_rows = self._count()
        self.schema = pa.schema(list(self._types.items()))

    def _options(self, columns: list[str] | None = None) -> dict[str, Any]:
        import pyarrow.csv as pc

        types = getattr(self, "_types", None)
        return {
            "read_options": pc.ReadOptions(use_threads=False, block_size=self._block),
            "parse_options": pc.ParseOptions(delimiter="\t" if self._tabs else ","),
            "convert_options": pc.ConvertOptions(column_types=types, include_columns=columns),
        }

    def _count(self) -> int:
        return sum(batch.num_rows for _, batch in self.begin(0, None))

    def begin(self, row: int, columns: list[str] | None) -> Iterator[tuple[int, Any]]:
        """All batches: lines have no fixed length."""
        import pyarrow.csv as pc

        at = 0
        with naming(self.path), pc.open_csv(self.path, **self._options(columns)) as file:
            for batch in file:
                yield at, batch
                at += batch.num_rows


class TableReader:
    """Rows of tables, one file after the other."""

    edges = None

    def __init__(
        self, kind: str, paths: list[str], target: Any, weight: Any, features: Any
    ) -> None:
        needs_pyarrow()
        for what, of in (("target", target), ("weight", weight)):
            if of is not None and not isinstance(of, str):
                raise ValueError(
                    f"{what} must be the name of a column of {paths[0]}; got {type(of).__name__}."
                )
        many = f"{len(paths)} {IN_WORDS[kind]} files ({paths[0]}, ...)"
        self.kind = paths[0] if len(paths) == 1 else many
        if kind == "csv":
            words = tuple(of for of in (target,) if of is not None)
            self.tables: list[Any] = [CsvTable(path, words) for path in paths]
        else:
            self.tables = [(ParquetTable if kind == "parquet" else ArrowTable)(p) for p in paths]
        self.target, self.weight, self.labelled = target, weight, target is not None
        self._empty_is_missing = kind == "csv"
        # files without rows have no types either, where they are text
        self._first = next((of for of in self.tables if of.n_rows), self.tables[0])
        self.names = self._features(features, kind)
        self.n_features = len(self.names)
        self._refuse_others()
        types = {self._type(name) for name in self.names}
        self.dtype = np.float32 if types == {"float"} else np.float64
        self._starts = np.concatenate([[0], np.cumsum([of.n_rows for of in self.tables])])
        self.n_rows = int(self._starts[-1])
        jump = None if kind == "csv" else JUMP
        cut, size = (lambda of, i, j: of.slice(i, j - i)), (lambda of: of.num_rows)
        self._pieces = Consecutive(self._begin, cut, size, jump, self.n_rows)
        largest = max(self.tables, key=lambda of: of.n_rows)
        some = kind == "parquet" and largest.n_rows
        self.bytes_to_read = largest.bytes_to_read(self.names) if some else 0

    def _type(self, name: str) -> str:
        return str(self._first.schema.field(name).type)

    def _features(self, features: Any, kind: str) -> list[str]:
        """The columns that are features; all that are named must be there, and numbers."""
        import pyarrow as pa

        schema, path = self._first.schema, self._first.path
        there = Counter(schema.names)
        special = [of for of in (self.target, self.weight) if of is not None]
        if isinstance(features, str):
            features = [features]
        given = [str(of) for of in features] if features is not None else None
        for name in [*special, *(given or [])]:
            if name not in there:
                some = ", ".join(map(repr, schema.names[:SHOWN]))
                more = ", ..." if len(schema.names) > SHOWN else ""
                hive = f"{os.sep}{name}=" in path
                one = len(schema.names) == 1 and kind == "csv"
                raise ValueError(
                    f"{path} has no column {name!r}; it has {some}{more}."
                    + " What folders are called is not read: write it as a column." * hive
                    + " Between columns there must be commas, or tabs in a .tsv file." * one
                )
            if there[name] > 1:
                raise ValueError(f"{path} has several columns of the name {name!r}.")
        if self.target is not None and pa.types.is_nested(schema.field(self.target).type):
            raise ValueError(
                f"{path}: the target {self.target!r} is of type {schema.field(self.target).type}; "
                "expected a number or text in each row."
            )
        refuse_twice(self.target, self.weight, given or [])
        others = [of for of in columns_without_index(schema) if of not in special]
        names = given if given is not None else others
        if not names:
            raise ValueError(f"{path} has no columns that are features.")
        if len(set(names)) < len(names):
            raise ValueError(f"{path}: a feature is named twice among {names[:SHOWN]}.")
        for name in [*names, *([self.weight] if self.weight else [])]:
            type_ = schema.field(name).type
            t = pa.types
            if not (t.is_integer(type_) or t.is_floating(type_) or t.is_boolean(type_)):
                raise ValueError(
                    f"{path}: column {name!r} is of type {type_}, not a number. Choose the columns "
                    "that are features by features=[...], or encode it first."
                )
        return names

    def _refuse_others(self) -> None:
        """Raise ValueError if a file has other columns, or other types, than the first."""
        first = self._first
        wanted = [*self.names, *(of for of in (self.target, self.weight) if of is not None)]
        for table in self.tables:
            there = set(table.schema.names)
            for name in wanted:
                if name not in there:
                    raise ValueError(
                        f"{table.path} has no column {name!r}, which {first.path} has."
                    )
                own, other = (of.schema.field(name).type for of in (table, first))
                if table.n_rows and own != other and not (is_text(own) and is_text(other)):
                    raise ValueError(
                        f"{table.path}: column {name!r} is of type {own}, but {other} in "
                        f"{first.path}. Write all files with the same types."
                    )

    def place(self, row: int) -> str:
        """File and row."""
        k = int(np.searchsorted(self._starts, row, side="right")) - 1
        return f"{self.tables[k].path}, row {row - int(self._starts[k]):,} (counted from 0)"

    def _begin(self, row: int) -> Iterator[tuple[int, Any]]:
        columns = [*self.names, *(of for of in (self.target, self.weight) if of is not None)]
        columns = list(dict.fromkeys(columns))
        first = int(np.searchsorted(self._starts, row, side="right")) - 1
        for k in range(first, len(self.tables)):
            table, start = self.tables[k], int(self._starts[k])
            table.stamp.check()
            with naming(table.path):
                for at, batch in table.begin(row - start if k == first else 0, columns):
                    yield start + at, batch
            table.stamp.check()

    def read(self, first: int, last: int) -> Piece:
        """X, y and weight of consecutive rows."""
        for k in self._tables_of(first, last):
            self.tables[k].stamp.check()
        pieces = self._pieces.read(first, last)
        X = np.empty((last - first, self.n_features), self.dtype)
        at = 0
        for batch in pieces:
            columns = [numbers(batch.column(name)) for name in self.names]
            for i in range(0, batch.num_rows, COPIED):
                part = X[at + i : at + min(i + COPIED, batch.num_rows)]
                for j, column in enumerate(columns):
                    part[:, j] = column[i : i + COPIED]
            at += batch.num_rows
        y = None if self.target is None else self._labels(pieces, first)
        if last == self.n_rows:  # Arrow keeps what it had for pages: not between passes
            import pyarrow as pa

            pa.default_memory_pool().release_unused()
        weight = None
        if self.weight is not None:
            own = [numbers(batch.column(self.weight)) for batch in pieces]
            weight = np.concatenate(own).astype(np.float64)
        return X, y, weight

    def _tables_of(self, first: int, last: int) -> range:
        ends = np.searchsorted(self._starts, [first, max(first, last - 1)], side="right") - 1
        return range(int(ends[0]), int(ends[1]) + 1)

    def _labels(self, pieces: list[Any], first: int) -> Array:
        found, at = [], first
        for batch in pieces:
            column = batch.column(self.target)
            missing = column.is_null().to_numpy(zero_copy_only=False)
            if not missing.any():
                try:
                    values = labels(column)
                except UnicodeDecodeError as error:
                    raise ValueError(
                        f"{self.place(at)} or later: the target {self.target!r} is not text in "
                        f"UTF-8 ({error})."
                    ) from error
                if self._empty_is_missing and values.dtype.kind == "U":
                    missing = values == ""
            if missing.any():
                row = int(np.flatnonzero(missing)[0])
                raise ValueError(f"{self.place(at + row)}: the target {self.target!r} is missing.")
            found.append(values)
            at += batch.num_rows
        return np.concatenate(found)


def columns_without_index(schema: Any) -> list[str]:
    """The columns, but those in which pandas has stored the index of a frame, as it reads them."""
    about = json.loads((schema.metadata or {}).get(b"pandas", b"{}"))
    index = [of for of in about.get("index_columns", []) if isinstance(of, str)]
    return [of for of in schema.names if of not in index]


def is_text(type_: Any) -> bool:
    """Whether labels of this type are text, in whichever of Arrow's forms."""
    import pyarrow as pa

    if pa.types.is_dictionary(type_):
        type_ = type_.value_type
    return bool(pa.types.is_string(type_) or pa.types.is_large_string(type_))


def numbers(column: Any) -> Array:
    """A column of numbers; what is missing is NaN."""
    return np.asarray(column.to_numpy(zero_copy_only=False))


def labels(column: Any) -> Array:
    """A column of labels: numbers, or text."""
    import pyarrow as pa

    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    values = np.asarray(column.to_numpy(zero_copy_only=False))
    return values.astype(str) if values.dtype.kind == "O" else values


def bytes_in_memory(paths: list[str]) -> int:
    """About how many bytes tables in Parquet files take once they are read; others: their size."""
    total = 0
    for path in paths:
        if path.lower().endswith((".parquet", ".pq")):
            table = ParquetTable(path)
            total += table.n_rows * 8 * len(table.schema.names)
        else:
            total += os.path.getsize(path)
    return total
