"""LIBSVM's model file, both ways.

The file holds, for K classes, the support vectors in blocks by class, K - 1 coefficients for each,
and one rho for each pair of classes (i, j), i < j in the order of its ``label`` line:

    f_ij(x) = sum over block i of coef[j - 1] k + sum over block j of coef[i] k - rho_ij

It is positive for class i. Our attributes have this layout too, with classes in ascending order and
intercept = -rho; only for two classes, positive means the second. So a file of two classes lists
the second class first and keeps the signs, and a file whose labels do not ascend is permuted when
it is read: a pair that changes its order changes all its signs.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slimsvm.kernels import Kernel, Precomputed, make_kernel
from slimsvm.persistence.atomic import replacing
from slimsvm.persistence.fitted import check_savable, outside_facts, rebuild
from slimsvm.persistence.layout import in_support_layout
from slimsvm.persistence.text import (
    Lines,
    RowReader,
    as_stored,
    require_finite,
    written,
    written_rows,
)

Array = NDArray[Any]
CLASSIFIERS = ("SVC", "NuSVC")
SVM_TYPES = {
    "SVC": "c_svc",
    "NuSVC": "nu_svc",
    "OneClassSVM": "one_class",
    "SVR": "epsilon_svr",
    "NuSVR": "nu_svr",
}
KERNEL_WORDS = {
    "linear": "linear",
    "poly": "polynomial",
    "rbf": "rbf",
    "sigmoid": "sigmoid",
    "precomputed": "precomputed",
}
CLASS_OF = {word: kind for kind, word in SVM_TYPES.items()}
KERNEL_OF = {word: name for name, word in KERNEL_WORDS.items()}
# in the order of the file
NUMBERS = {"poly": ("degree", "gamma", "coef0"), "rbf": ("gamma",), "sigmoid": ("gamma", "coef0")}
PROBABILITIES = ("probA", "probB", "prob_density_marks")
KEYWORDS = (
    "svm_type",
    "kernel_type",
    "degree",
    "gamma",
    "coef0",
    "nr_class",
    "total_sv",
    "rho",
    "label",
    *PROBABILITIES,
    "nr_sv",
)
INT_LIMIT = 2**31  # LIBSVM reads labels and counts as 32-bit integers


def save_libsvm(estimator: Any, path: str | os.PathLike[str], *, zero_based: bool = False) -> None:
    """Write a fitted estimator as a model file of LIBSVM.

    ``svm-predict`` reads it, as does any program that knows this format. Numbers are written so
    that they read back exactly; LIBSVM's own files keep 8 digits of a feature. The file is replaced
    whole or not at all.

    Parameters
    ----------
    estimator : SVC, NuSVC, SVR, NuSVR, OneClassSVM, SparseSVC, SparseSVR, ReducedSVC or LinearSVC
        A fitted estimator with a linear, poly, rbf, sigmoid or precomputed kernel. The labels of a
        classifier must be integers; SparseSVC, ReducedSVC and LinearSVC must have two classes.
        Basis vectors are written as support vectors.
    path : str or path-like
        Where to write.
    zero_based : bool, default=False
        Whether the first feature has the index 0, as in data that
        :func:`sklearn.datasets.dump_svmlight_file` wrote by its default; 1 is LIBSVM's own.

    Raises
    ------
    ValueError
        If LIBSVM has no such kernel, labels or model.
    NotFittedError
        If the estimator was not fitted.

    Notes
    -----
    The file does not hold the names of features, the parameters of the training (C, nu, epsilon,
    class weights), or which rows the support vectors were; :func:`slimsvm.save` keeps all of that.
    With a precomputed kernel it holds the numbers of these rows, counted from 1.

    Examples
    --------
    >>> import os, tempfile
    >>> from slimsvm import SVC
    >>> from slimsvm.persistence import load_libsvm, save_libsvm
    >>> model = SVC(kernel="linear").fit([[0.0], [1.0], [3.0], [4.0]], [-1, -1, 1, 1])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "example.model")
    ...     save_libsvm(model, path)
    ...     print(*open(path).readlines()[:4], sep="", end="")
    ...     load_libsvm(path).predict([[0.5], [3.5]])
    svm_type c_svc
    kernel_type linear
    nr_class 2
    total_sv 2
    array([-1,  1])
    """
    write_libsvm(estimator, path, zero_based=zero_based)


def write_libsvm(
    estimator: Any,
    path: str | os.PathLike[str],
    *,
    zero_based: bool = False,
    more: Mapping[str, Sequence[float]] | None = None,
) -> None:
    """The same with more lines of the header, such as probA of a regression."""
    check_savable(estimator, "a model file of LIBSVM")
    kind, a = in_support_layout(estimator, "A model file of LIBSVM")
    if kind not in SVM_TYPES:
        raise ValueError(
            f"A model file of LIBSVM holds no {type(estimator).__name__}, only what is the same "
            f"function as one of {', '.join(SVM_TYPES)}. Use slimsvm.save."
        )
    kernel: Kernel = a["kernel_"]
    if kernel.name not in KERNEL_WORDS:
        raise ValueError(
            f"LIBSVM has no {kernel.name} kernel, only {', '.join(KERNEL_WORDS)}. Use "
            "slimsvm.save, or train with one of these ('precomputed' takes any kernel's values)."
        )
    coef, intercept, counts, labels = (
        np.asarray(a["dual_coef_"]),
        a["intercept_"],
        a["n_support_"],
        None,
    )
    order = np.arange(coef.shape[1])
    if "classes_" in a:
        labels = _integers(a["classes_"])
        if labels.size == 2:  # the positive class comes first
            order, labels, counts = np.roll(order, -int(counts[0])), labels[::-1], counts[::-1]
    head = {"svm_type": SVM_TYPES[kind], "kernel_type": KERNEL_WORDS[kernel.name]}
    for name in NUMBERS.get(kernel.name, ()):
        head[name] = written(getattr(kernel, name))
    head |= {
        "nr_class": str(2 if labels is None else labels.size),
        "total_sv": str(order.size),
        "rho": " ".join(map(written, -intercept)),
    }
    if labels is not None:
        head["label"] = " ".join(map(str, labels.tolist()))
        if np.size(a.get("_probA", ())):
            # of two classes the second comes first: 1 - 1/(1 + exp(-A f + B)) is its probability
            B = -a["_probB"] if labels.size == 2 else a["_probB"]
            head |= {
                "probA": " ".join(map(written, a["_probA"])),
                "probB": " ".join(map(written, B)),
            }
        head["nr_sv"] = " ".join(map(str, counts.tolist()))
    head |= {key: " ".join(map(written, values)) for key, values in (more or {}).items()}
    if isinstance(kernel, Precomputed):
        rows = (f"0:{serial}" for serial in (a["support_"][order] + 1).tolist())
    else:
        require_finite("support vectors", a["support_vectors_"])
        first = 0 if zero_based else 1
        rows = written_rows(a["support_vectors_"][order], first)  # type: ignore[assignment]
    require_finite("coefficients", coef, intercept)
    with replacing(path, text=True) as file:
        file.writelines(f"{key} {value}\n" for key, value in head.items())
        file.write("SV\n")
        for values, row in zip(coef.T[order].tolist(), rows, strict=True):
            file.write(f"{' '.join(map(written, values))} {row}".rstrip() + "\n")


def load_libsvm(
    path: str | os.PathLike[str],
    *,
    n_features: int | None = None,
    sparse: bool | None = None,
    zero_based: bool = False,
) -> Any:
    """Read a model file of LIBSVM: an estimator that predicts what ``svm-predict`` predicts.

    Parameters
    ----------
    path : str or path-like
        The file, written by LIBSVM or by :func:`save_libsvm`.
    n_features : int, optional
        Number of features (for a precomputed kernel: of training rows) that rows to predict will
        have. The file does not say it; by default it is the largest that the support vectors use.
    sparse : bool, optional
        Whether ``support_vectors_`` shall be CSR or an array; by default an array if at least a
        quarter of the values are not zero.
    zero_based : bool, default=False
        Whether the first feature has the index 0, as in data that
        :func:`sklearn.datasets.dump_svmlight_file` wrote by its default; 1 is LIBSVM's own.

    Returns
    -------
    SVC, NuSVC, SVR, NuSVR or OneClassSVM
        The estimator, fitted. Parameters of the training that the file does not hold have their
        default values, ``support_`` is -1 (unknown; known for a precomputed kernel), and
        ``status_`` says where the model comes from.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If it is not a model file of LIBSVM or is damaged; the message names the line.

    Warns
    -----
    UserWarning
        If the file holds probability estimates of a regression or of one class, which are left
        out; those of classes are kept.

    Notes
    -----
    ``classes_`` ascends, whatever the order in the file. With three or more classes, equal votes
    are therefore won by the smallest of the labels, where LIBSVM lets the one win that comes first
    in the file; everything else is as in LIBSVM.

    See Also
    --------
    save_libsvm : Write such a file; it has an example.
    """
    with Lines(path) as lines:
        head = _read_head(lines)
        kind, name = CLASS_OF[head["svm_type"]], KERNEL_OF[head["kernel_type"]]
        kernel = make_kernel(name, **{number: head[number] for number in NUMBERS.get(name, ())})
        rows = RowReader(lines, first=int(not zero_based))
        coef, serials = _read_vectors(lines, head, isinstance(kernel, Precomputed), rows)
    sigmoids = kind in CLASSIFIERS and "probA" in head and "probB" in head
    if any(word in head for word in PROBABILITIES) and not sigmoids:
        warnings.warn(
            f"{os.fspath(path)} holds probability estimates of a {kind}, which are left out.",
            UserWarning,
            stacklevel=2,
        )
    a = outside_facts(len(head["rho"]) if kind in CLASSIFIERS else None, "LIBSVM")
    a |= {
        "kernel_": kernel,
        "intercept_": -np.array(head["rho"]),
        "dual_coef_": coef,
        "n_support_": np.array([coef.shape[1]], np.int32),
    }
    order = np.arange(coef.shape[1])
    if kind in CLASSIFIERS:
        order, arranged = _ascending(
            np.array(head["label"]), np.array(head["nr_sv"]), coef, np.array(head["rho"])
        )
        a |= arranged
        if sigmoids:
            a |= _sigmoids(np.array(head["label"]), head["probA"], head["probB"])
    if isinstance(kernel, Precomputed):
        n_rows = int(serials.max(initial=0))
        if n_features is not None and n_features < n_rows:
            raise ValueError(
                f"n_features={n_features} is less than {n_rows}, the number of a training row in "
                f"{os.fspath(path)}."
            )
        width = n_rows if n_features is None else int(n_features)
        a |= {
            "support_": (serials[order] - 1).astype(np.int32),
            "support_vectors_": np.empty((0, 0)),
            "shape_fit_": (width, width),
        }
    else:
        vectors = rows.csr(n_features)
        width = vectors.shape[1]
        a |= {
            "support_": np.full(order.size, -1, np.int32),
            "support_vectors_": as_stored(vectors[order], sparse),
        }
        a["shape_fit_"] = (order.size, width)
    a["n_features_in_"] = width
    if kind == "OneClassSVM":
        a["offset_"] = -a["intercept_"]
    given = {"kernel": kernel.name, **kernel.get_params()}
    if sigmoids:
        given["probability"] = True
    return rebuild(kind, given, a)


def _integers(classes: Array) -> Array:
    """Labels as LIBSVM's integers, or a ValueError that says why not."""
    if (
        classes.dtype.kind in "iuf"
        and np.all(np.abs(classes) < INT_LIMIT)
        and np.all(classes == np.floor(classes))
    ):
        return classes.astype(np.int64)
    raise ValueError(
        "LIBSVM's model file holds integer labels (32 bits) only; the labels of this model are "
        f"{classes[:5].tolist()}{' ...' if classes.size > 5 else ''}. Number the classes "
        "(sklearn.preprocessing.LabelEncoder) and train again, or use slimsvm.save."
    )


def _ascending(
    labels: Array, counts: Array, coef: Array, rho: Array
) -> tuple[Array, dict[str, Any]]:
    """The order of the support vectors, coefficients and intercepts, for classes that ascend."""
    place = np.argsort(labels)  # class a of ours is class place[a] of the file
    ends = np.concatenate([[0], np.cumsum(counts)])
    order = np.concatenate([np.arange(ends[c], ends[c + 1]) for c in place])
    facts = {
        "classes_": labels[place],
        "class_weight_": np.ones(labels.size),
        "n_support_": counts[place].astype(np.int32),
    }
    if labels.size == 2:
        # positive: the file's first class, our second
        sign = 1.0 if labels[0] > labels[1] else -1.0
        return order, {**facts, "dual_coef_": sign * coef[:, order], "intercept_": -sign * rho}
    pair_of = {
        pair: p
        for p, pair in enumerate(
            zip(*(index.tolist() for index in np.triu_indices(labels.size, 1)), strict=True)
        )
    }
    new_ends = np.concatenate([[0], np.cumsum(facts["n_support_"])])
    new_coef, new_intercept = np.empty_like(coef), np.empty_like(rho)
    for (a, b), pair in pair_of.items():
        i, j = int(place[a]), int(place[b])
        sign = 1.0 if i < j else -1.0
        for own, other, i_own, i_other in ((a, b, i, j), (b, a, j, i)):
            old = coef[i_other - (i_other > i_own), ends[i_own] : ends[i_own + 1]]
            new_coef[other - (other > own), new_ends[own] : new_ends[own + 1]] = sign * old
        new_intercept[pair] = -sign * rho[pair_of[min(i, j), max(i, j)]]
    return order, {**facts, "dual_coef_": new_coef, "intercept_": new_intercept}


def _sigmoids(labels: Array, A: list[float], B: list[float]) -> dict[str, Any]:
    """Sigmoids of pairs, for classes that ascend: in a pair turned round, B has another sign."""
    place = np.argsort(labels)
    number = np.zeros((labels.size, labels.size), int)
    number[np.triu_indices(labels.size, 1)] = np.arange(len(A))
    i, j = place[np.array(np.triu_indices(labels.size, 1))]
    at, sign = number[np.minimum(i, j), np.maximum(i, j)], np.where(i < j, 1.0, -1.0)
    return {"_probA": np.array(A)[at], "_probB": sign * np.array(B)[at]}


def _read_head(lines: Lines) -> dict[str, Any]:
    """Everything above the line SV, as words, numbers and lists of numbers, checked."""
    head: dict[str, Any] = {}
    for line in lines:
        key, *words = line.split() or [""]
        if key == "SV":
            break
        if key not in KEYWORDS or (not head and key not in ("svm_type", "kernel_type")):
            lines.fail(
                f"{key[:40]!r} is no keyword of a LIBSVM model file"
                if head
                else "this is not a LIBSVM model file: it begins with svm_type"
            )
        if key in head:
            lines.fail(f"{key} is given twice")
        if not words and key != "rho":
            lines.fail(f"{key} has no value")
        head[key] = _header_value(lines, key, words)
    else:
        lines.number += 1
        lines.fail("the file ends before the line 'SV'")
    kernel = KERNEL_OF.get(head.get("kernel_type", ""), "")
    needed = ["svm_type", "kernel_type", "nr_class", "total_sv", "rho", *NUMBERS.get(kernel, ())]
    classifies = CLASS_OF.get(head.get("svm_type", "")) in CLASSIFIERS
    if kernel == "rbf" and head.get("gamma", 0.0) < 0:
        lines.fail(
            f"the header above this line has gamma {head['gamma']}, expected at least 0 for the "
            "kernel rbf"
        )
    for key in [*needed, *(("label", "nr_sv") if classifies else ())]:
        if key not in head:
            lines.fail(f"the header above this line has no {key}")
    n_classes = head["nr_class"]
    if n_classes < 2:
        lines.fail(
            f"the model has nr_class {n_classes}: it was trained on one class only, and always "
            "predicts that one"
        )
    sizes = {
        "rho": n_classes * (n_classes - 1) // 2,
        **({"label": n_classes, "nr_sv": n_classes} if classifies else {}),
    }
    for key, size in sizes.items():
        if len(head[key]) != size:
            lines.fail(
                f"the header above this line has {len(head[key])} values of {key}, expected "
                f"{size} for nr_class {n_classes}"
            )
    if classifies and sum(head["nr_sv"]) != head["total_sv"]:
        lines.fail(f"nr_sv adds up to {sum(head['nr_sv'])}, but total_sv is {head['total_sv']}")
    if classifies and len(set(head["label"])) != n_classes:
        lines.fail("a label is given twice")
    if not classifies and n_classes != 2:
        lines.fail(f"nr_class is {n_classes}, expected 2 for {head['svm_type']}")
    return head


def _header_value(lines: Lines, key: str, words: list[str]) -> Any:
    for name, known in (("svm_type", CLASS_OF), ("kernel_type", KERNEL_OF)):
        if key == name:
            return (
                words[0]
                if words[0] in known
                else lines.fail(f"{key} is {words[0]!r}, expected one of {', '.join(known)}")
            )
    if key in ("label", "nr_sv"):
        return [
            lines.whole(word, key) if key == "label" else lines.whole(word, key, 0)
            for word in words
        ]
    if key in ("degree", "nr_class", "total_sv"):
        return lines.whole(words[0], key, 0)
    if key in ("gamma", "coef0"):
        return lines.real(words[0], key)
    return [lines.real(word, key) for word in words]


def _read_vectors(
    lines: Lines, head: dict[str, Any], precomputed: bool, rows: RowReader
) -> tuple[Array, Array]:
    """Coefficients (K - 1, n); for a precomputed kernel, the numbers of training rows."""
    n_coef, n_vectors = head["nr_class"] - 1, head["total_sv"]
    coefs: list[list[float]] = []
    serials: list[int] = []
    for _ in range(n_vectors):
        words = lines.expect(f"support vector {len(coefs) + 1} of {n_vectors}").split()
        if len(words) < n_coef:
            lines.fail(
                f"a support vector begins with {n_coef} coefficient{'s' * (n_coef > 1)}, this "
                f"line has {len(words)} words"
            )
        coefs.append([lines.real(word, "a coefficient") for word in words[:n_coef]])
        if precomputed:
            index, _, serial = words[n_coef].partition(":") if len(words) > n_coef else ("", "", "")
            if index != "0":
                lines.fail(
                    "a support vector of a precomputed kernel ends in 0:<number of the training "
                    "row>"
                )
            serials.append(lines.whole(serial, "the number of the training row", 1))
        else:
            rows.add(words[n_coef:])
    if any(line.strip() for line in lines):
        lines.fail(f"there is more in the file than total_sv {n_vectors} support vectors")
    return (
        np.array(coefs, dtype=np.float64).reshape(n_vectors, n_coef).T.copy(),
        np.array(serials, dtype=np.int64),
    )
