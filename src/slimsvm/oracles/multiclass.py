"""One label for each row: two classes with one score, and several classes with a score each.

- Binary, s(y) = +-f/2 and Delta = 1: max(0, 1 - y f), the hinge, for y = -1 or +1 (labels 0 and 1).
- Multiclass, s(y) = f_y and Delta = cost: max_c [cost(y, c) + f_c - f_y], Crammer & Singer (2001)
  for cost = 1 off the diagonal.

The worst label is found in one compiled pass over the scores of a block. A tie goes to the true
label, then to the lowest: a row whose margin is just kept is in no cut, as with the hinge. Cost:
O(rows x classes).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from slimsvm.compiled import compiled
from slimsvm.oracles.structured import BlockOracle, Encoded, in_groups

Array = NDArray[Any]


class _OneLabel(BlockOracle):
    """Every row is an example."""

    def encode(
        self, Y: Any, n_rows: int, lengths: Any = None, classes: Array | None = None
    ) -> Encoded:
        """The labels as numbers; see the base class. There are no ``lengths``."""
        if lengths is not None:
            raise ValueError(
                f"{self.name}: an example is one row of X with one label; sequences are for Chain."
            )
        return super().encode(Y, n_rows, None, classes)

    def decode(self, labels: Array, offsets: Array | None, classes: Array) -> Array:
        """Back to the user's labels, one array."""
        return np.asarray(classes)[labels]

    def max_loss(self, offsets: Array) -> float:
        """The largest loss of any example."""
        return 1.0


class Binary(_OneLabel):
    """Two classes, one score: the hinge of the plain SVM, as an oracle.

    Examples
    --------
    >>> import numpy as np
    >>> from slimsvm.oracles import Binary
    >>> oracle = Binary()
    >>> true = oracle.encode(["no", "yes", "yes"], n_rows=3)
    >>> scores, weights, no_linear = np.array([[0.5], [0.5], [2.0]]), np.ones(3), np.empty(0)
    >>> risk, loss_sum, responses, _ = oracle.cut(
    ...     scores, true.labels, true.offsets, weights, no_linear
    ... )
    >>> risk, loss_sum, responses.ravel()
    (2.0, 2.0, array([ 1., -1.,  0.]))
    """

    def prepare(self, classes: Array) -> None:
        """Two labels, one column of scores."""
        if classes.size != 2:
            raise ValueError(f"{self.name}: there must be two classes, but Y has {classes.size}.")
        self.n_labels, self.n_columns = 2, 1

    def worst(
        self, scores: Array, labels: Array, offsets: Array, linear: Array, n_threads: int = 1
    ) -> tuple[Array, Array, Array]:
        """The other label where the margin is missed."""
        found, delta, margin = (
            np.empty(labels.size, np.int64),
            np.empty(labels.size),
            np.empty(labels.size),
        )
        _worst_sign(scores, labels, found, delta, margin)
        return found, delta, margin

    def best(self, scores: Array, offsets: Array, linear: Array, n_threads: int = 1) -> Array:
        """The second class where the score is positive."""
        return (scores[:, 0] > 0.0).astype(np.int64)

    def losses(self, labels: Array, found: Array, offsets: Array) -> Array:
        """One where they differ."""
        return (labels != found).astype(np.float64)

    def _plain_cut(
        self, scores: Array, labels: Array, offsets: Array, weight: Array
    ) -> tuple[float, float, Array] | None:
        """The response of a missed margin is the weight with the sign of the other label."""
        responses = np.empty((labels.size, 1))
        risk, loss = _hinge(scores, labels, weight, responses)
        return risk, loss, responses


class Multiclass(_OneLabel):
    """Several classes, a score for each, and what it costs to take one for another.

    Parameters
    ----------
    cost : array of shape (n_classes, n_classes), default None
        cost[a, b] is the loss of answering class b where class a is true, classes in sorted order:
        not negative, zero on the diagonal. None: one for every mistake.

    Examples
    --------
    >>> import numpy as np
    >>> from slimsvm.oracles import Multiclass
    >>> oracle = Multiclass(cost=[[0, 1, 5], [1, 0, 1], [5, 1, 0]])
    >>> true = oracle.encode([3, 7, 9], n_rows=3)
    >>> scores, no_linear = np.zeros((3, 3)), np.empty(0)
    >>> worst, delta, margin = oracle.worst(scores, true.labels, true.offsets, no_linear)
    >>> oracle.decode(worst, None, true.classes), delta
    (array([9, 3, 3]), array([5., 1., 5.]))
    """

    def __init__(self, cost: ArrayLike | None = None) -> None:
        self.cost = cost

    def prepare(self, classes: Array) -> None:
        """One column for each class; checks the cost matrix against their number."""
        if classes.size < 2:
            raise ValueError(
                f"{self.name}: there must be at least two classes, but Y has {classes.size}."
            )
        self.n_labels = self.n_columns = n = int(classes.size)
        if self.cost is None:
            self._costs = 1.0 - np.eye(n)
            return
        try:
            cost = np.array(self.cost, np.float64)
        except (TypeError, ValueError):
            cost = np.empty(0)
        if cost.shape != (n, n):
            raise ValueError(
                f"{self.name}: cost must be an array of shape ({n}, {n}), a row and a "
                "column for each class."
            )
        for bad, what in (
            (~np.isfinite(cost), "finite"),
            (cost < 0, "zero or more"),
            ((cost != 0) & np.eye(n, dtype=bool), "zero on the diagonal"),
        ):
            if bad.any():
                a, b = np.argwhere(bad)[0]
                raise ValueError(
                    f"{self.name}: cost[{a}, {b}] is {cost[a, b]}; costs must be {what}."
                )
        self._costs = cost

    def worst(
        self, scores: Array, labels: Array, offsets: Array, linear: Array, n_threads: int = 1
    ) -> tuple[Array, Array, Array]:
        """The class with the largest cost plus score, its cost, and its excess.

        The excess is over the score of the true class.
        """
        found, delta, margin = (
            np.empty(labels.size, np.int64),
            np.empty(labels.size),
            np.empty(labels.size),
        )

        def work(a: int, b: int) -> None:
            _worst_class(scores[a:b], labels[a:b], self._costs, found[a:b], delta[a:b], margin[a:b])

        in_groups(work, offsets, n_threads)
        return found, delta, margin

    def best(self, scores: Array, offsets: Array, linear: Array, n_threads: int = 1) -> Array:
        """The class with the highest score."""
        return np.asarray(np.argmax(scores, axis=1), np.int64)

    def losses(self, labels: Array, found: Array, offsets: Array) -> Array:
        """cost[y, yhat]"""
        return np.asarray(self._costs[labels, found])

    def max_loss(self, offsets: Array) -> float:
        """The largest cost."""
        return float(self._costs.max())


@compiled
def _worst_sign(scores: Array, labels: Array, found: Array, delta: Array, margin: Array) -> None:
    for i in range(labels.size):
        y, f = labels[i], np.float64(scores[i, 0])
        missed = 1.0 - f if y == 1 else 1.0 + f
        wrong = missed > 0.0
        found[i], delta[i], margin[i] = (
            1 - y if wrong else y,
            1.0 if wrong else 0.0,
            missed if wrong else 0.0,
        )


@compiled
def _hinge(scores: Array, labels: Array, weight: Array, responses: Array) -> tuple[float, float]:
    """Sums of weight times margin and loss, and the responses."""
    risk, loss = 0.0, 0.0
    for i in range(labels.size):
        sign = 2.0 * labels[i] - 1.0
        missed = 1.0 - sign * np.float64(scores[i, 0])
        responses[i, 0] = 0.0
        if missed > 0.0:
            risk += weight[i] * missed
            loss += weight[i]
            responses[i, 0] = -weight[i] * sign
    return risk, loss


@compiled
def _worst_class(
    scores: Array, labels: Array, costs: Array, found: Array, delta: Array, margin: Array
) -> None:
    for i in range(labels.size):
        y = labels[i]
        top, c = np.float64(scores[i, y]), y
        for k in range(costs.shape[1]):
            value = costs[y, k] + scores[i, k]
            if value > top:
                top, c = value, k
        found[i], delta[i], margin[i] = c, costs[y, c], top - scores[i, y]
