"""
===================
Models of kilobytes
===================

Accuracy against bytes, in float32, float16 and int8.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from slimsvm import SparseSVC

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X / 16, y, random_state=0)
model = SparseSVC(n_basis=60, random_state=0).fit(X_train, y_train)
models = [model, model.quantized("float16"), model.quantized("int8")]
fig, ax = plt.subplots()
for name, one in zip(("as fitted", "float16", "int8"), models, strict=True):
    ax.plot(one.model_nbytes_ / 1000, one.score(X_test, y_test), "o")
    ax.annotate(f" {name}", (one.model_nbytes_ / 1000, one.score(X_test, y_test)))
ax.set(xlabel="kilobytes", ylabel="accuracy on new rows", xscale="log")
