"""Reading data: every format, and every kind of bad line by its number."""

import bz2
import gzip
import re
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from slimsvm.cli.data import Request, read
from tests.cli.conftest import write_csv


def write(name, text):
    Path(name).write_text(text, encoding="utf-8")
    return name


# -- LIBSVM and SVM-light text ---------------------------------------------------------------------


def test_libsvm_text():
    data = read(write("a.svm", "# made by hand\n+1 1:0.5 3:2 # comment\n-1 qid:7 2:1e-3\n\n3.5\n"))
    assert sp.issparse(data.X) and data.X.format == "csr"
    np.testing.assert_array_equal(data.X.toarray(), [[0.5, 0, 2], [0, 1e-3, 0], [0, 0, 0]])
    np.testing.assert_array_equal(data.y, [1, -1, 3.5])


def test_indices_start_at_one_even_if_the_first_feature_is_missing():
    np.testing.assert_array_equal(
        read(write("a.svm", "1 2:5\n0 3:6\n")).X.toarray(), [[0, 5, 0], [0, 0, 6]]
    )


def test_n_features_widens():
    assert read(write("a.svm", "1 1:5\n"), request=Request(n_features=9)).X.shape == (1, 9)


@pytest.mark.parametrize(
    ("name", "pack"),
    [("a.svm.gz", gzip.compress), ("a.txt.bz2", bz2.compress), ("a.csv.gz", gzip.compress)],
)
def test_packed_text(name, pack):
    text = b"1,2,1\n3,4,0\n" if "csv" in name else b"1 1:1 2:2\n0 1:3 2:4\n"
    Path(name).write_bytes(pack(text))
    data = read(name)
    np.testing.assert_array_equal(
        data.X.toarray() if sp.issparse(data.X) else data.X, [[1, 2], [3, 4]]
    )


def test_damaged_packed_text():
    Path("a.svm.gz").write_bytes(gzip.compress(b"1 1:1\n" * 1000)[:-20])
    with pytest.raises(ValueError, match="damaged"):
        read("a.svm.gz")


@pytest.mark.parametrize("name", ["a.svm.gz", "a.txt.bz2", "a.csv.gz", "a.csv.bz2"])
def test_text_that_is_not_packed_under_the_name_of_one_that_is(name):
    Path(name).write_bytes(b"1 1:1\n")
    with pytest.raises(
        ValueError, match=rf"{re.escape(name)}: the packed file is damaged, or of another kind"
    ):
        read(name)


def test_precomputed_kernel_values_leave_out_the_serial_number():
    data = read(
        write("k.svm", "1 0:1 1:2 2:0.5\n-1 0:2 1:0.5 2:2\n"), request=Request(precomputed=True)
    )
    np.testing.assert_array_equal(data.X, [[2, 0.5], [0.5, 2]])


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("one 1:1", "the label 'one' is not a finite number"),
        ("nan 1:1", "the label 'nan' is not a finite number"),
        ("1:1 2:2", "the label '1:1' is not"),
        ("1,2 1:1", "the label '1,2' is not"),
        ("1 1:1 2", "'2' stands where index:value is expected"),
        ("1 a:1", "the feature index 'a' is not an integer"),
        ("1 1.5:1", "the feature index '1.5' is not an integer"),
        ("1 0:1", "feature indices start at 1"),
        ("1 -3:1", "feature indices start at 1"),
        ("1 2:1 1:1", "feature indices must increase, but 1 follows 2"),
        ("1 2:1 2:1", "feature indices must increase, but 2 follows 2"),
        ("1 1:one", "the value 'one' of feature 1 is not a finite number"),
        ("1 1:", "the value '' of feature 1 is not a finite number"),
        ("1 1:nan", "the value 'nan' of feature 1 is not a finite number"),
        ("1 1:-inf", "the value '-inf' of feature 1 is not a finite number"),
        ("1 1:1 999999999999999999999999:1", "999999999999999999999999"),
        ("\x00\x01\x02", "line 17"),
    ],
)
def test_bad_lines_of_text(line, message):
    good = "1 1:1\n" * 8 + "\n" + "# comment\n" + "-1 2:1\n" * 6
    name = write("data.svm", good + line + "\n" + good)
    with pytest.raises(ValueError) as failure:
        read(name)
    if "9999" in line:
        assert "data.svm" in str(failure.value)
    else:
        assert str(failure.value).startswith("data.svm, line 17: ") and message in str(
            failure.value
        )


def test_too_many_features_are_named_by_line():
    with pytest.raises(
        ValueError, match=r"a\.svm, line 2: feature 4, but there are only 3 features"
    ):
        read(write("a.svm", "1 3:1\n1 4:1\n"), request=Request(n_features=3))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.svm", ""),
        ("a.svm", "\n\n"),
        ("a.svm", "# nothing\n"),
        ("a.csv", ""),
        ("a.csv", "\n\n"),
        ("a.csv", "a,b,c\n"),
    ],
)
def test_empty_files(name, text):
    with pytest.raises(ValueError, match=name.replace(".", r"\.")):
        read(write(name, text))


# -- CSV -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
@pytest.mark.parametrize("header", [None, ["a", "b", "kind"]])
def test_csv(delimiter, header):
    X = np.array([[0.1, 2.0], [1 / 3, -4e-8], [5.0, 6.0]])
    write_csv("a.csv", X, [1, 0, 1], header=header, delimiter=delimiter)
    data = read("a.csv")
    np.testing.assert_array_equal(data.X, X)
    np.testing.assert_array_equal(data.y, [1, 0, 1])
    assert data.names == (["a", "b"] if header else None)


def test_csv_with_text_labels_quotes_and_a_byte_order_mark():
    text = '\ufeffx,"y, too",kind\r\n1,"2","a, b"\r\n\r\n3,4,ü # 5\r\n'
    Path("a.csv").write_bytes(text.encode())
    data = read("a.csv")
    np.testing.assert_array_equal(data.X, [[1, 2], [3, 4]])
    assert data.y.tolist() == ["a, b", "ü # 5"] and data.names == ["x", "y, too"]


def test_csv_without_newline_at_the_end():
    np.testing.assert_array_equal(read(write("a.csv", "1,2,0\n3,4,1")).y, [0, 1])


@pytest.mark.parametrize("column", ["kind", "0", "-3"])
def test_label_column(column):
    data = read(write("a.csv", "kind,x,y\n1,2,3\n0,4,5\n"), request=Request(label_column=column))
    np.testing.assert_array_equal(data.y, [1, 0])
    np.testing.assert_array_equal(data.X, [[2, 3], [4, 5]])
    assert data.names == ["x", "y"]


def test_label_column_of_files_without_columns():
    np.savez("b.npz", X=np.eye(2), y=[0, 1])
    for path, words in (
        (write("a.svm", "1 1:2\n"), "first word of a line"),
        ("b.npz", "in the array y"),
    ):
        with pytest.raises(
            ValueError, match=f"--label-column is for CSV and Parquet files.*{words}"
        ):
            read(path, request=Request(label_column="0"))


def test_byte_order_mark_of_libsvm_text():
    """As editors on Windows write it; lines are counted as before."""
    Path("a.svm").write_bytes(b"\xef\xbb\xbf1 1:2\n0 1:3\n")
    assert read("a.svm").y.tolist() == [1, 0]
    with gzip.open("a.svm.gz", "wb") as file:
        file.write(b"\xef\xbb\xbf1 1:2\n0 1:x\n")
    with pytest.raises(ValueError, match=r"a.svm.gz, line 2"):
        read("a.svm.gz")


@pytest.mark.parametrize("column", ["nix", "3", "-4"])
def test_label_column_that_is_not_there(column):
    with pytest.raises(ValueError, match=f"there is no column '{column}'"):
        read(write("a.csv", "kind,x,y\n1,2,3\n"), request=Request(label_column=column))


def test_first_line_of_numbers_and_a_text_label_is_no_header():
    data = read(write("a.csv", "1,2,cat\n3,4,dog\n"))
    assert data.X.shape == (2, 2) and data.y.tolist() == ["cat", "dog"]


def test_labels_that_are_numbers_stay_text_on_request():
    assert read(
        write("a.csv", "1,2,01\n3,4,1\n"), request=Request(text_labels=True)
    ).y.tolist() == ["01", "1"]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("1,2", "2 columns, but the first line has 3"),
        ("1,2,3,4", "4 columns, but the first line has 3"),
        ("1,,3", "column 2 is empty"),
        ("1,red,3", "column 2: 'red' is not a number"),
        ("nan,2,3", "column 1: 'nan' is not a finite number"),
        ("1,inf,3", "column 2: 'inf' is not a finite number"),
        ("1,2,", "the label is missing"),
    ],
)
@pytest.mark.parametrize("header", ["", "a,b,c\n"])
def test_bad_lines_of_csv(line, message, header):
    name = write("data.csv", header + "1,2,3\n\n" * 2 + line + "\n1,2,3\n")
    with pytest.raises(ValueError) as failure:
        read(name)
    assert str(failure.value).startswith(
        f"data.csv, line {6 if header else 5}: "
    ) and message in str(failure.value)


def test_csv_that_is_no_text():
    Path("a.csv").write_bytes(b"1,2,3\n\xff\xfe,2,3\n")
    with pytest.raises(ValueError, match=r"a\.csv: not text in UTF-8"):
        read("a.csv")


def test_missing_labels_among_numbers_are_not_a_class_of_their_own():
    Path("a.csv").write_text("x,label\n1,0\n2,1\n3,NaN\n")
    with pytest.raises(ValueError, match=r"a.csv, line 4: the label 'NaN' is not a finite number"):
        read("a.csv")
    Path("words.csv").write_text("x,label\n1,nan\n2,naan\n")
    assert read("words.csv").y.tolist() == ["nan", "naan"]
    np.savez("a.npz", X=np.eye(3), y=[0.0, np.nan, 1.0])
    with pytest.raises(
        ValueError, match=r"a.npz: row 1 \(counted from 0\) has a label that is missing"
    ):
        read("a.npz")
    assert (
        read("a.npz", request=Request(labelled=None, n_features=3)).y is None
    )  # a prediction can do without


@pytest.mark.parametrize(
    "y",
    [np.array([b"a", b"b", b"a"]), np.zeros(3, "datetime64[s]"), np.zeros(3, complex)],
    ids=["bytes", "times", "complex"],
)
def test_labels_of_another_kind(y):
    np.savez("a.npz", X=np.eye(3), y=y)
    with pytest.raises(ValueError, match=r"a\.npz: the labels must be numbers or text"):
        read("a.npz")


def test_columns_of_unlabelled_data_are_counted():
    request = Request(labelled=None, n_features=2)
    assert read(write("a.csv", "1,2\n3,4\n"), request=request).y is None
    np.testing.assert_array_equal(read(write("a.csv", "1,2,1\n3,4,0\n"), request=request).y, [1, 0])
    with pytest.raises(ValueError, match="4 columns, but the model has 2 features"):
        read(write("a.csv", "1,2,3,4\n"), request=request)


def test_columns_are_found_by_name():
    request = Request(labelled=None, n_features=2, names=["x", "y"])
    data = read(write("a.csv", "y,kind,x\n1,cat,2\n3,dog,4\n"), request=request)
    np.testing.assert_array_equal(data.X, [[2, 1], [4, 3]])
    assert data.y.tolist() == ["cat", "dog"] and data.names == ["x", "y"]
    data = read(
        write("a.csv", "id,y,x,when\n9,1,2,8\n"), request=request
    )  # two more columns: neither is known to be the label
    np.testing.assert_array_equal(data.X, [[2, 1]])
    assert data.y is None
    with pytest.raises(
        ValueError, match="there is no column 'x', which the model was trained with"
    ):
        read(write("a.csv", "y,z\n1,2\n"), request=request)


# -- NPZ and Parquet -------------------------------------------------------------------------------


def test_npz(files):
    X, y = files
    for name in ("c.npz", "sparse.npz"):
        data = read(name)
        np.testing.assert_array_equal(data.X.toarray() if sp.issparse(data.X) else data.X, X)
        np.testing.assert_array_equal(data.y, y)
    assert sp.issparse(data.X)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"a": [1]}, "there is no array X"),
        ({"X": [[1.0]]}, "there is no array y"),
        ({"X": [1.0], "y": [1]}, "X must be a matrix of numbers"),
        ({"X": [["a"]], "y": [1]}, "X must be a matrix of numbers"),
        ({"X": [[1.0]], "y": [1, 2]}, "y must have one label for each of the 1 rows"),
        ({"X": [[1.0], [np.nan]], "y": [1, 2]}, "row 1 "),
        ({"X": np.zeros((0, 3)), "y": []}, "there are no rows"),
        (
            {"X_data": [1.0], "X_indices": [7], "X_indptr": [0, 1], "X_shape": [1, 3], "y": [1]},
            "are not a CSR matrix",
        ),
        (
            {"X_data": [1.0], "X_indices": [-1], "X_indptr": [0, 1], "X_shape": [1, 3], "y": [1]},
            "are not a CSR matrix",
        ),
        (
            {
                "X_data": [1.0, np.inf],
                "X_indices": [0, 1],
                "X_indptr": [0, 1, 2],
                "X_shape": [2, 3],
                "y": [1, 2],
            },
            "row 1 ",
        ),
    ],
)
def test_bad_npz(arrays, message):
    np.savez("a.npz", **arrays)
    with pytest.raises(ValueError) as failure:
        read("a.npz")
    assert str(failure.value).startswith("a.npz: ") and message in str(failure.value)


def test_npz_with_python_objects_is_not_unpickled():
    np.savez("a.npz", X=np.array([[1, "a"]], dtype=object), y=np.array([1]))
    with pytest.raises(ValueError, match=r"a\.npz: not a readable NPZ file"):
        read("a.npz")


@pytest.mark.parametrize("name", ["a.npz", "a.parquet"])
@pytest.mark.parametrize(
    "content",
    [b"", b"PK\x03\x04 nonsense", b"PAR1 nonsense PAR1", b"\x93NUMPY\x01\x00", b"hello" * 100],
)
def test_files_that_are_something_else(name, content):
    if name.endswith("parquet"):
        pytest.importorskip("pyarrow")
    Path(name).write_bytes(content)
    with pytest.raises(ValueError, match=name.replace(".", r"\.")):
        read(name)


def test_npy_is_not_npz():
    np.save("a.npy", np.eye(3))
    Path("a.npy").rename("a.npz")
    with pytest.raises(ValueError, match=r"not a readable NPZ file .*no zip archive"):
        read("a.npz")


def test_parquet():
    parquet = pytest.importorskip("pyarrow.parquet")
    import pyarrow

    columns = {"x": [1.0, 2.0], "n": [3, 4], "kind": ["cat", "dog"]}
    parquet.write_table(pyarrow.table(columns), "a.parquet")
    data = read("a.parquet")
    np.testing.assert_array_equal(data.X, [[1, 3], [2, 4]])
    assert data.y.tolist() == ["cat", "dog"] and data.names == ["x", "n"]
    with pytest.raises(ValueError, match=r"a\.parquet: column 'kind' is not made of numbers"):
        read("a.parquet", request=Request(label_column="x"))
    parquet.write_table(pyarrow.table({"x": [1.0, None], "y": [1, 0]}), "gap.parquet")
    with pytest.raises(ValueError, match=r"gap\.parquet: row 1 "):
        read("gap.parquet")
    parquet.write_table(pyarrow.table({"x": [1.0, 2.0], "y": ["a", None]}), "gap.parquet")
    with pytest.raises(ValueError, match="a label is missing"):
        read("gap.parquet")


def test_parquet_without_pyarrow(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "pyarrow", None)
    Path("a.parquet").write_bytes(b"PAR1")
    with pytest.raises(ValueError, match=r"pip install 'slimsvm\[parquet\]'"):
        read("a.parquet")
