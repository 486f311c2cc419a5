"""A fitted model as plain arrays: what every target language needs to know, read once.

    z = (x - shift) * metric   or   (x - shift) @ metric
    k_j = exp(-width_j |z - b_j|^2), exp(-width_j |z - b_j|_1), (gamma z.b_j + coef0)^degree,
          tanh(gamma z.b_j + coef0)
    outputs = sum_j coef_j k_j + intercept   or, of a linear one,   z @ coef + intercept

Scalers of a pipeline are in shift and metric. One-vs-one models keep LIBSVM's layout of the
coefficients (:class:`slimsvm.expansion.Expansion`): dense columns for all pairs would be larger.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from slimsvm.expansion import Expansion, dense
from slimsvm.kernels import FromCallable, Laplacian, Linear, Polynomial, Precomputed, Sigmoid
from slimsvm.models.linear import LinearWeights
from slimsvm.models.predictions import ClassPredictions
from slimsvm.models.support import KernelModel
from slimsvm.multiclass import OneVsOne

Array = NDArray[Any]
BORDER = 1e-11  # of the offset: what OneClassSVM takes for its border
SCALERS = ("StandardScaler", "MinMaxScaler", "MaxAbsScaler", "RobustScaler")


@dataclass(frozen=True)
class Probabilities:
    """How probabilities follow from outputs.

    Parameters
    ----------
    kind : {'softmax', 'pairs', 'sigmoids', 'temperature'}
        'softmax' of the outputs, of one the logistic function; 'pairs': sigmoids of pairs, coupled;
        'sigmoids': one for each class, divided by their sum; 'temperature': softmax of the decision
        values times a number.
    A, B : arrays
        Of sigmoids 1 / (1 + exp(A f + B)), or in A the number of a temperature.
    swapped : bool
        Whether the class that is predicted changes places with the most probable one.
    decides : bool
        Whether the most probable class is the one that is predicted.
    """

    kind: str
    A: Array
    B: Array
    swapped: bool = False
    decides: bool = False


@dataclass(frozen=True)
class Description:
    """What predictions need; the text of the module says how they are made.

    Parameters
    ----------
    form : {'linear', 'rbf', 'laplacian', 'poly', 'sigmoid'}
        What becomes of a vector.
    answer : {'class', 'number', 'sign'}
        What is predicted.
    pairwise : bool
        Whether outputs are pairs of classes, which vote.
    joint : bool
        Whether two classes have two outputs.
    break_ties, by_pair : bool
        As the parameters break_ties and decision_function_shape='ovo'.
    border : float
        Values up to this size are zero: the border of a one-class model.
    """

    name: str
    about: Any
    n_features: int
    form: str
    coef: Array
    intercept: Array
    answer: str
    basis: Array | None = None
    widths: Array | None = None
    gamma: float = 1.0
    coef0: float = 0.0
    degree: int = 1
    n_support: Array | None = None
    shift: Array | None = None
    metric: Array | None = None
    classes: Array | None = None
    pairwise: bool = False
    joint: bool = False
    break_ties: bool = False
    by_pair: bool = False
    border: float = 0.0
    probabilities: Probabilities | None = None

    @property
    def n_classes(self) -> int:
        """Zero where there are none."""
        return 0 if self.classes is None else len(self.classes)

    @property
    def n_vectors(self) -> int:
        """Of the basis; zero for a linear one."""
        return 0 if self.basis is None else int(self.basis.shape[0])

    @property
    def n_mapped(self) -> int:
        """Coordinates of a vector."""
        full = self.metric is not None and self.metric.ndim == 2
        return int(self.metric.shape[1]) if full and self.metric is not None else self.n_features

    @property
    def n_outputs(self) -> int:
        """Values that decide."""
        return int(self.intercept.size)

    @property
    def n_multiplications(self) -> int:
        """For one row; an exponential counts as one."""
        mapping = 0 if self.metric is None else int(self.metric.size)
        if self.basis is None:
            return mapping + int(self.coef.size)
        distances = self.n_vectors * (self.n_mapped + 2)
        return mapping + distances + int(self.coef.size)

    @property
    def total(self) -> float:
        """The largest sum of |coef| of an output: the size of errors is a share of it."""
        size = np.abs(self.coef).sum(axis=0)
        return float(size.max(initial=0.0))


def described(estimator: Any) -> Description:
    """The description of a fitted estimator, a pipeline of scalers and one, or a calibrated one.

    One that holds several models, as CalibratedClassifierCV does with ensemble=True, is refused;
    :func:`all_described` takes it.

    Raises
    ------
    ValueError
        If it has no finite expansion that other languages could have.
    NotFittedError
        If ``fit`` was not called.

    Examples
    --------
    >>> from slimsvm import SVC
    >>> from slimsvm.export.description import described
    >>> found = described(SVC(kernel="linear").fit([[0.0], [2.0]], [3, 5]))
    >>> found.form, found.coef.tolist(), found.intercept.tolist(), found.n_multiplications
    ('linear', [[1.0]], [-1.0], 1)
    """
    found = all_described(estimator)
    if len(found) > 1:
        raise ValueError(
            f"This {type(estimator).__name__} holds {len(found)} models, whose probabilities are "
            "averaged; here an export holds one. Fit with ensemble=False, or use slimsvm.to_onnx."
        )
    return found[0]


def all_described(estimator: Any) -> list[Description]:
    """The same where there may be several models, whose probabilities are averaged."""
    kind = type(estimator).__name__
    if kind == "Pipeline":
        return _of_pipeline(estimator)
    if kind == "CalibratedClassifierCV":
        return _of_calibrated(estimator)
    if kind == "FrozenEstimator":
        return all_described(estimator.estimator)
    if hasattr(estimator, "_sigmoids"):
        return [_of_chosen(estimator)]
    if not isinstance(estimator, KernelModel | LinearWeights) and hasattr(
        estimator, "best_estimator_"
    ):
        return all_described(estimator.best_estimator_)
    if isinstance(estimator, type) or not isinstance(estimator, KernelModel | LinearWeights):
        raise ValueError(
            f"An export needs a fitted estimator of slimsvm with vectors or weights; got {kind}. "
            "A Pipeline of scalers and one of ours is taken too; for other steps use "
            "slimsvm.onnx.register() and skl2onnx."
        )
    check_is_fitted(estimator, estimator._learned)
    if not hasattr(estimator, "_predicted"):
        raise ValueError(
            f"The predictions of {kind} are structures, which a search finds; an export holds "
            "classes, numbers or signs. Use slimsvm.save."
        )
    found = [_answering(_function_of(estimator), estimator)]
    before = vars(estimator).get("transformer_")
    return found if before is None else _after([("transformer_", before)], found)


# -- the learned function --------------------------------------------------------------------------


def _function_of(estimator: Any) -> Description:
    """The outputs, without what is decided from them."""
    first: dict[str, Any] = {
        "name": type(estimator).__name__,
        "about": estimator,
        "n_features": int(estimator.n_features_in_),
        "answer": "number",
    }
    explicit = getattr(estimator, "space_", "") == "explicit"
    if isinstance(estimator, LinearWeights) or explicit:
        coef = np.atleast_2d(dense(estimator.coef_)).astype(np.float64)
        intercept = np.broadcast_to(estimator.intercept_, coef.shape[:1]).astype(np.float64)
        return Description(**first, form="linear", coef=coef.T, intercept=intercept)
    function: Expansion = estimator._function()
    _refuse_kernel(function.kernel, hasattr(estimator, "_objects"))
    first["intercept"] = np.asarray(function.intercept, np.float64)
    if isinstance(function.kernel, Linear):
        return Description(**first, form="linear", coef=_weights(function))
    kernel, m = function.kernel, function.basis.shape[0]
    metric, widths = getattr(function, "metric", None), getattr(function, "widths", None)
    first |= {
        "form": kernel.name,
        "basis": dense(function.basis),
        "coef": np.asarray(function.coef),
        "n_support": None if function.n_support is None else np.asarray(function.n_support),
        "metric": None if metric is None else np.asarray(metric),
    }
    if isinstance(kernel, Polynomial | Sigmoid):
        _, first["gamma"], first["coef0"], first["degree"] = kernel.form()
    else:
        gamma = float(getattr(kernel, "gamma"))  # noqa: B009 (of rbf and laplacian alone)
        own = np.ones(m) if widths is None else np.asarray(widths, np.float64)
        first |= {"gamma": gamma, "widths": gamma * own}
    return Description(**first)


def _refuse_kernel(kernel: Any, objects: bool) -> None:
    if isinstance(kernel, FromCallable) or objects:
        raise ValueError(
            "The kernel is a Python function, which other languages do not have. Train with one of "
            "'linear', 'rbf', 'poly', 'sigmoid' and 'laplacian', or use pickle or joblib."
        )
    if isinstance(kernel, Precomputed):
        raise ValueError(
            "The kernel is precomputed: the model knows kernel values, not vectors. Train with one "
            "of 'linear', 'rbf', 'poly', 'sigmoid' and 'laplacian', or use slimsvm.save."
        )
    if not isinstance(kernel, Linear | Polynomial | Sigmoid | Laplacian) and kernel.name != "rbf":
        raise ValueError(f"Exports know no {kernel!r}, only the kernels of slimsvm.kernels.")


def _weights(function: Expansion) -> Array:
    """The weights of features of a linear kernel, one column for each output."""
    basis, coef = function.basis, np.asarray(function.coef, np.float64)
    if function.n_support is None:
        return np.asarray(basis.T @ coef, np.float64)
    counts = function.n_support
    n_classes, ends = counts.size, np.concatenate([[0], np.cumsum(counts)])
    parts = [slice(ends[c], ends[c + 1]) for c in range(n_classes)]
    own = [np.asarray(basis[part].T @ coef[part], np.float64) for part in parts]
    pairs = OneVsOne(n_classes).pairs
    return np.stack([own[i][:, j - 1] + own[j][:, i] for i, j in pairs], axis=1)


# -- what is decided from it -----------------------------------------------------------------------


def _answering(found: Description, estimator: Any) -> Description:
    if not isinstance(estimator, ClassPredictions):
        offset = getattr(estimator, "offset_", None)
        if offset is None:
            return found
        return replace(found, answer="sign", border=BORDER * float(np.abs(offset[0])))
    scheme, n_classes = estimator._scheme(), len(estimator.classes_)
    pairwise = isinstance(scheme, OneVsOne) and n_classes > 2
    by_pair = pairwise and estimator.decision_function_shape == "ovo"
    if by_pair and estimator.break_ties:
        raise ValueError("break_ties must be False when decision_function_shape is 'ovo'")
    return replace(
        found,
        answer="class",
        classes=np.asarray(estimator.classes_),
        pairwise=pairwise,
        joint=found.n_outputs == n_classes == 2,
        break_ties=bool(estimator.break_ties),
        by_pair=by_pair,
        probabilities=_own_probabilities(estimator),
    )


def _own_probabilities(estimator: Any) -> Probabilities | None:
    if not hasattr(estimator, "predict_proba"):
        return None
    A = getattr(estimator, "_probA", np.empty(0))
    if A.size:
        return Probabilities("pairs", A, estimator._probB)
    if getattr(estimator, "loss_", "") in ("logistic", "softmax"):
        return Probabilities("softmax", np.empty(0), np.empty(0))
    return None


def _of_chosen(estimator: Any) -> Description:
    """Of SVCCV: its model, and the sigmoids of held-out scores."""
    check_is_fitted(estimator)
    A, B = estimator._sigmoids.T
    found = described(estimator.best_estimator_)
    own = Probabilities("pairs", A, B, swapped=found.n_classes > 2)
    if estimator.calibration == "temperature":
        own = Probabilities("temperature", np.array([estimator._beta]), np.empty(0), decides=True)
    return replace(found, name=type(estimator).__name__, about=estimator, probabilities=own)


def _of_calibrated(estimator: Any) -> list[Description]:
    """Of scikit-learn's CalibratedClassifierCV around one of ours: one for each model inside."""
    check_is_fitted(estimator)
    return [_of_one_calibrated(estimator, one) for one in estimator.calibrated_classifiers_]


def _of_one_calibrated(estimator: Any, one: Any) -> Description:
    found, calibrators = described(one.estimator), one.calibrators
    kinds = {type(c).__name__ for c in calibrators}
    if kinds == {"_SigmoidCalibration"}:
        numbers = np.array([(c.a_, c.b_) for c in calibrators], np.float64)
        own = Probabilities("sigmoids", numbers[:, 0], numbers[:, 1], decides=True)
    elif kinds == {"_TemperatureScaling"}:
        beta = np.array([float(calibrators[0].beta_)])
        own = Probabilities("temperature", beta, np.empty(0), decides=True)
    else:
        raise ValueError(
            "Exports know CalibratedClassifierCV with method='sigmoid' and 'temperature'; got "
            f"method={estimator.method!r}."
        )
    if found.n_classes != len(estimator.classes_) or found.by_pair:
        raise ValueError(
            "The model inside of CalibratedClassifierCV has not one decision value for each class "
            "of the whole: fit with decision_function_shape='ovr' and rows of all classes in "
            "every fold."
        )
    name, classes = type(estimator).__name__, np.asarray(estimator.classes_)
    # inside, classes are numbers
    return replace(found, name=name, about=estimator, classes=classes, probabilities=own)


# -- pipelines -------------------------------------------------------------------------------------


def _of_pipeline(pipeline: Any) -> list[Description]:
    """Scalers that are one factor and one shift for each feature, before one of ours."""
    found = _after(pipeline.steps[:-1], all_described(pipeline.steps[-1][1]))
    return [replace(one, about=pipeline) for one in found]


def _after(steps: list[Any], found: list[Description]) -> list[Description]:
    """The same functions, of rows before these steps."""
    for name, step in reversed(steps):
        if step is None or (isinstance(step, str) and step == "passthrough"):
            continue
        if type(step).__name__ == "Pipeline":
            found = _after(step.steps, found)
            continue
        if type(step).__name__ not in SCALERS or getattr(step, "clip", False):
            raise ValueError(
                f"The step {name!r} before the model is {type(step).__name__}; an export knows "
                f"{', '.join(SCALERS)} (without clip). For ONNX, use slimsvm.onnx.register() and "
                "skl2onnx, which know more steps."
            )
        check_is_fitted(step)
        scaling = _scaling(step, found[0].n_features)
        found = [_scaled_first(one, *scaling) for one in found]
    return found


def _scaling(step: Any, n_features: int) -> tuple[Array, Array]:
    """Shift and factor of a scaler: what it returns is (x - shift) * factor."""
    scale = getattr(step, "scale_", None)
    scale = np.ones(n_features) if scale is None else np.asarray(scale, np.float64)
    if type(step).__name__ == "MinMaxScaler":  # x * scale + min
        return -step.min_ / scale, scale
    middle = getattr(step, "mean_", getattr(step, "center_", None))
    centred = getattr(step, "with_mean", getattr(step, "with_centering", False))
    shift = np.zeros(n_features) if middle is None or not centred else np.asarray(middle)
    return shift.astype(np.float64), 1.0 / scale


def _scaled_first(found: Description, shift: Array, factor: Array) -> Description:
    """The same function of rows before a scaler.

    ((x - shift) factor - s) M = (x - shift - s / factor) (factor M)
    """
    if found.shift is not None:
        shift = shift + found.shift / factor
    if found.basis is None:
        coef = found.coef if found.metric is None else _through(found.metric, found.coef)
        return replace(found, shift=shift, coef=factor[:, None] * coef, metric=None)
    metric: Array = factor
    if found.metric is not None:
        metric = factor[:, None] * found.metric if found.metric.ndim == 2 else factor * found.metric
    return replace(found, shift=shift, metric=metric)


def _through(metric: Array, coef: Array) -> Array:
    return metric @ coef if metric.ndim == 2 else metric[:, None] * coef
