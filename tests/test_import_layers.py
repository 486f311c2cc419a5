"""Modules have an order: each imports only what is listed above it, and none in a circle."""

import ast
import re
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

PACKAGE = "slimsvm"
SOURCE = Path(__file__).resolve().parent.parent / "src" / PACKAGE

# From the foundation upwards, as in docs/architecture.md: modules and packages directly under
# src/slimsvm.
LAYERS = (
    "on_demand",
    "options",
    "compiled",
    "sums",
    "ranks",
    "atomics",
    "threads",
    "forms",
    "mapping",
    "kernels",
    "losses",
    "precision",
    "quantization",
    "rows",
    "row_hashes",
    "sources",
    "buffers",
    "centring",
    "tiles",
    "kernel_sums",
    "frames",
    "gram",
    "expansion",
    "ending",
    "run",
    "progress",
    "snapshots",
    "keeping",
    "multiclass",
    "probability",
    "training",
    "problems",
    "basis",
    "solvers",
    "oracles",
    "cross_training",
    "declarations",
    "notebook",
    "stream",
    "sparse_stream",
    "sparse_values",
    "far",
    "models",
    "estimators",
    "sequences",
    "search",
    "compression",
    "recipes",
    "persistence",
    "checkpoint",
    "export",
    "onnx",
    "patching",
    "datasets",
    "displays",
    "report",
    "cli",
    "__main__",
)


def modules_under(source: Path) -> dict[str, Path]:
    """Every module of the package by its dotted name; a package goes by the name of its folder."""
    modules = {}
    for path in sorted(source.rglob("*.py")):
        parts = path.relative_to(source.parent).with_suffix("").parts
        modules[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return modules


def imported_modules(name: str, path: Path, modules: dict[str, Path]) -> Iterator[str]:
    """The modules of the package that a file imports, wherever in the file: at its top, in a
    function, or for type checking only.
    """
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"), str(path))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.split(".")[0] == PACKAGE)
        elif isinstance(node, ast.ImportFrom):
            origin = node.module or ""
            if (
                node.level
            ):  # relative: one dot is the package itself, each further dot one folder up
                parents = package.split(".")[: len(package.split(".")) - (node.level - 1)]
                origin = ".".join(parents + ([origin] if origin else []))
            if origin.split(".")[0] != PACKAGE:
                continue
            for alias in node.names:
                submodule = f"{origin}.{alias.name}"
                if submodule in modules:
                    yield submodule
                elif (origin, alias.name) != (
                    PACKAGE,
                    "__version__",
                ):  # the version is a constant, not a module: every module may know it
                    yield origin


def layer(module: str) -> str | None:
    """The part after the package's name; None for the package itself, which only hands out what
    its modules hold.
    """
    return module.split(".")[1] if "." in module else None


def violations(source: Path) -> list[str]:
    """One sentence for each import that goes against the order, and for each module that has
    no place in it.
    """
    modules = modules_under(source)
    found = []
    graph: dict[str, set[str]] = {}
    for name, path in modules.items():
        own = layer(name)
        if own is not None and own not in LAYERS:
            found.append(
                f"{name} has no place in the order; give {own!r} one in LAYERS and in "
                "docs/architecture.md."
            )
            continue
        graph[name] = set(imported_modules(name, path, modules)) - {name}
        for target in sorted(graph[name]):
            other = layer(target)
            if own is None or other is None or other == own or other not in LAYERS:
                continue
            if LAYERS.index(other) > LAYERS.index(own):
                found.append(
                    f"{name} imports {target}, but {own!r} stands before {other!r} in the order."
                )
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        found.append("modules import each other in a circle: " + " <- ".join(error.args[1]) + ".")
    return found


def test_the_order_is_that_of_the_documentation():
    text = (SOURCE.parents[1] / "docs" / "architecture.md").read_text(encoding="utf-8")
    table = text.split("## The modules")[1].split("\n## ")[0]
    cells = [line.split("|")[1] for line in table.splitlines() if line.startswith("| `")]
    assert [*re.findall(r"`(\w+)`", "".join(cells)), "__main__"] == list(LAYERS)


def test_every_module_imports_only_what_stands_above_it():
    assert modules_under(SOURCE), f"no modules found in {SOURCE}"
    assert violations(SOURCE) == []


@pytest.fixture
def package(tmp_path):
    """Writes a small package; the arguments are file=source."""

    def write(files: dict[str, str]) -> Path:
        source = tmp_path / PACKAGE
        for name, text in {"__init__.py": "", **files}.items():
            path = source / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return source

    return write


MODULES = {"kernels.py": "", "tiles.py": "", "solvers/__init__.py": "", "solvers/smo.py": ""}


@pytest.mark.parametrize(
    "files",
    [
        {"tiles.py": "from slimsvm.kernels import RBF\nimport numpy as np"},
        {"tiles.py": "from . import kernels"},
        {"tiles.py": "from slimsvm import __version__"},
        {"solvers/online.py": "from slimsvm.solvers.smo import smo"},
        {"solvers/online.py": "from .smo import smo\nfrom ..kernels import RBF"},
        {"solvers/__init__.py": "from slimsvm.solvers.smo import smo"},
        {"__init__.py": "from slimsvm.solvers import smo\nfrom slimsvm.kernels import RBF"},
        {"__init__.py": "from slimsvm.tiles import tile", "cli/__init__.py": "import slimsvm"},
    ],
)
def test_downward_imports_are_accepted(package, files):
    assert violations(package(MODULES | files)) == []


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"kernels.py": "from slimsvm.tiles import tile"}, "slimsvm.kernels imports slimsvm.tiles"),
        ({"kernels.py": "from slimsvm import tiles"}, "slimsvm.kernels imports slimsvm.tiles"),
        ({"kernels.py": "from . import tiles"}, "slimsvm.kernels imports slimsvm.tiles"),
        (
            {"kernels.py": "import slimsvm.solvers.smo as s"},
            "slimsvm.kernels imports slimsvm.solvers.smo",
        ),
        (
            {"kernels.py": "def later():\n    from .solvers.smo import smo"},
            "slimsvm.kernels imports slimsvm.solvers.smo",
        ),
        (
            {"solvers/smo.py": "from ..cli import main", "cli/__init__.py": ""},
            "slimsvm.solvers.smo imports slimsvm.cli",
        ),
        (
            {"solvers/smo.py": "from .online import a", "solvers/online.py": "from .smo import b"},
            "in a circle",
        ),
        (
            {"__init__.py": "from .kernels import RBF", "kernels.py": "from slimsvm import RBF"},
            "in a circle",
        ),
        ({"helpers.py": ""}, "slimsvm.helpers has no place"),
    ],
)
def test_imports_against_the_order_are_named(package, files, message):
    (sentence,) = violations(package(MODULES | files))
    assert message in sentence
