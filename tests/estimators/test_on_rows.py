"""Estimators on rows that are not in memory: the models of rows in memory, and equal bits."""

from itertools import pairwise

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import slimsvm
from slimsvm import (
    SVC,
    SVR,
    CrammerSingerSVC,
    LinearSVC,
    LinearSVR,
    NuSVC,
    ReducedSVC,
    SparseSVC,
    SparseSVR,
    StructuralSVM,
    open_rows,
)
from slimsvm.oracles import Multiclass
from slimsvm.problems.mapped_rows import centre_at, look_at
from slimsvm.rows import BlockedRows

N, D = 3600, 4
EDGES = (0, 1500, 3000, N)


def data():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N, D))
    value = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.3 * rng.standard_normal(N)
    weight = rng.integers(0, 3, N).astype(float)
    return X, {"two": value > 0, "three": np.digitize(value, [-1, 1]), "number": value}, weight


CASES = {
    "descent": (SparseSVC(15, random_state=0), "two", 1e-6),
    "softmax": (SparseSVC(15, random_state=0), "three", 1e-6),
    "regression": (SparseSVR(15, random_state=0), "number", 1e-5),
    "poly": (SparseSVC(8, kernel="poly", coef0=1.0, random_state=0), "two", 1e-5),
    "kmeans": (SparseSVC(8, basis="kmeans", refine=False, random_state=0), "two", 1e-4),
    "hinge": (SparseSVC(8, loss="hinge", random_state=0, tol=1e-4), "three", 0.05),
    "tube": (SparseSVR(8, loss="epsilon_insensitive", random_state=0, tol=1e-4), "number", 0.05),
    "linear": (LinearSVC(class_weight="balanced", tol=1e-9), "three", 1e-4),
    "linear-hinge": (LinearSVC(loss="hinge", tol=1e-5), "two", 0.02),
    "linear-regression": (LinearSVR(loss="squared_epsilon_insensitive"), "number", 1e-6),
    "joint": (CrammerSingerSVC(kernel="linear", tol=1e-3), "three", 0.05),
    "sampled": (CrammerSingerSVC(tol=0.1, random_state=0), "three", 1e-4),
    "structural": (
        StructuralSVM(Multiclass(), space="sampled", tol=0.1, random_state=0),
        "three",
        1e-4,
    ),
    "reduced": (ReducedSVC(20, random_state=0), "three", None),
    "exact": (SVC(C=2.0), "two", 2e-3),
    "exact-three": (SVC(C=2.0, class_weight={0: 2.0, 1: 1.0, 2: 1.0}), "three", 2e-3),
    "exact-linear": (SVC(kernel="linear", tol=1e-5), "two", 1e-3),
    "exact-float64": (SVC(C=300.0, gamma=0.05), "two", 2e-3),
    "exact-regression": (SVR(C=2.0), "number", 2e-3),
}
WEIGHTED = ("descent", "linear", "exact", "exact-regression")


def outputs(model, X):
    return getattr(model, "decision_function", model.predict)(X)


def chunked(values):
    da = pytest.importorskip("dask.array")
    return da.from_array(values, chunks=((1500, 1500, 600), *((-1,) * (values.ndim - 1))))


@pytest.mark.parametrize("case", CASES)
def test_the_same_model_and_equal_bits(case):
    estimator, kind, near = CASES[case]
    X, targets, weight = data()
    y, weight = targets[kind], weight if case in WEIGHTED else None
    model = estimator.fit(open_rows(X, target=y, weight=weight, batch_rows=1500))
    found, score = outputs(model, X), model.score(X, y)
    about = model.certificate_
    on_dask = estimator.fit(chunked(X), chunked(y), None if weight is None else chunked(weight))
    np.testing.assert_array_equal(outputs(on_dask, X), found)
    here = estimator.fit(X, y, weight)
    if near is not None:
        expected = outputs(here, X)
        np.testing.assert_allclose(found, expected, atol=near * np.abs(expected).max())
    assert score == pytest.approx(here.score(X, y), abs=0.02 if near else 0.1)
    if case != "reduced":
        exact = case.startswith("exact")
        of_memory = here.certificate_.objective
        assert about.objective == pytest.approx(of_memory, rel=1e-5 if exact else 2e-3)
        assert about.holds or not exact


@pytest.mark.parametrize("model", [SparseSVC(10, random_state=0), SVC()])
def test_predictions_are_lazy_on_dask_and_stream_from_rows(model):
    X, targets, _ = data()
    model.fit(X, targets["three"])
    rows, lazy = open_rows(X, target=targets["three"], batch_rows=1500), chunked(X)
    names = ("predict", "decision_function", "predict_proba")
    for name in names if isinstance(model, SparseSVC) else names[:2]:
        expected = getattr(model, name)(X)
        np.testing.assert_allclose(getattr(model, name)(rows), expected, atol=1e-6)
        found = getattr(model, name)(lazy)
        assert found.chunks[0] == lazy.chunks[0] and found.dtype == expected.dtype
        np.testing.assert_allclose(found.compute(), expected, atol=1e-6)
    expected = model.score(X, targets["three"])
    assert model.score(rows) == pytest.approx(expected)
    assert model.score(lazy, chunked(targets["three"])) == pytest.approx(expected)
    with pytest.raises(ValueError, match="X has 3 features"):
        model.predict(lazy[:, :3])
    with pytest.raises(ValueError, match="X has 3 features"):
        model.predict(open_rows(X[:, :3]))


def test_a_class_that_only_one_block_has_and_labels_of_weight_zero():
    X, targets, _ = data()
    y = np.where(targets["two"], "b", "a").astype(object)
    y[3500:3540], weight = "rare", np.ones(N)
    y[:50], weight[:50] = "unused", 0.0
    model = SparseSVC(10, random_state=0).fit(open_rows(X, target=y, weight=weight, batch_rows=900))
    assert model.classes_.tolist() == ["a", "b", "rare"]
    here = SparseSVC(10, random_state=0).fit(X, y, weight)
    np.testing.assert_allclose(outputs(model, X), outputs(here, X), atol=1e-4)


def test_a_descent_on_a_sample_says_so():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((30_000, 4)).astype(np.float32)
    y = X[:, 0] * X[:, 1] > 0
    rows = open_rows(X, target=y, batch_rows=8192)
    model = SparseSVC(20, max_memory=1.0, random_state=0).fit(rows)
    assert "found on 10,000 of 30,000 rows" in str(model.status_)
    assert model.score(rows) > 0.95
    auto = SparseSVC("auto", max_basis=20, random_state=0).fit(rows)
    assert auto.path_[-1].validation_score is not None and auto.score(rows) > 0.9


def test_few_rows_are_those_of_memory():
    X, targets, _ = data()
    rows = open_rows(X[:800], target=targets["two"][:800], batch_rows=100)
    model, here = SparseSVC(10, random_state=0).fit(rows), SparseSVC(10, random_state=0)
    here.fit(X[:800], targets["two"][:800])
    np.testing.assert_array_equal(outputs(model, X), outputs(here, X))


def test_names_of_features_go_with_the_model(tmp_path):
    pd = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    X, targets, _ = data()
    frame = pd.DataFrame(X, columns=list("pqrs")).assign(t=targets["two"])
    frame.to_parquet(tmp_path / "x.parquet")
    model = LinearSVC().fit(open_rows(tmp_path / "x.parquet", target="t"))
    assert model.feature_names_in_.tolist() == list("pqrs")
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(open_rows(tmp_path / "x.parquet", features=list("qprs")))
    slimsvm.save(model, tmp_path / "x.slim")
    assert slimsvm.load(tmp_path / "x.slim").feature_names_in_.tolist() == list("pqrs")


def written(tmp_path, X, y):
    """The same rows as Parquet, in two files, and as a memory map."""
    pd = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    np.save(tmp_path / "x.npy", X)
    frame = pd.DataFrame(X, columns=list("pqrs")).assign(t=y)
    for k, part in enumerate((frame[:2000], frame[2000:])):
        part.to_parquet(tmp_path / f"{k}.parquet", row_group_size=700)
    return open_rows(tmp_path / "*.parquet", target="t", batch_rows=1500), open_rows(
        np.load(tmp_path / "x.npy", mmap_mode="r"), target=y, batch_rows=1500
    )


@pytest.mark.parametrize("name", ["classes", "numbers"])
def test_exact_models_of_files_have_equal_bits(name, tmp_path):
    X, targets, _ = data()
    X, y = X.astype(np.float32), targets["three" if name == "classes" else "number"]
    model = SVC() if name == "classes" else SVR()
    found = [
        outputs(model.fit(rows), X)
        for rows in (open_rows(X, target=y, batch_rows=1500), *written(tmp_path, X, y))
    ]
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])
    slimsvm.save(model, tmp_path / "x.slim")
    saved = slimsvm.load(tmp_path / "x.slim")
    np.testing.assert_array_equal(outputs(saved, X), found[0])


def test_exact_models_are_those_of_the_rows_that_they_name():
    """support_ has numbers of rows; sparse rows give sparse support vectors."""
    sp = pytest.importorskip("scipy.sparse")
    X, targets, weight = data()
    X[np.abs(X) < 0.8] = 0.0
    S, y = sp.csr_matrix(X), targets["three"]
    rows = open_rows([(S[a:b], y[a:b], weight[a:b]) for a, b in pairwise(EDGES)])
    model, here = SVC().fit(rows), SVC().fit(S, y, weight)
    assert sp.issparse(model.support_vectors_) and sp.issparse(model.dual_coef_)
    assert (model.support_vectors_ != S[model.support_]).nnz == 0
    assert model.shape_fit_ == here.shape_fit_
    np.testing.assert_allclose(outputs(model, S), outputs(here, S), atol=5e-3)


def test_exact_fits_on_rows_keep_time_limits_and_say_so():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40_000, 6)).astype(np.float32)
    y = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.4 * rng.standard_normal(40_000) > 0
    rows = open_rows(X, target=y, batch_rows=8192)
    with pytest.warns(ConvergenceWarning, match="had not been looked at yet"):
        model = SVC(C=2.0, max_time=0.05).fit(rows)
    assert model.score(rows) > 0.75 and not model.certificate_.holds


@pytest.mark.parametrize(
    "model", [SVC(probability=True), SVC(warm_start=True), SVR(warm_start=True), NuSVC()]
)
def test_what_exact_fits_on_rows_refuse(model):
    X, targets, _ = data()
    y = targets["number" if isinstance(model, SVR) else "two"]
    with pytest.raises(ValueError, match="needs all rows in memory"):
        model.fit(open_rows(X, target=y, batch_rows=1500))


def test_no_pass_is_made_twice(monkeypatch):
    X, targets, _ = data()
    rows, passes = open_rows(X, target=targets["two"], batch_rows=1000), []
    before = BlockedRows.sum

    def counting(self, task, *state):
        if task in (centre_at, look_at):
            trail, intercept = state[-2:]
            passes.append((task.__name__, trail.serial, len(trail.moves), intercept.tobytes()))
        return before(self, task, *state)

    monkeypatch.setattr(BlockedRows, "sum", counting)
    SparseSVC(10, random_state=0).fit(rows)
    assert len(passes) > 2 and len(set(passes)) == len(passes)
