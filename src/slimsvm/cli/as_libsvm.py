"""``slim-train`` and ``slim-predict``: the letters, files and last lines of LIBSVM.

A shell script with these names in place of svm-train and svm-predict goes on working.
"""

from __future__ import annotations

import os
import sys
import warnings
from functools import partial
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from slimsvm.cli.after_libsvm import (
    density_marks,
    ending_of,
    laplace_scale,
    of_density,
    of_laplace,
)
from slimsvm.cli.data import Request, read, widen
from slimsvm.cli.files import check_writable, write_bytes, write_model
from slimsvm.cli.held_out import held_out, one_label, regression_scores, splits_of, validated
from slimsvm.cli.letters import Program, number, one_of, whole
from slimsvm.cli.one_label import answer_constant, constant_of, write_constant
from slimsvm.persistence.libsvm import INT_LIMIT, write_libsvm

Array = NDArray[Any]
KINDS = {"0": "SVC", "1": "NuSVC", "2": "OneClassSVM", "3": "SVR", "4": "NuSVR"}
KERNELS = {"0": "linear", "1": "poly", "2": "rbf", "3": "sigmoid", "4": "precomputed"}
SWITCH = one_of("0", "1")

TRAIN = Program(
    "slim-train",
    "svm-train",
    {
        "s": one_of(*KINDS),
        "t": one_of(*KERNELS),
        "d": whole(0),
        "g": number(least=0.0),
        "r": number(),
        "c": number(above=0.0),
        "n": number(above=0.0),
        "p": number(least=0.0),
        "m": number(above=0.0),
        "e": number(above=0.0),
        "h": SWITCH,
        "b": SWITCH,
        "w": number(least=0.0),
        "v": whole(2),
        "q": None,
    },
    ("training_set_file", "[model_file]"),
    """Usage: slim-train [options] training_set_file [model_file]
options, as those of svm-train:
-s svm_type : 0 C-SVC (default), 1 nu-SVC, 2 one-class, 3 epsilon-SVR, 4 nu-SVR
-t kernel_type : 0 linear, 1 polynomial, 2 rbf (default), 3 sigmoid, 4 precomputed
-d degree (3)   -g gamma (1/num_features)   -r coef0 (0)
-c cost (1)   -n nu (0.5)   -p epsilon of epsilon-SVR (0.1)
-m cache in MB (100)   -e tolerance (0.001)   -h shrinking, 0 or 1 (1)
-b probability estimates, 0 or 1 (0)
-wi weight : C of class i is weight*C
-v n : n-fold cross validation
-q : quiet""",
    {},
    weights=True,
    first_letter=True,
)
PREDICT = Program(
    "slim-predict",
    "svm-predict",
    {"b": SWITCH, "q": None},
    ("test_file", "model_file", "output_file"),
    """Usage: slim-predict [options] test_file model_file output_file
options, as those of svm-predict:
-b probability estimates, 0 or 1 (0)
-q : quiet""",
    {},
    first_letter=True,
)


def train() -> NoReturn:
    """The program slim-train."""
    TRAIN.main(_train)


def predict() -> NoReturn:
    """The program slim-predict."""
    PREDICT.main(_predict)


# -- slim-train ------------------------------------------------------------------------------------


def estimator_for(options: dict[str, Any]) -> Any:
    """The estimator that the letters of svm-train describe."""
    from slimsvm import estimators

    kind = KINDS[options.get("s", "0")]
    given: dict[str, Any] = {
        "kernel": KERNELS[options.get("t", "2")],
        "degree": options.get("d", 3),
        "gamma": options.get("g") or "auto",
        "coef0": options.get("r", 0.0),
        "tol": options.get("e", 0.001),
        "cache_size": options.get("m", 100.0),
        "shrinking": options.get("h", "1") == "1",
        "n_jobs": -1,
    }
    if kind in ("SVC", "SVR", "NuSVR"):
        given["C"] = options.get("c", 1.0)
    if kind in ("NuSVC", "OneClassSVM", "NuSVR"):
        given["nu"] = options.get("n", 0.5)
    if kind == "SVR":
        given["epsilon"] = options.get("p", 0.1)
    if kind == "SVC" and "w" in options:
        given["class_weight"] = dict(options["w"])
    if options.get("b", "0") == "1" and kind in ("SVC", "NuSVC"):
        given["probability"] = True
    return getattr(estimators, kind)(**given)


def rows_of(path: str, options: dict[str, Any], n_features: int | None = None) -> Any:
    """Rows and labels of a file; the first column is that of index 0."""
    gram = options.get("t") == "4"
    wanted = Request(True, None, n_features, any_width=True, precomputed=gram, zero_based=not gram)
    return read(path, "libsvm", wanted)


def training_rows(path: str, options: dict[str, Any]) -> tuple[Any, Array, bool, Array | None]:
    """Rows, labels, whether there is a feature of index 0, and serial numbers of kernel values.

    Where no row has a feature of index 0, the first is LIBSVM's 1. Rows of kernel values may be
    some of all, in any order: the serial number of a row says which column is its own.
    """
    rows = rows_of(path, options)
    y = numbers(rows.y, path)
    if options.get("t") == "4":
        serials = rows.serials.astype(np.int64)
        if np.any(serials < 1) or np.any(serials > rows.X.shape[1]):
            text = "each row of kernel values begins with 0:serial_number, from 1 to the last index"
            raise ValueError(f"{path}: {text}")
        return np.ascontiguousarray(rows.X[:, serials - 1]), y, False, serials
    zero_based = bool(np.any(rows.X.indices == 0))
    return (rows.X if zero_based else rows.X[:, 1:]), y, zero_based, None


def numbers(y: Array, path: str) -> Array:
    """Labels as numbers; ``path`` is their file."""
    try:
        return np.asarray(y, np.float64)
    except ValueError:
        raise ValueError(f"{path}: the labels are not numbers, which LIBSVM's files have") from None


def target_of(estimator: Any, y: Array, path: str) -> Array:
    """Integers for classes, as LIBSVM takes them."""
    if not hasattr(estimator, "probability"):
        return y
    if np.abs(y).max() >= INT_LIMIT:
        text = f"the label {y[np.abs(y).argmax()]:g} is beyond LIBSVM's integers of 32 bits"
        raise ValueError(f"{path}: {text}; -s 3 is for numbers")
    labels = np.trunc(y).astype(np.int64)
    known, counts = np.unique(labels, return_counts=True)
    if isinstance(estimator.class_weight, dict):
        for label in sorted(set(estimator.class_weight) - set(known.tolist())):
            text = f"class label {label} specified in weight is not found"
            print(f"WARNING: {text}", file=sys.stderr)
        weights = {k: w for k, w in estimator.class_weight.items() if k in known}
        estimator.set_params(class_weight=weights)
        if known.size > 1 and sum(weights.get(k, 1.0) > 0.0 for k in known.tolist()) < 2:
            raise ValueError(f"{path}: fewer than two labels have a weight (-wi) above 0")
    if hasattr(estimator, "nu"):
        fewest, most = np.sort(counts)[[0, -1]]
        if estimator.nu * (fewest + most) / 2 > fewest:
            largest = 2 * fewest / (fewest + most)
            raise ValueError(f"specified nu is infeasible: at most {largest:.6g} for {path}")
    return labels


def _train(options: dict[str, Any], files: list[str]) -> None:
    data = files[0]
    model = files[1] if len(files) > 1 else os.path.basename(data) + ".model"
    if "v" not in options:
        check_writable(model)
    estimator = estimator_for(options)
    X, y, zero_based, serials = training_rows(data, options)
    y = target_of(estimator, y, data)
    if zero_based and estimator.gamma == "auto":  # LIBSVM divides by the largest index
        estimator.set_params(gamma=1.0 / max(1, X.shape[1] - 1))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The `probability` parameter was deprecated")
        if "v" in options:
            print(*validated(estimator, X, y, options["v"]), sep="\n")
            return
        if one_label(estimator, y):
            write_constant(estimator, int(y[0]), X.shape[1], model)
            if "q" not in options:
                print("Total nSV = 0")
            return
        lines = _fit_in_order(estimator, X, y)
        more: dict[str, list[float]] = {}
        if options.get("b", "0") == "1":
            more, said = _likely(estimator, X, y)
            lines += said
    if "q" not in options:
        print(*lines, sep="\n")
    if serials is not None:  # the file has these in place of vectors
        estimator.support_ = (serials[estimator.support_] - 1).astype(np.int32)
    write_model(estimator, model, partial(write_libsvm, zero_based=zero_based, more=more))


def _fit_in_order(estimator: Any, X: Any, y: Array) -> list[str]:
    """Fit with classes in the order in which they come, as svm-train writes them.

    Of equal votes the first class in the file wins. Of -1 and 1 the latter is the first.
    """
    if not hasattr(estimator, "probability"):
        estimator.fit(X, y)
        return ending_of(estimator, X, y)
    labels, first = np.unique(y, return_index=True)
    in_order = labels[np.argsort(first)]
    if labels.tolist() == [-1, 1]:
        in_order = np.array([1, -1])
    if in_order.size == 2:  # of two, our positive one is the second, LIBSVM's the first
        in_order = in_order[::-1]
    place = np.empty(labels.size, np.int64)
    place[np.searchsorted(labels, in_order)] = np.arange(labels.size)
    if isinstance(estimator.class_weight, dict):
        given = {int(label): int(at) for label, at in zip(labels, place, strict=True)}
        weights = {given[label]: w for label, w in estimator.class_weight.items()}
        estimator.set_params(class_weight=weights)
    places = place[np.searchsorted(labels, y)]
    estimator.fit(X, places)
    lines = ending_of(estimator, X, places)
    estimator.classes_ = in_order
    return lines


def _likely(estimator: Any, X: Any, y: Array) -> tuple[dict[str, list[float]], list[str]]:
    """What -b 1 adds to the file and to the lines where there are no classes."""
    if hasattr(estimator, "probability"):
        return {}, []
    if hasattr(estimator, "fit_predict"):
        marks = density_marks(estimator.decision_function(X))
        return ({} if marks is None else {"prob_density_marks": marks.tolist()}), []
    scale = laplace_scale(held_out(estimator, X, y, splits_of(estimator, X, y, 5)), y)
    return {"probA": [scale]}, of_laplace(scale, " ")


# -- slim-predict ----------------------------------------------------------------------------------


def _predict(options: dict[str, Any], files: list[str]) -> None:
    data, path, out = files
    check_writable(out)
    head = _head(path)
    precomputed = head.get("kernel_type") == ["precomputed"]
    rows = rows_of(data, {"t": "4"} if precomputed else {})
    known = "probA" in head or "prob_density_marks" in head
    probable = options.get("b", "0") == "1"
    if probable and not known and "svm_type" in head:
        raise ValueError(f"{path}: the model does not support probability estimates")
    lines: list[str] = []
    if known and not probable:
        lines.append("Model supports probability estimates, but disabled in prediction.")
    label = constant_of(head)
    if label is not None:
        found = answer_constant(label, rows.X.shape[0], out, probable)
    else:
        found, more = _answered(rows.X, path, head, out, precomputed, probable)
        lines += more
    if "q" not in options:
        print(*lines, *_scores(head, found, numbers(rows.y, data)), sep="\n")


def _answered(
    X: Any, path: str, head: dict[str, list[str]], out: str, precomputed: bool, probable: bool
) -> tuple[Array, list[str]]:
    """Write what a model says of rows: predictions, and lines that are said of them."""
    from slimsvm.persistence import load_libsvm

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*probability estimates")
        about: dict[str, Any] = {"zero_based": not precomputed}
        model = load_libsvm(path, **about)
        if X.shape[1] > model.n_features_in_:
            model = load_libsvm(path, n_features=X.shape[1], **about)
    X = widen(X, model.n_features_in_)
    order = _file_order(head, model)
    if probable:
        return _write_probable(model, X, order, head, out)
    found = _chosen(model, X, order)
    write_bytes(out, (f"{v:.17g}\n".encode() for v in found.tolist()))
    return found, []


def _head(path: str) -> dict[str, list[str]]:
    """The lines above the vectors of a model file, as words; what is wrong the loader says."""
    found: dict[str, list[str]] = {}
    with open(path, "rb") as file:
        for line in file:
            key, *words = line.decode("ascii", "replace").split() or [""]
            if key == "SV" or (not found and key not in ("svm_type", "kernel_type")):
                break
            found[key] = words
    return found


def _write_probable(
    model: Any, X: Any, order: Array, head: dict[str, list[str]], out: str
) -> tuple[Array, list[str]]:
    """Write the output of -b 1: predictions, and lines that are said of them."""
    if hasattr(model, "classes_"):
        model.set_params(probability=True)
        p = model.predict_proba(X)[:, order]
        labels = np.asarray(model.classes_)[order]
        found = labels[p.argmax(axis=1)]
        first = "labels " + " ".join(f"{label:g}" for label in labels.tolist())
    elif hasattr(model, "fit_predict"):
        values, marks = model.decision_function(X), head["prob_density_marks"]
        normal = of_density(values, np.array(marks, np.float64))
        found, p = model.predict(X), np.column_stack([normal, 1.0 - normal])
        first = "label normal outlier"
    else:
        found = np.asarray(model.predict(X))
        write_bytes(out, (f"{v:.17g}\n".encode() for v in found.tolist()))
        return found, of_laplace(float(head["probA"][0]), "")
    shown = (f"{v:g} " + " ".join(f"{q:g}" for q in row) for v, row in zip(found, p, strict=True))
    write_bytes(out, [f"{first}\n".encode(), *(f"{line}\n".encode() for line in shown)])
    return found, []


def _chosen(model: Any, X: Any, order: Array) -> Array:
    """Predictions; of equal votes the class wins that is first in the file."""
    if order.size < 3:
        return np.asarray(model.predict(X))
    from slimsvm.multiclass import OneVsOne

    values = model._outputs(X)
    votes = np.zeros((values.shape[0], order.size), np.int64)
    for k, (i, j) in enumerate(OneVsOne(order.size).pairs):
        votes[:, i] += values[:, k] > 0
        votes[:, j] += values[:, k] <= 0
    return np.asarray(model.classes_[order[votes[:, order].argmax(axis=1)]])


def _file_order(head: dict[str, list[str]], model: Any) -> Array:
    """The classes in the order of the file's line ``label``."""
    if not hasattr(model, "classes_"):
        return np.arange(0)
    return np.searchsorted(model.classes_, [int(label) for label in head["label"]])


def _scores(head: dict[str, list[str]], found: Array, y: Array) -> list[str]:
    if head["svm_type"] in (["epsilon_svr"], ["nu_svr"]):
        error, correlation = regression_scores(found, y)
        return [
            f"Mean squared error = {error:.6g} (regression)",
            f"Squared correlation coefficient = {correlation:.6g} (regression)",
        ]
    right = int(np.sum(found == y))
    return [f"Accuracy = {100.0 * right / y.size:.6g}% ({right}/{y.size}) (classification)"]
