"""What people import."""

from slimsvm.estimators.classification import SVC, NuSVC
from slimsvm.estimators.one_class import OneClassSVM
from slimsvm.estimators.regression import SVR, NuSVR

__all__ = ["SVC", "SVR", "NuSVC", "NuSVR", "OneClassSVM"]
