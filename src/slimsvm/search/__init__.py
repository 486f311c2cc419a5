"""Searches for parameters that share their work."""

from typing import TYPE_CHECKING

from slimsvm.on_demand import on_demand

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
__getattr__, __dir__ = on_demand(__name__, REGISTRY)
