"""What people import."""

from slimsvm.estimators.classification import SVC, NuSVC
from slimsvm.estimators.core_vector import CoreVectorSVC
from slimsvm.estimators.cross_training import CrossTraining
from slimsvm.estimators.linear import LinearSVC
from slimsvm.estimators.low_rank import LowRankSVC
from slimsvm.estimators.one_class import OneClassSVM
from slimsvm.estimators.online import OnlineSVC
from slimsvm.estimators.reduced import ReducedSVC
from slimsvm.estimators.regression import SVR, NuSVR
from slimsvm.estimators.sparse import SparseSVC, SparseSVR
from slimsvm.estimators.structural import StructuralSVM
from slimsvm.estimators.structural_fronts import ChainSVM, CrammerSingerSVC, MultivariateSVC

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
]
