"""train, predict, info and convert, within this process."""

import errno
import importlib
import json
import os
from pathlib import Path

import click
import numpy as np
import pytest
from click.testing import CliRunner

import slimsvm.cli.commands
import slimsvm.persistence.atomic
from slimsvm.cli.program import program
from slimsvm.estimators import SVC, SVR, NuSVC, NuSVR, OneClassSVM
from slimsvm.persistence import load, load_libsvm, load_svmlight
from tests.cli.conftest import write_csv


def predictions(path):
    return np.loadtxt(path)


# -- train -----------------------------------------------------------------------------------------


def test_train_writes_beside_the_data_and_says_what_it_did(slimsvm, files):
    result = slimsvm("train", "c.svm", "--C", 10, "--gamma", 20)
    assert result.stdout == ""
    assert (
        "300 rows, 2 features, 2 classes" in result.stderr
        and "Converged" in result.stderr
        and "c.svm.slim" in result.stderr
    )
    X, y = files
    model, twin = load("c.svm.slim"), SVC(C=10, gamma=20).fit(X, y)
    assert model.classes_.tolist() == [-1, 1] and model.classes_.dtype.kind == "i"
    np.testing.assert_allclose(model.decision_function(X), twin.decision_function(X), atol=1e-6)
    assert (
        model.get_params()["n_jobs"] is None and not model.get_params()["verbose"]
    )  # these were of the run, not of the model


@pytest.mark.parametrize("name", ["c.svm", "c.csv", "c.npz", "sparse.npz", "c.parquet"])
def test_all_formats_give_the_same_model(slimsvm, files, name):
    X, y = files
    if name == "c.parquet":
        parquet = pytest.importorskip("pyarrow.parquet")
        import pyarrow

        parquet.write_table(pyarrow.table({"a": X[:, 0], "b": X[:, 1], "label": y}), name)
    slimsvm("train", name, "m.slim", "--gamma", 20, "--quiet")
    slimsvm("predict", name, "m.slim", "out.txt")
    np.testing.assert_array_equal(predictions("out.txt"), SVC(gamma=20).fit(X, y).predict(X))


@pytest.mark.parametrize(
    ("machine", "options", "twin"),
    [
        (
            "svc",
            ["--C", 2, "--kernel", "poly", "--degree", 2, "--coef0", -1, "--gamma", "auto"],
            SVC(C=2, kernel="poly", degree=2, coef0=-1, gamma="auto"),
        ),
        (
            "svc",
            ["--class-weight", "balanced", "--no-shrinking"],
            SVC(class_weight="balanced", shrinking=False),
        ),
        (
            "svc",
            ["--class-weight", "-1=3", "--class-weight", "+1=0.5"],
            SVC(class_weight={-1: 3.0, 1: 0.5}),
        ),
        (
            "svc",
            ["--tol", 1e-5, "--cache-size", 10, "--max-iter", 10**6],
            SVC(tol=1e-5, cache_size=10, max_iter=10**6),
        ),
        ("svc", ["--kernel", "laplacian"], SVC(kernel="laplacian")),
        ("nu-svc", ["--nu", 0.3], NuSVC(nu=0.3)),
        ("svr", ["--C", 3, "--epsilon", 0.2], SVR(C=3, epsilon=0.2)),
        ("nu-svr", ["--C", 3, "--nu", 0.4], NuSVR(C=3, nu=0.4)),
        ("one-class", ["--nu", 0.2, "--gamma", 0.5], OneClassSVM(nu=0.2, gamma=0.5)),
    ],
)
def test_machines_and_options(result_of, files, machine, options, twin):
    X, y = files
    facts = result_of("train", "c.svm", "m.slim", "--machine", machine, *options, "--quiet")
    model = load("m.slim")
    assert type(model) is type(twin) and facts["estimator"] == type(twin).__name__
    different = {
        name for name, value in twin.get_params().items() if model.get_params()[name] != value
    }
    assert not different
    np.testing.assert_allclose(model.predict(X), twin.fit(X, y).predict(X), atol=2e-3)


@pytest.mark.parametrize(
    ("name", "loader"),
    [
        ("m.slim", load),
        ("m", load),
        ("m.libsvm", load_libsvm),
        ("m.model", load_libsvm),
        ("m.svmlight", load_svmlight),
    ],
)
def test_model_formats_by_extension(slimsvm, files, name, loader):
    X, y = files
    slimsvm("train", "c.svm", name, "--gamma", 20)
    np.testing.assert_array_equal(loader(name).predict(X), SVC(gamma=20).fit(X, y).predict(X))


def test_json_of_train(result_of, files):
    facts = result_of("train", "c.svm", "--max-iter", 1, "--C", 1000)
    assert facts["rows"] == 300 and facts["n_features"] == 2 and facts["classes"] == [-1, 1]
    assert facts["kernel"]["name"] == "rbf" and facts["kernel"]["gamma"] > 0
    assert facts["status"]["reason"] == "max_iter" and facts["certificate"]["violation"] > 0
    assert facts["bytes"] == os.path.getsize("c.svm.slim") and facts["model"] == "c.svm.slim"
    assert facts["n_support_vectors"] == sum(facts["n_support"])


def test_progress_goes_to_standard_error(slimsvm, files):
    result = slimsvm("train", "c.svm", "--verbose", "--json")
    assert json.loads(result.stdout)["estimator"] == "SVC"
    assert "support vectors" in result.stderr


def test_quiet_is_quiet(slimsvm, files):
    result = slimsvm("train", "c.svm", "--quiet")
    assert result.output == ""
    assert (
        "max_iter" in slimsvm("train", "c.svm", "--quiet", "--max-iter", 1, "--C", 1000).stderr
    )  # but a model that is not done is news


def test_standard_input_and_output(slimsvm, files):
    X, y = files
    text = Path("c.svm").read_bytes()
    slimsvm("train", "-", "m.slim", "--gamma", 20, input=text)
    np.testing.assert_array_equal(load("m.slim").predict(X), SVC(gamma=20).fit(X, y).predict(X))
    slimsvm(
        "train", "-", "csv.slim", "--gamma", 20, "--format", "csv", input=Path("c.csv").read_bytes()
    )
    sparse = load("m.slim").dual_coef_.toarray()  # LIBSVM's format makes sparse rows
    np.testing.assert_allclose(load("csv.slim").dual_coef_, sparse, atol=1e-9)
    slimsvm(
        "train", "-", "npz.slim", "--gamma", 20, "--format", "npz", input=Path("c.npz").read_bytes()
    )
    assert slimsvm("train", "-", "-", "--gamma", 20, input=text).stdout.startswith(
        "svm_type c_svc\n"
    )
    model = slimsvm("train", "c.svm", "-", "--gamma", 20, "--to", "slim").stdout_bytes
    Path("copy.slim").write_bytes(model)
    np.testing.assert_array_equal(load("copy.slim").predict(X), load("m.slim").predict(X))
    assert "accuracy" in slimsvm("predict", "c.svm", "-", "out.txt", input=model).stderr
    out = slimsvm("predict", "-", "m.slim", input=text)
    np.testing.assert_array_equal(np.array(out.stdout.split(), float), load("m.slim").predict(X))


def test_text_labels_and_names(slimsvm, result_of):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 2))
    X[:, 0] += np.sign(X[:, 0])  # clearly apart
    y = np.where(X[:, 0] > 0, "right side", "links, ß")
    write_csv("t.csv", X, [f'"{label}"' for label in y], header=["u", "v", "kind"])
    slimsvm("train", "t.csv", "t.slim", "--C", 100)
    assert load("t.slim").feature_names_in_.tolist() == ["u", "v"]
    result = slimsvm("predict", "t.csv", "t.slim", "out.txt")
    assert Path("out.txt").read_text(encoding="utf-8").splitlines() == y.tolist()
    assert "accuracy 100 % (60 of 60)" in result.stderr and "warning" not in result.stderr
    write_csv("other.csv", X[:, ::-1], header=["v", "u"])  # other order, no labels
    facts = result_of("predict", "other.csv", "t.slim")
    assert facts["predictions"] == y.tolist() and "accuracy" not in facts


def test_class_weight_of_text_labels(slimsvm):
    write_csv("t.csv", np.array([[0.0], [1.0], [2.0], [3.0]]), ["no", "no", "yes", "yes"])
    slimsvm("train", "t.csv", "--class-weight", "yes=2")
    assert load("t.csv.slim").class_weight == {"yes": 2.0}
    assert (
        "no row has the label 'maybe'"
        in slimsvm("train", "t.csv", "--class-weight", "maybe=2", code=2).stderr
    )


def test_precomputed_kernel(slimsvm, files):
    X, y = files
    K = X @ X.T + 1
    lines = [
        f"{label} 0:{at + 1} "
        + " ".join(f"{j + 1}:{value!r}" for j, value in enumerate(row.tolist()))
        for at, (label, row) in enumerate(zip(y, K, strict=True))
    ]
    Path("k.svm").write_text("\n".join(lines))
    shuffled = np.random.default_rng(0).permutation(len(lines))
    Path("shuffled.svm").write_text("\n".join(lines[at] for at in shuffled))
    for model in ("k.slim", "k.libsvm"):
        for rows in ("shuffled.svm", "k.svm"):  # the serial number says which column is a row's own
            slimsvm("train", rows, model, "--kernel", "precomputed")
            slimsvm("predict", "k.svm", model, "out.txt")
            np.testing.assert_array_equal(
                predictions("out.txt"), SVC(kernel="precomputed").fit(K, y).predict(K)
            )
    for name, own in (("some", lines[5:12]), ("twice", lines[:-1] + lines[:1])):
        Path(name).write_text("\n".join(own))
        said = slimsvm("train", name, "x.slim", "--kernel", "precomputed", code=1).output
        assert f"{name}: the serial numbers (0:1, 0:2, ...)" in said
    assert not Path("x.slim").exists()


@pytest.mark.parametrize(
    "arguments",
    [
        ["train"],
        ["train", "-"],
        ["train", "c.svm", "--C", "0"],
        ["train", "c.svm", "--C", "much"],
        ["train", "c.svm", "--C", "nan"],
        ["train", "c.svm", "--gamma", "inf"],
        ["train", "c.svm", "--coef0", "nan"],
        ["train", "c.svm", "--n-jobs", "0"],
        ["train", "m.slim", "x.slim"],
        ["train", "c.svm", "--gamma", "-1"],
        ["train", "c.svm", "--gamma", "wide"],
        ["train", "c.svm", "--kernel", "magic"],
        ["train", "c.svm", "--tol", "0"],
        ["train", "c.svm", "--nu", "0.5"],
        ["train", "c.svm", "--machine", "nu-svc", "--nu", "1.5"],
        ["train", "c.svm", "--machine", "nu-svc", "--C", "1"],
        ["train", "c.svm", "--machine", "svr", "--class-weight", "balanced"],
        ["train", "c.svm", "--class-weight", "heavy"],
        ["train", "c.svm", "--class-weight", "1=-2"],
        ["train", "c.svm", "--class-weight", "7=2"],
        ["train", "c.svm", "--max-time", "0"],
        ["train", "c.svm", "--nonsense"],
        ["train", "c.svm", "-", "--json"],
        ["train", "c.svm", "c.svm"],
        ["predict", "c.svm"],
        ["predict", "-", "-"],
        ["predict", "m.slim", "c.svm"],
        ["predict", "c.svm", "m.slim", "c.svm"],
        ["predict", "c.svm", "m.slim", "m.slim"],
        ["convert", "m.slim", "m.unknown"],
        ["convert", "m.slim", "-", "--json"],
        ["nonsense"],
        ["demo", "--rows", "3"],
    ],
)
def test_wrong_usage(slimsvm, files, arguments):
    slimsvm("train", "c.svm", "m.slim")
    before = {path: path.read_bytes() for path in Path().iterdir()}
    result = slimsvm(*arguments, code=2)
    assert result.stdout == "" and "Usage: slimsvm" in result.stderr
    assert before == {path: path.read_bytes() for path in Path().iterdir()}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["train", "missing.svm"], "slimsvm: error: missing.svm: No such file or directory\n"),
        (["train", "bad.svm"], "slimsvm: error: bad.svm, line 2: feature indices start at 1"),
        (
            ["train", "bad.csv"],
            "slimsvm: error: bad.csv, line 2: 2 columns, but the first line has 3\n",
        ),
        (["train", "one.svm"], "The number of classes has to be greater than one"),
        (
            ["train", "words.csv", "--machine", "svr"],
            "words.csv: the labels are text, and regression needs numbers",
        ),
        (
            ["train", "c.svm", "--n-features", "1"],
            "c.svm, line 1: feature 2, but there are only 1 features",
        ),
        (
            ["train", "c.svm", "no/such/folder.slim"],
            "no/such/folder.slim: the folder for it does not exist",
        ),
        (["train", "c.svm", "folder"], "folder: Is a directory"),
        (["train", "c.svm", "--kernel", "precomputed"], "square"),
        (["predict", "missing.svm", "m.slim"], "missing.svm: No such file"),
        (["predict", "c.svm", "missing.slim"], "missing.slim: No such file"),
        (
            ["predict", "wide.svm", "m.slim"],
            "wide.svm, line 1: feature 3, but there are only 2 features",
        ),
        (["predict", "wide.csv", "m.slim"], "wide.csv: 5 columns, but the model has 2 features"),
        (["predict", "c.svm", "m.slim", "no/such/folder.txt"], "the folder for it does not exist"),
        (["predict", "c.svm", "half.slim"], "half.slim"),
        (["predict", "c.svm", "garbage.slim"], "garbage.slim"),
        (["predict", "c.svm", "garbage.model"], "garbage.model"),
        (["predict", "c.svm", "garbage.svmlight"], "garbage.svmlight"),
        (["predict", "c.svm", "half.model"], "half.model"),
        (["predict", "c.svm", "c.npz"], "c.npz"),
        (["info", "garbage.slim"], "garbage.slim"),
        (["info", "c.svm"], "c.svm"),
        (["info", "folder"], "folder: Is a directory"),
        (["convert", "garbage.slim", "x.model"], "garbage.slim"),
        (["convert", "m.slim", "no/such/folder.model"], "folder"),
        (["convert", "many.slim", "x.svmlight"], "two classes"),
    ],
)
def test_bad_data_and_models(slimsvm, files, arguments, message):
    X, _ = files
    slimsvm("train", "c.svm", "m.slim")
    slimsvm("train", "c.svm", "m.model")
    write_csv("many.csv", X[:9], [0, 1, 2] * 3)
    slimsvm("train", "many.csv", "many.slim")
    Path("half.slim").write_bytes(Path("m.slim").read_bytes()[:2000])
    Path("half.model").write_bytes(Path("m.model").read_bytes()[:1000])
    for name in ("garbage.slim", "garbage.model", "garbage.svmlight"):
        Path(name).write_bytes(bytes(range(256)) * 4)
    Path("bad.svm").write_text("1 1:1\n0 0:1\n")
    Path("bad.csv").write_text("1,2,3\n1,2\n")
    Path("one.svm").write_text("1 1:1\n1 1:2\n")
    Path("words.csv").write_text("1,2,a\n3,4,b\n")
    Path("wide.svm").write_text("1 1:1 3:1\n")
    Path("wide.csv").write_text("1,2,3,4,5\n")
    Path("folder").mkdir()
    before = set(Path().iterdir())
    result = slimsvm(*arguments, code=1)
    assert (
        message in result.stderr
        and result.stderr.startswith("slimsvm: error: ")
        and "Traceback" not in result.output
    )
    assert result.stdout == ""
    assert before == set(Path().iterdir())  # nothing new, not even a temporary file


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device of Linux")
@pytest.mark.parametrize(
    "arguments",
    [["predict", "c.svm", "m.slim"], ["convert", "--to", "slim", "m.slim"]],
    ids=["predict", "convert"],
)
def test_a_full_device_is_named(slimsvm, files, arguments):
    slimsvm("train", "c.svm", "m.slim")
    assert (
        "slimsvm: error: /dev/full: No space left on device"
        in slimsvm(*arguments, "/dev/full", code=1).stderr
    )


def test_a_model_that_its_format_cannot_hold_is_not_lost(slimsvm):
    write_csv("t.csv", np.array([[0.0], [1.0], [2.0], [3.0]]), ["no", "no", "yes", "yes"])
    result = slimsvm("train", "t.csv", "t.model", code=1)
    assert "t.model.slim instead" in result.stderr and not Path("t.model").exists()
    assert load("t.model.slim").classes_.tolist() == ["no", "yes"]


@pytest.mark.parametrize("seed", range(20))
def test_no_traceback_on_garbage(seed, files):
    rng = np.random.default_rng(seed)
    CliRunner().invoke(program, ["train", "c.svm", "m.slim"])
    CliRunner().invoke(program, ["train", "c.svm", "m.model"])
    names = ["c.svm", "c.csv", "c.npz", "sparse.npz", "m.slim", "m.model"]
    for name in names:
        content = bytearray(Path(name).read_bytes())
        how = rng.integers(4)
        if how == 0:  # some bytes altered
            for place in rng.integers(len(content), size=5):
                content[place] = rng.integers(256)
        elif how == 1:  # the end is missing
            del content[rng.integers(1, len(content)) :]
        elif how == 2:  # a piece is missing
            place = rng.integers(len(content))
            del content[place : place + 50]
        else:  # noise
            content = bytearray(rng.bytes(300))
        Path("bad" + Path(name).suffix).write_bytes(content)
        bad = "bad" + Path(name).suffix
        for arguments in (
            ["train", bad, "x.slim", "--max-time", "2"],
            ["predict", bad, "m.slim", "x.txt"],
            ["predict", "c.svm", bad, "x.txt"],
            ["info", bad],
        ):
            result = CliRunner().invoke(program, arguments, prog_name="slimsvm")
            assert result.exception is None or isinstance(result.exception, SystemExit), (
                arguments,
                how,
                result.exception,
            )
            assert result.exit_code in (0, 1, 2) and "Traceback" not in result.output


# -- predict ---------------------------------------------------------------------------------------


def test_decision_values_are_exact(slimsvm, files):
    X, _ = files
    slimsvm("train", "c.svm", "m.slim", "--gamma", 20)
    slimsvm("predict", "c.npz", "m.slim", "out.txt", "--decision")
    np.testing.assert_array_equal(
        predictions("out.txt"), load("m.slim").set_params(n_jobs=-1).decision_function(X)
    )


def test_decision_values_of_several_classes(slimsvm, files):
    X, _ = files
    write_csv("many.csv", X[:30], [0, 1, 2] * 10)
    slimsvm("train", "many.csv", "many.slim")
    result = slimsvm("predict", "many.csv", "many.slim", "out.txt", "--decision")
    assert predictions("out.txt").shape == (30, 3) and "accuracy" in result.stderr


def test_regression(slimsvm, result_of, files):
    X, _ = files
    y = np.round(X[:, 0] * 2 + 1, 6)
    write_csv("r.csv", X, y)
    slimsvm(
        "train",
        "r.csv",
        "r.slim",
        "--machine",
        "svr",
        "--kernel",
        "linear",
        "--C",
        100,
        "--epsilon",
        0.01,
    )
    result = slimsvm("predict", "r.csv", "r.slim", "out.txt", "--decision")
    assert "mean squared error" in result.stderr
    np.testing.assert_allclose(predictions("out.txt"), y, atol=0.02)
    facts = result_of("predict", "r.csv", "r.slim", "out.txt")
    assert facts["mean_squared_error"] < 1e-3 and "predictions" not in facts


def test_one_class(slimsvm, result_of, files):
    X, y = files
    write_csv("o.csv", X)  # no labels
    facts = result_of("train", "o.csv", "o.slim", "--machine", "one-class", "--nu", 0.1)
    assert facts["n_features"] == 2
    found = result_of("predict", "o.csv", "o.slim")
    assert set(found["predictions"]) == {-1, 1} and "accuracy" not in found
    write_csv("labelled.csv", X, y)
    assert 0 < result_of("predict", "labelled.csv", "o.slim")["accuracy"] < 1


def test_labels_that_cannot_be_compared_are_left_out(slimsvm, result_of, files):
    X, _ = files
    slimsvm("train", "c.svm", "m.slim")
    write_csv("other.csv", X[:5], ["a"] * 5)
    assert "accuracy" not in result_of("predict", "other.csv", "m.slim")


def test_models_of_libsvm_do_not_know_all_features(slimsvm, result_of):
    Path("d.svm").write_text("1 1:1 2:1\n0 1:-1 2:1\n" * 5)
    Path("wide.svm").write_text("1 1:1 2:1 4:1\n0 1:-1\n")
    slimsvm("train", "d.svm", "m.model", "--gamma", 0.5)
    slimsvm("train", "d.svm", "m.slim", "--gamma", 0.5)
    wide = result_of("predict", "wide.svm", "m.model", "--decision")["decision"]
    d = load_libsvm("m.model", n_features=4).decision_function([[1.0, 1, 0, 1], [-1, 0, 0, 0]])
    np.testing.assert_allclose(wide, d, atol=1e-12)
    slimsvm("predict", "wide.svm", "m.slim", code=1)  # our own files do know
    Path("narrow.svm").write_text("1 1:1\n")
    assert result_of("predict", "narrow.svm", "m.model")["predictions"] == [1]
    assert result_of("predict", "narrow.svm", "m.slim")["predictions"] == [1]


def test_svmlight_regression(slimsvm, files):
    X, _ = files
    write_csv("r.csv", X, X[:, 0])
    slimsvm("train", "r.csv", "r.svmlight", "--machine", "svr")
    slimsvm("train", "r.csv", "r.slim", "--machine", "svr")
    slimsvm("predict", "r.csv", "r.svmlight", "out.txt", "--machine", "svr")
    slimsvm("predict", "r.csv", "r.slim", "twin.txt")
    np.testing.assert_allclose(predictions("out.txt"), predictions("twin.txt"), atol=1e-9)


# -- outputs that fail half-way --------------------------------------------------------------------


def test_half_written_predictions_do_not_replace_good_ones(slimsvm, files, monkeypatch):
    slimsvm("train", "c.svm", "m.slim")
    Path("out.txt").write_text("good")

    def broken(values):
        yield b"1\n"
        raise OSError(errno.ENOSPC, "No space left on device", "out.txt")

    monkeypatch.setattr(slimsvm_commands, "as_lines", broken)
    before = set(Path().iterdir())
    assert (
        "out.txt: No space left on device"
        in slimsvm("predict", "c.svm", "m.slim", "out.txt", code=1).stderr
    )
    assert Path("out.txt").read_text() == "good" and set(Path().iterdir()) == before


@pytest.mark.parametrize("name", ["m.slim", "m.model", "m.svmlight"])
def test_half_written_models_do_not_replace_good_ones(slimsvm, files, monkeypatch, name):
    slimsvm("train", "c.svm", name)
    slimsvm("train", "c.svm", "other.slim", "--C", 7)
    good, before = Path(name).read_bytes(), set(Path().iterdir())

    def full(descriptor):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(slimsvm_atomic.os, "fsync", full)
    for arguments in (["train", "c.svm", name, "--C", 7], ["convert", "other.slim", name]):
        assert "No space left" in slimsvm(*arguments, code=1).stderr
        assert Path(name).read_bytes() == good and set(Path().iterdir()) == before


def test_interrupted_reading_writes_nothing(slimsvm, files, monkeypatch):
    def interrupted(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr("slimsvm.cli.train.read", interrupted)
    assert "interrupted; nothing was written" in slimsvm("train", "c.svm", code=1).stderr
    assert not Path("c.svm.slim").exists()


@pytest.mark.skipif(not os.path.exists("/dev/null"), reason="no devices here")
def test_devices_are_written_to_not_replaced(slimsvm, files):
    slimsvm("train", "c.svm", "/dev/null")
    slimsvm("train", "c.svm", "m.slim")
    slimsvm("predict", "c.svm", "m.slim", "/dev/null")
    assert not os.path.isfile("/dev/null")


# -- info and convert ------------------------------------------------------------------------------


def test_info(slimsvm, result_of, files):
    slimsvm("train", "c.svm", "m.slim", "--C", 3, "--gamma", 20)
    text = slimsvm("info", "m.slim").stdout
    for part in (
        "SVC",
        "rbf, gamma 20",
        "3",
        "support vectors",
        "violation",
        "Converged",
        "kB",
        "slim",
    ):
        assert part in text
    facts = result_of("info", "m.slim")
    assert (
        facts["C"] == 3
        and facts["bytes"] == os.path.getsize("m.slim")
        and facts["status"]["reason"] == "converged"
    )
    slimsvm("convert", "m.slim", "m.libsvm")
    facts = result_of("info", "m.libsvm")
    assert facts["format"] == "libsvm" and "C" not in facts and facts["certificate"]["gap"] is None
    assert "certificate" not in slimsvm("info", "m.libsvm").stdout
    assert result_of("info", "-", input=Path("m.slim").read_bytes())["format"] == "slim"


def test_convert_in_a_circle(slimsvm, files):
    slimsvm("train", "c.svm", "a.slim", "--gamma", 20)
    slimsvm("convert", "a.slim", "b.libsvm")
    slimsvm("convert", "b.libsvm", "c.svmlight")
    slimsvm("convert", "c.svmlight", "d", "--to", "slim")
    assert "model written to d" in slimsvm("convert", "c.svmlight", "d", "--to", "slim").stderr
    X, _ = files
    np.testing.assert_allclose(
        load("d").decision_function(X), load("a.slim").decision_function(X), atol=1e-9
    )
    out = slimsvm("convert", "-", "-", input=Path("a.slim").read_bytes())
    assert out.stdout == Path("b.libsvm").read_text()


def test_convert_warns_about_what_is_lost(slimsvm, files):
    X, _ = files
    write_csv("t.csv", X, np.where(X[:, 0] > 0, 5, 3))
    slimsvm("train", "t.csv", "t.slim")
    result = slimsvm("convert", "t.slim", "t.svmlight")
    assert "slimsvm: warning: " in result.stderr and "-1" in result.stderr


slimsvm_commands = slimsvm.cli.commands
slimsvm_atomic = slimsvm.persistence.atomic


def test_the_program_knows_every_command():
    context = click.Context(program)
    found = {name: program.get_command(context, name) for name in program.list_commands(context)}
    names = ("export", "report", "train", "tune")
    own = [importlib.import_module(f"slimsvm.cli.{name}") for name in names]
    modules = (slimsvm.cli.commands, *own)
    there = [
        value
        for module in modules
        for value in vars(module).values()
        if isinstance(value, click.Command)
    ]
    assert {name: command.name for name, command in found.items()} == {name: name for name in found}
    assert {id(command) for command in found.values()} == {id(command) for command in there}
