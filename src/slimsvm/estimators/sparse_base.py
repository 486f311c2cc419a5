"""What the sparse machines share: from data to a basis, a machine on it, and the same at every smaller size."""

from __future__ import annotations

from dataclasses import replace
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions

from slimsvm.basis import (
    Cholesky,
    Given,
    Greedy,
    KMeans,
    Margin,
    Pursuit,
    PursuitRows,
    Random,
    Unsupervised,
)
from slimsvm.estimators.base import finite
from slimsvm.estimators.sparse_path import (
    ALL,
    PathMachine,
    PathPoint,
    Training,
    distance_bound,
    sizes_up_to,
)
from slimsvm.expansion import Expansion
from slimsvm.kernels import FromCallable, Kernel, make_kernel
from slimsvm.losses import Loss
from slimsvm.oracles import LossOracle
from slimsvm.problems.columns import KernelColumns
from slimsvm.problems.subspace import Subspace
from slimsvm.row_hashes import codes, distinct
from slimsvm.rows import MemoryRows
from slimsvm.run import Record, run
from slimsvm.solvers.cutting_plane import CuttingPlane, OneSlack
from slimsvm.solvers.decomposition import EXACT
from slimsvm.solvers.kernel_newton import AllRows, KernelNewton
from slimsvm.solvers.newton import Newton, NewtonState
from slimsvm.solvers.pursuit import pursue
from slimsvm.solvers.refine import refine, solve
from slimsvm.solvers.spaces import SubspaceSpace
from slimsvm.tiles import in_memory, ready

Array = NDArray[Any]
# rows that are enough to grow a basis on, if it will be refined on all of them: at least so many, and so many for each vector
# (ijcnn1, 50 vectors, path included: 98.47 % after growing on 5,000 rows and on all 49,990, 98.35 % on 22,700; four seeds, three for the
# last; seeds differ by 0.1, so that these are no different)
GROWING, GROWING_A_VECTOR = 5_000, 25
EXACT_TOL, EXACT_CUTS_TOL = (
    1e-16,
    1e-12,
)  # relative gap for few rows, by Newton's method and by cutting planes
SATURATED = 0.2  # of accuracy_loss: gained less than this at two sizes in a row, n_basis='auto' looks no further
SMALLER_SIZES = 0.5  # of the tolerance, for the refinement at the smaller sizes of a path
# of the tolerance, for the refinement at the size asked for. Accuracy on a sixth of the training rows and CPU seconds at 0.14, 0.07 and 0.035:
# mnist {0..4} vs {5..9}, 60 vectors, 98.42, 98.47, 98.57 % in 24, 31, 40 s; ijcnn1, 50 vectors, 98.19, 98.18, 98.20 % in 3.2, 3.3, 4.1 s
LAST_SIZE = 0.035
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
NEED_CURVATURE = ("greedy", "margin", ALL)  # chosen by what Newton's method knows


class SparseMachine(PathMachine):
    """Base of SparseSVC and SparseSVR."""

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **PathMachine._parameter_constraints,
        "n_basis": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"})],
        "basis": [StrOptions({*BASES, "all"}), "array-like", "sparse matrix"],
        "refine": ["boolean", StrOptions({"auto"})],
        "fit_intercept": ["boolean"],
        "max_basis": [Interval(Integral, 1, None, closed="left")],
        "accuracy_loss": [Interval(Real, 0.0, 1.0, closed="both")],
        "validation_fraction": [Interval(Real, 0.0, 1.0, closed="neither"), None],
    }

    # -- the plan -----------------------------------------------------------------------------------------------------------------------

    def _refines(self, loss: Loss, kernel: Kernel) -> bool:
        """Whether the basis vectors are moved; complains if that was asked for and is impossible."""
        others = (
            "'squared_hinge', 'smooth_hinge' or 'least_squares'"
            if loss.takes_labels
            else "'squared_epsilon_insensitive'"
        )
        if isinstance(self.basis, str) and self.basis in NEED_CURVATURE and not loss.differentiable:
            raise ValueError(
                f"basis={self.basis!r} needs a loss with a curvature, which loss={self.loss!r} has not; use {others}, or another basis, "
                "such as 'pursuit' or 'cholesky'."
            )
        able = loss.differentiable and kernel.differentiable
        if self.refine == "auto":
            return able and isinstance(self.basis, str) and self.basis != ALL
        if self.refine and isinstance(self.basis, str) and self.basis == ALL:
            raise ValueError(
                "refine=True has nothing to move with basis='all': the machine is exact; use refine=False, or another basis."
            )
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
        return Given(self.basis).size

    def _train(self, X: Any, target: Array, weight: Array, held_out: Any) -> None:
        """Find basis and coefficients for the rows X (all of positive weight); sets the fitted attributes."""
        loss = self._loss()
        kernel = make_kernel(self.kernel, gamma=self.gamma, degree=self.degree, coef0=self.coef0)
        kernel = (
            kernel
            if isinstance(kernel, FromCallable)
            else kernel.resolve(MemoryRows(X, weight=weight))
        )
        refines, last = self._refines(loss, kernel), self._last_basis(X, target)
        self.kernel_ = kernel
        with self._fitting() as fit:
            n = X.shape[0]
            rows = finite(ready(kernel, X, dtype=np.float64 if n <= EXACT else None))
            candidates = distinct(X)
            wanted = self._wanted()
            everything = (
                isinstance(self.basis, str)
                and self.basis != ALL
                and self.n_basis != "auto"
                and candidates.size <= wanted
            )
            wanted = min(candidates.size, wanted) if isinstance(self.basis, str) else wanted
            T = Training(
                rows,
                target,
                float(self.C) * weight,
                loss,
                candidates,
                [wanted] if everything else sizes_up_to(wanted),
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
        """The basis of the last fit, if this one is to go on from it; a basis that is given is taken as it is."""
        if (
            not self.warm_start
            or not isinstance(self.basis, str)
            or not hasattr(self, "basis_coef_")
        ):
            return None
        fits = self.basis_.shape[1] == X.shape[1] and self.basis_coef_.shape[1] == target.shape[1]
        return self.basis_ if fits else None

    # -- 1. the vectors to begin with ---------------------------------------------------------------------------------------------------

    def _first_vectors(
        self, T: Training, X: Any, columns: KernelColumns, weight: Array, last: Any
    ) -> tuple[Any, Array | None]:
        """Vectors that are known before any training, in the coordinates of the rows; None where pursuit finds them."""
        if T.everything:
            order = T.candidates[in_order(X[T.candidates])]
            return T.rows.X[order], order
        if last is not None:
            return columns.in_rows_coordinates(last), None
        if not isinstance(self.basis, str):
            selection = Given(self.basis).select(
                columns, None, None, T.sizes[-1], T.rng, T.candidates
            )
        elif self.basis in ONE_SHOT:
            chooser: Any = (
                KMeans(sample_weight=weight) if self.basis == "kmeans" else BASES[self.basis]()
            )
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
            self._add_point(
                T, *self._solved(replace(grown, columns=columns.first(size)), tol), indices
            )
            if self._enough(T):
                return
        if vectors is not None and (
            T.everything or last is None
        ):  # nothing grows; what was refused is not replaced
            if not T.points or T.points[-1].n_basis < known:
                self._add_point(T, *self._solved(grown, tol), indices)
            return
        choose = BASES[self.basis]()
        sizes = [size for size in T.sizes if size > known]
        for point in pursue(
            grown,
            choose,
            sizes,
            T.candidates,
            T.rng,
            tol=tol,
            limits=T.fit.limits,
            watchers=T.fit.watchers,
        ):
            self._add_point(T, grown, point.state, point.indices if known == 0 else None)
            if self._enough(T):
                return

    def _train_all(self, T: Training, X: Any) -> None:
        """The exact machine, over all rows; its basis is the rows that the loss feels."""
        problem = AllRows(
            in_memory(T.rows, n_threads=T.fit.threads),
            T.rows.frame,
            T.target,
            T.weight,
            T.loss,
            bool(self.fit_intercept),
            self.max_memory,
        )
        if problem.blur() > float(self.tol):  # float32 would hide what was asked for
            T.rows = ready(self.kernel_, X, dtype=np.float64)
            problem.rows, problem.frame = in_memory(T.rows, n_threads=T.fit.threads), T.rows.frame
        solver = KernelNewton(seed=int(T.rng.integers(2**31 - 1)))
        tol = EXACT_TOL if T.rows.n <= EXACT else float(self.tol)
        max_iter = int(self.max_iter) if self.max_iter > 0 else 1000
        result = run(
            solver,
            problem,
            tol=tol,
            max_iter=max_iter,
            limits=T.fit.limits,
            watchers=T.fit.watchers,
        )
        model, certificate = result.model, result.certificate
        felt = np.flatnonzero(model.coef.any(axis=1))
        basis = X[felt]
        score = self._score(model.scores, T.target, T.weight)
        f = Expansion(
            self.kernel_, basis, model.coef[felt], model.intercept, exact=T.rows.dtype == np.float64
        )
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
        labelled = in_memory(rows, target, weight, T.fit.threads)
        columns = KernelColumns(labelled, rows.frame, T.sizes[-1], self.max_memory)
        return Subspace(columns, T.loss, bool(self.fit_intercept))

    def _add_point(
        self, T: Training, problem: Subspace, state: NewtonState, indices: Array | None
    ) -> None:
        """Refine, if that is wanted, and keep the machine of this size."""
        columns, m = problem.columns, problem.columns.m
        T.n_iter += state.n_iter
        if T.refined and m:
            labelled = in_memory(T.rows, T.target, T.weight, T.fit.threads)
            whole = Subspace(
                KernelColumns(labelled, T.rows.frame, m, self.max_memory),
                T.loss,
                bool(self.fit_intercept),
            )
            left = len([size for size in T.sizes if size >= m])
            moved = refine(
                whole,
                columns.vectors,
                (state.coef, state.intercept),
                tol=float(self.tol)
                * (LAST_SIZE if m == T.sizes[-1] and self.n_basis != "auto" else SMALLER_SIZES),
                max_iter=int(self.max_iter) if self.max_iter > 0 else 1000,
                limits=T.fit.limits.part(left) if self.max_time is not None else T.fit.limits,
                rng=T.rng,
                score=self._held_out_score(T, whole),
                rough=self.n_basis != "auto" and m < T.sizes[-1],
                watchers=T.fit.watchers,
            )
            problem, columns, state, indices = whole, whole.columns, moved.state, None
            T.n_iter += moved.n_evaluations
        gradient = (
            np.abs(T.weight[:, None] * T.loss.gradient(T.target, state.scores))
            if problem.columns.n == T.rows.n
            else None
        )
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
            distance_bound(T, state.objective, state.gap, outside, outside),
        )

    def _held_out_score(self, T: Training, problem: Subspace) -> Any:
        if T.held_out is None:
            return None
        return lambda vectors, solution: self._validation(
            T,
            Expansion(
                self.kernel_,
                problem.columns.in_given_coordinates(vectors),
                solution.coef,
                solution.intercept,
                exact=False,
            ),
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
        columns = KernelColumns(
            in_memory(T.rows, n_threads=T.fit.threads),
            T.rows.frame,
            T.sizes[-1],
            self.max_memory,
        )
        oracle = LossOracle(T.loss, T.target, T.weight, T.fit.threads)
        solver, scaling = CuttingPlane(), np.inf if self.fit_intercept else 0.0
        vectors, indices = self._first_vectors(T, X, columns, T.weight, last)
        if vectors is not None:
            accepted = np.flatnonzero(columns.append(vectors))
            indices = None if indices is None else indices[accepted]
        grows = vectors is None or (
            last is not None and columns.m < T.sizes[-1] and not T.everything
        )
        growth = Growth(BASES[self.basis](), T.rng, T.candidates) if grows else None
        limits = {
            "tol": EXACT_CUTS_TOL if T.rows.n <= EXACT else float(self.tol),
            "max_iter": int(self.max_iter),
            "limits": T.fit.limits,
        }
        problem = OneSlack(SubspaceSpace(columns, growth), oracle, scaling)
        state: Any = None
        points: list[
            tuple[KernelColumns, Any, Array | None, tuple[float | None, float | None]]
        ] = []
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
            points.append(
                (
                    problem.space.columns,
                    result.model,
                    indices,
                    distance_bound(T, result.model.objective, state.gap, *outside),
                )
            )
        for some, model, which, bound in reversed(points):
            gap = np.maximum(0.0, model.objective - model.lower_bound)
            self._keep(
                T,
                some,
                model.coef,
                model.intercept,
                model.scores,
                model.objective,
                gap,
                which,
                bound,
            )


class Growth:
    """Gives the cutting-plane driver vectors for each new cut, and remembers which rows they were.

    One at a time, or a share of those there are, if that is more.
    """

    def __init__(
        self, choose: Any, rng: np.random.Generator, candidates: Array, share: float = 0.0
    ) -> None:
        self.choose, self.rng, self.candidates, self.share = choose, rng, candidates, share
        self._found: list[int] = []
        self._offered: Array | None = None

    def __call__(self, columns: KernelColumns, row_weights: Array, basis_weights: Array) -> Any:
        """Vectors for the residual."""
        self._note(columns)
        n_new = min(max(1, int(self.share * columns.m)), columns.max_basis - columns.m)
        selection = self.choose.select(
            columns, row_weights, basis_weights, n_new, self.rng, self.candidates
        )
        self._offered = selection.indices if selection.n else None
        return selection.vectors

    def _note(self, columns: KernelColumns) -> None:
        """Which of the vectors that were offered last were accepted."""
        if self._offered is not None:
            self._found.extend(self._offered[: columns.accepted.size][columns.accepted].tolist())
        self._offered = None

    def indices(self, columns: KernelColumns) -> Array | None:
        """The rows that joined, if all vectors are rows."""
        self._note(columns)
        return np.array(self._found) if columns.m and len(self._found) == columns.m else None


def in_order(X: Any) -> Array:
    """An order of distinct rows that does not depend on the order they came in, nor on whether they are sparse."""
    return np.argsort(codes(X))
