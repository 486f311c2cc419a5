"""train --n-basis, compress, and what info says of models with few vectors."""

import os
import re
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from click.testing import CliRunner

import slimsvm.report.speed as speed
from slimsvm import SVC, LinearSVC, OneClassSVM, SparseSVC, SparseSVR, load, save
from slimsvm.basis import ALL, REGISTRY
from slimsvm.cli.program import program
from slimsvm.persistence import load_libsvm
from tests.cli.conftest import write_csv

# -- train -----------------------------------------------------------------------------------------


def test_train_with_few_vectors(slimsvm, files):
    X, y = files
    result = slimsvm(
        "train", "c.svm", "m.slim", "--n-basis", 20, "--C", 10, "--gamma", 20, "--random-state", 0
    )
    assert (
        result.stdout == ""
        and "20 basis vectors, fitted in" in result.stderr
        # the finish, or the descent's coefficients where that costs accuracy
        and ("Converged" in result.stderr or "do better on rows held out" in result.stderr)
    )
    model = load("m.slim")
    twin = SparseSVC(20, C=10, gamma=20, random_state=0).fit(X, y)
    assert (
        type(model) is SparseSVC
        and model.n_basis_ == 20
        and model.n_jobs is None
        and not model.verbose
    )
    assert model.score(X, y) > twin.score(X, y) - 0.05
    slimsvm("predict", "c.svm", "m.slim", "out.txt")
    np.testing.assert_array_equal(np.loadtxt("out.txt"), model.predict(X))


@pytest.mark.parametrize(
    ("machine", "options", "twin"),
    [
        (
            "svc",
            ["--loss", "hinge", "--basis", "pursuit_rows", "--no-refine"],
            SparseSVC(loss="hinge", basis="pursuit_rows", refine=False),
        ),
        (
            "svc",
            ["--refine", "--tol", 0.01, "--max-iter", 30],
            SparseSVC(refine=True, tol=0.01, max_iter=30),
        ),
        (
            "svc",
            ["--class-weight", "balanced", "--kernel", "laplacian"],
            SparseSVC(class_weight="balanced", kernel="laplacian"),
        ),
        (
            "svc",
            ["--validation-fraction", 0.2, "--max-memory", 50],
            SparseSVC(validation_fraction=0.2, max_memory=50),
        ),
        (
            "svc",
            ["--max-basis", 30, "--accuracy-loss", 0.02],
            SparseSVC(max_basis=30, accuracy_loss=0.02),
        ),
        ("svr", ["--C", 3, "--epsilon", 0.2], SparseSVR(C=3, epsilon=0.2)),
        (
            "svr",
            ["--loss", "epsilon_insensitive", "--basis", "kmeans"],
            SparseSVR(loss="epsilon_insensitive", basis="kmeans"),
        ),
    ],
)
def test_machines_and_options(result_of, files, machine, options, twin):
    facts = result_of(
        "train",
        "c.svm",
        "m.slim",
        "--machine",
        machine,
        "--n-basis",
        5,
        "--random-state",
        3,
        *options,
        "--quiet",
    )
    model = load("m.slim")
    expected = {**twin.get_params(), "n_basis": 5, "random_state": 3}
    assert (
        type(model) is type(twin)
        and facts["estimator"] == type(twin).__name__
        and facts["n_basis"] == 5
    )
    assert {name for name, value in expected.items() if model.get_params()[name] != value} == set()


@pytest.mark.parametrize("basis", sorted({*REGISTRY, ALL}))
def test_every_basis_of_the_class_is_offered(slimsvm, files, basis):
    slimsvm(
        "train",
        "c.svm",
        "m.slim",
        "--n-basis",
        3,
        "--basis",
        basis,
        "--no-refine",
        "--random-state",
        0,
    )
    model = load("m.slim")
    assert model.basis == basis and (model.n_basis_ == 3 or basis == ALL)


def test_the_number_of_vectors_is_found(result_of, files):
    facts = result_of(
        "train",
        "c.csv",
        "m.slim",
        "--n-basis",
        "auto",
        "--max-basis",
        40,
        "--gamma",
        5,
        "--C",
        10,
        "--random-state",
        0,
    )
    sizes = [point["n_basis"] for point in facts["path"]]
    assert facts["n_basis"] in sizes and sizes == sorted(sizes) and sizes[-1] <= 40
    assert all(0 <= point["validation_score"] <= 1 for point in facts["path"])
    assert facts["model_bytes"] == load("m.slim").model_nbytes_


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--n-basis", "0"], "0 is not in the range"),
        (["--n-basis", "many"], "'many' is not a valid integer"),
        (
            ["--n-basis", "5", "--machine", "nu-svc"],
            "--n-basis has no meaning for --machine nu-svc, only for svc and svr",
        ),
        (
            ["--n-basis", "5", "--cache-size", "10"],
            "--cache-size has no meaning for --machine svc with --n-basis",
        ),
        (
            ["--n-basis", "5", "--epsilon", "1"],
            "--epsilon has no meaning for --machine svc with --n-basis",
        ),
        (
            ["--n-basis", "5", "--machine", "svr", "--class-weight", "balanced"],
            "--class-weight has no meaning for --machine svr",
        ),
        (["--loss", "hinge"], "--loss has a meaning only with --n-basis"),
        (["--no-refine"], "--refine has a meaning only with --n-basis"),
        (["--n-basis", "5", "--loss", "magic"], "'magic' is not one of"),
        (["--n-basis", "5", "--validation-fraction", "1"], "1.0 is not in the range"),
        (["--n-basis", "5", "--validation-fraction", "nan"], "'nan' is not a finite number"),
        (["--n-basis", "5", "--random-state", "4294967296"], "4294967296 is not in the range"),
        (["--n-basis", "5", "--basis", "magic"], "'magic' is not one of"),
    ],
)
def test_wrong_usage(slimsvm, files, arguments, message):
    result = slimsvm("train", "c.svm", "x.slim", *arguments, code=2)
    assert message in result.stderr and not Path("x.slim").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--loss", "squared_epsilon_insensitive"], "'loss' parameter of SparseSVC must be"),
        (["--loss", "hinge", "--refine"], "refine=True needs a loss with a derivative"),
        (["--kernel", "precomputed"], "square|not kernel='precomputed'"),
        (["--machine", "svr", "--basis", "margin"], "'basis' parameter of SparseSVR must be"),
        (["--loss", "hinge", "--basis", "greedy"], "basis='greedy' needs a loss with a curvature"),
    ],
)
def test_what_the_class_refuses(slimsvm, files, arguments, message):
    result = slimsvm("train", "c.svm", "x.slim", "--n-basis", 5, *arguments, code=1)
    assert (
        re.search(message, result.stderr)
        and result.stderr.startswith("slimsvm: error: ")
        and not Path("x.slim").exists()
    )


def test_a_sparse_machine_in_other_formats(slimsvm, files):
    X, _ = files
    pursued = ("--n-basis", 10, "--gamma", 5, "--basis", "pursuit")
    slimsvm("train", "c.svm", "m.libsvm", *pursued)
    assert load_libsvm("m.libsvm").support_vectors_.shape == (10, 2)
    slimsvm("train", "c.svm", "m.slim", *pursued)
    slimsvm("convert", "m.slim", "m.svmlight")
    slimsvm("predict", "c.svm", "m.svmlight", "out.txt", "--decision")
    np.testing.assert_allclose(
        np.loadtxt("out.txt"), load("m.slim").decision_function(X), atol=1e-8
    )
    write_csv("many.csv", X[:60], [0, 1, 2] * 20)
    result = slimsvm("train", "many.csv", "many.libsvm", "--n-basis", 5, code=1)
    assert "share all vectors" in result.stderr and "many.libsvm.slim instead" in result.stderr
    assert load("many.libsvm.slim").basis_coef_.shape == (5, 3)


# -- compress --------------------------------------------------------------------------------------


def test_compress(slimsvm, result_of, files):
    slimsvm("train", "c.svm", "m.slim", "--gamma", 5, "--C", 10)
    exact = load("m.slim")
    result = slimsvm("compress", "m.slim", "small.slim", "--n-basis", 15, "--random-state", 0)
    assert result.stdout == ""
    assert f"{len(exact.support_)} support vectors to 15 basis vectors in" in result.stderr
    assert "differs by" in result.stderr and "model written to small.slim" in result.stderr
    assert load("small.slim").basis_.shape == (15, 2) and load("small.slim").n_jobs is None
    facts = result_of(
        "compress", "m.slim", "tuned.slim", "--n-basis", 15, "--data", "c.csv", "--random-state", 0
    )
    assert (
        facts["n_basis"] == 15
        and facts["estimator"] == "SparseSVC"
        and facts["bytes"] == os.path.getsize("tuned.slim")
    )
    assert facts["before"]["accuracy"] == pytest.approx(exact.score(*files))
    assert facts["after"]["accuracy"] == pytest.approx(load("tuned.slim").score(*files))
    said = slimsvm("compress", "m.slim", "tuned.slim", "--n-basis", 15, "--data", "c.svm").stderr
    assert "accuracy on the data" in said and "tuned to the data" in said
    assert slimsvm("compress", "m.slim", "tuned.slim", "--n-basis", 15, "--quiet").output == ""


def test_compress_several_classes_names_and_text(slimsvm, files):
    X, _ = files
    y = np.array(["a", "b", "c"])[(X[:, 0] > -0.5).astype(int) + (X[:, 0] > 0.5)]
    write_csv("t.csv", X, y, header=["u", "v", "kind"])
    slimsvm("train", "t.csv", "t.slim", "--gamma", 1)
    slimsvm(
        "compress", "t.slim", "small.slim", "--n-basis", 8, "--data", "t.csv", "--random-state", 0
    )
    small = load("small.slim")
    assert (
        small.classes_.tolist() == ["a", "b", "c"]
        and small.feature_names_in_.tolist() == ["u", "v"]
        and small.pairwise_
    )
    result = slimsvm("predict", "t.csv", "small.slim", "out.txt")
    assert float(re.search(r"accuracy ([\d.]+) %", result.stderr)[1]) > 90


def test_compress_regression(result_of, files):
    X, _ = files
    write_csv("r.csv", X, np.sin(X[:, 0]))
    result_of("train", "r.csv", "r.slim", "--machine", "svr", "--C", 10)
    facts = result_of(
        "compress", "r.slim", "small.slim", "--n-basis", 20, "--data", "r.csv", "--random-state", 0
    )
    assert facts["estimator"] == "SparseSVR" and facts["after"]["mean_squared_error"] < 0.05


def test_compress_models_of_other_programs(slimsvm, files):
    X, y = files
    slimsvm("train", "c.svm", "m.libsvm", "--gamma", 5, "--C", 10)
    slimsvm("train", "c.svm", "m.svmlight", "--gamma", 5, "--C", 10)
    for name in ("m.libsvm", "m.svmlight"):
        slimsvm("compress", name, "small.libsvm", "--n-basis", 20, "--random-state", 0)
        assert load_libsvm("small.libsvm").support_vectors_.shape == (20, 2)
        slimsvm(
            "compress", name, "small.slim", "--n-basis", 20, "--data", "c.svm", "--random-state", 0
        )
        small = load("small.slim")
        assert abs(small.C - 10.0) < 1e-6 and small.score(X, y) > 0.85
    model = slimsvm(
        "compress", "-", "-", "--n-basis", 5, input=Path("m.libsvm").read_bytes()
    ).stdout
    assert model.startswith("svm_type c_svc\n") and "total_sv 5\n" in model


def test_compress_wider_data_than_the_file_shows(slimsvm):
    Path("d.svm").write_text("1 1:1 2:1\n0 1:-1 2:1\n1 1:0.7\n0 1:-0.8\n" * 5)
    Path("wide.svm").write_text("1 1:1 2:1 4:1\n0 1:-1\n")
    slimsvm("train", "d.svm", "m.model", "--gamma", 0.5)
    slimsvm("compress", "m.model", "small.slim", "--n-basis", 1, "--data", "wide.svm")
    assert load("small.slim").n_features_in_ == 4


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["m.slim", "x.slim"], "Missing option '--n-basis'"),
        (["m.slim", "x.slim", "--n-basis", "0"], "0 is not in the range"),
        (["m.slim", "m.slim", "--n-basis", "5"], "OUT is one of the input files"),
        (["m.slim", "c.svm", "--n-basis", "5", "--data", "c.svm"], "OUT is one of the input files"),
        (["-", "x.slim", "--n-basis", "5", "--data", "-"], "cannot both come from standard input"),
        (["m.slim", "-", "--n-basis", "5", "--json"], "cannot both go to standard output"),
    ],
)
def test_compress_wrong_usage(slimsvm, files, arguments, message):
    slimsvm("train", "c.svm", "m.slim")
    before = {path: path.read_bytes() for path in Path().iterdir()}
    assert message in slimsvm("compress", *arguments, code=2).stderr
    assert before == {path: path.read_bytes() for path in Path().iterdir()}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["missing.slim", "x.slim"], "missing.slim: No such file"),
        (["m.slim", "no/such/x.slim"], "the folder for it does not exist"),
        (["one.slim", "x.slim"], "compress takes a fitted SVC"),
        (["m.slim", "x.slim", "--data", "missing.svm"], "missing.svm: No such file"),
        (["m.slim", "x.slim", "--data", "wide.csv"], "4 features, but there must be 2"),
        (["m.slim", "x.slim", "--data", "other.csv"], "is not one of the classes"),
        (["m.slim", "x.slim", "--data", "words.csv"], "label"),
        (["named.slim", "x.slim", "--data", "unlabelled.csv"], "there are no labels"),
        (["sigmoid.slim", "x.slim"], "not an inner product"),
    ],
)
def test_compress_bad_data_and_models(slimsvm, files, arguments, message):
    X, y = files
    slimsvm("train", "c.svm", "m.slim")
    slimsvm("train", "c.csv", "named.slim")
    slimsvm("train", "c.svm", "sigmoid.slim", "--kernel", "sigmoid", "--gamma", 0.1)
    save(OneClassSVM().fit(X), "one.slim")
    write_csv("wide.csv", np.hstack([X, X]), y)
    write_csv("other.csv", X, np.where(y > 0, 7, -1))
    write_csv("words.csv", X, np.where(y > 0, "yes", "no"))
    write_csv("unlabelled.csv", X, header=["a", "b"])
    before = set(Path().iterdir())
    result = slimsvm("compress", *arguments, "--n-basis", 5, code=1)
    assert (
        message in result.stderr
        and result.stderr.startswith("slimsvm: error: ")
        and result.stdout == ""
    )
    assert before == set(Path().iterdir())


def test_compress_that_ran_out_of_time_says_so(slimsvm, files):
    slimsvm("train", "c.svm", "m.slim", "--gamma", 20)
    result = slimsvm(
        "compress", "m.slim", "x.slim", "--n-basis", 100, "--max-time", 0.001, "--quiet"
    )
    assert "Stopped at max_time" in result.stderr and load("x.slim").n_basis_ >= 1


# -- info ------------------------------------------------------------------------------------------


def test_info_of_a_sparse_machine(slimsvm, result_of, files):
    slimsvm(
        "train",
        "c.svm",
        "m.slim",
        "--n-basis",
        10,
        "--gamma",
        5,
        "--validation-fraction",
        0.2,
        "--random-state",
        0,
    )
    model = load("m.slim")
    text = slimsvm("info", "m.slim").stdout
    for part in (
        "SparseSVC",
        "logistic",
        "basis vectors    10",
        "path",
        "held out",
        "in memory",
        "microseconds a row",
        "scope: subspace",
    ):
        assert part in text
    assert len(re.findall(r"score 0\.\d{4}, held out 0\.\d{4}|score 1\.0000", text)) == len(
        model.path_
    )
    facts = result_of("info", "m.slim")
    assert (
        facts["n_basis"] == 10
        and facts["model_bytes"] == model.model_nbytes_
        and facts["format"] == "slim"
    )
    assert [point["n_basis"] for point in facts["path"]] == [point.n_basis for point in model.path_]
    assert facts["microseconds_per_row"] > 0 and facts["rows_measured"] == 10_000


def test_info_of_all_machines(slimsvm, result_of, files):
    X, y = files
    save(SVC(gamma=5.0).fit(X, y), "exact.slim")
    save(LinearSVC().fit(X, y), "linear.slim")
    save(SVC(kernel="precomputed").fit(X @ X.T, y), "precomputed.slim")
    save(SVC(gamma=5.0).fit(sp.csr_matrix(X), y), "csr.slim")
    slimsvm("compress", "exact.slim", "small.slim", "--n-basis", 5)
    for name in ("exact.slim", "linear.slim", "precomputed.slim", "csr.slim", "small.slim"):
        facts = result_of("info", name)
        assert facts["microseconds_per_row"] > 0 and facts["model_bytes"] > 0
        assert "microseconds a row" in slimsvm("info", name).stdout
    assert result_of("info", "linear.slim")["kernel"] == {"name": "linear"}
    assert result_of("info", "small.slim")["path"][0]["training_score"] is None  # no data, no score
    assert "path" not in slimsvm("info", "small.slim").stdout
    assert "accuracy" in slimsvm("predict", "c.svm", "linear.slim", "out.txt").stderr


def test_measurements_stay_small(monkeypatch):
    X = np.random.default_rng(0).normal(size=(50, 4))
    model = SVC().fit(X, X[:, 0] > 0)
    monkeypatch.setattr(speed, "MAX_VALUES", 4000)
    assert speed.seconds_per_row(model)[1] == 1000  # wide rows: fewer
    monkeypatch.setattr(speed, "MAX_SECONDS", 1e-9)
    assert speed.seconds_per_row(model)[1] == 100  # slow models: fewer
    assert model.n_jobs is None


@pytest.mark.parametrize("seed", range(5))
def test_no_traceback_on_garbage(seed, files):
    rng = np.random.default_rng(seed)
    CliRunner().invoke(program, ["train", "c.svm", "m.slim", "--n-basis", "5"])
    content = bytearray(Path("m.slim").read_bytes())
    for place in rng.integers(len(content), size=3):
        content[place] = rng.integers(256)
    Path("bad.slim").write_bytes(content)
    for arguments in (
        ["info", "bad.slim"],
        ["compress", "bad.slim", "x.slim", "--n-basis", "2"],
        ["predict", "c.svm", "bad.slim", "x.txt"],
    ):
        result = CliRunner().invoke(program, arguments, prog_name="slimsvm")
        assert result.exception is None or isinstance(result.exception, SystemExit), (
            arguments,
            result.exception,
        )
        assert result.exit_code in (0, 1, 2) and "Traceback" not in result.output
