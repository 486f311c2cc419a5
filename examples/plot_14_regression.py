"""
===========================
Regression with few vectors
===========================

SparseSVR follows a curve with a dozen vectors.
"""

import matplotlib.pyplot as plt
import numpy as np

from slimsvm import SVR, SparseSVR

rng = np.random.default_rng(0)
X = np.sort(rng.uniform(0, 10, (800, 1)), axis=0)
y = np.sin(X[:, 0]) * np.sqrt(X[:, 0]) + 0.3 * rng.standard_normal(800)
exact = SVR(C=10, gamma=1).fit(X, y)
sparse = SparseSVR(n_basis=12, gamma=1, random_state=0).fit(X, y)
fig, ax = plt.subplots()
ax.plot(X, y, ".", color="0.8", markersize=3)
ax.plot(X, exact.predict(X), label=f"SVR, {exact.support_.size} vectors")
ax.plot(X, sparse.predict(X), "--", label=f"SparseSVR, {sparse.n_basis_} vectors")
ax.legend()
