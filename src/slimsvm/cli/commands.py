"""The commands of ``slimsvm``: predict, info, compress, convert and demo.

The commands train, tune, export and report have modules of their own;
:mod:`slimsvm.cli.program` finds them.

Results go to standard output, everything else to standard error. Exit codes: 0 done, 1 bad data or
model, 2 wrong usage, 130 interrupted with the model saved.
"""

from __future__ import annotations

import json
import time
import warnings
from typing import Any

import click
from numpy.typing import NDArray

from slimsvm.cli.data import read, widen
from slimsvm.cli.files import (
    ModelFile,
    as_lines,
    check_writable,
    format_by_name,
    looks_like_model,
    same_file,
    write_bytes,
    write_model,
)
from slimsvm.cli.options import (
    foreign_option,
    format_option,
    jobs_option,
    json_option,
    label_option,
    positive,
    quiet_option,
    seed_option,
    to_option,
    with_data,
)
from slimsvm.cli.steps import (
    finish,
    labelled_rows,
    request_for,
    save_whatever_happens,
    say_status,
    score,
    vectors_in_words,
)
from slimsvm.cli.streaming import (
    Tally,
    opened_to_predict,
    predicted,
    streams,
)
from slimsvm.compression import compress as compressed
from slimsvm.notebook import size_in_words
from slimsvm.report.speed import measured
from slimsvm.report.words import describe, describe_in_words, plain
from slimsvm.sources import OpenedRows

Array = NDArray[Any]


@click.command()
@click.argument("data")
@click.argument("model")
@click.argument("output", required=False, default="-")
@click.option("--decision", is_flag=True, help="Write decision values in place of labels.")
@click.option(
    "--n-features",
    type=click.IntRange(min=1),
    help="Number of features, for models of LIBSVM and SVM-light. [default: as in DATA]",
)
@foreign_option
@with_data
@click.pass_context
def predict(
    ctx: click.Context,
    data: str,
    model: str,
    output: str,
    decision: bool,
    n_features: int | None,
    machine: str,
    n_jobs: int,
    label_column: str | None,
    format: str | None,
    quiet: bool,
    as_json: bool,
) -> None:
    """Predict the rows of DATA with MODEL, one line for each row, to OUTPUT or standard output.

    Where DATA has labels, the accuracy or the mean squared error is shown too. In CSV and Parquet,
    columns are found by their names if the model was trained with names; otherwise the label column
    may be left out. With --json and no OUTPUT, the predictions are in the JSON.
    """
    if data == model == "-":
        raise click.UsageError("Data and model cannot both come from standard input.", ctx)
    if looks_like_model(data):
        raise click.UsageError(
            f"{data} is a model. The order is: slimsvm predict DATA MODEL [OUTPUT].", ctx
        )
    if same_file(data, output) or same_file(model, output):
        raise click.UsageError("OUTPUT is one of the input files.", ctx)
    check_writable(output)
    file = ModelFile(model)
    estimator = file.load(machine, n_features)
    if data != "-" and format is None and streams(data):
        rows = opened_to_predict(data, estimator, label_column)
        shown = file.format != "slim" and n_features is None and rows.names is None
        if shown and rows.n_features_in > estimator.n_features_in_:
            estimator = file.load(machine, rows.n_features_in)
        estimator.set_params(n_jobs=n_jobs)
        about: Any = {"decision": decision, "as_json": as_json}
        found = _predict_streaming(rows, output, estimator, **about)
        _say_scores({"model": model, **found}, quiet, as_json)
        return
    few = read(
        data,
        format,
        request_for(
            estimator, None, label_column, any_width=file.format != "slim" and n_features is None
        ),
    )
    # the model's file only shows features that its support vectors have
    if few.X.shape[1] > estimator.n_features_in_:
        estimator = file.load(machine, few.X.shape[1])
    X = widen(few.X, estimator.n_features_in_)
    estimator.set_params(n_jobs=n_jobs)
    begin = time.perf_counter()
    # they were compared when the data was read
    warnings.filterwarnings("ignore", "X does not have valid feature names")
    has_values = decision and hasattr(estimator, "decision_function")
    values = estimator.decision_function(X) if has_values else estimator.predict(X)
    labels = estimator.predict(X) if has_values and few.y is not None else values
    scores = {} if few.y is None else score(estimator, labels, few.y)
    facts = {
        "rows": X.shape[0],
        "model": model,
        "predict_seconds": time.perf_counter() - begin,
        **scores,
    }
    if as_json and output == "-":
        facts["decision" if decision else "predictions"] = values.tolist()
    else:
        write_bytes(output, as_lines(values))
    _say_scores(facts, quiet, as_json)


def _say_scores(facts: dict[str, Any], quiet: bool, as_json: bool) -> None:
    """How many rows were predicted, how quickly, and how well."""
    if as_json:
        click.echo(json.dumps(plain(facts)))
    if not quiet:
        n_rows, seconds = facts["rows"], facts["predict_seconds"]
        click.echo(f"{n_rows:,} rows in {seconds:.2f} s", err=True)
        if "accuracy" in facts:
            click.echo(
                f"accuracy {100 * facts['accuracy']:.4g} % ({facts['correct']:,} of {n_rows:,})",
                err=True,
            )
        if "mean_squared_error" in facts:
            click.echo(f"mean squared error {facts['mean_squared_error']:.6g}", err=True)


def _predict_streaming(
    rows: OpenedRows,
    output: str,
    estimator: Any,
    *,
    decision: bool,
    as_json: bool,
) -> dict[str, Any]:
    """Predict rows block by block, however many they are; what there is to say of it."""
    tally = Tally()
    begin = time.perf_counter()
    warnings.filterwarnings("ignore", "X does not have valid feature names")
    has_values = decision and hasattr(estimator, "decision_function")
    said = predicted(rows, estimator, has_values, tally)
    facts: dict[str, Any] = {}
    if as_json and output == "-":
        facts["decision" if decision else "predictions"] = [
            of for some in said for of in some.tolist()
        ]
    else:
        write_bytes(output, (line for some in said for line in as_lines(some)))
    seconds = time.perf_counter() - begin
    return {"rows": tally.rows, "predict_seconds": seconds, **tally.facts(), **facts}


@click.command()
@click.argument("model")
@foreign_option
@jobs_option
@json_option
def info(model: str, machine: str, n_jobs: int, as_json: bool) -> None:
    """Show what is in MODEL, and how long a prediction takes here.

    That is kernel, C, support or basis vectors, how the training ended, and sizes.
    """
    file = ModelFile(model)
    estimator = file.load(machine)
    facts = {**describe(estimator), "format": file.format, "bytes": file.n_bytes, **file.about()}
    facts |= measured(estimator, n_jobs)
    click.echo(json.dumps(plain(facts)) if as_json else describe_in_words(facts))


@click.command()
@click.argument("model")
@click.argument("out")
@click.option(
    "--n-basis", type=click.IntRange(min=1), required=True, help="Number of vectors that remain."
)
@click.option(
    "--data", help="Training data: the small model is tuned to it, and is more accurate then."
)
@click.option("--max-time", type=positive, help="Limit on the seconds. [default: none]")
@seed_option
@jobs_option
@label_option
@format_option
@to_option
@foreign_option
@quiet_option
@json_option
@click.pass_context
def compress(
    ctx: click.Context,
    /,
    model: str,
    out: str,
    n_basis: int,
    data: str | None,
    max_time: float | None,
    random_state: int | None,
    n_jobs: int,
    label_column: str | None,
    format: str | None,
    to: str | None,
    machine: str,
    quiet: bool,
    as_json: bool,
) -> None:
    """Replace MODEL by one with few vectors and nearly the same decisions, and write it to OUT.

    Prediction takes time in proportion to the number of vectors. At Ctrl-C the best model so far is
    saved, and the exit code is 130.
    """
    if model == data == "-":
        raise click.UsageError("Data and model cannot both come from standard input.", ctx)
    if out == "-" and as_json:
        raise click.UsageError("The model and the JSON cannot both go to standard output.", ctx)
    if same_file(model, out) or (data is not None and same_file(data, out)):
        raise click.UsageError("OUT is one of the input files.", ctx)
    check_writable(out)
    file = ModelFile(model)
    estimator = file.load(machine)
    X = y = None
    if data is not None:
        estimator, X, y = labelled_rows(file, estimator, machine, data, format, label_column)
        # they were compared when the data was read
        warnings.filterwarnings("ignore", "X does not have valid feature names")
    begin = time.perf_counter()
    small = compressed(
        estimator, n_basis, X, y, random_state=random_state, n_jobs=n_jobs, max_time=max_time
    )
    facts: dict[str, Any] = {"seconds": time.perf_counter() - begin}
    if X is not None:
        for name, each in (("before", estimator), ("after", small)):
            facts[name] = score(each, each.set_params(n_jobs=n_jobs).predict(X), y)
    small.set_params(n_jobs=None)  # it belongs to this run, not to the model
    n_bytes = save_whatever_happens(small, out, to or format_by_name(out) or "slim")
    facts |= {"model": model, "out": out, "bytes": n_bytes}
    if as_json:
        click.echo(json.dumps(plain({**describe(small), **facts})))
    if not quiet:
        click.echo(
            f"{vectors_in_words(estimator)} to {vectors_in_words(small)} in "
            f"{facts['seconds']:.2f} s",
            err=True,
        )
    say_status(small, quiet)
    if not quiet:
        for name in facts.get("after", {}):
            if name != "correct":
                before, after = facts["before"][name], facts["after"][name]
                click.echo(
                    f"{name.replace('_', ' ')} on the data: {before:.6g} before, {after:.6g} after",
                    err=True,
                )
    finish(ctx, small, out, n_bytes, quiet)


@click.command()
@click.argument("model")
@click.argument("out")
@to_option
@foreign_option
@json_option
@quiet_option
@click.pass_context
def convert(
    ctx: click.Context,
    /,
    model: str,
    out: str,
    to: str | None,
    machine: str,
    as_json: bool,
    quiet: bool,
) -> None:
    """Write MODEL to OUT in another format: .slim, .libsvm or .model, .svmlight."""
    format = to or format_by_name(out)
    if format is None:
        raise click.UsageError(f"The extension of {out} names no format; name it with --to.", ctx)
    if out == "-" and as_json:
        raise click.UsageError("The model and the JSON cannot both go to standard output.", ctx)
    estimator = ModelFile(model).load(machine)
    n_bytes = write_model(estimator, out, format)
    if as_json:
        click.echo(json.dumps({"model": model, "out": out, "format": format, "bytes": n_bytes}))
    if not quiet:
        click.echo(
            f"model written to {'standard output' if out == '-' else out} "
            f"({size_in_words(n_bytes)})",
            err=True,
        )


@click.command()
@click.option(
    "--rows",
    type=click.IntRange(min=200),
    default=50_000,
    show_default=True,
    help="Training rows of the generated data.",
)
@click.option(
    "--picture",
    default="slimsvm-demo.png",
    show_default=True,
    help="File for the picture of the decision boundary.",
)
@jobs_option
@json_option
def demo(rows: int, picture: str, n_jobs: int, as_json: bool) -> None:
    """Train on generated data and on scikit-learn's digits, beside scikit-learn's SVC.

    Prints a table and draws the decision boundary.
    """
    from slimsvm.cli.demo import run_demo

    check_writable(picture)
    results = run_demo(rows, picture, n_jobs, show=lambda text: click.echo(text, err=as_json))
    if as_json:
        click.echo(json.dumps(plain(results)))
