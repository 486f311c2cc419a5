"""Models with few vectors, in a metric perhaps, at several sizes; what can be done with them."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.special import expit, softmax
from sklearn.utils._param_validation import validate_parameter_constraints
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from slimsvm.declarations import Attribute, attribute, demand, of_new_rows
from slimsvm.ending import FULL, Certificate, Status
from slimsvm.expansion import Expansion, MappedExpansion
from slimsvm.kernels import Kernel
from slimsvm.losses import Softmax
from slimsvm.mapping import mapped
from slimsvm.models.basis import BasisVectors
from slimsvm.models.predictions import over_rows
from slimsvm.models.streams import KeptStream
from slimsvm.multiclass import OneVsOne
from slimsvm.precision import is_small
from slimsvm.quantization import FORMS as QUANTIZED
from slimsvm.quantization import packed_model
from slimsvm.rows import MemoryRows, is_far
from slimsvm.solvers.path_points import PathPoint
from slimsvm.threads import n_threads

Array = NDArray[Any]
PROBABLE = ("logistic", "softmax")  # losses whose scores are logarithms of odds


class SparseModel(KeptStream, BasisVectors):
    """A small basis that was learned, and the same at every smaller size.

    Attributes
    ----------
    basis_coef_
        Coefficients; one output for two classes and for regression, else one for each class.
    basis_
        The basis vectors; those of a descent are in the metric.
    metric_
        Of a descent with a metric: a factor for each feature, or a matrix; the kernel is that of
        ``X * metric_``, or of ``X @ metric_``, and ``basis_``.
    widths_
        Of a descent with the rbf kernel: a factor of gamma for each basis vector.
    loss_
        The loss that was minimised.
    path_
        The model at 1, 2, 5, 10, ... basis vectors; see :meth:`truncated`.
    certificate_
        Objective, and its gap within the span of the basis (with basis='all', among all
        functions); :meth:`certify` gives the gap to the exact solution.
    history_
        Seconds, objective and size of the basis after every step.
    n_iter_
        Steps of all solvers together.
    """

    # the basis before the path: arrays of a file have the name under which they are met first
    fitted: ClassVar[tuple[Attribute, ...]] = (
        attribute("basis_", "rows", ("n_basis", "n_mapped")),
        *BasisVectors.fitted[1:],
        attribute("metric_", "float", optional=True),
        attribute("widths_", "float", ("n_basis",), optional=True),
        attribute("loss_", "text", optional=True),
        attribute("path_", "path"),
        *KeptStream.fitted,
    )
    path_: list[PathPoint]
    _row_duals: Array | None
    _packed: dict[str, Any]  # of a quantised one
    _parameter_constraints: ClassVar[dict[str, Any]]
    # of the estimator
    status_: Status
    fit_status_: int
    score: Callable[..., float]
    C: float
    tol: float
    fit_intercept: bool

    # -- what an estimator says --------------------------------------------------------------------

    def _loss(self, descends: bool, n_classes: int) -> Any:
        """The loss that the parameters name."""
        raise NotImplementedError

    def _targets(self, target: Array, n_classes: int) -> Array:
        """One column for each output."""
        raise NotImplementedError

    def _given_again(self, X: Any, y: Any, sample_weight: Any) -> tuple[Any, Array, Array]:
        """Rows of positive weight, their targets, and weights, for a fitted estimator."""
        raise NotImplementedError

    # -- the function ------------------------------------------------------------------------------

    def _take(self, point: PathPoint, kernel: Kernel) -> None:
        """Be the model of this size."""
        self._hold(kernel, point.basis, point.indices, point.coef, point.intercept)
        self.__dict__.pop("_packed", None)
        for name, value in (("metric_", point.metric), ("widths_", point.widths)):
            self.__dict__.pop(name, None)
            if value is not None:
                setattr(self, name, value)

    def _made_from(self) -> tuple[Any, ...]:
        own = (getattr(self, "metric_", None), getattr(self, "widths_", None))
        return (*super()._made_from(), *own)

    def _make(self) -> Expansion:
        metric, widths = getattr(self, "metric_", None), getattr(self, "widths_", None)
        if metric is None and widths is None:
            return super()._make()
        exact = self.certificate_.precision == "float64"
        given = (self.kernel_, self.basis_, self.basis_coef_, self.intercept_)
        return MappedExpansion(*given, exact=exact, metric=metric, widths=widths)

    @property
    def model_nbytes_(self) -> int:
        """Bytes of the numbers that prediction needs."""
        if "_packed" in self.__dict__:
            return sum(numbers.nbytes for numbers in self._packed.values())
        own = (getattr(self, "metric_", None), getattr(self, "widths_", None))
        return super().model_nbytes_ + sum(int(a.nbytes) for a in own if a is not None)

    @classmethod
    def _sizes(cls, a: dict[str, Any]) -> dict[str, int]:
        metric, sizes = a.get("metric_"), super()._sizes(a)
        mapped = sizes["n_features"] if metric is None or metric.ndim == 1 else metric.shape[1]
        return {**sizes, "n_mapped": int(mapped)}

    def __getstate__(self) -> dict[str, Any]:
        state = dict(super().__getstate__())
        if "_stream" in state:  # plain values: views of one array would come back as many
            state["_stream"] = self.stream_
        return state

    # -- what can be done with it ------------------------------------------------------------------

    def truncated(self, n_basis: int) -> Self:
        """The model that the one fit found at a smaller size of the basis; needs no data.

        Parameters
        ----------
        n_basis : int
            One of the sizes in ``path_``.

        Returns
        -------
        An estimator of the same class, fitted.
        """
        check_is_fitted(self)
        points = {point.n_basis: point for point in self.path_}
        if n_basis not in points:
            raise ValueError(
                f"n_basis={n_basis!r} is not a size of the path; the sizes are {sorted(points)}. "
                "A model of another size needs rows: slimsvm.compress(model, n_basis, X), or a fit "
                "of that size."
            )
        other, point, about = copy.copy(self), points[n_basis], self.certificate_
        other._take(point, self.kernel_)
        other.certificate_ = point.certificate(about.tol, about.precision, about.scope)
        words = f"Cut from the path of a fit with {max(points)} basis vectors: {n_basis} of them."
        # its ending is that of its fit, unless its own gap says less
        reason = self.status_.reason
        if reason == "converged" and not other.certificate_.holds:
            reason = "stalled"
        words += f" {self.status_}" if reason == self.status_.reason != "converged" else ""
        other.status_, other.fit_status_ = Status(reason, words), int(reason != "converged")
        other.path_ = [p for p in self.path_ if p.n_basis <= n_basis]
        return other

    def quantized(self, form: str = "int8", X: Any = None, y: Any = None) -> Self:
        """The same model with its numbers in fewer bytes, in memory as they are after rounding.

        Model files (:func:`slimsvm.save`) hold it in that form, and ``model_nbytes_`` counts it.

        Parameters
        ----------
        form : {'float32', 'float16', 'int8'}
            What each number takes. 'int8': a scale for each vector, and for its coefficients;
            widths and intercepts are float32. Where vectors have so few numbers that scales take
            more than they save, it is 'float16', and ``status_`` says so.
        X, y : arrays, optional
            Rows, and labels or targets, on which ``status_`` says what it costs.

        Returns
        -------
        An estimator of the same class, fitted.

        Examples
        --------
        >>> from slimsvm import SparseSVC
        >>> from slimsvm.datasets import checkers
        >>> X, y = checkers(2000, seed=0)
        >>> model = SparseSVC(n_basis=30, gamma=5.0, random_state=0).fit(X, y)
        >>> small = model.quantized("int8", X, y)
        >>> small.model_nbytes_ < model.model_nbytes_, small.score(X, y) > 0.9
        (True, True)
        """
        check_is_fitted(self)
        if not isinstance(form, str) or form not in QUANTIZED:
            raise ValueError(f"form={form!r} is none of {', '.join(map(repr, QUANTIZED))}.")
        if sp.issparse(self.basis_):
            raise ValueError(
                "The basis vectors are sparse rows, which have no such form; fit with "
                "basis='descent', or with dense rows."
            )
        if (X is None) != (y is None):
            raise ValueError("X and y belong together: give both, or neither.")
        other, names = copy.copy(self), ("basis_", "basis_coef_", "intercept_")
        own = {name: getattr(self, name) for name in names}
        for name in ("metric_", "widths_"):
            if hasattr(self, name):
                own[name] = getattr(self, name)
        mean = None if X is None else np.asarray(X.mean(axis=0), np.float64).ravel()
        other._packed = packed_model(own, form, mean)
        for name, numbers in other._packed.items():
            setattr(other, name, numbers.unpacked())
        other.path_, other.basis_indices_ = [], None
        other._forget_stream()
        unknown = {"objective": np.nan, "violation": np.inf, "gap": np.inf}
        other.certificate_ = replace(self.certificate_, precision="float32", **unknown)
        words = (
            f"Rounded to {form}: {other.model_nbytes_:,} bytes instead of {self.model_nbytes_:,}"
        )
        if form == "int8" and other._packed["basis_"].codes.dtype == np.float16:
            words = words.replace("int8", "float16, which is smaller than int8 with its scales", 1)
        if X is not None:
            what = "accuracy" if hasattr(self, "scheme") else "R^2"
            words += f"; {what} {other.score(X, y):.4f} instead of {self.score(X, y):.4f}"
        other.status_ = Status("converged", words + ".")
        other._make_ready()
        return other

    def certify(
        self, X: Any, y: Any, sample_weight: Any = None, *, max_time: float | None = None
    ) -> Certificate:
        """How far this model is, at most, from the exact solution with the same loss.

        With a metric, that is the exact solution in the metric found, with the kernel's own gamma.
        Takes the kernel values among all rows that are not safely on their side; the time that
        takes is printed first.

        Parameters
        ----------
        X, y, sample_weight
            The rows it was trained on.
        max_time : float, optional
            Limit in seconds; beyond, the gap is infinite, with a warning.

        Returns
        -------
        Certificate
            ``gap``, and ``violation``, the gap as a share of the objective.
        """
        from slimsvm.solvers.whole_gap import Clock, whole_gap

        check_is_fitted(self)
        if getattr(self, "pairwise_", False):
            raise ValueError(
                "A model compressed from one-vs-one pairs has no problem of its own to certify; "
                "fit a SparseSVC on the rows."
            )
        validate_parameter_constraints(
            {"max_time": self._parameter_constraints["max_time"]},
            {"max_time": max_time},
            caller_name=f"{type(self).__name__}.certify",
        )
        X, target, weight = self._given_again(X, y, sample_weight)
        n_classes = len(getattr(self, "classes_", ()))
        target, function = self._targets(target, n_classes), self._function()
        loss = self._loss(getattr(self, "loss_", "") in PROBABLE, n_classes)
        if isinstance(loss, Softmax):
            target = (target > 0).astype(np.float64)
        if isinstance(function, MappedExpansion):  # the exact solution in the metric found
            X = mapped(X, function.metric, np.float64 if is_small(X.shape[0]) else np.float32)
            function = replace(function, metric=None)
        about = self.certificate_
        objective, gap, rounding = whole_gap(
            MemoryRows(X, target, float(self.C) * weight, n_threads(self.n_jobs)),
            function,
            loss,
            bool(self.fit_intercept),
            getattr(self, "_row_duals", None),
            np.float64 if is_small(X.shape[0]) or about.precision == "float64" else None,
            Clock(max_time),
        )
        relative = (gap - rounding) / objective if objective > 0 else 0.0
        measured = (relative, gap, float(self.tol), about.precision)
        return Certificate(FULL, objective, *measured, rounding=rounding)

    @classmethod
    def _check_fitted(cls, a: dict[str, Any]) -> None:
        from slimsvm.sparse_values import check_path, check_stream_values

        super()._check_fitted(a)
        n_features = cls._width(a)
        if "stream_" in a:
            check_stream_values(a["stream_"], n_features, len(a.get("classes_", (0,))))
        known = {own.name: own for own in SparseModel.fitted}
        metric = a.get("metric_")
        right = metric is None or (
            metric.ndim in (1, 2) and metric.shape[0] == n_features and metric.size > 0
        )
        demand(right, "metric_ has neither a row for each feature nor a number")
        check_path(known, a["path_"], cls._sizes(a))


class SparseClasses(SparseModel):
    """The same for classes.

    Attributes
    ----------
    pairwise_
        Only on what :func:`slimsvm.compress` made of a one-vs-one model, and True there: the
        outputs are pairs of classes, which vote.
    """

    fitted: ClassVar[tuple[Attribute, ...]] = (
        attribute("pairwise_", "flag", optional=True),
        attribute("class_weight_", "float", ("n_classes",), optional=True),  # not if compressed
    )
    classes_: Array

    def _has_probabilities(self) -> bool:
        if getattr(self, "loss_", "") not in PROBABLE:
            raise AttributeError(
                "predict_proba is for models of loss='logistic', as vectors that are found by "
                "descent have it; see CalibratedClassifierCV of scikit-learn for others."
            )
        return True

    @available_if(_has_probabilities)
    @of_new_rows(
        "array of shape (n_samples, n_classes)",
    )
    def predict_proba(self, X: Any) -> Array:
        """Probabilities of the classes, from the loss that was minimised."""
        if is_far(X):
            return over_rows(self, "predict_proba", X)
        scores = self._outputs(X)
        if scores.shape[1] > 1:
            return np.asarray(softmax(scores, axis=1))
        return np.hstack([expit(-scores), expit(scores)])

    def _scheme(self) -> Any:
        pairwise = getattr(self, "pairwise_", False)
        return OneVsOne(len(self.classes_)) if pairwise else super()._scheme()  # type: ignore[misc]

    @classmethod
    def _n_outputs(cls, a: dict[str, Any]) -> int:
        if a.get("pairwise_", False):
            return OneVsOne(len(a["classes_"])).n_outputs
        return int(super()._n_outputs(a))

    @classmethod
    def _check_fitted(cls, a: dict[str, Any]) -> None:
        super()._check_fitted(a)
        n_classes, pairs = len(a["classes_"]), a.get("pairwise_", False)
        demand(n_classes > 2 or not pairs, f"pairwise_ is {pairs!r}, with {n_classes} classes")
