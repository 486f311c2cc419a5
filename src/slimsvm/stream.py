"""What ``OnlineSVC.partial_fit`` keeps from call to call: an expansion for each pair of classes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from slimsvm.centring import safe_dtype
from slimsvm.declarations import TYPES, demand
from slimsvm.kernels import Kernel
from slimsvm.multiclass import OneVsOne, class_factors, sorted_labels
from slimsvm.run import Result
from slimsvm.solvers.dual_state import DualSolution
from slimsvm.solvers.online import FROZEN, SLOTS, Expanding, empty, restored
from slimsvm.tiles import Operand, prepare
from slimsvm.training import Data, finite

Array = NDArray[Any]
COUNTS = ("seed", "n_calls", "n_seen")


@dataclass
class Stream:
    """The state of a stream; budgets are bytes for kernel values."""

    seed: int
    like: Operand  # no rows, but how rows are prepared
    pairs: list[Expanding]
    n_calls: int = 0
    n_seen: int = 0

    @classmethod
    def begun(cls, seed: int, like: Operand, X: Any, n_pairs: int) -> Stream:
        """A stream of rows such as X, which are ``like`` when prepared; none has passed yet."""
        nothing = X[:0].copy()
        pairs = [empty(like, nothing) for _ in range(n_pairs)]
        return cls(seed, replace(like.take(slice(0, 0)), source=None, picked=None), pairs)

    def go_on_from(self, model: Any, budget: float) -> None:
        """Begin with the support vectors of a fitted OnlineSVC."""
        scheme = OneVsOne(len(model.classes_))
        label = np.repeat(np.arange(scheme.n_classes), model.n_support_)
        coef = model.dual_coef_.toarray() if sp.issparse(model.dual_coef_) else model.dual_coef_
        for part in scheme.parts(label):
            rows, a = part.rows, scheme.taken_apart(coef, part)
            rows, a = rows[a > 0], a[a > 0]
            # weights of rows are not known any more
            upper = np.maximum(a, float(model.C) * model.class_weight_[label[rows]])
            about = (a, upper, part.sign(rows), rows)
            self.pairs[part.k] = self._restored(model.support_vectors_[rows], *about, budget)
        self.n_seen = label.size

    def prepared_like(self, X: Any, budget: float) -> tuple[Any, Operand]:
        """Rows in the form that the stream has: as given, and ready for products."""
        like, raw = self.like, self.pairs[0].vectors.raw
        if sp.issparse(raw) != sp.issparse(X):
            X = sp.csr_matrix(X) if sp.issparse(raw) else X.toarray()
        if like.sq is None:
            return X, finite(prepare(like.kernel, X))
        dense = sp.issparse(X) and not sp.issparse(like.X)
        operand = prepare(like.kernel, X.toarray() if dense else X, like=like)
        if sp.issparse(like.X) and not sp.issparse(operand.X):
            operand = replace(operand, X=sp.csr_matrix(operand.X))
        finite(operand)
        assert operand.sq is not None
        needed = safe_dtype(like.kernel, operand.sq.astype(np.float64), X.shape[1])
        if like.dtype == np.float32 and needed == np.float64:
            self._upgrade(budget)
            return self.prepared_like(X, budget)
        return X, operand

    def _upgrade(self, budget: float) -> None:
        """Rows have come for which float32 is not enough: from here on in float64."""
        self.like = replace(self.like, X=self.like.X.astype(np.float64), sq=np.empty(0))
        for k, state in enumerate(self.pairs):
            self.pairs[k] = self._restored(*state.everything(), budget)

    def _restored(
        self, X: Any, a: Array, upper: Array, sign: Array, ids: Array, budget: float
    ) -> Expanding:
        raw, operand = self.prepared_like(X, budget)
        return restored(operand, raw, a, upper, sign, ids, budget)

    def as_problem(self, batch: Data, passed: list[Result]) -> tuple[Data, list[Result], Array]:
        """The vectors of all pairs as the rows of one problem, its solutions, and names of rows."""
        scheme, held = OneVsOne(batch.classes.size), [S.everything() for S in self.pairs]
        raws, duals, _, signs, names = zip(*held, strict=True)
        pairs = zip(signs, scheme.pairs, strict=True)
        label = np.concatenate([np.where(sign > 0, *pair) for sign, pair in pairs])
        weighty = np.flatnonzero(np.concatenate(duals) > 0)
        ids, first = np.unique(np.concatenate(names)[weighty], return_index=True)
        first = weighty[first]
        X = sp.vstack(raws, format="csr") if sp.issparse(raws[0]) else np.concatenate(raws)
        ones, label = np.ones(ids.size), label[first]
        data = replace(batch, X=X[first], target=label, weight=ones, used=np.arange(ids.size))
        results = []
        for part, S, result in zip(scheme.parts(label), self.pairs, passed, strict=True):
            a, own = duals[part.k], names[part.k]
            everywhere = np.zeros(ids.size)
            everywhere[np.searchsorted(ids, own[a > 0])] = a[a > 0]
            point = DualSolution(everywhere[part.rows], np.empty(0), (S.level, S.level))
            results.append(replace(result, model=point))
        return data, results, ids

    # -- model files -------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """As plain values: with them, what follows is the same to the last bit."""
        like = self.like
        form = "given" if like.sq is None else "sparse" if sp.issparse(like.X) else "dense"
        counts = {name: getattr(self, name) for name in COUNTS}
        about = {"form": form, "dtype": str(like.dtype), "shift": like.shift}
        return {**counts, **about, "pairs": [pair.to_dict() for pair in self.pairs]}

    @classmethod
    def from_dict(cls, values: dict[str, Any], kernel: Kernel, budget: float) -> Stream:
        """The way back."""
        dtype, d = np.dtype(values["dtype"]), values["pairs"][0]["raw"].shape[1]
        sparse, given = values["form"] == "sparse", values["form"] == "given"
        X: Any = sp.csr_matrix((0, d), dtype=dtype) if sparse else np.empty((0, d), dtype)
        like = Operand(kernel, X, None if given else np.empty(0, dtype), values["shift"])
        pairs = [empty(like, pair["raw"]) for pair in values["pairs"]]
        stream = cls(like=like, pairs=pairs, **{name: values[name] for name in COUNTS})
        for k, pair in enumerate(values["pairs"]):
            rows, frozen = (stream.prepared_like(pair[x], budget)[1] for x in ("raw", "f_raw"))
            pairs[k] = Expanding.from_dict(pair, like, rows, frozen)
        return stream


# -- what a call must be ---------------------------------------------------------------------------


def known_classes(classes: Any, known: Array | None, class_weight: Any) -> Array:
    """All classes of a stream: those of the first call, at which none are known."""
    if classes is None and known is None:
        raise ValueError(
            "classes must be passed on the first call to partial_fit: all labels that will ever "
            "come."
        )
    given = known if classes is None else sorted_labels(classes, "classes")[0]
    assert given is not None
    if known is not None and not np.array_equal(given, known):
        raise ValueError(
            f"classes={classes!r} is not the same as on the last call to partial_fit, it was "
            f"{known!r}."
        )
    if given.size < 2:
        raise ValueError(
            f"The number of classes has to be greater than one; got {given.size} class in "
            f"classes={classes!r}."
        )
    if known is None and isinstance(class_weight, str):
        raise ValueError(
            "class_weight='balanced' needs to see all labels, which partial_fit does not. Pass a "
            "dict of class weights."
        )
    return given


def encoded_batch(
    X: Any, y: Any, weight: Array, classes: Array, class_weight: Any, factors: Array | None
) -> Data:
    """The rows of a call; factors of the classes are those of the first call."""
    unknown = np.setdiff1d(sorted_labels(y, "y")[0], classes, assume_unique=True)
    if unknown.size:
        raise ValueError(
            f"y has the label {unknown.tolist()[0]!r}, which is not among the classes "
            f"{classes.tolist()}."
        )
    if factors is None:
        factors = class_factors(class_weight, classes=classes, y=classes)
    label = np.searchsorted(classes, y)
    own = weight * factors[label]
    used = np.flatnonzero(own > 0)
    return Data(X, label[used], own[used], used, weight, classes, factors)


def check_stream(stream: Any, n_features: int, n_pairs: int) -> None:
    """Raise ValueError unless it is what :meth:`Stream.to_dict` writes."""
    names = {*COUNTS, "form", "dtype", "shift", "pairs"}
    demand(set(stream) == names, "stream_ has not the entries of a stream")
    counts = all(TYPES["count"](stream[name]) for name in COUNTS)
    demand(counts, "a count of stream_ is not one")
    known = stream["form"] in ("dense", "sparse", "given")
    known = known and stream["dtype"] in ("float32", "float64")
    demand(known, "stream_ is of an unknown form")
    shift, pairs = stream["shift"], stream["pairs"]
    right = shift is None or (TYPES["float"](shift) and shift.shape == (n_features,))
    demand(right, f"the shift of stream_ has not {n_features} values")
    right = isinstance(pairs, list) and len(pairs) == n_pairs
    demand(right, f"stream_ has not {n_pairs} expansions, one for each pair")
    for k, pair in enumerate(pairs):
        where = f" of expansion {k} of stream_"
        names = {"raw", "K", "f_raw", "bottom", "top", *SLOTS, *FROZEN}
        right = isinstance(pair, dict) and set(pair) == names
        demand(right, f"the entries{where} are not those of an expansion")
        for rows, slots, ids in (("raw", SLOTS, "ids"), ("f_raw", FROZEN, "f_ids")):
            n = np.size(pair[ids])
            right = TYPES["rows"](pair[rows]) and pair[rows].shape == (n, n_features)
            demand(right, f"the vectors{where} have not the shape {(n, n_features)}")
            for name in slots:
                right = TYPES["int" if name == ids else "float"](pair[name])
                demand(right and pair[name].shape == (n,), f"{name}{where} has not {n} values")
        K, n = pair["K"], np.size(pair["ids"])
        right = TYPES["float"](K) and K.shape == (n, n) and str(K.dtype) == stream["dtype"]
        demand(right, f"the kernel values{where} have not the shape {(n, n)}")
        right = all(TYPES["number"](pair[end]) for end in ("bottom", "top"))
        demand(right, f"an end{where} is not a number")
