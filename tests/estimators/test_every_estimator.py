"""What every estimator must do: parameters, fitted attributes, fits that fail."""

import inspect
import warnings
from dataclasses import fields

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

import slimsvm
from slimsvm.declarations import fitted_of
from slimsvm.ending import Certificate, Ending, Status
from slimsvm.estimators import REGISTRY
from slimsvm.estimators.fitting import Classifier
from slimsvm.models.support import SupportVectors
from slimsvm.oracles import Multiclass

SMALL = {"random_state": 0}
ESTIMATORS = {
    "StructuralSVM": lambda: slimsvm.StructuralSVM(Multiclass()),
    "SparseSVC": lambda: slimsvm.SparseSVC(3, **SMALL),
    "SparseSVR": lambda: slimsvm.SparseSVR(3, **SMALL),
    "NuSVC": lambda: slimsvm.NuSVC(nu=0.2),
    "ReducedSVC": lambda: slimsvm.ReducedSVC(5, **SMALL),
    "CrossTraining": lambda: slimsvm.CrossTraining(**SMALL),
}


def made(name):
    return ESTIMATORS.get(name, getattr(slimsvm, name))()


def data(name, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(40, 3))
    if name == "ChainSVM":
        return list(X.reshape(10, 4, 3)), [np.arange(4) % 2] * 10
    if name in ("SVR", "NuSVR", "SparseSVR", "LinearSVR"):
        return X, X[:, 0] + 0.1 * rng.normal(size=40)
    return X, (X[:, 0] + 0.3 * rng.normal(size=40) > 0).astype(int)


@pytest.fixture(scope="module")
def fitted():
    models = {}
    for name in REGISTRY:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            models[name] = made(name).fit(*data(name))
    return models


class Noting:
    """scikit-learn's callback protocol; notes what is called."""

    def __init__(self, calls):
        self.calls = calls

    def setup(self, estimator, context):
        self.calls.append("setup")

    def on_fit_task_begin(self, estimator, context):
        self.calls.append("begin")

    def on_fit_task_end(self, estimator, context, **given):
        self.calls.append("end")

    def teardown(self, estimator, context):
        self.calls.append("teardown")


@pytest.mark.parametrize("name", REGISTRY)
class TestEvery:
    def test_signature_constraints_and_documentation_agree(self, name):
        kind = getattr(slimsvm, name)
        signature = list(inspect.signature(kind).parameters)
        assert signature == [f.name for f in fields(kind)] == list(kind._parameter_constraints)
        text = inspect.getdoc(kind)
        places = [text.index(f"\n{parameter} : ") for parameter in signature]
        assert places == sorted(places), "documented in another order"
        assert text.index("Parameters\n---") < text.index("Attributes\n---")
        for own in fitted_of(kind):
            assert own.name.startswith("_") or f"\n{own.name} : " in text

    def test_public_fitted_attributes_are_those_declared(self, name, fitted):
        model = fitted[name]
        declared = {own.name: own for own in fitted_of(type(model))}
        there = {key for key in vars(model) if key.endswith("_") and not key.startswith("_")}
        assert there <= set(declared)
        for own in declared.values():
            assert own.optional or hasattr(model, own.name), own.name

    def test_a_fit_that_fails_leaves_the_estimator_as_it_was(self, name, fitted):
        X, y = data(name, seed=1)
        if name == "ChainSVM":
            wider = [np.hstack([rows, rows]) for rows in X]
        else:
            wider = np.hstack([X, X])
        bad = wider[:-1] if name == "OneClassSVM" else wider
        for model in (clone(fitted[name]), fitted[name]):
            before = dict(vars(model))
            model_fit = model.fit
            with pytest.raises((ValueError, TypeError)):
                if name == "OneClassSVM":
                    model_fit(bad, sample_weight=np.ones(3))
                else:
                    model_fit(bad, y[:-1])
            assert vars(model).keys() == before.keys()
            assert all(vars(model)[key] is value for key, value in before.items())

    def test_a_failure_in_the_middle_of_a_fit_does_not_either(self, name, fitted, monkeypatch):
        model, before = fitted[name], dict(vars(fitted[name]))
        X, y = data(name, seed=1)
        for step in ("_solved", "_concluded"):
            with monkeypatch.context() as patch:
                whole = getattr(type(model), step)

                def fails(self, *given, step=step, whole=whole):
                    self.something_half_done_ = 1
                    if step == "_concluded":
                        whole(self, *given)
                    raise MemoryError("no more memory")

                patch.setattr(type(model), step, fails)
                with pytest.raises(MemoryError):
                    model.fit(X, y)
            assert vars(model).keys() == before.keys()
            assert all(vars(model)[key] is value for key, value in before.items())

    def test_a_warning_that_is_an_error_is_a_failure_too(self, name, fitted, monkeypatch):
        model, before = fitted[name], dict(vars(fitted[name]))
        if name == "CrossTraining":
            return  # its estimators warn

        def warned(self, estimator):
            estimator.status_ = None
            raise ConvergenceWarning("stopped")

        monkeypatch.setattr(Ending, "record_on", warned)
        with pytest.raises(ConvergenceWarning):
            model.fit(*data(name, seed=1))
        assert all(vars(model)[key] is value for key, value in before.items())

    def test_callbacks_are_taken_down_when_a_fit_fails(self, name, fitted, monkeypatch):
        if name == "CrossTraining":
            return  # takes no callbacks
        calls, model = [], clone(fitted[name])
        model.set_callbacks(Noting(calls))

        def fails(self, *given):
            raise MemoryError("no more memory")

        monkeypatch.setattr(type(model), "_solved", fails)
        with pytest.raises(MemoryError):
            model.fit(*data(name))
        assert calls[0] == "setup" and calls[-1] == "teardown"

    def test_how_it_ended(self, name, fitted):
        model = fitted[name]
        assert isinstance(model.status_, Status) and str(model.status_)
        assert isinstance(model.certificate_, Certificate)
        if name != "CrossTraining" and model.status_.converged:
            assert "the optimum" in str(model.status_)
            assert model.fit_status_ == 0


def test_whoever_holds_support_vectors_has_all_rows_whose_places_they_name():
    """Also those of weight zero: ``support_`` counts them."""

    class Own(SupportVectors, Classifier):
        pass

    weight = np.array([0.0, 1.0, 1.0, 0.0, 1.0])
    data = Own()._encoded(np.eye(5), np.array([0, 1, 0, 1, 1]), weight)
    assert data.X.shape[0] == 5 and data.used.tolist() == [1, 2, 4]
