"""SVM-light's model files, checked by a twin of ``svm_classify``. Its licence does not let us ship
or call the program itself.
"""

import math
import os

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from tests.persistence.models import as_dicts, data, fitted

from slimsvm import SVC
from slimsvm.persistence import load_svmlight, save_svmlight

KERNELS = ["linear", "poly", "rbf", "sigmoid"]
CASES = [
    (machine, kernel, sparse)
    for machine in ("SVC", "NuSVC", "SVR", "NuSVR")
    for kernel in KERNELS
    for sparse in (False, True)
]


def svm_classify(path, rows):
    """f(x) = sum alpha*y k(x_i, x) - b, line by line as the description of the format says."""
    lines = path.read_text().splitlines()
    assert lines[0].startswith("SVM-light Version ")
    head = [line.split("#")[0].strip() for line in lines[1:11]]
    kind, d, g, s, r = int(head[0]), int(head[1]), *map(float, head[2:5])
    assert head[5] == "empty"
    vectors = []
    for line in lines[11:]:
        alpha, *pairs = line.split("#")[0].split()
        vectors.append(
            (float(alpha), {int(i): float(v) for i, v in (pair.split(":") for pair in pairs)})
        )
    assert len(vectors) == int(head[8]) - 1

    def kernel(a, b):
        dot = sum(value * b.get(index, 0.0) for index, value in a.items())
        distance = sum((a.get(i, 0.0) - b.get(i, 0.0)) ** 2 for i in {*a, *b})
        return [dot, (s * dot + r) ** d, math.exp(-g * distance), math.tanh(s * dot + r)][kind]

    return np.array(
        [
            sum(alpha * kernel(vector, row) for alpha, vector in vectors) - float(head[9])
            for row in rows
        ]
    )


@pytest.mark.parametrize(("machine", "kernel", "sparse"), CASES)
def test_the_twin_and_the_reader_predict_the_same(machine, kernel, sparse, tmp_path):
    model, new = fitted(machine, kernel, 2, sparse, (-1, 1))
    path = tmp_path / "file.model"
    save_svmlight(model, path)
    again = load_svmlight(path, estimator=machine, sparse=sparse)
    values = svm_classify(path, as_dicts(new))
    assert type(again) is type(model)
    assert again.kernel_ == model.kernel_
    assert again.shape_fit_ == model.shape_fit_
    assert again.n_features_in_ == model.n_features_in_
    np.testing.assert_array_equal(again.predict(new), model.predict(new))
    if machine.endswith("SVC"):
        np.testing.assert_allclose(values, model.decision_function(new), rtol=1e-9, atol=1e-9)
        np.testing.assert_array_equal(np.where(values > 0, 1, -1), model.predict(new))
        np.testing.assert_array_equal(again.n_support_, model.n_support_)
        np.testing.assert_array_equal(again.classes_, [-1, 1])
    else:
        np.testing.assert_allclose(values, model.predict(new), rtol=1e-9, atol=1e-9)


THEIRS = """SVM-light Version V5.00
2 # kernel type
3 # kernel parameter -d 
0.5 # kernel parameter -g 
1 # kernel parameter -s 
1 # kernel parameter -r 
empty# kernel parameter -u 
9 # highest feature index 
100 # number of training documents 
4 # number of support vectors plus 1 
0.12 # threshold b, each following line is a SV (starting with alpha*y)
0.75 1:0.5 3:1 # a comment: with a colon
-1.25 2:2 9:0.25 #
0.5 #
"""  # noqa: W291


def test_a_file_as_svm_light_writes_it(tmp_path):
    path = tmp_path / "file.model"
    path.write_text(THEIRS)
    model = load_svmlight(path)
    new = np.random.default_rng(0).normal(size=(10, 9))
    np.testing.assert_allclose(
        model.decision_function(new), svm_classify(path, as_dicts(new)), rtol=1e-12
    )
    assert model.n_support_.tolist() == [1, 2]
    assert model.shape_fit_ == (100, 9)
    regression = load_svmlight(path, estimator="SVR")
    np.testing.assert_allclose(regression.predict(new), model.decision_function(new), rtol=1e-12)
    assert load_svmlight(path, n_features=12).n_features_in_ == 12
    with pytest.raises(ValueError, match="n_features=8 is less than the 9 features"):
        load_svmlight(path, n_features=8)


def test_the_version_can_be_chosen_and_any_is_read(tmp_path):
    model, new = fitted("SVC", "rbf", 2, False, (-1, 1))
    for version in ("V6.01", "V3.50", "V9"):
        save_svmlight(model, tmp_path / "file.model", version=version)
        assert (tmp_path / "file.model").read_text().startswith(f"SVM-light Version {version}\n")
        np.testing.assert_array_equal(
            load_svmlight(tmp_path / "file.model").predict(new), model.predict(new)
        )
    for version in ("", "V6 02", "V6\nV7", "V6\n"):
        with pytest.raises(ValueError, match="not a version of SVM-light"):
            save_svmlight(model, tmp_path / "file.model", version=version)


def test_other_labels_become_minus_and_plus_one_with_a_warning(tmp_path):
    model, new = fitted("SVC", "rbf", 2, False, ("no", "yes"))
    with pytest.warns(UserWarning, match=r"'no'.* is written as -1 and .*'yes'.* as \+1"):
        save_svmlight(model, tmp_path / "file.model")
    np.testing.assert_array_equal(
        load_svmlight(tmp_path / "file.model").predict(new) > 0, model.predict(new) == "yes"
    )


def test_what_svm_light_does_not_have_is_refused(tmp_path):
    path = tmp_path / "file.model"
    with pytest.raises(ValueError, match="two classes, this model has 3"):
        save_svmlight(fitted("SVC", "rbf", 3)[0], path)
    with pytest.raises(ValueError, match="SVM-light has no OneClassSVM"):
        save_svmlight(fitted("OneClassSVM", "rbf", 2)[0], path)
    for kernel in ("laplacian", "precomputed"):
        with pytest.raises(ValueError, match=f"SVM-light has no {kernel} kernel"):
            save_svmlight(fitted("SVR", kernel, 2)[0], path)
    X, y, _, _ = data(2)
    with pytest.raises(ValueError, match="Python function"):
        save_svmlight(SVC(kernel=lambda A, B: A @ B.T).fit(X, y), path)
    with pytest.raises(NotFittedError):
        save_svmlight(SVC(), path)
    with pytest.raises(ValueError, match="estimator='OneClassSVM'"):
        load_svmlight(path, estimator="OneClassSVM")
    with pytest.raises(FileNotFoundError):
        load_svmlight(path)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("old", "new", "line", "match"),
    [
        ("SVM-light Version V5.00", "svm_type c_svc", 1, "not a SVM-light model file"),
        ("2 # kernel type", "4 # kernel type", 2, "kernel is of type 4"),
        ("2 # kernel type", "x # kernel type", 2, "the type of the kernel is 'x'"),
        ("2 # kernel type\n3 ", "1 # kernel type\n2.5 ", 6, "degree of the polynomial is 2.5"),
        ("0.5 # kernel", "nan # kernel", 4, "kernel parameter -g is 'nan'"),
        ("0.5 # kernel", "-1 # kernel", 6, "kernel parameter -g is -1.0, expected at least 0"),
        ("9 # highest", " # highest", 8, "the highest feature index is ''"),
        ("100 # number", "-1 # number", 9, "of at least 0"),
        ("4 # number", "0 # number", 10, "of at least 1"),
        ("4 # number", "5 # number", 15, "the file ends here, expected support vector 4 of 4"),
        ("4 # number", "3 # number", 14, "more in the file than 2 support vectors"),
        ("0.12 # threshold", "b # threshold", 11, "the threshold b is 'b'"),
        ("0.75 1:0.5", "0.75 1=0.5", 12, "'1=0.5' is not of the form index:value"),
        ("0.75 1:0.5", "x 1:0.5", 12, "alpha*y is 'x'"),
        ("0.75 1:0.5", "# 1:0.5", 12, "begins with alpha*y"),
        ("2:2 9:0.25", "9:0.25 2:2", 13, "ascend"),
        ("0.5 #\n", "0.5 #", 14, "ends within this line"),
    ],
)
def test_damaged_files_name_the_line(old, new, line, match, tmp_path):
    assert old in THEIRS
    path = tmp_path / "file.model"
    path.write_text(THEIRS.replace(old, new, 1))
    with pytest.raises(ValueError) as caught:
        load_svmlight(path)
    assert str(caught.value).startswith(f"{path}, line {line}: ")
    assert match in str(caught.value)


def test_truncated_files(tmp_path):
    path = tmp_path / "file.model"
    save_svmlight(fitted("SVC", "rbf", 2, False, (-1, 1))[0], path)
    content = path.read_bytes()
    for length in {
        *(len(content) * tenth // 10 for tenth in range(10)),
        *range(len(content) - 60, len(content)),
    }:
        path.write_bytes(content[:length])
        with pytest.raises(ValueError, match=r"line \d+"):
            load_svmlight(path)


def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "file.model"
    save_svmlight(fitted("SVR", "rbf", 2)[0], path)
    before = path.read_bytes()

    def rows(X):
        yield "1:1"
        raise OSError("disk full")

    monkeypatch.setattr("slimsvm.persistence.svmlight.text.written_rows", rows)
    with pytest.raises(OSError, match="disk full"):
        save_svmlight(fitted("SVR", "linear", 2)[0], path)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["file.model"]
