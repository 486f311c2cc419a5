"""What the first call costs: import time, the first fit ever (compilation), and the first fit of a later process.

python -m benchmarks.startup
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile

IMPORT = "import time; t = time.perf_counter(); import {modules}; print(time.perf_counter() - t)"
FIT = """
import time, numpy as np
from slimsvm import SVC
rng = np.random.default_rng(0)
X = rng.standard_normal((500, 10)); y = (X[:, 0] + X[:, 1] ** 2 > 0.5).astype(int)
t = time.perf_counter(); SVC().fit(X, y); print(time.perf_counter() - t)
"""


def seconds(code: str, **environment: str) -> float:
    """What the code prints last, in a process of its own."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env={**os.environ, **environment})
    return float(done.stdout.split()[-1])


def main() -> None:
    """Print the table."""
    both = min(seconds(IMPORT.format(modules="sklearn.svm, numba")) for _ in range(3))
    ours = min(seconds(IMPORT.format(modules="sklearn.svm, numba, slimsvm")) for _ in range(3))
    print(f"import sklearn.svm, numba            {both:.2f} s")
    print(f"import slimsvm on top                {ours - both:+.2f} s")
    for name in ("SVC", "SparseSVC"):
        ours = min(seconds(IMPORT.format(modules=f"sklearn.svm, numba; from slimsvm import {name}")) for _ in range(3))
        print(f"{f'from slimsvm import {name}':<36} {ours - both:+.2f} s")
    with tempfile.TemporaryDirectory() as folder:
        print(f"fit of 500 rows, first ever          {seconds(FIT, NUMBA_CACHE_DIR=folder):.2f} s")
        print(f"fit of 500 rows, later process       {min(seconds(FIT, NUMBA_CACHE_DIR=folder) for _ in range(3)):.3f} s")


if __name__ == "__main__":
    main()
