"""The oracles at sizes beyond exhaustive search, against other methods; what they do with bad
input; oracles of one's own.
"""

import re
import warnings
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import average_precision_score, f1_score, roc_auc_score

from slimsvm import StructuralSVM
from slimsvm.losses import Hinge
from slimsvm.oracles import (
    Binary,
    Chain,
    InvalidAnswer,
    LossOracle,
    Multiclass,
    Multivariate,
    StructuredOracle,
)
from slimsvm.oracles.structured import GROUP

NOTHING = np.empty(0)
DOCS = Path(__file__).resolve().parents[2] / "docs"


def labelled_set(n, share=0.3, seed=0, whole=False):
    rng = np.random.default_rng(seed)
    y = (rng.random(n) < share).astype(int)
    y[:2] = 0, 1
    f = rng.standard_normal(n) + y
    return y, np.round(2 * f) / 2 if whole else f


# -- one label -------------------------------------------------------------------------------------


def test_binary_is_the_hinge():
    rng = np.random.default_rng(0)
    y, f, weight = (
        rng.choice([-1, 1], 500),
        np.round(8 * rng.standard_normal(500)) / 8,
        rng.random(500),
    )  # some margins are exactly one
    oracle = Binary()
    true = oracle.encode(y, 500)
    risk, loss_sum, responses, _ = oracle.cut(
        f[:, None], true.labels, true.offsets, weight, NOTHING
    )
    expected = LossOracle(Hinge(), y, weight).cut(0, 500, f[:, None])
    np.testing.assert_allclose([risk, loss_sum], [expected[0][0], expected[1][0]], rtol=1e-13)
    np.testing.assert_array_equal(responses, expected[2])
    assert np.sum(y * f == 1) > 5


def test_two_classes_are_the_hinge_of_their_difference():
    rng = np.random.default_rng(1)
    oracle, f, weight = Multiclass(), rng.standard_normal((200, 2)), rng.random(200)
    true = oracle.encode(np.arange(200) % 2, 200)
    risk = oracle.cut(f, true.labels, true.offsets, weight, NOTHING)[0]
    assert risk == pytest.approx(
        weight @ Hinge().value(2 * true.labels - 1, f[:, 1] - f[:, 0]), rel=1e-13
    )


def test_a_dearer_mistake_is_a_larger_risk_and_scaling_scales():
    rng = np.random.default_rng(2)
    cost, f = rng.random((4, 4)), rng.standard_normal((100, 4))
    np.fill_diagonal(cost, 0)
    y = np.arange(100) % 4

    def risk(cost, f):
        oracle = Multiclass(cost)
        true = oracle.encode(y, 100)
        return oracle.cut(f, true.labels, true.offsets, np.ones(100), NOTHING)[0]

    assert risk(3 * cost, 3 * f) == pytest.approx(3 * risk(cost, f))
    assert risk(cost + 0.5 * (1 - np.eye(4)), f) > risk(cost, f)
    assert risk(cost, f + rng.standard_normal((100, 1))) == pytest.approx(
        risk(cost, f)
    )  # a shift of all scores of a row changes nothing


# -- chains ----------------------------------------------------------------------------------------


def longest_path(emission, transition, start, end):
    """The score of the best labels, by the recursion over whole matrices."""
    value = start + emission[0]
    for row in emission[1:]:
        value = (value[:, None] + transition).max(axis=0) + row
    return (value + end).max()


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_long_sequences(dtype):
    rng = np.random.default_rng(3)
    lengths, K = [1, 3000, 2, 700], 5
    oracle = Chain()
    true = oracle.encode(
        [
            np.append(rng.integers(K, size=length - 1), 0)
            if length < 3000
            else np.arange(length) % K
            for length in lengths
        ],
        3703,
        lengths,
    )
    scores, linear = (
        rng.standard_normal((3703, K)).astype(dtype),
        rng.standard_normal(K * K + 2 * K),
    )
    transition, start, end = linear[: K * K].reshape(K, K), linear[K * K : -K], linear[-K:]
    found, delta, margin = oracle.worst(scores, true.labels, true.offsets, linear)
    best = oracle.best(scores, true.offsets, linear)
    for i, (a, b) in enumerate(zip(true.offsets[:-1], true.offsets[1:], strict=True)):
        f, y = scores[a:b].astype(float), true.labels[a:b]

        def score(labels, f=f):
            return (
                f[np.arange(len(f)), labels].sum()
                + transition[labels[:-1], labels[1:]].sum()
                + start[labels[0]]
                + end[labels[-1]]
            )

        assert score(best[a:b]) == pytest.approx(longest_path(f, transition, start, end), rel=1e-12)
        augmented = longest_path(f + (np.arange(K) != y[:, None]), transition, start, end)
        assert margin[i] == pytest.approx(augmented - score(y), rel=1e-10)
        assert delta[i] == np.sum(found[a:b] != y)


def test_without_transitions_positions_are_independent():
    rng = np.random.default_rng(4)
    chain, single = Chain(), Multiclass()
    labels, lengths = rng.integers(4, size=60), [7] * 8 + [4]
    true = chain.encode(np.split(labels, np.cumsum(lengths)[:-1]), 60, lengths)
    alone = single.encode(labels, 60)
    scores = rng.standard_normal((60, 4))
    weight = rng.random(9)
    risk, loss_sum, responses, _ = chain.cut(
        scores, true.labels, true.offsets, weight, np.zeros(chain.n_linear)
    )
    expected = single.cut(scores, alone.labels, alone.offsets, np.repeat(weight, lengths), NOTHING)
    np.testing.assert_allclose([risk, loss_sum], expected[:2], rtol=1e-12)
    np.testing.assert_array_equal(responses, expected[2])
    np.testing.assert_array_equal(
        chain.best(scores, true.offsets, np.zeros(chain.n_linear)),
        single.best(scores, alone.offsets, NOTHING),
    )


@pytest.mark.parametrize("oracle", [Chain(), Multiclass()], ids=repr)
def test_groups_of_examples_on_threads_give_the_same_bits(oracle):
    rng = np.random.default_rng(5)
    lengths = rng.integers(1, 40, size=900) if isinstance(oracle, Chain) else None
    n = int(lengths.sum()) if lengths is not None else 3 * GROUP + 1
    assert n > 3 * GROUP  # several groups
    labels = rng.integers(6, size=n)
    true = oracle.encode(
        labels if lengths is None else np.split(labels, np.cumsum(lengths)[:-1]), n, lengths
    )
    scores, linear, weight = (
        rng.standard_normal((n, 6)),
        rng.standard_normal(oracle.n_linear),
        rng.random(true.offsets.size - 1),
    )
    one = oracle.cut(scores, true.labels, true.offsets, weight, linear, n_threads=1)
    for a, b in zip(
        one, oracle.cut(scores, true.labels, true.offsets, weight, linear, n_threads=4), strict=True
    ):
        np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(
        *(oracle.best(scores, true.offsets, linear, n_threads=k) for k in (1, 4))
    )
    # ... and as example by example
    few = slice(0, 50)
    risks = [
        oracle.cut(scores[a:b], true.labels[a:b], np.array([0, b - a]), weight[i : i + 1], linear)[
            0
        ]
        for i, (a, b) in enumerate(zip(true.offsets[:-1][few], true.offsets[1:][few], strict=True))
    ]
    np.testing.assert_allclose(
        weight[few] * oracle.worst(scores, true.labels, true.offsets, linear)[2][few],
        risks,
        rtol=1e-13,
    )


# -- whole sets ------------------------------------------------------------------------------------


@pytest.mark.parametrize("whole", [False, True])
def test_losses_are_scikit_learns_measures(whole):
    for seed in range(5):
        y, f = labelled_set(80, seed=seed, whole=whole)

        def loss(measure, y=y, f=f, **options):
            oracle = Multivariate(measure, **options)
            true = oracle.encode(y, 80)
            return oracle.losses(
                true.labels, oracle.best(f[:, None], true.offsets, NOTHING), true.offsets
            )[0]

        assert loss("f1") == pytest.approx(1 - f1_score(y, f > 0))
        assert loss("roc_auc") == pytest.approx(1 - roc_auc_score(y, f))
        assert loss("average_precision") == pytest.approx(1 - average_precision_score(y, f))
        top = np.argsort(-f, kind="stable")[:12]
        assert loss("precision_at_k", k=12) == pytest.approx(1 - y[top].mean())
        assert loss("recall_at_k", k=0.15) == pytest.approx(1 - y[top].sum() / y.sum())


def f1_by_all_tables(positive, negative):
    P, N = positive.size, negative.size
    left_out = np.concatenate([np.cumsum(positive[::-1])[::-1], [0]])
    let_in = np.concatenate([[0], np.cumsum(negative)])
    a, b = np.meshgrid(np.arange(P + 1), np.arange(N + 1), indexing="ij")
    return (1 - 2 * a / (P + a + b) - left_out[a] + let_in[b]).max()


def pairwise_hinge(positive, negative):
    return np.maximum(0, 1 - (positive[:, None] - negative[None, :])).mean()


def precision_by_dynamic_programming(positive, negative):
    """Over all ways to merge the two sorted lists: the next is a positive, which knows the
    negatives above it, or a negative.
    """
    P, N = positive.size, negative.size
    value = np.full((P + 1, N + 1), -np.inf)
    value[0, 0] = 1.0
    for i in range(P + 1):
        for j in range(N + 1):
            if i < P:  # a positive next, below j negatives
                gain = -(i + 1) / (i + 1 + j) / P + (negative[:j].sum() - j * positive[i]) / (P * N)
                value[i + 1, j] = max(value[i + 1, j], value[i, j] + gain)
            if j < N:
                value[i, j + 1] = max(value[i, j + 1], value[i, j])
    return value[P, N]


@pytest.mark.parametrize(
    ("measure", "naive"),
    [
        ("f1", f1_by_all_tables),
        ("roc_auc", pairwise_hinge),
        ("average_precision", precision_by_dynamic_programming),
    ],
)
@pytest.mark.parametrize("share", [0.03, 0.4, 0.95])
@pytest.mark.parametrize("scale", [0.003, 0.05, 1.0])
def test_the_worst_of_a_set_by_slow_methods(measure, naive, share, scale):
    for seed in range(3):
        y, f = labelled_set(120, share, seed, whole=seed == 2)
        f = scale * f
        oracle = Multivariate(measure)
        true = oracle.encode(y, y.size)
        margin = oracle.worst(f[:, None], true.labels, true.offsets, NOTHING)[2][0]
        assert margin == pytest.approx(
            naive(*(-np.sort(-f[y == label]) for label in (1, 0))), rel=1e-11
        )


@pytest.mark.parametrize(
    "measure", ["precision_at_k", "recall_at_k", "roc_auc", "average_precision"]
)
def test_only_the_order_matters(measure):
    y, f = labelled_set(200)
    oracle = Multivariate(measure, k=20)
    true = oracle.encode(y, 200)
    here, there = (
        oracle.cut(s[:, None], true.labels, true.offsets, np.ones(1), NOTHING)
        for s in (f, f + 17.0)
    )
    assert here[0] == pytest.approx(there[0]) and abs(here[2].sum()) < 1e-12


@pytest.mark.parametrize(
    "measure", ["f1", "precision_at_k", "recall_at_k", "roc_auc", "average_precision"]
)
def test_the_order_of_the_rows_does_not_matter(measure):
    y, f = labelled_set(300)
    oracle = Multivariate(measure, k=50)
    true = oracle.encode(y, 300)
    shuffled = np.random.default_rng(9).permutation(300)
    here = oracle.cut(f[:, None], true.labels, true.offsets, np.ones(1), NOTHING)
    there = oracle.cut(f[shuffled, None], true.labels[shuffled], true.offsets, np.ones(1), NOTHING)
    assert here[0] == pytest.approx(there[0], rel=1e-12)
    np.testing.assert_allclose(here[2][shuffled], there[2], atol=1e-14)


def test_prediction_on_few_rows_or_without_positives():
    oracle = Multivariate("precision_at_k", k=5)
    true = oracle.encode([0, 1] * 5, 10)
    np.testing.assert_array_equal(
        oracle.best(np.ones((3, 1)), oracle.offsets(3), NOTHING), [1, 1, 1]
    )
    none = oracle.encode([0, 0, 0], 3, classes=true.classes)
    for measure in ("f1", "roc_auc", "average_precision"):
        other = Multivariate(measure)
        other.prepare(true.classes)
        assert (
            other.losses(
                none.labels, other.best(-np.ones((3, 1)), none.offsets, NOTHING), none.offsets
            )
            == 0
        )
    assert oracle.losses(none.labels, np.array([1, 1, 1]), none.offsets) == 1


# -- bad input -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cost", "message"),
    [
        ([[0, 1], [1, 0]], r"shape \(3, 3\)"),
        ("dear", r"shape \(3, 3\)"),
        ([[0, 1, 1], [1, 0], [1, 1, 0]], r"shape \(3, 3\)"),
        ([[0, 1, np.nan], [1, 0, 1], [1, 1, 0]], r"cost\[0, 2\] is nan"),
        ([[0, 1, 1], [np.inf, 0, 1], [1, 1, 0]], r"cost\[1, 0\] is inf"),
        ([[0, 1, 1], [1, 0, -2], [1, 1, 0]], r"cost\[1, 2\] is -2.0"),
        ([[0, 1, 1], [1, 0, 2], [1, 1, 3]], r"cost\[2, 2\] is 3.0.*diagonal"),
    ],
)
def test_bad_costs(cost, message):
    with pytest.raises(
        ValueError, match="Multiclass: cost.*" if "shape" in message else message
    ) as raised:
        Multiclass(cost).encode([0, 1, 2], 3)
    assert re.search(message, str(raised.value))


@pytest.mark.parametrize(
    ("Y", "n_rows", "lengths", "message"),
    [
        ([[0, 1], []], 2, [2, 0], "Chain: example 1 has no parts"),
        ([[0, 1], [1]], 4, [2, 2], "Chain: example 1 has 1 labels, but 2 rows"),
        ([[0, 1]], 4, [2, 2], "Chain: Y has 1 examples, but X has 2"),
        (
            [[0, 1], [[1, 0], [0, 1]]],
            4,
            [2, 2],
            "Chain: the labels of example 1 are not a sequence",
        ),
        ([[0, 1], [[1], [0, 1]]], 4, [2, 2], "Chain: the labels of example 1 are not a sequence"),
        ([[0, 1], 1], 3, [2, 1], "Chain: the labels of example 1 are not a sequence"),
        ([[0, 1], ["a", "b"]], 4, [2, 2], "Chain: the labels of example 1 are of another kind"),
        (
            [[0.0, 1.0], [1.0, np.nan]],
            4,
            [2, 2],
            "Chain: example 1 has the label nan|Chain: example 1 has the label np.float64",
        ),
        ([[0, 0], [0]], 3, [2, 1], "Chain: there must be at least two labels"),
        ([], 0, [], "Chain: there are no examples"),
        ([[0, 1], [1, 0]], 5, [2, 2], "Chain: the lengths add up to 4, but X has 5 rows"),
        ([0, 1, 1], 3, None, "Chain: X must be a list of sequences"),
    ],
)
def test_bad_sequences(Y, n_rows, lengths, message):
    with pytest.raises(ValueError, match=message):
        Chain().encode(Y, n_rows, lengths)


@pytest.mark.parametrize(
    ("oracle", "Y", "message"),
    [
        (Multiclass(), [[0, 1], [1, 0], [0, 0]], "Multiclass: Y must have one dimension"),
        (Multiclass(), [0, 1], "Multiclass: Y has 2 labels, but X has 3 rows"),
        (Multiclass(), [1, 1, 1], "Multiclass: there must be at least two classes"),
        (Multiclass(), [0.0, 1.0, np.inf], "Multiclass: row 2 has the label"),
        (
            Multiclass(),
            np.array([0, "a", 1], object),
            "Multiclass: the labels cannot be put in order",
        ),
        (
            Multiclass(),
            np.array([0, 1, None], object),
            "Multiclass: example 2 has no label, but None",
        ),
        (Binary(), [0, 1, 2], "Binary: there must be two classes, but Y has 3"),
        (Multivariate("f2"), [0, 1, 1], "Multivariate: measure must be one of f1"),
        (
            Multivariate("precision_at_k", k=4),
            [0, 1, 1],
            "Multivariate: k is 4, but there are 3 rows",
        ),
        (Multivariate("recall_at_k", k=0), [0, 1, 1], "Multivariate: k must be"),
        (Multivariate("recall_at_k", k=2.5), [0, 1, 1], "Multivariate: k must be"),
        (Multivariate("recall_at_k", k=True), [0, 1, 1], "Multivariate: k must be"),
        (Multivariate(), [0, 0, 0], "Multivariate: there must be two classes, but Y has 1"),
    ],
)
def test_bad_labels(oracle, Y, message):
    with pytest.raises(ValueError, match=message):
        oracle.encode(Y, 3)


@pytest.mark.parametrize("oracle", [Binary(), Multiclass(), Multivariate()], ids=repr)
def test_sequences_are_for_chains(oracle):
    with pytest.raises(ValueError, match=type(oracle).__name__):
        oracle.encode([[0, 1], [1]], 3, [2, 1])


def test_words_where_numbers_were_learned():
    oracle = Multiclass()
    true = oracle.encode([1, 2, 3], 3)
    with pytest.raises(ValueError, match=r"Multiclass: example 0 has the label .*one"):
        oracle.encode(["one", "two"], 2, classes=true.classes)


def test_a_set_cannot_be_cut_in_pieces_nor_without_both_classes():
    oracle = Multivariate()
    oracle.encode([0, 1, 0, 1], 4)
    with pytest.raises(ValueError, match="one example"):
        oracle.cut(
            np.zeros((4, 1)), np.array([0, 1, 0, 1]), np.array([0, 2, 4]), np.ones(2), NOTHING
        )
    with pytest.raises(ValueError, match="both positive and negative"):
        oracle.cut(np.zeros((2, 1)), np.array([1, 1]), np.array([0, 2]), np.ones(1), NOTHING)


# -- an oracle of one's own ------------------------------------------------------------------------


class Answers(StructuredOracle):
    """Gives what it is told to, for the second example."""

    def __init__(self, labels=(0, 0), cost=1.0, truth=0.0):
        self.labels, self.cost, self.truth = labels, cost, truth

    def argmax(self, scores, y=None):
        return self.labels if len(scores) == 2 else [0]

    def loss(self, y, yhat):
        truth, cost = (self.truth, self.cost) if len(y) == 2 else (0.0, 1.0)
        return truth if np.array_equal(y, yhat) else cost


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"labels": (0, 3)}, r"Answers: argmax gave the labels \[0 3\] for example 1"),
        ({"labels": (-1, 0)}, r"Answers: argmax gave the labels \[-1  0\] for example 1"),
        (
            {"labels": (0.0, 1.0)},
            "Answers: argmax gave the labels .* for example 1; they must be integers from 0 to 2",
        ),
        (
            {"labels": (0, 1, 1)},
            r"Answers: argmax gave labels of shape \(3,\) for example 1, which has 2 parts",
        ),
        ({"labels": 1}, r"Answers: argmax gave labels of shape \(\) for example 1"),
        ({"cost": -0.5}, "Answers: the loss of example 1 is -0.5"),
        ({"cost": np.nan}, "Answers: the loss of example 1 is nan"),
        (
            {"labels": (1, 2), "truth": 2.0},
            "Answers: the loss of example 1 is 2.0 for the true labels",
        ),
        ({"labels": None}, "Answers: argmax gave None for example 1"),
        ({"labels": ([0, 0], 1.5)}, "Answers: argmax gave no array for example 1, but a tuple"),
        (
            {"labels": ({0}, {1})},
            "Answers: argmax gave the labels .*0.* for example 1; they must be integers",
        ),
        ({"cost": None}, "Answers: loss gave None for example 1"),
        ({"cost": "much"}, "Answers: the loss of example 1 is much; it must be one number"),
        (
            {"cost": np.ones(2)},
            r"Answers: the loss of example 1 is \[1.0, 1.0\]; it must be one number",
        ),
    ],
)
def test_invalid_answers_name_the_oracle_and_the_example(settings, message):
    oracle = Answers(**settings)
    true = oracle.encode([[0], [1, 2]], 3, [1, 2])
    with pytest.raises(InvalidAnswer, match=message) as raised:
        oracle.cut(np.zeros((3, 3)), true.labels, true.offsets, np.ones(2), NOTHING)
    raised.value.example += 40  # the block began with the 40th
    assert "example 41" in str(raised.value) and isinstance(raised.value, ValueError)


class Placed(Answers):
    """With a linear part."""

    n_linear = 2

    def __init__(self, labels=(0, 0), cost=1.0, truth=0.0, features=(1.0, 0.0)):
        super().__init__(labels, cost, truth)
        self.features = features

    def argmax(self, scores, y=None, linear=None):
        return super().argmax(scores, y)

    def phi(self, labels):
        return self.features if len(labels) == 2 else [0.0, 0.0]


@pytest.mark.parametrize(
    ("features", "message"),
    [
        (np.ones(3), r"Placed: phi gave features of shape \(3,\) for example 1; n_linear = 2"),
        (None, "Placed: phi gave None for example 1"),
        (
            [0.0, np.nan],
            "Placed: phi gave the features .* for example 1; they must be finite numbers",
        ),
        (["a", "b"], "Placed: phi gave the features .* for example 1; they must be finite numbers"),
    ],
)
def test_invalid_features_name_the_oracle_and_the_example(features, message):
    oracle = Placed(features=features)
    true = oracle.encode([[0], [1, 2]], 3, [1, 2])
    with pytest.raises(InvalidAnswer, match=message):
        oracle.cut(np.zeros((3, 3)), true.labels, true.offsets, np.ones(2), np.zeros(2))


def test_an_argmax_that_finds_less_than_the_truth_leaves_a_valid_cut():
    oracle = Answers()
    true = oracle.encode([[0], [1, 2]], 3, [1, 2])
    scores = np.array(
        [[0.0, 0, 0], [0, 5, 0], [0, 0, 5]]
    )  # the answer (0, 0) is far below the truth (1, 2)
    risk, loss_sum, responses, _ = oracle.cut(
        scores, true.labels, true.offsets, np.ones(2), NOTHING
    )
    assert risk == loss_sum == 0 and not responses.any()


@pytest.mark.parametrize("method", ["argmax", "loss"])
def test_a_missing_method_is_named(method):
    oracle = type("Half", (Answers,), {method: getattr(StructuredOracle, method)})()
    true = oracle.encode([[0], [1, 2]], 3, [1, 2])
    with pytest.raises(NotImplementedError, match=f"Half must define {method}"):
        oracle.cut(np.zeros((3, 3)), true.labels, true.offsets, np.ones(2), NOTHING)


def test_the_page_on_writing_an_oracle_runs():
    blocks = re.findall(
        r"```python\n(.*?)```", (DOCS / "add_an_oracle.md").read_text(encoding="utf-8"), re.DOTALL
    )
    assert blocks
    names: dict = {}
    for block in blocks:
        exec(compile(block, "add_an_oracle.md", "exec"), names)
    oracles = [block for block in blocks if "StructuredOracle):" in block]
    assert oracles and all(len(block.strip().splitlines()) < 40 for block in oracles)


class Forgetful(StructuredOracle):
    """Takes the best label, whatever it costs."""

    def argmax(self, scores, y=None):
        return np.argmax(scores, axis=1)

    def loss(self, y, yhat):
        return float(np.any(y != yhat))


class Thoughtful(Forgetful):
    def argmax(self, scores, y=None):
        loss = 0.0 if y is None else np.arange(self.n_labels) != y[:, None]
        return np.argmax(scores + loss, axis=1)


def test_an_argmax_that_forgets_the_loss_is_noticed_during_the_fit():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 2))
    y = np.digitize(X[:, 0], [-0.5, 0.5])
    with pytest.warns(UserWarning, match="Forgetful: argmax.*Does it add the loss") as heard:
        StructuralSVM(Forgetful(), kernel="linear").fit(X, y)
    assert sum("Forgetful" in str(w.message) for w in heard) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        StructuralSVM(Thoughtful(), kernel="linear").fit(X, y)
