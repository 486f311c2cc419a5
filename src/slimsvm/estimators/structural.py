"""StructuralSVM: large-margin prediction of structured outputs with kernels, for any oracle.

What an output is, the oracle says; what a function is, the space does
(:mod:`slimsvm.solvers.structural_spaces`).
"""

from __future__ import annotations

from dataclasses import MISSING
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils._param_validation import Interval, StrOptions, validate_parameter_constraints
from sklearn.utils.validation import check_is_fitted

from slimsvm.basis import REGISTRY, Basis
from slimsvm.declarations import declared, parameter
from slimsvm.ending import Certificate, Ending, percent
from slimsvm.estimators.fitting import Estimator, with_callbacks
from slimsvm.estimators.parameters import AT_LEAST_ONE, SAME, SHARED, GammaLike
from slimsvm.models.structural import OutputsModel, StructuralModel
from slimsvm.oracles.sequences import of_positive_weight
from slimsvm.oracles.structured import StructuredOracle
from slimsvm.rows import Block
from slimsvm.solvers.cutting_plane import CuttingPlane
from slimsvm.solvers.joint import JointRisk
from slimsvm.solvers.sampled_cuts import CONSTANT, LINEAR
from slimsvm.solvers.structural_gap import certified
from slimsvm.solvers.structural_spaces import (
    SPACES,
    Found,
    StructuralTask,
    chosen_space,
    scaled,
    some_examples,
)
from slimsvm.training import Data, Fit, Unsupported, canonical, checked_weights

Array = NDArray[Any]
OPTIMA = {  # what the gap is to, where that is not the optimum
    "subspace": "the optimum in the span of the basis",
}
CERTIFY_SWEEPS = [Interval(Integral, 0, None, closed="left")]
# of parameters that only they have, or with another default
STRUCTURAL: dict[str, tuple[Any, ...]] = {
    "space": ("auto", StrOptions({"auto", *SPACES})),
    "sampling": (LINEAR, StrOptions({LINEAR, CONSTANT})),
    "sample_size": (400, AT_LEAST_ONE),
    "n_basis": (100, AT_LEAST_ONE),
    "basis": (
        "pursuit",
        StrOptions({name for name in REGISTRY if not REGISTRY[name].needs_curvature}),
        Basis,
        "array-like",
        "sparse matrix",
    ),
    "line_search": (True, "boolean"),
    "solver": (None, CuttingPlane, None),
    "max_iter": (10_000, *SHARED["max_iter"][1:]),
}


def _of_samples(certificate: Certificate) -> str:
    """What is said of sampled cuts at the end of the sentence."""
    said = "; sampled cuts are no bound, certify(X, y) finds one"
    if certificate.estimated:
        said += "; the objective is an estimate from the last samples"
    bound, confidence = certificate.risk_bound, certificate.confidence
    if bound is not None and confidence is not None:
        share = bound / max(abs(certificate.objective), np.finfo(float).tiny)
        said += f"; the theorem says within {percent(share)} with {confidence:.0%} confidence"
        said += ", which is vacuous" * (share >= 1.0)
    return said


def structural(name: str, default: Any = SAME) -> Any:
    """A parameter as structural estimators have it."""
    usual, *accepts = {**SHARED, **STRUCTURAL}[name]
    return parameter(usual if default is SAME else default, *accepts)


def labels_in(block: Block) -> tuple[Array, Array]:
    """A task: the numbers of the classes, and the weights."""
    assert block.y is not None and block.weight is not None
    return block.y, block.weight


class StructuralEstimator(StructuralModel, Estimator):
    """What structural estimators share: an oracle, a space, and scores.

    Parameters
    ----------
    C : float
        Weight of the errors: 1/2 |w|^2 + C sum_i weight_i (loss of example i).
    kernel : {'linear', 'poly', 'rbf', 'sigmoid', 'laplacian'}, callable or Kernel
        Similarity of two rows.
    space : {'auto', 'explicit', 'kernel', 'sampled', 'subspace'}
        How functions are represented.

        - 'explicit': weights of features, for the linear kernel;
        - 'kernel': all rows, exact, for few of them: n^2 kernel values;
        - 'sampled': sums of sampled cuts, for any number of rows. Examples are drawn in proportion
          to their weights, so that a weight of two is like two equal rows in the mean over all
          seeds, not for one of them. Where a sample would be all examples, and rows are no more
          than 1,000, this is 'kernel';
        - 'subspace': the span of ``n_basis`` vectors;
        - 'auto': 'explicit' for the linear kernel; otherwise 'kernel' up to 1,000 rows, and
          'sampled' beyond ('subspace' for a loss that does not decompose into examples).
    sampling : {'linear_time', 'constant_time'}
        In the sampled space: whether a round looks at all rows, or only at those drawn.
    sample_size : int
        In the sampled space: examples drawn for each cut.
    n_basis : int
        In the subspace: number of basis vectors.
    basis : str, Basis or array
        In the subspace: 'pursuit' (a vector made for each cut), 'pursuit_rows', 'random', 'kmeans',
        'cholesky', 'unsupervised', an object of :mod:`slimsvm.basis` with settings of its own, or
        the vectors themselves.
    fit_intercept : bool
        Whether each label has an intercept: a constant in the kernel, so it is penalised like all
        weights.
    line_search : bool
        Whether the best point moves by a search towards the solution over the cuts so far, and cuts
        are taken near it. False: cuts are taken at that solution, as in the first papers, which
        takes about twice as many rounds. Without meaning for sampling='constant_time'.
    solver : CuttingPlane, SampledCuts or None
        Cutting planes with settings of their own
        (:class:`slimsvm.solvers.cutting_plane.CuttingPlane`, in the sampled space
        :class:`slimsvm.solvers.sampled_cuts.SampledCuts`), which are followed to the letter, also
        for few rows; ``line_search`` is then theirs. With ``stop="violation"``, tol is the
        violation of the last cut in every space.
    tol : float
        Relative duality gap at the end; in the sampled space the largest violation of a cut, in
        units of the mean loss (eps in the paper). Up to 1,000 rows are always solved to near
        float64 precision, except in the sampled space.
    max_iter : int
        Limit on rounds; -1: none.
    max_memory : float
        Megabytes for kernel values, or for products of cuts with all rows; beyond, they are
        computed again in every pass. In the kernel space the limit of what is tried. Default 2,000.
    random_state : int, RandomState or None
        Seed of samples and of the search for basis vectors.
    """

    _largest_C: ClassVar[float] = np.inf  # too large ones are replaced, with a warning

    solver: Any = None  # of those that have no such parameter

    def _with_oracle(
        self, data: Data, oracle: StructuredOracle, Y: Any, weight: Array, lengths: Any = None
    ) -> Data:
        """Remember a prepared clone of the oracle, the outputs as numbers, and the weights."""
        oracle = clone(oracle)
        true = oracle.encode(Y, data.X.shape[0], lengths)
        data.classes, data.target = true.classes, true.labels
        data.about = {"oracle": oracle, "true": true, "weight": weight}
        return data

    def _few(self, data: Data) -> Data:
        return some_examples(data)

    def _prepared(self, data: Data) -> None:
        data.kernel = self._kernel_for(data.X, data.sample_weight)
        data.X = canonical(data.X)

    def _solved(self, data: Data, fit: Fit) -> tuple[str, Found]:
        oracle, true, weight = (data.about[name] for name in ("oracle", "true", "weight"))
        n_examples = true.offsets.size - 1
        space = chosen_space(self, data.kernel, data.X.shape[0], n_examples, oracle)
        weight = scaled(float(self.C), weight)
        risk = JointRisk(oracle, true.labels, true.offsets, weight, fit.threads)
        return space, SPACES[space](StructuralTask(self, data, risk, fit))

    def _solved_on_rows(self, data: Data, fit: Fit) -> tuple[str, Found]:
        from slimsvm.far.structural import solved_on_rows

        return solved_on_rows(self, data, fit)

    def _oracle_on_rows(self) -> StructuredOracle:
        """What is predicted."""
        name = type(self).__name__
        raise Unsupported(
            f"The loss of {name} is about all rows at once, so it needs them in memory; fit it on "
            "some of the rows, or use SparseSVC or LinearSVC."
        )

    def _concluded(self, data: Data, solved: tuple[str, Found], fit: Fit) -> Ending:
        self.space_, (result, model) = solved
        self.oracle_, self.classes_ = data.about["oracle"], data.classes
        self.linear_, intercept = np.array(model.linear), np.array(model.intercept)
        self.__dict__.pop("coef_", None)
        basis, coef = model.basis, model.coef
        if basis is None:
            self.coef_ = np.ascontiguousarray(coef.T)
            basis, coef = np.empty((0, data.X.shape[1])), np.empty((0, coef.shape[1]))
        indices = None if model.indices is None else data.used[model.indices]
        self._hold(data.kernel, basis, indices, coef, intercept)
        self.n_iter_ = result.n_iter
        last_cut = self.solver is not None and self.solver.stop == "violation"
        measure = "cut" if last_cut or self.space_ == "sampled" else "gap"
        about: dict[str, Any] = {"optimum": OPTIMA.get(self.space_, "the optimum")}
        if self.space_ == "sampled":
            about["further"] = _of_samples(result.certificate)
        if result.status.reason == "max_draws":
            words = (
                f"Stopped after max_draws={self.solver.max_draws:,} samples in a row, none of "
                "which was violated as all examples together are"
            )
            about["begins"] = {"max_draws": words}
        ending = self._ending([result], fit, measure=measure, **about)
        self.certificate_ = ending.certificate  # the function has its precision
        return ending

    def certify(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        sweeps: int = 3,
        max_time: float | None = None,
    ) -> Certificate:
        """How far this model is, at most, from the exact solution: an interval that is true.

        The value of the model is computed on all rows, and a lower bound of the optimum from a
        feasible point of the dual problem. That point is made of the model's own multipliers,
        improved by sweeps over the examples that matter. Takes the kernel values among the rows of
        these, once and once more for each sweep; the time that takes is printed first where it is
        long.

        Parameters
        ----------
        X, y, sample_weight
            What it was trained on.
        sweeps : int
            More of them narrow the interval; 0 is quick, and wide.
        max_time : float, optional
            Limit in seconds; the interval is then that of the sweeps so far, with a warning.

        Returns
        -------
        Certificate
            ``objective``, ``gap``, and ``violation``, the gap as a share of the objective.
        """
        check_is_fitted(self)
        given = {"sweeps": sweeps, "max_time": max_time}
        accepts = {"sweeps": CERTIFY_SWEEPS, "max_time": self._parameter_constraints["max_time"]}
        name = f"{type(self).__name__}.certify"
        validate_parameter_constraints(accepts, given, caller_name=name)
        data = self._encoded(*self._checked(X, y, sample_weight, reset=False))
        if not np.array_equal(data.classes, self.classes_):
            raise ValueError(
                f"y has the classes {list(data.classes)}, but the model was trained with "
                f"{list(self.classes_)}; certify needs what it was trained on."
            )
        data.kernel = self.kernel_
        return certified(self, data, int(sweeps), max_time)


class OutputsEstimator(OutputsModel, StructuralEstimator):
    """Inputs that may be sequences, and outputs as an oracle wants them."""

    _takes_target: ClassVar[bool] = False  # the oracle checks the outputs

    def _oracle_on_rows(self) -> StructuredOracle:
        return self._oracle()

    @with_callbacks
    def fit(self, X: Any, Y: Any = None, sample_weight: Any = None) -> Self:
        """Train on inputs X with outputs Y.

        Parameters
        ----------
        X : array, CSR matrix or DataFrame of shape (n_samples, n_features), or a list of arrays
            Rows; a list has the rows of one example (a sequence) in each of its arrays.
        Y : sequence
            As the oracle wants it: one label for each row, or for a list one sequence of labels for
            each example.
        sample_weight : array of shape (n_examples,), optional
            Scales C for each example. Zero removes it, an integer repeats it.

        Returns
        -------
        self
        """
        return self._fit(X, Y, sample_weight)

    def _checked(
        self, X: Any, y: Any, sample_weight: Any, reset: bool = True
    ) -> tuple[Any, Any, Array]:
        """Rows, outputs together with the lengths of sequences, and weights of examples."""
        self._validate_params()
        oracle = self._oracle()
        if y is None:
            raise ValueError(f"{oracle.name}: requires y to be passed, but the target y is None.")
        rows, lengths = self._stacked(X)
        rows, _, _ = super()._checked(rows, None, None, reset)
        n_examples = rows.shape[0] if lengths is None else lengths.size
        weight = checked_weights(sample_weight, np.empty((n_examples, 1)))
        if oracle.one_example:
            if sample_weight is not None and not np.all(weight == weight[0]):
                raise ValueError(
                    f"{oracle.name} sees the whole set as one example: sample_weight has no "
                    "meaning here. Leave it out."
                )
            weight = np.ones(1)
        return rows, (y, lengths), weight

    def _encoded(self, X: Any, y: Any, weight: Array) -> Data:
        (Y, lengths), oracle = y, self._oracle()
        kept = np.arange(X.shape[0])
        if not weight.all():
            X, Y, weight, lengths, kept = of_positive_weight(X, Y, weight, lengths, oracle.name)
        data = Data(X, kept, kept, kept, kept)
        self._with_oracle(data, oracle, Y, weight, lengths)
        sizes = np.diff(data.about["true"].offsets)
        data.weight = np.repeat(weight, sizes) if weight.size == sizes.size else np.ones(kept.size)
        data.sample_weight = data.weight
        return data


@declared
class StructuralSVM(OutputsEstimator):
    """Structural support vector machine with kernels: the outputs are whatever an oracle says.

    An oracle knows what an output is, what an error costs, and which output is the worst for given
    scores: classes with costs (:class:`slimsvm.oracles.Multiclass`), sequences
    (:class:`slimsvm.oracles.Chain`), measures of a whole set
    (:class:`slimsvm.oracles.Multivariate`), or one of your own. :class:`CrammerSingerSVC`,
    :class:`ChainSVM` and :class:`MultivariateSVC` are the same estimator for the usual ones.

    Parameters
    ----------
    oracle : StructuredOracle
        What is predicted.

    See Also
    --------
    CrammerSingerSVC : For classes.
    ChainSVM : For sequences.
    MultivariateSVC : For F1, ROC area and other measures of a whole set.

    References
    ----------
    .. [1] I. Tsochantaridis, T. Joachims, T. Hofmann, Y. Altun, "Large margin methods for
       structured and interdependent output variables", 2005.
    .. [2] C.-N. J. Yu, T. Joachims, "Training structural SVMs with kernels using sampled cuts",
       2008.
    .. [3] T. Joachims, T. Finley, C.-N. J. Yu, "Cutting-plane training of structural SVMs", 2009.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from slimsvm import StructuralSVM
    >>> from slimsvm.oracles import Multiclass
    >>> X, y = load_iris(return_X_y=True)
    >>> far = [[0, 1, 2], [1, 0, 1], [2, 1, 0]]  # not to be confused: the first and the last class
    >>> model = StructuralSVM(Multiclass(cost=far)).fit(X, y)
    >>> round(model.score(X, y), 2), model.space_
    (0.99, 'kernel')
    """

    oracle: StructuredOracle = parameter(MISSING, StructuredOracle, positional=True)
    C: float = structural("C")
    kernel: Any = structural("kernel")
    gamma: GammaLike = structural("gamma")
    degree: int = structural("degree")
    coef0: float = structural("coef0")
    space: str = structural("space")
    sampling: str = structural("sampling")
    sample_size: int = structural("sample_size")
    n_basis: int = structural("n_basis")
    basis: Any = structural("basis")
    fit_intercept: bool = structural("fit_intercept", False)
    line_search: bool = structural("line_search")
    solver: Any = structural("solver")
    tol: float = structural("tol")
    max_iter: int = structural("max_iter")
    max_time: float | None = structural("max_time")
    max_memory: float | None = structural("max_memory")
    n_jobs: int | None = structural("n_jobs")
    random_state: Any = structural("random_state")
    verbose: bool = structural("verbose")

    def _oracle(self) -> StructuredOracle:
        return self.oracle
