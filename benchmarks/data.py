"""The real data sets of the benchmarks, from the folder that the environment variable SLIMSVM_DATA names."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

COVTYPE_LOW = np.array([1859, 0, 0, 0, -173, 0, 0, 0, 0, 0], np.float32)
COVTYPE_HIGH = np.array([3858, 360, 66, 1397, 601, 7117, 254, 254, 254, 7173], np.float32)


def folder() -> Path:
    """Where the data sets lie; says what to do if that is not known."""
    named = os.environ.get("SLIMSVM_DATA")
    if not named or not Path(named).is_dir():
        raise SystemExit(
            "The data sets are not here. Set the environment variable SLIMSVM_DATA to a folder with a9a.npz, ijcnn1.npz, ... "
            "(arrays X_train, y_train, X_test, y_test; sparse ones as X_train_data, X_train_indices, X_train_indptr, X_train_shape)."
        )
    return Path(named)


def load(name: str) -> tuple[Any, np.ndarray, Any, np.ndarray]:
    """X_train, y_train, X_test, y_test; float32."""
    z = np.load(folder() / f"{name}.npz")
    if name == "mnist":  # stored as bytes
        train, test = (z[part].reshape(len(z[part]), -1).astype(np.float32) / np.float32(255) for part in ("X_train", "X_test"))
        return train, z["y_train"], test, z["y_test"]
    if name == "covtype":  # all rows in UCI order, raw: a fixed split, numeric columns scaled to [0, 1]
        X = z["X"].astype(np.float32)
        X[:, :10] = (X[:, :10] - COVTYPE_LOW) / (COVTYPE_HIGH - COVTYPE_LOW)
        test = np.zeros(len(X), bool)
        test[np.random.RandomState(0).permutation(len(X))[: len(X) // 5]] = True
        return X[~test], z["y"][~test], X[test], z["y"][test]
    if "X_train_data" in z.files:
        train, test = (
            sp.csr_matrix((z[f"X_{p}_data"], z[f"X_{p}_indices"], z[f"X_{p}_indptr"]), shape=tuple(int(v) for v in z[f"X_{p}_shape"]))
            for p in ("train", "test")
        )
        return train, z["y_train"], test, z["y_test"]
    return z["X_train"], z["y_train"], z["X_test"], z["y_test"]


def dense(X: Any) -> np.ndarray:
    """As an array."""
    return X.toarray() if sp.issparse(X) else X
