"""What an export takes: at most three times the model, measured where it counts, in the process."""

import importlib.util
import subprocess
import sys

import pytest

PROGRAM = """
import os, sys, tempfile
import numpy as np
import slimsvm
from slimsvm.notebook import model_nbytes

rng = np.random.default_rng(0)
X = rng.normal(size=(1000, 2500))
model = slimsvm.SVC(C=1.0, gamma=1e-4, tol=1.0).fit(X, np.arange(1000) % 2)
assert model_nbytes(model) > 15e6, model_nbytes(model)
first = slimsvm.SVC().fit(X[:20, :5], np.arange(20) % 2)
for words in sys.argv[1:]:
    name, dtype = words.split()
    write = getattr(slimsvm, name)
    with tempfile.TemporaryDirectory() as folder:
        write(first, os.path.join(folder, "first"), dtype=dtype)
        with open("/proc/self/clear_refs", "w") as file:  # the peak begins anew
            file.write("5")
        with open("/proc/self/statm") as file:
            before = int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        write(model, os.path.join(folder, "model"), dtype=dtype)
        with open("/proc/self/status") as file:
            peak = next(int(line.split()[1]) * 1024 for line in file if line.startswith("VmHWM"))
    print((peak - before) / model_nbytes(model))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads Linux's peak of memory")
def test_an_export_takes_at_most_three_times_the_model():
    """Of each kind, one after the other: what one leaves behind only lowers the next peak."""
    exports = ["to_c int8", "to_javascript float64"]
    exports += ["to_onnx float64"] if importlib.util.find_spec("onnx") else []
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *exports], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    found = [float(line) for line in done.stdout.split()]
    assert len(found) == len(exports) and max(found) <= 3.0, found
