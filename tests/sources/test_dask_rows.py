"""Rows of Dask: arrays, frames and delayed blocks, and what is wrong with them, said clearly."""

import os
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

import slimsvm
from slimsvm import SVC, LinearSVC, SparseSVC
from slimsvm.sources import partitions
from slimsvm.sources.dask_rows import from_dask

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
N, D, STEP = 3000, 4, 1000


def data():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N, D))
    return X, (X[:, 0] * X[:, 1] > 0).astype(int)


def lazy(values, chunks=STEP):
    return da.from_array(values, chunks=(chunks, *(-1,) * (values.ndim - 1)))


def frames():
    dd = pytest.importorskip("dask.dataframe")
    pd = pytest.importorskip("pandas")
    X, y = data()
    frame = pd.DataFrame(X, columns=list("pqrs")).assign(t=y, w=np.ones(N))
    return dd.from_pandas(frame, npartitions=3)


def test_arrays_frames_and_delayed_blocks_are_one():
    X, y = data()
    expected = LinearSVC().fit(slimsvm.open_rows(X, target=y, batch_rows=STEP)).coef_
    frame, blocks = (
        frames(),
        [
            dask.delayed((X[a : a + STEP], y[a : a + STEP]), traverse=False)
            for a in range(0, N, STEP)
        ],
    )
    model = LinearSVC().fit(frame[list("pqrs")], frame["t"], frame["w"])
    np.testing.assert_array_equal(model.coef_, expected)
    assert model.feature_names_in_.tolist() == list("pqrs")
    found = model.predict(frame[list("pqrs")])
    assert hasattr(found, "compute") and found.compute().size == N
    np.testing.assert_array_equal(LinearSVC().fit(blocks).coef_, expected)
    np.testing.assert_array_equal(LinearSVC().fit(lazy(X), y).coef_, expected)


def test_unknown_lengths_and_empty_partitions():
    X, y = data()
    some = X[:, 0] > -0.5
    some[STEP : 2 * STEP] = False  # nothing is left of the second partition
    far, target = lazy(X), lazy(y)
    keep = lazy(some)
    model = SVC().fit(far[keep], target[keep])
    here = SVC().fit(X[some], y[some])
    np.testing.assert_allclose(model.decision_function(X), here.decision_function(X), atol=0.02)
    assert np.isnan(far[keep].shape[0])
    with pytest.raises(ValueError, match=r"lengths of the partitions of X are not known"):
        SVC().fit(far[keep], y[some])
    with pytest.raises(ValueError, match="There are no rows in the 3 partitions"):
        SVC().fit(far[lazy(np.zeros(N, bool))], target[lazy(np.zeros(N, bool))])


def test_a_class_that_only_one_partition_has():
    X, y = data()
    y[2990:] = 7
    X[2990:] += 9.0
    model = SVC().fit(lazy(X), lazy(y))
    assert model.classes_.tolist() == [0, 1, 7] and (model.predict(X[2990:]) == 7).all()
    lone = SVC().fit(lazy(X), lazy(np.where(y == 7, 7, 0)))
    assert lone.classes_.tolist() == [0, 7]


def test_weights_that_are_cut_elsewhere():
    X, y = data()
    weight = np.random.default_rng(1).random(N)
    expected = LinearSVC().fit(lazy(X), lazy(y), lazy(weight)).coef_
    found = LinearSVC().fit(lazy(X), lazy(y), lazy(weight, 700)).coef_
    np.testing.assert_array_equal(found, expected)
    with pytest.raises(ValueError, match="sample_weight has 2999 entries, but X 3000 rows"):
        LinearSVC().fit(lazy(X), lazy(y), lazy(weight[1:]))
    frame = frames()
    with pytest.raises(ValueError, match="y has 2 partitions, but X has 3"):
        LinearSVC().fit(frame[list("pqrs")], frame["t"].repartition(npartitions=2))
    with pytest.raises(ValueError, match=r"(?i)partition"):  # as many, but cut elsewhere
        LinearSVC().fit(
            [dask.delayed(X[:10]), dask.delayed(X[10:])],
            [dask.delayed(y[:20]), dask.delayed(y[20:])],
        )


def test_delayed_frames_have_names():
    pd = pytest.importorskip("pandas")
    X, y = data()
    frame = pd.DataFrame(X, columns=list("pqrs"))
    first, last = slice(0, STEP), slice(STEP, N)
    blocks = [dask.delayed((frame[of], y[of])) for of in (first, last)]
    assert LinearSVC().fit(blocks).feature_names_in_.tolist() == list("pqrs")
    blocks[1] = dask.delayed((frame[list("qprs")][last], y[last]))
    with pytest.raises(ValueError, match="Partition 1 has the column 'q' where partition 0 has"):
        LinearSVC().fit(blocks)
    with pytest.raises(ValueError, match="partitions of X have no columns"):
        LinearSVC().fit(lazy(X[:, :0]), lazy(y))


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_missing_value_in_the_last_partition_is_named(value):
    X, y = data()
    X[2500, 3] = value
    with pytest.raises(ValueError, match=r"partition 2, row 500 .*column 3 is NaN or infinity"):
        SVC().fit(lazy(X), lazy(y))


def test_partitions_that_differ():
    X, y = data()
    blocks = [dask.delayed((X[a : a + 300], y[a : a + 300])) for a in range(0, N, 300)]
    blocks[9] = dask.delayed((X[2700:].astype(np.float32), y[2700:]))
    with pytest.raises(ValueError, match="Partition 9 has dtype"):
        LinearSVC().fit(blocks)
    blocks[9] = dask.delayed((X[2700:, :3], y[2700:]))
    with pytest.raises(ValueError, match="Partition 9 has width 3"):
        LinearSVC().fit(blocks)


def test_a_collection_that_changes_between_passes():
    calls = []

    def block(k):
        calls.append(k)
        rng = np.random.default_rng(len(calls))
        X = rng.standard_normal((STEP, D))
        return X, (X[:, 0] > 0).astype(int)

    model = SVC(C=3.0)
    for _ in range(2):
        with pytest.raises(ValueError, match=r"is not what it was in the first pass"):
            model.fit([dask.delayed(block, pure=False)(k) for k in range(3)])
    assert not hasattr(model, "support_")


def test_types_of_frames():
    pd = pytest.importorskip("pandas")
    X, y = data()
    expected = LinearSVC().fit(lazy(X), lazy(y)).coef_
    frame = pd.DataFrame(X, columns=list("pqrs")).assign(t=y, word=np.where(y, "b", "a"))

    def fitted(frame, target="t", features="pqrs"):
        parts = [frame[a : a + STEP] for a in range(0, N, STEP)]
        model = LinearSVC()
        try:
            blocks = [dask.delayed(of[list(features)]) for of in parts]
            return model.fit(blocks, [dask.delayed(of[target]) for of in parts])
        finally:
            assert hasattr(model, "coef_") == hasattr(model, "status_")

    for target in ("t", "word"):
        for given in (frame, frame.convert_dtypes(), frame.assign(word=pd.Categorical(frame.word))):
            np.testing.assert_array_equal(fitted(given, target).coef_, expected)
    assert fitted(frame.assign(p=frame.p > 0)).coef_.shape == (1, 4)
    for wrong in ("word", pd.Categorical(frame.word), pd.Timestamp("2020-01-01")):
        given = frame.assign(p=frame.word if isinstance(wrong, str) else wrong)
        with pytest.raises(ValueError, match=r"Partition \d: column 'p' is of type .*number"):
            fitted(given)
    given = frame.convert_dtypes()
    given.loc[2500, ["q"]] = pd.NA
    with pytest.raises(ValueError, match=r"partition 2, row 500 .*column 'q' is NaN"):
        fitted(given)
    for target in ("t", "word"):
        given = frame.convert_dtypes().astype({"word": object})
        given.loc[2500, [target]] = pd.NA
        with pytest.raises(ValueError, match=r"artition 2, row 500 .*the target is"):
            fitted(given, target)


def test_shapes_that_make_no_sense():
    X, y = data()
    with pytest.raises(ValueError, match="y has 2 columns; expected one"):
        LinearSVC().fit(lazy(X), lazy(np.column_stack([y, y])))
    model = LinearSVC().fit(dask.delayed((X, y)))  # one delayed block
    np.testing.assert_array_equal(model.coef_, LinearSVC().fit(lazy(X, N), lazy(y, N)).coef_)
    assert dask.compute(model.predict(dask.delayed(X)))[0].shape == (N,)
    with pytest.raises(ValueError, match="X has 1 dimension"):
        model.predict(lazy(y))
    blocks = [dask.delayed((X[:1000], y[:1000])), dask.delayed((sp.csr_array(X[1000:]), y[1000:]))]
    with pytest.raises(ValueError, match="Partition 1 has sparse True, but partition 0 False"):
        LinearSVC().fit(blocks)


def random_sums(block):
    return np.exp(3.0 * block.X).sum(axis=0), float(block.X[0, 0])


@pytest.mark.parametrize("groups", [[[0, 2, 4], [1, 3], [5, 7, 8, 9], [6]], [list(range(10))]])
def test_bits_do_not_depend_on_which_blocks_go_together(groups):
    X, y = data()
    expected = slimsvm.open_rows(X, target=y, batch_rows=300)
    blocks = [dask.delayed((X[a : a + 300], y[a : a + 300])) for a in range(0, N, 300)]
    rows = from_dask(blocks)
    rows._places._groups = groups
    for found, there in zip(rows.sum(random_sums), expected.sum(random_sums), strict=True):
        np.testing.assert_array_equal(found, there)
    assert [of[1] for of in rows.map(random_sums)] == X[::300, 0].tolist()
    which = np.array([2999, 0, 1500, 650, 1500])
    np.testing.assert_array_equal(rows.take(which).X, X[which])


def test_partitions_that_stay_are_compared_and_coded_once(monkeypatch):
    X, y = data()
    calls = {"compared": 0, "coded": 0}
    before = partitions.checksum

    def counting(*piece):
        calls["compared"] += 1
        return before(*piece)

    def coded(block):
        calls["coded"] += 1
        return 2.0 * block.y, np.ones(block.n)

    monkeypatch.setattr(partitions, "checksum", counting)
    piece = (X, y, None)
    about = partitions.About(0, 0, N, before(*piece))
    for held, times in ((True, 1), (False, 3)):
        calls |= {"compared": 0, "coded": 0}
        first = partitions.Before(f"a test, {held}", (coded,), held=held)
        sent = partitions.Sent(lambda block: block.y.sum(), (), first, 1)
        own = partitions.Own([0], [about], [()])
        found = [partitions.parts_of(sent, own, piece) for _ in range(3)]
        assert found == [[2 * y.sum()]] * 3
        assert calls == {"compared": times, "coded": times}
        other = (X.copy(), y, None)  # another object: compared again
        partitions.parts_of(sent, own, other)
        assert calls["compared"] == times + 1
        with pytest.raises(ValueError, match="is not what it was in the first pass"):
            partitions.parts_of(sent, own, (X + 1.0, y, None))


class Cluster:
    """A scheduler and workers as processes of their own, by the ``dask`` command."""

    def __init__(self, folder, workers=2):
        dask_command = [sys.executable, "-m", "dask"]
        environment = {**os.environ, "DASK_DISTRIBUTED__DASHBOARD__LINK": ""}
        file = str(folder / "scheduler.json")
        about = {"env": environment, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        begin = [*dask_command, "scheduler", "--port", "0", "--scheduler-file", file]
        own = [
            *dask_command,
            "worker",
            "--scheduler-file",
            file,
            "--nthreads",
            "1",
            "--local-directory",
            str(folder),
            "--no-dashboard",
        ]
        self.processes = [subprocess.Popen([*begin, "--no-dashboard"], **about)]
        self.processes += [subprocess.Popen(own, **about) for _ in range(workers)]
        self.file, self.workers = file, workers

    def __enter__(self):
        distributed = pytest.importorskip("distributed")
        self.client = distributed.Client(scheduler_file=self.file, timeout=60)
        self.client.wait_for_workers(self.workers, timeout=60)
        return self.client

    def __exit__(self, *error):
        self.client.close()
        for process in self.processes:
            process.terminate()
        for process in self.processes:
            process.wait(timeout=20)


@pytest.mark.long
def test_a_worker_that_is_killed_changes_nothing(tmp_path):
    pytest.importorskip("distributed")
    X, y = data()
    models = [SparseSVC(10, random_state=0), SVC(C=2.0)]
    rows = slimsvm.open_rows(X, target=y, batch_rows=STEP)
    expected = [model.fit(rows).decision_function(X) for model in models]
    with Cluster(tmp_path) as client:
        for k, (model, values) in enumerate(zip(models, expected, strict=True)):
            pid = sorted(client.run(os.getpid).values())[k % 2]
            killer = threading.Timer(0.15 * (k + 1), os.kill, (pid, signal.SIGKILL))
            killer.start()
            found = model.fit(lazy(X), lazy(y)).decision_function(X)
            killer.join()
            np.testing.assert_array_equal(found, values)
            client.wait_for_workers(2, timeout=60)


def test_a_fit_within_a_task_does_not_wait_for_its_own_thread():
    distributed = pytest.importorskip("distributed")
    X, y = data()
    expected = LinearSVC().fit(slimsvm.open_rows(X, target=y, batch_rows=STEP)).coef_
    few = {"n_workers": 1, "threads_per_worker": 1, "processes": False}
    with (
        distributed.LocalCluster(**few, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        fit = client.submit(lambda: LinearSVC().fit(lazy(X), lazy(y)).coef_)
        np.testing.assert_array_equal(fit.result(timeout=30), expected)


@pytest.mark.parametrize(
    "made",
    [
        slimsvm.CrossTraining(n_subsets=2, random_state=0),
        slimsvm.SVCCV([1.0], [0.1], cv=2),
        slimsvm.GridSearchCV(slimsvm.SVC(), {"C": [1.0, 2.0]}, cv=2),
    ],
    ids=lambda made: type(made).__name__,
)
def test_what_brings_rows_into_memory_says_so(made):
    X, y = data()
    with pytest.warns(UserWarning, match="memory of this process"):
        made.fit(lazy(X), y)
    expected = clone(made).fit(X, y)
    np.testing.assert_array_equal(made.predict(X), expected.predict(X))
