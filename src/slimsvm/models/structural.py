"""Scores from which an oracle makes outputs: classes, sequences, a ranking."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from slimsvm.declarations import Attribute, attribute, demand, of_new_rows
from slimsvm.models.basis import BasisVectors
from slimsvm.models.predictions import over_rows, score_on_rows
from slimsvm.oracles.sequences import stacked
from slimsvm.oracles.structured import StructuredOracle
from slimsvm.rows import is_far
from slimsvm.solvers.structural_spaces import SPACES
from slimsvm.threads import n_threads
from slimsvm.training import checked_weights

Array = NDArray[Any]
NEW_SEQUENCES = ("X : list of arrays", "    New sequences.")
NEW_INPUTS = ("X : as in fit", "    New inputs.")


class StructuralModel(BasisVectors):
    """An oracle, a space, and scores.

    Attributes
    ----------
    classes_
        The labels, sorted.
    coef_
        Weights of the features for each column of scores, in the explicit space.
    basis_
        In the other spaces: the vectors that carry weight.
    linear_
        Weights of the linear part of the oracle (transitions of a chain); empty if it has none.
    oracle_
        The oracle, with the labels known.
    space_
        The space that was used.
    """

    fitted: ClassVar[tuple[Attribute, ...]] = (
        attribute("classes_", "labels", ("n_classes",)),
        attribute("coef_", "float", ("n_outputs", "n_features"), optional=True),
        attribute("basis_", "rows", ("n_basis", "n_features")),
        attribute("linear_", "float", ("n_linear",)),
        attribute("oracle_", "oracle"),
        attribute("space_", "text"),
    )
    classes_: Array
    coef_: Array
    linear_: Array
    oracle_: StructuredOracle
    space_: str

    def _outputs(self, X: Any) -> Array:
        return self._scores(self._new_rows(X))

    def _scores(self, X: Any) -> Array:
        """Scores of validated rows, (rows, columns)."""
        if self.space_ == "explicit":
            return np.asarray(X @ self.coef_.T + self.intercept_, np.float64)
        return self._function().decision_function(X, n_threads(self.n_jobs))

    def _best(self, scores: Array, offsets: Array) -> Array:
        """The predicted labels of all parts, as numbers."""
        return self.oracle_.best(scores, offsets, self.linear_, n_threads(self.n_jobs))

    @classmethod
    def _n_outputs(cls, a: dict[str, Any]) -> int:
        try:
            a["oracle_"].prepare(a["classes_"])
        except ValueError as error:
            complaint = str(error).rstrip(".")
            raise ValueError(f"oracle_ and classes_ do not fit: {complaint}") from error
        return int(a["oracle_"].n_columns)

    @classmethod
    def _sizes(cls, a: dict[str, Any]) -> dict[str, int]:
        return {**super()._sizes(a), "n_linear": a["oracle_"].n_linear}

    @classmethod
    def _check_fitted(cls, a: dict[str, Any]) -> None:
        super()._check_fitted(a)
        demand(a["space_"] in SPACES, f"space_ is {a['space_']!r}, not one of {', '.join(SPACES)}")
        right = (a["space_"] == "explicit") == ("coef_" in a)
        demand(right, "coef_ belongs to the explicit space, and only to it")


class OutputsModel(StructuralModel):
    """Inputs that may be sequences, and outputs as an oracle wants them."""

    def _oracle(self) -> StructuredOracle:
        """What is predicted."""
        raise NotImplementedError

    def _stacked(self, X: Any) -> tuple[Any, Array | None]:
        """Rows and the lengths of sequences.

        An oracle of sequences says that it needs some before X is taken for a matrix.
        """
        oracle = self._oracle()
        rows, lengths = stacked(X, oracle.name)
        if lengths is None:
            oracle.offsets(0)
        return rows, lengths

    @of_new_rows(
        "array of shape (n_rows, columns)",
        "    The rows of a list of arrays one after the other.",
        X=NEW_INPUTS,
    )
    def decision_function(self, X: Any) -> Array:
        """Scores of all rows, before the oracle makes an output of them."""
        check_is_fitted(self)
        if is_far(X):
            return over_rows(self, "decision_function", X)
        return self._outputs(self._stacked(X)[0])

    @of_new_rows(
        "array, or for a list of arrays a list", "    As the oracle decodes them.", X=NEW_INPUTS
    )
    def predict(self, X: Any) -> Any:
        """Outputs for new inputs."""
        check_is_fitted(self)
        if is_far(X):
            return over_rows(self, "predict", X)
        rows, lengths = self._stacked(X)
        scores = self._outputs(rows)
        offsets = self.oracle_.offsets(scores.shape[0], lengths)
        best = self._best(scores, offsets)
        return self.oracle_.decode(best, None if lengths is None else offsets, self.classes_)

    def score(self, X: Any, Y: Any = None, sample_weight: Any = None) -> float:
        """One minus the mean loss: of examples, or of their parts where the loss sums over them.

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
        if is_far(X):
            return score_on_rows(self, X, Y, sample_weight)
        rows, lengths = self._stacked(X)
        scores = self._outputs(rows)
        true = self.oracle_.encode(Y, scores.shape[0], lengths, self.classes_)
        weight = checked_weights(sample_weight, np.empty((true.offsets.size - 1, 1)))
        found = self._best(scores, true.offsets)
        return 1.0 - self.oracle_.mean_loss(true, found, weight)


class ChainModel(OutputsModel):
    """Sequences, with weights for which label follows which.

    Attributes
    ----------
    transitions_
        Weight of each label (column) after each label (row).
    """

    fitted: ClassVar[tuple[Attribute, ...]] = (
        attribute("transitions_", "float", ("n_classes", "n_classes"), stored=False),
    )

    @of_new_rows(
        "list of arrays of shape (length, n_classes)", "    Rows sum to one.", X=NEW_SEQUENCES
    )
    def predict_marginals(self, X: Any) -> list[Array]:
        """The share of each label at each position, among all sequences of labels.

        Every sequence counts by the exponential of its score, as in a conditional random field.
        The scores were trained for a margin, so these are no calibrated probabilities.
        """
        return self._marginals(X, summed=True)

    @of_new_rows(
        "list of arrays of shape (length,)",
        "    Not negative; 1 is the margin that training asks for.",
        X=NEW_SEQUENCES,
    )
    def predict_confidence(self, X: Any) -> list[Array]:
        """How sure each predicted label is.

        By how much the score of the best sequence is above that of the best one with another label
        at this position.
        """
        # the highest is that of the best sequence, at every position
        ordered = [np.sort(values, axis=1) for values in self._marginals(X, summed=False)]
        return [values[:, -1] - values[:, -2] for values in ordered]

    def _marginals(self, X: Any, summed: bool) -> list[Array]:
        check_is_fitted(self)
        rows, lengths = self._stacked(X)
        scores = self._outputs(rows)
        offsets = self.oracle_.offsets(scores.shape[0], lengths)
        threads = n_threads(self.n_jobs)
        values = self.oracle_.marginals(scores, offsets, self.linear_, summed, threads)
        return [values[a:b] for a, b in pairwise(offsets)]

    @property
    def transitions_(self) -> Array:
        """Weight of each label (column) after each label (row)."""
        n = len(self.classes_)
        return self.linear_[: n * n].reshape(n, n)
