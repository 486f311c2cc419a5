"""Any transformer of scikit-learn for rows, made one for sequences of rows."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, pairwise
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, MetaEstimatorMixin, TransformerMixin, clone
from sklearn.utils.validation import check_is_fitted


class SequenceTransformer(MetaEstimatorMixin, TransformerMixin, BaseEstimator):
    """Transform each sequence of a list, with one transformer for all their rows.

    A step before :class:`~slimsvm.ChainSVM` in a Pipeline: features as dictionaries
    (``DictVectorizer``, ``FeatureHasher``), scaled features, words (``TfidfVectorizer``).

    Parameters
    ----------
    transformer : transformer
        Of scikit-learn, for rows. It is cloned.

    Attributes
    ----------
    transformer_
        The fitted one.

    Examples
    --------
    Which word is what, from the word itself and its ending:

    >>> from sklearn.feature_extraction import DictVectorizer
    >>> from sklearn.pipeline import make_pipeline
    >>> from slimsvm import ChainSVM
    >>> from slimsvm.sequences import SequenceTransformer
    >>> words = [["the", "cat", "sleeps"], ["a", "dog", "runs"]]
    >>> X = [[{"word": word, "ends with s": word.endswith("s")} for word in line] for line in words]
    >>> Y = [["det", "noun", "verb"], ["det", "noun", "verb"]]
    >>> tagger = make_pipeline(SequenceTransformer(DictVectorizer()), ChainSVM(kernel="linear"))
    >>> [str(tag) for tag in tagger.fit(X, Y).predict([X[1]])[0]]
    ['det', 'noun', 'verb']
    """

    def __init__(self, transformer: Any) -> None:
        self.transformer = transformer

    def fit(self, X: Sequence[Any], y: Any = None) -> Self:
        """Fit the transformer to the rows of all sequences.

        Parameters
        ----------
        X : list of sequences
            Each a list or an array of what the transformer takes as rows.
        y : ignored
            The transformer sees no labels.

        Returns
        -------
        self
        """
        rows, _ = _stacked(X)
        self.transformer_ = clone(self.transformer).fit(rows)
        return self

    def transform(self, X: Sequence[Any]) -> list[Any]:
        """The sequences, each as the array or sparse matrix of its transformed rows.

        Parameters
        ----------
        X : list of sequences
            As in fit.

        Returns
        -------
        list
        """
        check_is_fitted(self)
        rows, offsets = _stacked(X)
        changed = self.transformer_.transform(rows)
        changed = changed.tocsr() if hasattr(changed, "tocsr") else np.asarray(changed)
        return [changed[a:b] for a, b in pairwise(offsets)]


def _stacked(X: Sequence[Any]) -> tuple[Any, list[int]]:
    """All rows behind each other, and where each sequence begins and the last ends."""
    sequences = list(X)
    if not sequences:
        raise ValueError("X has no sequences; expected a list of at least one.")
    lengths = []
    for i, one in enumerate(sequences):
        if not hasattr(one, "__len__") or isinstance(one, str | bytes | dict):
            raise ValueError(
                f"Sequence {i} of X is {type(one).__name__}; expected a list or an array of rows."
            )
        lengths.append(int(one.shape[0]) if hasattr(one, "shape") else len(one))
        if lengths[-1] == 0:
            raise ValueError(f"Sequence {i} of X has no rows.")
    offsets = [0, *np.cumsum(lengths).tolist()]
    if all(isinstance(one, np.ndarray) and one.ndim == 2 for one in sequences):
        return np.concatenate(sequences), offsets
    return list(chain.from_iterable(sequences)), offsets
