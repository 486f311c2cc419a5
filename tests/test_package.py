"""The names of the package: each is there, and none of them is imported before somebody asks for
it.
"""

import subprocess
import sys

import pytest

import slimsvm


def last_line(code: str) -> str:
    """What the code prints last, in a process of its own: here everything is imported already."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()[-1]


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


def test_one_machine_does_not_import_the_others():
    loaded = (
        "[name.rpartition('.')[2] for name in sys.modules "
        "if name.startswith('slimsvm.estimators.')]"
    )
    assert last_line(f"import sys, slimsvm; print(len({loaded}))") == "0"
    assert (
        last_line(
            "import sys; from slimsvm import SVC; "
            f"print('classification' in {loaded}, 'structural' in {loaded})"
        )
        == "True False"
    )
    assert (
        last_line(
            "import sys; from slimsvm import SparseSVC; print('sklearn.cluster' in sys.modules)"
        )
        == "False"
    )


def test_rooms_are_there_without_an_import_of_their_own():
    assert (
        last_line("import slimsvm; print(slimsvm.kernels.RBF(2.0).gamma, slimsvm.recipes.__name__)")
        == "2.0 slimsvm.recipes"
    )


def test_compress_is_a_function_whatever_was_imported_before():
    assert (
        last_line(
            "import slimsvm.compression, slimsvm.cli.commands; print(callable(slimsvm.compress))"
        )
        == "True"
    )
