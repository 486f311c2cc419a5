"""Searches for parameters that share their work."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from slimsvm.search.cv_estimators import SVCCV as SVCCV
    from slimsvm.search.cv_estimators import SVRCV as SVRCV
    from slimsvm.search.searches import GridSearchCV as GridSearchCV
    from slimsvm.search.searches import RandomizedSearchCV as RandomizedSearchCV
    from slimsvm.search.sparse_cv import SparseSVCCV as SparseSVCCV

REGISTRY = {
    "SVCCV": "cv_estimators",
    "SVRCV": "cv_estimators",
    "SparseSVCCV": "sparse_cv",
    "GridSearchCV": "searches",
    "RandomizedSearchCV": "searches",
}
__all__ = list(REGISTRY)


def __getattr__(name: str) -> Any:
    if name not in REGISTRY:
        raise AttributeError(f"module 'slimsvm.search' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f"slimsvm.search.{REGISTRY[name]}"), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *REGISTRY})
