"""Sequences: a label for every position.

Its score comes from the data, and from which label follows which.

    s(y) = sum_t scores[t, y_t]  +  sum_t transition[y_t-1, y_t]  +  start[y_1]  +  end[y_T],
    Delta = number of wrong positions

a hidden Markov model trained for its margin (Altun, Tsochantaridis & Hofmann 2003; Tsochantaridis
et al. 2005). The emissions scores[t, .] are whatever the model makes of the rows, kernel
expansions for one; transitions, start and end are the linear part:

    linear = [transition[0, 0], transition[0, 1], ..., transition[K-1, K-1]
              | start[0..K-1] | end[0..K-1]]

The best sequence is found by Viterbi's recursion v_t[b] = scores[t, b] + max_a (v_t-1[a] +
transition[a, b]); the most violating one by the same recursion with scores[t, b] + 1 wherever b is
not the true label, since the loss is a sum over positions. A sequence that no other beats counts as
right: ties go to the truth.

Symbols: K labels; v scores of the best beginnings that end in each label. Cost: O(positions x K^2).
Sequences are independent, so that groups of them run on threads with the same bits for any number.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from slimsvm.compiled import compiled
from slimsvm.oracles.structured import BlockOracle, in_groups

Array = NDArray[Any]


class Chain(BlockOracle):
    """Label sequences with transitions; the loss is the number of wrong positions.

    Parameters
    ----------
    start_end : bool, default True
        Whether labels have a weight for being the first and for being the last of a sequence,
        beside the transitions.

    Examples
    --------
    >>> import numpy as np
    >>> from slimsvm.oracles import Chain
    >>> oracle = Chain(start_end=False)
    >>> true = oracle.encode([["a", "b", "a"], ["b"]], n_rows=4, lengths=[3, 1])
    >>> change = np.array([0.0, 1.0, 1.0, 0.0])  # a label likes to follow the other one
    >>> scores = np.array([[1.5, 0.0], [0.1, 0.0], [0.0, 0.0], [0.0, 0.5]])
    >>> oracle.decode(oracle.best(scores, true.offsets, change), true.offsets, true.classes)
    [array(['a', 'b', 'a'], dtype='<U1'), array(['b'], dtype='<U1')]
    >>> worst, delta, margin = oracle.worst(scores, true.labels, true.offsets, change)
    >>> oracle.decode(worst, true.offsets, true.classes), delta, margin
    ([array(['b', 'a', 'b'], dtype='<U1'), array(['a'], dtype='<U1')], array([3., 1.]), array([1.6,
    0.5]))
    """

    per_part = True

    def __init__(self, start_end: bool = True) -> None:
        self.start_end = start_end

    def prepare(self, classes: Array) -> None:
        """One column for each label; the linear part has transitions, perhaps starts and ends."""
        if classes.size < 2:
            raise ValueError(
                f"{self.name}: there must be at least two labels, but Y has {classes.size}."
            )
        self.n_labels = self.n_columns = K = int(classes.size)
        self.n_linear = K * K + (2 * K if self.start_end else 0)

    def offsets(self, n_rows: int, lengths: Any = None) -> Array:
        """Where each sequence begins, and where the last ends."""
        if lengths is None:
            raise ValueError(
                f"{self.name}: X must be a list of sequences, one array of rows for each."
            )
        return super().offsets(n_rows, lengths)

    def worst(
        self, scores: Array, labels: Array, offsets: Array, linear: Array, n_threads: int = 1
    ) -> tuple[Array, Array, Array]:
        """The sequences with the most wrong positions plus score, by Viterbi's recursion."""
        found, n = np.empty(labels.size, np.int64), offsets.size - 1
        delta, margin, parts = np.empty(n), np.empty(n), self._parts(linear)

        def work(a: int, b: int) -> None:
            _viterbi(scores, offsets[a : b + 1], *parts, labels, 1.0, found)
            _violations(scores, offsets[a : b + 1], *parts, labels, found, delta[a:b], margin[a:b])

        in_groups(work, offsets, n_threads)
        return found, delta, margin

    def best(self, scores: Array, offsets: Array, linear: Array, n_threads: int = 1) -> Array:
        """The sequences with the highest score."""
        found, parts = np.zeros(int(offsets[-1]), np.int64), self._parts(linear)
        in_groups(
            lambda a, b: _viterbi(scores, offsets[a : b + 1], *parts, found, 0.0, found),
            offsets,
            n_threads,
        )
        return found

    def marginals(
        self,
        scores: Array,
        offsets: Array,
        linear: Array,
        summed: bool,
        n_threads: int = 1,
    ) -> Array:
        """What the sequences with each label at each position have, (positions, labels).

        ``summed``: their share of all sequences, each counted by the exponential of its score;
        otherwise the highest score among them.
        """
        out, parts = np.empty((int(offsets[-1]), self.n_labels)), self._parts(linear)
        in_groups(
            lambda a, b: _both_ways(scores, offsets[a : b + 1], *parts, summed, out),
            offsets,
            n_threads,
        )
        return out

    def losses(self, labels: Array, found: Array, offsets: Array) -> Array:
        """How many positions of each sequence are wrong."""
        wrong = np.concatenate([np.zeros(1), np.cumsum(labels != found)])
        return np.asarray(np.diff(wrong[offsets]))

    def features(self, labels: Array, offsets: Array, weight: Array) -> Array:
        """How often each transition, start and end occurs, times the weights."""
        K, total = self.n_labels, np.zeros(self.n_linear)
        _count(labels, offsets, weight, K, self.start_end, total)
        return total

    def max_loss(self, offsets: Array) -> float:
        """The length of the longest sequence."""
        return float(np.diff(offsets).max())

    def _parts(self, linear: Array) -> tuple[Array, Array, Array]:
        """Transitions, start and end."""
        K = self.n_labels
        linear = np.ascontiguousarray(linear, np.float64)
        nothing = np.zeros(K)
        start, end = (
            (linear[K * K : K * K + K], linear[K * K + K :])
            if self.start_end
            else (nothing, nothing)
        )
        return linear[: K * K].reshape(K, K), start, end


@compiled
def _viterbi(
    scores: Array,
    offsets: Array,
    transition: Array,
    start: Array,
    end: Array,
    labels: Array,
    augment: float,
    found: Array,
) -> None:
    """Fill in the best labels of each sequence.

    Every label but the true one has ``augment`` more.
    """
    K, longest = start.size, 0
    for i in range(offsets.size - 1):
        longest = max(longest, offsets[i + 1] - offsets[i])
    v, into = np.empty((longest, K)), transition.T.copy()  # into[b]: from every label to b
    for i in range(offsets.size - 1):
        first, last = offsets[i], offsets[i + 1] - 1
        for b in range(K):
            v[0, b] = start[b] + scores[first, b] + augment
        v[0, labels[first]] -= augment
        for t in range(1, last - first + 1):
            for b in range(K):
                best = v[t - 1, 0] + into[b, 0]
                for a in range(1, K):  # a sum and a maximum, of neighbours in memory: vector code
                    best = max(best, v[t - 1, a] + into[b, a])
                v[t, b] = best + scores[first + t, b] + augment
            v[t, labels[first + t]] -= augment
        top, length = 0, last - first
        for b in range(1, K):
            if v[length, b] + end[b] > v[length, top] + end[top]:
                top = b
        # where each came from is asked again for the labels on the way only: K sums a position, not
        # K^2 places kept
        for t in range(length, -1, -1):
            found[first + t] = top
            if t > 0:
                origin = 0
                for a in range(1, K):
                    if v[t - 1, a] + into[top, a] > v[t - 1, origin] + into[top, origin]:
                        origin = a
                top = origin


@compiled
def _both_ways(
    scores: Array,
    offsets: Array,
    transition: Array,
    start: Array,
    end: Array,
    summed: bool,
    out: Array,
) -> None:
    """Forward and backward: the best score, or the share, of sequences with each label there."""
    K = start.size
    into, behind, terms = transition.T.copy(), np.empty(K), np.empty(K)
    for i in range(offsets.size - 1):
        first, last = offsets[i], offsets[i + 1] - 1
        for b in range(K):
            out[first, b] = start[b] + scores[first, b]
        for t in range(first + 1, last + 1):
            for b in range(K):
                for a in range(K):
                    terms[a] = out[t - 1, a] + into[b, a]
                out[t, b] = scores[t, b] + _joined(terms, summed)
        for b in range(K):
            behind[b] = end[b]
        for t in range(last, first - 1, -1):
            if t < last:
                # what was behind t + 1 and its score, seen from every label at t
                for b in range(K):
                    out[t + 1, b] += behind[b]
                ahead = behind + scores[t + 1]
                for a in range(K):
                    for b in range(K):
                        terms[b] = ahead[b] + transition[a, b]
                    behind[a] = _joined(terms, summed)
        for b in range(K):
            out[first, b] += behind[b]
        if summed:
            for t in range(first, last + 1):
                whole = _joined(out[t], True)
                for b in range(K):
                    out[t, b] = np.exp(out[t, b] - whole)


@compiled
def _joined(terms: Array, summed: bool) -> float:
    """The highest of the terms, or the logarithm of the sum of their exponentials."""
    top = terms[0]
    for k in range(1, terms.size):
        top = max(top, terms[k])
    if not summed:
        return float(top)
    total = 0.0
    for k in range(terms.size):
        total += np.exp(terms[k] - top)
    return float(top + np.log(total))


@compiled
def _violations(
    scores: Array, offsets: Array, transition: Array, start: Array, end: Array, labels: Array,
    found: Array, delta: Array, margin: Array,
) -> None:  # fmt: skip
    """Loss, and loss plus score less the true score, of each sequence found.

    One that does not violate is replaced by the truth.
    """
    for i in range(offsets.size - 1):
        first, last = offsets[i], offsets[i + 1] - 1
        wrong = 0
        more = start[found[first]] - start[labels[first]] + end[found[last]] - end[labels[last]]
        for t in range(first, last + 1):
            if found[t] != labels[t]:
                wrong += 1
                more += np.float64(scores[t, found[t]]) - np.float64(scores[t, labels[t]])
            if t > first:
                more += transition[found[t - 1], found[t]] - transition[labels[t - 1], labels[t]]
        delta[i], margin[i] = wrong, wrong + more
        if margin[i] <= 0.0:
            delta[i] = margin[i] = 0.0
            for t in range(first, last + 1):  # assigned as arrays, it takes seconds to compile
                found[t] = labels[t]


@compiled
def _count(
    labels: Array, offsets: Array, weight: Array, K: int, start_end: bool, out: Array
) -> None:
    for i in range(offsets.size - 1):
        first, last = offsets[i], offsets[i + 1] - 1
        for t in range(first + 1, last + 1):
            out[labels[t - 1] * K + labels[t]] += weight[i]
        if start_end:
            out[K * K + labels[first]] += weight[i]
            out[K * K + K + labels[last]] += weight[i]
