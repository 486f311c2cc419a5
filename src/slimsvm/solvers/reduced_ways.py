"""The ways to solve the reduced problem (RSVM), by name, and what they have in common.

Problem: :class:`slimsvm.problems.reduced.Reduced`. Each way has a loss and a solver of its own. Few
rows end at near rounding errors: by the solver itself, or by Newton's method from where it ended.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from slimsvm.losses import LeastSquares, Loss, SmoothHinge, SquaredHinge
from slimsvm.precision import NEWTON_TOL, is_small
from slimsvm.run import Limits, Result, run

if TYPE_CHECKING:
    from slimsvm.problems.reduced import SignedFeatures

Array = NDArray[Any]
FEWEST = 50  # basis vectors that a fraction of the rows stands for, at least, if there are so many
EXACT_STEPS = 50


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class AskedOfPair:
    """What a pair of classes is trained with, beside rows and weights."""

    beta: float | None
    C: float
    seed: int
    tol: float
    max_iter: int
    limits: Limits
    watchers: Any = ()


@dataclass(frozen=True, eq=False, repr=False)
class Way:
    """One way to train: its loss, from beta, and its solver, from beta, C and a seed.

    ``polishes``: with few rows the solver itself goes on to near rounding errors. ``many``: it
    passes over the kernel values many times.
    """

    loss: Callable[[float | None], Loss]
    solver: Callable[[float | None, float, int], Any]
    polishes: bool
    optimum: str = "the optimum"
    takes_beta: bool = True
    many: bool = True

    def solved(self, V: SignedFeatures, weight: Array, asked: AskedOfPair) -> Result:
        """Its result, with a model of coefficients and intercept in one, measured against tol.

        ``weight`` includes C.
        """
        from slimsvm.problems.reduced import Reduced

        problem, few = Reduced(V, weight, self.loss(asked.beta)), is_small(V.n)
        result = run(
            self.solver(asked.beta, asked.C, asked.seed),
            problem,
            tol=min(asked.tol, NEWTON_TOL) if self.polishes and few else asked.tol,
            max_iter=asked.max_iter,
            limits=asked.limits,
            watchers=asked.watchers,
        ).against(asked.tol)
        if not few or self.polishes or not result.certificate.holds:
            return result
        near = run(  # the last digits
            _newton(),
            problem,
            tol=NEWTON_TOL,
            max_iter=EXACT_STEPS,
            limits=asked.limits,
            start=result.model.u,
        ).against(asked.tol)
        if near.certificate.gap > result.certificate.gap:
            return result
        return replace(result, model=near.model, certificate=near.certificate)


def _smooth(beta: float | None) -> Loss:
    return SmoothHinge() if beta is None else SmoothHinge(float(beta))


# solvers are imported by those who use them


def _newton(*_: Any) -> Any:
    from slimsvm.solvers.smooth_newton import SmoothNewton

    return SmoothNewton()


def _system(*_: Any) -> Any:
    from slimsvm.solvers.least_squares import LeastSquaresSystem

    return LeastSquaresSystem()


def _chunking(beta: float | None, C: float, seed: int) -> Any:
    from slimsvm.solvers.chunking import Chunking

    return Chunking(seed=seed)


def _lagrangian(beta: float | None, C: float, seed: int) -> Any:
    from slimsvm.solvers.lagrangian import AcceleratedLagrangian, Lagrangian

    return AcceleratedLagrangian() if beta is None else Lagrangian(share=float(beta) * C)


SOLVERS = {
    "smooth": Way(
        _smooth,
        _newton,
        True,
        "the optimum of the smooth problem",
    ),
    "least_squares": Way(
        lambda beta: LeastSquares(),
        _system,
        True,
        "the optimum of the least-squares problem",
        takes_beta=False,
        many=False,
    ),
    "lagrangian": Way(lambda beta: SquaredHinge(), _lagrangian, False),
    "decomposition": Way(
        lambda beta: SquaredHinge(),
        _chunking,
        False,
        takes_beta=False,
    ),
}
