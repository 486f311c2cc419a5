"""What stands in for rows, estimators and scorers while scikit-learn evaluates a search.

scikit-learn clones the estimator for each point and fold, fits it and scores it. Here it clones a
stand-in, whose class is a subclass of the estimator's own: its ``fit`` finds in a book that the
outputs of its fold are known, and its predictions are those. Where the book does not know, or
somebody asks for more than the book has (support vectors, rows of his own), the stand-in fits
itself as the estimator would. Rows are passed as their numbers, so that nothing is copied for fits
that do not happen.
"""

from __future__ import annotations

import functools
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone, is_classifier
from sklearn.metrics import accuracy_score, r2_score
from sklearn.metrics._scorer import _MultimetricScorer
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples

Array = NDArray[Any]
PLAIN = (int, float, str, bool, type(None))  # nothing to copy
KEPT_BY_CLONE = ("_sklearn_output_config", "_metadata_request")  # as scikit-learn's


class RowNumbers:
    """Some rows of X, by their numbers; for a matrix of kernel values, of some columns."""

    def __init__(self, X: Any, rows: Array | None = None, columns: Array | None = None) -> None:
        self.X, self.rows, self.columns = X, rows, columns
        n = _num_samples(X) if rows is None else rows.size
        width = tuple(getattr(X, "shape", (n, 1))[1:]) if columns is None else (columns.size,)
        self.shape = (n, *width)

    def __len__(self) -> int:
        return int(self.shape[0])

    def __getitem__(self, key: Any) -> RowNumbers:
        if isinstance(key, tuple) and len(key) == 2 and key[1] is not Ellipsis:  # np.ix_
            return RowNumbers(self.X, np.ravel(key[0]), np.ravel(key[1]))
        return RowNumbers(self.X, np.asarray(key[0] if isinstance(key, tuple) else key))

    def actual(self) -> Any:
        """The rows themselves."""
        if self.rows is None:
            return self.X
        if self.columns is not None:
            return self.X[np.ix_(self.rows, self.columns)]
        return _safe_indexing(self.X, self.rows)


def actual(X: Any) -> Any:
    """Rows, whatever stands for them."""
    return X.actual() if isinstance(X, RowNumbers) else X


@dataclass
class Known:
    """What is known of one fit: predictions at some rows."""

    classes: Array | None
    rows: list[Array] = field(default_factory=list)
    predicted: list[Array] = field(default_factory=list)
    decision: list[Array | None] = field(default_factory=list)
    outputs: Array | None = None  # of all pairs at the held-out rows, where somebody wants them

    def at(self, rows: Array) -> int:
        """Which of the known rows these are; -1: none."""
        for k, own in enumerate(self.rows):
            if own is rows or np.array_equal(own, rows):
                return k
        return -1


class Interrupted(RuntimeError):
    """A fit that did not take place, since the search was interrupted or out of time."""


class Book:
    """What is known of all fits of a search."""

    def __init__(self, names: list[str]) -> None:
        self.names = names
        self.folds: dict[bytes, int] = {}
        self.known: dict[tuple[Any, ...], Known] = {}
        self.reason = ""  # why the rest of the fits do not take place

    def key(self, parameters: Any, fold: int) -> tuple[Any, ...]:
        """Under which a fit is entered."""
        return (fold, *(repr(parameters.get(name)) for name in self.names))

    def find(self, estimator: Any, X: RowNumbers) -> Known | None:
        """What is known of the fit of this estimator to these rows, if anything is."""
        if X.rows is None:
            return None
        fold = self.folds.get(np.asarray(X.rows, np.int64).tobytes(), -1)
        found = self.known.get(self.key(estimator.get_params(), fold))
        if found is None and self.reason:
            raise Interrupted(self.reason)
        return found


class StandIn:
    """Mixed into a subclass of the estimator's class."""

    _book: Book
    _base: Any
    _shown: tuple[Any, Any]

    def __sklearn_clone__(self) -> Any:
        if isinstance(self, Pipeline):
            return with_book(super().__sklearn_clone__(), self._book)  # type: ignore[misc]
        # hundreds of times in a search: what scikit-learn's clone does, without its questions
        copy = object.__new__(type(self))
        for name in self._get_param_names():
            value = self.__dict__[name]
            copy.__dict__[name] = value if isinstance(value, PLAIN) else clone(value, safe=False)
        for name in KEPT_BY_CLONE:
            if name in self.__dict__:
                copy.__dict__[name] = deepcopy(self.__dict__[name])
        return with_book(copy, self._book)

    def _looked_up(self, X: Any, y: Any, given: dict[str, Any]) -> bool:
        """Whether the fit is in the book; then this is what it is fitted from."""
        self.__dict__.pop("_known", None)
        known = self._book.find(self, X) if isinstance(X, RowNumbers) else None
        if known is None:
            return False
        self._known, self._fit_to = known, (X, y, given)
        if known.classes is not None and "classes_" not in dir(type(self)):
            self.classes_ = known.classes
        return True

    def _really_fitted(self) -> Any:
        """The same, fitted as the estimator would have been."""
        if "_known" in self.__dict__:
            X, y, given = self._fit_to
            del self._known, self._fit_to
            self._base.fit(self, X.actual(), y, **given)
        return self

    def _answered(self, method: str, X: Any) -> Any:
        """Predictions: known ones, or really."""
        known = self.__dict__.get("_known")
        shown, numbers = self.__dict__.get("_shown", (None, None))
        X = numbers if X is shown and shown is not None else X
        if known is not None and isinstance(X, RowNumbers) and X.rows is not None:
            at = known.at(X.rows)
            value = None if at < 0 else getattr(known, method)[at]
            if value is not None:
                return value
        name = {"predicted": "predict", "decision": "decision_function"}[method]
        return getattr(self._base, name).__get__(self._really_fitted())(actual(X))

    def __getattr__(self, name: str) -> Any:
        # fitted attributes that the book does not know; names of features are no reason to fit
        own = self.__dict__
        if (
            name.endswith("_")
            and name[0] != "_"
            and name != "feature_names_in_"
            and "_known" in own
        ):
            return getattr(self._really_fitted(), name)
        above = getattr(super(), "__getattr__", None)
        if above is not None:
            return above(name)
        raise AttributeError(f"{self._base.__name__!r} object has no attribute {name!r}")


def with_book(estimator: Any, book: Book) -> Any:
    """The estimator, which must be a stand-in, with the book of the search."""
    estimator._book = book
    return estimator


def own_score(y: Any, predicted: Array, weight: Any, classes: bool) -> float:
    """What an estimator's ``score`` returns: accuracy, or R^2.

    scikit-learn's functions look at their arguments for a millisecond, which is more than what many
    a point of a search takes.

    Examples
    --------
    >>> own_score(np.array([0, 1, 1]), np.array([0, 1, 0]), np.array([1.0, 2.0, 1.0]), True)
    0.75
    """
    if not classes:
        return float(r2_score(y, predicted, sample_weight=weight))
    if isinstance(y, np.ndarray) and y.dtype == predicted.dtype:
        right = y == predicted
        return float(np.mean(right) if weight is None else np.average(right, weights=weight))
    return float(accuracy_score(y, predicted, sample_weight=weight))


@functools.cache
def stand_in_class(base: Any, decides: bool) -> type:
    """The class that stands in for estimators of a class."""

    @functools.wraps(base.fit)
    def fit(self: Any, X: Any, y: Any = None, *args: Any, **given: Any) -> Any:
        if args:
            given["sample_weight"] = args[0]
        if self._looked_up(X, y, given):
            return self
        return base.fit(self, actual(X), y, **given)

    def predict(self: Any, X: Any) -> Any:
        return self._answered("predicted", X)

    def decision_function(self: Any, X: Any) -> Any:
        return self._answered("decision", X)

    def score(self: Any, X: Any, y: Any, sample_weight: Any = None) -> float:
        return own_score(y, self.predict(X), sample_weight, is_classifier(self))

    names = tuple(base._get_param_names())
    members: dict[str, Any] = {"fit": fit, "predict": predict, "score": score, "_base": base}
    members["_get_param_names"] = classmethod(lambda own: list(names))  # it looks at signatures
    if decides:
        members["decision_function"] = decision_function
    if isinstance(getattr(base, "classes_", None), property):

        def classes(self: Any) -> Any:
            known = self.__dict__.get("_known")
            return base.classes_.fget(self) if known is None else known.classes

        members["classes_"] = property(classes)
    return type(base.__name__, (StandIn, base), members)


def stand_in(estimator: Any, book: Book) -> Any:
    """An estimator of the same parameters that looks its fits up."""
    base: Any = type(estimator)
    kind = stand_in_class(base, hasattr(estimator, "decision_function"))
    copy = clone(estimator)
    copy.__class__ = kind
    return with_book(copy, book)


def itself(estimator: Any) -> Any:
    """The estimator that a stand-in, really fitted, is."""
    if isinstance(estimator, StandIn):
        estimator._really_fitted()
        estimator.__class__ = estimator._base
        estimator.__dict__.pop("_book", None)
    return estimator


# -- scorers ---------------------------------------------------------------------------------------


def is_plain(scorer: Any) -> bool:
    """Whether a scorer asks an estimator for predictions, and looks at nothing else."""
    return type(scorer).__module__.startswith("sklearn.") and not isinstance(
        scorer, _MultimetricScorer
    )


def each(scorers: Any) -> list[Any]:
    """The single scorers."""
    return list(scorers._scorers.values()) if isinstance(scorers, _MultimetricScorer) else [scorers]


def seeing_rows(scorers: Any) -> Any:
    """Scorers that are given the rows themselves where they may look at them."""

    def wrapped(scorer: Any) -> Any:
        if is_plain(scorer):
            return scorer

        @functools.wraps(scorer, updated=())
        def score(estimator: Any, X: Any, *args: Any, **given: Any) -> Any:
            if isinstance(estimator, StandIn) and not isinstance(estimator, Pipeline):
                rows = actual(X)
                estimator._shown = (rows, X)
                return scorer(estimator, rows, *args, **given)
            return scorer(itself(estimator), actual(X), *args, **given)  # he may look at the steps

        return score

    if isinstance(scorers, _MultimetricScorer):
        named = {name: wrapped(scorer) for name, scorer in scorers._scorers.items()}
        return _MultimetricScorer(scorers=named, raise_exc=scorers._raise_exc)
    return wrapped(scorers)
