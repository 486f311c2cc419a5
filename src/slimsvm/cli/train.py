"""The command train of ``slimsvm``."""

from __future__ import annotations

import json
import sys
import time
from contextlib import redirect_stdout
from typing import Any

import click
import numpy as np

from slimsvm.cli.data import Data, Request, in_serial_order, read
from slimsvm.cli.files import (
    check_writable,
    format_by_name,
    looks_like_model,
    same_file,
)
from slimsvm.cli.options import (
    ESTIMATORS,
    Gamma,
    Number,
    format_option,
    jobs_option,
    json_option,
    label_option,
    positive,
    share,
    sparse_options,
    to_option,
)
from slimsvm.cli.steps import (
    estimator_class,
    finish,
    parse_class_weight,
    save_whatever_happens,
    say_status,
    targets,
    vectors_in_words,
)
from slimsvm.cli.streaming import (
    is_large,
    is_many,
    labels_of_all,
    opened_to_train,
    passes_shown,
    read_whole,
)
from slimsvm.kernels import KERNELS
from slimsvm.report.words import describe, plain


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
    model = _file_for(model, data, as_json, ctx)
    parameters = {name: value for name, value in parameters.items() if value is not None}
    given = [*parameters, *(["class_weight"] if class_weight else [])]
    kind = estimator_class(machine, given, ctx)
    if tune:
        from slimsvm.cli.tune import facts_of, say, search_for

        search = search_for(machine, ctx, **{**dict.fromkeys(given), **parameters})

    begin = time.perf_counter()
    quiet = verbose is False
    shown = sys.stderr.isatty() if verbose is None else verbose
    streaming = _is_streaming(stream, kind, machine, (data, format), tune, ctx)
    labelled = label_column is not None if machine == "one-class" else True
    gram = parameters.get("kernel") == "precomputed"
    wanted = Request(labelled, label_column, n_features, precomputed=gram)
    rows, y = _read(data, format, wanted, machine, streaming, bool(shown))
    if class_weight:
        labels = labels_of_all(rows.X) if streaming else y
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

    n_rows, n_columns = (rows.X.n, rows.X.n_features_in) if streaming else rows.X.shape
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
    say_status(estimator, quiet)
    finish(ctx, estimator, model, n_bytes, quiet)


def _file_for(model: str | None, data: str, as_json: bool, ctx: click.Context) -> str:
    """Where the model goes; what cannot be written is refused now, not after hours of training."""
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
    check_writable(model)
    return model


def _is_streaming(
    asked: bool | None,
    kind: Any,
    machine: str,
    source: tuple[str, str | None],
    tune: bool,
    ctx: click.Context,
) -> bool:
    """Whether rows are read block by block in every pass; ``source`` is the data and its format."""
    data, format = source
    able = hasattr(kind, "_solved_on_rows")
    if asked is None:
        return able and not tune and format is None and data != "-" and is_large(data)
    if asked and tune:
        raise click.UsageError("--tune needs all rows in memory: leave --stream out.", ctx)
    if asked and not able:
        raise click.UsageError(
            f"--machine {machine} needs all rows in memory; --stream is for svc and svr, and with "
            "--n-basis for models of few vectors.",
            ctx,
        )
    return asked


def _read(
    data: str, format: str | None, wanted: Request, machine: str, streaming: bool, shown: bool
) -> tuple[Any, Any]:
    """Rows, and their labels or targets; with --stream the rows know these."""
    unsupervised, regression = machine == "one-class", machine in ("svr", "nu-svr")
    if streaming or (is_many(data) and not unsupervised):
        far = opened_to_train(data, wanted.label_column)
        far.shown = passes_shown(far) if shown and streaming else None
        rows: Any = Data(far) if streaming else read_whole(far)
        return rows, None if streaming else targets(rows, data, regression)
    rows = in_serial_order(read(data, format, wanted), data)
    return rows, None if unsupervised else targets(rows, data, regression)
