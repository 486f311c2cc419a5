"""The script of the page: its functions against naive twins in Python, run by Node where that is
installed.
"""

import json
import math
import random
import shutil
import subprocess
from importlib.resources import files

import pytest

NODE = shutil.which("node")
pytestmark = pytest.mark.skipif(NODE is None, reason="needs node")


def run(expression, argument=None):
    """The value of a JavaScript expression; ``argument`` is its ``a``."""
    with_path = (
        f"const s = require({json.dumps(str(files('slimsvm.report').joinpath('page.js')))});"
    )
    given = f"const a = {json.dumps(argument)};"
    program = f"{with_path} {given} process.stdout.write(JSON.stringify({expression}))"
    done = subprocess.run(
        [NODE, "-e", program], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def some_models(seed):
    rng = random.Random(seed)
    models = []
    for at in range(rng.randint(1, 12)):
        model = {
            "method": f"m{at}",
            "score": rng.choice([80, 90, 95, 99]) + rng.random() * rng.choice([0, 1]),
            "counts": rng.random() < 0.8,
        }
        model |= {
            "vectors": rng.choice([None, 1, 10, 100]),
            "seconds": rng.choice([None, 0.5, 1.5, 20.0]),
        }
        models.append(model)
    models[0]["counts"] = True
    models.append({"method": "failed", "score": None, "vectors": 1, "seconds": 0.1, "counts": True})
    return models


def test_the_model_to_take():
    """By exhaustive search: no model that is good enough has fewer vectors, or as few and a better
    score.
    """
    cases = [
        {"models": some_models(seed), "loss": loss}
        for seed in range(40)
        for loss in (0, 0.5, 5, 30)
    ]
    answers = run("a.map(({models, loss}) => s.choose(models, loss))", cases)
    for case, answer in zip(cases, answers, strict=True):
        able = [m for m in case["models"] if m["counts"] and m["score"] is not None]
        best = max(m["score"] for m in able)
        good = [m for m in able if m["score"] >= best - case["loss"] - 1e-9]
        assert answer["best"] == best
        for what, name in (("small", "vectors"), ("quick", "seconds")):
            known = [m for m in good if m[name] is not None]
            taken = answer.get(what)
            if not known:
                assert taken is None
                continue
            assert taken in known
            assert not [m for m in known if (m[name], -m["score"]) < (taken[name], -taken["score"])]


def test_scales_keep_order_and_have_ticks_inside():
    cases = [
        ["linear", [3, 7, 12.5]], ["linear", [5]], ["linear", [-2, 0]],
        ["log", [1, 11000]], ["log", [10, 20]], ["log", [0.003, 4000]],
        ["error", [66, 99.8]], ["error", [85.0, 85.2]], ["error", [100, 99]], ["error", [10, 97]],
    ]  # fmt: skip
    for (kind, values), found in zip(
        cases,
        run(
            "a.map(([k, v]) => { const f = s.scale(k, v); "
            "return [v.map(f.at), f.ticks, f.ticks.map(f.at)] })",
            cases,
        ),
        strict=True,
    ):
        places, ticks, at = found
        assert all(0 <= place <= 1 for place in places + at), (kind, values)
        assert [values[k] for k in sorted(range(len(values)), key=places.__getitem__)] == sorted(
            values
        )
        assert ticks == sorted(set(ticks)) and (1 if len(values) == 1 else 2) <= len(ticks) <= 13, (
            kind,
            values,
            ticks,
        )


def test_rows_are_sorted_with_missing_ones_last():
    numbers = [3, None, 1.5, 20, None, 1.5]
    assert run("[s.sorted(a, (v) => v, true), s.sorted(a, (v) => v, false)]", numbers) == [
        [1.5, 1.5, 3, 20, None, None],
        [20, 3, 1.5, 1.5, None, None],
    ]
    assert run("s.sorted(a, (v) => v, true)", ["b 10", "", "b 9", "a"]) == ["a", "b 9", "b 10", ""]
    pairs = [[1, "x"], [0, "y"], [1, "z"]]
    assert run("s.sorted(a, (v) => v[0], false)", pairs) == [[1, "x"], [1, "z"], [0, "y"]]  # stable


def test_numbers_are_short():
    values = [0, 1234567, 0.123456, 85.0869, 1e-7, 123456.789, 3e12]
    assert run("a.map((v) => s.number(v))", values) == [
        "0",
        "1,234,567",
        "0.1235",
        "85.09",
        "1.00e-7",
        "123,457",
        "3.00e+12",
    ]
    seconds = [0.0123, 0.25, 3.14159, 12.3, 246.2]
    assert run("a.map(s.duration)", seconds) == ["12 ms", "0.25 s", "3.1 s", "12 s", "246 s"]
    assert run("[s.number(null), s.number(NaN)]") == ["unknown", "unknown"]


def test_markers_differ_and_are_centred():
    outlines = run("Array.from({length: 7}, (_, k) => s.marker(k, 50, 50, 5))")
    assert len(set(outlines)) == 7
    for outline in outlines[1:]:
        corners = [tuple(map(float, pair.split())) for pair in outline.strip("MZ").split("L")]
        assert (
            math.dist([sum(c) / len(corners) for c in zip(*corners, strict=True)], [50, 50]) < 0.1
        )
        assert max(math.dist(corner, (50, 50)) for corner in corners) < 6.5


def test_losses_begin_with_none_and_grow():
    losses = run("s.LOSSES")
    assert (
        losses[0] == 0 and losses == sorted(set(losses)) and len(losses) == 14 and losses[5] == 0.5
    )  # as the slider's attributes say


def test_names_of_series_stay_inside_and_apart():
    """Six curves of a few points each, at random: names in the box, none on top of another."""
    rng = random.Random(0)
    box = {"left": 48, "right": 700, "top": 28, "bottom": 340}
    cases = []
    for _ in range(30):
        labels = [
            {
                "width": rng.randint(60, 170),
                "points": [
                    {"x": rng.uniform(50, 690), "y": rng.uniform(30, 330)}
                    for _ in range(rng.randint(1, 5))
                ],
            }
            for _ in range(6)
        ]
        cases.append(labels)
    answers = run("a.cases.map((labels) => s.placed(labels, a.box))", {"cases": cases, "box": box})
    apart = 0
    for labels, places in zip(cases, answers, strict=True):
        boxes = [(p["x"], p["x"] + w["width"], p["y"]) for p, w in zip(places, labels, strict=True)]
        for left, right, middle in boxes:
            assert box["left"] <= left and right <= box["right"] + 1e-9
            assert box["top"] <= middle - 8 and middle + 8 <= box["bottom"]
        apart += all(
            one[1] <= other[0] or other[1] <= one[0] or abs(one[2] - other[2]) >= 14
            for at, one in enumerate(boxes)
            for other in boxes[:at]
        )
    assert apart == len(cases)
