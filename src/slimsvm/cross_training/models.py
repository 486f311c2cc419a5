"""The models of cross-training, on subsets and on what is kept: steps 2 and 6, and all in order.

Limits, Ctrl-C, callbacks and history are those of the fits inside.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils import get_tags
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import has_fit_parameter

from slimsvm.cross_training.subsets import (
    Discard,
    Judged,
    PairRows,
    TrainingSet,
    class_counts,
    draw_subset,
    judged,
    rows_in_subset,
)
from slimsvm.ending import SUBSPACE, Certificate, Status, merged
from slimsvm.losses import Hinge
from slimsvm.oracles import LossOracle
from slimsvm.run import Limits, interrupts_at_once

Array = NDArray[Any]
ROUNDED = 1e-12  # share of a loss that is no gain: where many constants are as good, none is added
SOME = 1e-3  # seconds that a fit gets at least: none at all is not a limit that estimators take


@dataclass(frozen=True)
class CrossResult:
    """What was found: for each pair, what is kept, the final model and its shift."""

    judged: list[Judged]
    finals: list[tuple[Any, float]]
    before: list[Status | None]  # of the fits on subsets

    def attributes(self, weight: Array) -> dict[str, Any]:
        """What a fitted estimator says of it, by the names there; ``weight`` of all rows."""
        pairs, models = self.judged, [model for model, _ in self.finals]
        balances = [pair.balance(weight) for pair in pairs]
        return {
            "estimators_": models,
            "shifts_": np.array([shift for _, shift in self.finals]),
            "kept_indices_": [pair.kept for pair in pairs],
            "pair_indices_": [pair.rows for pair in pairs],
            "margin_means_": [pair.mean for pair in pairs],
            "margin_variances_": [pair.variance for pair in pairs],
            "n_kept_": np.array([pair.kept.size for pair in pairs]),
            "n_noise_": np.array([pair.n_noise for pair in pairs]),
            "n_redundant_": np.array([pair.n_redundant for pair in pairs]),
            "balance_before_": np.array([before for before, _ in balances]),
            "balance_after_": np.array([after for _, after in balances]),
            "status_": ended(models, self.before),
            "certificate_": self._certificate(models),
        }

    def _certificate(self, models: list[Any]) -> Certificate | None:
        """Of all final models, if they have one; bounds of single ones say nothing of all rows."""
        own: list[Any] = [getattr(model, "certificate_", None) for model in models]
        if None in own:
            return None
        sums = merged(own)
        everything = all(pair.kept.size == pair.rows.size for pair in self.judged)
        scope = sums.scope if everything else SUBSPACE
        numbers = (sums.objective, sums.violation, sums.gap, sums.tol, sums.precision)
        return Certificate(scope, *numbers, rounding=sums.rounding)


@dataclass(frozen=True, kw_only=True)
class CrossTrainer:
    """The six steps, for any number of pairs of classes.

    Parameters
    ----------
    template : estimator
        What is trained.
    subset_size, balanced_subsets, held_out, refit_intercept, warm_start_dual, max_time, n_jobs
        As those of :class:`slimsvm.CrossTraining`.
    discard : Discard
        Which rows leave.
    """

    template: Any
    subset_size: float
    balanced_subsets: bool
    held_out: bool
    discard: Discard
    refit_intercept: bool
    warm_start_dual: bool
    max_time: float | None
    n_jobs: int | None

    def trained(
        self,
        given: TrainingSet,
        pairs: list[PairRows],
        seeds: Array,
        tell: Callable[[int, Judged], None],
    ) -> CrossResult:
        """What is kept of each pair, and the final models; ``tell`` hears of each pair.

        ``seeds`` has a row for each pair: one for each subset, and that of the final model.
        """
        n_pairs, whole = len(pairs), self.max_time
        limits, judging = Limits(whole), Limits(None if whole is None else 0.5 * whole)
        found: list[Judged] = []
        before: list[Status | None] = []
        with Parallel(n_jobs=self.n_jobs, prefer="threads") as parallel:
            for k, pair in enumerate(pairs):
                with interrupts_at_once():
                    own, endings = self._judge(
                        given, pair, seeds[k, :-1], parallel, judging.part(n_pairs - k)
                    )
                found.append(own)
                before += endings
                tell(k, own)
            # 6. the final models
            finals = parallel(
                delayed(final_model)(
                    self._next(last, limits, n_pairs - k),
                    given,
                    own,
                    self.refit_intercept,
                    self.warm_start_dual,
                )
                for k, (own, last) in enumerate(zip(found, seeds[:, -1], strict=True))
            )
        return CrossResult(found, finals, before)

    def _next(self, seed: int, limits: Limits, n_left: int) -> Any:
        """The next of n_left estimators to train."""
        return limited(seeded(self.template, seed), limits, n_left, self.n_jobs)

    def _judge(
        self, given: TrainingSet, pair: PairRows, seeds: Array, parallel: Parallel, limits: Limits
    ) -> tuple[Judged, list[Status | None]]:
        """Steps 1 to 5 for one pair, on its distinct rows; and how the trainings ended."""
        distinct = pair.distinct
        size = rows_in_subset(self.subset_size, distinct.size)
        counts = class_counts(size, pair.counts, self.balanced_subsets)
        shown = None if given.square else given.part(distinct, distinct)
        subsets = [draw_subset(pair, counts, seed) for seed in seeds]
        opinions = parallel(
            delayed(opinion_of)(
                self._next(seed, limits, len(subsets) - r), given, *subset, distinct, shown
            )
            for r, (seed, subset) in enumerate(zip(seeds, subsets, strict=True))
        )
        unheard = [rows if self.held_out else rows[:0] for rows, _ in subsets]
        values = [own for own, _ in opinions]
        rule = Discard(noise=False, redundant=False) if self.warm_start_dual else self.discard
        found = judged(pair, counts, values, unheard, rule)
        return found, [status for _, status in opinions]


# -- single models ---------------------------------------------------------------------------------


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


def refuse_template(template: Any, warm: bool, max_time: float | None, exact: type) -> None:
    """Raise ValueError for an estimator that cannot be cross-trained as it is asked to be.

    ``exact`` is the class that takes a start in its dual problem.
    """
    if isinstance(template, type):
        name = template.__name__
        raise ValueError(
            "The 'estimator' parameter of CrossTraining must be an estimator, got the class "
            f"{name}. Pass {name}() instead."
        )
    if (kind := get_tags(template).estimator_type) not in (None, "classifier"):
        raise ValueError(
            "The 'estimator' parameter of CrossTraining must be a classifier; "
            f"{template!r} is of the kind {kind!r}."
        )
    if warm and type(template) is not exact:
        raise ValueError(
            "warm_start_dual=True needs an SVC of slimsvm as the estimator, whose dual problem "
            f"takes a start; got {template!r}. Leave warm_start_dual out, or pass "
            "slimsvm.SVC(...)."
        )
    if max_time is not None and not _parameters(template, "max_time"):
        raise ValueError(
            f"max_time={max_time!r} needs an estimator that has a parameter max_time "
            f"itself; {type(template).__name__} has none, and its fits cannot be ended. Leave "
            "max_time out, or choose one of slimsvm's estimators."
        )


def takes_weights_of(template: Any, weight: Array) -> bool:
    """Whether its ``fit`` takes weights; raises ValueError for such as cannot do without."""
    takes = bool(has_fit_parameter(template, "sample_weight"))
    if not takes and np.unique(weight[weight > 0]).size > 1:
        raise ValueError(
            f"sample_weight was given, but fit of {type(template).__name__} does not take it: "
            "only zeros and one other value are possible then. Choose an estimator that takes "
            "weights; of a pipeline, put CrossTraining around the last step alone."
        )
    return takes


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

    With ``warm`` it begins at a guess of the dual variables, and with the kernel rows of those that
    miss the margin in its cache, as far as they fit. The guess: at the bound for rows that the
    models of the subsets get wrong, the surest of support vectors. To take all rows that miss the
    margin, by more than 0, 1 or 2 deviations, or in proportion, needs up to three times the kernel
    values.
    """
    X, y = given.part(pair.kept, pair.kept), given.y[pair.kept]
    weight = given.weights_of(pair.kept)
    argument = given.as_argument(weight)
    if warm:
        start = float(estimator.C) * weight * (pair.mean < 0.0)
        estimator._fit_from(start, X, y, margins=pair.mean, **argument)
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
    now, then = float(oracle.risk(values)[0]), float(oracle.risk(values + shift)[0])
    return shift if then < now - ROUNDED * abs(now) else 0.0


def ended(models: list[Any], before: list[Status | None]) -> Status:
    """How a fit with these final models ended; ``before``: what those of the subsets say.

    Examples
    --------
    >>> from types import SimpleNamespace
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
