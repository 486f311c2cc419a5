"""What the sparse machines share: from data to a basis, a machine on it, and the same at every smaller size."""

from __future__ import annotations

import copy
import time
import warnings
from dataclasses import dataclass, field, replace
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from slimsvm.basis import Cholesky, Given, Greedy, KMeans, Margin, Pursuit, PursuitRows, Random, Unsupervised
from slimsvm.estimators.base import Fit, finite
from slimsvm.estimators.basis_machine import BasisMachine
from slimsvm.expansion import Expansion
from slimsvm.kernels import FromCallable, Kernel, make_kernel
from slimsvm.losses import Loss
from slimsvm.oracles import LossOracle
from slimsvm.problems.subspace import KernelColumns, Subspace
from slimsvm.rows import Rows, distinct
from slimsvm.run import FULL, SUBSPACE, Certificate, Limits, Record, Status, run
from slimsvm.solvers.cutting_plane import CuttingPlane, OneSlack
from slimsvm.solvers.decomposition import EXACT
from slimsvm.solvers.kernel_newton import AllRows, KernelNewton
from slimsvm.solvers.newton import Newton, NewtonState, best_shift
from slimsvm.solvers.pursuit import pursue
from slimsvm.solvers.refine import refine, solve
from slimsvm.solvers.spaces import SubspaceSpace
from slimsvm.threads import n_threads
from slimsvm.tiles import Operand, Strips, accumulate, ready

Array = NDArray[Any]
STEPS = (1, 2, 5)  # the sizes of a path: these, times powers of ten
GROWING, GROWING_A_VECTOR = 30_000, 100  # rows that are enough to grow a basis on, if it will be refined on all of them
EXACT_TOL, EXACT_CUTS_TOL = 1e-16, 1e-12  # relative gap for few rows, by Newton's method and by cutting planes
SATURATED = 0.2  # of accuracy_loss: gained less than this at two sizes in a row, n_basis='auto' looks no further
SMALLER_SIZES = 3.0  # of the tolerance, for the refinement at the smaller sizes of a path
LAST_SIZE = 0.1  # of the tolerance, for the refinement at the size asked for (ijcnn1, 50 vectors, three seeds: 98.44 %, with 0.3 98.39 %)
BAND = 0.05  # half the width, in units of the margin
TINY = np.finfo(float).tiny
CERTIFY_ROWS = 2048
BASES = {
    "pursuit": Pursuit,
    "pursuit_rows": PursuitRows,
    "random": Random,
    "kmeans": KMeans,
    "cholesky": Cholesky,
    "unsupervised": Unsupervised,
    "greedy": Greedy,
    "margin": Margin,
}
ONE_SHOT = ("random", "kmeans", "cholesky", "unsupervised")  # chosen before any training
ALL = "all"
NEED_CURVATURE = ("greedy", "margin", ALL)  # chosen by what Newton's method knows


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
    duals: Array | None = None  # of the rows, where the solver knows better than the derivative of the loss


class SparseMachine(BasisMachine):
    """Base of SparseSVC and SparseSVR."""

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **BasisMachine._parameter_constraints,
        "n_basis": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"})],
        "basis": [StrOptions({*BASES, "all"}), "array-like", "sparse matrix"],
        "refine": ["boolean", StrOptions({"auto"})],
        "fit_intercept": ["boolean"],
        "max_basis": [Interval(Integral, 1, None, closed="left")],
        "accuracy_loss": [Interval(Real, 0.0, 1.0, closed="both")],
        "validation_fraction": [Interval(Real, 0.0, 1.0, closed="neither"), None],
    }

    # -- what a subclass says -----------------------------------------------------------------------------------------------------------

    def _loss(self) -> Loss:
        raise TypeError("A subclass says which loss it has.")

    def _score(self, scores: Array, target: Array, weight: Array) -> float:
        raise TypeError("A subclass says how it counts success.")

    # -- the plan -----------------------------------------------------------------------------------------------------------------------

    def _refines(self, loss: Loss, kernel: Kernel) -> bool:
        """Whether the basis vectors are moved; complains if that was asked for and is impossible."""
        others = "'squared_hinge', 'smooth_hinge' or 'least_squares'" if loss.takes_labels else "'squared_epsilon_insensitive'"
        if isinstance(self.basis, str) and self.basis in NEED_CURVATURE and not loss.differentiable:
            raise ValueError(
                f"basis={self.basis!r} needs a loss with a curvature, which loss={self.loss!r} has not; use {others}, or another basis, "
                "such as 'pursuit' or 'cholesky'."
            )
        able = loss.differentiable and kernel.differentiable
        if self.refine == "auto":
            return able and isinstance(self.basis, str) and self.basis != ALL
        if self.refine and isinstance(self.basis, str) and self.basis == ALL:
            raise ValueError("refine=True has nothing to move with basis='all': the machine is exact; use refine=False, or another basis.")
        if self.refine and not loss.differentiable:
            raise ValueError(
                f"refine=True needs a loss with a derivative, which loss={self.loss!r} has not; use {others}, or refine=False."
            )
        if self.refine and not able:
            raise ValueError(
                f"refine=True needs a kernel with a known derivative ('rbf', 'poly' with coef0 >= 0, 'linear'); got {kernel!r}. "
                "Use refine=False."
            )
        return bool(self.refine)

    def _wanted(self) -> int:
        """The largest size of the basis."""
        if isinstance(self.basis, str):
            return int(self.max_basis if self.n_basis == "auto" else self.n_basis)
        return int(np.shape(self.basis)[0]) if np.ndim(self.basis) == 2 or sp.issparse(self.basis) else 1

    def _train(self, X: Any, target: Array, weight: Array, held_out: Any) -> None:
        """Find basis and coefficients for the rows X (all of positive weight); sets the fitted attributes."""
        loss = self._loss()
        kernel = make_kernel(self.kernel, gamma=self.gamma, degree=self.degree, coef0=self.coef0)
        kernel = kernel if isinstance(kernel, FromCallable) else kernel.resolve(Rows(X, weight=weight))
        refines, last = self._refines(loss, kernel), self._last_basis(X, target)
        self.kernel_ = kernel
        with self._fitting() as fit:
            n = X.shape[0]
            rows = finite(ready(kernel, X, dtype=np.float64 if n <= EXACT else None))
            candidates = distinct(X)
            wanted = self._wanted()
            everything = isinstance(self.basis, str) and self.basis != ALL and self.n_basis != "auto" and candidates.size <= wanted
            wanted = min(candidates.size, wanted) if isinstance(self.basis, str) else wanted
            T = Training(
                rows,
                target,
                float(self.C) * weight,
                loss,
                candidates,
                [wanted] if everything else _sizes(wanted),
                everything,
                refines and not everything,
                fit,
                np.random.default_rng(check_random_state(self.random_state).randint(2**31 - 1)),
                held_out,
            )
            history: list[Record] = []
            fit.watchers = (*fit.watchers, lambda record: history.append(record))
            if isinstance(self.basis, str) and self.basis == ALL:
                self._train_all(T, X)
            elif loss.differentiable:
                self._train_smooth(T, X, last)
            else:
                self._train_cuts(T, X, last)
        self._finish(T, history)

    def _last_basis(self, X: Any, target: Array) -> Any:
        """The basis of the last fit, if this one is to go on from it."""
        if not self.warm_start or not hasattr(self, "basis_coef_"):
            return None
        fits = self.basis_.shape[1] == X.shape[1] and self.basis_coef_.shape[1] == target.shape[1]
        return self.basis_ if fits else None

    # -- 1. the vectors to begin with ---------------------------------------------------------------------------------------------------

    def _first_vectors(self, T: Training, X: Any, columns: KernelColumns, weight: Array, last: Any) -> tuple[Any, Array | None]:
        """Vectors that are known before any training, in the coordinates of the rows; None where pursuit finds them."""
        if T.everything:
            order = T.candidates[in_order(X[T.candidates])]
            return T.rows.X[order], order
        if last is not None:
            return columns.in_rows_coordinates(last), None
        if not isinstance(self.basis, str):
            selection = Given(self.basis).select(columns, None, None, T.sizes[-1], T.rng, T.candidates)
        elif self.basis in ONE_SHOT:
            chooser: Any = KMeans(sample_weight=weight) if self.basis == "kmeans" else BASES[self.basis]()
            selection = chooser.select(columns, None, None, T.sizes[-1], T.rng, T.candidates)
        else:
            return None, None
        return selection.vectors, selection.indices

    # -- 2. losses with a derivative ----------------------------------------------------------------------------------------------------

    def _train_smooth(self, T: Training, X: Any, last: Any) -> None:
        grown = self._growth_problem(T)
        columns = grown.columns
        vectors, indices = self._first_vectors(T, X, columns, grown.weight, last)
        tol = EXACT_TOL if T.rows.n <= EXACT else min(float(self.tol), 1e-3)
        if vectors is not None:
            accepted = columns.append(vectors)
            indices = None if indices is None else indices[np.flatnonzero(accepted)]
        known = columns.m
        for size in T.sizes:
            if size > known:
                break
            self._add_point(T, *self._solved(replace(grown, columns=columns.first(size)), tol), indices)
            if self._enough(T):
                return
        if vectors is not None and (T.everything or last is None):  # nothing grows; what was refused is not replaced
            if not T.points or T.points[-1].n_basis < known:
                self._add_point(T, *self._solved(grown, tol), indices)
            return
        choose = BASES[self.basis]() if isinstance(self.basis, str) else Pursuit()
        sizes = [size for size in T.sizes if size > known]
        for point in pursue(grown, choose, sizes, T.candidates, T.rng, tol=tol, limits=T.fit.limits, watchers=T.fit.watchers):
            self._add_point(T, grown, point.state, point.indices if known == 0 else None)
            if self._enough(T):
                return

    def _train_all(self, T: Training, X: Any) -> None:
        """The exact machine, over all rows; its basis is the rows that the loss feels."""
        problem = AllRows(T.rows, T.target, T.weight, T.loss, bool(self.fit_intercept), self.max_memory, T.fit.threads)
        if problem.blur() > float(self.tol):  # float32 would hide what was asked for
            T.rows = problem.rows = ready(self.kernel_, X, dtype=np.float64)
        solver = KernelNewton(seed=int(T.rng.integers(2**31 - 1)))
        tol = EXACT_TOL if T.rows.n <= EXACT else float(self.tol)
        max_iter = int(self.max_iter) if self.max_iter > 0 else 1000
        result = run(solver, problem, tol=tol, max_iter=max_iter, limits=T.fit.limits, watchers=T.fit.watchers)
        model, certificate = result.model, result.certificate
        felt = np.flatnonzero(model.coef.any(axis=1))
        basis = X[felt]
        score = self._score(model.scores, T.target, T.weight)
        f = Expansion(self.kernel_, basis, model.coef[felt], model.intercept, exact=T.rows.dtype == np.float64)
        held = None if T.held_out is None else self._validation(T, f)
        T.n_iter = result.n_iter
        T.sizes = [felt.size]
        T.points.append(
            PathPoint(
                felt.size,
                basis,
                model.coef[felt],
                model.intercept,
                felt,
                certificate.objective,
                certificate.gap,
                score,
                held,
                0.0,
                certificate.gap,
            )
        )

    def _solved(self, problem: Subspace, tol: float) -> tuple[Subspace, NewtonState]:
        state = solve(problem, None, tol, int(self.max_iter) if self.max_iter > 0 else 1000)
        Newton().finish(problem, state)
        return problem, state

    def _growth_problem(self, T: Training) -> Subspace:
        """The problem that the basis grows on: all rows, or a random part of them if it will be refined on all."""
        n, rows, target, weight = T.rows.n, T.rows, T.target, T.weight
        few = max(GROWING, GROWING_A_VECTOR * T.sizes[-1])
        if T.refined and 2 * few <= n:
            part = np.sort(T.rng.permutation(n)[:few])
            rows, target = rows.take(part), target[part]
            weight = weight[part] * (weight.sum() / weight[part].sum())
            T.candidates = np.flatnonzero(np.isin(part, T.candidates))
        columns = KernelColumns(rows, T.sizes[-1], self.max_memory, T.fit.threads)
        return Subspace(columns, target, weight, T.loss, bool(self.fit_intercept))

    def _add_point(self, T: Training, problem: Subspace, state: NewtonState, indices: Array | None) -> None:
        """Refine, if that is wanted, and keep the machine of this size."""
        columns, m = problem.columns, problem.columns.m
        T.n_iter += state.n_iter
        if T.refined and m:
            whole = Subspace(KernelColumns(T.rows, m, self.max_memory, T.fit.threads), T.target, T.weight, T.loss, bool(self.fit_intercept))
            left = len([size for size in T.sizes if size >= m])
            moved = refine(
                whole,
                columns.vectors,
                (state.coef, state.intercept),
                tol=float(self.tol) * (1.0 if self.n_basis == "auto" else LAST_SIZE if m == T.sizes[-1] else SMALLER_SIZES),
                max_iter=int(self.max_iter) if self.max_iter > 0 else 1000,
                limits=T.fit.limits.part(left) if self.max_time is not None else T.fit.limits,
                rng=T.rng,
                score=self._held_out_score(T, whole),
                rough=self.n_basis != "auto" and m < T.sizes[-1],
                watchers=T.fit.watchers,
            )
            problem, columns, state, indices = whole, whole.columns, moved.state, None
            T.n_iter += moved.n_evaluations
        gradient = np.abs(T.weight[:, None] * T.loss.gradient(T.target, state.scores)) if problem.columns.n == T.rows.n else None
        outside = None if gradient is None else gradient.T @ columns.distances()
        self._keep(
            T,
            columns,
            state.coef,
            state.intercept,
            state.scores,
            state.objective,
            state.gap,
            indices,
            _bound(T, state.objective, state.gap, outside, outside),
        )

    def _held_out_score(self, T: Training, problem: Subspace) -> Any:
        if T.held_out is None:
            return None
        return lambda vectors, solution: self._validation(
            T, Expansion(self.kernel_, problem.columns.in_given_coordinates(vectors), solution.coef, solution.intercept, exact=False)
        )

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
            PathPoint(columns.m, basis, coef, intercept, indices, float(objective.sum()), float(gap.sum()), training, held, *bound)
        )

    def _enough(self, T: Training) -> bool:
        """With n_basis='auto': whether the last two sizes brought next to nothing. Or time is up."""
        if T.fit.limits.reason() is not None:
            return True
        if self.n_basis != "auto" or len(T.points) < 4:
            return False
        held = [point.validation_score or 0.0 for point in T.points]
        return max(held[-2:]) <= max(held[:-2]) + SATURATED * float(self.accuracy_loss)

    # -- 3. losses with a kink ----------------------------------------------------------------------------------------------------------

    def _train_cuts(self, T: Training, X: Any, last: Any) -> None:
        """Cutting planes; the basis grows with them if it is pursued. Then the smaller sizes, from the same cuts."""
        columns = KernelColumns(T.rows, T.sizes[-1], self.max_memory, T.fit.threads)
        oracle = LossOracle(T.loss, T.target, T.weight, T.fit.threads)
        solver, scaling = CuttingPlane(), np.inf if self.fit_intercept else 0.0
        vectors, indices = self._first_vectors(T, X, columns, T.weight, last)
        if vectors is not None:
            accepted = np.flatnonzero(columns.append(vectors))
            indices = None if indices is None else indices[accepted]
        growth = Growth(BASES[self.basis](), T.rng, T.candidates) if vectors is None else None
        limits = {"tol": EXACT_CUTS_TOL if T.rows.n <= EXACT else float(self.tol), "max_iter": int(self.max_iter), "limits": T.fit.limits}
        problem = OneSlack(SubspaceSpace(columns, growth), oracle, scaling)
        state: Any = None
        points: list[tuple[KernelColumns, Any, Array | None, tuple[float | None, float | None]]] = []
        for size in sorted({columns.m or T.sizes[-1], *T.sizes}, reverse=True):
            if points and size >= points[-1][0].m:
                continue
            if points:  # the same cuts, seen from a part of the basis
                if T.fit.limits.reason() is not None:
                    break
                problem = OneSlack(SubspaceSpace(columns.first(size)), oracle, scaling)
                solver.reproject(problem, state)
            state = solver.init(problem, state)
            result = run(solver, problem, start=state, watchers=T.fit.watchers, **limits)  # type: ignore[arg-type]
            T.n_iter += result.n_iter
            if not points:
                T.duals = result.model.row_duals
                indices = indices if growth is None else growth.indices(columns)
            outside = solver.outside(problem, state, problem.space.columns.distances())
            points.append((problem.space.columns, result.model, indices, _bound(T, result.model.objective, state.gap, *outside)))
        for some, model, which, bound in reversed(points):
            gap = np.maximum(0.0, model.objective - model.lower_bound)
            self._keep(T, some, model.coef, model.intercept, model.scores, model.objective, gap, which, bound)

    # -- 4. what comes out --------------------------------------------------------------------------------------------------------------

    def _finish(self, T: Training, history: list[Record]) -> None:
        chosen = T.points[-1]
        if self.n_basis == "auto" and T.held_out is not None:
            scores = [point.validation_score or 0.0 for point in T.points]
            good = [p for p, score in zip(T.points, scores, strict=True) if score >= max(scores) - float(self.accuracy_loss)]
            chosen = good[0] if good else chosen  # none if scores are not numbers
        self.path_ = T.points
        self.n_iter_ = max(1, T.n_iter)
        self._row_duals = T.duals
        names = ("objective", "n_basis")
        self.history_ = {"seconds": np.array([record.seconds for record in history])}
        self.history_ |= {name: np.array([record.values.get(name, np.nan) for record in history]) for name in names}
        relative = chosen.gap / chosen.objective if chosen.objective > 0 else 0.0
        about = (float(self.tol), str(np.dtype(T.rows.dtype)), chosen.projection_error, chosen.bound)
        exact = isinstance(self.basis, str) and self.basis == ALL
        self.certificate_ = Certificate(FULL if exact else SUBSPACE, chosen.objective, relative, chosen.gap, *about)
        reason = T.fit.limits.reason() or ("converged" if self.certificate_.holds else "max_iter")
        where = "of all functions," if exact else "within their span"
        text = f"{chosen.n_basis} basis vectors; {where} the objective is at most {relative:.2g} of itself above the optimum"
        if reason == "converged" and chosen.n_basis < T.sizes[-1] and self.n_basis != "auto":
            text += f"; no more of the {T.sizes[-1]} asked for are independent of these"
        words = {
            "converged": f"Converged: {text}.",
            "max_iter": f"Stopped at max_iter={self.max_iter}: {text}.",
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
            raise ValueError(f"n_basis={n_basis!r} is not a size of the path; the sizes are {sorted(points)}.")
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
        other.status_ = Status("converged", f"Cut from the path of a fit with {max(points)} basis vectors: {n_basis} of them.")
        other.path_ = [p for p in self.path_ if p.n_basis <= n_basis]
        return other

    # -- 5. how far from the exact machine ----------------------------------------------------------------------------------------------

    def _certified(self, X: Any, target: Array, weight: Array, max_time: float | None) -> Certificate:
        """The gap to the exact machine with the same loss, from a feasible point of its dual.

        The dual point g is what the loss says at the scores (or the solver's own, where the loss has a kink), scaled so that its sum is zero;
        gap = |f|^2/2 + sum w L + |sum_i g_i phi(x_i)|^2/2 + sum w L*(g/w).
        """
        loss, threads = self._loss(), n_threads(self.n_jobs)
        w = float(self.C) * weight[:, None]
        scores = self._expansion().decision_function(X, threads)
        duals = getattr(self, "_row_duals", None)
        if loss.differentiable:
            if self.fit_intercept:
                scores = scores + best_shift(loss, target, w[:, 0], scores)
            g = w * loss.gradient(target, scores)
        elif duals is not None and duals.shape == target.shape:
            g = duals * (1.0 - 1e-9)  # rounding must not carry a multiplier beyond its bound
        else:  # a slope within a band around the kink, instead of a jump
            g = w * 0.5 * (loss.gradient(target, scores + BAND) + loss.gradient(target, scores - BAND))
        if self.fit_intercept:  # the multipliers of both signs must balance
            up, down = np.maximum(g, 0).sum(axis=0), np.maximum(-g, 0).sum(axis=0)
            least = np.minimum(up, down)
            g = np.where(g > 0, g * (least / np.maximum(up, TINY)), g * (least / np.maximum(down, TINY)))
        objective = 0.5 * float(self._expansion().squared_norm().sum()) + float((w * loss.value(target, scores)).sum())
        square = self._dual_square(X, g, threads, max_time)
        gap = objective + 0.5 * square + float((w * loss.conjugate(target, g / w)).sum())
        gap = max(0.0, gap)
        return Certificate(FULL, objective, gap / objective if objective > 0 else 0.0, gap, float(self.tol), self.certificate_.precision)

    def _dual_square(self, X: Any, g: Array, threads: int, max_time: float | None) -> float:
        """sum over columns of g' K g, in tiles, among the rows with g != 0; infinite when time does not suffice."""
        felt = np.flatnonzero((g != 0).any(axis=1))
        if not felt.size:
            return 0.0
        rows = ready(self.kernel_, X[felt], dtype=np.float64 if X.shape[0] <= EXACT else None)
        g, strips, total = g[felt], Strips(rows), 0.0
        begin = time.perf_counter()
        limits = Limits(max_time)
        for start in range(0, felt.size, CERTIFY_ROWS):
            part = slice(start, min(felt.size, start + CERTIFY_ROWS))
            for c in range(g.shape[1]):
                s = np.zeros(felt.size)
                accumulate(rows.take(part), strips, g[part, c], s, threads)
                total += float(g[:, c] @ s)
            if start == 0 and felt.size > CERTIFY_ROWS:
                expected = (time.perf_counter() - begin) * felt.size / CERTIFY_ROWS
                print(f"certify: {felt.size:,} rows among themselves, about {expected:.0f} s", flush=True)
            if limits.reason() is not None and part.stop < felt.size:
                warnings.warn(
                    f"certify stopped at max_time={max_time:g} s with {part.stop:,} of {felt.size:,} rows done: the gap is not known.",
                    ConvergenceWarning,
                    stacklevel=4,
                )
                return float("inf")
        return total


class Growth:
    """Gives the cutting-plane driver a vector for each new cut, and remembers which rows they were."""

    def __init__(self, choose: Any, rng: np.random.Generator, candidates: Array) -> None:
        self.choose, self.rng, self.candidates = choose, rng, candidates
        self._found: list[int] = []
        self._offered: tuple[int, Array | None] | None = None

    def __call__(self, columns: KernelColumns, row_weights: Array, basis_weights: Array) -> Any:
        """A vector for the residual."""
        self._note(columns)
        selection = self.choose.select(columns, row_weights, basis_weights, 1, self.rng, self.candidates)
        self._offered = columns.m, selection.indices
        return selection.vectors

    def _note(self, columns: KernelColumns) -> None:
        """Whether the vector that was offered last was accepted."""
        if self._offered is not None and columns.m > self._offered[0] and self._offered[1] is not None:
            self._found.extend(self._offered[1].tolist())
        self._offered = None

    def indices(self, columns: KernelColumns) -> Array | None:
        """The rows that joined, if all vectors are rows."""
        self._note(columns)
        return np.array(self._found) if columns.m and len(self._found) == columns.m else None


def _bound(T: Training, objective: Array, gap: Array, largest: Array | None, together: Array | None) -> tuple[float | None, float | None]:
    """Projection error and how far the exact machine may be, from what of each column's cuts lies outside of the span.

    The multipliers of the cuts are feasible for the exact machine too, where what is outside of the span counts: its dual value is less by half
    the square of that (``together``, the combination). Joachims & Yu (2009) say C n (delta sqrt(2 C n) + eps), delta of the ``largest`` cut:
    sqrt(2 C n) is a bound on the norm of the exact machine, and so is the root of twice the value of any other. Either is a bound.
    """
    if largest is None or together is None:
        return None, None
    here = np.minimum(0.5 * together**2, largest * np.sqrt(2.0 * np.maximum(objective, 0.0)))
    return float(largest.max()) / float(T.weight.sum()), float((gap + here).sum())


def _sizes(most: int) -> list[int]:
    """1, 2, 5, 10, ... up to most, and most."""
    sizes = [step * 10**power for power in range(len(str(most))) for step in STEPS]
    return [*(size for size in sizes if size < most), most]


def in_order(X: Any) -> Array:
    """The order of distinct rows that does not depend on the order they came in."""
    X = X.toarray() if sp.issparse(X) else np.asarray(X)
    return np.lexsort(X.T[::-1])
