"""
======================
Kernels for regression
======================

RBF, linear and polynomial kernels follow the same curve. (scikit-learn: "Support Vector
Regression (SVR) using linear and non-linear kernels")
"""

import matplotlib.pyplot as plt
import numpy as np

from slimsvm import SVR

rng = np.random.default_rng(0)
X = np.sort(5 * rng.random((40, 1)), axis=0)
y = np.sin(X).ravel()
y[::5] += 3 * (0.5 - rng.random(8))
models = [
    SVR(C=100, gamma=0.1),
    SVR(kernel="linear", C=100, gamma="auto"),
    SVR(kernel="poly", C=100, gamma="auto", epsilon=0.1, coef0=1),
]
fig, ax = plt.subplots()
ax.scatter(X, y, c="0.5", s=15)
for model in models:
    ax.plot(X, model.fit(X, y).predict(X), label=model.kernel)
ax.legend()
