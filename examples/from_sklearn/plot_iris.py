"""
========================
Four classifiers on iris
========================

Linear, RBF and polynomial kernels on two features of iris. (scikit-learn: "Plot
different SVM classifiers in the iris dataset")
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_iris
from sklearn.inspection import DecisionBoundaryDisplay

from slimsvm import SVC, LinearSVC

X, y = load_iris(return_X_y=True)
X = X[:, :2]
models = [SVC(kernel="linear"), LinearSVC(), SVC(gamma=0.7), SVC(kernel="poly", gamma="auto")]
fig, axes = plt.subplots(2, 2, figsize=(8, 7))
for ax, model in zip(axes.ravel(), models, strict=True):
    DecisionBoundaryDisplay.from_estimator(
        model.fit(X, y), X, response_method="predict", cmap="coolwarm", alpha=0.6, ax=ax
    )
    ax.scatter(*X.T, c=y, s=12, cmap="coolwarm", edgecolors="k")
    ax.set_title(f"{type(model).__name__} {getattr(model, 'kernel', '')}")
