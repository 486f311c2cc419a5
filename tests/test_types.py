"""What a user's type checker says: nothing of a right script, and where a wrong one is wrong."""

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("mypy")

SOURCE = Path(__file__).resolve().parents[1] / "src"
RIGHT = '''
"""A script as users write them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from slimsvm import SVC, SVR, LinearSVC, LinearSVR, NuSVC, OneClassSVM, SparseSVC
from slimsvm import load, patch_sklearn, save

Floats = NDArray[np.float64]


def data(n: int) -> tuple[Floats, Floats]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3))
    return X, X[:, 0] + 0.1 * rng.normal(size=n)


def main() -> None:
    X, t = data(100)
    y = (t > 0).astype(int)
    model: SVC = SVC(C=2.0, kernel="rbf", gamma="scale", class_weight={0: 1.0, 1: 2.0}).fit(X, y)
    labels = model.predict(X)
    print(float(np.mean(labels == y)), model.score(X, y))
    print(model.decision_function(X).shape, model.n_support_.sum(), model.intercept_[0])
    print(model.certificate_.holds, str(model.status_), model.history_["seconds"][-1])
    small = SparseSVC(n_basis=5).fit(X, y, sample_weight=np.ones(100))
    auto = SparseSVC(n_basis="auto").fit(X, y)
    print(small.n_basis_ + auto.n_basis_, small.predict(X)[:3])
    linear = LinearSVC(penalty="l1", loss="squared_hinge", dual=False).fit(X, y)
    print(linear.coef_, linear.intercept_)
    r = SVR(kernel=lambda a, b: a @ b.T, epsilon=0.2).fit(X.tolist(), t.tolist())
    print(r.predict(X).mean(), r.score(X, t))
    print(LinearSVR(fit_intercept="free").fit(X, t).predict(X).mean())
    o = OneClassSVM(nu=0.2).fit(X)
    print(o.predict(X).sum(), o.score_samples(X).max())
    nu = NuSVC(nu=0.3, decision_function_shape="ovo", class_weight="balanced").fit(X, y)
    save(nu, "model.slim")
    print(load("model.slim").predict(X).sum())
    with patch_sklearn() as patch:
        print(patch.profile.in_words())


if __name__ == "__main__":
    main()
'''
WRONG = """
from slimsvm import SVC, LinearSVC, SparseSVC

SVC(kernel=3)
SVC(kernel="rfb")
SparseSVC(n_basis="autoo")
LinearSVC(penalty="l3")
SVC(C="1")
reveal_type(SVC().fit([[0.0], [1.0]], [0, 1]))
"""


def checked(folder, **texts):
    for name, text in texts.items():
        (folder / f"{name}.py").write_text(text)
    command = [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent"]
    command += [f"{name}.py" for name in texts]
    done = subprocess.run(
        [*command, "--cache-dir", str(folder / "cache")],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        env={"MYPYPATH": str(SOURCE), "PATH": ""},
    )
    return done.stdout


def test_a_right_script_is_clean_and_a_wrong_one_is_not(tmp_path):
    found = checked(tmp_path, right=RIGHT, wrong=WRONG)
    assert "right.py" not in found and "checked 2 source files" in found, found
    for line in range(4, 9):
        assert f"wrong.py:{line}: error" in found, found
    assert 'Revealed type is "slimsvm.estimators.classification.SVC"' in found
