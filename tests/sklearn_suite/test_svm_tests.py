"""scikit-learn's own tests of sklearn.svm, as they are installed, pass with our classes."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.sklearn_suite.reasons import SUITE, exceptions

pytest.importorskip("sklearn.svm.tests", reason="this scikit-learn came without its tests")


def run_suite(plugin, modules, folder, *words):
    """In a process of its own: the names of scikit-learn mean our classes there."""
    here = Path(__file__).resolve().parents[2]
    path = os.pathsep.join([str(here), str(here / "src"), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, "-m", "pytest", "-q", "--tb=short", f"--rootdir={folder}"]
    command += ["-p", f"tests.sklearn_suite.{plugin}", "-p", "no:cacheprovider", "-p", "no:xdist"]
    done = subprocess.run(
        [*command, *words, "--pyargs", *modules],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        env=os.environ | {"PYTHONPATH": path, "PYTEST_ADDOPTS": ""},
    )
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]
    assert int(re.findall(r"(\d+) passed", done.stdout)[0]) >= 20


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
def test_the_tests_of_scikit_learn_pass(sparse, tmp_path):
    """All but those of sparse rows of a third and a fourth class, which become CSR at once."""
    modules = [f"sklearn.svm.tests.{name}" for name in SUITE if ("sparse" in name) == sparse]
    run_suite("plugin", modules, tmp_path, *(("-k", "not lil") if sparse else ()))


@pytest.mark.long
def test_all_tests_of_scikit_learn_pass(tmp_path):
    run_suite("plugin", [f"sklearn.svm.tests.{name}" for name in SUITE], tmp_path)


@pytest.mark.long
def test_searches_pass_under_the_patch(tmp_path):
    run_suite("patched", ["sklearn.model_selection.tests.test_search"], tmp_path)


def test_there_are_few_exceptions_and_each_has_a_reason():
    reasons = exceptions()
    assert len(reasons) <= 15  # of 308
    assert all(len(reason.split()) >= 4 for reason in reasons.values())
