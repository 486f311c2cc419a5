"""
===================
Finding what is new
===================

OneClassSVM draws a line around the rows it has seen. (scikit-learn: "One-class SVM with
non-linear kernel (RBF)")
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.inspection import DecisionBoundaryDisplay

from slimsvm import OneClassSVM

rng = np.random.default_rng(42)
X = 0.3 * rng.standard_normal((100, 2))
X = np.r_[X + 2, X - 2]
outliers = rng.uniform(-4, 4, (20, 2))
model = OneClassSVM(nu=0.1, gamma=0.1).fit(X)
fig, ax = plt.subplots()
whole = np.r_[X, outliers]
DecisionBoundaryDisplay.from_estimator(
    model, whole, response_method="decision_function", cmap="PuBu", ax=ax
)
ax.scatter(*X.T, c="white", s=20, edgecolors="k")
ax.scatter(*outliers.T, c="gold", s=20, edgecolors="k")
print(f"{np.mean(model.predict(outliers) == -1):.0%} of the outliers are found")
