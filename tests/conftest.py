"""For all tests."""

import signal

# A shell without job control starts what it puts into the background with Ctrl-C ignored, and so would be what the tests start and interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
