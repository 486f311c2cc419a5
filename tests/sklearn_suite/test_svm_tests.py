"""scikit-learn's own tests of sklearn.svm, as they are installed, pass with our classes."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.sklearn_suite.reasons import SUITE, exceptions

pytest.importorskip("sklearn.svm.tests", reason="this scikit-learn came without its tests")


@pytest.mark.parametrize("part", SUITE)
def test_the_tests_of_scikit_learn_pass(part, tmp_path):
    """In a process of its own: the names of scikit-learn mean our classes there."""
    here = Path(__file__).resolve().parents[2]
    path = os.pathsep.join([str(here), str(here / "src"), os.environ.get("PYTHONPATH", "")])
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "tests.sklearn_suite.plugin",
        "--tb=short",
    ]
    command += ["-p", "no:cacheprovider", "-p", "no:xdist", f"--rootdir={tmp_path}"]
    done = subprocess.run(
        [*command, "--pyargs", f"sklearn.svm.tests.{part}"],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": path, "PYTEST_ADDOPTS": ""},
    )
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]
    assert int(re.findall(r"(\d+) passed", done.stdout)[0]) >= 20


def test_there_are_few_exceptions_and_each_has_a_reason():
    reasons = exceptions()
    assert len(reasons) <= 15  # of 308
    assert all(len(reason.split()) >= 4 for reason in reasons.values())
