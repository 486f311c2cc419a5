"""Reduced SVMs, and dual problems on incomplete Cholesky factors."""

from __future__ import annotations

from typing import Any

from slimsvm.estimators.low_rank import LowRankSVC
from slimsvm.estimators.reduced import ReducedSVC
from slimsvm.recipes.table import configured, recipe
from slimsvm.solvers.low_rank import ICFSVM
from slimsvm.solvers.rsvm import RSVM

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
_ENTRIES = """\
rank : int or float, default=0.1
    Entries in each column: a number, or a share of the rows."""
_COLUMNS = """\
rank : int or float, default=0.1
    Columns of the factor: a number, or a share of the rows."""


def _reduced(kind: str, *papers: str, parameters: tuple[str, ...], **options: Any) -> Any:
    """A recipe for a reduced SVM, whose problem is solved in one of four ways."""
    return recipe(
        ReducedSVC,
        {"solver": RSVM(kind, **options)},
        *papers,
        parameters=parameters,
        example=("C=32.0", "C", "32.0"),
    )


@_reduced("smooth", "lee2001rsvm", "lin2003rsvm", parameters=(_SHARE, _PENALTY, _BETA), beta=5.0)
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
    return configured("rsvm_smooth", made, n_basis=n_basis, **parameters)


@_reduced("least_squares", "suykens1999lssvm", "lin2003rsvm", parameters=(_SHARE, _PENALTY))
def rsvm_least_squares(
    n_basis: int | float = 0.1, *, penalty: str = "norm", **parameters: Any
) -> ReducedSVC:
    """RSVM with equalities in place of inequalities.

    It has another loss, and one linear system for each pair of classes.
    """
    made = {"solver": RSVM("least_squares", penalty=penalty)}
    return configured("rsvm_least_squares", made, n_basis=n_basis, **parameters)


@_reduced("lagrangian", "mangasarian2001lsvm", "lin2003rsvm", parameters=(_SHARE, _PENALTY, _STEP))
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
    return configured("rsvm_lagrangian", made, n_basis=n_basis, **parameters)


@_reduced("decomposition", "lin2003rsvm", parameters=(_SHARE_OF_IT, _PENALTY, _WORKING_SET))
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
    return configured("rsvm_decomposition", made, n_basis=n_basis, **parameters)


def _on_a_factor(kind: str, retrain: bool, paper: str, rank: str, shown: tuple[str, str]) -> Any:
    """A recipe for the dual problem on an incomplete Cholesky factor."""
    return recipe(
        LowRankSVC,
        {"factorization": ICFSVM(kind), "retrain": retrain, "fit_intercept": False},
        paper,
        parameters=(rank, _WORKING_SET),
        example=("50", *shown),
    )


def _factored(name: str, kind: str, rank: float, working_set: int, given: dict[str, Any]) -> Any:
    made = {"factorization": ICFSVM(kind, working_set=working_set)}
    return configured(name, made, rank=rank, **given)


@_on_a_factor("threshold", False, "lin2000icf", _ENTRIES, shown=("rank", "50"))
def icf_threshold(
    rank: int | float = 0.1, *, working_set: int = 10, **parameters: Any
) -> LowRankSVC:
    """The dual problem on an incomplete Cholesky factor with few entries (ICF 1 of lin2003rsvm).

    The factor keeps the largest entries of each column.
    """
    return _factored("icf_threshold", "threshold", rank, working_set, parameters)


@_on_a_factor("pivoted", False, "fine2001", _COLUMNS, shown=("rank", "50"))
def icf_pivoted(rank: int | float = 0.1, *, working_set: int = 10, **parameters: Any) -> LowRankSVC:
    """The dual problem on a pivoted incomplete Cholesky factor (ICF 2 of lin2003rsvm).

    The pivoting is symmetric.
    """
    return _factored("icf_pivoted", "pivoted", rank, working_set, parameters)


@_on_a_factor("pivoted", True, "fine2001", _COLUMNS, shown=("retrain", "True"))
def icf_retrain(rank: int | float = 0.1, *, working_set: int = 10, **parameters: Any) -> LowRankSVC:
    """The exact SVM on the support vectors found with a pivoted incomplete Cholesky factor.

    This is the retraining of lin2003rsvm.
    """
    return _factored("icf_retrain", "pivoted", rank, working_set, parameters)
