"""The command ``slimsvm report``: a page about a model."""

from __future__ import annotations

import json
import os
import warnings

import click

from slimsvm.cli.files import ModelFile, check_writable, looks_like_model, same_file, write_bytes
from slimsvm.cli.options import foreign_option, with_data
from slimsvm.cli.steps import labelled_rows
from slimsvm.estimators import OneClassSVM
from slimsvm.notebook import size_in_words
from slimsvm.report import model_page


@click.command()
@click.argument("model")
@click.option(
    "--data", help="Rows with labels to try the model on; better not those it was trained on."
)
@click.option("--output", help="File for the page; - for standard output. [default: MODEL.html]")
@click.option(
    "--image-shape",
    type=click.IntRange(min=1),
    nargs=2,
    metavar="H W",
    help="Height and width, if rows are pictures. [default: a square]",
)
@foreign_option
@with_data
@click.pass_context
def report(
    ctx: click.Context,
    model: str,
    data: str | None,
    output: str | None,
    image_shape: tuple[int, int] | None,
    machine: str,
    n_jobs: int,
    label_column: str | None,
    format: str | None,
    quiet: bool,
    as_json: bool,
) -> None:
    """Write a page about MODEL: one HTML file that needs no network.

    It shows what the model is, its certificate, how the training went, how accuracy falls with the
    number of vectors, the confusion matrix on DATA, and the vectors as pictures where rows are
    pictures.
    """
    if model == data == "-":
        raise click.UsageError("Data and model cannot both come from standard input.", ctx)
    if model == "-" and output is None:
        raise click.UsageError(
            "With a model from standard input, name the file for the page with --output.", ctx
        )
    output = output or f"{model}.html"
    if output == "-" and as_json:
        raise click.UsageError("The page and the JSON cannot both go to standard output.", ctx)
    if same_file(model, output) or (data is not None and same_file(data, output)):
        raise click.UsageError("OUTPUT is one of the input files.", ctx)
    if data is not None and looks_like_model(data):
        raise click.UsageError(f"{data} is a model, and --data is for rows with labels.", ctx)
    check_writable(output)
    file = ModelFile(model)
    estimator = file.load(machine)
    X = y = None
    if data is not None:
        needed = None if isinstance(estimator, OneClassSVM) else True
        estimator, X, y = labelled_rows(
            file, estimator, machine, data, format, label_column, needed
        )
    n_features = estimator.n_features_in_
    if image_shape is not None and image_shape[0] * image_shape[1] != n_features:
        raise click.UsageError(
            f"--image-shape {image_shape[0]} {image_shape[1]} does not fit the {n_features} "
            "features of the model.",
            ctx,
        )
    # they were compared when the data was read
    warnings.filterwarnings("ignore", "X does not have valid feature names")
    name = "standard input" if model == "-" else os.path.basename(model)
    facts = {"format": file.format, "bytes": file.n_bytes}
    page = model_page(
        estimator, X, y, name=name, image_shape=image_shape, n_jobs=n_jobs, facts=facts
    ).encode()
    write_bytes(output, [page])
    if as_json:
        click.echo(json.dumps({"model": model, "output": output, "bytes": len(page)}))
    if not quiet:
        click.echo(
            f"page written to {'standard output' if output == '-' else output} "
            f"({size_in_words(len(page))})",
            err=True,
        )
