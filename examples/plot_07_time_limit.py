"""
================
Good at any time
================

A time limit returns the best model so far: accuracy against the seconds that a fit was
given.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np

from slimsvm import SVC

rng = np.random.default_rng(0)
X = rng.standard_normal((30_000, 10))
y = np.sign(np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.4 * rng.standard_normal(30_000))
X, y, X_test, y_test = X[5000:], y[5000:], X[:5000], y[:5000]
limits, scores = (0.2, 0.5, 1.0, 2.0), []
for limit in limits:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # each says that it was stopped
        scores.append(SVC(C=2, gamma=0.05, max_time=limit).fit(X, y).score(X_test, y_test))
fig, ax = plt.subplots()
ax.plot(limits, scores, marker="o")
ax.set(xlabel="max_time, seconds", ylabel="accuracy on new rows")
