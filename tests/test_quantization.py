"""Models in fewer bytes."""

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.svm
from sklearn.datasets import load_digits

import slimsvm
from slimsvm import SVC, SparseSVC, SparseSVR, compress
from slimsvm.datasets import checkers
from slimsvm.quantization import FORMS, Packed, packed


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return X, y, SparseSVC(50, random_state=0).fit(X[:1000], y[:1000])


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("centred", [False, True])
def test_rounding_errors_are_those_of_the_form(form, centred):
    values = np.random.default_rng(0).normal(3.0, 1.0, (20, 5)) * np.logspace(-3, 3, 20)[:, None]
    found = packed(values, form, centred=centred and form == "int8")
    error = np.abs(found.unpacked() - values) / np.abs(values).max(axis=1, keepdims=True)
    if centred and form == "int8":  # the rows have one centre
        error = np.abs(found.unpacked() - values) / np.abs(values - found.centre).max(1)[:, None]
    assert error.max() <= {"float32": 2**-24, "float16": 2**-11, "int8": 0.51 / 127}[form]
    found.check()


@pytest.mark.parametrize("form", FORMS)
def test_a_model_in_fewer_bytes(form, digits, tmp_path):
    X, y, model = digits
    small = model.quantized(form, X[1000:], y[1000:])
    assert small.score(X[1000:], y[1000:]) > model.score(X[1000:], y[1000:]) - 0.01
    share = {"float32": 1.0, "float16": 0.5, "int8": 0.31}[form]
    assert small.model_nbytes_ <= share * 4 * model.basis_.size + share * 8 * 2500
    assert "accuracy" in str(small.status_) and not small.certificate_.holds
    slimsvm.save(small, tmp_path / "m.slim")
    loaded = slimsvm.load(tmp_path / "m.slim")
    assert np.array_equal(loaded.decision_function(X), small.decision_function(X))
    assert loaded.model_nbytes_ == small.model_nbytes_
    assert loaded.quantized(form).model_nbytes_ == small.model_nbytes_
    if form == "int8":  # the file holds the bytes, not what they stand for
        slimsvm.save(model, tmp_path / "whole.slim")
        sizes = [(tmp_path / name).stat().st_size for name in ("m.slim", "whole.slim")]
        assert sizes[0] < 0.5 * sizes[1]
    again = small.fit(X[:300], y[:300])
    assert again.model_nbytes_ > 0 and "_packed" not in vars(again)


def test_features_far_from_zero(digits):
    X, y, _ = digits
    model = SparseSVC(50, random_state=0).fit(X[:1000] + 1000.0, y[:1000])
    small = model.quantized("int8")
    new = X[1000:] + 1000.0
    assert small.score(new, y[1000:]) > model.score(new, y[1000:]) - 0.02


def test_other_models():
    X = np.linspace(0, 6, 400).reshape(-1, 1)
    model = SparseSVR(10, C=10.0, random_state=0).fit(X, np.sin(X[:, 0]))
    assert model.quantized("float16", X, np.sin(X[:, 0])).score(X, np.sin(X[:, 0])) > 0.98
    plain = SparseSVC(20, basis="pursuit", random_state=0).fit(X, X[:, 0] > 3)
    assert plain.quantized("int8").score(X, X[:, 0] > 3) > 0.97


def test_what_is_refused(digits):
    X, y, model = digits
    for form in ("int4", 8, None):
        with pytest.raises(ValueError, match="is none of 'float32'"):
            model.quantized(form)
    with pytest.raises(ValueError, match="belong together"):
        model.quantized("int8", X)
    with pytest.raises(ValueError, match="beyond float16"):
        packed(np.array([1e6]), "float16")
    with pytest.raises(ValueError, match="wrong form"):
        Packed(np.zeros((2, 2), np.int8), np.zeros(3, np.float32)).check()
    rows = SparseSVC(5, basis="random", refine=False, loss="hinge").fit(
        sp.csr_matrix(X[:200]), y[:200] > 4
    )
    if sp.issparse(rows.basis_):
        with pytest.raises(ValueError, match="sparse rows"):
            rows.quantized()


def test_compress_to_so_many_bytes(digits):
    X, y, sparse = digits
    pair = y < 2
    exact = SVC().fit(X[:800][pair[:800]], y[:800][pair[:800]])
    small = compress(exact, max_bytes=4000, random_state=0)
    assert small.model_nbytes_ <= 4000 and small.score(X[pair], y[pair]) > 0.98
    theirs = sklearn.svm.SVC().fit(X[:1000], y[:1000])
    small = compress(theirs, X=X[:1000], max_bytes=30_000, random_state=0)
    assert small.model_nbytes_ <= 30_000 and "agreement" in str(small.status_)
    assert small.score(X[1000:], y[1000:]) > 0.88
    numbers = sklearn.svm.SVR().fit(X[:500], X[:500, 20])
    student = compress(numbers, X=X[:500], max_bytes=30_000, random_state=0)
    assert isinstance(student, SparseSVR) and student.score(X[:500], numbers.predict(X[:500])) > 0.8
    rounded = compress(sparse, max_bytes=sparse.model_nbytes_ // 3)
    assert rounded.model_nbytes_ <= sparse.model_nbytes_ // 3
    for wrong, words in ((10, "too small for one vector"), (0, "not a size"), (2.5, "not a size")):
        with pytest.raises(ValueError, match=words):
            compress(exact, max_bytes=wrong)
    with pytest.raises(ValueError, match="give rows X"):
        compress(sparse, max_bytes=100)
    with pytest.raises(ValueError, match="not both"):
        compress(exact, 5, max_bytes=100)
    with pytest.raises(ValueError, match="n_basis=None is not a size"):
        compress(exact)


def test_numbers_that_a_form_does_not_have():
    with pytest.raises(ValueError, match="beyond float16"):
        packed(np.array([1.0, 1e6]), "float16")
    with pytest.raises(ValueError, match="zero in float16"):
        packed(np.array([1e-30, 0.0]), "float16")
    assert not packed(np.zeros(2), "float16").codes.any()


def test_int8_is_never_larger_than_float16():
    X, y = checkers(1500, seed=0)
    model = SparseSVC(20, gamma=5.0, random_state=0).fit(X, y)
    small, half = model.quantized("int8", X, y), model.quantized("float16")
    assert small.model_nbytes_ <= half.model_nbytes_
    assert "float16, which is smaller than int8" in str(small.status_)
    assert small.score(X, y) >= model.score(X, y) - 0.01
    wide = np.hstack([X, np.random.default_rng(0).standard_normal((1500, 8))])
    assert "Rounded to int8" in str(SparseSVC(20, random_state=0).fit(wide, y).quantized().status_)
