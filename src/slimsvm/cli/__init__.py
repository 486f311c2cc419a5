"""The command line ``slimsvm``: train, predict, info, compress, convert, report and demo.

It needs the extra ``cli``.
"""

from __future__ import annotations

import sys

__all__ = ["main"]


def main() -> None:
    """Run the command ``slimsvm`` with the arguments of the process.

    The process ends with the exit code of the command.

    Examples
    --------
    >>> import sys
    >>> from slimsvm.cli import main
    >>> sys.argv = ["slimsvm", "--version"]
    >>> try:
    ...     main()
    ... except SystemExit as end:
    ...     print("exit code", end.code)
    slimsvm, version ...
    exit code 0
    """
    try:
        import click  # noqa: F401 (imported here so that the package works without it)
    except ImportError:
        print(
            "slimsvm: error: the command line needs click: pip install 'slimsvm[cli]'",
            file=sys.stderr,
        )
        sys.exit(2)
    from slimsvm.cli.program import program

    program.main(prog_name="slimsvm")
