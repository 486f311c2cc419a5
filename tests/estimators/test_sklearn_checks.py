"""scikit-learn's own checks, with no expected failures: all of them once for each class, those of
weights for all options.
"""

import re

import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.utils.estimator_checks import estimator_checks_generator

from slimsvm import (
    SVC,
    SVR,
    CoreVectorSVC,
    CrammerSingerSVC,
    CrossTraining,
    LinearSVC,
    LinearSVR,
    LowRankSVC,
    MultivariateSVC,
    NuSVC,
    NuSVR,
    OneClassSVM,
    OnlineSVC,
    ReducedSVC,
    SparseSVC,
    SparseSVR,
)

# The first of each class gets all checks. What the options of the others may break are weights and
# random states; the rest is in "make test-all".
ESTIMATORS = [
    SVC(),
    SVC(kernel="linear", n_jobs=2),
    SVC(kernel="poly", coef0=1.0),
    SVC(kernel="laplacian", class_weight="balanced"),
    SVC(kernel="precomputed"),
    NuSVC(),
    SVR(),
    SVR(kernel="linear"),
    NuSVR(),
    OneClassSVM(),
    LinearSVC(),
    LinearSVC(loss="hinge"),
    LinearSVC(penalty="l1"),
    LinearSVC(fit_intercept="free"),
    LinearSVC(multi_class="crammer_singer"),
    LinearSVC(class_weight="balanced", n_jobs=2),
    LinearSVC(loss="hinge", C=10.0, n_jobs=2),
    LinearSVR(),
    LinearSVR(loss="squared_epsilon_insensitive", fit_intercept="free"),
    SparseSVC(),
    SparseSVC(n_basis=5),
    SparseSVC(loss="hinge"),
    SparseSVC(n_basis=10, loss="hinge", basis="pursuit_rows"),
    SparseSVC(n_basis=10, loss="smooth_hinge", basis="kmeans", class_weight="balanced"),
    SparseSVC(loss="least_squares", kernel="poly", coef0=1.0, fit_intercept=False, n_jobs=2),
    SparseSVC(n_basis=10, kernel="laplacian", basis="random"),
    SparseSVC(n_basis=10, kernel="linear"),
    SparseSVC(n_basis=10, basis="cholesky", loss="hinge"),
    SparseSVC(n_basis=10, basis="unsupervised", refine=False),
    SparseSVC(n_basis=10, basis="greedy", refine=False),
    SparseSVC(n_basis=10, basis="margin"),
    SparseSVC(basis="all"),
    SparseSVC(basis="all", loss="smooth_hinge", class_weight="balanced", fit_intercept=False),
    SparseSVR(),
    SparseSVR(basis="all"),
    SparseSVR(n_basis=10, basis="greedy"),
    SparseSVR(n_basis=5),
    SparseSVR(loss="epsilon_insensitive"),
    SparseSVR(loss="least_squares", n_basis=10, refine=False),
    ReducedSVC(),
    ReducedSVC(solver="least_squares", class_weight="balanced", n_jobs=2),
    ReducedSVC(solver="lagrangian"),
    ReducedSVC(solver="decomposition"),
    ReducedSVC(5, kernel="poly", coef0=1.0, solver="least_squares"),
    ReducedSVC(kernel="linear", beta=50.0),
    ReducedSVC(0.5, kernel="laplacian"),
    LowRankSVC(),
    LowRankSVC("threshold"),
    LowRankSVC("threshold", retrain=True, n_jobs=2),
    LowRankSVC(retrain=True, kernel="poly", coef0=1.0),
    LowRankSVC(fit_intercept=True, kernel="linear", class_weight="balanced"),
    LowRankSVC("threshold", kernel="linear", fit_intercept=True),
    LowRankSVC("threshold", 1.0, fit_intercept=True),
    # far from all rows only an intercept can know the heavier class
    LowRankSVC(kernel="precomputed", fit_intercept=True),
    OnlineSVC(),
    OnlineSVC(selection="gradient", kernel="linear", n_jobs=2),
    OnlineSVC(selection="margin"),
    OnlineSVC(kernel="precomputed"),
    CoreVectorSVC(),
    CoreVectorSVC(kernel="laplacian", n_jobs=2),
    CoreVectorSVC(ball="fixed"),
    CrammerSingerSVC(),
    CrammerSingerSVC(kernel="linear"),
    CrammerSingerSVC(space="sampled"),
    MultivariateSVC(),
    MultivariateSVC("roc_auc", kernel="linear"),
    CrossTraining(),
    CrossTraining(
        SVC(kernel="linear", class_weight="balanced"),
        n_subsets=2,
        subset_size=0.5,
        balanced_subsets=True,
        refit_intercept=True,
        n_jobs=2,
    ),
    CrossTraining(SVC(), warm_start_dual=True),
    CrossTraining(SVC(kernel="precomputed"), n_subsets=3),
    CrossTraining(LogisticRegression(), refit_intercept=True),
]
ALWAYS = {
    "check_sample_weight_equivalence_on_dense_data",
    "check_sample_weight_equivalence_on_sparse_data",
    "check_fit_idempotent",
}
# the same as check_estimator_sparse_array, with matrices
TWINS = {"check_estimator_sparse_matrix"}


def cases():
    seen = set()
    for estimator in ESTIMATORS:
        first = type(estimator) not in seen
        seen.add(type(estimator))
        label = re.sub(r"\s+", "", str(estimator))
        for instance, check in estimator_checks_generator(estimator):
            name = getattr(check, "func", check).__name__
            often = (first and name not in TWINS) or name in ALWAYS
            marks = () if often else (pytest.mark.long,)
            yield pytest.param(instance, check, id=f"{label}-{name}", marks=marks)


@pytest.mark.parametrize(("estimator", "check"), list(cases()))
def test_sklearn_checks(estimator, check):
    check(estimator)
