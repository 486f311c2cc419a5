"""
==============
Watching a fit
==============

Every fit keeps its history: gap and objective against seconds, and a certificate that
says how far from the optimum it ended.
"""

from sklearn.datasets import make_moons

from slimsvm import SVC
from slimsvm.displays import ConvergenceDisplay

X, y = make_moons(6000, noise=0.3, random_state=0)
model = SVC(C=100, gamma=3).fit(X, y)
print(model.status_)
print(model.certificate_.interval)
ConvergenceDisplay.from_estimator(model)
