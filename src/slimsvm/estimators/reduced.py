"""ReducedSVC: RSVM, with the four ways to train it."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import StrOptions

from slimsvm.basis.selection import drawn
from slimsvm.declarations import declared, parameter
from slimsvm.ending import Ending
from slimsvm.estimators.fitting import Classifier
from slimsvm.estimators.parameters import (
    AT_LEAST_ONE,
    POSITIVE,
    SHARE,
    ClassWeight,
    GammaLike,
    KernelLike,
    VotesShape,
    shared,
)
from slimsvm.frames import Frame, in_memory
from slimsvm.models.basis import BasisVectors
from slimsvm.multiclass import OneVsOne, Part
from slimsvm.run import Limits, Result
from slimsvm.solvers.reduced_ways import FEWEST, SOLVERS, AskedOfPair
from slimsvm.training import Data, Fit, InstanceOf

Array = NDArray[Any]
PUBLISHED = InstanceOf("solvers.rsvm", "RSVM")
SMALL = 1 << 22  # kernel values of a pair up to which pairs are trained side by side, one a thread


@dataclass(eq=False, repr=False)
class PairBasis:
    """The basis of one pair of classes: places among the rows of the pair; and a seed."""

    rows: Array
    basis: Array
    seed: int


@declared
class ReducedSVC(BasisVectors, Classifier):
    """The reduced support vector machine (RSVM): random rows, and a penalty on their coefficients.

    For two classes, with R a random set of rows, f(x) = sum_j coef_j k(r_j, x) + intercept
    minimises

        1/2 (|coef|^2 + intercept^2) + C sum_i weight_i max(0, 1 - y_i f(x_i))^2.

    The penalty is the plain norm of the coefficients, not that of the function in the space of the
    kernel, and includes the intercept. That makes any kernel good, and training simple;
    :class:`SparseSVC` reaches the same accuracy with far fewer vectors. Several classes are trained
    as pairs (one-vs-one), each with a basis of its own, and vote.

    Parameters
    ----------
    n_basis : int or float
        Number of rows in the basis of each pair of classes, at most that of all rows; or their
        share of the pair's rows, which stands for 50 at least. A pair with fewer distinct rows
        has all of them as its basis.
    C : float
        Weight of the errors.
    solver : {'smooth', 'least_squares', 'lagrangian', 'decomposition'} or RSVM
        How the problem is solved. 'lagrangian' (LSVM, a fixed-point iteration in the dual) and
        'decomposition' (working sets of dual variables that grow until they hold all support
        vectors) minimise the problem above; the former needs many steps for a large C. 'smooth'
        (SSVM) minimises a smooth version of it by Newton's method, which tends to it for large
        beta. 'least_squares' solves another problem, with (1 - y_i f(x_i))^2 in place of the
        squared hinge: rows far on their own side cost too. It takes one linear system, and is the
        fastest. A :class:`slimsvm.solvers.rsvm.RSVM` is one of these as it was published, with
        options that only the papers need; the recipes set it.
    beta : float
        With solver='smooth', the sharpness of the smooth hinge, 5 by default: P(t) = t + log(1 +
        exp(-beta t)) / beta stands for max(0, t). With solver='lagrangian', the step of the
        iteration, which must be less than 1/C: then it is that of the paper. By default it is the
        same at 1/(2 C), with a metric that learns from its moves, which needs far fewer steps.
        The other solvers have none.
    tol : float
        Duality gap at the end, relative to the objective, for every pair; with solver='smooth',
        that of the smooth problem. Pairs of up to 1,000 rows are then brought to near float64
        precision.
    max_iter : int
        Limit on the steps for each pair: Newton's, those of the fixed-point iteration, or working
        sets; -1: none.
    max_memory : float
        Megabytes for the kernel values of a pair; beyond, they are computed again in every pass.
        Default 2,000.
    random_state : int, RandomState or None
        Draws the rows of the basis, and the first working set.

    See Also
    --------
    SparseSVC : With a basis that is learned, and the norm of the function as the penalty.

    Notes
    -----
    All pairs share ``basis_``: a coefficient is zero where a vector is not in the basis of a pair.

    References
    ----------
    .. [1] Y.-J. Lee, O. L. Mangasarian, "RSVM: Reduced support vector machines", 2001.
    .. [2] K.-M. Lin, C.-J. Lin, "A study on reduced support vector machines", 2003.

    Examples
    --------
    A tenth of the rows carries weight:

    >>> from slimsvm import ReducedSVC
    >>> from slimsvm.datasets import checkers
    >>> X, y = checkers(2000, seed=0)
    >>> model = ReducedSVC(C=100.0, gamma=5.0, random_state=0).fit(X, y)
    >>> model.basis_.shape, model.certificate_.holds
    ((200, 2), True)
    >>> bool(model.score(X, y) > 0.9)
    True
    """

    n_basis: int | float = parameter(0.1, AT_LEAST_ONE, SHARE, positional=True)
    C: float = shared("C")
    kernel: KernelLike = shared("kernel")
    gamma: GammaLike = shared("gamma")
    degree: int = shared("degree")
    coef0: float = shared("coef0")
    solver: Any = parameter("smooth", StrOptions(set(SOLVERS)), PUBLISHED)
    beta: float | None = parameter(None, POSITIVE, None)
    class_weight: ClassWeight = shared("class_weight")
    tol: float = shared("tol")
    max_iter: int = shared("max_iter", default=20_000)
    max_time: float | None = shared("max_time")
    max_memory: float | None = shared("max_memory")
    decision_function_shape: VotesShape = shared("decision_function_shape")
    break_ties: bool = shared("break_ties")
    n_jobs: int | None = shared("n_jobs")
    random_state: Any = shared("random_state")
    verbose: bool = shared("verbose")

    scheme: ClassVar[Any] = OneVsOne
    _same_as: ClassVar[str] = "SVC"

    def _checked(self, X: Any, y: Any, sample_weight: Any, reset: bool = True) -> Any:
        checked = super()._checked(X, y, sample_weight, reset)
        if self.beta is None:
            return checked
        if PUBLISHED.is_satisfied_by(self.solver) or not self._way.takes_beta:
            raise ValueError(
                f"solver={self.solver!r} has no beta; got beta={self.beta!r}. Leave it out, or use "
                "'smooth' or 'lagrangian'."
            )
        if self.solver == "lagrangian" and not float(self.beta) * float(self.C) < 1.0:
            raise ValueError(
                f"beta={self.beta!r} is not less than 1/C={1.0 / float(self.C):g}: with "
                "solver='lagrangian' the iteration may then cycle or diverge. Leave it out for "
                "1/(2 C), or give a smaller one."
            )
        return checked

    @property
    def _way(self) -> Any:
        """How a pair is trained."""
        return self.solver if PUBLISHED.is_satisfied_by(self.solver) else SOLVERS[self.solver]

    @property
    def _by_norm(self) -> bool:
        """Whether the penalty is the norm of the function, as in some papers.

        In float64: what small eigenvalues of K_RR divide must not be rounding errors.
        """
        return PUBLISHED.is_satisfied_by(self.solver) and self.solver.penalty == "kernel"

    def _encoded(self, X: Any, y: Any, weight: Array) -> Data:
        data = super()._encoded(X, y, weight)
        if isinstance(self.n_basis, Integral) and int(self.n_basis) > data.used.size:
            raise ValueError(
                f"n_basis={self.n_basis} is more than the {data.used.size} rows with positive "
                "weight; use at most as many, or a share of them such as 0.1."
            )
        return data

    # -- training ---------------------------------------------------------------------------------

    def _solved(self, data: Data, fit: Fit) -> tuple[list[Result], list[Array], Array]:
        """The results of all pairs; the distinct rows of their bases, and the row of each of these.

        Distinct rows are in the order of a hash of their numbers: the draws that follow depend
        neither on the order of the rows, nor on whether a row is repeated, nor on whether the
        matrix is sparse.
        """
        from slimsvm.problems.reduced import SignedFeatures
        from slimsvm.row_hashes import codes

        _, first, place = np.unique(codes(data.X), return_index=True, return_inverse=True)
        rng = np.random.default_rng(check_random_state(self.random_state).randint(2**31 - 1))
        parts = OneVsOne(data.classes.size).parts(data.target)
        bases = [self._basis(part, place.ravel(), first, rng) for part in parts]
        weight, way = float(self.C) * data.weight, self._way
        asked: dict[str, Any] = {"tol": float(self.tol), "max_iter": int(self.max_iter)}
        asked |= {"beta": self.beta, "C": float(self.C)}
        by_norm = self._by_norm

        def train(part: Part, limits: Limits) -> Result:
            own = bases[part.k]
            rows = data.rows if len(parts) == 1 else data.rows.take(own.rows)
            if by_norm and rows.dtype == np.float32:
                rows = rows.exact()
            where = in_memory(rows, part.sign(own.rows), n_threads=fit.threads)
            given = (where, Frame.like(rows), own.basis, self.max_memory)
            V = SignedFeatures(*given, many=way.many, function_norm=by_norm)
            about = {"limits": limits, "watchers": fit.watchers, **asked}
            return way.solved(V, weight[own.rows], AskedOfPair(seed=own.seed, **about))

        def small(part: Part) -> bool:
            return bases[part.k].rows.size * bases[part.k].basis.size <= SMALL

        results = OneVsOne.trained(parts, train, fit, small)
        return results, [place.ravel()[own.rows[own.basis]] for own in bases], first

    def _solved_on_rows(self, data: Data, fit: Fit) -> Any:
        from slimsvm.far.reduced import solved_on_rows

        return solved_on_rows(self, data, fit)

    def _basis(self, part: Part, place: Array, first: Array, rng: np.random.Generator) -> PairBasis:
        """The basis of a pair; ``first`` is the first row of each value, ``place`` each row's."""
        rows, published = part.rows, PUBLISHED.is_satisfied_by(self.solver)
        at = first
        if published:  # "randomly selects a subset R of m samples": equal ones are several
            at = np.arange(rows.size)
        elif rows.size < place.size:
            at = np.unique(place[rows], return_index=True)[1]
        size = self.n_basis
        if not isinstance(size, Integral):
            size = max(1 if published else FEWEST, round(float(size) * rows.size))
        basis = at[np.sort(drawn(np.arange(at.size), int(size), rng))]
        return PairBasis(rows, basis, int(rng.integers(2**31 - 1)))

    def _concluded(self, data: Data, solved: Any, fit: Fit) -> Ending:
        results, places, first = solved
        common = np.unique(np.concatenate(places))  # one basis for all pairs: each row once
        coef = np.zeros((common.size, len(results)))
        for k, result in enumerate(results):
            np.add.at(coef[:, k], np.searchsorted(common, places[k]), result.model.u[:-1])
        intercept = np.array([float(result.model.u[-1]) for result in results])
        rows = first[common]
        self.classes_, self.class_weight_ = data.classes, data.factors
        self._hold(data.kernel, data.X[rows], data.used[rows], coef, intercept)
        self.n_iter_ = np.array([result.n_iter for result in results], np.int64)
        slow = self.solver == "lagrangian" and any(r.status.reason == "max_iter" for r in results)
        about = {"further": "; solver='smooth' needs fewer steps"} if slow else {}
        measure = getattr(self._way, "measure", "gap")
        return self._ending(results, fit, measure=measure, optimum=self._way.optimum, **about)
