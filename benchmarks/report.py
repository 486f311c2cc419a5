"""All stored results as one page for the browser.

It shows accuracy against vectors and seconds for every set, and which model to take.

    python -m benchmarks report [--output PATH] [--results FOLDER]

Reads every ``*.json`` in benchmarks/results. A cell ``set/method...`` or ``set/method.../k`` that
has an accuracy is a model of that set; cells of other kinds are shown as tables, one for each group
of cells with the same fields, and files of another form are named and passed over.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np

from slimsvm.persistence.atomic import replacing
from slimsvm.report import Comparison, Facts, Model, Page, Table, Text

RESULTS = Path(__file__).parent / "results"
OUTPUT = Path("benchmarks.html")
# Cells of several files are about the same rows and the same test rows: (file, set) -> set. All
# others have a section of their own.
SAME: dict[tuple[str, str], str] = {
    ("peers", "a9a_dense"): "a9a",
    ("peers", "a9a_sparse"): "a9a",
    ("peers", "mnist60"): "mnist {0..4} vs {5..9}",
    ("peers", "mnist20"): "mnist {0..4} vs {5..9}, 20,000 training rows",
    ("peers", "covtype"): "covtype, 50,000 training rows",
    ("cpsp", "mnist_halves"): "mnist {0..4} vs {5..9}",
    ("cpsp", "mnist_zero"): "mnist 0 vs rest",
    ("rivals", "mnist_halves"): "mnist {0..4} vs {5..9}",
    ("rivals", "mnist_zero"): "mnist 0 vs rest",
    ("rivals", "covtype_50000"): "covtype, 50,000 training rows",
    ("rsvm", "mnist"): "mnist, 10 classes, 21,000 training rows",
}
# names of the number of vectors in a cell
VECTORS = ("vectors", "n_support", "n_basis", "size", "k")
# of the CPU where they are known: they depend less on what else went on
SECONDS = ("cpu_seconds", "cpu", "seconds")
BY_CLOCK = "seconds by the clock"
# benchmarks.peers: the peers' own prediction takes minutes
FEW_ROWS = "accuracy of the first 2,000 test rows"

Entry = tuple[str, Model]  # name of the set, model


def mean(value: Any) -> float | None:
    """The number, or the mean of several."""
    if isinstance(value, list):
        return float(np.mean(value)) if value else None
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def models_of(file: str, key: str, cell: dict[str, Any]) -> Iterator[Entry]:
    """The models of a cell, each with the name of its set; none if it is of another kind."""
    name, *words = key.split("/")
    if file == "primal" and name == "crosstraining" and "crossed" in cell:
        for method, kind in (
            ("SVC", "plain"),
            ("CrossTraining", "crossed"),
            ("CrossTraining, the slides' rule", "as in the slides"),
        ):
            if kind in cell:
                score, vectors, seconds = cell[kind]
                yield (
                    f"cross-training, {words[0]}",
                    Model(method, vectors, score, seconds, f"mean of {cell.get('resamples', 1)}"),
                )
        return
    if file == "sampled_cuts" and len(words) == 2 and "test_error" in cell:
        found = (
            f"checkers, {int(words[0]):,} training rows"
            if name == "scaling"
            else f"sampled cuts, {words[0]}"
        )
        yield (
            found,
            Model(
                words[1],
                mean(cell.get("vectors")),
                100 - cell["test_error"],
                mean(cell.get("cpu_seconds")),
                _ended(cell),
            ),
        )
        return
    # benchmarks.cpsp: one size, without the models of smaller ones
    if name == "alone" and len(words) == 4:
        method, name, size, tol = words
        words = [f"{method}, one size", size]
        if tol != "0.001":  # the default; others are in the table of the docs
            return
    if not words or ("accuracy" not in cell and "failed" not in cell):
        return
    if file == "sampled_cuts" and name in ("letters", "classes") and len(words) == 2:
        part, method = words
        if name == "letters" and part != "0":  # the mean of all ten is in the table of the docs
            return
        name, words = (
            ("OCR letters, trained on the first tenth", [method])
            if name == "letters"
            else (part, [f"{method} (structural)"])
        )
    k = int(words.pop()) if words[-1].isdigit() and len(words) > 1 else None
    found = SAME.get((file, name), name)
    if file == "peers" and name.startswith("a9a_"):
        words.append(name.removeprefix("a9a_"))
    instead = words[0] == "instead"  # benchmarks.peers: not the race of the exact SVMs
    if file == "peers" and len(words) > 1:
        words[:2] = (words[1],) if instead else (words[1], words[0])  # who, then the type
    method = f"exact ({file})" if words == ["exact"] else " ".join(words)
    if "failed" in cell:
        yield (
            found,
            Model(
                method,
                k,
                None,
                None,
                "failed: " + " ".join(map(str, cell["failed"]))[:200],
                counts=False,
            ),
        )
        return
    # a linear model without rows has none
    vectors = next((mean(cell[field]) for field in VECTORS if field in cell), k) or None
    counts = not (file == "peers" and "slimsvm" not in words and not instead)
    field = next((field for field in SECONDS if field in cell), "")
    seconds, clock = mean(cell.get(field)), BY_CLOCK if field == "seconds" else ""
    note = "; ".join(filter(None, ["" if counts else FEW_ROWS, clock, _ended(cell)]))
    score = mean(cell["accuracy"])
    yield (
        found,
        Model(method, vectors, None if score is None else 100 * score, seconds, note, counts),
    )
    for size, accuracy in cell.get("path", [])[:-1]:
        yield (
            found,
            Model(method, size, 100 * accuracy, seconds, f"from the fit with {k}", part=True),
        )


def _ended(cell: dict[str, Any]) -> str:
    """How fits ended that did not converge."""
    ends = cell.get("status", [])
    unfinished = [
        end
        for end in ([ends] if isinstance(ends, str) else ends)
        if not end.lower().startswith("converged")
    ]
    return "ended by: " + ", ".join(unfinished) if unfinished else ""


def selection(cells: dict[str, dict[str, Any]]) -> Iterator[Entry]:
    """The rules for choosing a subset (benchmarks.primal): at each size the mean over the seeds."""
    rules: dict[str, list[dict[str, Any]]] = {}
    for key, cell in cells.items():
        if key.startswith("selection/") and "points" in cell:
            rules.setdefault(key.split("/")[1], []).append(cell)
    for rule, runs in rules.items():
        largest = max(runs[0]["points"], key=int)
        for k in runs[0]["points"]:
            error = float(np.mean([run["points"][k][0] for run in runs]))
            note = f"mean of {len(runs)} seeds; {BY_CLOCK}, of the fit at all sizes"
            yield (
                "mnist 0 vs rest, 10,000 training rows, polynomial",
                Model(
                    rule,
                    int(k),
                    100 * (1 - error),
                    mean([run["seconds"] for run in runs]),
                    note,
                    part=k != largest,
                ),
            )


def without_doubles(models: list[Model]) -> list[Model]:
    """Of several models of one method and size, one.

    A fit of its own is preferred to a part of a larger one; of those, the first is taken.
    """
    kept: dict[Any, Model] = {}
    for at, model in enumerate(sorted(models, key=lambda model: model.part)):
        kept.setdefault((model.method, at if model.vectors is None else model.vectors), model)
    order = list(dict.fromkeys(model.method for model in models))
    return sorted(kept.values(), key=lambda model: (order.index(model.method), model.vectors or 0))


def tables_of(file: str, cells: dict[str, dict[str, Any]]) -> list[Table]:
    """Cells that are no models, in one table for each beginning of the key and set of fields."""
    groups: dict[tuple[Any, ...], list[tuple[str, dict[str, Any]]]] = {}
    for key, cell in cells.items():
        fields = tuple(name for name, value in cell.items() if not isinstance(value, dict))
        groups.setdefault((key.split("/")[0] if "/" in key else "", fields), []).append((key, cell))
    tables = []
    for (name, fields), group in groups.items():
        rows = [[key, *(_shown(cell[field]) for field in fields)] for key, cell in group]
        tables.append(
            Table(
                ["cell", *(field.replace("_", " ") for field in fields)],
                rows,
                f"{file}: {name}" if name else file,
            )
        )
    return tables


def _shown(value: Any) -> Any:
    if isinstance(value, list):
        return ", ".join(str(_shown(one)) for one in value)
    return float(f"{value:.5g}") if isinstance(value, float) else value


def page_of(folder: Path) -> str:
    """The page of all results in a folder.

    Raises
    ------
    ValueError
        If there are none.
    """
    sets: dict[str, list[Model]] = {}
    tables: list[Table] = []
    passed: list[str] = []
    computers: list[tuple[str, str]] = []
    for path in sorted(folder.glob("*.json")):
        try:
            stored = json.loads(path.read_text(encoding="utf-8"))
            cells = {key: cell for key, cell in stored["cells"].items() if isinstance(cell, dict)}
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            passed.append(f"{path.name} ({type(error).__name__})")
            continue
        computer = stored.get("machine")
        computers.append(
            (
                path.stem,
                ", ".join(f"{k} {value}" for k, value in computer.items())
                if isinstance(computer, dict)
                else "not known",
            )
        )
        left = {}
        for key, cell in cells.items():
            try:
                entries = list(models_of(path.stem, key, cell))
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                passed.append(f"{path.name}, {key} ({type(error).__name__})")
                continue
            for name, model in entries:
                sets.setdefault(name, []).append(model)
            if not entries and not (path.stem == "primal" and key.startswith("selection/")):
                left[key] = cell
        for name, model in selection(cells) if path.stem == "primal" else ():
            sets.setdefault(name, []).append(model)
        tables += tables_of(path.stem, left)
    if not computers:
        raise ValueError(
            f"{folder}: there are no results here; run a benchmark first, or name their folder "
            "with --results"
        )
    return _page(sets, tables, computers, passed).html()


def _styles(methods: list[str], sets: list[set[str]]) -> dict[str, int]:
    """For each method the first style that no other method has in any set with this one.

    There are eight colours, and seven markers of each.
    """
    styles: dict[str, int] = {}
    for method in methods:
        near = {
            styles[other]
            for together in sets
            if method in together
            for other in together
            if other in styles
        }
        styles[method] = next(style for style in count() if style not in near)
    return styles


def _page(
    sets: dict[str, list[Model]],
    tables: list[Table],
    computers: list[tuple[str, str]],
    passed: list[str],
) -> Page:
    page = Page(
        "slimsvm: benchmarks",
        "Accuracy on test rows, number of vectors and seconds of training, of slimsvm and its "
        "peers. Seconds are those of the CPU, of all threads together, unless the note says that "
        "they are by the clock. C and gamma, and how all this was measured, are said in the "
        "documentation, on the page about benchmarks. Hollow marks: the accuracy was measured on "
        "fewer rows, so that the model takes no part in the choice.",
    )
    ordered = sorted(sets, key=lambda name: -len(sets[name]))
    counts = Counter(model.method for name in ordered for model in sets[name])
    styles = _styles(
        [method for method, _ in counts.most_common()],
        [{model.method for model in sets[name]} for name in ordered],
    )
    alone: list[list[Any]] = []  # failures in sets where nothing else was measured
    for name in ordered:
        models = without_doubles(sets[name])
        if any(model.score is not None and model.counts for model in models):
            page.section(name, Comparison(name, models, styles=styles))
        else:
            alone += [[name, model.method, model.score, model.note] for model in models]
    if alone:
        tables.append(
            Table(["set", "method", "accuracy, %", "note"], alone, "Sets without a model to take")
        )
    page.section("Other measurements", *tables)
    page.section(
        "Where these were measured",
        Facts(computers),
        *([Text("Passed over: " + ", ".join(passed) + ".")] if passed else []),
    )
    return page


def main(words: list[str] | None = None) -> None:
    """Command line."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks report", description=__doc__.splitlines()[0]
    )
    parser.add_argument(
        "--output", type=Path, default=OUTPUT, help="file for the page (default: %(default)s)"
    )
    parser.add_argument(
        "--results",
        type=Path,
        default=RESULTS,
        help="folder of the results (default: benchmarks/results)",
    )
    given = parser.parse_args(words)
    try:
        html = page_of(given.results)
        with replacing(given.output) as file:
            file.write(html.encode())
    except (ValueError, OSError) as error:
        sys.exit(f"benchmarks: error: {error}")
    print(f"page written to {given.output} ({len(html) / 1024:.0f} kB)")
