"""Models in onnxruntime: the same scores, and the same labels."""

import json
import warnings

import numpy as np
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_iris
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, PolynomialFeatures, RobustScaler, StandardScaler

import slimsvm
from slimsvm.export.description import described
from slimsvm.export.onnx_file import size_of
from tests.export.models import SET_UPS, classes, exact_outputs, fitted, largest_value, scores_of

onnx = pytest.importorskip("onnx")
runtime = pytest.importorskip("onnxruntime")


def answers(model, X, dtype="float64"):
    """All outputs by name."""
    session = runtime.InferenceSession(model.SerializeToString())
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(None, {"X": X.astype(dtype)}), strict=True))


@pytest.mark.parametrize("name", SET_UPS)
@pytest.mark.parametrize(("dtype", "digits"), [("float64", 1e-12), ("float32", 1e-5)])
def test_scores_and_labels_are_those_of_the_model(name, dtype, digits):
    estimator, X = fitted(name)
    X = X.astype(dtype).astype(float)
    outputs, d = exact_outputs(estimator, X), described(estimator)
    size = d.total * largest_value(d, X)
    made = slimsvm.to_onnx(estimator, dtype=dtype, raw_scores=d.answer != "number")
    found = answers(made, X, dtype)
    if d.answer == "number":
        assert found["prediction"].shape == (len(X),) and found["prediction"].dtype == dtype
        assert np.abs(found["prediction"] - outputs[:, 0]).max() <= digits * size
        return
    errors = np.abs(found["raw_scores"] - outputs)
    assert errors.shape == (len(X), d.n_outputs) and errors.max() <= digits * size
    expected = (
        estimator.decision_function(X) if d.answer == "sign" else scores_of(estimator, outputs)
    )
    assert found["scores"].shape == expected.shape and found["scores"].dtype == dtype
    # a vote is a step: rows whose values are zero within the error are not compared
    sure = (np.abs(outputs) > errors.max()).all(axis=1) | (dtype == "float64")
    # the scores of a class are sums over its pairs
    n_terms = d.n_classes if d.pairwise and not d.by_pair else 1
    assert np.abs(found["scores"] - expected)[sure].max() <= digits * size * n_terms
    assert np.array_equal(found["label"][sure], estimator._predicted(outputs)[sure])
    assert sure.mean() > 0.8


@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "poly", "sigmoid"])
def test_a_model_of_float32_rows_is_as_exact_in_float64(kernel):
    """Numbers of the graph are products of its vectors, which must not be rounded on the way."""
    X, y = classes(2, 16)
    gamma = 1 / 30  # has no end in binary
    model = slimsvm.SVC(kernel=kernel, gamma=gamma, coef0=0.1).fit(X.astype(np.float32), y)
    X = X.astype(np.float32).astype(float)
    d = described(model)
    found = answers(slimsvm.to_onnx(model, dtype="float64", raw_scores=True), X)
    errors = np.abs(found["raw_scores"] - exact_outputs(model, X))
    assert errors.max() <= 1e-12 * d.total * largest_value(d, X)


def test_votes_that_are_equal_and_pairs_at_zero_go_as_in_predict():
    """Few rows and symmetric ones: ties in votes, and pairs whose value is exactly zero."""
    X = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0], [1.0, 0.0]])
    new = np.array([[0.0, 0.0], [0.5, 0.5], [-0.5, 0.5], [1.0, 1.0], [3.0, 0.0], [0.1, -0.1]])
    for ties in (False, True):
        model = slimsvm.SVC(kernel="linear", break_ties=ties).fit(X, [0, 1, 2, 3, 4])
        found = answers(slimsvm.to_onnx(model), new)
        assert np.array_equal(found["label"], model.predict(new))
        assert np.allclose(found["scores"], model.decision_function(new), atol=1e-14)


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        (["cold", "hot", "mild"], "cold"),
        ([3, -7, 12], -7),
        ([1.0, 2.0, 5.0], 1),
        (np.array(["a", "b", "c"], object), "a"),
    ],
)
def test_labels_are_integers_or_strings(labels, expected):
    X, y = classes(3, 16)
    model = slimsvm.SVC().fit(X, np.asarray(labels)[y])
    found = answers(slimsvm.to_onnx(model), X)["label"]
    assert np.array_equal(found, model.predict(X))
    assert min(found.tolist()) == expected and type(min(found.tolist())) is type(expected)


def test_labels_that_int64_does_not_hold_are_strings():
    X, y = classes(3, 16)
    model = slimsvm.SVC().fit(X, np.array([2**63 + 1, 2**63 + 2, 5], np.uint64)[y])
    found = answers(slimsvm.to_onnx(model), X)["label"]
    assert found.tolist() == [str(label) for label in model.predict(X).tolist()]


@pytest.mark.parametrize("n_classes", [2, 3, 6])
@pytest.mark.parametrize(
    "make",
    [
        lambda: slimsvm.SVC(probability=True),
        lambda: slimsvm.SparseSVC(15, random_state=0),
        lambda: slimsvm.SVCCV(Cs=[1.0, 10.0], gammas=[0.01, 0.1]),
        lambda: CalibratedClassifierCV(slimsvm.SVC(), ensemble=False),
        lambda: CalibratedClassifierCV(slimsvm.LinearSVC(), cv=2),
        lambda: CalibratedClassifierCV(slimsvm.SVC(), method="temperature", ensemble=False),
    ],
)
def test_probabilities(make, n_classes):
    X, y = classes(n_classes, 16)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = make().fit(X, 10 * y + 7)
        found = answers(slimsvm.to_onnx(model), X)
        # 1e-9: coupled pairs are a linear system, which both solve in their own order
        tolerance = 1e-6 if isinstance(model, slimsvm.SparseSVC) else 1e-9
        assert np.abs(found["probabilities"] - model.predict_proba(X)).max() < tolerance
        assert np.array_equal(found["label"], model.predict(X))
    without = slimsvm.to_onnx(model, probabilities=False)
    assert "probabilities" not in [output.name for output in without.graph.output]


def test_scalers_of_a_pipeline_are_part_of_the_model():
    X, y = classes(6, 16)
    X = 1e3 + X * np.arange(1, 17)
    for steps in (
        [StandardScaler()],
        [MinMaxScaler((-1, 1)), RobustScaler()],
        [StandardScaler(with_mean=False)],
    ):
        for last in (slimsvm.SVC(), slimsvm.LinearSVC(), slimsvm.SparseSVC(10, random_state=0)):
            model = make_pipeline(*steps, last).fit(X, y)
            found = answers(slimsvm.to_onnx(model), X)
            assert np.array_equal(found["label"], model.predict(X))
    with pytest.raises(ValueError, match="'polynomialfeatures' before the model is Polynomial"):
        slimsvm.to_onnx(make_pipeline(PolynomialFeatures(), slimsvm.SVC()).fit(X, y))


def test_a_quantized_model_and_a_search():
    model, X = fitted("sparse metric")
    small = model.quantized("int8")
    found = answers(slimsvm.to_onnx(small), X, "float32")
    assert np.mean(found["label"] == small.predict(X)) == 1.0
    X, y = classes(2, 16)
    search = slimsvm.GridSearchCV(slimsvm.SVC(), {"C": [1.0, 10.0]}, cv=2).fit(X, y)
    assert np.array_equal(answers(slimsvm.to_onnx(search), X)["label"], search.predict(X))


def test_the_file_says_what_it_is(tmp_path):
    model, X = fitted("binary rbf 36")
    path = tmp_path / "model.onnx"
    made = slimsvm.to_onnx(model, path)
    onnx.checker.check_model(made, full_check=True)
    again = onnx.load(path)
    assert {node.domain for node in again.graph.node} == {""}
    said = {entry.key: entry.value for entry in again.metadata_props}
    assert said["estimator"] == "SVC" and said["slimsvm_version"] == slimsvm.__version__
    assert json.loads(said["parameters"])["C"] == 10.0
    assert json.loads(said["certificate"])["scope"] == model.certificate_.scope
    assert np.array_equal(answers(again, X)["label"], model.predict(X))


def test_one_row_and_none():
    model, X = fitted("six rbf")
    made = slimsvm.to_onnx(model)
    assert answers(made, X[:1])["label"] == model.predict(X[:1])
    assert answers(made, X[:0])["scores"].shape == (0, 6)


# -- what is refused -------------------------------------------------------------------------------


def test_what_has_no_export_is_refused_in_one_sentence(tmp_path):
    X, y = classes(2, 16)
    path = tmp_path / "model.onnx"
    refused = {
        "is a Python function": slimsvm.SVC(kernel=lambda a, b: a @ b.T).fit(X, y),
        "is precomputed": slimsvm.SVC(kernel="precomputed").fit(X @ X.T, y),
        "got StandardScaler": StandardScaler().fit(X),
    }
    for words, estimator in refused.items():
        with pytest.raises(ValueError, match=words):
            slimsvm.to_onnx(estimator, path)
    with pytest.raises(NotFittedError):
        slimsvm.to_onnx(slimsvm.SVC(), path)
    model = fitted("binary rbf 36")[0]
    for dtype in ("float16", "int8", "nonsense"):
        with pytest.raises(ValueError, match=f"dtype='{dtype}' is none of 'float64', 'float32'"):
            slimsvm.to_onnx(model, path, dtype=dtype)
    with pytest.raises(ValueError, match="has no probabilities"):
        slimsvm.to_onnx(model, path, probabilities=True)
    with pytest.raises(IsADirectoryError, match="is a folder"):
        slimsvm.to_onnx(model, tmp_path)
    assert not list(tmp_path.iterdir())


# -- skl2onnx --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "last",
    [
        slimsvm.SVC(),
        slimsvm.SparseSVC(10, random_state=0),
        slimsvm.LinearSVC(),
        CalibratedClassifierCV(slimsvm.SVC(), ensemble=False),
        slimsvm.SVCCV(Cs=[1.0, 10.0], gammas=[0.01, 0.1]),
    ],
)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_pipelines_in_skl2onnx(last, n_classes):
    skl2onnx = pytest.importorskip("skl2onnx")
    slimsvm.onnx.register()
    slimsvm.onnx.register()  # again is no harm
    X, y = classes(n_classes, 16)
    columns = ColumnTransformer(
        [("a", StandardScaler(), [0, 1, 2]), ("b", PCA(4), [5, 6, 7, 8, 9])]
    )
    model = make_pipeline(columns, last).fit(X, y)
    made = skl2onnx.to_onnx(model, X[:1], options={"zipmap": False})
    label, scores = runtime.InferenceSession(made.SerializeToString()).run(None, {"X": X})
    assert np.array_equal(label, model.predict(X))
    probable = hasattr(model, "predict_proba")
    expected = model.predict_proba(X) if probable else model.decision_function(X)
    if expected.ndim == 1:
        expected = np.column_stack([-expected, expected])
    assert np.abs(scores - expected).max() < 1e-6


def test_regression_and_outliers_in_skl2onnx():
    skl2onnx = pytest.importorskip("skl2onnx")
    slimsvm.onnx.register()
    X, y = classes(2, 16)
    for last in (slimsvm.SVR(), slimsvm.LinearSVR(), slimsvm.OneClassSVM(nu=0.2)):
        model = make_pipeline(StandardScaler(), last).fit(X, y)
        made = skl2onnx.to_onnx(model, X[:1])
        first = runtime.InferenceSession(made.SerializeToString()).run(None, {"X": X})[0]
        assert first.shape == (len(X), 1)
        assert np.abs(first[:, 0] - model.predict(X)).max() < 1e-12


def test_the_file_is_the_message(tmp_path):
    """Written piece by piece, it is what Protocol Buffers reads back as the same model."""
    X, y = load_iris(return_X_y=True)
    for estimator in (slimsvm.SVC(), slimsvm.SVC(kernel="laplacian"), slimsvm.LinearSVC()):
        model = slimsvm.to_onnx(estimator.fit(X, y), tmp_path / "model.onnx")
        written = (tmp_path / "model.onnx").read_bytes()
        assert onnx.load_model_from_string(written) == model
        assert size_of(model) == len(written)


def test_numbers_beyond_float32_are_refused(tmp_path):
    """They became infinite, with a warning of NumPy, and the graph answered NaN."""
    X, y = classes(2, 16)
    weights = slimsvm.LinearSVR().fit(X, y)
    weights.coef_ = weights.coef_ * 0 + 1e39
    vectors = slimsvm.SVR().fit(X, np.arange(len(X)))
    vectors.dual_coef_ = 1e45 * vectors.dual_coef_
    for model in (weights, vectors):
        with pytest.raises(ValueError, match="numbers beyond float32"):
            slimsvm.to_onnx(model, tmp_path / "m.onnx", dtype="float32")
        slimsvm.to_onnx(model, dtype="float64")
    assert not list(tmp_path.iterdir())
