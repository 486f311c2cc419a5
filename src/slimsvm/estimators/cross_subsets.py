"""What cross-training is made of: rows, subsets of them, and the models of one pair of classes.

The algorithm and its steps are those of :mod:`slimsvm.estimators.cross_training`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils.class_weight import compute_class_weight

from slimsvm.ending import Status
from slimsvm.losses import Hinge
from slimsvm.oracles import LossOracle
from slimsvm.row_hashes import codes
from slimsvm.run import Limits

Array = NDArray[Any]
SOME = 1e-3  # seconds that a fit gets at least: none at all is not a limit that estimators take
# how far a mean margin must lie beyond 1: the default tolerance of SVC, within which support
# vectors on the margin lie
BEYOND = 1e-3


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


# -- subsets ---------------------------------------------------------------------------------------


def distinct_rows(given: TrainingSet, members: list[Array]) -> tuple[list[Candidates], Array]:
    """The distinct rows of each class, in an order of their own; for every row its representative.

    Equal rows become one only where weights can say how many they were.
    """
    same = np.arange(given.y.size)
    if given.weight is None or given.square:
        return [Candidates(rows, given.weights_of(rows)) for rows in members], same
    code, found = codes(given.X), []
    for rows in members:
        _, first, place = np.unique(code[rows], return_index=True, return_inverse=True)
        same[rows] = rows[first][place]
        found.append(Candidates(rows[first], np.bincount(place, given.weight[rows])))
    return found, same


def class_counts(size: int, counts: tuple[int, int], balanced: bool = True) -> tuple[int, int]:
    """How many of ``size`` rows come from either class: half, or its share, and at least one.

    Where a class has less, the other fills up.

    Examples
    --------
    >>> from slimsvm.estimators.cross_subsets import class_counts
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
    keep_all: bool,
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
    noise, redundant = mean + variance < 0.0, mean - variance > 1.0 + BEYOND
    kept = np.ones(distinct.size, bool) if keep_all else ~(noise | redundant)
    for side, count in zip((-1.0, 1.0), counts, strict=True):
        mine = np.flatnonzero(sign == side)
        if not kept[mine].any():
            away = np.abs(mean[mine] - 1.0)
            kept[mine] = away <= np.partition(away, count - 1)[count - 1]
    discarded = [int(np.count_nonzero((rule & ~kept)[place])) for rule in (noise, redundant)]
    stays = pair.rows[kept[place]]
    return Judged(pair.rows, pair.sign, mean[place], variance[place], stays, *discarded)


# -- estimators and models -------------------------------------------------------------------------


def seeded(estimator: Any, seed: int) -> Any:
    """A clone in which every random_state that is None has the given value."""
    mine = clone(estimator)
    seeds = _parameters(mine, "random_state")
    return mine.set_params(**{name: int(seed) for name, value in seeds.items() if value is None})


def limited(estimator: Any, limits: Limits, n_left: int, n_jobs: int | None) -> Any:
    """The estimator, the next of n_left to fit, with its share of the time that is left.

    The limit that it has stays if it is less.
    """
    share = limits.part(n_left, effective_n_jobs(n_jobs)).max_time
    if share is None:
        return estimator
    own = _parameters(estimator, "max_time")
    least = {name: share if value is None else min(value, share) for name, value in own.items()}
    return estimator.set_params(**{name: max(SOME, value) for name, value in least.items()})


def knows_limits(estimator: Any) -> bool:
    """Whether the estimator, or one inside of it, has a parameter max_time."""
    return bool(_parameters(estimator, "max_time"))


def _parameters(estimator: Any, name: str) -> dict[str, Any]:
    """The parameters of this name, its own and those of estimators inside."""
    values = estimator.get_params()
    return {key: value for key, value in values.items() if key.split("__")[-1] == name}


def decisions(model: Any, X: Any) -> Array:
    """Decision values of a model for two classes, as a vector."""
    values = np.asarray(model.decision_function(X), np.float64)
    values = values[:, 0] if values.ndim == 2 and values.shape[1] == 1 else values
    name = f"decision_function of {type(model).__name__}"
    if values.shape != (X.shape[0],):
        raise ValueError(
            f"{name} returned shape {values.shape} for {X.shape[0]} rows of two classes; "
            "CrossTraining needs one value a row."
        )
    if not np.isfinite(values).all():
        raise ValueError(
            f"{name} returned values that are not finite: nothing can be said about such rows. "
            "Scale the features, or choose other parameters of the estimator."
        )
    return values


def opinion_of(
    estimator: Any, given: TrainingSet, subset: Array, weight: Array, rows: Array, shown: Any
) -> tuple[Array, Status | None]:
    """Train on the subset; decision values of the rows, and how it ended if the model says that."""
    estimator.fit(given.part(subset, subset), given.y[subset], **given.as_argument(weight))
    status = getattr(estimator, "status_", None)
    if getattr(status, "reason", None) == "interrupted":
        # estimators of slimsvm end with what they have; but here the final one is still to come
        raise KeyboardInterrupt
    return decisions(estimator, given.part(rows, subset) if shown is None else shown), status


def final_model(
    estimator: Any, given: TrainingSet, pair: Judged, refit: bool, warm: bool
) -> tuple[Any, float]:
    """The model of a pair, trained on the kept rows; and the shift of its decision values.

    With ``warm`` it begins at a guess of the dual variables: at the bound for rows that the models
    of the subsets get wrong, the surest of support vectors. To take all rows that miss the margin,
    by more than 0, 1 or 2 deviations, or in proportion, needs up to three times the kernel values.
    """
    X, y = given.part(pair.kept, pair.kept), given.y[pair.kept]
    weight = given.weights_of(pair.kept)
    argument = given.as_argument(weight)
    if warm:
        start = float(estimator.C) * weight * (pair.mean < 0.0)
        estimator._fit_from(start, X, y, **argument)
    else:
        estimator.fit(X, y, **argument)
    return estimator, _best_shift(estimator, given, pair) if refit else 0.0


def _best_shift(model: Any, given: TrainingSet, pair: Judged) -> float:
    """The constant that makes the hinge loss on all rows of the pair least; zero if as good."""
    y, weight = given.y[pair.rows], given.weights_of(pair.rows)
    by_class = compute_class_weight(
        getattr(model, "class_weight", None), classes=model.classes_, y=y, sample_weight=weight
    )
    oracle = LossOracle(Hinge(), pair.sign, weight * by_class[(pair.sign > 0).astype(int)])
    values = decisions(model, given.part(pair.rows, pair.kept))[:, None]
    shift = float(oracle.intercept(values, middle=True)[0])
    return shift if oracle.risk(values + shift)[0] < oracle.risk(values)[0] else 0.0


def ended(models: list[Any], before: list[Status | None]) -> Status:
    """How a fit with these final models ended; ``before``: what those of the subsets say.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> from slimsvm.ending import Status
    >>> from slimsvm.estimators.cross_subsets import ended
    >>> good, late = Status("converged", "Converged."), Status("max_time", "Stopped at max_time.")
    >>> ended([SimpleNamespace(status_=good)], [good, good]).converged
    True
    >>> str(ended([SimpleNamespace(status_=late), SimpleNamespace(status_=good)], [good, good]))
    '1 of 2 final models did not converge. Stopped at max_time.'
    """
    after = [getattr(model, "status_", None) for model in models]
    late = [status for status in after if status is not None and not status.converged]
    early = [status for status in before if status is not None and not status.converged]
    if late:
        words = f"{len(late)} of {len(after)} final models did not converge. {late[0]}"
        return Status(late[0].reason, words)
    if early:
        words = "did not converge, and rows were discarded by what they say as they are."
        words = f"{len(early)} of {len(before)} models on subsets {words} {early[0]}"
        return Status(early[0].reason, words)
    if None in after:
        name = type(models[0]).__name__
        words = f"All models are trained; {name} does not say how its fits end."
        return Status("trained", words)
    words = "all models, on subsets and on what was kept, reached their tolerance."
    return Status("converged", f"Converged: {words}")
