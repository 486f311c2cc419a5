"""Processes that are forked where everything is imported and compiled, to be killed and measured.

A process that begins anew takes a second for its imports; a fork takes ten milliseconds, so that a
thousand of them can be killed in a minute.
"""

import os
import signal
import sys
import time
import warnings
from contextlib import contextmanager


@contextmanager
def forked(work):
    """A process that does ``work(report)``, where ``report()`` says that one more part is done.

    Yields its number and a function that counts, after its end, the parts that it reported. It is
    killed when the block ends, if it is still there.
    """
    read, write = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # fork and threads: ours start anew
        # an interrupt of the child before it stands on its own would unwind pytest there
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        pid = os.fork()
    if pid == 0:
        _child(work, read, write)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    os.close(write)
    ended = []

    def wait():
        if not ended:
            ended.append(os.waitpid(pid, 0)[1])
        return ended[0]

    try:
        yield Forked(pid, read, wait)
    finally:
        if not ended:
            os.kill(pid, signal.SIGKILL)
            wait()
        os.close(read)


class Forked:
    """What the parent knows."""

    def __init__(self, pid, read, wait):
        self.pid, self._read, self.wait = pid, read, wait

    def killed(self, after, how=signal.SIGKILL):
        """Send a signal after so many seconds; returns how many parts were done."""
        time.sleep(after)
        os.kill(self.pid, how)
        self.wait()
        return self.rest()

    def rest(self):
        """How many reports have come that nobody has waited for."""
        n = 0
        while part := os.read(self._read, 4096):
            n += len(part)
        return n

    def next(self):
        """Wait for one report; False: it has ended."""
        return bool(os.read(self._read, 1))


def _child(work, read, write):
    """Never returns: nothing of the parent's is to be done twice."""
    code = 1
    try:
        os.close(read)
        quiet = os.open(os.devnull, os.O_WRONLY)
        for stream in (1, 2):
            os.dup2(quiet, stream)
        sys.stdout = sys.stderr = os.fdopen(1, "w", closefd=False)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                work(lambda: os.write(write, b"."))
            code = 0
        finally:  # the one interrupt has been, or does not come any more
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else 1
    finally:
        os._exit(code)
