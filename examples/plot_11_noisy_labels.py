"""
==========
Noisy rows
==========

Cross-training finds rows whose labels are probably wrong, and trains without them.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons

from slimsvm import SVC, CrossTraining

rng = np.random.default_rng(0)
X, true = make_moons(1500, noise=0.2, random_state=0)
y = np.where(rng.random(1500) < 0.15, 1 - true, true)
plain = SVC(C=10, gamma=1).fit(X, y)
crossed = CrossTraining(SVC(C=10, gamma=1), random_state=0).fit(X, y)
kept = np.zeros(1500, bool)
kept[crossed.kept_indices_[0]] = True
fig, ax = plt.subplots()
ax.scatter(*X[~kept].T, c="0.8", s=8, label="left out")
ax.scatter(*X[kept].T, c=y[kept], s=8, cmap="coolwarm", label="kept")
ax.legend()
ax.set_title(
    f"{plain.support_.size} support vectors without cross-training, "
    f"{sum(model.support_.size for model in crossed.estimators_)} with it"
)
