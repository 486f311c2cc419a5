"""SVM-light's model file, both ways.

f(x) = sum_i (alpha_i y_i) k(x_i, x) - b; its sign is the class (+1 or -1), or f itself the
prediction of a regression. The file does not say which of the two it is. Kernels by number: 0 x.z,
1 (s x.z + r)^d, 2 exp(-g |x - z|^2), 3 tanh(s x.z + r); the file always holds d, g, s and r,
whether the kernel uses them or not.
"""

from __future__ import annotations

import os
import warnings
from typing import Any

import numpy as np

from slimsvm.kernels import Kernel, make_kernel
from slimsvm.persistence import text
from slimsvm.persistence.atomic import replacing
from slimsvm.persistence.fitted import check_savable, outside_facts, rebuild
from slimsvm.persistence.layout import in_support_layout
from slimsvm.persistence.text import Lines, RowReader

FIRST_WORDS = "SVM-light Version "
KERNEL_NUMBERS = {"linear": 0, "poly": 1, "rbf": 2, "sigmoid": 3}
KERNEL_OF = {number: name for name, number in KERNEL_NUMBERS.items()}
LETTERS = {
    "linear": {},
    "poly": {"degree": "d", "gamma": "s", "coef0": "r"},
    "rbf": {"gamma": "g"},
    "sigmoid": {"gamma": "s", "coef0": "r"},
}
CLASSIFIERS = ("SVC", "NuSVC")
ESTIMATORS = (*CLASSIFIERS, "SVR", "NuSVR")


def save_svmlight(estimator: Any, path: str | os.PathLike[str], *, version: str = "V6.02") -> None:
    """Write a fitted estimator as a model file of SVM-light, for ``svm_classify``.

    Parameters
    ----------
    estimator : SVC, NuSVC, SparseSVC, ReducedSVC, LinearSVC, SVR, NuSVR or SparseSVR
        A fitted estimator with a linear, poly, rbf or sigmoid kernel; a classifier must have two
        classes.
    path : str or path-like
        Where to write; the file is replaced whole or not at all.
    version : str, default="V6.02"
        The version of SVM-light that will read the file: it refuses files of any other. Its
        programs print theirs when called without arguments.

    Raises
    ------
    ValueError
        If SVM-light has no such model or kernel.
    NotFittedError
        If the estimator was not fitted.

    Warns
    -----
    UserWarning
        If the labels are not -1 and +1, which is all that the file can express. The second of
        ``classes_`` becomes +1.

    Notes
    -----
    Numbers are written so that they read back exactly. SVM-light itself computes with features in
    single precision, so that its decision values agree with ours to about six digits.

    Examples
    --------
    >>> from tempfile import NamedTemporaryFile
    >>> from slimsvm import SVC
    >>> from slimsvm.persistence import load_svmlight, save_svmlight
    >>> model = SVC(kernel="linear").fit([[0.0], [1.0], [3.0], [4.0]], [-1, -1, 1, 1])
    >>> with NamedTemporaryFile(suffix=".model") as file:
    ...     save_svmlight(model, file.name)
    ...     first, loaded = open(file.name).readline(), load_svmlight(file.name)
    >>> print(first, end="")
    SVM-light Version V6.02
    >>> loaded.predict([[0.5], [3.5]])
    array([-1,  1])
    """
    check_savable(estimator, "a model file of SVM-light")
    kind = type(estimator).__name__
    if version.split() != [version] or not version.isascii():
        raise ValueError(
            f"version={version!r} is not a version of SVM-light; expected one word such as 'V6.02'."
        )
    if kind == "OneClassSVM":
        raise ValueError(
            f"SVM-light has no {kind}; its model files hold {', '.join(ESTIMATORS)}. Use "
            "slimsvm.save or save_libsvm."
        )
    if hasattr(estimator, "classes_"):
        _check_classes(estimator.classes_)
    _, a = in_support_layout(estimator, "A model file of SVM-light")
    kernel: Kernel = a["kernel_"]
    if kernel.name not in KERNEL_NUMBERS:
        raise ValueError(
            f"SVM-light has no {kernel.name} kernel, only {', '.join(KERNEL_NUMBERS)}. Use "
            "slimsvm.save, or train with one of these."
        )
    # SVM-light's own, for those that the kernel does not use
    numbers = {"d": 3.0, "g": 1.0, "s": 1.0, "r": 1.0}
    numbers |= {
        letter: float(getattr(kernel, name)) for name, letter in LETTERS[kernel.name].items()
    }
    coef, intercept = np.asarray(a["dual_coef_"])[0], a["intercept_"]
    text.require_finite("coefficients", coef, intercept)
    text.require_finite("support vectors", a["support_vectors_"])
    with replacing(path, text=True) as file:
        file.write(f"{FIRST_WORDS}{version}\n{KERNEL_NUMBERS[kernel.name]} # kernel type\n")
        file.writelines(
            f"{text.written(value)} # kernel parameter -{letter}\n"
            for letter, value in numbers.items()
        )
        file.write("empty# kernel parameter -u\n")
        file.write(
            f"{a['n_features_in_']} # highest feature index\n{a['shape_fit_'][0]} # number of "
            "training documents\n"
        )
        file.write(f"{coef.size + 1} # number of support vectors plus 1\n")
        file.write(
            f"{text.written(-intercept[0])} # threshold b, each following line is a SV (starting "
            "with alpha*y)\n"
        )
        for value, row in zip(coef.tolist(), text.written_rows(a["support_vectors_"]), strict=True):
            file.write(f"{text.written(value)} {row} #\n")


def load_svmlight(
    path: str | os.PathLike[str],
    *,
    estimator: str = "SVC",
    n_features: int | None = None,
    sparse: bool | None = None,
) -> Any:
    """Read a model file of SVM-light, of any version.

    Parameters
    ----------
    path : str or path-like
        The file, written by SVM-light or by :func:`save_svmlight`.
    estimator : {"SVC", "NuSVC", "SVR", "NuSVR"}, default="SVC"
        What the file holds: a classification or a regression. It does not say so itself.
    n_features : int, optional
        Number of features that rows to predict will have; by default the "highest feature index" of
        the file.
    sparse : bool, optional
        Whether ``support_vectors_`` shall be CSR; see :func:`slimsvm.persistence.load_libsvm`.

    Returns
    -------
    SVC, NuSVC, SVR or NuSVR
        The estimator, fitted, as from :func:`slimsvm.persistence.load_libsvm`; ``support_`` is
        always unknown (-1), and a classifier has the classes -1 and 1.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If it is not a model file of SVM-light, has a kernel of the user's own, or is damaged; the
        message names the line.

    See Also
    --------
    save_svmlight : Write such a file; it has an example.
    """
    if estimator not in ESTIMATORS:
        raise ValueError(
            f"estimator={estimator!r} is not what a model file of SVM-light can hold; expected "
            f"one of {', '.join(ESTIMATORS)}."
        )
    with Lines(path) as lines:
        kernel, highest, n_rows, n_vectors, threshold = _read_head(lines)
        coef, rows = _read_vectors(lines, n_vectors)
    vectors = rows.csr(n_features, highest)
    order, counts = np.arange(coef.size), np.array([coef.size], np.int32)
    a = outside_facts(1 if estimator in CLASSIFIERS else None, "SVM-light")
    if estimator in CLASSIFIERS:  # support vectors are kept by class
        order = np.argsort(coef > 0, kind="stable")
        counts = np.array([np.sum(coef <= 0), np.sum(coef > 0)], np.int32)
        a |= {"classes_": np.array([-1, 1]), "class_weight_": np.ones(2)}
    a |= {
        "kernel_": kernel,
        "intercept_": np.array([-threshold]),
        "dual_coef_": coef[None, order],
        "n_support_": counts,
    }
    a |= {
        "support_": np.full(coef.size, -1, np.int32),
        "support_vectors_": text.as_stored(vectors[order], sparse),
    }
    a |= {
        "n_features_in_": vectors.shape[1],
        "shape_fit_": (max(n_rows, coef.size), vectors.shape[1]),
    }
    return rebuild(estimator, {"kernel": kernel.name, **kernel.get_params()}, a)


def _check_classes(classes: Any) -> None:
    if len(classes) != 2:
        raise ValueError(
            f"A model file of SVM-light holds two classes, this model has {len(classes)}. Use "
            "slimsvm.save or save_libsvm, or write one model for each class against the rest "
            "(sklearn.multiclass.OneVsRestClassifier)."
        )
    first, second = np.asarray(classes).tolist()
    if [first, second] != [-1, 1]:
        warnings.warn(
            f"A model file of SVM-light knows the classes -1 and +1 only: {first!r} is written as "
            f"-1 and {second!r} as +1.",
            UserWarning,
            stacklevel=3,
        )


def _read_head(lines: Lines) -> tuple[Kernel, int, int, int, float]:
    """Kernel, highest feature index, numbers of training rows and support vectors, threshold."""
    if not lines.expect("the version of SVM-light").startswith(FIRST_WORDS):
        lines.fail(f"this is not a SVM-light model file: it begins with '{FIRST_WORDS}...'")

    def word(what: str) -> str:
        return lines.expect(what).partition("#")[0].strip()

    number = lines.whole(word("the type of the kernel"), "the type of the kernel", 0)
    if number not in KERNEL_OF:
        lines.fail(
            f"the kernel is of type {number}, expected one of {KERNEL_NUMBERS}; a kernel of the "
            "user's own cannot be read"
        )
    name = KERNEL_OF[number]
    numbers = {
        letter: lines.real(word(f"parameter -{letter}"), f"kernel parameter -{letter}")
        for letter in "dgsr"
    }
    if name == "poly" and (numbers["d"] < 0 or numbers["d"] != int(numbers["d"])):
        lines.fail(f"the degree of the polynomial is {numbers['d']}, expected a whole number")
    if name == "rbf" and numbers["g"] < 0:
        lines.fail(f"kernel parameter -g is {numbers['g']}, expected at least 0 for the kernel rbf")
    word("parameter -u")
    chosen = {own: numbers[letter] for own, letter in LETTERS[name].items()}
    if "degree" in chosen:
        chosen["degree"] = int(chosen["degree"])
    highest = lines.whole(word("the highest feature index"), "the highest feature index", 0)
    n_rows = lines.whole(
        word("the number of training documents"), "the number of training documents", 0
    )
    n_vectors = (
        lines.whole(
            word("the number of support vectors"), "the number of support vectors plus 1", 1
        )
        - 1
    )
    threshold = lines.real(word("the threshold"), "the threshold b")
    kernel = make_kernel(name, **chosen)  # type: ignore[arg-type]
    return kernel, highest, n_rows, n_vectors, threshold


def _read_vectors(lines: Lines, n_vectors: int) -> tuple[Any, RowReader]:
    """Coefficients and rows."""
    values, rows = [], RowReader(lines)
    for i in range(n_vectors):
        words = lines.expect(f"support vector {i + 1} of {n_vectors}").partition("#")[0].split()
        if not words:
            lines.fail("a support vector begins with alpha*y, this line is empty")
        values.append(lines.real(words[0], "alpha*y"))
        rows.add(words[1:])
    if any(line.strip() for line in lines):
        lines.fail(f"there is more in the file than {n_vectors} support vectors")
    return np.array(values, dtype=np.float64), rows
