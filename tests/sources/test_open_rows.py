"""Rows of files, arrays and batches: what was written is read, and what is wrong is named."""

import bz2
import gzip
import os

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.datasets import dump_svmlight_file
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MinMaxScaler,
    PolynomialFeatures,
    StandardScaler,
)

import slimsvm
from slimsvm import open_rows
from slimsvm.export.description import described
from slimsvm.persistence.libsvm import save_libsvm
from slimsvm.problems.mapped_rows import MappedFrame
from slimsvm.rows import BlockedRows
from slimsvm.sources.tables import PAGES

pa = pytest.importorskip("pyarrow")
pd = pytest.importorskip("pandas")
import pyarrow.parquet as pq  # noqa: E402

N, D = 2500, 4
NAMES = ["a", "b", "c", "d"]


def data(dtype=np.float32):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N, D)).astype(dtype)
    return X, np.where(X[:, 0] * X[:, 1] > 0, "yes", "no"), rng.uniform(0.5, 1.0, N)


def table(X, y, weight):
    return pa.table({name: X[:, j] for j, name in enumerate(NAMES)} | {"label": y, "w": weight})


def written(kind, folder, X, y, weight):
    """Files of a kind, in two parts, and what open_rows is to be told of them."""
    named = {"target": "label", "weight": "w", "features": NAMES}
    for k, part in enumerate((slice(0, 900), slice(900, N))):
        of = table(X[part], y[part], weight[part])
        path = folder / f"part-{k}.{kind}"
        if kind == "parquet":
            pq.write_table(of, path, row_group_size=333)
        elif kind == "feather":
            pa.feather.write_feather(of, str(path), chunksize=200)
        elif kind == "csv":
            of.to_pandas().to_csv(path, index=False)
        elif kind == "libsvm":
            dump_svmlight_file(
                X[part], np.where(y[part] == "yes", 1, -1), str(path), zero_based=False
            )
            named = {}
        else:
            np.save(path, X[part])
            np.save(folder / f"label-{k}.npy", y[part])
            named = {"target": str(folder / "label-*.npy")}
    return str(folder / f"part-*.{kind}"), named


@pytest.mark.parametrize("kind", ["parquet", "feather", "csv", "libsvm", "npy"])
def test_what_is_read_is_what_was_written(kind, tmp_path):
    import pyarrow.feather  # noqa: F401

    X, y, weight = data(np.float64)
    source, named = written(kind, tmp_path, X, y, weight)
    rows = open_rows(source, **named, batch_rows=400)
    assert (rows.n, rows.n_features, rows.n_blocks) == (N, D, 7)
    blocks = rows.map(lambda block: (block.start, block.X, block.y, block.weight))
    assert [start for start, *_ in blocks] == [0, 400, 800, 1200, 1600, 2000, 2400]
    found = (
        sp.vstack([X for _, X, _, _ in blocks]).toarray()
        if kind == "libsvm"
        else np.vstack([X for _, X, _, _ in blocks])
    )
    np.testing.assert_allclose(found, X, atol=0.0 if kind in ("parquet", "npy") else 1e-12)
    labels = np.concatenate([y for _, _, y, _ in blocks])
    np.testing.assert_array_equal(labels, np.where(y == "yes", 1, -1) if kind == "libsvm" else y)
    if "weight" in named:
        np.testing.assert_allclose(np.concatenate([w for *_, w in blocks]), weight)
    some = np.array([N - 1, 0, 899, 900, 3])
    taken = rows.take(some).X
    np.testing.assert_array_equal(taken.toarray() if sp.issparse(taken) else taken, found[some])


def test_float32_columns_stay_so_and_names_are_known(tmp_path):
    X, y, weight = data()
    source, _ = written("parquet", tmp_path, X, y, weight)
    rows = open_rows(source, target="label", features=["c", "a"])
    assert rows.names == ["c", "a"] and rows.take(np.arange(3)).X.dtype == np.float32
    np.testing.assert_array_equal(rows.take(np.arange(3)).X, X[:3, [2, 0]])
    assert "2 Parquet files" in repr(rows)


def test_batches_are_cut_anew_or_stay_as_they_come():
    X, y, weight = data()
    parts = [(X[a:b], y[a:b], weight[a:b]) for a, b in ((0, 10), (10, 10), (10, 1700), (1700, N))]
    assert open_rows(parts).edges.tolist() == [0, 10, 1700, N]
    cut = open_rows(lambda: iter(parts), batch_rows=1000)
    assert cut.edges.tolist() == [0, 1000, 2000, N]
    np.testing.assert_array_equal(np.vstack(cut.map(lambda block: block.X)), X)


def test_one_block_is_read_ahead_and_no_more():
    X, y, _ = data()
    read = []

    def reading(k):
        read.append(k)
        return X[500 * k : 500 * (k + 1)], y[500 * k : 500 * (k + 1)], None

    rows = slimsvm.rows.BlockedRows(reading, [0, 500, 1000, 1500, 2000, 2500], D, ahead=True)
    seen = rows.map(lambda block: (block.X.shape[0], len(read))[1])
    assert sorted(read) == [0, 1, 2, 3, 4]
    assert all(n <= k + 2 for k, n in enumerate(seen))
    read.clear()
    assert rows.map(lambda block: block.y[0])[0] == y[0] and not read  # labels are kept


# -- transformers ----------------------------------------------------------------------------------


def test_a_transformer_is_fitted_in_one_pass_and_stays_with_the_model(tmp_path):
    X, y, _ = data(np.float64)
    X = 100.0 * X + 7.0
    rows = open_rows(X, target=y, batch_rows=700).transformed(StandardScaler())
    scaler = StandardScaler().fit(X)
    np.testing.assert_allclose(rows.take(np.arange(5)).X, scaler.transform(X[:5]), atol=1e-10)
    model = slimsvm.SparseSVC(20, random_state=0).fit(rows)
    plain = slimsvm.SparseSVC(20, random_state=0).fit(scaler.transform(X), y)
    expected = plain.decision_function(scaler.transform(X[:50]))
    np.testing.assert_allclose(model.decision_function(X[:50]), expected, atol=1e-3)
    np.testing.assert_array_equal(model.predict(rows), model.predict(X))
    raw = open_rows(X, target=y, batch_rows=700)
    assert model.score(rows) == model.score(raw) == model.score(X, y)
    slimsvm.save(model, tmp_path / "model.slim")
    again = slimsvm.load(tmp_path / "model.slim")
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert not hasattr(model.fit(X, y), "transformer_")


def test_a_chain_of_transformers_and_those_that_cannot_be_fitted_so():
    X, y, _ = data(np.float64)
    rows = open_rows(X, target=y, batch_rows=700)
    twice = rows.transformed(StandardScaler()).transformed(MinMaxScaler())
    found = np.vstack(twice.map(lambda block: block.X))
    assert found.min() == 0.0 and found.max() == pytest.approx(1.0)
    wide = rows.transformed(PolynomialFeatures(2).fit(X[:5]))
    assert wide.n_features == 15
    with pytest.raises(ValueError, match="has no partial_fit"):
        rows.transformed(PolynomialFeatures(2))
    with pytest.raises(ValueError, match="not a transformer"):
        rows.transformed(slimsvm.SVC())


# -- what is wrong ---------------------------------------------------------------------------------


def test_columns_that_are_missing_or_no_numbers_are_named(tmp_path):
    X, y, weight = data()
    source, _ = written("parquet", tmp_path, X, y, weight)
    with pytest.raises(ValueError, match=r"part-0.parquet has no column 'goal'; it has 'a', 'b'"):
        open_rows(source, target="goal")
    with pytest.raises(ValueError, match=r"column 'label' is of type string, not a number"):
        open_rows(source)


def test_other_types_in_the_tenth_file(tmp_path):
    X, y, weight = data()
    for k in range(10):
        of = table(X, y, weight).to_pandas()
        if k == 9:
            of["c"] = of["c"].astype(np.float64)
        of.to_parquet(tmp_path / f"{k}.parquet")
    with pytest.raises(ValueError, match=r"9.parquet: column 'c' is of type double, but float in"):
        open_rows(tmp_path, target="label")
    of.drop(columns="c").to_parquet(tmp_path / "9.parquet")
    with pytest.raises(ValueError, match=r"9.parquet has no column 'c'"):
        open_rows(tmp_path, target="label")


@pytest.mark.parametrize("value", [np.nan, np.inf, None])
def test_a_missing_value_in_the_last_block_is_named(value, tmp_path):
    X, y, weight = data()
    source, named = written("parquet", tmp_path, X, y, weight)
    of = pq.read_table(tmp_path / "part-1.parquet").to_pandas()
    of.loc[1490, "b"] = value
    of.to_parquet(tmp_path / "part-1.parquet")
    rows = open_rows(source, **named, batch_rows=400)
    model = slimsvm.SparseSVC(10, random_state=0).fit(X, y)
    before = dict(vars(model))
    with pytest.raises(ValueError, match=r"part-1.parquet, row 1,490 .*: column 'b' is"):
        model.fit(rows)
    assert vars(model).keys() == before.keys() and model.basis_ is before["basis_"]


def test_files_that_are_not_there(tmp_path):
    with pytest.raises(ValueError, match="No file matches"):
        open_rows(tmp_path / "*.parquet")
    with pytest.raises(ValueError, match="has no files that end in"):
        open_rows(tmp_path)
    with pytest.raises(FileNotFoundError, match="No such file or directory"):
        open_rows(tmp_path / "x.parquet")
    (tmp_path / "broken.parquet").write_bytes(b"PAR1 no more")
    with pytest.raises(ValueError, match=r"broken.parquet cannot be read"):
        open_rows(tmp_path / "broken.parquet")
    (tmp_path / "other.csv").write_text("a,b\n1,2\n")
    with pytest.raises(ValueError, match="must be of one kind"):
        open_rows(tmp_path)


@pytest.mark.parametrize("what", ["changed", "gone"])
def test_a_file_that_changes_or_vanishes_during_a_fit_is_named(what, tmp_path):
    X, y, weight = data()
    source, named = written("parquet", tmp_path, X, y, weight)
    rows = open_rows(source, **named, batch_rows=400)
    path = tmp_path / "part-1.parquet"

    def meddle(block):
        if block.start == 400:
            path.unlink()
            if what == "changed":
                pq.write_table(table(X[:7], y[:7], weight[:7]), path)
        return block.X.sum()

    with pytest.raises(ValueError, match=r"part-1.parquet (has changed since|can no longer)"):
        rows.sum(meddle)


def test_a_bad_cell_of_csv_is_named(tmp_path):
    (tmp_path / "x.csv").write_text("a,t\n" + "1.5,0\n" * 50 + "oops,1\n")
    with pytest.raises(ValueError, match=r"x.csv.*(oops|not a number)"):
        open_rows(tmp_path / "x.csv", target="t")
    (tmp_path / "y.libsvm").write_text("1 1:0.5\n-1 nonsense\n")
    with pytest.raises(ValueError, match=r"y.libsvm is not LIBSVM text"):
        open_rows(tmp_path / "y.libsvm")


def test_batches_that_change_or_end_are_noticed():
    X, y, _ = data()
    rng = np.random.default_rng(0)
    rows = open_rows(lambda: iter([(rng.standard_normal((9, 2)), np.zeros(9))] * 3))
    with pytest.raises(ValueError, match="Batch 0 is not the one"):
        rows.sum(lambda block: block.X.sum())
    with pytest.raises(ValueError, match="only once"):
        open_rows(iter([(X, y)]))
    with pytest.raises(ValueError, match="Batch 1 has 3"):
        open_rows([(X, y), (X[:, :3], y)])
    with pytest.raises(ValueError, match="There are no batches"):
        open_rows([])
    with pytest.raises(ValueError, match="no rows"):
        open_rows(np.empty((0, 3)), target=np.empty(0))
    with pytest.raises(ValueError, match="batch_rows=0"):
        open_rows(X, target=y, batch_rows=0)
    with pytest.raises(ValueError, match="Rows cannot be read from int"):
        open_rows(7)


def test_labels_come_with_the_rows():
    X, y, _ = data()
    rows = open_rows(X, target=y)
    with pytest.raises(ValueError, match="y comes with the rows"):
        slimsvm.SparseSVC().fit(rows, y)
    with pytest.raises(ValueError, match="have no target"):
        slimsvm.SparseSVC().fit(open_rows(X))
    with pytest.raises(ValueError, match="needs all rows in memory"):
        slimsvm.NuSVC().fit(rows)
    with pytest.raises(ValueError, match="greater than one; got 1 class"):
        slimsvm.SparseSVC().fit(open_rows(X, target=np.zeros(N)))


def test_nothing_is_open_between_passes_and_kernel_values_leave_room_to_read(tmp_path):
    X, y, weight = data()
    source, named = written("parquet", tmp_path, X, y, weight)
    rows = open_rows(source, **named, batch_rows=400)
    for _ in range(2):
        rows.map(lambda block: block.X.shape)
        pieces = rows.reader._pieces
        assert pieces._coming is None and pieces._held is None
    kept = {}
    before = BlockedRows.sum

    def looking(self, task, *state):
        for frame in state:
            if isinstance(frame, MappedFrame):
                kept[self.read] = frame.kept_rows
        return before(self, task, *state)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(BlockedRows, "sum", looking)
        for to_read, some in ((10**6, True), (10**7, False)):
            kept.clear()
            rows = open_rows(source, **named, batch_rows=400)
            # of few rows a column has no whole page
            assert 0 < rows.bytes_to_read < 20 * N * D * 8 < PAGES * D
            rows.bytes_to_read = to_read
            slimsvm.SparseSVC(5, max_memory=8.0, random_state=0).fit(rows)
            assert kept and all((of > 0) == some for of in kept.values())


def packed(source, suffix):
    """A file compressed, beside it."""
    work = {".gz": gzip.compress, ".bz2": bz2.compress}[suffix]
    made = source.with_name(source.name + suffix)
    made.write_bytes(work(source.read_bytes()))
    return made


@pytest.mark.parametrize("suffix", [".gz", ".bz2"])
def test_text_that_is_compressed(suffix, tmp_path):
    X, y, weight = data(np.float64)
    written("csv", tmp_path, X, y, weight)
    written("libsvm", tmp_path, X, y, weight)
    plain = open_rows(tmp_path / "part-1.libsvm", batch_rows=400)
    found = open_rows(packed(tmp_path / "part-1.libsvm", suffix), batch_rows=400)
    for _ in range(2):
        for k in (0, 1, 3, 2):
            assert (found.reader.read(400 * k, 400 * k + 400)[0] != plain._block(k).X).nnz == 0
    table = open_rows(packed(tmp_path / "part-0.csv", suffix), target="label", features=NAMES)
    np.testing.assert_array_equal(table.take(np.arange(900)).X, X[:900])
    broken = packed(tmp_path / "part-0.libsvm", suffix)
    broken.write_bytes(broken.read_bytes()[:-3000])
    with pytest.raises(ValueError, match=r"part-0\.libsvm.*cannot be read"):
        open_rows(broken)
    with pytest.raises(ValueError, match="unpack it first"):
        open_rows(packed(tmp_path / "part-0.csv", suffix).rename(tmp_path / f"x.parquet{suffix}"))


def test_frames_and_tables_in_memory():
    X, y, _ = data(np.float64)
    frame = pd.DataFrame(X, columns=NAMES).assign(label=y)
    for given in (frame, frame.convert_dtypes(), pa.Table.from_pandas(frame)):
        rows = open_rows(given, target="label", batch_rows=1000)
        assert rows.names == NAMES
        few = rows.take(np.arange(N))
        np.testing.assert_array_equal(few.X, X)
        np.testing.assert_array_equal(few.y, y)
    with pytest.raises(ValueError, match=r"column 'label' is of type .*, not a number"):
        open_rows(frame, target="a")
    with pytest.raises(ValueError, match="no column 'e'"):
        open_rows(frame, target="label", features=["a", "e"])
    frame.loc[7, "label"] = None
    with pytest.raises(ValueError, match=r"row 7 .*the target is missing"):
        open_rows(frame.astype({"label": object}), target="label")
    with pytest.raises(ValueError, match="only once"):
        open_rows(pa.Table.from_pandas(frame).to_reader(), target="label")


def test_rows_are_no_array():
    X, y, _ = data()
    rows = open_rows(X, target=y)
    for wrong in (
        lambda: np.asarray(rows),
        lambda: make_pipeline(StandardScaler(), slimsvm.LinearSVC()).fit(rows),
        lambda: slimsvm.GridSearchCV(slimsvm.SVC(), {"C": [1.0]}).fit(rows),
        lambda: slimsvm.SVCCV().fit(rows, None),
    ):
        with pytest.raises(TypeError, match=r"rows\.transformed\(StandardScaler\(\)\)"):
            wrong()


def test_names_of_folders_are_no_columns(tmp_path):
    X, y, weight = data()
    (tmp_path / "fold=0").mkdir()
    written("parquet", tmp_path / "fold=0", X, y, weight)
    assert open_rows(tmp_path, target="label").n == N
    with pytest.raises(ValueError, match=r"no column 'fold'.*What folders are called is not read"):
        open_rows(tmp_path, target="fold")


def test_labels_that_are_no_numbers_and_no_text(tmp_path):
    X, _, _ = data()
    for kind, values in (("list", [[1, 2]] * N), ("struct", [{"q": 1}] * N)):
        pq.write_table(pa.table({"a": X[:, 0], "label": values}), tmp_path / "x.parquet")
        with pytest.raises(ValueError, match=rf"x.parquet: the target 'label' is of type {kind}"):
            open_rows(tmp_path / "x.parquet", target="label")
    (tmp_path / "m.csv").write_text("a,label\n1,yes\n2,\n3,no\n")
    rows = open_rows(tmp_path / "m.csv", target="label")
    with pytest.raises(ValueError, match=r"m.csv, row 1 .*the target 'label' is missing"):
        rows.take(np.arange(3))
    (tmp_path / "l.csv").write_bytes("a,label\n1,é\n2,è\n".encode("latin-1"))
    rows = open_rows(tmp_path / "l.csv", target="label")
    with pytest.raises(ValueError, match=r"l.csv.*'label' is not text in UTF-8"):
        rows.take(np.arange(2))
    with pytest.raises(
        ValueError, match=r"text in some blocks \('a'\) and numbers in others \(1\)"
    ):
        slimsvm.LinearSVC().fit(open_rows([(X, np.ones(N, int)), (X, np.full(N, "a"))]))
    model = slimsvm.LinearSVC().fit(X, np.arange(N) % 2)
    with pytest.raises(
        ValueError, match=r"labels of the rows are text, but the classes .* numbers"
    ):
        model.score(open_rows(X, target=np.full(N, "1")))


def test_columns_of_one_name(tmp_path):
    X, y, _ = data()
    twice = pa.table([X[:, 0], X[:, 1], y, y], names=["a", "b", "label", "label"])
    pq.write_table(twice, tmp_path / "x.parquet")
    with pytest.raises(ValueError, match="several columns of the name 'label'"):
        open_rows(tmp_path / "x.parquet", target="label")
    (tmp_path / "x.csv").write_text("a,a,label\n1,2,0\n")
    with pytest.raises(ValueError, match="several columns of the name 'a'"):
        open_rows(tmp_path / "x.csv", target="label")
    frame = pd.DataFrame(X, columns=["a", "a", "b", "c"])
    np.testing.assert_array_equal(open_rows(frame, target=y).take(np.arange(N)).X, X)
    with pytest.raises(ValueError, match="several columns of the name 'a'"):
        open_rows(frame, target="a")


def test_frames_whose_columns_are_no_words():
    X, y, _ = data(np.float64)
    numbered, pairs = pd.DataFrame(X), pd.DataFrame(X)
    pairs.columns = pd.MultiIndex.from_product([["u", "v"], [1, 2]])
    for given, named in ((numbered, {"target": y}), (numbered.assign(t=y), {"target": "t"})):
        rows = open_rows(given, **named)
        np.testing.assert_array_equal(rows.take(np.arange(N)).X, X)
        assert rows.names is None
    np.testing.assert_array_equal(open_rows(pairs, target=y).take(np.arange(N)).X, X)
    rows = open_rows(numbered.assign(t=X[:, 0] > 0), target="t", features=[2, 0])
    np.testing.assert_array_equal(rows.take(np.arange(N)).X, X[:, [2, 0]])
    rows = open_rows(numbered, target=3)
    np.testing.assert_array_equal(rows.take(np.arange(N)).y, X[:, 3])


def test_text_files_of_all_sorts(tmp_path):
    (tmp_path / "a.csv").write_text("a,b,label\n1,2,0\n3,4,1\n")
    (tmp_path / "b.csv").write_text("a,b,label\n")  # no rows: no types
    rows = open_rows(tmp_path, target="label")
    np.testing.assert_array_equal(rows.take(np.arange(2)).X, [[1.0, 2.0], [3.0, 4.0]])
    wide, zeros = 2000, "0" * 600  # a line is longer than what is parsed at once by default
    text = ",".join(f"f{j}" for j in range(wide)) + ",label\n"
    text += "".join(f"{k}.25{zeros}," * wide + f"{k}\n" for k in (0, 1))
    (tmp_path / "wide.csv").write_text(text)
    rows = open_rows(tmp_path / "wide.csv", target="label")
    assert rows.n == 2 and rows.take(np.arange(2)).X.sum() == 1.5 * wide
    (tmp_path / "c.csv").write_text("a;label\n1;0\n")
    with pytest.raises(ValueError, match="Between columns there must be commas"):
        open_rows(tmp_path / "c.csv", target="label")
    (tmp_path / "d.svm").write_text("1 2:0.5\n-1 1:2\n", encoding="utf-8-sig")
    np.testing.assert_array_equal(open_rows(tmp_path / "d.svm").take(np.arange(2)).y, [1, -1])
    with pytest.raises(ValueError, match=r"d.svm is read as LIBSVM text"):
        open_rows(tmp_path / "d.svm", target="label")


def test_sources_that_are_none(tmp_path):
    X, y, _ = data()
    np.save(tmp_path / "x.npy", X)
    rows = open_rows(tmp_path / "x.npy", target=(y == "yes").tolist())
    np.testing.assert_array_equal(rows.take(np.arange(N)).y, y == "yes")
    for wrong, words in (
        ([], "the list is empty"),
        (b"x.npy", "from bytes"),
        (X[:, 0], "one dimension"),
        (lambda: 3, "it returned int"),
    ):
        with pytest.raises(ValueError, match=words):
            open_rows(wrong, target=None if callable(wrong) else y)
    os.mkfifo(tmp_path / "pipe.csv")
    with pytest.raises(ValueError, match=r"pipe.csv is no file but a pipe"):
        open_rows(tmp_path / "pipe.csv")
    da = pytest.importorskip("dask.array")
    with pytest.raises(ValueError, match="pass them to fit"):
        open_rows(da.from_array(X), target=y)


class Halves(TransformerMixin, BaseEstimator):
    """Keeps every second row: no transformer that a fit can use."""

    def __sklearn_is_fitted__(self):
        return True

    def fit(self, X, y=None):
        return self

    def transform(self, X):
        return X[::2]


def test_what_a_transformer_may_not_do():
    X, y, _ = data()
    rows = open_rows(X, target=y, batch_rows=1000)
    for model in (slimsvm.SVC(), slimsvm.LinearSVC(), slimsvm.SparseSVC(5)):
        with (
            np.errstate(invalid="ignore"),
            pytest.raises(ValueError, match="makes NaN or infinity"),
        ):
            model.fit(rows.transformed(FunctionTransformer(np.log)))
    with pytest.raises(ValueError, match=r"Halves\(\) has made 500 rows of 1,000"):
        slimsvm.LinearSVC().fit(rows.transformed(Halves()))
    with pytest.raises(ValueError, match="squares are beyond all"):
        slimsvm.SVC().fit(open_rows(X.astype(np.float64) * 1e200, target=y))


MODELS = {
    "svc": slimsvm.SVC(),
    "linear": slimsvm.LinearSVC(),
    "sparse": slimsvm.SparseSVC(8, random_state=0),
    "pursuit": slimsvm.SparseSVC(8, basis="pursuit", random_state=0),
}


@pytest.mark.parametrize(
    ("name", "transformer"),
    [
        *((name, StandardScaler()) for name in MODELS),
        *((name, PolynomialFeatures(2)) for name in ("linear", "sparse")),
    ],
)
def test_whatever_is_made_of_a_model_transforms_first(name, transformer, tmp_path):
    X, y, _ = data(np.float64)
    X = 5.0 * X + 3.0
    y = (y == "yes").astype(int)
    fitted = clone(transformer).fit(X)
    rows = open_rows(X, target=y, batch_rows=1000).transformed(fitted)
    model = clone(MODELS[name]).fit(rows)
    expected, right = model.decision_function(X), model.score(X, y)
    assert right > 0.9 or name == "linear"
    assert model.score(rows) == model.score(open_rows(X, target=y)) == right
    slimsvm.save(model, tmp_path / "m.slim")
    np.testing.assert_array_equal(slimsvm.load(tmp_path / "m.slim").decision_function(X), expected)
    with pytest.raises(ValueError, match="no place for what this"):
        save_libsvm(model, tmp_path / "m.libsvm")
    assert not (tmp_path / "m.libsvm").exists()
    if isinstance(transformer, StandardScaler):
        of = described(model)
        assert of.shift is not None and slimsvm.to_c(model, tmp_path / "m.h") is not None
    else:
        with pytest.raises(ValueError, match="'transformer_' before the model is Polynomial"):
            described(model)
    if name != "linear":
        predict = model.fast_predictor()
        np.testing.assert_array_equal(predict(X[:50]), model.predict(X[:50]))
        assert predict(X[0]) == model.predict(X[:1])[0]
    if name in ("svc", "pursuit"):
        small = slimsvm.compress(model, 20, X, y, random_state=0)
        assert small.score(X, y) > 0.9
        small = slimsvm.compress(model, 20, random_state=0)
        assert small.transformer_ is model.transformer_ and small.score(X, y) > 0.85
    if name == "pursuit":
        assert model.certify(X, y).gap < np.inf
    if name == "sparse":
        assert model.partial_fit(X[:500], y[:500]).score(X, y) > 0.8
    # a model of transformed rows that has no transformer itself
    bare = clone(MODELS[name]).fit(fitted.transform(X), y)
    assert bare.score(rows) == bare.score(fitted.transform(X), y)


@pytest.mark.parametrize(
    "model",
    [
        slimsvm.CoreVectorSVC(),
        slimsvm.CrossTraining(),
        slimsvm.MultivariateSVC(),
        slimsvm.OnlineSVC(),
        slimsvm.SVCCV(),
    ],
)
def test_estimators_that_need_all_rows_say_so(model):
    X, y, _ = data()
    rows = open_rows(X, target=y)
    with pytest.raises((ValueError, TypeError), match=r"in memory.*(fit on|fit it on|take)"):
        model.fit(rows)
    if hasattr(model, "partial_fit"):
        with pytest.raises(TypeError, match="not in memory"):
            model.partial_fit(rows)


def test_the_index_of_a_frame_is_no_feature(tmp_path):
    """pandas writes it as a column where it is no plain range, and does not read it as one."""
    X = np.arange(12.0).reshape(4, 3)
    frame = pd.DataFrame(X, columns=["a", "b", "t"]).sort_values("a", ascending=False)
    frame.to_parquet(tmp_path / "0.parquet")
    frame.set_index(pd.Index([5, 7, 9, 8], name="when")).to_parquet(tmp_path / "1.parquet")
    rows = slimsvm.open_rows(tmp_path, target="t")
    assert rows.names == ["a", "b"] and rows.n == 8
    chosen = slimsvm.open_rows(tmp_path / "1.parquet", target="t", features=["when", "a"])
    np.testing.assert_array_equal(chosen.take(np.arange(2)).X, [[5, 9], [7, 6]])


@pytest.mark.parametrize("kind", ["parquet", "frame"])
def test_a_column_is_one_thing(kind, tmp_path):
    source = pd.DataFrame(np.ones((4, 3)), columns=["a", "w", "t"])
    if kind == "parquet":
        source.to_parquet(tmp_path / "0.parquet")
        source = tmp_path / "0.parquet"
    with pytest.raises(ValueError, match="'t' is the target, and cannot be a feature, too"):
        slimsvm.open_rows(source, target="t", features=["a", "t"])
    with pytest.raises(ValueError, match="'w' is the weight, and cannot be a feature, too"):
        slimsvm.open_rows(source, target="t", weight="w", features=["w"])
    with pytest.raises(ValueError, match="'t' cannot be both the target and the weight"):
        slimsvm.open_rows(source, target="t", weight="t")
    assert slimsvm.open_rows(source, target="t", features="w").names == ["w"]


def test_batches_that_are_frames_have_names():
    X, y = np.arange(40.0).reshape(20, 2), np.arange(20) % 2
    frame = pd.DataFrame(X, columns=["a", "b"])
    cut = [(0, 8), (8, 20)]
    rows = slimsvm.open_rows([(frame[i:j], y[i:j]) for i, j in cut])
    model = slimsvm.SVC().fit(rows)
    assert rows.names == ["a", "b"] and model.feature_names_in_.tolist() == ["a", "b"]
    turned = [(frame[:8], y[:8]), (frame[["b", "a"]][8:], y[8:])]
    with pytest.raises(ValueError, match="Batch 1 has the column 'b' where the first one has 'a'"):
        slimsvm.open_rows(turned)
    assert slimsvm.open_rows([(X[i:j], y[i:j]) for i, j in cut]).names is None


def test_what_is_no_source_says_what_to_do(tmp_path, monkeypatch):
    X, y = np.ones((4, 2)), np.arange(4) % 2
    for name in ("x.h5", "x.npz", "x.json"):
        (tmp_path / name).write_bytes(b"\x89HDF")
        with pytest.raises(ValueError, match=r"files are not read\. Write a Parquet"):
            slimsvm.open_rows(tmp_path / name, target="t")
    for path in ("s3://bucket/x.parquet", "https://host/x.csv"):
        with pytest.raises(ValueError, match="is an address, and files of this computer are read"):
            slimsvm.open_rows(path, target="t")
    with pytest.raises(ValueError, match=r"open_rows\(X, target=y\)"):
        slimsvm.open_rows((X, y))
    with pytest.raises(ValueError, match="Rows cannot be read from dict"):
        slimsvm.open_rows({"X": X, "y": y})
    with pytest.raises(ValueError, match="The array has 3 dimensions"):
        slimsvm.open_rows(X[:, :, None], target=y)
    with pytest.raises(ValueError, match="The array has no columns"):
        slimsvm.open_rows(X[:, :0], target=y)
    (tmp_path / "bytes").write_bytes(b"\x00" * 5000)
    with pytest.raises(ValueError, match="is not LIBSVM text") as refused:
        slimsvm.open_rows(tmp_path / "bytes")
    assert len(str(refused.value)) < len(str(tmp_path)) + 300
    np.save(tmp_path / "x.npy", X)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert slimsvm.open_rows("~/x.npy", target=y).n == 4
    once = iter([(X, y)])
    rows = slimsvm.open_rows(lambda: once)  # the same iterator every time
    with pytest.raises(ValueError, match=r"There were 1 batches .*a new iterator of all batches"):
        slimsvm.SVC().fit(rows)
