"""Kernel support vector machines that train fast on big data and answer fast with few vectors.

Names are imported when they are first used: a program that needs one estimator does not wait for
the others.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from slimsvm.estimators import REGISTRY as _ESTIMATORS

if TYPE_CHECKING:  # for type checkers alone: a name that is not here is Any to them
    from sklearn.svm import l1_min_c as l1_min_c

    from slimsvm.checkpoint import Checkpoint as Checkpoint
    from slimsvm.compression import compress as compress
    from slimsvm.estimators import SVC as SVC
    from slimsvm.estimators import SVR as SVR
    from slimsvm.estimators import ChainSVM as ChainSVM
    from slimsvm.estimators import CoreVectorSVC as CoreVectorSVC
    from slimsvm.estimators import CrammerSingerSVC as CrammerSingerSVC
    from slimsvm.estimators import CrossTraining as CrossTraining
    from slimsvm.estimators import LinearSVC as LinearSVC
    from slimsvm.estimators import LinearSVR as LinearSVR
    from slimsvm.estimators import LowRankSVC as LowRankSVC
    from slimsvm.estimators import MultivariateSVC as MultivariateSVC
    from slimsvm.estimators import NuSVC as NuSVC
    from slimsvm.estimators import NuSVR as NuSVR
    from slimsvm.estimators import OneClassSVM as OneClassSVM
    from slimsvm.estimators import OnlineSVC as OnlineSVC
    from slimsvm.estimators import ReducedSVC as ReducedSVC
    from slimsvm.estimators import SparseSVC as SparseSVC
    from slimsvm.estimators import SparseSVR as SparseSVR
    from slimsvm.estimators import StructuralSVM as StructuralSVM
    from slimsvm.export.c import to_c as to_c
    from slimsvm.export.javascript import to_javascript as to_javascript
    from slimsvm.onnx import to_onnx as to_onnx
    from slimsvm.patching import patch_sklearn as patch_sklearn
    from slimsvm.patching import unpatch_sklearn as unpatch_sklearn
    from slimsvm.persistence import load as load
    from slimsvm.persistence import save as save
    from slimsvm.search import SVCCV as SVCCV
    from slimsvm.search import SVRCV as SVRCV
    from slimsvm.search import GridSearchCV as GridSearchCV
    from slimsvm.search import RandomizedSearchCV as RandomizedSearchCV
    from slimsvm.search import SparseSVCCV as SparseSVCCV
    from slimsvm.sources import open_rows as open_rows

__version__ = "0.2.0"
__all__ = [
    *_ESTIMATORS,
    "Checkpoint",
    "GridSearchCV",
    "RandomizedSearchCV",
    "SVCCV",
    "SVRCV",
    "SparseSVCCV",
    "__version__",
    "compress",
    "l1_min_c",
    "load",
    "open_rows",
    "patch_sklearn",
    "save",
    "to_c",
    "to_javascript",
    "to_onnx",
    "unpatch_sklearn",
]
_MODULES = (
    "basis",
    "datasets",
    "displays",
    "estimators",
    "kernels",
    "losses",
    "onnx",
    "oracles",
    "persistence",
    "recipes",
    "sequences",
)
_OTHERS = {
    "Checkpoint": "checkpoint",
    "GridSearchCV": "search",
    "RandomizedSearchCV": "search",
    "SVCCV": "search",
    "SVRCV": "search",
    "SparseSVCCV": "search",
    "compress": "compression",
    "l1_min_c": "estimators.bounds",
    "load": "persistence",
    "open_rows": "sources",
    "patch_sklearn": "patching",
    "save": "persistence",
    "to_c": "export.c",
    "to_javascript": "export.javascript",
    "to_onnx": "onnx",
    "unpatch_sklearn": "patching",
}


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"slimsvm.{name}")
    if name not in __all__:
        raise AttributeError(f"module 'slimsvm' has no attribute {name!r}")
    value = globals()[name] = getattr(
        import_module(f"slimsvm.{_OTHERS.get(name, 'estimators')}"), name
    )
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_MODULES})
