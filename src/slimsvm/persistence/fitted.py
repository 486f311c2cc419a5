"""What a fitted machine consists of: its public attributes, taken out of an estimator and put back into one.

Predictions follow from these attributes alone, so an estimator that gets them back is the same model. Whatever comes from a file is checked
here before it reaches an estimator: compiled code trusts shapes and indices.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from slimsvm.estimators import (
    SVC,
    SVR,
    ChainSVM,
    CoreVectorSVC,
    CrammerSingerSVC,
    CrossTraining,
    LinearSVC,
    LowRankSVC,
    MultivariateSVC,
    NuSVC,
    NuSVR,
    OneClassSVM,
    OnlineSVC,
    ReducedSVC,
    SparseSVC,
    SparseSVR,
    StructuralSVM,
)
from slimsvm.estimators.structural_base import SPACES
from slimsvm.kernels import FromCallable, Kernel, Linear, Precomputed
from slimsvm.oracles import Binary, Chain, Multiclass, Multivariate
from slimsvm.run import FULL, Certificate, Status
from slimsvm.solvers.online import FROZEN, SLOTS
from slimsvm.solvers.path import PathPoint

Array = NDArray[Any]

CLASSES: dict[str, type] = {
    "SVC": SVC,
    "NuSVC": NuSVC,
    "SVR": SVR,
    "NuSVR": NuSVR,
    "OneClassSVM": OneClassSVM,
    "SparseSVC": SparseSVC,
    "SparseSVR": SparseSVR,
    "LinearSVC": LinearSVC,
    "LowRankSVC": LowRankSVC,
    "CrossTraining": CrossTraining,
    "ReducedSVC": ReducedSVC,
    "StructuralSVM": StructuralSVM,
    "CrammerSingerSVC": CrammerSingerSVC,
    "MultivariateSVC": MultivariateSVC,
    "ChainSVM": ChainSVM,
    "CoreVectorSVC": CoreVectorSVC,
    "OnlineSVC": OnlineSVC,
}
ORACLES: dict[str, type] = {
    kind.__name__: kind for kind in (Binary, Multiclass, Multivariate, Chain)
}
CLASSIFIERS = ("SVC", "NuSVC", "LowRankSVC", "CoreVectorSVC", "OnlineSVC")
SPARSE = ("SparseSVC", "SparseSVR")
EXPANSIONS = (*SPARSE, "ReducedSVC")  # over a basis
STRUCTURAL = ("StructuralSVM", "CrammerSingerSVC", "MultivariateSVC", "ChainSVM")

REQUIRED = (
    "support_",
    "support_vectors_",
    "dual_coef_",
    "intercept_",
    "n_support_",
    "n_features_in_",
    "shape_fit_",
    "fit_status_",
    "kernel_",
)
OF_CLASSIFIERS = ("classes_", "class_weight_")
OPTIONAL = (
    "feature_names_in_",
    "n_iter_",
    "certificate_",
    "status_",
    "history_",
    "_fingerprint",
)  # the last: of the rows, for warm_start
OF_SPARSE = (
    "basis_",
    "basis_indices_",
    "basis_coef_",
    "intercept_",
    "n_basis_",
    "n_features_in_",
    "fit_status_",
    "kernel_",
    "certificate_",
    "path_",
)
SPARSE_OPTIONAL = ("feature_names_in_", "n_iter_", "status_", "history_")
OF_REDUCED = tuple(name for name in OF_SPARSE if name != "path_") + OF_CLASSIFIERS
OF_STRUCTURAL = (
    *(name for name in OF_SPARSE if name != "path_"),
    "classes_",
    "oracle_",
    "linear_",
    "space_",
)
OF_LINEAR = ("coef_", "intercept_", "classes_", "class_weight_", "n_features_in_", "fit_status_")

OF_CROSS_TRAINING = (
    "classes_",
    "pairs_",
    "estimators_",
    "shifts_",
    "kept_indices_",
    "n_kept_",
    "n_noise_",
    "n_redundant_",
    "balance_before_",
    "balance_after_",
    "n_features_in_",
)  # but not the margins of all training rows


def names_of(kind: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The attributes that a fitted machine of this class must have, and those that it may have."""
    if kind in SPARSE:
        return (*OF_SPARSE, "classes_") if kind == "SparseSVC" else OF_SPARSE, (
            *SPARSE_OPTIONAL,
            "pairwise_",
        )
    if kind == "ReducedSVC":
        return OF_REDUCED, SPARSE_OPTIONAL
    if kind in STRUCTURAL:
        required = (
            (*OF_STRUCTURAL, "class_weight_") if kind == "CrammerSingerSVC" else OF_STRUCTURAL
        )
        return required, (*SPARSE_OPTIONAL, "coef_")
    if kind == "LinearSVC":
        return OF_LINEAR, (*SPARSE_OPTIONAL, "certificate_")
    if kind == "CrossTraining":
        return OF_CROSS_TRAINING, ("feature_names_in_", "certificate_", "status_")
    required = REQUIRED + (
        OF_CLASSIFIERS if kind in CLASSIFIERS else ("offset_",) if kind == "OneClassSVM" else ()
    )
    further = {
        "LowRankSVC": ("factor_error_", "factor_shift_"),
        "OnlineSVC": ("n_seen_", "stream_"),
    }  # the last: for partial_fit to go on
    return required, (*OPTIONAL, *further.get(kind, ()))


def class_of(estimator: Any) -> str:
    """The name of the estimator's class, if it is one that model files know, and fitted.

    Raises
    ------
    ValueError
        For any other class, subclasses of these included: a file could not bring back what a subclass adds.
    NotFittedError
        If ``fit`` was not called.
    """
    kind = type(estimator).__name__
    if CLASSES.get(kind) is not type(estimator):
        raise ValueError(
            f"A model file holds one of slimsvm's {', '.join(CLASSES)}; got an object of class {type(estimator).__module__}.{kind}."
            " Give the fitted slimsvm estimator itself (of a pipeline or a search: that step, or best_estimator_), or use pickle or joblib."
        )
    learned = {"LinearSVC": "coef_", "CrossTraining": "estimators_"}.get(
        kind, "basis_coef_" if kind in (*EXPANSIONS, *STRUCTURAL) else "support_"
    )
    check_is_fitted(estimator, learned)
    for machine in getattr(estimator, "estimators_", ()):  # of a CrossTraining
        class_of(machine)
    return kind


def refuse_callable(estimator: Any, form: str) -> None:
    """Raise ValueError if the kernel is a function, which no model file can hold."""
    if type(estimator) is CrossTraining:
        for machine in estimator.estimators_:
            refuse_callable(machine, form)
        return
    if isinstance(getattr(estimator, "kernel_", None), FromCallable) or isinstance(
        estimator.kernel, FromCallable
    ):
        raise ValueError(
            f"A kernel that is a Python function cannot be written to {form}: the file holds numbers, not code."
            " Use pickle or joblib, which refer to the function by its name, or train with a kernel that has a name"
            " ('linear', 'rbf', 'poly', 'sigmoid', 'laplacian', or 'precomputed' with the values of your function)."
        )


def attributes_of(estimator: Any, kind: str) -> dict[str, Any]:
    """The public fitted attributes by name."""
    required, optional = names_of(kind)
    return {
        name: getattr(estimator, name)
        for name in (*required, *(name for name in optional if hasattr(estimator, name)))
    }


def rebuild(kind: str, parameters: dict[str, Any], attributes: dict[str, Any]) -> Any:
    """An estimator of the named class with these parameters and fitted attributes, which are checked.

    Raises
    ------
    ValueError
        If a name is unknown or missing, or if the arrays do not fit together.
    """
    known = set(CLASSES[kind]._get_param_names())  # type: ignore[attr-defined]
    _demand(
        known >= set(parameters), f"{kind} has no parameter {_first(set(parameters) - known)!r}"
    )
    required, optional = names_of(kind)
    _demand(
        set(attributes) >= set(required),
        f"the fitted attribute {_first(set(required) - set(attributes))!r} is missing",
    )
    unknown = set(attributes) - {*required, *optional}
    _demand(not unknown, f"a fitted {kind} has no attribute {_first(unknown)!r}")
    check_attributes(kind, attributes)
    estimator = CLASSES[kind](**parameters)
    for name, value in attributes.items():
        setattr(estimator, name, value)
    if hasattr(estimator, "_make"):
        estimator._make()  # ready for prediction
    return estimator


def check_attributes(kind: str, attributes: dict[str, Any]) -> None:
    """Raise ValueError unless types, shapes and indices fit together."""
    if kind in EXPANSIONS:
        _check_sparse(kind, attributes)
        return
    if kind in STRUCTURAL:
        _check_structural(attributes)
        return
    if kind == "LinearSVC":
        _check_linear(attributes)
        return
    if kind == "CrossTraining":
        _check_cross_training(attributes)
        return
    a = attributes
    support, vectors, coef, kernel = (
        a["support_"],
        a["support_vectors_"],
        a["dual_coef_"],
        a["kernel_"],
    )
    _check_kernel(kernel)
    n_features = _n_features(a)
    _demand(_is_integer(support) and support.ndim == 1, "support_ is not a vector of indices")
    n_sv = support.size
    _demand(_is_real(vectors) and vectors.ndim == 2, "support_vectors_ is not a matrix of numbers")
    if isinstance(kernel, Precomputed):
        inside = not n_sv or (support.min() >= 0 and support.max() < n_features)
        _demand(
            inside, f"support_ points outside of the {n_features} columns of a precomputed kernel"
        )
    else:
        _demand(
            vectors.shape == (n_sv, n_features),
            f"support_vectors_ has shape {vectors.shape}, expected {(n_sv, n_features)}",
        )
    n_classes = 2
    if kind in CLASSIFIERS:
        n_classes = _n_classes(a)
        _demand(
            np.shape(a["class_weight_"]) == (n_classes,),
            f"class_weight_ has not {n_classes} values, one for each class",
        )
    _demand(
        _is_real(coef) and coef.shape == (n_classes - 1, n_sv),
        f"dual_coef_ has not the shape {(n_classes - 1, n_sv)}",
    )
    n_pairs = n_classes * (n_classes - 1) // 2
    _demand(
        _is_real(a["intercept_"]) and a["intercept_"].shape == (n_pairs,),
        f"intercept_ has not the shape {(n_pairs,)}",
    )
    if "stream_" in a:
        _check_stream(a, n_features, n_pairs)
    counts = a["n_support_"]
    expected = n_classes if kind in CLASSIFIERS else 1
    _demand(
        _is_integer(counts) and counts.shape == (expected,), f"n_support_ has not {expected} counts"
    )
    _demand(
        bool(np.all(counts >= 0)) and int(counts.sum()) == n_sv,
        f"the counts of n_support_ do not add up to {n_sv}",
    )


def _check_stream(a: dict[str, Any], n_features: int, n_pairs: int) -> None:
    """What ``partial_fit`` of an OnlineSVC goes on from: one expansion for each pair of classes."""
    stream = a["stream_"]
    names = {"seed", "n_calls", "n_seen", "form", "dtype", "shift", "pairs"}
    _demand(
        isinstance(stream, dict) and set(stream) == names, "stream_ has not the entries of a stream"
    )
    counts = (stream["seed"], stream["n_calls"], stream["n_seen"])
    _demand(
        all(isinstance(count, int) and count >= 0 for count in counts),
        "a count of stream_ is not one",
    )
    _demand(
        stream["form"] in ("dense", "sparse", "given")
        and stream["dtype"] in ("float32", "float64"),
        "stream_ is of an unknown form",
    )
    shift, pairs = stream["shift"], stream["pairs"]
    _demand(
        shift is None or (_is_array(shift) and shift.shape == (n_features,)),
        f"the shift of stream_ has not {n_features} values",
    )
    _demand(
        isinstance(pairs, list) and len(pairs) == n_pairs,
        f"stream_ has not {n_pairs} expansions, one for each pair",
    )
    for k, pair in enumerate(pairs):
        where = f" of expansion {k} of stream_"
        expected = {"raw", "K", "f_raw", "bottom", "top", *SLOTS, *FROZEN}
        _demand(
            isinstance(pair, dict) and set(pair) == expected,
            f"the entries{where} are not those of an expansion",
        )
        for rows, slots, ids in (("raw", SLOTS, "ids"), ("f_raw", FROZEN, "f_ids")):
            n = np.size(pair[ids])
            _demand(
                _is_real(pair[rows]) and pair[rows].shape == (n, n_features),
                f"the vectors{where} have not the shape {(n, n_features)}",
            )
            _demand(
                _is_integer(pair[ids]) and pair[ids].shape == (n,),
                f"the ids{where} are not integers",
            )
            for name in slots:
                _demand(
                    name == ids or (_is_array(pair[name]) and pair[name].shape == (n,)),
                    f"{name}{where} has not {n} values",
                )
        n = pair["ids"].size
        fits = (
            _is_array(pair["K"])
            and pair["K"].shape == (n, n)
            and str(pair["K"].dtype) == stream["dtype"]
        )
        _demand(fits, f"the kernel values{where} have not the shape {(n, n)}")
        _demand(
            all(isinstance(pair[end], int | float) for end in ("bottom", "top")),
            f"an end{where} is not a number",
        )


def _check_sparse(kind: str, a: dict[str, Any]) -> None:
    """The machine, and that of every size in its path."""
    kernel, n_features = a["kernel_"], _n_features(a)
    _check_kernel(kernel)
    _demand(not isinstance(kernel, Precomputed), f"a {kind} has no precomputed kernel")
    n_outputs = 1
    if kind == "ReducedSVC":
        n_classes = _n_classes(a)
        n_outputs = n_classes * (n_classes - 1) // 2
        _demand(
            np.shape(a["class_weight_"]) == (n_classes,),
            f"class_weight_ has not {n_classes} values, one for each class",
        )
    elif kind == "SparseSVC":
        n_classes = _n_classes(a)
        pairs = a.get("pairwise_", False)
        _demand(
            isinstance(pairs, bool) and (n_classes > 2 or not pairs),
            f"pairwise_ is {pairs!r}, with {n_classes} classes",
        )
        n_outputs = (
            1 if n_classes == 2 else n_classes * (n_classes - 1) // 2 if pairs else n_classes
        )
    else:
        _demand("pairwise_" not in a, "a fitted SparseSVR has no attribute 'pairwise_'")
    _check_expansion(
        a["n_basis_"],
        a["basis_"],
        a["basis_coef_"],
        a["intercept_"],
        a["basis_indices_"],
        n_features,
        n_outputs,
        "",
    )
    _demand(isinstance(a["certificate_"], Certificate), "certificate_ is not a certificate")
    path = a.get("path_", [])
    _demand(
        isinstance(path, list) and all(isinstance(point, PathPoint) for point in path),
        "path_ is not a list of machines",
    )
    for i, p in enumerate(path):
        _check_expansion(
            p.n_basis,
            p.basis,
            p.coef,
            p.intercept,
            p.indices,
            n_features,
            n_outputs,
            f" of path_[{i}]",
        )
        maybe = (p.validation_score, p.projection_error, p.bound)
        numbers = [
            p.objective,
            p.gap,
            p.training_score,
            *(number for number in maybe if number is not None),
        ]
        _demand(
            all(isinstance(number, int | float) for number in numbers),
            f"a score or objective of path_[{i}] is not a number",
        )


def _check_expansion(
    n_basis: Any,
    basis: Any,
    coef: Any,
    intercept: Any,
    indices: Any,
    n_features: int,
    n_outputs: int,
    where: str,
) -> None:
    _demand(
        isinstance(n_basis, int) and n_basis >= 0,
        f"the number of basis vectors{where} is {n_basis!r}, not a count",
    )
    _demand(
        _is_real(basis) and basis.shape == (n_basis, n_features),
        f"the basis{where} has not the shape {(n_basis, n_features)}",
    )
    _demand(
        _is_array(coef) and coef.shape == (n_basis, n_outputs),
        f"the coefficients{where} have not the shape {(n_basis, n_outputs)}",
    )
    _demand(
        _is_array(intercept) and intercept.shape == (n_outputs,),
        f"the intercept{where} has not the shape {(n_outputs,)}",
    )
    fits = indices is None or (_is_integer(indices) and indices.shape == (n_basis,))
    _demand(fits, f"the indices of the basis{where} are not {n_basis} integers")


def _check_structural(a: dict[str, Any]) -> None:
    """An oracle, which then knows the labels, and a machine with as many columns and as long a linear part as it wants."""
    n_features, classes, oracle, kernel = _n_features(a), a["classes_"], a["oracle_"], a["kernel_"]
    _check_kernel(kernel)
    _demand(not isinstance(kernel, Precomputed), "a structural machine has no precomputed kernel")
    _n_classes(a)
    _demand(type(oracle) in ORACLES.values(), "oracle_ is not one of slimsvm's oracles")
    oracle.prepare(classes)
    width = oracle.n_columns
    _demand(a["space_"] in SPACES, f"space_ is {a['space_']!r}, not one of {', '.join(SPACES)}")
    _check_expansion(
        a["n_basis_"],
        a["basis_"],
        a["basis_coef_"],
        a["intercept_"],
        a["basis_indices_"],
        n_features,
        width,
        "",
    )
    _demand(
        _is_array(a["linear_"]) and a["linear_"].shape == (oracle.n_linear,),
        f"linear_ has not the shape {(oracle.n_linear,)}",
    )
    _demand(
        (a["space_"] == "explicit") == ("coef_" in a),
        "coef_ belongs to the explicit space, and only to it",
    )
    if "coef_" in a:
        _demand(
            _is_array(a["coef_"]) and a["coef_"].shape == (width, n_features),
            f"coef_ has not the shape {(width, n_features)}",
        )
    if "class_weight_" in a:
        _demand(
            np.shape(a["class_weight_"]) == (classes.size,),
            f"class_weight_ has not {classes.size} values, one for each class",
        )
    _demand(isinstance(a["certificate_"], Certificate), "certificate_ is not a certificate")


def _check_linear(a: dict[str, Any]) -> None:
    n_features, n_classes = _n_features(a), _n_classes(a)
    rows = 1 if n_classes == 2 else n_classes
    _demand(
        _is_array(a["coef_"]) and a["coef_"].shape == (rows, n_features),
        f"coef_ has not the shape {(rows, n_features)}",
    )
    _demand(
        _is_array(a["intercept_"]) and a["intercept_"].shape == (rows,),
        f"intercept_ has not the shape {(rows,)}",
    )
    _demand(
        np.shape(a["class_weight_"]) == (n_classes,),
        f"class_weight_ has not {n_classes} values, one for each class",
    )


def _check_cross_training(a: dict[str, Any]) -> None:
    """One machine for each pair of classes, of these classes; what is inside them was checked when they were made."""
    n_features, n_classes, classes = _n_features(a), _n_classes(a), a["classes_"]
    first, second = np.triu_indices(n_classes, 1)
    n_pairs, machines, kept = first.size, a["estimators_"], a["kept_indices_"]
    pairs = np.stack([classes[first], classes[second]], axis=1)
    _demand(
        isinstance(a["pairs_"], np.ndarray) and np.array_equal(a["pairs_"], pairs),
        "pairs_ are not the pairs of classes_",
    )
    for name, values in (("estimators_", machines), ("kept_indices_", kept)):
        _demand(
            isinstance(values, list) and len(values) == n_pairs,
            f"{name} is not a list of {n_pairs}, one for each pair",
        )
    for k, (machine, rows) in enumerate(zip(machines, kept, strict=True)):
        fitted = type(machine) in CLASSES.values() and hasattr(machine, "classes_")
        _demand(fitted, f"estimators_[{k}] is not a fitted classifier")
        _demand(
            np.array_equal(machine.classes_, pairs[k]),
            f"estimators_[{k}] is not for the classes {pairs[k].tolist()}",
        )
        _demand(
            _is_integer(rows) and rows.ndim == 1 and rows.size > 0,
            f"kept_indices_[{k}] is not a vector of indices",
        )
        expected = n_features
        if get_tags(machine).input_tags.pairwise:  # its columns are the rows it was trained on
            _demand(
                rows.min() >= 0 and rows.max() < n_features,
                f"kept_indices_[{k}] points outside of the {n_features} kernel values",
            )
            expected = rows.size
        _demand(
            machine.n_features_in_ == expected,
            f"estimators_[{k}] has {machine.n_features_in_} features, expected {expected}",
        )
    _demand(
        _is_array(a["shifts_"]) and a["shifts_"].shape == (n_pairs,),
        f"shifts_ has not the shape {(n_pairs,)}",
    )
    for name in ("n_kept_", "n_noise_", "n_redundant_"):
        _demand(
            _is_integer(a[name]) and a[name].shape == (n_pairs,), f"{name} has not {n_pairs} counts"
        )
    for name in ("balance_before_", "balance_after_"):
        _demand(
            _is_array(a[name]) and a[name].shape == (n_pairs, 2),
            f"{name} has not the shape {(n_pairs, 2)}",
        )


def _check_kernel(kernel: Any) -> None:
    _demand(
        isinstance(kernel, Kernel) and not isinstance(kernel, FromCallable),
        "kernel_ is not a kernel",
    )
    gamma = getattr(kernel, "gamma", 1.0)
    _demand(
        isinstance(gamma, int | float) and np.isfinite(gamma),
        f"gamma of kernel_ is {gamma!r}, not a number",
    )


def _n_features(a: dict[str, Any]) -> int:
    n_features, names = a["n_features_in_"], a.get("feature_names_in_")
    _demand(
        isinstance(n_features, int) and n_features >= 0,
        f"n_features_in_ is {n_features!r}, not a count",
    )
    _demand(
        names is None or np.shape(names) == (n_features,),
        f"feature_names_in_ has not {n_features} names",
    )
    return int(n_features)


def _n_classes(a: dict[str, Any]) -> int:
    classes = a["classes_"]
    _demand(
        isinstance(classes, np.ndarray) and classes.ndim == 1 and classes.size >= 2,
        "classes_ is not a vector of two or more labels",
    )
    _demand(bool(np.all(classes[:-1] < classes[1:])), "classes_ is not in ascending order")
    return int(classes.size)


def in_support_layout(estimator: Any, kind: str, form: str) -> tuple[str, dict[str, Any]]:
    """Class and attributes of the exact machine that is the same function: what the formats of other programs can hold.

    A kernel expansion is a kernel expansion, whoever found it: the basis vectors are the support vectors, sorted by the sign of their
    coefficients in place of their class. An exact machine is what it is.

    Parameters
    ----------
    form : str
        What is to be written, for the message.

    Raises
    ------
    ValueError
        For machines of several classes that are not one-vs-one over vectors of their own: these formats have no place for a shared basis.
        For a CrossTraining, which consists of machines; for structural machines.
    """
    if kind == "CrossTraining":
        raise ValueError(
            f"{form} holds one machine, a CrossTraining one for each pair of classes. Use slimsvm.save, or write its machines (estimators_)"
            " one by one; what refit_intercept added to their decision values is in shifts_."
        )
    if kind in STRUCTURAL:
        raise ValueError(
            f"{form} holds machines that compare numbers with zero; a {kind} does more with its scores. Use slimsvm.save."
        )
    a = attributes_of(estimator, kind)
    if kind not in EXPANSIONS and kind != "LinearSVC":
        return "SVC" if kind in ("LowRankSVC", "CoreVectorSVC", "OnlineSVC") else kind, a
    if "classes_" in a and len(a["classes_"]) > 2:
        raise ValueError(
            f"{form} holds one machine for each pair of classes; a {kind} of {len(a['classes_'])} classes is made differently, its classes"
            " share all vectors. Use slimsvm.save, or write one model for each class against the rest (sklearn.multiclass.OneVsRestClassifier)."
        )
    vectors, coef, kernel = (
        (a["coef_"], np.ones(1), Linear())
        if kind == "LinearSVC"
        else (a["basis_"], a["basis_coef_"][:, 0], a["kernel_"])
    )
    order, counts = np.arange(coef.size), [coef.size]
    if "classes_" in a:
        order, counts = (
            np.argsort(coef > 0, kind="stable"),
            [int(np.sum(coef <= 0)), int(np.sum(coef > 0))],
        )
    same = {
        "kernel_": kernel,
        "intercept_": a["intercept_"],
        "dual_coef_": coef[None, order],
        "n_support_": np.array(counts, np.int32),
    }
    same |= {
        "support_": np.full(coef.size, -1, np.int32),
        "support_vectors_": vectors[order],
        "shape_fit_": (coef.size, a["n_features_in_"]),
    }
    same |= {name: a[name] for name in ("classes_", "n_features_in_") if name in a}
    return "SVR" if kind == "SparseSVR" else "SVC", same


def outside_facts(kind: str, source: str, n_pairs: int) -> dict[str, Any]:
    """The attributes that a foreign model file says nothing about, with values that say so."""
    nan = float("nan")
    return {
        "fit_status_": 0,
        "n_iter_": np.zeros(n_pairs, np.int32) if kind in CLASSIFIERS else 0,
        "certificate_": Certificate(
            scope=FULL, objective=nan, violation=nan, gap=nan, tol=nan, precision="unknown"
        ),
        "status_": Status(
            "loaded",
            f"Read from a model file of {source}, which does not say how the training ended.",
        ),
        "history_": {},
    }


def _is_integer(values: Any) -> bool:
    return isinstance(values, np.ndarray) and values.dtype.kind in "iu"


def _is_array(values: Any) -> bool:
    return isinstance(values, np.ndarray) and values.dtype.kind == "f"


def _is_real(values: Any) -> bool:
    return (isinstance(values, np.ndarray) or sp.issparse(values)) and values.dtype.kind == "f"


def _first(names: set[str]) -> str:
    return min(names, default="")


def _demand(condition: bool, complaint: str) -> None:
    if not condition:
        raise ValueError(complaint)
