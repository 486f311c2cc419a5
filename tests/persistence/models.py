"""Small data and fitted models that the tests of model files share."""

import warnings
from functools import cache

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

import slimsvm
from slimsvm import SVC, SVR, NuSVC, NuSVR, OneClassSVM
from slimsvm.declarations import fitted_of

MACHINES = {"SVC": SVC, "NuSVC": NuSVC, "SVR": SVR, "NuSVR": NuSVR, "OneClassSVM": OneClassSVM}
KERNELS = {
    "linear": {},
    "poly": {"gamma": 0.3, "coef0": 0.7, "degree": 2},
    "rbf": {},
    "sigmoid": {"gamma": 0.05, "coef0": -0.1},
    "laplacian": {"gamma": 0.2},
    "precomputed": {},
}
LIBSVM_KERNELS = [name for name in KERNELS if name != "laplacian"]
N_ROWS, N_NEW, N_FEATURES = 60, 25, 7


def names_of(kind):
    """The attributes that a file must hold of a class, and those that it may hold."""
    stored = [own for own in fitted_of(getattr(slimsvm, kind)) if own.stored]
    required = [own.name for own in stored if not own.optional]
    return required, [own.name for own in stored if own.optional]


@cache
def data(n_classes=3, sparse=False, precomputed=False, seed=0):
    """Training rows, class numbers from 0, targets, and new rows."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N_ROWS + N_NEW, N_FEATURES))
    X[rng.random(X.shape) < (0.7 if sparse else 0.1)] = 0.0
    label = np.arange(len(X)) % n_classes
    X[:, 0] += label  # classes overlap, but not wholly
    X[:, 1] = 4 + rng.normal(
        size=len(X)
    )  # the origin lies outside: a linear one-class model is not zero
    target = np.sin(X[:, 0]) + X[:, 1]
    if precomputed:
        K = np.exp(-0.1 * ((X[:, None] - X[None, :N_ROWS]) ** 2).sum(-1))
        return K[:N_ROWS], label[:N_ROWS], target[:N_ROWS], K[N_ROWS:]
    train, new = X[:N_ROWS], X[N_ROWS:]
    if sparse:
        train, new = sp.csr_matrix(train), sp.csr_matrix(new)
    return train, label[:N_ROWS], target[:N_ROWS], new


@cache
def fitted(machine="SVC", kernel="rbf", n_classes=3, sparse=False, labels=None):
    """A fitted model and new rows for it; labels renames the classes."""
    X, y, target, new = data(n_classes, sparse, kernel == "precomputed")
    y = y if labels is None else np.array(labels)[y]
    model = MACHINES[machine](kernel=kernel, **KERNELS[kernel])
    if machine.startswith("Nu"):
        model.set_params(nu=0.7)  # with less, a linear model on overlapping classes is zero
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, target if machine.endswith("SVR") else y)
    return model, new


def pair_values(model, new):
    """Decision values, one column for each pair, whatever the model."""
    if hasattr(model, "decision_function_shape"):
        values = type(model).decision_function(_ovo(model), new)
    elif hasattr(model, "decision_function"):
        values = model.decision_function(new)
    else:
        values = model.predict(new)
    return values.reshape(new.shape[0], -1)


def _ovo(model):
    copy = type(model)(**{**model.get_params(), "decision_function_shape": "ovo"})
    copy.__dict__.update({k: v for k, v in vars(model).items() if k.endswith("_")})
    return copy


def as_dicts(X, precomputed=False):
    """Rows as {index: value}, indices from 1; LIBSVM's rows of kernel values begin with a serial
    number.
    """
    X = X.toarray() if sp.issparse(X) else X
    if precomputed:
        return [{0: 1.0, **{j + 1: float(v) for j, v in enumerate(row)}} for row in X]
    return [{j + 1: float(v) for j, v in enumerate(row) if v != 0} for row in X]


def write_libsvm_data(path, X, y=None, precomputed=False):
    """A data file for svm-train and svm-predict."""
    rows = as_dicts(X, precomputed)
    y = np.zeros(len(rows)) if y is None else y
    for serial, row in enumerate(rows, 1):
        if precomputed:
            row[0] = serial
    path.write_text(
        "".join(
            f"{label} {' '.join(f'{i}:{v!r}' for i, v in row.items())}\n"
            for label, row in zip(y.tolist(), rows, strict=True)
        )
    )
