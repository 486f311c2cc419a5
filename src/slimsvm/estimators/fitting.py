"""``fit``, once: the five steps that every estimator takes.

    1. checked     parameters and arrays; most errors are raised here
    2. encoded     classes as numbers, weights of classes; rows of weight zero leave
    3. prepared    the kernel with its numbers, the rows ready for products
    4. solved      problem and solver, under :func:`slimsvm.run.run`
    5. concluded   fitted attributes, and how it ended

An estimator writes 4 and 5. Nothing is set on it before 5, and a fit that fails leaves it as it
was.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from logging import INFO
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.callback import CallbackSupportMixin
from sklearn.callback import with_callbacks as _with_callbacks
from sklearn.utils._param_validation import validate_parameter_constraints
from sklearn.utils.validation import validate_data

from slimsvm.declarations import Attribute, attribute
from slimsvm.ending import LOG, Ending
from slimsvm.estimators.parameters import MatrixLike
from slimsvm.estimators.unfinished import CALLBACKS, Unfinished
from slimsvm.kernels import FromCallable, Kernel, Precomputed, make_kernel
from slimsvm.models.predictions import ClassPredictions, NumberPredictions
from slimsvm.multiclass import class_factors, encoded
from slimsvm.notebook import ShowsItsFit
from slimsvm.precision import is_small
from slimsvm.progress import Progress
from slimsvm.rows import MemoryRows, is_far
from slimsvm.run import Limits, OutOfTime, Record, Result, Watcher
from slimsvm.threads import n_threads, single_threaded_blas
from slimsvm.tiles import prepare
from slimsvm.training import (
    AS_ROWS,
    LARGEST_C,
    Data,
    Fit,
    checked_weights,
    finite,
    is_plain,
    numbers_in,
    refuse_broken,
    refuse_large_C,
    refuse_not_square,
    refuse_rows,
    refuse_sparse_kernel,
    refuse_targets,
)

Array = NDArray[Any]
REORDERED = 1 << 23  # bytes of rows up to which another order in memory becomes C: measured 0.6 ms
Method = TypeVar("Method", bound=Callable[..., Any])


def with_callbacks(fit: Method) -> Method:
    """scikit-learn's decorator of a ``fit`` that has callbacks; the type stays."""
    decorated: Method = _with_callbacks(fit)
    return decorated


class Estimator(Unfinished, ShowsItsFit, CallbackSupportMixin, BaseEstimator):
    """Base of all estimators: what parameters mean that several of them have.

    Parameters
    ----------
    kernel : {'linear', 'poly', 'rbf', 'sigmoid', 'laplacian', 'precomputed'}, callable or Kernel
        Similarity of two rows. A callable gets two blocks of rows and returns the matrix of their
        values.
    degree : int
        Of the polynomial kernel.
    gamma : {'scale', 'auto'} or float
        Of the rbf, polynomial, sigmoid and Laplacian kernels. 'scale' is 1 / (n_features * variance
        of X), with sample weights; 'auto' is 1 / n_features.
    coef0 : float
        Constant in the polynomial and sigmoid kernels.
    C : float
        Weight of the errors: 1/2 |w|^2 + C sum_i weight_i max(0, 1 - y_i f(x_i)).
    fit_intercept : bool
        Whether there is an intercept, which is not penalised.
    class_weight : dict or 'balanced'
        Factors of C for each class.
    shrinking : bool
        Whether variables that stay at a bound leave the problem until the end.
    tol : float
        Largest violation of the KKT conditions at the end. Up to 1,000 rows are always solved to
        near float64 precision.
    cache_size : float
        Megabytes for kernel values. Up to 2,000 rows (of a pair of classes) the problem is one
        block of them, of at most 32 megabytes and as much to make it, regardless of this setting.
    warm_start : bool
        Go on from the last solution if the rows are the same.
    max_iter : int
        Limit on pair steps of the solver, for each problem; -1: none.
    max_time : float
        Limit in seconds. At the limit, and at Ctrl-C, the best model so far is kept, with a
        ConvergenceWarning. Exact estimators let random rows join one after the other then, so that
        this model is a good one at any time.
    max_memory : float
        Megabytes for kernel values; beyond, they are computed again in every pass. Default 2,000.
    n_jobs : int
        Threads: None is one unless a joblib context says otherwise, -1 all. The result does not
        depend on it.
    solver : object or None
        A solver with settings of its own, which is followed to the letter: this is how the recipes
        of :mod:`slimsvm.recipes` are those of the papers. None: the quickest way known here.
    verbose : bool
        Show a line of progress.
    random_state : int, RandomState or None
        Seed of the random choices.
    decision_function_shape : {'ovr', 'ovo'}
        Columns of the decision function for more than two classes: one per class, or one per pair.
    break_ties : bool
        Decide equal votes by the sums of the decision values.
    """

    _takes_target: ClassVar[bool] = True
    _numeric_target: ClassVar[bool] = False
    _all_rows: ClassVar[bool] = False  # rows of weight zero are prepared too, and count in a centre
    _largest_C: ClassVar[float] = LARGEST_C
    # as the class of that name in scikit-learn: rows of negative weight leave, and coefficients of
    # sparse rows are sparse
    _as_libsvm: ClassVar[bool] = False

    _parameter_constraints: ClassVar[dict[str, Any]]
    _declared: ClassVar[tuple[Any, dict[str, Any]]]  # __init__, and the defaults of its parameters
    kernel: Any  # a parameter that every estimator has, for those who read types

    # -- the five steps ---------------------------------------------------------------------------

    @with_callbacks
    def fit(
        self, X: MatrixLike, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Train on rows X with labels or targets y.

        Parameters
        ----------
        X : array, CSR matrix or DataFrame of shape (n_samples, n_features)
            Training rows; for a precomputed kernel the values of all pairs of them. Where an
            estimator can do without all rows in memory, also a Dask array or DataFrame, or what
            :func:`slimsvm.open_rows` opens, whose labels and weights are its own.
        y : array of shape (n_samples,)
            Labels, numbers or strings; of a regression, targets.
        sample_weight : array of shape (n_samples,), optional
            Scales C for each row. Zero removes the row, an integer repeats it.

        Returns
        -------
        self
        """
        return self._fit(X, y, sample_weight)

    def _fit(
        self, X: Any, y: Any, sample_weight: Any, start: Any = None, margins: Any = None
    ) -> Self:
        """The five steps.

        ``start`` is a point where the solver is to begin, if it knows such, ``margins`` are those
        of another model, if it knows what to do with them.
        """
        begin = time.perf_counter()
        if is_far(X):
            from slimsvm.far.fits import fit_on_rows

            return fit_on_rows(self, X, y, sample_weight, begin)
        with self._unchanged_on_failure():
            self.__dict__.pop("transformer_", None)
            X, y, weight = self._checked(X, y, sample_weight)
            data = self._encoded(X, y, weight)
            data.start, data.margins = start, margins
            with self._fitting(begin) as fit, self._kept(data, fit):
                self._prepared(data)
                try:
                    solved = self._solved(data, fit)
                    ending = self._concluded(data, solved, fit)
                except OutOfTime:
                    ending = self._concluded_on_few_rows(data, fit)
            ending.record_on(self)
            self._make_ready()
        for checkpoint in self._checkpoints():
            checkpoint.finish(self)
        return self

    def _encoded(self, X: Any, y: Any, weight: Array) -> Data:
        """Step 2; here for targets that are numbers, or none."""
        target = np.zeros(weight.size) if y is None else np.asarray(y, np.float64)
        used = np.flatnonzero(weight > 0)
        return self._data(X, target[used], weight[used], used, weight)

    def _data(self, X: Any, target: Array, weight: Array, used: Array, given: Array) -> Data:
        """The rows of a problem.

        The given ones that have weight zero stay only in ``_all_rows``.
        """
        if self._all_rows or used.size == given.size:
            return Data(X, target, weight, used, given)
        return Data(X[used], target, weight, used, given[used])

    def _prepared(self, data: Data) -> None:
        """Step 3: ``data.kernel`` and ``data.rows``."""
        data.kernel = data.kernel or self._kernel_for(data.X, data.sample_weight)
        order = data.used if self._all_rows else np.arange(data.used.size)
        in_place = order.size == data.X.shape[0] and bool(np.all(order[1:] > order[:-1]))
        if isinstance(data.kernel, Precomputed):
            rows = prepare(data.kernel, data.X)
        else:  # few rows: float64, because the solver goes on to near float64 precision
            dtype = np.float64 if is_small(order.size) else None
            rows = prepare(data.kernel, data.X, dtype=dtype, alone=self._all_rows)
        data.rows = finite(rows if in_place else rows.take(order))

    def _kernel_for(self, X: Any, weight: Array) -> Kernel:
        """The kernel that the parameters name, with its numbers."""
        kernel = self._named_kernel()
        if isinstance(kernel, FromCallable | Precomputed):
            return kernel
        return kernel.resolve(MemoryRows(X, weight=weight))

    def _named_kernel(self) -> Kernel:
        """The kernel as the parameters name it."""
        return make_kernel(self.kernel, gamma=self.gamma, degree=self.degree, coef0=self.coef0)

    def _solved(self, data: Data, fit: Fit) -> Any:
        """Step 4."""
        raise NotImplementedError

    def _concluded(self, data: Data, solved: Any, fit: Fit) -> Ending:
        """Step 5."""
        raise NotImplementedError

    def _ending(self, results: list[Result], fit: Fit, **about: Any) -> Ending:
        """How it ended; ``measure`` says what ``tol`` is about (``MEASURES`` in ending.py)."""
        limits = {"seconds": fit.limits.seconds, "max_iter": int(self.max_iter)}
        return Ending.of(results, **{"measure": "kkt", **limits, **about})

    # -- around them ------------------------------------------------------------------------------

    @contextmanager
    def _unchanged_on_failure(self) -> Iterator[None]:
        """Whatever is raised inside, the estimator is then as it was."""
        before = dict(vars(self))
        try:
            yield
        except BaseException:
            # scikit-learn takes the callbacks of this fit down by what it has noted here
            noted = {name: self.__dict__[name] for name in CALLBACKS if name in self.__dict__}
            self.__dict__.clear()
            self.__dict__.update(before | noted)
            raise

    def _checked(
        self, X: Any, y: Any, sample_weight: Any, reset: bool = True
    ) -> tuple[Any, Any, Array]:
        """Step 1: validated X, y (None where there is no target) and weights."""
        self._validate_params()
        if self._precomputed:
            refuse_sparse_kernel(X)
        X, y = self._valid(X, y, reset)
        # sums are rounded in the order of the memory: the same rows are to give the same bits
        if isinstance(X, np.ndarray) and X.nbytes <= REORDERED:
            X = np.ascontiguousarray(X)
        if not reset and "transformer_" in self.__dict__:  # more rows for a model that has one
            from slimsvm.sources.opened import applied

            X = applied(self.__dict__["transformer_"], X)
        refuse_broken(X)
        if self._numeric_target:
            y = numbers_in(y)
            refuse_targets(y)
        if self._precomputed:
            refuse_not_square(X)
        weight = checked_weights(sample_weight, X, drop_negative=self._as_libsvm)
        refuse_large_C(getattr(self, "C", None), weight, self._largest_C)
        return X, y, weight

    def _valid(self, X: Any, y: Any, reset: bool) -> tuple[Any, Any]:
        """X and y as arrays (y None where there is no target), by scikit-learn's validation."""
        if reset and self._takes_target and is_plain(X, y):
            self.__dict__.pop("feature_names_in_", None)
            self.n_features_in_ = X.shape[1]
            return X, y
        refuse_rows(X)
        given = {"y": y, "y_numeric": self._numeric_target} if self._takes_target else {}
        checked = validate_data(self, X, **given, **AS_ROWS, reset=reset)
        return checked if self._takes_target else (checked, None)

    def _validate_params(self) -> None:
        """scikit-learn's, of those that are not the defaults: these are right."""
        init, defaults = self._declared
        if type(self).__init__ is not init:  # a subclass with other parameters
            super()._validate_params()
            return
        given = {
            name: value
            for name, default in defaults.items()
            if (value := getattr(self, name)) is not default
        }
        validate_parameter_constraints(
            self._parameter_constraints, given, caller_name=type(self).__name__
        )

    @property
    def _precomputed(self) -> bool:
        name = isinstance(self.kernel, str) and self.kernel == "precomputed"
        return name or isinstance(self.kernel, Precomputed)

    @contextmanager
    def _fitting(self, begin: float | None = None) -> Iterator[Fit]:
        """Limits, Ctrl-C, progress and callbacks of one fit, which began perhaps before this."""
        limits = Limits(self.max_time)
        limits.begin = begin or limits.begin
        context = self._init_callback_context(max_subtasks=None)
        context.call_on_fit_task_begin(estimator=self)

        def tell_callbacks(record: Record) -> bool:
            task = context.subcontext(task_name="round")
            task.call_on_fit_task_begin(estimator=self)
            facts = {"seconds": record.seconds, **record.values}
            return bool(task.call_on_fit_task_end(estimator=self, metadata=facts))

        with ExitStack() as stack:
            watchers: list[Watcher] = []
            # a search gives its callbacks to its parts: its context alone hears nothing
            if getattr(self, "_skl_callbacks", None):
                watchers.append(tell_callbacks)
            if self.verbose or LOG.isEnabledFor(INFO):
                asked = {"tol": getattr(self, "tol", None), "max_time": self.max_time}
                show = Progress(type(self).__name__, shown=bool(self.verbose), **asked)
                watchers.append(stack.enter_context(show))
            stack.enter_context(limits.watching_interrupts())
            stack.enter_context(single_threaded_blas())
            yield Fit(limits, n_threads(self.n_jobs), tuple(watchers))
        context.call_on_fit_task_end(estimator=self)

    def _make_ready(self) -> None:
        """Do now what would otherwise be done at the first prediction."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = not self._precomputed
        tags.input_tags.pairwise = self._precomputed
        return tags


class Classifier(ClassPredictions, Estimator):
    """Base of estimators that predict classes, which may have weights.

    Attributes
    ----------
    class_weight_
        Factor of C for each class.
    """

    fitted: ClassVar[tuple[Attribute, ...]] = (attribute("class_weight_", "float", ("n_classes",)),)

    class_weight_: Array
    class_weight: Any = None  # of those that have no such parameter

    def _encoded(self, X: Any, y: Any, weight: Array) -> Data:
        classes, label, used = encoded(y, weight)
        if self._all_rows and classes.size > 2:  # the rows of a class stand together; two: no copy
            used = used[np.argsort(label[used], kind="stable")]
        label, own = label[used], weight[used]
        factors = class_factors(
            self.class_weight, classes=classes, y=classes[label], sample_weight=own
        )
        data = self._data(X, label, own * factors[label], used, weight)
        data.classes, data.factors = classes, factors
        return data

    @classmethod
    def _n_outputs(cls, a: dict[str, Any]) -> int:
        return int(cls.scheme(len(a["classes_"])).n_outputs)


class Regressor(NumberPredictions, Estimator):
    """Base of estimators that predict numbers."""

    _numeric_target: ClassVar[bool] = True
