"""The page of all benchmarks: which cells are models of which set, what becomes of the others, and
of files that are no results.
"""

import json

import pytest
from benchmarks import report

from tests.report.test_page import NASTY, check

MACHINE = {"cpu": NASTY, "cores": 2}
SPARSE = {
    "a9a/exact": {"seconds": 3.0, "accuracy": 0.85, "n_support": 11000},
    "a9a/refined/3": {
        "seconds": 1.5,
        "accuracy": 0.849,
        "path": [[1, 0.8], [2, 0.845], [3, 0.849]],
    },
    "a9a/refined/10": {
        "seconds": 2.5,
        "accuracy": 0.855,
        "path": [[1, 0.7], [3, 0.7], [5, 0.851], [10, 0.855]],
    },
    "a9a/sklearn_nystroem/10": {"seconds": 0.1, "accuracy": 0.8},
    "alone/refined/a9a/10/0.001": {"cpu_seconds": 1.2, "accuracy": 0.853},
    "a9a/prediction": {"k": 3, "sparse_us": 0.1},
    "checkers/10000": {"seconds": 6.0, "error": 0.03},
    "checkers/30000": {"seconds": 16.0, "error": 0.02},
}
EXACT = {
    "a9a_dense/float32/slimsvm": {"seconds": 1.9, "accuracy": 0.8509, "n_support": 11617},
    "a9a_dense/float32/intelex": {"seconds": 4.1, "accuracy": 0.99, "n_support": 11574},
    "a9a_dense/float64/libsvm": {"failed": ["more than 120 s"], "measured": {"seed": 0}},
    "a9a_dense/instead/nystroem_sgd": {
        "seconds": 2.1,
        "cpu_seconds": 1.1,
        "accuracy": 0.845,
        "n_support": 500,
        "measured": {"seed": 0},
    },
}
RSVM = {
    "dna/smooth": {
        "seconds": [1.0, 3.0],
        "accuracy": [0.9, 0.92],
        "size": [378, 378],
        "status": ["max_iter"],
    },
    "dna/lagrangian": {"failed": ["more than 75 s"]},
}
STRUCTURAL = {
    "scaling/1000/constant 400": {
        "cpu_seconds": 1.5,
        "vectors": 644,
        "test_error": 7.0,
        "certificate": {"gap": 0.0},
    },
    "scaling/1000/exact": {"cpu_seconds": 0.1, "vectors": 476, "test_error": 7.5},
    "scaling/1000000/linear 400": {"failed": ["too long"]},
}
PRIMAL = {
    "selection/random/0": {"seconds": 1.0, "points": {"5": [0.1, 3.0], "10": [0.04, 2.0]}},
    "selection/random/1": {"seconds": 3.0, "points": {"5": [0.2, 3.0], "10": [0.06, 2.0]}},
    "crosstraining/banana": {
        "plain": [88.5, 126.2, 0.01],
        "crossed": [88.0, 85.7, 0.05],
        "C": 4.0,
        "resamples": 10,
    },
    "syrk": {"seconds": 5.8, "steps": 7},
}


@pytest.fixture
def results(tmp_path):
    for name, cells in {
        "cpsp": SPARSE,
        "peers": EXACT,
        "rsvm": RSVM,
        "primal": PRIMAL,
        "sampled_cuts": STRUCTURAL,
    }.items():
        (tmp_path / f"{name}.json").write_text(json.dumps({"cells": cells, "machine": MACHINE}))
    return tmp_path


def models(results):
    _, data = check(report.page_of(results))
    return {each["name"]: each["models"] for each in data["comparisons"]}


def test_models_of_all_files(results):
    sets = models(results)
    assert set(sets) == {
        "a9a",
        "dna",
        "checkers, 1,000 training rows",
        "mnist 0 vs rest, 10,000 training rows, polynomial",
        "cross-training, banana",
    }
    a9a = {(model["method"], model["vectors"]): model for model in sets["a9a"]}
    assert (
        a9a["SVC (exact)", 11000]["score"] == 85
        and a9a["slimsvm SVC (float32, dense)", 11617]["counts"]
    )
    peer = a9a["scikit-learn-intelex (float32, dense)", 11574]
    assert (
        not peer["counts"] and "2,000" in peer["note"]
    )  # its accuracy is of other rows: it must never be the model to take
    assert a9a["Nystroem + LinearSVC", 10]["seconds"] == 0.1
    assert (
        a9a["Nystroem + SGD (dense)", 500]["counts"]
        and a9a["Nystroem + SGD (dense)", 500]["seconds"] == 1.1
    )  # of all test rows, unlike the peers in the race of the exact models
    assert a9a["LIBSVM (float64, dense)", None]["note"] == "failed: more than 120 s"


def test_a_fit_of_its_own_goes_before_the_part_of_a_larger_one(results):
    refined = [
        model for model in models(results)["a9a"] if model["method"] == "SparseSVC by Newton"
    ]
    assert [(model["vectors"], round(model["score"], 6), model["part"]) for model in refined] == [
        (1, 80, True), (2, 84.5, True), (3, 84.9, False), (5, 85.1, True), (10, 85.5, False),
    ]  # fmt: skip


def test_means_failures_and_ends(results):
    sets = models(results)
    smooth, failed = sets["dna"]
    if smooth["score"] is None:
        smooth, failed = failed, smooth
    assert (
        smooth["score"] == pytest.approx(91)
        and smooth["seconds"] == 2
        and smooth["note"] == "seconds by the clock; ended by: max_iter"
    )
    assert (
        failed["score"] is None
        and failed["note"] == "failed: more than 75 s"
        and not failed["counts"]
    )
    selected = sets["mnist 0 vs rest, 10,000 training rows, polynomial"]
    assert [
        (model["vectors"], round(model["score"], 6), model["seconds"], model["part"])
        for model in selected
    ] == [
        (5, 85, 2, True),
        (10, 95, 2, False),
    ]
    assert [(model["method"], model["score"]) for model in sets["cross-training, banana"]] == [
        ("SVC", 88.5),
        ("CrossTraining", 88.0),
    ]


def test_other_cells_are_tables(results):
    page, _ = check(report.page_of(results))
    assert {"failed: too long", "Sets without a model to take"} <= set(page.texts)
    assert {"cpsp: checkers", "cpsp: a9a", "checkers/30000", "syrk", "a9a/prediction"} <= set(
        page.texts
    )
    assert NASTY in page.text


def test_files_of_another_form_are_named(results):
    (results / "odd.json").write_text("[1, 2]")
    (results / "broken.json").write_text("{")
    cells = {
        "iris/new/20": {"accuracy": 0.5, "seconds": 1, "status": "Stopped: time."},
        "iris/new/30": {"accuracy": 0.5, "status": "Converged: x"},
    }
    odd = {"x": 3, "iris/odd/7": {"accuracy": 0.5, "path": 3}, "iris/none/7": {"failed": None}}
    (results / "rivals.json").write_text(json.dumps({"cells": {**cells, **odd}, "machine": "mine"}))
    page, data = check(report.page_of(results))
    assert "odd.json" in page.text and "broken.json" in page.text
    assert "rivals.json, iris/odd/7 (TypeError), rivals.json, iris/none/7 (TypeError)" in page.text
    (iris,) = (each for each in data["comparisons"] if each["name"] == "iris")
    assert iris["models"][0]["method"] == "new" and iris["models"][0]["vectors"] == 20
    assert [model["note"] for model in iris["models"]] == [
        "seconds by the clock; ended by: Stopped: time.",
        "",
    ]


def test_seeds_of_sparse_models_are_one_model(results):
    cells = {
        f"a9a/10/{seed}": {"cpu_seconds": 1.0 + seed, "accuracy": 0.85 + seed / 100, "n_basis": 10}
        for seed in range(3)
    }
    cells["a9a/64 kB/0"] = {"cpu_seconds": 1.0, "accuracy": 0.8, "n_basis": 200}
    cells["a9a/exact"] = {"cpu_seconds": 2.0, "accuracy": 0.852, "n_support": 11616}
    (results / "sparse.json").write_text(json.dumps({"cells": cells, "machine": MACHINE}))
    a9a = {(model["method"], model["vectors"]): model for model in models(results)["a9a"]}
    three = a9a["SparseSVC", 10]
    assert three["score"] == pytest.approx(86) and three["seconds"] == 2
    assert three["note"] == "mean of 3 seeds" and a9a["SparseSVC", 200]["score"] == 80
    # the last run speaks for the exact model, and the other one keeps its file's name
    assert a9a["SVC (exact)", 11616]["seconds"] == 2 and ("SVC (exact), cpsp", 11000) in a9a


def test_at_most_five_methods_at_first(results):
    """With that of the answer, six."""
    for folder in (results, report.RESULTS):
        for each in check(report.page_of(folder))[1]["comparisons"]:
            known = {model["method"] for model in each["models"] if model["score"] is not None}
            assert set(each["first"]) <= known
            assert len(each["first"]) == min(5, len(known))


def test_claims_of_certificates(results):
    cell = {"problems": 10, "claims": 20, "false": [["x", 1]]}
    stored = {"cells": {"SVC/0": cell, "SVR/0": {**cell, "false": []}}, "machine": MACHINE}
    (results / "certificates.json").write_text(json.dumps(stored))
    page, _ = check(report.page_of(results))
    at = page.texts.index("claims of certificates")
    assert page.texts[at - 1] == "40" and page.texts[at + 2] == "1"


def test_command(results, capsys, tmp_path):
    report.main(["--results", str(results), "--output", str(tmp_path / "page.html")])
    assert "page written to" in capsys.readouterr().out
    check((tmp_path / "page.html").read_text(encoding="utf-8"))
    (tmp_path / "empty").mkdir()
    with pytest.raises(SystemExit, match="there are no results here"):
        report.main(
            ["--results", str(tmp_path / "empty"), "--output", str(tmp_path / "other.html")]
        )
    with pytest.raises(SystemExit, match="does not exist"):
        report.main(["--results", str(results), "--output", str(tmp_path / "none" / "page.html")])
    assert not (tmp_path / "other.html").exists()


def test_the_stored_results_make_a_page():
    _, data = check(report.page_of(report.RESULTS))
    stored = json.loads((report.RESULTS / "cpsp.json").read_text())["cells"]["ijcnn1/refined/50"]
    (ijcnn1,) = (each for each in data["comparisons"] if each["name"] == "ijcnn1")
    assert any(
        model["vectors"] == 50 and model["score"] == 100 * stored["accuracy"]
        for model in ijcnn1["models"]
    )
    for each in data["comparisons"]:  # colours and markers tell the methods of a set apart
        styles = [method["style"] for method in each["methods"]]
        assert len(set(styles)) == len(styles) and max(styles) < 56
