"""The command ``slimsvm export``: a model for ONNX, C or JavaScript."""

from __future__ import annotations

import json
import os
from typing import Any

import click

from slimsvm.cli.files import ModelFile, check_writable
from slimsvm.cli.options import foreign_option, json_option, quiet_option
from slimsvm.report.words import size_in_words

BY_EXTENSION = {".onnx": "onnx", ".h": "c", ".js": "javascript", ".mjs": "javascript"}
LANGUAGES = ("onnx", "c", "javascript")


@click.command()
@click.argument("model")
@click.argument("out")
@click.option("--to", type=click.Choice(LANGUAGES), help="[default: by the extension of OUT]")
@click.option(
    "--dtype",
    help="onnx: float64 or float32; c: float or int8; javascript: float64, float32 or int8.",
)
@click.option("--max-bytes", type=click.IntRange(min=1), help="Refuse more, for c and javascript.")
@click.option("--name", help="c: what all names begin with. [default: slimsvm]")
@foreign_option
@json_option
@quiet_option
@click.pass_context
def export(
    ctx: click.Context,
    /,
    model: str,
    out: str,
    to: str | None,
    dtype: str | None,
    max_bytes: int | None,
    name: str | None,
    machine: str,
    as_json: bool,
    quiet: bool,
) -> None:
    """Write MODEL to OUT for another language: .onnx, .h (C99), .js or .mjs (an ES module)."""
    language = to or BY_EXTENSION.get(os.path.splitext(out)[1].lower())
    if language is None:
        raise click.UsageError(f"The extension of {out} names no language; name it with --to.", ctx)
    given: dict[str, Any] = {"dtype": dtype, "max_bytes": max_bytes, "name": name}
    given = {key: value for key, value in given.items() if value is not None}
    if language == "onnx" and "max_bytes" in given:
        raise click.UsageError("--max-bytes is for c and javascript.", ctx)
    if language != "c" and "name" in given:
        raise click.UsageError("--name is for c.", ctx)
    check_writable(out)
    estimator = ModelFile(model).load(machine)
    facts = {"model": model, "out": out, "to": language, **written(estimator, out, language, given)}
    if as_json:
        click.echo(json.dumps(facts))
    if not quiet:
        click.echo(f"{out} written ({size_in_words(os.path.getsize(out))})", err=True)


def written(estimator: Any, out: str, language: str, options: dict[str, Any]) -> dict[str, Any]:
    """Write the file; returns its size, and that of the numbers in it."""
    from slimsvm.export.c import to_c
    from slimsvm.export.javascript import to_javascript
    from slimsvm.onnx import to_onnx

    if language == "onnx":
        to_onnx(estimator, out, **options)
        return {"bytes": os.path.getsize(out)}
    own = to_c(estimator, out, **options) if language == "c" else 0
    if language == "javascript":
        to_javascript(estimator, out, **options)
    facts = {"bytes": os.path.getsize(out)}
    return {**facts, "model_bytes": own} if own else facts
