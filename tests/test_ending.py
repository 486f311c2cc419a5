"""How a fit ended: sentences, certificates of several problems, and where warnings point to."""

import warnings
from dataclasses import replace

import numpy as np
import pytest

from slimsvm import SVC, OneClassSVM
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
