"""Friendly fronts of the structural machine: classes, sequences, and measures of a whole set."""

from __future__ import annotations

from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.callback import with_callbacks
from sklearn.utils._param_validation import Interval, RealNotInt, StrOptions

from slimsvm.estimators.classification import class_factors, encoded
from slimsvm.estimators.docs import described
from slimsvm.estimators.structural import StructuralSVM
from slimsvm.estimators.structural_base import SPACES, StructuralMachine
from slimsvm.oracles import Chain, Multiclass, Multivariate

Array = NDArray[Any]
MEASURES = ("f1", "roc_auc", "average_precision", "precision_at_k", "recall_at_k")


@described
class CrammerSingerSVC(ClassifierMixin, StructuralMachine):
    """Multi-class support vector classification with one joint margin, and any costs of confusion.

    Each class has a function f_c; an example of class y pays max over c of [cost(y, c) + f_c(x) - f_y(x)]. Unlike one-vs-one or one-vs-rest,
    this is one problem over all classes (Crammer & Singer 2001), solved by cutting planes.

    Parameters
    ----------
    cost : array of shape (n_classes, n_classes), optional
        cost[a, b] of answering class b where a is true, classes in sorted order; zero on the diagonal. None: one for every mistake.
    class_weight : dict or 'balanced', optional
        Factors of C for the examples of each class.
    {structural}

    Attributes
    ----------
    {structural_attributes}
    class_weight_ : array
        Factor of the weights for each class.

    See Also
    --------
    SVC : One machine for each pair of classes, exact.
    StructuralSVM : For any structured output.

    References
    ----------
    .. [1] K. Crammer, Y. Singer, "On the algorithmic implementation of multiclass kernel-based vector machines", 2001.
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

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "cost": ["array-like", None],
        "class_weight": [StrOptions({"balanced"}), dict, None],
        **StructuralMachine._parameter_constraints,
    }

    class_weight_: Array

    def __init__(
        self,
        *,
        cost: Any = None,
        class_weight: Any = None,
        C: float = 1.0,
        kernel: Any = "rbf",
        gamma: float | str = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        space: str = "auto",
        sampling: str = "linear_time",
        sample_size: int = 400,
        n_basis: int = 100,
        basis: Any = "pursuit",
        fit_intercept: bool = True,
        line_search: bool = True,
        tol: float = 1e-3,
        max_iter: int = 10_000,
        max_time: float | None = None,
        max_memory: float | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        self.cost = cost
        self.class_weight = class_weight
        self.C = C
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.space = space
        self.sampling = sampling
        self.sample_size = sample_size
        self.n_basis = n_basis
        self.basis = basis
        self.fit_intercept = fit_intercept
        self.line_search = line_search
        self.tol = tol
        self.max_iter = max_iter
        self.max_time = max_time
        self.max_memory = max_memory
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> CrammerSingerSVC:
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
        classes, label, used = encoded(y, weight)
        if used.size < weight.size:
            X, label, weight = X[used], label[used], weight[used]
        factors = class_factors(
            self.class_weight, classes=classes, y=classes[label], sample_weight=weight
        )
        self._train(X, classes[label], weight, Multiclass(self.cost), None, factors[label])
        self.class_weight_ = factors
        if self.basis_indices_ is not None:
            self.basis_indices_ = used[self.basis_indices_]
        return self

    def decision_function(self, X: Any) -> Array:
        """Scores of the classes.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)
            New rows.

        Returns
        -------
        array of shape (n_samples, n_classes), or (n_samples,) for two classes: the second one's minus the first one's
        """
        scores = self._outputs(X)
        return scores[:, 1] - scores[:, 0] if len(self.classes_) == 2 else scores

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
        best = np.argmax(self._outputs(X), axis=1)
        return np.asarray(self.classes_[best])


@described
class MultivariateSVC(ClassifierMixin, StructuralMachine):
    """Two classes, trained for a measure of the whole set: F1, ROC area, average precision, precision or recall at k.

    All training rows together are one example, whose loss is one minus the measure; the machine minimises a convex bound of it. With kernels
    it lives in the span of ``n_basis`` vectors.

    Parameters
    ----------
    loss : {{'f1', 'roc_auc', 'average_precision', 'precision_at_k', 'recall_at_k'}}, default='f1'
        The measure.
    k : int or float, default=10
        Of precision and recall at k: a number of rows, or a share of them.
    {structural}

    Attributes
    ----------
    {structural_attributes}

    Notes
    -----
    What C means depends on the measure. For ROC area and average precision the risk is a mean over pairs of rows, and n times the C of a plain
    machine is on its scale. For F1 and at k it is a sum over rows in which one wrong row costs about 1/(2 P), with P positives: there C/(2 P)
    is on the scale of a plain machine's C.
    What is minimised is a convex bound of the measure, so that another machine may be better by the measure itself, on the training rows too.
    For precision and recall at k the bound compares the k highest rows with the mean of the positives: where in every direction k negatives
    lie above that mean, the best function is zero.
    For F1 the sign of the decision function is the prediction. The other measures know rankings only: the intercept is then such that as many
    training rows are predicted positive as there are.

    References
    ----------
    .. [1] T. Joachims, "A support vector method for multivariate performance measures", 2005.
    .. [2] Y. Yue, T. Finley, F. Radlinski, T. Joachims, "A support vector method for optimizing average precision", 2007.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from slimsvm import MultivariateSVC
    >>> X, y = make_classification(500, weights=[0.9], random_state=0)
    >>> model = MultivariateSVC("f1", kernel="linear", C=0.01).fit(X, y)
    >>> round(model.score(X, y), 3)  # F1
    0.725
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "loss": [StrOptions(set(MEASURES))],
        "k": [
            Interval(Integral, 1, None, closed="left"),
            Interval(RealNotInt, 0.0, 1.0, closed="neither"),
        ],
        **{
            name: values
            for name, values in StructuralMachine._parameter_constraints.items()
            if name not in ("sampling", "sample_size")
        },
        "space": [StrOptions({"auto", *SPACES} - {"sampled"})],
    }

    def __init__(
        self,
        loss: str = "f1",
        *,
        k: float = 10,
        C: float = 1.0,
        kernel: Any = "rbf",
        gamma: float | str = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        space: str = "auto",
        n_basis: int = 100,
        basis: Any = "pursuit",
        fit_intercept: bool = True,
        line_search: bool = True,
        tol: float = 1e-3,
        max_iter: int = 10_000,
        max_time: float | None = None,
        max_memory: float | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        self.loss = loss
        self.k = k
        self.C = C
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.space = space
        self.n_basis = n_basis
        self.basis = basis
        self.fit_intercept = fit_intercept
        self.line_search = line_search
        self.tol = tol
        self.max_iter = max_iter
        self.max_time = max_time
        self.max_memory = max_memory
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    @with_callbacks
    def fit(self, X: Any, y: Any) -> MultivariateSVC:
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
        X, y, weight = self._checked(X, y, None)
        classes, label, _ = encoded(y, weight)
        if classes.size > 2:
            raise ValueError(
                f"Only binary classification is supported. The type of the target is multiclass: y has {classes.size} classes; a measure such "
                "as F1 has one positive class and one negative."
            )
        self._train(X, classes[label], np.ones(1), Multivariate(self.loss, self.k))
        if self.loss != "f1":  # a ranking has no zero of its own
            scores, positive = np.sort(self._outputs(X)[:, 0])[::-1], int(label.sum())
            self.intercept_ = self.intercept_ - 0.5 * (scores[positive - 1] + scores[positive])
            self._make()
        return self

    def decision_function(self, X: Any) -> Array:
        """Scores: positive for the second class.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)
            New rows.

        Returns
        -------
        array of shape (n_samples,)
        """
        return np.asarray(self._outputs(X)[:, 0])

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
        positive = self.decision_function(X) > 0.0
        return np.asarray(self.classes_[positive.astype(int)])

    def score(self, X: Any, y: Any, sample_weight: None = None) -> float:
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
                f"{self.loss} is a measure of the whole set, without weights of rows; leave sample_weight out."
            )
        scores = self._outputs(X)
        true = self.oracle_.encode(y, scores.shape[0], None, self.classes_)
        return 1.0 - self._mean_loss(true, self._best(scores, true.offsets))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags


@described
class ChainSVM(StructuralSVM):
    """Sequence labelling: kernels on what is seen at each position, and weights for which label follows which.

    A hidden Markov model trained for its margin: the labels of a sequence are predicted together, by Viterbi's recursion, and an error
    costs one for each wrong position.

    Parameters
    ----------
    start_end : bool, default=True
        Whether labels also have a weight for being the first and the last of a sequence.
    {structural}

    Attributes
    ----------
    {structural_attributes}
    transitions_ : array of shape (n_classes, n_classes)
        Weight of each label (column) after each label (row).

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

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "start_end": ["boolean"],
        **StructuralMachine._parameter_constraints,
    }

    def __init__(
        self,
        *,
        start_end: bool = True,
        C: float = 1.0,
        kernel: Any = "rbf",
        gamma: float | str = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        space: str = "auto",
        sampling: str = "linear_time",
        sample_size: int = 400,
        n_basis: int = 100,
        basis: Any = "pursuit",
        fit_intercept: bool = True,
        line_search: bool = True,
        tol: float = 1e-3,
        max_iter: int = 10_000,
        max_time: float | None = None,
        max_memory: float | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        self.start_end = start_end
        self.C = C
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.space = space
        self.sampling = sampling
        self.sample_size = sample_size
        self.n_basis = n_basis
        self.basis = basis
        self.fit_intercept = fit_intercept
        self.line_search = line_search
        self.tol = tol
        self.max_iter = max_iter
        self.max_time = max_time
        self.max_memory = max_memory
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def _oracle(self) -> Chain:
        return Chain(start_end=bool(self.start_end))

    @property
    def transitions_(self) -> Array:
        """Weight of each label (column) after each label (row)."""
        n = len(self.classes_)
        return self.linear_[: n * n].reshape(n, n)
