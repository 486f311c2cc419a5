"""SVC and NuSVC."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils._param_validation import HasMethods, StrOptions

from slimsvm.declarations import declared, parameter
from slimsvm.ending import Ending, warn
from slimsvm.estimators.dual import PairwiseClassifier
from slimsvm.estimators.fitting import with_callbacks
from slimsvm.estimators.parameters import (
    NU,
    POSITIVE_OR_INFINITE,
    ClassWeight,
    GammaLike,
    KernelLike,
    VotesShape,
    shared,
)
from slimsvm.gram import Gram
from slimsvm.models.probabilities import PairProbabilities
from slimsvm.multiclass import OneVsOne, Part
from slimsvm.problems.dual_qp import DualQP, classification, largest_nu, nu_classification
from slimsvm.problems.pair_grams import OwnGrams, PairGrams
from slimsvm.run import Limits, Result, tell
from slimsvm.solvers.decomposition import WHOLE, Decomposition
from slimsvm.training import Data, Fit

Array = NDArray[Any]


class DecomposedPairs(PairProbabilities, PairwiseClassifier):
    """What SVC and NuSVC share: pairs whose kernel values are shared, each solved exactly.

    Parameters
    ----------
    probability : bool
        Whether ``predict_proba`` is to work: Platt's sigmoid on decision values of rows that were
        left out, with the kernel values of the fit, and pairs of classes coupled. Deprecated in
        scikit-learn 1.9, in favour of ``CalibratedClassifierCV(SVC(), ensemble=False)``.
    """

    _as_libsvm: ClassVar[bool] = True
    _in_strips: ClassVar[bool] = False  # whether the problem is the one that strips solve

    def _problem(self, gram: Gram, part: Part, weight: Array, names: list[Any]) -> DualQP:
        """The dual problem of one pair."""
        raise NotImplementedError

    def _begin(self, data: Data, n_pairs: int) -> None:
        """Where it begins, and what is said and made ready before any pair is solved."""
        if data.start is None:
            data.start = self._last_point(data)
        self._warn_of_probability()
        n_sigmoids = n_pairs if self._wants_probabilities else 0
        data.about["_probA"], data.about["_probB"] = np.zeros((2, n_sigmoids))

    def _shared(self, parts: list[Part], data: Data, fit: Fit) -> PairGrams:
        self._begin(data, len(parts))
        return self._grams(parts, data, fit)

    def _grams(self, parts: list[Part], data: Data, fit: Fit) -> PairGrams:
        if self.solver is not None and not isinstance(self.solver, Decomposition):
            return OwnGrams(data.rows, parts, self._cache_bytes, fit.threads, 0)
        return PairGrams(data.rows, parts, self._cache_bytes, fit.threads, WHOLE)

    def _solved(self, data: Data, fit: Fit) -> Any:
        """The pairs; many small ones in strips, and a single small one in one call."""
        plain = (
            self._in_strips
            and self.solver is None
            and not self.warm_start
            and data.start is None
            and data.margins is None
        )
        from slimsvm.solvers import pair_strips as small  # its loops are compiled when called

        sizes = np.bincount(data.target)
        alone = plain and not self._wants_probabilities and small.is_for_one_call(data.rows, sizes)
        # strips may take long: who watches is told of each pair of classes
        in_strips = plain and not fit.watchers and small.is_for_strips(data.rows, sizes)
        if not alone and not in_strips:
            return super()._solved(data, fit)
        self._begin(data, 0 if alone else sizes.size * (sizes.size - 1) // 2)
        upper = self._finite_C * data.weight
        asked: dict[str, Any] = {"tol": float(self.tol), "max_iter": int(self.max_iter)}
        asked |= {"limits": fit.limits}
        if alone:
            sign = np.where(data.target > 0, 1.0, -1.0)
            pairs = small.solved_in_one_call(data.rows, sign, upper, **asked)
        else:
            if self._wants_probabilities:
                from slimsvm.solvers.pair_sigmoids import sigmoids_of_strips

                given, A, B = (
                    data.sample_weight[data.used],
                    data.about["_probA"],
                    data.about["_probB"],
                )
                asked["sigmoids"] = sigmoids_of_strips(sizes, given, A, B)
            pairs = small.solved_in_strips(data.rows, sizes, upper, n_threads=fit.threads, **asked)
        if not pairs.open.size:
            if alone and fit.watchers:
                tell(fit.watchers, pairs.record(), fit.limits)
            return pairs, {}
        parts = OneVsOne(data.classes.size).parts(data.target)
        grams = self._grams(parts, data, fit)
        left = {
            int(k): self._train(parts[k], data, fit, fit.limits.part(1), grams) for k in pairs.open
        }
        return pairs, left

    def _concluded(self, data: Data, solved: Any, fit: Fit) -> Ending:
        if isinstance(solved, list):
            return super()._concluded(data, solved, fit)
        from slimsvm.solvers.pair_strips import rounded_pairs

        pairs, left = solved
        results = [rounded_pairs(pairs, data.rows, float(self.tol)), *left.values()]
        parts = OneVsOne(data.classes.size).parts(data.target) if left else []
        for k, result in left.items():
            pairs.replace(parts[k], result, *self._point(result))
        self.classes_, self.class_weight_ = data.classes, data.factors
        self._hold(data, pairs.coef, data.target, pairs.intercept)
        self.n_iter_ = pairs.steps
        return self._ending(results, fit, n_parts=pairs.about.shape[0])

    def _small(self, part: Part, shared: PairGrams) -> bool:
        return shared.is_small(part)

    def _train(self, part: Part, data: Data, fit: Fit, limits: Limits, shared: PairGrams) -> Result:
        rows = part.rows
        names = data.classes[[part.positive, part.negative]].tolist()
        problem = self._problem(shared.gram(part), part, data.weight[rows], names)
        start = None
        if data.start is not None:
            start = OneVsOne(data.classes.size).taken_apart(data.start[:, data.used], part)
        usual = self.solver is None or isinstance(self.solver, Decomposition)
        if data.margins is not None and usual and not shared.is_small(part):
            margin = data.margins[data.used[rows]]
            order = np.argsort(margin, kind="stable")
            problem.gram.fill(order[margin[order] < 1.0])  # those that are support vectors, it says
        result = self._decomposed(problem, fit, limits, start)
        if self._wants_probabilities:
            from slimsvm.solvers.out_of_fold import sigmoid_of_pair  # here, since few ask for them

            def without(used: Array) -> DualQP:
                weight = np.where(used, data.weight[rows], 0.0)
                return self._problem(problem.gram, part, weight, [])

            about = (part, data.sample_weight[data.used[rows]], float(self.tol), limits)
            found = sigmoid_of_pair(problem, result, without, self._point, *about)
            data.about["_probA"][part.k], data.about["_probB"][part.k] = found
        shared.done(part)
        return result

    def _last_point(self, data: Data) -> Array | None:
        """The coefficients of the last fit, if this one goes on from them."""
        coef = self._last_coef(data, data.target)
        same = coef is not None and data.classes.size == len(self.classes_)
        return coef if same else None

    @with_callbacks
    def _fit_from(
        self, start: Array, X: Any, y: Any, sample_weight: Any = None, margins: Array | None = None
    ) -> Any:
        """Begin at a point of the dual problem of two classes: a value for each row.

        The cache begins with the kernel rows whose ``margins`` say that they are support vectors,
        the most wrong ones first.
        """
        return self._fit(X, y, sample_weight, start=np.asarray(start)[None, :], margins=margins)


@declared
class SVC(DecomposedPairs):
    """Support vector classification with kernels, solved exactly.

    A drop-in for :class:`sklearn.svm.SVC` that can use all cores (``n_jobs=-1``), shows what it
    does, and says how far from the optimum it ended.

    Parameters
    ----------
    max_iter : int
        Limit on pair steps of the solver, for each problem (with a ``solver`` of its own: on its
        iterations); -1: none.
    random_state : int, RandomState or None
        Of the order in which rows join, where they do (``max_time``, or very many rows); None is
        always the same order. Nothing else is random.
    solver : object, optional
        Another solver of the dual problem, with its own options, in place of
        :class:`slimsvm.solvers.decomposition.Decomposition` with the usual ones: for example
        ``Decomposition(working_set=100)``, or one of those that the recipes ``svm_light``, ``smo``
        and ``chunking`` set. ``shrinking`` is then that of the solver.

    See Also
    --------
    NuSVC : The share of errors as the parameter instead of their weight.

    References
    ----------
    .. [1] T. Joachims, "Making large-scale SVM learning practical", 1999.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from slimsvm import SVC
    >>> X, y = load_iris(return_X_y=True)
    >>> model = SVC(C=10.0).fit(X, y)
    >>> round(model.score(X, y), 2)
    0.99
    >>> model.certificate_.holds
    True
    """

    C: float = parameter(1.0, POSITIVE_OR_INFINITE)
    kernel: KernelLike = shared("kernel")
    degree: int = shared("degree")
    gamma: GammaLike = shared("gamma")
    coef0: float = shared("coef0")
    shrinking: bool = shared("shrinking")
    probability: bool | str = parameter("deprecated", "boolean", StrOptions({"deprecated"}))
    tol: float = shared("tol")
    cache_size: float = shared("cache_size")
    class_weight: ClassWeight = shared("class_weight")
    verbose: bool = shared("verbose")
    max_iter: int = shared("max_iter")
    max_time: float | None = shared("max_time")
    decision_function_shape: VotesShape = shared("decision_function_shape")
    break_ties: bool = shared("break_ties")
    warm_start: bool = shared("warm_start")
    n_jobs: int | None = shared("n_jobs")
    random_state: Any = shared("random_state")
    solver: Any = parameter(None, HasMethods(["init", "step", "certificate", "model"]), None)

    _in_strips: ClassVar[bool] = True

    def _problem(self, gram: Gram, part: Part, weight: Array, names: list[Any]) -> DualQP:
        return classification(gram, part.sign(part.rows), self._finite_C * weight)

    def _solved_on_rows(self, data: Data, fit: Fit) -> list[Result]:
        from slimsvm.far.dual import pairs_on_rows

        return pairs_on_rows(self, data, fit)

    def _ending(self, results: list[Result], fit: Fit, **about: Any) -> Ending:
        if hasattr(self.solver, "stalls"):  # for another reason than rounding
            about["begins"] = {"stalled": self.solver.stalls}
        return super()._ending(results, fit, **about)


@declared
class NuSVC(DecomposedPairs):
    """Support vector classification where nu bounds the share of margin errors from above.

    It bounds that of support vectors from below. A drop-in for :class:`sklearn.svm.NuSVC`. A pair
    of classes for which nu is not feasible is trained at its largest feasible nu, with a warning
    that names both.

    Parameters
    ----------
    nu : float in (0, 1]
        Bound on the shares.
    class_weight : dict or 'balanced'
        Factors of the weights for each class.
    random_state : int, RandomState or None
        Of the order in which rows join, where they do (``max_time``, or very many rows); None is
        always the same order. Nothing else is random.

    See Also
    --------
    SVC : The weight of errors as the parameter.

    References
    ----------
    .. [1] B. Schoelkopf, A. Smola, R. Williamson, P. Bartlett, "New support vector algorithms",
       2000.

    Examples
    --------
    A tenth of the rows, at least, are support vectors:

    >>> from sklearn.datasets import load_iris
    >>> from slimsvm import NuSVC
    >>> X, y = load_iris(return_X_y=True)
    >>> model = NuSVC(nu=0.1).fit(X, y)
    >>> round(model.score(X, y), 2), bool(model.n_support_.sum() >= 15)
    (0.99, True)
    """

    nu: float = parameter(0.5, NU)
    kernel: KernelLike = shared("kernel")
    degree: int = shared("degree")
    gamma: GammaLike = shared("gamma")
    coef0: float = shared("coef0")
    shrinking: bool = shared("shrinking")
    probability: bool | str = parameter("deprecated", "boolean", StrOptions({"deprecated"}))
    tol: float = shared("tol")
    cache_size: float = shared("cache_size")
    class_weight: ClassWeight = shared("class_weight")
    verbose: bool = shared("verbose")
    max_iter: int = shared("max_iter")
    max_time: float | None = shared("max_time")
    decision_function_shape: VotesShape = shared("decision_function_shape")
    break_ties: bool = shared("break_ties")
    warm_start: bool = shared("warm_start")
    n_jobs: int | None = shared("n_jobs")
    random_state: Any = shared("random_state")

    def _encoded(self, X: Any, y: Any, weight: Array) -> Data:
        try:
            return super()._encoded(X, y, weight)
        except ValueError as error:
            if "belong to" in str(error):  # LIBSVM's words for that
                raise ValueError(f"specified nu is infeasible: {error}") from error
            raise

    def _problem(self, gram: Gram, part: Part, weight: Array, names: list[Any]) -> DualQP:
        sign, nu = part.sign(part.rows), float(self.nu)
        largest = largest_nu(sign, weight)
        if nu > largest and names:
            warn(
                f"nu={nu:g} is not feasible for the classes {names[0]!r} and {names[1]!r}; this "
                f"pair is trained at nu={largest:.4g}, the largest that their weights allow. "
                "Choose a smaller nu, or balance the classes.",
                UserWarning,
            )
        return nu_classification(gram, sign, weight, min(nu, largest))

    def _ending(self, results: list[Result], fit: Fit, **about: Any) -> Ending:
        # tol is about scores before they are divided by the margin, which may be small
        margin = min(result.model.margin for result in results)
        about["further"] = f", where the {'least ' * (len(results) > 1)}margin is {margin:.2g}"
        return super()._ending(results, fit, **about)

    def _point(self, result: Result) -> tuple[Array, float]:
        point: tuple[Array, float] = result.model.by_margin()
        return point
