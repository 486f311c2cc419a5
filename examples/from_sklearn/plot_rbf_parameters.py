"""
===================
What C and gamma do
===================

Accuracy over a grid of C and gamma. (scikit-learn: "RBF SVM parameters")
"""

import numpy as np
from sklearn.datasets import load_iris
from sklearn.model_selection import StratifiedShuffleSplit
from sklearn.preprocessing import StandardScaler

from slimsvm import SVC, GridSearchCV
from slimsvm.displays import GridDisplay

X, y = load_iris(return_X_y=True)
grid = {"C": np.logspace(-2, 6, 9), "gamma": np.logspace(-6, 2, 9)}
cv = StratifiedShuffleSplit(n_splits=5, test_size=0.2, random_state=42)
search = GridSearchCV(SVC(), grid, cv=cv).fit(StandardScaler().fit_transform(X), y)
print(search.best_params_, round(search.best_score_, 3))
GridDisplay.from_search(search)
