"""A description as a graph of ONNX: outputs, scores, labels and probabilities.

All operators are of the standard domain; kernel values are one matrix product and one function of
its elements. Names: n rows, m vectors, q coordinates, C classes, P pairs of classes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from slimsvm.expansion import by_pair
from slimsvm.export.description import Description, Probabilities
from slimsvm.export.operators import Graph
from slimsvm.multiclass import OneVsOne
from slimsvm.probability import LEAST

Array = NDArray[Any]
BLOCK = 256  # vectors at a time
FEW_CLASSES = 4  # up to which coefficients have a column for each pair, mostly not zero


def outputs(g: Graph, d: Description, x: str) -> str:
    """The name of the outputs, (n, outputs)."""
    z = x if d.shift is None else g("Sub", x, g.numbers(d.shift))
    if d.metric is not None:
        z = g("MatMul" if d.metric.ndim == 2 else "Mul", z, g.numbers(d.metric))
    if d.basis is None:
        return g("Gemm", z, g.numbers(d.coef), g.numbers(d.intercept))
    if d.n_vectors == 0:
        return g("Gemm", z, g.numbers(np.zeros((d.n_mapped, d.n_outputs))), g.numbers(d.intercept))
    values = _values(g, d, z)
    if d.n_support is None:
        return g("Gemm", values(slice(None)), g.numbers(d.coef), g.numbers(d.intercept))
    return _of_pairs(g, d, values)


def _values(g: Graph, d: Description, z: str) -> Any:
    """A function that adds the kernel values of some of the vectors, (n, vectors)."""
    assert d.basis is not None
    B = d.basis
    if d.form == "laplacian":
        return lambda part: _laplacian(g, d, z, part)
    if d.form != "rbf":
        return lambda part: _of_products(g, d, z, part)
    assert d.widths is not None
    widths = d.widths
    centre = B.mean(axis=0, dtype=np.float64)  # differences keep their digits
    z = g("Sub", z, g.numbers(centre))
    v = g("Concat", z, squares(g, z, 1), axis=1)

    def exponentials(part: slice) -> str:
        own, width = B[part], widths[part]
        last = np.empty(len(own))

        def fill(A: Array) -> None:
            for first in range(0, len(own), BLOCK):  # a large model is not copied whole
                some = slice(first, first + BLOCK)
                b = own[some] - centre
                np.multiply(b.T, 2.0 * width[some], out=A[:-1, some], casting="same_kind")
                last[some] = -width[some] * np.einsum("ij,ij->i", b, b)
            A[-1] = -width

        A = g.filled((own.shape[1] + 1, own.shape[0]), fill)
        return g("Exp", g("Gemm", v, A, g.numbers(last)))

    return exponentials


def _of_products(g: Graph, d: Description, z: str, part: slice) -> str:
    """(gamma z.b + coef0)^degree, or the hyperbolic tangent."""
    assert d.basis is not None
    own = d.basis[part]

    def fill(A: Array) -> None:
        # in float64: a float32 basis times a Python number would be rounded before it is stored
        np.multiply(own.T, d.gamma, out=A, dtype=np.float64, casting="same_kind")

    A = g.filled((own.shape[1], own.shape[0]), fill)
    products = g("Gemm", z, A, g.numbers(d.coef0))
    if d.form == "sigmoid":
        return g("Tanh", products)
    return _power(g, products, d.degree)


def _power(g: Graph, value: str, degree: int) -> str:
    """By squares: quicker than Pow, and defined for any base."""
    if degree == 0:
        return g("Add", g("Mul", value, g.numbers(0.0)), g.numbers(1.0))
    found = ""
    while True:
        if degree & 1:
            found = g("Mul", found, value) if found else value
        degree >>= 1
        if not degree:
            return found
        value = g("Mul", value, value)


def _laplacian(g: Graph, d: Description, z: str, part: slice) -> str:
    """exp(-width |z - b|_1), row by row: distances of all pairs and features are too many."""
    assert d.basis is not None and d.widths is not None
    body, dtype = g.body("distances"), g.dtype.name
    row = body.given("row", dtype, (d.n_mapped,))
    apart = body("Abs", body("Sub", body.numbers(d.basis[part]), row))
    summed = body("ReduceSum", apart, body.integers([1]), keepdims=0)
    last = body("Exp", body("Mul", summed, body.numbers(-d.widths[part])))
    body.result(last, dtype, (len(d.widths[part]),))
    return g("Scan", z, body=body.proto, num_scan_inputs=1)


def _of_pairs(g: Graph, d: Description, values: Any) -> str:
    """One-vs-one: pair (i, j) adds the vectors of both classes."""
    assert d.n_support is not None
    ends = np.concatenate([[0], np.cumsum(d.n_support)])
    n_classes = d.n_support.size
    if n_classes <= FEW_CLASSES:
        coef = by_pair(d.coef.T, d.n_support)
        return g("Gemm", values(slice(None)), g.numbers(coef), g.numbers(d.intercept))
    held = [c for c in range(n_classes) if d.n_support[c]]
    place = {c: at * (n_classes - 1) for at, c in enumerate(held)}
    parts = []
    for c in held:
        part = slice(int(ends[c]), int(ends[c + 1]))
        parts.append(g("MatMul", values(part), g.numbers(d.coef[part])))
    zero = len(held) * (n_classes - 1)  # the column of a class without vectors
    if len(held) < n_classes:
        first = g("Slice", parts[0], g.integers([0]), g.integers([1]), g.integers([1]))
        parts.append(g("Mul", first, g.numbers(0.0)))
    joined = g("Concat", *parts, axis=1)
    pairs = OneVsOne(n_classes).pairs
    firsts = [place[i] + j - 1 if i in place else zero for i, j in pairs]
    seconds = [place[j] + i if j in place else zero for i, j in pairs]
    both = [g("Gather", joined, g.integers(columns), axis=1) for columns in (firsts, seconds)]
    return g("Add", g("Add", *both), g.numbers(d.intercept))


# -- decisions -------------------------------------------------------------------------------------


def pair_sides(n_classes: int) -> tuple[Array, Array]:
    """For each class its C - 1 pairs, and whether it is the second there; flat."""
    number = np.zeros((n_classes, n_classes), np.int64)
    for k, (i, j) in enumerate(OneVsOne(n_classes).pairs):
        number[i, j] = number[j, i] = k
    others = ~np.eye(n_classes, dtype=bool)
    second = np.tril(np.ones((n_classes, n_classes), bool), -1)
    return number[others], second[others]


class Decisions:
    """Scores, labels and probabilities from outputs."""

    def __init__(self, g: Graph, d: Description, values: str) -> None:
        self.g, self.d, self.values = g, d, values
        self._sides = ""
        self._columns: dict[int, str] = {}

    def column(self, k: int) -> str:
        """One output, (n,)."""
        if k not in self._columns:
            self._columns[k] = self.g("Gather", self.values, self.g.integers(k), axis=1)
        return self._columns[k]

    def scores(self) -> str:
        """As ``decision_function`` has them."""
        g, d = self.g, self.d
        if d.answer == "number":
            return self.column(0)
        if d.answer == "sign":
            value = self.column(0)
            inside = g("LessOrEqual", g("Abs", value), g.numbers(d.border))
            return g("Where", inside, g.numbers(0.0), value)
        if d.joint:
            return g("Sub", self.column(1), self.column(0))
        if d.n_classes == 2:
            return self.column(0)
        return self.by_class() if d.pairwise and not d.by_pair else self.values

    def sides(self) -> str:
        """The pairs of each class, positive for it: (n, C, C - 1)."""
        if not self._sides:
            g, n_classes = self.g, self.d.n_classes
            pairs, second = pair_sides(n_classes)
            own = g("Gather", self.values, g.integers(pairs), axis=1)
            signed = g("Mul", own, g.numbers(np.where(second, -1.0, 1.0)))
            self._sides = g("Reshape", signed, g.integers([0, n_classes, n_classes - 1]))
        return self._sides

    def by_class(self) -> str:
        """Votes, and a share below one half of the sum of values, as scikit-learn has them."""
        g = self.g
        # a value of zero is a vote for the first class of a pair here
        votes, total = self.votes(first=True), g("ReduceSum", self.sides(), g.integers([2]))
        total = g("Squeeze", total, g.integers([2]))
        size = g("Mul", g("Add", g("Abs", total), g.numbers(1.0)), g.numbers(3.0))
        return g("Add", votes, g("Div", total, size))

    def votes(self, first: bool) -> str:
        """For each class; ``first`` says who has the vote of a pair with value zero."""
        g, n_classes = self.g, self.d.n_classes
        _, second = pair_sides(n_classes)
        on_zero = np.reshape(second != first, (n_classes, n_classes - 1))
        zero = g.numbers(0.0)
        won = g("Greater", self.sides(), zero)
        tied = g("And", g("Equal", self.sides(), zero), g.constant(on_zero))
        counted = g("Cast", g("Or", won, tied), to=g.dtype.name)
        return g("ReduceSum", counted, g.integers([2]), keepdims=0)

    def place(self, scores: str) -> str:
        """The number of the predicted class, (n,)."""
        g, d = self.g, self.d
        if d.n_classes == 2 and not d.joint:
            return g("Cast", g("Greater", self.column(0), g.numbers(0.0)), to="int64")
        most = self.values
        if d.pairwise:
            most = scores if d.break_ties else self.votes(first=False)
        return g("ArgMax", most, axis=1, keepdims=0)

    def probabilities(self, p: Probabilities, scores: str, place: str) -> str:
        """Of the classes, (n, C)."""
        g, d = self.g, self.d
        if p.kind == "softmax":
            if d.n_outputs > 1:
                return g("Softmax", self.values, axis=1)
            return _beside(g, g("Sigmoid", self.values))
        if p.kind == "pairs":
            return self._coupled(p, place)
        if d.n_classes == 2:
            scores = g("Unsqueeze", scores, g.integers([1]))
        if p.kind == "temperature":
            if d.n_classes == 2:
                scores = g("Concat", g("Neg", scores), scores, axis=1)
            return g("Softmax", g("Mul", scores, g.numbers(p.A[0])), axis=1)
        each = _sigmoids(g, scores, p.A, p.B)
        if d.n_classes == 2:
            return _beside(g, each)
        total = g("ReduceSum", each, g.integers([1]), keepdims=1)
        none = g("Equal", total, g.numbers(0.0))
        divided = g("Div", each, g("Where", none, g.numbers(1.0), total))
        return g("Where", none, g.numbers(1.0 / d.n_classes), divided)

    def _coupled(self, p: Probabilities, place: str) -> str:
        """Pairs as probabilities, and these coupled: see :mod:`slimsvm.probability`."""
        g, n_classes = self.g, self.d.n_classes
        # LIBSVM's sign: of two classes the first is positive
        values = g("Neg", self.values) if n_classes == 2 else self.values
        pair = _sigmoids(g, values, p.A, p.B)
        pair = g("Clip", pair, g.numbers(LEAST), g.numbers(1.0 - LEAST))
        if n_classes == 2:
            return g("Concat", pair, g("Sub", g.numbers(1.0), pair), axis=1)
        found = coupled(g, pair, n_classes)
        if not p.swapped:
            return found
        numbers = g.integers(np.arange(n_classes)[None, :])
        most = g("ArgMax", found, axis=1, keepdims=1)
        chosen = g("Unsqueeze", place, g.integers([1]))
        largest = g("GatherElements", found, most, axis=1)
        own = g("GatherElements", found, chosen, axis=1)
        moved = g("Where", g("Equal", numbers, most), own, found)
        return g("Where", g("Equal", numbers, chosen), largest, moved)


def _sigmoids(g: Graph, values: str, A: Array, B: Array) -> str:
    """1 / (1 + exp(A f + B)) of each column."""
    inner = g("Add", g("Mul", values, g.numbers(A)), g.numbers(B))
    return g("Sigmoid", g("Neg", inner))


def squares(g: Graph, value: str, axis: int) -> str:
    """Sums of squares along an axis, which stays; written alike in all versions of ONNX."""
    return g("ReduceSum", g("Mul", value, value), g.integers([axis]), keepdims=1)


def _beside(g: Graph, second: str) -> str:
    return g("Concat", g("Sub", g.numbers(1.0), second), second, axis=1)


def coupled(g: Graph, pair: str, n_classes: int) -> str:
    """Probabilities of classes from those of pairs.

    p minimises p'Qp with sum p = 1. Adding one to all entries of Q changes no such p, and makes Q
    positive definite, so that p is (Q + 1)^-1 1 but for a factor: Gauss and Jordan's elimination
    needs no pivots.
    """
    pairs, second = pair_sides(n_classes)
    # r[i, j], zero on the diagonal: from a table of pairs, one minus pairs, and zero
    complement = g("Sub", g.numbers(1.0), pair)
    zero = g("Mul", g("Gather", pair, g.integers([0]), axis=1), g.numbers(0.0))
    table = g("Concat", pair, complement, zero, axis=1)
    n_pairs = n_classes * (n_classes - 1) // 2
    at = np.full((n_classes, n_classes), 2 * n_pairs)
    at[~np.eye(n_classes, dtype=bool)] = pairs + np.where(second, n_pairs, 0)
    shape = g.integers([0, n_classes, n_classes])
    r = g("Reshape", g("Gather", table, g.integers(at.ravel()), axis=1), shape)
    turned = g("Reshape", g("Gather", table, g.integers(at.T.ravel()), axis=1), shape)
    diagonal = squares(g, r, 1)  # sum over j of r[j, i]^2
    eye = np.eye(n_classes)
    Q = g("Sub", g("Mul", diagonal, g.numbers(eye)), g("Mul", turned, r))
    right = g("Add", g("Mul", g("ReduceSum", Q, g.integers([2])), g.numbers(0.0)), g.numbers(1.0))
    system = g("Concat", g("Add", Q, g.numbers(1.0)), right, axis=2)
    body, dtype = g.body("elimination"), g.dtype.name
    k = body.given("k", "int64", ())
    go_on = body.given("go_on", "bool", ())
    M = body.given("system", dtype, ("n", n_classes, n_classes + 1))
    row, column = body("Gather", M, k, axis=1), body("Gather", M, k, axis=2)
    pivot = body("Unsqueeze", body("Gather", row, k, axis=1), body.integers([1]))
    row = body("Unsqueeze", body("Div", row, pivot), body.integers([1]))
    away = body("Sub", column, body("Gather", body.numbers(eye), k, axis=0))
    away = body("Unsqueeze", away, body.integers([2]))
    last = body("Sub", M, body("Mul", away, row))
    body.result(body("Identity", go_on), "bool", ())
    body.result(last, dtype, ("n", n_classes, n_classes + 1))
    steps, true = g.integers(n_classes), g.constant(np.asarray(True))
    done = g("Loop", steps, true, system, body=body.proto)
    p = g("Gather", done, g.integers(n_classes), axis=2)
    p = g("Max", p, g.numbers(0.0))
    return g("Div", p, g("ReduceSum", p, g.integers([1]), keepdims=1))
