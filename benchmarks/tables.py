"""Writes what the stored results say into the pages.

Tables go into the docs, summaries into the README, pictures into the folder of pictures.

    python -m benchmarks tables [NAME ...]                     all of them, if none is named
    python -m benchmarks tables NAME --show                    print the tables, write nothing

A page has marks, ``<!-- peers:begin -->`` and ``<!-- peers:end -->``; a benchmark has ``TABLES``,
functions by the names of their marks, and may have ``pictures(folder)``. So no number in the pages
is typed by hand, and a test compares the pages with the stored results.
"""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PAGES = ("docs/benchmarks.md", "README.md")
PICTURES = "docs/images"


def marks(name: str) -> tuple[str, str]:
    """The lines around a text."""
    return f"<!-- {name}:begin -->", f"<!-- {name}:end -->"


def replaced(page: str, name: str, text: str) -> str:
    """The page with this text between the marks of this name."""
    begin, end = marks(name)
    before, rest = page.split(begin)
    return before + begin + "\n" + text + "\n" + end + rest.split(end)[1]


def filled(module: Any, root: Path) -> Iterator[tuple[Path, str]]:
    """The pages with marks of a benchmark, as they have to be."""
    missing = dict(module.TABLES)
    for path in (root / page for page in PAGES):
        page = text = path.read_text(encoding="utf-8")
        for name in [name for name in missing if marks(name)[0] in page]:
            text = replaced(text, name, missing.pop(name)())
        yield path, text
    if missing:
        raise SystemExit(
            f"no page has marks for {' or '.join(missing)}, such as {marks(next(iter(missing)))[0]}"
        )


def main(names: tuple[str, ...], words: list[str] | None = None, root: Path = ROOT) -> None:
    """Command line."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks tables", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help=f"of {', '.join(names)}; default: all"
    )
    parser.add_argument("--show", action="store_true", help="print the tables, write nothing")
    given = parser.parse_args(words)
    unknown = [name for name in given.names if name not in names]
    if unknown:
        parser.error(f"there is no benchmark {unknown[0]!r}; there are {', '.join(names)}")
    for module in (importlib.import_module(f"benchmarks.{name}") for name in given.names or names):
        if given.show:
            print("\n\n".join(text() for text in module.TABLES.values()))
            continue
        for path, text in filled(module, root):
            path.write_text(text, encoding="utf-8")
        if hasattr(module, "pictures"):
            module.pictures(root / PICTURES)
