"""
===================
Vectors as pictures
===================

The basis vectors of a model of handwritten digits are pictures themselves.
"""

from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from slimsvm import SparseSVC
from slimsvm.displays import BasisDisplay

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X / 16, y, random_state=0)
model = SparseSVC(n_basis=40, metric=None, random_state=0).fit(X_train, y_train)
print(f"accuracy {model.score(X_test, y_test):.3f}, {model.model_nbytes_:,} bytes")
BasisDisplay.from_estimator(model, n_vectors=20)
