"""The methods of the papers: one function for each, which returns the unfitted estimator.

A method is a choice of basis, problem and solver, and so a row of a table: its estimator, the
parameters that make the method, and the key of its paper in docs/refs.bib. A recipe is the method
as it was published; where the defaults of an estimator are quicker, the recipe has them off. What a
paper leaves open, its docstring says. Whatever a recipe leaves open (C, kernel, gamma, weights,
limits) is passed on to the estimator. The sections of a docstring that all recipes have are written
from the row.
"""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from typing import Any, NamedTuple, TypeVar

from slimsvm.basis import FixedPoint, Greedy, Margin, PursuitRows, Unsupervised
from slimsvm.cross_training import DISCARDS, Discard
from slimsvm.estimators.classification import SVC
from slimsvm.estimators.core_vector import CoreVectorSVC
from slimsvm.estimators.cross_training import CrossTraining
from slimsvm.estimators.linear import LinearSVC
from slimsvm.estimators.low_rank import LowRankSVC
from slimsvm.estimators.online import OnlineSVC
from slimsvm.estimators.reduced import ReducedSVC
from slimsvm.estimators.sparse import SparseSVC
from slimsvm.estimators.structural import StructuralSVM
from slimsvm.oracles import Binary, StructuredOracle
from slimsvm.solvers.core_rounds import CoreRounds
from slimsvm.solvers.cutting_plane import CuttingPlane
from slimsvm.solvers.dual_chunking import DualChunking
from slimsvm.solvers.linear_lagrangian import LinearLagrangian
from slimsvm.solvers.low_rank import ICFSVM
from slimsvm.solvers.online_rounds import OnlineRounds
from slimsvm.solvers.platt_smo import PlattSMO
from slimsvm.solvers.rsvm import RSVM
from slimsvm.solvers.sampled_cuts import SampledCuts
from slimsvm.solvers.svm_light import SVMLight

Function = TypeVar("Function", bound=Callable[..., Any])

_PAPERS = {
    "bakir2005crosstraining": (
        'G. Bakir, L. Bottou, J. Weston, "Breaking SVM complexity with cross-training", NIPS 17, '
        "2005."
    ),
    "boser1992": (
        'B. E. Boser, I. M. Guyon, V. N. Vapnik, "A training algorithm for optimal margin '
        'classifiers", COLT 1992.'
    ),
    "bordes2005lasvm": (
        'A. Bordes, S. Ertekin, J. Weston, L. Bottou, "Fast kernel classifiers with online and '
        'active learning", JMLR 6, 2005.'
    ),
    "chapelle2007primal": (
        'O. Chapelle, "Training a support vector machine in the primal", Neural Computation 19, '
        "2007."
    ),
    "fine2001": (
        'S. Fine, K. Scheinberg, "Efficient SVM training using low-rank kernel representations", '
        "JMLR 2, 2001."
    ),
    "joachims2006linear": 'T. Joachims, "Training linear SVMs in linear time", KDD 2006.',
    "joachims2009cpsp": (
        'T. Joachims, C.-N. Yu, "Sparse kernel SVMs via cutting-plane training", Machine Learning '
        "76, 2009."
    ),
    "joachims2009structural": (
        'T. Joachims, T. Finley, C.-N. J. Yu, "Cutting-plane training of structural SVMs", '
        "Machine Learning 77, 2009."
    ),
    "joachims1999svmlight": (
        'T. Joachims, "Making large-scale SVM learning practical", Advances in Kernel Methods, '
        "1999."
    ),
    "keerthi2006reduced": (
        'S. Keerthi, O. Chapelle, D. DeCoste, "Building support vector machines with reduced '
        'classifier complexity", JMLR 7, 2006.'
    ),
    "lee2001rsvm": (
        'Y.-J. Lee, O. L. Mangasarian, "RSVM: Reduced support vector machines", SDM 2001.'
    ),
    "lin2000icf": (
        'C.-J. Lin, R. Saigal, "An incomplete Cholesky factorization for dense symmetric positive '
        'definite matrices", BIT 40, 2000.'
    ),
    "lin2003rsvm": (
        'K.-M. Lin, C.-J. Lin, "A study on reduced support vector machines", IEEE Transactions on '
        "Neural Networks 14, 2003."
    ),
    "mangasarian2001lsvm": (
        'O. L. Mangasarian, D. R. Musicant, "Lagrangian support vector machines", JMLR 1, 2001.'
    ),
    "osuna1997": (
        'E. Osuna, R. Freund, F. Girosi, "An improved training algorithm for support vector '
        'machines", 1997.'
    ),
    "platt1998smo": (
        'J. C. Platt, "Fast training of support vector machines using sequential minimal '
        'optimization", Advances in Kernel Methods, 1998.'
    ),
    "suykens1999lssvm": (
        'J. A. K. Suykens, J. Vandewalle, "Least squares support vector machine classifiers", 1999.'
    ),
    "tsang2005cvm": (
        'I. W. Tsang, J. T. Kwok, P.-M. Cheung, "Core vector machines: fast SVM training on very '
        'large data sets", JMLR 6, 2005.'
    ),
    "tsang2007bvm": (
        'I. W. Tsang, A. Kocsor, J. T. Kwok, "Simpler core vector machines with enclosing balls", '
        "ICML 2007."
    ),
    "williams2001nystrom": (
        'C. Williams, M. Seeger, "Using the Nystroem method to speed up kernel machines", NIPS 13, '
        "2001."
    ),
    "wu2006direct": (
        'M. Wu, B. Schoelkopf, G. Bakir, "A direct method for building sparse kernel learning '
        'algorithms", JMLR 7, 2006.'
    ),
    "yu2008sampled": (
        'C.-N. J. Yu, T. Joachims, "Training structural SVMs with kernels using sampled cuts", KDD '
        "2008."
    ),
}

# cutting planes as published: the newest cut decides the end, and there is no line search
_PLANES = CuttingPlane(line_search=False, stop="violation")
_SAMPLED = SampledCuts(line_search=False, stop="violation", whole=False, max_draws=10_000)
_UNLIMITED = {"max_iter": -1}

# parameters that several recipes have
_N_BASIS = """\
n_basis : int, default=100
    Number of basis vectors."""
_SHARE = """\
n_basis : int or float, default=0.1
    Number of basis vectors of each pair of classes, or their share of its rows: a tenth, as in
    [2]_."""
_SHARE_OF_IT = """\
n_basis : int or float, default=0.1
    Number of basis vectors of each pair of classes, or their share of its rows: a tenth, as in
    [1]_."""
_PENALTY = """\
penalty : {'norm', 'kernel'}
    On the coefficients, as the papers simplify it; or the norm of the function in the space of the
    kernel, as before."""
_BETA = """\
beta : float, default=5
    Sharpness of the smooth hinge."""
_STEP = """\
beta : float, optional
    Step of the iteration, less than 1/C; 1.9/nu = 1.9/(2 C) by default, as in [1]_."""
_WORKING_SET = """\
working_set : int, default=10
    Variables in a working set, q: from 1 to their number."""
_SAMPLE_SIZE = """\
sample_size : int, default=400
    Examples drawn for each cut, r in the paper."""
_ORACLE = """\
oracle : StructuredOracle, optional
    What is predicted; by default two classes."""
_ENTRIES = """\
rank : int or float, default=0.1
    Entries in each column: a number, or a share of the rows."""
_COLUMNS = """\
rank : int or float, default=0.1
    Columns of the factor: a number, or a share of the rows."""


_DOCSTRING = """\
{text}

Parameters
----------
{parameters}

Returns
-------
{kind}
    Not fitted.
{notes}
References
----------
{references}

Examples
--------
>>> from slimsvm.recipes import {name}
>>> {name}({arguments}).get_params()["{shown}"]
{value}
"""


class _Row(NamedTuple):
    kind: type
    fixed: dict[str, Any]
    defaults: dict[str, Any]


_ROWS: dict[str, _Row] = {}

RECIPES: dict[str, tuple[Callable[..., Any], str]] = {}
"""The recipes by name, each with the key of its paper in docs/refs.bib."""


def _recipe(
    kind: type,
    fixed: dict[str, Any],
    *papers: str,
    defaults: dict[str, Any] | None = None,
    parameters: tuple[str, ...] = (),
    others: str = "",
    example: tuple[str, str, str],
) -> Callable[[Function], Function]:
    """Put a function into the table, and complete its docstring.

    Parameters
    ----------
    kind, fixed
        The estimator, and its parameters that make the method.
    *papers : str
        Keys of the papers, that of the method first.
    defaults : dict, optional
        Parameters that are not those of the estimator unless they are given.
    parameters : tuple of str
        Sections of the docstring for the parameters that the function names.
    others : str
        What the other parameters are; by default those of the estimator that are not fixed.
    example : tuple of str
        Arguments of a call, a parameter of its result, and the value of that parameter.
    """

    def register(function: Function) -> Function:
        name = function.__name__
        _ROWS[name] = _Row(kind, fixed, defaults or {})
        RECIPES[name] = function, papers[0]
        text, heading, notes = inspect.cleandoc(function.__doc__ or "").partition("\nNotes\n-----")
        *first, last = fixed
        names = f"{', '.join(first)} and {last}" if first else last
        passed = others or f"Of :class:`slimsvm.{kind.__name__}`, except for {names}."
        for key, value in (defaults or {}).items():
            passed = f"{passed} By default, {key}={value!r}."
        passed = textwrap.fill(passed, 96, initial_indent="    ", subsequent_indent="    ")
        references = [
            textwrap.fill(
                f".. [{at}] {_PAPERS[key]} ({key})",
                96,
                subsequent_indent="   ",
                break_on_hyphens=False,
            )
            for at, key in enumerate(papers, 1)
        ]
        arguments, shown, value = example
        function.__doc__ = _DOCSTRING.format(
            name=name,
            text=text.rstrip(),
            parameters="\n".join([*parameters, "**parameters", passed]),
            kind=kind.__name__,
            notes=f"{heading}{notes}\n" if notes else "",
            references="\n".join(references),
            arguments=arguments,
            shown=shown,
            value=value,
        )
        return function

    return register


def _configured(recipe: str, made: dict[str, Any] | None = None, /, **given: Any) -> Any:
    """The estimator of a recipe; what the recipe fixes cannot be given.

    ``made``: of what is fixed, that which depends on the recipe's own parameters.
    """
    kind, fixed, defaults = _ROWS[recipe]
    fixed = {**deepcopy(fixed), **(made or {})}
    for name, value in fixed.items():
        if name in given:
            raise ValueError(
                f"{recipe} has {name}={value!r}: that is what makes it this method. "
                f"Leave {name} out, or use {kind.__name__} for another."
            )
    return kind(**fixed, **{**defaults, **given})


# -- sparse models ---------------------------------------------------------------------------------


@_recipe(
    SparseSVC,
    {
        "loss": "hinge",
        "basis": FixedPoint(),
        "refine": False,
        "fit_intercept": False,
        "solver": _PLANES,
    },
    "joachims2009cpsp",
    defaults=_UNLIMITED,
    parameters=(_N_BASIS,),
    example=("20, C=10.0", "loss", "'hinge'"),
)
def cpsp(n_basis: int = 100, **parameters: Any) -> SparseSVC:
    """Cutting-plane subspace pursuit, Algorithm 3 of the paper, with its fixed point.

    Cuts are projected on a basis that grows by one vector for each, the pre-image of what the basis
    leaves of it (:class:`slimsvm.basis.FixedPoint`), for the RBF kernel. It ends when the newest
    cut is violated by at most ``tol`` (the paper's eps), also where there are fewer than n_basis
    vectors then, and the model is the last point. There is no intercept.

    Notes
    -----
    C multiplies the sum of the losses, as everywhere in slimsvm; the paper's C is n times ours.
    Left open: after how many rounds an idle cut is dropped (here 20), where the fixed point begins
    (at the best of 59 rows) and ends. Several classes share their basis: a round adds one vector
    for the cuts of all. :class:`slimsvm.SparseSVC` by itself has a line search (franc2008ocas), an
    intercept, other pre-images and the models of all smaller sizes.
    """
    return _configured("cpsp", n_basis=n_basis, **parameters)


@_recipe(
    SparseSVC,
    {
        "loss": "hinge",
        "basis": PursuitRows(n_rows=None, orthogonal=False),
        "refine": False,
        "fit_intercept": False,
        "solver": _PLANES,
    },
    "joachims2009cpsp",
    defaults=_UNLIMITED,
    parameters=(_N_BASIS,),
    example=("20", "loss", "'hinge'"),
)
def cpsp_rows(n_basis: int = 100, **parameters: Any) -> SparseSVC:
    """Cutting-plane subspace pursuit with training rows as basis vectors, CPSP(tr) in the paper.

    Algorithm 3 of the paper, where each vector is the best of 59 random rows by <r, phi(b)>^2 /
    k(b, b), r what the basis leaves of the newest cut.

    Notes
    -----
    As for :func:`cpsp`.
    """
    return _configured("cpsp_rows", n_basis=n_basis, **parameters)


@_recipe(
    SparseSVC,
    {
        "loss": "hinge",
        "basis": "random",
        "refine": False,
        "fit_intercept": False,
        "solver": _PLANES,
    },
    "williams2001nystrom",
    "joachims2009cpsp",
    defaults=_UNLIMITED,
    parameters=(_N_BASIS,),
    example=("20", "basis", "'random'"),
)
def nystrom(n_basis: int = 100, **parameters: Any) -> SparseSVC:
    """The Nystroem method: random training rows as the basis, and the best SVM in their span.

    The SVM is found by the cutting planes of [2]_, which compares with it; that is also the
    "Cholesky" rival of yu2008sampled: a random subsample, the projection of all rows on its span,
    and a linear SVM on them.
    """
    return _configured("nystrom", n_basis=n_basis, **parameters)


@_recipe(
    SparseSVC,
    {
        "loss": "hinge",
        "basis": "cholesky",
        "refine": False,
        "fit_intercept": False,
        "solver": _PLANES,
    },
    "fine2001",
    "joachims2009cpsp",
    defaults=_UNLIMITED,
    parameters=(_N_BASIS,),
    example=("20", "basis", "'cholesky'"),
)
def incomplete_cholesky(n_basis: int = 100, **parameters: Any) -> SparseSVC:
    """IncChol of [2]_: the pivots of the incomplete Cholesky factor as the basis.

    Each is the row that is farthest from the span of those before it; the best SVM in their span is
    found by the cutting planes of [2]_.
    """
    return _configured("incomplete_cholesky", n_basis=n_basis, **parameters)


@_recipe(
    SparseSVC,
    {"loss": "squared_hinge", "refine": True},
    "wu2006direct",
    parameters=(_N_BASIS,),
    others=(
        "Of :class:`slimsvm.SparseSVC`, except for loss and refine. ``basis`` says where the "
        "vectors begin."
    ),
    example=('20, basis="kmeans"', "refine", "True"),
)
def refined(n_basis: int = 100, **parameters: Any) -> SparseSVC:
    """Basis vectors that are moved, all together, to where the objective is least.

    The coefficients are solved for by Newton's method in the primal (chapelle2007primal,
    keerthi2006reduced).
    """
    return _configured("refined", n_basis=n_basis, **parameters)


@_recipe(
    LinearSVC,
    {"loss": "squared_hinge", "solver": LinearLagrangian(share=0.95)},
    "mangasarian2001lsvm",
    defaults=_UNLIMITED,
    example=("C=0.1", "loss", "'squared_hinge'"),
)
def lsvm(**parameters: Any) -> LinearSVC:
    """LSVM: the linear SVM with squared losses by a fixed-point iteration in the dual.

    Algorithm 1 of the paper, with its step 1.9/nu and its penalised intercept: what the talk of
    Bakir and Chapelle compares Newton's method with, which is :class:`slimsvm.LinearSVC` by itself.

    Notes
    -----
    The paper's nu is twice our C. At a large C it takes very long; ``max_iter`` and ``max_time``
    end it.
    """
    return _configured("lsvm", **parameters)


@_recipe(
    SparseSVC,
    {"loss": "squared_hinge", "basis": "all", "refine": False},
    "chapelle2007primal",
    others=(
        "Of :class:`slimsvm.SparseSVC`, except for loss, basis and refine. n_basis is ignored."
    ),
    example=("C=10.0", "basis", "'all'"),
)
def primal_newton(**parameters: Any) -> SparseSVC:
    """Newton's method in the primal over all rows: the exact solution with the squared hinge."""
    return _configured("primal_newton", **parameters)


@_recipe(
    SparseSVC,
    {"loss": "squared_hinge", "basis": "random", "refine": False},
    "keerthi2006reduced",
    parameters=(_N_BASIS,),
    example=("20", "basis", "'random'"),
)
def random_subset(n_basis: int = 100, **parameters: Any) -> SparseSVC:
    """Newton's method in the primal over the coefficients of random training rows."""
    return _configured("random_subset", n_basis=n_basis, **parameters)


@_recipe(
    SparseSVC,
    {"loss": "squared_hinge", "basis": Greedy(retrain="powers"), "refine": False},
    "keerthi2006reduced",
    parameters=(
        _N_BASIS,
        """\
n_candidates : int or None, default=59
    Random rows of which the best joins, p in the talk; None: all rows.
alone : bool, default=False
    Whether only the new coefficient moves in the virtual step, as in [1]_, and not all of them.
retrain : {'powers', 'always'}, default='powers'
    When the model is trained anew: before the i-th vector joins, i a power of 2; or after every
    vector.""",
    ),
    example=("20", "loss", "'squared_hinge'"),
)
def greedy_subset(
    n_basis: int = 100,
    *,
    n_candidates: int | None = 59,
    alone: bool = False,
    retrain: str = "powers",
    **parameters: Any,
) -> SparseSVC:
    """Newton's method in the primal over the coefficients of training rows chosen one by one.

    The "final algorithm" of Bakir and Chapelle's talk "Tricks of the trade for training SVMs": each
    is the one of ``n_candidates`` random rows whose virtual Newton step lowers the objective most;
    in between, the solution follows by rank-one updates that assume the same support vectors.

    Notes
    -----
    The talk leaves p open. C multiplies the sum of the squared losses beside 1/2 |w|^2; the talk's
    C is twice ours.
    """
    basis = Greedy(n_candidates=n_candidates, alone=alone, retrain=retrain)
    return _configured("greedy_subset", {"basis": basis}, n_basis=n_basis, **parameters)


@_recipe(
    SparseSVC,
    {
        "loss": "squared_hinge",
        "basis": Margin(n_candidates=None, retrain="always"),
        "refine": False,
    },
    "keerthi2006reduced",
    parameters=(
        _N_BASIS,
        """\
n_candidates : int or None, default=None
    Random rows among which the smallest is looked for; None: all rows.""",
    ),
    example=("20", "loss", "'squared_hinge'"),
)
def margin_subset(
    n_basis: int = 100, *, n_candidates: int | None = None, **parameters: Any
) -> SparseSVC:
    """Newton's method in the primal over training rows with the smallest decision values.

    "Margin" of Bakir and Chapelle's talk "Tricks of the trade for training SVMs": after every
    training the row nearest to the decision border joins.
    """
    basis = Margin(n_candidates=n_candidates, retrain="always")
    return _configured("margin_subset", {"basis": basis}, n_basis=n_basis, **parameters)


@_recipe(
    SparseSVC,
    {"loss": "squared_hinge", "basis": Unsupervised(n_candidates=None), "refine": False},
    "keerthi2006reduced",
    parameters=(
        _N_BASIS,
        """\
n_candidates : int or None, default=None
    Random rows among which the farthest is looked for; None: all rows.""",
    ),
    example=("20", "loss", "'squared_hinge'"),
)
def unsupervised_subset(
    n_basis: int = 100, *, n_candidates: int | None = None, **parameters: Any
) -> SparseSVC:
    """Newton's method in the primal over training rows far from the span of those before them.

    "Unsupervised" of Bakir and Chapelle's talk "Tricks of the trade for training SVMs": of all rows
    the one at the largest distance in feature space joins.
    """
    basis = Unsupervised(n_candidates=n_candidates)
    return _configured("unsupervised_subset", {"basis": basis}, n_basis=n_basis, **parameters)


# -- decomposition of the exact dual problem -------------------------------------------------------


@_recipe(
    SVC,
    {"solver": SVMLight(), "tol": 0.001},
    "joachims1999svmlight",
    parameters=(
        """\
working_set : int, default=10
    Variables in a working set, q: even, from 2 to the number of rows.
history : int, default=100
    Iterations in which the multiplier estimate of a variable at a bound must be positive before it
    leaves the problem, h.
cache_size : float, default=40
    Megabytes for kernel rows.
eps : float, default=0.001
    Within which the Kuhn-Tucker conditions hold at the end.
selection : {'steepest', 'basic'}
    The steepest feasible direction, or any variables that violate in place of half of the set.
shrinking : bool, default=True
    Whether variables leave the problem.
inner : {'interior_point', 'smo'}
    How the problem in the working set is solved.
new_variables : int, optional
    New variables in each iteration, from 1 to q; by default q, or half of them for 'basic'.
prefer_cached : bool, default=False
    At least half of the working set has its kernel rows cached (the rule for Ohsumed).""",
    ),
    others=(
        "Of :class:`slimsvm.SVC`, except for solver and tol. max_iter limits the iterations; "
        "shrinking is that of the solver."
    ),
    example=("C=10.0", "cache_size", "40"),
)
def svm_light(
    working_set: int = 10,
    history: int = 100,
    cache_size: float = 40,
    eps: float = 0.001,
    selection: str = "steepest",
    shrinking: bool = True,
    inner: str = "interior_point",
    *,
    new_variables: int | None = None,
    prefer_cached: bool = False,
    **parameters: Any,
) -> SVC:
    """SVM-light as it was published: decomposition with small working sets, at every size.

    Sections 2 to 5 of the paper; see :class:`slimsvm.solvers.svm_light.SVMLight` for what it leaves
    open.

    Notes
    -----
    The extraction of the text has lost most of its digits: q = 10, h = 100, 40 megabytes and eps =
    0.001 are the settings of the printed paper. :class:`slimsvm.SVC` by itself has working sets of
    a thousand variables, and is many times faster.
    """
    solver = SVMLight(
        working_set=working_set,
        new_variables=new_variables,
        selection=selection,
        prefer_cached=prefer_cached,
        shrinking=shrinking,
        history=history,
        inner=inner,
    )
    made = {"solver": solver, "tol": eps}
    return _configured("svm_light", made, cache_size=cache_size, **parameters)


@_recipe(
    SVC,
    {"solver": PlattSMO()},
    "platt1998smo",
    parameters=(
        """\
progress : float, default=0.001
    The least relative change of a variable that counts as a step: eps in the paper. A smaller one
    ends nearer to the optimum.
seed : int, default=0
    Of the random places from which on second variables are tried.""",
    ),
    others=(
        "Of :class:`slimsvm.SVC`, except for solver. tol is the paper's, and max_iter limits steps "
        "of two variables; cache_size and shrinking have no meaning here."
    ),
    example=("C=10.0", "tol", "0.001"),
)
def smo(progress: float = 0.001, seed: int = 0, **parameters: Any) -> SVC:
    """Sequential minimal optimisation as Platt published it: two variables at a time.

    They are chosen by its heuristics, with a cache of errors and none of kernel rows; see
    :class:`slimsvm.solvers.platt_smo.PlattSMO`. ``svm_light(2)`` has working sets of two with the
    steepest direction.
    """
    return _configured("smo", {"solver": PlattSMO(progress=progress, seed=seed)}, **parameters)


@_recipe(
    SVC,
    {"solver": DualChunking()},
    "boser1992",
    "osuna1997",
    parameters=(
        """\
chunk : int, default=500
    Rows in the first chunk, and how many violators join at most.
inner : {'interior_point', 'smo'}
    How the problem of a chunk is solved.
cache_size : float, default=2000
    Megabytes for the matrices of a chunk.
seed : int, default=0
    Of the first chunk.""",
    ),
    others=(
        "Of :class:`slimsvm.SVC`, except for solver. max_iter limits chunks; shrinking has no "
        "meaning here."
    ),
    example=("C=10.0", "cache_size", "2000"),
)
def chunking(
    chunk: int = 500,
    inner: str = "interior_point",
    *,
    cache_size: float = 2000,
    seed: int = 0,
    **parameters: Any,
) -> SVC:
    """Chunking: quadratic problems over all support vectors found and the worst violators.

    See :class:`slimsvm.solvers.dual_chunking.DualChunking` for what the papers leave open.
    """
    solver = DualChunking(chunk=chunk, inner=inner, seed=seed)
    return _configured("chunking", {"solver": solver}, cache_size=cache_size, **parameters)


# -- cutting planes --------------------------------------------------------------------------------


@_recipe(
    LinearSVC,
    {"loss": "hinge", "fit_intercept": False, "solver": _PLANES},
    "joachims2006linear",
    "joachims2009cpsp",
    defaults={"tol": 1e-3, **_UNLIMITED},
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
    return _configured("linear_cutting_plane", **parameters)


@_recipe(
    StructuralSVM,
    {
        "space": "sampled",
        "sampling": "constant_time",
        "line_search": False,
        "solver": _SAMPLED,
    },
    "yu2008sampled",
    defaults=_UNLIMITED,
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
    return _configured(
        "sampled_cuts_constant", oracle=oracle, sample_size=sample_size, **parameters
    )


@_recipe(
    StructuralSVM,
    {"space": "sampled", "sampling": "linear_time", "line_search": False, "solver": _SAMPLED},
    "yu2008sampled",
    defaults=_UNLIMITED,
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
    return _configured("sampled_cuts_linear", oracle=oracle, sample_size=sample_size, **parameters)


@_recipe(
    StructuralSVM,
    {"space": "kernel", "line_search": False, "solver": _PLANES},
    "joachims2009structural",
    "joachims2009cpsp",
    defaults=_UNLIMITED,
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
    return _configured("kernel_cutting_plane", oracle=oracle, **parameters)


# -- reduced SVMs and incomplete Cholesky factors --------------------------------------------------


@_recipe(
    ReducedSVC,
    {"solver": RSVM("smooth", beta=5.0)},
    "lee2001rsvm",
    "lin2003rsvm",
    parameters=(_SHARE, _PENALTY, _BETA),
    example=("C=32.0", "C", "32.0"),
)
def rsvm_smooth(
    n_basis: int | float = 0.1, *, penalty: str = "norm", beta: float = 5.0, **parameters: Any
) -> ReducedSVC:
    """RSVM by the smooth SVM: a smooth hinge with beta = 5, Newton's method and Armijo's rule.

    Notes
    -----
    C multiplies the sum of the squared losses, as in [2]_; the nu of [1]_ is twice ours. tol is the
    norm of the gradient at the end. See :mod:`slimsvm.solvers.rsvm` for what is left open.
    """
    made = {"solver": RSVM("smooth", penalty=penalty, beta=beta)}
    return _configured("rsvm_smooth", made, n_basis=n_basis, **parameters)


@_recipe(
    ReducedSVC,
    {"solver": RSVM("least_squares")},
    "suykens1999lssvm",
    "lin2003rsvm",
    parameters=(_SHARE, _PENALTY),
    example=("C=32.0", "C", "32.0"),
)
def rsvm_least_squares(
    n_basis: int | float = 0.1, *, penalty: str = "norm", **parameters: Any
) -> ReducedSVC:
    """RSVM with equalities in place of inequalities.

    It has another loss, and one linear system for each pair of classes.
    """
    made = {"solver": RSVM("least_squares", penalty=penalty)}
    return _configured("rsvm_least_squares", made, n_basis=n_basis, **parameters)


@_recipe(
    ReducedSVC,
    {"solver": RSVM("lagrangian")},
    "mangasarian2001lsvm",
    "lin2003rsvm",
    parameters=(_SHARE, _PENALTY, _STEP),
    example=("C=32.0", "C", "32.0"),
)
def rsvm_lagrangian(
    n_basis: int | float = 0.1,
    *,
    penalty: str = "norm",
    beta: float | None = None,
    **parameters: Any,
) -> ReducedSVC:
    """RSVM by the Lagrangian SVM: a fixed-point iteration in the dual, slow for large C.

    Notes
    -----
    C multiplies the sum of the squared losses, as in [2]_; the nu of [1]_ is twice ours. tol is the
    relative duality gap at the end. See :mod:`slimsvm.solvers.rsvm` for what is left open.
    """
    made = {"solver": RSVM("lagrangian", penalty=penalty, beta=beta)}
    return _configured("rsvm_lagrangian", made, n_basis=n_basis, **parameters)


@_recipe(
    ReducedSVC,
    {"solver": RSVM("decomposition")},
    "lin2003rsvm",
    parameters=(_SHARE_OF_IT, _PENALTY, _WORKING_SET),
    example=("C=32.0", "C", "32.0"),
)
def rsvm_decomposition(
    n_basis: int | float = 0.1,
    *,
    penalty: str = "norm",
    working_set: int = 10,
    **parameters: Any,
) -> ReducedSVC:
    """RSVM by decomposition of the dual: working sets of q variables, and an O(l m) update.

    Notes
    -----
    tol is the largest violation of a condition at the end. It takes very long where C is large, as
    it did in the slides (16,152 seconds for ijcnn1); ``ReducedSVC(solver="decomposition")`` has
    working sets that grow, and solves the same problem. See :mod:`slimsvm.solvers.fixed_sets` for
    what is left open.
    """
    made = {"solver": RSVM("decomposition", penalty=penalty, working_set=working_set)}
    return _configured("rsvm_decomposition", made, n_basis=n_basis, **parameters)


@_recipe(
    SVC,
    {"solver": SVMLight(working_set=2, inner="smo", loss="squared_hinge")},
    "lin2003rsvm",
    others=(
        "Of :class:`slimsvm.SVC`, except for solver. C multiplies the sum of the squared losses; "
        "max_iter limits the pair steps."
    ),
    example=("C=10.0", "C", "10.0"),
)
def libsvm_q(**parameters: Any) -> SVC:
    """The exact SVM with squared losses, by decomposition: libsvm-q of the slides.

    Its dual has Q + I/(2C) in place of Q, and no upper bounds. Working sets are pairs, those that
    violate most, with a cache of rows and shrinking, as in the LIBSVM of that time; several classes
    are pairs of classes that vote.

    Notes
    -----
    The slides do not say how libsvm-q was made. h = 100 iterations of shrinking are SVM-light's.
    """
    return _configured("libsvm_q", **parameters)


@_recipe(
    LowRankSVC,
    {"factorization": ICFSVM("threshold"), "retrain": False, "fit_intercept": False},
    "lin2000icf",
    parameters=(_ENTRIES, _WORKING_SET),
    example=("50", "rank", "50"),
)
def icf_threshold(
    rank: int | float = 0.1, *, working_set: int = 10, **parameters: Any
) -> LowRankSVC:
    """The dual problem on an incomplete Cholesky factor with few entries (ICF 1 of lin2003rsvm).

    The factor keeps the largest entries of each column.
    """
    made = {"factorization": ICFSVM("threshold", working_set=working_set)}
    return _configured("icf_threshold", made, rank=rank, **parameters)


@_recipe(
    LowRankSVC,
    {"factorization": ICFSVM("pivoted"), "retrain": False, "fit_intercept": False},
    "fine2001",
    parameters=(_COLUMNS, _WORKING_SET),
    example=("50", "rank", "50"),
)
def icf_pivoted(rank: int | float = 0.1, *, working_set: int = 10, **parameters: Any) -> LowRankSVC:
    """The dual problem on a pivoted incomplete Cholesky factor (ICF 2 of lin2003rsvm).

    The pivoting is symmetric.
    """
    made = {"factorization": ICFSVM("pivoted", working_set=working_set)}
    return _configured("icf_pivoted", made, rank=rank, **parameters)


@_recipe(
    LowRankSVC,
    {"factorization": ICFSVM("pivoted"), "retrain": True, "fit_intercept": False},
    "fine2001",
    parameters=(_COLUMNS, _WORKING_SET),
    example=("50", "retrain", "True"),
)
def icf_retrain(rank: int | float = 0.1, *, working_set: int = 10, **parameters: Any) -> LowRankSVC:
    """The exact SVM on the support vectors found with a pivoted incomplete Cholesky factor.

    This is the retraining of lin2003rsvm.
    """
    made = {"factorization": ICFSVM("pivoted", working_set=working_set)}
    return _configured("icf_retrain", made, rank=rank, **parameters)


# -- subsets, streams and balls --------------------------------------------------------------------


@_recipe(
    CrossTraining,
    {"balanced_subsets": True, "held_out": False, "refit_intercept": False},
    "bakir2005crosstraining",
    parameters=(
        """\
n_subsets : int, default=5
    Number of subsets, s.
subset_size : int or float, default=0.2
    Rows in a subset, N2, half from each class: a number, or a share. The paper's are from 18 % to
    half of the rows.
discard : {'both', 'noise', 'redundant'}, default='both'
    Steps 4 and 5, or one of them alone: 'noise' is editing, 'redundant' condensing.
warm_start_dual : bool, default=False
    Discard nothing: begin with multipliers and a kernel cache that the mean margins suggest, the
    talk's guess.
n_jobs : int, optional
    Subsets that are trained at the same time.
random_state : int, RandomState or None, default=None
    Draws the subsets.""",
    ),
    others="Of :class:`slimsvm.SVC`.",
    example=("C=10.0", "estimator__C", "10.0"),
)
def cross_training(
    n_subsets: int = 5,
    subset_size: float = 0.2,
    *,
    discard: str = "both",
    warm_start_dual: bool = False,
    n_jobs: int | None = None,
    random_state: Any = None,
    **parameters: Any,
) -> CrossTraining:
    """Cross-training: an SVM without the rows that SVMs on subsets find noisy or redundant.

    Algorithm 1 of Bakir and Chapelle's talk "Tricks of the trade for training SVMs".

    Notes
    -----
    Left open: what happens to rows that are there twice (they are one, with the sum of their
    weights), to a class with fewer than N2/2 rows (it gives all), and to one that would vanish (it
    keeps rows near the margin). How the mean margins are to make multipliers and a cache, the talk
    does not say either: rows with m_i < 0 begin at their bound, and kernel rows of those with m_i <
    1 are computed first, the smallest m_i first. :class:`slimsvm.CrossTraining` by itself has
    subsets with the shares of the classes, and judges rows by models that have not seen them.
    """
    fixed = _ROWS["cross_training"].fixed
    given = {name: parameters.pop(name) for name in fixed if name in parameters}
    if discard not in DISCARDS:
        known = ", ".join(map(repr, DISCARDS))
        raise ValueError(f"discard={discard!r} is not one of {known}.")
    return _configured(
        "cross_training",
        estimator=SVC(**parameters),
        n_subsets=n_subsets,
        subset_size=subset_size,
        discard=replace(Discard.named(discard), beyond=0.0),
        warm_start_dual=warm_start_dual,
        n_jobs=n_jobs,
        random_state=random_state,
        **given,
    )


@_recipe(
    OnlineSVC,
    {
        "selection": "random",
        "max_support": None,
        "finishing": True,
        "epochs": 1,
        "solver": OnlineRounds(),
    },
    "bordes2005lasvm",
    example=("C=10.0", "epochs", "1"),
)
def lasvm(**parameters: Any) -> OnlineSVC:
    """LASVM: one pass over the rows in random order, then the exact solution over the expansion.

    Section 3 of the paper: PROCESS and REPROCESS for each row, one after the other, and the
    finishing.

    Notes
    -----
    Left open: the number of rows to begin with (here five of each class). The finishing is
    decomposition, which ends where REPROCESS without end would. :class:`slimsvm.OnlineSVC` by
    itself takes rows in batches, and chooses pairs by second-order information.
    """
    return _configured("lasvm", **parameters)


@_recipe(
    OnlineSVC,
    {
        "selection": "margin",
        "max_support": None,
        "finishing": True,
        "epochs": 1,
        "solver": OnlineRounds(),
    },
    "bordes2005lasvm",
    "joachims2009cpsp",
    example=("C=10.0", "selection", "'margin'"),
)
def lasvm_active(**parameters: Any) -> OnlineSVC:
    """LASVM with margin-based active selection and finishing, the rival of [2]_.

    Each round takes the one of 50 random rows, of all that were not taken, whose decision value is
    smallest. ``max_iter`` limits the rows that are taken, and so the support vectors.

    Notes
    -----
    As for :func:`lasvm`. Left open: where the rounds end, if not by max_iter. Here, when none of
    the 50 lies within the margin.
    """
    return _configured("lasvm_active", **parameters)


@_recipe(
    CoreVectorSVC,
    {"ball": "minimum", "solver": CoreRounds()},
    "tsang2005cvm",
    example=("C=10.0", "ball", "'minimum'"),
)
def cvm(**parameters: Any) -> CoreVectorSVC:
    """CVM: the smallest ball around the rows, from a core set of them.

    The algorithm of section 4 of the paper: each round the farthest of 59 random rows joins the
    core set if it is outside of the (1 + eps) ball, and the ball of the core set is found anew.

    Notes
    -----
    C multiplies the sum of the losses, as everywhere in slimsvm; the paper's C is twice ours. Left
    open: where none of the 59 is outside, all rows are looked at. :class:`slimsvm.CoreVectorSVC` by
    itself looks at pools of rows, takes several at a time, and solves few rows at once.
    """
    return _configured("cvm", **parameters)


@_recipe(
    CoreVectorSVC,
    {"ball": "fixed", "solver": CoreRounds()},
    "tsang2007bvm",
    example=("C=10.0", "ball", "'fixed'"),
)
def bvm(**parameters: Any) -> CoreVectorSVC:
    """BVM: a ball of a fixed radius, which far points pull to themselves.

    Algorithm 2 of the paper, with eps = 1/2, 1/4, ... down to the one that is wanted: each round
    the farthest of 59 random rows pulls the centre if it is outside of the (1 + eps) ball.

    Notes
    -----
    C as for :func:`cvm`. Left open: where none of the 59 is outside, all rows are looked at.
    """
    return _configured("bvm", **parameters)
