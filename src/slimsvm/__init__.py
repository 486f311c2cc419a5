"""Kernel support vector machines that train fast on big data and answer fast with few vectors."""

from slimsvm.estimators import SVC, SVR, NuSVC, NuSVR, OneClassSVM
from slimsvm.persistence import load, save

__version__ = "0.1.0"
__all__ = ["SVC", "SVR", "NuSVC", "NuSVR", "OneClassSVM", "__version__", "load", "save"]
