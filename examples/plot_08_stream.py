"""
=========================
Rows that come in batches
=========================

partial_fit learns from each batch once, with a fixed number of vectors, and recovers
when the concept changes.
"""

import matplotlib.pyplot as plt
import numpy as np

from slimsvm import SparseSVC

rng = np.random.default_rng(0)
model, scores = SparseSVC(n_basis=40, random_state=0), []
for batch in range(60):
    X = rng.standard_normal((400, 4))
    y = (X[:, 0] * X[:, 1] > 0).astype(int)
    if batch >= 30:  # the concept turns round
        y = 1 - y
    if batch:
        scores.append(model.score(X, y))  # before it has seen them
    model.partial_fit(X, y, classes=[0, 1])
fig, ax = plt.subplots()
ax.plot(400 * np.arange(1, 60), scores)
ax.axvline(12_000, color="0.6", linestyle="--")
ax.set(xlabel="rows seen", ylabel="accuracy on the next batch")
