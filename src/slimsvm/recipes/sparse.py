"""Sparse models: vectors that are chosen or made, and the best function in their span."""

from __future__ import annotations

from typing import Any

from slimsvm.basis import FixedPoint, Greedy, Margin, PursuitRows, Unsupervised
from slimsvm.estimators.sparse import SparseSVC
from slimsvm.options import one_of
from slimsvm.recipes.table import PLANES, UNLIMITED, configured, recipe

_N_BASIS = """\
n_basis : int, default=100
    Number of basis vectors."""
_SQUARED = ("loss", "'squared_hinge'")


def _by_planes(basis: Any, *papers: str, shown: tuple[str, str]) -> Any:
    """A recipe for the hinge in the span of a basis, by cutting planes and without an intercept."""
    rest = {"refine": False, "fit_intercept": False, "solver": PLANES}
    return recipe(
        SparseSVC,
        {"loss": "hinge", "basis": basis, **rest},
        *papers,
        defaults=UNLIMITED,
        parameters=(_N_BASIS,),
        example=("20", *shown),
    )


def _by_newton(basis: Any, own: str = "", shown: tuple[str, str] = _SQUARED) -> Any:
    """A recipe for the squared hinge over training rows that a basis chooses, in the primal."""
    return recipe(
        SparseSVC,
        {"loss": "squared_hinge", "basis": basis, "refine": False},
        "keerthi2006reduced",
        parameters=(_N_BASIS, own) if own else (_N_BASIS,),
        example=("20", *shown),
    )


@_by_planes(FixedPoint(), "joachims2009cpsp", shown=("loss", "'hinge'"))
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
    return configured("cpsp", n_basis=n_basis, **parameters)


@_by_planes(
    PursuitRows(n_rows=None, orthogonal=False), "joachims2009cpsp", shown=("loss", "'hinge'")
)
def cpsp_rows(n_basis: int = 100, **parameters: Any) -> SparseSVC:
    """Cutting-plane subspace pursuit with training rows as basis vectors, CPSP(tr) in the paper.

    Algorithm 3 of the paper, where each vector is the best of 59 random rows by <r, phi(b)>^2 /
    k(b, b), r what the basis leaves of the newest cut.

    Notes
    -----
    As for :func:`cpsp`.
    """
    return configured("cpsp_rows", n_basis=n_basis, **parameters)


@_by_planes("random", "williams2001nystrom", "joachims2009cpsp", shown=("basis", "'random'"))
def nystrom(n_basis: int = 100, **parameters: Any) -> SparseSVC:
    """The Nystroem method: random training rows as the basis, and the best SVM in their span.

    The SVM is found by the cutting planes of [2]_, which compares with it; that is also the
    "Cholesky" rival of yu2008sampled: a random subsample, the projection of all rows on its span,
    and a linear SVM on them.
    """
    return configured("nystrom", n_basis=n_basis, **parameters)


@_by_planes("cholesky", "fine2001", "joachims2009cpsp", shown=("basis", "'cholesky'"))
def incomplete_cholesky(n_basis: int = 100, **parameters: Any) -> SparseSVC:
    """IncChol of [2]_: the pivots of the incomplete Cholesky factor as the basis.

    Each is the row that is farthest from the span of those before it; the best SVM in their span is
    found by the cutting planes of [2]_.
    """
    return configured("incomplete_cholesky", n_basis=n_basis, **parameters)


@recipe(
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
    return configured("refined", n_basis=n_basis, **parameters)


@recipe(
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
    return configured("primal_newton", **parameters)


@_by_newton("random", shown=("basis", "'random'"))
def random_subset(n_basis: int = 100, **parameters: Any) -> SparseSVC:
    """Newton's method in the primal over the coefficients of random training rows."""
    return configured("random_subset", n_basis=n_basis, **parameters)


@_by_newton(
    Greedy(retrain="powers"),
    """\
n_candidates : int or None, default=59
    Random rows of which the best joins, p in the talk; None: all rows.
alone : bool, default=False
    Whether only the new coefficient moves in the virtual step, as in [1]_, and not all of them.
retrain : {'powers', 'always'}, default='powers'
    When the model is trained anew: before the i-th vector joins, i a power of 2; or after every
    vector.""",
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
    one_of(("powers", "always"), retrain=retrain)
    basis = Greedy(n_candidates=n_candidates, alone=alone, retrain=retrain)
    return configured("greedy_subset", {"basis": basis}, n_basis=n_basis, **parameters)


@_by_newton(
    Margin(n_candidates=None, retrain="always"),
    """\
n_candidates : int or None, default=None
    Random rows among which the smallest is looked for; None: all rows.""",
)
def margin_subset(
    n_basis: int = 100, *, n_candidates: int | None = None, **parameters: Any
) -> SparseSVC:
    """Newton's method in the primal over training rows with the smallest decision values.

    "Margin" of Bakir and Chapelle's talk "Tricks of the trade for training SVMs": after every
    training the row nearest to the decision border joins.
    """
    basis = Margin(n_candidates=n_candidates, retrain="always")
    return configured("margin_subset", {"basis": basis}, n_basis=n_basis, **parameters)


@_by_newton(
    Unsupervised(n_candidates=None),
    """\
n_candidates : int or None, default=None
    Random rows among which the farthest is looked for; None: all rows.""",
)
def unsupervised_subset(
    n_basis: int = 100, *, n_candidates: int | None = None, **parameters: Any
) -> SparseSVC:
    """Newton's method in the primal over training rows far from the span of those before them.

    "Unsupervised" of Bakir and Chapelle's talk "Tricks of the trade for training SVMs": of all rows
    the one at the largest distance in feature space joins.
    """
    basis = Unsupervised(n_candidates=n_candidates)
    return configured("unsupervised_subset", {"basis": basis}, n_basis=n_basis, **parameters)
