"""Rows, subsets of them, and which of them stay: steps 1, 3, 4 and 5 of cross-training."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slimsvm.multiclass import OneVsOne
from slimsvm.options import flags
from slimsvm.row_hashes import codes

Array = NDArray[Any]
LEAST = 50  # rows in a subset that is given as a share, if there are so many: as for a basis
# how far a mean margin must lie beyond 1: the default tolerance of SVC, within which support
# vectors on the margin lie
BEYOND = 1e-3
DISCARDS = ("both", "noise", "redundant")


@dataclass(frozen=True)
class Discard:
    """Which rows are discarded: steps 4 and 5 of the algorithm; and what a row is.

    Parameters
    ----------
    noise : bool
        Whether rows with m_i + v_i < 0 leave; alone, that is editing.
    redundant : bool
        Whether rows with m_i - v_i > 1 + ``beyond`` leave; alone, that is condensing.
    beyond : float
        How far beyond 1 they must lie; zero in the talk.
    merged : bool
        Whether equal rows of a class are one, with the sum of their weights, so that a weight of
        two is a row that is there twice. In the talk, every example is drawn by itself.

    Examples
    --------
    >>> from slimsvm.cross_training import Discard
    >>> Discard.named("noise")
    Discard(noise=True, redundant=False, beyond=0.001, merged=True)
    """

    noise: bool = True
    redundant: bool = True
    beyond: float = BEYOND
    merged: bool = True

    def __post_init__(self) -> None:
        flags(noise=self.noise, redundant=self.redundant, merged=self.merged)
        if not (isinstance(self.beyond, Real) and 0.0 <= self.beyond < np.inf):
            raise ValueError(f"beyond={self.beyond!r} must be zero or more.")

    @classmethod
    def named(cls, name: str | Discard) -> Discard:
        """One of DISCARDS, or such an object itself."""
        if isinstance(name, Discard):
            return name
        return cls(noise=name != "redundant", redundant=name != "noise")


@dataclass(frozen=True)
class TrainingSet:
    """Rows, labels, and weights if the estimator takes them; ``square``: X holds kernel values."""

    X: Any
    y: Array
    weight: Array | None
    square: bool

    def part(self, rows: Array, against: Array) -> Any:
        """The rows; of kernel values, those with the rows ``against``."""
        if self.square:
            return self.X[np.ix_(rows, against)]
        everything = rows.size == self.X.shape[0] and bool(np.all(rows[1:] > rows[:-1]))
        return self.X if everything else self.X[rows]

    def weights_of(self, rows: Array) -> Array:
        """The weights of rows; ones, if the estimator takes none."""
        return np.ones(rows.size) if self.weight is None else self.weight[rows]

    def as_argument(self, weight: Array) -> dict[str, Array]:
        """Weights as an argument of fit, where they are taken and say something."""
        said = self.weight is not None and not bool(np.all(weight == 1.0))
        return {"sample_weight": weight} if said else {}


@dataclass(frozen=True)
class Candidates:
    """The distinct rows of one class: their indices, and the weight of each."""

    rows: Array
    weight: Array


@dataclass(frozen=True)
class PairRows:
    """The rows of a pair of classes, +1 for the second and -1 for the first; the distinct ones."""

    rows: Array
    sign: Array
    same: Array  # for each row, the distinct one that it equals
    candidates: tuple[Candidates, Candidates]

    @property
    def distinct(self) -> Array:
        """The distinct rows, in order."""
        return np.sort(np.concatenate([own.rows for own in self.candidates]))

    @property
    def counts(self) -> tuple[int, int]:
        """How many distinct rows either class has."""
        return self.candidates[0].rows.size, self.candidates[1].rows.size


@dataclass(frozen=True)
class Judged:
    """What the models of the subsets say about the rows of one pair."""

    rows: Array
    sign: Array
    mean: Array
    variance: Array
    kept: Array  # indices, as rows
    n_noise: int
    n_redundant: int

    @property
    def stays(self) -> Array:
        """Which of the rows are kept."""
        return np.isin(self.rows, self.kept, assume_unique=True)

    def balance(self, weight: Array) -> tuple[Array, Array]:
        """Share of either class in the weight, of all rows and of those kept."""
        return _shares(weight[self.rows], self.sign), _shares(
            weight[self.kept], self.sign[self.stays]
        )

    def in_words(self, first: Any, second: Any) -> str:
        """A line about the pair of these two classes."""
        return (
            f"{first!r} and {second!r}: {self.rows.size} rows, {self.n_noise} noise, "
            f"{self.n_redundant} redundant, {self.kept.size} kept"
        )


def _shares(weight: Array, sign: Array) -> Array:
    second = float(weight[sign > 0].sum()) / float(weight.sum())
    return np.array([1.0 - second, second])


# -- subsets ---------------------------------------------------------------------------------------


def distinct_rows(
    given: TrainingSet, members: list[Array], merged: bool
) -> tuple[list[Candidates], Array]:
    """The distinct rows of each class, in an order of their own; for every row its representative.

    Equal rows become one only where weights can say how many they were, and only if ``merged``.
    """
    same = np.arange(given.y.size)
    if given.weight is None or given.square or not merged:
        return [Candidates(rows, given.weights_of(rows)) for rows in members], same
    code, found = codes(given.X), []
    for rows in members:
        _, first, place = np.unique(code[rows], return_index=True, return_inverse=True)
        same[rows] = rows[first][place]
        found.append(Candidates(rows[first], np.bincount(place, given.weight[rows])))
    return found, same


def rows_in_subset(size: float, n: int) -> int:
    """Rows in a subset of n: a number of them, or a share.

    Examples
    --------
    >>> rows_in_subset(80, 1000), rows_in_subset(0.2, 1000), rows_in_subset(0.2, 100)
    (80, 200, 50)
    """
    if isinstance(size, Integral):
        return min(n, int(size))
    return min(n, max(LEAST, int(np.ceil(size * n))))


def class_counts(size: int, counts: tuple[int, int], balanced: bool = True) -> tuple[int, int]:
    """How many of ``size`` rows come from either class: half, or its share, and at least one.

    Where a class has less, the other fills up.

    Examples
    --------
    >>> class_counts(10, (100, 100)), class_counts(10, (3, 100)), class_counts(10, (100, 3))
    ((5, 5), (3, 7), (7, 3))
    >>> class_counts(10, (30, 70), balanced=False), class_counts(10, (1000, 1), balanced=False)
    ((3, 7), (9, 1))
    """
    wanted = size // 2 if balanced else round(size * counts[0] / sum(counts))
    first = min(counts[0], max(1, min(size - 1, wanted), size - counts[1]))
    return first, min(counts[1], size - first)


def draw_subset(pair: PairRows, counts: tuple[int, int], seed: int) -> tuple[Array, Array]:
    """Rows of one subset, and their weights."""
    rng = np.random.RandomState(seed)
    chosen = [
        (own, np.sort(rng.permutation(own.rows.size)[:count]))
        for own, count in zip(pair.candidates, counts, strict=True)
    ]
    rows = np.concatenate([own.rows[places] for own, places in chosen])
    return rows, np.concatenate([own.weight[places] for own, places in chosen])


def judged(
    pair: PairRows,
    counts: tuple[int, int],
    values: list[Array],
    subsets: list[Array],
    discard: Discard,
) -> Judged:
    """Steps 3 to 5: which rows stay, by the decision values of all models for the distinct rows.

    A model does not judge the rows of its subset, one of ``subsets``, unless no other model could.
    """
    # 3. mean and variance of the margins
    distinct = pair.distinct
    place, sign = np.searchsorted(distinct, pair.same), np.empty(distinct.size)
    sign[place] = pair.sign
    margins = sign * np.stack(values)
    heard = np.array([~np.isin(distinct, own) for own in subsets])
    heard[:, ~heard.any(axis=0)] = True
    mean, variance = margins.mean(axis=0, where=heard), margins.var(axis=0, where=heard)
    # 4. and 5. noise, and what is redundant
    noise = (mean + variance < 0.0) & discard.noise
    redundant = (mean - variance > 1.0 + discard.beyond) & discard.redundant
    kept = ~(noise | redundant)
    for side, count in zip((-1.0, 1.0), counts, strict=True):
        mine = np.flatnonzero(sign == side)
        if not kept[mine].any():
            away = np.abs(mean[mine] - 1.0)
            kept[mine] = away <= np.partition(away, count - 1)[count - 1]
    discarded = [int(np.count_nonzero((rule & ~kept)[place])) for rule in (noise, redundant)]
    stays = pair.rows[kept[place]]
    return Judged(pair.rows, pair.sign, mean[place], variance[place], stays, *discarded)


def rows_of_pairs(
    given: TrainingSet, label: Array, used: Array, n_classes: int, merged: bool = True
) -> tuple[list[tuple[int, int]], list[PairRows]]:
    """All pairs of classes, and the rows of each; ``used`` are those of positive weight.

    ``merged``: equal rows of a class are one.
    """
    members = [used[label[used] == c] for c in range(n_classes)]
    candidates, same = distinct_rows(given, members, merged)
    pairs = [(min(pair), max(pair)) for pair in OneVsOne(n_classes).pairs]
    found = []
    for i, j in pairs:
        rows = np.sort(np.concatenate([members[i], members[j]]))
        sign = np.where(label[rows] == j, 1.0, -1.0)
        found.append(PairRows(rows, sign, same[rows], (candidates[i], candidates[j])))
    return pairs, found
