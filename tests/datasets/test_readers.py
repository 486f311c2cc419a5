import bz2
import gzip
import struct

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.preprocessing import MinMaxScaler

from slimsvm.datasets import readers
from slimsvm.datasets.readers import UNREADABLE, content_digest, pack, unpack

RNG = np.random.default_rng(0)


def test_libsvm_text_is_read_packed_or_not(tmp_path):
    train = b"+1 1:0.5 3:-2 \n-1 2:1e-3\n+1 \n-1 1:0 4: 7   # blanks after the colon, and a zero\n"
    test = b"-1.0 2:3\n"
    expected = np.array([[0.5, 0, -2, 0], [0, 1e-3, 0, 0], [0, 0, 0, 0], [0, 0, 0, 7]], np.float32)
    (tmp_path / "a").write_bytes(train)
    (tmp_path / "b.bz2").write_bytes(bz2.compress(train))
    (tmp_path / "c.gz").write_bytes(gzip.compress(test))
    for first in ("a", "b.bz2"):
        arrays = readers.libsvm(4)([tmp_path / first, tmp_path / "c.gz"])
        np.testing.assert_array_equal(arrays["X_train"], expected)
        np.testing.assert_array_equal(arrays["y_train"], [1, -1, 1, -1])
        np.testing.assert_array_equal(arrays["X_test"], [[0, 3, 0, 0]])
        assert arrays["X_train"].dtype == np.float32 and arrays["y_train"].dtype == np.int8
    sparse = readers.libsvm(4, dense=False)([tmp_path / "a"])
    assert sp.issparse(sparse["X_train"]) and sparse["X_train"].nnz == 4  # the zero is not kept
    np.testing.assert_array_equal(sparse["X_train"].toarray(), expected)
    assert set(sparse) == {"X_train", "y_train"}


def test_labels_must_be_classes_unless_it_is_a_regression(tmp_path):
    path = tmp_path / "prices"
    path.write_bytes(b"452600.5 1:2\n14999 1:3\n")
    arrays = readers.libsvm(1, regression=True)([path])
    np.testing.assert_array_equal(arrays["y"], np.array([452600.5, 14999], np.float32))
    np.testing.assert_array_equal(arrays["X"], [[2], [3]])
    with pytest.raises(ValueError, match="small integers"):
        readers.libsvm(1)([path])


def test_columns_of_cadata_are_in_one_order(tmp_path):
    ours = [-122.23, 37.88, 41, 880, 129, 322, 126, 8.3252]
    statlib = [8.3252, 41, 880, 129, 322, 126, 37.88, -122.23]
    for columns in (ours, statlib):
        (tmp_path / "cadata").write_text(
            "452600 " + " ".join(f"{i}:{value}" for i, value in enumerate(columns, 1)) + "\n"
        )
        np.testing.assert_array_equal(
            readers.cadata([tmp_path / "cadata"])["X"], np.array([ours], np.float32)
        )


def idx_file(path, array):
    content = (
        struct.pack(">HBB", 0, 8, array.ndim)
        + struct.pack(f">{array.ndim}I", *array.shape)
        + array.tobytes()
    )
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)


def test_idx_files_hold_bytes_behind_a_header(tmp_path):
    images, labels = RNG.integers(0, 256, (5, 2, 3), dtype=np.uint8), np.arange(5, dtype=np.uint8)
    paths = [tmp_path / name for name in ("a.gz", "b", "c", "d.gz")]
    for path, array in zip(paths, (images, labels, images[:2], labels[:2]), strict=True):
        idx_file(path, array)
    arrays = readers.idx(paths)
    np.testing.assert_array_equal(arrays["X_train"], images.reshape(5, 6))
    np.testing.assert_array_equal(arrays["y_test"], [0, 1])
    grey = readers.grey(arrays)
    np.testing.assert_allclose(grey["X_test"], images[:2].reshape(2, 6) / 255.0, rtol=1e-6)
    assert grey["X_train"].dtype == np.float32


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\0\0",
        b"<html>not found</html>",
        struct.pack(">HBBI", 0, 8, 1, 10) + b"short",
        b"\0\0\x08\x01",
    ],
)
def test_what_is_no_idx_file_is_refused(tmp_path, content):
    path = tmp_path / "images"
    path.write_bytes(content)
    with pytest.raises(UNREADABLE):
        readers.idx([path])


def test_covtype_is_split_and_scaled(tmp_path):
    n = 103
    table = np.zeros((n, 55), int)
    table[:, 0] = np.arange(1859, 1859 + n)  # tells the rows apart
    table[:, 1:10] = RNG.integers(0, 60, (n, 9))
    table[:, 20] = 1
    table[:, 54] = RNG.integers(1, 8, n)
    path = tmp_path / "covtype.data.gz"
    path.write_bytes(
        gzip.compress("".join(",".join(map(str, row)) + "\n" for row in table).encode())
    )
    arrays = readers.covtype([path])
    np.testing.assert_array_equal(arrays["X"], table[:, :54])
    np.testing.assert_array_equal(arrays["y"], [1 if kind == 2 else -1 for kind in table[:, 54]])

    split = readers.split_covtype(arrays)
    assert len(split["X_test"]) == n // 5 and len(split["X_train"]) == n - n // 5
    for part in ("train", "test"):
        rows = np.rint(split[f"X_{part}"][:, 0] * (3858 - 1859)).astype(int)
        assert (np.diff(rows) > 0).all()  # the order of the source is kept
        np.testing.assert_array_equal(split[f"y_{part}"], arrays["y"][rows])
        np.testing.assert_allclose(split[f"X_{part}"][:, 2], table[rows, 2] / 66, rtol=1e-6)
        np.testing.assert_allclose(
            split[f"X_{part}"][:, 4], (table[rows, 4] + 173) / (601 + 173), rtol=1e-6
        )
        np.testing.assert_array_equal(split[f"X_{part}"][:, 10:], table[rows, 10:54])


def test_statlog_tables_are_scaled_by_the_training_part(tmp_path):
    train, test = RNG.integers(-50, 200, (30, 5)), RNG.integers(-80, 250, (10, 5))
    train[:, 4], test[:, 4] = RNG.integers(1, 8, 30), RNG.integers(1, 8, 10)
    for name, table in (("sat.trn", train), ("sat.tst", test)):
        np.savetxt(tmp_path / name, table, fmt="%d")
    arrays = readers.statlog([tmp_path / "sat.trn", tmp_path / "sat.tst"])
    scaler = MinMaxScaler((-1, 1)).fit(train[:, :4])
    np.testing.assert_allclose(arrays["X_train"], scaler.transform(train[:, :4]), atol=1e-6)
    np.testing.assert_allclose(arrays["X_test"], scaler.transform(test[:, :4]), atol=1e-6)
    np.testing.assert_array_equal(arrays["y_test"], test[:, 4])


def test_documents_of_rcv1_are_taken_once(tmp_path):
    texts = [
        b"3,7 1:0.6 5:0.8\n7 2:1\n",  # topic 7 is the most frequent one
        b"1 3:1\n7 2:1\n",  # the second is there already
        b"4 1:0.6 5:0.8\n7,9 8:1\n",  # the first is in the training part
        b"9 9:1\n7,9 8:1\n",
    ]
    paths = [tmp_path / f"{i}.svm.bz2" for i in range(4)]
    for path, text in zip(paths, texts, strict=True):
        path.write_bytes(bz2.compress(text))
    arrays = readers.rcv1(paths)
    assert arrays["X_train"].shape == (3, 47_236) and arrays["X_test"].shape == (2, 47_236)
    assert [row.indices.tolist() for row in arrays["X_train"]] == [[0, 4], [1], [2]]
    assert [row.indices.tolist() for row in arrays["X_test"]] == [[7], [8]]
    np.testing.assert_array_equal(arrays["y_train"], [1, 1, -1])
    np.testing.assert_array_equal(arrays["y_test"], [1, -1])


def example():
    X = sp.random(6, 4, 0.5, "csr", np.float32, random_state=0)
    return {
        "X_train": X,
        "y_train": np.array([1, -1, 1, 1, -1, 1], np.int8),
        "X_test": np.eye(4, dtype=np.float32),
        "y_test": np.ones(4, np.int8),
    }


def test_what_is_packed_comes_out_again(tmp_path):
    arrays = example()
    np.savez(tmp_path / "kept.npz", **pack(arrays), target_names=np.array(["no", "yes"]))
    with np.load(tmp_path / "kept.npz") as file:
        again = unpack(file)
    assert (again["X_train"] != arrays["X_train"]).nnz == 0 and again["X_train"].dtype == np.float32
    for key in ("y_train", "X_test", "y_test"):
        np.testing.assert_array_equal(again[key], arrays[key])
    assert again["target_names"].tolist() == ["no", "yes"]
    assert content_digest(again) == content_digest(arrays)


def test_the_digest_sees_every_change_of_content_and_none_of_form():
    arrays = example()
    digest = content_digest(arrays)
    wide = arrays["X_train"].copy()
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int32)
    assert (
        content_digest(
            arrays | {"X_train": wide, "X_test": np.asfortranarray(arrays["X_test"].astype(">f4"))}
        )
        == digest
    )
    value, label, order = arrays["X_train"].copy(), arrays["y_test"].copy(), arrays["X_test"][::-1]
    value.data[3] = np.nextafter(value.data[3], np.float32(9))
    label[0] = -1
    for change in (
        {"X_train": value},
        {"y_test": label},
        {"X_test": order},
        {"X_test": arrays["X_test"][:3]},
    ):
        assert content_digest(arrays | change) != digest
