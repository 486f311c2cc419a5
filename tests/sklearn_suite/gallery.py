"""scikit-learn's examples that use support vector machines, run with ours in their place.

    python tests/sklearn_suite/gallery.py [--archive FILE] [--only PART] [--seconds N] [--twice]

The examples come from the source archive of the installed version, which pip's index has (or
``--archive``); nothing of it is kept. Each runs in a process of its own under ``python -m slimsvm
--profile``. One that fails is run again without us: where it fails there, too (no network for its
data, a package that is missing), it says nothing of us. ``--twice`` runs all of them both ways, and
says where they print something else.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import time
import urllib.request
from dataclasses import dataclass
from pathlib import Path

import sklearn

USES_SVMS = re.compile(r"\bsklearn\.svm\b|\bimport svm\b")
NUMBERS = re.compile(r"-?\d+\.?\d*(?:e[-+]?\d+)?")
FELL_BACK = re.compile(r"(\w+)\.fit by scikit-learn: .*: (.*)")


@dataclass
class Run:
    """How an example ended."""

    code: int
    seconds: float
    out: str
    err: str

    @property
    def last(self) -> str:
        """The last line of what went wrong."""
        lines = [line for line in self.err.strip().splitlines() if line and line[0] != " "]
        errors = [line for line in lines if re.match(r"[\w.]*(Error|Exception|Exit)\b", line)]
        return (errors or lines or ["no message"])[-1][:200]


def source_archive() -> bytes:
    """The source archive of the installed scikit-learn, from the index that pip is set up for."""
    name = f"scikit_learn-{sklearn.__version__}.tar.gz"
    # "pip download" would build it, to learn what it needs; looking for versions only names it
    command = [sys.executable, "-m", "pip", "index", "versions", "scikit-learn"]
    command += ["--no-binary", ":all:", "-vv"]
    told = subprocess.run(command, capture_output=True, text=True, check=False)
    links = re.findall(rf"Found link (\S+/{re.escape(name)})#sha256=(\w+)", told.stdout)
    if not links:
        raise SystemExit(
            f"pip's index has no {name}: {told.stderr.strip()[-300:]}\n"
            "Name a file that you have: --archive FILE"
        )
    address, digest = links[0]
    with urllib.request.urlopen(address, timeout=120) as answer:
        content = bytes(answer.read())
    if hashlib.sha256(content).hexdigest() != digest:
        raise SystemExit(f"{name} did not arrive as the index has it: try again")
    return content


def unpacked(content: bytes, folder: Path) -> list[Path]:
    """The examples that use support vector machines, unpacked into a folder."""
    with tarfile.open(fileobj=io.BytesIO(content)) as archive:
        members = [m for m in archive.getmembers() if m.name.split("/")[1:2] == ["examples"]]
        archive.extractall(folder, members, filter="data")
    found = sorted(folder.glob("*/examples/*/*.py"))
    return [path for path in found if USES_SVMS.search(path.read_text(encoding="utf-8"))]


def run(example: Path, seconds: float, ours: bool) -> Run:
    """One example in a process of its own, without a screen."""
    source = Path(__file__).resolve().parents[2] / "src"
    paths = os.pathsep.join([str(source), os.environ.get("PYTHONPATH", "")])
    environment = os.environ | {"MPLBACKEND": "agg", "PYTHONPATH": paths}
    command = [sys.executable, *(["-m", "slimsvm", "--profile"] if ours else []), example.name]
    begin = time.perf_counter()
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=seconds,
            cwd=example.parent, env=environment,
        )  # fmt: skip
        code, out, err = done.returncode, done.stdout, done.stderr
    except subprocess.TimeoutExpired:
        code, out, err = 1, "", f"TimeoutError: not done after {seconds:.0f} seconds"
    return Run(code, time.perf_counter() - begin, out, err)


def differences(ours: str, theirs: str) -> int:
    """Lines whose words or numbers differ; numbers by more than a hundredth."""
    pairs = list(zip(ours.splitlines(), theirs.splitlines(), strict=False))

    def same(a: str, b: str) -> bool:
        if NUMBERS.sub("", a) != NUMBERS.sub("", b):
            return False
        x, y = map(float, NUMBERS.findall(a)), map(float, NUMBERS.findall(b))
        return all(abs(p - q) <= 0.01 * max(1.0, abs(q)) for p, q in zip(x, y, strict=False))

    longer = abs(len(ours.splitlines()) - len(theirs.splitlines()))
    return sum(not same(a, b) for a, b in pairs) + longer


def told(example: Path, options: argparse.Namespace) -> str:
    """Run an example, print a line about it, and say how it ended: one word."""
    name = f"{example.parent.name}/{example.name}"
    ours = run(example, options.seconds, True)
    theirs = run(example, options.seconds, False) if options.twice or ours.code else None
    fell_back = {": ".join(found) for found in FELL_BACK.findall(ours.err)}
    notes = [f"{ours.seconds:.1f} s"]
    if theirs is not None and not theirs.code:
        notes.append(f"scikit-learn {theirs.seconds:.1f} s")
        if not ours.code and (n := differences(ours.out, theirs.out)):
            notes.append(f"{n} lines printed differ")
    ended = "passed"
    if ours.code:
        ended = "skipped" if theirs is not None and theirs.code else "FAILED"
        notes.append(ours.last)
    notes += [f"left to scikit-learn: {reason}" for reason in sorted(fell_back)]
    print(f"{ended:<8} {name:<62} {'; '.join(notes)}", flush=True)
    return ended


def main() -> None:
    """Run them all; the code is 1 if one fails because of us."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--archive", type=Path, help="scikit-learn's source archive")
    parser.add_argument("--only", default="", help="examples with this in their path")
    parser.add_argument("--seconds", type=float, default=300.0, help="limit for each")
    parser.add_argument("--twice", action="store_true", help="also without us, and compare")
    options = parser.parse_args()
    content = options.archive.read_bytes() if options.archive else source_archive()
    with tempfile.TemporaryDirectory() as folder:
        examples = [e for e in unpacked(content, Path(folder)) if options.only in str(e)]
        ends = [told(example, options) for example in examples]
    counts = {end: ends.count(end) for end in ("passed", "skipped", "FAILED")}
    found = ", ".join(f"{n} {end}" for end, n in counts.items())
    print(f"scikit-learn {sklearn.__version__}: {found}")
    sys.exit(1 if counts["FAILED"] or not ends else 0)


if __name__ == "__main__":
    main()
