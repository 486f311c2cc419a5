"""Structural estimators for the usual outputs: classes, sequences, and measures of a whole set."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils._param_validation import Interval, RealNotInt, StrOptions

from slimsvm.declarations import declared, parameter
from slimsvm.ending import Ending
from slimsvm.estimators.fitting import Classifier, with_callbacks
from slimsvm.estimators.parameters import AT_LEAST_ONE, ClassWeight, GammaLike, shared
from slimsvm.estimators.structural import OutputsEstimator, StructuralEstimator, structural
from slimsvm.models.predictions import ClassPredictions
from slimsvm.models.structural import ChainModel
from slimsvm.multiclass import Joint, OneVsRest, encoded
from slimsvm.oracles import Chain, Multiclass, Multivariate
from slimsvm.oracles.structured import StructuredOracle
from slimsvm.solvers.structural_spaces import SPACES, Found
from slimsvm.training import Data, Fit

Array = NDArray[Any]
MEASURES = ("f1", "roc_auc", "average_precision", "precision_at_k", "recall_at_k")


@declared
class CrammerSingerSVC(StructuralEstimator, Classifier):
    """Multi-class support vector classification with one joint margin, and any costs of confusion.

    Each class has a function f_c; an example of class y pays
    max over c of [cost(y, c) + f_c(x) - f_y(x)]. Unlike one-vs-one or one-vs-rest, this is one
    problem over all classes (Crammer & Singer 2001), solved by cutting planes.

    Parameters
    ----------
    cost : array of shape (n_classes, n_classes)
        cost[a, b] of answering class b where a is true, classes in sorted order; zero on the
        diagonal. None: one for every mistake.
    class_weight : dict or 'balanced'
        Factors of C for the examples of each class.

    See Also
    --------
    SVC : One problem for each pair of classes, exact.
    StructuralSVM : For any structured output.

    References
    ----------
    .. [1] K. Crammer, Y. Singer, "On the algorithmic implementation of multiclass kernel-based
       vector machines", 2001.
    .. [2] T. Joachims, T. Finley, C.-N. J. Yu, "Cutting-plane training of structural SVMs", 2009.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from slimsvm import CrammerSingerSVC
    >>> X, y = load_iris(return_X_y=True)
    >>> model = CrammerSingerSVC(C=10.0).fit(X, y)
    >>> round(model.score(X, y), 2), model.certificate_.holds
    (0.99, True)
    """

    cost: Any = parameter(None, "array-like", None)
    class_weight: ClassWeight = shared("class_weight")
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
    fit_intercept: bool = structural("fit_intercept")
    line_search: bool = structural("line_search")
    tol: float = structural("tol")
    max_iter: int = structural("max_iter")
    max_time: float | None = structural("max_time")
    max_memory: float | None = structural("max_memory")
    n_jobs: int | None = structural("n_jobs")
    random_state: Any = structural("random_state")
    verbose: bool = structural("verbose")

    scheme: ClassVar[Any] = Joint

    def _encoded(self, X: Any, y: Any, weight: Array) -> Data:
        data = super()._encoded(X, y, weight)
        labels = data.classes[data.target]
        return self._with_oracle(data, Multiclass(self.cost), labels, data.weight)

    def _oracle_on_rows(self) -> StructuredOracle:
        return Multiclass(self.cost)

    def _concluded(self, data: Data, solved: tuple[str, Found], fit: Fit) -> Ending:
        self.class_weight_ = data.factors
        return super()._concluded(data, solved, fit)


@declared
class MultivariateSVC(ClassPredictions, StructuralEstimator):
    """Two classes, trained for a measure of the whole set.

    The measures are F1, ROC area, average precision, and precision or recall at k. All training
    rows together are one example, whose loss is one minus the measure; a convex bound of it is
    minimised. With kernels the function is in the span of ``n_basis`` vectors.

    Parameters
    ----------
    loss : {'f1', 'roc_auc', 'average_precision', 'precision_at_k', 'recall_at_k'}
        The measure.
    k : int or float
        Of precision and recall at k: a number of rows, or a share of them.
    space : {'auto', 'explicit', 'kernel', 'subspace'}
        How functions are represented.

        - 'explicit': weights of features, for the linear kernel;
        - 'kernel': all rows, exact, for few of them: n^2 kernel values;
        - 'subspace': the span of ``n_basis`` vectors;
        - 'auto': 'explicit' for the linear kernel; otherwise 'kernel' up to 1,000 rows, and
          'subspace' beyond.

    Notes
    -----
    What C means depends on the measure. For ROC area and average precision the risk is a mean over
    pairs of rows, and n times the C of an SVC is on its scale. For F1 and at k it is a sum over
    rows in which one wrong row costs about 1/(2 P), with P positives: there C/(2 P) is on the scale
    of the C of an SVC.
    What is minimised is a convex bound of the measure, so that another model may be better by the
    measure itself, on the training rows too. For precision and recall at k the bound compares the k
    highest rows with the mean of the positives: where in every direction k negatives lie above that
    mean, the best function is zero.
    For F1 the sign of the decision function is the prediction. The other measures know rankings
    only: the intercept is then such that as many training rows are predicted positive as there are.

    References
    ----------
    .. [1] T. Joachims, "A support vector method for multivariate performance measures", 2005.
    .. [2] Y. Yue, T. Finley, F. Radlinski, T. Joachims, "A support vector method for optimizing
       average precision", 2007.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from slimsvm import MultivariateSVC
    >>> X, y = make_classification(500, weights=[0.9], random_state=0)
    >>> model = MultivariateSVC("f1", kernel="linear", C=0.01).fit(X, y)
    >>> round(model.score(X, y), 3)  # F1
    0.725
    """

    loss: str = parameter("f1", StrOptions(set(MEASURES)), positional=True)
    k: float = parameter(10, AT_LEAST_ONE, Interval(RealNotInt, 0.0, 1.0, closed="neither"))
    C: float = structural("C")
    kernel: Any = structural("kernel")
    gamma: GammaLike = structural("gamma")
    degree: int = structural("degree")
    coef0: float = structural("coef0")
    space: str = parameter("auto", StrOptions({"auto", *SPACES} - {"sampled"}))
    n_basis: int = structural("n_basis")
    basis: Any = structural("basis")
    fit_intercept: bool = structural("fit_intercept")
    line_search: bool = structural("line_search")
    tol: float = structural("tol")
    max_iter: int = structural("max_iter")
    max_time: float | None = structural("max_time")
    max_memory: float | None = structural("max_memory")
    n_jobs: int | None = structural("n_jobs")
    random_state: Any = structural("random_state")
    verbose: bool = structural("verbose")

    scheme: ClassVar[Any] = OneVsRest

    @with_callbacks
    def fit(self, X: Any, y: Any = None) -> Self:  # type: ignore[override]
        """Train on rows X with labels y.

        Parameters
        ----------
        X : array, CSR matrix or DataFrame of shape (n_samples, n_features)
            Training rows.
        y : array of shape (n_samples,)
            Labels of two classes; the second in sorted order is the positive one.

        Returns
        -------
        self
        """
        return self._fit(X, y, None)

    def _encoded(self, X: Any, y: Any, weight: Array) -> Data:
        classes, label, used = encoded(y, weight)
        if classes.size > 2:
            raise ValueError(
                "Only binary classification is supported. The type of the target is multiclass: y "
                f"has {classes.size} classes; a measure such as F1 has one positive class and one "
                "negative."
            )
        oracle, data = Multivariate(self.loss, self.k), self._data(X, label, weight, used, weight)
        return self._with_oracle(data, oracle, classes[label], np.ones(1))

    def _concluded(self, data: Data, solved: tuple[str, Found], fit: Fit) -> Ending:
        ending = super()._concluded(data, solved, fit)
        if self.loss != "f1":  # a ranking has no zero of its own
            scores = np.sort(self._scores(data.X)[:, 0])[::-1]
            n_positive = int(data.target.sum())
            self.intercept_ = self.intercept_ - 0.5 * (scores[n_positive - 1] + scores[n_positive])
        return ending

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """The measure on a new set.

        Parameters
        ----------
        X, y : as in fit
            New rows and their labels.
        sample_weight : None
            The measure is of the whole set.

        Returns
        -------
        float
        """
        if sample_weight is not None:
            raise ValueError(
                f"{self.loss} is a measure of the whole set, without weights of rows; leave "
                "sample_weight out."
            )
        scores = self._outputs(X)
        true = self.oracle_.encode(y, scores.shape[0], None, self.classes_)
        return 1.0 - self.oracle_.mean_loss(true, self._best(scores, true.offsets))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags


@declared
class ChainSVM(ChainModel, OutputsEstimator):
    """Sequence labelling: kernels for each position, and weights for which label follows which.

    A hidden Markov model trained for its margin: the labels of a sequence are predicted together,
    by Viterbi's recursion, and an error costs one for each wrong position.

    Parameters
    ----------
    start_end : bool
        Whether labels also have a weight for being the first and the last of a sequence.

    References
    ----------
    .. [1] Y. Altun, I. Tsochantaridis, T. Hofmann, "Hidden Markov support vector machines", 2003.
    .. [2] T. Joachims, T. Finley, C.-N. J. Yu, "Cutting-plane training of structural SVMs", 2009.

    Examples
    --------
    Two labels that take turns, seen through noise:

    >>> import numpy as np
    >>> from slimsvm import ChainSVM
    >>> rng = np.random.default_rng(0)
    >>> Y = [(np.arange(10) + start) % 2 for start in rng.integers(2, size=20)]
    >>> X = [y[:, None] + rng.normal(scale=0.7, size=(10, 1)) for y in Y]
    >>> model = ChainSVM(kernel="linear").fit(X, Y)
    >>> model.score(X, Y), model.predict(X[:1])[0].shape
    (0.99, (10,))
    """

    start_end: bool = parameter(True, "boolean")
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
    fit_intercept: bool = structural("fit_intercept")
    line_search: bool = structural("line_search")
    tol: float = structural("tol")
    max_iter: int = structural("max_iter")
    max_time: float | None = structural("max_time")
    max_memory: float | None = structural("max_memory")
    n_jobs: int | None = structural("n_jobs")
    random_state: Any = structural("random_state")
    verbose: bool = structural("verbose")

    def _oracle(self) -> Chain:
        return Chain(start_end=bool(self.start_end))
