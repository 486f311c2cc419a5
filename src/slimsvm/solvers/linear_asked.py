"""What is asked of a linear fit, and which solver follows from it; and what is refused."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from slimsvm.losses import Loss
from slimsvm.precision import is_small
from slimsvm.run import Result, run
from slimsvm.training import CUTTING_PLANE, Fit, InstanceOf, Unsupported

Array = NDArray[Any]
LAGRANGIAN = InstanceOf("solvers.linear_lagrangian", "LinearLagrangian")
PLAIN_NEWTON = InstanceOf("solvers.plain_newton", "PlainNewton")
LARGEST_SQUARE = 1e150  # of a value, times C: the same squared is still a number
FEW_ROWS_L1_TOL = 1e-10
SQUARED = ("squared_hinge", "squared_epsilon_insensitive")
SOLVABLE = {  # by LIBLINEAR: penalty, loss, whether it is the dual problem
    ("l1", "squared_hinge", False),
    ("l2", "hinge", True),
    ("l2", "epsilon_insensitive", True),
    *(("l2", loss, dual) for loss in SQUARED for dual in (False, True)),
}


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class AskedOfLinear:
    """How a linear problem is to be solved.

    ``scaling`` of the intercept: infinite, if it is free; zero, if there is none. ``start`` has
    weights (features, outputs) and intercepts; ``solver`` is one of its own, or None; ``oracle``
    makes that of cutting planes.
    """

    tol: float
    max_iter: int
    scaling: float
    solver: Any
    start: tuple[Array, Array] | None
    seed: int
    fit: Fit
    oracle: Any

    def solved(self, X: Any, target: Array, weight: Array, loss: Loss) -> Result:
        """Every score is to lie in an interval: all losses but for the l1 penalty."""
        from slimsvm.problems.linear import LinearFit, LinearSolution
        from slimsvm.solvers.linear import linear

        problem = LinearFit(X, target, weight, loss, self.scaling, self.fit.threads)
        if of_squares(self.solver):
            return run(
                self.solver,
                problem,
                tol=self.tol,
                max_iter=self.max_iter,
                limits=self.fit.limits,
                watchers=self.fit.watchers,
            )
        return linear(
            problem,
            self.oracle,
            tol=self.tol,
            max_iter=self.max_iter,
            fit=self.fit,
            start=None if self.start is None else LinearSolution(*self.start),
            seed=self.seed,
            planes=self.solver,
        )

    def solved_sparse(self, X: Any, target: Array, weight: Array) -> Result:
        """The squared hinge with an l1 penalty."""
        from slimsvm.problems.linear import LinearSolution
        from slimsvm.solvers.linear_l1 import L1Descent, L1Problem

        return run(
            L1Descent(seed=self.seed),
            L1Problem(X, target, weight, self.scaling, self.fit.threads),
            tol=min(self.tol, FEW_ROWS_L1_TOL) if is_small(target.shape[0]) else self.tol,
            max_iter=self.max_iter,
            limits=self.fit.limits,
            start=None if self.start is None else LinearSolution(*self.start),
            watchers=self.fit.watchers,
        ).against(self.tol)


def of_squares(solver: Any) -> bool:
    """Whether it is one of the published solvers for the squared hinge."""
    return bool(LAGRANGIAN.is_satisfied_by(solver) or PLAIN_NEWTON.is_satisfied_by(solver))


def refuse_large(largest: float, heaviest: float, C: float) -> None:
    """Raise ValueError where squares of the largest values, times C, are no numbers any more."""
    if largest > math.sqrt(LARGEST_SQUARE / max(1.0, heaviest)):
        raise Unsupported(
            f"X has values as large as {largest:.3g}: with C={C:g}, products of such squares leave "
            "the range of float64. Scale the features, for example with StandardScaler."
        )


def refuse_combination(
    multi_class: str, penalty: str, loss: str, dual: Any, shape: tuple[int, ...]
) -> None:
    """Raise ValueError for what LIBLINEAR has no solver for, in scikit-learn's words."""
    auto = isinstance(dual, str)
    asked = (False, True) if auto else (bool(dual),)
    if multi_class == "crammer_singer" or any((penalty, loss, own) in SOLVABLE for own in asked):
        return
    from sklearn.svm._base import _get_liblinear_solver_type  # here, since it imports much

    _get_liblinear_solver_type(multi_class, penalty, loss, shape[0] >= shape[1] if auto else dual)


def refuse_solver(asked: Any, free: bool) -> None:
    """Raise ValueError for a solver of a LinearSVC that is made for another problem.

    ``free``: its intercept has no penalty.
    """
    given = f"solver={asked.solver!r}"
    if CUTTING_PLANE.is_satisfied_by(asked.solver) and asked.loss != "hinge":
        raise ValueError(
            f"{given} makes cutting planes, which are for loss='hinge'; with loss={asked.loss!r} "
            "leave solver out."
        )
    if of_squares(asked.solver):
        if asked.loss != "squared_hinge" or asked.penalty == "l1":
            raise ValueError(
                f"{given} is for loss='squared_hinge' and penalty='l2'; with "
                f"loss={asked.loss!r}, penalty={asked.penalty!r} leave solver out."
            )
        if free and LAGRANGIAN.is_satisfied_by(asked.solver):
            raise ValueError(f"{given} penalises the intercept: fit_intercept='free' is not.")
    if asked.solver is not None and asked.multi_class != "ovr":
        raise ValueError(f"{given} is for multi_class='ovr': leave solver out.")
