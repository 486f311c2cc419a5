"""``slim-train``, ``slim-predict`` and ``slim-grid``: the letters, files and last lines of LIBSVM.

A shell script with these names in place of svm-train, svm-predict and grid.py goes on working.
"""

from __future__ import annotations

import os
import sys
import warnings
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from slimsvm.cli.data import Request, read, widen
from slimsvm.cli.files import check_writable, write_bytes
from slimsvm.cli.letters import Program, Refused, number, one_of, whole, word

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
-b probability estimates, 0 or 1 (0), for classification
-wi weight : C of class i is weight*C
-v n : n-fold cross validation
-q : quiet""",
    {},
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
)


def _range(text: str) -> Array | None:
    """begin,end,step in powers of two; null: not searched."""
    if text == "null":
        return None
    try:
        begin, end, step = (float(part) for part in text.split(","))
    except ValueError:
        raise ValueError('expected begin,end,step or "null"') from None
    if step == 0 or (end - begin) * step < 0:
        raise ValueError("the step does not lead from begin to end")
    return np.arange(begin, end + np.sign(step) * 1e-9, step)


GRID = Program(
    "slim-grid",
    "grid.py",
    {
        "log2c": _range,
        "log2g": _range,
        "v": whole(2),
        "out": word,
        "svmtrain": word,
        "gnuplot": word,
        **{letter: TRAIN.letters[letter] for letter in "stdrpemhbwq"},
    },
    ("dataset",),
    """Usage: slim-grid [grid_options] [svm_options] dataset
grid_options, as those of grid.py:
-log2c {begin,end,step | "null"} (-5,15,2)   -log2g {begin,end,step | "null"} (3,-15,-2)
-v n : n-fold cross validation (5)
-out {pathname | "null"} (dataset.out)
-svmtrain, -gnuplot : accepted; the fits are our own, and nothing is drawn
svm_options : those of slim-train""",
    {
        "png": "it draws nothing; plot the file of -out, or use slimsvm.GridSearchCV in Python",
        "resume": "a search shares its work, and begins anew",
        "c": "use -log2c, or -log2c with begin and end alike",
        "g": "use -log2g, or -log2g with begin and end alike",
        "n": "only -s 0 is searched; nu takes the place of C",
    },
)


def train() -> NoReturn:
    """The program slim-train."""
    TRAIN.main(_train)


def predict() -> NoReturn:
    """The program slim-predict."""
    PREDICT.main(_predict)


def grid() -> NoReturn:
    """The program slim-grid."""
    GRID.main(_grid)


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
    if options.get("b", "0") == "1":
        if kind not in ("SVC", "NuSVC"):
            raise Refused("-b 1 is for classification (-s 0 and -s 1) here")
        given["probability"] = True
    return getattr(estimators, kind)(**given)


def rows_of(path: str, options: dict[str, Any], n_features: int | None = None) -> Any:
    """Rows and labels of a file."""
    precomputed = options.get("t") == "4"
    wanted = Request(True, None, n_features, precomputed=precomputed, any_width=True)
    return read(path, "libsvm", wanted)


def _numbers(y: Array, path: str) -> Array:
    try:
        return np.asarray(y, np.float64)
    except ValueError:
        raise ValueError(f"{path}: the labels are not numbers, which LIBSVM's files have") from None


def _target(estimator: Any, y: Array, path: str) -> Array:
    """Integers for classes, as LIBSVM takes them."""
    values = _numbers(y, path)
    if not hasattr(estimator, "probability"):
        return values
    return np.trunc(values).astype(np.int64)


def _train(options: dict[str, Any], files: list[str]) -> None:
    from slimsvm.persistence import save_libsvm

    data, quiet = files[0], "q" in options
    model = files[1] if len(files) > 1 else os.path.basename(data) + ".model"
    if "v" not in options:
        check_writable(model)
    estimator = estimator_for(options)
    rows = rows_of(data, options)
    y = _target(estimator, rows.y, data)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The `probability` parameter was deprecated")
        if "v" in options:
            print(*_validated(estimator, rows.X, y, options["v"]), sep="\n")
            return
        _fit_in_order(estimator, rows.X, y)
    if not quiet:
        print(*ending_of(estimator), sep="\n")
    save_libsvm(estimator, model)


def _fit_in_order(estimator: Any, X: Any, y: Array) -> None:
    """Fit with classes in the order in which they come, as svm-train writes them.

    Of equal votes the first class in the file wins.
    """
    if not hasattr(estimator, "probability"):
        estimator.fit(X, y)
        return
    labels, first = np.unique(y, return_index=True)
    in_order = labels[np.argsort(first)]
    if in_order.size == 2:  # of two, the second is the first in the file
        in_order = in_order[::-1]
    place = np.empty(labels.size, np.int64)
    place[np.searchsorted(labels, in_order)] = np.arange(labels.size)
    if isinstance(estimator.class_weight, dict):
        given = {int(label): at for label, at in zip(labels, place, strict=True)}
        known = {given[k]: v for k, v in estimator.class_weight.items() if k in given}
        for label in set(estimator.class_weight) - set(given):
            text = f"class label {label} specified in weight is not found"
            print(f"WARNING: {text}", file=sys.stderr)
        estimator.set_params(class_weight=known)
    estimator.fit(X, place[np.searchsorted(labels, y)])
    estimator.classes_ = in_order


def ending_of(estimator: Any) -> list[str]:
    """What svm-train prints at its end."""
    steps = np.atleast_1d(estimator.n_iter_)
    lines = [f"optimization finished, #iter = {int(steps.sum())}"]
    if steps.size == 1:
        rho = -float(estimator.intercept_[0])
        lines.append(f"obj = {estimator.certificate_.objective:.6f}, rho = {rho:.6f}")
    return [*lines, f"Total nSV = {len(estimator.support_)}"]


def _folds(estimator: Any, y: Array, n_folds: int) -> Any:
    from sklearn.model_selection import KFold, StratifiedKFold

    if n_folds > y.size:
        text = "WARNING: # folds > # data. Will use # folds = # data instead (i.e., leave-one-out)"
        print(f"{text} cross validation)", file=sys.stderr)
        n_folds = y.size
    fewest = np.unique(y, return_counts=True)[1].max() if hasattr(estimator, "probability") else 0
    kind = StratifiedKFold if n_folds <= fewest else KFold
    return kind(n_folds, shuffle=True, random_state=0)


def _validated(estimator: Any, X: Any, y: Array, n_folds: int) -> list[str]:
    """The last lines of svm-train -v."""
    from sklearn.model_selection import cross_val_predict

    cv = _folds(estimator, y, n_folds)
    if type(estimator).__name__ == "SVC" and estimator.kernel != "precomputed":
        (rate,) = rates(estimator, X, y, cv, [{}])
        return [f"Cross Validation Accuracy = {rate:.6g}%"]
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The least populated class")
        found = cross_val_predict(estimator, X, y, cv=cv)
    if hasattr(estimator, "probability") or hasattr(estimator, "fit_predict"):
        return [f"Cross Validation Accuracy = {100 * np.mean(found == y):.6g}%"]
    error, correlation = regression_scores(found, y)
    return [
        f"Cross Validation Mean squared error = {error:.6g}",
        f"Cross Validation Squared correlation coefficient = {correlation:.6g}",
    ]


def rates(estimator: Any, X: Any, y: Array, cv: Any, points: list[dict[str, float]]) -> list[float]:
    """The share of rows that are right when held out, in percent, for each point of a search."""
    from slimsvm import search

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The least populated class")
        splits = list(cv.split(X, y))
    axes = [{key: [v] for key, v in {"C": estimator.C, **point}.items()} for point in points]
    found = search.GridSearchCV(estimator, axes, cv=splits, refit=False, n_jobs=-1).fit(X, y)
    sizes = np.array([len(test) for _, test in splits])
    scores = [found.cv_results_[f"split{k}_test_score"] for k in range(len(splits))]
    right = np.rint(np.stack(scores) * sizes[:, None]).sum(axis=0)  # whole rows
    return [float(100.0 * r / sizes.sum()) for r in right]


def regression_scores(found: Array, y: Array) -> tuple[float, float]:
    """Mean squared error, and the squared correlation coefficient as LIBSVM has it."""
    error = float(np.mean((found - y) ** 2))
    spread = float(np.var(found) * np.var(y))
    covariance = float(np.mean(found * y) - found.mean() * y.mean())
    return error, covariance**2 / spread if spread > 0 else float("nan")


# -- slim-predict ----------------------------------------------------------------------------------


def _predict(options: dict[str, Any], files: list[str]) -> None:
    from slimsvm.persistence import load_libsvm

    data, path, out = files
    check_writable(out)
    probable = options.get("b", "0") == "1"
    with open(path, "rb") as file:
        head = file.read(4096).decode("ascii", "replace").splitlines()
    kernel = {"t": "4"} if "kernel_type precomputed" in head else {}
    rows = rows_of(data, kernel)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*prob_density_marks|.*probability estimates")
        model = load_libsvm(path)
        if rows.X.shape[1] > model.n_features_in_:
            model = load_libsvm(path, n_features=rows.X.shape[1])
    X = widen(rows.X, model.n_features_in_)
    order = _file_order(head, model)
    if probable:
        if not getattr(model, "_probA", np.empty(0)).size:
            raise ValueError(f"{path}: the model does not support probability estimates")
        model.set_params(probability=True)
        p = model.predict_proba(X)[:, order]
        labels = np.asarray(model.classes_)[order]
        found = labels[p.argmax(axis=1)]
        first = "labels " + " ".join(f"{label:g}" for label in labels.tolist()) + "\n"
        shown = (
            f"{v:.17g} " + " ".join(f"{q:g}" for q in row) for v, row in zip(found, p, strict=True)
        )
        write_bytes(out, [first.encode(), *(f"{line}\n".encode() for line in shown)])
    else:
        if getattr(model, "_probA", np.empty(0)).size and "q" not in options:
            print("Model supports probability estimates, but disabled in prediction.")
        found = _chosen(model, X, order)
        write_bytes(out, (f"{v:.17g}\n".encode() for v in found.tolist()))
    if rows.y is not None and "q" not in options:
        print(*_scores(model, found, _numbers(rows.y, data)), sep="\n")


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


def _file_order(head: list[str], model: Any) -> Array:
    """The classes in the order of the file's line ``label``."""
    line = next((line.split()[1:] for line in head if line.startswith("label ")), None)
    if line is None or not hasattr(model, "classes_"):
        return np.arange(0)
    return np.searchsorted(model.classes_, [int(label) for label in line])


def _scores(model: Any, found: Array, y: Array) -> list[str]:
    if hasattr(model, "epsilon") or type(model).__name__ == "NuSVR":
        error, correlation = regression_scores(found, y)
        return [
            f"Mean squared error = {error:.6g} (regression)",
            f"Squared correlation coefficient = {correlation:.6g} (regression)",
        ]
    right = int(np.sum(found == y))
    return [f"Accuracy = {100.0 * right / y.size:.6g}% ({right}/{y.size}) (classification)"]


# -- slim-grid -------------------------------------------------------------------------------------


def _grid(options: dict[str, Any], files: list[str]) -> None:
    from slimsvm.persistence.atomic import replacing

    if options.get("s", "0") != "0":
        raise Refused("slim-grid searches C-SVC (-s 0); for others use slim-train -v in a loop")
    Cs, gammas = options.get("log2c", _range("-5,15,2")), options.get("log2g", _range("3,-15,-2"))
    if Cs is None and gammas is None:
        raise Refused("-log2c and -log2g should not be null simultaneously")
    path = files[0]
    out = options.get("out", os.path.basename(path) + ".out")
    if out != "null":
        check_writable(out)
    estimator = estimator_for({k: v for k, v in options.items() if k != "v"})
    rows = rows_of(path, options)
    y = _target(estimator, rows.y, path)
    over = [[None] if axis is None else axis.tolist() for axis in (Cs, gammas)]
    points = [(c, g) for g in over[1] for c in over[0]]
    named = [_point(c, g) for c, g in points]
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The `probability` parameter was deprecated")
        found = rates(estimator, rows.X, y, _folds(estimator, y, options.get("v", 5)), named)
    lines: list[str] = []
    best: tuple[Any, Any, float] = (None, None, -1.0)
    for (c, g), rate in zip(points, found, strict=True):
        if rate > best[2] or (rate == best[2] and g == best[1] and c is not None and c < best[0]):
            best = c, g, rate
        shown = " ".join(str(v) for v in (c, g) if v is not None)
        so_far = ", ".join(f"{name}={value}" for name, value in _powers(*best[:2]))
        print(f"[local] {shown} {rate:.6g} (best {so_far}, rate={best[2]:.6g})")
        where = zip("cg", (c, g), strict=True)
        words = [f"log2{name}={value}" for name, value in where if value is not None]
        lines.append(" ".join([*words, f"rate={rate:.6g}\n"]))
    if out != "null":
        with replacing(out, text=True) as file:
            file.writelines(lines)
    print(*(value for _, value in _powers(*best[:2])), f"{best[2]:.6g}")


def _powers(c: float | None, g: float | None) -> list[tuple[str, float]]:
    return [(name, 2.0**v) for name, v in zip("cg", (c, g), strict=True) if v is not None]


def _point(c: float | None, g: float | None) -> dict[str, float]:
    point = {} if c is None else {"C": 2.0**c}
    return point if g is None else {**point, "gamma": 2.0**g}
