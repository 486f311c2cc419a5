"""How far a structural model is from the optimum over all functions of its kernel.

Problem: that of :mod:`slimsvm.solvers.joint`, whose dual is

    max over a of  sum_iy a_iy Delta(y_i, y) - 1/2 |sum_iy a_iy dpsi_i(y)|^2,
    a_iy >= 0,  sum_y a_iy <= weight_i  for every example i.

Any such a is a lower bound. There is no equality over all examples (an intercept is a constant in
the kernel), so that examples can be changed one by one, and those that are left out have a = 0.

Algorithm. (1) A first point: where every example is one row and the function is a sum over rows,
its coefficients, those of each example scaled by min(1, weight_i / their sum); otherwise the worst
outputs at the scores of the model, with their whole weight. All of it is scaled down as far as that
helps. (2) Sweeps over the *felt* examples, which have multipliers or a violated output: the worst
output of one at the function of the dual point as it is now, and the best step towards it
(Lacoste-Julien, Jaggi, Schmidt & Pletscher 2013; for two classes, coordinate ascent).

Cost: the kernel values among the felt rows, once for the first point and once for each sweep;
memory: a block of them.

Symbols: V responses of the rows, the sum of a_iy dpsi_i(y); G = -K V scores of the dual point; ell
sums of a Delta.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from slimsvm.kernel_sums import accumulate
from slimsvm.precision import is_small, rounding
from slimsvm.run import FULL, Certificate
from slimsvm.solvers.joint import JointRisk
from slimsvm.solvers.structural_spaces import scaled
from slimsvm.solvers.whole_gap import Clock
from slimsvm.threads import n_threads
from slimsvm.tiles import Operand, Strips, block, prepare
from slimsvm.training import Data, canonical

Array = NDArray[Any]
PARTS = 256  # rows of one block
SAME = 0.1  # relative difference of two values of one model: in float32, kinks make it large
SECONDS = 1.0  # of work that is worth a line of text
STEPS = 4  # towards the worst output of one example, where it has more than two


@dataclass
class _Point:
    """A feasible point of the dual, over the felt parts."""

    V: Array
    ell: Array  # of each example
    linear: Array  # of each example
    G: Array

    @property
    def value(self) -> float:
        """Of the dual problem; G = -K V."""
        total = self.linear.sum(axis=0)
        square = -float(np.vdot(self.V, self.G)) + float(total @ total)
        return float(self.ell.sum()) - 0.5 * square


def certified(model: Any, data: Data, sweeps: int, max_time: float | None) -> Certificate:
    """The certificate of a fitted structural estimator, over all functions of its kernel.

    Parameters
    ----------
    model : estimator
        Fitted.
    data : Data
        What it was fitted on, with the oracle, the outputs and the weights.
    sweeps : int
        Over the examples that are felt.
    max_time : float, optional
        Limit in seconds.
    """
    oracle, true = data.about["oracle"], data.about["true"]
    if oracle.one_example:
        raise ValueError(
            f"To {oracle.name} the whole set is one example, whose dual problem has no parts that "
            "could be improved one by one. certificate_ has the gap of the fit."
        )
    threads = n_threads(model.n_jobs)
    weight = scaled(float(model.C), data.about["weight"])
    risk = JointRisk(oracle, true.labels, true.offsets, weight, threads)
    X, dtype = canonical(data.X), np.float64 if is_small(data.X.shape[0]) else None
    coef = _of_rows(model, data)
    # 1. the value of the model
    scores = np.asarray(model._scores(X), np.float64).reshape(true.labels.size, -1)
    flat = np.concatenate([scores.ravel(), model.linear_])[:, None]
    function, explicit = model._function(), model.space_ == "explicit"
    own = model.coef_.T if explicit else function.at_basis()
    weights = own if explicit else function.coef
    square = float(np.vdot(weights, own))
    square += float(model.linear_ @ model.linear_)
    if model.fit_intercept:
        square += float(np.square(model.intercept_).sum())
    objective = 0.5 * square + float(risk.risk(flat)[0])
    # 2. its rounding errors
    prepared = prepare(data.kernel, X, dtype=dtype)
    slopes = risk.cuts(flat)[2][: scores.size, 0].reshape(scores.shape)
    error = max(prepared.rounding(), 0.0 if explicit else function.rounding(X))
    raw = scores - model.intercept_
    off = rounding(error, weights, own, slopes, raw)
    about = model.certificate_
    (low, high), apart = about.interval, off + SAME * abs(objective)
    if not low - apart <= objective <= high + apart:
        raise ValueError(
            f"The model has the value {objective:.6g} here, but had {about.objective:.6g} where it "
            "was trained; certify needs the same rows, outputs and weights."
        )
    # 3. a lower bound
    lower, less = lower_bound(
        prepared.take,
        risk,
        scores,
        model.linear_,
        coef,
        variance=float(bool(model.fit_intercept)),
        sweeps=sweeps,
        going_on=Clock(max_time, "the interval is wider than it could be", worth=SECONDS),
    )
    gap = max(0.0, objective - lower)
    relative = gap / objective if objective > 0.0 else 0.0
    precision = str(np.dtype(prepared.dtype))
    found = Certificate(FULL, objective, relative, gap, float(model.tol), precision)
    return found.rounded(off + less)


def _of_rows(model: Any, data: Data) -> Array | None:
    """The coefficients of all rows, where the model is a sum over them."""
    indices = getattr(model, "basis_indices_", None)
    if model.space_ not in ("kernel", "sampled") or indices is None:
        return None
    place = np.full(int(data.used.max()) + 1, -1)
    place[data.used] = np.arange(data.used.size)
    inside = indices[indices < place.size]
    rows = place[inside]
    same = inside.size == indices.size and bool((rows >= 0).all())
    if same and indices.size:
        difference = data.X[rows] - model.basis_
        same = not np.any(difference.data if sp.issparse(difference) else difference)
    if not same:
        raise ValueError(
            "These are not the rows that the model was trained on: its support vectors are not "
            "among them, in their places."
        )
    coef = np.zeros((data.X.shape[0], model.basis_coef_.shape[1]))
    coef[rows] = model.basis_coef_
    return coef


def lower_bound(
    rows: Callable[[Array], Operand],
    risk: JointRisk,
    scores: Array,
    linear: Array,
    coef: Array | None,
    *,
    variance: float = 0.0,
    sweeps: int = 3,
    going_on: Callable[[int, int], bool] = lambda done, n: True,
) -> tuple[float, float]:
    """A value below the optimum of the whole problem, and about how much rounding may change it.

    Parameters
    ----------
    rows : callable
        Some rows, prepared.
    risk : JointRisk
        Oracle, labels, offsets and weights.
    scores : array of shape (parts, columns)
        Of the model.
    linear : array of shape (n_linear,)
        Its linear part.
    coef : array of shape (parts, columns), optional
        Its coefficients, if it is a sum over the rows.
    variance : float
        The constant in the kernel that stands for intercepts.
    sweeps : int
        Over the felt examples.
    going_on : callable
        Told how many rows are done, and of how many; where it says no, the bound is what is known
        by then.

    Examples
    --------
    >>> from slimsvm.kernels import Linear
    >>> from slimsvm.oracles import Binary
    >>> X, oracle = np.array([[1.0], [-1.0]]), Binary()
    >>> true = oracle.encode([1, 0], n_rows=2)
    >>> risk = JointRisk(oracle, true.labels, true.offsets, np.full(2, 9.0))
    >>> taken = lambda which: prepare(Linear(), X[which])
    >>> value, _ = lower_bound(taken, risk, np.zeros((2, 1)), np.empty(0), np.zeros((2, 1)))
    >>> round(value, 9)
    0.5
    """
    V, ell, own = _first(risk, scores, linear, coef)
    _, _, margin = risk.oracle.worst(scores, risk.labels, risk.offsets, linear, risk.n_threads)
    felt = np.flatnonzero((ell > 0.0) | (margin > 0.0))
    if not felt.size:
        return 0.0, 0.0
    lengths = np.diff(risk.offsets)[felt]
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    parts = np.repeat(risk.offsets[felt] - offsets[:-1], lengths) + np.arange(offsets[-1])
    some, labels, weight = rows(parts), risk.labels[parts], risk.weight[felt]
    S = _Point(V[parts], ell[felt], own[felt], np.empty((parts.size, risk.width)))
    error, n_all = some.rounding(), (1 + sweeps) * parts.size
    going_on(0, n_all)
    # 1. the function of the first point
    if not _expand(some, S, variance, risk.n_threads, lambda done: going_on(done, n_all)):
        return 0.0, 0.0
    total = S.linear.sum(axis=0)
    square = -float(np.vdot(S.V, S.G)) + float(total @ total)
    shrink = min(1.0, float(S.ell.sum()) / square) if square > 0.0 else 1.0
    S.V, S.ell, S.linear, S.G = (shrink * own for own in (S.V, S.ell, S.linear, S.G))
    # 2. sweeps over whole examples, some hundred rows at a time
    edges = np.unique(np.searchsorted(offsets, np.arange(0, offsets[-1] + PARTS, PARTS)))
    edges = np.minimum(edges, felt.size)
    strips = Strips(some)
    for sweep in range(sweeps):
        for first, last in pairwise(edges):
            if first == last:
                continue
            here = slice(int(offsets[first]), int(offsets[last]))
            K = np.asarray(block(some.take(here), strips, risk.n_threads), np.float64)
            before = S.V[here].copy()
            _sweep(risk.oracle, S, K[:, here] + variance, offsets, first, last, labels, weight)
            change = S.V[here] - before
            others = np.ones(parts.size, bool)
            others[here] = False
            S.G[others] -= K[:, others].T @ change + variance * change.sum(axis=0)
            if not going_on((1 + sweep) * parts.size + here.stop, n_all):
                return _bound(S, error)
    return _bound(S, error)


def _bound(S: _Point, error: float) -> tuple[float, float]:
    return max(0.0, S.value), rounding(error, S.V, S.G, S.V, S.G)


def _first(
    risk: JointRisk, scores: Array, linear: Array, coef: Array | None
) -> tuple[Array, Array, Array]:
    """A feasible point: responses of all parts; sums of the losses, and linear part, of examples.

    The multipliers of each example are within its weight.
    """
    oracle, labels, offsets, weight = risk.oracle, risk.labels, risk.offsets, risk.weight
    n = weight.size
    if coef is None or n != labels.size or risk.n_linear:
        V, ell, own = np.zeros((labels.size, risk.width)), np.zeros(n), np.zeros((n, risk.n_linear))
        for i in range(n):
            a, b = int(offsets[i]), int(offsets[i + 1])
            _, ell[i], V[a:b], own[i] = oracle.cut(
                scores[a:b], labels[a:b], np.array([0, b - a]), weight[i : i + 1], linear
            )
        return V, ell, own
    every = np.arange(n)
    if risk.width == 1:  # two classes, and one score for the second
        away = np.where(labels > 0, -1.0, 1.0)
        a = np.clip(-coef[:, 0] * away, 0.0, weight)
        return (a * away)[:, None], a * oracle.losses(labels, 1 - labels, offsets), np.zeros((n, 0))
    V = np.maximum(-coef, 0.0)
    V[every, labels] = 0.0
    mass = V.sum(axis=1)
    V *= np.minimum(1.0, weight / np.maximum(mass, np.finfo(float).tiny))[:, None]
    costs = [oracle.losses(labels, np.full(n, c), offsets) for c in range(risk.width)]
    ell = np.einsum("ic,ci->i", V, np.array(costs))
    V[every, labels] = -V.sum(axis=1)
    return V, ell, np.zeros((n, 0))


def _expand(
    some: Operand, S: _Point, variance: float, n_threads: int, going_on: Callable[[int], bool]
) -> bool:
    """G = -K V, with the constant; False if it was ended early."""
    S.G[:] = -variance * S.V.sum(axis=0)
    strips = Strips(some)
    for start in range(0, some.n, 8 * PARTS):
        here = slice(start, min(some.n, start + 8 * PARTS))
        side = some.take(here)
        for c in np.flatnonzero(S.V[here].any(axis=0)):
            out = np.zeros(some.n)
            accumulate(side, strips, S.V[here, c], out, n_threads)
            S.G[:, c] -= out
        if not going_on(here.stop):
            return False
    return True


def _sweep(
    oracle: Any,
    S: _Point,
    K: Array,
    offsets: Array,
    first: int,
    last: int,
    labels: Array,
    weight: Array,
) -> None:
    """The examples of one block, one after the other; K among its own rows, with the constant."""
    begin, total = int(offsets[first]), S.linear.sum(axis=0)
    here = slice(begin, int(offsets[last]))
    steps = 1 if S.V.shape[1] == 1 else STEPS
    for i in range(first, last):
        a, b = int(offsets[i]), int(offsets[i + 1])
        inside = slice(a - begin, b - begin)
        for _ in range(steps):
            _, ell, V, own = oracle.cut(
                S.G[a:b], labels[a:b], np.array([0, b - a]), weight[i : i + 1], -total
            )
            d_ell, d_V, d_own = ell - S.ell[i], V - S.V[a:b], own - S.linear[i]
            slope = d_ell + float(np.vdot(d_V, S.G[a:b])) - float(d_own @ total)
            curve = float(np.vdot(d_V, K[inside, inside] @ d_V)) + float(d_own @ d_own)
            if slope <= 0.0:
                break
            t = 1.0 if slope >= curve else slope / curve
            S.ell[i] += t * d_ell
            S.V[a:b] += t * d_V
            S.linear[i] += t * d_own
            total = total + t * d_own
            S.G[here] -= t * (K[:, inside] @ d_V)
