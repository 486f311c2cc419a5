"""What the tests of the command line share: a runner, and small files in every format."""

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from sklearn.datasets import dump_svmlight_file

from slimsvm.cli.program import program
from slimsvm.datasets import checkers


@pytest.fixture(autouse=True)
def own_folder(tmp_path, monkeypatch):
    """Every test has a folder of its own, and works in it."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def slimsvm():
    """Runs the command within this process; an exception that reaches the user as a traceback fails
    the test.
    """

    def run(*arguments, input=None, code=0):
        result = CliRunner().invoke(
            program, [str(word) for word in arguments], input=input, prog_name="slimsvm"
        )
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        assert result.exit_code == code, result.output
        return result

    return run


@pytest.fixture
def result_of(slimsvm):
    """The JSON that a command prints on standard output."""

    def run(*arguments, **options):
        return json.loads(slimsvm(*arguments, "--json", **options).stdout)

    return run


def write_csv(path, X, y=None, header=None, delimiter=","):
    lines = [delimiter.join(header)] if header else []
    for at, row in enumerate(X.tolist()):
        cells = [repr(value) for value in row] + ([] if y is None else [str(y[at])])
        lines.append(delimiter.join(cells))
    Path(path).write_text("\n".join(lines) + "\n", encoding="utf-8")


@pytest.fixture
def files(own_folder):
    """The same 300 rows as text, CSV, NPZ (dense and sparse) and Parquet."""
    X, y = checkers(300, seed=5)
    dump_svmlight_file(X, y, "c.svm", zero_based=False)
    write_csv("c.csv", X, y, header=["a", "b", "label"])
    np.savez("c.npz", X=X, y=y)
    import scipy.sparse as sp

    S = sp.csr_matrix(X)
    np.savez(
        "sparse.npz", X_data=S.data, X_indices=S.indices, X_indptr=S.indptr, X_shape=S.shape, y=y
    )
    return X, y
