"""For all tests."""

import gc
import os
import signal

# Workers already share the processor: threads of BLAS beside them wait for each other, and L-BFGS-B
# on a dozen variables takes ten times as long. The workers inherit this; NumPy must not be there
# yet.
for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ.setdefault(name, "1")

# A shell without job control starts what it puts into the background with Ctrl-C ignored, and so
# would be what the tests start and interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_finish():
    """What collection has made stays: looking through it again takes half a second each time."""
    gc.collect()
    gc.freeze()
