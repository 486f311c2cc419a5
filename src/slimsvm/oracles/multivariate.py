"""Losses of a whole set that do not decompose into rows.

F1, precision and recall at k, ROC area, average precision.

The set is *one* example with n parts, two labels (0 and 1) and one score f_i for each part. There
are P positives and N negatives.

Outputs that are labels, s(y) = sum_i y_i f_i (Joachims 2005 has y_i = -1 or +1, which is twice that
and a constant):

    f1                  Delta = 1 - 2a / (P + a + b)     any labels: a positives and b negatives
                                                         are predicted positive
    precision_at_k      Delta = 1 - a / k                labels with exactly k ones
    recall_at_k         Delta = 1 - a / P                labels with exactly k ones

Outputs that are rankings, s(y) = 1/(P N) sum over pairs of a positive i and a negative j of
+-(f_i - f_j)/2, plus where i is above j:

    roc_auc             Delta = share of swapped pairs   so that R is the mean of
                                                         max(0, 1 - (f_i - f_j)) over all pairs
                                                         (Joachims 2005)
    average_precision   Delta = 1 - average precision    (Yue et al. 2007, who leave out the 1/2)

Labels: for given a and b the worst choice are the a highest positives and the b highest negatives.
With A(a) the sum of the f left out (minus the P - a lowest positives) and B(b) that of the f let
in, the worst is max over a, b of Delta(a, b) + A(a) + B(b). Joachims tries all pairs, O(n^2). For
F1 and given a, B is concave in b, and so is -2a / (P + a + b): its maximum is found by bisection of
the differences, O(P log N). At k there is one b for every a. With exactly k ones the truth is no
output unless k = P. In its place s(y) takes the mean of the outputs of least loss: k/P for each
positive if k <= P, else one for each positive and (k-P)/N for each negative. The k highest never
have a smaller s, so that R bounds Delta, and the responses sum to zero: only the order matters.

Rankings: ROC area takes every pair by itself: j is put above i where f_j > f_i - 1, counted by
sorting. For average precision sort both kinds; let c_j be the number of positives above the j-th
negative. Then the objective is a sum over j of

    H_j(c) = 1/P [ h(P+j) - h(c+j) + (j-1) (1/(P+j) - 1/(c+j)) ] + 1/(P N) sum_{i > c} (f_j - f_i),
    h(m) = 1 + 1/2 + ... + 1/m

which is the sum over i > c of i/(i+j-1) - i/(i+j), what the j-th negative above the i-th positive
takes away (Yue et al., section 4.2), in closed form. Each H_j may be maximised by itself, since
H_j+1(c) - H_j(c) grows with c and the best c_j therefore never fall: divide and conquer over j
takes O(n log n) where the greedy loops of the paper take O(P N).

Responses are (parts, 1): yhat - y for labels; for rankings (positives below it)/(P N) for a
negative, -(negatives above it)/(P N) for a positive. Cost: O(n log n) for everything.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from slimsvm.compiled import compiled
from slimsvm.oracles.structured import BlockOracle, Encoded

Array = NDArray[Any]
FAR = 1e300  # for infinity, which compiled loops do not know
MEASURES = ("f1", "precision_at_k", "recall_at_k", "roc_auc", "average_precision")


class Multivariate(BlockOracle):
    """A loss of the whole set as one example.

    Parameters
    ----------
    measure : {"f1", "precision_at_k", "recall_at_k", "roc_auc", "average_precision"}
        The loss is one minus it.
    k : int or float, default 10
        Number of rows that are predicted positive by ``precision_at_k`` and ``recall_at_k``; a
        number below 1 is a share of the rows. A set with fewer rows than k is predicted positive as
        a whole.

    Notes
    -----
    ROC area and average precision are losses of rankings: ``worst`` and ``best`` give ranks, 0 for
    the top; equal scores have equal ranks.

    Examples
    --------
    >>> import numpy as np
    >>> from slimsvm.oracles import Multivariate
    >>> oracle = Multivariate("roc_auc")
    >>> true = oracle.encode([0, 1, 0, 1], n_rows=4)
    >>> scores = np.array([[0.0], [3.0], [1.5], [2.0]])
    >>> ranks = oracle.best(scores, true.offsets, np.empty(0))
    >>> ranks, oracle.losses(true.labels, ranks, true.offsets)
    (array([3, 0, 2, 1]), array([0.]))
    >>> weights, no_linear = np.ones(1), np.empty(0)
    >>> risk, loss_sum, responses, _ = oracle.cut(
    ...     scores, true.labels, true.offsets, weights, no_linear
    ... )
    >>> risk, loss_sum, responses.ravel()  # the pair of 1.5 and 2.0 misses its margin of one
    (0.125, 0.25, array([ 0.  ,  0.  ,  0.25, -0.25]))
    """

    one_example = True

    def __init__(self, measure: str = "f1", k: float = 10) -> None:
        self.measure = measure
        self.k = k

    # -- outputs as numbers ------------------------------------------------------------------------

    def prepare(self, classes: Array) -> None:
        """Two labels, one column of scores."""
        if self.measure not in MEASURES:
            raise ValueError(
                f"{self.name}: measure must be one of {', '.join(MEASURES)}, not {self.measure!r}."
            )
        whole = (
            isinstance(self.k, int | np.integer) and not isinstance(self.k, bool) and self.k >= 1
        )
        share = isinstance(self.k, float | np.floating) and 0.0 < self.k < 1.0
        if not (whole or share):
            raise ValueError(
                f"{self.name}: k must be a whole number of at least 1, or a share between "
                f"0 and 1, not {self.k!r}."
            )
        if classes.size != 2:
            raise ValueError(f"{self.name}: there must be two classes, but Y has {classes.size}.")
        self.n_labels, self.n_columns = 2, 1

    def offsets(self, n_rows: int, lengths: Any = None) -> Array:
        """All rows are one example."""
        if lengths is not None:
            raise ValueError(
                f"{self.name}: X must be one array of rows; the whole set is one example."
            )
        return np.array([0, n_rows], np.int64)

    def encode(
        self, Y: Any, n_rows: int, lengths: Any = None, classes: Array | None = None
    ) -> Encoded:
        """The labels as numbers; see the base class.

        When classes are learned, k must not exceed the number of rows.
        """
        true = super().encode(Y, n_rows, lengths, classes)
        if classes is None and self.measure.endswith("_at_k") and self.k > n_rows:
            raise ValueError(f"{self.name}: k is {self.k}, but there are {n_rows} rows.")
        return true

    def decode(self, labels: Array, offsets: Array | None, classes: Array) -> Array:
        """Back to the user's labels; ranks stay ranks."""
        return labels if self.ranks else np.asarray(classes)[labels]

    @property
    def ranks(self) -> bool:
        """Whether outputs are rankings."""
        return self.measure in ("roc_auc", "average_precision")

    def _count(self, n_rows: int) -> int:
        """How many rows are predicted positive at k."""
        k = self.k if self.k >= 1 else max(1, round(self.k * n_rows))
        return min(int(k), n_rows)

    # -- the set -----------------------------------------------------------------------------------

    def worst(
        self, scores: Array, labels: Array, offsets: Array, linear: Array, n_threads: int = 1
    ) -> tuple[Array, Array, Array]:
        """The most violating labels or ranks, their loss, and how much they violate."""
        found, delta, responses = self._found(scores, labels, offsets)
        return found, np.array([delta]), np.array([self._margin(delta, responses, scores)])

    def _plain_cut(
        self, scores: Array, labels: Array, offsets: Array, weight: Array
    ) -> tuple[float, float, Array] | None:
        """The head of this module says what the responses are."""
        _, delta, responses = self._found(scores, labels, offsets)
        margin, w = self._margin(delta, responses, scores), float(weight[0])
        return w * margin, w * delta, (w * responses)[:, None]

    def best(self, scores: Array, offsets: Array, linear: Array, n_threads: int = 1) -> Array:
        """The labels of highest score: where f is positive, or the k highest; or the ranks."""
        f = np.asarray(scores[:, 0])
        if self.ranks:
            return np.asarray(np.searchsorted(np.sort(-f), -f), np.int64)
        if self.measure == "f1":
            return (f > 0.0).astype(np.int64)
        top = np.zeros(f.size, np.int64)
        top[np.argsort(-f, kind="stable")[: self._count(f.size)]] = 1
        return top

    def losses(self, labels: Array, found: Array, offsets: Array) -> Array:
        """One minus the measure; ties between ranks count as in scikit-learn.

        A set without any mistake to make has no loss.
        """
        y, n_positive = np.asarray(labels), int(np.sum(labels))
        right = int(np.sum(y * (found == 1)))
        if self.measure == "roc_auc":
            return np.array([_swapped(found[y == 1], found[y == 0])])
        if self.measure == "average_precision":
            return np.array([1.0 - _average_precision(y, found)])
        predicted = int(np.sum(found))
        if self.measure == "f1":
            return np.array(
                [1.0 - 2.0 * right / (n_positive + predicted) if n_positive + predicted else 0.0]
            )
        return np.array(
            [1.0 - right / (predicted if self.measure == "precision_at_k" else max(1, n_positive))]
        )

    def max_loss(self, offsets: Array) -> float:
        """All measures lie between 0 and 1."""
        return 1.0

    def _margin(self, delta: float, responses: Array, scores: Array) -> float:
        return max(0.0, delta + float(responses @ np.asarray(scores[:, 0], np.float64)))

    def _found(self, scores: Array, labels: Array, offsets: Array) -> tuple[Array, float, Array]:
        """The worst output, its loss, and the responses per unit of weight."""
        if offsets.size != 2:
            raise ValueError(
                f"{self.name}: the whole set is one example, it cannot be cut from "
                f"{offsets.size - 1} examples."
            )
        f = np.asarray(scores[:, 0], np.float64)
        positive, negative = (np.flatnonzero(labels == label) for label in (1, 0))
        positive, negative = (
            rows[np.argsort(-f[rows], kind="stable")] for rows in (positive, negative)
        )
        P, N = positive.size, negative.size
        if not P or not N:
            raise ValueError(f"{self.name}: the set must have both positive and negative rows.")
        responses: Array = np.zeros(f.size)
        if self.ranks:
            above, below = (
                _pairs(f[positive], f[negative])
                if self.measure == "roc_auc"
                else _worst_precision(f[positive], f[negative])
            )
            responses[positive], responses[negative] = -above / (P * N), below / (P * N)
            found = np.empty(f.size, np.int64)
            found[positive], found[negative] = np.arange(P) + above, np.arange(N) + P - below
        else:
            k = self._count(f.size)
            a, b = (
                _worst_f1(f[positive], f[negative])
                if self.measure == "f1"
                else self._worst_at(k, f[positive], f[negative])
            )
            found = np.zeros(f.size, np.int64)
            found[positive[:a]] = found[negative[:b]] = 1
            responses = found - (labels if self.measure == "f1" else _reference(labels, k, P, N))
        return found, float(self.losses(labels, found, offsets)[0]), responses

    def _worst_at(self, k: int, positive: Array, negative: Array) -> tuple[int, int]:
        """How many of the k are positive, of those worst for the measure."""
        a = np.arange(max(0, k - negative.size), min(k, positive.size) + 1)
        sums_p, sums_n = (
            np.concatenate([np.zeros(1), np.cumsum(values)]) for values in (positive, negative)
        )
        value = (
            sums_p[a]
            + sums_n[k - a]
            - a / (k if self.measure == "precision_at_k" else positive.size)
        )
        best = int(a[np.argmax(value)])
        return best, k - best


def _reference(labels: Array, k: int, P: int, N: int) -> Array:
    """What stands for the truth where exactly k ones are predicted.

    The mean of the outputs with the least loss.
    """
    return labels * (k / P) if k <= P else labels + (1 - labels) * ((k - P) / N)


def _pairs(positive: Array, negative: Array) -> tuple[Array, Array]:
    """For each positive the negatives within its margin, for each negative the positives.

    Both are sorted downwards, both come from one comparison.
    """
    limit = positive - 1.0
    above = np.searchsorted(-negative, -limit, side="left")  # f_j > f_i - 1
    below = positive.size - np.searchsorted(-limit, -negative, side="right")
    return above, below


def _swapped(positive: Array, negative: Array) -> float:
    """The share of pairs whose negative has the lower (better) rank; ties count half.

    A set without pairs has none.
    """
    ranks = np.sort(negative)
    twice = int(np.searchsorted(ranks, positive, side="left").sum()) + int(
        np.searchsorted(ranks, positive, side="right").sum()
    )
    return twice / (2 * positive.size * negative.size) if positive.size and negative.size else 0.0


def _average_precision(y: Array, ranks: Array) -> float:
    """Mean over the positives of the precision among all rows that are ranked as high.

    It is 1 where there are no positives.
    """
    order = np.sort(ranks)
    mine = np.sort(ranks[y == 1])
    if not mine.size:
        return 1.0
    return float(
        np.mean(
            np.searchsorted(mine, mine, side="right") / np.searchsorted(order, mine, side="right")
        )
    )


# -- loops -----------------------------------------------------------------------------------------


@compiled
def _worst_f1(positive: Array, negative: Array) -> tuple[int, int]:
    """The a and b with the largest 1 - 2a/(P+a+b) + A(a) + B(b), all f sorted downwards.

    The truth (P, 0) wins ties.
    """
    P, N = positive.size, negative.size
    let_in = np.zeros(N + 1)
    for j in range(N):
        let_in[j + 1] = let_in[j] + negative[j]
    top, best_a, best_b, left_out = 0.0, P, 0, 0.0
    for a in range(P, -1, -1):
        if a < P:
            left_out -= positive[a]
        low, high = 0, N  # the first b from which one more does not pay
        while low < high:
            b = (low + high) // 2
            if negative[b] + 2.0 * a / ((P + a + b) * (P + a + b + 1.0)) > 0.0:
                low = b + 1
            else:
                high = b
        value = 1.0 - 2.0 * a / (P + a + low) + left_out + let_in[low]
        if value > top:
            top, best_a, best_b = value, a, low
    return best_a, best_b


@compiled
def _worst_precision(positive: Array, negative: Array) -> tuple[Array, Array]:
    """The worst ranking, all f sorted downwards.

    Above each positive how many negatives, below each negative how many positives.
    """
    P, N = positive.size, negative.size
    harmonic, sums = np.zeros(P + N + 1), np.zeros(P + 1)
    for m in range(1, P + N + 1):
        harmonic[m] = harmonic[m - 1] + 1.0 / m
    for i in range(P):
        sums[i + 1] = sums[i] + positive[i]
    c = np.empty(N, np.int64)
    # divide and conquer: the best c of the middle negative bounds those on either side; a stack of
    # at most one range for each halving
    stack = np.empty((64, 4), np.int64)
    stack[0, 0], stack[0, 1], stack[0, 2], stack[0, 3] = 0, N - 1, 0, P
    size = 1
    while size > 0:
        size -= 1
        first, last, low, high = stack[size, 0], stack[size, 1], stack[size, 2], stack[size, 3]
        j = (first + last) // 2 + 1  # counted from one, as in the formula
        top, best = -FAR, high
        for i in range(high, low - 1, -1):  # from the right order: ties go to the truth
            gain = harmonic[P + j] - harmonic[i + j] + (j - 1) * (1.0 / (P + j) - 1.0 / (i + j))
            value = gain + ((P - i) * negative[j - 1] - (sums[P] - sums[i])) / N
            if value > top:
                top, best = value, i
        c[j - 1] = best
        if first <= j - 2:
            stack[size, 0], stack[size, 1], stack[size, 2], stack[size, 3] = first, j - 2, low, best
            size += 1
        if j <= last:
            stack[size, 0], stack[size, 1], stack[size, 2], stack[size, 3] = j, last, best, high
            size += 1
    above, j = np.empty(P, np.int64), 0
    for i in range(P):
        while j < N and c[j] <= i:
            j += 1
        above[i] = j
    return above, P - c
