"""
==========================
The methods of five papers
==========================

Each method of the papers is a recipe: an estimator with the settings of its paper. Here
four of them on one set.
"""

import matplotlib.pyplot as plt

from slimsvm import recipes
from slimsvm.datasets import checkers

X, y = checkers(2000, seed=0)
X_test, y_test = checkers(2000, seed=1)
scores = {}
for name, given in (
    ("cpsp", {"n_basis": 30, "random_state": 0}),
    ("greedy_subset", {"n_basis": 30, "random_state": 0}),
    ("rsvm_smooth", {"random_state": 0}),
    ("icf_pivoted", {"random_state": 0}),
):
    estimator = getattr(recipes, name)(**given).set_params(gamma=5.0)
    scores[name] = estimator.fit(X, y).score(X_test, y_test)
fig, ax = plt.subplots()
ax.barh(list(scores), list(scores.values()))
ax.set(xlabel="accuracy on new rows", xlim=(0.5, 1.0))
