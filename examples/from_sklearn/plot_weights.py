"""
=============
Weighted rows
=============

A row of weight ten counts as ten rows. (scikit-learn: "SVM: Weighted samples")
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.inspection import DecisionBoundaryDisplay

from slimsvm import SVC

rng = np.random.default_rng(0)
X = np.r_[1 + rng.standard_normal((10, 2)), rng.standard_normal((10, 2))]
y = [1] * 10 + [-1] * 10
heavy = np.ones(20)
heavy[15:], heavy[9] = 5, 15
fig, axes = plt.subplots(1, 2, figsize=(9, 4))
for ax, weight in zip(axes, (np.ones(20), heavy), strict=True):
    model = SVC(gamma=1).fit(X, y, sample_weight=weight)
    DecisionBoundaryDisplay.from_estimator(
        model, X, response_method="decision_function", cmap="bone", ax=ax
    )
    ax.scatter(*X.T, c=y, s=60 * weight / weight.mean(), alpha=0.9, cmap="coolwarm")
