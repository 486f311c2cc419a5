"""``slim-grid``: the letters, files and lines of LIBSVM's grid.py.

A shell script with this name in place of grid.py goes on working.
"""

from __future__ import annotations

import os
import sys
import warnings
from itertools import zip_longest
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from slimsvm.cli.as_libsvm import TRAIN, estimator_for, target_of, training_rows
from slimsvm.cli.files import check_writable, write_bytes
from slimsvm.cli.held_out import rates, splits_of
from slimsvm.cli.letters import Program, Refused, whole, word

Array = NDArray[Any]
NOTHING = object()
MOST_POWER, MOST_POINTS = 300, 1000  # both ends, values of an axis


def _range(text: str) -> Array | None:
    """begin,end,step in powers of two; null: not searched."""
    if text == "null":
        return None
    try:
        begin, end, step = (float(part) for part in text.split(","))
    except ValueError:
        raise ValueError('expected begin,end,step or "null"') from None
    if not (abs(begin) <= MOST_POWER and abs(end) <= MOST_POWER):
        raise ValueError(f"expected powers of two between -{MOST_POWER} and {MOST_POWER}")
    if not (end - begin) * step >= 0 or step == 0:
        raise ValueError("the step does not lead from begin to end")
    if abs(end - begin) / abs(step) > MOST_POINTS:
        raise ValueError(f"more than {MOST_POINTS:,} values")
    return np.arange(begin, end + np.sign(step) * 1e-9, step)


GRID = Program(
    "slim-grid",
    "grid.py",
    {
        "log2c": _range,
        "log2g": _range,
        "v": whole(2),
        "out": word,
        "png": word,
        "svmtrain": word,
        "gnuplot": word,
        **{letter: TRAIN.letters[letter] for letter in "stdrpemhbwq"},
    },
    ("dataset",),
    """Usage: slim-grid [grid_options] [svm_options] dataset
grid_options, as those of grid.py:
-log2c {begin,end,step | "null"} (-5,15,2)   -log2g {begin,end,step | "null"} (3,-15,-2)
-v n : n-fold cross validation (5)
-out {pathname | "null"} (dataset.out)
-png pathname : a picture of the search; needs matplotlib
-resume [pathname] : points in that file (dataset.out) are not tried again
-svmtrain, -gnuplot : accepted; the fits and pictures are our own
svm_options : those of slim-train""",
    {
        "c": "use -log2c, or -log2c with begin and end alike",
        "g": "use -log2g, or -log2g with begin and end alike",
        "n": "only -s 0 is searched; nu takes the place of C",
    },
    weights=True,
)


def grid() -> NoReturn:
    """The program slim-grid."""
    words, resumed = sys.argv[1:], None
    if "-resume" in words[:-1]:  # the one option whose value may be left out; the data comes last
        at = words.index("-resume")
        n_words = 1 if at + 2 == len(words) or words[at + 1].startswith("-") else 2
        resumed = words[at + 1] if n_words == 2 else os.path.basename(words[-1]) + ".out"
        sys.argv[1:] = words[:at] + words[at + n_words :]
    GRID.main(lambda options, files: _grid({**options, "resume": resumed}, files))


def _grid(options: dict[str, Any], files: list[str]) -> None:
    if options.get("s", "0") != "0":
        raise Refused("slim-grid searches C-SVC (-s 0); for others use slim-train -v in a loop")
    Cs, gammas = options.get("log2c", _range("-5,15,2")), options.get("log2g", _range("3,-15,-2"))
    if Cs is None and gammas is None:
        raise Refused("-log2c and -log2g should not be null simultaneously")
    path = files[0]
    out = options.get("out", os.path.basename(path) + ".out")
    for written in (out, options.get("png", "null")):
        if written != "null":
            check_writable(written)
    before = _resumed(options["resume"]) if options["resume"] else {}
    points = _in_turn(*([None] if axis is None else axis.tolist() for axis in (Cs, gammas)))
    tried = dict(before)
    wanted = [point for point in points if point not in before]
    if wanted:
        tried |= dict(zip(wanted, _searched(path, options, wanted), strict=True))
    lines: list[str] = []
    best: tuple[Any, Any, float] = (None, None, -1.0)
    for (c, g), rate in tried.items():
        if rate > best[2] or (rate == best[2] and g == best[1] and c is not None and c < best[0]):
            best = c, g, rate
        shown = " ".join(str(v) for v in (c, g) if v is not None)
        so_far = ", ".join(f"{name}={value}" for name, value in _powers(*best[:2]))
        worker = "resumed" if (c, g) in before else "local"
        print(f"[{worker}] {shown} {rate} (best {so_far}, rate={best[2]})")
        where = zip("cg", (c, g), strict=True)
        words = [f"log2{name}={value}" for name, value in where if value is not None]
        lines.append(" ".join([*words, f"rate={rate}\n"]))
    if out != "null":
        write_bytes(out, (line.encode() for line in lines))
    if "png" in options:
        _draw(tried, best, options["png"])
    print(*(value for _, value in _powers(*best[:2])), best[2])


def _in_turn(Cs: list[Any], gammas: list[Any]) -> list[tuple[Any, Any]]:
    """All points in the order of grid.py, which takes the first one of the best rate.

    It begins in the middle of the grid and goes on to the finer points, so that among equal rates
    a point inside wins, not a corner.
    """

    def halved(axis: list[Any]) -> list[Any]:
        if len(axis) < 2:
            return axis
        middle = len(axis) // 2
        sides = zip_longest(halved(axis[:middle]), halved(axis[middle + 1 :]), fillvalue=NOTHING)
        return [axis[middle], *(v for side in sides for v in side if v is not NOTHING)]

    Cs, gammas, found, i, j = halved(Cs), halved(gammas), [], 0, 0
    while i < len(Cs) or j < len(gammas):
        if i * len(gammas) < j * len(Cs):
            found += [(Cs[i], g) for g in gammas[:j]]
            i += 1
        else:
            found += [(c, gammas[j]) for c in Cs[:i]]
            j += 1
    return found


def _searched(path: str, options: dict[str, Any], points: list[Any]) -> list[float]:
    """The rates of points, with the digits that svm-train prints and grid.py reads."""
    estimator = estimator_for({k: v for k, v in options.items() if k != "v"})
    X, y, _, _ = training_rows(path, options)
    y = target_of(estimator, y, path)
    named = [_point(c, g) for c, g in points]
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The `probability` parameter was deprecated")
        splits = splits_of(estimator, X, y, options.get("v", 5))
        return [float(f"{rate:.6g}") for rate in rates(estimator, X, y, splits, named)]


def _resumed(path: str) -> dict[tuple[float | None, float | None], float]:
    """The points of an output file of grid.py or slim-grid, and their rates."""
    found: dict[tuple[float | None, float | None], float] = {}
    with open(path, encoding="ascii", errors="replace") as file:
        for line in file:
            words = dict(word.split("=", 1) for word in line.split() if "=" in word)
            try:
                if "rate" in words:
                    c, g = (float(words[k]) if k in words else None for k in ("log2c", "log2g"))
                    found[c, g] = float(words["rate"])
            except ValueError:
                raise ValueError(f"{path}: {line.strip()!r} is no line of grid.py") from None
    return found


def _draw(tried: dict[Any, float], best: tuple[Any, Any, float], path: str) -> None:
    """The picture of grid.py: lines of equal rate over log2(C) and log2(gamma)."""
    if any(c is None or g is None for c, g in tried):
        print("slim-grid: warning: a picture needs both C and gamma", file=sys.stderr)
        return
    try:
        from matplotlib.figure import Figure
    except ImportError:
        text = "-png needs matplotlib: pip install 'slimsvm[plot]'"
        print(f"slim-grid: warning: {text}; no picture was made", file=sys.stderr)
        return
    import io

    figure = Figure(figsize=(6.4, 4.8), layout="constrained")
    axes = figure.subplots()
    at = np.array(list(tried), np.float64)
    dots = axes.scatter(
        at[:, 0], at[:, 1], c=list(tried.values()), cmap="viridis", marker="s", s=160
    )
    figure.colorbar(dots, label="cross validation accuracy in %")
    axes.plot(*best[:2], "o", mfc="none", mec="red", ms=18)
    axes.set(xlabel="log2(C)", ylabel="log2(gamma)")
    axes.set_title(f"best: log2(C) = {best[0]}, log2(gamma) = {best[1]}, {best[2]:g} %")
    content = io.BytesIO()
    figure.savefig(content, format="png")
    write_bytes(path, [content.getvalue()])


def _powers(c: float | None, g: float | None) -> list[tuple[str, float]]:
    return [(name, 2.0**v) for name, v in zip("cg", (c, g), strict=True) if v is not None]


def _point(c: float | None, g: float | None) -> dict[str, float]:
    point = {} if c is None else {"C": 2.0**c}
    return point if g is None else {**point, "gamma": 2.0**g}
