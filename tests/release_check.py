"""A release tried as users will have it: built, checked, and installed into empty environments.

    python tests/release_check.py [--lower-bounds] [--python python3.12 ...]

Builds sdist and wheel into dist/, checks both with twine, and installs each into a new environment
of every Python from 3.11 on that is there (or of those named), where a short program trains, saves,
loads and predicts, and the command lines answer. ``--lower-bounds`` does so with the oldest
versions that pyproject.toml allows.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PYTHONS = tuple(f"python3.{minor}" for minor in range(11, 16))
TRIAL = """
import os, sys, tempfile
import numpy as np
import slimsvm
from slimsvm.datasets import checkers

X, y = checkers(400, seed=0)
model = slimsvm.SVC(C=10.0, gamma=5.0).fit(X, y)
small = slimsvm.SparseSVC(20, C=10.0, gamma=5.0, random_state=0).fit(X, y)
assert model.score(X, y) > 0.9 and small.score(X, y) > 0.8
with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "model.slim")
    slimsvm.save(model, path)
    assert np.array_equal(slimsvm.load(path).predict(X), model.predict(X))
    assert slimsvm.to_c(small, os.path.join(folder, "model.h")) > 0
assert slimsvm.__file__.startswith(sys.prefix), "not the installed package"
print("slimsvm", slimsvm.__version__, "numpy", np.__version__, "Python", sys.version.split()[0])
"""


def run(*command: object, **more: object) -> None:
    print("$", *command, flush=True)
    own = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    subprocess.run([str(word) for word in command], check=True, env=own, **more)


def built() -> list[Path]:
    """Wheel and sdist, made anew and checked."""
    shutil.rmtree(ROOT / "dist", ignore_errors=True)
    run(sys.executable, "-m", "build", "--outdir", ROOT / "dist", ROOT)
    files = sorted((ROOT / "dist").iterdir())
    run(sys.executable, "-m", "twine", "check", "--strict", *files)
    return files


def lower_bounds() -> list[str]:
    """The oldest versions that pyproject.toml allows, as constraints."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    needed = [*project["dependencies"], *project["optional-dependencies"]["cli"]]
    found = [re.fullmatch(r"([\w-]+)>=([\d.]+)", line) for line in needed]
    return [f"{match[1]}=={match[2]}.*" for match in found if match]


def tried(python: str, file: Path, constraints: list[str]) -> None:
    """One file in one new environment."""
    with tempfile.TemporaryDirectory() as folder:
        run(python, "-m", "venv", folder)
        own = Path(folder, "bin")
        limits = Path(folder, "constraints.txt")
        limits.write_text("\n".join(constraints) + "\n")
        install = [own / "python", "-m", "pip", "install", "--quiet", "--constraint", limits]
        run(*install, f"{file}[cli]")
        run(own / "python", "-c", TRIAL, cwd=folder)
        run(own / "slimsvm", "--version", cwd=folder)
        rows = Path(folder, "rows")
        rows.write_text("1 1:1 2:0.5\n-1 1:-1 2:0.25\n" * 5)
        run(own / "slim-train", "-q", "rows", "model", cwd=folder)
        run(own / "slim-predict", "rows", "model", "out", cwd=folder)


def runs(python: str) -> bool:
    """Whether an interpreter is there: managers of versions leave names that start none."""
    if shutil.which(python) is None:
        return False
    return subprocess.run([python, "-c", ""], capture_output=True, check=False).returncode == 0


def main() -> None:
    options = argparse.ArgumentParser(description="A release tried as users will have it.")
    options.add_argument("--lower-bounds", action="store_true", help="with the oldest versions")
    options.add_argument("--python", nargs="*", default=[], help="interpreters, by default all")
    given = options.parse_args()
    there = [name for name in PYTHONS if runs(name)]
    pythons = given.python or there
    missing = [name for name in PYTHONS if name not in there]
    files = built()
    for python in pythons:
        for file in files:
            tried(python, file, [])
    if given.lower_bounds:
        wheel = next(file for file in files if file.suffix == ".whl")
        tried(pythons[0], wheel, lower_bounds())
    print(f"tried with {', '.join(pythons)}; not here: {', '.join(missing) or 'none'}")


if __name__ == "__main__":
    main()
