"""ReducedSVC: RSVM, with the four ways to train it."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.callback import with_callbacks
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, RealNotInt, StrOptions

from slimsvm.basis.selection import drawn
from slimsvm.estimators.base import Fit, finite, joined
from slimsvm.estimators.basis_machine import BasisMachine
from slimsvm.estimators.classification import class_factors, encoded, pair_labels, pair_values
from slimsvm.estimators.docs import described
from slimsvm.estimators.pairs import Pair
from slimsvm.kernels import FromCallable, make_kernel
from slimsvm.losses import LeastSquares, SmoothHinge, SquaredHinge
from slimsvm.problems.reduced import Reduced, SignedFeatures
from slimsvm.row_hashes import codes
from slimsvm.rows import MemoryRows
from slimsvm.run import Certificate, Limits, Result, Status, run
from slimsvm.solvers.chunking import Chunking
from slimsvm.solvers.decomposition import EXACT
from slimsvm.solvers.lagrangian import AcceleratedLagrangian, Lagrangian
from slimsvm.solvers.least_squares import LeastSquaresSystem
from slimsvm.solvers.smooth_newton import SmoothNewton
from slimsvm.threads import parallel
from slimsvm.tiles import Operand, in_memory, ready

Array = NDArray[Any]
FEWEST = 50  # basis vectors that a fraction of the rows stands for, at least, if there are so many
SMALL = 1 << 22  # kernel values of a pair up to which pairs are trained side by side, one a thread
EXACT_TOL, EXACT_STEPS = (
    1e-26,
    50,
)  # relative gap for few rows: half of a squared gradient, so 1e-13 in the coefficients


@dataclass
class Draw:
    """One pair of classes: its rows, and which of them are its basis."""

    pair: Pair
    rows: Array  # among all that count
    basis: Array  # places in ``rows``
    seed: int


@described
class ReducedSVC(ClassifierMixin, BasisMachine):
    """The reduced support vector machine (RSVM): random rows as the basis, and a penalty on their coefficients themselves.

    For two classes, with R a random set of rows, f(x) = sum_j coef_j k(r_j, x) + intercept minimises

        1/2 (|coef|^2 + intercept^2) + C sum_i weight_i max(0, 1 - y_i f(x_i))^2.

    The penalty is the plain norm of the coefficients, not that of the function in the space of the kernel, and includes the intercept. That
    makes any kernel good, and training simple; :class:`SparseSVC` reaches the same accuracy with far fewer vectors. Several classes are trained
    as pairs (one-vs-one), each with a basis of its own, and vote.

    Parameters
    ----------
    n_basis : int or float, default=0.1
        Number of rows in the basis of each pair of classes, at most that of all rows; or their share of the pair's rows, which stands for 50 at
        least. A pair with fewer distinct rows has all of them as its basis.
    C : float, default=1.0
        Weight of the errors.
    {kernel}
    solver : {{'smooth', 'least_squares', 'lagrangian', 'decomposition'}}, default='smooth'
        How the problem is solved. 'lagrangian' (LSVM, a fixed-point iteration in the dual) and 'decomposition' (working sets of dual variables
        that grow until they hold all support vectors) minimise the problem above; the former needs many steps for a large C. 'smooth'
        (SSVM) minimises a smooth version of it by Newton's method, which tends to it for large beta. 'least_squares' solves another problem,
        with (1 - y_i f(x_i))^2 in place of the squared hinge: rows far on their own side cost too. It takes one linear system, and is the
        fastest.
    beta : float, optional
        With solver='smooth', the sharpness of the smooth hinge, 5 by default: P(t) = t + log(1 + exp(-beta t)) / beta stands for max(0, t).
        With solver='lagrangian', the step of the iteration, which must be less than 1/C: then it is that of the paper. By default it is the
        same at 1/(2 C), with a metric that learns from its moves, which needs far fewer steps. The other solvers have none.
    class_weight : dict or 'balanced', optional
        Factors of C for each class.
    tol : float, default=1e-3
        Duality gap at the end, relative to the objective, for every pair; with solver='smooth', that of the smooth problem. Pairs of up to
        1,000 rows are then brought to near machine precision.
    max_iter : int, default=20000
        Limit on the steps for each pair: Newton's, those of the fixed-point iteration, or working sets; -1: none.
    max_time : float, optional
        Limit in seconds. At the limit, and at Ctrl-C, the best model so far is kept, with a ConvergenceWarning.
    max_memory : float, optional
        Megabytes for the kernel values of a pair; beyond, they are computed again in every pass. Default 2,000.
    decision_function_shape : {{'ovr', 'ovo'}}, default='ovr'
        Columns of the decision function for more than two classes: one a class, or one a pair.
    break_ties : bool, default=False
        Decide equal votes by the sums of the decision values.
    n_jobs : int, optional
        Threads: None is one unless a joblib context says otherwise, -1 all. The result does not depend on it.
    random_state : int, RandomState or None, default=None
        Draws the rows of the basis, and the first working set.
    verbose : bool, default=False
        Show a line of progress.

    Attributes
    ----------
    basis_ : array or CSR matrix of shape (m, n_features)
        The basis vectors, distinct rows; all pairs together.
    basis_indices_ : array of shape (m,)
        Which training rows they are.
    basis_coef_ : array of shape (m, outputs)
        Coefficients: one output for two classes, else one for each pair, zero for vectors that are not in its basis.
    intercept_ : array of shape (outputs,)
        Constants in the decision function.
    n_basis_ : int
        Number of basis vectors.
    classes_ : array
        The labels, sorted.
    class_weight_ : array
        Factor of C for each class.
    kernel_ : Kernel
        The kernel, with numbers for all its parameters.
    certificate_ : Certificate
        Objective and duality gap of all pairs together, of the problem that the solver minimises; its ``violation`` is the largest relative
        gap of a pair.
    status_ : Status
        Why the fit ended; ``str(status_)`` is a sentence.
    history_ : dict of arrays
        Seconds, objective, gap after every step.
    fit_status_ : int
        0 if the tolerance was reached.
    model_nbytes_ : int
        Bytes of the numbers that prediction needs.
    n_iter_ : array
        Steps of the solver, for each pair.
    n_features_in_ : int
        Number of features at fit.
    feature_names_in_ : array
        Their names, if X had names.

    See Also
    --------
    SparseSVC : With a basis that is learned, and the norm of the function as the penalty.

    References
    ----------
    .. [1] Y.-J. Lee, O. L. Mangasarian, "RSVM: Reduced support vector machines", 2001.
    .. [2] K.-M. Lin, C.-J. Lin, "A study on reduced support vector machines", 2003.

    Examples
    --------
    >>> from slimsvm import ReducedSVC
    >>> from slimsvm.datasets import checkers
    >>> X, y = checkers(2000, seed=0)
    >>> model = ReducedSVC(C=100.0, gamma=5.0, random_state=0).fit(X, y)
    >>> model.basis_.shape, model.certificate_.holds
    ((200, 2), True)
    >>> bool(model.score(X, y) > 0.9)
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **{
            name: values
            for name, values in BasisMachine._parameter_constraints.items()
            if name != "warm_start"
        },
        "n_basis": [
            Interval(Integral, 1, None, closed="left"),
            Interval(RealNotInt, 0.0, 1.0, closed="right"),
        ],
        "solver": [StrOptions({"smooth", "least_squares", "lagrangian", "decomposition"})],
        "beta": [Interval(Real, 0.0, None, closed="neither"), None],
        "class_weight": [StrOptions({"balanced"}), dict, None],
        "decision_function_shape": [StrOptions({"ovr", "ovo"})],
        "break_ties": ["boolean"],
    }

    classes_: Array
    class_weight_: Array

    def __init__(
        self,
        n_basis: int | float = 0.1,
        *,
        C: float = 1.0,
        kernel: Any = "rbf",
        gamma: float | str = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        solver: str = "smooth",
        beta: float | None = None,
        class_weight: Any = None,
        tol: float = 1e-3,
        max_iter: int = 20_000,
        max_time: float | None = None,
        max_memory: float | None = None,
        decision_function_shape: str = "ovr",
        break_ties: bool = False,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        self.n_basis = n_basis
        self.C = C
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.solver = solver
        self.beta = beta
        self.class_weight = class_weight
        self.tol = tol
        self.max_iter = max_iter
        self.max_time = max_time
        self.max_memory = max_memory
        self.decision_function_shape = decision_function_shape
        self.break_ties = break_ties
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    # -- training -----------------------------------------------------------------------------------------------------------------------

    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> ReducedSVC:
        """Train on rows X with labels y.

        Parameters
        ----------
        X : array, CSR matrix or DataFrame of shape (n_samples, n_features)
            Training rows.
        y : array of shape (n_samples,)
            Labels, numbers or strings.
        sample_weight : array of shape (n_samples,), optional
            Scales C for each row. Zero removes the row, an integer repeats it.

        Returns
        -------
        self
        """
        X, y, weight = self._checked(X, y, sample_weight)
        self._check_beta()
        classes, label, used = encoded(y, weight)
        if isinstance(self.n_basis, Integral) and int(self.n_basis) > used.size:
            raise ValueError(
                f"n_basis={self.n_basis} is more than the {used.size} rows with positive weight; use at most as many, or a share of them such "
                "as 0.1."
            )
        if used.size < label.size:
            X, label, weight = X[used], label[used], weight[used]
        factors = class_factors(
            self.class_weight, classes=classes, y=classes[label], sample_weight=weight
        )
        kernel = make_kernel(self.kernel, gamma=self.gamma, degree=self.degree, coef0=self.coef0)
        self.kernel_ = (
            kernel
            if isinstance(kernel, FromCallable)
            else kernel.resolve(MemoryRows(X, weight=weight))
        )
        weight = float(self.C) * weight * factors[label]
        with self._fitting() as fit:
            rows = finite(ready(self.kernel_, X, dtype=np.float64 if X.shape[0] <= EXACT else None))
            place, first = self._groups(X)
            draws = self._draws(label, classes.size, place, first)
            results = self._solve_pairs(draws, rows, label, weight, fit)
        self.classes_, self.class_weight_ = classes, factors
        self._collect(X, used, draws, results, place, first)
        self._report(results, fit.limits)
        return self

    def _check_beta(self) -> None:
        if self.beta is None:
            return
        if self.solver in ("least_squares", "decomposition"):
            raise ValueError(
                f"solver={self.solver!r} has no beta; got beta={self.beta!r}. Leave it out, or use 'smooth' or 'lagrangian'."
            )
        if self.solver == "lagrangian" and not float(self.beta) * float(self.C) < 1.0:
            raise ValueError(
                f"beta={self.beta!r} is not less than 1/C={1.0 / float(self.C):g}: with solver='lagrangian' the iteration may then cycle or "
                f"diverge. Leave it out for 1/(2 C), or give a smaller one."
            )

    def _groups(self, X: Any) -> tuple[Array, Array]:
        """For every row the number of its value among the distinct ones, and the first row of each value.

        Values are in the order of a hash of their numbers: the draws that follow depend neither on the order of the rows, nor on whether a row
        is repeated, nor on whether the matrix is sparse.
        """
        _, first, place = np.unique(codes(X), return_index=True, return_inverse=True)
        return place.ravel(), first

    def _draws(self, label: Array, n_classes: int, place: Array, first: Array) -> list[Draw]:
        """Rows and basis of every pair of classes."""
        rng = np.random.default_rng(check_random_state(self.random_state).randint(2**31 - 1))
        pairs = (
            [Pair(i, j) for i in range(n_classes) for j in range(i + 1, n_classes)]
            if n_classes > 2
            else [Pair(1, 0)]
        )
        draws = []
        for pair in pairs:
            rows = pair.rows(label)
            at = (
                first if rows.size == label.size else np.unique(place[rows], return_index=True)[1]
            )  # the first row of each value
            size = (
                int(self.n_basis)
                if isinstance(self.n_basis, Integral)
                else max(FEWEST, round(float(self.n_basis) * rows.size))
            )
            draws.append(
                Draw(
                    pair,
                    rows,
                    at[np.sort(drawn(np.arange(at.size), size, rng))],
                    int(rng.integers(2**31 - 1)),
                )
            )
        return draws

    def _solve_pairs(
        self, draws: list[Draw], rows: Operand, label: Array, weight: Array, fit: Fit
    ) -> list[Result]:
        """All pairs; small ones side by side, one a thread."""
        results: list[Any] = [None] * len(draws)

        def solve(k: int, limits: Limits) -> None:
            draw = draws[k]
            sign = np.where(label[draw.rows] == draw.pair.positive, 1.0, -1.0)
            own = rows if draw.rows.size == rows.n else rows.take(draw.rows)  # of two classes, all
            features = SignedFeatures(
                in_memory(own, sign, n_threads=fit.threads),
                own.frame,
                draw.basis,
                self.max_memory,
                many=self.solver != "least_squares",
            )
            results[k] = self._solved(features, weight[draw.rows], draw.seed, fit, limits)

        small = [
            k
            for k, draw in enumerate(draws)
            if len(draws) > 1 and draw.rows.size * draw.basis.size <= SMALL
        ]
        large = sorted(set(range(len(draws))) - set(small))
        for at, k in enumerate(large):
            solve(k, fit.limits.part(len(large) - at + len(small)))
        at_once = 1 if fit.watchers else fit.threads
        parallel(
            lambda t: solve(small[t], fit.limits.part(len(small) - t, at_once)), len(small), at_once
        )
        return results

    def _solved(
        self, V: SignedFeatures, weight: Array, seed: int, fit: Fit, limits: Limits
    ) -> Result:
        """One pair: its result, with a model of coefficients and intercept in one."""
        tol, few = float(self.tol), V.n <= EXACT
        exact = min(tol, EXACT_TOL) if few else tol
        about: dict[str, Any] = {
            "max_iter": int(self.max_iter),
            "limits": limits,
            "watchers": fit.watchers,
        }
        if self.solver == "least_squares":
            result = run(
                LeastSquaresSystem(), Reduced(V, weight, LeastSquares()), tol=exact, **about
            )
        elif self.solver == "smooth":
            loss = SmoothHinge() if self.beta is None else SmoothHinge(float(self.beta))
            result = run(SmoothNewton(), Reduced(V, weight, loss), tol=exact, **about)
        elif self.solver == "lagrangian":
            solver = (
                AcceleratedLagrangian()
                if self.beta is None
                else Lagrangian(float(self.beta) * float(self.C))
            )
            result = run(solver, Reduced(V, weight, SquaredHinge()), tol=tol, **about)
        else:
            result = run(Chunking(seed), Reduced(V, weight, SquaredHinge()), tol=tol, **about)
        u, certificate = result.model.u, replace(result.certificate, tol=tol)
        if (
            few and certificate.holds and self.solver in ("lagrangian", "decomposition")
        ):  # the last digits, by a few of Newton's steps
            near = run(
                SmoothNewton(),
                Reduced(V, weight, SquaredHinge()),
                tol=EXACT_TOL,
                max_iter=EXACT_STEPS,
                limits=limits,
                start=u,
            )
            if near.certificate.gap <= certificate.gap:
                u, certificate = near.model.u, replace(near.certificate, tol=tol)
        if certificate.holds:
            status = Status("converged", "")
        else:  # the solver's own end, without the gap that was asked for: rounding errors
            status = Status("stalled", "") if result.status.converged else result.status
        return Result(u, certificate, status, result.history, result.n_iter)

    # -- what comes out -----------------------------------------------------------------------------------------------------------------

    def _collect(
        self,
        X: Any,
        used: Array,
        draws: list[Draw],
        results: list[Result],
        place: Array,
        first: Array,
    ) -> None:
        """One basis for all pairs: distinct rows, each once."""
        values = [place[draw.rows[draw.basis]] for draw in draws]
        shared = np.unique(np.concatenate(values))
        coef = np.zeros((shared.size, len(draws)))
        for k, result in enumerate(results):
            coef[np.searchsorted(shared, values[k]), k] = result.model[:-1]
        self.basis_, self.basis_indices_ = X[first[shared]], used[first[shared]]
        self.basis_coef_ = coef
        self.intercept_ = np.array([float(result.model[-1]) for result in results])
        self.n_basis_ = int(shared.size)
        self.n_iter_ = np.array([result.n_iter for result in results], np.int64)

    def _report(self, results: list[Result], limits: Limits) -> None:
        worst = max(
            results, key=lambda result: (not result.status.converged, result.certificate.violation)
        )
        violation, tol = max(result.certificate.violation for result in results), float(self.tol)
        self.certificate_ = Certificate(
            results[0].certificate.scope,
            float(sum(result.certificate.objective for result in results)),
            violation,
            float(sum(result.certificate.gap for result in results)),
            tol,
            results[0].certificate.precision,
        )
        problem = {
            "smooth": "the smooth problem",
            "least_squares": "the least-squares problem",
        }.get(self.solver, "the problem")
        of_pairs = "" if len(results) == 1 else " of the worst pair"
        text = (
            f"the relative duality gap of {problem}{of_pairs} is {violation:.2g}, with tol={tol:g}"
        )
        advice = "; solver='smooth' needs fewer steps" if self.solver == "lagrangian" else ""
        words = {
            "converged": f"Converged: {text}.",
            "max_iter": f"Stopped at max_iter={self.max_iter} before the tolerance was reached: {text}{advice}.",
            "stalled": f"Stopped because rounding errors hide any further progress: {text}. Scale the features, or use a smaller C.",
            "max_time": f"Stopped at max_time after {limits.seconds:.1f} s: {text}.",
            "interrupted": f"Interrupted after {limits.seconds:.1f} s: {text}.",
            "stopped": f"Stopped by a callback after {limits.seconds:.1f} s: {text}.",
        }
        reason = worst.status.reason
        self.status_ = Status(reason, words[reason])
        self.fit_status_ = int(reason != "converged")
        self.history_ = joined([result.history for result in results])
        self._make()
        if reason != "converged":
            warnings.warn(words[reason], ConvergenceWarning, stacklevel=4)

    # -- prediction ---------------------------------------------------------------------------------------------------------------------

    def decision_function(self, X: Any) -> Array:
        """Decision values.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)
            New rows.

        Returns
        -------
        array of shape (n_samples,) for two classes, else (n_samples, n_classes) or, with decision_function_shape='ovo', one column a pair.
        """
        return pair_values(self._outputs(X), len(self.classes_), self.decision_function_shape)

    def predict(self, X: Any) -> Array:
        """Labels of new rows.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)
            New rows.

        Returns
        -------
        array of shape (n_samples,)
        """
        values = self._outputs(X)
        return self.classes_[
            pair_labels(
                values, len(self.classes_), self.decision_function_shape, bool(self.break_ties)
            )
        ]
