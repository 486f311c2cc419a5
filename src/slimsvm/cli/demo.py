"""``slimsvm demo``: SVC of slimsvm and of scikit-learn, and a sparse model, on two sets of data.

The results are a table and a picture.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.svm import SVC as ScikitLearnSVC

from slimsvm.cli.files import is_replaceable
from slimsvm.datasets import checkers
from slimsvm.estimators import SVC, SparseSVC
from slimsvm.persistence.atomic import replacing

Show = Callable[[str], Any]
N_BASIS = 50

COLUMNS = ("data", "model", "fit", "predict", "accuracy", "vectors")
NAMES = ("slimsvm", "scikit-learn", "slimsvm sparse")


@dataclass
class Case:
    """A set of data and the parameters for it."""

    name: str
    parameters: dict[str, Any]
    X: Any
    y: Any
    X_test: Any
    y_test: Any


@dataclass
class Outcome:
    """One model on one set of data: one line of the table."""

    data: str
    method: str  # its key in the JSON
    rows: int
    fit_seconds: float
    predict_seconds: float
    accuracy: float
    vectors: int


def run_demo(
    n_rows: int = 50_000,
    picture: str = "slimsvm-demo.png",
    n_jobs: int | None = -1,
    show: Show = print,
) -> dict[str, Any]:
    """Train, compare, draw.

    Parameters
    ----------
    n_rows : int
        Training rows of the checkerboard.
    picture : str
        File for the picture of the decision boundary.
    n_jobs : int or None
        Threads of our estimators; scikit-learn's has one.
    show : callable
        Takes each paragraph of the output.

    Returns
    -------
    dict
        ``compilation_seconds``, ``results`` (a list of dicts, one for each line of the table) and
        ``picture`` (None if it was not drawn).

    Examples
    --------
    >>> import os
    >>> from slimsvm.cli.demo import run_demo
    >>> lines = []
    >>> results = run_demo(500, picture=os.devnull, n_jobs=1, show=lines.append)
    >>> [line["method"] for line in results["results"]]
    ['slimsvm', 'scikit-learn', 'slimsvm sparse', 'slimsvm', 'scikit-learn', 'slimsvm sparse']
    """
    begin = time.perf_counter()
    warm_up(n_jobs)
    compilation = time.perf_counter() - begin
    show(
        f"compilation of all models shown here, once: {compilation:.1f} s (kept on disk; later "
        "runs load it; not part of the times below)"
    )

    outcomes: list[Outcome] = []
    models: list[Any] = []
    for case in cases(n_rows):
        show(
            f"training on {case.name}: {case.X.shape[0]:,} rows, {case.X.shape[1]} features, "
            f"{len(np.unique(case.y))} classes ..."
        )
        for name, estimator in zip(NAMES, contestants(case, n_jobs), strict=True):
            models.append(estimator)
            outcomes.append(race(case, name, estimator))
    show("")
    print_table(outcomes, show)
    for ours, theirs, sparse in zip(outcomes[::3], outcomes[1::3], outcomes[2::3], strict=True):
        ratio = theirs.fit_seconds / ours.fit_seconds
        words = (
            f"was {ratio:.1f} times as fast as"
            if ratio >= 1
            else f"took {1 / ratio:.1f} times as long as"
        )
        gain, points = (
            theirs.predict_seconds / sparse.predict_seconds,
            100 * (sparse.accuracy - theirs.accuracy),
        )
        show(f"{ours.data}: the fit {words} scikit-learn's")
        show(
            f"{ours.data}: {sparse.vectors} vectors instead of {theirs.vectors:,} predict "
            f"{gain:.0f} times as fast, accuracy {points:+.2f}; to find them took "
            f"{sparse.fit_seconds / ours.fit_seconds:.1f} times as long as our exact fit"
        )
    exported = export_and_try(models[-1], show)
    drawn = draw(models[:3], n_rows, picture, show)
    return {
        "export": exported,
        "compilation_seconds": compilation,
        "results": [asdict(outcome) for outcome in outcomes],
        "picture": picture if drawn else None,
    }


def export_and_try(model: Any, show: Show) -> dict[str, Any]:
    """The small model as a header in C; where there is a compiler, its answers beside ours."""
    from slimsvm.export.c import to_c

    rows, compiler = load_digits().data[:200] / 16.0, shutil.which("cc") or shutil.which("gcc")
    with tempfile.TemporaryDirectory() as folder:
        n_bytes = to_c(model, Path(folder, "model.h"), dtype="int8")
        words = f"digits: as one header in C (int8), the small model takes {n_bytes:,} bytes"
        if compiler is None:
            show(f"{words}; there is no C compiler to try it with")
            return {"bytes": n_bytes, "same": None}
        Path(folder, "main.c").write_text(MAIN)
        command = [compiler, "-std=c99", "-O2", "main.c", "-o", "main", "-lm"]
        subprocess.run(command, cwd=folder, check=True, capture_output=True)
        given = "\n".join(" ".join(map(str, row)) for row in rows.tolist())
        answer = subprocess.run(
            [Path(folder, "main")], input=given, capture_output=True, text=True, check=True
        )
    same = int(np.sum(np.array(answer.stdout.split(), int) == model.predict(rows)))
    show(f"{words}, and compiled it answers {same} of {len(rows)} rows as in Python")
    return {"bytes": n_bytes, "same": same}


MAIN = """#include <stdio.h>
#include "model.h"
int main(void) {
  static float x[SLIMSVM_N_FEATURES];
  int i;
  for (;;) {
    for (i = 0; i < SLIMSVM_N_FEATURES; i++) if (scanf("%f", &x[i]) != 1) return 0;
    printf("%ld\\n", (long)slimsvm_predict(x));
  }
}
"""


def warm_up(n_jobs: int | None) -> None:
    """Small fits that make Numba compile, or load, all that the demo needs.

    Their time must not count as training.
    """
    for case in cases(6000):
        for cache_size in (200, 20):  # MB: the kernel matrix fits, or it does not
            SVC(**case.parameters, cache_size=cache_size, n_jobs=n_jobs).fit(
                case.X, case.y
            ).predict(case.X_test[:1000])
        SparseSVC(5, **case.parameters, n_jobs=n_jobs, random_state=0).fit(
            case.X[:2000], case.y[:2000]
        ).predict(case.X_test[:1000])


def contestants(case: Case, n_jobs: int | None) -> tuple[Any, Any, Any]:
    """The estimators, in the order of NAMES."""
    return (
        SVC(**case.parameters, n_jobs=n_jobs),
        ScikitLearnSVC(**case.parameters),
        SparseSVC(N_BASIS, **case.parameters, n_jobs=n_jobs, random_state=0),
    )


def n_vectors(model: Any) -> int:
    """Support vectors, or basis vectors."""
    return int(model.n_basis_ if isinstance(model, SparseSVC) else len(model.support_))


def cases(n_rows: int) -> Iterator[Case]:
    """The checkerboard with the kernel width of Yu & Joachims (2008), and scikit-learn's digits."""
    yield Case(
        "checkers", {"C": 1.0, "gamma": 20.0}, *checkers(n_rows, seed=0), *checkers(20_000, seed=1)
    )
    X, y = load_digits(return_X_y=True)
    X_train, X_test, y_train, y_test = train_test_split(
        X / 16.0, y, test_size=0.3, random_state=0, stratify=y
    )
    yield Case("digits", {"C": 10.0, "gamma": 0.05}, X_train, y_train, X_test, y_test)


def race(case: Case, name: str, estimator: Any) -> Outcome:
    """Fit and predict with the clock running."""
    begin = time.perf_counter()
    estimator.fit(case.X, case.y)
    fitted = time.perf_counter()
    predicted = estimator.predict(case.X_test)
    end = time.perf_counter()
    accuracy = float(np.mean(predicted == case.y_test))
    return Outcome(
        case.name, name, len(case.y), fitted - begin, end - fitted, accuracy, n_vectors(estimator)
    )


def print_table(outcomes: list[Outcome], show: Show) -> None:
    """One line for each outcome; drawn by rich where it is installed."""
    cells = [
        (
            outcome.data,
            outcome.method,
            f"{outcome.fit_seconds:.2f} s",
            f"{outcome.predict_seconds:.2f} s",
            f"{100 * outcome.accuracy:.2f} %",
            f"{outcome.vectors:,}",
        )
        for outcome in outcomes
    ]
    try:
        from rich.console import Console
        from rich.table import Table
    except ImportError:
        widths = [
            max(len(line[column]) for line in [COLUMNS, *cells]) for column in range(len(COLUMNS))
        ]
        for line in [COLUMNS, tuple("-" * width for width in widths), *cells]:
            texts = [
                cell.ljust(width) if at < 2 else cell.rjust(width)
                for at, (cell, width) in enumerate(zip(line, widths, strict=True))
            ]
            show("  ".join(texts).rstrip())
        return
    table = Table(*COLUMNS)
    for column in table.columns[2:]:
        column.justify = "right"
    for at, line in enumerate(cells):
        table.add_row(
            *line,
            style="" if outcomes[at].method == "scikit-learn" else "bold",
            end_section=at % 3 == 2,
        )
    console = Console()
    with console.capture() as captured:
        console.print(table)
    show(captured.get().rstrip("\n"))


def draw(models: list[Any], n_rows: int, picture: str, show: Show) -> bool:
    """The decision functions over the checkerboard, with the boundary and some of the rows."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        show("no picture: it needs matplotlib, pip install 'slimsvm[plot]'")
        return False
    n_points = 160
    axis = np.linspace(-2.1, 2.1, n_points)
    grid = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    X, y = checkers(n_rows, seed=0)
    figure = Figure(figsize=(17, 6.5))
    panels = figure.subplots(1, 3, sharex=True, sharey=True)
    figure.subplots_adjust(left=0.04, right=0.99, bottom=0.05, top=0.88, wspace=0.04)
    for panel, name, model in zip(panels, NAMES, models, strict=True):
        values = model.decision_function(grid).reshape(n_points, n_points)
        panel.contourf(
            axis,
            axis,
            values,
            levels=np.linspace(-2, 2, 17),
            cmap="RdBu",
            extend="both",
            alpha=0.75,
        )
        panel.contour(axis, axis, values, levels=[0.0], colors="black", linewidths=1.5)
        some = slice(0, 1500)
        panel.scatter(
            X[some, 0], X[some, 1], c=np.where(y[some] > 0, "navy", "darkred"), s=3, linewidths=0
        )
        if isinstance(model, SparseSVC):
            panel.scatter(*model.basis_.T, marker="x", c="black", s=40)
        panel.set_title(f"{name}: {n_vectors(model):,} vectors")
        panel.set_aspect("equal")
        panel.set_xlim(axis[0], axis[-1])
        panel.set_ylim(axis[0], axis[-1])
    figure.suptitle(
        f"checkers, {n_rows:,} rows: decision function, its zero line, some rows (dots) and the "
        "basis (crosses)"
    )
    with opened(picture) as file:
        figure.savefig(file, format="png", dpi=110)
    show(f"picture of the decision boundary: {picture}")
    return True


@contextmanager
def opened(path: str) -> Iterator[Any]:
    """The file for the picture; an older one stays until the new one is complete."""
    with replacing(path) if is_replaceable(path) else open(path, "wb") as file:
        yield file
