"""What cross-training is made of: rows, subsets of them, and the machines of one pair of classes.

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

from slimsvm.estimators.classification import SVC
from slimsvm.losses import Hinge
from slimsvm.oracles import LossOracle
from slimsvm.row_hashes import codes
from slimsvm.run import SUBSPACE, Certificate, Limits, Status

Array = NDArray[Any]
SOME = 1e-3  # seconds that a machine gets at least: none at all is not a limit that estimators take


@dataclass(frozen=True)
class Given:
    """What fit was given: rows, labels, and weights if the estimator takes them, else None; square: X holds kernel values of all rows."""

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


@dataclass(frozen=True)
class Candidates:
    """The distinct rows of one class: their indices, and the weight of each."""

    rows: Array
    weight: Array


@dataclass(frozen=True)
class Judged:
    """What the machines of the subsets say about the rows of one pair."""

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


# -- subsets ----------------------------------------------------------------------------------------------------------------------------------


def distinct_rows(given: Given, members: list[Array]) -> tuple[list[Candidates], Array]:
    """The distinct rows of each class, in an order of their own; and for every row the one that stands for it.

    Equal rows become one only where weights can say how many they were.
    """
    same = np.arange(given.y.size)
    if given.weight is None or given.square:
        weight = np.ones(same.size) if given.weight is None else given.weight
        return [Candidates(rows, weight[rows]) for rows in members], same
    code, found = codes(given.X), []
    for rows in members:
        _, first, place = np.unique(code[rows], return_index=True, return_inverse=True)
        same[rows] = rows[first][place]
        found.append(Candidates(rows[first], np.bincount(place, given.weight[rows])))
    return found, same


def drawn(size: int, counts: tuple[int, int], balanced: bool = True) -> tuple[int, int]:
    """How many of ``size`` rows come from either class: half, or as much as its share, at least one; where there are less, the other fills up.

    Examples
    --------
    >>> from slimsvm.estimators.cross_subsets import drawn
    >>> drawn(10, (100, 100)), drawn(10, (3, 100)), drawn(10, (100, 3))
    ((5, 5), (3, 7), (7, 3))
    >>> drawn(10, (30, 70), balanced=False), drawn(10, (1000, 1), balanced=False)
    ((3, 7), (9, 1))
    """
    wanted = size // 2 if balanced else round(size * counts[0] / sum(counts))
    first = min(counts[0], max(1, min(size - 1, wanted), size - counts[1]))
    return first, min(counts[1], size - first)


def draw_subset(
    candidates: tuple[Candidates, Candidates], counts: tuple[int, int], seed: int
) -> tuple[Array, Array]:
    """Rows of one subset, and their weights."""
    rng = np.random.RandomState(seed)
    chosen = [
        np.sort(rng.permutation(own.rows.size)[:count])
        for own, count in zip(candidates, counts, strict=True)
    ]
    return (
        np.concatenate([own.rows[places] for own, places in zip(candidates, chosen, strict=True)]),
        np.concatenate(
            [own.weight[places] for own, places in zip(candidates, chosen, strict=True)]
        ),
    )


# -- machines ---------------------------------------------------------------------------------------------------------------------------------


def seeded(estimator: Any, seed: int) -> Any:
    """A clone in which every random_state that is None has the given value."""
    machine = clone(estimator)
    unset = [
        name
        for name, value in machine.get_params().items()
        if name.split("__")[-1] == "random_state" and value is None
    ]
    return machine.set_params(**dict.fromkeys(unset, int(seed)))


def decisions(machine: Any, X: Any) -> Array:
    """Decision values of a machine for two classes, as a vector."""
    values = np.asarray(machine.decision_function(X), np.float64)
    values = values[:, 0] if values.ndim == 2 and values.shape[1] == 1 else values
    if values.shape != (X.shape[0],):
        raise ValueError(
            f"decision_function of {type(machine).__name__} returned shape {values.shape} for {X.shape[0]} rows of two classes; CrossTraining "
            "needs one value a row."
        )
    if not np.isfinite(values).all():
        raise ValueError(
            f"decision_function of {type(machine).__name__} returned values that are not finite: nothing can be said about such rows. Scale "
            "the features, or choose other parameters of the estimator."
        )
    return values


def _weights(given: Given, weight: Array) -> dict[str, Array]:
    """The weights as an argument of fit, where they are taken and say something."""
    return {} if given.weight is None or bool(np.all(weight == 1.0)) else {"sample_weight": weight}


def limited(machine: Any, limits: Limits, n_left: int, n_jobs: int | None) -> Any:
    """The machine, the next of n_left, with its share of the time that is left as the limit of its fit, or the one it has, if that is less."""
    seconds = limits.part(n_left, effective_n_jobs(n_jobs)).max_time
    if seconds is None:
        return machine
    own = {
        name: value
        for name, value in machine.get_params().items()
        if name.split("__")[-1] == "max_time"
    }
    return machine.set_params(
        **{
            name: max(SOME, seconds if value is None else min(value, seconds))
            for name, value in own.items()
        }
    )


def knows_limits(estimator: Any) -> bool:
    """Whether the estimator, or one inside of it, has a parameter max_time."""
    return any(name.split("__")[-1] == "max_time" for name in estimator.get_params())


def opinion_of(
    machine: Any, given: Given, subset: Array, weight: Array, rows: Array, shown: Any
) -> tuple[Array, Status | None]:
    """Train on the subset; decision values of the rows, and how the training ended, if the machine says that."""
    machine.fit(given.part(subset, subset), given.y[subset], **_weights(given, weight))
    status = getattr(machine, "status_", None)
    if getattr(status, "reason", None) == "interrupted":
        raise KeyboardInterrupt  # machines of slimsvm end with what they have; but here the final one is still to come
    return decisions(machine, given.part(rows, subset) if shown is None else shown), status


def final_machine(
    machine: Any, given: Given, pair: Judged, refit: bool, warm: bool
) -> tuple[Any, float]:
    """The final machine of a pair, trained on the kept rows; and the shift of its decision values."""
    X, y = given.part(pair.kept, pair.kept), given.y[pair.kept]
    weight = np.ones(y.size) if given.weight is None else given.weight[pair.kept]
    if warm:
        machine._fit_from(_dual_point(machine, pair, weight), X, y, **_weights(given, weight))
    else:
        machine.fit(X, y, **_weights(given, weight))
    return machine, _best_shift(machine, given, pair) if refit else 0.0


def _dual_point(machine: SVC, pair: Judged, weight: Array) -> Array:
    """A guess at the dual variables: at the bound for rows that the machines of the subsets get wrong, the surest of support vectors.

    To take all rows that miss the margin, by more than 0, 1 or 2 deviations, or in proportion, needs up to three times the kernel values.
    """
    return float(machine.C) * weight * (pair.mean < 0.0)


def _best_shift(machine: Any, given: Given, pair: Judged) -> float:
    """The constant that, added to the decision values, makes the hinge loss on all rows of the pair least; zero if that is as good."""
    y = given.y[pair.rows]
    weight = np.ones(y.size) if given.weight is None else given.weight[pair.rows]
    by_class = compute_class_weight(
        getattr(machine, "class_weight", None), classes=machine.classes_, y=y, sample_weight=weight
    )
    oracle = LossOracle(Hinge(), pair.sign, weight * by_class[(pair.sign > 0).astype(int)])
    values = decisions(machine, given.part(pair.rows, pair.kept))[:, None]
    shift = float(oracle.intercept(values, middle=True)[0])
    return shift if oracle.risk(values + shift)[0] < oracle.risk(values)[0] else 0.0


# -- how it ended -----------------------------------------------------------------------------------------------------------------------------


def ended(machines: list[Any], before: list[Status | None]) -> Status:
    """How a fit with these final machines ended, ``before`` being what the machines of the subsets say.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> from slimsvm.estimators.cross_subsets import ended
    >>> from slimsvm.run import Status
    >>> good, late = Status("converged", "Converged."), Status("max_time", "Stopped at max_time.")
    >>> ended([SimpleNamespace(status_=good)], [good, good]).converged
    True
    >>> str(ended([SimpleNamespace(status_=late), SimpleNamespace(status_=good)], [good, good]))
    '1 of 2 final machines did not converge. Stopped at max_time.'
    """
    after = [getattr(machine, "status_", None) for machine in machines]
    late = [status for status in after if status is not None and not status.converged]
    early = [status for status in before if status is not None and not status.converged]
    if late:
        return Status(
            late[0].reason,
            f"{len(late)} of {len(after)} final machines did not converge. {late[0]}",
        )
    if early:
        words = "did not converge, and rows were discarded by what they say as they are."
        return Status(
            early[0].reason, f"{len(early)} of {len(before)} machines on subsets {words} {early[0]}"
        )
    if None in after:
        return Status(
            "trained",
            f"All machines are trained; {type(machines[0]).__name__} does not say how its fits end.",
        )
    return Status(
        "converged",
        "Converged: all machines, on subsets and on what was kept, reached their tolerance.",
    )


def certified(machines: list[Any], everything: bool) -> Certificate | None:
    """The certificates of the final machines in one; None if they have none. Unless they had all rows, nothing is said of the exact machine."""
    own = [machine.certificate_ for machine in machines if hasattr(machine, "certificate_")]
    if len(own) < len(machines):
        return None
    return Certificate(
        own[0].scope if everything else SUBSPACE,
        float(sum(one.objective for one in own)),
        max(one.violation for one in own),
        float(sum(one.gap for one in own)),
        own[0].tol,
        "float64" if all(one.precision == "float64" for one in own) else "float32",
    )
