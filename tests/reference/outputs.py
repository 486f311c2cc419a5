"""Structured risks by exhaustive search: every output of an example, what it costs and how it
changes the score, from the definitions.
"""

from itertools import pairwise, permutations, product

import numpy as np

from slimsvm.oracles import Binary, Chain, Multiclass, Multivariate


def outputs(oracle, y):
    """Every output of one example with true labels y: its loss, its change of the score per score
    (parts, columns), its change of phi.
    """
    if isinstance(oracle, Binary):
        for c in (0, 1):
            yield float(c != y[0]), np.array([[c - y[0]]], float), np.zeros(0)
    elif isinstance(oracle, Multivariate):
        yield from _of_the_set(oracle, y)
    else:
        for labels in product(range(oracle.n_labels), repeat=len(y)):
            yield (
                _loss(oracle, y, labels),
                _one_hot(labels, oracle.n_labels) - _one_hot(y, oracle.n_labels),
                _phi(oracle, labels) - _phi(oracle, y),
            )


def _one_hot(labels, n_labels):
    return np.eye(n_labels)[list(labels)]


def _loss(oracle, y, labels):
    if isinstance(oracle, Multiclass):
        return (
            float(labels[0] != y[0])
            if oracle.cost is None
            else float(np.asarray(oracle.cost)[y[0], labels[0]])
        )
    if isinstance(oracle, Chain):
        return float(sum(a != b for a, b in zip(y, labels, strict=True)))
    return oracle.loss(np.asarray(y), np.asarray(labels))  # an oracle of the tests' own


def _phi(oracle, labels):
    """How often each pair of labels follows each other, and which begin and end."""
    if not oracle.n_linear:
        return np.zeros(0)
    K, steps = oracle.n_labels, np.zeros((oracle.n_labels, oracle.n_labels))
    for a, b in pairwise(labels):
        steps[a, b] += 1
    ends = [np.eye(K)[labels[0]], np.eye(K)[labels[-1]]] if oracle.n_linear > K * K else []
    return np.concatenate([steps.ravel(), *ends])


def _of_the_set(oracle, y):
    n, positives, negatives = (
        len(y),
        [i for i in range(len(y)) if y[i]],
        [i for i in range(len(y)) if not y[i]],
    )
    if oracle.measure in ("roc_auc", "average_precision"):
        for order in permutations(range(n)):
            place = np.argsort(order)
            change = np.zeros((n, 1))
            for i, j in product(positives, negatives):
                if place[j] < place[i]:
                    change[i] -= 1 / (len(positives) * len(negatives))
                    change[j] += 1 / (len(positives) * len(negatives))
            yield 1 - _ranked(oracle.measure, y, order), change, np.zeros(0)
        return
    k = None if oracle.measure == "f1" else int(oracle.k)
    allowed = [labels for labels in product((0, 1), repeat=n) if k is None or sum(labels) == k]
    hits = [sum(a * b for a, b in zip(y, labels, strict=True)) for labels in allowed]
    # what stands for the truth: the mean of the outputs with the most hits
    truth = (
        np.mean(
            [labels for labels, hit in zip(allowed, hits, strict=True) if hit == max(hits)], axis=0
        )
        if k
        else np.asarray(y)
    )
    for labels, hit in zip(allowed, hits, strict=True):
        share = {
            "f1": 2 * hit / (sum(y) + sum(labels)),
            "precision_at_k": hit / (k or 1),
            "recall_at_k": hit / sum(y),
        }[oracle.measure]
        yield 1 - share, (np.asarray(labels) - truth)[:, None], np.zeros(0)


def _ranked(measure, y, order):
    sorted_y = [y[i] for i in order]
    if measure == "average_precision":
        return np.mean([sum(sorted_y[: t + 1]) / (t + 1) for t in range(len(y)) if sorted_y[t]])
    pairs = [
        sorted_y[s]
        for s in range(len(y))
        for t in range(s + 1, len(y))
        if sorted_y[s] != sorted_y[t]
    ]
    return np.mean(pairs)  # the share of pairs whose positive comes first


class Exhaustive:
    """All outputs of all examples as arrays, so that the risk can be had at many scores."""

    def __init__(self, oracle, labels, offsets):
        self.offsets = offsets
        self.examples = []
        for a, b in pairwise(offsets):
            every = list(outputs(oracle, [int(c) for c in labels[a:b]]))
            self.examples.append(
                (
                    np.array([e[0] for e in every]),
                    np.array([e[1].ravel() for e in every]),
                    np.array([e[2] for e in every]),
                )
            )

    def margins(self, scores, linear):
        edges = zip(self.offsets[:-1], self.offsets[1:], strict=True)
        return np.array(
            [
                (delta + change @ scores[a:b].ravel() + phi @ linear).max()
                for (delta, change, phi), (a, b) in zip(self.examples, edges, strict=True)
            ]
        )
