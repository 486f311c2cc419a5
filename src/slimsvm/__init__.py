"""Kernel support vector machines that train fast on big data and answer fast with few vectors."""

from slimsvm.compress import compress
from slimsvm.estimators import (
    SVC,
    SVR,
    ChainSVM,
    CoreVectorSVC,
    CrammerSingerSVC,
    CrossTraining,
    LinearSVC,
    LowRankSVC,
    MultivariateSVC,
    NuSVC,
    NuSVR,
    OneClassSVM,
    OnlineSVC,
    ReducedSVC,
    SparseSVC,
    SparseSVR,
    StructuralSVM,
)
from slimsvm.persistence import load, save

__version__ = "0.1.0"
__all__ = [
    "SVC",
    "SVR",
    "ChainSVM",
    "CoreVectorSVC",
    "CrammerSingerSVC",
    "CrossTraining",
    "LinearSVC",
    "LowRankSVC",
    "MultivariateSVC",
    "NuSVC",
    "NuSVR",
    "OneClassSVM",
    "OnlineSVC",
    "ReducedSVC",
    "SparseSVC",
    "SparseSVR",
    "StructuralSVM",
    "__version__",
    "compress",
    "load",
    "save",
]
