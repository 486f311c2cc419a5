"""What estimators share whose dual problem is solved by decomposition."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state, column_or_1d
from sklearn.utils.validation import check_consistent_length

from slimsvm.declarations import Attribute, attribute
from slimsvm.ending import REASONS, Ending, warn
from slimsvm.estimators.fitting import Classifier, Estimator
from slimsvm.expansion import dense
from slimsvm.kernels import FromCallable, Kernel, Precomputed
from slimsvm.models.support import SupportVectors
from slimsvm.multiclass import OneVsOne, Part
from slimsvm.problems.dual_qp import DualQP
from slimsvm.rows import MemoryRows
from slimsvm.run import Limits, Result, run
from slimsvm.solvers.decomposition import Decomposition
from slimsvm.solvers.dual_state import FIRST
from slimsvm.threads import local
from slimsvm.tiles import Operand
from slimsvm.training import Data, Fit, checked_weights, is_table, refuse_large_C, refuse_targets

Array = NDArray[Any]
LARGEST_SEED = 2**31 - 1
# scikit-learn's words, and what is so
AS_LIBSVM = {
    "max_iter": "Solver terminated early (max_iter={max_iter}).  Consider pre-processing your data "
    "with StandardScaler or MinMaxScaler. " + REASONS["max_iter"]
}
# rows from which on it is quicker to let them join one after the other
QUICKER = 150_000
MANY = 40_000
ENDLESS = 1e10  # C=inf: LIBSVM's own iterations end by rounding errors, too


class DualEstimator(SupportVectors, Estimator):
    """Support vectors by decomposition, and a start from the last fit on the same rows.

    Attributes
    ----------
    _fingerprint
        Of the rows of the last fit, for warm_start.
    """

    fitted: ClassVar[tuple[Attribute, ...]] = (attribute("_fingerprint", "text", optional=True),)
    # of those that have no such parameter
    shrinking = True
    cache_size: float = 200.0
    warm_start = False
    solver: Any = None
    random_state: Any = None

    # -- rows that are not numbers: a function that is the kernel may take anything ----------------

    def _checked(
        self, X: Any, y: Any, sample_weight: Any, reset: bool = True
    ) -> tuple[Any, Any, Array]:
        self.__dict__.pop("_objects", None)
        function = callable(self.kernel) and not isinstance(self.kernel, Kernel)
        if function and not is_table(X):
            return self._checked_objects(X, y, sample_weight)
        return super()._checked(X, y, sample_weight, reset)

    def _checked_objects(self, X: Any, y: Any, weight: Any) -> tuple[Any, Any, Array]:
        """The kernel values of all pairs in place of the rows, which are kept for predictions."""
        self._validate_params()
        if self._takes_target:
            check_consistent_length(X, y)
            y = column_or_1d(y, warn=True)
            if self._numeric_target:
                refuse_targets(y)
        for name in ("n_features_in_", "feature_names_in_"):
            self.__dict__.pop(name, None)
        K = FromCallable(self.kernel).block(X, X, np.float64)
        self._objects = X
        weight = checked_weights(weight, K, drop_negative=self._as_libsvm)
        refuse_large_C(getattr(self, "C", None), weight, self._largest_C)
        return K, y if self._takes_target else None, weight

    def _kernel_for(self, X: Any, weight: Array) -> Kernel:
        return Precomputed() if hasattr(self, "_objects") else super()._kernel_for(X, weight)

    def _new_rows(self, X: Any) -> Any:
        if hasattr(self, "_objects"):
            X = FromCallable(self.kernel).block(X, self._objects, np.float64)
        return super()._new_rows(X)

    def _ending(self, results: list[Result], fit: Fit, **about: Any) -> Ending:
        waiting = sum(getattr(result.model, "n_waiting", 0) for result in results)
        if waiting:
            some = f", where {waiting:,} rows had not been looked at yet"
            about["further"] = some + str(about.get("further", ""))
        return super()._ending(results, fit, **{"begins": AS_LIBSVM, **about})

    @property
    def _finite_C(self) -> float:
        """C, or one that allows no error where there need be none."""
        return min(float(self.C), ENDLESS)

    @property
    def _cache_bytes(self) -> float:
        return float(self.cache_size) * 2**20

    def _decomposed(
        self, problem: DualQP, fit: Fit, limits: Limits, start: Any = None, solver: Any = None
    ) -> Result:
        """The problem, solved; ``start`` is made feasible."""
        return run(
            solver or self.solver or self._usual_solver(problem, limits),
            problem,
            tol=float(self.tol),
            max_iter=int(self.max_iter),
            limits=limits,
            start=None if start is None else problem.feasible(start),
            watchers=fit.watchers,
        )

    def _usual_solver(self, problem: DualQP, limits: Limits) -> Decomposition:
        """Rows join one after the other where time may run out, or where that is quicker."""
        n, shrinking = problem.gram.n, bool(self.shrinking)
        may_end = limits.max_time is not None or getattr(local, "keeper", None) is not None
        if n >= QUICKER or (may_end and n >= 2 * FIRST):
            rng = check_random_state(0 if self.random_state is None else self.random_state)
            seed = int(rng.randint(LARGEST_SEED))
            from slimsvm.solvers.nested import Nested

            # a few stages fewer, where there are many rows and their values are cheap
            first = 2 * FIRST if n >= MANY and problem.gram.cheap else FIRST
            return Nested(first=first, shrinking=shrinking, seed=seed)
        return Decomposition(shrinking=shrinking)

    def _last_coef(self, data: Data, target: Array | None) -> Array | None:
        """With warm_start, the coefficients of the last fit if it saw the same; all rows."""
        if not self.warm_start:
            return None
        seen = MemoryRows(data.X, target, data.sample_weight).fingerprint()
        data.about["_fingerprint"] = seen
        if not hasattr(self, "dual_coef_"):
            return None
        if getattr(self, "_fingerprint", seen) != seen:
            warn(
                "warm_start=True, but rows, labels or weights differ from those of the last fit: "
                "it begins anew.",
                UserWarning,
            )
        if getattr(self, "_fingerprint", None) != seen:
            return None
        coef = np.zeros((self.dual_coef_.shape[0], data.X.shape[0]))
        coef[:, self.support_] = dense(self.dual_coef_)
        return coef

    def _hold(self, data: Data, coef: Array, label: Array | None, intercept: Array) -> None:
        super()._hold(data, coef, label, intercept)
        self.__dict__.pop("_fingerprint", None)
        self.__dict__.update(data.about)


class PairwiseClassifier(DualEstimator, Classifier):
    """Several classes as pairs that vote; a subclass says how a pair is trained."""

    scheme: ClassVar[Any] = OneVsOne

    def _train(self, part: Part, data: Data, fit: Fit, limits: Limits, shared: Any) -> Result:
        """One pair."""
        raise NotImplementedError

    def _shared(self, parts: list[Part], data: Data, fit: Fit) -> Any:
        """What all pairs need; and what must be refused before any of them is trained."""

    def _small(self, part: Part, shared: Any) -> bool:
        """Whether a pair is trained beside others, on one thread."""
        return True

    def _seeds(self, parts: list[Part]) -> Array:
        """A seed for each pair, drawn before any of them is trained."""
        rng = check_random_state(self.random_state)
        return np.asarray(rng.randint(LARGEST_SEED, size=len(parts)))

    def _pair(self, part: Part, data: Data) -> tuple[Operand, Array, Array]:
        """The rows of a pair, their signs, and the upper bounds of their dual variables."""
        rows = part.rows
        operand = data.rows if data.classes.size == 2 else data.rows.take(rows)
        return operand, part.sign(rows), self._finite_C * data.weight[rows]

    def _solved(self, data: Data, fit: Fit) -> list[Result]:
        parts = OneVsOne(data.classes.size).parts(data.target)
        shared = self._shared(parts, data, fit)

        def train(part: Part, limits: Limits) -> Result:
            return self._train(part, data, fit, limits, shared)

        return OneVsOne.trained(parts, train, fit, lambda part: self._small(part, shared))

    def _point(self, result: Result) -> tuple[Array, float]:
        """The dual point and the intercept of a solved pair, in units of the decision function."""
        return result.model.a, -result.model.level[0]

    def _concluded(self, data: Data, solved: list[Result], fit: Fit) -> Ending:
        scheme = OneVsOne(data.classes.size)
        points = [self._point(result) for result in solved]
        duals = [a for a, _ in points]
        coef = scheme.laid_out(scheme.parts(data.target), duals, data.target.size)
        self.classes_, self.class_weight_ = data.classes, data.factors
        self._hold(data, coef, data.target, np.array([intercept for _, intercept in points]))
        steps = [result.n_iter for result in solved]
        self.n_iter_ = np.array(steps, np.int32 if max(steps) < 2**31 else np.int64)
        return self._ending(solved, fit)
