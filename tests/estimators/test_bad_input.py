"""What users get wrong, and what they are told."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from slimsvm import (
    SVC,
    SVR,
    CoreVectorSVC,
    CrammerSingerSVC,
    CrossTraining,
    LinearSVC,
    LowRankSVC,
    MultivariateSVC,
    NuSVC,
    NuSVR,
    OneClassSVM,
    OnlineSVC,
    ReducedSVC,
    SparseSVC,
    SparseSVR,
)

X = np.array([[0.0, 1.0], [1.0, 0.0], [2.0, 1.0], [3.0, 4.0]])
y = np.array([0, 1, 0, 1])
MACHINES = [SVC, NuSVC, SVR, NuSVR, OneClassSVM]


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize(
    ("rows", "match"),
    [
        (np.where(X == 1, np.nan, X), "NaN"),
        (np.where(X == 1, np.inf, X), "infinity"),
        (np.empty((0, 2)), "minimum of 1 is required|0 sample"),
        (np.empty((4, 0)), "0 feature"),
        (np.array([["a", "b"]] * 4), "could not convert|dtype|numeric"),
        (X[:, 0], "Expected 2D array"),
        (X[None], "dim 3|expected <= 2"),
    ],
    ids=["nan", "inf", "no rows", "no features", "text", "1d", "3d"],
)
def test_rows(machine, rows, match):
    with pytest.raises(ValueError, match=match):
        machine().fit(rows, y[: len(rows)] if rows.ndim else y)


@pytest.mark.parametrize("machine", MACHINES[:4])
def test_lengths(machine):
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        machine().fit(X, y[:3])


@pytest.mark.parametrize("machine", [SVC, NuSVC])
def test_one_class_only(machine):
    with pytest.raises(ValueError, match="class"):
        machine().fit(X, np.zeros(4))
    with pytest.raises(ValueError, match="positive weights belong to the same class: 1"):
        machine().fit(X, y, sample_weight=y)
    with pytest.raises(ValueError, match=r"Unknown label type|continuous"):
        machine().fit(X, y + 0.5)


@pytest.mark.parametrize("machine", MACHINES)
def test_parameters(machine):
    wrong = {
        "C": (-1.0, 0.0, "1", np.nan),
        "nu": (0.0, 1.5),
        "epsilon": (-0.1,),
        "gamma": (-1.0, "scales"),
        "kernel": ("rfb", 3),
        "degree": (-1, 2.5),
        "tol": (0.0, -1.0),
        "cache_size": (0, -5),
        "max_iter": (-2,),
        "max_time": (0, -1.0),
        "n_jobs": ("all",),
    }
    for name, values in wrong.items():
        if name in machine().get_params():
            for value in values:
                with pytest.raises(ValueError, match=name):
                    machine(**{name: value}).fit(X, y)


@pytest.mark.parametrize("machine", MACHINES)
def test_weights(machine):
    with pytest.raises(ValueError, match=r"(?i)zero|positive"):
        machine().fit(X, y, sample_weight=np.zeros(4))
    left_out = machine().fit(X, y, sample_weight=[1, -1, 1, 1])  # as in scikit-learn
    assert 1 not in left_out.support_
    with pytest.raises(ValueError, match="sample_weight"):
        machine().fit(X, y, sample_weight=[1, 1])


@pytest.mark.parametrize(
    "machine",
    [SVC, NuSVC, OnlineSVC, LinearSVC, LowRankSVC, ReducedSVC, SparseSVC, CrammerSingerSVC],
)
@pytest.mark.parametrize("factor", [-1.0, np.nan, np.inf])
def test_weights_of_classes(machine, factor):
    with pytest.raises(ValueError, match=f"class_weight of class 'b' is {factor:g}"):
        machine(class_weight={"a": 1.0, "b": factor}).fit(X, np.array(["a", "b"], object)[y])
    with pytest.raises(ValueError, match="fewer than two of the classes"):
        machine(class_weight={0: 0.0}).fit(X, y)


def test_a_variance_that_has_no_inverse():
    with pytest.raises(ValueError, match="variance of X"):
        SVC().fit(1e-160 * X, y)


def test_precomputed():
    with pytest.raises(ValueError, match="square"):
        SVC(kernel="precomputed").fit(X, y)
    with pytest.raises(TypeError, match="dense array"):
        SVC(kernel="precomputed").fit(sp.csr_matrix(X @ X.T), y)
    model = SVC(kernel="precomputed").fit(X @ X.T, y)
    with pytest.raises(ValueError, match="4"):
        model.predict(X)


def test_kernel_objects():
    from slimsvm.kernels import RBF

    assert SVC(kernel=RBF(0.5)).fit(X, y).kernel_.gamma == 0.5
    with pytest.raises(ValueError, match="beside"):
        SVC(kernel=RBF(0.5), gamma=2.0).fit(X, y)
    with pytest.raises(ValueError, match="shape"):
        SVC(kernel=lambda A, B: np.zeros(3)).fit(X, y)


@pytest.mark.parametrize("machine", MACHINES)
def test_prediction(machine):
    with pytest.raises(NotFittedError):
        machine().predict(X)
    model = machine().fit(X, y)
    with pytest.raises(ValueError, match="features"):
        model.predict(X[:, :1])
    with pytest.raises(ValueError, match="NaN"):
        model.predict(X * np.nan)


def test_nu_that_is_not_feasible():
    rng = np.random.default_rng(0)
    rows, labels = rng.standard_normal((50, 2)), np.array(["rare"] * 5 + ["common"] * 45)
    with pytest.warns(UserWarning, match=r"nu=0.5 is not feasible.*rare.*nu=0.2"):
        model = NuSVC(nu=0.5).fit(rows, labels)
    assert set(model.predict(rows)) <= {"rare", "common"}


def test_break_ties_with_pairs():
    three = np.array([0, 1, 2, 0])
    model = SVC(break_ties=True, decision_function_shape="ovo").fit(X, three)
    with pytest.raises(ValueError, match="break_ties must be False"):
        model.predict(X)


def test_more_nonzeros_than_32_bits_are_not_copied_to_32_bits():
    """Index arrays of 64 bits are accepted as they are; nothing is cast down."""
    matrix = sp.csr_matrix(X)
    matrix.indices, matrix.indptr = matrix.indices.astype(np.int64), matrix.indptr.astype(np.int64)
    assert SVC().fit(matrix, y).score(matrix, y) >= 0.5


@pytest.mark.parametrize(
    "kind",
    [
        SVC,
        NuSVC,
        SVR,
        NuSVR,
        OneClassSVM,
        SparseSVC,
        SparseSVR,
        LowRankSVC,
        OnlineSVC,
        CoreVectorSVC,
    ],
    ids=lambda kind: kind.__name__,
)
def test_kernel_values_that_are_not_finite(kind):
    X, y = np.random.default_rng(0).standard_normal((40, 3)), np.arange(40) % 2
    with pytest.raises(ValueError, match=r"not finite.*Scale the features"):
        kind(kernel=lambda A, B: A @ B.T * np.nan).fit(X, y)
    with pytest.raises(ValueError, match="not finite"), np.errstate(all="ignore"):
        kind(gamma=1.0).fit(X * 1e200, y)


@pytest.mark.parametrize(
    "kind", [SVC, SparseSVC, ReducedSVC, LowRankSVC], ids=lambda kind: kind.__name__
)
def test_sparse_values_whose_squares_are_not_finite(kind):
    X, y = sp.random(60, 3, density=0.6, format="csr", random_state=0) * 1e200, np.arange(60) % 2
    with (
        warnings.catch_warnings(),
        pytest.raises(ValueError, match=r"not finite.*Scale the features"),
    ):
        warnings.simplefilter("error", RuntimeWarning)
        kind().fit(X, y)


@pytest.mark.parametrize(
    "kind",
    [SVC, SparseSVC, LinearSVC, LowRankSVC, OnlineSVC, CoreVectorSVC],
    ids=lambda kind: kind.__name__,
)
@pytest.mark.parametrize("index", [-1, 3, 10**9])
def test_sparse_matrix_with_columns_that_are_not_there(kind, index):
    X = sp.random(60, 3, density=0.6, format="csr", random_state=0)
    X.indices[0] = index
    with pytest.raises(ValueError, match="sparse matrix X is broken"):
        kind().fit(X, np.arange(60) % 2)


def test_the_given_sparse_matrix_stays_as_it_was():
    X = sp.csr_matrix(
        (np.arange(1.0, 13), np.array([0, 0, 1] * 4), np.arange(0, 13, 3)), shape=(4, 3)
    )
    for kind in (SVC, SparseSVC, LinearSVC):
        kind().fit(X, [0, 1, 0, 1])
        assert X.nnz == 12


@pytest.mark.parametrize(
    "kind",
    [
        SVC,
        NuSVC,
        LinearSVC,
        LowRankSVC,
        ReducedSVC,
        SparseSVC,
        OnlineSVC,
        CoreVectorSVC,
        CrammerSingerSVC,
        MultivariateSVC,
        CrossTraining,
    ],
    ids=lambda kind: kind.__name__,
)
@pytest.mark.parametrize("odd", [3, None], ids=["number", "none"])
def test_words_beside_other_labels(kind, odd):
    with pytest.raises(
        ValueError, match=r"labels in y cannot be put in order.*only numbers or only strings"
    ):
        kind().fit(X, np.array([odd, "a"], object)[y])


def test_labels_of_a_stream_that_have_no_order():
    with pytest.raises(ValueError, match="labels in classes cannot be put in order"):
        OnlineSVC().partial_fit(X, y, classes=["a", None])
    with pytest.raises(ValueError, match="labels in y cannot be put in order"):
        OnlineSVC().partial_fit(X, np.array([3, "a"], object)[y], classes=["a", "b"])


def test_a_stream_that_begins_with_rows_of_weight_zero():
    """Rows of sample weight zero are not seen by gamma='scale'; class weights do not matter."""
    weight, begun = np.where(y == 0, 0.0, 1.0), OnlineSVC(random_state=0)
    with pytest.raises(ValueError, match="Sample weights must contain at least one non-zero"):
        begun.partial_fit(X, y, classes=[0, 1], sample_weight=0.0 * weight)
    begun.partial_fit(X, y, classes=[0, 1], sample_weight=weight)
    fresh = OnlineSVC(random_state=0).partial_fit(X[y == 1], y[y == 1], classes=[0, 1])
    assert begun.kernel_.gamma == pytest.approx(fresh.kernel_.gamma, rel=1e-12)
    of_classes = OnlineSVC(class_weight={0: 0.0, 1: 1.0, 2: 1.0}, random_state=0)
    of_classes.partial_fit(X[y == 0], y[y == 0], classes=[0, 1, 2])
    alone = OnlineSVC(random_state=0).partial_fit(X[y == 0], y[y == 0], classes=[0, 1, 2])
    assert of_classes.support_.size == 0 and of_classes.kernel_ == alone.kernel_
    rows, labels = np.vstack([X, X + 1.0]), np.concatenate([y, 2 * y])
    assert np.isfinite(of_classes.partial_fit(rows, labels).decision_function(X)).all()


@pytest.mark.parametrize("ball", ["minimum", "fixed"])
def test_a_tiny_C_of_a_ball(ball):
    """The square of 1 / C is beyond the largest float."""
    assert np.isfinite(CoreVectorSVC(ball=ball, C=1e-300).fit(X, y).decision_function(X)).all()


@pytest.mark.parametrize(
    "machine",
    [
        SVC(),
        SVR(),
        SparseSVC(2),
        SparseSVC(2, loss="hinge"),
        SparseSVR(2),
        LinearSVC(),
        LinearSVC(loss="hinge"),
        ReducedSVC(2),
        LowRankSVC(),
    ],
    ids=str,
)
def test_a_C_whose_squares_are_beyond_floats(machine):
    with pytest.raises(
        ValueError, match=r"C=1e\+300 times the largest weight, 1, is more than 1e\+100.*smaller C"
    ):
        clone(machine).set_params(C=1e300).fit(X, y)
    with pytest.raises(ValueError, match=r"C=1e\+99 times the largest weight, 100"):
        clone(machine).set_params(C=1e99).fit(X, y, sample_weight=np.full(len(X), 100.0))
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = clone(machine).set_params(C=1e100, max_iter=100).fit(X, y)
    assert np.isfinite(model.predict(X)).all()


@pytest.mark.parametrize("machine", [OneClassSVM(), NuSVC(nu=0.1)], ids=str)
def test_weights_whose_squares_are_beyond_floats(machine):
    with pytest.raises(ValueError, match=r"The largest weight, 1e\+300, is more than 1e\+100"):
        clone(machine).fit(X, y, sample_weight=np.full(len(X), 1e300))


def test_products_with_C_that_are_zero_and_values_beyond_all_numbers():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        tiny = SparseSVR(3, C=1e-300, random_state=0)
        tiny.fit(X, X[:, 0], sample_weight=np.full(len(X), 1e-50))
        model = ReducedSVC(gamma=1e300, random_state=0).fit(X, y)
    assert np.isfinite(tiny.predict(X)).all() and np.isfinite(model.decision_function(X)).all()


@pytest.mark.parametrize("machine", [SVR, NuSVR, SparseSVR])
def test_words_as_targets_of_a_regression(machine):
    with pytest.raises(
        ValueError, match=r"y must be numbers, but holds str_ such as 'a'.*classifier"
    ):
        machine().fit(X, np.array(["a", "b"])[y])


@pytest.mark.parametrize("machine", [SVR, NuSVR, SparseSVR])
def test_targets_beyond_the_squares_of_floats(machine):
    with pytest.raises(ValueError, match=r"y has values as large as 4e\+300.*Scale the targets"):
        machine(max_iter=1000).fit(X, 1e300 * X[:, 1])
    assert np.isfinite(machine().fit(X, 1e100 * X[:, 1]).predict(X)).all()


@pytest.mark.parametrize("limit", [-1.0, 0, "long", np.nan])
def test_a_limit_of_certify(limit):
    model = SparseSVC(2, random_state=0).fit(X, y)
    with pytest.raises(ValueError, match=r"'max_time' parameter of SparseSVC.certify must be"):
        model.certify(X, y, max_time=limit)
