"""
===================
Labels of sequences
===================

A chain knows which label follows which; it also says how sure it is of each.
"""

import matplotlib.pyplot as plt
import numpy as np

from slimsvm import ChainSVM

rng = np.random.default_rng(0)
Y = [np.repeat(rng.permutation(3), rng.integers(3, 8, 3)) for _ in range(60)]
X = [np.eye(3)[y] + rng.normal(scale=0.9, size=(y.size, 3)) for y in Y]
model = ChainSVM(kernel="linear", C=1).fit(X[:40], Y[:40])
print(f"{model.score(X[40:], Y[40:]):.2f} of the labels are right")
marginals, said = model.predict_marginals(X[40:41])[0], model.predict(X[40:41])[0]
fig, ax = plt.subplots(figsize=(8, 3))
ax.imshow(marginals.T, aspect="auto", cmap="Blues")
ax.plot(said, "o", color="black", label="predicted")
ax.plot(Y[40], "x", color="C1", label="true")
ax.set(xlabel="position", ylabel="label", yticks=range(3))
ax.legend(loc="lower right")
