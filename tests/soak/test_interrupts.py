"""Killed, interrupted, out of space: the old file or the new one, and a usable model."""

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
import warnings

import numpy as np
import pytest

import slimsvm
from slimsvm import persistence
from tests.soak.problems import MAKERS, target_of, values

pytestmark = pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
SAVING = """
    import sys, numpy as np
    from slimsvm import SVC, load, save
    first, second, path = load(sys.argv[1]), load(sys.argv[2]), sys.argv[3]
    print("ready", flush=True)
    while True:
        save(second, path)
        save(first, path)
"""


@pytest.fixture(scope="module")
def two(tmp_path_factory):
    """Files of two models that say different things."""
    folder = tmp_path_factory.mktemp("two")
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 5))
    y = (X[:, 0] > 0).astype(int)
    for name, labels in (("first", y), ("second", 1 - y)):
        persistence.save(slimsvm.SVC().fit(X, labels), folder / name)
    return folder / "first", folder / "second", X[:5]


def test_killed_while_saving(campaign, two, tmp_path):
    first, second, X = two
    wanted = [values(persistence.load(path), X) for path in (first, second)]

    def trial(seed):
        rng, path = np.random.default_rng(seed), tmp_path / "model.slim"
        path.write_bytes(first.read_bytes())
        process = subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(SAVING), str(first), str(second), str(path)],
            stdout=subprocess.PIPE,
        )
        try:
            assert process.stdout.readline()
            n_kills = 8
            for _ in range(n_kills):  # the files of one process, stopped at many places
                time.sleep(float(rng.uniform(0.0, 0.03)))
                process.send_signal(signal.SIGSTOP)
                said = values(persistence.load(path), X)
                assert any(np.array_equal(said, one) for one in wanted), "a mix was read"
                process.send_signal(signal.SIGCONT)
        finally:
            process.kill()
            process.wait()
        said = values(persistence.load(path), X)
        assert any(np.array_equal(said, one) for one in wanted), "killed: neither old nor new"
        return n_kills + 1

    campaign("killed_while_saving").run(trial, "kill -9: the old file or the new one, never a mix")


def test_interrupted_fits(campaign):
    """Ctrl-C at a random time of a fit leaves a usable model with a true status, or none at all."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((6000, 6))
    y = ((X[:, 0] * X[:, 1] + 0.5 * rng.standard_normal(6000)) > 0).astype(int)
    names = sorted(MAKERS)
    before = threading.active_count()

    def trial(seed):
        rng = np.random.default_rng(seed)
        name = names[seed % len(names)]
        model, target = MAKERS[name](100.0, 1.0), target_of(name, y, X[:, 0])
        alarm = threading.Timer(
            float(rng.uniform(0.0, 0.25)), os.kill, (os.getpid(), signal.SIGINT)
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                alarm.start()
                model.fit(X, target)
                alarm.join()
                time.sleep(0.001)
            except KeyboardInterrupt:
                pass  # it came before or after the fit
            finally:
                try:
                    alarm.join()
                    time.sleep(0.001)
                except KeyboardInterrupt:
                    pass
        if hasattr(model, "status_"):
            assert np.isfinite(values(model, X[:20])).all()
            holds = model.certificate_.holds
            assert model.status_.reason != "converged" or holds or model.fit_status_ == 0
            assert model.fit_status_ == int(not model.status_.converged)
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
        # the pool of the process stays; nothing grows
        assert threading.active_count() <= before + 2 * (os.cpu_count() or 1)

    campaign("interrupted_fits").run(
        trial, "Ctrl-C at any time: a usable model with a true status, no thread or handler left"
    )


FULL = """
    import resource, signal, sys
    from slimsvm import load, save
    model = load(sys.argv[1])
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[3]), resource.RLIM_INFINITY))
    try:
        save(model, sys.argv[2])
    except OSError as error:
        print(error)
        sys.exit(3)
"""


def test_no_space_left(campaign, two, tmp_path):
    first, second, X = two
    wanted = values(persistence.load(first), X)

    def trial(seed):
        rng, path = np.random.default_rng(seed), tmp_path / "model.slim"
        path.write_bytes(first.read_bytes())
        limit = int(rng.integers(0, second.stat().st_size))
        ended = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(FULL), str(second), str(path), str(limit)],
            capture_output=True,
            text=True,
        )
        assert ended.returncode == 3 and ended.stdout.strip(), ended
        np.testing.assert_array_equal(values(persistence.load(path), X), wanted)
        assert sorted(os.listdir(tmp_path)) == ["model.slim"], "something was left behind"

    campaign("no_space_left").run(trial, "a file-size limit: one sentence, the old file stays")


@pytest.mark.skipif(hasattr(os, "geteuid") and os.geteuid() == 0, reason="root may write anywhere")
def test_read_only_folder(two, tmp_path):
    first, _, _ = two
    model = persistence.load(first)
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(OSError, match=r"."):
            persistence.save(model, tmp_path / "model.slim")
        assert not list(tmp_path.iterdir())
    finally:
        tmp_path.chmod(0o700)
