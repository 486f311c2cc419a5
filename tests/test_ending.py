"""How a fit ended: sentences, certificates of several problems, and where warnings point to."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from sklearn.metrics.pairwise import laplacian_kernel

from slimsvm import SVC, CoreVectorSVC, NuSVC, OneClassSVM, OnlineSVC, SparseSVC
from slimsvm.ending import (
    FULL,
    MEASURES,
    REASONS,
    Certificate,
    Ending,
    Status,
    joined,
    merged,
    sentence,
)
from slimsvm.run import Result

ONE = Certificate(FULL, 2.0, 0.01, 2e-4, 0.001, "float64")


def result(reason, **changes):
    history = {"seconds": np.array([0.0, 1.0]), "gap": np.array([1.0, 0.5])}
    return Result(None, replace(ONE, **changes), Status(reason), history, 3)


@pytest.mark.parametrize("reason", REASONS)
@pytest.mark.parametrize("measure", MEASURES)
def test_every_sentence_begins_with_the_share_of_the_optimum(reason, measure):
    words = sentence(reason, measure, ONE, seconds=1.5, max_iter=7)
    begin, _, rest = words.partition(": ")
    assert rest.startswith("within 0.01 % of the optimum; ") and words.endswith(".")
    assert begin == REASONS[reason].format(seconds=1.5, max_iter=7)


def test_what_is_not_known_is_said():
    assert "not known" in sentence("converged", "gap", replace(ONE, gap=np.inf))
    assert "at the optimum" in sentence("converged", "gap", replace(ONE, gap=0.0))
    # the objective of a dual problem is negative
    assert "within 0.01 %" in sentence("converged", "gap", replace(ONE, objective=-2.0))


def test_no_bound_on_the_distance_of_a_value_that_is_not_known():
    """There was time for the bound of a subspace, and none for the objective."""
    unknown = Certificate("full", np.nan, np.inf, np.inf, 1e-3, "float32")
    assert replace(unknown, projection_error=2.0, bound=3.0).bound is None
    assert replace(unknown, objective=1.0, bound=3.0).bound == 3.0
    assert unknown.interval == (-np.inf, np.inf)


def test_several_problems_in_one():
    three = [ONE, replace(ONE, violation=0.5, precision="float32"), ONE]
    whole = merged(three)
    assert (whole.objective, whole.violation, whole.precision) == (6.0, 0.5, "float32")
    assert whole.gap == pytest.approx(6e-4) and merged([ONE]) is ONE


def test_the_worst_problem_speaks_for_all():
    results = [result("converged"), result("max_time", violation=0.3), result("converged")]
    ending = Ending.of(results, "kkt", seconds=2.0)
    assert ending.status.reason == "max_time" and not ending.status.converged
    assert "worst of 3 pairs" in str(ending.status) and "0.3" in str(ending.status)
    assert ending.history["problem"].tolist() == [0, 0, 1, 1, 2, 2]
    assert "problem" not in joined([results[0].history])


def test_against_another_tolerance():
    assert result("stalled", violation=1e-4).against(0.001).status.reason == "converged"
    assert result("converged", violation=0.5).against(0.001).status.reason == "stalled"
    assert result("max_iter", violation=0.5).against(0.001).status.reason == "max_iter"


@pytest.mark.parametrize("model", [SVC(max_iter=1), OneClassSVM(max_iter=1)])
def test_a_warning_points_at_the_line_that_called_fit(model):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(50, 2)), np.arange(50) % 2
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, y)
    assert [warning.filename for warning in caught] == [__file__]


def noisy(n=400):
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 4, (n, 2))
    y = np.where(np.floor(X).sum(axis=1) % 2 == 0, 1, -1)
    return X, np.where(rng.random(n) < 0.2, -y, y)


def test_a_small_nu_converges_in_its_own_units():
    X, y = noisy(1100)
    model = NuSVC(nu=0.15, gamma=10.0).fit(X, y)
    certificate, words = model.certificate_, str(model.status_)
    assert model.status_.converged and certificate.gap > certificate.objective
    assert words.startswith("Converged in what tol is about: the optimum is only known to be ")
    low, high = certificate.interval
    assert f"between {low:.3g} and {high:.3g};" in words
    assert "with tol=0.001, where the margin is 0.0" in words
    finer = NuSVC(nu=0.15, gamma=10.0, tol=1e-4).fit(X, y).certificate_
    assert low < finer.interval[0] < finer.objective < high


def test_a_core_set_converges_in_its_ball():
    X, y = noisy(1500)
    model = CoreVectorSVC(eps=1e-3, C=100.0, gamma=1.0).fit(X, y)
    low, high = model.certificate_.interval
    words = str(model.status_)
    assert words.startswith("Converged in what eps is about: the optimum is only known to be ")
    assert f"between {low:.3g} and {high:.3g}; the farthest point lies" in words
    finer = CoreVectorSVC(eps=1e-7, C=100.0, gamma=1.0).fit(X, y).certificate_
    assert low <= finer.objective - finer.gap <= finer.objective <= high


def test_a_budget_names_the_problem_it_solves():
    X, y = noisy()
    budget = OnlineSVC(kernel=laplacian_kernel, max_support=30, random_state=0).fit(X, y)
    assert budget.certificate_.scope == "subspace"
    assert "the optimum over the expansion" in str(budget.status_)
    assert "30 vectors at most, are no part of that problem." in str(budget.status_)
    stream = OnlineSVC(gamma=10.0, max_support=30, random_state=0).fit(X, y)
    assert stream.certificate_.scope == "stream" and np.isinf(stream.certificate_.gap)
    assert "no fixed problem" in str(stream.status_)


@pytest.mark.parametrize("loss", ["smooth_hinge", "squared_hinge"])
def test_rounding_is_blamed_only_where_it_is_to_blame(loss):
    X, y = noisy(1500)
    options = {"loss": loss, "basis": "all", "C": 100.0, "gamma": 0.1}
    model = SparseSVC(tol=1e-3, **options).fit(X, y)  # float32 is not enough for it
    assert model.status_.converged and model.certificate_.precision == "float64"
    finer = SparseSVC(tol=1e-6, **options).fit(X, y).certificate_
    assert model.certificate_.objective == pytest.approx(finer.objective, rel=1e-3)


def test_a_gap_of_many_times_the_objective_is_said_as_an_interval():
    about = Certificate("subspace", 2.0, 3e8, 6e8, 1e-3, "float32")
    words = sentence("stalled", "gap", about)
    assert "%" not in words.split(";")[0] and "between -6e+08 and 2" in words
