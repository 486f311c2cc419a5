"""The program ``slimsvm``: which commands there are, and how they fail.

A command is imported when it is called: help, the version and a command that does not exist do not
wait for the packages that training needs.
"""

from __future__ import annotations

import signal
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import click

from slimsvm import __version__

# name: (its module, its line in the help of the program)
COMMANDS = {
    "compress": ("commands", "Make a model small."),
    "convert": ("commands", "Write a model in another format."),
    "demo": ("commands", "See it work, beside scikit-learn."),
    "export": ("export", "Write a model for ONNX, C or JavaScript."),
    "info": ("commands", "Show what is in a model file."),
    "predict": ("commands", "Predict with a model."),
    "report": ("report", "Write a page about a model."),
    "train": ("train", "Train a model."),
    "tune": ("tune", "Find C and gamma."),
}


class Failure(click.ClickException):
    """Bad data or a bad model: exit code 1, and one line on standard error."""

    exit_code = 1

    def show(self, file: Any = None) -> None:
        """Print the message."""
        click.echo(f"slimsvm: error: {self.message}", err=True)


class Program(click.Group):
    """A group of commands that end with a sentence, not with a traceback, when the input is bad."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names, without an import."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the command; None if there is no such one."""
        if cmd_name not in COMMANDS:
            return None
        module = import_module(f"slimsvm.cli.{COMMANDS[cmd_name][0]}")
        return getattr(module, cmd_name)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list in the help, without an import."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in COMMANDS.items()])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command; from then on, warnings are lines."""
        found = super().resolve_command(ctx, args)
        ctx.with_resource(plain_warnings())
        return found

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command."""
        ctx.with_resource(ending_in_order())
        try:
            return super().invoke(ctx)
        except BrokenPipeError:  # the reader of our output has seen enough; click ends quietly
            raise
        except OSError as error:
            raise Failure(
                f"{error.filename}: {error.strerror}"
                if error.filename and error.strerror
                else str(error)
            ) from error
        except ValueError as error:
            raise Failure(str(error)) from error
        except MemoryError as error:
            raise Failure("there is not enough memory") from error
        except KeyboardInterrupt as error:
            raise Failure("interrupted; nothing was written") from error


@contextmanager
def ending_in_order() -> Iterator[None]:
    """Take SIGTERM as Ctrl-C: a training saves its model, and no temporary file stays."""

    def end(number: int, frame: Any) -> None:
        asked = signal.getsignal(signal.SIGINT)
        if not callable(asked):  # ignored, as in the background of a script
            raise KeyboardInterrupt
        asked(number, frame)

    main = threading.current_thread() is threading.main_thread()
    if not main or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return
    signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


@contextmanager
def plain_warnings() -> Iterator[None]:
    """Warnings as one line each, without those about convergence, which the status tells."""
    from sklearn.exceptions import ConvergenceWarning

    def show(message: Any, *details: Any, **more: Any) -> None:
        click.echo(f"slimsvm: warning: {message}", err=True)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.showwarning = show
        yield


@click.group(
    cls=Program, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110}
)
@click.version_option(__version__, prog_name="slimsvm")
def program() -> None:
    """Train kernel support vector machines, and use them.

    DATA is text in the format of LIBSVM and SVM-light (feature indices from 1), CSV with or without
    a header, NPZ (arrays X and y) or Parquet, by its extension; text may be packed with gzip or
    bzip2. "-" is standard input, or standard output, in LIBSVM's formats.

    Exit codes: 0 done, 1 bad data or model, 2 wrong usage, 130 interrupted (Ctrl-C, SIGTERM) with
    the model saved.
    """
