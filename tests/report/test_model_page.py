"""The page of a fitted model: every kind of model, what it says of the data, and what it
refuses.
"""

import re

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_digits
from sklearn.metrics import accuracy_score, confusion_matrix
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from slimsvm import (
    SVC,
    SVR,
    ChainSVM,
    CrammerSingerSVC,
    CrossTraining,
    LinearSVC,
    LowRankSVC,
    OneClassSVM,
    ReducedSVC,
    SparseSVC,
    SparseSVR,
    compress,
)
from slimsvm.datasets import checkers
from slimsvm.persistence import load_libsvm, save_libsvm
from slimsvm.report import model_page
from slimsvm.report.model import picture_shape
from tests.report.test_page import NASTY, check


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return X / 16, y


@pytest.fixture(scope="module")
def sparse_digits(digits):
    X, y = digits
    return SparseSVC(12, C=10, gamma=0.5, refine=False, random_state=0).fit(X[:400], y[:400])


def test_a_sparse_machine(digits, sparse_digits):
    X, y = (part[400:900] for part in digits)
    page, data = check(
        model_page(sparse_digits, X, y, name="digits.slim", facts={"bytes": 4096, "format": "slim"})
    )
    assert {"12", "digits.slim", "one row alone", "a row in a batch"} <= set(page.texts)
    assert "4.0 kB as a file" in page.text
    assert "microseconds a row" in page.text and "microseconds for one row alone" in page.text
    assert str(sparse_digits.status_) in page.text
    (comparison,) = data["comparisons"]
    series = {}
    for model in comparison["models"]:
        series.setdefault(model["method"], []).append(model)
    assert list(series) == ["half of the data", "the other half", "the training rows"]
    for models in series.values():
        assert [model["vectors"] for model in models] == [p.n_basis for p in sparse_digits.path_]
    # no row both chooses the size and says how good it is: together the halves are the data
    for one, other in zip(series["half of the data"], series["the other half"], strict=True):
        whole = 100 * accuracy_score(y, sparse_digits.truncated(one["vectors"]).predict(X))
        assert (one["score"] + other["score"]) / 2 == pytest.approx(whole)
    assert comparison["scored"] == "the other half"
    assert {
        name for name, models in series.items() if any(model["counts"] for model in models)
    } == {"half of the data"}
    counts = confusion_matrix(y, sparse_digits.predict(X))
    assert f"({np.trace(counts)} of 500)" in page.text
    assert len(page.all("img")) == 12
    assert sparse_digits.n_jobs is None  # as it was


def test_held_out_rows_choose_the_size(digits):
    """Where the training held rows out, these choose, and all of the data scores."""
    X, y = digits
    model = SparseSVC(
        12, C=10, gamma=0.5, refine=False, validation_fraction=0.2, random_state=0
    ).fit(X[:400], y[:400])
    (comparison,) = check(model_page(model, X[400:600], y[400:600]))[1]["comparisons"]
    chosen = [m for m in comparison["models"] if m["counts"]]
    assert {m["method"] for m in chosen} == {"rows held out at training"}
    assert [m["score"] for m in chosen] == [100 * p.validation_score for p in model.path_]
    assert comparison["scored"] == "the data"
    last = next(m for m in comparison["models"] if (m["method"], m["vectors"]) == ("the data", 12))
    assert last["score"] == pytest.approx(100 * model.score(X[400:600], y[400:600]))


def test_a_pipeline_is_tried_in_the_units_of_its_rows(rows):
    X, y = rows
    pipeline = make_pipeline(StandardScaler(), SVC(gamma=20)).fit(1000 * X, y)
    page, data = check(model_page(pipeline, 1000 * X, y))
    assert f"({np.sum(pipeline.predict(1000 * X) == y)} of 200)" in page.text
    assert [f["high"] for f in data["trying"]["features"]] == list((1000 * X).max(axis=0))


def test_what_cannot_be_tried_says_why(rows):
    X, y = rows
    model = SVC(kernel=lambda A, B: A @ B.T).fit(X, y)
    page, data = check(model_page(model))
    assert data["trying"] is None and "The kernel is a Python function" in page.text


def test_the_confusion_matrix_is_that_of_scikit_learn(digits, sparse_digits):
    X, y = (part[400:900] for part in digits)
    html = model_page(sparse_digits, X, y)
    matrix = html[html.index('<table class="matrix">') :].split("</table>")[0]
    rows = [
        [int(cell.split("<")[0]) for cell in row.split('">')[1:]]
        for row in matrix.split('<th scope="row"')[1:]
    ]
    np.testing.assert_array_equal(rows, confusion_matrix(y, sparse_digits.predict(X)))


def test_curves_are_those_of_the_history(digits):
    X, y = digits
    model = SVC(C=10, gamma=0.5).fit(X[:200], y[:200] > 4)
    _, data = check(model_page(model))
    by_label = {chart["y"]["label"]: chart for chart in data["charts"]}
    assert data["comparisons"] == [] and set(by_label) <= {"objective", "gap", "violation"}
    for name, chart in by_label.items():
        drawn = [(point["x"], point["y"]) for point in chart["series"][0]["points"]]
        pairs = zip(model.history_["seconds"].tolist(), model.history_[name].tolist(), strict=True)
        assert drawn == [
            pair for pair in pairs if np.isfinite(pair[1]) and (name == "objective" or pair[1] > 0)
        ]


@pytest.fixture(scope="module")
def rows():
    X, y = checkers(200, seed=1)
    return X, y


@pytest.mark.parametrize(
    "machine",
    [
        SVC(gamma=20, C=10),
        LinearSVC(),
        OneClassSVM(nu=0.2),
        ReducedSVC(n_basis=10, solver="least_squares", random_state=0),
        CrossTraining(SVC(gamma=20), n_subsets=3, random_state=0),
        CrammerSingerSVC(kernel="linear"),
        SVC(kernel="precomputed"),
    ],
    ids=lambda machine: type(machine).__name__,
)
def test_every_kind_of_classifier(machine, rows):
    X, y = rows
    if machine.get_params().get("kernel") == "precomputed":
        X = X @ X.T
    machine.fit(X, y)
    page, _ = check(model_page(machine, X, y))
    right = int(np.sum(machine.predict(X) == y))
    assert f"({right} of 200)" in page.text and not page.all("img")
    check(model_page(machine))


def test_sequences(rows):
    X, _ = rows
    labels = [np.arange(20) % 2 for _ in range(10)]
    model = ChainSVM(kernel="linear").fit(list(X.reshape(10, 20, 2)), labels)
    page, _ = check(model_page(model))
    assert page.text.count("ChainSVM: ") == 1 and "microseconds a row" in page.text
    with pytest.raises(ValueError, match="ChainSVM labels sequences"):
        model_page(model, list(X.reshape(10, 20, 2)), labels)


@pytest.mark.parametrize(
    "machine", [SVR(), SparseSVR(5, refine=False, random_state=0)], ids=["SVR", "SparseSVR"]
)
def test_regression(machine, rows):
    X, _ = rows
    y = X[:, 0] ** 2
    machine.fit(X, y)
    page, data = check(model_page(machine, X, y))
    assert f"{np.sqrt(np.mean((machine.predict(X) - y) ** 2)):.4g}" in page.texts
    scatter = next(chart for chart in data["charts"] if chart["x"]["label"] == "target")
    assert len(scatter["series"][0]["points"]) == 200 and not scatter["series"][0]["line"]
    for comparison in data["comparisons"]:
        assert (
            comparison["models"][-1]["method"] == "the training rows"
            and "R²" in comparison["measure"]
        )


def test_names_of_classes_are_text(rows):
    X, y = rows
    names = np.array([NASTY, "it's <i>"])[(y > 0).astype(int)]
    model = SVC(gamma=20).fit(X, names)
    page, _ = check(model_page(model, X, names, name=NASTY))
    assert NASTY in page.texts and "it's <i>" in page.texts and not page.all("i")


def test_labels_that_the_model_does_not_know(rows):
    X, y = rows
    model = SVC(gamma=20).fit(X, y)
    other = np.where(np.arange(200) < 7, 5, y)
    page, _ = check(model_page(model, X, other))
    assert "5" in page.texts and "7" in page.texts


def test_many_classes_are_listed(digits):
    X, _ = digits
    y = np.arange(300) % 60
    page, _ = check(model_page(SVC(kernel="linear").fit(X[:300], y), X[:300], y[::-1]))
    assert (
        "matrix" not in [attributes.get("class") for attributes in page.all("table")]
        and "The most frequent confusions" in page.texts
    )


def test_outliers_without_labels(rows):
    X, _ = rows
    model = OneClassSVM(nu=0.3).fit(X)
    page, _ = check(model_page(model, X))
    assert f"{np.sum(model.predict(X) == -1)} of 200" in page.texts
    assert "no labels" in check(model_page(SVC().fit(X, X[:, 0] > 0), X))[0].text


def test_a_model_of_another_program(rows, tmp_path):
    X, y = rows
    save_libsvm(SVC(gamma=20).fit(X, y), tmp_path / "m.libsvm")
    page, data = check(model_page(load_libsvm(tmp_path / "m.libsvm"), X, y))
    assert (
        "does not hold the steps of the training" in page.text
        and "does not say how far from its optimum it is" in page.text
        and data["charts"] == []
    )


def test_pictures_of_sparse_support_vectors(digits):
    X, y = digits
    model = SVC(gamma=0.5).fit(sp.csr_matrix(X[:300]), y[:300])
    page, _ = check(model_page(model, image_shape=(4, 16)))
    assert len(page.all("img")) == min(100, len(model.support_)) and "support vectors" in page.text
    page, _ = check(model_page(LinearSVC().fit(X[:300], y[:300])))
    assert not page.all("img")


def test_what_a_picture_is():
    assert picture_shape(784) == (28, 28) and picture_shape(64) == (8, 8)
    assert (
        picture_shape(16) is None and picture_shape(65) is None
    )  # four features a side are hardly a picture
    assert picture_shape(16, (4, 4)) == (4, 4)
    with pytest.raises(ValueError, match=r"3 x 5 have 15 values, but the model has 16 features"):
        picture_shape(16, (3, 5))


def test_text_and_numbers_cannot_be_compared(rows):
    X, y = rows
    for model in (
        SVC().fit(X, y),
        SparseSVC(3, refine=False, random_state=0).fit(X, y),
        SVR().fit(X, y),
    ):
        with pytest.raises(
            ValueError, match="labels of the data are text, those of the model numbers"
        ):
            model_page(model, X, y.astype(str))
    with pytest.raises(ValueError, match="labels of the data are numbers, those of the model text"):
        model_page(SVC().fit(X, y.astype(str)), X, y)


def test_numbers_that_are_no_classes(rows):
    X, y = rows
    for model in (SVC().fit(X, y), SparseSVC(3, refine=False, random_state=0).fit(X, y)):
        with pytest.raises(
            ValueError,
            match=r"labels such as 0.25, which are no classes: "
            r"the model tells the classes .* apart.*regression",
        ):
            model_page(model, X, np.full(len(y), 0.25))
    assert "R²" in model_page(SVR().fit(X, y), X, np.full(len(y), 0.25) * y)


@pytest.mark.parametrize(
    "machine", [SVC(), SVR(), OneClassSVM(), CrammerSingerSVC(), LowRankSVC(), SVC(kernel=np.inner)]
)
def test_a_small_model_is_advised_where_it_can_be_had(machine, rows):
    """The page said so of OneClassSVM and others, too, which compress does not take."""
    X, y = rows
    page, _ = check(model_page(machine.fit(X[:60], y[:60])))
    found = re.search(r"slimsvm.compress\(model, n_basis=(\d+)\).* (\w+) trains", page.text)
    assert bool(found) == (machine.kernel == "rbf" and isinstance(machine, SVC | SVR))
    if found:
        small = compress(machine, n_basis=int(found[1]))
        assert type(small).__name__ == found[2]
        assert 0 < small.n_basis_ < len(machine.support_vectors_)


def test_what_may_be_lost_is_what_is_measured(rows, sparse_digits, digits):
    X, _ = rows
    model = SparseSVR(5, refine=False, random_state=0).fit(X, X[:, 0] ** 2)
    assert "R² I may lose" in check(model_page(model, X, X[:, 0] ** 2))[0].text
    assert "Accuracy I may lose" in check(model_page(sparse_digits, *digits))[0].text
