"""What SECURITY.md promises: files are data, and nothing in the package runs what it reads."""

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parent.parent / "src" / "slimsvm"
MODULES = sorted(SOURCE.rglob("*.py"))
FORBIDDEN_CALLS = {"eval", "exec", "compile", "__import__"}
FORBIDDEN_MODULES = {"pickle", "marshal", "shelve", "dill", "cloudpickle"}
# python -m slimsvm script.py runs the script that the user names, as python script.py does
RUNS_A_SCRIPT = {"__main__.py"}


def names_of(tree):
    """Calls by name, imports, and keyword arguments of calls."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            called = node.func
            if isinstance(called, ast.Name):
                yield "call", called.id
            for word in node.keywords:
                if isinstance(word.value, ast.Constant):
                    yield "keyword", f"{word.arg}={word.value.value}"
        elif isinstance(node, ast.Import):
            yield from (("import", alias.name.split(".")[0]) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield "import", node.module.split(".")[0]


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_nothing_runs_what_it_reads(path):
    found = list(names_of(ast.parse(path.read_text(encoding="utf-8"))))
    calls = {name for kind, name in found if kind == "call"}
    assert path.name in RUNS_A_SCRIPT or not calls & FORBIDDEN_CALLS
    assert not {name for kind, name in found if kind == "import"} & FORBIDDEN_MODULES
    keywords = {name for kind, name in found if kind == "keyword"}
    assert not keywords & {"shell=True", "allow_pickle=True", "trusted=True", "verify=False"}


def test_downloads_are_checked_and_over_tls():
    from slimsvm.datasets import catalogue

    text = Path(catalogue.__file__).read_text(encoding="utf-8")
    assert "http://" not in text
    addresses = text.count("https://")
    assert addresses and text.count("sha256") + text.count("digest") > 0


def test_the_promises_are_written_down():
    text = (SOURCE.parent.parent / "SECURITY.md").read_text(encoding="utf-8")
    for word in ("pickle", "SHA-256", "not promised", "Reporting"):
        assert word in text
