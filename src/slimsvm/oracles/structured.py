"""What a structured output is.

The oracle that every structural estimator asks for risks, cuts and predictions.

    R(f) = sum_i weight_i max_y [ Delta(y_i, y) + s_i(y) - s_i(y_i) ]
    s_i(y) = sum over the parts p of example i of scores[p, y_p]  +  <linear, phi(y)>

An example owns *parts* (the positions of a sequence; one part where an output is one label), each a
row of the data with a score for every label, and perhaps a linear part (the transitions of a
chain). Examples lie behind each other: the parts of example i are offsets[i] to offsets[i+1]. A
block is any number of whole examples, counted from its own first part: its offsets begin with 0.
With yhat_i a maximiser for the scores at hand, the cut

    R(f) >= loss_sum + sum(responses * f) + <linear_response, linear>,
    loss_sum = sum_i weight_i Delta(y_i, yhat_i)

holds for every f, with equality here; responses has +weight_i at (part, yhat) and -weight_i at
(part, y). The offset is a sum of losses and not R(f) minus a product, so that a cut is a bound
whatever the rounding errors of f.

The built-in oracles override the methods that work on whole blocks (``worst``, ``best``,
``losses``). The defaults here loop over ``argmax`` and ``loss``, which see one example: all that an
oracle of one's own has to write. What it returns is checked, and an example for which its argmax
finds nothing worse than the truth counts as right, so that every cut is valid.

Papers: Tsochantaridis et al. 2005; the one-slack cut, Joachims 2006; parts and a linear part, Yu &
Joachims 2008. Symbols: y true labels, yhat the most violating ones, Delta their loss, phi the
features of the linear part.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from slimsvm.compiled import compiled
from slimsvm.ending import warn
from slimsvm.threads import parallel

Array = NDArray[Any]
FIRST_CHECKS, BETWEEN_CHECKS = 64, 256  # answers of an oracle of one's own that are spot-checked
SLACK = 1e-9  # of a comparison of sums of scores
GROUP = 4096  # parts that one task of a thread takes, at least: their scores stay in cache


@dataclass(frozen=True)
class Encoded:
    """True outputs as numbers.

    A label for each part, where examples begin and end, and what the numbers stand for.
    """

    labels: Array
    offsets: Array
    classes: Array


class InvalidAnswer(ValueError):
    """An oracle gave what it must not give.

    ``example`` counts from the start of the block: whoever cut the block may correct it.
    """

    def __init__(self, oracle: str, example: int, what: str) -> None:
        super().__init__(oracle, example, what)
        self.oracle, self.example, self.what = oracle, example, what

    def __str__(self) -> str:
        return f"{self.oracle}: {self.what.replace('{example}', f'example {self.example}')}"


class StructuredOracle(BaseEstimator):
    """Base of all oracles of structured outputs.

    An oracle of one's own writes ``argmax`` and ``loss``; see :doc:`add_an_oracle`.

    Attributes
    ----------
    n_labels : int
        Number of labels of a part; known after ``encode`` or ``prepare``.
    n_columns : int
        Number of columns of the scores: one for each label, but a single one for ``Binary`` and
        ``Multivariate``.
    n_linear : int
        Length of the linear part; 0 where there is none.
    one_example : bool
        Whether the whole set is one example: a loss that does not decompose.
    per_part : bool
        Whether losses are sums over parts, and mean losses therefore per part.

    Examples
    --------
    >>> import numpy as np
    >>> from slimsvm.oracles import StructuredOracle
    >>> class Ordinal(StructuredOracle):  # being two classes off costs two
    ...     def argmax(self, scores, y=None):
    ...         loss = 0.0 if y is None else abs(np.arange(self.n_labels) - y[0])
    ...         return [np.argmax(scores[0] + loss)]
    ...
    ...     def loss(self, y, yhat):
    ...         return abs(yhat[0] - y[0])
    >>> oracle = Ordinal()
    >>> true = oracle.encode(["bad", "good", "fair"], n_rows=3)
    >>> scores = np.array([[0.0, 0.0, 0.0], [0.0, 0.0, 2.5], [0.0, 3.0, 0.0]])
    >>> weights, no_linear = np.ones(3), np.empty(0)
    >>> risk, loss_sum, responses, _ = oracle.cut(
    ...     scores, true.labels, true.offsets, weights, no_linear
    ... )
    >>> risk, loss_sum
    (2.0, 2.0)
    >>> responses
    array([[-1.,  0.,  1.],
           [ 0.,  0.,  0.],
           [ 0.,  0.,  0.]])
    """

    _n_asked: int = 0
    _warned: bool = False
    n_labels: int = 0
    n_columns: int = 0
    n_linear: int = 0
    one_example: ClassVar[bool] = False
    per_part: ClassVar[bool] = False

    # -- what an oracle of one's own writes --------------------------------------------------------

    def argmax(self, scores: Array, y: Array | None = None) -> Any:
        """One example: the labels with the highest score.

        Given the true ones, those with the highest loss(y, .) plus score.

        ``scores`` is (parts, n_labels), labels are numbers from 0 to n_labels - 1, one for each
        part. An oracle with ``n_linear`` above zero is also given ``linear``, by name.
        """
        raise NotImplementedError(f"{self.name} must define argmax(scores, y=None).")

    def loss(self, y: Array, yhat: Array) -> float:
        """One example: what it costs to answer ``yhat`` where ``y`` is true.

        Zero where they are equal, never negative.
        """
        raise NotImplementedError(f"{self.name} must define loss(y, yhat).")

    def phi(self, labels: Array) -> Array:
        """One example: the features (n_linear,) of its labels.

        Their product with ``linear`` is part of its score.
        """
        raise NotImplementedError(
            f"{self.name} has n_linear = {self.n_linear} and must define phi(labels)."
        )

    # -- outputs as numbers ------------------------------------------------------------------------

    @property
    def name(self) -> str:
        """What messages call it."""
        return type(self).__name__

    def prepare(self, classes: Array) -> None:
        """Learn what the labels are: sets ``n_labels`` and what follows from it.

        ``encode`` calls it; a loaded model does, too.
        """
        self.n_labels = self.n_columns = int(classes.size)

    def offsets(self, n_rows: int, lengths: Sequence[int] | Array | None = None) -> Array:
        """Where the parts of each example begin, and where the last ends.

        Without ``lengths`` every row is an example.
        """
        if lengths is None:
            return np.arange(n_rows + 1, dtype=np.int64)
        sizes = np.asarray(lengths, np.int64)
        empty = np.flatnonzero(sizes <= 0)
        if empty.size:
            raise ValueError(
                f"{self.name}: example {empty[0]} has no parts; every example needs at "
                "least one row of X."
            )
        if int(sizes.sum()) != n_rows:
            raise ValueError(
                f"{self.name}: the lengths add up to {int(sizes.sum())}, but X has {n_rows} rows."
            )
        return np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])

    def encode(
        self,
        Y: Any,
        n_rows: int,
        lengths: Sequence[int] | Array | None = None,
        classes: Array | None = None,
    ) -> Encoded:
        """The outputs as numbers.

        With ``classes`` known from a fit, any other label is an error; None: those found here, in
        sorted order.

        Without ``lengths`` Y has one label for every row; with them, one sequence of labels for
        every example.
        """
        offsets = self.offsets(n_rows, lengths)
        values = self._flat(Y, n_rows, None if lengths is None else np.diff(offsets))
        if classes is None:
            try:
                classes = np.unique(values)
            except TypeError as error:
                raise ValueError(
                    f"{self.name}: the labels cannot be put in order ({error}); use words "
                    "or numbers, not both."
                ) from error
        self.prepare(classes)
        try:
            labels = np.minimum(np.searchsorted(classes, values), classes.size - 1).astype(np.int64)
            strange = np.flatnonzero(classes[labels] != values)
        except TypeError:  # labels of another kind, which cannot be compared
            strange, labels = np.zeros(1, np.int64), np.empty(0, np.int64)
        if strange.size:
            bad = int(strange[0])
            where, label = self._where(bad, offsets), values[bad : bad + 1].tolist()[0]
            raise ValueError(
                f"{self.name}: {where} has the label {label!r}, which is none of the "
                f"{classes.size} labels known."
            )
        return Encoded(labels, offsets, classes)

    def decode(self, labels: Array, offsets: Array | None, classes: Array) -> Any:
        """Back to the user's labels: one array.

        With ``offsets``, a list of one array for each example.
        """
        values = np.asarray(classes)[labels]
        return values if offsets is None else [values[a:b] for a, b in pairwise(offsets)]

    def _where(self, part: int, offsets: Array) -> str:
        example = int(np.searchsorted(offsets, part, side="right")) - 1
        alone = offsets[example + 1] - offsets[example] == 1
        return (
            f"example {example}"
            if alone
            else f"example {example}, part {part - int(offsets[example])},"
        )

    def _flat(self, Y: Any, n_rows: int, lengths: Array | None) -> Array:
        """One label for each part, checked for shape and kind."""
        if lengths is None:
            values = np.asarray(Y)
            if values.ndim != 1:
                raise ValueError(
                    f"{self.name}: Y must have one dimension, one label for each row of X; "
                    f"its shape is {values.shape}."
                )
            if values.size != n_rows:
                raise ValueError(
                    f"{self.name}: Y has {values.size} labels, but X has {n_rows} rows."
                )
            if not values.size:
                raise ValueError(f"{self.name}: there are no examples.")
        else:
            values = self._joined(list(Y), lengths)
        missing = (
            [i for i, value in enumerate(values) if value is None]
            if values.dtype.kind == "O"
            else []
        )
        if missing:
            where = self._where(
                missing[0],
                np.arange(n_rows + 1)
                if lengths is None
                else np.concatenate([[0], np.cumsum(lengths)]),
            )
            raise ValueError(f"{self.name}: {where} has no label, but None.")
        if values.dtype.kind in "fc" and not np.isfinite(values).all():
            bad = int(np.flatnonzero(~np.isfinite(values))[0])
            where = (
                f"row {bad}"
                if lengths is None
                else f"example {int(np.searchsorted(np.cumsum(lengths), bad, side='right'))}"
            )
            raise ValueError(
                f"{self.name}: {where} has the label {values[bad].item()!r}; labels must be finite."
            )
        return values

    def _joined(self, Y: list[Any], lengths: Array) -> Array:
        if len(Y) != lengths.size:
            raise ValueError(f"{self.name}: Y has {len(Y)} examples, but X has {lengths.size}.")
        if not Y:
            raise ValueError(f"{self.name}: there are no examples.")
        arrays: list[Array] = []
        for i, labels in enumerate(Y):
            try:
                array = np.asarray(labels)
            except ValueError:
                array = np.empty((0, 0))
            if array.ndim != 1:
                raise ValueError(
                    f"{self.name}: the labels of example {i} are not a sequence of single labels."
                )
            if array.size != lengths[i]:
                raise ValueError(
                    f"{self.name}: example {i} has {array.size} labels, but {lengths[i]} rows of X."
                )
            if i and (array.dtype.kind in "USO") != (arrays[0].dtype.kind in "USO"):
                raise ValueError(
                    f"{self.name}: the labels of example {i} are of another kind than "
                    "those of example 0; use words or numbers."
                )
            arrays.append(array)
        return np.concatenate(arrays)

    # -- blocks of examples ------------------------------------------------------------------------

    def worst(
        self, scores: Array, labels: Array, offsets: Array, linear: Array, n_threads: int = 1
    ) -> tuple[Array, Array, Array]:
        """The most violating labels (parts,), their loss, and how much they violate.

        The last two are (examples,); the violation is Delta + s(yhat) - s(y) >= 0.
        """
        found, delta, margin = (
            np.array(labels, np.int64),
            np.zeros(offsets.size - 1),
            np.zeros(offsets.size - 1),
        )
        for i, (a, b) in enumerate(pairwise(offsets)):
            y = labels[a:b]
            yhat = self._asked(i, scores[a:b], y, linear)
            loss = self._cost(i, y, yhat)
            violated = (
                loss
                + self._score(i, scores[a:b], yhat, linear)
                - self._score(i, scores[a:b], y, linear)
            )
            if violated > 0.0:  # otherwise the truth itself is the worst
                found[a:b], delta[i], margin[i] = yhat, loss, violated
            self._spot_check(i, scores[a:b], y, linear, max(0.0, violated))
        return found, delta, margin

    def _spot_check(self, i: int, scores: Array, y: Array, linear: Array, worst: float) -> None:
        """Warn, once, of an ``argmax`` that is none: some other output is worse.

        The other output is the answer to scores drawn at random. An argmax that forgets the loss
        would otherwise end at once, with a gap of zero.
        """
        asked, self._n_asked = self._n_asked, self._n_asked + 1
        if self._warned or (asked >= FIRST_CHECKS and asked % BETWEEN_CHECKS):
            return
        drawn = np.random.default_rng(asked).standard_normal(scores.shape)
        other = self._asked(i, drawn * (1.0 + np.abs(scores).max(initial=0.0)), None, linear)
        value = (
            self._cost(i, y, other)
            + self._score(i, scores, other, linear)
            - self._score(i, scores, y, linear)
        )
        if value > worst + SLACK * (1.0 + np.abs(scores).max(initial=0.0)) * y.size:
            self._warned = True
            warn(
                f"{self.name}: argmax(scores, y) is not the output with the highest loss plus "
                f"score. For example {i} it found {worst:.3g} more than the truth has, but "
                f"{other.tolist()} has {value:.3g} more. Does it add the loss where y is given? "
                "The certificate of a fit with it means nothing.",
                UserWarning,
            )

    def best(self, scores: Array, offsets: Array, linear: Array, n_threads: int = 1) -> Array:
        """The labels (parts,) with the highest scores: the prediction."""
        edges = pairwise(offsets)
        return np.concatenate(
            [np.empty(0, np.int64)]
            + [self._asked(i, scores[a:b], None, linear) for i, (a, b) in enumerate(edges)]
        )

    def losses(self, labels: Array, found: Array, offsets: Array) -> Array:
        """Delta(y_i, yhat_i) of every example."""
        return np.array(
            [self._cost(i, labels[a:b], found[a:b]) for i, (a, b) in enumerate(pairwise(offsets))]
        )

    def mean_loss(self, true: Encoded, found: Array, weight: Array | None = None) -> float:
        """Of all examples, or of all parts where a loss is a sum over these."""
        losses = self.losses(true.labels, found, true.offsets)
        weight = np.ones(losses.size) if weight is None else weight
        sizes = np.diff(true.offsets) if self.per_part else np.ones(losses.size)
        return float(weight @ losses) / float(weight @ sizes)

    def features(self, labels: Array, offsets: Array, weight: Array) -> Array:
        """sum_i weight_i phi(y_i), (n_linear,)."""
        total = np.zeros(self.n_linear)
        if self.n_linear:
            for i, (a, b) in enumerate(pairwise(offsets)):
                total += weight[i] * self._phi(i, labels[a:b])
        return total

    def max_loss(self, offsets: Array) -> float:
        """A bound on the loss of any example, for the bounds of the paper.

        Infinite if none is known.
        """
        return float("inf")

    def cut(
        self,
        scores: Array,
        labels: Array,
        offsets: Array,
        weight: Array,
        linear: Array,
        n_threads: int = 1,
    ) -> tuple[float, float, Array, Array]:
        """Risk, loss_sum, responses and linear_response of a block; see the head of this module.

        Shapes of the last two: (parts, n_columns) and (n_linear,).
        """
        plain = self._plain_cut(scores, labels, offsets, weight)
        if plain is not None:
            return *plain, np.zeros(0)
        found, delta, margin = self.worst(scores, labels, offsets, linear, n_threads)
        responses, linear_response = (
            np.zeros((labels.size, self.n_columns)),
            np.zeros(self.n_linear),
        )
        _respond(found, labels, offsets, weight, responses)
        if self.n_linear:
            # the others would cancel but for rounding
            violated = np.where(margin > 0.0, weight, 0.0)
            linear_response = self.features(found, offsets, violated) - self.features(
                labels, offsets, violated
            )
        return float(weight @ margin), float(weight @ delta), responses, linear_response

    def _plain_cut(
        self, scores: Array, labels: Array, offsets: Array, weight: Array
    ) -> tuple[float, float, Array] | None:
        """Risk, loss_sum and responses, for an oracle without a linear part that has a short way.

        None: they are found by :meth:`worst`.
        """
        return None

    # -- asking, and checking the answers ----------------------------------------------------------

    def _asked(self, i: int, scores: Array, y: Array | None, linear: Array) -> Array:
        if self.n_linear:
            given = self.argmax(scores, y, linear=linear)  # type: ignore[call-arg]
        else:
            given = self.argmax(scores, y)
        answer = self._numbers(i, "argmax", given)
        if answer.shape != (scores.shape[0],):
            what = (
                f"argmax gave labels of shape {answer.shape} for {{example}}, which has "
                f"{scores.shape[0]} parts."
            )
            raise InvalidAnswer(self.name, i, what)
        if answer.dtype.kind not in "iu" or answer.min() < 0 or answer.max() >= self.n_labels:
            what = (
                f"argmax gave the labels {answer} for {{example}}; they must be integers from 0 "
                f"to {self.n_labels - 1}."
            )
            raise InvalidAnswer(self.name, i, what)
        return answer.astype(np.int64)

    def _cost(self, i: int, y: Array, yhat: Array) -> float:
        answer = self._numbers(i, "loss", self.loss(y, yhat))
        if answer.ndim or answer.dtype.kind not in "biuf":
            raise InvalidAnswer(
                self.name,
                i,
                f"the loss of {{example}} is {answer.tolist()}; it must be one number.",
            )
        value = float(answer)
        if not 0.0 <= value < np.inf:
            raise InvalidAnswer(
                self.name,
                i,
                f"the loss of {{example}} is {value}; it must be finite and not negative.",
            )
        if value and np.array_equal(y, yhat):
            raise InvalidAnswer(
                self.name,
                i,
                f"the loss of {{example}} is {value} for the true labels themselves; it "
                "must be zero.",
            )
        return value

    def _score(self, i: int, scores: Array, labels: Array, linear: Array) -> float:
        value = float(scores[np.arange(labels.size), labels].sum())
        return value + float(linear @ self._phi(i, labels)) if self.n_linear else value

    def _phi(self, i: int, labels: Array) -> Array:
        features = self._numbers(i, "phi", self.phi(labels))
        if features.shape != (self.n_linear,):
            what = (
                f"phi gave features of shape {features.shape} for {{example}}; n_linear = "
                f"{self.n_linear} of them are needed."
            )
            raise InvalidAnswer(self.name, i, what)
        if features.dtype.kind not in "biuf" or not np.isfinite(features).all():
            raise InvalidAnswer(
                self.name,
                i,
                f"phi gave the features {features.tolist()} for {{example}}; they must be "
                "finite numbers.",
            )
        return features.astype(np.float64)

    def _numbers(self, i: int, method: str, answer: Any) -> Array:
        """What a method gave for example i, as an array."""
        if answer is None:
            raise InvalidAnswer(
                self.name, i, f"{method} gave None for {{example}}; is there a return?"
            )
        try:
            return np.asarray(answer)
        except ValueError as error:
            raise InvalidAnswer(
                self.name,
                i,
                f"{method} gave no array for {{example}}, but a {type(answer).__name__}.",
            ) from error


class BlockOracle(StructuredOracle):
    """Base of the built-in oracles, which work on blocks: one example is a block of one."""

    def argmax(self, scores: Array, y: Array | None = None, linear: Array | None = None) -> Array:
        """One example: the labels with the highest score.

        Given the true ones, those with the highest loss(y, .) plus score.
        """
        scores, offsets = np.asarray(scores), np.array([0, len(scores)])
        linear = np.zeros(self.n_linear) if linear is None else linear
        return (
            self.best(scores, offsets, linear)
            if y is None
            else self.worst(scores, np.asarray(y), offsets, linear)[0]
        )

    def loss(self, y: Array, yhat: Array) -> float:
        """One example: what it costs to answer ``yhat`` where ``y`` is true."""
        return float(self.losses(np.asarray(y), np.asarray(yhat), np.array([0, len(y)]))[0])


def in_groups(work: Any, offsets: Array, n_threads: int) -> None:
    """Call work(first, last) for groups of whole examples.

    Groups have fixed edges and about GROUP parts each.
    """
    n = offsets.size - 1
    edges = np.unique(np.append(np.searchsorted(offsets, np.arange(0, int(offsets[-1]), GROUP)), n))
    parallel(lambda k: work(int(edges[k]), int(edges[k + 1])), edges.size - 1, n_threads)


@compiled
def _respond(found: Array, labels: Array, offsets: Array, weight: Array, out: Array) -> None:
    """out[p, yhat] += weight, out[p, y] -= weight where they differ; out is zero before."""
    for i in range(weight.size):
        for p in range(offsets[i], offsets[i + 1]):
            if found[p] != labels[p]:
                out[p, found[p]] += weight[i]
                out[p, labels[p]] -= weight[i]
