"""What every oracle of structured outputs must do, against exhaustive search; a new oracle joins by
its place in CASES.
"""

from itertools import pairwise, product

import numpy as np
import pytest
from sklearn.base import clone

from slimsvm.oracles import Binary, Chain, Multiclass, Multivariate, StructuredOracle
from tests.reference.outputs import Exhaustive


class Ordinal(StructuredOracle):
    """Written as a user would: being two classes off costs two."""

    def argmax(self, scores, y=None):
        loss = 0 if y is None else abs(np.arange(self.n_labels) - y[0])
        return [np.argmax(scores[0] + loss)]

    def loss(self, y, yhat):
        return float(abs(yhat[0] - y[0]))


class Pairs(StructuredOracle):
    """Sequences with transitions, by trying all; any mistake costs one."""

    def prepare(self, classes):
        super().prepare(classes)
        self.n_linear = self.n_labels**2

    def argmax(self, scores, y=None, linear=None):
        every = np.array(list(product(range(self.n_labels), repeat=len(scores))))
        value = [
            scores[np.arange(len(scores)), c].sum()
            + linear @ self.phi(c)
            + (0 if y is None else self.loss(y, c))
            for c in every
        ]
        return every[np.argmax(value)]

    def phi(self, labels):
        steps = np.zeros((self.n_labels, self.n_labels))
        np.add.at(steps, (labels[:-1], labels[1:]), 1)
        return steps.ravel()

    def loss(self, y, yhat):
        return float(np.any(y != yhat))


def rows(n_classes, n=23):
    return np.random.default_rng(n_classes).permutation(np.arange(n) % n_classes), None


def sequences(n_labels, lengths=(1, 3, 4, 2, 5, 1, 3)):
    rng = np.random.default_rng(n_labels)
    labels = [rng.integers(n_labels, size=length) for length in lengths]
    labels[2][:n_labels] = np.arange(n_labels)  # every label occurs
    return labels, list(lengths)


ONE_SET = ([1, 0, 0, 1, 0, 1], None)
FEW_POSITIVE, FEW_NEGATIVE = ([0, 0, 1, 0, 0, 0], None), ([1, 1, 1, 0, 1, 1], None)
COST = [[0, 1, 7, 0.5], [2, 0, 0, 1], [3, 0.1, 0, 4], [1, 1, 1, 0]]
CASES = [
    (Binary(), *rows(2)),
    (Multiclass(), *rows(2)),
    (Multiclass(), *rows(5)),
    (Multiclass(cost=COST), *rows(4)),
    (Chain(), *sequences(3)),
    (Chain(start_end=False), *sequences(3)),
    (Chain(), *sequences(2, (6, 1, 2))),
    *(
        (Multivariate(measure, k=3), *data)
        for measure in ("f1", "roc_auc", "average_precision")
        for data in (ONE_SET, FEW_POSITIVE, FEW_NEGATIVE)
    ),
    *(
        (Multivariate(f"{m}_at_k", k=k), *ONE_SET)
        for m in ("precision", "recall")
        for k in (1, 3, 5, 6)
    ),
    (Multivariate("precision_at_k", k=2), *FEW_POSITIVE),
    (Multivariate("recall_at_k", k=2), *FEW_NEGATIVE),
    (Ordinal(), *rows(4)),
    (Pairs(), *sequences(3)),
]


def name(case):
    return f"{case[0]!r}-{len(case[1])}"


every_oracle = pytest.mark.parametrize("case", CASES, ids=name)


class Block:
    """An oracle with true outputs, weights and random scores."""

    def __init__(self, case, seed=0, whole=False):
        template, Y, lengths = case
        self.oracle = clone(template)
        n_rows = len(Y) if lengths is None else sum(lengths)
        self.true = self.oracle.encode(Y, n_rows, lengths)
        self.labels, self.offsets = self.true.labels, self.true.offsets
        self.rng = np.random.default_rng(seed)
        self.scores, self.linear = self.draw(whole)
        self.weight = self.rng.uniform(0.2, 3.0, self.offsets.size - 1)

    def draw(self, whole=False):
        """Scores and linear part; whole ones are full of ties."""
        shape = self.labels.size, self.oracle.n_columns
        if whole:
            return self.rng.integers(-1, 2, shape).astype(float), self.rng.integers(
                -1, 2, self.oracle.n_linear
            ).astype(float)
        scale = self.rng.choice([0.1, 1.0, 4.0])
        return scale * self.rng.standard_normal(shape), scale * self.rng.standard_normal(
            self.oracle.n_linear
        )

    def cut(self, **options):
        return self.oracle.cut(
            self.scores, self.labels, self.offsets, self.weight, self.linear, **options
        )


def special_scores(block):
    """All equal, all high, all low, all as the truth wants them, all against it."""
    truth = np.zeros_like(block.scores)
    if block.oracle.n_columns == 1:
        truth[:, 0] = 2 * block.labels - 1
    else:
        truth[np.arange(block.labels.size), block.labels] = 1
    return [
        truth * 0,
        truth * 0 + 3,
        truth * 0 - 3,
        truth * 0.5,
        truth,
        truth * 20,
        -truth,
        truth * -20,
    ]


@every_oracle
@pytest.mark.parametrize("whole", [False, True])
def test_the_worst_output_is_that_of_exhaustive_search(case, whole):
    every = None
    for seed in range(6):
        block = Block(case, seed, whole)
        every = every or Exhaustive(block.oracle, block.labels, block.offsets)
        for scores in [block.scores, *(special_scores(block) if seed == 0 else [])]:
            found, delta, margin = block.oracle.worst(
                scores, block.labels, block.offsets, block.linear
            )
            np.testing.assert_allclose(
                margin,
                every.margins(scores, block.linear),
                rtol=0,
                atol=1e-12 * (1 + np.abs(scores).sum()),
            )
            assert np.all(margin >= 0) and found.shape == block.labels.shape
            np.testing.assert_allclose(
                block.oracle.losses(block.labels, found, block.offsets), delta, rtol=0, atol=1e-14
            )
            assert np.all(delta <= block.oracle.max_loss(block.offsets))


@every_oracle
def test_a_cut_touches_the_risk_where_it_was_made_and_is_never_above_it(case):
    every = None
    for seed in range(4):
        block = Block(case, seed, whole=seed == 3)
        every = every or Exhaustive(block.oracle, block.labels, block.offsets)
        risk, loss_sum, responses, linear_response = block.cut()
        assert (
            responses.shape == block.scores.shape
            and linear_response.shape == block.linear.shape == (block.oracle.n_linear,)
        )
        assert risk == pytest.approx(
            block.weight @ every.margins(block.scores, block.linear), rel=1e-12, abs=1e-12
        )
        assert loss_sum + np.sum(
            responses * block.scores
        ) + linear_response @ block.linear == pytest.approx(risk, rel=1e-12, abs=1e-12)
        for other, linear in [block.draw() for _ in range(20)] + [
            (scores, block.linear) for scores in special_scores(block)
        ]:
            plane = loss_sum + np.sum(responses * other) + linear_response @ linear
            assert block.weight @ every.margins(other, linear) >= plane - 1e-11 * (
                1 + np.abs(other).sum()
            )


@every_oracle
def test_the_prediction_has_the_highest_score(case):
    for seed in range(4):
        block = Block(case, seed)
        oracle = block.oracle
        found = oracle.best(block.scores, block.offsets, block.linear)
        assert found.shape == block.labels.shape and found.dtype == np.int64
        # the risk of a prediction's loss alone is below the risk: R bounds the loss, example by
        # example
        margin = oracle.worst(block.scores, block.labels, block.offsets, block.linear)[2]
        assert np.all(oracle.losses(block.labels, found, block.offsets) <= margin + 1e-12)
        # the best score is the worst of truths that are predictions: nothing is left but the loss
        if not oracle.one_example:
            every = Exhaustive(oracle, found, block.offsets)
            for delta, change, phi in every.examples:
                assert delta.min() == 0 and len(change) == len(phi)
            least = [
                (change @ block.scores[a:b].ravel() + phi @ block.linear).max()
                for (_, change, phi), a, b in zip(
                    every.examples, block.offsets[:-1], block.offsets[1:], strict=True
                )
            ]
            np.testing.assert_allclose(
                least, 0, atol=1e-12
            )  # no output has a higher score than the one found


@every_oracle
def test_a_block_is_the_sum_of_its_parts(case):
    block = Block(case)
    n = block.offsets.size - 1
    risk, loss_sum, responses, linear_response = block.cut()
    best = block.oracle.best(block.scores, block.offsets, block.linear)
    for edges in ([0, n], sorted({0, 1, n // 2, n}), range(n + 1)):
        pieces, predicted = [], []
        for i, j in pairwise(edges):
            a, b = block.offsets[i], block.offsets[j]
            offsets = block.offsets[i : j + 1] - a
            pieces.append(
                block.oracle.cut(
                    block.scores[a:b], block.labels[a:b], offsets, block.weight[i:j], block.linear
                )
            )
            predicted.append(block.oracle.best(block.scores[a:b], offsets, block.linear))
        assert sum(p[0] for p in pieces) == pytest.approx(risk, rel=1e-13) and sum(
            p[1] for p in pieces
        ) == pytest.approx(loss_sum, rel=1e-13)
        np.testing.assert_array_equal(np.concatenate([p[2] for p in pieces]), responses)
        np.testing.assert_allclose(sum(p[3] for p in pieces), linear_response, atol=1e-13)
        np.testing.assert_array_equal(np.concatenate(predicted), best)


@every_oracle
def test_weights_scale_the_cut_of_an_example(case):
    block = Block(case)
    whole = [0.0, 0.0, 0.0, 0.0]
    for i in range(block.weight.size):
        weight = np.zeros_like(block.weight)
        weight[i] = block.weight[i]
        part = block.oracle.cut(block.scores, block.labels, block.offsets, weight, block.linear)
        whole = [total + value for total, value in zip(whole, part, strict=True)]
    for total, value in zip(whole, block.cut(), strict=True):
        np.testing.assert_allclose(total, value, rtol=1e-12, atol=1e-13)
    nothing = block.oracle.cut(
        block.scores, block.labels, block.offsets, 0 * block.weight, block.linear
    )
    assert nothing[0] == nothing[1] == 0 and not nothing[2].any() and not nothing[3].any()


@every_oracle
def test_single_precision_scores_and_untouched_inputs(case):
    block = Block(case)
    block.scores = np.round(block.scores * 64) / 64  # the same numbers in both
    wide = block.cut()
    block.scores = block.scores.astype(np.float32)
    before = [
        array.copy()
        for array in (block.scores, block.labels, block.offsets, block.weight, block.linear)
    ]
    for array in (block.scores, block.labels, block.offsets, block.weight, block.linear):
        array.setflags(write=False)
    for a, b in zip(block.cut(), wide, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-13, atol=1e-13)
    block.oracle.best(block.scores, block.offsets, block.linear)
    for array, old in zip(
        (block.scores, block.labels, block.offsets, block.weight, block.linear), before, strict=True
    ):
        np.testing.assert_array_equal(array, old)


@every_oracle
def test_the_threads_change_no_bit(case):
    block = Block(case)
    for a, b in zip(block.cut(n_threads=1), block.cut(n_threads=3), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize(
    "case", [case for case in CASES if not getattr(case[0], "ranks", False)], ids=name
)  # ranks are no labels
def test_labels_come_back(case):
    block = Block(case)
    _, Y, lengths = case
    words = np.array(["rot", "gelb", "grün", "blau", "weiß"])
    named = [words[y] for y in Y] if lengths else words[np.asarray(Y)]
    true = block.oracle.encode(named, block.labels.size, lengths)
    back = block.oracle.decode(true.labels, true.offsets if lengths else None, true.classes)
    np.testing.assert_array_equal(
        np.concatenate(back) if lengths else back, np.concatenate(named) if lengths else named
    )


@every_oracle
def test_params_rebuild_it_and_prepare_is_enough_for_prediction(case):
    block = Block(case)
    copy = clone(block.oracle)
    assert repr(copy) == repr(block.oracle)
    copy.prepare(block.true.classes)
    assert (copy.n_labels, copy.n_columns, copy.n_linear) == (
        block.oracle.n_labels,
        block.oracle.n_columns,
        block.oracle.n_linear,
    )
    np.testing.assert_array_equal(
        *(o.best(block.scores, block.offsets, block.linear) for o in (copy, block.oracle))
    )


@every_oracle
def test_labels_that_were_never_seen_name_the_oracle_and_the_example(case):
    block = Block(case)
    _, Y, lengths = case
    strange = [np.array(y) for y in Y] if lengths else np.array(Y)
    at = len(strange) - 1
    if lengths:
        strange[at][-1] = 99
    else:
        strange[at] = 99
    example = 0 if block.oracle.one_example else at
    with pytest.raises(
        ValueError, match=f"{type(block.oracle).__name__}: example {example}.* has the label .*99"
    ):
        block.oracle.encode(strange, block.labels.size, lengths, classes=block.true.classes)
