"""``slim-scale``: features brought to an interval, with the letters and files of svm-scale."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any, NoReturn

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from slimsvm.cli.data import Request, read
from slimsvm.cli.files import check_writable, write_bytes
from slimsvm.cli.letters import Program, Refused, number, word
from slimsvm.cli.text import LARGEST_INDEX

Array = NDArray[Any]
BLOCK = 1 << 20  # values that are dense at a time

SCALE = Program(
    "slim-scale",
    "svm-scale",
    {"l": number(), "u": number(), "y": number(), "s": word, "r": word},
    ("data_filename",),
    """Usage: slim-scale [options] data_filename
options, as those of svm-scale:
-l lower : x scaling lower limit (default -1)
-u upper : x scaling upper limit (default +1)
-y y_lower y_upper : y scaling limits (default: no y scaling)
-s save_filename : save scaling parameters to save_filename
-r restore_filename : restore scaling parameters from restore_filename""",
    {},
    first_letter=True,
)


def scale() -> NoReturn:
    """The program slim-scale."""
    words, limits = sys.argv[1:], []
    if "-y" in words[:-2]:  # the one option with two values
        at = words.index("-y")
        limits = words[at + 1 : at + 3]
        sys.argv[1:] = words[:at] + words[at + 3 :]
    SCALE.main(lambda options, files: _scale({**options, "y": limits}, files))


def _scale(options: dict[str, Any], files: list[str]) -> None:
    if "s" in options and "r" in options:
        raise Refused("cannot use -r and -s simultaneously")
    if "s" in options:
        check_writable(options["s"])
    rows = read(files[0], "libsvm", Request(True, None, None, any_width=True, zero_based=True))
    whole, y = sp.csr_matrix(rows.X), np.asarray(rows.y, np.float64)
    X, zeroth = whole[:, 1:], _Zeroth(whole)
    if zeroth.there:
        text = "minimal feature index is 0, but indices should start from 1"
        print(f"WARNING: {text}", file=sys.stderr)
    to_y: list[float] = []
    if options["y"]:
        to_y = [number()(value) for value in options["y"]]
    if "r" in options:
        to_x, low, high, old_y = _restored(options["r"])
        to_y = old_y or []
        _warn_of_new(X, low, high, f"appeared in file {files[0]}", options["r"])
    else:
        to_x = [options.get("l", -1.0), options.get("u", 1.0)]
        low, high = _extremes(X)
        to_y = [*to_y, float(y.min()), float(y.max())] if to_y else []
    if not to_x[0] < to_x[1] or (to_y and not to_y[0] < to_y[1]):
        raise Refused("inconsistent lower/upper specification")
    if "s" in options:
        _save(options["s"], to_x, low, high, to_y)
        if zeroth.there:
            text = "scaling factors with indices smaller than 1 are not stored to the file"
            print(f"WARNING: {text} {options['s']}.", file=sys.stderr)
    if to_y:
        y = _scaled(y, to_y[0], to_y[1], to_y[2], to_y[3])
    before, after = whole.nnz, 0
    firsts = zeroth.words(to_x)
    for k, (label, words, n) in enumerate(_lines(X, y, to_x, low, high)):
        first = firsts.get(k, "")
        after += n + bool(first)
        sys.stdout.write(f"{label}{first}{words}\n")
    if after > before:
        print(
            f"WARNING: original #nonzeros {before}\n       > new      #nonzeros {after}\n"
            "If feature values are non-negative and sparse, use -l 0 rather than the default "
            "-l -1",
            file=sys.stderr,
        )


class _Zeroth:
    """The feature of index 0, which svm-scale brings to its limits only where a row has it."""

    def __init__(self, X: Any) -> None:
        stored = X.indices == 0
        self.there = bool(stored.any())
        self.values = X.data[stored]
        self.rows = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))[stored]

    def words(self, to_x: list[float]) -> dict[int, str]:
        """Of rows by their numbers."""
        if not self.there or np.ptp(self.values) == 0.0:
            return {}
        least, most = self.values.min(), self.values.max()
        scaled = _scaled(self.values, to_x[0], to_x[1], least, most)
        pairs = zip(self.rows.tolist(), scaled.tolist(), strict=True)
        return {k: f"0:{v:g} " for k, v in pairs if v != 0.0}


def _extremes(X: Any) -> tuple[Array, Array]:
    return (
        np.asarray(X.min(axis=0).todense()).ravel(),
        np.asarray(X.max(axis=0).todense()).ravel(),
    )


def _warn_of_new(X: Any, low: Array, high: Array, where: str, restored: str) -> None:
    """Name the features with more than one value that the restored file does not have."""
    least, most = _extremes(X)
    known = np.zeros(least.size, bool)
    known[: low.size] = (low != high)[: least.size]
    for k in np.flatnonzero((least != most) & ~known).tolist():
        print(
            f"WARNING: feature index {k + 1} {where} was not seen in the scaling factor file "
            f"{restored}. The feature is scaled to 0.",
            file=sys.stderr,
        )


def _scaled(values: Array, lower: Any, upper: Any, low: Any, high: Any) -> Array:
    """Both ends exactly, whatever the rounding."""
    with np.errstate(divide="ignore", invalid="ignore"):
        between = lower + (upper - lower) * (values - low) / (high - low)
    return np.where(values == low, lower, np.where(values == high, upper, between))


def _lines(
    X: Any, y: Array, to_x: list[float], low: Array, high: Array
) -> Iterator[tuple[str, str, int]]:
    """Labels, features and their numbers; those with one value only are left out, as there."""
    width = max(X.shape[1], low.size)
    X = sp.csr_matrix((X.data, X.indices, X.indptr), (X.shape[0], width))
    low, high = (np.concatenate([v, np.zeros(width - v.size)]) for v in (low, high))
    kept = np.flatnonzero(high != low)
    step = max(1, BLOCK // max(1, width))
    for first in range(0, X.shape[0], step):
        block = X[first : first + step].toarray()[:, kept]
        values = _scaled(block, to_x[0], to_x[1], low[kept], high[kept])
        for label, row in zip(y[first : first + step].tolist(), values, strict=True):
            at = np.flatnonzero(row)
            pairs = zip((kept[at] + 1).tolist(), row[at].tolist(), strict=True)
            yield f"{label:.17g} ", "".join(f"{k}:{v:g} " for k, v in pairs), at.size


def _save(path: str, to_x: list[float], low: Array, high: Array, to_y: list[float]) -> None:
    lines = [f"x\n{to_x[0]:.17g} {to_x[1]:.17g}\n"]
    if to_y:
        lines.insert(0, f"y\n{to_y[0]:.17g} {to_y[1]:.17g}\n{to_y[2]:.17g} {to_y[3]:.17g}\n")
    kept = np.flatnonzero(low != high).tolist()
    lines += [f"{k + 1} {low[k]:.17g} {high[k]:.17g}\n" for k in kept]
    write_bytes(path, (line.encode() for line in lines))


def _restored(path: str) -> tuple[list[float], Array, Array, list[float] | None]:
    """Limits of x, least and largest values of features, limits and extremes of y."""
    with open(path, encoding="ascii", errors="replace") as file:
        words = [line.split() for line in file if line.strip()]
    try:
        y = None
        if words[0] == ["y"]:
            y = [float(v) for v in words[1] + words[2]]
            words = words[3:]
        if words[0] != ["x"]:
            raise ValueError("x")
        limits = [float(v) for v in words[1]]
        features = {int(k): (float(low), float(high)) for k, low, high in words[2:]}
        counts = len(limits), len(y or limits * 2)
        if counts != (2, 4) or not all(0 < k <= LARGEST_INDEX for k in features):
            raise ValueError("x")
    except (ValueError, IndexError):
        raise ValueError(f"{path}: not a file that svm-scale -s or slim-scale -s wrote") from None
    low, high = np.zeros((2, max(features, default=0)))
    for k, (least, most) in features.items():
        low[k - 1], high[k - 1] = least, most
    return limits, low, high, y
