"""What a notebook and a log show of a fit."""

import logging
from html import escape

import numpy as np
import pytest
from sklearn.datasets import make_moons
from sklearn.metrics import ConfusionMatrixDisplay
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import slimsvm
from slimsvm import SVC, CrossTraining, OneClassSVM, SparseSVC
from slimsvm.progress import Progress
from slimsvm.run import Record


@pytest.mark.parametrize(
    "estimator",
    [SVC(), SparseSVC(5, random_state=0), OneClassSVM(), CrossTraining(SVC(), random_state=0)],
    ids=lambda estimator: type(estimator).__name__,
)
def test_html_has_the_ending_after_a_fit(estimator):
    X, y = make_moons(200, noise=0.2, random_state=0)
    assert "slimsvm-facts" not in estimator._repr_html_()
    estimator.fit(X, y)
    html = estimator._repr_html_()
    said = escape(str(estimator.status_).split(":")[0])
    assert said in html and "of the optimum" in html
    if hasattr(estimator, "basis_"):
        assert "5 basis vectors" in html


def test_html_is_escaped():
    X, y = make_moons(100, random_state=0)
    model = SVC().fit(X, y)
    model.status_ = slimsvm.ending.Status("converged", "<script>alert(1)</script>")
    html = model._repr_html_()
    assert "<script>alert" not in html[html.index("slimsvm-facts") :]


def test_a_log_hears_of_every_fit(caplog):
    X, y = make_moons(200, noise=0.2, random_state=0)
    with caplog.at_level(logging.DEBUG, logger="slimsvm"):
        model = SVC().fit(X, y)
    assert f"SVC: {model.status_}" in caplog.messages
    caplog.clear()
    SVC().fit(X, y)
    assert not caplog.messages


def test_progress_goes_to_the_log_without_verbose(caplog, capsys):
    X, y = make_moons(3000, noise=0.3, random_state=0)
    with caplog.at_level(logging.INFO, logger="slimsvm"):
        SVC().fit(X, y)
    assert any("support vectors" in message for message in caplog.messages)
    assert capsys.readouterr().out == ""


def shown(capsys, records, **about):
    with Progress("SVC", every=0.0, **about) as show:
        for seconds, values in records:
            show(Record(0, seconds, values))
    return capsys.readouterr().out.splitlines()


def test_counts_are_whole_and_the_gap_says_of_which_rows(capsys):
    first, second = shown(
        capsys,
        [
            (0.5, {"gap": 2.1e4, "n_support": 12_345, "active": 20_000}),
            (1.0, {"gap": 135.0, "n_support": 12_345, "active": 19_000}),
        ],
    )
    assert "support vectors 12,345  active 20,000" in first and "e+04" not in first.split("gap")[0]
    assert "gap of the active rows 135" in second and "active 19,000 of 20,000" in second


def test_time_left_by_the_share_the_tolerance_and_the_limit(capsys):
    assert "about 9 s left" in shown(capsys, [(3.0, {"share": 0.25, "n_basis": 7})])[0]
    falling = [(t, {"violation": np.exp(-t)}) for t in np.arange(0.0, 4.1, 0.5)]
    left = shown(capsys, falling, tol=np.exp(-10.0))[-1]
    assert "about 6 s left" in left
    assert "about 2 s left" in shown(capsys, falling, tol=np.exp(-10.0), max_time=6.0)[-1]
    rising = [(t, {"violation": np.exp(t)}) for t in (1.0, 2.0, 3.0)]
    assert "left" not in shown(capsys, rising, tol=1e-3)[-1]


@pytest.mark.parametrize("name", ["SVC", "NuSVC", "LinearSVC", "SparseSVC", "ReducedSVC"])
def test_displays_of_sklearn(name):
    plt = pytest.importorskip("matplotlib.pyplot")
    from sklearn.inspection import DecisionBoundaryDisplay

    plt.switch_backend("agg")
    X, y = make_moons(200, noise=0.2, random_state=0)
    model = make_pipeline(StandardScaler(), getattr(slimsvm, name)()).fit(X, y)
    DecisionBoundaryDisplay.from_estimator(model, X, grid_resolution=20)
    ConfusionMatrixDisplay.from_estimator(model, X, y)
    plt.close("all")
