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
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.method_names import EXACT, EXACT_FROM, SPARSE, first_of, in_order, shown_name
from slimsvm.persistence.atomic import replacing
from slimsvm.report import (
    Answers,
    Comparison,
    Facts,
    Folded,
    Model,
    Numbers,
    Page,
    Panels,
    Table,
    Text,
    Tiles,
)

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
    ("sparse", "covtype50"): "covtype, 50,000 training rows",
    ("export", "mnist"): "mnist, 10 classes",
    ("streams", "mnist"): "mnist, 10 classes",
    ("streams", "covtype"): "covtype, streams",
    ("rivals", "covtype"): "covtype, streams",
}
# beginnings of keys whose cells have an accuracy and are not models to choose from
OTHERS = ("times", "search", "chunking")
# names of the number of vectors in a cell
VECTORS = ("vectors", "n_support", "n_basis", "size", "k")
# of the CPU where they are known: they depend less on what else went on
SECONDS = ("cpu_seconds", "cpu", "seconds")
BY_CLOCK = "seconds by the clock"
# benchmarks.peers: the peers' own prediction takes minutes
FEW_ROWS = "accuracy of the first 2,000 test rows"

SECONDS_ARE = (
    "Seconds of the processor, of all threads together, unless the note of a model says that they "
    "are by the clock."
)
TRUST = (
    "C and gamma are the same for all methods of a set, unless its name says that they were "
    "searched. Hollow marks: the accuracy was measured on the first 2,000 test rows only, so that "
    "the model takes no part in the choice.",
    "The models are compared, and here chosen, by their accuracy on test rows. Among many models "
    "that favours the lucky ones a little: differences of a few tenths of a point on small sets "
    "are noise.",
)

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
            ("CrossTraining, rule of the first talk", "as in the slides"),
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
    if not words or name in OTHERS or ("accuracy" not in cell and "failed" not in cell):
        return
    if name == "chosen" and len(words) > 1:  # benchmarks.published: C and gamma by a search
        name = SAME.get(("rivals", words[0]), words[0]) + ", C and gamma searched"
        words = words[1:]
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
    if file == "sparse" and k is not None:  # a seed, behind a size
        k, kind = None, words[0].partition(", ")[2]
        words = [f"{SPARSE}, {kind}" if kind else SPARSE]
    found = SAME.get((file, name), name)
    if file == "peers" and name.startswith("a9a_"):
        words.append(name.removeprefix("a9a_"))
    instead = words[0] == "instead"  # benchmarks.peers: not the race of the exact SVMs
    if file == "peers" and len(words) > 1:
        words[:2] = (words[1],) if instead else (words[1], words[0])  # who, then the type
    method = f"{EXACT}, {file}" if words == ["exact"] else shown_name(words)
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


def means_of_seeds(models: list[Model]) -> list[Model]:
    """Models of SparseSVC that differ in their seed, as one: means, at sizes asked for alike.

    A size is a number of bytes perhaps, so that numbers of vectors may differ a little.
    """
    kept: list[Model] = []
    groups: dict[Any, list[Model]] = {}
    for model in models:
        seeds = model.method == SPARSE or model.method.startswith(f"{SPARSE}, ")
        if not seeds or model.score is None or not model.vectors:
            kept.append(model)
        else:
            # within about five percent
            size = round(20 * float(np.log(model.vectors)))
            groups.setdefault((model.method, size), []).append(model)
    for (method, _), same in groups.items():
        seconds = mean([m.seconds for m in same if m.seconds is not None])
        note = f"mean of {len(same)} seeds" if len(same) > 1 else same[0].note
        score, vectors = (mean([getattr(m, name) for m in same]) for name in ("score", "vectors"))
        kept.append(Model(method, round(vectors or 0), score, seconds, note, same[0].counts))
    return kept


def one_exact(models: list[Model]) -> list[Model]:
    """The exact model of one of the files as the one of the set; the others keep their names."""
    names = {model.method for model in models}
    chosen = next((f"{EXACT}, {file}" for file in EXACT_FROM if f"{EXACT}, {file}" in names), None)
    return [replace(m, method=EXACT) if m.method == chosen else m for m in models]


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
    return _page(sets, tables, computers, passed, certified(folder)).html()


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


def certified(folder: Path) -> Tiles | None:
    """How many claims of certificates were compared with an independent solver, and how many fell.

    None where that was not measured (benchmarks.certificates).
    """
    try:
        cells = json.loads((folder / "certificates.json").read_text(encoding="utf-8"))["cells"]
        known = [cell for cell in cells.values() if "claims" in cell]
        problems, claims = (sum(cell[name] for cell in known) for name in ("problems", "claims"))
        wrong = sum(len(cell["false"]) for cell in known)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    return Tiles(
        [
            (f"{problems:,}", "random problems", "solved by us and by an interior-point method"),
            (f"{claims:,}", "claims of certificates", "distances from the optimum"),
            (f"{wrong:,}", "claims that were false", "compared one by one"),
        ]
    )


def _page(
    sets: dict[str, list[Model]],
    tables: list[Table],
    computers: list[tuple[str, str]],
    passed: list[str],
    trust: Tiles | None,
) -> Page:
    sets = {name: one_exact(means_of_seeds(models)) for name, models in sets.items()}
    ordered = sorted(sets, key=lambda name: -len(sets[name]))
    counts = Counter(model.method for name in ordered for model in sets[name])
    styles = _styles(
        in_order([method for method, _ in counts.most_common()]),
        [{model.method for model in sets[name]} for name in ordered],
    )
    alone: list[list[Any]] = []  # failures in sets where nothing else was measured
    comparisons: list[Comparison] = []
    for name in ordered:
        models = without_doubles(sets[name])
        if any(model.score is not None and model.counts for model in models):
            comparisons.append(Comparison(name, models, styles=styles, first=_first(models)))
        else:
            alone += [[name, model.method, model.score, model.note] for model in models]
    if alone:
        tables.append(
            Table(["set", "method", "accuracy, %", "note"], alone, "Sets without a model to take")
        )
    page = Page(
        "slimsvm benchmarks",
        "How few vectors a kernel SVM needs, how fast it is trained, and how good it is then: "
        "slimsvm and its peers on the same rows.",
        sets=comparisons,
    )
    if comparisons:
        page.section("How small can it be?", Panels("vectors", comparisons))
        page.section("How fast is it trained?", Text(SECONDS_ARE), Panels("seconds", comparisons))
    page.section(
        "Can I trust it?",
        *([trust] if trust else []),
        *map(Text, TRUST),
        Numbers(comparisons),
        Folded("Where these were measured", [Facts(computers)]),
        *([Text("Passed over: " + ", ".join(passed) + ".")] if passed else []),
    )
    if comparisons:
        page.section("All data sets", Answers(comparisons))
    page.section("Other measurements", *(Folded(table.caption, [table]) for table in tables))
    return page


def _first(models: list[Model]) -> list[str]:
    best: dict[str, float] = {}
    for model in models:
        if model.score is not None:
            best[model.method] = max(best.get(model.method, 0.0), model.score)
    return first_of(list(best), best)


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
