"""
===============================
A classifier without parameters
===============================

SVCCV chooses C and gamma from the data, and its probabilities cost nothing more.
"""

import matplotlib.pyplot as plt
from sklearn.calibration import CalibrationDisplay
from sklearn.datasets import make_classification
from sklearn.model_selection import train_test_split

from slimsvm import SVCCV

X, y = make_classification(2000, 8, n_informative=5, flip_y=0.1, random_state=0)
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)
model = SVCCV().fit(X_train, y_train)
print(f"C = {model.C_:.3g}, gamma = {model.gamma_:.3g}, accuracy {model.score(X_test, y_test):.3f}")
fig, ax = plt.subplots()
CalibrationDisplay.from_estimator(model, X_test, y_test, n_bins=8, ax=ax)
