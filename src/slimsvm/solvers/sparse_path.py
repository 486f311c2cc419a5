"""A sparse fit by a path of sizes: from what is asked for to a problem and its solver."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

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

FirstVectors = Callable[[KernelColumns, Sparse, Any], Selection | None]


class Around(NamedTuple):
    """What a path takes beside its problem.

    ``last`` is a basis to begin with, if any; ``oracle`` makes that of a loss with a kink from
    loss, targets, weights and the number of threads.
    """

    scoring: Scoring
    last: Any
    oracle: Callable[..., Any]


def solved_on_a_path(asked: Asked, data: Data, loss: Loss, fit: Fit, around: Around) -> Result:
    """The path of one fit, whose model is a :class:`slimsvm.solvers.path.PathModel`."""
    scoring, last, _ = around
    moves = asked.moves(loss, data.kernel, bool(data.classes.size))
    seed, weight, intercept = asked.seed(), float(asked.C) * data.weight, bool(asked.fit_intercept)
    if asked.all_rows:
        limits: Any = {"max_iter": asked.steps, "max_memory": asked.max_memory}
        about: Any = (weight, loss, intercept, scoring, fit)
        return path_over_all_rows(data, *about, tol=float(asked.tol), seed=seed, **limits)
    candidates, named, wanted = distinct(data.X), is_choice(asked.vectors), asked.wanted
    everything = named and not asked.auto and candidates.size <= wanted and asked.solver is None
    wanted = min(candidates.size, wanted) if named else Given(asked.vectors).size

    usual = first_vectors(asked, last, wanted)

    def first(columns: KernelColumns, problem: Sparse, rng: Any) -> Selection | None:
        if not everything:
            return usual(columns, problem, rng)
        order = candidates[in_order(data.X[candidates])]
        return Selection(data.rows.X[order], order)

    grows = named and not everything and (last is not None or not asked.choice.one_shot)
    alone = everything or asked.solver is not None
    given = (data.rows, data.target, weight, loss, intercept, candidates)
    problem = Sparse(*given, asked.max_memory, fit.threads)
    return run_on_a_path(
        asked,
        problem,
        fit,
        around,
        sizes=[wanted] if alone else sizes_up_to(wanted),
        first=first,
        grows=grows,
        seed=seed,
        moves=moves and not everything,
    )


def first_vectors(asked: Asked, last: Any, wanted: int) -> FirstVectors:
    """What a path begins with: a basis from before, or all that a choice makes at once."""

    def first(columns: KernelColumns, problem: Sparse, rng: Any) -> Selection | None:
        if last is not None:
            return Selection(columns.in_rows_coordinates(last))
        choose = choice_of(asked.vectors, problem.weight)
        if not choose.one_shot:
            return None
        return choose.select(columns, None, None, wanted, rng, problem.candidates)

    return first


def run_on_a_path(
    asked: Asked,
    problem: Sparse,
    fit: Fit,
    around: Around,
    *,
    sizes: list[int],
    first: FirstVectors,
    grows: bool,
    seed: int,
    moves: bool,
) -> Result:
    """A path of these sizes, by Newton's method or, for a loss with a kink, by cutting planes."""
    options: dict[str, Any] = {
        "sizes": sizes,
        "first": first,
        "choose": (lambda: choice_of(asked.vectors)) if grows else None,
        "scoring": around.scoring,
        "accuracy_loss": asked.given_up,
        "seed": seed,
        "limits": fit.limits,
        "watchers": fit.watchers,
    }
    solver: Path | CutPath
    if problem.loss.differentiable:
        solver = Path(**options, max_iter=asked.steps, moves=moves)
    else:
        given = (problem.loss, problem.target, problem.weight, fit.threads)
        options["oracle"] = around.oracle(*given)
        solver = CutPath(**options, solver=asked.solver, max_iter=int(asked.max_iter))
    return run(solver, problem, tol=float(asked.tol), limits=fit.limits)
