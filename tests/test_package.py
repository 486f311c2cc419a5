"""The names of the package: each is there, and none of them is imported before somebody asks for
it.
"""

import subprocess
import sys

import pytest

import slimsvm


@pytest.mark.parametrize("name", slimsvm.__all__)
def test_every_public_name_is_there(name):
    assert name in dir(slimsvm)
    assert getattr(slimsvm, name) is getattr(slimsvm, name)


def test_a_name_that_is_not_there_is_refused_as_usual():
    with pytest.raises(AttributeError, match="module 'slimsvm' has no attribute 'SCV'"):
        _ = slimsvm.SCV  # type: ignore[attr-defined]
    with pytest.raises(AttributeError, match=r"module 'slimsvm.estimators' has no attribute 'SCV'"):
        _ = slimsvm.estimators.SCV  # type: ignore[attr-defined]
    with pytest.raises(ImportError, match="cannot import name 'SCV'"):
        exec("from slimsvm import SCV", {})


IN_TURN = """
import sys
import slimsvm

def loaded(prefix="slimsvm.estimators."):
    return [name.rpartition(".")[2] for name in sys.modules if name.startswith(prefix)]

print(len(loaded()))
from slimsvm import SVC
print("classification" in loaded(), "structural" in loaded())
from slimsvm import SparseSVC
print("sklearn.cluster" in sys.modules)
print(slimsvm.kernels.RBF(2.0).gamma, slimsvm.recipes.__name__)
import slimsvm.compression, slimsvm.cli.commands
print(callable(slimsvm.compress))
"""


ON_A_WORKER = """
import sys
import slimsvm.sources.partitions, slimsvm.far.coding, slimsvm.problems.mapped_rows
import slimsvm.problems.columns, slimsvm.problems.far_gram, slimsvm.solvers.nested_on_rows
print("sklearn" in sys.modules)
"""


def test_workers_of_a_cluster_do_not_wait_for_what_they_never_call():
    """Tasks of sparse and exact fits: a worker that was killed is at work a second earlier."""
    words = [sys.executable, "-c", ON_A_WORKER]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.strip()) == (0, "False"), done.stderr


def test_nothing_is_imported_before_it_is_asked_for():
    """In a process of its own: here everything is imported already."""
    done = subprocess.run(
        [sys.executable, "-c", IN_TURN], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-5:] == [
        "0",
        "True False",
        "False",
        "2.0 slimsvm.recipes",  # modules are there without an import of their own
        "True",  # a function, whatever was imported before
    ]
