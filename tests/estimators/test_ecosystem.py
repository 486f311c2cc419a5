"""The models among other tools: searches, calibration, pickles, data frames, forks, and many fits
in a row.
"""

import os
import pickle
import subprocess
import sys

import joblib
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from slimsvm import SVC, SVR, NuSVC, NuSVR, OneClassSVM


@pytest.fixture(scope="module")
def cancer():
    """A real binary problem."""
    X, y = load_breast_cancer(return_X_y=True)
    return StandardScaler().fit_transform(X), y


@pytest.mark.parametrize("backend", ["loky", "threading"])
def test_grid_search(cancer, backend):
    search = GridSearchCV(
        SVC(n_jobs=2), {"C": [0.1, 1.0], "gamma": ["scale", 0.01]}, cv=3, n_jobs=2
    )
    with joblib.parallel_backend(backend):
        search.fit(*cancer)
    assert search.best_score_ > 0.95


def test_calibration(cancer):
    X, y = cancer
    model = CalibratedClassifierCV(SVC(), ensemble=False).fit(X, y)
    chance = model.predict_proba(X)
    assert chance.shape == (len(y), 2) and np.mean((chance[:, 1] > 0.5) == y) > 0.95


@pytest.mark.parametrize("machine", [SVC, NuSVC, SVR, NuSVR, OneClassSVM])
def test_pickle_clone_joblib(cancer, machine, tmp_path):
    X, y = cancer
    model = machine(kernel="poly", degree=2).fit(X, y)
    values = model.predict(X)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict(X), values)
    joblib.dump(model, tmp_path / "model")
    np.testing.assert_array_equal(joblib.load(tmp_path / "model").predict(X), values)
    assert clone(model).get_params() == model.get_params()
    assert not hasattr(clone(model), "support_")


def test_data_frames(cancer):
    pandas = pytest.importorskip("pandas")
    X, y = load_iris(return_X_y=True, as_frame=True)
    model = SVC().fit(X, y)
    assert list(model.feature_names_in_) == list(X.columns)
    assert model.score(X, y) > 0.9
    with pytest.raises(ValueError, match="feature names"):
        model.predict(X[X.columns[::-1]])
    labels = pandas.Series(np.where(y == 0, "setosa", "other"))
    assert set(SVC().fit(X, labels).predict(X)) == {"setosa", "other"}


def test_pipeline_and_string_labels(cancer):
    X, y = cancer
    names = np.array(["bad", "good"])[y]
    model = make_pipeline(StandardScaler(), SVC()).fit(X, names)
    assert model.score(X, names) > 0.95
    assert list(model[-1].classes_) == ["bad", "good"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_fork_after_fits():
    code = """
import os, numpy as np, multiprocessing as mp
from slimsvm import SVC
rng = np.random.default_rng(0)
X = rng.standard_normal((1500, 5)); y = (X[:, 0] > 0).astype(int)
reference = SVC(n_jobs=2).fit(X, y).dual_coef_
def child(_):
    return SVC(n_jobs=2).fit(X, y).dual_coef_
with mp.get_context("fork").Pool(2) as pool:
    print(all(np.array_equal(reference, other) for other in pool.map(child, range(2))))
"""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.stdout.strip() == "True", done.stderr


def test_many_fits_do_not_grow():
    """A thousand fits: resident memory after the last as after the first hundred."""
    status = "/proc/self/status"
    if not os.path.exists(status):
        pytest.skip("needs /proc")
    code = """
import numpy as np
from slimsvm import SVC
def resident():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS"))
rng = np.random.default_rng(0)
X = rng.standard_normal((60, 3)); y = (X[:, 0] > 0).astype(int)
for k in range(1000):
    SVC(n_jobs=2).fit(X, y).predict(X)
    if k == 100:
        before = resident()
print(resident() - before)
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=300, check=True
    )
    assert int(done.stdout) < 10_000  # kilobytes


def test_read_only_installation_warns_once_and_works(tmp_path):
    """No cache folder can be written: one warning, and everything works."""
    code = """
import warnings
from unittest import mock
import numba.core.caching as caching
def nowhere(self, *args, **kwargs):
    raise RuntimeError("cannot cache function: no locator available")
patch = mock.patch.object(caching.CacheImpl, "__init__", nowhere)
with patch, warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    from slimsvm import LinearSVC  # few loops to compile
    print(LinearSVC().fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1]).predict([[5.0]])[0])
print(sum("NUMBA_CACHE_DIR" in str(w.message) for w in caught))
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.stdout.split() == ["1", "1"], done.stderr
