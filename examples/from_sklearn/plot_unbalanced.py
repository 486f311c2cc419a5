"""
=========================
Classes of different size
=========================

class_weight moves the boundary towards the large class. (scikit-learn: "SVM: Separating
hyperplane for unbalanced classes")
"""

import matplotlib.pyplot as plt
from sklearn.datasets import make_blobs
from sklearn.inspection import DecisionBoundaryDisplay

from slimsvm import SVC

X, y = make_blobs([1000, 100], centers=[[0, 0], [2, 2]], cluster_std=[1.5, 0.5], random_state=0)
fig, ax = plt.subplots()
ax.scatter(*X.T, c=y, s=8, cmap="coolwarm")
for weight, colour in ((None, "k"), ({1: 10}, "r")):
    model = SVC(kernel="linear", class_weight=weight).fit(X, y)
    DecisionBoundaryDisplay.from_estimator(
        model, X, plot_method="contour", levels=[0], colors=colour, ax=ax
    )
