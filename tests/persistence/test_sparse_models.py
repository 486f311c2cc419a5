"""Model files of SparseSVC, SparseSVR, LinearSVC, and of what compress returns."""

import hashlib
import io
import json
import math
import pickle
import warnings
import zipfile
from dataclasses import fields
from functools import cache

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from tests.persistence.models import as_dicts, data
from tests.persistence.test_native import (
    assert_same,
    edit_header,
    refused,
    replace_array,
    round_trip,
)
from tests.persistence.test_svmlight import svm_classify
from tests.reference import libsvm_predict

from slimsvm import SVC, LinearSVC, ReducedSVC, SparseSVC, SparseSVR, compress, load, save
from slimsvm.declarations import fitted_of
from slimsvm.kernels import RBF
from slimsvm.persistence import load_libsvm, load_svmlight, save_libsvm, save_svmlight

KERNELS = {
    "linear": {},
    "rbf": {"gamma": 0.2},
    "poly": {"gamma": 0.3, "coef0": 0.7, "degree": 2},
    "laplacian": {"gamma": 0.2},
}


@cache
def fitted(machine, kernel="rbf", n_classes=2, sparse=False, labels=None, **parameters):
    """A fitted model and new rows."""
    X, y, target, new = data(n_classes, sparse)
    y = y if labels is None else np.array(labels)[y]
    if machine is not LinearSVC:
        parameters = {
            "n_basis": 12,
            "random_state": 0,
            "kernel": kernel,
            **KERNELS[kernel],
            **parameters,
        }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return machine(**parameters).fit(X, target if machine is SparseSVR else y), new


def assert_same_point(first, second, name):
    for field in fields(first):
        one, other = getattr(first, field.name), getattr(second, field.name)
        if isinstance(one, float) and math.isnan(one):
            assert math.isnan(other)
        else:
            assert_same(one, other, f"{name}.{field.name}")


def assert_same_sparse(model, again, new):
    assert type(again) is type(model)
    for name in (own.name for own in fitted_of(type(model)) if own.stored):
        assert hasattr(again, name) == hasattr(model, name), name
        if name == "path_":
            assert len(again.path_) == len(model.path_)
            for i, pair in enumerate(zip(model.path_, again.path_, strict=True)):
                assert_same_point(*pair, f"path_[{i}]")
        elif name == "certificate_":
            assert_same_point(model.certificate_, again.certificate_, name)
        elif hasattr(model, name):
            assert_same(getattr(model, name), getattr(again, name), name)
    assert_same(model.predict(new), again.predict(new))
    if hasattr(model, "decision_function"):
        assert_same(model.decision_function(new), again.decision_function(new))


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("kernel", KERNELS)
def test_sparse_machines_come_back_bit_for_bit(kernel, sparse, tmp_path):
    for machine, n_classes in ((SparseSVC, 2), (SparseSVC, 3), (SparseSVR, 2)):
        model, new = fitted(machine, kernel, n_classes, sparse)
        again = round_trip(model, tmp_path)
        assert_same_sparse(model, again, new)
        assert again.get_params() == model.get_params()


@pytest.mark.parametrize(
    "parameters",
    [{"loss": "hinge"}, {"loss": "least_squares", "basis": "random"}, {"validation_fraction": 0.3}],
)
def test_other_ways_to_train(parameters, tmp_path):
    model, new = fitted(SparseSVC, **parameters)
    again = round_trip(model, tmp_path)
    assert_same_sparse(model, again, new)
    assert (again.path_[0].validation_score is None) == ("validation_fraction" not in parameters)


def test_the_path_is_kept(tmp_path):
    model, new = fitted(SparseSVC, n_classes=3)
    sizes = [point.n_basis for point in model.path_]
    assert len(sizes) > 2
    again = round_trip(model, tmp_path)
    for size in sizes:
        assert_same(
            model.truncated(size).decision_function(new),
            again.truncated(size).decision_function(new),
        )
    small = round_trip(again.truncated(sizes[1]), tmp_path)
    assert [point.n_basis for point in small.path_] == sizes[:2] and small.n_basis_ == sizes[1]


@pytest.mark.parametrize("sparse", [False, True])
def test_what_a_machine_shares_with_its_path_is_written_once(sparse, tmp_path):
    model, new = fitted(
        SparseSVC, "laplacian" if sparse else "rbf", sparse=sparse
    )  # a basis of sparse rows, and a dense one
    again = round_trip(model, tmp_path)
    first = (tmp_path / "model.slim").read_bytes()
    with zipfile.ZipFile(tmp_path / "model.slim") as archive:
        names = archive.namelist()
    last = len(model.path_) - 1
    assert any(name.startswith("basis_") for name in names) and not any(
        name.startswith(f"path_{last}basis") for name in names
    )
    assert any(name.startswith("path_0basis") for name in names)
    assert_same_sparse(model, round_trip(again, tmp_path), new)
    assert (tmp_path / "model.slim").read_bytes() == first, "the same model gives the same bytes"


def test_a_basis_that_was_given_and_a_kernel_object(tmp_path):
    X, y, _, new = data(2)
    for basis in (X[:5], sp.csr_matrix(X[:5])):
        model = SparseSVC(basis=basis, kernel=RBF(0.3)).fit(X, y)
        again = round_trip(model, tmp_path)
        assert_same_sparse(model, again, new)
        assert again.kernel == RBF(0.3)
        np.testing.assert_array_equal(clone(again).fit(X, y).predict(new), model.predict(new))


@pytest.mark.parametrize("loss", ["squared_hinge", "hinge"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_linear_machines(n_classes, loss, tmp_path):
    model, new = fitted(LinearSVC, n_classes=n_classes, loss=loss)
    again = round_trip(model, tmp_path)
    assert_same_sparse(model, again, new)
    assert again.get_params() == model.get_params()
    assert pickle.loads(pickle.dumps(again)).predict(new).tolist() == model.predict(new).tolist()


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("solver", ["smooth", "least_squares", "lagrangian", "decomposition"])
@pytest.mark.parametrize("n_classes", [2, 4])
def test_reduced_machines(n_classes, solver, sparse, tmp_path):
    model, new = fitted(ReducedSVC, n_classes=n_classes, sparse=sparse, solver=solver)
    again = round_trip(model, tmp_path)
    assert_same_sparse(model, again, new)
    assert again.get_params() == model.get_params() and again.basis_coef_.shape[1] == (
        1 if n_classes == 2 else 6
    )


@pytest.mark.parametrize(
    ("name", "value", "match"),
    [
        (
            "basis_coef_",
            {"type": "array", "member": "intercept_.npy"},
            "basis_coef_ has the shape",
        ),
        ("classes_", [0, 1, 2], "classes_ is .0, 1, 2., expected array"),
        ("class_weight_", None, "class_weight_ is None, expected array"),
        (
            "kernel_",
            {"type": "kernel", "name": "precomputed", "parameters": {}},
            "no precomputed kernel",
        ),
        ("path_", [], "no attribute 'path_'"),
        ("pairwise_", True, "no attribute 'pairwise_'"),
    ],
)
def test_reduced_attributes_that_do_not_fit(tmp_path, name, value, match):
    save(fitted(ReducedSVC, n_classes=4)[0], tmp_path / "model.slim")
    edit_header(tmp_path / "model.slim", lambda header: header["fitted"].update({name: value}))
    refused(tmp_path / "model.slim", match)


@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_compressed_machines(n_classes, tmp_path):
    X, y, _, new = data(n_classes)
    model = compress(SVC().fit(X, y), 7, random_state=0)
    again = round_trip(model, tmp_path)
    assert_same_sparse(model, again, new)
    assert hasattr(again, "pairwise_") == (n_classes > 2)
    assert again.truncated(7).predict(new).tolist() == model.predict(new).tolist()


def test_refusals_when_saving(tmp_path):
    for machine in (SparseSVC(), SparseSVR(), LinearSVC(), ReducedSVC()):
        with pytest.raises(NotFittedError):
            save(machine, tmp_path / "model.slim")
    X, y, _, _ = data(2)
    with pytest.raises(ValueError, match="Python function"):
        save(SparseSVC(5, kernel=lambda A, B: A @ B.T + 1.0).fit(X, y), tmp_path / "model.slim")
    with pytest.raises(ValueError, match="random_state is an object of class RandomState"):
        save(SparseSVC(5, random_state=np.random.RandomState(0)).fit(X, y), tmp_path / "model.slim")


# -- altered files ---------------------------------------------------------------------------------


@pytest.fixture
def path(tmp_path):
    save(fitted(SparseSVC, n_classes=3)[0], tmp_path / "model.slim")
    return tmp_path / "model.slim"


@pytest.mark.parametrize(
    ("name", "value", "match"),
    [
        ("n_basis_", 11, r"expected \(n_basis, n_mapped\) = \(11, 7\)"),
        ("n_basis_", "many", "n_basis_ is 'many', expected int"),
        ("n_features_in_", 8, "basis_ has the shape"),
        (
            "basis_coef_",
            {"type": "array", "member": "intercept_.npy"},
            "basis_coef_ has the shape",
        ),
        (
            "intercept_",
            {"type": "array", "member": "basis_coef_.npy"},
            "intercept_ has the shape",
        ),
        ("basis_", 7, "basis_ is 7, expected array"),
        ("basis_indices_", [1, 2], "basis_indices_ is .1, 2., expected array of int"),
        ("pairwise_", "yes", "pairwise_ is 'yes', expected bool"),
        ("classes_", [0, 1, 2], "classes_ is .0, 1, 2., expected array"),
        ("certificate_", None, "certificate_ is None, expected Certificate"),
        (
            "kernel_",
            {"type": "kernel", "name": "precomputed", "parameters": {}},
            "no precomputed kernel",
        ),
        ("kernel_", 5, "kernel_ is 5, expected Kernel"),
        ("path_", 5, "path_ is 5, expected list of PathPoint"),
        ("path_", [1, 2], "path_ is not a list of models"),
        ("path_", [{"type": "path_point"}], "makes no sense"),
        ("support_", None, "no attribute 'support_'"),
        ("_row_duals", None, "no attribute '_row_duals'"),
    ],
)
def test_attributes_that_do_not_fit(path, name, value, match):
    edit_header(path, lambda header: header["fitted"].update({name: value}))
    refused(path, match)


@pytest.mark.parametrize(
    ("field", "value", "match"),
    [
        ("n_basis", 3, r"basis_ of path_\[1\] has the shape"),
        ("coef", None, r"basis_coef_ of path_\[1\]"),
        ("intercept", {"type": "array", "member": "basis_.npy"}, r"intercept_ of path_\[1\]"),
        (
            "indices",
            {"type": "array", "member": "basis_.npy"},
            r"basis_indices_ of path_\[1\]",
        ),
        ("training_score", "good", r"a score or objective of path_\[1\]"),
        ("objective", None, r"a score or objective of path_\[1\]"),
    ],
)
def test_points_of_the_path_that_do_not_fit(path, field, value, match):
    edit_header(path, lambda header: header["fitted"]["path_"][1].update({field: value}))
    refused(path, match)


def test_pairs_where_there_are_classes(path):
    edit_header(path, lambda header: header["fitted"].update({"pairwise_": True}))
    load(path)  # three classes have three pairs: that is why there is a flag
    replace_array(path, "basis_coef_.npy", np.zeros((12, 4)))
    refused(path, "basis_coef_ has the shape")


def test_missing_attributes(path):
    edit_header(path, lambda header: header["fitted"].pop("path_"))
    refused(path, "'path_' is missing")


@pytest.mark.parametrize(
    ("name", "value", "match"),
    [
        ("coef_", {"type": "array", "member": "intercept_.npy"}, "coef_ has the shape"),
        ("intercept_", {"type": "array", "member": "coef_.npy"}, "intercept_ has the shape"),
        ("class_weight_", None, "class_weight_ is None, expected array"),
        ("n_features_in_", -1, "n_features_in_ is -1, expected int, zero or more"),
        ("kernel_", None, "no attribute 'kernel_'"),
    ],
)
def test_linear_attributes_that_do_not_fit(tmp_path, name, value, match):
    save(fitted(LinearSVC, n_classes=3)[0], tmp_path / "model.slim")
    edit_header(tmp_path / "model.slim", lambda header: header["fitted"].update({name: value}))
    refused(tmp_path / "model.slim", match)


def test_flipped_bytes_are_noticed_or_harmless(path):
    model, new = fitted(SparseSVC, n_classes=3)
    content = path.read_bytes()
    for at in np.random.default_rng(0).permutation(len(content))[:300].tolist():
        path.write_bytes(content[:at] + bytes([content[at] ^ 0x10]) + content[at + 1 :])
        try:
            again = load(path)
        except ValueError as error:
            assert str(path) in str(error)
        else:
            assert_same_sparse(model, again, new)


def test_a_pickle_in_the_path_is_never_unpickled(path):
    content = io.BytesIO()
    np.save(content, np.array([{}], object), allow_pickle=True)
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    header = json.loads(members["header.json"])
    members["path_0coef.npy"] = content.getvalue()
    header["arrays"]["path_0coef.npy"] = {
        "dtype": "|O",
        "shape": [1],
        "sha256": hashlib.sha256(content.getvalue()).hexdigest(),
    }
    header.pop("sha256")
    header["sha256"] = hashlib.sha256(
        json.dumps(header, sort_keys=True, separators=(",", ":")).encode()
    ).hexdigest()
    with zipfile.ZipFile(path, "w") as archive:
        for name, member in {**members, "header.json": json.dumps(header)}.items():
            archive.writestr(name, member)
    refused(path, "path_0coef.npy")


# -- files of LIBSVM and SVM-light -----------------------------------------------------------------


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("kernel", [name for name in KERNELS if name != "laplacian"])
def test_programs_that_know_support_vectors_only(kernel, sparse, tmp_path):
    for machine, parameters in (
        (SparseSVC, {}),
        (SparseSVR, {}),
        (ReducedSVC, {}),
        (LinearSVC, {"C": 0.1}),
    ):
        if machine is LinearSVC and kernel != "linear":
            continue
        model, new = fitted(machine, kernel, 2, sparse, (-1, 1), **parameters)
        expected = model.predict(new) if machine is SparseSVR else model.decision_function(new)
        save_libsvm(model, tmp_path / "file.model")
        answers, values, _ = libsvm_predict.predict(tmp_path / "file.model", as_dicts(new))
        np.testing.assert_allclose(np.ravel(values), expected, rtol=1e-6, atol=1e-6)
        np.testing.assert_allclose(answers, model.predict(new), rtol=1e-6, atol=1e-6)
        save_svmlight(model, tmp_path / "file.light")
        np.testing.assert_allclose(
            svm_classify(tmp_path / "file.light", as_dicts(new)), expected, rtol=1e-6, atol=1e-6
        )
        kind = "SVR" if machine is SparseSVR else "SVC"
        for again in (
            load_libsvm(tmp_path / "file.model", n_features=new.shape[1]),
            load_svmlight(tmp_path / "file.light", estimator=kind, n_features=new.shape[1]),
        ):
            assert type(again).__name__ == kind
            np.testing.assert_allclose(again.predict(new), model.predict(new), rtol=1e-6, atol=1e-6)


def test_programs_that_know_no_shared_basis(tmp_path):
    X, y, _, _ = data(3)
    for model in (
        fitted(SparseSVC, n_classes=3)[0],
        fitted(LinearSVC, n_classes=3)[0],
        compress(SVC().fit(X, y), 5),
    ):
        with pytest.raises(
            ValueError, match=r"one model for each pair.*share all vectors.*slimsvm\.save"
        ):
            save_libsvm(model, tmp_path / "file.model")
        with pytest.raises(ValueError, match="holds two classes, this model has 3"):
            save_svmlight(model, tmp_path / "file.light")
    with pytest.raises(ValueError, match="LIBSVM has no laplacian kernel"):
        save_libsvm(fitted(SparseSVC, "laplacian")[0], tmp_path / "file.model")
    assert not list(tmp_path.iterdir())
