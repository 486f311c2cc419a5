"""CoreVectorSVC: the squared-hinge machine as the smallest ball around points, found from few of them (CVM, BVM)."""

from __future__ import annotations

from dataclasses import replace
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions

from slimsvm.estimators.base import Fit
from slimsvm.estimators.classification import KernelClassifier
from slimsvm.estimators.docs import described
from slimsvm.run import Limits, Result, Status, run
from slimsvm.solvers.core_vector import Ball, CoreVector
from slimsvm.threads import parallel

Array = NDArray[Any]
SAME = 1e-5  # relative differences of k(x, x) up to which they are rounding errors of the rows
CONVERGED = "Converged: no point lies outside of the (1 + {tol:g}) ball (the farthest by {violation:.2g} of the radius; duality gap {gap:.3g})."
FULL = "Stopped at max_memory={memory:g}: the core set has grown to {size} vectors, and the farthest point lies outside by {violation:.2g}."


@described
class CoreVectorSVC(KernelClassifier):
    """Core vector machine: squared-hinge classification with a penalised intercept, from a core set of the rows.

    The machine is the smallest ball around the rows as points of another space. An approximate ball is found from a *core set* that grows by
    far points, until no row lies outside of the ball by more than the share ``eps`` of its radius. Several classes: one machine for each pair,
    which vote; equal votes are decided by the sums of the decision values.

    Parameters
    ----------
    ball : {{'minimum', 'fixed'}}, default='minimum'
        'minimum': the smallest ball (CVM). 'fixed': a ball of a fixed radius that far points pull to themselves (BVM), which is simpler and
        does not end at the optimum.
    eps : float, default=1e-6
        How far outside of the ball, as a share of its radius, a row may lie. Up to 1,000 rows the smallest ball is found to near machine
        precision.
    C : float, default=1.0
        Weight of the errors: 1/2 (|w|^2 + intercept^2) + C sum_i max(0, 1 - y_i f(x_i))^2.
    {kernel}
    max_iter : int, default=-1
        Limit on core vectors that join, or on pulls of the ball, for each pair; -1: none.
    max_time : float, optional
        Limit in seconds. At the limit, and at Ctrl-C, the best model so far is kept, with a ConvergenceWarning.
    max_memory : float, default=2000
        Megabytes for kernel values within the core set. Where it would grow beyond, the fit ends with a ConvergenceWarning.
    n_jobs : int, optional
        Threads: None is one unless a joblib context says otherwise, -1 all. The result does not depend on it.
    random_state : int, RandomState or None, default=None
        Draws the rows that are looked at.
    verbose : bool, default=False
        Show a line of progress.

    Attributes
    ----------
    {attributes}
    classes_ : array
        The labels, sorted.
    class_weight_ : array
        Ones.

    See Also
    --------
    SVC : The exact machine with the hinge.
    SparseSVC : With basis='all', the exact machine with the squared hinge and an intercept that is not penalised.

    Notes
    -----
    The method needs k(x, x) to be the same for all rows, as it is for the rbf and Laplacian kernels, and for others on rows of unit length;
    otherwise the fit is refused. For the same reason it admits neither sample weights nor class weights.

    ``certificate_.violation`` is the achieved eps; objective and gap are those of the problem above. The paper's C is twice ours.

    References
    ----------
    .. [1] I. W. Tsang, J. T. Kwok, P.-M. Cheung, "Core vector machines: fast SVM training on very large data sets", 2005.
    .. [2] I. W. Tsang, A. Kocsor, J. T. Kwok, "Simpler core vector machines with enclosing balls", 2007.

    Examples
    --------
    >>> from slimsvm import CoreVectorSVC
    >>> from slimsvm.datasets import checkers
    >>> X, y = checkers(2000, seed=0)
    >>> model = CoreVectorSVC(C=10.0, gamma=5.0, random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.95
    True
    >>> model.certificate_.violation <= 1e-6
    True
    """

    # what the machines with all parameters let their users choose
    class_weight: ClassVar[None] = None
    decision_function_shape: ClassVar[str] = "ovr"
    break_ties: ClassVar[bool] = True
    warm_start: ClassVar[bool] = False
    cache_size: ClassVar[float] = 0.0

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "ball": [StrOptions({"minimum", "fixed"})],
        "eps": [Interval(Real, 0.0, 1.0, closed="neither")],
        "C": [Interval(Real, 0.0, None, closed="neither")],
        "max_memory": [Interval(Real, 0.0, None, closed="neither")],
        **{
            name: constraint
            for name, constraint in KernelClassifier._parameter_constraints.items()
            if name
            not in (
                "tol",
                "shrinking",
                "cache_size",
                "class_weight",
                "decision_function_shape",
                "break_ties",
                "warm_start",
            )
        },
    }

    def __init__(
        self,
        *,
        ball: str = "minimum",
        eps: float = 1e-6,
        C: float = 1.0,
        kernel: Any = "rbf",
        gamma: float | str = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        max_iter: int = -1,
        max_time: float | None = None,
        max_memory: float = 2000,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        self.ball = ball
        self.eps = eps
        self.C = C
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.max_iter = max_iter
        self.max_time = max_time
        self.max_memory = max_memory
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any, **refused: Any) -> CoreVectorSVC:
        """Train on rows X with labels y.

        Parameters
        ----------
        X : array, CSR matrix or DataFrame of shape (n_samples, n_features), or (n_samples, n_samples) kernel values
            Training rows.
        y : array of shape (n_samples,)
            Labels, numbers or strings.
        **refused
            Nothing: a ``sample_weight`` is refused, because all points of the ball must weigh the same.

        Returns
        -------
        self
        """
        if refused.pop("sample_weight", None) is not None:
            raise ValueError(
                "CoreVectorSVC admits no sample_weight: its ball needs all points at the same distance from the origin, which weights would "
                "change. Repeat rows instead, or use SVC or SparseSVC."
            )
        if refused:
            raise TypeError(f"fit() got an unexpected argument {min(refused)!r}")
        super().fit(X, y)
        return self

    def _finished(self, result: Result) -> tuple[Array, float]:
        return result.model.a, result.model.intercept

    def _solve_pairs(
        self,
        grams: Any,
        label: Array,
        bounds: Array,
        classes: Array,
        fit: Fit,
        starts: list[Array | None],
    ) -> list[Result]:
        """All pairs, side by side."""
        refuse_unequal(grams.operand)
        n_pairs = len(grams)
        seeds = check_random_state(self.random_state).randint(2**31 - 1, size=n_pairs)
        side_by_side = 1 if fit.watchers else min(fit.threads, n_pairs)
        results: list[Any] = [None] * n_pairs

        def solve(k: int) -> None:
            rows = grams.rows(k)
            sign = np.where(label[rows] == grams.pairs[k].positive, 1.0, -1.0)
            operand = grams.operand if n_pairs == 1 else grams.operand.take(rows)
            problem = Ball(
                operand,
                sign,
                float(self.C),
                float(self.max_memory) * 2**20 / side_by_side,
                fit.threads,
            )
            limits = fit.limits if n_pairs == 1 else fit.limits.part(n_pairs - k, side_by_side)
            results[k] = self._solve_ball(problem, int(seeds[k]), fit, limits)

        parallel(solve, n_pairs, side_by_side)
        return results

    def _solve_ball(self, problem: Ball, seed: int, fit: Fit, limits: Limits) -> Result:
        solver = CoreVector(ball=self.ball, seed=seed)
        result = run(
            solver,
            problem,
            tol=float(self.eps),
            max_iter=int(self.max_iter),
            limits=limits,
            watchers=fit.watchers,
        )
        facts = result.certificate.to_dict()
        if result.model.full and not result.certificate.holds:
            size = int(np.count_nonzero(result.model.a))
            return replace(
                result,
                status=Status(
                    "max_memory", FULL.format(memory=self.max_memory, size=size, **facts)
                ),
            )
        return (
            replace(result, status=Status("converged", CONVERGED.format(**facts)))
            if result.status.converged
            else result
        )


def refuse_unequal(operand: Any) -> None:
    """Raise ValueError unless k(x, x) is the same for all rows."""
    diag = operand.diag()
    low, high = float(diag.min()), float(diag.max())
    if high - low > SAME * max(abs(low), abs(high)):
        raise ValueError(
            f"CoreVectorSVC needs k(x, x) to be the same for all rows; with {operand.kernel!r} it goes from {low:.4g} to {high:.4g}. "
            "Use the rbf or the Laplacian kernel, or scale the rows to unit length (sklearn.preprocessing.Normalizer), or use SVC."
        )
