"""SparseSVC and SparseSVR: models with as few vectors as you say."""

from __future__ import annotations

import copy
import textwrap
from dataclasses import replace
from numbers import Real
from typing import Any, ClassVar, Literal, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.special import expit, softmax
from sklearn.callback import with_callbacks
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions, validate_parameter_constraints
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from slimsvm.basis import ALL, REGISTRY, Basis, Given, Selection, choice_of, choices, is_choice
from slimsvm.declarations import (
    Attribute,
    attribute,
    check_shapes,
    check_types,
    declared,
    demand,
    parameter,
)
from slimsvm.ending import FULL, Certificate, Ending, Status, sentence
from slimsvm.estimators.descending import AUTO, DESCENT, KINKED, descends, solved_by_descent
from slimsvm.estimators.fitting import Classifier, Estimator, Regressor
from slimsvm.estimators.models import BasisVectors
from slimsvm.estimators.parameters import (
    AT_LEAST_ONE,
    NOT_NEGATIVE,
    ClassWeight,
    GammaLike,
    KernelLike,
    shared,
)
from slimsvm.estimators.streaming import (
    Streaming,
    check_values,
    classes_of_call,
    factors_of,
    refuse_no_stream,
    widened,
)
from slimsvm.expansion import Expansion, MappedExpansion
from slimsvm.kernels import Kernel
from slimsvm.losses import LOSSES, Loss, Softmax
from slimsvm.mapping import mapped
from slimsvm.multiclass import OneVsOne, OneVsRest, class_factors
from slimsvm.oracles import LossOracle
from slimsvm.precision import is_small
from slimsvm.problems.columns import KernelColumns
from slimsvm.problems.sparse import Sparse
from slimsvm.quantization import FORMS as QUANTIZED
from slimsvm.quantization import packed
from slimsvm.row_hashes import distinct
from slimsvm.rows import MemoryRows
from slimsvm.run import Result, run
from slimsvm.solvers.cutting_plane import CuttingPlane
from slimsvm.solvers.growth import in_order
from slimsvm.solvers.path import HISTORY, Path, PathPoint, Scoring, accuracy, r_squared, sizes_up_to
from slimsvm.solvers.path_all import path_over_all_rows
from slimsvm.solvers.path_cuts import CutPath
from slimsvm.solvers.whole_gap import Clock, whole_gap
from slimsvm.threads import n_threads
from slimsvm.training import Data, Fit

Array = NDArray[Any]
AUTO_FRACTION = 0.1  # of the rows is held out when n_basis='auto' and nothing else is said
MAX_ITER = 1000  # where no limit is given
WIDTH = 88  # of a line of documentation
ACCURACY = Interval(Real, 0.0, 1.0, closed="both")
FRACTION = Interval(Real, 0.0, 1.0, closed="neither")
PROBABLE = ("logistic", "softmax")  # losses whose scores are logarithms of odds
KEPT = (
    "Ended with the descent's coefficients, which do better on rows held out than the best ones by "
    "the objective, or are too many to improve"
)
METRICS = StrOptions({"auto", "learned", "diagonal"})
OURS = (
    "'descent' finds vectors, widths, coefficients and a metric together, by mini-batches, then "
    "the best coefficients on all rows; for the kernels rbf, poly and linear, and a loss with a "
    "derivative;",
    "'auto' is 'descent' where that is possible and refine is left alone, otherwise 'pursuit';",
)


def _basis(*, labels: bool) -> Any:
    """The parameter ``basis``, whose text is what the choices say of themselves."""

    def text() -> str:
        first = (
            "Where the basis vectors come from: one of these names; an object of :mod:`slimsvm."
            "basis` with settings of its own, such as Greedy(n_candidates=100, alone=True); or the "
            "vectors themselves."
        )
        items = [first, "", *(f"- {item}" for item in (*OURS, *words))]
        lines = [
            textwrap.wrap(item, WIDTH, subsequent_indent="  " * (item != first)) or [""]
            for item in items
        ]
        return "\n".join(line for item in lines for line in item)

    names, words = choices(labels)
    accepts = (StrOptions({*names, AUTO, DESCENT}), Basis, "array-like", "sparse matrix")
    return parameter(AUTO, *accepts, text=text)


class SparseEstimator(Streaming, BasisVectors, Estimator):
    """What both share: from data to a basis, a model on it, and the same at every smaller size.

    Parameters
    ----------
    C : float
        Weight of the errors: 1/2 |w|^2 + C sum_i weight_i loss(y_i, f(x_i)).
    refine : bool or 'auto'
        Whether the basis vectors are then moved to a local optimum. 'auto': if loss and kernel have
        derivatives and basis is neither an array nor 'all'.
    tol : float
        Relative gap within the span of the basis; refinement ends when a step gains less than this
        share of the objective.
    max_iter : int
        Limit on steps of refinement, and on cutting planes.
    max_memory : float
        Megabytes for kernel values between rows and basis; beyond, they are computed again in every
        pass. Default 2,000. With basis='all', for those among the support vectors; beyond, the fit
        is refused. Default 4,000.
    max_basis : int
        The largest size that n_basis='auto' looks at.
    accuracy_loss : float
        What n_basis='auto' gives up, at most, for a smaller basis.
    validation_fraction : float
        Share of the rows that is held out: to stop refinement, and for the scores in ``path_``.
    warm_start : bool
        Begin with the basis of the last fit; one that is given as an array is taken as it is.
    random_state : int, RandomState or None
        Draws starting points, rows and the split.
    basis : str, Basis or array of shape (m, n_features)
    metric : {'auto', 'learned', 'diagonal'}, array or None
        Of a descent with the rbf kernel: distances are between metric'x and basis vectors. 'auto'
        is 'learned', a full matrix, where there are at most twice as many features as vectors,
        otherwise 'diagonal', a factor for each feature. An array of shape (n_features,) or
        (n_features, q) is taken as it is.
    max_bytes : int
        Of a descent: as many vectors as a model of so many bytes holds, metric included
        (``model_nbytes_``), in place of n_basis; with n_basis='auto', at most.
    solver : CuttingPlane or None
        For a loss that is trained by cutting planes: such with settings of their own
        (:class:`slimsvm.solvers.cutting_plane.CuttingPlane`), which are followed to the letter,
        also for few rows, at the size asked for alone. With ``stop="violation"``, tol is the
        violation of the last cut.

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
        *Streaming.fitted,
    )
    path_: list[PathPoint]
    _row_duals: Array | None
    _packed: dict[str, Any]  # of a quantised one
    _measure: ClassVar[Any]  # of scores, targets and weights: accuracy, or R^2
    break_ties = False
    solver: Any = None  # of those that have no such parameter

    # -- what a subclass says ----------------------------------------------------------------------

    def _loss(self, descends: bool, n_classes: int) -> Any:
        """The loss that the parameters name."""
        raise NotImplementedError

    def _targets(self, target: Array, n_classes: int) -> Array:
        """One column for each output."""
        raise NotImplementedError

    def _given_again(self, X: Any, y: Any, sample_weight: Any) -> tuple[Any, Array, Array]:
        """Rows of positive weight, their targets, and weights, for a fitted estimator."""
        raise NotImplementedError

    # -- the plan ----------------------------------------------------------------------------------

    def _encoded(self, X: Any, y: Any, weight: Array) -> Data:
        data = super()._encoded(X, y, weight)
        fraction = self.validation_fraction or (AUTO_FRACTION if self.n_basis == "auto" else None)
        held = np.zeros(data.used.size, bool)
        if fraction is not None:
            held = self._held_out(data, fraction)
        data.target = self._targets(data.target, data.classes.size)
        if held.any():
            stays = ~held
            data.about["held_out"] = data.X[held], data.target[held], data.weight[held]
            data.X, data.target = data.X[stays], data.target[stays]
            data.weight, data.used = data.weight[stays], data.used[stays]
            data.sample_weight = data.sample_weight[stays]
        return data

    def _held_out(self, data: Data, fraction: float) -> Array:
        """Of every class, or of all rows, the fraction, but never all of it."""
        rng, held = check_random_state(self.random_state), np.zeros(data.used.size, bool)
        groups = [data.target == c for c in range(data.classes.size)] or [~held]
        for group in groups:
            own = rng.permutation(np.flatnonzero(group))
            held[own[: min(own.size - 1, round(fraction * own.size))]] = True
        return held

    @property
    def _choice(self) -> Any:
        """The class of the choice, or the choice itself; None for vectors as they are."""
        if isinstance(self._vectors, str):
            return REGISTRY.get(self._vectors)
        return self._vectors if is_choice(self._vectors) else None

    @property
    def _vectors(self) -> Any:
        """The parameter ``basis``, where nothing descends."""
        auto = isinstance(self.basis, str) and self.basis == AUTO
        return "pursuit" if auto else self.basis

    def _is_all(self) -> bool:
        return isinstance(self._vectors, str) and self._vectors == ALL

    def _moves(self, loss: Loss, kernel: Kernel) -> bool:
        """Whether the basis vectors are moved.

        Complains if that was asked for and is impossible.
        """
        others = "'squared_epsilon_insensitive'"
        if loss.takes_labels:
            others = "'squared_hinge', 'smooth_hinge' or 'least_squares'"
        named, everything, choice = is_choice(self._vectors), self._is_all(), self._choice
        if choice is not None and choice.needs_labels and not isinstance(self, Classifier):
            raise ValueError(
                f"basis={self._vectors!r} looks at signs, which mean nothing to a regression; use "
                "another basis, such as 'pursuit'."
            )
        if self.solver is not None and loss.differentiable:
            raise ValueError(
                f"solver={self.solver!r} makes cutting planes, which are for loss='hinge'; with "
                f"loss={self.loss!r} leave solver out."
            )
        curved = everything or (choice is not None and choice.needs_curvature)
        if curved and not loss.differentiable:
            raise ValueError(
                f"basis={self._vectors!r} needs a loss with a curvature, which loss={self.loss!r} "
                f"has not; use {others}, or another basis, such as 'pursuit' or 'cholesky'."
            )
        able = loss.differentiable and kernel.differentiable
        if self.refine == "auto":
            return able and named and not everything
        if self.refine and everything:
            raise ValueError(
                "refine=True has nothing to move with basis='all': the solution is exact; use "
                "refine=False, or another basis."
            )
        if self.refine and not loss.differentiable:
            raise ValueError(
                f"refine=True needs a loss with a derivative, which loss={self.loss!r} has not; "
                f"use {others}, or refine=False."
            )
        if self.refine and not able:
            raise ValueError(
                "refine=True needs a kernel with a known derivative ('rbf', 'poly' with coef0 >= "
                f"0, 'linear'); got {kernel!r}. Use refine=False."
            )
        return bool(self.refine)

    def _last_basis(self, data: Data) -> Any:
        """The basis of the last fit, if this one goes on from it; a given one is taken as it is."""
        named = is_choice(self._vectors)
        if not (self.warm_start and named and hasattr(self, "basis_coef_")):
            return None
        shape = (self.basis_.shape[1], self.basis_coef_.shape[1])
        return self.basis_ if shape == (data.X.shape[1], data.target.shape[1]) else None

    # -- training ----------------------------------------------------------------------------------

    def _prepared(self, data: Data) -> None:
        data.kernel = self._kernel_for(data.X, data.sample_weight)
        data.about["descends"] = descends(self, data.kernel, data.X)
        if not data.about["descends"]:  # it takes rows in coordinates of its own
            super()._prepared(data)

    def _solved(self, data: Data, fit: Fit) -> Result:
        descending = bool(data.about["descends"])
        loss = self._loss(descending, data.classes.size)
        data.about["loss"] = loss.name
        if descending:
            return solved_by_descent(self, data, loss, fit)
        moves = self._moves(loss, data.kernel)
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        scoring = Scoring(self._measure, data.about.get("held_out"), fit.threads)
        weight, intercept = float(self.C) * data.weight, bool(self.fit_intercept)
        if self._is_all():
            return path_over_all_rows(
                data,
                weight,
                loss,
                intercept,
                scoring,
                fit,
                tol=float(self.tol),
                max_iter=self._max_iter,
                max_memory=self.max_memory,
                seed=seed,
            )
        candidates, named, choice = distinct(data.X), is_choice(self._vectors), self._choice
        last, auto = self._last_basis(data), self.n_basis == "auto"
        if named:
            wanted = int(self.max_basis if auto else self.n_basis)
        else:
            wanted = Given(self._vectors).size
        everything = named and not auto and candidates.size <= wanted and self.solver is None
        wanted = min(candidates.size, wanted) if named else wanted

        def first(columns: KernelColumns, problem: Sparse, rng: Any) -> Selection | None:
            if everything:
                order = candidates[in_order(data.X[candidates])]
                return Selection(data.rows.X[order], order)
            if last is not None:
                return Selection(columns.in_rows_coordinates(last))
            choose = choice_of(self._vectors, problem.weight)
            if not choose.one_shot:
                return None
            return choose.select(columns, None, None, wanted, rng, problem.candidates)

        grows = named and not everything
        grows = grows and (last is not None or not choice.one_shot)
        alone = everything or self.solver is not None
        options: dict[str, Any] = {
            "sizes": [wanted] if alone else sizes_up_to(wanted),
            "first": first,
            "choose": (lambda: choice_of(self._vectors)) if grows else None,
            "scoring": scoring,
            "accuracy_loss": float(self.accuracy_loss) if auto else None,
            "seed": seed,
            "limits": fit.limits,
            "watchers": fit.watchers,
        }
        given = (data.rows, data.target, weight, loss, intercept, candidates)
        problem = Sparse(*given, self.max_memory, fit.threads)
        solver: Path | CutPath
        if loss.differentiable:
            solver = Path(**options, max_iter=self._max_iter, moves=moves and not everything)
        else:
            oracle = LossOracle(loss, data.target, weight, fit.threads)
            options |= {"oracle": oracle, "solver": self.solver}
            solver = CutPath(**options, max_iter=int(self.max_iter))
        return run(solver, problem, tol=float(self.tol), limits=fit.limits)

    @property
    def _max_iter(self) -> int:
        return int(self.max_iter) if self.max_iter > 0 else MAX_ITER

    def _concluded(self, data: Data, solved: Result, fit: Fit) -> Ending:
        self._forget_stream()
        model, about = solved.model, solved.certificate
        chosen, tol, exact = model.chosen, float(self.tol), about.scope == FULL
        self.path_, self.n_iter_, self._row_duals = model.points, solved.n_iter, model.row_duals
        self.loss_ = str(data.about["loss"])
        self._take(chosen, data.kernel)
        certificate = chosen.certificate(tol, about.precision, about.scope)
        last_cut = self.solver is not None and self.solver.stop == "violation"
        if last_cut:
            about_cuts = {"violation": about.violation, "max_cuts": about.max_cuts}
            certificate = replace(certificate, **about_cuts)
        kinked = data.about["loss"] in KINKED
        unlimited = self.max_iter < 0 and kinked
        ended = "max_iter" if solved.n_iter >= self._max_iter and not unlimited else "stalled"
        # a size that was not reached is not what was asked for, whatever the gap there is
        reason = fit.limits.reason() or ("converged" if certificate.holds else ended)
        begins = {}
        if data.about["descends"] and not certificate.holds and not fit.limits.reason():
            reason = solved.status.reason
            begins = {"converged": KEPT}
        n, further = chosen.n_basis, ""
        if reason == "converged" and n < model.wanted and self.n_basis != "auto":
            further = f"; no more of the {model.wanted} asked for are independent of these"
        words = sentence(
            reason,
            "cut" if last_cut else "gap",
            certificate,
            seconds=fit.limits.seconds,
            max_iter=int(self.max_iter),
            optimum=f"the optimum {'of all functions, with' if exact else 'in the span of'} {n:,} "
            f"basis vector{'s' * (n != 1)}",
            further=further,
            begins=begins,
        )
        none = np.empty(0)
        history = {name: solved.history.get(name, none) for name in ("seconds", *HISTORY)}
        return Ending(certificate, Status(reason, words), history)

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
        metric = a.get("metric_")
        mapped = a["n_features_in_"] if metric is None or metric.ndim == 1 else metric.shape[1]
        return {**super()._sizes(a), "n_mapped": int(mapped)}

    def _in_support_layout(self, form: str) -> tuple[str, dict[str, Any]]:
        if hasattr(self, "metric_") or hasattr(self, "widths_"):
            raise ValueError(
                f"{form} has no place for a metric or for widths of basis vectors, which this "
                f"{type(self).__name__} has. Use slimsvm.save, or fit with basis='pursuit'."
            )
        return super()._in_support_layout(form)

    # -- what a fitted estimator can do ------------------------------------------------------------

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
                f"n_basis={n_basis!r} is not a size of the path; the sizes are {sorted(points)}."
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
            widths and intercepts are float32.
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
        other, exact = copy.copy(self), "float32" if form == "int8" else form
        names = {"basis_": form, "basis_coef_": form, "intercept_": exact}
        basis, metric = np.asarray(self.basis_, np.float64), getattr(self, "metric_", None)
        if metric is not None:
            names["metric_"] = form if metric.ndim == 2 else exact
            rounded = packed(metric, names["metric_"]).unpacked().astype(np.float64)
            off = rounded - metric  # moves all rows alike, as far as they have a mean
            if X is not None:
                mean = np.asarray(X.mean(axis=0), np.float64).ravel()
            elif metric.ndim == 1:
                mean = basis.mean(axis=0) / np.where(metric == 0, 1.0, metric)
            else:
                mean = basis.mean(axis=0) @ np.linalg.pinv(metric.astype(np.float64))
            basis = basis + (mean * off if off.ndim == 1 else mean @ off)
        if hasattr(self, "widths_"):
            names["widths_"] = exact
        values = {name: getattr(self, name) for name in names} | {"basis_": basis}
        other._packed = {
            name: packed(values[name], own, centred=name == "basis_") for name, own in names.items()
        }
        for name, numbers in other._packed.items():
            setattr(other, name, numbers.unpacked())
        other.path_, other.basis_indices_ = [], None
        other._forget_stream()
        unknown = {"objective": np.nan, "violation": np.inf, "gap": np.inf}
        other.certificate_ = replace(self.certificate_, precision="float32", **unknown)
        words = (
            f"Rounded to {form}: {other.model_nbytes_:,} bytes instead of {self.model_nbytes_:,}"
        )
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
        super()._check_fitted(a)
        if "stream_" in a:
            check_values(a["stream_"], a["n_features_in_"], len(a.get("classes_", (0,))))
        known = {own.name: own for own in SparseEstimator.fitted}
        metric = a.get("metric_")
        right = metric is None or (
            metric.ndim in (1, 2) and metric.shape[0] == a["n_features_in_"] and metric.size > 0
        )
        demand(right, "metric_ has neither a row for each feature nor a number")
        for i, p in enumerate(a["path_"]):
            demand(isinstance(p, PathPoint), "path_ is not a list of models")
            where = f" of path_[{i}]"
            values = {
                "n_basis_": p.n_basis,
                "basis_": p.basis,
                "basis_coef_": p.coef,
                "basis_indices_": p.indices,
                "intercept_": p.intercept,
            }
            if p.widths is not None:
                values["widths_"] = p.widths
            check_types(known, values, where)
            check_shapes(known, values, {**cls._sizes(a), "n_basis": p.n_basis}, where)
            maybe = (p.validation_score, p.projection_error, p.bound)
            numbers = [p.objective, p.gap, p.training_score, *(v for v in maybe if v is not None)]
            right = all(isinstance(number, int | float) for number in numbers)
            demand(right, f"a score or objective{where} is not a number")


@declared
class SparseSVC(SparseEstimator, Classifier):
    """Support vector classification with a small basis that is learned.

    As accurate as thousands of support vectors, much faster to use. The function is f(x) = sum_j
    coef_j k(b_j, x) + intercept with n_basis vectors b_j, shared by all classes (one-vs-rest).

    Parameters
    ----------
    n_basis : int or 'auto'
        Number of basis vectors. 'auto' holds a tenth of the rows out, looks at growing sizes up
        to max_basis, and takes the smallest within accuracy_loss of the best.
    loss : {'auto', 'logistic', 'squared_hinge', 'smooth_hinge', 'least_squares', 'hinge'}
        'logistic' is for a descent; of several classes it is the softmax, one joint problem, and
        :meth:`predict_proba` follows from it. 'hinge' is trained by cutting planes. 'auto' is
        'logistic' for a descent, otherwise 'squared_hinge'.

    Attributes
    ----------
    pairwise_
        Only on what :func:`slimsvm.compress` made of a one-vs-one model, and True there: the
        outputs are pairs of classes, which vote.

    See Also
    --------
    SVC : The exact solution.

    References
    ----------
    .. [1] T. Joachims, C.-N. Yu, "Sparse kernel SVMs via cutting-plane training", 2009.
    .. [2] M. Wu, B. Schoelkopf, G. Bakir, "A direct method for building sparse kernel learning
       algorithms", 2006.

    Examples
    --------
    >>> from slimsvm import SparseSVC
    >>> from slimsvm.datasets import checkers
    >>> X, y = checkers(2000, seed=0)
    >>> model = SparseSVC(n_basis=30, C=10.0, gamma=5.0, random_state=0).fit(X, y)
    >>> model.basis_.shape
    (30, 2)
    >>> model.score(X, y) > 0.9
    True
    """

    n_basis: int | Literal["auto"] = parameter(
        100, AT_LEAST_ONE, StrOptions({"auto"}), positional=True
    )
    C: float = shared("C")
    kernel: KernelLike = shared("kernel")
    gamma: GammaLike = shared("gamma")
    degree: int = shared("degree")
    coef0: float = shared("coef0")
    loss: str = parameter(
        "auto",
        StrOptions({"auto", "logistic", "squared_hinge", "hinge", "smooth_hinge", "least_squares"}),
    )
    basis: Any = _basis(labels=True)
    metric: Any = parameter("auto", METRICS, "array-like", None)
    max_bytes: int | None = parameter(None, AT_LEAST_ONE, None)
    solver: Any = parameter(None, CuttingPlane, None)
    refine: bool | str = parameter("auto", "boolean", StrOptions({"auto"}))
    fit_intercept: bool = shared("fit_intercept")
    class_weight: ClassWeight = shared("class_weight")
    tol: float = shared("tol")
    max_iter: int = shared("max_iter", MAX_ITER)
    max_time: float | None = shared("max_time")
    max_memory: float | None = shared("max_memory")
    max_basis: int = parameter(500, AT_LEAST_ONE)
    accuracy_loss: float = parameter(0.005, ACCURACY)
    validation_fraction: float | None = parameter(None, FRACTION, None)
    warm_start: bool = shared("warm_start")
    n_jobs: int | None = shared("n_jobs")
    random_state: Any = shared("random_state")
    verbose: bool = shared("verbose")

    fitted: ClassVar[tuple[Attribute, ...]] = (
        attribute("pairwise_", "flag", optional=True),
        attribute("class_weight_", "float", ("n_classes",), optional=True),  # not if compressed
    )
    scheme: ClassVar[Any] = OneVsRest
    _measure = staticmethod(accuracy)
    _same_as: ClassVar[str] = "SVC"

    def _loss(self, descends: bool, n_classes: int) -> Any:
        name = self.loss
        if name == "auto":
            name = "logistic" if descends else "squared_hinge"
        if name == "logistic" and not descends:
            raise ValueError(
                f"loss='logistic' is for vectors that are found by descent; got "
                f"basis={self.basis!r}, refine={self.refine!r}. Leave these two out, or use "
                "loss='squared_hinge'."
            )
        return Softmax() if name == "logistic" and n_classes > 2 else LOSSES[name]()

    def _targets(self, target: Array, n_classes: int) -> Array:
        return OneVsRest(n_classes).columns(target)

    def _given_again(self, X: Any, y: Any, sample_weight: Any) -> tuple[Any, Array, Array]:
        X, y, weight = self._checked(X, y, sample_weight, reset=False)
        known = np.isin(y, self.classes_)
        if not known.all():
            raise ValueError(
                f"y has the label {np.asarray(y)[~known].tolist()[0]!r}, which is not one of the "
                f"classes {self.classes_.tolist()}."
            )
        label, used = np.searchsorted(self.classes_, y), weight > 0
        about = {"y": np.asarray(y)[used], "sample_weight": weight[used]}
        factors = class_factors(self.class_weight, classes=self.classes_, **about)
        return X[used], label[used], weight[used] * factors[label[used]]

    def _concluded(self, data: Data, solved: Result, fit: Fit) -> Ending:
        self.classes_, self.class_weight_ = data.classes, data.factors
        self.__dict__.pop("pairwise_", None)  # of a compressed model that is trained anew
        return super()._concluded(data, solved, fit)

    def _has_probabilities(self) -> bool:
        if getattr(self, "loss_", "") not in PROBABLE:
            raise AttributeError(
                "predict_proba is for models of loss='logistic', as vectors that are found by "
                "descent have it; see CalibratedClassifierCV of scikit-learn for others."
            )
        return True

    @available_if(_has_probabilities)
    def predict_proba(self, X: Any) -> Array:
        """Probabilities of the classes, from the loss that was minimised.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)
            New rows.

        Returns
        -------
        array of shape (n_samples, n_classes)
        """
        scores = self._outputs(X)
        if scores.shape[1] > 1:
            return np.asarray(softmax(scores, axis=1))
        return np.hstack([expit(-scores), expit(scores)])

    @with_callbacks
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Learn from a batch of rows once; a reservoir of rows that have passed is kept.

        What is learned is a model with n_basis vectors by the logistic loss (softmax), whatever
        ``loss`` is. After a ``fit`` it goes on from the fitted model.

        Parameters
        ----------
        X : array, CSR matrix or DataFrame of shape (n_samples, n_features)
            The next rows of the stream.
        y : array of shape (n_samples,)
            Their labels; new ones may come at any time.
        classes : array, optional
            Labels that will come, in any call.
        sample_weight : array of shape (n_samples,), optional
            How much each row counts beside the others. Zero removes the row.

        Returns
        -------
        self

        Examples
        --------
        >>> from slimsvm import SparseSVC
        >>> from slimsvm.datasets import checkers
        >>> X, y = checkers(4000, seed=0)
        >>> model = SparseSVC(50, gamma=5.0, random_state=0)
        >>> for first in range(0, 4000, 500):
        ...     model = model.partial_fit(X[first : first + 500], y[first : first + 500])
        >>> model.n_seen_, model.n_basis_, model.score(X, y) > 0.9
        (4000, 50, True)
        """
        return self._partial_fit(X, y, classes, sample_weight)

    def _partial_fit(
        self, X: Any, y: Any, classes: Any, sample_weight: Any, decay: float = 1.0
    ) -> Self:
        first = not hasattr(self, "basis_coef_")
        with self._unchanged_on_failure():
            X, y, weight = self._checked(X, y, sample_weight, reset=first)
            refuse_no_stream(self, X, first)
            known = None if first else self.classes_
            if getattr(self, "pairwise_", False):
                raise ValueError(
                    "partial_fit cannot go on from a model that was compressed from one-vs-one "
                    "pairs; use a new SparseSVC."
                )
            found, label = classes_of_call(self, y, classes, known, weight)
            factors = factors_of(self, found)
            own = weight * factors[label]
            used = np.flatnonzero(own > 0)
            if first and not used.size:
                raise ValueError("All rows of the first call have weight zero; give some weight.")
            data = Data(X[used], label[used], own[used], used, weight[used], found, factors)
            state = self._stream_for(data, found.size if known is None else known.size)
            widened(state, found if known is None else known, found)
            self.classes_, self.class_weight_ = found, factors
            self._streamed(state, data, decay)
        return self

    def _scheme(self) -> Any:
        pairwise = getattr(self, "pairwise_", False)
        return OneVsOne(len(self.classes_)) if pairwise else super()._scheme()

    @classmethod
    def _n_outputs(cls, a: dict[str, Any]) -> int:
        if a.get("pairwise_", False):
            return OneVsOne(len(a["classes_"])).n_outputs
        return super()._n_outputs(a)

    @classmethod
    def _check_fitted(cls, a: dict[str, Any]) -> None:
        super()._check_fitted(a)
        n_classes, pairs = len(a["classes_"]), a.get("pairwise_", False)
        demand(n_classes > 2 or not pairs, f"pairwise_ is {pairs!r}, with {n_classes} classes")


@declared
class SparseSVR(SparseEstimator, Regressor):
    """Support vector regression with a small basis that is learned.

    Parameters
    ----------
    n_basis : int or 'auto'
        Number of basis vectors. 'auto' holds a tenth of the rows out, looks at growing sizes up
        to max_basis, and takes the smallest within accuracy_loss (of R^2) of the best.
    epsilon : float
        Half the width of the tube in which errors cost nothing.
    loss : {'auto', 'squared_epsilon_insensitive', 'smooth_epsilon_insensitive', \
            'epsilon_insensitive', 'least_squares'}
        'smooth_epsilon_insensitive' grows linearly, with rounded edges: outliers count less.
        'epsilon_insensitive' is trained by cutting planes. 'auto' is 'squared_epsilon_insensitive'.

    See Also
    --------
    SVR : The exact solution.

    Examples
    --------
    >>> import numpy as np
    >>> from slimsvm import SparseSVR
    >>> X = np.linspace(0, 6, 200).reshape(-1, 1)
    >>> model = SparseSVR(n_basis=8, C=10.0, epsilon=0.01, random_state=0).fit(X, np.sin(X[:, 0]))
    >>> round(model.score(X, np.sin(X[:, 0])), 2)
    1.0
    """

    n_basis: int | Literal["auto"] = parameter(
        100, AT_LEAST_ONE, StrOptions({"auto"}), positional=True
    )
    C: float = shared("C")
    epsilon: float = parameter(0.1, NOT_NEGATIVE)
    kernel: KernelLike = shared("kernel")
    gamma: GammaLike = shared("gamma")
    degree: int = shared("degree")
    coef0: float = shared("coef0")
    loss: str = parameter(
        "auto",
        StrOptions(
            {
                "auto",
                "squared_epsilon_insensitive",
                "smooth_epsilon_insensitive",
                "epsilon_insensitive",
                "least_squares",
            }
        ),
    )
    basis: Any = _basis(labels=False)
    metric: Any = parameter("auto", METRICS, "array-like", None)
    max_bytes: int | None = parameter(None, AT_LEAST_ONE, None)
    refine: bool | str = parameter("auto", "boolean", StrOptions({"auto"}))
    fit_intercept: bool = shared("fit_intercept")
    tol: float = shared("tol")
    max_iter: int = shared("max_iter", MAX_ITER)
    max_time: float | None = shared("max_time")
    max_memory: float | None = shared("max_memory")
    max_basis: int = parameter(500, AT_LEAST_ONE)
    accuracy_loss: float = parameter(0.005, ACCURACY)
    validation_fraction: float | None = parameter(None, FRACTION, None)
    warm_start: bool = shared("warm_start")
    n_jobs: int | None = shared("n_jobs")
    random_state: Any = shared("random_state")
    verbose: bool = shared("verbose")

    _measure = staticmethod(r_squared)
    _same_as: ClassVar[str] = "SVR"

    def _loss(self, descends: bool, n_classes: int) -> Any:
        name = "squared_epsilon_insensitive" if self.loss == "auto" else self.loss
        kind: Any = LOSSES[name]
        return kind() if name == "least_squares" else kind(epsilon=float(self.epsilon))

    def _targets(self, target: Array, n_classes: int) -> Array:
        return target[:, None]

    @with_callbacks
    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn from a batch of rows once; a reservoir of rows that have passed is kept.

        What is learned is a model with n_basis vectors by the squared epsilon-insensitive loss,
        whatever ``loss`` is. After a ``fit`` it goes on from the fitted model.

        Parameters
        ----------
        X : array, CSR matrix or DataFrame of shape (n_samples, n_features)
            The next rows of the stream.
        y : array of shape (n_samples,)
            Their targets.
        sample_weight : array of shape (n_samples,), optional
            How much each row counts beside the others. Zero removes the row.

        Returns
        -------
        self
        """
        first = not hasattr(self, "basis_coef_")
        with self._unchanged_on_failure():
            X, y, weight = self._checked(X, y, sample_weight, reset=first)
            refuse_no_stream(self, X, first)
            used = np.flatnonzero(weight > 0)
            if first and not used.size:
                raise ValueError("All rows of the first call have weight zero; give some weight.")
            target = np.asarray(y, np.float64)[used]
            data = Data(X[used], target, weight[used], used, weight[used])
            self._streamed(self._stream_for(data, 1), data)
        return self

    def _given_again(self, X: Any, y: Any, sample_weight: Any) -> tuple[Any, Array, Array]:
        X, y, weight = self._checked(X, y, sample_weight, reset=False)
        used = weight > 0
        return X[used], np.asarray(y, np.float64)[used], weight[used]
