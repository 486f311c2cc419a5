"""What structural machines share: from rows and outputs to a problem, its space and its solver; and prediction.

The problem and its column layout are in :mod:`slimsvm.solvers.joint`, the solvers in :mod:`slimsvm.solvers.cutting_plane` and
:mod:`slimsvm.solvers.sampled_cuts`. An oracle says what an output is; the space says what a function is.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted, validate_data

from slimsvm.basis import Given, KMeans
from slimsvm.estimators.base import Fit, finite
from slimsvm.estimators.basis_machine import BasisMachine
from slimsvm.estimators.sparse_base import BASES, NEED_CURVATURE, ONE_SHOT, Growth, in_order
from slimsvm.kernels import FromCallable, Linear, make_kernel, squared_norms
from slimsvm.oracles.structured import Encoded, StructuredOracle
from slimsvm.problems.columns import DEFAULT_MEMORY, KernelColumns
from slimsvm.row_hashes import distinct
from slimsvm.rows import MemoryRows
from slimsvm.run import Result, Status, run
from slimsvm.solvers.cutting_plane import CuttingPlane, OneSlack
from slimsvm.solvers.decomposition import EXACT
from slimsvm.solvers.joint import JointRisk, JointSpace
from slimsvm.solvers.sampled_cuts import CONSTANT, LINEAR, SampledCuts
from slimsvm.solvers.sampled_space import SampledSpace
from slimsvm.solvers.spaces import ExplicitSpace, KernelSpace, SubspaceSpace
from slimsvm.threads import n_threads
from slimsvm.tiles import Operand, in_memory, kernel_values, ready

Array = NDArray[Any]
LARGEST = 1e16  # of C times a weight: beyond, |w|^2 is lost in the rounding errors of the losses
EXACT_TOL = 1e-12  # relative gap for few rows
SAMPLE_ERROR = (
    1e-3  # of a kernel value, relative to the largest: a sample of thousands has ten times as much
)
# of the basis: so many vectors join with one cut, since a function of many labels needs many vectors. Satimage, 500 of them: 196 rounds and not
# 590, and a lower objective
GROWTH = 1 / 16
SPACES = ("explicit", "kernel", "sampled", "subspace")
CHOICES = tuple(name for name in BASES if name not in NEED_CURVATURE)


@dataclass
class Found:
    """What a space has to say of the function found: vectors, coefficients (m, columns), intercepts, linear part."""

    result: Result
    coef: Array
    intercept: Array
    linear: Array
    basis: Any = None
    indices: Array | None = None
    projection_error: float | None = None
    bound: float | None = None


class StructuralMachine(BasisMachine):
    """Base of StructuralSVM and its fronts."""

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **{
            name: values
            for name, values in BasisMachine._parameter_constraints.items()
            if name != "warm_start"
        },
        "space": [StrOptions({"auto", *SPACES})],
        "sampling": [StrOptions({LINEAR, CONSTANT})],
        "sample_size": [Interval(Integral, 1, None, closed="left")],
        "n_basis": [Interval(Integral, 1, None, closed="left")],
        "basis": [StrOptions(set(CHOICES)), "array-like", "sparse matrix"],
        "fit_intercept": ["boolean"],
        "line_search": ["boolean"],
    }

    classes_: Array
    oracle_: StructuredOracle
    linear_: Array
    space_: str

    # -- training -----------------------------------------------------------------------------------------------------------------------

    def _train(
        self,
        X: Any,
        Y: Any,
        weight: Array,
        oracle: StructuredOracle,
        lengths: Array | None = None,
        factors: Array | None = None,
    ) -> None:
        """Train on rows X and outputs Y, examples of these weights (all positive); sets the fitted attributes.

        ``factors`` of the weights are those of classes, which say nothing about the scale of the rows.
        """
        oracle = clone(oracle)
        true = oracle.encode(Y, X.shape[0], lengths)
        kernel = make_kernel(self.kernel, gamma=self.gamma, degree=self.degree, coef0=self.coef0)
        of_parts = (
            np.repeat(weight, np.diff(true.offsets))
            if weight.size == true.offsets.size - 1
            else np.ones(X.shape[0])
        )
        self.kernel_ = (
            kernel
            if isinstance(kernel, FromCallable)
            else kernel.resolve(MemoryRows(X, weight=of_parts))
        )
        if factors is not None:
            weight, of_parts = weight * factors, of_parts * factors
        self.space_ = self._chosen_space(X.shape[0], true.offsets.size - 1, oracle)
        self.oracle_, self.classes_ = oracle, true.classes
        if (
            sp.issparse(X) and not X.has_canonical_format
        ):  # products of SciPy add up entries written in parts, in the caller's matrix
            X = X.copy()
            X.sum_duplicates()
        with self._fitting() as fit:
            risk = JointRisk(oracle, true.labels, true.offsets, self._scaled(weight), fit.threads)
            found = getattr(self, f"_in_{self.space_}")(X, risk, of_parts, fit)
        self._store(X, found, fit)

    _largest_C: ClassVar[float] = np.inf  # larger ones are as good as LARGEST here, see below

    def _scaled(self, weight: Array) -> Array:
        """C times the weights, within what float64 can tell apart."""
        if float(self.C) <= LARGEST / float(weight.max()):
            return float(self.C) * weight
        warnings.warn(
            f"C={self.C:g} is so large that float64 cannot tell it from {LARGEST:g}, which is used instead; such a machine allows no errors.",
            ConvergenceWarning,
            stacklevel=5,
        )
        return weight * (LARGEST / float(weight.max()))

    def _chosen_space(self, n: int, n_examples: int, oracle: StructuredOracle) -> str:
        linear = isinstance(self.kernel_, Linear)
        if self.space == "explicit" and not linear:
            raise ValueError(
                f"space='explicit' is for kernel='linear': {self.kernel_!r} has no list of features. Use 'sampled' or 'subspace'."
            )
        if self.space == "sampled" and oracle.one_example:
            raise ValueError(
                f"space='sampled' draws examples, but to {oracle.name} the whole set is one example; use space='subspace', or 'explicit' with "
                "kernel='linear'."
            )
        needed = 8 * n**2 / 2**20
        if self.space == "kernel" and needed > (
            DEFAULT_MEMORY if self.max_memory is None else float(self.max_memory)
        ):
            raise ValueError(
                f"space='kernel' needs {needed:,.0f} megabytes for the kernel values of {n:,} rows; allow them with max_memory, or use "
                "'sampled' or 'subspace'."
            )
        if self.space == "sampled" and n_examples <= self.sample_size and n <= EXACT:
            return "kernel"  # every cut would be exact
        if self.space != "auto":
            return str(self.space)
        if linear:
            return "explicit"
        return "kernel" if n <= EXACT else "subspace" if oracle.one_example else "sampled"

    # -- in each space ------------------------------------------------------------------------------------------------------------------

    def _rng(self) -> np.random.Generator:
        return np.random.default_rng(check_random_state(self.random_state).randint(2**31 - 1))

    def _joint(self, space: Any, risk: JointRisk) -> OneSlack:
        return OneSlack(
            JointSpace(space, risk.width, risk.n_linear, float(bool(self.fit_intercept))), risk, 0.0
        )

    def _solved(
        self, solver: CuttingPlane, problem: OneSlack, fit: Fit, state: Any = None
    ) -> Result:
        few = problem.oracle.n_parts <= EXACT and self.space_ != "sampled"
        tol = min(float(self.tol), EXACT_TOL) if few else float(self.tol)
        result = run(
            solver,
            problem,
            tol=tol,
            max_iter=int(self.max_iter),
            limits=fit.limits,
            start=state,
            watchers=fit.watchers,
        )
        result.certificate = replace(result.certificate, tol=float(self.tol))
        return result

    def _in_explicit(self, X: Any, risk: JointRisk, weight: Array, fit: Fit) -> Found:
        with np.errstate(over="ignore"):
            finite(Operand(self.kernel_, X, squared_norms(X)))
        problem = self._joint(
            ExplicitSpace(
                MemoryRows(
                    X.astype(np.float64) if X.shape[0] <= EXACT else X, n_threads=fit.threads
                )
            ),
            risk,
        )
        result = self._solved(
            CuttingPlane(line_search=bool(self.line_search), keep_rows=False), problem, fit
        )
        W, space = result.model.coef[:, 0], problem.space
        return Found(result, space.by_label(W), space.intercepts(W), W[: risk.n_linear])

    def _in_kernel(self, X: Any, risk: JointRisk, weight: Array, fit: Fit) -> Found:
        finite(ready(self.kernel_, X))
        K = kernel_values(self.kernel_, X, X, dtype=np.float64, n_threads=fit.threads)
        problem = self._joint(KernelSpace(0.5 * (K + K.T)), risk)
        result = self._solved(
            CuttingPlane(line_search=bool(self.line_search), keep_rows=False), problem, fit
        )
        W, space = result.model.coef[:, 0], problem.space
        coef = space.by_label(W)
        felt = np.flatnonzero(coef.any(axis=1))
        return Found(result, coef[felt], space.intercepts(W), W[: risk.n_linear], X[felt], felt)

    def _in_sampled(self, X: Any, risk: JointRisk, weight: Array, fit: Fit) -> Found:
        rows, linear_time = finite(self._sample_rows(X)), self.sampling == LINEAR
        scaling = float(bool(self.fit_intercept))
        space = SampledSpace(
            in_memory(rows, n_threads=fit.threads),
            rows.frame,
            risk.width,
            risk.n_linear,
            scaling,
            linear_time,
            self.max_memory,
        )
        seed = int(self._rng().integers(2**31 - 1))
        solver = SampledCuts(
            line_search=bool(self.line_search),
            sampling=self.sampling,
            sample_size=int(self.sample_size),
            seed=seed,
        )
        result = self._solved(solver, OneSlack(space, risk, 0.0), fit)
        model = result.model
        return Found(
            result, model.coef, model.intercept, model.linear, X[model.indices], model.indices
        )

    def _sample_rows(self, X: Any) -> Any:
        """In float32 wherever its errors are small against those of a sample; products of cuts are in float32 anyway."""
        rows = ready(self.kernel_, X, dtype=np.float32)
        largest = (
            float(np.abs(rows.diag()).max())
            if rows.sq is not None and np.isfinite(rows.sq).all()
            else 0.0
        )
        safe = largest > 0.0 and rows.error() <= SAMPLE_ERROR * largest
        return rows if safe else ready(self.kernel_, X)

    def _in_subspace(self, X: Any, risk: JointRisk, weight: Array, fit: Fit) -> Found:
        rows = finite(ready(self.kernel_, X, dtype=np.float64 if X.shape[0] <= EXACT else None))
        candidates, rng = distinct(X), self._rng()
        given = not isinstance(self.basis, str)
        wanted = Given(self.basis).size if given else min(candidates.size, int(self.n_basis))
        columns = KernelColumns(
            in_memory(rows, n_threads=fit.threads), rows.frame, wanted, self.max_memory
        )
        growth, indices = None, None
        if not given and wanted == candidates.size:
            indices = candidates[in_order(X[candidates])]
            indices = indices[np.flatnonzero(columns.append(rows.X[indices]))]
        elif given or self.basis in ONE_SHOT:
            choose: Any = (
                Given(self.basis)
                if given
                else KMeans(sample_weight=weight)
                if self.basis == "kmeans"
                else BASES[self.basis]()
            )
            selection = choose.select(columns, None, None, wanted, rng, candidates)
            accepted = np.flatnonzero(columns.append(selection.vectors))
            indices = None if selection.indices is None else selection.indices[accepted]
        else:
            growth = Growth(BASES[self.basis](), rng, candidates, GROWTH)
        problem = self._joint(SubspaceSpace(columns, growth), risk)
        solver = CuttingPlane(
            line_search=bool(self.line_search), keep_rows=growth is not None or X.shape[0] <= EXACT
        )
        state = solver.init(problem)
        result = self._solved(solver, problem, fit, state)
        W, space = result.model.coef[:, 0], problem.space
        coef = columns.coefficients(space.by_label(W)) if columns.m else np.empty((0, risk.width))
        basis = columns.in_given_coordinates() if columns.m else np.empty((0, X.shape[1]))
        basis = basis.astype(np.float32) if rows.dtype == np.float32 else basis
        indices = indices if growth is None else growth.indices(columns)
        found = Found(result, coef, space.intercepts(W), W[: risk.n_linear], basis, indices)
        if solver.keep_rows and columns.m:
            found.projection_error, found.bound = self._outside(problem, solver, state, columns)
        return found

    @staticmethod
    def _outside(
        problem: OneSlack, solver: CuttingPlane, state: Any, columns: KernelColumns
    ) -> tuple[float, float]:
        """How much of a cut lies outside of the span, and how far the exact machine can be; see ``_bound`` of the sparse machines."""
        risk = problem.oracle
        distances = np.concatenate(
            [np.repeat(columns.distances(), risk.width), np.zeros(risk.n_linear)]
        )
        largest, together = (float(value[0]) for value in solver.outside(problem, state, distances))
        here = min(
            0.5 * together**2, largest * float(np.sqrt(2.0 * max(float(state.objective[0]), 0.0)))
        )
        return largest / float(risk.weight.sum()), float(state.gap[0]) + here

    # -- what comes out -----------------------------------------------------------------------------------------------------------------

    def _store(self, X: Any, found: Found, fit: Fit) -> None:
        result = found.result
        self.certificate_ = replace(
            result.certificate, projection_error=found.projection_error, bound=found.bound
        )
        self.linear_, self.intercept_ = np.array(found.linear), np.array(found.intercept)
        self.__dict__.pop("coef_", None)
        if self.space_ == "explicit":
            self.coef_ = np.ascontiguousarray(found.coef.T)
        self.basis_ = found.basis if found.basis is not None else np.empty((0, X.shape[1]))
        self.basis_coef_ = (
            found.coef if found.basis is not None else np.empty((0, found.coef.shape[1]))
        )
        self.basis_indices_, self.n_basis_ = found.indices, int(self.basis_.shape[0])
        self.n_iter_, self.history_ = result.n_iter, result.history
        self._make()
        self._report(result, fit)

    def _report(self, result: Result, fit: Fit) -> None:
        """Sets status_ and fit_status_; warns where the tolerance was not reached."""
        certificate, tol = self.certificate_, float(self.tol)
        reason = "converged" if certificate.holds else result.status.reason
        if reason == "converged" and not certificate.holds:
            reason = "stalled"
        text = f"the relative duality gap is {certificate.violation:.2g}, with tol={tol:g}"
        if self.space_ == "sampled":
            text = f"the last cut is violated by {certificate.violation:.2g} of the mean loss, with tol={tol:g}"
        words = {
            "converged": f"Converged: {text}.",
            "stalled": f"Stopped because rounding errors hide any further progress: {text}. Scale the features, or use a smaller C.",
            "max_iter": f"Stopped at max_iter={self.max_iter} before the tolerance was reached: {text}.",
            "max_time": f"Stopped at max_time after {fit.limits.seconds:.1f} s: {text}.",
            "interrupted": f"Interrupted after {fit.limits.seconds:.1f} s: {text}.",
            "stopped": f"Stopped by a callback after {fit.limits.seconds:.1f} s: {text}.",
        }
        self.status_ = Status(reason, words[reason])
        self.fit_status_ = int(reason != "converged")
        if reason != "converged":
            warnings.warn(words[reason], ConvergenceWarning, stacklevel=4)

    # -- prediction ---------------------------------------------------------------------------------------------------------------------

    def _outputs(self, X: Any) -> Array:
        """Scores, (rows, columns)."""
        check_is_fitted(self)
        if self.space_ != "explicit":
            return super()._outputs(X)
        X = validate_data(
            self,
            X,
            dtype=[np.float64, np.float32],
            accept_sparse="csr",
            accept_large_sparse=True,
            reset=False,
        )
        return np.asarray(X @ self.coef_.T + self.intercept_, np.float64)

    def _best(self, scores: Array, offsets: Array) -> Array:
        """The predicted labels of all parts, as numbers."""
        return self.oracle_.best(scores, offsets, self.linear_, n_threads(self.n_jobs))

    def _mean_loss(self, true: Encoded, found: Array, weight: Array | None = None) -> float:
        """Of all examples, or of all parts where a loss is a sum over these."""
        losses = self.oracle_.losses(true.labels, found, true.offsets)
        weight = np.ones(losses.size) if weight is None else weight
        sizes = np.diff(true.offsets) if self.oracle_.per_part else np.ones(losses.size)
        return float(weight @ losses) / float(weight @ sizes)
