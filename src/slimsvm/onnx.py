"""Models for ONNX runtimes: :func:`to_onnx`, and :func:`register` for pipelines in skl2onnx."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, is_dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slimsvm import __version__
from slimsvm.export.description import Description, all_described
from slimsvm.export.onnx_file import pieces, size_of
from slimsvm.export.onnx_model import Decisions, outputs
from slimsvm.export.operators import CODES, IR_VERSION, OPSET, Graph
from slimsvm.persistence.atomic import replacing

Array = NDArray[Any]
MOST_BYTES = 2**31 - 1  # of a message of Protocol Buffers
DTYPES = ("float64", "float32")


def to_onnx(
    estimator: Any,
    path: str | os.PathLike[str] | None = None,
    *,
    dtype: Any = None,
    probabilities: bool | None = None,
    raw_scores: bool = False,
) -> Any:
    """A fitted model as an ONNX model of plain operators.

    It needs the package onnx (the extra ``onnx``), and any runtime of ONNX predicts with it. Its
    input is ``X``, (rows, features). The outputs of a classifier are ``label`` (int64 or strings),
    ``scores`` as ``decision_function`` returns them, and ``probabilities`` where the model has
    them; of a regression ``prediction``; of OneClassSVM ``label`` and ``scores``.

    Parameters
    ----------
    estimator : estimator
        A fitted estimator of slimsvm with any of its kernels; CalibratedClassifierCV or a search
        around one; or a Pipeline of scalers and one of these. For other steps see :func:`register`.
    path : str or path-like, optional
        Where the model is written, whole or not at all.
    dtype : {'float64', 'float32'}, optional
        Of the input and of all computations. By default float32 if the vectors are float32, else
        float64.
    probabilities : bool, optional
        Whether there is an output ``probabilities``; by default if the estimator has
        ``predict_proba``.
    raw_scores : bool
        Whether there is an output ``raw_scores`` too: one column for each function that was
        learned, before pairs of classes vote.

    Returns
    -------
    onnx.ModelProto

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> import slimsvm
    >>> X, y = load_iris(return_X_y=True)
    >>> model = slimsvm.to_onnx(slimsvm.SVC().fit(X, y))
    >>> [output.name for output in model.graph.output]
    ['label', 'scores']
    """
    onnx = _package()
    found = all_described(estimator)
    kind = _dtype(dtype, found[0])
    wanted = _wanted(found, probabilities)
    model = onnx.ModelProto(ir_version=IR_VERSION, producer_name="slimsvm")
    model.producer_version = __version__
    model.opset_import.add(domain="", version=OPSET)
    for key, value in about(found[0]).items():
        model.metadata_props.add(key=key, value=value)
    model.graph.name = found[0].name
    g = Graph(model.graph, kind)
    x = g.given("X", kind, ("n", found[0].n_features))
    for name, value, own, shape in write_graph(g, found, x, wanted, raw_scores):
        g.call(value, name)
        g.result(name, own, shape)
    if (size := size_of(model)) > MOST_BYTES:
        raise ValueError(
            f"The model takes {size:,} bytes; a file of ONNX holds {MOST_BYTES:,}. "
            "Make it smaller with slimsvm.compress, or use dtype='float32'."
        )
    if path is not None:
        with replacing(path) as file:
            file.writelines(pieces(model))
    return model


def _package() -> Any:
    try:
        import onnx
    except ImportError as error:
        raise ImportError("to_onnx needs the package onnx: pip install 'slimsvm[onnx]'") from error
    return onnx


def _dtype(dtype: Any, d: Description) -> str:
    if dtype is None:
        single = d.basis is not None and d.basis.dtype == np.float32
        return "float32" if single else "float64"
    try:
        name = np.dtype(dtype).name
    except TypeError:
        name = repr(dtype)
    if name not in DTYPES:
        raise ValueError(f"dtype={dtype!r} is none of {', '.join(map(repr, DTYPES))}.")
    return name


def _wanted(found: list[Description], probabilities: bool | None) -> bool:
    there = found[0].probabilities is not None
    if probabilities and not there:
        raise ValueError(
            f"This {found[0].name} has no probabilities. Use CalibratedClassifierCV of "
            "scikit-learn, SVCCV, or SparseSVC with loss='logistic'."
        )
    return there if probabilities is None else bool(probabilities)


def about(d: Description) -> dict[str, str]:
    """What a model says of itself: version, class, parameters, certificate, status."""
    last = getattr(d.about, "steps", [("", d.about)])[-1][1]
    inner = getattr(last, "best_estimator_", last)
    facts = {"slimsvm_version": __version__, "estimator": type(last).__name__}
    parameters = {key: _plain(value) for key, value in inner.get_params(deep=False).items()}
    facts["parameters"] = json.dumps(parameters, sort_keys=True)
    certificate = getattr(inner, "certificate_", None)
    if is_dataclass(certificate) and not isinstance(certificate, type):
        own = {key: _plain(value) for key, value in asdict(certificate).items()}
        facts["certificate"] = json.dumps(own, sort_keys=True)
    if hasattr(inner, "status_"):
        facts["status"] = str(inner.status_)
    facts["vectors"] = str(d.n_vectors)
    names = getattr(d.about, "feature_names_in_", None)
    if names is not None:
        facts["features"] = json.dumps([str(name) for name in names])
    return facts


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not np.isfinite(value):
        return str(value)
    return value if isinstance(value, bool | int | float | str | None) else repr(value)


Output = tuple[str, str, str, tuple[Any, ...]]  # name, value, type, shape


def write_graph(
    g: Graph, found: list[Description], x: str, probabilities: bool, raw_scores: bool
) -> list[Output]:
    """Write all operators; returns what the outputs are."""
    first, number = found[0], g.dtype.name
    if len(found) > 1:
        return _averaged(g, found, x, probabilities)
    decide = Decisions(g, first, outputs(g, first, x))
    scores = decide.scores()
    if first.answer == "number":
        return [("prediction", scores, number, ("n",))]
    result: list[Output] = []
    if first.answer == "sign":
        inside = g("GreaterOrEqual", scores, g.numbers(0.0))
        label = g("Where", inside, g.integers(1), g.integers(-1))
        result.append(("label", label, "int64", ("n",)))
    else:
        place, own, each = decide.place(scores), first.probabilities, ""
        if own is not None and (probabilities or own.decides):
            each = decide.probabilities(own, scores, place)
            place = g("ArgMax", each, axis=1, keepdims=0) if own.decides else place
        result.append(_labels(g, first, place))
        if probabilities:
            result.append(("probabilities", each, number, ("n", first.n_classes)))
    shape: tuple[Any, ...] = ("n",)
    if first.n_classes > 2:
        shape = ("n", first.n_outputs if first.by_pair else first.n_classes)
    result.insert(1, ("scores", scores, number, shape))
    if raw_scores:  # the same value may be the scores as well, and a value has one name
        raw = g("Identity", decide.values)
        result.append(("raw_scores", raw, number, ("n", first.n_outputs)))
    return result


def _averaged(g: Graph, found: list[Description], x: str, probabilities: bool) -> list[Output]:
    """Several models, each with probabilities: their mean decides, and there are no scores."""
    each = []
    for one in found:
        decide, own = Decisions(g, one, outputs(g, one, x)), one.probabilities
        assert own is not None
        each.append(decide.probabilities(own, decide.scores(), ""))
    total = each[0]
    for other in each[1:]:
        total = g("Add", total, other)
    mean = g("Div", total, g.numbers(len(found)))
    result = [_labels(g, found[0], g("ArgMax", mean, axis=1, keepdims=0))]
    if probabilities:
        result.append(("probabilities", mean, g.dtype.name, ("n", found[0].n_classes)))
    return result


def _labels(g: Graph, d: Description, place: str) -> Output:
    """The predicted labels."""
    assert d.classes is not None
    classes = as_labels(d.classes)
    kind = "str" if classes.dtype.kind == "O" else str(classes.dtype)
    return "label", g("Gather", g.constant(classes), place, axis=0), kind, ("n",)


def as_labels(classes: Array) -> Array:
    """Labels as ONNX has them: int64 or strings. Classes that are floats are whole numbers."""
    if classes.dtype.kind in "iubf":
        numbers = [int(c) for c in classes.tolist()]
        if all(-(2**63) <= n < 2**63 for n in numbers):
            return np.array(numbers, np.int64)
        return np.array([str(n) for n in numbers], object)
    return np.array([str(c) for c in classes.tolist()], object)


# -- pipelines in skl2onnx -------------------------------------------------------------------------


def register() -> None:
    """Teach skl2onnx the estimators of slimsvm, so that it converts pipelines around them.

    Needs the package skl2onnx. ``skl2onnx.to_onnx(pipeline, X)`` then works for a Pipeline, a
    ColumnTransformer before one of ours, CalibratedClassifierCV and others. The second output of a
    classifier are its probabilities; of one that has none, or with the option ``raw_scores``, its
    decision values, one column a class. May be called again.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.decomposition import PCA
    >>> import slimsvm.onnx
    >>> X, y = load_iris(return_X_y=True)
    >>> pipeline = make_pipeline(PCA(3), slimsvm.SVC()).fit(X, y)
    >>> slimsvm.onnx.register()
    >>> import skl2onnx
    >>> model = skl2onnx.to_onnx(pipeline, X, options={"zipmap": False})
    >>> [output.name for output in model.graph.output]
    ['label', 'probabilities']
    """
    try:
        from skl2onnx import update_registered_converter
        from skl2onnx.common import shape_calculator as shapes
    except ImportError as error:
        raise ImportError("register needs skl2onnx: pip install 'slimsvm[onnx]'") from error
    from sklearn.base import ClassifierMixin, RegressorMixin

    for kind in exported_classes():
        alias = f"Slimsvm{kind.__name__}"
        if issubclass(kind, ClassifierMixin):
            options = {
                "zipmap": [True, False, "columns"],
                "raw_scores": [True, False],
                "nocl": [True, False],
                "output_class_labels": [False, True],
            }
            shape = shapes.calculate_linear_classifier_output_shapes
            update_registered_converter(kind, alias, shape, _converted, options=options)
        elif issubclass(kind, RegressorMixin):
            shape = shapes.calculate_linear_regressor_output_shapes
            update_registered_converter(kind, alias, shape, _converted)
        else:
            update_registered_converter(kind, alias, _outlier_shapes, _converted)


def exported_classes() -> list[type]:
    """The estimators that have a finite expansion, and predict classes, numbers or signs."""
    from slimsvm import estimators
    from slimsvm.search.cv_estimators import SVCCV, SVRCV

    left_out = {"ChainSVM", "StructuralSVM", "CrossTraining"}
    own = [getattr(estimators, name) for name in estimators.REGISTRY if name not in left_out]
    return [*own, SVCCV, SVRCV]


def _outlier_shapes(operator: Any) -> None:
    from skl2onnx.common.data_types import Int64TensorType

    n = operator.inputs[0].get_first_dimension()
    operator.outputs[0].set_type(Int64TensorType([n, 1]))
    operator.outputs[1].type.shape = [n, 1]


def _converted(scope: Any, operator: Any, container: Any) -> None:
    """A converter of skl2onnx: our graph, under names of its own, between its operators."""
    from onnx import GraphProto
    from skl2onnx.common.data_types import guess_proto_type

    estimator = operator.raw_operator
    found = all_described(estimator)
    kind = "float64" if guess_proto_type(operator.inputs[0].type) == CODES["float64"] else "float32"
    g = Graph(GraphProto(), kind)
    x = g("Cast", "X", to=kind)
    raw = False
    if found[0].answer == "class":
        raw = scope.get_options(estimator, {"raw_scores": False})["raw_scores"]
    probable = found[0].probabilities is not None and not raw
    values = {name: value for name, value, *_ in write_graph(g, found, x, probable, False)}
    if found[0].answer != "class":
        last = [g("Unsqueeze", value, g.integers([1])) for value in values.values()]
    else:
        second = values["probabilities" if probable else "scores"]
        if found[0].n_classes == 2 and not probable:
            column = g("Unsqueeze", second, g.integers([1]))
            second = g("Concat", g("Neg", column), column, axis=1)
        last = [values["label"], second]
    own = {"X": operator.inputs[0].full_name}
    own |= dict(zip(last, (output.full_name for output in operator.outputs), strict=False))

    def named(name: str) -> str:
        if name not in own:
            own[name] = scope.get_unique_variable_name(f"slimsvm_{name}")
        return own[name]

    for tensor in g.proto.initializer:
        tensor.name = named(tensor.name)
        container.initializers.append(tensor)
    for node in g.proto.node:
        for names in (node.input, node.output):
            renamed = [named(name) for name in names]
            del names[:]
            names.extend(renamed)
        node.name = scope.get_unique_operator_name(node.op_type)
        container.nodes.append(node)
    container.node_domain_version_pair_sets.add(("", OPSET))
