"""Model files of an earlier version, one of each class: they load, and predict what they did."""

import shutil
from pathlib import Path

import numpy as np
import pytest
from tests.persistence.test_native import edit_header, refused

import slimsvm
from slimsvm.declarations import fitted_of
from slimsvm.estimators import REGISTRY

KEPT = Path(__file__).parent / "kept"


def outputs(model, X):
    if type(model).__name__ == "ChainSVM":  # sequences of rows with one feature
        return None
    function = getattr(model, "decision_function", model.predict)
    return np.asarray(function(X), float)[:10]


@pytest.mark.parametrize("name", REGISTRY)
def test_a_file_of_an_earlier_version(name):
    path = KEPT / f"{name}.slim"
    if not path.exists():
        pytest.skip(f"{name} is newer than the kept files")
    model = slimsvm.load(path)
    expected = np.load(KEPT / "expected.npz")
    found = outputs(model, expected["X"])
    assert type(model).__name__ == name
    if found is not None:
        np.testing.assert_allclose(found, expected[name], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", REGISTRY)
def test_every_attribute_is_checked(name, tmp_path):
    """A value of a type that no attribute has is refused by name, whatever the class."""
    path = tmp_path / "model.slim"
    kept = KEPT / f"{name}.slim"
    if not kept.exists():  # newer than the kept files
        kept = tmp_path / "now.slim"
        expected = np.load(KEPT / "expected.npz")
        slimsvm.save(getattr(slimsvm, name)().fit(expected["X"], expected["X"][:, 0]), kept)
    stored = [own for own in fitted_of(getattr(slimsvm, name)) if own.stored]
    for attribute in stored:
        for odd in ({"type": "tuple", "items": ["odd"]}, {"type": "status"}):
            change = {attribute.name: odd}
            shutil.copy(kept, path)
            edit_header(path, lambda header, change=change: header["fitted"].update(change))
            refused(path, attribute.name)


def test_a_chain_of_an_earlier_version():
    model = slimsvm.load(KEPT / "ChainSVM.slim")
    zeros = [np.zeros((4, 1)), np.ones((2, 1))]
    assert [len(labels) for labels in model.predict(zeros)] == [4, 2]
    assert model.transitions_.shape == (2, 2)


def test_a_stream_of_an_earlier_version_goes_on():
    model, X = slimsvm.load(KEPT / "OnlineSVC.slim"), np.load(KEPT / "expected.npz")["X"]
    seen = model.n_seen_
    assert model.partial_fit(X[:10], model.predict(X[:10])).n_seen_ == seen + 10
