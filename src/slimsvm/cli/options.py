"""The options that several commands have."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import click

from slimsvm.basis import ALL, REGISTRY
from slimsvm.cli.data import FORMATS
from slimsvm.cli.files import WRITERS
from slimsvm.estimators import SVC, SVR, NuSVC, NuSVR, OneClassSVM, SparseSVC, SparseSVR
from slimsvm.losses import LOSSES
from slimsvm.solvers.sparse_asked import AUTO, DESCENT

ESTIMATORS: dict[str, Any] = {
    "svc": SVC,
    "nu-svc": NuSVC,
    "svr": SVR,
    "nu-svr": NuSVR,
    "one-class": OneClassSVM,
}
SPARSE_ESTIMATORS: dict[str, Any] = {"svc": SparseSVC, "svr": SparseSVR}  # with --n-basis
# losses that one of these takes
ACCEPTED: set[str] = set().union(
    *(kind._parameter_constraints["loss"][0].options for kind in SPARSE_ESTIMATORS.values())
)


class Number(click.FloatRange):
    """A finite number within a range; click itself takes nan for one that is within any."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """From the text of the option."""
        number = super().convert(value, param, ctx)
        return (
            number
            if math.isfinite(number)
            else self.fail(f"{value!r} is not a finite number.", param, ctx)
        )

    def _describe_range(self) -> str:
        # click: "x<=None"
        return super()._describe_range() if (self.min, self.max) != (None, None) else "any"


def some_threads(ctx: click.Context, param: click.Parameter, value: int) -> int:
    """The number of threads, which is not zero."""
    if value == 0:
        raise click.BadParameter(
            "there must be at least one thread; -1: one for each core.", ctx, param
        )
    return value


class Gamma(click.ParamType):
    """'scale', 'auto' or a number."""

    name = "scale|auto|number"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """From the text of the option."""
        try:
            return value if value in ("scale", "auto") else Number(min=0).convert(value, param, ctx)
        except click.BadParameter:
            self.fail(
                f"{value!r} is none of 'scale', 'auto', or a number of at least 0.", param, ctx
            )


class Size(click.ParamType):
    """'auto' or a number of vectors."""

    name = "auto|number"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """From the text of the option."""
        return value if value == "auto" else click.IntRange(min=1).convert(value, param, ctx)


positive = Number(min=0, min_open=True)
share = Number(min=0, min_open=True, max=1)
format_option = click.option(
    "--format",
    type=click.Choice(FORMATS),
    help="Format of DATA. [default: by its extension; libsvm if that says nothing]",
)
label_option = click.option(
    "--label-column",
    "--target",
    "label_column",
    metavar="NAME|INDEX",
    help="Column of the labels in CSV and Parquet, by name or counted from 0. [default: the last]",
)
jobs_option = click.option(
    "--n-jobs",
    type=int,
    default=-1,
    show_default=True,
    callback=some_threads,
    help="Threads; -1: one for each core. (The classes of the package have 1.)",
)
to_option = click.option(
    "--to",
    "to",
    type=click.Choice(list(WRITERS)),
    help="Format of the model that is written. [default: by its extension]",
)
foreign_option = click.option(
    "--machine",
    type=click.Choice([name for name in ESTIMATORS if name != "one-class"]),
    default="svc",
    show_default=True,
    help="What a model of SVM-light is: its file does not say. Other files do.",
)
seed_option = click.option(
    "--random-state",
    type=click.IntRange(min=0, max=2**32 - 1),
    help="Seed of what is drawn at random. [default: another each time]",
)
SPARSE_OPTIONS = (
    click.option(
        "--n-basis",
        type=Size(),
        help=(
            "Train an svc or svr with this many vectors, which it finds itself; auto: it finds "
            "their number too."
        ),
    ),
    click.option(
        "--loss",
        type=click.Choice([AUTO, *(name for name in LOSSES if name in ACCEPTED)]),
        help=(
            "With --n-basis: what an error costs. [default: auto: logistic for a descent, else "
            "squared_hinge; for svr squared_epsilon_insensitive]"
        ),
    ),
    click.option(
        "--basis",
        type=click.Choice([AUTO, DESCENT, *REGISTRY, ALL]),
        help=(
            "With --n-basis: where the vectors come from; all: from all rows, whatever the size "
            "says. [default: auto: descent if loss and kernel allow, else pursuit]"
        ),
    ),
    click.option(
        "--metric",
        type=click.Choice(["auto", "learned", "diagonal"]),
        help="With --n-basis: what of a metric a descent learns. [default: auto]",
    ),
    click.option(
        "--max-bytes",
        type=click.IntRange(min=1),
        help="With --n-basis: as many vectors as a model of so many bytes has. [default: none]",
    ),
    click.option(
        "--refine/--no-refine",
        default=None,
        help="With --n-basis: move the vectors to an optimum. [default: if loss and kernel allow]",
    ),
    click.option(
        "--validation-fraction",
        type=Number(min=0, min_open=True, max=1, max_open=True),
        help="With --n-basis: share of the rows to hold out. [default: 0.1 for auto, else none]",
    ),
    click.option(
        "--max-basis",
        type=click.IntRange(min=1),
        help="The largest size that --n-basis auto looks at. [default: 500]",
    ),
    click.option(
        "--accuracy-loss",
        type=Number(min=0, max=1),
        help="What --n-basis auto gives up for fewer vectors. [default: 0.005]",
    ),
    click.option(
        "--max-memory",
        type=positive,
        help="With --n-basis: memory for kernel values, in MB. [default: 2000]",
    ),
)


def sparse_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options of models with few vectors."""
    for option in reversed((*SPARSE_OPTIONS, seed_option)):
        command = option(command)
    return command


def with_data(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options of a command that reads rows with labels and prints what it found."""
    for option in (json_option, quiet_option, format_option, label_option, jobs_option):
        command = option(command)
    return command


json_option = click.option(
    "--json", "as_json", is_flag=True, help="Print the results as JSON on standard output."
)
quiet_option = click.option("--quiet", is_flag=True, help="Print warnings and errors only.")
