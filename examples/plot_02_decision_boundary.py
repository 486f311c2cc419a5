"""
===================
What the vectors do
===================

A decision boundary of a sparse model with its basis vectors, drawn by scikit-learn's
own display.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import make_moons
from sklearn.inspection import DecisionBoundaryDisplay

from slimsvm import SVC, SparseSVC

X, y = make_moons(600, noise=0.25, random_state=0)
fig, axes = plt.subplots(1, 2, figsize=(9, 4))
for ax, model in zip(axes, (SVC(), SparseSVC(8, metric=None, random_state=0)), strict=True):
    model.fit(X, y)
    DecisionBoundaryDisplay.from_estimator(model, X, ax=ax, alpha=0.4, cmap="coolwarm")
    vectors = model.basis_ if hasattr(model, "basis_") else model.support_vectors_
    ax.scatter(*X.T, c=y, s=6, cmap="coolwarm")
    ax.scatter(*vectors.T, s=60, facecolors="none", edgecolors="black")
    ax.set_title(f"{type(model).__name__}: {len(vectors)} vectors")
