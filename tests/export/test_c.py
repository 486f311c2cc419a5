"""Models as headers in C: compiled without a warning, and the same answers row by row."""

import os
import shutil
import subprocess
import warnings

import numpy as np
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import slimsvm
from slimsvm.export.description import described
from slimsvm.export.numbers import CODE_BYTES, numbers_of
from tests.export.models import classes, exact_outputs, fitted, rounded_outputs, scores_of

FLAGS = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic"]
MAIN = """#include <stdio.h>
#include "model.h"
int main(void) {
  static float x[SLIMSVM_N_FEATURES], s[SLIMSVM_N_SCORES];
  int i;
  for (;;) {
    for (i = 0; i < SLIMSVM_N_FEATURES; i++) if (scanf("%f", &x[i]) != 1) return 0;
    slimsvm_scores(x, s);
    printf("%.9g", (double)slimsvm_predict(x));
    for (i = 0; i < SLIMSVM_N_SCORES; i++) printf(" %.9g", (double)s[i]);
    PROBABILITIES
    printf("\\n");
  }
}
"""
PROBABLE = """{ static float p[SLIMSVM_N_CLASSES]; slimsvm_probabilities(x, p);
    for (i = 0; i < SLIMSVM_N_CLASSES; i++) printf(" %.9g", (double)p[i]); }"""
gcc = pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc is not installed")


def answered(folder, estimator, X, dtype="float", compiler="gcc"):
    """What the compiled program says for every row: prediction, scores, probabilities."""
    slimsvm.to_c(estimator, folder / "model.h", dtype=dtype)
    probable = described(estimator).probabilities is not None
    main = MAIN.replace("PROBABILITIES", PROBABLE if probable else "")
    (folder / "main.c").write_text(main)
    command = [compiler, *FLAGS, "main.c", "-o", "main", "-lm"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    given = "\n".join(" ".join(f"{v:.9g}" for v in row) for row in X)
    run = subprocess.run([folder / "main"], input=given, capture_output=True, text=True, check=True)
    found = np.array([[float(word) for word in line.split()] for line in run.stdout.splitlines()])
    assert len(found) == len(X)
    return found


NAMES = [
    "binary rbf 36",
    "six poly",
    "six sigmoid",
    "six ties",
    "six pairs",
    "26 rbf",
    "regression sparse",
    "one class laplacian",
    "sparse metric",
    "sparse binary",
    "linear 26",
    "online budget",
    "joint kernel",
]
UNSURE = "26 rbf", "int8"


@gcc
@pytest.mark.parametrize(
    ("name", "dtype"),
    # 26 classes have 325 pairs: in most rows one of them is zero within the error of int8
    [(name, dtype) for name in NAMES for dtype in ("float", "int8") if (name, dtype) != UNSURE],
)
def test_compiled_models_answer_as_the_model_does(tmp_path, name, dtype):
    estimator, X = fitted(name)
    X = X.astype(np.float32).astype(float)
    d = described(estimator)
    found = answered(tmp_path, estimator, X, dtype)
    outputs = exact_outputs(estimator, X)
    if dtype == "int8":  # the same codes, in float64 and by another program
        outputs = rounded_outputs(d, numbers_of(d, "int8"), X)
    error = 2e-5 * max(1.0, np.abs(outputs).max())
    if dtype == "int8":  # the table of the exponential is off by a share of 4e-5
        error += 5e-5 * d.total * (3 / d.n_classes if d.pairwise else 1)  # a pair has two classes
    if d.answer == "number":
        assert np.abs(found[:, 0] - outputs[:, 0]).max() < error
        return
    sure = (np.abs(outputs) > error).all(axis=1)
    assert sure.mean() > 0.7
    expected = scores_of(estimator, outputs).reshape(len(X), -1)
    own = found[:, 1 : 1 + expected.shape[1]]
    assert np.abs(own - expected)[sure].max() < error * (1 if d.by_pair else max(1, d.n_classes))
    assert np.array_equal(found[sure, 0], estimator._predicted(outputs)[sure])


@pytest.mark.skipif(shutil.which("clang") is None, reason="clang is not installed")
@pytest.mark.parametrize("name", ["six ties", "sparse metric", "linear 26", "regression sparse"])
def test_another_compiler_has_no_warning_either(tmp_path, name):
    estimator, X = fitted(name)
    found = answered(tmp_path, estimator, X[:5], "int8", "clang")
    assert np.array_equal(found, answered(tmp_path, estimator, X[:5], "int8"))


@gcc
@pytest.mark.parametrize("n_classes", [2, 6])
@pytest.mark.parametrize(
    "make",
    [
        lambda: slimsvm.SVC(probability=True),
        lambda: slimsvm.SparseSVC(15, random_state=0),
        lambda: slimsvm.SVCCV(Cs=[1.0, 10.0], gammas=[0.01, 0.1]),
        lambda: make_pipeline(
            StandardScaler(), CalibratedClassifierCV(slimsvm.SVC(), ensemble=False)
        ),
        lambda: CalibratedClassifierCV(slimsvm.SVC(), method="temperature", ensemble=False),
    ],
)
def test_probabilities(tmp_path, make, n_classes):
    X, y = classes(n_classes, 16)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = make().fit(X, y)
        X = X[:60].astype(np.float32).astype(float)
        found, expected = answered(tmp_path, model, X), model.predict_proba(X)
        assert np.abs(found[:, -n_classes:] - expected).max() < 1e-4
        assert np.array_equal(found[:, 0], model.predict(X))


@gcc
def test_a_model_fits_where_it_is_said_to_fit(tmp_path):
    """The compiled object, code and tables included, against what is promised."""
    estimator, _ = fitted("26 rbf")
    n_bytes = slimsvm.to_c(estimator, tmp_path / "model.h", dtype="int8")
    (tmp_path / "one.c").write_text(
        '#include "model.h"\nint label(const float *x);\n'
        "int label(const float *x) { return slimsvm_predict(x); }\n"
    )
    subprocess.run(["gcc", *FLAGS, "-Os", "-c", "one.c"], cwd=tmp_path, check=True)
    sizes = subprocess.run(["size", "one.o"], cwd=tmp_path, capture_output=True, text=True)
    text, data, bss = map(int, sizes.stdout.splitlines()[1].split()[:3])
    assert data == bss == 0 and n_bytes < text < n_bytes + CODE_BYTES


@gcc
def test_labels_that_are_words_and_two_models_in_one_program(tmp_path):
    X, y = classes(3, 16)
    words = np.array(['say "yes"', "grün", "plain"])[y]
    model = slimsvm.SVC().fit(X, words)
    slimsvm.to_c(model, tmp_path / "a.h", name="first")
    slimsvm.to_c(fitted("regression sparse")[0], tmp_path / "b.h", name="second")
    (tmp_path / "main.c").write_text(
        '#include <stdio.h>\n#include "a.h"\n#include "b.h"\nint main(void) {\n'
        "  float x[FIRST_N_FEATURES]; int i;\n"
        '  for (i = 0; i < FIRST_N_FEATURES; i++) if (scanf("%f", &x[i]) != 1) return 1;\n'
        '  printf("%s", first_classes[first_predict(x)]); return 0; }\n'
    )
    subprocess.run(["gcc", *FLAGS, "main.c", "-o", "m", "-lm"], cwd=tmp_path, check=True)
    for row in X[:5]:
        given = " ".join(map(str, row)).encode()
        run = subprocess.run([tmp_path / "m"], input=given, capture_output=True, check=True)
        assert run.stdout.decode() == model.predict(row[None])[0]


def test_what_is_refused_leaves_no_file(tmp_path):
    model, path = fitted("binary rbf 36")[0], tmp_path / "model.h"
    for dtype in ("int4", "float16", 8):
        with pytest.raises(ValueError, match="is none of 'float', 'int8'"):
            slimsvm.to_c(model, path, dtype=dtype)
    with pytest.raises(ValueError, match="more than max_bytes=5,000"):
        slimsvm.to_c(model, path, max_bytes=5000)
    with pytest.raises(TypeError, match="max_bytes='1 kB' must be a number of bytes"):
        slimsvm.to_c(model, path, max_bytes="1 kB")
    for name in ("my model", "while", None):
        with pytest.raises(ValueError, match="no beginning of names in C"):
            slimsvm.to_c(model, path, name=name)
    with pytest.raises(NotFittedError):
        slimsvm.to_c(slimsvm.SVC(), path)
    X, y = classes(2, 16)
    with pytest.raises(ValueError, match="is a Python function"):
        slimsvm.to_c(slimsvm.SVC(kernel=lambda a, b: a @ b.T).fit(X, y), path)
    with pytest.raises(ValueError, match="holds 5 models"):
        slimsvm.to_c(CalibratedClassifierCV(slimsvm.SVC()).fit(X, y), path)
    large = slimsvm.LinearSVR().fit(X * 1e-30, 1e30 * y)
    large.coef_ = large.coef_ * 0 + 1e39
    with pytest.raises(ValueError, match="beyond float32"):
        slimsvm.to_c(large, path)
    with pytest.raises(IsADirectoryError):
        slimsvm.to_c(model, tmp_path)
    with pytest.raises(FileNotFoundError):
        slimsvm.to_c(model, os.path.join(tmp_path, "nowhere", "model.h"))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("export", [slimsvm.to_c, slimsvm.to_javascript])
def test_codes_that_make_another_model_of_it_are_warned_of(tmp_path, export):
    """Sums of large values that nearly cancel do not bear a rounding to a byte."""
    X, y = classes(3, 2, 90)
    X = (X - X.min(axis=0)) / np.ptp(X, axis=0)
    coarse = slimsvm.LowRankSVC(kernel="poly", degree=2, coef0=1.0).fit(X, y)
    with pytest.warns(UserWarning, match=r"too coarse for this LowRankSVC: \d+ % of its own"):
        export(coarse, tmp_path / "model", dtype="int8")
    target = np.sin(20 * X[:, 0])
    number = slimsvm.SVR(kernel="poly", degree=5, coef0=1.0, C=1e3, gamma=4.0).fit(X, target)
    with pytest.warns(UserWarning, match="of the spread of the values"):
        export(number, tmp_path / "model", dtype="int8")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        export(slimsvm.SVC().fit(X, y), tmp_path / "model", dtype="int8")
        export(slimsvm.OneClassSVM().fit(X), tmp_path / "model", dtype="int8")
        export(coarse, tmp_path / "model")


@pytest.mark.parametrize("dtype", ["float", "int8"])
@pytest.mark.parametrize(("size", "words"), [(1e60, "beyond float32"), (1e-60, "are zero in")])
def test_scales_that_a_header_cannot_hold_are_refused(tmp_path, dtype, size, words):
    X, y = classes(2, 2, 40)
    model = slimsvm.SVC().fit(size * X, y)
    with pytest.raises(ValueError, match=words):
        slimsvm.to_c(model, tmp_path / "model.h", dtype=dtype)
    assert not list(tmp_path.iterdir())
