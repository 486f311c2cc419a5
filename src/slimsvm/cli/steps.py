"""What commands are made of: choice of the estimator, data, labels, scores, saving, last words."""

from __future__ import annotations

from typing import Any

import click
import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_regressor

from slimsvm.cli.data import Data, Request, read, widen
from slimsvm.cli.files import ModelFile, write_model
from slimsvm.cli.options import ESTIMATORS, SPARSE_ESTIMATORS
from slimsvm.estimators import OneClassSVM
from slimsvm.notebook import size_in_words

Array = NDArray[Any]
INTERRUPTED = 130  # the exit code


def estimator_class(machine: str, names: list[str], ctx: click.Context) -> Any:
    """The class to train, by --machine and whether --n-basis is among the names.

    Options that mean nothing for the class are refused.
    """
    sparse = "n_basis" in names
    if sparse and machine not in SPARSE_ESTIMATORS:
        raise click.UsageError(
            f"--n-basis has no meaning for --machine {machine}, only for "
            f"{' and '.join(SPARSE_ESTIMATORS)}.",
            ctx,
        )
    kind = SPARSE_ESTIMATORS[machine] if sparse else ESTIMATORS[machine]
    known = kind().get_params()
    for name in names:
        if name not in known:
            option = f"--{name.replace('_', '-')}"
            if (
                machine in SPARSE_ESTIMATORS
                and not sparse
                and name in SPARSE_ESTIMATORS[machine]().get_params()
            ):
                raise click.UsageError(f"{option} has a meaning only with --n-basis.", ctx)
            raise click.UsageError(
                f"{option} has no meaning for --machine {machine}{' with --n-basis' * sparse}.", ctx
            )
    return kind


def request_for(
    estimator: Any, labelled: bool | None, label_column: str | None, any_width: bool
) -> Request:
    """What data must be like for a model."""
    classes = getattr(estimator, "classes_", None)
    first = getattr(estimator, "estimators_", [estimator])[0]  # of a CrossTraining
    return Request(
        labelled=labelled,
        label_column=label_column,
        n_features=estimator.n_features_in_,
        any_width=any_width,
        names=getattr(estimator, "feature_names_in_", None),
        text_labels=classes is not None and classes.dtype.kind in "OSUT",
        precomputed=getattr(getattr(first, "kernel_", None), "name", "linear") == "precomputed",
    )


def vectors_in_words(estimator: Any) -> str:
    """How many vectors a model has, and of which kind."""
    if hasattr(estimator, "basis_coef_"):
        return f"{estimator.n_basis_:,} basis vectors"
    return (
        f"{len(estimator.support_):,} support vectors"
        if hasattr(estimator, "support_")
        else "linear weights"
    )


def targets(rows: Data, name: str, regression: bool) -> Array:
    """The labels as the estimator wants them.

    They are numbers for regression; for classes, integers where they are whole numbers.
    """
    y = np.asarray(rows.y)
    if regression and y.dtype.kind not in "fiub":
        raise ValueError(f"{name}: the labels are text, and regression needs numbers")
    if (
        not regression
        and y.dtype.kind == "f"
        and np.all(y == np.floor(y))
        and np.all(np.abs(y) < 2**53)
    ):
        return y.astype(np.int64)
    return y


def labelled_rows(
    file: ModelFile,
    estimator: Any,
    machine: str,
    data: str,
    format: str | None,
    label_column: str | None,
    labelled: bool | None = True,
) -> tuple[Any, Any, Array | None]:
    """The model of a file, and rows and labels for it.

    Model and rows have the same number of features, and the labels are as the model wants them.
    With ``labelled=None`` the rows may be without labels, which are None then.
    """
    rows = read(
        data,
        format,
        request_for(estimator, labelled, label_column, any_width=file.format != "slim"),
    )
    if rows.y is None and labelled:
        raise ValueError(
            f"{data}: there are no labels, and they are needed; name their column with "
            "--label-column"
        )
    y = None if rows.y is None else targets(rows, data, regression=is_regressor(estimator))
    # the model's file only shows features that its support vectors have
    if rows.X.shape[1] > estimator.n_features_in_:
        estimator = file.load(machine, rows.X.shape[1])
    return estimator, widen(rows.X, estimator.n_features_in_), y


def save_whatever_happens(estimator: Any, path: str, format: str) -> int:
    """Save a model; if its format cannot hold it, save it in our own format instead, and fail.

    So the training is not lost.
    """
    try:
        return write_model(estimator, path, format)
    except ValueError as error:
        if format == "slim":
            raise
        rescue = ("model" if path == "-" else path) + ".slim"
        write_model(estimator, rescue, "slim")
        raise ValueError(f"{error} The model was saved as {rescue} instead.") from error


def parse_class_weight(words: tuple[str, ...], y: Any, ctx: click.Context) -> Any:
    """From the texts of the option to what the classes take."""
    if words == ("balanced",):
        return "balanced"
    known = {
        (f"{label:.17g}" if isinstance(label, float) else str(label)): label
        for label in np.unique(y).tolist()
    }
    weights = {}
    for word in words:
        text, equals, weight = word.rpartition("=")
        try:
            number = float(weight)
        except ValueError:
            number = -1.0
        if not equals or not 0 < number < np.inf:
            raise click.UsageError(
                "--class-weight takes 'balanced' or LABEL=WEIGHT with a positive number, not "
                f"{word!r}.",
                ctx,
            )
        if text.lstrip("+") not in known:
            raise click.UsageError(
                f"--class-weight {word}: no row has the label {text!r}; there are "
                f"{', '.join(list(known)[:10])}.",
                ctx,
            )
        weights[known[text.lstrip("+")]] = number
    return weights


def score(estimator: Any, predicted: Any, y: Any) -> dict[str, Any]:
    """How well the predictions agree with the labels, if there are any that can be compared."""
    if (predicted.dtype.kind in "fiub") != (y.dtype.kind in "fiub"):  # numbers and text
        return {}
    if is_regressor(estimator):
        return {"mean_squared_error": float(np.mean((predicted - y) ** 2))}
    if isinstance(estimator, OneClassSVM) and not np.isin(y, (-1, 1)).all():
        return {}
    correct = int(np.sum(predicted == y))
    return {"accuracy": correct / len(y), "correct": correct}


def say_status(estimator: Any, quiet: bool) -> None:
    """How the training ended; where it did not converge, in any case."""
    if not quiet or not estimator.status_.converged:
        click.echo(str(estimator.status_), err=True)


def finish(ctx: click.Context, estimator: Any, where: str, n_bytes: int, quiet: bool) -> None:
    """Say where the model is, and end with the exit code of a training that was interrupted."""
    if not quiet:
        click.echo(
            f"model written to {'standard output' if where == '-' else where} "
            f"({size_in_words(n_bytes)})",
            err=True,
        )
    if estimator.status_.reason == "interrupted":
        ctx.exit(INTERRUPTED)
