"""``slim-learn`` and ``slim-classify``: the letters and files of svm_learn and svm_classify.

Where one of SVM-light's own knobs is given (-q, -n, -h: the size of the working set, its new
variables, the history of shrinking), the model is trained as the paper says, by the recipe
``svm_light``; otherwise by our solver, which needs none of them.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from slimsvm.cli.data import Request, read, widen
from slimsvm.cli.files import check_writable, write_bytes, write_model
from slimsvm.cli.letters import Program, Refused, number, one_of, whole, word
from slimsvm.expansion import dense
from slimsvm.kernels import make_kernel, squared_norms

Array = NDArray[Any]
KERNELS = {"0": "linear", "1": "poly", "2": "rbf", "3": "sigmoid"}
KNOBS = ("q", "n", "h")
TRANSDUCTION = "there is no transduction; rows with label 0 are left out of the training"

LEARN = Program(
    "slim-learn",
    "svm_learn",
    {
        "z": one_of("c", "r"),
        "c": number(above=0.0),
        "w": number(least=0.0),
        "j": number(above=0.0),
        "b": one_of("0", "1"),
        "i": one_of("0"),
        "x": one_of("0", "1"),
        "t": one_of(*KERNELS),
        "d": whole(0),
        "g": number(above=0.0),
        "s": number(above=0.0),
        "r": number(),
        "q": whole(2),
        "n": whole(2),
        "m": number(above=0.0),
        "e": number(above=0.0),
        "h": whole(1),
        "f": one_of("0", "1"),
        "o": number(above=0.0),
        "k": whole(0),
        "#": whole(1),
        "l": word,
        "a": word,
        "v": whole(0),
    },
    ("example_file", "[model_file]"),
    """Usage: slim-learn [options] example_file [model_file]
options, as those of svm_learn:
-z {c,r} : classification (default) or regression
-c C : trade-off (default [avg. |x|]^-2)   -w epsilon of the tube (0.1)
-j factor : of the errors on positive examples (1)   -b {0,1} : with an intercept (1)
-x {0,1} : leave-one-out estimates (0)   -o rho of the XiAlpha estimates (1)
-t : 0 linear (default), 1 polynomial (s a*b+r)^d, 2 rbf exp(-g ||a-b||^2), 3 sigmoid tanh(s a*b+r)
-d (3)  -g (1)  -s (1)  -r (1)
-q size of working sets, -n new variables in each, -h history of shrinking: as in the paper
-m cache in MB (40)   -e tolerance (0.001)   -# iterations
-l file : predictions for rows with label 0   -a file : all alphas
-v {0..3} : how much is said (1)""",
    {
        "p": TRANSDUCTION,
        "u": "there is no own kernel; kernels that are Python functions: slimsvm.SVC(kernel=...)",
        "y": "a start from alphas: slimsvm.SVC(warm_start=True)",
    },
)
CLASSIFY = Program(
    "slim-classify",
    "svm_classify",
    {"v": whole(0), "f": one_of("0", "1")},
    ("example_file", "model_file", "[output_file]"),
    """Usage: slim-classify [options] example_file model_file [output_file]
options, as those of svm_classify:
-v {0..3} : how much is said (2)
-f {0,1} : 1 decision values (default), 0 the old format value:+1 -value:-1""",
    {},
)


def learn() -> NoReturn:
    """The program slim-learn."""
    LEARN.main(_learn)


def classify() -> NoReturn:
    """The program slim-classify."""
    CLASSIFY.main(_classify)


# -- slim-learn ------------------------------------------------------------------------------------


def _learn(options: dict[str, Any], files: list[str]) -> None:
    path, model = files[0], files[1] if len(files) > 1 else "svm_model"
    for written in (model, options.get("a"), options.get("l")):
        if written is not None:
            check_writable(written)
    regression = options.get("z", "c") == "r"
    _refuse(options, regression)
    rows = read(path, "libsvm", Request(True, None, None, any_width=True))
    y = np.asarray(rows.y, np.float64)
    known = np.ones(y.size, bool) if regression else y != 0
    if not regression and not np.isin(y[known], (-1.0, 1.0)).all():
        raise ValueError(f"{path}: labels of classification are +1, -1 and 0 (no label)")
    X, target = rows.X[np.flatnonzero(known)], y[known]
    if not known.all():
        text = f"{np.sum(~known)} rows with label 0: {TRANSDUCTION}"
        print(f"slim-learn: warning: {text}", file=sys.stderr)
    if not regression:
        target = target.astype(np.int64)
    estimator = estimator_for(options, X, regression)
    said = options.get("v", 1) > 0
    if said:
        print("Scanning examples...done")
        print(f"Reading examples into memory...OK. ({y.size} examples read)")
        if "c" not in options:
            print(f"Setting default regularization parameter C={estimator.C:.4f}")
    estimator.fit(X, target)
    write_model(estimator, model, "svmlight")
    if said:
        print(f"Optimizing...done. ({int(np.sum(estimator.n_iter_))} iterations)")
        print(*_of_fit(estimator, X, target, options), sep="\n")
    if options.get("x", "0") == "1":
        print(*_left_out(estimator, X, target, options.get("o", 1.0)), sep="\n")
    if "a" in options:
        alphas = np.zeros(y.size)
        alphas[np.flatnonzero(known)[estimator.support_]] = dense(estimator.dual_coef_)[0]
        write_bytes(options["a"], (f"{v:.17g}\n".encode() for v in alphas.tolist()))
    if "l" in options:
        hidden = rows.X[np.flatnonzero(~known)]
        values = estimator.decision_function(hidden) if hidden.shape[0] else np.zeros(0)
        write_bytes(options["l"], _old_format(values))
    if said:
        print("Writing model file...done")


def _refuse(options: dict[str, Any], regression: bool) -> None:
    knobs = [f"-{letter}" for letter in KNOBS if letter in options]
    if regression and knobs:
        raise Refused(f"{', '.join(knobs)} with -z r: the solver of regressions has no such knobs")
    if options.get("f", "1") == "0":
        raise Refused("-f 0: variables that were shrunk are always checked; leave it out")
    linear = options.get("t", "0") == "0" and not regression
    if options.get("b", "1") == "0" and not linear:
        raise Refused("-b 0: functions without an intercept are linear ones (-t 0 -z c) here")
    if options.get("b", "1") == "0" and (knobs or "a" in options or options.get("x") == "1"):
        raise Refused("-b 0 goes without -q, -n, -h, -a and -x here")
    if options.get("k", 0):
        text = "the extended XiAlpha estimate; there are the plain one and -x 1, which counts"
        raise Refused(f"-k {options['k']} of svm_learn is not here: {text}")
    if regression and ({"l", "j"} & set(options) or options.get("x") == "1"):
        raise Refused("-l, -j and -x are for classification (-z c)")


def estimator_for(options: dict[str, Any], X: Any, regression: bool) -> Any:
    """The estimator that the letters of svm_learn describe."""
    from slimsvm import estimators, recipes

    name = KERNELS[options.get("t", "0")]
    gamma = options.get("g" if name == "rbf" else "s", 1.0)
    given: dict[str, Any] = {
        "kernel": name,
        "gamma": gamma,
        "degree": options.get("d", 3),
        "coef0": options.get("r", 1.0),
        "cache_size": options.get("m", 40.0),
        "max_iter": options.get("#", -1),
    }
    own = {key: given[key] for key in ("gamma", "degree", "coef0")}
    given["C"] = options.get("c") or default_C(make_kernel(name, **own), X)
    tol = options.get("e", 0.001)
    if regression:
        return estimators.SVR(**given, tol=tol, epsilon=options.get("w", 0.1), n_jobs=-1)
    if "j" in options:
        given["class_weight"] = {1: options["j"], -1: 1.0}
    if options.get("b", "1") == "0":
        weights = given.get("class_weight")
        about = {"C": given["C"], "tol": tol, "class_weight": weights}
        return estimators.LinearSVC(loss="hinge", fit_intercept=False, **about)
    if any(letter in options for letter in KNOBS):
        q = options.get("q", 10)
        del given["max_iter"]
        return recipes.svm_light(
            working_set=q,
            new_variables=min(options.get("n", q), q),
            history=options.get("h", 100),
            eps=tol,
            **given,
        )
    return estimators.SVC(**given, tol=tol, n_jobs=-1)


def default_C(kernel: Any, X: Any) -> float:
    """SVM-light's: the mean distance of rows from a row of zeros, as the kernel sees it, to -2."""
    mean = float(np.mean(lengths(kernel, X)))
    return 1.0 / mean**2 if mean > 0 else 1.0


def lengths(kernel: Any, X: Any) -> Array:
    """How far rows are from a row of zeros, as the kernel sees it."""
    sizes, zero = squared_norms(X), np.zeros(1)
    to_zero = np.zeros((sizes.size, 1))  # inner products
    kernel.from_dots(to_zero, sizes, zero)
    values = kernel.diag_from_sq(sizes) - 2.0 * to_zero[:, 0] + kernel.diag_from_sq(zero)
    return np.sqrt(np.maximum(values, 0.0))


def _of_fit(estimator: Any, X: Any, y: Array, options: dict[str, Any]) -> list[str]:
    """What svm_learn prints of its solution."""
    violation, tol = float(estimator.certificate_.violation), options.get("e", 0.001)
    classes, dual = hasattr(estimator, "classes_"), hasattr(estimator, "support_")
    values = estimator.decision_function(X) if classes else estimator.predict(X)
    if classes:
        margins = values * y
        losses = np.where(margins < 1.0 - tol, 1.0 - margins, 0.0)
        first = f"{np.sum(margins <= 0.0)} misclassified, maxdiff={violation:.5f}"
    else:
        losses = np.maximum(np.abs(values - y) - estimator.epsilon, 0.0)
        first = f"maxdiff={violation:.5f}"
    lines = [f"Optimization finished ({first})."]
    if dual:
        coef = dense(estimator.dual_coef_)[0]
        limits = np.full(coef.size, estimator.C)
        if hasattr(estimator, "class_weight_"):
            limits *= estimator.class_weight_[(coef > 0).astype(int)]
        n_bound = int(np.sum(np.abs(coef) >= limits * (1 - 1e-9)))
        lines += [f"Number of SV: {coef.size} (including {n_bound} at upper bound)"]
        own = coef @ (values[estimator.support_] - estimator.intercept_[0])
        norm = np.sqrt(max(0.0, float(own)))
        kernel = estimator.kernel_
    else:
        norm, kernel = float(np.linalg.norm(dense(estimator.coef_))), make_kernel("linear")
    longest = np.sqrt(max(0.0, float(kernel.diag_from_sq(squared_norms(X)).max())))
    lines += [
        f"L1 loss: loss={losses.sum():.5f}",
        f"Norm of weight vector: |w|={norm:.5f}",
        f"Norm of longest example vector: |x|={longest:.5f}",
    ]
    if not (classes and dual):
        return lines
    away = lengths(kernel, X)
    radius = away[estimator.support_].max(initial=0.0)
    alphas = np.zeros(y.size)
    alphas[estimator.support_] = np.abs(coef)
    lines += [f"Estimated VCdim of classifier: VCdim<={(norm * radius) ** 2 + 1.0:.5f}"]
    return lines + _xi_alpha(y, margins, alphas, away.max() ** 2, options.get("o", 1.0))


def _xi_alpha(y: Array, margins: Array, alphas: Array, reach: float, rho: float) -> list[str]:
    """Joachims' bounds of leave-one-out errors, from one fit: rho alpha R^2 + xi >= 1.

    ``reach`` is R^2, the largest squared distance of a row from zero as the kernel sees it.
    """
    wrong = rho * alphas * reach + np.maximum(0.0, 1.0 - margins) >= 1.0
    error, recall, precision = _rates(y, wrong)
    about = f"(rho={rho:.2f},depth=0)"
    return [
        f"XiAlpha-estimate of the error: error<={error:.2f}% {about}",
        f"XiAlpha-estimate of the recall: recall=>{recall:.2f}% {about}",
        f"XiAlpha-estimate of the precision: precision=>{precision:.2f}% {about}",
    ]


def _rates(y: Array, wrong: Array) -> tuple[float, float, float]:
    """Error, recall and precision in percent, where a wrong row has the other label."""
    positive = int(np.sum(y > 0))
    right = positive - int(np.sum(wrong & (y > 0)))
    taken = right + int(np.sum(wrong & (y < 0)))
    error = float(np.mean(wrong))
    return 100.0 * error, 100.0 * right / max(1, positive), 100.0 * right / max(1, taken)


def _left_out(estimator: Any, X: Any, y: Array, rho: float) -> list[str]:
    """Leave-one-out estimates: only support vectors can be answered otherwise when left out."""
    from slimsvm.search import GridSearchCV

    wrong = np.zeros(y.size, bool)
    found = estimator.predict(X)
    everything = np.arange(y.size)
    splits = [(np.delete(everything, i), np.array([i])) for i in estimator.support_.tolist()]
    if splits:
        search = GridSearchCV(
            estimator, {"C": [estimator.C]}, cv=splits, refit=False, n_jobs=-1
        ).fit(X, y)
        scores = [search.cv_results_[f"split{k}_test_score"][0] for k in range(len(splits))]
        wrong[estimator.support_] = np.array(scores) < 0.5
    inside = np.setdiff1d(everything, estimator.support_)
    wrong[inside] = found[inside] != y[inside]
    error, recall, precision = _rates(y, wrong)
    return [
        f"Leave-one-out estimate of the error: error={error:.2f}%",
        f"Leave-one-out estimate of the recall: recall={recall:.2f}%",
        f"Leave-one-out estimate of the precision: precision={precision:.2f}%",
        f"Actual leave-one-outs computed:  {len(splits)} (rho={rho:.2f})",
    ]


# -- slim-classify ---------------------------------------------------------------------------------


def _classify(options: dict[str, Any], files: list[str]) -> None:
    from slimsvm.persistence import load_svmlight

    path, model_path = files[:2]
    out = files[2] if len(files) > 2 else "svm_predictions"
    check_writable(out)
    model = load_svmlight(model_path)
    rows = read(path, "libsvm", Request(True, None, None, any_width=True))
    if rows.X.shape[1] > model.n_features_in_:
        model = load_svmlight(model_path, n_features=rows.X.shape[1])
    values = model.decision_function(widen(rows.X, model.n_features_in_))
    if options.get("f", "1") == "1":
        write_bytes(out, (f"{v:.8g}\n".encode() for v in values.tolist()))
    else:
        write_bytes(out, _old_format(values))
    if options.get("v", 2) > 0 and hasattr(model, "support_"):
        print(f"Reading model...OK. ({len(model.support_)} support vectors read)")
    if options.get("v", 2) > 1:
        print("Classifying test examples..done")
    y = np.asarray(rows.y, np.float64)
    if options.get("v", 2) == 0 or not np.isin(y, (-1.0, 1.0)).all():
        return  # as svm_classify: other labels are those of a regression, or unknown
    said = np.where(values > 0, 1.0, -1.0)
    right = int(np.sum(said * y > 0))
    hits = int(np.sum((said > 0) & (y > 0)))
    total = y.size
    print(
        f"Accuracy on test set: {100.0 * right / total:.2f}% ({right} correct, {total - right} "
        f"incorrect, {total} total)"
    )
    precision = 100.0 * hits / max(1, int(np.sum(said > 0)))
    recall = 100.0 * hits / max(1, int(np.sum(y > 0)))
    print(f"Precision/recall on test set: {precision:.2f}%/{recall:.2f}%")


def _old_format(values: Array) -> Iterator[bytes]:
    """The class with the positive value comes first."""
    for v in values.tolist():
        line = f"{v:.8g}:+1 {-v:.8g}:-1\n" if v > 0 else f"{-v:.8g}:-1 {v:.8g}:+1\n"
        yield line.encode()
