"""SVC and SVR on rows that are elsewhere: the exact solution, with few of the rows here."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from slimsvm.far.coding import Coded, targets_in
from slimsvm.frames import Frame
from slimsvm.gram import Gram, make_gram
from slimsvm.multiclass import OneVsOne, Part
from slimsvm.precision import is_small
from slimsvm.problems.dual_qp import DualQP
from slimsvm.problems.far_gram import Held, far_gram, known_of
from slimsvm.run import Limits, Result
from slimsvm.solvers.nested_on_rows import solver_for
from slimsvm.tiles import prepare
from slimsvm.training import Data, Fit, Unsupported

Array = NDArray[Any]
FEW = 2000  # rows of a pair that are brought here at once
LARGEST_SEED = 2**31 - 1


class FarProblems:
    """The rows of a fit, and the Grams of some of them."""

    def __init__(self, model: Any, data: Data, threads: int) -> None:
        self.model, self.threads, self.kernel = model, threads, data.kernel
        self.rows = data.about["rows"]
        _refuse(model)
        labels = ("labels", 1.0, data.classes, data.factors) if data.classes.size else ("numbers",)
        parts = self.rows.relabelled(Coded(*labels)).map(targets_in)
        self.target, self.weight = (np.concatenate([part[i] for part in parts]) for i in range(2))
        self.used = np.flatnonzero(self.weight > 0)
        self.frame = Frame.of(data.kernel, self.rows)
        self.known = known_of(self.rows, self.frame)
        rng = check_random_state(0 if model.random_state is None else model.random_state)
        self.seed = int(rng.randint(LARGEST_SEED))

    def gram(self, numbers: Array) -> Gram:
        """Of the rows with these numbers."""
        budget, threads = self.model._cache_bytes, self.threads
        if numbers.size <= FEW:
            dtype = np.float64 if is_small(numbers.size) else None
            X = self.rows.take(numbers).X
            return make_gram(prepare(self.kernel, X, dtype=dtype, alone=True), budget, threads)
        held = Held(self.rows, numbers, self.frame, self.known.of(numbers))
        return far_gram(held, budget, threads)

    def solved(self, problem: DualQP, fit: Fit, limits: Limits) -> Result:
        """One of its problems."""
        solver = solver_for(problem.gram, bool(self.model.shrinking), self.seed)
        result: Result = self.model._decomposed(problem, fit, limits, solver=solver)
        return result


def problems_of(model: Any, data: Data, fit: Fit) -> FarProblems:
    """Those of a fit; a checkpoint, which asks again, does not read all rows again."""
    if "problems" not in data.about:
        data.about["problems"] = FarProblems(model, data, fit.threads)
    found: FarProblems = data.about["problems"]
    return found


def _refuse(model: Any) -> None:
    """What needs all rows in memory."""
    name = type(model).__name__
    why = {
        "probability=True": getattr(model, "probability", False) is True,
        "a solver of its own": model.solver is not None,
        "warm_start=True": bool(model.warm_start),
    }
    for what, given in why.items():
        if given:
            raise Unsupported(
                f"{name} with {what} needs all rows in memory; leave it out, or fit on an array."
            )


def pairs_on_rows(model: Any, data: Data, fit: Fit) -> list[Result]:
    """Step 4 of a classifier; the data become those of the support vectors of any pair."""
    far = problems_of(model, data, fit)
    label = far.target.copy()
    label[far.weight <= 0] = -1
    used: list[Array] = []

    def train(part: Part, limits: Limits) -> Result:
        rows = part.rows
        names = data.classes[[part.positive, part.negative]].tolist()
        problem = model._problem(far.gram(rows), part, far.weight[rows], names)
        result = far.solved(problem, fit, limits)
        own = np.flatnonzero(result.model.a)
        used.append(rows[own])
        return replace(result, model=replace(result.model, a=result.model.a[own], s=np.empty(0)))

    parts = OneVsOne(data.classes.size).parts(label)
    results = OneVsOne.trained(parts, train, fit, lambda part: False)
    support = np.unique(np.concatenate(used))
    support = support[np.argsort(label[support], kind="stable")]
    data.used, data.target = support, label[support].astype(np.intp)
    data.about = {"_probA": np.empty(0), "_probB": np.empty(0)}
    for k, part in enumerate(OneVsOne(data.classes.size).parts(data.target)):
        own = support[part.rows]
        a, order = np.zeros(own.size), np.argsort(own, kind="stable")
        a[order[np.searchsorted(own[order], used[k])]] = results[k].model.a
        results[k] = replace(results[k], model=replace(results[k].model, a=a))
    return results


def regression_on_rows(model: Any, data: Data, fit: Fit) -> tuple[Array, Result]:
    """Step 4 of a regression: coefficients of the support vectors, which the data become."""
    far = problems_of(model, data, fit)
    rows = far.used
    gram = far.gram(rows)
    problem = model._problem(gram, far.target[rows].astype(np.float64), far.weight[rows])
    result = far.solved(problem, fit, fit.limits)
    coef = problem.coef(result.model.a)
    own = np.flatnonzero(coef)
    data.used, data.about = rows[own], {}
    return coef[own], replace(result, model=replace(result.model, a=np.empty(0), s=np.empty(0)))
