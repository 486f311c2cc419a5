"""Estimators through any sequence of calls that users make, by hypothesis."""

import pickle
import warnings

import numpy as np
from hypothesis import HealthCheck, seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from sklearn.base import clone

import slimsvm
from tests.soak.problems import MAKERS, ordinary, target_of, values

ROWS = [ordinary(np.random.default_rng(seed)) for seed in range(4)]
STREAMS = ("OnlineSVC", "SparseSVC", "SparseSVR")
BROKEN = {  # name: what cannot be fitted, of fair rows
    "NaN": lambda X, target: (np.where(np.arange(X.size).reshape(X.shape) == 3, np.nan, X), target),
    "fewer targets": lambda X, target: (X, target[:-1]),
    "no rows": lambda X, target: (X[:0], target[:0]),
    "no features": lambda X, target: (X[:, :0], target),
}


class Life(RuleBasedStateMachine):
    """One estimator: what it answers is known after every call, and only fits change it."""

    def __init__(self):
        super().__init__()
        self.model = self.known = self.X = None

    @initialize(name=st.sampled_from(sorted(MAKERS)), gamma=st.sampled_from([0.1, 1.0]))
    def made(self, name, gamma):
        self.name, self.model = name, MAKERS[name](1.0, gamma)

    def changed(self, X):
        self.X, self.known = X, values(self.model, X)
        assert np.isfinite(self.known).all() and str(self.model.status_)

    @rule(k=st.sampled_from(range(len(ROWS))), as_float32=st.booleans())
    def fit(self, k, as_float32):
        X, y, f = ROWS[k]
        X = X.astype(np.float32) if as_float32 else X
        self.model.fit(X, target_of(self.name, y, f))
        self.changed(X)

    @rule(k=st.sampled_from(range(len(ROWS))), how=st.sampled_from(sorted(BROKEN)))
    def fit_fails(self, k, how):
        X, y, f = ROWS[k]
        before = set(vars(self.model))
        try:
            self.model.fit(*BROKEN[how](X, target_of(self.name, y, f)))
        except ValueError as error:
            assert str(error)
        else:  # without targets there are none to be fewer
            assert self.name == "OneClassSVM" and how == "fewer targets"
            self.changed(X)
            return
        assert set(vars(self.model)) == before

    @precondition(lambda self: self.name in STREAMS)
    @rule(k=st.sampled_from(range(len(ROWS))))
    def partial_fit(self, k):
        X, y, f = ROWS[k]
        if self.X is not None and X.shape[1] != self.X.shape[1]:
            return
        known = {} if self.name == "SparseSVR" else {"classes": [0, 1]}
        self.model.partial_fit(X, target_of(self.name, y, f), **known)
        self.changed(X)

    @rule(C=st.sampled_from([-1.0, 0.5, 2.0, "much"]))
    def set_parameter(self, C):
        """It counts from the next fit on; what makes no sense is refused then."""
        if "C" not in self.model.get_params():
            return
        fair = self.model.get_params()["C"]
        self.model.set_params(C=C)
        if not isinstance(C, float) or C < 0:
            self.fit_fails(0, "NaN")
            self.model.set_params(C=fair)

    @precondition(lambda self: self.known is not None)
    @rule()
    def pickled(self):
        self.model = pickle.loads(pickle.dumps(self.model))

    @precondition(lambda self: self.known is not None)
    @rule()
    def saved(self):
        path = self.folder / "model.slim"
        slimsvm.save(self.model, path)
        self.model = slimsvm.load(path)

    @rule()
    def cloned(self):
        """A clone has the parameters and nothing else."""
        fresh = clone(self.model)
        assert fresh.get_params().keys() == self.model.get_params().keys()
        assert not hasattr(fresh, "status_")

    @invariant()
    def answers_are_known(self):
        if self.known is not None:
            np.testing.assert_array_equal(values(self.model, self.X), self.known)


def test_lives(campaign, tmp_path):
    def trial(number):
        Life.folder = tmp_path
        about = settings(
            max_examples=5,
            stateful_step_count=12,
            deadline=None,
            database=None,
            suppress_health_check=list(HealthCheck),
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            run_state_machine_as_test(seed(number)(Life), settings=about)
        return 5

    campaign("lives").run(
        trial,
        "estimators through random sequences of fits, fits that fail, partial_fit, parameters, "
        "pickle, save, load and clone (hypothesis): what they answer changes by fits alone",
    )
