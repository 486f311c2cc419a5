"""The reduced SVM (RSVM) as it was published: its four solvers without what the default ones add.

Problem: min over u of  1/2 |u|^2 + C sum_i weight_i L(v_i u), :mod:`slimsvm.problems.reduced`; or,
with penalty="kernel", the problem before that simplification,

    1/2 (coef'K_RR coef + intercept^2) + C sum_i weight_i L(y_i f(x_i)),

which is the same in coordinates u with coef = K_RR^-1/2 u.

Source: Lin & Lin (2003), lin2003rsvm, the slides "How to Solve RSVM" and after.

- "smooth": SSVM, Lee & Mangasarian (2001), lee2001ssvm, algorithm 3.1: Newton's direction with all
  rows in its matrix, halved until Armijo's rule holds; the end is the norm of the gradient.
- "least_squares": LS-SVM, one linear system (:mod:`slimsvm.solvers.least_squares`).
- "lagrangian": LSVM, Mangasarian & Musicant (2001), mangasarian2001lsvm: the fixed-point iteration
  itself, :class:`slimsvm.solvers.lagrangian.Lagrangian`, with the step of that paper, beta = 1.9/nu
  = 1.9/(2 C).
- "decomposition": :class:`slimsvm.solvers.fixed_sets.FixedSets`.

A share of the rows is that share of them, however few. What the slides leave open: the end of the
iterative methods ("as close criteria as possible": that of each is said where it stands; LSVM's is
the relative duality gap), Armijo's constants (1e-4; steps 1, 1/2, 1/4, ...; a whole step where
rounding hides any fall and the gradient halves), R (rows of a pair, all as likely), and how K_RR is
treated where it is singular (directions with less than 1e-12 of its largest eigenvalue are left
out).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slimsvm.losses import LeastSquares, Loss, SmoothHinge, SquaredHinge
from slimsvm.options import between, one_of
from slimsvm.problems.reduced import Reduced, ReducedSolution, ReducedState, SignedFeatures, begin
from slimsvm.run import Certificate, Result, run
from slimsvm.solvers.duality import ReducedSolver
from slimsvm.solvers.fixed_sets import FixedSets
from slimsvm.solvers.lagrangian import Lagrangian
from slimsvm.solvers.least_squares import LeastSquaresSystem
from slimsvm.solvers.reduced_ways import AskedOfPair

Array = NDArray[Any]
SOLVERS = ("smooth", "least_squares", "lagrangian", "decomposition")
PENALTIES = ("norm", "kernel")
ARMIJO = 1e-4  # of the slope, that the value must fall by at least
MOST_HALVINGS = 50
HALF_GRADIENT = 0.25  # of its square
STEP = 0.95  # of 1/C: 1.9/nu, where nu = 2 C
OPTIMUM = {
    "smooth": "the optimum of the smooth problem",
    "least_squares": "the optimum of the least-squares problem",
}
MEASURES = {"smooth": "gradient", "decomposition": "kkt"}


@dataclass(kw_only=True)
class ArmijoNewton(ReducedSolver):
    """SSVM's algorithm: ``tol`` is the norm of the gradient, ``max_iter`` limits Newton's steps.

    Examples
    --------
    >>> from slimsvm.kernels import RBF
    >>> from slimsvm.frames import Frame, in_memory
    >>> from slimsvm.tiles import prepare
    >>> rows = prepare(RBF(1.0), np.arange(6.0)[:, None], dtype=np.float64)
    >>> signed = in_memory(rows, np.array([1.0, 1.0, -1.0, -1.0, 1.0, 1.0]))
    >>> V = SignedFeatures(signed, Frame.like(rows), np.array([0, 3]))
    >>> problem = Reduced(V, np.full(6, 10.0), SmoothHinge(5.0))
    >>> run(ArmijoNewton(), problem, tol=1e-6).certificate.holds
    True
    """

    def init(self, problem: Reduced, start: Array | None = None) -> ReducedState:
        """Begin at ``start`` (coefficients and intercept), or at zero."""
        return begin(problem, start)

    def step(self, problem: Reduced, state: ReducedState, tol: float, max_iter: int) -> None:
        """One of Newton's steps."""
        S, slope = state, state.gradient
        S.done = float(np.linalg.norm(slope)) <= tol
        if S.done or S.n_iter >= max_iter:
            return
        d = -problem.features.inverse(problem.curvatures(S.margins))(slope)
        d_margins, along, t = problem.features.margins(d), float(slope @ d), 1.0
        for _ in range(MOST_HALVINGS):
            value = problem.value(S.u + t * d, S.margins + t * d_margins)
            if S.objective - value >= -ARMIJO * t * along:
                break
            t *= 0.5
        else:  # values differ by rounding alone: the gradient says whether a whole step is good
            t = 1.0
        u = S.u + t * d
        margins, value, gradient = problem.at(u)
        lower = value <= S.objective or gradient @ gradient <= HALF_GRADIENT * (slope @ slope)
        if not lower:
            S.stalled = S.done = True
            return
        S.u, S.margins, S.objective, S.gradient = u, margins, value, gradient
        S.n_iter += 1
        S.done = float(np.linalg.norm(gradient)) <= tol

    def certificate(self, problem: Reduced, state: Any, tol: float) -> Certificate:
        """Objective and gap; ``violation`` is the norm of the gradient."""
        found = super().certificate(problem, state, tol)
        return replace(found, violation=float(np.linalg.norm(state.gradient)))


@dataclass
class RSVM:
    """A published way to train :class:`slimsvm.ReducedSVC`, for its parameter ``solver``.

    Parameters
    ----------
    solver : {"smooth", "least_squares", "lagrangian", "decomposition"}
        Which.
    penalty : {"norm", "kernel"}
        On the coefficients, as simplified; or on the norm of the function in the space of the
        kernel, as before.
    beta : float, optional
        Of "smooth", 5 by default; of "lagrangian" the step, 1.9/(2 C) by default, less than 1/C.
    working_set : int
        Of "decomposition", q.

    Examples
    --------
    >>> from slimsvm import ReducedSVC
    >>> from slimsvm.datasets import checkers
    >>> X, y = checkers(300, seed=0)
    >>> model = ReducedSVC(solver=RSVM("smooth", penalty="kernel"), gamma=5.0, random_state=0)
    >>> model.fit(X, y).basis_.shape
    (30, 2)
    """

    solver: str = "smooth"
    penalty: str = "norm"
    beta: float | None = None
    working_set: int = 10

    def __post_init__(self) -> None:
        one_of(SOLVERS, solver=self.solver)
        one_of(PENALTIES, penalty=self.penalty)
        if self.beta is not None and self.solver not in ("smooth", "lagrangian"):
            raise ValueError(f"solver={self.solver!r} has no beta; got beta={self.beta!r}.")
        if self.beta is not None:
            between(0.0, np.inf, beta=self.beta)
        FixedSets(working_set=self.working_set)  # complains

    @property
    def many(self) -> bool:
        """Whether it passes over the kernel values many times."""
        return self.solver != "least_squares"

    @property
    def optimum(self) -> str:
        """Whose optimum the certificate is about."""
        return OPTIMUM.get(self.solver, "the optimum")

    @property
    def measure(self) -> str:
        """What tol is about."""
        return MEASURES.get(self.solver, "gap")

    def solved(self, V: SignedFeatures, weight: Array, asked: AskedOfPair) -> Result:
        """Its result, with a model of coefficients and intercept; ``weight`` includes C."""
        loss: Loss = SquaredHinge()
        solver: Any = FixedSets(working_set=self.working_set)
        if self.solver == "smooth":
            loss, solver = SmoothHinge(5.0 if self.beta is None else self.beta), ArmijoNewton()
        elif self.solver == "least_squares":
            loss, solver = LeastSquares(), LeastSquaresSystem()
        elif self.solver == "lagrangian":
            solver = Lagrangian(share=STEP if self.beta is None else self.beta * asked.C)
        problem = Reduced(V, weight, loss)
        about: Any = {"limits": asked.limits, "watchers": asked.watchers}
        result = run(solver, problem, tol=asked.tol, max_iter=asked.max_iter, **about)
        if V.mapped is None:
            return result
        own = result.model
        return replace(result, model=ReducedSolution(V.mapped @ own.coef, own.intercept))
