"""The runner of the benchmarks with toy cells: what it stores, resumes, limits and says when a cell
fails.
"""

import importlib
import inspect
import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from benchmarks import everyday, rivals, runner, tables, versions
from benchmarks.__main__ import NAMES
from benchmarks.runner import Cell, Store, run

from slimsvm import SVC, SparseSVC

TOYS = """
    import os, time
    from pathlib import Path
    from benchmarks.runner import Cell

    def number(value, seconds="1.0"):
        with open("calls.txt", "a") as file:
            file.write(value + "\\n")
        return {"value": float(value), "seconds": float(seconds)}

    def draw():
        import random
        import numpy as np
        return {"drawn": [random.random(), float(np.random.random())]}

    def fail():
        print("something on the way")
        raise ValueError("the toy is broken")

    def crash():
        os.abort()

    def wait(flag="started"):
        Path(flag).write_text(str(os.getpid()))
        time.sleep(60)
        return {}

    def spin():
        while True:
            pass

    def eat(megabytes):
        eaten = bytearray(int(megabytes) << 20)
        time.sleep(0.3)
        return {"eaten": len(eaten)}

    def pair():
        return {"pair/a": {"value": 1}, "pair/b": {"value": 2}}

    def odd():
        return {"value": object()}

    def cells(quick):
        return [Cell("one", "number", ("1",)), Cell("two", "number", ("2",))][: 1 if quick else 2]
"""


@pytest.fixture
def toys(tmp_path, monkeypatch):
    """A folder with the module ``toys``, in which its calls leave their marks."""
    (tmp_path / "toys.py").write_text(textwrap.dedent(TOYS))
    root = Path(runner.__file__).parents[1]
    path = os.pathsep.join(
        [str(tmp_path), str(root), str(root / "src"), os.environ.get("PYTHONPATH", "")]
    )
    monkeypatch.setenv("PYTHONPATH", path)
    monkeypatch.chdir(tmp_path)
    return tmp_path / "results" / "toys.json"


def cells_of(path):
    return json.loads(path.read_text())["cells"]


def calls(path):
    return (path.parents[1] / "calls.txt").read_text().split()


def test_cells_are_stored_with_their_circumstances(toys, capsys):
    run("toys", [Cell("one", "number", ("1",), seed=7), Cell("pair", "pair", several=True)], toys)
    stored = json.loads(toys.read_text())
    one = stored["cells"]["one"]
    assert (
        one["value"] == 1
        and one["all_seconds"] == [1.0]
        and stored["cells"]["pair/b"]["value"] == 2
    )
    measured = one["measured"]
    machine = stored["machines"][measured["machine"]]
    assert (
        measured["seed"] == 7
        and measured["peak_mb"] > 1
        and measured["cpu_seconds"] > 0
        and len(measured["load"]) == 2
    )
    assert machine["cores"] == os.cpu_count() and {
        "cpu",
        "python",
        "numpy",
        "scikit-learn",
        "slimsvm",
    } <= set(machine)
    assert "2 measurements, 0 of them stored already" in capsys.readouterr().out


def test_the_seed_decides_what_is_drawn(toys):
    run(
        "toys",
        [Cell("a", "draw", seed=1), Cell("b", "draw", seed=1), Cell("c", "draw", seed=2)],
        toys,
    )
    cells = cells_of(toys)
    assert cells["a"]["drawn"] == cells["b"]["drawn"] != cells["c"]["drawn"]


def test_only_what_is_missing_is_measured(toys):
    run("toys", [Cell("one", "number", ("1",)), Cell("bad", "fail")], toys)
    run(
        "toys",
        [Cell("one", "number", ("1",)), Cell("bad", "fail"), Cell("two", "number", ("2",))],
        toys,
    )
    assert calls(toys) == ["1", "2"]
    run("toys", [Cell("one", "number", ("3",)), Cell("bad", "number", ("4",))], toys, retry=True)
    assert (
        calls(toys) == ["1", "2", "4"] and cells_of(toys)["bad"]["value"] == 4
    )  # the failure only
    run("toys", [Cell("one", "number", ("5",))], toys, again=True)
    assert cells_of(toys)["one"]["value"] == 5 and cells_of(toys)["two"]["value"] == 2


def test_failures_have_their_message(toys):
    run(
        "toys",
        [
            Cell("a", "fail"),
            Cell("b", "crash"),
            Cell("c", "nothing"),
            Cell("d", "odd"),
            Cell("e", "number", ("1",)),
        ],
        toys,
    )
    cells = cells_of(toys)
    assert cells["a"]["failed"] == ["ValueError: the toy is broken"]
    assert "SIGABRT" in cells["b"]["failed"][0]
    assert "has no attribute 'nothing'" in cells["c"]["failed"][0]
    assert "not JSON serializable" in cells["d"]["failed"][0]
    assert cells["e"]["value"] == 1  # and the run goes on


def test_time_limit(toys):
    begin = time.monotonic()
    run("toys", [Cell("long", "wait", seconds=0.5), Cell("busy", "spin", seconds=1.0)], toys)
    cells = cells_of(toys)
    assert cells["long"]["failed"] == ["more than 0.5 s"] and cells["busy"]["failed"] == [
        "more than 1 s"
    ]
    assert time.monotonic() - begin < 30  # of the 60 that the first would take


@pytest.mark.skipif(
    not Path("/proc/self/status").exists(),
    reason="the system does not say how much memory a process has",
)
def test_memory_limit(toys):
    run(
        "toys",
        [
            Cell("much", "eat", ("600",), gigabytes=0.5),
            Cell("little", "eat", ("50",), gigabytes=0.5),
        ],
        toys,
    )
    cells = cells_of(toys)
    assert (
        cells["much"]["failed"] == ["more than 0.5 GB of memory"]
        and cells["much"]["measured"]["peak_mb"] > 512
    )
    assert cells["little"]["eaten"] == 50 << 20


def test_repeats_keep_the_best_and_all(toys):
    first = [Cell("a", "number", ("1", "3.0")), Cell("slow", "number", ("2", "40.0"))]
    second = [
        Cell("a", "number", ("3", "2.0"), repeat=1),
        Cell("slow", "number", ("4", "1.0"), repeat=1, enough=30),
    ]
    run("toys", [*first, *second], toys)
    cells = cells_of(toys)
    assert cells["a"]["seconds"] == 2.0 and cells["a"]["all_seconds"] == [3.0, 2.0]
    assert cells["a"]["value"] == 1  # what is no time is that of the first
    assert cells["slow"]["all_seconds"] == [40.0]
    run("toys", [*first, *second], toys)
    assert calls(toys) == ["1", "2", "3"]
    run("toys", [Cell("a", "fail", repeat=2)], toys)
    assert (
        cells_of(toys)["a"]["seconds"] == 2.0
    )  # a repeat that fails does not take back what was measured


def test_ratio_to_the_peer_of_the_same_run(toys, monkeypatch):
    ours, peer = (
        Cell("ours", "number", ("1", "2.0"), peer="peer"),
        Cell("peer", "number", ("2", "5.0")),
    )
    run("toys", [ours, peer], toys)
    assert cells_of(toys)["ours"]["ratio"] == 2.5 and "ratio" not in cells_of(toys)["peer"]
    monkeypatch.setattr(runner.time, "strftime", lambda form: "2030-01-01T00:00:00")
    run("toys", [Cell("peer", "number", ("2", "8.0"))], toys, again=True)
    assert "ratio" not in cells_of(toys)["ours"]  # the peer is of another run now
    run("toys", [ours], toys, again=True)
    assert cells_of(toys)["ours"]["ratio"] == 4.0


def test_a_killed_run_goes_on_where_it_was(toys):
    """The first cell is stored, the second at work, when the run is killed: nothing is left behind,
    and the first is not measured again.
    """
    code = "from pathlib import Path; from benchmarks.runner import Cell, run\n"
    code += (
        f"run('toys', [Cell('one', 'number', ('1',)), Cell('two', 'wait')], Path({str(toys)!r}))"
    )
    killed = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.DEVNULL)
    flag, end = toys.parents[1] / "started", time.monotonic() + 60
    while not (flag.exists() and flag.read_text()) and time.monotonic() < end:
        time.sleep(0.02)
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    assert list(cells_of(toys)) == ["one"]
    child, end = int(flag.read_text()), time.monotonic() + 20
    while _alive(child) and time.monotonic() < end:
        time.sleep(0.02)
    assert not _alive(child)
    run("toys", [Cell("one", "number", ("1",)), Cell("two", "number", ("2",))], toys)
    cells = cells_of(toys)
    assert calls(toys) == ["1", "2"] and cells["two"]["value"] == 2
    assert (
        cells["one"]["measured"]["run"] == cells["two"]["measured"]["run"]
    )  # one run, in two parts


def _alive(process):
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    try:  # ended, but nobody has asked how
        return Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return True


def test_a_file_is_written_whole_or_not_at_all(toys):
    store = Store(toys)
    store.write({"cells": {"a": {"value": 1}}})
    with pytest.raises(TypeError):
        store.write({"cells": {"a": {"value": object()}}})
    assert cells_of(toys) == {"a": {"value": 1}} and [
        file.name for file in toys.parent.iterdir()
    ] == ["toys.json"]


@pytest.mark.parametrize(
    "text",
    [
        "",
        '{"cells": {"a": {"sec',
        "null",
        "[1]",
        '{"machine": {}}',
        '{"cells": [1]}',
        '{"cells": {"a": 3}}',
    ],
)
def test_a_damaged_file_is_named_and_left_alone(toys, text):
    toys.parent.mkdir()
    toys.write_text(text)
    with pytest.raises(
        SystemExit, match=r"toys.json does not hold the results of a benchmark.*move it away"
    ):
        run("toys", [Cell("one", "number", ("1",))], toys)
    assert toys.read_text() == text and not (toys.parents[1] / "calls.txt").exists()


def test_where_nothing_can_be_written_nothing_is_measured(toys):
    (toys.parents[1] / "file").write_text("")
    with pytest.raises(SystemExit, match=r"file: results cannot be written there.*--results"):
        run("toys", [Cell("one", "number", ("1",))], toys.parents[1] / "file" / "toys.json")
    assert not (toys.parents[1] / "calls.txt").exists()


# -- the benchmarks that there are -----------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_cells_name_functions_and_their_words(name):
    module = importlib.import_module(f"benchmarks.{name}")
    quick, full = (module.cells(choice) for choice in (True, False))
    assert 0 < len(quick) < len(full)
    for cells in (quick, full):
        assert len({(cell.key, cell.repeat) for cell in cells}) == len(cells)
        for cell in cells:
            inspect.signature(getattr(module, cell.function)).bind(*cell.words)
            assert cell.peer is None or any(other.key == cell.peer for other in cells)


def test_command_lists_and_chooses(toys, monkeypatch, capsys):
    monkeypatch.syspath_prepend(str(toys.parents[1]))
    monkeypatch.setattr(runner.importlib, "import_module", lambda name: __import__("toys"))
    words = ["toys", "--results", str(toys.parent), "--list"]
    runner.main(("toys",), words)
    assert capsys.readouterr().out == "toys one\n"
    runner.main(("toys",), [*words, "--full", "--only", "t", "o", "--skip", "one"])
    assert capsys.readouterr().out == "toys two\n"
    with pytest.raises(SystemExit):
        runner.main(("toys",), ["toys", "--quick", "--full"])


def test_objective_of_the_plain_machine():
    """Of the exact model: its dual value; of any multiple of it: the same, since the best
    multiple is looked for; of another: more.
    """
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 3)).astype(np.float32)
    y = (X[:, 0] + 0.5 * rng.standard_normal(300) > 0).astype(int)
    model = SVC(C=2.0, gamma=0.5, tol=1e-6).fit(X, y)
    best = rivals._primal(model, X, y, 2.0)
    assert best == pytest.approx(-model.certificate_.objective, rel=1e-5)
    model.dual_coef_, model.intercept_ = 3 * model.dual_coef_, 3 * model.intercept_
    assert rivals._primal(model, X, y, 2.0) == pytest.approx(best, rel=1e-5)
    assert (
        rivals._primal(SparseSVC(5, C=2.0, gamma=0.5, random_state=0).fit(X, y), X, y, 2.0)
        > 1.001 * best
    )


# -- tables ----------------------------------------------------------------------------------------


@pytest.fixture
def pages(tmp_path, monkeypatch):
    """A folder with both pages, and a benchmark with a table for one of them and a summary for the
    other.
    """
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "benchmarks.md").write_text(
        "before\n<!-- a:begin -->\nold\n<!-- a:end -->\nafter\n"
    )
    (tmp_path / "README.md").write_text("<!-- b:begin -->\n<!-- b:end -->\n")
    module = SimpleNamespace(
        TABLES={"a": lambda: "new", "b": lambda: "newer"},
        pictures=lambda folder: (folder.parent / "drawn").touch(),
    )
    monkeypatch.setattr(tables.importlib, "import_module", lambda name: module)
    return tmp_path, module


def test_text_between_marks(pages, capsys):
    root, module = pages
    tables.main(("toys",), ["toys", "--show"], root)
    assert capsys.readouterr().out == "new\n\nnewer\n"
    assert "old" in (root / "docs" / "benchmarks.md").read_text()
    tables.main(("toys",), [], root)
    assert (
        root / "docs" / "benchmarks.md"
    ).read_text() == "before\n<!-- a:begin -->\nnew\n<!-- a:end -->\nafter\n"
    assert (root / "README.md").read_text() == "<!-- b:begin -->\nnewer\n<!-- b:end -->\n"
    assert (root / "docs" / "drawn").exists()
    module.TABLES["c"] = lambda: ""
    with pytest.raises(SystemExit, match="no page has marks for c, such as <!-- c:begin -->"):
        tables.main(("toys",), [], root)
    with pytest.raises(SystemExit):
        tables.main(("toys",), ["toy"], root)


@pytest.mark.parametrize("name", NAMES)
def test_pages_say_what_is_stored(name):
    module = importlib.import_module(f"benchmarks.{name}")
    for path, text in tables.filled(module, tables.ROOT):
        assert path.read_text(encoding="utf-8") == text, (
            f"{path.name} is not what the results say: python -m benchmarks tables {name}"
        )


def test_slow_peers_of_everyday_problems_run_once(monkeypatch):
    calls = []
    race = (lambda: calls.append("ours"), [lambda: calls.append("theirs")], 2)
    monkeypatch.setitem(everyday.RACES, "fake", ("", 1.0, lambda: race))
    clock = iter([0.0, 1.0, 0.0, 40.0, 0.0, 1.0, 0.0, 2.0])
    monkeypatch.setattr(everyday.time, "perf_counter", lambda: next(clock))
    found = everyday.measured("fake")
    assert calls == ["ours", "theirs", "ours", "ours"]
    assert found == {"seconds": 1.0, "peer_seconds": 40.0, "wanted": 1.0}


def test_a_race_of_versions_pairs_the_rounds():
    there = [{"seconds": t, "calls": 100} for t in (1.0, 2.0, 4.0, 8.0, 16.0)]
    here = [{"seconds": 1.5 * own["seconds"], "calls": 110} for own in there]
    found = versions.ratio_of(here, there)  # a load that changes falls on both alike
    assert (found.seconds, found.calls) == (1.5, 1.1)
    assert found.low == found.high == 1.5


def test_a_race_of_versions_needs_another_one(tmp_path, capsys):
    with pytest.raises(SystemExit):
        versions.main([str(tmp_path)])
    assert "there is no package slimsvm in" in capsys.readouterr().err
    versions.main(["--list", "--only", "LinearSVC, 300"])
    assert capsys.readouterr().out == "LinearSVC, 300 rows\n"
