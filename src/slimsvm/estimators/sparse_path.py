"""The path of a sparse machine: what is known at every size of the basis, and which size the fitted machine has."""

from __future__ import annotations

import copy
import warnings
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from slimsvm.estimators.base import Fit
from slimsvm.estimators.basis_machine import BasisMachine
from slimsvm.expansion import Expansion
from slimsvm.losses import Loss
from slimsvm.problems.columns import KernelColumns
from slimsvm.run import FULL, SUBSPACE, Certificate, Record, Status
from slimsvm.solvers.decomposition import EXACT
from slimsvm.tiles import Operand

Array = NDArray[Any]
STEPS = (1, 2, 5)  # the sizes of a path: these, times powers of ten
ALL = "all"


@dataclass(frozen=True)
class PathPoint:
    """The machine at one size of the basis.

    Attributes
    ----------
    n_basis : int
        Number of basis vectors.
    basis, coef, intercept : arrays
        The machine; coef has one column for each output.
    indices : array or None
        Which training rows the basis vectors are, if they are rows.
    objective : float
        Value of the problem, over all columns.
    gap : float
        How far that is above the optimum within the span of this basis, at most.
    training_score : float
        Accuracy, or R^2, on the rows it was trained on.
    validation_score : float or None
        The same on the rows held out, if there are any.
    projection_error : float or None
        How much of a cut, or of the gradient, at most lies outside of the span (delta in the paper, whose cuts are means over the rows).
    bound : float or None
        The objective is at most so far above that of the exact machine with the same loss.
    """

    n_basis: int
    basis: Any = field(repr=False)
    coef: Array = field(repr=False)
    intercept: Array = field(repr=False)
    indices: Array | None = field(repr=False)
    objective: float
    gap: float
    training_score: float
    validation_score: float | None
    projection_error: float | None = None
    bound: float | None = None


@dataclass
class Training:
    """Everything one fit needs to know."""

    rows: Operand
    target: Array  # (n, columns)
    weight: Array  # C times the weights
    loss: Loss
    candidates: Array  # distinct rows
    sizes: list[int]
    everything: bool  # the basis is all distinct rows
    refined: bool
    fit: Fit
    rng: np.random.Generator
    held_out: Any = None  # rows and labels kept aside
    points: list[PathPoint] = field(default_factory=list)
    n_iter: int = 0
    duals: Array | None = (
        None  # of the rows, where the solver knows better than the derivative of the loss
    )


class PathMachine(BasisMachine):
    """A machine with a basis, and the same at smaller sizes of it."""

    # -- what a subclass says -----------------------------------------------------------------------------------------------------------

    def _loss(self) -> Loss:
        raise TypeError("A subclass says which loss it has.")

    def _score(self, scores: Array, target: Array, weight: Array) -> float:
        raise TypeError("A subclass says how it counts success.")

    # -- what is kept -------------------------------------------------------------------------------------------------------------------

    def _validation(self, T: Training, f: Expansion) -> float:
        X, target, weight = T.held_out
        return self._score(f.decision_function(X, T.fit.threads), target, weight)

    def _keep(
        self,
        T: Training,
        columns: KernelColumns,
        coef: Array,
        intercept: Array,
        scores: Array,
        objective: Array,
        gap: Array,
        indices: Any,
        bound: tuple[float | None, float | None],
    ) -> None:
        basis = columns.in_given_coordinates() if columns.m else np.empty((0, self.n_features_in_))
        if T.rows.dtype == np.float32:
            basis = basis.astype(np.float32)
        f = Expansion(self.kernel_, basis, coef, intercept, exact=T.rows.n <= EXACT)
        training = self._score(scores, T.target, T.weight)
        held = None if T.held_out is None else self._validation(T, f)
        indices = None if indices is None else indices[: columns.m]
        T.points.append(
            PathPoint(
                columns.m,
                basis,
                coef,
                intercept,
                indices,
                float(objective.sum()),
                float(gap.sum()),
                training,
                held,
                *bound,
            )
        )

    # -- what comes out -----------------------------------------------------------------------------------------------------------------

    def _finish(self, T: Training, history: list[Record]) -> None:
        chosen = T.points[-1]
        if self.n_basis == "auto" and T.held_out is not None:
            scores = [point.validation_score or 0.0 for point in T.points]
            good = [
                p
                for p, score in zip(T.points, scores, strict=True)
                if score >= max(scores) - float(self.accuracy_loss)
            ]
            chosen = good[0] if good else chosen  # none if scores are not numbers
        self.path_ = T.points
        self.n_iter_ = max(1, T.n_iter)
        self._row_duals = T.duals
        names = ("objective", "n_basis")
        self.history_ = {"seconds": np.array([record.seconds for record in history])}
        self.history_ |= {
            name: np.array([record.values.get(name, np.nan) for record in history])
            for name in names
        }
        relative = chosen.gap / chosen.objective if chosen.objective > 0 else 0.0
        about = (
            float(self.tol),
            str(np.dtype(T.rows.dtype)),
            chosen.projection_error,
            chosen.bound,
        )
        exact = isinstance(self.basis, str) and self.basis == ALL
        self.certificate_ = Certificate(
            FULL if exact else SUBSPACE, chosen.objective, relative, chosen.gap, *about
        )
        ended = (
            "max_iter"
            if self.n_iter_ >= (int(self.max_iter) if self.max_iter > 0 else 1000)
            else "stalled"
        )
        reason = T.fit.limits.reason() or ("converged" if self.certificate_.holds else ended)
        where = "of all functions," if exact else "within their span"
        text = f"{chosen.n_basis} basis vectors; {where} the objective is at most {relative:.2g} of itself above the optimum"
        if reason == "converged" and chosen.n_basis < T.sizes[-1] and self.n_basis != "auto":
            text += f"; no more of the {T.sizes[-1]} asked for are independent of these"
        words = {
            "converged": f"Converged: {text}.",
            "max_iter": f"Stopped at max_iter={self.max_iter}: {text}.",
            "stalled": f"Stopped because rounding errors hide any further progress: {text}. Scale the features, or use a smaller C.",
            "max_time": f"Stopped at max_time after {T.fit.limits.seconds:.1f} s: {text}.",
            "interrupted": f"Interrupted after {T.fit.limits.seconds:.1f} s: {text}.",
            "stopped": f"Stopped by a callback after {T.fit.limits.seconds:.1f} s: {text}.",
        }
        self.status_ = Status(reason, words[reason])
        self.fit_status_ = int(reason != "converged")
        self._take_point(chosen)
        if reason != "converged":
            warnings.warn(words[reason], ConvergenceWarning, stacklevel=4)

    def _take_point(self, point: PathPoint) -> None:
        self.basis_, self.basis_indices_ = point.basis, point.indices
        self.basis_coef_, self.intercept_ = point.coef, point.intercept
        self.n_basis_ = point.n_basis
        self._make()

    def truncated(self, n_basis: int) -> Self:
        """The machine that the one fit found at a smaller size of the basis; needs no data.

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
        other = copy.copy(self)
        other._take_point(points[n_basis])
        point = points[n_basis]
        relative = point.gap / point.objective if point.objective > 0 else 0.0
        other.certificate_ = replace(
            self.certificate_,
            objective=point.objective,
            gap=point.gap,
            violation=relative,
            projection_error=point.projection_error,
            bound=point.bound,
        )
        other.status_ = Status(
            "converged",
            f"Cut from the path of a fit with {max(points)} basis vectors: {n_basis} of them.",
        )
        other.path_ = [p for p in self.path_ if p.n_basis <= n_basis]
        return other


def distance_bound(
    T: Training, objective: Array, gap: Array, largest: Array | None, together: Array | None
) -> tuple[float | None, float | None]:
    """Projection error and how far the exact machine may be, from what of each column's cuts lies outside of the span.

    The multipliers of the cuts are feasible for the exact machine too, where what is outside of the span counts: its dual value is less by half
    the square of that (``together``, the combination). Joachims & Yu (2009) say C n (delta sqrt(2 C n) + eps), delta of the ``largest`` cut:
    sqrt(2 C n) is a bound on the norm of the exact machine, and so is the root of twice the value of any other. Either is a bound.
    """
    if largest is None or together is None:
        return None, None
    here = np.minimum(0.5 * together**2, largest * np.sqrt(2.0 * np.maximum(objective, 0.0)))
    return float(largest.max()) / float(T.weight.sum()), float((gap + here).sum())


def sizes_up_to(most: int) -> list[int]:
    """1, 2, 5, 10, ... up to most, and most."""
    sizes = [step * 10**power for power in range(len(str(most))) for step in STEPS]
    return [*(size for size in sizes if size < most), most]
