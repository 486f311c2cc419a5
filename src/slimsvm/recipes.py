"""The methods of the papers: one function for each, which returns the configured, unfitted estimator.

A method is a choice of basis, problem and solver, and so a row of a table; :data:`RECIPES` is that
table, each with the key of its paper in docs/refs.bib. Whatever a recipe leaves open (C, kernel,
gamma, weights, limits) is passed on to the estimator; what makes the method is fixed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

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

Kind = TypeVar("Kind")


def cpsp(n_basis: int = 100, **parameters: Any) -> SparseSVC:
    """Cutting-plane subspace pursuit: every cut is projected on a basis that grows by the pre-image of what is left of it.

    Parameters
    ----------
    n_basis : int, default=100
        Number of basis vectors.
    **parameters
        Of :class:`slimsvm.SparseSVC`, except for loss, basis and refine.

    Returns
    -------
    SparseSVC
        Not fitted.

    Notes
    -----
    C multiplies the sum of the losses, as everywhere in slimsvm; the paper's C is n times ours.

    References
    ----------
    .. [1] T. Joachims, C.-N. Yu, "Sparse kernel SVMs via cutting-plane training", Machine Learning
       76, 2009. (joachims2009cpsp)

    Examples
    --------
    >>> from slimsvm.recipes import cpsp
    >>> cpsp(20, C=10.0).get_params()["loss"]
    'hinge'
    """
    return _configured(
        "cpsp",
        SparseSVC,
        {"loss": "hinge", "basis": "pursuit", "refine": False},
        {"n_basis": n_basis, **parameters},
    )


def cpsp_rows(n_basis: int = 100, **parameters: Any) -> SparseSVC:
    """The same with training rows as basis vectors, CPSP(tr) in the paper: each time the best of 59 random ones.

    Parameters
    ----------
    n_basis : int, default=100
        Number of basis vectors.
    **parameters
        Of :class:`slimsvm.SparseSVC`, except for loss, basis and refine.

    Returns
    -------
    SparseSVC
        Not fitted.

    References
    ----------
    .. [1] T. Joachims, C.-N. Yu, "Sparse kernel SVMs via cutting-plane training", Machine Learning
       76, 2009. (joachims2009cpsp)

    Examples
    --------
    >>> from slimsvm.recipes import cpsp_rows
    >>> cpsp_rows(20).get_params()["basis"]
    'pursuit_rows'
    """
    return _configured(
        "cpsp_rows",
        SparseSVC,
        {"loss": "hinge", "basis": "pursuit_rows", "refine": False},
        {"n_basis": n_basis, **parameters},
    )


def nystrom(n_basis: int = 100, **parameters: Any) -> SparseSVC:
    """The Nystroem method: random training rows as the basis, and the support vector machine within their span.

    Parameters
    ----------
    n_basis : int, default=100
        Number of basis vectors.
    **parameters
        Of :class:`slimsvm.SparseSVC`, except for loss, basis and refine.

    Returns
    -------
    SparseSVC
        Not fitted.

    References
    ----------
    .. [1] C. Williams, M. Seeger, "Using the Nystroem method to speed up kernel machines", NIPS 13,
       2001. (williams2001nystrom)

    Examples
    --------
    >>> from slimsvm.recipes import nystrom
    >>> nystrom(20).get_params()["basis"]
    'random'
    """
    return _configured(
        "nystrom",
        SparseSVC,
        {"loss": "hinge", "basis": "random", "refine": False},
        {"n_basis": n_basis, **parameters},
    )


def refined(n_basis: int = 100, **parameters: Any) -> SparseSVC:
    """Basis vectors that are moved, all together, to where the objective is least.

    The coefficients are solved out by Newton's method in the primal (chapelle2007primal,
    keerthi2006reduced).

    Parameters
    ----------
    n_basis : int, default=100
        Number of basis vectors.
    **parameters
        Of :class:`slimsvm.SparseSVC`, except for loss and refine. ``basis`` says where the vectors
        begin.

    Returns
    -------
    SparseSVC
        Not fitted.

    References
    ----------
    .. [1] M. Wu, B. Schoelkopf, G. Bakir, "A direct method for building sparse kernel learning
       algorithms", JMLR 7, 2006. (wu2006direct)

    Examples
    --------
    >>> from slimsvm.recipes import refined
    >>> refined(20, basis="kmeans").get_params()["refine"]
    True
    """
    return _configured(
        "refined",
        SparseSVC,
        {"loss": "squared_hinge", "refine": True},
        {"n_basis": n_basis, **parameters},
    )


def linear_cutting_plane(**parameters: Any) -> LinearSVC:
    """The linear machine by cutting planes with one slack, and the line search of OCAS (franc2008ocas).

    Parameters
    ----------
    **parameters
        Of :class:`slimsvm.LinearSVC`, except for loss.

    Returns
    -------
    LinearSVC
        Not fitted.

    References
    ----------
    .. [1] T. Joachims, "Training linear SVMs in linear time", KDD 2006. (joachims2006linear)

    Examples
    --------
    >>> from slimsvm.recipes import linear_cutting_plane
    >>> linear_cutting_plane(C=0.1).get_params()["loss"]
    'hinge'
    """
    return _configured("linear_cutting_plane", LinearSVC, {"loss": "hinge"}, parameters)


def sampled_cuts_constant(
    sample_size: int = 400, *, oracle: StructuredOracle | None = None, **parameters: Any
) -> StructuralSVM:
    """Structural machines with kernels in constant time: every cut is made of a few examples, and nothing else is looked at.

    Parameters
    ----------
    sample_size : int, default=400
        Examples drawn for each cut, r in the paper.
    oracle : StructuredOracle, optional
        What is predicted; by default two classes.
    **parameters
        Of :class:`slimsvm.StructuralSVM`, except for space and sampling.

    Returns
    -------
    StructuralSVM
        Not fitted.

    Notes
    -----
    C multiplies the sum of the losses, as everywhere in slimsvm; the paper's C is n times ours.

    References
    ----------
    .. [1] C.-N. J. Yu, T. Joachims, "Training structural SVMs with kernels using sampled cuts", KDD
       2008. (yu2008sampled)

    Examples
    --------
    >>> from slimsvm.recipes import sampled_cuts_constant
    >>> sampled_cuts_constant(1000).get_params()["sampling"]
    'constant_time'
    """
    given = {
        "oracle": Binary() if oracle is None else oracle,
        "sample_size": sample_size,
        **parameters,
    }
    return _configured(
        "sampled_cuts_constant",
        StructuralSVM,
        {"space": "sampled", "sampling": "constant_time"},
        given,
    )


def sampled_cuts_linear(
    sample_size: int = 400, *, oracle: StructuredOracle | None = None, **parameters: Any
) -> StructuralSVM:
    """Structural machines with kernels in linear time: the worst outputs of all examples, and a cut of a few of those that are violated.

    Parameters
    ----------
    sample_size : int, default=400
        Examples drawn for each cut, r in the paper.
    oracle : StructuredOracle, optional
        What is predicted; by default two classes.
    **parameters
        Of :class:`slimsvm.StructuralSVM`, except for space, sampling and line_search.

    Returns
    -------
    StructuralSVM
        Not fitted.

    Notes
    -----
    C multiplies the sum of the losses, as everywhere in slimsvm; the paper's C is n times ours.
    :class:`slimsvm.StructuralSVM` by itself also moves the best point by a line search, which the
    paper names as future work (franc2008ocas); here there is none. What differs from the paper:
    where no more than ``sample_size`` examples are violated all of them are taken, and a sample is
    drawn again ten times at most.

    References
    ----------
    .. [1] C.-N. J. Yu, T. Joachims, "Training structural SVMs with kernels using sampled cuts", KDD
       2008. (yu2008sampled)

    Examples
    --------
    >>> from slimsvm.recipes import sampled_cuts_linear
    >>> sampled_cuts_linear(1000).get_params()["sampling"]
    'linear_time'
    """
    given = {
        "oracle": Binary() if oracle is None else oracle,
        "sample_size": sample_size,
        **parameters,
    }
    return _configured(
        "sampled_cuts_linear",
        StructuralSVM,
        {"space": "sampled", "sampling": "linear_time", "line_search": False},
        given,
    )


def kernel_cutting_plane(
    *, oracle: StructuredOracle | None = None, **parameters: Any
) -> StructuralSVM:
    """The structural machine by cutting planes with one slack, over all rows with kernels: exact, for few rows.

    Parameters
    ----------
    oracle : StructuredOracle, optional
        What is predicted; by default two classes.
    **parameters
        Of :class:`slimsvm.StructuralSVM`, except for space.

    Returns
    -------
    StructuralSVM
        Not fitted.

    Notes
    -----
    What differs from the paper: the best point moves by a line search (franc2008ocas), which leads
    to the same optimum in fewer rounds; ``line_search=False`` leaves it out.

    References
    ----------
    .. [1] T. Joachims, T. Finley, C.-N. J. Yu, "Cutting-plane training of structural SVMs", Machine
       Learning 77, 2009. (joachims2009structural)

    Examples
    --------
    >>> from slimsvm.recipes import kernel_cutting_plane
    >>> kernel_cutting_plane(C=0.1).get_params()["space"]
    'kernel'
    """
    given = {"oracle": Binary() if oracle is None else oracle, **parameters}
    return _configured("kernel_cutting_plane", StructuralSVM, {"space": "kernel"}, given)


def rsvm_smooth(n_basis: int | float = 0.1, **parameters: Any) -> ReducedSVC:
    """RSVM by the smooth SVM: a smooth hinge with beta = 5, and Newton's method.

    Parameters
    ----------
    n_basis : int or float, default=0.1
        Number of basis vectors of each pair of classes, or their share of its rows: a tenth, as in
        [2]_.
    **parameters
        Of :class:`slimsvm.ReducedSVC`, except for solver and beta.

    Returns
    -------
    ReducedSVC
        Not fitted.

    Notes
    -----
    C multiplies the sum of the squared losses, as in [2]_; the nu of [1]_ is twice ours.

    References
    ----------
    .. [1] Y.-J. Lee, O. L. Mangasarian, "RSVM: Reduced support vector machines", SDM 2001.
       (lee2001rsvm)
    .. [2] K.-M. Lin, C.-J. Lin, "A study on reduced support vector machines", IEEE Transactions on
       Neural Networks 14, 2003. (lin2003rsvm)

    Examples
    --------
    >>> from slimsvm.recipes import rsvm_smooth
    >>> rsvm_smooth(C=32.0).get_params()["solver"]
    'smooth'
    """
    return _configured(
        "rsvm_smooth",
        ReducedSVC,
        {"solver": "smooth", "beta": 5.0},
        {"n_basis": n_basis, **parameters},
    )


def rsvm_least_squares(n_basis: int | float = 0.1, **parameters: Any) -> ReducedSVC:
    """RSVM with equalities in place of inequalities: another loss, and one linear system for each pair of classes.

    Parameters
    ----------
    n_basis : int or float, default=0.1
        Number of basis vectors of each pair of classes, or their share of its rows: a tenth, as in
        [2]_.
    **parameters
        Of :class:`slimsvm.ReducedSVC`, except for solver.

    Returns
    -------
    ReducedSVC
        Not fitted.

    References
    ----------
    .. [1] J. A. K. Suykens, J. Vandewalle, "Least squares support vector machine classifiers",
       1999. (suykens1999lssvm)
    .. [2] K.-M. Lin, C.-J. Lin, "A study on reduced support vector machines", IEEE Transactions on
       Neural Networks 14, 2003. (lin2003rsvm)

    Examples
    --------
    >>> from slimsvm.recipes import rsvm_least_squares
    >>> rsvm_least_squares(C=32.0).get_params()["solver"]
    'least_squares'
    """
    return _configured(
        "rsvm_least_squares",
        ReducedSVC,
        {"solver": "least_squares"},
        {"n_basis": n_basis, **parameters},
    )


def rsvm_lagrangian(n_basis: int | float = 0.1, **parameters: Any) -> ReducedSVC:
    """RSVM by the Lagrangian SVM: a fixed-point iteration in the dual, slower than the others for large C.

    Parameters
    ----------
    n_basis : int or float, default=0.1
        Number of basis vectors of each pair of classes, or their share of its rows: a tenth, as in
        [2]_.
    **parameters
        Of :class:`slimsvm.ReducedSVC`, except for solver.

    Returns
    -------
    ReducedSVC
        Not fitted.

    Notes
    -----
    C multiplies the sum of the squared losses, as in [2]_; the nu of [1]_ is twice ours. The
    paper's step 1.9/nu is just below the limit of convergence. With a beta, below 1/C = 2/nu here
    too, the iteration is that of [1]_; without, it begins as that at beta = 1/(2 C) = 1/nu does,
    and its metric learns from its moves.

    References
    ----------
    .. [1] O. L. Mangasarian, D. R. Musicant, "Lagrangian support vector machines", JMLR 1, 2001.
       (mangasarian2001lsvm)
    .. [2] K.-M. Lin, C.-J. Lin, "A study on reduced support vector machines", IEEE Transactions on
       Neural Networks 14, 2003. (lin2003rsvm)

    Examples
    --------
    >>> from slimsvm.recipes import rsvm_lagrangian
    >>> rsvm_lagrangian(C=32.0).get_params()["solver"]
    'lagrangian'
    """
    return _configured(
        "rsvm_lagrangian", ReducedSVC, {"solver": "lagrangian"}, {"n_basis": n_basis, **parameters}
    )


def rsvm_decomposition(n_basis: int | float = 0.1, **parameters: Any) -> ReducedSVC:
    """RSVM by decomposition of the dual: working sets that grow until they hold all support vectors.

    Parameters
    ----------
    n_basis : int or float, default=0.1
        Number of basis vectors of each pair of classes, or their share of its rows: a tenth, as in
        [1]_.
    **parameters
        Of :class:`slimsvm.ReducedSVC`, except for solver.

    Returns
    -------
    ReducedSVC
        Not fitted.

    Notes
    -----
    The working sets of [1]_ have a fixed size, and take very long where C is large; those of [2]_
    hold all support vectors.

    References
    ----------
    .. [1] K.-M. Lin, C.-J. Lin, "A study on reduced support vector machines", IEEE Transactions on
       Neural Networks 14, 2003. (lin2003rsvm)
    .. [2] E. Osuna, R. Freund, F. Girosi, "An improved training algorithm for support vector
       machines", 1997. (osuna1997)

    Examples
    --------
    >>> from slimsvm.recipes import rsvm_decomposition
    >>> rsvm_decomposition(C=32.0).get_params()["solver"]
    'decomposition'
    """
    return _configured(
        "rsvm_decomposition",
        ReducedSVC,
        {"solver": "decomposition"},
        {"n_basis": n_basis, **parameters},
    )


def cross_training(
    n_subsets: int = 5,
    subset_size: float = 0.2,
    *,
    n_jobs: int | None = None,
    random_state: Any = None,
    **parameters: Any,
) -> CrossTraining:
    """Cross-training: support vector machines on subsets say which rows are noise or redundant; the final one is trained on the others.

    Parameters
    ----------
    n_subsets : int, default=5
        Number of subsets.
    subset_size : int or float, default=0.2
        Rows in a subset, half from each class: a number, or a share. The paper's are from 18 % to
        half of the rows.
    n_jobs : int, optional
        Subsets that are trained at the same time.
    random_state : int, RandomState or None, default=None
        Draws the subsets.
    **parameters
        Of :class:`slimsvm.SVC`.

    Returns
    -------
    CrossTraining
        Not fitted.

    References
    ----------
    .. [1] G. Bakir, L. Bottou, J. Weston, "Breaking SVM complexity with cross-training", NIPS 17,
       2005. (bakir2005crosstraining)

    Examples
    --------
    >>> from slimsvm.recipes import cross_training
    >>> cross_training(C=10.0).get_params()["estimator__C"]
    10.0
    """
    fixed = {
        "balanced_subsets": True,
        "held_out": False,
        "refit_intercept": False,
        "warm_start_dual": False,
    }
    own = {name: parameters.pop(name) for name in fixed if name in parameters}
    own |= {
        "n_subsets": n_subsets,
        "subset_size": subset_size,
        "n_jobs": n_jobs,
        "random_state": random_state,
    }
    return _configured(
        "cross_training", CrossTraining, fixed, {"estimator": SVC(**parameters), **own}
    )


def primal_newton(**parameters: Any) -> SparseSVC:
    """Newton's method in the primal over all rows: the exact machine with the squared hinge.

    Parameters
    ----------
    **parameters
        Of :class:`slimsvm.SparseSVC`, except for loss, basis and refine. n_basis is ignored.

    Returns
    -------
    SparseSVC
        Not fitted.

    References
    ----------
    .. [1] O. Chapelle, "Training a support vector machine in the primal", Neural Computation 19,
       2007. (chapelle2007primal)

    Examples
    --------
    >>> from slimsvm.recipes import primal_newton
    >>> primal_newton(C=10.0).get_params()["basis"]
    'all'
    """
    return _configured(
        "primal_newton",
        SparseSVC,
        {"loss": "squared_hinge", "basis": "all", "refine": False},
        parameters,
    )


def random_subset(n_basis: int = 100, **parameters: Any) -> SparseSVC:
    """Newton's method in the primal over the coefficients of random training rows.

    Parameters
    ----------
    n_basis : int, default=100
        Number of basis vectors.
    **parameters
        Of :class:`slimsvm.SparseSVC`, except for loss, basis and refine.

    Returns
    -------
    SparseSVC
        Not fitted.

    References
    ----------
    .. [1] S. Keerthi, O. Chapelle, D. DeCoste, "Building support vector machines with reduced
       classifier complexity", JMLR 7, 2006. (keerthi2006reduced)

    Examples
    --------
    >>> from slimsvm.recipes import random_subset
    >>> random_subset(20).get_params()["basis"]
    'random'
    """
    fixed = {"loss": "squared_hinge", "basis": "random", "refine": False}
    return _configured("random_subset", SparseSVC, fixed, {"n_basis": n_basis, **parameters})


def greedy_subset(n_basis: int = 100, **parameters: Any) -> SparseSVC:
    """The same with rows that are chosen: each time the one of 59 random rows whose virtual Newton step lowers the objective most.

    Parameters
    ----------
    n_basis : int, default=100
        Number of basis vectors.
    **parameters
        Of :class:`slimsvm.SparseSVC`, except for loss, basis and refine.

    Returns
    -------
    SparseSVC
        Not fitted.

    References
    ----------
    .. [1] S. Keerthi, O. Chapelle, D. DeCoste, "Building support vector machines with reduced
       classifier complexity", JMLR 7, 2006. (keerthi2006reduced)

    Examples
    --------
    >>> from slimsvm.recipes import greedy_subset
    >>> greedy_subset(20).get_params()["basis"]
    'greedy'
    """
    fixed = {"loss": "squared_hinge", "basis": "greedy", "refine": False}
    return _configured("greedy_subset", SparseSVC, fixed, {"n_basis": n_basis, **parameters})


def icf_threshold(rank: int | float = 0.1, **parameters: Any) -> LowRankSVC:
    """The dual machine on an incomplete Cholesky factor that keeps the largest entries of each column (ICF 1 of lin2003rsvm).

    Parameters
    ----------
    rank : int or float, default=0.1
        Entries in each column: a number, or a share of the rows.
    **parameters
        Of :class:`slimsvm.LowRankSVC`, except for factorization, retrain and fit_intercept.

    Returns
    -------
    LowRankSVC
        Not fitted.

    References
    ----------
    .. [1] C.-J. Lin, R. Saigal, "An incomplete Cholesky factorization for dense symmetric positive
       definite matrices", BIT 40, 2000. (lin2000icf)

    Examples
    --------
    >>> from slimsvm.recipes import icf_threshold
    >>> icf_threshold(50).get_params()["factorization"]
    'threshold'
    """
    fixed = {"factorization": "threshold", "retrain": False, "fit_intercept": False}
    return _configured("icf_threshold", LowRankSVC, fixed, {"rank": rank, **parameters})


def icf_pivoted(rank: int | float = 0.1, **parameters: Any) -> LowRankSVC:
    """The dual machine on an incomplete Cholesky factor with symmetric pivoting (ICF 2 of lin2003rsvm).

    Parameters
    ----------
    rank : int or float, default=0.1
        Columns of the factor: a number, or a share of the rows.
    **parameters
        Of :class:`slimsvm.LowRankSVC`, except for factorization, retrain and fit_intercept.

    Returns
    -------
    LowRankSVC
        Not fitted.

    References
    ----------
    .. [1] S. Fine, K. Scheinberg, "Efficient SVM training using low-rank kernel representations",
       JMLR 2, 2001. (fine2001)

    Examples
    --------
    >>> from slimsvm.recipes import icf_pivoted
    >>> icf_pivoted(50).get_params()["factorization"]
    'pivoted'
    """
    fixed = {"factorization": "pivoted", "retrain": False, "fit_intercept": False}
    return _configured("icf_pivoted", LowRankSVC, fixed, {"rank": rank, **parameters})


def icf_retrain(rank: int | float = 0.1, **parameters: Any) -> LowRankSVC:
    """The exact machine on the support vectors that the machine on a pivoted incomplete Cholesky factor has found (lin2003rsvm).

    Parameters
    ----------
    rank : int or float, default=0.1
        Columns of the factor: a number, or a share of the rows.
    **parameters
        Of :class:`slimsvm.LowRankSVC`, except for factorization, retrain and fit_intercept.

    Returns
    -------
    LowRankSVC
        Not fitted.

    References
    ----------
    .. [1] S. Fine, K. Scheinberg, "Efficient SVM training using low-rank kernel representations",
       JMLR 2, 2001. (fine2001)

    Examples
    --------
    >>> from slimsvm.recipes import icf_retrain
    >>> icf_retrain(50).get_params()["retrain"]
    True
    """
    fixed = {"factorization": "pivoted", "retrain": True, "fit_intercept": False}
    return _configured("icf_retrain", LowRankSVC, fixed, {"rank": rank, **parameters})


def lasvm(**parameters: Any) -> OnlineSVC:
    """LASVM: one pass over the rows in random order, then the exact solution over the expansion.

    Parameters
    ----------
    **parameters
        Of :class:`slimsvm.OnlineSVC`, except for selection, max_support, finishing and epochs.

    Returns
    -------
    OnlineSVC
        Not fitted.

    References
    ----------
    .. [1] A. Bordes, S. Ertekin, J. Weston, L. Bottou, "Fast kernel classifiers with online and
       active learning", JMLR 6, 2005. (bordes2005lasvm)

    Examples
    --------
    >>> from slimsvm.recipes import lasvm
    >>> lasvm(C=10.0).get_params()["epochs"]
    1
    """
    return _configured(
        "lasvm",
        OnlineSVC,
        {"selection": "random", "max_support": None, "finishing": True, "epochs": 1},
        parameters,
    )


def cvm(**parameters: Any) -> CoreVectorSVC:
    """The core vector machine: the smallest ball around the rows, from a core set of them.

    Parameters
    ----------
    **parameters
        Of :class:`slimsvm.CoreVectorSVC`, except for ball.

    Returns
    -------
    CoreVectorSVC
        Not fitted.

    Notes
    -----
    C multiplies the sum of the losses, as everywhere in slimsvm; the paper's C is twice ours.

    References
    ----------
    .. [1] I. W. Tsang, J. T. Kwok, P.-M. Cheung, "Core vector machines: fast SVM training on very
       large data sets", JMLR 6, 2005. (tsang2005cvm)

    Examples
    --------
    >>> from slimsvm.recipes import cvm
    >>> cvm(C=10.0).get_params()["ball"]
    'minimum'
    """
    return _configured("cvm", CoreVectorSVC, {"ball": "minimum"}, parameters)


def bvm(**parameters: Any) -> CoreVectorSVC:
    """The ball vector machine: a ball of a fixed radius, which far points pull to themselves.

    Parameters
    ----------
    **parameters
        Of :class:`slimsvm.CoreVectorSVC`, except for ball.

    Returns
    -------
    CoreVectorSVC
        Not fitted.

    References
    ----------
    .. [1] I. W. Tsang, A. Kocsor, J. T. Kwok, "Simpler core vector machines with enclosing balls",
       ICML 2007. (tsang2007bvm)

    Examples
    --------
    >>> from slimsvm.recipes import bvm
    >>> bvm(C=10.0).get_params()["ball"]
    'fixed'
    """
    return _configured("bvm", CoreVectorSVC, {"ball": "fixed"}, parameters)


RECIPES: dict[str, tuple[Callable[..., Any], str]] = {
    "cpsp": (cpsp, "joachims2009cpsp"),
    "cpsp_rows": (cpsp_rows, "joachims2009cpsp"),
    "nystrom": (nystrom, "williams2001nystrom"),
    "linear_cutting_plane": (linear_cutting_plane, "joachims2006linear"),
    "sampled_cuts_constant": (sampled_cuts_constant, "yu2008sampled"),
    "sampled_cuts_linear": (sampled_cuts_linear, "yu2008sampled"),
    "kernel_cutting_plane": (kernel_cutting_plane, "joachims2009structural"),
    "refined": (refined, "wu2006direct"),
    "cross_training": (cross_training, "bakir2005crosstraining"),
    "rsvm_smooth": (rsvm_smooth, "lee2001rsvm"),
    "rsvm_least_squares": (rsvm_least_squares, "suykens1999lssvm"),
    "rsvm_lagrangian": (rsvm_lagrangian, "mangasarian2001lsvm"),
    "rsvm_decomposition": (rsvm_decomposition, "osuna1997"),
    "primal_newton": (primal_newton, "chapelle2007primal"),
    "random_subset": (random_subset, "keerthi2006reduced"),
    "greedy_subset": (greedy_subset, "keerthi2006reduced"),
    "icf_threshold": (icf_threshold, "lin2000icf"),
    "icf_pivoted": (icf_pivoted, "fine2001"),
    "icf_retrain": (icf_retrain, "fine2001"),
    "lasvm": (lasvm, "bordes2005lasvm"),
    "cvm": (cvm, "tsang2005cvm"),
    "bvm": (bvm, "tsang2007bvm"),
}
"""The recipes by name, each with the key of its paper in docs/refs.bib."""


def _configured(
    recipe: str, kind: type[Kind], fixed: dict[str, Any], given: dict[str, Any]
) -> Kind:
    """The estimator; what the recipe fixes cannot be given."""
    for name, value in fixed.items():
        if name in given:
            raise ValueError(
                f"{recipe} has {name}={value!r}: that is what makes it this method. Leave {name} "
                f"out, or use {kind.__name__} for another."
            )
    return kind(**fixed, **given)
