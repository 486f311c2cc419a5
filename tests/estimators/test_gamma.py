"""gamma='scale': sample weights count, class weights and the number of BLAS threads do not."""

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from slimsvm import (
    SVC,
    CrammerSingerSVC,
    LowRankSVC,
    NuSVC,
    OnlineSVC,
    ReducedSVC,
    SparseSVC,
)
from slimsvm.kernels import gamma_value
from slimsvm.rows import MemoryRows

CLASSIFIERS = [
    SVC(),
    NuSVC(nu=0.1),
    LowRankSVC(random_state=0),
    OnlineSVC(random_state=0),
    ReducedSVC(random_state=0),
    SparseSVC(3, random_state=0),
    CrammerSingerSVC(random_state=0),
]
FACTORS = {0: 1.0, 1: 5.0}


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], [80, 40])
    X = rng.normal(size=(120, 3)) * np.where(y == 0, 1.0, 4.0)[:, None]
    return X, y, rng.integers(1, 3, 120).astype(float)


@pytest.mark.parametrize("model", CLASSIFIERS, ids=lambda model: type(model).__name__)
def test_sample_weights_count_and_class_weights_do_not(model, rows):
    X, y, weight = rows
    wanted = gamma_value("scale", MemoryRows(X, weight=weight))
    model.set_params(class_weight=FACTORS).fit(X, y, sample_weight=weight)
    assert model.kernel_.gamma == wanted
    assert wanted != gamma_value("scale", MemoryRows(X))  # so that the test can fail


def test_in_a_stream(rows):
    X, y, weight = rows
    model = OnlineSVC(class_weight=FACTORS, random_state=0)
    model.partial_fit(X, y, classes=[0, 1], sample_weight=weight)
    assert model.kernel_.gamma == gamma_value("scale", MemoryRows(X, weight=weight))


def test_threads_of_blas_do_not_count():
    rng = np.random.default_rng(0)
    rows = MemoryRows(rng.normal(size=(40_000, 7)), weight=rng.uniform(size=40_000))
    with threadpool_limits(1, "blas"):
        one = gamma_value("scale", rows)
    with threadpool_limits(4, "blas"):
        assert gamma_value("scale", rows) == one
