"""Which tests of scikit-learn our classes do not pass, and why: exceptions.txt."""

from pathlib import Path

SUITE = ("test_svm", "test_sparse", "test_bounds")
EXCEPTIONS = Path(__file__).with_name("exceptions.txt")


def exceptions() -> dict[str, str]:
    """Reasons by the name of the test, with its parameters in brackets."""
    lines = EXCEPTIONS.read_text(encoding="utf-8").splitlines()
    return dict(line.split(": ", 1) for line in lines if line and not line.startswith("#"))
