"""
====================
A kernel of your own
====================

Any function of two blocks of rows can be a kernel. (scikit-learn: "SVM with custom
kernel")
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_iris
from sklearn.inspection import DecisionBoundaryDisplay

from slimsvm import SVC


def stretched(X, Y):
    """k(x, z) = x' diag(2, 1) z."""
    return X @ np.diag([2.0, 1.0]) @ Y.T


X, y = load_iris(return_X_y=True)
model = SVC(kernel=stretched).fit(X[:, :2], y)
fig, ax = plt.subplots()
DecisionBoundaryDisplay.from_estimator(
    model, X[:, :2], response_method="predict", cmap="Pastel1", ax=ax
)
ax.scatter(*X[:, :2].T, c=y, s=15, cmap="Set1", edgecolors="k")
