"""Reading text for the command line: the format of LIBSVM and SVM-light, and CSV.

Each format has a fast reader. When that fails, or when a value is not a finite number, a slow pass
over the lines finds the first bad one, so that the message can name it.
"""

from __future__ import annotations

import csv
import warnings
from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp

from slimsvm.cli.source import (
    Array,
    Data,
    Request,
    Source,
    choose_columns,
    is_finite,
    is_integer,
    is_number,
    label_index,
    show,
)

LARGEST_INDEX = 2**31 - 1  # the fast reader's, and that of LIBSVM

# -- LIBSVM and SVM-light text ---------------------------------------------------------------------


def read_libsvm(source: Source, request: Request) -> Data:
    """``label index:value ...``, indices from 1; ``qid:`` and comments are passed over."""
    from sklearn.datasets import load_svmlight_file

    n_features = None if request.any_width else request.n_features
    serials = None
    try:
        with source.open_lines() as file:
            if request.precomputed:
                X, y = load_svmlight_file(
                    file, n_features=None if n_features is None else n_features + 1, zero_based=True
                )
                serials, X = np.split(X.toarray(), [1], axis=1)
            else:
                zero_based = request.zero_based
                X, y = load_svmlight_file(file, n_features=n_features, zero_based=zero_based)
    except (ValueError, OverflowError, IndexError) as error:
        check_libsvm_lines(source, request)
        raise ValueError(f"{source.name}: {error}") from error
    if not (np.isfinite(X.data if sp.issparse(X) else X).all() and np.isfinite(y).all()):
        check_libsvm_lines(source, request)
    return Data(X, y, serials=None if serials is None else serials.ravel())


def check_libsvm_lines(source: Source, request: Request) -> None:
    """Raise a ValueError for the first line that is not in the format, if there is one."""
    most = LARGEST_INDEX if request.n_features is None or request.any_width else request.n_features
    least = 0 if request.precomputed or request.zero_based else 1
    with source.open_lines() as file:
        for number, line in enumerate(file, 1):
            words = line.split(b"#", 1)[0].split()
            if words and not is_finite(words[0]):
                source.bad(number, f"the label {show(words[0])} is not a finite number")
            previous = least - 1
            for word in words[1:]:
                key, colon, value = word.partition(b":")
                if not colon:
                    source.bad(number, f"{show(word)} stands where index:value is expected")
                if key == b"qid":
                    continue
                if not is_integer(key):
                    source.bad(number, f"the feature index {show(key)} is not an integer")
                index = int(key)
                if index < least:
                    source.bad(
                        number, f"feature indices start at {least}, but here is {show(word)}"
                    )
                if index <= previous:
                    source.bad(
                        number, f"feature indices must increase, but {index} follows {previous}"
                    )
                if not is_finite(value):
                    source.bad(
                        number, f"the value {show(value)} of feature {index} is not a finite number"
                    )
                if index > most:
                    source.bad(number, f"feature {index}, but there are only {most} features")
                previous = index


# -- CSV -------------------------------------------------------------------------------------------


def read_csv(source: Source, request: Request) -> Data:
    """Cells between commas, semicolons or tabs.

    The first line is a header if none of its features is a number.
    """
    with source.open_text() as text:
        first = next((line for line in text if line.strip()), "")
        delimiter = max(",;\t", key=first.count)
        cells = next(csv.reader([first], delimiter=delimiter), [])
    # as if the first line was a header, which is right for names, and harmless for indices
    label = label_index(source, cells, request)
    header = bool(cells) and not any(
        is_number(cell) for place, cell in enumerate(cells) if place != label
    )
    if len(cells) == 1:
        header = not is_number(cells[0])
    names = [cell.strip() for cell in cells] if header else None
    features, label = choose_columns(source, len(cells), names, request)

    # labels by order of appearance: they may be text, and the table holds numbers
    codes: dict[str, int] = {}

    def code(cell: str) -> float:
        return codes.setdefault(cell.strip(), len(codes))

    try:
        with source.open_text() as text, warnings.catch_warnings():
            warnings.filterwarnings("ignore", "loadtxt: input contained no data")
            lines = (line for line in text if line.strip())
            if header:
                next(lines)
            table = np.loadtxt(
                lines,
                delimiter=delimiter,
                comments=None,
                quotechar='"',
                ndmin=2,
                converters=None if label is None else {label: code},
            )
        if table.shape[0] and table.shape[1] != len(cells):
            raise ValueError("the number of columns changes")
    except (ValueError, OverflowError) as error:
        check_csv_lines(source, delimiter, header, len(cells), features, label)
        raise ValueError(f"{source.name}: {error}") from error
    table = table.reshape(-1, len(cells))
    X = np.ascontiguousarray(table[:, features])
    as_numbers = (
        bool(request.labelled)
        and not request.text_labels
        and all(is_number(cell) for cell in codes)
    )
    if (
        not np.isfinite(X).all()
        or "" in codes
        or (as_numbers and not all(is_finite(cell) for cell in codes))
    ):
        check_csv_lines(source, delimiter, header, len(cells), features, label, as_numbers)
    y: Array | None = None
    if label is not None:
        y = np.array(list(codes), dtype=str)[table[:, label].astype(np.intp)]
        y = y if request.text_labels else numbers_if_possible(y)
    return Data(X, y, [names[column] for column in features] if names else None)


def check_csv_lines(
    source: Source,
    delimiter: str,
    header: bool,
    n_columns: int,
    features: Sequence[int],
    label: int | None,
    as_numbers: bool = False,  # the labels
) -> None:
    """Raise a ValueError for the first line that is not in the format, if there is one."""
    with source.open_text() as text:
        reader = csv.reader(text, delimiter=delimiter)
        for cells in reader:
            if not any(cell.strip() for cell in cells):
                continue
            if header:
                header = False
                continue
            if len(cells) != n_columns:
                source.bad(
                    reader.line_num, f"{len(cells)} columns, but the first line has {n_columns}"
                )
            for column in features:
                if not cells[column].strip():
                    source.bad(reader.line_num, f"column {column + 1} is empty")
                if not is_number(cells[column]):
                    source.bad(
                        reader.line_num,
                        f"column {column + 1}: {show(cells[column])} is not a number; text must "
                        "be encoded first",
                    )
                if not is_finite(cells[column]):
                    source.bad(
                        reader.line_num,
                        f"column {column + 1}: {show(cells[column])} is not a finite number",
                    )
            if label is not None and not cells[label].strip():
                source.bad(reader.line_num, "the label is missing")
            # nan among numbers is a gap, among words a word
            if label is not None and as_numbers and not is_finite(cells[label]):
                source.bad(
                    reader.line_num, f"the label {show(cells[label])} is not a finite number"
                )


def numbers_if_possible(labels: Array) -> Array:
    """The labels as numbers, if every one of them is a finite number; otherwise as they are."""
    try:
        numbers = labels.astype(np.float64)
    except ValueError:
        return labels
    return numbers if np.isfinite(numbers).all() else labels
