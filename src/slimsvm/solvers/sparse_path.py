"""A sparse fit by a path of sizes: from what is asked for to a problem and its solver."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from slimsvm.basis import Given, Selection, choice_of, is_choice
from slimsvm.losses import Loss
from slimsvm.problems.columns import KernelColumns
from slimsvm.problems.sparse import Sparse
from slimsvm.row_hashes import distinct
from slimsvm.run import Result, run
from slimsvm.solvers.growth import in_order
from slimsvm.solvers.path import Path
from slimsvm.solvers.path_all import path_over_all_rows
from slimsvm.solvers.path_cuts import CutPath
from slimsvm.solvers.path_points import Scoring, sizes_up_to
from slimsvm.solvers.sparse_asked import Asked
from slimsvm.training import Data, Fit


def solved_on_a_path(
    asked: Asked,
    data: Data,
    loss: Loss,
    fit: Fit,
    *,
    scoring: Scoring,
    last: Any,
    oracle: Callable[..., Any],
) -> Result:
    """The path of one fit, whose model is a :class:`slimsvm.solvers.path.PathModel`.

    ``last`` is a basis to begin with, if any; ``oracle`` makes that of a loss with a kink from
    loss, targets, weights and the number of threads.
    """
    moves = asked.moves(loss, data.kernel, bool(data.classes.size))
    seed, weight, intercept = asked.seed(), float(asked.C) * data.weight, bool(asked.fit_intercept)
    if asked.all_rows:
        limits: Any = {"max_iter": asked.steps, "max_memory": asked.max_memory}
        about: Any = (weight, loss, intercept, scoring, fit)
        return path_over_all_rows(data, *about, tol=float(asked.tol), seed=seed, **limits)
    candidates, named, wanted = distinct(data.X), is_choice(asked.vectors), asked.wanted
    everything = named and not asked.auto and candidates.size <= wanted and asked.solver is None
    wanted = min(candidates.size, wanted) if named else Given(asked.vectors).size

    def first(columns: KernelColumns, problem: Sparse, rng: Any) -> Selection | None:
        if everything:
            order = candidates[in_order(data.X[candidates])]
            return Selection(data.rows.X[order], order)
        if last is not None:
            return Selection(columns.in_rows_coordinates(last))
        choose = choice_of(asked.vectors, problem.weight)
        if not choose.one_shot:
            return None
        return choose.select(columns, None, None, wanted, rng, problem.candidates)

    grows = named and not everything and (last is not None or not asked.choice.one_shot)
    alone = everything or asked.solver is not None
    options: dict[str, Any] = {
        "sizes": [wanted] if alone else sizes_up_to(wanted),
        "first": first,
        "choose": (lambda: choice_of(asked.vectors)) if grows else None,
        "scoring": scoring,
        "accuracy_loss": asked.given_up,
        "seed": seed,
        "limits": fit.limits,
        "watchers": fit.watchers,
    }
    given = (data.rows, data.target, weight, loss, intercept, candidates)
    problem = Sparse(*given, asked.max_memory, fit.threads)
    solver: Path | CutPath
    if loss.differentiable:
        solver = Path(**options, max_iter=asked.steps, moves=moves and not everything)
    else:
        options["oracle"] = oracle(loss, data.target, weight, fit.threads)
        solver = CutPath(**options, solver=asked.solver, max_iter=int(asked.max_iter))
    return run(solver, problem, tol=float(asked.tol), limits=fit.limits)
