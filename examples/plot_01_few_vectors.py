"""
==================================
Fifty vectors instead of thousands
==================================

After this example you can replace an exact SVM by one with a few basis vectors, and see
what each size costs in accuracy.
"""

from slimsvm import SVC, SparseSVC
from slimsvm.datasets import checkers
from slimsvm.displays import PathDisplay

X, y = checkers(8000, seed=0)
X_test, y_test = checkers(4000, seed=1)
exact = SVC(C=10, gamma=5).fit(X, y)
sparse = SparseSVC(n_basis=50, C=10, gamma=5, random_state=0).fit(X, y)
print(f"{exact.support_vectors_.shape[0]} support vectors, {sparse.n_basis_} basis vectors")

# %%
# One fit has a model at every size; ``truncated`` returns any of them.

display = PathDisplay.from_estimator(sparse, X_test, y_test, exact=exact)
display.ax_.set_title("Checkers: accuracy on new rows")
