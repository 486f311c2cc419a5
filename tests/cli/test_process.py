"""What only a process of its own shows: signals, pipes, missing packages, exit codes."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import slimsvm
from slimsvm.persistence import load

# Python gets Ctrl-C even if whoever runs the tests ignores it, which a child would inherit.
MAIN = (
    "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
    "from slimsvm.cli import main; main()"
)
ENVIRONMENT = {
    **os.environ,
    "PYTHONPATH": str(Path(slimsvm.__file__).parent.parent),
    "PYTHONIOENCODING": "utf-8",
}


# One interpreter for several commands: each has a process of its own, forked after the imports, and
# ends as any other. What it said is followed by the code it ended with.
EACH = """
import json, os, runpy, sys, warnings
import slimsvm.cli.commands, slimsvm.cli.train
from slimsvm import SVC, load

warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12: of a fork beside threads of BLAS
for module, *arguments in json.loads(sys.argv[1]):
    if not (child := os.fork()):
        sys.argv[1:] = arguments
        runpy.run_module(module, run_name="__main__", alter_sys=True)
        sys.exit()
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            print(f"\\n== {code}", file=stream, flush=True)
"""
forks = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")


def run_each(*commands, shell=()):
    """(exit code, standard output, standard error) of each; a command begins with its module."""
    done = subprocess.run(
        [*shell, sys.executable, "-c", EACH, json.dumps(commands)],
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    ended = re.findall(r"(.*?)\n== (-?\d+)\n", done.stderr, re.DOTALL)
    said = re.findall(r"(.*?)\n== -?\d+\n", done.stdout, re.DOTALL) or [""] * len(ended)
    assert len(ended) == len(said) == len(commands), done.stderr
    return [(int(code), out, err) for out, (err, code) in zip(said, ended, strict=True)]


def run(*arguments, before=""):
    return subprocess.run(
        [sys.executable, "-c", before + MAIN, *arguments],
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.fixture
def endless(own_folder):
    """3,000 rows with random labels and a huge C: minutes of work."""
    rng = np.random.default_rng(0)
    np.savez("hard.npz", X=rng.random((3000, 2)), y=rng.integers(0, 2, 3000))
    return [
        "train",
        "hard.npz",
        "hard.slim",
        "--C",
        "1e6",
        "--gamma",
        "1",
        "--tol",
        "1e-9",
        "--n-jobs",
        "1",
        "--max-time",
        "100",
        "--verbose",
    ]


@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGINT for one process")
def test_interrupted_training_saves_the_model(endless):
    process = subprocess.Popen(
        [sys.executable, "-c", MAIN, *endless, "--json"],
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        lines = []
        watchdog = threading.Timer(90, process.kill)
        watchdog.start()
        while not any(
            "gap" in line for line in lines
        ):  # the first lines of progress: the fit is at work
            lines.append(process.stderr.readline())
            assert lines[-1], "".join(lines)
        process.send_signal(signal.SIGINT)
        begin = time.monotonic()
        out, err = process.communicate()
        watchdog.cancel()
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 130, err
    assert time.monotonic() - begin < 30
    assert (
        "Traceback" not in err
        and "Interrupted after" in err
        and "model written to hard.slim" in err
    )
    assert '"reason": "interrupted"' in out
    model = load("hard.slim")
    assert model.status_.reason == "interrupted"
    assert set(model.predict(np.random.default_rng(1).random((50, 2)))) <= {0, 1}
    assert sorted(os.listdir()) == ["hard.npz", "hard.slim"]


@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGINT for one process")
def test_interrupted_before_there_is_a_model(own_folder):
    process = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import sys; import slimsvm.cli.train; "
            f"print('ready', file=sys.stderr, flush=True); {MAIN}",
            "train",
            "-",
            "m.slim",
        ],
        env=ENVIRONMENT,
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stderr.readline() == "ready\n"
        time.sleep(1.0)  # it waits for standard input now
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
    finally:
        process.kill()
        process.wait()
    assert (
        process.returncode == 1
        and "interrupted; nothing was written" in err
        and "Traceback" not in err
    )
    assert os.listdir() == []


def test_without_click_there_is_a_hint():
    result = run("train", "x.svm", before="import sys; sys.modules['click'] = None; ")
    assert result.returncode == 2 and result.stdout == ""
    assert (
        result.stderr
        == "slimsvm: error: the command line needs click: pip install 'slimsvm[cli]'\n"
    )


@forks
def test_exit_codes_of_a_real_process(files, endless):
    endless[endless.index("100")] = "0.3"
    nowhere, wrong, limit, *helps = run_each(
        ["slimsvm.cli", "train", "nowhere.svm"],
        ["slimsvm.cli", "train", "c.svm", "--C", "-1"],
        ["slimsvm.cli", *endless],
        ["slimsvm", "--help"],
        ["slimsvm.cli", "--help"],
    )
    assert nowhere == (1, "", "slimsvm: error: nowhere.svm: No such file or directory\n")
    assert wrong[0] == 2
    assert limit[0] == 0 and "Stopped at max_time" in limit[2]  # a normal end
    assert load("hard.slim").status_.reason == "max_time"
    for code, out, _ in helps:
        assert code == 0
        for command in ("train", "predict", "info", "convert", "demo"):
            assert command in out


@pytest.mark.skipif(os.name == "nt", reason="needs a shell with pipes")
def test_a_reader_that_has_seen_enough(files, slimsvm):
    slimsvm("train", "c.svm", "m.slim")
    command = f"'{sys.executable}' -m slimsvm.cli predict c.svm m.slim | head -n 1"
    result = subprocess.run(
        command,
        shell=True,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert result.stdout in ("1\n", "-1\n") and "Traceback" not in result.stderr


@forks
def test_closed_streams(own_folder, slimsvm):
    """As after <&- and >&-."""
    Path("c.svm").write_text("1 1:1\n0 1:2\n")
    slimsvm("train", "c.svm", "m.slim")
    commands = [["predict", "c.svm", "m.slim"], ["predict", "-", "m.slim"], ["info", "-"]]
    ended = run_each(
        *(["slimsvm", *words] for words in commands),
        shell=["sh", "-c", 'exec "$@" <&- >&-', "sh"],
    )
    for (code, _, err), name in zip(ended, ("output", "input", "input"), strict=True):
        assert (code, err) == (1, f"slimsvm: error: standard {name}: it is closed\n")


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["trian", "data.csv"]])
def test_what_trains_nothing_imports_nothing_for_it(arguments):
    done = run(
        *arguments,
        before=(
            "import atexit, sys; atexit.register(lambda: print(sorted("
            "{'numba', 'numpy', 'scipy', 'sklearn'} & set(sys.modules)))); "
        ),
    )
    assert done.returncode == (2 if arguments[0] == "trian" else 0), done.stderr
    assert done.stdout.splitlines()[-1] == "[]"
