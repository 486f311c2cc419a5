"""Compiled loops are compiled anew when a loop that they call has changed, in whatever file."""

import os
import subprocess
import sys

INNER = "from slimsvm.compiled import compiled\n\n@compiled\ndef inner(x):\n    return x + {}\n"
OUTER = """
from inner_loop import inner
from slimsvm.compiled import compiled

@compiled
def outer(x):
    return 10.0 * inner(x)
"""


def value(folder):
    program = "from outer_loop import outer; print(outer(1.0))"
    paths = os.pathsep.join([str(folder), *filter(None, sys.path)])
    environment = {**os.environ, "PYTHONPATH": paths, "PYTHONDONTWRITEBYTECODE": "1"}
    environment["NUMBA_CACHE_DIR"] = str(folder / "cache")
    run = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
    )
    return float(run.stdout)


def test_a_loop_in_another_file_that_changes(tmp_path):
    (tmp_path / "outer_loop.py").write_text(OUTER)
    (tmp_path / "inner_loop.py").write_text(INNER.format("1.0"))
    assert value(tmp_path) == 20.0
    (tmp_path / "inner_loop.py").write_text(INNER.format("2.00"))  # another size, another time
    assert value(tmp_path) == 30.0
