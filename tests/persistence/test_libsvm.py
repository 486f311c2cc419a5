"""LIBSVM's model files, checked by the twin of its prediction loop, and by LIBSVM itself where it
is installed.
"""

import os
import shutil
import subprocess
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import NotFittedError
from tests.persistence.models import (
    LIBSVM_KERNELS,
    MACHINES,
    as_dicts,
    data,
    fitted,
    pair_values,
    write_libsvm_data,
)
from tests.reference import libsvm_predict

from slimsvm import SVC, SVR
from slimsvm.persistence import load_libsvm, save_libsvm

needs_libsvm = pytest.mark.skipif(
    not (shutil.which("svm-predict") and shutil.which("svm-train")),
    reason="LIBSVM's programs are not installed",
)
CASES = [(k, s) for k in LIBSVM_KERNELS for s in (False, True) if not (s and k == "precomputed")]
LABELS = {2: [-1, 1], 3: [-4, 0, 9], 5: [1, 2, 3, 5, 8]}


def svm_predict(folder, model_path, X, precomputed=False):
    write_libsvm_data(folder / "new.txt", X, precomputed=precomputed)
    subprocess.run(
        ["svm-predict", "new.txt", str(model_path), "out.txt"],
        cwd=folder,
        check=True,
        capture_output=True,
        timeout=60,
    )
    return np.loadtxt(folder / "out.txt", ndmin=1)


def svm_train(folder, X, y, options, precomputed=False):
    write_libsvm_data(folder / "train.txt", X, y, precomputed)
    subprocess.run(
        ["svm-train", *options.split(), "train.txt", "trained.model"],
        cwd=folder,
        check=True,
        capture_output=True,
        timeout=60,
    )
    return folder / "trained.model"


def class_counts(machine):
    return (2, 3, 5) if machine in ("SVC", "NuSVC") else (2,)


def models(machine, kernel, sparse):
    for n_classes in class_counts(machine):
        yield *fitted(machine, kernel, n_classes, sparse, tuple(LABELS[n_classes])), n_classes


@pytest.mark.parametrize(("kernel", "sparse"), CASES)
@pytest.mark.parametrize("machine", MACHINES)
def test_the_twin_predicts_the_same_from_our_file(machine, kernel, sparse, tmp_path):
    for model, new, _ in models(machine, kernel, sparse):
        save_libsvm(model, tmp_path / "file.model")
        answers, values, _ = libsvm_predict.predict(
            tmp_path / "file.model", as_dicts(new, kernel == "precomputed")
        )
        np.testing.assert_allclose(values, pair_values(model, new), rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(answers, model.predict(new), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(("kernel", "sparse"), CASES)
@pytest.mark.parametrize("machine", MACHINES)
def test_round_trip(machine, kernel, sparse, tmp_path):
    for model, new, _ in models(machine, kernel, sparse):
        save_libsvm(model, tmp_path / "file.model")
        again = load_libsvm(tmp_path / "file.model", n_features=model.n_features_in_, sparse=sparse)
        assert type(again) is type(model)
        assert again.kernel_ == model.kernel_
        for name in (
            "dual_coef_",
            "intercept_",
            "n_support_",
            "classes_",
            "offset_",
            "n_features_in_",
        ):
            if hasattr(model, name):
                values = (getattr(again, name), getattr(model, name))
                values = [v.toarray() if sp.issparse(v) else v for v in values]
                np.testing.assert_array_equal(*values, name)
        if kernel != "precomputed":
            difference = again.support_vectors_ - model.support_vectors_
            assert abs(difference).max() == 0
            assert (again.support_ == -1).all()
        else:
            np.testing.assert_array_equal(again.support_, model.support_)
        np.testing.assert_array_equal(again.predict(new), model.predict(new))
        np.testing.assert_array_equal(pair_values(again, new), pair_values(model, new))
        assert "LIBSVM" in str(again.status_)
        assert not again.certificate_.holds


@needs_libsvm
@pytest.mark.parametrize(("kernel", "sparse"), CASES)
@pytest.mark.parametrize("machine", MACHINES)
def test_svm_predict_reads_our_file(machine, kernel, sparse, tmp_path):
    for model, new, _ in models(machine, kernel, sparse):
        save_libsvm(model, tmp_path / "file.model")
        answers = svm_predict(tmp_path, tmp_path / "file.model", new, kernel == "precomputed")
        np.testing.assert_allclose(answers, model.predict(new), rtol=1e-9, atol=1e-9)


@needs_libsvm
@pytest.mark.parametrize("kernel", LIBSVM_KERNELS)
@pytest.mark.parametrize("machine", MACHINES)
def test_a_file_of_svm_train_predicts_what_svm_predict_predicts(machine, kernel, tmp_path):
    precomputed = kernel == "precomputed"
    machine_number = {"SVC": 0, "NuSVC": 1, "OneClassSVM": 2, "SVR": 3, "NuSVR": 4}[machine]
    for n_classes in class_counts(machine):
        X, y, target, new = data(n_classes, False, precomputed)
        order = np.random.default_rng(1).permutation(
            n_classes
        )  # labels do not ascend in the order of appearance
        y = np.array(LABELS[n_classes])[order][y]
        kind = f"-s {machine_number} -t {LIBSVM_KERNELS.index(kernel)}"
        options = f"-q {kind} -n 0.7 -g 0.05 -r 0.5 -d 2 -c 2"
        path = svm_train(
            tmp_path, X, target if machine.endswith("SVR") else y, options, precomputed
        )
        model = load_libsvm(path, n_features=X.shape[1])
        assert type(model).__name__ == machine
        answers, values, votes = libsvm_predict.predict(path, as_dicts(new, precomputed))
        np.testing.assert_allclose(
            svm_predict(tmp_path, path, new, precomputed), answers, rtol=1e-9, atol=1e-9
        )
        # equal votes are won by the first label of the file there, by the smallest here: the one
        # documented difference
        decided = (
            [sorted(v)[-2] < max(v) for v in votes] if n_classes > 2 else [True] * len(answers)
        )
        assert np.mean(decided) > 0.7
        np.testing.assert_allclose(
            model.predict(new)[decided], np.array(answers)[decided], rtol=1e-9, atol=1e-9
        )
        # and back: our file of the model that was read predicts the same again, decision values
        # included
        save_libsvm(model, tmp_path / "again.model")
        again, values_again, _ = libsvm_predict.predict(
            tmp_path / "again.model", as_dicts(new, precomputed)
        )
        np.testing.assert_allclose(
            np.array(again)[decided], np.array(answers)[decided], rtol=1e-9, atol=1e-9
        )
        np.testing.assert_allclose(
            np.sort(np.abs(values_again), axis=1),
            np.sort(np.abs(values), axis=1),
            rtol=1e-9,
            atol=1e-9,
        )


@needs_libsvm
@pytest.mark.parametrize("machine", ["SVC", "NuSVC"])
def test_probabilities_of_classes_are_kept(machine, tmp_path):
    X, y, _, new = data(3)
    number = {"SVC": 0, "NuSVC": 1}[machine]
    path = svm_train(tmp_path, X, y, f"-q -s {number} -b 1 -n 0.3")
    model = load_libsvm(path)
    np.testing.assert_allclose(model.predict(new), svm_predict(tmp_path, path, new), rtol=1e-9)
    again = tmp_path / "again.model"
    save_libsvm(model, again)
    p = model.predict_proba(new)
    np.testing.assert_allclose(load_libsvm(again).predict_proba(new), p, atol=1e-12)


@needs_libsvm
def test_probabilities_of_a_regression_are_left_out_with_a_warning(tmp_path):
    X, _, target, new = data(3)
    path = svm_train(tmp_path, X, target, "-q -s 3 -b 1")
    with pytest.warns(UserWarning, match="trained.model holds probability estimates of a SVR"):
        model = load_libsvm(path)
    np.testing.assert_allclose(model.predict(new), svm_predict(tmp_path, path, new), rtol=1e-9)


# -- permuted labels, by hand ----------------------------------------------------------------------


def random_file(path, rng, n_classes, kernel="rbf"):
    """A file with random numbers and labels in random order: nothing about it comes from our
    writer.
    """
    labels = rng.permutation(np.arange(-2, 6))[:n_classes]
    counts = rng.integers(0, 5, n_classes)
    head = [
        "svm_type c_svc",
        f"kernel_type {kernel}",
        *([] if kernel == "linear" else ["gamma 0.3"]),
        f"nr_class {n_classes}",
        f"total_sv {counts.sum()}",
        "rho " + " ".join(f"{r:.17g}" for r in rng.normal(size=n_classes * (n_classes - 1) // 2)),
        "label " + " ".join(map(str, labels)),
        "nr_sv " + " ".join(map(str, counts)),
        "SV",
    ]
    rows = [
        " ".join(
            [f"{c:.17g}" for c in rng.normal(size=n_classes - 1)]
            + [f"{j + 1}:{rng.normal():.8g}" for j in range(4) if rng.random() < 0.7]
        )
        for _ in range(counts.sum())
    ]
    path.write_text("\n".join(head + [row + " " for row in rows]) + "\n")
    return labels


@pytest.mark.parametrize("n_classes", [2, 3, 4, 5, 7])
def test_labels_in_any_order(n_classes, tmp_path):
    rng = np.random.default_rng(n_classes)
    compared = 0
    for _ in range(20):
        path = tmp_path / "file.model"
        labels = random_file(path, rng, n_classes, rng.choice(["rbf", "linear"]))
        model = load_libsvm(path, n_features=4)
        np.testing.assert_array_equal(model.classes_, np.sort(labels))
        new = rng.normal(size=(20, 4))
        answers, values, votes = libsvm_predict.predict(path, as_dicts(new))
        ours = pair_values(model, new)
        pairs = [(labels[i], labels[j]) for i in range(n_classes) for j in range(i + 1, n_classes)]
        own = [
            (model.classes_[i], model.classes_[j])
            for i in range(n_classes)
            for j in range(i + 1, n_classes)
        ]
        for (first, second), theirs in zip(pairs, np.transpose(values), strict=True):
            column, sign = (
                (own.index((first, second)), 1)
                if (first, second) in own
                else (own.index((second, first)), -1)
            )
            sign = (
                -sign if n_classes == 2 else sign
            )  # two classes: positive means the second of classes_
            np.testing.assert_allclose(sign * ours[:, column], theirs, rtol=1e-10, atol=1e-10)
        decided = [sorted(v)[-2] < max(v) for v in votes]
        np.testing.assert_array_equal(model.predict(new)[decided], np.array(answers)[decided])
        compared += sum(decided)
    assert compared > 100


# -- small print -----------------------------------------------------------------------------------


def test_two_classes_keep_the_sign_of_the_decision_function(tmp_path):
    model, new = fitted("SVC", "rbf", 2, False, (-1, 1))
    save_libsvm(model, tmp_path / "file.model")
    assert "label 1 -1\n" in (tmp_path / "file.model").read_text(), "as LIBSVM itself orders them"
    _, values, _ = libsvm_predict.predict(tmp_path / "file.model", as_dicts(new))
    np.testing.assert_allclose(np.ravel(values), model.decision_function(new), rtol=1e-9, atol=1e-9)


def test_a_decision_value_of_zero(tmp_path):
    model = SVC(kernel="linear").fit([[-1.0], [1.0]], [3, 7])
    assert model.decision_function([[0.0]])[0] == 0.0
    save_libsvm(model, tmp_path / "file.model")
    answers, _, _ = libsvm_predict.predict(tmp_path / "file.model", [{1: 0.0}])
    assert answers[0] == model.predict([[0.0]])[0]


def test_float_labels_that_are_whole_numbers(tmp_path):
    model, new = fitted("SVC", "rbf", 3, False, (-1.0, 0.0, 2.0))
    save_libsvm(model, tmp_path / "file.model")
    np.testing.assert_array_equal(
        load_libsvm(tmp_path / "file.model").predict(new), model.predict(new)
    )


@pytest.mark.parametrize("labels", [("a", "b", "c"), (0, 1, 2**31), (0.0, 1.0, 1e12)])
def test_other_labels_are_refused(labels, tmp_path):
    model, _ = fitted("SVC", "rbf", 3, False, labels)
    with pytest.raises(ValueError, match=r"integer labels \(32 bits\) only.*LabelEncoder"):
        save_libsvm(model, tmp_path / "file.model")
    assert os.listdir(tmp_path) == []


def test_boolean_labels_are_refused(tmp_path):
    model, _ = fitted("SVC", "rbf", 2, False, (False, True))
    with pytest.raises(ValueError, match="integer labels"):
        save_libsvm(model, tmp_path / "file.model")


def test_what_libsvm_does_not_have_is_refused(tmp_path):
    with pytest.raises(ValueError, match="LIBSVM has no laplacian kernel"):
        save_libsvm(fitted("SVC", "laplacian")[0], tmp_path / "file.model")
    with pytest.raises(NotFittedError):
        save_libsvm(SVC(), tmp_path / "file.model")
    X, y, _, _ = data(2)
    with pytest.raises(ValueError, match="Python function"):
        save_libsvm(SVC(kernel=lambda A, B: A @ B.T).fit(X, y), tmp_path / "file.model")
    model = SVC().fit(X, y)
    model.dual_coef_ = model.dual_coef_ * np.nan
    with pytest.raises(ValueError, match="infinite or undefined numbers among its coefficients"):
        save_libsvm(model, tmp_path / "file.model")
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_numbers_come_back_exactly(dtype, tmp_path):
    X, y, _, _ = data(2)
    model = SVC().fit((X * 1e-7 + 1 / 3).astype(dtype), y)
    save_libsvm(model, tmp_path / "file.model")
    np.testing.assert_array_equal(
        load_libsvm(tmp_path / "file.model").support_vectors_, model.support_vectors_.astype(float)
    )


def test_rows_without_features_and_models_without_vectors(tmp_path):
    model = SVC(kernel="rbf", gamma=0.5).fit(
        [[0.0, 0.0], [0.0, 1.0], [0.0, 0.0], [0.0, 2.0]], [0, 1, 0, 1]
    )
    save_libsvm(model, tmp_path / "file.model")
    again = load_libsvm(tmp_path / "file.model")
    np.testing.assert_array_equal(again.predict([[0.0, 0.0], [0.0, 3.0]]), [0, 1])
    X, _, _, new = data(2)
    flat = SVR(epsilon=10.0).fit(X, np.full(len(X), 3.0))
    assert flat.support_.size == 0
    save_libsvm(flat, tmp_path / "flat.model")
    np.testing.assert_array_equal(
        load_libsvm(tmp_path / "flat.model", n_features=X.shape[1]).predict(new), flat.predict(new)
    )


def test_the_number_of_features(tmp_path):
    X, y, _, new = data(2)
    model = SVC().fit(np.hstack([X, np.zeros((len(X), 3))]), y)
    save_libsvm(model, tmp_path / "file.model")
    assert load_libsvm(tmp_path / "file.model").n_features_in_ == X.shape[1], (
        "trailing zeros leave no trace"
    )
    wide = load_libsvm(tmp_path / "file.model", n_features=X.shape[1] + 3)
    np.testing.assert_array_equal(
        wide.predict(np.hstack([new, np.ones((len(new), 3))])),
        model.predict(np.hstack([new, np.ones((len(new), 3))])),
    )
    with pytest.raises(ValueError, match="n_features=2 is less than the 7 features"):
        load_libsvm(tmp_path / "file.model", n_features=2)
    save_libsvm(fitted("SVC", "precomputed")[0], tmp_path / "file.model")
    with pytest.raises(ValueError, match="n_features=2 is less than"):
        load_libsvm(tmp_path / "file.model", n_features=2)


def test_sparse_or_dense(tmp_path):
    save_libsvm(fitted("SVC", "rbf", 3, False)[0], tmp_path / "dense.model")
    save_libsvm(fitted("SVC", "rbf", 3, True)[0], tmp_path / "sparse.model")
    assert isinstance(load_libsvm(tmp_path / "dense.model").support_vectors_, np.ndarray)
    for wish in (True, False):
        for name in ("dense.model", "sparse.model"):
            assert (
                isinstance(load_libsvm(tmp_path / name, sparse=wish).support_vectors_, np.ndarray)
                is not wish
            )
    (tmp_path / "thin.model").write_text(
        "svm_type one_class\nkernel_type linear\nnr_class 2\ntotal_sv 2\nrho 1\n"
        "SV\n1 99:1 \n1 50:2 \n"
    )
    assert not isinstance(load_libsvm(tmp_path / "thin.model").support_vectors_, np.ndarray)


# -- damaged files ---------------------------------------------------------------------------------

GOOD = """svm_type c_svc
kernel_type rbf
gamma 0.5
nr_class 2
total_sv 3
rho 0.25
label 1 -1
nr_sv 2 1
SV
1 1:0.5 3:1
0.5 2:2
-1.5 1:1
"""


def test_the_good_file_is_good(tmp_path):
    path = tmp_path / "file.model"
    for content in (GOOD, GOOD.replace("\n", "\r\n"), GOOD.replace("\n", " \n"), GOOD + "\n\n"):
        path.write_bytes(content.encode())
        assert load_libsvm(path).n_support_.tolist() == [1, 2]


@pytest.mark.parametrize(
    ("old", "new", "line", "match"),
    [
        (
            "svm_type c_svc",
            "svm_type magic",
            1,
            "svm_type is 'magic', expected one of c_svc, nu_svc",
        ),
        ("svm_type c_svc", "hello world", 1, "not a LIBSVM model file"),
        ("kernel_type rbf", "kernel_type laplace", 2, "kernel_type is 'laplace'"),
        ("gamma 0.5", "gamma abc", 3, "gamma is 'abc', expected a number"),
        ("gamma 0.5", "gamma nan", 3, "gamma is 'nan', expected a number"),
        ("gamma 0.5", "gamma", 3, "gamma has no value"),
        ("gamma 0.5", "gamma -0.5", 9, "gamma -0.5, expected at least 0"),
        ("gamma 0.5", "gamma 0.5\ngamma 0.6", 4, "gamma is given twice"),
        ("gamma 0.5", "epsilon 0.5", 3, "'epsilon' is no keyword"),
        ("gamma 0.5\n", "", 8, "has no gamma"),
        ("gamma 0.5", "", 3, "'' is no keyword"),
        ("nr_class 2", "nr_class two", 4, "nr_class is 'two', expected an integer"),
        ("nr_class 2", "nr_class 3", 9, "1 values of rho, expected 3 for nr_class 3"),
        ("nr_class 2", "nr_class 1", 9, "one class only"),
        ("total_sv 3", "total_sv 4", 9, "nr_sv adds up to 3, but total_sv is 4"),
        ("total_sv 3", "total_sv -3", 5, "total_sv is '-3', expected an integer of at least 0"),
        ("rho 0.25", "rho 0.25 0.5", 9, "2 values of rho, expected 1"),
        ("rho 0.25", "rho", 9, "0 values of rho, expected 1"),
        ("label 1 -1", "label 1 1", 9, "a label is given twice"),
        ("label 1 -1", "label 1 x", 7, "label is 'x', expected an integer"),
        ("label 1 -1", f"label 1 {2**40}", 7, "expected an integer of 32 bits"),
        ("label 1 -1\n", "", 8, "has no label"),
        ("nr_sv 2 1", "nr_sv 2", 9, "1 values of nr_sv, expected 2"),
        ("1 1:0.5 3:1", "one 1:0.5 3:1", 10, "a coefficient is 'one', expected a number"),
        ("1 1:0.5 3:1", "1 1:0.5 3:1 4", 10, "'4' is not of the form index:value"),
        ("1 1:0.5 3:1", "1 1:0.5 3:x", 10, "'3:x' is not of the form index:value"),
        ("1 1:0.5 3:1", "1 3:0.5 1:1", 10, "must start at 1 and ascend"),
        ("1 1:0.5 3:1", "1 1:0.5 1:1", 10, "must start at 1 and ascend"),
        ("1 1:0.5 3:1", "1 0:0.5 3:1", 10, "must start at 1 and ascend"),
        ("1 1:0.5 3:1", "1 1:0.5 3:inf", 10, "not a finite number"),
        ("1 1:0.5 3:1", "1 1:0_5 3:1", 10, "not a finite number"),
        ("1 1:0.5 3:1", f"1 1:0.5 {10**30}:1", 10, "too large"),
        ("0.5 2:2", "", 11, "begins with 1 coefficient"),
        ("-1.5 1:1\n", "", 12, "the file ends here, expected support vector 3 of 3"),
        ("-1.5 1:1\n", "-1.5 1:1\n-1.5 1:1\n", 13, "more in the file than total_sv 3"),
        ("-1.5 1:1\n", "-1.5 1:1", 12, "the file ends within this line"),
        ("-1.5 1:1\n", "-1.5 1:1 \xff\n", 12, "not text"),
        ("SV\n1 1:0.5 3:1\n0.5 2:2\n-1.5 1:1\n", "", 9, "ends before the line 'SV'"),
        (GOOD, "", 1, "the file is empty"),
        (GOOD, "\n", 1, "not a LIBSVM model file"),
        (GOOD, "PK\x03\x04\n", 1, "not a LIBSVM model file"),
    ],
)
def test_damaged_files_name_the_line(old, new, line, match, tmp_path):
    assert GOOD.count(old) >= 1
    path = tmp_path / "file.model"
    path.write_bytes(GOOD.replace(old, new, 1).encode("latin-1"))
    with pytest.raises(ValueError) as caught:
        load_libsvm(path)
    assert str(caught.value).startswith(f"{path}, line {line}: ")
    assert match in str(caught.value)


@pytest.mark.parametrize("words", ["1", "1 1:2", "1 0:x", "1 0:0", "1 0:1.5", "1 0:99999999999"])
def test_damaged_rows_of_a_precomputed_kernel(words, tmp_path):
    path = tmp_path / "file.model"
    path.write_text(
        "svm_type epsilon_svr\nkernel_type precomputed\nnr_class 2\ntotal_sv 1\nrho 0.25\n"
        f"SV\n{words}\n"
    )
    with pytest.raises(ValueError, match=r"line 7: .*number of the training row"):
        load_libsvm(path)


@pytest.mark.parametrize(
    ("machine", "kernel"), [("SVC", "rbf"), ("SVR", "linear"), ("SVC", "precomputed")]
)
def test_truncated_files(machine, kernel, tmp_path):
    path = tmp_path / "file.model"
    save_libsvm(fitted(machine, kernel)[0], path)
    content = path.read_bytes()
    for length in {
        *(len(content) * tenth // 10 for tenth in range(10)),
        *range(len(content) - 60, len(content)),
    }:
        path.write_bytes(content[:length])
        with pytest.raises(ValueError, match=r"line \d+"):
            load_libsvm(path)


def test_flipped_bytes_give_a_model_or_a_clear_error(tmp_path):
    """Text has no checksum, so a digit may change unnoticed; but nothing else than ValueError may
    happen.
    """
    path = tmp_path / "file.model"
    rng = np.random.default_rng(0)
    for at in range(len(GOOD)):
        for byte in rng.integers(0, 256, 4).tolist():
            path.write_bytes(GOOD[:at].encode() + bytes([byte]) + GOOD[at + 1 :].encode())
            try:
                model = load_libsvm(path)
            except ValueError as error:
                assert str(path) in str(error)
            else:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    model.predict(
                        np.ones((1, min(model.n_features_in_, 1000)))
                    ) if model.n_features_in_ < 1000 else None


def test_a_missing_file(tmp_path):
    with pytest.raises(FileNotFoundError):
        load_libsvm(tmp_path / "missing.model")


def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "file.model"
    save_libsvm(fitted("SVR", "rbf", 2)[0], path)
    before = path.read_bytes()

    def rows(X, first):
        yield "1:1"
        raise KeyboardInterrupt

    monkeypatch.setattr("slimsvm.persistence.libsvm.written_rows", rows)
    with pytest.raises(KeyboardInterrupt):
        save_libsvm(fitted()[0], path)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["file.model"]
