"""What only a process of its own shows: signals, pipes, missing packages, exit codes."""

import os
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
            "import sys; import slimsvm.cli.commands; "
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


def test_max_time_is_a_normal_end(endless):
    endless[endless.index("100")] = "1"
    result = run(*endless)
    assert result.returncode == 0 and "Stopped at max_time" in result.stderr
    assert load("hard.slim").status_.reason == "max_time"


def test_without_click_there_is_a_hint():
    result = run("train", "x.svm", before="import sys; sys.modules['click'] = None; ")
    assert result.returncode == 2 and result.stdout == ""
    assert (
        result.stderr
        == "slimsvm: error: the command line needs click: pip install 'slimsvm[cli]'\n"
    )


def test_exit_codes_of_a_real_process(files):
    result = run("train", "nowhere.svm")
    assert (
        result.returncode == 1
        and result.stderr == "slimsvm: error: nowhere.svm: No such file or directory\n"
    )
    assert run("train", "c.svm", "--C", "-1").returncode == 2


@pytest.mark.skipif(os.name == "nt", reason="needs a shell with pipes")
def test_a_reader_that_has_seen_enough(files):
    assert run("train", "c.svm", "m.slim").returncode == 0
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


@pytest.mark.parametrize("module", ["slimsvm", "slimsvm.cli"])
def test_module_can_be_run(module, own_folder):
    result = subprocess.run(
        [sys.executable, "-m", module, "--help"],
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    for command in ("train", "predict", "info", "convert", "demo"):
        assert command in result.stdout


@pytest.mark.skipif(os.name != "posix", reason="the shell of POSIX")
def test_closed_streams(own_folder):
    """As after <&- and >&-."""
    Path("c.svm").write_text("1 1:1\n0 1:2\n")
    assert run("train", "c.svm", "m.slim").returncode == 0
    for arguments, name in (
        (["predict", "c.svm", "m.slim"], "output"),
        (["predict", "-", "m.slim"], "input"),
        (["info", "-"], "input"),
    ):
        command = [sys.executable, "-m", "slimsvm", *arguments]
        ended = subprocess.run(
            ["sh", "-c", 'exec "$@" <&- >&-', "sh", *command],
            env=ENVIRONMENT,
            stderr=subprocess.PIPE,
            text=True,
            timeout=120,
            check=False,
        )
        assert (ended.returncode, ended.stderr) == (
            1,
            f"slimsvm: error: standard {name}: it is closed\n",
        )
