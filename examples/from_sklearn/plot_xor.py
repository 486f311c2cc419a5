"""
==================
Non-linear classes
==================

The RBF kernel learns an exclusive or. (scikit-learn: "Non-linear SVM")
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.inspection import DecisionBoundaryDisplay

from slimsvm import NuSVC

rng = np.random.default_rng(0)
X = rng.standard_normal((300, 2))
y = np.logical_xor(X[:, 0] > 0, X[:, 1] > 0)
model = NuSVC(gamma="auto").fit(X, y)
fig, ax = plt.subplots()
DecisionBoundaryDisplay.from_estimator(
    model, X, response_method="decision_function", cmap="PuOr_r", ax=ax
)
ax.scatter(*X.T, c=y, s=20, cmap="coolwarm", edgecolors="k")
