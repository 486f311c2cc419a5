"""Kernel support vector machines that train fast on big data and answer fast with few vectors.

Names are imported when they are first used: a program that needs one estimator does not wait for
the others.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from slimsvm.compression import compress
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
_MODULES = (
    "basis",
    "datasets",
    "estimators",
    "kernels",
    "losses",
    "oracles",
    "persistence",
    "recipes",
)
_OTHERS = {"compress": "compression", "load": "persistence", "save": "persistence"}


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
