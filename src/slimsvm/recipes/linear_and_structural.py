"""Linear and structural SVMs: cutting planes with one slack, exact or sampled, and LSVM."""

from __future__ import annotations

from typing import Any

from slimsvm.estimators.linear import LinearSVC
from slimsvm.estimators.structural import StructuralSVM
from slimsvm.oracles import Binary, StructuredOracle
from slimsvm.recipes.table import PLANES, UNLIMITED, configured, recipe
from slimsvm.solvers.linear_lagrangian import LinearLagrangian
from slimsvm.solvers.plain_newton import PlainNewton
from slimsvm.solvers.sampled_cuts import SampledCuts

_SAMPLED = SampledCuts(line_search=False, stop="violation", whole=False, max_draws=10_000)
_SAMPLE_SIZE = """\
sample_size : int, default=400
    Examples drawn for each cut, r in the paper."""
_ORACLE = """\
oracle : StructuredOracle, optional
    What is predicted; by default two classes."""


@recipe(
    LinearSVC,
    {"loss": "squared_hinge", "solver": LinearLagrangian(share=0.95)},
    "mangasarian2001lsvm",
    defaults=UNLIMITED,
    example=("C=0.1", "loss", "'squared_hinge'"),
)
def lsvm(**parameters: Any) -> LinearSVC:
    """LSVM: the linear SVM with squared losses by a fixed-point iteration in the dual.

    Algorithm 1 of the paper, with its step 1.9/nu and its penalised intercept: what the talk of
    Bakir and Chapelle compares Newton's method with, which is :func:`linear_newton`.

    Notes
    -----
    The paper's nu is twice our C. At a large C it takes very long; ``max_iter`` and ``max_time``
    end it.
    """
    return configured("lsvm", **parameters)


@recipe(
    LinearSVC,
    {"loss": "squared_hinge", "solver": PlainNewton()},
    "chapelle2007primal",
    defaults={"fit_intercept": "free", "tol": 1e-7},
    example=("C=0.1", "loss", "'squared_hinge'"),
)
def linear_newton(**parameters: Any) -> LinearSVC:
    """The linear SVM with squared losses by whole steps of Newton's method in the primal.

    "Linear SVM in the primal" of Bakir and Chapelle's talk "Tricks of the trade for training SVMs",
    up to its precision of 1e-7: weights and a free intercept together, without a line search.

    Notes
    -----
    The talk's C is twice ours. Left open: a singular matrix (the shortest step), and steps that go
    in circles, which ``max_iter`` and ``max_time`` end. :class:`slimsvm.LinearSVC` by itself has a
    line search, and solves the system by conjugate gradients where features are many.
    """
    return configured("linear_newton", **parameters)


@recipe(
    LinearSVC,
    {"loss": "hinge", "fit_intercept": False, "solver": PLANES},
    "joachims2006linear",
    "joachims2009cpsp",
    defaults={"tol": 1e-3, **UNLIMITED},
    example=("C=0.1", "loss", "'hinge'"),
)
def linear_cutting_plane(**parameters: Any) -> LinearSVC:
    """The linear SVM by cutting planes with one slack, Algorithm 1 of both papers.

    It ends when the newest cut is violated by at most ``tol`` (the papers' eps) more than xi, and
    the model is the last point. There is no intercept; a feature that is always one is one with a
    penalty, as [1]_ has it.

    Notes
    -----
    C multiplies the sum of the losses; the papers' C is n times ours. Left open: after how many
    rounds an idle cut is dropped (here 20). :class:`slimsvm.LinearSVC` by itself has a line search
    (franc2008ocas) and an intercept, and solves few rows to near float64 precision.
    """
    return configured("linear_cutting_plane", **parameters)


@recipe(
    StructuralSVM,
    {
        "space": "sampled",
        "sampling": "constant_time",
        "line_search": False,
        "solver": _SAMPLED,
    },
    "yu2008sampled",
    defaults=UNLIMITED,
    parameters=(_SAMPLE_SIZE, _ORACLE),
    example=("1000", "sampling", "'constant_time'"),
)
def sampled_cuts_constant(
    sample_size: int = 400, *, oracle: StructuredOracle | None = None, **parameters: Any
) -> StructuralSVM:
    """Structural SVMs with kernels in constant time, Algorithm 2 of the paper.

    Every cut is made of a few examples; nothing else is looked at. It ends after p = 4 cuts in a
    row that are violated by at most ``tol``, as in the paper's experiments;
    ``solver=SampledCuts(quiet=1)`` of :class:`slimsvm.StructuralSVM` would be the plain algorithm.

    Notes
    -----
    C multiplies the sum of the losses, as everywhere in slimsvm; the paper's C is n times ours.
    Left open: whether the cuts of the last p rounds join (here not).
    """
    oracle = Binary() if oracle is None else oracle
    return configured("sampled_cuts_constant", oracle=oracle, sample_size=sample_size, **parameters)


@recipe(
    StructuralSVM,
    {"space": "sampled", "sampling": "linear_time", "line_search": False, "solver": _SAMPLED},
    "yu2008sampled",
    defaults=UNLIMITED,
    parameters=(_SAMPLE_SIZE, _ORACLE),
    example=("1000", "sampling", "'linear_time'"),
)
def sampled_cuts_linear(
    sample_size: int = 400, *, oracle: StructuredOracle | None = None, **parameters: Any
) -> StructuralSVM:
    """Structural SVMs with kernels in linear time, Algorithm 3 of the paper.

    Cuts are made of a few violated examples, drawn after the worst outputs of all examples have
    been found, and drawn again until the cut is violated. The exact cut decides the end, and the
    model is the last point.

    Notes
    -----
    C multiplies the sum of the losses, as everywhere in slimsvm; the paper's C is n times ours.
    After 10,000 draws of which none is violated the fit ends, and the status says so; the paper's
    loop goes on. :class:`slimsvm.StructuralSVM` by itself takes all violated examples where they
    are no more than a sample, draws ten times at most, and moves the best point by a line search,
    which the paper names as future work (franc2008ocas).
    """
    oracle = Binary() if oracle is None else oracle
    return configured("sampled_cuts_linear", oracle=oracle, sample_size=sample_size, **parameters)


@recipe(
    StructuralSVM,
    {"space": "kernel", "line_search": False, "solver": PLANES},
    "joachims2009structural",
    "joachims2009cpsp",
    defaults=UNLIMITED,
    parameters=(_ORACLE,),
    example=("C=0.1", "space", "'kernel'"),
)
def kernel_cutting_plane(
    *, oracle: StructuredOracle | None = None, **parameters: Any
) -> StructuralSVM:
    """The structural SVM by cutting planes with one slack, over all rows with kernels.

    Algorithm 2 of [2]_, for any oracle; n^2 kernel values, and so for few rows. It ends when the
    newest cut is violated by at most ``tol`` (the papers' eps) more than xi, and the model is the
    last point.

    Notes
    -----
    C multiplies the sum of the losses; the papers' C is n times ours. An intercept, with
    ``fit_intercept=True``, is a constant in the kernel, and so has a penalty. Left open: after how
    many rounds an idle cut is dropped (here 20). :class:`slimsvm.StructuralSVM` by itself has a
    line search (franc2008ocas), and solves few rows to near float64 precision.
    """
    oracle = Binary() if oracle is None else oracle
    return configured("kernel_cutting_plane", oracle=oracle, **parameters)
