"""Checkpoints: a model at any moment, and a fit that goes on as if nothing had happened."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import slimsvm
import slimsvm.estimators.dual as dual
from slimsvm import Checkpoint, keeping
from slimsvm.checkpoint import Stages
from slimsvm.datasets import checkers
from slimsvm.persistence import native
from slimsvm.search.sharing import Sharing
from slimsvm.snapshots import Frozen

EXACT = {
    "SVC": slimsvm.SVC(gamma=20.0, random_state=0),
    "NuSVC": slimsvm.NuSVC(nu=0.3, gamma=20.0, random_state=0),
    "SVR": slimsvm.SVR(gamma=20.0, epsilon=0.01),
    "NuSVR": slimsvm.NuSVR(gamma=20.0),
    "OneClassSVM": slimsvm.OneClassSVM(nu=0.3, gamma=20.0),
}
OTHERS = {
    "SparseSVC": slimsvm.SparseSVC(10),
    "SparseSVR": slimsvm.SparseSVR(10),
    "LinearSVC": slimsvm.LinearSVC(),
    "LinearSVC-hinge": slimsvm.LinearSVC(loss="hinge", random_state=0),
    "LinearSVC-l1": slimsvm.LinearSVC(penalty="l1", dual=False, random_state=0),
    "LinearSVR": slimsvm.LinearSVR(random_state=0),
    "ReducedSVC": slimsvm.ReducedSVC(10, random_state=0),
    "CoreVectorSVC": slimsvm.CoreVectorSVC(gamma=20.0, random_state=0),
    "SparseSVC-pursuit": slimsvm.SparseSVC(5, gamma=20.0, basis="pursuit", loss="squared_hinge"),
    "SparseSVC-hinge": slimsvm.SparseSVC(6, gamma=20.0, loss="hinge", tol=0.05),
    "CrammerSingerSVC": slimsvm.CrammerSingerSVC(gamma=20.0, space="kernel"),
    "CrammerSingerSVC-linear": slimsvm.CrammerSingerSVC(kernel="linear"),
    "CrammerSingerSVC-sampled": slimsvm.CrammerSingerSVC(
        gamma=20.0, sample_size=50, tol=0.02, space="sampled"
    ),
    "CrammerSingerSVC-subspace": slimsvm.CrammerSingerSVC(gamma=20.0, space="subspace", n_basis=8),
}
# no state that can be kept of a path of sizes with Newton's method
BEGIN_ANEW = ("SparseSVC-pursuit",)


class Killed(BaseException):
    """Not an Exception: nothing but a process that dies looks like this."""


@pytest.fixture
def killed_after(monkeypatch):
    """A function that lets a fit die after so many steps, and the number of those done."""
    usual, done, most = keeping.Keeper.stepped, [0], [10**9]

    def stepped(self, *given):
        usual(self, *given)
        done[0] += 1
        if done[0] >= most[0]:
            raise Killed

    def set_most(steps):
        done[0], most[0] = 0, steps

    monkeypatch.setattr(keeping.Keeper, "stepped", stepped)
    return set_most, done


def rows(name, n=800):
    X, y = checkers(n, seed=0)
    return X, X[:, 0] + y if "SVR" in name else y


def values(model, X):
    return getattr(model, "decision_function", model.predict)(X)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", [*EXACT, *OTHERS])
def test_a_fit_goes_on(name, tmp_path, killed_after, monkeypatch):
    monkeypatch.setattr(dual, "FIRST", 200)
    set_most, done = killed_after
    path, (X, y) = (
        tmp_path / "kept.slim",
        rows(name, 500 if name in EXACT else 60 if "Crammer" in name else 200),
    )
    estimator = {**EXACT, **OTHERS}[name]
    if "SVC" in name:  # three classes: pairs that have ended, one that has not, one that waits
        y = y + (X[:, 0] > 0.6) if name in EXACT else y
    seeded = "random_state" in estimator.get_params()
    estimator = clone(estimator).set_params(**({"random_state": 3} if seeded else {}))
    whole = clone(estimator).set_callbacks(Checkpoint(path, every=1e9)).fit(X, y)
    total = done[0]
    path.unlink()
    for share in (0.3, 0.8):
        set_most(max(1, int(share * total)))
        with pytest.raises(Killed):
            clone(estimator).set_callbacks(Checkpoint(path, every=1e-9)).fit(X, y)
        set_most(10**9)
        now = slimsvm.load(path)  # a model at any moment
        assert np.isfinite(values(now, X[:50])).all() and not now.certificate_.holds
        again = clone(estimator).set_callbacks(Checkpoint(path, every=1e9)).fit(X, y)
        # the tolerance of the exact ones is 1e-3; the others do the same steps
        slack = 0.05 if name in EXACT else 1e-3 if "subspace" in name else 1e-9
        assert np.abs(values(again, X) - values(whole, X)).max() <= slack
        # a fit that goes on has lost what its cache had learned: exact ones may take other steps
        most = total if name in EXACT else total - int(share * total) + 1
        assert done[0] <= most or name in BEGIN_ANEW
        assert np.array_equal(values(slimsvm.load(path), X), values(again, X))
        path.unlink()


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", ["SVC", "SVR", "SparseSVC"])
def test_a_fit_on_rows_goes_on(name, tmp_path, killed_after):
    set_most, done = killed_after
    path, (X, y) = tmp_path / "kept.slim", rows(name, 2600)
    estimator = clone({**EXACT, **OTHERS}[name])
    if name == "SVC":
        y = y + (X[:, 0] > 0.8)
    seeded = "random_state" in estimator.get_params()
    estimator.set_params(**({"random_state": 3} if seeded else {}))

    def fitted(every):
        far = slimsvm.open_rows(X, target=y, batch_rows=1000)
        return clone(estimator).set_callbacks(Checkpoint(path, every=every)).fit(far)

    whole, total = fitted(1e9), done[0]  # of steps
    path.unlink()
    set_most(max(1, int(0.7 * total)))
    with pytest.raises(Killed):
        fitted(1e-9)
    set_most(10**9)
    now = slimsvm.load(path)
    assert np.isfinite(values(now, X[:50])).all() and not now.certificate_.holds
    again = fitted(1e9)
    assert np.abs(values(again, X) - values(whole, X)).max() <= (0.05 if name in EXACT else 1e-9)
    assert done[0] < total
    y[0] = y[1]
    X[0] += 1.0
    with pytest.warns(UserWarning, match="rows, targets or weights are others"):
        fitted(1e9)


def test_a_finished_fit_is_not_done_again(tmp_path, killed_after):
    set_most, done = killed_after
    X, y = rows("SVC")
    model = slimsvm.SVC().set_callbacks(Checkpoint(tmp_path / "kept.slim"))
    model.fit(X, y)
    set_most(10**9)
    before = model.dual_coef_
    assert np.array_equal(model.fit(X, y).dual_coef_, before) and done[0] == 0


def test_a_fit_that_ended_at_a_limit_goes_on(tmp_path, monkeypatch):
    monkeypatch.setattr(dual, "FIRST", 200)
    X, y = rows("SVC", 1500)
    path = tmp_path / "kept.slim"
    model = slimsvm.SVC(C=100.0, gamma=20.0, max_time=1e-3).set_callbacks(Checkpoint(path))
    with pytest.warns(match="max_time"):
        model.fit(X, y)
    assert model.set_params(max_time=None).fit(X, y).status_.converged


def test_draws_without_a_seed_are_the_same_when_it_goes_on(tmp_path, killed_after):
    set_most, _ = killed_after
    path, (X, y) = tmp_path / "kept.slim", rows("SparseSVC", 300)
    set_most(1)
    model = slimsvm.SparseSVC(5, random_state=None)
    with pytest.raises(Killed):
        model.set_callbacks(Checkpoint(path, every=1e-9)).fit(X, y)
    set_most(10**9)
    model.fit(X, y)
    assert model.random_state is None and slimsvm.load(path).n_basis == 5


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"C": 2.0}, "made with C=1.0, not 2.0"),
        ({"gamma": 3.0}, "gamma"),
        ("rows", "rows, targets or weights"),
        ("classes", "classes"),
    ],
)
def test_why_not(change, words, tmp_path):
    X, y = rows("SVC")
    model = slimsvm.SVC().set_callbacks(Checkpoint(tmp_path / "kept.slim")).fit(X, y)
    if change == "rows":
        X = X + 1.0
    elif change == "classes":
        y = np.where(y > 0, "b", "a")
    else:
        model.set_params(**change)
    with pytest.warns(UserWarning, match=words):
        model.fit(X, y)
    assert np.array_equal(slimsvm.load(tmp_path / "kept.slim").predict(X), model.predict(X))


@pytest.mark.parametrize("every", [0, -1.0, np.inf, np.nan, "60", True, None])
def test_bad_seconds(every):
    with pytest.raises(ValueError, match="every must be a positive number of seconds"):
        Checkpoint("kept.slim", every=every)


def test_bad_paths(tmp_path):
    X, y = rows("SVC", 100)
    with pytest.raises(ValueError, match="name of a file"):
        Checkpoint(3)

    def refused(path, words):
        model = slimsvm.SVC().set_callbacks(Checkpoint(path))
        with pytest.raises(ValueError, match=words):
            model.fit(X, y)
        assert not hasattr(model, "dual_coef_")

    refused(tmp_path, "is a folder")
    refused(tmp_path / "no" / "kept.slim", "does not exist")
    other = tmp_path / "other.slim"
    slimsvm.SVR().set_callbacks(Checkpoint(other)).fit(X, X[:, 0])
    plain, broken = tmp_path / "plain.slim", tmp_path / "broken.slim"
    slimsvm.save(slimsvm.SVC().fit(X, y), plain)
    broken.write_bytes(other.read_bytes()[:500])
    for path, words in (
        (other, "checkpoint of SVR, not of SVC"),
        (plain, "no checkpoint"),
        (broken, "left as it is"),
    ):
        before = path.read_bytes()
        refused(path, words)
        assert path.read_bytes() == before


def test_one_checkpoint_for_several_fits_at_once_but_not_two_for_one(tmp_path, monkeypatch):
    X, y = rows("SVC", 300)
    assert Checkpoint("kept.slim", every=np.int64(2)).every == 2.0
    kept, begun, found = Checkpoint(tmp_path / "kept.slim"), threading.Barrier(2), []
    concluded = slimsvm.SVC._concluded

    def waits(model, data, solved, fit):
        begun.wait(20)  # both have begun, and none has ended
        return concluded(model, data, solved, fit)

    monkeypatch.setattr(slimsvm.SVC, "_concluded", waits)

    def fit(C):
        model = slimsvm.SVC(C=C, gamma=20.0).set_callbacks(kept)
        found.append(model.fit(X, y).status_.converged)

    threads = [threading.Thread(target=fit, args=(C,)) for C in (1.0, 2.0)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert found == [True, True] and not kept._fits
    two = slimsvm.SVC().set_callbacks(kept, Checkpoint(tmp_path / "other.slim"))
    with pytest.raises(ValueError, match=r"one Checkpoint at most; got 2 \(.*other.slim\)"):
        two.fit(X, y)


def test_a_kernel_that_no_file_can_hold(tmp_path):
    model = slimsvm.SVC(kernel=lambda A, B: A @ B.T)
    with pytest.raises(ValueError, match="cannot keep this SVC"):
        model.set_callbacks(Checkpoint(tmp_path / "kept.slim")).fit(*rows("SVC", 50))


def test_what_cannot_be_kept_is_said():
    with pytest.raises(TypeError, match="cannot be kept"):
        Frozen([lambda: None])
    with pytest.raises(ValueError, match="no class of slimsvm"):
        Frozen.of({"object": "os:system", "fields": {}}, []).thawed()


def test_shared_parts_stay_shared():
    array = np.arange(3.0)
    rng = np.random.default_rng(5)
    one, two, again = Frozen([array, array, rng]).thawed()
    assert one is two and one is not array and again.random() == np.random.default_rng(5).random()


SEARCHES = {
    "SVC": (slimsvm.SVC(), {"C": [0.1, 1.0, 10.0], "gamma": [1.0, 10.0]}),
    "pipeline": (
        make_pipeline(StandardScaler(), slimsvm.SVC()),
        {"svc__C": [0.1, 1.0, 10.0], "svc__gamma": [1.0, 10.0]},
    ),
    "SVR": (slimsvm.SVR(), {"C": [0.1, 1.0], "epsilon": [0.1, 0.2, 0.3]}),
    "NuSVC": (slimsvm.NuSVC(), {"nu": [0.1, 0.2, 0.3], "gamma": [1.0, 10.0]}),
    "LinearSVC": (slimsvm.LinearSVC(), {"C": [0.1, 1.0, 10.0], "loss": ["hinge", "squared_hinge"]}),
}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", SEARCHES)
def test_a_search_goes_on(name, tmp_path, monkeypatch):
    (estimator, grid), path = SEARCHES[name], tmp_path / "kept.npz"
    X, y = rows(name, 200)
    y = y if name == "SVR" else np.where(y > 0, "b", "a").astype(object)
    usual, done, most = Sharing._record, [0], [10**9]

    def record(self, *given):
        usual(self, *given)
        done[0] += 1
        if done[0] >= most[0]:
            raise Killed

    monkeypatch.setattr(Sharing, "_record", record)
    search = slimsvm.GridSearchCV(estimator, grid, cv=3).set_callbacks(Checkpoint(path, 1e-9))
    alone = slimsvm.GridSearchCV(estimator, grid, cv=3).fit(X, y)
    whole = alone.cv_results_["mean_test_score"]
    assert done[0] == 18
    done[0], most[0] = 0, 7
    with pytest.raises(Killed):
        search.fit(X, y)
    done[0], most[0] = 0, 10**9
    again = search.fit(X, y).cv_results_["mean_test_score"]
    assert done[0] == 18 - 7 and search.shared_.n_shared == 18
    np.testing.assert_allclose(again, whole, atol=0.02)
    done[0] = 0
    np.testing.assert_array_equal(search.fit(X, y).cv_results_["mean_test_score"], again)
    assert done[0] == 0
    with pytest.warns(UserWarning, match="not gone on from: rows are others"):
        search.fit(X[1:], y[1:])
    model = slimsvm.SVC().set_callbacks(Checkpoint(path))
    with pytest.raises(ValueError, match="no checkpoint to go on from"):
        model.fit(X, X[:, 0] > 0)


CHOOSING = {
    "SVCCV": slimsvm.SVCCV(Cs=[0.1, 1.0, 10.0], gammas=[1.0, 10.0], cv=3),
    "SVRCV": slimsvm.SVRCV(Cs=[0.1, 1.0], gammas=[1.0, 10.0], epsilons=[0.1], cv=3),
    "SparseSVCCV": slimsvm.SparseSVCCV(5, Cs=[0.1, 1.0], gammas=[1.0, 10.0, 20.0], cv=3),
}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", CHOOSING)
def test_a_fit_that_chooses_its_parameters_goes_on(name, tmp_path, monkeypatch):
    path, (X, y) = tmp_path / "kept.npz", rows(name, 200)
    usual, done, most = Stages.keep_search, [0], [10**9]

    def keep(self, facts, known, end=False):
        usual(self, facts, known, end)
        done[0] += not end
        if done[0] >= most[0]:
            raise Killed

    monkeypatch.setattr(Stages, "keep_search", keep)
    expected = clone(CHOOSING[name]).fit(X, y)
    model = clone(CHOOSING[name]).set_callbacks(Checkpoint(path, 1e-9))
    most[0] = 2
    with pytest.raises(Killed):
        model.fit(X, y)
    assert not hasattr(model, "best_params_")
    done[0], most[0] = 0, 10**9
    again = model.fit(X, y)
    first = done[0]
    assert again.best_params_ == expected.best_params_
    np.testing.assert_allclose(again.scores_, expected.scores_, atol=0.02)
    np.testing.assert_allclose(again.predict(X), expected.predict(X), atol=1e-6)
    assert os.listdir(tmp_path) == ["kept.npz"]  # that of the last fit is gone
    done[0] = 0
    model.fit(X, y)
    assert (first, done[0]) == (CHOSEN[name] - 2, 0)
    with pytest.warns(UserWarning, match="not gone on from: rows are others"):
        model.fit(X[1:], y[1:])
    with pytest.raises(ValueError, match="one Checkpoint and no other callbacks"):
        model.set_callbacks(Checkpoint(path), Checkpoint(path)).fit(X, y)


CHOSEN = {"SVCCV": 18, "SVRCV": 12, "SparseSVCCV": 3}  # entries of the book

PROGRAM = """
import sys
import numpy as np, slimsvm
rng = np.random.default_rng(0)
X = rng.standard_normal((30000, 10))
y = np.sign(np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.4 * rng.standard_normal(len(X)))
model = slimsvm.SVC(C=100.0, gamma=0.2).set_callbacks(slimsvm.Checkpoint(sys.argv[1], every=0.2))
print("begins", flush=True)
model.fit(X, y)
"""


def test_kill_9(tmp_path):
    """A process that is killed, twice: the file is whole, and each one has fewer rows left."""
    path = tmp_path / "kept.slim"
    source = str(Path(slimsvm.__file__).parents[1])
    environment = {**os.environ, "PYTHONPATH": source, "OPENBLAS_NUM_THREADS": "1"}
    left = []
    for _ in range(2):
        before = path.stat().st_mtime_ns if path.exists() else 0
        with subprocess.Popen(
            [sys.executable, "-W", "ignore", "-c", PROGRAM, str(path)], env=environment
        ) as process:
            end = time.monotonic() + 60.0
            while time.monotonic() < end and process.poll() is None:
                if path.exists() and path.stat().st_mtime_ns != before:
                    break
                time.sleep(0.02)
            process.send_signal(signal.SIGKILL)
        model = slimsvm.load(path)
        assert np.isfinite(model.decision_function(np.zeros((1, 10)))).all()
        left.append(model.n_support_.sum())
    assert left[1] >= left[0] > 0
    assert [name for name in os.listdir(tmp_path) if not name.endswith(".tmp")] == ["kept.slim"]


OTHER_PROGRAM = """
import sys
import slimsvm
from slimsvm.persistence import native
X, y = slimsvm.datasets.checkers(1500, seed=0)
models = {"search": slimsvm.SVCCV(),
          "hinge": slimsvm.SparseSVC(40, gamma=20.0, loss="hinge", random_state=0)}
model = models[sys.argv[2]].set_callbacks(slimsvm.Checkpoint(sys.argv[1], every=0.05))
model.fit(X, y)
print("done", repr(model.decision_function(X[:50]).tolist()), flush=True)
"""


@pytest.mark.long
@pytest.mark.parametrize("kind", ["search", "hinge"])
def test_kill_9_of_other_fits(kind, tmp_path):
    """Killed at several moments, a fit ends with the model of one that was not."""
    source = str(Path(slimsvm.__file__).parents[1])
    environment = {**os.environ, "PYTHONPATH": source, "OPENBLAS_NUM_THREADS": "1"}
    path = tmp_path / "kept"

    def begun(at):
        words = [sys.executable, "-W", "ignore", "-c", OTHER_PROGRAM, str(at), kind]
        return subprocess.Popen(words, env=environment, stdout=subprocess.PIPE, text=True)

    with begun(tmp_path / "whole") as process:
        expected = process.stdout.read()
    for _ in range(3):
        before = path.stat().st_mtime_ns if path.exists() else 0
        with begun(path) as process:
            end = time.monotonic() + 60.0
            while time.monotonic() < end and process.poll() is None:
                if path.exists() and path.stat().st_mtime_ns != before:
                    break
                time.sleep(0.01)
            process.send_signal(signal.SIGKILL)
    with begun(path) as process:
        found = process.stdout.read()
    values = [np.array(eval(text.removeprefix("done "))) for text in (expected, found)]
    np.testing.assert_allclose(values[1], values[0], atol=1e-6)


@pytest.mark.parametrize("about", [[1], "kept", 3, None, {"parameters": 7}, {"parameters": [1]}])
def test_facts_of_a_fit_that_are_none(tmp_path, monkeypatch, about):
    """What somebody wrote who knows the format: a clear error, whatever its type."""
    X, y = np.random.default_rng(0).standard_normal((30, 2)), np.arange(30) % 2
    path = tmp_path / "kept.slim"
    model = slimsvm.SVC(random_state=0).set_callbacks(slimsvm.Checkpoint(path, every=1e-9))
    model.fit(X, y)
    read = native.read_checkpoint
    monkeypatch.setattr(native, "read_checkpoint", lambda path: (read(path)[0], about, {}))
    with pytest.raises(ValueError, match="makes no sense"):
        model.fit(X, y)
