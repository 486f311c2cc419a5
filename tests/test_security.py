"""What SECURITY.md promises: files are data, and nothing in the package runs what it reads."""

import ast
import os
import stat
from pathlib import Path

import pytest

from slimsvm.persistence.atomic import replacing

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
    from slimsvm.datasets.catalogue import CATALOGUE

    without = set()
    for name, entry in CATALOGUE.items():
        urls = [url for file in entry.files for url in file.urls]
        assert all(url.startswith("https://") for url in urls), name
        if urls and entry.content is None and not all(file.sha256 for file in entry.files):
            without.add(name)
    # a warning says so when they are downloaded; SECURITY.md names them
    assert without == {"rcv1", "protein", "cadata", "cpusmall"}
    text = (SOURCE.parent.parent / "SECURITY.md").read_text(encoding="utf-8")
    assert all(f"`{name}`" in text for name in without)


@pytest.mark.skipif(os.name != "posix", reason="permissions of POSIX")
def test_temporary_files_are_those_of_their_owner(tmp_path):
    """Whatever the mask: what becomes public does so whole, and what was private stays so."""
    usual, path = os.umask(0), tmp_path / "model.slim"
    try:
        for mode in (0o666, 0o600):
            with replacing(path) as file:
                (temporary,) = (other for other in tmp_path.iterdir() if other != path)
                assert stat.S_IMODE(temporary.stat().st_mode) == 0o600
                file.write(b"x")
            assert stat.S_IMODE(path.stat().st_mode) == mode
            path.chmod(0o600)
    finally:
        os.umask(usual)


def test_every_file_that_replaces_another_is_written_by_one_function():
    """No other place of the package opens a file to write, but for what is listed."""
    own = {
        "persistence/atomic.py",
        "datasets/download.py",  # NAME.part, which takes its name when its digest is right
        "cli/files.py",  # devices and pipes, copies in a folder of tempfile
        "cli/demo.py",  # a program in a folder of tempfile
        "persistence/native.py",  # members of the archive
    }
    writing = {
        str(path.relative_to(SOURCE)).replace(os.sep, "/")
        for path in MODULES
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and opens_to_write(node)
    }
    assert writing <= own, writing - own


def opens_to_write(node):
    """open(..., "w"), Path.write_text and the like."""
    method = isinstance(node.func, ast.Attribute)
    name = node.func.attr if method else getattr(node.func, "id", "")
    if name in ("mkstemp", "mktemp") or (method and name in ("write_text", "write_bytes")):
        return True
    if name != "open":
        return False
    words = [word.value for word in ast.walk(node) if isinstance(word, ast.Constant)]
    modes = {"w", "wb", "x", "xb", "a", "ab", "a+b", "w+"}
    return any(isinstance(word, str) and word in modes for word in words)


def test_the_promises_are_written_down():
    text = (SOURCE.parent.parent / "SECURITY.md").read_text(encoding="utf-8")
    for word in ("pickle", "SHA-256", "not promised", "Reporting"):
        assert word in text
