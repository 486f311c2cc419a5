"""
=============================
A search that shares its work
=============================

GridSearchCV with scikit-learn's interface; kernel values, solutions and held-out scores
are shared among the fits.
"""

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from slimsvm import SVC, GridSearchCV
from slimsvm.displays import GridDisplay

X, y = load_breast_cancer(return_X_y=True)
grid = {"svc__C": np.logspace(-1, 3, 5), "svc__gamma": np.logspace(-4, 0, 5)}
search = GridSearchCV(make_pipeline(StandardScaler(), SVC()), grid).fit(X, y)
print(search.best_params_, search.shared_)
GridDisplay.from_search(search)
