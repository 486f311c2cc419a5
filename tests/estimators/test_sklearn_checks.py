"""scikit-learn's own checks, with no expected failures."""

from sklearn.utils.estimator_checks import parametrize_with_checks

from slimsvm import SVC, SVR, NuSVC, NuSVR, OneClassSVM

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
]


@parametrize_with_checks(ESTIMATORS)
def test_sklearn_checks(estimator, check):
    check(estimator)
