"""The commands of ``slimsvm``: train, predict, info, compress, convert and demo.

The command report has a module of its own; :mod:`slimsvm.cli.program` finds both.

Results go to standard output, everything else to standard error. Exit codes: 0 done, 1 bad data or
model, 2 wrong usage, 130 interrupted with the model saved.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from contextlib import redirect_stdout
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray

from slimsvm.cli.data import Data, Request, in_serial_order, read, widen
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
    ESTIMATORS,
    Gamma,
    Number,
    foreign_option,
    format_option,
    jobs_option,
    json_option,
    label_option,
    positive,
    quiet_option,
    seed_option,
    share,
    sparse_options,
    to_option,
    with_data,
)
from slimsvm.cli.steps import (
    estimator_class,
    labelled_rows,
    parse_class_weight,
    request_for,
    save_whatever_happens,
    score,
    targets,
    vectors_in_words,
)
from slimsvm.cli.streaming import (
    Tally,
    is_large,
    is_many,
    labels_of_all,
    opened_to_predict,
    opened_to_train,
    passes_shown,
    predicted,
    read_whole,
    streams,
)
from slimsvm.compression import compress as compressed
from slimsvm.kernels import KERNELS
from slimsvm.notebook import size_in_words
from slimsvm.report.speed import measured
from slimsvm.report.words import describe, describe_in_words, plain
from slimsvm.sources import OpenedRows

Array = NDArray[Any]

INTERRUPTED = 130


@click.command()
@click.argument("data")
@click.argument("model", required=False)
@click.option(
    "--machine",
    type=click.Choice(list(ESTIMATORS)),
    default="svc",
    show_default=True,
    help="What to train.",
)
@click.option("--C", "C", type=positive, help="Price of a margin violation. [default: 1]")
@click.option("--kernel", type=click.Choice(sorted(KERNELS)), help="[default: rbf]")
@click.option("--gamma", type=Gamma(), help="Of rbf, laplacian, poly and sigmoid. [default: scale]")
@click.option("--degree", type=click.IntRange(min=0), help="Of poly. [default: 3]")
@click.option("--coef0", type=Number(), help="Of poly and sigmoid. [default: 0]")
@click.option("--nu", type=share, help="Of nu-svc, nu-svr and one-class. [default: 0.5]")
@click.option(
    "--epsilon", type=Number(min=0), help="Half the width of the tube of svr. [default: 0.1]"
)
@click.option(
    "--tol",
    type=positive,
    help=(
        "Violation of the optimality conditions, or with --n-basis the relative gap. [default: "
        "0.001]"
    ),
)
@click.option("--cache-size", type=positive, help="Memory for kernel values, in MB. [default: 200]")
@click.option(
    "--max-iter",
    type=click.IntRange(min=-1),
    help="Limit on the iterations; -1: none. [default: -1; 1000 with --n-basis]",
)
@click.option("--max-time", type=positive, help="Limit on the seconds of the fit. [default: none]")
@click.option(
    "--checkpoint",
    metavar="FILE",
    help="Keep the fit in FILE, a model at any moment, and go on from it if it is there.",
)
@click.option(
    "--checkpoint-every",
    type=positive,
    default=60.0,
    show_default=True,
    help="Seconds from one writing of the checkpoint to the next.",
)
@click.option(
    "--class-weight",
    multiple=True,
    metavar="balanced|LABEL=WEIGHT",
    help="Factors of C; may be repeated, once for each label.",
)
@click.option(
    "--no-shrinking",
    "shrinking",
    flag_value=False,
    type=bool,
    default=None,
    help="Keep all variables in view.",
)
@click.option(
    "--n-features",
    type=click.IntRange(min=1),
    help="Number of features, where the data may not show the last. [default: as in DATA]",
)
@click.option("--tune", is_flag=True, help="Choose C and gamma (and epsilon) by cross-validation.")
@click.option(
    "--stream/--no-stream",
    "stream",
    default=None,
    help="Read DATA block by block in every pass, or at once. [default: if it is larger than half "
    "of the free memory]",
)
@sparse_options
@jobs_option
@label_option
@format_option
@to_option
@click.option(
    "--verbose/--quiet",
    "verbose",
    default=None,
    help="Show progress, or nothing. [default: progress on a terminal]",
)
@json_option
@click.pass_context
def train(
    ctx: click.Context,
    /,
    data: str,
    model: str | None,
    machine: str,
    checkpoint: str | None,
    checkpoint_every: float,
    class_weight: tuple[str, ...],
    n_features: int | None,
    tune: bool,
    label_column: str | None,
    format: str | None,
    to: str | None,
    stream: bool | None,
    verbose: bool | None,
    as_json: bool,
    **parameters: Any,
) -> None:
    """Train a model on DATA and write it to MODEL (DATA.slim if left out).

    DATA is a file; or a folder or a pattern such as 'data/*.parquet', whose files are one data set.
    With --stream they need not fit into memory: svc, svr and the models of --n-basis.

    The extension of MODEL decides its format: .libsvm and .model for LIBSVM, .svmlight for
    SVM-light, slimsvm's own otherwise. Ctrl-C stops the fit, saves the model so far and ends with
    exit code 130. Options that are left out have the defaults of the classes, which are those of
    scikit-learn; only --n-jobs differs. With --n-basis, the model is a SparseSVC or SparseSVR,
    which predicts faster the fewer vectors it has. With --tune, C and gamma come from a search.
    """
    if model is None and (data == "-" or is_many(data)):
        what = "standard input" if data == "-" else "several files"
        raise click.UsageError(f"With data from {what}, name the file for the model.", ctx)
    model = model or f"{data}.slim"
    if model == "-" and as_json:
        raise click.UsageError("The model and the JSON cannot both go to standard output.", ctx)
    if same_file(data, model):
        raise click.UsageError("MODEL is the file of the data.", ctx)
    if looks_like_model(data):
        raise click.UsageError(f"{data} is a model. The order is: slimsvm train DATA [MODEL].", ctx)
    check_writable(model)  # now, not after hours of training
    parameters = {name: value for name, value in parameters.items() if value is not None}
    given = [*parameters, *(["class_weight"] if class_weight else [])]
    kind = estimator_class(machine, given, ctx)
    if tune:
        from slimsvm.cli.tune import facts_of, say, search_for

        search = search_for(machine, ctx, **{**dict.fromkeys(given), **parameters})

    begin = time.perf_counter()
    unsupervised = machine == "one-class"
    labelled = label_column is not None if unsupervised else True
    wanted = Request(
        labelled, label_column, n_features, precomputed=parameters.get("kernel") == "precomputed"
    )
    regression = machine in ("svr", "nu-svr")
    quiet = verbose is False
    shown = sys.stderr.isatty() if verbose is None else verbose
    able = hasattr(kind, "_solved_on_rows")
    if stream is None:
        stream = able and not tune and format is None and data != "-" and is_large(data)
    if stream and tune:
        raise click.UsageError("--tune needs all rows in memory: leave --stream out.", ctx)
    if stream and not able:
        raise click.UsageError(
            f"--machine {machine} needs all rows in memory; --stream is for svc and svr, and with "
            "--n-basis for models of few vectors.",
            ctx,
        )
    rows: Any
    if stream or (is_many(data) and not unsupervised):
        far = opened_to_train(data, label_column)
        far.shown = passes_shown(far) if shown and stream else None
        rows = Data(far) if stream else read_whole(far)
        y = None if stream else targets(rows, data, regression)
    else:
        rows = in_serial_order(read(data, format, wanted), data)
        y = None if unsupervised else targets(rows, data, regression)
    if class_weight:
        labels = labels_of_all(rows.X) if stream else y
        parameters["class_weight"] = parse_class_weight(class_weight, labels, ctx)
    read_seconds = time.perf_counter() - begin

    estimator = search.set_params(**parameters) if tune else kind(**parameters)
    estimator.set_params(verbose=int(shown))
    if checkpoint is not None and tune:
        raise click.UsageError("--checkpoint keeps one fit; --tune makes many.", ctx)
    if checkpoint is not None:
        from slimsvm.checkpoint import Checkpoint

        estimator.set_callbacks(Checkpoint(checkpoint, every=checkpoint_every))
    begin = time.perf_counter()
    with redirect_stdout(sys.stderr):  # progress must not mix with results
        estimator.fit(rows.X, y)
    found = facts_of(estimator) if tune else {}
    estimator = estimator.best_estimator_ if tune else estimator
    fit_seconds = time.perf_counter() - begin
    estimator.set_params(verbose=0, n_jobs=None)  # these belong to this run, not to the model
    if rows.names and len(set(rows.names)) == len(rows.names):
        # so that predict finds the columns by name
        estimator.feature_names_in_ = np.array(rows.names, dtype=object)
    n_bytes = save_whatever_happens(estimator, model, to or format_by_name(model) or "slim")

    n_rows, n_columns = (rows.X.n, rows.X.n_features_in) if stream else rows.X.shape
    facts = {
        "rows": n_rows,
        "model": model,
        "bytes": n_bytes,
        "read_seconds": read_seconds,
        "fit_seconds": fit_seconds,
        **({"search": found} if tune else {}),
    }
    if as_json:
        click.echo(json.dumps(plain({**describe(estimator), **facts})))
    if tune and not quiet:
        say(found)
    if not quiet:
        classes = f", {len(estimator.classes_)} classes" if hasattr(estimator, "classes_") else ""
        click.echo(
            f"{n_rows:,} rows, {n_columns:,} features{classes}, read in {read_seconds:.2f} s",
            err=True,
        )
        click.echo(f"{vectors_in_words(estimator)}, fitted in {fit_seconds:.2f} s", err=True)
    _say_status(estimator, quiet)
    _finish(ctx, estimator, model, n_bytes, quiet)


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
    _say_status(small, quiet)
    if not quiet:
        for name in facts.get("after", {}):
            if name != "correct":
                before, after = facts["before"][name], facts["after"][name]
                click.echo(
                    f"{name.replace('_', ' ')} on the data: {before:.6g} before, {after:.6g} after",
                    err=True,
                )
    _finish(ctx, small, out, n_bytes, quiet)


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


def _say_status(estimator: Any, quiet: bool) -> None:
    """How the training ended; where it did not converge, in any case."""
    if not quiet or not estimator.status_.converged:
        click.echo(str(estimator.status_), err=True)


def _finish(ctx: click.Context, estimator: Any, where: str, n_bytes: int, quiet: bool) -> None:
    """Say where the model is, and end with the exit code of a training that was interrupted."""
    if not quiet:
        click.echo(
            f"model written to {'standard output' if where == '-' else where} "
            f"({size_in_words(n_bytes)})",
            err=True,
        )
    if estimator.status_.reason == "interrupted":
        ctx.exit(INTERRUPTED)
