"""What machines share: parameters, checks, the fit around the solver; and for exact ones, the way to a dual problem, and prediction."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.callback import CallbackSupportMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from slimsvm.expansion import Expansion
from slimsvm.kernels import KERNELS, FromCallable, Kernel, Linear, Precomputed, make_kernel
from slimsvm.problems.dual_qp import DualQP
from slimsvm.rows import MemoryRows
from slimsvm.run import Certificate, Limits, Progress, Record, Result, Status, Watcher, run
from slimsvm.solvers.decomposition import EXACT, Decomposition
from slimsvm.threads import n_threads, single_threaded_blas
from slimsvm.tiles import Operand, ready

Array = NDArray[Any]
LARGEST_TARGET = 1e150
LARGEST_C = 1e100  # times the largest weight: squares of it, times kernel values and numbers of rows, are still numbers
NO_TARGET = object()  # not None: a missing y where one is needed must be named as such


@dataclass
class Fit:
    """What goes with one call of fit: limits, threads, and who watches."""

    limits: Limits
    threads: int
    watchers: tuple[Watcher, ...]


class Machine(CallbackSupportMixin, BaseEstimator):
    """Base of all machines with a kernel: its parameters, the checks of what is given, and the fit around a solver."""

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "kernel": [StrOptions(set(KERNELS)), callable, Kernel],
        "degree": [Interval(Integral, 0, None, closed="left")],
        "gamma": [StrOptions({"scale", "auto"}), Interval(Real, 0.0, None, closed="left")],
        "coef0": [Interval(Real, None, None, closed="neither")],
        "tol": [Interval(Real, 0.0, None, closed="neither")],
        "verbose": ["verbose"],
        "max_iter": [Interval(Integral, -1, None, closed="left")],
        "max_time": [Interval(Real, 0.0, None, closed="neither"), None],
        "warm_start": ["boolean"],
        "n_jobs": [Integral, None],
    }

    _largest_C: ClassVar[float] = LARGEST_C

    def _checked(
        self, X: Any, y: Any, sample_weight: Any, **options: Any
    ) -> tuple[Any, Any, Array]:
        """Validated X, y (or NO_TARGET for none) and weights."""
        self._validate_params()
        if sp.issparse(X) and self._precomputed:
            raise ValueError(
                "A sparse precomputed kernel is not supported: pass the matrix of kernel values as a dense array."
            )
        given = {} if y is NO_TARGET else {"y": y}
        checked = validate_data(
            self,
            X,
            **given,
            dtype=[np.float64, np.float32],
            accept_sparse="csr",
            accept_large_sparse=True,
            **options,
        )
        X, y = (checked, None) if y is NO_TARGET else checked
        refuse_broken(X)
        if options.get("y_numeric"):
            refuse_targets(y)
        if self._precomputed and X.shape[0] != X.shape[1]:
            raise ValueError(
                f"Precomputed matrix must be a square matrix. Input is a {X.shape[0]}x{X.shape[1]} matrix. "
                "Pass kernel values between all pairs of training rows."
            )
        weight = _check_sample_weight(
            sample_weight, X, dtype=np.float64, ensure_non_negative=True, copy=True
        )
        C, most = float(getattr(self, "C", 0.0)), float(weight.max())
        if most > 0.0 and self._largest_C / most < C:
            raise ValueError(
                f"C={C:g} times the largest weight, {most:g}, is more than {self._largest_C:g}, where squares leave the range of float64. "
                "Pass a smaller C: from about 1e10 on, no error is allowed anyway."
            )
        return X, y, weight

    @property
    def _precomputed(self) -> bool:
        return isinstance(self.kernel, Precomputed) or (
            isinstance(self.kernel, str) and self.kernel == "precomputed"
        )

    @contextmanager
    def _fitting(self) -> Iterator[Fit]:
        """Limits, Ctrl-C, progress and callbacks of one fit."""
        limits = Limits(self.max_time)
        context = self._init_callback_context(max_subtasks=None)
        context.call_on_fit_task_begin(estimator=self)

        def tell_callbacks(record: Record) -> bool:
            task = context.subcontext(task_name="round")
            task.call_on_fit_task_begin(estimator=self)
            return bool(
                task.call_on_fit_task_end(
                    estimator=self, metadata={"seconds": record.seconds, **record.values}
                )
            )

        with ExitStack() as stack:
            watchers: list[Watcher] = []
            if getattr(self, "_skl_callbacks", None) or hasattr(self, "_parent_callback_ctx"):
                watchers.append(tell_callbacks)
            if self.verbose:
                watchers.append(stack.enter_context(Progress(type(self).__name__)))
            stack.enter_context(limits.watching_interrupts())
            stack.enter_context(single_threaded_blas())
            yield Fit(limits, n_threads(self.n_jobs), tuple(watchers))
        context.call_on_fit_task_end(estimator=self)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = not self._precomputed
        tags.input_tags.pairwise = self._precomputed
        return tags


class KernelMachine(Machine):
    """Base of SVC, NuSVC, SVR, NuSVR and OneClassSVM."""

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **Machine._parameter_constraints,
        "shrinking": ["boolean"],
        "cache_size": [Interval(Real, 0, None, closed="neither")],
    }

    # -- from data to a problem, and the solver -----------------------------------------------------------------------------------------

    def _prepared(self, X: Any, weight: Array, order: Array) -> Operand:
        """The rows ``order`` of X ready for products; sets ``kernel_``, the kernel with its numbers."""
        kernel = make_kernel(self.kernel, gamma=self.gamma, degree=self.degree, coef0=self.coef0)
        if isinstance(kernel, Precomputed):
            self.kernel_: Kernel = kernel
            return finite(ready(kernel, X).take(order))
        self.kernel_ = (
            kernel
            if isinstance(kernel, FromCallable)
            else kernel.resolve(MemoryRows(X, weight=weight))
        )
        # few rows: float64, because the solver goes on to near machine precision
        operand = ready(
            self.kernel_, X, dtype=np.float64 if order.size <= EXACT else None, alone=True
        )
        in_place = order.size == X.shape[0] and bool(np.all(order[1:] > order[:-1]))
        return finite(operand if in_place else operand.take(order))

    def _solve(self, problem: DualQP, fit: Fit, limits: Limits, start: Array | None) -> Result:
        solver = Decomposition(shrinking=bool(self.shrinking))
        start = None if start is None else problem.feasible(start)
        return run(
            solver,
            problem,
            tol=float(self.tol),
            max_iter=int(self.max_iter),
            limits=limits,
            start=start,
            watchers=fit.watchers,
        )

    @property
    def _cache_bytes(self) -> float:
        return float(self.cache_size) * 2**20

    def _report(self, results: list[Result]) -> None:
        """Set certificate_, status_, history_ and fit_status_ from the solved problems (several for the pairs of a multi-class machine)."""
        worst = max(
            results, key=lambda result: (not result.status.converged, result.certificate.violation)
        )
        first = results[0].certificate
        self.certificate_ = Certificate(
            first.scope,
            float(sum(result.certificate.objective for result in results)),
            worst.certificate.violation,
            float(sum(result.certificate.gap for result in results)),
            first.tol,
            "float64"
            if all(result.certificate.precision == "float64" for result in results)
            else "float32",
        )
        self.status_: Status = worst.status
        if len(results) > 1:
            of_all = f"This is the worst of {len(results):,} pairs of classes; the gaps of all add up to {self.certificate_.gap:.3g}."
            self.status_ = Status(worst.status.reason, f"{worst.status} {of_all}")
        self.history_ = joined([result.history for result in results])
        self.fit_status_ = int(not worst.status.converged)
        self._make()
        if not worst.status.converged:
            warnings.warn(str(self.status_), ConvergenceWarning, stacklevel=4)

    def _start_from_last_fit(self, rows: MemoryRows) -> bool:
        """Whether the coefficients of the last fit may be the start of this one: warm_start, and the same rows."""
        if not self.warm_start:
            self.__dict__.pop("_fingerprint", None)
            return False
        fingerprint = rows.fingerprint()
        same = getattr(self, "_fingerprint", None) == fingerprint and hasattr(self, "dual_coef_")
        self._fingerprint = fingerprint
        return same

    # -- what comes out -----------------------------------------------------------------------------------------------------------------

    def _store_support(self, X: Any, support: Array, dual_coef: Array, intercept: Array) -> None:
        self.support_ = support.astype(np.int32) if X.shape[0] < 2**31 else support
        self.support_vectors_ = np.empty((0, 0), np.float64) if self._precomputed else X[support]
        self.dual_coef_ = dual_coef
        self.intercept_ = intercept
        self.shape_fit_ = X.shape

    @property
    def coef_(self) -> Array:
        """Weights of the features, for the linear kernel only."""
        if not isinstance(getattr(self, "kernel_", None), Linear):
            raise AttributeError("coef_ is only available when using a linear kernel")
        return self._linear_weights()

    def _linear_weights(self) -> Array:
        return np.asarray(self.dual_coef_ @ self.support_vectors_)

    def _expansion(self) -> Expansion:
        """The learned function, from the public attributes; the one made at the end of fit, unless an attribute was replaced since."""
        made = self.__dict__.get("_made")
        if made is not None and made[0] is self.dual_coef_ and made[1] is self.intercept_:
            return made[2]
        basis = self.support_ if self._precomputed else self.support_vectors_
        pairs = self.n_support_ if self.dual_coef_.shape[0] > 1 else None
        return Expansion(
            self.kernel_,
            basis,
            np.ascontiguousarray(self.dual_coef_.T, np.float64),
            self.intercept_,
            pairs,
        )

    def _make(self) -> None:
        """Make the learned function ready for prediction, once: after a fit, and after attributes were restored from a file."""
        self._made = (self.dual_coef_, self.intercept_, self._expansion())

    def _outputs(self, X: Any) -> Array:
        """Decision values, shape (n, outputs)."""
        check_is_fitted(self)
        X = validate_data(
            self,
            X,
            dtype=[np.float64, np.float32],
            accept_sparse="csr",
            accept_large_sparse=True,
            reset=False,
        )
        if self._precomputed and X.shape[1] != self.shape_fit_[0]:
            raise ValueError(
                f"X.shape[1] = {X.shape[1]} should be equal to {self.shape_fit_[0]}, the number of samples at training time: "
                "pass the kernel values between the new rows and all training rows."
            )
        return self._expansion().decision_function(X, n_threads(self.n_jobs))

    def __getstate__(self) -> dict[str, Any]:
        state = dict(
            super().__getstate__()
        )  # a copy: what comes back is the dictionary of the estimator itself
        state.pop("_made", None)
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if "dual_coef_" in self.__dict__:
            self._make()


def refuse_broken(X: Any) -> None:
    """Raise ValueError for a sparse matrix with column indices that are not there: compiled loops trust them."""
    if sp.issparse(X) and X.nnz and not (X.indices.min() >= 0 and X.indices.max() < X.shape[1]):
        raise ValueError(
            f"The sparse matrix X is broken: it has column indices from {X.indices.min()} to {X.indices.max()}, "
            f"but only {X.shape[1]} columns. Build it anew; X.check_format() says more."
        )


def refuse_targets(y: Array) -> None:
    """Raise ValueError for targets that are no numbers, or whose squares are none: solvers would go on for ever."""
    if y.dtype.kind not in "fiub":
        raise ValueError(
            f"y must be numbers, but holds {y.dtype.type.__name__} such as {y.tolist()[0]!r}. For classes, use a classifier."
        )
    largest = float(np.abs(y.astype(np.float64)).max())
    if largest > LARGEST_TARGET:
        raise ValueError(
            f"y has values as large as {largest:.3g}, whose squares are beyond float64. Scale the targets."
        )


def finite(operand: Operand) -> Operand:
    """The operand; complains if its kernel values are not finite, because then nothing that follows means anything."""
    if not (
        np.isfinite(operand.diag()).all() and (operand.sq is None or np.isfinite(operand.sq).all())
    ):
        raise ValueError(
            f"The kernel {operand.kernel!r} gives values that are not finite (NaN or infinity) for these rows. Scale the features, for example "
            "with StandardScaler, or choose other parameters of the kernel."
        )
    return operand


def joined(histories: list[dict[str, Array]]) -> dict[str, Array]:
    """The histories one after the other; of several, each with the number of its problem."""
    if len(histories) == 1:
        return histories[0]
    joined = {
        name: np.concatenate([history[name] for history in histories]) for name in histories[0]
    }
    joined["problem"] = np.repeat(
        np.arange(len(histories)), [history["seconds"].size for history in histories]
    )
    return joined
