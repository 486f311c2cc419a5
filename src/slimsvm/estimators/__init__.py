"""What people import; each machine when it is first asked for."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
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
_ROOMS = {
    "ChainSVM": "structural_fronts",
    "CoreVectorSVC": "core_vector",
    "CrammerSingerSVC": "structural_fronts",
    "CrossTraining": "cross_training",
    "LinearSVC": "linear",
    "LowRankSVC": "low_rank",
    "MultivariateSVC": "structural_fronts",
    "NuSVC": "classification",
    "NuSVR": "regression",
    "OneClassSVM": "one_class",
    "OnlineSVC": "online",
    "ReducedSVC": "reduced",
    "SVC": "classification",
    "SVR": "regression",
    "SparseSVC": "sparse",
    "SparseSVR": "sparse",
    "StructuralSVM": "structural",
}


def __getattr__(name: str) -> Any:
    if name not in _ROOMS:
        raise AttributeError(f"module 'slimsvm.estimators' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f"slimsvm.estimators.{_ROOMS[name]}"), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
