"""Kernel support vector machines that train fast on big data and answer fast with few vectors."""

from slimsvm.compress import compress
from slimsvm.estimators import (
    SVC,
    SVR,
    CoreVectorSVC,
    CrossTraining,
    LinearSVC,
    LowRankSVC,
    NuSVC,
    NuSVR,
    OneClassSVM,
    OnlineSVC,
    ReducedSVC,
    SparseSVC,
    SparseSVR,
)
from slimsvm.persistence import load, save

__version__ = "0.1.0"
__all__ = [
    "SVC",
    "SVR",
    "CoreVectorSVC",
    "CrossTraining",
    "LinearSVC",
    "LowRankSVC",
    "NuSVC",
    "NuSVR",
    "OneClassSVM",
    "OnlineSVC",
    "ReducedSVC",
    "SparseSVC",
    "SparseSVR",
    "__version__",
    "compress",
    "load",
    "save",
]
