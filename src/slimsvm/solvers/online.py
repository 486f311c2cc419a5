"""LASVM: an SVM learned from rows that pass by, with an expansion that grows and shrinks.

Problem: the dual of the C-SVC (:mod:`slimsvm.problems.dual_qp`) over the rows that have passed, of
which only an *expansion* is kept.

Algorithm: Bordes, Ertekin, Weston & Bottou (2005), bordes2005lasvm. PROCESS takes a row: if it
makes a violating pair with the expansion, it joins and the pair moves. REPROCESS moves the most
violating pair of the expansion. Rows with a = 0 that can be in no violating pair leave. Rows are
taken at random, or the one of CANDIDATES random ones with the largest gradient, or with the
smallest |f| (which looks at no label).

What differs. Rows come in batches of BATCH: their kernel values with the expansion and with one
another are computed together, so that a row costs passes over vectors and no call for kernel
values. The second of a pair in REPROCESS is chosen by second-order information (Fan, Chen & Lin
2005). Rows leave at the end of a batch. Gradient and margin end a batch when no candidate violates,
or lies within the margin.

Budget: with ``max_support``, when the expansion is full, one row is absorbed by its neighbour: of a
few candidates (the smallest a among them) the one whose absorption changes the function least, a_i
|phi_i - phi_j|, j the nearest of the same class. j takes over a_i and the weight of i, so that
every vector stands for rows around it, the sum y'a stays zero, and any kernel will do. Together the
vectors weigh at most as much as WEIGHT max_support rows; beyond, all weights and coefficients
shrink alike, which is to say that the oldest rows are slowly forgotten.

Memory: kernel values within the expansion take at most ``budget`` bytes. Where it would grow
beyond, vectors that are firmly at their upper bound are *frozen*: they count in every f, but do not
move until the finishing, which is :mod:`slimsvm.solvers.decomposition` on the expansion.

Symbols: o = s - y as in :mod:`slimsvm.problems.dual_qp`; variables 0..m-1 are the slots of the
expansion, m + p is row p of the batch; K within the expansion, between: batch and expansion, own:
within the batch; up, low: o where a variable may rise or fall, else far away. Cost of a row: as
many kernel values as the expansion has vectors, and about ten passes over so many numbers if the
row violates, one if not.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from slimsvm.kernel_sums import accumulate
from slimsvm.precision import rounding
from slimsvm.run import SUBSPACE, Certificate
from slimsvm.solvers.online_loops import CANDIDATES, enter, pass_by
from slimsvm.solvers.smo import FAR
from slimsvm.tiles import Operand, Strips, block

Array = NDArray[Any]
BATCH = 256  # rows whose kernel values are computed together
WORK = 2e7  # kernel values in one step: about a quarter of a second
# of a full expansion, in rows a vector: more makes it slow to follow (covtype: 1 to 1.5 lose two
# points, 2 to 5 are alike)
WEIGHT = 4.0
ABSORBED = 16  # candidates for being absorbed
SLOTS, FROZEN = ("a", "upper", "sign", "o", "ids"), ("f_a", "f_upper", "f_sign", "f_ids")
SELECTIONS = ("random", "gradient", "margin")


class Vectors:
    """Rows of an operand in numbered slots: those of an expansion.

    And the rows as they were given, where nobody else keeps them.
    """

    def __init__(self, like: Operand, raw: Any = None) -> None:
        self.like = replace(like.take(np.empty(0, np.intp)), source=None, picked=None)
        self.raw: Any = None if raw is None else raw[:0]
        self.n = 0

    def operand(self, n: int) -> Operand:
        """The first n slots."""
        rows = self.like
        if rows.index is not None:
            return replace(rows, index=rows.index[:n])
        return replace(rows, X=rows.X[:n], sq=None if rows.sq is None else rows.sq[:n])

    def put(self, slots: Array, batch: Operand, raw: Any, which: Array) -> None:
        """Rows ``which`` of a batch into these slots."""
        if not slots.size:
            return
        n = max(self.n, int(slots.max()) + 1)
        rows = self.like
        if rows.index is not None and batch.index is not None:
            rows.index = _replaced(rows.index, self.n, slots, batch.index[which], n)
        else:
            rows.X = _replaced(rows.X, self.n, slots, batch.X[which], n)
            if rows.sq is not None and batch.sq is not None:
                rows.sq = _replaced(rows.sq, self.n, slots, batch.sq[which], n)
        if self.raw is not None:
            self.raw = _replaced(self.raw, self.n, slots, raw[which], n)
        self.n = n


def _replaced(store: Any, n_old: int, slots: Array, rows: Any, n: int) -> Any:
    """The store, n rows of it in use, with these rows in these slots.

    Arrays have space to spare, so that they are seldom copied.
    """
    if sp.issparse(store):
        place = np.arange(n)
        place[slots] = n_old + np.arange(slots.size)
        return sp.vstack([store[:n_old], rows.astype(np.result_type(store, rows))], format="csr")[
            place
        ]
    dtype = np.result_type(store, rows)
    if store.shape[0] < n or dtype != store.dtype:
        larger = np.empty((max(n, min(2 * n_old, n + 4096)), *store.shape[1:]), dtype)
        larger[:n_old] = store[:n_old]
        store = larger
    store[slots] = rows
    return store


@dataclass
class Passing:
    """Rows that pass by once: signs, upper bounds, names, and the order in which they come.

    ``start`` makes an empty expansion of such rows; ``raw`` are the rows as they were given, if the
    expansion is to keep them.
    """

    operand: Operand
    sign: Array
    upper: Array
    ids: Array
    order: Array
    raw: Any = None
    budget: float = 2e8
    n_threads: int = 1


@dataclass
class Expanding:
    """The expansion: what is known of every slot, frozen vectors, and our place in the rows."""

    vectors: Vectors
    K: Array
    a: Array
    upper: Array
    sign: Array
    o: Array
    ids: Array  # -1: the slot is free
    frozen: Vectors
    f_a: Array = field(default_factory=lambda: np.empty(0))
    f_upper: Array = field(default_factory=lambda: np.empty(0))
    f_sign: Array = field(default_factory=lambda: np.empty(0))
    f_ids: Array = field(default_factory=lambda: np.empty(0, np.int64))
    m: int = 0  # slots in use, free ones among them
    at: int = 0
    n_iter: int = 0  # rows that have passed
    n_values: int = 0
    bottom: float = FAR
    top: float = -FAR
    done: bool = False

    def __deepcopy__(self, memo: dict[int, Any]) -> Expanding:
        """A copy; of kernel values, those in use: the memory for more of them stays untouched."""
        fields = {k: copy.deepcopy(v, memo) for k, v in vars(self).items() if k != "K"}
        again = object.__new__(type(self))
        again.__dict__.update(fields, K=np.empty_like(self.K))
        again.K[: self.m, : self.m] = self.K[: self.m, : self.m]
        return again

    @property
    def alive(self) -> Array:
        """The slots that hold a vector."""
        return np.flatnonzero(self.ids[: self.m] >= 0)

    @property
    def violation(self) -> float:
        """Of the most violating pair in the expansion."""
        return (
            max(0.0, self.top - self.bottom)
            if self.top > -FAR / 2 and self.bottom < FAR / 2
            else 0.0
        )

    @property
    def level(self) -> float:
        """Minus the intercept.

        The mean o of the free vectors, or the middle of what the others leave.
        """
        v = self.alive
        free = v[(self.a[v] > 0) & (self.a[v] < self.upper[v])]
        if free.size:
            return float(self.o[free].mean())
        ends = [end for end in (self.bottom, self.top) if abs(end) < FAR / 2]
        return float(np.mean(ends)) if ends else 0.0

    def measure(self) -> tuple[float, float]:
        """Objective and duality gap of the problem over the expansion.

        Frozen vectors are left out of the gap.
        """
        v = self.alive
        z, a, o = self.sign[v], self.a[v], self.o[v]
        reduced = z * (o - self.level)
        gap = float(a @ reduced + self.upper[v] @ np.maximum(0.0, -reduced))
        return 0.5 * float((z * a) @ (o - z)), max(0.0, gap)

    def everything(self) -> tuple[Any, Array, Array, Array, Array]:
        """All vectors, frozen ones too: rows as given, a, upper, sign, ids."""
        v, n = self.alive, self.f_a.size
        raw = self.vectors.raw[v]
        if n:
            frozen = self.frozen.raw[:n]
            raw = (
                sp.vstack([raw, frozen], format="csr")
                if sp.issparse(raw)
                else np.concatenate([raw, frozen])
            )
        own, others = (
            (self.a, self.upper, self.sign, self.ids),
            (self.f_a, self.f_upper, self.f_sign, self.f_ids),
        )
        a, upper, sign, ids = (
            np.concatenate([values[v], more]) for values, more in zip(own, others, strict=True)
        )
        return raw, a, upper, sign, ids

    def to_dict(self) -> dict[str, Any]:
        """As plain values: with them, what follows is the same to the last bit."""
        m, n = self.m, self.f_a.size
        slots = {name: getattr(self, name)[:m] for name in SLOTS}
        frozen = {name: getattr(self, name) for name in FROZEN}
        ends = {"bottom": self.bottom, "top": self.top}
        return {
            "raw": self.vectors.raw[:m],
            "K": self.K[:m, :m],
            **slots,
            "f_raw": self.frozen.raw[:n],
            **frozen,
            **ends,
        }

    @classmethod
    def from_dict(
        cls, values: dict[str, Any], like: Operand, rows: Operand, frozen: Operand
    ) -> Expanding:
        """The way back; ``rows`` and ``frozen`` are the prepared vectors."""
        state = empty(like, values["raw"])
        state.m, state.K = int(values["a"].size), np.ascontiguousarray(values["K"])
        for name in (*SLOTS, *FROZEN):
            setattr(state, name, np.array(values[name]))
        state.bottom, state.top = float(values["bottom"]), float(values["top"])
        state.vectors.put(np.arange(state.m), rows, values["raw"], np.arange(state.m))
        state.frozen.put(
            np.arange(state.f_a.size), frozen, values["f_raw"], np.arange(state.f_a.size)
        )
        return state

    def record(self) -> dict[str, float]:
        """A line of the history."""
        objective, gap = self.measure()
        return {
            "objective": objective,
            "gap": gap,
            "violation": self.violation,
            "kernel_values": float(self.n_values),
            "active": float(self.alive.size),
            "n_support": float(np.count_nonzero(self.a[self.alive]) + self.f_a.size),
        }


def empty(like: Operand, raw: Any = None) -> Expanding:
    """An expansion without vectors, for rows such as these."""
    none, nothing = np.empty(0), np.empty((0, 0), like.dtype)
    return Expanding(
        Vectors(like, raw), nothing, none, none.copy(), none.copy(), none.copy(),
        np.empty(0, np.int64), Vectors(like, raw)
    )  # fmt: skip


def restored(
    like: Operand, raw: Any, a: Array, upper: Array, sign: Array, ids: Array, budget: float
) -> Expanding:
    """The expansion of given vectors (``like``, prepared) with given coefficients."""
    state, s = empty(like, raw), np.zeros(like.n)
    accumulate(like, Strips(like), sign * a, s)
    free_first = np.argsort(a >= upper, kind="stable")
    v, rest = np.split(free_first, [max(0, capacity(budget, like) - BATCH)])
    state.m, state.K = v.size, _values(like.take(v), like.take(v), 1)
    state.a, state.upper, state.sign, state.ids, state.o = (
        a[v],
        upper[v],
        sign[v],
        ids[v],
        s[v] - sign[v],
    )
    state.f_a, state.f_upper, state.f_sign, state.f_ids = (
        a[rest],
        upper[rest],
        sign[rest],
        ids[rest],
    )
    state.vectors.put(np.arange(v.size), like, raw, v)
    state.frozen.put(np.arange(rest.size), like, raw, rest)
    rises, falls = (
        np.where(state.sign > 0, state.a < state.upper, state.a > 0),
        np.where(state.sign > 0, state.a > 0, state.a < state.upper),
    )
    state.bottom, state.top = (
        float(state.o[rises].min(initial=FAR)),
        float(state.o[falls].max(initial=-FAR)),
    )
    return state


def capacity(budget: float, rows: Operand) -> int:
    """Vectors whose kernel values with one another fit into the budget."""
    return max(4 * BATCH, int(np.sqrt(budget / rows.dtype.itemsize)))


def decayed(state: Expanding, factor: float) -> None:
    """Let all rows that have passed lose weight.

    Bounds, coefficients and the function shrink together, and stay feasible.
    """
    for name in ("a", "upper", "f_a", "f_upper"):
        setattr(state, name, getattr(state, name) * factor)
    state.o[: state.m] = (
        factor * (state.o[: state.m] + state.sign[: state.m]) - state.sign[: state.m]
    )


@dataclass(kw_only=True)
class Online:
    """LASVM over one :class:`Passing`.

    ``tol`` is the least violation that moves a pair, ``max_iter`` limits rows.

    Parameters
    ----------
    selection : {"random", "gradient", "margin"}
        Which row is next.
    max_support : int, optional
        Most vectors in the expansion.
    seed : int or sequence of int
        Of the candidates.

    Examples
    --------
    >>> from slimsvm.kernels import RBF
    >>> from slimsvm.run import run
    >>> from slimsvm.tiles import prepare
    >>> X, y = np.array([[0.0], [1.0], [3.0], [4.0]]), np.array([-1.0, -1.0, 1.0, 1.0])
    >>> rows = Passing(prepare(RBF(0.5), X), y, np.full(4, 10.0), np.arange(4), np.arange(4))
    >>> state = run(Online(), rows, tol=1e-3).model
    >>> sorted(state.ids[state.alive].tolist())
    [0, 1, 2, 3]
    """

    # a pass that is done is what was asked for, whatever the certificate says
    done_is_converged: ClassVar[bool] = True
    selection: str = "random"
    max_support: int | None = None
    seed: Any = 0

    def init(self, problem: Passing, start: Expanding | None = None) -> Expanding:
        """Go on with the expansion ``start``, in place, or begin with an empty one."""
        state = empty(problem.operand, problem.raw) if start is None else start
        state.at, state.done, state.n_iter = 0, False, 0
        self.rng = np.random.default_rng(self.seed)
        return state

    def step(self, problem: Passing, state: Expanding, tol: float, max_iter: int) -> None:
        """Some batches."""
        most = state.n_values + WORK
        while state.n_values < most and state.at < problem.order.size and state.n_iter < max_iter:
            rows = problem.order[state.at : state.at + int(min(BATCH, max_iter - state.n_iter))]
            self._learn(problem, state, rows, tol)
            state.at += rows.size
            state.n_iter += rows.size
        state.done = state.at >= problem.order.size

    def _learn(self, problem: Passing, S: Expanding, rows: Array, tol: float) -> None:
        """PROCESS and REPROCESS for the rows of one batch."""
        # rows that pass for the second time and are in the expansion already are left alone; where
        # one pass ends and the next begins, a row may stand in a batch twice
        rows = rows[np.sort(np.unique(rows, return_index=True)[1])]
        rows = rows[~np.isin(problem.ids[rows], np.concatenate([S.ids[: S.m], S.f_ids]))]
        if not rows.size:
            return
        if self.max_support is not None:
            self._forget(S, WEIGHT * self.max_support * float(problem.upper[rows].mean()))
        self._make_room(problem, S, rows.size)
        # 1. kernel values of the batch
        batch, m = problem.operand.take(rows), S.m
        between, own = (
            _values(batch, S.vectors.operand(m), problem.n_threads),
            _values(batch, batch, problem.n_threads),
        )
        base = np.zeros(rows.size)
        if S.f_a.size:
            accumulate(
                S.frozen.operand(S.f_a.size),
                Strips(batch, 64),
                S.f_sign * S.f_a,
                base,
                problem.n_threads,
            )
        S.n_values += rows.size * (m + S.f_a.size + rows.size)
        # 2. the loop over its rows
        n = m + rows.size
        sign, upper = (
            np.concatenate([S.sign[:m], problem.sign[rows]]),
            np.concatenate([S.upper[:m], problem.upper[rows]]),
        )
        a, o = np.concatenate([S.a[:m], np.zeros(rows.size)]), np.concatenate([S.o[:m], base])
        here = np.zeros(n, np.bool_)
        here[S.alive] = True
        draws = self.rng.integers(
            2**31, size=(rows.size, CANDIDATES if self.selection != "random" else 1)
        )
        most = n if self.max_support is None else max(2, int(self.max_support) - S.f_a.size)
        S.bottom, S.top = pass_by(
            S.K, between, own, sign, upper, a, o, here, tol, SELECTIONS.index(self.selection),
            draws, most,
            self.rng.integers(2**31, size=(rows.size if self.max_support else 1, ABSORBED)),
        )  # fmt: skip
        # 3. what is in the expansion now: new vectors take free slots first
        S.a[:m], S.o[:m], S.upper[:m] = a[:m], o[:m], upper[:m]
        S.ids[:m][~here[:m]] = -1
        new = np.flatnonzero(here[m:])
        free = np.flatnonzero(~here[:m])[: new.size]
        slots = np.concatenate([free, m + np.arange(new.size - free.size)])
        enter(S.K, between, own, slots, new, m)
        S.a[slots], S.o[slots], S.upper[slots], S.sign[slots] = (
            a[m + new],
            o[m + new],
            upper[m + new],
            sign[m + new],
        )
        S.ids[slots] = problem.ids[rows[new]]
        S.vectors.put(slots, batch, None if problem.raw is None else problem.raw[rows], new)
        S.m = max(m, m + new.size - free.size)

    @staticmethod
    def _forget(S: Expanding, most: float) -> None:
        """Keep vectors that have absorbed others from weighing more and more.

        Beyond ``most`` in all, everything shrinks alike.
        """
        total = float(S.upper[S.alive].sum() + S.f_upper.sum())
        if total > most > 0.0:
            decayed(S, most / total)

    def _make_room(self, problem: Passing, S: Expanding, n_new: int) -> None:
        """Slots for a batch: more memory, and where the budget allows no more, frozen vectors."""
        most = capacity(problem.budget, problem.operand)
        if S.alive.size + n_new > most:
            self._freeze(S, max(n_new, most // 8))
        need = min(most, S.m + n_new)
        if S.K.shape[0] >= need:
            return
        # as large as it may get, at once: memory that is not touched yet costs nothing, a copy
        # would need the memory twice
        size = most if self.max_support is None else min(most, int(self.max_support) + 2 * BATCH)
        size = max(need, min(size, S.m + problem.order.size) if problem.raw is None else size)
        K = np.empty((size, size), problem.operand.dtype)
        K[: S.m, : S.m] = S.K[: S.m, : S.m]
        S.K = K
        for name in ("a", "upper", "sign", "o", "ids"):
            old = getattr(S, name)
            grown = np.full(size, -1) if name == "ids" else np.zeros(size)
            grown[: S.m] = old[: S.m]
            setattr(S, name, grown)

    @staticmethod
    def _freeze(S: Expanding, n: int) -> None:
        """Take n vectors out of what moves.

        Those without weight go, then those most firmly at their bound.
        """
        v = S.alive
        slack = S.sign[v] * (S.level - S.o[v])  # how far an upper bound is from letting go
        slack = np.where(S.a[v] <= 0, np.inf, np.where(S.a[v] >= S.upper[v], slack, -np.inf))
        leaving = v[np.argsort(-slack, kind="stable")[:n]]
        kept = leaving[S.a[leaving] > 0]
        rows, at = S.vectors.operand(S.m), S.f_a.size
        raw = S.vectors.raw
        S.frozen.put(at + np.arange(kept.size), rows, raw, kept)
        S.f_a, S.f_upper = np.append(S.f_a, S.a[kept]), np.append(S.f_upper, S.upper[kept])
        S.f_sign, S.f_ids = np.append(S.f_sign, S.sign[kept]), np.append(S.f_ids, S.ids[kept])
        S.ids[leaving], S.a[leaving] = -1, 0.0

    def certificate(self, problem: Passing, state: Expanding, tol: float) -> Certificate:
        """About the rows of the expansion only: the others have passed."""
        objective, gap = state.measure()
        if state.f_a.size:  # what frozen vectors would gain is not known
            gap = np.inf
        certificate = Certificate(
            SUBSPACE, objective, state.violation, gap, tol, str(problem.operand.dtype)
        )
        v, error = state.alive, problem.operand.rounding()
        z, o = state.sign[v], state.o[v]
        coef, s = (z * state.a[v])[:, None], (o + z)[:, None]
        slopes = np.where(z * (o - state.level) < 0.0, state.upper[v], 0.0)[:, None]
        return certificate.rounded(rounding(error, coef, s, slopes, s))

    def model(self, problem: Passing, state: Expanding) -> Expanding:
        """The expansion."""
        return state


def _values(rows: Operand, columns: Operand, n_threads: int) -> Array:
    """k(rows, columns), the columns in strips that two threads can share."""
    return block(rows, Strips(columns, None if sp.issparse(columns.X) else 512), n_threads)
