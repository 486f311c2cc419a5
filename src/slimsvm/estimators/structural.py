"""StructuralSVM: large-margin prediction of structured outputs with kernels, for any oracle."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.callback import with_callbacks
from sklearn.utils.validation import _check_sample_weight, check_is_fitted

from slimsvm.estimators.base import NO_TARGET
from slimsvm.estimators.docs import described
from slimsvm.estimators.structural_base import StructuralMachine
from slimsvm.oracles.structured import StructuredOracle

Array = NDArray[Any]


def stacked(X: Any, name: str) -> tuple[Any, Array | None]:
    """Rows, and the number of them in each example where X is a list of arrays (or CSR matrices), one for each example."""
    several = isinstance(X, np.ndarray) and (
        X.ndim == 3 or (X.ndim == 1 and X.dtype == object)
    )  # of one length, of different lengths
    if several or isinstance(X, Iterator):
        X = list(X)
    if not isinstance(X, list | tuple) or not len(X) or not _is_sequence(X[0]):
        return X, None
    blocks = [_block(block, i, name) for i, block in enumerate(X)]
    width = blocks[0].shape[1]
    for i, block in enumerate(blocks):
        if block.shape[0] and block.shape[1] != width:
            raise ValueError(
                f"{name}: example {i} has {block.shape[1]} features, but example 0 has {width}."
            )
        if not block.shape[0]:
            raise ValueError(
                f"{name}: example {i} has no parts; every example needs at least one row."
            )
    lengths = np.array([block.shape[0] for block in blocks], np.int64)
    if any(sp.issparse(block) for block in blocks):
        return sp.vstack(blocks, format="csr"), lengths
    rows = np.concatenate(blocks)
    return (_framed(rows, X, name) if hasattr(X[0], "iloc") else rows), lengths


def _is_sequence(x: Any) -> bool:
    """Whether x has rows: an example of several parts."""
    try:
        return bool(sp.issparse(x) or np.ndim(x) == 2)
    except ValueError:  # rows of different lengths
        return True


def _block(x: Any, i: int, name: str) -> Any:
    """The rows of example i, as numbers."""
    if sp.issparse(x):
        return _finite(x.tocsr(), i, name)
    shape = "it must be an array of shape (length, n_features)"
    try:
        block = np.asarray(x)
    except ValueError as error:
        raise ValueError(
            f"{name}: the rows of example {i} have different lengths; {shape}."
        ) from error
    if block.ndim != 2:
        raise ValueError(
            f"{name}: example {i} has {block.ndim} dimension{'s' * (block.ndim != 1)}; {shape}."
        )
    if block.dtype.kind in "OUS":
        try:
            block = block.astype(np.float64)
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"{name}: example {i} has entries that are not numbers ({error}); {shape}."
            ) from error
    return _finite(block, i, name)


def _finite(block: Any, i: int, name: str) -> Any:
    """The block, if all of its numbers are."""
    values = block.data if sp.issparse(block) else block
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        raise ValueError(f"{name}: example {i} contains NaN or infinity.")
    return block


def _framed(rows: Array, X: Any, name: str) -> Any:
    """The rows as a frame of pandas like those they come from, so that the names of their columns are checked as those of any frame."""
    columns = X[0].columns
    for i, block in enumerate(X):
        if hasattr(block, "iloc") and not columns.equals(block.columns):
            raise ValueError(
                f"{name}: example {i} has the columns {list(block.columns)}, but example 0 has {list(columns)}."
            )
    return type(X[0])(rows, columns=columns)


@described
class StructuralSVM(StructuralMachine):
    """Structural support vector machine with kernels: the outputs are whatever an oracle says.

    An oracle knows what an output is, what an error costs, and which output is the worst for given scores: classes with costs
    (:class:`slimsvm.oracles.Multiclass`), sequences (:class:`slimsvm.oracles.Chain`), measures of a whole set
    (:class:`slimsvm.oracles.Multivariate`), or one of your own. :class:`CrammerSingerSVC`, :class:`ChainSVM` and :class:`MultivariateSVC` are
    the same machine for the usual ones.

    Parameters
    ----------
    oracle : StructuredOracle
        What is predicted.
    {structural}

    Attributes
    ----------
    {structural_attributes}

    See Also
    --------
    CrammerSingerSVC : For classes.
    ChainSVM : For sequences.
    MultivariateSVC : For F1, ROC area and other measures of a whole set.

    References
    ----------
    .. [1] I. Tsochantaridis, T. Joachims, T. Hofmann, Y. Altun, "Large margin methods for structured and interdependent output variables",
       2005.
    .. [2] C.-N. J. Yu, T. Joachims, "Training structural SVMs with kernels using sampled cuts", 2008.
    .. [3] T. Joachims, T. Finley, C.-N. J. Yu, "Cutting-plane training of structural SVMs", 2009.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from slimsvm import StructuralSVM
    >>> from slimsvm.oracles import Multiclass
    >>> X, y = load_iris(return_X_y=True)
    >>> far = [[0, 1, 2], [1, 0, 1], [2, 1, 0]]  # the first and the last class are not to be confused
    >>> model = StructuralSVM(Multiclass(cost=far)).fit(X, y)
    >>> round(model.score(X, y), 2), model.space_
    (0.99, 'kernel')
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "oracle": [StructuredOracle],
        **StructuralMachine._parameter_constraints,
    }

    def __init__(
        self,
        oracle: StructuredOracle,
        *,
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
        fit_intercept: bool = False,
        line_search: bool = True,
        tol: float = 1e-3,
        max_iter: int = 10_000,
        max_time: float | None = None,
        max_memory: float | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        self.oracle = oracle
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
    def fit(self, X: Any, Y: Any, sample_weight: Any = None) -> StructuralSVM:
        """Train on inputs X with outputs Y.

        Parameters
        ----------
        X : array, CSR matrix or DataFrame of shape (n_samples, n_features), or a list of arrays
            Rows; a list has the rows of one example (a sequence) in each of its arrays.
        Y : sequence
            As the oracle wants it: one label for each row, or for a list one sequence of labels for each example.
        sample_weight : array of shape (n_examples,), optional
            Scales C for each example. Zero removes it, an integer repeats it.

        Returns
        -------
        self
        """
        self._validate_params()
        if Y is None:
            raise ValueError(f"{self._name}: requires y to be passed, but the target y is None.")
        rows, lengths = self._stacked(X)
        rows, _, _ = self._checked(rows, NO_TARGET, None)
        n = rows.shape[0] if lengths is None else lengths.size
        weight = _check_sample_weight(
            sample_weight, np.empty((n, 1)), dtype=np.float64, ensure_non_negative=True, copy=True
        )
        oracle = self._oracle()
        if oracle.one_example:
            if sample_weight is not None and not np.all(weight == weight[0]):
                raise ValueError(
                    f"{self._name} sees the whole set as one example: sample_weight has no meaning here. Leave it out."
                )
            weight = np.ones(1)
        used = np.flatnonzero(weight > 0)
        kept = None
        if used.size < weight.size:
            rows, Y, lengths, weight, kept = _without(self._name, rows, Y, lengths, used, weight)
        self._train(rows, Y, weight, oracle, lengths)
        if kept is not None and self.basis_indices_ is not None:
            self.basis_indices_ = kept[self.basis_indices_]
        return self

    def _oracle(self) -> StructuredOracle:
        """What is predicted."""
        return self.oracle

    @property
    def _name(self) -> str:
        return self._oracle().name

    def _stacked(self, X: Any) -> tuple[Any, Array | None]:
        """Rows and the lengths of sequences; an oracle of sequences says that it needs some before X is taken for a matrix."""
        rows, lengths = stacked(X, self._name)
        if lengths is None:
            self._oracle().offsets(0)
        return rows, lengths

    def decision_function(self, X: Any) -> Array:
        """Scores of all rows, before the oracle makes an output of them.

        Parameters
        ----------
        X : as in fit
            New inputs.

        Returns
        -------
        array of shape (n_rows, columns)
            The rows of a list of arrays one after the other.
        """
        check_is_fitted(self)
        return self._outputs(self._stacked(X)[0])

    def predict(self, X: Any) -> Any:
        """Outputs for new inputs.

        Parameters
        ----------
        X : as in fit
            New inputs.

        Returns
        -------
        array, or for a list of arrays a list
            As the oracle decodes them.
        """
        check_is_fitted(self)
        rows, lengths = self._stacked(X)
        scores = self._outputs(rows)
        offsets = self.oracle_.offsets(scores.shape[0], lengths)
        return self.oracle_.decode(
            self._best(scores, offsets), None if lengths is None else offsets, self.classes_
        )

    def score(self, X: Any, Y: Any, sample_weight: Any = None) -> float:
        """One minus the mean loss: of examples, or of their parts where the loss is a sum over them.

        Parameters
        ----------
        X, Y : as in fit
            New inputs and their true outputs.
        sample_weight : array of shape (n_examples,), optional
            Weights of the mean.

        Returns
        -------
        float
        """
        check_is_fitted(self)
        rows, lengths = self._stacked(X)
        scores = self._outputs(rows)
        true = self.oracle_.encode(Y, scores.shape[0], lengths, self.classes_)
        n = true.offsets.size - 1
        weight = _check_sample_weight(
            sample_weight, np.empty((n, 1)), dtype=np.float64, ensure_non_negative=True
        )
        return 1.0 - self._mean_loss(true, self._best(scores, true.offsets), weight)


def _without(
    name: str, rows: Any, Y: Any, lengths: Array | None, used: Array, weight: Array
) -> tuple[Any, Any, Array | None, Array, Array]:
    """Only the examples of positive weight, and which rows they have."""
    Y = np.asarray(Y) if lengths is None else list(Y)
    if len(Y) != weight.size:
        raise ValueError(f"{name}: Y has {len(Y)} examples, but X has {weight.size}.")
    if lengths is None:
        return rows[used], Y[used], None, weight[used], used
    kept = np.flatnonzero(np.repeat(weight > 0, lengths))
    return rows[kept], [Y[i] for i in used], lengths[used], weight[used], kept
