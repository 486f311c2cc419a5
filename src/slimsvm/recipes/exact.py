"""The exact SVM, by decomposition of its dual problem."""

from __future__ import annotations

from typing import Any

from slimsvm.estimators.classification import SVC
from slimsvm.recipes.table import configured, recipe
from slimsvm.solvers.dual_chunking import DualChunking
from slimsvm.solvers.platt_smo import PlattSMO
from slimsvm.solvers.svm_light import SVMLight

_OF_SVC = "Of :class:`slimsvm.SVC`, except for solver"


@recipe(
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
    New variables in each iteration, from 2 to q; by default q, or half of them for 'basic'.
prefer_cached : bool, default=False
    At least half of the working set has its kernel rows cached (the rule for Ohsumed).
threshold : float, default=0
    Above which the multiplier estimates must be for h iterations: "positive (or above some
    threshold)".""",
    ),
    others=f"{_OF_SVC} and tol. max_iter limits the iterations; shrinking is that of the solver.",
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
    threshold: float = 0.0,
    **parameters: Any,
) -> SVC:
    """SVM-light as it was published: decomposition with small working sets, at every size.

    Sections 2 to 5 of the paper; see :class:`slimsvm.solvers.svm_light.SVMLight` for what it leaves
    open.

    Notes
    -----
    The text at hand has lost most of its digits, and its best q is not that of all tasks: q = 10,
    h = 100, 40 megabytes and eps = 0.001 are the defaults of the program SVM-light.
    :class:`slimsvm.SVC` by itself has working sets of a thousand variables, and is many times
    faster.
    """
    solver = SVMLight(
        working_set=working_set,
        new_variables=new_variables,
        selection=selection,
        prefer_cached=prefer_cached,
        shrinking=shrinking,
        history=history,
        threshold=threshold,
        inner=inner,
    )
    made = {"solver": solver, "tol": eps}
    return configured("svm_light", made, cache_size=cache_size, **parameters)


@recipe(
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
    others=f"{_OF_SVC}. tol is the paper's, and max_iter limits steps of two variables; "
    "cache_size and shrinking have no meaning here.",
    example=("C=10.0", "tol", "0.001"),
)
def smo(progress: float = 0.001, seed: int = 0, **parameters: Any) -> SVC:
    """Sequential minimal optimisation as Platt published it: two variables at a time.

    They are chosen by its heuristics, with a cache of errors and none of kernel rows; see
    :mod:`slimsvm.solvers.platt_smo` for what the paper leaves open. ``svm_light(2)`` has working
    sets of two with the steepest direction.
    """
    return configured("smo", {"solver": PlattSMO(progress=progress, seed=seed)}, **parameters)


@recipe(
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
    others=f"{_OF_SVC}. max_iter limits chunks; shrinking has no meaning here.",
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
    return configured("chunking", {"solver": solver}, cache_size=cache_size, **parameters)


@recipe(
    SVC,
    {"solver": SVMLight(working_set=2, inner="smo", loss="squared_hinge")},
    "lin2003rsvm",
    others=f"{_OF_SVC}. C multiplies the sum of the squared losses; max_iter limits the pair "
    "steps.",
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
    return configured("libsvm_q", **parameters)
