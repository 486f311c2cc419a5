"""Rows of files, arrays and batches: what was written is read, and what is wrong is named."""

import bz2
import gzip

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import dump_svmlight_file
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, PolynomialFeatures, StandardScaler

import slimsvm
from slimsvm import open_rows
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
            assert rows.bytes_to_read == PAGES * D
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
