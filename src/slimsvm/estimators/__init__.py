"""What people import; each estimator when it is first asked for."""

from typing import TYPE_CHECKING

from slimsvm.on_demand import on_demand

if TYPE_CHECKING:
    from slimsvm.estimators.classification import SVC as SVC
    from slimsvm.estimators.classification import NuSVC as NuSVC
    from slimsvm.estimators.core_vector import CoreVectorSVC as CoreVectorSVC
    from slimsvm.estimators.cross_training import CrossTraining as CrossTraining
    from slimsvm.estimators.linear import LinearSVC as LinearSVC
    from slimsvm.estimators.linear import LinearSVR as LinearSVR
    from slimsvm.estimators.low_rank import LowRankSVC as LowRankSVC
    from slimsvm.estimators.one_class import OneClassSVM as OneClassSVM
    from slimsvm.estimators.online import OnlineSVC as OnlineSVC
    from slimsvm.estimators.reduced import ReducedSVC as ReducedSVC
    from slimsvm.estimators.regression import SVR as SVR
    from slimsvm.estimators.regression import NuSVR as NuSVR
    from slimsvm.estimators.sparse import SparseSVC as SparseSVC
    from slimsvm.estimators.sparse import SparseSVR as SparseSVR
    from slimsvm.estimators.structural import StructuralSVM as StructuralSVM
    from slimsvm.estimators.structural_fronts import ChainSVM as ChainSVM
    from slimsvm.estimators.structural_fronts import CrammerSingerSVC as CrammerSingerSVC
    from slimsvm.estimators.structural_fronts import MultivariateSVC as MultivariateSVC

# the modules that they are in; model files know exactly these, too
REGISTRY = {
    "SVC": "classification",
    "SVR": "regression",
    "ChainSVM": "structural_fronts",
    "CoreVectorSVC": "core_vector",
    "CrammerSingerSVC": "structural_fronts",
    "CrossTraining": "cross_training",
    "LinearSVC": "linear",
    "LinearSVR": "linear",
    "LowRankSVC": "low_rank",
    "MultivariateSVC": "structural_fronts",
    "NuSVC": "classification",
    "NuSVR": "regression",
    "OneClassSVM": "one_class",
    "OnlineSVC": "online",
    "ReducedSVC": "reduced",
    "SparseSVC": "sparse",
    "SparseSVR": "sparse",
    "StructuralSVM": "structural",
}
__all__ = list(REGISTRY)
__getattr__, __dir__ = on_demand(__name__, REGISTRY)
