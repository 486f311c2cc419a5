"""
==============
Maximum margin
==============

The line with the widest margin between two classes, and the rows that hold it.
(scikit-learn: "SVM: Maximum margin separating hyperplane")
"""

import matplotlib.pyplot as plt
from sklearn.datasets import make_blobs
from sklearn.inspection import DecisionBoundaryDisplay

from slimsvm import SVC

X, y = make_blobs(40, centers=2, random_state=6)
model = SVC(kernel="linear", C=1000).fit(X, y)
fig, ax = plt.subplots()
ax.scatter(*X.T, c=y, s=30, cmap="coolwarm")
DecisionBoundaryDisplay.from_estimator(
    model,
    X,
    plot_method="contour",
    levels=[-1, 0, 1],
    colors="k",
    linestyles=["--", "-", "--"],
    ax=ax,
)
ax.scatter(*model.support_vectors_.T, s=100, facecolors="none", edgecolors="k")
