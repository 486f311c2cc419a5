"""Compiled loops: anew when a loop that they call has changed, in whatever file; no infinities."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import numpy as np

import slimsvm
from slimsvm.compiled import compiled, prefetch

INNER = "from slimsvm.compiled import compiled\n\n@compiled\ndef inner(x):\n    return x + {}\n"
OUTER = """
from inner_loop import inner
from slimsvm.compiled import compiled

@compiled
def outer(x):
    return 10.0 * inner(x)
"""
INDIRECT = """
from inner_loop import FACTOR, inner
from slimsvm.compiled import compiled

@compiled
def outer(x):
    return below(x)

@compiled
def below(x):
    return FACTOR * inner(x)
"""


def value(folder, between="0"):
    program = f"from outer_loop import outer; {between}; print(outer(1.0))"
    paths = os.pathsep.join([str(folder), *filter(None, sys.path)])
    environment = {**os.environ, "PYTHONPATH": paths, "PYTHONDONTWRITEBYTECODE": "1"}
    environment["NUMBA_CACHE_DIR"] = str(folder / "cache")
    run = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
    )
    return float(run.stdout)


def test_a_loop_or_a_number_in_another_file_that_changes(tmp_path):
    """Reached through a loop that stands further below, and is not known when the outer is made."""
    other = tmp_path / "inner_loop.py"
    (tmp_path / "outer_loop.py").write_text(INDIRECT)
    other.write_text("FACTOR = 10.0\n" + INNER.format("1.0"))
    assert value(tmp_path) == 20.0
    other.write_text("FACTOR = 10.0\n" + INNER.format("2.00"))  # another size, another time
    assert value(tmp_path) == 30.0
    before = other.stat()
    other.write_text("FACTOR = 20.0\n" + INNER.format("2.00"))  # the number alone
    os.utime(other, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert value(tmp_path) == 60.0


def test_a_cache_folder_that_vanishes_is_damaged_or_closed(tmp_path):
    (tmp_path / "outer_loop.py").write_text(OUTER)
    (tmp_path / "inner_loop.py").write_text(INNER.format("1.0"))
    cache = tmp_path / "cache"
    assert value(tmp_path, f"import shutil; shutil.rmtree({str(cache)!r})") == 20.0
    stored = [path for path in cache.rglob("*") if path.is_file()]
    assert len(stored) == 4  # an index and the code, of both: it was made again
    short = stored[0].read_bytes()[:-5]
    for damages in ([b"", b"damaged", short, b""], [short, b"", b"damaged", short]):
        for path, damage in zip(stored, damages, strict=True):
            path.write_bytes(damage)
        assert value(tmp_path) == 20.0
    gone = f"import shutil; shutil.rmtree({str(cache)!r}); open({str(cache)!r}, 'w').close()"
    assert value(tmp_path, gone) == 20.0
    assert cache.is_file()


def is_infinite(node):
    """Whether this names np.inf, math.nan or the like, or makes one from a text."""
    if isinstance(node, ast.Attribute):
        of = node.value
        return node.attr in ("inf", "nan") and isinstance(of, ast.Name) and of.id in ("np", "math")
    text = (
        isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "float"
    )
    return bool(
        text
        and node.args
        and isinstance(node.args[0], ast.Constant)
        and isinstance(node.args[0].value, str)
    )


def infinities(source):
    """Lines of compiled loops that name an infinity or NaN, or a constant of the module that is."""
    tree = ast.parse(source)
    constants = {
        name.id
        for line in tree.body
        if isinstance(line, ast.Assign) and any(map(is_infinite, ast.walk(line.value)))
        for target in line.targets
        for name in ast.walk(target)
        if isinstance(name, ast.Name)
    }
    return [
        node.lineno
        for loop in ast.walk(tree)
        if isinstance(loop, ast.FunctionDef)
        and any("compiled" in ast.unparse(decorator) for decorator in loop.decorator_list)
        for node in ast.walk(loop)
        if is_infinite(node) or (isinstance(node, ast.Name) and node.id in constants)
    ]


def test_no_compiled_loop_names_an_infinity():
    # loops are compiled as if there were none (ninf, nnan): what follows from one is undefined
    bad = "FAR = np.inf\n@compiled\ndef loop(x):\n    return min(x, FAR) + {}\n"
    assert [infinities(bad.format(more)) for more in ("0.0", "np.nan", "float('inf')")] == [
        [4],
        [4, 4],
        [4, 4],
    ]
    files = sorted(Path(slimsvm.__file__).parent.rglob("*.py"))
    found = {str(file): infinities(file.read_text(encoding="utf-8")) for file in files}
    assert {file: lines for file, lines in found.items() if lines} == {}


def test_what_is_asked_for_early_changes_nothing():
    @compiled
    def total(x, ahead):
        s = 0.0
        for i in range(x.size):
            prefetch(x, i + ahead)  # beyond the end, too
            s += x[i]
        return s

    for kind in (float, np.float32, np.int32):
        assert total(np.arange(100, dtype=kind), 10**6) == 4950.0
