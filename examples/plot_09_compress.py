"""
======================
Making a model smaller
======================

compress turns a fitted model, ours or scikit-learn's, into one with as few vectors as
you say.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import make_moons
from sklearn.svm import SVC as TheirSVC

from slimsvm import compress

X, y = make_moons(2000, noise=0.25, random_state=0)
X_test, y_test = make_moons(2000, noise=0.25, random_state=1)
large = TheirSVC(C=10, gamma=2).fit(X, y)
sizes = (2, 4, 8, 16, 32)
scores = [compress(large, k, X, y, random_state=0).score(X_test, y_test) for k in sizes]
fig, ax = plt.subplots()
ax.plot(sizes, scores, marker="o")
ax.axhline(large.score(X_test, y_test), color="0.6", linestyle="--")
ax.set(xlabel=f"vectors (the model had {large.support_.size})", ylabel="accuracy on new rows")
