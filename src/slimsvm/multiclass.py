"""Several classes around any trainer of two: labels as numbers, the problems there are, and votes.

``OneVsOne`` has a problem for each pair of classes, ``OneVsRest`` one column of signs for each
class, ``Joint`` one problem with a score for each class. All three say what ``decision_function``
returns and which class is chosen.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slimsvm.compiled import compiled
from slimsvm.run import Limits, Result
from slimsvm.threads import parallel

Array = NDArray[Any]
FEW_LABELS = 4  # rows a class: with fewer, scikit-learn warns that these may be no classes


# -- labels --------------------------------------------------------------------------------------


def encoded(y: Any, weight: Array) -> tuple[Array, Array, Array]:
    """Classes, the number of the class of each row, and the rows that count.

    Classes whose rows all have weight zero are not there.
    """
    classes, label = sorted_labels(y, "y")
    if np.asarray(y).dtype.kind not in "biu" or FEW_LABELS * classes.size > label.size:
        # here, not above: a worker of a cluster would wait half a second for what it never calls
        from sklearn.utils.multiclass import check_classification_targets

        check_classification_targets(y)  # else: whole numbers, few of them distinct
    used = np.flatnonzero(weight > 0)
    present = np.flatnonzero(np.bincount(label[used], minlength=classes.size))
    if present.size < 2:
        one = f"{classes[present].tolist()[0]!r}. Give rows of at least two classes."
        if used.size < label.size:
            raise ValueError(
                "Invalid input - all samples with positive weights belong to the same class: " + one
            )
        raise ValueError(
            "The number of classes has to be greater than one; got 1 class: all samples belong to "
            f"class {one}"
        )
    if present.size < classes.size:
        label = np.searchsorted(present, label)  # meaningful for the used rows only
        classes = classes[present]
    return classes, label, used


def sorted_labels(y: Any, name: str) -> tuple[Array, Array]:
    """The distinct labels in order, and the number of each label.

    Complains about labels without an order, such as words beside numbers.
    """
    try:
        labels = np.unique(y)
        # labels are few: quicker than the sort behind return_inverse
        return labels, np.searchsorted(labels, y)
    except TypeError as error:
        raise ValueError(
            f"The labels in {name} cannot be put in order ({error}). Use only numbers or only "
            "strings, and leave out rows without a label."
        ) from error


def class_factors(
    class_weight: Any, *, classes: Array, y: Array, sample_weight: Array | None = None
) -> Array:
    """Factor of C for each class: finite, not negative, and positive for two classes at least."""
    if class_weight is None:
        return np.ones(classes.size)
    from sklearn.utils.class_weight import compute_class_weight

    found = compute_class_weight(class_weight, classes=classes, y=y, sample_weight=sample_weight)
    factors = np.asarray(found, np.float64)
    wrong = np.flatnonzero(~((factors >= 0.0) & (factors < np.inf)))
    if wrong.size:
        label, factor = classes.tolist()[wrong[0]], float(factors[wrong[0]])
        raise ValueError(
            f"The class_weight of class {label!r} is {factor:g}; weights must be finite and not "
            "negative."
        )
    if np.count_nonzero(factors) < 2:
        raise ValueError(
            f"class_weight={class_weight!r} leaves fewer than two of the classes "
            f"{classes.tolist()} with a positive weight."
        )
    return factors


# -- one-vs-one ----------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False, repr=False)
class Part:
    """The problem of one pair of classes, by their places among the sorted labels."""

    k: int
    positive: int
    negative: int
    label: Array = field(repr=False)

    @property
    def rows(self) -> Array:
        """The rows of the pair, in order."""
        return np.flatnonzero((self.label == self.positive) | (self.label == self.negative))

    def sign(self, rows: Array) -> Array:
        """+1 for rows of the positive class, -1 for those of the negative one."""
        return np.where(self.label[rows] == self.positive, 1.0, -1.0)

    def line(self, rows: Array, n_classes: int) -> Any:
        """LIBSVM's layout: which row of coefficients those of the pair are in."""
        if n_classes == 2:
            return 0
        own = self.label[rows]
        other = np.where(own == self.positive, self.negative, self.positive)
        return other - (other > own)


@compiled
def most_votes(values: Array, n_classes: int, winner: Array) -> None:
    """The class with most votes in each row of pair values; of equal ones the first."""
    votes = np.empty(n_classes, np.int64)
    for r in range(values.shape[0]):
        votes[:] = 0
        at = 0
        for i in range(n_classes):
            for j in range(i + 1, n_classes):
                votes[i if values[r, at] > 0.0 else j] += 1
                at += 1
        best = 0
        for c in range(1, n_classes):
            if votes[c] > votes[best]:
                best = c
        winner[r] = best


@compiled
def votes_and_sums(values: Array, votes: Array, sums: Array) -> None:
    """Of each row of pair values the votes for each class, and the sum of what speaks for it."""
    n_classes = votes.shape[1]
    for r in range(values.shape[0]):
        votes[r] = 0.0
        sums[r] = 0.0
        at = 0
        for i in range(n_classes):
            for j in range(i + 1, n_classes):
                value = values[r, at]
                sums[r, i] += value
                sums[r, j] -= value
                votes[r, j if value < 0.0 else i] += 1.0
                at += 1


@dataclass(frozen=True)
class OneVsOne:
    """A problem for each pair (0, 1), (0, 2), ..., the first positive; of two, the second class is.

    Examples
    --------
    >>> scheme = OneVsOne(3)
    >>> scheme.pairs
    [(0, 1), (0, 2), (1, 2)]
    >>> scheme.chosen(np.array([[1.0, -1.0, -1.0]]))
    array([2])
    """

    n_classes: int

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """The classes of each pair: the positive one, and the other."""
        if self.n_classes == 2:
            return [(1, 0)]
        return [(i, j) for i in range(self.n_classes) for j in range(i + 1, self.n_classes)]

    @property
    def n_outputs(self) -> int:
        """Number of pairs."""
        return len(self.pairs)

    def parts(self, label: Array) -> list[Part]:
        """The problems, for rows with these labels."""
        return [Part(k, i, j, label) for k, (i, j) in enumerate(self.pairs)]

    @staticmethod
    def trained(
        parts: list[Part],
        train: Callable[[Part, Limits], Result],
        fit: Any,
        small: Callable[[Part], bool] = lambda part: True,
    ) -> list[Result]:
        """All problems: large ones in turn with all threads, then small ones side by side.

        The time that is left is shared among those that are left; a single one has all of it.
        """
        results: list[Any] = [None] * len(parts)
        few = [part for part in parts if len(parts) > 1 and small(part)]
        many = sorted({part.k for part in parts} - {part.k for part in few})
        for at, k in enumerate(many):
            limits = fit.limits if len(parts) == 1 else fit.limits.part(len(parts) - at)
            results[k] = train(parts[k], limits)
        at_once = fit.side_by_side(len(few))

        def next_small(t: int) -> None:
            results[few[t].k] = train(few[t], fit.limits.part(len(few) - t, at_once))

        parallel(next_small, len(few), at_once)
        return results

    def laid_out(self, parts: list[Part], duals: list[Array], n_rows: int) -> Array:
        """LIBSVM's layout of coefficients: one row fewer than classes, a column for each row."""
        coef = np.zeros((self.n_classes - 1, n_rows))
        for part, a in zip(parts, duals, strict=True):
            rows = part.rows
            coef[part.line(rows, self.n_classes), rows] = part.sign(rows) * a
        return coef

    def taken_apart(self, coef: Array, part: Part) -> Array:
        """The dual point of one problem: the way back from that layout."""
        rows = part.rows
        return np.asarray(np.abs(coef[part.line(rows, self.n_classes), rows]))

    def decision(self, values: Array, shape: str = "ovr") -> Array:
        """What ``decision_function`` returns: one column a class, or with 'ovo' one a pair."""
        if self.n_classes == 2:
            return np.asarray(values[:, 0])
        if shape == "ovo":
            return values
        votes, sums = np.empty((2, values.shape[0], self.n_classes))
        votes_and_sums(np.ascontiguousarray(values), votes, sums)
        # as scikit-learn has it, to the last bit: sums decide between equal votes alone
        return np.asarray(votes + sums / (3 * (np.abs(sums) + 1)))

    def chosen(self, values: Array, shape: str = "ovr", break_ties: bool = False) -> Array:
        """The class with most votes; of equal ones the first, or the one with the largest sum."""
        if self.n_classes == 2:
            return (values[:, 0] > 0).astype(int)
        if break_ties:
            return np.asarray(np.argmax(self.decision(values), axis=1))
        winner = np.empty(values.shape[0], np.intp)
        most_votes(np.ascontiguousarray(values), self.n_classes, winner)
        return winner


# -- one problem for all classes -----------------------------------------------------------------


@dataclass(frozen=True)
class OneVsRest:
    """A column of signs for each class; of two classes one, for the second.

    Examples
    --------
    >>> OneVsRest(2).columns(np.array([0, 1])).tolist()
    [[-1.0], [1.0]]
    """

    n_classes: int

    @property
    def n_outputs(self) -> int:
        """Number of columns."""
        return 1 if self.n_classes == 2 else self.n_classes

    def columns(self, label: Array) -> Array:
        """The signs of all rows, shape (n, columns)."""
        positive = np.array([1]) if self.n_classes == 2 else np.arange(self.n_classes)
        return np.where(label[:, None] == positive, 1.0, -1.0)

    def decision(self, values: Array, shape: str = "ovr") -> Array:
        """One column a class; of two classes a vector."""
        return np.asarray(values[:, 0]) if self.n_classes == 2 else values

    def chosen(self, values: Array, shape: str = "ovr", break_ties: bool = False) -> Array:
        """The class with the largest value."""
        if self.n_classes == 2:
            return (values[:, 0] > 0).astype(int)
        return np.asarray(values.argmax(axis=1))


@dataclass(frozen=True)
class Joint:
    """One problem with a score for each class, also where there are two."""

    n_classes: int

    @property
    def n_outputs(self) -> int:
        """Number of scores."""
        return self.n_classes

    def decision(self, values: Array, shape: str = "ovr") -> Array:
        """The scores; of two classes the second one's minus the first one's."""
        return values[:, 1] - values[:, 0] if self.n_classes == 2 else values

    def chosen(self, values: Array, shape: str = "ovr", break_ties: bool = False) -> Array:
        """The class with the highest score."""
        return np.asarray(np.argmax(values, axis=1))
