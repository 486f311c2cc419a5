"""Models that are an expansion over vectors, and those whose vectors are support vectors."""

from __future__ import annotations

from collections.abc import Callable
from operator import is_
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted, validate_data

from slimsvm.declarations import Attribute, attribute, demand
from slimsvm.expansion import FEW, Expansion, as_csr, by_pair_in_csr, dense, predictor
from slimsvm.kernels import Kernel, Linear, Precomputed
from slimsvm.models.fitted import FittedModel
from slimsvm.threads import n_threads
from slimsvm.training import AS_ROWS

Array = NDArray[Any]
FEW_ROWS = 64  # up to which a look at rows of numbers takes the place of scikit-learn's checks


def _plain(X: Any, fitted: Any) -> bool:
    """Whether these are a few rows that need no checks of scikit-learn's: they are seen at once.

    Dense numbers that are finite, as many features as at fit, no names on either side.
    """
    return (
        type(X) is np.ndarray
        and X.ndim == 2
        and X.dtype.char in "fd"
        and 0 < X.shape[0] <= FEW_ROWS
        and X.shape[1] == fitted.__dict__.get("n_features_in_", 0)
        and "feature_names_in_" not in fitted.__dict__
        and bool(np.isfinite(X).all())
    )


class KernelModel(FittedModel):
    """A learned function that is an expansion over vectors, made once and kept."""

    kernel_: Kernel
    intercept_: Array
    n_jobs: int | None
    _learned: ClassVar[str]  # the attribute that a fitted one has for sure
    _same_as: ClassVar[str] = ""  # the exact estimator that may hold the same function, if another
    _predicted: Callable[[Array], Array]  # from decision values: labels, targets or signs

    def _made_from(self) -> tuple[Any, ...]:
        """The attributes that the function is made from."""
        raise NotImplementedError

    def _make(self) -> Expansion:
        """The learned function, from the public attributes."""
        raise NotImplementedError

    def _function(self) -> Expansion:
        """The learned function; made anew where an attribute was replaced since."""
        now = self._made_from()
        known, function = self.__dict__.get("_kept_function", ((), None))
        if len(known) != len(now) or not all(map(is_, known, now)):
            function = self._make()
            self._kept_function = (now, function)
        return function

    def _make_ready(self) -> None:
        self._function()

    def _outputs(self, X: Any) -> Array:
        """Decision values, shape (n, outputs)."""
        X, function = self._new_rows(X), self._function()
        if X.shape[0] <= FEW and isinstance(X, np.ndarray) and function.for_few():
            return function.of_few(X)
        return function.decision_function(X, n_threads(self.n_jobs))

    def fast_predictor(self) -> Callable[[Any], Any]:
        """A function of rows that predicts them as ``predict`` does, without looking at them first.

        For one row at a time, where the checks of scikit-learn take most of the time: with 50
        vectors a call takes about ten microseconds. It takes a row, and returns its prediction, or
        an array of rows. Rows must be numbers, dense and finite, which is not checked; that there
        are as many features as at fit is. It goes on with the model as it is now.

        Returns
        -------
        callable

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from slimsvm import SVC
        >>> X, y = load_iris(return_X_y=True)
        >>> predict = SVC().fit(X, y).fast_predictor()
        >>> int(predict(X[0])), predict(X[:3]).tolist()
        (0, [0, 0, 0])
        """
        check_is_fitted(self)
        fitted: Any = self
        transformer, n_features = self.__dict__.get("transformer_"), fitted.n_features_in_
        if transformer is None:
            return predictor(self._function(), n_features, self._predicted)
        from slimsvm.sources.opened import applied

        width = applied(transformer, np.zeros((1, n_features))).shape[1]
        predict = predictor(self._function(), int(width), self._predicted)

        def of_given(rows: Any) -> Any:
            X = np.asarray(rows, np.float64)
            return predict(
                applied(transformer, X[None])[0] if X.ndim == 1 else applied(transformer, X)
            )

        return of_given

    def _new_rows(self, X: Any) -> Any:
        """New rows, validated, and transformed as those of the fit were."""
        transformer = self.__dict__.get("transformer_")
        if transformer is None and _plain(X, self):
            return X
        check_is_fitted(self)
        X = validate_data(self, X, **AS_ROWS, reset=False)
        if transformer is None:
            return X
        from slimsvm.sources.opened import applied

        return applied(transformer, X)

    def __getstate__(self) -> dict[str, Any]:
        given: Any = super().__getstate__()
        state = dict(given)  # a copy: what comes is the dictionary of the estimator itself
        state.pop("_kept_function", None)
        return state


class SupportVectors(KernelModel):
    """Rows that carry weight, in LIBSVM's layout for several classes.

    Attributes
    ----------
    support_
        Indices of the support vectors.
    support_vectors_
        The support vectors; empty for a precomputed kernel.
    n_support_
        Number of support vectors for each class (classifiers) or in all.
    dual_coef_
        Coefficients in the decision function, in LIBSVM's layout: one line fewer than classes, or
        one. A CSR matrix where the rows were sparse, as in scikit-learn.
    coef_
        Weights of the features, for the linear kernel only.
    shape_fit_
        Shape of X at fit.
    """

    _learned = "support_"
    _all_rows: ClassVar[bool] = True  # support_ has the places among all rows that were given
    fitted: ClassVar[tuple[Attribute, ...]] = (
        attribute("support_", "int", ("n_SV",)),
        attribute("support_vectors_", "rows", ("n_SV", "n_features")),
        attribute("n_support_", "int", ("n_groups",)),
        attribute("dual_coef_", "matrix", ("n_lines", "n_SV")),
        attribute("intercept_", "float", ("n_outputs",)),
        attribute("coef_", "float", ("n_outputs", "n_features"), stored=False, optional=True),
        attribute("kernel_", "kernel"),
        attribute("shape_fit_", "shape"),
    )

    support_: Array
    support_vectors_: Any
    n_support_: Array
    dual_coef_: Any
    shape_fit_: tuple[int, ...]
    _as_libsvm: ClassVar[bool]
    _precomputed: bool

    def _made_from(self) -> tuple[Any, ...]:
        return self.dual_coef_, self.intercept_

    def _make(self) -> Expansion:
        basis = self.support_ if isinstance(self.kernel_, Precomputed) else self.support_vectors_
        layout = self.n_support_ if self.dual_coef_.shape[0] > 1 else None
        coef = np.ascontiguousarray(dense(self.dual_coef_).T, np.float64)
        return Expansion(self.kernel_, basis, coef, self.intercept_, layout)

    def _hold(self, data: Any, coef: Array, label: Array | None, intercept: Array) -> None:
        """Set the attributes: coefficients of all rows of the problem, and their classes if any."""
        support = np.flatnonzero(np.any(coef != 0, axis=0))
        if label is None:
            self.n_support_ = np.array([support.size], np.int32)
        else:
            support = support[np.argsort(label[support], kind="stable")]
            counts = np.bincount(label[support], minlength=coef.shape[0] + 1)
            self.n_support_ = counts.astype(np.int32)
        rows = data.used[support]
        self.support_ = rows.astype(np.int32) if data.X.shape[0] < 2**31 else rows
        precomputed = isinstance(data.kernel, Precomputed)
        vectors = np.empty((0, 0), np.float64) if precomputed else data.X[rows]
        self.support_vectors_, self.dual_coef_ = vectors, coef[:, support]
        self.intercept_ = intercept
        self._fitted_dense = isinstance(vectors, np.ndarray)  # not known of a model from a file
        if self._as_libsvm and sp.issparse(vectors):
            self.dual_coef_ = as_csr(self.dual_coef_, type(vectors))
        self.kernel_, self.shape_fit_ = data.kernel, data.X.shape

    @property
    def coef_(self) -> Any:
        """Weights of the features, for the linear kernel only; sparse where the rows were."""
        if not isinstance(getattr(self, "kernel_", None), Linear):
            raise AttributeError("coef_ is only available when using a linear kernel")
        coef = self.dual_coef_
        if coef.shape[0] > 1:
            coef = by_pair_in_csr(dense(coef), self.n_support_)
        coef = coef @ self.support_vectors_
        if sp.issparse(coef):
            # a matrix where the rows are one: products of it mean something else for arrays
            coef = type(self.support_vectors_)(coef)
            coef.sort_indices()
            coef.data.flags.writeable = False
            return coef
        coef = np.asarray(coef)
        coef.flags.writeable = False  # it follows from others: a change would change nothing
        return coef

    # -- under the names that scikit-learn's own classes have for them, which other programs read --

    @property
    def _gamma(self) -> float:
        return float(getattr(self.kernel_, "gamma", 0.0))

    @property
    def _sparse(self) -> bool:
        return bool(sp.issparse(self.support_vectors_))

    @property
    def _n_support(self) -> Array:
        return self.n_support_

    @property
    def _libsvm_sign(self) -> float:
        """Of two classes, LIBSVM's positive one is the first."""
        return -1.0 if len(getattr(self, "classes_", ())) == 2 else 1.0

    @property
    def _dual_coef_(self) -> Any:
        return self._libsvm_sign * self.dual_coef_

    @_dual_coef_.setter
    def _dual_coef_(self, value: Any) -> None:
        self.dual_coef_ = self._libsvm_sign * value

    @property
    def _intercept_(self) -> Array:
        return self._libsvm_sign * self.intercept_

    @classmethod
    def _sizes(cls, a: dict[str, Any]) -> dict[str, int]:
        sizes: dict[str, int] = super()._sizes(a)
        n_classes = sizes.get("n_classes", 2)
        groups = n_classes if "n_classes" in sizes else 1
        return {**sizes, "n_lines": n_classes - 1, "n_groups": groups}

    @classmethod
    def _check_fitted(cls, a: dict[str, Any]) -> None:
        super()._check_fitted(a)
        support, counts, n_features = a["support_"], a["n_support_"], a["n_features_in_"]
        if isinstance(a["kernel_"], Precomputed):
            inside = not support.size or (support.min() >= 0 and support.max() < n_features)
            columns = f"the {n_features} columns of a precomputed kernel"
            demand(inside, f"support_ points outside of {columns}, kernel_")
        right = bool(np.all(counts >= 0)) and int(counts.sum()) == support.size
        demand(right, f"the counts of n_support_ do not add up to {support.size}")

    def _new_rows(self, X: Any) -> Any:
        X = super()._new_rows(X)
        if self._as_libsvm and sp.issparse(X) and getattr(self, "_fitted_dense", False):
            raise ValueError(
                f"cannot use sparse input in {type(self).__name__!r} trained on dense data: pass "
                "X.toarray(), or train on sparse rows, after which both are accepted"
            )
        if self.n_support_.sum() != self.support_.size:
            raise ValueError(
                f"The internal representation of {type(self).__name__} was altered: the counts of "
                f"n_support_ do not add up to its {self.support_.size} support vectors."
            )
        if isinstance(self.kernel_, Precomputed) and X.shape[1] != self.shape_fit_[0]:
            raise ValueError(
                f"X.shape[1] = {X.shape[1]} should be equal to {self.shape_fit_[0]}, the number of "
                "samples at training time: pass the kernel values between the new rows and all "
                "training rows."
            )
        return X
