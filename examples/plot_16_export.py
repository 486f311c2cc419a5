"""
=============
Out of Python
=============

The same model as a file of slimsvm and as a header in C: how large each is.
"""

import os
import tempfile

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits

import slimsvm

X, y = load_digits(return_X_y=True)
model = slimsvm.SparseSVC(n_basis=40, random_state=0).fit(X / 16, y)
with tempfile.TemporaryDirectory() as folder:
    paths = {name: os.path.join(folder, name) for name in ("model.slim", "float.h", "int8.h")}
    slimsvm.save(model, paths["model.slim"])
    slimsvm.to_c(model, paths["float.h"])
    slimsvm.to_c(model, paths["int8.h"], dtype="int8")
    sizes = {name: os.path.getsize(path) / 1000 for name, path in paths.items()}
fig, ax = plt.subplots()
ax.bar(list(sizes), list(sizes.values()))
ax.set_ylabel("kilobytes of the file (headers are text)")
