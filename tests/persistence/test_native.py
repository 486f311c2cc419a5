import hashlib
import io
import json
import os
import pickle
import time
import zipfile
from dataclasses import is_dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.svm import SVC as SklearnSVC
from tests.persistence.models import KERNELS, MACHINES, data, fitted

import slimsvm.persistence.native as native
from slimsvm import SVC, OneClassSVM
from slimsvm.declarations import fitted_of
from slimsvm.kernels import RBF, FromCallable
from slimsvm.persistence import file_facts, load, save


def assert_same(first, second, name=""):
    """Equal in every bit, type included."""
    assert type(first) is type(second), name
    if sp.issparse(first):
        for part in ("data", "indices", "indptr"):
            assert_same(getattr(first, part), getattr(second, part), name)
        assert first.shape == second.shape
    elif isinstance(first, np.ndarray):
        assert first.dtype == second.dtype, name
        assert first.flags.f_contiguous == second.flags.f_contiguous
        np.testing.assert_array_equal(first, second, name)
    elif isinstance(first, dict):
        assert list(first) == list(second)
        for key in first:
            assert_same(first[key], second[key], f"{name}[{key}]")
    elif is_dataclass(first):
        assert_same(vars(first), vars(second), name)
    else:
        assert first == second or (first != first and second != second), name  # NaN is NaN


def assert_same_model(model, again, new):
    assert type(again) is type(model)
    assert again.get_params() == model.get_params()
    for name in (own.name for own in fitted_of(type(model)) if own.stored):
        assert hasattr(again, name) == hasattr(model, name), name
        if hasattr(model, name):
            assert_same(getattr(model, name), getattr(again, name), name)
    assert_same(model.predict(new), again.predict(new))
    if hasattr(model, "decision_function"):
        assert_same(model.decision_function(new), again.decision_function(new))


def round_trip(model, tmp_path):
    save(model, tmp_path / "model.slim")
    return load(tmp_path / "model.slim")


@pytest.mark.parametrize(
    ("kernel", "sparse"),
    [(k, s) for k in KERNELS for s in (False, True) if not (s and k == "precomputed")],
)
@pytest.mark.parametrize("machine", MACHINES)
def test_every_machine_and_kernel_comes_back_bit_for_bit(machine, kernel, sparse, tmp_path):
    for n_classes in (2, 3, 5) if machine in ("SVC", "NuSVC") else (2,):
        model, new = fitted(machine, kernel, n_classes, sparse)
        assert_same_model(model, round_trip(model, tmp_path), new)


@pytest.mark.parametrize(
    "labels",
    [
        ["ape", "bee", "cat", "dog", "élan"],
        np.array(["ape", "bee", "cat", "dog", "élan"], object),
        [-7, -1, 0, 3, 10**12],
        [-7.0, -1.0, 0.0, 2.0, 1e15],
        np.array([1, 2, 3, 4, 5], np.uint8),
        np.array(["2020-01-01", "2021-01-01", "2022-01-01", "2023-01-01", "2024-01-01"], "M8[D]"),
    ],
    ids=["strings", "objects", "integers", "floats", "bytes", "dates"],
)
def test_labels_keep_their_type(labels, tmp_path):
    X, y, _, new = data(5)
    model = SVC().fit(X, np.array(labels)[y])
    assert len(model.classes_) == 5
    assert_same_model(model, round_trip(model, tmp_path), new)


def test_boolean_labels(tmp_path):
    X, y, _, new = data(2)
    model = SVC().fit(X, y == 1)
    assert_same_model(model, round_trip(model, tmp_path), new)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("container", [np.asarray, np.asfortranarray, sp.csr_matrix, sp.csr_array])
def test_types_and_containers_of_the_rows(container, dtype, tmp_path):
    X, y, _, new = data(3)
    model = SVC().fit(container(X.astype(dtype)), y)
    again = round_trip(model, tmp_path)
    assert again.support_vectors_.dtype == dtype
    assert_same_model(model, again, container(new.astype(dtype)))


def test_names_of_features(tmp_path):
    X, y, _, new = data(2)
    names = [f"größe {i}" for i in range(X.shape[1])]
    model = SVC().fit(pd.DataFrame(X, columns=names), y)
    again = round_trip(model, tmp_path)
    assert_same_model(model, again, pd.DataFrame(new, columns=names))
    with pytest.raises(ValueError, match="feature names"):
        again.predict(pd.DataFrame(new, columns=names[::-1]))


@pytest.mark.parametrize(
    "parameters",
    [
        {"C": np.float64(3.5), "class_weight": {0: 2.0, 1: 1}, "n_jobs": -1, "max_time": 60.0},
        {
            "class_weight": {0: np.float64(0.5), np.int64(1): 3.0},
            "tol": 1e-5,
            "max_iter": 10**6,
            "verbose": False,
        },
        {
            "class_weight": "balanced",
            "cache_size": 50,
            "gamma": "auto",
            "decision_function_shape": "ovo",
            "n_jobs": 2,
        },
        {"kernel": RBF(gamma=0.25), "break_ties": True},
    ],
)
def test_parameters_are_kept_as_given(parameters, tmp_path):
    X, y, _, new = data(2)
    model = SVC(**parameters).fit(X, y)
    again = round_trip(model, tmp_path)
    assert_same_model(model, again, new)
    assert isinstance(again.C, float)
    assert clone(again).fit(X, y).predict(new).shape == (len(new),)


@pytest.mark.parametrize("weights", [{"a": 2.0, "b": 1.0}, {1.0: 2.0, 2.0: 1.0}, {1: 2.0, 2: 1.0}])
def test_keys_of_class_weight_keep_their_type(weights, tmp_path):
    X, y, _, new = data(2)
    model = SVC(class_weight=weights).fit(X, np.array(list(weights))[y])
    again = round_trip(model, tmp_path)
    assert again.class_weight == weights
    assert [type(key) for key in again.class_weight] == [type(key) for key in weights]
    assert_same_model(model, again, new)


def test_a_loaded_model_can_be_saved_pickled_cloned_and_trained_on(tmp_path):
    model, new = fitted()
    again = round_trip(model, tmp_path)
    first = (tmp_path / "model.slim").read_bytes()
    assert_same_model(model, round_trip(again, tmp_path), new)
    assert (tmp_path / "model.slim").read_bytes() == first, "the same model gives the same bytes"
    assert_same_model(model, pickle.loads(pickle.dumps(again)), new)
    X, y, _, _ = data(3)
    np.testing.assert_array_equal(clone(again).fit(X, y).predict(new), model.predict(new))


def test_a_warm_start_resumes_from_a_file(tmp_path):
    X, y, _, _ = data(3)
    model = SVC(C=10.0, tol=1e-6, warm_start=True).fit(X, y)
    again = round_trip(model, tmp_path).fit(X, y)
    assert again.n_iter_.sum() <= model.n_iter_.sum()
    np.testing.assert_allclose(again.decision_function(X), model.decision_function(X), atol=1e-4)


def test_a_model_without_support_vectors(tmp_path):
    X, _, _, new = data(2)
    model = MACHINES["SVR"](epsilon=10.0).fit(X, np.zeros(len(X)))
    assert model.support_.size == 0
    assert_same_model(model, round_trip(model, tmp_path), new)


def test_the_file_is_a_plain_zip_of_json_and_arrays(tmp_path):
    save(fitted()[0], tmp_path / "model.slim")
    with zipfile.ZipFile(tmp_path / "model.slim") as archive:
        header = json.loads(archive.read("header.json"))
        for name in set(archive.namelist()) - {"header.json"}:
            with archive.open(name) as member:
                array = np.lib.format.read_array(member, allow_pickle=False)
            assert list(array.shape) == header["arrays"][name]["shape"]
    assert (header["format"], header["format_version"], header["class"]) == ("slimsvm", 1, "SVC")
    assert header["fitted"]["kernel_"]["name"] == "rbf"


# -- refusals when saving --------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", [lambda A, B: A @ B.T, FromCallable(lambda A, B: A @ B.T)])
def test_a_callable_kernel_is_refused(kernel, tmp_path):
    X, y, _, _ = data(2)
    with pytest.raises(
        ValueError, match=r"Python function.*pickle or joblib.*kernel that has a name"
    ):
        save(SVC(kernel=kernel).fit(X, y), tmp_path / "model.slim")
    assert os.listdir(tmp_path) == []


def test_an_estimator_that_is_not_fitted_is_refused(tmp_path):
    with pytest.raises(NotFittedError, match="SVC instance is not fitted"):
        save(SVC(), tmp_path / "model.slim")


def test_other_estimators_are_refused(tmp_path):
    X, y, _, _ = data(2)

    class Mine(SVC):
        pass

    for other in (
        SklearnSVC().fit(X, y),
        Mine().fit(X, y),
        "SVC",
        None,
    ):
        with pytest.raises(
            ValueError,
            match=r"holds one of slimsvm's SVC, SVR, .*CrossTraining.*; got an object of class",
        ):
            save(other, tmp_path / "model.slim")


def test_values_that_a_file_cannot_hold_are_refused(tmp_path):
    X, y, _, _ = data(2)
    with pytest.raises(ValueError, match="random_state is an object of class RandomState"):
        save(SVC(random_state=np.random.RandomState(0)).fit(X, y), tmp_path / "model.slim")
    model = SVC().fit(X, y)
    for classes in (
        np.array([1, "a"], object),
        np.array(["a\0", "b"], object),
        np.zeros(2, "i4,i4"),
    ):
        model.classes_ = classes
        with pytest.raises(
            ValueError, match=r"classes_ (holds Python objects|is an array of type)"
        ):
            save(model, tmp_path / "model.slim")
    assert os.listdir(tmp_path) == []


# -- damaged and foreign files ---------------------------------------------------------------------


@pytest.fixture
def path(tmp_path):
    save(fitted("SVC", "rbf", 3, True)[0], tmp_path / "model.slim")
    return tmp_path / "model.slim"


def rewrite(path, change):
    """Apply change(members) to the dict of the members and write a valid zip again."""
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    members = change(members) or members
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)


def signed(header):
    header.pop("sha256", None)
    header["sha256"] = hashlib.sha256(
        json.dumps(header, sort_keys=True, separators=(",", ":")).encode()
    ).hexdigest()
    return json.dumps(header).encode()


def edit_header(path, change, honest=True):
    """Change the header; honest: with its new hash, as one who wants to do harm would."""

    def rewritten(members):
        header = json.loads(members["header.json"])
        change(header)
        members["header.json"] = signed(header) if honest else json.dumps(header).encode()

    rewrite(path, rewritten)


def refused(path, match=None):
    with pytest.raises(ValueError, match=match) as caught:
        load(path)
    assert str(path) in str(caught.value), "the message names the file"
    assert not isinstance(caught.value, UnicodeDecodeError)


def test_a_rewritten_but_unchanged_file_loads(path):
    rewrite(path, lambda members: None)
    assert_same_model(
        fitted("SVC", "rbf", 3, True)[0], load(path), fitted("SVC", "rbf", 3, True)[1]
    )


@pytest.mark.parametrize("tenth", range(10))
def test_truncated_files(path, tenth):
    content = path.read_bytes()
    path.write_bytes(content[: len(content) * tenth // 10])
    refused(path)
    path.write_bytes(content[len(content) * tenth // 10 + 1 :])  # the beginning is missing
    refused(path)


def test_a_file_that_lacks_its_last_byte(path):
    path.write_bytes(path.read_bytes()[:-1])
    refused(path, "damaged or cut short")


@pytest.mark.parametrize("mask", [0x01, 0x80, 0xFF])
def test_flipped_bytes_are_noticed_or_harmless(path, mask):
    """A flip that changes a value is an error; one in a date, in padding, or to another compressed
    form of the same bytes is harmless.
    """
    model, new = fitted("SVC", "rbf", 3, True)
    content = path.read_bytes()
    rng = np.random.default_rng(mask)
    for at in rng.permutation(len(content))[:200].tolist():
        path.write_bytes(content[:at] + bytes([content[at] ^ mask]) + content[at + 1 :])
        try:
            again = load(path)
        except ValueError as error:
            assert str(path) in str(error)
        else:
            assert_same_model(model, again, new)


def test_foreign_files(tmp_path):
    path = tmp_path / "model.slim"
    for content, match in [
        (b"", "the file is empty"),
        (b"hello", "no slimsvm model file.*begins with b'hello'"),
        (b"PK\x03\x04 but no zip", "damaged or cut short"),
        (b"svm_type c_svc\nkernel_type rbf\n", "LIBSVM.*load_libsvm"),
        (b"SVM-light Version V6.02\n", "SVM-light.*load_svmlight"),
        (pickle.dumps(fitted()[0]), "looks like a pickle"),
        (np.random.default_rng(0).bytes(5000), "no slimsvm model file"),
    ]:
        path.write_bytes(content)
        refused(path, match)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("readme.txt", "hello")
    refused(path, "zip archive without header.json")
    for header in (
        "hello",
        "[]",
        "{}",
        '{"format": "other"}',
        '{"format": NaN}',
        "[" * 100_000,
        "\xff",
    ):
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("header.json", header.encode("latin-1"))
        refused(path, "header.json")


def test_a_missing_file_and_a_folder(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"nothing\.slim"):
        load(tmp_path / "nothing.slim")
    with pytest.raises(OSError):
        load(tmp_path)


@pytest.mark.parametrize(
    ("key", "value", "match"),
    [
        ("format_version", 2, "format version 2, written by slimsvm .*install a newer slimsvm"),
        ("format_version", "1", "format version is '1'"),
        ("format_version", 0, "format version is 0"),
        ("class", "os.system", "unknown class 'os.system'"),
        ("class", ["SVC"], "unknown class"),
        ("class", "SVR", "SVR has no parameter|a fitted SVR has no attribute"),
        ("parameters", None, "has no 'parameters'"),
        ("parameters", {"C": 1.0, "rm": "-rf"}, "SVC has no parameter 'rm'"),
        ("parameters", {"C": {"type": "pickle"}}, "unknown type 'pickle'"),
        ("fitted", {}, "fitted attribute '.*' is missing"),
        ("arrays", {}, "disagree about"),
        ("arrays", [], "has no 'arrays'"),
    ],
)
def test_headers_that_say_something_else(path, key, value, match):
    edit_header(path, lambda header: header.update({key: value}))
    refused(path, match)


@pytest.mark.parametrize(
    ("name", "value", "match"),
    [
        (
            "kernel_",
            {"type": "kernel", "name": "callable", "parameters": {"function": "print"}},
            "makes no sense",
        ),
        (
            "kernel_",
            {"type": "kernel", "name": "rbf", "parameters": {"gamma": "scale"}},
            "kernel_ is RBF.gamma='scale'., expected Kernel with numbers",
        ),
        ("kernel_", {"type": "kernel", "name": "rbf", "parameters": {"nu": 1}}, "makes no sense"),
        ("kernel_", 5, "kernel_ is 5, expected Kernel"),
        ("n_features_in_", 8, "support_vectors_ has the shape"),
        ("n_features_in_", "seven", "n_features_in_ is 'seven', expected int"),
        (
            "intercept_",
            {"type": "array", "member": "support_.npy"},
            "intercept_ is ndarray of int32",
        ),
        (
            "dual_coef_",
            {"type": "array", "member": "intercept_.npy"},
            "dual_coef_ has the shape",
        ),
        (
            "n_support_",
            {"type": "array", "member": "intercept_.npy"},
            "n_support_ is ndarray of float64",
        ),
        ("support_", {"type": "array", "member": "missing.npy"}, "missing.npy"),
        ("classes_", [0, 1, 2], "classes_ is .0, 1, 2., expected array"),
        ("__class__", 1, "no attribute '__class__'"),
    ],
)
def test_attributes_that_do_not_fit(path, name, value, match):
    edit_header(path, lambda header: header["fitted"].update({name: value}))
    refused(path, match)


def replace_array(path, name, array, honest=True):
    """Put another array into the file; honest: with its own hash, shape and type in the header."""
    content = io.BytesIO()
    np.lib.format.write_array(content, array)

    def change(members):
        assert name in members
        members[name] = content.getvalue()
        if honest:
            header = json.loads(members["header.json"])
            entry = {
                "dtype": array.dtype.str,
                "shape": list(array.shape),
                "sha256": hashlib.sha256(content.getvalue()).hexdigest(),
            }
            header["arrays"][name] = entry
            members["header.json"] = signed(header)

    rewrite(path, change)


def test_an_altered_array_does_not_have_its_hash(path):
    replace_array(path, "intercept_.npy", load(path).intercept_ + 1e-9, honest=False)
    refused(path, "intercept_.npy does not have the SHA-256")


def test_an_altered_header_does_not_have_its_hash(path):
    edit_header(
        path,
        lambda header: header["fitted"]["kernel_"]["parameters"].update(gamma=0.5),
        honest=False,
    )
    refused(path, "header.json does not have the SHA-256")
    edit_header(path, lambda header: header.pop("sha256"), honest=False)
    refused(path, "header.json does not have the SHA-256")


def test_sparse_indices_outside_of_the_matrix_never_reach_compiled_code(path):
    vectors = load(path).support_vectors_
    indices = vectors.indices.copy()
    for wild in (10**6, -5):
        indices[3] = wild
        replace_array(path, "support_vectors_indices.npy", indices)
        refused(path)
    replace_array(path, "support_vectors_indices.npy", vectors.indices)
    indptr = vectors.indptr.copy()
    indptr[2] = 10**6
    replace_array(path, "support_vectors_indptr.npy", indptr)
    refused(path)
    replace_array(path, "support_vectors_indptr.npy", vectors.indptr)
    load(path)


def test_columns_outside_of_a_precomputed_kernel(tmp_path):
    model, _ = fitted("SVC", "precomputed")
    path = tmp_path / "model.slim"
    save(model, path)
    replace_array(path, "support_.npy", model.support_ + 1000)
    refused(path, "support_ points outside")


def test_members_that_unpack_to_more_than_was_announced(path):
    for shape, match in (
        ([2], "intercept_.npy is float64 of shape"),
        ([10**6], "intercept_.npy has .* bytes, but"),
    ):
        edit_header(
            path, lambda header, shape=shape: header["arrays"]["intercept_.npy"].update(shape=shape)
        )
        refused(path, match)
    for shape in ([10**12], [-1], ["x"], None, [2**70]):
        edit_header(
            path, lambda header, shape=shape: header["arrays"]["intercept_.npy"].update(shape=shape)
        )
        refused(path, "intercept_.npy")
    for dtype in ("O", "|O", "nonsense", "V8", None):
        edit_header(
            path,
            lambda header, dtype=dtype: header["arrays"]["intercept_.npy"].update(
                dtype=dtype, shape=[3]
            ),
        )
        refused(path, "intercept_.npy")


def test_an_array_whose_own_header_claims_more(path):
    """The .npy header decides how much memory is taken, so it must agree with ours."""
    rewrite(
        path,
        lambda members: members.update(
            {"intercept_.npy": members["intercept_.npy"].replace(b"(3,), ", b"(8,), ")}
        ),
    )
    refused(path, "is float64 of shape|SHA-256")


def test_added_and_missing_members(path):
    rewrite(
        path,
        lambda members: {
            name: content for name, content in members.items() if name != "intercept_.npy"
        },
    )
    refused(path, "disagree about 'intercept_.npy'")


def test_extra_members(path):
    rewrite(path, lambda members: members.update({"extra.npy": b"x"}))
    refused(path, "disagree about 'extra.npy'")


def test_a_pickled_array_is_never_unpickled(path, tmp_path):
    class Bomb:
        def __reduce__(self):
            return (os.mkdir, (str(tmp_path / "boom"),))

    content = io.BytesIO()
    np.save(content, np.array([Bomb(), Bomb(), Bomb()], object), allow_pickle=True)
    rewrite(path, lambda members: members.update({"intercept_.npy": content.getvalue()}))
    refused(path, "intercept_.npy")
    assert not (tmp_path / "boom").exists()


def test_one_class_needs_its_offset(tmp_path):
    X = data(2)[0]
    save(OneClassSVM().fit(X), tmp_path / "model.slim")
    edit_header(tmp_path / "model.slim", lambda header: header["fitted"].pop("offset_"))
    refused(tmp_path / "model.slim", "offset_")


# -- atomic writes ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "failure",
    [OSError("disk full"), KeyboardInterrupt(), MemoryError()],
    ids=lambda failure: type(failure).__name__,
)
@pytest.mark.parametrize("old", [True, False], ids=["over an old file", "new file"])
def test_a_failure_within_the_write_leaves_no_trace(tmp_path, monkeypatch, failure, old):
    path = tmp_path / "model.slim"
    if old:
        save(fitted("SVR", "rbf", 2)[0], path)
    before = path.read_bytes() if old else None
    real, calls = np.lib.format.write_array, []

    def failing(*args, **kwargs):
        calls.append(1)
        if len(calls) == 3:
            raise failure
        return real(*args, **kwargs)

    monkeypatch.setattr(native.np.lib.format, "write_array", failing)
    with pytest.raises(type(failure)):
        save(fitted()[0], path)
    assert os.listdir(tmp_path) == (["model.slim"] if old else [])
    if old:
        assert path.read_bytes() == before


# -- what a file says of itself --------------------------------------------------------------------


def test_a_file_says_when_it_was_written_by_what_and_what_the_user_said(tmp_path):
    model, _ = fitted()
    said = {"data": "sales.csv", "rows": 3, "notes": ["a", {"b": 0.5}], "nothing": None}
    save(model, tmp_path / "model.slim", metadata=said)
    facts = file_facts(tmp_path / "model.slim")
    assert facts["metadata"] == said and facts["saved"] == "2023-11-14T22:13:20Z"
    assert facts["class"] == type(model).__name__
    assert facts["versions"]["numpy"] == np.__version__
    load(tmp_path / "model.slim")


def test_the_time_is_that_of_writing(tmp_path, monkeypatch):
    monkeypatch.delenv("SOURCE_DATE_EPOCH")
    model, _ = fitted()
    before = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time()))
    save(model, tmp_path / "model.slim")
    facts = file_facts(tmp_path / "model.slim")
    assert before <= facts["saved"] <= time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time()))
    assert facts["metadata"] == {}


@pytest.mark.parametrize(
    "metadata", [{1: "a"}, {"a": np.nan}, {"a": object()}, "text", [("a", 1)], {"a": b"bytes"}]
)
def test_metadata_that_a_file_cannot_hold(tmp_path, metadata):
    model, _ = fitted()
    with pytest.raises(ValueError, match="metadata"):
        save(model, tmp_path / "model.slim", metadata=metadata)
    assert not list(tmp_path.iterdir())


def test_metadata_cannot_be_altered(tmp_path):
    model, _ = fitted()
    save(model, tmp_path / "model.slim", metadata={"by": "Ada"})
    with zipfile.ZipFile(tmp_path / "model.slim") as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    members["header.json"] = members["header.json"].replace(b"Ada", b"Eve")
    with zipfile.ZipFile(tmp_path / "altered.slim", "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    with pytest.raises(ValueError, match="altered"):
        file_facts(tmp_path / "altered.slim")


def test_facts_of_older_files():
    kept = {path.stem: path for path in (Path(__file__).parent / "kept").glob("*.slim")}
    assert file_facts(kept.pop("LinearSVR"))["saved"]  # the one that was saved later
    assert kept and all(file_facts(path)["saved"] is None for path in kept.values())
