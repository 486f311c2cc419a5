"""The command tune, and the search of ``train --tune``."""

from __future__ import annotations

import json
from contextlib import redirect_stdout
from sys import stderr
from typing import Any

import click
import numpy as np

from slimsvm.cli.data import Request, read
from slimsvm.cli.options import positive, with_data
from slimsvm.cli.steps import targets
from slimsvm.report.words import plain

SHOWN = 5  # points


def search_for(machine: str, ctx: click.Context, **given: Any) -> Any:
    """The estimator that searches: for --machine svc or svr, with --n-basis a sparse one."""
    from slimsvm.search import SVCCV, SVRCV, SparseSVCCV

    if machine not in ("svc", "svr"):
        raise click.UsageError(f"--machine {machine} has no search; svc and svr have one.", ctx)
    if given.get("n_basis") is not None and machine == "svr":
        raise click.UsageError("A search with --n-basis is for svc.", ctx)
    kind = SVRCV if machine == "svr" else SVCCV if "n_basis" not in given else SparseSVCCV
    known = kind().get_params()
    for name in given:
        if name not in known:
            option = f"--{name.replace('_', '-')}"
            raise click.UsageError(f"{option} has no meaning for a search: it uses rbf.", ctx)
    return kind(**given)


def facts_of(search: Any) -> dict[str, Any]:
    """What a search found."""
    results = search.cv_results_
    points: list[dict[str, Any]] = []
    if results:
        mean = np.asarray(results["mean_test_score"], float)
        order = np.argsort(np.where(np.isfinite(mean), -mean, np.inf), kind="stable")[:SHOWN]
        points = [{**results["params"][k], "score": mean[k]} for k in order]
    return {
        "best_params": search.best_params_,
        "best_score": search.best_score_,
        "n_fits": search.n_fits_,
        "best_points": points,
        "shared": str(search.shared_),
    }


def say(facts: dict[str, Any]) -> None:
    """The same in words, to standard error."""
    for point in facts["best_points"]:
        words = ", ".join(f"{name} {value:.6g}" for name, value in point.items())
        click.echo(words, err=True)
    click.echo(facts["shared"], err=True)


def _one_of(name: str, *choices: str, help: str) -> Any:
    """An option with some choices, of which the first is the default."""
    about: Any = {"type": click.Choice(choices), "default": choices[0], "show_default": True}
    return click.option(name, help=help, **about)


@click.command()
@click.argument("data")
@_one_of("--machine", "svc", "svr", help="What to tune.")
@click.option("--n-basis", type=click.IntRange(min=1), help="Tune a sparse svc with so many.")
@_one_of(
    "--search",
    "race",
    "grid",
    help="race: all points on a part of the rows, the best of them on more; grid: all on all.",
)
@click.option("--cv", type=click.IntRange(min=2), help="Number of folds. [default: 5]")
@click.option("--scoring", help="What is to be large, by scikit-learn's name. [default: accuracy]")
@click.option("--max-time", type=positive, help="Limit on the seconds. [default: none]")
@click.option("--max-memory", type=positive, help="For kernel values, in MB. [default: 2000]")
@with_data
@click.pass_context
def tune(
    ctx: click.Context,
    /,
    data: str,
    machine: str,
    label_column: str | None,
    format: str | None,
    quiet: bool,
    as_json: bool,
    **given: Any,
) -> None:
    """Find C and gamma (and epsilon) for DATA by cross-validation; no model is written.

    The best point goes to standard output as options of ``slimsvm train``; the best five, and what
    the fits shared, to standard error. ``slimsvm train --tune`` does the same and trains. Features
    should be of similar size. At Ctrl-C the best point so far is taken.
    """
    given = {name: value for name, value in given.items() if value is not None}
    search = search_for(machine, ctx, **given)
    rows = read(data, format, Request(True, label_column, None))
    y = targets(rows, data, regression=machine == "svr")
    search.set_params(verbose=int(not quiet and stderr.isatty()))
    with redirect_stdout(stderr):
        search.fit(rows.X, y)
    facts = facts_of(search)
    if as_json:
        click.echo(json.dumps(plain(facts)))
    else:
        options = (f"--{name} {value:.6g}" for name, value in search.best_params_.items())
        click.echo(" ".join(options))
    if not quiet:
        say(facts)
