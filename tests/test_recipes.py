"""The recipes: what they configure, and that they train."""

import re
from pathlib import Path

import pytest
from sklearn.base import clone

from slimsvm import (
    SVC,
    CoreVectorSVC,
    CrossTraining,
    LinearSVC,
    LowRankSVC,
    OnlineSVC,
    ReducedSVC,
    SparseSVC,
    StructuralSVM,
    recipes,
)
from slimsvm.basis import FixedPoint, Greedy, Margin, PursuitRows, Unsupervised
from slimsvm.cross_training import Discard
from slimsvm.datasets import checkers
from slimsvm.oracles import Binary
from slimsvm.recipes import RECIPES
from slimsvm.solvers.core_rounds import CoreRounds
from slimsvm.solvers.cutting_plane import CuttingPlane
from slimsvm.solvers.dual_chunking import DualChunking
from slimsvm.solvers.linear_lagrangian import LinearLagrangian
from slimsvm.solvers.low_rank import ICFSVM
from slimsvm.solvers.online_rounds import OnlineRounds
from slimsvm.solvers.plain_newton import PlainNewton
from slimsvm.solvers.platt_smo import PlattSMO
from slimsvm.solvers.rsvm import RSVM
from slimsvm.solvers.sampled_cuts import SampledCuts
from slimsvm.solvers.svm_light import SVMLight

REFERENCES = Path(__file__).resolve().parent.parent / "docs" / "refs.bib"
PLANES = CuttingPlane(line_search=False, stop="violation")
SAMPLED = SampledCuts(line_search=False, stop="violation", whole=False, max_draws=10_000)
SUBSPACE = {"loss": "hinge", "refine": False, "fit_intercept": False, "solver": PLANES}
SQUARED = {"loss": "squared_hinge", "refine": False}
LINEAR = ("linear_cutting_plane", "linear_newton", "lsvm")
LASVM = {"max_support": None, "finishing": True, "epochs": 1, "solver": OnlineRounds()}
FIXED = {
    "cpsp": {**SUBSPACE, "basis": FixedPoint()},
    "cpsp_rows": {**SUBSPACE, "basis": PursuitRows(59, n_rows=None, orthogonal=False)},
    "nystrom": {**SUBSPACE, "basis": "random"},
    "incomplete_cholesky": {**SUBSPACE, "basis": "cholesky"},
    "refined": {"loss": "squared_hinge", "refine": True},
    "svm_light": {"solver": SVMLight(), "tol": 0.001},
    "smo": {"solver": PlattSMO()},
    "chunking": {"solver": DualChunking()},
    "libsvm_q": {"solver": SVMLight(working_set=2, inner="smo", loss="squared_hinge")},
    "lsvm": {"loss": "squared_hinge", "solver": LinearLagrangian(share=0.95)},
    "linear_newton": {"loss": "squared_hinge", "solver": PlainNewton()},
    "linear_cutting_plane": {"loss": "hinge", "fit_intercept": False, "solver": PLANES},
    "cross_training": {
        "balanced_subsets": True,
        "held_out": False,
        "refit_intercept": False,
    },
    "rsvm_smooth": {"solver": RSVM("smooth", beta=5.0)},
    "rsvm_least_squares": {"solver": RSVM("least_squares")},
    "rsvm_lagrangian": {"solver": RSVM("lagrangian")},
    "rsvm_decomposition": {"solver": RSVM("decomposition")},
    "primal_newton": {"loss": "squared_hinge", "basis": "all", "refine": False},
    "random_subset": {"loss": "squared_hinge", "basis": "random", "refine": False},
    "greedy_subset": {**SQUARED, "basis": Greedy(59, alone=False, retrain="powers")},
    "margin_subset": {**SQUARED, "basis": Margin(None, retrain="always")},
    "unsupervised_subset": {**SQUARED, "basis": Unsupervised(None)},
    "icf_threshold": {
        "factorization": ICFSVM("threshold"),
        "retrain": False,
        "fit_intercept": False,
    },
    "icf_pivoted": {"factorization": ICFSVM("pivoted"), "retrain": False, "fit_intercept": False},
    "icf_retrain": {"factorization": ICFSVM("pivoted"), "retrain": True, "fit_intercept": False},
    "sampled_cuts_constant": {
        "space": "sampled",
        "sampling": "constant_time",
        "line_search": False,
        "solver": SAMPLED,
    },
    "sampled_cuts_linear": {
        "space": "sampled",
        "sampling": "linear_time",
        "line_search": False,
        "solver": SAMPLED,
    },
    "kernel_cutting_plane": {"space": "kernel", "line_search": False, "solver": PLANES},
    "lasvm": {**LASVM, "selection": "random"},
    "lasvm_active": {**LASVM, "selection": "margin"},
    "cvm": {"ball": "minimum", "solver": CoreRounds()},
    "bvm": {"ball": "fixed", "solver": CoreRounds()},
}
# what else differs from the estimator's defaults: the papers' settings, which may be changed
SET = {"svm_light": {"cache_size": 40}, "linear_cutting_plane": {"max_iter": -1, "tol": 1e-3}}
for planes in ("cpsp", "cpsp_rows", "nystrom", "incomplete_cholesky", "kernel_cutting_plane"):
    SET[planes] = {"max_iter": -1}
SET["lsvm"] = {"max_iter": -1}
SET["linear_newton"] = {"fit_intercept": "free", "tol": 1e-7}
SET["cross_training"] = {"discard": Discard(beyond=0.0, merged=False)}
SET["sampled_cuts_constant"] = SET["sampled_cuts_linear"] = {"max_iter": -1}
SET["chunking"] = {"cache_size": 2000}
KINDS = {
    "svm_light": SVC,
    "smo": SVC,
    "chunking": SVC,
    "libsvm_q": SVC,
    "linear_cutting_plane": LinearSVC,
    "linear_newton": LinearSVC,
    "lsvm": LinearSVC,
    "cross_training": CrossTraining,
    **{name: ReducedSVC for name in FIXED if name.startswith("rsvm")},
    "icf_threshold": LowRankSVC,
    "icf_pivoted": LowRankSVC,
    "icf_retrain": LowRankSVC,
    "sampled_cuts_constant": StructuralSVM,
    "sampled_cuts_linear": StructuralSVM,
    "kernel_cutting_plane": StructuralSVM,
    "lasvm": OnlineSVC,
    "lasvm_active": OnlineSVC,
    "cvm": CoreVectorSVC,
    "bvm": CoreVectorSVC,
}
SIZES = {
    "svm_light": None,
    "smo": None,
    "chunking": None,
    "libsvm_q": None,
    "cross_training": "n_subsets",
    "linear_cutting_plane": None,
    "linear_newton": None,
    "lsvm": None,
    "primal_newton": None,
    "icf_threshold": "rank",
    "icf_pivoted": "rank",
    "icf_retrain": "rank",
    "sampled_cuts_constant": "sample_size",
    "sampled_cuts_linear": "sample_size",
    "kernel_cutting_plane": None,
    "lasvm": None,
    "lasvm_active": None,
    "cvm": None,
    "bvm": None,
}


def made(name, **parameters):
    return (
        RECIPES[name][0](**parameters)
        if SIZES.get(name, "n_basis") is None
        else RECIPES[name][0](15, **parameters)
    )


def test_every_recipe_is_in_the_table():
    public = {
        name
        for name, value in vars(recipes).items()
        if callable(value) and getattr(value, "__module__", "").startswith(recipes.__name__)
    }
    assert {name for name in public if not name.startswith("_")} == set(RECIPES) == set(FIXED)


@pytest.mark.parametrize("name", FIXED)
def test_what_makes_the_method(name):
    model = made(name, C=3.0)
    assert type(model) is KINDS.get(name, SparseSVC)
    size = SIZES.get(name, "n_basis")
    inside = "estimator__" if name == "cross_training" else ""  # a recipe around SVC
    expected = {**FIXED[name], f"{inside}C": 3.0, **({} if size is None else {size: 15})}
    assert {key: model.get_params()[key] for key in expected} == expected
    default = (
        CrossTraining(SVC())
        if inside
        else StructuralSVM(Binary())
        if type(model) is StructuralSVM
        else type(model)()
    )
    others = SET.get(name, {}) | {
        key: value
        for key, value in default.get_params().items()
        if key not in {*expected, *SET.get(name, {}), "estimator", "oracle"}
    }
    assert {key: model.get_params()[key] for key in others} == others, "all else is the default"
    numbers = {k: v for k, v in SET.get(name, {}).items() if not isinstance(v, Discard)}
    for key, value in numbers.items():
        other = True if isinstance(value, str) else 2 * abs(value)
        assert made(name, **{key: other}).get_params()[key] == other
    for key, value in FIXED[name].items():
        with pytest.raises(ValueError, match=rf"{name} has {key}="):
            made(name, **{key: value})
    with pytest.raises(TypeError):
        made(name, nonsense=1)


@pytest.mark.parametrize("name", FIXED)
def test_the_paper_is_cited(name):
    function, key = RECIPES[name]
    assert key in function.__doc__
    cited = set(re.findall(r"\b[a-z]+\d{4}[a-z]+\b", function.__doc__))
    assert cited <= set(re.findall(r"(?m)^@\w+\{([^,]+),", REFERENCES.read_text(encoding="utf-8")))


@pytest.mark.parametrize("name", FIXED)
def test_recipes_train(name):
    X, y = checkers(200, seed=0)
    model = made(
        name,
        C=10.0,
        **({} if name in LINEAR else {"gamma": 5.0, "random_state": 0}),
    ).fit(X, y)
    assert model.score(X, y) > (0.4 if name in LINEAR else 0.6)
    assert repr(clone(model)) == repr(model)
