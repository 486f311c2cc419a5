"""Texts that the documentation of several estimators shares."""

from __future__ import annotations

from typing import TypeVar

Kind = TypeVar("Kind", bound=type)

TEXTS = {
    "kernel": """kernel : {'linear', 'poly', 'rbf', 'sigmoid', 'laplacian', 'precomputed'}, callable or Kernel, default='rbf'
        Similarity of two rows. A callable gets two blocks of rows and returns the matrix of their values.
    degree : int, default=3
        Of the polynomial kernel.
    gamma : {'scale', 'auto'} or float, default='scale'
        Of the rbf, polynomial, sigmoid and Laplacian kernels. 'scale' is 1 / (n_features * variance of X), 'auto' 1 / n_features.
    coef0 : float, default=0.0
        Constant in the polynomial and sigmoid kernels.""",
    "solver": """shrinking : bool, default=True
        Whether variables that stay at a bound leave the problem until the end.
    tol : float, default=1e-3
        Largest violation of the Kuhn-Tucker conditions at the end. Up to 1,000 rows are always solved to near machine precision.
    cache_size : float, default=200
        Megabytes for kernel values. Up to 2,000 rows (of a pair of classes) the problem is one block of them, of at most 32 megabytes and
        as much to make it, whatever is said here.""",
    "limits": """verbose : bool, default=False
        Show a line of progress.
    max_iter : int, default=-1
        Limit on pair steps of the solver, for each problem; -1: none.
    max_time : float, optional
        Limit in seconds. At the limit, and at Ctrl-C, the best model so far is kept, with a ConvergenceWarning.
    warm_start : bool, default=False
        Go on from the last solution if the rows are the same.
    n_jobs : int, optional
        Threads: None is one unless a joblib context says otherwise, -1 all. The result does not depend on it.""",
    "sparse": """basis : str or array of shape (m, n_features), default='pursuit'
        Where the basis vectors come from; an array is used as it is.

        - 'pursuit' makes vectors where the objective falls most, 'pursuit_rows' takes the best of 59 random rows each time;
        - 'random' takes rows, 'kmeans' centres of clusters;
        - 'cholesky' takes the row farthest from the span of those before it, 'unsupervised' the farthest of 59 random ones;
        - 'greedy' takes the one of 59 random rows with the best virtual Newton step, 'margin' the one with the smallest decision value
          (classification only); both need a loss with a curvature;
        - 'all' trains the exact machine over all rows by Newton's method, for a loss with a curvature; n_basis is ignored, and the basis
          is the rows that carry weight.
    refine : bool or 'auto', default='auto'
        Whether the basis vectors are then moved to a local optimum. 'auto': if loss and kernel have derivatives and basis is neither an
        array nor 'all'.
    fit_intercept : bool, default=True
        Whether there is an intercept, which is not penalised.
    class_weight : dict or 'balanced', optional
        Factors of C for each class (classification only).
    tol : float, default=1e-3
        Relative gap within the span of the basis; refinement ends when a step gains less than this share of the objective.
    max_iter : int, default=1000
        Limit on steps of refinement, and on cutting planes.
    max_time : float, optional
        Limit in seconds. At the limit, and at Ctrl-C, the best model so far is kept, with a ConvergenceWarning.
    max_memory : float, optional
        Megabytes for kernel values between rows and basis; beyond, they are computed again in every pass. Default 2,000. With basis='all', for
        those among the support vectors; beyond, the fit is refused. Default 4,000.
    max_basis : int, default=500
        The largest size that n_basis='auto' looks at.
    accuracy_loss : float, default=0.005
        What n_basis='auto' gives up, at most, for a smaller basis.
    validation_fraction : float, optional
        Share of the rows that is held out: to stop refinement, and for the scores in ``path_``.
    warm_start : bool, default=False
        Begin with the basis of the last fit; one that is given as an array is taken as it is.
    n_jobs : int, optional
        Threads: None is one unless a joblib context says otherwise, -1 all. The result does not depend on it.
    random_state : int, RandomState or None, default=None
        Draws starting points, rows and the split.
    verbose : bool, default=False
        Show a line of progress.""",
    "sparse_attributes": """basis_ : array or CSR matrix of shape (m, n_features)
        The basis vectors.
    basis_indices_ : array or None
        Which training rows they are, if they are rows.
    basis_coef_ : array of shape (m, outputs)
        Coefficients; one output for two classes and for regression, else one for each class.
    intercept_ : array of shape (outputs,)
        Constants in the decision function.
    n_basis_ : int
        Number of basis vectors.
    path_ : list of PathPoint
        The machine at 1, 2, 5, 10, ... basis vectors; see :meth:`truncated`.
    kernel_ : Kernel
        The kernel, with numbers for all its parameters.
    certificate_ : Certificate
        Objective, and its gap within the span of the basis (with basis='all', of the exact machine); :meth:`certify` gives the gap to the
        exact machine.
    status_ : Status
        Why the fit ended; ``str(status_)`` is a sentence.
    history_ : dict of arrays
        Seconds, objective and size of the basis after every step.
    model_nbytes_ : int
        Bytes of the numbers that prediction needs.
    n_iter_ : int
        Steps of all solvers together.
    n_features_in_ : int
        Number of features at fit.
    feature_names_in_ : array
        Their names, if X had names.""",
    "structural": """C : float, default=1.0
        Weight of the errors: 1/2 |w|^2 + C sum_i weight_i (loss of example i).
    kernel : {'linear', 'poly', 'rbf', 'sigmoid', 'laplacian'}, callable or Kernel, default='rbf'
        Similarity of two rows.
    gamma : {'scale', 'auto'} or float, default='scale'
        Of the rbf, polynomial, sigmoid and Laplacian kernels. 'scale' is 1 / (n_features * variance of X), 'auto' 1 / n_features.
    degree : int, default=3
        Of the polynomial kernel.
    coef0 : float, default=0.0
        Constant in the polynomial and sigmoid kernels.
    space : {'auto', 'explicit', 'kernel', 'sampled', 'subspace'}, default='auto'
        How functions are represented.

        - 'explicit': weights of features, for the linear kernel;
        - 'kernel': all rows, exact, for few of them: n^2 kernel values;
        - 'sampled': sums of sampled cuts, for any number of rows. Examples are drawn in proportion to their weights, so that a weight of two
          is like two equal rows in the mean over all seeds, not for one of them. Where a sample would be all examples, and rows are no more
          than 1,000, this is 'kernel';
        - 'subspace': the span of ``n_basis`` vectors;
        - 'auto': 'explicit' for the linear kernel; otherwise 'kernel' up to 1,000 rows, and 'sampled' beyond ('subspace' for a loss that
          does not decompose into examples).
    sampling : {'linear_time', 'constant_time'}, default='linear_time'
        In the sampled space: whether a round looks at all rows, or only at those drawn.
    sample_size : int, default=400
        In the sampled space: examples drawn for each cut.
    n_basis : int, default=100
        In the subspace: number of basis vectors.
    basis : str or array, default='pursuit'
        In the subspace: 'pursuit' (a vector made for each cut), 'pursuit_rows', 'random', 'kmeans', 'cholesky', 'unsupervised', or the vectors
        themselves.
    fit_intercept : bool, default=False
        Whether each label has an intercept: a constant in the kernel, so it is penalised like all weights.
    line_search : bool, default=True
        Whether the best point moves by a search towards the solution over the cuts so far, and cuts are taken near it. False: cuts are taken at
        that solution, as in the first papers, which takes about twice as many rounds. Without meaning for sampling='constant_time'.
    tol : float, default=1e-3
        Relative duality gap at the end; in the sampled space the largest violation of a cut, in units of the mean loss (eps in the paper).
        Up to 1,000 rows are always solved to near machine precision, except in the sampled space.
    max_iter : int, default=10000
        Limit on rounds; -1: none.
    max_time : float, optional
        Limit in seconds. At the limit, and at Ctrl-C, the best model so far is kept, with a ConvergenceWarning.
    max_memory : float, optional
        Megabytes for kernel values, or for products of cuts with all rows; beyond, they are computed again in every pass. In the kernel
        space the limit of what is tried. Default 2,000.
    n_jobs : int, optional
        Threads: None is one unless a joblib context says otherwise, -1 all. The result does not depend on it.
    random_state : int, RandomState or None
        Seed of samples and of the search for basis vectors.
    verbose : bool, default=False
        Show a line of progress.""",
    "structural_attributes": """classes_ : array
        The labels, sorted.
    coef_ : array of shape (columns, n_features)
        Weights of the features for each column of scores, in the explicit space.
    basis_ : array or CSR matrix of shape (n_basis, n_features)
        In the other spaces: the vectors that carry weight.
    basis_indices_ : array or None
        Which training rows they are, if they are rows.
    basis_coef_ : array of shape (n_basis, columns)
        Their coefficients.
    n_basis_ : int
        Their number.
    intercept_ : array of shape (columns,)
        Intercepts.
    linear_ : array
        Weights of the linear part of the oracle (transitions of a chain); empty if it has none.
    oracle_ : StructuredOracle
        The oracle, with the labels known.
    space_ : str
        The space that was used.
    kernel_ : Kernel
        The kernel, with numbers for all its parameters.
    certificate_ : Certificate
        Objective, gap and what is known of the optimum.
    status_ : Status
        Why the fit ended; ``str(status_)`` is a sentence.
    history_ : dict of arrays
        Seconds, objective, gap, number of cuts after every round.
    fit_status_ : int
        0 if the tolerance was reached.
    n_iter_ : int
        Rounds.
    n_features_in_ : int
        Number of features at fit.
    feature_names_in_ : array
        Their names, if X had names.""",
    "attributes": """support_ : array of shape (n_SV,)
        Indices of the support vectors.
    support_vectors_ : array or CSR matrix of shape (n_SV, n_features)
        The support vectors; empty for a precomputed kernel.
    n_support_ : array
        Number of support vectors for each class (classifiers) or in all.
    dual_coef_ : array of shape (n_classes - 1, n_SV), or (1, n_SV)
        Coefficients in the decision function, in LIBSVM's layout.
    intercept_ : array
        Constants in the decision function.
    coef_ : array
        Weights of the features, for the linear kernel only.
    kernel_ : Kernel
        The kernel, with numbers for all its parameters.
    certificate_ : Certificate
        Objective, Kuhn-Tucker violation and duality gap at the end.
    status_ : Status
        Why the fit ended; ``str(status_)`` is a sentence.
    history_ : dict of arrays
        Seconds, objective, gap, violation, kernel values computed, active variables after every round. While variables are shrunk, the gap is
        that of the active ones.
    fit_status_ : int
        0 if the tolerance was reached.
    n_iter_ : int or array
        Pair steps of the solver, for each problem.
    shape_fit_ : tuple
        Shape of X at fit.
    n_features_in_ : int
        Number of features at fit.
    feature_names_in_ : array
        Their names, if X had names.""",
}


def described(kind: Kind) -> Kind:
    """Fill the shared texts into the class's documentation."""
    kind.__doc__ = (kind.__doc__ or "").format(**TEXTS)
    return kind
